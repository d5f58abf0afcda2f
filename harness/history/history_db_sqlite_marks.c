/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of single cases of a run, and what was accepted of it: enum history_mark of
 * history_db.h. */
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "harness/history/history_db.h"

static int failed(const struct adding *a)
{
    return history_sqlite_error(a->db, "add what a run was found to be to the history", a->error,
                                a->len);
}

static bool is_among(const char *key, const char *const *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(keys[i], key))
            return true;
    return false;
}

/* --- settling gains of earlier runs --- */

/* A gain that is to be settled. */
struct open_gain {
    int64_t run;
    const char *name, *key;
    bool restarted; /* another level of the case was accepted since */
};

struct settling {
    struct adding *a;
    struct open_gain *all;
    size_t n, room;
};

/* Of the runs before this one, back to the last start. started_utc counts whole seconds: see
 * EARLIER() of history_db_sqlite_read.c. */
#define OPEN_GAINS                                                                                 \
    "WITH earlier AS (SELECT * FROM runs WHERE host = ?1 AND suite = ?2"                           \
    " AND (started_utc, id) < (?3, ifnull(nullif(?4, 0), 9223372036854775807)))"                   \
    " SELECT r.id, r.name, m.key, EXISTS (SELECT 1 FROM marks n JOIN earlier l ON l.id = n.run"    \
    " WHERE n.key = m.key AND n.mark = 1 AND (l.started_utc, l.id) > (r.started_utc, r.id))"       \
    " FROM earlier r JOIN marks m ON m.run = r.id AND m.mark = 2 WHERE r.standing = 3"             \
    " AND r.started_utc >= ifnull((SELECT max(started_utc) FROM earlier WHERE standing = 2), '')"  \
    " ORDER BY r.started_utc, r.id, m.key"

static int add_open(struct settling *s, sqlite3_stmt *row)
{
    struct pool *pool = &s->a->cases.report.pool;

    if (s->n == s->room) {
        size_t room = s->room ? 2 * s->room : 32;
        struct open_gain *more = pool_alloc(pool, room, sizeof(*more));

        if (!more)
            return -ENOMEM;
        if (s->n)
            memcpy(more, s->all, s->n * sizeof(*more));
        s->all = more;
        s->room = room;
    }
    s->all[s->n++] = (struct open_gain){
        .run = sqlite3_column_int64(row, 0),
        .name = pool_text(pool, "%s", history_column_text(row, 1)),
        .key = pool_text(pool, "%s", history_column_text(row, 2)),
        .restarted = sqlite3_column_int(row, 3),
    };
    return pool->failed ? -ENOMEM : 0;
}

static int find_open(struct settling *s, int64_t id)
{
    const struct history_run *r = &s->a->run;
    sqlite3_stmt *row =
        history_statement(s->a->db, OPEN_GAINS, "ttti", r->host, r->suite, r->started_utc, id);
    int code = row ? SQLITE_ROW : SQLITE_ERROR, err = 0;

    while (row && !err && (code = sqlite3_step(row)) == SQLITE_ROW)
        err = add_open(s, row);
    if (err)
        history_out_of_memory(s->a->error, s->a->len);
    else if (code != SQLITE_DONE)
        err = failed(s->a);
    sqlite3_finalize(row);
    return err;
}

static bool is_true(const struct settling *s, const struct open_gain *g)
{
    const struct history_judged *j = s->a->judged;

    return !g->restarted && is_among(g->key, j->gains, j->n_gains);
}

/* The gains [begin, end) of one run. One that this run decided nothing of is not told by it, and
 * waits. */
static int settle_run(struct settling *s, size_t begin, size_t end)
{
    struct history_judged *j = s->a->judged;
    bool decided = false;
    int code = SQLITE_OK;

    for (size_t i = begin; i < end; i++)
        decided |= is_among(s->all[i].key, j->decided, j->n_decided);
    for (size_t i = begin; decided && code == SQLITE_OK && i < end; i++) {
        const struct open_gain *g = &s->all[i];

        code = history_execute(
            s->a->db, "UPDATE marks SET mark = ? WHERE run = ? AND key = ?", "iit",
            (int64_t)(is_true(s, g) ? HISTORY_GAIN_TRUE : HISTORY_GAIN_FALSE), g->run, g->key);
        j->settled[j->n_settled++] =
            (struct history_settled){pool_text(s->a->settled_in, "%s", g->name),
                                     pool_text(s->a->settled_in, "%s", g->key), is_true(s, g)};
    }
    if (decided && code == SQLITE_OK)
        code = history_execute(s->a->db, "UPDATE runs SET standing = 1 WHERE id = ?", "i",
                               s->all[begin].run);
    return code == SQLITE_OK ? 0 : failed(s->a);
}

