/* SPDX-License-Identifier: Apache-2.0 */
/* Random bytes that both ends of a transfer can make up and check: a function of seed and position. */
#ifndef PLUMB_CORE_PATTERN_H
#define PLUMB_CORE_PATTERN_H

#include <stddef.h>
#include <stdint.h>

#define PATTERN_RIGHT SIZE_MAX

void pattern_fill(void *at, size_t bytes, uint64_t seed);
/* The offset of the first wrong byte, or PATTERN_RIGHT. */
size_t pattern_check(const void *at, size_t bytes, uint64_t seed);

/* Changes up to 16 words, the first and the last among them, to what belongs to message `number`:
 * cheap enough for every message, and a buffer that was not transferred anew is found. */
void pattern_stamp(void *at, size_t bytes, uint64_t number);
size_t pattern_check_stamp(const void *at, size_t bytes, uint64_t number);

#endif
