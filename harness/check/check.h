/* SPDX-License-Identifier: Apache-2.0 */
/* plumb check, the gate for CI: the baseline, the verdict on a run, and its outputs. */
#ifndef PLUMB_CHECK_CHECK_H
#define PLUMB_CHECK_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/option.h"
#include "harness/compare/pairs.h"
#include "harness/document/document.h"
#include "harness/history/history_db.h"

/* What a run is held against: run folders, or runs of the history, which become folders for the
 * while. */

#define BASELINE_LAST 10 /* good runs of the history, and first ones, unless it is said */

struct baseline {
    const char **paths, **names;  /* oldest first */
    size_t n;                     /* 0: there is none yet; `advice` says what to do */
    struct history_choice choice; /* what each run is for */
    size_t runs_most;             /* of its level; 0: all that there are */
    char *folder;                 /* where runs of the history lie meanwhile; NULL */
    const char *text, *advice;
    const char *against; /* "the last 10 nights", "'results/monday'" */
    struct pool pool;    /* of the texts */
};

struct baseline_asked {
    const char *spec;    /* PATH, "history" or "history:N" */
    const char *history; /* its file */
    const char *run;     /* the run that is to be judged: it is never its own baseline */
    bool update;         /* the run will be added to the history */
    double steal_limit;  /* as in harness/compare/pairs.h */
};

bool baseline_is_history(const char *spec);

/* 0; -EINVAL (the spec, or nothing is left of it) and others as history_db_open(). *b is to be
 * released in any case. */
int baseline_find(struct baseline *b, const struct baseline_asked *asked, char *error, size_t len);
/* Once the runs are loaded, what lies in the temporary folder may go. */
void baseline_release(struct baseline *b);

/*
 * The gate: what the decisions on a run's cases come to for somebody who is to be woken, or not.
 *
 * A case is one of
 *   regressed     a loss against the baseline is proven over the suite (decide.h)
 *   wrong         the run's data were wrong
 *   failed        a launch of it failed, or did not end in time
 *   missing       the baseline has it and the run does not: skipped, not run, gone
 *   refused       its figures are of another sort than the baseline's (pairs.h)
 *   accepted      one of these, and --accept was asked for
 *   unseen        nothing is proven, and the data could not have shown a loss of --detect
 *   inconclusive  nothing is proven
 *   better, equivalent
 *   new           the baseline has none
 *   absent        neither has it, or one left out a figure beside the samples
 */

enum gate_state {
    GATE_REGRESSED,
    GATE_WRONG,
    GATE_FAILED,
    GATE_MISSING,
    GATE_REFUSED,
    GATE_ACCEPTED,
    GATE_UNSEEN,
    GATE_INCONCLUSIVE,
    GATE_BETTER,
    GATE_EQUIVALENT,
    GATE_NEW,
    GATE_ABSENT
};
#define GATE_STATES 12

enum gate_verdict {
    GATE_PASSED,
    GATE_LOST,       /* EXIT_BAD: a case regressed, or gave wrong data */
    GATE_UNDECIDED,  /* EXIT_GOOD: nothing regressed; with --detect EXIT_UNDECIDED */
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
    size_t held;     /* against a baseline, with a spread by which something can be decided */
    size_t seeing;   /* decided, or some slowdown would have been detected */
    size_t lost;     /* a loss is proven */
    size_t unseen;   /* could not have shown a loss of --detect; 0 where it is not asked for */
    size_t likely;   /* a loss is likely: the run is no baseline */
    size_t doubtful; /* a loss beyond the margin would be proven, but for what runs may do */
    size_t within;   /* a loss is proven, and the margin lets it pass */
};

struct gate_options {
    double detect; /* the loss that the run should be able to show; 0: it is not asked for */
    bool history;  /* the baselines are those of a history */
    bool first;    /* no baseline yet: the run stands on both sides of the pairs */
};

struct gate {
    struct pairs *p;
    struct gate_options options;
    struct gate_case *cases; /* by state, worst first in each */
    size_t n, counts[GATE_STATES];
    size_t n_taken; /* held cases of which launches are left out, as others took the CPU */
    struct gate_tally tally;
    const struct gate_case *likely, *within; /* of these the one that lost most; NULL */
    enum gate_verdict verdict;
    const char *state; /* "running" and such, where the run did not come to its end; else "" */
    /* It was measured to its end, and nothing of it lost, is likely to have lost, failed, is wrong,
     * missing or refused, but for what is accepted: it is a baseline of later runs. */
    bool good;
};

/* Counts one more case. */
void gate_count(struct gate_tally *t, const struct decide_case *c, double detect);
/* GATE_LOST, GATE_UNDECIDED or GATE_PASSED. */
enum gate_verdict gate_tally_verdict(const struct gate_tally *t);

/* All of it lives in the pairs' pool. */
void gate_make(struct gate *g, struct pairs *p, const struct gate_options *options);

/* What needs action of these cases (n_keys 0: of all) is GATE_ACCEPTED from now on; the verdict is
 * that of the others. */
void gate_accept(struct gate *g, const char *const *keys, size_t n_keys);

int gate_exit(const struct gate *g);
const char *gate_state_name(enum gate_state state);       /* "regressed" */
const char *gate_verdict_name(enum gate_verdict verdict); /* "passed", "first run" */

/* The data of a case could not have shown that loss, or its margin lets that pass; one that is
 * equivalent within less has ruled it out. */
bool gate_is_blind(const struct decide_case *c, double loss);

/* ---- The smallest detectable loss ----
 *
 * Of each case that was compared, the loss that this run would have found with DECIDE_POWER, by the
 * same figures as the verdict (decide_case.detectable); of all cases the median. A case without
 * such a figure counts as 100 %. */

