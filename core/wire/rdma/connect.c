/* SPDX-License-Identifier: Apache-2.0 */
/* What both ends of a link tell each other, and queue pairs made ready to receive and to send. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/wire/rdma/rdma.h"

/* ---- By RDMA CM: of two ranks the lower listens on each rail's address, the higher connects. What
 * comes with a request proves that it is that rank's, and says for which link it is; all others are
 * refused. ---- */

#define STEP_MS 5000

/* 56 bytes are all that InfiniBand's CM carries for this. */
struct request {
    uint8_t token[CHANNEL_TOKEN_BYTES];
    uint32_t from, number;
};
_Static_assert(sizeof(struct request) <= 56, "a request fits");

static bool connects(const struct wire_link *l)
{
    const struct wire *w = l->worker->wire;

    return w->world->rank > l->peer;
}

static int create_id(struct wire *w, struct rdma_cm_id **id)
{
    struct rdma *r = rdma_of(w);

    if (!r->cm_events) {
        r->cm_events = rdma_create_event_channel();
        if (r->cm_events)
            fcntl(r->cm_events->fd, F_SETFL, O_NONBLOCK);
    }
    if (!r->cm_events || rdma_create_id(r->cm_events, id, NULL, RDMA_PS_TCP))
        return rdma_fail(w, -EOPNOTSUPP,
                         "RDMA CM is not to be had: %s; load rdma_ucm, and let this process reach "
                         "/dev/infiniband/rdma_cm",
                         strerror(errno));
    return 0;
}

int rdma_cm_open(struct wire *w, struct rdma_rail *rail)
{
    struct sockaddr_storage own = rail->address; /* port 0: any */
    int err = create_id(w, &rail->anchor);

    if (err)
        return err;
    if (!own.ss_family)
        return rdma_fail(
            w, -EOPNOTSUPP,
            "RDMA CM connects by IP, and the interface of '%s' has no address: give it "
            "one",
            rail->device);
    if (rdma_bind_addr(rail->anchor, (struct sockaddr *)&own))
        return rdma_fail(w, -errno, "RDMA CM cannot use the address of '%s': %s", rail->device,
                         strerror(errno));
    if (!rail->anchor->verbs ||
        strcmp(ibv_get_device_name(rail->anchor->verbs->device), rail->device))
        return rdma_fail(w, -ENODEV, "RDMA CM takes another device than '%s' for its address",
                         rail->device);
    rail->context = rail->anchor->verbs;
    return 0;
}

/* The next event, to be acknowledged; a peer that says nothing for WIRE_STILL_NS is gone. */
static int next_event(struct wire *w, struct rdma_cm_event **event)
{
    struct rdma_event_channel *c = rdma_of(w)->cm_events;
    struct clock_wait wait = {0};
    const char *peer = rdma_of(w)->queues[0].peer;
    int err;

    while (rdma_get_cm_event(c, event)) {
        struct pollfd fd = {.fd = c->fd, .events = POLLIN};
        if (errno != EAGAIN && errno != EINTR)
            return rdma_fail(w, -errno, "RDMA CM does not answer: %s", strerror(errno));
        if ((err = wire_attend(w)) != 0)
            return rdma_fail(w, err, "the wait for %s by RDMA CM was ended", peer);
        if (clock_waited_ns(&wait) > WIRE_STILL_NS)
            return rdma_fail(w, -ETIMEDOUT, "%s did not connect by RDMA CM within %.3g s", peer,
                             (double)WIRE_STILL_NS / 1e9);
        poll(&fd, 1, 100);
    }
    return 0;
}

/* Waits for one kind of event of one connection. */
static int expect_event(struct rdma_queue *q, enum rdma_cm_event_type type)
{
    struct wire *w = rdma_wire_of(q);
    struct rdma_cm_event *event;
    int err = next_event(w, &event);

    if (err)
        return err;
    enum rdma_cm_event_type got = event->event;
    int status = event->status;
    bool right = got == type && event->id == q->id;
    rdma_ack_cm_event(event);
    return right ? 0
                 : rdma_fail(w, got == RDMA_CM_EVENT_REJECTED ? -ECONNREFUSED : -EHOSTUNREACH,
                             "RDMA CM cannot connect to %s: %s (%d); is its address routed, and no "
                             "firewall between",
                             q->peer, rdma_event_str(got), status);
}

