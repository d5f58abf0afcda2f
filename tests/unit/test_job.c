/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows are a job, what bounds it, and which are other ways to do it: made by hand. */
#include "core/job.h"
#include "tests/unit/unit.h"

static const struct bench_column told_columns[] = {{.name = "size", .flags = COLUMN_BYTES},
                                                   {.name = "nodes", .flags = COLUMN_OUTCOME},
                                                   {.name = "rank"},
                                                   {.name = NULL}};
static const struct bench_job told_jobs[] = {{.label = "Work",
                                              .where = "metric=rate",
                                              .by = "name",
                                              .at = "+ranks",
                                              .on = "ranks",
                                              .thing = "rank",
                                              .gain = 2},
                                             {.label = NULL}};
static const struct bench_bound told_bounds[] = {
    {.where = "metric=waits nodes!=1", .word = "the wire", .says = "it waits %s of the time"},
    {.where = "metric=waits nodes=1", .word = "the host", .says = "%s waits"},
    {.where = "metric=gaps", .word = "gaps", .says = "%s is gaps"},
    {.where = "metric=rate", .word = "work", .says = "%s is work", .flags = BOUND_REST},
    {.where = NULL}};
static const struct bench_advice told_advice[] = {
    {.column = "size", .says = "blocks of %s", .measure = "--size 1K,4K"},
    {.column = "way", .says = "--way %s", .measure = "--way a,b", .where = "nodes!=3"},
    {.column = NULL}};
static const struct bench_rows told = {
    .columns = told_columns, .jobs = told_jobs, .bounds = told_bounds, .advice = told_advice};

static const char *const columns[] = {"name", "ranks", "size", "way", "nodes", "rank"};
#define N_COLUMNS 6

#define P(...) ((const char *const[]){__VA_ARGS__})
#define ROW(of, in, columns, is)                                                                   \
    {                                                                                              \
        .metric = of, .unit = in, .params = columns, .value = is                                   \
    }
#define FAILED(of, in, columns)                                                                    \
    {                                                                                              \
        .metric = of, .unit = in, .params = columns, .value = NAN, .failed = true                  \
    }

static size_t find(const struct job_row *rows, size_t n, struct job_rows *all, struct job *jobs)
{
    *all = (struct job_rows){&told, columns, N_COLUMNS, rows, n};
    return jobs_find(all, jobs, 8);
}

TEST(the_first_case_at_the_most_ranks_is_the_job)
{
    const struct job_row rows[] = {
        ROW("waits", "percent", P("x", "4", "4096", "a", "2", "1"),
            99), /* of one rank: another row */
        ROW("rate", "op/s", P("x", "2", "4096", "a", "2", ""), 50),
        ROW("rate", "op/s", P("x", "4", "4096", "a", "2", ""), 80),
        ROW("rate", "op/s", P("x", "4", "1024", "a", "2", ""), 100), /* faster, and another way */
        ROW("waits", "percent", P("x", "4", "4096", "a", "2", ""), 61),
        ROW("waits", "percent", P("x", "2", "4096", "a", "2", ""), 5),
        ROW("rate", "op/s", P("x", "4", "1024", "b", "2", ""), 200), /* differs in two columns */
        ROW("rate", "op/s", P("x", "4", "4096", "b", "2", ""), NAN), /* has no value */
        ROW("rate", "op/s", P("y", "1", "4096", "a", "1", ""), 7),
    };
    struct job_rows all;
    struct job jobs[8];
    char text[200];
    assert_int_equal(find(rows, 9, &all, jobs), 2);
    assert_int_equal(jobs[0].row, 2);
    assert_string_equal(jobs[0].name, "x");
    assert_ptr_equal(jobs[0].bound, &told_bounds[0]);
    assert_true(jobs[0].share == 61 && jobs[0].lost == 61 && jobs[0].scaled == 80);
    assert_int_equal(jobs[0].n_ways, 1);
    assert_int_equal(jobs[0].ways[0].row, 3);
    assert_non_null(strstr(job_bound_text(&jobs[0], text, sizeof(text)), "61 %"));
    assert_string_equal(job_unmeasured_text(&all, &jobs[0], text, sizeof(text)), "--way a,b");
    assert_int_equal(jobs[1].row, 8); /* no share, no bound */
    assert_null(jobs[1].bound);
    assert_true(isnan(jobs[1].share) && isnan(jobs[1].lost) && isnan(jobs[1].scaled));
}

