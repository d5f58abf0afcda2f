/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cross-memory attach: one system call copies between the memories of two processes, with nothing in
 * between. One rank posts where its buffer is, the other copies and says so: with process_vm_readv
 * the sender posts, with process_vm_writev the receiver.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>

#include "core/transport/transport.h"

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
