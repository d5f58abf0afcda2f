/* SPDX-License-Identifier: Apache-2.0 */
/* Runs, benchmarks and their columns: see model.h. Which cases there are is in cases.c, how
 * launches are combined in combine.c. */
#include "harness/report/model.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/row.h"
#include "core/units.h"
#include "harness/report/adopt.h"
#include "harness/report/cases.h"
#include "harness/report/described.h"

static const char *const field_names[FIELDS] = {
#define FIELD_NAME(name, column) [FIELD_##name] = column,
    ROW_FIELDS(FIELD_NAME)};

const char *row_text(const struct report_rows *rows, size_t row, enum row_field field)
{
    return table_cell(rows->table, row, rows->fields[field]);
}

double row_number(const struct report_rows *rows, size_t row, enum row_field field)
{
    double value;

    return units_parse_double(row_text(rows, row, field), &value) ? NAN : value;
}

double report_number(const char *text)
{
    uint64_t size;
    double number;

    if (!units_parse_size(text, &size))
        return (double)size;
    return units_parse_double(text, &number) ? NAN : number;
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

/* n_params where there is none of that name. */
static size_t index_of_param(const struct report_bench *b, const char *name)
{
    size_t i = 0;

    while (i < b->n_params && (!name || strcmp(b->params[i], name) != 0))
        i++;
    return i;
}

/* The union over the runs, which may be of different versions. */
static void list_params(struct report *r, struct report_bench *b, bool joined)
{
    size_t most = 0;

    for (size_t i = 0; i < r->n_runs; i++)
        most += b->rows[i].table ? param_count(b->rows[i].table) : 0;
    b->params = pool_alloc(&r->pool, most, sizeof(*b->params));
    b->follows = pool_alloc(&r->pool, most, sizeof(*b->follows));
    b->splits = pool_alloc(&r->pool, most, sizeof(*b->splits));
    b->sought_by = pool_alloc(&r->pool, most, sizeof(*b->sought_by));
    b->used = pool_alloc(&r->pool, most, sizeof(*b->used));
    for (size_t i = 0; i < r->n_runs; i++) {
        const struct table *t = b->rows[i].table;

        for (size_t k = 0; t && k < param_count(t); k++)
            if (index_of_param(b, t->columns[k]) == b->n_params)
                b->params[b->n_params++] = t->columns[k];
    }
    for (size_t k = 0; k < b->n_params; k++) {
        b->follows[k] = described_flag(b, b->params[k], COLUMN_OUTCOME);
        b->splits[k] = !joined && r->n_runs > 1 && described_flag(b, b->params[k], COLUMN_USED) &&
                       described_flag(b, b->params[k], COLUMN_DECIDES);
        b->sought_by[k] = index_of_param(b, described_sought_by(b, b->params[k]));
        b->used[k] = index_of_param(b, pool_text(&r->pool, "%s%s", b->params[k], ROW_USED));
    }
}

static void find_columns(struct report *r, struct report_bench *b)
{
    for (size_t i = 0; i < r->n_runs; i++) {
        struct report_rows *rows = &b->rows[i];

        if (!rows->table)
            continue;
        rows->params = pool_alloc(&r->pool, b->n_params, sizeof(*rows->params));
        for (size_t k = 0; k < b->n_params; k++)
            rows->params[k] = table_column(rows->table, b->params[k]);
        for (size_t f = 0; f < FIELDS; f++)
            rows->fields[f] = table_column(rows->table, field_names[f]);
        r->n_rows += rows->table->n_rows;
    }
}

struct report_bench *report_bench(const struct report *r, const char *name)
{
    for (size_t i = 0; i < r->n_benches; i++)
        if (!strcmp(r->benches[i].name, name))
            return &r->benches[i];
    return NULL;
}

static unsigned place_of(const struct report_bench *b)
{
    return described_order(b->described->stage);
}

static void sort_benches(struct report *r)
{
    for (size_t i = 1; i < r->n_benches; i++)
        for (size_t k = i; k && place_of(&r->benches[k]) < place_of(&r->benches[k - 1]); k--) {
            struct report_bench swapped = r->benches[k];

            r->benches[k] = r->benches[k - 1];
            r->benches[k - 1] = swapped;
        }
}

static void list_benches(struct report *r)
{
    size_t most = 0;

    for (size_t i = 0; i < r->n_runs; i++)
        most += r->runs[i].n_benches;
    r->benches = pool_alloc(&r->pool, most, sizeof(*r->benches));
    for (size_t i = 0; i < r->n_runs; i++)
        for (size_t k = 0; k < r->runs[i].n_benches; k++) {
            struct run_bench *from = &r->runs[i].benches[k];
            struct report_bench *b = report_bench(r, from->name);

            if (!from->rows.n_rows)
                continue;
            if (!b) {
                b = &r->benches[r->n_benches++];
                b->name = from->name;
                b->described = described_of(&r->described, b->name);
                b->rows = pool_alloc(&r->pool, r->n_runs, sizeof(*b->rows));
            }
            b->rows[i].table = &from->rows;
        }
    sort_benches(r);
}

/* Two runs of one name are told apart by number. */
static void name_runs(struct report *r)
{
    r->names = pool_alloc(&r->pool, r->n_runs, sizeof(*r->names));
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
}

static int build(struct report *r, bool joined, char *error, size_t len)
{
    int err = described_load(r, error, len);

    if (err)
        return err;
    name_runs(r);
    list_benches(r);
    for (size_t i = 0; i < r->n_benches; i++) {
        list_params(r, &r->benches[i], joined);
        find_columns(r, &r->benches[i]);
    }
    for (size_t run = 0; run < r->n_runs; run++)
        combine_ceilings(r, run);
    for (size_t i = 0; i < r->n_benches; i++) {
        adopt_measured(r, &r->benches[i]);
        cases_find(r, &r->benches[i]);
    }
    return 0;
}

static int load(struct report *r, const char *const *paths, size_t n, bool joined, char *error,
                size_t len)
{
    int err = 0;

    *r = (struct report){.runs = xcalloc(n, sizeof(*r->runs))};
    for (; !err && r->n_runs < n; r->n_runs += !err)
        err = run_folder_load(paths[r->n_runs], &r->runs[r->n_runs], error, len);
    return err ? err : build(r, joined, error, len);
}

int report_load(struct report *r, const char *const *paths, size_t n, char *error, size_t len)
{
    return load(r, paths, n, false, error, len);
}

int report_load_joined(struct report *r, const char *const *paths, size_t n, char *error,
                       size_t len)
{
    return load(r, paths, n, true, error, len);
}

int report_take(struct report *r, const struct run_folder *run)
{
    char error[300];

    *r = (struct report){.runs = xmemdup(run, sizeof(*run)), .n_runs = 1, .borrowed = true};
    return build(r, false, error, sizeof(error));
}

struct exam *report_exam(struct report *r, size_t run)
{
    if (!r->exams)
        r->exams = xcalloc(r->n_runs, sizeof(struct exam *));
    if (!r->exams[run])
        r->exams[run] = exam_new(json_object_get(r->runs[run].meta, "machine"));
    return r->exams[run];
}

void report_release(struct report *r)
{
    for (size_t i = 0; i < r->n_runs && r->exams; i++)
        exam_free(r->exams[i]);
    free(r->exams);
    pool_release(&r->pool);
    for (size_t i = 0; i < r->n_runs && !r->borrowed; i++)
        run_folder_release(&r->runs[i]);
    described_release(&r->described);
    free(r->runs);
    *r = (struct report){0};
}
