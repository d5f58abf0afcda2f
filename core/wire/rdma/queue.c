/* SPDX-License-Identifier: Apache-2.0 */
/* Queues: what each connection does here, its queue pair, and whose completion queues it uses. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "core/wire/rdma/rdma.h"

int rdma_cq_create(struct net_end *e, struct rdma_cq *c, const struct rdma_rail *rail,
                   uint64_t entries)
{
    if (entries > (uint64_t)rail->attr.max_cqe)
        return rdma_fail(e, -EINVAL,
                         "a completion queue of %llu entries is more than the %d of '%s': use less "
                         "depth, fewer connections or more threads",
                         (unsigned long long)entries, rail->attr.max_cqe, rail->device);
    if (e->point->rdma.events) {
        c->channel = ibv_create_comp_channel(rail->context);
        if (!c->channel)
            return rdma_no_memory(e, "an event channel", rail, 0, errno);
        fcntl(c->channel->fd, F_SETFL, O_NONBLOCK);
    }
    c->cq = ibv_create_cq(rail->context, (int)entries, NULL, c->channel, 0);
    return c->cq ? 0 : rdma_no_memory(e, "a completion queue", rail, entries * 64, errno);
}

/* Queues first..first+n share two completion queues. */
static int create_group(struct net_end *e, unsigned first, unsigned n)
{
    struct rdma_end *r = rdma_of(e);
    const struct rdma_shape *s = r->queues[first].shape;
    const struct rdma_rail *rail = &r->rails[r->queues[first].rail];
    struct rdma_cq *two = &r->cqs[r->n_cqs];

    r->n_cqs += 2;
    two[0].first = two[1].first = first;
    two[0].n = two[1].n = n;
    for (unsigned i = first; i < first + n; i++) {
        r->queues[i].send_cq = &two[0];
        r->queues[i].recv_cq = &two[1];
    }
    int err = rdma_cq_create(e, &two[0], rail, (uint64_t)n * (s->window + s->pieces + 8));
    return err ? err : rdma_cq_create(e, &two[1], rail, (uint64_t)n * s->receives);
}

/* Groups are what one thread serves: the engine deals a rail's connections out like this. */
static int create_groups(struct net_end *e)
{
    struct rdma_end *r = rdma_of(e);
    unsigned connections = e->point->connections, first = 0, end;
    int err = 0;

    for (; first < connections && !err; first = end) {
        unsigned threads = e->point->threads / e->n_rails;
        for (end = first; end < connections && r->queues[end].rail == r->queues[first].rail;)
            end++;
        threads = !threads ? 1 : threads > end - first ? end - first : threads;
        for (unsigned k = 0; k < threads && !err; k++) {
            unsigned from = first + (end - first) * k / threads;
            err = create_group(e, from, first + (end - first) * (k + 1) / threads - from);
        }
    }
    if (!err && r->n_queues > connections)
        err = create_group(e, connections, 1);
    return err;
}

/* What a queue does at this end. The ping's leader alone reads; all other pings go both ways. */
static void set_role(struct net_end *e, struct rdma_queue *q, unsigned number)
{
    const struct rdma_end *r = rdma_of(e);
    bool is_ping = number == e->point->connections, read = rdma_is_read(e->point);

    q->number = number;
    q->peer = channel_peer(e->channel);
    q->rail = net_rail_of(e, number);
    q->shape = is_ping ? &r->ping : &r->stream;
    q->sends = is_ping ? !read || !e->leader : e->point->stream[rdma_out(e)];
    q->receives = is_ping ? !read || e->leader : e->point->stream[rdma_in(e)];
    q->initiates = read ? q->receives : q->sends;
    q->psn = (uint32_t)(e->point->seed + number * 2u + e->leader) & 0xffffff;
}

/* Has it a buffer for what comes in? The ping's peer that is read is told by messages that it may end. */
static bool has_in(const struct net_end *e, const struct rdma_queue *q)
{
    return q->receives || q->number == e->point->connections;
}

