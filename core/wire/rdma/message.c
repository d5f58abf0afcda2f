/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of links without a window, over reliable connections: one completion queue for all.
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
#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/wire/rdma/rdma.h"

#define RECEIVES    (2 * WIRE_POSTS + 2)
#define SIGNAL      16         /* one of so many, and the last of each message */
#define SENDS       128        /* work requests under way */
#define PROBE_NS    500000000u /* what a waiting link is quiet before it is probed */
#define GREETING_NS 10000000u
#define GRANT_MAGIC 0x6772616eu
#define HELLO_MAGIC 0x68656c6cu

struct rdma_grant {
    uint64_t at, bytes;
    uint32_t key, magic;
};

struct rdma_posted {
    uint8_t *at;
    uint64_t bytes, last; /* last: which work request to send, from 1, ends it */
    uint32_t key;
};

struct rdma_messages {
    struct rdma_posted out[WIRE_POSTS], in[WIRE_POSTS];
    struct rdma_grant grants[WIRE_POSTS];
    uint64_t out_posted, out_written, out_sent, out_granted;
    uint64_t in_posted, in_granted, in_received;
    uint64_t written_bytes;                     /* of message out_written */
    uint64_t requests, retired;                 /* work requests to send */
    uint64_t signals[SENDS], signalled, signal; /* which were signalled; next to come */
    uint64_t arrivals;                          /* work requests to receive, used */
    struct rdma_memory slots;                   /* of grants: SENDS, then RECEIVES */
    bool greeted;
    uint64_t moved_ns;
};

static inline struct rdma_queue *queue_of(const struct wire_link *l)
{
    return l->state;
}

/* What fails once fails for good: a connection does not come back. */
static inline int failed(struct wire *w)
{
    return atomic_load_explicit(&w->failed, memory_order_relaxed);
}

/* With a place kept for a probe. */
static bool has_room(const struct rdma_messages *k)
{
    return k->requests - k->retired < SENDS - 1;
}

static uint8_t *slot_in(const struct rdma_messages *k, uint64_t number)
{
    return k->slots.at + (SENDS + number % RECEIVES) * sizeof(struct rdma_grant);
}

static int post(struct rdma_queue *q, struct ibv_send_wr *wr, bool signal)
{
    struct rdma_messages *k = q->messages;
    struct ibv_send_wr *bad;

    signal |= (k->requests + 1) % SIGNAL == 0;
    wr->wr_id = rdma_wr_id(q, RDMA_MESSAGE);
    wr->send_flags |= signal ? IBV_SEND_SIGNALED : 0u;
    int err = ibv_post_send(q->qp, wr, &bad);
    if (err)
        return rdma_refused(q, "sending", err);
    k->requests++;
    if (signal)
        k->signals[k->signalled++ % SENDS] = k->requests;
    return 0;
}

static int post_grant(struct rdma_queue *q, const struct rdma_grant *grant, bool signal)
{
    uint8_t *slot = q->messages->slots.at + q->messages->requests % SENDS * sizeof(*grant);
    struct ibv_sge sge = {
        .addr = (uintptr_t)slot, .length = sizeof(*grant), .lkey = q->messages->slots.mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags =
                                 q->shape.inline_bytes >= sizeof(*grant) ? IBV_SEND_INLINE : 0u};

    memcpy(slot, grant, sizeof(*grant));
    return post(q, &wr, signal);
}

