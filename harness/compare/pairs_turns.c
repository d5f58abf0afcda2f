/* SPDX-License-Identifier: Apache-2.0 */
/* Launches that were measured in turn, side by side: see pairs_parts.h. */
#include <stdint.h>
#include <string.h>

#include "harness/compare/pairs_parts.h"

/* The row of that launch whose value counts; SIZE_MAX: none. *twice: there are several. */
static size_t partner_of(const struct report_rows *rows, const struct report_point *p,
                         const char *repeat, double steal_limit, bool *twice)
{
    size_t found = SIZE_MAX;

    for (size_t i = 0; i < p->n_rows; i++) {
        if (!row_counts(rows, p->rows[i], steal_limit) ||
            strcmp(row_text(rows, p->rows[i], FIELD_REPEAT), repeat) != 0)
            continue;
        *twice |= found != SIZE_MAX;
        found = p->rows[i];
    }
    return found;
}

/* Of a case in one pair of runs. */
struct turn {
    const struct report_rows *of_a, *of_b;
    const struct report_point *a, *b;
};

static struct turn turn_of(const struct pairing *g, size_t i, const struct report_bench *b,
                           const struct report_case *c)
{
    size_t run = g->a.first + i, partner = sides_partner(g->p, run);

    return (struct turn){&b->rows[run], &b->rows[partner], &c->points[run], &c->points[partner]};
}

/* The launches that both runs have, each beside its partner; how many. */
static size_t turn_values(const struct turn *t, double limit, double *a, double *b, bool *twice)
{
    size_t n = 0;

    for (size_t i = 0; i < t->a->n_rows; i++) {
        const char *repeat = row_text(t->of_a, t->a->rows[i], FIELD_REPEAT);
        size_t own = partner_of(t->of_a, t->a, repeat, limit, twice);
        size_t other = partner_of(t->of_b, t->b, repeat, limit, twice);

        if (own != t->a->rows[i] || other == SIZE_MAX)
            continue;
        a[n] = row_number(t->of_a, own, FIELD_VALUE);
        b[n++] = row_number(t->of_b, other, FIELD_VALUE);
    }
    return n;
}

bool launches_align(struct pairing *g, const struct report_bench *b, const struct report_case *c,
                    struct decide_case *decide)
{
    struct pool *pool = &g->p->report.pool;
    size_t n = g->p->n_a, all = 0;
    struct decide_run *runs_a = pool_alloc(pool, n, sizeof(*runs_a));
    struct decide_run *runs_b = pool_alloc(pool, n, sizeof(*runs_b));
    bool twice = false;

    for (size_t i = 0; runs_a && runs_b && i < n; i++) {
        struct turn t = turn_of(g, i, b, c);
        double *values = t.a->n_rows ? pool_alloc(pool, 2 * t.a->n_rows, sizeof(*values)) : NULL;

        if (!values)
            continue;
        size_t both =
            turn_values(&t, g->options->steal_limit, values, values + t.a->n_rows, &twice);

        runs_a[i] = (struct decide_run){values, both};
        runs_b[i] = (struct decide_run){values + t.a->n_rows, both};
        all += both;
    }
    if (twice || all < 2)
        return false;
    decide->a = (struct decide_side){runs_a, n};
    decide->b = (struct decide_side){runs_b, n};
    return true;
}
