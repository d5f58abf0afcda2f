/* SPDX-License-Identifier: Apache-2.0 */
/* From a history to changes: see history.h. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/stats.h"
#include "harness/compare/compare.h"
#include "harness/compare/pairs.h"
#include "harness/history/history.h"
#include "harness/machine/fact.h"
#include "harness/report/show.h"

#define TREND_DIFFER_SHOWN 8

/* ---- What else differed where a level moved ---- */

#define NOT_KNOWN "not known"

/* --- the machine and the program --- */

/* What differs between two runs, which many cases ask for. */
struct trend_pair {
    const struct history_run *before, *after;
    struct machine_difference *all;
    size_t n;
};

/* By the code that compares two runs; all it asks of them is their run.json. */
static void find_differences(struct pool *pool, struct trend_pair *pair)
{
    const char *texts[2] = {pair->before->environment, pair->after->environment};
    struct run_folder runs[2] = {{.meta = texts[0] ? json_loads(texts[0], 0, NULL) : NULL},
                                 {.meta = texts[1] ? json_loads(texts[1], 0, NULL) : NULL}};
    struct pairs p = {.report = {.pool = *pool, .runs = runs, .n_runs = 2}, .n_a = 1, .n_b = 1};
    struct machine_difference *all = NULL;

    size_t n = pairs_machine_differences(&p, &all);
    *pool = p.report.pool;
    pair->all = pool_alloc(pool, n, sizeof(*pair->all));
    for (size_t i = 0; i < n; i++) /* the texts are the JSON's */
        pair->all[pair->n++] = (struct machine_difference){
            pool_text(pool, "%s", all[i].what), pool_text(pool, "%s", all[i].a),
            pool_text(pool, "%s", all[i].b), pool_text(pool, "%s", all[i].pipes),
            all[i].environment};
    json_decref(runs[0].meta);
    json_decref(runs[1].meta);
}

static struct trend_pair *pair_of(struct trends *all, const struct history_run *before,
                                  const struct history_run *after)
{
    for (size_t i = all->n_pairs; i-- > 0;)
        if (all->pairs[i].before == before && all->pairs[i].after == after)
            return &all->pairs[i];
    struct trend_pair *pair = ARRAY_ADD(all->pairs, all->n_pairs);
    *pair = (struct trend_pair){.before = before, .after = after};
    find_differences(&all->history->pool, pair);
    return pair;
}

/* --- the case's own rows --- */

/* NULL: i is SIZE_MAX, or nothing is kept. */
static json_t *outcomes_at(const struct trend *t, size_t i)
{
    const char *text =
        i == SIZE_MAX ? NULL : t->series->outcomes[i + (size_t)(t->runs - t->series->runs)];

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
    const char *texts = "";
    const json_t *one;
    size_t i;

    json_array_foreach (list, i, one)
        if (json_is_string(one))
            texts = pool_join(pool, texts, " or ", pool_text(pool, "%s", json_string_value(one)));
    return texts;
}

/* The outcomes of four runs: two before a place and two from it on. NULL: there is no such run, or
 * nothing is kept. */
struct around {
    json_t *earlier, *before, *after, *later;
};

/* A buffer's address is another one every time: only what was the same before, and is the same from
 * then on, can have moved with a level. */
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

/* --- both, at one place --- */

#define BACK SIZE_MAX /* a step to the run before */

/* The next run with a value, forth by 1 or BACK; SIZE_MAX: there is none. */
static size_t next_value(const struct trend *t, size_t at, size_t by)
{
    while ((at += by) < t->n)
        if (!isnan(t->values[at]))
            return at;
    return SIZE_MAX;
}

static void differ_at(struct trends *all, const struct trend *t, size_t before, size_t at,
                      struct trend_differ *d)
{
    *d = (struct trend_differ){.at = at, .before = before};
    if (before == SIZE_MAX)
        return;
    const struct around o = {.earlier = outcomes_at(t, next_value(t, before, BACK)),
                             .before = outcomes_at(t, before),
                             .after = outcomes_at(t, at),
                             .later = outcomes_at(t, next_value(t, at, 1))};
    /* The case's own first, then what may weigh on its pipe, then the rest. */
    const struct trend_pair *pair = pair_of(all, t->runs[before], t->runs[at]);
    struct pool *pool = &all->history->pool;
    size_t own = add_outcomes(pool, &o, NULL);
    struct machine_difference *list = pool_alloc(pool, own + pair->n, sizeof(*list));

