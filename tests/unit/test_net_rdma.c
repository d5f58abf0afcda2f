/* SPDX-License-Identifier: Apache-2.0 */
/* RDMA between two ends in one process, over the first active port there is; scripts/lab-rdma has one for every
 * machine. Without one the tests are skipped, but for what can be told without. */
#include "core/wire/wire.h"
#include "net_pair.h"
#include "rdma_scene.h"
#include "tests/unit/unit.h"

static const char *const verb_names[] = {"write", "write-imm", "read", "send"};

static struct net_point rdma_point(enum rdma_verb verb, unsigned connections)
{
    struct net_point p = net_pair_point("rdma", connections);

    p.rdma.verb = verb;
    p.rdma.depth = 64;
    return p;
}

static bool is_iwarp(void)
{
    return getenv("PLUMB_TEST_IWARP") != NULL;
}

/* Of iWARP, too, which need_port() leaves out. */
static void need_any_port(void)
{
    if (have_port())
        return;
    print_message("no RDMA port here\n");
    skip();
}

/* iWARP has no immediate data. */
static bool cannot(const struct net_point *p)
{
    return is_iwarp() && p->rdma.verb == RDMA_WRITE_IMM;
}

/* Opens, streams, pings (a few times, where one takes long in emulation), checks. */
static void run_point(const struct net_point *p)
{
    struct net_pair pair;
    uint64_t bytes[NET_DIRECTIONS] = {0}, ns[20] = {0};
    if (cannot(p))
        return;
    size_t pings = p->ping_bytes > 65536 ? 2 : 20;

    int err = net_pair_open(&pair, &wire_rdma, p, NULL, NULL);
    if (!err && (p->stream[NET_FORWARD] || p->stream[NET_REVERSE]))
        err = net_pair_some(&pair, bytes);
    if (!err && p->ping)
        err = net_pair_ping(&pair, pings, ns);
    if (!err)
        err = net_pair_check(&pair);
    if (err)
        fail_msg("%s, %llu bytes, depth %u: %s (%d)", verb_names[p->rdma.verb],
                 (unsigned long long)p->message_bytes, p->rdma.depth, net_pair_error(&pair), err);
    for (int d = 0; d < NET_DIRECTIONS; d++) {
        if (p->stream[d])
            assert_true(p->message_bytes && bytes[d] >= p->message_bytes &&
                        bytes[d] % p->message_bytes == 0);
        for (unsigned i = 0; i < p->connections && p->stream[d]; i++) {
            int sender = d == NET_FORWARD ? NET_PAIR_LEADER : NET_PAIR_PEER;
            uint64_t sent = atomic_load(&pair.ends[sender].counts[i].sent);
            uint64_t received = atomic_load(&pair.ends[!sender].counts[i].received);
            assert_true(sent + received > 0);
            if (p->rdma.verb == RDMA_SEND || p->rdma.verb == RDMA_WRITE_IMM)
                assert_int_equal(sent, received);
        }
    }
    for (size_t i = 0; i < pings && p->ping; i++)
        assert_true(ns[i] > 0);
    net_pair_close(&pair);
}

/* Each verb: of any size, pinging alone, both ways over more connections than threads, and waiting for events; and longer than
 * a port's largest message (8 MiB of soft RoCE), in pieces, the last of which is short. */
TEST(test_verbs)
{
    static const uint64_t sizes[] = {1, 220, 221, 4097, 1048576};

    need_any_port();
    for (int verb = RDMA_WRITE; verb <= RDMA_SEND; verb++) {
        struct net_point p = rdma_point((enum rdma_verb)verb, 1);
        p.ping = 1;
        for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
            p.message_bytes = p.ping_bytes = sizes[i];
            run_point(&p);
        }
        p = rdma_point((enum rdma_verb)verb, 0);
        p.stream[NET_FORWARD] = 0;
        p.ping = 1;
        run_point(&p);
        p = rdma_point((enum rdma_verb)verb, 5);
        p.stream[NET_REVERSE] = p.ping = 1;
        p.threads = 2;
        p.message_bytes = 10000;
        for (p.rdma.events = 0; p.rdma.events < 2; p.rdma.events++)
            run_point(&p);
        p = rdma_point((enum rdma_verb)verb, 1);
        p.message_bytes = (17u << 20) + 5;
        p.ping_bytes = (9u << 20) + 1;
        p.ping = verb != RDMA_READ;
        run_point(&p);
    }
}

