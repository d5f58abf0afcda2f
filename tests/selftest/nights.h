/* SPDX-License-Identifier: Apache-2.0 */
/* Nights of a world, judged as plumb check judges runs of a history: one night, or one after the other. */
#ifndef PLUMB_SELFTEST_NIGHTS_H
#define PLUMB_SELFTEST_NIGHTS_H

#include "harness/check/check.h"
#include "tests/selftest/worlds.h"

#define ONE_LOSS 0.05 /* in one case */

/* Room for one suite, some megabytes. */
struct stage {
    struct nights nights;
    struct truth truth;
    struct decide_run a[WORLD_CASES][WORLD_NIGHTS], b[WORLD_CASES];
    struct decide_case cases[WORLD_CASES];
    struct decide_overall overall;
    struct gate_tally tally;
};

/* What came of the suites of a cell. */
struct tally {
    size_t suites, lost, undecided, passed; /* by the verdict: exits 1, 3 and 0 */
    size_t kept;                            /* became a baseline */
    size_t found, other;                    /* a case that lost was named; another one was */
    double decided;                         /* share of the cases, summed */
};

/* The last night of a world, of which all nights before are baselines, held against these in one of three ways. */
enum way { WAY_HISTORY, WAY_LAST_TEN, WAY_BEST_OF_30, WAYS };
struct nightly {
    struct world w;
    struct truth truth; /* planted in the night that is judged */
    enum way way;
};

/* Adds suites to *t. */
void nights_judge(struct stage *s, const struct nightly *n, size_t suites, struct dice *d,
                  struct tally *t);

/* False verdicts and losses of ONE_LOSS found where night 0 and night 1 were measured in turn; known: who went first. */
void nights_in_turn(struct stage *s, const struct world *w, size_t suites, uint64_t seed,
                    bool known, size_t *alarms, size_t *found);

/* What a year of a nightly job is like: each night is judged by what the nights before were taken for. */
struct season {
    const char *name;
    struct world w;
    size_t lost_from, n_lost; /* so many cases lose `loss` from this night on; 0: none */
    double loss;
    bool promised; /* alarms in at most 1 % of the nights without a loss */
};

struct seen {
    size_t nights, alarms; /* without a loss in the suite, and false ones of these */
    size_t found,
        adopted;      /* series whose loss was named; nights with the loss that became baselines */
    double when;      /* sum of the nights it took */
    size_t baselines; /* at the end */
};

/* Adds one series of nights to *seen. */
void nights_series(struct stage *s, const struct season *season, struct dice *d, struct seen *seen);

#endif
