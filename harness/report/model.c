/* SPDX-License-Identifier: Apache-2.0 */
/* Which cases there are: see model.h. How launches are combined is in combine.c. */
#include "harness/report/model.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/units.h"
#include "harness/report/combine.h"
#include "harness/report/rules.h"

static const char *const field_names[FIELDS] = {
    [FIELD_METRIC] = "metric",
    [FIELD_UNIT] = "unit",
    [FIELD_VALUE] = "value",
    [FIELD_CI_LOW] = "ci_low",
    [FIELD_CI_HIGH] = "ci_high",
    [FIELD_SAMPLES] = "samples",
    [FIELD_LEVEL_LOW] = "level_low",
    [FIELD_LEVEL_LOW_SHARE] = "level_low_share",
    [FIELD_LEVEL_HIGH] = "level_high",
    [FIELD_LEVEL_HIGH_SHARE] = "level_high_share",
    [FIELD_LIMIT] = "limit",
    [FIELD_LIMIT_SOURCE] = "limit_source",
    [FIELD_PERCENT] = "percent_of_limit",
    [FIELD_ORIGIN] = "origin",
    [FIELD_STATUS] = "status",
    [FIELD_REASON] = "reason",
    [FIELD_STEAL] = "steal_percent",
    [FIELD_INVOLUNTARY] = "ctx_involuntary",
    [FIELD_MHZ_LOW] = "cpu_mhz_low",
    [FIELD_MHZ_HIGH] = "cpu_mhz_high",
    [FIELD_THROTTLE] = "throttle_events",
    [FIELD_QUOTA] = "quota_throttled_ms",
    [FIELD_DISTURBED] = "disturbed",
    [FIELD_CASE] = "case",
    [FIELD_REPEAT] = "repeat",
    [FIELD_HOST] = "host",
};

const char *row_text(const struct report_rows *rows, size_t row, enum row_field field)
{
    return table_cell(rows->table, row, rows->fields[field]);
}

double row_number(const struct report_rows *rows, size_t row, enum row_field field)
{
    double value;

    return units_parse_double(row_text(rows, row, field), &value) ? NAN : value;
}

bool report_higher_is_better(const char *unit)
{
    const struct unit *known = units_find(unit);

    return known ? known->higher_is_better : strstr(unit, "/s") != NULL;
}

const char *report_param(const struct report_bench *b, const struct report_case *c,
                         const char *name)
{
    for (size_t i = 0; i < b->n_params; i++)
        if (!strcmp(b->params[i], name))
            return c->params[i];
    return "";
}

/* The parameters of a table are the columns before the metric. */
static size_t param_count(const struct table *t)
{
    size_t metric = table_column(t, "metric");

    return metric == TABLE_NO_COLUMN ? 0 : metric;
}

static bool has_param(const struct report_bench *b, const char *name)
{
    for (size_t i = 0; i < b->n_params; i++)
        if (!strcmp(b->params[i], name))
            return true;
    return false;
}

/* The union over the runs, which may be of different versions. */
static int list_params(struct report *r, struct report_bench *b)
{
    size_t most = 0;

    for (size_t i = 0; i < r->n_runs; i++)
        most += b->rows[i].table ? param_count(b->rows[i].table) : 0;
    b->params = pool_alloc(&r->pool, most, sizeof(*b->params));
    if (!b->params)
        return -ENOMEM;
    for (size_t i = 0; i < r->n_runs; i++) {
        const struct table *t = b->rows[i].table;

        for (size_t k = 0; t && k < param_count(t); k++)
            if (!has_param(b, t->columns[k]))
                b->params[b->n_params++] = t->columns[k];
    }
    return 0;
}

static int find_columns(struct report *r, struct report_bench *b)
{
    for (size_t i = 0; i < r->n_runs; i++) {
        struct report_rows *rows = &b->rows[i];

        if (!rows->table)
            continue;
        rows->params = pool_alloc(&r->pool, b->n_params, sizeof(*rows->params));
        if (!rows->params)
            return -ENOMEM;
        for (size_t k = 0; k < b->n_params; k++)
            rows->params[k] = table_column(rows->table, b->params[k]);
        for (size_t f = 0; f < FIELDS; f++)
            rows->fields[f] = table_column(rows->table, field_names[f]);
        r->n_rows += rows->table->n_rows;
    }
    return 0;
}

/* One row while the cases are being found. */
struct ref {
    const struct report_bench *bench;
    size_t run, row;
    size_t
        key; /* the row whose cells say which case this one belongs to: itself, or see add_lost */
    uint64_t order; /* of the case in the suite */
};

static const char *ref_cell(const struct ref *ref, size_t param)
{
    const struct report_rows *rows = &ref->bench->rows[ref->run];
    size_t n = ref->bench->n_params;

    if (param < n)
        return table_cell(rows->table, ref->key, rows->params[param]);
    return row_text(rows, ref->key, param == n ? FIELD_METRIC : FIELD_UNIT);
}

