/* SPDX-License-Identifier: Apache-2.0 */
/* The trust in a run: see summary.h. */
#include "harness/report/summary.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/stats.h"
#include "harness/decide/decide.h"
#include "harness/report/cases.h"
#include "harness/report/headline.h"
#include "harness/report/told.h"

#define COMPARE_MARGIN 0.05
#define MS_A_MINUTE    6e4
#define TICKS_A_SECOND 100 /* of a CPU in /proc/stat */
#define STEAL_TICKS    100 /* of fewer, one tick is more than 1 % */

static const struct {
    char name;
    double loss;
} grades[] = {{'A', 0.02}, {'B', 0.05}, {'C', 0.10}};

enum { GRADES = sizeof(grades) / sizeof(*grades) };

/* ---- what disturbed it */

static double number_or_0(const struct report_rows *rows, size_t row, enum row_field field)
{
    double x = row_number(rows, row, field);

    return isfinite(x) ? x : 0;
}

/* A share of few ticks is no figure. */
static void count_steal(const struct report_rows *rows, size_t row, double cpus, struct trust *t)
{
    double steal = number_or_0(rows, row, FIELD_STEAL);
    double ticks = row_number(rows, row, FIELD_ELAPSED) * cpus * TICKS_A_SECOND;

    t->stolen += steal >= 1;
    if (!(ticks < STEAL_TICKS))
        t->steal_percent = fmax(t->steal_percent, steal);
}

static void count_row(const struct report_rows *rows, size_t row, double cpus, struct trust *t)
{
    double low = number_or_0(rows, row, FIELD_MHZ_LOW);
    double high = number_or_0(rows, row, FIELD_MHZ_HIGH);

    if (strcmp(row_text(rows, row, FIELD_ORIGIN), "measured") != 0 ||
        !(number_or_0(rows, row, FIELD_SAMPLES) > 0))
        return;
    t->rows++;
    if (!*row_text(rows, row, FIELD_DISTURBED))
        return;
    t->disturbed++;
    count_steal(rows, row, cpus, t);
    t->quota_ms = fmax(t->quota_ms, number_or_0(rows, row, FIELD_QUOTA));
    t->throttled += number_or_0(rows, row, FIELD_THROTTLE) > 0;
    t->switched += number_or_0(rows, row, FIELD_INVOLUNTARY) > 0;
    if (high > 0)
        t->clock_percent = fmax(t->clock_percent, 100 * (high - low) / high);
}

static void count_rows(const struct report *r, size_t run, struct trust *t)
{
    const json_t *machine = json_object_get(r->runs[run].meta, "machine");
    const json_t *cpu = json_object_get(machine, "cpu");
    double cpus = fmax(1, json_number_value(json_object_get(cpu, "threads")));

    for (size_t b = 0; b < r->n_benches; b++) {
        const struct report_rows *rows = &r->benches[b].rows[run];

        for (size_t i = 0; rows->table && i < rows->table->n_rows; i++)
            count_row(rows, i, cpus, t);
    }
}

/* ---- the smallest loss */

struct judged {
    struct decide_case *cases;
    struct decide_run *runs; /* one a case: both sides of it */
    double *launches;        /* how many each has */
    size_t n;
};

static bool counts(const struct report *r, const struct report_bench *b,
                   const struct report_case *c, size_t run)
{
    const struct report_point *p = &c->points[run];

    return p->n_values && point_is_measured(p) && told_is_judged(r, b, c);
}

/* Held against another run like this one: against itself. */
static int add_case(struct report *r, const struct report_bench *b, const struct report_case *c,
                    size_t run, struct judged *j)
{
    const struct report_point *p = &c->points[run];
    double *values = pool_alloc(&r->pool, p->n_rows, sizeof(*values));
    struct decide_run *of = &j->runs[j->n];

    if (!values)
        return -ENOMEM;
    *of = (struct decide_run){.values = values, .n = combine_values(&b->rows[run], p, values)};
    j->launches[j->n] = (double)of->n;
    j->cases[j->n++] = (struct decide_case){.a = {of, 1},
                                            .b = {of, 1},
                                            .margin = COMPARE_MARGIN,
                                            .higher_is_better = c->more_is_better};
    return 0;
}

