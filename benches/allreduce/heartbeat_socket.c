/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of the signs of life: see heartbeat.h. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "benches/allreduce/heartbeat.h"
#include "core/group/secret.h"
#include "core/group/world.h"

#define CONNECT_MS 3000
#define PURPOSE    "heartbeat"

static int make(struct heartbeat **out, struct world *w, unsigned n)
{
    struct heartbeat *p = calloc(1, sizeof(*p));

    if (!p)
        return -ENOMEM;
    p->world = w;
    p->n = n;
    pthread_mutex_init(&p->lock, NULL);
    p->peers = calloc(n, sizeof(*p->peers));
    p->fds = calloc(n, sizeof(*p->fds));
    if (!p->peers || !p->fds) {
        p->n = 0;
        heartbeat_close(p);
        return -ENOMEM;
    }
    for (unsigned i = 0; i < n; i++)
        p->peers[i].fd = -1;
    *out = p;
    return 0;
}

static bool is_loopback(const struct sockaddr_storage *a)
{
    const struct sockaddr_in *four = (const void *)a;
    const struct sockaddr_in6 *six = (const void *)a;

    if (a->ss_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
    return a->ss_family == AF_INET && ntohl(four->sin_addr.s_addr) >> 24 == 127;
}

static bool all_are_here(struct world *w)
{
    struct sockaddr_storage own, peer;

    for (unsigned rank = 1; rank < world_size(w); rank++)
        if (channel_address(world_channel(w, rank), &own, &peer) || !is_loopback(&own))
            return false;
    return true;
}

static bool all_are_near(struct world *w)
{
    uint64_t network = world_member(w, world_rank(w))->network;

    for (unsigned rank = 0; rank < world_size(w); rank++)
        if (!network || world_member(w, rank)->network != network)
            return false;
    return true;
}

/* "::" is everybody, IPv4 too; not where this machine has no IPv6. */
static int listen_at(struct heartbeat *p, bool here, uint16_t *port)
{
    char error[MEET_ERROR_BYTES];

    *port = 0;
    int err = meet_open_listeners(here ? NULL : "::", port, p->listeners, &p->n_listeners, error,
                                  sizeof(error));
    return err && !here ? meet_open_listeners("0.0.0.0", port, p->listeners, &p->n_listeners, error,
                                              sizeof(error))
                        : err;
}

/* It beats, unless something failed before: then it is closed. */
static int start(struct heartbeat *p, int err, struct heartbeat **out)
{
    if (!err)
        err = heartbeat_start(p);
    if (err)
        heartbeat_close(p);
    else
        *out = p;
    return err;
}

int heartbeat_lead(struct heartbeat **out, struct world *w, uint16_t *port)
{
    struct heartbeat *p = NULL;
    int err = make(&p, w, world_size(w));

    *out = NULL;
    if (err)
        return err;
    p->leads = true;
    err = listen_at(p, all_are_here(w), port);
    return start(p, err, out);
}

static socklen_t length_of(const struct sockaddr_storage *a)
{
    return a->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

int heartbeat_reach(const struct sockaddr_storage *to)
{
    int fd = socket(to->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -errno;
    if (!connect(fd, (const void *)to, length_of(to)) || errno == EINPROGRESS)
        return fd;
    int err = -errno;
    close(fd);
    return err;
}

static int connect_to(const struct sockaddr_storage *to)
{
    int error = 0, fd = heartbeat_reach(to);
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    socklen_t len = sizeof(error);

    if (fd < 0)
        return fd;
    if (poll(&ready, 1, CONNECT_MS) != 1)
        error = ETIMEDOUT;
    else
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
    if (!error)
        return fd;
    close(fd);
    return -error;
}

/* Without a port of its own nobody is asked to reach it. */
static int introduce(struct heartbeat *p)
{
    struct heartbeat_hello hello = {.rank = world_rank(p->world)};
    uint16_t port;

    if (!listen_at(p, all_are_near(p->world), &port))
        hello.port = port;

    secret_token(hello.token, world_key(p->world), PURPOSE, hello.rank);
    ssize_t n = send(p->peers[0].fd, &hello, sizeof(hello), MSG_NOSIGNAL);
    return n == (ssize_t)sizeof(hello) ? 0 : n < 0 ? -errno : -EIO;
}

/* A link's own address goes by this machine's name for the link, not by the other one's. */
int heartbeat_aim(struct sockaddr_storage *to, const struct sockaddr_storage *own, uint16_t port)
{
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)to;

    if (to->ss_family == AF_INET) {
        ((struct sockaddr_in *)to)->sin_port = htons(port);
        return 0;
    }
    if (to->ss_family != AF_INET6)
        return -EAFNOSUPPORT;
    six->sin6_port = htons(port);
    if (IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr) && own->ss_family == AF_INET6)
        six->sin6_scope_id = ((const struct sockaddr_in6 *)own)->sin6_scope_id;
    return 0;
}

int heartbeat_follow(struct heartbeat **out, struct world *w, uint16_t port)
{
    struct sockaddr_storage own, to;
    struct heartbeat *p = NULL;
    int err = channel_address(world_channel(w, 0), &own, &to);

    *out = NULL;
    if (!err)
        err = heartbeat_aim(&to, &own, port);
    if (!err)
        err = make(&p, w, 1);
    if (err)
        return err;
    err = p->peers[0].fd = connect_to(&to);
    if (err >= 0)
        err = introduce(p);
    return start(p, err, out);
}

static void drop(struct heartbeat *p, unsigned i)
{
    p->fresh[i] = p->fresh[--p->n_fresh];
}

/* It has said who it is. */
static void adopt(struct heartbeat *p, unsigned i)
{
    const struct heartbeat_hello *h = &p->fresh[i].hello;
    uint8_t token[CHANNEL_TOKEN_BYTES];
    int fd = p->fresh[i].fd;
    uint32_t rank = h->rank, port = h->port;

    secret_token(token, world_key(p->world), PURPOSE, rank);
    bool known = rank && rank < p->n && p->peers[rank].fd < 0 && !p->peers[rank].gone &&
                 !memcmp(token, h->token, sizeof(token));
    drop(p, i);
    if (!known) {
        close(fd);
        return;
    }
    p->peers[rank].fd = fd;
    p->peers[rank].port = port;
}

static void meet(struct heartbeat *p, unsigned i)
{
    size_t *have = &p->fresh[i].have;
    char *to = (char *)&p->fresh[i].hello;
    ssize_t n =
        recv(p->fresh[i].fd, to + *have, sizeof(struct heartbeat_hello) - *have, MSG_DONTWAIT);

    if (n > 0 && (*have += (size_t)n) == sizeof(struct heartbeat_hello)) {
        adopt(p, i);
    } else if (!n || (n < 0 && errno != EAGAIN)) {
        close(p->fresh[i].fd);
        drop(p, i);
    }
}

/* Strangers that say nothing are shown out when their places are wanted. */
static void let_in(struct heartbeat *p, int listener)
{
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            break;
        if (!p->leads) {
            close(fd);
            continue;
        }
        if (p->n_fresh == HEARTBEAT_NEW_MAX) {
            close(p->fresh[0].fd);
            drop(p, 0);
        }
        p->fresh[p->n_fresh].fd = fd;
        p->fresh[p->n_fresh].have = 0;
        meet(p, p->n_fresh++);
    }
}

