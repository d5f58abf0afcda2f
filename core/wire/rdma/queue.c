/* SPDX-License-Identifier: Apache-2.0 */
/* Queues: what each connection does here, its queue pair, and whose completion queues it uses. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "core/wire/rdma/rdma.h"

/*
 * Sends on iWARP, where a message that comes before its receive was posted ends the connection:
 * nothing is sent again, as InfiniBand and RoCE would. And a send is complete there as soon as it
 * is on its way, so those in flight are no bound.
 *
 * Each end counts the receives that it has ever posted on a queue, where the other end may read it;
 * the sender reads that before half of them are taken, in the same queue as its messages, and never
 * sends more. The receiver, which may have its hands full, does nothing for it but count; a reading
 * completes like a message, so who sleeps for events is woken.
 */

#define STRIDE 64u /* threads that count do not share lines */

/* Sends where a receiver that is late ends the connection. */
static bool rdma_takes_credits(const struct net_end *e, const struct rdma_rail *rail)
{
    return e->point->rdma.verb == NET_SEND && rail->protocol == RDMA_IWARP;
}

static int rdma_credits_open(struct net_end *e, unsigned at)
{
    struct rdma_end *r = rdma_of(e);
    struct rdma_rail *rail = &r->rails[at];
    size_t n = e->point->connections;
    int err = 0;

    if (!n || !rdma_takes_credits(e, rail))
        return 0;
    rail->told.bytes = rail->heard.bytes = n * STRIDE;
    err = rdma_host_memory_open(e, rail, &rail->told, IBV_ACCESS_REMOTE_READ);
    if (!err) /* iWARP fetches by a write of the other end into the reader's memory */
        err = rdma_host_memory_open(e, rail, &rail->heard,
                                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    for (size_t i = 0; i < n && !err; i++) {
        struct rdma_queue *q = &r->queues[i];
        if (q->rail == at && q->receives)
            q->told = (_Atomic uint64_t *)(void *)(rail->told.at + i * STRIDE);
        if (q->rail == at && q->sends)
            q->heard = (_Atomic uint64_t *)(void *)(rail->heard.at + i * STRIDE);
    }
    return err;
}

int rdma_credits_ask(struct net_end *e, struct rdma_queue *q)
{
    const struct rdma_rail *rail = &rdma_of(e)->rails[q->rail];
    struct ibv_sge word = {
        .addr = (uintptr_t)q->heard, .length = sizeof(*q->heard), .lkey = rail->heard.mr->lkey};
    struct ibv_send_wr wr = {.wr_id = rdma_wr_id(q->number, false),
                             .sg_list = &word,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_READ,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {q->remote.out_at, q->remote.out_key}},
                       *bad;

    if (q->asking)
        return 0;
    int err = ibv_post_send(q->qp, &wr, &bad);
    q->asking = !err;
    return err ? rdma_fail(e, -abs(err), "credits of connection %u cannot be read: %s", q->number,
                           strerror(abs(err)))
               : 0;
}

bool rdma_credits_heard(struct rdma_queue *q)
{
    uint64_t posted = atomic_load_explicit(q->heard, memory_order_acquire);
    bool more = posted > q->granted;

    q->asking = false;
    q->granted = more ? posted : q->granted;
    return more;
}

/* Work requests, prepared once in a circle: posting n of them is cutting a chain of n out of it for
 * a moment. */

static unsigned least(uint64_t a, uint64_t b)
{
    return (unsigned)(a < b ? a : b);
}

static unsigned multiple(unsigned n, unsigned of)
{
    return (n + of - 1) / of * of;
}

/* One of how many is signalled: every one of large messages, since each is a reading; of small ones
 * a quarter of those in flight at most. */
static unsigned choose_signal(const struct net_point *p, const struct rdma_shape *s)
{
    unsigned most = s->window < 4 ? 1 : s->window / 4, every = p->rdma.signal_every;

    if (s->pieces > 1)
        return 1;
    if (every)
        return least(every, s->window ? s->window : 1);
    every = least(65536 / (s->bytes ? s->bytes : 1), most);
    return every ? every : 1;
}

/* With credits as many as may be waited for before more is posted, even while an eighth of them is
 * not posted again. */
static unsigned choose_receives(const struct net_point *p, const struct rdma_shape *s,
                                unsigned cqes, bool credits)
{
    if (!rdma_takes_receives(p))
        return 4;
    unsigned n = least(4 * s->window < 16 ? 16 : 4 * s->window, 512);
    unsigned some = credits ? 2 * rdma_least_posted(s) : 2;
    n = n < some ? some : n;
    n = n > cqes && cqes >= some ? cqes : n;
    return p->rdma.verb == NET_SEND ? multiple(n, s->pieces) : n;
}

static int rdma_shape_messages(struct net_end *e, struct rdma_shape *s, uint64_t bytes,
                               unsigned queues)
{
    const struct net_point *p = e->point;
    const struct rdma_end *r = rdma_of(e);
    uint64_t largest = 1u << 30;
    unsigned cqes = UINT32_MAX, wrs = UINT32_MAX;
    bool credits = false;

    for (unsigned i = 0; i < r->n_rails; i++) {
        largest = least(largest, r->rails[i].port_attr.max_msg_sz);
        cqes = least(cqes, (unsigned)r->rails[i].attr.max_cqe);
        wrs = least(wrs, (unsigned)r->rails[i].attr.max_qp_wr);
        credits |= rdma_takes_credits(e, &r->rails[i]);
    }
    if (!bytes || !largest || (bytes + largest - 1) / largest > 4096)
        return rdma_fail(e, -EINVAL, "messages of %llu bytes cannot be sent",
                         (unsigned long long)bytes);
    s->bytes = bytes;
    s->pieces = (unsigned)((bytes + largest - 1) / largest);
    s->piece_bytes = s->pieces > 1 ? largest : bytes;
    unsigned sharers = r->n_rails && queues ? (queues + r->n_rails - 1) / r->n_rails : 1;
    uint64_t under_way = RDMA_IN_FLIGHT / sharers / s->piece_bytes;
    s->window = least(p->rdma.depth, under_way < 2 ? 2 : under_way);
    s->signal_every = choose_signal(p, s);
    s->window -= s->window % s->signal_every;
    s->slots = multiple(s->window, s->pieces > 1 ? s->pieces : s->signal_every);
    s->receives = choose_receives(p, s, cqes / (queues ? queues : 1), credits);
    int32_t asked = p->rdma.inline_bytes;
    unsigned most = r->gpu ? 0 : asked < 0 ? RDMA_INLINE_BYTES : (unsigned)asked;
    if (r->gpu && asked > 0 && !rdma_is_read(p) && bytes <= (unsigned)asked)
        return rdma_fail(e, -EOPNOTSUPP,
                         "messages are sent inline by the CPU, which does not reach the memory of "
                         "'%s': leave --inline out",
                         r->core->gpu->name(r->gpu));
    s->inline_bytes = rdma_is_read(p) || bytes > most ? 0 : (unsigned)bytes;
    if (s->window + s->pieces + 8 > wrs || s->receives > wrs)
        return rdma_fail(e, -EINVAL, "depth %u is more than the device's queues hold (%u)",
                         p->rdma.depth, wrs);
    return 0;
}

/* Receives: a piece each of a sent message; a write with immediate data, and a greeting, bring no
 * data to them. */
static int prepare_receives(struct net_end *e, struct rdma_queue *q)
{
    const struct rdma_shape *s = q->shape;
    const struct rdma_rail *rail = &rdma_of(e)->rails[q->rail];
    const struct rdma_memory *m = rail->in.mr ? &rail->in : &rail->out;
    bool word = rdma_is_read(e->point) && q->in && !q->receives; /* of a peer that is read */
    bool lands = m->mr && (word || (e->point->rdma.verb == NET_SEND && q->receives));

    q->recv = calloc(s->receives, sizeof(*q->recv));
    q->sges = calloc(s->receives + s->slots, sizeof(*q->sges));
    if (!q->recv || !q->sges)
        return rdma_fail(e, -ENOMEM, "out of memory");
    if (rail->protocol == RDMA_IWARP && m->mr) {
        q->nothing = (struct ibv_sge){.addr = (uintptr_t)m->at, .lkey = m->mr->lkey};
        q->n_nothing = 1;
    }
    for (unsigned i = 0; i < s->receives; i++) {
        unsigned piece = i % s->pieces;
        if (lands)
            q->sges[i] = (struct ibv_sge){.addr = (uintptr_t)q->in + s->piece_bytes * piece,
                                          .length = word ? 1 : (uint32_t)rdma_piece_bytes(s, piece),
                                          .lkey = m->mr->lkey};
        q->recv[i] = (struct ibv_recv_wr){.wr_id = rdma_wr_id(q->number, true),
                                          .next = &q->recv[(i + 1) % s->receives],
                                          .sg_list = lands ? &q->sges[i] : &q->nothing,
                                          .num_sge = lands ? 1 : q->n_nothing};
    }
    return 0;
}

static enum ibv_wr_opcode opcode_of(enum net_verb verb, bool with_imm)
{
    switch (verb) {
    case NET_READ:
        return IBV_WR_RDMA_READ;
    case NET_SEND:
        return with_imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
    default:
        return with_imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
    }
}

static void prepare_send(struct net_end *e, struct rdma_queue *q, unsigned i)
{
    const struct rdma_shape *s = q->shape;
    const struct rdma_rail *rail = &rdma_of(e)->rails[q->rail];
    struct ibv_sge *sge = &q->sges[s->receives + i];
    bool read = rdma_is_read(e->point), streams = q->number < e->point->connections;
    bool imm = e->point->rdma.verb == NET_WRITE_IMM || (!streams && rdma_of(e)->marks_by_imm);
    unsigned piece = i % s->pieces;
    uint64_t offset = s->piece_bytes * piece;
    uint8_t *local = read ? q->in : q->out;

    *sge = (struct ibv_sge){.addr = (uintptr_t)local + offset,
                            .length = (uint32_t)rdma_piece_bytes(s, piece),
                            .lkey = read ? rail->in.mr->lkey : rail->out.mr->lkey};
    q->send[i] = (struct ibv_send_wr){
        .wr_id = rdma_wr_id(q->number, false),
        .next = &q->send[(i + 1) % s->slots],
        .sg_list = sge,
        .num_sge = 1,
        .opcode = opcode_of((enum net_verb)e->point->rdma.verb, imm && piece + 1 == s->pieces),
        .send_flags = (s->inline_bytes ? IBV_SEND_INLINE : 0u) |
                      (streams && (i + 1) % s->signal_every == 0 ? IBV_SEND_SIGNALED : 0u),
        .wr.rdma = {(read ? q->remote.out_at : q->remote.in_at) + offset,
                    read ? q->remote.out_key : q->remote.in_key},
    };
}

/* Once without the other end's keys (receives), once with them. */
int rdma_queue_prepare(struct net_end *e, struct rdma_queue *q)
{
    if (!q->recv)
        return prepare_receives(e, q);
    if (!q->initiates)
        return 0;
    if (!q->send)
        q->send = calloc(q->shape->slots, sizeof(*q->send));
    if (!q->send)
        return rdma_fail(e, -ENOMEM, "out of memory");
    for (unsigned i = 0; i < q->shape->slots; i++)
        prepare_send(e, q, i);
    return 0;
}

/* Drivers answer with an error's number, some with a negative one. */
static int posted(struct net_end *e, const struct rdma_queue *q, const char *what, int err)
{
    return err ? rdma_fail(e, -abs(err), "%s on connection %u was refused: %s", what, q->number,
                           strerror(abs(err)))
               : 0;
}

int rdma_post_sends(struct net_end *e, struct rdma_queue *q, unsigned n)
{
    unsigned slots = q->shape->slots, head = (unsigned)(q->posted % slots);
    struct ibv_send_wr *last = &q->send[(head + n - 1) % slots], *next = last->next, *bad;

    last->next = NULL;
    int err = ibv_post_send(q->qp, &q->send[head], &bad);
    last->next = next;
    q->posted += n;
    q->taken += n;
    return posted(e, q, "sending", err);
}

int rdma_post_empty(struct net_end *e, struct rdma_queue *q)
{
    struct ibv_send_wr wr = {.wr_id = rdma_wr_id(q->number, false),
                             .sg_list = &q->nothing,
                             .num_sge = q->n_nothing,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;

    q->taken++;
    return posted(e, q, "sending", ibv_post_send(q->qp, &wr, &bad));
}

int rdma_post_receives(struct net_end *e, struct rdma_queue *q, unsigned n)
{
    unsigned slots = q->shape->receives;
    struct ibv_recv_wr *last = &q->recv[(q->recv_head + n - 1) % slots], *next = last->next, *bad;

    last->next = NULL;
    int err = ibv_post_recv(q->qp, &q->recv[q->recv_head % slots], &bad);
    last->next = next;
    q->recv_head = (q->recv_head + n) % slots;
    q->recv_posted += n;
    if (q->told && !err)
        atomic_store_explicit(q->told, q->recv_posted, memory_order_release);
    return posted(e, q, "receiving", err);
}

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

/* Has it a buffer for what comes in? The ping's peer that is read is told by messages that it may
 * end. */
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

/* Buffers and completion queues; queue pairs, too, where RDMA CM does not make them when it
 * connects. */
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
