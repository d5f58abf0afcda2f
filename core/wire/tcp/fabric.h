/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages over TCP, one connection to each peer: what the files of fabric_tcp share. A message's
 * bytes go from posted memory into the socket and from the socket into posted memory; nothing
 * frames them, since both ends know each message's length.
 *
 * What tcp.h knows of addresses, options and facts is written for one end of a point, so a fabric
 * has such an end: its rails are where connections start, its connections those to the peers.
 * Nothing else of it lives.
 *
 * Ranks of one network (namespace and boot) reach each other by 127.0.0.1, others by the address
 * that the world has of them; where a device is named, all by its address.
 */
#ifndef PLUMB_CORE_WIRE_TCP_FABRIC_H
#define PLUMB_CORE_WIRE_TCP_FABRIC_H

#include <poll.h>

#include "core/group/channel.h"
#include "core/wire/fabric.h"
#include "core/wire/tcp/tcp.h"

#define FABRIC_TCP_NONCE 8

/* Sent as it is: all ranks are of one layout. */
struct fabric_tcp_card {
    struct sockaddr_storage address; /* where the peer listens for this rank */
    uint8_t nonce[FABRIC_TCP_NONCE]; /* its, so that connections of another fabric are strangers */
};

enum fabric_tcp_step {
    FABRIC_TCP_IDLE,  /* not connected, and nothing under way: the connecting rank begins (again) */
    FABRIC_TCP_CALLS, /* connect() is under way */
    FABRIC_TCP_ASKS,  /* it has said who it is and waits for the answer */
    FABRIC_TCP_AWAITED, /* the peer is to connect */
    FABRIC_TCP_STANDS,
};

struct fabric_tcp_link {
    unsigned index; /* in f->links, and of its connection */
    unsigned rail;
    bool near;
    bool full; /* the socket took less than it was given: POLLOUT says when it takes more */
    struct fabric_posts out, in;
    /* of join: */
    enum fabric_tcp_step step;
    struct fabric_tcp_card theirs;
    uint8_t answer[CHANNEL_TOKEN_BYTES];
    size_t got;        /* of it */
    uint64_t again_ns; /* not before: the next try */
};

struct fabric_tcp {
    struct net_end end;
    struct net_point point;
    struct net_local local;
    struct channel_base channel; /* knows addresses, and nothing else */
    struct sockaddr_storage own, peer;
    struct tcp tcp;
    int rails[2]; /* by `near`: index of the end's, -1: none yet */
    uint8_t nonce[FABRIC_TCP_NONCE];
    uint64_t wait_ns; /* while connections are made */
    unsigned main;    /* the link that describe() and rail() speak of */
    struct pollfd *polls;
    unsigned *which; /* links of polls */
};

static inline struct fabric_tcp *fabric_tcp_of(const struct fabric *f)
{
    return f->state;
}

static inline struct fabric_tcp_link *fabric_tcp_link_of(const struct fabric_link *l)
{
    return l->state;
}

static inline int fabric_tcp_fd(const struct fabric *f, const struct fabric_link *l)
{
    return fabric_tcp_of(f)->tcp.connections[fabric_tcp_link_of(l)->index].fd;
}

/* What the end keeps as its error becomes the fabric's. */
int fabric_tcp_end_failed(struct fabric *f, int err);

/* fabric_join.c */
int fabric_tcp_card(struct fabric *f, struct fabric_link *l, void *card, size_t *len);
int fabric_tcp_join(struct fabric *f, const void *const *cards, const size_t *lens);

/* fabric_join.c: one end of a connection that is being made. */
struct fabric_tcp_hello { /* what who connects says first; the answer is another token */
    uint8_t token[CHANNEL_TOKEN_BYTES];
    uint8_t from[4]; /* rank, big endian */
};

#endif
