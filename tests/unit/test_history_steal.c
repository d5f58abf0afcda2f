/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the history of runs: launches during which other guests took the CPU. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/history/history.h"
#include "harness/history/history_db.h"
#include "history_stolen.h"

/* --- what is kept --- */

static void check_kept(const struct history *h)
{
    assert_int_equal(h->n_series, 3);
    assert_int_equal(h->series[0].n_launches[0], LAUNCHES);
    assert_true(h->series[0].steals[0][0] == 0.5);
    assert_true(h->series[0].steals[0][1] == 30);
    assert_true(isnan(h->series[0].steals[0][2]));
    assert_true(h->series[1].steals[0][2] == 12.5);
    assert_true(h->series[0].launches[0][1] == 100 * 1.001);
}

static double some[CHECK_CASES][LAUNCHES] = {{0.5, 30, UNSAID}, {20, 3, 12.5}, {0, 0, 0}};

static void test_what_others_took_is_kept_as_the_folder_has_it(void **state)
{
    struct scene *s = *state;
    const char *root = s->root.path;
    char path[128], error[512] = "";
    bool known;
    struct history h;

    write_stolen(s, 0, some, path, sizeof(path));
    assert_int_equal(history_read_folders(&root, 1, NULL, &h, error, sizeof(error)), 0);
    check_kept(&h);
    history_release(&h);
    if (add_as(s->db, path, HISTORY_SEEN, NULL, error, sizeof(error)) == -ENOSYS)
        skip();
    read_db(s, &h);
    check_kept(&h);
    history_release(&h);
    /* another share alone is another run; the same is not */
    assert_int_equal(add_as(s->db, path, HISTORY_SEEN, &known, error, sizeof(error)), 0);
    assert_true(known);
    add_stolen(s, 0, 7, HISTORY_SEEN);
    read_db(s, &h);
    assert_true(h.series[0].steals[0][2] == 7);
    history_release(&h);
    assert_sound(s->db);
}

/* Rows of one launch that are one case: the launch is as disturbed as the worst of them. */
static void test_of_a_launch_that_says_a_case_twice_the_most_counts(void **state)
{
    struct scene *s = *state;
    const char *root = s->root.path;
    char path[128], error[512] = "";
    struct history h;

    write_stolen(s, 0, some, path, sizeof(path));
    FILE *rows = fake_run_open(&s->root, "one-0/memory.csv", "a");
    for (int i = 0; i < 2; i++)
        fprintf(rows,
                "op2,bandwidth,GB/s,%d,1,1,0.95,10,,converged,measured,ok,,one-0,c2,9,one,"
                "2026-01-01T00:00:00Z,%d\n",
                6 + i, i ? 8 : 1);
    fclose(rows);
    FILE *plan = fake_run_open(&s->root, "one-0/plan.csv", "a");
    fputs("done,2,99,c2,9,memory,--op op2,60\n", plan);
    fclose(plan);
    assert_int_equal(history_read_folders(&root, 1, NULL, &h, error, sizeof(error)), 0);
    assert_int_equal(h.series[2].n_launches[0], LAUNCHES + 1);
    assert_true(h.series[2].launches[0][LAUNCHES] == 6.5);
    assert_true(h.series[2].steals[0][LAUNCHES] == 8);
    history_release(&h);
}

/* --- a case over the runs --- */

#define RUNS 30

struct night {
    double value, steal;
};

/* One case, a launch or two a run. */
static void make_trends(struct history *h, struct night nights[RUNS][2], double limit,
                        struct trends *t)
{
    const struct trend_filter filter = {"", "", "", limit};
    struct history_entries e = {0};

    *h = (struct history){0};
    h->runs = pool_alloc(&h->pool, RUNS, sizeof(*h->runs));
    for (size_t i = 0; i < RUNS; i++) {
        double *launches = pool_alloc(&h->pool, 2, sizeof(double));
        double *steals = pool_alloc(&h->pool, 2, sizeof(double));

        h->runs[h->n_runs++] = (struct history_run){
            .name = pool_text(&h->pool, "n%zu", i),
            .host = "one",
            .suite = "quick",
            .started_utc = pool_text(&h->pool, "2026-01-%02zuT02:00:00Z", i + 1),
            .version = "",
            .commit = ""};
        for (size_t k = 0; k < 2; k++) {
            launches[k] = nights[i][k].value;
            steals[k] = nights[i][k].steal;
        }
        history_entries_add(&e, &(struct history_entry){.key = "memory|op=triad|b|GB/s",
                                                        .label = "memory triad",
                                                        .pipe = "Memory",
                                                        .host = "one",
                                                        .suite = "quick",
                                                        .unit = "GB/s",
                                                        .higher_is_better = true,
                                                        .run = i,
                                                        .launches = launches,
                                                        .steals = steals,
                                                        .n_launches = 2});
    }
    assert_int_equal(history_build(h, &e), 0);
    assert_int_equal(trends_make(t, h, &filter), 0);
    assert_int_equal(t->n, 1);
    free(e.all);
}

static void calm_nights(struct night nights[RUNS][2])
{
    for (size_t i = 0; i < RUNS; i++)
        for (size_t k = 0; k < 2; k++)
            nights[i][k] = (struct night){100 * (1 + 0.001 * (double)((i * 7 + k) % 5)), 0};
}

