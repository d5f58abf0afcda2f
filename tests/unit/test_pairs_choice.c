/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what a benchmark chooses by itself: it makes no case, is told where it differs, and stays apart from what was
 * asked for. */
#include "harness/compare/pairs.h"
#include "tests/unit/unit.h"

#include "tests/unit/pairs_scene.h"

static const char *const params[] = {"op", "size", "threads", "isa", "level"};

#define CHOSEN   "memory|op=triad|size=65536|bandwidth|GB/s"
#define ASKED(x) "memory|isa=" x "|op=triad|size=65536|bandwidth|GB/s"

/* One launch of a case with the arguments, which took that isa; NaN: it was skipped. */
static void launch(struct scene_run *r, const char *case_id, uint64_t repeat, const char *arguments,
                   const char *threads, const char *isa, double value)
{
    const char *const values[] = {"triad", "65536", threads, isa, "L2"};
    bool skipped = isnan(value);
    struct row row;

    fake_row_init(&row, case_id, repeat, "bandwidth", "GB/s", value);
    if (skipped) {
        row.status = "skipped";
        row.reason = "no such unit here";
        row.samples = 0;
    }
    scene_row(r, &row, values);
    scene_launch_as(r, skipped ? "skip" : "done", 1, case_id, repeat, arguments, "");
}

/* A run with one case whose launches took these: 5 for AVX-512, 2 for AVX2, - where it was skipped. */
static void write_run(void **state, const char *name, const char *arguments, const char *isas,
                      const char *threads)
{
    struct scene_run r = scene_begin(*state, name, "memory", params, 5);

    for (uint64_t i = 0; isas[i]; i++)
        launch(&r, "1", i + 1, arguments, threads,
               isas[i] == '5'   ? "avx512"
               : isas[i] == '2' ? "avx2"
                                : "",
               isas[i] == '-' ? NAN : 10 + (double)i);
    scene_end(&r);
}

/* What a launch chose splits no case; a value that was asked for is a case of its own, apart from whatever else was taken. */
TEST_WITH(test_choices_of_one_case, scene_make, scene_remove)
{
    static const struct {
        const char *a, *isas_a, *b, *isas_b, *key, *differs; /* key: NULL where they are apart */
    } cases[] = {
        {"--op triad", "55", "--op triad", "22", CHOSEN, "isa avx512 against avx2"},
        {"--op triad", "55", "--op triad", "55", CHOSEN, ""},
        /* the word for it asks for nothing */
        {"--isa auto --threads 0", "55", "--op triad", "22", CHOSEN, "isa avx512 against avx2"},
        {"--op triad", "525", "--op triad", "55", CHOSEN,
         "isa avx512 in 2 of 3 launches, avx2 in 1 against avx512"},
        /* the suite of one side says what the other's launches chose of themselves */
        {"--isa avx2", "22", "--op triad", "22", ASKED("avx2"), ""},
        {"--op triad", "22", "--isa avx2", "22", ASKED("avx2"), ""},
        {"--isa avx2", "22", "--op triad", "55", NULL, NULL},
        {"--isa avx2", "22", "--op triad", "25", NULL, NULL},
        {"--isa avx2", "22", "--isa avx512", "55", NULL, NULL},
        {"--op triad", "52", "--isa avx2", "22", NULL, NULL},
        /* a guest without it skips the case before its row says which */
        {"--isa avx512", "55", "--isa avx512", "--", ASKED("avx512"), ""}};

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
            for (size_t k = 0; cases[i].isas_a[k]; k++) /* in the order of time still */
                assert_float_equal(p.all[0].decide.a.runs[0].values[k], 10 + (double)k, 1e-6);
        } else {
            size_t of_a = p.all[0].state == PAIR_LOST_A;

            assert_int_equal(p.all[of_a].state, PAIR_LOST_B);
            assert_int_equal(p.all[!of_a].state, PAIR_LOST_A);
        }
        pairs_release(&p);
    }
    write_run(state, "a", "--op triad", "22", "64");
    write_run(state, "b", "--op triad", "22", "32");
    struct pairs p = scene_pairs(*state, "a", "b");
    assert_int_equal(p.n, 1);
    assert_string_equal(p.all[0].key, CHOSEN);
    assert_string_equal(p.all[0].differs, "threads 64 against 32");
    pairs_release(&p);
}

/* Both in one run, in launches of their own or (a list) in one, where only the row says which it was: two cases, also where
 * the choice of one fell on what the other asks for. */
TEST_WITH(test_two_cases_of_one_run, scene_make, scene_remove)
{
    static const struct {
        const char *first, *second, *isa_a, *isa_b, *key, *differs; /* of the first */
    } cases[] = {{"--isa avx512", "--isa avx2", "avx512", "avx512", ASKED("avx512"), ""},
                 {"--op triad", "--op triad --isa avx2", "avx2", "avx512", CHOSEN,
                  "isa avx2 against avx512"},
                 {"\"--isa avx512,avx2\"", "\"--isa avx512,avx2\"", "avx512", "avx512",
                  ASKED("avx512"), ""}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        for (int b = 0; b < 2; b++) {
            struct scene_run r = scene_begin(*state, b ? "b" : "a", "memory", params, 5);

            for (uint64_t k = 1; k < 3; k++) {
                launch(&r, "1", k, cases[i].first, "2", b ? cases[i].isa_b : cases[i].isa_a, 20);
                launch(&r, "2", k, cases[i].second, "2", "avx2", 10);
            }
            scene_end(&r);
        }
        struct pairs p = scene_pairs(*state, "a", "b");
        assert_int_equal(p.n, 2);
        assert_string_equal(p.all[0].key, cases[i].key);
        assert_string_equal(p.all[0].differs, cases[i].differs);
        assert_string_equal(p.all[1].key, ASKED("avx2"));
        assert_string_equal(p.all[1].differs, "");
        assert_string_not_equal(p.all[0].label, p.all[1].label);
        for (size_t k = 0; k < 2; k++) {
            assert_int_equal(p.all[k].state, PAIR_READY);
            assert_int_equal(p.all[k].decide.a.runs[0].n, 2);
            assert_float_equal(p.all[k].decide.b.runs[0].values[1], k ? 10 : 20, 1e-6);
        }
        pairs_release(&p);
    }
}

/* An option whose name ends as another's does. */
TEST_WITH(test_options_of_like_names, scene_make, scene_remove)
{
    static const char *const names[] = {"transport", "size", "node", "peer_node"};
    static const char *const values[2][4] = {{"tcp", "64", "1", "0"}, {"tcp", "64", "any", "0"}};
    struct row row;

    for (int side = 0; side < 2; side++) {
        struct scene_run r = scene_begin(*state, side ? "b" : "a", "net", names, 4);

        fake_row_init(&row, "1", 1, "bandwidth", "GB/s", 10);
        scene_row(&r, &row, values[side]);
        scene_launch_as(&r, "done", 1, "1", 1, "--nodes 3 --peer-node 0 --node near", "");
        scene_end(&r);
    }
    struct pairs p = scene_pairs(*state, "a", "b");
    assert_int_equal(p.n, 1);
    assert_string_equal(p.all[0].key, "net|peer_node=0|size=64|transport=tcp|bandwidth|GB/s");
    assert_string_equal(p.all[0].differs, "node 1 against any");
    pairs_release(&p);
}
