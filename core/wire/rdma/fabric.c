/* SPDX-License-Identifier: Apache-2.0 */
/* A fabric's life over RDMA: its device, memory, cards and connections. See rdma/fabric.h. */
#include "core/wire/rdma/fabric.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CARD_MAGIC   0x504c4d46u
#define RETRY        6 /* rxe takes 7 for without end, and a peer that is gone would not be missed */
#define SOFT_TIMEOUT 17 /* who answers for a software device may have to wait for a CPU */
#define GREETINGS_NS 10000000u
#define SETTLE_US                                                                                  \
    2000 /* for the others to be ready: a greeting that is lost is sent again after a quarter of a second */

struct card {
    uint32_t magic, qpn, psn, reserved;
    uint64_t piece_bytes;
    struct rdma_card_rail rail;
};
_Static_assert(sizeof(struct card) <= FABRIC_CARD_MAX, "a card fits");

/* What fails once fails for good: a connection does not come back. */
int rdma_fabric_told(struct fabric *f, int err)
{
    struct rdma_fabric *fx = rdma_fabric_of(f);

    if (err < 0 && !fx->failed) {
        snprintf(f->error, sizeof(f->error), "%s", fx->end.error);
        fx->failed = err;
    }
    return fx->failed ? fx->failed : err;
}

static void choose_device(const struct fabric *f, struct rdma_fabric *fx)
{
    const struct world_member *own = fx->core->member(f->world, fx->core->rank(f->world));

    snprintf(fx->local.devices, sizeof(fx->local.devices), "%s", f->options.device);
    fx->local.node = f->options.node;
    fx->r.own = own->address;
}

int rdma_fabric_open(struct fabric *f, const struct rdma_fabric_core *core)
{
    struct rdma_fabric *fx = calloc(1, sizeof(*fx));

    if (!fx) {
        snprintf(f->error, sizeof(f->error), "out of memory");
        return -ENOMEM;
    }
    f->state = fx;
    fx->core = core;
    fx->r.state.module = &plumb_rdma_module;
    fx->r.core = &core->core;
    fx->r.instead = "use tcp over its interface";
    fx->point = (struct net_point){.transport = "rdma", .connections = 1, .rdma = f->options.rdma};
    fx->point.rdma.verb = NET_WRITE_IMM;
    fx->point.rdma.connect = NET_CONNECT_EXCHANGE;
    fx->point.rdma.events = 1; /* to sleep for, when nothing comes */
    fx->point.rdma.inline_bytes = -1;
    if (!fx->point.rdma.retry)
        fx->point.rdma.retry = RETRY;
    fx->end = (struct net_end){
        .point = &fx->point, .local = &fx->local, .memory_node = -1, .state = &fx->r};
    pthread_mutex_init(&fx->end.error_lock, NULL);
    choose_device(f, fx);
    int err = rdma_devices_open(&fx->end);
    if (!err && fx->r.rails[0].software && !fx->point.rdma.timeout)
        fx->point.rdma.timeout = SOFT_TIMEOUT;
    return rdma_fabric_told(f, err);
}

