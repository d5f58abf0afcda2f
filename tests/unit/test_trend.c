/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the cases of a history: a run's value, and what else differed where a level moved. */
#include "harness/history/history.h"
#include "harness/history/history_db.h"
#include "tests/unit/unit.h"

#define RUNS  30
#define MOVED 20 /* the run from which the level is another */

#define LAUNCHES 100 /* of a run, at most */

/* Outcomes as they are kept since the choices are. */
#define KEPT(outcomes) "{" outcomes "}"

/* One case, RUNS runs a day apart, all of one machine; tests change a run's environment or outcomes. */
struct scene {
    struct history h;
    struct history_series *series; /* the one */
    struct trends trends;
};

static int set_up(void **state)
{
    static const char machine[] =
        "{\"version\":\"1.0\",\"machine\":{\"host\":{\"kernel\":\"6.1\"}}}";
    struct scene *s = calloc(1, sizeof(*s));

    struct pool *pool = &s->h.pool;
    const struct history_run **runs = pool_alloc(pool, RUNS, sizeof(*runs));

    s->h.runs = pool_alloc(pool, RUNS, sizeof(*s->h.runs));
    s->h.n_runs = RUNS;
    s->h.n_series = 1;
    s->h.series = s->series = pool_alloc(pool, 1, sizeof(*s->series));
    *s->series = (struct history_series){.key = "memory|op=triad|b|GB/s",
                                         .label = "memory triad",
                                         .pipe = "Memory",
                                         .host = "one",
                                         .suite = "quick",
                                         .unit = "GB/s",
                                         .higher_is_better = true,
                                         .n = RUNS,
                                         .runs = runs,
                                         .launches = pool_alloc(pool, RUNS, sizeof(double *)),
                                         .steals = pool_alloc(pool, RUNS, sizeof(double *)),
                                         .n_launches = pool_alloc(pool, RUNS, sizeof(size_t)),
                                         .outcomes = pool_alloc(pool, RUNS, sizeof(char *))};
    for (size_t i = 0; i < RUNS; i++) {
        s->series->launches[i] = pool_alloc(pool, 1, sizeof(double));
        s->series->launches[i][0] = (i < MOVED ? 100 : 90) * (1 + 0.001 * (double)((i * 7) % 5));
        s->series->steals[i] = pool_alloc(pool, LAUNCHES, sizeof(double)); /* others took none */
        s->series->n_launches[i] = 1;
        s->series->outcomes[i] = KEPT("");
        runs[i] = &s->h.runs[i];
        s->h.runs[i] =
            (struct history_run){.name = pool_text(pool, "run-%zu", i),
                                 .host = "one",
                                 .suite = "quick",
                                 .started_utc = pool_text(pool, "2026-01-%02zuT02", i + 1),
                                 .version = "1.0",
                                 .commit = "abc",
                                 .environment = machine,
                                 .only = "",
                                 .config_hash = "",
                                 .machine = ""};
    }
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;

    trends_release(&s->trends);
    history_release(&s->h);
    free(s);
    return 0;
}

/* The step of the one case. */
static const struct trend_step *step_of(struct scene *s)
{
    static const struct trend_filter all = {.host = "", .suite = "", .since = ""};

    trends_release(&s->trends);
    trends_make(&s->trends, &s->h, &all);
    assert_int_equal(s->trends.n, 1);
    assert_int_equal(s->trends.all[0].n_points, 1);
    assert_int_equal(s->trends.all[0].points[0].at, MOVED);
    assert_true(s->trends.all[0].steps[0].n >= 1);
    return &s->trends.all[0].steps[0];
}

static const char *first_sentence(struct scene *s)
{
    const struct trend_step *step = step_of(s);

    return trend_differ_sentence(&s->h.pool, &s->trends.all[0], &step->all[0], true);
}

TEST_WITH(test_all_launches_count, set_up, tear_down)
{
    struct scene *s = *state;
    double many[LAUNCHES];

    for (size_t i = 0; i < LAUNCHES; i++)
        many[i] = i < 64 ? 100 : 104;
    s->series->launches[3] = many;
    s->series->n_launches[3] = LAUNCHES;
    step_of(s);
    assert_float_equal(s->trends.all[0].values[3], 100 * pow(1.04, 0.36), 1e-9);
}

