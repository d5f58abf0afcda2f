/* SPDX-License-Identifier: Apache-2.0 */
/* Series over numbers of ranks: see scaling.h. */
#include "harness/report/scaling.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/row.h"
#include "core/stats.h"
#include "core/units.h"
#include "harness/report/cases_group.h"
#include "harness/report/described.h"
#include "harness/report/show.h"

#define SCALING_SERIES_MAX 64
#define EFFICIENCY_MARGIN  0.05 /* as that of plumb compare */

static double number_of(const struct report_bench *b, const struct report_case *c, const char *name)
{
    double value;

    return units_parse_double(report_param(b, c, name), &value) ? NAN : value;
}

static bool is_curve(const struct report_bench *b, const struct report_case *c, const char *metric)
{
    return !strcmp(c->metric, metric) && !*report_param(b, c, "model") &&
           number_of(b, c, "ranks") >= 2 && number_of(b, c, "size") > 0;
}

static bool is_point(const struct report_bench *b, size_t run, const struct report_case *c,
                     const void *arg)
{
    (void)arg;
    return c->points[run].n_rows && (is_curve(b, c, "time") || is_curve(b, c, "busbw"));
}

double scaling_time_us(const struct report_case *c, size_t run)
{
    const struct unit *unit = c ? units_find(c->unit) : NULL;

    /* a time's scale turns ns into its unit */
    return !unit || unit->rate ? NAN : c->points[run].value / unit->scale / 1000;
}

double scaling_bytes(const struct report_bench *b, const struct report_case *c)
{
    double bytes = number_of(b, c, "vector_bytes");

    return bytes > 0 ? bytes : number_of(b, c, "size");
}

static const struct report_point *measured(const struct report_case *c, size_t run)
{
    const struct report_point *p = c ? &c->points[run] : NULL;

    return p && p->n_values ? p : NULL;
}

/* Time and bus bandwidth are of the same samples: where either is seen to have two levels, neither
 * has a median. */
static bool has_two_levels(const struct scaling_cell *cell, size_t run)
{
    return (cell->time && cell->time->points[run].two != TWO_NOT) ||
           (cell->bus && cell->bus->points[run].two != TWO_NOT);
}

static const struct report_point *usable_bus(const struct scaling_cell *cell, size_t run)
{
    return has_two_levels(cell, run) ? NULL : measured(cell->bus, run);
}

static const struct report_point *usable_time(const struct scaling_cell *cell, size_t run)
{
    return has_two_levels(cell, run) ? NULL : measured(cell->time, run);
}

static bool spans(const struct scaling_series *s, const struct scaling_cell *cell)
{
    return cell->bus && number_of(s->bench, cell->bus, "nodes") > 1;
}

/* Inside one node there is no link between nodes: what spans several is held against the fewest that
 * do, which have none. */
static void ask_row(struct comparisons *q, const struct scaling_series *s, struct scaling_cell *row)
{
    for (size_t i = 0; i < s->n_ranks; i++) {
        size_t from = 0;

        while (from < i && spans(s, &row[i]) && !spans(s, &row[from]))
            from++;
        bool first = i && from == i;
        while (from < i && !usable_bus(&row[from], s->run))
            from++;
        row[i].base = NAN;
        if (!usable_bus(&row[i], s->run) || (from == i && !first))
            continue;
        row[i].base = s->ranks[from];
        if (from < i)
            row[i].asked = comparisons_add(q, row[i].bus, row[from].bus, EFFICIENCY_MARGIN);
    }
}

void scalings_ask(struct comparisons *q, struct scalings *all)
{
    for (size_t i = 0; i < all->n; i++) {
        struct scaling_series *s = &all->all[i];

        if (!i || s[-1].bench != s->bench || s[-1].run != s->run)
            comparisons_topic(q, NULL, s->bench, s->run, false);
        for (size_t size = 0; size < s->n_sizes; size++)
            ask_row(q, s, &s->cells[size * s->n_ranks]);
    }
}

void scalings_judge(const struct comparisons *q, struct scalings *all)
{
    for (struct scaling_series *s = all->all; s < all->all + all->n; s++)
        for (size_t i = 0; i < s->n_sizes * s->n_ranks; i++)
            s->cells[i].efficiency = comparison_of(q, s->cells[i].asked);
}

