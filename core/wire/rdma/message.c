/* SPDX-License-Identifier: Apache-2.0 */
/* A wire's life over RDMA: its device, memory, addresses and connections. See rdma.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/wire/rdma/rdma.h"

#define RDMA_LINK_RECEIVES (2 * WIRE_POSTS + 2)
#define RDMA_LINK_SIGNAL   16         /* one of so many, and the last of each message */
#define RDMA_LOOK_NS       100000000u /* between two looks at events and at links that wait */
#define RDMA_PROBE_NS      500000000u /* what a waiting link is quiet before it is probed */
#define RDMA_LINK_SENDS    128        /* work requests under way */

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
    struct rdma_posted out[WIRE_POSTS], in[WIRE_POSTS];
    struct rdma_grant grants[WIRE_POSTS];
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
struct rdma_wire {
    struct rdma_end r; /* first: core looks for the module in it */
    struct net_end end;
    struct net_point point;
    struct net_local local;
    const struct rdma_wire_core *core;
    struct rdma_link *links; /* made when the first address is asked for */
    struct ibv_mr **regions;
    unsigned n_regions;
    uint64_t looked_ns;
    int failed; /* for good */
};

static inline struct rdma_wire *rdma_wire_of(const struct wire *f)
{
    return f->state;
}

/* ---- Messages of a wire over RDMA: grants, writes, completions. See rdma.h. ---- */

#define GRANT_MAGIC 0x6772616eu
#define HELLO_MAGIC 0x68656c6cu

/* With a place kept for a probe. */
static bool has_room(const struct rdma_link *k)
{
    return k->requests - k->retired < RDMA_LINK_SENDS - 1;
}

static int refused(struct rdma_wire *fx, const struct rdma_link *k, const char *what, int err)
{
    return rdma_fail(&fx->end, -abs(err), "%s on the connection to %s was refused: %s", what,
                     k->peer, strerror(abs(err)));
}

static int post(struct rdma_wire *fx, struct rdma_link *k, struct ibv_send_wr *wr, bool signal)
{
    struct ibv_send_wr *bad;

    signal |= (k->requests + 1) % RDMA_LINK_SIGNAL == 0;
    wr->wr_id = rdma_wr_id(k->queue->number, false);
    wr->send_flags |= signal ? IBV_SEND_SIGNALED : 0u;
    int err = ibv_post_send(k->queue->qp, wr, &bad);
    if (err)
        return refused(fx, k, "sending", err);
    k->requests++;
    if (signal)
        k->signals[k->signalled++ % RDMA_LINK_SENDS] = k->requests;
    return 0;
}

static int post_grant(struct rdma_wire *fx, struct rdma_link *k, const struct rdma_grant *grant,
                      bool signal)
{
    uint8_t *slot = k->slots_out + k->requests % RDMA_LINK_SENDS * sizeof(*grant);
    struct ibv_sge sge = {
        .addr = (uintptr_t)slot, .length = sizeof(*grant), .lkey = fx->r.rails[0].in.mr->lkey};
    struct ibv_send_wr wr = {
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = IBV_WR_SEND,
        .send_flags = fx->r.stream.inline_bytes >= sizeof(*grant) ? IBV_SEND_INLINE : 0u};

    memcpy(slot, grant, sizeof(*grant));
    return post(fx, k, &wr, signal);
}

