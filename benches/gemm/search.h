/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Choosing the fastest of several ways to do one thing. All are timed once; then those that were
 * near the best go on in rounds, forwards and backwards in turn and as often one way as the other,
 * so that a clock that drifts slows all of them alike; the lowest median wins. Number 0 is the one
 * to beat: another wins only by more than CONTEST_TIE.
 *
 * Pure: times come from the callbacks.
 *
 * The search for the shape of a matrix product with the highest rate. Squares first, 512 to 16384;
 * from the best of them uphill: m and n rounded to what the units can share evenly in tiles of 128
 * x 256, each side longer and shorter by 1024, doubled and halved, then by 512, 256 and 128. The
 * first neighbour that is faster is the next place to look round from.
 *
 * Pure: times come from the callbacks, and the same times give the same search.
 */
#ifndef PLUMB_BENCHES_GEMM_SEARCH_H
#define PLUMB_BENCHES_GEMM_SEARCH_H

#include <stddef.h>
#include <stdint.h>

#include "benches/gemm/matrix.h"

#define CONTEST_TIE        0.005
#define CONTEST_NEAR       0.10 /* slower than this by the first times: out */
#define CONTEST_MAX        64
#define CONTEST_ROUNDS     8 /* at most, the first one among them */
#define CONTEST_ROUNDS_MIN 4
#define CONTEST_FINAL      8 /* so many go on, at most, and number 0; fewer when time is short */

struct contest {
    unsigned n; /* at most CONTEST_MAX */
    /* 0; -EOPNOTSUPP: this one cannot, it drops out; any other -errno ends it. */
    int (*time)(void *arg, unsigned i, double *ns);
    uint64_t (*now_ns)(void *arg);
    void *arg;
    uint64_t budget_ns; /* no round is begun after it but the few that there must be */
};

struct contest_result {
    unsigned best, timed;
    /* How much more the best does in the same time than number 0: 0.03. 0 where it is number 0; NAN
     * where that one cannot. */
    double gap;
};

/* 0; -EOPNOTSUPP: none can; or -errno of time(). */
int contest_run(const struct contest *c, struct contest_result *out);

#define GEMM_SEARCH_GAIN     0.005 /* what counts as a gain */
#define GEMM_SEARCH_PATIENCE 24    /* shapes without one, after which it stops */
#define GEMM_SEARCH_PRODUCTS 8     /* products that a try may need */

struct gemm_search {
    /* Operations a ns of a shape. 0; -EOPNOTSUPP, -ENOMEM: it cannot be done, and is passed over;
     * any other -errno ends the search. */
    int (*rate)(void *arg, const struct gemm_shape *shape, double *operations_per_ns);
    uint64_t (*now_ns)(void *arg);
    void *arg;
    uint64_t budget_ns; /* no shape is begun after it, nor one that would take an eighth of it */
    uint64_t longest;   /* side */
    unsigned units;     /* that share a product; 0, 1: not known */
};

enum gemm_search_stop { GEMM_STOP_NO_GAIN, GEMM_STOP_BUDGET, GEMM_STOP_EXHAUSTED };

struct gemm_search_result {
    struct gemm_shape best; /* m 0: no shape could be done */
    double operations_per_ns;
    unsigned tried, refused, too_long;
    uint64_t elapsed_ns;
    enum gemm_search_stop stop;
};

int gemm_search_run(const struct gemm_search *s, struct gemm_search_result *out);

/* "the best of 57 shapes in 20.3 s; stopped: no gain over 0.5 % in the last 24". Returns text. */
const char *gemm_search_text(const struct gemm_search_result *r, char *text, size_t len);

#endif
