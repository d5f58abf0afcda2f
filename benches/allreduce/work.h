/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the benchmark `allreduce` share: its parameters, and what is kept of a point. */
#ifndef PLUMB_BENCHES_ALLREDUCE_WORK_H
#define PLUMB_BENCHES_ALLREDUCE_WORK_H

#include <stddef.h>
#include <stdint.h>

#include "core/bench/bench.h"
#include "core/collective/collective.h"
#include "core/model.h"
#include "core/session/links.h"
#include "core/session/ranks.h"

/*
 * The gradients of a model (core/model.h), as training sums them: fused to buckets, one call each.
 *
 * Gradients come in the reverse of the order of the forward pass, and a bucket takes them as they
 * come until it holds at least `bucket_bytes`; a tensor is never divided, so that a bucket is as
 * large as that or larger, but for the last. This is the rule of PyTorch's DistributedDataParallel
 * (reducer.cpp: the tensor that reaches bucket_cap_mb, 25 MiB unless told, is still in the bucket
 * that it closes), without its first bucket, which is smaller (1 MiB), and without the new order in
 * which it lays out the buckets after the first step. Tables are left out: their gradients are
 * sparse.
 */

/* One call for each bucket: element 0 is the first gradient that comes, each call begins where the
 * one before ended, and together they are all of the model. bucket_bytes 0: each tensor by itself.
 * *n calls; 0, -EINVAL (element_bytes is 0), -E2BIG: there are more than `most`. */
int buckets_fuse(const struct model *m, size_t element_bytes, uint64_t bucket_bytes,
                 struct collective_call *calls, size_t most, size_t *n);

/* ---- Which ranks make a communicator. Pure. ---- */

enum place_fill {
    PLACE_FILL_NODE, /* a node is filled before the next one: 0 0 1 1 2 2 */
    PLACE_FILL_RANK, /* one rank of each node in turn: 0 1 2 0 1 2 */
};

/* The first n ranks in that order, rank 0 of the world first. n at most the world's size. */
void place_members(const struct world *w, enum place_fill fill, unsigned n, unsigned *members);
/* The process of each of `size` ranks, `each` of them in every member, with the root in front, in
 * place of the first. */
void place_root_first(const unsigned *members, unsigned size, unsigned each, unsigned root,
                      unsigned *out);

/* Which machine each of them is on, from 0 by first appearance, whatever it calls itself there.
 * Returns how many. */
unsigned place_machines(const struct world *w, const unsigned *members, unsigned n,
                        unsigned *machine);

struct collective_params {
    struct ranks_params group;
    struct way_params way;
    /* what is measured */
    int op, dtype, redop, fill, scaling, inject;
    uint64_t size, ranks, root, gap_ns, bucket, iterations;
    uint64_t pipelined, aggregated, graphs, per_process;
    int registered;
    bool in_place, overlap, no_cpu, sizes_chosen;
    const char *model;
    /* nccl-tests' */
    uint64_t least, most, factor, step, warmups, verify;
    uint64_t gpus, threads;
    const char *blocking, *elsewhere; /* read by nccl_tests_refuse() alone */
};

/* ---- What nccl-tests' options mean here (its src/common.cu) ---- */

/* Its names of values: as the hook `expand` of an option. */
bool nccl_tests_types(const char *word, char *list, size_t len);
bool nccl_tests_sums(const char *word, char *list, size_t len);
bool nccl_tests_roots(const char *word, char *list, size_t len);
bool nccl_tests_registers(const char *word, char *list, size_t len);
/* Set, from its options, those that were not given: 0 or an error of opts_set(). */
int nccl_tests_ranks(struct opts *o); /* -g, -t, --per-process: ranks and processes of NCCL's */
int nccl_tests_sizes(struct opts *o); /* -b, -e, -f, -i */
int nccl_tests_iterations(struct opts *o); /* -n, -z: of NCCL alone */
/* Does it ask for something that is not done here? Then with a sentence that says what to do. */
bool nccl_tests_refuse(const struct opts *o, char *why, size_t len);

/* The point that these parameters mean for n members: -EOPNOTSUPP with the reason where it cannot
 * be. Also the calls, of which there are *n_calls. */
int collective_point_of(struct point *pt, unsigned n, struct collective_point *c,
                        struct collective_call *calls, unsigned *n_calls);

/* options.c: the table, and the hook `defaults` of struct bench. */
extern const struct opt allreduce_options[];
int allreduce_defaults(struct opts *o);

/* What each member spent since the warm-up. */
struct collective_member {
    double ns, waited_ns, blocked_ns, slack_ns, cpu_ns, reading_ns;
    uint64_t late; /* samples in which it was the late one */
};

/* The same of a machine's members: from the first one's begin to the last one's end, by the clock
 * that they share. No more CPU time than that fits into one CPU. */
struct collective_machine {
    double cpu_ns, span_ns;
    uint64_t begin_ns, end_ns; /* of the last sample */
};

#define OVERLAP_SAMPLES 2048

/* The operation and a matrix product that takes as long, each alone and both at once, since the
 * warm-up. */
struct collective_overlap {
    uint64_t wanted_ns; /* of the product */
    size_t n;
    double alone_ns[OVERLAP_SAMPLES], work_ns[OVERLAP_SAMPLES], both_ns[OVERLAP_SAMPLES];
};

struct collective_work { /* pt->bench_state: outlives the points */
    struct ranks ranks;  /* first: ranks_evidence() */

    struct collective_point point;
    struct collective_call calls[COLLECTIVE_CALLS_MAX];
    unsigned n_calls, n; /* n: processes */
    unsigned size;       /* ranks of the communicator: as many, or more by --per-process */
    unsigned members[WORLD_RANKS_MAX];
    uint64_t vector_bytes; /* of all calls */
    bool begun;
    uint64_t samples, operations; /* since the warm-up */
    struct collective_member each[WORLD_RANKS_MAX];
    unsigned machine[WORLD_RANKS_MAX], n_machines; /* of each member: place_machines() */
    struct collective_machine machines[WORLD_RANKS_MAX];
    bool clocks_differ; /* of ranks that are said to be on one machine */
    struct collective_overlap overlap;
    char limit_source[704];
    struct gpu_elsewhere gpus; /* of the ranks but 0 */
};

void rows_series(struct point *pt, struct collective_work *w);
/* What the machines of a communicator were busy with beyond their idle selves, added up; NAN: of
 * one it is not known. machine[member]: its machine's number. */
void rows_machines(const struct session_node *nodes, unsigned n, const unsigned *machine,
                   unsigned machines, double *busy, double *softirq);
/* Which member the others waited for, of one sample's times: the one that was idle least, where
 * that is clearly less than half of them were; -1: none. */
int rows_late(const struct collective_times *times, unsigned n, uint64_t slowest);
/* A sample; rank 0 saw it take wall_ns. */
void rows_count(struct collective_work *w, const struct collective_times *times, uint64_t slowest,
                uint64_t wall_ns);
void rows_finish(struct point *pt,
                 struct collective_work *w); /* limits, figures, columns: after session_end() */
void rows_limit(struct point *pt, struct collective_work *w); /* of busbw: a part of it */

#endif
