/* SPDX-License-Identifier: Apache-2.0 */
/* Which level of the memory hierarchy a working set lives in. */
#ifndef PLUMB_CORE_CACHE_LEVEL_H
#define PLUMB_CORE_CACHE_LEVEL_H

#include <stdint.h>

#include "core/topo.h"

/* "L1", "L2", ... : the first level at which every cache holds what the threads on its CPUs touch,
 * `bytes` each; "DRAM" when none does; "" when no cache is visible (guests may hide them). */
const char *cache_level(const struct topo *topo, const unsigned *cpus, unsigned n, uint64_t bytes);

#endif
