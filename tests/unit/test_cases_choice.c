/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of a report's cases where launches chose differently by themselves: one case, and that is told. */
#include "harness/report/report.h"
#include "tests/unit/pairs_scene.h"
#include "tests/unit/unit.h"

static const char *const params[] = {"op", "size", "threads", "isa", "level"};

/* One launch's row of a case, which took that isa. */
static void add(struct scene_run *r, const char *case_id, uint64_t repeat, const char *isa,
                double value)
{
    const char *const values[] = {"triad", "65536", "2", isa, "L2"};
    struct row row;

    fake_row_init(&row, case_id, repeat, "bandwidth", "GB/s", value);
    scene_row(r, &row, values);
}

static void launch(struct scene_run *r, const char *case_id, uint64_t repeat, const char *arguments,
                   const char *isa, double value)
{
    add(r, case_id, repeat, isa, value);
    scene_launch_as(r, "done", 1, case_id, repeat, arguments, "");
}

static void write_run(void **state, const char *name, const char *arguments,
                      const char *const *isas)
{
    struct scene_run r = scene_begin(*state, name, "memory", params, 5);

    for (uint64_t i = 0; *isas[i]; i++)
        launch(&r, "1", i + 1, arguments, isas[i], 10 + (double)i);
    scene_end(&r);
}

#define RUN(name, arguments, ...)                                                                  \
    write_run(state, name, arguments, (const char *const[]){__VA_ARGS__, ""})

static struct report loaded(void **state, size_t n)
{
    struct scene_paths p = scene_paths(*state, "a", "b");
    const char *paths[] = {p.a, p.b};
    struct report r;
    char error[512] = "";

    if (report_load(&r, paths, n, error, sizeof(error)))
        fail_msg("%s", error);
    return r;
}

static void expect(const struct report *r, size_t i, const char *isa, size_t launches,
                   const char *chose)
{
    const struct report_case *c = &r->benches[0].cases[i];

    assert_true(i < r->benches[0].n_cases);
    assert_string_equal(report_param(&r->benches[0], c, "isa"), isa);
    assert_string_equal(report_param(&r->benches[0], c, "threads"), "2");
    assert_int_equal(c->points[0].n_values, launches);
    assert_string_equal(c->points[0].chose ? c->points[0].chose : "", chose);
}

/* Launches that chose differently are one case, in the order of time; what was asked for stays apart. */
TEST_WITH(test_launches_that_chose_differently, scene_make, scene_remove)
{
    struct scene_run w;

    RUN("a", "--op triad", "avx512", "avx2", "avx512");
    struct report r = loaded(state, 1);
    assert_int_equal(r.benches[0].n_cases, 1);
    expect(&r, 0, "", 3, "isa avx512 in 2 of 3 launches, avx2 in 1");
    assert_float_equal(r.benches[0].cases[0].points[0].value, cbrt(10 * 11 * 12), 1e-6);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(r.benches[0].cases[0].points[0].rows[i], i);
    report_release(&r);
    RUN("a", "--op triad", "avx512", "avx512");
    r = loaded(state, 1);
    assert_int_equal(r.benches[0].n_cases, 1);
    expect(&r, 0, "avx512", 2, "");
    report_release(&r);
    RUN("a", "\"--isa avx512,avx2\"", "avx512", "avx2");
    r = loaded(state, 1);
    assert_int_equal(r.benches[0].n_cases, 2);
    report_release(&r);
    /* A case that was asked for beside one that fell on it once. */
    w = scene_begin(*state, "a", "memory", params, 5);
    launch(&w, "1", 1, "--op triad", "avx512", 10);
    launch(&w, "2", 1, "--op triad --isa avx2", "avx2", 20);
    launch(&w, "1", 2, "--op triad", "avx2", 11);
    launch(&w, "2", 2, "--op triad --isa avx2", "avx2", 21);
    scene_end(&w);
    r = loaded(state, 1);
    assert_int_equal(r.benches[0].n_cases, 2);
    expect(&r, 0, "", 2, "isa avx512 in 1 of 2 launches, avx2 in 1");
    expect(&r, 1, "avx2", 2, "");
    assert_float_equal(r.benches[0].cases[1].points[0].value, sqrt(20 * 21), 1e-6);
    report_release(&r);
}

