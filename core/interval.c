// SPDX-License-Identifier: Apache-2.0
// The interval of the median of a series of samples, and of the medians of launches.
#include "core/stats.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/correlation.h"
#include "core/dist.h"
#include "core/rng.h"

// Found by simulation (docs/statistics.md). Each trades width on independent samples for coverage
// on correlated ones, or the reverse.
#define DF_MIN        1.5 // degrees of freedom of the t factor: at least this,
#define DF_PER_WINDOW 5   // and n over this many windows of summation
#define TOLD_FROM     50  // from here on the interval is widened by what the samples tell

// Launches from which on the order statistics of their medians say something too.
#define LAUNCHES_RANKED 5

static void swap_doubles(double *a, double *b)
{
    double t = *a;

    *a = *b;
    *b = t;
}

// The k-th smallest (from 0) of a[0..n); reorders a. Wirth's form of Hoare's quickselect; the pivot
// is the median of three taken from anywhere, so that sorted and organ-pipe series cost O(n) too.
static double select_rank(double *a, size_t n, size_t k)
{
    uint64_t state = 0x9e3779b97f4a7c15u;
    ptrdiff_t lo = 0, hi = (ptrdiff_t)n - 1, rank = (ptrdiff_t)k;

    while (lo < hi) {
        double p[3];

        for (int i = 0; i < 3; i++)
            p[i] = a[lo + (ptrdiff_t)((rng_splitmix64(&state) >> 1) % (uint64_t)(hi - lo + 1))];
        double pivot = fmax(fmin(p[0], p[1]), fmin(fmax(p[0], p[1]), p[2]));
        ptrdiff_t i = lo, j = hi;

        while (i <= j) {
            while (a[i] < pivot)
                i++;
            while (a[j] > pivot)
                j--;
            if (i <= j)
                swap_doubles(&a[i++], &a[j--]);
        }
        if (rank <= j)
            hi = j;
        else if (rank >= i)
            lo = i;
        else
            break;
    }
    return a[rank];
}

// The value at a position between 1 and n, linear between neighbours; reorders a.
static double select_position(double *a, size_t n, double position)
{
    double whole = floor(position);
    double below = select_rank(a, n, (size_t)whole - 1);

    if (position == whole)
        return below;
    return below + (position - whole) * (select_rank(a, n, (size_t)whole) - below);
}

// Position (from 1) of the lower end of the interval for independent samples, after Hettmansperger
// and Sheather (1986): the ranks with just more and just less confidence than asked, and between
// them their interpolation. 0 where even [min, max] has less confidence than asked.
static double lower_position(size_t n, double confidence)
{
    double tail = (1 - confidence) / 2;
    double middle = (double)(n + 1) / 2;
    size_t d = 0, above = n / 2 + 1; // P(X < d) <= tail < P(X < above)

    while (above - d > 1) {
        size_t half = d + (above - d) / 2;

        if (dist_fair_binomial_cdf(half - 1, n) <= tail)
            d = half;
        else
            above = half;
    }
    if (d == 0)
        return 0;
    double wide = 1 - 2 * dist_fair_binomial_cdf(d - 1, n);
    double narrow = fmax(0, 1 - 2 * dist_fair_binomial_cdf(d, n));
    double share = (wide - confidence) / (wide - narrow);
    double nd = (double)n, dd = (double)d;

    double lambda = (nd - dd) * share / (dd + (nd - 2 * dd) * share);

    return dd + lambda * fmin(1, middle - dd);
}

// How much wider correlation makes the interval: the root of the autocorrelation time, and
// Student's t over the normal quantile, since that time is itself an estimate, and poor where it is
// long beside the series.
static double widening(size_t n, struct correlation c, double confidence)
{
    if (isnan(c.time) || c.time <= 1)
        return 1;
    double p = (1 + confidence) / 2;
    double df = (double)n / (DF_PER_WINDOW * c.window);

    return sqrt(c.time) * dist_t_quantile(p, fmax(DF_MIN, df)) / dist_normal_quantile(p);
}

// The interval from the order statistics of a (reordered), its reach from the middle rank times
// factor. Where the ranks run out it ends at the extremes: a value that was never seen, below 0
// even, would be an invention, and simulation shows that going further covers no more.
static void interval_set(double *a, size_t n, double confidence, double factor,
                         struct median_ci *out)
{
    double middle = (double)(n + 1) / 2;
    double independent = lower_position(n, confidence);

    out->low = out->high = NAN;
    if (independent == 0)
        return;
    double reach = fmin((middle - independent) * factor, middle - 1);

