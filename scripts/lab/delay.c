/* SPDX-License-Identifier: Apache-2.0 */
/* A line that is long: frames that come in by one link go out by its partner, some time later. For kernels without netem.
 *
 *   delay MS LINK PARTNER [LINK PARTNER]...
 *
 * What comes by LINK is late by MS, what comes by PARTNER is not. Frames keep their order and their size: pieces of up to 64 KiB that
 * a host submits at once stay so. It ends with a signal. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LINKS_MOST  512
#define FRAME_MOST  (sizeof(struct virtio_net_hdr) + 66000)
#define SOCKET_ROOM (64 << 20)

struct frame {
    struct frame *next;
    uint64_t due_ns;
    size_t len;
    char bytes[];
};

struct end {
    int fd;
    uint64_t late_ns;
    struct frame *first, **last; /* that came in here, and go out by the partner */
};

static struct end ends[LINKS_MOST];

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int open_end(struct end *e, const char *link, double ms)
{
    struct sockaddr_ll at = {.sll_family = AF_PACKET,
                             .sll_protocol = htons(ETH_P_ALL),
                             .sll_ifindex = (int)if_nametoindex(link)};
    int on = 1, room = SOCKET_ROOM;

    *e = (struct end){.late_ns = (uint64_t)(ms * 1e6), .last = &e->first};
    e->fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0);
    if (e->fd < 0 || !at.sll_ifindex)
        return -1;
    if (setsockopt(e->fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)) ||
        setsockopt(e->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)) ||
        setsockopt(e->fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) ||
        setsockopt(e->fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)))
        return -1;
    return bind(e->fd, (struct sockaddr *)&at, sizeof(at));
}

/* All that has come. */
static void take_in(struct end *e)
{
    static char bytes[FRAME_MOST];
    ssize_t n;

    while ((n = recv(e->fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
        struct frame *f = malloc(sizeof(*f) + (size_t)n);
        if (!f)
            return;
        *f = (struct frame){.due_ns = now_ns() + e->late_ns, .len = (size_t)n};
        memcpy(f->bytes, bytes, (size_t)n);
        *e->last = f;
        e->last = &f->next;
    }
}

/* All that is due. A frame for which a queue has no room is lost, as in a switch. Returns when the next one is due. */
static uint64_t pass_on(struct end *e, int to)
{
    while (e->first && e->first->due_ns <= now_ns()) {
        struct frame *f = e->first;
        if (send(to, f->bytes, f->len, MSG_DONTWAIT) < 0 && errno != ENOBUFS && errno != EAGAIN)
            perror("delay: send");
        e->first = f->next;
        if (!e->first)
            e->last = &e->first;
        free(f);
    }
    return e->first ? e->first->due_ns : UINT64_MAX;
}

int main(int argc, char **argv)
{
    static struct pollfd polls[LINKS_MOST];
    int n = argc - 2;

    if (n < 2 || n % 2 || n > LINKS_MOST) {
        fputs("usage: delay MS LINK PARTNER [LINK PARTNER]...\n", stderr);
        return 2;
    }
    for (int i = 0; i < n; i++) {
        if (open_end(&ends[i], argv[2 + i], i % 2 ? 0 : strtod(argv[1], NULL))) {
            perror(argv[2 + i]);
            return 1;
        }
        polls[i] = (struct pollfd){ends[i].fd, POLLIN, 0};
    }
    for (;;) {
        uint64_t next_ns = UINT64_MAX, now;
        for (int i = 0; i < n; i++) {
            uint64_t due_ns = pass_on(&ends[i], ends[i ^ 1].fd);
            next_ns = due_ns < next_ns ? due_ns : next_ns;
        }
        now = now_ns();
        uint64_t left = next_ns == UINT64_MAX ? 1000000000u : next_ns > now ? next_ns - now : 0;
        struct timespec wait = {.tv_sec = (time_t)(left / 1000000000u),
                                .tv_nsec = (long)(left % 1000000000u)};
        if (ppoll(polls, (nfds_t)n, &wait, NULL) > 0)
            for (int i = 0; i < n; i++)
                if (polls[i].revents)
                    take_in(&ends[i]);
    }
}
