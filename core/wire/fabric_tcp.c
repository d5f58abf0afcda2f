/* SPDX-License-Identifier: Apache-2.0 */
/* The fabric over TCP: see fabric_tcp.h. */
#include "core/wire/fabric_tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/group/secret.h"
#include "core/hw/nic.h"

static int way_address(struct channel *c, struct sockaddr_storage *own,
                       struct sockaddr_storage *peer);
static const struct channel_ops way_ops = {.name = "way", .address = way_address};

/* The end's channel is the first member that it was made of. */
static int way_address(struct channel *c, struct sockaddr_storage *own,
                       struct sockaddr_storage *peer)
{
    const struct fabric_tcp *t =
        (const struct fabric_tcp *)((const char *)c - offsetof(struct fabric_tcp, channel));

    if (t->own.ss_family == AF_UNSPEC)
        return -EOPNOTSUPP;
    memcpy(own, &t->own, sizeof(*own));
    memcpy(peer, &t->peer, sizeof(*peer));
    return 0;
}

int fabric_tcp_end_failed(struct fabric *f, int err)
{
    return err ? fabric_fail(f, err, "%s", fabric_tcp_of(f)->end.error) : 0;
}

static void make_end(struct fabric *f, struct fabric_tcp *t)
{
    t->point = (struct net_point){.tcp = f->options.tcp};
    t->point.tcp.zerocopy = 0;
    snprintf(t->local.devices, sizeof(t->local.devices), "%s", f->options.device);
    t->channel = (struct channel_base){.ops = &way_ops};
    t->tcp.wait_ns = CHANNEL_WAIT_NS;
    t->end = (struct net_end){.point = &t->point,
                              .local = &t->local,
                              .channel = (struct channel *)&t->channel,
                              .memory_node = -1,
                              .state = &t->tcp};
    pthread_mutex_init(&t->end.error_lock, NULL);
    for (unsigned i = 0; i < NET_RAILS_MAX; i++)
        t->tcp.rails[i].listener = -1;
    t->rails[0] = t->rails[1] = -1;
    t->wait_ns = FABRIC_JOIN_NS;
}

static int tcp_open(struct fabric *f)
{
    unsigned size = world_size(f->world);
    struct fabric_tcp *t = calloc(1, sizeof(*t));

    f->state = t;
    if (!t)
        return fabric_fail(f, -ENOMEM, "out of memory");
    make_end(f, t);
    t->tcp.connections =
        aligned_alloc(_Alignof(struct tcp_connection), size * sizeof(*t->tcp.connections));
    t->polls = calloc(size, sizeof(*t->polls));
    t->which = calloc(size, sizeof(*t->which));
    if (!t->tcp.connections || !t->polls || !t->which)
        return fabric_fail(f, -ENOMEM, "out of memory");
    for (unsigned i = 0; i < size; i++)
        t->tcp.connections[i] = (struct tcp_connection){.fd = -1, .out_bytes = 1};
    if (strlen(f->options.device) >= sizeof(t->local.devices))
        return fabric_fail(f, -EINVAL, "'%.80s' is no interface", f->options.device);
    int err = secret_random(t->nonce, sizeof(t->nonce));
    return err ? fabric_fail(f, err, "no random numbers: %s", strerror(-err)) : 0;
}

static bool is_near(const struct fabric *f, unsigned rank)
{
    uint64_t own = world_member(f->world, world_rank(f->world))->network;

    return own && world_member(f->world, rank)->network == own;
}

