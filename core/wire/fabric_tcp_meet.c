/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection on its way: see fabric_tcp.h. The higher rank connects, says a token that only ranks of this world know, and waits for another
 * in answer: so neither takes a stranger for the other. A connection that is dropped, as a listener under a flood
 * of strangers may, is made again while there is time.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/group/channel.h"
#include "core/group/secret.h"
#include "core/wire/fabric_tcp.h"

_Static_assert(CHANNEL_TOKEN_BYTES == SECRET_MAC_BYTES, "a token is a MAC");

/* Between two ranks, for the fabric whose listener has this nonce. */
static void make_token(const struct fabric *f, const char *what, const uint8_t *nonce,
                       unsigned from, unsigned to, uint8_t *token)
{
    char purpose[64];

    snprintf(purpose, sizeof(purpose), "fabric tcp %s %016llx", what,
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
static int finish(struct fabric *f, struct fabric_link *l)
{
    struct fabric_tcp *t = fabric_tcp_of(f);
    struct fabric_tcp_link *tl = fabric_tcp_link_of(l);

    tl->step = FABRIC_TCP_STANDS;
    return fabric_tcp_end_failed(f, tcp_finish_socket(&t->end, &t->tcp.connections[tl->index]));
}

static struct fabric_link *awaited(struct fabric *f, unsigned rank)
{
    for (unsigned i = 0; i < f->n_links; i++)
        if (f->links[i].peer == rank)
            return fabric_tcp_link_of(&f->links[i])->step == FABRIC_TCP_AWAITED ? &f->links[i]
                                                                                : NULL;
    return NULL;
}

int fabric_tcp_welcome(struct fabric *f, int fd, const struct fabric_tcp_hello *hello)
{
    struct fabric_tcp *t = fabric_tcp_of(f);
    unsigned own = world_rank(f->world), from = bytes_get32(hello->from);
    struct fabric_link *l = awaited(f, from);
    uint8_t token[CHANNEL_TOKEN_BYTES];

    if (!l)
        return 0;
    make_token(f, "hello", t->nonce, from, own, token);
    if (!same_token(hello->token, token))
        return 0;
    make_token(f, "answer", t->nonce, from, own, token);
    if (send(fd, token, sizeof(token), MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof(token))
        return 0;
    struct fabric_tcp_link *tl = fabric_tcp_link_of(l);
    t->tcp.connections[tl->index].fd = fd;
    t->end.same_machine = tl->near;
    int err = tcp_prepare_socket(&t->end, fd, &t->tcp.rails[tl->rail]);
    err = err ? fabric_tcp_end_failed(f, err) : finish(f, l);
    if (err)
        t->tcp.connections[tl->index].fd = -1; /* the guest's still */
    return err ? err : 1;
}

static int refuse(struct fabric *f, const struct fabric_link *l, int err)
{
    const struct fabric_tcp_link *tl = fabric_tcp_link_of(l);
    const struct tcp_rail *rail = &fabric_tcp_of(f)->tcp.rails[tl->rail];
    char from[80], to[80], name[128];

    return fabric_fail(f, err,
                       "no data connection from %.60s ('%.15s') to %s of %s: %s; is a firewall "
                       "between them (--data-port names the port), or no route",
                       tcp_address_text(&rail->address, from, sizeof(from)), rail->interface,
                       tcp_address_text(&tl->theirs.address, to, sizeof(to)),
                       world_name(f->world, l->peer, name, sizeof(name)), strerror(-err));
}

static int begin(struct fabric *f, struct fabric_link *l)
{
    struct fabric_tcp *t = fabric_tcp_of(f);
    struct fabric_tcp_link *tl = fabric_tcp_link_of(l);
    const struct tcp_rail *rail = &t->tcp.rails[tl->rail];
    struct sockaddr_storage own = rail->address;
    int fd = socket(own.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return fabric_fail(f, -errno, "a TCP socket: %s (ulimit -n)", strerror(errno));
    t->tcp.connections[tl->index].fd = fd;
    t->end.same_machine = tl->near;
    int err = tcp_prepare_socket(&t->end, fd, rail);
    if (err)
        return fabric_tcp_end_failed(f, err);
    ((struct sockaddr_in *)&own)->sin_port = 0; /* its place is the same in both families */
    tl->step = FABRIC_TCP_CALLS;
    tl->got = 0;
    if (bind(fd, (struct sockaddr *)&own, rail->address_bytes) ||
        (connect(fd, (struct sockaddr *)&tl->theirs.address, rail->address_bytes) &&
         errno != EINPROGRESS))
        return refuse(f, l, -errno);
    return 0;
}

/* It was dropped: once more, after a pause. */
static void again(struct fabric *f, struct fabric_link *l, uint64_t now_ns)
{
    struct fabric_tcp_link *tl = fabric_tcp_link_of(l);
    struct tcp_connection *c = &fabric_tcp_of(f)->tcp.connections[tl->index];

    close(c->fd);
    c->fd = -1;
    tl->step = FABRIC_TCP_IDLE;
    tl->again_ns = now_ns + TCP_TICK_NS;
}

static int say_hello(struct fabric *f, struct fabric_link *l, uint64_t now_ns)
{
    struct fabric_tcp_link *tl = fabric_tcp_link_of(l);
    unsigned own = world_rank(f->world);
    struct fabric_tcp_hello hello;
    int fd = fabric_tcp_fd(f, l), failed = 0;
    socklen_t len = sizeof(failed);

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &len))
        failed = errno;
    if (failed && failed != ECONNRESET)
        return refuse(f, l, -failed);
    make_token(f, "hello", tl->theirs.nonce, own, l->peer, hello.token);
    bytes_put32(hello.from, own);
    tl->step = FABRIC_TCP_ASKS;
    if (failed || send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) != sizeof(hello))
        again(f, l, now_ns);
    return 0;
}

static int hear_answer(struct fabric *f, struct fabric_link *l, uint64_t now_ns)
{
    struct fabric_tcp_link *tl = fabric_tcp_link_of(l);
    uint8_t right[CHANNEL_TOKEN_BYTES];
    char name[128];
    ssize_t n =
        recv(fabric_tcp_fd(f, l), tl->answer + tl->got, sizeof(tl->answer) - tl->got, MSG_DONTWAIT);

    if (!n || (n < 0 && errno != EAGAIN && errno != EINTR))
        again(f, l, now_ns);
    if (n <= 0)
        return 0;
    tl->got += (size_t)n;
    if (tl->got < sizeof(tl->answer))
        return 0;
    make_token(f, "answer", tl->theirs.nonce, world_rank(f->world), l->peer, right);
    if (!same_token(tl->answer, right))
        return fabric_fail(f, -EPROTO, "a data connection was answered by a stranger, not by %s",
                           world_name(f->world, l->peer, name, sizeof(name)));
    return finish(f, l);
}

int fabric_tcp_call(struct fabric *f, struct fabric_link *l, short revents, uint64_t now_ns)
{
    struct fabric_tcp_link *tl = fabric_tcp_link_of(l);

    if (tl->step == FABRIC_TCP_IDLE)
        return now_ns >= tl->again_ns ? begin(f, l) : 0;
    if (tl->step == FABRIC_TCP_CALLS)
        return revents ? say_hello(f, l, now_ns) : 0;
    return revents ? hear_answer(f, l, now_ns) : 0;
}
