/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The random-effects model under decide.h, for harness/decide/ alone: from the repetitions of a
 * suite to the variance components of each case. All in logarithms. The logarithm of a repetition's
 * median is
 *
 *   level + boot (variance boots) + run (variance v - w) + repetition (variance s; w = s / n)
 *
 * A component x of a case with df degrees of freedom is taken to scatter over the cases of the suite
 * as (add + times base) F(df, freedom) (Smyth 2004, doi:10.2202/1544-6115.1027, with a trend: base
 * is 1 for s, w for v, and v over a boot's runs for boots). Fitted by maximum likelihood, and
 *
 *   moderated = (freedom (add + times base) + df x) / (freedom + df),  freedom + df degrees
 */
#ifndef PLUMB_DECIDE_MODEL_H
#define PLUMB_DECIDE_MODEL_H

#include "harness/decide/decide.h"

struct variance {
    double value, df; /* df 0: not known */
};

struct prior {
    double add, times, freedom; /* freedom 0: none */
    double most; /* degrees of freedom that the cases have together: none is known better */
};

/* Fits it to n estimates (those of df 0 are left out) by maximum likelihood. alike: of all that are
 * within so much of the best in log likelihood, the one of most freedom is taken; below 0, the one
 * of least. lend: in a suite too small for a fit, where base is the
 * case's own, so many degrees of freedom are lent; 0: a few, by how many the others have; below: none. */
struct prior prior_fit(const struct variance *x, const double *base, size_t n, double alike,
                       double lend);
struct variance prior_moderate(const struct prior *p, struct variance own, double base);

/* A run as one value of its case; of pairs, the mean change of both. */
struct run_mean {
    double mean;
    size_t n, at; /* repetitions; index in decide_side.runs */
    enum decide_role role;
    unsigned boot;
    bool strange;
};

/* A set of A's runs as B's machine sees it: those of B's boot, and the boots of the others. */
struct level {
    double mean;
    size_t runs, boots; /* 0: none */
    double by_v;        /* its variance is by_v v + by_boots boots: of what B would be */
    double by_boots;
    bool new_boot; /* B's boot is another, and how boots differ is not known */
};

/* What a case's values say. */
struct measure {
    struct run_mean *runs;       /* of A, n of them; of pairs, the changes */
    size_t n, n_b;               /* runs with a value; of B */
    double sign;                 /* turns a difference round where lower is better */
    double b;                    /* B's level */
    double own_runs;             /* degrees of freedom that v has of the case itself */
    double own_squares;          /* the squares of these */
    double squares_b;            /* of B's runs' means around their mean */
    double inverse_a, inverse_b; /* mean of 1 / repetitions of a run */
    double widest;     /* distance of the outermost repetitions of a run; of pairs, of changes */
    size_t fewest;     /* repetitions on a side of one run, or runs of pairs; SIZE_MAX: enough */
    double unbalance;  /* of pairs: the error is that of n repetitions times the root of this */
    double resolution; /* of the values, as difference of logarithms */
    unsigned boot;     /* of B; 0: boots are left out of account */
    bool paired;
    bool by_runs;                /* v is known */
    struct variance s, s_a, s_b; /* moderated: of the case, and of each side */
    double s_df;                 /* of the side that has more repetitions */
    /* What a side's own s has beyond the moderated one, where hardly a case of the suite would by
     * chance: its repetitions may have modes. */
    double modes_a, modes_b;
    struct variance v, boots;
    /* boots by the other cases alone: a case that drifts from boot to boot does not hide by that */
    struct variance others_boots;
    double w_a, w_b; /* of a run's mean, by its repetitions */
    struct level level, anchor;
};

/* A suite's measures; the arrays have one for each case. */
struct model {
    struct prior of_runs; /* of v */
    struct measure *all;
    size_t n;
    size_t *judged; /* those with a value and a spread, n_judged of them */
    size_t n_judged;
    struct run_mean *runs;
    struct variance *x; /* scratch, as are these */
    double *base, *z, *df;
    bool *proven;
};

/* Reads the cases, sets their obstacle where there is nothing to judge, and estimates the components
 * of the others. in_time: A's and B's boots count (a gate's view). */
void suite_model_make(struct model *m, struct decide_case *cases, size_t n, bool in_time);
void suite_model_release(struct model *m);

/* v as it would be without a run of A that is so far from the mean of n runs, itself among them. */
struct variance suite_model_v_without(const struct model *m, const struct measure *c, double off,
                                      size_t n);

#endif
