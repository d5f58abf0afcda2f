/* SPDX-License-Identifier: Apache-2.0 */
/* Plots over ranks and over buckets: see scaling.h. */
#include "harness/report/scaling.h"

#include <math.h>
#include <string.h>

#include "core/units.h"
#include "harness/report/described.h"
#include "harness/report/headline.h"
#include "harness/report/series.h"
#include "harness/report/show.h"

#define SERIES_DRAWN 6 /* in one plot, each with its levels, its model and its ideal */
#define LINES_ROOM   (4 * SERIES_DRAWN)

/* One plot while it is made: series that differ in backend, transport and run alone. */
struct drawing {
    struct report *r;
    struct figures *out;
    size_t before; /* figures of other sections */
    const struct scaling_series *series[SERIES_DRAWN];
    size_t n_series, left_out;
    double size; /* bytes of `size` */
    const char *size_text;
    bool bus; /* bus bandwidth, else time */
    bool ms;  /* which is in ms then, not us */
    struct plot_line lines[LINES_ROOM];
    struct plot_point *points[LINES_ROOM]; /* theirs */
    struct figure_line named[LINES_ROOM];
    size_t n;
    double low, high;
    const char *watermark;
};

/* ---- The lines of a plot over ranks ---- */

#define MS_FROM_US 1e5
#define LIMIT_ROOM 2.5 /* an ideal so far above what was measured would flatten the plot */

static void note(struct drawing *d, double y)
{
    if (isnan(y))
        return;
    d->low = isnan(d->low) ? y : fmin(d->low, y);
    d->high = isnan(d->high) ? y : fmax(d->high, y);
}

static struct plot_line *add_line(struct drawing *d, const char *label, size_t colour, size_t room,
                                  struct plot_point **points)
{
    struct plot_line *line = &d->lines[d->n];

    *points = pool_alloc(&d->r->pool, room, sizeof(**points));
    if (d->n == LINES_ROOM)
        return NULL;
    *line =
        (struct plot_line){.label = label, .points = *points, .colour = colour, .marker = colour};
    d->points[d->n] = *points;
    d->named[d->n++] = (struct figure_line){.series = label, .origin = "", .run = 0};
    return line;
}

static const struct scaling_cell *cells_of(const struct drawing *d, const struct scaling_series *s)
{
    for (size_t i = 0; i < s->n_sizes; i++)
        if (s->sizes[i] == d->size)
            return &s->cells[i * s->n_ranks];
    return NULL;
}

/* In the plot's unit: GB/s as the row has it, us of any time. */
static double unit_of(const struct drawing *d, const struct report_case *c, size_t run)
{
    double value = c->points[run].value;

    return d->bus || !(value > 0) ? 1 : scaling_time_us(c, run) / value;
}

/* Points with one level in a line; those with two at both levels, without a line. */
static void add_measured(struct drawing *d, const struct scaling_series *s, size_t colour)
{
    const struct scaling_cell *cells = cells_of(d, s);
    struct plot_point *one, *two;
    struct plot_line *line = add_line(d, s->label, colour, s->n_ranks, &one), *levels;

    if (!cells || !line)
        return;
    levels = add_line(d, pool_text(&d->r->pool, "%s: both of two levels", s->label), colour,
                      2 * s->n_ranks, &two);
    for (size_t i = 0; levels && i < s->n_ranks; i++) {
        const struct report_case *c = d->bus ? cells[i].bus : cells[i].time;
        const struct report_point *p = c ? &c->points[s->run] : NULL;

        if (!p || !p->n_values)
            continue;
        double unit = unit_of(d, c, s->run);
        if (strcmp(p->origin, "measured") != 0)
            d->watermark = *p->origin ? p->origin : "origin unknown";
        if (p->two == TWO_NOT) {
            one[line->n++] =
                (struct plot_point){s->ranks[i], p->value * unit, p->low * unit, p->high * unit};
            note(d, p->value * unit);
            continue;
        }
        one[line->n++] = (struct plot_point){s->ranks[i], NAN, NAN, NAN}; /* a gap */
        for (int high = 0; high < 2; high++) {
            double y = (high ? p->levels.high : p->levels.low) * unit;
            two[levels->n++] = (struct plot_point){s->ranks[i], y, NAN, NAN};
            note(d, y);
        }
    }
    if (levels && !levels->n)
        d->n--;
    else if (levels)
        levels->apart = levels->dashed = true;
}

