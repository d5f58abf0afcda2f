/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of pairing: which launches' values a case has, its key and label, what was lost and
 * why, and whose margin holds. */
#include "harness/compare/pairs.h"

#include "harness/plan/plan.h"
#include "tests/unit/pairs_scene.h"

static const char *const params[] = {"op", "stores", "size", "level"};
static const char *const triad[] = {"triad", "", "65536", "L2"};

/* Launches of one case, "--case CASE". */
static void add(struct scene_run *r, const char *case_id, const char *const *values,
                const double *launches, size_t n)
{
    struct row row;

    for (size_t i = 0; i < n; i++) {
        fake_row_init(&row, case_id, i + 1, "bandwidth", "GB/s", launches[i]);
        scene_row(r, &row, values);
        scene_launch(r, "done", 1, case_id, i + 1, "");
    }
}

static void write_run(const struct fake_run *root, const char *name, const double *launches,
                      size_t n)
{
    struct scene_run r = scene_begin(root, name, "memory", params, 4);

    add(&r, "1", triad, launches, n);
    scene_end(&r);
}

static void test_values(void **state)
{
    write_run(*state, "a", (double[]){10, 12, 11}, 3);
    write_run(*state, "b", (double[]){9, 8}, 2);
    struct pairs p = scene_pairs(*state, "a", "b");

    assert_int_equal(p.n, 1);
    assert_int_equal(p.all[0].state, PAIR_READY);
    assert_string_equal(p.all[0].key, "memory|op=triad|size=65536|bandwidth|GB/s");
    assert_string_equal(p.all[0].label, "memory triad, 64 KiB: bandwidth");
    assert_string_equal(p.all[0].pipe, "Memory");
    assert_true(p.all[0].decide.higher_is_better);
    assert_int_equal(p.all[0].decide.a.n, 1);
    assert_int_equal(p.all[0].decide.a.runs[0].n, 3);
    assert_float_equal(p.all[0].decide.a.runs[0].values[1], 12, 1e-5);
    assert_int_equal(p.all[0].decide.b.runs[0].n, 2);
    assert_float_equal(p.all[0].decide.b.runs[0].values[0], 9, 1e-5);
    assert_string_equal(p.all[0].reason, "");
    pairs_release(&p);
}

/* Columns in another order, and a new one that is empty, are the same case. */
static void test_key_is_stable(void **state)
{
    static const char *const others[] = {"size", "new", "op", "level"};
    static const char *const values[] = {"65536", "", "triad", "L2"};
    struct scene_run r = scene_begin(*state, "b", "memory", others, 4);

    add(&r, "7", values, (double[]){10, 10}, 2);
    scene_end(&r);
    write_run(*state, "a", (double[]){10, 10}, 2);
    struct pairs p = scene_pairs(*state, "a", "b");
    assert_int_equal(p.n, 1);
    assert_int_equal(p.all[0].state, PAIR_READY);
    pairs_release(&p);
    p = scene_pairs(*state, "b", "b");
    assert_string_equal(p.all[0].key, "memory|op=triad|size=65536|bandwidth|GB/s");
    pairs_release(&p);
}

static void test_labels_tell_apart(void **state)
{
    static const char *const names[] = {"stores", "op", "threads"};
    static const char *const one[] = {"x", "", "1"}, *const two[] = {"", "x", "1"},
                             *const three[] = {"x", "x", "2"};
    struct scene_run r = scene_begin(*state, "a", "unknown", names, 3);

    add(&r, "1", one, (double[]){1}, 1);
    add(&r, "2", two, (double[]){1}, 1);
    add(&r, "3", three, (double[]){1}, 1);
    scene_end(&r);
    struct pairs p = scene_pairs(*state, "a", "a");
    assert_int_equal(p.n, 3);
    assert_string_not_equal(p.all[0].label, p.all[1].label);
    assert_string_equal(p.all[2].label, "unknown stores x, op x, 2 threads: bandwidth");
    assert_string_equal(p.all[2].pipe, "Other");
    pairs_release(&p);
}

/* A size that one launch measured twice is one launch's word. */
static void test_a_launch_counts_once(void **state)
{
    struct scene_run r = scene_begin(*state, "a", "memory", params, 4);
    struct row row;

    for (uint64_t i = 0; i < 4; i++) {
        fake_row_init(&row, "1", 1 + i / 2, "bandwidth", "GB/s", 10 + (double)i);
        scene_row(&r, &row, triad);
    }
    scene_launch(&r, "done", 2, "1", 1, "");
    scene_launch(&r, "done", 2, "1", 2, "");
    scene_end(&r);
    struct pairs p = scene_pairs(*state, "a", "a");
    assert_int_equal(p.all[0].decide.a.runs[0].n, 2);
    assert_float_equal(p.all[0].decide.a.runs[0].values[0], 10.5, 1e-5);
    assert_float_equal(p.all[0].decide.a.runs[0].values[1], 12.5, 1e-5);
    pairs_release(&p);
}

