/* SPDX-License-Identifier: Apache-2.0 */
/* What the values of a series say of its noise and of a change in it (change_noise.c), and of a
 * slip (change_slip.c): what the search for changes (change.c) stands on. All values are
 * logarithms. */
#ifndef PLUMB_HISTORY_CHANGE_NOISE_H
#define PLUMB_HISTORY_CHANGE_NOISE_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/history/change.h"

#define CHANGE_WINDOW 60  /* values before a step that tell level and noise */
#define CHANGE_MEMORY 240 /* those that tell what noise can do: correlation, stray values */
#define CHANGE_LAGS   20
#define CHANGE_TAIL   20   /* values behind a step with which it can be told at the latest */
#define CHANGE_CLIP   2.5  /* values further out, in standard deviations, count as so far out */
#define CHANGE_SCALE  1e-6 /* the least noise that is believed: 1 in a million */

#define CHANGE_CONFIDENCE 0.95
#define CHANGE_REACH      730 /* values that a slip is told by at most */
#define CHANGE_SLIP_SHORT 5   /* values of a slip before it can be told */
#define CHANGE_SLIP_FIRST 16  /* values in which one can be told */

/* A piece of the series that begins with a change. */
struct change_segment {
    size_t begin;
    double level; /* of its last CHANGE_WINDOW values */
    bool up;      /* the change that it begins with */
};

/* x[at..end) lie on a line, and the values after them on the level that it leads to: there they are
 * moved. */
void change_straighten(double *x, size_t at, size_t end, double slope);

/* What the values before a place say of the noise there. */
struct change_noise {
    double level;               /* of the segment that the place would end */
    size_t n_level;             /* values that it is of */
    double sd;                  /* of one value, of its bulk */
    double freedom;             /* degrees of freedom of sd; 0: too few values for any test */
    double growth[CHANGE_TAIL]; /* [k - 1]: what the variance of a mean of k is, times sd^2 / k */
    double rest[CHANGE_MEMORY]; /* distances from the level, in time order, not clipped */
    size_t n_rest;
};

void change_sort(double *x, size_t n);

/* How much correlation makes a mean of many values less sure: its variance is so many times that of
 * independent ones. */
double change_growth(const double *rest, size_t n);

/* The noise before place `at`. The last segment holds the place; earlier ones lend their distances
 * from their own levels, so that a new level need not learn the noise anew. */
void change_noise_at(const double *x, size_t at, const struct change_segment *segments, size_t n,
                     struct change_noise *noise);

/* The mean of n ascending values, each no further from their median than `reach`. */
double change_mean(const double *sorted, size_t n, double reach);
/* The level of n values in any order, n <= CHANGE_WINDOW. */
double change_level(const double *x, size_t n);

/* The standard error of the difference of a mean of k values and the level. */
double change_error(const struct change_noise *noise, size_t k);

/* Could so many values, so far up or down, come from the distances seen before, in any order? The
 * probability, from the cut between old and new level that speaks most against it. */
double change_chance(const struct change_noise *noise, const double *sorted, size_t k);

/* Does a straight line through x, the level's values and k new ones, explain as much as the share
 * of what the step explains? Values count as they lie around the levels, clipped. */
bool change_is_slope(const struct change_noise *noise, const double *x, size_t k, double step,
                     double share);

/* A level up to value `before`, a line to value `end`, and a level from there on. */
struct change_ramp {
    size_t before, end;
    double level, total; /* the first level; from there to the second */
    double left;         /* the sum of squares that it does not explain */
    double spread;       /* the variance of total is that of a value over this */
};

/* What else explains the values, with 95 %. */
struct change_ramp_range {
    double low, high;         /* of total */
    double run_low, run_high; /* of total from value to value */
    size_t before_low, before_high;
    bool goes_on; /* the line may run to the last value */
    bool is_step; /* a step explains them as well */
};

/* The ramp that explains n <= CHANGE_REACH values best, its `before` at most b_most; where it may
 * run to the last value it does. A step that explains them as well takes its place, if it has
 * `head` values before it. */
void change_ramp_fit(const double *x, size_t n, size_t head, size_t b_most,
                     struct change_ramp *ramp, struct change_ramp_range *range);

/* Of values of which those far from their neighbours count as so far out: sums, of the first i, of
 * what they are above the first, and of that times the index. */
struct change_sums {
    size_t n;
    double first, square, plain[CHANGE_REACH + 1], indexed[CHANGE_REACH + 1];
};

/* A level that is left by a line, which runs to the newest value. */
struct change_slip {
    struct change_ramp line;
    double variance;       /* of a value, as it counts in a mean of many */
    double error, freedom; /* of line.total */
    struct change_sums sums;
};

/* At a glance: did the newest values leave the first by so much? */
bool change_slip_may_be(const double *x, size_t n, double least);
/* The slip that explains x[0..n) best, CHANGE_SLIP_FIRST <= n <= CHANGE_REACH. */
void change_slip_fit(const double *x, size_t n, struct change_slip *slip);
/* What it explains more than the best step, in variances. */
double change_slip_over_step(const struct change_slip *slip);
/* How far apart the moving means of the level before it lay. */
double change_slip_past(const struct change_slip *slip);
/* Does a straight line explain x[0..n) but for so much of the sum of squares? 0, or how many of the
 * newest values lie on a level of their own. */
size_t change_slip_off(const double *x, size_t n, double least);

/* Fills the points, of which kind, at, seen and p are known, from the values around them. x is raw
 * where no slip is. */
void change_describe(const double *raw, double *x, size_t n, struct change_segment *segments,
                     size_t n_segments, struct change_point *points);

/* The split of x[0..n) with at least `head` and `tail` values on its sides that has the largest
 * energy distance. */
size_t change_split(const double *x, size_t n, size_t head, size_t tail);

#endif
