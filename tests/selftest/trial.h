/* SPDX-License-Identifier: Apache-2.0 */
/* Many suites of one kind of noise, as check and compare decide them. */
#ifndef PLUMB_SELFTEST_TRIAL_H
#define PLUMB_SELFTEST_TRIAL_H

#include "tests/selftest/noise.h"

#define TRUE_LOSS      0.05 /* in one case of the suites that have one */
#define BIG_LOSS       0.30 /* the same, where noise.big */
#define CHECK_MARGIN   0.02
#define COMPARE_MARGIN 0.05

enum method { METHOD_CHECK, METHOD_COMPARE, METHODS };

struct tally {
    size_t alarms; /* suites in which nothing changed, and a case was named */
    size_t found;  /* suites with a true loss that was named */
    size_t others; /* of these, suites in which another case was named */
    size_t
        equivalent; /* unchanged cases called equivalent within COMPARE_MARGIN; of compare alone */
    size_t loss_equivalent; /* cases with the true loss called so */
    size_t big;             /* suites with a loss of BIG_LOSS that was named; of check alone */
};

struct trial {
    const struct noise *noise;
    const struct replay *replay;
    size_t launches, cases;
    size_t suites; /* so far */
    struct rng rng;
    struct tally by[METHODS];
};

void trial_begin(struct trial *t, const struct noise *noise, const struct replay *replay,
                 size_t launches, uint64_t seed);
/* Aborts where memory is short. */
void trial_run(struct trial *t, size_t suites);

/* The smallest loss that check's view says it would have shown, Gaussian launches: mean over suites.
 * *found: the share of such losses that it then does prove. */
double trial_smallest(double spread, size_t launches, size_t suites, uint64_t seed, double *found);

#endif
