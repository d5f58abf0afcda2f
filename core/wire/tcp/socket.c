/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets with the options that were asked for, and what they became: see tcp.h. */
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "core/wire/tcp/tcp.h"

#ifndef SO_BUSY_POLL
#define SO_BUSY_POLL 46
#endif
#ifndef SO_ZEROCOPY
#define SO_ZEROCOPY 60
#endif

static int set_int(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof(value)) ? -errno : 0;
}

static int get_int(int fd, int level, int option)
{
    int value = 0;
    socklen_t len = sizeof(value);

    return getsockopt(fd, level, option, &value, &len) ? 0 : value;
}

static int refuse_congestion(struct net_end *e, int err)
{
    char names[160] = "(not known)";
    FILE *f = fopen("/proc/sys/net/ipv4/tcp_available_congestion_control", "re");

    if (f && fgets(names, sizeof(names), f))
        names[strcspn(names, "\n")] = 0;
    if (f)
        fclose(f);
    return net_fail(e, -EOPNOTSUPP,
                    "the kernel refuses congestion control '%.15s': %s; it has %s (as root, "
                    "modprobe tcp_NAME adds one)",
                    e->point->tcp.congestion, strerror(-err), names);
}

static int set_congestion(struct net_end *e, int fd)
{
    const char *name = e->point->tcp.congestion;

    if (!name[0])
        return 0;
    if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)))
        return refuse_congestion(e, -errno);
    return 0;
}

static int set_busy_poll(struct net_end *e, int fd)
{
    int us = (int)e->point->tcp.busy_poll_us;
    int err = us ? set_int(fd, SOL_SOCKET, SO_BUSY_POLL, us) : 0;

    if (err)
        return net_fail(e, -EOPNOTSUPP,
                        "the kernel refuses busy polling for %d us: %s; more than "
                        "net.core.busy_read needs CAP_NET_ADMIN",
                        us, strerror(-err));
    return 0;
}

/* Of both kinds; a kernel that gives less is told of in the rail's text. */
static int set_buffers(struct net_end *e, int fd)
{
    uint64_t bytes = e->point->tcp.buffer_bytes;
    int value = bytes > INT32_MAX / 2 ? INT32_MAX / 2 : (int)bytes;

    if (!bytes)
        return 0;
    int err = set_int(fd, SOL_SOCKET, SO_SNDBUF, value);
    err = err ? err : set_int(fd, SOL_SOCKET, SO_RCVBUF, value);
    return err ? net_fail(e, err, "socket buffers of %d bytes: %s", value, strerror(-err)) : 0;
}

static int set_zerocopy(struct net_end *e, int fd)
{
    int err = e->point->tcp.zerocopy ? set_int(fd, SOL_SOCKET, SO_ZEROCOPY, 1) : 0;

    if (err)
        return net_fail(e, -EOPNOTSUPP,
                        "this kernel cannot send without a copy: %s; Linux 4.14 can",
                        strerror(-err));
    return 0;
}

static int set_options(struct net_end *e, int fd)
{
    int err = set_congestion(e, fd);

    err = err ? err : set_buffers(e, fd);
    err = err ? err : set_busy_poll(e, fd);
    return err ? err : set_zerocopy(e, fd);
}

int tcp_try_options(struct net_end *e)
{
    int fd = socket(tcp_of(e)->rails[0].address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return net_fail(e, -errno, "a TCP socket: %s", strerror(errno));
    int err = set_options(e, fd);
    close(fd);
    return err;
}

/* Before connect or listen, so that window scaling and the handshake know of them; a connection
 * that is accepted has them from its listener. Binding to the interface holds a route off that
 * would lead elsewhere; where it may not be done, the address is all. */
int tcp_prepare_socket(struct net_end *e, int fd, const struct tcp_rail *rail)
{
    int err = set_options(e, fd);

    if (!err && rail->named && !e->same_machine)
        (void)setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, rail->interface,
                         (socklen_t)strlen(rail->interface) + 1);
    return err;
}

/* Calls that block come back after a tick. */
int tcp_finish_socket(struct net_end *e, struct tcp_connection *c)
{
    struct timeval tick = {.tv_usec = TCP_TICK_NS / 1000};
    int err = set_int(c->fd, IPPROTO_TCP, TCP_NODELAY, 1);

    err = err ? err : set_zerocopy(e, c->fd);
    err = err ? err : set_busy_poll(e, c->fd);
    if (!err && (setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &tick, sizeof(tick)) ||
                 setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &tick, sizeof(tick))))
        err = -errno;
    return err ? net_fail(e, err, "a data connection's options: %s", strerror(-err)) : 0;
}

