/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets and names of a meeting: see meet_socket.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/build_info.h"
#include "core/group/meet_socket.h"

#define BACKLOG 1024

void meet_address_text(const struct sockaddr_storage *a, char *text, size_t len)
{
    char host[INET6_ADDRSTRLEN + 16] = "?", port[8] = "?";
    const char *at = host;

    getnameinfo((const struct sockaddr *)a,
                a->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6),
                host, sizeof(host), port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
    if (!strncmp(at, "::ffff:", 7) && strchr(at, '.'))
        at += 7; /* IPv4, met by a socket that listens for both */
    snprintf(text, len, "%s port %s", at, port);
}

int meet_self(struct shake_self *self, const struct meet_secret *secret, uint32_t protocol,
              char name[SHAKE_NAME_BYTES])
{
    *self = (struct shake_self){
        .secret = secret, .protocol = protocol, .version = PLUMB_VERSION, .name = name};
    if (gethostname(name, SHAKE_NAME_BYTES))
        snprintf(name, SHAKE_NAME_BYTES, "no name");
    name[SHAKE_NAME_BYTES - 1] = 0;
    return secret_random(self->nonce, sizeof(self->nonce));
}

int meet_channel(struct channel **channel, int fd, const struct shake *s, const char *name,
                 const struct sockaddr_storage *address)
{
    char text[MEET_ADDRESS_BYTES];
    struct fd_channel *c = NULL;
    int err = fd_channel_tcp_options(fd);

    if (!err)
        c = fd_channel_new(&fd_channel_sock_ops, fd, s->key, s->server);
    if (!c) {
        close(fd);
        return err ? err : -ENOMEM;
    }
    meet_address_text(address, text, sizeof(text));
    snprintf(c->base.peer, sizeof(c->base.peer), "%.*s (%s)", SHAKE_NAME_BYTES, name, text);
    *channel = (struct channel *)c;
    return 0;
}

int meet_say(int fd, struct shake *s)
{
    ssize_t n;

    if (!s->n_out)
        return 0;
    do
        n = send(fd, s->out, s->n_out, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    bool all = (size_t)n == s->n_out;
    shake_sent(s);
    return all ? 0 : -ECONNRESET;
}

int meet_hear(int fd, struct shake *s)
{
    uint8_t bytes[SHAKE_BYTES_MAX];
    size_t want;

    while ((want = shake_wants(s)) > 0) {
        ssize_t n = recv(fd, bytes, want, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EWOULDBLOCK ? -EAGAIN : -errno;
        if (n == 0)
            return -ECONNRESET;
        shake_feed(s, bytes, (size_t)n);
        int err = meet_say(fd, s);
        if (err)
            return err;
    }
    return 0;
}

static int say_why(int err, const char *address, uint16_t port, char *error, size_t len)
{
    const char *what = strerror(-err), *todo = "";

    if (err == -EADDRINUSE) {
        what = "the port is taken";
        todo = ": another one may listen there already; end it, or choose another port";
    } else if (err == -EACCES) {
        todo = ": ports below 1024 are root's; choose a higher one";
    } else if (err == -EADDRNOTAVAIL) {
        what = "this machine has no such address";
    }
    snprintf(error, len, "cannot listen on '%s' port %u: %s%s", address, port, what, todo);
    return err;
}

static int open_listener(const struct addrinfo *a, uint16_t *port)
{
    struct sockaddr_storage address;
    socklen_t len = a->ai_addrlen;
    int yes = 1, only_six = 1;
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -errno;
    memcpy(&address, a->ai_addr, len);
    if (a->ai_family == AF_INET6) {
        struct sockaddr_in6 *six = (struct sockaddr_in6 *)&address;
        only_six = !IN6_IS_ADDR_UNSPECIFIED(&six->sin6_addr); /* "::" is everybody */
        six->sin6_port = htons(*port);
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only_six, sizeof(only_six));
    } else {
        ((struct sockaddr_in *)&address)->sin_port = htons(*port);
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)); /* after a run's last packets */
    if (bind(fd, (struct sockaddr *)&address, len) || listen(fd, BACKLOG) ||
        getsockname(fd, (struct sockaddr *)&address, &len)) {
        int err = -errno;
        close(fd);
        return err;
    }
    *port = ntohs(a->ai_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
                                           : ((struct sockaddr_in *)&address)->sin_port);
    return fd;
}

static bool no_such_family(int err)
{
    return err == -EAFNOSUPPORT || err == -EADDRNOTAVAIL || err == -EPROTONOSUPPORT;
}

/* A name may have the same address twice. */
static bool is_again(const struct addrinfo *first, const struct addrinfo *a)
{
    for (; first != a; first = first->ai_next)
        if (first->ai_addrlen == a->ai_addrlen &&
            !memcmp(first->ai_addr, a->ai_addr, a->ai_addrlen))
            return true;
    return false;
}

/* On all of them, but for families that this machine does not have. */
static int open_all(const struct addrinfo *found, uint16_t *port, int fds[MEET_LISTENERS_MAX],
                    size_t *n)
{
    int err = 0;

    *n = 0;
    for (const struct addrinfo *a = found; a && !err && *n < MEET_LISTENERS_MAX; a = a->ai_next) {
        if (is_again(found, a))
            continue;
        int fd = open_listener(a, port);
        if (fd >= 0)
            fds[(*n)++] = fd;
        else if (!no_such_family(fd))
            err = fd;
    }
    if (!err && !*n)
        err = -EADDRNOTAVAIL;
    while (err && *n)
        close(fds[--*n]);
    return err;
}

int meet_open_listeners(const char *address, uint16_t *port, int fds[MEET_LISTENERS_MAX], size_t *n,
                        char *error, size_t len)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    const char *shown = address ? address : "localhost";
    uint16_t asked = *port;
    int err = -EADDRINUSE;

    int code = getaddrinfo(address, "0", &hints, &found); /* NULL: loopback, of both families */
    if (code) {
        snprintf(error, len, "cannot listen on '%s': %s", shown, gai_strerror(code));
        return -ENOENT;
    }
    /* A port that is free in one family may be taken in the other. */
    for (int tries = asked ? 1 : 8; err == -EADDRINUSE && tries > 0; tries--) {
        *port = asked;
        err = open_all(found, port, fds, n);
    }
    freeaddrinfo(found);
    return err ? say_why(err, shown, *port, error, len) : 0;
}
