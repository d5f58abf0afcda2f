/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections by RDMA CM: the peer listens on each rail's address, the leader connects. What comes with a
 * request proves that it is the leader's, and says for which connection it is; all others are refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "core/wire/rdma/rdma.h"

#define STEP_MS 5000

/* 56 bytes are all that InfiniBand's CM carries for this. */
struct request {
    uint8_t token[CHANNEL_TOKEN_BYTES];
    uint32_t number;
};

static int create_id(struct net_end *e, struct rdma_cm_id **id)
{
    struct rdma_end *r = rdma_of(e);

    if (!r->cm_events) {
        r->cm_events = rdma_create_event_channel();
        if (r->cm_events)
            fcntl(r->cm_events->fd, F_SETFL, O_NONBLOCK);
    }
    if (!r->cm_events || rdma_create_id(r->cm_events, id, NULL, RDMA_PS_TCP))
        return rdma_fail(e, -EOPNOTSUPP,
                         "RDMA CM is not to be had: %s; load rdma_ucm, and let this process reach "
                         "/dev/infiniband/rdma_cm",
                         strerror(errno));
    return 0;
}

static int bind_to(struct net_end *e, struct rdma_cm_id *id, const struct rdma_rail *rail)
{
    struct sockaddr_storage own = rail->address; /* port 0: any */

    if (!own.ss_family)
        return rdma_fail(
            e, -EOPNOTSUPP,
            "RDMA CM connects by IP, and the interface of '%s' has no address: give it "
            "one",
            rail->device);
    if (rdma_bind_addr(id, (struct sockaddr *)&own))
        return rdma_fail(e, -errno, "RDMA CM cannot use the address of '%s': %s", rail->device,
                         strerror(errno));
    return 0;
}

int rdma_cm_open(struct net_end *e, struct rdma_rail *rail)
{
    int err = create_id(e, &rail->anchor);

    if (!err)
        err = bind_to(e, rail->anchor, rail);
    if (err)
        return err;
    if (!rail->anchor->verbs ||
        strcmp(ibv_get_device_name(rail->anchor->verbs->device), rail->device))
        return rdma_fail(e, -ENODEV, "RDMA CM takes another device than '%s' for its address",
                         rail->device);
    rail->context = rail->anchor->verbs;
    return 0;
}

int rdma_cm_listen(struct net_end *e, struct rdma_rail *rail, uint16_t *port)
{
    if (rdma_listen(rail->anchor, NET_CONNECTIONS_MAX))
        return rdma_fail(e, -errno, "RDMA CM cannot listen on '%s': %s", rail->device,
                         strerror(errno));
    *port = rdma_get_src_port(rail->anchor);
    return 0;
}

/* The next event, to be acknowledged; a peer that says nothing for 10 s is gone. */
static int next_event(struct net_end *e, struct rdma_cm_event **event)
{
    struct rdma_event_channel *c = rdma_of(e)->cm_events;
    uint64_t end_ns = clock_now_ns() + NET_STILL_NS;

    while (rdma_get_cm_event(c, event)) {
        struct pollfd fd = {.fd = c->fd, .events = POLLIN};
        if (errno != EAGAIN && errno != EINTR)
            return rdma_fail(e, -errno, "RDMA CM says nothing: %s", strerror(errno));
        if (net_over(e))
            return -ECANCELED;
        if (clock_now_ns() > end_ns)
            return rdma_fail(e, -ETIMEDOUT, "%s did not connect by RDMA CM within 10 s",
                             channel_peer(e->channel));
        poll(&fd, 1, 100);
    }
    return 0;
}

/* Waits for one kind of event of one connection. */
static int expect_event(struct net_end *e, const struct rdma_cm_id *id,
                        enum rdma_cm_event_type type)
{
    struct rdma_cm_event *event;
    int err = next_event(e, &event);

    if (err)
        return err;
    enum rdma_cm_event_type got = event->event;
    int status = event->status;
    bool right = got == type && event->id == id;
    rdma_ack_cm_event(event);
    return right ? 0
                 : rdma_fail(e, got == RDMA_CM_EVENT_REJECTED ? -ECONNREFUSED : -EHOSTUNREACH,
                             "RDMA CM cannot connect to %s: %s (%d); is its address routed, and no "
                             "firewall between",
                             channel_peer(e->channel), rdma_event_str(got), status);
}

static struct rdma_conn_param parameters(struct net_end *e, const struct rdma_queue *q,
                                         unsigned reads)
{
    const struct rdma_rail *rail = &rdma_of(e)->rails[q->rail];
    unsigned most = (unsigned)rail->attr.max_qp_rd_atom;

    return (struct rdma_conn_param){
        .responder_resources = (uint8_t)(most < 128 ? most : 128),
        .initiator_depth = (uint8_t)reads,
        .retry_count = (uint8_t)(e->point->rdma.retry ? e->point->rdma.retry : RDMA_RETRY),
        .rnr_retry_count = 7,
    };
}

static int prepare(struct net_end *e, struct rdma_queue *q)
{
    uint8_t timeout = (uint8_t)(e->point->rdma.timeout ? e->point->rdma.timeout : RDMA_TIMEOUT);

    /* iWARP has none: its TCP has its own */
    rdma_set_option(q->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof(timeout));
    int err = rdma_queue_create(e, q);
    return err ? err : rdma_post_receives(e, q, q->shape->receives);
}

