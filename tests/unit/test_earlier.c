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
    struct fake_run f;
    struct earlier e;
    json_t *here = machine(HERE);

    (void)state;
    fake_run_init(&f);
    make_run(&f, "old", HERE, "auto", PLUMB_VERSION, 3, 1, 20);
    make_run(&f, "new", HERE, "auto", PLUMB_VERSION, 5, 2, 10);
    assert_int_equal(
        earlier_load(&e, (const char *const[]){f.path, "/nowhere", NULL}, here, "auto"), 0);
    assert_int_equal(e.n_runs, 2);
    assert_non_null(strstr(e.newest, "/new"));
    assert_true(seconds(&e, "--size 8", 1, "") == 4);
    assert_true(seconds(&e, "--size 8", 2, "") == 1.5);
    assert_true(seconds(&e, "--size 8", 7, "") == 1.5);
    assert_true(isnan(seconds(&e, "--size 9", 1, ""))); /* it failed */
    assert_true(isnan(seconds(&e, "--size", 1, "")));
    assert_true(isnan(seconds(&e, "--size 8", 1, "a;b")));
    earlier_release(&e);
    json_decref(here);
    fake_run_release(&f);
}

/* What was absent then took no time. Skipped in a newer run, and done in an older one, even if as a later launch's first. */
static void test_skipped_ones_count_where_none_was_done(void **state)
{
    static const char skipped[] = FAKE_PLAN_HEADER "skip,0001,1,1,1,copy,--size 8,60\n"
                                                   "skip,0001,2,1,2,copy,--size 8,60\n"
                                                   "fail,0001,3,2,1,copy,--size 9,60\n";
    struct fake_run f;
    struct earlier e;
    json_t *here = machine(HERE);

    (void)state;
    fake_run_init(&f);
    make_run(&f, "new", HERE, "auto", PLUMB_VERSION, 0.25, 0.5, 10);
    fake_run_write(&f, "new/plan.csv", skipped);
    assert_int_equal(earlier_load(&e, (const char *const[]){f.path, NULL}, here, "auto"), 0);
    assert_true(seconds(&e, "--size 8", 1, "") == 0.25);
    assert_true(seconds(&e, "--size 8", 2, "") == 0.5);
    earlier_release(&e);
    make_run(&f, "old", HERE, "auto", PLUMB_VERSION, 4, NAN, 20);
    assert_int_equal(earlier_load(&e, (const char *const[]){f.path, NULL}, here, "auto"), 0);
    assert_true(seconds(&e, "--size 8", 1, "") == 4);
    assert_true(seconds(&e, "--size 8", 2, "") == 4);
    earlier_release(&e);
    json_decref(here);
    fake_run_release(&f);
}

/* Each of these differs from here in one thing. */
static void test_other_machines_count_for_nothing(void **state)
{
    static const struct {
        const char *from, *to;
    } others[] = {{"here", "there"}, {"\"M\"", "\"N\""},     {": 8", ": 6"},       {": 4", ": 2"},
                  {"false", "true"}, {"0000:1b", "0000:1c"}, {"\"H\"", "\"H200\""}};
    struct fake_run f;
    struct earlier e;
    json_t *here = machine(HERE);

    (void)state;
    fake_run_init(&f);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        char text[512], name[8];
        const char *at = strstr(HERE, others[i].from);
        assert_non_null(at);
        snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - HERE), HERE, others[i].to,
                 at + strlen(others[i].from));
        snprintf(name, sizeof(name), "r%zu", i);
        make_run(&f, name, text, "auto", PLUMB_VERSION, 3, 1, 1);
    }
    make_run(&f, "rule", HERE, "case", PLUMB_VERSION, 3, 1, 1);
    make_run(&f, "version", HERE, "auto", "0.0.0", 3, 1, 1);
    assert_int_equal(earlier_load(&e, (const char *const[]){f.path, NULL}, here, "auto"), 0);
    assert_int_equal(e.n_runs, 0);
    assert_int_equal(e.n, 0);
    assert_true(isnan(seconds(&e, "--size 8", 1, "")));
    earlier_release(&e);
    json_decref(here);
    fake_run_release(&f);
}

/* Runs of older versions do not know how long a launch took. */
static void test_not_told(void **state)
{
    struct fake_run f;
    struct earlier e;
    json_t *here = machine(HERE);

    (void)state;
    fake_run_init(&f);
    make_run(&f, "old", HERE, "auto", PLUMB_VERSION, NAN, 2, 1);
    assert_int_equal(earlier_load(&e, (const char *const[]){f.path, NULL}, here, "auto"), 0);
    assert_true(isnan(seconds(&e, "--size 8", 1, ""))); /* a later launch may have kept a choice */
    assert_true(seconds(&e, "--size 8", 2, "") == 2);
    earlier_release(&e);
    json_decref(here);
    fake_run_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_means_of_launches),
        cmocka_unit_test(test_other_machines_count_for_nothing),
        cmocka_unit_test(test_not_told),
        cmocka_unit_test(test_skipped_ones_count_where_none_was_done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
