/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two ends that send each other messages over a wire, whichever it is. end.c has an end's life,
 * connection.c its connections, memory.c their buffers. stream.c streams, message.c sends one
 * message at a time: mover.h is theirs. The leader samples and prints rows; the peer serves its
 * requests (protocol.h), which come over the channel (lead.c, peer.c). The life of a point, both
 * ends at once:
 *
 *   open -> address, exchanged -> join -> stream and ping, as the pattern asks -> check -> facts
 *     -> close
 *
 * Connection i is the wire's link i, the ping's the last. A worker of the wire has the connections
 * of one thread; where both directions stream, one thread drives each of its sides.
 *
 * Streams. `connections` of them, each with its own buffers; forward is from the leader to the
 * peer, reverse back, both at once on the same connections. Workers (threads bound to CPUs) serve
 * them: at each end `threads` for what goes out and `threads` for what comes in, where a direction
 * and the wire need them. They run without a pause while the leader takes readings; a sample
 * is what moved between two readings.
 *
 * Readings. A worker adds to its tally the bytes that are through and the time of that moment. The
 * rate between two readings is bytes over time between the *last arrivals* that they saw: so bytes
 * and time belong together however few the arrivals are. Counted is where the data is known to have
 * arrived: at the receiver, or by a completion that says so (see net_counted_by_sender()).
 *
 * Ping. One more connection, number `connections`, carries messages there and back, one at a time.
 */
#ifndef PLUMB_BENCHES_NET_END_H
#define PLUMB_BENCHES_NET_END_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "benches/net/protocol.h"
#include "core/clock.h"
#include "core/hw/host_buffer.h"
#include "core/hw/topo.h"

/* A rate's counters, written by one worker, read by anybody: bytes and the time belong together. */
struct net_tally {
    _Alignas(64) _Atomic uint32_t sequence; /* odd while it is written */
    _Atomic uint64_t bytes, messages, last_ns;
};

/* Connections [first, first + n) of one rail that one thread serves. */
struct net_share {
    unsigned rail, first, n;
};

/* A thread of one end that serves a share in one direction. */
/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): the tally has lines of its own */
struct net_worker {
    struct net_end *end;
    enum net_direction direction;
    bool sends; /* this end is the sender of that direction */
    unsigned rail, cpu;
    struct net_connection *connections; /* n of them */
    unsigned n;
    struct net_tally tally;
    pthread_t thread;
    bool started;
};

/* Whole messages of one connection since open: written by the worker that serves it. */
struct net_count {
    _Alignas(64) _Atomic uint64_t sent, received;
};

/* Pings that were timed together, of which `taken` were results of net_ping(). */
#define NET_BURST 1024
struct net_burst {
    unsigned n, taken;
    uint64_t ns[NET_BURST];
};

/* Watches over pings that wait without end. */
struct net_guard {
    pthread_t thread;
    bool started;
    _Atomic bool end;
    _Atomic uint64_t turns; /* messages that came over the ping's connection */
};

/* One end of one point. */
struct net_end { /* NOLINT(clang-analyzer-optin.performance.Padding): in the order of its life */
    const struct wire_ops *ops;
    struct wire_traits traits;
    const struct net_point *point;
    const struct net_local *local;
    const struct topo *topo;
    struct channel *channel;
    bool leader;
    bool same_machine; /* both ends run on one */
    unsigned cpus[NET_WORKERS_MAX],
        n_cpus;          /* where this end's threads run, in order of use; set between
                                               open() and address() */
    int memory_node;     /* where buffers go: of the system's numbers, -1: where the thread runs */
    struct world *world; /* of the two ends */
    struct wire *wire;
    struct nic_rail *rails; /* the wire's */
    unsigned n_rails;
    struct net_connection *connections; /* n, of numbers from `first`: without streams the ping's */
    unsigned first, n;
    struct net_share shares[NET_WORKERS_MAX]; /* of a direction, a thread has one each */
    unsigned n_shares;
    struct host_buffer buffer;
    struct net_gpu *gpu; /* where buffers are instead; NULL: the host has them */
    uint64_t still_ns;   /* nothing moved for so long: given up */
    uint64_t looked_ns;  /* whether the other end lives */
    struct net_worker *workers;
    unsigned n_workers;
    struct net_count *counts;  /* of connections, and of the ping's: point->connections + 1 */
    _Atomic bool stop_sending; /* workers that send end after the message that they are in */
    _Atomic bool expect_known; /* `expect` holds: workers that receive end when they have so many */
    uint64_t *expect;          /* messages of each connection that its sender has sent */
    _Atomic bool give_up;      /* everything ends at once: an error, or the peer is gone */
    _Atomic int error_code;    /* the first error of any thread; its text in `error` */
    char error[NET_ERROR_BYTES];
    pthread_mutex_t error_lock;
    struct wire_fact facts[WIRE_FACTS_MAX]; /* since the mark; see net_facts_take() */
    struct wire_fact mark_facts[WIRE_FACTS_MAX];
    size_t n_facts, n_mark_facts;
    struct net_burst burst;
    struct net_guard guard;
    pthread_t pong;
    bool pong_started;
    struct path *path; /* counters before the first byte */
    struct path_proof proof;
};

/* Keeps the first error of an end, stops its workers, and returns err. The text: what failed, on
 * what, what to do. From any thread. */