#define SIGHT_AIM  0.05 /* what more nights are to reach, where --detect does not say */
#define SIGHT_NONE 0.95 /* who would detect only more than this detects nothing */

struct sight_asked {
    struct decide_options decide; /* as the cases were decided */
    size_t runs_most;             /* runs of the baseline's level at most; 0: no bound */
};

struct sight {
    double
        today; /* 0.08; from SIGHT_NONE on: unknown in half of the cases; NaN: nothing was compared */
    double most;     /* the same of the case that shows least */
    size_t n, n_see; /* cases; those that detect a loss of the aim */
    double then;     /* what the median would be, the aim or the least that is reached, with: */
    size_t nights;   /* further nights; 0: none of these many reach it */
    size_t repeat;   /* launches of each case in every night; 0: the same */
    double minutes;  /* of a run with `repeat`; NaN: not known */
    bool by_runs;    /* nights are what varies; else nothing can be said of further ones */
    const char
        *sentence; /* "8 % today in the median case (5 % detected or ruled out in 3 of 40 cases)" */
};

/* The sentence lives in the pairs' pool. */
void sight_make(struct sight *s, const struct gate *g, const struct sight_asked *asked);

/* ---- The gate's sentences: the same on the terminal and in every file (words.c) ---- */

const char *words_percent(struct pool *pool, double share);  /* 0.05: "5 %" */
const char *words_slowdown(struct pool *pool, double share); /* rounded up: 0.0502: "5.1 %" */

#define WORDS_NAMED_MAX 3 /* cases that a sentence over all names; the files have all */

/* One sentence on a case, without a full stop. */
const char *words_case(const struct gate *g, const struct gate_case *c);
/* What is said of a case, with what differs beside its figures; in one line. */
const char *words_whole(struct pool *pool, const struct gate_case *c);
/* A side of a difference: "6.1"; "not known". */
const char *words_side(const char *text);
/* "kernel 6.1 to 6.5; plumb 0.1 to 0.2", of the baseline and of the run; "": nothing differs. */
const char *words_changed(const struct gate *g, const struct machine_difference *all, size_t n);

/* A verdict, written for people and for programs. Each writer escapes what comes from files. */

/* What became of the run in the history. */
struct check_kept {
    const char *sentence; /* "" : it was not asked for */
    bool done;            /* what follows is filled in */
    bool taken; /* others took the CPU in all its launches: no later run is held against it */
    struct history_judged judged;
    struct history_acceptance acceptance; /* of this run, where judged.acceptance is set */
};

struct check_result {
    struct gate gate;
    struct sight sight;
    const char *run;            /* its path, as it was given */
    const char *spec, *history; /* --baseline, --history */
    const struct baseline *baseline;
    double margin;
    bool all; /* people see every case, and what else is known */
    struct check_kept kept;
    bool accepted;      /* it is the first run of a new reference, in all cases or in some */
    int exit;           /* status, but for files that cannot be written */
    const char *advice; /* what to do next, where there is no baseline or a case is missing; "" */
    const char *since;  /* the first run in a row that has the loss; "" */
    struct machine_difference *differences;
    size_t n_differences;
};

/* "ok", "REGRESSION": what the verdict begins with, and the rest of it. */
const char *words_headline(const struct check_result *r);
const char *words_verdict(const struct check_result *r);
/* The commands to measure again, and to accept it; "" where nothing regressed. */
const char *words_next(const struct check_result *r);
const char *words_accept(const struct check_result *r);
/* What the margin lets pass, and what is left out for steal; "". */
const char *words_within(const struct gate *g);
const char *words_taken(const struct gate *g);

/* What every output says, in the order of the terminal: name is the JUnit property and the key in
 * the JSON. */
struct check_fact {
    const char *name, *label, *text;
    bool more; /* for people only with --all */
};
#define CHECK_FACTS 11
/* facts has room for CHECK_FACTS. Those without a text are left out. Returns how many there are. */
size_t check_facts(const struct check_result *r, struct check_fact *facts);

int output_text(FILE *out, const struct check_result *r);
int output_junit(FILE *out, const struct check_result *r);
int output_markdown(FILE *out, const struct check_result *r);
int output_json(FILE *out, const struct check_result *r);
int output_github(FILE *out, const struct check_result *r); /* workflow commands */

/* Escapes of each, for their tests. */
void junit_text(FILE *out, const char *text);
void github_data(FILE *out, const char *text, bool property);

int cmd_check(int argc, char **argv);

/* ---- The command, and what becomes of the run in the history (kept.c) ---- */

struct check_options {
    const char *baseline, *history, *only, *reason, *junit, *markdown, *json;
    double margin, detect, steal;
    bool github, update, accept, all, help;
};

struct check_command {
    const struct opts *o;
    struct check_options options;
    const char *const *only; /* NULL-ended; NULL: all */
    bool forced;             /* the margin was given */
    const char *run;
    char history[1024]; /* its file, where the user named the folder */
    char error[2048];
};

/* Which cases --accept is of, in kept->acceptance, with who accepts and why: 0, or -ENOENT with
 * c->error set: none matches --only. */
int check_accept(struct check_command *c, const struct gate *g, struct check_kept *kept);
/* Adds the run to the history. *kept says what became of it; its sentence does also where this
 * fails. 0 or -errno with c->error set. */
int check_update(struct check_command *c, const struct gate *g, struct check_kept *kept);

/* Since when the case that lost most has its loss, by the values of the history: the first of the
 * runs in a row that have at least half of it (since.c). "" where the run is not held against the
 * history, or that has no value from before it. It lives in the pairs' pool. */
const char *check_since(const struct check_command *c, const struct gate *g);

#endif
