/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns: see pattern.h. */
#include "core/pattern.h"

#include <string.h>

#include "core/rng.h"

#define WORD   sizeof(uint64_t)
#define STAMPS 16u

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

void pattern_fill(void *at, size_t bytes, uint64_t seed)
{
    for (size_t i = 0; i < bytes; i += WORD) {
        uint64_t word = rng_splitmix64(&seed);
        memcpy((char *)at + i, &word, least(WORD, bytes - i));
    }
}

/* The first byte at which `bytes` of at and of word differ. */
static size_t first_difference(const char *at, uint64_t word, size_t bytes)
{
    char right[WORD];
    size_t i = 0;

    memcpy(right, &word, WORD);
    while (i < bytes && at[i] == right[i])
        i++;
    return i;
}

size_t pattern_check(const void *at, size_t bytes, uint64_t seed)
{
    for (size_t i = 0; i < bytes; i += WORD) {
        uint64_t word = rng_splitmix64(&seed);
        size_t n = least(WORD, bytes - i);
        if (memcmp((const char *)at + i, &word, n))
            return i + first_difference((const char *)at + i, word, n);
    }
    return PATTERN_RIGHT;
}

/* How many stamps there are, and how long they are. */
static size_t stamps(size_t bytes, size_t *len)
{
    *len = bytes < 2 ? bytes : bytes < 2 * WORD ? bytes / 2 : WORD;
    return least(STAMPS, bytes / *len);
}

/* Offset of stamp i of n: spread from the first byte to the last; they do not overlap. */
static size_t stamp_offset(size_t bytes, size_t len, size_t i, size_t n)
{
    return n < 2 ? 0 : (size_t)((unsigned __int128)(bytes - len) * i / (n - 1));
}

static uint64_t stamp_word(uint64_t number, size_t i)
{
    uint64_t state = number * STAMPS + i;

    return rng_splitmix64(&state);
}

void pattern_stamp(void *at, size_t bytes, uint64_t number)
{
    size_t len, n = stamps(bytes, &len);

    for (size_t i = 0; i < n; i++) {
        uint64_t word = stamp_word(number, i);
        memcpy((char *)at + stamp_offset(bytes, len, i, n), &word, len);
    }
}

size_t pattern_check_stamp(const void *at, size_t bytes, uint64_t number)
{
    size_t len, n = stamps(bytes, &len);

    for (size_t i = 0; i < n; i++) {
        size_t offset = stamp_offset(bytes, len, i, n);
        uint64_t word = stamp_word(number, i);
        if (memcmp((const char *)at + offset, &word, len))
            return offset + first_difference((const char *)at + offset, word, len);
    }
    return PATTERN_RIGHT;
}
