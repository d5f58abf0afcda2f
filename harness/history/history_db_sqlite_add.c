/* SPDX-License-Identifier: Apache-2.0 */
/* Adding a run to the history, in one transaction. See history_db.h. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/history/history_db_build.h"
#include "harness/history/history_db_sqlite.h"
#include "harness/text.h"

#define FILE_BYTES_MAX ((size_t)900 << 20) /* SQLite's own bound is 1e9 */

struct adding {
    struct history_db *db;
    const struct run_folder *folder;
    struct history_run run;
    enum history_standing standing;
    struct pairs cases;
    char *error;
    size_t len;
};

static int failed(struct adding *a, const char *what)
{
    return history_sqlite_error(a->db, what, a->error, a->len);
}

static int64_t one_id(struct adding *a, const char *sql, const char *x, const char *y,
                      const char *z)
{
    sqlite3_stmt *s = history_statement(a->db, sql, "ttt", x, y, z);
    int64_t id = s && sqlite3_step(s) == SQLITE_ROW ? sqlite3_column_int64(s, 0) : 0;

    sqlite3_finalize(s);
    return id;
}

static int add_series(struct adding *a, const struct pair *pair, size_t place, int64_t *id)
{
    const char *host = a->run.host, *suite = a->run.suite;
    int code = history_execute(
        a->db,
        "INSERT INTO series (host, suite, key, label, pipe, unit, higher_is_better, place)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (host, suite, key) DO UPDATE SET"
        " label = excluded.label, pipe = excluded.pipe, place = excluded.place",
        "ttttttii", host, suite, pair->key, pair->label, pair->pipe, pair->c->unit,
        (int64_t)pair->decide.higher_is_better, (int64_t)place);

    if (code == SQLITE_OK)
        *id = one_id(a, "SELECT id FROM series WHERE host = ? AND suite = ? AND key = ?", host,
                     suite, pair->key);
    return code == SQLITE_OK && *id ? 0 : failed(a, "add a case to the history");
}

/* A value that is no number has no place in a series. */
static int add_launches(struct adding *a, int64_t series, const struct decide_run *from)
{
    int code = SQLITE_OK;

    for (size_t i = 0; code == SQLITE_OK && i < from->n; i++)
        if (isfinite(from->values[i]))
            code = history_execute(a->db, "INSERT INTO launches VALUES (?, ?, ?, ?)", "iiir",
                                   series, a->run.id, (int64_t)i, from->values[i]);
    return code == SQLITE_OK ? 0 : failed(a, "add a value to the history");
}

static int add_cases(struct adding *a)
{
    int64_t series = 0;
    int err = 0;

    for (size_t i = 0; !err && i < a->cases.n; i++) {
        const struct pair *pair = &a->cases.all[i];

        if (pair->state != PAIR_READY)
            continue;
        err = add_series(a, pair, i, &series);
        if (!err)
            err = add_launches(a, series, &pair->decide.b.runs[0]);
    }
    return err;
}

static int add_file(struct adding *a, const char *name)
{
    struct buffer text = {0};
    char *path = NULL;
    sqlite3_stmt *s = NULL;
    int err = asprintf(&path, "%s/%s", a->folder->path, name) < 0 ? -ENOMEM : 0;

    if (!err)
        err = file_read(path, FILE_BYTES_MAX, &text);
    if (err) {
        snprintf(a->error, a->len, "cannot read '%s': %s", path ? path : name, strerror(-err));
    } else {
        s = history_statement(a->db, "INSERT OR IGNORE INTO files VALUES (?, ?, ?)", "it",
                              a->run.id, name);
        if (!s || sqlite3_bind_blob64(s, 3, text.text ? text.text : "", text.size, SQLITE_STATIC) ||
            sqlite3_step(s) != SQLITE_DONE)
            err = failed(a, "add rows to the history");
    }
    sqlite3_finalize(s);
    buffer_release(&text);
    free(path);
    return err;
}

/* Rows of older runs go, so that the file stays small. */
static int drop_old_files(struct adding *a)
{
    int code = history_execute(
        a->db,
        "DELETE FROM files WHERE run IN (SELECT id FROM runs WHERE host = ? AND suite = ?"
        " AND standing > 0 ORDER BY started_utc DESC, id DESC LIMIT -1 OFFSET ?)",
        "tti", a->run.host, a->run.suite, (int64_t)HISTORY_WHOLE_RUNS);

    return code == SQLITE_OK ? 0 : failed(a, "tidy the history");
}

static int add_files(struct adding *a)
{
    char name[96];
    int err = add_file(a, "run.json");

    if (!err)
        err = add_file(a, "plan.csv");
    for (size_t i = 0; !err && i < a->folder->n_benches; i++) {
        /* A benchmark whose launches all ended without a row has no file. */
        if (!a->folder->benches[i].rows.n_columns)
            continue;
        snprintf(name, sizeof(name), "%s.csv", a->folder->benches[i].name);
        err = add_file(a, name);
    }
    return err ? err : drop_old_files(a);
}

static int add_run(struct adding *a, bool *known)
{
    const struct history_run *r = &a->run;
    int code = history_execute(
        a->db,
        "INSERT INTO runs (name, host, suite, started_utc, version, commit_id, standing)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name, host, started_utc) DO NOTHING",
        "tttttti", r->name, r->host, r->suite, r->started_utc, r->version, r->commit,
        (int64_t)a->standing);

    *known = code == SQLITE_OK && !sqlite3_changes(a->db->sqlite);
    if (code == SQLITE_OK)
        a->run.id = one_id(a, "SELECT id FROM runs WHERE name = ? AND host = ? AND started_utc = ?",
                           r->name, r->host, r->started_utc);
    if (code == SQLITE_OK && *known && a->standing == HISTORY_START)
        code = history_execute(a->db, "UPDATE runs SET standing = ? WHERE id = ?", "ii",
                               (int64_t)a->standing, a->run.id);
    return code == SQLITE_OK && a->run.id ? 0 : failed(a, "add the run to the history");
}

static int add_all(struct adding *a, bool *known)
{
    if (history_execute(a->db, "BEGIN IMMEDIATE", "") != SQLITE_OK)
        return failed(a, "write the history");
    int err = add_run(a, known);
    if (!err && !*known)
        err = add_cases(a);
    if (!err && a->standing != HISTORY_SEEN && (!*known || a->standing == HISTORY_START))
        err = add_files(a);
    if (!err && history_execute(a->db, "COMMIT", "") != SQLITE_OK)
        err = failed(a, "write the history");
    if (err)
        sqlite3_exec(a->db->sqlite, "ROLLBACK", NULL, NULL, NULL);
    return err;
}

/* What takes time, reading, comes before others are kept waiting. */
static int add(struct adding *a, bool *known)
{
    int err = history_cases(&a->cases, a->folder->path, a->error, a->len);

    *known = false;
    if (!err) {
        a->run = history_run_of(a->folder);
        err = add_all(a, known);
    }
    pairs_release(&a->cases);
    return err;
}

int history_db_add_as(struct history_db *db, const struct report *r, size_t run,
                      enum history_standing standing, bool *known, char *error, size_t len)
{
    struct adding a = {
        .db = db, .folder = &r->runs[run], .standing = standing, .error = error, .len = len};

    return add(&a, known);
}

int history_db_add(struct history_db *db, const struct report *r, size_t run, bool *known,
                   char *error, size_t len)
{
    return history_db_add_as(db, r, run, HISTORY_BASELINE, known, error, len);
}