/* A launch of case 1 whose row is made by `change`. */
static void write_changed(const struct fake_run *root, const char *name, const char *const *values,
                          void (*change)(struct row *, int), int how, const char *launch)
{
    struct scene_run r = scene_begin(root, name, "memory", params, 4);
    struct row row;

    for (uint64_t i = 1; i < 3; i++) {
        fake_row_init(&row, "1", i, "bandwidth", "GB/s", 10);
        change(&row, how);
        scene_row(&r, &row, values);
        scene_launch(&r, launch, 1, "1", i, "");
    }
    scene_end(&r);
}

static void lose(struct row *row, int how)
{
    static const char *const statuses[] = {"skipped", "failed", "wrong"};

    row->status = statuses[how];
    row->reason = "for this reason";
    if (how < 2) {
        row->value = NAN;
        row->samples = 0;
    }
    if (how == 1)
        row->metric = row->unit = "";
}

static void lost(const struct fake_run *root, int how, const char *launch, const char *reason,
                 bool failed)
{
    write_changed(root, "b", triad, lose, how, launch);
    struct pairs p = scene_pairs(root, "a", "b");

    assert_int_equal(p.n, 1);
    assert_int_equal(p.all[0].state, PAIR_LOST_B);
    assert_string_equal(p.all[0].reason, reason);
    assert_int_equal(p.all[0].failed_b, failed);
    assert_string_equal(p.all[0].c->metric, "bandwidth");
    pairs_release(&p);
    p = scene_pairs(root, "b", "a");
    assert_int_equal(p.n, 1);
    assert_int_equal(p.all[0].state, PAIR_LOST_A);
    assert_false(p.all[0].failed_b);
    pairs_release(&p);
}

static void test_lost(void **state)
{
    write_run(*state, "a", (double[]){10, 10}, 2);
    lost(*state, 0, "skip", "B skipped it: for this reason", false);
    lost(*state, 1, "fail", "B failed: for this reason", true);
    lost(*state, 2, "fail", "B gave wrong data: for this reason", true);
}

/* No row tells of these: the plan does. */
static void lost_by_plan(const struct fake_run *root, const char *launch, const char *reason,
                         bool failed)
{
    struct scene_run r = scene_begin(root, "b", "memory", params, 4);

    scene_launch(&r, launch, 0, "1", 1, "");
    scene_launch(&r, launch, 0, "1", 2, "");
    scene_end(&r);
    struct pairs p = scene_pairs(root, "a", "b");
    assert_int_equal(p.all[0].state, PAIR_LOST_B);
    assert_string_equal(p.all[0].reason, reason);
    assert_int_equal(p.all[0].failed_b, failed);
    pairs_release(&p);
}

static void test_lost_by_plan(void **state)
{
    write_run(*state, "a", (double[]){10, 10}, 2);
    lost_by_plan(*state, "late", "B did not end in time", true);
    lost_by_plan(*state, "todo", "B did not get to run it", false);
}

static void test_no_such_case(void **state)
{
    static const char *const other[] = {"read", "", "65536", "L2"};
    struct scene_run r = scene_begin(*state, "b", "memory", params, 4);

    write_run(*state, "a", (double[]){10, 10}, 2);
    add(&r, "2", other, (double[]){10, 10}, 2);
    scene_end(&r);
    struct pairs p = scene_pairs(*state, "a", "b");
    assert_int_equal(p.n, 2);
    assert_int_equal(p.all[0].state, PAIR_LOST_B);
    assert_string_equal(p.all[0].reason, "B has no such case");
    assert_int_equal(p.all[1].state, PAIR_LOST_A);
    assert_false(p.all[0].failed_b);
    pairs_release(&p);
}

/* One of several launches that failed is told, and the others are compared. */
static void test_some_failed(void **state)
{
    struct scene_run r = scene_begin(*state, "b", "memory", params, 4);
    struct row row;

    write_run(*state, "a", (double[]){10, 10}, 2);
    add(&r, "1", triad, (double[]){10, 11}, 2);
    fake_row_init(&row, "1", 3, "bandwidth", "GB/s", 99);
    lose(&row, 2);
    scene_row(&r, &row, triad);
    scene_launch(&r, "fail", 1, "1", 3, "");
    scene_end(&r);
    struct pairs p = scene_pairs(*state, "a", "b");
    assert_int_equal(p.all[0].state, PAIR_READY);
    assert_int_equal(p.all[0].decide.b.runs[0].n, 2);
    assert_true(p.all[0].failed_b);
    assert_string_equal(p.all[0].reason, "1 of 3 launches of B gave wrong data: for this reason");
    pairs_release(&p);
}

static double margin_of(const struct fake_run *root, const char *a, const char *b, bool forced)
{
    const struct pairs_options options = {.margin = 0.05, .forced = forced};
    struct pairs p;
    char error[512];

    for (int side = 0; side < 2; side++) {
        struct scene_run r = scene_begin(root, side ? "b" : "a", "memory", params, 4);
        struct row row;
        for (uint64_t i = 1; i < 3; i++) {
            fake_row_init(&row, "1", i, "bandwidth", "GB/s", 10);
            scene_row(&r, &row, triad);
            scene_launch(&r, "done", 1, "1", i, side ? b : a);
        }
        scene_end(&r);
    }
    assert_int_equal(scene_load(&p, root, "a", "b", &options, error, sizeof(error)), 0);
    double margin = p.all[0].decide.margin;
    pairs_release(&p);
    return margin;
}

