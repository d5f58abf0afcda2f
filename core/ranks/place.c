/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators over nodes: see place.h. */
#include "core/ranks/place.h"

#include <math.h>

static unsigned node_of(const struct world *w, unsigned rank)
{
    return world_member(w, rank)->node;
}

/* Ranks in order of (node, local) or of (local, node). Nodes are numbered by first appearance, so rank 0 is first in both. */
void place_members(const struct world *w, enum place_fill fill, unsigned n, unsigned *members)
{
    unsigned nodes = world_nodes(w), size = world_size(w), found = 0;
    unsigned outer = fill == PLACE_FILL_NODE ? nodes : size;

    for (unsigned i = 0; i < outer && found < n; i++)
        for (unsigned rank = 0; fill == PLACE_FILL_NODE && rank < size && found < n; rank++)
            if (node_of(w, rank) == i)
                members[found++] = rank;
    for (unsigned local = 0; fill == PLACE_FILL_RANK && local < size && found < n; local++)
        for (unsigned node = 0; node < nodes && found < n; node++)
            for (unsigned rank = 0; rank < size && found < n; rank++)
                if (node_of(w, rank) == node && world_member(w, rank)->local == local)
                    members[found++] = rank;
}

static unsigned on_node(const struct world *w, const unsigned *members, unsigned n, unsigned node)
{
    unsigned count = 0;

    for (unsigned i = 0; i < n; i++)
        count += node_of(w, members[i]) == node;
    return count;
}

unsigned place_nodes(const struct world *w, const unsigned *members, unsigned n, unsigned *most,
                     unsigned *fewest)
{
    unsigned nodes = 0;

    *most = *fewest = 0;
    for (unsigned node = 0; node < world_nodes(w); node++) {
        unsigned count = on_node(w, members, n, node);
        if (!count)
            continue;
        *most = count > *most ? count : *most;
        *fewest = !nodes || count < *fewest ? count : *fewest;
        nodes++;
    }
    return nodes;
}

/* The most members of one node whose next one, in the order of the communicator, is on another. */
static unsigned most_leaving(const struct world *w, const unsigned *members, unsigned n)
{
    unsigned most = 0;

    for (unsigned node = 0; node < world_nodes(w); node++) {
        unsigned out = 0, in = 0;
        for (unsigned i = 0; i < n; i++) {
            bool here = node_of(w, members[i]) == node;
            bool next = node_of(w, members[(i + 1) % n]) == node;
            out += here && !next;
            in += !here && next;
        }
        most = out > most ? out : most;
        most = in > most ? in : most;
    }
    return most;
}

/* Of all to all, the node whose link has the most to carry: m (n - m) is largest near half. */
static double most_crossing(const struct world *w, const unsigned *members, unsigned n)
{
    double most = 0;

    for (unsigned node = 0; node < world_nodes(w); node++) {
        double m = on_node(w, members, n, node);
        most = fmax(most, m * (n - m));
    }
    return most;
}

double place_bound(const struct world *w, enum collective_op op, const unsigned *members,
                   unsigned n)
{
    unsigned most, fewest, nodes = place_nodes(w, members, n, &most, &fewest);
    double all = n;

    if (nodes < 2)
        return NAN;
    switch (op) {
    case COLLECTIVE_BROADCAST:
        return 1;
    case COLLECTIVE_ALL_TO_ALL:
        return (all - 1) / most_crossing(w, members, n);
    case COLLECTIVE_SEND_RECEIVE:
        return 1.0 / most_leaving(w, members, n);
    default:
        return (all - 1) / all * nodes / (nodes - 1.0);
    }
}
