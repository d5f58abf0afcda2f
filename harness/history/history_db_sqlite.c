/* SPDX-License-Identifier: Apache-2.0 */
/* The history in SQLite: the file and its schema. See history_db.h. */
#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "harness/compare/pairs.h"
#include "harness/history/history_db.h"

#define HISTORY_APPLICATION 0x504c4d42 /* "PLMB", in the file's header */
#define HISTORY_SCHEMA      6
#define HISTORY_BUSY_MS     60000

/* ---- The tables of the history ---- */

static const char schema[] =
    "CREATE TABLE environments (id INTEGER PRIMARY KEY, json TEXT NOT NULL);"
    /* good: struct history_run; state, ended: of the run and its launches; digest: of its files;
     * least_steal: the least that others took of the CPU in a launch, percent, 0 where one does not
     * say; NULL: no launches */
    "CREATE TABLE runs (id INTEGER PRIMARY KEY, name TEXT NOT NULL, host TEXT NOT NULL,"
    " suite TEXT NOT NULL, started_utc TEXT NOT NULL, version TEXT NOT NULL,"
    " commit_id TEXT NOT NULL, good INTEGER NOT NULL,"
    " environment INTEGER REFERENCES environments, state TEXT, ended INTEGER, digest TEXT,"
    " least_steal REAL, UNIQUE (name, host, started_utc));"
    "CREATE TABLE series (id INTEGER PRIMARY KEY, host TEXT NOT NULL, suite TEXT NOT NULL,"
    " key TEXT NOT NULL, label TEXT NOT NULL, pipe TEXT NOT NULL, unit TEXT NOT NULL,"
    " higher_is_better INTEGER NOT NULL, place INTEGER NOT NULL, UNIQUE (host, suite, key));"
    /* steal: what other guests took of the CPU, in percent; NULL: not known */
    "CREATE TABLE launches (series INTEGER NOT NULL REFERENCES series, run INTEGER NOT NULL"
    " REFERENCES runs, launch INTEGER NOT NULL, value REAL NOT NULL, steal REAL,"
    " PRIMARY KEY (series, run, launch)) WITHOUT ROWID;"
    "CREATE TABLE files (run INTEGER NOT NULL REFERENCES runs, name TEXT NOT NULL,"
    " text BLOB NOT NULL, PRIMARY KEY (run, name));"
    "CREATE INDEX runs_by_time ON runs (host, suite, started_utc);"
    "CREATE TABLE outcomes (series INTEGER NOT NULL REFERENCES series, run INTEGER NOT NULL"
    " REFERENCES runs, json TEXT NOT NULL, PRIMARY KEY (series, run)) WITHOUT ROWID;"
    /* the run is the first of a new reference: of its cases in accepted_cases; none there: of all
     */
    "CREATE TABLE accepted (id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs,"
    " at_utc TEXT NOT NULL, by TEXT NOT NULL, reason TEXT NOT NULL);"
    "CREATE TABLE accepted_cases (accepted INTEGER NOT NULL REFERENCES accepted, key TEXT NOT NULL,"
    " PRIMARY KEY (accepted, key)) WITHOUT ROWID;";

static int errno_of(sqlite3 *sqlite)
{
    switch (sqlite3_errcode(sqlite)) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return -EBUSY;
    case SQLITE_FULL:
        return -ENOSPC;
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
        return -EACCES;
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
        return -EBADMSG;
    case SQLITE_NOMEM:
        return -ENOMEM;
    case SQLITE_IOERR:
        return sqlite3_system_errno(sqlite) == ENOSPC ? -ENOSPC : -EIO;
    case SQLITE_TOOBIG:
        return -EFBIG;
    default:
        return -EIO;
    }
}

int history_sqlite_error(struct history_db *db, const char *what, char *error, size_t len)
{
    static const struct {
        int err;
        const char *advice;
    } known[] = {
        {-EBUSY, "another program has held it for too long: see who, and try again"},
        {-ENOSPC, "no space is left there, or a limit on file sizes is reached; nothing of the run "
                  "was added"},
        {-EACCES, "the file or its folder cannot be written or opened: name another file, or give "
                  "this user leave to write both"},
        {-EBADMSG,
         "the file is damaged, or is no SQLite file: take a copy back, or name a new file"},
        {-ENOMEM, "out of memory"}};
    int err = errno_of(db->sqlite);
    const char *why = NULL;

    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        why = known[i].err == err ? known[i].advice : why;
    snprintf(error, len, "cannot %s '%s': %s%s%s%s", what, db->path, why ? why : "",
             why ? " (" : "", sqlite3_errmsg(db->sqlite), why ? ")" : "");
    return err;
}

__attribute__((format(printf, 4, 5))) static int refuse(int err, char *error, size_t len,
                                                        const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(error, len, format, args);
    va_end(args);
    return err;
}

static sqlite3_stmt *make_statement(struct history_db *db, const char *sql, const char *types,
                                    va_list args)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(db->sqlite, sql, -1, &statement, NULL);

    for (int i = 0; code == SQLITE_OK && types[i]; i++) {
        if (types[i] == 'i')
            code = sqlite3_bind_int64(statement, i + 1, va_arg(args, int64_t));
        else if (types[i] == 'r')
            code = sqlite3_bind_double(statement, i + 1, va_arg(args, double));
        else
            code = sqlite3_bind_text(statement, i + 1, va_arg(args, const char *), -1,
                                     SQLITE_TRANSIENT);
    }
    if (code == SQLITE_OK)
        return statement;
    sqlite3_finalize(statement);
    return NULL;
}

sqlite3_stmt *history_statement(struct history_db *db, const char *sql, const char *types, ...)
{
    va_list args;

    va_start(args, types);
    sqlite3_stmt *statement = make_statement(db, sql, types, args);
    va_end(args);
    return statement;
}

