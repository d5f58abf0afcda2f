/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The history of runs, in one SQLite file (results/history.db): what each case's value was in each
 * run, its spread, and what the run was. Made on first use; safe with several writers at once (WAL
 * where the file system has it, a busy wait, one transaction a run); a writer that is killed leaves
 * no half of a run. WAL is taken on file systems of this machine alone: over a network it would
 * damage the file. The run folders may be deleted afterwards.
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
 * no history (another program's file, a damaged one, a newer schema), locked for too long; *err is
 * -ENOENT, -EBADMSG, -EPROTO, -EBUSY, or -ENOSYS where this plumb was built without SQLite. */
struct history_db *history_db_open(const char *path, bool create, int *err, char *error,
                                   size_t len);
/* The same with a patience of its own for other writers; that of the above is a minute. */
struct history_db *history_db_open_within(const char *path, bool create, int busy_ms, int *err,
                                          char *error, size_t len);
void history_db_close(struct history_db *db);

/* What a run of the history is to later ones. */
enum history_standing {
    HISTORY_SEEN,      /* it shows in the history, and is no baseline */
    HISTORY_BASELINE,  /* later runs may be held against it */
    HISTORY_START,     /* the same, and against none before it: its level was accepted */
    HISTORY_PROBATION, /* no baseline until a later run has settled whether its gains are true */
    HISTORY_APART      /* no baseline, as it was measured in another environment */
};

/* What is known of one case of a run, beside the run's standing. */
enum history_mark {
    HISTORY_CASE_START = 1, /* its level was accepted: later runs are held against it, in this
                               case, and against none before */
    HISTORY_GAIN,           /* better than the baselines, and to be settled by a later run */
    HISTORY_GAIN_TRUE,      /* a later run showed it, too: a start as above */
    HISTORY_GAIN_FALSE      /* the next run did not: in this case the run is no baseline */
};

/* A level that somebody accepted. */
struct history_acceptance {
    const char *run, *started_utc, *host, *suite; /* the run whose level it is */
    const char *reason, *by, *at_utc; /* why, and who said so when; "" where it is not known */
    const char *const *keys;          /* of its cases, n_keys of them; none: all cases */
    size_t n_keys;
};

/* A gain that was on probation, and is not any more. */
struct history_settled {
    const char *run, *key;
    bool is_true;
};

/* What a run was found to be, for the history to keep. */
struct history_judged {
    enum history_standing standing; /* what it is to be and, behind the call, what it is */
    const char *const *gains;       /* keys of cases that are proven to be better */
    size_t n_gains;
    const char *const *decided; /* keys of cases that were held against a baseline, which settle
                                   gains of earlier runs; none where the run was not measured to
                                   its end, or in another environment */
    size_t n_decided;
    const struct history_acceptance *acceptance; /* reason, by, at_utc and keys of it; NULL: none */
    struct pool *pool;               /* where what follows is to live; NULL: it is not asked for */
    struct history_settled *settled; /* behind the call: by this run */
    size_t n_settled;
};

/* Runs of a machine and suite of which the rows are kept: the last baselines, the first since the
 * last start, and the last of the others. */
#define HISTORY_WHOLE_RUNS 100
#define HISTORY_FIRST_RUNS 20
#define HISTORY_OTHER_RUNS 40

/* What became of a run that was added. */
enum history_added {
    HISTORY_NEW,  /* it was not there */
    HISTORY_SAME, /* it was there, as it is: at most its standing was written */
    HISTORY_CHANGED, /* it was there with other values, or with another state or machine: it is now as the
                        folder has it */
    HISTORY_SHORTER /* it was there with more launches than the folder has: an older copy; nothing is
                        taken from it */
};

/* Adds run number `run` of the report with all its cases that have a value, in one transaction.
 *
 * A baseline that was there stays one, and so does a start. Another run gets the standing that is
 * asked for where something of it is accepted, or where it had not ended when it was judged. What
 * is accepted is taken also where the folder has fewer launches than the history.
 *
 * The gains of a run on probation are kept. A later run that decided one of them settles them all:
 * a gain of its own in the same case makes it true, anything else makes it false. The run on
 * probation is a baseline then, and so is the later one where it has no other gain.
 *
 * 0, -ENOSPC, -EBUSY, -EACCES and other -errno, of which nothing is written. */
int history_db_add(struct history_db *db, const struct report *r, size_t run,
                   struct history_judged *judged, enum history_added *how, char *error, size_t len);

struct history_run {
    int64_t id;
    const char *name, *host, *suite, *started_utc, *version, *commit;
    enum history_standing standing;
    /* what the run was measured by, as JSON: history_environment(); NULL: not kept, or not asked
     * for */
    const char *environment;
    const char *state; /* "complete"; NULL: not known, or not asked for */
    bool has_rows;     /* its rows are kept; of those of history_db_choose() alone */
};

/* The runs of one host and suite ("" for all), in the order of their start; of the last `n` (0:
 * all). */
int history_db_runs(struct history_db *db, const char *host, const char *suite, size_t n,
                    struct history_run **runs, size_t *n_runs, char *error, size_t len);
/* Which runs are asked for to hold one against. */
struct history_sieve {
    size_t most;        /* the last so many baselines; 0: all */
    size_t anchors;     /* and the first so many since the last start */
    size_t spread;      /* and so many others, the newest */
    double steal_limit; /* as in harness/compare/pairs.h */
    const json_t *meta; /* run.json of the run that is held against them; needed for `spread` */
};

/* The runs that one is held against, and what each of them is to its cases: see
 * harness/decide/decide.h. */
struct history_choice {
    struct history_run *runs;           /* in the order of their start */
    size_t n;                           /* 0: there is no baseline */
    size_t n_level, n_anchor, n_spread; /* in most cases */
    struct pairs_roles *roles;          /* as pairs_options.roles */
    size_t n_roles;
    struct history_acceptance *accepted; /* since the last start, that included */
    size_t n_accepted;
    /* left out: of those that would have been of the level, the runs in all of whose launches
     * others took more of the CPU. They say nothing of this machine */
    size_t n_taken;
    struct pool pool; /* of the roles */
};

/* Of the runs before this one (by its name, host, suite and start) whose rows are there
 *   LEVEL   the last baselines, back to the last start
 *   ANCHOR  the first baselines from that start on, where they are not among these
 *   SPREAD  of the others that were measured to their end, and in the environment of this one, the
 *   newest
 * A case with a start of its own has roles of its own: what came before is SPREAD, and the anchors
 * are the first from there on (of the two newest of such starts). A run whose gain was false, or is
 * not settled, is SPREAD in that case. Of runs that started in the same second those came before
 * that were added before: all of them where this one is not there. *choice is to be released in any
 * case. */
int history_db_choose(struct history_db *db, const struct history_run *run,
                      const struct history_sieve *sieve, struct history_choice *choice, char *error,
                      size_t len);
void history_choice_release(struct history_choice *choice);

/* Was a run with the sieve's run.json measured in the environment of the baselines that
 * history_db_choose() would choose? *n: how many of them tell of theirs. All lives in the pool. */
int history_db_environment(struct history_db *db, const struct history_run *run,
                           const struct history_sieve *sieve, struct pool *pool,
                           struct environment_word *word, size_t *n, char *error, size_t len);
/* Is that run (by its name, host and start) one that such a sieve leaves out? */
bool history_db_is_taken(struct history_db *db, const struct history_run *run, double steal_limit);
/* Writes that run's folder again, without its samples and logs, into a folder that is there. 0 or
 * -errno with error set. */
int history_db_restore(struct history_db *db, int64_t id, const char *folder, char *error,
                       size_t len);
void history_runs_release(struct history_run *runs, size_t n);

/* A case over the runs that have it. */
struct history_series {
    const char *key, *label, *pipe; /* as in harness/compare/pairs.h */
    const char *host, *suite, *unit;
    bool higher_is_better;
    size_t n;
    const struct history_run **runs; /* n of them */
    double **launches;               /* launches' medians of each, in time order */
    /* what other guests took of the CPU in each of them, percent; NaN, or all NULL: not known */
    const double **steals;
    size_t *n_launches;
    const char **outcomes; /* of each run, as JSON: history_outcomes(); NULL: not kept */
};

/* A name in the outcomes that no column has. Without it they are of a plumb that did not keep what
 * a benchmark chose. */
#define HISTORY_CHOICES_KEPT "(choices)"

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
    bool judged; /* it is of a database: the standing of its runs is what plumb check found */
};