static int post_receive(struct rdma_wire *fx, struct rdma_link *k, uint64_t number)
{
    uint8_t *slot = k->slots_in + number % RDMA_LINK_RECEIVES * sizeof(struct rdma_grant);
    struct ibv_sge sge = {.addr = (uintptr_t)slot,
                          .length = sizeof(struct rdma_grant),
                          .lkey = fx->r.rails[0].in.mr->lkey};
    struct ibv_recv_wr wr = {
        .wr_id = rdma_wr_id(k->queue->number, true), .sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr *bad;
    int err = ibv_post_recv(k->queue->qp, &wr, &bad);

    return err ? refused(fx, k, "receiving", err) : 0;
}

/* message.c posts all receives */
static int rdma_wire_ready(struct wire *f, struct rdma_link *k)
{
    int err = 0;

    for (unsigned i = 0; i < RDMA_LINK_RECEIVES && !err; i++)
        err = post_receive(rdma_wire_of(f), k, i);
    return err;
}

/* message.c the first message of a link */
static int rdma_wire_greet(struct wire *f, struct wire_link *l)
{
    struct rdma_grant hello = {.magic = HELLO_MAGIC};
    struct rdma_link *k = l->state;

    k->moved_ns = clock_now_ns();
    return post_grant(rdma_wire_of(f), k, &hello, true);
}

static int grant_next(struct rdma_wire *fx, struct rdma_link *k)
{
    const struct rdma_posted *m = &k->in[k->in_granted % WIRE_POSTS];
    struct rdma_grant grant = {
        .at = (uintptr_t)m->at, .bytes = m->bytes, .key = m->key, .magic = GRANT_MAGIC};

    k->in_granted++;
    return post_grant(fx, k, &grant, false);
}

/* The next piece of the oldest message that is not written whole. */
static int write_piece(struct rdma_wire *fx, struct rdma_link *k)
{
    struct rdma_posted *m = &k->out[k->out_written % WIRE_POSTS];
    const struct rdma_grant *g = &k->grants[k->out_written % WIRE_POSTS];
    uint64_t left = m->bytes - k->written_bytes,
             bytes = left < k->piece_bytes ? left : k->piece_bytes;
    bool last = bytes == left;
    struct ibv_sge sge = {
        .addr = (uintptr_t)m->at + k->written_bytes, .length = (uint32_t)bytes, .lkey = m->key};
    struct ibv_send_wr wr = {
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = last ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
        .send_flags = bytes <= fx->r.stream.inline_bytes ? IBV_SEND_INLINE : 0u,
        .imm_data = htonl((uint32_t)k->out_written),
        .wr.rdma = {g->at + k->written_bytes, g->key},
    };

    if (g->bytes != m->bytes)
        return rdma_fail(&fx->end, -EPROTO,
                         "%s receives %llu bytes where %llu are sent to it: the ranks disagree",
                         k->peer, (unsigned long long)g->bytes, (unsigned long long)m->bytes);
    int err = post(fx, k, &wr, last);
    k->written_bytes += bytes;
    if (last) {
        m->last = k->requests;
        k->out_written++;
        k->written_bytes = 0;
    }
    return err;
}

/* What can go, goes. */
static int push(struct rdma_wire *fx, struct rdma_link *k)
{
    int err = 0;

    while (!err && k->in_granted < k->in_posted && has_room(k))
        err = grant_next(fx, k);
    while (!err && k->out_written < k->out_posted && k->out_written < k->out_granted && has_room(k))
        err = write_piece(fx, k);
    return err;
}

static const struct ibv_mr *region_of(const struct rdma_wire *fx, const void *at, size_t bytes)
{
    for (unsigned i = 0; i < fx->n_regions; i++) {
        const struct ibv_mr *mr = fx->regions[i];
        size_t offset = (uintptr_t)at - (uintptr_t)mr->addr;
        if (offset < mr->length && bytes <= mr->length - offset)
            return mr;
    }
    return NULL;
}

static int post_message(struct wire *f, struct rdma_link *k, struct rdma_posted *m, const void *at,
                        size_t bytes, bool out)
{
    struct rdma_wire *fx = rdma_wire_of(f);
    const struct ibv_mr *mr = region_of(fx, at, bytes);

    if (!bytes || bytes > f->options.message_most)
        return rdma_fail(&fx->end, -EINVAL, "a message of %zu bytes, of %llu at most, for %s",
                         bytes, (unsigned long long)f->options.message_most, k->peer);
    if (!mr)
        return rdma_fail(&fx->end, -EINVAL, "a message for %s is in memory that was not announced",
                         k->peer);
    *m = (struct rdma_posted){
        .at = (uint8_t *)(uintptr_t)at, .bytes = bytes, .key = out ? mr->lkey : mr->rkey};
    return 0;
}

static int rdma_wire_report(struct wire *f, int err);

/* message.c */
static int rdma_wire_send(struct wire_link *l, const void *at, size_t bytes)
{
    struct wire *f = l->worker->wire;
    struct rdma_wire *fx = rdma_wire_of(f);
    struct rdma_link *k = l->state;

    if (fx->failed)
        return fx->failed;
    if (k->out_posted - k->out_sent == WIRE_POSTS)
        return -EAGAIN;
    int err = post_message(f, k, &k->out[k->out_posted % WIRE_POSTS], at, bytes, true);
    if (!err) {
        k->out_posted++;
        l->out.posted += bytes;
        err = push(fx, k);
    }
    return rdma_wire_report(f, err);
}

/* message.c */
static int rdma_wire_receive(struct wire_link *l, void *at, size_t bytes)
{
    struct wire *f = l->worker->wire;
    struct rdma_wire *fx = rdma_wire_of(f);
    struct rdma_link *k = l->state;

    if (fx->failed)
        return fx->failed;
    if (k->in_posted - k->in_received == WIRE_POSTS)
        return -EAGAIN;
    int err = post_message(f, k, &k->in[k->in_posted % WIRE_POSTS], at, bytes, false);
    if (!err) {
        k->in_posted++;
        l->in.posted += bytes;
        err = push(fx, k);
    }
    return rdma_wire_report(f, err);
}

/* 1: messages are through. */
static int sent(struct wire_link *l)
{
    struct rdma_link *k = l->state;
    int moved = 0;

    k->retired = k->signals[k->signal++ % RDMA_LINK_SENDS];
    while (k->out_sent < k->out_written && k->out[k->out_sent % WIRE_POSTS].last <= k->retired) {
        wire_went(l, k->out[k->out_sent++ % WIRE_POSTS].bytes, 1);
        moved = 1;
    }
    return moved;
}

static int damaged(struct rdma_wire *fx, const struct rdma_link *k)
{
    return rdma_fail(&fx->end, -EPROTO, "%s sent what was not asked for", k->peer);
}

static int take_message(struct rdma_wire *fx, struct wire_link *l, uint32_t number)
{
    struct rdma_link *k = l->state;

    if (k->in_received == k->in_granted || number != (uint32_t)k->in_received)
        return damaged(fx, k);
    wire_came(l, k->in[k->in_received++ % WIRE_POSTS].bytes, 1);
    return 1;
}

static int take_grant(struct rdma_wire *fx, struct rdma_link *k, const struct rdma_grant *grant)
{
    if (!k->greeted && grant->magic == HELLO_MAGIC) {
        k->greeted = true;
        return 0;
    }
    if (grant->magic != GRANT_MAGIC || k->out_granted - k->out_written == WIRE_POSTS)
        return damaged(fx, k);
    k->grants[k->out_granted++ % WIRE_POSTS] = *grant;
    return 0;
}

/* The work request stands ready again before its message counts: the peer may answer at once. */
static int arrived(struct rdma_wire *fx, struct wire_link *l, const struct ibv_wc *wc)
{
    struct rdma_link *k = l->state;
    uint64_t number = k->arrivals++;
    struct rdma_grant grant;

    memcpy(&grant, k->slots_in + number % RDMA_LINK_RECEIVES * sizeof(grant), sizeof(grant));
    int err = post_receive(fx, k, number);
    if (err)
        return err;
    if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
        return take_message(fx, l, ntohl(wc->imm_data));
    return wc->byte_len == sizeof(grant) ? take_grant(fx, k, &grant) : damaged(fx, k);
}

/* A connection that fails is a peer that is gone, as far as can be told here; but not where this
 * port went down. */
static int gone(struct rdma_wire *fx, const struct ibv_wc *wc)
{
    int err = rdma_bad_completion(&fx->end, wc);

    return err == -ENETDOWN ? err : -ECONNRESET;
}

static int complete(struct wire *f, const struct ibv_wc *wc, uint64_t now_ns)
{
    struct rdma_wire *fx = rdma_wire_of(f);
    struct wire_link *l = &f->links[wc->wr_id >> 1];
    struct rdma_link *k = &fx->links[wc->wr_id >> 1];

    if (wc->status != IBV_WC_SUCCESS)
        return gone(fx, wc);
    k->moved_ns = now_ns;
    int moved = wc->wr_id & 1 ? arrived(fx, l, wc) : sent(l);
    int err = moved < 0 ? moved : push(fx, k);
    return err ? err : moved;
}

/* Takes what has completed. 0: nothing; 1: something; 2: messages are through, too. */
static int drain(struct wire *f)
{
    struct rdma_wire *fx = rdma_wire_of(f);
    struct ibv_wc wc[RDMA_POLL_BATCH];
    int n = ibv_poll_cq(fx->r.cqs[0].cq, RDMA_POLL_BATCH, wc), moved = 0;

    if (n <= 0)
        return n ? rdma_fail(&fx->end, -EIO, "completions of '%s' cannot be read",
                             fx->end.rails[0].name)
                 : 0;
    uint64_t now_ns = clock_now_ns();
    for (int i = 0; i < n; i++) {
        int err = complete(f, &wc[i], now_ns);
        if (err < 0)
            return err;
        moved |= err;
    }
    return 1 + moved;
}

/* Who waits for a message has nothing under way that could fail: an empty write does, if the peer
 * is gone. It touches no memory there, and the peer's process has no part in it. */
static int probe(struct rdma_wire *fx, struct rdma_link *k, uint64_t now_ns)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};
    bool waits = !k->greeted || k->in_received < k->in_posted || k->out_sent < k->out_posted;

    if (!waits || k->signal < k->signalled || now_ns - k->moved_ns < RDMA_PROBE_NS)
        return 0;
    return post(fx, k, &wr, true);
}

