/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates: the bounds of a launch's own options, else the defaults, and how they are told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "harness/run/progress.h"

#define MS 1000000ull

/* "search" is its own, and has a default that says nothing here. */
static struct opt options[] = {{.name = "size", .type = OPT_SIZE},
                               {.name = "search", .type = OPT_DURATION},
                               {.name = "budget", .type = OPT_DURATION},
                               {.name = "warmup", .type = OPT_DURATION},
                               {.name = NULL}};
static char *defaults[] = {"4096", "20s", "5s", "1s", NULL};
static struct bench_info bench = {
    .name = "fake", .options = options, .n_own = 2, .defaults = defaults};
static const struct bench_list benches = {.benches = &bench, .n = 1, .problems = ""};

static void test_of_one_launch(void **state)
{
    static const struct {
        const char *arguments;
        enum launch_state state;
        uint64_t ms;
    } cases[] = {{"", LAUNCH_TODO, 6000},
                 {"--size 1", LAUNCH_TODO, 6000},
                 {"--size 1 --budget 200ms", LAUNCH_TODO, 1200},
                 {"--budget 200ms --warmup 100ms --size 1", LAUNCH_TODO, 300},
                 {"--search 15s --budget 1s", LAUNCH_TODO, 17000},
                 {"--no-budget 2s --budgets 3s", LAUNCH_TODO, 6000},
                 {"--budget 1s", LAUNCH_DONE, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct launch launch = {
            .bench = "fake", .arguments = (char *)cases[i].arguments, .state = cases[i].state};
        struct plan plan = {.launches = &launch, .n = 1};
        struct estimate e = estimate_plan(&benches, &plan, 0, PROCESS_CASE, NULL);

        assert_int_equal(e.all_ns, cases[i].ms * MS);
        assert_int_equal(e.n, cases[i].state == LAUNCH_TODO);
    }
}

static void test_of_a_plan(void **state)
{
    struct launch launches[] = {
        {.bench = "fake", .arguments = "--budget 200ms --warmup 100ms"},
        {.bench = "fake", .arguments = "--budget 200ms --warmup 100ms", .state = LAUNCH_LATE},
        {.bench = "fake", .arguments = "--budget 600ms --warmup 100ms"},
        {.bench = "unknown", .arguments = ""},
        {.bench = "fake", .arguments = "--budget 200ms --warmup 100ms"}};
    struct plan plan = {.launches = launches, .n = 5};
    struct estimate e = estimate_plan(&benches, &plan, 0, PROCESS_CASE, NULL);

    (void)state;
    assert_int_equal(e.n, 3);
    assert_int_equal(e.all_ns, 1300 * MS);
    assert_int_equal(e.least_ns, 300 * MS);
    assert_int_equal(e.most_ns, 700 * MS);
}

static struct launch pace_launches[] = {
    {.bench = "fake", .case_number = 1, .arguments = "--budget 200ms --warmup 100ms"},
    {.bench = "fake", .case_number = 2, .arguments = "--budget 600ms --warmup 100ms"},
    {.bench = "unknown", .case_number = 3, .arguments = ""},
    {.bench = "fake", .case_number = 1, .arguments = "--budget 200ms --warmup 100ms"},
    {.bench = "fake", .case_number = 4294967295u, .arguments = "--budget 200ms --warmup 100ms"}};

/* A launch of 300 ms that took 2.3 s: its like takes as long, others of its benchmark as much more than is asked. */
static void test_pace(void **state)
{
    struct plan plan = {.launches = pace_launches, .n = 5};
    struct pace p;

    (void)state;
    for (size_t i = 0; i < plan.n; i++)
        pace_launches[i].state = LAUNCH_TODO;
    assert_int_equal(pace_make(&p, &benches, &plan, 0), 0);
    assert_true(pace_left_ns(&p, &plan) == 0); /* nothing to tell by */
    pace_launches[0].state = LAUNCH_DONE;
    pace_ended(&p, &plan, 0, 2300 * MS);
    assert_true(pace_expects_ns(&p, &plan, 3) == 2300. * MS);
    assert_true(pace_expects_ns(&p, &plan, 1) == 2700. * MS);
    assert_true(pace_expects_ns(&p, &plan, 2) == 2000. * MS);
    assert_true(pace_expects_ns(&p, &plan, 4) == 2300. * MS);
    assert_true(pace_left_ns(&p, &plan) == 9300. * MS);
    /* One that ended early takes as much off what is asked, and never more than all of it. */
    pace_launches[4].state = LAUNCH_FAIL;
    pace_ended(&p, &plan, 4, 0);
    assert_true(pace_expects_ns(&p, &plan, 1) == 1550. * MS);
    for (int i = 0; i < 7; i++)
        pace_ended(&p, &plan, 4, 0);
    assert_true(pace_expects_ns(&p, &plan, 2) == 0);
    assert_true(pace_expects_ns(&p, &plan, 3) == 2300. * MS); /* known by itself */
    /* A time-out is nobody else's time. */
    double before_ns = pace_expects_ns(&p, &plan, 1);
    pace_launches[2].state = LAUNCH_LATE;
    pace_ended(&p, &plan, 2, 180000 * MS);
    assert_true(pace_expects_ns(&p, &plan, 2) == 180000. * MS);
    assert_true(pace_expects_ns(&p, &plan, 1) == before_ns);
    pace_release(&p);
    pace_release(&p);
}

/* How long is said, rounded up and never down. */
static void test_text(void **state)
{
    static const struct {
        uint64_t asked_ms, start_ms;
        const char *about;
    } cases[] = {{1300, 2200, "about 4 s"},
                 {6000, 50, "about 7 s"},
                 {90001, 0, "about 2 min"},
                 {5400000, 0, "about 1.5 h"},
                 {5760001, 0, "about 1.7 h"}};
    char text[ESTIMATE_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct estimate e = {.all_ns = cases[i].asked_ms * MS,
                                   .start_ns = cases[i].start_ms * MS,
                                   .least_ns = 1,
                                   .most_ns = 1,
                                   .n = 10};

        assert_non_null(strstr(estimate_text(&e, NULL, text), cases[i].about));
    }
}

static struct opt group_options[] = {{.name = "np", .type = OPT_U64},
                                     {.name = "ranks", .type = OPT_STRING},
                                     {.name = "budget", .type = OPT_DURATION},
                                     {.name = NULL}};
static char *group_defaults[] = {"2", "1,2", "1s", NULL};
static struct bench_info group = {.name = "group",
                                  .needs = "group",
                                  .options = group_options,
                                  .n_own = 2,
                                  .defaults = group_defaults};

/* Communicators of 1, 2, 4 .. N are a point each. */
static void test_of_a_group(void **state)
{
    static const struct {
        const char *arguments, *hosts;
        unsigned ranks, points;
    } cases[] = {{"", "", 8, 2},
                 {"--np 4", "", 8, 3},
                 {"--np 4", "a;b", 8, 4},
                 {"", "a;b", 7, 4},
                 {"--ranks 0", "a;b", 5, 4},
                 {"--ranks 4", "a;b", 8, 1},
                 {"--ranks 1,2,4", "a;b", 8, 3},
                 {"--np 4 --ranks 1,4", "", 8, 2}};
    const struct bench_list list = {.benches = &group, .n = 1, .problems = ""};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct launch launch = {.bench = "group",
                                .arguments = (char *)cases[i].arguments,
                                .hosts = (char *)cases[i].hosts};
        struct plan plan = {.launches = &launch, .n = 1};
        struct estimate e = estimate_plan(&list, &plan, cases[i].ranks, PROCESS_CASE, NULL);
        assert_int_equal(e.all_ns, cases[i].points * 1000 * MS);
    }
}

