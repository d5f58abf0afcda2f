/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the history: its runs with all series. See history_db.h. */
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

/* The history's runs: which there are, which are baselines, and folders out of them. See
 * history_db.h. */

#define RUN_COLUMNS "id, name, host, suite, started_utc, version, commit_id, good, count(*) OVER ()"
/* The least that others took in a launch of run r; NULL where it has none. */
#define LEAST_STEAL                                                                                \
    "(SELECT min(ifnull(l.steal, 0)) FROM series s JOIN launches l ON l.series = s.id"             \
    " AND l.run = r.id WHERE s.host = r.host)"

static const char *kept(struct pool *pool, sqlite3_stmt *s, int column)
{
    return pool_text(pool, "%s", history_column_text(s, column));
}

/* The rows of the statement as runs, in its order; more: behind RUN_COLUMNS stands whether their
 * rows are there. Ends the statement. */
static int take_runs(struct history_db *db, sqlite3_stmt *s, bool more, struct pool *pool,
                     struct history_run **runs, size_t *n, char *error, size_t len)
{
    int code = SQLITE_ERROR;

    *runs = NULL;
    *n = 0;
    while (s && (code = sqlite3_step(s)) == SQLITE_ROW) {
        if (!*runs)
            *runs = pool_alloc(pool, (size_t)sqlite3_column_int64(s, 8), sizeof(**runs));
        (*runs)[(*n)++] = (struct history_run){
            .id = sqlite3_column_int64(s, 0),
            .name = kept(pool, s, 1),
            .host = kept(pool, s, 2),
            .suite = kept(pool, s, 3),
            .started_utc = kept(pool, s, 4),
            .version = kept(pool, s, 5),
            .commit = kept(pool, s, 6),
            .good = sqlite3_column_int(s, 7),
            .has_rows = more && sqlite3_column_int(s, 9),
        };
    }
    int err = code == SQLITE_DONE ? 0 : history_sqlite_error(db, "read the history", error, len);
    sqlite3_finalize(s);
    return err;
}

int history_db_runs(struct history_db *db, const char *host, const char *suite, struct pool *pool,
                    struct history_run **runs, size_t *n, char *error, size_t len)
{
    sqlite3_stmt *s = history_statement(
        db,
        "SELECT " RUN_COLUMNS " FROM runs WHERE (?1 = '' OR host = ?1) AND (?2 = '' OR suite = ?2)"
        " ORDER BY started_utc, id",
        "tt", host, suite);

    return take_runs(db, s, false, pool, runs, n, error, len);
}

/* started_utc counts whole seconds: what stands between two of them is the order they were added
 * in. The rows of runs in memory are in their folders. */
static const char others[] =
    "SELECT " RUN_COLUMNS ", ?6 OR EXISTS (SELECT 1 FROM files WHERE run = r.id)"
    " FROM runs r WHERE host = ?1 AND suite = ?2 AND NOT (name = ?4 AND started_utc = ?3)"
    " AND (?5 OR (started_utc, id) < (?3, ifnull((SELECT id FROM runs WHERE name = ?4"
    " AND host = ?1 AND started_utc = ?3), 9223372036854775807))) ORDER BY started_utc, id";

int history_others(struct history_db *db, const struct history_run *run, bool later,
                   struct pool *pool, struct history_run **runs, size_t *n, char *error, size_t len)
{
    sqlite3_stmt *s =
        history_statement(db, others, "ttttii", run->host, run->suite, run->started_utc, run->name,
                          (int64_t)later, (int64_t)db->in_memory);

    return take_runs(db, s, true, pool, runs, n, error, len);
}

bool history_db_is_taken(struct history_db *db, const struct history_run *run, double steal_limit)
{
    sqlite3_stmt *s = history_statement(db,
                                        "SELECT " LEAST_STEAL " FROM runs r WHERE name = ?"
                                        " AND host = ? AND started_utc = ?",
                                        "ttt", run->name, run->host, run->started_utc);
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
        const char *name = history_column_text(s, 0);

        /* A file may be made by anybody: a name in it must not lead out of the folder. */
        err = (*name && *name != '.' && !strchr(name, '/'))
                  ? write_file(folder, name, sqlite3_column_blob(s, 1),
                               (size_t)sqlite3_column_bytes(s, 1))
                  : -EBADMSG;
        if (err)
            snprintf(error, len, "cannot take '%s' out of the history '%s' into '%s': %s", name,
                     db->path, folder, err == -EBADMSG ? "damaged name" : strerror(-err));
    }
    if (!err && code != SQLITE_DONE)
        err = history_sqlite_error(db, "read the history", error, len);
    sqlite3_finalize(s);
    return err;
}

static const char *keep(struct history *h, const char *text)
{
    return pool_text(&h->pool, "%s", text);
}

struct run_place {
    int64_t id;
    size_t index;
};

static int compare_places(const void *a, const void *b)
{
    int64_t x = ((const struct run_place *)a)->id, y = ((const struct run_place *)b)->id;

    return (x > y) - (x < y);
}

struct values_reading {
    struct history *h;
    struct run_place *places;
    const char *const *only;
    struct history_entries entries;
    int64_t series; /* of the last row; wanted: it is asked for; its texts */
    bool wanted;
    struct history_entry texts;
    const char *outcomes; /* the last ones */
    double *steals;       /* of the last entry */
};

/* The entry that a row belongs to: rows of one case in one run follow each other. */
static struct history_entry *entry_of(struct values_reading *v, size_t run, size_t n_launches)
{
    struct history_entries *e = &v->entries;
    struct history_entry *last = e->n ? &e->all[e->n - 1] : NULL;

