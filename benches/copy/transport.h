/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How bytes reach a peer. A transport is a const table of operations over a group of two processes;
 * each end sends a stream of bytes in order and receives another.
 *
 * Order of calls: open before the group is forked, attach in both processes, then push and pull,
 * then close in the process that opened it.
 */
#ifndef PLUMB_BENCHES_COPY_TRANSPORT_H
#define PLUMB_BENCHES_COPY_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/group/group.h"

struct transport {
    const struct transport_ops *ops;
    struct group *group; /* from attach on */
    bool both;           /* both ranks send; else only rank 0 */
    void *state;         /* the table's own */
};

struct transport_ops {
    const char *name;

    /* Before the fork. 0 or -errno. */
    int (*open)(struct transport *t);
    /* After it, in both ranks; t->group is set. 0 or -errno. */
    int (*attach)(struct transport *t);

    /* Hands over bytes to the peer, or takes some that came. Returns how many are through (of a
     * push: the memory may be used again), 0 when nothing can move now, or -errno; -ECONNRESET: the
     * peer closed its end. May block where only one rank sends and the system wakes it when the
     * peer moves or dies. A message must be pushed and pulled with the same length. */
    ssize_t (*push)(struct transport *t, const void *data, size_t len);
    ssize_t (*pull)(struct transport *t, void *data, size_t len);

    /* For evidence: what it is made of; "" when there is nothing to say. Returns text. */
    const char *(*describe)(const struct transport *t, char *text, size_t len);

    /* Undoes open, also one that failed half-way, and attach in this process. */
    void (*close)(struct transport *t);
};

extern const struct transport_ops transport_shm; /* through a ring of shared memory: two copies */
extern const struct transport_ops transport_pipe;
extern const struct transport_ops transport_cma;       /* the receiver reads the sender's memory */
extern const struct transport_ops transport_cma_write; /* the sender writes the receiver's */

/* One side of `count` messages of `bytes` from `out`, where not NULL, and to `in`, where
 * not NULL, at the same time. *arrived_ns is set when the last one is in. 0 or -errno,
 * of group_pause() too. */
int transport_move(struct transport *t, const void *out, void *in, size_t bytes, uint64_t count,
                   uint64_t *arrived_ns);

#endif
