/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One message there and back. The last byte of each carries its number, modulo 127 and from 1, and a bit that says
 * that it is the last one; a write with immediate data carries them there.
 *
 *   write      the end that waits looks at the last byte of its buffer
 *   write-imm  it waits for the completion of a receive
 *   send       the same
 *
 * Where buffers of either end are on a GPU, which the CPU neither looks at nor writes to, writes and sends carry the number as
 * immediate data and complete a receive, all of them.
 *
 *   read       the leader alone acts: the time is that of the whole read, there and back. Between reads the peer
 *              is told that the leader is alive (an empty message) and, at the end, that it is done (one byte)
 *
 * Own completions are asked for now and then only: an answer is proof enough.
 *
 * The leader sends many back to back, and hands their times out one by one: between two calls of its hook much else
 * runs, which leaves the way cold: the first three after it are slower by a tenth. The time of each is from its own beginning to the next one's, so that all that a message
 * costs is in it: the posting of receives and the reading of completions, too.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/wire/rdma/rdma.h"

#define LAST        0x80u
#define UNSIGNALLED 32u
#define SIGN_NS     2000000000u
#define BURST_NS    20000000u
#define LOOKS       65536u /* at memory, which is much quicker to look at than a completion queue */

static struct rdma_queue *ping_queue(const struct net_end *e)
{
    return &rdma_of(e)->queues[e->point->connections];
}

static uint8_t mark_of(uint64_t number, bool last)
{
    return (uint8_t)(number % 127 + 1) | (last ? LAST : 0);
}

static bool by_imm(const struct net_end *e)
{
    return e->point->rdma.verb == NET_WRITE_IMM || rdma_of(e)->marks_by_imm;
}

/* Takes completions of what was signalled: 0, or the error of one. */
static int reap(struct net_end *e, struct rdma_queue *q)
{
    struct ibv_wc wc[4];
    int n = ibv_poll_cq(q->send_cq->cq, 4, wc);

    for (int i = 0; i < n; i++) {
        if (wc[i].status != IBV_WC_SUCCESS)
            return rdma_bad_completion(e, &wc[i]);
        q->ping_signalled--;
    }
    return n < 0 ? rdma_fail(e, -EIO, "completions of '%s' cannot be read", e->rails[q->rail].name)
                 : 0;
}

/* After many empty looks: is something wrong? Errors of what was sent come as its completions. And where this end has to
 * share its CPU with the other one, or with a software device's threads, that one must run. */
static __attribute__((noinline)) int look_around(struct net_end *e, struct rdma_queue *q,
                                                 struct rdma_wait *w)
{
    int err = q->ping_signalled && !rdma_is_read(e->point) ? reap(e, q) : 0;

    sched_yield();
    w->empty = RDMA_SPINS - 1;
    return err ? err : rdma_wait_more(e, q, NULL, w);
}

static inline int spin(struct net_end *e, struct rdma_queue *q, struct rdma_wait *w, unsigned turns)
{
    return ++w->empty % turns ? 0 : look_around(e, q, w);
}

/* Room in the queue: all that is signalled is through before more is sent than it holds. */
static int make_room(struct net_end *e, struct rdma_queue *q)
{
    struct rdma_wait w = {.what = "a message"};
    int err = 0;

    while (!err && q->ping_signalled) {
        err = reap(e, q);
        if (!err && q->ping_signalled)
            err = spin(e, q, &w, RDMA_SPINS);
    }
    return err;
}

static int send_message(struct net_end *e, struct rdma_queue *q, uint8_t mark)
{
    unsigned pieces = q->shape->pieces;
    struct ibv_send_wr *last = &q->send[pieces - 1];
    bool signal = ++q->ping_unsignalled == UNSIGNALLED || pieces > 1 || rdma_is_read(e->point);
    unsigned flags = last->send_flags & ~(unsigned)IBV_SEND_SIGNALED;

    if (by_imm(e))
        last->imm_data = mark;
    else if (!rdma_is_read(e->point))
        q->out[q->shape->bytes - 1] = mark;
    last->send_flags = flags | (signal ? IBV_SEND_SIGNALED : 0u);
    if (signal) {
        q->ping_unsignalled = 0;
        q->ping_signalled++;
    }
    return rdma_post_sends(e, q, pieces);
}

/* Waits for the mark in the buffer. */
static int wait_written(struct net_end *e, struct rdma_queue *q, uint8_t expected, uint8_t *mark)
{
    const volatile uint8_t *at = q->in + q->shape->bytes - 1;
    struct rdma_wait w = {.what = "a message"};
    int err = 0;

    while ((*at & ~LAST) != expected && !err)
        err = spin(e, q, &w, LOOKS);
    *mark = *at;
    return err;
}

/* Waits for n completions of receives; the last one's immediate data. */
static int wait_received(struct net_end *e, struct rdma_queue *q, unsigned n, uint32_t *imm)
{
    struct rdma_wait w = {.what = "a message"};
    struct ibv_wc wc;
    int err = 0;

    while (n && !err) {
        int got = ibv_poll_cq(q->recv_cq->cq, 1, &wc);
        if (got > 0 && wc.status != IBV_WC_SUCCESS)
            return rdma_bad_completion(e, &wc);
        if (got > 0) {
            n--;
            q->recv_free++;
            *imm = wc.imm_data;
        } else if (q->recv_cq->channel) {
            if (q->ping_signalled)
                err = reap(e, q);
            if (!err)
                err = rdma_wait_more(e, q, q->recv_cq, &w);
        } else {
            err = spin(e, q, &w, RDMA_SPINS);
        }
    }
    return err;
}

