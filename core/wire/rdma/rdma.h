/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the module plumb-rdma.so. An end has rails (ports of devices) and queues: one queue pair
 * (RC) for each connection and one for the ping. Queues of one thread share completion queues.
 *
 *   device.c module.c device.c   which ports there are, which are taken, by which address
 *   memory.c memory.c        buffers and their registration, of the host and of a GPU; filled and
 *                            compared
 *   queue.c queue.c   queue pairs and their prepared work requests
 *   connect.c connect.c           what both ends tell each other; queue pairs made ready to send
 *   queue.c                how many sends an iWARP receiver is ready for
 *   stream.c                   completions: polled or by events; what errors and port events mean
 *   stream.c ping.c ping.c module.c   the hooks of struct net_ops
 *   message.c message.c   messages of a world's ranks: the hooks of struct wire_ops, on the same
 *                       devices and queues
 *
 * A message that is longer than the port's largest goes as several pieces, a work request each, and
 * counts once.
 */
#ifndef PLUMB_CORE_WIRE_RDMA_RDMA_H
#define PLUMB_CORE_WIRE_RDMA_RDMA_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "core/backend.h"
#include "core/wire/wire.h"

#define RDMA_POLL_BATCH   32
#define RDMA_IN_FLIGHT    (32u << 20) /* bytes on a rail: a stream must end within a fair time */
#define RDMA_INLINE_BYTES 220
#define RDMA_TIMEOUT      16 /* of a queue pair: 8 tries of 0.27 s, or up to 4 times as long */
#define RDMA_RETRY        7
#define RDMA_COUNTERS     4
#define RDMA_BURST        1024 /* pings back to back, at most */
#define RDMA_SPINS        4096 /* empty polls between two looks at the clock and at events */
#define RDMA_YIELD        64 /* of a stream: empty polls between two offers of the CPU to others */

enum rdma_protocol { RDMA_INFINIBAND, RDMA_ROCE_1, RDMA_ROCE_2, RDMA_IWARP };

/* Of the benchmark's memory at one rail: all buffers of one kind in one registration. */
struct rdma_memory {
    uint8_t *at;
    size_t bytes, stride;
    struct ibv_mr *mr;
    const char *way; /* of a GPU: how it was registered, "dma-buf"; NULL: the host's */
};

struct rdma_rail {
    char device[48];
    unsigned port;
    struct ibv_context *own, *context; /* as opened; what queues are of (RDMA CM has its own) */
    struct rdma_cm_id *anchor;         /* RDMA CM: bound to the rail's address; the peer listens */
    struct ibv_pd *pd;
    struct ibv_device_attr attr;
    struct ibv_port_attr port_attr;
    enum rdma_protocol protocol;
    const char *software; /* "rxe", "siw", NULL */
    char driver[24];      /* "mlx5_core", "vmw_pvrdma", "rxe" */
    bool is_function;     /* SR-IOV virtual function */
    union ibv_gid gid;
    unsigned gid_index;
    bool vlan; /* RoCE: the GID is of an interface whose frames have a VLAN tag */
    struct sockaddr_storage address; /* of its interface; family 0: none known */
    unsigned mtu_bytes;              /* active, or as asked */
    struct rdma_memory in, out;
    struct rdma_memory told, heard; /* counts of receives, where sends take credits: see queue.c */
    uint64_t counters[RDMA_COUNTERS]; /* at join */
};

struct rdma_cq {
    struct ibv_cq *cq;
    struct ibv_comp_channel *channel; /* with events */
    bool armed;
    unsigned unacked;
    unsigned first, n; /* queues whose completions it gets */
};

/* How messages of one size are cut, and how many are under way: the same for all queues of a
 * kind. */
struct rdma_shape {
    uint64_t bytes, piece_bytes; /* of a message; of each piece but the last */
    unsigned pieces;
    unsigned window;       /* work requests in flight */
    unsigned signal_every; /* 1 where there are pieces */
    unsigned slots;    /* prepared work requests to send: a multiple of pieces and signal_every */
    unsigned receives; /* work requests to receive: a multiple of pieces */
    unsigned inline_bytes;
};

/* What a connection must know of the rail at its other end. */
struct rdma_address_rail {
    uint8_t gid[16];
    uint32_t protocol, lid, mtu_bytes, reads; /* reads: at once, as the one that is read */
    struct sockaddr_storage address;          /* RDMA CM: where the peer listens */
};

struct rdma_remote {
    uint64_t in_at, out_at;
    uint32_t in_key, out_key, qpn, psn;
};

