/* SPDX-License-Identifier: Apache-2.0 */
/* One plot of a group of cases: see series.h. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "core/units.h"
#include "harness/report/series.h"
#include "harness/report/show.h"

#define LOG_X_FROM   8  /* largest over smallest value from which an axis is logarithmic */
#define LOG_Y_FROM   30 /* higher: a linear axis from 0 says more, as long as it shows all */
#define CACHES_MAX   8
#define LIMITS_NAMED 2
/* Limits so far above the values are not drawn: they would flatten the plot. */
#define ROOM_FOR_LIMIT_LINEAR 2.5
#define ROOM_FOR_LIMIT_LOG    30
#define INTERVAL_ROOM         1.5 /* above the values: what reaches further ends in an arrow */

static void choose_scales(struct figure_drawing *d)
{
    struct plot *plot = &d->f->plot;

    if (!plot->categories && plot->n_ticks > 1)
        plot->x_log = plot->ticks[0].at > 0 &&
                      plot->ticks[plot->n_ticks - 1].at >= LOG_X_FROM * plot->ticks[0].at;
    plot->y_log = d->low > 0 && d->high >= LOG_Y_FROM * d->low;
    plot->y_from_zero = !plot->y_log && d->low >= 0;
    if (d->top > INTERVAL_ROOM * d->high) {
        plot->shown_low = plot->y_log ? d->low / INTERVAL_ROOM : fmin(d->low, 0);
        plot->shown_high = INTERVAL_ROOM * d->high;
    }
}

/* The axis of bars has room for their limits, as far as these do not flatten them. */
static void show_row_limits(struct figure_drawing *d)
{
    struct plot *plot = &d->f->plot;

    for (size_t i = 0; plot->rows && i < plot->n_ticks; i++)
        if (plot->rows[i].limit <= ROOM_FOR_LIMIT_LINEAR * d->high)
            plot->y_top = fmax(plot->y_top, plot->rows[i].limit);
        else
            d->rows[i].limit = 0;
    d->f->limits = plot->y_top > 0;
    if (plot->y_top > plot->shown_high)
        plot->shown_low = plot->shown_high = 0;
}

/* Long times in ms: their axis needs no exponents. */
static void take_ms(struct figure_drawing *d)
{
    const struct plot *plot = &d->f->plot;
    struct show_scale scale = show_scale(d->pool, d->high, d->g->unit);

    d->unit = scale.unit;
    for (size_t i = 0; scale.factor != 1 && i < plot->n_lines; i++)
        for (size_t k = 0; k < d->lines[i].n; k++) {
            struct plot_point *p = &d->points[i][k];

            *p = (struct plot_point){p->x, p->y * scale.factor, p->low * scale.factor,
                                     p->high * scale.factor};
        }
    for (size_t i = 0; i < d->n_limits && i <= LIMITS_MAX; i++)
        d->limits[i] *= scale.factor;
    d->low *= scale.factor;
    d->high *= scale.factor;
    d->top *= scale.factor;
}

static void add_mark(struct figure_drawing *d, double at, bool horizontal, const char *label,
                     const char *brief)
{
    d->marks[d->f->plot.n_marks++] = (struct plot_mark){
        .at = at, .horizontal = horizontal, .from = NAN, .to = NAN, .label = label, .brief = brief};
}

static void add_limits(struct figure_drawing *d)
{
    struct plot *plot = &d->f->plot;
    double room = d->high * (plot->y_log ? ROOM_FOR_LIMIT_LOG : ROOM_FOR_LIMIT_LINEAR);

    if (plot->categories || d->g->overlays || d->n_limits > LIMITS_MAX)
        return;
    for (size_t i = 0; i < d->n_limits; i++) {
        const char *label = pool_text(d->pool, "limit %.4g", d->limits[i]);

        if (d->limits[i] <= 0 || d->limits[i] > room)
            continue;
        /* of several, the picture has no room for the words: point at one */
        add_mark(d, d->limits[i], true, label, d->n_limits > LIMITS_NAMED ? "" : label);
        d->marks[plot->n_marks - 1].from = d->limit_from[i];
        d->marks[plot->n_marks - 1].to = d->limit_to[i];
        plot->y_top = fmax(plot->y_top, 1.08 * d->limits[i]);
    }
    if (plot->y_top > 0)
        plot->y_top = fmax(plot->y_top, 1.05 * d->top);
}