/* Buffers of a rail's queues, one after the other; their size is the longest message's. */
static int place_buffers(struct net_end *e, unsigned rail)
{
    struct rdma_end *r = rdma_of(e);
    struct rdma_rail *at = &r->rails[rail];
    enum net_verb verb = (enum net_verb)e->point->rdma.verb;
    bool write = verb == NET_WRITE || verb == NET_WRITE_IMM, iwarp = at->protocol == RDMA_IWARP;
    unsigned n_in = 0, n_out = 0;
    uint64_t bytes = 0;

    for (unsigned i = 0; i < r->n_queues; i++)
        if (r->queues[i].rail == rail) {
            bytes = r->queues[i].shape->bytes > bytes ? r->queues[i].shape->bytes : bytes;
            n_in += has_in(e, &r->queues[i]);
            n_out += r->queues[i].sends;
        }
    /* iWARP fetches by a write of the other end into the reader's memory */
    int in_access = IBV_ACCESS_LOCAL_WRITE |
                    (write || (verb == NET_READ && iwarp) ? IBV_ACCESS_REMOTE_WRITE : 0);
    int err = rdma_memory_open(e, at, &at->in, bytes, n_in, in_access);
    if (!err)
        err = rdma_memory_open(e, at, &at->out, bytes, n_out,
                               verb == NET_READ ? IBV_ACCESS_REMOTE_READ : 0);
    for (unsigned i = 0, in = 0, out = 0; i < r->n_queues && !err; i++) {
        struct rdma_queue *q = &r->queues[i];
        if (q->rail != rail)
            continue;
        if (has_in(e, q))
            q->in = at->in.at + at->in.stride * in++;
        if (q->sends) {
            q->out = at->out.at + at->out.stride * out++;
            err =
                rdma_fill(e, q->out, q->shape->bytes, net_seed(e->point, rdma_out(e), i, 0), false);
        }
    }
    if (!err)
        err = rdma_credits_open(e, rail);
    if (!err)
        rdma_memory_tell(e, rail);
    return err;
}

static int no_queue(struct net_end *e, const struct rdma_queue *q, int err)
{
    const struct rdma_rail *rail = &rdma_of(e)->rails[q->rail];

    if (q->shape->inline_bytes && e->point->rdma.inline_bytes >= 0 && err == EINVAL)
        return rdma_fail(e, -EINVAL, "'%s' does not send %u bytes inline: ask for less",
                         rail->device, q->shape->inline_bytes);
    if (err == EOPNOTSUPP || err == ENOSYS)
        return rdma_fail(e, -EOPNOTSUPP, "'%s' (%s) has no reliable connections (RC)", rail->device,
                         rail->driver);
    return rdma_no_memory(e, "a queue pair", rail, q->shape->window * 64ull, err);
}

/* Inline is left out where it was not asked for and is not had. */
int rdma_queue_make(struct net_end *e, struct rdma_queue *q, struct rdma_shape *shape)
{
    const struct rdma_rail *rail = &rdma_of(e)->rails[q->rail];
    bool may_drop = e->point->rdma.inline_bytes < 0;

    for (;;) {
        struct ibv_qp_init_attr attr = {
            .send_cq = q->send_cq->cq,
            .recv_cq = q->recv_cq->cq,
            .qp_type = IBV_QPT_RC,
            .cap = {.max_send_wr = shape->window + shape->pieces + 8,
                    .max_recv_wr = shape->receives,
                    .max_send_sge = 1,
                    .max_recv_sge = 1,
                    .max_inline_data = shape->inline_bytes},
        };
        errno = 0;
        if (!q->id)
            q->qp = ibv_create_qp(rail->pd, &attr);
        else if (!rdma_create_qp(q->id, rail->pd, &attr))
            q->qp = q->id->qp;
        if (q->qp && attr.cap.max_inline_data >= shape->inline_bytes)
            return 0;
        if (q->qp || !shape->inline_bytes || !may_drop)
            return no_queue(e, q, q->qp ? EINVAL : errno);
        shape->inline_bytes = 0;
    }
}

