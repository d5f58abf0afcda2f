/* SPDX-License-Identifier: Apache-2.0 */
/* What else differed where a level moved: see trend.h. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "harness/compare/view.h"
#include "harness/history/trend.h"
#include "harness/report/show.h"

#define NOT_TOLD "(not told)"

/* --- the machine and the program --- */

/* What differs between two runs, which many cases ask for. */
struct trend_pair {
    const struct history_run *before, *after;
    struct machine_difference *all;
    size_t n;
    bool whole;
};

/* What every history keeps of a run. */
static json_t *least_of(const struct history_run *run)
{
    return json_pack("{s:s, s:s, s:s}", "version", run->version, "commit", run->commit, "suite",
                     run->suite);
}

static const char *kept_text(struct pool *pool, const char *text)
{
    return *text ? pool_text(pool, "%s", text) : "";
}

/* The texts are the JSON's. */
static int copy_differences(struct pool *pool, const struct machine_difference *all, size_t n,
                            struct trend_pair *pair)
{
    pair->all = pool_alloc(pool, n, sizeof(*pair->all));
    if (!pair->all)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        pair->all[pair->n++] = (struct machine_difference){
            kept_text(pool, all[i].what), kept_text(pool, all[i].a), kept_text(pool, all[i].b),
            kept_text(pool, all[i].pipes), all[i].environment};
    return 0;
}

/* By the code that compares two runs; all it asks of them is their run.json. */
static int find_differences(struct pool *pool, struct trend_pair *pair)
{
    const char *texts[2] = {pair->before->environment, pair->after->environment};
    struct run_folder runs[2] = {{.meta = texts[0] ? json_loads(texts[0], 0, NULL) : NULL},
                                 {.meta = texts[1] ? json_loads(texts[1], 0, NULL) : NULL}};
    struct pairs p = {.report = {.pool = *pool, .runs = runs, .n_runs = 2}, .n_a = 1, .n_b = 1};
    struct machine_difference *all = NULL;

    pair->whole = runs[0].meta && runs[1].meta;
    if (!pair->whole) {
        json_decref(runs[0].meta);
        json_decref(runs[1].meta);
        runs[0].meta = least_of(pair->before);
        runs[1].meta = least_of(pair->after);
    }
    size_t n = pairs_machine_differences(&p, &all);
    *pool = p.report.pool;
    int err = copy_differences(pool, all, n, pair);
    json_decref(runs[0].meta);
    json_decref(runs[1].meta);
    return err;
}

static struct trend_pair *pair_of(struct trends *all, const struct history_run *before,
                                  const struct history_run *after)
{
    struct pool *pool = &all->history->pool;

    for (size_t i = all->n_pairs; i-- > 0;)
        if (all->pairs[i].before == before && all->pairs[i].after == after)
            return &all->pairs[i];
    if (all->n_pairs == all->pairs_room) {
        size_t room = all->pairs_room ? 2 * all->pairs_room : 64;
        struct trend_pair *more = pool_alloc(pool, room, sizeof(*more));

        if (!more)
            return NULL;
        if (all->n_pairs)
            memcpy(more, all->pairs, all->n_pairs * sizeof(*more));
        all->pairs = more;
        all->pairs_room = room;
    }
    struct trend_pair *pair = &all->pairs[all->n_pairs++];
    *pair = (struct trend_pair){.before = before, .after = after};
    return find_differences(pool, pair) ? NULL : pair;
}

/* --- the case's own rows --- */

static json_t *outcomes_at(const struct trend *t, size_t i)
{
    const char *text = t->series->outcomes[i + (size_t)(t->runs - t->series->runs)];

    return text ? json_loads(text, 0, NULL) : NULL;
}

static bool have_common(const json_t *a, const json_t *b)
{
    const json_t *one, *other;
    size_t i, k;

    json_array_foreach (a, i, one)
        json_array_foreach (b, k, other)
            if (json_equal(one, other))
                return true;
    return false;
}

static const char *texts_of(struct pool *pool, const json_t *list)
{
    const char *text = "";
    const json_t *one;
    size_t i;

    json_array_foreach (list, i, one)
        if (json_is_string(one))
            text = pool_text(pool, "%s%s%s", text, *text ? " or " : "", json_string_value(one));
    return text;
}

/* The outcomes of four runs: two before a place and two from it on. NULL: there is no such run, or nothing is kept. */
struct around {
    json_t *earlier, *before, *after, *later;
};

