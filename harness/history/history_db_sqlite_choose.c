/* SPDX-License-Identifier: Apache-2.0 */
/* Which runs of the history one is held against, and what for: history_db_choose() of history_db.h.
 */
#include <string.h>

#include "harness/history/history_db.h"

struct choosing {
    struct history_db *db;
    const struct history_sieve *sieve;
    struct history_run *runs; /* others than the one that is judged, in the order of their start */
    size_t n;
    enum { NOT_ASKED, LEFT_IT, TOOK_IT } * cpu; /* of each: did others take it in all launches? */
    struct history_acceptance *accepted;        /* of the host and suite */
    size_t n_accepted;
    struct history_choice *choice;
};

/* SIZE_MAX: it is not among those that the run is held against. */
static size_t run_of(const struct choosing *c, const struct history_acceptance *a)
{
    for (size_t i = 0; i < c->n; i++)
        if (!strcmp(c->runs[i].name, a->run) && !strcmp(c->runs[i].started_utc, a->started_utc))
            return i;
    return SIZE_MAX;
}

/* key NULL: does it hold of all cases? */
static bool is_of(const struct history_acceptance *a, const char *key)
{
    bool of = !a->n_keys;

    for (size_t i = 0; key && !of && i < a->n_keys; i++)
        of = !strcmp(a->keys[i], key);
    return of;
}

/* The first run of the reference of a case; SIZE_MAX: nothing was accepted of it. */
static size_t start_of(const struct choosing *c, const char *key)
{
    size_t start = SIZE_MAX;

    for (size_t k = 0; k < c->n_accepted; k++) {
        size_t i = run_of(c, &c->accepted[k]);

        if (i != SIZE_MAX && is_of(&c->accepted[k], key) && (start == SIZE_MAX || i > start))
            start = i;
    }
    return start;
}

/* Only asked where a run would be a baseline: there are many launches. */
static bool is_taken(struct choosing *c, size_t i)
{
    if (c->cpu[i] == NOT_ASKED)
        c->cpu[i] =
            history_db_is_taken(c->db, &c->runs[i], c->sieve->steal_limit) ? TOOK_IT : LEFT_IT;
    return c->cpu[i] == TOOK_IT;
}

static bool may_count(const struct choosing *c, size_t i, size_t start)
{
    return c->runs[i].has_rows && (c->runs[i].good || i == start);
}

static void add_roles(struct choosing *c, const char *key)
{
    struct history_choice *to = c->choice;
    enum pairs_role *roles = pool_alloc(&to->pool, c->n, sizeof(*roles));

    for (size_t i = 0; i < c->n; i++)
        roles[i] = PAIRS_NO_PART;
    /* roles: of each of the runs, where all are PAIRS_NO_PART. Returns how many of the last ones
     * are left out, as others took the CPU. */
    size_t most = c->sieve->most, start = start_of(c, key), n = 0, n_taken = 0;
    size_t from = start == SIZE_MAX ? 0 : start;

    for (size_t i = c->n; i-- > from && (!most || n < most);) {
        if (!may_count(c, i, start))
            continue;
        bool taken = is_taken(c, i);

        roles[i] = taken ? PAIRS_NO_PART : PAIRS_LEVEL;
        n_taken += taken;
        n += !taken;
    }
    n = 0;
    for (size_t i = from; i < c->n && n < most; i++) {
        if (!may_count(c, i, start) || is_taken(c, i))
            continue;
        roles[i] = roles[i] == PAIRS_LEVEL ? PAIRS_LEVEL : PAIRS_ANCHOR;
        n++;
    }

    to->n_taken = key ? to->n_taken : n_taken;
    to->roles[to->n_roles++] = (struct pairs_roles){key, roles};
}

static bool has_roles(const struct history_choice *to, const char *key)
{
    for (size_t i = 1; i < to->n_roles; i++)
        if (!strcmp(to->roles[i].key, key))
            return true;
    return false;
}

static bool has_part(const struct history_choice *to, size_t run)
{
    for (size_t k = 0; k < to->n_roles; k++)
        if (to->roles[k].runs[run] != PAIRS_NO_PART)
            return true;
    return false;
}

int history_db_choose(struct history_db *db, const struct history_run *run,
                      const struct history_sieve *sieve, struct history_choice *choice, char *error,
                      size_t len)
{
    struct choosing c = {.db = db, .sieve = sieve, .choice = choice};

    *choice = (struct history_choice){0};
    int err = history_others(db, run, sieve->later, &choice->pool, &c.runs, &c.n, error, len);
    if (!err)
        err = history_accepted(db, run->host, run->suite, &choice->pool, &c.accepted, &c.n_accepted,
                               error, len);
    if (err)
        return err;
    c.cpu = pool_alloc(&choice->pool, c.n, sizeof(*c.cpu));
    /* Those that still hold. */
    struct history_choice *to = c.choice;
    size_t start = start_of(&c, NULL);

    to->accepted = pool_alloc(&to->pool, c.n_accepted, sizeof(*to->accepted));
    for (size_t k = 0; k < c.n_accepted; k++) {
        size_t i = run_of(&c, &c.accepted[k]);

        if (i != SIZE_MAX && (start == SIZE_MAX || i >= start))
            to->accepted[to->n_accepted++] = c.accepted[k];
    }
    /* Of all cases, then of those of which something was accepted by itself. */
    size_t n_keys = 0;

    for (size_t k = 0; k < c.n_accepted; k++)
        n_keys += c.accepted[k].n_keys;
    to->roles = pool_alloc(&to->pool, n_keys + 1, sizeof(*to->roles));
    add_roles(&c, NULL);
    for (size_t k = 0; k < c.n_accepted; k++)
        for (size_t i = 0; i < c.accepted[k].n_keys; i++)
            if (!has_roles(to, c.accepted[k].keys[i]))
                add_roles(&c, c.accepted[k].keys[i]);
    /* Those that have a part, in their order. */
    to->runs = c.runs;
    for (size_t i = 0; i < c.n; i++) {
        if (!has_part(to, i))
            continue;
        for (size_t k = 0; k < to->n_roles; k++)
            ((enum pairs_role *)to->roles[k].runs)[to->n] = to->roles[k].runs[i];
        to->n_level += to->roles[0].runs[to->n] == PAIRS_LEVEL;
        to->n_anchor += to->roles[0].runs[to->n] == PAIRS_ANCHOR;
        to->runs[to->n++] = c.runs[i];
    }
    return 0;
}
