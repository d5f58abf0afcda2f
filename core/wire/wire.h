/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How bytes reach a peer, whatever carries them: shared memory, TCP, RDMA. The benchmark `net`
 * measures it between two processes, collectives of our own run their schedules over it.
 *
 * A wire is this process' use of one transport in a world of ranks. A worker is the part of it that
 * one thread drives: it owns links and moves their bytes. A link is one connection to one peer. A
 * transport is a const table of operations: a file, and a line of WIRES_NEAR or WIRES_FAR.
 *
 *   wire_open -> wire_worker for each worker -> wire_memory -> wire_link for each link ->
 *     wire_address of each link, exchanged by the caller -> wire_join, in all ranks at the same
 *     time -> send, receive, progress -> wire_close
 *
 * On a link messages keep their order, each way on its own. A message is posted by wire_send() here
 * and by wire_receive() of the same length there; neither waits. Posted memory is left alone until
 * its bytes are through: l->out and l->in count them, and only wire_progress() moves them. Bytes of
 * a message may get through bit by bit (shared memory, TCP) or all at once (RDMA): `through` bytes
 * of the oldest posted messages are in their place. Where ops->streams, ends need not cut the bytes
 * alike: one receive may be as long as several sends.
 *
 * A worker has two sides, what goes out and what comes in. Each is one thread's at a time; it may
 * be the same thread. Nothing blocks but wire_join(), and wire_progress() no longer than it is
 * told. A wire is closed when all ranks have what they wait for: what still goes to a peer that has
 * closed, if it is only the word that a message came, may fail there.
 *
 * Errors: 0 or -errno; the first one's sentence stays in w->error and names the peer: -ECONNRESET
 * (it is gone), -ETIMEDOUT, -ENOMEM, -EOPNOTSUPP and -ENODEV (cannot be done here: a skipped row).
 * A peer that stands still is the caller's to notice: see wire_progress().
 */
#ifndef PLUMB_CORE_WIRE_WIRE_H
#define PLUMB_CORE_WIRE_WIRE_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/backend.h"
#include "core/condition.h"
#include "core/group/world.h"
#include "core/hw/nic.h"

#define WIRE_ADDRESS_MAX 512 /* bytes */
#define WIRE_FACTS_MAX   24
#define WIRE_POSTS       32 /* messages of a link that may be posted and not through, each way */
#define WIRE_ERROR_BYTES 384
#define WIRE_JOIN_NS     8000000000u /* no link more came to stand for so long: join gives up */
/* nothing moved for so long: the peer or the path is gone */
#define WIRE_STILL_NS   6500000000u
#define WIRE_SLOWEST_NS 20    /* a byte, over the slowest network: 0.4 Gbit/s */
#define WIRE_SPINS_NS   50000 /* before it sleeps for the system to wake it */
/* a CPU that was given way comes back so late: others have work */
#define WIRE_LATE_NS 400000
/* A GPU's memory cannot be registered: GPUDirect is missing. Told apart from what else cannot be
 * done here. */
#define WIRE_UNREGISTERED (-EMEDIUMTYPE)
#define WIRE_FOREVER      UINT64_MAX /* to wait: until something moves, or interrupt() */
#define WIRE_LATE_SHARE   20         /* none is given way again for so many times as long */

struct wire;
struct wire_worker;

enum wire_side { WIRE_OUT = 1, WIRE_IN = 2, WIRE_BOTH = WIRE_OUT | WIRE_IN };

/* How a worker waits for what is not there yet. */
enum wire_way {
    WIRE_YIELD,  /* it looks, gives its CPU to others, and sleeps at last */
    WIRE_POLL,   /* it looks again and again, and its CPU is busy whatever there is to do */
    WIRE_BLOCK,  /* it sleeps within the one call that moves bytes: one link, one side */
    WIRE_EVENTS, /* it sleeps until the system says which link can move (epoll, completions) */
};
#define WIRE_CAN(way) (1u << (way))

