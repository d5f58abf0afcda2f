/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How connections come about. Of two ranks the higher connects; each rank does all its links at
 * once, those that it makes and those that it awaits, so that no two wait for each other. Whoever
 * connects is a guest until it has said a token: guests have a few places and little time, the
 * oldest makes way, and none holds up another.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/group/channel.h"
#include "core/group/secret.h"
#include "core/hw/nic.h"
#include "core/wire/tcp/tcp.h"

/* One connection on its way. The higher rank connects, says a token that only ranks of this
 * world know, and waits for another in answer: so neither takes a stranger for the other. A
 * connection that is dropped, as a listener under a flood of strangers may, is made again while
 * there is time. */

void tcp_token(const struct wire *w, const char *what, const uint8_t *nonce, unsigned from,
               unsigned to, unsigned number, uint8_t *token)
{
    char purpose[80];

    snprintf(purpose, sizeof(purpose), "wire tcp %s %016llx link %u", what,
             (unsigned long long)bytes_get64(nonce), number);
    secret_token(token, world_key(w->world), purpose, from * WORLD_RANKS_MAX + to);
}

/* Takes as long whatever differs. */
static bool same_token(const uint8_t *a, const uint8_t *b)
{
    volatile uint8_t different = 0;

    for (size_t i = 0; i < CHANNEL_TOKEN_BYTES; i++)
        different = (uint8_t)(different | (a[i] ^ b[i]));
    return !different;
}

bool tcp_is_near(const struct wire *w, unsigned rank)
{
    uint64_t own = world_member(w->world, world_rank(w->world))->network;

    return own && world_member(w->world, rank)->network == own;
}

/* Bound to no interface: the peer is on this machine. */
static bool is_local(const struct wire_link *l)
{
    const struct world *world = l->worker->wire->world;

    return tcp_link_of(l)->near ||
           world_member(world, l->peer)->node == world_member(world, world_rank(world))->node;
}

/* The connection is the link's: from here on its bytes are data. */
static int finish(struct wire_link *l)
{
    tcp_link_of(l)->step = TCP_STANDS;
    return tcp_finish_socket(l);
}

static struct wire_link *awaited(struct wire *w, unsigned rank, unsigned number)
{
    for (unsigned i = 0; i < w->n_links; i++)
        if (w->links[i].peer == rank && w->links[i].number == number)
            return tcp_link_of(&w->links[i])->step == TCP_AWAITED ? &w->links[i] : NULL;
    return NULL;
}

