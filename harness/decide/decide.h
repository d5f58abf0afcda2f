/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the repetitions of two sides to decisions, over a whole suite at once. Pure functions: no
 * input or output, no random numbers. docs/deciding.md has the formulas, what they take for granted
 * and how often they were wrong in simulation; model.h has the variance components.
 *
 * All in logarithms of repetitions' medians, turned round where lower is better, so that a
 * difference of B less A below 0 is a loss of B. A side of several runs counts by its runs' means.
 *
 *   spread       a random-effects model: between boots, between runs, within a run. Each variance of
 *                a case is moderated by those of the other cases (Smyth 2004). A run of A that lies
 *                far from A's others is left out of the level and the spread, and named
 *   error        of B's level against A's, from B's own repetitions and the variance between runs
 *                (Welch); Student's t with Satterthwaite's degrees of freedom
 *   empirical null  (options.unchanged) where the changes of all cases scatter wider around none
 *                than their errors say, all errors are widened. Never made smaller
 *   proof        one-sided p, Holm's step-down (1979) over the suite at options.alarm_level, all
 *                losses together and all gains together: at most that share of unchanged suites has
 *                a single false `worse`
 *   sustained    a median never sees what a CPU quota takes between samples. Where both sides have
 *                all of their work over all of their time as well, the suite is decided by both
 *                figures, each at half of the alarm level. Worse where either is; equivalent or
 *                better only where neither is worse or open
 *
 * The decision of a case:
 *   equivalent    the interval lies within the margin, proven difference or not
 *   worse         a loss is proven, and not equivalent
 *   better        the same of a gain
 *   inconclusive  none of these
 */
#ifndef PLUMB_HARNESS_DECIDE_H
#define PLUMB_HARNESS_DECIDE_H

#include <stdbool.h>
#include <stddef.h>

#define DECIDE_FEW_LAUNCHES 5    /* fewer cannot tell two levels from a change */
#define DECIDE_POWER        0.95 /* of `detectable` */
#define DECIDE_MORE_MAX     1000
#define DECIDE_NULL_CASES   6 /* fewer do not show how two runs differ */

enum decision { DECISION_EQUIVALENT, DECISION_BETTER, DECISION_WORSE, DECISION_INCONCLUSIVE };

/* Why a case is inconclusive, beyond its spread. */
enum decide_obstacle {
    OBSTACLE_NONE,
    OBSTACLE_NO_VALUE,   /* a side has none */
    OBSTACLE_BAD_VALUE,  /* a value is NaN, infinite, 0 or below: it has no logarithm */
    OBSTACLE_ONE_LAUNCH, /* no side tells any spread, or one that has to does not */
    OBSTACLE_FEW,        /* a change that few repetitions cannot prove */
    OBSTACLE_RUNS,     /* one run a side (or one boot), and too few cases to tell how such differ */
    OBSTACLE_TOGETHER, /* it lost with many others, as where a whole run is slower */
    OBSTACLE_STRANGE,  /* it would be proven, but lies where one of A's runs lay: `strange` */
    OBSTACLE_SHAPE     /* it would be proven if runs scatter by no heavier tails than a normal */
};

/* What a run of A is for. B's runs are all DECIDE_LEVEL. */
enum decide_role {
    DECIDE_LEVEL, /* B is held against the mean of these: the last good runs */
    DECIDE_ANCHOR /* and against the mean of these, the first ones: a slow slip shows there */
};

struct decide_run {
    const double *values;    /* repetitions' medians, in time order, in the row's unit */
    const double *sustained; /* of the same, all work over all time; NULL: none */
    size_t n;                /* 0: the run has none of this case, and is left out */
    enum decide_role role;
    unsigned boot; /* runs of one number are of one boot of the machine; 0: not known */
    const bool
        *went_first; /* paired: repetition i was measured before its partner; NULL: unknown */
};

/* By which figure of the repetitions a case is decided. */
enum decide_figure { DECIDE_BY_MEDIAN, DECIDE_BY_SUSTAINED };

struct decide_side {
    const struct decide_run *runs;
    size_t n;
};

struct decide_case {
    struct decide_side a, b; /* a: what is held against, the baseline */
    double margin;           /* 0.05: 5 % either way, 0.95 to 1/0.95 */
    bool higher_is_better;
    /* Run r of A and run r of B were measured in turn, and repetition i of the one stood next to
     * repetition i of the other: each has as many. */
    bool paired;
    /* A side of one repetition is of another program, whose spread the other side does not tell:
     * then nothing is decided. */
    bool alone_is_open;

