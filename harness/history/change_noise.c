/* SPDX-License-Identifier: Apache-2.0 */
/* The noise of a series before a place: see change_parts.h. */
#include "harness/history/change_parts.h"

#include <math.h>
#include <string.h>

#include "core/stats.h"

#define CLIPPED_SHARE 0.9377 /* variance of a standard normal clipped at CHANGE_CLIP */
#define CLIPPED_WORTH 0.93   /* of a degree of freedom, where values are clipped */
/* Correlation counts less its error, times this, so that independent values pay nothing for it; with
 * more values, the error being smaller, more and more of it counts, in the end more than was seen. */
#define GROWTH_LESS 0.75
#define GROWTH_MORE 1.5
#define GROWTH_FROM 56
#define GROWTH_OVER 64

void change_sort(double *x, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        double value = x[i];
        size_t j = i;

        for (; j && x[j - 1] > value; j--)
            x[j] = x[j - 1];
        x[j] = value;
    }
}

static double clip(double value, double reach)
{
    return fmax(-reach, fmin(reach, value));
}

double change_mean(const double *sorted, size_t n, double reach)
{
    double middle = stats_quantile_sorted(sorted, n, .5), sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += clip(sorted[i] - middle, reach);
    return middle + sum / (double)n;
}

/* From the median of distances, of values around their middle. */
static double bulk(const double *sorted, size_t n, double middle)
{
    double away[CHANGE_WINDOW];

    for (size_t i = 0; i < n; i++)
        away[i] = fabs(sorted[i] - middle);
    change_sort(away, n);
    return fmax(STATS_MAD_TO_SD * stats_quantile_sorted(away, n, .5), CHANGE_SCALE);
}

double change_level(const double *x, size_t n)
{
    double sorted[CHANGE_WINDOW];

    memcpy(sorted, x, n * sizeof(*x));
    change_sort(sorted, n);
    return change_mean(sorted, n,
                       CHANGE_CLIP * bulk(sorted, n, stats_quantile_sorted(sorted, n, .5)));
}

/* Distances from the segments' levels of up to CHANGE_MEMORY values before `at`, in time order. */
static size_t distances(const double *x, size_t at, const struct change_segment *segments, size_t n,
                        double level, double *rest, size_t *n_segments)
{
    size_t begin = at > CHANGE_MEMORY ? at - CHANGE_MEMORY : 0, s = n - 1;

    *n_segments = 1;
    for (size_t i = at; i > begin; i--) {
        if (i - 1 < segments[s].begin) {
            s--;
            *n_segments += at - i < CHANGE_WINDOW;
        }
        rest[i - 1 - begin] = x[i - 1] - (s + 1 == n ? level : segments[s].level);
    }
    return at - begin;
}

/* Of n values around 0, for lags up to CHANGE_LAGS; the mean being their own, it lacks 1 / n. */
static void correlate(const double *rest, size_t n, double *correlation)
{
    double power = 0;

    for (size_t i = 0; i < n; i++)
        power += rest[i] * rest[i];
    for (size_t lag = 1; lag <= CHANGE_LAGS; lag++) {
        double sum = 0;

        for (size_t i = lag; i < n; i++)
            sum += rest[i] * rest[i - lag];
        correlation[lag] = power > 0 && lag < n ? sum / power + 1 / (double)n : 0;
    }
}

/* How correlation in time makes a mean of k less sure. */
static void find_growth(const double *rest, size_t n, double *growth)
{
    double correlation[CHANGE_LAGS + 1], more = ((double)n - GROWTH_FROM) / GROWTH_OVER;
    double errors = GROWTH_LESS - GROWTH_MORE * fmin(1, fmax(0, more));

    correlate(rest, n, correlation);
    for (size_t k = 1; k <= CHANGE_TAIL; k++) {
        double sum = 0, chance = 0;

        for (size_t lag = 1; lag < k && lag <= CHANGE_LAGS; lag++) {
            double weight = 1 - (double)lag / (double)k;

            sum += weight * correlation[lag];
            chance += weight * weight;
        }
        growth[k - 1] = fmax(1, 1 + 2 * (sum - errors * sqrt(chance / (double)n)));
    }
}

double change_growth(const double *rest, size_t n)
{
    double growth[CHANGE_TAIL];

    find_growth(rest, n, growth);
    return growth[CHANGE_TAIL - 1];
}

void change_noise_at(const double *x, size_t at, const struct change_segment *segments, size_t n,
                     struct change_noise *noise)
{
    size_t begin = segments[n - 1].begin, n_segments;
    double rest[CHANGE_MEMORY], near[CHANGE_WINDOW], sum = 0, reach;
    size_t n_near;

    *noise = (struct change_noise){0};
    if (at - begin > CHANGE_WINDOW)
        begin = at - CHANGE_WINDOW;
    noise->n_level = at - begin;
    if (noise->n_level < CHANGE_SHORT || at < CHANGE_FIRST)
        return;
    noise->level = change_level(x + begin, noise->n_level);
    noise->n_rest = distances(x, at, segments, n, noise->level, noise->rest, &n_segments);
    memcpy(rest, noise->rest, noise->n_rest * sizeof(*rest));
    n_near = noise->n_rest < CHANGE_WINDOW ? noise->n_rest : CHANGE_WINDOW;
    memcpy(near, rest + noise->n_rest - n_near, n_near * sizeof(*near));
    change_sort(near, n_near);
    reach = CHANGE_CLIP * bulk(near, n_near, 0);
    for (size_t i = 0; i < n_near; i++)
        sum += clip(near[i], reach) * clip(near[i], reach);
    for (size_t i = 0; i < noise->n_rest; i++)
        rest[i] = clip(rest[i], reach);
    noise->freedom = fmax(0, ((double)n_near - (double)n_segments) * CLIPPED_WORTH);
    if (noise->freedom > 0)
        noise->sd =
            fmax(CHANGE_SCALE, sqrt(sum / CLIPPED_SHARE / ((double)n_near - (double)n_segments)));
    find_growth(rest, noise->n_rest, noise->growth);
}

static double growth_of(const struct change_noise *noise, size_t k)
{
    return noise->growth[(k < CHANGE_TAIL ? k : CHANGE_TAIL) - 1] / (double)k;
}

double change_error(const struct change_noise *noise, size_t k)
{
    return noise->sd * sqrt(growth_of(noise, k) + growth_of(noise, noise->n_level));
}
