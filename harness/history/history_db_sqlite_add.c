/* SPDX-License-Identifier: Apache-2.0 */
/* Adding a run to the history, in one transaction. See history_db.h. */
#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/history/history_db.h"
#include "harness/text.h"

/* A case's launches in the run, of which some may be no number. */
static inline const struct decide_run *adding_launches(const struct pair *pair)
{
    return &pair->decide.b.runs[0];
}

/* What others took of the CPU in each of them. */
static inline const double *adding_steal(struct adding *a, const struct pair *pair)
{
    return steal_of_launches(&a->cases.report.pool, pair, a->cases.n_a, adding_launches(pair)->n);
}

/* Is something of it accepted? Then what it is to be is what it becomes. */
static inline bool adding_is_accepted(const struct adding *a)
{
    return a->standing == HISTORY_START || a->judged->acceptance;
}

/* What the history has of the run; id 0: nothing. */
struct stored {
    int64_t id;
    int64_t values; /* in all cases */
    int64_t ended;  /* launches; -1: not known, of a run that schema 1 kept */
    enum history_standing standing;
    bool has_files;
    bool same_facts;  /* suite, program, machine and state are those of the folder */
    bool same_values; /* and so are the values, and what the rows tell beside them */
    bool longer;      /* it has more launches than the folder */
    bool went_on;     /* it has fewer, or had not ended, or in another way */
};

/* ---- A run that is added, held against what the history has of it ---- */

#define OUTCOMES "ifnull((SELECT json FROM outcomes WHERE series = l.series AND run = l.run), '')"

/* NULL stands for what is not known. */
static bool same_steal(sqlite3_stmt *s, int column, double steal)
{
    return sqlite3_column_type(s, column) == SQLITE_NULL
               ? isnan(steal)
               : sqlite3_column_double(s, column) == steal;
}

/* Of one case. *n grows by its values. */
static bool same_values(struct adding *a, const struct pair *pair, int64_t run, int64_t *n)
{
    const struct decide_run *from = adding_launches(pair);
    const double *steal = adding_steal(a, pair);
    sqlite3_stmt *s = history_statement(
        a->db,
        "SELECT l.value, " OUTCOMES ", l.steal FROM launches l WHERE l.run = ? AND l.series ="
        " (SELECT id FROM series WHERE host = ? AND suite = ? AND key = ?) ORDER BY l.launch",
        "ittt", run, a->run.host, a->run.suite, pair->key);
    size_t n_same = 0; /* the outcomes are the case's, and stand in each of its rows */
    bool same = s;

    for (size_t i = 0; i < from->n; i++) {
        if (!isfinite(from->values[i]))
            continue;
        ++*n;
        same = same && sqlite3_step(s) == SQLITE_ROW &&
               sqlite3_column_double(s, 0) == from->values[i] &&
               same_steal(s, 2, steal ? steal[i] : NAN) &&
               (n_same++ || history_same_outcomes(&a->cases.report.pool, &a->cases, pair,
                                                  history_column_text(s, 1)));
    }
    sqlite3_finalize(s);
    return same;
}

/* By the values themselves: nothing else tells for sure that a folder says what it said. Returns
 * how many it has. */
static int64_t compare_values(struct adding *a, struct stored *stored)
{
    int64_t n = 0;

    stored->same_values = true;
    for (size_t i = 0; i < a->cases.n; i++)
        if (a->cases.all[i].state == PAIR_READY &&
            !same_values(a, &a->cases.all[i], stored->id, &n))
            stored->same_values = false;
    stored->same_values &= n == stored->values;
    return n;
}

/* Which of the two is further on: by the launches that have ended, of which schema 1 knew nothing.
 */
static void compare_length(struct adding *a, struct stored *stored)
{
    int64_t n = compare_values(a, stored), was = stored->values;

    if (stored->ended >= 0) {
        n = a->ended;
        was = stored->ended;
    }
    stored->longer = was > n;
    stored->went_on |= was < n;
}

/* What the history has of a->run, and whether it is the same. 0 or -errno with a->error set. Within
 * the transaction. */
