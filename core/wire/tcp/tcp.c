/* SPDX-License-Identifier: Apache-2.0 */
/* The transport: see tcp.h. */
#include "core/wire/tcp/tcp.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/rng.h"

/* ---- Was what arrived what was sent? See tcp.h ---- */

static int compare(struct net_end *e, unsigned number, enum net_direction d, unsigned round,
                   size_t at)
{
    const struct tcp_connection *c = &tcp_of(e)->connections[number];
    size_t wrong =
        pattern_check(c->in + at, c->message_bytes, net_seed(e->point, d, number, round));

    if (wrong == PATTERN_RIGHT)
        return 0;
    return net_fail(
        e, -EBADMSG,
        "wrong data: byte %zu of %zu of %s message from %s on connection %u is not what "
        "was sent",
        wrong, c->message_bytes, round ? "a fresh" : "the last", channel_peer(e->channel), number);
}

/* The ping's first byte is a flag: what it would be is put back for the comparison. */
static void put_back_flag(struct net_end *e, unsigned number, enum net_direction d)
{
    if (number == e->point->connections)
        pattern_fill(tcp_of(e)->connections[number].in, 1, net_seed(e->point, d, number, 0));
}

/* As many of the last messages as the buffer held. */
static int check_last(struct net_end *e, unsigned number, enum net_direction d)
{
    struct tcp_connection *c = &tcp_of(e)->connections[number];
    size_t held = c->in_total < c->in_bytes ? (size_t)c->in_total : c->in_bytes;
    int err = 0;

    if (held)
        put_back_flag(e, number, d);
    for (size_t at = 0; at < held && !err; at += c->message_bytes)
        err = compare(e, number, d, 0, at);
    return err;
}

static int receive_fresh(struct net_end *e, unsigned number, enum net_direction d)
{
    struct tcp_connection *c = &tcp_of(e)->connections[number];

    memset(c->in, 0, c->in_bytes);
    int err = tcp_receive_all(e, c->fd, c->in, c->message_bytes);
    err = err ? err : compare(e, number, d, 1, 0);
    c->in_total = c->in_at = 0;
    return err;
}

static bool streams(const struct net_end *e, unsigned number, enum net_direction d)
{
    return number == e->point->connections ? e->point->ping : e->point->stream[d];
}

/* One direction of one connection after the other: no two
 * ends wait for each other with full buffers. */
static int tcp_check(struct net_end *e)
{
    struct tcp *t = tcp_of(e);
    int err = 0;

    for (unsigned i = t->first; i < t->first + t->n; i++)
        for (int d = 0; d < NET_DIRECTIONS && !err; d++) {
            enum net_direction direction = (enum net_direction)d;
            if (!streams(e, i, direction))
                continue;
            if (tcp_sends(e, direction)) {
                tcp_ready_out(e, i, direction, 1);
                err = tcp_send_all(e, t->connections[i].fd, t->connections[i].out,
                                   t->connections[i].message_bytes);
            } else {
                err = check_last(e, i, direction);
                err = err ? err : receive_fresh(e, i, direction);
            }
        }
    return err;
}

/* Watches over the ping's connection. A receive with a time-out of its own arms a timer each time,
 * which costs some per cent of a round trip; so it has none, and a thread that sleeps most of the
 * time ends the connection where nothing has moved for too long, or where everything is over. */

#define LOOK_NS 100000000

static void *watch(void *arg)
{
    struct net_end *e = arg;
    struct tcp *t = tcp_of(e);
    uint64_t seen = 0, since_ns = clock_now_ns();
    struct timespec rest = {.tv_nsec = LOOK_NS};

    while (!atomic_load(&t->guard.end)) {
        uint64_t turns = atomic_load_explicit(&t->guard.turns, memory_order_relaxed);
        if (turns != seen)
            since_ns = clock_now_ns();
        seen = turns;
        if (tcp_still(e, &since_ns, t->still_ns)) {
            shutdown(t->connections[e->point->connections].fd, SHUT_RDWR);
            break;
        }
        nanosleep(&rest, NULL);
    }
    return NULL;
}

