/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the leader asks of its peer over the channel: one request, one reply, in this order for a
 * point. A reply begins with struct net_reply; where its err is not 0 nothing follows. Structs are
 * sent as they are: see net_protocol().
 */
#ifndef PLUMB_BENCHES_NET_ORDER_H
#define PLUMB_BENCHES_NET_ORDER_H

#include "core/hw/path.h"
#include "core/wire/net.h"

enum net_request {
    NET_ASK_HELLO = 1, /* struct net_hello; the same comes back */
    NET_ASK_OPEN,      /* struct net_order; struct net_rails */
    NET_ASK_CARD,      /* -; the peer's card */
    NET_ASK_JOIN,      /* the leader's card; - */
    NET_ASK_START,     /* -; - : the peer's workers run, and its pong() */
    NET_ASK_READ,      /* uint32_t, of enum net_read_flags; struct net_reading */
    NET_ASK_STOP,      /* -; what each connection has sent: uint64_t[connections] */
    NET_ASK_DRAIN,     /* what the leader's have sent; - : all of it has been received */
    NET_ASK_PROVE,  /* what each of the leader's connections has received; what the peer's have */
    NET_ASK_CHECK,  /* -; - */
    NET_ASK_REPORT, /* -; struct net_report */
    NET_ASK_CLOSE,  /* -; - : the point is over, however far it came */
    NET_ASK_BYE,    /* the session is over; no reply */
    NET_ASK_BEAT,   /* the leader is at work on something long; no reply */
    /* From the peer, each NET_BEAT_NS, before a reply that takes it long: it is at work. */
    NET_BEAT,
};
#define NET_REPLY   0x8000u
#define NET_BEAT_NS 500000000u

/* Can a second thread send while the first is at work? MPI may not let it. */
bool net_beats(struct channel *c);

enum net_read_flags {
    NET_READ_MACHINE = 1, /* what the machine has spent, too */
    NET_READ_MARK = 2,    /* sampling begins: what counts up counts from here */
};

struct net_reply {
    _Alignas(8) int32_t err; /* what follows holds numbers of 8 bytes */
    char error[NET_ERROR_BYTES];
};

struct net_hello {
    char machine[64], host[64];
    uint64_t idle_ns; /* how long to measure the idle machine; 0: not at all */
    double idle_cores,
        idle_softirq; /* of the one who answers: busy while idle; NAN: not measured */
};

struct net_order {
    struct net_point point;
    struct net_local local; /* for what the peer's own command line does not say */
    uint32_t n_cpus;        /* that the leader uses of the machine that both are on; else 0 */
    uint32_t cpus[NET_WORKERS_MAX];
};

struct net_rails {
    uint32_t n, n_cpus;
    struct net_rail rails[NET_RAILS_MAX];
    uint32_t cpus[NET_WORKERS_MAX];
    int32_t memory_node;
};

struct net_rate {
    uint64_t bytes, messages, last_ns;
};

struct net_reading {
    uint64_t from_ns, now_ns; /* before all that is read, and after it */
    struct net_rate rates[NET_DIRECTIONS][NET_RAILS_MAX]; /* those that are counted at this end */
    uint64_t busy_ns, softirq_ns;                         /* of the machine, where it is known */
    uint32_t machine_known;
    uint32_t n_workers;
    uint64_t worker_ns[NET_WORKERS_MAX]; /* CPU time of each thread */
};

struct net_report {
    struct net_rails rails; /* again: their text may know more now */
    uint32_t n_facts, reserved;
    struct net_fact facts[NET_FACTS_MAX];
    struct path_proof proof;
};

/* Both ends' parts; each 0, or -errno with e->error. */
int net_end_open(struct net_end *e, const struct net_order *order, struct channel *c,
                 const struct topo *topo, bool leader, bool same_machine);
void net_end_close(struct net_end *e);
/* Chooses e->cpus: near the first rail's device, none of `taken` if it can be helped. */
void net_end_rails(const struct net_end *e, struct net_rails *rails);

int net_workers_start(struct net_end *e);
/* Those that send end after the message that they are in, sent[connections] of each; those that
 * receive when they have all of what was sent. Either may take as long as messages take: `beat`
 * (NULL: nothing) is called each second. */
typedef void net_beat_fn(void *arg);
int net_workers_stop(struct net_end *e, uint64_t *sent, net_beat_fn *beat, void *arg);
int net_workers_drain(struct net_end *e, const uint64_t *sent, net_beat_fn *beat, void *arg);
int net_pong_start(struct net_end *e);
int net_pong_end(struct net_end *e); /* waits for it */
void net_read(struct net_end *e, struct net_reading *r, uint32_t flags);
/* What the transport says now: kept for net_report_make(), less what it said at the mark where
 * it counts up. */
void net_facts_take(struct net_end *e);
/* How many threads serve a direction at an end that serves it. */
unsigned net_threads(const struct net_end *e);
/* The idle machine, watched for so long; NAN where it cannot be known. */
void net_watch_idle(uint64_t ns, struct net_hello *hello);
/* What the other end reports is whole: texts end, numbers are within bounds, units are known. */
bool net_rails_sound(struct net_rails *rails);
bool net_report_sound(struct net_report *report);

/* What this end should have put through each rail since net_workers_start(). */
void net_prove_begin(struct net_end *e);
void net_prove_end(struct net_end *e, const uint64_t *others_received);
void net_received(const struct net_end *e, uint64_t *received); /* of connections, and the ping's */
void net_report_make(struct net_end *e, struct net_report *report);

/* Serves one leader until it says goodbye: a channel_child_fn. 0, 1, or -EHOSTUNREACH: it fell
 * silent. `arg`: struct net_service. */
struct net_service {
    const struct net_local
        *own; /* this end's command line; fields that are unset are the leader's to say */
};
int net_serve(struct channel *c, void *arg);

#endif
