/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what pairing reads: folders of runs, other schemas, damaged and empty runs, values that are none. */
#include "harness/compare/pairs.h"

#include "tests/unit/pairs_scene.h"

static const char *const params[] = {"op", "size"};
static const char *const triad[] = {"triad", "65536"};
static const struct pairs_options options = {.margin = 0.05};

static void write_run(const struct fake_run *root, const char *name, const double *launches,
                      size_t n)
{
    struct scene_run r = scene_begin(root, name, "memory", params, 2);
    struct row row;

    for (size_t i = 0; i < n; i++) {
        fake_row_init(&row, "1", i + 1, "bandwidth", "GB/s", launches[i]);
        scene_row(&r, &row, triad);
        scene_launch(&r, "done", 1, "1", i + 1, "");
    }
    scene_end(&r);
}

static void start_at(const struct fake_run *root, const char *name, const char *started)
{
    char text[128];

    snprintf(text, sizeof(text), "{\"schema\": 1, \"run\": \"%s\", \"started_utc\": \"%s\"}", name,
             started);
    scene_file(root, name, "run.json", text);
}

/* Sorted by their start, and each a run of its own; what is no run is passed by. */
static void test_folder_of_runs(void **state)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/many", ((struct fake_run *)*state)->path);
    mkdir(path, 0755);
    scene_file(*state, "many/not-a-run", "notes.txt", "x");
    write_run(*state, "many/1", (double[]){30, 30}, 2);
    write_run(*state, "many/2", (double[]){10, 10}, 2);
    write_run(*state, "many/3", (double[]){20, 20}, 2);
    write_run(*state, "b", (double[]){10, 10}, 2);
    start_at(*state, "many/1", "2026-03-01T00:00:00Z");
    start_at(*state, "many/2", "2026-01-01T00:00:00Z");
    start_at(*state, "many/3", "2026-02-01T00:00:00Z");
    struct pairs p = scene_pairs(*state, "many", "b");

    assert_int_equal(p.n_a, 3);
    assert_int_equal(p.n_b, 1);
    assert_int_equal(p.all[0].decide.a.n, 3);
    for (size_t i = 0; i < 3; i++)
        assert_float_equal(p.all[0].decide.a.runs[i].values[0], 10 * (double)(i + 1), 1e-5);
    pairs_release(&p);
}

#define RUNS_MANY 20 /* more than one page of a report takes */

static void test_many_runs(void **state)
{
    char path[128], name[32];

    snprintf(path, sizeof(path), "%s/many", ((struct fake_run *)*state)->path);
    mkdir(path, 0755);
    for (int i = 0; i < RUNS_MANY; i++) {
        snprintf(name, sizeof(name), "many/%d", i);
        write_run(*state, name, (double[]){10, 11}, 2);
    }
    struct pairs p = scene_pairs(*state, "many", "many");
    assert_int_equal(p.n_a, RUNS_MANY);
    assert_int_equal(p.all[0].decide.b.n, RUNS_MANY);
    pairs_release(&p);
}

static void refuse(const struct fake_run *root, const char *a, int err, const char *says)
{
    struct pairs p;
    char error[512];

    write_run(root, "good", (double[]){10, 10}, 2);
    for (int turned = 0; turned < 2; turned++) {
        int got = scene_load(&p, root, turned ? "good" : a, turned ? a : "good", &options, error,
                             sizeof(error));
        if (got != err || !strstr(error, says))
            fail_msg("%d: %s", got, error);
        pairs_release(&p);
    }
}

static void test_no_run(void **state)
{
    scene_file(*state, "empty", "notes.txt", "x");
    refuse(*state, "empty", -ENOENT, "neither a run folder nor a folder of them");
    refuse(*state, "nowhere", -ENOENT, "there is no run folder");
    refuse(*state, "empty/notes.txt", -ENOENT, "notes.txt");
}

static void test_schema(void **state)
{
    write_run(*state, "a", (double[]){10, 10}, 2);
    scene_file(*state, "a", "run.json", "{\"run\": \"one\"}");
    refuse(*state, "a", -EPROTO, "names no schema");
    scene_file(*state, "a", "run.json", "{\"schema\": \"1\"}");
    refuse(*state, "a", -EPROTO, "names no schema");
    scene_file(*state, "a", "run.json", "{\"schema\": 999}");
    refuse(*state, "a", -EPROTO, "has schema 999");
}

