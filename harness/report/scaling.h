/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a collective grows with the number of ranks: rows of `time` and `busbw` that differ in the
 * columns `ranks` and `size`. docs/scaling.md has the method.
 *
 * A series is one choice of all other parameters in one run. Efficiency is busbw(n) / busbw(base).
 * The base is the smallest number of ranks from 2 on that has a value of the same size. Bus
 * bandwidth leaves out how many bytes a wire must carry, which grows with n by itself. So 1 is what
 * a network without any loss keeps, for weak scaling (each rank brings a vector of `size`) as for
 * strong (the vector is divided over the ranks). It is a comparison of the two (comparisons.h).
 *
 * The median of a point with two levels means nothing: the point is shown as two, and is in no
 * efficiency and in no fit.
 */
#ifndef PLUMB_REPORT_SCALING_H
#define PLUMB_REPORT_SCALING_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/report/comparisons.h"
#include "harness/report/model.h"

/*
 * The latency-bandwidth model of a collective: t = A(n) a + B(n) S b, where a is the time of a
 * message (us) and b that of a byte (us). The benchmark tells A and B (struct bench_terms). Pure
 * functions.
 *
 * a and b are fitted by least squares of ln(measured / model), so that a message of 8 bytes counts
 * as much as one of 1 GiB, and a point that is 5 times the model as much as one that is a fifth of
 * it. Neither is below 0: where the best would be, it is 0 and the other is fitted alone.
 *
 * A fit is not believed where it does not describe its points: fit_describes(). Its intervals are
 * Student's t on those logarithms, which takes them for independent and of one width. Where all
 * points of one n, or of one size, lie on one side by more than chance explains, that is not so
 * (`group`): then there are no intervals, they are NaN. Beyond the n and S that were fitted neither
 * is proof of anything.
 */

#define FIT_DESCRIBES  0.25 /* of a fit's spread: beyond, the data does not have the model's shape */
#define FIT_POINT_MOST 1.5  /* times the model's time, or that part of it, for each single point */
#define FIT_GROUP_MOST 1.05 /* the same of the mean of a group, where it is more than chance */
#define FIT_POINTS_MIN 3    /* two unknowns, and one to say how far it is off */
/* 1 - r^2 of the two columns below which they do not tell a from b: one size and one n only, or
 * sizes so near that noise decides. */
#define FIT_TOLD_APART 1e-3

struct fit_point {
    double ranks, bytes, time_us; /* all above 0 */
};

struct fit_terms {
    double messages, bytes; /* A; B, a share of S */
    double bus;             /* the share that bus bandwidth counts */
};

/* The values of the three formulas. False: `of` is NULL, n is under 2, or a formula cannot be read
 * or is not above 0. */
bool fit_terms(const struct bench_terms *of, double ranks, struct fit_terms *terms);

struct fit_off {         /* how far off points are */
    size_t n;            /* how many; 0: none is meant */
    double ranks, bytes; /* that they have in common; 0: they do not */
    double ratio;        /* measured / model; the geometric mean of several */
};

struct fit {
    const struct bench_terms *terms;
    double a_us, b_us;      /* b of a byte */
    double low_us, high_us; /* 95 % of a, by Student's t; not below 0 */
    double b_low_us, b_high_us;
    double spread;             /* standard deviation of the logarithms: 0.05 is 5 % */
    double inverse[2][2];      /* of the normal equations */
    size_t n;                  /* points */
    bool without_a, without_b; /* the best fit would be below 0: taken as 0 */
    struct fit_off farthest;   /* the point that is */
    struct fit_off group;      /* that is off by more than chance; n 0: there is none */
};

/* Points for which `take` is false are left out (NULL: all are taken). 0; -ENODATA: there are fewer
 * than FIT_POINTS_MIN; -EDOM: they do not determine a and b; -EOPNOTSUPP: no terms are known. */
int fit_make(const struct bench_terms *terms, const struct fit_point *points, size_t n,
             bool (*take)(const struct fit_point *p, const void *arg), const void *arg,
             struct fit *fit);

/* Else nothing may be drawn or predicted by it: its spread is beyond FIT_DESCRIBES, or the farthest
 * point beyond FIT_POINT_MOST. */
bool fit_describes(const struct fit *fit);

struct fit_prediction {
    double time_us;
    double low_us,
        high_us; /* 95 % of one more measurement; NaN: points are off by more than chance */
};

/* NaN where no terms are known. */
struct fit_prediction fit_predict(const struct fit *fit, double ranks, double bytes);