static int look_around(struct rdma_wire *fx, uint64_t now_ns)
{
    int err = rdma_events(&fx->end);

    fx->looked_ns = now_ns;
    if (err == -EIO) /* a queue pair's own word of its end */
        err = -ECONNRESET;
    for (unsigned i = 0; i < fx->r.n_queues && !err; i++)
        err = probe(fx, &fx->links[i], now_ns);
    return err;
}

/* After an empty poll. A software device works on the CPUs of those who wait for it. */
static void pause_for(struct wire *f, uint64_t idle_ns, uint64_t left_ns, unsigned polls)
{
    struct rdma_wire *fx = rdma_wire_of(f);
    bool spins = !f->options.crowded && !f->options.rdma.events;

    if (!spins || idle_ns > WIRE_SPINS_NS)
        rdma_cq_sleep(&fx->r.cqs[0], left_ns < RDMA_LOOK_NS ? left_ns : RDMA_LOOK_NS);
    else if (fx->r.rails[0].software && polls % RDMA_YIELD == 0)
        sched_yield();
}

/* 1, 0 or -errno; see rdma.h. */
static int move(struct wire *f, uint64_t wait_ns)
{
    struct rdma_wire *fx = rdma_wire_of(f);
    uint64_t since_ns = clock_now_ns();

    for (unsigned polls = 1;; polls++) {
        int got = drain(f);
        if (got < 0 || got > 1)
            return got < 0 ? got : 1;
        uint64_t now_ns = clock_now_ns();
        int err = now_ns - fx->looked_ns >= RDMA_LOOK_NS ? look_around(fx, now_ns) : 0;
        if (err || now_ns - since_ns >= wait_ns)
            return err;
        if (!got)
            pause_for(f, now_ns - since_ns, wait_ns - (now_ns - since_ns), polls);
    }
}

