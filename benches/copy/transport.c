/* SPDX-License-Identifier: Apache-2.0 */
/* Ways from one process to another: see transfer.h. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "benches/copy/transfer.h"
#include "core/clock.h"
#include "core/hw/machine.h"
#include "core/hw/topo.h"
#include "core/wire/shm_ring.h"

/* ---- A group of two processes on this machine ---- */

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

/* ---- Messages over a transport ---- */

/* Where a sequence of messages stands. */
struct progress {
    uint64_t left; /* messages */
    size_t done;   /* bytes of the present one */
};

/* Takes n more bytes, of messages of `bytes`. */
static void advance(struct progress *p, size_t n, size_t bytes)
{
    p->done += n;
    if (p->done == bytes) {
        p->done = 0;
        p->left--;
    }
}

int transport_move(struct transport *t, const void *out, void *in, size_t bytes, uint64_t count,
                   uint64_t *arrived_ns)
{
    struct progress sending = {out ? count : 0, 0}, receiving = {in ? count : 0, 0};
    struct group_wait wait = {0};

    while (sending.left || receiving.left) {
        ssize_t sent = 0, received = 0;
        if (sending.left)
            sent = t->ops->push(t, (const char *)out + sending.done, bytes - sending.done);
        if (sent < 0)
            return (int)sent;
        if (receiving.left)
            received = t->ops->pull(t, (char *)in + receiving.done, bytes - receiving.done);
        if (received < 0)
            return (int)received;
        if (sent)
            advance(&sending, (size_t)sent, bytes);
        if (received) {
            advance(&receiving, (size_t)received, bytes);
            if (!receiving.left)
                *arrived_ns = clock_now_ns();
        }
        int err = sent || received ? 0 : group_pause(t->group, &wait);
        if (err)
            return err;
        if (sent || received)
            wait = (struct group_wait){0};
    }
    return 0;
}

/*
 * ---- Cross-memory attach: one system call copies between the memories of two processes, with
 * nothing in between. One rank posts where its buffer is, the other copies and says so: with
 * process_vm_readv the sender posts, with process_vm_writev the receiver. ----
 */

/* One direction: posted is one ahead of done while a buffer waits to be copied. */
struct slot {
    _Alignas(64) _Atomic uint64_t posted;
    void *at;
    size_t len;
    _Alignas(64) _Atomic uint64_t done;
};

struct slots {
    struct slot from[2]; /* by the sender's rank; shared */
};

struct cma {
    struct slots *slots;
    bool waiting; /* this rank's own: it has posted */
};