struct scaling_cell {
    const struct report_case *time, *bus; /* NULL: none */
    /* What its bus bandwidth is held against: a number of ranks; its own: it is the first over several
     * nodes, which what lies in one node is no base of. NaN: nothing, or it has two levels */
    double base;
    size_t asked;                        /* number of that comparison */
    const struct comparison *efficiency; /* that, of scalings_judge(); NULL: there is none */
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
    struct scaling_cell *cells;      /* [size * n_ranks + ranks] */
    size_t n_two;                    /* points with two levels */
    const struct bench_terms *terms; /* NULL: none are told */
    struct fit fit;
    int fit_error; /* of fit_make() */
};

struct scalings {
    struct scaling_series *all;
    size_t n, left_out;
};

/* Series of `least` numbers of ranks and more; 1: those without a curve, too. Everything lives in the
 * report's pool. */
void scalings_make(struct report *r, size_t least, struct scalings *out);
void scalings_ask(struct comparisons *q, struct scalings *all);
void scalings_judge(const struct comparisons *q, struct scalings *all);

/* Us; NaN: no value. Also of what lies on two levels: the median. */
double scaling_time_us(const struct report_case *c, size_t run);
double scaling_bytes(const struct report_bench *b, const struct report_case *c); /* the vector's */

/* Us, of the bytes alone on wires that carry `limit` GB/s each; NaN where the terms are not
 * known. */
double scaling_ideal_us(const struct scaling_series *s, const struct scaling_cell *cell,
                        double ranks);

/* "21.3 us a message (20.9 to 21.7), 1.19 GB/s ...", and the point that is farthest off; or why
 * there is none. */
const char *scaling_fit_text(struct report *r, const struct scaling_series *s);

/* Why a bus bandwidth is above its limit, as far as the row's columns explain it; "" where it is
 * not above. *explained: false: nothing does. */
const char *scaling_above_text(struct report *r, const struct report_bench *b,
                               const struct report_case *c, size_t run, bool *explained);

/* "efficiency from 2 to 8 ranks: 0.97 (0.96 to 0.98)" of the series that holds the case at its
 * size; "" where there is none. */
const char *scaling_remark(struct report *r, const struct scalings *all,
                           const struct report_case *c, size_t run);

/* Stragglers: the figures late_share and waited_share of each rank, over all cases of a run.
 * late_share is the share of samples in which this rank was the one that the others waited for.
 * Where the column per_process is above 1, the column `rank` has the number of a process, which has
 * so many ranks: it is late or not with all of them, and the processes are what is counted. */

/* Is a rank that is late in so many percent of the samples of so many ranks more than chance? Over
 * half; of two ranks, one of which is always late, over three quarters. Pure. */
bool straggler_is_late(double late_percent, double ranks);

/* By chance alone any of a case's ranks is as likely the late one, and only one is. That this rank
 * is late in so many of n cases or more, with these numbers of ranks, has this probability then. It
 * takes the cases for independent, which those of one launch need not be. odds: scratch, n + 1.
 * Pure. */
double straggler_chance(const double *ranks, size_t n, size_t late, double *odds);

struct straggler {
    const struct report_bench *bench;
    size_t run;
    const char *rank, *host, *each; /* each: per_process */
    const char *name;               /* "3"; of a process of several ranks "1 (ranks 4 to 7)" */
    bool is_process;                /* of several ranks */
    size_t cases, late;             /* with a value; in which it was late by the rule above */
    double median, most;            /* late_share, percent: over the cases, and in the worst */
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

/* Everything lives in the report's pool. */
void stragglers_make(struct report *r, struct stragglers *out);

/* "rank 3 (node2) is late: it came last in 83 % of the samples (median of 6 cases)", and what held
 * its GPU back where most others' were not; "process 1 (ranks 4 to 7) on node2 is late: ..."; "" where none of that run is by more than chance. */
const char *stragglers_text(struct report *r, const struct stragglers *all,
                            const struct report_bench *b, size_t run);

/* Plots of the section on scaling: time and bus bandwidth over ranks, of up to three sizes, with
 * every backend and transport in one plot, the ideal and the fitted model beside; and a model's
 * gradients over the size of a bucket. */

struct headlines;
struct figures;

/* Adds them to *figures, at most SCALING_PLOTS_MAX; its note names what had no room. Everything
 * lives in the report's pool. */
void scaling_figures(struct report *r, const struct headlines *h, struct figures *figures);

#endif
