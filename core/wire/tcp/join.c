/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the connections of wire_tcp.h come about. Of two ranks the higher connects; each rank does
 * all its links at once, those that it makes and those that it awaits, so that no two wait for each
 * other. Whoever connects is a guest until it has said a token: guests have a few places and little
 * time, the oldest makes way, and none holds up another.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/group/channel.h"
#include "core/group/secret.h"
#include "core/hw/nic.h"
#include "core/wire/tcp/tcp.h"

/* One connection on its way. The higher rank connects, says a token that only ranks of this
 * world know, and waits for another in answer: so neither takes a stranger for the other. A
 * connection that is dropped, as a listener under a flood of strangers may, is made again while
 * there is time. */

_Static_assert(CHANNEL_TOKEN_BYTES == SECRET_MAC_BYTES, "a token is a MAC");

/* Between two ranks, for the wire whose listener has this nonce. */
static void make_token(const struct wire *f, const char *what, const uint8_t *nonce, unsigned from,
                       unsigned to, uint8_t *token)
{
    char purpose[64];

    snprintf(purpose, sizeof(purpose), "wire tcp %s %016llx", what,
             (unsigned long long)bytes_get64(nonce));
    secret_token(token, world_key(f->world), purpose, from * WORLD_RANKS_MAX + to);
}

/* Takes as long whatever differs. */
static bool same_token(const uint8_t *a, const uint8_t *b)
{
    volatile uint8_t different = 0;

    for (size_t i = 0; i < CHANNEL_TOKEN_BYTES; i++)
        different = (uint8_t)(different | (a[i] ^ b[i]));
    return !different;
}

/* The connection is the link's: from here on its bytes are data. */
static int finish(struct wire *f, struct wire_link *l)
{
    struct wire_tcp *t = wire_tcp_of(f);
    struct wire_tcp_link *tl = wire_tcp_link_of(l);

    tl->step = WIRE_TCP_STANDS;
    return wire_tcp_end_failed(f, tcp_finish_socket(&t->end, &t->tcp.connections[tl->index]));
}

static struct wire_link *awaited(struct wire *f, unsigned rank)
{
    for (unsigned i = 0; i < f->n_links; i++)
        if (f->links[i].peer == rank)
            return wire_tcp_link_of(&f->links[i])->step == WIRE_TCP_AWAITED ? &f->links[i] : NULL;
    return NULL;
}