    out->low = select_position(a, n, middle - reach);
    out->high = select_position(a, n, middle + reach);
}

int stats_ci_median(const double *x, size_t n, double confidence, struct median_ci *out)
{
    struct correlation c;
    int rc = stats_check(x, n, confidence);

    if (rc)
        return rc;
    double *copy = malloc(n * sizeof(*copy));

    if (!copy)
        return -ENOMEM;
    memcpy(copy, x, n * sizeof(*copy));
    out->median = select_position(copy, n, (double)(n + 1) / 2);
    rc = correlation_longest(x, n, out->median, &c);
    if (rc == 0) {
        out->autocorrelation_time = c.time;
        out->effective_n = (double)n / c.time;
        interval_set(copy, n, confidence, widening(n, c, confidence), out);
    }
    free(copy);
    return rc;
}

// Correlation of neighbours by their ranks, less its mean for independent samples, in standard errors.
static double neighbours(const double *x, size_t n)
{
    double squares = 0, products = 0, last = 0;

    for (size_t i = 0; i < n; i++) {
        double rank = 0.5 * (1 - (double)n) - 0.5; // less its mean; x[i] itself adds a half

        for (size_t k = 0; k < n; k++)
            rank += x[k] < x[i] ? 1 : x[k] == x[i] ? 0.5 : 0;
        squares += rank * rank;
        products += rank * last;
        last = rank;
    }
    return squares > 0 ? (products / squares + 1 / (double)n) * sqrt((double)n) : 0;
}

// Below STATS_INTERVAL_FROM strong correlation looks like none; up to TOLD_FROM it is seen, but not how far it
// goes. Samples that are all equal are as independent as a coarse clock lets them be.
static bool is_told(const double *x, size_t n)
{
    size_t equal = 1;

    while (equal < n && x[equal] == x[0])
        equal++;
    return equal == n || n >= TOLD_FROM || (n >= STATS_INTERVAL_FROM && neighbours(x, n) < 1);
}

int stats_ci_samples(const double *x, size_t n, double confidence, struct median_ci *out)
{
    int rc = stats_ci_median(x, n, confidence, out);

    if (!rc && !is_told(x, n))
        out->low = out->high = NAN;
    return rc;
}

// Student's t on x, or on its logarithms.
static void student_set(const double *x, size_t n, double confidence, bool logs,
                        struct median_ci *out)
{
    double mean = 0, squares = 0;

    for (size_t i = 0; i < n; i++)
        mean += (logs ? log(x[i]) : x[i]) / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += pow((logs ? log(x[i]) : x[i]) - mean, 2);
    double df = (double)n - 1;
    double half = dist_t_quantile((1 + confidence) / 2, df) * sqrt(squares / df / (double)n);

    out->low = logs ? exp(mean - half) : mean - half;
    out->high = logs ? exp(mean + half) : mean + half;
}

int stats_ci_launches(const double *medians, size_t n, double confidence, struct median_ci *out)
{
    int rc = stats_check(medians, n, confidence);
    double least = INFINITY, most = -INFINITY;

    if (rc)
        return rc;
    *out = (struct median_ci){stats_median(medians, n), NAN, NAN, (double)n, NAN};
    for (size_t i = 0; i < n; i++) {
        least = fmin(least, medians[i]);
        most = fmax(most, medians[i]);
    }
    if (n < 2)
        return 0;
    student_set(medians, n, confidence, least > 0, out);
    if (n < LAUNCHES_RANKED)
        return 0;
    double *copy = malloc(n * sizeof(*copy));
    struct median_ci ranks;

    if (!copy)
        return -ENOMEM;
    memcpy(copy, medians, n * sizeof(*copy));
    interval_set(copy, n, confidence, 1, &ranks);
    free(copy);
    out->low = fmin(out->low, isnan(ranks.low) ? least : ranks.low);
    out->high = fmax(out->high, isnan(ranks.high) ? most : ranks.high);
    return 0;
}

double stats_median(const double *x, size_t n)
{
    double *copy = stats_check(x, n, 0.5) ? NULL : malloc(n * sizeof(*copy));

    if (!copy)
        return NAN;
    memcpy(copy, x, n * sizeof(*copy));
    double median = select_position(copy, n, (double)(n + 1) / 2);

    free(copy);
    return median;
}

double stats_autocorrelation_time(const double *x, size_t n)
{
    struct correlation c;

    if (stats_check(x, n, 0.5) || correlation_of_signs(x, n, stats_median(x, n), &c))
        return NAN;
    return c.time;
}
