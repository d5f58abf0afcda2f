/* SPDX-License-Identifier: Apache-2.0 */
/* RDMA between two ends in one process, over the first active port there is; scripts/lab-rdma has one for every
 * machine. Without one the tests are skipped, but for what can be told without. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/hw/nic.h"
#include "core/wire/wire.h"
#include "net_pair.h"
#include "net_pair_channel.h"

static const char *const verb_names[] = {"write", "write-imm", "read", "send"};

static struct net_point rdma_point(enum rdma_verb verb, unsigned connections)
{
    struct net_point p = net_pair_point("rdma", connections);

    p.rdma.verb = verb;
    p.rdma.depth = 64;
    return p;
}

struct found {
    char name[64], absent[256];
};

static void find(void *arg, const struct backend *b)
{
    struct found *f = arg;

    if (b->state == BACKEND_PRESENT && !f->name[0])
        snprintf(f->name, sizeof(f->name), "%s", b->name);
    if (!f->absent[0])
        snprintf(f->absent, sizeof(f->absent), "%s: %s", b->name, b->why ? b->why : b->what);
}

/* The first active port; skips the test where there is none. */
static struct found need_port(void)
{
    struct found f = {.name = ""};

    wire_rdma.backends(find, &f);
    if (!f.name[0]) {
        print_message("no RDMA port here: %s\n", f.absent);
        skip();
    }
    return f;
}

static bool is_iwarp(void)
{
    return getenv("PLUMB_TEST_IWARP") != NULL;
}

/* iWARP has no immediate data. */
static bool cannot(const struct net_point *p)
{
    return is_iwarp() && p->rdma.verb == RDMA_WRITE_IMM;
}

static bool all_moved(const struct net_pair *pair)
{
    for (int d = 0; d < NET_DIRECTIONS; d++)
        for (unsigned i = 0; i < pair->point.connections && pair->point.stream[d]; i++) {
            const struct net_end *from = &pair->ends[d],
                                 *to = &pair->ends[!d]; /* as the enums go */
            if (!atomic_load(&from->counts[i].sent) && !atomic_load(&to->counts[i].received))
                return false;
        }
    return true;
}

/* Streams until each connection has moved something: a busy machine may start a thread late. */
static int stream(struct net_pair *pair, uint64_t *bytes)
{
    uint64_t end_ns = clock_now_ns() + 30000000000u;

    net_pair_begin(pair);
    while (!all_moved(pair) && !pair->ends[0].error[0] && !pair->ends[1].error[0] &&
           clock_now_ns() < end_ns)
        usleep(5000);
    usleep(20000);
    return net_pair_end(pair, bytes);
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
        err = stream(&pair, bytes);
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

static void test_absent_says_why(void **state)
{
    struct net_point p = rdma_point(RDMA_WRITE, 1);
    struct net_pair pair;

    (void)state;
    const char *was = getenv("PLUMB_RDMA_MODULE");
    char *kept = was ? strdup(was) : NULL;
    setenv("PLUMB_RDMA_MODULE", "/nowhere/plumb-rdma.so", 1);
    assert_int_equal(net_pair_open(&pair, &wire_rdma, &p, NULL, NULL), -EOPNOTSUPP);
    assert_non_null(strstr(net_pair_error(&pair), "/nowhere/plumb-rdma.so"));
    assert_non_null(strstr(net_pair_error(&pair), "PLUMB_RDMA_MODULE"));
    if (kept)
        setenv("PLUMB_RDMA_MODULE", kept, 1);
    else
        unsetenv("PLUMB_RDMA_MODULE");
    free(kept);
    net_pair_close(&pair);
}

static void test_no_device_says_what_to_do(void **state)
{
    struct net_point p = rdma_point(RDMA_WRITE, 1);
    struct net_pair pair;
    struct found f = {.name = ""};

    (void)state;
    wire_rdma.backends(find, &f);
    if (f.name[0])
        skip();
    int err = net_pair_open(&pair, &wire_rdma, &p, NULL, NULL);
    assert_true(err == -ENODEV || err == -EOPNOTSUPP);
    assert_true(strstr(net_pair_error(&pair), "rdma link add") ||
                strstr(net_pair_error(&pair), "libibverbs"));
    net_pair_close(&pair);
}

static void test_verbs(void **state)
{
    static const uint64_t sizes[] = {1, 8, 220, 221, 4097, 65536, 1048576};

    (void)state;
    need_port();
    for (int verb = RDMA_WRITE; verb <= RDMA_SEND; verb++)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
            struct net_point p = rdma_point((enum rdma_verb)verb, 1);
            p.message_bytes = p.ping_bytes = sizes[i];
            p.ping = 1;
            run_point(&p);
        }
}

