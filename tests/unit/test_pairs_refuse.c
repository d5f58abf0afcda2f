/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what is not held against each other, and of what is told to differ: paths, origins, outcomes. */
#include "harness/compare/pairs.h"

#include "tests/unit/pairs_scene.h"

static const char *const params[] = {"op", "stores", "size", "level"};
static const char *const triad[] = {"triad", "", "65536", "L2"};

/* A launch of case 1 whose row is made by `change`. */
static void write_changed(const struct fake_run *root, const char *name, const char *const *values,
                          void (*change)(struct row *, int), int how)
{
    struct scene_run r = scene_begin(root, name, "memory", params, 4);
    struct row row;

    for (uint64_t i = 1; i < 3; i++) {
        fake_row_init(&row, "1", i, "bandwidth", "GB/s", 10);
        if (change)
            change(&row, how);
        scene_row(&r, &row, values);
        scene_launch(&r, "done", 1, "1", i, "");
    }
    scene_end(&r);
}

/* What the evidence says is for people: here it is wrong. */
static void carry(struct row *row, int how)
{
    static const char *const paths[] = {"rdma", "sockets", ""};

    row->carrier = paths[how];
    row->evidence = "own: lo sent 12.4 GB, 100 % of the bytes, peer: lo received 12.4 GB";
}

static void test_other_path_is_refused(void **state)
{
    write_changed(*state, "a", triad, carry, 0);
    write_changed(*state, "b", triad, carry, 1);
    struct pairs p = scene_pairs(*state, "a", "b");

    assert_int_equal(p.all[0].state, PAIR_REFUSED);
    assert_string_equal(p.all[0].reason,
                        "another path: RDMA in A, sockets in B, by the column carrier");
    assert_int_equal(p.overall.n_judged, 0);
    pairs_release(&p);
}

static void test_unknown_path_is_told(void **state)
{
    write_changed(*state, "a", triad, carry, 0);
    write_changed(*state, "b", triad, carry, 2);
    struct pairs p = scene_pairs(*state, "a", "b");

    assert_int_equal(p.all[0].state, PAIR_READY);
    assert_string_equal(p.all[0].differs, "path RDMA against not proved");
    pairs_release(&p);
}

/* Launches of case 1: the way each took ('r' RDMA, 's' sockets), in capitals where others took the CPU meanwhile. */
static void write_ways(const struct fake_run *root, const char *name, const char *ways)
{
    struct scene_run r = scene_begin(root, name, "memory", params, 4);
    struct row row;

    for (uint64_t i = 1; ways[i - 1]; i++) {
        bool taken = ways[i - 1] < 'a';

        fake_row_init(&row, "1", i, "bandwidth", "GB/s", taken ? 5 : 10);
        carry(&row, (ways[i - 1] | 0x20) == 's');
        row.ledger.steal_percent = taken ? 30 : 0;
        scene_row(&r, &row, triad);
        scene_launch(&r, "done", 1, "1", i, "");
    }
    scene_end(&r);
}

static struct pairs pairs_of_ways(const struct fake_run *root, const char *a, const char *b,
                                  double steal_limit)
{
    const struct pairs_options options = {.margin = 0.05, .steal_limit = steal_limit};
    struct pairs p;
    char error[512];

    write_ways(root, "a", a);
    write_ways(root, "b", b);
    if (scene_load(&p, root, "a", "b", &options, error, sizeof(error)))
        fail_msg("%s", error);
    return p;
}

