/* SPDX-License-Identifier: Apache-2.0 */
/* A history in a folder of its own, and small runs to add to it: for tests. */
#ifndef PLUMB_TESTS_HISTORY_SCENE_H
#define PLUMB_TESTS_HISTORY_SCENE_H

#include <fcntl.h>
#include <sys/wait.h>

#include "check_runs.h"
#include "harness/history/history_db.h"
#include "tests/unit/unit.h"

struct scene {
    struct fake_run root;
    char db[128];
};

static inline int set_up(void **state)
{
    struct scene *s = calloc(1, sizeof(*s));

    fake_run_init(&s->root);
    snprintf(s->db, sizeof(s->db), "%s/history.db", s->root.path);
    *state = s;
    return 0;
}

static inline int tear_down(void **state)
{
    struct scene *s = *state;

    fake_run_release(&s->root);
    free(s);
    return 0;
}

/* Run number i of host and suite, a day each, with another level each. */
static inline void write_run(const struct scene *s, const char *host, unsigned i, char *path,
                             size_t len)
{
    char name[32], started[32];

    snprintf(name, sizeof(name), "%s-%u", host, i);
    snprintf(started, sizeof(started), "2026-01-%02uT00:00:00Z", i + 1);
    struct check_run r = {.name = name,
                          .host = host,
                          .suite = "quick",
                          .started_utc = started,
                          .values = {100 + i, 20, i % 2 ? 0 : 5},
                          .launches = 3};
    check_run_write(&s->root, &r, path, len);
}

static inline struct history_db *open_db(const char *path, bool create)
{
    char error[512] = "";
    int err;
    struct history_db *db = history_db_open(path, create, &err, error, sizeof(error));

    if (!db)
        fail_msg("%d: %s", err, error);
    return db;
}

/* Adds the run of a folder; returns what the history said. */
static inline int add_as(const char *db_path, const char *path, struct history_judged *as,
                         enum history_added *how, char *error, size_t len)
{
    int err;
    struct history_db *db = history_db_open(db_path, true, &err, error, len);

    if (!err)
        err = history_db_add(db, path, as, how, error, len);
    history_db_close(db);
    return err;
}

/* accepted: of all cases where keys is NULL, else of these two. */
static inline void add_path(const struct scene *s, const char *path, bool good, bool accepted,
                            const char *const *keys)
{
    const struct history_acceptance acceptance = {
        .reason = "", .by = "", .at_utc = "", .keys = keys, .n_keys = keys ? 2 : 0};
    struct history_judged judged = {.good = good, .acceptance = accepted ? &acceptance : NULL};
    enum history_added how;
    char error[512] = "";
    int err = add_as(s->db, path, &judged, &how, error, sizeof(error));

    if (err)
        fail_msg("%d: %s", err, error);
}

static inline void add(const struct scene *s, const char *host, unsigned i, bool good)
{
    char path[128];

    write_run(s, host, i, path, sizeof(path));
    add_path(s, path, good, false, NULL);
}

static inline void read_db(const struct scene *s, struct history *h)
{
    char error[512] = "";
    struct history_db *db = open_db(s->db, false);

    assert_int_equal(history_db_read(db, "", "", NULL, h, error, sizeof(error)), 0);
    history_db_close(db);
}

static inline size_t count_runs(const struct scene *s)
{
    struct history h;

    read_db(s, &h);
    size_t n = h.n_runs;
    history_release(&h);
    return n;
}

/* What the program sqlite3 says to this, from which it is told whether it was there and content. */
static inline bool sqlite(const char *db, const char *sql, char *said, size_t len)
{
    int from[2], status = 1;

    if (pipe(from))
        abort();
    pid_t child = fork();
    if (!child) {
        dup2(from[1], 1);
        dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), 2);
        execlp("sqlite3", "sqlite3", db, sql, NULL);
        _exit(127);
    }
    close(from[1]);
    ssize_t n = read(from[0], said, len - 1);
    said[n > 0 ? n : 0] = '\0';
    close(from[0]);
    return waitpid(child, &status, 0) == child && !status;
}

/* sqlite3's own word on the file. */
static inline void assert_sound(const char *db)
{
    char word[64];

    if (sqlite(db, "PRAGMA integrity_check", word, sizeof(word)))
        assert_string_equal(word, "ok\n");
}

#endif
