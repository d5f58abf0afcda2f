/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the benchmark `memory` and the devices that it runs on share: its parameters, the names of
 * their values, and what is kept from point to point.
 */
#ifndef PLUMB_BENCHES_MEMORY_MEMORY_WORK_H
#define PLUMB_BENCHES_MEMORY_MEMORY_WORK_H

#include "benches/memory/gpu_tune.h"
#include "core/bench/bench.h"
#include "core/hw/host_kernels.h"

enum { MEMORY_LATENCY = KERNEL_OPS }; /* the operation after those of enum kernel_op */
enum { MEMORY_REGULAR, MEMORY_NT };
enum { MEMORY_BOTH, MEMORY_TUNED, MEMORY_PLAIN };
enum { MEMORY_KERNEL, MEMORY_DRIVER };
enum { MEMORY_SOUND, MEMORY_CORRUPT };
enum { MEMORY_ANY_LEVEL, MEMORY_DRAM = 5 }; /* between them: the caches L1 to L4 */

/* The words of options, in the order of their numbers; NULL after the last. */
extern const char *const memory_ops[];
extern const char *const memory_types[];
extern const char *const memory_pages[];
extern const char *const memory_isas[]; /* 0: the best one */
extern const char *const memory_launches[];
extern const char *const memory_levels[]; /* 0: any, the size is given */

struct memory_params {
    const char *device;
    int op, dtype, stores, pages, isa, launch, engine, inject;
    int node, memory_node; /* PLACEMENT_*, or the system's number */
    int level;              /* MEMORY_ANY_LEVEL: `size` says it */
    uint64_t threads, size; /* size: of all threads together, in bytes */
};

/* pt->bench_state: outlives the points. */
struct memory_session {
    const struct host_isa *isa; /* the best one of the host; NULL: not looked for yet */
    struct ceilings ceilings;   /* bandwidth of the host by size and placement */
    struct gpu_tunings tunings; /* shapes that were found best */
};

/* The host's default sizes, as the text of an option: 16K, 32K, ... up to four times the last cache
 * (256 MiB if the cache is hidden), and at most a quarter of the memory. Latency goes up to sixteen
 * times the last cache. */
const char *memory_host_sizes(void);
const char *memory_host_latency_sizes(void);

extern const struct device_work host_memory_work, gpu_memory_work;

#endif
