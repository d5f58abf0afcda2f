/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the spreads of a suite's cases scatter: variance_i ~ variance * F(df_i, freedom), by maximum
 * likelihood. What is below the median variance is counted (by F's distribution function), not
 * believed: see decide.h.
 */
#include "harness/decide/parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "core/dist.h"

/* Beyond the last but one a suite cannot tell the difference; the last is as good as infinite. */
static const double freedoms[] = {0.5, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 1e4};
#define N_FREEDOMS (sizeof(freedoms) / sizeof(freedoms[0]))

struct spread {
    double variance, df;
};

struct fit {
    const struct spread *all; /* ascending in variance; the censored ones again ascending in df */
    size_t n, censored;
    double threshold;
};

static int by_variance(const void *a, const void *b)
{
    double x = ((const struct spread *)a)->variance, y = ((const struct spread *)b)->variance;

    return (x > y) - (x < y);
}

static int by_df(const void *a, const void *b)
{
    double x = ((const struct spread *)a)->df, y = ((const struct spread *)b)->df;

    return (x > y) - (x < y);
}

/* log P(F(df, freedom) <= x) */
static double log_below(double x, double df, double freedom)
{
    double p = dist_beta_cdf(df * x / (df * x + freedom), df / 2, freedom / 2);

    return log(fmax(p, 1e-300));
}

/* The part of log density of F at x that does not hang on x */
static double log_scale(double df, double freedom)
{
    int sign;

    return lgamma_r((df + freedom) / 2, &sign) - lgamma_r(df / 2, &sign) -
           lgamma_r(freedom / 2, &sign) + df / 2 * log(df / freedom);
}

static double log_likelihood(const struct fit *f, double freedom, double log_variance)
{
    double variance = exp(log_variance), sum = 0, df = NAN, same = NAN;

    for (size_t i = 0; i < f->censored; i++) {
        if (f->all[i].df != df) {
            df = f->all[i].df;
            same = log_below(f->threshold / variance, df, freedom);
        }
        sum += same;
    }
    df = NAN;
    for (size_t i = f->censored; i < f->n; i++) {
        double x = f->all[i].variance / variance;

        if (f->all[i].df != df) {
            df = f->all[i].df;
            same = log_scale(df, freedom) - log_variance;
        }
        sum += same + (df / 2 - 1) * log(x) - (df + freedom) / 2 * log1p(df * x / freedom);
    }
    return sum;
}

/* The best log variance for these degrees of freedom, by golden section. */
static double best_variance(const struct fit *f, double freedom, double *likelihood)
{
    const double golden = 0.6180339887498949;
    double low = log(f->threshold) - 6, high = log(f->threshold) + 6;
    double x = high - golden * (high - low), y = low + golden * (high - low);
    double at_x = log_likelihood(f, freedom, x), at_y = log_likelihood(f, freedom, y);

    while (high - low > 0.01) {
        if (at_x > at_y) {
            high = y;
            y = x;
            at_y = at_x;
            x = high - golden * (high - low);
            at_x = log_likelihood(f, freedom, x);
        } else {
            low = x;
            x = y;
            at_x = at_y;
            y = low + golden * (high - low);
            at_y = log_likelihood(f, freedom, y);
        }
    }
    *likelihood = fmax(at_x, at_y);
    return at_x > at_y ? x : y;
}

static void fit_best(const struct fit *f, struct prior *out)
{
    double best = -INFINITY;

    for (size_t i = 0; i < N_FREEDOMS; i++) {
        double likelihood, at = best_variance(f, freedoms[i], &likelihood);

        if (likelihood > best) {
            best = likelihood;
            out->freedom = freedoms[i];
            out->variance = exp(at);
        }
    }
}

int prior_fit(const double *variances, const double *df, size_t n, struct prior *out)
{
    struct spread *all = malloc((n ? n : 1) * sizeof(*all));
    struct fit f = {.all = all};
    double total = 0;

    *out = (struct prior){.most = INFINITY};
    if (!all)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        if (df[i] > 0)
            all[f.n++] = (struct spread){fmax(variances[i], VARIANCE_LEAST), df[i]};
    }
    if (f.n >= DECIDE_PRIOR_CASES) {
        qsort(all, f.n, sizeof(*all), by_variance);
        f.censored = f.n / 2;
        f.threshold = all[f.censored].variance;
        qsort(all, f.censored, sizeof(*all), by_df);
        for (size_t i = f.censored; i < f.n; i++)
            total += all[i].df;
        fit_best(&f, out);
        out->most = total;
    }
    free(all);
    return 0;
}

double prior_moderate(const struct prior *prior, double variance, double *df)
{
    double together = prior->freedom + *df;

    if (prior->freedom > 0)
        variance = (prior->freedom * prior->variance + *df * variance) / together;
    /* No case is known better than the whole suite; nor worse than by itself. */
    *df = fmax(*df, fmin(together, prior->most));
    return variance;
}
