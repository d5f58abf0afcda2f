/* SPDX-License-Identifier: Apache-2.0 */
/* What goes through connections, in each way to wait, and the transport's table: see tcp.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <linux/errqueue.h> /* after time.h */

#include "core/alloc.h"
#include "core/clock.h"
#include "core/group/secret.h"
#include "core/hw/nic.h"
#include "core/wire/tcp/tcp.h"

#ifndef MSG_ZEROCOPY
#define MSG_ZEROCOPY 0x4000000
#endif

/* ---- Posted ---- */

/* Linux 6.9: an epoll asks the adapter itself, as SO_BUSY_POLL makes a receive do. Its headers
 * may be older. */
struct busy_params {
    uint32_t usecs;
    uint16_t budget;
    uint8_t prefer, pad;
};
#define SET_BUSY_PARAMS _IOW(0x8A, 0x01, struct busy_params)

static int open_epoll(struct wire *w, struct tcp_side *side)
{
    struct busy_params busy = {.usecs = w->options.tcp.busy_poll_us, .budget = 8};

    side->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (side->epoll < 0)
        return wire_fail(w, -errno, "epoll: %s%s", strerror(errno), tcp_limit_hint(errno));
    return busy.usecs && ioctl(side->epoll, SET_BUSY_PARAMS, &busy)
               ? wire_fail(w, -EOPNOTSUPP,
                           "this kernel's epoll cannot busy-poll: %s; Linux 6.9 can, or use "
                           "blocking threads",
                           strerror(errno))
               : 0;
}

/* The kernel says which sockets can move something for as long as it is asked about them. */
static int watch(struct wire_link *l, struct tcp_side *side, bool *watched, uint32_t events)
{
    int err = side->epoll < 0 ? open_epoll(l->worker->wire, side) : 0;
    struct epoll_event event = {.events = events, .data.u32 = (uint32_t)(l - l->worker->links)};

    if (err || *watched)
        return err;
    *watched = true;
    return epoll_ctl(side->epoll, EPOLL_CTL_ADD, tcp_link_of(l)->fd, &event)
               ? wire_fail(l->worker->wire, -errno, "epoll: %s", strerror(errno))
               : 0;
}

static int tcp_send(struct wire_link *l, const void *at, size_t bytes)
{
    struct tcp_link *tl = tcp_link_of(l);
    int err = wire_posts_add(l, &tl->out, &l->out, at, bytes);

    return err || l->worker->way != WIRE_EVENTS
               ? err
               : watch(l, &tcp_worker_of(l->worker)->out, &tl->out_watched, EPOLLOUT);
}

static int tcp_receive(struct wire_link *l, void *at, size_t bytes)
{
    struct tcp_link *tl = tcp_link_of(l);
    int err = wire_posts_add(l, &tl->in, &l->in, at, bytes);

    return err || l->worker->way != WIRE_EVENTS
               ? err
               : watch(l, &tcp_worker_of(l->worker)->in, &tl->in_watched, EPOLLIN);
}

static void tcp_retract(struct wire_link *l)
{
    wire_posts_retract(&tcp_link_of(l)->in, &l->in);
}

/* ---- One call. 1: something moved; 0: nothing can now; or wire_fail(). ---- */

/* Nothing can be moved now, or the connection has ended. */
static int stopped(const struct wire_link *l, int err)
{
    uint64_t left = l->out.posted - l->out.through + l->in.posted - l->in.through;
    struct wire *w = l->worker->wire;
    char name[160];

    if (err == EAGAIN || err == EINTR || err == ENOBUFS)
        return 0;
    world_name(w->world, l->peer, name, sizeof(name));
    if (err == ECONNRESET || err == EPIPE)
        return wire_fail(
            w, -ECONNRESET,
            "%s is gone: its connection over '%.16s' ended with %llu bytes outstanding", name,
            l->device, (unsigned long long)left);
    if (nic_is_down(l->device) == 1)
        return wire_fail(w, -err, "its own interface '%.16s' is down", l->device);
    return wire_fail(w, -err, "the connection to %s over '%.16s' failed: %s", name, l->device,
                     strerror(err));
}