static int set_tick(struct net_end *e, uint64_t ns)
{
    int fd = tcp_of(e)->connections[e->point->connections].fd;
    struct timeval tick = {.tv_usec = (suseconds_t)(ns / 1000)};

    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tick, sizeof(tick)) ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tick, sizeof(tick)))
        return net_fail(e, -errno, "a data connection's options: %s", strerror(errno));
    return 0;
}

/* While pings go there and back, calls on their connection wait without a time-out of their
 * own. Stopped, they have one again. Both are left alone where it is so already. */
static int tcp_guard_start(struct net_end *e)
{
    struct tcp_guard *g = &tcp_of(e)->guard;
    sigset_t all, before;

    if (g->started)
        return 0;
    int err = set_tick(e, 0);
    if (err)
        return err;
    atomic_store(&g->end, false);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    err = -pthread_create(&g->thread, NULL, watch, e);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    g->started = !err;
    return err ? net_fail(e, err, "cannot start a thread: %s", strerror(-err)) : 0;
}

static int tcp_guard_stop(struct net_end *e)
{
    struct tcp_guard *g = &tcp_of(e)->guard;

    if (!g->started)
        return 0;
    atomic_store(&g->end, true);
    pthread_join(g->thread, NULL);
    g->started = false;
    return set_tick(e, TCP_TICK_NS);
}

/* One message there and back. The first byte of the leader's says whether it is the last. */

#define SPINS 1024u /* tries between two looks at clock and flags */

/* The guard ends the connection, too. */
static int ended(struct net_end *e, int err, const char *doing)
{
    int why = net_over(e) ? atomic_load(&e->error_code) : 0;

    if (net_over(e))
        return why ? why : -ECANCELED;
    return tcp_broken(e, err, doing);
}

static int push_all(struct net_end *e, struct tcp_connection *c)
{
    uint64_t since_ns = 0;

    for (size_t done = 0; done < c->message_bytes;) {
        ssize_t n = send(c->fd, c->out + done, c->message_bytes - done, MSG_NOSIGNAL);
        int err = 0;
        if (n > 0) {
            done += (size_t)n;
            since_ns = 0;
        } else {
            err = errno == EAGAIN || errno == EINTR ? tcp_still(e, &since_ns, tcp_of(e)->still_ns)
                                                    : ended(e, -errno, "sending");
        }
        if (err)
            return err;
    }
    return 0;
}

static int pull_all(struct net_end *e, struct tcp_connection *c)
{
    bool spin = e->point->tcp.spin;
    unsigned spins = 0;
    uint64_t since_ns = 0;

    for (size_t done = 0; done < c->message_bytes;) {
        ssize_t n = recv(c->fd, c->in + done, c->message_bytes - done, spin ? MSG_DONTWAIT : 0);
        int err = 0;
        if (n > 0) {
            done += (size_t)n;
            since_ns = 0;
        } else if (!n || (errno != EAGAIN && errno != EINTR)) {
            err = ended(e, n ? -errno : -ECONNRESET, "receiving");
        } else if (!spin || !(++spins % SPINS)) {
            err = tcp_still(e, &since_ns, tcp_of(e)->still_ns);
        }
        if (err)
            return err;
    }
    return 0;
}

static struct tcp_connection *ping_connection(struct net_end *e)
{
    return &tcp_of(e)->connections[e->point->connections];
}

static void count(struct net_end *e)
{
    struct net_count *c = &e->counts[e->point->connections];

    atomic_fetch_add_explicit(&c->sent, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&c->received, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&tcp_of(e)->guard.turns, 1, memory_order_relaxed);
}

static int tcp_ping(struct net_end *e, bool last, uint64_t *ns)
{
    struct tcp_connection *c = ping_connection(e);

    tcp_ready_out(e, e->point->connections, NET_FORWARD, 0);
    tcp_ready_in(c);
    c->out[0] = last;
    int err = tcp_guard_start(e);
    uint64_t start_ns = clock_now_ns();
    err = err ? err : push_all(e, c);
    err = err ? err : pull_all(e, c);
    *ns = clock_now_ns() - start_ns;
    if (!err)
        count(e);
    c->in_total += c->message_bytes;
    if (last && !err)
        err = tcp_guard_stop(e);
    return err;
}

