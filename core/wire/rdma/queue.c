/* SPDX-License-Identifier: Apache-2.0 */
/* Queue pairs and completion queues, and what it means when completions are bad. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/wire/rdma/rdma.h"

#define REFUSED_LOOKS   50
#define REFUSED_LOOK_US 10000

/* Drivers answer with an error's number, some with a negative one, some with -1 alone. Where the
 * link or the peer is gone, an event says so, at once or soon: that is the reason. */
int rdma_refused(const struct rdma_queue *q, const char *what, int err)
{
    struct wire *w = rdma_wire_of(q);
    int why = 0;

    for (int look = 0; err && !why && look < REFUSED_LOOKS; look++) {
        why = rdma_events(w);
        if (!why)
            usleep(REFUSED_LOOK_US);
    }
    return why || !err ? why
                       : rdma_fail(w, -abs(err), "%s on connection %u to %s was refused: %s", what,
                                   q->link->index, q->peer, strerror(abs(err)));
}

/* ---- What errors and events mean ---- */

/* Does this event end the transfer? */
static bool is_fatal(enum ibv_event_type type)
{
    switch (type) {
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_PATH_MIG_ERR:
        return true;
    default:
        return false;
    }
}

static bool is_of_queue(enum ibv_event_type type)
{
    return type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR ||
           type == IBV_EVENT_QP_ACCESS_ERR || type == IBV_EVENT_PATH_MIG_ERR;
}

/* iWARP tells the end of a connection like this, before any completion does. */
static int queue_event(struct wire *w, const struct rdma_rail *rail,
                       const struct ibv_async_event *event)
{
    const struct rdma *r = rdma_of(w);
    unsigned number = 0;

    while (number < w->n_links && r->queues[number].qp != event->element.qp)
        number++;
    return rdma_fail(w, -EIO, "connection %u of '%s:%u' to %s failed: %s", number, rail->device,
                     rail->port, number < w->n_links ? r->queues[number].peer : "its peer",
                     ibv_event_type_str(event->event_type));
}

static int rail_events(struct wire *w, const struct rdma_rail *rail)
{
    struct ibv_async_event event;

    while (!ibv_get_async_event(rail->context, &event)) {
        enum ibv_event_type type = event.event_type;
        bool other = (type == IBV_EVENT_PORT_ERR || type == IBV_EVENT_PORT_ACTIVE) &&
                     event.element.port_num != (int)rail->port;
        ibv_ack_async_event(&event);
        if (is_fatal(type) && !other)
            return is_of_queue(type)
                       ? queue_event(w, rail, &event)
                       : rdma_fail(w, type == IBV_EVENT_PORT_ERR ? -ENETDOWN : -EIO,
                                   "'%s:%u' reports: %s%s", rail->device, rail->port,
                                   ibv_event_type_str(type),
                                   type == IBV_EVENT_PORT_ERR ? "; the link went down" : "");
    }
    return 0;
}

int rdma_events(struct wire *w)
{
    struct rdma *r = rdma_of(w);
    int err = 0;

    for (unsigned i = 0; i < r->n_rails && !err; i++)
        err = rail_events(w, &r->rails[i]);
    return err;
}

static int error_of(enum ibv_wc_status status)
{
    switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RNR_RETRY_EXC_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR:
        return -ETIMEDOUT;
    case IBV_WC_REM_ACCESS_ERR:
        return -EACCES;
    case IBV_WC_WR_FLUSH_ERR:
        return -ECONNRESET;
    default:
        return -EIO;
    }
}

static const char *meaning(enum ibv_wc_status status)
{
    switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
        return ": no answer; it is gone, its link is down, or the path loses packets";
    case IBV_WC_RNR_RETRY_EXC_ERR:
        return ": it does not receive";
    case IBV_WC_REM_ACCESS_ERR:
        return ": its memory is not open to this";
    case IBV_WC_WR_FLUSH_ERR:
        return ": the connection was taken down";
    default:
        return "";
    }
}

/* The port's own word comes a moment after the errors of what could not be sent. */
static int port_word(struct wire *w, const struct rdma_rail *rail)
{
    struct ibv_port_attr port;
    int err = 0;

    for (int i = 0; i < 20 && !err; i++) {
        err = rdma_events(w);
        if (!err && !ibv_query_port(rail->context, (uint8_t)rail->port, &port) &&
            port.state != IBV_PORT_ACTIVE)
            err =
                rdma_fail(w, -ENETDOWN, "'%s:%u' is not active any more but %s: its link went down",
                          rail->device, rail->port, ibv_port_state_str(port.state));
        if (!err)
            usleep(10000);
    }
    return err;
}

