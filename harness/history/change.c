/* SPDX-License-Identifier: Apache-2.0 */
/* Change points, run by run: see change.h. */
#include "harness/history/change.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/dist.h"
#include "harness/history/change_parts.h"

#define CONFIDENCE 0.95
/* What order alone may be thought to do, see change_chance(): with CHANCE_FULL values before the step.
 * Ranks of fewer are coarse, and more of them tell more, by CHANCE_FALL, a power of their number. */
#define CHANCE_LEVEL 5e-4
#define CHANCE_FULL  55
#define CHANCE_FALL  4
#define RECORD       1.35 /* a step exceeds what was seen before it by this much */
#define SLOPE        0.7  /* and explains more than a line does, times this */
#define ALONE        0.8 /* and keeps this much of its threshold without any one of the new values */
/* With few values thresholds are higher: by this share with none, and no more with EARLY_UNTIL. */
#define EARLY       0.2
#define EARLY_UNTIL 50

#define KNOTS 24

/* How often a single test may be wrong, times the promise for a case and run, by the length of the new
 * level. Most goes to 5 runs, as by then a step of three standard deviations is to be found: that test
 * alone would break the promise, which holds by what the other conditions of weigh() take away again
 * (tests/selftest/history.c). */
enum { LENGTHS_SHORT, LENGTHS_MAIN, LENGTHS_LONG, LENGTHS };
#define LENGTH_MAIN 5
static const double shares[LENGTHS] = {0.1, 6, 0.3};

struct search {
    const double *x; /* logarithms */
    size_t n;
    double level, least;
    double knots[LENGTHS][KNOTS]; /* t that a step must reach, by 1 / sqrt(freedom) */
    double *record; /* after so many values: the most that a step had of its threshold */
    struct change_segment *segments;
    size_t n_segments;
    struct change_noise *noises; /* of place at: noises[at % (CHANGE_TAIL + 1)] */
    struct change_point *points; /* one less than segments; `at` of the kept values */
};

static double freedom_of_knot(size_t i)
{
    double root = (double)i / (KNOTS - 1);

    return 2 / (root * root); /* from infinity down to 2 */
}

static void prepare_knots(struct search *s)
{
    for (size_t c = 0; c < LENGTHS; c++)
        for (size_t i = 0; i < KNOTS; i++)
            s->knots[c][i] =
                dist_t_quantile(1 - s->level * shares[c] / 2, i ? freedom_of_knot(i) : INFINITY);
}

static size_t length_of(size_t k)
{
    return k < LENGTH_MAIN ? LENGTHS_SHORT : k == LENGTH_MAIN ? LENGTHS_MAIN : LENGTHS_LONG;
}

/* The t that a step of k values must reach. Its logarithm is nearly straight between knots. */
static double threshold(const struct search *s, double freedom, size_t k)
{
    const double *knots = s->knots[length_of(k)];
    double root = sqrt(2 / freedom) * (KNOTS - 1), part;
    size_t i = (size_t)root;

    if (freedom < 2)
        return INFINITY;
    if (i >= KNOTS - 1)
        return knots[KNOTS - 1];
    part = root - (double)i;
    return exp(log(knots[i]) + part * log(knots[i + 1] / knots[i]));
}

static struct change_noise *noise_at(const struct search *s, size_t at)
{
    return &s->noises[at % (CHANGE_TAIL + 1)];
}

static void insert(double *sorted, size_t n, double value)
{
    for (; n && sorted[n - 1] > value; n--)
        sorted[n] = sorted[n - 1];
    sorted[n] = value;
}

/* The most that a step had of its threshold before place `at`. */
static double record_before(const struct search *s, size_t at)
{
    double most = 0;

    for (size_t i = at > CHANGE_MEMORY ? at - CHANGE_MEMORY : 0; i <= at; i++)
        most = fmax(most, s->record[i]);
    return most;
}

/* What may be left to chance alone: a level of ranks, which are coarse while values are few. */
static double chance_level(size_t n)
{
    double part = (double)n / CHANCE_FULL;

    return CHANCE_LEVEL * fmin(pow(part, 2), pow(part, -CHANCE_FALL));
}

