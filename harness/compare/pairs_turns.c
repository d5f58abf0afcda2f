/* SPDX-License-Identifier: Apache-2.0 */
/* Launches that were measured in turn, side by side: see pairs_parts.h. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/units.h"
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

static int compare_turns(const void *x, const void *y)
{
    const struct planned_turn *a = x, *b = y;
    int d = strcmp(a->case_id, b->case_id);

    return d ? d : strcmp(a->repeat, b->repeat);
}

/* Of a run of an older version, which kept no record: its pairs went a b, b a ... along the plan, and it says so. */
static enum launch_turn turn_by_order(const struct table *plan, size_t row, bool of_a)
{
    uint64_t order;

    if (units_parse_u64(table_text(plan, row, "order"), &order))
        return TURN_NONE;
    return (order % 2 == 1) == of_a ? TURN_FIRST : TURN_SECOND;
}

static void read_run(const struct pairs *p, size_t run, struct run_turns *turns)
{
    const struct table *plan = &p->report.runs[run].plan;
    bool recorded = table_column(plan, "turn") != TABLE_NO_COLUMN;
    bool of_a = !strcmp(sides_against(p, run, "side"), "a");

    if (!recorded && strcmp(sides_against(p, run, "order"), "ABBA") != 0)
        return;
    for (turns->n = 0; turns->n < plan->n_rows; turns->n++) {
        struct planned_turn *t = &turns->all[turns->n];

        *t = (struct planned_turn){.case_id = table_text(plan, turns->n, "case"),
                                   .repeat = table_text(plan, turns->n, "repeat")};
        if (!recorded)
            t->turn = turn_by_order(plan, turns->n, of_a);
        else if (!launch_turn_parse(table_text(plan, turns->n, "turn"), &t->turn))
            t->turn = TURN_NONE;
    }
    qsort(turns->all, turns->n, sizeof(*turns->all), compare_turns);
}

int turns_read(struct pairing *g)
{
    struct pool *pool = &g->p->report.pool;
    size_t n = g->p->report.n_runs;

    g->turns = pool_alloc(pool, n, sizeof(*g->turns));
    for (size_t i = 0; g->turns && i < n; i++) {
        size_t lines = g->p->report.runs[i].plan.n_rows;

        g->turns[i] = (struct run_turns){pool_alloc(pool, lines + 1, sizeof(*g->turns[i].all)), 0};
        if (g->turns[i].all)
            read_run(g->p, i, &g->turns[i]);
    }
    return pool->failed ? -ENOMEM : 0;
}

static enum launch_turn turn_of_row(const struct run_turns *turns, const struct report_rows *rows,
                                    size_t row)
{
    const struct planned_turn key = {.case_id = row_text(rows, row, FIELD_CASE),
                                     .repeat = row_text(rows, row, FIELD_REPEAT)};
    const struct planned_turn *found =
        bsearch(&key, turns->all, turns->n, sizeof(key), compare_turns);

    return found ? found->turn : TURN_NONE;
}

/* A case in one pair of runs: what each has, and the launches that both have, each beside its partner. */
struct turn_side {
    const struct report_rows *rows;
    const struct report_point *point;
    const struct run_turns *turns;
    double *values;
    bool *first;
};

struct turn {
    struct turn_side a, b;
    size_t n;
    bool unknown; /* of a launch, who went first */
};

static struct turn_side side_of(const struct pairing *g, size_t run, const struct report_bench *b,
                                const struct report_case *c, size_t most)
{
    struct pool *pool = &g->p->report.pool;

    return (struct turn_side){&b->rows[run], &c->points[run], &g->turns[run],
                              pool_alloc(pool, most, sizeof(double)),
                              pool_alloc(pool, most, sizeof(bool))};
}

static struct turn turn_of(const struct pairing *g, size_t i, const struct report_bench *b,
                           const struct report_case *c)
{
    size_t run = g->a.first + i, most = c->points[run].n_rows + 1;

    return (struct turn){.a = side_of(g, run, b, c, most),
                         .b = side_of(g, sides_partner(g->p, run), b, c, most)};
}

static void add_launch(struct turn *t, size_t own, size_t other)
{
    enum launch_turn a = turn_of_row(t->a.turns, t->a.rows, own);
    enum launch_turn b = turn_of_row(t->b.turns, t->b.rows, other);

    t->unknown |= !a || !b || a == b;
    t->a.values[t->n] = row_number(t->a.rows, own, FIELD_VALUE);
    t->b.values[t->n] = row_number(t->b.rows, other, FIELD_VALUE);
    t->a.first[t->n] = a == TURN_FIRST;
    t->b.first[t->n++] = b == TURN_FIRST;
}

static void add_launches(struct turn *t, double limit, bool *twice)
{
    for (size_t i = 0; i < t->a.point->n_rows; i++) {
        size_t row = t->a.point->rows[i];
        const char *repeat = row_text(t->a.rows, row, FIELD_REPEAT);
        size_t own = partner_of(t->a.rows, t->a.point, repeat, limit, twice);
        size_t other = partner_of(t->b.rows, t->b.point, repeat, limit, twice);

        if (own == row && other != SIZE_MAX)
            add_launch(t, own, other);
    }
}

static struct decide_run run_of(const struct turn *t, const struct turn_side *side)
{
    return (struct decide_run){
        .values = side->values, .n = t->n, .went_first = t->unknown ? NULL : side->first};
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

        if (pool->failed)
            return false;
        add_launches(&t, g->options->steal_limit, &twice);
        runs_a[i] = run_of(&t, &t.a);
        runs_b[i] = run_of(&t, &t.b);
        all += t.n;
    }
    if (twice || all < 2)
        return false;
    decide->a = (struct decide_side){runs_a, n};
    decide->b = (struct decide_side){runs_b, n};
    return true;
}
