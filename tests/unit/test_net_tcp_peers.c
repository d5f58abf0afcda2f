/* SPDX-License-Identifier: Apache-2.0 */
/* TCP's other ends that are not as they should be: strangers spoil nothing, a deaf or dead peer is named, and what
 * cannot be is refused with its reason. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/wire/tcp/tcp.h"
#include "net_tcp_cases.h"

static int connect_to(const struct sockaddr_storage *to)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (const struct sockaddr *)to, sizeof(struct sockaddr_in)), 0);
    return fd;
}

#define STRANGERS 300
static int strangers[STRANGERS];

/* Some are silent, some say half, some all but the token, one number after the other; some go. */
static int address_with_strangers(struct wire_link *l, void *address, size_t *len)
{
    struct wire *w = l->worker->wire;
    int err = wire_tcp.address(l, address, len);
    bool come = !world_rank(w->world) && l->index + 1 == w->n_links;

    for (unsigned i = 0; i < STRANGERS && come && !err; i++) {
        struct tcp_hello hello = {0};
        bytes_put32(hello.from, 1);
        bytes_put32(hello.number, i % 5);
        strangers[i] = connect_to(&tcp_of(w)->rails[0].address);
        size_t n = i % 4 == 0 ? 0 : i % 4 == 1 ? 20 : sizeof(hello);
        assert_int_equal(send(strangers[i], &hello, n, MSG_NOSIGNAL), n);
        if (i % 7 == 0)
            shutdown(strangers[i], SHUT_RDWR);
    }
    return err;
}

static void strangers_spoil_nothing(void **state)
{
    struct net_point p = net_pair_point("tcp", 3);
    struct wire_ops ops = wire_tcp;
    struct net_pair pair;
    char byte;

    (void)state;
    ops.address = address_with_strangers;
    assert_string_equal((net_pair_open(&pair, &ops, &p, NULL, NULL), net_pair_error(&pair)), "");
    stream_and_check(&pair);
    for (unsigned i = 0; i < STRANGERS; i++) { /* all were turned away, none got an answer */
        assert_true(recv(strangers[i], &byte, 1, 0) <= 0);
        close(strangers[i]);
    }
    net_pair_close(&pair);
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

static void a_token_is_good_for_its_number_only(void **state)
{
    struct net_point p = net_pair_point("tcp", 2);
    struct wire_ops ops = wire_tcp;
    struct net_pair pair;

    (void)state;
    ops.join = join_after_others;
    assert_string_equal((net_pair_open(&pair, &ops, &p, NULL, NULL), net_pair_error(&pair)), "");
    stream_and_check(&pair);
    net_pair_close(&pair);
}

static int false_listener;

/* The leader is led to somebody who answers, but not with the token. */
static int join_false_listener(struct wire *w, const void *const *addresses, const size_t *lens)
{
    uint8_t hello[sizeof(struct tcp_hello)], answer[CHANNEL_TOKEN_BYTES] = {0};
    struct tcp_address theirs;
    const void *to = &theirs;
    socklen_t address_len = sizeof(theirs.address);

    if (world_rank(w->world)) { /* who leads */
        memcpy(&theirs, addresses[0], sizeof(theirs));
        getsockname(false_listener, (struct sockaddr *)&theirs.address, &address_len);
        return wire_tcp.join(w, &to, lens);
    }
    int fd = accept(false_listener, NULL, NULL);
    assert_int_equal(recv(fd, hello, sizeof(hello), MSG_WAITALL), sizeof(hello));
    assert_int_equal(send(fd, answer, sizeof(answer), MSG_NOSIGNAL), sizeof(answer));
    close(fd);
    return 0;
}

static void a_stranger_that_answers_is_found(void **state)
{
    struct net_point p = net_pair_point("tcp", 1);
    struct wire_ops ops = wire_tcp;
    struct net_pair pair;
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    (void)state;
    false_listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(false_listener, (struct sockaddr *)&any, sizeof(any)), 0);
    assert_int_equal(listen(false_listener, 1), 0);
    ops.join = join_false_listener;
    assert_int_equal(net_pair_open(&pair, &ops, &p, NULL, NULL), -EPROTO);
    assert_non_null(strstr(net_pair_error(&pair), "stranger"));
    close(false_listener);
    net_pair_close(&pair);
}