static int find_cases(struct report *r, size_t run, struct judged *j)
{
    size_t most = 0;
    int err = 0;

    for (size_t b = 0; b < r->n_benches; b++)
        most += r->benches[b].n_cases;
    j->cases = pool_alloc(&r->pool, most, sizeof(*j->cases));
    j->runs = pool_alloc(&r->pool, most, sizeof(*j->runs));
    j->launches = pool_alloc(&r->pool, most, sizeof(*j->launches));
    if (!j->cases || !j->runs || !j->launches)
        return -ENOMEM;
    for (size_t b = 0; b < r->n_benches; b++)
        for (size_t i = 0; !err && i < r->benches[b].n_cases; i++)
            if (counts(r, &r->benches[b], &r->benches[b].cases[i], run))
                err = add_case(r, &r->benches[b], &r->benches[b].cases[i], run, j);
    return err;
}

/* What cannot be told could have hidden anything. */
static int take_smallest(struct report *r, const struct judged *j, struct trust *t)
{
    double *losses = pool_alloc(&r->pool, j->n, sizeof(*losses));

    if (!losses)
        return -ENOMEM;
    for (size_t i = 0; i < j->n; i++)
        losses[i] = isnan(j->cases[i].smallest) ? 1 : j->cases[i].smallest;
    t->smallest = stats_median(losses, j->n);
    t->launches = t->most_launches = (size_t)stats_median(j->launches, j->n);
    t->fewest_launches = t->launches;
    for (size_t i = 0; i < j->n; i++) {
        t->single += j->runs[i].n == 1;
        t->fewest_launches = j->runs[i].n < t->fewest_launches ? j->runs[i].n : t->fewest_launches;
        t->most_launches = j->runs[i].n > t->most_launches ? j->runs[i].n : t->most_launches;
    }
    return 0;
}

/* ---- the grade, and what would be the next */

static double minutes_of(const struct report *r, size_t run)
{
    const json_t *cost = json_object_get(r->runs[run].meta, "harness_cost");
    double ms = json_number_value(json_object_get(cost, "benchmarks_ms"));

    return ms > 0 ? ms / MS_A_MINUTE : NAN;
}

/* How many launches of each planned case were run. Each case has a first one. */
static double launches_a_case(const struct table *plan)
{
    size_t state = table_column(plan, "state"), repeat = table_column(plan, "repeat");
    size_t cases = 0, done = 0;

    for (size_t i = 0; i < plan->n_rows; i++) {
        cases += !strcmp(table_cell(plan, i, repeat), "1");
        done += strcmp(table_cell(plan, i, state), "todo") != 0;
    }
    return cases && done ? (double)done / (double)cases : NAN;
}

static void take_advice(const struct report *r, size_t run, struct trust *t)
{
    double repeats = DECIDE_FEW_LAUNCHES, shrink;

    if (isnan(t->next))
        return;
    if (t->launches >= DECIDE_FEW_LAUNCHES && t->smallest < 1) {
        shrink = log1p(-t->smallest) / log1p(-t->next);
        repeats = fmax(repeats, ceil((double)t->launches * shrink * shrink));
    }
    if (!(repeats <= TRUST_REPEATS_MAX) || repeats <= (double)t->launches)
        return;
    t->repeats = (size_t)repeats;
    t->minutes = minutes_of(r, run) * repeats / launches_a_case(&r->runs[run].plan);
}

static void take_grade(struct trust *t)
{
    t->grade = 'D';
    t->next = grades[GRADES - 1].loss;
    for (size_t i = GRADES; i-- > 0;)
        if (t->smallest <= grades[i].loss) {
            t->grade = grades[i].name;
            t->next = i ? grades[i - 1].loss : NAN;
        }
}

int trust_make(struct report *r, size_t run, struct trust *out)
{
    struct judged j = {0};
    struct decide_overall overall;
    const struct decide_options options = {0};
    int err;

    *out = (struct trust){.smallest = NAN, .next = NAN, .minutes = NAN};
    count_rows(r, run, out);
    err = find_cases(r, run, &j);
    out->cases = j.n;
    if (err || !j.n)
        return err;
    err = decide_suite(j.cases, j.n, &options, &overall);
    if (!err)
        err = take_smallest(r, &j, out);
    if (err)
        return -ENOMEM;
    take_grade(out);
    take_advice(r, run, out);
    return 0;
}
