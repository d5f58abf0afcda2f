/* SPDX-License-Identifier: Apache-2.0 */
/* What both ends tell each other, and queue pairs made ready to receive and to send. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/wire/rdma/rdma.h"

#define READS_AT_ONCE 16u /* what most cards have */
#define CARD_MAGIC    0x504c4d42u

struct card {
    uint32_t magic, by_cm, n_rails, n_queues;
    uint32_t on_gpu, reserved; /* buffers are */
    uint64_t piece_bytes[2];   /* of streams and of the ping: both ends must cut messages alike */
    struct rdma_card_rail rails[NET_RAILS_MAX];
    struct rdma_remote queues[NET_CONNECTIONS_MAX + 1];
};
_Static_assert(sizeof(struct card) <= NET_CARD_MAX, "a card fits in its frame");

static size_t card_len(unsigned n_queues)
{
    return offsetof(struct card, queues) + n_queues * sizeof(struct rdma_remote);
}

static void set_port(struct sockaddr_storage *a, uint16_t port)
{
    if (a->ss_family == AF_INET)
        ((struct sockaddr_in *)a)->sin_port = port;
    else
        ((struct sockaddr_in6 *)a)->sin6_port = port;
}

void rdma_rail_card(const struct rdma_rail *rail, struct rdma_card_rail *out)
{
    *out = (struct rdma_card_rail){.protocol = rail->protocol,
                                   .lid = rail->port_attr.lid,
                                   .mtu_bytes = rail->mtu_bytes,
                                   .reads = (uint32_t)rail->attr.max_qp_rd_atom,
                                   .address = rail->address};
    memcpy(out->gid, rail->gid.raw, sizeof(out->gid));
}

static int rail_card(struct net_end *e, struct rdma_rail *rail, struct rdma_card_rail *out)
{
    uint16_t port = 0;

    rdma_rail_card(rail, out);
    if (!rdma_of(e)->by_cm || e->leader)
        return 0;
    int err = rdma_cm_listen(e, rail, &port);
    set_port(&out->address, port);
    return err;
}

