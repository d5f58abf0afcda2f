/* SPDX-License-Identifier: Apache-2.0 */
/* The values of a plot: see series.h. */
#include "harness/report/series.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "harness/report/facts.h"
#include "harness/report/show.h"

static void note_limit(struct figure_drawing *d, double limit, double x)
{
    size_t i = 0;

    if (isnan(limit))
        return;
    while (i < d->n_limits && fabs(d->limits[i] / limit - 1) >= 1e-3)
        i++;
    if (i > LIMITS_MAX)
        return;
    if (i == d->n_limits) {
        d->limits[d->n_limits++] = limit;
        d->limit_from[i] = d->limit_to[i] = x;
    }
    d->limit_from[i] = fmin(d->limit_from[i], x);
    d->limit_to[i] = fmax(d->limit_to[i], x);
}

void drawing_note(struct figure_drawing *d, double y)
{
    if (isnan(y))
        return;
    d->low = isnan(d->low) ? y : fmin(d->low, y);
    d->high = isnan(d->high) ? y : fmax(d->high, y);
}

/* An interval does not reach beyond what there is: no more cores are busy than the machine has, and
 * no share is above 100 %. */
static double possible(const struct figure_drawing *d, double high)
{
    double most = !strcmp(d->g->unit, "percent") ? 100 : INFINITY, cpus = 0;
    bool alone = true;

    for (size_t run = 0; run < d->g->r->n_runs; run++) {
        const json_t *meta = d->g->r->runs[run].meta;

        cpus = fmax(cpus, (double)fact_integer(meta, "machine.cpu.threads", 0));
        alone = alone && !json_array_size(fact_at(meta, "hosts.list"));
    }
    if (!strcmp(d->g->unit, "cores") && cpus > 0 && alone)
        most = cpus;
    return high > most ? most : high;
}

static struct plot_point point_at(const struct figure_drawing *d, double x,
                                  const struct report_point *p)
{
    return (struct plot_point){x, p->value, p->value >= 0 && p->low < 0 ? 0 : p->low,
                               possible(d, p->high)};
}

static void note_point(struct figure_drawing *d, const struct report_point *p, double x)
{
    if (isnan(p->value))
        return;
    drawing_note(d, p->value);
    d->top = fmax(d->top, fmax(p->value, possible(d, p->high)));
    if (!p->reference)
        note_limit(d, p->limit, x);
    if (strcmp(p->origin, "measured") != 0)
        d->f->plot.watermark = *p->origin ? p->origin : "origin unknown";
}

static int by_x(const void *x, const void *y)
{
    const struct plot_point *a = x, *b = y;

    return (a->x > b->x) - (a->x < b->x);
}

struct plot_line *drawing_add_line(struct figure_drawing *d, const struct figure_line *named,
                                   const char *label, size_t colour, size_t n)
{
    struct plot *plot = &d->f->plot;

    if (plot->n_lines == d->room)
        return NULL;
    struct plot_line *line = &d->lines[plot->n_lines];
    d->points[plot->n_lines] = pool_alloc(d->pool, n, sizeof(**d->points));
    d->f->lines[plot->n_lines] = *named;
    *line = (struct plot_line){
        .label = label, .points = d->points[plot->n_lines], .colour = colour, .marker = colour};
    plot->n_lines++;
    return line;
}

/* A value between two modes is none: both are shown. */
static bool shows_levels(const struct report_point *p)
{
    return p->n_values && p->two != TWO_NOT;
}

/* The points of one run for the cases of a class; returns how many are shown as one value. levels:
 * those that are shown as two. */
static size_t fill_points(struct figure_drawing *d, size_t class, size_t run,
                          struct plot_point *points, size_t *n, size_t *levels)
{
    const struct group *g = d->g;
    size_t values = 0;

