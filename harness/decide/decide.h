/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the launches of two sides to decisions, over a whole suite at once. Pure functions: no input
 * or output, no random numbers. The method, its assumptions and what the self-test says of it are
 * in docs/deciding.md.
 *
 * What is compared are logarithms of launches' medians, turned round where lower is better, so that
 * a difference of B less A below 0 is a loss of B. The change is the difference of the two sides'
 * means; a side of several runs has the mean of its runs' means.
 *
 *   spread  One run a side: launches are what varies. Several runs on a side: runs are, since what
 *             differs between runs (another boot, neighbours, temperature) is in no one run. A few
 *             launches tell their own spread badly, and a suite has many cases: the variances of
 *             all cases are fitted by one scaled F distribution (Smyth 2004,
 *             doi:10.2202/1544-6115.1027, by maximum likelihood), and each case's is moderated by
 *             it. The quieter half of the cases is counted in that fit, not believed: a case whose
 *             launches all fell on one of two levels looks quiet and is not. With too few cases for
 *             a fit, what the runs of the others differ by beside their launches counts a little
 *             for each (few_share() in spread.h) Of two runs that were measured in turn, what
 *             varies are the differences of launches that stood next to each other; of several such
 *             pairs of runs, the means of these Runs of a gate stand in time order: they are held
 *             against the mean of a block of six at most, so that what slips slowly is little in
 *             their spread, and against none beyond a break (decide_run.breaks). Who goes second in
 *             a pair of launches may always lose: where who went first is known the change is the
 *             mean of the two orders' changes, and the spread is that around each
 *   interval  Student's t with the case's own and the fit's degrees of freedom, two-sided
 *
 * Where most cases are taken to be unchanged (options.unchanged, a gate's view) the suite is asked
 * for more:
 *   unrest  of one run against one run: the spread of the changes around no change, in units of
 *   their errors, told by
 *             a robust scale. It is how much more runs differ than launches do, and multiplies all
 *             errors. It is known with UNREST_FREEDOM degrees of freedom a case. Of fewer than
 *             DECIDE_UNREST_CASES cases it is not known, and nothing is decided:
 *             overall.runs_unknown
 *   shape  what runs differ by beyond their launches may have heavy tails, which few runs do not
 *   show: the degrees of
 *             freedom that the other cases lend to a case shrink by it, less with each run that is
 *             known (decide.c)
 *   sway  of several runs: where all cases moved together, by no more than the baselines did, the
 *   same scale
 *             widens all errors; so does what runs far apart in time differ by more than those of a
 *             block
 *   chance  how often a p as small is seen where nothing changed: among the baselines, each against
 *   the others of its
 *             block, or of one run a side among what moved the other way. If it is more often than
 *             p, it is that often (unrest.c)
 *   together  far more cases moved one way than the other, by their own spread; if none of them is
 *   proven, it says so anchor  runs of A may be an older level (DECIDE_ANCHOR) that B is held
 *   against as well, at half of the alarm level.
 *             A loss is one where all of its interval is beyond the margin, too
 *
 *   proof     One-sided p of "no loss" for each case, Holm's step-down (1979) over the suite at
 *             `alarm_level`, and the same for gains: at most that share of suites in which nothing
 *             changed has a single false `worse`
 *
 *   two figures  What other programs take from a run, they take from most of its samples, and from
 *             some launches more than from others. The best launches of a run, by a low quantile of
 *             their time, show the machine itself with less noise. But a loss at the slow samples,
 *             or in some launches alone, does not show there. So where all runs have `fast`, and A
 *             has DECIDE_FAST_RUNS of them, the suite is decided twice: by the medians of all
 *             launches, and by the best three of five launches, each with half of the alarm level.
 *             Only the medians make a case equivalent, and what they prove stands. A case that they
 *             leave open has what the best launches prove. (Fewer runs do not show how the best of
 *             few launches vary, where these are on two levels.)
 *
 *   sustained  A median never sees what a CPU quota or other guests take between samples, or in a few
 *             of them. Where the launches of both sides have all of their work over all of their
 *             time, too, the suite is decided by that as well; each of the two figures gets half of
 *             the alarm level. A case is worse where one of them is, equivalent or better only
 *             where neither is worse or left open.
 *
 * The decision of a case:
 *   equivalent    the interval lies within the margin, proven difference or not
 *   worse  proven, and not equivalent; `beyond` where the whole interval is beyond the margin
 *   better  the same, on the other side inconclusive  neither; `more_launches` says how many more a
 *   side, or of A alone (options.b_stays),
 *                 would decide, if nothing else changes
 * With fewer than DECIDE_FEW_LAUNCHES launches on a side of one run, two levels between launches
 * look like a change too often: there, `worse` and `better` also ask for a change larger than the
 * widest spread that launches of any case showed within a run. The same holds of fewer pairs of
 * runs than that, where the widest spread is that between the changes of a case's pairs.
 */
#ifndef PLUMB_HARNESS_DECIDE_H
#define PLUMB_HARNESS_DECIDE_H

#include <stdbool.h>
#include <stddef.h>

#define DECIDE_FEW_LAUNCHES 5
#define DECIDE_FAST_RUNS    5
#define DECIDE_POWER        0.8  /* of `smallest` */
#define DECIDE_SURE         0.95 /* of `detectable` */
#define DECIDE_MORE_MAX     1000

enum decision { DECISION_EQUIVALENT, DECISION_BETTER, DECISION_WORSE, DECISION_INCONCLUSIVE };

/* Why a case is inconclusive, beyond its spread. */
enum decide_obstacle {
    OBSTACLE_NONE,
    OBSTACLE_NO_VALUE,   /* a side has none */
    OBSTACLE_BAD_VALUE,  /* a value is NaN, infinite, 0 or below: it has no logarithm */
    OBSTACLE_ONE_LAUNCH, /* no side tells any spread, or one that has to does not */
    OBSTACLE_FEW,        /* a change that few launches cannot prove: see above */
    OBSTACLE_RUNS,       /* one run a side, and too few cases to tell how runs differ */
    OBSTACLE_TOGETHER,   /* it lost with many others, and none is proven: overall.together */
    OBSTACLE_JUMPS, /* it would be proven, but where nothing changed runs lay as far off, too */
    /* it would be proven, if runs had no heavier tails than launches: too few are known */
    OBSTACLE_SHAPE
};

/* What a run of A is for. B's runs are all DECIDE_LEVEL. */
enum decide_role {
    DECIDE_LEVEL, /* B is held against the mean of these */
    /* B is also held against the mean of these older runs: a slow slip shows there */
    DECIDE_ANCHOR,
    DECIDE_SPREAD /* tells how runs differ, and is no level */
};

struct decide_run {
    const double *values;    /* launches' medians, in time order, in the row's unit */
    const double *fast;      /* of the same launches a low quantile of time, as value; NULL: none */
    const double *sustained; /* of the same launches all work over all time; NULL: none */
    size_t n;                /* 0: the run has none of this case, and is left out */
    int best; /* 0: all launches count. decide_suite() sets others in its own copy: 1:
                             the highest three of five count, -1: the lowest */
    enum decide_role role;
    bool breaks; /* its level is meant to be another than that of the run before: their difference
                    says nothing of spread */
    const bool *went_first; /* paired: launch i was measured before its partner; NULL: not known */
};

/* By which figure of the launches a case is decided. */
enum decide_figure { DECIDE_BY_MEDIAN, DECIDE_BY_FAST, DECIDE_BY_SUSTAINED };

struct decide_side {
    const struct decide_run *runs;
    size_t n;
};

struct decide_case {
    struct decide_side a, b; /* a: what is held against, the baseline */
    double margin;           /* 0.05: 5 % either way, 0.95 to 1/0.95 */
    bool accepted; /* its change is known and accepted: it is not counted in overall.together */
    bool higher_is_better;
    /* run r of A and run r of B were measured in turn, and launch i of the one stood next to launch
     * i of the other: each has as many. With best_of it is of no use */
    bool paired;
    /* A side of one launch is of another program, whose spread the other side does not tell: then
     * nothing is decided. */
    bool alone_is_open;
    /* B is held against the best of the last so many of A's runs that are its level. That makes
     * losses likelier by chance, which is allowed for; all of them say what varies between runs. 0:
     * B is held against A's mean */
    unsigned best_of;

    /* what decide_suite() fills in; NaN where it cannot be told */
    enum decision decision;
    enum decide_obstacle obstacle;
    bool proven;  /* a difference is, over the whole suite */
    bool beyond;  /* the whole interval is beyond the margin, on one side */
    bool slipped; /* worse against the anchors, and the loss is not proven against the level */
    double anchor_ratio, anchor_low, anchor_high; /* as ratio, against the anchors; NaN: none */
    double a_value, b_value;                      /* geometric means, in the row's unit */
    double ratio, low, high;  /* B against A, turned round so that below 1 is a loss */
    double p_worse, p_better; /* one-sided, by itself, not over the suite */
    /* p_worse as if runs had no heavier tails than launches: not proof, but no baseline */
    double p_likely;
    double error;   /* standard error of log ratio */
    double freedom; /* degrees of freedom; INFINITY: as good as known */
    /* the smallest loss that this data would have proven with DECIDE_POWER: 0.03 */
    double smallest;
    double detectable;    /* the smallest loss that is found with DECIDE_SURE: it is proven, and its
                          interval leaves the margin; options.later: then */
    size_t more_launches; /* a side; 0: none needed, or not known, or more than DECIDE_MORE_MAX */
    bool more_of_a;       /* more_launches counts further runs of A alone: options.b_stays */
    bool by_runs;         /* runs are what varies: more_launches counts runs */
    bool by_pairs;        /* what varies are the differences of those that were measured in turn */
    double sustained_a, sustained_b; /* as a_value and b_value; NaN: a side has none */
    /* What decides: ratio, interval, p and error are of this figure; a_value, b_value are not. */
    enum decide_figure judged_by;
    enum decide_figure shown_by;                  /* the figure of which `smallest` is */
    double median_ratio, median_low, median_high; /* where judged_by is not the median; else NaN */
};

/* More data of the same kind, for `detectable`. */
struct decide_later {
    size_t runs;      /* further runs of A, where runs are what varies */
    size_t runs_most; /* A's level has at most so many; 0: no bound */
    double launches;  /* each run, of both sides, has so many times its launches; 0: 1 */
};

struct decide_options {
    double alarm_level, confidence; /* 0: the defaults above */
    bool unchanged; /* most cases are taken to be as they were: a gate's view, see unrest */
    bool b_stays; /* B stays the one run that it is, also a gate's view: where runs are what varies,
                       only A gets more of them */
    struct decide_later later;
};

struct decide_overall {
    size_t n_equivalent, n_better, n_worse, n_inconclusive;
    size_t n_judged; /* with a value, and a spread, on both sides */
    /* worse: a case is; else inconclusive: a case is, or there is none; else better: a case is;
     * else equivalent */
    enum decision decision;
    double unrest; /* 1: runs differ as launches do; NaN: not asked, or too few cases to tell */
    double prior_freedom; /* of the fit: how alike the cases' spreads are; NaN: too few cases */
    bool by_runs;         /* in some case runs, not launches, are what varies */
    bool runs_unknown;    /* one run a side, and too few cases to tell how runs differ */
    /* far more cases moved one way than the other: n_down and n_up did, each beyond its own
     * spread */
    bool together;
    size_t n_down, n_up;
    double moved; /* the median of their ratios; NaN */
};

#define DECIDE_UNREST_CASES 6  /* fewer do not tell unrest */
#define DECIDE_PRIOR_CASES  10 /* fewer give no fit: each case has its own spread alone */

/* Decides all cases of a suite. 0, -EINVAL (an option or a margin out of range), -ENOMEM. The order
 * of cases does not matter. */
int decide_suite(struct decide_case *cases, size_t n, const struct decide_options *options,
                 struct decide_overall *overall);

/* Counts some of a decided suite's cases into overall: n_*, and the decision over them. */
void decide_count(const struct decide_case *cases, size_t n, struct decide_overall *overall);

const char *decision_name(enum decision decision);               /* "worse" */
const char *decide_obstacle_name(enum decide_obstacle obstacle); /* "together"; "" for none */

const char *
decide_figure_name(enum decide_figure figure); /* "medians", "best launches", "sustained" */

/* What A, or B, has of the figure that ratio is of: sustained, or the median. */
double decide_value_a(const struct decide_case *c);
double decide_value_b(const struct decide_case *c);

/* One sentence on a case, without its full stop: what holds, with figures, and what would decide.
 * 0, or -ENOSPC where it was cut. */
int decide_sentence(const struct decide_case *c, char *text, size_t len);

#endif
