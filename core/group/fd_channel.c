/* SPDX-License-Identifier: Apache-2.0 */
/* Channels over a stream socket: see channel.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/group/channel.h"
#include "core/group/notice.h"

/* ---- Frames as bytes ---- */

long frame_encode(struct secret_stream *out, uint16_t type, const void *data, size_t len,
                  uint8_t *to)
{
    uint8_t *payload = to + FRAME_HEADER_BYTES;

    if (len > CHANNEL_FRAME_MAX)
        return -EMSGSIZE;
    bytes_put32(to, (uint32_t)len);
    bytes_put16(to + 4, type);
    bytes_put16(to + 6, 0);
    if (out)
        secret_seal(out, payload, data, len, to, FRAME_HEADER_BYTES);
    else if (len)
        memcpy(payload, data, len);
    return (long)(FRAME_HEADER_BYTES + len + (out ? SECRET_SEAL_BYTES : 0));
}

long frame_size(bool sealed, const uint8_t *bytes, size_t n)
{
    if (n < FRAME_HEADER_BYTES)
        return FRAME_HEADER_BYTES;
    uint32_t len = bytes_get32(bytes);
    if (len > CHANNEL_FRAME_MAX || bytes_get16(bytes + 6))
        return -EPROTO;
    return (long)(FRAME_HEADER_BYTES + len + (sealed ? SECRET_SEAL_BYTES : 0));
}

int frame_take(struct secret_stream *in, const uint8_t *bytes, size_t n, uint8_t *plain,
               struct frame *f)
{
    if (n < FRAME_HEADER_BYTES || frame_size(in, bytes, n) != (long)n)
        return -EPROTO;
    *f = (struct frame){.type = bytes_get16(bytes + 4),
                        .data = bytes + FRAME_HEADER_BYTES,
                        .len = bytes_get32(bytes)};
    if (!in)
        return 0;
    int err = secret_open(in, plain, f->data, f->len, bytes, FRAME_HEADER_BYTES);
    f->data = plain;
    return err;
}

/* ---- Signs of life ---- */

#define UNSEEN_NS 1000000000u /* between two looks at what has come: longer, this end was away */

/* To be called at each look at what has come. What did not look did not hear either. */
static void fd_look(struct channel *c)
{
    uint64_t now_ns = clock_now_ns();

    if (now_ns - c->looked_ns > UNSEEN_NS)
        c->heard_ns += now_ns - c->looked_ns;
    c->looked_ns = now_ns;
}

/* ---- Which direction of a link is dead ---- */

#define QUIET_MS          1000 /* two signs of life are missing */
#define STATE_ESTABLISHED 1    /* of tcpi_state: include/net/tcp_states.h of the kernel */

/* What a peer has not acknowledged it sends again: so segments come from it where the way from it is
 * open, though nothing new is in them. */
enum link_sign link_sign(const struct link_counts *now, uint32_t *segments)
{
    if (now->unheard_ms < QUIET_MS || now->late || !now->owed)
        *segments = now->segments;
    /* Nothing is owed, either, where this end could not send at all: that takes an acknowledgement. */
    if (!now->owed)
        return now->acked ? LINK_ACKNOWLEDGES : LINK_UNKNOWN;
    return now->segments != *segments ? LINK_ONE_WAY : LINK_DEAD;
}

/* What comes when both ends stood still, as those of one machine may, comes after the one who leads
 * has looked again. */
uint32_t link_silent_ms(const struct link_counts *now, uint32_t gap_ms, uint32_t *away_ms)
{
    if (now->unheard_ms < gap_ms) /* something has come since the last look */
        *away_ms = now->late ? now->unheard_ms : 0;
    else if (now->late)
        *away_ms += gap_ms;
    return now->unheard_ms > *away_ms ? now->unheard_ms - *away_ms : 0;
}

/* Twice a second. A socket that is none of TCP, or a kernel that says less, leaves all unknown. */
static void count(struct channel *c)
{
    uint64_t now_ns = clock_now_ns(), gap_ms = (now_ns - c->counted_ns) / 1000000;
    struct tcp_info info = {0};
    socklen_t len = sizeof(info);

    if (getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &len) ||
        len < offsetof(struct tcp_info, tcpi_segs_in) + sizeof(info.tcpi_segs_in) ||
        info.tcpi_state != STATE_ESTABLISHED) /* given up: the last sign stays */
        return;
    const struct link_counts now = {.unheard_ms = info.tcpi_last_data_recv,
                                    .segments = info.tcpi_segs_in,
                                    .owed = info.tcpi_unacked && info.tcpi_retransmits,
                                    .late = now_ns - c->counted_ns > UNSEEN_NS,
                                    .acked = info.tcpi_last_ack_recv < QUIET_MS};
    c->counted_ns = now_ns;
    __atomic_store_n(&c->sign, link_sign(&now, &c->segments), __ATOMIC_RELAXED);
    uint32_t silent_ms =
        link_silent_ms(&now, gap_ms < UINT32_MAX ? (uint32_t)gap_ms : UINT32_MAX, &c->away_ms);
    __atomic_store_n(&c->unheard_ns, silent_ms * 1000000ull, __ATOMIC_RELAXED);
}