    d->n = add_outcomes(pool, &o, list);
    for (int near = 1; near >= 0; near--) {
        for (size_t i = 0; i < pair->n; i++)
            if (near ==
                (!*pair->all[i].pipes || words_has_pipe(pair->all[i].pipes, t->series->pipe)))
                list[d->n++] = pair->all[i];
        d->n_near = near ? d->n : d->n_near;
    }
    d->all = list;
    json_decref(o.earlier);
    json_decref(o.before);
    json_decref(o.after);
    json_decref(o.later);
}

/* --- words --- */

const char *trend_differ_text(struct pool *pool, const struct trend_differ *d, size_t most)
{
    const char **texts = pool_alloc(pool, d->n, sizeof(*texts));

    for (size_t i = 0; i < d->n; i++) {
        const struct machine_difference *one = &d->all[i];

        texts[i] = pool_text(pool, "%s: %s to %s", one->what, *one->a ? one->a : NOT_KNOWN,
                             *one->b ? one->b : NOT_KNOWN);
        if (i >= d->n_near)
            texts[i] = pool_text(pool, "%s (of %s)", texts[i], one->pipes);
    }
    return pool_text(pool, "%s%s", pool_list(pool, texts, d->n, most, "; "),
                     d->n > most && d->n - most > 1 ? ", in --json" : "");
}

const char *trend_differ_sentence(struct pool *pool, const struct trend *t,
                                  const struct trend_differ *d, bool named)
{
    /* The run that differs. */
    const struct history_run *which = t->runs[d->at];
    const char *run = named ? "it"
                            : pool_text(pool, "%s (%.10s), with which it may have been, too,",
                                        which->name, which->started_utc);
    const char *list = trend_differ_text(pool, d, TREND_DIFFER_SHOWN);

    return pool_text(pool, "%s differs from the run before by %s", run,
                     d->n ? list : "nothing that run.json or the rows tell");
}

#define RUNS_BEFORE 3 /* of a change that began before --since: they are shown with it */

/* Changes are looked for in all runs: those before `since` tell what is no change. From here on
 * there are only the changes since then, and the runs that show them. */
static void cut_before(struct trend *t, const char *since)
{
    size_t begin = 0, first = 0;

    while (begin < t->n && strcmp(t->runs[begin]->started_utc, since) < 0)
        begin++;
    while (first < t->n_points && strcmp(t->runs[t->points[first].seen]->started_utc, since) < 0)
        first++;
    if (first < t->n_points) {
        size_t low = t->points[first].at_low < t->points[first].at ? t->points[first].at_low
                                                                   : t->points[first].at;
        size_t shown = low > RUNS_BEFORE ? low - RUNS_BEFORE : 0;

        begin = shown < begin ? shown : begin;
        if (first && begin < t->points[first - 1].at)
            begin = t->points[first - 1].at < low ? t->points[first - 1].at : low;
    }
    t->n_points -= first;
    if (first)
        memmove(t->points, t->points + first, t->n_points * sizeof(*t->points));
    for (size_t i = 0; i < t->n_points; i++) {
        struct change_point *p = &t->points[i];
        size_t *places[] = {&p->at, &p->seen, &p->at_low, &p->at_high};

        for (size_t k = 0; k < sizeof(places) / sizeof(*places); k++)
            *places[k] -= *places[k] < begin ? *places[k] : begin;
    }
    for (size_t i = 0; i < begin; i++)
        t->n_gone -= !isnan(t->taken[i]);
    t->n -= begin;
    t->runs += begin;
    t->values += begin;
    t->taken += begin;
    t->n_taken += begin;
}

static void fill_step(struct trends *all, const struct trend *t, const struct change_point *p,
                      struct trend_step *step)
{
    size_t high = p->at_high < t->n ? p->at_high : t->n - 1;
    size_t low = p->at_low < high ? p->at_low : high;

