/* SPDX-License-Identifier: Apache-2.0 */
/* What the benchmarks said of their rows, asked of cases: see told.h. */
#include <math.h>
#include <string.h>

#include "core/row_facts.h"
#include "core/units.h"
#include "harness/report/told.h"

const struct bench_plot *told_plot(const struct report_bench *b, bool gpu)
{
    for (const struct bench_plot *p = b->told->plots; p->x; p++)
        if (!!(p->flags & PLOT_GPU) == gpu)
            return p;
    return NULL;
}

const struct bench_plot *told_plot_of(const struct report_bench *b, const struct report_case *c)
{
    return told_plot(b, case_is_gpu(b, c));
}

static const struct bench_column *column_of(const struct report_bench *b, const char *param)
{
    const struct bench_column *column = b->told->columns;

    while (column->name && strcmp(column->name, param) != 0)
        column++;
    return column;
}

bool told_flag(const struct report_bench *b, const char *param, unsigned flag)
{
    const struct bench_column *column = column_of(b, param);

    if (flag == COLUMN_BYTES && !b->told->columns->name)
        return strstr(param, "bytes") != NULL;
    return column->name && column->flags & flag;
}

const char *told_sought_by(const struct report_bench *b, const char *param)
{
    return column_of(b, param)->sought_by;
}

const char *told_left_by(const struct report_bench *b, const char *param)
{
    return column_of(b, param)->left_by;
}

bool told_ignores(const struct report_bench *b, const struct bench_plot *plot, const char *param)
{
    return plot && (word_in(plot->ignore, param) || told_flag(b, param, COLUMN_OUTCOME));
}

bool told_is_square(const struct bench_plot *plot, const struct report_bench *b,
                    const struct report_case *c)
{
    const char *first = NULL;

    for (size_t i = 0; plot && plot->square && i < b->n_params; i++) {
        if (!word_in(plot->square, b->params[i]))
            continue;
        if (first && strcmp(first, c->params[i]) != 0)
            return false;
        first = c->params[i];
    }
    return true;
}

/* ---- conditions */

struct subject {
    const struct report_bench *b;
    const struct report_case *c;
    const char *metric; /* NULL: not known */
};

static bool is_name(const char *text, const char *name, size_t len)
{
    return strlen(text) == len && !memcmp(text, name, len);
}

static const char *value_of(const void *arg, const char *name, size_t len)
{
    const struct subject *s = arg;

    if (is_name("metric", name, len))
        return s->metric;
    if (is_name("unit", name, len))
        return s->metric ? s->c->unit : NULL;
    for (size_t i = 0; i < s->b->n_params; i++)
        if (is_name(s->b->params[i], name, len))
            return s->c->params[i];
    return "";
}

/* A case whose launches all died before they could say what they measure may be any of those that its parameters let it be. */
static bool may_match(const struct report_bench *b, const struct report_case *c, const char *where)
{
    struct subject s = {b, c, NULL};
    bool known = false;

    for (const struct bench_metric *m = b->told->metrics; m->name; m++) {
        s.metric = NULL;
        if (!m->where || !condition_holds(m->where, value_of, &s))
            continue;
        known = true;
        s.metric = m->name;
        if (condition_holds(where, value_of, &s))
            return true;
    }
    s.metric = NULL;
    return !known && condition_holds(where, value_of, &s);
}

bool told_matches(const struct report_bench *b, const struct report_case *c, const char *where)
{
    if (!where)
        return true;
    return *c->metric ? condition_holds(where, value_of, &(struct subject){b, c, c->metric})
                      : may_match(b, c, where);
}

/* ---- what comparing makes of a case */

/* Two GPUs are joined by NVLink where the limit of any run's row says so. */
static bool is_over_nvlink(const struct report *r, const struct report_bench *b,
                           const struct report_case *c)
{
    for (size_t i = 0; i < r->n_runs && case_is_pair(b, c); i++)
        if (!strcmp(c->points[i].limit_link, LIMIT_LINK_NVLINK))
            return true;
    return false;
}

const char *told_pipe(const struct report *r, const struct report_bench *b,
                      const struct report_case *c)
{
    bool gpu = case_is_gpu(b, c);

    if (is_over_nvlink(r, b, c))
        return "NVLink";
    for (const struct bench_pipe *p = b->told->pipes; p->pipe; p++)
        if (!!(p->flags & HEADLINE_GPU) == gpu && told_matches(b, c, p->where))
            return p->pipe;
    return "Other";
}

static const struct bench_metric *metric_of(const struct report_bench *b, const char *metric)
{
    for (const struct bench_metric *m = b->told->metrics; m->name; m++)
        if (!strcmp(m->name, metric))
            return m;
    return NULL;
}

bool told_more_is_better(const struct report_bench *b, const struct report_case *c)
{
    const struct bench_metric *known = metric_of(b, c->metric);

    const struct unit *unit = units_find(c->unit);

    if (known && known->better)
        return known->better == BETTER_MORE;
    return unit ? unit->higher_is_better : strstr(c->unit, "/s") != NULL;
}

/* A figure has a value, and no samples that a rule stopped. */
static bool is_sampled(const struct report_rows *rows, size_t row, size_t stop)
{
    return row_number(rows, row, FIELD_SAMPLES) > 0 &&
           (stop == TABLE_NO_COLUMN || *table_cell(rows->table, row, stop));
}

bool told_is_figure(const struct report *r, const struct report_bench *b,
                    const struct report_case *c)
{
    size_t values = 0, samples = 0;

    for (size_t run = 0; run < r->n_runs; run++) {
        const struct report_rows *rows = &b->rows[run];
        size_t stop = rows->table ? table_column(rows->table, "stop") : TABLE_NO_COLUMN;

        for (size_t i = 0; i < c->points[run].n_rows; i++) {
            size_t row = c->points[run].rows[i];

            values += !isnan(row_number(rows, row, FIELD_VALUE));
            samples += is_sampled(rows, row, stop);
        }
    }
    return values && !samples;
}

bool told_is_judged(const struct report *r, const struct report_bench *b,
                    const struct report_case *c)
{
    const struct bench_metric *known = metric_of(b, c->metric);

    return known ? !known->unjudged : !told_is_figure(r, b, c);
}

/* ---- places */

bool place_is_gpu(const char *place)
{
    const char *colon = strchr(place, ':');

    return colon && colon != place && colon[1] && !colon[1 + strspn(colon + 1, "0123456789")];
}

/* The case's first place that is a GPU, and the next that is another one; "": there is none. */
static const char *gpu_of(const struct report_bench *b, const struct report_case *c,
                          const char *but)
{
    for (size_t i = 0; i < b->n_params; i++)
        if (told_flag(b, b->params[i], COLUMN_PLACE) && place_is_gpu(c->params[i]) &&
            strcmp(c->params[i], but) != 0)
            return c->params[i];
    return "";
}

bool case_is_gpu(const struct report_bench *b, const struct report_case *c)
{
    return *gpu_of(b, c, "");
}

bool case_is_pair(const struct report_bench *b, const struct report_case *c)
{
    const char *first = gpu_of(b, c, "");

    return *first && *gpu_of(b, c, first);
}

const char *case_gpu(const struct report_bench *b, const struct report_case *c)
{
    return case_is_pair(b, c) ? "" : gpu_of(b, c, "");
}