/* The fitted model between the points: us, or the bus bandwidth that comes of it. */
static void add_model(struct drawing *d, const struct scaling_series *s, size_t colour)
{
    const struct scaling_cell *cells = cells_of(d, s);
    struct plot_point *points;
    struct plot_line *line;
    struct fit_terms terms;

    if (!cells || s->fit_error || !fit_describes(&s->fit))
        return;
    line = add_line(d, pool_text(&d->r->pool, "%s, fitted model", s->label), colour, s->n_ranks,
                    &points);
    for (size_t i = 0; line && i < s->n_ranks; i++) {
        double bytes, us;

        if (!cells[i].time)
            continue;
        bytes = scaling_bytes(s->bench, cells[i].time);
        us = fit_predict(&s->fit, s->ranks[i], bytes).time_us;
        if (!fit_terms(s->terms, s->ranks[i], &terms))
            continue;
        double y = d->bus ? terms.bus * bytes / us / 1000 : us;
        points[line->n++] = (struct plot_point){s->ranks[i], y, NAN, NAN};
        note(d, y);
    }
    if (line)
        line->plain = line->dashed = true;
}

/* NaN: no limit is known there, or none that fits into the plot. */
static double ideal_at(const struct drawing *d, const struct scaling_series *s,
                       const struct scaling_cell *cell, double ranks, double top)
{
    double limit;

    if (!cell->bus)
        return NAN;
    limit = cell->bus->points[s->run].limit;
    if (!d->bus)
        return scaling_ideal_us(s, cell, ranks);
    return limit > LIMIT_ROOM * top ? NAN : limit;
}

/* The limit that the rows of a series name, at each number of ranks; the same one of several series
 * once. */
static void add_ideal(struct drawing *d, const struct scaling_series *s, double top)
{
    const struct scaling_cell *cells = cells_of(d, s);
    const char *label = "";
    size_t others = 0;
    struct plot_point *points;
    struct plot_line *line =
        cells ? add_line(d, label, PLOT_COLOURS - 1, s->n_ranks, &points) : NULL;

    for (size_t i = 0; line && i < s->n_ranks; i++) {
        double y = ideal_at(d, s, &cells[i], s->ranks[i], top);

        if (isnan(y))
            continue;
        if (!line->n)
            label = pool_text(&d->r->pool, "ideal at %s GB/s",
                              show_short(&d->r->pool, cells[i].bus->points[s->run].limit));
        points[line->n++] = (struct plot_point){s->ranks[i], y, NAN, NAN};
        note(d, y);
    }
    if (!line)
        return;
    line->plain = true;
    line->label = d->named[d->n - 1].series = label;
    for (size_t i = 0; i + 1 < d->n; i++) {
        const struct plot_line *other = &d->lines[i];

        if (!strcmp(other->label, label))
            line->n = 0;
        others += other->plain && other->n && other->colour >= SERIES_DRAWN;
    }
    line->colour -= others % (PLOT_COLOURS - SERIES_DRAWN); /* those that no series has */
    line->dashed = others >= PLOT_COLOURS - SERIES_DRAWN;
}

/* Long times in ms: their axis needs no exponents. */
static void take_ms(struct drawing *d)
{
    d->ms = !d->bus && d->high >= MS_FROM_US;
    for (size_t i = 0; d->ms && i < d->n; i++)
        for (size_t k = 0; k < d->lines[i].n; k++) {
            struct plot_point *p = &d->points[i][k];

            *p = (struct plot_point){p->x, p->y / 1000, p->low / 1000, p->high / 1000};
        }
    d->low /= d->ms ? 1000 : 1;
    d->high /= d->ms ? 1000 : 1;
}

static bool has_value(const struct plot_line *line)
{
    for (size_t i = 0; i < line->n; i++)
        if (!isnan(line->points[i].y))
            return true;
    return false;
}

/* Lines of which nothing is left. */
static void drop_empty(struct drawing *d)
{
    size_t n = 0;

    for (size_t i = 0; i < d->n; i++) {
        if (!has_value(&d->lines[i]))
            continue;
        d->lines[n] = d->lines[i];
        d->points[n] = d->points[i];
        d->named[n++] = d->named[i];
    }
    d->n = n;
}

