/* SPDX-License-Identifier: Apache-2.0 */
/* What both ends tell each other, and queue pairs made ready to receive and to send. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "core/wire/rdma/rdma.h"

/* Connections by RDMA CM: the peer listens on each rail's address, the leader connects. What comes
 * with a request proves that it is the leader's, and says for which connection it is; all others
 * are refused. */

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

static int rdma_cm_listen(struct net_end *e, struct rdma_rail *rail, uint16_t *port)
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
            return rdma_fail(e, -errno, "RDMA CM does not answer: %s", strerror(errno));
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

/* The queue that a request is for; NULL: it is not the leader's. iWARP and InfiniBand pad what
 * comes with it. */
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

static int rdma_cm_join(struct net_end *e, const struct sockaddr_storage *peers, unsigned n_peers,
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

#define READS_AT_ONCE 16u /* what most adapters have */
#define ADDRESS_MAGIC 0x504c4d42u

struct address {
    uint32_t magic, by_cm, n_rails, n_queues;
    uint32_t on_gpu, reserved; /* buffers are */
    uint64_t piece_bytes[2];   /* of streams and of the ping: both ends must cut messages alike */
    struct rdma_address_rail rails[NET_RAILS_MAX];
    struct rdma_remote queues[NET_CONNECTIONS_MAX + 1];
};
_Static_assert(sizeof(struct address) <= NET_ADDRESS_MAX, "an address fits in its frame");

static size_t address_len(unsigned n_queues)
{
    return offsetof(struct address, queues) + n_queues * sizeof(struct rdma_remote);
}

static void set_port(struct sockaddr_storage *a, uint16_t port)
{
    if (a->ss_family == AF_INET)
        ((struct sockaddr_in *)a)->sin_port = port;
    else
        ((struct sockaddr_in6 *)a)->sin6_port = port;
}

void rdma_rail_address(const struct rdma_rail *rail, struct rdma_address_rail *out)
{
    *out = (struct rdma_address_rail){.protocol = rail->protocol,
                                      .lid = rail->port_attr.lid,
                                      .mtu_bytes = rail->mtu_bytes,
                                      .reads = (uint32_t)rail->attr.max_qp_rd_atom,
                                      .address = rail->address};
    memcpy(out->gid, rail->gid.raw, sizeof(out->gid));
}

static int rail_address(struct net_end *e, struct rdma_rail *rail, struct rdma_address_rail *out)
{
    uint16_t port = 0;

    rdma_rail_address(rail, out);
    if (!rdma_of(e)->by_cm || e->leader)
        return 0;
    int err = rdma_cm_listen(e, rail, &port);
    set_port(&out->address, port);
    return err;
}

static void queue_address(const struct rdma_end *r, const struct rdma_queue *q,
                          struct rdma_remote *out)
{
    const struct rdma_rail *rail = &r->rails[q->rail];

    *out = (struct rdma_remote){.in_at = (uintptr_t)q->in,
                                .out_at = (uintptr_t)q->out,
                                .in_key = q->receives ? rail->in.mr->rkey : 0,
                                .out_key = q->sends ? rail->out.mr->rkey : 0,
                                .qpn = q->qp ? q->qp->qp_num : 0,
                                .psn = q->psn};
    if (q->told) { /* sends are not read: what the other end may read is this */
        out->out_at = (uintptr_t)q->told;
        out->out_key = rail->told.mr->rkey;
    }
}

int rdma_address(struct net_end *e, void *out, size_t *len)
{
    struct rdma_end *r = rdma_of(e);
    struct address *address = out;
    int err = rdma_queues_open(e);

    if (err)
        return err;
    memset(address, 0, address_len(r->n_queues));
    address->magic = ADDRESS_MAGIC;
    address->by_cm = r->by_cm;
    address->n_rails = r->n_rails;
    address->n_queues = r->n_queues;
    address->on_gpu = r->gpu != NULL;
    address->piece_bytes[0] = r->stream.piece_bytes;
    address->piece_bytes[1] = r->ping.piece_bytes;
    for (unsigned i = 0; i < r->n_rails && !err; i++)
        err = rail_address(e, &r->rails[i], &address->rails[i]);
    for (unsigned i = 0; i < r->n_queues; i++)
        queue_address(r, &r->queues[i], &address->queues[i]);
    *len = address_len(r->n_queues);
    return err;
}

static const char *const protocols[] = {"InfiniBand", "RoCE v1", "RoCE v2", "iWARP"};

int rdma_same_protocol(struct net_end *e, unsigned i, const struct rdma_address_rail *to,
                       const char *peer)
{
    enum rdma_protocol own = rdma_of(e)->rails[i].protocol;

    if (to->protocol > RDMA_IWARP)
        return rdma_fail(e, -EPROTO, "the address of %s is damaged", peer);
    if (to->protocol == own)
        return 0;
    return rdma_fail(e, -EOPNOTSUPP,
                     "'%s' speaks %s, and %s speaks %s there: they cannot talk; choose "
                     "the GID index at both ends, or other devices",
                     e->rails[i].name, protocols[own], peer, protocols[to->protocol]);
}

/* Can these two talk at all? */
static int compare(struct net_end *e, const struct address *address, size_t len)
{
    const struct rdma_end *r = rdma_of(e);

    if (len < address_len(0) || address->magic != ADDRESS_MAGIC ||
        address->n_queues != r->n_queues || len != address_len(r->n_queues) ||
        address->n_rails < 1 || address->n_rails > NET_RAILS_MAX)
        return rdma_fail(e, -EPROTO, "the address of %s is damaged", channel_peer(e->channel));
    if (address->by_cm != r->by_cm)
        return rdma_fail(e, -EOPNOTSUPP,
                         "one end connects by RDMA CM, the other does not: ask both for cm");
    if (address->n_rails != r->n_rails)
        return rdma_fail(e, -EINVAL, "%u devices here, %u at %s: name as many at both ends",
                         r->n_rails, address->n_rails, channel_peer(e->channel));
    if (address->piece_bytes[0] != r->stream.piece_bytes ||
        address->piece_bytes[1] != r->ping.piece_bytes)
        return rdma_fail(
            e, -EOPNOTSUPP,
            "the largest message differs: here %llu bytes, at %s %llu; use messages no "
            "larger than either",
            (unsigned long long)r->stream.piece_bytes, channel_peer(e->channel),
            (unsigned long long)address->piece_bytes[0]);
    int err = 0;
    for (unsigned i = 0; i < r->n_rails && !err; i++)
        err = rdma_same_protocol(e, i, &address->rails[i], channel_peer(e->channel));
    return err;
}

static enum ibv_mtu mtu_code(unsigned bytes)
{
    enum ibv_mtu code = IBV_MTU_256;

    while (code < IBV_MTU_4096 && (128u << code) < bytes)
        code++;
    return code;
}

/* The path carries what both ends can. */
unsigned rdma_path_mtu(unsigned own, unsigned theirs)
{
    return theirs < 256 || theirs > 4096 || own < theirs ? own : theirs;
}

/* Told where they differ. */
static void agree_mtu(struct net_end *e, unsigned i, unsigned theirs)
{
    struct rdma_rail *rail = &rdma_of(e)->rails[i];
    struct net_rail *shown = &e->rails[i];
    unsigned own = rail->mtu_bytes;

    if (own == theirs || theirs < 256 || theirs > 4096)
        return;
    rail->mtu_bytes = rdma_path_mtu(own, theirs);
    shown->mtu_bytes = rail->mtu_bytes;
    size_t at = strlen(shown->text);
    snprintf(shown->text + at, sizeof(shown->text) - at, ", path MTU %u (here %u, there %u)",
             rail->mtu_bytes, own, theirs);
}

static unsigned reads_at_once(const struct rdma_rail *own, const struct rdma_address_rail *theirs)
{
    unsigned n = (unsigned)own->attr.max_qp_init_rd_atom;

    n = n < theirs->reads ? n : theirs->reads;
    return n < READS_AT_ONCE ? n : READS_AT_ONCE;
}

static int ready_to_receive(struct net_end *e, struct rdma_queue *q,
                            const struct rdma_address_rail *to)
{
    const struct rdma_rail *rail = &rdma_of(e)->rails[q->rail];
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = mtu_code(rdma_path_mtu(rail->mtu_bytes, to->mtu_bytes)),
        .dest_qp_num = q->remote.qpn,
        .rq_psn = q->remote.psn,
        .max_dest_rd_atomic =
            (uint8_t)(rail->attr.max_qp_rd_atom < 128 ? rail->attr.max_qp_rd_atom : 128),
        .min_rnr_timer = 12, /* 0.64 ms */
        .ah_attr = {.dlid = (uint16_t)to->lid, .port_num = (uint8_t)rail->port},
    };

    if (rail->protocol != RDMA_INFINIBAND || !rail->port_attr.lid) {
        attr.ah_attr.is_global = 1;
        attr.ah_attr.grh.hop_limit = 64;
        attr.ah_attr.grh.sgid_index = (uint8_t)rail->gid_index;
        memcpy(attr.ah_attr.grh.dgid.raw, to->gid, sizeof(to->gid));
    }
    int err = ibv_modify_qp(q->qp, &attr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    return err ? rdma_fail(e, -err,
                           "'%s' finds no way to %s: %s; is the GID the right one, and is the "
                           "address of its interface reachable",
                           e->rails[q->rail].name, q->peer, strerror(err))
               : 0;
}

static int ready_to_send(struct net_end *e, struct rdma_queue *q,
                         const struct rdma_address_rail *to)
{
    const struct net_rdma *p = &e->point->rdma;
    const struct rdma_rail *rail = &rdma_of(e)->rails[q->rail];
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS,
        .sq_psn = q->psn,
        .timeout = (uint8_t)(p->timeout ? p->timeout : RDMA_TIMEOUT),
        .retry_cnt = (uint8_t)(p->retry ? p->retry : RDMA_RETRY),
        .rnr_retry = 7, /* without end: a receiver that stays away is found by nothing moving */
        .max_rd_atomic = (uint8_t)reads_at_once(rail, to),
    };
    int err = ibv_modify_qp(q->qp, &attr,
                            IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    return err ? rdma_fail(e, -err, "connection %u of '%s' cannot be made ready: %s", q->number,
                           e->rails[q->rail].name, strerror(err))
               : 0;
}

int rdma_queue_connect(struct net_end *e, struct rdma_queue *q, const struct rdma_address_rail *to)
{
    int err = ready_to_receive(e, q, to);

    return err ? err : ready_to_send(e, q, to);
}

static int join_by_exchange(struct net_end *e, const struct address *address)
{
    struct rdma_end *r = rdma_of(e);
    int err = 0;

    for (unsigned i = 0; i < r->n_rails; i++)
        agree_mtu(e, i, address->rails[i].mtu_bytes);
    for (unsigned i = 0; i < r->n_queues && !err; i++)
        err = rdma_queue_connect(e, &r->queues[i], &address->rails[r->queues[i].rail]);
    return err;
}

static int join_by_cm(struct net_end *e, const struct address *address)
{
    struct rdma_end *r = rdma_of(e);
    struct sockaddr_storage peers[NET_RAILS_MAX];
    unsigned reads[NET_RAILS_MAX];

    for (unsigned i = 0; i < r->n_rails; i++) {
        peers[i] = address->rails[i].address;
        reads[i] = reads_at_once(&r->rails[i], &address->rails[i]);
    }
    return rdma_cm_join(e, peers, r->n_rails, reads);
}

/* Pings whose numbers not both ends' CPUs can read and write in their buffers. */
static int choose_marks(struct net_end *e, const struct address *address)
{
    struct rdma_end *r = rdma_of(e);
    enum net_verb verb = (enum net_verb)e->point->rdma.verb;
    char *text = e->rails[0].text;
    size_t at = strlen(text);

    if (!e->point->ping || (!r->gpu && !address->on_gpu) || (verb != NET_WRITE && verb != NET_SEND))
        return 0;
    if (r->rails[0].protocol == RDMA_IWARP)
        return rdma_fail(e, -EOPNOTSUPP,
                         "latency of '%s' with memory of a GPU takes immediate data, and '%s' is "
                         "iWARP, which has none: use read",
                         verb == NET_SEND ? "send" : "write", e->rails[0].name);
    r->marks_by_imm = true;
    snprintf(text + at, sizeof(e->rails[0].text) - at, ", pings by immediate data");
    return 0;
}

int rdma_join(struct net_end *e, const void *at, size_t len)
{
    struct rdma_end *r = rdma_of(e);
    struct address address;

    if (len > sizeof(address))
        return rdma_fail(e, -EPROTO, "the address of %s is damaged", channel_peer(e->channel));
    memset(&address, 0, sizeof(address));
    memcpy(&address, at, len);
    int err = compare(e, &address, len);
    if (!err)
        err = choose_marks(e, &address);
    for (unsigned i = 0; i < r->n_queues && !err; i++)
        r->queues[i].remote = address.queues[i];
    if (!err)
        err = r->by_cm ? join_by_cm(e, &address) : join_by_exchange(e, &address);
    for (unsigned i = 0; i < r->n_queues && !err; i++)
        err = rdma_queue_prepare(e, &r->queues[i]);
    if (!err && r->by_cm)
        err = rdma_greet(e);
    if (!err)
        rdma_facts_begin(r);
    return err;
}
