/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets with the options that were asked for, and what they became: see tcp.h. */
#include <errno.h>
#include <fcntl.h>
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
#define TIMESTAMPS_BYTES 12u /* of each segment where both ends use them */

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

static int refuse_congestion(struct wire *w, int err)
{
    char names[160] = "(not known)";
    FILE *f = fopen("/proc/sys/net/ipv4/tcp_available_congestion_control", "re");

    if (f && fgets(names, sizeof(names), f))
        names[strcspn(names, "\n")] = 0;
    if (f)
        fclose(f);
    return wire_fail(
        w, -EOPNOTSUPP, "the kernel refuses congestion control '%.15s': %s; it has %s%s",
        w->options.tcp.congestion, strerror(-err), names,
        err == -ENOENT  ? " (as root, modprobe tcp_NAME adds one)"
        : err == -EPERM ? ", of which users may take net.ipv4.tcp_allowed_congestion_control"
                        : "");
}

static int set_busy_poll(struct wire *w, int fd)
{
    int us = (int)w->options.tcp.busy_poll_us;
    int err = us ? set_int(fd, SOL_SOCKET, SO_BUSY_POLL, us) : 0;

    if (err)
        return wire_fail(w, -EOPNOTSUPP,
                         "the kernel refuses busy polling for %d us: %s; more than "
                         "net.core.busy_read needs CAP_NET_ADMIN",
                         us, strerror(-err));
    return 0;
}

static int set_zerocopy(struct wire *w, int fd)
{
    int err = w->options.tcp.zerocopy ? set_int(fd, SOL_SOCKET, SO_ZEROCOPY, 1) : 0;

    if (err)
        return wire_fail(w, -EOPNOTSUPP,
                         "this kernel cannot send without a copy: %s; Linux 4.14 can",
                         strerror(-err));
    return 0;
}

static int set_options(struct wire *w, int fd)
{
    const char *name = w->options.tcp.congestion;
    int err = 0;

    if (name[0] && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)))
        err = refuse_congestion(w, -errno);
    uint64_t most = w->options.tcp.buffer_bytes;
    int value = most > INT32_MAX / 2 ? INT32_MAX / 2 : (int)most;
    if (!err && most) {
        /* Of both kinds; a kernel that gives less is told of in the rail's text. */
        err = set_int(fd, SOL_SOCKET, SO_SNDBUF, value);
        err = err ? err : set_int(fd, SOL_SOCKET, SO_RCVBUF, value);
        if (err)
            wire_fail(w, err, "socket buffers of %d bytes: %s", value, strerror(-err));
    }
    err = err ? err : set_busy_poll(w, fd);
    int bytes = (int)w->options.tcp.segment_bytes;
    if (!err && bytes && (err = set_int(fd, IPPROTO_TCP, TCP_MAXSEG, bytes)) != 0)
        err = wire_fail(w, -EOPNOTSUPP,
                        "the kernel refuses segments of %d bytes (TCP_MAXSEG): %s; Linux takes "
                        "88 to 32767",
                        bytes, strerror(-err));
    return err ? err : set_zerocopy(w, fd);
}

int tcp_try_options(struct wire *w, const struct tcp_rail *rail)
{
    int fd = socket(rail->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return wire_fail(w, -errno, "a TCP socket: %s", strerror(errno));
    int err = set_options(w, fd);
    close(fd);
    return err;
}

/* Before connect or listen, so that window scaling and the handshake know of them; a connection
 * that is accepted has them from its listener. Binding to the interface holds a route off that
 * would lead elsewhere; where it may not be done, the address is all. */
int tcp_prepare_socket(struct wire *w, int fd, const struct tcp_rail *rail, bool local)
{
    int err = set_options(w, fd);

    if (!err && rail->named && !local)
        (void)setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, rail->interface,
                         (socklen_t)strlen(rail->interface) + 1);
    return err;
}

bool tcp_zerocopies(const struct wire_worker *k)
{
    return k->wire->options.tcp.zerocopy && k->way != WIRE_YIELD && !k->probes;
}

int tcp_tick(struct wire_link *l, bool ticks)
{
    struct timeval tick = {.tv_usec = ticks ? TCP_TICK_NS / 1000 : 0};
    struct tcp_link *tl = tcp_link_of(l);

    if (tl->ticks == ticks)
        return 0;
    if (setsockopt(tl->fd, SOL_SOCKET, SO_RCVTIMEO, &tick, sizeof(tick)) ||
        setsockopt(tl->fd, SOL_SOCKET, SO_SNDTIMEO, &tick, sizeof(tick)))
        return wire_fail(l->worker->wire, -errno, "a data connection's options: %s",
                         strerror(errno));
    tl->ticks = ticks;
    return 0;
}