double scaling_ideal_us(const struct scaling_series *s, const struct scaling_cell *cell,
                        double ranks)
{
    const struct report_point *p = cell->bus ? &cell->bus->points[s->run] : NULL;
    struct fit_terms terms;

    if (!p || !(p->limit > 0) || !cell->time || !fit_terms(s->terms, ranks, &terms))
        return NAN;
    return terms.bus * scaling_bytes(s->bench, cell->time) / p->limit / 1000;
}

/* Adds a value that is not there yet. */
static void add_value(double *values, size_t *n, double value)
{
    for (size_t i = 0; i < *n; i++)
        if (values[i] == value)
            return;
    values[(*n)++] = value;
}

static size_t index_of(const double *values, size_t n, double value)
{
    size_t i = 0;

    while (i < n && values[i] != value)
        i++;
    return i;
}

static void list_axes(struct report *r, struct scaling_series *s, const struct case_group *g)
{
    const struct report_bench *b = s->bench;

    s->ranks = pool_alloc(&r->pool, g->n, sizeof(*s->ranks));
    s->sizes = pool_alloc(&r->pool, g->n, sizeof(*s->sizes));
    s->size_texts = pool_alloc(&r->pool, g->n, sizeof(*s->size_texts));
    for (size_t i = 0; i < g->n; i++) {
        if (!is_curve(b, g->cases[i], "time"))
            continue;
        s->first = s->first ? s->first : g->cases[i];
        add_value(s->ranks, &s->n_ranks, number_of(b, g->cases[i], "ranks"));
        add_value(s->sizes, &s->n_sizes, number_of(b, g->cases[i], "size"));
    }
    qsort(s->ranks, s->n_ranks, sizeof(*s->ranks), stats_ascending);
    qsort(s->sizes, s->n_sizes, sizeof(*s->sizes), stats_ascending);
    for (size_t i = 0; i < s->n_sizes; i++) {
        char text[24];

        s->size_texts[i] =
            pool_text(&r->pool, "%s", units_format_size((uint64_t)s->sizes[i], text, sizeof(text)));
    }
}

static void fill_cells(struct report *r, struct scaling_series *s, const struct case_group *g)
{
    s->cells = pool_alloc(&r->pool, s->n_sizes * s->n_ranks, sizeof(*s->cells));
    for (size_t i = 0; i < s->n_sizes * s->n_ranks; i++)
        s->cells[i] = (struct scaling_cell){.base = NAN, .asked = COMPARISON_NONE};
    for (size_t i = 0; i < g->n; i++) {
        const struct report_case *c = g->cases[i];
        size_t size = index_of(s->sizes, s->n_sizes, number_of(s->bench, c, "size"));
        size_t ranks = index_of(s->ranks, s->n_ranks, number_of(s->bench, c, "ranks"));

        if (size == s->n_sizes || ranks == s->n_ranks)
            continue;
        struct scaling_cell *cell = &s->cells[size * s->n_ranks + ranks];
        *(is_curve(s->bench, c, "time") ? &cell->time : &cell->bus) = c;
    }
    for (size_t i = 0; i < s->n_sizes * s->n_ranks; i++)
        s->n_two += has_two_levels(&s->cells[i], s->run);
}

static size_t list_points(const struct scaling_series *s, struct fit_point *points)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n_sizes * s->n_ranks; i++) {
        const struct report_case *c = s->cells[i].time;

        if (usable_time(&s->cells[i], s->run))
            points[n++] = (struct fit_point){s->ranks[i % s->n_ranks], scaling_bytes(s->bench, c),
                                             scaling_time_us(c, s->run)};
    }
    return n;
}

/* Two values that are not empty: what is empty elsewhere may belong to one transport alone. */
static bool has_two_values(const struct report_bench *b, size_t param)
{
    const char *first = "";

    for (size_t i = 0; i < b->n_cases; i++) {
        const char *value = b->cases[i].params[param];

        if (*first && *value && strcmp(first, value) != 0)
            return true;
        first = *value ? value : first;
    }
    return false;
}

