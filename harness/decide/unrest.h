/* SPDX-License-Identifier: Apache-2.0 */
/* What a suite as a whole says of its runs, and what judging takes from it: see decide.h for the
 * method. All in logarithms. */
#ifndef PLUMB_DECIDE_UNREST_H
#define PLUMB_DECIDE_UNREST_H

#include "harness/decide/spread.h"

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

/* How far each run of A is from its block's mean, as one run scatters; NaN: not known. */
void deviations(const struct decide_case *c, bool in_order, struct run_mean *means, double *out);

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

/* Student's t quantile, remembering the last few asked: cases of a suite have mostly the same df.
 */
#define QUANTILES 16
struct quantiles {
    double p[QUANTILES], df[QUANTILES], t[QUANTILES];
    size_t next;
};
double quantile(struct quantiles *q, double p, double df);

/* A suite while it is decided. */
struct work {
    size_t n, n_runs;  /* cases; runs of A, the most that a case has */
    struct measure *m; /* one a case, all of them */
    struct known *known;
    size_t *judged; /* the judge.n_judged cases that have a value and a spread */
    bool in_order;  /* A's runs are in time order */
    struct prior launches, runs;
    struct judge judge;
    /* scratch */
    double *x, *y; /* one a case */
    bool *proven;
    struct change *changes;
    struct run_mean *means; /* one a run of a side */
    double *off;            /* n_runs a case: deviations() */
    double *chance;         /* 2 (n_runs + 1) a case */
};

/* What the suite as a whole says of its runs: sets unrest, sways and tails of the judge, and what
 * overall says of them. */
void ask_suite(struct work *w, const struct decide_case *cases, struct decide_overall *overall);

double anchor_error(const struct measure *m, const struct known *k);

#endif
