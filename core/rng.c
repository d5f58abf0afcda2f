/* SPDX-License-Identifier: Apache-2.0 */
/* xoshiro256** seeded by splitmix64, and what is drawn from it. */
#include "core/rng.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

uint64_t rng_splitmix64(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void rng_seed(struct rng *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        r->s[i] = rng_splitmix64(&seed);
}

static uint64_t rotate_left(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

uint64_t rng_u64(struct rng *r)
{
    uint64_t *s = r->s;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

double rng_double(struct rng *r)
{
    return (double)(rng_u64(r) >> 11) * 0x1.0p-53;
}

uint64_t rng_below(struct rng *r, uint64_t n)
{
    if (n == 0)
        return 0;
    uint64_t unfair = -n % n; // 2^64 mod n: as many low products must be drawn again
    unsigned __int128 product;

    do {
        product = (unsigned __int128)rng_u64(r) * n;
    } while ((uint64_t)product < unfair);
    return (uint64_t)(product >> 64);
}

double rng_normal(struct rng *r)
{
    double u, v, s;

    do {
        u = 2 * rng_double(r) - 1;
        v = 2 * rng_double(r) - 1;
        s = u * u + v * v;
    } while (s >= 1 || s == 0);
    return u * sqrt(-2 * log(s) / s);
}

void rng_shuffle_u32(struct rng *r, uint32_t *a, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)rng_below(r, i);
        uint32_t swap = a[i - 1];

        a[i - 1] = a[j];
        a[j] = swap;
    }
}

int rng_order(uint32_t **order, uint64_t n, uint64_t seed)
{
    struct rng rng;

    *order = NULL;
    if (n < 2 || n > UINT32_MAX)
        return -EINVAL;
    *order = malloc(n * sizeof(**order));
    if (!*order)
        return -ENOMEM;
    for (uint64_t i = 0; i < n; i++)
        (*order)[i] = (uint32_t)i;
    rng_seed(&rng, seed);
    rng_shuffle_u32(&rng, *order, n);
    return 0;
}

/* ---- Patterns ---- */

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