int net_fail(struct net_end *e, int err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static inline bool net_streams(const struct net_point *p)
{
    return p->stream[NET_FORWARD] || p->stream[NET_REVERSE];
}

/* What goes that way is sent by this end. */
static inline bool net_sends(const struct net_end *e, enum net_direction d)
{
    return (d == NET_FORWARD) == e->leader;
}

/* Does the sender, or the receiver, of a stream need workers: does it post messages? */
static inline bool net_needs_worker(const struct net_end *e, bool sends)
{
    return e->traits.acts & (sends ? WIRE_OUT : WIRE_IN);
}

/* Is the sender the one that knows what has arrived? The receiver is, but where it does nothing. */
static inline bool net_counted_by_sender(const struct net_end *e)
{
    return e->traits.acts == WIRE_OUT;
}

/* Is a ping what the leader reads, there and back by itself? Then its time is not to be halved. */
static inline bool net_ping_is_read(const struct net_end *e)
{
    return e->traits.acts == WIRE_IN;
}

/* For so long nothing may be seen to move. A message that counts when it is whole takes its time:
 * each connection may have one under way, and they share a link. */
static inline uint64_t net_still_ns(const struct net_end *e)
{
    const struct net_point *p = e->point;
    uint64_t bytes = p->connections * p->message_bytes + p->ping_bytes;

    return WIRE_STILL_NS + (e->ops->streams ? 0 : WIRE_SLOWEST_NS * bytes);
}

static inline bool net_over(const struct net_end *e)
{
    return atomic_load_explicit(&e->give_up, memory_order_relaxed);
}

/* Which rail carries a connection (the ping's: the first one): blocks of equal size. */
static inline unsigned net_rail_of(const struct net_end *e, unsigned connection)
{
    if (connection >= e->point->connections)
        return 0;
    return (unsigned)((uint64_t)connection * e->n_rails / e->point->connections);
}

/* Threads that serve the `connections` of one of n_rails in one direction: its share of what was
 * asked for, at least one, and none that would have nothing to do. */
static inline unsigned net_rail_threads(const struct net_point *p, unsigned n_rails,
                                        unsigned connections)
{
    unsigned threads = p->threads > n_rails ? p->threads / n_rails : 1;

    return threads < connections ? threads : connections;
}

/* Puts the device, and the memory where it is to be the rail's GPU's, in the place of the rail's
 * number; *rail is which one. Without a number nothing. 0, or -errno with *error. */
struct rail;
/* Does the number mean the same at both ends, as far as `local` knows of the leader's machine? 0, or
 * -ENODEV with *error. */
int net_rail_paired(const struct net_local *local, const struct rail *rail, char *error,
                    size_t len);
int net_rail_find(struct net_local *local, struct rail *rail, char *error, size_t len);

/* An end's life; each 0, or -errno with e->error. */
int net_end_open(struct net_end *e, const struct net_order *order, struct channel *c,
                 const struct topo *topo, bool leader, bool same_machine);
void net_end_close(struct net_end *e);
void net_end_rails(const struct net_end *e, struct net_rails *rails);

int net_workers_start(struct net_end *e);
void net_workers_make(struct net_end *e); /* the first part of that: no thread runs yet */
/* Those that send end after the message that they are in, sent[connections] of each; those that
 * receive when they have all of what was sent. Either may take as long as messages take. */
int net_workers_stop(struct net_end *e, uint64_t *sent);
int net_workers_drain(struct net_end *e, const uint64_t *sent);
void net_workers_end(struct net_end *e); /* at once; all threads of streams */
int net_pong_start(struct net_end *e);
int net_pong_end(struct net_end *e); /* waits for it */
void net_read(struct net_end *e, struct net_reading *r, uint32_t flags);
/* The transport's facts of now: kept for net_report_make(), less those of the mark where they count
 * up. */
void net_facts_take(struct net_end *e);

/* What this end should have put through each rail since net_workers_start(). */
void net_prove_end(struct net_end *e, const uint64_t *others_received);
void net_received(const struct net_end *e, uint64_t *received); /* of connections, and the ping's */
void net_report_make(struct net_end *e, struct net_report *report);

/* An end's way through a point, in this order; each 0, or -errno after net_fail(). */

/* Finds the wire's devices: e->rails. -EOPNOTSUPP or -ENODEV where it cannot be done here
 * (a skipped row). No buffers yet: e->cpus comes after it. */
int net_wire_open(struct net_end *e);
/* Buffers and links; then what the other end must know to connect, up to NET_ADDRESS_MAX bytes. */
int net_address(struct net_end *e, void *address, size_t *len);
/* The other end's address. At both ends at once; returns when all connections stand. */
int net_join(struct net_end *e, const void *address, size_t len);
/* A worker's whole work, in its own thread: until net_stop() or net_drained(). Adds to
 * its tally and to e->counts. */
int net_work(struct net_worker *w);
/* Leader: one message there and back over the ping's connection, timed from before it is handed
 * over until the answer is here; of a read, which is there and back by itself, that one. Pings may
 * go in bursts, each timed from post to post; the rest of the last burst is dropped. `last`:
 * tells the peer's net_pong() to return. */
int net_ping(struct net_end *e, bool last, uint64_t *ns);
int net_pong(struct net_end *e); /* peer: answers until the last one */
/* After the streams have stopped and drained, at both ends at once: compares what the last messages
 * left, then sends one fresh message on each connection and direction that there is and compares
 * that. -EBADMSG: what is wrong where. */
int net_check(struct net_end *e);
/* At the start and at the end of the sampling, while the streams run: up to WIRE_FACTS_MAX facts of
 * this end as a sender or receiver; those that count up (retransmits) since join. Rows have the
 * difference of the two: from the end of the warm-up to the end of the sampling. Returns how many.
 * Renews rails' text. */
size_t net_facts(struct net_end *e, struct wire_fact *facts);
void net_wire_close(struct net_end *e); /* also of one that stopped half-way; workers have ended */

#endif
