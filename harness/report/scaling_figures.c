/* SPDX-License-Identifier: Apache-2.0 */
/* Plots over ranks and over buckets, and what a model says beside: see scaling.h. */
#include "harness/report/scaling.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "harness/report/cases_group.h"
#include "harness/report/headline.h"
#include "harness/report/series.h"
#include "harness/report/show.h"

#define SIZES_DRAWN 3
#define LIMIT_ROOM  2.5 /* an ideal so far above what was measured would flatten the plot */

static const struct bench_plot over_ranks = {
    .x = "ranks", .lines = "backend transport", .ignore = "rank scope"};
static const struct bench_plot over_buckets = {
    .x = "bucket", .lines = "backend transport ranks", .ignore = "rank scope", .flags = PLOT_BYTES};

/* ---- Lines beside those of the values ---- */

static const struct scaling_cell *cell_of(const struct figure_drawing *d,
                                          const struct scaling_series *s, size_t i)
{
    for (size_t k = 0; k < s->n_sizes * s->n_ranks; k++)
        if (s->cells[k].time == drawing_case(d->g, i) || s->cells[k].bus == drawing_case(d->g, i))
            return &s->cells[k];
    return NULL;
}

/* The fitted model between the points: us, or the bus bandwidth that comes of it. */
static double model_at(const struct scaling_series *s, const struct scaling_cell *cell,
                       double ranks, bool bus)
{
    struct fit_terms terms;

    if (!cell->time || s->fit_error || !fit_describes(&s->fit) ||
        !fit_terms(s->terms, ranks, &terms))
        return NAN;
    double bytes = scaling_bytes(s->bench, cell->time);
    double us = fit_predict(&s->fit, ranks, bytes).time_us;
    return bus ? terms.bus * bytes / us / 1000 : us;
}

/* NaN: no limit is known there, or none that fits into the plot. */
static double ideal_at(const struct scaling_series *s, const struct scaling_cell *cell,
                       double ranks, bool bus, double top)
{
    if (!cell->bus)
        return NAN;
    double limit = cell->bus->points[s->run].limit;
    return !bus ? scaling_ideal_us(s, cell, ranks) : limit > LIMIT_ROOM * top ? NAN : limit;
}

static bool is_drawn(const struct figure_drawing *d, const char *label)
{
    for (size_t i = 0; i + 1 < d->f->plot.n_lines; i++)
        if (!strcmp(d->lines[i].label, label))
            return true;
    return false;
}

/* Of the line of its values; where it has none here, its own. */
static const char *label_of(const struct figure_drawing *d, const struct scaling_series *s,
                            size_t colour)
{
    for (size_t i = 0; i + 1 < d->f->plot.n_lines; i++)
        if (d->lines[i].colour == colour && d->f->lines[i].run == s->run)
            return d->lines[i].label;
    return s->label;
}

/* The limit that the rows of a series name is the same of several: it is drawn once, in a colour that
 * no series has. */
static void add_overlay(struct figure_drawing *d, const struct scaling_series *s, bool model,
                        double top, size_t *ideals)
{
    const struct group *g = d->g;
    struct plot *plot = &d->f->plot;
    bool bus = !strcmp(g->metric, "busbw");
    struct figure_line named = {"", "", s->run};
    struct plot_line *line = drawing_add_line(d, &named, "", 0, g->n);

    for (size_t i = 0; line && i < g->n; i++) {
        const struct scaling_cell *cell = cell_of(d, s, i);
        double ranks = g->x->numbers[g->x->of_case[i]];
        size_t class = g->line_of.of_case[i];

        if (!cell || d->colours[class] == SIZE_MAX)
            continue;
        double y = model ? model_at(s, cell, ranks, bus) : ideal_at(s, cell, ranks, bus, top);
        if (isnan(y))
            continue;
        if (!line->n && model) {
            line->colour = d->colours[class];
            line->label = pool_text(d->pool, "%s, fitted model", label_of(d, s, line->colour));
        } else if (!line->n) {
            line->label = pool_text(d->pool, "ideal at %s GB/s",
                                    show_short(d->pool, cell->bus->points[s->run].limit));
        }
        d->points[plot->n_lines - 1][line->n++] = (struct plot_point){ranks, y, NAN, NAN};
    }
    if (!line)
        return;
    if (!line->n || is_drawn(d, line->label)) {
        plot->n_lines--;
        return;
    }
    for (size_t i = 0; i < line->n; i++)
        drawing_note(d, line->points[i].y);
    line->plain = true;
    line->dashed = model || *ideals >= PLOT_COLOURS - OVERLAID_MAX;
    if (!model)
        line->colour = PLOT_COLOURS - 1 - (*ideals)++ % (PLOT_COLOURS - OVERLAID_MAX);
    d->f->lines[plot->n_lines - 1].series = line->label;
}

