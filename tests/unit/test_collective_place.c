/* SPDX-License-Identifier: Apache-2.0 */
/* Which ranks a communicator takes, who of them was late, and the most that its nodes' links leave to each operation. */
#include "benches/allreduce/work.h"
#include "tests/unit/unit.h"
#include "tests/unit/wires.h"

TEST(test_order)
{
    static const struct {
        const char *nodes;
        enum place_fill fill;
        unsigned n, want[4];
    } cases[] = {{"aabb", PLACE_FILL_NODE, 4, {0, 1, 2, 3}},
                 {"abab", PLACE_FILL_NODE, 4, {0, 2, 1, 3}},
                 {"aabb", PLACE_FILL_RANK, 4, {0, 2, 1, 3}},
                 {"aabb", PLACE_FILL_RANK, 2, {0, 2}},
                 {"aabb", PLACE_FILL_NODE, 2, {0, 1}},
                 {"aaab", PLACE_FILL_RANK, 4, {0, 3, 1, 2}},
                 {"a", PLACE_FILL_RANK, 1, {0}}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct world *w = world_of(cases[i].nodes);
        unsigned members[4];
        place_members(w, cases[i].fill, cases[i].n, members);
        assert_memory_equal(members, cases[i].want, cases[i].n * sizeof(*members));
        world_free(w);
    }
}

TEST(test_nodes)
{
    unsigned members[] = {0, 1, 2, 3, 4}, most, fewest;
    struct world *w = world_of("aaabb");

    assert_int_equal(links_nodes(w, members, 5, &most, &fewest), 2);
    assert_int_equal(most, 3);
    assert_int_equal(fewest, 2);
    assert_int_equal(links_nodes(w, members, 2, &most, &fewest), 1);
    assert_int_equal(fewest, 2);
    world_free(w);
}