/* message.c */
static int rdma_wire_progress(struct wire_worker *k, enum wire_side sides, uint64_t wait_ns)
{
    struct wire *f = k->wire;
    struct rdma_wire *fx = rdma_wire_of(f);

    (void)sides;
    return fx->failed ? fx->failed : rdma_wire_report(f, move(f, wait_ns));
}

#define ADDRESS_MAGIC 0x504c4d46u
/* rxe takes 7 for without end, and a peer that is gone would not be missed */
#define RETRY        6
#define SOFT_TIMEOUT 17 /* who answers for a software device may have to wait for a CPU */
#define GREETINGS_NS 10000000u
/* for the others to be ready: a greeting that is lost is sent again after a quarter of a second */
#define SETTLE_US 2000

struct address {
    uint32_t magic, qpn, psn, reserved;
    uint64_t piece_bytes;
    struct rdma_address_rail rail;
};
_Static_assert(sizeof(struct address) <= WIRE_ADDRESS_MAX, "an address fits");

/* err, and the sentence where the caller of a wire looks for it. What fails once fails for good:
 * a connection does not come back. */
static int rdma_wire_report(struct wire *f, int err)
{
    struct rdma_wire *fx = rdma_wire_of(f);

    if (err < 0 && !fx->failed) {
        snprintf(f->error, sizeof(f->error), "%s", fx->end.error);
        fx->failed = err;
    }
    return fx->failed ? fx->failed : err;
}