static void test_both_ways_many_connections(void **state)
{
    (void)state;
    need_port();
    for (int verb = RDMA_WRITE; verb <= RDMA_SEND; verb++) {
        struct net_point p = rdma_point((enum rdma_verb)verb, 5);
        p.stream[NET_REVERSE] = 1;
        p.threads = 2;
        p.message_bytes = 10000;
        p.ping = 1;
        run_point(&p);
        p.stream[NET_FORWARD] = 0;
        p.threads = 1;
        run_point(&p);
    }
}

/* Longer than a port's largest message (8 MiB of soft RoCE): pieces. */
static void test_pieces(void **state)
{
    (void)state;
    need_port();
    for (int verb = RDMA_WRITE; verb <= RDMA_SEND; verb++) {
        struct net_point p = rdma_point((enum rdma_verb)verb, 1);
        p.message_bytes = (17u << 20) + 5;
        p.ping_bytes = (9u << 20) + 1;
        p.ping = verb != RDMA_READ;
        p.threads = 1;
        run_point(&p);
    }
}

static void test_events(void **state)
{
    (void)state;
    need_port();
    for (int verb = RDMA_WRITE; verb <= RDMA_SEND; verb++) {
        struct net_point p = rdma_point((enum rdma_verb)verb, 2);
        p.rdma.events = 1;
        p.ping = 1;
        run_point(&p);
    }
}

static void test_signals_and_depths(void **state)
{
    static const struct {
        uint32_t depth, signal_every;
        int32_t inline_bytes;
    } cases[] = {{1, 0, 0}, {7, 3, -1}, {64, 64, 16}, {3, 100, -1}, {300, 0, 0}};

    (void)state;
    need_port();
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct net_point p = rdma_point(RDMA_SEND, 2);
        p.rdma.depth = cases[i].depth;
        p.rdma.signal_every = cases[i].signal_every;
        p.rdma.inline_bytes = cases[i].inline_bytes;
        p.message_bytes = 16;
        run_point(&p);
        p.rdma.verb = RDMA_WRITE;
        run_point(&p);
    }
}

/* Where few are signalled, or posted at once, there are receives for as many. */
static void test_deep_queues(void **state)
{
    static const uint32_t cases[][2] = {{1024, 1000}, {4096, 0}}; /* depth, signal_every */

    (void)state;
    need_port();
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct net_point p = rdma_point(RDMA_SEND, 1);
        p.rdma.depth = cases[i][0];
        p.rdma.signal_every = cases[i][1];
        p.message_bytes = 16;
        run_point(&p);
    }
}

static void test_connection_manager(void **state)
{
    (void)state;
    need_port();
    for (int verb = RDMA_WRITE; verb <= RDMA_SEND; verb++) {
        struct net_point p = rdma_point((enum rdma_verb)verb, 3);
        p.rdma.connect = WIRE_CONNECT_CM;
        p.stream[NET_REVERSE] = 1;
        p.ping = 1;
        run_point(&p);
    }
}

