/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices of copies between GPUs: see matrix.h. */
#include "harness/report/matrix.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/stats.h"
#include "harness/report/rules.h"
#include "harness/report/show.h"

static bool is_end(const char *param)
{
    return !strcmp(param, "source") || !strcmp(param, "destination");
}

/* Do two cases differ in their ends alone? */
static bool same_matrix(const struct report_bench *b, const struct report_case *x,
                        const struct report_case *y)
{
    if (strcmp(x->metric, y->metric) != 0 || strcmp(x->unit, y->unit) != 0)
        return false;
    for (size_t i = 0; i < b->n_params; i++)
        if (!b->follows[i] && !is_end(b->params[i]) && strcmp(x->params[i], y->params[i]) != 0)
            return false;
    return true;
}

static bool is_in(const struct report_bench *b, const struct report_case *c, size_t run)
{
    return case_is_pair(b, c) && c->points[run].n_rows > 0 && *c->metric;
}

/* cuda:2 before cuda:10. */
static int by_gpu(const void *x, const void *y)
{
    const char *a = *(const char *const *)x, *b = *(const char *const *)y;
    unsigned long m = strtoul(strchr(a, ':') + 1, NULL, 10);
    unsigned long n = strtoul(strchr(b, ':') + 1, NULL, 10);

    return m != n ? (m < n ? -1 : 1) : strcmp(a, b);
}

static void add_gpu(const char **gpus, size_t *n, const char *name)
{
    for (size_t i = 0; i < *n; i++)
        if (!strcmp(gpus[i], name))
            return;
    if (*n < MATRIX_GPUS_MAX)
        gpus[(*n)++] = name;
}

/* The GPUs that any pair of this run names: a matrix in which some lack shows that they do. */
static size_t list_gpus(const struct report_bench *b, size_t run, const char **gpus)
{
    size_t n = 0;

    for (size_t i = 0; i < b->n_cases; i++) {
        if (!is_in(b, &b->cases[i], run))
            continue;
        add_gpu(gpus, &n, report_param(b, &b->cases[i], "source"));
        add_gpu(gpus, &n, report_param(b, &b->cases[i], "destination"));
    }
    if (n)
        qsort(gpus, n, sizeof(*gpus), by_gpu);
    return n;
}

static size_t index_of(const struct matrix *m, const char *gpu)
{
    size_t i = 0;

    while (i < m->n && strcmp(m->gpus[i], gpu) != 0)
        i++;
    return i;
}

static const char *string_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

static bool is_pair_of(const json_t *pair, const char *address)
{
    const char *a = string_of(pair, "a"), *b = string_of(pair, "b");
    size_t n = strcspn(address, "+");

    if (!*a || !*b || address[n] != '+')
        return false;
    return (strlen(a) == n && !memcmp(a, address, n) && !strcmp(address + n + 1, b)) ||
           (strlen(b) == n && !memcmp(b, address, n) && !strcmp(address + n + 1, a));
}

/* How the probe says that the two GPUs of a row are joined. */
static const char *relation_of(struct report *r, size_t run, const char *address)
{
    const json_t *machine = json_object_get(r->runs[run].meta, "machine");
    const json_t *pairs = json_object_get(json_object_get(machine, "gpus"), "pairs");
    const json_t *pair;
    size_t i;

    json_array_foreach (pairs, i, pair) {
        long long links = json_integer_value(json_object_get(pair, "nvlinks"));

        if (is_pair_of(pair, address))
            return links > 0 ? pool_text(&r->pool, "%lld NVLink%s", links, links > 1 ? "s" : "")
                             : string_of(pair, "relation");
    }
    return "";
}

static const char *kind_of(struct report *r, const struct matrix *m, const struct report_case *c)
{
    const char *known = relation_of(r, m->run, report_param(m->bench, c, "address"));

    return show_joined(&r->pool, known, report_param(m->bench, c, "path"));
}

static void fill_cells(struct report *r, struct matrix *m, const struct report_case *first)
{
    for (size_t i = 0; i < m->bench->n_cases; i++) {
        const struct report_case *c = &m->bench->cases[i];
        const struct report_point *p = &c->points[m->run];

        if (!is_in(m->bench, c, m->run) || !same_matrix(m->bench, first, c))
            continue;
        size_t from = index_of(m, report_param(m->bench, c, "source"));
        size_t to = index_of(m, report_param(m->bench, c, "destination"));
        if (from == m->n || to == m->n)
            continue;
        m->cells[from * m->n + to] =
            (struct matrix_cell){.c = c, .point = p, .kind = kind_of(r, m, c), .kind_median = NAN};
        if (isnan(p->value))
            continue;
        m->measured++;
        m->high = isnan(m->high) ? p->value : fmax(m->high, p->value);
    }
}

static bool has_value(const struct matrix_cell *cell)
{
    return cell->c && !isnan(cell->point->value);
}

