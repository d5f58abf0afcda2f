/* SPDX-License-Identifier: Apache-2.0 */
/* What other guests took of the CPU, filled in where a history is older than the column: see history_db_sqlite.h. */
#include "harness/compare/pairs.h"

#include <errno.h>
#include <math.h>

#include "harness/history/history_db_build.h"
#include "harness/history/history_db_sqlite.h"
#include "harness/history/scratch.h"

static int failed(struct history_db *db, char *error, size_t len)
{
    return history_sqlite_error(db, "bring up the history", error, len);
}

/* A launch is known by its number and its value: rows that say something else are of another time. */
static int fill_case(struct history_db *db, const struct history_run *run, struct pairs *p,
                     const struct pair *pair, char *error, size_t len)
{
    const struct decide_run *of = &pair->decide.b.runs[0];
    const double *steal = steal_of_launches(&p->report.pool, pair, p->n_a, of->n);
    int code = SQLITE_OK;

    if (!steal)
        return history_out_of_memory(error, len);
    for (size_t i = 0; code == SQLITE_OK && i < of->n; i++)
        if (!isnan(steal[i]))
            code = history_execute(db,
                                   "UPDATE launches SET steal = ? WHERE run = ? AND launch = ? AND"
                                   " value = ? AND series = (SELECT id FROM series WHERE host = ?"
                                   " AND suite = ? AND key = ?)",
                                   "riirttt", steal[i], run->id, (int64_t)i, of->values[i],
                                   run->host, run->suite, pair->key);
    return code == SQLITE_OK ? 0 : failed(db, error, len);
}

/* By the rows themselves, which lie there as the history keeps them: damaged, of a schema that this program does not know, or
 * none. Everything else (memory, files that cannot be opened) may pass. */
static bool are_unreadable(int err)
{
    return err == -EBADMSG || err == -EPROTO || err == -EINVAL || err == -ENOENT;
}

/* A run whose rows cannot be read stays as it was: of its launches it is not known. */
static int fill_from(struct history_db *db, const struct history_run *run, const char *folder,
                     char *error, size_t len)
{
    struct pairs p = {0};
    int err = history_cases(&p, folder, error, len);

    if (are_unreadable(err))
        err = 0;
    else
        for (size_t i = 0; !err && i < p.n; i++)
            if (p.all[i].state == PAIR_READY)
                err = fill_case(db, run, &p, &p.all[i], error, len);
    pairs_release(&p);
    return err;
}

static int fill_run(struct history_db *db, const struct history_run *run, char *error, size_t len)
{
    char *folder = NULL;
    int err = scratch_make(&folder, error, len);

    if (!err)
        err = history_restore(db, run->id, folder, error, len);
    if (!err)
        err = fill_from(db, run, folder, error, len);
    else if (err == -EILSEQ)
        err = 0; /* a name that leads out of the folder: these rows cannot be read */
    scratch_remove(folder);
    return err;
}

static int has_rows(struct history_db *db, const struct history_run *run, bool *has, char *error,
                    size_t len)
{
    sqlite3_stmt *s =
        history_statement(db, "SELECT 1 FROM files WHERE run = ? LIMIT 1", "i", run->id);
    int code = s ? sqlite3_step(s) : SQLITE_ERROR;
    int err = code == SQLITE_ROW || code == SQLITE_DONE ? 0 : failed(db, error, len);

    *has = code == SQLITE_ROW;
    sqlite3_finalize(s);
    return err;
}

int history_fill_steal(struct history_db *db, char *error, size_t len)
{
    struct history_run *runs = NULL;
    size_t n = 0;
    int err = history_db_runs(db, "", "", 0, &runs, &n, error, len);

    for (size_t i = 0; !err && i < n; i++) {
        bool has;

        err = has_rows(db, &runs[i], &has, error, len);
        if (!err && has)
            err = fill_run(db, &runs[i], error, len);
    }
    history_runs_release(runs, n);
    return err;
}
