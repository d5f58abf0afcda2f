/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The peer's side of data connections, see connect.h. Whoever connects is a guest until it has said a token: guests have a few
 * places and little time, the oldest makes way, and none holds up another.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/wire/tcp/connect.h"

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

int tcp_hello_send(struct net_end *e, int fd, unsigned number)
{
    struct tcp_hello hello = {.number = htonl(number)};
    int err = token_of(e, "data", number, hello.token);

    if (err)
        return err;
    return send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) == sizeof(hello) ? 0 : -ECONNRESET;
}

int tcp_answer_receive(struct net_end *e, int fd, unsigned number, uint64_t until_ns)
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

/* What a guest has to say is there, as a rule, when it comes: so a flood of silent ones does not push
 * it out. */
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

int tcp_accept_all(struct net_end *e)
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