/* What follows from a transport and its options, before anything is opened. */
struct wire_traits {
    enum wire_way way, probe_way; /* how a worker waits: of streams, of single messages */
    bool busy; /* its thread takes all of a CPU, whatever there is to do: something polls */
    /* enum wire_side: who posts the messages of a link with a window, who sends or who receives;
     * both, as on links without one */
    unsigned acts;
};

/* One way of a link, bytes and whole messages since join. */
struct wire_flow {
    _Alignas(64) uint64_t posted; /* through <= posted */
    uint64_t through, messages;
    bool listed; /* among the side's `moved` */
};

/* All messages of a link, if they come from one place and go to one: a transport may then prepare
 * them, and let one end alone act: who sends (RDMA's write), or who receives (its read). Who does
 * not act posts nothing, and hears by ops->word() when all is there. */
struct wire_window {
    void *out, *in; /* memory that is known (wire_memory()); NULL: nothing goes that way */
    uint64_t message_bytes;
    /* Each message out is answered by one in: that one proves that it is through, as it counts at
     * once: it may be through when wire_send() returns. See wire_link.turn_out. */
    bool turns;
};

/* Memory that messages are sent from or received into. */
struct wire_memory {
    void *at;
    size_t bytes;
    enum wire_side sides; /* what goes out of it, what comes into it */
    unsigned rail;        /* of the workers whose links use it */
    const char *device;   /* "cuda:0": memory of a GPU, which no CPU touches; NULL: of the host */
    int file;             /* the same as a dma-buf, or -errno */
    const char *why;      /* there is no file */
    const char *way;      /* how memory of a GPU was registered: "dma-buf"; filled in */
};

struct wire_link { /* NOLINT(clang-analyzer-optin.performance.Padding): each flow has its lines */
    struct wire_worker *worker;
    unsigned index, peer; /* in wire->links; rank of the world */
    unsigned number;      /* from 0, of this wire's to that peer: the same at both ends */
    char device[64]; /* what carries its bytes here, after join: "eth0", "lo", "mlx5_0:1", "shm" */
    struct wire_window window; /* zeroes: none */
    /* bytes that are worth posting at once, each way; or one message: by link() */
    uint64_t ahead;
    /* Of messages in turns: a byte whose lower 7 bits differ from the one before it. Who sends sets
     * turn_out and has written it into the message's last byte; who receives sets turn_in to what
     * it waits for. turns_beside, after join: it travels beside the message instead, and turn_in
     * becomes what came. */
    uint8_t turn_out, turn_in;
    bool turns_beside;
    uint64_t words_out, words_in; /* of ops->word(): through, each way, since join */
    struct wire_flow out, in;
    void *state; /* the transport's */
};

struct wire_turn {                         /* one side of a worker */
    _Alignas(64) struct wire_link **moved; /* links of which bytes got through in this progress */
    unsigned n_moved;
    uint64_t yield_ns; /* of wire_spin(): no CPU is given way before that */
};

struct wire_worker { /* NOLINT(clang-analyzer-optin.performance.Padding): so has each turn */
    struct wire *wire;
    unsigned index, rail;
    enum wire_way way;
    bool probes; /* it sends single messages, beside streams: facts are of these alone */
    struct wire_link *links; /* its part of wire->links */
    unsigned n_links;
    struct wire_turn out, in;
    void *state; /* the transport's */
};

enum wire_tcp_mode { WIRE_TCP_BLOCKING, WIRE_TCP_EPOLL };
struct wire_tcp_options {
    /* enum wire_tcp_mode: a thread blocks in one connection (threads = connections), or serves
     * several by epoll */
    uint32_t mode;
    uint32_t zerocopy;      /* MSG_ZEROCOPY sends */
    uint32_t spin;          /* ping: asks again and again instead of sleeping in the kernel */
    uint32_t busy_poll_us;  /* SO_BUSY_POLL; 0: as the system has it */
    uint64_t buffer_bytes;  /* SO_SNDBUF and SO_RCVBUF; 0: the kernel tunes them */
    char congestion[16];    /* ""; the system's default; else TCP_CONGESTION */
    uint32_t data_port;     /* the first port that the peer listens on for data; 0: any */
    uint32_t segment_bytes; /* TCP_MAXSEG of both ends, with TCP's options; 0: the path's */
};

