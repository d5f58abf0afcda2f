/* SPDX-License-Identifier: Apache-2.0 */
/* The noise of a series, where it moved, and by how much: see history.h. */
#include <math.h>
#include <string.h>

#include "core/stats.h"
#include "harness/history/history.h"

/* ---- The noise of a series before a place ---- */

#define CLIPPED_WORTH 0.93 /* of a degree of freedom, where values are clipped */
/* Correlation counts less its error, times this, so that independent values pay nothing for it;
 * with more values, the error being smaller, more and more of it counts, in the end more than was
 * seen. */
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
    return value < -reach ? -reach : value > reach ? reach : value;
}

double change_mean(const double *sorted, size_t n, double reach)
{
    double middle = stats_quantile_sorted(sorted, n, .5), sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += clip(sorted[i] - middle, reach);
    return middle + sum / (double)n;
}

/* From the median of distances, of values around their middle. Those nearest to it come first. */
static double bulk(const double *sorted, size_t n, double middle)
{
    double away[CHANGE_WINDOW];
    size_t below = 0, above;

    while (below < n && sorted[below] < middle)
        below++;
    above = below;
    for (size_t i = 0; i < n; i++) {
        bool up = !below || (above < n && sorted[above] - middle < middle - sorted[below - 1]);

        away[i] = up ? sorted[above++] - middle : middle - sorted[--below];
    }
    return fmax(STATS_MAD_TO_SD * stats_quantile_sorted(away, n, .5), CHANGE_SCALE);
}

static double level_of(const double *x, size_t n, double sorted[CHANGE_WINDOW])
{
    memcpy(sorted, x, n * sizeof(*x));
    change_sort(sorted, n);
    return change_mean(sorted, n,
                       CHANGE_CLIP * bulk(sorted, n, stats_quantile_sorted(sorted, n, .5)));
}

double change_level(const double *x, size_t n)
{
    double sorted[CHANGE_WINDOW];

    return level_of(x, n, sorted);
}

/* Distances of up to CHANGE_MEMORY values before `at` from their levels, in time order. *n_levels:
 * how many of these the last CHANGE_WINDOW of them are of. */
static size_t distances(const double *x, size_t at, const struct change_point *points,
                        size_t n_points, double level, double *rest, size_t *n_levels)
{
    size_t begin = at > CHANGE_MEMORY ? at - CHANGE_MEMORY : 0, newer = n_points;

    *n_levels = 1;
    for (size_t i = at; i > begin; i--) {
        while (newer && i - 1 < points[newer - 1].at) {
            newer--;
            level = points[newer].before;
            *n_levels += at - i < CHANGE_WINDOW;
        }
        rest[i - 1 - begin] = x[i - 1] - level;
    }
    return at - begin;
}

/* How correlation in time makes a mean of k less sure. */
static void find_growth(const double *rest, size_t n, double *growth)
{
    double more = ((double)n - GROWTH_FROM) / GROWTH_OVER;
    double errors = GROWTH_LESS - GROWTH_MORE * fmin(1, fmax(0, more));
    double products[CHANGE_TAIL] = {0}; /* all lags at once: none waits for its own sum */

    for (size_t i = 0; i < n; i++)
        for (size_t lag = 0; lag < CHANGE_TAIL && lag <= i; lag++)
            products[lag] += rest[i] * rest[i - lag];
    for (size_t k = 1; k <= CHANGE_TAIL; k++) {
        double sum = 0, chance = 0;

        for (size_t lag = 1; lag < k; lag++) {
            double weight = 1 - (double)lag / (double)k;

            /* Of n values around 0; the mean being their own, it lacks 1 / n. */
            if (products[0] > 0 && lag < n)
                sum += weight * (products[lag] / products[0] + 1 / (double)n);
            chance += weight * weight;
        }
        growth[k - 1] = fmax(1, 1 + 2 * (sum - errors * sqrt(chance / (double)n)));
    }
}

void change_noise_at(const double *x, size_t at, const struct change_point *points, size_t n_points,
                     struct change_noise *noise)
{
    size_t begin = n_points ? points[n_points - 1].at : 0, n_levels;
    double rest[CHANGE_MEMORY], near[CHANGE_WINDOW], sum = 0, reach;
    size_t n_near;

