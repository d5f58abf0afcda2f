/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a plot over ranks: see scaling_drawing.h. */
#include <math.h>
#include <string.h>

#include "harness/report/scaling_drawing.h"
#include "harness/report/show.h"

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
    if (d->n == LINES_ROOM || !*points)
        return NULL;
    *line =
        (struct plot_line){.label = label, .points = *points, .colour = colour, .marker = colour};
    d->points[d->n] = *points;
    d->named[d->n++] = (struct figure_line){.series = label, .origin = "", .run = 0};
    return line;
}

static size_t size_index(const struct drawing *d, const struct scaling_series *s)
{
    size_t i = 0;

    while (i < s->n_sizes && s->sizes[i] != d->size)
        i++;
    return i;
}

static const struct scaling_cell *cells_of(const struct drawing *d, const struct scaling_series *s)
{
    size_t i = size_index(d, s);

    return i < s->n_sizes ? &s->cells[i * s->n_ranks] : NULL;
}

static const struct report_case *case_of(const struct drawing *d, const struct scaling_cell *cell)
{
    return d->bus ? cell->bus : cell->time;
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
        const struct report_case *c = case_of(d, &cells[i]);
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
    struct fit_terms ring;

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
        if (!fit_terms(s->fit.op, "ring", s->ranks[i], &ring))
            continue;
        double y = d->bus ? ring.bytes * bytes / us / 1000 : us;
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

/* The limit that the rows of a series name, at each number of ranks; the same one of several series once. */
static void add_ideal(struct drawing *d, const struct scaling_series *s, double top)
{
    const struct scaling_cell *cells = cells_of(d, s);
    const char *label = "";
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
        if (!strcmp(d->lines[i].label, label))
            line->n = 0;
        else if (d->lines[i].plain) /* a second limit */
            line->colour = PLOT_COLOURS - 2;
    }
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

void scaling_lines(struct drawing *d)
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