    step->all = pool_alloc(&all->history->pool, high - low + 2, sizeof(*step->all));
    differ_at(all, t, next_value(t, p->at, BACK), p->at, &step->all[step->n++]);
    for (size_t i = low; i <= high; i++) {
        if (i == p->at || isnan(t->values[i]))
            continue;
        differ_at(all, t, next_value(t, i, BACK), i, &step->all[step->n]);
        step->n += step->all[step->n].n > 0;
    }
}

static void make_trend(struct trends *all, struct trend *t, const struct history_series *series,
                       const struct trend_filter *filter)
{
    struct pool *pool = &all->history->pool;
    size_t n_bad = 0, n_taken = 0;

    *t = (struct trend){.series = series, .n = series->n, .runs = series->runs};
    t->values = pool_alloc(pool, t->n, sizeof(*t->values));
    t->taken = pool_alloc(pool, t->n, sizeof(*t->taken));
    t->n_taken = pool_alloc(pool, t->n, sizeof(*t->n_taken));
    for (size_t i = 0; i < t->n; i++) {
        struct history_value v = history_value(series, i, filter->steal_limit);

        /* A run of which no launch is left is a gap. */
        t->values[i] = v.value;
        t->taken[i] = v.taken;
        t->n_taken[i] = v.n_taken;
        t->n_values += !isnan(v.value);
        t->n_gone += !isnan(v.taken);
        n_bad += v.n_bad;
    }
    all->n_bad += n_bad > 0;
    all->n_short += t->n_values < CHANGE_FIRST + CHANGE_SHORT;
    /* its values are above 0 or NaN */
    change_points(t->values, t->n, &t->points, &t->n_points);
    if (*filter->since)
        cut_before(t, filter->since);
    for (size_t i = 0; i < t->n; i++)
        n_taken += t->n_taken[i];
    all->n_taken += n_taken > 0;
    t->steps = pool_alloc(pool, t->n_points, sizeof(*t->steps));
    for (size_t i = 0; i < t->n_points; i++)
        fill_step(all, t, &t->points[i], &t->steps[i]);
}

/* ---- Cases that the newest run lacks ---- */

/* Another machine that comes back is no machine that was replaced. */
const char *trends_machines(const struct trends *t, const struct history_series *of)
{
    const struct history *h = t->history;
    const char *first = "", *other = "";

    for (size_t i = 0; i < h->n_runs; i++) {
        const char *machine = h->runs[i].machine;

        if (!*machine || strcmp(h->runs[i].host, of->host) != 0 ||
            strcmp(h->runs[i].suite, of->suite) != 0)
            continue;
        if (*other && !strcmp(machine, first))
            return pool_text(&t->history->pool, "%s; %s", first, other);
        if (!*first)
            first = machine;
        else if (!*other && strcmp(machine, first) != 0)
            other = machine;
    }
    return "";
}

/* The keys end with the unit. */
static bool is_same_but_unit(const struct history_series *a, const struct history_series *b)
{
    const char *end_a = strrchr(a->key, '|'), *end_b = strrchr(b->key, '|');

    return end_a && end_b && end_a - a->key == end_b - b->key &&
           !strncmp(a->key, b->key, (size_t)(end_a - a->key)) && strcmp(end_a, end_b) != 0 &&
           !strcmp(a->host, b->host) && !strcmp(a->suite, b->suite);
}

static void count_missing(struct trends *t)
{
    for (size_t i = 0; i < t->n; i++) {
        /* Runs of some cases alone do not miss the others. */
        struct trend *one = &t->all[i];
        const struct history *h = t->history;
        size_t last = one->n;

        while (last > 0 && isnan(one->values[last - 1]) && isnan(one->taken[last - 1]))
            last--;
        if (last && one->n_values) {
            const struct history_run *then = one->runs[last - 1], *run = then + 1;

            for (; run < h->runs + h->n_runs; run++) {
                if (strcmp(run->host, then->host) || strcmp(run->suite, then->suite) ||
                    strcmp(run->only, then->only))
                    continue;
                one->n_missing++;
                one->retired = strcmp(run->config_hash, then->config_hash) != 0;
            }
            one->last = then;
        }
    }
    for (size_t i = 0; i < t->n; i++) {
        struct trend *one = &t->all[i];

        for (size_t k = 0; one->n_missing && !one->now && k < t->n; k++)
            if (!t->all[k].n_missing && is_same_but_unit(one->series, t->all[k].series))
                one->now = t->all[k].series;
        t->n_missing += one->n_missing > 0;
        t->n_quiet +=
            !one->n_missing && !one->n_points && one->n_values >= CHANGE_FIRST + CHANGE_SHORT;
    }
}

