/* SPDX-License-Identifier: Apache-2.0 */
/* A build without SQLite: see history_db.h. There is no history but in run folders. */
#include <errno.h>
#include <stdio.h>

#include "harness/history/history_db.h"

static int missing(char *error, size_t len)
{
    snprintf(
        error, len,
        "this plumb was built without SQLite and keeps no history: install libsqlite3-dev, then "
        "make config and make; or hold runs against run folders");
    return -ENOSYS;
}

struct history_db *history_db_open(const char *path, bool create, int *err, char *error, size_t len)
{
    (void)path;
    (void)create;
    *err = missing(error, len);
    return NULL;
}

struct history_db *history_db_open_within(const char *path, bool create, int busy_ms, int *err,
                                          char *error, size_t len)
{
    (void)busy_ms;
    return history_db_open(path, create, err, error, len);
}

void history_db_close(struct history_db *db)
{
    (void)db;
}

/* Nobody comes to what follows: there is no database that was opened. */
int history_db_add(struct history_db *db, const struct report *r, size_t run,
                   struct history_judged *judged, enum history_added *how, char *error, size_t len)
{
    (void)db;
    (void)r;
    (void)run;
    (void)judged;
    *how = HISTORY_SAME;
    return missing(error, len);
}

int history_db_runs(struct history_db *db, const char *host, const char *suite, size_t n,
                    struct history_run **runs, size_t *n_runs, char *error, size_t len)
{
    (void)db;
    (void)host;
    (void)suite;
    (void)n;
    *runs = NULL;
    *n_runs = 0;
    return missing(error, len);
}

int history_db_choose(struct history_db *db, const struct history_run *run,
                      const struct history_sieve *sieve, struct history_choice *choice, char *error,
                      size_t len)
{
    (void)db;
    (void)run;
    (void)sieve;
    *choice = (struct history_choice){0};
    return missing(error, len);
}

int history_db_environment(struct history_db *db, const struct history_run *run,
                           const struct history_sieve *sieve, struct pool *pool,
                           struct environment_word *word, size_t *n, char *error, size_t len)
{
    (void)db;
    (void)run;
    (void)sieve;
    (void)pool;
    *word = (struct environment_word){0};
    *n = 0;
    return missing(error, len);
}

bool history_db_is_taken(struct history_db *db, const struct history_run *run, double steal_limit)
{
    (void)db;
    (void)run;
    (void)steal_limit;
    return false;
}

int history_db_restore(struct history_db *db, int64_t id, const char *folder, char *error,
                       size_t len)
{
    (void)db;
    (void)id;
    (void)folder;
    return missing(error, len);
}

int history_db_read(struct history_db *db, const char *host, const char *suite,
                    const char *const *only, struct history *h, char *error, size_t len)
{
    (void)db;
    (void)host;
    (void)suite;
    (void)only;
    *h = (struct history){0};
    return missing(error, len);
}