    *n = *levels = 0;
    for (size_t i = 0; i < g->n; i++) {
        const struct report_point *p = &drawing_case(g, i)->points[run];

        if (g->line_of.of_case[i] != class || !p->n_rows)
            continue;
        double x = g->x->numbers[g->x->of_case[i]];
        note_point(d, p, x);
        values += p->n_values > 0 && !shows_levels(p);
        *levels += shows_levels(p);
        points[(*n)++] =
            shows_levels(p) ? (struct plot_point){x, NAN, NAN, NAN} : point_at(d, x, p);
    }
    qsort(points, *n, sizeof(*points), by_x);
    return values;
}

bool drawing_is_of_shape(const struct group *g, size_t param)
{
    return g->listed && g->hint && g->hint->square &&
           word_in(g->hint->square, g->bench->params[param]);
}

static const char *shape_of(const struct figure_drawing *d, size_t i)
{
    const char *shape = "";

    for (size_t k = 0; k < d->g->bench->n_params; k++)
        if (drawing_is_of_shape(d->g, k))
            shape = pool_text(d->pool, "%s%s%s", shape, *shape ? "x" : "",
                              drawing_case(d->g, i)->params[k]);
    return shape;
}

static bool is_end(const struct group *g, size_t param)
{
    return !strcmp(g->bench->params[param], "source") ||
           !strcmp(g->bench->params[param], "destination");
}

/* The title says it: it is the same in the whole plot. */
static bool is_in_title(const struct group *g, size_t param)
{
    for (size_t k = 0; k < g->n_facets; k++)
        if (g->facets[k]->param == param)
            return true;
    return g->dims[param].n_values == 1;
}

/* "cuda:0 to node0": the one end often follows from the other, and is no dimension of its own. */
static const char *ends_text(const struct figure_drawing *d, const struct report_case *c,
                             size_t param)
{
    const struct report_bench *b = d->g->bench;
    bool both = true;

    for (size_t k = 0; k < b->n_params; k++)
        both = both && !(is_end(d->g, k) && is_in_title(d->g, k));
    return both ? pool_text(d->pool, "%s to %s", report_param(b, c, "source"),
                            report_param(b, c, "destination"))
                : show_named_param(d->pool, b, param, c->params[param]);
}

static const char *label_of(const struct figure_drawing *d, size_t i,
                            const struct dimension *const *dims, size_t n)
{
    const struct group *g = d->g;
    const struct report_case *c = drawing_case(g, i);
    const char *label = "", *ends = "";

    for (size_t k = 0; k < n; k++) {
        size_t param = dims[k]->param;
        const char *text = is_end(g, param)
                               ? ends_text(d, c, param)
                               : show_named_param(d->pool, g->bench, param, c->params[param]);

        if (is_end(g, param) && !strcmp(ends, text)) /* of both ends, said before */
            continue;
        ends = is_end(g, param) ? text : ends;
        if (g->hint && g->hint->square && !strcmp(g->bench->params[param], g->hint->x))
            text = show_param(d->pool, g->bench, param, c->params[param]); /* of all its sides */
        if (!drawing_is_of_shape(g, param))
            label = show_joined(d->pool, label, text);
    }
    return label;
}

/* What stands behind the name of a line in which a value was not measured. */
static const char *line_origin(const struct figure_drawing *d, size_t class, size_t run)
{
    const char *origin = "";

    for (size_t i = 0; i < d->g->n && !*origin; i++) {
        const struct report_point *p = &drawing_case(d->g, i)->points[run];

        if (d->g->line_of.of_case[i] == class && p->n_values)
            origin = show_origin(d->pool, p->origin);
    }
    return origin;
}

static const char *line_label(const struct figure_drawing *d, const struct figure_line *line)
{
    const char *name = *line->series ? line->series : d->g->metric;

    if (d->g->r->n_runs > 1)
        name = show_joined(d->pool, line->series, d->g->r->names[line->run]);
    return pool_text(d->pool, "%s%s", name, line->origin);
}

