/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the cases of a history: a run's value, and what else differed where a level moved. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness/history/history.h"
#include "harness/history/history_db.h"

#define RUNS  30
#define MOVED 20 /* the run from which the level is another */

/* Outcomes as they are kept since the choices are. */
#define KEPT(outcomes) "{\"" HISTORY_CHOICES_KEPT "\":[\"kept\"]" outcomes "}"

/* One case, RUNS runs a day apart, all of one machine; tests change a run's environment or outcomes. */
struct scene {
    struct history h;
    struct history_entries entries;
    struct trends trends;
};

static int set_up(void **state)
{
    static const char machine[] =
        "{\"version\":\"1.0\",\"machine\":{\"host\":{\"kernel\":\"6.1\"}}}";
    struct scene *s = calloc(1, sizeof(*s));

    s->h.runs = pool_alloc(&s->h.pool, RUNS, sizeof(*s->h.runs));
    s->h.n_runs = RUNS;
    for (size_t i = 0; i < RUNS; i++) {
        double *launch = pool_alloc(&s->h.pool, 1, sizeof(*launch));

        *launch = (i < MOVED ? 100 : 90) * (1 + 0.001 * (double)((i * 7) % 5));
        s->h.runs[i] =
            (struct history_run){.name = pool_text(&s->h.pool, "run-%zu", i),
                                 .host = "one",
                                 .suite = "quick",
                                 .started_utc = pool_text(&s->h.pool, "2026-01-%02zuT02", i + 1),
                                 .version = "1.0",
                                 .commit = "abc",
                                 .environment = machine};
        history_entries_add(&s->entries, &(struct history_entry){.key = "memory|op=triad|b|GB/s",
                                                                 .label = "memory triad",
                                                                 .pipe = "Memory",
                                                                 .host = "one",
                                                                 .suite = "quick",
                                                                 .unit = "GB/s",
                                                                 .higher_is_better = true,
                                                                 .run = i,
                                                                 .launches = launch,
                                                                 .n_launches = 1,
                                                                 .outcomes = KEPT("")});
    }
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;

    trends_release(&s->trends);
    history_release(&s->h);
    free(s->entries.all);
    free(s);
    return 0;
}