static void choose_device(const struct wire *f, struct rdma_wire *fx)
{
    const struct world_member *own = fx->core->member(f->world, fx->core->rank(f->world));

    snprintf(fx->local.devices, sizeof(fx->local.devices), "%s", f->options.device);
    fx->local.node = f->options.node;
    fx->r.own = own->address;
}

int rdma_wire_open(struct wire *f, const struct rdma_wire_core *core)
{
    struct rdma_wire *fx = calloc(1, sizeof(*fx));

    if (!fx) {
        snprintf(f->error, sizeof(f->error), "out of memory");
        return -ENOMEM;
    }
    f->state = fx;
    fx->core = core;
    fx->r.state.module = &plumb_rdma_module;
    fx->r.core = &core->core;
    fx->r.instead = "use tcp over its interface";
    fx->point = (struct net_point){.transport = "rdma", .connections = 1, .rdma = f->options.rdma};
    fx->point.rdma.verb = NET_WRITE_IMM;
    fx->point.rdma.connect = NET_CONNECT_EXCHANGE;
    fx->point.rdma.events = 1; /* to sleep for, when nothing comes */
    fx->point.rdma.inline_bytes = -1;
    if (!fx->point.rdma.retry)
        fx->point.rdma.retry = RETRY;
    fx->end = (struct net_end){
        .point = &fx->point, .local = &fx->local, .memory_node = -1, .state = &fx->r};
    pthread_mutex_init(&fx->end.error_lock, NULL);
    choose_device(f, fx);
    int err = rdma_devices_open(&fx->end);
    if (!err && fx->r.rails[0].software && !fx->point.rdma.timeout)
        fx->point.rdma.timeout = SOFT_TIMEOUT;
    return rdma_wire_report(f, err);
}

