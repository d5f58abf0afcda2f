/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the two ends of net tell each other: the leader's requests and their answers (talk.h). Structs
 * are sent as they are, so they hold no pointers, and both ends must be of one layout: protocol() of
 * peer.c.
 */
#ifndef PLUMB_BENCHES_NET_PROTOCOL_H
#define PLUMB_BENCHES_NET_PROTOCOL_H

#include <stdint.h>

#include "core/group/talk.h"
#include "core/hw/path.h"
#include "core/wire/wire.h"

#define NET_CONNECTIONS_MAX 256
#define NET_WORKERS_MAX     64
#define NET_BYTES_MAX       (1ull << 40) /* of a message */
#define NET_ADDRESS_MAX     57344        /* bytes */
#define NET_ERROR_BYTES     384

enum net_direction { NET_FORWARD, NET_REVERSE, NET_DIRECTIONS };

/* For tests: what must be found. */
enum net_inject {
    NET_SOUND,
    NET_CORRUPT,   /* both ends expect other data than is sent */
    NET_ELSEWHERE, /* the leader says that another device carries the bytes than does */
};

/* One point, as both ends must know it. */
struct net_point {
    char transport[16];
    uint8_t stream[NET_DIRECTIONS]; /* which directions are streamed */
    uint8_t ping;
    uint8_t inject;         /* enum net_inject */
    uint8_t count_messages; /* rate of messages is asked for: many small ones, not bytes */
    uint32_t connections, threads;
    uint64_t message_bytes, ping_bytes;
    uint64_t seed;
    struct wire_tcp_options tcp;
    struct wire_rdma_options rdma;
};

/* What is this end's own: from its own command line, else from the leader's. */
struct net_local {
    char devices[128]; /* NICs or RDMA devices, '+' between several (rails); "": chosen */
    int node;        /* NUMA node of threads and buffers: a number, NET_NODE_NEAR or NET_NODE_FAR */
    char memory[32]; /* "host", "cuda:0", or NET_MEMORY_RAIL */
    uint32_t rail;   /* of this end's machine (rail.h): its number, and 1; 0: none */
    uint32_t paired; /* enum net_paired: what the leader's rail is, so this one has to be */
    uint32_t paired_of; /* how many rails the leader's machine has; 0: it does not tell */
    /* Which of the GPUs of the leader's machine, hidden ones included: rail.h. 0: not known. */
    uint32_t paired_seat, paired_seats;
};
#define NET_MEMORY_RAIL "rail" /* of the rail's GPU */
enum net_paired { NET_PAIRED_ANY, NET_PAIRED_GPU, NET_PAIRED_BARE /* a port without a GPU */ };
enum { NET_NODE_NEAR = -1 /* the NIC's */, NET_NODE_FAR = -2 /* another one */ };

struct net_order {
    struct net_point point;
    struct net_local local; /* for what the peer's own command line does not say */
    uint32_t n_cpus;        /* that the leader uses of the machine that both are on; else 0 */
    uint32_t cpus[NET_WORKERS_MAX];
};

struct net_rails {
    uint32_t n, n_cpus;
    struct nic_rail rails[NIC_RAILS_MAX];
    uint32_t cpus[NET_WORKERS_MAX];
    int32_t memory_node;
};

struct net_rate {
    uint64_t bytes, messages, last_ns;
};

struct net_reading {
    uint64_t from_ns, now_ns; /* before all that is read, and after it */
    struct net_rate rates[NET_DIRECTIONS][NIC_RAILS_MAX]; /* those that are counted at this end */
    uint64_t busy_ns, softirq_ns;                         /* of the machine, where it is known */
    uint32_t machine_known;
    uint32_t n_workers;
    uint64_t worker_ns[NET_WORKERS_MAX]; /* CPU time of each thread */
};

struct net_report {
    struct net_rails rails; /* again: their text may know more now */
    uint32_t n_facts, reserved;
    struct wire_fact facts[WIRE_FACTS_MAX];
    struct path_proof proof;
};

enum net_read_flags {
    NET_READ_MACHINE = 1, /* what the machine has spent, too */
    NET_READ_MARK = 2,    /* sampling begins: what counts up counts from here */
};

/* What the leader asks of its peer, in this order for a point; what goes there, and what comes
 * back. */
enum net_request {
    NET_ASK_HELLO = 1, /* struct net_hello; the same comes back */
    NET_ASK_OPEN,      /* struct net_order; struct net_rails */
    NET_ASK_ADDRESS,   /* -; the peer's address */
    NET_ASK_JOIN,      /* the leader's address; - */
    NET_ASK_START,     /* -; - : the peer's workers run, and its pong() */
    NET_ASK_READ,      /* uint32_t, of enum net_read_flags; struct net_reading */
    NET_ASK_STOP,      /* -; what each connection has sent: uint64_t[connections] */
    NET_ASK_DRAIN,     /* what the leader's have sent; - : all of it has been received */
    NET_ASK_PROVE,  /* what each of the leader's connections has received; what the peer's have */
    NET_ASK_CHECK,  /* -; - */
    NET_ASK_REPORT, /* -; struct net_report */
    NET_ASK_CLOSE,  /* -; - : the point is over, however far it came */
    NET_REQUESTS
};
extern const struct talk_request net_requests[NET_REQUESTS];

struct net_hello {
    char machine[64], host[64];
    uint64_t idle_ns; /* how long to measure the idle machine; 0: not at all */
    double idle_cores,
        idle_softirq; /* of the one who answers: busy while idle; NAN: not measured */
};

#endif