struct rdma_queue {
    unsigned number, rail;
    const char *peer; /* for messages */
    const struct rdma_shape *shape;
    struct ibv_qp *qp;
    struct rdma_cm_id *id; /* RDMA CM */
    struct rdma_cq *send_cq, *recv_cq;
    uint8_t *in, *out; /* NULL: nothing comes in, nothing goes out */
    bool initiates;    /* posts messages */
    bool sends,
        receives; /* data goes out, comes in; a peer that is read has an `in` for words only */
    struct rdma_remote remote;
    uint32_t psn;
    struct ibv_send_wr *send;
    struct ibv_recv_wr *recv;
    struct ibv_sge *sges;
    struct ibv_sge nothing; /* for empty messages on iWARP, where one must be named */
    int n_nothing;
    uint64_t posted, completed; /* work requests to send */
    unsigned recv_head, recv_free;
    uint64_t recv_done;      /* of work requests to receive: for stream.c and ping.c */
    uint64_t send_done;      /* ping.c: completions of what it signalled */
    uint64_t recv_posted;    /* work requests to receive, ever */
    _Atomic uint64_t *told;  /* the same, for the other end to read; NULL: it needs no credits */
    _Atomic uint64_t *heard; /* where the other end's is read to; NULL: sends need no credits */
    uint64_t granted, taken; /* of the other end's: posted as far as is known, taken by sends */
    bool asking;             /* a reading of it is under way */
    unsigned ping_unsignalled, ping_signalled;
    uint64_t pings, sign_ns;
};

/* Pings that were timed together, of which `told` have been handed out. */
struct rdma_burst {
    unsigned n, told;
    uint64_t ns[RDMA_BURST];
};

struct rdma_end {
    struct rdma_state state; /* first */
    const struct rdma_core *core;
    struct sockaddr_storage own; /* where others reach this end; family 0: not known */
    /* for messages: what to do on devices that have no writes with immediate data */
    const char *instead;
    struct rdma_rail rails[NET_RAILS_MAX];
    unsigned n_rails;
    struct rdma_shape stream, ping;
    struct rdma_queue *queues; /* point->connections, then the ping's where there is one */
    unsigned n_queues;
    struct rdma_cq *cqs; /* two a group of queues: for what is sent, for what is received */
    unsigned n_cqs;
    struct rdma_burst burst;
    struct rdma_gpu *gpu; /* that buffers are on; NULL: the host has them */
    /* pings carry their numbers as immediate data: a CPU cannot look at all buffers */
    bool marks_by_imm;
    bool by_cm;
    struct rdma_event_channel *cm_events;
};

static inline struct rdma_end *rdma_of(const struct net_end *e)
{
    return e->state;
}

#define rdma_fail(e, err, ...) (rdma_of(e)->core->fail((e), (err), __VA_ARGS__))

extern const struct rdma_module plumb_rdma_module;

/* Which direction leaves this end. */
static inline enum net_direction rdma_out(const struct net_end *e)
{
    return e->leader ? NET_FORWARD : NET_REVERSE;
}

static inline enum net_direction rdma_in(const struct net_end *e)
{
    return e->leader ? NET_REVERSE : NET_FORWARD;
}

/* So many are posted at once, at least, but for the rest of a message: a few cost less than each by
 * itself. */
static inline unsigned rdma_least_posted(const struct rdma_shape *s)
{
    return s->window / 8 > s->signal_every ? s->window / 8 : s->signal_every;
}

static inline uint64_t rdma_piece_bytes(const struct rdma_shape *s, uint64_t piece)
{
    return piece + 1 < s->pieces ? s->piece_bytes : s->bytes - s->piece_bytes * (s->pieces - 1);
}

/* device.c: fills in r->rails and e->rails. */
int rdma_devices_open(struct net_end *e);
void rdma_devices_close(struct rdma_end *r);
void rdma_devices_say(backend_say_fn *say, void *arg);

/* module.c */
void rdma_sysfs_driver(struct rdma_rail *rail);
int rdma_sysfs_node(const struct rdma_rail *rail);

/* memory.c */
int rdma_memory_open(struct net_end *e, struct rdma_rail *rail, struct rdma_memory *m,
                     uint64_t buffer_bytes, unsigned n, int access);
/* Of the host, wherever messages are. */
int rdma_host_memory_open(struct net_end *e, const struct rdma_rail *rail, struct rdma_memory *m,
                          int access);
void rdma_memory_close(struct rdma_end *r, struct rdma_memory *m);
int rdma_no_memory(struct net_end *e, const char *what, const struct rdma_rail *rail,
                   uint64_t bytes, int err);

/* Of the host and of a GPU alike: `wrong` makes every byte another one, *first is SIZE_MAX where
 * all is right. */
void rdma_memory_tell(struct net_end *e, unsigned rail); /* in the rail's text */
int rdma_fill(struct net_end *e, void *at, uint64_t bytes, uint64_t seed, bool wrong);
int rdma_compare(struct net_end *e, const void *at, uint64_t bytes, uint64_t seed, size_t *first);

