/* SPDX-License-Identifier: Apache-2.0 */
/* One case on several GPUs of a run: whether one of them is slow, who failed, and whether all are
 * alike. Of what the host takes part in, the best over its nodes counts for each GPU. */
#ifndef PLUMB_REPORT_GPUS_H
#define PLUMB_REPORT_GPUS_H

#include "harness/report/comparisons.h"

#define GPUS_MARGIN 0.05 /* those of one model differ less */

struct gpus {
    size_t n;           /* GPUs that have a value */
    size_t all;         /* those that have none too; under 2: nothing to compare */
    size_t failed;      /* GPUs on which it failed, or gave wrong data; the others were skipped */
    const char *lost;   /* "cuda:5 failed, 2 skipped"; "" where all have a value */
    double best, worst; /* values */
    const struct report_case *worst_case;
    const char *worst_gpu;
    bool slow;       /* any, against the others */
    bool looks_slow; /* the worst */
    bool alike;      /* none differs from the others by what is worth a word */
};

void gpus_ask(struct report *r, struct comparisons *q);

/* Each GPU that does what this case does, at most `room` of them, after comparisons_decide(). Returns
 * how many. */
size_t gpus_likes(const struct comparisons *q, const struct report_bench *b, size_t run,
                  const struct report_case *c, struct like *out, size_t room);

/* Of the GPUs that do what this case does; after comparisons_decide(). */
struct gpus gpus_of(struct report *r, const struct comparisons *q, const struct report_bench *b,
                    size_t run, const struct report_case *c);

#endif