#define READS_AT_ONCE 16u /* what most adapters have */

static unsigned reads_at_once(const struct rdma_queue *q)
{
    unsigned n = (unsigned)q->rail->attr.max_qp_init_rd_atom;

    n = n < q->remote.reads ? n : q->remote.reads;
    return n < READS_AT_ONCE ? n : READS_AT_ONCE;
}

static uint8_t reads_answered(const struct rdma_queue *q)
{
    return (uint8_t)(q->rail->attr.max_qp_rd_atom < 128 ? q->rail->attr.max_qp_rd_atom : 128);
}

static uint8_t timeout_of(const struct wire *w)
{
    return (uint8_t)(w->options.rdma.timeout ? w->options.rdma.timeout : RDMA_TIMEOUT);
}

static uint8_t retry_of(const struct wire *w)
{
    return (uint8_t)(w->options.rdma.retry ? w->options.rdma.retry : RDMA_RETRY);
}

static struct rdma_conn_param parameters(const struct rdma_queue *q)
{
    return (struct rdma_conn_param){
        .responder_resources = reads_answered(q),
        .initiator_depth = (uint8_t)reads_at_once(q),
        .retry_count = retry_of(rdma_wire_of(q)),
        .rnr_retry_count = 7,
    };
}

static int prepare(struct rdma_queue *q)
{
    uint8_t timeout = timeout_of(rdma_wire_of(q));

    /* iWARP has none: its TCP has its own */
    rdma_set_option(q->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof(timeout));
    return rdma_queue_create(q);
}

static int cm_failed(struct rdma_queue *q, const char *what)
{
    return rdma_fail(rdma_wire_of(q), -errno, "RDMA CM %s %s: %s", what, q->peer, strerror(errno));
}

static int connect_one(struct rdma_queue *q)
{
    struct wire *w = rdma_wire_of(q);
    const struct rdma_core *core = rdma_of(w)->core;
    struct sockaddr_storage own = q->rail->address, to = {0};
    struct request request = {.from = w->world->rank, .number = q->link->number};
    struct rdma_conn_param param = parameters(q);
    int err = create_id(w, &q->id);

    if (err)
        return err;
    core->token(w->world, request.from, q->link->peer, request.number, request.token);
    memcpy(&to, &q->remote.listens, sizeof(q->remote.listens));
    if (rdma_resolve_addr(q->id, (struct sockaddr *)&own, (struct sockaddr *)&to, STEP_MS))
        return cm_failed(q, "does not know the address of");
    err = expect_event(q, RDMA_CM_EVENT_ADDR_RESOLVED);
    if (!err && rdma_resolve_route(q->id, STEP_MS))
        err = cm_failed(q, "has no route to");
    if (!err)
        err = expect_event(q, RDMA_CM_EVENT_ROUTE_RESOLVED);
    if (!err)
        err = prepare(q);
    param.private_data = &request;
    param.private_data_len = sizeof(request);
    if (!err && rdma_connect(q->id, &param))
        err = cm_failed(q, "does not connect to");
    return err ? err : expect_event(q, RDMA_CM_EVENT_ESTABLISHED);
}

static bool same(const uint8_t *a, const uint8_t *b, size_t n)
{
    uint8_t different = 0;

    for (size_t i = 0; i < n; i++)
        different |= a[i] ^ b[i];
    return !different;
}

/* The queue that a request is for; NULL: it is not that rank's. iWARP and InfiniBand pad what comes
 * with it. */
static struct rdma_queue *claimed(struct wire *w, const struct rdma_cm_event *event)
{
    const struct rdma_core *core = rdma_of(w)->core;
    struct request request;
    uint8_t token[CHANNEL_TOKEN_BYTES];

