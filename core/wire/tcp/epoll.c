/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that serves several connections by epoll: see tcp.h. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/wire/tcp/tcp.h"

#define EVENTS      64
#define BURST_BYTES ((size_t)1 << 20) /* of one connection before another has its turn */
#define BURST_CALLS 64

/* Linux 6.9: an epoll asks the card itself, as SO_BUSY_POLL makes a receive do. Its headers may be older. */
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

int tcp_work_epoll(struct net_worker *w)
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
