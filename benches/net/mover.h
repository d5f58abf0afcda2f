/* SPDX-License-Identifier: Apache-2.0 */
/* For those that move an end's messages: connection.c, memory.c, stream.c, message.c. */
#ifndef PLUMB_BENCHES_NET_MOVER_H
#define PLUMB_BENCHES_NET_MOVER_H

#include "benches/net/end.h"

#define NET_TICK_NS 20000000u /* a wait comes back so often to look at flags */

/* Who sends and who receives on a connection are two threads: each has lines of its own. */
struct net_connection {
    _Alignas(64) struct wire_link *link;
    unsigned number; /* the ping's: point->connections */
    bool ping;
    size_t message_bytes, out_bytes, in_bytes; /* 0: this end does not send, receive on it */
    _Alignas(64) char *out;                    /* one message */
    bool out_ready;                            /* it has been filled */
    uint64_t out_seen, out_messages;           /* bytes and messages that have been counted */
    _Alignas(64) char *in;                     /* whole messages as they arrive */
    bool in_ready;                             /* it has been touched */
    uint64_t in_seen;                          /* bytes that have been counted */
    size_t in_held;                            /* of `in`, what has come since the last check */
    uint64_t pings;                            /* there and back */
    uint64_t said, heard;                      /* wire_link.words_out, words_in, as they must be */
};

static inline struct net_connection *net_connection(const struct net_end *e, unsigned number)
{
    return &e->connections[number - e->first];
}

static inline void net_count_add(_Atomic uint64_t *count, uint64_t n)
{
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

/* An error of the wire; but what ended because all is over is none of its own. */
int net_wire_failed(struct net_end *e, int err);
/* After a turn in which nothing moved, or an error (rc): 0, or why it is over. *still: all zero where
 * something has moved since. */
int net_stood_still(struct net_end *e, const struct net_connection *c, int rc,
                    struct clock_wait *still);
/* Until the memory of what went out may be written again. */
int net_settle(struct net_end *e, struct net_connection *c);

/* Data of a message: pattern_fill() with this seed, so that each connection and direction has its
 * own. `round`: 0 streamed, 1 the fresh one of net_check(). */
uint64_t net_seed(const struct net_end *e, const struct net_connection *c, enum wire_side side,
                  unsigned round);
/* pattern_fill(); every byte is another one than that, where `wrong`. */
int net_fill(struct net_end *e, char *at, size_t bytes, uint64_t seed, bool wrong);
/* The first byte that is wrong, or PATTERN_RIGHT. */
int net_find_wrong(struct net_end *e, const char *at, size_t bytes, uint64_t seed, size_t *wrong);
/* Fills in what is sent, where it is not yet; touches what will be written, by that thread. */
void net_ready_out(struct net_end *e, struct net_connection *c);
void net_ready_in(struct net_connection *c);

/* Where buffers are, for rails to say; then those of all connections, known to the wire. */
int net_memory_open(struct net_end *e);
int net_memory_make(struct net_end *e);
void net_memory_close(struct net_end *e);

/* Signals are for the thread that leads or serves. 0, or as net_fail(). */
int net_thread_start(struct net_end *e, pthread_t *thread, void *(*body)(void *), void *arg);
void net_guard_stop(struct net_end *e); /* what watches over pings, if it does */

#endif
