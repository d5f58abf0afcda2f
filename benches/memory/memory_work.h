/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the benchmark `memory` and the devices that it runs on share: its parameters, the names of
 * their values, and what is kept from point to point.
 */
#ifndef PLUMB_BENCHES_MEMORY_MEMORY_WORK_H
#define PLUMB_BENCHES_MEMORY_MEMORY_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/bench/bench.h"
#include "core/hw/gpu.h"
#include "core/hw/gpu_kernels.h"
#include "core/hw/host_kernels.h"

/* The launch shape of a memory kernel on a GPU: how many accesses a thread has in flight, whether
 * they are marked as streaming, threads in a block and blocks. Which one is best differs from
 * device to device, so it is searched for: all shapes once, the better ones again, the best of them
 * most often. */

struct gpu_shape {
    unsigned unroll; /* accesses of 16 bytes in flight: 1, 2, 4 or 8 */
    bool streaming;  /* marked "evict first" */
    unsigned block, grid;
};

/* What may be chosen from. */
struct gpu_tune_space {
    uint64_t bytes; /* of each array */
    unsigned sms;
    /* No more blocks than run at the same time, which a kernel that makes several passes
     * must have: else each block would make all its passes over its own few bytes before the
     * next one starts. */
    bool resident;
    /* Blocks of this shape (but for its grid) that run at once on one SM; 0: it does not run. */
    unsigned (*blocks_per_sm)(void *arg, const struct gpu_shape *shape);
    void *arg; /* of both calls */
    /* The time of a short run; 0 or -errno, which ends the search. */
    int (*time)(void *arg, const struct gpu_shape *shape, uint64_t *ns);
};

/* One access of 16 bytes a thread, 256 threads a block, blocks until all is covered (or, where
 * it must be, until the device is full): the kernel as one writes it first. 0; -EOPNOTSUPP:
 * does not run. */
int gpu_shape_plain(const struct gpu_tune_space *space, struct gpu_shape *shape);

struct gpu_tuned {
    struct gpu_shape shape;
    unsigned tried, of; /* shapes timed, of so many: fewer when the time was over */
    bool decided;       /* the search was neither cut short nor disturbed */
};

/* The fastest shape, the plain one among them, in about budget_ns (over 0). 0, or -errno of time(),
 * or -EOPNOTSUPP when no shape runs. */
int gpu_tune(const struct gpu_tune_space *space, uint64_t budget_ns, struct gpu_tuned *best);

/* A shape as a word, for a choice that a run keeps: "4x256x1056", "4x256x1056cs".
 * Reading one: false if no search of this space would try that shape. */
const char *gpu_shape_word(const struct gpu_shape *shape, char *text, size_t len);
bool gpu_shape_read(const struct gpu_tune_space *space, const char *word, struct gpu_shape *shape);

/* A shape that was found in this process: each is searched for once. */
struct gpu_tuning {
    char key[64]; /* device, kernel and size */
    struct gpu_tuned tuned;
};

enum { MEMORY_LATENCY = KERNEL_OPS }; /* the operation after those of enum kernel_op */
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
    int node, memory_node;  /* PLACEMENT_*, or the system's number */
    int level;              /* MEMORY_ANY_LEVEL: `size` says it */
    uint64_t threads, size; /* size: of all threads together, in bytes */
    const char *tuning;     /* "auto", or the choice of an earlier launch */
};

/* pt->bench_state: outlives the points. */
struct memory_session {
    const struct host_isa *isa; /* the best one of the host; NULL: not looked for yet */
    struct ceilings ceilings;   /* bandwidth of the host by size and placement */
    struct gpu_tuning *tunings; /* shapes that were found best */
    size_t n_tunings;
};

/* The host's default sizes, as the text of an option: 16K, 32K, ... up to four times the last cache
 * (256 MiB if the cache is hidden), and at most a quarter of the memory. Latency goes up to sixteen
 * times the last cache. */
const char *memory_host_sizes(void);
const char *memory_host_latency_sizes(void);

extern const struct device_work host_memory_work, gpu_memory_work;
int host_memory_possible(struct point *pt); /* of struct bench */

/* What the parts of memory on a GPU share: bandwidth (gpu_memory.c) and latency (gpu_latency.c). */

extern const struct device_work gpu_latency_work;

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

/* The arrays in a GPU's memory that its memory kernels go over. Their entries follow from their
 * positions (gpu_kernels.h), so that they are made there and checked here, bit by bit, without a
 * copy of them. */

/* Arrays start on a line of every cache, and are whole lines long. */
#define GPU_ARRAYS_LINE 128u
/* Up to here all entries are compared; beyond, 64 windows of a 64th of this, evenly spread. */
#define GPU_ARRAYS_CHECKED ((uint64_t)64 << 20)

struct gpu_arrays {
    struct gpu *gpu;
    struct gpu_stream *stream; /* the caller's: of filling, checking and small copies */
    enum kernel_op op;
    uint32_t type;  /* GPU_F32 or GPU_F64 */
    uint64_t bytes; /* of each array */
    uint64_t seed;
    uint64_t period;   /* bytes after which the entries repeat; 0: never. See gpu_arrays_open() */
    void *dst, *a, *b; /* NULL where the operation has none */
    uint64_t *sum;     /* a word in device memory that KERNEL_READ adds to */
    void *staging;     /* page-locked */
};

/* The bytes of each array, when all of them together may hold `size`. */
uint64_t gpu_arrays_bytes(enum kernel_op op, uint64_t size);

/* Takes the memory, fills what is read with random numbers and what is written with what is no
 * number, and clears the sum. What KERNEL_READ reads repeats after four times the second-level
 * cache (or 64 MiB), so that the host can know the sum of gigabytes. 0, or -errno with the
 * reason in gpu_error(). */
int gpu_arrays_open(struct gpu_arrays *x, struct gpu *gpu, struct gpu_stream *stream,
                    enum kernel_op op, enum kernel_type type, uint64_t size, uint64_t seed);
void gpu_arrays_close(struct gpu_arrays *x); /* a zeroed one is left alone */

/* Fills what is written with what is no number, again. */
int gpu_arrays_poison(struct gpu_arrays *x);

/* Is every entry that is looked at what the operation with this scalar leaves? 0; -EBADMSG with
 * *error; or -errno, with the reason in gpu_error(). Not for KERNEL_READ. */
int gpu_arrays_check(struct gpu_arrays *x, double scalar, char *error, size_t len);
uint64_t gpu_arrays_looked_at(const struct gpu_arrays *x); /* bytes of dst that are compared */

/* What one pass of KERNEL_READ adds, modulo 2^64. */
uint64_t gpu_arrays_sum(const struct gpu_arrays *x);
int gpu_arrays_clear_sum(struct gpu_arrays *x);
int gpu_arrays_read_sum(struct gpu_arrays *x, uint64_t *sum); /* what is there now */

/* For tests: spoils the last entry of what is checked, or of what is read. */
int gpu_arrays_spoil(struct gpu_arrays *x);

#endif
