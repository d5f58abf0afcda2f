/* SPDX-License-Identifier: Apache-2.0 */
/* The handshake: see meet.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/group/channel.h"
#include "core/group/meet.h"
#include "core/group/world.h"
#include "core/program.h"

#define FORMAT       2
#define HEADER_BYTES 8

static const uint8_t magic[4] = {'P', 'L', 'M', 'B'};

enum kind { KIND_HELLO = 1, KIND_PROOF, KIND_ANSWER };
enum status { STATUS_WELCOME = 1, STATUS_BUSY, STATUS_REFUSED };

/* HELLO:  header, role u8, 3 zeros, protocol u32, version[32], key[32]
 * PROOF:  header, sealed: name[64]
 * ANSWER: header, status u32, 0 u32, sealed: name[64]
 * header: magic, format u8, kind u8, size u16
 * sealed: the header of a secret_stream, its first frame, with all that goes before it beside */
enum {
    AT_ROLE = 8,
    AT_PROTOCOL = 12,
    AT_VERSION = 16,
    AT_KEY = AT_VERSION + SHAKE_VERSION_BYTES,
    AT_PROOF = 8,
    AT_STATUS = 8,
    AT_ANSWER = 16,
};
_Static_assert(AT_KEY + SECRET_KEY_BYTES == SHAKE_HELLO_BYTES, "layout");
_Static_assert(SHAKE_HELLO_BYTES <= SHAKE_BYTES_MAX && SHAKE_PROOF_BYTES <= SHAKE_BYTES_MAX,
               "layout");

