/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages over TCP: what the files of this room share. The transport is net_tcp (core/wire/net.h).
 *
 * A message is a run of message_bytes of a connection's stream: the sender hands over each with one
 * send() (several where it is longer than TCP_SEND_MOST), as iperf3 does with its -l; so a rate of
 * messages is one of calls. The receiver takes whatever is there, up to what its buffer holds,
 * which is a whole number of messages, and counts messages by their last byte.
 */
#ifndef PLUMB_CORE_WIRE_TCP_TCP_H
#define PLUMB_CORE_WIRE_TCP_TCP_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "core/backend.h"
#include "core/group/channel.h"
#include "core/hw/host_buffer.h"
#include "core/wire/net.h"
#include "core/wire/wire.h"

#define TCP_SEND_MOST ((size_t)1 << 20) /* bytes of one send() */
#define TCP_RECEIVE_LEAST                                                                          \
    ((size_t)128 << 10)       /* a receive buffer has so many bytes, or one message */
#define TCP_TICK_NS 20000000u /* a call that waits comes back so often to look at flags */

/* An address of this machine that a rail's connections are bound to. */
struct tcp_rail {
    struct sockaddr_storage address;
    socklen_t address_bytes;
    char interface[64];
    bool named;   /* the interface was asked for by name: sockets are bound to it, too */
    int listener; /* peer: -1 where there is none */
};

/* Sends without a copy: how many, and what became of them. */
struct tcp_zerocopy {
    uint64_t sent;                 /* calls */
    _Atomic uint64_t done, copied; /* of them; `copied`: the kernel copied all the same */
};

/* Who sends and who receives on a connection are two threads: each has lines of its own. */
struct tcp_connection {
    int fd;               /* -1: none */
    uint32_t retransmits; /* when it was joined */
    size_t message_bytes;
    size_t out_bytes, in_bytes; /* 0: this end does not send, receive on it */
    _Alignas(64) char *out;     /* one message */
    size_t out_at;              /* in the present one */
    bool out_ready;             /* it has been filled */
    struct tcp_zerocopy zerocopy;
    _Alignas(64) char *in; /* whole messages as they arrive */
    size_t in_at;
    uint64_t in_total; /* bytes since the last check */
    bool in_ready;     /* it has been touched */
};

struct tcp_guard {
    pthread_t thread;
    bool started;
    _Atomic bool end;
    _Atomic uint64_t turns; /* messages that came over the ping's connection */
};

struct tcp {
    struct tcp_guard guard;
    struct tcp_rail rails[NET_RAILS_MAX];
    struct tcp_connection *connections; /* number `connections` of the point is the ping's */
    unsigned first, n;                  /* those that exist: [first, n) */
    struct host_buffer buffer;
    uint64_t still_ns; /* nothing moved for so long: given up */
    uint64_t wait_ns;  /* the same while connections are made */
};

static inline struct tcp *tcp_of(const struct net_end *e)
{
    return e->state;
}

static inline bool tcp_sends(const struct net_end *e, enum net_direction d)
{
    return (d == NET_FORWARD) == e->leader;
}

/* address.c: where rails start. Fills in t->rails and e->rails; 0 or net_fail(). */
int tcp_find_rails(struct net_end *e);
void tcp_backends(backend_say_fn *say, void *arg);
/* "10.77.0.1 port 5201"; text needs 80 bytes. */
const char *tcp_address_text(const struct sockaddr_storage *a, char *text, size_t len);

/* connect.c: the message is the addresses where the peer listens. */
int tcp_address(struct net_end *e, void *address, size_t *len);
int tcp_join(struct net_end *e, const void *address, size_t len);

/* socket.c: options, and whole messages outside of what is measured. */
int tcp_try_options(struct net_end *e); /* what can be refused is refused before a byte is sent */
int tcp_prepare_socket(struct net_end *e, int fd, const struct tcp_rail *rail);
int tcp_finish_socket(struct net_end *e, struct tcp_connection *c);
void tcp_describe_rails(struct net_end *e); /* algorithm, segment and buffers as they really are */
/* Nothing moved at *since_ns (0: it just did) or now: 0, or net_fail(-ETIMEDOUT) after
 * `limit_ns`. */
int tcp_still(struct net_end *e, uint64_t *since_ns, uint64_t limit_ns);
int tcp_broken(struct net_end *e, int err, const char *doing); /* net_fail(): a call said -errno */
int tcp_send_all(struct net_end *e, int fd, const void *data, size_t len);
int tcp_receive_all(struct net_end *e, int fd, void *data, size_t len);