int rdma_bad_completion(struct wire *w, const struct ibv_wc *wc)
{
    const struct rdma_queue *q = rdma_queue_of(wc);
    int err = 0;

    if (wc->status != IBV_WC_REM_ACCESS_ERR)
        err = port_word(w, q->rail);
    if (err)
        return err;
    return rdma_fail(w, error_of(wc->status), "connection %u of '%s' to %s failed: %s%s",
                     q->link->index, q->link->device, q->peer, ibv_wc_status_str(wc->status),
                     meaning(wc->status));
}

int rdma_unread(struct wire_worker *k)
{
    return rdma_fail(k->wire, -EIO, "completions of '%s' cannot be read",
                     k->wire->rails[k->rail].name);
}

int rdma_poll(struct wire_worker *k, const struct rdma_cq *cq, struct ibv_wc *wc)
{
    int n = ibv_poll_cq(cq->cq, RDMA_POLL_BATCH, wc);

    return n < 0 ? rdma_unread(k) : n;
}

/* Armed first, then polled once more by the caller: what completed in between would wake nobody. */
void rdma_cq_sleep(struct rdma_cq *cq, uint64_t most_ns)
{
    struct timespec most = {.tv_sec = (time_t)(most_ns / 1000000000u),
                            .tv_nsec = (long)(most_ns % 1000000000u)};
    struct pollfd fd = {.fd = cq->channel->fd, .events = POLLIN};
    struct ibv_cq *got;
    void *context;

    if (!cq->armed) {
        cq->armed = !ibv_req_notify_cq(cq->cq, 0);
        return;
    }
    ppoll(&fd, 1, &most, NULL);
    while (!ibv_get_cq_event(cq->channel, &got, &context)) {
        cq->armed = false;
        if (++cq->unacked == 1024) {
            ibv_ack_cq_events(cq->cq, cq->unacked);
            cq->unacked = 0;
        }
    }
}

/* ---- Made and closed ---- */

static int open_cq(struct wire_worker *k, struct rdma_cq *c, uint64_t entries)
{
    struct wire *w = k->wire;
    const struct rdma_rail *rail = &rdma_of(w)->rails[k->rail];

    if (entries > (uint64_t)rail->attr.max_cqe)
        return rdma_fail(w, -EINVAL,
                         "a completion queue of %llu entries is more than the %d of '%s': use less "
                         "depth, fewer connections or more threads",
                         (unsigned long long)entries, rail->attr.max_cqe, rail->device);
    if (k->way != WIRE_POLL) {
        c->channel = ibv_create_comp_channel(rail->context);
        if (!c->channel)
            return rdma_no_memory(w, "an event channel", rail, 0, errno);
        fcntl(c->channel->fd, F_SETFL, O_NONBLOCK);
    }
    c->cq = ibv_create_cq(rail->context, (int)entries, NULL, c->channel, 0);
    return c->cq ? 0 : rdma_no_memory(w, "a completion queue", rail, entries * 64, errno);
}

/* Without windows one completion queue has both: a link goes on by either. */
static int open_worker(struct wire_worker *k)
{
    struct rdma_worker *rw = k->state = xcalloc(1, sizeof(*rw));
    const struct rdma *r = rdma_of(k->wire);
    uint64_t acts = 0, hears = 0;

    for (unsigned i = 0; i < k->n_links; i++) {
        const struct rdma_shape *s = &r->queues[k->links[i].index].shape;
        acts += s->window + s->pieces + 8;
        hears += s->receives;
    }
    int err = open_cq(k, &rw->acts, k->wire->options.windows ? acts : acts + hears);
    if (!err && k->wire->options.windows)
        err = open_cq(k, &rw->hears, hears);
    for (unsigned i = 0; i < k->n_links; i++) {
        struct rdma_queue *q = &r->queues[k->links[i].index];
        q->acts = &rw->acts;
        q->hears = rw->hears.cq ? &rw->hears : &rw->acts;
    }
    return err;
}