/* The number of threads of all cases in the plot; 1 where they differ or do not say. */
static long long common_threads(const struct figure_drawing *d)
{
    const char *common = NULL;
    uint64_t threads = 1;

    for (size_t i = 0; i < d->g->n; i++) {
        const char *text = report_param(d->g->bench, drawing_case(d->g, i), "threads");

        if (d->g->facet_of.of_case[i] != d->facet)
            continue;
        if (common && strcmp(common, text) != 0)
            return 1;
        common = text;
    }
    return common && !units_parse_u64(common, &threads) && threads ? (long long)threads : 1;
}

/* The caches of the first run's machine: as many of each as the threads, spread over the cores,
 * have for themselves. */
static void add_caches(struct figure_drawing *d)
{
    const struct plot *plot = &d->f->plot;
    long long threads = common_threads(d);

    FACT_EACH (fact_at(d->g->r->runs[0].meta, "machine.caches"), cache) {
        long long level = fact_integer(cache, "level", 0),
                  size = fact_integer(cache, "size_bytes", 0), n = fact_integer(cache, "count", 0);
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
        d->f->caches = true;
    }
}

static void add_marks(struct figure_drawing *d)
{
    d->marks = pool_alloc(d->pool, LIMITS_MAX + CACHES_MAX, sizeof(*d->marks));
    d->f->plot.marks = d->marks;
    add_limits(d);
    d->f->limits = d->f->limits || d->f->plot.n_marks;
    if (d->g->hint && d->g->hint->flags & PLOT_CACHE_MARKS && d->g->x && d->f->plot.n_ticks)
        add_caches(d);
}

static const char *with_unit(struct pool *pool, const char *name, const char *unit)
{
    return *unit ? pool_text(pool, "%s (%s)", name, unit) : name;
}

