/* SPDX-License-Identifier: Apache-2.0 */
/* A group of two processes on this machine: see group.h. */
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/group/group.h"
#include "core/hw/machine.h"

#define TURNS_A_LOOK       1024  /* some tens of us */
#define TURNS_BEFORE_SLEEP 20000 /* the peer sleeps between runs, when nothing comes for so long */

struct control {
    _Alignas(64) _Atomic uint32_t generation; /* one more for each run; a futex */
    group_fn *fn;                             /* the same address in both: the peer is a fork */
    uint64_t count;
    _Alignas(64) _Atomic uint32_t ready, done; /* the peer's: generation it has started, ended */
    _Atomic int error;                         /* of the peer, before it exits */
    struct group_times times;
    _Alignas(64) char shared[];
};

struct group {
    struct control *control;
    size_t bytes;
    void *arg;
    pid_t peer;
    unsigned rank;
    bool gone; /* the peer has been waited for */
    struct sigaction old_pipe;
};

unsigned group_rank(const struct group *g)
{
    return g->rank;
}

pid_t group_peer(const struct group *g)
{
    return g->peer;
}

void *group_shared(const struct group *g)
{
    return g->control->shared;
}

/* Only the parent looks: without it there is no child. */
static int look_at_peer(struct group *g)
{
    if (g->rank)
        return 0;
    if (!g->gone && waitpid(g->peer, NULL, WNOHANG) == g->peer)
        g->gone = true;
    int error = atomic_load(&g->control->error);
    if (error)
        return error;
    return g->gone ? -ECONNRESET : 0;
}

int group_pause(struct group *g, struct group_wait *wait)
{
    cpu_pause();
    if (++wait->turns % TURNS_A_LOOK)
        return 0;
    uint64_t now_ns = clock_now_ns();
    if (!wait->since_ns)
        wait->since_ns = now_ns;
    if (now_ns - wait->since_ns > GROUP_STILL_NS)
        return -ETIMEDOUT;
    sched_yield();
    return look_at_peer(g);
}

static uint32_t wait_for_next(struct control *c, uint32_t seen)
{
    uint32_t now = seen;

    for (int turns = 0; now == seen && turns < TURNS_BEFORE_SLEEP; turns++) {
        cpu_pause();
        now = atomic_load_explicit(&c->generation, memory_order_acquire);
    }
    while (now == seen) {
        syscall(SYS_futex, &c->generation, FUTEX_WAIT, seen, NULL, NULL, 0);
        now = atomic_load_explicit(&c->generation, memory_order_acquire);
    }
    return now;
}

static void be_the_peer(struct group *g, const struct topo *topo, unsigned cpu, pid_t parent)
{
    struct control *c = g->control;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);            /* it died before the line above */
    signal(SIGINT, SIG_IGN); /* meant for the parent, which ends this process */
    signal(SIGTERM, SIG_IGN);
    g->rank = 1;
    g->peer = parent;
    int err = topo_bind_self(topo, cpu);
    for (uint32_t seen = 0; !err;) {
        seen = wait_for_next(c, seen);
        c->times = (struct group_times){0};
        atomic_store(&c->ready, seen);
        err = c->fn(g, g->arg, c->count, &c->times);
        if (err)
            atomic_store(&c->error, err);
        atomic_store(&c->done, seen);
    }
    atomic_store(&c->error, err);
    _exit(1);
}

int group_open(struct group **group, const struct topo *topo, const unsigned cpus[2], void *arg,
               size_t shared_bytes)
{
    struct group *g = calloc(1, sizeof(*g));
    pid_t parent = getpid();

    if (!g)
        return -ENOMEM;
    int err = topo_bind_self(topo, cpus[0]);
    if (err)
        goto free_group;
    g->arg = arg;
    g->bytes = sizeof(struct control) + shared_bytes;
    g->control = mmap(NULL, g->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (g->control == MAP_FAILED) {
        err = -errno;
        goto free_group;
    }
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, &g->old_pipe); /* a peer's death is an error code, not a signal */
    g->peer = fork();
    if (g->peer == 0)
        be_the_peer(g, topo, cpus[1], parent);
    if (g->peer < 0) {
        err = -errno;
        goto unmap;
    }
    *group = g;
    return 0;
unmap:
    sigaction(SIGPIPE, &g->old_pipe, NULL);
    munmap(g->control, g->bytes);
free_group:
    free(g);
    return err;
}

void group_close(struct group *g)
{
    if (!g)
        return;
    if (!g->gone) { /* it holds nothing that needs an orderly end */
        kill(g->peer, SIGKILL);
        while (waitpid(g->peer, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    sigaction(SIGPIPE, &g->old_pipe, NULL);
    munmap(g->control, g->bytes);
    free(g);
}

static int wait_until(struct group *g, _Atomic uint32_t *what, uint32_t generation)
{
    struct group_wait wait = {0};
    int err = 0;

    while (!err && atomic_load_explicit(what, memory_order_acquire) != generation)
        err = group_pause(g, &wait);
    return err;
}

int group_run(struct group *g, group_fn *fn, uint64_t count, struct group_times times[2])
{
    struct control *c = g->control;

    c->fn = fn;
    c->count = count;
    times[0] = times[1] = (struct group_times){0};
    uint32_t generation = atomic_fetch_add(&c->generation, 1) + 1;
    syscall(SYS_futex, &c->generation, FUTEX_WAKE, 1, NULL, NULL, 0);
    int err = wait_until(g, &c->ready, generation);
    if (!err)
        err = fn(g, g->arg, count, &times[0]);
    if (!err)
        err = wait_until(g, &c->done, generation);
    times[1] = c->times;
    /* The parent's own error is often that the pipe broke; why it broke is the peer's. */
    int peer_error = atomic_load(&c->error);
    return peer_error ? peer_error : err;
}
