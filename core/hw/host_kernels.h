/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timed loops over host memory, one set for each vector unit, chosen at run time.
 *
 * Each kernel goes over its arrays `passes` times and has no branch on options. Bytes are counted
 * by the STREAM rule (J. D. McCalpin, https://www.cs.virginia.edu/stream/): what the program names,
 * each array once a pass. What the hardware moves in addition (the read of a line that a regular
 * store is about to fill: write-allocate) is not counted.
 *
 *   read   sum += a[i]         1 array
 *   write  c[i] = s            1
 *   copy   c[i] = a[i]         2
 *   scale  c[i] = s * a[i]     2
 *   add    c[i] = a[i] + b[i]  3
 *   triad  c[i] = a[i] + s * b[i]  3
 */
#ifndef PLUMB_CORE_HW_HOST_KERNELS_H
#define PLUMB_CORE_HW_HOST_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kernel_op {
    KERNEL_READ,
    KERNEL_WRITE,
    KERNEL_COPY,
    KERNEL_SCALE,
    KERNEL_ADD,
    KERNEL_TRIAD,
    KERNEL_OPS
};
enum kernel_type { KERNEL_F32, KERNEL_F64, KERNEL_TYPES };

/* Forms of the same loop. In the first-level cache the loop's own instructions are what limits it,
 * so it is unrolled; beyond, one vector at a time is as fast or faster (the prefetchers see each
 * stream in order). The non-temporal form has stores that go round the caches. */
enum kernel_form { KERNEL_NEAR, KERNEL_FAR, KERNEL_NT, KERNEL_FORMS };

/* Arrays start on a cache line (64 bytes) and are a multiple of this long: kernels have no tail. */
#define KERNEL_BLOCK 256u

#define KERNEL_STREAMS 3

struct kernel_args {
    void *dst;
    const void *a, *b;
    size_t bytes; /* of each array; a multiple of KERNEL_BLOCK */
    uint64_t passes;
    double scalar;
    /* out, of KERNEL_READ: all 64-bit words of a, added up modulo 2^64, passes times */
    uint64_t sum;
};

typedef void kernel_fn(struct kernel_args *args);

/* One vector unit. */
struct host_isa {
    const char *name; /* "avx512" */
    bool (*present)(void);
    kernel_fn *kernels[KERNEL_OPS][KERNEL_TYPES][KERNEL_FORMS]; /* NULL: there is none */
    /* KERNEL_READ of `a` in 1, 2, ... equal parts at once: what memory can deliver, at best, to an
     * operation that reads several arrays. Parts are whole blocks; what is over is left out. */
    kernel_fn *read_streams[KERNEL_STREAMS];
};

/* All that were built, widest first; NULL-terminated. */
extern const struct host_isa *const host_isas[];

/* The named one; NULL when this CPU has not got it. */
const struct host_isa *host_isa_find(const char *name);

/* The widest that is worth its width here: some CPUs carry out wide instructions in two halves, and
 * stream no faster or slower with them. Measures, in some milliseconds, whether loads from the
 * first-level cache gain over the next narrower unit. Never NULL. */
const struct host_isa *host_isa_best(void);

/* The same choice from the time that the same loads take with each of host_isas; UINT64_MAX: not
 * here. */
const struct host_isa *host_isa_worth(const uint64_t *ns);

/* Arrays that an operation goes over: what a pass moves is this many times kernel_args.bytes. */
unsigned kernel_arrays(enum kernel_op op);
bool kernel_stores(enum kernel_op op); /* it writes dst */

/* The vector units' tables, one from each host_kernels_*.c; host_kernels.c alone needs them. */

extern const struct host_isa host_isa_avx512, host_isa_avx2, host_isa_sse2, host_isa_neon,
    host_isa_generic;

/* The best that one core can do to copy a buffer within a process: what any way between two
 * processes is held against. */

/* Copies the same bytes `count` times. */
void copy_by_memcpy(void *dst, const void *src, size_t bytes, uint64_t count);

/* The best of several short runs of memcpy and of the copy kernels (every vector unit; stores that
 * are regular and non-temporal) by the calling thread, in GB/s of payload: each byte counts once. 0
 * where there is no memory for that. The buffers start on a cache line, `bytes` long; dst is
 * overwritten. */
double copy_ceiling(void *dst, const void *src, size_t bytes);

#endif
