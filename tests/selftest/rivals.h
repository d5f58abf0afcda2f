/* SPDX-License-Identifier: Apache-2.0 */
/* Two plainer methods on the same data, so that the choice is shown and not claimed. */
#ifndef PLUMB_SELFTEST_RIVALS_H
#define PLUMB_SELFTEST_RIVALS_H

#include "tests/selftest/noise.h"

struct rival_says {
    double ratio, low, high; /* as in struct decide_case, the interval with 95 % */
    double p;                /* one-sided, of no loss */
};

/* Welch's t on the logarithms of all launches' medians of each side. */
void rival_welch(const struct side_samples *a, const struct side_samples *b, size_t runs_a,
                 size_t launches, struct rival_says *says);

/* Two levels: launches, and within them samples, are drawn with replacement; the percentiles of
 * the change of the mean of their medians. The p is exact only where it could be below enough_p. */
#define BOOTSTRAP_DRAWS 10000
#define BOOTSTRAP_STEPS 4096
struct bootstrap {
    struct rng r;
    unsigned char places[BOOTSTRAP_STEPS]; /* of a drawn launch's median among its sorted samples */
};
void bootstrap_init(struct bootstrap *boot, uint64_t seed);
void rival_bootstrap(struct bootstrap *boot, const struct side_samples *a,
                     const struct side_samples *b, size_t runs_a, size_t launches, double enough_p,
                     struct rival_says *says);

/* Holm over the suite: a case named worse whose interval is not within the margin. */
void rival_judge(const struct rival_says *says, size_t n, double level, double margin, bool *worse);

#endif