/* queue.c */
int rdma_queues_open(struct net_end *e);
void rdma_queues_close(struct rdma_end *r);
int rdma_queue_create(struct net_end *e, struct rdma_queue *q);
/* The parts of it: a queue pair of that shape, which may lose its inline bytes; its first state. */
int rdma_queue_make(struct net_end *e, struct rdma_queue *q, struct rdma_shape *shape);
int rdma_queue_init(struct net_end *e, struct rdma_queue *q, unsigned access);
/* With a channel where the point asks for events. */
int rdma_cq_create(struct net_end *e, struct rdma_cq *c, const struct rdma_rail *rail,
                   uint64_t entries);
int rdma_queue_prepare(struct net_end *e, struct rdma_queue *q); /* when its remote is known */
int rdma_post_receives(struct net_end *e, struct rdma_queue *q, unsigned n);
int rdma_post_sends(struct net_end *e, struct rdma_queue *q, unsigned n);
int rdma_post_empty(struct net_end *e, struct rdma_queue *q); /* signalled */

/* Reads what the other end has posted, unless that is under way; its completion is a read's. */
int rdma_credits_ask(struct net_end *e, struct rdma_queue *q);
bool rdma_credits_heard(struct rdma_queue *q); /* it came: are there more than before? */

/* connect.c */
int rdma_address(struct net_end *e, void *address, size_t *len);
int rdma_join(struct net_end *e, const void *address, size_t len);
void rdma_rail_address(const struct rdma_rail *rail, struct rdma_address_rail *out);
/* Does rail i speak what `to` speaks? -EOPNOTSUPP. */
int rdma_same_protocol(struct net_end *e, unsigned i, const struct rdma_address_rail *to,
                       const char *peer);
unsigned rdma_path_mtu(unsigned own_bytes, unsigned theirs_bytes);
/* Ready to receive and to send, over the MTU that both ends can. q->remote is known. */
int rdma_queue_connect(struct net_end *e, struct rdma_queue *q, const struct rdma_address_rail *to);
int rdma_cm_open(struct net_end *e, struct rdma_rail *rail);

/* stream.c: a wait without end or deadline is no wait. */
struct rdma_wait {
    uint64_t since_ns;
    unsigned empty;
    const char *what; /* for messages: "what was sent to it", "a message" */
};
/* After an empty poll: spins, sleeps for an event, or ends with an error. */
int rdma_wait_more(struct net_end *e, struct rdma_queue *q, struct rdma_cq *cq,
                   struct rdma_wait *w);
int rdma_events(struct net_end *e); /* of ports and devices: 0, or the error that one means */
int rdma_bad_completion(struct net_end *e, const struct ibv_wc *wc);
/* The first call arms, for the caller to poll once more; the next one sleeps until something
 * completes, so long at most. */
void rdma_cq_sleep(struct rdma_cq *cq, uint64_t most_ns);

static inline void rdma_wait_reset(struct rdma_wait *w)
{
    w->empty = 0;
    w->since_ns = 0;
}

/* wr_id: which queue, and is it a receive? */
static inline uint64_t rdma_wr_id(unsigned queue, bool receive)
{
    return (uint64_t)queue << 1 | receive;
}

/* stream.c, ping.c, module.c: hooks of struct net_ops. */
int rdma_work(struct net_worker *w);
int rdma_ping(struct net_end *e, bool last, uint64_t *ns);
int rdma_pong(struct net_end *e);
int rdma_check(struct net_end *e);
int rdma_greet(struct net_end *e); /* the leader sends first on each queue: iWARP asks for it */
size_t rdma_facts(struct net_end *e, struct net_fact *facts);
void rdma_facts_begin(struct rdma_end *r);

/*
 * Messages between ranks (core/wire/wire.h) over reliable connections: a queue pair for each
 * link, one completion queue for all.
 *
 * A posted receive is told to the peer by a grant, a small send: where the message goes, how long
 * it is, by which key. The sender writes it there, from where it lies, and the last write has
 * immediate data: the number of the message. So nothing is copied, a peer can reach no memory but
 * the benchmark's own, and no sender is ever too early: what is granted is bounded by WIRE_POSTS,
 * and work requests to receive stand ready for as many grants and as many messages.
 *
 * A link's state counts; message i is at i % WIRE_POSTS:
 *
 *   in:   posted >= granted >= received         out:  posted >= written >= sent,  granted by the
 *         peer >= written
 *
 * Not each work request to send is signalled; a completion retires those before it, too.
 */

/* message.c */
extern const struct wire_ops rdma_wire_ops;
int rdma_wire_open(struct wire *f, const struct rdma_wire_core *core);

#endif
