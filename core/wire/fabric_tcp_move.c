/* SPDX-License-Identifier: Apache-2.0 */
/* What goes through the connections of fabric_tcp.h. */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "core/hw/nic.h"
#include "core/wire/fabric_tcp.h"

#define AT_ONCE_BYTES ((size_t)4 << 20) /* of one link before another has its turn */
#define LOOKS_A_CLOCK 32u               /* looks in vain between two readings of the clock */
#define ASK_ALONE     2u /* so few receivers are asked one by one, which is less than a poll() */

int fabric_tcp_send(struct fabric *f, struct fabric_link *l, const void *at, size_t bytes)
{
    int err = fabric_posts_add(f, &fabric_tcp_link_of(l)->out, at, bytes);

    if (!err)
        l->posted_out += bytes;
    return err;
}

int fabric_tcp_receive(struct fabric *f, struct fabric_link *l, void *at, size_t bytes)
{
    int err = fabric_posts_add(f, &fabric_tcp_link_of(l)->in, at, bytes);

    if (!err)
        l->posted_in += bytes;
    return err;
}

/* What is posted, without a copy. Returns its bytes. */
static size_t gather(struct fabric_posts *q, struct iovec *parts, struct msghdr *m)
{
    size_t bytes = 0, done = q->done;
    unsigned n = 0;

    for (; n < q->n && bytes < AT_ONCE_BYTES; n++, done = 0) {
        const struct fabric_post *p = fabric_posts_at(q, n);
        size_t left = p->bytes - done, room = AT_ONCE_BYTES - bytes;
        parts[n] = (struct iovec){p->at + done, left < room ? left : room};
        bytes += parts[n].iov_len;
    }
    *m = (struct msghdr){.msg_iov = parts, .msg_iovlen = n};
    return bytes;
}

/* Nothing can be moved now, or the connection has ended. */
static int stopped(struct fabric *f, const struct fabric_link *l, int err)
{
    uint64_t left = l->posted_out - l->sent + l->posted_in - l->received;
    char name[128];

    if (err == EAGAIN || err == EINTR || err == ENOBUFS)
        return 0;
    world_name(f->world, l->peer, name, sizeof(name));
    if (err == ECONNRESET || err == EPIPE)
        return fabric_fail(
            f, -ECONNRESET,
            "%s is gone: its connection over '%.16s' ended with %llu bytes outstanding", name,
            l->device, (unsigned long long)left);
    if (nic_is_down(l->device) == 1)
        return fabric_fail(f, -err, "its own interface '%.16s' is down", l->device);
    return fabric_fail(f, -err, "the connection to %s over '%.16s' failed: %s", name, l->device,
                       strerror(err));
}

static int send_some(struct fabric *f, struct fabric_link *l)
{
    struct fabric_tcp_link *tl = fabric_tcp_link_of(l);
    struct iovec parts[FABRIC_POSTS];
    struct msghdr m;
    size_t asked = gather(&tl->out, parts, &m);
    ssize_t n = sendmsg(fabric_tcp_fd(f, l), &m, MSG_NOSIGNAL | MSG_DONTWAIT);

    tl->full = n < (ssize_t)asked;
    if (n < 0)
        return stopped(f, l, errno);
    fabric_sent(l, &tl->out, (size_t)n);
    return 1;
}

static int receive_some(struct fabric *f, struct fabric_link *l)
{
    struct fabric_tcp_link *tl = fabric_tcp_link_of(l);
    struct iovec parts[FABRIC_POSTS];
    struct msghdr m;

    gather(&tl->in, parts, &m);
    ssize_t n = recvmsg(fabric_tcp_fd(f, l), &m, MSG_DONTWAIT);
    if (n <= 0)
        return stopped(f, l, n ? errno : ECONNRESET);
    fabric_received(l, &tl->in, (size_t)n);
    return 1;
}

/* Sockets that may take something are given it at once. */
static int send_ready(struct fabric *f)
{
    int moved = 0;

    for (unsigned i = 0; i < f->n_links; i++) {
        struct fabric_tcp_link *tl = fabric_tcp_link_of(&f->links[i]);
        int rc = tl->out.n && !tl->full ? send_some(f, &f->links[i]) : 0;
        if (rc < 0)
            return rc;
        moved |= rc;
    }
    return moved;
}

/* Those that can matter. *alone: they are few, and none waits to send. */
static unsigned fill_polls(struct fabric *f, bool *alone)
{
    struct fabric_tcp *t = fabric_tcp_of(f);
    unsigned n = 0;
    short all = 0;

    for (unsigned i = 0; i < f->n_links; i++) {
        const struct fabric_tcp_link *tl = fabric_tcp_link_of(&f->links[i]);
        short events = (short)((tl->in.n ? POLLIN : 0) | (tl->out.n && tl->full ? POLLOUT : 0));
        if (!events)
            continue;
        t->which[n] = i;
        t->polls[n++] = (struct pollfd){.fd = t->tcp.connections[i].fd, .events = events};
        all = (short)(all | events);
    }
    *alone = n <= ASK_ALONE && !(all & POLLOUT);
    return n;
}

/* An error shows in the call that meets it: POLLERR and POLLHUP lead to one. */
static int serve(struct fabric *f, unsigned n)
{
    struct fabric_tcp *t = fabric_tcp_of(f);
    int moved = 0, rc = 0;

    for (unsigned i = 0; i < n && rc >= 0; i++) {
        const struct pollfd *p = &t->polls[i];
        struct fabric_link *l = &f->links[t->which[i]];
        if (p->events & POLLOUT && p->revents & ~POLLIN)
            rc = send_some(f, l);
        moved |= rc > 0;
        if (rc >= 0 && p->events & POLLIN && p->revents & ~POLLOUT)
            rc = receive_some(f, l);
        moved |= rc > 0;
    }
    return rc < 0 ? rc : moved;
}

static int receive_alone(struct fabric *f, unsigned n)
{
    struct fabric_tcp *t = fabric_tcp_of(f);

    for (unsigned i = 0; i < n; i++)
        t->polls[i].revents = POLLIN;
    return serve(f, n);
}

static int look(struct fabric *f)
{
    struct fabric_tcp *t = fabric_tcp_of(f);
    bool alone;
    int sent = send_ready(f);

    if (sent < 0)
        return sent;
    unsigned n = fill_polls(f, &alone);
    int rc = 0;
    if (n && alone)
        rc = receive_alone(f, n);
    else if (n && poll(t->polls, n, 0) > 0)
        rc = serve(f, n);
    return rc ? rc : sent;
}

/* Until one of them can be served; 0 at once where none is waited for. */
static int sleep_on(struct fabric *f, uint64_t wait_ns)
{
    struct fabric_tcp *t = fabric_tcp_of(f);
    struct timespec wait = {.tv_sec = (time_t)(wait_ns / 1000000000),
                            .tv_nsec = (long)(wait_ns % 1000000000)};
    bool alone;
    unsigned n = fill_polls(f, &alone);

    return n && ppoll(t->polls, n, &wait, NULL) > 0 ? serve(f, n) : 0;
}

int fabric_tcp_progress(struct fabric *f, uint64_t wait_ns)
{
    int rc = look(f);

    if (rc || !wait_ns)
        return rc;
    uint64_t start_ns = clock_now_ns();
    rc = fabric_spin(f, look, LOOKS_A_CLOCK, start_ns, wait_ns);
    uint64_t spent_ns = clock_now_ns() - start_ns;
    return rc || spent_ns >= wait_ns ? rc : sleep_on(f, wait_ns - spent_ns);
}
