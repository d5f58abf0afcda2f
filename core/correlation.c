// SPDX-License-Identifier: Apache-2.0
// Autocorrelation times: see correlation.h.
#include "core/correlation.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

// Found by simulation (docs/statistics.md).
#define CORRELATION_MIN 8    // samples below which correlation is not judged
#define BLOCKS_MAX      4096 // longer series are summed into blocks before their autocovariances
#define RANKED_MAX      4096 // values that ranks are told by; of a longer series evenly spread ones
#define LAGS_SHARE      0.25 // of the series, the longest lag looked at
#define NEIGHBOUR_LIMIT 1.3  // of 1 / sqrt(n): a lone lag-one correlation below counts as chance

// A score of each sample, less their mean, summed into blocks where the series is long: the sum over
// a block has the same long-run variance per sample, and autocovariances cost blocks x lags.
struct scores {
    double *z;
    size_t blocks;
    size_t length;   // samples in a block; a rest at the end that fills no block is left out
    double variance; // of the score of one sample
};

// What samples are scored by: by its rank among these values, or where there are none by its side of
// the median.
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

static int correlation_by(const double *x, size_t n, const struct scale *scale,
                          struct correlation *out)
{
    *out = (struct correlation){.time = NAN};
    if (n < CORRELATION_MIN)
        return 0;
    struct scores s = {.length = (n + BLOCKS_MAX - 1) / BLOCKS_MAX};

    s.blocks = n / s.length;
    s.z = malloc(s.blocks * sizeof(*s.z));
    if (!s.z)
        return -ENOMEM;
    scores_fill(&s, x, scale);
    *out = correlation_of_scores(&s);
    free(s.z);
    return 0;
}

int correlation_of_signs(const double *x, size_t n, double median, struct correlation *out)
{
    return correlation_by(x, n, &(struct scale){.median = median}, out);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static int correlation_of_ranks(const double *x, size_t n, struct correlation *out)
{
    struct scale scale = {.n = n < RANKED_MAX ? n : RANKED_MAX};

    scale.sorted = malloc(scale.n * sizeof(*scale.sorted));
    if (!scale.sorted)
        return -ENOMEM;
    for (size_t i = 0; i < scale.n; i++)
        scale.sorted[i] = x[(size_t)((double)i / (double)scale.n * (double)n)];
    qsort(scale.sorted, scale.n, sizeof(*scale.sorted), ascending);
    int err = correlation_by(x, n, &scale, out);

    free(scale.sorted);
    return err;
}

int correlation_longest(const double *x, size_t n, double median, struct correlation *out)
{
    struct correlation ranks;
    int err = correlation_of_signs(x, n, median, out);

    if (!err)
        err = correlation_of_ranks(x, n, &ranks);
    if (!err && ranks.time > out->time)
        *out = ranks;
    return err;
}