static void say_silence(struct channel *c, char *text, size_t len)
{
    const char *peer = c->peer, *own = c->own;

    switch (__atomic_load_n(&c->sign, __ATOMIC_RELAXED)) {
    case LINK_ACKNOWLEDGES:
        snprintf(text, len,
                 "%s does not answer, though its machine acknowledges what is sent: "
                 "the process was stopped, or hangs",
                 peer);
        break;
    case LINK_ONE_WAY:
        snprintf(text, len,
                 "the link is cut in the direction from %s to %s: its own packets arrive, and it "
                 "acknowledges nothing",
                 own, peer);
        break;
    case LINK_DEAD:
        snprintf(text, len,
                 "nothing arrives at %s from %s: that host is down, or the link between "
                 "the two is cut, in that direction or in both, at either end",
                 own, peer);
        break;
    default:
        snprintf(text, len, "%s %s", peer, notice_words(NOTICE_SILENT));
    }
}

static bool fd_unheard(struct channel *c, uint64_t for_ns, char *text, size_t len)
{

    if (__atomic_load_n(&c->unheard_ns, __ATOMIC_RELAXED) < for_ns)
        return false;
    say_silence(c, text, len);
    return true;
}

/* Nothing is there to be read: for too long? 0, or -EHOSTUNREACH with base.error. */
static int fd_silence(struct channel *c)
{
    fd_look(c);
    if (!c->silent_ns || !c->beaten || c->looked_ns < c->heard_ns + c->silent_ns)
        return 0;
    say_silence(c, c->error, sizeof(c->error));
    return -EHOSTUNREACH;
}

void channel_expect(struct channel *c, uint64_t silent_ns)
{

    c->silent_ns = silent_ns;
    c->heard_ns = c->looked_ns = clock_now_ns();
}

uint64_t channel_quiet_ns(struct channel *c)
{
    struct pollfd p = {.fd = c->fd, .events = POLLIN};

    fd_look(c);
    return poll(&p, 1, 0) > 0 || c->heard_ns > c->looked_ns ? 0 : c->looked_ns - c->heard_ns;
}

static struct secret_stream *out_of(struct channel *c)
{
    return c->sealed ? &c->link.out : NULL;
}

/* All of it or nothing, and without a word: who uses the channel finds out by itself what is wrong
 * with it. */
void channel_beat(struct channel *c)
{
    struct pollfd p = {.fd = c->fd, .events = POLLOUT};

    if (pthread_mutex_trylock(&c->out_lock)) /* it is sending */
        return;
    if (!c->out_err && poll(&p, 1, 0) == 1 && p.revents == POLLOUT) {
        struct secret_stream before = c->link.out;
        size_t n = (size_t)frame_encode(out_of(c), FD_BEAT, NULL, 0, c->out);
        ssize_t sent = send(c->fd, c->out, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent <= 0)
            c->link.out = before;
        else if ((size_t)sent < n)
            shutdown(c->fd, SHUT_WR); /* what came next would not be understood */
    }
    count(c);
    pthread_mutex_unlock(&c->out_lock);
}

/* Idle for 2 s, then a probe every 2 s: without an answer it is over at 8 s. The same for data that
 * is not acknowledged. */
#define KEEP_IDLE_S     2
#define KEEP_EVERY_S    2
#define KEEP_PROBES     3
#define USER_TIMEOUT_MS 7000

#define fail(c, err, ...) group_fail((err), (c)->error, sizeof((c)->error), __VA_ARGS__)

/* The connection has ended: why, as far as it can be told. */
static int gone(struct channel *c, int error)
{
    if (c->look && c->look(c, true))
        return -ECONNRESET; /* it has said why */
    if (error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH)
        return fail(
            c, -EHOSTUNREACH,
            "nothing that %s sends is acknowledged by %s (%s): that host is down, or the link "
            "between the two is cut, at either end",
            c->own, c->peer, strerror(error));
    if (error && error != ECONNRESET && error != EPIPE)
        return fail(c, -ECONNRESET, "the connection to '%s' failed: %s", c->peer, strerror(error));
    return fail(c, -ECONNRESET, "%s %s", c->peer, notice_words(NOTICE_GONE));
}

uint64_t fd_until(uint64_t wait_ns)
{
    uint64_t now_ns = clock_now_ns();

    return now_ns + wait_ns < now_ns ? UINT64_MAX : now_ns + wait_ns;
}

