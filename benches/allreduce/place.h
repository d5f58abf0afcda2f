/* SPDX-License-Identifier: Apache-2.0 */
/* Which ranks make a communicator, and what its nodes' links leave it at most. Pure. */
#ifndef PLUMB_BENCHES_ALLREDUCE_PLACE_H
#define PLUMB_BENCHES_ALLREDUCE_PLACE_H

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

/* Which machine each of them is on, from 0 by first appearance, whatever it calls itself there.
 * Returns how many. */
unsigned place_machines(const struct world *w, const unsigned *members, unsigned n,
                        unsigned *machine);

/*
 * The most busbw that the nodes' links leave to an operation. rates[node]: what that node's link carries each way, both at once; NULL: 1 each; NAN: not
 * known, then it bounds nothing, and no sum of all does. Of H nodes, n members, m of them on a
 * node, each link must carry, each way, of the vector:
 *
 *   allreduce                    all of it: out goes what this node adds, in comes what the others do. And all links together 2 (H-1) vectors: each
 *                                element needs H-1 messages to bring its terms together, and as many to tell the sum. Links of one rate: 2 (H-1)/H each. Not where switches add on the way (`on_the_way`): then each link's own
 *                                vector is all that must go through it
 *   reduce-scatter, all-gather   n-m blocks one way, m the other, 1/n of the vector each: max(m, n-m)/n
 *   broadcast                    the vector goes into each node once, or out of the root's: 1
 *   all-to-all                   m members send to n-m others, 1/n of the vector each: m (n-m)/n
 *   send-receive                 the vectors that leave, or enter, it
 *
 * In busbw, links of rate 1: (n-1)/n x H/(H-1); (n-1)/(n - the fewest m); 1; (n-1) / the most m (n-m); 1 / the most vectors.
 *
 * *slowest, where not NULL: the node whose own link is the first to be full. NAN where one node has them all, or no rate is known.
 */
double place_bound(const struct world *w, enum collective_op op, const unsigned *members,
                   unsigned n, const double *rates, bool on_the_way, unsigned *slowest);

#endif
