/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cross-memory attach: one system call copies between the memories of two processes, with nothing
 * in between. wire_cma: the receiver reads the sender's memory; wire_cma_write: the sender writes
 * the receiver's.
 *
 * One end says where its messages are, the other one copies and says how far it is: by the counts
 * of a ring of shared memory (shm.h), which are of messages here. The places lie where a ring has
 * its short messages, so that one cache line brings them and their count.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/wire/shm.h"

/* Of messages that the peer may copy: each an address and a size. */
#define PLACES (WIRE_SHM_BRIEF / 16)

typedef ssize_t vm_call(pid_t, const struct iovec *, unsigned long, const struct iovec *,
                        unsigned long, unsigned long);

static _Atomic uint64_t *place_at(struct wire_shm_ring *r, uint64_t message)
{
    return &r->brief[2 * (message % PLACES)];
}

/* Takes off the messages that the peer has copied, and says where further ones are: whether there
 * were any to say. Bytes and messages are added to what is through. */
static WIRE_INLINE bool post(struct wire_shm_link *sl, struct wire_posts *q, uint64_t *bytes,
                             unsigned *messages)
{
    struct wire_shm_ring *r = sl->out;
    uint64_t written = atomic_load_explicit(&r->written, memory_order_relaxed), before = written;
    uint64_t read = atomic_load_explicit(&r->read, memory_order_acquire);

    for (; sl->out_read < read; sl->out_read++) {
        size_t n = wire_posts_at(q, 0)->bytes;
        *bytes += n;
        *messages += wire_posts_moved(q, n);
    }
    for (; written - read < PLACES && written - read < q->n; written++) {
        const struct wire_post *p = wire_posts_at(q, (unsigned)(written - read));
        _Atomic uint64_t *place = place_at(r, written);
        atomic_store_explicit(&place[0], (uintptr_t)p->at, memory_order_relaxed);
        atomic_store_explicit(&place[1], p->bytes, memory_order_relaxed);
    }
    if (written != before)
        atomic_store_explicit(&r->written, written, memory_order_release);
    return written != before;
}

static int copy_failed(struct wire_link *l, const char *what, ssize_t n)
{
    int error = n < 0 ? errno : EIO;
    char name[160];

    if (error == ESRCH)
        return wire_shm_gone(l);
    world_name(l->worker->wire->world, l->peer, name, sizeof(name));
    int err = error == EPERM || error == EACCES ? -EREMOTEIO
              : error == ENOSYS                 ? -EOPNOTSUPP
                                                : -error;
    return wire_fail(l->worker->wire, err, "%s of %s failed: %s", what, name, strerror(error));
}

/* The oldest message, where both ends have posted it: its bytes, 0, or -errno. A peer that has
 * closed its wire has its memory for other things. */
static WIRE_INLINE ssize_t copy(struct wire_link *l, struct wire_shm_link *sl,
                                const struct wire_post *mine, vm_call *call, const char *what)
{
    struct wire_shm_ring *r = sl->in;
    uint64_t read = atomic_load_explicit(&r->read, memory_order_relaxed);
    char name[160];

    if (sl->in_written == read)
        sl->in_written = atomic_load_explicit(&r->written, memory_order_acquire);
    if (sl->in_written == read)
        return 0;
    if (atomic_load_explicit(&r->sender_ended, memory_order_acquire))
        return wire_shm_gone(l);
    const _Atomic uint64_t *place = place_at(r, read);
    uint64_t at = atomic_load_explicit(&place[0], memory_order_relaxed);
    uint64_t bytes = atomic_load_explicit(&place[1], memory_order_relaxed);
    if (bytes != mine->bytes)
        return wire_fail(l->worker->wire, -EMSGSIZE, "a message of %zu bytes is one of %llu at %s",
                         mine->bytes, (unsigned long long)bytes,
                         world_name(l->worker->wire->world, l->peer, name, sizeof(name)));
    for (size_t done = 0; done < bytes;) {
        struct iovec here = {mine->at + done, bytes - done};
        struct iovec there = {(void *)(uintptr_t)(at + done), bytes - done};
        ssize_t n = call(sl->pid, &here, 1, &there, 1, 0);
        if (n <= 0)
            return copy_failed(l, what, n);
        done += (size_t)n;
    }
    atomic_store_explicit(&r->read, read + 1, memory_order_release);
    return (ssize_t)bytes;
}

