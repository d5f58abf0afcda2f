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
#include "harness/compare/pairs.h"
#include "harness/history/history_db.h"
#include "harness/plan/plan.h"
#include "harness/report/show.h"

struct kept_words {
    const struct gate *g;
    const struct check_kept *kept;
    const char *history; /* its file */
    bool made;           /* the file was made for this run */
    enum history_added how;
};

/* ---- What became of a run in the history, in words ---- */

#define NAMED_MAX 4 /* of cases and facts in a sentence; the JSON has all */
#define TAKEN     STEAL_WHY " in all its launches"

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

static const char *and_more(struct pool *pool, const char *list, size_t n)
{
    return n > NAMED_MAX ? pool_text(pool, "%s and %zu more", list, n - NAMED_MAX) : list;
}

static const char *label_of(const struct gate *g, const char *key)
{
    for (size_t i = 0; i < g->n; i++)
        if (!strcmp(g->cases[i].pair->key, key))
            return g->cases[i].pair->label;
    return key;
}

/* "2 cases (memory triad, gemm bf16)". */
static const char *cases_text(const struct gate *g, const char *const *keys, size_t n)
{
    struct pool *pool = &g->p->report.pool;
    const char *list = "";

    for (size_t i = 0; i < n && i < NAMED_MAX; i++)
        list = show_joined(pool, list, label_of(g, keys[i]));
    return pool_text(pool, "%s (%s)", show_count(pool, n, "case"), and_more(pool, list, n));
}

/* --- the environment --- */

static const char *others_text(struct pool *pool, const struct environment_word *e)
{
    const char *list = "";

    for (size_t i = 0; i < e->n_other && i < NAMED_MAX; i++)
        list = show_joined(
            pool, list,
            pool_text(pool, "%s %s against %s", e->other[i].what, e->other[i].b, e->other[i].a));
    return and_more(pool, list, e->n_other);
}

/* What one side does not tell is neither the same nor different. */
static const char *unknown_text(struct pool *pool, const struct environment_word *e)
{
    const char *list = "";

    for (size_t i = 0; i < e->n_unknown && i < NAMED_MAX; i++)
        list = show_joined(pool, list, e->unknown[i]);
    return e->n_unknown
               ? pool_text(pool, "; missing in the run or its baselines, and not compared: %s",
                           and_more(pool, list, e->n_unknown))
               : "";
}

/* --- gains --- */

/* Those of one sort; "" where there are none. */
static const char *settled_text(const struct kept_words *w, bool is_true)
{
    struct pool *pool = &w->g->p->report.pool;
    const struct history_judged *j = &w->kept->judged;
    const char **keys = pool_alloc(pool, j->n_settled + 1, sizeof(*keys));
    const char *runs = "", *last = "";
    size_t n = 0;

    for (size_t i = 0; keys && i < j->n_settled; i++) {
        const struct history_settled *s = &j->settled[i];

        if (s->is_true != is_true)
            continue;
        keys[n++] = s->key;
        if (strcmp(s->run, last) != 0)
            runs = show_joined(pool, runs, s->run);
        last = s->run;
    }
    if (!n)
        return "";
    return pool_text(pool,
                     is_true ? "; gain of %s confirmed by this run in %s: their level starts there"
                             : "; gain of %s not confirmed by this run in %s: there it is no "
                               "baseline, for good",
                     runs, cases_text(w->g, keys, n));
}

/* Those that no earlier run had. */
static const char *gains_text(const struct kept_words *w)
{
    const struct history_judged *j = &w->kept->judged;
    const char **keys = pool_alloc(&w->g->p->report.pool, j->n_gains + 1, sizeof(*keys));
    size_t n = 0;

    for (size_t i = 0; keys && i < j->n_gains; i++) {
        bool known = false;

        for (size_t k = 0; k < j->n_settled && !known; k++)
            known = j->settled[k].is_true && !strcmp(j->settled[k].key, j->gains[i]);
        if (!known)
            keys[n++] = j->gains[i];
    }
    return n ? cases_text(w->g, keys, n) : "some cases";
}

