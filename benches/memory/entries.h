/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the arrays of host memory hold: random numbers that follow from a seed, made as fast
 * as memory takes them, so that setting up and checking a gigabyte costs little more than
 * going over it.
 *
 * Entries are whole numbers from 1 to 1024, the scalar is a whole number up to 7: every result is
 * exact in f32, with or without fused multiply-add, and can be compared bit by bit.
 *
 * All memory here starts on a cache line (64 bytes) and is a multiple of 64 bytes long.
 */
#ifndef PLUMB_BENCHES_MEMORY_ENTRIES_H
#define PLUMB_BENCHES_MEMORY_ENTRIES_H

#include <stddef.h>
#include <stdint.h>

#include "core/hw/host_kernels.h"

/* Random bits. */
void entries_fill_bits(void *at, size_t bytes, uint64_t seed);

/* Entries. Returns the sum, modulo 2^64, of the 64-bit words that were made, not of those that
 * memory gives back. */
uint64_t entries_fill(void *at, size_t bytes, enum kernel_type type, uint64_t seed);

/* The first entry that is wrong. ENTRIES_GONE: what was read first was wrong, but no longer is. */
struct entries_wrong {
    enum entries_array { ENTRIES_A, ENTRIES_B, ENTRIES_DST, ENTRIES_GONE } array;
    size_t entry;
    double got, want;
};

/* Is every entry of `a` and `b` (NULL: there is none) what entries_fill() made of their seeds,
 * and every entry of dst what `op` makes of those with the scalar of `args`? 0; -EBADMSG with
 * *wrong. `op` stores. */
int entries_check(enum kernel_op op, enum kernel_type type, const struct kernel_args *args,
                  uint64_t seed_a, uint64_t seed_b, struct entries_wrong *wrong);

#endif
