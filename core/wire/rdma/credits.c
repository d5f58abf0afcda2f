/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends on iWARP, where a message that comes before its receive was posted ends the connection: nothing is sent again, as
 * InfiniBand and RoCE would. And a send is complete there as soon as it is on its way, so those in flight are no bound.
 *
 * Each end counts the receives that it has ever posted on a queue, where the other end may read it; the sender reads that
 * before half of them are taken, in the same queue as its messages, and never sends more. The receiver, which may have its hands
 * full, does nothing for it but count; a reading completes like a message, so who sleeps for events is woken.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/wire/rdma/rdma.h"

#define STRIDE 64u /* threads that count do not share lines */

bool rdma_takes_credits(const struct net_end *e, const struct rdma_rail *rail)
{
    return e->point->rdma.verb == NET_SEND && rail->protocol == RDMA_IWARP;
}

int rdma_credits_open(struct net_end *e, unsigned at)
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
