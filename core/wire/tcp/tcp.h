/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages over TCP: what the files of this room share. The transport is wire_tcp (wire.h).
 *
 *   address.c  which addresses of this machine links start from (rails)
 *   join.c     how connections come about
 *   socket.c   options that are asked for, what they became, and what TCP says of itself
 *   tcp.c      bytes, in each way to wait; the transport's table
 *
 * A link is a connection. Its bytes go from posted memory into the socket and from the socket into
 * posted memory; nothing frames them, since both ends know each message's length. A worker that
 * blocks or takes events moves one message a call (several where it is longer than TCP_SEND_MOST),
 * as iperf3 does with its -l: so a rate of messages is one of calls. A worker that yields gathers
 * what is posted.
 *
 * Ranks of one network (namespace and boot) reach each other by 127.0.0.1, others by the address
 * that the world has of them; where a device is named, all by its address.
 */
#ifndef PLUMB_CORE_WIRE_TCP_TCP_H
#define PLUMB_CORE_WIRE_TCP_TCP_H

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "core/backend.h"
#include "core/group/channel.h"
#include "core/wire/wire.h"

#define TCP_SEND_MOST ((size_t)1 << 20) /* bytes of one call */
#define TCP_TICK_NS   20000000u         /* a call that waits comes back so often */
#define TCP_NONCE     8

/* An address of this machine that links start from; w->rails has what people want to know of it. */
struct tcp_rail {
    struct sockaddr_storage address;
    socklen_t address_bytes;
    char interface[64];
    bool named;   /* the interface was asked for by name: sockets are bound to it, too */
    int listener; /* -1: none */
};

/* Sends without a copy: how many, and what became of them. */
struct tcp_zerocopy {
    uint64_t sent;                 /* calls */
    _Atomic uint64_t done, copied; /* of them; `copied`: the kernel copied all the same */
};

/* Sent as it is: all ranks are of one layout. */
struct tcp_address {
    struct sockaddr_storage address; /* where the peer listens for this link */
    uint8_t nonce[TCP_NONCE];        /* its, so that connections of another wire are strangers */
};

enum tcp_step {
    TCP_IDLE,    /* not connected, and nothing under way: the connecting rank begins (again) */
    TCP_CALLS,   /* connect() is under way */
    TCP_ASKS,    /* it has said who it is and waits for the answer */
    TCP_AWAITED, /* the peer is to connect */
    TCP_STANDS,
};

/* Who sends and who receives may be two threads: each has lines of its own. */
struct tcp_link {
    int fd; /* -1: none */
    unsigned rail;
    bool near, ticks;     /* calls that wait come back each tick */
    uint32_t retransmits; /* when it was joined */
    _Alignas(64) struct wire_posts out;
    bool full; /* the socket took less than it was given: POLLOUT says when it takes more */
    bool out_watched;
    struct tcp_zerocopy zerocopy;
    _Alignas(64) struct wire_posts in;
    bool in_watched;
    /* of join: */
    enum tcp_step step;
    struct tcp_address theirs;
    uint8_t answer[CHANNEL_TOKEN_BYTES];
    size_t got;        /* of it */
    uint64_t again_ns; /* not before: the next try */
};

struct tcp_side { /* of a worker */
    int epoll;    /* WIRE_EVENTS; -1 */
    struct pollfd *polls;
    unsigned *which; /* links of polls */
};

struct tcp_worker {
    struct tcp_side out, in;
};

struct tcp {
    struct tcp_rail rails[NIC_RAILS_MAX];
    int far, near; /* the first rail to ranks of other networks, that to those of this one; -1 */
    uint8_t nonce[TCP_NONCE];
    uint64_t wait_ns; /* while connections are made: none more for so long */
    unsigned main;    /* the link that describe() and rail() speak of */
};

static inline struct tcp *tcp_of(const struct wire *w)
{
    return w->state;
}

static inline struct tcp_link *tcp_link_of(const struct wire_link *l)
{
    return l->state;
}

static inline struct tcp_worker *tcp_worker_of(const struct wire_worker *k)
{
    return k->state;
}

/* address.c: adds rails to w->rails and tcp_of(w)->rails: where `devices` ("": chosen) lead to
 * `peer` from `own`. 0 or wire_fail(). */
struct tcp_route {
    const char *devices;
    struct sockaddr_storage own, peer; /* as a world has them */
};
int tcp_find_rails(struct wire *w, const struct tcp_route *route);
void tcp_backends(backend_say_fn *say, void *arg);
/* "10.77.0.1 port 5201"; text needs 80 bytes. */
const char *tcp_address_text(const struct sockaddr_storage *a, char *text, size_t len);

/* What to do about it, behind its sentence; "" where it is no limit of this process. */
static inline const char *tcp_limit_hint(int err)
{
    return err == EMFILE ? " (ulimit -n)" : "";
}

/* join.c */
/* What who connects says first; the answer is another token. */
struct tcp_hello {
    uint8_t token[CHANNEL_TOKEN_BYTES];
    uint8_t from[4], number[4]; /* rank, and which of its links, big endian */
};
/* Of one link between two ranks, for the wire whose listener has this nonce; what: "hello" or
 * "answer". */
void tcp_token(const struct wire *w, const char *what, const uint8_t *nonce, unsigned from,
               unsigned to, unsigned number, uint8_t *token);
int tcp_address(struct wire_link *l, void *address, size_t *len);
int tcp_join(struct wire *w, const void *const *addresses, const size_t *lens);
bool tcp_is_near(const struct wire *w, unsigned rank);

/* socket.c */
int tcp_try_options(struct wire *w,
                    const struct tcp_rail *rail); /* refused before a byte is sent */
/* `local`: it is not bound to an interface: peers of this machine come over the loopback one. */
int tcp_prepare_socket(struct wire *w, int fd, const struct tcp_rail *rail, bool local);
int tcp_finish_socket(struct wire_link *l);
int tcp_tick(struct wire_link *l, bool ticks);
bool tcp_zerocopies(const struct wire_worker *k);
void tcp_describe_rails(struct wire *w); /* algorithm, segment and buffers as they really are */
/* Of links that stand: is each segment as long as asked for? 0, or wire_fail(). */
int tcp_check_segments(struct wire *w);
size_t tcp_facts(struct wire *w, struct wire_fact *facts);
uint32_t tcp_retransmits(int fd); /* of segments, since the connection was made */
/* Are segments under way that have not been acknowledged, and has no acknowledgement of any come
 * for so long? */
bool tcp_unheard(const struct wire_link *l, uint64_t for_ns);

#endif
