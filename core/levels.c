/* SPDX-License-Identifier: Apache-2.0 */
/* Are the samples of a launch, or the medians of launches, on two levels? */
#include "core/levels.h"

#include <math.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/stats.h"

// Thresholds from simulation (docs/statistics.md): one level passes both in well under 1 % of
// series.
#define SEPARATION_SURE 5.8  // from this separation on, a p-value of the valley below
#define VALLEY_SURE     0.1  // this is enough;
#define SEPARATION_MIN  3.8  // from this one on,
#define VALLEY_MIN      0.01 // this
#define ROW_LENGTH      2.5  // mean run of rare samples that are "in a row"
#define SAME            1e-9 // relative difference of values that only rounding tells apart

struct series {
    const double *x; // as given
    size_t n;
    double *sorted;
    double *spread; // sorted, equal values spread over one tick
};

struct split {
    size_t k; // values on the low level
    double low, high;
    double separation;
};

static bool same(double a, double b)
{
    return fabs(b - a) <= SAME * fabs(b);
}

// The smallest step between two values; 0 where all are the same.
static double tick(const double *sorted, size_t n)
{
    double least = 0;

    for (size_t i = 1; i < n; i++) {
        double step = sorted[i] - sorted[i - 1];

        if (!same(sorted[i - 1], sorted[i]) && (least == 0 || step < least))
            least = step;
    }
    return least;
}

// The ticks of a clock are as tight as a level can be. Spread over the tick that each stands for,
// neighbours among them join, and a valley remains only where whole ticks are missing.
static void spread_ties(double *sorted, size_t n)
{
    double step = tick(sorted, n);

    for (size_t i = 0, j; i < n; i = j) {
        double value = sorted[i];

        for (j = i + 1; j < n && same(value, sorted[j]);)
            j++;
        for (size_t k = i; k < j; k++)
            sorted[k] = value + step * ((double)(k - i) + 0.5) / (double)(j - i) - step / 2;
    }
}

static void series_release(struct series *s)
{
    free(s->sorted);
    free(s->spread);
}

static int series_init(struct series *s, const double *x, size_t n)
{
    int rc = stats_check(x, n, 0.5);

    if (rc)
        return rc;
    *s = (struct series){.x = x, .n = n, .sorted = xmemdup(x, n * sizeof(*x))};
    qsort(s->sorted, n, sizeof(*x), stats_ascending);
    s->spread = xmemdup(s->sorted, n * sizeof(*x));
    spread_ties(s->spread, n);
    return 0;
}

static bool differ(double low, double high)
{
    return high - low >= LEVELS_MIN_DIFFERENCE * fmax(fabs(low), fabs(high));
}

// Standard deviation of a normal with the same 10 % to 90 % range: outliers do not count, a broad
// tail does.
static double width(const double *sorted, size_t n)
{
    return (stats_quantile_sorted(sorted, n, 0.9) - stats_quantile_sorted(sorted, n, 0.1)) / 2.5631;
}

static struct split split_at(const struct series *s, size_t k)
{
    const double *y = s->spread;
    struct split p = {.k = k};

    p.low = stats_quantile_sorted(y, k, 0.5);
    p.high = stats_quantile_sorted(y + k, s->n - k, 0.5);
    p.separation = (p.high - p.low) / fmax(width(y, k), width(y + k, s->n - k));
    return p;
}