/* All series of what the filters let in ("" for all; `only`: patterns on key or label, NULL-ended).
 */
int history_db_read(struct history_db *db, const char *host, const char *suite,
                    const char *const *only, struct history *h, char *error, size_t len);
/* The same from a folder of run folders, without a database; all lives in h. A run that is damaged,
 * or cannot be read, is left out and told in h->left_out; where none can be, -EBADMSG: h->left_out
 * says why of each. */
int history_read_folders(const char *const *paths, size_t n, const char *const *only,
                         struct history *h, char *error, size_t len);
void history_release(struct history *h);

/* Series out of single values: what reading a database and reading folders have in common. */

/* A case in one run. Its texts live in the history's pool. */
struct history_entry {
    const char *key, *label, *pipe, *host, *suite, *unit;
    bool higher_is_better;
    size_t place; /* in the order of the suite */
    size_t run;   /* index in h->runs */
    double *launches;
    const double *steals; /* as in history_series; NULL: not known of any */
    size_t n_launches;
    const char *outcomes; /* NULL: not kept */
};

struct history_entries {
    struct history_entry *all;
    size_t n, room;
};

int history_entries_add(struct history_entries *e, const struct history_entry *entry);
/* Makes h->series out of the entries, whose order changes. h->runs is there, in time order. */
int history_build(struct history *h, struct history_entries *e);

