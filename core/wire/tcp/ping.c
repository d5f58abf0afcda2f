/* SPDX-License-Identifier: Apache-2.0 */
/* One message there and back: see tcp.h. The first byte of the leader's says whether it is the last. */
#include <errno.h>

#include "core/wire/tcp/tcp.h"

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

int tcp_ping(struct net_end *e, bool last, uint64_t *ns)
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

int tcp_pong(struct net_end *e)
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
