// SPDX-License-Identifier: Apache-2.0
// Summary of a series of samples: quantiles, mean and deviation. The interval is in interval.c.
#include "core/stats.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

double stats_quantile_sorted(const double *sorted, size_t n, double p)
{
    if (n == 0 || !(p >= 0 && p <= 1))
        return NAN;
    double h = (double)(n - 1) * p;
    size_t k = (size_t)h;

    if (k + 1 >= n)
        return sorted[n - 1];
    return sorted[k] + (h - (double)k) * (sorted[k + 1] - sorted[k]);
}

double stats_mean(const double *x, size_t n)
{
    double sum = 0, lost = 0;

    for (size_t i = 0; i < n; i++) { // Neumaier's summation
        double next = sum + x[i];

        lost += fabs(sum) >= fabs(x[i]) ? (sum - next) + x[i] : (x[i] - next) + sum;
        sum = next;
    }
    return n == 0 ? NAN : (sum + lost) / (double)n;
}

double stats_log_mean(const double *x, size_t n)
{
    double first = n > 0 && x[0] > 0 ? log(x[0]) : NAN, mean = 0;

    for (size_t i = 0; i < n; i++)
        mean += x[i] > 0 ? (log(x[i]) - first) / (double)n : NAN;
    return first + mean;
}

double stats_centre(const double *x, size_t n)
{
    double logs = stats_log_mean(x, n);
    size_t equal = n > 0;

    while (equal < n && x[equal] == x[0])
        equal++;
    if (n > 0 && equal == n) // to the last digit
        return x[0];
    return isnan(logs) ? stats_mean(x, n) : exp(logs);
}

double stats_stddev(const double *x, size_t n)
{
    if (n < 2)
        return NAN;
    double mean = stats_mean(x, n), squares = 0, rest = 0;

    for (size_t i = 0; i < n; i++) {
        double d = x[i] - mean;

        squares += d * d;
        rest += d;
    }
    return sqrt((squares - rest * rest / (double)n) / (double)(n - 1));
}

int stats_check(const double *x, size_t n, double confidence)
{
    if (n == 0 || !(confidence > 0 && confidence < 1))
        return -EINVAL;
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return -EDOM;
    return 0;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void quantiles_set(const double *sorted, size_t n, struct summary *out)
{
    out->min = sorted[0];
    out->p05 = stats_quantile_sorted(sorted, n, 0.05);
    out->p25 = stats_quantile_sorted(sorted, n, 0.25);
    out->p50 = stats_quantile_sorted(sorted, n, 0.50);
    out->p75 = stats_quantile_sorted(sorted, n, 0.75);
    out->p95 = stats_quantile_sorted(sorted, n, 0.95);
    out->p99 = stats_quantile_sorted(sorted, n, 0.99);
    out->p999 = stats_quantile_sorted(sorted, n, 0.999);
    out->max = sorted[n - 1];
}

int stats_summarise(const double *x, size_t n, double confidence, struct summary *out)
{
    struct median_ci ci;
    int rc = stats_ci_samples(x, n, confidence, &ci);

    if (rc)
        return rc;
    double *sorted = malloc(n * sizeof(*sorted));

    if (!sorted)
        return -ENOMEM;
    memcpy(sorted, x, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), compare_doubles);
    *out = (struct summary){
        .n = n,
        .mean = stats_mean(x, n),
        .stddev = stats_stddev(x, n),
        .ci_low = ci.low,
        .ci_high = ci.high,
        .confidence = confidence,
        .effective_n = ci.effective_n,
        .autocorrelation_time = ci.autocorrelation_time,
    };
    quantiles_set(sorted, n, out);
    free(sorted);
    return 0;
}
