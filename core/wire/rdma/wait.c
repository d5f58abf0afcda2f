/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for completions, and what it means when they are bad or do not come. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/wire/rdma/rdma.h"

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

static bool is_of_port(enum ibv_event_type type)
{
    return type == IBV_EVENT_PORT_ERR || type == IBV_EVENT_PORT_ACTIVE;
}

static bool is_of_queue(enum ibv_event_type type)
{
    return type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR ||
           type == IBV_EVENT_QP_ACCESS_ERR || type == IBV_EVENT_PATH_MIG_ERR;
}

/* iWARP tells the end of a connection like this, before any completion does. */
static int queue_event(struct net_end *e, const struct rdma_rail *rail,
                       const struct ibv_async_event *event)
{
    const struct rdma_end *r = rdma_of(e);
    unsigned number = 0;

    while (number < r->n_queues && r->queues[number].qp != event->element.qp)
        number++;
    return rdma_fail(e, -EIO, "connection %u of '%s:%u' to %s failed: %s", number, rail->device,
                     rail->port, number < r->n_queues ? r->queues[number].peer : "its peer",
                     ibv_event_type_str(event->event_type));
}

static int port_event(struct net_end *e, const struct rdma_rail *rail, enum ibv_event_type type)
{
    bool down = type == IBV_EVENT_PORT_ERR;

    return rdma_fail(e, down ? -ENETDOWN : -EIO, "'%s:%u' reports: %s%s", rail->device, rail->port,
                     ibv_event_type_str(type), down ? "; the link went down" : "");
}

static int rail_events(struct net_end *e, const struct rdma_rail *rail)
{
    struct ibv_async_event event;

    while (!ibv_get_async_event(rail->context, &event)) {
        enum ibv_event_type type = event.event_type;
        bool other = is_of_port(type) && event.element.port_num != (int)rail->port;
        ibv_ack_async_event(&event);
        if (is_fatal(type) && !other)
            return is_of_queue(type) ? queue_event(e, rail, &event) : port_event(e, rail, type);
    }
    return 0;
}

int rdma_events(struct net_end *e)
{
    struct rdma_end *r = rdma_of(e);
    int err = 0;

    for (unsigned i = 0; i < r->n_rails && !err; i++)
        err = rail_events(e, &r->rails[i]);
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
static int port_word(struct net_end *e, const struct rdma_rail *rail)
{
    struct ibv_port_attr port;
    int err = 0;

    for (int i = 0; i < 20 && !err && !net_over(e); i++) {
        err = rdma_events(e);
        if (!err && !ibv_query_port(rail->context, (uint8_t)rail->port, &port) &&
            port.state != IBV_PORT_ACTIVE)
            err =
                rdma_fail(e, -ENETDOWN, "'%s:%u' is not active any more but %s: its link went down",
                          rail->device, rail->port, ibv_port_state_str(port.state));
        if (!err)
            usleep(10000);
    }
    return err;
}

int rdma_bad_completion(struct net_end *e, const struct ibv_wc *wc)
{
    const struct rdma_end *r = rdma_of(e);
    unsigned number = (unsigned)(wc->wr_id >> 1);
    int err = 0;

    if (number >= r->n_queues)
        return rdma_fail(e, -EIO, "a completion of no connection: %s",
                         ibv_wc_status_str(wc->status));
    if (wc->status != IBV_WC_REM_ACCESS_ERR)
        err = port_word(e, &r->rails[r->queues[number].rail]);
    if (err || net_over(e))
        return err ? err : -ECANCELED;
    return rdma_fail(e, error_of(wc->status), "connection %u of '%s' to %s failed: %s%s", number,
                     e->rails[r->queues[number].rail].name, r->queues[number].peer,
                     ibv_wc_status_str(wc->status), meaning(wc->status));
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

/* Not every time: a look at the clock, at the device's events, and at whether all is over. */
static int look_around(struct net_end *e, struct rdma_queue *q, struct rdma_wait *w)
{
    uint64_t now_ns = clock_now_ns();

    if (net_over(e))
        return -ECANCELED;
    int err = rdma_events(e);
    if (err)
        return err;
    if (!w->since_ns)
        w->since_ns = now_ns;
    if (now_ns - w->since_ns < net_still_ns(e))
        return 0;
    return rdma_fail(e, -ETIMEDOUT,
                     "nothing moved on connection %u of '%s' to %s for %u s: %s did not come "
                     "through",
                     q->number, e->rails[q->rail].name, q->peer,
                     (unsigned)((now_ns - w->since_ns) / 1000000000u), w->what);
}

int rdma_wait_more(struct net_end *e, struct rdma_queue *q, struct rdma_cq *cq, struct rdma_wait *w)
{
    if (cq && cq->channel)
        rdma_cq_sleep(cq, 100000000);
    else if (++w->empty % RDMA_SPINS) {
        /* a software device works on the CPU that asks it to */
        if (cq && w->empty % RDMA_YIELD == 0)
            sched_yield();
        return 0;
    }
    return look_around(e, q, w);
}