/* stream.c */
int tcp_make_buffers(struct net_end *e);
void tcp_ready_out(struct net_end *e, unsigned number, enum net_direction d, unsigned round);
void tcp_ready_in(struct tcp_connection *c);

/* stream.c: net_ops.work by mode. */
int tcp_work(struct net_worker *w);

/* tcp.c, socket.c: hooks of net_ops. */
size_t tcp_facts(struct net_end *e, struct net_fact *facts);
uint32_t tcp_retransmits(int fd); /* of segments, since the connection was made */
/* Are segments under way that have not been acknowledged, and has no acknowledgement of any come
 * for so long? */
bool tcp_unheard(int fd, uint64_t for_ns);
struct tcp_info;

/* How data connections come about: who connects and who listens
 * share. */

/* Sent as it is: both ends are of one layout (net_protocol()). */
struct tcp_address {
    uint32_t n;
    struct sockaddr_storage addresses[NET_RAILS_MAX]; /* where the peer listens */
};

/* What the leader says first on a data connection. The answer is a token of another purpose. */
struct tcp_hello {
    uint8_t token[CHANNEL_TOKEN_BYTES];
    uint32_t number; /* big endian */
};

/*
 * Messages over TCP, one connection to each peer: what the files of wire_tcp share. A message's
 * bytes go from posted memory into the socket and from the socket into posted memory; nothing
 * frames them, since both ends know each message's length.
 *
 * What tcp.h knows of addresses, options and facts is written for one end of a point, so a wire
 * has such an end: its rails are where connections start, its connections those to the peers.
 * Nothing else of it lives.
 *
 * Ranks of one network (namespace and boot) reach each other by 127.0.0.1, others by the address
 * that the world has of them; where a device is named, all by its address.
 */

#define WIRE_TCP_NONCE 8

/* Sent as it is: all ranks are of one layout. */
struct wire_tcp_address {
    struct sockaddr_storage address; /* where the peer listens for this rank */
    uint8_t nonce[WIRE_TCP_NONCE];   /* its, so that connections of another wire are strangers */
};

enum wire_tcp_step {
    WIRE_TCP_IDLE,    /* not connected, and nothing under way: the connecting rank begins (again) */
    WIRE_TCP_CALLS,   /* connect() is under way */
    WIRE_TCP_ASKS,    /* it has said who it is and waits for the answer */
    WIRE_TCP_AWAITED, /* the peer is to connect */
    WIRE_TCP_STANDS,
};

struct wire_tcp_link {
    unsigned index; /* in f->links, and of its connection */
    unsigned rail;
    bool near;
    bool full; /* the socket took less than it was given: POLLOUT says when it takes more */
    struct wire_posts out, in;
    /* of join: */
    enum wire_tcp_step step;
    struct wire_tcp_address theirs;
    uint8_t answer[CHANNEL_TOKEN_BYTES];
    size_t got;        /* of it */
    uint64_t again_ns; /* not before: the next try */
};

struct wire_tcp {
    struct net_end end;
    struct net_point point;
    struct net_local local;
    struct channel_base channel; /* knows addresses, and nothing else */
    struct sockaddr_storage own, peer;
    struct tcp tcp;
    int rails[2]; /* by `near`: index of the end's, -1: none yet */
    uint8_t nonce[WIRE_TCP_NONCE];
    uint64_t wait_ns; /* while connections are made */
    unsigned main;    /* the link that describe() and rail() speak of */
    struct pollfd *polls;
    unsigned *which; /* links of polls */
};

static inline struct wire_tcp *wire_tcp_of(const struct wire *f)
{
    return f->state;
}

static inline struct wire_tcp_link *wire_tcp_link_of(const struct wire_link *l)
{
    return l->state;
}

static inline int wire_tcp_fd(const struct wire_link *l)
{
    return wire_tcp_of(l->worker->wire)->tcp.connections[wire_tcp_link_of(l)->index].fd;
}

/* What the end keeps as its error becomes the wire's. */
int wire_tcp_end_failed(struct wire *f, int err);

/* wire_join.c */
int wire_tcp_address(struct wire_link *l, void *address, size_t *len);
int wire_tcp_join(struct wire *f, const void *const *addresses, const size_t *lens);

/* wire_join.c: one end of a connection that is being made. */
struct wire_tcp_hello { /* what who connects says first; the answer is another token */
    uint8_t token[CHANNEL_TOKEN_BYTES];
    uint8_t from[4]; /* rank, big endian */
};

#endif
