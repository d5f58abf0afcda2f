/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of a point, where they are those of a model, and its members: see work.h. */
#include <errno.h>
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

static bool on_one_machine(const struct world_member *a, const struct world_member *b)
{
    return a->node == b->node || machine_same(a->machine, b->machine);
}

void place_root_first(const unsigned *members, unsigned size, unsigned each, unsigned root,
                      unsigned *out)
{
    for (unsigned i = 0; i < size; i++)
        out[i] = members[i / each];
    unsigned first = out[0];
    out[0] = out[root];
    out[root] = first;
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
