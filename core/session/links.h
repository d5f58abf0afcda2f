/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The links between nodes: what operations need of them at least, and what they carry at most. The
 * first is pure; `members` are ranks of the world.
 */
#ifndef PLUMB_CORE_SESSION_LINKS_H
#define PLUMB_CORE_SESSION_LINKS_H

#include <stdbool.h>

#include "core/collective/collective.h"
#include "core/group/world.h"
#include "core/session/session.h"

/* How many nodes they are on, and the most and the fewest on one of them. */
unsigned links_nodes(const struct world *w, const unsigned *members, unsigned n, unsigned *most,
                     unsigned *fewest);

/* What must leave all nodes together. `on_the_way`: switches add. Here and below members[0] is the
 * root, where the op has one. */
double links_total(const struct world *w, enum collective_op op, const unsigned *members,
                   unsigned n, bool on_the_way);

/*
 * The most busbw that the nodes' links leave to an operation. rates[node]: what that node's link
 * carries each way, both at once; NULL: 1 each; NAN: not known, then it bounds nothing, and no sum
 * of all does. Of H nodes, n members, m of them on a node, each link must carry, each way, of the
 * vector:
 *
 *   allreduce                    all of it: out goes what this node adds, in comes what the others
 *                                do. And all links together 2 (H-1) vectors: each element needs H-1
 *                                messages to bring its terms together, and as many to tell the sum.
 *                                Links of one rate: 2 (H-1)/H each. Not where switches add on the
 *                                way (`on_the_way`): then each link's own vector is all that must
 *                                go through it
 *   reduce-scatter, all-gather   n-m blocks one way, m the other, 1/n of the vector each: max(m,
 *                                n-m)/n
 *   broadcast, reduce            the vector goes into each node once, or out of the root's: 1; or
 *                                the other way
 *   gather, scatter              of the root's node n-m blocks, of any other m, 1/n of the vector
 *                                each: (n-m)/n, m/n
 *   all-to-all                   m members send to n-m others, 1/n of the vector each: m (n-m)/n
 *   send-receive                 the vectors that leave, or enter, it
 *
 * In busbw, links of rate 1: (n-1)/n x H/(H-1); (n-1)/(n - the fewest m); 1; (n-1) / the most m
 * (n-m); 1 / the most vectors.
 *
 * *slowest, where not NULL: the node whose own link is the first to be full. NAN where one node has
 * them all, or no rate is known.
 */
double links_bound(const struct world *w, enum collective_op op, const unsigned *members,
                   unsigned n, const double *rates, bool on_the_way, unsigned *slowest);

#define LINKS_SOURCE_BYTES 616
#define LINKS_TOO_EARLY    "the case ended before its links were looked at"

/* What the links of a node carry together, each way. */
struct links_rate {
    unsigned node;    /* the world's number */
    double gbps;      /* GB/s; NAN: not known */
    bool may_add;     /* switches behind it may add, and nobody says whether they did */
    const char *link; /* the column limit_link; NULL: none */
    char source[LINKS_SOURCE_BYTES]; /* "node0's eth0: 10 Gb/s ..."; or why it is not known */
};

/* After session_end(): of one of session_nodes(). `own`: the backend's ranks tell their links;
 * else the node's counters show which carried the bytes. */
void links_rate(const struct session *s, const struct world *w, const unsigned *members, unsigned n,
                bool own, const struct session_node *node, struct links_rate *rate);
/* Some rank's bytes went over no real link. */
bool links_simulated(const struct session *s, unsigned n);

#endif