    if (!event->param.conn.private_data || event->param.conn.private_data_len < sizeof(request))
        return NULL;
    memcpy(&request, event->param.conn.private_data, sizeof(request));
    core->token(w->world, request.from, w->world->rank, request.number, token);
    if (!same(token, request.token, sizeof(token)))
        return NULL;
    for (unsigned i = 0; i < w->n_links; i++) {
        struct rdma_queue *q = &rdma_of(w)->queues[i];
        if (q->link->peer == request.from && q->link->number == request.number)
            return q->id || event->listen_id != q->rail->anchor ? NULL : q;
    }
    return NULL;
}

static int accept_one(struct wire *w, const struct rdma_cm_event *event)
{
    struct rdma_queue *q = claimed(w, event);

    if (!q) {
        rdma_reject(event->id, NULL, 0);
        rdma_destroy_id(event->id);
        return 0;
    }
    struct rdma_conn_param param = parameters(q);
    q->id = event->id;
    int err = prepare(q);
    if (!err && rdma_accept(q->id, &param))
        err = cm_failed(q, "cannot accept a connection of");
    return err;
}

static int accept_all(struct wire *w, unsigned left)
{
    int err = 0;

    while (left && !err) {
        struct rdma_cm_event *event, copy;
        uint8_t data[256];
        err = next_event(w, &event);
        if (err)
            return err;
        copy = *event; /* a connection's id cannot be destroyed before its event is acknowledged */
        if (copy.event == RDMA_CM_EVENT_CONNECT_REQUEST && copy.param.conn.private_data) {
            memcpy(data, copy.param.conn.private_data, copy.param.conn.private_data_len);
            copy.param.conn.private_data = data;
        }
        rdma_ack_cm_event(event);
        if (copy.event == RDMA_CM_EVENT_CONNECT_REQUEST)
            err = accept_one(w, &copy);
        else if (copy.event == RDMA_CM_EVENT_ESTABLISHED)
            left--;
        else
            err = rdma_fail(w, -ECONNRESET, "RDMA CM lost a connection of %s: %s",
                            rdma_of(w)->queues[0].peer, rdma_event_str(copy.event));
    }
    return err;
}

static int join_by_cm(struct wire *w)
{
    unsigned awaited = 0;
    int err = 0;

    for (unsigned i = 0; i < w->n_links && !err; i++) {
        if (connects(&w->links[i]))
            err = connect_one(&rdma_of(w)->queues[i]);
        else
            awaited++;
    }
    return err ? err : accept_all(w, awaited);
}

/* ---- Addresses ---- */

#define ADDRESS_MAGIC 0x504c4d47u
/* for the others to be ready: a greeting that is lost is sent again after a quarter of a second */
#define SETTLE_US 2000

static void fill_memory(const struct rdma_queue *q, struct rdma_address *a)
{
    const struct wire_window *window = &q->link->window;
    const struct rdma_region *in = NULL, *out = NULL;

    a->piece_bytes = q->shape.piece_bytes;
    if (window->in)
        in = rdma_region_of(q, window->in, window->message_bytes);
    if (window->out)
        out = rdma_region_of(q, window->out, window->message_bytes);
    a->in_at = (uintptr_t)window->in;
    a->in_key = in ? in->mr->rkey : 0;
    a->out_at = (uintptr_t)window->out;
    a->out_key = out && rdma_reads(rdma_wire_of(q)) ? out->mr->rkey : 0;
    a->on_gpu = (in && in->device) || (out && out->device);
}

