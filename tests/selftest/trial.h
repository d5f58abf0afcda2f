/* SPDX-License-Identifier: Apache-2.0 */
/* Many suites of one kind of noise, decided by this suite's method and by two plainer ones. */
#ifndef PLUMB_SELFTEST_TRIAL_H
#define PLUMB_SELFTEST_TRIAL_H

#include "tests/selftest/noise.h"

#define TRUE_LOSS      0.05 /* in one case of the suites that have one */
#define BIG_LOSS       0.30 /* the same, where noise.big */
#define CHECK_MARGIN   0.02
#define COMPARE_MARGIN 0.05
#define RIVAL_LEVEL    0.01 /* what is promised of a suite */

/* By runs: check's method, where what was measured in turn is not known to have been. */
enum method {
    METHOD_CHECK,
    METHOD_COMPARE,
    METHOD_WELCH,
    METHOD_BOOTSTRAP,
    METHOD_BY_RUNS,
    METHODS
};

struct tally {
    size_t alarms;          /* suites in which nothing changed, and a case was named */
    size_t found;           /* suites with a true loss that was named */
    size_t others;          /* of these, suites in which another case was named */
    size_t equivalent;      /* unchanged cases called equivalent within COMPARE_MARGIN */
    size_t loss_equivalent; /* cases with the true loss called so */
    size_t big;             /* suites with a loss of BIG_LOSS that was named; of check alone */
};

struct trial {
    const struct noise *noise;
    size_t launches, suites, cases;
    size_t
        rival_suites; /* the first so many are judged by the plainer methods, too: the two, or by runs what
                            was measured in turn */
    struct tally by[METHODS];
};

/* Runs t->suites suites. Aborts where memory is short. */
void trial_run(struct trial *t, const struct replay *replay, uint64_t seed);

/* The smallest loss that check's view says it would have shown, Gaussian launches: mean over suites.
 * *found: the share of such losses that it then does prove. */
double trial_smallest(double spread, size_t launches, size_t suites, uint64_t seed, double *found);

#endif
