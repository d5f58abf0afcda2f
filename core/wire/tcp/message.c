/* SPDX-License-Identifier: Apache-2.0 */
/* What goes through the connections of wire_tcp.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/group/secret.h"
#include "core/hw/nic.h"
#include "core/wire/tcp/tcp.h"

/* ---- The wire over TCP ---- */

static int way_address(struct channel *c, struct sockaddr_storage *own,
                       struct sockaddr_storage *peer);
static const struct channel_ops way_ops = {.name = "way", .address = way_address};

/* The end's channel is the first member that it was made of. */
static int way_address(struct channel *c, struct sockaddr_storage *own,
                       struct sockaddr_storage *peer)
{
    const struct wire_tcp *t =
        (const struct wire_tcp *)((const char *)c - offsetof(struct wire_tcp, channel));

    if (t->own.ss_family == AF_UNSPEC)
        return -EOPNOTSUPP;
    memcpy(own, &t->own, sizeof(*own));
    memcpy(peer, &t->peer, sizeof(*peer));
    return 0;
}

int wire_tcp_end_failed(struct wire *f, int err)
{
    return err ? wire_fail(f, err, "%s", wire_tcp_of(f)->end.error) : 0;
}

static void make_end(struct wire *f, struct wire_tcp *t)
{
    t->point = (struct net_point){.tcp = f->options.tcp};
    t->point.tcp.zerocopy = 0;
    snprintf(t->local.devices, sizeof(t->local.devices), "%s", f->options.device);
    t->channel = (struct channel_base){.ops = &way_ops};
    t->tcp.wait_ns = CHANNEL_WAIT_NS;
    t->end = (struct net_end){.point = &t->point,
                              .local = &t->local,
                              .channel = (struct channel *)&t->channel,
                              .memory_node = -1,
                              .state = &t->tcp};
    pthread_mutex_init(&t->end.error_lock, NULL);
    for (unsigned i = 0; i < NET_RAILS_MAX; i++)
        t->tcp.rails[i].listener = -1;
    t->rails[0] = t->rails[1] = -1;
    t->wait_ns = WIRE_JOIN_NS;
}

static int tcp_open(struct wire *f)
{
    unsigned size = world_size(f->world);
    struct wire_tcp *t = calloc(1, sizeof(*t));

    f->state = t;
    if (!t)
        return wire_fail(f, -ENOMEM, "out of memory");
    make_end(f, t);
    t->tcp.connections =
        aligned_alloc(_Alignof(struct tcp_connection), size * sizeof(*t->tcp.connections));
    t->polls = calloc(size, sizeof(*t->polls));
    t->which = calloc(size, sizeof(*t->which));
    if (!t->tcp.connections || !t->polls || !t->which)
        return wire_fail(f, -ENOMEM, "out of memory");
    for (unsigned i = 0; i < size; i++)
        t->tcp.connections[i] = (struct tcp_connection){.fd = -1, .out_bytes = 1};
    if (strlen(f->options.device) >= sizeof(t->local.devices))
        return wire_fail(f, -EINVAL, "'%.80s' is no interface", f->options.device);
    int err = secret_random(t->nonce, sizeof(t->nonce));
    return err ? wire_fail(f, err, "no random numbers: %s", strerror(-err)) : 0;
}

static bool is_near(const struct wire *f, unsigned rank)
{
    uint64_t own = world_member(f->world, world_rank(f->world))->network;

    return own && world_member(f->world, rank)->network == own;
}

/* Where connections to near or to far peers start, found when the first of them is asked for. A
 * named device serves both. */