void shake_text(char *to, size_t len, const void *from, size_t n)
{
    const char *text = from;
    size_t i = 0;

    for (; i < n && i + 1 < len && text[i]; i++)
        to[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
    to[i] = 0;
}

__attribute__((format(printf, 3, 4))) static void fail(struct shake *s, int err, const char *format,
                                                       ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(s->error, sizeof(s->error), format, args);
    va_end(args);
    s->err = err;
    s->state = SHAKE_FAILED;
}

static void header(uint8_t *to, enum kind kind, size_t size)
{
    memset(to, 0, size);
    memcpy(to, magic, sizeof(magic));
    to[4] = FORMAT;
    to[5] = (uint8_t)kind;
    bytes_put16(to + 6, (uint16_t)size);
}

/* Seals a name to the other end, behind the first `at` bytes of the message. */
static void seal(struct shake *s, size_t at, const char *name)
{
    char text[SHAKE_NAME_BYTES] = "";

    snprintf(text, sizeof(text), "%s", name);
    secret_seal_begin(&s->link.out, s->server ? s->keys.to_client : s->keys.to_server, s->out + at);
    secret_seal(&s->link.out, s->out + at + SECRET_HEADER_BYTES, text, sizeof(text), s->out, at);
    s->n_out = at + SHAKE_SEALED_BYTES;
}

/* And opens the other end's: 0 or -EPROTO: it does not know the secret. */
static int unseal(struct shake *s, size_t at)
{
    char text[SHAKE_NAME_BYTES];

    secret_open_begin(&s->link.in, s->server ? s->keys.to_server : s->keys.to_client, s->in + at);
    int err =
        secret_open(&s->link.in, text, s->in + at + SECRET_HEADER_BYTES, sizeof(text), s->in, at);
    if (!err)
        shake_text(s->name, sizeof(s->name), text, sizeof(text));
    return err;
}

/* The keys of this session, of both HELLOs and the secret: from here on the pair is not needed. */
static int agree(struct shake *s)
{
    uint8_t said[2][SHAKE_HELLO_BYTES];

    memcpy(said[0], s->server ? s->peer : s->own, sizeof(said[0]));
    memcpy(said[1], s->server ? s->own : s->peer, sizeof(said[1]));
    int err = secret_agree(&s->keys, s->server, &s->pair, s->peer + AT_KEY, s->secret, said,
                           sizeof(said));
    memcpy(s->link.token, s->keys.token, sizeof(s->link.token));
    secret_wipe(&s->pair, sizeof(s->pair));
    return err;
}

static void send_hello(struct shake *s)
{
    memcpy(s->out, s->own, SHAKE_HELLO_BYTES);
    s->n_out = SHAKE_HELLO_BYTES;
}

void shake_begin(struct shake *s, bool server, const struct shake_self *self)
{
    memset(s, 0, sizeof(*s));
    s->server = server;
    memcpy(s->secret, self->secret->bytes, sizeof(s->secret));
    shake_text(s->own_name, sizeof(s->own_name), self->name, strlen(self->name));
    header(s->own, KIND_HELLO, SHAKE_HELLO_BYTES);
    s->own[AT_ROLE] = server ? 'S' : 'C';
    bytes_put32(s->own + AT_PROTOCOL, self->protocol);
    snprintf((char *)s->own + AT_VERSION, SHAKE_VERSION_BYTES, "%s", self->version);
    secret_pair(&s->pair, self->seed);
    memcpy(s->own + AT_KEY, s->pair.shown, SECRET_KEY_BYTES);
    if (!server)
        send_hello(s);
}

static enum kind kind_due(const struct shake *s)
{
    return s->state == SHAKE_HELLO ? KIND_HELLO : s->server ? KIND_PROOF : KIND_ANSWER;
}

static size_t size_of(enum kind kind)
{
    static const size_t sizes[] = {
        [KIND_HELLO] = SHAKE_HELLO_BYTES,
        [KIND_PROOF] = SHAKE_PROOF_BYTES,
        [KIND_ANSWER] = SHAKE_ANSWER_BYTES,
    };
    return sizes[kind];
}

size_t shake_wants(const struct shake *s)
{
    if (s->state != SHAKE_HELLO && s->state != SHAKE_PROOF && s->state != SHAKE_ANSWER)
        return 0;
    return (s->n_in < HEADER_BYTES ? HEADER_BYTES : size_of(kind_due(s))) - s->n_in;
}

static void hear_header(struct shake *s)
{
    enum kind kind = kind_due(s);

    if (memcmp(s->in, magic, sizeof(magic))) {
        fail(s, -EPROTO, "does not speak as plumbline does");
        return;
    }
    if (s->in[4] != FORMAT && s->server && s->state == SHAKE_HELLO)
        send_hello(s);
    if (s->in[4] != FORMAT)
        fail(s, -EPROTO,
             "is of a plumbline whose handshake is number %u, this one's is %u: install the same "
             "version at both ends",
             s->in[4], FORMAT);
    else if (s->in[5] != kind || bytes_get16(s->in + 6) != size_of(kind))
        fail(s, -EPROTO, "sent a message out of turn or of a wrong size");
}

static void compare_versions(struct shake *s)
{
    char own[SHAKE_VERSION_BYTES], peer[SHAKE_VERSION_BYTES];
    uint32_t own_protocol = bytes_get32(s->own + AT_PROTOCOL);
    uint32_t protocol = bytes_get32(s->peer + AT_PROTOCOL);

    shake_text(own, sizeof(own), s->own + AT_VERSION, SHAKE_VERSION_BYTES);
    shake_text(peer, sizeof(peer), s->peer + AT_VERSION, SHAKE_VERSION_BYTES);
    if (protocol == own_protocol &&
        !memcmp(s->own + AT_VERSION, s->peer + AT_VERSION, SHAKE_VERSION_BYTES))
        return;
    fail(s, -EPROTO,
         "is plumbline %s (protocol %08x), this end is plumbline %s (protocol %08x): install the "
         "same at both ends",
         peer, protocol, own, own_protocol);
}

static void hear_hello(struct shake *s)
{
    memcpy(s->peer, s->in, SHAKE_HELLO_BYTES);
    if (s->peer[AT_ROLE] != (s->server ? 'C' : 'S') ||
        !memcmp(s->peer + AT_KEY, s->own + AT_KEY, SECRET_KEY_BYTES)) {
        fail(s, -EPROTO, s->server ? "sent back what this end sent" : "is no server of plumbline");
        return;
    }
    if (s->server)
        send_hello(s); /* also to another version: it shall know why */
    compare_versions(s);
    if (s->state == SHAKE_FAILED)
        return;
    if (s->server) {
        s->state = SHAKE_PROOF;
        return;
    }
    if (agree(s)) {
        fail(s, -EPROTO, "sent a key that cannot be");
        return;
    }
    header(s->out, KIND_PROOF, SHAKE_PROOF_BYTES);
    seal(s, AT_PROOF, s->own_name);
    s->state = SHAKE_ANSWER;
}

/* The keys are worked out here, not before: a stranger who only says hello costs little. */
static void hear_proof(struct shake *s)
{
    if (!agree(s) && !unseal(s, AT_PROOF)) {
        s->state = SHAKE_PROVED;
        return;
    }
    header(s->out, KIND_ANSWER, SHAKE_ANSWER_BYTES);
    bytes_put32(s->out + AT_STATUS, STATUS_REFUSED); /* nothing is sealed */
    s->n_out = SHAKE_ANSWER_BYTES;
    fail(s, -EACCES, "does not know this session's secret");
}

static void hear_answer(struct shake *s)
{
    uint32_t status = bytes_get32(s->in + AT_STATUS);

    if (status == STATUS_REFUSED)
        fail(s, -EACCES, "has another secret: give both ends the same one");
    else if (unseal(s, AT_ANSWER))
        fail(s, -EACCES, "does not know this session's secret");
    else if (status == STATUS_WELCOME)
        s->state = SHAKE_DONE;
    else if (status == STATUS_BUSY)
        fail(s, -EBUSY, "is busy with '%s'", s->name);
    else
        fail(s, -EPROTO, "sent an answer that this version does not know");
}

void shake_feed(struct shake *s, const void *bytes, size_t n)
{
    size_t wanted = shake_wants(s);

    if (n > wanted)
        n = wanted; /* the caller's mistake; never beyond the buffer */
    memcpy(s->in + s->n_in, bytes, n);
    s->n_in += n;
    if (n && s->n_in == HEADER_BYTES)
        hear_header(s);
    if (s->n_in <= HEADER_BYTES || shake_wants(s))
        return;
    s->n_in = 0;
    if (s->state == SHAKE_HELLO)
        hear_hello(s);
    else if (s->state == SHAKE_PROOF)
        hear_proof(s);
    else
        hear_answer(s);
}

void shake_sent(struct shake *s)
{
    s->n_out = 0;
}

void shake_answer(struct shake *s, const char *busy_with)
{
    if (s->state != SHAKE_PROVED)
        return;
    header(s->out, KIND_ANSWER, SHAKE_ANSWER_BYTES);
    bytes_put32(s->out + AT_STATUS, busy_with ? STATUS_BUSY : STATUS_WELCOME);
    seal(s, AT_ANSWER, busy_with ? busy_with : s->own_name);
    if (busy_with)
        fail(s, -EBUSY, "has to wait: this end is busy with '%s'", busy_with);
    else
        s->state = SHAKE_DONE;
}

void shake_end(struct shake *s)
{
    secret_wipe(s, sizeof(*s));
}

/* ---- Sockets and names of a meeting ---- */

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

/* FNV-1a, of one word more. */
static uint32_t hash_word(uint32_t hash, uint32_t word)
{
    unsigned char bytes[sizeof(word)];

    memcpy(bytes, &word, sizeof(word));
    for (size_t i = 0; i < sizeof(bytes); i++)
        hash = (hash ^ bytes[i]) * 16777619u;
    return hash;
}

uint32_t meet_protocol(const uint32_t *layout, size_t n)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < n; i++)
        hash = hash_word(hash, layout[i]);
    return hash_word(hash_word(hash, __BYTE_ORDER__), sizeof(long));
}