bool trend_fails_to_show(const struct trends *all, const struct trend *t, size_t within)
{
    (void)all;
    return t->n_missing && (t->n_missing <= within || (!t->retired && !t->now));
}

const char *trend_missing_text(struct pool *pool, const struct trend *t)
{
    const char *runs = "run";

    if (!t->n_missing)
        return "";
    if (t->now)
        return pool_text(pool,
                         "in %s up to %s (%.10s), and in %s since: two series, between which no "
                         "change can be found",
                         t->series->unit, t->last->name, t->last->started_utc, t->now->unit);
    if (t->n_missing > 1)
        runs = pool_text(pool, "%zu runs", t->n_missing);
    return pool_text(pool, "none in the newest %s, the last is in %s (%.10s): %s", runs,
                     t->last->name, t->last->started_utc,
                     t->retired ? "the suite's text is another one since, or it failed"
                                : "wrong data, failed, skipped, or called otherwise");
}

void trends_make(struct trends *t, struct history *h, const struct trend_filter *filter)
{
    *t = (struct trends){.history = h};
    t->all = pool_alloc(&h->pool, h->n_series, sizeof(*t->all));
    t->first = t->last = "";
    for (size_t i = 0; i < t->history->n_runs; i++) {
        const struct history_run *run = &t->history->runs[i];

        if (strcmp(run->started_utc, filter->since) < 0 ||
            (*filter->host && strcmp(run->host, filter->host)) ||
            (*filter->suite && strcmp(run->suite, filter->suite)))
            continue;
        t->first = t->n_runs++ ? t->first : run->started_utc;
        t->last = run->started_utc;
    }
    for (size_t i = 0; i < h->n_series; i++) {
        const struct history_series *series = &h->series[i];

        if ((*filter->host && strcmp(series->host, filter->host)) ||
            (*filter->suite && strcmp(series->suite, filter->suite)) ||
            strcmp(series->runs[series->n - 1]->started_utc, filter->since) < 0)
            continue;
        make_trend(t, &t->all[t->n++], series, filter);
        t->n_changed += t->all[t->n - 1].n_points > 0;
    }
    count_missing(t);
    /* Runs, each once, in which a case has no launch left. */
    bool *gone = xcalloc(h->n_runs, sizeof(*gone));

    for (size_t i = 0; i < t->n; i++)
        for (size_t k = 0; k < t->all[i].n; k++)
            gone[t->all[i].runs[k] - h->runs] |= !isnan(t->all[i].taken[k]);
    for (size_t i = 0; i < h->n_runs; i++)
        t->n_gone += gone[i];
    free(gone);
}

void trends_release(struct trends *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->all[i].points);
    free(t->pairs);
    *t = (struct trends){0};
}

bool trend_is_worse(const struct trend *t, const struct change_point *p)
{
    return t->series->higher_is_better ? p->ratio < 1 : p->ratio > 1;
}

/* Runs of the series' host and suite that came after this one. */
static size_t runs_after(const struct trends *all, const struct trend *t,
                         const struct history_run *run)
{
    size_t n = 0;

    for (size_t i = all->history->n_runs; i-- && &all->history->runs[i] != run;)
        n += !strcmp(all->history->runs[i].host, t->series->host) &&
             !strcmp(all->history->runs[i].suite, t->series->suite);
    return n;
}

bool trend_fails(const struct trends *all, const struct trend *t, size_t within)
{
    for (size_t i = 0; i < t->n_points; i++)
        if (trend_is_worse(t, &t->points[i]) &&
            runs_after(all, t, t->runs[t->points[i].seen]) < within)
            return true;
    return false;
}

double trend_level(const struct trend *t, size_t segment)
{
    if (t->n_points)
        return segment ? t->points[segment - 1].after : t->points[0].before;
    /* Runs without a value have no say in it. */
    double *values = xcalloc(t->n, sizeof(*values));
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        if (!isnan(t->values[i]))
            values[n++] = t->values[i];
    double level = stats_median(values, n);
    free(values);
    return level;
}
