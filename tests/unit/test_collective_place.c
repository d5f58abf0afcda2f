/* SPDX-License-Identifier: Apache-2.0 */
/* Which ranks a communicator takes, who of them was late, and the most that its nodes' links leave to each operation. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "benches/allreduce/work.h"
#include "core/group/world.h"

/* nodes: a letter for each rank. */
static struct world *make(const char *nodes)
{
    char error[256] = "";
    struct world *w = NULL;

    assert_int_equal(world_new(&w, "local", 0, (unsigned)strlen(nodes), error, sizeof(error)), 0);
    for (unsigned i = 0; nodes[i]; i++) {
        world_self(&w->members[i]);
        snprintf(w->members[i].host, sizeof(w->members[i].host), "%c", nodes[i]);
    }
    world_number(w);
    return w;
}

static void check_order(const char *nodes, enum place_fill fill, unsigned n, const char *want)
{
    struct world *w = make(nodes);
    unsigned members[16];
    char got[64] = "";

    place_members(w, fill, n, members);
    for (unsigned i = 0; i < n; i++)
        snprintf(got + strlen(got), sizeof(got) - strlen(got), "%u ", members[i]);
    assert_string_equal(got, want);
    world_free(w);
}

static void test_order(void **state)
{
    (void)state;
    check_order("aabb", PLACE_FILL_NODE, 4, "0 1 2 3 ");
    check_order("abab", PLACE_FILL_NODE, 4, "0 2 1 3 ");
    check_order("aabb", PLACE_FILL_RANK, 4, "0 2 1 3 ");
    check_order("aabb", PLACE_FILL_RANK, 2, "0 2 ");
    check_order("aabb", PLACE_FILL_NODE, 2, "0 1 ");
    check_order("aaab", PLACE_FILL_RANK, 4, "0 3 1 2 ");
    check_order("a", PLACE_FILL_RANK, 1, "0 ");
}

static void test_nodes(void **state)
{
    unsigned members[] = {0, 1, 2, 3, 4}, most, fewest;
    struct world *w = make("aaabb");

    (void)state;
    assert_int_equal(links_nodes(w, members, 5, &most, &fewest), 2);
    assert_int_equal(most, 3);
    assert_int_equal(fewest, 2);
    assert_int_equal(links_nodes(w, members, 2, &most, &fewest), 1);
    assert_int_equal(fewest, 2);
    world_free(w);
}

/* Two nodes of one kernel are one machine; where it is not known which, each node is its own. */
static void test_machines(void **state)
{
    unsigned members[] = {3, 1, 0, 2}, machine[4];
    struct world *w = make("aabc");

    (void)state;
    for (unsigned i = 0; i < 4; i++)
        snprintf(w->members[i].machine, sizeof(w->members[i].machine), "%s",
                 i == 2 ? "another" : "one");
    assert_int_equal(place_machines(w, members, 4, machine), 2);
    assert_true(machine[0] == 0 && machine[1] == 0 && machine[2] == 0 && machine[3] == 1);
    for (unsigned i = 0; i < 4; i++)
        w->members[i].machine[0] = 0;
    assert_int_equal(place_machines(w, members, 4, machine), 3);
    assert_true(machine[0] == 0 && machine[1] == 1 && machine[2] == 1 && machine[3] == 2);
    world_free(w);
}

static void check_root(const char *nodes, enum place_fill fill, enum collective_op op,
                       unsigned root, double want)
{
    struct world *w = make(nodes);
    unsigned n = (unsigned)strlen(nodes), members[16];
    unsigned from_root[16];

    place_members(w, fill, n, members);
    place_root_first(members, n, 1, root, from_root);
    double got = links_bound(w, op, from_root, n, NULL, false, NULL);
    if (isnan(want))
        assert_true(isnan(got));
    else
        assert_true(fabs(got - want) < 1e-12);
    world_free(w);
}

static void check_bound(const char *nodes, enum place_fill fill, enum collective_op op, double want)
{
    check_root(nodes, fill, op, 0, want);
}

/* The root's node moves what the other nodes have: b's of "aaab" 3 blocks of 4, a's 1. By rank in turn ("aab": a b a) member 1 is b's. */
static void test_roots(void **state)
{
    (void)state;
    check_root("aaab", PLACE_FILL_NODE, COLLECTIVE_GATHER, 3, 1);
    check_root("aaab", PLACE_FILL_NODE, COLLECTIVE_GATHER, 2, 3);
    check_root("aaab", PLACE_FILL_NODE, COLLECTIVE_SCATTER, 3, 1);
    check_root("aab", PLACE_FILL_RANK, COLLECTIVE_SCATTER, 1, 1);
    check_root("aab", PLACE_FILL_NODE, COLLECTIVE_SCATTER, 1, 2);
    check_root("aaab", PLACE_FILL_NODE, COLLECTIVE_BROADCAST, 3, 1);
}

