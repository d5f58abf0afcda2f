/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one member does in one operation of ours: a list of actions. Pure: no clock, no transport, no memory of the operation; what
 * engine.h runs over a fabric can be run over nothing at all by a test.
 *
 * Actions on one link (the same peer, the same way) happen in the order of the list, and the peer's list has their counterparts in the same order with the same
 * counts. Beyond that order comes from data alone: an action begins when what it reads has been written by those before it in the list, and
 * what it writes has been read by those before it. Everything else may go on at the same time.
 *
 * Algorithms, n members, S bytes, a + S b a message:
 *
 *   ring      reduce-scatter then all-gather around the ring: 2 (n-1) a + 2 (n-1)/n S b, on any n (Patarasuk and Yuan, 2009)
 *   halving   reduce-scatter by recursive halving, all-gather by recursive doubling: 2 log2(n) a + 2 (n-1)/n S b (Rabenseifner, 2004); n that is no
 *             power of two: the members beyond it hand their vector to a partner first, and get the result at the end
 *   doubling  whole vectors exchanged by recursive doubling: log2(n) (a + S b): for small ones; has no reduce-scatter
 *   broadcast: a chain (ring), a binomial tree (halving, doubling); all-to-all: n - 1 exchanges, with m + k and m - k in step k; send-receive: one
 */
#ifndef PLUMB_CORE_COLLECTIVE_SCHEDULE_H
#define PLUMB_CORE_COLLECTIVE_SCHEDULE_H

#include "core/collective/collective.h"

enum schedule_algorithm { SCHEDULE_RING, SCHEDULE_HALVING, SCHEDULE_DOUBLING };

enum action_kind {
    ACTION_SEND,    /* elements of `source` from `from` on to peer */
    ACTION_RECEIVE, /* from peer to `target` from `first` on */
    ACTION_REDUCE,  /* from peer: target[first] = source[from] (+) what came */
    ACTION_COPY,    /* target[first] = source[from] */
};
/* Three places of elements, none of which overlaps another. In place there is no input: the result
 * is the one vector. */
enum action_space { SPACE_INPUT, SPACE_RESULT, SPACE_SCRATCH, SPACES };

struct action {
    uint8_t kind, source, target;
    uint32_t peer; /* member */
    uint64_t from; /* the first element of source */
    uint64_t first, count;
};

struct schedule {
    struct action *actions;
    size_t n, room;
    unsigned members, me;
    uint64_t scratch; /* elements of scratch that the actions use */
    uint64_t longest; /* no message of any member is longer, in elements: the same in all members */
    /* That the whole vector makes, each segment passed on as soon as it has come (a chain); 1 where
     * no member waits for more. The same in all members. */
    unsigned hops;
};

/* count as in collective.h. In place all positions are those of the one vector, and what would copy
 * an element to itself is left out. 0, -ENOMEM, or -EOPNOTSUPP: this algorithm has no such op.
 * Release it in any case. */
int schedule_make(struct schedule *s, enum schedule_algorithm algorithm, enum collective_op op,
                  uint64_t count, unsigned members, unsigned me, bool in_place);
void schedule_release(struct schedule *s);

/* A barrier: who has got an element of everyone knows that everyone has come (Bruck, 1997:
 * ceil(log2 n) messages each way). The result: `members` elements, this member's own first. 0 or
 * -ENOMEM. */
int schedule_barrier(struct schedule *s, unsigned members, unsigned me);

/* Elements that go to and come from a peer. */
uint64_t schedule_sent(const struct schedule *s, unsigned peer);
uint64_t schedule_received(const struct schedule *s, unsigned peer);

#endif