int history_execute(struct history_db *db, const char *sql, const char *types, ...)
{
    va_list args;

    va_start(args, types);
    sqlite3_stmt *statement = make_statement(db, sql, types, args);
    va_end(args);
    if (!statement)
        return sqlite3_errcode(db->sqlite);
    while (sqlite3_step(statement) == SQLITE_ROW)
        ;
    return sqlite3_finalize(statement);
}

/* One number; `other` where there is no row or it went wrong. */
static int64_t history_number(struct history_db *db, const char *sql, int64_t other)
{
    sqlite3_stmt *statement = history_statement(db, sql, "");

    if (statement && sqlite3_step(statement) == SQLITE_ROW)
        other = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return other;
}

static int64_t schema_of(struct history_db *db)
{
    return history_number(db, "PRAGMA user_version", -1);
}

/* Makes the tables of an empty file. Others may be at it at this moment: one does it, the rest find
 * it done. */
static int make_schema(struct history_db *db, char *error, size_t len)
{
    char mark[96];

    snprintf(mark, sizeof(mark), "PRAGMA application_id = %d; PRAGMA user_version = %d;",
             HISTORY_APPLICATION, HISTORY_SCHEMA);
    if (history_execute(db, "BEGIN IMMEDIATE", "") == SQLITE_OK &&
        (schema_of(db) == HISTORY_SCHEMA ||
         (sqlite3_exec(db->sqlite, schema, NULL, NULL, NULL) == SQLITE_OK &&
          sqlite3_exec(db->sqlite, mark, NULL, NULL, NULL) == SQLITE_OK)) &&
        history_execute(db, "COMMIT", "") == SQLITE_OK)
        return 0;
    int err = history_sqlite_error(db, "make the tables of the history", error, len);
    sqlite3_exec(db->sqlite, "ROLLBACK", NULL, NULL, NULL);
    return err;
}

static int settle(struct history_db *db, bool create, char *error, size_t len)
{
    static const char count[] = "SELECT count(*) FROM sqlite_master";
    int64_t things = history_number(db, count, -1);
    int err = 0;

    if (things < 0)
        return history_sqlite_error(db, "open the history", error, len);
    if (!things && !schema_of(db) && !create)
        return refuse(-ENOENT, error, len, "'%s' holds no history yet", db->path);
    if (history_number(db, count, -1) == 0 && !schema_of(db))
        err = make_schema(db, error, len);
    if (err)
        return err;
    int64_t version = schema_of(db), application = history_number(db, "PRAGMA application_id", -1);

    if (version < 0 || application < 0)
        return history_sqlite_error(db, "read the history", error, len);
    if (application != HISTORY_APPLICATION || !version)
        return refuse(-EPROTO, error, len,
                      "'%s' is a database of another program, and no history: name another file",
                      db->path);
    if (version != HISTORY_SCHEMA)
        return refuse(
            -EPROTO, error, len,
            "the history '%s' has schema %lld, and this plumb has %d: begin a new one, in "
            "another file",
            db->path, (long long)version, HISTORY_SCHEMA);
    return 0;
}

/* A folder that is not there is a path that was mistyped, but for the one that plumb run makes,
 * too. */
static int need_folder(const char *path, char *error, size_t len)
{
    char *folder = xstrdup(path), *slash = strrchr(folder, '/');
    int err = 0;

    if (slash && slash != folder) {
        *slash = '\0';
        if (!strcmp(folder, "results"))
            mkdir(folder, 0777);
        if (access(folder, F_OK) && errno == ENOENT)
            err = refuse(-ENOENT, error, len,
                         "there is no folder '%s' for the history '%s': is the name mistyped? Make "
                         "the folder first if it is meant",
                         folder, path);
    }
    free(folder);
    return err;
}

static int open_all(struct history_db *db, bool create, int busy_ms, char *error, size_t len)
{
    struct stat st;
    int err = create ? need_folder(db->path, error, len) : 0;

    if (err)
        return err;
    if (!create && stat(db->path, &st) && errno == ENOENT)
        return refuse(-ENOENT, error, len, "there is no history '%s'", db->path);
    if (sqlite3_open_v2(db->path, &db->sqlite,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX |
                            (create ? SQLITE_OPEN_CREATE : 0),
                        NULL) != SQLITE_OK)
        return history_sqlite_error(db, "open the history", error, len);
    sqlite3_busy_timeout(db->sqlite, busy_ms);
    return settle(db, create, error, len);
}

static struct history_db *open_as(const char *path, bool create, int busy_ms, bool in_memory,
                                  int *err, char *error, size_t len)
{
    struct history_db *db = xcalloc(1, sizeof(*db));

    /* SQLite has names that are no files, such as ":memory:". */
    bool special = !in_memory && (!*path || *path == ':' || !strncmp(path, "file:", 5));
    db->path = xasprintf("%s%s", special ? "./" : "", path);
    db->in_memory = in_memory;
    *err = open_all(db, create, busy_ms, error, len);
    if (!*err)
        return db;
    history_db_close(db);
    return NULL;
}

struct history_db *history_db_open_within(const char *path, bool create, int busy_ms, int *err,
                                          char *error, size_t len)
{
    return open_as(path, create, busy_ms, false, err, error, len);
}

struct history_db *history_db_open_memory(int *err, char *error, size_t len)
{
    return open_as(":memory:", true, 0, true, err, error, len);
}

struct history_db *history_db_open(const char *path, bool create, int *err, char *error, size_t len)
{
    return history_db_open_within(path, create, HISTORY_BUSY_MS, err, error, len);
}

void history_db_close(struct history_db *db)
{
    if (!db)
        return;
    sqlite3_close(db->sqlite);
    free(db->path);
    free(db);
}
