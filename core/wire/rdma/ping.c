/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One message there and back. The last byte of each carries its number, modulo 127 and from 1, and
 * a bit that says that it is the last one; a write with immediate data carries them there.
 *
 *   write      the end that waits looks at the last byte of its buffer
 *   write-imm  it waits for the completion of a receive
 *   send       the same
 *
 * Where buffers of either end are on a GPU, which the CPU neither looks at nor writes to, writes
 * and sends carry the number as immediate data and complete a receive, all of them.
 *
 *   read       the leader alone acts: the time is that of the whole read, there and back. Between
 *              reads the peer is told that the leader is alive (an empty message) and, at the end,
 *              that it is done (one byte)
 *
 * Own completions are asked for now and then only: an answer is proof enough.
 *
 * The leader sends many back to back, and hands their times out one by one: between two calls of
 * its hook much else runs, which leaves the way cold: the first three after it are slower by a
 * tenth. The time of each is from its own beginning to the next one's, so that all that a message
 * costs is in it: the posting of receives and the reading of completions, too.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/wire/rdma/rdma.h"

/* Data: what the streams left is compared, then every buffer is made wrong on purpose, both ends
 * wait for each other, one fresh message goes over each connection and direction that there is,
 * both wait again, and that is compared. Ends wait for each other by empty messages on each queue,
 * behind what was posted before. */

/* Empty messages take as many receives as a whole one, so that pieces stay in step. */
static unsigned greetings(const struct net_end *e, const struct rdma_queue *q)
{
    return e->point->rdma.verb == NET_SEND ? q->shape->pieces : 1;
}

static int take(struct net_end *e, struct rdma_queue *q, struct ibv_cq *cq, uint64_t *done,
                unsigned *seen)
{
    struct ibv_wc wc[RDMA_POLL_BATCH];
    int n = ibv_poll_cq(cq, RDMA_POLL_BATCH, wc), err = 0;

    for (int i = 0; i < n && !err; i++) {
        struct rdma_queue *of = &rdma_of(e)->queues[wc[i].wr_id >> 1];
        if (wc[i].status != IBV_WC_SUCCESS)
            return rdma_bad_completion(e, &wc[i]);
        if (wc[i].wr_id & 1) {
            of->recv_free++;
            err = rdma_post_receives(e, of, of->recv_free);
            of->recv_free = 0;
        }
        ++*(uint64_t *)((char *)of + ((char *)done - (char *)q));
    }
    *seen += n > 0;
    return n < 0 ? rdma_fail(e, -EIO, "completions cannot be read") : err;
}

/* Waits until every queue has as many completions of both kinds as it is due. The other end may be
 * longer about its buffers. */
static int wait_all(struct net_end *e, const uint64_t *sends, const uint64_t *receives)
{
    struct rdma_end *r = rdma_of(e);
    struct rdma_wait w = {.what = "a message"};

    for (unsigned i = 0; i < r->n_queues;) {
        struct rdma_queue *q = &r->queues[i];
        unsigned seen = 0;
        if (q->send_done >= sends[i] && q->recv_done >= receives[i]) {
            i++;
            continue;
        }
        int err = take(e, q, q->send_cq->cq, &q->send_done, &seen);
        if (!err)
            err = take(e, q, q->recv_cq->cq, &q->recv_done, &seen);
        if (seen)
            rdma_wait_reset(&w);
        else
            usleep(50);
        w.empty = RDMA_SPINS - 1;
        if (!err && !seen)
            err = rdma_wait_more(e, q, NULL, &w);
        if (err)
            return err;
    }
    return 0;
}

static int post_greetings(struct net_end *e, struct rdma_queue *q, uint64_t *due)
{
    int err = 0;

    for (unsigned n = greetings(e, q); n-- > 0 && !err; ++*due)
        err = rdma_post_empty(e, q);
    return err;
}

/* What each queue is due in all, since the streams ended. */
struct due {
    uint64_t sends[NET_CONNECTIONS_MAX + 1], receives[NET_CONNECTIONS_MAX + 1];
};

/* Both ends are here, and all that the other one posted before is through. */
static int meet(struct net_end *e, struct due *due)
{
    struct rdma_end *r = rdma_of(e);
    int err = 0;

    for (unsigned i = 0; i < r->n_queues && !err; i++) {
        err = post_greetings(e, &r->queues[i], &due->sends[i]);
        due->receives[i] += greetings(e, &r->queues[i]);
    }
    return err ? err : wait_all(e, due->sends, due->receives);
}

static void start_due(struct rdma_end *r, struct due *due)
{
    memset(due, 0, sizeof(*due));
    for (unsigned i = 0; i < r->n_queues; i++)
        r->queues[i].send_done = r->queues[i].recv_done = 0;
}

int rdma_greet(struct net_end *e)
{
    struct rdma_end *r = rdma_of(e);
    struct due due;
    int err = 0;

    start_due(r, &due);
    if (!e->leader) { /* first hear, then speak */
        for (unsigned i = 0; i < r->n_queues; i++)
            due.receives[i] = greetings(e, &r->queues[i]);
        err = wait_all(e, due.sends, due.receives);
        for (unsigned i = 0; i < r->n_queues; i++)
            due.receives[i] = 0;
    }
    for (unsigned i = 0; i < r->n_queues && !err; i++) {
        err = post_greetings(e, &r->queues[i], &due.sends[i]);
        due.receives[i] += greetings(e, &r->queues[i]);
    }
    if (!err)
        err = wait_all(e, due.sends, due.receives);
    start_due(r, &due);
    return err;
}

