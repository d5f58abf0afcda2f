/* SPDX-License-Identifier: Apache-2.0 */
/* Plots over ranks and over buckets: see scaling_figures.h. */
#include "harness/report/scaling_figures.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "harness/report/scaling_drawing.h"
#include "harness/report/show.h"
#include "harness/report/told.h"

#define SIZES_DRAWN 3
#define TICKS_MAX   64
#define LOG_Y_FROM  30

static int add_ticks(struct drawing *d, struct plot *plot)
{
    struct plot_tick *ticks = pool_alloc(&d->r->pool, TICKS_MAX + 1, sizeof(*ticks));

    if (!ticks)
        return -ENOMEM;
    for (size_t i = 0; i < d->n_series; i++)
        for (size_t k = 0; k < d->series[i]->n_ranks; k++) {
            double at = d->series[i]->ranks[k];
            size_t place = 0;

            while (place < plot->n_ticks && ticks[place].at < at)
                place++;
            if (plot->n_ticks == TICKS_MAX || (place < plot->n_ticks && ticks[place].at == at))
                continue;
            memmove(&ticks[place + 1], &ticks[place], (plot->n_ticks++ - place) * sizeof(*ticks));
            ticks[place] = (struct plot_tick){at, pool_text(&d->r->pool, "%.0f", at)};
        }
    plot->ticks = ticks;
    return 0;
}

/* The lines leave the drawing for the pool. */
static int take_lines(struct drawing *d, struct figure *f)
{
    struct plot_line *lines = pool_alloc(&d->r->pool, d->n, sizeof(*lines));

    f->lines = pool_alloc(&d->r->pool, d->n, sizeof(*f->lines));
    if (!lines || !f->lines)
        return -ENOMEM;
    memcpy(lines, d->lines, d->n * sizeof(*lines));
    memcpy(f->lines, d->named, d->n * sizeof(*f->lines));
    f->plot.lines = lines;
    f->plot.n_lines = d->n;
    return 0;
}

static void scale(struct drawing *d, struct plot *plot)
{
    plot->x_log = true;
    plot->y_log = d->low > 0 && d->high >= LOG_Y_FROM * d->low;
    plot->y_from_zero = !plot->y_log;
    plot->watermark = d->watermark;
}

static int finish_ranks(struct drawing *d)
{
    const struct scaling_series *first = d->series[0];
    struct figure *f = &d->out->all[d->out->n];
    const char *metric = d->bus ? "busbw" : "time";
    int err;

    *f = (struct figure){.bench = first->bench, .place = FIGURE_OF_RANKS, .note = ""};
    err = take_lines(d, f);
    if (!err)
        err = add_ticks(d, &f->plot);
    if (err || f->plot.n_ticks < 2 || isnan(d->high))
        return err;
    scale(d, &f->plot);
    f->plot.x_label = "ranks";
    f->plot.y_label = d->bus ? "busbw (GB/s)" : d->ms ? "time (ms)" : "time (us)";
    f->subtitle =
        show_joined(&d->r->pool, pool_text(&d->r->pool, "size %s", d->size_text), first->title);
    if (d->left_out)
        f->note = pool_text(&d->r->pool, "%s left out, in the tables alone",
                            show_count(&d->r->pool, d->left_out, "more line"));
    f->plot.name = pool_text(&d->r->pool, "scaling-%s-%zu", metric, d->out->n - d->before + 1);
    f->plot.title =
        pool_text(&d->r->pool, "%s %s over ranks: %s", f->bench->name, metric, f->subtitle);
    d->out->n++;
    return 0;
}

static int draw_ranks(struct drawing *d)
{
    scaling_lines(d);
    return d->n ? finish_ranks(d) : 0;
}

static bool keeps_apart(const struct scaling_series *a, const struct scaling_series *b, size_t i)
{
    const char *x = a->first->params[i], *y = b->first->params[i];

    if (a->bench->follows[i] || !strcmp(x, y) ||
        word_in("ranks size backend transport device algorithm segment", a->bench->params[i]))
        return false;
    return (*x && *y) || !strcmp(x, "yes") ||
           !strcmp(y, "yes"); /* a flag is empty where it is off */
}

/* A parameter that one of two transports does not have does not keep them apart. */
static bool same_plot(const struct scaling_series *a, const struct scaling_series *b)
{
    if (a->bench != b->bench)
        return false;
    for (size_t i = 0; i < a->bench->n_params; i++)
        if (keeps_apart(a, b, i))
            return false;
    return true;
}

static bool has_size(const struct scaling_series *s, double size)
{
    for (size_t i = 0; i < s->n_sizes; i++)
        if (s->sizes[i] == size)
            return true;
    return false;
}

/* The smallest, the one in the middle and the largest of the sizes that all series have; of the first series', where they have none together. Indices of
 * that one's. */
static size_t choose_sizes(const struct drawing *d, size_t *chosen)
{
    const struct scaling_series *first = d->series[0];
    size_t n = 0, common = 0, *all = pool_alloc(&d->r->pool, first->n_sizes, sizeof(*all));

    for (size_t i = 0; all && i < first->n_sizes; i++) {
        size_t have = 0;

        for (size_t k = 0; k < d->n_series; k++)
            have += has_size(d->series[k], first->sizes[i]);
        if (have == d->n_series)
            all[common++] = i;
    }
    for (size_t i = 0; all && !common && i < first->n_sizes; i++)
        all[i] = i;
    common = common ? common : first->n_sizes;
    if (!all)
        return 0;
    chosen[n++] = all[0];
    if (common > 2)
        chosen[n++] = all[common / 2];
    if (common > 1)
        chosen[n++] = all[common - 1];
    return n;
}

static bool has_room(const struct figures *out, size_t before)
{
    return out->n < FIGURES_MAX && out->n - before < SCALING_PLOTS_MAX;
}

static int draw_group(struct report *r, const struct scalings *all, size_t first, size_t before,
                      struct figures *out)
{
    struct drawing d = {.r = r, .out = out, .before = before};
    size_t sizes[SIZES_DRAWN], n;
    int err = 0;

    for (size_t i = first; i < all->n; i++) {
        if (!same_plot(&all->all[first], &all->all[i]))
            continue;
        if (d.n_series < SERIES_DRAWN)
            d.series[d.n_series++] = &all->all[i];
        else
            d.left_out++;
    }
    n = choose_sizes(&d, sizes);
    for (size_t i = 0; i < 2 * n; i++) {
        size_t size = sizes[n - 1 - i / 2]; /* the largest first: it is what the links are for */

        d.bus = i % 2 == 0;
        d.size = all->all[first].sizes[size];
        d.size_text = all->all[first].size_texts[size];
        if (!err && has_room(out, before) && !(d.bus && n > 1 && size == sizes[0]))
            err = draw_ranks(&d);
    }
    return err;
}

static int draw_all_ranks(struct report *r, const struct scalings *all, size_t before,
                          struct figures *out)
{
    int err = 0;

    for (size_t i = 0; !err && i < all->n; i++) {
        bool seen = false;

        for (size_t k = 0; k < i; k++)
            seen = seen || same_plot(&all->all[k], &all->all[i]);
        if (!seen)
            err = draw_group(r, all, i, before, out);
    }
    return err;
}

int scaling_figures(struct report *r, const struct headlines *h, struct figures *figures)
{
    size_t before = figures->n;
    int err = draw_all_ranks(r, &h->scalings, before, figures);

    if (!err)
        err = bucket_figures(r, &h->buckets, before, figures);
    return err || r->pool.failed ? -ENOMEM : 0;
}
