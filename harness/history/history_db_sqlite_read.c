/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the history: its runs with all series, and which of them one is held against. See
 * history_db.h. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "harness/compare/pairs.h"
#include "harness/history/history_db.h"
#include "harness/plan/plan.h"
#include "harness/text.h"

static const char *keep(struct pool *pool, sqlite3_stmt *s, int column)
{
    const char *text = (const char *)sqlite3_column_text(s, column);

    return pool_text(pool, "%s", text ? text : "");
}

/* Ends the statement, of which `code` is the last word. */
static int finish(struct history_db *db, sqlite3_stmt *s, int code, char *error, size_t len)
{
    int err = code == SQLITE_DONE ? 0 : history_sqlite_error(db, "read the history", error, len);

    sqlite3_finalize(s);
    return err;
}

/* ---- runs */

/* Of runs r, in the order of their start. started_utc counts whole seconds: what stands between two
 * of them is the order they were added in. */
#define RUNS(which)                                                                                \
    "SELECT r.id, name, host, suite, started_utc, version, commit_id, good, count(*) OVER (),"     \
    " e.json, json_extract(e.json, '$.only'), json_extract(e.json, '$.config_hash'),"              \
    " json_extract(e.json, '$.machine.cpu.model') || ', '"                                         \
    " || ifnull(json_extract(e.json, '$.machine.cpu.cores'), 0) || ' cores'"                       \
    " FROM runs r LEFT JOIN environments e ON e.id = r.environment WHERE " which                   \
    " ORDER BY started_utc, r.id"

static int take_runs(struct history_db *db, sqlite3_stmt *s, struct pool *pool,
                     struct history_run **runs, size_t *n, char *error, size_t len)
{
    int code = SQLITE_ERROR;

    *runs = NULL;
    *n = 0;
    while (s && (code = sqlite3_step(s)) == SQLITE_ROW) {
        if (!*runs)
            *runs = pool_alloc(pool, (size_t)sqlite3_column_int64(s, 8), sizeof(**runs));
        const char *text = (const char *)sqlite3_column_text(s, 9);
        const char *last = *n ? (*runs)[*n - 1].environment : NULL;

        (*runs)[(*n)++] = (struct history_run){
            .id = sqlite3_column_int64(s, 0),
            .name = keep(pool, s, 1),
            .host = keep(pool, s, 2),
            .suite = keep(pool, s, 3),
            .started_utc = keep(pool, s, 4),
            .version = keep(pool, s, 5),
            .commit = keep(pool, s, 6),
            .good = sqlite3_column_int(s, 7),
            /* Mostly that of the run before, which is kept then. */
            .environment = text && last && !strcmp(text, last) ? last
                           : text                              ? keep(pool, s, 9)
                                                               : NULL,
            .only = keep(pool, s, 10),
            .config_hash = keep(pool, s, 11),
            .machine = keep(pool, s, 12),
        };
    }
    return finish(db, s, code, error, len);
}

#define OF_HOST_AND_SUITE "(?1 = '' OR r.host = ?1) AND (?2 = '' OR r.suite = ?2)"

int history_db_runs(struct history_db *db, const char *host, const char *suite, struct pool *pool,
                    struct history_run **runs, size_t *n, char *error, size_t len)
{
    return take_runs(db, history_statement(db, RUNS(OF_HOST_AND_SUITE), "tt", host, suite), pool,
                     runs, n, error, len);
}

bool history_db_is_taken(struct history_db *db, const struct history_run *run, double steal_limit)
{
    sqlite3_stmt *s = history_statement(
        db, "SELECT least_steal FROM runs WHERE name = ? AND host = ? AND started_utc = ?", "ttt",
        run->name, run->host, run->started_utc);
    bool taken = s && sqlite3_step(s) == SQLITE_ROW &&
                 steal_is_over(sqlite3_column_double(s, 0), steal_limit);

    sqlite3_finalize(s);
    return taken;
}

