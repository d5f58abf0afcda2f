/* SPDX-License-Identifier: Apache-2.0 */
/* Messages through shared memory, both ends in this process, each with its own mapping: what arrives is what was
 * sent, and what cannot be is refused with its reason. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/wire/shm.h"
#include "net_pair.h"

#define MiB ((uint64_t)1 << 20)

static void right(struct net_pair *pair)
{
    const struct net_point *p = &pair->point;
    uint64_t bytes[NET_DIRECTIONS];

    assert_string_equal((net_pair_some(pair, bytes), net_pair_error(pair)), "");
    for (int d = 0; d < NET_DIRECTIONS; d++) {
        struct net_end *from = &pair->ends[d == NET_FORWARD ? NET_PAIR_LEADER : NET_PAIR_PEER];
        struct net_end *to = &pair->ends[d == NET_FORWARD ? NET_PAIR_PEER : NET_PAIR_LEADER];
        uint64_t messages = 0;
        for (unsigned i = 0; i < p->connections; i++) {
            assert_int_equal(from->counts[i].sent, to->counts[i].received);
            messages += to->counts[i].received;
        }
        assert_int_equal(bytes[d], messages * p->message_bytes);
        assert_int_equal(p->stream[d], messages > 0);
    }
    assert_string_equal((net_pair_check(pair), net_pair_error(pair)), "");
}

static void every_size_in_every_direction(void **state)
{
    static const uint64_t sizes[] = {1, 100, 65536, 1000003, 16 * MiB};
    static const uint8_t directions[][NET_DIRECTIONS] = {{1, 0}, {0, 1}, {1, 1}};

    (void)state;
    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++)
        for (size_t d = 0; d < 3; d++) {
            struct net_point p = net_pair_point("shm", 3);
            struct net_pair pair;
            memcpy(p.stream, directions[d], sizeof(p.stream));
            p.message_bytes = sizes[s];
            p.threads = 2;
            assert_int_equal(net_pair_open(&pair, &wire_shm, &p, NULL, NULL), 0);
            right(&pair);
            net_pair_close(&pair);
        }
}

static void pings_go_there_and_back(void **state)
{
    static const uint64_t sizes[] = {1, 64, 65536, 9 * MiB + 1};
    uint64_t ns[20];

    (void)state;
    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
        struct net_point p = net_pair_point("shm", 1);
        struct net_pair pair;
        p.stream[NET_FORWARD] = 0;
        p.ping = 1;
        p.ping_bytes = sizes[s];
        assert_int_equal(net_pair_open(&pair, &wire_shm, &p, NULL, NULL), 0);
        assert_int_equal(net_pair_ping(&pair, 20, ns), 0);
        for (int i = 0; i < 20; i++)
            assert_true(ns[i] > 0);
        for (int i = 0; i < NET_PAIR_ENDS; i++)
            assert_int_equal(pair.ends[i].counts[1].received, 20);
        assert_int_equal(net_pair_check(&pair), 0);
        net_pair_close(&pair);
    }
}

static void pings_go_while_a_stream_runs(void **state)
{
    struct net_point p = net_pair_point("shm", 1);
    struct net_pair pair;
    uint64_t ns[10], bytes[NET_DIRECTIONS];

    (void)state;
    p.ping = 1;
    assert_int_equal(net_pair_open(&pair, &wire_shm, &p, NULL, NULL), 0);
    assert_int_equal(net_pair_begin(&pair), 0);
    assert_int_equal(net_pair_ping(&pair, 10, ns), 0);
    assert_int_equal(net_pair_end(&pair, bytes), 0);
    assert_int_equal(net_pair_check(&pair), 0);
    net_pair_close(&pair);
}

static void a_byte_that_changed_is_found(void **state)
{
    static const uint64_t sizes[] = {100, 65536, 3 * MiB};
    uint64_t bytes[NET_DIRECTIONS];

    (void)state;
    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
        struct net_point p = net_pair_point("shm", 2);
        struct net_pair pair;
        p.message_bytes = sizes[s];
        assert_int_equal(net_pair_open(&pair, &wire_shm, &p, NULL, NULL), 0);
        assert_int_equal(net_pair_some(&pair, bytes), 0);
        net_connection(&pair.ends[NET_PAIR_PEER], 1)->in[sizes[s] - 1] ^= 1;
        assert_int_equal(net_pair_check(&pair), -EBADMSG);
        assert_non_null(strstr(net_pair_error(&pair), "the last message"));
        net_pair_close(&pair);
    }
}

static void a_fresh_message_that_differs_is_found(void **state)
{
    struct net_point p = net_pair_point("shm", 1);
    struct net_pair pair;

    (void)state;
    assert_int_equal(net_pair_open(&pair, &wire_shm, &p, NULL, NULL), 0);
    p.seed++; /* the peer expects something else */
    pair.ends[NET_PAIR_PEER].point = &p;
    assert_int_equal(net_pair_check(&pair), -EBADMSG);
    assert_non_null(strstr(net_pair_error(&pair), "a fresh message"));
    net_pair_close(&pair);
}