/* What a run is, out of its run.json; the texts are the run folder's, "" or "unknown" where it does
 * not say. */
struct history_run history_run_of(const struct run_folder *run);

/* run.json without what is of each run alone (its name, times, the suite's text), as JSON that is
 * the same where that is: what pairs_machine_differences() tells differences by. NULL: there is
 * none, or no memory. */
const char *history_environment(struct pool *pool, const json_t *meta);

/* What was not asked for but found in a case's rows, such as the library's version and kernel, or
 * what the benchmark chose where the launch left it the choice, as JSON: {"kernel": ["2.6.3
 * avx512"], "isa": ["avx2", "avx512"]}, each of its launches' values once, with
 * HISTORY_CHOICES_KEPT. NULL: no memory. */
const char *history_outcomes(struct pool *pool, const struct pairs *p, const struct pair *pair);
/* Do these, "" for none, say the same of the case? Outcomes without HISTORY_CHOICES_KEPT do where
 * all but the choices is the same: of these they say nothing. */
bool history_same_outcomes(struct pool *pool, const struct pairs *p, const struct pair *pair,
                           const char *kept);

/* A case by its key alone, for people: "null noise=none number=1: time". The same in every run, as
 * labels are not, which leave out what does not vary in a run. */
const char *history_case_name(struct pool *pool, const char *key);

/* "run lost, all cases (jo, 2026-01-05T02:00:00Z): driver 580 costs 3 %"; a few cases are named. */
const char *history_acceptance_text(struct pool *pool, const struct history_acceptance *a);
/* What was accepted, for plumb history: lines, nothing where there is none, and an array. */
void history_print_accepted(FILE *out, struct history *h);
json_t *history_accepted_json(struct history *h);

