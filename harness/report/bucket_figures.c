/* SPDX-License-Identifier: Apache-2.0 */
/* A model's gradients over the size of a bucket: see scaling_figures.h. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "core/units.h"
#include "harness/report/scaling_figures.h"
#include "harness/report/show.h"

#define LINES_MAX 8
#define TICKS_MAX 64

static bool same_plot(const struct bucket_series *a, const struct bucket_series *b)
{
    return a->bench == b->bench && !strcmp(a->model, b->model) && !strcmp(a->title, b->title);
}

static void add_tick(struct report *r, struct plot *plot, struct plot_tick *ticks, double bytes)
{
    size_t place = 0;
    char text[24];

    while (place < plot->n_ticks && ticks[place].at < bytes)
        place++;
    if (plot->n_ticks == TICKS_MAX || (place < plot->n_ticks && ticks[place].at == bytes))
        return;
    memmove(&ticks[place + 1], &ticks[place], (plot->n_ticks++ - place) * sizeof(*ticks));
    ticks[place] = (struct plot_tick){
        bytes, pool_text(&r->pool, "%s", units_format_size((uint64_t)bytes, text, sizeof(text)))};
}

static int add_sweep(struct report *r, const struct bucket_series *s, struct figure *f,
                     struct plot_line *lines, struct plot_tick *ticks)
{
    struct plot *plot = &f->plot;
    struct plot_line *line = &lines[plot->n_lines];
    struct plot_point *points = pool_alloc(&r->pool, s->n, sizeof(*points));

    if (!points)
        return -ENOMEM;
    *line = (struct plot_line){
        .label = s->label, .points = points, .colour = plot->n_lines, .marker = plot->n_lines};
    for (size_t i = 0; i < s->n; i++) {
        const struct bucket_point *p = &s->points[i];
        const char *origin = p->c->points[s->run].origin;

        if (!(p->bytes > 0)) /* each tensor by itself has no place on this axis */
            continue;
        points[line->n++] =
            (struct plot_point){p->bytes, p->time_us / 1000, p->low_us / 1000, p->high_us / 1000};
        add_tick(r, plot, ticks, p->bytes);
        if (strcmp(origin, "measured") != 0)
            plot->watermark = *origin ? origin : "origin unknown";
    }
    f->lines[plot->n_lines++] = (struct figure_line){s->label, "", s->run};
    return 0;
}

static int draw(struct report *r, const struct bucket_sweeps *all, size_t first, size_t before,
                struct figures *out)
{
    const struct bucket_series *s = &all->all[first];
    struct plot_line *lines = pool_alloc(&r->pool, LINES_MAX, sizeof(*lines));
    struct plot_tick *ticks = pool_alloc(&r->pool, TICKS_MAX + 1, sizeof(*ticks));
    struct figure *f = &out->all[out->n];
    int err = 0;

    *f = (struct figure){.bench = s->bench, .place = FIGURE_OF_BUCKETS, .note = ""};
    f->lines = pool_alloc(&r->pool, LINES_MAX, sizeof(*f->lines));
    if (!lines || !ticks || !f->lines)
        return -ENOMEM;
    for (size_t i = first; !err && i < all->n && f->plot.n_lines < LINES_MAX; i++)
        if (same_plot(s, &all->all[i]))
            err = add_sweep(r, &all->all[i], f, lines, ticks);
    if (err || f->plot.n_ticks < 2)
        return err;
    f->plot.lines = lines;
    f->plot.ticks = ticks;
    f->plot.x_log = f->plot.y_from_zero = true;
    f->plot.x_label = "bucket (bytes)";
    f->plot.y_label = "time for all gradients (ms)";
    f->subtitle = show_joined(&r->pool, s->model, s->title);
    f->plot.name = pool_text(&r->pool, "buckets-%zu", out->n - before + 1);
    f->plot.title = pool_text(&r->pool, "%s of %s over buckets", s->bench->name, f->subtitle);
    out->n++;
    return 0;
}

int bucket_figures(struct report *r, const struct bucket_sweeps *all, size_t before,
                   struct figures *out)
{
    int err = 0;

    for (size_t i = 0; !err && i < all->n; i++) {
        bool seen = false;

        for (size_t k = 0; k < i; k++)
            seen = seen || same_plot(&all->all[k], &all->all[i]);
        if (!seen && out->n < FIGURES_MAX && out->n - before < SCALING_PLOTS_MAX)
            err = draw(r, all, i, before, out);
    }
    return err;
}