static int compare_case(const struct ref *a, const struct ref *b)
{
    int d = 0;

    for (size_t i = 0; !d && i < a->bench->n_params + 2; i++)
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
    size_t n, room;
};

static int add_ref(struct ref_list *list, struct ref ref)
{
    if (list->n == list->room) {
        size_t room = list->room ? list->room * 2 : 256;
        struct ref *grown = realloc(list->refs, room * sizeof(*grown));

        if (!grown)
            return -ENOMEM;
        list->refs = grown;
        list->room = room;
    }
    list->refs[list->n++] = ref;
    return 0;
}

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

/* A launch that died, or was skipped before it knew all its parameters, lacks some of what makes up a case. It belongs to the cases that the
 * other launches of the same case of the suite have values for: to each of them, when it could not even say what it measures. Without this a
 * crash would stand apart as a case of its own, and the others would look as if nothing had happened. */
static int add_lost(struct ref_list *list, struct ref ref, const struct report_rows *rows,
                    const uint64_t *orders)
{
    bool knows = *row_text(rows, ref.row, FIELD_METRIC) != 0;
    size_t place = place_in_launch(rows, orders, ref.row), added = 0, first = 0;
    size_t n = rows->table->n_rows;
    int err = 0;

    while (first < n &&
           (orders[first] != ref.order || !isfinite(row_number(rows, first, FIELD_VALUE))))
        first++;
    const char *repeat = first < n ? row_text(rows, first, FIELD_REPEAT) : "";
    for (size_t row = first; !err && row < n && orders[row] == ref.order &&
                             !strcmp(row_text(rows, row, FIELD_REPEAT), repeat);
         row++) {
        if (knows && place_in_launch(rows, orders, row) != place)
            continue;
        ref.key = row;
        err = add_ref(list, ref);
        added++;
    }
    ref.key = ref.row;
    return err || added ? err : add_ref(list, ref);
}

static int list_run(const struct report_bench *b, size_t run, struct ref_list *list)
{
    const struct report_rows *rows = &b->rows[run];
    size_t n = rows->table ? rows->table->n_rows : 0;
    uint64_t *orders = calloc(n + 1, sizeof(*orders));
    int err = orders ? 0 : -ENOMEM;

    for (size_t row = 0; !err && row < n; row++)
        units_parse_u64(row_text(rows, row, FIELD_CASE), &orders[row]);
    for (size_t row = 0; !err && row < n; row++) {
        struct ref ref = {.bench = b, .run = run, .row = row, .key = row, .order = orders[row]};
        bool lost = orders[row] && isnan(row_number(rows, row, FIELD_VALUE));

        err = lost ? add_lost(list, ref, rows, orders) : add_ref(list, ref);
    }
    free(orders);
    return err;
}

static int list_refs(const struct report *r, const struct report_bench *b, struct ref_list *list)
{
    int err = 0;

    for (size_t i = 0; !err && i < r->n_runs; i++)
        err = list_run(b, i, list);
    if (!err && list->n)
        qsort(list->refs, list->n, sizeof(*list->refs), compare_refs);
    return err;
}

static int fill_case(struct report *r, const struct report_bench *b, struct report_case *c,
                     const struct ref *refs, size_t n)
{
    const char **params = pool_alloc(&r->pool, b->n_params, sizeof(*params));
    size_t *rows = pool_alloc(&r->pool, n, sizeof(*rows));

    c->points = pool_alloc(&r->pool, r->n_runs, sizeof(*c->points));
    if (!params || !rows || !c->points)
        return -ENOMEM;
    for (size_t i = 0; i < b->n_params; i++)
        params[i] = ref_cell(refs, i);
    c->params = params;
    c->metric = ref_cell(refs, b->n_params);
    c->unit = ref_cell(refs, b->n_params + 1);
    for (size_t i = 0; i < n; i++) {
        struct report_point *p = &c->points[refs[i].run];

        p->rows = p->n_rows ? p->rows : rows + i;
        p->n_rows++;
        rows[i] = refs[i].row;
    }
    for (size_t i = 0; i < r->n_runs; i++)
        combine_launches(&r->pool, &b->rows[i], &c->points[i]);
    return 0;
}

