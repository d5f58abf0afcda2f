/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between processes of one machine, through rings in memory that both have mapped. The
 * transport is wire_shm (wire.h); this is its inside, for its test and for wire_cma, which puts into
 * the rings where messages are.
 *
 * Each worker makes one memory: a head, and a ring for each link that comes in to it. Peers open it
 * by /proc/PID/fd, so that ranks need no common parent. The sender copies chunks of a message in
 * while the receiver copies others out.
 *
 * Who finds nothing to do spins a little, then sleeps on `events` in its own head (a worker that
 * polls never does); a peer that has put something in, or taken something out, wakes it if it
 * sleeps for that. Before it sleeps it says so and looks once more; the peer moves bytes and then
 * looks whether somebody sleeps: one of them sees the other.
 */
#ifndef PLUMB_CORE_WIRE_SHM_H
#define PLUMB_CORE_WIRE_SHM_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "core/group/channel.h"
#include "core/wire/wire.h"

/* After a system call each return from a function may cost some ns: what lies between the arrival
 * of a message and its count is one function. */
#define WIRE_INLINE inline __attribute__((always_inline))

#define WIRE_SHM_PAGE        4096u
#define WIRE_SHM_RING_MOST   ((size_t)1 << 20) /* bytes, chosen; a power of 2, as all rings are */
#define WIRE_SHM_RING_LEAST  ((size_t)16 << 10)
#define WIRE_SHM_RING_ASKED  ((size_t)64 << 20) /* at most, where it is asked for */
#define WIRE_SHM_RINGS_BYTES ((size_t)8 << 20)  /* of all rings of a worker, where they are many */
#define WIRE_SHM_BRIEF       ((size_t)48)       /* what is left of a cache line */
/* Where in the stream a short message ends, and how long it is. */
#define WIRE_SHM_BRIEF_OF(end, bytes) ((uint64_t)(end) << 6 | (bytes))
#define WIRE_SHM_CHUNK                ((size_t)64 << 10)
#define WIRE_SHM_FOR_DATA             1u /* who sleeps, for what: only that wakes it */
#define WIRE_SHM_FOR_ROOM             2u
/* who stands still looks so often whether the peer lives */
#define WIRE_SHM_LOOK_NS 50000000u

struct wire_shm_head { /* NOLINT(clang-analyzer-optin.performance.Padding): lines of their own */
    uint8_t token[CHANNEL_TOKEN_BYTES];
    bool polls;                             /* it never sleeps: nobody need look whether it does */
    _Alignas(64) _Atomic uint32_t events;   /* a futex */
    _Alignas(64) _Atomic uint32_t sleeping; /* for what; 0: it is awake */
};

/* A short message lies beside the number that tells of it, too, so that one cache line brings both.
 * That copy is the receiver's to use while brief_end says where in the stream it ends; it may be
 * gone, while the bytes in the ring are not. */
struct wire_shm_ring {
    _Alignas(64) _Atomic uint64_t written; /* bytes since the start */
    _Atomic uint64_t brief_end; /* WIRE_SHM_BRIEF_OF; 0: there is none, or it is being written */
    _Atomic uint64_t brief[WIRE_SHM_BRIEF / 8];
    _Alignas(64) _Atomic uint64_t read;
    _Alignas(64) _Atomic uint32_t attached; /* the sender has mapped it */
    _Atomic uint32_t sender_ended, receiver_ended;
    _Alignas(WIRE_SHM_PAGE) char data[];
};

/* What one thread writes each way, apart from what the other one does. */
struct wire_shm_link {
    _Alignas(64) struct wire_shm_ring *out; /* in the peer's memory */
    size_t out_bytes;                       /* of the ring */
    uint64_t out_read;                      /* as last seen: read again when it is used up */
    struct wire_posts out_posts;
    _Alignas(64) struct wire_shm_ring *in; /* in this worker's own */
    uint64_t in_written;                   /* as last seen */
    struct wire_posts in_posts;
    _Alignas(64) struct wire_shm_head *peer_head;
    size_t peer_map_bytes;
    bool owns_map;  /* else another link of the worker does */
    int peer_fd;    /* the number that it is there */
    int pid, pidfd; /* -1: not known */
};

/* Moves what it can of a link, one way. 1: something moved; 0: nothing; -errno. */
typedef int wire_shm_move_fn(struct wire_link *l, struct wire_shm_link *sl);

struct wire_shm_worker {
    wire_shm_move_fn *push, *pull;
    struct wire_shm_head *head; /* NULL: not made yet */
    size_t map_bytes, ring_bytes;
    int fd;                       /* until all peers have it */
    _Atomic uint64_t still_looks; /* since something moved */
    _Atomic uint64_t look_ns;     /* when it was last looked whether peers live */
};

static inline struct wire_shm_worker *wire_shm_of(const struct wire_worker *k)
{
    return k->state;
}

static inline struct wire_shm_link *wire_shm_link_of(const struct wire_link *l)
{
    return l->state;
}

/* Sent as it is. */
struct wire_shm_address {
    int32_t pid, fd;
    uint64_t map_bytes, ring_at, ring_bytes;
};

/* It, if it sleeps for that. */
void wire_shm_wake(struct wire_shm_head *head, uint32_t what);

/* ---- Hooks of struct wire_ops, for wire_cma as well ---- */

void wire_shm_worker(struct wire_worker *k, wire_shm_move_fn *push, wire_shm_move_fn *pull);
int wire_shm_link(struct wire_link *l);
int wire_shm_address(struct wire_link *l, void *address, size_t *len);
int wire_shm_join(struct wire *w, const void *const *addresses, const size_t *lens);
int wire_shm_send(struct wire_link *l, const void *at, size_t bytes);
int wire_shm_receive(struct wire_link *l, void *at, size_t bytes);
void wire_shm_retract(struct wire_link *l);
int wire_shm_progress(struct wire_worker *k, enum wire_side sides, uint64_t wait_ns);
int wire_shm_rail(struct wire *w, struct nic_rail *rail);
void wire_shm_close(struct wire *w);

#define WIRE_SHM_HOOKS                                                                             \
    .near = true, .ways = WIRE_CAN(WIRE_YIELD) | WIRE_CAN(WIRE_POLL), .link = wire_shm_link,       \
    .address = wire_shm_address, .receive = wire_shm_receive, .progress = wire_shm_progress,       \
    .retract = wire_shm_retract, .rail = wire_shm_rail

/* What w->rails says where there is no line. -EOPNOTSUPP: a device was asked for. */
int wire_shm_no_line(struct wire *w);
/* -ECONNRESET: the peer has ended while this link waits for it. */
int wire_shm_gone(struct wire_link *l);

#endif
