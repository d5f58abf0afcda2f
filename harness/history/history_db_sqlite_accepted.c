/* SPDX-License-Identifier: Apache-2.0 */
/* Changes that were accepted: see history_db.h. */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "harness/history/history_db.h"

int history_write_accepted(struct history_db *db, int64_t run,
                           const struct history_acceptance *accepted)
{
    int code =
        history_execute(db, "INSERT INTO accepted (run, at_utc, by, reason) VALUES (?, ?, ?, ?)",
                        "ittt", run, accepted->at_utc, accepted->by, accepted->reason);
    int64_t id = sqlite3_last_insert_rowid(db->sqlite);

    for (size_t i = 0; code == SQLITE_OK && i < accepted->n_keys; i++)
        code = history_execute(db, "INSERT INTO accepted_cases VALUES (?, ?)", "it", id,
                               accepted->keys[i]);
    return code;
}

#define ACCEPTED                                                                                   \
    "SELECT a.id, c.key, r.name, r.started_utc, r.host, r.suite, a.reason, a.by, a.at_utc,"        \
    " count(*) OVER () FROM accepted a JOIN runs r ON r.id = a.run"                                \
    " LEFT JOIN accepted_cases c ON c.accepted = a.id"                                             \
    " WHERE (?1 = '' OR r.host = ?1) AND (?2 = '' OR r.suite = ?2)"                                \
    " ORDER BY r.started_utc, r.id, a.id, c.key"

struct accepted_reading {
    struct pool *pool;
    struct history_acceptance *all;
    size_t n;
    const char **keys; /* of all of them, one behind the other */
    size_t n_keys;
    int64_t last;
};

static const char *kept(struct accepted_reading *r, sqlite3_stmt *s, int column)
{
    return pool_text(r->pool, "%s", history_column_text(s, column));
}

int history_accepted(struct history_db *db, const char *host, const char *suite, struct pool *pool,
                     struct history_acceptance **all, size_t *n, char *error, size_t len)
{
    struct accepted_reading r = {.pool = pool};
    int code = SQLITE_ERROR;

    sqlite3_stmt *s = history_statement(db, ACCEPTED, "tt", host, suite);
    while (s && (code = sqlite3_step(s)) == SQLITE_ROW) {
        /* A row is a case of what was accepted, or all of a run. */
        if (!r.all) {
            size_t most = (size_t)sqlite3_column_int64(s, 9);

            r.all = pool_alloc(r.pool, most, sizeof(*r.all));
            r.keys = pool_alloc(r.pool, most, sizeof(*r.keys));
        }
        if (!r.n || r.last != sqlite3_column_int64(s, 0))
            r.all[r.n++] = (struct history_acceptance){
                .run = kept(&r, s, 2),
                .started_utc = kept(&r, s, 3),
                .host = kept(&r, s, 4),
                .suite = kept(&r, s, 5),
                .reason = kept(&r, s, 6),
                .by = kept(&r, s, 7),
                .at_utc = kept(&r, s, 8),
                .keys = &r.keys[r.n_keys],
            };
        r.last = sqlite3_column_int64(s, 0);
        if (sqlite3_column_type(s, 1) != SQLITE_NULL) {
            r.keys[r.n_keys++] = kept(&r, s, 1);
            r.all[r.n - 1].n_keys++;
        }
    }
    int err = code == SQLITE_DONE ? 0 : history_sqlite_error(db, "read the history", error, len);
    sqlite3_finalize(s);
    *all = r.all;
    *n = r.n;
    return err;
}