/* --- what it is to later runs --- */

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

/* ", as a baseline for later ones", or why it is none. */
static const char *standing_text(const struct kept_words *w)
{
    struct pool *pool = &w->g->p->report.pool;
    const struct check_kept *k = w->kept;

    switch (k->judged.standing) {
    case HISTORY_BASELINE:
    case HISTORY_START:
        return k->taken ? ", but later ones are not compared with it: " TAKEN
                        : ", as a baseline for later ones";
    case HISTORY_PROBATION:
        return pool_text(
            pool,
            ", and is no baseline yet: better in %s; it becomes one with the next run, "
            "there only if that shows it, too",
            gains_text(w));
    case HISTORY_APART:
        return pool_text(pool,
                         ", but is not a baseline: measured in another environment than the "
                         "baselines: %s; if it is meant: plumb check RUN --accept --reason TEXT",
                         others_text(pool, &k->environment));
    default:
        return pool_text(pool, ", but is no baseline%s%s%s; if its level is meant: --accept",
                         suspect_of(pool, &k->rest),
                         k->environment.n_other ? ", and measured in another environment than the "
                                                  "baselines: "
                                                : "",
                         others_text(pool, &k->environment));
    }
}

/* --- what was accepted --- */

static const char *reason_text(struct pool *pool, const char *reason)
{
    return *reason ? pool_text(pool, "; reason: %s", reason)
                   : "; no reason is kept: --reason TEXT keeps one";
}

/* Who accepts a level accepts where it was measured. */
static const char *with_environment(struct pool *pool, const struct environment_word *e)
{
    return e->n_other ? pool_text(pool, "; and with it the environment: %s", others_text(pool, e))
                      : "";
}

static const char *accepted_cases(const struct kept_words *w)
{
    struct pool *pool = &w->g->p->report.pool;
    const struct history_acceptance *a = &w->kept->acceptance;
    bool left = w->kept->rest.verdict == GATE_LOST || w->kept->rest.verdict == GATE_INCOMPLETE;

    return pool_text(pool,
                     "accepted: the level of %s in this run, in the history '%s'%s; later runs are "
                     "compared with it there, and with none before it; %s: %s%s%s%s",
                     cases_text(w->g, a->keys, a->n_keys), w->history,
                     w->made ? ", a new file" : "",
                     left ? "the other cases are not good" : "the other cases", done_of(w->how),
                     standing_text(w), with_environment(pool, &w->kept->environment),
                     reason_text(pool, a->reason));
}

static const char *accepted_run(const struct kept_words *w)
{
    struct pool *pool = &w->g->p->report.pool;
    const char *made = w->made ? ", a new file" : "";
    const char *what =
        w->kept->taken
            ? pool_text(pool,
                        "accepted: the start of later runs, in the history '%s'%s; they are "
                        "compared with none before this run, and not with it: " TAKEN,
                        w->history, made)
            : pool_text(pool,
                        "accepted: this run's level, in the history '%s'%s; later runs are "
                        "compared with it, and with none before it",
                        w->history, made);

    return pool_text(pool, "%s%s%s", what, with_environment(pool, &w->kept->environment),
                     reason_text(pool, w->kept->acceptance.reason));
}

/* One sentence, or several with "; " between. */
static const char *kept_sentence(const struct kept_words *w)
{
    struct pool *pool = &w->g->p->report.pool;
    const struct check_kept *k = w->kept;

    if (k->judged.acceptance)
        return k->acceptance.n_keys ? accepted_cases(w) : accepted_run(w);
    return pool_text(pool, "history '%s'%s: %s%s%s%s%s", w->history, w->made ? ", a new file" : "",
                     done_of(w->how), standing_text(w), settled_text(w, true),
                     settled_text(w, false), unknown_text(pool, &k->environment));
}

