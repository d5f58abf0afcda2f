/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the module plumb-rdma.so. A wire has rails (ports of devices), and a queue pair (RC) for
 * each link. Queues of one worker share two completion queues: one of what they post to send, one
 * of what they receive, since a thread may drive each.
 *
 *   device.c   which ports there are, which are taken, by which address
 *   memory.c   registration, of the host's memory and of a GPU's
 *   queue.c    queue pairs, their work requests and completion queues; what errors mean
 *   window.c   messages of links with a window: by the verb that was asked for
 *   message.c  messages of links without: grants, and writes with immediate data
 *   connect.c  addresses; queue pairs made ready to send
 *   module.c   what the system says of a device; the tables
 *
 * With a window, work requests are prepared once. A message that is longer than the port's largest
 * goes as several pieces, a work request each, and counts once. Only one end acts: who sends, or,
 * where it is read, who receives. Receives stand ready from the start, whether somebody waits for a
 * message or not: four at least, for words.
 */
#ifndef PLUMB_CORE_WIRE_RDMA_RDMA_H
#define PLUMB_CORE_WIRE_RDMA_RDMA_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "core/backend.h"
#include "core/clock.h"
#include "core/wire/wire.h"

#define RDMA_POLL_BATCH   32
#define RDMA_IN_FLIGHT    (32u << 20) /* bytes on a rail: a stream must end within a fair time */
#define RDMA_INLINE_BYTES 220
#define RDMA_TIMEOUT      16 /* of a queue pair: 8 tries of 0.27 s, or up to 4 times as long */
#define RDMA_RETRY        7
#define RDMA_COUNTERS     4
#define RDMA_SPINS        4096 /* empty polls between two looks at the clock and at events */
#define RDMA_YIELD        64 /* of a stream: empty polls between two offers of the CPU to others */
#define RDMA_SLEEP_NS     100000000u /* between two looks at events */

struct rdma_rail {
    char device[48];
    unsigned port;
    struct ibv_context *own, *context; /* as opened; what queues are of (RDMA CM has its own) */
    struct rdma_cm_id *anchor;         /* RDMA CM: bound to the rail's address; the peer listens */
    uint16_t listens;                  /* RDMA CM: at this port; 0: not yet */
    struct ibv_pd *pd;
    struct ibv_device_attr attr;
    struct ibv_port_attr port_attr;
    enum nic_protocol protocol;
    const char *software; /* "rxe", "siw", NULL */
    char driver[24];      /* "mlx5_core", "vmw_pvrdma", "rxe" */
    bool is_function;     /* SR-IOV virtual function */
    union ibv_gid gid;
    unsigned gid_index;
    bool vlan; /* RoCE: the GID is of an interface whose frames have a VLAN tag */
    struct sockaddr_storage address;  /* of its interface; family 0: none known */
    unsigned mtu_bytes;               /* active, or as asked */
    uint64_t counters[RDMA_COUNTERS]; /* at join */
};

/* Memory that wire_memory() told, at one rail. */
struct rdma_region {
    struct ibv_mr *mr;
    uintptr_t at;
    size_t bytes;
    const char *device; /* of a GPU: "cuda:0"; NULL: the host's */
};

/* The module's own, of the host. */
struct rdma_memory {
    uint8_t *at;
    struct ibv_mr *mr;
};

struct rdma_cq {
    struct ibv_cq *cq;
    struct ibv_comp_channel *channel; /* to sleep for; NULL: it is polled */
    bool armed;
    unsigned unacked;
};

struct rdma_worker {
    struct rdma_cq acts, hears; /* completions of what is posted to send, of receives */
    uint64_t looked_ns;
};

/* How messages of one size are cut, and how many are under way. */
struct rdma_shape {
    uint64_t bytes, piece_bytes; /* of a message; of each piece but the last */
    unsigned pieces;
    unsigned window;       /* work requests in flight */
    unsigned signal_every; /* 1 where there are pieces */
    unsigned slots;    /* prepared work requests to send: a multiple of pieces and signal_every */
    unsigned receives; /* work requests to receive: a multiple of pieces */
    unsigned inline_bytes;
};

