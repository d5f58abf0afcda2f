/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two ends that send each other messages: the contract between what is measured the same over every
 * transport (patterns, readings, CPU cost, path proof: benches/net) and the transports (here: tcp,
 * shm, rdma), each a const table of operations.
 *
 * The leader samples and prints rows; the peer does as it is told over the channel (lead.c,
 * serve.c). The life of a point, both ends at once:
 *
 *   open -> address, exchanged -> join -> stream and ping, as the pattern says -> check -> facts
 *     -> close
 *
 * Streams. `connections` of them, each with its own buffers; forward is from the leader to the
 * peer, reverse back, both at once on the same connections. Workers (threads bound to CPUs) serve
 * them: at each end `threads` for what goes out and `threads` for what comes in, where a direction
 * and the transport need them. They run without a pause while the leader takes readings; a sample
 * is what moved between two readings.
 *
 * Readings. A worker adds to its tally the bytes that are through and the time of that moment. The
 * rate between two readings is bytes over time between the *last arrivals* that they saw: so bytes
 * and time belong together however few the arrivals are. Counted is where the data is known to have
 * arrived: at the receiver, or by a completion that says so (see net_ops.counted_by_sender).
 *
 * Ping. One more connection, number `connections`, carries messages there and back, one at a time.
 */
#ifndef PLUMB_CORE_WIRE_NET_H
#define PLUMB_CORE_WIRE_NET_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/backend.h"
#include "core/bench_rows.h"
#include "core/clock.h"
#include "core/group/channel.h"
#include "core/hw/nic.h"
#include "core/hw/path.h"
#include "core/hw/topo.h"
#include "core/option.h"
#include "core/row.h"

#define NET_CONNECTIONS_MAX 256
#define NET_WORKERS_MAX     64
#define NET_BYTES_MAX       (1ull << 40) /* of a message */
#define NET_ADDRESS_MAX     57344        /* bytes */
/* nothing moved for so long: the peer or the path is gone */
#define NET_STILL_NS    6500000000u
#define NET_SLOWEST_NS  20 /* a byte, over the slowest network: 0.4 Gbit/s */
#define NET_ERROR_BYTES 384
#define NET_FACTS_MAX   24

enum net_direction { NET_FORWARD, NET_REVERSE, NET_DIRECTIONS };

enum net_tcp_mode { NET_TCP_BLOCKING, NET_TCP_EPOLL };
struct net_tcp {
    /* enum net_tcp_mode: a thread blocks in one connection (threads = connections), or serves
     * several by epoll */
    uint32_t mode;
    uint32_t zerocopy;     /* MSG_ZEROCOPY sends */
    uint32_t spin;         /* ping: asks again and again instead of sleeping in the kernel */
    uint32_t busy_poll_us; /* SO_BUSY_POLL; 0: as the system has it */
    uint64_t buffer_bytes; /* SO_SNDBUF and SO_RCVBUF; 0: the kernel tunes them */
    char congestion[16];   /* ""; the system's default; else TCP_CONGESTION */
    uint32_t data_port;    /* the first port that the peer listens on for data; 0: any */
    uint32_t reserved;
};

enum net_connect { NET_CONNECT_EXCHANGE, NET_CONNECT_CM };
struct net_rdma {
    uint32_t verb;           /* enum net_verb */
    uint32_t connect;        /* enum net_connect */
    uint32_t depth;          /* work requests in flight on each QP */
    uint32_t signal_every;   /* one of so many is signalled; 0: chosen */
    int32_t inline_bytes;    /* messages up to this size are sent inline; -1: chosen */
    uint32_t events;         /* completions by events, not by polling */
    uint32_t mtu;            /* path MTU in bytes; 0: the port's active one */
    int32_t gid_index;       /* -1: chosen */
    uint32_t timeout, retry; /* of the QP: 4.096 us * 2^timeout; 0: chosen */
};

/* For tests: what must be found. */
enum net_inject {
    NET_SOUND,
    NET_CORRUPT,   /* both ends expect other data than is sent */
    NET_ELSEWHERE, /* the leader says that another device carries the bytes than does */
};

/* One point, as both ends must know it: sent as it is, so it holds no pointers and both ends must
 * be of one layout (net_protocol()). */
struct net_point {
    char transport[16];
    uint8_t stream[NET_DIRECTIONS]; /* which directions are streamed */
    uint8_t ping;
    uint8_t inject;         /* enum net_inject */
    uint8_t count_messages; /* rate of messages is asked for: many small ones, not bytes */
    uint32_t connections, threads;
    uint64_t message_bytes, ping_bytes;
    uint64_t seed;
    struct net_tcp tcp;
    struct net_rdma rdma;
};

