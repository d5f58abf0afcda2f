/* SPDX-License-Identifier: Apache-2.0 */
/* A run that is added, held against what the history has of it: see history_db_sqlite_add.h. */
#include "harness/history/history_db_sqlite_add.h"

#include <errno.h>
#include <math.h>
#include <string.h>

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

/* By the values themselves: nothing else tells for sure that a folder says what it said. Returns how many it has. */
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

/* Which of the two is further on: by the launches that have ended, of which schema 1 knew nothing. */
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

int stored_find(struct adding *a, struct stored *stored)
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
