/* SPDX-License-Identifier: Apache-2.0 */
/* One comparison: our rows beside a witness's, their ratio and its verdict. */
#ifndef PLUMB_CROSSCHECK_COMPARE_H
#define PLUMB_CROSSCHECK_COMPARE_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/crosscheck/witness.h"

/* ---- Verdicts ---- */

/*
 * From pairs of figures to a verdict. The ratio is ours / theirs, both in the same unit and
 * definition; its value is the median over the pairs, its interval that of core/stats.h (order
 * statistics, 95 %).
 *
 *   agree      the interval lies within 1 +/- the margin
 *   better     it excludes 1, and ours is the faster, or costs less
 *   worse      it excludes 1, and ours is the slower, or costs more
 *   undecided  neither: it holds 1, but reaches beyond the margin, or there are too few pairs
 */
enum verdict { VERDICT_AGREE, VERDICT_BETTER, VERDICT_WORSE, VERDICT_UNDECIDED };

struct judgement {
    size_t pairs;
    double ours, theirs;     /* medians */
    double ratio, low, high; /* low and high NaN: too few pairs */
    enum verdict verdict;
    const char *suspect; /* a mistake in a definition would give this very ratio; NULL: none */
    size_t pairs_wanted; /* undecided: about so many would decide; 0: not known */
};

#define JUDGE_CONFIDENCE 0.95
#define JUDGE_PAIRS_MIN  6 /* below there is no interval */

/* 0, -EINVAL (no pairs, or a figure that is not above 0), -ENOMEM. */
int judge(const double *ours, const double *theirs, size_t pairs, double margin,
          bool higher_is_better, struct judgement *j);

/* ---- Our own figure, out of the rows of one of our benchmarks, and how it was measured ---- */

struct ours {
    double value;
    char cpus[64]; /* the leader's > the peer's: "0>1"; "" where the benchmark has no such column */
    char detail[160]; /* what carried it: "lo bbr, MSS 65483" */
    char gid[8];      /* the index in RoCE's table; "" where there is none */
};

/* Reads the CSV of a run. 0; -EBADMSG: the rows are not those that were asked for; -EIO: they say
 * that it failed or is wrong; -EOPNOTSUPP: that it cannot run here. All with error. */
int ours_read(const struct witness *w, const char *csv, size_t size, struct ours *out, char *error,
              size_t len);

#endif
