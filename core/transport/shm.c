/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared memory: the sender copies into a ring, the receiver out of it, both at the same time. One
 * ring for each direction, each with one writer and one reader.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/transport/transport.h"

/* Larger than two cores' own caches: the bytes then pass through a cache that both share (or through
 * memory), which is several times faster than the handing over of lines that the other core holds. */
#define RING_BYTES  4194304u
#define CHUNK_BYTES 65536u /* what is handed over at once: small enough that both sides work */
#define PAGE_BYTES  4096u

struct ring {
    _Alignas(64) _Atomic uint64_t written; /* bytes since the start */
    _Alignas(64) _Atomic uint64_t read;
    _Alignas(PAGE_BYTES) char data[RING_BYTES];
};

static struct ring *ring_from(const struct transport *t, unsigned sender)
{
    return (struct ring *)t->state + sender;
}

static int shm_open_rings(struct transport *t)
{
    void *at = mmap(NULL, 2 * sizeof(struct ring), PROT_READ | PROT_WRITE,
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

    for (size_t i = 0; i < RING_BYTES; i += PAGE_BYTES)
        (void)data[i];
    return 0;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static ssize_t shm_push(struct transport *t, const void *data, size_t len)
{
    struct ring *r = ring_from(t, group_rank(t->group));
    uint64_t written = atomic_load_explicit(&r->written, memory_order_relaxed);
    size_t at = written % RING_BYTES;
    size_t room =
        RING_BYTES - (size_t)(written - atomic_load_explicit(&r->read, memory_order_acquire));
    size_t n = least(least(len, room), least(RING_BYTES - at, CHUNK_BYTES));

    memcpy(r->data + at, data, n);
    atomic_store_explicit(&r->written, written + n, memory_order_release);
    return (ssize_t)n;
}

static ssize_t shm_pull(struct transport *t, void *data, size_t len)
{
    struct ring *r = ring_from(t, !group_rank(t->group));
    uint64_t read = atomic_load_explicit(&r->read, memory_order_relaxed);
    size_t at = read % RING_BYTES;
    size_t there = (size_t)(atomic_load_explicit(&r->written, memory_order_acquire) - read);
    size_t n = least(least(len, there), least(RING_BYTES - at, CHUNK_BYTES));

    memcpy(data, r->data + at, n);
    atomic_store_explicit(&r->read, read + n, memory_order_release);
    return (ssize_t)n;
}

static const char *shm_describe(const struct transport *t, char *text, size_t len)
{
    (void)t;
    snprintf(text, len, "ring of %u KiB, %u KiB at once", RING_BYTES >> 10, CHUNK_BYTES >> 10);
    return text;
}

static void shm_close(struct transport *t)
{
    if (t->state)
        munmap(t->state, 2 * sizeof(struct ring));
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