static int post_receive(struct rdma_queue *q, uint64_t number)
{
    struct ibv_sge sge = {.addr = (uintptr_t)slot_in(q->messages, number),
                          .length = sizeof(struct rdma_grant),
                          .lkey = q->messages->slots.mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = rdma_wr_id(q, RDMA_RECEIVE), .sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr *bad;

    return rdma_refused(q, "receiving", ibv_post_recv(q->qp, &wr, &bad));
}

/* Grants come to, and go from, memory that is nobody else's. */
int rdma_messages_create(struct rdma_queue *q)
{
    q->messages = xcalloc(1, sizeof(*q->messages));
    int err =
        rdma_memory_open(q, &q->messages->slots, (SENDS + RECEIVES) * sizeof(struct rdma_grant),
                         IBV_ACCESS_LOCAL_WRITE);
    for (unsigned i = 0; i < RECEIVES && !err; i++)
        err = post_receive(q, i);
    return err;
}

void rdma_messages_close(struct rdma_queue *q)
{
    if (q->messages)
        rdma_memory_close(&q->messages->slots);
    free(q->messages);
}

/* The next piece of the oldest message that is not written whole. */
static int write_piece(struct rdma_queue *q)
{
    struct rdma_messages *k = q->messages;
    struct rdma_posted *m = &k->out[k->out_written % WIRE_POSTS];
    const struct rdma_grant *g = &k->grants[k->out_written % WIRE_POSTS];
    uint64_t left = m->bytes - k->written_bytes, most = q->rail->port_attr.max_msg_sz;

    most = most < q->remote.piece_bytes ? most : q->remote.piece_bytes;
    uint64_t bytes = left < most ? left : most;
    bool last = bytes == left;
    struct ibv_sge sge = {
        .addr = (uintptr_t)m->at + k->written_bytes, .length = (uint32_t)bytes, .lkey = m->key};
    struct ibv_send_wr wr = {
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = last ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
        .send_flags = bytes <= q->shape.inline_bytes ? IBV_SEND_INLINE : 0u,
        .imm_data = htonl((uint32_t)k->out_written),
        .wr.rdma = {g->at + k->written_bytes, g->key},
    };

    if (g->bytes != m->bytes)
        return rdma_fail(rdma_wire_of(q), -EPROTO,
                         "%s receives %llu bytes where %llu are sent to it: the ranks disagree",
                         q->peer, (unsigned long long)g->bytes, (unsigned long long)m->bytes);
    int err = post(q, &wr, last);
    k->written_bytes += bytes;
    if (last) {
        m->last = k->requests;
        k->out_written++;
        k->written_bytes = 0;
    }
    return err;
}

/* What can go, goes. */
static int push(struct rdma_queue *q)
{
    struct rdma_messages *k = q->messages;
    int err = 0;

    while (!err && k->in_granted < k->in_posted && has_room(k)) {
        const struct rdma_posted *m = &k->in[k->in_granted++ % WIRE_POSTS];
        struct rdma_grant grant = {
            .at = (uintptr_t)m->at, .bytes = m->bytes, .key = m->key, .magic = GRANT_MAGIC};
        err = post_grant(q, &grant, false);
    }
    while (!err && k->out_written < k->out_posted && k->out_written < k->out_granted && has_room(k))
        err = write_piece(q);
    return err;
}

static int post_message(struct rdma_queue *q, struct rdma_posted *m, const void *at, size_t bytes,
                        bool out)
{
    struct wire *w = rdma_wire_of(q);
    const struct rdma_region *region = rdma_region_of(q, at, bytes);

    if (!bytes || bytes > w->options.message_most)
        return rdma_fail(w, -EINVAL, "a message of %zu bytes, of %llu at most, for %s", bytes,
                         (unsigned long long)w->options.message_most, q->peer);
    if (!region)
        return rdma_fail(w, -EINVAL, "a message for %s is in memory that was not announced",
                         q->peer);
    *m = (struct rdma_posted){.at = (uint8_t *)(uintptr_t)at,
                              .bytes = bytes,
                              .key = out ? region->mr->lkey : region->mr->rkey};
    return 0;
}

static int message_send(struct wire_link *l, const void *at, size_t bytes)
{
    struct rdma_queue *q = queue_of(l);
    struct rdma_messages *k = q->messages;
    int err = failed(l->worker->wire);

    if (err)
        return err;
    if (k->out_posted - k->out_sent == WIRE_POSTS)
        return -EAGAIN;
    err = post_message(q, &k->out[k->out_posted % WIRE_POSTS], at, bytes, true);
    if (err)
        return err;
    k->out_posted++;
    l->out.posted += bytes;
    return push(q);
}

static int message_receive(struct wire_link *l, void *at, size_t bytes)
{
    struct rdma_queue *q = queue_of(l);
    struct rdma_messages *k = q->messages;
    int err = failed(l->worker->wire);

    if (err)
        return err;
    if (k->in_posted - k->in_received == WIRE_POSTS)
        return -EAGAIN;
    err = post_message(q, &k->in[k->in_posted % WIRE_POSTS], at, bytes, false);
    if (err)
        return err;
    k->in_posted++;
    l->in.posted += bytes;
    return push(q);
}

/* 1: messages are through. */
static int sent(struct rdma_queue *q)
{
    struct rdma_messages *k = q->messages;
    int moved = 0;

    k->retired = k->signals[k->signal++ % SENDS];
    while (k->out_sent < k->out_written && k->out[k->out_sent % WIRE_POSTS].last <= k->retired) {
        wire_went(q->link, k->out[k->out_sent++ % WIRE_POSTS].bytes, 1);
        moved = 1;
    }
    return moved;
}

static int damaged(const struct rdma_queue *q)
{
    return rdma_fail(rdma_wire_of(q), -EPROTO, "%s sent what was not asked for", q->peer);
}

static int take_grant(struct rdma_queue *q, const struct rdma_grant *grant)
{
    struct rdma_messages *k = q->messages;

    if (!k->greeted && grant->magic == HELLO_MAGIC) {
        k->greeted = true;
        return 0;
    }
    if (grant->magic != GRANT_MAGIC || k->out_granted - k->out_written == WIRE_POSTS)
        return damaged(q);
    k->grants[k->out_granted++ % WIRE_POSTS] = *grant;
    return 0;
}

/* The work request stands ready again before its message counts: the peer may answer at once. */
static int arrived(struct rdma_queue *q, const struct ibv_wc *wc)
{
    uint64_t number = q->messages->arrivals++;
    struct rdma_grant grant;

    memcpy(&grant, slot_in(q->messages, number), sizeof(grant));
    int err = post_receive(q, number);
    if (err)
        return err;
    struct rdma_messages *k = q->messages;
    if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
        if (k->in_received == k->in_granted || ntohl(wc->imm_data) != (uint32_t)k->in_received)
            return damaged(q);
        wire_came(q->link, k->in[k->in_received++ % WIRE_POSTS].bytes, 1);
        return 1;
    }
    return wc->byte_len == sizeof(grant) ? take_grant(q, &grant) : damaged(q);
}

