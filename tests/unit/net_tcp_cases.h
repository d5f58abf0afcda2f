/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of messages over TCP share. */
#ifndef PLUMB_TESTS_UNIT_NET_TCP_CASES_H
#define PLUMB_TESTS_UNIT_NET_TCP_CASES_H

#include <dirent.h>

#include "core/wire/tcp/tcp.h"
#include "net_pair.h"
#include "tests/unit/unit.h"

static inline struct tcp_link *tcp_at(struct net_pair *pair, int end, unsigned connection)
{
    return tcp_link_of(&pair->ends[end].wire->links[connection]);
}

#define MiB ((uint64_t)1 << 20)

/* No test leaves a file open. */
static inline long open_files(void)
{
    DIR *d = opendir("/proc/self/fd");
    long n = 0;

    while (d && readdir(d))
        n++;
    closedir(d);
    return n;
}

static inline int note_files(void **state)
{
    *state = (void *)open_files();
    return 0;
}

static inline int count_files(void **state)
{
    return open_files() == (long)*state ? 0 : -1;
}

static inline struct net_local on(const char *devices)
{
    struct net_local local = {.node = NET_NODE_NEAR, .memory = "host"};

    snprintf(local.devices, sizeof(local.devices), "%s", devices);
    return local;
}

static inline uint64_t received_at(const struct net_pair *pair, int end)
{
    uint64_t messages = 0;

    for (unsigned i = 0; i < pair->point.connections; i++)
        messages += pair->ends[end].counts[i].received;
    return messages;
}

/* All that was sent has been received, counted and is right. */
static inline void stream_and_check(struct net_pair *pair)
{
    const struct net_point *p = &pair->point;
    uint64_t bytes[NET_DIRECTIONS],
        before[NET_PAIR_ENDS] = {received_at(pair, 0), received_at(pair, 1)};

    assert_string_equal((net_pair_some(pair, bytes), net_pair_error(pair)), "");
    for (int d = 0; d < NET_DIRECTIONS; d++) {
        struct net_end *from = &pair->ends[d == NET_FORWARD ? NET_PAIR_LEADER : NET_PAIR_PEER];
        struct net_end *to = &pair->ends[d == NET_FORWARD ? NET_PAIR_PEER : NET_PAIR_LEADER];
        int end = (int)(to - pair->ends);
        for (unsigned i = 0; i < p->connections; i++) {
            assert_int_equal(from->counts[i].sent, to->counts[i].received);
            assert_true(!p->stream[d] || to->counts[i].received);
        }
        assert_int_equal(bytes[d], (received_at(pair, end) - before[end]) * p->message_bytes);
    }
    assert_string_equal((net_pair_check(pair), net_pair_error(pair)), "");
}

#endif
