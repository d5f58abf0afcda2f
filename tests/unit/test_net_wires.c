/* SPDX-License-Identifier: Apache-2.0 */
/* The benchmark `net` over each wire that needs no device, also those that none of its options names: the wire's table
 * is all that it needs of it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/hw/rail.h"
#include "net_pair.h"
#include "wire_fixture.h"

static void stream(const struct wire_ops *ops, uint64_t message_bytes)
{
    struct net_point p = net_pair_point(ops->name, 2);
    struct net_pair pair;
    uint64_t bytes[NET_DIRECTIONS];

    p.stream[NET_REVERSE] = 1;
    p.message_bytes = message_bytes;
    int err = net_pair_open(&pair, ops, &p, NULL, NULL);
    if (!ops->retract) {
        assert_int_equal(err, -EOPNOTSUPP);
        assert_non_null(strstr(net_pair_error(&pair), "takes no receive back"));
        net_pair_close(&pair);
        return;
    }
    assert_string_equal(net_pair_error(&pair), "");
    assert_string_equal((net_pair_some(&pair, bytes), net_pair_error(&pair)), "");
    for (int end = 0; end < NET_PAIR_ENDS; end++)
        for (unsigned i = 0; i < p.connections; i++) {
            assert_true(pair.ends[end].counts[i].sent > 0);
            assert_int_equal(pair.ends[end].counts[i].sent, pair.ends[!end].counts[i].received);
        }
    assert_string_equal((net_pair_check(&pair), net_pair_error(&pair)), "");
    net_pair_close(&pair);
}

static void ping(const struct wire_ops *ops, uint64_t message_bytes)
{
    struct net_point p = net_pair_point(ops->name, 0);
    struct net_pair pair;
    uint64_t ns[20];

    p.stream[NET_FORWARD] = 0;
    p.ping = 1;
    p.ping_bytes = message_bytes;
    assert_string_equal((net_pair_open(&pair, ops, &p, NULL, NULL), net_pair_error(&pair)), "");
    assert_string_equal((net_pair_ping(&pair, 20, ns), net_pair_error(&pair)), "");
    for (int i = 0; i < 20; i++)
        assert_true(ns[i] > 0);
    assert_string_equal((net_pair_check(&pair), net_pair_error(&pair)), "");
    net_pair_close(&pair);
}

static void every_wire_streams_and_pings(void **state)
{
    static const uint64_t sizes[] = {1, 65536, 1000003};
    const struct wire_ops *wires[WIRES_MAX];
    unsigned n = wire_fixture_wires(wires);

    (void)state;
    for (unsigned i = 0; i < n; i++)
        for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
            print_message("%s, %llu bytes\n", wires[i]->name, (unsigned long long)sizes[s]);
            stream(wires[i], sizes[s]);
            ping(wires[i], sizes[s]);
        }
}

/* Of options, a wire that has no word on them takes none. */
static void a_wire_has_traits_without_a_word(void **state)
{
    static const struct {
        unsigned ways;
        enum wire_way way;
    } cases[] = {
        {WIRE_CAN(WIRE_YIELD) | WIRE_CAN(WIRE_POLL) | WIRE_CAN(WIRE_BLOCK), WIRE_POLL},
        {WIRE_CAN(WIRE_YIELD) | WIRE_CAN(WIRE_BLOCK) | WIRE_CAN(WIRE_EVENTS), WIRE_BLOCK},
        {WIRE_CAN(WIRE_YIELD) | WIRE_CAN(WIRE_EVENTS), WIRE_EVENTS},
        {WIRE_CAN(WIRE_YIELD), WIRE_YIELD},
    };
    const struct wire_options all = {.tcp = {.mode = WIRE_TCP_EPOLL, .spin = 1, .busy_poll_us = 9},
                                     .rdma = {.verb = RDMA_READ, .events = 1}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct wire_ops ops = {.name = "toy", .ways = cases[i].ways};
        struct wire_traits t = wire_traits_of(&ops, &all);
        assert_int_equal(t.way, cases[i].way);
        assert_int_equal(t.probe_way, cases[i].way);
        assert_int_equal(t.busy, cases[i].way == WIRE_POLL);
        assert_int_equal(t.acts, WIRE_BOTH);
    }
}

/* Rail 3 of eight GPUs is not rail 3 of seven: which is missing nobody knows. */
static void rails_pair_where_both_machines_have_as_many(void **state)
{
    struct rail rail = {.gpu = 3, .of = 8, .way = "PIX"};
    struct net_local local = {.rail = 4, .paired = NET_PAIRED_GPU, .paired_of = 8};
    char error[256] = "";

    (void)state;
    assert_int_equal(net_rail_paired(&local, &rail, error, sizeof(error)), 0);
    local.paired_of = 7;
    assert_int_equal(net_rail_paired(&local, &rail, error, sizeof(error)), -ENODEV);
    assert_string_equal(error, "8 rails here, 7 there: their numbers do not match");
    /* As many, of eight each; but not the same. Unequal machines, and what is not known, tell nothing. */
    rail.seat = 5, rail.seats = 8;
    local = (struct net_local){
        .rail = 4, .paired = NET_PAIRED_GPU, .paired_of = 8, .paired_seat = 4, .paired_seats = 8};
    assert_int_equal(net_rail_paired(&local, &rail, error, sizeof(error)), -ENODEV);
    assert_string_equal(error, "rail 3 is GPU 5 of the 8 of this machine, and GPU 4 there: the two "
                               "ends see different ones (CUDA_VISIBLE_DEVICES)");
    local.paired_seat = 5;
    assert_int_equal(net_rail_paired(&local, &rail, error, sizeof(error)), 0);
    local.paired_seat = 0;
    assert_int_equal(net_rail_paired(&local, &rail, error, sizeof(error)), 0);
    local.paired_seat = 4, local.paired_seats = 9;
    assert_int_equal(net_rail_paired(&local, &rail, error, sizeof(error)), 0);
    local.paired_seats = 8, rail.seat = 0;
    assert_int_equal(net_rail_paired(&local, &rail, error, sizeof(error)), 0);
    local.paired_of = 7;
    local.paired = NET_PAIRED_BARE;
    assert_int_equal(net_rail_paired(&local, &rail, error, sizeof(error)), -ENODEV);
    assert_non_null(strstr(error, "rail 3 of this end has a GPU, that of the other end has none"));
    local = (struct net_local){.rail = 4}; /* this is the leader */
    assert_int_equal(net_rail_paired(&local, &rail, error, sizeof(error)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_wire_streams_and_pings),
        cmocka_unit_test(a_wire_has_traits_without_a_word),
        cmocka_unit_test(rails_pair_where_both_machines_have_as_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
