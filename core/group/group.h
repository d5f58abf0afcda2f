/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How processes find each other and act together. Here: this process (rank 0) and one peer that it
 * forks (rank 1), which share a page of control and what the caller wants to share.
 *
 * The peer lives and dies with its parent: the kernel kills it when the parent dies, however that
 * comes about. A peer that dies, fails or stands still ends a wait in the parent with an error.
 */
#ifndef PLUMB_CORE_GROUP_GROUP_H
#define PLUMB_CORE_GROUP_GROUP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/hw/topo.h"

struct group;

/* CLOCK_MONOTONIC_RAW is one clock for all processes of a machine, so times of both ranks
 * compare. */
struct group_times {
    uint64_t begin_ns;   /* this rank began to send, or to wait */
    uint64_t arrived_ns; /* the last byte for this rank was in its buffer; 0: it received none */
};

/* What both ranks run together, after a common start. Returns 0 or -errno; after an error the peer
 * is gone. */
typedef int group_fn(struct group *g, void *arg, uint64_t count, struct group_times *times);

/* Forks the peer. Both are bound to their CPUs; `arg` is what group_run() hands to the functions,
 * in the peer as it was at the fork; `shared_bytes` of zeroed memory are common. 0 or -errno. */
int group_open(struct group **g, const struct topo *topo, const unsigned cpus[2], void *arg,
               size_t shared_bytes);
void group_close(struct group *g); /* ends the peer and waits for it; NULL is left alone */

unsigned group_rank(const struct group *g);
pid_t group_peer(const struct group *g); /* the other one's process */
void *group_shared(const struct group *g);

/* Rank 0: both run fn(g, arg, count, &times[rank]). 0, or the first error: fn's own, the peer's,
 * -ECONNRESET when the peer died, -ETIMEDOUT when nothing moved for GROUP_STILL_NS. */
int group_run(struct group *g, group_fn *fn, uint64_t count, struct group_times times[2]);

#define GROUP_STILL_NS 8000000000u

/* One turn of a loop that waits for the other rank: spins, now and then lets others run and looks
 * whether the other is still there. Start with a zeroed one; zero it when something moved. 0 or an
 * error as above. */
struct group_wait {
    uint64_t turns, since_ns;
};
int group_pause(struct group *g, struct group_wait *wait);

#endif
