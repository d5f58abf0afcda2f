/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker's whole work. It either initiates (writes, sends; reads at the receiver) and counts its
 * own completions, or receives and keeps work requests posted. Completions are polled in batches;
 * each batch is one entry of the tally and, at most, one posting for each connection that had some.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/wire/rdma/rdma.h"

static inline uint64_t rdma_credits(const struct rdma_queue *q)
{
    return !q->heard ? UINT64_MAX : q->granted > q->taken ? q->granted - q->taken : 0;
}

/* ---- Waiting for completions, and what it means when they are bad or do not come ---- */

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

/* What work()'s loops have in hand. */
struct stream {
    struct net_worker *w;
    struct net_end *e;
    struct rdma_end *r;
    struct rdma_queue *first; /* its connections */
    struct rdma_cq *cq;
    struct rdma_wait wait;
    struct ibv_wc wc[RDMA_POLL_BATCH];
};

/* A worker reads the completions of its own connections, all of them and no others. */
static int take_cq(struct stream *s, bool receives)
{
    s->cq = receives ? s->first->recv_cq : s->first->send_cq;
    if (s->cq->first != s->w->first || s->cq->n != s->w->n)
        return rdma_fail(s->e, -EINVAL, "connections %u..%u are not dealt out as they were made",
                         s->w->first, s->w->first + s->w->n - 1);
    return 0;
}

/* Should more be posted on this queue, and how many? At the end only the rest of a message. */
static unsigned to_post(const struct rdma_queue *q, bool stop)
{
    const struct rdma_shape *s = q->shape;
    unsigned free = s->window - (unsigned)(q->posted - q->completed);
    uint64_t credits = rdma_credits(q);
    unsigned rest = (unsigned)(q->posted % s->pieces ? s->pieces - q->posted % s->pieces : 0);

    free = free < credits ? free : (unsigned)credits;
    if (stop)
        return free < rest ? free : rest;
    return free < rdma_least_posted(s) ? 0 : free - free % s->signal_every;
}

static int post(struct stream *s, struct rdma_queue *q, bool stop)
{
    unsigned n = to_post(q, stop);
    int err = n ? rdma_post_sends(s->e, q, n) : 0;

    if (err || !q->heard || rdma_credits(q) > q->shape->receives / 2)
        return err;
    return stop && q->posted % q->shape->pieces == 0 ? 0 : rdma_credits_ask(s->e, q);
}

static bool is_stopping(const struct net_end *e)
{
    return net_stop(e) || atomic_load_explicit(&e->expect_known, memory_order_acquire);
}

static bool is_idle(const struct stream *s)
{
    for (unsigned i = 0; i < s->w->n; i++)
        if (s->first[i].posted != s->first[i].completed || s->first[i].asking)
            return false;
    return true;
}

/* One signalled completion: what is through by it. */
static void account(struct stream *s, struct rdma_queue *q, uint64_t *bytes, uint64_t *messages)
{
    const struct rdma_shape *shape = q->shape;
    uint64_t piece = q->completed % shape->pieces;
    uint64_t whole = shape->pieces == 1 ? shape->signal_every : piece + 1 == shape->pieces;
    _Atomic uint64_t *count =
        s->w->sends ? &s->e->counts[q->number].sent : &s->e->counts[q->number].received;

    *bytes += shape->pieces == 1 ? whole * shape->bytes : rdma_piece_bytes(shape, piece);
    *messages += whole;
    q->completed += shape->pieces == 1 ? shape->signal_every : 1;
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + whole,
                          memory_order_relaxed);
}

static int take_sent(struct stream *s, int n, bool stop)
{
    uint64_t bytes = 0, messages = 0;
    bool moved = false;
    int err = 0;

    for (int i = 0; i < n; i++) {
        struct rdma_queue *q = &s->r->queues[s->wc[i].wr_id >> 1];
        if (s->wc[i].status != IBV_WC_SUCCESS)
            return rdma_bad_completion(s->e, &s->wc[i]);
        if (q->heard && s->wc[i].opcode == IBV_WC_RDMA_READ)
            moved |= rdma_credits_heard(q);
        else
            account(s, q, &bytes, &messages);
    }
    if (bytes)
        net_tally_add(&s->w->tally, bytes, messages);
    if (bytes || moved)
        rdma_wait_reset(&s->wait);
    for (int i = 0; i < n && !err; i++) /* a queue that is full again has nothing to post */
        err = post(s, &s->r->queues[s->wc[i].wr_id >> 1], stop);
    return err;
}

