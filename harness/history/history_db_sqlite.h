/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the SQLite history share; nobody else includes it. */
#ifndef PLUMB_HISTORY_DB_SQLITE_H
#define PLUMB_HISTORY_DB_SQLITE_H

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>

#include "harness/compare/pairs.h"
#include "harness/history/history_db.h"

struct history_db {
    sqlite3 *sqlite;
    char *path;
};

/* What went wrong last, as -errno, with the sentence: "cannot DO 'PATH': why". */
int history_sqlite_error(struct history_db *db, const char *what, char *error, size_t len);

/* Statements take their values in order: i an int64_t, t a text (NULL is null), r a double. NULL:
 * it went wrong. */
sqlite3_stmt *history_statement(struct history_db *db, const char *sql, const char *types, ...);
/* The same, run to its end. An SQLite code. */
int history_execute(struct history_db *db, const char *sql, const char *types, ...);
/* The file's schema; -1: it cannot be read. */
int64_t history_schema(struct history_db *db);
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
static inline const char *history_column_text(sqlite3_stmt *s, int column)
{
    const char *text = (const char *)sqlite3_column_text(s, column);

    return text ? text : "";
}

static inline int history_out_of_memory(char *error, size_t len)
{
    snprintf(error, len, "out of memory");
    return -ENOMEM;
}

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
