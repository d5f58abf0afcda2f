/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between two processes of one machine, through rings in memory that both have mapped: the
 * sender copies a message in, the receiver copies it out. A ring for each connection and direction.
 * Both ends spin while they wait, and yield now and then; so both keep a CPU busy, whatever goes
 * through.
 *
 * The transport is net_shm (core/wire/net.h).
 */
#ifndef PLUMB_CORE_WIRE_SHM_RING_H
#define PLUMB_CORE_WIRE_SHM_RING_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/group/channel.h"
#include "core/hw/host_buffer.h"
#include "core/wire/net.h"

/* A ring of bytes in memory that two processes share: one writes, one reads, both at the same time.
 * What is handed over at once is small enough that both work; the ring is larger than a core's own
 * caches, so that bytes pass through a cache that both cores share, or through memory. */

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

/* Who sends and who receives on a connection are two threads: each has lines of its own. */
struct shm_connection { /* NOLINT(clang-analyzer-optin.performance.Padding): lines of their own */
    size_t message_bytes;
    size_t out_bytes, in_bytes; /* 0: this end does not send, receive on it */
    _Alignas(64) struct shm_ring *out_ring;
    char *out; /* one message */
    size_t out_at;
    bool out_ready; /* it has been filled */
    _Alignas(64) struct shm_ring *in_ring;
    char *in; /* whole messages as they arrive */
    size_t in_at;
    uint64_t in_total; /* bytes since the last check */
    bool in_ready;     /* it has been touched */
};

struct shm_net {
    struct shm_connection *connections; /* number `connections` of the point is the ping's */
    unsigned n;
    struct host_buffer buffer;
    int fd;    /* leader: of the memory, until the end: the peer opens it by /proc */
    void *map; /* NULL: not yet */
    size_t map_bytes;
    uint64_t still_ns; /* nothing moved for so long: given up */
};

static inline struct shm_net *shm_of(const struct net_end *e)
{
    return e->state;
}

#endif