/* A connection that fails is a peer that is gone, as far as can be told here; but not where this
 * port went down. */
static int gone(struct wire *w, int err)
{
    err = err == -ENETDOWN ? err : -ECONNRESET;
    atomic_store(&w->failed, err);
    return err;
}

/* Takes what has completed. 0: nothing; 1: something; 2: messages are through, too. */
static int drain(struct wire_worker *k)
{
    struct rdma_worker *rw = k->state;
    struct ibv_wc wc[RDMA_POLL_BATCH];
    int n = rdma_poll(k, &rw->acts, wc), moved = 0;

    if (n <= 0)
        return n;
    uint64_t now_ns = clock_now_ns();
    for (int i = 0; i < n; i++) {
        struct rdma_queue *q = rdma_queue_of(&wc[i]);
        if (wc[i].status != IBV_WC_SUCCESS)
            return gone(k->wire, rdma_bad_completion(k->wire, &wc[i]));
        q->messages->moved_ns = now_ns;
        int came = rdma_kind_of(&wc[i]) == RDMA_RECEIVE ? arrived(q, &wc[i]) : sent(q);
        int err = came < 0 ? came : push(q);
        if (err < 0)
            return err;
        moved |= came;
    }
    return 1 + moved;
}

/* Who waits for a message has nothing under way that could fail: an empty write does, if the peer
 * is gone. It touches no memory there, and the peer's process has no part in it. */
static int probe(struct rdma_queue *q, uint64_t now_ns)
{
    const struct rdma_messages *k = q->messages;
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};
    bool waits = !k->greeted || k->in_received < k->in_posted || k->out_sent < k->out_posted;

    if (!waits || k->signal < k->signalled || now_ns - k->moved_ns < PROBE_NS)
        return 0;
    return post(q, &wr, true);
}

static int look_around(struct wire_worker *k, uint64_t now_ns)
{
    struct rdma_worker *rw = k->state;
    int err = rdma_events(k->wire);

    rw->looked_ns = now_ns;
    if (err) /* a queue pair's own word of its end, or the port's */
        return gone(k->wire, err);
    for (unsigned i = 0; i < k->n_links && !err; i++)
        err = probe(queue_of(&k->links[i]), now_ns);
    return err;
}