/* The cases of one run alone, each READY one with its launches on both sides. As pairs_load(). */
int history_cases(struct pairs *p, const char *path, char *error, size_t len);

/* ---- A folder for the while: runs of the history lie there while they are read as folders ---- */

/* In $TMPDIR, else /tmp. *folder is the caller's, for scratch_remove(). 0; -ENOMEM or other -errno
 * with error set: *folder is NULL. */
int scratch_make(char **folder, char *error, size_t len);
/* With all that lies in it; NULL is let be. Where this process ends before, the folder goes, too. */
void scratch_remove(char *folder);

/* ---- What the files of the SQLite history share; nobody else uses it ---- */

struct sqlite3;
struct sqlite3_stmt;

struct history_db {
    struct sqlite3 *sqlite;
    char *path;
};

/* What went wrong last, as -errno, with the sentence: "cannot DO 'PATH': why". */
int history_sqlite_error(struct history_db *db, const char *what, char *error, size_t len);

/* Statements take their values in order: i an int64_t, t a text (NULL is null), r a double. NULL:
 * it went wrong. */
struct sqlite3_stmt *history_statement(struct history_db *db, const char *sql, const char *types,
                                       ...);
/* The same, run to its end. An SQLite code. */
int history_execute(struct history_db *db, const char *sql, const char *types, ...);
/* The number of that environment, which is added where it is new. 0: it went wrong, or json is
 * NULL. Within a transaction that writes. */
int64_t history_environment_id(struct history_db *db, const char *json);

/* The runs of this one's host and suite that came before it, in the order of their start. 0 or
 * -errno with error set. */
int history_earlier(struct history_db *db, const struct history_run *run, struct history_run **runs,
                    size_t *n, char *error, size_t len);
/* What the run was measured by, to be freed; NULL: not kept, or it cannot be read. */
char *history_environment_of(struct history_db *db, int64_t run);

/* What is known of single cases of runs. */
struct history_marked {
    int64_t run;
    const char *key;
    enum history_mark mark;
};

/* The marks of the runs of that run's host and suite; all lives in the pool. 0 or -errno with error
 * set. */
int history_marks(struct history_db *db, const struct history_run *run, struct pool *pool,
                  struct history_marked **all, size_t *n, char *error, size_t len);
/* What was accepted of a host's and suite's runs ("" for all), in the order of their start; all
 * lives in the pool. */
int history_accepted(struct history_db *db, const char *host, const char *suite, struct pool *pool,
                     struct history_acceptance **all, size_t *n, char *error, size_t len);

/* As history_db_restore(), but -EILSEQ where a file's name in the history leads out of the folder:
 * of the errors the one that is of this run alone, and for good. */
int history_restore(struct history_db *db, int64_t id, const char *folder, char *error, size_t len);

/* "" where it is NULL. */
const char *history_column_text(struct sqlite3_stmt *s, int column);

/* -ENOMEM, with its sentence. */
int history_out_of_memory(char *error, size_t len);

/* A run on its way into the history: history_db_sqlite_add.c, and its marks. */
struct adding {
    struct history_db *db;
    const char *path;
    const struct run_folder *folder; /* what lies there now */
    struct history_run run;
    const char *state; /* "complete"; "" */
    int64_t ended;     /* launches that have, well or not */
    enum history_standing standing;
    struct history_judged *judged;
    struct pool *settled_in; /* where what it settles is to live */
    struct pairs cases;
    char *error;
    size_t len;
};

/* Settles the gains of earlier runs by those of this one, which may be a baseline then. Before the
 * run is written, within the transaction; id: it is there already, 0: it is not. 0 or -errno with
 * a->error set. */
int marks_settle(struct adding *a, int64_t id);
/* Once a->run is written: keeps who settled what, what was accepted, and the gains of a run on
 * probation. anew: also of a run that was there. */
int marks_write(struct adding *a, bool anew);

#endif
