/* SPDX-License-Identifier: Apache-2.0 */
/* Which runs of the history one is held against, and what for: history_db_choose() of history_db.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/history/history_db_sqlite.h"

enum part { PART_NONE, PART_LEVEL, PART_ANCHOR, PART_SPREAD, PART_OUT };

struct choosing {
    struct history_db *db;
    const struct history_sieve *sieve;
    struct history_run *runs; /* before the one that is judged, in the order of their start */
    size_t n, start;          /* start: the last run whose level was accepted; 0 */
    enum part *parts;         /* of each */
    struct history_choice *choice;
};

static bool is_baseline(const struct history_run *run)
{
    return run->standing == HISTORY_BASELINE || run->standing == HISTORY_START;
}

/* Only looked at where a run would be taken: there are many launches. */
static bool is_taken(struct choosing *c, size_t i)
{
    bool taken = history_db_is_taken(c->db, &c->runs[i], c->sieve->steal_limit);

    if (taken)
        c->parts[i] = PART_OUT;
    return taken;
}

static bool may_count(const struct choosing *c, size_t i)
{
    return c->parts[i] == PART_NONE && is_baseline(&c->runs[i]) && c->runs[i].has_rows;
}

static void choose_level(struct choosing *c)
{
    struct history_choice *to = c->choice;
    size_t most = c->sieve->most;

    for (size_t i = c->n; i-- > c->start && (!most || to->n_level < most);) {
        if (!may_count(c, i))
            continue;
        if (is_taken(c, i)) {
            to->n_taken++;
        } else {
            c->parts[i] = PART_LEVEL;
            to->n_level++;
        }
    }
}

static void choose_anchors(struct choosing *c)
{
    size_t n = 0; /* also those that are of the level */

    for (size_t i = c->start; i < c->n && n < c->sieve->anchors; i++) {
        if (c->parts[i] == PART_LEVEL) {
            n++;
        } else if (may_count(c, i) && !is_taken(c, i)) {
            c->parts[i] = PART_ANCHOR;
            c->choice->n_anchor++;
            n++;
        }
    }
}

/* One whose machine is not known is not known to be of this environment. */
static bool is_of_environment(struct choosing *c, int64_t run, bool *of)
{
    struct pool pool = {0};
    struct environment_word word = {0};
    char *text = history_environment_of(c->db, run);
    json_t *meta = text ? json_loads(text, 0, NULL) : NULL;
    const json_t *other = meta;
    int err = meta ? environment_compare(&pool, &other, 1, c->sieve->meta, &word) : 0;

    *of = meta && !word.n_other;
    json_decref(meta);
    free(text);
    pool_release(&pool);
    return !err;
}

static int choose_spread(struct choosing *c)
{
    for (size_t i = c->n; i-- > 0 && c->choice->n_spread < c->sieve->spread;) {
        const struct history_run *run = &c->runs[i];
        bool of;

        if (c->parts[i] != PART_NONE || !run->has_rows || !run->state ||
            strcmp(run->state, "complete") != 0 || is_taken(c, i))
            continue;
        if (!is_of_environment(c, run->id, &of))
            return -ENOMEM;
        c->parts[i] = of ? PART_SPREAD : PART_OUT;
        c->choice->n_spread += of;
    }
    return 0;
}

/* Runs are meant to have one level from one start to the next, where they are baselines. */
static void set_roles(struct choosing *c, struct pairs_role *roles)
{
    static const enum decide_role role_of[] = {
        [PART_LEVEL] = DECIDE_LEVEL, [PART_ANCHOR] = DECIDE_ANCHOR, [PART_SPREAD] = DECIDE_SPREAD};
    unsigned epoch = 0;
    size_t n = 0;

    for (size_t i = 0; i < c->n; i++) {
        epoch += c->runs[i].standing == HISTORY_START;
        if (c->parts[i] == PART_LEVEL || c->parts[i] == PART_ANCHOR || c->parts[i] == PART_SPREAD)
            roles[n++] =
                (struct pairs_role){role_of[c->parts[i]], 2 * epoch + is_baseline(&c->runs[i])};
    }
}

static int make_roles(struct choosing *c)
{
    struct history_choice *to = c->choice;
    size_t n = to->n_level + to->n_anchor + to->n_spread;
    struct pairs_role *roles = pool_alloc(&to->pool, n + 1, sizeof(*roles));

    to->roles = pool_alloc(&to->pool, 1, sizeof(*to->roles));
    if (!roles || !to->roles)
        return -ENOMEM;
    set_roles(c, roles);
    to->roles[to->n_roles++] = (struct pairs_roles){NULL, roles};
    return 0;
}

/* Those that have a part, in their order; their texts go with them. */
static int keep_chosen(struct choosing *c)
{
    struct history_choice *to = c->choice;

    to->runs = calloc(to->n_level + to->n_anchor + to->n_spread + 1, sizeof(*to->runs));
    for (size_t i = 0; to->runs && i < c->n; i++)
        if (c->parts[i] == PART_LEVEL || c->parts[i] == PART_ANCHOR || c->parts[i] == PART_SPREAD) {
            to->runs[to->n++] = c->runs[i];
            c->runs[i] = (struct history_run){0};
        }
    return to->runs ? 0 : -ENOMEM;
}

static int choose(struct choosing *c)
{
    struct history_choice *to = c->choice;
    int err = 0;

    for (size_t i = 0; i < c->n; i++)
        if (c->runs[i].standing == HISTORY_START)
            c->start = i;
    choose_level(c);
    if (!to->n_level)
        return 0;
    choose_anchors(c);
    err = choose_spread(c);
    if (!err)
        err = make_roles(c);
    return err ? err : keep_chosen(c);
}

int history_db_choose(struct history_db *db, const struct history_run *run,
                      const struct history_sieve *sieve, struct history_choice *choice, char *error,
                      size_t len)
{
    struct choosing c = {.db = db, .sieve = sieve, .choice = choice};

    *choice = (struct history_choice){0};
    int err = history_earlier(db, run, &c.runs, &c.n, error, len);
    if (!err && !(c.parts = calloc(c.n + 1, sizeof(*c.parts))))
        err = -ENOMEM;
    if (!err)
        err = choose(&c);
    if (err == -ENOMEM)
        history_out_of_memory(error, len);
    free(c.parts);
    history_runs_release(c.runs, c.n);
    return err;
}
