/* SPDX-License-Identifier: Apache-2.0 */
/* plumb check --update-baseline and --accept: what a judged run is to later ones. */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "harness/check/cmd.h"
#include "harness/check/kept_words.h"
#include "harness/compare/steal.h"
#include "harness/history/history_db_build.h"
#include "harness/plan/only.h"

/* A loss that became the baseline would be gone the next night, and so would a case that failed; and one that is likely
 * and not proven would never be. So would the level of another environment, and a gain that is none. */
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
    snprintf(
        c->error, sizeof(c->error),
        "no case matches --only '%.400s', so nothing is accepted: see plumb check RUN --json - "
        "for the keys",
        c->only[0]);
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

/* The baselines of the history, though the run was held against others. Their number is what is usual. */
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