static void queue_card(const struct rdma_end *r, const struct rdma_queue *q,
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

int rdma_card(struct net_end *e, void *out, size_t *len)
{
    struct rdma_end *r = rdma_of(e);
    struct card *card = out;
    int err = rdma_queues_open(e);

    if (err)
        return err;
    memset(card, 0, card_len(r->n_queues));
    card->magic = CARD_MAGIC;
    card->by_cm = r->by_cm;
    card->n_rails = r->n_rails;
    card->n_queues = r->n_queues;
    card->on_gpu = r->gpu != NULL;
    card->piece_bytes[0] = r->stream.piece_bytes;
    card->piece_bytes[1] = r->ping.piece_bytes;
    for (unsigned i = 0; i < r->n_rails && !err; i++)
        err = rail_card(e, &r->rails[i], &card->rails[i]);
    for (unsigned i = 0; i < r->n_queues; i++)
        queue_card(r, &r->queues[i], &card->queues[i]);
    *len = card_len(r->n_queues);
    return err;
}

static const char *const protocols[] = {"InfiniBand", "RoCE v1", "RoCE v2", "iWARP"};

int rdma_same_protocol(struct net_end *e, unsigned i, const struct rdma_card_rail *to,
                       const char *peer)
{
    enum rdma_protocol own = rdma_of(e)->rails[i].protocol;

    if (to->protocol > RDMA_IWARP)
        return rdma_fail(e, -EPROTO, "the card of %s is damaged", peer);
    if (to->protocol == own)
        return 0;
    return rdma_fail(e, -EOPNOTSUPP,
                     "'%s' speaks %s, and %s speaks %s there: they cannot talk; choose "
                     "the GID index at both ends, or other devices",
                     e->rails[i].name, protocols[own], peer, protocols[to->protocol]);
}

/* Can these two talk at all? */
static int compare(struct net_end *e, const struct card *card, size_t len)
{
    const struct rdma_end *r = rdma_of(e);

    if (len < card_len(0) || card->magic != CARD_MAGIC || card->n_queues != r->n_queues ||
        len != card_len(r->n_queues) || card->n_rails < 1 || card->n_rails > NET_RAILS_MAX)
        return rdma_fail(e, -EPROTO, "the card of %s is damaged", channel_peer(e->channel));
    if (card->by_cm != r->by_cm)
        return rdma_fail(e, -EOPNOTSUPP,
                         "one end connects by RDMA CM, the other does not: ask both for cm");
    if (card->n_rails != r->n_rails)
        return rdma_fail(e, -EINVAL, "%u devices here, %u at %s: name as many at both ends",
                         r->n_rails, card->n_rails, channel_peer(e->channel));
    if (card->piece_bytes[0] != r->stream.piece_bytes ||
        card->piece_bytes[1] != r->ping.piece_bytes)
        return rdma_fail(
            e, -EOPNOTSUPP,
            "the largest message differs: here %llu bytes, at %s %llu; use messages no "
            "larger than either",
            (unsigned long long)r->stream.piece_bytes, channel_peer(e->channel),
            (unsigned long long)card->piece_bytes[0]);
    int err = 0;
    for (unsigned i = 0; i < r->n_rails && !err; i++)
        err = rdma_same_protocol(e, i, &card->rails[i], channel_peer(e->channel));
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

static unsigned reads_at_once(const struct rdma_rail *own, const struct rdma_card_rail *theirs)
{
    unsigned n = (unsigned)own->attr.max_qp_init_rd_atom;

    n = n < theirs->reads ? n : theirs->reads;
    return n < READS_AT_ONCE ? n : READS_AT_ONCE;
}

static int ready_to_receive(struct net_end *e, struct rdma_queue *q,
                            const struct rdma_card_rail *to)
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

static int ready_to_send(struct net_end *e, struct rdma_queue *q, const struct rdma_card_rail *to)
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

int rdma_queue_connect(struct net_end *e, struct rdma_queue *q, const struct rdma_card_rail *to)
{
    int err = ready_to_receive(e, q, to);

    return err ? err : ready_to_send(e, q, to);
}

static int join_by_exchange(struct net_end *e, const struct card *card)
{
    struct rdma_end *r = rdma_of(e);
    int err = 0;

    for (unsigned i = 0; i < r->n_rails; i++)
        agree_mtu(e, i, card->rails[i].mtu_bytes);
    for (unsigned i = 0; i < r->n_queues && !err; i++)
        err = rdma_queue_connect(e, &r->queues[i], &card->rails[r->queues[i].rail]);
    return err;
}

static int join_by_cm(struct net_end *e, const struct card *card)
{
    struct rdma_end *r = rdma_of(e);
    struct sockaddr_storage peers[NET_RAILS_MAX];
    unsigned reads[NET_RAILS_MAX];

    for (unsigned i = 0; i < r->n_rails; i++) {
        peers[i] = card->rails[i].address;
        reads[i] = reads_at_once(&r->rails[i], &card->rails[i]);
    }
    return rdma_cm_join(e, peers, r->n_rails, reads);
}

/* Pings whose numbers not both ends' CPUs can read and write in their buffers. */
static int choose_marks(struct net_end *e, const struct card *card)
{
    struct rdma_end *r = rdma_of(e);
    enum net_verb verb = (enum net_verb)e->point->rdma.verb;
    char *text = e->rails[0].text;
    size_t at = strlen(text);

    if (!e->point->ping || (!r->gpu && !card->on_gpu) || (verb != NET_WRITE && verb != NET_SEND))
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
    struct card card;

    if (len > sizeof(card))
        return rdma_fail(e, -EPROTO, "the card of %s is damaged", channel_peer(e->channel));
    memset(&card, 0, sizeof(card));
    memcpy(&card, at, len);
    int err = compare(e, &card, len);
    if (!err)
        err = choose_marks(e, &card);
    for (unsigned i = 0; i < r->n_queues && !err; i++)
        r->queues[i].remote = card.queues[i];
    if (!err)
        err = r->by_cm ? join_by_cm(e, &card) : join_by_exchange(e, &card);
    for (unsigned i = 0; i < r->n_queues && !err; i++)
        err = rdma_queue_prepare(e, &r->queues[i]);
    if (!err && r->by_cm)
        err = rdma_greet(e);
    if (!err)
        rdma_facts_begin(r);
    return err;
}