void heartbeat_welcome(struct heartbeat *p)
{
    for (size_t i = 0; i < p->n_listeners; i++)
        let_in(p, p->listeners[i]);
    for (unsigned i = p->n_fresh; i-- > 0;)
        meet(p, i);
}

void heartbeat_hear(struct heartbeat *p, unsigned number, uint64_t now_ns)
{
    struct heartbeat_peer *peer = &p->peers[number];

    while (peer->fd >= 0) {
        ssize_t n =
            recv(peer->fd, peer->in + peer->have, sizeof(peer->in) - peer->have, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            close(peer->fd);
            peer->fd = -1;
            peer->gone = true;
            return;
        }
        peer->have += (size_t)n;
        if (peer->have < sizeof(peer->in))
            continue;
        memcpy(&peer->last, peer->in, sizeof(peer->last));
        peer->have = 0;
        peer->heard = true;
        peer->heard_ns = now_ns;
        heartbeat_note(p, number, &peer->last, now_ns);
    }
}

void heartbeat_say(struct heartbeat_peer *peer, const struct heartbeat_message *b)
{
    ssize_t n = peer->fd >= 0 ? send(peer->fd, b, sizeof(*b), MSG_DONTWAIT | MSG_NOSIGNAL) : 0;

    if (n > 0 && n < (ssize_t)sizeof(*b)) /* what came next would not be understood */
        shutdown(peer->fd, SHUT_WR);
}
