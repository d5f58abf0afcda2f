/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of change points; used by change*.c alone. All values are logarithms. */
#ifndef PLUMB_HISTORY_CHANGE_PARTS_H
#define PLUMB_HISTORY_CHANGE_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/history/change.h"

#define CHANGE_WINDOW 60  /* values before a step that tell level and noise */
#define CHANGE_MEMORY 240 /* those that tell what noise can do: correlation, stray values */
#define CHANGE_LAGS   20
#define CHANGE_TAIL   20   /* values behind a step with which it can be told at the latest */
#define CHANGE_CLIP   2.5  /* values further out, in standard deviations, count as so far out */
#define CHANGE_SCALE  1e-6 /* the least noise that is believed: 1 in a million */

/* A piece of the series without a step. */
struct change_segment {
    size_t begin;
    double level; /* of its last CHANGE_WINDOW values */
};

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

/* Does a straight line through x, the level's values and k new ones, explain as much as the share of what the step
 * explains? Values count as they lie around the levels, clipped. */
bool change_is_slope(const struct change_noise *noise, const double *x, size_t k, double step,
                     double share);

/* The split of x[0..n) with at least `head` and `tail` values on its sides that has the largest energy
 * distance. */
size_t change_split(const double *x, size_t n, size_t head, size_t tail);

/* The smallest range of places that holds the step between two levels with 95 %: of x[0..n). */
void change_place(const double *x, size_t n, double before, double after, double sd, size_t *low,
                  size_t *high);

#endif