static void test_bound(void **state)
{
    (void)state;
    for (int op = 0; op < COLLECTIVE_OPS; op++)
        check_bound("aaaa", PLACE_FILL_NODE, op, NAN);
    for (int op = 0; op < COLLECTIVE_OPS; op++) /* a rank a node: the wire itself */
        check_bound("abcd", PLACE_FILL_NODE, op, 1);
    /* Nodes reduce before they send: 4 ranks on 2 nodes send half of 2 x 1/2, where a flat ring would send 2 x 3/4. */
    check_bound("aabb", PLACE_FILL_NODE, COLLECTIVE_ALLREDUCE, 1.5);
    check_bound("aabb", PLACE_FILL_NODE, COLLECTIVE_BROADCAST, 1);
    check_bound("aabb", PLACE_FILL_NODE, COLLECTIVE_ALL_TO_ALL, 0.75);
    check_bound("aaab", PLACE_FILL_NODE, COLLECTIVE_ALL_TO_ALL, 1);
    check_bound("aabb", PLACE_FILL_NODE, COLLECTIVE_SEND_RECEIVE, 1);
    check_bound("aabb", PLACE_FILL_RANK, COLLECTIVE_SEND_RECEIVE, 0.5);
    check_bound("aabb", PLACE_FILL_NODE, COLLECTIVE_REDUCE_SCATTER, 1.5);
    check_bound("aabb", PLACE_FILL_NODE, COLLECTIVE_REDUCE, 1);
    /* a has the root, and gets, or gives, the other nodes' blocks: 2 of 4, 1 of 4, 3 of 4 */
    check_bound("aabb", PLACE_FILL_NODE, COLLECTIVE_GATHER, 1.5);
    check_bound("aaab", PLACE_FILL_NODE, COLLECTIVE_SCATTER, 3);
    check_bound("abbb", PLACE_FILL_NODE, COLLECTIVE_GATHER, 1);
}

/* Two of three nodes are of one machine, which is told at the first of them; of a machine that is told nowhere nothing is known of all. */
static void test_busy_machines(void **state)
{
    const unsigned machine[] = {0, 0, 1};
    struct session_node nodes[] = {
        {.member = 0, .busy_cores = 1.5, .softirq_cores = 0.5},
        {.member = 1, .busy_cores = NAN, .softirq_cores = NAN},
        {.member = 2, .busy_cores = 2, .softirq_cores = 0},
    };
    double busy, softirq;

    (void)state;
    rows_machines(nodes, 3, machine, 2, &busy, &softirq);
    assert_true(busy == 3.5 && softirq == 0.5);
    nodes[2].busy_cores = nodes[2].softirq_cores = NAN;
    rows_machines(nodes, 3, machine, 2, &busy, &softirq);
    assert_true(isnan(busy) && isnan(softirq));
}

/* A switch that adds takes a vector from each node and gives each the sum: n ranks that share it so get 2 (n-1)/n of their link in busbw, more than by
 * messages among themselves. Nothing else gets faster by it. */
static void test_sums_on_the_way(void **state)
{
    (void)state;
    for (int op = 0; op < COLLECTIVE_OPS; op++) {
        const unsigned members[] = {0, 1, 2, 3};
        struct world *w = make("abcd");
        double got = links_bound(w, op, members, 4, NULL, true, NULL);
        assert_true(fabs(got - (op == COLLECTIVE_ALLREDUCE ? 1.5 : 1)) < 1e-12);
        world_free(w);
    }
}

/* The node with the fewest sends (reduce-scatter) or receives (all-gather) the most: of "aaab", b 3 of 4 blocks. */
static void test_uneven(void **state)
{
    static const enum collective_op ops[] = {COLLECTIVE_REDUCE_SCATTER, COLLECTIVE_ALL_GATHER};

    (void)state;
    for (int i = 0; i < 2; i++) {
        check_bound("aaab", PLACE_FILL_NODE, ops[i], 1);
        check_bound("aab", PLACE_FILL_NODE, ops[i], 1);
        check_bound("aaabbc", PLACE_FILL_NODE, ops[i], 1);
        check_bound("aaaabb", PLACE_FILL_NODE, ops[i], 1.25);
    }
    check_bound("aaab", PLACE_FILL_NODE, COLLECTIVE_ALLREDUCE, 1.5);
    check_bound("aab", PLACE_FILL_NODE, COLLECTIVE_ALLREDUCE, 4.0 / 3);
    check_bound("aaabbc", PLACE_FILL_NODE, COLLECTIVE_ALLREDUCE, 1.25);
}

