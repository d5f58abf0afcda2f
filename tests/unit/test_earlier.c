/* SPDX-License-Identifier: Apache-2.0 */
/* How long launches took in the last run of a suite: which run that is, which launches count, and
 * how long each is said to take. Run folders are made by hand. */
#include <sys/stat.h>
#include <time.h>
#include <utime.h>

#include "core/program.h"
#include "harness/run/earlier.h"
#include "tests/unit/fake_run.h"
#include "tests/unit/unit.h"

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

static struct earlier load(void)
{
    struct earlier e;

    earlier_load(&e, (const char *const[]){f.path, "/nowhere", NULL}, "night", "copy", "auto");
    return e;
}

static double seconds(const struct earlier *e, const char *arguments, const char *hosts)
{
    return earlier_seconds(
        e,
        &(struct launch){.bench = "copy", .arguments = (char *)arguments, .hosts = (char *)hosts});
}

TEST_WITH(test_means_of_launches, set_up, tear_down)
{
    make_run(&f, "new", here, 5, 2, 10);
    make_run(&f, "old", here, 3, 1, 20);
    struct earlier e = load();
    assert_non_null(strstr(e.run, "/new"));
    assert_true(seconds(&e, "--size 8", "") == 3.5);
    assert_true(isnan(seconds(&e, "--size 9", ""))); /* it failed */
    assert_true(isnan(seconds(&e, "--size", "")));
    assert_true(isnan(seconds(&e, "--size 8", "a;b")));
    earlier_release(&e);
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
    struct earlier e = load();
    assert_string_equal(e.run, "");
    assert_true(isnan(seconds(&e, "--size 8", "")));
    earlier_release(&e);
}
