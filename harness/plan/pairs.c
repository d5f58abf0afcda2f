/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing pairs of GPUs: see pairs.h. */
#include "harness/plan/pairs.h"

#include <stdlib.h>

#include "core/rng.h"

static void take(bool *taken, unsigned n, unsigned from, unsigned to, unsigned *count)
{
    if (from == to || taken[from * n + to])
        return;
    taken[from * n + to] = true;
    ++*count;
}

static void take_fixed(bool *taken, unsigned n, unsigned *count)
{
    for (unsigned i = 0; i < n; i++) {
        take(taken, n, i, (i + 1) % n, count);
        take(taken, n, i, (i + n / 2) % n, count);
    }
}

bool *pairs_choose(unsigned n, uint64_t seed, unsigned *count)
{
    bool *taken = calloc((size_t)n * n + 1, sizeof(*taken));
    unsigned wanted = n * (n - 1);
    struct rng rng;

    *count = 0;
    if (!taken)
        return NULL;
    if (n > PAIRS_ALL) {
        take_fixed(taken, n, count);
        wanted = *count + 8 > PAIRS_SAMPLED ? *count + 8 : PAIRS_SAMPLED;
    } else {
        for (unsigned i = 0; i < n * n; i++)
            take(taken, n, i / n, i % n, count);
    }
    rng_seed(&rng, seed);
    while (*count < wanted)
        take(taken, n, (unsigned)rng_below(&rng, n), (unsigned)rng_below(&rng, n), count);
    return taken;
}