static int cma_open(struct transport *t)
{
    struct cma *c = calloc(1, sizeof(*c));

    t->state = c;
    if (!c)
        return -ENOMEM;
    void *at =
        mmap(NULL, sizeof(struct slots), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return -errno;
    c->slots = at;
    return 0;
}

static int cma_attach(struct transport *t)
{
    prctl(PR_SET_PTRACER, group_peer(t->group)); /* where Yama restricts it; elsewhere refused */
    return 0;
}

/* Posts a buffer, then, in a later call, says that it has been dealt with. */
static ssize_t post(struct slot *s, void *at, size_t len, bool *waiting)
{
    uint64_t posted = atomic_load_explicit(&s->posted, memory_order_relaxed);

    if (!*waiting) {
        s->at = at;
        s->len = len;
        *waiting = true;
        atomic_store_explicit(&s->posted, posted + 1, memory_order_release);
        return 0;
    }
    if (atomic_load_explicit(&s->done, memory_order_acquire) != posted)
        return 0;
    *waiting = false;
    return (ssize_t)s->len;
}

typedef ssize_t vm_call(pid_t, const struct iovec *, unsigned long, const struct iovec *,
                        unsigned long, unsigned long);

static ssize_t copy_posted(struct transport *t, struct slot *s, void *mine, size_t len,
                           vm_call *call)
{
    uint64_t done = atomic_load_explicit(&s->done, memory_order_relaxed);

    if (atomic_load_explicit(&s->posted, memory_order_acquire) == done)
        return 0;
    if (s->len != len)
        return -EMSGSIZE;
    for (size_t at = 0; at < len;) {
        struct iovec here = {(char *)mine + at, len - at}, there = {(char *)s->at + at, len - at};
        ssize_t n = call(group_peer(t->group), &here, 1, &there, 1, 0);
        if (n <= 0)
            return n < 0 ? (errno == ESRCH ? -ECONNRESET : -errno) : -EIO;
        at += (size_t)n;
    }
    atomic_store_explicit(&s->done, done + 1, memory_order_release);
    return (ssize_t)len;
}

static struct slot *slot_from(const struct transport *t, unsigned sender)
{
    return &((struct cma *)t->state)->slots->from[sender];
}

static ssize_t read_push(struct transport *t, const void *data, size_t len)
{
    return post(slot_from(t, group_rank(t->group)), (void *)data, len,
                &((struct cma *)t->state)->waiting);
}

static ssize_t read_pull(struct transport *t, void *data, size_t len)
{
    return copy_posted(t, slot_from(t, !group_rank(t->group)), data, len, process_vm_readv);
}

static ssize_t write_push(struct transport *t, const void *data, size_t len)
{
    return copy_posted(t, slot_from(t, group_rank(t->group)), (void *)data, len, process_vm_writev);
}

static ssize_t write_pull(struct transport *t, void *data, size_t len)
{
    return post(slot_from(t, !group_rank(t->group)), data, len, &((struct cma *)t->state)->waiting);
}

static const char *read_describe(const struct transport *t, char *text, size_t len)
{
    (void)t;
    snprintf(text, len, "process_vm_readv by the receiver");
    return text;
}

static const char *write_describe(const struct transport *t, char *text, size_t len)
{
    (void)t;
    snprintf(text, len, "process_vm_writev by the sender");
    return text;
}

static void cma_close(struct transport *t)
{
    struct cma *c = t->state;

    if (c && c->slots)
        munmap(c->slots, sizeof(struct slots));
    free(c);
    t->state = NULL;
}

const struct transport_ops transport_cma = {
    .name = "cma",
    .open = cma_open,
    .attach = cma_attach,
    .push = read_push,
    .pull = read_pull,
    .describe = read_describe,
    .close = cma_close,
};

const struct transport_ops transport_cma_write = {
    .name = "cma-write",
    .open = cma_open,
    .attach = cma_attach,
    .push = write_push,
    .pull = write_pull,
    .describe = write_describe,
    .close = cma_close,
};

/* ---- Pipes, one for each direction, with the largest buffer that the system allows an
 * ordinary user. ---- */

struct pipes {
    int fds[2][2]; /* [sender's rank][0: read end, 1: write end]; -1: closed */
    int buffer_bytes;
};

static int largest_buffer(void)
{
    FILE *f = fopen("/proc/sys/fs/pipe-max-size", "re");
    int bytes = 1 << 20;

    if (f && fscanf(f, "%d", &bytes) != 1)
        bytes = 1 << 20;
    if (f)
        fclose(f);
    return bytes;
}

static int pipe_open(struct transport *t)
{
    struct pipes *p = calloc(1, sizeof(*p));

    t->state = p;
    if (!p)
        return -ENOMEM;
    for (int i = 0; i < 2; i++)
        p->fds[i][0] = p->fds[i][1] = -1;
    for (int i = 0; i < 2; i++) {
        /* In one direction the ends may sleep; in both, one that sleeps in a full pipe could not
         * empty the other. */
        if (pipe2(p->fds[i], O_CLOEXEC | (t->both ? O_NONBLOCK : 0)))
            return -errno;
        fcntl(p->fds[i][1], F_SETPIPE_SZ, largest_buffer()); /* refused: the default is reported */
        p->buffer_bytes = fcntl(p->fds[i][1], F_GETPIPE_SZ);
    }
    return 0;
}

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Each rank keeps the ends that are its own: so a peer's death shows as an end of the stream. */
static int pipe_attach(struct transport *t)
{
    struct pipes *p = t->state;
    unsigned me = group_rank(t->group);

    close_end(&p->fds[me][0]);
    close_end(&p->fds[!me][1]);
    return 0;
}

static ssize_t result(ssize_t n)
{
    if (n > 0)
        return n;
    if (n == 0 || errno == EPIPE)
        return -ECONNRESET;
    return errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

static ssize_t pipe_push(struct transport *t, const void *data, size_t len)
{
    struct pipes *p = t->state;

    return result(write(p->fds[group_rank(t->group)][1], data, len));
}

static ssize_t pipe_pull(struct transport *t, void *data, size_t len)
{
    struct pipes *p = t->state;

    return result(read(p->fds[!group_rank(t->group)][0], data, len));
}

static const char *pipe_describe(const struct transport *t, char *text, size_t len)
{
    const struct pipes *p = t->state;

    snprintf(text, len, "pipe buffer %d KiB", p->buffer_bytes >> 10);
    return text;
}

static void pipe_close(struct transport *t)
{
    struct pipes *p = t->state;

    for (int i = 0; p && i < 2; i++) {
        close_end(&p->fds[i][0]);
        close_end(&p->fds[i][1]);
    }
    free(p);
    t->state = NULL;
}

const struct transport_ops transport_pipe = {
    .name = "pipe",
    .open = pipe_open,
    .attach = pipe_attach,
    .push = pipe_push,
    .pull = pipe_pull,
    .describe = pipe_describe,
    .close = pipe_close,
};

/*
 * ---- Shared memory: the sender copies into a ring, the receiver out of it, both at the same time.
 * One ring for each direction, each with one writer and one reader. ----
 */

static struct shm_ring *ring_from(const struct transport *t, unsigned sender)
{
    return (struct shm_ring *)t->state + sender;
}

static int shm_open_rings(struct transport *t)
{
    void *at = mmap(NULL, 2 * sizeof(struct shm_ring), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED)
        return -errno;
    t->state = at;
    return 0;
}

/* The receiver touches its ring first: it lies on the receiver's node. By reading, since the sender
 * may be at work already. */
static int shm_attach(struct transport *t)
{
    const volatile char *data = ring_from(t, !group_rank(t->group))->data;

    for (size_t i = 0; i < SHM_RING_BYTES; i += SHM_PAGE_BYTES)
        (void)data[i];
    return 0;
}

static ssize_t shm_push(struct transport *t, const void *data, size_t len)
{
    return (ssize_t)shm_ring_push(ring_from(t, group_rank(t->group)), data, len);
}

static ssize_t shm_pull(struct transport *t, void *data, size_t len)
{
    return (ssize_t)shm_ring_pull(ring_from(t, !group_rank(t->group)), data, len);
}

static const char *shm_describe(const struct transport *t, char *text, size_t len)
{
    (void)t;
    snprintf(text, len, "ring of %u KiB, %u KiB at once", SHM_RING_BYTES >> 10,
             SHM_CHUNK_BYTES >> 10);
    return text;
}

static void shm_close(struct transport *t)
{
    if (t->state)
        munmap(t->state, 2 * sizeof(struct shm_ring));
    t->state = NULL;
}

const struct transport_ops transport_shm = {
    .name = "shm",
    .open = shm_open_rings,
    .attach = shm_attach,
    .push = shm_push,
    .pull = shm_pull,
    .describe = shm_describe,
    .close = shm_close,
};
