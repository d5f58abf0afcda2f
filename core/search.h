/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of several ways to do one thing is the fastest.
 *
 * The caller knows the ways, by number, and measures one run of one of them. The search knows which
 * one runs next, when that is enough, and which one won.
 *
 * - All ways are known at the start: they run in stages, and after each stage only those stay that
 *   may still win. Within a stage they take turns, forwards and backwards, so that a clock that
 *   drifts slows all of them alike. A round that was begun is finished, but for the first one:
 *   nobody gets a run that the others do not get.
 * - Each way depends on those before it (`next`): every one runs once, until nothing is gained.
 * - The time is bounded by `budget_ns`, and without it by the stages.
 * - Nothing here reads the options or prints. The same runs give the same search.
 */
#ifndef PLUMB_CORE_SEARCH_H
#define PLUMB_CORE_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#define SEARCH_MEDIAN_RUNS 8u /* of one way: more are not made where medians are compared */

struct search_run {
    double cost; /* ns for one unit of work, less is better */
    uint64_t ns; /* how long the run took, by which runs that are too short are known */
};

/* A stage ends for a way when it has made so many runs and spent so long in them, in all. */
struct search_stage {
    unsigned runs;
    uint64_t ns;
    double behind;        /* a way that costs more than this times the least leaves; 0: none */
    unsigned most, share; /* so many stay, or one in `share` where that is more; 0: all */
};

struct search_policy {
    const struct search_stage *stages; /* the last one has runs 0 */
    bool median;                       /* of a way's runs is its cost; else the least of them */
    bool spread;                       /* neighbours do not run one after the other */
    /* A run below this does not count: the clock or the start weighs in it. It is repeated at once
     * with twice the passes. */
    uint64_t run_ns;
    /* The least cost may be a lucky run: the winner goes on until a second run is this near
     * (0.97), or it has made `near_runs`. 0: it is believed. */
    double near;
    unsigned near_runs;
    /* The first ways, so many, never leave. The earliest of them that costs no more than 1 + tie
     * times the least wins. */
    unsigned favoured;
    double tie;
    /* With a budget: the share of it that the first round may take, and how many rounds there are
     * also where it is used up. No more ways stay than have time for these. */
    double first_share;
    unsigned rounds;
    /* With `next`: a way that is faster than the last gain by more than this share is a gain
     * (0.01); so many ways without one end the search. */
    double gain;
    unsigned patience;
};

/* How fast is it at most, and by which way? The least cost counts, since what disturbs can only
 * lengthen a run. All ways run once, those that are not hopeless once more, and only the foremost
 * two as often as a maximum needs: a third of the runs that as many of each would take. */
extern const struct search_policy search_peak;

/* Is another way faster than number 0, as a user sees it? Medians count. Those within a tenth of
 * the fastest first time go on, eight at most, and number 0, which wins a tie of 0.5 %. */
extern const struct search_policy search_contest;

/* Which of hundreds is the fastest? A third goes on after the first run, then a quarter, down to
 * four, and runs more often. The least cost counts. */
extern const struct search_policy search_halving;

enum search_stop {
    SEARCH_DECIDED,   /* all stages are done */
    SEARCH_NO_GAIN,   /* in the last `patience` ways */
    SEARCH_TIME,      /* the budget is used up */
    SEARCH_EXHAUSTED, /* `next` knows no more */
};

struct search_result {
    unsigned best;
    double cost; /* of the best way */
    double gap;  /* how much more it does in the same time than number 0: 0.03; NAN: 0 cannot */
    unsigned tried, refused;
    uint64_t elapsed_ns;
    enum search_stop stop;
    /* Half of the best way's runs, of the first eight, came within 5 % of its least: what disturbed
     * the search did not decide it. */
    bool steady;
};

struct search {
    const struct search_policy *policy;
    unsigned n; /* ways; at most so many with `next` */
    /* One run of way i, of so many passes. 0; -EOPNOTSUPP: this way cannot, and drops out; any
     * other -errno ends the search. */
    int (*run)(void *arg, unsigned i, uint64_t passes, struct search_run *out);
    /* NULL: all are known. Makes way number i, by what the ones before it gave (tried 0: none ran
     * yet). false: there is no more. */
    bool (*next)(void *arg, unsigned i, const struct search_result *so_far);
    uint64_t (*now_ns)(void *arg); /* NULL: the clock */
    void *arg;                     /* of all three */
    uint64_t budget_ns;            /* 0: the stages alone bound it */
};

/* 0; -EOPNOTSUPP: no way can; or the -errno of a run. */
int search_run(const struct search *s, struct search_result *out);

#endif