/* What the kernel keeps is twice what was asked for; "" where it is. */
static void describe_buffers(const struct net_end *e, int fd, char *text, size_t len)
{
    uint64_t asked = e->point->tcp.buffer_bytes;
    uint64_t out = (uint64_t)get_int(fd, SOL_SOCKET, SO_SNDBUF) / 2;
    uint64_t in = (uint64_t)get_int(fd, SOL_SOCKET, SO_RCVBUF) / 2;

    text[0] = 0;
    if (asked && (out < asked || in < asked))
        snprintf(text, len,
                 ", buffers %llu KiB out, %llu in of %llu asked (net.core.wmem_max, rmem_max)",
                 (unsigned long long)out >> 10, (unsigned long long)in >> 10,
                 (unsigned long long)asked >> 10);
    else if (asked)
        snprintf(text, len, ", buffers %llu KiB", (unsigned long long)asked >> 10);
}

/* how much of it this kernel filled in */
static socklen_t tcp_read_info(int fd, struct tcp_info *info)
{
    socklen_t len = sizeof(*info);

    memset(info, 0, sizeof(*info));
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &len) ? 0 : len;
}

static void describe_rail(struct net_end *e, unsigned rail, int fd)
{
    struct net_rail *r = &e->rails[rail];
    char algorithm[17] = "", buffers[120];
    socklen_t len = sizeof(algorithm) - 1;
    struct tcp_info info;

    if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, algorithm, &len))
        algorithm[0] = 0;
    if (tcp_read_info(fd, &info))
        r->segment_bytes = info.tcpi_snd_mss;
    describe_buffers(e, fd, buffers, sizeof(buffers));
    snprintf(r->text, sizeof(r->text), "%.16s, MSS %u%.120s",
             algorithm[0] ? algorithm : "congestion control ?", r->segment_bytes, buffers);
}

void tcp_describe_rails(struct net_end *e)
{
    struct tcp *t = tcp_of(e);

    for (unsigned rail = 0; rail < e->n_rails; rail++)
        for (unsigned i = t->first; i < t->first + t->n; i++)
            if (net_rail_of(e, i) == rail) {
                describe_rail(e, rail, t->connections[i].fd);
                break;
            }
}

int tcp_still(struct net_end *e, uint64_t *since_ns, uint64_t limit_ns)
{
    uint64_t now_ns = clock_now_ns();

    if (!*since_ns)
        *since_ns = now_ns;
    if (net_over(e))
        return -ECANCELED;
    if (now_ns - *since_ns < limit_ns)
        return 0;
    return net_fail(
        e, -ETIMEDOUT,
        "nothing moved between here and %s for %.3g s on a data connection: its process "
        "was stopped, or the link over '%s' is down",
        channel_peer(e->channel), (double)limit_ns / 1e9, e->rails[0].name);
}

int tcp_broken(struct net_end *e, int err, const char *doing)
{
    if (err == -ECONNRESET || err == -EPIPE)
        return net_fail(e, -ECONNRESET,
                        "%s closed a data connection while this end was %s: it ended or was killed",
                        channel_peer(e->channel), doing);
    return net_fail(e, err, "%s on a data connection to %s: %s", doing, channel_peer(e->channel),
                    strerror(-err));
}

/* One step of a whole message; *since_ns is 0 when something moved. */
static int step(struct net_end *e, struct pollfd *p, char *data, size_t len, size_t *done,
                uint64_t *since_ns)
{
    bool out = p->events & POLLOUT;
    size_t n = len - *done < TCP_SEND_MOST ? len - *done : TCP_SEND_MOST;

    poll(p, 1, TCP_TICK_NS / 1000000);
    ssize_t moved = out ? send(p->fd, data + *done, n, MSG_NOSIGNAL | MSG_DONTWAIT)
                        : recv(p->fd, data + *done, n, MSG_DONTWAIT);
    if (moved > 0) {
        *done += (size_t)moved;
        *since_ns = 0;
        return 0;
    }
    if (moved < 0 && (errno == EAGAIN || errno == EINTR))
        return tcp_still(e, since_ns, tcp_of(e)->still_ns);
    return tcp_broken(e, moved ? -errno : -ECONNRESET, out ? "sending" : "receiving");
}

int tcp_send_all(struct net_end *e, int fd, const void *data, size_t len)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    uint64_t since_ns = 0;
    size_t done = 0;
    int err = 0;

    while (done < len && !err)
        err = step(e, &p, (char *)(uintptr_t)data, len, &done, &since_ns);
    return err;
}

int tcp_receive_all(struct net_end *e, int fd, void *data, size_t len)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    uint64_t since_ns = 0;
    size_t done = 0;
    int err = 0;

    while (done < len && !err)
        err = step(e, &p, data, len, &done, &since_ns);
    return err;
}

/* ---- What TCP says of itself., docs/net-tcp.md ---- */

/* An older kernel says less; what it leaves out would read as 0. */
#define SAYS(len, field)                                                                           \
    ((len) >= offsetof(struct tcp_info, field) + sizeof(((struct tcp_info *)0)->field))

struct sums {
    unsigned n, n_limits;
    double retransmits, rtt_us, cwnd, busy, receiver, buffer;
};

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
