/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The history of runs, in one SQLite file (results/history.db): what each case's value was in each
 * run, its spread, and what the run was. Made on first use; safe with several writers at once (a
 * busy wait, one transaction a run); a writer that is killed leaves no half of a run. The run
 * folders may be deleted afterwards.
 *
 * Of some runs of a machine and suite (HISTORY_WHOLE_RUNS) the rows themselves are kept, too, so
 * that later runs can be held against them as against their folders, with everything that makes
 * figures comparable. Of others the values stay.
 *
 * A run is known by its name, host and start: added twice it is there once. Where the folder says
 * something else by then (it was added before it had ended, and was resumed) the history takes
 * that. Series are of one machine and one suite: another host's figures, or another suite's, are
 * another series.
 */
#ifndef PLUMB_HISTORY_DB_H
#define PLUMB_HISTORY_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "harness/compare/pairs.h"

/* --history of the commands: a file, or the folder in which it is called so. */
#define HISTORY_FILE    "history.db"
#define HISTORY_DEFAULT "results/" HISTORY_FILE
#define HISTORY_ARG     "PATH"
#define HISTORY_HELP    "database of the history, or the folder of its " HISTORY_FILE
/* The file that --history names, in path where it names a folder. */
const char *history_db_path(const char *asked, char *path, size_t len);

struct history_db;

/* create: makes the file where there is none, in a folder that is there; no folder but results/ is
 * made, since a path that was mistyped would have one. NULL with error set: no such file or folder,
 * no history (another program's file, a damaged one, another schema), locked for too long; *err is
 * -ENOENT, -EBADMSG, -EPROTO or -EBUSY. */
struct history_db *history_db_open(const char *path, bool create, int *err, char *error,
                                   size_t len);
/* The same with a patience of its own for other writers; that of the above is a minute. */
struct history_db *history_db_open_within(const char *path, bool create, int busy_ms, int *err,
                                          char *error, size_t len);
/* An empty one in memory, for runs of a folder: history_db_add_folder(). */
struct history_db *history_db_open_memory(int *err, char *error, size_t len);
void history_db_close(struct history_db *db);

/* A change that somebody accepted: a new reference. In all cases, or in those of the keys, no run
 * before this one is a baseline any more, and this one is the first. */
struct history_acceptance {
    const char *run, *started_utc, *host, *suite; /* the first run of the new reference */
    const char *reason, *by, *at_utc; /* why, and who said so when; "" where it is not known */
    const char *const *keys;          /* of its cases, n_keys of them; none: all cases */
    size_t n_keys;
};

/* What a run was found to be, for the history to keep. */
struct history_judged {
    bool good; /* a baseline of later runs; behind the call, what the history has of it */
    const struct history_acceptance *acceptance; /* reason, by, at_utc and keys of it; NULL: none */
};

/* Runs of a machine and suite of which the rows are kept: the last good ones, and the first ones of
 * each reference that holds. */
#define HISTORY_WHOLE_RUNS 100
#define HISTORY_FIRST_RUNS 20

/* What became of a run that was added. */
enum history_added {
    HISTORY_NEW,  /* it was not there */
    HISTORY_SAME, /* it was there, as it is; a run that was good stays so, and one that was not */
    HISTORY_CHANGED, /* it was there with other values, or with another state or machine: it is now
                        as the folder has it */
    HISTORY_SHORTER  /* it was there with more launches than the folder has: an older copy; nothing
                        is taken from it */
};

/* Adds the run of that folder with all its cases that have a value, in one transaction. What is
 * accepted is taken also where the folder has fewer launches than the history. 0; as pairs_load(),
 * -ENOSPC, -EBUSY, -EACCES and other -errno, of which nothing is written. */
int history_db_add(struct history_db *db, const char *path, struct history_judged *judged,
                   enum history_added *how, char *error, size_t len);
/* Adds a run without its values, as a good one, with this id: its rows stay in its folder. One that
 * is there already is not added again. */
int history_db_add_folder(struct history_db *db, const struct run_folder *run, int64_t id,
                          char *error, size_t len);

struct history_run {
    int64_t id;
    const char *name, *host, *suite, *started_utc, *version, *commit;
    bool good; /* measured to its end, and nothing lost, wrong, failed, missing or likely lost */
    /* what the run was measured by, as JSON: history_environment(); NULL: not kept */
    const char *environment;
    /* Of that, "" where it is not known: the filter of the cases, the suite's text by its hash, and
     * "AMD EPYC 9654, 64 cores". */
    const char *only, *config_hash, *machine;
};

/* The runs of one host and suite ("" for all), in the order of their start; all lives in the pool.
 */
int history_db_runs(struct history_db *db, const char *host, const char *suite, struct pool *pool,
                    struct history_run **runs, size_t *n, char *error, size_t len);
/* Which runs are asked for to hold one against. */
struct history_sieve {
    size_t most; /* the last so many baselines, and the first so many; 0: all, as the level */
    bool later;  /* also those that began after it */
    double steal_limit; /* as in harness/compare/pairs.h */
};

/* The runs that one is held against, and what each of them is to its cases. */
struct history_choice {
    struct history_run *runs;  /* in the order of their start */
    size_t n;                  /* 0: there is no baseline */
    size_t n_level, n_anchor;  /* in most cases */
    struct pairs_roles *roles; /* as pairs_options.roles */
    size_t n_roles;
    struct history_acceptance *accepted; /* since the last change that was accepted in all cases */
    size_t n_accepted;
    /* left out: of those that would have been of the level, the runs in all of whose launches
     * others took more of the CPU. They say nothing of this machine */
    size_t n_taken;
    struct pool pool;
};

