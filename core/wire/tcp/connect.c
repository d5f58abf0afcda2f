/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How data connections come about, see tcp.h. The leader connects, says a token that only the two
 * ends of the channel know and the connection's number, and waits for a token in answer: so neither
 * end takes a stranger for the other.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/wire/tcp/tcp.h"

/* The peer's side of data connections. Whoever connects is a guest until it has said a token:
 * guests have a few places and little time, the oldest makes way, and none holds up another. */

#define GUESTS   64
#define GUEST_NS 5000000000u

struct guest {
    int fd; /* -1: a free place */
    uint64_t since_ns;
    size_t got;
    struct tcp_hello hello;
};

struct door {
    struct net_end *e;
    struct guest guests[GUESTS];
    unsigned missing; /* connections */
};

/* Takes as long whatever differs. */
static bool same_token(const uint8_t *a, const uint8_t *b)
{
    volatile uint8_t different = 0;

    for (size_t i = 0; i < CHANNEL_TOKEN_BYTES; i++)
        different = (uint8_t)(different | (a[i] ^ b[i]));
    return !different;
}

static int token_of(struct net_end *e, const char *purpose, unsigned number, uint8_t *token)
{
    int err = channel_token(e->channel, purpose, number, token);

    return err ? net_fail(e, err, "no token for a data connection: %s", channel_error(e->channel))
               : 0;
}

static int tcp_hello_send(struct net_end *e, int fd, unsigned number)
{
    struct tcp_hello hello = {.number = htonl(number)};
    int err = token_of(e, "data", number, hello.token);

    if (err)
        return err;
    return send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) == sizeof(hello) ? 0 : -ECONNRESET;
}

/* 0; -ECONNRESET: the other side dropped it, without an answer; else after net_fail() or
 * -ETIMEDOUT. */
static int tcp_answer_receive(struct net_end *e, int fd, unsigned number, uint64_t until_ns)
{
    uint8_t got[CHANNEL_TOKEN_BYTES], right[CHANNEL_TOKEN_BYTES];
    size_t n = 0;
    int err = token_of(e, "data answer", number, right);

    while (!err && n < sizeof(got)) {
        ssize_t more = recv(fd, got + n, sizeof(got) - n, 0);
        if (more > 0)
            n += (size_t)more;
        else if (!more || (errno != EAGAIN && errno != EINTR))
            err = -ECONNRESET;
        else if (net_over(e))
            err = -ECANCELED;
        else if (clock_now_ns() > until_ns)
            err = -ETIMEDOUT;
    }
    if (!err && !same_token(got, right))
        err = net_fail(e, -EPROTO, "data connection %u was answered by a stranger, not by %s",
                       number, channel_peer(e->channel));
    return err;
}

static void show_out(struct guest *g)
{
    if (g->fd >= 0)
        close(g->fd);
    g->fd = -1;
}

/* A free place, or that of the oldest guest. */
static struct guest *place_for(struct door *d)
{
    struct guest *oldest = &d->guests[0];

    for (unsigned i = 0; i < GUESTS && oldest->fd >= 0; i++)
        if (d->guests[i].fd < 0 || d->guests[i].since_ns < oldest->since_ns)
            oldest = &d->guests[i];
    show_out(oldest);
    return oldest;
}

/* It has said all: is it the leader, with a connection that is still missing? */
static int welcome(struct door *d, struct guest *g)
{
    struct tcp *t = tcp_of(d->e);
    unsigned number = ntohl(g->hello.number);
    uint8_t right[CHANNEL_TOKEN_BYTES], answer[CHANNEL_TOKEN_BYTES];

    if (number < t->first || number >= t->first + t->n || t->connections[number].fd >= 0) {
        show_out(g);
        return 0;
    }
    struct tcp_connection *c = &t->connections[number];
    int err = token_of(d->e, "data", number, right);
    err = err ? err : token_of(d->e, "data answer", number, answer);
    if (err || !same_token(g->hello.token, right) ||
        send(g->fd, answer, sizeof(answer), MSG_NOSIGNAL) != sizeof(answer)) {
        show_out(g);
        return err;
    }
    fcntl(g->fd, F_SETFL, fcntl(g->fd, F_GETFL) & ~O_NONBLOCK);
    c->fd = g->fd;
    g->fd = -1;
    d->missing--;
    return tcp_finish_socket(d->e, c);
}

static int listen_to(struct door *d, struct guest *g, uint64_t now_ns)
{
    size_t left = sizeof(g->hello) - g->got;

    if (g->fd < 0)
        return 0;
    ssize_t n = recv(g->fd, (char *)&g->hello + g->got, left, MSG_DONTWAIT);
    if (n > 0)
        g->got += (size_t)n;
    if (g->got == sizeof(g->hello))
        return welcome(d, g);
    if (!n || (n < 0 && errno != EAGAIN && errno != EINTR) || now_ns - g->since_ns > GUEST_NS)
        show_out(g);
    return 0;
}

/* What a guest has to say is there, as a rule, when it comes: so a flood of silent ones does not
 * push it out. */