enum wire_connect { WIRE_CONNECT_EXCHANGE, WIRE_CONNECT_CM };
struct wire_rdma_options {
    uint32_t verb;           /* enum rdma_verb */
    uint32_t connect;        /* enum wire_connect */
    uint32_t depth;          /* work requests in flight on each QP */
    uint32_t signal_every;   /* one of so many is signalled; 0: chosen */
    int32_t inline_bytes;    /* messages up to this size are sent inline; -1: chosen */
    uint32_t events;         /* completions by events, not by polling */
    uint32_t mtu;            /* path MTU in bytes; 0: the port's active one */
    int32_t gid_index;       /* -1: chosen */
    uint32_t timeout, retry; /* of the QP: 4.096 us * 2^timeout; 0: chosen */
    /* Messages' buffers are registered for relaxed ordering on PCIe. Not with messages in turns,
     * where the last byte tells that all have come. A device or kernel that knows none ignores it. */
    uint32_t relaxed;
};

struct wire_options {
    /* NIC, RDMA device; NULL or "": the one that leads to the peer. "mlx5_0+mlx5_1": the ranks of a
     * machine take them in turn, and a transport sees its rank's own alone; unless `every`: all are
     * rails of this rank. */
    const char *device;
    bool every;
    struct wire_tcp_options tcp;   /* mode and spin are left aside: workers have ways */
    struct wire_rdma_options rdma; /* without windows verb is left aside */
    bool windows;                  /* all links have one; else none has */
    uint64_t message_most;         /* no message will be longer: for what must be set aside */
    uint64_t ring_bytes;           /* of shared memory, each way of a link; 0: chosen */
    bool crowded;   /* more ranks than CPUs on this machine: who waits gives way or sleeps */
    bool reference; /* rails say the speed of this memory, where there is no line (shared memory) */
    /* NUMA, of the system's numbers, for memory that the transport needs; -1: where the thread
     * runs */
    int node;
    unsigned links_most, workers_most; /* 0: as many as ranks; 1 */
    /* join calls it some times a second while it waits, and ends with what it says where that is
     * not 0. NULL: it does not. */
    int (*attend)(void *arg);
    void *attend_arg;
};

/* What a transport says of itself: rows of their own. */
struct wire_fact {
    char metric[32]; /* "retransmits", "rtt", "cwnd" */
    char unit[16];   /* a name of units_table: "count", "us", "KiB"... */
    double value;
};

struct wire_ops {
    const char *name; /* shm tcp rdma cma */
    bool near; /* between processes of one machine: CPUs copy, there is no line, and no device */
    unsigned ways; /* WIRE_CAN() of each */
    /* Bytes have no bounds: see above. Where not, a message counts when all of it is there. */
    bool streams;
    /* A message of a link with a window may be posted several times at once: `bytes` are that many
     * of message_bytes. Memory may be a GPU's. */
    bool windows;
    void (*backends)(backend_say_fn *say, void *arg); /* not required: it is there, always */
    /* Changes what wire_traits_of() says without it, where the options want that. Not required. */
    void (*traits)(const struct wire_options *o, struct wire_traits *t);

    int (*open)(struct wire *w);
    /* What links to that rank may start from: fills in w->rails. Not required: then open() does. */
    int (*rails)(struct wire *w, unsigned rank);
    /* Memory that will be sent from or received into; all of it is known before link(). Kept until
     * close. NULL: any memory will do. */
    int (*memory)(struct wire *w, struct wire_memory *m);
    void (*worker)(struct wire_worker *k); /* Not required. */
    int (*link)(struct wire_link *l);
    int (*address)(struct wire_link *l, void *address, size_t *len); /* for this peer */
    /* addresses[i], lens[i]: what the peer of links[i] made for this rank. Returns when all links
     * stand, when attend() ends it, or when none more has come to stand for WIRE_JOIN_NS. Sets
     * link->device. */
    int (*join)(struct wire *w, const void *const *addresses, const size_t *lens);

