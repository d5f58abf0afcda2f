/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arrays in a GPU's memory that its memory kernels go over. Their entries follow from their
 * positions (gpu_kernels.h), so that they are made there and checked here, bit by bit, without a
 * copy of them.
 */
#ifndef PLUMB_BENCHES_MEMORY_GPU_ARRAYS_H
#define PLUMB_BENCHES_MEMORY_GPU_ARRAYS_H

#include "core/hw/gpu.h"
#include "core/hw/gpu_kernels.h"
#include "core/hw/host_kernels.h"

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
