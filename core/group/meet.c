/* SPDX-License-Identifier: Apache-2.0 */
/* The secret, and the end that connects: see meet.h. */
#include "core/group/meet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/group/secret.h"
#include "core/program.h"

/* ---- The session's secret, from a file and new ---- */

#define LINE_MIN 16
#define LINE_MAX 1024

static int open_private(const char *path, int *fd, char *error, size_t len)
{
    struct stat st;

    *fd = open(path, O_RDONLY | O_CLOEXEC);
    if (*fd < 0) {
        int err = -errno;
        snprintf(error, len, "cannot read the secret in '%s': %s", path, strerror(-err));
        return err;
    }
    if (fstat(*fd, &st) || !S_ISREG(st.st_mode) || !(st.st_mode & 077))
        return 0;
    close(*fd);
    snprintf(error, len,
             "others can read the secret in '%s': make a new file that is yours alone: umask 077; "
             "openssl rand -hex 32 >FILE",
             path);
    return -EACCES;
}

/* Not a byte more than the line: what follows on stdin may be for somebody else. */
static int read_line(int fd, char line[LINE_MAX], size_t *n)
{
    *n = 0;
    while (*n < LINE_MAX) {
        ssize_t got = read(fd, line + *n, 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0 || line[*n] == '\n')
            break;
        ++*n;
    }
    if (*n == LINE_MAX)
        return -EMSGSIZE;
    if (*n && line[*n - 1] == '\r')
        --*n;
    return 0;
}

int meet_secret_load(const char *path, struct meet_secret *secret, char *error, size_t len)
{
    bool is_stdin = !strcmp(path, "-");
    int fd = STDIN_FILENO;
    char line[LINE_MAX];
    size_t n;
    int err = is_stdin ? 0 : open_private(path, &fd, error, len);

    if (err)
        return err;
    err = read_line(fd, line, &n);
    if (!is_stdin)
        close(fd);
    if (err == -EMSGSIZE)
        snprintf(error, len,
                 "the first line of '%s' is too long for a secret: %d characters at most", path,
                 LINE_MAX - 1);
    else if (err)
        snprintf(error, len, "cannot read the secret in '%s': %s", path, strerror(-err));
    else if (n < LINE_MIN) {
        snprintf(error, len,
                 "the first line of '%s' is too short for a secret: %d characters at least", path,
                 LINE_MIN);
        err = -EINVAL;
    }
    if (!err)
        secret_hash(secret->bytes, line, n);
    secret_wipe(line, sizeof(line));
    return err;
}

int meet_secret_need(const char *path, struct meet_secret *secret, char *error, size_t len)
{
    if (!path || !*path)
        path = getenv("PLUMB_SECRET_FILE");
    if (path && *path) {
        int err = secret->known ? 0 : meet_secret_load(path, secret, error, len);
        secret->known |= !err;
        return err;
    }
    snprintf(error, len,
             "processes on several machines want a secret that all of them know: give "
             "--secret-file FILE on each (make one: openssl rand -hex 32 >FILE; chmod 600 FILE)");
    return -EINVAL;
}