/* Also where few are signalled, or many posted at once, there are receives for as many. */
TEST(test_deep_queues)
{
    static const struct {
        uint32_t depth, signal_every;
        int32_t inline_bytes;
    } cases[] = {{1, 0, 0}, {7, 3, -1}, {64, 64, 16}, {3, 100, -1}, {1024, 1000, 0}, {4096, 0, 0}};

    need_any_port();
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct net_point p = rdma_point(RDMA_SEND, 1);
        p.rdma.depth = cases[i].depth;
        p.rdma.signal_every = cases[i].signal_every;
        p.rdma.inline_bytes = cases[i].inline_bytes;
        p.message_bytes = 16;
        run_point(&p);
    }
}

TEST(test_connection_manager)
{
    need_any_port();
    for (int verb = RDMA_WRITE; verb <= RDMA_SEND; verb++) {
        struct net_point p = rdma_point((enum rdma_verb)verb, 3);
        p.rdma.connect = WIRE_CONNECT_CM;
        p.stream[NET_REVERSE] = 1;
        p.ping = 1;
        run_point(&p);
    }
}

static uint64_t sent(const struct net_pair *pair)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < pair->point.connections; i++)
        n += atomic_load(&pair->ends[NET_PAIR_LEADER].counts[i].sent);
    return n;
}

TEST(test_a_read_is_whole)
{
    struct wire_options o = {.rdma = {.verb = RDMA_READ}};

    assert_int_equal(wire_traits_of(&wire_rdma, &o).acts, WIRE_IN);
    o.rdma.verb = RDMA_SEND;
    assert_int_equal(wire_traits_of(&wire_rdma, &o).acts, WIRE_BOTH);
}

/* The peer's address: cut, of another kind, or with another key: the other end's memory must stay shut. */
TEST(test_a_wrong_key_opens_nothing)
{
    struct net_point p = rdma_point(RDMA_WRITE, 1);
    static char addresses[2][NET_ADDRESS_MAX];
    struct net_pair pair;
    size_t len[2];
    uint64_t bytes[NET_DIRECTIONS];

    need_any_port();
    for (int what = 0; what < (is_iwarp() ? 4 : 5); what++) {
        assert_int_equal(net_pair_prepare(&pair, &wire_rdma, &p, NULL, NULL), 0);
        for (int i = 0; i < 2; i++)
            assert_int_equal(net_address(&pair.ends[i], addresses[i], &len[i]), 0);
        size_t given[] = {0, len[1] - 1, NET_ADDRESS_MAX, len[1], len[1]};
        if (what == 3)
            addresses[1][0] ^= 1;
        /* struct rdma_address, behind its length (16 bits): eight words, of which `reads` is the seventh, then in_key */
        if (what == 4)
            addresses[1][2 + 7 * 4] ^= 0x55;
        assert_int_equal(net_join(&pair.ends[0], addresses[1], given[what]),
                         what == 4 ? 0 : -EPROTO);
        if (what == 4) {
            assert_int_equal(net_join(&pair.ends[1], addresses[0], len[0]), 0);
            assert_int_equal(net_pair_stream(&pair, 2000, bytes), -EACCES);
        }
        net_pair_close(&pair);
    }
}

/* A peer that closes in the middle of a stream, or stays but never receives, which is no progress: the connection is named. */
struct loss {
    struct net_pair pair;
    bool stays;
};

static void begin_loss(struct loss *l, enum rdma_verb verb, bool stays)
{
    struct net_point p = rdma_point(verb, stays ? 1 : 2);
    uint64_t bytes[NET_DIRECTIONS];

    *l = (struct loss){.stays = stays};
    if (!stays)
        p.message_bytes = 1 << 20;
    assert_int_equal(net_pair_open(&l->pair, &wire_rdma, &p, NULL, NULL), 0);
    if (!stays)
        assert_int_equal(net_pair_some(&l->pair, bytes), 0);
    l->pair.deaf =
        verb == RDMA_SEND || verb == RDMA_WRITE_IMM; /* no thread is in the end that goes */
    net_pair_begin(&l->pair);
    usleep(100000);
    if (!stays)
        net_wire_close(&l->pair.ends[verb == RDMA_READ ? NET_PAIR_LEADER : NET_PAIR_PEER]);
}

static void end_losses(struct loss *losses, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct loss *l = &losses[i];
        struct net_end *ends = l->pair.ends;
        uint64_t bytes[NET_DIRECTIONS], end_ns = clock_now_ns() + 60000000000u;
        while (!ends[0].error[0] && (l->stays || !ends[1].error[0]) && clock_now_ns() < end_ns)
            usleep(10000);
        int err = net_pair_end(&l->pair, bytes);
        assert_true(err == -ETIMEDOUT ||
                    (!l->stays && (err == -ECONNRESET || err == -EIO || err == -EACCES)));
        assert_non_null(strstr(net_pair_error(&l->pair), "connection "));
        net_pair_close(&l->pair);
    }
}

