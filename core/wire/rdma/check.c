/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data: what the streams left is compared, then every buffer is made wrong on purpose, both ends wait for each
 * other, one fresh message goes over each connection and direction that there is, both wait again, and that is
 * compared. Ends wait for each other by empty messages on each queue, behind what was posted before.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/wire/rdma/rdma.h"

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

/* Waits until every queue has as many completions of both kinds as it is due. The other end may be longer about
 * its buffers. */
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