static int no_queue(const struct rdma_queue *q, int err)
{
    struct wire *w = rdma_wire_of(q);

    if (q->shape.inline_bytes && w->options.rdma.inline_bytes >= 0 && err == EINVAL)
        return rdma_fail(w, -EINVAL, "'%s' does not send %u bytes inline: ask for less",
                         q->rail->device, q->shape.inline_bytes);
    if (err == EOPNOTSUPP || err == ENOSYS)
        return rdma_fail(w, -EOPNOTSUPP, "'%s' (%s) has no reliable connections (RC)",
                         q->rail->device, q->rail->driver);
    return rdma_no_memory(w, "a queue pair", q->rail, q->shape.window * 64ull, err);
}

/* Inline is left out where it was not asked for and is not had. */
static int make(struct rdma_queue *q)
{
    bool may_drop = rdma_wire_of(q)->options.rdma.inline_bytes < 0;
    struct rdma_shape *s = &q->shape;

    for (;;) {
        struct ibv_qp_init_attr attr = {
            .send_cq = q->acts->cq,
            .recv_cq = q->hears->cq,
            .qp_type = IBV_QPT_RC,
            .cap = {.max_send_wr = s->window + s->pieces + 8,
                    .max_recv_wr = s->receives,
                    .max_send_sge = 1,
                    .max_recv_sge = 1,
                    .max_inline_data = s->inline_bytes},
        };
        errno = 0;
        if (!q->id)
            q->qp = ibv_create_qp(q->rail->pd, &attr);
        else if (!rdma_create_qp(q->id, q->rail->pd, &attr))
            q->qp = q->id->qp;
        if (q->qp && attr.cap.max_inline_data >= s->inline_bytes)
            return 0;
        if (q->qp || !s->inline_bytes || !may_drop)
            return no_queue(q, q->qp ? EINVAL : errno);
        s->inline_bytes = 0;
    }
}

/* RDMA CM sets it up itself, when it connects. */
static int init(struct rdma_queue *q)
{
    const struct wire *w = rdma_wire_of(q);
    const struct wire_window *window = &q->link->window;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = (uint8_t)q->rail->port};

    /* What the other end may do to this one's memory: without a window, write. */
    if (!w->options.windows || (window->in && w->options.rdma.verb <= RDMA_WRITE_IMM))
        attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    if (w->options.windows && window->out && rdma_reads(w))
        attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ;
    int err =
        q->id ? 0
              : ibv_modify_qp(q->qp, &attr,
                              IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

    return err ? rdma_fail(rdma_wire_of(q), -err, "a queue pair of '%s' cannot be set up: %s",
                           q->rail->device, strerror(err))
               : 0;
}

/* With its receives posted. */
int rdma_queue_create(struct rdma_queue *q)
{
    int err = make(q);

    err = err ? err : init(q);
    if (err)
        return err;
    return rdma_wire_of(q)->options.windows ? rdma_window_post_receives(q, q->shape.receives)
                                            : rdma_messages_create(q);
}

int rdma_queues_open(struct wire *w)
{
    struct rdma *r = rdma_of(w);
    int err = 0;

    r->made = true;
    for (unsigned i = 0; i < w->n_workers && !err; i++)
        if (w->workers[i].n_links)
            err = open_worker(&w->workers[i]);
    for (unsigned i = 0; i < w->n_links && !err; i++) {
        if (w->options.windows)
            err = rdma_window_prepare(&r->queues[i]);
        if (!err && !r->by_cm)
            err = rdma_queue_create(&r->queues[i]);
    }
    return err;
}

static void close_cq(struct rdma_cq *c)
{
    if (c->unacked)
        ibv_ack_cq_events(c->cq, c->unacked);
    if (c->cq)
        ibv_destroy_cq(c->cq);
    if (c->channel)
        ibv_destroy_comp_channel(c->channel);
}

void rdma_queues_close(struct wire *w)
{
    struct rdma *r = rdma_of(w);

    for (unsigned i = 0; r->queues && i < w->options.links_most; i++) {
        struct rdma_queue *q = &r->queues[i];
        if (!q->link)
            continue;
        if (q->id && q->qp)
            rdma_destroy_qp(q->id);
        else if (q->qp)
            ibv_destroy_qp(q->qp);
        if (q->id)
            rdma_destroy_id(q->id);
        rdma_window_close(q);
        rdma_messages_close(q);
    }
    for (unsigned i = 0; i < w->n_workers; i++) {
        struct rdma_worker *rw = w->workers[i].state;
        if (!rw)
            continue;
        close_cq(&rw->acts);
        close_cq(&rw->hears);
        free(rw);
        w->workers[i].state = NULL;
    }
    free(r->queues);
    r->queues = NULL;
}