    int (*send)(struct wire_link *l, const void *at, size_t bytes);
    int (*receive)(struct wire_link *l, void *at, size_t bytes);
    /* Moves what can be moved on these sides. 1: something moved; 0: nothing did, for wait_ns (0:
     * it only looked); -errno. It may return 0 early. */
    int (*progress)(struct wire_worker *k, enum wire_side sides, uint64_t wait_ns);
    /* Takes back what was posted to come in and has not come: at the end of a stream, which its
     * sender alone knows. Of links that stream; else not required. */
    void (*retract)(struct wire_link *l);
    /* May the memory of what went out be written again? 1; 0: not yet, after a moment: it is sent
     * without a copy; -errno. Not required: always. */
    int (*settle)(struct wire_link *l);
    /* From another thread: a wait without end ends. Not required: waits end by themselves. */
    void (*interrupt)(struct wire_link *l);
    /* An empty message, behind all that was sent on this link. Links with a window, where an end
     * may not act; not required: NULL where all that is sent is received. */
    int (*word)(struct wire_link *l);

    /* What there is to say of it, for columns: "cubic, MSS 1448"; "roce v2, GID 1, MTU 1024". Not
     * required. */
    void (*describe)(struct wire *w, char *text, size_t len);
    /* What counts up (retransmits) since join, of which rows have what came between the mark and
     * the end: up to WIRE_FACTS_MAX; how many. Not required. */
    size_t (*facts)(struct wire *w, struct wire_fact *facts);
    /* Of a link that stands: has something been sent whose receipt the peer's kernel has not told,
     * and nothing been heard of it for so long? Not required. */
    bool (*unheard)(const struct wire_link *l, uint64_t for_ns);
    /* The rail that its bytes take here, for limits (wire_limit_gbps()): name, kind, MTU, segment.
     * 0, or -ENODATA. Not required. */
    int (*rail)(struct wire *w, struct nic_rail *rail);
    void (*close)(struct wire *w); /* undoes open, also one that failed half-way */
};

struct wire {
    const struct wire_ops *ops;
    const struct world *world;
    struct wire_options options;
    struct nic_rail rails[NIC_RAILS_MAX]; /* what its links may start from, of this rank */
    unsigned n_rails;
    struct wire_link *links; /* by worker; fixed after join */
    struct wire_worker *workers;
    unsigned n_links, n_workers;
    _Atomic int failed;   /* the first error; its sentence in `error` */
    pthread_mutex_t lock; /* of these two */
    char error[WIRE_ERROR_BYTES];
    void *state; /* the transport's */
};

/* All transports: a word and its name. The table of `word` is wire_word. Near ones (ops->near) are
 * between processes of one machine, and take no device; they are also called something in reports.
 * A new transport is a file and a line here. */
#define WIRES_NEAR(first, more)                                                                    \
    first(shm, "shm", "shared memory") more(cma, "cma", "cross-memory attach")
#define WIRES_FAR(first, more) first(tcp, "tcp", ) more(rdma, "rdma", )
#define WIRES(wire)            WIRES_NEAR(wire, wire) WIRES_FAR(wire, wire)

#define WIRE_TABLE(word, name, what) extern const struct wire_ops wire_##word;
WIRES(WIRE_TABLE)

/* For conditions: "shm,cma", "tcp,rdma". */
#define WIRES_NEAR_WORDS WIRES_NEAR(CONDITION_FIRST, CONDITION_MORE)
#define WIRES_FAR_WORDS  WIRES_FAR(CONDITION_FIRST, CONDITION_MORE)

