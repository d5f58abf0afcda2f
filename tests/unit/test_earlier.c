/* SPDX-License-Identifier: Apache-2.0 */
/* How long launches took in kept runs of this machine: which runs count, which launches, and how
 * long each is said to take. Run folders are made by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <utime.h>

#include <cmocka.h>

#include "core/program.h"
#include "harness/run/earlier.h"
#include "tests/unit/fake_run.h"

#define HERE                                                                                       \
    "{\"host\": {\"hostname\": \"here\"}, \"cpu\": {\"model\": \"M\", \"threads\": 8, \"cores\": " \
    "4}, \"gpus\": {\"simulated\": false, \"devices\": [{\"address\": \"0000:1b:00.0\", "          \
    "\"name\": \"H\"}]}}"

static json_t *machine(const char *text)
{
    json_error_t error;
    json_t *m = json_loads(text, 0, &error);

    assert_non_null(m);
    return m;
}

/* A run folder of this name: two launches of a case, which took so long, and one that failed. */
static void make_run(const struct fake_run *f, const char *name, const char *here,
                     const char *processes, const char *version, double first_s, double second_s,
                     long minutes_ago)
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
    fprintf(out,
            "{\"schema\": %d, \"version\": \"%s\", \"run\": \"fake\", \"processes\": \"%s\", "
            "\"machine\": %s}\n",
            ROW_SCHEMA_VERSION, version, processes, here);
    fclose(out);
    strcat(path, "/run.json");
    assert_int_equal(utime(path, &times), 0);
}

struct scene {
    struct fake_run f;
    json_t *here;
};

static int set_up(void **state)
{
    static struct scene s;

    fake_run_init(&s.f);
    s.here = machine(HERE);
    *state = &s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;

    json_decref(s->here);
    fake_run_release(&s->f);
    return 0;
}

static struct earlier load(const struct scene *s)
{
    struct earlier e;

    assert_int_equal(
        earlier_load(&e, (const char *const[]){s->f.path, "/nowhere", NULL}, s->here, "auto"), 0);
    return e;
}

static double seconds(const struct earlier *e, const char *arguments, unsigned repeat,
                      const char *hosts)
{
    return earlier_seconds(e, &(struct launch){.bench = "copy",
                                               .arguments = (char *)arguments,
                                               .repeat = repeat,
                                               .hosts = (char *)hosts});
}

static void test_means_of_launches(void **state)
{
    struct scene *s = *state;

    make_run(&s->f, "old", HERE, "auto", PLUMB_VERSION, 3, 1, 20);
    make_run(&s->f, "new", HERE, "auto", PLUMB_VERSION, 5, 2, 10);
    struct earlier e = load(s);
    assert_int_equal(e.n_runs, 2);
    assert_non_null(strstr(e.newest, "/new"));
    assert_true(seconds(&e, "--size 8", 1, "") == 4);
    assert_true(seconds(&e, "--size 8", 2, "") == 1.5);
    assert_true(seconds(&e, "--size 8", 7, "") == 1.5);
    assert_true(isnan(seconds(&e, "--size 9", 1, ""))); /* it failed */
    assert_true(isnan(seconds(&e, "--size", 1, "")));
    assert_true(isnan(seconds(&e, "--size 8", 1, "a;b")));
    earlier_release(&e);
}

/* Each of these differs from here in one thing. */
static void test_other_machines_count_for_nothing(void **state)
{
    static const char *const others[][2] = {
        {"here", "there"}, {"\"M\"", "\"N\""},     {": 8", ": 6"},       {": 4", ": 2"},
        {"false", "true"}, {"0000:1b", "0000:1c"}, {"\"H\"", "\"H200\""}};
    struct scene *s = *state;

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        char text[512], name[8];
        const char *at = strstr(HERE, others[i][0]);

        assert_non_null(at);
        snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - HERE), HERE, others[i][1],
                 at + strlen(others[i][0]));
        snprintf(name, sizeof(name), "r%zu", i);
        make_run(&s->f, name, text, "auto", PLUMB_VERSION, 3, 1, 1);
    }
    make_run(&s->f, "rule", HERE, "case", PLUMB_VERSION, 3, 1, 1);
    make_run(&s->f, "version", HERE, "auto", "0.0.0", 3, 1, 1);
    struct earlier e = load(s);
    assert_int_equal(e.n_runs, 0);
    assert_int_equal(e.n, 0);
    earlier_release(&e);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {TEST(test_means_of_launches),
                                       TEST(test_other_machines_count_for_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