static int add_memory(struct fabric *f, void *at, size_t bytes)
{
    struct rdma_fabric *fx = rdma_fabric_of(f);
    const struct rdma_rail *rail = &fx->r.rails[0];
    struct ibv_mr **more =
        realloc(fx->regions, (fx->n_regions + 1) * sizeof(*more)); /* NOLINT: of pointers */

    if (!more)
        return rdma_fabric_told(f, rdma_fail(&fx->end, -ENOMEM, "out of memory"));
    fx->regions = more;
    more[fx->n_regions] =
        ibv_reg_mr(rail->pd, at, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (!more[fx->n_regions])
        return rdma_fabric_told(f,
                                rdma_no_memory(&fx->end, "registering memory", rail, bytes, errno));
    fx->n_regions++;
    return 0;
}

static int add_link(struct fabric *f, struct fabric_link *l)
{
    struct rdma_fabric *fx = rdma_fabric_of(f);

    (void)l;
    return fx->links ? rdma_fabric_told(
                           f, rdma_fail(&fx->end, -EINVAL, "a link after the first card was made"))
                     : 0;
}

/* Grants come to, and go from, memory that is nobody else's. */
static int open_slots(struct rdma_fabric *fx, unsigned n)
{
    const uint64_t link_bytes = (RDMA_LINK_SENDS + RDMA_LINK_RECEIVES) * sizeof(struct rdma_grant);
    struct rdma_rail *rail = &fx->r.rails[0];
    int err =
        rdma_memory_open(&fx->end, rail, &rail->in, n * link_bytes, 1, IBV_ACCESS_LOCAL_WRITE);

    for (unsigned i = 0; i < n && !err; i++) {
        fx->links[i].slots_out = rail->in.at + i * link_bytes;
        fx->links[i].slots_in =
            fx->links[i].slots_out + RDMA_LINK_SENDS * sizeof(struct rdma_grant);
    }
    return err;
}

static int open_link(struct fabric *f, unsigned i)
{
    struct rdma_fabric *fx = rdma_fabric_of(f);
    struct rdma_link *k = &fx->links[i];
    struct rdma_queue *q = &fx->r.queues[i];

    k->queue = q;
    fx->core->name(f->world, f->links[i].peer, k->peer, sizeof(k->peer));
    q->number = i;
    q->peer = k->peer;
    q->shape = &fx->r.stream;
    q->send_cq = q->recv_cq = &fx->r.cqs[0];
    q->psn = (uint32_t)(clock_now_ns() / 64 + i * 7919u) & 0xffffff;
    int err = rdma_queue_make(&fx->end, q, &fx->r.stream);
    if (!err)
        err = rdma_queue_init(&fx->end, q, IBV_ACCESS_REMOTE_WRITE);
    return err ? err : rdma_fabric_ready(f, k);
}

/* All links are known. */
static int open_links(struct fabric *f)
{
    struct rdma_fabric *fx = rdma_fabric_of(f);
    struct rdma_end *r = &fx->r;
    unsigned n = f->n_links;

    r->stream = (struct rdma_shape){.pieces = 1,
                                    .window = RDMA_LINK_SENDS,
                                    .receives = RDMA_LINK_RECEIVES,
                                    .inline_bytes = RDMA_INLINE_BYTES};
    fx->links = calloc(n, sizeof(*fx->links));
    r->queues = calloc(n, sizeof(*r->queues));
    r->cqs = calloc(1, sizeof(*r->cqs));
    if (!fx->links || !r->queues || !r->cqs)
        return rdma_fail(&fx->end, -ENOMEM, "out of memory");
    r->n_queues = n;
    r->n_cqs = 1;
    int err = rdma_cq_create(&fx->end, &r->cqs[0], &r->rails[0],
                             (uint64_t)n * (RDMA_LINK_SENDS + RDMA_LINK_RECEIVES));
    if (!err)
        err = open_slots(fx, n);
    for (unsigned i = 0; i < n && !err; i++)
        err = open_link(f, i);
    return err;
}

static int make_card(struct fabric *f, struct fabric_link *l, void *at, size_t *len)
{
    struct rdma_fabric *fx = rdma_fabric_of(f);
    const struct rdma_rail *rail = &fx->r.rails[0];
    struct card card = {.magic = CARD_MAGIC};
    int err = fx->links ? 0 : open_links(f);

    if (err || !fx->links)
        return rdma_fabric_told(f, err ? err : -ENOMEM);
    const struct rdma_queue *q = fx->links[l - f->links].queue;
    card.qpn = q->qp->qp_num;
    card.psn = q->psn;
    card.piece_bytes =
        rail->port_attr.max_msg_sz < 1u << 30 ? rail->port_attr.max_msg_sz : 1u << 30;
    rdma_rail_card(rail, &card.rail);
    memcpy(at, &card, sizeof(card));
    *len = sizeof(card);
    return 0;
}

static int connect_link(struct fabric *f, unsigned i, const void *at, size_t len)
{
    struct rdma_fabric *fx = rdma_fabric_of(f);
    struct rdma_link *k = &fx->links[i];
    struct rdma_rail *rail = &fx->r.rails[0];
    struct card card = {0};

    if (len == sizeof(card))
        memcpy(&card, at, len);
    if (len != sizeof(card) || card.magic != CARD_MAGIC || !card.piece_bytes)
        return rdma_fail(&fx->end, -EPROTO, "the card of %s is damaged", k->peer);
    uint64_t own_bytes = rail->port_attr.max_msg_sz;
    k->piece_bytes = own_bytes < card.piece_bytes ? own_bytes : card.piece_bytes;
    k->queue->remote = (struct rdma_remote){.qpn = card.qpn, .psn = card.psn};
    int err = rdma_same_protocol(&fx->end, 0, &card.rail, k->peer);
    if (!err)
        err = rdma_queue_connect(&fx->end, k->queue, &card.rail);
    unsigned mtu_bytes = rdma_path_mtu(rail->mtu_bytes, card.rail.mtu_bytes);
    if (mtu_bytes < fx->end.rails[0].mtu_bytes) /* the least of all paths is told */
        fx->end.rails[0].mtu_bytes = mtu_bytes;
    f->links[i].state = k;
    snprintf(f->links[i].device, sizeof(f->links[i].device), "%s", fx->end.rails[0].name);
    return err;
}

static const struct rdma_link *not_standing(const struct fabric *f, unsigned *n)
{
    const struct rdma_fabric *fx = rdma_fabric_of(f);
    const struct rdma_link *first = NULL;

    *n = 0;
    for (unsigned i = f->n_links; i-- > 0;)
        if (!fx->links[i].greeted || !fx->links[i].retired) {
            first = &fx->links[i];
            (*n)++;
        }
    return first;
}

/* A link stands when something has come over it, each way: the peer is past its own wait, too, or
 * will be. */
static int wait_for_greetings(struct fabric *f)
{
    struct rdma_fabric *fx = rdma_fabric_of(f);
    uint64_t since_ns = clock_now_ns();
    const struct rdma_link *k;
    unsigned missing = f->n_links, before = missing;
    int err = 0;

    while ((k = not_standing(f, &missing)) != NULL && err >= 0) {
        since_ns = missing < before ? clock_now_ns() : since_ns;
        before = missing;
        err = rdma_fabric_progress(f, GREETINGS_NS);
        if (err >= 0 && (err = fabric_attend(f)) != 0)
            return rdma_fail(&fx->end, err, "the wait for %s was ended", k->peer);
        if (clock_now_ns() - since_ns > FABRIC_JOIN_NS)
            return rdma_fail(
                &fx->end, -ETIMEDOUT,
                "nothing came from %s over '%s' in %u s: can the two devices reach each "
                "other",
                k->peer, fx->end.rails[0].name, (unsigned)(FABRIC_JOIN_NS / 1000000000u));
    }
    return err < 0 ? err : 0;
}

static int join(struct fabric *f, const void *const *cards, const size_t *lens)
{
    struct rdma_fabric *fx = rdma_fabric_of(f);
    int err = 0;

    for (unsigned i = 0; i < f->n_links && !err; i++)
        err = connect_link(f, i, cards[i], lens[i]);
    if (!err)
        usleep(SETTLE_US);
    for (unsigned i = 0; i < f->n_links && !err; i++)
        err = rdma_fabric_greet(f, &f->links[i]);
    if (!err)
        err = wait_for_greetings(f);
    if (!err)
        rdma_facts_begin(&fx->r);
    return rdma_fabric_told(f, err);
}

static void describe(const struct fabric *f, char *text, size_t len)
{
    const struct rdma_fabric *fx = rdma_fabric_of(f);
    const struct rdma_rail *rail = &fx->r.rails[0];
    bool lid = rail->protocol == RDMA_INFINIBAND && rail->port_attr.lid;

    snprintf(text, len, "%s, %s %u, MTU %u", fx->end.rails[0].kind, lid ? "LID" : "GID",
             lid ? rail->port_attr.lid : rail->gid_index, fx->end.rails[0].mtu_bytes);
}

static size_t facts(struct fabric *f, struct net_fact *out)
{
    return rdma_facts(&rdma_fabric_of(f)->end, out);
}

static int rail(const struct fabric *f, struct net_rail *out)
{
    *out = rdma_fabric_of(f)->end.rails[0];
    return 0;
}

static void close_fabric(struct fabric *f)
{
    struct rdma_fabric *fx = rdma_fabric_of(f);

    rdma_queues_close(&fx->r);
    for (unsigned i = 0; i < fx->n_regions; i++)
        ibv_dereg_mr(fx->regions[i]);
    rdma_devices_close(&fx->r);
    pthread_mutex_destroy(&fx->end.error_lock);
    free(fx->regions);
    free(fx->links);
    free(fx);
}

const struct fabric_ops rdma_fabric_ops = {
    .name = "rdma",
    .memory = add_memory,
    .link = add_link,
    .card = make_card,
    .join = join,
    .send = rdma_fabric_send,
    .receive = rdma_fabric_receive,
    .progress = rdma_fabric_progress,
    .describe = describe,
    .facts = facts,
    .rail = rail,
    .close = close_fabric,
};