/* Bytes of a message that are data: a ping's last one may be its number. */
static uint64_t data_bytes(const struct net_end *e, const struct rdma_queue *q)
{
    bool marked = q->number == e->point->connections && e->point->rdma.verb != NET_READ &&
                  e->point->rdma.verb != NET_WRITE_IMM && !rdma_of(e)->marks_by_imm;

    return q->shape->bytes - marked;
}

static int compare(struct net_end *e, struct rdma_queue *q, uint64_t bytes, unsigned round)
{
    uint64_t seed = net_seed(e->point, rdma_in(e), q->number, round);
    size_t at = SIZE_MAX;
    int err = bytes ? rdma_compare(e, q->in, bytes, seed, &at) : 0;

    return err || at == SIZE_MAX
               ? err
               : rdma_fail(e, -EBADMSG,
                           "wrong data on connection %u of '%s' from %s: byte %zu of %llu (%s)",
                           q->number, e->rails[q->rail].name, channel_peer(e->channel), at,
                           (unsigned long long)bytes, round ? "a fresh message" : "streamed");
}

static bool has_received(const struct net_end *e, const struct rdma_queue *q)
{
    return q->number == e->point->connections
               ? q->pings > 0
               : e->expect[q->number] || atomic_load(&e->counts[q->number].received);
}

static int compare_all(struct net_end *e, unsigned round)
{
    struct rdma_end *r = rdma_of(e);
    int err = 0;

    for (unsigned i = 0; i < r->n_queues && !err; i++) {
        struct rdma_queue *q = &r->queues[i];
        if (q->receives && (round || has_received(e, q)))
            err = compare(e, q, round ? q->shape->bytes : data_bytes(e, q), round);
    }
    return err;
}

/* What goes out is of this round; where something is to come in, every byte is wrong. */
static int fill_all(struct net_end *e, unsigned round)
{
    struct rdma_end *r = rdma_of(e);
    int err = 0;

    for (unsigned i = 0; i < r->n_queues && !err; i++) {
        struct rdma_queue *q = &r->queues[i];
        uint64_t bytes = q->shape->bytes;
        if (q->sends)
            err = rdma_fill(e, q->out, bytes, net_seed(e->point, rdma_out(e), i, round), false);
        if (q->receives && !err)
            err = rdma_fill(e, q->in, bytes, net_seed(e->point, rdma_in(e), i, round), true);
    }
    return err;
}

/* Does a message of it take a receive of the other end's? A ping's may, whatever the verb is. */
static bool takes_receives(const struct net_end *e, const struct rdma_queue *q)
{
    return rdma_takes_receives(e->point) ||
           (q->number == e->point->connections && rdma_of(e)->marks_by_imm);
}

/* One message of each queue that initiates; every piece is signalled. */
static int send_fresh(struct net_end *e, struct due *due)
{
    struct rdma_end *r = rdma_of(e);
    int err = 0;

    for (unsigned i = 0; i < r->n_queues && !err; i++) {
        struct rdma_queue *q = &r->queues[i];
        for (unsigned p = 0; p < q->shape->pieces && !err && q->initiates; p++) {
            struct ibv_send_wr wr = q->send[p], *bad;
            wr.next = NULL;
            wr.send_flags |= IBV_SEND_SIGNALED;
            err = ibv_post_send(q->qp, &wr, &bad);
            q->taken++;
            due->sends[i]++;
        }
        if (q->receives && takes_receives(e, q))
            due->receives[i] += greetings(e, q);
    }
    return err ? rdma_fail(e, -abs(err), "a fresh message cannot be sent: %s", strerror(abs(err)))
               : 0;
}

int rdma_check(struct net_end *e)
{
    struct rdma_end *r = rdma_of(e);
    struct due due;

    start_due(r, &due);
    int wrong = compare_all(e, 0); /* the peer, which finds nothing wrong, still wants to be met */
    int err = fill_all(e, 1);
    if (!err)
        err = meet(e, &due);
    if (!err)
        err = send_fresh(e, &due);
    if (!err)
        err = wait_all(e, due.sends, due.receives);
    if (!err)
        err = meet(e, &due);
    if (wrong)
        return wrong;
    if (!err)
        err = compare_all(e, 1);
    if (!err)
        err = fill_all(e, 0); /* as it was: streams may go on */
    if (!err) {
        for (unsigned i = e->point->connections; i < r->n_queues; i++)
            if (r->queues[i].in && !r->gpu)
                r->queues[i].in[r->queues[i].shape->bytes - 1] = 0; /* no ping's number */
        start_due(r, &due);
    }
    return err;
}

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

/* After many empty looks: is something wrong? Errors of what was sent come as its completions. And
 * where this end has to share its CPU with the other one, or with a software device's threads, that
 * one must run. */
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

/* A message to a peer that is read: it is alive still, or done. What the byte holds does not
 * matter. */
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
        return rdma_fail(e, -abs(err), "the peer cannot be notified: %s", strerror(abs(err)));
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

/* The peer of reads has nothing to do but to wait for the word that they are over; it leaves its
 * CPU alone. */
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