static int stored_find(struct adding *a, struct stored *stored)
{
    const struct history_run *r = &a->run;
    sqlite3_stmt *s = history_statement(
        a->db,
        "SELECT r.id, r.standing, r.suite = ?4 AND r.version = ?5 AND r.commit_id = ?6"
        " AND r.state IS ?7 AND e.json IS ?8 AND r.ended IS ?9, r.state IS NOT NULL AND r.state <> "
        "?7,"
        " (SELECT count(*) FROM series s JOIN launches l ON l.series = s.id AND l.run = r.id"
        " WHERE s.host = ?2), EXISTS (SELECT 1 FROM files WHERE run = r.id), ifnull(r.ended, -1)"
        " FROM runs r LEFT JOIN environments e ON e.id = r.environment"
        " WHERE r.name = ?1 AND r.host = ?2 AND r.started_utc = ?3",
        "tttttttti", r->name, r->host, r->started_utc, r->suite, r->version, r->commit, a->state,
        r->environment, a->ended);
    int code = s ? sqlite3_step(s) : SQLITE_ERROR;

    *stored = (struct stored){0};
    if (code == SQLITE_ROW)
        *stored = (struct stored){
            .id = sqlite3_column_int64(s, 0),
            .standing = (enum history_standing)sqlite3_column_int(s, 1),
            .same_facts = sqlite3_column_int(s, 2),
            .went_on = sqlite3_column_int(s, 3),
            .values = sqlite3_column_int64(s, 4),
            .has_files = sqlite3_column_int(s, 5),
            .ended = sqlite3_column_int64(s, 6),
        };
    int err = code == SQLITE_ROW || code == SQLITE_DONE
                  ? 0
                  : history_sqlite_error(a->db, "read the history", a->error, a->len);
    sqlite3_finalize(s);
    if (!err && stored->id)
        compare_length(a, stored);
    return err;
}

#define FILE_BYTES_MAX ((size_t)900 << 20) /* SQLite's own bound is 1e9 */

static int failed(const struct adding *a, const char *what)
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
static int add_launches(struct adding *a, int64_t series, const struct pair *pair)
{
    const struct decide_run *from = adding_launches(pair);
    const char *outcomes = history_outcomes(&a->cases.report.pool, &a->cases, pair);
    const double *steal = adding_steal(a, pair);
    int code = outcomes ? history_execute(a->db, "INSERT INTO outcomes VALUES (?, ?, ?)", "iit",
                                          series, a->run.id, outcomes)
                        : SQLITE_OK;

    for (size_t i = 0; code == SQLITE_OK && i < from->n; i++)
        if (isfinite(from->values[i]))
            code = history_execute(
                a->db,
                "INSERT INTO launches (series, run, launch, value, steal) VALUES (?, ?, ?, ?, ?)",
                "iiirr", series, a->run.id, (int64_t)i, from->values[i], steal ? steal[i] : NAN);
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
            err = add_launches(a, series, pair);
    }
    return err;
}

/* Also of cases that the folder has no more. */
static int drop_cases(struct adding *a)
{
    static const char *const from[] = {
        "DELETE FROM launches WHERE run = ? AND series IN (SELECT id FROM series WHERE host = ?)",
        "DELETE FROM outcomes WHERE run = ? AND series IN (SELECT id FROM series WHERE host = ?)"};
    int code = SQLITE_OK;

    for (size_t i = 0; code == SQLITE_OK && i < 2; i++)
        code = history_execute(a->db, from[i], "it", a->run.id, a->run.host);
    return code == SQLITE_OK ? 0 : failed(a, "replace a run of the history");
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
        s = history_statement(
            a->db,
            "INSERT INTO files VALUES (?1, ?2, ?3) ON CONFLICT (run, name) DO UPDATE"
            " SET text = excluded.text WHERE text <> excluded.text",
            "it", a->run.id, name);
        if (!s || sqlite3_bind_blob64(s, 3, text.text ? text.text : "", text.size, SQLITE_STATIC) ||
            sqlite3_step(s) != SQLITE_DONE)
            err = failed(a, "add rows to the history");
    }
    sqlite3_finalize(s);
    buffer_release(&text);
    free(path);
    return err;
}