/* What is this end's own: from its own command line, else from the leader's. */
struct net_local {
    char devices[128]; /* NICs or RDMA devices, '+' between several (rails); "": chosen */
    int node;        /* NUMA node of threads and buffers: a number, NET_NODE_NEAR or NET_NODE_FAR */
    char memory[32]; /* "host", "cuda:0" */
};
enum { NET_NODE_NEAR = -1 /* the NIC's */, NET_NODE_FAR = -2 /* another one */ };

/* A rate's counters, written by one worker, read by anybody: bytes and the time belong together. */
struct net_tally {
    _Alignas(64) _Atomic uint32_t sequence; /* odd while it is written */
    _Atomic uint64_t bytes, messages, last_ns;
};

/* `bytes` more have arrived just now, and with them `messages` whole ones. */
static inline void net_tally_add(struct net_tally *t, uint64_t bytes, uint64_t messages)
{
    uint32_t sequence = atomic_load_explicit(&t->sequence, memory_order_relaxed);
    uint64_t now_ns = clock_now_ns();

    atomic_store_explicit(&t->sequence, sequence + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&t->bytes, atomic_load_explicit(&t->bytes, memory_order_relaxed) + bytes,
                          memory_order_relaxed);
    atomic_store_explicit(&t->messages,
                          atomic_load_explicit(&t->messages, memory_order_relaxed) + messages,
                          memory_order_relaxed);
    atomic_store_explicit(&t->last_ns, now_ns, memory_order_relaxed);
    atomic_store_explicit(&t->sequence, sequence + 2, memory_order_release);
}

struct net_end;

/* A thread of one end that serves connections [first, first + n) in one direction. */
/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): the tally has lines of its own */
struct net_worker {
    struct net_end *end;
    enum net_direction direction;
    bool sends; /* this end is the sender of that direction */
    unsigned index, rail, cpu;
    unsigned first, n;
    struct net_tally tally;
    pthread_t thread;
    bool started;
};

/* Whole messages of one connection since open: written by the worker that serves it. */
struct net_count {
    _Alignas(64) _Atomic uint64_t sent, received;
};

/* What a transport says of a point after its streams: rows of their own. */
struct net_fact {
    char metric[32]; /* "retransmits", "rtt", "cwnd" */
    char unit[16];   /* a name of units_table: "count", "us", "KiB"... */
    double value;
};

/* One end of one point. */
struct net_end { /* NOLINT(clang-analyzer-optin.performance.Padding): in the order of its life */
    const struct net_ops *ops;
    const struct net_point *point;
    const struct net_local *local;
    const struct topo *topo;
    struct channel *channel;
    bool leader;
    bool same_machine; /* both ends run on one */
    unsigned cpus[NET_WORKERS_MAX],
        n_cpus;      /* where this end's threads run, in order of use; set between
                                               open() and address() */
    int memory_node; /* where buffers go: of the system's numbers, -1: where the thread runs */
    struct net_rail rails[NET_RAILS_MAX];
    unsigned n_rails;
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
    struct net_fact facts[NET_FACTS_MAX]; /* since the mark; see net_facts_take() */
    struct net_fact mark_facts[NET_FACTS_MAX];
    size_t n_facts, n_mark_facts;
    pthread_t pong;
    bool pong_started;
    struct path *path; /* counters at net_prove_begin() */
    struct path_proof proof;
    void *state; /* the transport's */
};

struct wire_ops;
struct net_ops {
    const char *name;                                 /* "tcp" */
    const char *help;                                 /* one line */
    const struct wire_ops *wire;                      /* what its messages go over (stream.c) */
    int (*way)(const struct net_point *p, bool ping); /* enum wire_way of its workers */

    /* Does a message count when all of it is there (RDMA: a completion), not as it arrives? */
    bool counts_whole;
    /* Do its threads ask again and again, so that they are busy whatever there is to do? NULL:
     * no. */
    bool (*polls)(const struct net_point *p);

    /* Is the time of ping() that of one way (a read is there and back by itself), not to be halved?
     * NULL: always halved. */
    bool (*ping_is_whole)(const struct net_point *p);

    bool bursts; /* pings: see ping() */

    /* Is the sender the one that knows what has arrived (RDMA completions), not the receiver
     * (TCP)? */
    bool (*counted_by_sender)(const struct net_point *p, enum net_direction d);
    /* Does the receiver of a direction need workers (TCP: yes; RDMA writes: no)? And the sender
     * (RDMA reads: no: the receiver fetches)? */
    bool (*needs_worker)(const struct net_point *p, enum net_direction d, bool sends);

