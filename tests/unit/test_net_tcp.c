/* SPDX-License-Identifier: Apache-2.0 */
/* Messages over TCP, both ends in this process over loopback: what arrives is what was sent, in every mode, and what
 * a rail says of itself is so. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/wire/wires.h"
#include "net_tcp_cases.h"

static void run_point(const struct net_point *p)
{
    struct net_pair pair;

    net_pair_open(&pair, &wire_tcp, p, NULL, NULL);
    assert_string_equal(net_pair_error(&pair), "");
    stream_and_check(&pair);
    net_pair_close(&pair);
}

static void every_size_in_every_direction(void **state)
{
    static const uint64_t sizes[] = {1, 100, 65536, 1000003, 16 * MiB};
    static const uint8_t directions[][NET_DIRECTIONS] = {{1, 0}, {0, 1}, {1, 1}};

    (void)state;
    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++)
        for (size_t d = 0; d < 3; d++) {
            struct net_point p = net_pair_point("tcp", 2);
            memcpy(p.stream, directions[d], sizeof(p.stream));
            p.message_bytes = sizes[s];
            run_point(&p);
        }
}

static void epoll_serves_many_connections(void **state)
{
    static const uint64_t sizes[] = {1, 65536, 2 * MiB + 1};

    (void)state;
    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
        struct net_point p = net_pair_point("tcp", 8);
        p.stream[NET_REVERSE] = 1;
        p.tcp.mode = WIRE_TCP_EPOLL;
        p.threads = 2;
        p.message_bytes = sizes[s];
        run_point(&p);
    }
}

static double fact(struct net_end *e, const char *metric)
{
    struct wire_fact facts[WIRE_FACTS_MAX];
    size_t n = net_facts(e, facts);

    for (size_t i = 0; i < n; i++)
        if (!strcmp(facts[i].metric, metric))
            return facts[i].value;
    return -1;
}

static void sends_without_a_copy_are_accounted_for(void **state)
{
    (void)state;
    for (uint32_t mode = WIRE_TCP_BLOCKING; mode <= WIRE_TCP_EPOLL; mode++) {
        struct net_point p = net_pair_point("tcp", 2);
        struct net_pair pair;
        p.stream[NET_REVERSE] = 1;
        p.tcp.mode = mode;
        p.tcp.zerocopy = 1;
        p.message_bytes = MiB;
        assert_int_equal(net_pair_open(&pair, &wire_tcp, &p, NULL, NULL), 0);
        stream_and_check(&pair);
        for (int i = 0; i < NET_PAIR_ENDS; i++) {
            struct tcp_zerocopy *z = &tcp_at(&pair, i, 0)->zerocopy;
            assert_true(z->sent > 0);
            assert_int_equal(z->sent, z->done);
            /* The kernel hands nobody's pages to a receiver of the same machine. */
            assert_true(fact(&pair.ends[i], "zerocopy_copied") == 100);
        }
        net_pair_close(&pair);
    }
}

static void ping_at(uint64_t bytes, uint32_t spin, uint32_t mode)
{
    struct net_point p = net_pair_point("tcp", 1);
    struct net_pair pair;
    uint64_t ns[20];

    p.stream[NET_FORWARD] = 0;
    p.ping = 1;
    p.ping_bytes = bytes;
    p.tcp.spin = spin;
    p.tcp.mode = mode;
    assert_int_equal(net_pair_open(&pair, &wire_tcp, &p, NULL, NULL), 0);
    assert_int_equal(net_pair_ping(&pair, 20, ns), 0);
    for (int i = 0; i < 20; i++)
        assert_true(ns[i] > 0);
    for (int i = 0; i < NET_PAIR_ENDS; i++)
        assert_int_equal(pair.ends[i].counts[1].received, 20);
    assert_int_equal(net_pair_check(&pair), 0);
    net_pair_close(&pair);
}

static void pings_go_there_and_back(void **state)
{
    static const uint64_t sizes[] = {1, 64, 65536, 4 * MiB + 3};

    (void)state;
    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
        ping_at(sizes[s], 0, WIRE_TCP_BLOCKING);
        ping_at(sizes[s], 1, WIRE_TCP_BLOCKING);
        ping_at(sizes[s], 1, WIRE_TCP_EPOLL);
    }
}

static void pings_go_while_a_stream_runs(void **state)
{
    struct net_point p = net_pair_point("tcp", 1);
    struct net_pair pair;
    uint64_t ns[10], bytes[NET_DIRECTIONS];

    (void)state;
    p.ping = 1;
    assert_int_equal(net_pair_open(&pair, &wire_tcp, &p, NULL, NULL), 0);
    assert_int_equal(net_pair_begin(&pair), 0);
    assert_int_equal(net_pair_ping(&pair, 10, ns), 0);
    assert_int_equal(net_pair_end(&pair, bytes), 0);
    stream_and_check(&pair);
    assert_int_equal(pair.ends[NET_PAIR_PEER].counts[1].received, 10);
    net_pair_close(&pair);
}

static void a_byte_that_changed_is_found(void **state)
{
    static const uint64_t sizes[] = {100, 65536, 3 * MiB};
    uint64_t bytes[NET_DIRECTIONS];

    (void)state;
    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
        struct net_point p = net_pair_point("tcp", 2);
        struct net_pair pair;
        p.message_bytes = sizes[s];
        assert_int_equal(net_pair_open(&pair, &wire_tcp, &p, NULL, NULL), 0);
        assert_int_equal(net_pair_some(&pair, bytes), 0);
        net_connection(&pair.ends[NET_PAIR_PEER], 1)->in[sizes[s] - 1] ^= 1;
        assert_int_equal(net_pair_check(&pair), -EBADMSG);
        assert_non_null(strstr(net_pair_error(&pair), "the last message"));
        assert_non_null(strstr(net_pair_error(&pair), "connection 1"));
        net_pair_close(&pair);
    }
}

