/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both ends of a transport in one process: opened, connected, made to stream, ping and check, each
 * end's calls in a thread of its own, with a channel over a socket pair between them. Works with any
 * struct wire_ops; what two processes and a real channel do is for the tests of the engine.
 *
 *   struct net_pair pair;
 *   assert_int_equal(net_pair_open(&pair, &wire_tcp, &point, NULL, NULL), 0);
 *   net_pair_stream(&pair, 50, bytes);
 *   net_pair_check(&pair);
 *   net_pair_close(&pair);
 *
 * Each call returns 0 or the error of the end that failed first; net_pair_error() is its text.
 */
#ifndef PLUMB_TESTS_UNIT_NET_PAIR_H
#define PLUMB_TESTS_UNIT_NET_PAIR_H

#include "benches/net/end.h"
#include "core/wire/wire.h"

enum { NET_PAIR_LEADER, NET_PAIR_PEER, NET_PAIR_ENDS };

struct net_pair {
    struct net_end ends[NET_PAIR_ENDS];
    struct net_point point;
    struct net_local locals[NET_PAIR_ENDS];
    struct topo *topo;
    struct channel *channels[NET_PAIR_ENDS];
    uint64_t stream_ns; /* of the last stream: from its start to its last arrival */
    bool deaf;          /* set it before a stream: nobody receives, as if the peer hung */
};

/* A point of `connections` connections and as many threads, 64 KiB messages, forward only. */
struct net_point net_pair_point(const char *transport, unsigned connections);

/* As of a process and its child. 0 or -errno. */
int net_pair_channels(struct channel *channels[NET_PAIR_ENDS]);

/* Opens both ends, exchanges addresses and joins them. A local that is NULL asks for nothing. On an error
 * call net_pair_close() all the same. */
int net_pair_open(struct net_pair *pair, const struct wire_ops *ops, const struct net_point *point,
                  const struct net_local *leader, const struct net_local *peer);
/* The same in two steps, for what a test does before the ends join. */
int net_pair_prepare(struct net_pair *pair, const struct wire_ops *ops,
                     const struct net_point *point, const struct net_local *leader,
                     const struct net_local *peer);
int net_pair_join(struct net_pair *pair);

/* Streams for `ms`, or until an end fails, and drains. bytes[NET_DIRECTIONS]: what has been counted as arrived. */
int net_pair_stream(struct net_pair *pair, unsigned ms, uint64_t *bytes);
/* Streams until each connection has passed a message in each direction, however slow the machine. */
int net_pair_some(struct net_pair *pair, uint64_t *bytes);
/* A stream in two steps, for what a test does while it runs. */
int net_pair_begin(struct net_pair *pair);
int net_pair_end(struct net_pair *pair, uint64_t *bytes);

/* n messages there and back, the time of each into ns[n]. */
int net_pair_ping(struct net_pair *pair, size_t n, uint64_t *ns);
int net_pair_check(struct net_pair *pair);
void net_pair_close(struct net_pair *pair);

const char *net_pair_error(const struct net_pair *pair); /* "": none */

#endif