TEST(what_the_shares_leave_is_the_rest)
{
    const char *const *one = P("x", "2", "4096", "a", "1", "");
    const char *const *three = P("x", "2", "4096", "a", "3", "");
    struct job_row rows[] = {
        ROW("rate", "op/s", one, 50),
        ROW("waits", "percent", one, 20),
        ROW("gaps", "percent", one, 30),
    };
    struct job_rows all;
    struct job jobs[8];
    char text[200];
    assert_int_equal(find(rows, 3, &all, jobs), 1);
    assert_non_null(strstr(job_bound_text(&jobs[0], text, sizeof(text)), "50 %"));
    assert_true(jobs[0].lost == 50);
    rows[2].value = 45; /* leaves 35 */
    assert_int_equal(find(rows, 3, &all, jobs), 1);
    assert_non_null(strstr(job_bound_text(&jobs[0], text, sizeof(text)), "45 %"));
    assert_string_equal(job_unmeasured_text(&all, &jobs[0], text, sizeof(text)),
                        "--size 1K,4K, --way a,b");
    rows[0].params = rows[1].params = rows[2].params = three; /* where ways make no difference */
    assert_int_equal(find(rows, 3, &all, jobs), 1);
    assert_string_equal(job_unmeasured_text(&all, &jobs[0], text, sizeof(text)), "--size 1K,4K");
    rows[0].params = rows[1].params = rows[2].params = one;
    rows[1].value = rows[2].value = 0.5; /* no other way can save 2 % */
    assert_int_equal(find(rows, 3, &all, jobs), 1);
    assert_string_equal(job_unmeasured_text(&all, &jobs[0], text, sizeof(text)), "");
    assert_non_null(strstr(job_bound_text(&jobs[0], text, sizeof(text)), "99 %"));
}

/* What stands first at the most ranks is the job, though it failed: what is faster there is another way. */
TEST(a_job_that_failed_is_no_other_way)
{
    struct job_row rows[] = {
        ROW("rate", "op/s", P("x", "2", "4096", "a", "2", ""), 50),
        ROW("rate", "op/s", P("x", "1", "4096", "a", "1", ""), 40),
        FAILED("rate", "op/s", P("x", "4", "4096", "a", "2", "")),
        ROW("waits", "percent", P("x", "2", "4096", "a", "2", ""), 5),
        ROW("rate", "op/s", P("x", "2", "1024", "a", "2", ""), 60),
        ROW("rate", "op/s", P("x", "4", "1024", "a", "2", ""), 100),
        FAILED("", "", P("y", "", "", "b", "", "")), /* died before it said what it measures */
        ROW("rate", "op/s", P("y", "4", "4096", "a", "2", ""), 7),
        ROW("rate", "op/s", P("z", "4", "4096", "a", "2", ""), 9),
        FAILED("", "", P("z", "", "", "b", "", "")), /* another way */
    };
    struct job_rows all;
    struct job jobs[8];
    assert_int_equal(find(rows, 10, &all, jobs), 3);
    assert_int_equal(jobs[0].row, 0);
    assert_int_equal(jobs[0].failed, 2);
    assert_true(jobs[0].share == 95);
    assert_int_equal(jobs[0].n_ways, 1);
    assert_int_equal(jobs[0].ways[0].row, 4);
    assert_int_equal(jobs[1].row, 6);
    assert_int_equal(jobs[1].failed, 6);
    assert_int_equal(jobs[1].n_ways, 0);
    assert_int_equal(jobs[2].row, 8);
    assert_int_equal(jobs[2].failed, 10);
    rows[2].failed = false; /* it was skipped, as this machine cannot do it */
    assert_int_equal(find(rows, 10, &all, jobs), 3);
    assert_int_equal(jobs[0].row, 5);
}