static void test_ping_alone(void **state)
{
    (void)state;
    need_port();
    for (int verb = RDMA_WRITE; verb <= RDMA_SEND; verb++) {
        struct net_point p = rdma_point((enum rdma_verb)verb, 0);
        p.stream[NET_FORWARD] = 0;
        p.ping = 1;
        p.ping_bytes = 8;
        run_point(&p);
    }
}

/* They come out of bursts, more than one, one by one: no time is told twice, and none that did not pass. A burst is of 1024
 * pings or of 20 ms: of a slow device few make many. */
static void test_many_pings(void **state)
{
    enum { FEW = 50, MANY = 1500, SLOW_NS = 500000 };

    (void)state;
    need_port();
    for (int verb = RDMA_WRITE; verb <= RDMA_SEND; verb++) {
        struct net_point p = rdma_point((enum rdma_verb)verb, 0);
        struct net_pair pair;
        uint64_t ns[MANY], sum_ns = 0;
        p.stream[NET_FORWARD] = 0;
        p.ping = 1;
        p.ping_bytes = 8;
        if (cannot(&p))
            continue;
        assert_int_equal(net_pair_open(&pair, &wire_rdma, &p, NULL, NULL), 0);
        assert_int_equal(net_pair_ping(&pair, FEW, ns), 0);
        uint64_t quickest_ns = ns[0];
        for (size_t i = 1; i < FEW; i++)
            quickest_ns = ns[i] < quickest_ns ? ns[i] : quickest_ns;
        size_t n = quickest_ns < SLOW_NS ? MANY : 6 * FEW;
        uint64_t start_ns = clock_now_ns();
        assert_int_equal(net_pair_ping(&pair, n, ns), 0);
        uint64_t wall_ns = clock_now_ns() - start_ns;
        for (size_t i = 0; i < n; i++) {
            assert_true(ns[i] > 0);
            sum_ns += ns[i];
        }
        assert_true(sum_ns <= wall_ns);
        assert_int_equal(net_pair_check(&pair), 0);
        net_pair_close(&pair);
    }
}

static uint64_t sent(const struct net_pair *pair)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < pair->point.connections; i++)
        n += atomic_load(&pair->ends[NET_PAIR_LEADER].counts[i].sent);
    return n;
}

/* All connections of a port together have 32 MiB under way, or two messages each, not as much each: a stream that is
 * told to stop stops. (Twice that: what completed just then may be followed once.) */
static void test_little_is_under_way(void **state)
{
    struct net_point p = rdma_point(RDMA_WRITE, 32);
    struct net_pair pair;
    uint64_t bytes[NET_DIRECTIONS];

    (void)state;
    need_port();
    p.threads = 1;
    p.message_bytes = 1 << 20;
    assert_int_equal(net_pair_open(&pair, &wire_rdma, &p, NULL, NULL), 0);
    net_pair_begin(&pair);
    while (!all_moved(&pair) && !pair.ends[0].error[0] && !pair.ends[1].error[0])
        usleep(5000);
    uint64_t before = sent(&pair);
    assert_int_equal(net_pair_end(&pair, bytes), 0);
    assert_in_range(sent(&pair) - before, 0, 2 * 2 * 32);
    net_pair_close(&pair);
}

static void test_a_read_is_whole(void **state)
{
    struct wire_options o = {.rdma = {.verb = RDMA_READ}};

    (void)state;
    assert_int_equal(wire_traits_of(&wire_rdma, &o).acts, WIRE_IN);
    o.rdma.verb = RDMA_SEND;
    assert_int_equal(wire_traits_of(&wire_rdma, &o).acts, WIRE_BOTH);
}

/* Opens with what is refused; the text must name `what`. */
static void refused(const struct net_point *p, const struct net_local *local, int expected,
                    const char *what)
{
    struct net_pair pair;
    int err = net_pair_open(&pair, &wire_rdma, p, local, local);

    if (err != expected || !strstr(net_pair_error(&pair), what))
        fail_msg("expected %d with '%s', got %d: %s", expected, what, err, net_pair_error(&pair));
    net_pair_close(&pair);
}