static int let_in(struct door *d, int listener, uint64_t now_ns)
{
    int fd, err = 0;

    while (!err && d->missing &&
           (fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        struct guest *g = place_for(d);
        *g = (struct guest){.fd = fd, .since_ns = now_ns};
        err = listen_to(d, g, now_ns);
    }
    return err;
}

static void wait_for_guests(struct door *d)
{
    struct pollfd p[NET_RAILS_MAX + GUESTS];
    nfds_t n = 0;

    for (unsigned i = 0; i < d->e->n_rails; i++)
        p[n++] = (struct pollfd){.fd = tcp_of(d->e)->rails[i].listener, .events = POLLIN};
    for (unsigned i = 0; i < GUESTS; i++)
        p[n++] = (struct pollfd){.fd = d->guests[i].fd, .events = POLLIN};
    poll(p, n, TCP_TICK_NS / 1000000);
}

static int check_leader(struct door *d, uint64_t since_ns, uint64_t now_ns)
{
    struct net_end *e = d->e;

    if (net_over(e))
        return -ECANCELED;
    if (channel_alive(e->channel))
        return net_fail(e, -ECONNRESET, "%s ended before its data connections were made",
                        channel_peer(e->channel));
    if (now_ns - since_ns > tcp_of(e)->wait_ns)
        return net_fail(e, -ETIMEDOUT,
                        "%s did not make %u of its data connections: is a firewall between, or "
                        "no route to '%s' (--data-port names the port)",
                        channel_peer(e->channel), d->missing, e->rails[0].name);
    return 0;
}

/* Takes the connections that say the right token, until all are there. */
static int tcp_accept_all(struct net_end *e)
{
    struct door *d = malloc(sizeof(*d));
    uint64_t since_ns = clock_now_ns();
    int err = 0;

    if (!d)
        return net_fail(e, -ENOMEM, "out of memory");
    d->e = e;
    d->missing = tcp_of(e)->n;
    for (unsigned i = 0; i < GUESTS; i++)
        d->guests[i].fd = -1;
    while (d->missing && !err) {
        unsigned before = d->missing;
        wait_for_guests(d);
        uint64_t now_ns = clock_now_ns();
        for (unsigned i = 0; i < GUESTS && !err; i++)
            err = listen_to(d, &d->guests[i], now_ns);
        for (unsigned i = 0; i < e->n_rails && !err; i++)
            err = let_in(d, tcp_of(e)->rails[i].listener, now_ns);
        since_ns = d->missing < before ? now_ns : since_ns;
        err = err || !d->missing ? err : check_leader(d, since_ns, now_ns);
    }
    for (unsigned i = 0; i < GUESTS; i++)
        show_out(&d->guests[i]);
    free(d);
    return err;
}

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

int tcp_address(struct net_end *e, void *address, size_t *len)
{
    struct tcp *t = tcp_of(e);
    struct tcp_address *own = address;
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
static void target_of(const struct net_end *e, const struct tcp_address *address, unsigned number,
                      struct sockaddr_storage *to)
{
    unsigned n = e->point->connections;
    unsigned rail = number < n ? (unsigned)((uint64_t)number * address->n / n) : 0;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)to;

    memcpy(to, &address->addresses[rail], sizeof(*to));
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

static int connect_one(struct net_end *e, const struct tcp_address *address, unsigned number,
                       uint64_t until_ns)
{
    struct tcp *t = tcp_of(e);
    struct tcp_connection *c = &t->connections[number];
    const struct tcp_rail *rail = &t->rails[net_rail_of(e, number)];
    struct sockaddr_storage to;

    target_of(e, address, number, &to);
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

/* Connections are made all, then answers are read; one that was dropped, as a listener under a
 * flood of strangers may, is made again while there is time. */
static int connect_all(struct net_end *e, const struct tcp_address *address)
{
    struct tcp *t = tcp_of(e);
    int err = 0;

    for (unsigned i = t->first; i < t->first + t->n && !err; i++)
        err = connect_one(e, address, i, clock_now_ns() + t->wait_ns);
    uint64_t until_ns = clock_now_ns() + t->wait_ns;
    for (unsigned i = t->first; i < t->first + t->n && !err; i++) {
        struct tcp_connection *c = &t->connections[i];
        while (!err && (err = tcp_answer_receive(e, c->fd, i, until_ns)) == -ECONNRESET) {
            struct timespec pause = {0, TCP_TICK_NS};
            close(c->fd);
            c->fd = -1;
            nanosleep(&pause, NULL);
            err = connect_one(e, address, i, until_ns);
        }
        if (err && err != -ECANCELED)
            net_fail(e, err, "data connection %u was not answered by %s: %s", i,
                     channel_peer(e->channel), strerror(-err));
    }
    return err;
}

static int read_address(struct net_end *e, const void *address, size_t len,
                        struct tcp_address *theirs)
{
    if (len != sizeof(*theirs))
        return net_fail(e, -EPROTO, "%s sent addresses that this end cannot read",
                        channel_peer(e->channel));
    memcpy(theirs, address, sizeof(*theirs));
    if (!theirs->n || theirs->n > NET_RAILS_MAX)
        return net_fail(e, -EPROTO, "%s sent %u addresses", channel_peer(e->channel), theirs->n);
    for (unsigned i = 0; i < theirs->n; i++)
        if (theirs->addresses[i].ss_family != tcp_of(e)->rails[0].address.ss_family)
            return net_fail(e, -EOPNOTSUPP,
                            "one end has an IPv4 address, the other an IPv6 one: name addresses of "
                            "one kind");
    return 0;
}

int tcp_join(struct net_end *e, const void *address, size_t len)
{
    struct tcp *t = tcp_of(e);
    struct tcp_address theirs = {0};
    int err = read_address(e, address, len, &theirs);

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