void drawing_add_overlays(struct figure_drawing *d)
{
    size_t ideals = 0;

    for (int model = 1; model >= 0; model--) {
        double top = d->high;

        for (size_t i = 0; i < d->g->overlays->n; i++)
            add_overlay(d, d->g->overlays->series[i], model, top, &ideals);
    }
}

/* ---- What is drawn ---- */

/* The marked cases, in one plot. */
static void draw(struct group *g, const bool *in, size_t before, struct figures *out)
{
    if (out->n == FIGURES_MAX || out->n - before >= SCALING_PLOTS_MAX)
        return;
    g->cases = pool_alloc(&g->r->pool, g->bench->n_cases, sizeof(*g->cases));
    for (size_t i = 0; i < g->bench->n_cases; i++)
        if (in[i])
            g->cases[g->n++] = i;
    if (!g->n)
        return;
    g->metric = g->bench->cases[g->cases[0]].metric;
    g->unit = g->bench->cases[g->cases[0]].unit;
    g->gpu_drawn = "";
    group_plan(g);
    if ((g->x && strcmp(g->bench->params[g->x->param], g->hint->x) != 0) ||
        !figure_make(g, 0, out->n - before + 1, &out->all[out->n]))
        return;
    struct figure *f = &out->all[out->n++];
    f->heading = pool_text(&g->r->pool, "%s over %s", f->heading, g->hint->x);
    f->plot.title = pool_text(&g->r->pool, "%s: %s", f->heading, f->subtitle);
}

/* A parameter that one of two transports does not have does not keep them apart. */
static bool same_plot_of_ranks(const struct scaling_series *a, const struct scaling_series *b)
{
    for (size_t i = 0; a->bench == b->bench && i < a->bench->n_params; i++) {
        const char *x = a->first->params[i], *y = b->first->params[i];
        bool flag = !strcmp(x, "yes") || !strcmp(y, "yes"); /* is empty where it is off */

        if (!a->bench->follows[i] && strcmp(x, y) != 0 && ((*x && *y) || flag) &&
            !word_in("ranks size backend transport device algorithm segment", a->bench->params[i]))
            return false;
    }
    return a->bench == b->bench;
}

static size_t index_of_size(const struct scaling_series *s, double size)
{
    size_t i = 0;

    while (i < s->n_sizes && s->sizes[i] != size)
        i++;
    return i;
}

/* The largest, the one in the middle and the smallest of the sizes that all series have; of the first
 * series', where they have none together. */
static size_t choose_sizes(struct pool *pool, const struct overlays *all, double *chosen)
{
    const struct scaling_series *first = all->series[0];
    double *common = pool_alloc(pool, first->n_sizes, sizeof(*common));
    size_t n = 0, many = 0;

    for (size_t i = 0; i < first->n_sizes; i++) {
        bool has_all = true;

        for (size_t k = 0; k < all->n; k++)
            has_all =
                has_all && index_of_size(all->series[k], first->sizes[i]) < all->series[k]->n_sizes;
        if (has_all)
            common[many++] = first->sizes[i];
    }
    if (!many) {
        common = first->sizes;
        many = first->n_sizes;
    }
    chosen[n++] = common[many - 1]; /* it is what the links are for */
    if (many > 2)
        chosen[n++] = common[many / 2];
    if (many > 1)
        chosen[n++] = common[0];
    return n;
}

