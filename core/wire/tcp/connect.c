/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How data connections come about, see tcp.h. The leader connects, says a token that only the two ends of
 * the channel know and the connection's number, and waits for a token in answer: so neither end takes a
 * stranger for the other.
 */
#include "core/wire/tcp/connect.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BACKLOG 4096

static in_port_t *port_of(struct sockaddr_storage *a)
{
    return a->ss_family == AF_INET ? &((struct sockaddr_in *)a)->sin_port
                                   : &((struct sockaddr_in6 *)a)->sin6_port;
}

static int refuse_listen(struct net_end *e, const struct sockaddr_storage *a, int err)
{
    char text[80];

    return net_fail(e, err,
                    "cannot listen for data on %s: %s; a free --data-port, or none, lets it choose",
                    tcp_address_text(a, text, sizeof(text)), strerror(-err));
}

static int listen_on(struct net_end *e, unsigned index)
{
    struct tcp_rail *rail = &tcp_of(e)->rails[index];
    uint32_t port = e->point->tcp.data_port;
    socklen_t len = sizeof(rail->address);
    int one = 1;

    rail->listener = socket(rail->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (rail->listener < 0)
        return net_fail(e, -errno, "a TCP socket: %s", strerror(errno));
    int err = tcp_prepare_socket(e, rail->listener, rail);
    if (err)
        return err;
    *port_of(&rail->address) = htons((uint16_t)(port ? port + index : 0));
    setsockopt(rail->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(rail->listener, (struct sockaddr *)&rail->address, rail->address_bytes) ||
        listen(rail->listener, BACKLOG) ||
        getsockname(rail->listener, (struct sockaddr *)&rail->address, &len))
        return refuse_listen(e, &rail->address, -errno);
    return 0;
}

int tcp_card(struct net_end *e, void *card, size_t *len)
{
    struct tcp *t = tcp_of(e);
    struct tcp_card *own = card;
    int err = tcp_make_buffers(e);

    memset(own, 0, sizeof(*own));
    own->n = e->n_rails;
    for (unsigned i = 0; i < e->n_rails && !err; i++) {
        if (!e->leader)
            err = listen_on(e, i);
        memcpy(&own->addresses[i], &t->rails[i].address, sizeof(own->addresses[i]));
    }
    *len = sizeof(*own);
    return err;
}

/* The address that a connection goes to. One that holds for its link alone is on ours. */
static void target_of(const struct net_end *e, const struct tcp_card *card, unsigned number,
                      struct sockaddr_storage *to)
{
    unsigned n = e->point->connections;
    unsigned rail = number < n ? (unsigned)((uint64_t)number * card->n / n) : 0;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)to;

    memcpy(to, &card->addresses[rail], sizeof(*to));
    if (to->ss_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr))
        six->sin6_scope_id = if_nametoindex(tcp_of(e)->rails[net_rail_of(e, number)].interface);
}

static int refuse_connect(struct net_end *e, unsigned number, const struct sockaddr_storage *to,
                          int err)
{
    char from_text[80], to_text[80];
    const struct tcp_rail *rail = &tcp_of(e)->rails[net_rail_of(e, number)];

    return net_fail(
        e, err,
        "no data connection from %.60s ('%.15s') to %s of %s: %s; is a firewall between "
        "them (--data-port names the port), or no route",
        tcp_address_text(&rail->address, from_text, sizeof(from_text)), rail->interface,
        tcp_address_text(to, to_text, sizeof(to_text)), channel_peer(e->channel), strerror(-err));
}

/* A connect that is under way: waits for its end. */
static int wait_connected(struct net_end *e, int fd, uint64_t until_ns)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int err = 0;
    socklen_t len = sizeof(err);

    while (poll(&p, 1, TCP_TICK_NS / 1000000) < 1) {
        if (net_over(e))
            return -ECANCELED;
        if (clock_now_ns() > until_ns)
            return -ETIMEDOUT;
    }
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) ? -errno : -err;
}