/* Somebody says hello on fd: 1 with its link standing, 0: a stranger; or wire_fail(). */
static int wire_tcp_welcome(struct wire *f, int fd, const struct wire_tcp_hello *hello)
{
    struct wire_tcp *t = wire_tcp_of(f);
    unsigned own = world_rank(f->world), from = bytes_get32(hello->from);
    struct wire_link *l = awaited(f, from);
    uint8_t token[CHANNEL_TOKEN_BYTES];

    if (!l)
        return 0;
    make_token(f, "hello", t->nonce, from, own, token);
    if (!same_token(hello->token, token))
        return 0;
    make_token(f, "answer", t->nonce, from, own, token);
    if (send(fd, token, sizeof(token), MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof(token))
        return 0;
    struct wire_tcp_link *tl = wire_tcp_link_of(l);
    t->tcp.connections[tl->index].fd = fd;
    t->end.same_machine = tl->near;
    int err = tcp_prepare_socket(&t->end, fd, &t->tcp.rails[tl->rail]);
    err = err ? wire_tcp_end_failed(f, err) : finish(f, l);
    if (err)
        t->tcp.connections[tl->index].fd = -1; /* the guest's still */
    return err ? err : 1;
}

static int refuse(struct wire *f, const struct wire_link *l, int err)
{
    const struct wire_tcp_link *tl = wire_tcp_link_of(l);
    const struct tcp_rail *rail = &wire_tcp_of(f)->tcp.rails[tl->rail];
    char from[80], to[80], name[128];

    return wire_fail(f, err,
                     "no data connection from %.60s ('%.15s') to %s of %s: %s; is a firewall "
                     "between them (--data-port names the port), or no route",
                     tcp_address_text(&rail->address, from, sizeof(from)), rail->interface,
                     tcp_address_text(&tl->theirs.address, to, sizeof(to)),
                     world_name(f->world, l->peer, name, sizeof(name)), strerror(-err));
}

static int begin(struct wire *f, struct wire_link *l)
{
    struct wire_tcp *t = wire_tcp_of(f);
    struct wire_tcp_link *tl = wire_tcp_link_of(l);
    const struct tcp_rail *rail = &t->tcp.rails[tl->rail];
    struct sockaddr_storage own = rail->address;
    int fd = socket(own.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return wire_fail(f, -errno, "a TCP socket: %s (ulimit -n)", strerror(errno));
    t->tcp.connections[tl->index].fd = fd;
    t->end.same_machine = tl->near;
    int err = tcp_prepare_socket(&t->end, fd, rail);
    if (err)
        return wire_tcp_end_failed(f, err);
    ((struct sockaddr_in *)&own)->sin_port = 0; /* its place is the same in both families */
    tl->step = WIRE_TCP_CALLS;
    tl->got = 0;
    if (bind(fd, (struct sockaddr *)&own, rail->address_bytes) ||
        (connect(fd, (struct sockaddr *)&tl->theirs.address, rail->address_bytes) &&
         errno != EINPROGRESS))
        return refuse(f, l, -errno);
    return 0;
}

/* It was dropped: once more, after a pause. */
static void again(struct wire *f, struct wire_link *l, uint64_t now_ns)
{
    struct wire_tcp_link *tl = wire_tcp_link_of(l);
    struct tcp_connection *c = &wire_tcp_of(f)->tcp.connections[tl->index];

    close(c->fd);
    c->fd = -1;
    tl->step = WIRE_TCP_IDLE;
    tl->again_ns = now_ns + TCP_TICK_NS;
}

static int say_hello(struct wire *f, struct wire_link *l, uint64_t now_ns)
{
    struct wire_tcp_link *tl = wire_tcp_link_of(l);
    unsigned own = world_rank(f->world);
    struct wire_tcp_hello hello;
    int fd = wire_tcp_fd(l), failed = 0;
    socklen_t len = sizeof(failed);

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &len))
        failed = errno;
    if (failed && failed != ECONNRESET)
        return refuse(f, l, -failed);
    make_token(f, "hello", tl->theirs.nonce, own, l->peer, hello.token);
    bytes_put32(hello.from, own);
    tl->step = WIRE_TCP_ASKS;
    if (failed || send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) != sizeof(hello))
        again(f, l, now_ns);
    return 0;
}

static int hear_answer(struct wire *f, struct wire_link *l, uint64_t now_ns)
{
    struct wire_tcp_link *tl = wire_tcp_link_of(l);
    uint8_t right[CHANNEL_TOKEN_BYTES];
    char name[128];
    ssize_t n =
        recv(wire_tcp_fd(l), tl->answer + tl->got, sizeof(tl->answer) - tl->got, MSG_DONTWAIT);

    if (!n || (n < 0 && errno != EAGAIN && errno != EINTR))
        again(f, l, now_ns);
    if (n <= 0)
        return 0;
    tl->got += (size_t)n;
    if (tl->got < sizeof(tl->answer))
        return 0;
    make_token(f, "answer", tl->theirs.nonce, world_rank(f->world), l->peer, right);
    if (!same_token(tl->answer, right))
        return wire_fail(f, -EPROTO, "a data connection was answered by a stranger, not by %s",
                         world_name(f->world, l->peer, name, sizeof(name)));
    return finish(f, l);
}

/* Takes the next step that can be taken without waiting. 0, or wire_fail(). */
static int wire_tcp_call(struct wire *f, struct wire_link *l, short revents, uint64_t now_ns)
{
    struct wire_tcp_link *tl = wire_tcp_link_of(l);

    if (tl->step == WIRE_TCP_IDLE)
        return now_ns >= tl->again_ns ? begin(f, l) : 0;
    if (tl->step == WIRE_TCP_CALLS)
        return revents ? say_hello(f, l, now_ns) : 0;
    return revents ? hear_answer(f, l, now_ns) : 0;
}

#define BACKLOG    4096
#define GUESTS     64
#define GUEST_NS   5000000000u
#define ADMISSIONS 64u /* at once, of what may be a flood of strangers */

struct guest {
    int fd; /* -1: a free place */
    uint64_t since_ns;
    size_t got;
    struct wire_tcp_hello hello;
};