    *noise = (struct change_noise){0};
    if (at - begin > CHANGE_WINDOW)
        begin = at - CHANGE_WINDOW;
    noise->n_level = at - begin;
    if (noise->n_level < CHANGE_SHORT || at < CHANGE_FIRST)
        return;
    noise->level = level_of(x + begin, noise->n_level, near);
    noise->n_rest = distances(x, at, points, n_points, noise->level, noise->rest, &n_levels);
    memcpy(rest, noise->rest, noise->n_rest * sizeof(*rest));
    n_near = noise->n_rest < CHANGE_WINDOW ? noise->n_rest : CHANGE_WINDOW;
    if (n_near == noise->n_level) { /* the same values, which are in order */
        for (size_t i = 0; i < n_near; i++)
            near[i] -= noise->level;
    } else {
        memcpy(near, rest + noise->n_rest - n_near, n_near * sizeof(*near));
        change_sort(near, n_near);
    }
    reach = CHANGE_CLIP * bulk(near, n_near, 0);
    for (size_t i = 0; i < n_near; i++)
        sum += clip(near[i], reach) * clip(near[i], reach);
    for (size_t i = 0; i < noise->n_rest; i++)
        rest[i] = clip(rest[i], reach);
    noise->freedom = fmax(0, ((double)n_near - (double)n_levels) * CLIPPED_WORTH);
    if (noise->freedom > 0)
        noise->sd =
            fmax(CHANGE_SCALE, sqrt(sum / CHANGE_CLIPPED / ((double)n_near - (double)n_levels)));
    find_growth(rest, noise->n_rest, noise->growth);
}

double change_error(const struct change_noise *noise, size_t k)
{
    const size_t counts[] = {k, noise->n_level};
    double variance = 0;

    for (size_t i = 0; i < 2; i++)
        variance += noise->growth[(counts[i] < CHANGE_TAIL ? counts[i] : CHANGE_TAIL) - 1] /
                    (double)counts[i];
    return noise->sd * sqrt(variance);
}

/* ---- Where a step lies, and whether order alone can explain it ---- */

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

double change_chance(const struct change_noise *noise, const double *sorted, size_t k)
{
    bool up = sorted[k / 2] > noise->level;
    double least = 1;

    /* The cut lies at the value that j of k reach. The few that do not reach it may be stray. */
    for (size_t j = k / 2 + 1; j <= k; j++) {
        double cut = (up ? sorted[k - j] : sorted[j - 1]) - noise->level;

        if ((cut > 0) != up)
            break;
        /* Distances seen before that lie at least as far out as `cut`, on its side. */
        size_t n = 0;

        for (size_t i = 0; i < noise->n_rest; i++)
            n += up ? noise->rest[i] >= cut : noise->rest[i] <= cut;
        least = fmin(least, first_of(j, k, n, noise->n_rest));
    }
    return least;
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

/* The smallest range of places that holds the step between two levels with 95 %: of x[0..n). */
static void change_place(const double *x, size_t n, double before, double after, double sd,
                         size_t *low, size_t *high)
{
    double best = -INFINITY, sum = 0, below = 0, top = (1 + CHANGE_CONFIDENCE) / 2;
    double weight[2 * CHANGE_WINDOW];

    for (size_t at = 1; at < n; at++) {
        /* The log likelihood of a step at `at`, less what all places share. */
        weight[at] = 0;
        for (size_t i = 0; i < n; i++) {
            double away = fmin(fabs(x[i] - (i < at ? before : after)) / sd, 2 * CHANGE_CLIP);

            weight[at] -= away * away / 2;
        }
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

/* ---- What is said of changes once all values are there ---- */

void change_describe(const double *x, size_t n, struct change_point *points, size_t n_points)
{
    for (size_t i = 0; i < n_points; i++) {
        struct change_point *p = &points[i];
        size_t begin = i ? p[-1].at : 0, end = i + 1 < n_points ? p[1].at : n;
        struct change_noise noise;
        double step, error, t, after;

        begin = p->at - begin > CHANGE_WINDOW ? p->at - CHANGE_WINDOW : begin;
        end = end - p->at > CHANGE_WINDOW ? p->at + CHANGE_WINDOW : end;
        change_noise_at(x, p->at, points, i, &noise);
        after = change_level(x + p->at, end - p->at);
        step = after - noise.level;
        error = change_error(&noise, end - p->at);
        t = dist_t_quantile((1 + CHANGE_CONFIDENCE) / 2, noise.freedom);
        change_place(x + begin, end - begin, noise.level, after, noise.sd, &p->at_low, &p->at_high);
        p->at_low += begin;
        p->at_high += begin;
        p->before = noise.level;
        p->after = exp(after);
        p->ratio = exp(step);
        p->low = exp(step - t * error);
        p->high = exp(step + t * error);
    }
    for (size_t i = 0; i < n_points; i++)
        points[i].before = exp(points[i].before);
}