/* Both levels of the points of a class that have two, as markers without a line. */
static void add_levels(struct figure_drawing *d, const struct figure_line *of, const char *label,
                       size_t class, size_t colour)
{
    const struct group *g = d->g;
    struct figure_line named = *of;

    named.series = pool_text(d->pool, "%s: both of two modes", label);
    struct plot_line *line = drawing_add_line(d, &named, named.series, colour, 2 * g->n);
    for (size_t i = 0; line && i < g->n; i++) {
        const struct report_point *p = &drawing_case(g, i)->points[of->run];

        for (int high = 0; g->line_of.of_case[i] == class && shows_levels(p) && high < 2; high++) {
            double y = high ? p->levels.high : p->levels.low;

            d->points[d->f->plot.n_lines - 1][line->n++] =
                (struct plot_point){g->x->numbers[g->x->of_case[i]], y, NAN, NAN};
            drawing_note(d, y);
        }
    }
    if (line)
        line->apart = line->dashed = true;
}

static void add_line(struct figure_drawing *d, size_t i, size_t index)
{
    const struct group *g = d->g;
    size_t class = g->line_of.of_case[i];

    for (size_t run = 0; run < g->r->n_runs; run++) {
        struct plot_point *points = pool_alloc(d->pool, g->n, sizeof(*points));
        const char *series = label_of(d, i, g->lines, g->n_lines);
        size_t n, levels;

        size_t values = fill_points(d, class, run, points, &n, &levels);
        struct figure_line named = {series, line_origin(d, class, run), run};
        const char *label = line_label(d, &named);

        d->empty_lines += n && !values && !levels;
        if (values) {
            struct plot_line *line = drawing_add_line(d, &named, label, index, n);

            memcpy(d->points[d->f->plot.n_lines - 1], points, n * sizeof(*points));
            line->n = n;
            line->marker = index + (run > 1 ? run : 0);
            line->dashed = run > 0;
        }
        if (levels)
            add_levels(d, &named, label, class, index);
    }
}

/* Room for so many lines, each with its levels, its model and its ideal where there may be such. */
static void make_room(struct figure_drawing *d, size_t lines)
{
    d->room = lines * d->g->r->n_runs * (d->g->overlays ? 4 : 2);
    d->lines = pool_alloc(d->pool, d->room, sizeof(*d->lines));
    d->points = pool_alloc(d->pool, d->room, sizeof(*d->points));
    d->f->lines = pool_alloc(d->pool, d->room, sizeof(*d->f->lines));
}

static void add_all_lines(struct figure_drawing *d)
{
    const struct group *g = d->g;
    bool *seen = pool_alloc(d->pool, g->line_of.n, sizeof(*seen));
    size_t index = 0;

    make_room(d, group_lines_max(g));
    d->colours = pool_alloc(d->pool, g->line_of.n, sizeof(*d->colours));
    for (size_t i = 0; i < g->n; i++) {
        size_t class = g->line_of.of_case[i];

        if (g->facet_of.of_case[i] != d->facet || seen[class])
            continue;
        seen[class] = true;
        d->colours[class] = index < group_lines_max(g) ? index : SIZE_MAX;
        if (d->colours[class] != SIZE_MAX)
            add_line(d, i, index++);
        else
            d->lines_left_out++;
    }
}

void drawing_add_lines(struct figure_drawing *d)
{
    const struct group *g = d->g;
    struct plot *plot = &d->f->plot;
    bool *used = pool_alloc(d->pool, g->x->n_values, sizeof(*used));

    add_all_lines(d);
    d->ticks = pool_alloc(d->pool, g->x->n_values, sizeof(*d->ticks));
    for (size_t i = 0; i < g->n; i++)
        if (g->facet_of.of_case[i] == d->facet)
            used[g->x->of_case[i]] = true;
    for (size_t i = 0; i < g->x->n_values; i++)
        if (used[i])
            d->ticks[plot->n_ticks++] = (struct plot_tick){
                g->x->numbers[i], show_param(d->pool, g->bench, g->x->param, g->x->values[i])};
    plot->ticks = d->ticks;
}

