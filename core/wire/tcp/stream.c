/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that sends or receives messages, one connection at a time: see tcp.h. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <linux/errqueue.h> /* after time.h */

#include "core/rng.h"
#include "core/wire/tcp/tcp.h"

/* ---- What is sent and where it arrives ---- */

#define ALIGN 4096u

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* Small messages arrive many at once, in a buffer that holds whole ones. */
static void set_sizes(const struct net_end *e, unsigned number)
{
    struct tcp_connection *c = &tcp_of(e)->connections[number];
    bool ping = number == e->point->connections;
    uint64_t bytes = ping ? e->point->ping_bytes : e->point->message_bytes;
    uint64_t at_once = ping || bytes >= TCP_RECEIVE_LEAST ? 1 : TCP_RECEIVE_LEAST / bytes;

    c->message_bytes = bytes;
    for (int d = 0; d < NET_DIRECTIONS; d++) {
        if (!ping && !e->point->stream[d])
            continue;
        if (tcp_sends(e, (enum net_direction)d))
            c->out_bytes = bytes;
        else
            c->in_bytes = bytes * at_once;
    }
}

static uint64_t needed(const struct tcp *t)
{
    uint64_t sum = 0;

    for (unsigned i = t->first; i < t->first + t->n; i++)
        sum += rounded(t->connections[i].out_bytes) + rounded(t->connections[i].in_bytes);
    return sum;
}

/* Where both ends are on one machine, both take theirs from the same memory. */
static int refuse(struct net_end *e, uint64_t bytes)
{
    uint64_t available = host_available();

    if (available == UINT64_MAX)
        return 0;
    available = (available - available / 8) / (e->same_machine ? 2 : 1);
    if (bytes <= available)
        return 0;
    return net_fail(e, -EOPNOTSUPP,
                    "buffers of all connections need %llu MiB of memory, %llu can be had: smaller "
                    "messages or fewer connections",
                    (unsigned long long)(bytes >> 20), (unsigned long long)(available >> 20));
}

int tcp_make_buffers(struct net_end *e)
{
    struct tcp *t = tcp_of(e);
    char error[160] = "";

    for (unsigned i = t->first; i < t->first + t->n; i++)
        set_sizes(e, i);
    int err = refuse(e, needed(t));
    if (err)
        return err;
    err = host_alloc(&t->buffer, e->topo, needed(t) + ALIGN, HOST_PAGES_THP, e->memory_node, error,
                     sizeof(error));
    if (err)
        return net_fail(e, err, "%s", error);
    char *at = t->buffer.at;
    for (unsigned i = t->first; i < t->first + t->n; i++) {
        struct tcp_connection *c = &t->connections[i];
        c->out = at;
        c->in = at + rounded(c->out_bytes);
        at = c->in + rounded(c->in_bytes);
    }
    return 0;
}

void tcp_ready_out(struct net_end *e, unsigned number, enum net_direction d, unsigned round)
{
    struct tcp_connection *c = &tcp_of(e)->connections[number];

    if (c->out_ready && !round)
        return;
    pattern_fill(c->out, c->message_bytes, net_seed(e->point, d, number, round));
    c->out_ready = !round;
}

/* Touched by the thread that will write it. */
void tcp_ready_in(struct tcp_connection *c)
{
    if (!c->in_ready)
        memset(c->in, 0, c->in_bytes);
    c->in_ready = true;
}

/* Sends without a copy. The kernel tells in a socket's error queue when it is done with the memory
 * of a send, and whether it copied all the same (as it does where both ends are on one machine, and
 * where a device cannot gather). The memory is sent again before that: what is in it does not
 * change. */

#define REAP_EVERY 32u /* sends */

