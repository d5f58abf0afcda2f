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

#define BASELINE_LAST 10 /* runs of the history, unless it is said */

struct baseline {
    char **paths, **names;        /* NULL-ended, oldest first */
    size_t n;                     /* 0: there is none yet; `advice` says what to do */
    struct history_choice choice; /* of runs of the history: what each is for */
    size_t runs_most;             /* of its level; 0: all that there are */
    char *folder;                 /* where runs of the history lie meanwhile; NULL */
    char text[2048], advice[1024];
};

struct baseline_asked {
    const char *spec;    /* PATH, "history" or "history:N" */
    const char *history; /* its file */
    const char *run;     /* the run that is to be judged: it is never its own baseline */
    bool update;         /* the run will be added to the history */
    double steal_limit;  /* as in harness/compare/pairs.h */
    size_t least;        /* runs that are needed of the history, where the spec does not say */
};

bool baseline_is_history(const char *spec);
/* How many are runs that the run is held against. Others tell how runs differ, or of a slow slip.
 */
size_t baseline_levels(const struct baseline *b);

/* 0; -EINVAL (the spec, or nothing is left of it) and others as pairs_load() and history_db_open().
 * *b is to be released in any case. */
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
 *   accepted      a loss is proven, and somebody accepted a level that is not better
 *   unseen  nothing is proven, and the data could not have shown a loss of `see`; or others took
 *   the
 *                 CPU in all launches of a side (steal), which tells nothing of the pipe
 *   inconclusive  nothing is proven, and a loss of `see` would have been
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

/* ---- Accepted changes, in a file beside a baseline that is a folder ----
 *
 * FOLDER.accepted.json: the level of a case that somebody accepted, with the reason. While the
 * baseline is better than that level a loss down to it is no regression: GATE_ACCEPTED. A loss that
 * is proven to be beyond the margin against that level is one. The proof allows for the spread of
 * both runs: at most 1 % of runs at the accepted levels alarm. */
struct accepted_level {
    const char *key, *label, *unit, *run, *reason, *by, *at_utc;
    double level;     /* the median */
    double sustained; /* NaN: the run did not tell it */
};

struct accepted {
    const char *path;
    struct accepted_level *levels;
    size_t n;
};

