/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a collective grows with the number of ranks: rows of `time` and `busbw` that differ in the column `ranks`, and in `size`. What the report makes of
 * them is told in docs/scaling.md.
 *
 * A series is one choice of all other parameters in one run. Efficiency is busbw(n) / busbw(base), base being the smallest number of ranks from 2 on that
 * has a value of the same size: bus bandwidth leaves out how many bytes a wire must carry, which grows with n by itself, so that 1 is what a network
 * without any loss keeps, for weak scaling (each rank brings a vector of `size`) as for strong (the vector is divided over the ranks). Its interval
 * is MOVER's (Zou and Donner, 2008) for the ratio of two independent medians, on their logarithms.
 *
 * A point with two levels has no median that means anything: it is shown as two, and is in no efficiency and in no fit.
 */
#ifndef PLUMB_REPORT_SCALING_H
#define PLUMB_REPORT_SCALING_H

#include "harness/report/fit.h"
#include "harness/report/model.h"

#define SCALING_SERIES_MAX 64

struct scaling_cell {
    const struct report_case *time, *bus; /* NULL: none */
};

struct scaling_ratio {
    double value, low, high; /* NaN: unknown */
};

/* Of x / y, each with its interval. Pure. */
struct scaling_ratio scaling_ratio(double x, double x_low, double x_high, double y, double y_low,
                                   double y_high);

/* The largest number of ranks, predicted from the smaller ones: predicted / measured. */
struct scaling_forecast {
    size_t n;                  /* sizes that it could be held against; 0: none */
    size_t inside;             /* of which what was measured lies in the prediction's interval */
    struct scaling_ratio at;   /* at the largest of them, with that interval; NaN: it has none */
    double smallest, greatest; /* over all of them: a range, no interval */
    const char *from;          /* "2 and 4" */
    const char *size;          /* "64M": the largest */
};

struct scaling_series {
    const struct report_bench *bench;
    size_t run;
    const struct report_case *first; /* any of its cases, for what they share */
    const char *label;               /* "ring over tcp" */
    const char *title;               /* what else tells it apart: "op allreduce, dtype f32" */
    double *ranks, *sizes;           /* from 2 ranks on; each once, ascending */
    const char **size_texts;         /* "64K" */
    size_t n_ranks, n_sizes;
    struct scaling_cell *cells; /* [size * n_ranks + ranks] */
    size_t n_two;               /* points with two levels */
    struct fit fit;
    int fit_error; /* of fit_make() */
    struct scaling_forecast forecast;
};

struct scalings {
    struct scaling_series *all;
    size_t n, left_out;
};

/* Everything lives in the report's pool. 0 or -ENOMEM. */
int scalings_make(struct report *r, struct scalings *out);

/* Of one cell: NaN where it, or its base, has no value or two levels. *base: the ranks it is held against; its own: it is the first over several
 * nodes, which what lies in one node is no base of. */
struct scaling_ratio scaling_efficiency(const struct scaling_series *s, size_t size, size_t ranks,
                                        double *base);

/* "allreduce, f32, sum, fill node, scaling weak", and what else tells the case apart, without the parameters named: words with a blank between. */
const char *scaling_title(struct report *r, const struct report_bench *b,
                          const struct report_case *c, const char *left_out);

/* Us; NaN: no value. Also of what lies on two levels: the median. */
double scaling_time_us(const struct report_case *c, size_t run);
double scaling_bytes(const struct report_bench *b, const struct report_case *c); /* the vector's */

/* Us, of the bytes alone on wires that carry `limit` GB/s each; NaN where the terms are not known. */
double scaling_ideal_us(const struct scaling_series *s, const struct scaling_cell *cell,
                        double ranks);

/* "21.3 us a message (20.9 to 21.7), 1.19 GB/s ...", and the point that is farthest off; or why there is none. */
const char *scaling_fit_text(struct report *r, const struct scaling_series *s);
/* "8 ranks predicted from 2 and 4: 1.02 of measured at 64M (95 % interval 0.97 to 1.07) ..."; "" where there is no such forecast. */
const char *scaling_forecast_text(struct report *r, const struct scaling_series *s);

/* Why a bus bandwidth is above its limit, as far as the row's columns explain it; "" where it is not above. *explained: false: nothing does. */
const char *scaling_above_text(struct report *r, const struct report_bench *b,
                               const struct report_case *c, size_t run, bool *explained);

/* "efficiency from 2 to 8 ranks: 0.97 (0.96 to 0.98)" of the series that holds the case at its size; "" where there is none. */
const char *scaling_remark(struct report *r, const struct scalings *all,
                           const struct report_case *c, size_t run);

#endif
