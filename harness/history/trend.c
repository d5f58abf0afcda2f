/* SPDX-License-Identifier: Apache-2.0 */
/* From a history to changes: see trend.h. */
#include "harness/history/trend.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/stats.h"

static bool is_value(double value)
{
    return isfinite(value) && value > 0;
}

/* Launches without a usable value say nothing; a run of which none is left is a gap. `kept` has room for all. */
static double value_of(const struct history_series *series, size_t run, double *kept, size_t *bad)
{
    size_t n = 0;

    for (size_t i = 0; i < series->n_launches[run]; i++) {
        if (is_value(series->launches[run][i]))
            kept[n++] = series->launches[run][i];
        else
            ++*bad;
    }
    return n ? stats_median(kept, n) : NAN;
}

static size_t most_launches(const struct history_series *series)
{
    size_t most = 0;

    for (size_t i = 0; i < series->n; i++)
        most = series->n_launches[i] > most ? series->n_launches[i] : most;
    return most;
}

static int make_trend(struct trends *all, struct trend *t, const struct history_series *series,
                      const char *since)
{
    size_t skip = 0, bad = 0;

    while (skip < series->n && strcmp(series->runs[skip]->started_utc, since) < 0)
        skip++;
    *t = (struct trend){.series = series, .n = series->n - skip, .runs = series->runs + skip};
    t->values = pool_alloc(&all->history->pool, t->n, sizeof(*t->values));
    double *kept = calloc(most_launches(series) + 1, sizeof(*kept));
    if ((t->n && !t->values) || !kept) {
        free(kept);
        return -ENOMEM;
    }
    for (size_t i = 0; i < t->n; i++) {
        t->values[i] = value_of(series, i + skip, kept, &bad);
        t->n_values += !isnan(t->values[i]);
    }
    free(kept);
    all->n_bad += bad > 0;
    all->n_short += t->n_values < CHANGE_FIRST + CHANGE_SHORT;
    int err = change_points(t->values, t->n, NULL, &t->points, &t->n_points);
    return err ? err : trend_differ_make(all, t);
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
        err = make_trend(t, &t->all[t->n++], series, filter->since);
        t->n_changed += !err && t->all[t->n - 1].n_points;
    }
    return err;
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
    if (!t->n_points)
        return stats_median(t->values, t->n);
    return segment ? t->points[segment - 1].after : t->points[0].before;
}