    if (last && last->key == v->texts.key && last->run == run)
        return last;
    v->texts.run = run;
    v->texts.n_launches = 0;
    v->texts.launches = pool_alloc(&v->h->pool, n_launches, sizeof(double));
    v->texts.steals = v->steals = pool_alloc(&v->h->pool, n_launches, sizeof(double));
    last = ARRAY_ADD(e->all, e->n);
    *last = v->texts;
    return last;
}

/* A row is a launch. */
static void take_value(struct values_reading *v, sqlite3_stmt *s)
{
    struct run_place key = {.id = sqlite3_column_int64(s, 9)};
    const struct run_place *at =
        bsearch(&key, v->places, v->h->n_runs, sizeof(key), compare_places);

    if (v->series != sqlite3_column_int64(s, 0)) {
        v->series = sqlite3_column_int64(s, 0);
        v->wanted = only_keeps(v->only, &(struct only_case){.key = history_column_text(s, 1),
                                                            .label = history_column_text(s, 2)});
        if (v->wanted)
            v->texts = (struct history_entry){
                .key = keep(v->h, history_column_text(s, 1)),
                .label = keep(v->h, history_column_text(s, 2)),
                .pipe = keep(v->h, history_column_text(s, 3)),
                .host = keep(v->h, history_column_text(s, 4)),
                .suite = keep(v->h, history_column_text(s, 5)),
                .unit = keep(v->h, history_column_text(s, 6)),
                .higher_is_better = sqlite3_column_int(s, 7),
                .place = (size_t)sqlite3_column_int64(s, 8),
            };
    }
    if (!v->wanted || !at)
        return;
    struct history_entry *entry = entry_of(v, at->index, (size_t)sqlite3_column_int64(s, 11));
    if (!entry->n_launches) {
        /* Mostly those of the run before, which are kept then. NULL: not kept. */
        const char *text = (const char *)sqlite3_column_text(s, 12);

        if (text && (!v->outcomes || strcmp(text, v->outcomes) != 0))
            v->outcomes = keep(v->h, text);
        entry->outcomes = text ? v->outcomes : NULL;
    }
    v->steals[entry->n_launches] =
        sqlite3_column_type(s, 13) == SQLITE_NULL ? NAN : sqlite3_column_double(s, 13);
    entry->launches[entry->n_launches++] = sqlite3_column_double(s, 10);
}

static const char values[] =
    "SELECT s.id, s.key, s.label, s.pipe, s.host, s.suite, s.unit, s.higher_is_better, s.place,"
    " l.run, l.value, (SELECT count(*) FROM launches WHERE series = l.series AND run = l.run),"
    " (SELECT json FROM outcomes WHERE series = l.series AND run = l.run), l.steal"
    " FROM launches l JOIN series s ON s.id = l.series WHERE (?1 = '' OR s.host = ?1)"
    " AND (?2 = '' OR s.suite = ?2) ORDER BY l.series, l.run, l.launch";

static int read_values(struct history_db *db, struct values_reading *v, const char *host,
                       const char *suite, char *error, size_t len)
{
    sqlite3_stmt *s = history_statement(db, values, "tt", host, suite);
    int code = SQLITE_ERROR;

    while (s && (code = sqlite3_step(s)) == SQLITE_ROW)
        take_value(v, s);
    int err = code == SQLITE_DONE ? 0 : history_sqlite_error(db, "read the history", error, len);
    sqlite3_finalize(s);
    return err;
}

int history_db_read(struct history_db *db, const char *host, const char *suite,
                    const char *const *only, struct history *h, char *error, size_t len)
{
    struct values_reading v = {.h = h, .only = only};

    *h = (struct history){0};
    /* One state of the file for both questions, whoever writes meanwhile. */
    sqlite3_exec(db->sqlite, "BEGIN", NULL, NULL, NULL);
    h->judged = true;
    int err = history_db_runs(db, host, suite, &h->pool, &h->runs, &h->n_runs, error, len);
    if (!err) {
        struct run_place *places = xcalloc(h->n_runs, sizeof(*places));

        for (size_t i = 0; i < h->n_runs; i++)
            places[i] = (struct run_place){.id = h->runs[i].id, .index = i};
        qsort(places, h->n_runs, sizeof(*places), compare_places);
        v.places = places;
        /* One environment's runs follow each other, and it is kept once. */
        sqlite3_stmt *s = history_statement(
            db,
            "SELECT r.id, e.id, e.json FROM environments e JOIN runs r ON r.environment = e.id"
            " ORDER BY e.id",
            "");
        const char *kept = NULL;
        int64_t last = 0;
        int code = SQLITE_ERROR;

        while (s && (code = sqlite3_step(s)) == SQLITE_ROW) {
            const struct run_place key = {.id = sqlite3_column_int64(s, 0)};
            const struct run_place *at =
                bsearch(&key, v.places, h->n_runs, sizeof(key), compare_places);

            if (!at)
                continue;
            if (!kept || last != sqlite3_column_int64(s, 1))
                kept = keep(h, history_column_text(s, 2));
            last = sqlite3_column_int64(s, 1);
            h->runs[at->index].environment = kept;
        }
        err = code == SQLITE_DONE ? 0 : history_sqlite_error(db, "read the history", error, len);
        sqlite3_finalize(s);
    }
    if (!err)
        err = history_accepted(db, host, suite, &h->pool, &h->accepted, &h->n_accepted, error, len);
    if (!err)
        err = read_values(db, &v, host, suite, error, len);
    if (!err)
        history_build(h, &v.entries);
    sqlite3_exec(db->sqlite, "COMMIT", NULL, NULL, NULL);
    free(v.places);
    free(v.entries.all);
    return err;
}