    /* what decide_suite() fills in; NaN where it cannot be told */
    enum decision decision;
    enum decide_obstacle obstacle;
    bool proven; /* a difference is, over the whole suite */
    bool beyond; /* the whole interval is beyond the margin, on one side */
    bool
        likely; /* a loss beyond the margin that is not proven, with a p of 1 % over all cases, or by
                      a doubt */
    bool slipped;  /* worse against the anchors, and the loss is not proven against the level */
    bool new_boot; /* B's boot is none of A's */
    double anchor_ratio, anchor_low, anchor_high; /* as ratio, against the anchors; NaN: none */
    double a_value, b_value;                      /* geometric means, in the row's unit */
    double ratio, low, high;  /* B against A, turned round so that below 1 is a loss */
    double p_worse, p_better; /* one-sided, by itself, not over the suite */
    double error;             /* standard error of log ratio */
    double freedom;           /* degrees of freedom; INFINITY: as good as known */
    double detectable; /* the smallest loss that is found with DECIDE_POWER: it is proven, and its
                          interval leaves the margin; options.later: then */
    size_t more_launches; /* a side; 0: none needed, or not known, or more than DECIDE_MORE_MAX */
    bool more_of_a;       /* more_launches counts further runs of A alone: options.b_stays */
    bool by_runs;         /* runs are what varies: more_launches counts runs */
    bool by_pairs;        /* what varies are the differences of those measured in turn */
    size_t strange;       /* the run of A that lies farthest off and was left out; SIZE_MAX */
    size_t n_strange;     /* runs of A that were left out so */
    double strange_ratio; /* its level against A's others, turned round as ratio */
    double sustained_a, sustained_b; /* as a_value and b_value; NaN: a side has none */
    /* What decides: ratio, interval, p and error are of this figure; a_value, b_value are not. */
    enum decide_figure judged_by;
    double median_ratio, median_low, median_high; /* where judged_by is not the median; else NaN */
};

/* More data of the same kind, for `detectable`. */
struct decide_later {
    size_t runs;      /* further runs of A, where runs are what varies */
    size_t runs_most; /* A's level has at most so many; 0: no bound */
    double launches;  /* each run, of both sides, has so many times its repetitions; 0: 1 */
};

struct decide_options {
    double alarm_level, confidence; /* 0: 0.005 and 0.95 */
    bool unchanged;                 /* most cases are taken to be as they were: a gate's view */
    bool b_stays; /* B stays the one run that it is: where runs vary, only A gets more of them */
    struct decide_later later;
};

struct decide_overall {
    size_t n_equivalent, n_better, n_worse, n_inconclusive;
    size_t n_judged; /* with a value, and a spread, on both sides */
    /* worse: a case is; else inconclusive: a case is, or there is none; else better: a case is;
     * else equivalent */
    enum decision decision;
    double unrest;     /* all errors were widened by this; NaN: not asked, or too few cases */
    bool by_runs;      /* in some case runs, not repetitions, are what varies */
    bool runs_unknown; /* one run a side, and too few cases to tell how runs differ */
    bool new_boot;     /* B's boot is none of A's, and A's are one boot: see unrest */
    bool together;     /* far more cases moved down than up, and none of them is proven */
    size_t n_down, n_up;
    double moved; /* the median of the ratios of those that moved down; NaN */
};

/* Decides all cases of a suite. 0, or -EINVAL: an option or a margin is out of range. The order of
 * cases does not matter. */
int decide_suite(struct decide_case *cases, size_t n, const struct decide_options *options,
                 struct decide_overall *overall);

/* Counts some of a decided suite's cases into overall: n_*, and the decision over them. */
void decide_count(const struct decide_case *cases, size_t n, struct decide_overall *overall);

const char *decision_name(enum decision decision);               /* "worse" */
const char *decide_obstacle_name(enum decide_obstacle obstacle); /* "together"; "" for none */
const char *decide_figure_name(enum decide_figure figure);       /* "medians", "sustained" */

/* What A, or B, has of the figure that ratio is of: sustained, or the median. */
double decide_value_a(const struct decide_case *c);
double decide_value_b(const struct decide_case *c);

/* A detectable slowdown in percent, rounded up to two digits: 5.02 % is not 5 %. */
double decide_detectable_percent(double share);

/* One sentence on a case, without its full stop: what holds, with figures, and what would decide.
 * 0, or -ENOSPC where it was cut. */
int decide_sentence(const struct decide_case *c, char *text, size_t len);

#endif