/* After an empty poll. A software device works on the CPUs of those who wait for it. */
static void pause_for(struct wire_worker *k, uint64_t idle_ns, uint64_t left_ns, unsigned polls)
{
    const struct wire_options *o = &k->wire->options;
    struct rdma_worker *rw = k->state;
    bool spins = !o->crowded && !o->rdma.events;

    if (!spins || idle_ns > WIRE_SPINS_NS)
        rdma_cq_sleep(&rw->acts, left_ns < RDMA_SLEEP_NS ? left_ns : RDMA_SLEEP_NS);
    else if (rdma_of(k->wire)->rails[0].software && polls % RDMA_YIELD == 0)
        sched_yield();
}

static int message_progress(struct wire_worker *k, enum wire_side sides, uint64_t wait_ns)
{
    struct rdma_worker *rw = k->state;
    uint64_t since_ns = clock_now_ns();

    (void)sides;
    if (failed(k->wire))
        return failed(k->wire);
    for (unsigned polls = 1;; polls++) {
        int got = drain(k);
        if (got < 0 || got > 1)
            return got < 0 ? got : 1;
        uint64_t now_ns = clock_now_ns();
        int err = now_ns - rw->looked_ns >= RDMA_SLEEP_NS ? look_around(k, now_ns) : 0;
        if (err || now_ns - since_ns >= wait_ns)
            return err;
        if (!got)
            pause_for(k, now_ns - since_ns, wait_ns - (now_ns - since_ns), polls);
    }
}

static const struct rdma_queue *not_standing(const struct wire *w, unsigned *n)
{
    const struct rdma_queue *first = NULL;

    *n = 0;
    for (unsigned i = w->n_links; i-- > 0;) {
        const struct rdma_queue *q = &rdma_of(w)->queues[i];
        if (q->messages->greeted && q->messages->retired)
            continue;
        first = q;
        (*n)++;
    }
    return first;
}

/* A link stands when something has come over it, each way: the peer is past its own wait, too, or
 * will be. */
static int wait_for_greetings(struct wire *w)
{
    uint64_t since_ns = clock_now_ns();
    const struct rdma_queue *q;
    unsigned missing = w->n_links, before = missing;
    int err = 0;

    while ((q = not_standing(w, &missing)) != NULL && err >= 0) {
        since_ns = missing < before ? clock_now_ns() : since_ns;
        before = missing;
        err = message_progress(q->link->worker, WIRE_BOTH, GREETING_NS);
        if (err >= 0 && (err = wire_attend(w)) != 0)
            return rdma_fail(w, err, "the wait for %s was ended", q->peer);
        if (clock_now_ns() - since_ns > WIRE_JOIN_NS)
            return rdma_fail(
                w, -ETIMEDOUT,
                "nothing came from %s over '%s' in %u s: can the two devices reach each "
                "other",
                q->peer, q->link->device, (unsigned)(WIRE_JOIN_NS / 1000000000u));
    }
    return err < 0 ? err : 0;
}

int rdma_messages_greet(struct wire *w)
{
    struct rdma_grant hello = {.magic = HELLO_MAGIC};
    int err = 0;

    for (unsigned i = 0; i < w->n_links && !err; i++) {
        struct rdma_queue *q = &rdma_of(w)->queues[i];
        q->messages->moved_ns = clock_now_ns();
        err = post_grant(q, &hello, true);
    }
    return err ? err : wait_for_greetings(w);
}

/* The shape of a link that has none by its messages. */
void rdma_messages_link(struct rdma_queue *q)
{
    q->shape = (struct rdma_shape){
        .pieces = 1, .window = SENDS, .receives = RECEIVES, .inline_bytes = RDMA_INLINE_BYTES};
}

const struct wire_ops rdma_message_ops = {
    .name = "rdma",
    .ways = WIRE_CAN(WIRE_YIELD),
    .memory = rdma_memory_add,
    .link = rdma_link,
    .address = rdma_address,
    .join = rdma_join,
    .send = message_send,
    .receive = message_receive,
    .progress = message_progress,
    .describe = rdma_describe,
    .facts = rdma_facts,
    .rail = rdma_rail,
    .close = rdma_close,
};
