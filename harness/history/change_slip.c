/* SPDX-License-Identifier: Apache-2.0 */
/* Slips: levels that are left, and reached, by a line. See history.h. */
#include <math.h>
#include <string.h>

#include "core/stats.h"
#include "harness/history/history.h"

#define DIFFERENCE_TO_SD                                                                           \
    (STATS_MAD_TO_SD / M_SQRT2) /* from the median distance between neighbours */
#define DIFFERENCES (2 * CHANGE_WINDOW)
#define NEAR        5 /* values around one, whose median it is held against */
#define PARAMETERS  4 /* of a ramp: level, total, and its two ends */

static double median_of(const double *x, size_t n)
{
    double sorted[DIFFERENCES];

    memcpy(sorted, x, n * sizeof(*x));
    change_sort(sorted, n);
    return stats_quantile_sorted(sorted, n, .5);
}

/* From successive differences, as von Neumann's (1941), but by their median: a slip is next to
 * nothing in them, and a stray value is in two. */
static double sd_of_differences(const double *x, size_t n)
{
    size_t skip = n > DIFFERENCES ? n - DIFFERENCES : 0;
    double away[DIFFERENCES];

    x += skip;
    n -= skip;

    for (size_t i = 0; i + 1 < n; i++)
        away[i] = fabs(x[i + 1] - x[i]);
    return fmax(CHANGE_SCALE, DIFFERENCE_TO_SD * median_of(away, n - 1));
}

/* The same of NEAR neighbours, one of which may be stray: in two of the four differences. On a
 * steep slip it is the slope. */
static double sd_nearby(const double *x)
{
    double away[NEAR - 1];

    for (size_t i = 0; i + 1 < NEAR; i++)
        away[i] = fabs(x[i + 1] - x[i]);
    change_sort(away, NEAR - 1);
    return DIFFERENCE_TO_SD * away[1];
}

static void order(double *low, double *high)
{
    double x = *low, y = *high;

    *low = x < y ? x : y;
    *high = x < y ? y : x;
}

/* The median of NEAR values: of three of them when the least and the greatest of the others are left out. */
static double median_nearby(const double *x)
{
    double a = x[0], b = x[1], c = x[2], d = x[3], e = x[4];

    order(&a, &b);
    order(&c, &d);
    order(&a, &c); /* a is none: three are greater */
    order(&b, &d); /* nor d: three are less */
    order(&b, &c);
    return e < b ? b : e > c ? c : e;
}

static void add_up(const double *x, size_t n, struct change_sums *s)
{
    double sd = sd_of_differences(x, n), medians[CHANGE_REACH];

    for (size_t i = 0; i + NEAR <= n; i++)
        medians[i] = median_nearby(x + i);
    *s = (struct change_sums){.n = n, .first = x[0]};
    for (size_t i = 0; i < n; i++) {
        /* A value far from its neighbours counts as so far out. Neighbours are those up to it,
         * around it or from it on, whose median is nearest: a value next to a step is near that of
         * its own side. medians: of those that begin at each place. */
        double nearest = INFINITY, reach = 0;
        size_t place = 0;

        for (size_t back = 0; back < NEAR; back += NEAR / 2) {
            size_t begin = i < back ? 0 : i - back + NEAR > n ? n - NEAR : i - back;

            if (fabs(medians[begin] - x[i]) >= fabs(nearest - x[i]))
                continue;
            nearest = medians[begin];
            place = begin;
        }
        reach = CHANGE_CLIP * fmax(sd, sd_nearby(x + place));
        double value = fmax(nearest - reach, fmin(nearest + reach, x[i])) - s->first;

        s->plain[i + 1] = s->plain[i] + value;
        s->indexed[i + 1] = s->indexed[i] + value * (double)i;
        s->square += value * value;
    }
}

/* Least squares of a level up to value b, a line to value h, and a level from there on: u is 0,
 * rises, and is 1. */
