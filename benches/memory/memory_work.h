/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the benchmark `memory` and the devices that it runs on share: its parameters, the names of
 * their values, and what is kept from point to point.
 */
#ifndef PLUMB_BENCHES_MEMORY_MEMORY_WORK_H
#define PLUMB_BENCHES_MEMORY_MEMORY_WORK_H

#include "benches/memory/gpu_tune.h"
#include "core/bench.h"
#include "core/ceilings.h"
#include "core/hw/host_kernels.h"
#include "core/work.h"

enum { MEMORY_LATENCY = KERNEL_OPS }; /* the operation after those of enum kernel_op */
enum { MEMORY_REGULAR, MEMORY_NT };
enum { MEMORY_PAGES_DEFAULT = 1 }; /* thp */
enum { MEMORY_ISA_AUTO };
enum { MEMORY_BOTH, MEMORY_TUNED, MEMORY_PLAIN };
enum { MEMORY_KERNEL, MEMORY_DRIVER };
enum { MEMORY_SOUND, MEMORY_CORRUPT };

/* NULL-terminated, in the order of the enums. */
extern const char *const memory_ops[],
    *const memory_types[], *const memory_stores[], *const memory_pages[],
                                                       *const memory_isas[],
                                                           *const memory_launches[],
                                                               *const memory_engines[],
                                                                   *const memory_injects[];

struct memory_params {
    const char *device;
    int op, dtype, stores, pages, isa, launch, engine, inject;
    int node, memory_node; /* PLACEMENT_*, or the system's number */
    uint64_t threads, size;
};

/* pt->bench_state: outlives the points. */
struct memory_session {
    const struct host_isa *isa; /* the best one of the host; NULL: not looked for yet */
    struct ceilings ceilings;   /* bandwidth of the host by size and placement */
    struct gpu_tunings tunings; /* shapes that were found best */
};
int memory_open(struct point *ctx); /* 0 or -ENOMEM */
void memory_close(struct point *ctx);

/* The default sizes, as text of an option. The host's: 16K, 32K, ... up to 4 times the last cache, where
 * that is hidden 256 MiB; at most a quarter of the memory. */
const char *memory_host_sizes(void);
/* The same for latency alone: up to 16 times the last cache. */
const char *memory_host_latency_sizes(void);
/* For struct bench: the sizes of GPUs, where any is among the devices and no size is given: constant,
 * so that rows of different models can be compared; and those of latency, where that is the only one. */
int memory_defaults(struct opts *o);

extern const struct device_work host_memory_work, gpu_memory_work;

#endif
