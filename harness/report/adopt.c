/* SPDX-License-Identifier: Apache-2.0 */
/* Which measured case an imported row is of: see adopt.h. */
#include "harness/report/adopt.h"

#include <fnmatch.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "harness/report/described.h"
#include "harness/report/show.h"

/* A row of a run. */
struct run_row {
    const struct report_bench *b;
    size_t run, row;
};

static const char *cell(const struct run_row *at, size_t param)
{
    const struct report_rows *rows = &at->b->rows[at->run];

    return table_cell(rows->table, at->row, rows->params[param]);
}

static const char *text(const struct run_row *at, enum row_field field)
{
    return row_text(&at->b->rows[at->run], at->row, field);
}

static bool is_imported(const struct run_row *at)
{
    return !strcmp(text(at, FIELD_ORIGIN), "imported");
}

static bool is_pattern(const char *cell)
{
    return strchr(cell, '*') != NULL;
}

static bool has_pattern(const struct run_row *at)
{
    for (size_t i = 0; i < at->b->n_params; i++)
        if (!at->b->follows[i] && is_pattern(cell(at, i)))
            return true;
    return false;
}

/* Of what follows from the others only what both tell counts, what was chosen among it. What decides
 * makes no other case: it is a comparison that is refused, which says so. */
static bool agrees(const struct report_bench *b, size_t param, const char *known, const char *value)
{
    if (b->follows[param])
        return !*known || !*value || !strcmp(known, value) ||
               described_flag(b, b->params[param], COLUMN_DECIDES);
    return is_pattern(known) ? !fnmatch(known, value, 0) : !strcmp(known, value);
}

static bool may_be(const struct run_row *imported, const struct run_row *measured)
{
    bool may = !is_imported(measured) && *text(measured, FIELD_METRIC) &&
               !strcmp(text(imported, FIELD_METRIC), text(measured, FIELD_METRIC)) &&
               !strcmp(text(imported, FIELD_UNIT), text(measured, FIELD_UNIT));

    for (size_t i = 0; may && i < imported->b->n_params; i++)
        may = agrees(imported->b, i, cell(imported, i), cell(measured, i));
    return may;
}

/* Are two rows of one case, by the parameters that make it? */
static bool same_case(const struct run_row *x, const struct run_row *y)
{
    bool same = !strcmp(text(x, FIELD_METRIC), text(y, FIELD_METRIC)) &&
                !strcmp(text(x, FIELD_UNIT), text(y, FIELD_UNIT));

    for (size_t i = 0; same && i < x->b->n_params; i++)
        same = x->b->follows[i] || !strcmp(cell(x, i), cell(y, i));
    return same;
}

static size_t rows_in(const struct report_bench *b, size_t run)
{
    return b->rows[run].table ? b->rows[run].table->n_rows : 0;
}

/* The measured row that it is of. False: there is none, or they are of several cases. */
static bool find_one(const struct report *r, const struct run_row *imported, struct run_row *found)
{
    bool one = false;

    for (size_t run = 0; run < r->n_runs; run++)
        for (size_t row = 0; row < rows_in(imported->b, run); row++) {
            struct run_row at = {imported->b, run, row};

            if (!may_be(imported, &at))
                continue;
            if (one && !same_case(found, &at))
                return false;
            *found = at;
            one = true;
        }
    return one;
}

struct adoption {
    struct run_row row, of;
    bool wanted, shared;
};

/* Of one run: all rows with patterns, and who they are of. */
static size_t find_all(const struct report *r, const struct report_bench *b, size_t run,
                       struct adoption *all)
{
    size_t n = 0;

    for (size_t row = 0; row < rows_in(b, run); row++) {
        struct adoption a = {.row = {b, run, row}};

        if (!is_imported(&a.row) || !has_pattern(&a.row))
            continue;
        a.wanted = find_one(r, &a.row, &a.of);
        all[n++] = a;
    }
    return n;
}

