/* SPDX-License-Identifier: Apache-2.0 */
/* Which cases there are: see cases.h. */
#include "harness/report/cases.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/row.h"
#include "core/units.h"
#include "harness/report/described.h"
#include "harness/report/show.h"

/* ---- Keys of cases ---- */

bool case_is_made_by(const struct report_bench *b, const struct report_case *c, size_t param)
{
    return !b->follows[param] &&
           (b->sought_by[param] == b->n_params || !*c->asked[b->sought_by[param]]);
}

/* A '|' would end the part. */
static const char *key_text(struct pool *pool, const char *text)
{
    const char *kept = "";

    if (!text[strcspn(text, "|%")])
        return text;
    while (*text) {
        size_t n = strcspn(text, "|%");

        kept = pool_text(pool, "%s%.*s%s", kept, (int)n, text,
                         text[n] == '|'   ? "%7C"
                         : text[n] == '%' ? "%25"
                                          : "");
        text += n + (text[n] != 0);
    }
    return kept;
}

/* By name: another version may have its columns in another order. */
static size_t next_param(const struct report_bench *b, size_t last)
{
    size_t next = b->n_params;

    for (size_t i = 0; i < b->n_params; i++)
        if ((last == b->n_params || strcmp(b->params[i], b->params[last]) > 0) &&
            (next == b->n_params || strcmp(b->params[i], b->params[next]) < 0))
            next = i;
    return next;
}

const char *case_key(struct pool *pool, const struct report_bench *b, const struct report_case *c)
{
    const char *key = b->name;

    for (size_t i = next_param(b, b->n_params); i < b->n_params; i = next_param(b, i))
        if (*c->asked[i] && case_is_made_by(b, c, i))
            key = pool_text(pool, "%s|%s=%s", key, b->params[i], key_text(pool, c->asked[i]));
    return pool_text(pool, "%s|%s|%s", key, key_text(pool, c->metric), key_text(pool, c->unit));
}

/* One row while the cases are being found. */
struct ref {
    const struct report_bench *bench;
    size_t run, row;
    size_t
        key; /* the row whose cells say which case this one belongs to: itself, or see add_lost */
    uint64_t order; /* of the case in the suite */
};

/* "" where the launch left it to the benchmark. */
static const char *ref_cell(const struct ref *ref, size_t param)
{
    const struct report_rows *rows = &ref->bench->rows[ref->run];
    size_t n = ref->bench->n_params;

    if (param >= n)
        return row_text(rows, ref->key, param == n ? FIELD_METRIC : FIELD_UNIT);
    const char *text = table_cell(rows->table, ref->key, rows->params[param]);
    return ref->bench->used[param] < n && !strcmp(text, ROW_LEFT) ? "" : text;
}

static bool makes_case(const struct ref *ref, size_t param)
{
    const struct report_bench *b = ref->bench;

    if (param >= b->n_params)
        return true;
    if (b->splits[param])
        return true;
    return !b->follows[param] &&
           (b->sought_by[param] == b->n_params || !*ref_cell(ref, b->sought_by[param]));
}

static int compare_case(const struct ref *a, const struct ref *b)
{
    int d = 0;

    for (size_t i = 0; !d && i < a->bench->n_params + 2; i++)
        if (makes_case(a, i) || makes_case(b, i))
            d = strcmp(ref_cell(a, i), ref_cell(b, i));
    return d;
}