/* A buffer's address is another one every time: only what was the same before, and is the same from then on, can have
 * moved with a level. */
static bool has_moved(const struct around *o, const char *name)
{
    const json_t *before = json_object_get(o->before, name),
                 *after = json_object_get(o->after, name),
                 *earlier = json_object_get(o->earlier, name),
                 *later = json_object_get(o->later, name);

    return before && after && !have_common(before, after) &&
           (!earlier || json_equal(earlier, before)) && (!later || json_equal(later, after));
}

static size_t add_outcomes(struct pool *pool, const struct around *o,
                           struct machine_difference *all)
{
    const char *name;
    json_t *before;
    size_t n = 0;

    json_object_foreach (o->before, name, before) {
        if (!has_moved(o, name))
            continue;
        if (all)
            all[n] = (struct machine_difference){
                pool_text(pool, "the case's %s", name), texts_of(pool, before),
                texts_of(pool, json_object_get(o->after, name)), "", false};
        n++;
    }
    return n;
}

/* The names that differ and have not moved. The lists are in one order: launches' values are sorted. */
static const char *unsteady_of(struct pool *pool, const struct around *o)
{
    const char *name, *names = "";
    const json_t *value;

    json_object_foreach (o->before, name, value)
        if (!json_equal(value, json_object_get(o->after, name)) && !has_moved(o, name) &&
            strcmp(name, HISTORY_CHOICES_KEPT) != 0)
            names = show_joined(pool, names,
                                pool_text(pool, "%s", name)); /* the first is kept as it is */
    json_object_foreach (o->after, name, value)
        if (!json_object_get(o->before, name) && strcmp(name, HISTORY_CHOICES_KEPT) != 0)
            names = show_joined(pool, names, pool_text(pool, "%s", name));
    return names;
}

static const char *unkept_of(const struct around *o)
{
    if (!o->before || !o->after)
        return "of what the case's rows tell the history keeps nothing for one of them";
    if (!json_object_get(o->before, HISTORY_CHOICES_KEPT) ||
        !json_object_get(o->after, HISTORY_CHOICES_KEPT))
        return "what the benchmark chose by itself the history does not keep for one of them";
    return "";
}

/* --- both, at one place --- */

static size_t value_before(const struct trend *t, size_t at)
{
    while (at-- > 0)
        if (!isnan(t->values[at]))
            return at;
    return SIZE_MAX;
}

static size_t value_behind(const struct trend *t, size_t at)
{
    while (++at < t->n)
        if (!isnan(t->values[at]))
            return at;
    return SIZE_MAX;
}

static struct around around_of(const struct trend *t, size_t before, size_t at)
{
    size_t earlier = value_before(t, before), later = value_behind(t, at);

    return (struct around){
        .earlier = earlier == SIZE_MAX ? NULL : outcomes_at(t, earlier),
        .before = outcomes_at(t, before),
        .after = outcomes_at(t, at),
        .later = later == SIZE_MAX ? NULL : outcomes_at(t, later),
    };
}

static void around_release(struct around *o)
{
    json_decref(o->earlier);
    json_decref(o->before);
    json_decref(o->after);
    json_decref(o->later);
}

static bool may_weigh(const struct trend *t, const struct machine_difference *d)
{
    return !*d->pipes || words_has_pipe(d->pipes, t->series->pipe);
}

/* The case's own first, then what may weigh on its pipe, then the rest. */
static int fill(struct trends *all, const struct trend *t, const struct around *o,
                const struct trend_pair *pair, struct trend_differ *d)
{
    struct pool *pool = &all->history->pool;
    size_t own = add_outcomes(pool, o, NULL);
    struct machine_difference *list = pool_alloc(pool, own + pair->n, sizeof(*list));

    if (!list)
        return -ENOMEM;
    d->n = add_outcomes(pool, o, list);
    for (size_t i = 0; i < pair->n; i++)
        if (may_weigh(t, &pair->all[i]))
            list[d->n++] = pair->all[i];
    d->n_near = d->n;
    for (size_t i = 0; i < pair->n; i++)
        if (!may_weigh(t, &pair->all[i]))
            list[d->n++] = pair->all[i];
    d->all = list;
    d->whole = pair->whole;
    d->unkept = unkept_of(o);
    d->unsteady = unsteady_of(pool, o);
    return 0;
}

