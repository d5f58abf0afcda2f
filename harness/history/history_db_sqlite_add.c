/* SPDX-License-Identifier: Apache-2.0 */
/* Adding a run to the history, in one transaction. See history_db.h. */
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "harness/history/history_db.h"
#include "harness/text.h"

#define FILE_BYTES_MAX ((size_t)900 << 20) /* SQLite's own bound is 1e9 */

/* A file of the run's folder that the history keeps. */
struct kept_file {
    char name[96];
    struct buffer text;
};

/* A run on its way into the history. */
struct adding {
    struct history_db *db;
    struct history_run run;
    const char *state; /* "complete"; "" */
    int64_t ended;     /* launches that have, well or not */
    struct kept_file *files;
    size_t n_files;
    char digest[20]; /* of the files: whether a folder says what it said */
    const struct history_acceptance *acceptance;
    struct pairs cases;
    char *error;
    size_t len;
};

static int failed(const struct adding *a, const char *what)
{
    return history_sqlite_error(a->db, what, a->error, a->len);
}

/* ---- what the folder has */

static int read_file(struct adding *a, const char *folder, const char *name)
{
    struct kept_file *f = &a->files[a->n_files++];
    char *path = xasprintf("%s/%s", folder, name);
    int err = file_read(path, FILE_BYTES_MAX, &f->text);

    snprintf(f->name, sizeof(f->name), "%s", name);
    if (err)
        snprintf(a->error, a->len, "cannot read '%s': %s", path, strerror(-err));
    free(path);
    return err;
}

static int read_files(struct adding *a, const struct run_folder *folder)
{
    char name[96];

    a->files = xcalloc(folder->n_benches + 2, sizeof(*a->files));
    int err = read_file(a, folder->path, "run.json");
    if (!err)
        err = read_file(a, folder->path, "plan.csv");
    for (size_t i = 0; !err && i < folder->n_benches; i++) {
        /* A benchmark whose launches all ended without a row has no file. */
        if (!folder->benches[i].rows.n_columns)
            continue;
        snprintf(name, sizeof(name), "%s.csv", folder->benches[i].name);
        err = read_file(a, folder->path, name);
    }
    return err;
}

/* ---- what the history has of it */

struct stored {
    int64_t id;    /* 0: nothing */
    int64_t ended; /* launches */
    bool good, accepted;
    bool same; /* its files are those of the folder */
};

static int stored_find(struct adding *a, struct stored *stored)
{
    const struct history_run *r = &a->run;
    sqlite3_stmt *s = history_statement(
        a->db,
        "SELECT id, ended, good, EXISTS (SELECT 1 FROM accepted WHERE run = runs.id), digest = ?4"
        " FROM runs WHERE name = ?1 AND host = ?2 AND started_utc = ?3",
        "tttt", r->name, r->host, r->started_utc, a->digest);
    int code = s ? sqlite3_step(s) : SQLITE_ERROR;

    *stored = (struct stored){0};
    if (code == SQLITE_ROW)
        *stored = (struct stored){
            .id = sqlite3_column_int64(s, 0),
            .ended = sqlite3_column_int64(s, 1),
            .good = sqlite3_column_int(s, 2),
            .accepted = sqlite3_column_int(s, 3),
            .same = sqlite3_column_int(s, 4),
        };
    int err = code == SQLITE_ROW || code == SQLITE_DONE ? 0 : failed(a, "read the history");
    sqlite3_finalize(s);
    return err;
}

/* ---- writing */

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

    if (code != SQLITE_OK)
        return failed(a, "add a case to the history");
    sqlite3_stmt *s =
        history_statement(a->db, "SELECT id FROM series WHERE host = ? AND suite = ? AND key = ?",
                          "ttt", host, suite, pair->key);
    *id = s && sqlite3_step(s) == SQLITE_ROW ? sqlite3_column_int64(s, 0) : 0;
    sqlite3_finalize(s);
    return *id ? 0 : failed(a, "add a case to the history");
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
        if (!err) {
            /* A value that is no number has no place in a series. */
            const struct decide_run *from = &pair->decide.b.runs[0];
            const char *outcomes = history_outcomes(&a->cases.report.pool, &a->cases, pair);
            const double *steal =
                steal_of_launches(&a->cases.report.pool, pair, a->cases.n_a, from->n);
            int code = outcomes ? history_execute(a->db, "INSERT INTO outcomes VALUES (?, ?, ?)",
                                                  "iit", series, a->run.id, outcomes)
                                : SQLITE_OK;

            for (size_t k = 0; code == SQLITE_OK && k < from->n; k++)
                if (isfinite(from->values[k]))
                    code = history_execute(a->db,
                                           "INSERT INTO launches (series, run, launch, value, "
                                           "steal) VALUES (?, ?, ?, ?, ?)",
                                           "iiirr", series, a->run.id, (int64_t)k, from->values[k],
                                           steal[k]);
            err = code == SQLITE_OK ? 0 : failed(a, "add a value to the history");
        }
    }
    if (!err && history_execute(a->db,
                                "UPDATE runs SET least_steal = (SELECT min(ifnull(steal, 0))"
                                " FROM series s JOIN launches l ON l.series = s.id AND"
                                " l.run = runs.id WHERE s.host = runs.host) WHERE id = ?",
                                "i", a->run.id) != SQLITE_OK)
        err = failed(a, "add a run to the history");
    return err;
}

