/* SPDX-License-Identifier: Apache-2.0 */
/* A series of samples: quantiles, mean and deviation, how far samples depend on each other,
 * intervals. See stats.h. */
#include "core/stats.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rng.h"

/* ---- Incomplete beta function, and the binomial, normal and Student distributions from it ---- */

// The continued fraction, which converges fast where x < (a + 1) / (a + b + 2), by its convergents p / q: their recurrence
// has no division that waits for the one before. Both are scaled back before they leave the range of a double.
static double beta_fraction(double x, double a, double b)
{
    const double large = 0x1p400;
    double p_last = 1, q_last = 1, p = 1, q = 1 - (a + b) * x / (a + 1);

    for (int m = 1; m <= 10000; m++) {
        // One division: they are most of the time.
        double c = a + 2 * m, over = x / ((c - 1) * c * (c + 1));
        double even = m * (b - m) * (c + 1) * over, odd = -(a + m) * (a + b + m) * (c - 1) * over;

        p_last = p + even * p_last;
        q_last = q + even * q_last;
        p = p_last + odd * p;
        q = q_last + odd * q;
        if (fabs(p * q_last - p_last * q) < 1e-15 * fabs(p_last * q))
            break;
        double scale = fabs(q) > large ? 1 / large : fabs(q) < 1 / large ? large : 1;
        p *= scale, q *= scale, p_last *= scale, q_last *= scale;
    }
    return p / q;
}

// One suite asks for few pairs, many times each, and three logarithms of gamma take longer than all else here.
#define BETAS_KEPT_LOG2 6
static double log_beta(double a, double b)
{
    static _Thread_local struct {
        double a, b, log_b;
    } kept[1 << BETAS_KEPT_LOG2], *k;
    uint64_t bits[2];
    int sign;

    memcpy(&bits[0], &a, sizeof(a));
    memcpy(&bits[1], &b, sizeof(b));
    k = &kept[(bits[0] * 3 + bits[1]) * 0x9e3779b97f4a7c15u >> (64 - BETAS_KEPT_LOG2)];
    if (k->a != a || k->b != b) {
        k->a = a;
        k->b = b;
        k->log_b = lgamma_r(a, &sign) + lgamma_r(b, &sign) - lgamma_r(a + b, &sign);
    }
    return k->log_b;
}

// I_x(a, b) where the logarithm of the beta function is known, 0 < x < 1.
static double beta_cdf(double x, double a, double b, double log_b)
{
    double log_front = a * log(x) + b * log1p(-x) - log_b;

    if (x < (a + 1) / (a + b + 2))
        return exp(log_front) * beta_fraction(x, a, b) / a;
    return 1 - exp(log_front) * beta_fraction(1 - x, b, a) / b;
}

double dist_beta_cdf(double x, double a, double b)
{
    if (!(a > 0 && b > 0 && x >= 0 && x <= 1))
        return NAN;
    if (x == 0 || x == 1)
        return x;
    return beta_cdf(x, a, b, log_beta(a, b));
}

double dist_fair_binomial_cdf(size_t k, size_t n)
{
    if (k >= n)
        return 1;
    return dist_beta_cdf(0.5, (double)(n - k), (double)k + 1);
}

double dist_normal_quantile(double p)
{
    if (!(p > 0 && p < 1))
        return NAN;
    double tail = p < 0.5 ? p : 1 - p;
    double t = sqrt(-2 * log(tail));
    // Abramowitz and Stegun 26.2.23 is good to 4.5e-4; Newton's steps on the exact tail do the
    // rest.
    double x = t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                       (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));

    for (int i = 0; i < 4; i++) {
        double density = exp(-x * x / 2) / sqrt(2 * M_PI);
        x += (erfc(x / M_SQRT2) / 2 - tail) / density;
    }
    return p < 0.5 ? -x : x;
}

double dist_t_cdf(double t, double df)
{
    if (isnan(t) || !(df > 0))
        return NAN;
    if (isinf(df))
        return erfc(-t / M_SQRT2) / 2;
    double tail = dist_beta_cdf(df / (df + t * t), df / 2, 0.5) / 2;

    return t < 0 ? tail : 1 - tail;
}