static int compare_refs(const void *x, const void *y)
{
    const struct ref *a = x, *b = y;
    int d = compare_case(a, b);

    if (d)
        return d;
    if (a->run != b->run)
        return a->run < b->run ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

static int compare_groups(const void *x, const void *y)
{
    const struct ref *a = *(struct ref *const *)x, *b = *(struct ref *const *)y;

    if (a->order != b->order)
        return a->order < b->order ? -1 : 1;
    if (a->run != b->run)
        return a->run < b->run ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

struct ref_list {
    struct ref *refs;
    size_t n;
};

/* Which row of its launch it is, from 0. */
static size_t place_in_launch(const struct report_rows *rows, const uint64_t *orders, size_t row)
{
    const char *repeat = row_text(rows, row, FIELD_REPEAT);
    size_t place = 0;

    while (row > 0 && orders[row - 1] == orders[row] &&
           !strcmp(row_text(rows, row - 1, FIELD_REPEAT), repeat)) {
        row--;
        place++;
    }
    return place;
}

/* A launch that died, or was skipped before it knew all its parameters, lacks some of what makes up
 * a case. It belongs to the cases that the other launches of the same case of the suite have values
 * for: to each of them, when it could not even say what it measures. Without this a crash would
 * stand apart as a case of its own, and the others would look as if nothing had happened. */
static void add_lost(struct ref_list *list, struct ref ref, const struct report_rows *rows,
                     const uint64_t *orders)
{
    bool knows = *row_text(rows, ref.row, FIELD_METRIC) != 0;
    size_t place = place_in_launch(rows, orders, ref.row), added = 0, first = 0;
    size_t n = rows->table->n_rows;

    while (first < n &&
           (orders[first] != ref.order || !isfinite(row_number(rows, first, FIELD_VALUE))))
        first++;
    const char *repeat = first < n ? row_text(rows, first, FIELD_REPEAT) : "";
    for (size_t row = first;
         row < n && orders[row] == ref.order && !strcmp(row_text(rows, row, FIELD_REPEAT), repeat);
         row++) {
        if (knows && place_in_launch(rows, orders, row) != place)
            continue;
        ref.key = row;
        *ARRAY_ADD(list->refs, list->n) = ref;
        added++;
    }
    ref.key = ref.row;
    if (!added)
        *ARRAY_ADD(list->refs, list->n) = ref;
}

static void list_run(const struct report_bench *b, size_t run, struct ref_list *list)
{
    const struct report_rows *rows = &b->rows[run];
    size_t n = rows->table ? rows->table->n_rows : 0;
    uint64_t *orders = xcalloc(n, sizeof(*orders));

    for (size_t row = 0; row < n; row++)
        units_parse_u64(row_text(rows, row, FIELD_CASE), &orders[row]);
    for (size_t row = 0; row < n; row++) {
        struct ref ref = {.bench = b, .run = run, .row = row, .key = row, .order = orders[row]};

        if (orders[row] && isnan(row_number(rows, row, FIELD_VALUE)))
            add_lost(list, ref, rows, orders);
        else
            *ARRAY_ADD(list->refs, list->n) = ref;
    }
    free(orders);
}

/* What was chosen for a parameter, where the launches that say it agree. */
static const char *agreed(const struct ref *refs, size_t n, size_t param)
{
    const char *text = "";

    for (size_t i = 0; i < n; i++) {
        const char *own = ref_cell(&refs[i], param);

        if (*own && *text && strcmp(own, text) != 0)
            return "";
        text = *own ? own : text;
    }
    return text;
}

/* "isa avx512 in 3 of 5 launches, avx2 in 2"; "" where they agree. */
static const char *chose(struct pool *pool, const struct report_bench *b, size_t run,
                         const struct report_point *p)
{
    const char **texts = pool_alloc(pool, p->n_rows, sizeof(*texts)), *all = "";

    for (size_t k = 0; k < b->n_params; k++) {
        size_t n = 0;
        bool mixed = false;

        for (size_t i = 0; b->used[k] < b->n_params && i < p->n_rows; i++) {
            const char *text =
                table_cell(b->rows[run].table, p->rows[i], b->rows[run].params[b->used[k]]);
            if (*text)
                texts[n++] = show_param(pool, b, k, text);
        }
        const char *shares = shares_text(pool, texts, n, "launches", &mixed);
        if (mixed)
            all = show_joined(pool, all, pool_text(pool, "%s %s", b->params[k], shares));
    }
    return all;
}

/* What follows from others is not known to a launch that was skipped: the first that knows it
 * tells. */
static const char *first_known(const struct ref *refs, size_t n, size_t param)
{
    for (size_t i = 0; i < n; i++)
        if (*ref_cell(&refs[i], param))
            return ref_cell(&refs[i], param);
    return "";
}

static void fill_case(struct report *r, const struct report_bench *b, struct report_case *c,
                      const struct ref *refs, size_t n)
{
    const char **asked = pool_alloc(&r->pool, b->n_params, sizeof(*asked));
    const char **params = pool_alloc(&r->pool, b->n_params, sizeof(*params));
    size_t *rows = pool_alloc(&r->pool, n, sizeof(*rows));

    c->points = pool_alloc(&r->pool, r->n_runs, sizeof(*c->points));
    for (size_t i = 0; i < b->n_params; i++) {
        asked[i] = params[i] = first_known(refs, n, i);
        if (b->used[i] < b->n_params && *first_known(refs, n, b->used[i]))
            params[i] = agreed(refs, n, b->used[i]);
    }
    c->asked = asked;
    c->params = params;
    c->metric = ref_cell(refs, b->n_params);
    c->unit = ref_cell(refs, b->n_params + 1);
    c->more_is_better = described_more_is_better(b, c);
    for (size_t i = 0; i < n; i++) {
        struct report_point *p = &c->points[refs[i].run];

        p->rows = p->n_rows ? p->rows : rows + i;
        p->n_rows++;
        rows[i] = refs[i].row;
    }
    for (size_t i = 0; i < r->n_runs; i++) {
        combine_launches(&r->pool, &b->rows[i], &c->points[i]);
        if (c->points[i].n_rows)
            c->points[i].chose = chose(&r->pool, b, i, &c->points[i]);
    }
}

/* Rows of one case stand together; cases come in the order of the suite. */
static void group_refs(struct report *r, struct report_bench *b, struct ref *refs, size_t n)
{
    struct ref **groups = xcalloc(n, sizeof(*groups));

    for (size_t i = 0; i < n; i++)
        if (!i || compare_case(&refs[i - 1], &refs[i]))
            groups[b->n_cases++] = &refs[i];
    b->cases = pool_alloc(&r->pool, b->n_cases, sizeof(*b->cases));
    qsort(groups, b->n_cases, sizeof(*groups), compare_groups);
    for (size_t i = 0; i < b->n_cases; i++) {
        size_t size = 1, left = n - (size_t)(groups[i] - refs);

        while (size < left && !compare_case(groups[i], groups[i] + size))
            size++;
        fill_case(r, b, &b->cases[i], groups[i], size);
    }
    free(groups);
}

void cases_find(struct report *r, struct report_bench *b)
{
    struct ref_list list = {0};

    for (size_t i = 0; i < r->n_runs; i++)
        list_run(b, i, &list);
    if (list.n)
        qsort(list.refs, list.n, sizeof(*list.refs), compare_refs);
    group_refs(r, b, list.refs, list.n);
    free(list.refs);
}

bool cases_differ_in(const struct report_bench *b, const struct report_case *x,
                     const struct report_case *y, const char *columns)
{
    bool differ = false;

    if (strcmp(x->metric, y->metric) != 0 || strcmp(x->unit, y->unit) != 0)
        return false;
    for (size_t i = 0; i < b->n_params; i++) {
        bool unknown = b->used[i] < b->n_params && (!*x->params[i] || !*y->params[i]);

        if (b->follows[i] || unknown || !strcmp(x->params[i], y->params[i]))
            continue;
        if (!word_in(columns, b->params[i]))
            return false;
        differ = true;
    }
    return differ;
}