/* The t of the step without the value that speaks most for it. */
static double without_furthest(const struct change_noise *noise, const double *tail, size_t k,
                               double step)
{
    double mean = change_mean(step > 0 ? tail : tail + 1, k - 1, CHANGE_CLIP * noise->sd);

    return (mean - noise->level) * (step > 0 ? 1 : -1) / change_error(noise, k - 1);
}

/* The last k values up to `end`, ascending in tail[], against those before them: what the step has of its threshold;
 * below 1 it is none. */
static double weigh(struct search *s, const double *tail, size_t k, size_t end)
{
    const struct change_noise *noise = noise_at(s, end - k);
    double step, part, need;

    if (noise->freedom <= 0)
        return 0;
    step = change_mean(tail, k, CHANGE_CLIP * noise->sd) - noise->level;
    need = threshold(s, noise->freedom, k) *
           (1 + EARLY * fmax(0, 1 - (double)noise->n_rest / EARLY_UNTIL));
    part = fabs(step) / change_error(noise, k) / need;
    s->record[end] = fmax(s->record[end], part);
    if (part < 1 || fabs(step) < log1p(s->least) || part < RECORD * record_before(s, end - k) ||
        without_furthest(noise, tail, k, step) < ALONE * need ||
        change_chance(noise, tail, k) > chance_level(noise->n_rest) ||
        change_is_slope(noise, s->x + end - k - noise->n_level, k, step, SLOPE))
        return 0;
    return part;
}

/* Of the values up to `end`, is there a new level? The most that a step has of its threshold, and its p. */
static double strongest(struct search *s, size_t end, double *p)
{
    size_t begin = s->segments[s->n_segments - 1].begin;
    double tail[CHANGE_TAIL], best = 0;

    for (size_t k = 1; k <= CHANGE_TAIL && end >= begin + k + CHANGE_SHORT; k++) {
        double freedom = noise_at(s, end - k)->freedom, part;

        insert(tail, k - 1, s->x[end - k]);
        part = k < CHANGE_SHORT ? 0 : weigh(s, tail, k, end);
        if (part < 1 || part <= best)
            continue;
        best = part;
        *p = 2 * dist_t_cdf(-part * threshold(s, freedom, k), freedom) / shares[length_of(k)];
    }
    return best;
}

/* A new segment begins at `at`; what was known of the noise from there on is of the old one. */
static void add_point(struct search *s, size_t at, size_t seen, double p)
{
    struct change_segment *old = &s->segments[s->n_segments - 1];
    size_t begin = at - old->begin > CHANGE_WINDOW ? at - CHANGE_WINDOW : old->begin;

    old->level = change_level(s->x + begin, at - begin);
    s->points[s->n_segments - 1] = (struct change_point){.at = at, .seen = seen, .p = p};
    s->segments[s->n_segments++] = (struct change_segment){.begin = at};
    for (size_t i = at + 1; i <= seen + 1; i++)
        s->record[i] = 0;
    for (size_t i = at; i <= seen + 1; i++)
        change_noise_at(s->x, i, s->segments, s->n_segments, noise_at(s, i));
}

/* Looks at x[0..end) as after that run. */
static void look(struct search *s, size_t end)
{
    size_t begin = s->segments[s->n_segments - 1].begin, from, head;
    double p = 1;

    change_noise_at(s->x, end, s->segments, s->n_segments, noise_at(s, end));
    if (strongest(s, end, &p) < 1)
        return;
    from = end - begin > CHANGE_WINDOW + CHANGE_TAIL ? end - CHANGE_WINDOW - CHANGE_TAIL : begin;
    head = s->n_segments > 1 ? CHANGE_SHORT : CHANGE_FIRST;
    if (end - from > head + CHANGE_TAIL)
        head = end - from - CHANGE_TAIL;
    add_point(s, from + change_split(s->x + from, end - from, head, CHANGE_SHORT), end - 1, p);
}

static size_t end_of(const struct search *s, size_t segment)
{
    return segment + 1 < s->n_segments ? s->segments[segment + 1].begin : s->n;
}