/* One note says it of a range of sends. */
static void take_note(struct tcp_connection *c, struct msghdr *m)
{
    for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
        struct sock_extended_err note;
        if (!(h->cmsg_level == SOL_IP && h->cmsg_type == IP_RECVERR) &&
            !(h->cmsg_level == SOL_IPV6 && h->cmsg_type == IPV6_RECVERR))
            continue;
        memcpy(&note, CMSG_DATA(h), sizeof(note));
        if (note.ee_origin != SO_EE_ORIGIN_ZEROCOPY || note.ee_errno)
            continue;
        uint64_t n = (uint32_t)(note.ee_data - note.ee_info) + 1ull;
        atomic_fetch_add_explicit(&c->zerocopy.done, n, memory_order_relaxed);
        if (note.ee_code & SO_EE_CODE_ZEROCOPY_COPIED)
            atomic_fetch_add_explicit(&c->zerocopy.copied, n, memory_order_relaxed);
    }
}

/* stream.c takes note of what the kernel is done with */
static int tcp_zerocopy_reap(struct tcp_connection *c)
{
    char control[256];

    for (;;) {
        struct msghdr m = {.msg_control = control, .msg_controllen = sizeof(control)};
        if (recvmsg(c->fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
            return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        take_note(c, &m);
    }
}

/* stream.c one more */
static void tcp_zerocopy_sent(struct tcp_connection *c)
{
    if (!(++c->zerocopy.sent % REAP_EVERY))
        tcp_zerocopy_reap(c); /* an error shows at the next send */
}

/* An error pending on the socket wakes poll() as well: so it does not sleep on, and it does not
 * turn without a pause. */
static void pause_for_note(int fd)
{
    struct pollfd p = {.fd = fd};
    struct timespec pause = {0, 100000};

    if (poll(&p, 1, TCP_TICK_NS / 1000000) > 0)
        nanosleep(&pause, NULL);
}

/* Until it is done with one more, or with all. */
static int tcp_zerocopy_wait(struct net_end *e, struct tcp_connection *c, bool all)
{
    uint64_t before = atomic_load(&c->zerocopy.done), since_ns = 0;
    int err = 0;

    if (!all && before == c->zerocopy.sent)
        return net_fail(e, -EOPNOTSUPP,
                        "the kernel may pin no memory for sends without a copy: raise ulimit -l or "
                        "net.core.optmem_max");
    while (!err) {
        err = tcp_zerocopy_reap(c);
        uint64_t done = atomic_load(&c->zerocopy.done);
        if (err || done == c->zerocopy.sent || (!all && done > before))
            break;
        if (done > before)
            since_ns = 0;
        before = all ? done : before;
        pause_for_note(c->fd);
        err = tcp_still(e, &since_ns, tcp_of(e)->still_ns);
    }
    return err;
}

#ifndef MSG_ZEROCOPY
#define MSG_ZEROCOPY 0x4000000
#endif

static bool nothing_now(int err)
{
    return err == EAGAIN || err == EINTR;
}

static void add(_Atomic uint64_t *count, uint64_t n)
{
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

/* After sends without a copy: what the kernel is done with is taken note of now and then. */
static int push_failed(struct net_end *e, struct tcp_connection *c, int err)
{
    if (nothing_now(err))
        return 0;
    return err == ENOBUFS && e->point->tcp.zerocopy ? tcp_zerocopy_wait(e, c, false) : -err;
}

/* One send, one receive: bytes moved, 0: nothing can now, or -errno. Whole messages are counted. */
static int tcp_send_flags(const struct net_end *e)
{
    return MSG_NOSIGNAL | (e->point->tcp.zerocopy ? MSG_ZEROCOPY : 0) |
           (e->point->tcp.mode == NET_TCP_EPOLL ? MSG_DONTWAIT : 0);
}

static ssize_t tcp_push(struct net_end *e, unsigned number, int flags)
{
    struct tcp_connection *c = &tcp_of(e)->connections[number];
    size_t left = c->message_bytes - c->out_at;
    ssize_t n = send(c->fd, c->out + c->out_at, left < TCP_SEND_MOST ? left : TCP_SEND_MOST, flags);

    if (n < 0)
        return push_failed(e, c, errno);
    if (flags & MSG_ZEROCOPY)
        tcp_zerocopy_sent(c);
    c->out_at += (size_t)n;
    if (c->out_at == c->message_bytes) {
        c->out_at = 0;
        add(&e->counts[number].sent, 1);
    }
    return n;
}

static ssize_t tcp_pull(struct net_worker *w, unsigned number, int flags)
{
    struct net_end *e = w->end;
    struct tcp_connection *c = &tcp_of(e)->connections[number];
    ssize_t n = recv(c->fd, c->in + c->in_at, c->in_bytes - c->in_at, flags);

    if (n <= 0)
        return n && nothing_now(errno) ? 0 : n ? -errno : -ECONNRESET;
    uint64_t messages = (c->in_at + (size_t)n) / c->message_bytes - c->in_at / c->message_bytes;
    c->in_at += (size_t)n;
    if (c->in_at == c->in_bytes)
        c->in_at = 0;
    c->in_total += (uint64_t)n;
    add(&e->counts[number].received, messages);
    net_tally_add(&w->tally, (uint64_t)n, messages);
    return n;
}

static int send_stream(struct net_worker *w)
{
    struct net_end *e = w->end;
    struct tcp_connection *c = &tcp_of(e)->connections[w->first];
    int flags = tcp_send_flags(e), err = 0;
    uint64_t since_ns = 0;

    while (!err && (c->out_at || !net_stop(e))) {
        ssize_t n = tcp_push(e, w->first, flags);
        if (n > 0 && !net_over(e))
            since_ns = 0;
        else
            err = n < 0 ? (int)n : tcp_still(e, &since_ns, tcp_of(e)->still_ns);
    }
    return err;
}

static int receive_stream(struct net_worker *w)
{
    struct net_end *e = w->end;
    uint64_t since_ns = 0;
    int err = 0;

    while (!err && !net_over(e) && !net_drained(e, w->first)) {
        ssize_t n = tcp_pull(w, w->first, 0);
        if (n > 0)
            since_ns = 0;
        else
            err = n < 0 ? (int)n : tcp_still(e, &since_ns, tcp_of(e)->still_ns);
    }
    return err;
}

static void ready(struct net_worker *w)
{
    for (unsigned i = w->first; i < w->first + w->n; i++) {
        if (w->sends)
            tcp_ready_out(w->end, i, w->direction, 0);
        else
            tcp_ready_in(&tcp_of(w->end)->connections[i]);
    }
}

/* The kernel must be done with what is sent without a copy before anybody changes it. */
static int finish(struct net_worker *w)
{
    int err = 0;

    for (unsigned i = w->first; i < w->first + w->n && w->sends && !err; i++)
        err = tcp_zerocopy_wait(w->end, &tcp_of(w->end)->connections[i], true);
    return err;
}

/* ---- A thread that serves several connections by epoll ---- */

#define EVENTS      64
#define BURST_BYTES ((size_t)1 << 20) /* of one connection before another has its turn */
#define BURST_CALLS 64

/* Linux 6.9: an epoll asks the adapter itself, as SO_BUSY_POLL makes a receive do. Its headers
 * may be older. */
struct busy_params {
    uint32_t usecs;
    uint16_t budget;
    uint8_t prefer, pad;
};
#define SET_BUSY_PARAMS _IOW(0x8A, 0x01, struct busy_params)

struct server {
    struct net_worker *w;
    int fd, flags;
    unsigned left; /* connections that are not done */
    bool done[NET_CONNECTIONS_MAX];
};

static bool is_done(const struct server *s, unsigned number)
{
    const struct net_end *e = s->w->end;

    return s->w->sends ? !tcp_of(e)->connections[number].out_at && net_stop(e)
                       : net_drained(e, number);
}

static void drop_done(struct server *s, unsigned number)
{
    if (s->done[number - s->w->first] || !is_done(s, number))
        return;
    epoll_ctl(s->fd, EPOLL_CTL_DEL, tcp_of(s->w->end)->connections[number].fd, NULL);
    s->done[number - s->w->first] = true;
    s->left--;
}

/* A connection's turn. */
static int serve(struct server *s, unsigned number, bool *moved)
{
    struct net_end *e = s->w->end;
    struct tcp_connection *c = &tcp_of(e)->connections[number];
    size_t bytes = 0, most = c->message_bytes < BURST_BYTES ? BURST_BYTES : c->message_bytes;

    for (unsigned calls = 0; calls < BURST_CALLS && bytes < most && !is_done(s, number); calls++) {
        ssize_t n =
            s->w->sends ? tcp_push(e, number, s->flags) : tcp_pull(s->w, number, MSG_DONTWAIT);
        if (n < 0)
            return (int)n;
        if (!n)
            break;
        bytes += (size_t)n;
        *moved = true;
    }
    return 0;
}

static int serve_ready(struct server *s, const struct epoll_event *events, int n, bool *moved)
{
    int err = 0;

    for (int i = 0; i < n && !err; i++) {
        unsigned number = events[i].data.u32;
        if (events[i].events & EPOLLERR && s->w->sends && s->w->end->point->tcp.zerocopy)
            err = tcp_zerocopy_reap(&tcp_of(s->w->end)->connections[number]);
        err = err ? err : serve(s, number, moved);
    }
    return err;
}

static int loop(struct server *s)
{
    struct net_worker *w = s->w;
    struct net_end *e = w->end;
    struct epoll_event events[EVENTS];
    uint64_t since_ns = 0;
    int err = 0;

    while (s->left && !err && !net_over(e)) {
        bool moved = false;
        int n = epoll_wait(s->fd, events, EVENTS, TCP_TICK_NS / 1000000);
        if (n < 0 && errno != EINTR)
            return -errno;
        err = serve_ready(s, events, n, &moved);
        bool ending =
            w->sends ? net_stop(e) : atomic_load_explicit(&e->expect_known, memory_order_acquire);
        for (unsigned i = w->first; i < w->first + w->n && ending; i++)
            drop_done(s, i);
        if (moved)
            since_ns = 0;
        else if (!err)
            err = tcp_still(e, &since_ns, tcp_of(e)->still_ns);
    }
    return err;
}

static int add_connections(struct server *s)
{
    struct net_worker *w = s->w;
    struct busy_params busy = {.usecs = w->end->point->tcp.busy_poll_us, .budget = 8};

    for (unsigned i = w->first; i < w->first + w->n; i++) {
        struct epoll_event event = {.events = w->sends ? EPOLLOUT : EPOLLIN, .data.u32 = i};
        if (epoll_ctl(s->fd, EPOLL_CTL_ADD, tcp_of(w->end)->connections[i].fd, &event))
            return -errno;
    }
    if (busy.usecs && ioctl(s->fd, SET_BUSY_PARAMS, &busy))
        return net_fail(w->end, -EOPNOTSUPP,
                        "this kernel's epoll cannot busy-poll: %s; Linux 6.9 can, or use blocking "
                        "threads",
                        strerror(errno));
    return 0;
}

static int tcp_work_epoll(struct net_worker *w)
{
    struct server s = {.w = w, .left = w->n, .flags = tcp_send_flags(w->end)};

    s.fd = epoll_create1(EPOLL_CLOEXEC);
    if (s.fd < 0)
        return -errno;
    int err = add_connections(&s);
    err = err ? err : loop(&s);
    close(s.fd);
    return err;
}

int tcp_work(struct net_worker *w)
{
    struct net_end *e = w->end;
    int err;

    ready(w);
    if (e->point->tcp.mode == NET_TCP_EPOLL)
        err = tcp_work_epoll(w);
    else
        err = w->sends ? send_stream(w) : receive_stream(w);
    err = err ? err : finish(w);
    if (!err || net_over(e)) /* what ended it has been told, or is not this end's */
        return atomic_load(&e->error_code);
    return tcp_broken(e, err, w->sends ? "sending" : "receiving");
}