/* A loss that became the baseline would be gone the next night, and so would a case that failed;
 * and one that is likely and not proven would never be. So would the level of another environment,
 * and a gain that is none. */
static enum history_standing standing_of(const struct check_command *c, const struct check_kept *k)
{
    const struct gate *rest = &k->rest;
    bool accepted = c->options.accept;

    if (accepted && !k->acceptance.n_keys)
        return HISTORY_START;
    if (rest->verdict == GATE_LOST || rest->verdict == GATE_INCOMPLETE || rest->tally.suspect)
        return HISTORY_SEEN;
    if (k->environment.n_other && !accepted)
        return HISTORY_APART;
    return k->judged.n_gains ? HISTORY_PROBATION : HISTORY_BASELINE;
}

int check_accepted_keys(struct check_command *c, const struct gate *g, const char *const **keys,
                        size_t *n)
{
    bool some = c->only && *c->only;
    const char **all = pool_alloc(&g->p->report.pool, g->n + 1, sizeof(*all));

    *n = 0;
    *keys = all;
    for (size_t i = 0; all && some && i < g->n; i++)
        if (only_keeps(c->only, &(struct only_case){.key = g->cases[i].pair->key,
                                                    .label = g->cases[i].pair->label}))
            all[(*n)++] = g->cases[i].pair->key;
    if (!all) {
        snprintf(c->error, sizeof(c->error), "out of memory");
        return -ENOMEM;
    }
    if (!some || *n)
        return 0;
    snprintf(c->error, sizeof(c->error),
             "no case matches '%.400s', so nothing is accepted; near: %.1000s", c->only[0],
             gate_near(g, c->only[0]));
    return -ENOENT;
}

/* Whoever calls as root by sudo is somebody. */
static const char *user_name(struct pool *pool)
{
    const char *sudo = geteuid() ? NULL : getenv("SUDO_USER");
    const struct passwd *user = sudo && *sudo ? NULL : getpwuid(geteuid());

    return pool_text(pool, "%s", sudo && *sudo ? sudo : user ? user->pw_name : "");
}

static int fill_acceptance(struct check_command *c, const struct gate *g, struct check_kept *k)
{
    struct pool *pool = &g->p->report.pool;
    char utc[24];
    int err = check_accepted_keys(c, g, &k->acceptance.keys, &k->acceptance.n_keys);

    k->acceptance.reason = c->options.reason ? c->options.reason : "";
    k->acceptance.by = user_name(pool);
    k->acceptance.at_utc = pool_text(pool, "%s", clock_utc(utc, sizeof(utc)));
    k->judged.acceptance = &k->acceptance;
    return err;
}

int check_accept_beside(struct check_command *c, const struct gate *g, struct check_kept *kept)
{
    struct pool *pool = &g->p->report.pool;
    struct history_run run = history_run_of(&g->p->report.runs[g->p->n_a]);
    int err = fill_acceptance(c, g, kept);

    kept->acceptance.run = run.name;
    if (!err)
        err = accepted_add(&c->accepted, g, &kept->acceptance, c->error, sizeof(c->error));
    kept->judged.acceptance = NULL;
    if (!err)
        kept->sentence = pool_text(
            pool, "accepted: the level of %s in this run, in '%s'; a worse one alarms again%s",
            cases_text(g, kept->acceptance.keys, kept->acceptance.n_keys), c->accepted.path,
            reason_text(pool, kept->acceptance.reason));
    return err;
}

/* The baselines of the history, though the run was held against others. Their number is what is
 * usual. */
static int compare_environment(struct check_command *c, const struct gate *g, struct history_db *db,
                               struct check_kept *k)
{
    const struct run_folder *run = &g->p->report.runs[g->p->n_a];
    const struct history_run r = history_run_of(run);
    const struct history_sieve sieve = {
        .most = BASELINE_LAST, .steal_limit = steal_limit(c->options.steal), .meta = run->meta};

