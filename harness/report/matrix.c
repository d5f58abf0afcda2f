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

#define MATRIX_ALIKE 0.005 /* no difference that matters */

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
        struct matrix_cell *cell = &m->cells[from * m->n + to];
        *cell = (struct matrix_cell){.c = c, .point = p, .kind_median = NAN};
        cell->relation = relation_of(r, m->run, report_param(m->bench, c, "address"));
        cell->path = report_param(m->bench, c, "path");
        cell->kind = show_joined(&r->pool, cell->relation, cell->path);
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

/* The pairs of one kind. */
struct kind {
    size_t pairs, measured, slow, best, worst; /* cells */
};

static struct kind count_kind(const struct matrix *m, const char *name)
{
    size_t none = m->n * m->n;
    struct kind k = {.best = none, .worst = none};

    for (size_t i = 0; i < none; i++) {
        if (!m->cells[i].c || strcmp(m->cells[i].kind, name) != 0)
            continue;
        k.pairs++;
        if (!has_value(&m->cells[i]))
            continue;
        k.measured++;
        k.slow += m->cells[i].slow;
        k.worst = k.worst == none || is_behind(m, i, k.worst) ? i : k.worst;
        k.best = k.best == none || is_behind(m, k.best, i) ? i : k.best;
    }
    return k;
}

static const char *kind_text(struct pool *pool, const struct matrix *m, const struct kind *k,
                             const char *link)
{
    const char *pairs = pool_text(pool, "%zu pair%s", k->pairs, k->pairs == 1 ? "" : "s");
    double best = m->cells[k->best].point->value, worst = m->cells[k->worst].point->value;

    if (k->measured < k->pairs)
        pairs = pool_text(pool, "%zu of %s", k->measured, pairs);
    if (*link)
        pairs = pool_text(pool, "%s (%s)", pairs, link);
    if (k->measured == 1)
        return pool_text(pool, "%s: %s", pairs, show_number(pool, best));
    if (fabs(worst / best - 1) <= MATRIX_ALIKE)
        return pool_text(pool, "%s alike: %s", pairs, show_number(pool, best));
    pairs = pool_text(pool, "%s: %s to %s, slowest: %s -> %s", pairs, show_number(pool, best),
                      show_number(pool, worst), m->gpus[k->worst / m->n], m->gpus[k->worst % m->n]);
    return k->slow ? pool_text(pool, "%s, %zu slow for %s kind", pairs, k->slow,
                               k->slow == 1 ? "its" : "their")
                   : pairs;
}

/* The first pair of its kind that has a value, and the path that is asked for. */
static bool begins_kind(const struct matrix *m, size_t cell, const char *path)
{
    if (!has_value(&m->cells[cell]) || strcmp(m->cells[cell].path, path) != 0)
        return false;
    for (size_t i = 0; i < cell; i++)
        if (has_value(&m->cells[i]) && !strcmp(m->cells[i].kind, m->cells[cell].kind))
            return false;
    return true;
}

/* A pair that was skipped before it knew its path belongs to no kind, and would go unseen. */
static const char *pathless_text(struct pool *pool, const struct matrix *m)
{
    size_t pairs = 0, lost = 0;

    for (size_t i = 0; i < m->n * m->n; i++) {
        pairs += m->cells[i].c != NULL;
        lost += m->cells[i].c && !has_value(&m->cells[i]) && !*m->cells[i].path;
    }
    return lost ? pool_text(pool, "; in all, %zu of %zu pairs have a value", m->measured, pairs)
                : "";
}

const char *matrix_summary(struct report *r, const struct matrix *m, const struct report_case *c,
                           size_t *slow)
{
    const char *path = report_param(m->bench, c, "path"), *text = "";
    size_t kinds = 0;

    *slow = 0;
    for (size_t i = 0; i < m->n * m->n; i++)
        kinds += begins_kind(m, i, path);
    for (size_t i = 0; i < m->n * m->n; i++) {
        const struct matrix_cell *at = &m->cells[i];

        if (!begins_kind(m, i, path))
            continue;
        struct kind k = count_kind(m, at->kind);
        *slow += k.slow;
        const char *link = *at->relation ? at->relation : "link not known";
        text = pool_text(&r->pool, "%s%s%s", text, *text ? "; " : "",
                         kind_text(&r->pool, m, &k, kinds > 1 ? link : ""));
    }
    return *text ? pool_text(&r->pool, "%s%s", text, pathless_text(&r->pool, m)) : "";
}