    /* Finds its devices, fills in rails, and says by net_fail() what is missing: -EOPNOTSUPP or
     * -ENODEV where it cannot be done here (a skipped row). No buffers yet: e->cpus comes after
     * it. */
    int (*open)(struct net_end *e);
    /* Buffers, sockets, queue pairs; then what the other end must know to connect, up to
     * NET_ADDRESS_MAX bytes. The leader connects to what the peer's address says (TCP), or both
     * to each other (RDMA). */
    int (*address)(struct net_end *e, void *address, size_t *len);
    /* The other end's address. Called at both ends at once, in the leader after the peer has
     * sent its address; returns when all connections stand. */
    int (*join)(struct net_end *e, const void *address, size_t len);

    /* A worker's whole work, in its own thread: until told to stop (net_stop(), net_drained()).
     * Adds to its tally and to e->counts. 0, or -errno after net_fail(). */
    int (*work)(struct net_worker *w);

    /* Pings may go in bursts, each timed from post to post; what is left of the last burst is
     * dropped. Leader: one message there and back over the ping's connection, timed from before it
     * is handed over until the answer is here. `last`: tells the peer's pong() to return. */
    int (*ping)(struct net_end *e, bool last, uint64_t *ns);
    /* Peer: answers until the last one. */
    int (*pong)(struct net_end *e);

    /* After the streams have stopped and drained, at both ends at once: compares what the last
     * messages left, then sends one fresh message on each connection and direction that there is
     * and compares that. 0; -EBADMSG with net_fail(): what is wrong where. */
    int (*check)(struct net_end *e);

    /* At the start and at the end of the sampling, while the streams run: up to NET_FACTS_MAX facts
     * of this end as a sender or receiver; those that count up (retransmits) since join. Rows have
     * the difference of the two: from the end of the warm-up to the end of the sampling. Returns
     * how many. May fill in rails' text again. Not required. */
    size_t (*facts)(struct net_end *e, struct net_fact *facts);

    void (*close)(
        struct net_end *e); /* undoes open, also one that stopped half-way; workers have ended */
};

extern const struct net_ops net_tcp;
extern const struct net_ops net_shm;
extern const struct net_ops net_rdma; /* opens the module plumb-rdma.so at first use */

/* For tests: what its messages go over; a byte of what the last messages of a connection left; how long nothing may move. */
struct wire *net_stream_wire(struct net_end *e);
char *net_stream_memory(struct net_end *e, unsigned connection, size_t at);
void net_stream_patience(struct net_end *e, uint64_t still_ns);

/* By name; NULL: no such transport. net_names: NULL-terminated, for an option's choices. */
const struct net_ops *net_find(const char *name);
extern const char *const net_names[];

/* Choices of options, NULL-terminated, in the order of the enums; completions: polled for, or
 * waited for by events. */
extern const char *const net_tcp_modes[], *const net_verbs[], *const net_connects[],
                                                                  *const net_completions[];
/* As struct opt's `parse`, of an int: "auto" (-1) or a number. */
int net_parse_auto(const char *text, void *value, char *error, size_t len);

/*
 * What one rail can carry at most in one direction, payload, GB/s, and how that is known, for
 * limit_source: "sysfs: 100 Gb/s less RoCE v2 framing at MTU 4096 (98.0 %)"; the less of line and
 * PCIe link: "PCIe 3.0 x16: 126 Gb/s, narrower than the line (sysfs: 200 Gb/s)". `kind`: of
 * net_rail, of which the part up to a comma counts ("tcp", "roce v1", "roce v2, rxe", "infiniband",
 * "iwarp, siw"). NaN where the line is not known or there is none: `source` says why. RDMA's
 * packets are IPv6's where r->text names it.
 */
double net_limit_gbps(const struct net_rail *r, const char *kind, const struct net_point *p,
                      char *source, size_t len);
/* The same limit's limit_kind and limit_link. */
enum limit_kind net_limit_kind(const struct net_rail *r);
const char *net_limit_link(const struct net_rail *r, const struct net_point *p);
/* Are there switches of its line that sum what goes through them? Of InfiniBand (SHARP); of
 * Ethernet none, whatever its PCIe link. */
bool net_switches_may_sum(const struct net_rail *r);

/* Keeps the first error of an end, stops its workers, and returns err. The text: what failed, on
 * what, what to do. From any thread. */