/* Two nodes of one kernel are one machine; where it is not known which, each node is its own. */
TEST(test_machines)
{
    unsigned members[] = {3, 1, 0, 2}, machine[4];
    struct world *w = world_of("aabc");

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

/* The most that links leave to an operation, in busbw; a switch that adds (sums), of links of these rates (NULL: alike), and who is slowest. */
static void bound_is(const char *nodes, enum place_fill fill, enum collective_op op, unsigned root,
                     bool sums, const double *rates, double want, unsigned slowest)
{
    struct world *w = world_of(nodes);
    unsigned n = (unsigned)strlen(nodes), members[16], from_root[16], named = 99;

    place_members(w, fill, n, members);
    place_root_first(members, n, 1, root, from_root);
    double got = links_bound(w, op, from_root, n, rates, sums, &named);
    if (isnan(want) ? !isnan(got) : !(fabs(got - want) < 1e-12))
        fail_msg("%s %d, root %u: %.9g, not %.9g", nodes, op, root, got, want);
    if (rates)
        assert_int_equal(named, slowest);
    world_free(w);
}

TEST(test_bound)
{
    static const struct {
        const char *nodes;
        enum place_fill fill;
        enum collective_op op;
        unsigned root;
        double want;
    } cases[] = {
        /* Nodes reduce before they send: 4 ranks on 2 nodes send half of 2 x 1/2, where a flat ring would send 2 x 3/4. */
        {"aabb", PLACE_FILL_NODE, COLLECTIVE_ALLREDUCE, 0, 1.5},
        {"aabb", PLACE_FILL_NODE, COLLECTIVE_BROADCAST, 0, 1},
        {"aabb", PLACE_FILL_NODE, COLLECTIVE_ALL_TO_ALL, 0, 0.75},
        {"aaab", PLACE_FILL_NODE, COLLECTIVE_ALL_TO_ALL, 0, 1},
        {"aabb", PLACE_FILL_NODE, COLLECTIVE_SEND_RECEIVE, 0, 1},
        {"aabb", PLACE_FILL_RANK, COLLECTIVE_SEND_RECEIVE, 0, 0.5},
        {"aabb", PLACE_FILL_NODE, COLLECTIVE_REDUCE_SCATTER, 0, 1.5},
        {"aabb", PLACE_FILL_NODE, COLLECTIVE_REDUCE, 0, 1},
        /* a has the root, and gets, or gives, the other nodes' blocks: 2 of 4, 1 of 4, 3 of 4 */
        {"aabb", PLACE_FILL_NODE, COLLECTIVE_GATHER, 0, 1.5},
        {"aaab", PLACE_FILL_NODE, COLLECTIVE_SCATTER, 0, 3},
        {"abbb", PLACE_FILL_NODE, COLLECTIVE_GATHER, 0, 1},
        /* The root's node moves what the others have. By rank in turn ("aab": a b a) member 1 is b's. */
        {"aaab", PLACE_FILL_NODE, COLLECTIVE_GATHER, 3, 1},
        {"aaab", PLACE_FILL_NODE, COLLECTIVE_GATHER, 2, 3},
        {"aaab", PLACE_FILL_NODE, COLLECTIVE_SCATTER, 3, 1},
        {"aab", PLACE_FILL_RANK, COLLECTIVE_SCATTER, 1, 1},
        {"aab", PLACE_FILL_NODE, COLLECTIVE_SCATTER, 1, 2},
        {"aaab", PLACE_FILL_NODE, COLLECTIVE_BROADCAST, 3, 1},
        /* The node with the fewest sends (reduce-scatter) or receives (all-gather) the most. */
        {"aaab", PLACE_FILL_NODE, COLLECTIVE_REDUCE_SCATTER, 0, 1},
        {"aaabbc", PLACE_FILL_NODE, COLLECTIVE_REDUCE_SCATTER, 0, 1},
        {"aaaabb", PLACE_FILL_NODE, COLLECTIVE_REDUCE_SCATTER, 0, 1.25},
        {"aaab", PLACE_FILL_NODE, COLLECTIVE_ALL_GATHER, 0, 1},
        {"aaaabb", PLACE_FILL_NODE, COLLECTIVE_ALL_GATHER, 0, 1.25},
        {"aab", PLACE_FILL_NODE, COLLECTIVE_ALLREDUCE, 0, 4.0 / 3},
        {"aaabbc", PLACE_FILL_NODE, COLLECTIVE_ALLREDUCE, 0, 1.25},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        bound_is(cases[i].nodes, cases[i].fill, cases[i].op, cases[i].root, false, NULL,
                 cases[i].want, 0);
    for (int op = 0; op < COLLECTIVE_OPS; op++) {
        bound_is("aaaa", PLACE_FILL_NODE, op, 0, false, NULL, NAN, 0);
        bound_is("abcd", PLACE_FILL_NODE, op, 0, false, NULL, 1, 0); /* a rank a node: the wire */
        /* A switch that adds gives n ranks 2 (n-1)/n of their link; nothing else gets faster by it. */
        bound_is("abcd", PLACE_FILL_NODE, op, 0, true, NULL, op == COLLECTIVE_ALLREDUCE ? 1.5 : 1,
                 0);
    }
}

/* Two of three nodes are of one machine, which is told at the first of them; of a machine that is told nowhere nothing is known of all. */
TEST(test_busy_machines)
{
    const unsigned machine[] = {0, 0, 1};
    struct session_node nodes[] = {
        {.member = 0, .busy_cores = 1.5, .softirq_cores = 0.5},
        {.member = 1, .busy_cores = NAN, .softirq_cores = NAN},
        {.member = 2, .busy_cores = 2, .softirq_cores = 0},
    };
    double busy, softirq;

    rows_machines(nodes, 3, machine, 2, &busy, &softirq);
    assert_true(busy == 3.5 && softirq == 0.5);
    nodes[2].busy_cores = nodes[2].softirq_cores = NAN;
    rows_machines(nodes, 3, machine, 2, &busy, &softirq);
    assert_true(isnan(busy) && isnan(softirq));
}

/* Links of different rates: one that is slow has less to do by another algorithm than a ring, but not less than what it alone adds and gets. */
TEST(test_rates)
{
    static const struct {
        const char *nodes;
        enum collective_op op;
        double rates[4], want;
        unsigned slowest;
    } cases[] = {
        {"abcd", COLLECTIVE_ALLREDUCE, {1, 0.5, 1, 1}, 0.5 * 1.5, 1},
        {"abcd", COLLECTIVE_ALLREDUCE, {1, 1, 1, 9}, 1.5, 0}, /* 12 / 6, and 1 alone */
        {"abcd", COLLECTIVE_BROADCAST, {1, 0.5, 1, 1}, 0.5, 1},
        /* a, slow, has 3 of 6 to send; c, quicker, 5. */
        {"aaabbc", COLLECTIVE_REDUCE_SCATTER, {0.5, 2, 1}, 0.5 / (3.0 / 6) * 5 / 6, 0},
        {"aaab", COLLECTIVE_REDUCE_SCATTER, {0.5, 9}, 0.5 / (3.0 / 4) * 3 / 4, 0}, /* in */
        {"abcd", COLLECTIVE_ALLREDUCE, {1, NAN, 1, 1}, 1.5, 0}, /* as quick as it likes */
        {"ab", COLLECTIVE_ALLREDUCE, {NAN, 2}, 2, 1},
        {"ab", COLLECTIVE_ALLREDUCE, {NAN, NAN}, NAN, 99},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        bound_is(cases[i].nodes, PLACE_FILL_NODE, cases[i].op, 0, false, cases[i].rates,
                 cases[i].want, cases[i].slowest);
}

/* Who waited least is late: by 100 us, and 5 % of the time, at least. Times are of each member: after the barrier, in the operation, of which waiting for others and for a link. */
TEST(test_late)
{
    static const struct {
        unsigned n;
        struct {
            uint64_t slack, took, waited, blocked;
        } us[3];
        uint64_t slowest;
        int late;
    } cases[] = {
        /* came late to the barrier: it did not wait there */
        {3, {{20000, 10000, 5000, 0}, {20000, 10000, 5000, 0}, {0, 10000, 5000, 0}}, 10000, 2},
        /* had more to do, or was slower at it */
        {3, {{0, 10000, 7000, 0}, {0, 10000, 1000, 0}, {0, 10000, 7000, 0}}, 10000, 1},
        /* a slow link: one waits for it to take, the others for what comes out of it */
        {3, {{0, 10000, 1000, 8000}, {0, 10000, 9000, 0}, {0, 10000, 9000, 0}}, 10000, -1},
        /* a root that is done early does not keep the others waiting */
        {3, {{0, 2000, 0, 0}, {0, 10000, 8000, 0}, {0, 10000, 8000, 0}}, 10000, -1},
        {2, {{0, 200, 0, 0}, {90, 200, 0, 0}}, 200, -1},
        {2, {{0, 100000, 0, 0}, {0, 100000, 4000, 0}}, 100000, -1},
        {2, {{0, 100000, 0, 0}, {0, 100000, 6000, 0}}, 100000, 0},
        {1, {{0, 100000, 0, 0}, {0, 100000, 6000, 0}}, 100000, -1},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct collective_times t[3] = {0};
        for (unsigned k = 0; k < 3; k++) {
            t[k].slack_ns = cases[i].us[k].slack * 1000;
            t[k].ns = cases[i].us[k].took * 1000;
            t[k].waited_ns = cases[i].us[k].waited * 1000;
            t[k].blocked_ns = cases[i].us[k].blocked * 1000;
        }
        assert_int_equal(rows_late(t, cases[i].n, cases[i].slowest * 1000), cases[i].late);
    }
}