/* The series that differ in backend, transport and run alone. */
static void draw_ranks(struct report *r, const struct scalings *all, size_t first, size_t before,
                       struct figures *out)
{
    const struct report_bench *b = all->all[first].bench;
    const struct scaling_series **series = pool_alloc(&r->pool, all->n, sizeof(*series));
    struct overlays overlays = {.series = series};
    double sizes[SIZES_DRAWN];

    for (size_t i = first; i < all->n; i++)
        if (same_plot_of_ranks(&all->all[first], &all->all[i]))
            series[overlays.n++] = &all->all[i];
    size_t n = choose_sizes(&r->pool, &overlays, sizes);
    for (size_t i = 0; i < 2 * n; i++) {
        bool bus = i % 2 == 0, *in = pool_alloc(&r->pool, b->n_cases, sizeof(*in));
        struct group g = {.r = r,
                          .bench = b,
                          .hint = &over_ranks,
                          .place = FIGURE_OF_SCALING,
                          .name = bus ? "scaling-busbw" : "scaling-time",
                          .overlays = &overlays};

        for (size_t k = 0; k < overlays.n; k++) {
            const struct scaling_series *s = series[k];
            size_t size = index_of_size(s, sizes[i / 2]);

            for (size_t ranks = 0; size < s->n_sizes && ranks < s->n_ranks; ranks++) {
                const struct scaling_cell *cell = &s->cells[size * s->n_ranks + ranks];
                const struct report_case *c = bus ? cell->bus : cell->time;

                if (c)
                    in[c - b->cases] = true;
            }
        }
        if (!bus || n == 1 || i / 2 < n - 1) /* of the smallest, bandwidth tells nothing */
            draw(&g, in, before, out);
    }
}

/* A whole model's gradients; each tensor by itself has no place on this axis, and one rank alone has
 * nothing to sum. */
static bool is_of_buckets(const struct report_bench *b, size_t run, const struct report_case *c,
                          const void *arg)
{
    (void)run;
    (void)arg;
    return !strcmp(c->metric, "time") && *report_param(b, c, "model") &&
           report_number(report_param(b, c, "bucket")) > 0 &&
           strcmp(report_param(b, c, "ranks"), "1") != 0;
}

static void draw_buckets(struct report *r, const struct report_bench *b, size_t before,
                         struct figures *out)
{
    struct case_groups groups =
        cases_group(&r->pool, b, 0, is_of_buckets, NULL, cases_but,
                    "bucket size backend transport ranks rank scope metric unit");

    for (size_t i = 0; i < groups.n; i++) {
        bool *in = pool_alloc(&r->pool, b->n_cases, sizeof(*in));
        struct group g = {.r = r,
                          .bench = b,
                          .hint = &over_buckets,
                          .place = FIGURE_OF_SCALING,
                          .name = "buckets"};

        for (size_t k = 0; k < groups.all[i].n; k++)
            in[groups.all[i].cases[k] - b->cases] = true;
        draw(&g, in, before, out);
    }
}

void scaling_figures(struct report *r, const struct headlines *h, struct figures *figures)
{
    const struct scalings *all = &h->scalings;
    size_t before = figures->n;

    for (size_t i = 0; i < all->n; i++) {
        bool seen = false;

        for (size_t k = 0; k < i; k++)
            seen = seen || same_plot_of_ranks(&all->all[k], &all->all[i]);
        if (!seen)
            draw_ranks(r, all, i, before, figures);
    }
    for (size_t i = 0; i < r->n_benches; i++)
        draw_buckets(r, &r->benches[i], before, figures);
}