static size_t count_below(const double *sorted, size_t n, double value)
{
    size_t from = 0, to = n;

    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (sorted[middle] < value)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static size_t minority(const struct series *s, size_t k)
{
    return k < s->n - k ? k : s->n - k;
}

// Too rare to be more than outliers. Few samples of a level of 10 % may by chance (two standard
// deviations) have less on it than LEVELS_MIN_SHARE.
static bool is_rare(const struct series *s, size_t k)
{
    double chance = 0.1 - 2 * sqrt(0.1 * 0.9 / (double)s->n);

    return (double)minority(s, k) < fmin(LEVELS_MIN_SHARE, chance) * (double)s->n;
}

// The most separated split whose minority is rare, or not rare; moved to the middle between its
// levels, since a few values on the wrong side hardly change the separation. k is 0 where there is
// none.
static struct split best_split(const struct series *s, bool rare)
{
    struct split best = {0};

    for (size_t k = LEVELS_MIN_COUNT; k + LEVELS_MIN_COUNT <= s->n; k++) {
        if (is_rare(s, k) != rare)
            continue;
        struct split p = split_at(s, k);

        if (p.separation > best.separation)
            best = p;
    }
    if (best.k > 0)
        best = split_at(s, count_below(s->spread, s->n, (best.low + best.high) / 2));
    return minority(s, best.k) >= LEVELS_MIN_COUNT ? best : (struct split){0};
}

// Autocorrelation time of what is left when each sample is taken from its level: long for drift and
// wander that happen to leave two lumps, short for true levels however long the machine stays on
// one.
static double residual_time(const struct series *s, const struct split *p)
{
    double *rest = xcalloc(s->n, sizeof(*rest));

    for (size_t i = 0; i < s->n; i++)
        rest[i] = s->x[i] - (s->x[i] < (p->low + p->high) / 2 ? p->low : p->high);
    double time = fmax(1, stats_autocorrelation_time(rest, s->n)); // fmax passes over a NaN
    free(rest);
    return time;
}

// Probability that the middle between two levels be as empty as it is, were the density of one
// level there no less than at the nearer-to-empty level: a sign test on the counts in three
// windows, a third of the distance wide, divided by the residual autocorrelation time.
static double valley_p(const struct series *s, const struct split *p, double time)
{
    double half = (p->high - p->low) / 6;
    double centre[3] = {p->low, (p->low + p->high) / 2, p->high};
    double count[3];

    for (int i = 0; i < 3; i++)
        count[i] = (double)(count_below(s->spread, s->n, centre[i] + half) -
                            count_below(s->spread, s->n, centre[i] - half)) /
                   time;
    double peak = fmin(count[0], count[2]);

    return peak > count[1] ? dist_beta_cdf(0.5, peak, count[1] + 1) : 1;
}

// Rare samples come in a row: a machine that was on another level for a while, rather than
// outliers.
static bool in_a_row(const struct series *s, const struct split *p)
{
    double cut = (p->low + p->high) / 2;
    size_t switches = 0;

    for (size_t i = 1; i < s->n; i++)
        switches += (s->x[i] < cut) != (s->x[i - 1] < cut);
    return ROW_LENGTH * (double)switches / 2 <= (double)minority(s, p->k);
}

static void levels_set(const struct series *s, const struct split *p, double p_value,
                       struct levels *out)
{
    size_t k = count_below(s->sorted, s->n, (p->low + p->high) / 2);

    *out = (struct levels){
        .two = true,
        .low = stats_quantile_sorted(s->sorted, k, 0.5),
        .high = stats_quantile_sorted(s->sorted + k, s->n - k, 0.5),
        .share_low = (double)k / (double)s->n,
        .share_high = (double)(s->n - k) / (double)s->n,
        .separation = p->separation,
        .p_value = p_value,
    };
}

static void judge(const struct series *s, bool rare, struct levels *out)
{
    struct split p = best_split(s, rare);

    if (p.k == 0 || p.separation < SEPARATION_MIN || !differ(p.low, p.high))
        return;
    if (is_rare(s, p.k) && !in_a_row(s, &p))
        return;
    double p_value = valley_p(s, &p, residual_time(s, &p));

    if (p_value < (p.separation >= SEPARATION_SURE ? VALLEY_SURE : VALLEY_MIN))
        levels_set(s, &p, p_value, out);
}

static const struct levels one_level = {false, NAN, NAN, NAN, NAN, NAN, NAN};

int levels_of_samples(const double *x, size_t n, struct levels *out)
{
    struct series s;
    int rc = series_init(&s, x, n);

    *out = one_level;
    if (rc)
        return rc;
    if (n >= LEVELS_MIN_SAMPLES)
        judge(&s, false, out);
    if (n >= LEVELS_MIN_SAMPLES && !out->two)
        judge(&s, true, out);
    series_release(&s);
    return 0;
}

size_t levels_changes(const double *x, size_t n, const struct levels *levels)
{
    double middle = (levels->low + levels->high) / 2;
    size_t changes = 0;

    for (size_t i = 1; i < n; i++)
        changes += (x[i] > middle) != (x[i - 1] > middle);
    return changes;
}

// Separation that one level reaches in about 0.5 % of sets of n launches, whatever their
// distribution (docs/statistics.md), with two launches, or three and more, on the rarer side.
static double launches_threshold(size_t n, size_t rarer)
{
    static const double pairs[] = {28, 18, 13.5, 11.5, 10.5, 10.5};               // n = 4 and on
    static const double more[] = {10.2, 9.8, 8.8, 8, 7.7, 7.4, 7.2, 7, 6.9, 6.8}; // n = 6 and on
    size_t last = sizeof(more) / sizeof(*more) - 1;

    if (n < LEVELS_MIN_LAUNCHES || rarer * 8 < n)
        return INFINITY;
    if (rarer == 2)
        return n < 10 ? pairs[n - 4] : INFINITY;
    return more[n - 6 < last ? n - 6 : last];
}

int levels_of_launches(const double *medians, size_t n, struct levels *out)
{
    struct series s;
    int rc = series_init(&s, medians, n);

    *out = one_level;
    if (rc)
        return rc;
    for (size_t k = 2; k + 2 <= n && !out->two; k++) {
        const double *low = s.spread, *high = s.spread + k;
        struct split p = {.k = k, .low = stats_mean(low, k), .high = stats_mean(high, n - k)};

        p.separation = (p.high - p.low) / fmax(stats_stddev(low, k), stats_stddev(high, n - k));
        if (p.separation >= launches_threshold(n, minority(&s, k)) && differ(p.low, p.high))
            levels_set(&s, &p, NAN, out);
    }
    series_release(&s);
    return 0;
}
