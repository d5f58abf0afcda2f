/* SPDX-License-Identifier: Apache-2.0 */
/* A channel inside one process: see net_pair_channel.h. */
#include "net_pair_channel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/rng.h"

/* The channel: frames over one end of a socket pair. No secret: the token is a function of its name. */
struct pair_channel {
    struct channel_base base;
    int fd;
};

struct pair_frame {
    uint16_t type;
    uint32_t len;
};

static int pair_send(struct channel *c, uint16_t type, const void *data, size_t len,
                     uint64_t wait_ns)
{
    struct pair_channel *p = (struct pair_channel *)c;
    struct pair_frame f = {type, (uint32_t)len};
    struct iovec parts[2] = {{&f, sizeof(f)}, {(void *)(uintptr_t)data, len}};
    struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};

    (void)wait_ns;
    return sendmsg(p->fd, &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int pair_recv(struct channel *c, uint16_t *type, void *data, size_t size, size_t *len,
                     uint64_t wait_ns)
{
    struct pair_channel *p = (struct pair_channel *)c;
    struct pollfd ready = {.fd = p->fd, .events = POLLIN};
    struct pair_frame f = {0, 0};
    struct iovec parts[2] = {{&f, sizeof(f)}, {data, size}};
    struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};

    if (poll(&ready, 1, (int)(wait_ns / 1000000)) < 1)
        return wait_ns ? -ETIMEDOUT : -EAGAIN;
    ssize_t n = recvmsg(p->fd, &m, 0);
    if (n <= 0)
        return n ? -errno : -ECONNRESET;
    *type = f.type;
    *len = f.len;
    return f.len > size ? -EMSGSIZE : 0;
}

static int pair_alive(struct channel *c)
{
    (void)c;
    return 0;
}

static int pair_address(struct channel *c, struct sockaddr_storage *own,
                        struct sockaddr_storage *peer)
{
    struct sockaddr_in loopback = {.sin_family = AF_INET};

    (void)c;
    loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    memset(own, 0, sizeof(*own));
    memcpy(own, &loopback, sizeof(loopback));
    *peer = *own;
    return 0;
}

static int pair_token(struct channel *c, const char *purpose, uint32_t number,
                      uint8_t token[CHANNEL_TOKEN_BYTES])
{
    uint64_t state = number + 1;

    (void)c;
    for (const char *p = purpose; *p; p++)
        state = state * 131 + (unsigned char)*p;
    for (size_t i = 0; i < CHANNEL_TOKEN_BYTES; i++)
        token[i] = (uint8_t)rng_splitmix64(&state);
    return 0;
}

static void pair_close(struct channel *c)
{
    close(((struct pair_channel *)c)->fd);
    free(c);
}

static const struct channel_ops pair_channel_ops = {
    .name = "pair",
    .send = pair_send,
    .recv = pair_recv,
    .alive = pair_alive,
    .address = pair_address,
    .token = pair_token,
    .close = pair_close,
};

int net_pair_channels(struct channel *channels[2])
{
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
        return -errno;
    for (int i = 0; i < 2; i++) {
        struct pair_channel *c = calloc(1, sizeof(*c));
        c->base.ops = &pair_channel_ops;
        c->fd = fds[i];
        snprintf(c->base.peer, sizeof(c->base.peer), "the %s", i ? "leader" : "peer");
        channels[i] = (struct channel *)c;
    }
    return 0;
}