/* Two cases of the suite, and one launch that gives both. */
TEST_WITH(test_what_is_no_choice_of_a_launch, scene_make, scene_remove)
{
    struct scene_run w = scene_begin(*state, "a", "memory", params, 5);

    for (uint64_t i = 1; i < 3; i++) {
        launch(&w, "1", i, "--op triad", "avx512", 10);
        launch(&w, "2", i + 2, "--op triad", "avx2", 20);
    }
    scene_end(&w);
    struct report r = loaded(state, 1);
    assert_int_equal(r.benches[0].n_cases, 2);
    expect(&r, 0, "avx512", 2, "");
    expect(&r, 1, "avx2", 2, "");
    report_release(&r);
    w = scene_begin(*state, "a", "memory", params, 5);
    for (uint64_t i = 1; i < 3; i++) {
        add(&w, "1", i, "avx512", 10);
        add(&w, "1", i, "avx2", 20);
        scene_launch_as(&w, "done", 2, "1", i, "--op triad", "");
    }
    scene_end(&w);
    r = loaded(state, 1);
    assert_int_equal(r.benches[0].n_cases, 2);
    report_release(&r);
}

/* Side by side, each run shows what it took; where one of them could not make up its mind, both are that case. */
TEST_WITH(test_two_runs, scene_make, scene_remove)
{
    RUN("a", "--op triad", "avx512", "avx512");
    RUN("b", "--op triad", "avx2", "avx2");
    struct report r = loaded(state, 2);

    assert_int_equal(r.benches[0].n_cases, 2);
    report_release(&r);
    RUN("a", "--op triad", "avx512", "avx2");
    r = loaded(state, 2);
    assert_int_equal(r.benches[0].n_cases, 1);
    expect(&r, 0, "", 2, "isa avx512 in 1 of 2 launches, avx2 in 1");
    assert_int_equal(r.benches[0].cases[0].points[1].n_values, 2);
    assert_string_equal(r.benches[0].cases[0].points[1].chose, "");
    report_release(&r);
}

#define CASES 40u

/* Two launches of each, the first of which chose differently in run a. */
static void write_many(void **state, const char *name, const char *isa, const char *first)
{
    struct scene_run r = scene_begin(*state, name, "memory", params, 5);

    for (unsigned i = 0; i < CASES; i++) {
        char id[8], size[16], arguments[32];
        const char *values[] = {"triad", size, "2", isa, "L2"};

        snprintf(id, sizeof(id), "%u", i + 1);
        snprintf(size, sizeof(size), "%u", 4096 * (i + 1));
        snprintf(arguments, sizeof(arguments), "--size %s", size);
        for (uint64_t repeat = 1; repeat < 3; repeat++) {
            struct row row;

            values[3] = i || repeat > 1 ? isa : first;
            fake_row_init(&row, id, repeat, "bandwidth", "GB/s", 10 + i);
            scene_row(&r, &row, values);
            scene_launch_as(&r, "done", 1, id, repeat, arguments, "");
        }
    }
    scene_end(&r);
}

/* Each run's own choice is a case of its own again, of which there are more than groups of what was asked for. */
TEST_WITH(test_many_cases, scene_make, scene_remove)
{
    write_many(state, "a", "avx512", "avx2");
    write_many(state, "b", "avx2", "avx2");
    struct report r = loaded(state, 2);

    assert_int_equal(r.benches[0].n_cases, 1 + 2 * (CASES - 1));
    expect(&r, 0, "", 2, "isa avx2 in 1 of 2 launches, avx512 in 1");
    expect(&r, 1, "avx512", 2, "");
    assert_string_equal(report_param(&r.benches[0], &r.benches[0].cases[2], "isa"), "avx2");
    report_release(&r);
}
