/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates: what launches took in the last run of the suite, which run that is, and which launches
 * count; else the bounds of a launch's own options, or the defaults; and how they are told. Run folders
 * are made by hand. */
#include <sys/stat.h>
#include <time.h>
#include <utime.h>

#include "core/program.h"
#include "harness/run/estimate.h"
#include "tests/unit/fake_run.h"
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

/* Without an earlier run. */
static void make(struct estimate *e, const struct plan *plan)
{
    static const char *const nowhere[] = {NULL};

    estimate_make(e, &(struct estimate_of){.benches = &benches, .plan = plan, .folders = nowhere});
}

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

        make(&e, &plan);
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

    make(&e, &plan);
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
    make(&e, &plan);
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

/* ---- The last run of the suite */

/* The members of run.json by which a run is the last one of a suite here. */
#define HERE                                                                                       \
    "\"version\": \"" PLUMB_VERSION                                                                \
    "\", \"suite\": \"night\", \"only\": null, \"processes\": \"auto\", \"state\": "               \
    "\"complete\", \"machine\": {\"host\": {\"hostname\": \"%s\"}}"

/* A run folder of this name: two launches of a case, which took so long, and one that failed. */
static void make_run(const struct fake_run *f, const char *name, const char *meta, double first_s,
                     double second_s, long minutes_ago)
{
    static const char *const names[] = {"size", NULL};
    char file[128], path[512];
    struct utimbuf times = {time(NULL) - 60 * minutes_ago, time(NULL) - 60 * minutes_ago};
    FILE *out;

    snprintf(path, sizeof(path), "%s/%s", f->path, name);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(file, sizeof(file), "%s/plan.csv", name);
    fake_run_write(f, file,
                   FAKE_PLAN_HEADER "done,0001,1,1,1,copy,--size 8,60\n"
                                    "done,0001,2,1,2,copy,--size 8,60\n"
                                    "fail,0001,3,2,1,copy,--size 9,60\n");
    snprintf(file, sizeof(file), "%s/copy.csv", name);
    out = fake_run_open(f, file, "w");
    row_print_csv_header(out, names, 1);
    for (unsigned i = 0; i < 3; i++) {
        struct row row;
        fake_row_init(&row, i < 2 ? "1" : "2", i == 1 ? 2 : 1, "bandwidth", "GB/s", 5);
        row.param_names = names;
        row.n_params = 1;
        row.params[0] = "8";
        row.launch_s = i == 0 ? first_s : i == 1 ? second_s : 99;
        row.status = i < 2 ? "ok" : "failed";
        row_print_csv(out, &row);
    }
    fclose(out);
    snprintf(file, sizeof(file), "%s/run.json", name);
    out = fake_run_open(f, file, "w");
    fprintf(out, "{\"schema\": %d, \"run\": \"fake\", %s}\n", ROW_SCHEMA_VERSION, meta);
    fclose(out);
    strcat(path, "/run.json");
    assert_int_equal(utime(path, &times), 0);
}

static struct fake_run f;
static char here[512];

static int set_up(void **state)
{
    char host[256] = "";

    (void)state;
    fake_run_init(&f);
    gethostname(host, sizeof(host) - 1);
    snprintf(here, sizeof(here), HERE, host);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fake_run_release(&f);
    return 0;
}

/* How long a launch is said to take; NaN: the last run, whose path is in `run`, does not know it. */
static char run[256];

static double seconds(const char *arguments, const char *hosts)
{
    struct bench_info copy = {.name = "copy", .options = (struct opt[]){{.name = NULL}}};
    struct bench_list list = {.benches = &copy, .n = 1};
    struct launch l = {.bench = "copy", .arguments = (char *)arguments, .hosts = (char *)hosts};
    struct plan plan = {.launches = &l, .n = 1};
    struct estimate e;

    estimate_make(&e,
                  &(struct estimate_of){.benches = &list,
                                        .plan = &plan,
                                        .folders = (const char *const[]){f.path, "/nowhere", NULL},
                                        .suite = "night",
                                        .only = "copy",
                                        .processes = "auto"});
    strcpy(run, e.run);
    double s = e.known ? e.expected_ns[0] * 1e-9 : NAN;
    estimate_release(&e);
    return s;
}

TEST_WITH(test_means_of_launches, set_up, tear_down)
{
    make_run(&f, "new", here, 5, 2, 10);
    make_run(&f, "old", here, 3, 1, 20);
    assert_float_equal(seconds("--size 8", ""), 3.5, 1e-9);
    assert_non_null(strstr(run, "/new"));
    assert_true(isnan(seconds("--size 9", ""))); /* it failed */
    assert_true(isnan(seconds("--size", "")));
    assert_true(isnan(seconds("--size 8", "a;b")));
}

/* Each of these differs from the last run here in one thing. */
TEST_WITH(test_other_runs_count_for_nothing, set_up, tear_down)
{
    static const char *const others[][2] = {{"\"hostname\": \"", "\"hostname\": \"not-"},
                                            {"night", "day"},
                                            {"auto", "case"},
                                            {"complete", "running"},
                                            {"\"only\": null", "\"only\": \"memory\""},
                                            {PLUMB_VERSION, "0.0.0"}};

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        char text[600], name[8];
        const char *at = strstr(here, others[i][0]);

        assert_non_null(at);
        snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - here), here, others[i][1],
                 at + strlen(others[i][0]));
        snprintf(name, sizeof(name), "r%zu", i);
        make_run(&f, name, text, 3, 1, 1);
    }
    assert_true(isnan(seconds("--size 8", "")));
    assert_string_equal(run, "");
}