static int post_sends(struct wire_link *l, struct wire_shm_link *sl)
{
    uint64_t bytes = 0;
    unsigned messages = 0;

    if (post(sl, &sl->out_posts, &bytes, &messages))
        wire_shm_wake(sl->peer_head, WIRE_SHM_FOR_DATA);
    if (messages)
        wire_went(l, bytes, messages);
    return messages > 0;
}

static int post_receives(struct wire_link *l, struct wire_shm_link *sl)
{
    uint64_t bytes = 0;
    unsigned messages = 0;

    if (post(sl, &sl->in_posts, &bytes, &messages))
        wire_shm_wake(sl->peer_head, WIRE_SHM_FOR_ROOM);
    if (messages)
        wire_came(l, bytes, messages);
    return messages > 0;
}

static int read_one(struct wire_link *l, struct wire_shm_link *sl)
{
    ssize_t n =
        copy(l, sl, wire_posts_at(&sl->in_posts, 0), process_vm_readv, "a read of the memory");

    if (n <= 0)
        return (int)n;
    wire_came(l, (uint64_t)n, wire_posts_moved(&sl->in_posts, (size_t)n));
    wire_shm_wake(sl->peer_head, WIRE_SHM_FOR_ROOM);
    return 1;
}

static int write_one(struct wire_link *l, struct wire_shm_link *sl)
{
    ssize_t n =
        copy(l, sl, wire_posts_at(&sl->out_posts, 0), process_vm_writev, "a write to the memory");

    if (n <= 0)
        return (int)n;
    wire_went(l, (uint64_t)n, wire_posts_moved(&sl->out_posts, (size_t)n));
    wire_shm_wake(sl->peer_head, WIRE_SHM_FOR_DATA);
    return 1;
}

static int read_worker(struct wire_worker *k)
{
    return wire_shm_worker(k, post_sends, read_one);
}

static int write_worker(struct wire_worker *k)
{
    return wire_shm_worker(k, write_one, post_receives);
}

static int cma_open(struct wire *w)
{
    w->options.ring_bytes = WIRE_SHM_RING_LEAST; /* no message goes through it */
    return wire_shm_no_line(w);
}

/* Where Yama restricts who may attach, a process names one other, or any of its user's; elsewhere
 * the call is refused and not needed. */
static int cma_join(struct wire *w, const void *const *addresses, const size_t *lens)
{
    struct wire_shm_address first; /* as it came, wherever it lies */

    if (w->n_links > 1) {
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    } else if (lens[0] == sizeof(first)) {
        memcpy(&first, addresses[0], sizeof(first));
        prctl(PR_SET_PTRACER, (unsigned long)first.pid, 0, 0, 0);
    }
    return wire_shm_join(w, addresses, lens);
}

static void cma_close(struct wire *w)
{
    prctl(PR_SET_PTRACER, 0, 0, 0, 0);
    wire_shm_close(w);
}

static void read_describe(struct wire *w, char *text, size_t len)
{
    (void)w;
    snprintf(text, len, "process_vm_readv by the receiver");
}

static void write_describe(struct wire *w, char *text, size_t len)
{
    (void)w;
    snprintf(text, len, "process_vm_writev by the sender");
}

const struct wire_ops wire_cma = {
    WIRE_SHM_HOOKS,     .send = wire_shm_send,
    .name = "cma",      .help = "the receiver reads the sender's memory",
    .open = cma_open,   .worker = read_worker,
    .join = cma_join,   .describe = read_describe,
    .close = cma_close,
};

const struct wire_ops wire_cma_write = {
    WIRE_SHM_HOOKS,      .send = wire_shm_send,
    .name = "cma-write", .help = "the sender writes the receiver's memory",
    .open = cma_open,    .worker = write_worker,
    .join = cma_join,    .describe = write_describe,
    .close = cma_close,
};