int meet_secret_make(char *text, size_t len)
{
    uint8_t bytes[32];

    if (len < 2 * sizeof(bytes) + 2)
        return -EMSGSIZE;
    int err = secret_random(bytes, sizeof(bytes));
    for (size_t i = 0; !err && i < sizeof(bytes); i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    if (!err)
        snprintf(text + 2 * sizeof(bytes), 2, "\n");
    secret_wipe(bytes, sizeof(bytes));
    return err;
}

#define CONNECT_NS 3000000000u /* for one address */
#define SHAKE_NS   5000000000u
#define AGAIN_NS   100000000u /* between two tries */

/* One try at one address. */
struct attempt {
    const struct meet_connect *m;
    struct sockaddr_storage address;
    socklen_t address_len;
    int family;
    bool heard; /* it said something */
    char *error;
    size_t len;
};

static int no_connection(struct attempt *t, int err)
{
    char text[MEET_ADDRESS_BYTES];

    meet_address_text(&t->address, text, sizeof(text));
    if (err == -ECONNREFUSED)
        snprintf(t->error, t->len, "nobody listens on '%s' (%s): start the other end there first",
                 t->m->host, text);
    else if (err == -EINTR)
        snprintf(t->error, t->len, "stopped while connecting to '%s'", t->m->host);
    else
        snprintf(t->error, t->len, "cannot connect to '%s' (%s): %s", t->m->host, text,
                 err == -ETIMEDOUT
                     ? "no answer; is it up, and does a firewall let this port through?"
                     : strerror(-err));
    return err;
}

/* Where nobody listens on a port that the system gives to clients, it may give us that very
 * port. */
static bool is_itself(int fd)
{
    struct sockaddr_storage own = {0}, peer = {0};
    socklen_t own_len = sizeof(own), peer_len = sizeof(peer);

    return !getsockname(fd, (struct sockaddr *)&own, &own_len) &&
           !getpeername(fd, (struct sockaddr *)&peer, &peer_len) && own_len == peer_len &&
           !memcmp(&own, &peer, own_len);
}

/* A connected socket or -errno with error. */
static int open_connection(struct attempt *t)
{
    int fd = socket(t->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int err = 0;

    if (fd < 0)
        return no_connection(t, -errno);
    if (connect(fd, (struct sockaddr *)&t->address, t->address_len) && errno != EINPROGRESS)
        err = -errno;
    if (!err)
        err = fd_wait(fd, POLLOUT, fd_until(CONNECT_NS), t->m->cancel);
    socklen_t len = sizeof(int);
    int failed = 0;
    if (!err && !getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &len))
        err = -failed;
    if (!err && is_itself(fd))
        err = -ECONNREFUSED;
    if (!err)
        return fd;
    close(fd);
    return no_connection(t, err);
}

static int shake_hands(struct attempt *t, int fd, struct shake *s)
{
    uint64_t until_ns = fd_until(SHAKE_NS);
    int err = meet_say(fd, s);

    while (!err && shake_wants(s)) {
        size_t wanted = shake_wants(s);
        err = meet_hear(fd, s);
        if (shake_wants(s) != wanted || s->state != SHAKE_HELLO)
            t->heard = true;
        if (err == -EAGAIN)
            err = fd_wait(fd, POLLIN, until_ns, t->m->cancel);
    }
    return err;
}

/* What became of the handshake, in words. */
static int tell(struct attempt *t, const struct shake *s, int err)
{
    char text[MEET_ADDRESS_BYTES];

    meet_address_text(&t->address, text, sizeof(text));
    if (s->state == SHAKE_FAILED) {
        snprintf(t->error, t->len, "'%s' (%s) %s", t->m->host, text, s->error);
        return s->err;
    }
    if (err == -EINTR) {
        snprintf(t->error, t->len, "stopped while meeting '%s'", t->m->host);
        return err;
    }
    if (err == -ETIMEDOUT) {
        snprintf(t->error, t->len,
                 "'%s' (%s) accepts connections but does not answer: it hangs, or is no plumbline",
                 t->m->host, text);
        return err;
    }
    snprintf(t->error, t->len, "'%s' (%s) ended the connection %s", t->m->host, text,
             t->heard ? "in the middle of the handshake"
                      : "without a word: it is no plumbline, or too many knock there");
    return t->heard ? -EPROTO : -ECONNRESET;
}

static int try_address(struct attempt *t, struct channel **c)
{
    struct shake_self self;
    struct shake s;
    char name[SHAKE_NAME_BYTES];
    int fd = open_connection(t);
    if (fd < 0)
        return fd;
    int err = meet_self(&self, t->m->secret, t->m->protocol, name);
    if (err) {
        close(fd);
        return no_connection(t, err);
    }
    shake_begin(&s, false, &self);
    secret_wipe(&self, sizeof(self));
    err = shake_hands(t, fd, &s);
    if (!err && s.state == SHAKE_DONE) {
        /* An address is nobody's name: the other end has told its own. */
        bool named = inet_pton(AF_INET, t->m->host, &(struct in_addr){0}) != 1 &&
                     inet_pton(AF_INET6, t->m->host, &(struct in6_addr){0}) != 1;
        err = meet_channel(c, fd, &s, named ? t->m->host : s.name, &t->address);
        if (err)
            no_connection(t, err);
    } else {
        err = tell(t, &s, err);
        close(fd);
    }
    shake_end(&s);
    return err;
}

/* Might it be otherwise in a moment? */
static bool may_change(int err)
{
    return err == -ECONNREFUSED || err == -EBUSY || err == -ECONNRESET || err == -ETIMEDOUT ||
           err == -EHOSTUNREACH || err == -ENETUNREACH;
}

/* What an address' error says of the host: one that answered knows more than one that could not be
 * reached. */
static int weight(int err)
{
    switch (err) {
    case -EACCES:
    case -EBUSY:
    case -ECONNRESET:
    case -EINTR:
    case -EPROTO:
        return 2;
    case -ECONNREFUSED:
        return 1;
    }
    return 0;
}

/* All addresses of the host, each once, until one gives an answer. */
static int try_all(const struct meet_connect *m, const struct addrinfo *found, struct channel **c,
                   char *error, size_t len)
{
    char said[MEET_ERROR_BYTES];
    int result = 0;

    for (const struct addrinfo *a = found; a && weight(result) < 2; a = a->ai_next) {
        struct attempt t = {.m = m,
                            .address_len = a->ai_addrlen,
                            .family = a->ai_family,
                            .error = said,
                            .len = sizeof(said)};
        memcpy(&t.address, a->ai_addr, a->ai_addrlen);
        int err = try_address(&t, c);
        if (!err)
            return 0;
        if (!result || weight(err) > weight(result)) {
            result = err;
            snprintf(error, len, "%s", said);
        }
    }
    return result;
}

int meet_connect(const struct meet_connect *m, struct channel **c, char *error, size_t len)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    uint64_t until_ns = fd_until(m->wait_ns);
    char port[8];
    const char *why = meet_refuse_host(m->host);
    int err;

    if (why) {
        snprintf(error, len, "'%s' %s", m->host, why);
        return -EINVAL;
    }
    snprintf(port, sizeof(port), "%u", m->port);
    int code = getaddrinfo(m->host, port, &hints, &found);
    if (code) {
        snprintf(error, len, "cannot find the host '%s': %s", m->host, gai_strerror(code));
        return -ENOENT;
    }
    do {
        err = try_all(m, found, c, error, len);
        if (!err || !may_change(err) || clock_now_ns() + AGAIN_NS >= until_ns)
            break;
        nanosleep(&(struct timespec){.tv_nsec = AGAIN_NS}, NULL);
    } while (!m->cancel || !*m->cancel);
    freeaddrinfo(found);
    return err;
}

int meet_exit(int err)
{
    static const int usage[] = {-EINVAL, -EADDRINUSE, -EACCES, -EOPNOTSUPP, -ENOENT};

    for (size_t i = 0; i < sizeof(usage) / sizeof(*usage); i++)
        if (err == usage[i])
            return EXIT_USAGE;
    return err ? EXIT_INCOMPLETE : EXIT_GOOD;
}