static int differ_at(struct trends *all, const struct trend *t, size_t before, size_t at,
                     struct trend_differ *d)
{
    *d = (struct trend_differ){.at = at, .before = before, .unkept = "", .unsteady = ""};
    if (before == SIZE_MAX)
        return 0;
    const struct trend_pair *pair = pair_of(all, t->runs[before], t->runs[at]);
    if (!pair)
        return -ENOMEM;
    struct around o = around_of(t, before, at);
    int err = fill(all, t, &o, pair, d);
    around_release(&o);
    return err;
}

static int fill_step(struct trends *all, const struct trend *t, const struct change_point *p,
                     struct trend_step *step)
{
    size_t high = p->at_high < t->n ? p->at_high : t->n - 1;
    size_t low = p->at_low < high ? p->at_low : high;
    int err;

    step->all = pool_alloc(&all->history->pool, high - low + 2, sizeof(*step->all));
    if (!step->all)
        return -ENOMEM;
    err = differ_at(all, t, value_before(t, p->at), p->end, &step->all[step->n++]);
    step->all[0].kind = p->kind;
    for (size_t i = low; !err && p->kind == CHANGE_STEP && i <= high; i++) {
        if (i == p->at || isnan(t->values[i]))
            continue;
        err = differ_at(all, t, value_before(t, i), i, &step->all[step->n]);
        step->n += step->all[step->n].n > 0;
    }
    return err;
}

int trend_differ_make(struct trends *all, struct trend *t)
{
    int err = 0;

    t->steps = pool_alloc(&all->history->pool, t->n_points, sizeof(*t->steps));
    if (!t->steps)
        return -ENOMEM;
    for (size_t i = 0; !err && i < t->n_points; i++)
        err = fill_step(all, t, &t->points[i], &t->steps[i]);
    return err;
}

/* --- words --- */

const char *trend_differ_text(struct pool *pool, const struct trend_differ *d, size_t most)
{
    const char *text = "";

    for (size_t i = 0; i < d->n && i < most; i++) {
        const struct machine_difference *one = &d->all[i];

        text = pool_text(pool, "%s%s%s: %s to %s", text, *text ? "; " : "", one->what,
                         *one->a ? one->a : NOT_TOLD, *one->b ? one->b : NOT_TOLD);
        if (i >= d->n_near)
            text = pool_text(pool, "%s (of %s)", text, one->pipes);
    }
    if (d->n > most)
        text = pool_text(pool, "%s; and %zu more, in --json", text, d->n - most);
    return text;
}

bool trend_differ_known(const struct trend_differ *d)
{
    return d->whole && !*d->unkept;
}

static const char *unknown_text(struct pool *pool, const struct trend_differ *d)
{
    const char *machine =
        d->whole ? "" : "of the machine the history keeps nothing for one of them";

    return pool_text(pool, "%s%s%s", machine, *machine && *d->unkept ? "; " : "", d->unkept);
}

/* Where nothing is on the list. */
static const char *nothing_text(struct pool *pool, const struct trend_differ *d)
{
    return *d->unsteady
               ? pool_text(pool,
                           "nothing that run.json tells; of what the rows tell, %s differs, but in "
                           "some launches alone, or between other runs, too",
                           d->unsteady)
               : "nothing that run.json or the rows tell";
}

/* The run that differs. */
static const char *which_text(struct pool *pool, const struct trend *t,
                              const struct trend_differ *d, bool named)
{
    const struct history_run *run = t->runs[d->at];

    if (d->kind == CHANGE_SLIP)
        return pool_text(pool, "its last run, %s (%.10s),", run->name, run->started_utc);
    return named ? "it"
                 : pool_text(pool, "%s (%.10s), with which it may have been, too,", run->name,
                             run->started_utc);
}

const char *trend_differ_sentence(struct pool *pool, const struct trend *t,
                                  const struct trend_differ *d, bool named)
{
    const char *run = which_text(pool, t, d, named);
    const char *other = d->kind == CHANGE_SLIP ? "the last one before the slip" : "the run before";
    const char *list = trend_differ_text(pool, d, TREND_DIFFER_SHOWN);
    const char *unknown = unknown_text(pool, d);

    if (!d->n && *unknown)
        return pool_text(pool, "what %s differs by from %s is not known: %s", run, other, unknown);
    return pool_text(pool, "%s differs from %s by %s%s%s", run, other,
                     d->n ? list : nothing_text(pool, d), *unknown ? "; " : "", unknown);
}
