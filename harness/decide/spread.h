/* SPDX-License-Identifier: Apache-2.0 */
/* What decide.h stands on, for harness/decide/ alone: what is seen to vary, of a case (spread.c) and
 * of a suite as a whole (unrest.c). See decide.h for the method. All in logarithms. */
#ifndef PLUMB_DECIDE_SPREAD_H
#define PLUMB_DECIDE_SPREAD_H

#include "harness/decide/decide.h"

/* ---- A case: its change, and how spreads scatter over a suite (spread.c) ---- */

/* What the launches of one case say. */
struct measure {
    double a, b;     /* the sides' means */
    double d;        /* the change: b - a, turned round where lower is better */
    double anchor_d; /* the same against the anchors; NaN: there are none */
    double level_d;  /* and against the mean of A's runs, where d is against the best of them */
    size_t level_units;
    size_t anchors;
    /* 1 or more: what orders that are not as frequent take from a mean's certainty */
    double unbalance;
    bool by_runs;
    bool best; /* A's mean is that of the best of its runs alone */
    /* what varies are differences of launches, or of runs, that stood next to each other */
    bool paired;
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

size_t spread_runs(const struct decide_side *side); /* that have a value */
/* The block that begins at `from`; returns its end. in_order: runs are in time order, else all are
 * one. */
size_t spread_block(const struct run_mean *means, size_t n, size_t from, bool in_order,
                    struct block *b);

/* Sums up a case; the obstacle says why nothing can be told. means has room for all runs of either side, and gets A's
 * spread_runs(). */
enum decide_obstacle spread_measure(const struct decide_case *c, bool in_order,
                                    struct run_mean *means, struct measure *m);

/* Variances of many cases scatter as `variance` times F(df, freedom). */
struct prior {
    double freedom; /* 0: none */
    double variance;
    /* degrees of freedom that the cases' variances have together: no case is known better */
    double most;
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

/* ---- The suite as a whole, and what judging takes from it (unrest.c) ---- */

/* Holm's step-down: sets proven[i] for the p[i] that stand at `level`. 0 or -ENOMEM. */
int holm(const double *p, size_t n, double level, bool *proven);

/* How a p is to be read: below `edge`, which `share` of those had in which nothing changed, by
 * share (p / edge)^(1 / factor). */
struct tail {
    double share, edge, factor; /* edge 0: as it is */
};

/* What is the same for all cases of a suite. */
struct judge {
    double alarm_level, confidence;
    double widest;  /* of all cases */
    double unrest;  /* 1 or more: of one run a side */
    double most_df; /* that this is known with */
    bool runs_unknown;
    double sway, anchor_sway; /* 1 or more: of several runs, where all cases moved together */
    struct tail losses[2], gains[2]; /* the one that says more of a p holds */
    size_t n_judged;                 /* Holm's first step is alarm_level / n_judged */
    bool b_stays, unchanged;         /* as in struct decide_options */
    struct decide_later later;       /* the same */
};

/* What n changes scatter by around 0, times their errors; below 1: no more than these. */
struct change {
    double t, df;
};
double unrest_scale(const struct change *x, size_t n, double *scratch);

/* The smallest one in so many is the tail; by how much of its own error a factor is taken to be too
 * large; and how much more than what is left of it counts. */
struct tail_rule {
    size_t one_in;
    double dead, more;
};
void tail_fit(double *p, size_t n, const struct tail_rule *rule, struct tail *t);
double tail_read(const struct tail t[2], double p);
double tail_nominal(const struct tail t[2], double p); /* what is read as p */

/* How far each run of A is from its block's mean, as one run scatters; NaN: not known. means: by spread_measure(). */
void deviations(const struct decide_case *c, bool in_order, const struct run_mean *means,
                double *out);

/* What is known of one case's change, and how it would be with more units a side, or of A alone
 * (grows_a()). */
struct known {
    double variance, df; /* of a unit */
    double floor;        /* what launches alone make of the variance between runs; 0: by launches */
    double error, freedom;
    double normal_freedom; /* as if what runs differ by had no heavier tails than launches */
    bool down;             /* it lost beyond its own spread, whatever runs differ by */
};
void known_with(const struct judge *j, const struct measure *m, const struct known *now,
                size_t more, struct known *out);

/* A suite while it is decided. */
struct work {
    size_t n, n_runs;  /* cases; runs of A, the most that a case has */
    struct measure *m; /* one a case, all of them */
    struct known *known;
    size_t *judged;         /* the judge.n_judged cases that have a value and a spread */
    struct run_mean *means; /* most_runs a case: by spread_measure() */
    size_t most_runs;       /* of a side */
    bool in_order;          /* A's runs are in time order */
    struct prior launches, runs;
    struct judge judge;
    /* scratch */
    double *x, *y; /* one a case */
    bool *proven;
    struct change *changes;
    double *off;    /* n_runs a case: deviations() */
    double *chance; /* 4 (n_runs + 1) a case */
};

/* What the suite as a whole says of its runs: sets unrest, sways and tails of the judge, and what
 * overall says of them. */
void ask_suite(struct work *w, const struct decide_case *cases, struct decide_overall *overall);

double anchor_error(const struct measure *m, const struct known *k);

#endif
