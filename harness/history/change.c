/* SPDX-License-Identifier: Apache-2.0 */
/* Change points, run by run: see change.h. */
#include "harness/history/change.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/dist.h"
#include "harness/history/change_parts.h"

/* What order alone may be thought to do, see change_chance(): with CHANCE_FULL values before the step.
 * Ranks of fewer are coarse, and more of them tell more, by CHANCE_FALL, a power of their number. */
#define CHANCE_LEVEL 5e-4
#define CHANCE_FULL  55
#define CHANCE_FALL  4
#define SLOPE        0.7 /* and explains more than a line does, times this */
#define ALONE        0.8 /* and keeps this much of its threshold without any one of the new values */
#define TWO          0.4 /* and its third furthest value is so far out, of the second */
/* With few values thresholds are higher: by this share with none, and no more with EARLY_UNTIL. */
#define EARLY       0.2
#define EARLY_UNTIL 50

/* How often a single test may be wrong, times the promise for a case and run, by the length of the new
 * level. Most goes to 5 runs, as by then a step of three standard deviations is to be found: that test
 * alone would break the promise, which holds by what the other conditions of weigh() take away again
 * (tests/selftest/history.c). */
#define LENGTH_MAIN 5
static const double shares[CHANGE_LENGTHS] = {0.1, 6, 0.3, 1};

static double freedom_of_knot(size_t i)
{
    double root = (double)i / (CHANGE_KNOTS - 1);

    return 2 / (root * root); /* from infinity down to 2 */
}

static void prepare_knots(struct change_search *s)
{
    for (size_t c = 0; c < CHANGE_LENGTHS; c++)
        for (size_t i = 0; i < CHANGE_KNOTS; i++)
            s->knots[c][i] =
                dist_t_quantile(1 - s->level * shares[c] / 2, i ? freedom_of_knot(i) : INFINITY);
}

static size_t length_of(size_t k)
{
    return k < LENGTH_MAIN    ? CHANGE_LENGTHS_SHORT
           : k == LENGTH_MAIN ? CHANGE_LENGTHS_MAIN
                              : CHANGE_LENGTHS_LONG;
}

/* The t that a step of such a length, or a slip, must reach. Its logarithm is nearly straight between knots. */
double change_threshold(const struct change_search *s, double freedom, size_t length)
{
    const double *knots = s->knots[length];
    double root = sqrt(2 / freedom) * (CHANGE_KNOTS - 1), part;
    size_t i = (size_t)root;

    if (freedom < 2)
        return INFINITY;
    if (i >= CHANGE_KNOTS - 1)
        return knots[CHANGE_KNOTS - 1];
    part = root - (double)i;
    return exp(log(knots[i]) + part * log(knots[i + 1] / knots[i]));
}

static struct change_noise *noise_at(const struct change_search *s, size_t at)
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
static double record_before(const struct change_search *s, size_t at)
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

/* Two values far off are no level. */
static bool are_two(const struct change_noise *noise, const double *tail, size_t k, double step)
{
    double second = tail[step > 0 ? k - 2 : 1], third = tail[step > 0 ? k - 3 : 2];

    return fabs(third - noise->level) < fabs(second - noise->level) * TWO;
}

/* The last k values up to `end`, ascending in tail[], against those before them: what the step has of its threshold;
 * below 1 it is none. */
static double weigh(struct change_search *s, const double *tail, size_t k, size_t end)
{
    const struct change_noise *noise = noise_at(s, end - k);
    double step, part, need;

    if (noise->freedom <= 0)
        return 0;
    step = change_mean(tail, k, CHANGE_CLIP * noise->sd) - noise->level;
    need = change_threshold(s, noise->freedom, length_of(k)) *
           (1 + EARLY * fmax(0, 1 - (double)noise->n_rest / EARLY_UNTIL));
    part = fabs(step) / change_error(noise, k) / need;
    s->record[end] = fmax(s->record[end], part);
    if (part < 1 || fabs(step) < log1p(s->least) ||
        part < CHANGE_RECORD * record_before(s, end - k) ||
        without_furthest(noise, tail, k, step) < ALONE * need || are_two(noise, tail, k, step) ||
        change_chance(noise, tail, k) > chance_level(noise->n_rest) ||
        change_is_slope(noise, s->x + end - k - noise->n_level, k, step, SLOPE))
        return 0;
    return part;
}

/* Of the values up to `end`, is there a new level? */
static struct change_find strongest(struct change_search *s, size_t end)
{
    size_t begin = s->segments[s->n_segments - 1].begin;
    double tail[CHANGE_TAIL];
    struct change_find best = {0};

    for (size_t k = 1; k <= CHANGE_TAIL && end >= begin + k + CHANGE_SHORT; k++) {
        const struct change_noise *noise = noise_at(s, end - k);
        double part;

        insert(tail, k - 1, s->x[end - k]);
        part = k < CHANGE_SHORT ? 0 : weigh(s, tail, k, end);
        if (part < 1 || part <= best.part)
            continue;
        best.part = part;
        best.up = tail[k / 2] > noise->level;
        best.p =
            2 *
            dist_t_cdf(-part * change_threshold(s, noise->freedom, length_of(k)), noise->freedom) /
            shares[length_of(k)];
    }
    return best;
}