/* Somebody says hello on fd: 1 with its link standing, 0: a stranger; or wire_fail(). */
static int welcome(struct wire *w, int fd, const struct tcp_hello *hello)
{
    struct tcp *t = tcp_of(w);
    unsigned own = world_rank(w->world), from = bytes_get32(hello->from);
    unsigned number = bytes_get32(hello->number);
    struct wire_link *l = awaited(w, from, number);
    uint8_t token[CHANNEL_TOKEN_BYTES];

    if (!l)
        return 0;
    tcp_token(w, "hello", t->nonce, from, own, number, token);
    if (!same_token(hello->token, token))
        return 0;
    tcp_token(w, "answer", t->nonce, from, own, number, token);
    if (send(fd, token, sizeof(token), MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof(token))
        return 0;
    struct tcp_link *tl = tcp_link_of(l);
    tl->fd = fd;
    int err = tcp_prepare_socket(w, fd, &t->rails[tl->rail], is_local(l));
    err = err ? err : finish(l);
    if (err)
        tl->fd = -1; /* the guest's still */
    return err ? err : 1;
}

static int refuse(const struct wire_link *l, int err)
{
    struct wire *w = l->worker->wire;
    const struct tcp_link *tl = tcp_link_of(l);
    const struct tcp_rail *rail = &tcp_of(w)->rails[tl->rail];
    char from[80], to[80], name[128];

    return wire_fail(w, err,
                     "no data connection from %.60s ('%.15s') to %s of %s: %s; is a firewall "
                     "between them (--data-port names the port), or no route",
                     tcp_address_text(&rail->address, from, sizeof(from)), rail->interface,
                     tcp_address_text(&tl->theirs.address, to, sizeof(to)),
                     world_name(w->world, l->peer, name, sizeof(name)), strerror(-err));
}

static int begin(struct wire_link *l)
{
    struct wire *w = l->worker->wire;
    struct tcp_link *tl = tcp_link_of(l);
    const struct tcp_rail *rail = &tcp_of(w)->rails[tl->rail];
    struct sockaddr_storage own = rail->address;
    int fd = socket(own.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return wire_fail(w, -errno, "a TCP socket: %s%s", strerror(errno), tcp_limit_hint(errno));
    tl->fd = fd;
    int err = tcp_prepare_socket(w, fd, rail, is_local(l));
    if (err)
        return err;
    ((struct sockaddr_in *)&own)->sin_port = 0; /* its place is the same in both families */
    tl->step = TCP_CALLS;
    tl->got = 0;
    if (bind(fd, (struct sockaddr *)&own, rail->address_bytes) ||
        (connect(fd, (struct sockaddr *)&tl->theirs.address, rail->address_bytes) &&
         errno != EINPROGRESS))
        return refuse(l, -errno);
    return 0;
}

/* It was dropped: once more, after a pause. */
static void again(struct wire_link *l, uint64_t now_ns)
{
    struct tcp_link *tl = tcp_link_of(l);

    close(tl->fd);
    tl->fd = -1;
    tl->step = TCP_IDLE;
    tl->again_ns = now_ns + TCP_TICK_NS;
}

static int say_hello(struct wire_link *l, uint64_t now_ns)
{
    struct wire *w = l->worker->wire;
    struct tcp_link *tl = tcp_link_of(l);
    unsigned own = world_rank(w->world);
    struct tcp_hello hello;
    int failed = 0;
    socklen_t len = sizeof(failed);

    if (getsockopt(tl->fd, SOL_SOCKET, SO_ERROR, &failed, &len))
        failed = errno;
    if (failed && failed != ECONNRESET)
        return refuse(l, -failed);
    tcp_token(w, "hello", tl->theirs.nonce, own, l->peer, l->number, hello.token);
    bytes_put32(hello.from, own);
    bytes_put32(hello.number, l->number);
    tl->step = TCP_ASKS;
    if (failed || send(tl->fd, &hello, sizeof(hello), MSG_NOSIGNAL) != sizeof(hello))
        again(l, now_ns);
    return 0;
}

static int hear_answer(struct wire_link *l, uint64_t now_ns)
{
    struct wire *w = l->worker->wire;
    struct tcp_link *tl = tcp_link_of(l);
    uint8_t right[CHANNEL_TOKEN_BYTES];
    char name[160];
    ssize_t n = recv(tl->fd, tl->answer + tl->got, sizeof(tl->answer) - tl->got, MSG_DONTWAIT);

    if (!n || (n < 0 && errno != EAGAIN && errno != EINTR))
        again(l, now_ns);
    if (n <= 0)
        return 0;
    tl->got += (size_t)n;
    if (tl->got < sizeof(tl->answer))
        return 0;
    tcp_token(w, "answer", tl->theirs.nonce, world_rank(w->world), l->peer, l->number, right);
    if (!same_token(tl->answer, right))
        return wire_fail(w, -EPROTO, "a data connection was answered by a stranger, not by %s",
                         world_name(w->world, l->peer, name, sizeof(name)));
    return finish(l);
}

#define BACKLOG    4096
#define GUESTS     64
#define GUEST_NS   5000000000u
#define ADMISSIONS 64u /* at once, of what may be a flood of strangers */

struct guest {
    int fd; /* -1: a free place */
    uint64_t since_ns;
    size_t got;
    struct tcp_hello hello;
};

struct joining {
    struct wire *w;
    struct guest guests[GUESTS];
    struct pollfd *polls; /* files that there are */
    unsigned n_polls;
    int rails[NIC_RAILS_MAX], *links; /* in polls; -1 */
    unsigned missing;                 /* links */
};

/* Ranks of one network share its ports: each takes the next one after the first, and each of its
 * rails one more. */
static uint32_t port_of(const struct wire *w, unsigned rail)
{
    unsigned own = world_rank(w->world);
    const struct world_member *self = world_member(w->world, own);
    uint32_t port = w->options.tcp.data_port;

    for (unsigned i = 0; i < own && port; i++) {
        const struct world_member *m = world_member(w->world, i);
        port += self->network ? m->network == self->network : m->node == self->node;
    }
    return port && tcp_of(w)->far >= 0 && rail > (unsigned)tcp_of(w)->far
               ? port + rail - (unsigned)tcp_of(w)->far
               : port;
}

static int listen_on(struct wire *w, unsigned index)
{
    struct tcp_rail *rail = &tcp_of(w)->rails[index];
    socklen_t len = sizeof(rail->address);
    uint32_t port = port_of(w, index);
    int one = 1;

    if (port > UINT16_MAX)
        return wire_fail(w, -EINVAL, "port %u is none: a lower --data-port", port);
    rail->listener = socket(rail->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (rail->listener < 0)
        return wire_fail(w, -errno, "a TCP socket: %s", strerror(errno));
    int err = tcp_prepare_socket(w, rail->listener, rail, true);
    if (err)
        return err;
    /* The port has one place in both families. */
    ((struct sockaddr_in *)&rail->address)->sin_port = htons((uint16_t)port);
    setsockopt(rail->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(rail->listener, (struct sockaddr *)&rail->address, rail->address_bytes) ||
        listen(rail->listener, BACKLOG) ||
        getsockname(rail->listener, (struct sockaddr *)&rail->address, &len)) {
        err = -errno;
        char text[80];
        return wire_fail(
            w, err, "cannot listen for data on %s: %s; a free --data-port, or none, lets it choose",
            tcp_address_text(&rail->address, text, sizeof(text)), strerror(-err));
    }
    return 0;
}

int tcp_address(struct wire_link *l, void *address, size_t *len)
{
    struct wire *w = l->worker->wire;
    struct tcp_link *tl = tcp_link_of(l);
    struct tcp_rail *rail = &tcp_of(w)->rails[tl->rail];
    struct tcp_address own = {0};
    int err = tl->step == TCP_AWAITED && rail->listener < 0 ? listen_on(w, tl->rail) : 0;

    memcpy(&own.address, &rail->address, sizeof(own.address));
    memcpy(own.nonce, tcp_of(w)->nonce, sizeof(own.nonce));
    memcpy(address, &own, sizeof(own));
    *len = sizeof(own);
    return err;
}

static int read_address(struct wire_link *l, const void *address, size_t len)
{
    struct wire *w = l->worker->wire;
    struct tcp_link *tl = tcp_link_of(l);
    const struct tcp_rail *rail = &tcp_of(w)->rails[tl->rail];
    char name[160];

    world_name(w->world, l->peer, name, sizeof(name));
    if (len != sizeof(tl->theirs))
        return wire_fail(w, -EPROTO, "%s sent an address that this rank cannot read", name);
    memcpy(&tl->theirs, address, sizeof(tl->theirs));
    if (tl->theirs.address.ss_family != rail->address.ss_family)
        return wire_fail(
            w, -EOPNOTSUPP,
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
        int rc = welcome(p->w, g->fd, &g->hello);
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
static int let_in(struct joining *p, const struct pollfd *listener, uint64_t now_ns)
{
    int fd = 0, err = 0;

    if (!listener || !listener->revents) /* the kernel wants a number for nobody, too */
        return 0;

    for (unsigned n = 0; !err && p->missing && n < ADMISSIONS; n++) {
        fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            break;
        struct guest *g = place_for(p);
        *g = (struct guest){.fd = fd, .since_ns = now_ns};
        err = listen_to(p, g, now_ns);
    }
    if (fd < 0 && (errno == EMFILE || errno == ENFILE))
        err = wire_fail(p->w, -errno, "no connection more can be taken: %s%s", strerror(errno),
                        tcp_limit_hint(errno));
    return err;
}

/* One more to wait for, or none where there is no file: the kernel takes no more places than a
 * process may have files. */
static void add(struct joining *p, int *place, int fd, short events)
{
    *place = fd < 0 ? -1 : (int)p->n_polls;
    if (fd >= 0)
        p->polls[p->n_polls++] = (struct pollfd){.fd = fd, .events = events};
}

static const struct pollfd *polled(const struct joining *p, int place)
{
    return place < 0 ? NULL : &p->polls[place];
}

static int wait_for_some(struct joining *p)
{
    struct tcp *t = tcp_of(p->w);

    p->n_polls = 0;
    for (unsigned i = 0; i < p->w->n_rails; i++)
        add(p, &p->rails[i], t->rails[i].listener, POLLIN);
    for (unsigned i = 0; i < p->w->n_links; i++) {
        const struct tcp_link *tl = tcp_link_of(&p->w->links[i]);
        bool asks = tl->step == TCP_CALLS || tl->step == TCP_ASKS;
        add(p, &p->links[i], asks ? tl->fd : -1, tl->step == TCP_CALLS ? POLLOUT : POLLIN);
    }
    for (unsigned i = 0; i < GUESTS; i++)
        if (p->guests[i].fd >= 0)
            p->polls[p->n_polls++] = (struct pollfd){.fd = p->guests[i].fd, .events = POLLIN};
    if (poll(p->polls, p->n_polls, TCP_TICK_NS / 1000000) < 0 && errno != EINTR)
        return wire_fail(p->w, -errno, "connections cannot be waited for: %s", strerror(errno));
    return 0;
}

static int too_late(struct wire *w)
{
    for (unsigned i = 0; i < w->n_links; i++) {
        const struct tcp_link *tl = tcp_link_of(&w->links[i]);
        const struct tcp_rail *rail = &tcp_of(w)->rails[tl->rail];
        char name[160], text[80];
        world_name(w->world, w->links[i].peer, name, sizeof(name));
        if (tl->step == TCP_AWAITED)
            return wire_fail(w, -ETIMEDOUT,
                             "%s has not connected to %s: is a firewall between, or no route "
                             "(--data-port names the port)",
                             name, tcp_address_text(&rail->address, text, sizeof(text)));
        if (tl->step != TCP_STANDS)
            return wire_fail(w, -ETIMEDOUT,
                             "%s did not answer at %s, asked from '%.15s': is a firewall between "
                             "(--data-port names the port), or no route",
                             name, tcp_address_text(&tl->theirs.address, text, sizeof(text)),
                             rail->interface);
    }
    return 0;
}

/* One turn: those who come, then those who are called. */
static int turn(struct joining *p, uint64_t now_ns)
{
    struct wire *w = p->w;
    int err = 0;

    for (unsigned i = 0; i < GUESTS && !err; i++)
        err = listen_to(p, &p->guests[i], now_ns);
    for (unsigned i = 0; i < w->n_rails && !err; i++)
        err = let_in(p, polled(p, p->rails[i]), now_ns);
    for (unsigned i = 0; i < w->n_links && !err; i++) {
        struct tcp_link *tl = tcp_link_of(&w->links[i]);
        if (tl->step == TCP_AWAITED || tl->step == TCP_STANDS)
            continue;
        const struct pollfd *said = polled(p, p->links[i]);
        /* Takes the next step that can be taken without waiting. 0, or wire_fail(). */
        short revents = said ? said->revents : 0;
        if (tl->step == TCP_IDLE)
            err = now_ns >= tl->again_ns ? begin(&w->links[i]) : 0;
        else if (revents)
            err = tl->step == TCP_CALLS ? say_hello(&w->links[i], now_ns)
                                        : hear_answer(&w->links[i], now_ns);
        p->missing -= tl->step == TCP_STANDS;
    }
    return err;
}

static int meet(struct joining *p, struct wire *w)
{
    uint64_t since_ns = clock_now_ns(), now_ns = since_ns;
    unsigned before = w->n_links;
    int err = 0;

    p->w = w;
    p->missing = before;
    for (unsigned i = 0; i < NIC_RAILS_MAX; i++)
        p->rails[i] = -1;
    for (unsigned i = 0; i < w->n_links; i++)
        p->links[i] = -1;
    for (unsigned i = 0; i < GUESTS; i++)
        p->guests[i].fd = -1;
    while (!err && p->missing && now_ns - since_ns < tcp_of(p->w)->wait_ns) {
        err = turn(p, now_ns);
        since_ns = p->missing < before ? now_ns : since_ns;
        before = p->missing;
        err = p->missing && !err ? wait_for_some(p) : err;
        if (p->missing && !err && (err = wire_attend(p->w)) != 0)
            wire_fail(p->w, err, "the wait for %u ranks was ended", p->missing);
        now_ns = clock_now_ns();
    }
    for (unsigned i = 0; i < GUESTS; i++)
        show_out(&p->guests[i]);
    return err || !p->missing ? err : too_late(p->w);
}

/* Which device the kernel sends the peer's bytes out by. */
static void name_device(struct wire *w, struct wire_link *l)
{
    const struct tcp_rail *rail = &tcp_of(w)->rails[tcp_link_of(l)->rail];
    struct sockaddr_storage own, peer;
    socklen_t own_len = sizeof(own), peer_len = sizeof(peer), len = sizeof(l->device);
    int fd = tcp_link_of(l)->fd;

    if (!getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, l->device, &len) && len && l->device[0])
        return;
    if (getsockname(fd, (struct sockaddr *)&own, &own_len) ||
        getpeername(fd, (struct sockaddr *)&peer, &peer_len) ||
        nic_of_route((struct sockaddr *)&own, (struct sockaddr *)&peer, l->device,
                     sizeof(l->device)))
        snprintf(l->device, sizeof(l->device), "%s", rail->interface);
}

int tcp_join(struct wire *w, const void *const *addresses, const size_t *lens)
{
    struct tcp *t = tcp_of(w);
    struct joining *p = xcalloc(1, sizeof(*p));
    int err = 0;

    p->polls = xcalloc(NIC_RAILS_MAX + GUESTS + w->n_links, sizeof(*p->polls));
    p->links = xcalloc(w->n_links, sizeof(*p->links));
    for (unsigned i = 0; i < w->n_links && !err; i++)
        err = read_address(&w->links[i], addresses[i], lens[i]);
    err = err ? err : meet(p, w);
    free(p->polls);
    free(p->links);
    free(p);
    for (unsigned i = 0; i < NIC_RAILS_MAX; i++) {
        if (t->rails[i].listener >= 0)
            close(t->rails[i].listener);
        t->rails[i].listener = -1;
    }
    for (unsigned i = 0; i < w->n_links && !err; i++) {
        name_device(w, &w->links[i]);
        struct tcp_link *tl = tcp_link_of(&w->links[i]);
        tl->retransmits = tcp_retransmits(tl->fd);
    }
    err = err ? err : tcp_check_segments(w);
    if (!err) {
        /* What is told of the whole is told by the first link to another node. */
        uint32_t node = world_member(w->world, world_rank(w->world))->node;
        t->main = 0;
        while (t->main < w->n_links && world_member(w->world, w->links[t->main].peer)->node == node)
            t->main++;
        t->main = t->main < w->n_links ? t->main : 0;
        tcp_describe_rails(w);
    }
    return err;
}