/* Also of cases, and files, that the folder has no more. */
static int drop_run(struct adding *a, bool files_alone)
{
    static const char *const from[] = {
        "DELETE FROM files WHERE run = ?",
        "DELETE FROM launches WHERE run = ?1 AND series IN (SELECT id FROM series WHERE host ="
        " (SELECT host FROM runs WHERE id = ?1))",
        "DELETE FROM outcomes WHERE run = ?1 AND series IN (SELECT id FROM series WHERE host ="
        " (SELECT host FROM runs WHERE id = ?1))"};
    int code = SQLITE_OK;

    for (size_t i = 0; code == SQLITE_OK && i < (files_alone ? 1 : 3); i++)
        code = history_execute(a->db, from[i], "i", a->run.id);
    return code == SQLITE_OK ? 0 : failed(a, "replace a run of the history");
}

/* Rows of older runs go, so that the file stays small. References that hold begin with the last
 * change that was accepted in all cases, or with the first run, and with those of single cases
 * since. */
static const char old_files[] =
    "WITH mine AS (SELECT id, good, started_utc AS at FROM runs WHERE host = ?1 AND suite = ?2),"
    " changes AS (SELECT m.id, m.at, EXISTS (SELECT 1 FROM accepted_cases WHERE accepted = a.id)"
    " AS partly FROM accepted a JOIN mine m ON m.id = a.run),"
    " begins AS (SELECT max(at) AS at FROM changes WHERE NOT partly),"
    " starts AS (SELECT id, at FROM changes WHERE at >= ifnull((SELECT at FROM begins), '')"
    " UNION SELECT 0, '' WHERE (SELECT at FROM begins) IS NULL),"
    " firsts AS (SELECT m.id, row_number() OVER (PARTITION BY s.id ORDER BY m.at, m.id) AS place"
    " FROM starts s JOIN mine m ON (m.at, m.id) >= (s.at, s.id) AND (m.good OR m.id = s.id))"
    "DELETE FROM files WHERE run IN (SELECT id FROM mine) AND run NOT IN (SELECT id FROM firsts"
    " WHERE place <= ?4) AND run NOT IN (SELECT id FROM mine WHERE good ORDER BY at DESC, id DESC"
    " LIMIT ?3)";

static int add_files(struct adding *a)
{
    int err = 0;

    for (size_t i = 0; !err && i < a->n_files; i++) {
        const struct kept_file *f = &a->files[i];
        sqlite3_stmt *s = history_statement(a->db, "INSERT INTO files VALUES (?1, ?2, ?3)", "it",
                                            a->run.id, f->name);
        bool good = s &&
                    !sqlite3_bind_blob64(s, 3, f->text.text ? f->text.text : "", f->text.size,
                                         SQLITE_STATIC) &&
                    sqlite3_step(s) == SQLITE_DONE;

        err = good ? 0 : failed(a, "add rows to the history");
        sqlite3_finalize(s);
    }
    if (!err && a->n_files &&
        history_execute(a->db, old_files, "ttii", a->run.host, a->run.suite,
                        (int64_t)HISTORY_WHOLE_RUNS, (int64_t)HISTORY_FIRST_RUNS) != SQLITE_OK)
        err = failed(a, "tidy the history");
    return err;
}

/* What may be another when the run is added again. */
static int write_facts(struct adding *a)
{
    const struct history_run *r = &a->run;
    int code = history_execute(a->db,
                               "INSERT INTO environments (json) SELECT ?1 WHERE ?1 IS NOT NULL AND"
                               " NOT EXISTS (SELECT 1 FROM environments WHERE json = ?1)",
                               "t", r->environment);

    if (code == SQLITE_OK)
        code = history_execute(
            a->db,
            "UPDATE runs SET suite = ?, version = ?, commit_id = ?, good = ?, state = ?, ended = ?,"
            " environment = (SELECT id FROM environments WHERE json = ?), digest = ? WHERE id = ?",
            "tttititti", r->suite, r->version, r->commit, (int64_t)r->good, a->state, a->ended,
            r->environment, a->digest, r->id);
    /* Machines that no run is of any more. */
    if (code == SQLITE_OK)
        code = history_execute(a->db,
                               "DELETE FROM environments WHERE id NOT IN (SELECT environment FROM"
                               " runs WHERE environment IS NOT NULL)",
                               "");
    return code == SQLITE_OK ? 0 : failed(a, "add a run to the history");
}