double dist_t_quantile(double p, double df)
{
    if (!(p > 0 && p < 1 && df > 0))
        return NAN;
    if (isinf(df) || p == 0.5)
        return dist_normal_quantile(p);
    double tail = p < 0.5 ? p : 1 - p, least = dist_normal_quantile(1 - tail), t = least;
    double log_b = log_beta(df / 2, 0.5), log_scale = -log_b - log(df) / 2;

    // The normal quantile lies below. Two terms of Abramowitz and Stegun 26.7.5 bring it near, and steps of Halley's, which
    // triple the right digits, the rest of the way; one at most doubles Newton's, and none falls behind where it began.
    t += t * (t * t + 1) / (4 * df) + t * (5 * pow(t, 4) + 16 * t * t + 3) / (96 * df * df);
    for (int i = 0; i < 200; i++) {
        double x = df / (df + t * t);
        if (x == 0)
            return p < 0.5 ? -INFINITY : INFINITY;
        double density = exp(log_scale + (df + 1) / 2 * log(x));
        double upper = (x < 1 ? beta_cdf(x, df / 2, 0.5, log_b) : 1) / 2;
        double step = (upper - tail) / density;

        step /= fmax(0.5, 1 - step * (df + 1) * t / (2 * (df + t * t)));
        step = fmax(step, least - t);
        t += step;
        if (!(fabs(step) > 1e-7 * fabs(t)))
            break;
    }
    return p < 0.5 ? -t : t;
}

struct correlation {
    double time;   // in samples, >= 1; NaN: cannot be told
    double window; // samples over which the autocovariance was added up, beyond the first pair
};

/* ---- Autocorrelation times ---- */

// Found by simulation (docs/statistics.md).
#define CORRELATION_MIN 8    // samples below which correlation is not judged
#define BLOCKS_MAX      4096 // longer series are summed into blocks before their autocovariances
#define RANKED_MAX      4096 // values that ranks are told by; of a longer series evenly spread ones
#define LAGS_SHARE      0.25 // of the series, the longest lag looked at
#define NEIGHBOUR_LIMIT 1.3  // of 1 / sqrt(n): a lone lag-one correlation below counts as chance

// A score of each sample, less their mean, summed into blocks where the series is long: the sum
// over a block has the same long-run variance per sample, and autocovariances cost blocks x lags.
struct scores {
    double *z;
    size_t blocks;
    size_t length;   // samples in a block; a rest at the end that fills no block is left out
    double variance; // of the score of one sample
};

// What samples are scored by: by its rank among these values, or where there are none by its side
// of the median.
struct scale {
    double median;
    double *sorted;
    size_t n;
};

