/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of a fabric over RDMA: grants, writes, completions. See rdma/fabric.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "core/wire/rdma/fabric.h"

#define GRANT_MAGIC 0x6772616eu
#define HELLO_MAGIC 0x68656c6cu

/* With a place kept for a probe. */
static bool has_room(const struct rdma_link *k)
{
    return k->requests - k->retired < RDMA_LINK_SENDS - 1;
}

static int refused(struct rdma_fabric *fx, const struct rdma_link *k, const char *what, int err)
{
    return rdma_fail(&fx->end, -abs(err), "%s on the connection to %s was refused: %s", what,
                     k->peer, strerror(abs(err)));
}

static int post(struct rdma_fabric *fx, struct rdma_link *k, struct ibv_send_wr *wr, bool signal)
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

static int post_grant(struct rdma_fabric *fx, struct rdma_link *k, const struct rdma_grant *grant,
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

static int post_receive(struct rdma_fabric *fx, struct rdma_link *k, uint64_t number)
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

int rdma_fabric_ready(struct fabric *f, struct rdma_link *k)
{
    int err = 0;

    for (unsigned i = 0; i < RDMA_LINK_RECEIVES && !err; i++)
        err = post_receive(rdma_fabric_of(f), k, i);
    return err;
}

int rdma_fabric_greet(struct fabric *f, struct fabric_link *l)
{
    struct rdma_grant hello = {.magic = HELLO_MAGIC};
    struct rdma_link *k = l->state;

    k->moved_ns = clock_now_ns();
    return post_grant(rdma_fabric_of(f), k, &hello, true);
}

static int grant_next(struct rdma_fabric *fx, struct rdma_link *k)
{
    const struct rdma_posted *m = &k->in[k->in_granted % FABRIC_POSTS];
    struct rdma_grant grant = {
        .at = (uintptr_t)m->at, .bytes = m->bytes, .key = m->key, .magic = GRANT_MAGIC};

    k->in_granted++;
    return post_grant(fx, k, &grant, false);
}

/* The next piece of the oldest message that is not written whole. */
static int write_piece(struct rdma_fabric *fx, struct rdma_link *k)
{
    struct rdma_posted *m = &k->out[k->out_written % FABRIC_POSTS];
    const struct rdma_grant *g = &k->grants[k->out_written % FABRIC_POSTS];
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
static int push(struct rdma_fabric *fx, struct rdma_link *k)
{
    int err = 0;

    while (!err && k->in_granted < k->in_posted && has_room(k))
        err = grant_next(fx, k);
    while (!err && k->out_written < k->out_posted && k->out_written < k->out_granted && has_room(k))
        err = write_piece(fx, k);
    return err;
}

static const struct ibv_mr *region_of(const struct rdma_fabric *fx, const void *at, size_t bytes)
{
    for (unsigned i = 0; i < fx->n_regions; i++) {
        const struct ibv_mr *mr = fx->regions[i];
        size_t offset = (uintptr_t)at - (uintptr_t)mr->addr;
        if (offset < mr->length && bytes <= mr->length - offset)
            return mr;
    }
    return NULL;
}

static int post_message(struct fabric *f, struct rdma_link *k, struct rdma_posted *m,
                        const void *at, size_t bytes, bool out)
{
    struct rdma_fabric *fx = rdma_fabric_of(f);
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

int rdma_fabric_send(struct fabric *f, struct fabric_link *l, const void *at, size_t bytes)
{
    struct rdma_fabric *fx = rdma_fabric_of(f);
    struct rdma_link *k = l->state;

    if (fx->failed)
        return fx->failed;
    if (k->out_posted - k->out_sent == FABRIC_POSTS)
        return -EAGAIN;
    int err = post_message(f, k, &k->out[k->out_posted % FABRIC_POSTS], at, bytes, true);
    if (!err) {
        k->out_posted++;
        l->posted_out += bytes;
        err = push(fx, k);
    }
    return rdma_fabric_told(f, err);
}

int rdma_fabric_receive(struct fabric *f, struct fabric_link *l, void *at, size_t bytes)
{
    struct rdma_fabric *fx = rdma_fabric_of(f);
    struct rdma_link *k = l->state;

    if (fx->failed)
        return fx->failed;
    if (k->in_posted - k->in_received == FABRIC_POSTS)
        return -EAGAIN;
    int err = post_message(f, k, &k->in[k->in_posted % FABRIC_POSTS], at, bytes, false);
    if (!err) {
        k->in_posted++;
        l->posted_in += bytes;
        err = push(fx, k);
    }
    return rdma_fabric_told(f, err);
}

/* 1: messages are through. */
static int sent(struct fabric_link *l)
{
    struct rdma_link *k = l->state;
    int moved = 0;

    k->retired = k->signals[k->signal++ % RDMA_LINK_SENDS];
    while (k->out_sent < k->out_written && k->out[k->out_sent % FABRIC_POSTS].last <= k->retired) {
        l->sent += k->out[k->out_sent++ % FABRIC_POSTS].bytes;
        l->messages_out++;
        moved = 1;
    }
    return moved;
}

static int damaged(struct rdma_fabric *fx, const struct rdma_link *k)
{
    return rdma_fail(&fx->end, -EPROTO, "%s sent what was not asked for", k->peer);
}

static int take_message(struct rdma_fabric *fx, struct fabric_link *l, uint32_t number)
{
    struct rdma_link *k = l->state;

    if (k->in_received == k->in_granted || number != (uint32_t)k->in_received)
        return damaged(fx, k);
    l->received += k->in[k->in_received++ % FABRIC_POSTS].bytes;
    l->messages_in++;
    return 1;
}

static int take_grant(struct rdma_fabric *fx, struct rdma_link *k, const struct rdma_grant *grant)
{
    if (!k->greeted && grant->magic == HELLO_MAGIC) {
        k->greeted = true;
        return 0;
    }
    if (grant->magic != GRANT_MAGIC || k->out_granted - k->out_written == FABRIC_POSTS)
        return damaged(fx, k);
    k->grants[k->out_granted++ % FABRIC_POSTS] = *grant;
    return 0;
}

/* The work request stands ready again before its message counts: the peer may answer at once. */
static int arrived(struct rdma_fabric *fx, struct fabric_link *l, const struct ibv_wc *wc)
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
static int gone(struct rdma_fabric *fx, const struct ibv_wc *wc)
{
    int err = rdma_bad_completion(&fx->end, wc);

    return err == -ENETDOWN ? err : -ECONNRESET;
}

static int complete(struct fabric *f, const struct ibv_wc *wc, uint64_t now_ns)
{
    struct rdma_fabric *fx = rdma_fabric_of(f);
    struct fabric_link *l = &f->links[wc->wr_id >> 1];
    struct rdma_link *k = &fx->links[wc->wr_id >> 1];

    if (wc->status != IBV_WC_SUCCESS)
        return gone(fx, wc);
    k->moved_ns = now_ns;
    int moved = wc->wr_id & 1 ? arrived(fx, l, wc) : sent(l);
    int err = moved < 0 ? moved : push(fx, k);
    return err ? err : moved;
}

/* Takes what has completed. 0: nothing; 1: something; 2: messages are through, too. */
static int drain(struct fabric *f)
{
    struct rdma_fabric *fx = rdma_fabric_of(f);
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
static int probe(struct rdma_fabric *fx, struct rdma_link *k, uint64_t now_ns)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};
    bool waits = !k->greeted || k->in_received < k->in_posted || k->out_sent < k->out_posted;

    if (!waits || k->signal < k->signalled || now_ns - k->moved_ns < RDMA_PROBE_NS)
        return 0;
    return post(fx, k, &wr, true);
}

static int look_around(struct rdma_fabric *fx, uint64_t now_ns)
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
static void pause_for(struct fabric *f, uint64_t idle_ns, uint64_t left_ns, unsigned polls)
{
    struct rdma_fabric *fx = rdma_fabric_of(f);
    bool spins = !f->options.crowded && !f->options.rdma.events;

    if (!spins || idle_ns > FABRIC_SPINS_NS)
        rdma_cq_sleep(&fx->r.cqs[0], left_ns < RDMA_LOOK_NS ? left_ns : RDMA_LOOK_NS);
    else if (fx->r.rails[0].software && polls % RDMA_YIELD == 0)
        sched_yield();
}

/* 1, 0 or -errno; see fabric.h. */
static int move(struct fabric *f, uint64_t wait_ns)
{
    struct rdma_fabric *fx = rdma_fabric_of(f);
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

int rdma_fabric_progress(struct fabric *f, uint64_t wait_ns)
{
    struct rdma_fabric *fx = rdma_fabric_of(f);

    return fx->failed ? fx->failed : rdma_fabric_told(f, move(f, wait_ns));
}
