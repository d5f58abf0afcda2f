/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between ranks (core/wire/fabric.h) over reliable connections: a queue pair for each link, one completion queue for all.
 *
 * A posted receive is told to the peer by a grant, a small send: where the message goes, how long it is, by which key. The sender writes it
 * there, from where it lies, and the last write has immediate data: the number of the message. So nothing is copied, a peer can reach
 * no memory but the benchmark's own, and no sender is ever too early: what is granted is bounded by FABRIC_POSTS, and work
 * requests to receive stand ready for as many grants and as many messages.
 *
 * A link's state counts; message i is at i % FABRIC_POSTS:
 *
 *   in:   posted >= granted >= received         out:  posted >= written >= sent,  granted by the peer >= written
 *
 * Not each work request to send is signalled; a completion retires those before it, too.
 */
#ifndef PLUMB_CORE_WIRE_RDMA_FABRIC_H
#define PLUMB_CORE_WIRE_RDMA_FABRIC_H

#include "core/wire/rdma/rdma.h"

#define RDMA_LINK_SENDS    128 /* work requests under way */
#define RDMA_LINK_RECEIVES (2 * FABRIC_POSTS + 2)
#define RDMA_LINK_SIGNAL   16         /* one of so many, and the last of each message */
#define RDMA_LOOK_NS       100000000u /* between two looks at events and at links that wait */
#define RDMA_PROBE_NS      500000000u /* what a waiting link is quiet before it is probed */

struct rdma_grant {
    uint64_t at, bytes;
    uint32_t key, magic;
};

struct rdma_posted {
    uint8_t *at;
    uint64_t bytes, last; /* last: which work request to send, from 1, ends it */
    uint32_t key;
};

struct rdma_link {
    struct rdma_queue *queue;
    char peer[96];
    uint64_t piece_bytes;
    struct rdma_posted out[FABRIC_POSTS], in[FABRIC_POSTS];
    struct rdma_grant grants[FABRIC_POSTS];
    uint64_t out_posted, out_written, out_sent, out_granted;
    uint64_t in_posted, in_granted, in_received;
    uint64_t written_bytes;                               /* of message out_written */
    uint64_t requests, retired;                           /* work requests to send */
    uint64_t signals[RDMA_LINK_SENDS], signalled, signal; /* which were signalled; next to come */
    uint64_t arrivals;                                    /* work requests to receive, used */
    uint8_t *slots_out, *slots_in;                        /* of grants */
    bool greeted;
    uint64_t moved_ns;
};

/* The devices, queues and messages of net's ends serve here too: they know a struct net_end. */
struct rdma_fabric {
    struct rdma_end r; /* first: core looks for the module in it */
    struct net_end end;
    struct net_point point;
    struct net_local local;
    const struct rdma_fabric_core *core;
    struct rdma_link *links; /* made when the first card is asked for */
    struct ibv_mr **regions;
    unsigned n_regions;
    uint64_t looked_ns;
    int failed; /* for good */
};

static inline struct rdma_fabric *rdma_fabric_of(const struct fabric *f)
{
    return f->state;
}

/* fabric.c */
extern const struct fabric_ops rdma_fabric_ops;
int rdma_fabric_open(struct fabric *f, const struct rdma_fabric_core *core);
/* err, and the sentence where the caller of a fabric looks for it. */
int rdma_fabric_told(struct fabric *f, int err);

/* fabric_move.c */
int rdma_fabric_greet(struct fabric *f, struct fabric_link *l); /* the first message of a link */
int rdma_fabric_ready(struct fabric *f, struct rdma_link *k);   /* posts all receives */
int rdma_fabric_send(struct fabric *f, struct fabric_link *l, const void *at, size_t bytes);
int rdma_fabric_receive(struct fabric *f, struct fabric_link *l, void *at, size_t bytes);
int rdma_fabric_progress(struct fabric *f, uint64_t wait_ns);

#endif