static int join_without_connecting(struct wire *w, const void *const *addresses, const size_t *lens)
{
    if (world_rank(w->world)) /* who leads */
        return 0;
    tcp_of(w)->wait_ns = 200000000;
    return wire_tcp.join(w, addresses, lens);
}

static void a_leader_that_does_not_connect_is_named(void **state)
{
    struct net_point p = net_pair_point("tcp", 2);
    struct wire_ops ops = wire_tcp;
    struct net_pair pair;

    (void)state;
    ops.join = join_without_connecting;
    assert_int_equal(net_pair_open(&pair, &ops, &p, NULL, NULL), -ETIMEDOUT);
    assert_non_null(strstr(net_pair_error(&pair), "the leader has not connected to 127.0.0.1"));
    net_pair_close(&pair);
}

static void open_impatient(struct net_pair *pair, const struct net_point *p)
{
    assert_int_equal(net_pair_open(pair, &wire_tcp, p, NULL, NULL), 0);
    for (int i = 0; i < NET_PAIR_ENDS; i++)
        pair->ends[i].still_ns = 400000000;
}

static void a_peer_that_hangs_is_named(void **state)
{
    uint64_t bytes[NET_DIRECTIONS];

    (void)state;
    for (uint32_t mode = WIRE_TCP_BLOCKING; mode <= WIRE_TCP_EPOLL; mode++) {
        struct net_point p = net_pair_point("tcp", 1);
        struct net_pair pair;
        p.tcp.mode = mode;
        open_impatient(&pair, &p);
        pair.deaf = true;
        assert_int_equal(net_pair_stream(&pair, 30000, bytes), -ETIMEDOUT);
        assert_non_null(strstr(net_pair_error(&pair), "the peer for 0.4 s"));
        net_pair_close(&pair);
    }
}

static void a_ping_that_nobody_answers_ends(void **state)
{
    (void)state;
    for (uint32_t spin = 0; spin < 2; spin++) {
        struct net_point p = net_pair_point("tcp", 1);
        struct net_pair pair;
        uint64_t ns;
        p.stream[NET_FORWARD] = 0;
        p.ping = 1;
        p.tcp.spin = spin;
        open_impatient(&pair, &p);
        struct net_end *leader = &pair.ends[NET_PAIR_LEADER];
        assert_int_equal(net_ping(leader, false, &ns), -ETIMEDOUT);
        net_pair_close(&pair);
    }
}

static void a_peer_that_closes_is_named(void **state)
{
    uint64_t bytes[NET_DIRECTIONS];

    (void)state;
    for (uint32_t mode = WIRE_TCP_BLOCKING; mode <= WIRE_TCP_EPOLL; mode++)
        for (int end = 0; end < NET_PAIR_ENDS; end++) {
            struct net_point p = net_pair_point("tcp", 2);
            struct net_pair pair;
            p.tcp.mode = mode;
            assert_int_equal(net_pair_open(&pair, &wire_tcp, &p, NULL, NULL), 0);
            net_pair_begin(&pair);
            shutdown(tcp_at(&pair, end, 1)->fd, SHUT_RDWR);
            for (int i = 0; i < 3000 && !pair.ends[0].error_code && !pair.ends[1].error_code; i++)
                usleep(10000);
            assert_int_equal(net_pair_end(&pair, bytes), -ECONNRESET);
            assert_non_null(
                strstr(net_pair_error(&pair), "is gone: its connection over 'lo' ended"));
            net_pair_close(&pair);
        }
}

static void refused(const struct net_point *p, const struct net_local *local, int err,
                    const char *text)
{
    struct net_pair pair;

    assert_int_equal(net_pair_open(&pair, &wire_tcp, p, local, local), err);
    if (!strstr(net_pair_error(&pair), text))
        fail_msg("'%s' is not in: %s", text, net_pair_error(&pair));
    net_pair_close(&pair);
}

