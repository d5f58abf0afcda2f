/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of cases: see pairs_parts.h. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/units.h"
#include "harness/compare/pairs_parts.h"
#include "harness/report/case_key.h"
#include "harness/report/show.h"
#include "harness/report/told.h"

/* Which parameters differ among the cases of one metric. */
struct variety {
    const char *metric;
    const struct report_case *first;
    bool *differs;
    size_t n_cases;
};

static struct variety *variety_of(struct variety *all, size_t *n, const struct report_case *c)
{
    for (size_t i = 0; i < *n; i++)
        if (!strcmp(all[i].metric, c->metric))
            return &all[i];
    return &all[(*n)++];
}

static int list_varieties(struct pool *pool, const struct report_bench *b, struct variety **all,
                          size_t *n)
{
    *n = 0;
    *all = pool_alloc(pool, b->n_cases, sizeof(**all));
    for (size_t k = 0; *all && k < b->n_cases; k++) {
        const struct report_case *c = &b->cases[k];
        struct variety *t = variety_of(*all, n, c);

        if (!t->n_cases++) {
            t->metric = c->metric;
            t->first = c;
            t->differs = pool_alloc(pool, b->n_params, sizeof(bool));
            if (!t->differs)
                return -ENOMEM;
        }
        for (size_t i = 0; i < b->n_params; i++)
            t->differs[i] = t->differs[i] || strcmp(c->params[i], t->first->params[i]) != 0;
    }
    return *all ? 0 : -ENOMEM;
}

/* Of equal m, n and k one is enough. */
static bool is_square_side(const struct bench_plot *hint, const struct report_bench *b,
                           const struct report_case *c, size_t param)
{
    return hint && hint->square && word_in(hint->square, b->params[param]) &&
           strcmp(hint->x, b->params[param]) != 0 && told_is_square(hint, b, c);
}

/* Of a case that stands alone, what the plots are drawn by. */
static bool is_said(const struct report_bench *b, const struct report_case *c, size_t param,
                    const struct variety *t)
{
    const struct bench_plot *hint = told_plot_of(b, c);

    if (!*c->params[param] || !case_is_made_by(b, c, param) ||
        told_ignores(b, hint, b->params[param]) || is_square_side(hint, b, c, param))
        return false;
    if (t->n_cases > 1)
        return t->differs[param];
    return !hint || !strcmp(hint->x, b->params[param]) || word_in(hint->lines, b->params[param]);
}

static bool is_ambiguous(const struct report_bench *b, const struct report_case *c, size_t param,
                         const struct variety *t)
{
    for (size_t i = 0; i < b->n_params; i++)
        if (i != param && !strcmp(c->params[i], c->params[param]) && is_said(b, c, i, t))
            return true;
    return false;
}

static const char *size_text(struct pool *pool, const struct report_bench *b, size_t param,
                             const char *value)
{
    char size[32];
    uint64_t bytes;

    if (!told_flag(b, b->params[param], COLUMN_BYTES) || units_parse_u64(value, &bytes))
        return "";
    return pool_text(pool, "%s", units_format_bytes(bytes, size, sizeof(size)));
}

/* "triad", "64 KiB", "2 threads", "node 1", "from node0"; full: always with its name. */
static const char *param_text(struct pool *pool, const struct report_bench *b, size_t param,
                              const char *value, bool full)
{
    const char *name = b->params[param], *size = size_text(pool, b, param, value);
    size_t len = strlen(name);
    double number;

    if (*size)
        return !full && !strcmp(name, "size") ? size : pool_text(pool, "%s %s", name, size);
    if (full)
        return pool_text(pool, "%s %s", name, value);
    if (!units_parse_double(value, &number) && len > 1 && name[len - 1] == 's')
        return pool_text(pool, "%s %.*s", value, (int)(strcmp(value, "1") ? len : len - 1), name);
    return show_named_param(pool, b, param, value);
}

static const char *case_label(struct pool *pool, const struct report_bench *b,
                              const struct report_case *c, const struct variety *t)
{
    const char *text = "";

    for (size_t i = 0; i < b->n_params; i++)
        if (is_said(b, c, i, t))
            text = show_joined(pool, text,
                               param_text(pool, b, i, c->params[i], is_ambiguous(b, c, i, t)));
    return pool_text(pool, "%s%s%s%s%s", b->name, *text ? " " : "", text, *c->metric ? ": " : "",
                     c->metric);
}

static int compare_labels(const void *x, const void *y)
{
    const struct pair *a = *(struct pair *const *)x, *b = *(struct pair *const *)y;

    return strcmp(a->label, b->label);
}

/* Two cases whose labels read the same are told apart by their keys. */
static int part_labels(struct pairs *p)
{
    struct pair **sorted = calloc(p->n + 1, sizeof(*sorted));

    if (!sorted)
        return -ENOMEM;
    for (size_t i = 0; i < p->n; i++)
        sorted[i] = &p->all[i];
    qsort(sorted, p->n, sizeof(*sorted), compare_labels);
    for (size_t i = 0; i < p->n;) {
        size_t end = i + 1;
        const char *label = sorted[i]->label;

        while (end < p->n && !strcmp(sorted[end]->label, label))
            end++;
        for (size_t k = i; k < end && end > i + 1; k++)
            sorted[k]->label = sorted[k]->key;
        i = end;
    }
    free(sorted);
    return 0;
}

int pairs_label(struct pairs *p)
{
    struct pool *pool = &p->report.pool;
    struct variety *all = NULL;
    size_t n = 0;
    int err = 0;

    for (size_t i = 0; !err && i < p->n; i++) {
        struct pair *pair = &p->all[i];

        if (!i || pair->bench != p->all[i - 1].bench)
            err = list_varieties(pool, pair->bench, &all, &n);
        if (!err)
            pair->label = case_label(pool, pair->bench, pair->c, variety_of(all, &n, pair->c));
    }
    return err ? err : part_labels(p);
}