struct gate_options {
    const struct accepted *accepted; /* NULL: none */
    double see;                      /* the loss that the run should be able to show */
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

/* 0, also where there is no file; -EBADMSG or -ENOMEM with error set. All lives in the pool. */
int accepted_load(struct accepted *a, struct pool *pool, const char *baseline, char *error,
                  size_t len);
/* Adds the levels of the gate's run, in place of older ones of the same cases, and writes the file.
 * 0 or -errno with error set; -EINVAL: a case has no value on a side. */
int accepted_add(struct accepted *a, const struct gate *g, const struct history_acceptance *by,
                 char *error, size_t len);
const struct accepted_level *accepted_of(const struct accepted *a, const char *key); /* or NULL */
/* Is the run no worse than that level, of these? */
bool accepted_covers(const struct accepted *a, const struct accepted_level *level,
                     const struct decide_case *c);
/* Decides again, with cases that have a level of these told as such, unless the baseline has come
 * down to it: they say nothing of the other cases. As pairs_decide(). */
int accepted_decide(const struct accepted *a, struct pairs *p,
                    const struct decide_options *options);
/* "12.3 GB/s (jo, 2026-01-05T02:00:00Z): driver 580". */
const char *accepted_text(struct pool *pool, const struct accepted_level *level);
/* Of all that the baseline does not contain yet; "": none. */
const char *accepted_list(const struct accepted *a, const struct gate *g);
/* Labels that a pattern that matches none may have meant: "'memory triad, 1 GiB: bandwidth'". */
const char *gate_near(const struct gate *g, const char *pattern);

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

/* These cases are GATE_ACCEPTED from now on, whatever they were; the verdict is that of the others.
 * 0 or -ENOMEM. */
int gate_accept(struct gate *g, const char *const *keys, size_t n);

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

/* ---- The smallest detectable loss ----
 *
 * Of each case that was compared, the loss that this run would have found with DECIDE_SURE, by the
 * same figures as the verdict (decide_case.detectable); of all cases the median. A case without
 * such a figure counts as 100 %. */

struct sight_asked {
    struct decide_options decide; /* as the cases were decided */
    size_t runs_most;             /* runs of the baseline's level at most; 0: no bound */
};

struct sight {
    double today;         /* 0.08; 1: unknown in half of the cases; NaN: nothing was compared */
    size_t n, n_see;      /* cases; those that detect a loss of `see` */
    double then;          /* what the median would be, `see` or the least that is reached, with: */
    size_t nights;        /* further nights; 0: none of these many reach it */
    size_t repeat;        /* launches of each case in every night; 0: the same */
    double minutes;       /* of a run with `repeat`; NaN: not known */
    bool by_runs;         /* nights are what varies; else nothing can be said of further ones */
    const char *sentence; /* "8 % today in the median case (5 % or less in 3 of 40 cases); ..." */
};

/* 0 or -ENOMEM. The sentence lives in the pairs' pool. */
int sight_make(struct sight *s, const struct gate *g, const struct sight_asked *asked);

/* ---- The gate's sentences: the same on the terminal and in every file ---- */

/* The figures of a case that was held against a baseline; "" where they cannot be told. */
struct words_figures {
    const char *ratio;      /* "0.948 (0.941 to 0.955)" */
    const char *proof;      /* "p 2e-07" */
    const char *detectable; /* "1.2 %" */
};
struct words_figures words_figures(struct pool *pool, const struct pair *pair);

const char *words_percent(struct pool *pool, double share); /* 0.05: "5 %" */

#define WORDS_NAMED_MAX 3 /* cases that a sentence over all names; the files have all */

const char *words_loss(struct pool *pool, double share); /* rounded up: 0.0502: "5.1 %" */

/* What is said of a case, with what differs beside its figures; in one line. */
const char *words_whole(struct pool *pool, const struct gate_case *c);
/* A side of a difference: "6.1"; "not known". */
const char *words_side(const char *text);
/* "kernel 6.1 against 6.5; plumb 0.1 against 0.2", baseline against run; "": nothing differs. */
const char *words_differences(struct pool *pool, const struct machine_difference *all, size_t n);

/* A verdict, written for people and for programs. Each writer escapes what comes from files. */

/* What became of the run in the history. */
struct check_kept {
    const char *sentence; /* "" : it was not asked for */
    bool done;            /* what follows is filled in */
    bool taken; /* others took the CPU in all its launches: no later run is held against it */
    struct history_judged judged;
    struct gate rest;                     /* the cases that were not accepted */
    struct history_acceptance acceptance; /* of this run, where judged.acceptance is set */
    struct environment_word environment;  /* of the run against the history's baselines */
    size_t n_environments; /* of them, that tell of theirs; 0: nothing was compared */
};

struct check_result {
    struct gate gate;
    struct sight sight;
    const char *run;                    /* its path, as it was given */
    const char *baseline;               /* "3 runs of the history 'results/history.db'" */
    const struct baseline *baseline_of; /* its runs */
    unsigned best_of;                   /* 0: all of them */
    double margin;
    struct check_kept kept;
    bool accepted;      /* its level, or that of some cases, is the start of later runs' */
    bool beside;        /* levels were accepted in a file beside the baseline */
    int exit;           /* status, but for files that cannot be written */
    const char *advice; /* what to do next, where there is no baseline or a case is missing; "" */
    const char *since;  /* when its fault began, for the mail; NULL: not asked for */
    struct machine_difference *differences;
    size_t n_differences;
};

/* Was something accepted, and is nothing left of which a run complains? */
bool check_is_settled(const struct check_result *r);

/* What every output says, in the order of the terminal: name is the JUnit property and the key in
 * the JSON. */
struct check_fact {
    const char *name, *label, *word, *text;
    enum tone tone;
};
#define CHECK_FACTS 9
/* facts has room for CHECK_FACTS. Those without a text are left out. Returns how many there are. */
size_t check_facts(const struct check_result *r, struct check_fact *facts);

int output_text(FILE *out, const struct check_result *r);
int output_junit(FILE *out, const struct check_result *r);
int output_markdown(FILE *out, const struct check_result *r);
int output_json(FILE *out, const struct check_result *r);
int output_mail(FILE *out, const struct check_result *r);   /* nothing of a quiet night */
int output_github(FILE *out, const struct check_result *r); /* workflow commands */

/* Escapes of each, for their tests. */
void junit_text(FILE *out, const char *text);
void github_data(FILE *out, const char *text, bool property);

int cmd_check(int argc, char **argv);

/* ---- The command, and what becomes of the run in the history (kept.c) ---- */

struct check_options {
    const char *baseline, *history, *only, *reason, *junit, *markdown, *json, *mail;
    double margin, see, steal;
    uint64_t best_of;
    bool strict, github, update, accept, help;
    bool beside; /* --accept CASE against a folder: kept beside it, not in the history */
};

struct check_command {
    struct opts o;
    struct check_options options;
    const char **only; /* NULL-ended; NULL: all */
    bool forced;       /* the margin was given */
    const char *run;
    char history[1024]; /* its file, where the user named the folder */
    struct accepted accepted;
    char error[2048];
};

/* Adds the run to the history with the standing that its verdict and its environment ask for. *kept
 * says what became of it; its sentence does also where this fails. 0 or -errno with c->error set.
 */
int check_update(struct check_command *c, const struct gate *g, struct check_kept *kept);

/* Sets r->since (since.c), by the history, behind check_update(). It lives in the pairs' pool.
 *   a regressed case  the first of the runs in a row that have its loss, by their values: each went
 *                     at least two thirds of the way from the baseline to this run. A run without a
 *                     value, or between, neither counts nor ends the row
 *   another fault     the first of the runs in a row that are no baselines, and so it is called:
 *                     the history has no reason for it
 *   unknown           this run is not in the history, and others may not be either
 * 0 or -errno with c->error set. */
int check_since(struct check_command *c, struct check_result *r);

/* The same of a run in which nothing was measured, and how its environment differs. */
struct check_unmeasured {
    const char *since;
    struct environment_word environment;
    size_t n_environments; /* of baselines; 0: nothing was compared */
};
/* 0 or -errno. All lives in the pool. */
int check_since_unmeasured(struct check_command *c, const struct run_folder *run, struct pool *pool,
                           struct check_unmeasured *u);
/* --mail of a run in which nothing was measured; c->error says what happened. 0 or -errno. */
int check_mail_unmeasured(struct check_command *c);
/* Which cases --accept is of: 0; -ENOENT: none matches --only, -ENOMEM, with c->error set. Without
 * --only n is 0: all. */
int check_accept_beside(struct check_command *c, const struct gate *g, struct check_kept *kept);
int check_accepted_keys(struct check_command *c, const struct gate *g, const char *const **keys,
                        size_t *n);

#endif