/* What is posted, of several messages, without a copy. Returns its bytes. */
static size_t gather(struct wire_posts *q, struct iovec *parts, struct msghdr *m)
{
    const size_t most = 4 * TCP_SEND_MOST;
    size_t bytes = 0, done = q->done;
    unsigned n = 0;

    for (; n < q->n && bytes < most; n++, done = 0) {
        const struct wire_post *p = wire_posts_at(q, n);
        size_t left = p->bytes - done, room = most - bytes;
        parts[n] = (struct iovec){p->at + done, left < room ? left : room};
        bytes += parts[n].iov_len;
    }
    *m = (struct msghdr){.msg_iov = parts, .msg_iovlen = n};
    return bytes;
}

static int send_gathered(struct wire_link *l)
{
    struct tcp_link *tl = tcp_link_of(l);
    struct iovec parts[WIRE_POSTS];
    struct msghdr m;
    size_t asked = gather(&tl->out, parts, &m);
    ssize_t n = sendmsg(tl->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);

    tl->full = n < (ssize_t)asked;
    if (n < 0)
        return stopped(l, errno);
    wire_went(l, (uint64_t)n, wire_posts_moved(&tl->out, (size_t)n));
    return 1;
}

static int receive_gathered(struct wire_link *l)
{
    struct tcp_link *tl = tcp_link_of(l);
    struct iovec parts[WIRE_POSTS];
    struct msghdr m;

    gather(&tl->in, parts, &m);
    ssize_t n = recvmsg(tl->fd, &m, MSG_DONTWAIT);
    if (n <= 0)
        return stopped(l, n ? errno : ECONNRESET);
    wire_came(l, (uint64_t)n, wire_posts_moved(&tl->in, (size_t)n));
    return 1;
}

/* The rest of the oldest message that is posted, as much as a call takes. */
static size_t oldest(const struct wire_posts *q, char **at)
{
    const struct wire_post *p = &q->ring[q->first];
    size_t left = p->bytes - q->done;

    *at = p->at + q->done;
    return left < TCP_SEND_MOST ? left : TCP_SEND_MOST;
}

static int zerocopy_reap(struct wire_link *l);
static int zerocopy_wait(struct wire_link *l);

static int send_one(struct wire_link *l, int flags)
{
    struct tcp_link *tl = tcp_link_of(l);
    bool zerocopy = tcp_zerocopies(l->worker);
    char *at;
    size_t bytes = oldest(&tl->out, &at);
    ssize_t n = send(tl->fd, at, bytes, MSG_NOSIGNAL | flags | (zerocopy ? MSG_ZEROCOPY : 0));

    if (n < 0)
        return errno == ENOBUFS && zerocopy ? zerocopy_wait(l) : stopped(l, errno);
    if (zerocopy && ++tl->zerocopy.sent % 32 == 0)
        zerocopy_reap(l); /* an error shows at the next send */
    wire_went(l, (uint64_t)n, wire_posts_moved(&tl->out, (size_t)n));
    return 1;
}

static int receive_one(struct wire_link *l, int flags)
{
    struct tcp_link *tl = tcp_link_of(l);
    char *at;
    size_t bytes = oldest(&tl->in, &at);
    ssize_t n = recv(tl->fd, at, bytes, flags);

    if (n <= 0)
        return stopped(l, n ? errno : ECONNRESET);
    wire_came(l, (uint64_t)n, wire_posts_moved(&tl->in, (size_t)n));
    return 1;
}

/* ---- Sends without a copy ----
 *
 * The kernel tells in a socket's error queue when it is done with the memory of a send, and whether
 * it copied all the same (as it does where both ends are on one machine, and where a device cannot
 * gather). The memory is sent again before that: what is in it does not change. */

/* One note says it of a range of sends. */
static void take_note(struct tcp_link *tl, struct msghdr *m)
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
        atomic_fetch_add_explicit(&tl->zerocopy.done, n, memory_order_relaxed);
        if (note.ee_code & SO_EE_CODE_ZEROCOPY_COPIED)
            atomic_fetch_add_explicit(&tl->zerocopy.copied, n, memory_order_relaxed);
    }
}