/* Neighbours that take the CPU move no bytes to another path: what the launches that are left out prove still holds. */
static void test_other_path_is_refused_whoever_took_the_cpu(void **state)
{
    static const struct {
        const char *a, *b;
        double limit;
        enum pair_state state;
        const char *taken;
    } known[] = {
        {"rr", "SS", 0.02, PAIR_REFUSED, "2 of 2 launches of B (30 %)"}, /* none of B is left */
        {"SS", "rr", 0.02, PAIR_REFUSED, "2 of 2 launches of A (30 %)"},
        {"RR", "SS", 0.02, PAIR_REFUSED,
         "2 of 2 launches of A (30 %), 2 of 2 launches of B (30 %)"},
        {"rr", "rrS", 0.02, PAIR_REFUSED, "1 of 3 launches of B (30 %)"}, /* in that launch alone */
        {"rr", "ssS", 0.02, PAIR_REFUSED, "1 of 3 launches of B (30 %)"}, /* and in others */
        {"rr", "ssR", 0.02, PAIR_REFUSED, "1 of 3 launches of B (30 %)"}, /* in the others alone */
        {"rr", "SS", 0, PAIR_REFUSED, ""},
        {"rr", "RR", 0.02, PAIR_TAKEN, "2 of 2 launches of B (30 %)"},
        {"rr", "rrR", 0.02, PAIR_READY, "1 of 3 launches of B (30 %)"},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        struct pairs p = pairs_of_ways(*state, known[i].a, known[i].b, known[i].limit);

        assert_int_equal(p.n, 1);
        assert_string_equal(p.all[0].taken, known[i].taken);
        if (p.all[0].state != known[i].state)
            fail_msg("'%s' against '%s': state %d", known[i].a, known[i].b, (int)p.all[0].state);
        if (known[i].state == PAIR_REFUSED) {
            assert_memory_equal(p.all[0].reason, "another path: ", strlen("another path: "));
            assert_int_equal(p.overall.n_judged, 0);
        }
        pairs_release(&p);
    }
}

static void simulate(struct row *row, int how)
{
    row->origin = how ? "simulated" : "measured";
}

static void test_other_origin_is_refused(void **state)
{
    write_changed(*state, "a", triad, simulate, 0);
    write_changed(*state, "b", triad, simulate, 1);
    struct pairs p = scene_pairs(*state, "a", "b");

    assert_int_equal(p.all[0].state, PAIR_REFUSED);
    assert_string_equal(p.all[0].reason, "measured in A, simulated in B");
    pairs_release(&p);
}

static void test_other_level_is_refused(void **state)
{
    static const char *const memory[] = {"triad", "", "65536", "DRAM"};

    write_changed(*state, "a", triad, NULL, 0);
    write_changed(*state, "b", memory, NULL, 0);
    struct pairs p = scene_pairs(*state, "a", "b");

    assert_int_equal(p.n, 1);
    assert_int_equal(p.all[0].state, PAIR_REFUSED);
    assert_string_equal(p.all[0].reason, "another quantity: level L2 against DRAM");
    pairs_release(&p);
}

static void test_other_kernel_is_told(void **state)
{
    static const char *const names[] = {"dtype", "kernel"};
    static const char *const one[] = {"f64", "SkylakeX"}, *const two[] = {"f64", "Haswell"};
    const char *const *values[] = {one, two};

    for (int side = 0; side < 2; side++) {
        struct scene_run r = scene_begin(*state, side ? "b" : "a", "gemm", names, 2);
        struct row row;
        fake_row_init(&row, "1", 1, "throughput", "TFLOP/s", 1);
        scene_row(&r, &row, values[side]);
        scene_launch(&r, "done", 1, "1", 1, "");
        scene_end(&r);
    }
    struct pairs p = scene_pairs(*state, "a", "b");
    assert_int_equal(p.all[0].state, PAIR_READY);
    assert_string_equal(p.all[0].differs, "kernel SkylakeX against Haswell");
    pairs_release(&p);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, scene_make, scene_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_other_path_is_refused),   TEST(test_unknown_path_is_told),
        TEST(test_other_origin_is_refused), TEST(test_other_level_is_refused),
        TEST(test_other_kernel_is_told),    TEST(test_other_path_is_refused_whoever_took_the_cpu),
    };

    return cmocka_run_group_tests_name("pairs_refuse", tests, NULL, NULL);
}