/* By the first parameter that makes lines, then by the next: all of one type together. */
static bool comes_before(const struct group *g, size_t a, size_t b)
{
    for (size_t k = 0; k < g->n_lines; k++) {
        size_t x = g->lines[k]->of_case[a], y = g->lines[k]->of_case[b];

        if (x != y)
            return x < y;
    }
    return a < b;
}

static size_t *ordered_cases(const struct figure_drawing *d, size_t *n)
{
    size_t *order = pool_alloc(d->pool, d->g->n, sizeof(*order));

    *n = 0;
    for (size_t i = 0; i < d->g->n; i++) {
        size_t at = *n;

        if (d->g->facet_of.of_case[i] != d->facet)
            continue;
        for (; at && comes_before(d->g, i, order[at - 1]); at--)
            order[at] = order[at - 1];
        order[at] = i;
        ++*n;
    }
    return order;
}

/* What stands beside a bar: the value, both of two modes, or why there is none. */
static struct plot_row row_of(const struct figure_drawing *d, const struct report_point *p)
{
    struct show_scale scale = show_scale(d->pool, d->high, d->g->unit);
    struct plot_row row = {.limit = p->reference || isnan(p->limit) ? 0 : scale.factor * p->limit};

    if (shows_levels(p))
        row.note = pool_text(d->pool, "%s or %s", show_short(d->pool, scale.factor * p->levels.low),
                             show_short(d->pool, scale.factor * p->levels.high));
    else if (p->n_values)
        row.note = show_short(d->pool, scale.factor * p->value);
    else
        row.note = p->status;
    if (!p->n_values && strcmp(p->status, "skipped") != 0)
        row.tone = TONE_BAD;
    return row;
}

/* The cases of the facet in one run, each at a place of its own; returns how many. */
static size_t fill_places(struct figure_drawing *d, size_t run, struct plot_point *points,
                          size_t room, const char **origin)
{
    const struct group *g = d->g;
    size_t at = 0, n, *order = ordered_cases(d, &n);

    *origin = "";
    for (; at < n && at < room; at++) {
        size_t i = order[at];
        const struct report_point *p = &drawing_case(g, i)->points[run];

        note_point(d, p, (double)at);
        if (p->n_values && !**origin)
            *origin = show_origin(d->pool, p->origin);
        d->ticks[at] = (struct plot_tick){
            (double)at, show_joined(d->pool, shape_of(d, i), label_of(d, i, g->lines, g->n_lines))};
        points[at] = point_at(d, (double)at, p);
    }
    for (size_t k = 0; k < at; k++)
        d->rows[k] = row_of(d, &drawing_case(g, order[k])->points[run]);
    return at;
}

static void add_run_of_places(struct figure_drawing *d, size_t run)
{
    struct plot_point *points = pool_alloc(d->pool, SERIES_CATEGORIES_MAX, sizeof(*points));
    struct figure_line named = {"", "", run};
    size_t n = fill_places(d, run, points, SERIES_CATEGORIES_MAX, &named.origin);
    struct plot_line *line = drawing_add_line(d, &named, line_label(d, &named), run, n);

    memcpy(d->points[run], points, n * sizeof(*points));
    line->n = d->f->plot.n_ticks = n;
    line->dashed = run > 0;
}

void drawing_add_categories(struct figure_drawing *d)
{
    const struct group *g = d->g;
    struct plot *plot = &d->f->plot;

    plot->categories = true;
    d->ticks = pool_alloc(d->pool, SERIES_CATEGORIES_MAX, sizeof(*d->ticks));
    d->rows = pool_alloc(d->pool, SERIES_CATEGORIES_MAX, sizeof(*d->rows));
    make_room(d, 1);
    for (size_t run = 0; run < g->r->n_runs; run++)
        add_run_of_places(d, run);
    for (size_t i = 0; i < g->n; i++)
        d->lines_left_out += g->facet_of.of_case[i] == d->facet;
    d->lines_left_out -= plot->n_ticks;
    plot->ticks = d->ticks;
    if (g->r->n_runs == 1)
        plot->rows = d->rows;
}
