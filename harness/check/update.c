/* SPDX-License-Identifier: Apache-2.0 */
/* plumb check --update-baseline: what a judged run is to later ones. */
#include <stdio.h>
#include <unistd.h>

#include "harness/check/cmd.h"
#include "harness/history/history_db.h"

/* A loss that became the baseline would be gone the next night, and so would a case that failed. */
static enum history_standing standing_of(const struct check_command *c, const struct gate *g)
{
    if (c->options.accept)
        return HISTORY_START;
    return g->verdict == GATE_LOST || g->verdict == GATE_INCOMPLETE ? HISTORY_SEEN
                                                                    : HISTORY_BASELINE;
}

static const char *sentence_of(struct pool *pool, const char *history,
                               enum history_standing standing, bool known, bool made)
{
    const char *was_made = made ? ", which was made for it" : "";

    switch (standing) {
    case HISTORY_START:
        return pool_text(pool,
                         "accepted: this run's level, in the history '%s'%s; later runs are held "
                         "against it, and against none before it",
                         history, was_made);
    case HISTORY_SEEN:
        return pool_text(pool,
                         known ? "history '%s'%s: this run was there already"
                               : "history '%s'%s: this run was added, but is no baseline; if its "
                                 "level is meant: --accept",
                         history, was_made);
    default:
        return pool_text(pool,
                         known ? "history '%s'%s: this run was there already"
                               : "history '%s'%s: this run was added, as a baseline for later ones",
                         history, was_made);
    }
}

int check_update(struct check_command *c, const struct gate *g, const char **sentence)
{
    const char *history = c->options.history;
    enum history_standing standing = standing_of(c, g);
    struct pairs *p = g->p;
    bool known = false, made = access(history, F_OK) != 0;
    int err;
    struct history_db *db = history_db_open(history, true, &err, c->error, sizeof(c->error));

    for (size_t run = p->n_a; !err && run < p->report.n_runs; run++)
        err = history_db_add_as(db, &p->report, run, standing, &known, c->error, sizeof(c->error));
    history_db_close(db);
    *sentence = err ? pool_text(&p->report.pool, "history '%s': this run was not added", history)
                    : sentence_of(&p->report.pool, history, standing, known, made);
    return err;
}
