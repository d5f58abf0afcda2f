/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what a benchmark chooses by itself: it makes no case, is told where it differs, and stays apart from what was
 * asked for. */
#include "harness/compare/pairs.h"

#include "tests/unit/pairs_scene.h"

static const char *const params[] = {"op", "size", "threads", "isa", "level"};

#define KEY "memory|op=triad|size=65536|bandwidth|GB/s"

/* One launch of a case with the arguments, which took that isa. */
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

static struct scene_run begin(void **state, const char *name)
{
    return scene_begin(*state, name, "memory", params, 5);
}

/* A run with one case whose launches took these, "" at the end. */
static void write_run(void **state, const char *name, const char *arguments,
                      const char *const *isas)
{
    struct scene_run r = begin(state, name);

    for (uint64_t i = 0; *isas[i]; i++)
        launch(&r, "1", i + 1, arguments, "2", isas[i], 10 + (double)i);
    scene_end(&r);
}

#define RUN(name, arguments, ...)                                                                  \
    write_run(state, name, arguments, (const char *const[]){__VA_ARGS__, ""})

static void expect_one(void **state, const char *key, const char *differs)
{
    struct pairs p = scene_pairs(*state, "a", "b");

    assert_int_equal(p.n, 1);
    assert_int_equal(p.all[0].state, PAIR_READY);
    assert_string_equal(p.all[0].key, key);
    assert_string_equal(p.all[0].differs, differs);
    pairs_release(&p);
}

static void test_another_choice_is_the_same_case(void **state)
{
    RUN("a", "--op triad --size 65536", "avx512", "avx512");
    RUN("b", "--op triad --size 65536", "avx2", "avx2");
    expect_one(state, KEY, "isa avx512 against avx2");
    RUN("b", "--op triad --size 65536", "avx512", "avx512");
    expect_one(state, KEY, "");
}

static void test_the_word_for_it_asks_for_nothing(void **state)
{
    RUN("a", "--op triad --isa auto --size 65536 --threads 0", "avx512", "avx512");
    RUN("b", "--op triad --size 65536", "avx2", "avx2");
    expect_one(state, KEY, "isa avx512 against avx2");
}

static void test_launches_that_chose_differently(void **state)
{
    RUN("a", "--op triad", "avx512", "avx2", "avx512");
    RUN("b", "--op triad", "avx512", "avx512");
    struct pairs p = scene_pairs(*state, "a", "b");

    assert_int_equal(p.n, 1);
    assert_string_equal(p.all[0].differs,
                        "isa avx512 in 2 of 3 launches, avx2 in 1 against avx512");
    assert_int_equal(p.all[0].decide.a.runs[0].n, 3);
    for (size_t i = 0; i < 3; i++) /* in the order of time still */
        assert_float_equal(p.all[0].decide.a.runs[0].values[i], 10 + (double)i, 1e-6);
    assert_int_equal(p.all[0].c->points[0].n_values, 3);
    assert_float_equal(p.all[0].c->points[0].value, cbrt(10 * 11 * 12), 1e-6);
    pairs_release(&p);
}

static void test_threads_of_the_machine(void **state)
{
    struct scene_run a = begin(state, "a"), b;

    launch(&a, "1", 1, "--op triad", "64", "avx2", 10);
    launch(&a, "1", 2, "--op triad", "64", "avx2", 10);
    scene_end(&a);
    b = begin(state, "b");
    launch(&b, "1", 1, "--op triad", "32", "avx2", 10);
    launch(&b, "1", 2, "--op triad", "32", "avx2", 10);
    scene_end(&b);
    expect_one(state, KEY, "threads 64 against 32");
}

static void write_both(void **state, const char *name, const char *first, const char *second,
                       const char *first_isa)
{
    struct scene_run r = begin(state, name);

    for (uint64_t i = 1; i < 3; i++) {
        launch(&r, "1", i, first, "2", first_isa, 20);
        launch(&r, "2", i, second, "2", "avx2", 10);
    }
    scene_end(&r);
}

static void expect_two(void **state, const char *first, const char *second, const char *differs)
{
    struct pairs p = scene_pairs(*state, "a", "b");

    assert_int_equal(p.n, 2);
    assert_string_equal(p.all[0].key, first);
    assert_string_equal(p.all[1].key, second);
    assert_string_equal(p.all[0].differs, differs);
    assert_string_equal(p.all[1].differs, "");
    assert_string_not_equal(p.all[0].label, p.all[1].label);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(p.all[i].state, PAIR_READY);
        assert_int_equal(p.all[i].decide.a.runs[0].n, 2);
        assert_float_equal(p.all[i].decide.b.runs[0].values[1], i ? 10 : 20, 1e-6);
    }
    pairs_release(&p);
}

static void test_both_were_asked_for(void **state)
{
    write_both(state, "a", "--isa avx512", "--isa avx2", "avx512");
    write_both(state, "b", "--isa avx512", "--isa avx2", "avx512");
    expect_two(state, "memory|isa=avx512|op=triad|size=65536|bandwidth|GB/s",
               "memory|isa=avx2|op=triad|size=65536|bandwidth|GB/s", "");
}

/* The choice fell on what another case of the suite asks for. */
static void test_a_choice_beside_what_was_asked_for(void **state)
{
    write_both(state, "a", "--op triad", "--op triad --isa avx2", "avx2");
    write_both(state, "b", "--op triad", "--op triad --isa avx2", "avx512");
    expect_two(state, KEY, "memory|isa=avx2|op=triad|size=65536|bandwidth|GB/s",
               "isa avx2 against avx512");
}

