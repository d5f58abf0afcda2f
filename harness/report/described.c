/* SPDX-License-Identifier: Apache-2.0 */
/* What the benchmarks said of their rows: see described.h. */
#include "harness/report/described.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/row.h"
#include "core/units.h"

static struct told_bench *find(const struct described *described, const char *bench)
{
    for (size_t i = 0; i < described->n; i++)
        if (!strcmp(described->benches[i].name, bench))
            return &described->benches[i];
    return NULL;
}

const struct bench_rows *described_of(const struct described *described, const char *bench)
{
    static const char *const end = NULL; /* each table ends with a first member that is NULL */
    static const struct bench_column columns[] = {{.name = NULL}};
    static struct bench_rows nothing;

    for (const struct rows_list *list = rows_lists; list->name; list++)
        memcpy((char *)&nothing + list->offset, &(const void *){&end}, sizeof(void *));
    nothing.columns = columns; /* of a column that is in none more is read than its name */
    const struct told_bench *known = find(described, bench);

    return known ? &known->rows : &nothing;
}

static int add(struct described *described, const char *name, const json_t *json, char *error,
               size_t len)
{
    struct told_bench *known = find(described, name);
    struct bench_rows rows;
    char why[200] = "";
    int err = rows_described_read(json, &rows, why, sizeof(why));

    if (err) {
        snprintf(error, len, "what 'run.json' keeps of the benchmark '%.60s': %s", name, why);
        return err;
    }
    if (known) {
        rows_described_add_columns(&known->rows, &rows);
        rows_described_release(&rows);
        return 0;
    }
    *ARRAY_ADD(described->benches, described->n) = (struct told_bench){name, rows};
    return 0;
}

unsigned described_order(enum bench_stage stage)
{
    return stage == STAGE_NONE ? STAGES : stage;
}

static int by_stage(const void *x, const void *y)
{
    const struct told_bench *a = x, *b = y;
    unsigned at_a = described_order(a->rows.stage), at_b = described_order(b->rows.stage);

    return at_a != at_b ? (at_a < at_b ? -1 : 1) : strcmp(a->name, b->name);
}

static unsigned order_of(const struct described *described, const struct told_headline *h)
{
    enum bench_stage own = described_of(described, h->bench)->stage;

    return described_order(h->rule->stage ? h->rule->stage : own) +
           (h->rule->flags & HEADLINE_GPU ? 0 : STAGES + 1);
}

/* GPUs first: on a machine that has them they are what it was bought for. Stable: those of a
 * benchmark stay in its order. */
static void sort_headlines(struct described *described)
{
    for (size_t i = 1; i < described->n_headlines; i++)
        for (size_t k = i; k && order_of(described, &described->headlines[k]) <
                                    order_of(described, &described->headlines[k - 1]);
             k--) {
            struct told_headline swapped = described->headlines[k];

            described->headlines[k] = described->headlines[k - 1];
            described->headlines[k - 1] = swapped;
        }
}

static void list_headlines(struct described *described)
{
    size_t n = 0;

    for (size_t i = 0; i < described->n; i++)
        for (const struct bench_headline *h = described->benches[i].rows.headlines; h->pipe; h++)
            n++;
    described->headlines = xcalloc(n, sizeof(*described->headlines));
    for (size_t i = 0; i < described->n; i++)
        for (const struct bench_headline *h = described->benches[i].rows.headlines; h->pipe; h++)
            described->headlines[described->n_headlines++] =
                (struct told_headline){described->benches[i].name, h};
    sort_headlines(described);
}

int described_load(struct report *r, char *error, size_t len)
{
    struct described *described = &r->described;
    const char *name;
    int err = 0;

    for (size_t i = r->n_runs; i-- > 0;) {
        json_t *json;

        json_object_foreach (json_object_get(r->runs[i].meta, "benchmarks"), name, json)
            if (!err)
                err = add(described, name, json, error, len);
    }
    if (err)
        return err;
    if (described->n)
        qsort(described->benches, described->n, sizeof(*described->benches), by_stage);
    list_headlines(described);
    return 0;
}

void described_release(struct described *described)
{
    for (size_t i = 0; i < described->n; i++)
        rows_described_release(&described->benches[i].rows);
    free(described->benches);
    free(described->headlines);
    *described = (struct described){0};
}

/* ---- What the benchmarks said of their rows, asked of cases ---- */

const struct bench_plot *described_plot(const struct report_bench *b, bool gpu)
{
    for (const struct bench_plot *p = b->described->plots; p->x; p++)
        if (!!(p->flags & PLOT_GPU) == gpu)
            return p;
    return NULL;
}

const struct bench_plot *described_plot_of(const struct report_bench *b,
                                           const struct report_case *c)
{
    return described_plot(b, case_is_gpu(b, c));
}

