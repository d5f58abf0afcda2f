/* SPDX-License-Identifier: Apache-2.0 */
/* Cache levels: see cache_level.h. */
#include "core/cache_level.h"

#include <hwloc.h>
#include <stdbool.h>

#define LEVELS 5

/* Do all caches of a level hold their threads' sets? *seen: there is such a cache at all. */
static bool level_holds(hwloc_topology_t hwloc, unsigned level, const unsigned *cpus, unsigned n,
                        uint64_t bytes, bool *seen)
{
    hwloc_obj_type_t type = (hwloc_obj_type_t)(HWLOC_OBJ_L1CACHE + level - 1);
    hwloc_obj_t cache = NULL;
    unsigned placed = 0;

    while ((cache = hwloc_get_next_obj_by_type(hwloc, type, cache)) != NULL) {
        unsigned inside = 0;
        for (unsigned i = 0; i < n; i++)
            inside += hwloc_bitmap_isset(cache->cpuset, cpus[i]) ? 1 : 0;
        if (inside && inside * bytes > cache->attr->cache.size)
            placed = n + 1; /* one does not */
        *seen = *seen || (inside && cache->attr->cache.size);
        placed += inside;
    }
    return placed == n;
}

const char *cache_level(const struct topo *topo, const unsigned *cpus, unsigned n, uint64_t bytes)
{
    static const char *const names[LEVELS] = {"L1", "L2", "L3", "L4", "L5"};
    bool seen = false;

    for (unsigned level = 1; level <= LEVELS; level++)
        if (level_holds(topo_hwloc(topo), level, cpus, n, bytes, &seen))
            return names[level - 1];
    return seen ? "DRAM" : "";
}