    return history_db_environment(db, &r, &sieve, &g->p->report.pool, &k->environment,
                                  &k->n_environments, c->error, sizeof(c->error));
}

static bool is_told(const struct environment_word *e, const struct pair *pair)
{
    for (size_t i = 0; i < e->n_other; i++)
        if (!strcmp(e->other[i].a, pair->library_a) && !strcmp(e->other[i].b, pair->library_b))
            return true;
    return false;
}

/* A library tells of itself in the rows of its cases alone. */
static int compare_libraries(const struct gate *g, struct check_kept *k)
{
    const struct pairs *p = g->p;
    struct environment_word *e = &k->environment;
    struct machine_difference *all =
        pool_alloc(&g->p->report.pool, e->n_other + p->n + 1, sizeof(*all));

    if (!all)
        return -ENOMEM;
    if (e->n_other)
        memcpy(all, e->other, e->n_other * sizeof(*all));
    e->other = all;
    for (size_t i = 0; !g->options.first && i < p->n; i++)
        if (p->all[i].library_a && !is_told(e, &p->all[i]))
            all[e->n_other++] = (struct machine_difference){
                "library", p->all[i].library_a, p->all[i].library_b, p->all[i].pipe, true};
    return 0;
}

/* A run that was cut short, or is of another environment, tells nothing of gains. */
static int find_gains(const struct gate *g, struct check_kept *k)
{
    struct pool *pool = &g->p->report.pool;
    const char **gains = pool_alloc(pool, k->rest.n + 1, sizeof(*gains));
    const char **decided = pool_alloc(pool, k->rest.n + 1, sizeof(*decided));
    struct history_judged *j = &k->judged;

    if (!gains || !decided)
        return -ENOMEM;
    for (size_t i = 0; i < k->rest.n && !*g->state && !k->environment.n_other; i++) {
        const struct gate_case *at = &k->rest.cases[i];

        if (g->options.first || at->pair->state != PAIR_READY)
            continue;
        decided[j->n_decided++] = at->pair->key;
        if (at->state == GATE_BETTER)
            gains[j->n_gains++] = at->pair->key;
    }
    j->gains = gains;
    j->decided = decided;
    j->pool = pool;
    return 0;
}

static int judge(struct check_command *c, const struct gate *g, struct history_db *db,
                 struct check_kept *k)
{
    int err = c->options.accept ? fill_acceptance(c, g, k) : 0;

    if (!err)
        err = gate_without(&k->rest, g, k->acceptance.keys, k->acceptance.n_keys);
    if (!err)
        err = compare_environment(c, g, db, k);
    if (!err)
        err = compare_libraries(g, k);
    if (!err)
        err = find_gains(g, k);
    if (!err)
        k->judged.standing = standing_of(c, k);
    if (err == -ENOMEM)
        snprintf(c->error, sizeof(c->error), "out of memory");
    return err;
}

int check_update(struct check_command *c, const struct gate *g, struct check_kept *kept)
{
    const char *history = c->options.history;
    struct kept_words words = {.g = g, .kept = kept, .history = history};
    struct pairs *p = g->p;
    int err;

    words.made = access(history, F_OK) != 0;
    struct history_db *db = history_db_open(history, true, &err, c->error, sizeof(c->error));
    if (!err)
        err = judge(c, g, db, kept);
    for (size_t run = p->n_a; !err && run < p->report.n_runs; run++)
        err = history_db_add(db, &p->report, run, &kept->judged, &words.how, c->error,
                             sizeof(c->error));
    if (!err) {
        struct history_run r = history_run_of(&p->report.runs[p->n_a]);

        kept->taken = history_db_is_taken(db, &r, steal_limit(c->options.steal));
        kept->done = true;
    }
    history_db_close(db);
    kept->sentence =
        err ? pool_text(&p->report.pool, "history '%s': this run was not added", history)
            : kept_sentence(&words);
    return err;
}