struct joining {
    struct wire *f;
    struct guest guests[GUESTS];
    struct pollfd *polls; /* rails, guests, links */
    unsigned missing;     /* links */
};

/* Ranks of one network share its ports: each takes the next one after the first. */
static uint32_t port_of_rank(const struct wire *f)
{
    unsigned own = world_rank(f->world);
    const struct world_member *self = world_member(f->world, own);
    uint32_t port = f->options.tcp.data_port;

    for (unsigned i = 0; i < own && port; i++) {
        const struct world_member *m = world_member(f->world, i);
        port += self->network ? m->network == self->network : m->node == self->node;
    }
    return port;
}

static int refuse_listen(struct wire *f, const struct sockaddr_storage *a, int err)
{
    char text[80];

    return wire_fail(
        f, err, "cannot listen for data on %s: %s; a free --data-port, or none, lets it choose",
        tcp_address_text(a, text, sizeof(text)), strerror(-err));
}

static int listen_on(struct wire *f, struct tcp_rail *rail)
{
    struct wire_tcp *t = wire_tcp_of(f);
    socklen_t len = sizeof(rail->address);
    uint32_t port = port_of_rank(f);
    int one = 1;

    if (port > UINT16_MAX)
        return wire_fail(f, -EINVAL, "port %u is none: a lower --data-port", port);
    rail->listener = socket(rail->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (rail->listener < 0)
        return wire_fail(f, -errno, "a TCP socket: %s", strerror(errno));
    t->end.same_machine =
        true; /* not bound to an interface: near peers come over the loopback one */
    int err = tcp_prepare_socket(&t->end, rail->listener, rail);
    if (err)
        return wire_tcp_end_failed(f, err);
    /* The port has one place in both families. */
    ((struct sockaddr_in *)&rail->address)->sin_port = htons((uint16_t)port);
    setsockopt(rail->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(rail->listener, (struct sockaddr *)&rail->address, rail->address_bytes) ||
        listen(rail->listener, BACKLOG) ||
        getsockname(rail->listener, (struct sockaddr *)&rail->address, &len))
        return refuse_listen(f, &rail->address, -errno);
    return 0;
}

int wire_tcp_address(struct wire_link *l, void *address, size_t *len)
{
    struct wire *f = l->worker->wire;
    struct wire_tcp *t = wire_tcp_of(f);
    struct tcp_rail *rail = &t->tcp.rails[wire_tcp_link_of(l)->rail];
    struct wire_tcp_address own = {0};
    int err = rail->listener < 0 ? listen_on(f, rail) : 0;

    memcpy(&own.address, &rail->address, sizeof(own.address));
    memcpy(own.nonce, t->nonce, sizeof(own.nonce));
    memcpy(address, &own, sizeof(own));
    *len = sizeof(own);
    return err;
}

static int read_address(struct wire *f, struct wire_link *l, const void *address, size_t len)
{
    struct wire_tcp_link *tl = wire_tcp_link_of(l);
    const struct tcp_rail *rail = &wire_tcp_of(f)->tcp.rails[tl->rail];
    char name[128];

    world_name(f->world, l->peer, name, sizeof(name));
    if (len != sizeof(tl->theirs))
        return wire_fail(f, -EPROTO, "%s sent an address that this rank cannot read", name);
    memcpy(&tl->theirs, address, sizeof(tl->theirs));
    if (tl->theirs.address.ss_family != rail->address.ss_family)
        return wire_fail(
            f, -EOPNOTSUPP,
            "this rank has an IPv%c address, %s an IPv%c one: name addresses of one kind",
            rail->address.ss_family == AF_INET ? '4' : '6', name,
            rail->address.ss_family == AF_INET ? '6' : '4');
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&tl->theirs.address;
    if (six->sin6_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr))
        six->sin6_scope_id = if_nametoindex(rail->interface);
    return 0;
}

static void show_out(struct guest *g)
{
    if (g->fd >= 0)
        close(g->fd);
    g->fd = -1;
}

/* A free place, or that of the oldest guest. */
static struct guest *place_for(struct joining *p)
{
    struct guest *oldest = &p->guests[0];

    for (unsigned i = 0; i < GUESTS && oldest->fd >= 0; i++)
        if (p->guests[i].fd < 0 || p->guests[i].since_ns < oldest->since_ns)
            oldest = &p->guests[i];
    show_out(oldest);
    return oldest;
}