/* Rows of one case stand together; cases come in the order of the suite. */
static int group_refs(struct report *r, struct report_bench *b, struct ref *refs, size_t n)
{
    struct ref **groups = calloc(n + 1, sizeof(*groups));
    int err = groups ? 0 : -ENOMEM;

    for (size_t i = 0; !err && i < n; i++)
        if (!i || compare_case(&refs[i - 1], &refs[i]))
            groups[b->n_cases++] = &refs[i];
    b->cases = pool_alloc(&r->pool, b->n_cases, sizeof(*b->cases));
    if (!b->cases)
        err = -ENOMEM;
    if (!err)
        qsort(groups, b->n_cases, sizeof(*groups), compare_groups);
    for (size_t i = 0; !err && i < b->n_cases; i++) {
        size_t size = 1, left = n - (size_t)(groups[i] - refs);

        while (size < left && !compare_case(groups[i], groups[i] + size))
            size++;
        err = fill_case(r, b, &b->cases[i], groups[i], size);
    }
    free(groups);
    return err;
}

static int find_cases(struct report *r, struct report_bench *b)
{
    struct ref_list list = {0};
    int err = list_refs(r, b, &list);

    if (!err)
        err = group_refs(r, b, list.refs, list.n);
    free(list.refs);
    return err;
}

static struct report_bench *find_bench(const struct report *r, const char *name)
{
    for (size_t i = 0; i < r->n_benches; i++)
        if (!strcmp(r->benches[i].name, name))
            return &r->benches[i];
    return NULL;
}

static void sort_benches(struct report *r)
{
    for (size_t i = 1; i < r->n_benches; i++)
        for (size_t k = i; k && rule_place(r->benches[k].name) < rule_place(r->benches[k - 1].name);
             k--) {
            struct report_bench swapped = r->benches[k];

            r->benches[k] = r->benches[k - 1];
            r->benches[k - 1] = swapped;
        }
}

static int list_benches(struct report *r)
{
    size_t most = 0;

    for (size_t i = 0; i < r->n_runs; i++)
        most += r->runs[i].n_benches;
    r->benches = pool_alloc(&r->pool, most, sizeof(*r->benches));
    if (!r->benches)
        return -ENOMEM;
    for (size_t i = 0; i < r->n_runs; i++)
        for (size_t k = 0; k < r->runs[i].n_benches; k++) {
            struct run_bench *from = &r->runs[i].benches[k];
            struct report_bench *b = find_bench(r, from->name);

            if (!from->rows.n_rows)
                continue;
            if (!b) {
                b = &r->benches[r->n_benches++];
                b->name = from->name;
                b->rows = pool_alloc(&r->pool, r->n_runs, sizeof(*b->rows));
            }
            if (!b->rows)
                return -ENOMEM;
            b->rows[i].table = &from->rows;
        }
    sort_benches(r);
    return 0;
}

/* Two runs of one name are told apart by number. */
static int name_runs(struct report *r)
{
    r->names = pool_alloc(&r->pool, r->n_runs, sizeof(*r->names));
    if (!r->names)
        return -ENOMEM;
    for (size_t i = 0; i < r->n_runs; i++) {
        const char *name = json_string_value(json_object_get(r->runs[i].meta, "run"));
        size_t same = 1;

        name = name && *name ? name : "unnamed";
        for (size_t k = 0; k < i; k++) {
            const char *other = json_string_value(json_object_get(r->runs[k].meta, "run"));
            same += !strcmp(other && *other ? other : "unnamed", name);
        }
        r->names[i] = same > 1 ? pool_text(&r->pool, "%s (%zu)", name, same) : name;
    }
    return 0;
}

static int build(struct report *r)
{
    int err = name_runs(r);

    if (!err)
        err = list_benches(r);
    for (size_t i = 0; !err && i < r->n_benches; i++) {
        err = list_params(r, &r->benches[i]);
        if (!err)
            err = find_columns(r, &r->benches[i]);
        if (!err)
            err = find_cases(r, &r->benches[i]);
    }
    return err || r->pool.failed ? -ENOMEM : 0;
}

int report_load(struct report *r, const char *const *paths, size_t n, char *error, size_t len)
{
    int err = 0;

    *r = (struct report){0};
    r->runs = calloc(n, sizeof(*r->runs));
    if (!r->runs)
        err = -ENOMEM;
    for (; !err && r->n_runs < n; r->n_runs += !err)
        err = run_folder_load(paths[r->n_runs], &r->runs[r->n_runs], error, len);
    if (!err)
        err = build(r);
    if (err == -ENOMEM)
        snprintf(error, len, "out of memory");
    return err;
}

int report_take(struct report *r, const struct run_folder *run)
{
    *r = (struct report){0};
    r->runs = calloc(1, sizeof(*r->runs));
    if (!r->runs)
        return -ENOMEM;
    r->runs[0] = *run;
    r->n_runs = 1;
    r->borrowed = true;
    return build(r);
}

void report_release(struct report *r)
{
    pool_release(&r->pool);
    for (size_t i = 0; i < r->n_runs && !r->borrowed; i++)
        run_folder_release(&r->runs[i]);
    free(r->runs);
    *r = (struct report){0};
}