static void test_margin(void **state)
{
    assert_float_equal(margin_of(*state, "", "", false), 0.05, 1e-6);
    /* a run does not loosen what it is held to */
    assert_float_equal(margin_of(*state, "0.1", "0.2", false), 0.1, 1e-6);
    assert_float_equal(margin_of(*state, "", "0.2", false), 0.05, 1e-6);
    assert_float_equal(margin_of(*state, "0.1", "", false), 0.05, 1e-6);
    assert_float_equal(margin_of(*state, "0.02", "0.01", false), 0.01, 1e-6);
    assert_float_equal(margin_of(*state, "0.1", "0.2", true), 0.05, 1e-6);
    assert_float_equal(margin_of(*state, "", "nan", false), 0.05, 1e-6);
    assert_float_equal(margin_of(*state, "", "7", false), 0.05, 1e-6);
}

/* What a suite says is kept in plan.csv, behind everything else, and the marks stay where they are. */
static void test_margin_is_in_the_plan(void **state)
{
    struct launch launches[] = {{.bench = "memory",
                                 .arguments = "--op triad",
                                 .from = "",
                                 .to = "",
                                 .hosts = "",
                                 .case_number = 1,
                                 .repeat = 1,
                                 .margin = 0.02},
                                {.bench = "net",
                                 .arguments = "",
                                 .from = "n1",
                                 .to = "n2",
                                 .hosts = "",
                                 .case_number = 2,
                                 .repeat = 1,
                                 .margin = NAN}};
    struct plan plan = {.launches = launches, .n = 2};
    char *text, error[256];
    size_t size;
    struct table t;
    FILE *out = open_memstream(&text, &size);

    (void)state;
    assert_int_equal(plan_print(out, &plan), 0);
    fclose(out);
    assert_int_equal(table_parse("plan", text, size, &t, error, sizeof(error)), 0);
    assert_string_equal(t.columns[t.n_columns - 1], "margin");
    assert_string_equal(table_text(&t, 0, "margin"), "0.02");
    assert_string_equal(table_text(&t, 1, "margin"), "");
    assert_string_equal(table_text(&t, 1, "to"), "n2");
    for (size_t i = 0; i < 2; i++)
        assert_memory_equal(text + launches[i].mark_at, "todo,0000", PLAN_MARK_BYTES);
    table_release(&t);
    free(text);
    launches[0].margin = NAN;
    out = open_memstream(&text, &size);
    assert_int_equal(plan_print(out, &plan), 0);
    fclose(out);
    assert_null(strstr(text, "margin"));
    free(text);
}

/* Figures beside the samples are not judged, but CPU time per byte. */
static void test_figures_are_left_out(void **state)
{
    struct scene_run r = scene_begin(*state, "a", "net", params, 4);
    struct row row;

    add(&r, "1", triad, (double[]){10}, 1);
    scene_launch(&r, "done", 2, "2", 1, "");
    fake_row_init(&row, "2", 1, "retransmits", "count", 3);
    row.samples = 0;
    scene_row(&r, &row, triad);
    fake_row_init(&row, "2", 1, "cpu_per_gb", "s/GB", 0.2);
    row.samples = 0;
    scene_row(&r, &row, triad);
    scene_end(&r);
    struct pairs p = scene_pairs(*state, "a", "a");
    assert_int_equal(p.n, 2);
    assert_string_equal(p.all[0].c->metric, "bandwidth");
    assert_string_equal(p.all[1].c->metric, "cpu_per_gb");
    assert_false(p.all[1].decide.higher_is_better);
    pairs_release(&p);
}

static void test_only(void **state)
{
    static const char *const none[] = {"nothing", NULL}, *const some[] = {"no", "64 KiB", NULL};
    struct pairs_options options = {.margin = 0.05, .only = none};
    struct pairs p;
    char error[512];

    write_run(*state, "a", (double[]){10, 10}, 2);
    assert_int_equal(scene_load(&p, *state, "a", "a", &options, error, sizeof(error)), 0);
    assert_int_equal(p.n, 0);
    pairs_release(&p);
    options.only = some;
    assert_int_equal(scene_load(&p, *state, "a", "a", &options, error, sizeof(error)), 0);
    assert_int_equal(p.n, 1);
    pairs_release(&p);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, scene_make, scene_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_values),
        TEST(test_key_is_stable),
        TEST(test_labels_tell_apart),
        TEST(test_a_launch_counts_once),
        TEST(test_lost),
        TEST(test_lost_by_plan),
        TEST(test_no_such_case),
        TEST(test_some_failed),
        TEST(test_margin),
        TEST(test_margin_is_in_the_plan),
        TEST(test_figures_are_left_out),
        TEST(test_only),
    };

    return cmocka_run_group_tests_name("pairs", tests, NULL, NULL);
}