static int write_file(const char *folder, const char *name, const void *bytes, size_t n)
{
    char *path = xasprintf("%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int err = fd < 0 ? -errno : write_all(fd, bytes, n);

    if (fd >= 0 && close(fd) && !err)
        err = -errno;
    free(path);
    return err;
}

int history_db_restore(struct history_db *db, int64_t id, const char *folder, char *error,
                       size_t len)
{
    sqlite3_stmt *s = history_statement(db, "SELECT name, text FROM files WHERE run = ?", "i", id);
    int code = SQLITE_ERROR, err = 0;

    while (s && !err && (code = sqlite3_step(s)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(s, 0);

        /* A file may be made by anybody: a name in it must not lead out of the folder. */
        err = (name && *name && *name != '.' && !strchr(name, '/'))
                  ? write_file(folder, name, sqlite3_column_blob(s, 1),
                               (size_t)sqlite3_column_bytes(s, 1))
                  : -EBADMSG;
        if (err)
            snprintf(error, len, "cannot take '%s' out of the history '%s' into '%s': %s",
                     name ? name : "", db->path, folder,
                     err == -EBADMSG ? "damaged name" : strerror(-err));
    }
    if (err)
        sqlite3_finalize(s);
    return err ? err : finish(db, s, code, error, len);
}

/* ---- what was accepted */

/* A row is a case of what was accepted, or all of a run. */
#define ACCEPTED(which)                                                                            \
    "SELECT a.id, c.key, r.name, r.started_utc, r.host, r.suite, a.reason, a.by, a.at_utc,"        \
    " count(*) OVER () FROM accepted a JOIN runs r ON r.id = a.run"                                \
    " LEFT JOIN accepted_cases c ON c.accepted = a.id WHERE " which                                \
    " ORDER BY r.started_utc, r.id, a.id, c.key"

static int take_accepted(struct history_db *db, sqlite3_stmt *s, struct pool *pool,
                         struct history_acceptance **all, size_t *n, char *error, size_t len)
{
    const char **keys = NULL; /* of all of them, one behind the other */
    int64_t last = 0;
    int code = SQLITE_ERROR;

    *all = NULL;
    *n = 0;
    while (s && (code = sqlite3_step(s)) == SQLITE_ROW) {
        if (!*all) {
            size_t most = (size_t)sqlite3_column_int64(s, 9);

            *all = pool_alloc(pool, most, sizeof(**all));
            keys = pool_alloc(pool, most, sizeof(*keys));
        }
        if (!*n || last != sqlite3_column_int64(s, 0))
            (*all)[(*n)++] = (struct history_acceptance){
                .run = keep(pool, s, 2),
                .started_utc = keep(pool, s, 3),
                .host = keep(pool, s, 4),
                .suite = keep(pool, s, 5),
                .reason = keep(pool, s, 6),
                .by = keep(pool, s, 7),
                .at_utc = keep(pool, s, 8),
                .keys = keys,
            };
        last = sqlite3_column_int64(s, 0);
        if (sqlite3_column_type(s, 1) != SQLITE_NULL) {
            *keys++ = keep(pool, s, 1);
            (*all)[*n - 1].n_keys++;
        }
    }
    return finish(db, s, code, error, len);
}

/* ---- which runs one is held against, and what for */

_Static_assert(PAIRS_LEVEL == 0 && PAIRS_ANCHOR == 1 && PAIRS_NO_PART == 2, "roles in the SQL");

/* Three tables of this connection alone. The runs that one may be held against, as history_db_choose()
 * has it, numbered in time order: */
static const char others[] =
    "CREATE TEMP TABLE others AS SELECT id, good, row_number() OVER (ORDER BY started_utc, id) AS "
    "at,"
    /* the rows of runs in memory are in their folders */
    " ?6 OR EXISTS (SELECT 1 FROM files WHERE run = r.id) AS has_rows,"
    " ?7 > 0 AND ifnull(least_steal, 0) > 100 * ?7 AS taken FROM runs r"
    " WHERE host = ?1 AND suite = ?2 AND NOT (name = ?4 AND started_utc = ?3)"
    " AND (?5 OR (started_utc, id) < (?3, ifnull((SELECT id FROM runs WHERE name = ?4"
    " AND host = ?1 AND started_utc = ?3), 9223372036854775807)))";
/* where the reference of all cases (key NULL) begins, and of those of which something was accepted
 * by itself; 0: with the first run: */
static const char starts[] =
    "CREATE TEMP TABLE starts AS"
    " WITH marks AS (SELECT o.at, c.key FROM accepted a JOIN others o ON o.id = a.run"
    " LEFT JOIN accepted_cases c ON c.accepted = a.id)"
    " SELECT k.key, ifnull((SELECT max(at) FROM marks m WHERE m.key IS NULL OR m.key = k.key), 0)"
    " AS at FROM (SELECT NULL AS key UNION SELECT key FROM marks) k";
/* and the roles of each. The last ?1 runs that others did not take are its level, the first ?1 its
 * anchors; those that they took, and that would have been of the level, have no part. Each key is
 * there, if with no run. */
static const char chosen[] =
    "CREATE TEMP TABLE chosen AS"
    " WITH counting AS (SELECT s.key, o.id, o.at, o.taken FROM starts s JOIN others o"
    " ON o.at >= s.at AND o.has_rows AND (o.good OR o.at = s.at)),"
    " placed AS (SELECT *, sum(NOT taken) OVER (PARTITION BY key ORDER BY at DESC) AS newer,"
    " sum(NOT taken) OVER (PARTITION BY key ORDER BY at) AS older FROM counting)"
    " SELECT key, at, id AS run, CASE WHEN ?1 = 0 OR newer + taken <= ?1 THEN 2 * taken"
    " WHEN older <= ?1 AND NOT taken THEN 1 END AS role FROM placed WHERE role IS NOT NULL"
    " UNION ALL SELECT key, 0, NULL, 2 FROM starts";

/* What the table says of each run that has a part. */
static int take_roles(struct history_db *db, struct history_choice *to, char *error, size_t len)
{
    sqlite3_stmt *s = history_statement(
        db, "SELECT key, run, role, (SELECT count(*) FROM starts) FROM chosen ORDER BY key, at",
        "");
    enum pairs_role *roles = NULL;
    int code = SQLITE_ERROR;

    while (s && (code = sqlite3_step(s)) == SQLITE_ROW) {
        const char *key = (const char *)sqlite3_column_text(s, 0);
        int64_t run = sqlite3_column_int64(s, 1); /* 0: the row says that the key is there */
        size_t i = 0;

        if (!to->roles)
            to->roles =
                pool_alloc(&to->pool, (size_t)sqlite3_column_int64(s, 3), sizeof(*to->roles));
        if (!run) {
            roles = pool_alloc(&to->pool, to->n, sizeof(*roles));
            for (; i < to->n; i++)
                roles[i] = PAIRS_NO_PART;
            to->roles[to->n_roles++] =
                (struct pairs_roles){key ? keep(&to->pool, s, 0) : NULL, roles};
            continue;
        }
        while (i < to->n && to->runs[i].id != run)
            i++;
        if (i < to->n)
            roles[i] = (enum pairs_role)sqlite3_column_int(s, 2);
        to->n_taken += !key && sqlite3_column_int(s, 2) == PAIRS_NO_PART;
    }
    for (size_t i = 0; to->n_roles && i < to->n; i++) {
        to->n_level += to->roles[0].runs[i] == PAIRS_LEVEL;
        to->n_anchor += to->roles[0].runs[i] == PAIRS_ANCHOR;
    }
    return finish(db, s, code, error, len);
}

int history_db_choose(struct history_db *db, const struct history_run *run,
                      const struct history_sieve *sieve, struct history_choice *choice, char *error,
                      size_t len)
{
    static const char anew[] = "DROP TABLE IF EXISTS temp.others; DROP TABLE IF EXISTS temp.starts;"
                               "DROP TABLE IF EXISTS temp.chosen";

    *choice = (struct history_choice){0};
    if (sqlite3_exec(db->sqlite, anew, NULL, NULL, NULL) != SQLITE_OK ||
        history_execute(db, others, "ttttiir", run->host, run->suite, run->started_utc, run->name,
                        (int64_t)sieve->later, (int64_t)db->in_memory,
                        sieve->steal_limit) != SQLITE_OK ||
        history_execute(db, starts, "") != SQLITE_OK ||
        history_execute(db, chosen, "i", (int64_t)sieve->most) != SQLITE_OK)
        return history_sqlite_error(db, "read the history", error, len);
    int err = take_runs(
        db, history_statement(db, RUNS("r.id IN (SELECT run FROM chosen WHERE role < 2)"), ""),
        &choice->pool, &choice->runs, &choice->n, error, len);
    if (!err) /* those that still hold */
        err = take_accepted(
            db,
            history_statement(db,
                              ACCEPTED("r.id IN (SELECT o.id FROM others o JOIN"
                                       " starts s ON s.key IS NULL AND o.at >= s.at)"),
                              ""),
            &choice->pool, &choice->accepted, &choice->n_accepted, error, len);
    return err ? err : take_roles(db, choice, error, len);
}

/* ---- all series */

/* Labels of different nights leave out different things: "null 1" of one, where the number varied,
 * may be another case than "null 1" of the next. Those are called by all that makes them. */
static const char series[] =
    "SELECT id, key, label, pipe, host, suite, unit, higher_is_better, n,"
    " count(*) OVER (PARTITION BY host, suite, label) > 1, count(*) OVER () FROM"
    " (SELECT *, (SELECT count(*) FROM launches WHERE series = r.id) AS n FROM series r"
    " WHERE " OF_HOST_AND_SUITE ") WHERE n > 0 ORDER BY host, suite, place, key";

static const char values[] =
    "SELECT l.run, l.value, l.steal, o.json FROM launches l JOIN runs r ON r.id = l.run"
    " LEFT JOIN outcomes o ON o.series = l.series AND o.run = l.run"
    " WHERE l.series = ? ORDER BY r.started_utc, r.id, l.launch";

/* The launches of a series, `most` of them, into what it has of each run. */
static int read_values(struct history_db *db, struct history *h, int64_t id, size_t most,
                       struct history_series *s, char *error, size_t len)
{
    const struct history_run **runs = pool_alloc(&h->pool, h->n_runs, sizeof(*runs));
    double *launches = pool_alloc(&h->pool, 2 * most, sizeof(*launches)), *steals = launches + most;
    sqlite3_stmt *v = history_statement(db, values, "i", id);
    size_t at = 0, n = 0; /* the run that comes next; launches */
    int code = SQLITE_ERROR;

    s->runs = runs;
    s->launches = pool_alloc(&h->pool, h->n_runs, sizeof(*s->launches));
    s->steals = pool_alloc(&h->pool, h->n_runs, sizeof(*s->steals));
    s->n_launches = pool_alloc(&h->pool, h->n_runs, sizeof(*s->n_launches));
    s->outcomes = pool_alloc(&h->pool, h->n_runs, sizeof(*s->outcomes));
    while (v && (code = sqlite3_step(v)) == SQLITE_ROW && n < most) {
        int64_t run = sqlite3_column_int64(v, 0);

        if (!s->n || runs[s->n - 1]->id != run) {
            const char *text = (const char *)sqlite3_column_text(v, 3); /* NULL: not kept */
            const char *last = s->n ? s->outcomes[s->n - 1] : NULL;

            size_t found = at;

            while (found < h->n_runs && h->runs[found].id != run)
                found++;
            if (found == h->n_runs)
                continue; /* a damaged file: the run is of another suite */
            at = found;
            runs[s->n] = &h->runs[at];
            s->launches[s->n] = &launches[n];
            s->steals[s->n] = &steals[n];
            /* Mostly those of the run before, which are kept then. */
            s->outcomes[s->n++] = text && last && !strcmp(text, last) ? last
                                  : text                              ? keep(&h->pool, v, 3)
                                                                      : NULL;
        }
        steals[n] = sqlite3_column_type(v, 2) == SQLITE_NULL ? NAN : sqlite3_column_double(v, 2);
        launches[n++] = sqlite3_column_double(v, 1);
        s->n_launches[s->n - 1]++;
    }
    return finish(db, v, code == SQLITE_ROW ? SQLITE_DONE : code, error, len);
}

static int read_series(struct history_db *db, const char *host, const char *suite,
                       const char *const *only, struct history *h, char *error, size_t len)
{
    sqlite3_stmt *s = history_statement(db, series, "tt", host, suite);
    int code = SQLITE_ERROR, err = 0;

    while (s && !err && (code = sqlite3_step(s)) == SQLITE_ROW) {
        struct history_series one = {
            .key = keep(&h->pool, s, 1),
            .label = keep(&h->pool, s, 2),
            .pipe = keep(&h->pool, s, 3),
            .host = keep(&h->pool, s, 4),
            .suite = keep(&h->pool, s, 5),
            .unit = keep(&h->pool, s, 6),
            .higher_is_better = sqlite3_column_int(s, 7),
        };

        if (!only_keeps(only, &(struct only_case){.key = one.key, .label = one.label}))
            continue;
        if (sqlite3_column_int(s, 9))
            one.label = history_case_name(&h->pool, one.key);
        err = read_values(db, h, sqlite3_column_int64(s, 0), (size_t)sqlite3_column_int64(s, 8),
                          &one, error, len);
        if (!h->series)
            h->series = pool_alloc(&h->pool, (size_t)sqlite3_column_int64(s, 10), sizeof(one));
        if (one.n)
            h->series[h->n_series++] = one;
    }
    if (err)
        sqlite3_finalize(s);
    return err ? err : finish(db, s, code, error, len);
}

int history_db_read(struct history_db *db, const char *host, const char *suite,
                    const char *const *only, struct history *h, char *error, size_t len)
{
    *h = (struct history){.judged = true};
    /* One state of the file for all questions, whoever writes meanwhile. */
    sqlite3_exec(db->sqlite, "BEGIN", NULL, NULL, NULL);
    int err = history_db_runs(db, host, suite, &h->pool, &h->runs, &h->n_runs, error, len);

    if (!err)
        err =
            take_accepted(db, history_statement(db, ACCEPTED(OF_HOST_AND_SUITE), "tt", host, suite),
                          &h->pool, &h->accepted, &h->n_accepted, error, len);
    if (!err)
        err = read_series(db, host, suite, only, h, error, len);
    sqlite3_exec(db->sqlite, "COMMIT", NULL, NULL, NULL);
    return err;
}