/* All lines of the plot; none where nothing of it was measured. */
static void scaling_lines(struct drawing *d)
{
    double top;

    d->n = 0;
    d->low = d->high = NAN;
    d->watermark = NULL;
    for (size_t i = 0; i < d->n_series; i++)
        add_measured(d, d->series[i], i);
    if (isnan(d->high)) {
        d->n = 0;
        return;
    }
    for (size_t i = 0; i < d->n_series; i++)
        add_model(d, d->series[i], i);
    top = d->high;
    for (size_t i = 0; i < d->n_series; i++)
        add_ideal(d, d->series[i], top);
    drop_empty(d);
    take_ms(d);
}

/* ---- A model's gradients over the size of a bucket ---- */

#define LINES_MAX 8
#define TICKS_MAX 64

static bool same_plot_of_buckets(const struct bucket_series *a, const struct bucket_series *b)
{
    return a->bench == b->bench && !strcmp(a->model, b->model) && !strcmp(a->title, b->title);
}

/* In its place among the others, once. */
static void add_tick(struct plot *plot, struct plot_tick *ticks, double at, const char *label)
{
    size_t place = 0;

    while (place < plot->n_ticks && ticks[place].at < at)
        place++;
    if (plot->n_ticks == TICKS_MAX || (place < plot->n_ticks && ticks[place].at == at))
        return;
    memmove(&ticks[place + 1], &ticks[place], (plot->n_ticks++ - place) * sizeof(*ticks));
    ticks[place] = (struct plot_tick){at, label};
}

static void add_sweep(struct report *r, const struct bucket_series *s, struct figure *f,
                      struct plot_line *lines, struct plot_tick *ticks)
{
    struct plot *plot = &f->plot;
    struct plot_line *line = &lines[plot->n_lines];
    struct plot_point *points = pool_alloc(&r->pool, s->n, sizeof(*points));
    char size[24];

    *line = (struct plot_line){
        .label = s->label, .points = points, .colour = plot->n_lines, .marker = plot->n_lines};
    for (size_t i = 0; i < s->n; i++) {
        const struct bucket_point *p = &s->points[i];
        const char *origin = p->c->points[s->run].origin;

        if (!(p->bytes > 0)) /* each tensor by itself has no place on this axis */
            continue;
        points[line->n++] =
            (struct plot_point){p->bytes, p->time_us / 1000, p->low_us / 1000, p->high_us / 1000};
        units_format_size((uint64_t)p->bytes, size, sizeof(size));
        add_tick(plot, ticks, p->bytes, pool_text(&r->pool, "%s", size));
        if (strcmp(origin, "measured") != 0)
            plot->watermark = *origin ? origin : "origin unknown";
    }
    f->lines[plot->n_lines++] = (struct figure_line){s->label, "", s->run};
}

static void draw(struct report *r, const struct bucket_sweeps *all, size_t first, size_t before,
                 struct figures *out)
{
    const struct bucket_series *s = &all->all[first];
    struct plot_line *lines = pool_alloc(&r->pool, LINES_MAX, sizeof(*lines));
    struct plot_tick *ticks = pool_alloc(&r->pool, TICKS_MAX + 1, sizeof(*ticks));
    struct figure *f = &out->all[out->n];

    *f = (struct figure){.bench = s->bench, .place = FIGURE_OF_BUCKETS, .note = ""};
    f->lines = pool_alloc(&r->pool, LINES_MAX, sizeof(*f->lines));
    for (size_t i = first; i < all->n && f->plot.n_lines < LINES_MAX; i++)
        if (same_plot_of_buckets(s, &all->all[i]))
            add_sweep(r, &all->all[i], f, lines, ticks);
    if (f->plot.n_ticks < 2)
        return;
    f->plot.lines = lines;
    f->plot.ticks = ticks;
    f->plot.x_log = f->plot.y_from_zero = true;
    f->plot.x_label = "bucket (bytes)";
    f->plot.y_label = "time for all gradients (ms)";
    f->subtitle = show_joined(&r->pool, s->model, s->title);
    f->plot.name = pool_text(&r->pool, "buckets-%zu", out->n - before + 1);
    f->plot.title = pool_text(&r->pool, "%s of %s over buckets", s->bench->name, f->subtitle);
    out->n++;
}

