/* SPDX-License-Identifier: Apache-2.0 */
/* Placement: see placement.h. */
#include "core/placement.h"

#include <errno.h>
#include <hwloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/units.h"

struct word {
    const char *name;
    int value;
};

static int parse(const char *text, const struct word *words, size_t n, void *value, char *error,
                 size_t len)
{
    uint64_t number;
    int *out = value;

    for (size_t i = 0; i < n; i++)
        if (!strcmp(text, words[i].name)) {
            *out = words[i].value;
            return 0;
        }
    if (!units_parse_u64(text, &number) && number <= 65535) {
        *out = (int)number;
        return 0;
    }
    snprintf(error, len, "'%s' is not a node: a number", text);
    for (size_t i = 0; i < n; i++)
        snprintf(error + strlen(error), len - strlen(error), " or %s", words[i].name);
    return -EINVAL;
}

int placement_parse_node(const char *text, void *value, char *error, size_t len)
{
    static const struct word words[] = {{"any", PLACEMENT_ANY}};

    return parse(text, words, 1, value, error, len);
}

int placement_parse_memory(const char *text, void *value, char *error, size_t len)
{
    static const struct word words[] = {{"local", PLACEMENT_LOCAL}, {"remote", PLACEMENT_REMOTE}};

    return parse(text, words, 2, value, error, len);
}

/* Usable cores of a node; with `node` < 0 all. */
static unsigned cores_of(const struct topo *topo, int node)
{
    hwloc_topology_t hwloc = topo_hwloc(topo);
    hwloc_obj_t at = node < 0 ? NULL : hwloc_get_numanode_obj_by_os_index(hwloc, (unsigned)node);
    unsigned n = topo_cores(topo);

    if (node >= 0) {
        int inside =
            at ? hwloc_get_nbobjs_inside_cpuset_by_type(hwloc, at->cpuset, HWLOC_OBJ_CORE) : 0;
        n = inside > 0 && (unsigned)inside < n ? (unsigned)inside : n;
    }
    return n;
}

static bool has_node(const struct topo *topo, int node)
{
    for (unsigned i = 0; i < topo_nodes(topo); i++)
        if ((int)topo_node_id(topo, i) == node)
            return true;
    return false;
}

/* Another node than the one that all CPUs are on; -1 when there is none. */
static int other_node(const struct topo *topo, const struct placement *p)
{
    int mine = topo_node_of_cpu(topo, p->cpus[0]);

    for (unsigned i = 1; i < p->threads; i++)
        if (topo_node_of_cpu(topo, p->cpus[i]) != mine)
            return -1;
    for (unsigned i = 0; mine >= 0 && i < topo_nodes(topo); i++)
        if ((int)topo_node_id(topo, i) != mine)
            return (int)topo_node_id(topo, i);
    return -1;
}

static int resolve_memory(const struct topo *topo, int memory, struct placement *p, char *error,
                          size_t len)
{
    p->memory_node = memory;
    if (memory >= 0 && !has_node(topo, memory)) {
        snprintf(error, len, "this machine has no NUMA node %d for memory", memory);
        return -EOPNOTSUPP;
    }
    if (memory != PLACEMENT_REMOTE)
        return 0;
    p->memory_node = other_node(topo, p);
    if (p->memory_node >= 0)
        return 0;
    if (topo_nodes(topo) < 2)
        snprintf(error, len, "no remote memory: this machine shows one NUMA node");
    else
        snprintf(error, len,
                 "the threads are on several NUMA nodes, so no memory is remote to "
                 "all: choose one with --node");
    return -EOPNOTSUPP;
}

int placement_resolve(const struct topo *topo, unsigned threads, int node, int memory,
                      struct placement *p, char *error, size_t len)
{
    *p = (struct placement){.threads = threads};
    if (node >= 0 && !has_node(topo, node)) {
        snprintf(error, len, "this machine has no NUMA node %d for threads", node);
        return -EOPNOTSUPP;
    }
    if (!threads)
        p->threads = cores_of(topo, node);
    p->cpus = calloc(p->threads, sizeof(*p->cpus));
    if (!p->cpus) {
        snprintf(error, len, "out of memory");
        return -ENOMEM;
    }
    while (!threads && p->threads > 1 && topo_spread(topo, node, p->threads, p->cpus))
        p->threads--; /* the affinity mask leaves fewer on this node */
    if (topo_spread(topo, node, p->threads, p->cpus)) {
        snprintf(error, len, "%u threads, but only %u CPUs may be used%s", p->threads,
                 topo_cpus(topo), node >= 0 ? ", on this node fewer" : "");
        return -EOPNOTSUPP;
    }
    return resolve_memory(topo, memory, p, error, len);
}

void placement_release(struct placement *p)
{
    free(p->cpus);
    *p = (struct placement){0};
}
