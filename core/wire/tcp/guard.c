/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches over the ping's connection. A receive with a time-out of its own arms a timer each time, which costs some per cent of
 * a round trip; so it has none, and a thread that sleeps most of the time ends the connection where nothing has moved
 * for too long, or where everything is over.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "core/wire/tcp/tcp.h"

#define LOOK_NS 100000000

static void *watch(void *arg)
{
    struct net_end *e = arg;
    struct tcp *t = tcp_of(e);
    uint64_t seen = 0, since_ns = clock_now_ns();
    struct timespec rest = {.tv_nsec = LOOK_NS};

    while (!atomic_load(&t->guard.end)) {
        uint64_t turns = atomic_load_explicit(&t->guard.turns, memory_order_relaxed);
        if (turns != seen)
            since_ns = clock_now_ns();
        seen = turns;
        if (tcp_still(e, &since_ns, t->still_ns)) {
            shutdown(t->connections[e->point->connections].fd, SHUT_RDWR);
            break;
        }
        nanosleep(&rest, NULL);
    }
    return NULL;
}

static int set_tick(struct net_end *e, uint64_t ns)
{
    int fd = tcp_of(e)->connections[e->point->connections].fd;
    struct timeval tick = {.tv_usec = (suseconds_t)(ns / 1000)};

    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tick, sizeof(tick)) ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tick, sizeof(tick)))
        return net_fail(e, -errno, "a data connection's options: %s", strerror(errno));
    return 0;
}

int tcp_guard_start(struct net_end *e)
{
    struct tcp_guard *g = &tcp_of(e)->guard;
    sigset_t all, before;

    if (g->started)
        return 0;
    int err = set_tick(e, 0);
    if (err)
        return err;
    atomic_store(&g->end, false);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    err = -pthread_create(&g->thread, NULL, watch, e);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    g->started = !err;
    return err ? net_fail(e, err, "cannot start a thread: %s", strerror(-err)) : 0;
}

int tcp_guard_stop(struct net_end *e)
{
    struct tcp_guard *g = &tcp_of(e)->guard;

    if (!g->started)
        return 0;
    atomic_store(&g->end, true);
    pthread_join(g->thread, NULL);
    g->started = false;
    return set_tick(e, TCP_TICK_NS);
}