static int zerocopy_reap(struct wire_link *l)
{
    struct tcp_link *tl = tcp_link_of(l);
    char control[256];

    for (;;) {
        struct msghdr m = {.msg_control = control, .msg_controllen = sizeof(control)};
        if (recvmsg(tl->fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
            return stopped(l, errno);
        take_note(tl, &m);
    }
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

/* It takes no more before it is done with some: waits for that, for a tick. */
static int zerocopy_wait(struct wire_link *l)
{
    struct tcp_link *tl = tcp_link_of(l);
    uint64_t before = atomic_load(&tl->zerocopy.done), since_ns = clock_now_ns();
    int err = 0;

    if (before == tl->zerocopy.sent)
        return wire_fail(l->worker->wire, -EOPNOTSUPP,
                         "the kernel may pin no memory for sends without a copy: raise ulimit -l "
                         "or net.core.optmem_max");
    while (!err && clock_now_ns() - since_ns < TCP_TICK_NS) {
        err = zerocopy_reap(l);
        if (err || atomic_load(&tl->zerocopy.done) > before)
            break;
        pause_for_note(tl->fd);
    }
    return err;
}

static int tcp_settle(struct wire_link *l)
{
    struct tcp_link *tl = tcp_link_of(l);
    int err = 0;

    if (!tcp_zerocopies(l->worker))
        return 1;
    err = zerocopy_reap(l);
    if (!err && atomic_load(&tl->zerocopy.done) < tl->zerocopy.sent) {
        pause_for_note(tl->fd);
        err = zerocopy_reap(l);
    }
    return err ? err : atomic_load(&tl->zerocopy.done) == tl->zerocopy.sent;
}

/* ---- WIRE_BLOCK: the call itself waits ---- */

static int block(struct wire_worker *k, enum wire_side sides, uint64_t wait_ns)
{
    struct wire_link *l = k->links;
    struct tcp_link *tl = tcp_link_of(l);
    int err = tcp_tick(l, wait_ns != WIRE_FOREVER), flags = wait_ns ? 0 : MSG_DONTWAIT;

    if (err)
        return err;
    if (sides & WIRE_OUT && tl->out.n)
        return send_one(l, flags);
    return sides & WIRE_IN && tl->in.n ? receive_one(l, flags) : 0;
}

/* ---- WIRE_EVENTS: the system says which links can move ---- */

#define EVENTS 64

static int out_events(struct wire_worker *k, struct wire_link *l, uint32_t events)
{
    struct tcp_link *tl = tcp_link_of(l);
    int rc = 0;

    if (events & EPOLLERR && tcp_zerocopies(k) && (rc = zerocopy_reap(l)) < 0)
        return rc;
    if (!tl->out.n) {
        epoll_ctl(tcp_worker_of(k)->out.epoll, EPOLL_CTL_DEL, tl->fd, NULL);
        tl->out_watched = false;
    }
    int moved = 0;
    while (tl->out.n && (rc = send_one(l, MSG_DONTWAIT)) > 0)
        moved = 1;
    return rc < 0 ? rc : moved;
}

static int in_events(struct wire_worker *k, struct wire_link *l)
{
    struct tcp_link *tl = tcp_link_of(l);
    int rc = 0, moved = 0;

    if (!tl->in.n) {
        epoll_ctl(tcp_worker_of(k)->in.epoll, EPOLL_CTL_DEL, tl->fd, NULL);
        tl->in_watched = false;
    }
    while (tl->in.n && (rc = receive_one(l, MSG_DONTWAIT)) > 0)
        moved = 1;
    return rc < 0 ? rc : moved;
}

static int take_events(struct wire_worker *k, enum wire_side side, uint64_t wait_ns)
{
    const struct tcp_worker *tw = tcp_worker_of(k);
    struct epoll_event events[EVENTS];
    int ms = (int)((wait_ns < TCP_TICK_NS ? wait_ns : TCP_TICK_NS) / 1000000);
    int n = epoll_wait(side == WIRE_OUT ? tw->out.epoll : tw->in.epoll, events, EVENTS, ms);
    int moved = 0;

    if (n < 0)
        return errno == EINTR ? 0 : wire_fail(k->wire, -errno, "epoll: %s", strerror(errno));
    for (int i = 0; i < n; i++) {
        struct wire_link *l = &k->links[events[i].data.u32];
        int rc = side == WIRE_OUT ? out_events(k, l, events[i].events) : in_events(k, l);
        if (rc < 0)
            return rc;
        moved |= rc;
    }
    return moved;
}

static int by_events(struct wire_worker *k, enum wire_side sides, uint64_t wait_ns)
{
    int out = 0, in = 0;

    if (sides & WIRE_OUT)
        out = take_events(k, WIRE_OUT, sides == WIRE_OUT ? wait_ns : 0);
    if (out >= 0 && sides & WIRE_IN)
        in = take_events(k, WIRE_IN, out ? 0 : wait_ns);
    return out < 0 || in < 0 ? (out < 0 ? out : in) : out | in;
}

/* ---- WIRE_POLL and WIRE_YIELD ---- */

#define LOOKS_A_CLOCK 32u /* looks in vain between two readings of the clock */
#define LOOKS_A_TURN  1024u
#define ASK_ALONE     2u /* so few receivers are asked one by one, which is less than a poll() */

/* Sockets that may take something are given it at once. */
static int send_ready(struct wire_worker *k)
{
    int moved = 0;

    for (unsigned i = 0; i < k->n_links; i++) {
        struct tcp_link *tl = tcp_link_of(&k->links[i]);
        int rc = tl->out.n && !tl->full ? send_gathered(&k->links[i]) : 0;
        if (rc < 0)
            return rc;
        moved |= rc;
    }
    return moved;
}

static struct tcp_side *side_of(const struct wire_worker *k, enum wire_side sides)
{
    return sides & WIRE_OUT ? &tcp_worker_of(k)->out : &tcp_worker_of(k)->in;
}

/* Those that can matter. *alone: they are few, and none waits to send. */
static unsigned fill_polls(struct wire_worker *k, enum wire_side sides, bool *alone)
{
    struct tcp_side *s = side_of(k, sides);
    unsigned n = 0;
    short all = 0;

    for (unsigned i = 0; i < k->n_links; i++) {
        const struct tcp_link *tl = tcp_link_of(&k->links[i]);
        short events = (short)((sides & WIRE_IN && tl->in.n ? POLLIN : 0) |
                               (sides & WIRE_OUT && tl->out.n && tl->full ? POLLOUT : 0));
        if (!events)
            continue;
        s->which[n] = i;
        s->polls[n++] = (struct pollfd){.fd = tl->fd, .events = events};
        all = (short)(all | events);
    }
    *alone = n <= ASK_ALONE && !(all & POLLOUT);
    return n;
}

/* An error shows in the call that meets it: POLLERR and POLLHUP lead to one. */
static int serve(struct wire_worker *k, const struct tcp_side *s, unsigned n)
{
    int moved = 0, rc = 0;

    for (unsigned i = 0; i < n && rc >= 0; i++) {
        const struct pollfd *p = &s->polls[i];
        struct wire_link *l = &k->links[s->which[i]];
        if (p->events & POLLOUT && p->revents & ~POLLIN)
            rc = send_gathered(l);
        moved |= rc > 0;
        if (rc >= 0 && p->events & POLLIN && p->revents & ~POLLOUT)
            rc = receive_gathered(l);
        moved |= rc > 0;
    }
    return rc < 0 ? rc : moved;
}

static int look(struct wire_worker *k, enum wire_side sides)
{
    struct tcp_side *s = side_of(k, sides);
    bool alone;
    int rc = 0, sent = sides & WIRE_OUT ? send_ready(k) : 0;

    if (sent < 0)
        return sent;
    unsigned n = fill_polls(k, sides, &alone);
    for (unsigned i = 0; i < n && alone; i++)
        s->polls[i].revents = POLLIN;
    if (n && (alone || poll(s->polls, n, 0) > 0))
        rc = serve(k, s, n);
    return rc ? rc : sent;
}

static int tcp_progress(struct wire_worker *k, enum wire_side sides, uint64_t wait_ns)
{
    if (k->way == WIRE_BLOCK)
        return block(k, sides, wait_ns);
    if (k->way == WIRE_EVENTS)
        return by_events(k, sides, wait_ns);
    int rc = look(k, sides);
    if (rc || !wait_ns)
        return rc;
    if (k->way == WIRE_POLL) {
        for (unsigned i = 0; i < LOOKS_A_TURN && !rc; i++)
            rc = look(k, sides);
        return rc;
    }
    uint64_t start_ns = clock_now_ns();
    rc = wire_spin(k, sides, look, LOOKS_A_CLOCK, start_ns, wait_ns);
    uint64_t spent_ns = clock_now_ns() - start_ns;
    /* Until one of them can be served; 0 at once where none is waited for. */
    if (rc || spent_ns >= wait_ns)
        return rc;
    struct tcp_side *s = side_of(k, sides);
    uint64_t left_ns = wait_ns - spent_ns;
    struct timespec wait = {.tv_sec = (time_t)(left_ns / 1000000000),
                            .tv_nsec = (long)(left_ns % 1000000000)};
    bool alone;
    unsigned n = fill_polls(k, sides, &alone);
    return n && ppoll(s->polls, n, &wait, NULL) > 0 ? serve(k, s, n) : 0;
}

static void tcp_interrupt(struct wire_link *l)
{
    shutdown(tcp_link_of(l)->fd, SHUT_RDWR);
}

/* ---- Opened and closed ---- */

/* The kernel polls for who is to be busy. */
static void tcp_traits(const struct wire_options *o, struct wire_traits *t)
{
    t->way = o->tcp.mode == WIRE_TCP_EPOLL ? WIRE_EVENTS : WIRE_BLOCK;
    t->probe_way = o->tcp.spin ? WIRE_POLL : WIRE_BLOCK;
    t->busy = o->tcp.busy_poll_us > 0;
}

static int tcp_open(struct wire *w)
{
    struct tcp *t = w->state = xcalloc(1, sizeof(*t));

    for (unsigned i = 0; i < NIC_RAILS_MAX; i++)
        t->rails[i].listener = -1;
    t->far = t->near = -1;
    t->wait_ns = WIRE_JOIN_NS;
    int err = secret_random(t->nonce, sizeof(t->nonce));
    return err ? wire_fail(w, err, "no random numbers: %s", strerror(-err)) : 0;
}

/* Where links to near or to far ranks start, found when the first of them is asked for. A named
 * device serves both. */
static int tcp_rails(struct wire *w, unsigned rank)
{
    struct sockaddr_in loopback = {.sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct world_member *own = world_member(w->world, world_rank(w->world));
    const struct world_member *peer = world_member(w->world, rank);
    struct tcp_route route = {
        .devices = w->options.device, .own = own->address, .peer = peer->address};
    struct tcp *t = tcp_of(w);
    bool near = tcp_is_near(w, rank);

    if ((near ? t->near : t->far) >= 0)
        return 0;
    if (w->options.device[0] && (near ? t->far : t->near) >= 0) {
        t->near = near ? t->far : t->near;
        t->far = near ? t->far : t->near;
        return 0;
    }
    if (near && !w->options.device[0]) {
        memcpy(&route.own, &loopback, sizeof(loopback));
        memcpy(&route.peer, &loopback, sizeof(loopback));
    }
    int first = (int)w->n_rails, err = tcp_find_rails(w, &route);
    if (err)
        return err;
    *(near ? &t->near : &t->far) = first;
    return tcp_try_options(w, &t->rails[first]);
}

static void make_side(struct tcp_side *s, const struct wire_worker *k)
{
    unsigned most = k->wire->options.links_most;

    s->epoll = -1; /* opened when something is posted */
    if (k->way == WIRE_BLOCK || k->way == WIRE_EVENTS)
        return;
    s->polls = xcalloc(most, sizeof(*s->polls));
    s->which = xcalloc(most, sizeof(*s->which));
}

static void tcp_worker(struct wire_worker *k)
{
    struct tcp_worker *tw = k->state = xcalloc(1, sizeof(*tw));

    make_side(&tw->out, k);
    make_side(&tw->in, k);
}

#define AHEAD_EVENTS TCP_SEND_MOST /* of one connection before another has its turn */

static int tcp_link(struct wire_link *l)
{
    struct wire_worker *k = l->worker;
    struct tcp *t = tcp_of(k->wire);
    bool near = tcp_is_near(k->wire, l->peer);
    int err = tcp_rails(k->wire, l->peer);

    if (err)
        return err;
    if (k->way == WIRE_BLOCK && k->n_links)
        return wire_fail(k->wire, -EOPNOTSUPP, "a thread that blocks serves one connection");
    struct tcp_link *tl = l->state = xaligned(_Alignof(struct tcp_link), sizeof(*tl));
    *tl = (struct tcp_link){.fd = -1,
                            .near = near,
                            .rail = near ? (unsigned)t->near : (unsigned)t->far + k->rail,
                            .step = world_rank(k->wire->world) > l->peer ? TCP_IDLE : TCP_AWAITED};
    l->ahead = k->way == WIRE_EVENTS ? AHEAD_EVENTS : 0;
    return 0;
}

static void close_side(struct tcp_side *s)
{
    if (s->epoll >= 0)
        close(s->epoll);
    free(s->polls);
    free(s->which);
}

static void tcp_close(struct wire *w)
{
    struct tcp *t = tcp_of(w);

    if (!t)
        return;
    for (unsigned i = 0; i < w->n_links; i++) {
        if (tcp_link_of(&w->links[i])->fd >= 0)
            close(tcp_link_of(&w->links[i])->fd);
        free(w->links[i].state);
    }
    for (unsigned i = 0; i < w->options.workers_most; i++) {
        struct tcp_worker *tw = w->workers[i].state;
        if (!tw)
            continue;
        close_side(&tw->out);
        close_side(&tw->in);
        free(tw);
    }
    for (unsigned i = 0; i < NIC_RAILS_MAX; i++)
        if (t->rails[i].listener >= 0)
            close(t->rails[i].listener);
    free(t);
    w->state = NULL;
}

/* ---- What there is to say of it ---- */

/* The link that the whole is told by, where it stands. */
static const struct tcp_link *main_link(const struct wire *w)
{
    const struct tcp_link *tl = w->n_links ? tcp_link_of(&w->links[tcp_of(w)->main]) : NULL;

    return tl && tl->fd >= 0 ? tl : NULL;
}

static void tcp_describe(struct wire *w, char *text, size_t len)
{
    const struct tcp_link *tl = main_link(w);

    if (tl)
        tcp_describe_rails(w);
    snprintf(text, len, "%s", tl ? w->rails[tl->rail].text : "");
}

static int tcp_rail(struct wire *w, struct nic_rail *rail)
{
    const struct tcp_link *tl = main_link(w);

    if (!tl)
        return -ENODATA;
    tcp_describe_rails(w);
    *rail = w->rails[tl->rail];
    snprintf(rail->name, sizeof(rail->name), "%s", w->links[tcp_of(w)->main].device);
    nic_fill(NULL, rail, rail->name);
    return 0;
}

const struct wire_ops wire_tcp = {
    .name = "tcp",
    .ways =
        WIRE_CAN(WIRE_YIELD) | WIRE_CAN(WIRE_POLL) | WIRE_CAN(WIRE_BLOCK) | WIRE_CAN(WIRE_EVENTS),
    .streams = true,
    .backends = tcp_backends,
    .traits = tcp_traits,
    .open = tcp_open,
    .rails = tcp_rails,
    .worker = tcp_worker,
    .link = tcp_link,
    .address = tcp_address,
    .join = tcp_join,
    .send = tcp_send,
    .receive = tcp_receive,
    .progress = tcp_progress,
    .retract = tcp_retract,
    .settle = tcp_settle,
    .interrupt = tcp_interrupt,
    .describe = tcp_describe,
    .facts = tcp_facts,
    .unheard = tcp_unheard,
    .rail = tcp_rail,
    .close = tcp_close,
};