/* What an earlier state of the folder had, and this one has not, such as a benchmark that no launch
 * ran in the end: later runs would be held against it. names: those of this one, each between two
 * '/', which no name has. */
static int drop_other_files(struct adding *a, const char *names)
{
    int code = history_execute(
        a->db, "DELETE FROM files WHERE run = ? AND instr(?, '/' || name || '/') = 0", "it",
        a->run.id, names);

    return code == SQLITE_OK ? 0 : failed(a, "replace a run of the history");
}

#define OF_SUITE "SELECT id FROM runs WHERE host = ?1 AND suite = ?2 AND standing "

/* Rows of older runs go, so that the file stays small. */
static int drop_old_files(struct adding *a)
{
    int code = history_execute(
        a->db,
        "DELETE FROM files WHERE run IN (" OF_SUITE ">= 0 EXCEPT SELECT id FROM (" OF_SUITE
        "IN (1, 2) ORDER BY started_utc DESC, id DESC LIMIT ?3) EXCEPT SELECT id FROM (" OF_SUITE
        "IN (1, 2) AND started_utc >= ifnull((SELECT max(started_utc) FROM runs WHERE host = ?1"
        " AND suite = ?2 AND standing = 2), '') ORDER BY started_utc, id LIMIT ?4)"
        " EXCEPT SELECT id FROM (" OF_SUITE
        "NOT IN (1, 2) ORDER BY started_utc DESC, id DESC LIMIT ?5))",
        "ttiii", a->run.host, a->run.suite, (int64_t)HISTORY_WHOLE_RUNS,
        (int64_t)HISTORY_FIRST_RUNS, (int64_t)HISTORY_OTHER_RUNS);

    return code == SQLITE_OK ? 0 : failed(a, "tidy the history");
}

static int add_files(struct adding *a)
{
    const char *names = "/run.json/plan.csv/";
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
        names = pool_text(&a->cases.report.pool, "%s%s/", names, name);
    }
    if (!err)
        err = a->cases.report.pool.failed ? -ENOMEM : drop_other_files(a, names);
    return err ? err : drop_old_files(a);
}

/* What may be another when the run is added again. */
static int write_facts(struct adding *a)
{
    const struct history_run *r = &a->run;
    int64_t environment = history_environment_id(a->db, r->environment);

    if (!environment && r->environment)
        return failed(a, "add a run's machine to the history");
    int code = history_execute(
        a->db,
        "UPDATE runs SET suite = ?, version = ?, commit_id = ?, standing = ?, state = ?, ended = ?,"
        " environment = nullif(?, 0) WHERE id = ?",
        "tttitiii", r->suite, r->version, r->commit, (int64_t)a->standing, a->state, a->ended,
        environment, r->id);
    return code == SQLITE_OK ? 0 : failed(a, "add a run to the history");
}

static int add_run(struct adding *a)
{
    const struct history_run *r = &a->run;
    int code = history_execute(
        a->db,
        "INSERT INTO runs (name, host, suite, started_utc, version, commit_id, standing)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        "tttttti", r->name, r->host, r->suite, r->started_utc, r->version, r->commit,
        (int64_t)a->standing);

    if (code != SQLITE_OK)
        return failed(a, "add a run to the history");
    a->run.id = sqlite3_last_insert_rowid(a->db->sqlite);
    return write_facts(a);
}

/* --- a run that is there --- */

static int rank_of(enum history_standing standing)
{
    return standing == HISTORY_START ? 2 : standing == HISTORY_BASELINE ? 1 : 0;
}

/* A start that was accepted, or a baseline, stays one. A run that was judged before it had ended is
 * what it is judged to be now; one that had ended does not become a baseline by being judged more
 * often. */
static enum history_standing standing_of(const struct adding *a, const struct stored *stored)
{
    bool anew = stored->went_on || adding_is_accepted(a);

    return anew && rank_of(a->standing) >= rank_of(stored->standing) ? a->standing
                                                                     : stored->standing;
}