/* Is it a gain of this run alone? Those that it makes true are the earlier run's. */
static bool is_own_gain(const struct history_judged *j, const char *key)
{
    for (size_t i = 0; i < j->n_settled; i++)
        if (j->settled[i].is_true && !strcmp(j->settled[i].key, key))
            return false;
    return true;
}

static bool has_own_gain(const struct history_judged *j)
{
    for (size_t i = 0; i < j->n_gains; i++)
        if (is_own_gain(j, j->gains[i]))
            return true;
    return false;
}

int marks_settle(struct adding *a, int64_t id)
{
    struct history_judged *j = a->judged;
    struct settling s = {.a = a};
    int err = 0;

    j->n_settled = 0;
    if (j->n_decided)
        err = find_open(&s, id);
    j->settled = pool_alloc(a->settled_in, s.n + 1, sizeof(*j->settled));
    if (!err && !j->settled)
        err = history_out_of_memory(a->error, a->len);
    for (size_t i = 0, end; !err && i < s.n; i = end) {
        for (end = i + 1; end < s.n && s.all[end].run == s.all[i].run;)
            end++;
        err = settle_run(&s, i, end);
    }
    if (!err && a->standing == HISTORY_PROBATION && !has_own_gain(j))
        a->standing = HISTORY_BASELINE;
    return err;
}

/* --- writing --- */

/* What was accepted, and what was settled, stays. */
static int write_gains(struct adding *a)
{
    const struct history_judged *j = a->judged;
    int code =
        history_execute(a->db, "DELETE FROM marks WHERE run = ? AND mark = 2", "i", a->run.id);

    for (size_t i = 0; code == SQLITE_OK && a->standing == HISTORY_PROBATION && i < j->n_gains; i++)
        if (is_own_gain(j, j->gains[i]))
            code = history_execute(a->db,
                                   "INSERT OR IGNORE INTO marks (run, key, mark) VALUES (?, ?, 2)",
                                   "it", a->run.id, j->gains[i]);
    return code;
}

static int write_settled(struct adding *a)
{
    const struct history_judged *j = a->judged;
    int code = SQLITE_OK;

    for (size_t i = 0; code == SQLITE_OK && i < j->n_settled; i++)
        code = history_execute(a->db,
                               "UPDATE marks SET settled_by = ?1 WHERE key = ?2 AND mark IN (3, 4)"
                               " AND settled_by IS NULL AND run IN (SELECT id FROM runs WHERE"
                               " host = ?3 AND suite = ?4 AND name = ?5)",
                               "itttt", a->run.id, j->settled[i].key, a->run.host, a->run.suite,
                               j->settled[i].run);
    return code;
}

static int write_accepted(struct adding *a, const struct history_acceptance *accepted)
{
    int code =
        history_execute(a->db, "INSERT INTO accepted (run, at_utc, by, reason) VALUES (?, ?, ?, ?)",
                        "ittt", a->run.id, accepted->at_utc, accepted->by, accepted->reason);
    int64_t id = sqlite3_last_insert_rowid(a->db->sqlite);

    for (size_t i = 0; code == SQLITE_OK && i < accepted->n_keys; i++) {
        code = history_execute(a->db, "INSERT INTO accepted_cases VALUES (?, ?)", "it", id,
                               accepted->keys[i]);
        if (code == SQLITE_OK)
            code = history_execute(a->db,
                                   "INSERT INTO marks (run, key, mark) VALUES (?, ?, 1)"
                                   " ON CONFLICT (run, key) DO UPDATE SET mark = 1",
                                   "it", a->run.id, accepted->keys[i]);
    }
    return code;
}

int marks_write(struct adding *a, bool anew)
{
    int code = write_settled(a);

    if (code == SQLITE_OK && anew)
        code = write_gains(a);
    if (code == SQLITE_OK && a->judged->acceptance)
        code = write_accepted(a, a->judged->acceptance);
    return code == SQLITE_OK ? 0 : failed(a);
}