/* The step between two segments, from their values nearest to it. */
static void describe(const struct search *s, size_t i)
{
    struct change_point *p = &s->points[i];
    size_t begin = s->segments[i].begin, end = end_of(s, i + 1), reach = CHANGE_WINDOW;
    struct change_noise noise;
    double step, error, t, after;

    begin = p->at - begin > CHANGE_WINDOW ? p->at - CHANGE_WINDOW : begin;
    end = end - p->at > reach ? p->at + reach : end;
    change_noise_at(s->x, p->at, s->segments, i + 1, &noise);
    after = change_level(s->x + p->at, end - p->at);
    step = after - noise.level;
    error = change_error(&noise, end - p->at);
    t = dist_t_quantile((1 + CONFIDENCE) / 2, noise.freedom);
    p->before = exp(noise.level);
    p->after = exp(after);
    p->ratio = exp(step);
    p->low = exp(step - t * error);
    p->high = exp(step + t * error);
    change_place(s->x + begin, end - begin, noise.level, after, noise.sd, &p->at_low, &p->at_high);
    p->at_low += begin;
    p->at_high += begin;
}

static int prepare(struct search *s)
{
    /* Every point has CHANGE_SHORT values behind it. */
    size_t most = s->n / CHANGE_SHORT + 2;

    s->segments = calloc(most, sizeof(*s->segments));
    s->points = calloc(most, sizeof(*s->points));
    s->record = calloc(s->n + 1, sizeof(*s->record));
    s->noises = calloc(CHANGE_TAIL + 1, sizeof(*s->noises));
    if (!s->segments || !s->points || !s->record || !s->noises)
        return -ENOMEM;
    s->n_segments = 1;
    prepare_knots(s);
    return 0;
}

/* Places among the values that are there, to places in the series. */
static void renumber(struct change_point *points, size_t n, const size_t *places)
{
    for (size_t i = 0; i < n; i++) {
        points[i].at = places[points[i].at];
        points[i].seen = places[points[i].seen];
        points[i].at_low = places[points[i].at_low];
        points[i].at_high = places[points[i].at_high];
    }
}

static int search(const double *x, size_t n, const size_t *places,
                  const struct change_options *options, struct change_point **points,
                  size_t *n_points)
{
    struct search s = {.x = x, .n = n, .level = options->level, .least = options->least};
    int err = prepare(&s);

    for (size_t end = 1; !err && end <= n; end++)
        look(&s, end);
    for (size_t i = 0; !err && i + 1 < s.n_segments; i++)
        describe(&s, i);
    if (!err && s.n_segments > 1) {
        *n_points = s.n_segments - 1;
        *points = s.points;
        s.points = NULL;
        renumber(*points, *n_points, places);
    }
    free(s.points);
    free(s.segments);
    free(s.noises);
    free(s.record);
    return err;
}

/* Logarithms of the values that are there. */
static int keep(const double *values, size_t n, double *x, size_t *places, size_t *n_kept)
{
    *n_kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (isnan(values[i]))
            continue;
        if (!(values[i] > 0) || isinf(values[i]))
            return -EDOM;
        places[*n_kept] = i;
        x[(*n_kept)++] = log(values[i]);
    }
    return 0;
}

int change_points(const double *values, size_t n, const struct change_options *options,
                  struct change_point **points, size_t *n_points)
{
    struct change_options o = options ? *options : (struct change_options){0};
    double *x = malloc((n + 1) * sizeof(*x));
    size_t *places = malloc((n + 1) * sizeof(*places)), n_kept = 0;
    int err = x && places ? 0 : -ENOMEM;

    *points = NULL;
    *n_points = 0;
    o.level = o.level == 0 ? CHANGE_LEVEL : o.level;
    o.least = o.least == 0 ? CHANGE_LEAST : o.least;
    if (!err && !(o.level > 0 && o.level < 1 && o.least > 0 && o.least < INFINITY))
        err = -EINVAL;
    if (!err)
        err = keep(values, n, x, places, &n_kept);
    if (!err)
        err = search(x, n_kept, places, &o, points, n_points);
    free(places);
    free(x);
    return err;
}
