/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pairs of GPUs a plan takes where there are too many for all of them.
 *
 * Up to PAIRS_ALL GPUs: every one of the n (n - 1). Above: of the GPUs in the order of the bus,
 * each with the next one (that is where a shared switch is, and the step to the next switch), each
 * with the one half way round (far), and further ones drawn by the seed: PAIRS_SAMPLED in all, or 8
 * more than the fixed ones where those are as many. So every GPU is twice a source and twice a
 * destination, and the same seed gives the same pairs.
 */
#ifndef PLUMB_HARNESS_PAIRS_H
#define PLUMB_HARNESS_PAIRS_H

#include <stdbool.h>
#include <stdint.h>

#define PAIRS_ALL     8
#define PAIRS_SAMPLED 40

/* taken: n x n, [from * n + to], to be freed; NULL when memory is short. *count is how many. */
bool *pairs_choose(unsigned n, uint64_t seed, unsigned *count);

#endif
