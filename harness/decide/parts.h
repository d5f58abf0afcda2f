/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share: see decide.h for the method. All in logarithms. */
#ifndef PLUMB_HARNESS_DECIDE_PARTS_H
#define PLUMB_HARNESS_DECIDE_PARTS_H

#include "harness/decide/decide.h"

/* Values are written with 9 digits: launches that agree to the last one have this variance, not 0. */
#define VARIANCE_LEAST 1e-18

/* What the launches of one case say. */
struct measure {
    double a, b; /* the sides' means */
    double d;    /* the change: b - a, turned round where lower is better */
    bool by_runs;
    bool best; /* A's mean is that of the best of its runs alone */
    bool
        paired; /* what varies are differences of launches, or of runs, that stood next to each other */
    size_t units_a, units_b;  /* what varies: launches, or runs */
    double within, within_df; /* variance of launches within runs, over both sides; df 0: unknown */
    double between, between_df; /* the same of runs' means; df 0: no side has several runs */
    double inverse_launches; /* mean of 1 / launches over the runs: within * this is what launches
                                   alone make runs' means differ by */
    /* Distance of the outermost launches of a run; in pairs, of the outermost changes from launch to launch, or of
     * several pairs of runs from run to run. */
    double widest;
    /* Launches on a side of one run; runs, of several in pairs; SIZE_MAX: both sides have several runs, and no pairs. */
    size_t fewest;
};

/* Sums up a case; the obstacle says why nothing can be told. */
enum decide_obstacle spread_measure(const struct decide_case *c, struct measure *m);

/* Variances of many cases scatter as `variance` times F(df, freedom). */
struct prior {
    double freedom; /* 0: none */
    double variance;
    double
        most; /* degrees of freedom that the cases' variances have together: no case is known better */
};

/* Fits the prior to n variances with df degrees of freedom each; none where there are too few.
 * 0 or -ENOMEM. */
int prior_fit(const double *variances, const double *df, size_t n, struct prior *out);

/* The variance moderated, and its degrees of freedom in *df. */
double prior_moderate(const struct prior *prior, double variance, double *df);

/*
 * Where too few cases have several runs for a fit of these: each has, beside its own spread between runs, what the
 * others' differ by more than their launches alone make them, times its own launches'. That counts FEW_SHARE of the
 * degrees of freedom that the others have together, and FEW_FREEDOM at most: all of them would be too bold where one
 * case's runs differ more than the others', or where what runs differ by is the same in all cases, and so few cases
 * cannot tell. Changes between and between_df of the n judged, but not of pairs; ratios: scratch.
 */
#define FEW_SHARE   0.5
#define FEW_FREEDOM 1.25
void few_share(struct measure *m, const size_t *judged, size_t n, const struct prior *launches,
               double *ratios);

/* Holm's step-down: sets proven[i] for the p[i] that stand at `level`. 0 or -ENOMEM. */
int holm(const double *p, size_t n, double level, bool *proven);

/* What is the same for all cases of a suite. */
struct judge {
    double alarm_level, confidence;
    double widest;   /* of all cases */
    double unrest;   /* 1 or more */
    double most_df;  /* where unrest is above 1 */
    size_t n_judged; /* Holm's first step is alarm_level / n_judged */
    bool b_stays;    /* as in struct decide_options */
};

/* The spread of n absolute values that would be a normal's; 0 where half of them are 0. Of normal values
 * it is known as well as 0.8 n values would tell; of cases that are not alike, less: UNREST_FREEDOM. */
#define UNREST_FREEDOM 0.5
double unrest_scale(const double *z, size_t n);

/* What is known of one case's change, and how it would be with more units a side, or of A alone (grows_a()). */
struct known {
    double variance, df; /* of a unit */
    double error, freedom;
};
void known_with(const struct judge *j, const struct measure *m, const struct known *now,
                size_t more, struct known *out);

bool grows_a(const struct judge *j, const struct measure *m);
bool is_few(const struct judge *j, const struct measure *m, size_t more);
bool is_equivalent(const struct judge *j, double d, double margin, const struct known *k);

/* Student's t quantile, remembering the last few asked: cases of a suite have mostly the same df. */
#define QUANTILES 16
struct quantiles {
    double p[QUANTILES], df[QUANTILES], t[QUANTILES];
    size_t next;
};
double quantile(struct quantiles *q, double p, double df);

/* Fills in smallest and more_launches of a decided case. */
void power_fill(const struct judge *j, const struct measure *m, const struct known *k,
                struct quantiles *q, struct decide_case *c);

#endif