#define SIZES_DRAWN 3
#define LOG_Y_FROM  30

static void finish_ranks(struct drawing *d)
{
    const struct scaling_series *first = d->series[0];
    struct figure *f = &d->out->all[d->out->n];
    const char *metric = d->bus ? "busbw" : "time";
    struct plot_line *lines = pool_alloc(&d->r->pool, d->n, sizeof(*lines));
    struct plot_tick *ticks = pool_alloc(&d->r->pool, TICKS_MAX + 1, sizeof(*ticks));

    *f = (struct figure){.bench = first->bench, .place = FIGURE_OF_RANKS, .note = ""};
    f->lines = pool_alloc(&d->r->pool, d->n, sizeof(*f->lines));
    memcpy(lines, d->lines, d->n * sizeof(*lines));
    memcpy(f->lines, d->named, d->n * sizeof(*f->lines));
    f->plot.lines = lines;
    f->plot.n_lines = d->n;
    f->plot.ticks = ticks;
    for (size_t i = 0; i < d->n_series; i++)
        for (const double *at = d->series[i]->ranks;
             at < d->series[i]->ranks + d->series[i]->n_ranks; at++)
            add_tick(&f->plot, ticks, *at, pool_text(&d->r->pool, "%.0f", *at));
    if (f->plot.n_ticks < 2 || isnan(d->high))
        return;
    f->plot.x_log = true;
    f->plot.y_log = d->low > 0 && d->high >= LOG_Y_FROM * d->low;
    f->plot.y_from_zero = !f->plot.y_log;
    f->plot.watermark = d->watermark;
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
static bool same_plot_of_ranks(const struct scaling_series *a, const struct scaling_series *b)
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

/* The smallest, the one in the middle and the largest of the sizes that all series have; of the
 * first series', where they have none together. Indices of that one's. */
static size_t choose_sizes(const struct drawing *d, size_t *chosen)
{
    const struct scaling_series *first = d->series[0];
    size_t n = 0, common = 0, *all = pool_alloc(&d->r->pool, first->n_sizes, sizeof(*all));

    for (size_t i = 0; i < first->n_sizes; i++) {
        size_t have = 0;

        for (size_t k = 0; k < d->n_series; k++)
            have += has_size(d->series[k], first->sizes[i]);
        if (have == d->n_series)
            all[common++] = i;
    }
    for (size_t i = 0; !common && i < first->n_sizes; i++)
        all[i] = i;
    common = common ? common : first->n_sizes;
    chosen[n++] = all[0];
    if (common > 2)
        chosen[n++] = all[common / 2];
    if (common > 1)
        chosen[n++] = all[common - 1];
    return n;
}

static void draw_group(struct report *r, const struct scalings *all, size_t first, size_t before,
                       struct figures *out)
{
    struct drawing d = {.r = r, .out = out, .before = before};
    size_t sizes[SIZES_DRAWN], n;

    for (size_t i = first; i < all->n; i++) {
        if (!same_plot_of_ranks(&all->all[first], &all->all[i]))
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
        if (out->n == FIGURES_MAX || out->n - before >= SCALING_PLOTS_MAX ||
            (d.bus && n > 1 && size == sizes[0]))
            continue;
        scaling_lines(&d);
        if (d.n)
            finish_ranks(&d);
    }
}

void scaling_figures(struct report *r, const struct headlines *h, struct figures *figures)
{
    const struct scalings *all = &h->scalings;
    const struct bucket_sweeps *buckets = &h->buckets;
    size_t before = figures->n;

    for (size_t i = 0; i < all->n; i++) {
        bool seen = false;

        for (size_t k = 0; k < i; k++)
            seen = seen || same_plot_of_ranks(&all->all[k], &all->all[i]);
        if (!seen)
            draw_group(r, all, i, before, figures);
    }
    for (size_t i = 0; i < buckets->n; i++) {
        bool seen = false;

        for (size_t k = 0; k < i; k++)
            seen = seen || same_plot_of_buckets(&buckets->all[k], &buckets->all[i]);
        if (!seen && figures->n < FIGURES_MAX && figures->n - before < SCALING_PLOTS_MAX)
            draw(r, buckets, i, before, figures);
    }
}
