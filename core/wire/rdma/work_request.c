/* SPDX-License-Identifier: Apache-2.0 */
/* Work requests, prepared once in a circle: posting n of them is cutting a chain of n out of it for a moment. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/wire/rdma/rdma.h"

static unsigned least(uint64_t a, uint64_t b)
{
    return (unsigned)(a < b ? a : b);
}

static unsigned multiple(unsigned n, unsigned of)
{
    return (n + of - 1) / of * of;
}

/* One of how many is signalled: every one of large messages, since each is a reading; of small ones a quarter of
 * those in flight at most. */
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

/* With credits as many as may be waited for before more is posted, even while an eighth of them is not posted again. */
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

int rdma_shape_messages(struct net_end *e, struct rdma_shape *s, uint64_t bytes, unsigned queues)
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

/* Receives: a piece each of a sent message; a write with immediate data, and a greeting, bring no data to them. */
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
