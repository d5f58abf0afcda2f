/* SPDX-License-Identifier: Apache-2.0 */
/* One plot of a group of cases: see group.h. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/units.h"
#include "harness/report/group.h"
#include "harness/report/show.h"

#define LOG_X_FROM 8  /* largest over smallest value from which an axis is logarithmic */
#define LOG_Y_FROM 30 /* higher: a linear axis from 0 says more, as long as it shows all */
#define LIMITS_MAX 3
#define CACHES_MAX 8
#define ROOM_FOR_LIMIT_LINEAR                                                                      \
    2.5 /* limits so far above the values are not drawn: they would flatten
                                     the plot */
#define ROOM_FOR_LIMIT_LOG 30

struct drawing {
    const struct group *g;
    struct pool *pool;
    size_t facet;
    struct figure *f;
    struct plot_line *lines;
    struct plot_tick *ticks;
    struct plot_mark *marks;
    double low, high; /* of the values; NaN: none yet */
    double limits[LIMITS_MAX + 1];
    size_t n_limits;
    size_t lines_left_out, empty_lines;
};

static const struct report_case *case_at(const struct group *g, size_t i)
{
    return &g->bench->cases[g->cases[i]];
}

static void note_limit(struct drawing *d, double limit)
{
    if (isnan(limit))
        return;
    for (size_t i = 0; i < d->n_limits; i++)
        if (fabs(d->limits[i] / limit - 1) < 1e-3)
            return;
    if (d->n_limits <= LIMITS_MAX)
        d->limits[d->n_limits++] = limit;
}

static void note_point(struct drawing *d, const struct report_point *p)
{
    if (isnan(p->value))
        return;
    d->low = isnan(d->low) ? p->value : fmin(d->low, p->value);
    d->high = isnan(d->high) ? p->value : fmax(d->high, p->value);
    note_limit(d, p->limit);
    if (strcmp(p->origin, "measured") != 0)
        d->f->plot.watermark = *p->origin ? p->origin : "origin unknown";
}

static int by_x(const void *x, const void *y)
{
    const struct plot_point *a = x, *b = y;

    return (a->x > b->x) - (a->x < b->x);
}

/* The points of one run for the cases of a class; returns how many have a value. */
static size_t fill_points(struct drawing *d, size_t class, size_t run, struct plot_point *points,
                          size_t *n)
{
    const struct group *g = d->g;
    size_t values = 0;

    *n = 0;
    for (size_t i = 0; i < g->n; i++) {
        const struct report_point *p = &case_at(g, i)->points[run];

        if (g->line_of.of_case[i] != class || !p->n_rows)
            continue;
        note_point(d, p);
        values += p->n_values > 0;
        points[(*n)++] = (struct plot_point){
            .x = g->x->numbers[g->x->of_case[i]], .y = p->value, .low = p->low, .high = p->high};
    }
    qsort(points, *n, sizeof(*points), by_x);
    return values;
}

/* The parameters that a listed shape is made of are shown together: 512x2304x768. */
static bool is_of_shape(const struct group *g, size_t param)
{
    return g->listed && g->hint && g->hint->square &&
           word_in(g->hint->square, g->bench->params[param]);
}

static const char *shape_of(const struct drawing *d, size_t i)
{
    const char *shape = "";

    for (size_t k = 0; k < d->g->bench->n_params; k++)
        if (is_of_shape(d->g, k))
            shape =
                pool_text(d->pool, "%s%s%s", shape, *shape ? "x" : "", case_at(d->g, i)->params[k]);
    return shape;
}

static const char *label_of(const struct drawing *d, size_t i, const struct dimension *const *dims,
                            size_t n)
{
    const struct group *g = d->g;
    const char *label = "";

    for (size_t k = 0; k < n; k++)
        if (!is_of_shape(g, dims[k]->param))
            label = show_joined(d->pool, label,
                                show_named_param(d->pool, g->bench, dims[k]->param,
                                                 case_at(g, i)->params[dims[k]->param]));
    return label;
}

static const char *line_label(const struct drawing *d, const char *series, size_t run)
{
    if (d->g->r->n_runs > 1)
        return show_joined(d->pool, series, d->g->r->names[run]);
    return *series ? series : d->g->metric;
}