int meet_self(struct shake_self *self, const struct meet_secret *secret, uint32_t protocol,
              char name[SHAKE_NAME_BYTES])
{
    *self = (struct shake_self){
        .secret = secret, .protocol = protocol, .version = PLUMB_VERSION, .name = name};
    host_known_as(name, SHAKE_NAME_BYTES);
    return secret_random(self->seed, sizeof(self->seed));
}

int meet_channel(struct channel **channel, int fd, const struct shake *s, const char *name,
                 const struct sockaddr_storage *address)
{
    char text[MEET_ADDRESS_BYTES];
    int err = fd_channel_tcp_options(fd);

    if (err) {
        close(fd);
        return err;
    }
    struct channel *c = *channel = channel_new(fd, &s->link);
    meet_address_text(address, text, sizeof(text));
    snprintf(c->peer, sizeof(c->peer), "%.*s (%s)", SHAKE_NAME_BYTES, name, text);
    host_known_as(c->own, sizeof(c->own));
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
        else if (fd != -EAFNOSUPPORT && fd != -EADDRNOTAVAIL && fd != -EPROTONOSUPPORT)
            err = fd;
    }
    if (!err && !*n)
        err = -EADDRNOTAVAIL;
    while (err && *n)
        close(fds[--*n]);
    return err;
}

const char *meet_refuse_host(const char *name)
{
    struct in_addr lax, strict;

    if (!inet_aton(name, &lax))
        return NULL;
    if (inet_pton(AF_INET, name, &strict) != 1)
        return "is a number that the system reads as some other address: write a.b.c.d in full, or "
               "a name with a letter";
    return ntohl(lax.s_addr) >> 24
               ? NULL
               : "is no host's address, as nothing of 0.0.0.0/8 is: write another";
}

int meet_open_listeners(const char *address, uint16_t *port, int fds[MEET_LISTENERS_MAX], size_t *n,
                        char *error, size_t len)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    const char *shown = address ? address : "localhost";
    uint16_t asked = *port;
    const char *why = address && strcmp(address, "0.0.0.0") != 0 ? meet_refuse_host(address) : NULL;
    int err = -EADDRINUSE;

    if (why) {
        snprintf(error, len, "cannot listen on it: '%s' %s", address, why);
        return -EINVAL;
    }
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
