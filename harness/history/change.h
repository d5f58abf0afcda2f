/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Change points of a series of runs' values: where the level moved, and by how much. Pure functions.
 *
 * The series is gone through in time order, as somebody would who looks at it after every run. After
 * each run the newest values are held against the level before them; where the test says that the
 * level moved, the place of the step is where the energy distance of the two sides is largest, as
 * in E-divisive (Matteson and James 2014, doi:10.1080/01621459.2013.849605). What was told once is never
 * taken back: the points of a series are those of its beginning, and perhaps more, so that false
 * alarms can be bounded per run added. The method and what it finds is in docs/history.md.
 */
#ifndef PLUMB_HISTORY_CHANGE_H
#define PLUMB_HISTORY_CHANGE_H

#include <stddef.h>

struct change_point {
    size_t at;              /* index of the first value of the new level */
    size_t seen;            /* index of the value with which it could be told: at + 2 or more */
    double before, after;   /* levels, in the unit of the values */
    double ratio;           /* after / before */
    double low, high;       /* interval of the ratio, 95 % */
    size_t at_low, at_high; /* the step may lie anywhere between these, with 95 % */
    double p;               /* of the step, allowing for the search */
};

struct change_options {
    double level; /* false alarms per case and run added; 0: CHANGE_LEVEL */
    double least; /* steps smaller than this are not told: 0.01; 0: CHANGE_LEAST */
};

#define CHANGE_LEVEL 2.5e-5 /* under 1 a year of nightly runs for 100 cases: 1 / (365 * 100) */
#define CHANGE_LEAST 0.005
#define CHANGE_SHORT 3 /* values of the new level before a step can be told */
#define CHANGE_FIRST 8 /* values before the first step can be told */

/* n values above 0 in time order (NaN: a run without this case, left out). *points is the caller's to free,
 * in order; NULL where there are none. 0, -EINVAL (an option out of range), -EDOM (a value is 0,
 * below, or infinite), -ENOMEM. */
int change_points(const double *values, size_t n, const struct change_options *options,
                  struct change_point **points, size_t *n_points);

#endif