static int add_line(struct drawing *d, size_t i, size_t index)
{
    const struct group *g = d->g;

    for (size_t run = 0; run < g->r->n_runs; run++) {
        struct plot_point *points = pool_alloc(d->pool, g->n, sizeof(*points));
        struct plot_line *line = &d->lines[d->f->plot.n_lines];
        const char *series = label_of(d, i, g->lines, g->n_lines);
        size_t n;

        if (!points)
            return -ENOMEM;
        if (!fill_points(d, g->line_of.of_case[i], run, points, &n)) {
            d->empty_lines += n > 0;
            continue;
        }
        *line = (struct plot_line){.label = line_label(d, series, run),
                                   .points = points,
                                   .n = n,
                                   .colour = index,
                                   .marker = index + (run > 1 ? run : 0),
                                   .dashed = run > 0};
        d->f->lines[d->f->plot.n_lines++] = (struct figure_line){series, run};
    }
    return 0;
}

/* The lines of the facet, in the order of the suite. */
static int add_lines(struct drawing *d)
{
    const struct group *g = d->g;
    bool *seen = calloc(g->line_of.n + 1, sizeof(*seen));
    size_t index = 0;
    int err = seen ? 0 : -ENOMEM;

    d->lines = pool_alloc(d->pool, group_lines_max(g) * g->r->n_runs, sizeof(*d->lines));
    d->f->lines = pool_alloc(d->pool, group_lines_max(g) * g->r->n_runs, sizeof(*d->f->lines));
    if (!d->lines || !d->f->lines)
        err = -ENOMEM;
    for (size_t i = 0; !err && i < g->n; i++) {
        size_t class = g->line_of.of_case[i];

        if (g->facet_of.of_case[i] != d->facet || seen[class])
            continue;
        seen[class] = true;
        if (index < group_lines_max(g))
            err = add_line(d, i, index++);
        else
            d->lines_left_out++;
    }
    free(seen);
    return err;
}

static int add_x_ticks(struct drawing *d)
{
    const struct group *g = d->g;
    struct plot *plot = &d->f->plot;
    bool *used = calloc(g->x->n_values + 1, sizeof(*used));

    d->ticks = pool_alloc(d->pool, g->x->n_values, sizeof(*d->ticks));
    if (!used || !d->ticks) {
        free(used);
        return -ENOMEM;
    }
    for (size_t i = 0; i < g->n; i++)
        if (g->facet_of.of_case[i] == d->facet)
            used[g->x->of_case[i]] = true;
    for (size_t i = 0; i < g->x->n_values; i++)
        if (used[i])
            d->ticks[plot->n_ticks++] = (struct plot_tick){
                g->x->numbers[i], show_param(d->pool, g->bench, g->x->param, g->x->values[i])};
    plot->ticks = d->ticks;
    free(used);
    return 0;
}

/* Every case is a place on the y axis, every run a line of points. */
static int add_categories(struct drawing *d)
{
    const struct group *g = d->g;
    struct plot *plot = &d->f->plot;
    size_t room = SERIES_CATEGORIES_MAX;

    plot->categories = true;
    d->ticks = pool_alloc(d->pool, room, sizeof(*d->ticks));
    d->lines = pool_alloc(d->pool, g->r->n_runs, sizeof(*d->lines));
    d->f->lines = pool_alloc(d->pool, g->r->n_runs, sizeof(*d->f->lines));
    if (!d->ticks || !d->lines || !d->f->lines)
        return -ENOMEM;
    for (size_t run = 0; run < g->r->n_runs; run++) {
        struct plot_point *points = pool_alloc(d->pool, room, sizeof(*points));
        size_t at = 0;

        if (!points)
            return -ENOMEM;
        for (size_t i = 0; i < g->n && at < room; i++) {
            const struct report_point *p = &case_at(g, i)->points[run];

            if (g->facet_of.of_case[i] != d->facet)
                continue;
            note_point(d, p);
            d->ticks[at] =
                (struct plot_tick){(double)at, show_joined(d->pool, shape_of(d, i),
                                                           label_of(d, i, g->lines, g->n_lines))};
            points[at] = (struct plot_point){(double)at, p->value, p->low, p->high};
            at++;
        }
        plot->n_ticks = at;
        d->f->lines[run] = (struct figure_line){"", run};
        d->lines[run] = (struct plot_line){
            g->r->n_runs > 1 ? g->r->names[run] : g->metric, points, at, run, run, run > 0};
    }
    for (size_t i = 0; i < g->n; i++)
        d->lines_left_out += g->facet_of.of_case[i] == d->facet;
    d->lines_left_out -= plot->n_ticks;
    plot->n_lines = g->r->n_runs;
    plot->ticks = d->ticks;
    return 0;
}

