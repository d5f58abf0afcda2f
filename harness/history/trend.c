/* SPDX-License-Identifier: Apache-2.0 */
/* From a history to changes: see trend.h. */
#include "harness/history/trend.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/stats.h"
#include "harness/compare/pairs.h"

static bool is_value(double value)
{
    return isfinite(value) && value > 0;
}

/* A run's launches of a case, parted. Each list has room for all of them. */
struct parting {
    double *kept, *taken; /* those that count; those during which others took the CPU */
    size_t n_kept, n_taken;
    size_t n_bad; /* of all runs: without a usable value, which say nothing */
};

static void part(struct parting *p, const struct history_series *series, size_t run, double limit)
{
    const double *steals = series->steals[run];

    p->n_kept = p->n_taken = 0;
    for (size_t i = 0; i < series->n_launches[run]; i++) {
        double value = series->launches[run][i];

        if (!is_value(value))
            p->n_bad++;
        else if (steals && steal_is_over(steals[i], limit))
            p->taken[p->n_taken++] = value;
        else
            p->kept[p->n_kept++] = value;
    }
}

static bool make_room(struct pool *pool, struct trend *t, struct parting *p)
{
    size_t most = 0;

    for (size_t i = 0; i < t->series->n; i++)
        most = t->series->n_launches[i] > most ? t->series->n_launches[i] : most;
    t->values = pool_alloc(pool, t->n, sizeof(*t->values));
    t->taken = pool_alloc(pool, t->n, sizeof(*t->taken));
    t->n_taken = pool_alloc(pool, t->n, sizeof(*t->n_taken));
    p->kept = calloc(2 * (most + 1), sizeof(*p->kept));
    if (!p->kept)
        return false;
    p->taken = p->kept + most + 1;
    return t->values && t->taken && t->n_taken;
}

/* A run of which no launch is left is a gap. */
static void fill_values(struct trend *t, double limit, struct parting *p)
{
    size_t skip = t->series->n - t->n;

    for (size_t i = 0; i < t->n; i++) {
        part(p, t->series, i + skip, limit);
        t->values[i] = p->n_kept ? stats_centre(p->kept, p->n_kept) : NAN;
        t->taken[i] = !p->n_kept && p->n_taken ? stats_centre(p->taken, p->n_taken) : NAN;
        t->n_taken[i] = p->n_taken;
        t->n_values += p->n_kept > 0;
        t->n_gone += !p->n_kept && p->n_taken;
    }
}

static bool has_taken(const struct trend *t)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->n_taken[i])
            return true;
    return false;
}

static int make_trend(struct trends *all, struct trend *t, const struct history_series *series,
                      const struct trend_filter *filter)
{
    struct parting p = {0};
    size_t skip = 0;

    while (skip < series->n && strcmp(series->runs[skip]->started_utc, filter->since) < 0)
        skip++;
    *t = (struct trend){.series = series, .n = series->n - skip, .runs = series->runs + skip};
    bool good = make_room(&all->history->pool, t, &p);
    if (good)
        fill_values(t, filter->steal_limit, &p);
    free(p.kept);
    if (!good)
        return -ENOMEM;
    all->n_bad += p.n_bad > 0;
    all->n_short += t->n_values < CHANGE_FIRST + CHANGE_SHORT;
    all->n_taken += has_taken(t);
    int err = change_points(t->values, t->n, NULL, &t->points, &t->n_points);
    return err ? err : trend_differ_make(all, t);
}

/* Runs, each once, in which a case has no launch left. */
static int count_gone(struct trends *t)
{
    const struct history *h = t->history;
    bool *gone = calloc(h->n_runs + 1, sizeof(*gone));

    if (!gone)
        return -ENOMEM;
    for (size_t i = 0; i < t->n; i++)
        for (size_t k = 0; k < t->all[i].n; k++)
            gone[t->all[i].runs[k] - h->runs] |= !isnan(t->all[i].taken[k]);
    for (size_t i = 0; i < h->n_runs; i++)
        t->n_gone += gone[i];
    free(gone);
    return 0;
}

static void count_runs(struct trends *t, const struct trend_filter *f)
{
    t->first = t->last = "";
    for (size_t i = 0; i < t->history->n_runs; i++) {
        const struct history_run *run = &t->history->runs[i];

        if (strcmp(run->started_utc, f->since) < 0 || (*f->host && strcmp(run->host, f->host)) ||
            (*f->suite && strcmp(run->suite, f->suite)))
            continue;
        t->first = t->n_runs++ ? t->first : run->started_utc;
        t->last = run->started_utc;
    }
}

int trends_make(struct trends *t, struct history *h, const struct trend_filter *filter)
{
    int err = 0;

    *t = (struct trends){.history = h};
    t->all = pool_alloc(&h->pool, h->n_series + 1, sizeof(*t->all));
    if (!t->all)
        return -ENOMEM;
    count_runs(t, filter);
    for (size_t i = 0; !err && i < h->n_series; i++) {
        const struct history_series *series = &h->series[i];

        if ((*filter->host && strcmp(series->host, filter->host)) ||
            (*filter->suite && strcmp(series->suite, filter->suite)) || !series->n ||
            strcmp(series->runs[series->n - 1]->started_utc, filter->since) < 0)
            continue;
        err = make_trend(t, &t->all[t->n++], series, filter);
        t->n_changed += !err && t->all[t->n - 1].n_points;
    }
    return err ? err : count_gone(t);
}

void trends_release(struct trends *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->all[i].points);
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
    double level = NAN;

    if (t->n_points)
        return segment ? t->points[segment - 1].after : t->points[0].before;
    /* Runs without a value have no say in it. */
    double *values = calloc(t->n + 1, sizeof(*values));
    size_t n = 0;
    for (size_t i = 0; values && i < t->n; i++)
        if (!isnan(t->values[i]))
            values[n++] = t->values[i];
    if (values)
        level = stats_median(values, n);
    free(values);
    return level;
}
