/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seeded random numbers: the same seed gives the same numbers on every machine.
 *
 * The generator is xoshiro256** 1.0 by David Blackman and Sebastiano Vigna, its state filled from
 * one 64-bit seed by splitmix64 (https://prng.di.unimi.it/). It is fast and passes BigCrush; it is
 * not for secrets. A state belongs to one thread: give every thread its own, from its own seed.
 */
#ifndef PLUMB_CORE_RNG_H
#define PLUMB_CORE_RNG_H

#include <stddef.h>
#include <stdint.h>

struct rng {
    uint64_t s[4];
};

// One step of splitmix64: advances *state and returns the next number.
uint64_t rng_splitmix64(uint64_t *state);

// Fills the state from a seed; every seed is good, 0 too.
void rng_seed(struct rng *r, uint64_t seed);

// 64 random bits.
uint64_t rng_u64(struct rng *r);

// Uniform in [0, 1): the upper 53 bits, times 2^-53.
double rng_double(struct rng *r);

// Uniform in 0 .. n-1 without bias (Lemire 2019, "Fast random integer generation in an interval",
// doi:10.1145/3230636). Returns 0 where n is 0.
uint64_t rng_below(struct rng *r, uint64_t n);

// Standard normal (Marsaglia's polar method). Draws two uniforms or more for each number.
double rng_normal(struct rng *r);

// Fisher-Yates shuffle in place: each order is equally likely.
void rng_shuffle_u32(struct rng *r, uint32_t *a, size_t n);

/* The numbers 0 to n - 1 in random order, new memory: a cycle, since each order of all is one.
 * 0; -EINVAL: fewer than 2 or more than 2^32; -ENOMEM. */
int rng_order(uint32_t **order, uint64_t n, uint64_t seed);

/* Random bytes that both ends of a transfer can make up and check: a function of seed and
 * position. */

#define PATTERN_RIGHT SIZE_MAX

/* The seed of what follows the first `offset` bytes (of 8) of a pattern: it can be made up in
 * parts. */
static inline uint64_t pattern_after(uint64_t seed, size_t offset)
{
    return seed + offset / 8 * 0x9e3779b97f4a7c15u;
}

void pattern_fill(void *at, size_t bytes, uint64_t seed);
/* The offset of the first wrong byte, or PATTERN_RIGHT. */
size_t pattern_check(const void *at, size_t bytes, uint64_t seed);

/* Changes up to 16 words, the first and the last among them, to what belongs to message `number`:
 * cheap enough for every message, and a buffer that was not transferred anew is found. */
void pattern_stamp(void *at, size_t bytes, uint64_t number);
size_t pattern_check_stamp(const void *at, size_t bytes, uint64_t number);

#endif