/* "m = n = k" where the x axis stands for them all. */
static const char *x_name(const struct figure_drawing *d)
{
    const struct bench_plot *hint = d->g->hint;
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

static void name_axes(struct figure_drawing *d)
{
    const struct group *g = d->g;
    struct plot *plot = &d->f->plot;
    const char *value = with_unit(d->pool, g->metric, d->unit);
    const char *x;
    bool bytes;

    plot->x_label = value;
    plot->y_label = "";
    if (!g->x)
        return;
    x = g->bench->params[g->x->param];
    bytes = g->hint ? g->hint->flags & PLOT_BYTES && !strcmp(x, g->hint->x)
                    : strstr(x, "bytes") != NULL;
    plot->x_label = with_unit(d->pool, x_name(d), bytes ? "bytes" : "");
    plot->x_bytes = bytes;
    plot->y_label = value;
}

/* What all cases of the plot share. */
static const char *make_subtitle(const struct figure_drawing *d, size_t first)
{
    const struct group *g = d->g;
    const char *text = "";

    for (size_t k = 0; k < g->n_facets; k++)
        text = show_joined(d->pool, text,
                           show_full_param(d->pool, g->bench, g->facets[k]->param,
                                           drawing_case(g, first)->params[g->facets[k]->param]));
    for (size_t i = 0; i < g->bench->n_params; i++)
        if (g->dims[i].n_values == 1 && !drawing_is_of_shape(g, i) &&
            !described_ignores(g->bench, g->hint, g->bench->params[i]))
            text = show_joined(d->pool, text,
                               show_full_param(d->pool, g->bench, i, g->dims[i].values[0]));
    return text;
}

static const char *make_note(const struct figure_drawing *d)
{
    struct show_list note = {.pool = d->pool, .max = SIZE_MAX, .parts = "; "};
    const char *says = described_says(d->g->bench, d->g->metric);

    if (*says)
        show_list_add(&note, says);
    if (d->lines_left_out)
        show_list_add(&note, pool_text(d->pool, "%s left out and in the table of rows alone",
                                       show_count(d->pool, d->lines_left_out,
                                                  d->g->x ? "more line" : "more case")));
    if (d->empty_lines)
        show_list_add(&note, pool_text(d->pool, "%s without a value: see the rows that are not ok",
                                       show_count(d->pool, d->empty_lines, "line")));
    if (d->g->node_pairs)
        show_list_add(&note, pool_text(d->pool,
                                       "of %zu pairs of NUMA nodes the best, the one in "
                                       "the middle and the worst are drawn",
                                       d->g->node_pairs));
    if (d->g->other_gpus)
        show_list_add(&note,
                      pool_text(d->pool, "one GPU is drawn, for %zu more see the table of rows",
                                d->g->other_gpus));
    if (d->n_limits > LIMITS_MAX && !d->f->plot.categories)
        show_list_add(&note, "the limits differ from point to point: see the rows");
    else if (d->n_limits > LIMITS_NAMED && !d->f->plot.categories)
        show_list_add(&note, "dotted: the limits of these points");
    return show_list_text(&note);
}

/* Letters, digits and '-' of a name that comes from a file. */
static const char *file_name(struct pool *pool, const struct group *g, size_t number)
{
    const char *text =
        g->name ? g->name
                : pool_text(pool, "%s-%s%s", g->bench->name, g->gpu ? "gpu-" : "", g->metric);
    char *name = pool_alloc(pool, strlen(text) + 1, 1);

    for (size_t i = 0; text[i]; i++) {
        bool plain = strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-",
                            text[i]) != NULL;

        name[i] = plain ? text[i] : '-';
    }
    return number ? pool_text(pool, "%s-%zu", name, number) : name;
}

/* The cases of the plot that have a value in a run. */
static size_t count_values(const struct figure_drawing *d)
{
    size_t n = 0;

    for (size_t i = 0; i < d->g->n; i++) {
        bool measured = false;

        for (size_t run = 0; run < d->g->r->n_runs; run++)
            measured |= drawing_case(d->g, i)->points[run].n_values > 0;
        n += measured && d->g->facet_of.of_case[i] == d->facet;
    }
    return n;
}

bool figure_make(const struct group *g, size_t facet, size_t number, struct figure *f)
{
    struct figure_drawing d = {
        .g = g, .pool = &g->r->pool, .facet = facet, .f = f, .low = NAN, .high = NAN, .top = NAN};
    size_t first = 0;

    *f = (struct figure){.bench = g->bench, .place = g->place};
    while (g->facet_of.of_case[first] != facet)
        first++;
    if (g->x)
        drawing_add_lines(&d);
    else
        drawing_add_categories(&d);
    bool zero = d.low == 0 && d.high == 0;
    if (isnan(d.high) ||
        (g->place == FIGURE_AMONG_PLOTS ? zero || count_values(&d) < 2 : f->plot.n_ticks < 2))
        return false;
    if (g->overlays && g->x)
        drawing_add_overlays(&d);
    f->plot.lines = d.lines;
    take_ms(&d);
    choose_scales(&d);
    show_row_limits(&d);
    name_axes(&d);
    add_marks(&d);
    f->subtitle = make_subtitle(&d, first);
    f->note = make_note(&d);
    f->plot.name = file_name(d.pool, g, number);
    f->heading = pool_text(d.pool, "%s %s", g->bench->name, with_unit(d.pool, g->metric, d.unit));
    f->plot.title =
        *f->subtitle ? pool_text(d.pool, "%s: %s", f->heading, f->subtitle) : f->heading;
    return true;
}
