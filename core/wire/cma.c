/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cross-memory attach: the receiver reads the sender's memory by one system call, with nothing in
 * between.
 *
 * The sender says where its messages are, the receiver copies and says how far it is: by the counts
 * of a ring of shared memory (shm.h), which are of messages here. The places lie where a ring has
 * its short messages, so that one cache line brings them and their count.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/wire/shm.h"

/* Of messages that the peer may copy: each an address and a size. */
#define PLACES (WIRE_SHM_BRIEF / 16)

static _Atomic uint64_t *place_at(struct wire_shm_ring *r, uint64_t message)
{
    return &r->brief[2 * (message % PLACES)];
}

/* Takes off the messages that the peer has copied, and says where further ones are. */
static int post_sends(struct wire_link *l, struct wire_shm_link *sl)
{
    struct wire_shm_ring *r = sl->out;
    struct wire_posts *q = &sl->out_posts;
    uint64_t written = atomic_load_explicit(&r->written, memory_order_relaxed), before = written;
    uint64_t read = atomic_load_explicit(&r->read, memory_order_acquire), bytes = 0;
    unsigned messages = 0;

    for (; sl->out_read < read; sl->out_read++) {
        size_t n = wire_posts_at(q, 0)->bytes;
        bytes += n;
        messages += wire_posts_moved(q, n);
    }
    for (; written - read < PLACES && written - read < q->n; written++) {
        const struct wire_post *p = wire_posts_at(q, (unsigned)(written - read));
        _Atomic uint64_t *place = place_at(r, written);
        atomic_store_explicit(&place[0], (uintptr_t)p->at, memory_order_relaxed);
        atomic_store_explicit(&place[1], p->bytes, memory_order_relaxed);
    }
    if (written != before) {
        atomic_store_explicit(&r->written, written, memory_order_release);
        wire_shm_wake(sl->peer_head, WIRE_SHM_FOR_DATA);
    }
    if (messages)
        wire_went(l, bytes, messages);
    return messages > 0;
}

static int refused(struct wire_link *l, int error)
{
    char name[160];

    if (error == ESRCH)
        return wire_shm_gone(l);
    return wire_fail(
        l->worker->wire,
        error == EPERM || error == EACCES || error == ENOSYS ? -EOPNOTSUPP : -error,
        "a read of the memory of %s failed: %s%s",
        world_name(l->worker->wire->world, l->peer, name, sizeof(name)), strerror(error),
        error == EPERM || error == EACCES
            ? "; as root, sysctl kernel.yama.ptrace_scope=1; in a container, "
              "--cap-add SYS_PTRACE"
        : error == ENOSYS ? "; the kernel was built without CONFIG_CROSS_MEMORY_ATTACH, or a "
                            "container's filter hides it"
                          : "");
}

/* The oldest message, where both ends have posted it. A peer that has closed its wire has its
 * memory for other things. */
static int read_one(struct wire_link *l, struct wire_shm_link *sl)
{
    const struct wire_post *mine = wire_posts_at(&sl->in_posts, 0);
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
        ssize_t n = process_vm_readv(sl->pid, &here, 1, &there, 1, 0);
        if (n <= 0)
            return refused(l, n < 0 ? errno : EIO);
        done += (size_t)n;
    }
    atomic_store_explicit(&r->read, read + 1, memory_order_release);
    wire_came(l, bytes, wire_posts_moved(&sl->in_posts, bytes));
    wire_shm_wake(sl->peer_head, WIRE_SHM_FOR_ROOM);
    return 1;
}

static void cma_worker(struct wire_worker *k)
{
    wire_shm_worker(k, post_sends, read_one);
}

static int cma_open(struct wire *w)
{
    w->options.ring_bytes = WIRE_SHM_RING_LEAST; /* no message goes through it */
    w->options.reference = false;
    return wire_shm_no_line(w);
}

/* Wires that have joined in this process, of which there are several in a training step: what the
 * system is told of who may attach holds for all of them. */
static _Atomic unsigned joined;

/* Where Yama restricts who may attach, a process names one other, or any of its user's; elsewhere
 * the call is refused and not needed. That memory may be read shows at address 0: as EFAULT. */
static int cma_join(struct wire *w, const void *const *addresses, const size_t *lens)
{
    struct wire_shm_address first = {0}; /* as it came, wherever it lies */
    bool alone = !atomic_fetch_add(&joined, 1) && w->n_links == 1 && lens[0] == sizeof(first);

    w->state = &joined;
    if (alone)
        memcpy(&first, addresses[0], sizeof(first));
    prctl(PR_SET_PTRACER, alone ? (unsigned long)first.pid : PR_SET_PTRACER_ANY, 0, 0, 0);
    int err = wire_shm_join(w, addresses, lens);
    for (unsigned i = 0; i < w->n_links && !err; i++) {
        struct iovec here = {&first, 1}, there = {NULL, 1};
        ssize_t n = process_vm_readv(wire_shm_link_of(&w->links[i])->pid, &here, 1, &there, 1, 0);
        err = n < 0 && errno != EFAULT ? refused(&w->links[i], errno) : 0;
    }
    snprintf(w->rails[0].text, sizeof(w->rails[0].text), "read by process_vm_readv");
    return err;
}

static void cma_close(struct wire *w)
{
    if (w->state && atomic_fetch_sub(&joined, 1) == 1)
        prctl(PR_SET_PTRACER, 0, 0, 0, 0);
    wire_shm_close(w);
}

static void describe(struct wire *w, char *text, size_t len)
{
    (void)w;
    snprintf(text, len, "process_vm_readv by the receiver");
}

const struct wire_ops wire_cma = {
    WIRE_SHM_HOOKS,       .name = "cma",    .send = wire_shm_send, .open = cma_open,
    .worker = cma_worker, .join = cma_join, .describe = describe,  .close = cma_close,
};
