/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of memory on a GPU share: bandwidth (gpu_memory.c) and latency (gpu_latency.c). */
#ifndef PLUMB_BENCHES_MEMORY_GPU_MEMORY_H
#define PLUMB_BENCHES_MEMORY_GPU_MEMORY_H

#include "benches/memory/memory_work.h"
#include "core/hw/gpu.h"

extern const struct device_work gpu_latency_work;

/* Options that say nothing on a GPU, or nothing for this operation: their columns stay empty, and
 * one that was set is refused, with the reason. Series are there before. 0 or -EOPNOTSUPP. */
int gpu_memory_refuse(struct point *pt, const struct memory_params *p);

/* Opens the GPU of this point, and sets the columns that are the same for all operations. 0, or
 * -errno with the reason; -EOPNOTSUPP: the working set does not fit. */
int gpu_memory_open(struct point *pt, const struct memory_params *p, uint64_t set_bytes,
                    struct gpu **gpu);

/* The level that a working set lives in. "L2": it fits into half of it (some GPUs keep what is read
 * in each half, so that no more does); "": between half and all of it, or not known; else the
 * memory, by the width of its bus "HBM" (over 512 bits) or "DRAM". */
const char *gpu_memory_level(const struct gpu_facts *facts, uint64_t set_bytes);

/* The same of a chain of pointers that one SM follows: also "L1", up to 32 KiB, which every GPU's
 * holds; "" up to 512 KiB, which none's does. */
const char *gpu_latency_level(const struct gpu_facts *facts, uint64_t set_bytes);

#endif