/* What a link's end tells the other. */
struct rdma_address {
    uint32_t magic;
    uint8_t by_cm, on_gpu, protocol, turns;
    uint32_t qpn, psn, lid, mtu_bytes;
    uint32_t reads, in_key, out_key, reserved; /* reads: at once, as the one that is read */
    uint64_t in_at, out_at, piece_bytes;       /* both ends must cut messages alike */
    uint8_t gid[16];
    struct sockaddr_in6 listens; /* RDMA CM: where; IPv4's, too. Family 0: not known */
};
_Static_assert(sizeof(struct rdma_address) <= 200, "addresses of all connections fit a frame");

struct rdma_queue {
    struct wire_link *link; /* NULL: none */
    struct rdma_rail *rail;
    char peer[96]; /* for messages */
    struct rdma_shape shape;
    struct ibv_qp *qp;
    struct rdma_cm_id *id; /* RDMA CM */
    struct rdma_cq *acts, *hears;
    struct rdma_address remote;
    uint32_t psn;
    /* Of links with a window: */
    bool initiates, reads, turns; /* posts messages; by reads; see wire_window.turns */
    bool looks;                   /* for a message, at its memory */
    struct ibv_send_wr *send;
    struct ibv_recv_wr *recv;
    struct ibv_sge *sges;
    struct ibv_sge nothing; /* for words on iWARP, where memory must be named */
    int n_nothing;
    uint64_t wanted, posted, completed; /* work requests to send, of messages */
    uint64_t *marks; /* `posted` at those that were signalled, in a ring of marks_mask + 1 */
    unsigned marks_mask;
    unsigned signalled, heard_of, unsignalled;
    unsigned recv_head, recv_free;
    uint64_t recv_done;      /* work requests to receive that messages took */
    uint64_t recv_posted;    /* ever */
    unsigned empty, told;    /* parts of a word that came, and that went */
    _Atomic uint64_t *posts; /* recv_posted, for the other end to read; NULL: no credits */
    _Atomic uint64_t *heard; /* where the other end's is read to; NULL: sends need no credits */
    struct rdma_memory credits[2]; /* of these */
    uint64_t granted, taken; /* of the other end's: posted as far as is known, taken by sends */
    bool asking;             /* a reading of it is under way */
    struct rdma_messages *messages; /* of links without a window: message.c's */
};

struct rdma {
    const struct rdma_core *core;
    struct sockaddr_storage own; /* where others reach this end; family 0: not known */
    struct rdma_rail rails[NIC_RAILS_MAX];
    unsigned n_rails;
    struct rdma_region *regions[NIC_RAILS_MAX];
    unsigned n_regions[NIC_RAILS_MAX];
    struct rdma_queue *queues; /* as the wire's links */
    bool made;
    bool by_cm;
    struct rdma_event_channel *cm_events;
};

static inline struct rdma *rdma_of(const struct wire *w)
{
    return w->state;
}

static inline struct wire *rdma_wire_of(const struct rdma_queue *q)
{
    return q->link->worker->wire;
}

#define rdma_fail(w, err, ...) (rdma_of(w)->core->fail((w), (err), __VA_ARGS__))

static inline bool rdma_reads(const struct wire *w)
{
    return w->options.rdma.verb == RDMA_READ;
}

/* Does a message take a work request of its receiver? */
static inline bool rdma_takes_receives(const struct wire *w)
{
    return w->options.rdma.verb == RDMA_SEND || w->options.rdma.verb == RDMA_WRITE_IMM;
}

static inline uint64_t rdma_piece_bytes(const struct rdma_shape *s, uint64_t piece)
{
    return piece + 1 < s->pieces ? s->piece_bytes : s->bytes - s->piece_bytes * (s->pieces - 1);
}

/* Which queue a completion is of, and what completed. */
enum rdma_kind { RDMA_MESSAGE, RDMA_RECEIVE, RDMA_WORD, RDMA_CREDITS, RDMA_NUDGE };
#define RDMA_KIND 7u