/* Up to a slice: 1 when something is there, 0 when not, -ETIMEDOUT when the time is over. */
static int wait_slice(int fd, short events, uint64_t until_ns)
{
    struct pollfd p = {.fd = fd, .events = events};
    uint64_t now_ns = clock_now_ns();
    uint64_t left_ms = now_ns < until_ns ? (until_ns - now_ns + 999999) / 1000000 : 0;
    int n = poll(&p, 1, left_ms < FD_SLICE_MS ? (int)left_ms : FD_SLICE_MS);

    if (n < 0 && errno != EINTR)
        return -errno;
    if (n > 0)
        return 1;
    return left_ms ? 0 : -ETIMEDOUT;
}

int fd_wait(int fd, short events, uint64_t until_ns, const volatile int *cancel)
{
    int there = 0;

    while (there == 0) {
        if (cancel && *cancel)
            return -EINTR;
        there = wait_slice(fd, events, until_ns);
    }
    return there < 0 ? there : 0;
}

/* 0: something is there; -ETIMEDOUT, or what the look at the peer said. */
static int wait_for(struct channel *c, short events, uint64_t until_ns)
{
    int there = 0;

    while (there == 0) {
        there = wait_slice(c->fd, events, until_ns);
        if (there == 0 && c->look) /* only when nothing is there: its last frames come first */
            there = c->look(c, false);
        if (there == 0 && events == POLLIN)
            there = fd_silence(c);
    }
    return there < 0 ? there : 0;
}

static int send_some(struct channel *c, const uint8_t *bytes, size_t len, uint64_t until_ns,
                     size_t *sent)
{
    ssize_t n = send(c->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (n >= 0) {
        *sent += (size_t)n;
        return 0;
    }
    if (errno == EINTR)
        return 0;
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return wait_for(c, POLLOUT, until_ns);
    return gone(c, errno);
}

static int send_frame(struct channel *c, uint16_t type, const void *data, size_t len,
                      uint64_t wait_ns)
{
    uint64_t until_ns = fd_until(wait_ns);
    size_t sent = 0;

    if (c->out_err)
        return c->out_err;
    long n = frame_encode(out_of(c), type, data, len, c->out);
    if (n < 0)
        return fail(c, (int)n, "a frame of %zu bytes is too long: %u at most", len,
                    CHANNEL_FRAME_MAX);
    while (!c->out_err && sent < (size_t)n)
        c->out_err = send_some(c, c->out + sent, (size_t)n - sent, until_ns, &sent);
    /* A frame that went out in part cannot be taken back. */
    if (c->out_err == -ETIMEDOUT)
        fail(c, 0, "'%s' took nothing for %.3g s: it hangs, or is cut off", c->peer,
             (double)wait_ns / 1e9);
    return c->out_err;
}

static int fd_send(struct channel *c, uint16_t type, const void *data, size_t len, uint64_t wait_ns)
{

    pthread_mutex_lock(&c->out_lock);
    int err = send_frame(c, type, data, len, wait_ns);
    pthread_mutex_unlock(&c->out_lock);
    return err;
}

static int recv_some(struct channel *c, size_t want, uint64_t until_ns, bool wait)
{
    ssize_t n = recv(c->fd, c->in + c->n_in, want - c->n_in, MSG_DONTWAIT);

    if (n > 0) {
        c->n_in += (size_t)n;
        fd_look(c);
        c->heard_ns = c->looked_ns;
        return 0;
    }
    if (n == 0)
        return gone(c, 0);
    if (errno == EINTR)
        return 0;
    if (errno != EAGAIN && errno != EWOULDBLOCK)
        return gone(c, errno);
    int silent = wait ? 0 : fd_silence(c);
    return wait ? wait_for(c, POLLIN, until_ns) : silent ? silent : -EAGAIN;
}

/* Until a whole frame is there. */
static int recv_frame(struct channel *c, uint64_t wait_ns)
{
    uint64_t until_ns = fd_until(wait_ns);
    long want = frame_size(c->sealed, c->in, c->n_in);
    int err = 0;

    while (!err && want > 0 && c->n_in < (size_t)want) {
        err = recv_some(c, (size_t)want, until_ns, wait_ns > 0);
        want = frame_size(c->sealed, c->in, c->n_in);
    }
    if (!err && want < 0)
        err = -EPROTO;
    return err;
}

/* A frame that says something. */
static int recv_told(struct channel *c, struct frame *f, uint64_t wait_ns)
{
    uint64_t until_ns = fd_until(wait_ns);

    for (;;) {
        uint64_t now_ns = clock_now_ns();
        uint64_t left_ns = !wait_ns ? 0 : until_ns > now_ns ? until_ns - now_ns : 1;
        int err = recv_frame(c, left_ns);
        if (!err)
            err = frame_take(c->sealed ? &c->link.in : NULL, c->in, c->n_in, c->plain, f);
        if (err == -ETIMEDOUT)
            fail(c, err, "'%s' sent nothing for %.3g s: it hangs, or is cut off", c->peer,
                 (double)wait_ns / 1e9);
        if (err || f->type != FD_BEAT)
            return err;
        c->n_in = 0;
        c->beaten = true;
    }
}

static int fd_recv(struct channel *c, uint16_t *type, void *data, size_t size, size_t *len,
                   uint64_t wait_ns)
{
    struct frame f = {0};

    if (c->in_err)
        return c->in_err;
    int err = recv_told(c, &f, wait_ns);
    if (err == -EAGAIN || err == -ETIMEDOUT)
        return err; /* what is there of a frame waits for the rest */
    if (err == -EPROTO)
        fail(c, err, "a frame from '%s' is damaged, out of turn, or not its own", c->peer);
    c->in_err = err;
    if (err)
        return err;
    c->n_in = 0;
    *type = f.type;
    *len = f.len;
    if (f.len > size)
        return fail(c, -EMSGSIZE, "a frame of %zu bytes came from '%s', where %zu were expected",
                    f.len, c->peer, size);
    if (f.len)
        memcpy(data, f.data, f.len);
    return 0;
}

int channel_alive(struct channel *c)
{
    struct pollfd p = {.fd = c->fd, .events = POLLRDHUP};
    socklen_t len = sizeof(int);
    int error = 0;

    if (poll(&p, 1, 0) > 0 && p.revents) {
        getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len);
        return gone(c, error);
    }
    p.events = POLLIN;
    int err = poll(&p, 1, 0) > 0 ? 0 : fd_silence(c);
    return err || !c->look ? err : c->look(c, false);
}