/* The first way that it can of poll, block, events and yield; both ends act. Of options, those of
 * transports alone are looked at. */
struct wire_traits wire_traits_of(const struct wire_ops *ops, const struct wire_options *o);

int wire_open(struct wire **w, const struct wire_ops *ops, const struct world *world,
              const struct wire_options *options, char *error, size_t len);
void wire_close(struct wire *w); /* NULL is left alone */
/* Takes off what counted up before. */
void wire_facts_less(struct wire_fact *facts, size_t n, const struct wire_fact *mark,
                     size_t n_mark);
/* The index in w->workers of one more, or -errno: -EOPNOTSUPP, it cannot wait like that. */
int wire_worker(struct wire *w, enum wire_way way, unsigned rail);
int wire_memory(struct wire *w, void *at, size_t bytes); /* of the host, both ways, rail 0 */
int wire_memory_of(struct wire *w, struct wire_memory *m);
/* The index in w->links of a link of the worker that was made last (of a first one, which yields,
 * where there is none), or -errno. With a window one more; without, the one to that rank, which is
 * made where there is none. */
int wire_link(struct wire *w, unsigned rank, const struct wire_window *window);
int wire_address(struct wire *w, unsigned link, void *address, size_t *len);
int wire_join(struct wire *w, const void *const *addresses, const size_t *lens);

/* 0; -EAGAIN: WIRE_POSTS are posted already; or -errno. bytes > 0 and at most
 * options.message_most. */
static inline int wire_send(struct wire_link *l, const void *at, size_t bytes)
{
    return l->worker->wire->ops->send(l, at, bytes);
}

static inline int wire_receive(struct wire_link *l, void *at, size_t bytes)
{
    return l->worker->wire->ops->receive(l, at, bytes);
}

static inline void wire_turn_begin(struct wire_turn *t, size_t flow)
{
    for (unsigned i = 0; i < t->n_moved; i++)
        ((struct wire_flow *)(void *)((char *)t->moved[i] + flow))->listed = false;
    t->n_moved = 0;
}

/* Links of which bytes got through are in k->out.moved and k->in.moved until the next call. */
static inline int wire_progress(struct wire_worker *k, enum wire_side sides, uint64_t wait_ns)
{
    if (sides & WIRE_OUT)
        wire_turn_begin(&k->out, offsetof(struct wire_link, out));
    if (sides & WIRE_IN)
        wire_turn_begin(&k->in, offsetof(struct wire_link, in));
    return k->wire->ops->progress(k, sides, wait_ns);
}

/* The rank of the first peer to which bytes are under way and from which nothing has been heard for
 * so long, and the device that they take; -1: none, or it is not known. After join. */
int wire_unheard(const struct wire *w, uint64_t for_ns, const char **device);

/* ---- For transports ---- */

static inline int wire_attend(struct wire *w)
{
    return w->options.attend ? w->options.attend(w->options.attend_arg) : 0;
}

/* Before a worker sleeps, of WIRE_YIELD: looks until something moves, for wait_ns and WIRE_SPINS_NS
 * at the most, `looks` times between two readings of the clock, each of which comes after it has
 * given way to whoever wants this CPU. That may be the rank that it waits for, and costs less than
 * to sleep and be woken: crowded, it gives way before each look. A CPU that comes back late was
 * another program's: then for some time it spins alone, or, crowded, returns at once. What look()
 * said. */
typedef int wire_look_fn(struct wire_worker *k, enum wire_side sides);
int wire_spin(struct wire_worker *k, enum wire_side sides, wire_look_fn *look, unsigned looks,
              uint64_t start_ns, uint64_t wait_ns);

