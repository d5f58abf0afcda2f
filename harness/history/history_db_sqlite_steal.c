/* SPDX-License-Identifier: Apache-2.0 */
/* What other guests took of the CPU, filled in where a history is older than the column: see history_db_sqlite.h. */
#include "harness/compare/steal.h"

#include <errno.h>
#include <math.h>

#include "harness/history/history_db_build.h"
#include "harness/history/history_db_sqlite.h"
#include "harness/history/scratch.h"

/* A launch is known by its number and its value: rows that say something else are of another time. */
static int fill_case(struct history_db *db, const struct history_run *run, struct pairs *p,
                     const struct pair *pair)
{
    const struct decide_run *of = &pair->decide.b.runs[0];
    const double *steal = steal_of_launches(&p->report.pool, pair, p->n_a, of->n);
    int code = steal ? SQLITE_OK : SQLITE_NOMEM;

    for (size_t i = 0; code == SQLITE_OK && i < of->n; i++)
        if (!isnan(steal[i]))
            code = history_execute(db,
                                   "UPDATE launches SET steal = ? WHERE run = ? AND launch = ? AND"
                                   " value = ? AND series = (SELECT id FROM series WHERE host = ?"
                                   " AND suite = ? AND key = ?)",
                                   "riirttt", steal[i], run->id, (int64_t)i, of->values[i],
                                   run->host, run->suite, pair->key);
    return code;
}

/* A run whose rows cannot be read stays as it was: of its launches it is not known. */
static int fill_from(struct history_db *db, const struct history_run *run, const char *folder,
                     char *error, size_t len)
{
    struct pairs p = {0};
    char why[512];
    int code = SQLITE_OK;

    if (!history_cases(&p, folder, why, sizeof(why)))
        for (size_t i = 0; code == SQLITE_OK && i < p.n; i++)
            if (p.all[i].state == PAIR_READY)
                code = fill_case(db, run, &p, &p.all[i]);
    pairs_release(&p);
    return code == SQLITE_OK ? 0 : history_sqlite_error(db, "bring up the history", error, len);
}

static int fill_run(struct history_db *db, const struct history_run *run, char *error, size_t len)
{
    char *folder = NULL;
    int err = scratch_make(&folder, error, len);

    if (!err)
        err = history_db_restore(db, run->id, folder, error, len);
    if (!err)
        err = fill_from(db, run, folder, error, len);
    else if (err == -EBADMSG)
        err = 0; /* a name that leads out of the folder */
    scratch_remove(folder);
    return err;
}

static bool has_rows(struct history_db *db, const struct history_run *run)
{
    sqlite3_stmt *s =
        history_statement(db, "SELECT 1 FROM files WHERE run = ? LIMIT 1", "i", run->id);
    bool has = s && sqlite3_step(s) == SQLITE_ROW;

    sqlite3_finalize(s);
    return has;
}

int history_fill_steal(struct history_db *db, char *error, size_t len)
{
    struct history_run *runs = NULL;
    size_t n = 0;
    int err = history_db_runs(db, "", "", 0, &runs, &n, error, len);

    for (size_t i = 0; !err && i < n; i++)
        if (has_rows(db, &runs[i]))
            err = fill_run(db, &runs[i], error, len);
    history_runs_release(runs, n);
    return err;
}