static void judge_cell(struct matrix *m, size_t cell, double *scratch)
{
    struct matrix_cell *at = &m->cells[cell];
    size_t n = 0;

    if (!has_value(at))
        return;
    for (size_t i = 0; i < m->n * m->n; i++)
        if (has_value(&m->cells[i]) && !strcmp(m->cells[i].kind, at->kind))
            scratch[n++] = m->cells[i].point->value;
    if (n < MATRIX_KIND_MIN)
        return;
    at->kind_median = stats_median(scratch, n);
    double behind = report_higher_is_better(m->unit) ? 1 - at->point->value / at->kind_median
                                                     : at->point->value / at->kind_median - 1;
    at->slow = behind > MATRIX_SLOW;
    m->slow += at->slow;
}

static const char *title_of(struct report *r, const struct report_bench *b,
                            const struct report_case *c)
{
    const char *text = "";

    for (size_t i = 0; i < b->n_params; i++)
        if (!b->follows[i] && !is_end(b->params[i]))
            text = show_joined(&r->pool, text, show_full_param(&r->pool, b, i, c->params[i]));
    return text;
}

static int make_one(struct report *r, const struct report_bench *b, size_t run,
                    const struct report_case *first, struct matrix *m)
{
    *m = (struct matrix){.bench = b, .run = run, .metric = first->metric, .unit = first->unit};
    m->high = NAN;
    m->title = title_of(r, b, first);
    m->gpus = pool_alloc(&r->pool, MATRIX_GPUS_MAX, sizeof(*m->gpus));
    if (!m->gpus)
        return -ENOMEM;
    m->n = list_gpus(b, run, m->gpus);
    m->cells = pool_alloc(&r->pool, m->n * m->n, sizeof(*m->cells));
    double *scratch = calloc(m->n * m->n + 1, sizeof(*scratch));
    if (!m->cells || !scratch) {
        free(scratch);
        return -ENOMEM;
    }
    fill_cells(r, m, first);
    for (size_t i = 0; i < m->n * m->n; i++)
        judge_cell(m, i, scratch);
    free(scratch);
    return 0;
}

static bool is_first(const struct report_bench *b, size_t run, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (is_in(b, &b->cases[i], run) && same_matrix(b, &b->cases[i], &b->cases[index]))
            return false;
    return is_in(b, &b->cases[index], run);
}

int matrices_make(struct report *r, struct matrices *out)
{
    size_t most = 0;
    int err = 0;

    for (size_t b = 0; b < r->n_benches; b++)
        for (size_t run = 0; run < r->n_runs; run++)
            for (size_t i = 0; i < r->benches[b].n_cases; i++)
                most += is_first(&r->benches[b], run, i);
    *out = (struct matrices){.all = pool_alloc(&r->pool, most, sizeof(*out->all))};
    if (!out->all)
        return -ENOMEM;
    for (size_t b = 0; b < r->n_benches; b++)
        for (size_t run = 0; run < r->n_runs; run++)
            for (size_t i = 0; !err && i < r->benches[b].n_cases; i++) {
                struct matrix *m = &out->all[out->n];

                if (!is_first(&r->benches[b], run, i))
                    continue;
                err = make_one(r, &r->benches[b], run, &r->benches[b].cases[i], m);
                out->n += !err && m->measured > 0;
            }
    return err || r->pool.failed ? -ENOMEM : 0;
}

const char *matrix_slow_text(struct report *r, const struct matrix *m, size_t cell)
{
    const struct matrix_cell *at = &m->cells[cell];
    double change = at->point->value / at->kind_median - 1;

    return pool_text(&r->pool, "%s -> %s is %s %s the median of its kind (%s%s%s %s)",
                     m->gpus[cell / m->n], m->gpus[cell % m->n],
                     show_percent(&r->pool, 100 * fabs(change)), change < 0 ? "below" : "above",
                     at->kind, *at->kind ? ": " : "", show_number(&r->pool, at->kind_median),
                     m->unit);
}

bool matrix_holds(const struct matrix *m, const struct report_case *c, size_t run)
{
    for (size_t i = 0; m->run == run && i < m->n * m->n; i++)
        if (m->cells[i].c == c)
            return true;
    return false;
}

static bool is_behind(const struct matrix *m, size_t cell, size_t than)
{
    double x = m->cells[cell].point->value, y = m->cells[than].point->value;

    return report_higher_is_better(m->unit) ? x < y : x > y;
}

const char *matrix_summary(struct report *r, const struct matrix *m)
{
    struct pool *pool = &r->pool;
    size_t worst = m->n * m->n, best = worst;

    for (size_t i = 0; i < m->n * m->n; i++) {
        if (!has_value(&m->cells[i]))
            continue;
        worst = worst == m->n * m->n || is_behind(m, i, worst) ? i : worst;
        best = best == m->n * m->n || is_behind(m, best, i) ? i : best;
    }
    if (worst == m->n * m->n)
        return "";
    const char *text =
        pool_text(pool, "%zu of %zu pairs: %s to %s, the last is %s -> %s", m->measured,
                  m->n * (m->n - 1), show_number(pool, m->cells[best].point->value),
                  show_number(pool, m->cells[worst].point->value), m->gpus[worst / m->n],
                  m->gpus[worst % m->n]);
    return m->slow ? pool_text(pool, "%s; %zu slow for their kind", text, m->slow) : text;
}
