/* SPDX-License-Identifier: Apache-2.0 */
/* The benchmark `net` over each wire that needs no device: what arrives is what was sent, and a peer that hangs is named. */
#include "benches/net/lead.h"
#include "benches/net/mover.h"
#include "core/hw/rail.h"
#include "net_tcp_cases.h"
#include "tests/unit/unit.h"
#include "wire_fixture.h"

static const struct wire_ops *wires[WIRES_MAX];
static unsigned n_wires;

static void open_over(struct net_pair *pair, const struct wire_ops *ops, const struct net_point *p)
{
    assert_string_equal((net_pair_open(pair, ops, p, NULL, NULL), net_pair_error(pair)), "");
}

/* What arrives is what was sent, and counted. */
TEST_WITH(every_size_in_every_direction, note_files, count_files)
{
    static const struct {
        uint64_t bytes;
        uint8_t stream[NET_DIRECTIONS];
    } cases[] = {{1, {1, 1}}, {100, {1, 0}}, {65536, {0, 1}}, {1000003, {1, 1}}, {3 * MiB, {1, 0}}};

    for (unsigned i = 0; i < n_wires; i++)
        for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
            struct net_point p = net_pair_point(wires[i]->name, 2);
            struct net_pair pair;
            memcpy(p.stream, cases[k].stream, sizeof(p.stream));
            p.message_bytes = cases[k].bytes;
            open_over(&pair, wires[i], &p);
            stream_and_check(&pair);
            stream_and_check(&pair); /* a check leaves other bytes in the buffers */
            net_pair_close(&pair);
        }
}

static void ping(const struct wire_ops *ops, const struct net_point *p)
{
    struct net_pair pair;
    uint64_t ns[5], bytes[NET_DIRECTIONS];
    bool streams = p->stream[NET_FORWARD];

    open_over(&pair, ops, p);
    if (streams)
        assert_int_equal(net_pair_begin(&pair), 0);
    assert_string_equal((net_pair_ping(&pair, 5, ns), net_pair_error(&pair)), "");
    if (streams)
        assert_int_equal(net_pair_end(&pair, bytes), 0);
    for (int i = 0; i < 5; i++)
        assert_true(ns[i] > 0);
    for (int i = 0; i < NET_PAIR_ENDS; i++)
        assert_int_equal(pair.ends[i].counts[p->connections].received, 5);
    assert_string_equal((net_pair_check(&pair), net_pair_error(&pair)), "");
    net_pair_close(&pair);
}

/* Alone, of each size and by each way to wait; and beside a stream. */
TEST_WITH(pings_go_there_and_back, note_files, count_files)
{
    static const uint64_t sizes[] = {1, 65536, 2 * MiB + 1};

    for (unsigned i = 0; i < n_wires; i++) {
        struct net_point p = net_pair_point(wires[i]->name, 1);
        p.ping = 1;
        ping(wires[i], &p);
        p.stream[NET_FORWARD] = 0;
        for (int way = 0; way < (wires[i] == &wire_tcp ? 3 : 1); way++)
            for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
                p.ping_bytes = sizes[s];
                p.tcp.spin = way > 0;
                p.tcp.mode = way == 2 ? WIRE_TCP_EPOLL : WIRE_TCP_BLOCKING;
                ping(wires[i], &p);
            }
    }
}

/* One byte that changed in the last message, and a fresh one that is not what was expected. */
TEST_WITH(wrong_data_are_found, note_files, count_files)
{
    static const uint64_t sizes[] = {100, 3 * MiB};
    uint64_t bytes[NET_DIRECTIONS];

    for (unsigned i = 0; i < n_wires; i++)
        for (size_t s = 0; s < 3; s++) {
            struct net_point p = net_pair_point(wires[i]->name, 2);
            struct net_pair pair;
            p.message_bytes = sizes[s % 2];
            open_over(&pair, wires[i], &p);
            if (s < 2) {
                assert_int_equal(net_pair_some(&pair, bytes), 0);
                net_connection(&pair.ends[NET_PAIR_PEER], 1)->in[sizes[s] - 1] ^= 1;
            } else {
                p.seed++;
                pair.ends[NET_PAIR_PEER].point = &p;
            }
            assert_int_equal(net_pair_check(&pair), -EBADMSG);
            assert_non_null(strstr(net_pair_error(&pair), s < 2 ? "connection 1" : "fresh"));
            net_pair_close(&pair);
        }
}

static void hang(const struct wire_ops *ops, uint32_t mode, bool pings)
{
    struct net_point p = net_pair_point(ops->name, 1);
    struct net_pair pair;
    uint64_t bytes[NET_DIRECTIONS], ns;

    p.ping = pings;
    p.stream[NET_FORWARD] = !pings;
    p.tcp.mode = mode;
    open_over(&pair, ops, &p);
    struct net_end *leader = &pair.ends[NET_PAIR_LEADER];
    leader->still_ns = 300000000;
    pair.deaf = true;
    assert_int_equal(pings ? net_ping(leader, false, &ns) : net_pair_stream(&pair, 30000, bytes),
                     -ETIMEDOUT);
    assert_non_null(strstr(net_pair_error(&pair), "0.3 s"));
    net_pair_close(&pair);
}

TEST_WITH(a_peer_that_hangs_is_named, note_files, count_files)
{
    for (int pings = 0; pings < 2; pings++) {
        hang(&wire_shm, WIRE_TCP_BLOCKING, pings);
        hang(&wire_tcp, WIRE_TCP_BLOCKING, pings);
    }
    hang(&wire_tcp, WIRE_TCP_EPOLL, false);
}