static void choose_scales(struct drawing *d)
{
    struct plot *plot = &d->f->plot;

    if (!plot->categories && plot->n_ticks > 1)
        plot->x_log = plot->ticks[0].at > 0 &&
                      plot->ticks[plot->n_ticks - 1].at >= LOG_X_FROM * plot->ticks[0].at;
    plot->y_log = d->low > 0 && d->high >= LOG_Y_FROM * d->low;
    plot->y_from_zero = !plot->y_log && d->low >= 0;
}

static void add_mark(struct drawing *d, double at, bool horizontal, const char *label,
                     const char *brief)
{
    d->marks[d->f->plot.n_marks++] = (struct plot_mark){at, horizontal, label, brief};
}

static void add_limits(struct drawing *d)
{
    struct plot *plot = &d->f->plot;
    double room = d->high * (plot->y_log ? ROOM_FOR_LIMIT_LOG : ROOM_FOR_LIMIT_LINEAR);

    if (plot->categories || d->n_limits > LIMITS_MAX)
        return;
    for (size_t i = 0; i < d->n_limits; i++) {
        const char *label = pool_text(d->pool, "limit %.4g", d->limits[i]);

        if (d->limits[i] <= 0 || d->limits[i] > room)
            continue;
        add_mark(d, d->limits[i], true, label, label);
        plot->y_top = fmax(plot->y_top, 1.08 * d->limits[i]);
    }
    if (plot->y_top > 0)
        plot->y_top = fmax(plot->y_top, 1.05 * d->high);
}

/* The number of threads of all cases in the plot; 1 where they differ or do not say. */
static long long common_threads(const struct drawing *d)
{
    const char *common = NULL;
    uint64_t threads = 1;

    for (size_t i = 0; i < d->g->n; i++) {
        const char *text = report_param(d->g->bench, case_at(d->g, i), "threads");

        if (d->g->facet_of.of_case[i] != d->facet)
            continue;
        if (common && strcmp(common, text) != 0)
            return 1;
        common = text;
    }
    return common && !units_parse_u64(common, &threads) && threads ? (long long)threads : 1;
}

static long long integer_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

/* The caches of the first run's machine: as many of each as the threads, spread over the cores, have
 * for themselves. */
static void add_caches(struct drawing *d)
{
    const struct plot *plot = &d->f->plot;
    const json_t *machine = json_object_get(d->g->r->runs[0].meta, "machine");
    const json_t *caches = json_object_get(machine, "caches");
    long long threads = common_threads(d);
    json_t *cache;
    size_t i;

    json_array_foreach (caches, i, cache) {
        long long level = integer_of(cache, "level"), size = integer_of(cache, "size_bytes");
        long long n = integer_of(cache, "count");
        const char *text;
        char size_text[24];
        double at;

        n = n < threads ? n : threads;
        at = (double)size * (double)(n < 1 ? 1 : n);
        if (size <= 0 || plot->n_marks == LIMITS_MAX + CACHES_MAX || at < plot->ticks[0].at ||
            at > plot->ticks[plot->n_ticks - 1].at)
            continue;
        units_format_size((uint64_t)size, size_text, sizeof(size_text));
        text = n > 1 ? pool_text(d->pool, "L%lld %lldx%s", level, n, size_text)
                     : pool_text(d->pool, "L%lld %s", level, size_text);
        add_mark(d, at, false, text, pool_text(d->pool, "L%lld", level));
    }
}

static int add_marks(struct drawing *d)
{
    d->marks = pool_alloc(d->pool, LIMITS_MAX + CACHES_MAX, sizeof(*d->marks));
    if (!d->marks)
        return -ENOMEM;
    d->f->plot.marks = d->marks;
    add_limits(d);
    if (d->g->hint && d->g->hint->cache_marks && d->g->x && d->f->plot.n_ticks)
        add_caches(d);
    return 0;
}

static const char *with_unit(struct pool *pool, const char *name, const char *unit)
{
    return *unit ? pool_text(pool, "%s (%s)", name, unit) : name;
}