void change_add_point(struct change_search *s, enum change_kind kind, size_t at, size_t end,
                      double p, bool up)
{
    struct change_segment *old = change_newest(s);
    size_t begin = at - old->begin > CHANGE_WINDOW ? at - CHANGE_WINDOW : old->begin;

    old->level = change_level(s->x + begin, at - begin);
    s->points[s->n_segments - 1] =
        (struct change_point){.kind = kind, .at = at, .seen = end - 1, .p = p};
    s->segments[s->n_segments++] = (struct change_segment){.begin = at, .up = up};
    s->slips = false;
}

void change_learn_anew(struct change_search *s, size_t end)
{
    size_t begin = change_newest(s)->begin;

    for (size_t i = end - begin > CHANGE_TAIL ? end - CHANGE_TAIL : begin; i <= end; i++)
        change_noise_at(s->x, i, s->segments, s->n_segments, noise_at(s, i));
}

void change_forget_records(struct change_search *s, size_t end)
{
    for (size_t i = change_newest(s)->begin + 1; i <= end; i++)
        s->record[i] = 0;
}

static void add_step(struct change_search *s, size_t end, const struct change_find *step)
{
    size_t begin = change_newest(s)->begin, from, head;

    from = end - begin > CHANGE_WINDOW + CHANGE_TAIL ? end - CHANGE_WINDOW - CHANGE_TAIL : begin;
    head = s->n_segments > 1 ? CHANGE_SHORT : CHANGE_FIRST;
    if (end - from > head + CHANGE_TAIL)
        head = end - from - CHANGE_TAIL;
    change_add_point(s, CHANGE_STEP,
                     from + change_split(s->x + from, end - from, head, CHANGE_SHORT), end, step->p,
                     step->up);
    change_forget_records(s, end);
    change_learn_anew(s, end);
}

/* What the newest values say of a new level is weighed against a slip that explains them as well. */
static bool is_of_slip(struct change_search *s, size_t end, struct change_find *step)
{
    if (change_is_slip(s)) {
        if (change_slip_follow(s, end))
            return true;
        *step = strongest(s, end);
        if (step->part < 1)
            return false;
    } else if (step->up == change_newest(s)->up && end - change_newest(s)->begin <= CHANGE_TAIL &&
               change_step_goes_on(s, end, true)) {
        return true;
    }
    return change_step_is_slip(s, end, step);
}

/* Looks at x[0..end) as after that run. */
static void look(struct change_search *s, size_t end)
{
    struct change_find step;

    if (s->slips)
        change_slip_extend(s, end);
    change_noise_at(s->x, end, s->segments, s->n_segments, noise_at(s, end));
    step = strongest(s, end);
    if (change_step_goes_on(s, end, false) || (step.part >= 1 && is_of_slip(s, end, &step)))
        return;
    if (step.part >= 1)
        add_step(s, end, &step);
    else
        change_slip_look(s, end);
}

static int prepare(struct change_search *s)
{
    /* Every point has CHANGE_SHORT values behind it. */
    size_t most = s->n / CHANGE_SHORT + 2;

    s->x = malloc(s->n * sizeof(*s->x));
    s->segments = calloc(most, sizeof(*s->segments));
    s->points = calloc(most, sizeof(*s->points));
    s->record = calloc(s->n + 1, sizeof(*s->record));
    s->noises = calloc(CHANGE_TAIL + 1, sizeof(*s->noises));
    if (!s->x || !s->segments || !s->points || !s->record || !s->noises)
        return -ENOMEM;
    memcpy(s->x, s->raw, s->n * sizeof(*s->x));
    s->n_segments = 1;
    prepare_knots(s);
    return 0;
}

/* Places among the values that are there, to places in the series. */
static void renumber(struct change_point *points, size_t n, const size_t *places)
{
    for (size_t i = 0; i < n; i++) {
        points[i].at = places[points[i].at];
        points[i].end = places[points[i].end];
        points[i].seen = places[points[i].seen];
        points[i].at_low = places[points[i].at_low];
        points[i].at_high = places[points[i].at_high];
    }
}

static int search(const double *raw, size_t n, const size_t *places,
                  const struct change_options *options, struct change_point **points,
                  size_t *n_points)
{
    struct change_search s = {.raw = raw,
                              .n = n,
                              .level = options->level,
                              .least = options->least,
                              .least_slip = options->least_slip};
    int err = prepare(&s);

    for (size_t end = 1; !err && end <= n; end++)
        look(&s, end);
    if (!err && s.n_segments > 1) {
        change_describe(raw, s.x, n, s.segments, s.n_segments, s.points);
        *n_points = s.n_segments - 1;
        *points = s.points;
        s.points = NULL;
        renumber(*points, *n_points, places);
    }
    free(s.points);
    free(s.segments);
    free(s.x);
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
    o.least_slip = o.least_slip == 0 ? CHANGE_LEAST_SLIP : o.least_slip;
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
