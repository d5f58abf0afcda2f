/* SPDX-License-Identifier: Apache-2.0 */
/* What the benchmark `allreduce` is made of: its parameters, the names of their values, its
 * hooks. */
#ifndef PLUMB_BENCHES_ALLREDUCE_WORK_H
#define PLUMB_BENCHES_ALLREDUCE_WORK_H

#include "benches/allreduce/place.h"
#include "benches/allreduce/session.h"
#include "core/bench/bench.h"
#include "core/collective/collective.h"

enum collective_scaling {
    COLLECTIVE_WEAK,   /* the vector's size is that of every communicator */
    COLLECTIVE_STRONG, /* it is divided by the members: their number times it stays the same */
};

/* NULL-terminated, in the order of the enums. */
extern const char *const collective_fills[], *const collective_scalings[],
                                                 *const collective_injects[];

struct collective_params {
    /* who takes part */
    const char *leader, *listen, *secret_file;
    uint64_t np, rank, port, wait_ns;
    bool who;
    /* what is measured */
    int backend, transport, op, dtype, redop, fill, scaling, inject;
    uint64_t size, ranks, segment, gap_ns, bucket, iterations;
    bool in_place, overlap, no_cpu, sizes_chosen;
    const char *device, *algorithm, *model;
    /* nccl-tests' */
    uint64_t least, most, factor, step, warmups, verify;
    /* of transports */
    const char *congestion;
    uint64_t buffer_bytes, busy_poll_us, data_port, mtu;
    int gid_index, completion;
};

/* nccl-tests' names of types: float half bfloat16 double int32. As struct opt's `expand`. */
bool collective_type_words(const char *word, char *list, size_t len);

/* The point that these parameters mean for n members: -EOPNOTSUPP with the reason where it cannot
 * be. Also the calls, of which there are *n_calls. */
int collective_point_of(struct point *pt, unsigned n, struct collective_point *c,
                        struct collective_call *calls, unsigned *n_calls);

/* Hooks of struct bench. */
int collective_bench_defaults(struct opts *o);
int collective_bench_instead(struct opts *o, const struct bench_common *common,
                             const volatile int *cancel);
bool collective_bench_wanted(struct point *pt);
int collective_bench_open(struct point *ctx);
void collective_bench_close(struct point *ctx);
int collective_bench_setup(struct point *pt);
int collective_bench_begin(struct point *pt);
int collective_bench_sample(struct point *pt, uint64_t inner, uint64_t *ns);
int collective_bench_check(struct point *pt);
int collective_bench_evidence(struct point *pt);
void collective_bench_teardown(struct point *pt);
void collective_bench_backends(backend_say_fn *say, void *arg);

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
    struct world *world;
    struct session *session;
    struct meet_secret secret;
    bool has_secret;
    int unreachable; /* no world could be had: not tried again for each point */
    char why_unreachable[512];

    struct collective_point point;
    struct collective_call calls[COLLECTIVE_CALLS_MAX];
    unsigned n_calls, n;
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

/* This process' part, by options and environment. */
enum collective_group { COLLECTIVE_LOCAL, COLLECTIVE_SOCK, COLLECTIVE_MPI };
enum collective_group collective_group(const struct collective_params *p);
/* Rank 0: its world, made at the first call. 0, or -errno with error. */
int collective_world(struct collective_work *w, const struct collective_params *p,
                     const volatile int *cancel, char *error, size_t len);
/* Where this process is another rank: serves, and returns the exit status; -1: it is rank 0. */
int collective_serve(const struct collective_params *p, const volatile int *cancel);
/* --who: a line for each rank. Returns the exit status. */
int collective_who(const struct collective_params *p, const volatile int *cancel);
void collective_leave(struct collective_work *w);

/* Of the operation and the product at once. */
void work_overlap_figures(struct point *pt, const struct collective_work *w);

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
void rows_evidence(struct point *pt, struct collective_work *w);

#endif
