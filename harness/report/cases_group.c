/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of cases: see cases_group.h. */
#include "harness/report/cases_group.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/condition.h"

static const char *column_name(const struct report_bench *b, size_t column)
{
    return column < b->n_params ? b->params[column] : column == b->n_params ? "metric" : "unit";
}

static const char *column_text(const struct report_bench *b, const struct report_case *c,
                               size_t column)
{
    return column < b->n_params ? c->params[column] : column == b->n_params ? c->metric : c->unit;
}

const char *cases_by(const struct report_bench *b, const struct report_case *c, size_t column,
                     const void *arg)
{
    return word_in(arg, column_name(b, column)) ? column_text(b, c, column) : "";
}

const char *cases_but(const struct report_bench *b, const struct report_case *c, size_t column,
                      const void *arg)
{
    bool out = (column < b->n_params && b->follows[column]) || word_in(arg, column_name(b, column));

    return out ? "" : column_text(b, c, column);
}

struct member {
    const struct report_case *c;
    const char **columns;
    size_t n_columns;
    size_t first; /* place of the first member of its group */
};

static int by_columns(const struct member *a, const struct member *b)
{
    int order = 0;

    for (size_t i = 0; !order && i < a->n_columns; i++)
        order = strcmp(a->columns[i], b->columns[i]);
    return order;
}

static int by_group(const void *x, const void *y)
{
    const struct member *a = *(struct member *const *)x, *b = *(struct member *const *)y;
    int order = by_columns(a, b);

    return order ? order : (a > b) - (a < b);
}

struct case_groups cases_group(struct pool *pool, const struct report_bench *b, size_t run,
                               bool (*is)(const struct report_bench *b, size_t run,
                                          const struct report_case *c, const void *arg),
                               const void *is_arg, case_column *column, const void *arg)
{
    struct member *members = xcalloc(b->n_cases + 1, sizeof(*members));
    struct member **sorted = xcalloc(b->n_cases + 1, sizeof(*sorted));
    size_t n_columns = b->n_params + 2, n = 0;
    const char **columns = xcalloc((b->n_cases + 1) * n_columns, sizeof(*columns));
    struct case_groups groups = {.n = 0};

    for (const struct report_case *c = b->cases; c < b->cases + b->n_cases; c++) {
        struct member *m = &members[n];

        if (is && !is(b, run, c, is_arg))
            continue;
        *m = (struct member){c, columns + n * n_columns, n_columns, n};
        for (size_t i = 0; i < n_columns; i++)
            m->columns[i] = column(b, c, i, arg);
        sorted[n++] = m;
    }
    qsort(sorted, n, sizeof(struct member *), by_group);
    for (size_t i = 1; i < n; i++)
        if (!by_columns(sorted[i - 1], sorted[i]))
            sorted[i]->first = sorted[i - 1]->first;
    groups.all = pool_alloc(pool, n, sizeof(*groups.all));
    size_t *group_of = xcalloc(n + 1, sizeof(*group_of));
    for (size_t i = 0; i < n; i++) {
        group_of[i] = members[i].first == i ? groups.n++ : group_of[members[i].first];
        groups.all[group_of[i]].n++;
    }
    for (size_t i = 0; i < groups.n; i++) {
        struct case_group *g = &groups.all[i];

        g->cases = pool_alloc(pool, g->n, sizeof(const struct report_case *));
        g->n = 0;
    }
    for (size_t i = 0; i < n; i++) {
        struct case_group *g = &groups.all[group_of[i]];

        g->cases[g->n++] = members[i].c;
    }
    free(group_of);
    free(columns);
    free(sorted);
    free(members);
    return groups;
}
