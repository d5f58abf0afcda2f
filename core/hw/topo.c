/* SPDX-License-Identifier: Apache-2.0 */
/* Topology: see topo.h. */
#include "core/hw/topo.h"

#include <errno.h>
#include <hwloc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

/* ---- Topology ---- */

struct topo {
    hwloc_topology_t hwloc;
    hwloc_cpuset_t usable; /* the affinity mask at start */
};

void topo_without_plugins(void)
{
    setenv("HWLOC_PLUGINS_PATH", "", 0);
}

int topo_open(struct topo **topo)
{
    struct topo *t = xcalloc(1, sizeof(*t));

    topo_without_plugins();
    if (hwloc_topology_init(&t->hwloc))
        goto free_topo;
    t->usable = hwloc_bitmap_alloc();
    if (!t->usable || hwloc_topology_load(t->hwloc))
        goto destroy;
    if (hwloc_get_cpubind(t->hwloc, t->usable, HWLOC_CPUBIND_PROCESS) ||
        hwloc_bitmap_iszero(t->usable))
        hwloc_bitmap_copy(t->usable, hwloc_topology_get_allowed_cpuset(t->hwloc));
    hwloc_bitmap_and(t->usable, t->usable, hwloc_topology_get_allowed_cpuset(t->hwloc));
    *topo = t;
    return 0;
destroy:
    hwloc_bitmap_free(t->usable);
    hwloc_topology_destroy(t->hwloc);
free_topo:
    free(t);
    return -EIO;
}

void topo_close(struct topo *topo)
{
    if (!topo)
        return;
    hwloc_bitmap_free(topo->usable);
    hwloc_topology_destroy(topo->hwloc);
    free(topo);
}

struct hwloc_topology *topo_hwloc(const struct topo *topo)
{
    return topo->hwloc;
}

unsigned topo_cpus(const struct topo *topo)
{
    return (unsigned)hwloc_bitmap_weight(topo->usable);
}

unsigned topo_cores(const struct topo *topo)
{
    unsigned reached = 0;
    hwloc_obj_t core = NULL;

    while ((core = hwloc_get_next_obj_by_type(topo->hwloc, HWLOC_OBJ_CORE, core)) != NULL)
        reached += hwloc_bitmap_intersects(core->cpuset, topo->usable) ? 1 : 0;
    return reached ? reached : topo_cpus(topo);
}

unsigned topo_nodes(const struct topo *topo)
{
    int n = hwloc_get_nbobjs_by_type(topo->hwloc, HWLOC_OBJ_NUMANODE);

    return n > 0 ? (unsigned)n : 1;
}

unsigned topo_node_id(const struct topo *topo, unsigned i)
{
    hwloc_obj_t node = hwloc_get_obj_by_type(topo->hwloc, HWLOC_OBJ_NUMANODE, i);

    return node ? node->os_index : 0;
}

int topo_node_of_cpu(const struct topo *topo, unsigned cpu)
{
    hwloc_obj_t node = NULL;

    while ((node = hwloc_get_next_obj_by_type(topo->hwloc, HWLOC_OBJ_NUMANODE, node)) != NULL)
        if (hwloc_bitmap_isset(node->cpuset, cpu))
            return (int)node->os_index;
    return -1;
}

/* Walks all cores in the machine's own order and takes CPU number `sibling` of each. */
static unsigned take_siblings(const struct topo *topo, hwloc_const_cpuset_t within,
                              unsigned sibling, unsigned n, unsigned *cpus)
{
    hwloc_obj_t core = NULL;
    unsigned taken = 0;

    while (taken < n &&
           (core = hwloc_get_next_obj_by_type(topo->hwloc, HWLOC_OBJ_CORE, core)) != NULL) {
        hwloc_bitmap_t mine = hwloc_bitmap_alloc();
        hwloc_bitmap_and(mine, core->cpuset, within);
        int cpu = hwloc_bitmap_first(mine);
        for (unsigned skip = 0; skip < sibling && cpu >= 0; skip++)
            cpu = hwloc_bitmap_next(mine, cpu);
        if (cpu >= 0)
            cpus[taken++] = (unsigned)cpu;
        hwloc_bitmap_free(mine);
    }
    return taken;
}