/* The step of the one case. */
static const struct trend_step *step_of(struct scene *s)
{
    static const struct trend_filter all = {.host = "", .suite = "", .since = ""};

    trends_release(&s->trends);
    s->h.n_series = 0;
    assert_int_equal(history_build(&s->h, &s->entries), 0);
    assert_int_equal(trends_make(&s->trends, &s->h, &all), 0);
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

static void test_all_launches_count(void **state)
{
    struct scene *s = *state;
    double many[100];

    for (size_t i = 0; i < 100; i++)
        many[i] = i < 64 ? 100 : 104;
    s->entries.all[3].launches = many;
    s->entries.all[3].n_launches = 100;
    step_of(s);
    assert_float_equal(s->trends.all[0].values[3], 100 * pow(1.04, 0.36), 1e-9);
}

static void test_nothing_differs(void **state)
{
    assert_string_equal(first_sentence(*state),
                        "it differs from the run before by nothing that run.json or the rows tell");
}

static void test_the_machine_differs(void **state)
{
    struct scene *s = *state;

    for (size_t i = MOVED; i < RUNS; i++)
        s->h.runs[i].environment =
            "{\"version\":\"1.0\",\"machine\":{\"host\":{\"kernel\":\"6.2\"},"
            "\"gpus\":{\"driver_version\":\"570\"},\"cpu\":{\"microcode\":\"0xa\"}}}";
    assert_string_equal(
        first_sentence(s),
        "it differs from the run before by CPU microcode: not known to 0xa; kernel: 6.1 to 6.2; "
        "NVIDIA driver: not known to 570 (of GPU matrix core, GPU memory, GPU launch, PCIe, "
        "NVLink)");
    const struct trend_differ *d = &s->trends.all[0].steps[0].all[0];
    assert_int_equal(d->before, MOVED - 1);
    assert_int_equal(d->n, 3);
    assert_int_equal(d->n_near, 2);
    assert_true(d->whole);
    assert_string_equal(trend_differ_text(&s->h.pool, d, 1),
                        "CPU microcode: not known to 0xa; and 2 more, in --json");
}

/* A run without the case stands between. */
static void test_a_gap_hides_nothing(void **state)
{
    struct scene *s = *state;
    double none[1] = {NAN};

    s->entries.all[MOVED - 1].launches = none;
    for (size_t i = MOVED - 1; i < RUNS; i++)
        s->h.runs[i].environment =
            "{\"version\":\"1.0\",\"machine\":{\"host\":{\"kernel\":\"6.2\"}}}";
    assert_non_null(strstr(first_sentence(s), "kernel: 6.1 to 6.2"));
    assert_int_equal(s->trends.all[0].steps[0].all[0].before, MOVED - 2);
}

/* Of old runs there is the program alone; that the rest is not known is said. */
static void test_what_is_not_kept_is_not_equal(void **state)
{
    struct scene *s = *state;

    for (size_t i = 0; i < MOVED; i++)
        s->h.runs[i].environment = NULL;
    assert_string_equal(first_sentence(s),
                        "what it differs by from the run before is not known: of the machine the "
                        "history keeps nothing for one of them");
}

static void test_the_program_is_always_kept(void **state)
{
    struct scene *s = *state;

    for (size_t i = 0; i < MOVED; i++) {
        s->h.runs[i].environment = NULL;
        s->h.runs[i].version = "0.9";
    }
    s->h.runs[MOVED].environment = "{ damaged";
    assert_string_equal(first_sentence(s),
                        "it differs from the run before by plumb version: 0.9 to 1.0; of the "
                        "machine the history keeps nothing for one of them");
}

static void set_outcomes(struct scene *s, size_t begin, size_t end, const char *outcomes)
{
    for (size_t i = begin; i < end; i++)
        s->entries.all[i].outcomes = outcomes;
}

static void test_the_cases_own_outcomes(void **state)
{
    struct scene *s = *state;

    set_outcomes(s, 0, MOVED,
                 KEPT(",\"kernel\":[\"2.6\"],\"cpus\":[\"0\",\"1\"],\"path\":[\"a\"]"));
    set_outcomes(s, MOVED, RUNS,
                 KEPT(",\"kernel\":[\"3.4\",\"3.5\"],\"cpus\":[\"1\"],\"new\":[\"x\"]"));
    assert_string_equal(first_sentence(s),
                        "it differs from the run before by the case's kernel: 2.6 to 3.4 or 3.5");
}

/* An address differs at every run, with or without a step: no suspect, but nothing else is said to be all. */
static void test_what_always_differs_is_no_suspect(void **state)
{
    struct scene *s = *state;

    for (size_t i = 0; i < RUNS; i++)
        s->entries.all[i].outcomes = pool_text(&s->h.pool, KEPT(",\"address\":[\"%zu\"]"), i);
    assert_string_equal(first_sentence(s),
                        "it differs from the run before by nothing that run.json tells; of what "
                        "the rows tell, address differs, but in some launches alone, or between "
                        "other runs, too");
    assert_int_equal(s->trends.all[0].steps[0].all[0].n, 0);
    /* from then on some launches choose another one; and a name that only one of them has */
    set_outcomes(s, 0, MOVED, KEPT(",\"isa\":[\"avx512\"],\"path\":[\"a\"]"));
    set_outcomes(s, MOVED, RUNS, KEPT(",\"isa\":[\"avx2\",\"avx512\"],\"new\":[\"x\"]"));
    assert_non_null(strstr(first_sentence(s), "of what the rows tell, isa, path, new differs"));
}

/* A plumb that did not keep what a benchmark chose wrote some of the runs, or all: nothing is said to be the same. */
static void test_choices_that_were_not_kept_are_not_equal(void **state)
{
    static const char unkept[] = "what the benchmark chose by itself the history does not keep for "
                                 "one of them";
    struct scene *s = *state;

    set_outcomes(s, 0, RUNS, "{\"kernel\":[\"2.6\"]}");
    assert_non_null(strstr(first_sentence(s), unkept));
    assert_null(strstr(first_sentence(s), "by nothing"));
    set_outcomes(s, MOVED, RUNS, KEPT(",\"isa\":[\"avx2\"],\"kernel\":[\"2.6\"]"));
    assert_non_null(strstr(first_sentence(s), "is not known: what the benchmark chose"));
    set_outcomes(s, MOVED, RUNS, KEPT(",\"isa\":[\"avx2\"],\"kernel\":[\"3.4\"]"));
    assert_non_null(strstr(first_sentence(s), "by the case's kernel: 2.6 to 3.4; what the"));
    set_outcomes(s, 0, MOVED, NULL);
    assert_non_null(strstr(first_sentence(s), "of what the case's rows tell the history keeps "
                                              "nothing for one of them"));
}

/* In noise the step may lie with a neighbour: what differs there is told, too. */
static void test_runs_near_the_step(void **state)
{
    struct scene *s = *state;
    const struct trend_differ *d = NULL;

    for (size_t i = 0; i < RUNS; i++) {
        s->entries.all[i].launches[0] = (i < MOVED ? 100 : 93) + ((i * 7) % 5) * 1.5;
        if (i + 1 >= MOVED)
            s->h.runs[i].environment =
                "{\"version\":\"1.0\",\"machine\":{\"host\":{\"kernel\":\"6.2\"}}}";
    }
    s->entries.all[MOVED - 1].launches[0] = 100.5; /* between the levels */
    const struct trend_step *step = step_of(s);
    assert_true(s->trends.all[0].points[0].at_low < MOVED);
    assert_int_equal(step->all[0].n, 0);
    for (size_t i = 1; i < step->n; i++)
        if (step->all[i].at == MOVED - 1)
            d = &step->all[i];
    assert_non_null(d);
    assert_int_equal(step->n, 2);
    assert_string_equal(trend_differ_sentence(&s->h.pool, &s->trends.all[0], d, false),
                        "run-19 (2026-01-20), with which it may have been, too, differs from the "
                        "run before by kernel: 6.1 to 6.2");
}

/* No single run of a slip is its cause: its last run is held against the last one before it. */
static void test_a_slip_is_told_by_its_ends(void **state)
{
    struct scene *s = *state;
    char text[512];

    for (size_t i = 0; i < RUNS; i++) {
        s->entries.all[i].launches[0] = 100 * pow(0.99, i < MOVED ? 0 : (double)(i - MOVED + 1)) *
                                        (1 + 0.0002 * (double)((i * 7) % 5));
        if (i >= MOVED + 5)
            s->h.runs[i].environment =
                "{\"version\":\"1.0\",\"machine\":{\"host\":{\"kernel\":\"6.2\"}}}";
    }
    const struct trend_step *step = step_of(s);
    const struct trend *t = &s->trends.all[0];
    assert_int_equal(t->points[0].kind, CHANGE_SLIP);
    assert_int_equal(step->n, 1);
    assert_int_equal(step->all[0].before, MOVED - 1);
    assert_int_equal(step->all[0].at, RUNS - 1);
    assert_string_equal(trend_differ_sentence(&s->h.pool, t, &step->all[0], true),
                        "its last run, run-29 (2026-01-30), differs from the last one before the "
                        "slip by kernel: 6.1 to 6.2");
    assert_string_equal(trend_kind(&t->points[0]), "slip");
    trend_end_text(t, &t->points[0], text, sizeof(text));
    assert_string_equal(text, "to run run-29 (2026-01-30T02), and may go on");
    trend_a_run_text(&t->points[0], text, sizeof(text));
    assert_int_equal(strncmp(text, "-1 % a run (-1", 14), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_all_launches_count),
        TEST(test_nothing_differs),
        TEST(test_the_machine_differs),
        TEST(test_a_gap_hides_nothing),
        TEST(test_what_is_not_kept_is_not_equal),
        TEST(test_the_program_is_always_kept),
        TEST(test_the_cases_own_outcomes),
        TEST(test_what_always_differs_is_no_suspect),
        TEST(test_choices_that_were_not_kept_are_not_equal),
        TEST(test_runs_near_the_step),
        TEST(test_a_slip_is_told_by_its_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
