/* SPDX-License-Identifier: Apache-2.0 */
/* Random bytes that both ends of a transfer can make up and check: a function of seed and position. */
#ifndef PLUMB_CORE_PATTERN_H
#define PLUMB_CORE_PATTERN_H

#include <stddef.h>
#include <stdint.h>

#define PATTERN_RIGHT SIZE_MAX

/* The seed of what follows the first `offset` bytes (of 8) of a pattern: it can be made up in parts. */
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