/* --- reading --- */

int history_marks(struct history_db *db, const struct history_run *run, struct pool *pool,
                  struct history_marked **all, size_t *n, char *error, size_t len)
{
    *all = NULL;
    *n = 0;
    sqlite3_stmt *s = history_statement(
        db,
        "SELECT m.run, m.mark, m.key, count(*) OVER () FROM marks m JOIN runs r ON r.id = m.run"
        " WHERE r.host = ? AND r.suite = ?",
        "tt", run->host, run->suite);
    int code = SQLITE_ERROR;

    while (s && (code = sqlite3_step(s)) == SQLITE_ROW) {
        if (!*all)
            *all = pool_alloc(pool, (size_t)sqlite3_column_int64(s, 3), sizeof(**all));
        if (*all)
            (*all)[(*n)++] = (struct history_marked){
                .run = sqlite3_column_int64(s, 0),
                .mark = (enum history_mark)sqlite3_column_int(s, 1),
                .key = pool_text(pool, "%s", history_column_text(s, 2)),
            };
    }
    int err = code == SQLITE_DONE ? 0 : history_sqlite_error(db, "read the history", error, len);
    sqlite3_finalize(s);
    return pool->failed ? history_out_of_memory(error, len) : err;
}

#define ACCEPTED                                                                                   \
    "SELECT a.id, c.key, r.name, r.started_utc, r.host, r.suite, a.reason, a.by, a.at_utc,"        \
    " count(*) OVER () FROM accepted a JOIN runs r ON r.id = a.run"                                \
    " LEFT JOIN accepted_cases c ON c.accepted = a.id"                                             \
    " WHERE (?1 = '' OR r.host = ?1) AND (?2 = '' OR r.suite = ?2)"                                \
    " ORDER BY r.started_utc, r.id, a.id, c.key"

struct reading {
    struct pool *pool;
    struct history_acceptance *all;
    size_t n;
    const char **keys; /* of all of them, one behind the other */
    size_t n_keys;
    int64_t last;
};

static const char *kept(struct reading *r, sqlite3_stmt *s, int column)
{
    return pool_text(r->pool, "%s", history_column_text(s, column));
}

/* A row is a case of what was accepted, or all of a run. */
static int take_accepted(struct reading *r, sqlite3_stmt *s)
{
    if (!r->all) {
        size_t most = (size_t)sqlite3_column_int64(s, 9);

        r->all = pool_alloc(r->pool, most, sizeof(*r->all));
        r->keys = pool_alloc(r->pool, most, sizeof(*r->keys));
        if (!r->all || !r->keys)
            return -ENOMEM;
    }
    if (!r->n || r->last != sqlite3_column_int64(s, 0))
        r->all[r->n++] = (struct history_acceptance){
            .run = kept(r, s, 2),
            .started_utc = kept(r, s, 3),
            .host = kept(r, s, 4),
            .suite = kept(r, s, 5),
            .reason = kept(r, s, 6),
            .by = kept(r, s, 7),
            .at_utc = kept(r, s, 8),
            .keys = &r->keys[r->n_keys],
        };
    r->last = sqlite3_column_int64(s, 0);
    if (sqlite3_column_type(s, 1) != SQLITE_NULL) {
        r->keys[r->n_keys++] = kept(r, s, 1);
        r->all[r->n - 1].n_keys++;
    }
    return r->pool->failed ? -ENOMEM : 0;
}

int history_accepted(struct history_db *db, const char *host, const char *suite, struct pool *pool,
                     struct history_acceptance **all, size_t *n, char *error, size_t len)
{
    struct reading r = {.pool = pool};
    int code = SQLITE_ERROR, err = 0;

    *all = NULL;
    *n = 0;
    sqlite3_stmt *s = history_statement(db, ACCEPTED, "tt", host, suite);
    while (s && !err && (code = sqlite3_step(s)) == SQLITE_ROW)
        err = take_accepted(&r, s);
    if (err)
        history_out_of_memory(error, len);
    else if (code != SQLITE_DONE)
        err = history_sqlite_error(db, "read the history", error, len);
    sqlite3_finalize(s);
    *all = r.all;
    *n = r.n;
    return err;
}