static void test_damaged(void **state)
{
    write_run(*state, "a", (double[]){10, 10}, 2);
    scene_file(*state, "a", "memory.csv", "op,size\na,b\na,\"b\nc,d,e\n");
    refuse(*state, "a", -EBADMSG, "a/memory.csv\" is damaged: it has no column");
}

static void test_damaged_line(void **state)
{
    char name[128];
    struct fake_run *root = *state;

    write_run(root, "a", (double[]){10, 10}, 2);
    snprintf(name, sizeof(name), "%s", "a/memory.csv");
    fake_run_append(root, name, "one,cell,too,few\nand a line behind it\n");
    refuse(root, "a", -EBADMSG, "a/memory.csv\" is damaged at line 4");
    write_run(root, "a", (double[]){10, 10}, 2);
    scene_file(root, "a", "run.json", "{\"schema\": 1,\n");
    refuse(root, "a", -EBADMSG, "a/run.json\" is damaged at line 2");
    scene_file(root, "a", "run.json", "[1]\n");
    refuse(root, "a", -EBADMSG, "a/run.json\" is damaged");
    scene_file(root, "a", "run.json", "");
    refuse(root, "a", -EBADMSG, "a/run.json\" is damaged");
}

static void test_empty(void **state)
{
    struct pairs p;
    char error[512];

    write_run(*state, "a", NULL, 0);
    write_run(*state, "b", NULL, 0);
    assert_int_equal(scene_load(&p, *state, "a", "b", &options, error, sizeof(error)), -EINVAL);
    assert_non_null(strstr(error, "hold no row"));
    pairs_release(&p);
}

/* One side that holds nothing is told by each case; nothing is decided. */
static void test_one_side_empty(void **state)
{
    write_run(*state, "a", (double[]){10, 10}, 2);
    write_run(*state, "b", NULL, 0);
    struct pairs p = scene_pairs(*state, "a", "b");

    assert_int_equal(p.n, 1);
    assert_int_equal(p.all[0].state, PAIR_LOST_B);
    assert_int_equal(p.overall.n_judged, 0);
    assert_int_equal(p.overall.decision, DECISION_INCONCLUSIVE);
    pairs_release(&p);
}

/* The second launch's value as a text; returns how many values there are. */
static size_t values_with(const struct fake_run *root, const char *text)
{
    char whole[8192], *at;
    FILE *in;
    size_t n;

    write_run(root, "a", (double[]){10, 123.456}, 2);
    in = fake_run_open(root, "a/memory.csv", "r");
    n = fread(whole, 1, sizeof(whole) - 1, in);
    whole[n] = 0;
    fclose(in);
    at = strstr(whole, ",123.456,");
    assert_non_null(at);
    FILE *out = fake_run_open(root, "a/memory.csv", "w");
    fprintf(out, "%.*s,%s,%s", (int)(at - whole), whole, text, at + strlen(",123.456,"));
    fclose(out);
    struct pairs p = scene_pairs(root, "a", "a");
    n = p.all[0].decide.a.runs[0].n;
    pairs_release(&p);
    return n;
}

static void test_values_that_are_none(void **state)
{
    assert_int_equal(values_with(*state, "11"), 2);
    assert_int_equal(values_with(*state, ""), 1);
    assert_int_equal(values_with(*state, "nan"), 1);
    assert_int_equal(values_with(*state, "inf"), 1);
    assert_int_equal(values_with(*state, "1e999"), 1);
    assert_int_equal(values_with(*state, "12 GB"), 1);
}

static void test_all_values_nan(void **state)
{
    write_run(*state, "a", (double[]){10, 10}, 2);
    write_run(*state, "b", (double[]){NAN, NAN}, 2);
    struct pairs p = scene_pairs(*state, "a", "b");

    assert_int_equal(p.all[0].state, PAIR_LOST_B);
    assert_string_equal(p.all[0].reason, "B has no number");
    assert_true(p.all[0].failed_b); /* it was measured, and the figure is none */
    pairs_release(&p);
}

/* A rate that came to 0 in B is no case that could not be seen: it is lost. */
static void test_a_rate_of_nothing_is_a_failure(void **state)
{
    write_run(*state, "a", (double[]){10, 10, 10}, 3);
    write_run(*state, "b", (double[]){0, 10, 0}, 3);
    struct pairs p = scene_pairs(*state, "a", "b");

    assert_int_equal(p.all[0].state, PAIR_READY);
    assert_true(p.all[0].failed_b);
    assert_string_equal(p.all[0].reason, "2 of 3 launches of B came to 0 or below");
    pairs_release(&p);
    p = scene_pairs(*state, "b", "a");
    assert_false(p.all[0].failed_b);
    pairs_release(&p);
}

