/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between two processes of one machine, through rings in memory that both have mapped: the
 * sender copies a message in, the receiver copies it out. A ring for each connection and direction.
 * Both ends spin while they wait, and yield now and then; so both keep a CPU busy, whatever goes
 * through.
 *
 * The transport is net_shm (core/wire/net.h).
 */
#ifndef PLUMB_CORE_WIRE_SHM_H
#define PLUMB_CORE_WIRE_SHM_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/group/channel.h"
#include "core/hw/host_buffer.h"
#include "core/wire/net.h"
#include "core/wire/wire.h"

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

/*
 * Messages between processes of one machine, through rings in memory that both have mapped: what
 * the files of wire_shm share.
 *
 * Each rank makes one memory: a head, and a ring for each peer that sends to it. Peers open it by
 * /proc/PID/fd, so that ranks need no common parent. The sender copies chunks of a message in while
 * the receiver copies others out.
 *
 * Who finds nothing to do spins a little, then sleeps on `events` in its own head; a peer that has
 * put something in, or taken something out, wakes it if it sleeps for that. Before it sleeps it
 * says so and looks once more; the peer moves bytes and then looks whether somebody sleeps: one of
 * them sees the other.
 */

#define WIRE_SHM_PAGE        4096u
#define WIRE_SHM_RING_MOST   ((size_t)1 << 20) /* bytes; a power of 2, as all rings are */
#define WIRE_SHM_RING_LEAST  ((size_t)16 << 10)
#define WIRE_SHM_RINGS_BYTES ((size_t)8 << 20) /* of all rings of a rank, where they are many */
#define WIRE_SHM_BRIEF       ((size_t)48)      /* what is left of a cache line */
#define WIRE_SHM_CHUNK       ((size_t)64 << 10)
#define WIRE_SHM_FOR_DATA    1u /* who sleeps, for what: only that wakes it */
#define WIRE_SHM_FOR_ROOM    2u
/* who stands still looks so often whether the peer lives */
#define WIRE_SHM_LOOK_NS 50000000u

struct wire_shm_head { /* NOLINT(clang-analyzer-optin.performance.Padding): lines of their own */
    uint8_t token[CHANNEL_TOKEN_BYTES];
    _Alignas(64) _Atomic uint32_t events;   /* a futex */
    _Alignas(64) _Atomic uint32_t sleeping; /* for what; 0: it is awake */
};

/* A short message lies beside the number that tells of it, too, so that one cache line brings both.
 * That copy is the receiver's to use while brief_end says where in the stream it ends; it may be
 * gone, while the bytes in the ring are not. */
struct wire_shm_ring {
    _Alignas(64) _Atomic uint64_t written; /* bytes since the start */
    _Atomic uint64_t brief_end;            /* 0: there is none, or it is being written */
    _Atomic uint64_t brief[WIRE_SHM_BRIEF / 8];
    _Alignas(64) _Atomic uint64_t read;
    _Alignas(64) _Atomic uint32_t attached; /* the sender has mapped it */
    _Atomic uint32_t sender_ended, receiver_ended;
    _Alignas(WIRE_SHM_PAGE) char data[];
};

struct wire_shm_link {
    struct wire_shm_ring *out, *in; /* in the peer's memory and in one's own */
    size_t out_bytes;               /* of the ring */
    uint64_t out_read, in_written;  /* as last seen: the peer's line is read when that is used up */
    struct wire_posts out_posts, in_posts;
    struct wire_shm_head *peer_head;
    size_t peer_map_bytes;
    int pid, pidfd; /* -1: not known */
};

struct wire_shm {
    struct wire_shm_head *head; /* NULL: not made yet */
    size_t map_bytes, ring_bytes;
    int fd;               /* until all peers have it */
    uint64_t wait_ns;     /* for them */
    uint64_t still_looks; /* since something moved */
    uint64_t look_ns;     /* when it was last looked whether peers live */
};

static inline struct wire_shm *wire_shm_of(const struct wire *f)
{
    return f->state;
}

static inline struct wire_shm_link *wire_shm_link_of(const struct wire_link *l)
{
    return l->state;
}

#endif
