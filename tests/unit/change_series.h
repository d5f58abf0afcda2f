/* SPDX-License-Identifier: Apache-2.0 */
/* Made-up series of runs for the tests of changes, after cmocka.h. */
#ifndef PLUMB_TESTS_CHANGE_SERIES_H
#define PLUMB_TESTS_CHANGE_SERIES_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "core/rng.h"
#include "harness/history/history.h"

#define N 60

struct found {
    struct change_point *points;
    size_t n;
};

static inline struct found find(const double *x, size_t n)
{
    struct found f;

    assert_int_equal(change_points(x, n, NULL, &f.points, &f.n), 0);
    return f;
}

/* Around 100, of 1 %. */
static inline void noise(double *x, size_t n, uint64_t seed)
{
    struct rng rng;

    rng_seed(&rng, seed);
    for (size_t i = 0; i < n; i++)
        x[i] = 100 * exp(0.01 * rng_normal(&rng));
}

static inline void step(double *x, size_t from, size_t n, double factor)
{
    for (size_t i = from; i < n; i++)
        x[i] *= factor;
}

#endif
