/* SPDX-License-Identifier: Apache-2.0 */
/* Which ranks make a communicator, and what its nodes' links leave it at most. Pure. */
#ifndef PLUMB_CORE_RANKS_PLACE_H
#define PLUMB_CORE_RANKS_PLACE_H

#include "core/collective/collective.h"

enum place_fill {
    PLACE_FILL_NODE, /* a node is filled before the next one: 0 0 1 1 2 2 */
    PLACE_FILL_RANK, /* one rank of each node in turn: 0 1 2 0 1 2 */
};

/* The first n ranks in that order, rank 0 of the world first. n at most the world's size. */
void place_members(const struct world *w, enum place_fill fill, unsigned n, unsigned *members);
/* How many nodes they are on, and the most and the fewest on one of them. */
unsigned place_nodes(const struct world *w, const unsigned *members, unsigned n, unsigned *most,
                     unsigned *fewest);

/*
 * The busbw that a link of rate 1 at each node, both ways at once, leaves to an operation: no algorithm that sends what it must through it is faster, only a
 * network that reduces on the way. H nodes, n members, m of them on the node with the most:
 *
 *   allreduce, reduce-scatter, all-gather   each node exchanges (H-1)/H of the vector each way: (n-1)/n x H/(H-1)
 *   broadcast                               the vector goes into each node once: 1
 *   all-to-all                              m members send to n - m others, 1/n of the vector each: (n-1) / (m (n-m))
 *   send-receive                            1 / the most vectors that leave, or enter, a node
 *
 * NAN where one node has them all.
 */
double place_bound(const struct world *w, enum collective_op op, const unsigned *members,
                   unsigned n);

#endif
