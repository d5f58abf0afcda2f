/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/selftest/rivals.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/stats.h"
#include "harness/decide/spread.h"

struct moments {
    double n, mean, variance;
};

static void moments_of(const struct side_samples *side, size_t runs, size_t launches,
                       struct moments *m)
{
    *m = (struct moments){.n = (double)(runs * launches)};
    for (size_t i = 0; i < runs; i++) {
        for (size_t l = 0; l < launches; l++)
            m->mean += side->runs[i].medians[l] / m->n;
    }
    for (size_t i = 0; i < runs; i++) {
        for (size_t l = 0; l < launches; l++)
            m->variance += pow(side->runs[i].medians[l] - m->mean, 2) / (m->n - 1);
    }
}

void rival_welch(const struct side_samples *a, const struct side_samples *b, size_t runs_a,
                 size_t launches, struct rival_says *says)
{
    struct moments x, y;

    moments_of(a, runs_a, launches, &x);
    moments_of(b, 1, launches, &y);
    double va = x.variance / x.n, vb = y.variance / y.n, error = sqrt(va + vb);
    double df = (va + vb) * (va + vb) / (va * va / (x.n - 1) + vb * vb / (y.n - 1));
    double d = y.mean - x.mean, half = error * dist_t_quantile(0.975, df);

    *says = (struct rival_says){exp(d), exp(d - half), exp(d + half), dist_t_cdf(d / error, df)};
}

/* The median of a sample drawn with replacement from 100 sorted values is one of them (the lower of
 * the two middle ones is meant): its place is ceil(100 U) for U the 50th of 100 uniforms, a beta
 * variable. The table has the places at as many equal steps of probability. */
void bootstrap_init(struct bootstrap *boot, uint64_t seed)
{
    size_t place = 0;

    rng_seed(&boot->r, seed);
    for (size_t i = 0; i < BOOTSTRAP_STEPS; i++) {
        double p = ((double)i + 0.5) / BOOTSTRAP_STEPS;

        while (place + 1 < SUITE_SAMPLES &&
               dist_beta_cdf((double)(place + 1) / SUITE_SAMPLES, SUITE_SAMPLES / 2.0,
                             SUITE_SAMPLES / 2.0 + 1) < p)
            place++;
        boot->places[i] = (unsigned char)place;
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

struct pool {
    double sorted[SUITE_RUNS * SUITE_LAUNCHES][SUITE_SAMPLES];
    size_t n;
};

static void pool_fill(const struct side_samples *side, size_t runs, size_t launches,
                      struct pool *pool)
{
    pool->n = 0;
    for (size_t i = 0; i < runs; i++) {
        for (size_t l = 0; l < launches; l++) {
            double *x = pool->sorted[pool->n++];

            memcpy(x, side->runs[i].samples[l], SUITE_SAMPLES * sizeof(*x));
            qsort(x, SUITE_SAMPLES, sizeof(*x), by_value);
        }
    }
}

static double drawn_mean(struct bootstrap *boot, const struct pool *pool)
{
    double sum = 0;

    for (size_t i = 0; i < pool->n; i++) {
        uint64_t bits = rng_u64(&boot->r);
        size_t launch = (size_t)((bits >> 32) * pool->n >> 32);

        sum += pool->sorted[launch][boot->places[bits % BOOTSTRAP_STEPS]];
    }
    return sum / (double)pool->n;
}

#define FIRST_DRAWS 1000
void rival_bootstrap(struct bootstrap *boot, const struct side_samples *a,
                     const struct side_samples *b, size_t runs_a, size_t launches, double enough_p,
                     struct rival_says *says)
{
    double d[FIRST_DRAWS];
    struct pool x, y;
    size_t gains = 0, n;

    pool_fill(a, runs_a, launches, &x);
    pool_fill(b, 1, launches, &y);
    for (n = 0; n < BOOTSTRAP_DRAWS; n++) {
        double change = drawn_mean(boot, &y) - drawn_mean(boot, &x);

        gains += change >= 0;
        if (n < FIRST_DRAWS)
            d[n] = change;
        else if ((double)(gains + 1) / (BOOTSTRAP_DRAWS + 1) > enough_p)
            break;
    }
    qsort(d, FIRST_DRAWS, sizeof(*d), by_value);
    says->p = (double)(gains + 1) / (double)(n + 1);
    says->low = exp(d[FIRST_DRAWS / 40]);
    says->high = exp(d[FIRST_DRAWS - 1 - FIRST_DRAWS / 40]);
    says->ratio = exp(d[FIRST_DRAWS / 2]);
}

void rival_judge(const struct rival_says *says, size_t n, double level, double margin, bool *worse)
{
    double p[SUITE_CASES] = {0};

    for (size_t i = 0; i < n; i++)
        p[i] = says[i].p;
    if (holm(p, n, level, worse))
        abort();
    for (size_t i = 0; i < n; i++)
        worse[i] &= says[i].low <= 1 - margin || says[i].high >= 1 / (1 - margin);
}