static int listen_to(struct joining *p, struct guest *g, uint64_t now_ns)
{
    size_t left = sizeof(g->hello) - g->got;

    if (g->fd < 0)
        return 0;
    ssize_t n = recv(g->fd, (char *)&g->hello + g->got, left, MSG_DONTWAIT);
    if (n > 0)
        g->got += (size_t)n;
    if (g->got == sizeof(g->hello)) {
        int rc = wire_tcp_welcome(p->f, g->fd, &g->hello);
        if (rc > 0)
            g->fd = -1; /* it is the link's now */
        p->missing -= rc > 0;
        show_out(g);
        return rc < 0 ? rc : 0;
    }
    if (!n || (n < 0 && errno != EAGAIN && errno != EINTR) || now_ns - g->since_ns > GUEST_NS)
        show_out(g);
    return 0;
}

/* What a guest has to say is there, as a rule, when it comes: so a flood of silent ones does not
 * push it out. */
static int let_in(struct joining *p, int listener, uint64_t now_ns)
{
    int fd = 0, err = 0;

    for (unsigned n = 0; !err && p->missing && n < ADMISSIONS; n++) {
        fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            break;
        struct guest *g = place_for(p);
        *g = (struct guest){.fd = fd, .since_ns = now_ns};
        err = listen_to(p, g, now_ns);
    }
    if (fd < 0 && (errno == EMFILE || errno == ENFILE))
        err = wire_fail(p->f, -errno, "no connection more can be taken: %s (ulimit -n)",
                        strerror(errno));
    return err;
}

/* Returns where the links' begin. */
static unsigned wait_for_some(struct joining *p)
{
    struct wire_tcp *t = wire_tcp_of(p->f);
    unsigned n = 0, links;

    for (unsigned i = 0; i < t->end.n_rails; i++)
        p->polls[n++] = (struct pollfd){.fd = t->tcp.rails[i].listener, .events = POLLIN};
    for (unsigned i = 0; i < GUESTS; i++)
        p->polls[n++] = (struct pollfd){.fd = p->guests[i].fd, .events = POLLIN};
    links = n;
    for (unsigned i = 0; i < p->f->n_links; i++) {
        enum wire_tcp_step step = wire_tcp_link_of(&p->f->links[i])->step;
        int fd = step == WIRE_TCP_CALLS || step == WIRE_TCP_ASKS ? t->tcp.connections[i].fd : -1;
        p->polls[n++] =
            (struct pollfd){.fd = fd, .events = step == WIRE_TCP_CALLS ? POLLOUT : POLLIN};
    }
    poll(p->polls, n, TCP_TICK_NS / 1000000);
    return links;
}

static int too_late(struct wire *f)
{
    for (unsigned i = 0; i < f->n_links; i++) {
        const struct wire_tcp_link *tl = wire_tcp_link_of(&f->links[i]);
        const struct tcp_rail *rail = &wire_tcp_of(f)->tcp.rails[tl->rail];
        char name[128], text[80];
        world_name(f->world, f->links[i].peer, name, sizeof(name));
        if (tl->step == WIRE_TCP_AWAITED)
            return wire_fail(f, -ETIMEDOUT,
                             "%s has not connected to %s: is a firewall between, or no route "
                             "(--data-port names the port)",
                             name, tcp_address_text(&rail->address, text, sizeof(text)));
        if (tl->step != WIRE_TCP_STANDS)
            return wire_fail(f, -ETIMEDOUT,
                             "%s did not answer at %s, asked from '%.15s': is a firewall between "
                             "(--data-port names the port), or no route",
                             name, tcp_address_text(&tl->theirs.address, text, sizeof(text)),
                             rail->interface);
    }
    return 0;
}