/* "allreduce, f32, sum, fill node, scaling weak", and what else tells the case apart, without the
 * parameters named: words with a blank between. */
static const char *title_of(struct report *r, const struct report_bench *b,
                            const struct report_case *c, const char *left_out)
{
    const char *text = "";

    for (size_t i = 0; i < b->n_params; i++) {
        const char *name = b->params[i], *value = c->params[i];

        if (b->follows[i] || word_in(left_out, name))
            continue;
        if (word_in("op dtype redop", name))
            text = show_joined(&r->pool, text, value);
        else if (word_in("fill scaling", name) ||
                 (show_tells_apart(b, c, i) && (has_two_values(b, i) || !strcmp(value, "yes"))))
            text = show_joined(&r->pool, text, show_full_param(&r->pool, b, i, value));
    }
    return text;
}

static void make_one(struct report *r, const struct report_bench *b, size_t run,
                     const struct case_group *group, size_t least, struct scalings *out)
{
    struct scaling_series *s = &out->all[out->n];

    *s = (struct scaling_series){.bench = b, .run = run};
    list_axes(r, s, group);
    if (!s->first || s->n_ranks < least)
        return;
    if (out->n + 1 == SCALING_SERIES_MAX) {
        out->left_out++;
        return;
    }
    s->terms = described_terms(b, s->first);
    s->label = report_param(b, s->first, "backend");
    if (*report_param(b, s->first, "transport"))
        s->label =
            pool_text(&r->pool, "%s over %s", s->label, report_param(b, s->first, "transport"));
    if (r->n_runs > 1)
        s->label = show_joined(&r->pool, s->label, r->names[s->run]);
    s->title = title_of(r, b, s->first, "ranks size backend transport rank scope");
    fill_cells(r, s, group);
    struct fit_point *points = xcalloc(s->n_sizes * s->n_ranks, sizeof(*points));
    size_t n = list_points(s, points);
    s->fit_error = fit_make(s->terms, points, n, NULL, NULL, &s->fit);
    free(points);
    out->n++;
}

void scalings_make(struct report *r, size_t least, struct scalings *out)
{
    *out = (struct scalings){.all = pool_alloc(&r->pool, SCALING_SERIES_MAX, sizeof(*out->all))};
    for (const struct report_bench *b = r->benches; b < r->benches + r->n_benches; b++)
        for (size_t run = 0; run < r->n_runs; run++) {
            struct case_groups groups =
                cases_group(&r->pool, b, run, is_point, NULL, cases_but, "ranks size metric unit");

            for (size_t i = 0; i < groups.n; i++)
                make_one(r, b, run, &groups.all[i], least, out);
        }
}

/* ---- What is said of series over numbers of ranks ---- */

/* GB/s of a time in us for a byte. */
static double rate_of(double b_us)
{
    return b_us > 0 ? 1e-3 / b_us : NAN;
}

static const char *range_text(struct report *r, double low, double high)
{
    if (isnan(high))
        return pool_text(&r->pool, "at least %s", show_short(&r->pool, low));
    return pool_text(&r->pool, "%s to %s", show_short(&r->pool, low), show_short(&r->pool, high));
}

static const char *why_not_fitted(int err)
{
    if (err == -ENODATA)
        return "not fitted: fewer than three points with one level";
    if (err == -EDOM)
        return "not fitted: these sizes cannot separate latency from bandwidth";
    return "not fitted: no model of this operation is known";
}

/* "at 32 ranks, 64M", "at 8 ranks". */
static const char *place_text(struct report *r, const struct fit_off *off)
{
    char size[24] = "";

    if (off->bytes > 0)
        units_format_size((uint64_t)off->bytes, size, sizeof(size));
    if (!(off->ranks > 0))
        return pool_text(&r->pool, "at %s", size);
    return pool_text(&r->pool, "at %.0f ranks%s%s", off->ranks, *size ? ", " : "", size);
}

/* "at 32 ranks, 64M the measured time is 5.1 times the model's" */
static const char *point_text(struct report *r, const struct fit_off *off)
{
    return pool_text(&r->pool, "%s the measured time is %#.3g times the model's",
                     place_text(r, off), off->ratio);
}

