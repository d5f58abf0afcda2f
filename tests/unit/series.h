// SPDX-License-Identifier: Apache-2.0
// Simulated series of samples for the tests of the statistics: what real machines do, with known
// truth.
#ifndef PLUMB_TESTS_SERIES_H
#define PLUMB_TESTS_SERIES_H

#include "core/rng.h"
#include "tests/unit/unit.h"

static inline double series_student2(struct rng *r)
{
    double a = 2 * (rng_double(r) + 0x1p-54) - 1; // the quantile function of t with 2 degrees

    return a * sqrt(2 / (1 - a * a));
}

static inline double series_pareto15(struct rng *r)
{
    return pow(1 - rng_double(r), -1 / 1.5);
}

// AR(1) of standard normals, stationary from the first sample.
static inline void series_ar1(struct rng *r, double phi, double *x, size_t n)
{
    double state = rng_normal(r);

    for (size_t i = 0; i < n; i++) {
        x[i] = state;
        state = phi * state + sqrt(1 - phi * phi) * rng_normal(r);
    }
}

static inline void series_normal(struct rng *r, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = rng_normal(r);
}

static inline void series_lognormal(struct rng *r, double sigma, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = exp(sigma * rng_normal(r));
}

#endif