/* What is set up for each case, and what a process pays once. A process itself takes 50 ms. */
static const struct bench_start starts[] = {
    {.what = "driver", .where = "size!=1", .seconds = 2, .flags = START_ONCE},
    {.what = "arrays", .seconds = 0.3},
    {.what = "search", .where = "search!=", .seconds = 1},
    {.what = "choice", .where = "size=2,4", .seconds = 5, .flags = START_KEPT},
    {.what = NULL}};

#define CASE(number, round)                                                                        \
    {                                                                                              \
        .bench = "fake", .case_number = number, .repeat = round,                                   \
        .arguments = number == 3   ? "--size 1"                                                    \
                     : number == 2 ? "--size 4"                                                    \
                                   : "--size 2"                                                    \
    }

/* --search has a default, so that all four search. Of the choices one was kept, one is new. */
static void test_of_starts(void **state)
{
    struct launch launches[] = {CASE(1, 1), CASE(2, 2), CASE(3, 1), CASE(2, 1), CASE(1, 2)};
    struct plan plan = {.launches = launches, .n = 5};
    struct bench_info dear = bench;
    const struct bench_list list = {.benches = &dear, .n = 1, .problems = ""};
    static const struct {
        enum process_rule rule;
        uint64_t ms;
    } cases[] = {{PROCESS_CASE, 4 * (50 + 300 + 1000) + 3 * 2000 + 5000},
                 {PROCESS_ROUND, 4 * 1300 + 2 * (50 + 2000) + 5000},
                 {PROCESS_AUTO, 4 * 1300 + 2 * (50 + 2000) + 50 + 5000}};

    (void)state;
    launches[3].state = LAUNCH_DONE;
    dear.rows.starts = starts;
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(estimate_plan(&list, &plan, 0, cases[i].rule, NULL).start_ns,
                         cases[i].ms * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_of_a_group),    cmocka_unit_test(test_of_starts),
        cmocka_unit_test(test_of_one_launch), cmocka_unit_test(test_of_a_plan),
        cmocka_unit_test(test_pace),          cmocka_unit_test(test_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