static const char *a_text(struct report *r, const struct fit *f)
{
    const char *text = pool_text(&r->pool, "%s us a message", show_short(&r->pool, f->a_us));

    if (f->without_a)
        return "latency too small to be measured";
    return f->group.n ? text
                      : pool_text(&r->pool, "%s (%s)", text, range_text(r, f->low_us, f->high_us));
}

static const char *b_text(struct report *r, const struct fit *f)
{
    const char *text = pool_text(&r->pool, "%s GB/s", show_short(&r->pool, rate_of(f->b_us)));

    if (f->without_b)
        return "bandwidth too high to be measured";
    return f->group.n ? text
                      : pool_text(&r->pool, "%s (%s)", text,
                                  range_text(r, rate_of(f->b_high_us), rate_of(f->b_low_us)));
}

const char *scaling_fit_text(struct report *r, const struct scaling_series *s)
{
    const struct fit *f = &s->fit;
    const char *spread = document_percent(&r->pool, 100 * f->spread), *text;

    if (s->fit_error)
        return why_not_fitted(s->fit_error);
    if (!fit_describes(f))
        return pool_text(&r->pool,
                         "does not describe these points: %s; they lie %s off the best of its kind "
                         "(standard deviation of %zu). It is not drawn",
                         point_text(r, &f->farthest), spread, f->n);
    text = pool_text(&r->pool, "%s, %s; points lie %s off it (standard deviation of %zu)",
                     a_text(r, f), b_text(r, f), spread, f->n);
    if (!f->group.n)
        return pool_text(&r->pool, "%s, the farthest: %s", text, point_text(r, &f->farthest));
    return pool_text(&r->pool,
                     "%s. No intervals, as that is not by chance: %s measured times are up to "
                     "%#.3g times the model's",
                     text, place_text(r, &f->group), f->group.ratio);
}

/* What carries bytes past the wire that the limit is of. A limit that is the most of any algorithm
 * has counted what ranks of one node exchange in its memory. Where switches may sum, the row has no
 * limit. */
static const char *explain(const struct report_bench *b, const struct report_case *c,
                           const struct report_point *p)
{
    double nodes, ranks;

    if (units_parse_double(report_param(b, c, "nodes"), &nodes) ||
        units_parse_double(report_param(b, c, "ranks"), &ranks))
        nodes = ranks = NAN;
    if (!strcmp(report_param(b, c, "transport"), "shm") || nodes == 1)
        return "all ranks are on one node: memory carried it, not the link";
    if (nodes < ranks && strcmp(p->limit_scope, LIMIT_SCOPE_NODE) != 0)
        return "ranks of one node meet in its memory: the link carries less than bus bandwidth "
               "counts";
    return "";
}

const char *scaling_above_text(struct report *r, const struct report_bench *b,
                               const struct report_case *c, size_t run, bool *explained)
{
    const struct report_point *p = &c->points[run];
    const char *why;

    *explained = true;
    if (!(p->percent > LIMIT_EXCEEDED_PERCENT))
        return "";
    why = explain(b, c, p);
    *explained = *why != 0;
    return pool_text(&r->pool, "%s of the limit (%s %s): %s",
                     document_percent(&r->pool, p->percent), document_number(&r->pool, p->limit),
                     c->unit,
                     *why ? why
                          : "nothing in the row explains it: the limit is too low, or the bytes "
                            "did not take that link");
}

const char *scaling_remark(struct report *r, const struct scalings *all,
                           const struct report_case *c, size_t run)
{
    for (const struct scaling_series *s = all->all; s < all->all + all->n; s++)
        for (size_t i = 0; s->run == run && i < s->n_sizes * s->n_ranks; i++) {
            const struct scaling_cell *cell = &s->cells[i];

            if (cell->time != c && cell->bus != c)
                continue;
            return cell->efficiency
                       ? pool_text(&r->pool, "efficiency from %.0f to %.0f ranks: %#.3g%s",
                                   cell->base, s->ranks[i % s->n_ranks], cell->efficiency->ratio,
                                   comparison_interval_text(&r->pool, cell->efficiency))
                       : "";
        }
    return "";
}