/* Waits for the other end's message number q->pings. */
static int receive_message(struct net_end *e, struct rdma_queue *q, uint8_t *mark)
{
    uint8_t expected = mark_of(q->pings, false);
    uint32_t imm = 0;
    int err;

    if (e->point->rdma.verb == NET_WRITE && !by_imm(e))
        return wait_written(e, q, expected, mark);
    bool sent = e->point->rdma.verb == NET_SEND;
    err = wait_received(e, q, sent ? q->shape->pieces : 1, &imm);
    *mark = by_imm(e) ? (uint8_t)imm : q->in[q->shape->bytes - 1];
    if (!err && (*mark & ~LAST) != expected)
        return rdma_fail(e, -EBADMSG, "a message came out of its order");
    return err;
}

/* Receives are posted again, and own completions are read. */
static int tidy(struct net_end *e, struct rdma_queue *q)
{
    int err = 0;

    q->pings++;
    if (q->recv_free * 2 >= q->shape->receives) {
        err = rdma_post_receives(e, q, q->recv_free);
        q->recv_free = 0;
    }
    return err ? err : q->ping_signalled ? make_room(e, q) : 0;
}

/* A message to a peer that is read: it is alive still, or done. What the byte holds does not matter. */
static int tell(struct net_end *e, struct rdma_queue *q, bool done)
{
    struct ibv_sge one = *q->send[0].sg_list;
    struct ibv_send_wr wr = {.wr_id = rdma_wr_id(q->number, false),
                             .sg_list = &one,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;

    one.length = 1;
    int err = done ? ibv_post_send(q->qp, &wr, &bad) : rdma_post_empty(e, q);
    if (err)
        return rdma_fail(e, -abs(err), "the peer cannot be told: %s", strerror(abs(err)));
    q->ping_signalled++;
    return make_room(e, q);
}

/* The completion of a read: with events it sleeps until it comes; without, it is polled for. */
static int wait_read(struct net_end *e, struct rdma_queue *q)
{
    struct rdma_wait w = {.what = "what was read"};
    struct ibv_cq *cq = q->send_cq->cq;
    struct ibv_wc wc;
    int err = 0, n;

    while ((n = ibv_poll_cq(cq, 1, &wc)) == 0 && !err)
        err =
            q->send_cq->channel ? rdma_wait_more(e, q, q->send_cq, &w) : spin(e, q, &w, RDMA_SPINS);
    if (n < 0)
        err = rdma_fail(e, -EIO, "completions of '%s' cannot be read", e->rails[q->rail].name);
    else if (n && wc.status != IBV_WC_SUCCESS)
        err = rdma_bad_completion(e, &wc);
    q->ping_signalled -= n > 0;
    return err;
}

static int there_and_back(struct net_end *e, struct rdma_queue *q, bool last)
{
    bool read = rdma_is_read(e->point);
    uint8_t mark = mark_of(q->pings, last);
    int err = send_message(e, q, mark);

    if (!err)
        err = read ? wait_read(e, q) : receive_message(e, q, &mark);
    return err ? err : tidy(e, q);
}

static int burst(struct net_end *e, struct rdma_queue *q, bool last)
{
    struct rdma_burst *b = &rdma_of(e)->burst;
    uint64_t begin_ns = clock_now_ns(), since_ns = begin_ns, now_ns;
    int err;

    b->n = b->told = 0;
    do {
        err = there_and_back(e, q, last);
        now_ns = clock_now_ns();
        b->ns[b->n++] = now_ns - since_ns;
        since_ns = now_ns;
    } while (!err && !last && b->n < RDMA_BURST && now_ns - begin_ns < BURST_NS);
    return err;
}

/* A peer that is read learns now and then that this end lives, and when it is done. */
static int sign(struct net_end *e, struct rdma_queue *q, bool last)
{
    uint64_t now_ns = clock_now_ns();

    if (!rdma_is_read(e->point) || (!last && now_ns - q->sign_ns < SIGN_NS))
        return 0;
    q->sign_ns = now_ns;
    return tell(e, q, last);
}

int rdma_ping(struct net_end *e, bool last, uint64_t *ns)
{
    struct rdma_queue *q = ping_queue(e);
    struct rdma_burst *b = &rdma_of(e)->burst;
    int err = 0;

    if (last || b->told == b->n) {
        err = burst(e, q, last);
        if (!err)
            err = sign(e, q, last);
    }
    *ns = b->ns[b->told++];
    return err;
}

/* The peer of reads has nothing to do but to wait for the word that they are over; it leaves its CPU alone. */
static int pong_read(struct net_end *e, struct rdma_queue *q)
{
    struct rdma_wait w = {.what = "a sign of life"};
    struct ibv_wc wc;
    int err = 0;

    while (!err) {
        int got = ibv_poll_cq(q->recv_cq->cq, 1, &wc);
        if (got > 0 && wc.status != IBV_WC_SUCCESS)
            return rdma_bad_completion(e, &wc);
        if (got > 0) {
            rdma_wait_reset(&w);
            err = rdma_post_receives(e, q, 1);
            if (wc.byte_len)
                return err;
            continue;
        }
        if (!q->recv_cq->channel) {
            usleep(10000);
            w.empty = RDMA_SPINS - 1;
        }
        err = rdma_wait_more(e, q, q->recv_cq, &w);
    }
    return err;
}

int rdma_pong(struct net_end *e)
{
    struct rdma_queue *q = ping_queue(e);
    uint8_t mark = 0;
    int err = 0;

    if (rdma_is_read(e->point))
        return pong_read(e, q);
    while (!err && !(mark & LAST)) {
        err = receive_message(e, q, &mark);
        if (!err)
            err = send_message(e, q, mark);
        if (!err)
            err = tidy(e, q);
    }
    return err;
}