static void test_zero_is_no_value_to_decide_by(void **state)
{
    write_run(*state, "a", (double[]){0, 10, 10}, 3);
    write_run(*state, "b", (double[]){10, 10, 10}, 3);
    struct pairs p = scene_pairs(*state, "a", "b");

    assert_int_equal(p.all[0].state, PAIR_READY);
    assert_int_equal(p.all[0].decide.decision, DECISION_INCONCLUSIVE);
    assert_int_equal(p.all[0].decide.obstacle, OBSTACLE_BAD_VALUE);
    pairs_release(&p);
}

static void test_one_launch(void **state)
{
    write_run(*state, "a", (double[]){10}, 1);
    write_run(*state, "b", (double[]){5}, 1);
    struct pairs p = scene_pairs(*state, "a", "b");

    assert_int_equal(p.all[0].decide.decision, DECISION_INCONCLUSIVE);
    assert_int_equal(p.all[0].decide.obstacle, OBSTACLE_ONE_LAUNCH);
    assert_int_equal(p.overall.decision, DECISION_INCONCLUSIVE);
    pairs_release(&p);
}

/* A margin that is none is refused by the decision, and said so. */
static void test_bad_margin(void **state)
{
    const struct pairs_options bad = {.margin = -1};
    struct pairs p;
    char error[512];

    write_run(*state, "a", (double[]){10, 10}, 2);
    assert_int_equal(scene_load(&p, *state, "a", "a", &bad, error, sizeof(error)), -EINVAL);
    assert_non_null(strstr(error, "margin"));
    pairs_release(&p);
}

static void test_decide_again(void **state)
{
    const struct decide_options again = {0};

    write_run(*state, "a", (double[]){10, 10.1, 10.2, 9.9, 10}, 5);
    write_run(*state, "b", (double[]){9, 9.1, 9.2, 8.9, 9}, 5);
    struct pairs p = scene_pairs(*state, "a", "b");
    assert_int_equal(p.all[0].decide.decision, DECISION_WORSE);
    p.all[0].decide.margin = 0.5;
    assert_int_equal(pairs_decide(&p, &again), 0);
    assert_int_equal(p.all[0].decide.decision, DECISION_EQUIVALENT);
    assert_int_equal(p.overall.n_equivalent, 1);
    pairs_release(&p);
}

/* What a report of one run shows of a case is what a comparison shows of it; also of launches far apart, of which a median is one. */
static void test_values_are_the_reports(void **state)
{
    const double launches[][5] = {{7.5, 7.858, 37}, {85, 225, 86, 230, 84}, {3}, {0.25, 4}};
    const size_t n[] = {3, 5, 1, 2};

    for (size_t i = 0; i < sizeof(n) / sizeof(*n); i++) {
        char path[256], error[512];
        const char *paths[] = {path};
        struct report r;

        write_run(*state, "a", launches[i], n[i]);
        write_run(*state, "b", (double[]){9, 9.1, 9.2}, 3);
        snprintf(path, sizeof(path), "%s/a", ((struct fake_run *)*state)->path);
        assert_int_equal(report_load(&r, paths, 1, error, sizeof(error)), 0);
        struct pairs p = scene_pairs(*state, "a", "b");
        double shown = r.benches[0].cases[0].points[0].value, product = 1;
        for (size_t k = 0; k < n[i]; k++)
            product *= launches[i][k];
        assert_float_equal(shown, p.all[0].decide.a_value, 1e-12 * shown);
        assert_float_equal(shown, pow(product, 1 / (double)n[i]), 1e-8 * shown);
        pairs_release(&p);
        report_release(&r);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, scene_make, scene_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_folder_of_runs),
        TEST(test_many_runs),
        TEST(test_no_run),
        TEST(test_schema),
        TEST(test_damaged),
        TEST(test_damaged_line),
        TEST(test_empty),
        TEST(test_one_side_empty),
        TEST(test_values_that_are_none),
        TEST(test_all_values_nan),
        TEST(test_a_rate_of_nothing_is_a_failure),
        TEST(test_zero_is_no_value_to_decide_by),
        TEST(test_one_launch),
        TEST(test_bad_margin),
        TEST(test_decide_again),
        TEST(test_values_are_the_reports),
    };

    return cmocka_run_group_tests_name("pairs_read", tests, NULL, NULL);
}
