/* SPDX-License-Identifier: Apache-2.0 */
/* Where a step lies, and whether order alone can explain it: see change_parts.h. */
#include "harness/history/change_parts.h"

#include <math.h>

#define PLACE_SHARE 0.95

static double log_choose(size_t n, size_t k)
{
    return lgamma((double)n + 1) - lgamma((double)k + 1) - lgamma((double)(n - k) + 1);
}

/* P(j or more of k are among the first j + q of m + k in random order). */
static double first_of(size_t j, size_t k, size_t q, size_t m)
{
    double sum = 0, all = log_choose(m + k, j + q);

    for (size_t i = j; i <= k && i <= j + q; i++)
        if (j + q - i <= m)
            sum += exp(log_choose(k, i) + log_choose(m, j + q - i) - all);
    return fmin(sum, 1);
}

/* Distances seen before that lie at least as far out as `cut`, on its side. */
static size_t beyond(const struct change_noise *noise, double cut, bool up)
{
    size_t n = 0;

    for (size_t i = 0; i < noise->n_rest; i++)
        n += up ? noise->rest[i] >= cut : noise->rest[i] <= cut;
    return n;
}

double change_chance(const struct change_noise *noise, const double *sorted, size_t k)
{
    bool up = sorted[k / 2] > noise->level;
    double least = 1;

    /* The cut lies at the value that j of k reach. The few that do not reach it may be stray. */
    for (size_t j = k / 2 + 1; j <= k; j++) {
        double cut = (up ? sorted[k - j] : sorted[j - 1]) - noise->level;

        if ((cut > 0) != up)
            break;
        least = fmin(least, first_of(j, k, beyond(noise, cut, up), noise->n_rest));
    }
    return least;
}

bool change_is_slope(const struct change_noise *noise, const double *x, size_t k, double step,
                     double share)
{
    size_t n = noise->n_level + k;
    double middle = ((double)n - 1) / 2, along = 0, square = 0, reach = CHANGE_CLIP * noise->sd;

    for (size_t i = 0; i < n; i++) {
        double level = i < n - k ? 0 : step, at = (double)i - middle;

        along += at * (level + fmax(-reach, fmin(reach, x[i] - noise->level - level)));
        square += at * at;
    }
    return along * along / square > share * step * step * (double)k * (double)(n - k) / (double)n;
}

size_t change_split(const double *x, size_t n, size_t head, size_t tail)
{
    double all = 0, before = 0, after, across, best = -INFINITY;
    size_t at = head;

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            all += fabs(x[i] - x[j]);
    after = all;
    /* One value at a time moves from the part behind to the part before. */
    for (size_t i = 0; i + tail < n; i++) {
        double m = (double)i + 1, k = (double)(n - i - 1), energy;

        for (size_t j = 0; j < i; j++)
            before += fabs(x[i] - x[j]);
        for (size_t j = i + 1; j < n; j++)
            after -= fabs(x[i] - x[j]);
        across = all - before - after;
        if (i + 1 < head)
            continue;
        energy = m * k / (m + k) *
                 (2 * across / (m * k) - (m > 1 ? 2 * before / (m * (m - 1)) : 0) -
                  (k > 1 ? 2 * after / (k * (k - 1)) : 0));
        if (energy > best) {
            best = energy;
            at = i + 1;
        }
    }
    return at;
}

/* The log likelihood of a step at `at`, less what all places share. */
static double likelihood(const double *x, size_t at, size_t n, double before, double after,
                         double sd)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        double away = fmin(fabs(x[i] - (i < at ? before : after)) / sd, 2 * CHANGE_CLIP);

        sum -= away * away / 2;
    }
    return sum;
}

void change_place(const double *x, size_t n, double before, double after, double sd, size_t *low,
                  size_t *high)
{
    double best = -INFINITY, sum = 0, below = 0, top = (1 + PLACE_SHARE) / 2;
    double weight[2 * CHANGE_WINDOW];

    for (size_t at = 1; at < n; at++) {
        weight[at] = likelihood(x, at, n, before, after, sd);
        best = fmax(best, weight[at]);
    }
    for (size_t at = 1; at < n; at++)
        sum += weight[at] = exp(weight[at] - best);
    *low = *high = 1;
    for (size_t at = 1; at < n; at++) {
        if (below < (1 - top) * sum)
            *low = at;
        if (below < top * sum)
            *high = at;
        below += weight[at];
    }
}
