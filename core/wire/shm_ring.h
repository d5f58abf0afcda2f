/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of bytes in memory that two processes share: one writes, one reads, both at the same time. What
 * is handed over at once is small enough that both work; the ring is larger than a core's own caches, so
 * that bytes pass through a cache that both cores share, or through memory.
 */
#ifndef PLUMB_CORE_WIRE_SHM_RING_H
#define PLUMB_CORE_WIRE_SHM_RING_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SHM_RING_BYTES  4194304u
#define SHM_CHUNK_BYTES 65536u
#define SHM_PAGE_BYTES  4096u

struct shm_ring {
    _Alignas(64) _Atomic uint64_t written; /* bytes since the start */
    _Alignas(64) _Atomic uint64_t read;
    _Alignas(SHM_PAGE_BYTES) char data[SHM_RING_BYTES];
};

static inline size_t shm_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Each returns how many bytes went through, 0 when none can now. */
static inline size_t shm_ring_push(struct shm_ring *r, const void *data, size_t len)
{
    uint64_t written = atomic_load_explicit(&r->written, memory_order_relaxed);
    uint64_t read = atomic_load_explicit(&r->read, memory_order_acquire);
    size_t at = written % SHM_RING_BYTES;
    size_t room = SHM_RING_BYTES - (size_t)(written - read);
    size_t n = shm_least(shm_least(len, room), shm_least(SHM_RING_BYTES - at, SHM_CHUNK_BYTES));

    memcpy(r->data + at, data, n);
    atomic_store_explicit(&r->written, written + n, memory_order_release);
    return n;
}

static inline size_t shm_ring_pull(struct shm_ring *r, void *data, size_t len)
{
    uint64_t read = atomic_load_explicit(&r->read, memory_order_relaxed);
    size_t there = (size_t)(atomic_load_explicit(&r->written, memory_order_acquire) - read);
    size_t at = read % SHM_RING_BYTES;
    size_t n = shm_least(shm_least(len, there), shm_least(SHM_RING_BYTES - at, SHM_CHUNK_BYTES));

    memcpy(data, r->data + at, n);
    atomic_store_explicit(&r->read, read + n, memory_order_release);
    return n;
}

#endif