int rdma_queue_init(struct net_end *e, struct rdma_queue *q, unsigned access)
{
    const struct rdma_rail *rail = &rdma_of(e)->rails[q->rail];
    struct ibv_qp_attr init = {
        .qp_state = IBV_QPS_INIT,
        .port_num = (uint8_t)rail->port,
        .qp_access_flags = access,
    };
    int err = ibv_modify_qp(q->qp, &init,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    return err ? rdma_fail(e, -err, "a queue pair of '%s' cannot be set up: %s", rail->device,
                           strerror(err))
               : 0;
}

/* With its receives posted. RDMA CM sets it up itself, when it connects. */
int rdma_queue_create(struct net_end *e, struct rdma_queue *q)
{
    struct rdma_end *r = rdma_of(e);
    int err = rdma_queue_make(e, q, q->number == e->point->connections ? &r->ping : &r->stream);

    if (!err)
        err = rdma_queue_prepare(e, q);
    if (err || q->id)
        return err;
    err = rdma_queue_init(
        e, q,
        (q->receives && e->point->rdma.verb <= NET_WRITE_IMM ? IBV_ACCESS_REMOTE_WRITE : 0u) |
            (q->sends && rdma_is_read(e->point) ? IBV_ACCESS_REMOTE_READ : 0u));
    return err ? err : rdma_post_receives(e, q, q->shape->receives);
}

/* Buffers and completion queues; queue pairs, too, where RDMA CM does not make them when it connects. */
int rdma_queues_open(struct net_end *e)
{
    struct rdma_end *r = rdma_of(e);
    unsigned n = e->point->connections + (e->point->ping ? 1 : 0);
    bool streams = e->point->stream[NET_FORWARD] || e->point->stream[NET_REVERSE];
    int err = rdma_shape_messages(e, &r->stream, streams ? e->point->message_bytes : 1, n);

    if (!err && e->point->ping) {
        err = rdma_shape_messages(e, &r->ping, e->point->ping_bytes, 1);
        r->ping.window = r->ping.pieces > 1 ? 2 * r->ping.pieces : 64;
        r->ping.slots = r->ping.pieces;
        r->ping.receives = (r->ping.receives > 16 ? 16 : r->ping.receives) * r->ping.pieces;
    }
    r->queues = calloc(n, sizeof(*r->queues));
    r->cqs = calloc(2 * (size_t)n, sizeof(*r->cqs));
    if (!err && (!r->queues || !r->cqs))
        err = rdma_fail(e, -ENOMEM, "out of memory");
    if (!err && !r->n_rails)
        err = rdma_fail(e, -ENODEV, "no device to make queues on");
    if (err || !r->queues)
        return err;
    r->n_queues = n;
    for (unsigned i = 0; i < n; i++)
        set_role(e, &r->queues[i], i);
    for (unsigned rail = 0; rail < r->n_rails && !err; rail++)
        err = place_buffers(e, rail);
    if (!err)
        err = create_groups(e);
    for (unsigned i = 0; i < n && !err && !r->by_cm; i++)
        err = rdma_queue_create(e, &r->queues[i]);
    return err;
}

static void close_queue(struct rdma_queue *q)
{
    if (q->id && q->qp)
        rdma_destroy_qp(q->id);
    else if (q->qp)
        ibv_destroy_qp(q->qp);
    if (q->id)
        rdma_destroy_id(q->id);
    free(q->send);
    free(q->recv);
    free(q->sges);
}

void rdma_queues_close(struct rdma_end *r)
{
    for (unsigned i = 0; i < r->n_queues; i++)
        close_queue(&r->queues[i]);
    for (unsigned i = 0; i < r->n_cqs; i++) {
        if (r->cqs[i].unacked)
            ibv_ack_cq_events(r->cqs[i].cq, r->cqs[i].unacked);
        if (r->cqs[i].cq)
            ibv_destroy_cq(r->cqs[i].cq);
        if (r->cqs[i].channel)
            ibv_destroy_comp_channel(r->cqs[i].channel);
    }
    free(r->queues);
    free(r->cqs);
    r->queues = NULL;
    r->cqs = NULL;
    r->n_queues = r->n_cqs = 0;
}
