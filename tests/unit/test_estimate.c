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
static struct opt options[] = {
    {.name = "size", .type = OPT_SIZE},
    {.name = "search", .type = OPT_DURATION},
    {.name = "budget", .type = OPT_DURATION},
    {.name = "warmup", .type = OPT_DURATION},
    {.name = NULL},
};
static char *defaults[] = {"4096", "20s", "5s", "1s", NULL};
static struct bench_info bench = {
    .name = "fake", .options = options, .n_own = 2, .defaults = defaults};
static const struct bench_list benches = {.benches = &bench, .n = 1, .problems = ""};

static struct estimate of(const char *arguments, enum launch_state state)
{
    struct launch launch = {.bench = "fake", .arguments = (char *)arguments, .state = state};
    struct plan plan = {.launches = &launch, .n = 1};

    return estimate_plan(&benches, &plan, 0, PROCESS_CASE, NULL);
}

static void test_of_one_launch(void **state)
{
    (void)state;
    assert_int_equal(of("", LAUNCH_TODO).all_ns, 6000 * MS);
    assert_int_equal(of("--size 1", LAUNCH_TODO).all_ns, 6000 * MS);
    assert_int_equal(of("--size 1 --budget 200ms", LAUNCH_TODO).all_ns, 1200 * MS);
    assert_int_equal(of("--budget 200ms --warmup 100ms --size 1", LAUNCH_TODO).all_ns, 300 * MS);
    assert_int_equal(of("--search 15s --budget 1s", LAUNCH_TODO).all_ns, 17000 * MS);
    assert_int_equal(of("--no-budget 2s --budgets 3s", LAUNCH_TODO).all_ns, 6000 * MS);
    assert_int_equal(of("--budget 1s", LAUNCH_DONE).n, 0);
    assert_int_equal(of("--budget 1s", LAUNCH_DONE).all_ns, 0);
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

static uint64_t group_ns(const char *arguments, const char *hosts, unsigned ranks)
{
    struct launch launch = {
        .bench = "group", .arguments = (char *)arguments, .hosts = (char *)hosts};
    struct plan plan = {.launches = &launch, .n = 1};
    const struct bench_list list = {.benches = &group, .n = 1, .problems = ""};

    return estimate_plan(&list, &plan, ranks, PROCESS_CASE, NULL).all_ns;
}

/* Communicators of 1, 2, 4 .. N are a point each. */
static void test_of_a_group(void **state)
{
    (void)state;
    assert_int_equal(group_ns("", "", 8), 2000 * MS);
    assert_int_equal(group_ns("--np 4", "", 8), 3000 * MS);
    assert_int_equal(group_ns("--np 4", "a;b", 8), 4000 * MS);
    assert_int_equal(group_ns("", "a;b", 7), 4000 * MS);
    assert_int_equal(group_ns("--ranks 0", "a;b", 5), 4000 * MS);
    assert_int_equal(group_ns("--ranks 4", "a;b", 8), 1000 * MS);
    assert_int_equal(group_ns("--ranks 1,2,4", "a;b", 8), 3000 * MS);
    assert_int_equal(group_ns("--np 4 --ranks 1,4", "", 8), 2000 * MS);
}

static void test_of_a_plan(void **state)
{
    struct launch launches[] = {
        {.bench = "fake", .arguments = "--budget 200ms --warmup 100ms"},
        {.bench = "fake", .arguments = "--budget 200ms --warmup 100ms", .state = LAUNCH_LATE},
        {.bench = "fake", .arguments = "--budget 600ms --warmup 100ms"},
        {.bench = "unknown", .arguments = ""},
        {.bench = "fake", .arguments = "--budget 200ms --warmup 100ms"},
    };
    struct plan plan = {.launches = launches, .n = 5};
    struct estimate e = estimate_plan(&benches, &plan, 0, PROCESS_CASE, NULL);

    (void)state;
    assert_int_equal(e.n, 3);
    assert_int_equal(e.all_ns, 1300 * MS);
    assert_int_equal(e.least_ns, 300 * MS);
    assert_int_equal(e.most_ns, 700 * MS);
}

/* What is set up for each case, and what a process pays once. A process itself takes 50 ms. */
static const struct bench_start starts[] = {
    {.what = "driver", .where = "size!=1", .seconds = 2, .flags = START_ONCE},
    {.what = "arrays", .seconds = 0.3},
    {.what = "search", .where = "search!=", .seconds = 1},
    {.what = "choice", .where = "size=2,4", .seconds = 5, .flags = START_KEPT},
    {.what = NULL},
};

static uint64_t start_of(enum process_rule rule)
{
    static struct launch launches[] = {
        {.bench = "fake", .case_number = 1, .arguments = "--size 2", .repeat = 1},
        {.bench = "fake", .case_number = 2, .arguments = "--size 4", .repeat = 2},
        {.bench = "fake", .case_number = 3, .arguments = "--size 1", .repeat = 1},
        {.bench = "fake",
         .case_number = 2,
         .arguments = "--size 4",
         .repeat = 1,
         .state = LAUNCH_DONE},
        {.bench = "fake", .case_number = 1, .arguments = "--size 2", .repeat = 2},
    };
    struct plan plan = {.launches = launches, .n = 5};
    struct bench_info dear = bench;
    const struct bench_list list = {.benches = &dear, .n = 1, .problems = ""};

    dear.rows.starts = starts;
    return estimate_plan(&list, &plan, 0, rule, NULL).start_ns;
}

static void test_of_starts(void **state)
{
    (void)state;
    /* --search has a default, so that all four search. Of the choices one was kept, one is new. */
    assert_int_equal(start_of(PROCESS_CASE), (4 * (50 + 300 + 1000) + 3 * 2000 + 5000) * MS);
    assert_int_equal(start_of(PROCESS_ROUND), (4 * 1300 + 2 * (50 + 2000) + 5000) * MS);
    assert_int_equal(start_of(PROCESS_AUTO), (4 * 1300 + 2 * (50 + 2000) + 50 + 5000) * MS);
}

static struct launch pace_launches[] = {
    {.bench = "fake", .case_number = 1, .arguments = "--budget 200ms --warmup 100ms"},
    {.bench = "fake", .case_number = 2, .arguments = "--budget 600ms --warmup 100ms"},
    {.bench = "unknown", .case_number = 3, .arguments = ""},
    {.bench = "fake", .case_number = 1, .arguments = "--budget 200ms --warmup 100ms"},
    {.bench = "fake", .case_number = 4294967295u, .arguments = "--budget 200ms --warmup 100ms"},
};

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
    pace_ended(&p, &plan, 4, 0);
    pace_ended(&p, &plan, 4, 0);
    pace_ended(&p, &plan, 4, 0);
    pace_ended(&p, &plan, 4, 0);
    pace_ended(&p, &plan, 4, 0);
    pace_ended(&p, &plan, 4, 0);
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

#define USUAL(asked, start, least, most, launches)                                                 \
    {                                                                                              \
        .all_ns = asked, .start_ns = start, .least_ns = least, .most_ns = most, .n = launches      \
    }

/* Up, never down. */
static void test_text(void **state)
{
    static const struct {
        struct estimate e;
        const char *want;
    } cases[] = {
        {USUAL(1300 * MS, 2200 * MS, 300 * MS, 700 * MS, 3),
         "expected time: about 4 s, or half to twice that: 2 s of warm-up and sampling (3 launches "
         "x 300 ms to 700 ms), 3 s of start, set-up and checks"},
        {USUAL(6000 * MS, 50 * MS, 6000 * MS, 6000 * MS, 1),
         "expected time: about 7 s, or half to twice that: 6 s of warm-up and sampling (1 launch "
         "x 6 s), 1 s of start"},
        {USUAL(90001 * MS, 0, 1, 1, 2), "expected time: about 2 min,"},
        {USUAL(5400000 * MS, 0, 1, 1, 2), "expected time: about 1.5 h,"},
        {USUAL(5760001 * MS, 0, 1, 1, 2), "expected time: about 1.7 h,"},
    };
    char text[ESTIMATE_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_memory_equal(estimate_text(&cases[i].e, NULL, text), cases[i].want,
                            strlen(cases[i].want));
}

/* What kept runs know; the rest by the benchmarks' own figures; and where the two are far apart. */
static void test_known_text(void **state)
{
    const struct earlier one = {.n_runs = 1, .newest = "results/a"},
                         three = {.n_runs = 3, .newest = "results/c"};
    struct estimate e = {.all_ns = 60000 * MS,
                         .start_ns = 60000 * MS,
                         .least_ns = 1,
                         .most_ns = 1,
                         .n = 10,
                         .known_ns = 150000 * MS,
                         .known_asked_ns = 60000 * MS,
                         .known_start_ns = 60000 * MS,
                         .n_known = 10};
    char text[ESTIMATE_BYTES];

    (void)state;
    assert_string_equal(estimate_text(&e, &one, text),
                        "expected time: about 3 min: so long they took in 1 kept run of this "
                        "machine (results/a)");
    e.known_ns = 241000 * MS;
    assert_string_equal(estimate_text(&e, &three, text),
                        "expected time: about 5 min: so long they took in 3 kept runs of this "
                        "machine (the newest: results/c); by the benchmarks' own figures these "
                        "would take 2 min");
    e.n_known = 4;
    e.known_ns = 40000 * MS;
    e.known_asked_ns = 20000 * MS;
    e.known_start_ns = 20000 * MS;
    assert_string_equal(estimate_text(&e, &three, text),
                        "expected time: about 2 min: 4 of 10 launches took 40 s in 3 kept runs of "
                        "this machine (the newest: results/c), the others may take 80 s, or half "
                        "to twice that");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_of_one_launch), cmocka_unit_test(test_of_a_group),
        cmocka_unit_test(test_of_a_plan),     cmocka_unit_test(test_of_starts),
        cmocka_unit_test(test_pace),          cmocka_unit_test(test_text),
        cmocka_unit_test(test_known_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
