/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A wire within one process that is as awkward as a wire may be: bytes dribble in, sends are told to be through long after, memory that was
 * posted holds garbage until its data comes; how, a seed says. It finds who touches memory that is the wire's: what changes between post
 * and end is counted in `misused`.
 */
#ifndef PLUMB_TESTS_TWISTED_WIRE_H
#define PLUMB_TESTS_TWISTED_WIRE_H

#include "core/rng.h"
#include "core/wire/wire.h"

struct twisted_message {
    unsigned char *at, *copy; /* the memory, and what it should hold until it is through */
    size_t bytes;
};

struct twisted_queue {
    struct twisted_message all[WIRE_POSTS];
    unsigned first, n;
};

struct twisted_pipe { /* from one member to another */
    struct twisted_queue sends, receives;
    struct twisted_queue wire; /* what has been taken from the senders and not all delivered */
    unsigned taken;            /* of the sends */
    size_t moved,
        told; /* bytes: of the first on the wire delivered, of the first send told to be through */
};

struct twisted_net {
    unsigned n;
    struct rng rng;
    bool whole;                 /* messages come all at once (RDMA), else bit by bit */
    bool buffers;               /* sends get through before there is a receive for them (TCP) */
    unsigned laziness;          /* does nothing in so many of eight calls */
    struct twisted_pipe *pipes; /* n x n */
    struct wire **wires;
    struct world **worlds;
    unsigned misused, uneven; /* memory touched too early; messages whose ends differ in length */
};

/* Of wires that others open, too: they belong to the net that was opened last. */
extern const struct wire_ops twisted_ops;

void twisted_open(struct twisted_net *net, unsigned n, uint64_t seed);
void twisted_close(struct twisted_net *net);

#endif
