/* SPDX-License-Identifier: Apache-2.0 */
/* plumb check --update-baseline: what a judged run is to later ones. */
#include <stdio.h>
#include <unistd.h>

#include "harness/check/cmd.h"
#include "harness/check/words.h"
#include "harness/compare/steal.h"
#include "harness/history/history_db_build.h"

/* A loss that became the baseline would be gone the next night, and so would a case that failed; and one that is likely
 * and not proven would never be. */
static enum history_standing standing_of(const struct check_command *c, const struct gate *g)
{
    if (c->options.accept)
        return HISTORY_START;
    if (g->verdict == GATE_LOST || g->verdict == GATE_INCOMPLETE || g->tally.suspect)
        return HISTORY_SEEN;
    return HISTORY_BASELINE;
}

/* What the history did with it. */
static const char *done_of(enum history_added how)
{
    switch (how) {
    case HISTORY_SAME:
        return "this run was there already";
    case HISTORY_CHANGED:
        return "this run was there otherwise, and is now as its folder has it";
    case HISTORY_SHORTER:
        return "this run was there already, with more launches than its folder has, and was left "
               "so";
    default:
        return "this run was added";
    }
}

#define TAKEN STEAL_WHY " in all its launches"

/* Why a run of which no loss is proven is no baseline. */
static const char *suspect_of(struct pool *pool, const struct gate *g)
{
    if (g->verdict == GATE_LOST || g->verdict == GATE_INCOMPLETE || !g->tally.suspect)
        return "";
    return pool_text(pool,
                     ", as a loss beyond the margin is likely in %zu case%s, and not proven (%s: "
                     "%s)",
                     g->tally.suspect, g->tally.suspect == 1 ? "" : "s", g->suspect->pair->label,
                     words_percent(pool, 1 - g->suspect->pair->decide.ratio));
}

/* taken: as history_db_is_taken(). */
static const char *sentence_of(const struct gate *g, const char *history,
                               enum history_standing standing, enum history_added how, bool made,
                               bool taken)
{
    struct pool *pool = &g->p->report.pool;
    const char *was_made = made ? ", which was made for it" : "";

    if (taken && standing == HISTORY_START)
        return pool_text(pool,
                         "accepted: the start of later runs, in the history '%s'%s; they are held "
                         "against none before this run, and not against it: " TAKEN,
                         history, was_made);
    if (taken && standing == HISTORY_BASELINE)
        return pool_text(pool, "history '%s'%s: %s, but later ones are not held against it: " TAKEN,
                         history, was_made, done_of(how));
    if (standing == HISTORY_START)
        return pool_text(pool,
                         "accepted: this run's level, in the history '%s'%s; later runs are held "
                         "against it, and against none before it",
                         history, was_made);
    if (standing == HISTORY_BASELINE)
        return pool_text(pool, "history '%s'%s: %s, as a baseline for later ones", history,
                         was_made, done_of(how));
    return pool_text(pool,
                     "history '%s'%s: %s, but is no baseline%s; if its level is meant: --accept",
                     history, was_made, done_of(how), suspect_of(pool, g));
}

int check_update(struct check_command *c, const struct gate *g, const char **sentence, bool *taken)
{
    const char *history = c->options.history;
    enum history_standing standing = standing_of(c, g);
    enum history_added how = HISTORY_NEW;
    struct pairs *p = g->p;
    bool made = access(history, F_OK) != 0;
    int err;
    struct history_db *db = history_db_open(history, true, &err, c->error, sizeof(c->error));

    for (size_t run = p->n_a; !err && run < p->report.n_runs; run++)
        err = history_db_add(db, &p->report, run, &standing, &how, c->error, sizeof(c->error));
    if (!err) {
        struct history_run r = history_run_of(&p->report.runs[p->n_a]);

        *taken = history_db_is_taken(db, &r, steal_limit(c->options.steal));
    }
    history_db_close(db);
    *sentence = err ? pool_text(&p->report.pool, "history '%s': this run was not added", history)
                    : sentence_of(g, history, standing, how, made, *taken);
    return err;
}