static struct change_ramp fit_ramp(const struct change_sums *s, size_t b, size_t h)
{
    double n = (double)s->n, m = (double)(h - b), behind = (double)(s->n - 1 - h);
    double u = (m + 1) / 2 + behind, uu = (m + 1) * (2 * m + 1) / (6 * m) + behind;
    double on_line =
        s->indexed[h + 1] - s->indexed[b + 1] - (double)b * (s->plain[h + 1] - s->plain[b + 1]);
    double y = s->plain[s->n], uy = on_line / m + y - s->plain[h + 1];
    double spread = uu - u * u / n, along = uy - u * y / n, total = along / spread;

    return (struct change_ramp){.before = b,
                                .end = h,
                                .level = s->first + (y - total * u) / n,
                                .total = total,
                                .left = s->square - y * y / n - total * along,
                                .spread = spread};
}

static double ramp_at(const struct change_ramp *r, size_t i)
{
    double part = i <= r->before ? 0
                  : i >= r->end  ? 1
                                 : (double)(i - r->before) / (double)(r->end - r->before);

    return r->level + part * r->total;
}

/* The variance of one value around the ramp, times what correlation makes of it for many. */
static double variance_around(const struct change_sums *s, const struct change_ramp *r)
{
    double rest[CHANGE_REACH];

    for (size_t i = 0; i < s->n; i++)
        rest[i] = s->first + s->plain[i + 1] - s->plain[i] - ramp_at(r, i);
    return fmax(CHANGE_SCALE * CHANGE_SCALE,
                r->left / CHANGE_CLIPPED / (double)(s->n - PARAMETERS)) *
           change_growth(rest, s->n);
}

/* Of all from value b to value h, b_least to b_most and h_least to h_most, the one that leaves least;
 * steps: of those that are steps. */
static struct change_ramp best_ramp(const struct change_sums *s, size_t b_least, size_t b_most,
                                    size_t h_least, size_t h_most, bool steps)
{
    struct change_ramp best = {.left = INFINITY};

    for (size_t b = b_least; b <= b_most; b++)
        for (size_t h = b + 1 > h_least ? b + 1 : h_least; h <= h_most && (!steps || h == b + 1);
             h++) {
            struct change_ramp r = fit_ramp(s, b, h);

            best = r.left < best.left ? r : best;
        }
    return best;
}

static struct change_ramp best_step(const struct change_sums *s, size_t head, size_t tail,
                                    size_t b_most)
{
    return best_ramp(s, head - 1, b_most, 0, s->n - tail, true);
}

bool change_slip_may_be(const double *x, size_t n, double least)
{
    size_t first = n / 2 < CHANGE_TAIL ? n / 2 : CHANGE_TAIL;

    return n >= CHANGE_SLIP_FIRST &&
           fabs(median_of(x + n - NEAR, NEAR) - median_of(x, first)) > least;
}

void change_slip_fit(const double *x, size_t n, struct change_slip *slip)
{
    add_up(x, n, &slip->sums);
    slip->line = best_ramp(&slip->sums, 0, n - 1 - CHANGE_SLIP_SHORT, n - 1, n - 1, false);
    slip->variance = variance_around(&slip->sums, &slip->line);
    slip->error = sqrt(slip->variance / slip->line.spread);
    slip->freedom = (double)(n - PARAMETERS);
}

double change_slip_over_step(const struct change_slip *slip)
{
    return (best_step(&slip->sums, CHANGE_SHORT, 1, slip->sums.n).left - slip->line.left) /
           slip->variance;
}

double change_slip_past(const struct change_slip *slip)
{
    const struct change_sums *s = &slip->sums;
    double low = INFINITY, high = -INFINITY;

    for (size_t i = CHANGE_FIRST; i <= slip->line.before + 1; i++) {
        double mean = (s->plain[i] - s->plain[i - CHANGE_FIRST]) / CHANGE_FIRST;

        low = fmin(low, mean);
        high = fmax(high, mean);
    }
    return high > low ? high - low : 0;
}

