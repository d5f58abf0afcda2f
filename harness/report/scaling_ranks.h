/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stragglers: the figures late_share and waited_share of each rank, over all cases of a run. late_share is the share of samples in which this rank was the one that
 * the others waited for.
 */
#ifndef PLUMB_REPORT_SCALING_RANKS_H
#define PLUMB_REPORT_SCALING_RANKS_H

#include "harness/report/model.h"

#define STRAGGLERS_MAX 4096 /* ranks */

/* Is a rank that is late in so many percent of the samples of so many ranks more than chance? Over half; of two ranks, one of which is always late,
 * over three quarters. Pure. */
bool straggler_is_late(double late_percent, double ranks);

/* By chance alone any of a case's ranks is as likely the late one, and only one is. That this rank is late in so many of n cases
 * or more, with these numbers of ranks, has this probability then. It takes the cases for independent, which those of one launch
 * need not be. odds: scratch, n + 1. Pure. */
double straggler_chance(const double *ranks, size_t n, size_t late, double *odds);
#define STRAGGLER_CHANCE 0.05 /* times all ranks that were looked at: beyond, none is named */

struct straggler {
    const struct report_bench *bench;
    size_t run;
    const char *rank, *host;
    size_t cases, late;  /* with a value; in which it was late by the rule above */
    double median, most; /* late_share, percent: over the cases, and in the worst */
    const struct report_case *worst;
    double waited;  /* median of waited_share, percent; NaN: not known */
    double chance;  /* of being late in so many cases, were it no other than the rest */
    bool seems_one; /* late in over half of its cases, which may be chance */
    bool is_one;    /* the same, by more than chance */
};

struct stragglers {
    struct straggler *all; /* by run, then by rank */
    size_t n;
};

/* Everything lives in the report's pool. 0 or -ENOMEM. */
int stragglers_make(struct report *r, struct stragglers *out);

/* "rank 3 (node2) is late: it came last in 83 % of the samples (median of 6 cases)"; "" where none of that run is by more than
 * chance. */
const char *stragglers_text(struct report *r, const struct stragglers *all,
                            const struct report_bench *b, size_t run);

#endif