/* One turn: those who come, then those who are called. */
static int turn(struct joining *p, unsigned links, uint64_t now_ns)
{
    struct wire *f = p->f;
    int err = 0;

    for (unsigned i = 0; i < GUESTS && !err; i++)
        err = listen_to(p, &p->guests[i], now_ns);
    for (unsigned i = 0; i < wire_tcp_of(f)->end.n_rails && !err; i++)
        err = let_in(p, wire_tcp_of(f)->tcp.rails[i].listener, now_ns);
    for (unsigned i = 0; i < f->n_links && !err; i++) {
        struct wire_tcp_link *tl = wire_tcp_link_of(&f->links[i]);
        if (tl->step == WIRE_TCP_AWAITED || tl->step == WIRE_TCP_STANDS)
            continue;
        err = wire_tcp_call(f, &f->links[i], p->polls[links + i].revents, now_ns);
        p->missing -= tl->step == WIRE_TCP_STANDS;
    }
    return err;
}

static int meet(struct joining *p)
{
    uint64_t since_ns = clock_now_ns(), now_ns = since_ns;
    unsigned links = 0, before = p->f->n_links;
    int err = 0;

    p->missing = before;
    for (unsigned i = 0; i < GUESTS; i++)
        p->guests[i].fd = -1;
    while (!err && p->missing && now_ns - since_ns < wire_tcp_of(p->f)->wait_ns) {
        err = turn(p, links, now_ns);
        since_ns = p->missing < before ? now_ns : since_ns;
        before = p->missing;
        links = p->missing && !err ? wait_for_some(p) : links;
        if (p->missing && !err && (err = wire_attend(p->f)) != 0)
            wire_fail(p->f, err, "the wait for %u ranks was ended", p->missing);
        now_ns = clock_now_ns();
    }
    for (unsigned i = 0; i < GUESTS; i++)
        show_out(&p->guests[i]);
    return err || !p->missing ? err : too_late(p->f);
}

/* Which device the kernel sends the peer's bytes out by. */
static void name_device(struct wire *f, struct wire_link *l)
{
    const struct tcp_rail *rail = &wire_tcp_of(f)->tcp.rails[wire_tcp_link_of(l)->rail];
    struct sockaddr_storage own, peer;
    socklen_t own_len = sizeof(own), peer_len = sizeof(peer), len = sizeof(l->device);
    int fd = wire_tcp_fd(l);

    if (!getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, l->device, &len) && len && l->device[0])
        return;
    if (getsockname(fd, (struct sockaddr *)&own, &own_len) ||
        getpeername(fd, (struct sockaddr *)&peer, &peer_len) ||
        nic_of_route((struct sockaddr *)&own, (struct sockaddr *)&peer, l->device,
                     sizeof(l->device)))
        snprintf(l->device, sizeof(l->device), "%s", rail->interface);
}

/* What is told of the whole is told by the first link to another node. */
static void choose_main(struct wire *f)
{
    struct wire_tcp *t = wire_tcp_of(f);
    uint32_t node = world_member(f->world, world_rank(f->world))->node;

    t->main = 0;
    while (t->main < f->n_links && world_member(f->world, f->links[t->main].peer)->node == node)
        t->main++;
    t->main = t->main < f->n_links ? t->main : 0;
    t->end.rails[0] = t->end.rails[wire_tcp_link_of(&f->links[t->main])->rail];
    t->end.n_rails = 1;
    t->tcp.first = 0;
    t->tcp.n = t->point.connections = f->n_links;
}

int wire_tcp_join(struct wire *f, const void *const *addresses, const size_t *lens)
{
    struct wire_tcp *t = wire_tcp_of(f);
    struct joining *p = calloc(1, sizeof(*p));
    int err = 0;

    if (p)
        p->polls = calloc(NET_RAILS_MAX + GUESTS + f->n_links, sizeof(*p->polls));
    if (!p || !p->polls) {
        free(p);
        return wire_fail(f, -ENOMEM, "out of memory");
    }
    p->f = f;
    for (unsigned i = 0; i < f->n_links && !err; i++)
        err = read_address(f, &f->links[i], addresses[i], lens[i]);
    err = err ? err : meet(p);
    free(p->polls);
    free(p);
    for (unsigned i = 0; i < NET_RAILS_MAX; i++) {
        if (t->tcp.rails[i].listener >= 0)
            close(t->tcp.rails[i].listener);
        t->tcp.rails[i].listener = -1;
    }
    for (unsigned i = 0; i < f->n_links && !err; i++) {
        name_device(f, &f->links[i]);
        t->tcp.connections[i].retransmits = tcp_retransmits(t->tcp.connections[i].fd);
    }
    if (!err)
        choose_main(f);
    return err;
}