/* The family that the other end uses, no port. */
static void plain_address(struct sockaddr_storage *a)
{
    struct sockaddr_in6 six;
    struct sockaddr_in *four = (struct sockaddr_in *)a;

    memcpy(&six, a, sizeof(six));
    if (a->ss_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) {
        ((struct sockaddr_in6 *)a)->sin6_port = 0;
        return;
    }
    in_addr_t address = htonl(INADDR_LOOPBACK); /* of a socket pair */
    if (a->ss_family == AF_INET6)
        memcpy(&address, six.sin6_addr.s6_addr + 12, sizeof(address));
    else if (a->ss_family == AF_INET)
        address = four->sin_addr.s_addr;
    memset(a, 0, sizeof(*a));
    four->sin_family = AF_INET;
    four->sin_addr.s_addr = address;
}

int channel_address(struct channel *c, struct sockaddr_storage *own, struct sockaddr_storage *peer)
{
    socklen_t own_len = sizeof(*own), peer_len = sizeof(*peer);

    memset(own, 0, sizeof(*own));
    memset(peer, 0, sizeof(*peer));
    if (getsockname(c->fd, (struct sockaddr *)own, &own_len) ||
        getpeername(c->fd, (struct sockaddr *)peer, &peer_len))
        return gone(c, errno == ENOTCONN ? 0 : errno);
    plain_address(own);
    plain_address(peer);
    return 0;
}

void channel_token(struct channel *c, const char *purpose, uint32_t number,
                   uint8_t token[CHANNEL_TOKEN_BYTES])
{
    secret_token(token, c->link.token, purpose, number);
}

void channel_close(struct channel *c)
{

    if (!c)
        return;
    shutdown(c->fd, SHUT_RDWR); /* others may hold the socket, too */
    if (c->end)
        c->end(c);
    close(c->fd);
    pthread_mutex_destroy(&c->out_lock);
    secret_wipe(c, sizeof(*c));
    free(c);
}

static const struct channel_ops channel_ops = {
    .send = fd_send, .recv = fd_recv, .unheard = fd_unheard};

struct channel *channel_new(int fd, const struct channel_link *link)
{
    struct channel *c = xcalloc(1, sizeof(*c));

    c->ops = &channel_ops;
    c->fd = fd;
    c->child_status = -1;
    snprintf(c->own, sizeof(c->own), "this end");
    pthread_mutex_init(&c->out_lock, NULL);
    c->sealed = link;
    if (link)
        c->link = *link;
    return c;
}

int fd_channel_tcp_options(int fd)
{
    static const struct {
        int level, name, value;
    } options[] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE_S},
        {IPPROTO_TCP, TCP_KEEPINTVL, KEEP_EVERY_S},
        {IPPROTO_TCP, TCP_KEEPCNT, KEEP_PROBES},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, USER_TIMEOUT_MS},
        {IPPROTO_TCP, TCP_NODELAY, 1},
    };

    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        if (setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int)))
            return -errno;
    return 0;
}