static void a_fresh_message_that_differs_is_found(void **state)
{
    struct net_point p = net_pair_point("tcp", 1);
    struct net_pair pair;

    (void)state;
    assert_int_equal(net_pair_open(&pair, &wire_tcp, &p, NULL, NULL), 0);
    p.seed++; /* the peer expects something else */
    pair.ends[NET_PAIR_PEER].point = &p;
    assert_int_equal(net_pair_check(&pair), -EBADMSG);
    assert_non_null(strstr(net_pair_error(&pair), "a fresh message"));
    net_pair_close(&pair);
}

/* A check leaves other bytes in the buffers; a further stream sends its own. */
static void a_stream_after_a_check_is_right(void **state)
{
    struct net_point p = net_pair_point("tcp", 1);
    struct net_pair pair;

    (void)state;
    p.message_bytes = 1000;
    assert_int_equal(net_pair_open(&pair, &wire_tcp, &p, NULL, NULL), 0);
    stream_and_check(&pair);
    stream_and_check(&pair);
    net_pair_close(&pair);
}

static void rails_say_what_carries(void **state)
{
    struct net_point p = net_pair_point("tcp", 4);
    struct net_local two = on("127.0.0.1+lo");
    struct net_pair pair;

    (void)state;
    snprintf(p.tcp.congestion, sizeof(p.tcp.congestion), "reno");
    p.tcp.buffer_bytes = (uint64_t)1 << 30;
    assert_int_equal(net_pair_open(&pair, &wire_tcp, &p, &two, NULL), 0);
    struct net_end *leader = &pair.ends[NET_PAIR_LEADER], *peer = &pair.ends[NET_PAIR_PEER];
    assert_int_equal(leader->n_rails, 2);
    assert_int_equal(peer->n_rails, 1);
    stream_and_check(&pair);
    assert_true(fact(leader, "rtt") > 0);
    assert_true(fact(leader, "cwnd") > 0);
    assert_true(fact(leader, "retransmits") >= 0);
    assert_true(fact(peer, "retransmits") < 0); /* it sends nothing */
    for (unsigned i = 0; i < 2; i++) {
        assert_string_equal(leader->rails[i].name, "lo");
        assert_false(leader->rails[i].ipv6);
        assert_int_equal(strncmp(leader->rails[i].text, "reno, MSS ", 10), 0);
        assert_non_null(strstr(leader->rails[i].text, "of 1048576 asked"));
        assert_true(leader->rails[i].mtu_bytes > 1000);
        assert_true(leader->rails[i].segment_bytes > 500);
        assert_true(leader->rails[i].segment_bytes < leader->rails[i].mtu_bytes);
    }
    net_pair_close(&pair);
}

/* What was asked for has TCP's options in it, which Linux sends where the peer does: 12 bytes of timestamps. */
static void segments_are_as_long_as_asked_for(void **state)
{
    struct net_point p = net_pair_point("tcp", 1);
    const struct wire_load load = {.message_bytes = p.message_bytes};
    struct net_pair pair;
    char source[200];

    (void)state;
    p.tcp.segment_bytes = 1360;
    assert_int_equal(net_pair_open(&pair, &wire_tcp, &p, NULL, NULL), 0);
    stream_and_check(&pair);
    for (int i = 0; i < NET_PAIR_ENDS; i++) {
        struct nic_rail r = pair.ends[i].rails[0];
        assert_true(r.segment_bytes == 1348 || r.segment_bytes == 1360);
        assert_non_null(strstr(r.text, r.segment_bytes == 1348 ? "MSS 1348" : "MSS 1360"));
        /* Frame, IPv4, TCP, timestamps: the limit is of these segments, not of those that the MTU would hold. */
        r.line_gbps = 8;
        assert_float_equal(wire_limit_gbps(&r, "tcp", &load, source, sizeof(source)),
                           r.segment_bytes / (r.segment_bytes + 38.0 + 20 + 20 + 12), 1e-6);
        assert_non_null(strstr(source, " bytes a segment"));
    }
    net_pair_close(&pair);
}

static void six_works_too(void **state)
{
    struct net_point p = net_pair_point("tcp", 1);
    struct net_local local = on("::1");
    struct net_pair pair;

    (void)state;
    int err = net_pair_open(&pair, &wire_tcp, &p, &local, &local);
    if (!err) {
        stream_and_check(&pair);
        assert_true(pair.ends[NET_PAIR_LEADER].rails[0].ipv6);
        assert_true(pair.ends[NET_PAIR_PEER].rails[0].ipv6);
    } else {
        assert_int_equal(err, -ENODEV); /* a machine without IPv6 */
    }
    net_pair_close(&pair);
}

/* A thread that sleeps in the kernel has time left; one that was told to spin there has none, whatever the link does. */
static void who_polls_says_so(void **state)
{
    struct wire_options o = {.tcp = {.mode = WIRE_TCP_BLOCKING}};

    (void)state;
    assert_false(wire_traits_of(&wire_tcp, &o).busy);
    o.tcp.busy_poll_us = 50;
    assert_true(wire_traits_of(&wire_tcp, &o).busy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_size_in_every_direction),     TEST(who_polls_says_so),
        TEST(epoll_serves_many_connections),     TEST(sends_without_a_copy_are_accounted_for),
        TEST(pings_go_there_and_back),           TEST(pings_go_while_a_stream_runs),
        TEST(a_byte_that_changed_is_found),      TEST(a_fresh_message_that_differs_is_found),
        TEST(a_stream_after_a_check_is_right),   TEST(rails_say_what_carries),
        TEST(segments_are_as_long_as_asked_for), TEST(six_works_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