/* Calls of a worker that blocks wait, and come back after a tick. */
int tcp_finish_socket(struct wire_link *l)
{
    struct tcp_link *tl = tcp_link_of(l);
    struct wire *w = l->worker->wire;
    bool blocks = l->worker->way == WIRE_BLOCK;
    int flags = fcntl(tl->fd, F_GETFL);
    int err = set_int(tl->fd, IPPROTO_TCP, TCP_NODELAY, 1);

    err = err ? err : set_zerocopy(w, tl->fd);
    err = err ? err : set_busy_poll(w, tl->fd);
    if (!err && fcntl(tl->fd, F_SETFL, blocks ? flags & ~O_NONBLOCK : flags | O_NONBLOCK))
        err = -errno;
    if (err)
        return wire_fail(w, err, "a data connection's options: %s", strerror(-err));
    return blocks ? tcp_tick(l, true) : 0;
}

/* What the kernel keeps is twice what was asked for; "" where it is. */
static void describe_buffers(const struct wire *w, int fd, char *text, size_t len)
{
    uint64_t asked = w->options.tcp.buffer_bytes;
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

/* The path may clamp segments to less, and then a figure is not that of the segments asked for. */
static int check_segment(struct wire_link *l)
{
    struct wire *w = l->worker->wire;
    unsigned asked = w->options.tcp.segment_bytes, has;
    struct tcp_info info;

    if (!asked || !tcp_read_info(tcp_link_of(l)->fd, &info))
        return 0;
    has = info.tcpi_snd_mss + (info.tcpi_options & TCPI_OPT_TIMESTAMPS ? TIMESTAMPS_BYTES : 0);
    if (has >= asked)
        return 0;
    return wire_fail(w, -EOPNOTSUPP,
                     "segments of %u bytes were asked for, and the connection over '%s' has %u: "
                     "the MTU of its path or the socket buffers are too small",
                     asked, l->device, has);
}

int tcp_check_segments(struct wire *w)
{
    int err = 0;

    for (unsigned i = 0; i < w->n_links && !err; i++)
        err = check_segment(&w->links[i]);
    return err;
}

static void describe_rail(struct wire *w, unsigned rail, int fd)
{
    struct nic_rail *r = &w->rails[rail];
    char algorithm[17] = "", buffers[120];
    socklen_t len = sizeof(algorithm) - 1;
    struct tcp_info info;

    if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, algorithm, &len))
        algorithm[0] = 0;
    if (tcp_read_info(fd, &info))
        r->segment_bytes = info.tcpi_snd_mss;
    describe_buffers(w, fd, buffers, sizeof(buffers));
    snprintf(r->text, sizeof(r->text), "%.16s, MSS %u%.120s",
             algorithm[0] ? algorithm : "congestion control ?", r->segment_bytes, buffers);
}

/* By the first connection of each. */
void tcp_describe_rails(struct wire *w)
{
    for (unsigned rail = 0; rail < w->n_rails; rail++)
        for (unsigned i = 0; i < w->n_links; i++)
            if (tcp_link_of(&w->links[i])->rail == rail) {
                describe_rail(w, rail, tcp_link_of(&w->links[i])->fd);
                break;
            }
}

/* ---- What TCP says of itself: docs/net-tcp.md ---- */

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

bool tcp_unheard(const struct wire_link *l, uint64_t for_ns)
{
    struct tcp_info info;

    return SAYS(tcp_read_info(tcp_link_of(l)->fd, &info), tcpi_last_ack_recv) &&
           info.tcpi_unacked > 0 && info.tcpi_last_ack_recv > for_ns / 1000000;
}

static void add(struct sums *s, const struct tcp_link *c)
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

static void tell(struct wire_fact *facts, size_t *n, const char *metric, const char *unit,
                 double value)
{
    struct wire_fact *f = &facts[(*n)++];

    snprintf(f->metric, sizeof(f->metric), "%s", metric);
    snprintf(f->unit, sizeof(f->unit), "%s", unit);
    f->value = value;
}

size_t tcp_facts(struct wire *w, struct wire_fact *facts)
{
    struct sums s = {0};
    uint64_t done = 0, copied = 0;
    size_t n = 0;

    if (!w->n_links || tcp_link_of(&w->links[0])->fd < 0)
        return 0;
    tcp_describe_rails(w); /* the segment grows with the window after the first round trips */
    for (unsigned i = 0; i < w->n_links; i++) {
        const struct tcp_link *tl = tcp_link_of(&w->links[i]);
        /* Single messages beside streams are left out, and who receives alone has nothing to
         * say. */
        const struct wire_link *l = &w->links[i];
        if ((l->window.message_bytes && !l->window.out) || (l->worker->probes && w->n_workers > 1))
            continue;
        add(&s, tl);
        done += atomic_load_explicit(&tl->zerocopy.done, memory_order_relaxed);
        copied += atomic_load_explicit(&tl->zerocopy.copied, memory_order_relaxed);
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
