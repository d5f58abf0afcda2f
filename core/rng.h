// SPDX-License-Identifier: Apache-2.0
// Seeded random numbers: the same seed gives the same numbers on every machine.
//
// The generator is xoshiro256** 1.0 by David Blackman and Sebastiano Vigna, its state filled from
// one 64-bit seed by splitmix64 (https://prng.di.unimi.it/). It is fast and passes BigCrush; it is
// not for secrets. A state belongs to one thread: give every thread its own, from its own seed.
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

#endif
