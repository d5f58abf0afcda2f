/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the history, and how an older file gets those that it lacks: see history_db_sqlite.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "harness/history/history_db_build.h"
#include "harness/history/history_db_sqlite.h"

/* What each schema adds to the one before. A file is read as it is, of whatever schema; who writes to it brings it
 * to the newest. */
static const char *const schemas[HISTORY_SCHEMA] = {
    "CREATE TABLE runs (id INTEGER PRIMARY KEY, name TEXT NOT NULL, host TEXT NOT NULL,"
    " suite TEXT NOT NULL, started_utc TEXT NOT NULL, version TEXT NOT NULL,"
    " commit_id TEXT NOT NULL, standing INTEGER NOT NULL, UNIQUE (name, host, started_utc));"
    "CREATE TABLE series (id INTEGER PRIMARY KEY, host TEXT NOT NULL, suite TEXT NOT NULL,"
    " key TEXT NOT NULL, label TEXT NOT NULL, pipe TEXT NOT NULL, unit TEXT NOT NULL,"
    " higher_is_better INTEGER NOT NULL, place INTEGER NOT NULL, UNIQUE (host, suite, key));"
    "CREATE TABLE launches (series INTEGER NOT NULL REFERENCES series, run INTEGER NOT NULL"
    " REFERENCES runs, launch INTEGER NOT NULL, value REAL NOT NULL,"
    " PRIMARY KEY (series, run, launch)) WITHOUT ROWID;"
    "CREATE TABLE files (run INTEGER NOT NULL REFERENCES runs, name TEXT NOT NULL,"
    " text BLOB NOT NULL, PRIMARY KEY (run, name));"
    "CREATE INDEX runs_by_time ON runs (host, suite, started_utc);",
    /* 2: what a run was measured by, once for all runs where it is the same, and what its rows say of that. */
    "CREATE TABLE environments (id INTEGER PRIMARY KEY, json TEXT NOT NULL);"
    "ALTER TABLE runs ADD COLUMN environment INTEGER REFERENCES environments;"
    "ALTER TABLE runs ADD COLUMN state TEXT;"
    "ALTER TABLE runs ADD COLUMN ended INTEGER;" /* launches */
    "CREATE TABLE outcomes (series INTEGER NOT NULL REFERENCES series, run INTEGER NOT NULL"
    " REFERENCES runs, json TEXT NOT NULL, PRIMARY KEY (series, run)) WITHOUT ROWID;",
    /* 3: what other guests took of the CPU meanwhile, in percent; NULL: not known. */
    "ALTER TABLE launches ADD COLUMN steal REAL;",
    /* 4: what somebody accepted, and what is known of single cases of a run: enum history_mark. */
    "CREATE TABLE accepted (id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs,"
    " at_utc TEXT NOT NULL, by TEXT NOT NULL, reason TEXT NOT NULL);"
    "CREATE TABLE accepted_cases (accepted INTEGER NOT NULL REFERENCES accepted, key TEXT NOT NULL,"
    " PRIMARY KEY (accepted, key)) WITHOUT ROWID;"
    "CREATE TABLE marks (run INTEGER NOT NULL REFERENCES runs, key TEXT NOT NULL,"
    " mark INTEGER NOT NULL, settled_by INTEGER REFERENCES runs,"
    " PRIMARY KEY (run, key)) WITHOUT ROWID;",
};

int64_t history_schema(struct history_db *db)
{
    return history_number(db, "PRAGMA user_version", -1);
}

int64_t history_environment_id(struct history_db *db, const char *json)
{
    static const char find[] = "SELECT id FROM environments WHERE json = ?";
    int64_t id = 0;

    for (int try = 0; json && !id && try < 2; try++) {
        sqlite3_stmt *s;

        if (try && history_execute(db, "INSERT INTO environments (json) VALUES (?)", "t", json))
            return 0;
        s = history_statement(db, find, "t", json);
        if (s && sqlite3_step(s) == SQLITE_ROW)
            id = sqlite3_column_int64(s, 0);
        sqlite3_finalize(s);
    }
    return id;
}

/* Of the run whose run.json the file keeps. One that is damaged tells nothing; that memory is short may pass. */
static int fill_run(struct history_db *db, int64_t run, const char *text, size_t size)
{
    struct pool pool = {0};
    json_error_t at;
    json_t *meta = json_loadb(text, size, 0, &at);
    const char *state = json_string_value(json_object_get(meta, "state"));
    const char *environment = history_environment(&pool, meta);
    int64_t id = history_environment_id(db, environment);
    int code = SQLITE_OK;

    if (!environment &&
        (json_is_object(meta) || (!meta && json_error_code(&at) == json_error_out_of_memory)))
        code = SQLITE_NOMEM;
    else if (environment && !id)
        code = SQLITE_ERROR;
    else if (id)
        code = history_execute(db, "UPDATE runs SET environment = ?, state = ? WHERE id = ?", "iti",
                               id, state, run);
    json_decref(meta);
    pool_release(&pool);
    return code;
}

static int fill_environments(struct history_db *db)
{
    sqlite3_stmt *s =
        history_statement(db, "SELECT run, text FROM files WHERE name = 'run.json'", "");
    int code = s ? SQLITE_OK : sqlite3_errcode(db->sqlite);

    while (code == SQLITE_OK && (code = sqlite3_step(s)) == SQLITE_ROW)
        code = fill_run(db, sqlite3_column_int64(s, 0), sqlite3_column_blob(s, 1),
                        (size_t)sqlite3_column_bytes(s, 1));
    sqlite3_finalize(s);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

static int failed(struct history_db *db, char *error, size_t len)
{
    return history_sqlite_error(db, "make the tables of the history", error, len);
}

static int bring_up(struct history_db *db, int64_t from, char *error, size_t len)
{
    char mark[96];
    int code = SQLITE_OK, err = 0;

    snprintf(mark, sizeof(mark), "PRAGMA application_id = %d; PRAGMA user_version = %d;",
             HISTORY_APPLICATION, HISTORY_SCHEMA);
    for (int64_t i = from; code == SQLITE_OK && i < HISTORY_SCHEMA; i++)
        code = sqlite3_exec(db->sqlite, schemas[i], NULL, NULL, NULL);
    if (code == SQLITE_OK && from == 1)
        code = fill_environments(db);
    if (code == SQLITE_OK && from > 0 && from < 3)
        err = history_fill_steal(db, error, len);
    if (code == SQLITE_OK && !err)
        code = sqlite3_exec(db->sqlite, mark, NULL, NULL, NULL);
    if (code == SQLITE_NOMEM)
        err = history_out_of_memory(error, len); /* also where it was not SQLite that had none */
    return err ? err : code == SQLITE_OK ? 0 : failed(db, error, len);
}

/* Others may be at it at this moment: one does it, the rest find it done. */
int history_schema_make(struct history_db *db, char *error, size_t len)
{
    if (history_execute(db, "BEGIN IMMEDIATE", "") != SQLITE_OK)
        return failed(db, error, len);
    int64_t from = history_schema(db);
    int err = from < 0 ? failed(db, error, len) : 0;

    if (!err && from < HISTORY_SCHEMA)
        err = bring_up(db, from, error, len);
    if (!err && history_execute(db, "COMMIT", "") != SQLITE_OK)
        err = failed(db, error, len);
    if (err)
        sqlite3_exec(db->sqlite, "ROLLBACK", NULL, NULL, NULL);
    return err;
}