/* Keeps the first error's sentence and returns err. From any thread. */
int wire_fail(struct wire *w, int err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static inline void wire_moved(struct wire_turn *t, struct wire_link *l, struct wire_flow *f,
                              uint64_t bytes, unsigned messages)
{
    f->through += bytes;
    f->messages += messages;
    if (!f->listed)
        t->moved[t->n_moved++] = l;
    f->listed = true;
}

static inline void wire_went(struct wire_link *l, uint64_t bytes, unsigned messages)
{
    wire_moved(&l->worker->out, l, &l->out, bytes, messages);
}

static inline void wire_came(struct wire_link *l, uint64_t bytes, unsigned messages)
{
    wire_moved(&l->worker->in, l, &l->in, bytes, messages);
}

/* Messages of a link that are posted and not through, one way, oldest first: for transports whose
 * bytes get through bit by bit. */

struct wire_post {
    char *at;
    size_t bytes;
};

struct wire_posts {
    struct wire_post ring[WIRE_POSTS];
    unsigned first, n;
    size_t done; /* bytes of the first that are through */
};

static inline struct wire_post *wire_posts_at(struct wire_posts *q, unsigned i)
{
    return &q->ring[(q->first + i) % WIRE_POSTS];
}

static inline int wire_posts_add(struct wire_link *l, struct wire_posts *q, struct wire_flow *f,
                                 const void *at, size_t bytes)
{
    struct wire *w = l->worker->wire;

    if (q->n == WIRE_POSTS)
        return -EAGAIN;
    if (!bytes || bytes > w->options.message_most)
        return wire_fail(w, -EINVAL, "a message of %zu bytes is out of bounds: 1 to %llu", bytes,
                         (unsigned long long)w->options.message_most);
    *wire_posts_at(q, q->n++) = (struct wire_post){(char *)(uintptr_t)at, bytes};
    f->posted += bytes;
    return 0;
}

/* So many more bytes are through, of one or several; returns how many messages are now, whole. */
static inline unsigned wire_posts_moved(struct wire_posts *q, size_t bytes)
{
    unsigned whole = 0;

    q->done += bytes;
    while (q->n && q->done >= q->ring[q->first].bytes) {
        q->done -= q->ring[q->first].bytes;
        q->first = (q->first + 1) % WIRE_POSTS;
        q->n--;
        whole++;
    }
    return whole;
}

/* What has not come is not waited for any more. */
static inline void wire_posts_retract(struct wire_posts *q, struct wire_flow *f)
{
    q->n = 0;
    q->done = 0;
    f->posted = f->through;
}

/* Between core (core/wire/rdma.c) and the module plumb-rdma.so, whose table takes the place of
 * wire_rdma's in w->ops. */

#define RDMA_MODULE_SYMBOL "plumb_rdma_module"
#define RDMA_MODULE_ABI    7u

/* Of the program, for the module. */
struct rdma_core {
    int (*fail)(struct wire *w, int err, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
    bool (*has_tag)(const char *root, const char *interface);       /* nic_has_tag() */
    int (*fill)(const char *root, struct nic_rail *r, bool within); /* nic_fill_rdma() */
    const char *(*name)(const struct world *w, unsigned rank, char *text, size_t len);
    /* Between two ranks of this world alone, of the link of this number. */
    void (*token)(const struct world *w, unsigned from, unsigned to, unsigned number,
                  uint8_t token[CHANNEL_TOKEN_BYTES]);
};

struct rdma_module {
    uint32_t abi;
    uint32_t layout; /* RDMA_LAYOUT of the sources it was built from */
    void (*backends)(backend_say_fn *say, void *arg);
    int (*open)(struct wire *w, const struct rdma_core *core);
};

/* Changes with the structs that both sides use. */
#define RDMA_LAYOUT                                                                                \
    ((uint32_t)(sizeof(struct wire) * 31 + sizeof(struct wire_link) * 7 +                          \
                sizeof(struct wire_worker) * 5 + sizeof(struct nic_rail) * 3 +                     \
                sizeof(struct wire_ops) * 11 + sizeof(struct wire_memory) * 13 +                   \
                offsetof(struct wire, state) + sizeof(struct world) * 17 +                         \
                sizeof(struct world_member)))

#endif
