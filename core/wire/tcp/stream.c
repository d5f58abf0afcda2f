/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that sends or receives messages, one connection at a time: see tcp.h. */
#include <errno.h>

#include "core/wire/tcp/tcp.h"

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

int tcp_send_flags(const struct net_end *e)
{
    return MSG_NOSIGNAL | (e->point->tcp.zerocopy ? MSG_ZEROCOPY : 0) |
           (e->point->tcp.mode == NET_TCP_EPOLL ? MSG_DONTWAIT : 0);
}

ssize_t tcp_push(struct net_end *e, unsigned number, int flags)
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

ssize_t tcp_pull(struct net_worker *w, unsigned number, int flags)
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