static int connect_one(struct net_end *e, const struct tcp_card *card, unsigned number,
                       uint64_t until_ns)
{
    struct tcp *t = tcp_of(e);
    struct tcp_connection *c = &t->connections[number];
    const struct tcp_rail *rail = &t->rails[net_rail_of(e, number)];
    struct sockaddr_storage to;

    target_of(e, card, number, &to);
    c->fd = socket(rail->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->fd < 0)
        return net_fail(e, -errno, "a TCP socket: %s", strerror(errno));
    int err = tcp_prepare_socket(e, c->fd, rail);
    if (err)
        return err;
    if (bind(c->fd, (const struct sockaddr *)&rail->address, rail->address_bytes) ||
        (connect(c->fd, (struct sockaddr *)&to, rail->address_bytes) && errno != EINPROGRESS))
        return refuse_connect(e, number, &to, -errno);
    err = wait_connected(e, c->fd, until_ns);
    if (err)
        return refuse_connect(e, number, &to, err);
    fcntl(c->fd, F_SETFL, fcntl(c->fd, F_GETFL) & ~O_NONBLOCK);
    err = tcp_finish_socket(e, c);
    err = err ? err : tcp_hello_send(e, c->fd, number);
    return err == -ECONNRESET ? 0 : err; /* dropped already: the answer will tell */
}

/* Connections are made all, then answers are read; one that was dropped, as a listener under a flood of strangers
 * may, is made again while there is time. */
static int connect_all(struct net_end *e, const struct tcp_card *card)
{
    struct tcp *t = tcp_of(e);
    int err = 0;

    for (unsigned i = t->first; i < t->first + t->n && !err; i++)
        err = connect_one(e, card, i, clock_now_ns() + t->wait_ns);
    uint64_t until_ns = clock_now_ns() + t->wait_ns;
    for (unsigned i = t->first; i < t->first + t->n && !err; i++) {
        struct tcp_connection *c = &t->connections[i];
        while (!err && (err = tcp_answer_receive(e, c->fd, i, until_ns)) == -ECONNRESET) {
            struct timespec pause = {0, TCP_TICK_NS};
            close(c->fd);
            c->fd = -1;
            nanosleep(&pause, NULL);
            err = connect_one(e, card, i, until_ns);
        }
        if (err && err != -ECANCELED)
            net_fail(e, err, "data connection %u was not answered by %s: %s", i,
                     channel_peer(e->channel), strerror(-err));
    }
    return err;
}

static int read_card(struct net_end *e, const void *card, size_t len, struct tcp_card *theirs)
{
    if (len != sizeof(*theirs))
        return net_fail(e, -EPROTO, "%s sent addresses that this end cannot read",
                        channel_peer(e->channel));
    memcpy(theirs, card, sizeof(*theirs));
    if (!theirs->n || theirs->n > NET_RAILS_MAX)
        return net_fail(e, -EPROTO, "%s sent %u addresses", channel_peer(e->channel), theirs->n);
    for (unsigned i = 0; i < theirs->n; i++)
        if (theirs->addresses[i].ss_family != tcp_of(e)->rails[0].address.ss_family)
            return net_fail(e, -EOPNOTSUPP,
                            "one end has an IPv4 address, the other an IPv6 one: name addresses of "
                            "one kind");
    return 0;
}

int tcp_join(struct net_end *e, const void *card, size_t len)
{
    struct tcp *t = tcp_of(e);
    struct tcp_card theirs = {0};
    int err = read_card(e, card, len, &theirs);

    if (!err)
        err = e->leader ? connect_all(e, &theirs) : tcp_accept_all(e);
    for (unsigned i = 0; i < e->n_rails; i++) {
        if (t->rails[i].listener >= 0)
            close(t->rails[i].listener);
        t->rails[i].listener = -1;
    }
    if (!err)
        tcp_describe_rails(e);
    for (unsigned i = t->first; i < t->first + t->n && !err; i++)
        t->connections[i].retransmits = tcp_retransmits(t->connections[i].fd);
    return err;
}