/* Of the runs before this one (by its name, host, suite and start) whose rows are there. A baseline
 * of a case is a good run, or the one of which the case was accepted, since the last accepted change
 * of the case. The last ones are its level, the first ones its anchors where they are not among
 * these. Of runs that started in the same second those came before that were added before: all of
 * them where this one is not there. *choice is to be released in any case. */
int history_db_choose(struct history_db *db, const struct history_run *run,
                      const struct history_sieve *sieve, struct history_choice *choice, char *error,
                      size_t len);
void history_choice_release(struct history_choice *choice);

/* Is that run (by its name, host and start) one that such a sieve leaves out? */
bool history_db_is_taken(struct history_db *db, const struct history_run *run, double steal_limit);
/* Writes that run's folder again, without its samples and logs, into a folder that is there. 0 or
 * -errno with error set. */
int history_db_restore(struct history_db *db, int64_t id, const char *folder, char *error,
                       size_t len);

/* A case over the runs that have it. */
struct history_series {
    const char *key, *label, *pipe; /* as in harness/compare/pairs.h */
    const char *host, *suite, *unit;
    bool higher_is_better;
    size_t n;                        /* 1 at least */
    const struct history_run **runs; /* n of them, in the order of their start */
    double **launches;               /* launches' medians of each, in time order */
    /* what other guests took of the CPU in each of them, percent; NaN: not known */
    double **steals;
    size_t *n_launches;
    const char **outcomes; /* of each run, as JSON: history_outcomes(); NULL: not kept */
};

/* What a run, number i of the series, has of the case: */
struct history_value {
    double value;   /* the centre (stats_centre()) of the launches that count; NaN: none does */
    double taken;   /* where none counts, the centre of those that others took; else NaN */
    size_t n_taken; /* launches in which others took more of the CPU */
    size_t n_bad;   /* and those without a number above 0: neither counts */
};
struct history_value history_value(const struct history_series *s, size_t i, double steal_limit);

struct history {
    struct pool pool;         /* of everything below */
    struct history_run *runs; /* in the order of their start */
    size_t n_runs;
    struct history_series *series; /* by host, suite, then in the order of the suite */
    size_t n_series;
    struct history_acceptance *accepted; /* of its runs, in the order of their start */
    size_t n_accepted;
    const char **left_out; /* a sentence for each folder that cannot be read: which file, and why */
    size_t n_left_out;
    bool judged; /* it is of a database: plumb check found which of its runs are good */
};

/* All series of what the filters let in ("" for all; `only`: patterns on key or label, NULL-ended).
 */
int history_db_read(struct history_db *db, const char *host, const char *suite,
                    const char *const *only, struct history *h, char *error, size_t len);
/* The same of a folder of run folders, by a database in memory. A run that is damaged, or cannot be
 * read, is left out and told in h->left_out; where none can be, -EBADMSG: h->left_out says why of
 * each. */
int history_read_folders(const char *const *paths, size_t n, const char *const *only,
                         struct history *h, char *error, size_t len);
void history_release(struct history *h);

/* What a run is, out of its run.json; the texts are the run folder's, "" or "unknown" where it does
 * not say. */
struct history_run history_run_of(const struct run_folder *run);

/* run.json without what is of each run alone (its name, times, the suite's text), as JSON that is
 * the same where that is: what pairs_machine_differences() tells differences by. NULL: there is
 * none. */
const char *history_environment(struct pool *pool, const json_t *meta);

/* What was not asked for but found in a case's rows, such as the library's version and kernel, or
 * what the benchmark chose where the launch left it the choice, as JSON: {"kernel": ["2.6.3
 * avx512"], "isa": ["avx2", "avx512"]}, each of its launches' values once. */
const char *history_outcomes(struct pool *pool, const struct pairs *p, const struct pair *pair);
/* A case by its key alone, for people: "null noise=none number=1: time". The same in every run, as
 * labels are not, which leave out what does not vary in a run. */
const char *history_case_name(struct pool *pool, const char *key);

/* "run lost, all cases (jo, 2026-01-05T02:00:00Z): driver 580 costs 3 %"; a few cases are named. */
const char *history_acceptance_text(struct pool *pool, const struct history_acceptance *a);
/* null is what is not known, or all cases. */
json_t *history_acceptance_json(struct pool *pool, const struct history_acceptance *a);

/* ---- A folder for the while: runs of the history lie there while they are read as folders ---- */

/* In $TMPDIR, else /tmp. *folder is the caller's, for scratch_remove(). 0; -errno with error set:
 * *folder is NULL. */
int scratch_make(char **folder, char *error, size_t len);
/* With all that lies in it; NULL is let be. */
void scratch_remove(char *folder);

/* ---- What the files of the SQLite history share; nobody else uses it ---- */

struct sqlite3;
struct sqlite3_stmt;

struct history_db {
    struct sqlite3 *sqlite;
    char *path;
    bool in_memory;
};

/* What went wrong last, as -errno, with the sentence: "cannot DO 'PATH': why". */
int history_sqlite_error(struct history_db *db, const char *what, char *error, size_t len);

/* Statements take their values in order: i an int64_t, t a text (NULL is null), r a double. NULL:
 * it went wrong. */
struct sqlite3_stmt *history_statement(struct history_db *db, const char *sql, const char *types,
                                       ...);
/* The same, run to its end. An SQLite code. */
int history_execute(struct history_db *db, const char *sql, const char *types, ...);
#endif