static size_t count_below(const struct scale *s, double x, bool or_equal)
{
    size_t low = 0, high = s->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (s->sorted[middle] < x || (or_equal && s->sorted[middle] == x))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static double score(const struct scale *s, double x)
{
    if (!s->sorted)
        return (x > s->median) - (x < s->median);
    return (double)count_below(s, x, false) + (double)count_below(s, x, true) - (double)s->n;
}

static void scores_fill(struct scores *s, const double *x, const struct scale *scale)
{
    double used = (double)(s->blocks * s->length);
    double sum = 0, squares = 0;

    for (size_t b = 0; b < s->blocks; b++) {
        s->z[b] = 0;
        for (size_t i = b * s->length; i < (b + 1) * s->length; i++) {
            double z = score(scale, x[i]);

            s->z[b] += z;
            squares += z * z;
        }
        sum += s->z[b];
    }
    s->variance = squares / used - (sum / used) * (sum / used);
    for (size_t b = 0; b < s->blocks; b++)
        s->z[b] -= sum / (double)s->blocks;
}

static double autocovariance(const struct scores *s, size_t lag)
{
    double sum = 0;

    for (size_t i = lag; i < s->blocks; i++)
        sum += s->z[i] * s->z[i - lag];
    return sum / (double)s->blocks;
}

// After Geyer's initial positive sequence (1992): the autocovariances in pairs of neighbours, as
// long as a pair is above its own standard error under independence.
static struct correlation correlation_of_scores(const struct scores *s)
{
    double count = (double)s->blocks;
    double gamma0 = autocovariance(s, 0), gamma1 = autocovariance(s, 1);
    double sum = gamma0 + gamma1;
    size_t lags = 2;

    if (!(gamma0 > 0 && s->variance > 0))
        return (struct correlation){.time = NAN};
    for (; lags < s->blocks * LAGS_SHARE; lags += 2) {
        double pair = autocovariance(s, lags) + autocovariance(s, lags + 1);

        if (!(pair > gamma0 * sqrt(2 / count)))
            break;
        sum += pair;
    }
    if (lags == 2 && gamma1 < NEIGHBOUR_LIMIT * gamma0 / sqrt(count))
        sum = gamma0;
    // Taking off the mean of the series lowers each autocovariance by the variance of that mean,
    // which is the sum itself over the length.
    double all = (2 * sum - gamma0) / (1 - 2 * (double)lags / count * (sum > gamma0));
    double time = all / (double)s->length / s->variance;

    return (struct correlation){fmax(1, time), (double)(lags - 2) * (double)s->length};
}

static struct correlation correlation_by(const double *x, size_t n, const struct scale *scale)
{
    if (n < CORRELATION_MIN)
        return (struct correlation){.time = NAN};
    struct scores s = {.length = (n + BLOCKS_MAX - 1) / BLOCKS_MAX};

    s.blocks = n / s.length;
    s.z = xcalloc(s.blocks, sizeof(*s.z));
    scores_fill(&s, x, scale);
    struct correlation c = correlation_of_scores(&s);

    free(s.z);
    return c;
}

/* Of sign(x - median): on which side of the median samples fall. O(n). */
static struct correlation correlation_of_signs(const double *x, size_t n, double median)
{
    return correlation_by(x, n, &(struct scale){.median = median});
}

int stats_ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static struct correlation correlation_of_ranks(const double *x, size_t n)
{
    struct scale scale = {.n = n < RANKED_MAX ? n : RANKED_MAX};

    scale.sorted = xcalloc(scale.n, sizeof(*scale.sorted));
    for (size_t i = 0; i < scale.n; i++)
        scale.sorted[i] = x[(size_t)((double)i / (double)scale.n * (double)n)];
    qsort(scale.sorted, scale.n, sizeof(*scale.sorted), stats_ascending);
    struct correlation c = correlation_by(x, n, &scale);

    free(scale.sorted);
    return c;
}

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

int stats_summarise(const double *x, size_t n, double confidence, struct summary *out)
{
    struct median_ci ci;
    int rc = stats_ci_samples(x, n, confidence, &ci);

    if (rc)
        return rc;
    double *sorted = xmemdup(x, n * sizeof(*sorted));

    qsort(sorted, n, sizeof(*sorted), stats_ascending);
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
    out->min = sorted[0];
    out->p05 = stats_quantile_sorted(sorted, n, 0.05);
    out->p25 = stats_quantile_sorted(sorted, n, 0.25);
    out->p50 = stats_quantile_sorted(sorted, n, 0.50);
    out->p75 = stats_quantile_sorted(sorted, n, 0.75);
    out->p95 = stats_quantile_sorted(sorted, n, 0.95);
    out->p99 = stats_quantile_sorted(sorted, n, 0.99);
    out->p999 = stats_quantile_sorted(sorted, n, 0.999);
    out->max = sorted[n - 1];
    free(sorted);
    return 0;
}

/* ---- The interval of the median of a series of samples, and of the medians of launches ---- */

// Found by simulation (docs/statistics.md). Each trades width on independent samples for coverage
// on correlated ones, or the reverse.
#define DF_MIN        1.5 // degrees of freedom of the t factor: at least this,
#define DF_PER_WINDOW 5   // and n over this many windows of summation
#define TOLD_FROM     50  // from here on the interval is widened by what the samples tell

// Launches from which on the order statistics of their medians say something too.
#define LAUNCHES_RANKED 5

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
            if (i <= j) {
                double t = a[i];
                a[i++] = a[j];
                a[j--] = t;
            }
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
    int rc = stats_check(x, n, confidence);

    if (rc)
        return rc;
    double *copy = xmemdup(x, n * sizeof(*copy));

    out->median = select_position(copy, n, (double)(n + 1) / 2);
    /* The longer of that and of the same of the ranks. A slow wander, or a second level that is
     * rarely visited, moves ranks before it moves the median. O(n). */
    struct correlation signs = correlation_of_signs(x, n, out->median);
    struct correlation ranks = correlation_of_ranks(x, n);
    struct correlation c = ranks.time > signs.time ? ranks : signs;

    out->autocorrelation_time = c.time;
    out->effective_n = (double)n / c.time;
    interval_set(copy, n, confidence, widening(n, c, confidence), out);
    free(copy);
    return 0;
}

// Correlation of neighbours by their ranks, less its mean for independent samples, in standard
// errors.
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

// Below STATS_INTERVAL_FROM strong correlation looks like none; up to TOLD_FROM it is seen, but not
// how far it goes. Samples that are all equal are as independent as a coarse clock lets them be.
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
    double *copy = xmemdup(medians, n * sizeof(*copy));
    struct median_ci ranks;

    interval_set(copy, n, confidence, 1, &ranks);
    free(copy);
    out->low = fmin(out->low, isnan(ranks.low) ? least : ranks.low);
    out->high = fmax(out->high, isnan(ranks.high) ? most : ranks.high);
    return 0;
}

double stats_median(const double *x, size_t n)
{
    if (stats_check(x, n, 0.5))
        return NAN;
    double *copy = xmemdup(x, n * sizeof(*copy));
    double median = select_position(copy, n, (double)(n + 1) / 2);

    free(copy);
    return median;
}

double stats_autocorrelation_time(const double *x, size_t n)
{
    return stats_check(x, n, 0.5) ? NAN : correlation_of_signs(x, n, stats_median(x, n)).time;
}
