/* SPDX-License-Identifier: Apache-2.0 */
/* The history's runs: which there are, which are baselines, and folders out of them. See history_db.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/compare/pairs.h"
#include "harness/history/history_db_sqlite.h"
#include "harness/text.h"

#define RUN_COLUMNS "id, name, host, suite, started_utc, version, commit_id, standing"
/* The least that others took in a launch of run r; NULL where it has none. */
#define LEAST_STEAL                                                                                \
    "(SELECT min(ifnull(l.steal, 0)) FROM series s JOIN launches l ON l.series = s.id"             \
    " AND l.run = r.id WHERE s.host = r.host)"
#define AT_STATE                                                                                   \
    8 /* behind RUN_COLUMNS, where it is asked for, and then whether the rows are there */

static bool copy_run(sqlite3_stmt *s, struct history_run *run)
{
    *run = (struct history_run){
        .id = sqlite3_column_int64(s, 0),
        .name = strdup(history_column_text(s, 1)),
        .host = strdup(history_column_text(s, 2)),
        .suite = strdup(history_column_text(s, 3)),
        .started_utc = strdup(history_column_text(s, 4)),
        .version = strdup(history_column_text(s, 5)),
        .commit = strdup(history_column_text(s, 6)),
        .standing = (enum history_standing)sqlite3_column_int(s, 7),
    };
    return run->name && run->host && run->suite && run->started_utc && run->version && run->commit;
}

static void turn_round(struct history_run *runs, size_t n)
{
    for (size_t i = 0; i < n / 2; i++) {
        struct history_run last = runs[n - 1 - i];

        runs[n - 1 - i] = runs[i];
        runs[i] = last;
    }
}

static bool copy_more(sqlite3_stmt *s, struct history_run *run)
{
    const char *state = (const char *)sqlite3_column_text(s, AT_STATE);

    run->state = state ? strdup(state) : NULL;
    run->has_rows = sqlite3_column_int(s, AT_STATE + 1);
    return !state || run->state;
}

/* The rows of the statement, newest first, as runs, oldest first. more: behind RUN_COLUMNS stands what copy_more() takes.
 * Ends the statement. */
static int take_runs(struct history_db *db, sqlite3_stmt *s, bool more, struct history_run **runs,
                     size_t *n, char *error, size_t len)
{
    int code = SQLITE_ERROR, err = 0;

    *runs = NULL;
    *n = 0;
    while (s && !err && (code = sqlite3_step(s)) == SQLITE_ROW) {
        struct history_run *all = reallocarray(*runs, *n + 1, sizeof(*all));

        if (all)
            *runs = all;
        if (!all || !copy_run(s, &all[(*n)++]) || (more && !copy_more(s, &all[*n - 1])))
            err = history_out_of_memory(error, len);
    }
    if (!err && code != SQLITE_DONE)
        err = history_sqlite_error(db, "read the history", error, len);
    sqlite3_finalize(s);
    if (!err)
        turn_round(*runs, *n);
    return err;
}

int history_db_runs(struct history_db *db, const char *host, const char *suite, size_t n,
                    struct history_run **runs, size_t *n_runs, char *error, size_t len)
{
    sqlite3_stmt *s = history_statement(
        db,
        "SELECT " RUN_COLUMNS " FROM runs WHERE (?1 = '' OR host = ?1) AND (?2 = '' OR suite = ?2)"
        " ORDER BY started_utc DESC, id DESC LIMIT ?3",
        "tti", host, suite, n ? (int64_t)n : (int64_t)-1);

    return take_runs(db, s, false, runs, n_runs, error, len);
}

/* started_utc counts whole seconds: what stands between two of them is the order they were added in. */
#define EARLIER(state)                                                                             \
    "SELECT " RUN_COLUMNS ", " state ", EXISTS (SELECT 1 FROM files WHERE run = r.id)"             \
    " FROM runs r WHERE host = ?1 AND suite = ?2"                                                  \
    " AND (started_utc, id) < (?3, ifnull((SELECT id FROM runs WHERE name = ?4 AND host = ?1"      \
    " AND started_utc = ?3), 9223372036854775807)) ORDER BY started_utc DESC, id DESC"

int history_earlier(struct history_db *db, const struct history_run *run, struct history_run **runs,
                    size_t *n, char *error, size_t len)
{
    const char *sql = history_schema(db) < 2 ? EARLIER("NULL") : EARLIER("state");
    sqlite3_stmt *s =
        history_statement(db, sql, "tttt", run->host, run->suite, run->started_utc, run->name);

    return take_runs(db, s, true, runs, n, error, len);
}

char *history_environment_of(struct history_db *db, int64_t run)
{
    sqlite3_stmt *s = history_statement(
        db,
        history_schema(db) < 2
            ? "SELECT text FROM files WHERE name = 'run.json' AND run = ?"
            : "SELECT e.json FROM environments e JOIN runs r ON r.environment = e.id"
              " WHERE r.id = ?",
        "i", run);
    char *json = s && sqlite3_step(s) == SQLITE_ROW ? strdup(history_column_text(s, 0)) : NULL;

    sqlite3_finalize(s);
    return json;
}

/* Before schema 3 nothing is known of what others took. */
static bool knows_steal(struct history_db *db)
{
    return history_schema(db) >= 3;
}

bool history_db_is_taken(struct history_db *db, const struct history_run *run, double steal_limit)
{
    sqlite3_stmt *s = knows_steal(db)
                          ? history_statement(db,
                                              "SELECT " LEAST_STEAL " FROM runs r WHERE name = ?"
                                              " AND host = ? AND started_utc = ?",
                                              "ttt", run->name, run->host, run->started_utc)
                          : NULL;
    bool taken = s && sqlite3_step(s) == SQLITE_ROW &&
                 steal_is_over(sqlite3_column_double(s, 0), steal_limit);

    sqlite3_finalize(s);
    return taken;
}

static int write_file(const char *folder, const char *name, const void *bytes, size_t n)
{
    char *path = NULL;

    if (asprintf(&path, "%s/%s", folder, name) < 0)
        return -ENOMEM;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int err = fd < 0 ? -errno : write_all(fd, bytes, n);

    if (fd >= 0 && close(fd) && !err)
        err = -errno;
    free(path);
    return err;
}

/* A file may be made by anybody: a name in it must not lead out of the folder. */
static bool is_plain_name(const char *name)
{
    return *name && *name != '.' && !strchr(name, '/');
}

int history_restore(struct history_db *db, int64_t id, const char *folder, char *error, size_t len)
{
    sqlite3_stmt *s = history_statement(db, "SELECT name, text FROM files WHERE run = ?", "i", id);
    int code = SQLITE_ERROR, err = 0;

    while (s && !err && (code = sqlite3_step(s)) == SQLITE_ROW) {
        const char *name = history_column_text(s, 0);

        err = is_plain_name(name) ? write_file(folder, name, sqlite3_column_blob(s, 1),
                                               (size_t)sqlite3_column_bytes(s, 1))
                                  : -EILSEQ;
        if (err)
            snprintf(error, len, "cannot take '%s' out of the history '%s' into '%s': %s", name,
                     db->path, folder, err == -EILSEQ ? "damaged name" : strerror(-err));
    }
    if (!err && code != SQLITE_DONE)
        err = history_sqlite_error(db, "read the history", error, len);
    sqlite3_finalize(s);
    return err;
}

int history_db_restore(struct history_db *db, int64_t id, const char *folder, char *error,
                       size_t len)
{
    int err = history_restore(db, id, folder, error, len);

    return err == -EILSEQ ? -EBADMSG : err;
}
