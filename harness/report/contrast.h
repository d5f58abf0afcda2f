/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cases that differ in one thing, side by side: random data and zeros, the library's own choice and
 * the best of its candidates, near and far host memory, one GPU alone and all at once. Which ones,
 * the benchmark says. And one case on several GPUs: whether one of them is behind the others.
 */
#ifndef PLUMB_REPORT_CONTRAST_H
#define PLUMB_REPORT_CONTRAST_H

#include "harness/report/model.h"
#include "harness/report/told.h"

struct contrast {
    const struct bench_contrast *rule;
    const struct report_bench *bench;
    size_t run;
    const struct report_case *base, *other; /* both were measured in the run */
    double change;                          /* of the other against the base: -0.23 */
    const char *sentence;
};

struct contrasts {
    struct contrast *all; /* by rule, then by run */
    size_t n;
};

/* Everything lives in the report's pool. 0 or -ENOMEM. */
int contrasts_make(struct report *r, struct contrasts *out);

/* The sentences on a case; "" where there is none. Of a rule that has none on it, the first one on
 * any other case of `among` (flags, one a case of the benchmark). */
const char *contrast_remarks(struct report *r, const struct contrasts *contrasts,
                             const struct report_bench *b, const bool *among,
                             const struct report_case *c, size_t run);

/* The same case on every GPU of a run; of what the host takes part in, the best over its nodes. */
struct contrast_gpus {
    size_t n;           /* GPUs that have a value */
    size_t all;         /* those that have none too; under 2: nothing to compare */
    size_t failed;      /* GPUs on which it failed, or gave wrong data; the others were skipped */
    const char *lost;   /* "cuda:5 failed, 2 skipped"; "" where all have a value */
    double best, worst; /* values */
    const struct report_case *worst_case;
    const char *worst_gpu;
    /* The worst lies more than SPREAD_BEHIND behind the middle one, wherever in their intervals the values are;
     * undecided: it does, but the intervals do not show it, or there are none. */
    bool behind, undecided;
    /* It does not, and is within SPREAD_ALIKE, or CONTRAST_SAME and no difference proven; and the intervals leave open no
     * more than CONTRAST_MARGIN. */
    bool alike;
};
#define SPREAD_BEHIND 0.05
#define SPREAD_ALIKE  0.005
struct contrast_gpus contrast_gpus(struct report *r, const struct report_bench *b, size_t run,
                                   const struct report_case *c);

#endif
