/* SPDX-License-Identifier: Apache-2.0 */
/* plumb check --update-baseline and --accept: what a judged run is to later ones. */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "harness/check/check.h"
#include "harness/plan/plan.h"
#include "harness/report/show.h"

/* ---- What became of a run in the history, in words ---- */

#define NAMED_MAX 4 /* of cases in a sentence; the JSON has all */
#define TAKEN     STEAL_WHY " in all its repetitions"

/* "2 cases (memory triad, gemm bf16)". */
static const char *cases_text(const struct gate *g, const struct history_acceptance *a)
{
    struct pool *pool = &g->p->report.pool;
    const char **labels = pool_alloc(pool, a->n_keys, sizeof(*labels));

    if (!a->n_keys)
        return "all cases";
    for (size_t k = 0; k < a->n_keys; k++) {
        labels[k] = a->keys[k];
        for (size_t i = 0; i < g->n; i++)
            if (!strcmp(g->cases[i].pair->key, a->keys[k]))
                labels[k] = g->cases[i].pair->label;
    }
    return pool_text(pool, "%s (%s)", show_count(pool, a->n_keys, "case"),
                     pool_list(pool, labels, a->n_keys, NAMED_MAX, ", "));
}

/* ", as a baseline for later ones", or why it is none. */
static const char *standing_text(const struct gate *g, const struct check_kept *k)
{
    struct pool *pool = &g->p->report.pool;

    if (k->judged.good && k->taken)
        return ", but later ones are not held against it: " TAKEN;
    if (k->judged.good)
        return ", as a baseline for later ones";
    if (!g->likely || g->verdict == GATE_LOST || g->verdict == GATE_INCOMPLETE)
        return ", but is no baseline";
    return pool_text(
        pool,
        ", but is no baseline, as a slowdown beyond the margin is likely in %s, and not "
        "proven (%s: %s)",
        show_count(pool, g->tally.likely, "case"), g->likely->pair->label,
        words_percent(pool, 1 - g->likely->pair->decide.ratio));
}

static const char *accepted_text(const struct gate *g, const struct check_kept *k)
{
    struct pool *pool = &g->p->report.pool;
    const struct history_acceptance *a = &k->acceptance;

    if (!k->judged.acceptance)
        return "";
    return pool_text(pool,
                     "; accepted: a new reference begins with it in %s; later ones are held "
                     "against none before it there%s%s%s",
                     cases_text(g, a), !a->n_keys && k->taken ? ", and not against it: " TAKEN : "",
                     *a->reason ? "; reason: " : "; no reason is kept: --reason TEXT keeps one",
                     a->reason);
}

/* ---- accepting ---- */

int check_accept(struct check_command *c, const struct gate *g, struct check_kept *kept)
{
    struct pool *pool = &g->p->report.pool;
    struct history_acceptance *a = &kept->acceptance;
    const char **keys = pool_alloc(pool, g->n, sizeof(*keys));
    bool some = c->only && *c->only;
    char utc[24];
    /* Whoever calls as root by sudo is somebody. */
    const char *sudo = geteuid() ? NULL : getenv("SUDO_USER");
    const struct passwd *user = sudo && *sudo ? NULL : getpwuid(geteuid());

    *a = (struct history_acceptance){.reason = c->options.reason ? c->options.reason : "",
                                     .by = pool_text(pool, "%s",
                                                     sudo && *sudo ? sudo
                                                     : user        ? user->pw_name
                                                                   : ""),
                                     .at_utc = pool_text(pool, "%s", clock_utc(utc, sizeof(utc))),
                                     .keys = keys};
    for (size_t i = 0; some && i < g->n; i++)
        if (only_keeps(c->only, &(struct only_case){.key = g->cases[i].pair->key,
                                                    .label = g->cases[i].pair->label}))
            keys[a->n_keys++] = g->cases[i].pair->key;
    kept->judged.acceptance = a;
    if (!some || a->n_keys)
        return 0;
    snprintf(c->error, sizeof(c->error),
             "no case matches '%.400s', so nothing is accepted; one is called '%.400s', and plumb "
             "check RUN --json - has all",
             c->only[0], g->n ? g->cases[0].pair->label : "");
    return -ENOENT;
}

int check_update(struct check_command *c, const struct gate *g, struct check_kept *kept)
{
    const char *history = c->options.history;
    struct pairs *p = g->p;
    struct pool *pool = &p->report.pool;
    enum history_added how = HISTORY_NEW;
    bool made = access(history, F_OK) != 0;
    int err;
    struct history_db *db = history_db_open(history, true, &err, c->error, sizeof(c->error));

    kept->judged.good = g->good;
    if (!err)
        err = history_db_add(db, c->run, &kept->judged, &how, c->error, sizeof(c->error));
    if (!err) {
        struct history_run r = history_run_of(&p->report.runs[p->n_a]);

        kept->taken = history_db_is_taken(db, &r, steal_limit(c->options.steal));
        kept->done = true;
    }
    history_db_close(db);
    /* What the history did with it. */
    static const char *const words[] = {
        [HISTORY_NEW] = "this run was added",
        [HISTORY_SAME] = "this run was there already",
        [HISTORY_CHANGED] = "this run was there otherwise, and is now as its folder has it",
        [HISTORY_SHORTER] = "this run was there already, with more repetitions: left so"};

    kept->sentence = err ? pool_text(pool, "history '%s': this run was not added", history)
                         : pool_text(pool, "'%s'%s: %s%s%s", history, made ? ", a new file" : "",
                                     words[how], standing_text(g, kept), accepted_text(g, kept));
    return err;
}
