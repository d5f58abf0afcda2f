/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends without a copy. The kernel tells in a socket's error queue when it is done with the memory of
 * a send, and whether it copied all the same (as it does where both ends are on one machine, and where a
 * device cannot gather). The memory is sent again before that: what is in it does not change.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include <linux/errqueue.h> /* after time.h */

#include "core/wire/tcp/tcp.h"

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

int tcp_zerocopy_reap(struct tcp_connection *c)
{
    char control[256];

    for (;;) {
        struct msghdr m = {.msg_control = control, .msg_controllen = sizeof(control)};
        if (recvmsg(c->fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
            return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        take_note(c, &m);
    }
}

void tcp_zerocopy_sent(struct tcp_connection *c)
{
    if (!(++c->zerocopy.sent % REAP_EVERY))
        tcp_zerocopy_reap(c); /* an error shows at the next send */
}

/* An error pending on the socket wakes poll() as well: so it does not sleep on, and it does not turn
 * without a pause. */
static void pause_for_note(int fd)
{
    struct pollfd p = {.fd = fd};
    struct timespec pause = {0, 100000};

    if (poll(&p, 1, TCP_TICK_NS / 1000000) > 0)
        nanosleep(&pause, NULL);
}

int tcp_zerocopy_wait(struct net_end *e, struct tcp_connection *c, bool all)
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
