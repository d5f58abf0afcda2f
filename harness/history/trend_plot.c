/* SPDX-License-Identifier: Apache-2.0 */
/* See trend_plot.h. */
#include "harness/history/trend_plot.h"

#include <math.h>
#include <string.h>
#include <time.h>

#define DAY_S     86400.0
#define TICKS     5
#define DENSE     200 /* runs */
#define GAP       5.0 /* times the mean time between runs */
#define NOT_TAKEN NAN

/* Seconds since 1970; NaN where it is no time. */
static double seconds_of(const char *utc)
{
    struct tm tm = {0};

    if (!strptime(utc, "%Y-%m-%dT%H:%M:%S", &tm))
        return NAN;
    return (double)timegm(&tm);
}

/* x of run i: days since the first, or the run's number where a start is not known. */
static double *places(struct pool *pool, const struct trend *t)
{
    double *x = pool_alloc(pool, t->n + 1, sizeof(*x)), first = seconds_of(t->runs[0]->started_utc);
    bool known = x != NULL;

    for (size_t i = 0; x && i < t->n; i++) {
        x[i] = (seconds_of(t->runs[i]->started_utc) - first) / DAY_S;
        known = known && !isnan(x[i]);
    }
    for (size_t i = 0; x && !known && i < t->n; i++)
        x[i] = (double)i;
    return x;
}

static bool is_gap(const double *x, size_t i, size_t n)
{
    return i && x[i] - x[i - 1] > GAP * (x[n - 1] - x[0]) / (double)(n - 1);
}

/* Many runs make a line, few are points. A line does not bridge a time without runs. */
static void add_values(struct pool *pool, const struct trend *t, const double *x,
                       struct plot_line *line)
{
    struct plot_point *points = pool_alloc(pool, 2 * t->n, sizeof(*points));

    *line = (struct plot_line){.label = "runs", .points = points, .apart = t->n <= DENSE};
    for (size_t i = 0; points && i < t->n; i++) {
        if (!line->apart && is_gap(x, i, t->n))
            points[line->n++] = (struct plot_point){x[i - 1], NAN, NOT_TAKEN, NOT_TAKEN};
        points[line->n++] = (struct plot_point){x[i], t->values[i], NOT_TAKEN, NOT_TAKEN};
    }
}

static struct plot_point *draw(struct plot_point *to, double x_begin, double begin, double x_end,
                               double end)
{
    *to++ = (struct plot_point){x_begin, begin, NOT_TAKEN, NOT_TAKEN};
    *to++ = (struct plot_point){x_end, end, NOT_TAKEN, NOT_TAKEN};
    *to++ = (struct plot_point){x_end, NAN, NOT_TAKEN, NOT_TAKEN};
    return to;
}

/* Two ends a segment, and a gap behind it; a slip leads to the level behind it. */
static void add_levels(struct pool *pool, const struct trend *t, const double *x,
                       struct plot_line *line)
{
    struct plot_point *points = pool_alloc(pool, 6 * (t->n_points + 1), sizeof(*points));
    struct plot_point *next = points;

    for (size_t s = 0; points && s <= t->n_points; s++) {
        const struct change_point *p = s ? &t->points[s - 1] : NULL;
        size_t begin = p ? p->end : 0, end = s < t->n_points ? t->points[s].at - 1 : t->n - 1;
        double level = trend_level(t, s);

        if (p && p->kind == CHANGE_SLIP)
            next = draw(next, x[p->at - 1], p->before, x[p->end], p->after);
        next = draw(next, x[begin < end ? begin : end], level, x[end], level);
    }
    *line = (struct plot_line){.label = "level",
                               .points = points,
                               .n = points ? (size_t)(next - points) : 0,
                               .colour = 1,
                               .plain = true};
}