int rdma_address(struct wire_link *l, void *at, size_t *len)
{
    struct wire *w = l->worker->wire;
    struct rdma *r = rdma_of(w);
    struct rdma_queue *q = l->state;
    const struct rdma_rail *rail = q->rail;
    struct rdma_address a = {.magic = ADDRESS_MAGIC,
                             .by_cm = r->by_cm,
                             .turns = l->window.turns,
                             .protocol = (uint8_t)rail->protocol,
                             .lid = rail->port_attr.lid,
                             .mtu_bytes = rail->mtu_bytes,
                             .reads = (uint32_t)rail->attr.max_qp_rd_atom,
                             .psn = q->psn};
    int err = r->made ? 0 : rdma_queues_open(w);

    if (!err && r->by_cm && !connects(l) && !q->rail->listens) {
        if (rdma_listen(q->rail->anchor, (int)w->options.links_most))
            return rdma_fail(w, -errno, "RDMA CM cannot listen on '%s': %s", q->rail->device,
                             strerror(errno));
        q->rail->listens = rdma_get_src_port(q->rail->anchor);
    }
    if (err)
        return err;
    if (r->by_cm) {
        memcpy(&a.listens, &q->rail->address, sizeof(a.listens));
        a.listens.sin6_port = q->rail->listens; /* where IPv4 has it, too */
    }
    memcpy(a.gid, rail->gid.raw, sizeof(a.gid));
    a.qpn = q->qp ? q->qp->qp_num : 0;
    a.piece_bytes = rail->port_attr.max_msg_sz < 1u << 30 ? rail->port_attr.max_msg_sz : 1u << 30;
    if (w->options.windows)
        fill_memory(q, &a);
    if (q->posts) { /* sends are not read: what the other end may read is this */
        a.out_at = (uintptr_t)q->posts;
        a.out_key = q->credits[0].mr->rkey;
    }
    memcpy(at, &a, sizeof(a));
    *len = sizeof(a);
    return 0;
}

/* Can these two talk at all? */
static int compare(const struct rdma_queue *q, size_t len)
{
    struct wire *w = rdma_wire_of(q);
    const struct rdma_address *a = &q->remote;

    if (len != sizeof(*a) || a->magic != ADDRESS_MAGIC || !a->piece_bytes ||
        a->protocol >= NIC_PROTOCOLS || a->turns != q->link->window.turns)
        return rdma_fail(w, -EPROTO, "the address of %s is damaged", q->peer);
    if (a->by_cm != rdma_of(w)->by_cm)
        return rdma_fail(w, -EOPNOTSUPP,
                         "one end connects by RDMA CM, the other does not: ask both for cm");
    if (w->options.windows && a->piece_bytes != q->shape.piece_bytes)
        return rdma_fail(
            w, -EOPNOTSUPP,
            "the largest message differs: here %llu bytes, at %s %llu; use messages no "
            "larger than either",
            (unsigned long long)q->shape.piece_bytes, q->peer, (unsigned long long)a->piece_bytes);
    if (a->protocol == q->rail->protocol)
        return 0;
    return rdma_fail(w, -EOPNOTSUPP,
                     "'%s' speaks %s, and %s speaks %s there: they cannot talk; choose "
                     "the GID index at both ends, or other devices",
                     q->link->device, nic_protocol_name(q->rail->protocol), q->peer,
                     nic_protocol_name(a->protocol));
}

/* The path carries what both ends can. */
static unsigned path_mtu(const struct rdma_queue *q)
{
    unsigned own = q->rail->mtu_bytes, theirs = q->remote.mtu_bytes;

    return theirs < 256 || theirs > 4096 || own < theirs ? own : theirs;
}

/* Told where they differ; of several paths the least. */
static void tell_mtu(const struct rdma_queue *q)
{
    struct nic_rail *shown = &rdma_wire_of(q)->rails[q->rail - rdma_of(rdma_wire_of(q))->rails];
    unsigned own = q->rail->mtu_bytes, theirs = q->remote.mtu_bytes, path = path_mtu(q);
    size_t at = strlen(shown->text);

    if (own == theirs || theirs < 256 || theirs > 4096 || strstr(shown->text, ", path MTU "))
        return;
    shown->mtu_bytes = path < shown->mtu_bytes ? path : shown->mtu_bytes;
    snprintf(shown->text + at, sizeof(shown->text) - at, ", path MTU %u (here %u, there %u)", path,
             own, theirs);
}

static enum ibv_mtu mtu_code(unsigned bytes)
{
    enum ibv_mtu code = IBV_MTU_256;

    while (code < IBV_MTU_4096 && (128u << code) < bytes)
        code++;
    return code;
}

