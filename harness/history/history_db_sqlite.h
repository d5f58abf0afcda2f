/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the SQLite history share; nobody else includes it. */
#ifndef PLUMB_HISTORY_DB_SQLITE_H
#define PLUMB_HISTORY_DB_SQLITE_H

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>

#include "harness/history/history_db.h"

#define HISTORY_APPLICATION 0x504c4d42 /* "PLMB", in the file's header */
#define HISTORY_SCHEMA      4
#define HISTORY_BUSY_MS     60000

struct history_db {
    sqlite3 *sqlite;
    char *path;
};

/* What went wrong last, as -errno, with the sentence: "cannot DO 'PATH': why". */
int history_sqlite_error(struct history_db *db, const char *what, char *error, size_t len);

/* Statements take their values in order: i an int64_t, t a text (NULL is null), r a double. NULL: it went
 * wrong. */
sqlite3_stmt *history_statement(struct history_db *db, const char *sql, const char *types, ...);
/* The same, run to its end. An SQLite code. */
int history_execute(struct history_db *db, const char *sql, const char *types, ...);
/* The file's schema; -1: it cannot be read. */
int64_t history_schema(struct history_db *db);
/* Makes the tables, or those that an older schema lacks, from what the file has. 0 or -errno with error set. */
int history_schema_make(struct history_db *db, char *error, size_t len);
/* The number of that environment, which is added where it is new. 0: it went wrong, or json is NULL. Within a
 * transaction that writes. */
int64_t history_environment_id(struct history_db *db, const char *json);

/* The runs of this one's host and suite that came before it, in the order of their start. 0 or -errno with error set. */
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

/* The marks of the runs of that run's host and suite; all lives in the pool. 0 or -errno with error set. */
int history_marks(struct history_db *db, const struct history_run *run, struct pool *pool,
                  struct history_marked **all, size_t *n, char *error, size_t len);
/* What was accepted of a host's and suite's runs ("" for all), in the order of their start; all lives in
 * the pool. */
int history_accepted(struct history_db *db, const char *host, const char *suite, struct pool *pool,
                     struct history_acceptance **all, size_t *n, char *error, size_t len);

/* Fills in what others took of the CPU in the launches whose rows the file keeps. 0 or -errno with error set. Within a
 * transaction that writes. */
int history_fill_steal(struct history_db *db, char *error, size_t len);

/* As history_db_restore(), but -EILSEQ where a file's name in the history leads out of the folder: of the errors the one that
 * is of this run alone, and for good. */
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

/* One number; `other` where there is no row or it went wrong. */
int64_t history_number(struct history_db *db, const char *sql, int64_t other);

#endif
