/* SPDX-License-Identifier: Apache-2.0 */
/* What the benchmark `allreduce` is made of: its parameters, the names of their values, its hooks. */
#ifndef PLUMB_BENCHES_ALLREDUCE_WORK_H
#define PLUMB_BENCHES_ALLREDUCE_WORK_H

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

/* The point that these parameters mean for n members: -EOPNOTSUPP with the reason where it cannot be. Also the calls, of which there are *n_calls. */
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

/* Columns that are outcomes. */

#endif