/* The sum of squares around a straight line through the first n values. */
static double around_line(const struct change_sums *s, size_t count, double square)
{
    double n = (double)count, middle = (n - 1) / 2, y = s->plain[count];
    double along = s->indexed[count] - middle * y, spread = n * (n * n - 1) / 12;

    return square - y * y / n - along * along / spread;
}

/* The newest values may lie on a level that the line leads to, or on one of their own. */
size_t change_slip_off(const double *x, size_t n, double least)
{
    struct change_sums s;
    double line, square = 0, led = INFINITY, own = INFINITY;
    size_t off_led = 0, off_own = 0;

    add_up(x, n, &s);
    line = around_line(&s, n, s.square);
    for (size_t k = 1; k + CHANGE_SLIP_SHORT <= n; k++) {
        double value = s.plain[n - k + 1] - s.plain[n - k], sum = s.plain[n] - s.plain[n - k];
        double left = fit_ramp(&s, 0, n - 1 - k).left;

        square += value * value;
        if (left < led) {
            led = left;
            off_led = k;
        }
        left = around_line(&s, n - k, s.square - square) + square - sum * sum / (double)k;
        if (k >= CHANGE_SHORT && left < own) {
            own = left;
            off_own = k;
        }
    }
    if (line - fmin(led, own) < least)
        return 0;
    return led - own < least / 4 ? off_led : off_own;
}

void change_straighten(double *x, size_t at, size_t end, double slope)
{
    for (size_t i = at; i < end; i++)
        x[i] += slope * (double)(end - 1 - i);
}

static void widen(double *low, double *high, double value, double by)
{
    *low = fmin(*low, value - by);
    *high = fmax(*high, value + by);
}

/* All that explains the values nearly as well as the best: its likelihood is within what Student's
 * t allows. */
static void find_ranges(const struct change_sums *s, size_t b_most, double left, double variance,
                        struct change_ramp_range *range)
{
    double t = dist_t_quantile((1 + CHANGE_CONFIDENCE) / 2, (double)(s->n - PARAMETERS));

    *range = (struct change_ramp_range){.low = INFINITY,
                                        .high = -INFINITY,
                                        .run_low = INFINITY,
                                        .run_high = -INFINITY,
                                        .before_low = s->n};
    for (size_t b = 0; b + 1 < s->n && b <= b_most; b++)
        for (size_t h = b + 1; h < s->n; h++) {
            struct change_ramp r = fit_ramp(s, b, h);
            double room = t * t - (r.left - left) / variance, by, length = (double)(h - b);

            if (room < 0)
                continue;
            by = sqrt(room * variance / r.spread);
            widen(&range->low, &range->high, r.total, by);
            widen(&range->run_low, &range->run_high, r.total / length, by / length);
            range->before_low = b < range->before_low ? b : range->before_low;
            range->before_high = b;
            range->goes_on |= h == s->n - 1;
        }
}

void change_ramp_fit(const double *x, size_t n, size_t head, size_t b_most,
                     struct change_ramp *ramp, struct change_ramp_range *range)
{
    struct change_sums s;
    struct change_ramp step;
    double variance;

    add_up(x, n, &s);
    *ramp = best_ramp(&s, 0, b_most, 0, n - 1, false);
    variance = variance_around(&s, ramp);
    find_ranges(&s, b_most, ramp->left, variance, range);
    step = best_step(&s, head, CHANGE_SHORT, b_most);
    range->is_step = isfinite(step.left) && (step.left < ramp->left + CHANGE_BETTER * variance ||
                                             ramp->end - ramp->before < CHANGE_SLIP_SHORT);
    if (range->is_step)
        *ramp = step;
    else if (range->goes_on)
        *ramp = best_ramp(&s, 0, b_most, n - 1, n - 1, false);
}
