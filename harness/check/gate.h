/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate: what the decisions on a run's cases come to for somebody who is to be woken, or not.
 *
 * A case is one of
 *   regressed     a loss against the baseline is proven over the suite (decide.h)
 *   wrong         the run's data were wrong
 *   failed        a launch of it failed, or did not end in time
 *   missing       the baseline has it and the run does not: skipped, not run, gone
 *   refused       its figures are of another sort than the baseline's (pairs.h)
 *   unseen  nothing is proven, and the data could not have shown a loss of `see`; or others took
 *   the
 *                 CPU in all launches of a side (steal), which tells nothing of the pipe
 *   inconclusive  nothing is proven, and a loss of `see` would have been
 *   better, equivalent
 *   new           the baseline has none
 *   absent        neither has it, or one left out a figure beside the samples
 */
#ifndef PLUMB_CHECK_GATE_H
#define PLUMB_CHECK_GATE_H

#include "harness/compare/pairs.h"

enum gate_state {
    GATE_REGRESSED,
    GATE_WRONG,
    GATE_FAILED,
    GATE_MISSING,
    GATE_REFUSED,
    GATE_UNSEEN,
    GATE_INCONCLUSIVE,
    GATE_BETTER,
    GATE_EQUIVALENT,
    GATE_NEW,
    GATE_ABSENT
};
#define GATE_STATES 11

enum gate_verdict {
    GATE_PASSED,
    GATE_LOST,       /* EXIT_BAD: a case regressed, or gave wrong data */
    GATE_UNDECIDED,  /* EXIT_UNDECIDED */
    GATE_INCOMPLETE, /* EXIT_INCOMPLETE */
    GATE_FIRST       /* EXIT_UNDECIDED: there is nothing to hold the run against yet */
};

struct gate_case {
    const struct pair *pair;
    enum gate_state state;
    const char *text; /* one sentence without a full stop, in which nothing is escaped */
};

/* What decided cases come to. */
struct gate_tally {
    size_t held;    /* against a baseline */
    size_t lost;    /* a loss is proven */
    size_t unseen;  /* could not have shown a loss of `see`, whatever they were decided */
    size_t suspect; /* undecided, and not to be a baseline: gate_is_suspect() */
    size_t
        doubtful; /* of these, would be proven, but for what runs do, or may do, where nothing changed */
    size_t within; /* a loss is proven, and the margin lets it pass */
};

struct gate_options {
    double see;  /* the loss that the run should be able to show */
    bool strict; /* any case that could not have shown it makes the run inconclusive */
    bool first;  /* no baseline yet: the run stands on both sides of the pairs */
};

struct gate {
    struct pairs *p;
    struct gate_options options;
    struct gate_case *cases; /* by state, worst first in each */
    size_t n, counts[GATE_STATES];
    size_t n_taken; /* held cases of which launches are left out, as others took the CPU */
    struct gate_tally tally;
    const struct gate_case *suspect, *within; /* of these the one that lost most; NULL */
    enum gate_verdict verdict;
    const char *sentence; /* what holds over all */
    const char *unseen;   /* how many could not have shown the loss */
    const char *state;    /* "running" and such, where the run did not come to its end; else "" */
};

/* Of each case only the best of the baseline's last n runs stays, and its selection is allowed for.
 * Decides again. As pairs_decide(). */
int gate_pick_best(struct pairs *p, size_t n, const struct decide_options *options);

/* Counts one more case; n_judged: of the suite. */
void gate_count(struct gate_tally *t, const struct decide_case *c, double see, size_t n_judged);
/* GATE_LOST, GATE_UNDECIDED or GATE_PASSED. */
enum gate_verdict gate_tally_verdict(const struct gate_tally *t, bool strict);

/* All of it lives in the pairs' pool. 0 or -ENOMEM. */
int gate_make(struct gate *g, struct pairs *p, const struct gate_options *options);

/* The same without the cases of these keys, which were accepted: as gate_make(), but for its
 * sentences. */
int gate_without(struct gate *rest, const struct gate *g, const char *const *keys, size_t n);

int gate_exit(enum gate_verdict verdict);
const char *gate_state_name(enum gate_state state);       /* "regressed" */
const char *gate_verdict_name(enum gate_verdict verdict); /* "passed", "first run" */

/* The data of a case could not have shown a loss of `see`, or its margin lets that pass; one that
 * is equivalent within less has ruled it out. */
bool gate_is_blind(const struct decide_case *c, double see);

/* A case of which nothing is proven, and which is likely to have lost: beyond its margin, with a p
 * of SUSPECT_LEVEL over all n cases that were judged (Bonferroni), or as one of many that lost
 * together, or where only what runs were seen to do, or that few are known, keeps it from being
 * proven; where it is not known how runs differ, a loss beyond `see`; where one launch a run tells
 * no p, beyond SUSPECT_LOSSES times that. A run that has one is no baseline for later ones. Any
 * loss beyond the margin would be too many: of noisy cases most runs have one, and the first
 * baseline would stay the only one. */
bool gate_is_suspect(const struct decide_case *c, double see, size_t n);

/* ---- The gate's sentences: the same on the terminal and in every file ---- */

/* The figures of a case that was held against a baseline; "" where they cannot be told. */
struct words_figures {
    const char *ratio;    /* "0.948 (0.941 to 0.955)" */
    const char *proof;    /* "p 2e-07" */
    const char *smallest; /* "1.2 %" */
};
struct words_figures words_figures(struct pool *pool, const struct pair *pair);

const char *words_percent(struct pool *pool, double share); /* 0.05: "5 %" */

/* What is said of a case, with what differs beside its figures; in one line. */
const char *words_whole(struct pool *pool, const struct gate_case *c);
/* "kernel 6.1 against 6.5; plumb 0.1 against 0.2", baseline against run; "": nothing differs. */
const char *words_differences(struct pool *pool, const struct machine_difference *all, size_t n);

#endif
