/* SPDX-License-Identifier: Apache-2.0 */
/* What is TCP's own of the benchmark `net`: its modes, what a rail says of itself, who is let in, and what is refused. */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "core/wire/wires.h"
#include "net_tcp_cases.h"
#include "tests/unit/unit.h"

/* Also with more connections than threads, which epoll serves. */
TEST_WITH(epoll_serves_many_connections, note_files, count_files)
{
    static const uint64_t sizes[] = {1, 2 * MiB + 1};

    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
        struct net_point p = net_pair_point("tcp", 8);
        struct net_pair pair;
        p.stream[NET_REVERSE] = 1;
        p.tcp.mode = WIRE_TCP_EPOLL;
        p.threads = 2;
        p.message_bytes = sizes[s];
        net_pair_open(&pair, &wire_tcp, &p, NULL, NULL);
        assert_string_equal(net_pair_error(&pair), "");
        stream_and_check(&pair);
        net_pair_close(&pair);
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

TEST_WITH(sends_without_a_copy_are_accounted_for, note_files, count_files)
{
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

TEST_WITH(rails_say_what_carries, note_files, count_files)
{
    struct net_point p = net_pair_point("tcp", 4);
    struct net_local two = on("127.0.0.1+lo");
    struct net_pair pair;

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

TEST_WITH(six_works_too, note_files, count_files)
{
    struct net_point p = net_pair_point("tcp", 1);
    struct net_local local = on("::1");
    struct net_pair pair;

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

static int connect_to(const struct sockaddr_storage *to)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (const struct sockaddr *)to, sizeof(struct sockaddr_in)), 0);
    return fd;
}

static void turned_away(const struct sockaddr_storage *to, const struct tcp_hello *hello)
{
    uint8_t answer[CHANNEL_TOKEN_BYTES];
    int fd = connect_to(to);

    assert_int_equal(send(fd, hello, sizeof(*hello), MSG_NOSIGNAL), sizeof(*hello));
    assert_true(recv(fd, answer, sizeof(answer), 0) <= 0);
    close(fd);
}

/* Another number's token; the right one of a number that is not wanted. */
static int join_after_others(struct wire *w, const void *const *addresses, const size_t *lens)
{
    struct tcp_address theirs;
    struct tcp_hello swapped, beyond;

    if (!world_rank(w->world)) /* the peer */
        return wire_tcp.join(w, addresses, lens);
    memcpy(&theirs, addresses[0], sizeof(theirs));
    bytes_put32(swapped.from, 1);
    bytes_put32(beyond.from, 1);
    bytes_put32(swapped.number, 0);
    bytes_put32(beyond.number, 2);
    tcp_token(w, "hello", theirs.nonce, 1, 0, 1, swapped.token);
    tcp_token(w, "hello", theirs.nonce, 1, 0, 2, beyond.token);
    turned_away(&theirs.address, &swapped);
    turned_away(&theirs.address, &beyond);
    return wire_tcp.join(w, addresses, lens);
}

TEST_WITH(a_token_is_good_for_its_number_only, note_files, count_files)
{
    struct net_point p = net_pair_point("tcp", 2);
    struct wire_ops ops = wire_tcp;
    struct net_pair pair;

    ops.join = join_after_others;
    assert_string_equal((net_pair_open(&pair, &ops, &p, NULL, NULL), net_pair_error(&pair)), "");
    stream_and_check(&pair);
    net_pair_close(&pair);
}

/* One of two connections, while the peer lives. */
TEST_WITH(a_connection_that_closes_is_named, note_files, count_files)
{
    uint64_t bytes[NET_DIRECTIONS];

    for (uint32_t mode = WIRE_TCP_BLOCKING; mode <= WIRE_TCP_EPOLL; mode++)
        for (int end = 0; end < NET_PAIR_ENDS; end++) {
            struct net_point p = net_pair_point("tcp", 2);
            struct net_pair pair;
            p.tcp.mode = mode;
            assert_int_equal(net_pair_open(&pair, &wire_tcp, &p, NULL, NULL), 0);
            net_pair_begin(&pair);
            shutdown(tcp_at(&pair, end, 1)->fd, SHUT_RDWR);
            for (int i = 0; i < 6000 && !pair.ends[0].error_code && !pair.ends[1].error_code; i++)
                usleep(10000);
            assert_int_equal(net_pair_end(&pair, bytes), -ECONNRESET);
            assert_says(net_pair_error(&pair), "'lo'");
            net_pair_close(&pair);
        }
}

/* What was asked for and cannot be had: its name or number is in the reason. */
static void refused(const struct net_point *p, const char *device, int err, const char *text)
{
    struct net_local local = on(device);
    struct net_pair pair;

    assert_int_equal(net_pair_open(&pair, &wire_tcp, p, &local, &local), err);
    assert_says(net_pair_error(&pair), text);
    net_pair_close(&pair);
}

TEST_WITH(what_cannot_be_is_refused, note_files, count_files)
{
    struct net_point plain = net_pair_point("tcp", 2), p = plain;
    struct sockaddr_in taken = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(taken);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(p.tcp.congestion, sizeof(p.tcp.congestion), "nosuchcc");
    refused(&p, "", -EOPNOTSUPP, "'nosuchcc'");
    p = plain;
    p.tcp.segment_bytes = 40;
    refused(&p, "", -EOPNOTSUPP, "40 bytes");
    p.tcp.segment_bytes = 30000;
    p.tcp.buffer_bytes = 4096; /* a segment is half of the peer's window at most */
    refused(&p, "", -EOPNOTSUPP, "30000 bytes");
    p = plain;
    p.threads = 1;
    refused(&p, "", -EOPNOTSUPP, "2 connections");
    p = plain;
    p.message_bytes = (uint64_t)1 << 50;
    refused(&p, "", -EOPNOTSUPP, "MiB");
    refused(&plain, "nosuch0", -EINVAL, "'nosuch0'");
    refused(&plain, "192.0.2.1", -EINVAL, "'192.0.2.1'");
    p = plain;
    assert_int_equal(bind(fd, (struct sockaddr *)&taken, sizeof(taken)), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&taken, &len), 0);
    p.tcp.data_port = ntohs(taken.sin_port);
    refused(&p, "", -EADDRINUSE, "127.0.0.1");
    close(fd);
}

/* In the middle of a message that will never be through; it is no error of this end. */
TEST_WITH(giving_up_ends_a_sender_that_waits, note_files, count_files)
{
    for (uint32_t mode = WIRE_TCP_BLOCKING; mode <= WIRE_TCP_EPOLL; mode++) {
        struct net_point p = net_pair_point("tcp", 1);
        struct net_pair pair;
        uint64_t bytes[NET_DIRECTIONS];
        char byte;
        p.tcp.mode = mode;
        p.message_bytes = 64 * MiB;
        assert_int_equal(net_pair_open(&pair, &wire_tcp, &p, NULL, NULL), 0);
        pair.ends[NET_PAIR_LEADER].still_ns = 60000000000u;
        pair.deaf = true;
        net_pair_begin(&pair);
        while (recv(tcp_at(&pair, NET_PAIR_PEER, 0)->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 1)
            usleep(1000);
        uint64_t start_ns = clock_now_ns();
        atomic_store(&pair.ends[NET_PAIR_LEADER].give_up, true);
        assert_int_equal(net_pair_end(&pair, bytes), 0);
        assert_true(clock_now_ns() - start_ns < 60000000000u);
        net_pair_close(&pair);
    }
}