TEST(test_a_peer_that_is_gone_or_never_receives)
{
    static struct loss losses[RDMA_SEND + 2];
    size_t n = 0;

    need_any_port();
    for (int i = RDMA_WRITE; i <= RDMA_SEND + 1; i++) {
        bool stays = i > RDMA_SEND;
        if (is_iwarp() && i == RDMA_WRITE_IMM)
            continue;
        begin_loss(&losses[n++], stays ? RDMA_SEND : (enum rdma_verb)i, stays);
        if (is_iwarp()) { /* where opening queues meanwhile was seen to fail */
            end_losses(losses, n);
            n = 0;
        }
    }
    end_losses(losses, n);
}

static void *receive(void *worker)
{
    struct net_worker *w = worker;

    net_work(w);
    return NULL;
}

/* The workers that a deaf pair did not start: net_pair_end() joins them. */
static void hear(struct net_pair *pair)
{
    for (int i = 0; i < NET_PAIR_ENDS; i++)
        for (unsigned k = 0; k < pair->ends[i].n_workers; k++) {
            struct net_worker *w = &pair->ends[i].workers[k];
            if (!w->started)
                w->started = !pthread_create(&w->thread, NULL, receive, w);
            assert_true(w->started);
        }
}

/* Until n more have been sent, or a minute is over. */
static void wait_sent(const struct net_pair *pair, uint64_t n)
{
    uint64_t end_ns = clock_now_ns() + 60000000000u;

    while (sent(pair) < n && !pair->ends[0].error[0] && !pair->ends[1].error[0] &&
           clock_now_ns() < end_ns)
        usleep(2000);
    if (sent(pair) < n)
        fail_msg("%llu of %llu sent: %s", (unsigned long long)sent(pair), (unsigned long long)n,
                 net_pair_error(pair));
}

/* Receives that are posted are taken, and no more: nothing fails, and when somebody receives at last all of it goes on. */
static void late_round(struct net_pair *pair)
{
    const struct net_point *p = &pair->point;
    uint64_t first = sent(pair), most = 4ull * p->rdma.depth * p->connections; /* receives */
    uint64_t moved[NET_DIRECTIONS];

    pair->deaf = true;
    net_pair_begin(pair);
    wait_sent(pair, first + 1);
    usleep(300000);
    assert_in_range(sent(pair) - first, 1, most);
    hear(pair);
    wait_sent(pair, first + 4 * most);
    if (net_pair_end(pair, moved) || net_pair_check(pair))
        fail_msg("%llu bytes: %s", (unsigned long long)p->message_bytes, net_pair_error(pair));
    assert_true(moved[NET_FORWARD] >= 4 * most * p->message_bytes);
    for (unsigned i = 0; i < p->connections; i++)
        for (int end = 0; end < NET_PAIR_ENDS; end++)
            assert_int_equal(atomic_load(&pair->ends[end].counts[i].sent),
                             atomic_load(&pair->ends[!end].counts[i].received));
}

/* Twice: what a check takes in between counts, too. */
static void late_receiver(uint64_t bytes, uint32_t events, unsigned connections, uint32_t depth)
{
    struct net_point p = rdma_point(RDMA_SEND, connections);
    struct net_pair pair;

    p.message_bytes = bytes;
    p.rdma.events = events;
    p.rdma.depth = depth;
    p.threads = 1;
    p.stream[NET_REVERSE] = 1;
    assert_int_equal(net_pair_open(&pair, &wire_rdma, &p, NULL, NULL), 0);
    late_round(&pair);
    late_round(&pair);
    net_pair_close(&pair);
}

TEST(test_a_receiver_that_is_late)
{
    need_any_port();
    late_receiver(16, 0, 1, 64);
    late_receiver(5000, 1, 3, 64);
    late_receiver(65536, 0, 1, 8); /* each by itself: every credit is used */
}

/* A message of 1 GiB takes 8.6 s at 1 Gbit/s, and counts when all of it is there. */
TEST(test_a_large_message_takes_its_time)
{
    struct net_point p = {.connections = 2, .message_bytes = 1 << 30};
    struct net_end rdma = {.ops = &wire_rdma, .point = &p}, tcp = {.ops = &wire_tcp, .point = &p};

    assert_true(net_still_ns(&rdma) > WIRE_STILL_NS + 2 * 8600000000u);
    assert_int_equal(net_still_ns(&tcp), WIRE_STILL_NS);
}