static void a_peer_that_hangs_is_named(void **state)
{
    struct net_point p = net_pair_point("shm", 1);
    struct net_pair pair;
    uint64_t bytes[NET_DIRECTIONS], ns;

    (void)state;
    p.ping = 1;
    for (int ping = 0; ping < 2; ping++) {
        assert_int_equal(net_pair_open(&pair, &wire_shm, &p, NULL, NULL), 0);
        struct net_end *leader = &pair.ends[NET_PAIR_LEADER];
        leader->still_ns = 300000000;
        pair.deaf = true;
        if (ping)
            assert_int_equal(net_ping(leader, false, &ns), -ETIMEDOUT);
        else
            assert_int_equal(net_pair_stream(&pair, 30000, bytes), -ETIMEDOUT);
        assert_non_null(strstr(net_pair_error(&pair), "the peer for 0.3 s"));
        net_pair_close(&pair);
    }
}

static void another_machine_is_refused(void **state)
{
    struct net_point p = net_pair_point("shm", 1);
    struct net_local device = {.devices = "eth0", .node = NET_NODE_NEAR};
    struct net_pair pair;

    (void)state;
    assert_int_equal(net_pair_open(&pair, &wire_shm, &p, &device, NULL), -EOPNOTSUPP);
    assert_non_null(strstr(net_pair_error(&pair), "'eth0'"));
    net_pair_close(&pair);
    assert_int_equal(net_pair_prepare(&pair, &wire_shm, &p, NULL, NULL), 0);
    struct net_end *e = &pair.ends[NET_PAIR_PEER];
    net_wire_close(e);
    e->same_machine = false;
    assert_int_equal(net_wire_open(e), 0);
    assert_int_equal(net_pair_join(&pair), -EOPNOTSUPP);
    assert_non_null(strstr(net_pair_error(&pair), "one machine"));
    net_pair_close(&pair);
}

static void too_much_is_refused(void **state)
{
    struct net_point p = net_pair_point("shm", 1);
    struct net_pair pair;

    (void)state;
    p.message_bytes = (uint64_t)1 << 50;
    assert_int_equal(net_pair_open(&pair, &wire_shm, &p, NULL, NULL), -EOPNOTSUPP);
    assert_non_null(strstr(net_pair_error(&pair), "MiB of memory"));
    net_pair_close(&pair);
}

static int wrong_fd;

/* The leader's address leads to other memory, or to none. */
static int address_of_another(struct wire_link *l, void *address, size_t *len)
{
    int err = wire_shm.address(l, address, len);

    if (world_rank(l->worker->wire->world)) /* who leads; behind the process */
        memcpy((char *)address + sizeof(int32_t), &wrong_fd, sizeof(wrong_fd));
    return err;
}

static void join_wrong(int fd, int err, const char *text)
{
    struct net_point p = net_pair_point("shm", 1);
    struct wire_ops ops = wire_shm;
    struct net_pair pair;

    wrong_fd = fd;
    ops.address = address_of_another;
    assert_int_equal(net_pair_open(&pair, &ops, &p, NULL, NULL), err);
    if (!strstr(net_pair_error(&pair), text))
        fail_msg("'%s' is not in: %s", text, net_pair_error(&pair));
    net_pair_close(&pair);
}

static void another_process_memory_is_not_taken(void **state)
{
    int same_size = memfd_create("other", MFD_CLOEXEC),
        shorter = memfd_create("short", MFD_CLOEXEC);

    (void)state;
    assert_int_equal(
        ftruncate(same_size, WIRE_SHM_PAGE + (off_t)sizeof(struct wire_shm_ring) + (4 << 20)), 0);
    assert_int_equal(ftruncate(shorter, WIRE_SHM_PAGE), 0);
    join_wrong(9999, -EOPNOTSUPP, "cannot be opened");
    join_wrong(shorter, -EOPNOTSUPP, "is not its memory");
    join_wrong(same_size, -EPROTO, "is another's");
    close(same_size);
    close(shorter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size_in_every_direction),
        cmocka_unit_test(pings_go_there_and_back),
        cmocka_unit_test(pings_go_while_a_stream_runs),
        cmocka_unit_test(a_byte_that_changed_is_found),
        cmocka_unit_test(a_fresh_message_that_differs_is_found),
        cmocka_unit_test(a_peer_that_hangs_is_named),
        cmocka_unit_test(another_machine_is_refused),
        cmocka_unit_test(too_much_is_refused),
        cmocka_unit_test(another_process_memory_is_not_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