static int connect_one(struct net_end *e, struct rdma_queue *q, const struct sockaddr_storage *peer,
                       unsigned reads)
{
    struct rdma_rail *rail = &rdma_of(e)->rails[q->rail];
    struct sockaddr_storage own = rail->address, to = *peer;
    struct request request = {.number = q->number};
    struct rdma_conn_param param = parameters(e, q, reads);
    int err = create_id(e, &q->id);

    if (!err)
        err = channel_token(e->channel, "rdma-cm", q->number, request.token);
    if (err)
        return rdma_fail(e, err, "the connection cannot be proved: %s", channel_error(e->channel));
    if (rdma_resolve_addr(q->id, (struct sockaddr *)&own, (struct sockaddr *)&to, STEP_MS))
        return rdma_fail(e, -errno, "RDMA CM does not know the address of %s: %s",
                         channel_peer(e->channel), strerror(errno));
    err = expect_event(e, q->id, RDMA_CM_EVENT_ADDR_RESOLVED);
    if (!err && rdma_resolve_route(q->id, STEP_MS))
        err = rdma_fail(e, -errno, "RDMA CM has no route to %s: %s", channel_peer(e->channel),
                        strerror(errno));
    if (!err)
        err = expect_event(e, q->id, RDMA_CM_EVENT_ROUTE_RESOLVED);
    if (!err)
        err = prepare(e, q);
    param.private_data = &request;
    param.private_data_len = sizeof(request);
    if (!err && rdma_connect(q->id, &param))
        err = rdma_fail(e, -errno, "RDMA CM does not connect to %s: %s", channel_peer(e->channel),
                        strerror(errno));
    return err ? err : expect_event(e, q->id, RDMA_CM_EVENT_ESTABLISHED);
}

static bool same(const uint8_t *a, const uint8_t *b, size_t n)
{
    uint8_t different = 0;

    for (size_t i = 0; i < n; i++)
        different |= a[i] ^ b[i];
    return !different;
}

/* The queue that a request is for; NULL: it is not the leader's. iWARP and InfiniBand pad what comes with it. */
static struct rdma_queue *claimed(struct net_end *e, const struct rdma_cm_event *event)
{
    struct rdma_end *r = rdma_of(e);
    struct request request;
    uint8_t token[CHANNEL_TOKEN_BYTES];

    if (!event->param.conn.private_data || event->param.conn.private_data_len < sizeof(request))
        return NULL;
    memcpy(&request, event->param.conn.private_data, sizeof(request));
    if (request.number >= r->n_queues ||
        channel_token(e->channel, "rdma-cm", request.number, token) ||
        !same(token, request.token, sizeof(token)))
        return NULL;
    struct rdma_queue *q = &r->queues[request.number];
    return q->id || event->listen_id != r->rails[q->rail].anchor ? NULL : q;
}

static int accept_one(struct net_end *e, const struct rdma_cm_event *event, const unsigned *reads)
{
    struct rdma_queue *q = claimed(e, event);

    if (!q) {
        rdma_reject(event->id, NULL, 0);
        rdma_destroy_id(event->id);
        return 0;
    }
    struct rdma_conn_param param = parameters(e, q, reads[q->rail]);
    q->id = event->id;
    int err = prepare(e, q);
    if (!err && rdma_accept(q->id, &param))
        err = rdma_fail(e, -errno, "RDMA CM cannot accept a connection of %s: %s",
                        channel_peer(e->channel), strerror(errno));
    return err;
}

static int accept_all(struct net_end *e, const unsigned *reads)
{
    unsigned left = rdma_of(e)->n_queues;
    int err = 0;

    while (left && !err) {
        struct rdma_cm_event *event, copy;
        uint8_t data[256];
        err = next_event(e, &event);
        if (err)
            return err;
        copy = *event; /* a connection's id cannot be destroyed before its event is acknowledged */
        if (copy.event == RDMA_CM_EVENT_CONNECT_REQUEST && copy.param.conn.private_data) {
            memcpy(data, copy.param.conn.private_data, copy.param.conn.private_data_len);
            copy.param.conn.private_data = data;
        }
        rdma_ack_cm_event(event);
        if (copy.event == RDMA_CM_EVENT_CONNECT_REQUEST)
            err = accept_one(e, &copy, reads);
        else if (copy.event == RDMA_CM_EVENT_ESTABLISHED)
            left--;
        else
            err = rdma_fail(e, -ECONNRESET, "RDMA CM lost a connection of %s: %s",
                            channel_peer(e->channel), rdma_event_str(copy.event));
    }
    return err;
}

int rdma_cm_join(struct net_end *e, const struct sockaddr_storage *peers, unsigned n_peers,
                 const unsigned *reads)
{
    struct rdma_end *r = rdma_of(e);
    int err = 0;

    (void)n_peers;
    if (!e->leader)
        return accept_all(e, reads);
    for (unsigned i = 0; i < r->n_queues && !err; i++)
        err = connect_one(e, &r->queues[i], &peers[r->queues[i].rail], reads[r->queues[i].rail]);
    return err;
}