/* One launch of both: only the row says which it was. */
static void test_a_list_was_asked_for(void **state)
{
    write_both(state, "b", "\"--isa avx512,avx2\"", "\"--isa avx512,avx2\"", "avx512");
    write_both(state, "a", "\"--isa avx512,avx2\"", "\"--isa avx512,avx2\"", "avx512");
    expect_two(state, "memory|isa=avx512|op=triad|size=65536|bandwidth|GB/s",
               "memory|isa=avx2|op=triad|size=65536|bandwidth|GB/s", "");
}

/* The suite of one side says what the other's launches chose of themselves. */
static void test_asked_for_on_one_side(void **state)
{
    static const char asked[] = "memory|isa=avx2|op=triad|size=65536|bandwidth|GB/s";

    RUN("a", "--op triad --isa avx2", "avx2", "avx2");
    RUN("b", "--op triad", "avx2", "avx2");
    expect_one(state, asked, "");
    RUN("a", "--op triad", "avx2", "avx2");
    RUN("b", "--op triad --isa avx2", "avx2", "avx2");
    expect_one(state, asked, "");
}

static void expect_apart(void **state)
{
    struct pairs p = scene_pairs(*state, "a", "b");

    assert_int_equal(p.n, 2);
    assert_int_equal(p.all[0].state == PAIR_LOST_B || p.all[1].state == PAIR_LOST_B, true);
    assert_int_equal(p.all[0].state == PAIR_LOST_A || p.all[1].state == PAIR_LOST_A, true);
    pairs_release(&p);
}

/* Another value than was asked for is another case, and so is a choice that fell on it by chance. */
static void test_asked_for_and_not_given(void **state)
{
    RUN("a", "--op triad --isa avx2", "avx2", "avx2");
    RUN("b", "--op triad", "avx512", "avx512");
    expect_apart(state);
    RUN("b", "--op triad", "avx2", "avx512");
    expect_apart(state);
    RUN("b", "--op triad --isa avx512", "avx512", "avx512");
    expect_apart(state);
    RUN("a", "--op triad", "avx512", "avx2");
    RUN("b", "--op triad --isa avx2", "avx2", "avx2");
    expect_apart(state);
}

/* A guest without it skips the case before its row says which. */
static void test_asked_for_and_skipped(void **state)
{
    struct scene_run b;

    RUN("a", "--isa avx512", "avx512", "avx512");
    b = begin(state, "b");
    launch(&b, "1", 1, "--isa avx512", "2", "", NAN);
    launch(&b, "1", 2, "--isa avx512", "2", "", NAN);
    scene_end(&b);
    struct pairs p = scene_pairs(*state, "a", "b");

    assert_int_equal(p.n, 1);
    assert_int_equal(p.all[0].state, PAIR_LOST_B);
    assert_string_equal(p.all[0].reason, "B skipped it: no such unit here");
    pairs_release(&p);
}

/* The report has it in one of the two cases that the others make. */
static void test_a_launch_that_died_counts_once(void **state)
{
    static const char *const none[] = {"", "", "", "", ""};
    struct scene_run b = begin(state, "b");
    struct row row;

    RUN("a", "--op triad", "avx2", "avx2");
    launch(&b, "1", 1, "--op triad", "2", "avx2", 10);
    launch(&b, "1", 2, "--op triad", "2", "avx512", 10);
    fake_row_init(&row, "1", 3, "", "", NAN);
    row.status = "failed";
    row.reason = "it died";
    row.samples = 0;
    scene_row(&b, &row, none);
    scene_launch_as(&b, "fail", 1, "1", 3, "--op triad", "");
    scene_end(&b);
    struct pairs p = scene_pairs(*state, "a", "b");

    assert_int_equal(p.n, 1);
    assert_int_equal(p.all[0].state, PAIR_READY);
    assert_string_equal(p.all[0].reason, "1 of 3 launches of B failed: it died");
    pairs_release(&p);
}

/* An option whose name ends as another's does. */
static void test_options_of_like_names(void **state)
{
    static const char *const names[] = {"transport", "size", "node", "peer_node"};
    static const char *const first[] = {"tcp", "64", "1", "0"}, *const second[] = {"tcp", "64",
                                                                                   "any", "0"};
    struct row row;

    for (int side = 0; side < 2; side++) {
        struct scene_run r = scene_begin(*state, side ? "b" : "a", "net", names, 4);
        for (uint64_t i = 1; i < 3; i++) {
            fake_row_init(&row, "1", i, "bandwidth", "GB/s", 10);
            scene_row(&r, &row, side ? second : first);
            scene_launch_as(&r, "done", 1, "1", i, "--nodes 3 --peer-node 0 --node near", "");
        }
        scene_end(&r);
    }
    expect_one(state, "net|peer_node=0|size=64|transport=tcp|bandwidth|GB/s", "node 1 against any");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, scene_make, scene_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_another_choice_is_the_same_case),
        TEST(test_the_word_for_it_asks_for_nothing),
        TEST(test_launches_that_chose_differently),
        TEST(test_threads_of_the_machine),
        TEST(test_both_were_asked_for),
        TEST(test_a_choice_beside_what_was_asked_for),
        TEST(test_a_list_was_asked_for),
        TEST(test_asked_for_on_one_side),
        TEST(test_asked_for_and_not_given),
        TEST(test_asked_for_and_skipped),
        TEST(test_a_launch_that_died_counts_once),
        TEST(test_options_of_like_names),
    };

    return cmocka_run_group_tests_name("pairs_choice", tests, NULL, NULL);
}
