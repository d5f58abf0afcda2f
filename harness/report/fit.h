/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The latency-bandwidth model of a collective: t = A(n) a + B(n) S b, where a is the time of a message (us) and b that of a byte (us). What A and B
 * are follows from the algorithm and n: fit_terms(). Pure functions.
 *
 * a and b are fitted by least squares of ln(measured / model), so that a message of 8 bytes counts as much as one of 1 GiB, and a point that is 5
 * times the model as much as one that is a fifth of it. Neither is below 0: where the best would be, it is 0 and the other is fitted alone.
 *
 * A fit is not believed where it does not describe its points: fit_describes(). Its intervals are Student's t on those logarithms, which takes them
 * for independent and of one width. Where all points of one n, or of one size, lie on one side by more than chance explains, that is not so
 * (`group`): then there are no intervals, they are NaN. Beyond the n and S that were fitted neither is proof of anything.
 */
#ifndef PLUMB_REPORT_FIT_H
#define PLUMB_REPORT_FIT_H

#include <stdbool.h>
#include <stddef.h>

#define FIT_DESCRIBES  0.25 /* of a fit's spread: beyond, the data does not have the model's shape */
#define FIT_POINT_MOST 1.5  /* times the model's time, or that part of it, for each single point */
#define FIT_GROUP_MOST 1.05 /* the same of the mean of a group, where it is more than chance */
#define FIT_POINTS_MIN 3    /* two unknowns, and one to say how far it is off */
/* 1 - r^2 of the two columns below which they do not tell a from b: one size and one n only, or sizes so near that noise decides. */
#define FIT_TOLD_APART 1e-3

struct fit_point {
    double ranks, bytes, time_us; /* all above 0 */
};

struct fit_terms {
    double messages, bytes; /* A; B, a share of S */
};

/* op and algorithm as the benchmark's columns have them. Allreduce: "ring" 2 (n - 1), 2 (n - 1) / n; "halving" 2 log2 n, 2 (n - 1) / n; "doubling"
 * log2 n, log2 n; where n is no power of two, the last two are those of the power below it and two more messages of all S. Other algorithms have
 * the form of the ring. reduce-scatter and all-gather: half of allreduce's ring; all-to-all: n - 1, (n - 1) / n; send-receive: 1, 1. False: none is known
 * (broadcast: how it is divided decides), or n is under 2. */
bool fit_terms(const char *op, const char *algorithm, double ranks, struct fit_terms *terms);

struct fit_off {         /* how far off points are */
    size_t n;            /* how many; 0: none is meant */
    double ranks, bytes; /* that they have in common; 0: they do not */
    double ratio;        /* measured / model; the geometric mean of several */
};

struct fit {
    const char *op, *algorithm;
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

/* Points for which `take` is false are left out (NULL: all are taken). 0; -ENODATA: there are fewer than FIT_POINTS_MIN; -EDOM: they do not determine
 * a and b; -EOPNOTSUPP: no terms are known; -ENOMEM. */
int fit_make(const char *op, const char *algorithm, const struct fit_point *points, size_t n,
             bool (*take)(const struct fit_point *p, const void *arg), const void *arg,
             struct fit *fit);

/* Else nothing may be drawn or predicted by it: its spread is beyond FIT_DESCRIBES, or the farthest point beyond FIT_POINT_MOST. */
bool fit_describes(const struct fit *fit);

struct fit_prediction {
    double time_us;
    double low_us,
        high_us; /* 95 % of one more measurement; NaN: points are off by more than chance */
};

/* NaN where no terms are known. */
struct fit_prediction fit_predict(const struct fit *fit, double ranks, double bytes);

#endif
