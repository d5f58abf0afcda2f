/* SPDX-License-Identifier: Apache-2.0 */
/* A run on its way into the SQLite history; used by history_db_sqlite_add.c and history_db_sqlite_stored.c alone. */
#ifndef PLUMB_HISTORY_DB_SQLITE_ADD_H
#define PLUMB_HISTORY_DB_SQLITE_ADD_H

#include "harness/compare/pairs.h"
#include "harness/history/history_db_build.h"
#include "harness/history/history_db_sqlite.h"

struct adding {
    struct history_db *db;
    const char *path;
    const struct run_folder *folder; /* what lies there now */
    struct history_run run;
    const char *state; /* "complete"; "" */
    int64_t ended;     /* launches that have, well or not */
    enum history_standing standing;
    struct history_judged *judged;
    struct pool *settled_in; /* where what it settles is to live */
    struct pairs cases;
    char *error;
    size_t len;
};

/* What the history has of the run; id 0: nothing. */
struct stored {
    int64_t id;
    int64_t values; /* in all cases */
    int64_t ended;  /* launches; -1: not known, of a run that schema 1 kept */
    enum history_standing standing;
    bool has_files;
    bool same_facts;  /* suite, program, machine and state are those of the folder */
    bool same_values; /* and so are the values, and what the rows tell beside them */
    bool longer;      /* it has more launches than the folder */
    bool went_on;     /* it has fewer, or had not ended, or in another way */
};

/* A case's launches in the run, of which some may be no number. */
static inline const struct decide_run *adding_launches(const struct pair *pair)
{
    return &pair->decide.b.runs[0];
}

/* What others took of the CPU in each of them. */
static inline const double *adding_steal(struct adding *a, const struct pair *pair)
{
    return steal_of_launches(&a->cases.report.pool, pair, a->cases.n_a, adding_launches(pair)->n);
}

/* Is something of it accepted? Then what it is to be is what it becomes. */
static inline bool adding_is_accepted(const struct adding *a)
{
    return a->standing == HISTORY_START || a->judged->acceptance;
}

/* Settles the gains of earlier runs by those of this one, which may be a baseline then. Before the run is
 * written, within the transaction; id: it is there already, 0: it is not. 0 or -errno with a->error set. */
int marks_settle(struct adding *a, int64_t id);
/* Once a->run is written: keeps who settled what, what was accepted, and the gains of a run on probation.
 * anew: also of a run that was there. */
int marks_write(struct adding *a, bool anew);

/* What the history has of a->run, and whether it is the same. 0 or -errno with a->error set. Within the transaction. */
int stored_find(struct adding *a, struct stored *stored);

#endif