/* Another row of the run that tells other things of itself is of the same case. */
static bool is_shared(const struct adoption *all, size_t n, const struct adoption *a)
{
    for (size_t row = 0; row < rows_in(a->row.b, a->row.run); row++) {
        struct run_row at = {a->row.b, a->row.run, row};

        if (same_case(&at, &a->of))
            return true;
    }
    for (size_t i = 0; i < n; i++)
        if (all[i].wanted && !same_case(&all[i].row, &a->row) && same_case(&all[i].of, &a->of))
            return true;
    return false;
}

static void adopt(const struct adoption *a)
{
    const struct report_rows *rows = &a->row.b->rows[a->row.run];
    char **cells = rows->table->cells + a->row.row * rows->table->n_columns;

    for (size_t i = 0; i < a->row.b->n_params; i++)
        if (rows->params[i] != TABLE_NO_COLUMN && is_pattern(cells[rows->params[i]]))
            cells[rows->params[i]] = (char *)cell(&a->of, i);
}

void adopt_measured(struct report *r, struct report_bench *b)
{
    for (size_t run = 0; run < r->n_runs; run++) {
        struct adoption *all = xcalloc(rows_in(b, run), sizeof(*all));
        size_t n = find_all(r, b, run, all);
        for (size_t i = 0; i < n; i++)
            all[i].shared = all[i].wanted && is_shared(all, n, &all[i]);
        for (size_t i = 0; i < n; i++)
            if (all[i].wanted && !all[i].shared)
                adopt(&all[i]);
        free(all);
    }
}

/* ---- What it may be ---- */

static bool case_may_be(const struct report_bench *b, const struct report_case *c,
                        const struct report_case *o, size_t first, size_t end)
{
    bool may = o != c && !strcmp(c->metric, o->metric) && !strcmp(c->unit, o->unit), has = false;

    for (size_t run = first; run < end; run++)
        has = has || o->points[run].n_values;
    for (size_t i = 0; may && i < b->n_params; i++)
        may = agrees(b, i, c->params[i], o->params[i]);
    return may && has;
}

/* Each value that the cases have of a parameter: "1 or 128". */
static const char *values_of(struct report *r, const struct report_bench *b,
                             const struct report_case *const *cases, size_t n, size_t param)
{
    const char *values = "";
    size_t found = 0;

    for (size_t i = 0; i < n; i++) {
        const char *value = cases[i]->params[param];
        bool seen = false;

        for (size_t k = 0; k < i; k++)
            seen = seen || !strcmp(cases[k]->params[param], value);
        if (seen || ++found > 4)
            continue;
        values = pool_text(&r->pool, "%s%s%s", values, found > 1 ? " or " : "",
                           *value ? show_param(&r->pool, b, param, value) : "none");
    }
    return found < 2 ? ""
                     : pool_text(&r->pool, "%s %s%s", b->params[param], values,
                                 found > 4 ? " or others" : "");
}

const char *adopt_candidates(struct report *r, const struct report_bench *b,
                             const struct report_case *c, size_t first, size_t end)
{
    const struct report_case **cases = pool_alloc(&r->pool, b->n_cases + 1, sizeof(const void *));
    const char *list = "";
    bool pattern = false;
    size_t n = 0;

    for (size_t i = 0; i < b->n_params; i++)
        pattern = pattern || (!b->follows[i] && is_pattern(c->params[i]));
    for (size_t i = 0; pattern && i < b->n_cases; i++)
        if (case_may_be(b, c, &b->cases[i], first, end))
            cases[n++] = &b->cases[i];
    for (size_t i = 0; n && i < b->n_params; i++) {
        const char *values = b->follows[i] ? "" : values_of(r, b, cases, n, i);

        list = *values ? show_joined(&r->pool, list, values) : list;
    }
    if (n == 1) /* imported itself, or another row may be it as well */
        return "one that it may be, and it is not sure";
    return n ? pool_text(&r->pool, "several that it may be, %zu cases%s%s", n, *list ? ": " : "",
                         list)
             : "";
}
