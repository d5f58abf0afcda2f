/* SPDX-License-Identifier: Apache-2.0 */
/* Changes that are known and accepted, in a file beside a baseline that is a folder: see check.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/stats.h"
#include "harness/check/check.h"
#include "harness/report/show.h"

#define SUFFIX ".accepted.json"
#define NEAR   3 /* names that are listed where a pattern matches none */
/* share of runs that alarm although all accepted cases are at their levels */
#define ACCEPTED_ALARMS 0.01

static const char *path_of(struct pool *pool, const char *baseline)
{
    size_t n = strlen(baseline);

    while (n > 1 && baseline[n - 1] == '/')
        n--;
    return pool_text(pool, "%.*s" SUFFIX, (int)n, baseline);
}

/* ---- reading */

static int damaged(const char *path, const char *why, char *error, size_t len)
{
    snprintf(error, len, "'%.400s' is damaged: %s", path, why);
    return -EBADMSG;
}

static int take_level(struct pool *pool, const json_t *from, struct accepted_level *to)
{
    const char *key, *label, *unit, *run, *reason, *by, *at_utc;

    to->sustained = NAN;
    if (json_unpack((json_t *)from, "{s:s, s:s, s:s, s:F, s:s, s:s, s:s, s:s, s?F}", "key", &key,
                    "label", &label, "unit", &unit, "level", &to->level, "run", &run, "reason",
                    &reason, "by", &by, "at_utc", &at_utc, "sustained", &to->sustained) ||
        !(to->level > 0))
        return -EBADMSG;
    to->key = pool_text(pool, "%s", key);
    to->label = pool_text(pool, "%s", label);
    to->unit = pool_text(pool, "%s", unit);
    to->run = pool_text(pool, "%s", run);
    to->reason = pool_text(pool, "%s", reason);
    to->by = pool_text(pool, "%s", by);
    to->at_utc = pool_text(pool, "%s", at_utc);
    return 0;
}

int accepted_load(struct accepted *a, struct pool *pool, const char *baseline, char *error,
                  size_t len)
{
    json_error_t why;

    *a = (struct accepted){.path = path_of(pool, baseline)};
    if (access(a->path, F_OK) && errno == ENOENT)
        return 0;
    json_t *file = json_load_file(a->path, JSON_REJECT_DUPLICATES, &why);
    if (!file)
        return damaged(a->path, why.text, error, len);
    const json_t *all = json_object_get(file, "accepted");
    int err = 0;

    a->levels = pool_alloc(pool, json_array_size(all) + 1, sizeof(*a->levels));
    for (size_t i = 0; !err && a->levels && i < json_array_size(all); i++, a->n++)
        err = take_level(pool, json_array_get(all, i), &a->levels[i]);
    if (err || !json_is_array(all))
        err = damaged(a->path, "an entry lacks a field, or is no level", error, len);
    json_decref(file);
    return err;
}

/* ---- judging */

const struct accepted_level *accepted_of(const struct accepted *a, const char *key)
{
    for (size_t i = 0; a && i < a->n; i++)
        if (!strcmp(a->levels[i].key, key))
            return &a->levels[i];
    return NULL;
}

/* Above 1: the value is better than the level. Of the figure that the case was judged by; NaN: it
 * was not told when the level was accepted. */
static double over_level(const struct accepted_level *level, const struct decide_case *c,
                         double value)
{
    double of = c->judged_by == DECIDE_BY_SUSTAINED ? level->sustained : level->level;

    return c->higher_is_better ? value / of : of / value;
}

/* Of the median of the run, as a logarithm. */
static double median_error(const struct decide_case *c)
{
    return c->judged_by == DECIDE_BY_MEDIAN
               ? c->error
               : log(c->median_high / c->median_ratio) / dist_t_quantile(0.975, c->freedom);
}

/* The level was one run's, too, and varies as this run does: hence the root of 2. */
bool accepted_covers(const struct accepted *a, const struct accepted_level *level,
                     const struct decide_case *c)
{
    double t = M_SQRT2 * dist_t_quantile(1 - ACCEPTED_ALARMS / (double)a->n, c->freedom);
    double median = c->higher_is_better ? c->b_value / level->level : level->level / c->b_value;

    if (!(log(median) + t * median_error(c) >= log(1 - c->margin)))
        return false;
    return c->judged_by != DECIDE_BY_SUSTAINED ||
           log(over_level(level, c, c->sustained_b)) + t * c->error >= log(1 - c->margin);
}

/* Has the baseline come down to it? */
static bool accepted_is_contained(const struct accepted_level *level, const struct decide_case *c)
{
    return over_level(level, c, decide_value_a(c)) <= 1 + c->margin;
}

int accepted_decide(const struct accepted *a, struct pairs *p, const struct decide_options *options)
{
    bool any = false;

    for (size_t i = 0; i < p->n_all; i++) {
        struct pair *pair = &p->all[i];
        const struct accepted_level *level = accepted_of(a, pair->key);

        pair->decide.accepted =
            level && pair->state == PAIR_READY && !accepted_is_contained(level, &pair->decide);
        any = any || pair->decide.accepted;
    }
    return any ? pairs_decide(p, options) : 0;
}

const char *accepted_text(struct pool *pool, const struct accepted_level *level)
{
    return pool_text(pool, "%s %s (%s, %s): %s", document_number(pool, level->level), level->unit,
                     *level->by ? level->by : "unknown user", level->at_utc, level->reason);
}