static int find_rail(struct wire *f, unsigned peer, bool near)
{
    struct wire_tcp *t = wire_tcp_of(f);
    struct sockaddr_in loopback = {.sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    if (t->rails[near] >= 0)
        return 0;
    if (t->rails[!near] >= 0 && f->options.device[0]) {
        t->rails[near] = t->rails[!near];
        return 0;
    }
    t->own = world_member(f->world, world_rank(f->world))->address;
    t->peer = world_member(f->world, peer)->address;
    if (near && !f->options.device[0]) {
        memcpy(&t->own, &loopback, sizeof(loopback));
        memcpy(&t->peer, &loopback, sizeof(loopback));
    }
    t->end.same_machine = false;
    int err = tcp_find_rails(&t->end);
    if (!err)
        t->rails[near] = (int)t->end.n_rails - 1;
    return err ? err : tcp_try_options(&t->end);
}

static int tcp_link(struct wire_link *l)
{
    struct wire *f = l->worker->wire;
    struct wire_tcp *t = wire_tcp_of(f);
    bool near = is_near(f, l->peer);
    int err = find_rail(f, l->peer, near);

    if (err)
        return wire_tcp_end_failed(f, err);
    struct wire_tcp_link *tl = calloc(1, sizeof(*tl));
    if (!tl)
        return wire_fail(f, -ENOMEM, "out of memory");
    tl->index = f->n_links;
    tl->near = near;
    tl->rail = (unsigned)t->rails[near];
    tl->step = world_rank(f->world) > l->peer ? WIRE_TCP_IDLE : WIRE_TCP_AWAITED;
    l->state = tl;
    return 0;
}

static void tcp_close(struct wire *f)
{
    struct wire_tcp *t = wire_tcp_of(f);

    if (!t)
        return;
    for (unsigned i = 0; i < f->n_links; i++) {
        if (t->tcp.connections[i].fd >= 0)
            close(t->tcp.connections[i].fd);
        free(f->links[i].state);
    }
    for (unsigned i = 0; i < NET_RAILS_MAX; i++)
        if (t->tcp.rails[i].listener >= 0)
            close(t->tcp.rails[i].listener);
    pthread_mutex_destroy(&t->end.error_lock);
    free(t->tcp.connections);
    free(t->polls);
    free(t->which);
    free(t);
    f->state = NULL;
}

/* The kernel's words for the connection that the wire's path is told by. */
static struct net_rail *describe_main(const struct wire *f)
{
    struct wire_tcp *t = wire_tcp_of(f);

    t->tcp.first = t->main;
    t->tcp.n = 1;
    tcp_describe_rails(&t->end);
    t->tcp.first = 0;
    t->tcp.n = f->n_links;
    return &t->end.rails[0];
}

static bool stands(const struct wire *f)
{
    return f->n_links && wire_tcp_of(f)->tcp.connections[0].fd >= 0;
}

static void tcp_describe(const struct wire *f, char *text, size_t len)
{
    snprintf(text, len, "%s", stands(f) ? describe_main(f)->text : "");
}

static size_t tcp_wire_facts(struct wire *f, struct net_fact *facts)
{
    return stands(f) ? tcp_facts(&wire_tcp_of(f)->end, facts) : 0;
}

static int tcp_rail(const struct wire *f, struct net_rail *rail)
{
    if (!stands(f))
        return -ENODATA;
    *rail = *describe_main(f);
    snprintf(rail->name, sizeof(rail->name), "%s", f->links[wire_tcp_of(f)->main].device);
    nic_fill(rail, rail->name);
    return 0;
}

static bool unheard(const struct wire_link *l, uint64_t for_ns)
{
    return tcp_unheard(wire_tcp_fd(l), for_ns);
}

#define AT_ONCE_BYTES ((size_t)4 << 20) /* of one link before another has its turn */
#define LOOKS_A_CLOCK 32u               /* looks in vain between two readings of the clock */
#define ASK_ALONE     2u /* so few receivers are asked one by one, which is less than a poll() */

static int wire_tcp_send(struct wire_link *l, const void *at, size_t bytes)
{
    return wire_posts_add(l, &wire_tcp_link_of(l)->out, &l->out, at, bytes);
}

static int wire_tcp_receive(struct wire_link *l, void *at, size_t bytes)
{
    return wire_posts_add(l, &wire_tcp_link_of(l)->in, &l->in, at, bytes);
}

static void wire_tcp_retract(struct wire_link *l)
{
    wire_posts_retract(&wire_tcp_link_of(l)->in, &l->in);
}

/* What is posted, without a copy. Returns its bytes. */
static size_t gather(struct wire_posts *q, struct iovec *parts, struct msghdr *m)
{
    size_t bytes = 0, done = q->done;
    unsigned n = 0;

    for (; n < q->n && bytes < AT_ONCE_BYTES; n++, done = 0) {
        const struct wire_post *p = wire_posts_at(q, n);
        size_t left = p->bytes - done, room = AT_ONCE_BYTES - bytes;
        parts[n] = (struct iovec){p->at + done, left < room ? left : room};
        bytes += parts[n].iov_len;
    }
    *m = (struct msghdr){.msg_iov = parts, .msg_iovlen = n};
    return bytes;
}

/* Nothing can be moved now, or the connection has ended. */
static int stopped(const struct wire_link *l, int err)
{
    uint64_t left = l->out.posted - l->out.through + l->in.posted - l->in.through;
    struct wire *f = l->worker->wire;
    char name[160];

    if (err == EAGAIN || err == EINTR || err == ENOBUFS)
        return 0;
    world_name(f->world, l->peer, name, sizeof(name));
    if (err == ECONNRESET || err == EPIPE)
        return wire_fail(
            f, -ECONNRESET,
            "%s is gone: its connection over '%.16s' ended with %llu bytes outstanding", name,
            l->device, (unsigned long long)left);
    if (nic_is_down(l->device) == 1)
        return wire_fail(f, -err, "its own interface '%.16s' is down", l->device);
    return wire_fail(f, -err, "the connection to %s over '%.16s' failed: %s", name, l->device,
                     strerror(err));
}

static int send_some(struct wire_link *l)
{
    struct wire_tcp_link *tl = wire_tcp_link_of(l);
    struct iovec parts[WIRE_POSTS];
    struct msghdr m;
    size_t asked = gather(&tl->out, parts, &m);
    ssize_t n = sendmsg(wire_tcp_fd(l), &m, MSG_NOSIGNAL | MSG_DONTWAIT);

    tl->full = n < (ssize_t)asked;
    if (n < 0)
        return stopped(l, errno);
    wire_went(l, (uint64_t)n, wire_posts_moved(&tl->out, (size_t)n));
    return 1;
}

static int receive_some(struct wire_link *l)
{
    struct wire_tcp_link *tl = wire_tcp_link_of(l);
    struct iovec parts[WIRE_POSTS];
    struct msghdr m;

    gather(&tl->in, parts, &m);
    ssize_t n = recvmsg(wire_tcp_fd(l), &m, MSG_DONTWAIT);
    if (n <= 0)
        return stopped(l, n ? errno : ECONNRESET);
    wire_came(l, (uint64_t)n, wire_posts_moved(&tl->in, (size_t)n));
    return 1;
}

/* Sockets that may take something are given it at once. */
static int send_ready(struct wire_worker *k)
{
    int moved = 0;

    for (unsigned i = 0; i < k->n_links; i++) {
        struct wire_tcp_link *tl = wire_tcp_link_of(&k->links[i]);
        int rc = tl->out.n && !tl->full ? send_some(&k->links[i]) : 0;
        if (rc < 0)
            return rc;
        moved |= rc;
    }
    return moved;
}

/* Those that can matter. *alone: they are few, and none waits to send. */
static unsigned fill_polls(struct wire_worker *k, enum wire_side sides, bool *alone)
{
    struct wire_tcp *t = wire_tcp_of(k->wire);
    unsigned n = 0;
    short all = 0;

    for (unsigned i = 0; i < k->n_links; i++) {
        const struct wire_tcp_link *tl = wire_tcp_link_of(&k->links[i]);
        short events = (short)((sides & WIRE_IN && tl->in.n ? POLLIN : 0) |
                               (sides & WIRE_OUT && tl->out.n && tl->full ? POLLOUT : 0));
        if (!events)
            continue;
        t->which[n] = i;
        t->polls[n++] = (struct pollfd){.fd = wire_tcp_fd(&k->links[i]), .events = events};
        all = (short)(all | events);
    }
    *alone = n <= ASK_ALONE && !(all & POLLOUT);
    return n;
}

/* An error shows in the call that meets it: POLLERR and POLLHUP lead to one. */
static int serve(struct wire_worker *k, unsigned n)
{
    struct wire_tcp *t = wire_tcp_of(k->wire);
    int moved = 0, rc = 0;

    for (unsigned i = 0; i < n && rc >= 0; i++) {
        const struct pollfd *p = &t->polls[i];
        struct wire_link *l = &k->links[t->which[i]];
        if (p->events & POLLOUT && p->revents & ~POLLIN)
            rc = send_some(l);
        moved |= rc > 0;
        if (rc >= 0 && p->events & POLLIN && p->revents & ~POLLOUT)
            rc = receive_some(l);
        moved |= rc > 0;
    }
    return rc < 0 ? rc : moved;
}

static int receive_alone(struct wire_worker *k, unsigned n)
{
    struct wire_tcp *t = wire_tcp_of(k->wire);

    for (unsigned i = 0; i < n; i++)
        t->polls[i].revents = POLLIN;
    return serve(k, n);
}

static int look(struct wire_worker *k, enum wire_side sides)
{
    struct wire_tcp *t = wire_tcp_of(k->wire);
    bool alone;
    int sent = sides & WIRE_OUT ? send_ready(k) : 0;

    if (sent < 0)
        return sent;
    unsigned n = fill_polls(k, sides, &alone);
    int rc = 0;
    if (n && alone)
        rc = receive_alone(k, n);
    else if (n && poll(t->polls, n, 0) > 0)
        rc = serve(k, n);
    return rc ? rc : sent;
}

/* Until one of them can be served; 0 at once where none is waited for. */
static int sleep_on(struct wire_worker *k, enum wire_side sides, uint64_t wait_ns)
{
    struct wire_tcp *t = wire_tcp_of(k->wire);
    struct timespec wait = {.tv_sec = (time_t)(wait_ns / 1000000000),
                            .tv_nsec = (long)(wait_ns % 1000000000)};
    bool alone;
    unsigned n = fill_polls(k, sides, &alone);

    return n && ppoll(t->polls, n, &wait, NULL) > 0 ? serve(k, n) : 0;
}

static int wire_tcp_progress(struct wire_worker *k, enum wire_side sides, uint64_t wait_ns)
{
    int rc = look(k, sides);

    if (rc || !wait_ns)
        return rc;
    uint64_t start_ns = clock_now_ns();
    rc = wire_spin(k, sides, look, LOOKS_A_CLOCK, start_ns, wait_ns);
    uint64_t spent_ns = clock_now_ns() - start_ns;
    return rc || spent_ns >= wait_ns ? rc : sleep_on(k, sides, wait_ns - spent_ns);
}

const struct wire_ops wire_tcp = {
    .name = "tcp",
    .help = "TCP over any network",
    .ways = WIRE_CAN(WIRE_YIELD),
    .streams = true,
    .backends = tcp_backends,
    .open = tcp_open,
    .link = tcp_link,
    .address = wire_tcp_address,
    .join = wire_tcp_join,
    .send = wire_tcp_send,
    .receive = wire_tcp_receive,
    .progress = wire_tcp_progress,
    .retract = wire_tcp_retract,
    .describe = tcp_describe,
    .facts = tcp_wire_facts,
    .unheard = unheard,
    .rail = tcp_rail,
    .close = tcp_close,
};