static bool no_sign_of_life(struct channel *c, uint64_t for_ns, char *text, size_t len)
{
    (void)c, (void)for_ns;
    snprintf(text, len, "no sign of life");
    return true;
}

/* Long before the wait for a message ends. */
TEST_WITH(a_peer_that_is_silent_is_named_by_that, note_files, count_files)
{
    for (int pings = 0; pings < 2; pings++) {
        struct net_point p = net_pair_point("tcp", 1);
        struct net_pair pair;
        uint64_t bytes[NET_DIRECTIONS], ns;
        p.ping = pings;
        p.stream[NET_FORWARD] = !pings;
        open_over(&pair, &wire_tcp, &p);
        struct net_end *leader = &pair.ends[NET_PAIR_LEADER];
        const struct channel_ops *real = channel_base(leader->channel)->ops;
        struct channel_ops ops = *real;
        ops.unheard = no_sign_of_life;
        channel_base(leader->channel)->ops = &ops;
        leader->still_ns = 60000000000u;
        pair.deaf = true;
        assert_int_equal(pings ? net_ping(leader, false, &ns)
                               : net_pair_stream(&pair, 30000, bytes),
                         -EHOSTUNREACH);
        assert_string_equal(net_pair_error(&pair), "no sign of life");
        channel_base(leader->channel)->ops = real;
        net_pair_close(&pair);
    }
}

/* Of options, a wire that has no word on them takes none; who was told to spin in the kernel is busy. */
TEST_WITH(a_wire_has_traits_without_a_word, note_files, count_files)
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
    struct wire_options o = {.tcp = {.mode = WIRE_TCP_BLOCKING}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct wire_ops ops = {.name = "toy", .ways = cases[i].ways};
        struct wire_traits t = wire_traits_of(&ops, &all);
        assert_int_equal(t.way, cases[i].way);
        assert_int_equal(t.probe_way, cases[i].way);
        assert_int_equal(t.busy, cases[i].way == WIRE_POLL);
        assert_int_equal(t.acts, WIRE_BOTH);
    }
    assert_false(wire_traits_of(&wire_tcp, &o).busy);
    o.tcp.busy_poll_us = 50;
    assert_true(wire_traits_of(&wire_tcp, &o).busy);
}

/* Rail 3 of eight GPUs is not rail 3 of seven, nor of eight others; unequal machines, and what is not known, tell nothing. */
TEST_WITH(rails_pair_where_both_machines_have_as_many, note_files, count_files)
{
    static const struct {
        unsigned of, paired_seat, paired_seats, seat, seats;
        int paired, err;
    } cases[] = {
        {8, 0, 0, 0, 0, NET_PAIRED_GPU, 0},
        {7, 0, 0, 0, 0, NET_PAIRED_GPU, -ENODEV},
        {8, 4, 8, 5, 8, NET_PAIRED_GPU, -ENODEV},
        {8, 5, 8, 5, 8, NET_PAIRED_GPU, 0},
        {8, 0, 8, 5, 8, NET_PAIRED_GPU, 0},
        {8, 4, 9, 5, 8, NET_PAIRED_GPU, 0},
        {8, 4, 8, 0, 8, NET_PAIRED_GPU, 0},
        {7, 4, 8, 0, 8, NET_PAIRED_BARE, -ENODEV},
        {0, 0, 0, 5, 8, 0 /* this is the leader */, 0},
    };
    char error[256];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct rail rail = {
            .gpu = 3, .of = 8, .way = "PIX", .seat = cases[i].seat, .seats = cases[i].seats};
        struct net_local local = {.rail = 4};
        local.paired = cases[i].paired;
        local.paired_of = cases[i].of;
        local.paired_seat = cases[i].paired_seat;
        local.paired_seats = cases[i].paired_seats;
        int err = net_rail_paired(&local, &rail, error, sizeof(error));
        if (err != cases[i].err)
            fail_msg("case %zu: %d", i, err);
    }
}

static int serve(struct channel *c, void *arg)
{
    static const struct net_service service = {0};

    (void)arg;
    return net_serve(c, (void *)(uintptr_t)&service);
}

/* Watching the idle machine is long: signs of life come meanwhile, and nothing else does. */
TEST_WITH(a_peer_that_is_at_work_gives_signs_of_life, note_files, count_files)
{
    struct net_hello hello = {.machine = "another one", .idle_ns = 1500000000u};
    struct channel *c = NULL;
    static char in[CHANNEL_FRAME_MAX];
    unsigned heard = 0;
    uint16_t type;
    size_t len;
    int err;

    assert_int_equal(channel_fork(&c, serve, NULL), 0);
    channel_base(c)->ops->expect(c, BEAT_LED_NS);
    assert_int_equal(channel_send(c, NET_ASK_HELLO, &hello, sizeof(hello)), 0);
    do {
        uint64_t quiet_ns = channel_base(c)->ops->quiet_ns(c);
        err = channel_recv(c, &type, in, sizeof(in), &len, 100000000u);
        heard += err == -ETIMEDOUT && channel_base(c)->ops->quiet_ns(c) < quiet_ns;
    } while (err == -ETIMEDOUT);
    assert_int_equal(err, 0);
    assert_int_equal(type, NET_ASK_HELLO | TALK_REPLY);
    assert_int_equal(((struct talk_head *)(void *)in)->err, 0);
    assert_int_equal(len, sizeof(struct talk_head) + sizeof(hello));
    assert_in_range(heard, 1, 10);
    channel_send(c, TALK_BYE, NULL, 0);
    channel_close(c);
}

static int find_wires(void **state)
{
    (void)state;
    n_wires = wire_fixture_wires(wires);
    return 0;
}
TESTS_WITH(find_wires, NULL);
