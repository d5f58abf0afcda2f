/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kinds of noise, and the suites of launches that are made with them.
 *
 * A suite has SUITE_CASES cases. One launch is SUITE_SAMPLES samples around the launch's own level;
 * what is kept of it is their median, as a row has it. All in logarithms, higher is better: noise of
 * real machines makes slower, and so points down where it is skewed.
 */
#ifndef PLUMB_SELFTEST_NOISE_H
#define PLUMB_SELFTEST_NOISE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/rng.h"

#define SUITE_CASES    50
#define SUITE_SAMPLES  100
#define SUITE_LAUNCHES 5 /* at most, a run */
#define SUITE_RUNS     5 /* at most, a side */

#define FAST_AT        0.95 /* of samples as they are here: higher is better */
#define SPREAD         0.01 /* between launches */
#define SAMPLES_SPREAD 0.03 /* between a launch's samples */

struct replay; /* recorded samples: replay.h */

/* One run of one case: launches in time order, each with its samples. */
struct run_samples {
    double samples[SUITE_LAUNCHES][SUITE_SAMPLES];
};

/* What is kept of one side of a case: of each launch the median, as values and not logarithms, and the quantile FAST_AT. */
struct side_values {
    double values[SUITE_RUNS][SUITE_LAUNCHES], fast[SUITE_RUNS][SUITE_LAUNCHES];
};

struct noise {
    const char *name;
    /* Fills in one run of one case: samples, not medians. */
    void (*draw)(struct rng *r, const struct replay *replay, size_t c, size_t launches,
                 struct run_samples *run);
    size_t runs_a; /* of the baseline; the other side has one, or in turn as many */
    size_t cases;  /* 0: SUITE_CASES */
    bool replayed; /* needs recorded samples */
    bool no_alarm; /* promised: check raises no alarm where nothing changed */
    bool compare;  /* the same of compare */
    bool found;    /* promised: 5 % is found, equivalence called (at 1 % spread, default repeats) */
    bool best;     /* check's baseline is the best of its runs (--best-of) */
    double taken; /* the share of launches that are left out for what other guests took (--steal) */
    bool big;     /* promised: a loss of BIG_LOSS is found */
    /* Launch l of run i of both sides stood next to each other: what the moments of a pair of runs were, which both
     * have on top. NULL: not in turn. */
    void (*moments)(struct rng *r, size_t launches, double *levels);
};

extern const struct noise noises[]; /* ends with a NULL name */

/* One side of a case. */
void noise_side(const struct noise *noise, struct rng *r, const struct replay *replay, size_t c,
                size_t runs, size_t launches, struct side_values *side);

/* Both sides of a case that were measured in turn. */
void noise_in_turn(const struct noise *noise, struct rng *r, size_t c, size_t launches,
                   struct side_values *a, struct side_values *b);

/* Gaussian launches of any spread, as medians alone: for the table of smallest losses. */
void noise_gaussian(struct rng *r, double spread, double *medians, size_t n);

#endif