static void set_kernel(struct scene *s, size_t begin)
{
    for (size_t i = begin; i < RUNS; i++)
        s->h.runs[i].environment =
            "{\"version\":\"1.0\",\"machine\":{\"host\":{\"kernel\":\"6.2\"}}}";
}

/* What is not known differs from what is; a run without the case may stand between. */
TEST_WITH(test_the_machine_differs, set_up, tear_down)
{
    struct scene *s = *state;
    double none[1] = {NAN};

    assert_says(first_sentence(s), "by nothing");
    for (size_t i = MOVED; i < RUNS; i++)
        s->h.runs[i].environment =
            "{\"version\":\"1.0\",\"machine\":{\"host\":{\"kernel\":\"6.2\"},"
            "\"gpus\":{\"driver_version\":\"570\"},\"cpu\":{\"microcode\":\"0xa\"}}}";
    assert_says(first_sentence(s), "microcode: |0xa|kernel: 6.1 to 6.2|NVIDIA driver: |570");
    const struct trend_differ *d = &s->trends.all[0].steps[0].all[0];
    assert_int_equal(d->before, MOVED - 1);
    assert_int_equal(d->n, 3);
    assert_int_equal(d->n_near, 2);
    assert_non_null(strstr(trend_differ_text(&s->h.pool, d, 1), "0xa; and 2 more"));
    s->series->launches[MOVED - 1] = none;
    set_kernel(s, MOVED - 1);
    assert_says(first_sentence(s), "kernel: 6.1 to 6.2");
    assert_int_equal(s->trends.all[0].steps[0].all[0].before, MOVED - 2);
}

static void set_outcomes(struct scene *s, size_t begin, size_t end, const char *outcomes)
{
    for (size_t i = begin; i < end; i++)
        s->series->outcomes[i] = outcomes;
}

TEST_WITH(test_the_cases_own_outcomes, set_up, tear_down)
{
    struct scene *s = *state;

    set_outcomes(s, 0, MOVED, KEPT("\"kernel\":[\"2.6\"],\"cpus\":[\"0\",\"1\"],\"path\":[\"a\"]"));
    set_outcomes(s, MOVED, RUNS,
                 KEPT("\"kernel\":[\"3.4\",\"3.5\"],\"cpus\":[\"1\"],\"new\":[\"x\"]"));
    assert_says(first_sentence(s), "2.6 to 3.4 or 3.5");
}

/* An address differs at every run, with or without a step: no suspect. */
TEST_WITH(test_what_always_differs_is_no_suspect, set_up, tear_down)
{
    struct scene *s = *state;

    for (size_t i = 0; i < RUNS; i++)
        s->series->outcomes[i] = pool_text(&s->h.pool, KEPT("\"address\":[\"%zu\"]"), i);
    assert_says(first_sentence(s), "by nothing");
    assert_int_equal(s->trends.all[0].steps[0].all[0].n, 0);
    /* from then on some launches choose another one; and a name that only one of them has */
    set_outcomes(s, 0, MOVED, KEPT("\"isa\":[\"avx512\"],\"path\":[\"a\"]"));
    set_outcomes(s, MOVED, RUNS, KEPT("\"isa\":[\"avx2\",\"avx512\"],\"new\":[\"x\"]"));
    assert_says(first_sentence(s), "by nothing");
}

/* In noise the step may lie with a neighbour: what differs there is told, too. */
TEST_WITH(test_runs_near_the_step, set_up, tear_down)
{
    struct scene *s = *state;
    const struct trend_differ *d = NULL;

    for (size_t i = 0; i < RUNS; i++)
        s->series->launches[i][0] = (i < MOVED ? 100 : 93) + ((i * 7) % 5) * 1.5;
    set_kernel(s, MOVED - 1);
    s->series->launches[MOVED - 1][0] = 100.5; /* between the levels */
    const struct trend_step *step = step_of(s);
    assert_true(s->trends.all[0].points[0].at_low < MOVED);
    assert_int_equal(step->all[0].n, 0);
    for (size_t i = 1; i < step->n; i++)
        if (step->all[i].at == MOVED - 1)
            d = &step->all[i];
    assert_non_null(d);
    assert_int_equal(step->n, 2);
    assert_int_equal(d->n, 1);
}
