/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of one series of samples: pure functions, no input or output, nothing else computes
 * them.
 *
 * A value that cannot be measured from the given samples is NaN, never 0. The formulas, their
 * sources and the simulations behind them are in docs/statistics.md.
 */
#ifndef PLUMB_CORE_STATS_H
#define PLUMB_CORE_STATS_H

#include <stddef.h>

// A run that stops as soon as its interval is narrow enough takes advantage of lucky narrow
// intervals. With at least STATS_MIN_SAMPLES samples before the first look at the interval, and a
// next look only after the number of samples has grown by STATS_LOOK_GROWTH, the 95 % interval at
// the stop still covers the true median in 94 % of runs and more, on independent samples and, with
// STATS_INDEPENDENT_MIN, on AR(1) with phi up to 0.99.
#define STATS_MIN_SAMPLES 100
#define STATS_LOOK_GROWTH 1.125

// Fewer samples than these cannot say how far one depends on the one before.
#define STATS_INTERVAL_FROM 20

// A run must not count as converged on fewer independent samples (effective_n) than this: of a
// wander that it has seen little of, neither the median nor the time of correlation is known.
#define STATS_INDEPENDENT_MIN 20

struct summary {
    size_t n;
    double min, p05, p25, p50, p75, p95, p99; // type 7 quantiles: see stats_quantile_sorted()
    double p999;                              // below 1000 samples it only interpolates towards max
    double max, mean;
    double stddev;          // n - 1 in the divisor; NaN where n < 2
    double ci_low, ci_high; // of the median: see stats_ci_samples(); NaN where n is too small
    double confidence;      // as asked
    double effective_n;     // independent samples that would say as much: n / autocorrelation_time
    double autocorrelation_time; // in samples, >= 1; NaN where it cannot be told
};

struct median_ci {
    double median;
    double low, high; // as ci_low and the three others in struct summary
    double effective_n;
    double autocorrelation_time;
};

// Summarises n samples, given in the order of time; x is not modified. Confidence is in (0, 1).
// Returns 0, -EINVAL (n is 0, or confidence is not in (0, 1)) or -EDOM (a sample is NaN or
// infinite). Costs one sort.
int stats_summarise(const double *x, size_t n, double confidence, struct summary *out);

// What every function here asks of its input: 0, -EINVAL or -EDOM as above.
int stats_check(const double *x, size_t n, double confidence);

// The median and its interval alone, in O(n): what a sampler asks again and again. Errors as above.
//
// The interval is made of order statistics, interpolated between ranks, so that it holds for any
// distribution. It is widened by the autocorrelation time (the longer of that of the signs of x -
// median and that of the ranks) and by how poorly that is known; a drift or a slow wander
// therefore widens it, up to the extreme samples, never beyond. From 100 samples on it covers the
// true median in 93 to 97 % of independent series and in at least 95 % of AR(1) series with phi up
// to 0.9; with fewer samples correlation often goes unseen. It is NaN where n is too small even for
// [min, max] (below 6 at 95 %, below 8 at 99 %), and has width 0 where all samples are equal.
int stats_ci_median(const double *x, size_t n, double confidence, struct median_ci *out);

// The same for the samples of one launch, in the order of time, but NaN where they cannot say how
// far one depends on the one before: fewer than STATS_INTERVAL_FROM, or fewer than 50 whose
// neighbours are alike, unless all are equal. Of 95 % intervals, at most some 5 % of all series of
// 20 to 50 get one that misses the true median, of AR(1) with phi up to 0.9; stats_ci_median() has
// up to 62 % of those. But of the few series of 20 to 49 that have one by chance though neighbours
// are alike, a quarter miss with phi 0.5 and most with phi 0.9 (docs/statistics.md).
int stats_ci_samples(const double *x, size_t n, double confidence, struct median_ci *out);

// The interval over the medians of n launches, in any order: Student's t on their logarithms (on
// the medians themselves where one is not above 0); from 5 launches on joined with the interval of
// the order statistics, of 5 with their whole range. NaN of one launch. It covers 95 % and more
// where launches differ as normal or heavier-tailed ones do; of launches on two levels no few of
// them can (docs/statistics.md). Errors as above.
int stats_ci_launches(const double *medians, size_t n, double confidence, struct median_ci *out);

// Integrated autocorrelation time, in samples, of the series sign(x - median) alone: the factor by
// which correlation in time inflates the variance of the share of samples below the median. At
// least 1; NaN where it cannot be told (fewer than 8 samples, no two values differ, or an input is
// not finite).
double stats_autocorrelation_time(const double *x, size_t n);

// Quantile p in [0, 1] of ascending samples: linear between the order statistics at (n - 1) p
// (Hyndman and Fan 1996, type 7, the default of R and NumPy). NaN where n is 0 or p is outside.
double stats_quantile_sorted(const double *sorted, size_t n, double p);

int stats_ascending(const void *a, const void *b); // of doubles, for qsort()

// A normal distribution's standard deviation in units of its median absolute deviation.
#define STATS_MAD_TO_SD 1.4826

// NaN where n is 0 or a sample is NaN. The order of x does not matter.
double stats_median(const double *x, size_t n);

// NaN where n is 0. Compensated summation.
double stats_mean(const double *x, size_t n);

// The mean of the logarithms of n values, all above 0; NaN where n is 0 or one is not. Its error is
// that of the values' spread, so that a spread of 1e-9 is still told.
double stats_log_mean(const double *x, size_t n);

// The one centre over the launches of a case, of their medians: the geometric mean; where one is
// not above 0 the arithmetic one. It is the centre of Student's t on logarithms, which the
// intervals and the judge use. NaN where n is 0 or a value is NaN.
double stats_centre(const double *x, size_t n);

// With n - 1 in the divisor; NaN where n < 2.
double stats_stddev(const double *x, size_t n);

/* ---- The few probability distributions that the statistics stand on. Pure functions. ---- */

// Regularised incomplete beta function I_x(a, b), a, b > 0, x in [0, 1]; NaN outside. Continued
// fraction DLMF 8.17.22 (https://dlmf.nist.gov/8.17). Relative error about 1e-13 for small a and b,
// 1e-10 at a = b = 50,000.
double dist_beta_cdf(double x, double a, double b);

// P(X <= k) for X binomial with n throws of a fair coin: I_1/2(n - k, k + 1) (DLMF 8.17.5).
double dist_fair_binomial_cdf(size_t k, size_t n);

// The x with P(X <= x) = p for a standard normal X; p in (0, 1), NaN outside.
double dist_normal_quantile(double p);

// P(T <= t) for Student's t with df > 0 degrees of freedom (need not be whole).
double dist_t_cdf(double t, double df);

// The t with P(T <= t) = p for Student's t; p in (0, 1), df > 0 (INFINITY: normal), NaN outside.
double dist_t_quantile(double p, double df);

#endif