int topo_spread(const struct topo *topo, int node, unsigned n, unsigned *cpus)
{
    hwloc_bitmap_t within = hwloc_bitmap_dup(topo->usable);
    unsigned taken = 0, siblings = (unsigned)hwloc_bitmap_weight(within);

    if (node >= 0) {
        hwloc_obj_t at = hwloc_get_numanode_obj_by_os_index(topo->hwloc, (unsigned)node);
        if (at)
            hwloc_bitmap_and(within, within, at->cpuset);
        else
            hwloc_bitmap_zero(within);
    }
    if (hwloc_get_nbobjs_by_type(topo->hwloc, HWLOC_OBJ_CORE) > 0) {
        for (unsigned sibling = 0; taken < n && sibling < siblings; sibling++)
            taken += take_siblings(topo, within, sibling, n - taken, cpus + taken);
    } else {
        for (int cpu = hwloc_bitmap_first(within); cpu >= 0 && taken < n;
             cpu = hwloc_bitmap_next(within, cpu))
            cpus[taken++] = (unsigned)cpu;
    }
    hwloc_bitmap_free(within);
    return taken == n ? 0 : -ERANGE;
}

int topo_bind_self(const struct topo *topo, unsigned cpu)
{
    hwloc_bitmap_t one = hwloc_bitmap_alloc();
    int err = 0;

    hwloc_bitmap_only(one, cpu);
    if (hwloc_set_cpubind(topo->hwloc, one, HWLOC_CPUBIND_THREAD))
        err = -errno;
    hwloc_bitmap_free(one);
    return err;
}

void topo_unbind_self(const struct topo *topo)
{
    hwloc_set_cpubind(topo->hwloc, topo->usable, HWLOC_CPUBIND_THREAD);
}

uint64_t topo_cache_bytes(const struct topo *topo, unsigned level)
{
    int cpu = hwloc_bitmap_first(topo->usable);
    hwloc_obj_t at = hwloc_get_pu_obj_by_os_index(topo->hwloc, (unsigned)cpu);

    for (; at; at = at->parent)
        if (hwloc_obj_type_is_dcache(at->type) && at->attr->cache.depth == level)
            return at->attr->cache.size;
    return 0;
}

uint64_t topo_last_cache_bytes(const struct topo *topo)
{
    uint64_t sum = 0;

    for (int level = 5; level >= 1 && !sum; level--) {
        hwloc_obj_t cache = NULL;
        hwloc_obj_type_t type = (hwloc_obj_type_t)(HWLOC_OBJ_L1CACHE + level - 1);
        while ((cache = hwloc_get_next_obj_by_type(topo->hwloc, type, cache)) != NULL)
            if (hwloc_bitmap_intersects(cache->cpuset, topo->usable))
                sum += cache->attr->cache.size;
    }
    return sum;
}

const char *topo_cpus_text(const unsigned *cpus, unsigned n, char *text, size_t len)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();

    for (unsigned i = 0; i < n; i++)
        hwloc_bitmap_set(set, cpus[i]);
    if (hwloc_bitmap_list_snprintf(text, len, set) >= (int)len && len > 3)
        memcpy(text + len - 3, "..", 3);
    hwloc_bitmap_free(set);
    return text;
}

/* ---- Cache levels ---- */

#define LEVELS 5

uint64_t cache_share(const struct topo *topo, unsigned level, const unsigned *cpus, unsigned n)
{
    hwloc_obj_type_t type = (hwloc_obj_type_t)(HWLOC_OBJ_L1CACHE + level - 1);
    hwloc_obj_t cache = NULL;
    uint64_t least = UINT64_MAX;
    unsigned placed = 0;

    while ((cache = hwloc_get_next_obj_by_type(topo_hwloc(topo), type, cache)) != NULL) {
        unsigned inside = 0;
        for (unsigned i = 0; i < n; i++)
            inside += hwloc_bitmap_isset(cache->cpuset, cpus[i]) ? 1 : 0;
        if (inside && cache->attr->cache.size / inside < least)
            least = cache->attr->cache.size / inside;
        placed += inside;
    }
    return placed == n ? least : 0;
}

const char *cache_level(const struct topo *topo, const unsigned *cpus, unsigned n, uint64_t bytes)
{
    static const char *const names[LEVELS] = {"L1", "L2", "L3", "L4", "L5"};
    bool seen = false;

    for (unsigned level = 1; level <= LEVELS; level++) {
        uint64_t share = cache_share(topo, level, cpus, n);

        if (share && bytes <= share)
            return names[level - 1];
        seen = seen || share;
    }
    return seen ? "DRAM" : "";
}
