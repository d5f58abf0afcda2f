/* SPDX-License-Identifier: Apache-2.0 */
/* Which runs of the history one is held against, and what for: history_db_choose() of history_db.h.
 */
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "harness/history/history_db.h"

enum part {
    PART_NONE,
    PART_OUT,
    PART_LEVEL,
    PART_ANCHOR,
    PART_CASE, /* an anchor of cases that have a start of their own */
    PART_SPREAD
};

#define CASE_STARTS 2 /* of the newest so many there are anchors */

struct choosing {
    struct history_db *db;
    const struct history_sieve *sieve;
    struct history_run *runs; /* before the one that is judged, in the order of their start */
    size_t n, start;          /* start: the last run whose level was accepted; 0 */
    enum part *parts;         /* of each */
    struct history_marked *marks;
    size_t n_marks;
    struct history_choice *choice;
};

/* What is known of a run in that case; 0: nothing. */
static enum history_mark mark_of(const struct choosing *c, size_t i, const char *key)
{
    for (size_t k = 0; k < c->n_marks; k++)
        if (c->marks[k].run == c->runs[i].id && !strcmp(c->marks[k].key, key))
            return c->marks[k].mark;
    return 0;
}

static bool is_start(enum history_mark mark)
{
    return mark == HISTORY_CASE_START || mark == HISTORY_GAIN_TRUE;
}

/* Is it the start of some case? */
static bool starts_a_case(const struct choosing *c, size_t i)
{
    for (size_t k = 0; k < c->n_marks; k++)
        if (c->marks[k].run == c->runs[i].id && is_start(c->marks[k].mark))
            return true;
    return false;
}

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
    return c->parts[i] == PART_NONE && c->runs[i].has_rows &&
           (is_baseline(&c->runs[i]) || starts_a_case(c, i));
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
            to->n_level += is_baseline(&c->runs[i]); /* of others it is a case alone */
        }
    }
}

static void choose_anchors(struct choosing *c, size_t from, enum part part)
{
    size_t n = 0; /* also those that are of the level */

    for (size_t i = from; i < c->n && n < c->sieve->anchors; i++) {
        if (c->parts[i] >= PART_LEVEL && c->parts[i] <= PART_CASE) {
            n++;
        } else if (may_count(c, i) && !is_taken(c, i)) {
            c->parts[i] = part;
            c->choice->n_anchor += part == PART_ANCHOR;
            n++;
        }
    }
}