static int add_memory(struct wire *f, void *at, size_t bytes)
{
    struct rdma_wire *fx = rdma_wire_of(f);
    const struct rdma_rail *rail = &fx->r.rails[0];
    struct ibv_mr **more =
        realloc(fx->regions, (fx->n_regions + 1) * sizeof(*more)); /* NOLINT: of pointers */

    if (!more)
        return rdma_wire_report(f, rdma_fail(&fx->end, -ENOMEM, "out of memory"));
    fx->regions = more;
    more[fx->n_regions] =
        ibv_reg_mr(rail->pd, at, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (!more[fx->n_regions])
        return rdma_wire_report(f,
                                rdma_no_memory(&fx->end, "registering memory", rail, bytes, errno));
    fx->n_regions++;
    return 0;
}

static int add_link(struct wire_link *l)
{
    struct wire *f = l->worker->wire;
    struct rdma_wire *fx = rdma_wire_of(f);

    return fx->links ? rdma_wire_report(f, rdma_fail(&fx->end, -EINVAL,
                                                     "a link after the first address was made"))
                     : 0;
}

/* Grants come to, and go from, memory that is nobody else's. */
static int open_slots(struct rdma_wire *fx, unsigned n)
{
    const uint64_t link_bytes = (RDMA_LINK_SENDS + RDMA_LINK_RECEIVES) * sizeof(struct rdma_grant);
    struct rdma_rail *rail = &fx->r.rails[0];
    int err =
        rdma_memory_open(&fx->end, rail, &rail->in, n * link_bytes, 1, IBV_ACCESS_LOCAL_WRITE);

    for (unsigned i = 0; i < n && !err; i++) {
        fx->links[i].slots_out = rail->in.at + i * link_bytes;
        fx->links[i].slots_in =
            fx->links[i].slots_out + RDMA_LINK_SENDS * sizeof(struct rdma_grant);
    }
    return err;
}

static int open_link(struct wire *f, unsigned i)
{
    struct rdma_wire *fx = rdma_wire_of(f);
    struct rdma_link *k = &fx->links[i];
    struct rdma_queue *q = &fx->r.queues[i];

    k->queue = q;
    fx->core->name(f->world, f->links[i].peer, k->peer, sizeof(k->peer));
    q->number = i;
    q->peer = k->peer;
    q->shape = &fx->r.stream;
    q->send_cq = q->recv_cq = &fx->r.cqs[0];
    q->psn = (uint32_t)(clock_now_ns() / 64 + i * 7919u) & 0xffffff;
    int err = rdma_queue_make(&fx->end, q, &fx->r.stream);
    if (!err)
        err = rdma_queue_init(&fx->end, q, IBV_ACCESS_REMOTE_WRITE);
    return err ? err : rdma_wire_ready(f, k);
}

/* All links are known. */
static int open_links(struct wire *f)
{
    struct rdma_wire *fx = rdma_wire_of(f);
    struct rdma_end *r = &fx->r;
    unsigned n = f->n_links;

    r->stream = (struct rdma_shape){.pieces = 1,
                                    .window = RDMA_LINK_SENDS,
                                    .receives = RDMA_LINK_RECEIVES,
                                    .inline_bytes = RDMA_INLINE_BYTES};
    fx->links = calloc(n, sizeof(*fx->links));
    r->queues = calloc(n, sizeof(*r->queues));
    r->cqs = calloc(1, sizeof(*r->cqs));
    if (!fx->links || !r->queues || !r->cqs)
        return rdma_fail(&fx->end, -ENOMEM, "out of memory");
    r->n_queues = n;
    r->n_cqs = 1;
    int err = rdma_cq_create(&fx->end, &r->cqs[0], &r->rails[0],
                             (uint64_t)n * (RDMA_LINK_SENDS + RDMA_LINK_RECEIVES));
    if (!err)
        err = open_slots(fx, n);
    for (unsigned i = 0; i < n && !err; i++)
        err = open_link(f, i);
    return err;
}

static int make_address(struct wire_link *l, void *at, size_t *len)
{
    struct wire *f = l->worker->wire;
    struct rdma_wire *fx = rdma_wire_of(f);
    const struct rdma_rail *rail = &fx->r.rails[0];
    struct address address = {.magic = ADDRESS_MAGIC};
    int err = fx->links ? 0 : open_links(f);

    if (err || !fx->links)
        return rdma_wire_report(f, err ? err : -ENOMEM);
    const struct rdma_queue *q = fx->links[l - f->links].queue;
    address.qpn = q->qp->qp_num;
    address.psn = q->psn;
    address.piece_bytes =
        rail->port_attr.max_msg_sz < 1u << 30 ? rail->port_attr.max_msg_sz : 1u << 30;
    rdma_rail_address(rail, &address.rail);
    memcpy(at, &address, sizeof(address));
    *len = sizeof(address);
    return 0;
}

static int connect_link(struct wire *f, unsigned i, const void *at, size_t len)
{
    struct rdma_wire *fx = rdma_wire_of(f);
    struct rdma_link *k = &fx->links[i];
    struct rdma_rail *rail = &fx->r.rails[0];
    struct address address = {0};

    if (len == sizeof(address))
        memcpy(&address, at, len);
    if (len != sizeof(address) || address.magic != ADDRESS_MAGIC || !address.piece_bytes)
        return rdma_fail(&fx->end, -EPROTO, "the address of %s is damaged", k->peer);
    uint64_t own_bytes = rail->port_attr.max_msg_sz;
    k->piece_bytes = own_bytes < address.piece_bytes ? own_bytes : address.piece_bytes;
    k->queue->remote = (struct rdma_remote){.qpn = address.qpn, .psn = address.psn};
    int err = rdma_same_protocol(&fx->end, 0, &address.rail, k->peer);
    if (!err)
        err = rdma_queue_connect(&fx->end, k->queue, &address.rail);
    unsigned mtu_bytes = rdma_path_mtu(rail->mtu_bytes, address.rail.mtu_bytes);
    if (mtu_bytes < fx->end.rails[0].mtu_bytes) /* the least of all paths is told */
        fx->end.rails[0].mtu_bytes = mtu_bytes;
    f->links[i].state = k;
    snprintf(f->links[i].device, sizeof(f->links[i].device), "%s", fx->end.rails[0].name);
    return err;
}

static const struct rdma_link *not_standing(const struct wire *f, unsigned *n)
{
    const struct rdma_wire *fx = rdma_wire_of(f);
    const struct rdma_link *first = NULL;

    *n = 0;
    for (unsigned i = f->n_links; i-- > 0;)
        if (!fx->links[i].greeted || !fx->links[i].retired) {
            first = &fx->links[i];
            (*n)++;
        }
    return first;
}

/* A link stands when something has come over it, each way: the peer is past its own wait, too, or
 * will be. */
static int wait_for_greetings(struct wire *f)
{
    struct rdma_wire *fx = rdma_wire_of(f);
    uint64_t since_ns = clock_now_ns();
    const struct rdma_link *k;
    unsigned missing = f->n_links, before = missing;
    int err = 0;

    while ((k = not_standing(f, &missing)) != NULL && err >= 0) {
        since_ns = missing < before ? clock_now_ns() : since_ns;
        before = missing;
        err = rdma_wire_progress(f->workers, WIRE_BOTH, GREETINGS_NS);
        if (err >= 0 && (err = wire_attend(f)) != 0)
            return rdma_fail(&fx->end, err, "the wait for %s was ended", k->peer);
        if (clock_now_ns() - since_ns > WIRE_JOIN_NS)
            return rdma_fail(
                &fx->end, -ETIMEDOUT,
                "nothing came from %s over '%s' in %u s: can the two devices reach each "
                "other",
                k->peer, fx->end.rails[0].name, (unsigned)(WIRE_JOIN_NS / 1000000000u));
    }
    return err < 0 ? err : 0;
}

static int join(struct wire *f, const void *const *addresses, const size_t *lens)
{
    struct rdma_wire *fx = rdma_wire_of(f);
    int err = 0;

    for (unsigned i = 0; i < f->n_links && !err; i++)
        err = connect_link(f, i, addresses[i], lens[i]);
    if (!err)
        usleep(SETTLE_US);
    for (unsigned i = 0; i < f->n_links && !err; i++)
        err = rdma_wire_greet(f, &f->links[i]);
    if (!err)
        err = wait_for_greetings(f);
    if (!err)
        rdma_facts_begin(&fx->r);
    return rdma_wire_report(f, err);
}

static void describe(struct wire *f, char *text, size_t len)
{
    const struct rdma_wire *fx = rdma_wire_of(f);
    const struct rdma_rail *rail = &fx->r.rails[0];
    bool lid = rail->protocol == RDMA_INFINIBAND && rail->port_attr.lid;

    snprintf(text, len, "%s, %s %u, MTU %u", fx->end.rails[0].kind, lid ? "LID" : "GID",
             lid ? rail->port_attr.lid : rail->gid_index, fx->end.rails[0].mtu_bytes);
}

static size_t facts(struct wire *f, struct net_fact *out)
{
    return rdma_facts(&rdma_wire_of(f)->end, out);
}

static int rail(struct wire *f, struct net_rail *out)
{
    *out = rdma_wire_of(f)->end.rails[0];
    return 0;
}

static void close_wire(struct wire *f)
{
    struct rdma_wire *fx = rdma_wire_of(f);

    rdma_queues_close(&fx->r);
    for (unsigned i = 0; i < fx->n_regions; i++)
        ibv_dereg_mr(fx->regions[i]);
    rdma_devices_close(&fx->r);
    pthread_mutex_destroy(&fx->end.error_lock);
    free(fx->regions);
    free(fx->links);
    free(fx);
}

const struct wire_ops rdma_wire_ops = {
    .name = "rdma",
    .memory = add_memory,
    .link = add_link,
    .address = make_address,
    .join = join,
    .send = rdma_wire_send,
    .receive = rdma_wire_receive,
    .progress = rdma_wire_progress,
    .describe = describe,
    .facts = facts,
    .rail = rail,
    .close = close_wire,
};
