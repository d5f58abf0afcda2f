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
    noise->level = level_of(x + begin, noise->n_level, near);
    noise->n_rest = distances(x, at, segments, n, noise->level, noise->rest, &n_segments);
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
    noise->freedom = fmax(0, ((double)n_near - (double)n_segments) * CLIPPED_WORTH);
    if (noise->freedom > 0)
        noise->sd =
            fmax(CHANGE_SCALE, sqrt(sum / CHANGE_CLIPPED / ((double)n_near - (double)n_segments)));
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

/* A series with its segments, as change_describe() has it. */
struct segmented {
    const double *raw;
    double *x;
    size_t n;
    struct change_segment *segments;
    size_t n_segments;
};

static size_t end_of(const struct segmented *d, size_t segment)
{
    return segment + 1 < d->n_segments ? d->segments[segment + 1].begin : d->n;
}

/* The step between two segments, from their values nearest to it. */
static void describe_step(const struct segmented *d, size_t i, struct change_point *p)
{
    size_t begin = d->segments[i].begin, end = end_of(d, i + 1);
    struct change_noise noise;
    double step, error, t, after;

    begin = p->at - begin > CHANGE_WINDOW ? p->at - CHANGE_WINDOW : begin;
    end = end - p->at > CHANGE_WINDOW ? p->at + CHANGE_WINDOW : end;
    change_noise_at(d->x, p->at, d->segments, i + 1, &noise);
    if (i && p[-1].kind == CHANGE_SLIP) {
        /* The end of a line of n values is known as well as the mean of a quarter of them. */
        size_t worth = p->at - p[-1].end + (p[-1].end - p[-1].at) / 4;

        noise.n_level = noise.n_level > worth ? worth : noise.n_level;
    }
    after = change_level(d->x + p->at, end - p->at);
    step = after - noise.level;
    error = change_error(&noise, end - p->at);
    t = dist_t_quantile((1 + CHANGE_CONFIDENCE) / 2, noise.freedom);
    p->end = p->at;
    p->before = exp(noise.level);
    p->after = exp(after);
    p->ratio = exp(step);
    p->low = exp(step - t * error);
    p->high = exp(step + t * error);
    change_place(d->x + begin, end - begin, noise.level, after, noise.sd, &p->at_low, &p->at_high);
    p->at_low += begin;
    p->at_high += begin;
}

/* The slip between two segments, or the step that explains its values as well. */
static void describe_slip(const struct segmented *d, size_t i, struct change_point *p)
{
    struct change_segment *now = &d->segments[i + 1];
    size_t next = end_of(d, i + 1), from = d->segments[i].begin, n = 0;
    double thinned[CHANGE_REACH];
    struct change_ramp ramp;
    struct change_ramp_range range;

    /* The values that tell of it: those of the level before it, and up to the next change or to where
     * it has ended for long; at least those that it was told by. */
    from = i && p[-1].end > from ? p[-1].end : from;
    size_t begin = now->begin - from > CHANGE_WINDOW ? now->begin - CHANGE_WINDOW : from;
    size_t end = next > p->end + CHANGE_WINDOW ? p->end + CHANGE_WINDOW : next;

    if (end - begin < CHANGE_SLIP_FIRST && end <= p->seen)
        end = p->seen + 1;
    memcpy(d->x + now->begin, d->raw + now->begin, (end - now->begin) * sizeof(*d->x));
    /* Long series are told by the means of `thin` values; first: the last value of the first mean. */
    size_t thin = 1 + (end - begin - 1) / CHANGE_REACH;
    size_t first = begin + (end - begin) % thin + thin - 1;

    for (size_t at = first + 1 - thin; at + thin <= end; at += thin) {
        double sum = 0;

        for (size_t k = 0; k < thin; k++)
            sum += d->x[at + k];
        thinned[n++] = sum / (double)thin;
    }
    /* The last value before the slip is told from those that the change after it leaves. */
    size_t last = next > p->seen + CHANGE_SHORT ? p->seen - 1
                  : next > first + CHANGE_SHORT ? next - 1 - CHANGE_SHORT
                                                : first;

    change_ramp_fit(thinned, n, begin < CHANGE_FIRST ? CHANGE_FIRST : CHANGE_SHORT,
                    last > first ? (last - first) / thin : 0, &ramp, &range);
    p->at = now->begin = first + ramp.before * thin + 1;
    if (range.is_step) {
        p->kind = CHANGE_STEP;
        describe_step(d, i, p);
        return;
    }
    p->end = first + ramp.end * thin;
    p->end = p->end < next ? p->end : next - 1;
    double a_run = ramp.total / (double)((ramp.end - ramp.before) * thin);

    p->before = exp(ramp.level);
    p->after = exp(ramp.level + ramp.total);
    p->ratio = exp(ramp.total);
    p->low = exp(range.low);
    p->high = exp(range.high);
    p->goes_on = range.goes_on;
    p->a_run = exp(a_run);
    p->a_run_low = exp(range.run_low / (double)thin);
    p->a_run_high = exp(range.run_high / (double)thin);
    p->at_low = first + range.before_low * thin + 1;
    p->at_high = first + range.before_high * thin + 1;
    change_straighten(d->x, p->at, p->end + 1, log(p->a_run));
}

void change_describe(const double *raw, double *x, size_t n, struct change_segment *segments,
                     size_t n_segments, struct change_point *points)
{
    const struct segmented d = {raw, x, n, segments, n_segments};

    for (size_t i = 0; i + 1 < n_segments; i++)
        (points[i].kind == CHANGE_SLIP ? describe_slip : describe_step)(&d, i, &points[i]);
}