int net_fail(struct net_end *e, int err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* For work(): should this sender end now (after a whole message)? Has this receiver all that it
 * will get on connection i? Is everything over, whatever is in flight? */
static inline bool net_stop(const struct net_end *e)
{
    return atomic_load_explicit(&e->stop_sending, memory_order_relaxed) ||
           atomic_load_explicit(&e->give_up, memory_order_relaxed);
}

static inline bool net_drained(const struct net_end *e, unsigned i)
{
    return atomic_load_explicit(&e->expect_known, memory_order_acquire) &&
           atomic_load_explicit(&e->counts[i].received, memory_order_relaxed) >= e->expect[i];
}

/* For so long nothing may be seen to move. A message that counts when it is whole takes its time:
 * each connection may have one under way, and they share a link. */
static inline uint64_t net_still_ns(const struct net_end *e)
{
    const struct net_point *p = e->point;
    uint64_t bytes = p->connections * p->message_bytes + p->ping_bytes;

    return NET_STILL_NS + (e->ops->counts_whole ? NET_SLOWEST_NS * bytes : 0);
}

static inline bool net_over(const struct net_end *e)
{
    return atomic_load_explicit(&e->give_up, memory_order_relaxed);
}

/* Data of a message: pattern_fill() with this seed, so that each connection and direction has its
 * own. `round`: 0 streamed, 1 the fresh one of check(). */
static inline uint64_t net_seed(const struct net_point *p, enum net_direction d,
                                unsigned connection, unsigned round)
{
    return p->seed + 0x9e3779b97f4a7c15u * (1 + connection) + 0xd1b54a32d192ed03u * round + d;
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

/* Both ends must have the same: changes with the layout of what they send each other as it is. */
uint32_t net_protocol(void);

/* What benchmarks over a network have in common in their tables: options of the transports, for
 * struct opt, and metrics, for struct bench_metric. The caller adds flags and the member (`...`),
 * and the scope where the rows say one. */

/* clang-format off */
#define WIRE_OPT_BUFFER(...)                                                                       \
    {.name = "buffer", .type = OPT_SIZE, __VA_ARGS__, .def = "0", .max = 1ull << 31,               \
     .help = "SO_SNDBUF and SO_RCVBUF; 0: the kernel tunes them"}
#define WIRE_OPT_BUSY_POLL(...)                                                                    \
    {.name = "busy-poll", .type = OPT_U64, __VA_ARGS__, .def = "0", .max = 1000000,                \
     .help = "SO_BUSY_POLL in us; 0: the system's value"}
#define WIRE_OPT_CONGESTION(...)                                                                   \
    {.name = "congestion", .type = OPT_STRING, __VA_ARGS__, .arg = "NAME"}
#define WIRE_OPT_DATA_PORT(...)                                                                    \
    {.name = "data-port", .type = OPT_U64, __VA_ARGS__, .def = "0", .max = 65000}
#define WIRE_OPT_MTU(...)                                                                          \
    {.name = "mtu", .type = OPT_U64, __VA_ARGS__, .def = "0", .max = 4096,                         \
     .help = "path MTU; 0: the port's"}
#define WIRE_OPT_GID_INDEX(...)                                                                    \
    {.name = "gid-index", .letter = 'x', .type = OPT_CUSTOM, __VA_ARGS__, .def = "auto",           \
     .arg = "auto|N", .parse = net_parse_auto, .help = "index of the port's GID (RoCE v1 or v2)"}
#define WIRE_OPT_COMPLETION(...)                                                                   \
    {.name = "completion", .type = OPT_CHOICE, __VA_ARGS__, .choices = net_completions,            \
     .def = "poll"}

#define WIRE_COUNTS "counts or extremes: their spread is none of a launch's median"
#define WIRE_STATE  "neither more nor less is better by itself"

/* The round-trip time is measured while the stream fills its queues. */
#define WIRE_METRICS                                                                               \
    {.name = "cpu_per_gb", .units = "s/GB"},                                                       \
    {.name = "cpu_cores", .units = "cores",                                                        \
     .unjudged = "CPU time per byte times the rate: both of these are judged"},                    \
    {.name = "retransmits", .units = "count", .unjudged = WIRE_COUNTS},                            \
    {.name = "rnr naks", .units = "count", .unjudged = WIRE_COUNTS},                               \
    {.name = "out of sequence", .units = "count", .unjudged = WIRE_COUNTS},                        \
    {.name = "congestion notices", .units = "count", .unjudged = WIRE_COUNTS},                     \
    {.name = "rtt", .units = "us", .unjudged = WIRE_STATE},                                        \
    {.name = "cwnd", .units = "packets", .unjudged = WIRE_STATE},                                  \
    {.name = "limited_by_receiver", .units = "percent", .unjudged = WIRE_STATE},                   \
    {.name = "limited_by_buffer", .units = "percent", .unjudged = WIRE_STATE},                     \
    {.name = "zerocopy_copied", .units = "percent", .unjudged = WIRE_STATE}

#endif