static void test_refusals(void **state)
{
    struct found f = need_port();
    struct net_local local = {.node = NET_NODE_NEAR, .memory = "host"};
    struct net_point p = rdma_point(RDMA_WRITE, 1);

    (void)state;
    snprintf(local.devices, sizeof(local.devices), "nothing0");
    refused(&p, &local, -ENODEV, "there is no RDMA device 'nothing0'");
    snprintf(local.devices, sizeof(local.devices), "%.*s:9", (int)strcspn(f.name, ":"), f.name);
    refused(&p, &local, -EINVAL, "has no port 9");
    local.devices[0] = 0;
    snprintf(local.memory, sizeof(local.memory), "hbm");
    refused(&p, &local, -EINVAL, "'hbm' is not a place");
    if (is_iwarp()) {
        p.rdma.verb = RDMA_WRITE_IMM;
        refused(&p, NULL, -EOPNOTSUPP, "no write with immediate data");
        return;
    }
    p.rdma.gid_index = 200;
    refused(&p, NULL, -EINVAL, "has no GID 200; it has 0: RoCE");
    p.rdma.gid_index = -1;
    p.rdma.mtu = 1000;
    refused(&p, NULL, -EINVAL, "not 1000");
    p.rdma.mtu = 0;
    p.rdma.inline_bytes = 1000000;
    p.message_bytes = 500000;
    refused(&p, NULL, -EINVAL, "inline");
}

static void test_a_given_gid_and_mtu_are_shown(void **state)
{
    struct net_point p = rdma_point(RDMA_WRITE, 1);
    struct net_pair pair;

    (void)state;
    need_port();
    if (is_iwarp())
        skip();
    p.rdma.gid_index = 0;
    p.rdma.mtu = 512;
    assert_int_equal(net_pair_open(&pair, &wire_rdma, &p, NULL, NULL), 0);
    assert_non_null(strstr(pair.ends[0].rails[0].text, "GID 0 (RoCE v2"));
    assert_non_null(strstr(pair.ends[0].rails[0].text, "MTU 512"));
    assert_int_equal(pair.ends[0].rails[0].mtu_bytes, 512);
    net_pair_close(&pair);
}

/* By the one rule of all ports, which is the program's, not the module's. */
static void test_the_line(void **state)
{
    struct net_point p = rdma_point(RDMA_WRITE, 1);
    struct net_pair pair;
    struct nic_port np;
    char device[NIC_NAME];
    unsigned port;

    (void)state;
    need_port();
    assert_int_equal(net_pair_open(&pair, &wire_rdma, &p, NULL, NULL), 0);
    const struct nic_rail *r = &pair.ends[0].rails[0];
    assert_int_equal(nic_parse_port(NULL, r->name, device, &port), 0);
    assert_int_equal(nic_read_port(NULL, device, port, &np), 0);
    if (np.software) { /* both ends are on this machine */
        assert_non_null(strstr(r->line_source, "within this machine"));
        assert_true(r->line_gbps == 0);
    } else {
        assert_string_equal(r->line_source, np.line_source);
        assert_true(r->line_gbps == np.line_gbps);
    }
    net_pair_close(&pair);
}