/* "m = n = k" where the x axis stands for them all. */
static const char *x_name(const struct drawing *d)
{
    const struct plot_hint *hint = d->g->hint;
    const char *name = "";

    if (!hint || !hint->square)
        return d->g->bench->params[d->g->x->param];
    for (const char *word = hint->square; *word;) {
        size_t n = strcspn(word, " ");

        name = pool_text(d->pool, "%s%s%.*s", name, *name ? " = " : "", (int)n, word);
        word += n + (word[n] == ' ');
    }
    return name;
}

static void name_axes(struct drawing *d)
{
    const struct group *g = d->g;
    struct plot *plot = &d->f->plot;
    const char *value = with_unit(d->pool, g->metric, g->unit);
    const char *x;
    bool bytes;

    plot->x_label = value;
    plot->y_label = "";
    if (!g->x)
        return;
    x = g->bench->params[g->x->param];
    bytes = g->hint ? g->hint->bytes && !strcmp(x, g->hint->x) : strstr(x, "bytes") != NULL;
    plot->x_label = with_unit(d->pool, x_name(d), bytes ? "bytes" : "");
    plot->y_label = value;
}

/* What all cases of the plot share. */
static const char *make_subtitle(const struct drawing *d, size_t first)
{
    const struct group *g = d->g;
    const char *text = "";

    for (size_t k = 0; k < g->n_facets; k++)
        text = show_joined(d->pool, text,
                           show_full_param(d->pool, g->bench, g->facets[k]->param,
                                           case_at(g, first)->params[g->facets[k]->param]));
    for (size_t i = 0; i < g->bench->n_params; i++)
        if (g->dims[i].n_values == 1 && !is_of_shape(g, i) &&
            !(g->hint && word_in(g->hint->ignore, g->bench->params[i])))
            text = show_joined(d->pool, text,
                               show_full_param(d->pool, g->bench, i, g->dims[i].values[0]));
    return text;
}

static const char *make_note(const struct drawing *d)
{
    const char *note = "";

    if (d->lines_left_out)
        note = pool_text(d->pool, "%zu more %s left out: they are in the table of rows",
                         d->lines_left_out, d->g->x ? "lines are" : "cases are");
    if (d->empty_lines)
        note = pool_text(d->pool, "%s%s%zu lines have no value: see the rows that are not ok", note,
                         *note ? "; " : "", d->empty_lines);
    if (d->n_limits > LIMITS_MAX && !d->f->plot.categories)
        note = pool_text(d->pool, "%s%sthe limits differ from point to point: see the rows", note,
                         *note ? "; " : "");
    return note;
}

/* Letters, digits and '-' of a name that comes from a file. */
static const char *file_name(struct pool *pool, const struct group *g, size_t number)
{
    const char *text = pool_text(pool, "%s-%s", g->bench->name, g->metric);
    char *name = pool_alloc(pool, strlen(text) + 1, 1);

    if (!name)
        return "plot";
    for (size_t i = 0; text[i]; i++) {
        bool plain = strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-",
                            text[i]) != NULL;

        name[i] = plain ? text[i] : '-';
    }
    return number ? pool_text(pool, "%s-%zu", name, number) : name;
}

int figure_make(const struct group *g, size_t facet, size_t number, struct figure *f, bool *empty)
{
    struct drawing d = {
        .g = g, .pool = &g->r->pool, .facet = facet, .f = f, .low = NAN, .high = NAN};
    size_t first = 0;
    int err;

    *f = (struct figure){.bench = g->bench};
    while (g->facet_of.of_case[first] != facet)
        first++;
    err = g->x ? add_lines(&d) : add_categories(&d);
    if (!err && g->x)
        err = add_x_ticks(&d);
    *empty = isnan(d.high);
    if (err || *empty)
        return err;
    f->plot.lines = d.lines;
    choose_scales(&d);
    name_axes(&d);
    err = add_marks(&d);
    f->subtitle = make_subtitle(&d, first);
    f->note = make_note(&d);
    f->plot.name = file_name(d.pool, g, number);
    f->plot.title = *f->subtitle
                        ? pool_text(d.pool, "%s %s: %s", g->bench->name, g->metric, f->subtitle)
                        : pool_text(d.pool, "%s %s", g->bench->name, g->metric);
    return err;
}