static int tcp_pong(struct net_end *e)
{
    struct tcp_connection *c = ping_connection(e);
    bool last = false;
    int err = 0;

    tcp_ready_out(e, e->point->connections, NET_REVERSE, 0);
    tcp_ready_in(c);
    err = tcp_guard_start(e);
    while (!last && !err) {
        err = pull_all(e, c);
        last = c->in[0];
        c->out[0] = c->in[0];
        err = err ? err : push_all(e, c);
        c->in_total += c->message_bytes;
        if (!err)
            count(e);
    }
    if (!err)
        err = tcp_guard_stop(e);
    return net_over(e) ? atomic_load(&e->error_code) : err;
}

static bool counted_by_sender(const struct net_point *p, enum net_direction d)
{
    (void)p;
    (void)d;
    return false;
}

static bool needs_worker(const struct net_point *p, enum net_direction d, bool sends)
{
    (void)p;
    (void)d;
    (void)sends;
    return true;
}

static bool polls(const struct net_point *p)
{
    return p->tcp.busy_poll_us > 0;
}

static int make_state(struct net_end *e)
{
    const struct net_point *p = e->point;
    struct tcp *t = calloc(1, sizeof(*t));
    bool streams = p->stream[NET_FORWARD] || p->stream[NET_REVERSE];

    e->state = t;
    if (!t)
        return net_fail(e, -ENOMEM, "out of memory");
    for (unsigned i = 0; i < NET_RAILS_MAX; i++)
        t->rails[i].listener = -1;
    t->still_ns = NET_STILL_NS;
    t->wait_ns = CHANNEL_WAIT_NS;
    t->first = streams ? 0 : p->connections;
    t->n = p->connections + (p->ping ? 1 : 0) - t->first;
    t->connections = aligned_alloc(_Alignof(struct tcp_connection),
                                   (p->connections + 1u) * sizeof(*t->connections));
    if (!t->connections)
        return net_fail(e, -ENOMEM, "out of memory");
    for (unsigned i = 0; i <= p->connections; i++)
        t->connections[i] = (struct tcp_connection){.fd = -1};
    return 0;
}

static int tcp_open(struct net_end *e)
{
    const struct net_point *p = e->point;
    bool streams = p->stream[NET_FORWARD] || p->stream[NET_REVERSE];

    if (p->connections > NET_CONNECTIONS_MAX)
        return net_fail(e, -EINVAL, "at most %d connections", NET_CONNECTIONS_MAX);
    if (streams && p->tcp.mode == NET_TCP_BLOCKING && p->threads < p->connections)
        return net_fail(
            e, -EOPNOTSUPP,
            "a thread that blocks serves one connection: %u threads for %u connections, "
            "or epoll",
            p->connections, p->connections);
    int err = make_state(e);
    err = err ? err : tcp_find_rails(e);
    return err ? err : tcp_try_options(e);
}

static void tcp_close(struct net_end *e)
{
    struct tcp *t = tcp_of(e);

    if (!t)
        return;
    tcp_guard_stop(e); /* it looks at the flags ten times a second */
    for (unsigned i = 0; t->connections && i < t->first + t->n; i++)
        if (t->connections[i].fd >= 0)
            close(t->connections[i].fd);
    for (unsigned i = 0; i < NET_RAILS_MAX; i++)
        if (t->rails[i].listener >= 0)
            close(t->rails[i].listener);
    host_free(&t->buffer);
    free(t->connections);
    free(t);
    e->state = NULL;
}

const struct net_ops net_tcp = {
    .name = "tcp",
    .help = "TCP over any network: blocking threads or epoll",
    .backends = tcp_backends,
    .counted_by_sender = counted_by_sender,
    .needs_worker = needs_worker,
    .polls = polls,
    .open = tcp_open,
    .address = tcp_address,
    .join = tcp_join,
    .work = tcp_work,
    .ping = tcp_ping,
    .pong = tcp_pong,
    .check = tcp_check,
    .facts = tcp_facts,
    .close = tcp_close,
};