/* Where connections to near or to far peers start, found when the first of them is asked for. A named device serves both. */
static int find_rail(struct fabric *f, unsigned peer, bool near)
{
    struct fabric_tcp *t = fabric_tcp_of(f);
    struct sockaddr_in loopback = {.sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    if (t->rails[near] >= 0)
        return 0;
    if (t->rails[!near] >= 0 && f->options.device[0]) {
        t->rails[near] = t->rails[!near];
        return 0;
    }
    t->own = world_member(f->world, world_rank(f->world))->address;
    t->peer = world_member(f->world, peer)->address;
    if (near && !f->options.device[0]) {
        memcpy(&t->own, &loopback, sizeof(loopback));
        memcpy(&t->peer, &loopback, sizeof(loopback));
    }
    t->end.same_machine = false;
    int err = tcp_find_rails(&t->end);
    if (!err)
        t->rails[near] = (int)t->end.n_rails - 1;
    return err ? err : tcp_try_options(&t->end);
}

static int tcp_link(struct fabric *f, struct fabric_link *l)
{
    struct fabric_tcp *t = fabric_tcp_of(f);
    bool near = is_near(f, l->peer);
    int err = find_rail(f, l->peer, near);

    if (err)
        return fabric_tcp_end_failed(f, err);
    struct fabric_tcp_link *tl = calloc(1, sizeof(*tl));
    if (!tl)
        return fabric_fail(f, -ENOMEM, "out of memory");
    tl->index = f->n_links;
    tl->near = near;
    tl->rail = (unsigned)t->rails[near];
    tl->step = world_rank(f->world) > l->peer ? FABRIC_TCP_IDLE : FABRIC_TCP_AWAITED;
    l->state = tl;
    return 0;
}

static void tcp_close(struct fabric *f)
{
    struct fabric_tcp *t = fabric_tcp_of(f);

    if (!t)
        return;
    for (unsigned i = 0; i < f->n_links; i++) {
        if (t->tcp.connections[i].fd >= 0)
            close(t->tcp.connections[i].fd);
        free(f->links[i].state);
    }
    for (unsigned i = 0; i < NET_RAILS_MAX; i++)
        if (t->tcp.rails[i].listener >= 0)
            close(t->tcp.rails[i].listener);
    pthread_mutex_destroy(&t->end.error_lock);
    free(t->tcp.connections);
    free(t->polls);
    free(t->which);
    free(t);
    f->state = NULL;
}

/* The kernel's words for the connection that the fabric's path is told by. */
static struct net_rail *describe_main(const struct fabric *f)
{
    struct fabric_tcp *t = fabric_tcp_of(f);

    t->tcp.first = t->main;
    t->tcp.n = 1;
    tcp_describe_rails(&t->end);
    t->tcp.first = 0;
    t->tcp.n = f->n_links;
    return &t->end.rails[0];
}

static bool stands(const struct fabric *f)
{
    return f->n_links && fabric_tcp_of(f)->tcp.connections[0].fd >= 0;
}

static void tcp_describe(const struct fabric *f, char *text, size_t len)
{
    snprintf(text, len, "%s", stands(f) ? describe_main(f)->text : "");
}

static size_t tcp_fabric_facts(struct fabric *f, struct net_fact *facts)
{
    return stands(f) ? tcp_facts(&fabric_tcp_of(f)->end, facts) : 0;
}

static int tcp_rail(const struct fabric *f, struct net_rail *rail)
{
    if (!stands(f))
        return -ENODATA;
    *rail = *describe_main(f);
    snprintf(rail->name, sizeof(rail->name), "%s", f->links[fabric_tcp_of(f)->main].device);
    nic_fill(rail, rail->name);
    return 0;
}

static bool unheard(const struct fabric *f, const struct fabric_link *l, uint64_t for_ns)
{
    return tcp_unheard(fabric_tcp_fd(f, l), for_ns);
}

const struct fabric_ops fabric_tcp = {
    .name = "tcp",
    .help = "TCP, one connection between each two ranks",
    .backends = tcp_backends,
    .open = tcp_open,
    .link = tcp_link,
    .card = fabric_tcp_card,
    .join = fabric_tcp_join,
    .send = fabric_tcp_send,
    .receive = fabric_tcp_receive,
    .progress = fabric_tcp_progress,
    .describe = tcp_describe,
    .facts = tcp_fabric_facts,
    .unheard = unheard,
    .rail = tcp_rail,
    .close = tcp_close,
};
