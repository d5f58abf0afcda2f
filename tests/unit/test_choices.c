/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what a launch left to the benchmark: what was asked for makes the case, what was chosen is told where launches or
 * sides differ. */
#include "harness/compare/pairs.h"
#include "tests/unit/unit.h"

#include "tests/unit/pairs_scene.h"

static const char *const params[] = {"op",  "size",     "threads", "threads_used",
                                     "isa", "isa_used", "level",   "level_used"};

#define LEFT     "memory|op=triad|size=65536|bandwidth|GB/s"
#define ASKED(x) "memory|isa=" x "|op=triad|size=65536|bandwidth|GB/s"

/* One launch that was asked for that isa and took the other; NaN: it was skipped. */
static void launch(struct scene_run *r, const char *case_id, uint64_t repeat, const char *asked,
                   const char *used, const char *threads, double value)
{
    const char *const values[] = {"triad", "65536", "auto", threads, asked, used, "auto", "L2"};
    bool skipped = isnan(value);
    struct row row;

    fake_row_init(&row, case_id, repeat, "bandwidth", "GB/s", value);
    if (skipped) {
        row.status = "skipped";
        row.reason = "no such unit here";
        row.samples = 0;
    }
    scene_row(r, &row, values);
    scene_launch_as(r, skipped ? "skip" : "done", 1, case_id, repeat, "--op triad", "");
}

/* A run with one case whose launches took these: 5 for AVX-512, 2 for AVX2, - where it was skipped. */
static void write_run(void **state, const char *name, const char *asked, const char *isas,
                      const char *threads)
{
    struct scene_run r = scene_begin(*state, name, "memory", params, 8);

    for (uint64_t i = 0; isas[i]; i++)
        launch(&r, "1", i + 1, asked,
               isas[i] == '5'   ? "avx512"
               : isas[i] == '2' ? "avx2"
                                : "",
               threads, isas[i] == '-' ? NAN : 10 + (double)i);
    scene_end(&r);
}

TEST_WITH(test_two_sides, scene_make, scene_remove)
{
    static const struct {
        const char *a, *isas_a, *b, *isas_b, *key, *differs; /* key: NULL where they are apart */
    } cases[] = {{"auto", "55", "auto", "22", LEFT, "isa avx512 against avx2"},
                 {"auto", "55", "auto", "55", LEFT, ""},
                 {"auto", "525", "auto", "55", LEFT,
                  "isa avx512 in 2 of 3 launches, avx2 in 1 against avx512"},
                 {"avx2", "22", "avx2", "22", ASKED("avx2"), ""},
                 {"avx2", "22", "auto", "22", NULL, NULL},
                 {"avx2", "22", "avx512", "55", NULL, NULL},
                 {"avx512", "55", "avx512", "--", ASKED("avx512"), ""}}; /* a guest without it */

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        write_run(state, "a", cases[i].a, cases[i].isas_a, "2");
        write_run(state, "b", cases[i].b, cases[i].isas_b, "2");
        struct pairs p = scene_pairs(*state, "a", "b");
        if (p.n != (cases[i].key ? 1 : 2))
            fail_msg("case %zu: %zu pairs", i, p.n);
        if (cases[i].key) {
            bool lost = *cases[i].isas_b == '-';

            assert_int_equal(p.all[0].state, lost ? PAIR_LOST_B : PAIR_READY);
            assert_string_equal(p.all[0].key, cases[i].key);
            assert_string_equal(p.all[0].differs, cases[i].differs);
        } else {
            size_t of_a = p.all[0].state == PAIR_LOST_A;

            assert_int_equal(p.all[of_a].state, PAIR_LOST_B);
            assert_int_equal(p.all[!of_a].state, PAIR_LOST_A);
        }
        pairs_release(&p);
    }
    write_run(state, "a", "auto", "22", "64");
    write_run(state, "b", "auto", "22", "32");
    struct pairs p = scene_pairs(*state, "a", "b");
    assert_int_equal(p.n, 1);
    assert_string_equal(p.all[0].differs, "threads 64 against 32");
    pairs_release(&p);
}

/* A report shows what was chosen where launches agree, and else how many chose what. */
TEST_WITH(test_one_run, scene_make, scene_remove)
{
    struct scene_run w = scene_begin(*state, "a", "memory", params, 8);
    static const struct {
        const char *isa, *chose;
    } expected[] = {{"avx512", ""}, {"", "isa avx512 in 1 of 2 launches, avx2 in 1"}, {"avx2", ""}};
    const char *path = scene_paths(*state, "a", "a").a;
    struct report r;
    char error[512] = "";

    for (uint64_t k = 1; k < 3; k++) {
        launch(&w, "1", k, "avx512", "avx512", "2", 30);
        launch(&w, "2", k, "auto", k == 1 ? "avx512" : "avx2", "2", 20);
        launch(&w, "3", k, "avx2", "avx2", "2", 10);
    }
    scene_end(&w);
    if (report_load(&r, &path, 1, error, sizeof(error)))
        fail_msg("%s", error);
    assert_int_equal(r.benches[0].n_cases, 3);
    for (size_t i = 0; i < 3; i++) {
        const struct report_case *c = &r.benches[0].cases[i];

        assert_string_equal(report_param(&r.benches[0], c, "isa"), expected[i].isa);
        assert_string_equal(report_param(&r.benches[0], c, "threads"), "2");
        assert_string_equal(report_param(&r.benches[0], c, "level"), "L2");
        assert_string_equal(c->points[0].chose, expected[i].chose);
        assert_int_equal(c->points[0].n_values, 2);
    }
    report_release(&r);
}