static int ready_to_receive(struct rdma_queue *q)
{
    const struct rdma_rail *rail = q->rail;
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = mtu_code(path_mtu(q)),
        .dest_qp_num = q->remote.qpn,
        .rq_psn = q->remote.psn,
        .max_dest_rd_atomic = reads_answered(q),
        .min_rnr_timer = 12, /* 0.64 ms */
        .ah_attr = {.dlid = (uint16_t)q->remote.lid, .port_num = (uint8_t)rail->port},
    };

    if (rail->protocol != NIC_INFINIBAND || !rail->port_attr.lid) {
        attr.ah_attr.is_global = 1;
        attr.ah_attr.grh.hop_limit = 64;
        attr.ah_attr.grh.sgid_index = (uint8_t)rail->gid_index;
        memcpy(attr.ah_attr.grh.dgid.raw, q->remote.gid, sizeof(q->remote.gid));
    }
    int err = ibv_modify_qp(q->qp, &attr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    return err ? rdma_fail(rdma_wire_of(q), -err,
                           "'%s' finds no way to %s: %s; is the GID the right one, and is the "
                           "address of its interface reachable",
                           q->link->device, q->peer, strerror(err))
               : 0;
}

static int ready_to_send(struct rdma_queue *q)
{
    struct wire *w = rdma_wire_of(q);
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS,
        .sq_psn = q->psn,
        .timeout = timeout_of(w),
        .retry_cnt = retry_of(w),
        .rnr_retry = 7, /* without end: a receiver that stays away is found by nothing moving */
        .max_rd_atomic = (uint8_t)reads_at_once(q),
    };
    int err = ibv_modify_qp(q->qp, &attr,
                            IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    return err ? rdma_fail(w, -err, "connection %u of '%s' cannot be made ready: %s",
                           q->link->index, q->link->device, strerror(err))
               : 0;
}

/* Messages in turns whose numbers not both ends' CPUs can read and write in their buffers. */
static int choose_marks(struct rdma_queue *q)
{
    struct wire *w = rdma_wire_of(q);
    enum rdma_verb verb = (enum rdma_verb)w->options.rdma.verb;
    const struct wire_window *window = &q->link->window;
    const struct rdma_region *own =
        rdma_region_of(q, window->in ? window->in : window->out, window->message_bytes);
    struct nic_rail *shown = &w->rails[q->rail - rdma_of(w)->rails];
    size_t at = strlen(shown->text);

    q->link->turns_beside = window->turns && verb == RDMA_WRITE_IMM;
    if (!window->turns || (!(own && own->device) && !q->remote.on_gpu) ||
        (verb != RDMA_WRITE && verb != RDMA_SEND))
        return 0;
    if (q->rail->protocol == NIC_IWARP)
        return rdma_fail(w, -EOPNOTSUPP,
                         "latency of '%s' with memory of a GPU takes immediate data, and '%s' is "
                         "iWARP, which has none: use read",
                         verb == RDMA_SEND ? "send" : "write", q->link->device);
    q->link->turns_beside = true;
    snprintf(shown->text + at, sizeof(shown->text) - at, ", pings by immediate data");
    return 0;
}

static int ready(struct wire *w)
{
    int err = 0;

    for (unsigned i = 0; i < w->n_links && !err; i++)
        err = rdma_window_ready(&rdma_of(w)->queues[i]);
    return err || !rdma_of(w)->by_cm ? err : rdma_window_greet(w);
}

int rdma_join(struct wire *w, const void *const *addresses, const size_t *lens)
{
    struct rdma *r = rdma_of(w);
    int err = 0;

    for (unsigned i = 0; i < w->n_links && !err; i++) {
        struct rdma_queue *q = &r->queues[i];
        if (lens[i] == sizeof(q->remote))
            memcpy(&q->remote, addresses[i], sizeof(q->remote));
        err = compare(q, lens[i]);
        if (!err && w->options.windows)
            err = choose_marks(q);
    }
    if (!err)
        err = r->by_cm ? join_by_cm(w) : 0;
    for (unsigned i = 0; !r->by_cm && i < w->n_links && !err; i++) {
        struct rdma_queue *q = &r->queues[i];
        tell_mtu(q);
        err = ready_to_receive(q);
        err = err ? err : ready_to_send(q);
    }
    if (err)
        return err;
    if (!w->options.windows)
        usleep(SETTLE_US);
    err = w->options.windows ? ready(w) : rdma_messages_greet(w);
    if (!err)
        rdma_facts_begin(r);
    return err;
}