static void choose_case_anchors(struct choosing *c)
{
    size_t n = 0;

    for (size_t i = c->n; i-- > c->start && n < CASE_STARTS;) {
        if (!starts_a_case(c, i))
            continue;
        n++;
        choose_anchors(c, i, PART_CASE);
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

static bool is_chosen(const struct choosing *c, size_t i)
{
    return c->parts[i] >= PART_LEVEL;
}

/* Of the case; NULL: of those that have no marks. */
static bool counts_in(const struct choosing *c, size_t i, const char *key)
{
    enum history_mark mark = key ? mark_of(c, i, key) : 0;

    return mark ? mark == HISTORY_CASE_START || mark == HISTORY_GAIN_TRUE
                : is_baseline(&c->runs[i]);
}

static size_t start_in(const struct choosing *c, const char *key)
{
    size_t start = c->start;

    for (size_t i = c->start; key && i < c->n; i++)
        if (is_start(mark_of(c, i, key)))
            start = i;
    return start;
}

static enum decide_role role_of(const struct choosing *c, size_t i, size_t n_before, bool own_start)
{
    switch (c->parts[i]) {
    case PART_LEVEL:
        return DECIDE_LEVEL;
    case PART_ANCHOR:
    case PART_CASE:
        return n_before < c->sieve->anchors && (own_start || c->parts[i] == PART_ANCHOR)
                   ? DECIDE_ANCHOR
                   : DECIDE_SPREAD;
    default:
        return DECIDE_SPREAD;
    }
}

/* What was no baseline for longer than this was of another level; what came and went says how runs
 * differ. Else a case that comes up on one of two levels, of which the lower one is a loss each
 * time, would be held against the upper one alone. */
#define PASSING 2

static void join_passing(struct pairs_role *roles, size_t n)
{
    for (size_t from = 0, end; from < n; from = end) {
        for (end = from + 1; end < n && roles[end].level == roles[from].level;)
            end++;
        bool seen = roles[from].level % 2 == 0;

        for (size_t i = from; seen && i < end; i++)
            if (end < n && end - from <= PASSING && roles[end].level == (roles[i].level | 1))
                roles[i].level |= 1;
    }
}

/* Runs are meant to have one level from one start to the next, where they are baselines. */
static void set_roles(const struct choosing *c, const char *key, struct pairs_role *roles)
{
    size_t start = start_in(c, key), n = 0, n_before = 0;
    unsigned epoch = 0;

    for (size_t i = 0; i < c->n; i++) {
        bool counts = counts_in(c, i, key);

        epoch += c->runs[i].standing == HISTORY_START || (key && is_start(mark_of(c, i, key)));
        if (!is_chosen(c, i))
            continue;
        roles[n++] = (struct pairs_role){
            counts && i >= start ? role_of(c, i, n_before, start > c->start) : DECIDE_SPREAD,
            2 * epoch + counts};
        n_before += counts && i >= start;
    }
    join_passing(roles, n);
}

static size_t count_chosen(const struct choosing *c)
{
    size_t n = 0;

    for (size_t i = 0; i < c->n; i++)
        n += is_chosen(c, i);
    return n;
}

static int add_roles(struct choosing *c, const char *key)
{
    struct history_choice *to = c->choice;
    struct pairs_role *roles = pool_alloc(&to->pool, count_chosen(c) + 1, sizeof(*roles));

    if (!roles)
        return -ENOMEM;
    set_roles(c, key, roles);
    to->roles[to->n_roles++] = (struct pairs_roles){key, roles};
    return 0;
}

static bool has_roles(const struct history_choice *to, const char *key)
{
    for (size_t i = 1; i < to->n_roles; i++)
        if (!strcmp(to->roles[i].key, key))
            return true;
    return false;
}

static int make_roles(struct choosing *c)
{
    struct history_choice *to = c->choice;
    int err = 0;

    to->roles = pool_alloc(&to->pool, c->n_marks + 1, sizeof(*to->roles));
    if (!to->roles)
        return -ENOMEM;
    err = add_roles(c, NULL);
    for (size_t i = 0; !err && i < c->n_marks; i++)
        if (!has_roles(to, c->marks[i].key))
            err = add_roles(c, c->marks[i].key);
    return err;
}

/* Those that have a part, in their order; their texts go with them. */
static int keep_chosen(struct choosing *c)
{
    struct history_choice *to = c->choice;

    to->runs = calloc(count_chosen(c) + 1, sizeof(*to->runs));
    for (size_t i = 0; to->runs && i < c->n; i++)
        if (is_chosen(c, i)) {
            to->runs[to->n++] = c->runs[i];
            c->runs[i] = (struct history_run){0};
        }
    return to->runs ? 0 : -ENOMEM;
}

/* What was accepted since the last start. */
static int keep_accepted(struct choosing *c, const struct history_run *run, char *error, size_t len)
{
    struct history_choice *to = c->choice;
    struct history_acceptance *all;
    size_t n, first = c->n ? c->start : 0;
    int err = history_accepted(c->db, run->host, run->suite, &to->pool, &all, &n, error, len);

    to->accepted = pool_alloc(&to->pool, n + 1, sizeof(*to->accepted));
    for (size_t k = 0; !err && to->accepted && k < n; k++)
        for (size_t i = first; i < c->n; i++)
            if (!strcmp(c->runs[i].name, all[k].run) &&
                !strcmp(c->runs[i].started_utc, all[k].started_utc))
                to->accepted[to->n_accepted++] = all[k];
    return err;
}

static int choose(struct choosing *c, const struct history_run *run, char *error, size_t len)
{
    struct history_choice *to = c->choice;
    int err = history_marks(c->db, run, &to->pool, &c->marks, &c->n_marks, error, len);

    for (size_t i = 0; i < c->n; i++)
        if (c->runs[i].standing == HISTORY_START)
            c->start = i;
    if (err)
        return err;
    choose_level(c);
    if (!to->n_level)
        return 0;
    choose_anchors(c, c->start, PART_ANCHOR);
    choose_case_anchors(c);
    err = choose_spread(c);
    if (!err)
        err = keep_accepted(c, run, error, len);
    if (!err)
        err = make_roles(c);
    /* How many there are in most cases: runs that are level or anchor in a few alone are no more
     * than others there. */
    for (size_t i = 0; !err && i < c->n; i++)
        to->n_spread +=
            c->parts[i] == PART_CASE || (c->parts[i] == PART_LEVEL && !is_baseline(&c->runs[i]));
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
        err = choose(&c, run, error, len);
    if (err == -ENOMEM)
        history_out_of_memory(error, len);
    free(c.parts);
    history_runs_release(c.runs, c.n);
    return err;
}

/* Of the level of some case. */
static size_t load_environments(struct history_db *db, const struct history_choice *c,
                                json_t **metas)
{
    size_t n = 0;

    for (size_t i = 0; i < c->n; i++) {
        bool level = false;

        for (size_t k = 0; k < c->n_roles && !level; k++)
            level = c->roles[k].runs[i].role == DECIDE_LEVEL;
        char *text = level ? history_environment_of(db, c->runs[i].id) : NULL;
        metas[n] = text ? json_loads(text, 0, NULL) : NULL;
        n += metas[n] != NULL;
        free(text);
    }
    return n;
}

int history_db_environment(struct history_db *db, const struct history_run *run,
                           const struct history_sieve *sieve, struct pool *pool,
                           struct environment_word *word, size_t *n, char *error, size_t len)
{
    struct history_choice c;
    json_t **metas = NULL;
    int err = history_db_choose(db, run, sieve, &c, error, len);

    *word = (struct environment_word){0};
    *n = 0;
    if (!err && !(metas = calloc(c.n + 1, sizeof(*metas))))
        err = history_out_of_memory(error, len);
    if (!err)
        *n = load_environments(db, &c, metas);
    if (*n && environment_compare(pool, (const json_t *const *)metas, *n, sieve->meta, word))
        err = history_out_of_memory(error, len);
    for (size_t i = 0; i < *n; i++)
        json_decref(metas[i]);
    free(metas);
    history_choice_release(&c);
    return err;
}
