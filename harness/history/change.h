/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Change points of a series of runs' values: where the level moved, and by how much. Pure
 * functions.
 *
 * The series is gone through in time order, as somebody would who looks at it after every run.
 * After each run the newest values are held against the level before them; where the test says that
 * the level moved, the place of the step is where the energy distance of the two sides is largest,
 * as in E-divisive (Matteson and James 2014, doi:10.1080/01621459.2013.849605). A level that is
 * left by a line is a slip. What was told once is never taken back: a series has as many points as
 * its beginning, told by the same values, and perhaps more, so that false alarms can be bounded per
 * run added. Whether a point is a step or a slip, where a slip runs, and all sizes are by all the
 * values that there are. The method and what it finds is in docs/history.md.
 */
#ifndef PLUMB_HISTORY_CHANGE_H
#define PLUMB_HISTORY_CHANGE_H

#include <stdbool.h>
#include <stddef.h>

enum change_kind { CHANGE_STEP, CHANGE_SLIP };

struct change_point {
    enum change_kind kind;
    size_t at;              /* index of the first value of the new level, or of the slip */
    size_t end;             /* of the last value of the slip; of a step: at */
    size_t seen;            /* index of the value with which it could be told: at + 2 or more */
    double before, after;   /* levels, in the unit of the values; after: at the end of the slip */
    double ratio;           /* after / before */
    double low, high;       /* interval of the ratio, 95 % */
    size_t at_low, at_high; /* it may begin anywhere between these, with 95 % */
    double p;               /* of the change, allowing for the search */
    /* Of a slip alone: */
    bool goes_on; /* it may run on still: its end is the last value before the next change */
    double a_run; /* ratio from value to value */
    double a_run_low, a_run_high; /* its interval, 95 % */
};

struct change_options {
    double level;      /* false alarms per case and run added; 0: CHANGE_LEVEL */
    double least;      /* steps smaller than this are not told: 0.01; 0: CHANGE_LEAST */
    double least_slip; /* slips that do not surely lose or gain more: 0.02; 0: CHANGE_LEAST_SLIP */
};

#define CHANGE_LEVEL      2.5e-5 /* under 1 a year of nightly runs for 100 cases: 1 / (365 * 100) */
#define CHANGE_LEAST      0.005
#define CHANGE_LEAST_SLIP 0.02
#define CHANGE_SHORT      3 /* values of the new level before a step can be told */
#define CHANGE_FIRST      8 /* values before the first step can be told */

/* n values above 0 in time order (NaN: a run without this case, left out). *points is the caller's
 * to free, in order; NULL where there are none. 0, -EINVAL (an option out of range), -EDOM (a value
 * is 0, below, or infinite), -ENOMEM. */
int change_points(const double *values, size_t n, const struct change_options *options,
                  struct change_point **points, size_t *n_points);

#endif
