/* SPDX-License-Identifier: Apache-2.0 */
/* The transport: see tcp.h. */
#include "core/wire/tcp/tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static bool counted_by_sender(const struct net_point *p, enum net_direction d)
{
    (void)p;
    (void)d;
    return false;
}

static bool needs_worker(const struct net_point *p, enum net_direction d, bool sends)
{
    (void)p;
    (void)d;
    (void)sends;
    return true;
}

static bool polls(const struct net_point *p)
{
    return p->tcp.busy_poll_us > 0;
}

static int make_state(struct net_end *e)
{
    const struct net_point *p = e->point;
    struct tcp *t = calloc(1, sizeof(*t));
    bool streams = p->stream[NET_FORWARD] || p->stream[NET_REVERSE];

    e->state = t;
    if (!t)
        return net_fail(e, -ENOMEM, "out of memory");
    for (unsigned i = 0; i < NET_RAILS_MAX; i++)
        t->rails[i].listener = -1;
    t->still_ns = NET_STILL_NS;
    t->wait_ns = CHANNEL_WAIT_NS;
    t->first = streams ? 0 : p->connections;
    t->n = p->connections + (p->ping ? 1 : 0) - t->first;
    t->connections = aligned_alloc(_Alignof(struct tcp_connection),
                                   (p->connections + 1u) * sizeof(*t->connections));
    if (!t->connections)
        return net_fail(e, -ENOMEM, "out of memory");
    for (unsigned i = 0; i <= p->connections; i++)
        t->connections[i] = (struct tcp_connection){.fd = -1};
    return 0;
}

static int tcp_open(struct net_end *e)
{
    const struct net_point *p = e->point;
    bool streams = p->stream[NET_FORWARD] || p->stream[NET_REVERSE];

    if (p->connections > NET_CONNECTIONS_MAX)
        return net_fail(e, -EINVAL, "at most %d connections", NET_CONNECTIONS_MAX);
    if (streams && p->tcp.mode == NET_TCP_BLOCKING && p->threads < p->connections)
        return net_fail(
            e, -EOPNOTSUPP,
            "a thread that blocks serves one connection: %u threads for %u connections, "
            "or epoll",
            p->connections, p->connections);
    int err = make_state(e);
    err = err ? err : tcp_find_rails(e);
    return err ? err : tcp_try_options(e);
}

static void tcp_close(struct net_end *e)
{
    struct tcp *t = tcp_of(e);

    if (!t)
        return;
    tcp_guard_stop(e); /* it looks at the flags ten times a second */
    for (unsigned i = 0; t->connections && i < t->first + t->n; i++)
        if (t->connections[i].fd >= 0)
            close(t->connections[i].fd);
    for (unsigned i = 0; i < NET_RAILS_MAX; i++)
        if (t->rails[i].listener >= 0)
            close(t->rails[i].listener);
    host_free(&t->buffer);
    free(t->connections);
    free(t);
    e->state = NULL;
}

const struct net_ops net_tcp = {
    .name = "tcp",
    .help = "TCP over any network: blocking threads or epoll",
    .backends = tcp_backends,
    .counted_by_sender = counted_by_sender,
    .needs_worker = needs_worker,
    .polls = polls,
    .open = tcp_open,
    .card = tcp_card,
    .join = tcp_join,
    .work = tcp_work,
    .ping = tcp_ping,
    .pong = tcp_pong,
    .check = tcp_check,
    .facts = tcp_facts,
    .close = tcp_close,
};