static inline uint64_t rdma_wr_id(const struct rdma_queue *q, enum rdma_kind kind)
{
    return (uintptr_t)q | kind;
}

static inline enum rdma_kind rdma_kind_of(const struct ibv_wc *wc)
{
    return (enum rdma_kind)(wc->wr_id & RDMA_KIND);
}

static inline struct rdma_queue *rdma_queue_of(const struct ibv_wc *wc)
{
    return (struct rdma_queue *)(uintptr_t)(wc->wr_id & ~(uint64_t)RDMA_KIND);
}

/* device.c: fills in the rails of both. */
int rdma_devices_open(struct wire *w);
void rdma_devices_close(struct rdma *r);
void rdma_devices_say(backend_say_fn *say, void *arg);

/* module.c */
void rdma_sysfs_driver(struct rdma_rail *rail);
int rdma_sysfs_node(const struct rdma_rail *rail);
void rdma_facts_begin(struct rdma *r);

/* memory.c */
int rdma_memory_add(struct wire *w, struct wire_memory *m);
const struct rdma_region *rdma_region_of(const struct rdma_queue *q, const void *at, size_t bytes);
int rdma_memory_open(struct rdma_queue *q, struct rdma_memory *m, size_t bytes, int access);
void rdma_memory_close(struct rdma_memory *m);
void rdma_regions_close(struct rdma *r);
int rdma_no_memory(struct wire *w, const char *what, const struct rdma_rail *rail, uint64_t bytes,
                   int err);

int rdma_no_inline(struct wire *w, const char *device); /* of a GPU's memory */

/* queue.c */
int rdma_queues_open(struct wire *w); /* of all links, when they are known */
void rdma_queues_close(struct wire *w);
int rdma_queue_create(struct rdma_queue *q); /* RDMA CM: when it connects */
/* Drivers answer with an error's number, some with a negative one. */
int rdma_refused(const struct rdma_queue *q, const char *what, int err);
int rdma_events(struct wire *w); /* of ports and devices: 0, or the error that one means */
int rdma_bad_completion(struct wire *w, const struct ibv_wc *wc);
/* What has completed: how many, RDMA_POLL_BATCH at most, or an error. */
int rdma_poll(struct wire_worker *k, const struct rdma_cq *cq, struct ibv_wc *wc);
int rdma_unread(struct wire_worker *k); /* that they cannot be read */
/* The first call arms, for the caller to poll once more; the next one sleeps until something
 * completes, so long at most. */
void rdma_cq_sleep(struct rdma_cq *cq, uint64_t most_ns);

/* window.c */
int rdma_window_link(struct wire_link *l);     /* its shape */
int rdma_window_prepare(struct rdma_queue *q); /* before its address is told */
int rdma_window_post_receives(struct rdma_queue *q, unsigned n);
int rdma_window_ready(struct rdma_queue *q); /* its remote is known */
int rdma_window_greet(struct wire *w);       /* the higher rank speaks first: iWARP asks for it */
void rdma_window_close(struct rdma_queue *q);

/* message.c */
void rdma_messages_link(struct rdma_queue *q);
int rdma_messages_create(struct rdma_queue *q);
int rdma_messages_greet(struct wire *w);
void rdma_messages_close(struct rdma_queue *q);

/* connect.c */
int rdma_cm_open(struct wire *w, struct rdma_rail *rail);
int rdma_address(struct wire_link *l, void *address, size_t *len);
int rdma_join(struct wire *w, const void *const *addresses, const size_t *lens);

/* The tables: of a wire whose links have windows, and of one whose links have none. */
extern const struct wire_ops rdma_window_ops, rdma_message_ops;

/* module.c, for them */
int rdma_link(struct wire_link *l);
size_t rdma_facts(struct wire *w, struct wire_fact *facts);
int rdma_rail(struct wire *w, struct nic_rail *rail);
void rdma_describe(struct wire *w, char *text, size_t len);
void rdma_close(struct wire *w);

#endif
