/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Choosing the fastest of several ways to do one thing. All are timed once; then those that were
 * near the best go on in rounds, forwards and backwards in turn and as often one way as the other,
 * so that a clock that drifts slows all of them alike; the lowest median wins. Number 0 is the one
 * to beat: another wins only by more than CONTEST_TIE.
 *
 * Pure: times come from the callbacks.
 */
#ifndef PLUMB_CORE_BLAS_CONTEST_H
#define PLUMB_CORE_BLAS_CONTEST_H

#include <stdint.h>

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

#endif
