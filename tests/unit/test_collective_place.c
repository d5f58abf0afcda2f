/* SPDX-License-Identifier: Apache-2.0 */
/* Which ranks a communicator takes, and the most that its nodes' links leave to each operation. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/ranks/place.h"
#include "core/group/world_parts.h"

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
    assert_int_equal(place_nodes(w, members, 5, &most, &fewest), 2);
    assert_int_equal(most, 3);
    assert_int_equal(fewest, 2);
    assert_int_equal(place_nodes(w, members, 2, &most, &fewest), 1);
    assert_int_equal(fewest, 2);
    world_free(w);
}

static void check_bound(const char *nodes, enum place_fill fill, enum collective_op op, double want)
{
    struct world *w = make(nodes);
    unsigned n = (unsigned)strlen(nodes), members[16];

    place_members(w, fill, n, members);
    double got = place_bound(w, op, members, n);
    if (isnan(want))
        assert_true(isnan(got));
    else
        assert_true(fabs(got - want) < 1e-12);
    world_free(w);
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
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
