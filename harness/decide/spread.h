/* SPDX-License-Identifier: Apache-2.0 */
/* From the launches of a case to its change and to what is seen to vary; how these spreads scatter
 * over a suite. See decide.h for the method. All in logarithms. */
#ifndef PLUMB_DECIDE_SPREAD_H
#define PLUMB_DECIDE_SPREAD_H

#include "harness/decide/decide.h"

/* What the launches of one case say. */
struct measure {
    double a, b;     /* the sides' means */
    double d;        /* the change: b - a, turned round where lower is better */
    double anchor_d; /* the same against the anchors; NaN: there are none */
    double level_d;  /* and against the mean of A's runs, where d is against the best of them */
    size_t level_units;
    size_t anchors;
    double
        unbalance; /* 1 or more: what orders that are not as frequent take from a mean's certainty */
    bool by_runs;
    bool best; /* A's mean is that of the best of its runs alone */
    bool
        paired; /* what varies are differences of launches, or of runs, that stood next to each other */
    size_t units_a, units_b;  /* what varies: launches, or runs */
    double within, within_df; /* variance of launches within runs, over both sides; df 0: unknown */
    double between, between_df; /* the same of runs' means; df 0: no side has several runs */
    double inverse_launches; /* mean of 1 / launches over the runs: within * this is what launches
                                   alone make runs' means differ by */
    /* Distance of the outermost launches of a run; in pairs, of the outermost changes from launch
     * to launch, or of several pairs of runs from run to run. */
    double widest;
    /* Launches on a side of one run; runs, of several in pairs; SIZE_MAX: both sides have several
     * runs, and no pairs. */
    size_t fewest;
};

/* A run as one value of its case, and runs that tell how they differ: SPREAD_BLOCK of them at most,
 * so that what slips slowly is little in it, and none beyond a break. */
#define SPREAD_BLOCK 6
#define ORDER_LEAST  3 /* launches in turn from which on who went first is taken out */
struct run_mean {
    double mean;
    bool breaks;
};
struct block {
    size_t n;
    double mean, squares;
};

/* The runs that have a value; means has room for side->n. Returns how many. */
size_t spread_means(const struct decide_side *side, struct run_mean *means);
/* The block that begins at `from`; returns its end. in_order: runs are in time order, else all are
 * one. */
size_t spread_block(const struct run_mean *means, size_t n, size_t from, bool in_order,
                    struct block *b);

/* Sums up a case; the obstacle says why nothing can be told. means: scratch, for all runs of a
 * side. */
enum decide_obstacle spread_measure(const struct decide_case *c, bool in_order,
                                    struct run_mean *means, struct measure *m);

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
 * Where too few cases have several runs for a fit of these: each has, beside its own spread between
 * runs, what the others' differ by more than their launches alone make them, times its own
 * launches'. That counts FEW_SHARE of the degrees of freedom that the others have together, and
 * FEW_FREEDOM at most: all of them would be too bold where one case's runs differ more than the
 * others', or where what runs differ by is the same in all cases, and so few cases cannot tell.
 * Changes between and between_df of the n judged, but not of pairs; ratios: scratch.
 */
#define FEW_SHARE   0.5
#define FEW_FREEDOM 1.25
void few_share(struct measure *m, const size_t *judged, size_t n, const struct prior *launches,
               double *ratios);

#endif