/* Ten nights at half the level, since neighbours took the CPU: no step, until they are asked for. */
static void test_stolen_nights_are_no_step(void **state)
{
    struct night nights[RUNS][2];
    struct history h;
    struct trends t;
    const char *remarks[TRENDS_REMARKS];

    (void)state;
    calm_nights(nights);
    for (size_t i = 20; i < RUNS; i++)
        nights[i][0] = nights[i][1] = (struct night){50 + (double)(i % 3), 12};
    make_trends(&h, nights, 0.02, &t);
    assert_int_equal(t.all[0].n_points, 0);
    assert_int_equal(t.all[0].n_values, 20);
    assert_int_equal(t.all[0].n_gone, 10);
    assert_true(isnan(t.all[0].values[25]));
    assert_true(t.all[0].taken[25] == 51);
    assert_true(isnan(t.all[0].taken[5]));
    assert_int_equal(t.all[0].n_taken[25], 2);
    assert_true(fabs(trend_level(&t.all[0], 0) - 100.2) < 0.3);
    assert_int_equal(t.n_taken, 1);
    assert_int_equal(t.n_gone, 10);
    assert_int_equal(trends_remarks(&t, remarks), 1);
    assert_string_equal(remarks[0],
                        "in 1 case launches are left out, as other guests took the CPU (steal; "
                        "--steal); in 10 runs a case has none left, and no value");
    trends_release(&t);
    history_release(&h);
    make_trends(&h, nights, 0, &t);
    assert_int_equal(t.all[0].n_points, 1);
    assert_int_equal(t.all[0].points[0].at, 20);
    assert_int_equal(t.n_taken, 0);
    assert_int_equal(t.n_gone, 0);
    trends_release(&t);
    history_release(&h);
}

/* The limit itself is let in, as by plumb check; what is not known, too. */
static void test_the_value_is_that_of_the_other_launches(void **state)
{
    struct night nights[RUNS][2];
    struct history h;
    struct trends t;

    (void)state;
    calm_nights(nights);
    nights[3][0] = (struct night){40, 2.1};
    nights[4][1] = (struct night){60, 2};
    nights[5][0] = (struct night){80, NAN};
    nights[6][0] = (struct night){NAN, 50}; /* no value that could be left out */
    make_trends(&h, nights, 0.02, &t);
    assert_true(t.all[0].values[3] == nights[3][1].value);
    assert_int_equal(t.all[0].n_taken[3], 1);
    assert_true(isnan(t.all[0].taken[3]));
    assert_float_equal(t.all[0].values[4], sqrt(nights[4][0].value * 60), 1e-9);
    assert_float_equal(t.all[0].values[5], sqrt(nights[5][1].value * 80), 1e-9);
    assert_int_equal(t.all[0].n_taken[6], 0);
    assert_int_equal(t.n_bad, 1);
    assert_int_equal(t.n_taken, 1);
    assert_int_equal(t.n_gone, 0);
    trends_release(&t);
    history_release(&h);
}

/* --- baselines --- */

static void test_a_stolen_run_takes_no_baselines_place(void **state)
{
    struct scene *s = *state;
    char names[256], path[128], error[512] = "";
    size_t n_taken;

    add_stolen(s, 0, 0, HISTORY_BASELINE);
    add_stolen(s, 1, 30, HISTORY_BASELINE);
    add_stolen(s, 2, UNSAID, HISTORY_BASELINE);
    add_stolen(s, 3, 12, HISTORY_BASELINE);
    add_stolen(s, 4, 12, HISTORY_SEEN);
    write_stolen(s, 5, some, path, sizeof(path)); /* in some of its launches */
    assert_int_equal(add_as(s->db, path, HISTORY_BASELINE, NULL, error, sizeof(error)), 0);
    baselines(s, 0, 0.02, &n_taken, names, sizeof(names));
    assert_string_equal(names, "one-0 one-2 one-5");
    assert_int_equal(n_taken, 2);
    baselines(s, 2, 0.02, &n_taken, names, sizeof(names));
    assert_string_equal(names, "one-2 one-5");
    assert_int_equal(n_taken, 1);
    baselines(s, 1, 0.02, &n_taken, names, sizeof(names));
    assert_string_equal(names, "one-5");
    assert_int_equal(n_taken, 0);
    baselines(s, 0, 0.2, &n_taken, names, sizeof(names));
    assert_string_equal(names, "one-0 one-2 one-3 one-5");
    baselines(s, 0, 0, &n_taken, names, sizeof(names));
    assert_string_equal(names, "one-0 one-1 one-2 one-3 one-5");
    assert_int_equal(n_taken, 0);
    struct history_db *db = open_db(s->db, false);
    const struct history_run of[] = {
        {.name = "one-1", .host = "one", .started_utc = "2026-01-02T00:00:00Z"},
        {.name = "one-5", .host = "one", .started_utc = "2026-01-06T00:00:00Z"},
        {.name = "one-1", .host = "two", .started_utc = "2026-01-02T00:00:00Z"}};
    assert_true(history_db_is_taken(db, &of[0], 0.02));
    assert_false(history_db_is_taken(db, &of[0], 0.3));
    assert_false(history_db_is_taken(db, &of[0], 0));
    assert_false(history_db_is_taken(db, &of[1], 0.02));
    assert_false(history_db_is_taken(db, &of[2], 0.02));
    history_db_close(db);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_what_others_took_is_kept_as_the_folder_has_it),
        TEST(test_of_a_launch_that_says_a_case_twice_the_most_counts),
        cmocka_unit_test(test_stolen_nights_are_no_step),
        cmocka_unit_test(test_the_value_is_that_of_the_other_launches),
        TEST(test_a_stolen_run_takes_no_baselines_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