static int write_accepted(struct adding *a)
{
    const struct history_acceptance *of = a->acceptance;
    int code =
        history_execute(a->db, "INSERT INTO accepted (run, at_utc, by, reason) VALUES (?, ?, ?, ?)",
                        "ittt", a->run.id, of->at_utc, of->by, of->reason);
    int64_t id = sqlite3_last_insert_rowid(a->db->sqlite);

    for (size_t i = 0; code == SQLITE_OK && i < of->n_keys; i++)
        code = history_execute(a->db, "INSERT INTO accepted_cases VALUES (?, ?)", "it", id,
                               of->keys[i]);
    return code == SQLITE_OK ? 0 : failed(a, "add what was accepted to the history");
}

static int add_run(struct adding *a)
{
    const struct history_run *r = &a->run;
    int code = history_execute(
        a->db,
        "INSERT INTO runs (name, host, suite, started_utc, version, commit_id,"
        " good) VALUES (?, ?, ?, ?, ?, ?, 0)",
        "tttttt", r->name, r->host, r->suite, r->started_utc, r->version, r->commit);

    a->run.id = sqlite3_last_insert_rowid(a->db->sqlite);
    return code == SQLITE_OK ? 0 : failed(a, "add a run to the history");
}

/* Of the same data the word on them stays: judged against other baselines, or with other options,
 * it would be another. */
static int put_run(struct adding *a, enum history_added *how)
{
    struct stored stored;
    int err = stored_find(a, &stored);

    *how = !stored.id ? HISTORY_NEW : stored.same ? HISTORY_SAME : HISTORY_CHANGED;
    a->run.id = stored.id;
    if (!err && stored.id && !a->acceptance) {
        bool shorter = stored.ended > a->ended;

        if (shorter || stored.same) {
            *how = shorter ? HISTORY_SHORTER : HISTORY_SAME;
            a->run.good = stored.good;
            return 0;
        }
        a->run.good |= stored.accepted && stored.good;
    }
    if (!err)
        err = stored.id ? drop_run(a, stored.same) : add_run(a);
    if (!err)
        err = write_facts(a);
    if (!err && !stored.same)
        err = add_cases(a);
    if (!err && a->acceptance)
        err = write_accepted(a);
    return err ? err : add_files(a);
}

int history_db_add(struct history_db *db, const char *path, struct history_judged *judged,
                   enum history_added *how, char *error, size_t len)
{
    struct adding a = {.db = db, .acceptance = judged->acceptance, .error = error, .len = len};
    static const struct pairs_options options = {.margin = 0.05};
    /* What takes time, reading, comes before others are kept waiting. The run stands on both sides:
     * each case that has a value is READY. */
    int err = pairs_load(&a.cases, &path, 1, &path, 1, &options, error, len);

    if (!err) {
        const struct run_folder *folder = &a.cases.report.runs[0];
        const char *state = json_string_value(json_object_get(folder->meta, "state"));

        int64_t n = 0;

        for (size_t i = 0; i < folder->plan.n_rows; i++)
            n += strcmp(table_text(&folder->plan, i, "state"), "todo") != 0;
        a.ended = n;
        a.run = history_run_of(folder);
        a.run.good = judged->good;
        a.run.environment = history_environment(&a.cases.report.pool, folder->meta);
        a.state = state ? state : "";
        err = db->in_memory ? 0 : read_files(&a, folder);
    }
    /* FNV-1a of 64 bits, of names and texts. */
    uint64_t hash = 14695981039346656037u;

    for (size_t i = 0; i < a.n_files; i++) {
        const struct kept_file *f = &a.files[i];

        for (const char *c = f->name; *c; c++)
            hash = (hash ^ (unsigned char)*c) * 1099511628211u;
        for (size_t k = 0; k < f->text.size; k++)
            hash = (hash ^ (unsigned char)f->text.text[k]) * 1099511628211u;
    }
    snprintf(a.digest, sizeof(a.digest), "%016llx", (unsigned long long)hash);
    if (!err && history_execute(db, "BEGIN IMMEDIATE", "") != SQLITE_OK)
        err = failed(&a, "write the history");
    if (!err) {
        err = put_run(&a, how);
        if (!err && history_execute(db, "COMMIT", "") != SQLITE_OK)
            err = failed(&a, "write the history");
        if (err)
            sqlite3_exec(db->sqlite, "ROLLBACK", NULL, NULL, NULL);
    }
    judged->good = a.run.good;
    for (size_t i = 0; i < a.n_files; i++)
        buffer_release(&a.files[i].text);
    free(a.files);
    pairs_release(&a.cases);
    return err;
}

int history_db_add_folder(struct history_db *db, const struct run_folder *run, int64_t id,
                          char *error, size_t len)
{
    const struct history_run r = history_run_of(run);
    int code =
        history_execute(db,
                        "INSERT OR IGNORE INTO runs (id, name, host, suite, started_utc,"
                        " version, commit_id, good) VALUES (?, ?, ?, ?, ?, ?, ?, 1)",
                        "itttttt", id, r.name, r.host, r.suite, r.started_utc, r.version, r.commit);

    return code == SQLITE_OK ? 0 : history_sqlite_error(db, "note a run in", error, len);
}