static int initiate(struct stream *s)
{
    bool stop = is_stopping(s->e);
    int err = take_cq(s, false);

    for (unsigned i = 0; i < s->w->n && !err; i++)
        err = post(s, &s->first[i], stop);
    while (!err) {
        bool was = stop;
        stop = is_stopping(s->e);
        for (unsigned i = 0; stop && !was && i < s->w->n && !err; i++)
            err = post(s, &s->first[i], true); /* the rest of messages that were begun */
        if (err || net_over(s->e) || (stop && is_idle(s)))
            break;
        int n = ibv_poll_cq(s->cq->cq, RDMA_POLL_BATCH, s->wc);
        if (n < 0)
            err = rdma_fail(s->e, -EIO, "completions of '%s' cannot be read",
                            s->e->rails[s->w->rail].name);
        else
            err = n ? take_sent(s, n, stop) : rdma_wait_more(s->e, s->first, s->cq, &s->wait);
    }
    return err;
}

/* A work request of ours that a message took: of a sent one, each of its pieces takes one. */
static int take_one(struct stream *s, const struct ibv_wc *wc, uint64_t *bytes, uint64_t *messages)
{
    struct rdma_queue *q = &s->r->queues[wc->wr_id >> 1];
    bool sent = s->e->point->rdma.verb == NET_SEND;
    uint64_t piece = sent ? q->recv_done % q->shape->pieces : q->shape->pieces - 1;
    uint64_t expected = sent ? rdma_piece_bytes(q->shape, piece) : wc->byte_len;

    if (wc->status != IBV_WC_SUCCESS)
        return rdma_bad_completion(s->e, wc);
    if (wc->byte_len != expected)
        return rdma_fail(s->e, -EBADMSG, "connection %u received %u bytes where %llu were sent",
                         q->number, wc->byte_len, (unsigned long long)expected);
    q->recv_done++;
    q->recv_free++;
    *bytes += sent ? expected : q->shape->bytes;
    if (piece + 1 == q->shape->pieces) {
        _Atomic uint64_t *count = &s->e->counts[q->number].received;
        atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1,
                              memory_order_relaxed);
        ++*messages;
    }
    return 0;
}

static int take_received(struct stream *s, int n)
{
    uint64_t bytes = 0, messages = 0;
    int err = 0;

    for (int i = 0; i < n && !err; i++)
        err = take_one(s, &s->wc[i], &bytes, &messages);
    if (err)
        return err;
    net_tally_add(&s->w->tally, bytes, messages);
    rdma_wait_reset(&s->wait);
    for (int i = 0; i < n && !err; i++) {
        struct rdma_queue *q = &s->r->queues[s->wc[i].wr_id >> 1];
        unsigned least = q->shape->receives < 8 ? 1 : q->shape->receives / 8;
        if (q->recv_free < least)
            continue;
        err = rdma_post_receives(s->e, q, q->recv_free);
        q->recv_free = 0;
    }
    return err;
}

static bool is_drained(const struct stream *s)
{
    for (unsigned i = s->w->first; i < s->w->first + s->w->n; i++)
        if (!net_drained(s->e, i))
            return false;
    return true;
}

static int receive(struct stream *s)
{
    int err = take_cq(s, true);

    while (!err && !net_over(s->e) && !is_drained(s)) {
        int n = ibv_poll_cq(s->cq->cq, RDMA_POLL_BATCH, s->wc);
        if (n < 0)
            err = rdma_fail(s->e, -EIO, "completions of '%s' cannot be read",
                            s->e->rails[s->w->rail].name);
        else
            err = n ? take_received(s, n) : rdma_wait_more(s->e, s->first, s->cq, &s->wait);
    }
    return err;
}

int rdma_work(struct net_worker *w)
{
    struct stream s = {.w = w, .e = w->end, .r = rdma_of(w->end)};

    s.first = &s.r->queues[w->first];
    s.wait.what = w->sends ? "what was sent" : "a message";
    int err = w->sends || rdma_is_read(w->end->point) ? initiate(&s) : receive(&s);
    return err == -ECANCELED ? 0 : err;
}