/* While the entry stands, a new loss down to its level passes. */
static const char *repaired_text(struct pool *pool, const struct accepted *a,
                                 const struct decide_case *c)
{
    return c->decision == DECISION_EQUIVALENT || c->decision == DECISION_BETTER
               ? pool_text(pool,
                           " (it lost nothing in this run: if it is repaired, delete it from "
                           "'%s')",
                           a->path)
               : "";
}

const char *accepted_list(const struct accepted *a, const struct gate *g)
{
    struct pool *pool = &g->p->report.pool;
    const char *list = "";

    for (size_t i = 0; a && i < g->n; i++) {
        const struct pair *pair = g->cases[i].pair;
        const struct accepted_level *level = accepted_of(a, pair->key);

        if (level && pair->state == PAIR_READY && !accepted_is_contained(level, &pair->decide))
            list = pool_text(pool, "%s%s%s at %s%s", list, *list ? "; " : "", pair->label,
                             accepted_text(pool, level), repaired_text(pool, a, &pair->decide));
    }
    return list;
}

/* ---- writing */

static json_t *level_json(const struct accepted_level *l)
{
    json_t *o = json_pack("{s:s, s:s, s:s, s:f, s:s, s:s, s:s, s:s}", "key", l->key, "label",
                          l->label, "unit", l->unit, "level", l->level, "run", l->run, "reason",
                          l->reason, "by", l->by, "at_utc", l->at_utc);

    if (isfinite(l->sustained))
        json_object_set_new(o, "sustained", json_real(l->sustained));
    return o;
}

/* A reader sees the old file, or the new one. */
static int save(const struct accepted *a, char *error, size_t len)
{
    json_t *all = json_array(), *file = json_pack("{s:i, s:o}", "schema", 1, "accepted", all);
    char *fresh = NULL;
    int err = file && asprintf(&fresh, "%s.new", a->path) >= 0 ? 0 : -ENOMEM;

    for (size_t i = 0; !err && i < a->n; i++)
        json_array_append_new(all, level_json(&a->levels[i]));
    errno = EIO;
    if (!err && (json_dump_file(file, fresh, JSON_INDENT(2)) || rename(fresh, a->path)))
        err = -errno;
    if (err)
        snprintf(error, len, "cannot write '%.400s': %s", a->path, strerror(-err));
    free(fresh);
    json_decref(file);
    return err;
}

static const struct pair *pair_of(const struct gate *g, const char *key)
{
    for (size_t i = 0; i < g->n; i++)
        if (!strcmp(g->cases[i].pair->key, key))
            return g->cases[i].pair;
    return NULL;
}

int accepted_add(struct accepted *a, const struct gate *g, const struct history_acceptance *by,
                 char *error, size_t len)
{
    struct pool *pool = &g->p->report.pool;
    struct accepted_level *all = pool_alloc(pool, a->n + by->n_keys + 1, sizeof(*all));
    size_t n = 0;

    if (!all)
        return -ENOMEM;
    for (size_t i = 0; i < by->n_keys; i++) {
        const struct pair *pair = pair_of(g, by->keys[i]);

        if (pair->state != PAIR_READY) {
            snprintf(error, len, "'%.200s' was not compared with the baseline: no level to accept",
                     pair->label);
            return -EINVAL;
        }
        all[n++] = (struct accepted_level){.key = pair->key,
                                           .label = pair->label,
                                           .unit = pair->c->unit,
                                           .level = pair->decide.b_value,
                                           .sustained = pair->decide.sustained_b,
                                           .run = by->run,
                                           .reason = by->reason,
                                           .by = by->by,
                                           .at_utc = by->at_utc};
    }
    for (size_t i = 0; i < a->n; i++) {
        bool anew = false;

        for (size_t k = 0; k < by->n_keys; k++)
            anew = anew || !strcmp(by->keys[k], a->levels[i].key);
        if (!anew)
            all[n++] = a->levels[i];
    }
    a->levels = all;
    a->n = n;
    return save(a, error, len);
}

/* ---- names that are near */

/* How many words of the pattern the text has. */
static size_t words_in(const char *pattern, const char *text)
{
    size_t found = 0;

    for (size_t n; *pattern; pattern += n) {
        char word[64];

        pattern += strspn(pattern, " *?[]|=,:-");
        n = strcspn(pattern, " *?[]|=,:-");
        if (n > 1) {
            snprintf(word, sizeof(word), "%.*s", (int)n, pattern);
            found += strcasestr(text, word) ? 2 : 0;
            word[(strlen(word) + 1) / 2 + 1] = '\0'; /* "triat" is near to "triad" */
            found += strlen(word) > 2 && strcasestr(text, word) ? 1 : 0;
        }
    }
    return found;
}

const char *gate_near(const struct gate *g, const char *pattern)
{
    struct pool *pool = &g->p->report.pool;
    size_t best = 0, n = 0;
    const char *list = "";

    for (size_t i = 0; i < g->n; i++) {
        size_t of = words_in(
            pattern, pool_text(pool, "%s %s", g->cases[i].pair->key, g->cases[i].pair->label));
        best = of > best ? of : best;
    }
    for (size_t i = 0; i < g->n && n < NEAR; i++)
        if (words_in(pattern, pool_text(pool, "%s %s", g->cases[i].pair->key,
                                        g->cases[i].pair->label)) == best)
            list = pool_text(pool, "%s%s'%s'", list, n++ ? ", " : "", g->cases[i].pair->label);
    return list;
}