static void test_memlock(void **state)
{
    struct net_point p = rdma_point(RDMA_WRITE, 1);
    struct net_pair pair;
    struct rlimit was, low = {1u << 20, 1u << 20};

    (void)state;
    need_port();
    p.message_bytes = 64u << 20;
    fflush(NULL);
    pid_t child = fork(); /* a limit that was lowered stays low, and root is above it: be nobody */
    if (!child) {
        getrlimit(RLIMIT_MEMLOCK, &was);
        int err = setrlimit(RLIMIT_MEMLOCK, &low) || setgid(65534) || setuid(65534);
        err = err ? 99 : net_pair_open(&pair, &wire_rdma, &p, NULL, NULL);
        if (err == -EACCES || err == -ENODEV)
            _exit(77); /* devices are not for everyone here */
        if (err == -ENOMEM && strstr(net_pair_error(&pair), "ulimit -l unlimited"))
            _exit(0);
        fprintf(stderr, "%d: %s\n", err, net_pair_error(&pair));
        _exit(1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
}

/* The peer's address with every key changed: the other end's memory must stay shut, and the error name it. */
static void test_a_wrong_key_opens_nothing(void **state)
{
    struct net_point p = rdma_point(RDMA_WRITE, 1);
    struct net_pair pair;
    static char addresses[2][NET_ADDRESS_MAX];
    size_t len[2];
    uint64_t bytes[NET_DIRECTIONS];

    (void)state;
    need_port();
    if (is_iwarp())
        skip();
    assert_int_equal(net_pair_prepare(&pair, &wire_rdma, &p, NULL, NULL), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(net_address(&pair.ends[i], addresses[i], &len[i]), 0);
    /* struct rdma_address, behind its length (16 bits): eight words, of which `reads` is the seventh, then in_key */
    addresses[1][2 + 7 * 4] ^= 0x55;
    assert_int_equal(net_join(&pair.ends[0], addresses[1], len[1]), 0);
    assert_int_equal(net_join(&pair.ends[1], addresses[0], len[0]), 0);
    assert_int_equal(net_pair_stream(&pair, 2000, bytes), -EACCES);
    assert_non_null(strstr(net_pair_error(&pair), "remote access error"));
    net_pair_close(&pair);
}

/* Addresses that are cut, longer, or of somebody else. */
static void test_damaged_addresses(void **state)
{
    struct net_point p = rdma_point(RDMA_WRITE, 2);
    static char address[NET_ADDRESS_MAX + 1];
    size_t len;

    (void)state;
    need_port();
    for (int i = 0; i < 4; i++) {
        struct net_pair pair;
        assert_int_equal(net_pair_prepare(&pair, &wire_rdma, &p, NULL, NULL), 0);
        assert_int_equal(net_address(&pair.ends[1], address, &len), 0);
        size_t given = i == 0 ? 0 : i == 1 ? len - 1 : i == 2 ? NET_ADDRESS_MAX : len;
        char own[NET_ADDRESS_MAX];
        size_t own_len;
        assert_int_equal(net_address(&pair.ends[0], own, &own_len), 0);
        if (i == 3)
            address[0] ^= 1; /* of another kind */
        assert_int_equal(net_join(&pair.ends[0], address, given), -EPROTO);
        net_pair_close(&pair);
    }
}

/* The data path's own compare: one byte changed at the receiver is found and named. */
static void test_wrong_data_is_found(void **state)
{
    struct net_point p = rdma_point(RDMA_WRITE, 1);
    struct net_pair pair;
    uint64_t bytes[NET_DIRECTIONS];

    (void)state;
    need_port();
    assert_int_equal(net_pair_open(&pair, &wire_rdma, &p, NULL, NULL), 0);
    assert_int_equal(net_pair_stream(&pair, 50, bytes), 0);
    pair.point.seed++; /* what is expected is something else now */
    assert_int_equal(net_pair_check(&pair), -EBADMSG);
    assert_non_null(strstr(net_pair_error(&pair), "wrong data on connection 0"));
    net_pair_close(&pair);
}

/* A peer that is closed in the middle of a stream, or one that stays, whose device still answers while nobody receives,
 * which is no progress: an error that names the connection. */
struct loss {
    struct net_pair pair;
    bool stays;
    uint64_t lost_ns, told_ns;
};

static void begin_loss(struct loss *l, enum rdma_verb verb, bool stays)
{
    struct net_point p = rdma_point(verb, stays ? 1 : 2);

    *l = (struct loss){.stays = stays};
    if (!stays)
        p.message_bytes = 1 << 20;
    assert_int_equal(net_pair_open(&l->pair, &wire_rdma, &p, NULL, NULL), 0);
    /* No thread is in the end that goes. */
    l->pair.deaf = verb == RDMA_SEND || verb == RDMA_WRITE_IMM;
    l->lost_ns = clock_now_ns();
    net_pair_begin(&l->pair);
    if (stays)
        return;
    usleep(100000);
    net_wire_close(&l->pair.ends[verb == RDMA_READ ? NET_PAIR_LEADER : NET_PAIR_PEER]);
    l->lost_ns = clock_now_ns();
}

static bool is_told(struct loss *l)
{
    bool told = l->pair.ends[NET_PAIR_LEADER].error[0] ||
                (!l->stays && l->pair.ends[NET_PAIR_PEER].error[0]);

    if (!l->told_ns && (told || clock_now_ns() - l->lost_ns > 20000000000u))
        l->told_ns = clock_now_ns();
    return l->told_ns != 0;
}

/* Within 10 s, and what a busy machine makes of them. */
static void end_loss(struct loss *l)
{
    uint64_t bytes[NET_DIRECTIONS], end_ns = clock_now_ns();
    int err = net_pair_end(&l->pair, bytes);
    const char *error = net_pair_error(&l->pair);
    uint64_t took_ns = l->told_ns - l->lost_ns + (clock_now_ns() - end_ns);

    print_message("%s, the peer %s: %d after %.1f s: %s\n", verb_names[l->pair.point.rdma.verb],
                  l->stays ? "stays" : "goes", err, (double)took_ns / 1e9, error);
    assert_true(err == -ETIMEDOUT ||
                (!l->stays && (err == -ECONNRESET || err == -EIO || err == -EACCES)));
    assert_non_null(strstr(error, l->stays ? "nothing moved on connection 0" : "connection "));
    assert_true(took_ns < 15000000000u);
    net_pair_close(&l->pair);
}

static void end_losses(struct loss *losses, size_t n)
{
    size_t told = 0;

    while (told < n) {
        usleep(10000);
        told = 0;
        for (size_t i = 0; i < n; i++)
            told += is_told(&losses[i]);
    }
    for (size_t i = 0; i < n; i++)
        end_loss(&losses[i]);
}

/* Side by side, as each may wait for 10 s; one after the other over soft iWARP, where opening queues meanwhile was seen to fail. */
static void test_a_peer_that_is_gone_or_never_receives(void **state)
{
    static struct loss losses[RDMA_SEND + 2];
    size_t n = 0;

    (void)state;
    need_port();
    for (int i = RDMA_WRITE; i <= RDMA_SEND + 1; i++) {
        bool stays = i > RDMA_SEND;
        if (is_iwarp() && i == RDMA_WRITE_IMM)
            continue;
        begin_loss(&losses[n++], stays ? RDMA_SEND : (enum rdma_verb)i, stays);
        if (is_iwarp()) {
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

static void test_a_receiver_that_is_late(void **state)
{
    (void)state;
    need_port();
    late_receiver(16, 0, 1, 64);
    late_receiver(5000, 1, 3, 64);
    late_receiver(65536, 0, 1, 8); /* each by itself: every credit is used */
}

static void test_facts(void **state)
{
    struct net_point p = rdma_point(RDMA_WRITE, 1);
    struct wire_fact facts[WIRE_FACTS_MAX];
    struct net_pair pair;

    (void)state;
    need_port();
    if (is_iwarp())
        skip();
    assert_int_equal(net_pair_open(&pair, &wire_rdma, &p, NULL, NULL), 0);
    size_t n = net_facts(&pair.ends[0], facts);
    assert_true(n <= WIRE_FACTS_MAX);
    for (size_t i = 0; i < n; i++)
        assert_true(facts[i].metric[0] && facts[i].value >= 0);
    net_pair_close(&pair);
}

/* Many times over nothing is left behind: queue pairs, registrations, files. */
static void test_nothing_is_left(void **state)
{
    struct net_point p = rdma_point(RDMA_SEND, 8);
    int files = 0;

    (void)state;
    need_port();
    for (int i = 0; i < 6; i++) {
        p.rdma.events = (uint32_t)i & 1;
        p.rdma.connect = i / 2 % 2 ? WIRE_CONNECT_CM : WIRE_CONNECT_EXCHANGE;
        run_point(&p);
        int now = dup(0);
        assert_true(!i || now <= files + 4); /* RDMA CM keeps some of its own */
        files = i ? files : now;
        close(now);
    }
}

/* PLUMB_TEST_LINK: an interface under the port, of a lab. Down in the middle: an error within 10 s. */
static void test_a_link_that_goes_down(void **state)
{
    const char *link = getenv("PLUMB_TEST_LINK");
    struct net_point p = rdma_point(RDMA_WRITE, 1);
    struct net_pair pair;
    uint64_t bytes[NET_DIRECTIONS];
    char command[128];

    (void)state;
    need_port();
    if (!link)
        skip();
    assert_int_equal(net_pair_open(&pair, &wire_rdma, &p, NULL, NULL), 0);
    net_pair_begin(&pair);
    usleep(200000);
    snprintf(command, sizeof(command), "ip link set %.32s down", link);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): ip is a command */
    uint64_t start_ns = clock_now_ns();
    while (!pair.ends[0].error[0] && clock_now_ns() - start_ns < 11000000000u)
        usleep(10000);
    int err = net_pair_end(&pair, bytes);
    snprintf(command, sizeof(command), "ip link set %.32s up", link);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): ip is a command */
    print_message("link down: %d after %.1f s: %s\n", err,
                  (double)(clock_now_ns() - start_ns) / 1e9, net_pair_error(&pair));
    assert_true(err == -ENETDOWN || err == -ETIMEDOUT);
    net_pair_close(&pair);
}

/* A message of 1 GiB takes 8.6 s at 1 Gbit/s, and counts when all of it is there. */
static void test_a_large_message_takes_its_time(void **state)
{
    struct net_point p = {.connections = 2, .message_bytes = 1 << 30};
    struct net_end rdma = {.ops = &wire_rdma, .point = &p}, tcp = {.ops = &wire_tcp, .point = &p};

    (void)state;
    assert_true(net_still_ns(&rdma) > WIRE_STILL_NS + 2 * 8600000000u);
    assert_int_equal(net_still_ns(&tcp), WIRE_STILL_NS);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_absent_says_why),
        cmocka_unit_test(test_no_device_says_what_to_do),
        cmocka_unit_test(test_a_read_is_whole),
        cmocka_unit_test(test_a_large_message_takes_its_time),
        cmocka_unit_test(test_verbs),
        cmocka_unit_test(test_both_ways_many_connections),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_signals_and_depths),
        cmocka_unit_test(test_deep_queues),
        cmocka_unit_test(test_connection_manager),
        cmocka_unit_test(test_ping_alone),
        cmocka_unit_test(test_many_pings),
        cmocka_unit_test(test_little_is_under_way),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_a_given_gid_and_mtu_are_shown),
        cmocka_unit_test(test_the_line),
        cmocka_unit_test(test_memlock),
        cmocka_unit_test(test_a_wrong_key_opens_nothing),
        cmocka_unit_test(test_damaged_addresses),
        cmocka_unit_test(test_wrong_data_is_found),
        cmocka_unit_test(test_a_peer_that_is_gone_or_never_receives),
        cmocka_unit_test(test_a_receiver_that_is_late),
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_nothing_is_left),
        cmocka_unit_test(test_a_link_that_goes_down),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