/* Machines that no run is of any more. */
static int drop_unused(struct adding *a)
{
    int code = history_execute(a->db,
                               "DELETE FROM environments WHERE id NOT IN (SELECT environment FROM"
                               " runs WHERE environment IS NOT NULL)",
                               "");

    return code == SQLITE_OK ? 0 : failed(a, "tidy the history");
}

static int change_run(struct adding *a, const struct stored *stored, enum history_added *how)
{
    bool accepted = adding_is_accepted(a);
    int err = marks_settle(a, stored->id);

    a->run.id = stored->id;
    a->standing = standing_of(a, stored);
    *how = stored->same_values && stored->same_facts ? HISTORY_SAME : HISTORY_CHANGED;
    if (!err && (*how == HISTORY_CHANGED || a->standing != stored->standing))
        err = write_facts(a);
    if (!err && !stored->same_facts)
        err = drop_unused(a);
    if (!err && !stored->same_values)
        err = drop_cases(a);
    if (!err && !stored->same_values)
        err = add_cases(a);
    /* Of an old run the rows are gone, and stay so while nothing of it changes. */
    int64_t before = sqlite3_total_changes(a->db->sqlite);
    if (!err && (accepted || *how == HISTORY_CHANGED || stored->has_files))
        err = add_files(a);
    if (stored->has_files && sqlite3_total_changes(a->db->sqlite) > before)
        *how = HISTORY_CHANGED;
    return err ? err : marks_write(a, stored->went_on || accepted);
}

/* --- the transaction --- */

static int put_run(struct adding *a, enum history_added *how)
{
    struct stored stored;
    int err = stored_find(a, &stored);

    if (err)
        return err;
    if (stored.id) {
        if (stored.longer && !adding_is_accepted(a)) {
            *how = HISTORY_SHORTER;
            a->standing = stored.standing;
            return 0;
        }
        return change_run(a, &stored, how);
    }
    *how = HISTORY_NEW;
    err = marks_settle(a, 0);
    if (!err)
        err = add_run(a);
    if (!err)
        err = add_cases(a);
    if (!err)
        err = add_files(a);
    return err ? err : marks_write(a, true);
}

static int put_all(struct adding *a, enum history_added *how)
{
    if (history_execute(a->db, "BEGIN IMMEDIATE", "") != SQLITE_OK)
        return failed(a, "write the history");
    int err = put_run(a, how);
    if (!err && history_execute(a->db, "COMMIT", "") != SQLITE_OK)
        err = failed(a, "write the history");
    if (err)
        sqlite3_exec(a->db->sqlite, "ROLLBACK", NULL, NULL, NULL);
    return err;
}

static int64_t count_ended(const struct table *plan)
{
    int64_t n = 0;

    for (size_t i = 0; i < plan->n_rows; i++)
        n += strcmp(table_text(plan, i, "state"), "todo") != 0;
    return n;
}

/* What takes time, reading, comes before others are kept waiting. */
static int put(struct adding *a, enum history_added *how)
{
    int err = history_cases(&a->cases, a->path, a->error, a->len);

    if (!err) {
        a->folder = &a->cases.report.runs[0];
        const char *state = json_string_value(json_object_get(a->folder->meta, "state"));

        a->ended = count_ended(&a->folder->plan);
        a->run = history_run_of(a->folder);
        a->run.environment = history_environment(&a->cases.report.pool, a->folder->meta);
        a->state = state ? state : "";
        err = put_all(a, how);
    }
    pairs_release(&a->cases);
    return err;
}

int history_db_add(struct history_db *db, const struct report *r, size_t run,
                   struct history_judged *judged, enum history_added *how, char *error, size_t len)
{
    struct adding a = {.db = db,
                       .path = r->runs[run].path,
                       .standing = judged->standing,
                       .judged = judged,
                       .error = error,
                       .len = len};
    struct pool pool = {0};

    a.settled_in = judged->pool ? judged->pool : &pool;
    int err = put(&a, how);
    judged->standing = a.standing;
    if (!judged->pool)
        judged->n_settled = 0;
    pool_release(&pool);
    return err;
}
