/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of a point, where they are those of a model, and its members: see work.h. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benches/allreduce/work.h"
#include "core/hw/machine.h"

/* ---- Models' gradients ---- */

int buckets_fuse(const struct model *m, size_t element_bytes, uint64_t bucket_bytes,
                 struct collective_call *calls, size_t most, size_t *n)
{
    uint64_t first = 0, count = 0;

    *n = 0;
    if (!element_bytes)
        return -EINVAL;
    for (size_t i = m->n_layers; i-- > 0;) {
        if (m->layers[i].kind != MODEL_TABLE)
            count += m->layers[i].parameters;
        if (!count || (count * element_bytes < bucket_bytes && i > 0))
            continue;
        if (*n == most)
            return -E2BIG;
        calls[(*n)++] = (struct collective_call){first, count};
        first += count;
        count = 0;
    }
    return 0;
}

/* ---- Communicators over nodes ---- */

static unsigned node_of(const struct world *w, unsigned rank)
{
    return world_member(w, rank)->node;
}

/* Ranks in order of (node, local) or of (local, node). Nodes are numbered by first appearance, so
 * rank 0 is first in both. */
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

static bool on_one_machine(const struct world_member *a, const struct world_member *b)
{
    return a->node == b->node || machine_same(a->machine, b->machine);
}

unsigned place_machines(const struct world *w, const unsigned *members, unsigned n,
                        unsigned *machine)
{
    unsigned machines = 0;

    for (unsigned i = 0; i < n; i++) {
        unsigned k = 0;
        while (k < i && !on_one_machine(world_member(w, members[k]), world_member(w, members[i])))
            k++;
        machine[i] = k < i ? machine[k] : machines++;
    }
    return machines;
}

/* Vectors that a ring's neighbours send out of the node, or into it: whichever are more. */
static unsigned crossing(const struct world *w, const unsigned *members, unsigned n, unsigned node)
{
    unsigned out = 0, in = 0;

    for (unsigned i = 0; i < n; i++) {
        bool here = node_of(w, members[i]) == node;
        bool next = node_of(w, members[(i + 1) % n]) == node;
        out += here && !next;
        in += !here && next;
    }
    return out > in ? out : in;
}

/* Of the vector, what must go through this node's link one way, the fuller one. */
static double load(const struct world *w, enum collective_op op, const unsigned *members,
                   unsigned n, unsigned node)
{
    double all = n, here = on_node(w, members, n, node), there = all - here;

    switch (op) {
    case COLLECTIVE_REDUCE_SCATTER:
    case COLLECTIVE_ALL_GATHER:
        return fmax(here, there) / all;
    case COLLECTIVE_ALL_TO_ALL:
        return here * there / all;
    case COLLECTIVE_GATHER: /* all to the root's node, or all from it */
    case COLLECTIVE_SCATTER:
        return (node_of(w, members[0]) == node ? there : here) / all;
    case COLLECTIVE_SEND_RECEIVE:
        return crossing(w, members, n, node);
    default:
        return 1;
    }
}

double place_bound(const struct world *w, enum collective_op op, const unsigned *members,
                   unsigned n, const double *rates, bool on_the_way, unsigned *slowest)
{
    double least = INFINITY, sum = 0;
    unsigned nodes = 0, unknown = 0;

    for (unsigned node = 0; node < world_nodes(w); node++) {
        double rate = rates ? rates[node] : 1;
        if (!on_node(w, members, n, node))
            continue;
        nodes++;
        unknown += isnan(rate);
        if (isnan(rate))
            continue;
        double full = rate / load(w, op, members, n, node);
        if (slowest && full < least)
            *slowest = node;
        least = fmin(least, full);
        sum += rate;
    }
    if (nodes < 2 || unknown == nodes)
        return NAN;
    if (op == COLLECTIVE_ALLREDUCE && !unknown && !on_the_way)
        least = fmin(least, sum / (2 * (nodes - 1.0)));
    return least * collective_bus_factor(op, n);
}