const struct bench_terms *described_terms(const struct report_bench *b, const struct report_case *c)
{
    for (const struct bench_terms *t = b->described->terms; t->where; t++)
        if (described_matches(b, c, t->where))
            return t;
    return NULL;
}

static const struct bench_column *column_of(const struct report_bench *b, const char *param)
{
    const struct bench_column *column = b->described->columns;

    while (column->name && strcmp(column->name, param) != 0)
        column++;
    return column;
}

bool described_flag(const struct report_bench *b, const char *param, unsigned flag)
{
    const struct bench_column *column = column_of(b, param);

    if (flag == COLUMN_BYTES && !b->described->columns->name)
        return strstr(param, "bytes") != NULL;
    return column->name && column->flags & flag;
}

const char *described_sought_by(const struct report_bench *b, const char *param)
{
    return column_of(b, param)->sought_by;
}

bool described_ignores(const struct report_bench *b, const struct bench_plot *plot,
                       const char *param)
{
    return plot && (word_in(plot->ignore, param) || described_flag(b, param, COLUMN_OUTCOME));
}

bool described_is_square(const struct bench_plot *plot, const struct report_bench *b,
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

/* A case whose launches all died before they could say what they measure may be any of those that
 * its parameters let it be. */
static bool may_match(const struct report_bench *b, const struct report_case *c, const char *where)
{
    struct subject s = {b, c, NULL};
    bool known = false;

    for (const struct bench_metric *m = b->described->metrics; m->name; m++) {
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

bool described_matches(const struct report_bench *b, const struct report_case *c, const char *where)
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

const char *described_pipe(const struct report *r, const struct report_bench *b,
                           const struct report_case *c)
{
    bool gpu = case_is_gpu(b, c);

    if (is_over_nvlink(r, b, c))
        return "NVLink";
    for (const struct bench_pipe *p = b->described->pipes; p->pipe; p++)
        if (!!(p->flags & HEADLINE_GPU) == gpu && described_matches(b, c, p->where))
            return p->pipe;
    return "Other";
}

static const struct bench_metric *metric_of(const struct report_bench *b, const char *metric)
{
    for (const struct bench_metric *m = b->described->metrics; m->name; m++)
        if (!strcmp(m->name, metric))
            return m;
    return NULL;
}

const char *described_says(const struct report_bench *b, const char *metric)
{
    const struct bench_metric *known = metric_of(b, metric);

    return known && known->says ? known->says : "";
}

bool described_more_is_better(const struct report_bench *b, const struct report_case *c)
{
    const struct bench_metric *known = metric_of(b, c->metric);

    const struct unit *unit = units_find(c->unit);

    if (known && known->better)
        return known->better == BETTER_MORE;
    return unit ? unit->higher_is_better : strstr(c->unit, "/s") != NULL;
}

/* A figure has a value, and no samples that a rule stopped. */
bool described_is_figure(const struct report *r, const struct report_bench *b,
                         const struct report_case *c)
{
    size_t values = 0, samples = 0;

    for (size_t run = 0; run < r->n_runs; run++) {
        const struct report_rows *rows = &b->rows[run];
        size_t stop = rows->table ? table_column(rows->table, "stop") : TABLE_NO_COLUMN;

        for (size_t i = 0; i < c->points[run].n_rows; i++) {
            size_t row = c->points[run].rows[i];

            values += !isnan(row_number(rows, row, FIELD_VALUE));
            samples += row_number(rows, row, FIELD_SAMPLES) > 0 &&
                       (stop == TABLE_NO_COLUMN || *table_cell(rows->table, row, stop));
        }
    }
    return values && !samples;
}

bool described_is_judged(const struct report *r, const struct report_bench *b,
                         const struct report_case *c)
{
    const struct bench_metric *known = metric_of(b, c->metric);

    return known ? !known->unjudged : !described_is_figure(r, b, c);
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
        if (described_flag(b, b->params[i], COLUMN_PLACE) && place_is_gpu(c->params[i]) &&
            strcmp(c->params[i], but) != 0)
            return c->params[i];
    return "";
}

/* "cuda:all": all GPUs together, which are no single one. */
static bool has_all_gpus(const struct report_bench *b, const struct report_case *c)
{
    for (size_t i = 0; i < b->n_params; i++) {
        const char *colon = strchr(c->params[i], ':');
        if (described_flag(b, b->params[i], COLUMN_PLACE) && colon && colon != c->params[i] &&
            !strcmp(colon, ":all"))
            return true;
    }
    return false;
}

bool case_is_gpu(const struct report_bench *b, const struct report_case *c)
{
    return *gpu_of(b, c, "") || has_all_gpus(b, c);
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