static void check_rates(const char *nodes, enum collective_op op, const double *rates, double want,
                        unsigned slowest)
{
    struct world *w = make(nodes);
    unsigned n = (unsigned)strlen(nodes), members[16], named = 99;

    place_members(w, PLACE_FILL_NODE, n, members);
    double got = links_bound(w, op, members, n, rates, false, &named);
    if (isnan(want) ? !isnan(got) : !(fabs(got - want) < 1e-12))
        fail_msg("%s %d: %.9g, not %.9g", nodes, op, got, want);
    assert_int_equal(named, slowest);
    world_free(w);
}

/* Links of different rates: one that is slow has less to do by another algorithm than a ring, but not less than what it alone adds and gets. */
static void test_rates(void **state)
{
    static const double half[] = {1, 0.5, 1, 1}, quick[] = {1, 1, 1, 9}, mixed[] = {0.5, 2, 1};
    static const double slow[] = {0.5, 9};
    static const double some[] = {1, NAN, 1, 1}, one[] = {NAN, 2}, none[] = {NAN, NAN};

    (void)state;
    check_rates("abcd", COLLECTIVE_ALLREDUCE, half, 0.5 * 1.5, 1);
    check_rates("abcd", COLLECTIVE_ALLREDUCE, quick, 1.5, 0); /* 12 / 6, and 1 alone */
    check_rates("abcd", COLLECTIVE_BROADCAST, half, 0.5, 1);
    /* a, slow, has 3 of 6 to send; c, quicker, 5. */
    check_rates("aaabbc", COLLECTIVE_REDUCE_SCATTER, mixed, 0.5 / (3.0 / 6) * 5 / 6, 0);
    check_rates("aaab", COLLECTIVE_REDUCE_SCATTER, slow, 0.5 / (3.0 / 4) * 3 / 4, 0); /* in */
    check_rates("abcd", COLLECTIVE_ALLREDUCE, some, 1.5,
                0); /* the other may be as quick as it likes */
    check_rates("ab", COLLECTIVE_ALLREDUCE, one, 2, 1);
    check_rates("ab", COLLECTIVE_ALLREDUCE, none, NAN, 99);
}

#define MS 1000000u

/* Times of an operation: after the barrier, in it, of which waiting for others and for a link. */
static struct collective_times took(uint64_t slack, uint64_t ns, uint64_t waited, uint64_t blocked)
{
    return (struct collective_times){
        .slack_ns = slack, .ns = ns, .waited_ns = waited, .blocked_ns = blocked};
}

static void test_late(void **state)
{
    (void)state;
    /* One came late to the barrier: it did not wait there. */
    struct collective_times barrier[] = {took(20 * MS, 10 * MS, 5 * MS, 0),
                                         took(20 * MS, 10 * MS, 5 * MS, 0),
                                         took(0, 10 * MS, 5 * MS, 0)};
    assert_int_equal(rows_late(barrier, 3, 10 * MS), 2);
    /* One had more to do, or was slower at it. */
    struct collective_times busy[] = {took(0, 10 * MS, 7 * MS, 0), took(0, 10 * MS, 1 * MS, 0),
                                      took(0, 10 * MS, 7 * MS, 0)};
    assert_int_equal(rows_late(busy, 3, 10 * MS), 1);
    /* A slow link: one waits for it to take, the others for what comes out of it: nobody is late. */
    struct collective_times link[] = {took(0, 10 * MS, 1 * MS, 8 * MS), took(0, 10 * MS, 9 * MS, 0),
                                      took(0, 10 * MS, 9 * MS, 0)};
    assert_int_equal(rows_late(link, 3, 10 * MS), -1);
    /* A root that is done early does not keep the others waiting. */
    struct collective_times root[] = {took(0, 2 * MS, 0, 0), took(0, 10 * MS, 8 * MS, 0),
                                      took(0, 10 * MS, 8 * MS, 0)};
    assert_int_equal(rows_late(root, 3, 10 * MS), -1);
    /* Less than 100 us, or than 5 % of the time, is nothing. */
    struct collective_times small[] = {took(0, 200000, 0, 0), took(90000, 200000, 0, 0)};
    assert_int_equal(rows_late(small, 2, 200000), -1);
    struct collective_times share[] = {took(0, 100 * MS, 0, 0), took(0, 100 * MS, 4 * MS, 0)};
    assert_int_equal(rows_late(share, 2, 100 * MS), -1);
    share[1].waited_ns = 6 * MS;
    assert_int_equal(rows_late(share, 2, 100 * MS), 0);
    assert_int_equal(rows_late(share, 1, 100 * MS), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),         cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_machines),      cmocka_unit_test(test_bound),
        cmocka_unit_test(test_roots),         cmocka_unit_test(test_sums_on_the_way),
        cmocka_unit_test(test_busy_machines), cmocka_unit_test(test_uneven),
        cmocka_unit_test(test_rates),         cmocka_unit_test(test_late),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
