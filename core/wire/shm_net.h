/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between two processes of one machine, through rings in memory that both have mapped: the
 * sender copies a message in, the receiver copies it out. A ring for each connection and direction. Both
 * ends spin while they wait, and yield now and then; so both keep a CPU busy, whatever goes through.
 *
 * The transport is net_shm (core/wire/net.h): shm_net.c has its memory, shm_net_move.c what moves through it.
 */
#ifndef PLUMB_CORE_WIRE_SHM_NET_H
#define PLUMB_CORE_WIRE_SHM_NET_H

#include "core/hw/host_buffer.h"
#include "core/wire/net.h"
#include "core/wire/shm_ring.h"

#define SHM_RECEIVE_LEAST SHM_CHUNK_BYTES /* a receive buffer has so many bytes, or one message */

/* Who sends and who receives on a connection are two threads: each has lines of its own. */
struct shm_connection { /* NOLINT(clang-analyzer-optin.performance.Padding): lines of their own */
    size_t message_bytes;
    size_t out_bytes, in_bytes; /* 0: this end does not send, receive on it */
    _Alignas(64) struct shm_ring *out_ring;
    char *out; /* one message */
    size_t out_at;
    bool out_ready; /* it has been filled */
    _Alignas(64) struct shm_ring *in_ring;
    char *in; /* whole messages as they arrive */
    size_t in_at;
    uint64_t in_total; /* bytes since the last check */
    bool in_ready;     /* it has been touched */
};

struct shm_net {
    struct shm_connection *connections; /* number `connections` of the point is the ping's */
    unsigned n;
    struct host_buffer buffer;
    int fd;    /* leader: of the memory, until the end: the peer opens it by /proc */
    void *map; /* NULL: not yet */
    size_t map_bytes;
    uint64_t still_ns; /* nothing moved for so long: given up */
};

static inline struct shm_net *shm_of(const struct net_end *e)
{
    return e->state;
}

static inline bool shm_sends(const struct net_end *e, enum net_direction d)
{
    return (d == NET_FORWARD) == e->leader;
}

/* Does anything go that way on that connection? */
static inline bool shm_goes(const struct net_end *e, unsigned number, enum net_direction d)
{
    return number == e->point->connections ? e->point->ping : e->point->stream[d];
}

/* shm_net_move.c: hooks of net_ops. */
int shm_work(struct net_worker *w);
int shm_ping(struct net_end *e, bool last, uint64_t *ns);
int shm_pong(struct net_end *e);
int shm_check(struct net_end *e);

#endif
