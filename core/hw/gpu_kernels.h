/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels that a GPU module brings, by name, and the one argument of each: a struct, passed by
 * value. Plain C, included by the kernels themselves (CUDA C++) too; nothing but fixed-width types.
 *
 *   name                          argument            what it does
 *   spin                          gpu_spin_args       one thread waits for a word in host memory
 *   empty                         gpu_empty_args      nothing
 *   <op>_<type>_u<U>[_cs]         gpu_pass_args       a memory operation; see below
 *   chase                         gpu_chase_args      one thread follows a chain of addresses
 *   chase_cg                      gpu_chase_args      the same, round the first-level cache
 *   copy16                        gpu_copy_args       copies 16 bytes a step; all of it a multiple of 16
 *   copy1                         gpu_copy_args       copies bytes: any length and alignment
 *   fill                          gpu_fill_args       what gpu_values.h says, into arrays or matrices
 *
 * <op> is read, write, copy, scale, add or triad; <type> f32 or f64; U in 1, 2, 4, 8 is how many
 * 16-byte accesses a thread has in flight; _cs marks stores and loads as streaming (evict first).
 * All threads of the grid go over the arrays together (a grid-stride loop), so that any grid does.
 * Their loads go round the first-level cache: a pass over a set that L2 holds is served by L2. Those of
 * `chase` go through every cache, and nothing but a load is between one and the next.
 */
#ifndef PLUMB_CORE_HW_GPU_KERNELS_H
#define PLUMB_CORE_HW_GPU_KERNELS_H

#include <stdint.h>

struct gpu_spin_args {
    const volatile uint32_t *go; /* waits until it is `turn` or beyond (signed difference) */
    uint32_t turn;
    uint32_t *gave_up; /* set to 1 when it waited longer than limit_ns */
    uint64_t limit_ns;
};

struct gpu_empty_args {
    uint64_t unused;
};

/* write: dst = s; copy: dst = a; scale: dst = s a; add: dst = a + b; triad: dst = a + s b, rounded
 * once (fused). read: the 32-bit words of a, added as unsigned 64-bit numbers, passes times over; the
 * grid adds its sum to *sum. */
struct gpu_pass_args {
    void *dst;
    const void *a, *b;
    uint64_t bytes; /* of each array; a multiple of 16 */
    uint64_t passes;
    double scalar;
    uint64_t *sum;
};

/* Each 8-byte word of the chain holds the address of the next one, as the device sees it; `hops` loads
 * from the word at `start` on, then the address that the last one gave goes to *end. */
struct gpu_chase_args {
    const uint64_t *start;
    uint64_t hops;
    uint64_t *end;
};

struct gpu_copy_args {
    void *dst;
    const void *src;
    uint64_t bytes;
    uint64_t passes;
};

struct gpu_fill_args {
    void *dst;
    uint64_t count; /* elements */
    uint64_t first; /* number of the first one */
    uint64_t seed;
    uint32_t type; /* enum gpu_value */
    uint32_t kind; /* enum gpu_data */
};

#define GPU_KERNEL_UNROLLS 4 /* 1, 2, 4, 8 */

#endif