static void what_cannot_be_is_refused(void **state)
{
    struct net_point plain = net_pair_point("tcp", 2), p = plain;
    struct net_local unknown = on("nosuch0"), foreign = on("192.0.2.1");
    char available[128] = "";

    (void)state;
    FILE *f = fopen("/proc/sys/net/ipv4/tcp_available_congestion_control", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%127s", available), 1);
    fclose(f);
    snprintf(p.tcp.congestion, sizeof(p.tcp.congestion), "nosuchcc");
    refused(&p, NULL, -EOPNOTSUPP, "'nosuchcc'");
    refused(&p, NULL, -EOPNOTSUPP, available);
    p = plain;
    p.tcp.segment_bytes = 40;
    refused(&p, NULL, -EOPNOTSUPP, "the kernel refuses segments of 40 bytes");
    p.tcp.segment_bytes = 30000;
    p.tcp.buffer_bytes = 4096; /* a segment is half of the peer's window at most */
    refused(&p, NULL, -EOPNOTSUPP, "segments of 30000 bytes were asked for");
    p = plain;
    p.threads = 1;
    refused(&p, NULL, -EOPNOTSUPP, "2 threads for 2 connections");
    p = plain;
    p.message_bytes = (uint64_t)1 << 50;
    refused(&p, NULL, -EOPNOTSUPP, "MiB of memory");
    refused(&plain, &unknown, -EINVAL, "no network interface 'nosuch0'");
    refused(&plain, &foreign, -EINVAL, "'192.0.2.1' is no address of this machine");
}

static void a_port_in_use_is_told(void **state)
{
    struct net_point p = net_pair_point("tcp", 1);
    struct sockaddr_in taken = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(taken);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)state;
    assert_int_equal(bind(fd, (struct sockaddr *)&taken, sizeof(taken)), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&taken, &len), 0);
    p.tcp.data_port = ntohs(taken.sin_port);
    refused(&p, NULL, -EADDRINUSE, "cannot listen for data on 127.0.0.1 port");
    close(fd);
}

/* Returns when bytes are on their way. */
static void wait_for_bytes(struct net_pair *pair)
{
    char byte;

    while (recv(tcp_at(pair, NET_PAIR_PEER, 0)->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 1)
        usleep(1000);
}

static void giving_up_ends_a_sender_that_waits(void **state)
{
    (void)state;
    for (uint32_t mode = WIRE_TCP_BLOCKING; mode <= WIRE_TCP_EPOLL; mode++) {
        struct net_point p = net_pair_point("tcp", 1);
        struct net_pair pair;
        uint64_t bytes[NET_DIRECTIONS];
        p.tcp.mode = mode;
        p.message_bytes = 64 * MiB;
        assert_int_equal(net_pair_open(&pair, &wire_tcp, &p, NULL, NULL), 0);
        pair.deaf = true; /* a message that will never be through */
        net_pair_begin(&pair);
        wait_for_bytes(&pair);
        usleep(100000);
        uint64_t start_ns = clock_now_ns();
        atomic_store(&pair.ends[NET_PAIR_LEADER].give_up, true);
        assert_int_equal(net_pair_end(&pair, bytes), 0); /* not an error of this end */
        assert_true(clock_now_ns() - start_ns < WIRE_STILL_NS / 2);
        net_pair_close(&pair);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(strangers_spoil_nothing),
        TEST(a_token_is_good_for_its_number_only),
        TEST(a_stranger_that_answers_is_found),
        TEST(a_leader_that_does_not_connect_is_named),
        TEST(a_peer_that_hangs_is_named),
        TEST(a_ping_that_nobody_answers_ends),
        TEST(a_peer_that_closes_is_named),
        TEST(what_cannot_be_is_refused),
        TEST(a_port_in_use_is_told),
        TEST(giving_up_ends_a_sender_that_waits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
