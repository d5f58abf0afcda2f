/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between processes of one machine, through rings in memory that both have mapped: what
 * the files of fabric_shm share.
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
#ifndef PLUMB_CORE_WIRE_FABRIC_SHM_H
#define PLUMB_CORE_WIRE_FABRIC_SHM_H

#include <stdatomic.h>

#include "core/group/channel.h"
#include "core/wire/fabric.h"

#define FABRIC_SHM_PAGE        4096u
#define FABRIC_SHM_RING_MOST   ((size_t)1 << 20) /* bytes; a power of 2, as all rings are */
#define FABRIC_SHM_RING_LEAST  ((size_t)16 << 10)
#define FABRIC_SHM_RINGS_BYTES ((size_t)8 << 20) /* of all rings of a rank, where they are many */
#define FABRIC_SHM_BRIEF       ((size_t)48)      /* what is left of a cache line */
#define FABRIC_SHM_CHUNK       ((size_t)64 << 10)
#define FABRIC_SHM_FOR_DATA    1u /* who sleeps, for what: only that wakes it */
#define FABRIC_SHM_FOR_ROOM    2u
#define FABRIC_SHM_LOOK_NS     50000000u /* who stands still looks so often whether the peer lives */

struct fabric_shm_head { /* NOLINT(clang-analyzer-optin.performance.Padding): lines of their own */
    uint8_t token[CHANNEL_TOKEN_BYTES];
    _Alignas(64) _Atomic uint32_t events;   /* a futex */
    _Alignas(64) _Atomic uint32_t sleeping; /* for what; 0: it is awake */
};

/* A short message lies beside the number that tells of it, too, so that one cache line brings both.
 * That copy is the receiver's to use while brief_end says where in the stream it ends; it may be
 * gone, while the bytes in the ring are not. */
struct fabric_shm_ring {
    _Alignas(64) _Atomic uint64_t written; /* bytes since the start */
    _Atomic uint64_t brief_end;            /* 0: there is none, or it is being written */
    _Atomic uint64_t brief[FABRIC_SHM_BRIEF / 8];
    _Alignas(64) _Atomic uint64_t read;
    _Alignas(64) _Atomic uint32_t attached; /* the sender has mapped it */
    _Atomic uint32_t sender_ended, receiver_ended;
    _Alignas(FABRIC_SHM_PAGE) char data[];
};

struct fabric_shm_link {
    struct fabric_shm_ring *out, *in; /* in the peer's memory and in one's own */
    size_t out_bytes;                 /* of the ring */
    uint64_t out_read, in_written; /* as last seen: the peer's line is read when that is used up */
    struct fabric_posts out_posts, in_posts;
    struct fabric_shm_head *peer_head;
    size_t peer_map_bytes;
    int pid, pidfd; /* -1: not known */
};

struct fabric_shm {
    struct fabric_shm_head *head; /* NULL: not made yet */
    size_t map_bytes, ring_bytes;
    int fd;               /* until all peers have it */
    uint64_t wait_ns;     /* for them */
    uint64_t still_looks; /* since something moved */
    uint64_t look_ns;     /* when it was last looked whether peers live */
};

static inline struct fabric_shm *fabric_shm_of(const struct fabric *f)
{
    return f->state;
}

static inline struct fabric_shm_link *fabric_shm_link_of(const struct fabric_link *l)
{
    return l->state;
}

#endif
