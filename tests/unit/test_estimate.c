/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates: by the bounds of a launch's own options, or the defaults; which launches count; and how they
 * are told. */
#include "harness/run/estimate.h"
#include "tests/unit/unit.h"

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

TEST(test_of_one_launch)
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

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct launch launch = {
            .bench = "fake", .arguments = (char *)cases[i].arguments, .state = cases[i].state};
        struct plan plan = {.launches = &launch, .n = 1};
        struct estimate e;

        estimate_make(&e, &benches, &plan, 0);
        assert_true(e.all_ns == (double)cases[i].ms * MS);
        assert_int_equal(e.todo, cases[i].state == LAUNCH_TODO);
        estimate_release(&e);
    }
}

TEST(test_of_a_plan)
{
    struct launch launches[] = {
        {.bench = "fake", .arguments = "--budget 200ms --warmup 100ms"},
        {.bench = "fake", .arguments = "--budget 200ms --warmup 100ms", .state = LAUNCH_LATE},
        {.bench = "fake", .arguments = "--budget 600ms --warmup 100ms"},
        {.bench = "unknown", .arguments = ""},
        {.bench = "fake", .arguments = "--budget 200ms --warmup 100ms"}};
    struct plan plan = {.launches = launches, .n = 5};
    struct estimate e;

    estimate_make(&e, &benches, &plan, 0);
    assert_int_equal(e.todo, 3);
    assert_true(e.all_ns == 1300. * MS && e.least_ns == 300. * MS && e.most_ns == 700. * MS);
    estimate_release(&e);
}

static struct launch left_launches[] = {
    {.bench = "fake", .case_number = 1, .arguments = "--budget 200ms --warmup 100ms"},
    {.bench = "fake", .case_number = 2, .arguments = "--budget 600ms --warmup 100ms"},
    {.bench = "unknown", .case_number = 3, .arguments = ""},
    {.bench = "fake", .case_number = 4, .arguments = "--budget 200ms --warmup 100ms"},
    {.bench = "fake", .case_number = 4, .arguments = "--budget 200ms --warmup 100ms"}};

/* A launch of 300 ms that took 2.3 s: the others take 2 s more than is expected as well. */
TEST(test_what_is_left)
{
    struct plan plan = {.launches = left_launches, .n = 4};
    struct estimate e;

    for (size_t i = 0; i < plan.n; i++)
        left_launches[i].state = LAUNCH_TODO;
    estimate_make(&e, &benches, &plan, 0);
    left_launches[0].state = LAUNCH_DONE;
    estimate_ended(&e, &plan, 0, 2300 * MS);
    assert_true(estimate_expects_ns(&e, 1) == 2700. * MS);
    assert_true(estimate_expects_ns(&e, 2) == 2000. * MS);
    assert_true(estimate_left_ns(&e, &plan) == 7000. * MS);
    /* One that ended early takes as much off what is expected, and never more than all of it. */
    left_launches[3].state = LAUNCH_FAIL;
    estimate_ended(&e, &plan, 3, 0);
    assert_true(estimate_expects_ns(&e, 1) == 1550. * MS);
    for (int i = 0; i < 7; i++)
        estimate_ended(&e, &plan, 3, 0);
    assert_true(estimate_expects_ns(&e, 2) == 0);
    /* A time-out is nobody else's time. */
    double before_ns = estimate_expects_ns(&e, 1);
    left_launches[2].state = LAUNCH_LATE;
    estimate_ended(&e, &plan, 2, 180000 * MS);
    assert_true(estimate_expects_ns(&e, 1) == before_ns);
    /* The plan gets one more launch of a case. */
    estimate_again(&e, 1);
    assert_true(e.n == 5 && estimate_expects_ns(&e, 4) == before_ns);
    estimate_release(&e);
    estimate_release(&e);
}

/* How long is said, rounded up and never down. */
TEST(test_text)
{
    static const struct {
        uint64_t ms;
        const char *about;
    } cases[] = {{3500, "about 4 s"},      {6050, "about 7 s"},
                 {15000, "about 15 s"}, /* a second has no exact part of 1e-9 */
                 {120000, "about 2 min"},  {90001, "about 2 min"},
                 {5400000, "about 1.5 h"}, {5760001, "about 1.7 h"}};
    char text[ESTIMATE_BYTES];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct estimate e = {
            .all_ns = (double)cases[i].ms * MS, .least_ns = 1, .most_ns = 1, .todo = 10};

        assert_non_null(strstr(estimate_text(&e, text), cases[i].about));
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
TEST(test_of_a_group)
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

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct launch launch = {.bench = "group",
                                .arguments = (char *)cases[i].arguments,
                                .hosts = (char *)cases[i].hosts};
        assert_int_equal(launch_asked_ns(&list, &launch, cases[i].ranks),
                         cases[i].points * 1000 * MS);
    }
}
