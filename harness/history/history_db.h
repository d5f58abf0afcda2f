/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The history of runs, in one SQLite file (results/history.db): what each case's value was in each
 * run, its spread, and what the run was. Made on first use; safe with several writers at once (WAL
 * where the file system has it, a busy wait, one transaction a run); a writer that is killed leaves
 * no half of a run. WAL is taken on file systems of this machine alone: over a network it would
 * damage the file. The run folders may be deleted afterwards.
 *
 * Of the last HISTORY_WHOLE_RUNS of a machine and suite the rows themselves are kept, too, so that
 * later runs can be held against them as against their folders, with everything that makes figures
 * comparable. Of older ones the values stay.
 *
 * A run is known by its name, host and start: added twice it is there once. Series are of one
 * machine and one suite: another host's figures, or another suite's, are another series.
 */
#ifndef PLUMB_HISTORY_DB_H
#define PLUMB_HISTORY_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/report/model.h"

struct history_db;

/* create: makes the file where there is none, in a folder that is there; no folder but results/ is made, since
 * a path that was mistyped would have one. NULL with error set: no such file or folder, no history (another
 * program's file, a damaged one, a newer schema), locked for too long; *err is -ENOENT, -EBADMSG, -EPROTO, -EBUSY,
 * or -ENOSYS where this plumb was built without SQLite. */
struct history_db *history_db_open(const char *path, bool create, int *err, char *error,
                                   size_t len);
/* The same with a patience of its own for other writers; that of the above is a minute. */
struct history_db *history_db_open_within(const char *path, bool create, int busy_ms, int *err,
                                          char *error, size_t len);
void history_db_close(struct history_db *db);

/* What a run of the history is to later ones. */
enum history_standing {
    HISTORY_SEEN,     /* it shows in the history, and is no baseline */
    HISTORY_BASELINE, /* later runs may be held against it */
    HISTORY_START     /* the same, and against none before it: its level was accepted */
};

#define HISTORY_WHOLE_RUNS 100

/* Adds run number `run` of the report with all its cases that have a value, as a baseline. *known:
 * it was there; then nothing changes. 0, -ENOSPC, -EBUSY, -EACCES and other -errno. */
int history_db_add(struct history_db *db, const struct report *r, size_t run, bool *known,
                   char *error, size_t len);
/* The same with a standing. A run that was there keeps its own, unless it is now a start. */
int history_db_add_as(struct history_db *db, const struct report *r, size_t run,
                      enum history_standing standing, bool *known, char *error, size_t len);

struct history_run {
    int64_t id;
    const char *name, *host, *suite, *started_utc, *version, *commit;
    enum history_standing standing;
};

/* The runs of one host and suite ("" for all), in the order of their start; of the last `n` (0: all). */
int history_db_runs(struct history_db *db, const char *host, const char *suite, size_t n,
                    struct history_run **runs, size_t *n_runs, char *error, size_t len);
/* The runs that this one (by its name, host, suite and start) may be held against: the last n baselines
 * before it, back to the last start, of which the rows are there. Of runs that started in the same
 * second those came before that were added before: all of them where this one is not there. */
int history_db_baselines(struct history_db *db, const struct history_run *run, size_t n,
                         struct history_run **runs, size_t *n_runs, char *error, size_t len);
/* Writes that run's folder again, without its samples and logs, into a folder that is there. */
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
    size_t *n_launches;
};

struct history {
    struct pool pool;         /* of everything below */
    struct history_run *runs; /* in the order of their start */
    size_t n_runs;
    struct history_series *series; /* by host, suite, then in the order of the suite */
    size_t n_series;
};

/* All series of what the filters let in ("" for all; `only`: patterns on key or label, NULL-ended). */
int history_db_read(struct history_db *db, const char *host, const char *suite,
                    const char *const *only, struct history *h, char *error, size_t len);
/* The same from a folder of run folders, without a database; all lives in h. */
int history_read_folders(const char *const *paths, size_t n, const char *const *only,
                         struct history *h, char *error, size_t len);
void history_release(struct history *h);

#endif