static void add_marks(struct pool *pool, const struct trend *t, const double *x, struct plot *plot)
{
    struct plot_mark *marks = pool_alloc(pool, t->n_points + 1, sizeof(*marks));

    plot->marks = marks;
    plot->n_marks = marks ? t->n_points : 0;
    for (size_t i = 0; i < plot->n_marks; i++) {
        const struct change_point *p = &t->points[i];
        const char *utc = t->runs[p->at]->started_utc, *date = strlen(utc) > 5 ? utc + 5 : utc;

        /* Month and day: there is little room, and the axis has the year. */
        marks[i] = (struct plot_mark){
            .at = x[p->at],
            .label = pool_text(pool, "%.5s: %+.1f %%", date, 100 * (p->ratio - 1)),
            .brief = pool_text(pool, "%+.1f %%", 100 * (p->ratio - 1)),
        };
    }
}

/* Runs that say nothing of this machine are shown, and hollow. */
static void add_taken(struct pool *pool, const struct trend *t, const double *x,
                      struct plot_line *line)
{
    struct plot_point *points = pool_alloc(pool, t->n, sizeof(*points));

    *line = (struct plot_line){
        .label = "others took the CPU", .points = points, .apart = true, .dashed = true};
    for (size_t i = 0; points && i < t->n; i++)
        if (!isnan(t->taken[i]))
            points[line->n++] = (struct plot_point){x[i], t->taken[i], NOT_TAKEN, NOT_TAKEN};
}

/* As short as tells the runs apart, so that labels do not touch: a time of day, a day of the year, a month. The axis'
 * own label has the whole days. */
static const char *date_text(struct pool *pool, const char *utc, double days)
{
    static const struct {
        double days; /* up to so many between the first run and the last */
        size_t at;   /* in 2026-01-31T02:00:00Z */
        int n;
    } shapes[] = {{1.5, 11, 5}, {365, 5, 5}, {INFINITY, 0, 7}};
    size_t i = 0;

    while (days > shapes[i].days)
        i++;
    return strlen(utc) < 16 ? utc : pool_text(pool, "%.*s", shapes[i].n, utc + shapes[i].at);
}

static const char *days_text(struct pool *pool, const struct trend *t)
{
    const char *first = t->runs[0]->started_utc, *last = t->runs[t->n - 1]->started_utc;

    return strncmp(first, last, 10) ? pool_text(pool, "runs of %.10s to %.10s", first, last)
                                    : pool_text(pool, "runs of %.10s", first);
}

static void add_ticks(struct pool *pool, const struct trend *t, const double *x, struct plot *plot)
{
    size_t n = t->n < TICKS ? t->n : TICKS;
    struct plot_tick *ticks = pool_alloc(pool, n, sizeof(*ticks));

    plot->ticks = ticks;
    plot->n_ticks = ticks ? n : 0;
    for (size_t i = 0; i < plot->n_ticks; i++) {
        size_t run = n > 1 ? i * (t->n - 1) / (n - 1) : 0;

        ticks[i] = (struct plot_tick){
            .at = x[run], .label = date_text(pool, t->runs[run]->started_utc, x[t->n - 1] - x[0])};
    }
}

void trend_plot(const struct trends *all, const struct trend *t, size_t number, struct plot *plot)
{
    struct pool *pool = &all->history->pool;
    struct plot_line *lines = pool_alloc(pool, 3, sizeof(*lines));
    double *x = places(pool, t);

    *plot = (struct plot){
        .name = pool_text(pool, "history-%03zu", number),
        .title = t->series->label,
        .x_label = days_text(pool, t),
        .y_label = t->series->unit,
        .lines = lines,
        .n_lines = lines && x ? 2 + (t->n_gone > 0) : 0,
    };
    if (!lines || !x)
        return;
    add_values(pool, t, x, &lines[0]);
    add_levels(pool, t, x, &lines[1]);
    add_taken(pool, t, x, &lines[2]);
    add_marks(pool, t, x, plot);
    add_ticks(pool, t, x, plot);
}
