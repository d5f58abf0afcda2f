/* SPDX-License-Identifier: Apache-2.0 */
/* What TCP says of itself: see tcp.h, docs/net-tcp.md. */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "core/wire/tcp/tcp.h"

/* An older kernel says less; what it leaves out would read as 0. */
#define SAYS(len, field)                                                                           \
    ((len) >= offsetof(struct tcp_info, field) + sizeof(((struct tcp_info *)0)->field))

struct sums {
    unsigned n, n_limits;
    double retransmits, rtt_us, cwnd, busy, receiver, buffer;
};

socklen_t tcp_read_info(int fd, struct tcp_info *info)
{
    socklen_t len = sizeof(*info);

    memset(info, 0, sizeof(*info));
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &len) ? 0 : len;
}

uint32_t tcp_retransmits(int fd)
{
    struct tcp_info info;

    return SAYS(tcp_read_info(fd, &info), tcpi_total_retrans) ? info.tcpi_total_retrans : 0;
}

bool tcp_unheard(int fd, uint64_t for_ns)
{
    struct tcp_info info;

    return SAYS(tcp_read_info(fd, &info), tcpi_last_ack_recv) && info.tcpi_unacked > 0 &&
           info.tcpi_last_ack_recv > for_ns / 1000000;
}

static void add(struct sums *s, const struct tcp_connection *c)
{
    struct tcp_info info;
    socklen_t len = tcp_read_info(c->fd, &info);

    if (!SAYS(len, tcpi_total_retrans))
        return;
    s->n++;
    s->retransmits += (double)(info.tcpi_total_retrans - c->retransmits);
    s->rtt_us += info.tcpi_rtt;
    s->cwnd += info.tcpi_snd_cwnd;
    if (!SAYS(len, tcpi_sndbuf_limited))
        return;
    s->n_limits++;
    s->busy += (double)info.tcpi_busy_time;
    s->receiver += (double)info.tcpi_rwnd_limited;
    s->buffer += (double)info.tcpi_sndbuf_limited;
}

static void tell(struct net_fact *facts, size_t *n, const char *metric, const char *unit,
                 double value)
{
    struct net_fact *f = &facts[(*n)++];

    snprintf(f->metric, sizeof(f->metric), "%s", metric);
    snprintf(f->unit, sizeof(f->unit), "%s", unit);
    f->value = value;
}

size_t tcp_facts(struct net_end *e, struct net_fact *facts)
{
    struct tcp *t = tcp_of(e);
    struct sums s = {0};
    uint64_t done = 0, copied = 0;
    size_t n = 0;

    tcp_describe_rails(e); /* the segment grows with the window after the first round trips */
    for (unsigned i = t->first; i < t->first + t->n; i++) {
        const struct tcp_connection *c = &t->connections[i];
        if (!c->out_bytes || (i == e->point->connections && t->n > 1))
            continue; /* the ping's speaks for itself alone */
        add(&s, c);
        done += atomic_load_explicit(&c->zerocopy.done, memory_order_relaxed);
        copied += atomic_load_explicit(&c->zerocopy.copied, memory_order_relaxed);
    }
    if (s.n) {
        tell(facts, &n, "retransmits", "count", s.retransmits);
        tell(facts, &n, "rtt", "us", s.rtt_us / s.n);
        tell(facts, &n, "cwnd", "packets", s.cwnd / s.n);
    }
    if (s.n_limits && s.busy > 0) {
        tell(facts, &n, "limited_by_receiver", "percent", 100 * s.receiver / s.busy);
        tell(facts, &n, "limited_by_buffer", "percent", 100 * s.buffer / s.busy);
    }
    if (done)
        tell(facts, &n, "zerocopy_copied", "percent", 100 * (double)copied / (double)done);
    return n;
}
