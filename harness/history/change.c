/* SPDX-License-Identifier: Apache-2.0 */
/* Change points, run by run: see history.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/stats.h"
#include "harness/history/history.h"

/* Behind each constant of a test stands what it holds down: false alarms of 60 cases over a year, by
 * the name of the noise in tests/selftest/history_noise.c, without the test and with it. */
/* A change exceeds what was seen before it by this much: "two levels", 5 for 0; "rare level", 10 for
 * 6. */
#define CHANGE_RECORD 1.35
#define CHANGE_KNOTS  24

enum {
    CHANGE_LENGTHS_SHORT,
    CHANGE_LENGTHS_MAIN,
    CHANGE_LENGTHS_LONG,
    CHANGE_LENGTHS_SLIP,
    CHANGE_LENGTHS
};

struct change_search {
    const double *raw; /* logarithms */
    double *x;         /* the same, those of a slip moved to the level that it leads to */
    size_t n;
    double knots[CHANGE_LENGTHS][CHANGE_KNOTS]; /* t that a step must reach, by 1 / sqrt(freedom) */
    double *record; /* after so many values: the most that a step had of its threshold */
    struct change_segment *segments;
    size_t n_segments;
    struct change_noise *noises; /* of place at: noises[at % (CHANGE_TAIL + 1)] */
    struct change_point *points; /* one less than segments; `at` of the kept values */
    bool slips;              /* the newest change is a slip that the newest values are on still */
    double slope;            /* of the newest slip */
    double calm;             /* the variance around it when it was told */
    struct change_slip slip; /* of the look that is being taken */
};

static inline struct change_segment *change_newest(const struct change_search *s)
{
    return &s->segments[s->n_segments - 1];
}

static inline bool change_is_slip(const struct change_search *s)
{
    return s->n_segments > 1 && s->points[s->n_segments - 2].kind == CHANGE_SLIP;
}

/* What the newest values say of a new level. */
struct change_find {
    double part; /* the most that a step has of its threshold; below 1: there is none */
    double p;
    bool up;
};

/* ---- Slips in the search for changes, run by run ---- */

#define SLIP_REACH (CHANGE_REACH / 2) /* a slip begins at most so many values ago */
/* What a line explains more than the best step to be told where no step is found, and where one is,
 * which is to be told soon, or was. */
#define SLIP_OVER_NONE CHANGE_BETTER
#define SLIP_OVER_STEP (2 * CHANGE_BETTER)
/* What must be left unexplained by the line alone where a slip has ended. */
#define SLIP_LEFT  (4 * CHANGE_BETTER)
#define SLIP_DRAWN 5 /* a long slip is drawn anew after so many values */
#define SLIP_CALM  2 /* a value's variance is at most so many times that of when it was told */

static size_t at_most(size_t reach, size_t begin, size_t end)
{
    return end - begin > reach ? end - reach : begin;
}

static double change_threshold(const struct change_search *s, double freedom, size_t length);
static void change_add_point(struct change_search *s, enum change_kind kind, size_t at, size_t end,
                             double p, bool up);
static void change_learn_anew(struct change_search *s, size_t end);
static void change_forget_records(struct change_search *s, size_t end);

/* The newest change is the slip that was fitted to x[begin..); it runs up to `last`. */
static void draw_slip(struct change_search *s, size_t begin, size_t last, size_t end)
{
    const struct change_ramp *line = &s->slip.line;

    change_newest(s)->begin = s->points[s->n_segments - 2].at = begin + line->before + 1;
    s->points[s->n_segments - 2].end = last - 1;
    s->slope = line->total / (double)(line->end - line->before);
    change_straighten(s->x, change_newest(s)->begin, last, s->slope);
    change_learn_anew(s, end);
}

/* A slip across the newest change, in its direction, which began before it could be told. */
static bool fit_across(struct change_search *s, size_t end, size_t *begin)
{
    const struct change_segment *now = change_newest(s);
    size_t at;

    *begin = at_most(CHANGE_REACH, now[-1].begin, end);
    if (end - *begin < CHANGE_SLIP_FIRST || *begin >= now->begin)
        return false;
    change_slip_fit(s->x + *begin, end - *begin, &s->slip);
    at = *begin + s->slip.line.before + 1;
    return at > now[-1].begin && at <= s->points[s->n_segments - 2].seen &&
           (s->slip.line.total > 0) == now->up;
}

/* Where the newest change is a slip: are the newest of x[0..end) on it still? Where they left it is
 * found, too. */
static bool change_slip_follow(struct change_search *s, size_t end)
{
    size_t at = change_newest(s)->begin, begin, off = 0;
    bool fits, was = s->slips;

    memcpy(s->x + at, s->raw + at, (end - at) * sizeof(*s->x));
    fits = fit_across(s, end, &begin);
    if (fits) {
        /* How many of the newest values are off the slip that was fitted to x[begin..end). */
        size_t from = begin + s->slip.line.before;
        off = change_slip_off(s->x + from, end - from,
                              SLIP_LEFT * fmin(s->slip.variance, SLIP_CALM * s->calm));
    }
    if (off)
        fits = was && fit_across(s, end - off, &begin); /* it ends once */
    if (fits) {
        draw_slip(s, begin, end - off, end);
    } else {
        change_straighten(s->x, at, s->points[s->n_segments - 2].end + 1, s->slope);
        change_learn_anew(s, end);
    }
    if (was || fits)
        change_forget_records(s, end); /* which were of another line */
    return s->slips = fits && !off;
}

/* The newest change is the slip that was fitted to x[begin..end), and goes on. */
static bool set_slip(struct change_search *s, size_t begin, size_t end)
{
    s->points[s->n_segments - 2].kind = CHANGE_SLIP;
    draw_slip(s, begin, end, end);
    change_forget_records(s, end);
    s->calm = s->slip.variance;
    return s->slips = true;
}

/* Is the newest change, which was told as a step, a slip? step: another is about to be told in its
 * direction. */
static bool change_step_goes_on(struct change_search *s, size_t end, bool step)
{
    size_t begin;

    return s->n_segments > 1 && !change_is_slip(s) &&
           end - change_newest(s)->begin <= CHANGE_WINDOW && fit_across(s, end, &begin) &&
           fabs(s->slip.line.total) >= log1p(CHANGE_LEAST_SLIP) &&
           change_slip_over_step(&s->slip) >= (step ? 0 : SLIP_OVER_STEP) &&
           set_slip(s, begin, end);
}

/* The slip that was fitted to x[begin..end) is new, or what a step was told of that had no level
 * yet. */
static void add_slip(struct change_search *s, size_t begin, size_t end, double p)
{
    const struct change_segment *now = change_newest(s);
    const struct change_ramp *line = &s->slip.line;
    bool up = line->total > 0;
    size_t at = begin + line->before + 1;

    if (up == now->up && at < now->begin + CHANGE_FIRST && change_step_goes_on(s, end, true))
        return;
    change_slip_fit(s->x + begin, end - begin, &s->slip);
    change_add_point(s, CHANGE_SLIP, at, end, p, up);
    set_slip(s, begin, end);
}

/* Where the newest values say that the level moved: a slip is told in place of the step if it
 * explains them better. */
static bool change_step_is_slip(struct change_search *s, size_t end, const struct change_find *step)
{
    size_t begin = at_most(SLIP_REACH, change_newest(s)->begin, end);

    if (end - begin < CHANGE_SLIP_FIRST)
        return false;
    change_slip_fit(s->x + begin, end - begin, &s->slip);
    if (fabs(s->slip.line.total) < log1p(CHANGE_LEAST_SLIP) ||
        (s->slip.line.total > 0) != step->up || change_slip_over_step(&s->slip) < SLIP_OVER_STEP)
        return false;
    add_slip(s, begin, end, step->p);
    return true;
}

/* Is there a slip that no step tells of? */
static void change_slip_look(struct change_search *s, size_t end)
{
    size_t begin = at_most(SLIP_REACH, change_newest(s)->begin, end);
    const struct change_slip *slip = &s->slip;
    double least = log1p(CHANGE_LEAST_SLIP), t, need;

    if (!change_slip_may_be(s->x + begin, end - begin, least / 2))
        return;
    change_slip_fit(s->x + begin, end - begin, &s->slip);
    need = change_threshold(s, slip->freedom, CHANGE_LENGTHS_SLIP);
    least = fmax(least, CHANGE_RECORD * change_slip_past(slip));
    t = (fabs(slip->line.total) - least) / slip->error;
    if (t < need || change_slip_over_step(slip) < SLIP_OVER_NONE)
        return;
    if (change_is_slip(s) && change_slip_follow(s, end))
        return;
    change_slip_fit(s->x + begin, end - begin, &s->slip);
    add_slip(s, begin, end, 2 * dist_t_cdf(-t, slip->freedom));
}

/* What order alone may be thought to do, see change_chance(): with CHANCE_FULL values before the
 * step. Ranks of fewer are coarse, and more of them tell more, by CHANCE_FALL, a power of their
 * number. "two levels", 129 for 0; "rare level", 97 for 6; "pareto", 39 for 10. */
#define CHANCE_LEVEL 5e-4
#define CHANCE_FULL  55
#define CHANCE_FALL  4
/* A step explains more than a line does, times this: "AR(1) 0.6", 45 for 24; "wide walk", 24 for 12. */
#define SLOPE 0.7
/* It keeps this much of its threshold without any one of the new values: of 400 cases of which one
 * run is 10 % off, named in 5 for 2. */
#define ALONE 0.8
/* Its third furthest value is so far out, of the second: where two runs are off, 55 for 1. */
#define TWO 0.4
/* With few values thresholds are higher: by this share with none, and no more with EARLY_UNTIL. "wide
 * month", 171 for 107; "AR(1) 0.6", 35 for 24. */
#define EARLY       0.2
#define EARLY_UNTIL 50

/* How often a single test may be wrong, times the promise for a case and run, by the length of the
 * new level. Most goes to 5 runs, as by then a step of three standard deviations is to be found:
 * that test alone would break the promise, which holds by what the other conditions of weigh() take
 * away again (tests/selftest/history.c). */
#define LENGTH_MAIN 5
static const double shares[CHANGE_LENGTHS] = {0.1, 6, 0.3, 1};

static size_t length_of(size_t k)
{
    return k < LENGTH_MAIN    ? CHANGE_LENGTHS_SHORT
           : k == LENGTH_MAIN ? CHANGE_LENGTHS_MAIN
                              : CHANGE_LENGTHS_LONG;
}

/* The t that a step of such a length, or a slip, must reach. Its logarithm is nearly straight
 * between knots. */
static double change_threshold(const struct change_search *s, double freedom, size_t length)
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

/* The last k values up to `end`, ascending in tail[], against those before them: what the step has
 * of its threshold; below 1 it is none. */
static double weigh(struct change_search *s, const double *tail, size_t k, size_t end)
{
    const struct change_noise *noise = noise_at(s, end - k);
    double step, part, need, reach = CHANGE_CLIP * noise->sd, before = 0;

    if (noise->freedom <= 0)
        return 0;
    step = change_mean(tail, k, reach) - noise->level;
    need = change_threshold(s, noise->freedom, length_of(k)) *
           (1 + EARLY * fmax(0, 1 - (double)noise->n_rest / EARLY_UNTIL));
    part = fabs(step) / change_error(noise, k) / need;
    s->record[end] = fmax(s->record[end], part);
    if (part < 1 || fabs(step) < log1p(CHANGE_LEAST))
        return 0;
    /* Its own past: the most that a step had of its threshold before. */
    for (size_t i = end - k > CHANGE_MEMORY ? end - k - CHANGE_MEMORY : 0; i <= end - k; i++)
        before = fmax(before, s->record[i]);
    /* The mean without the value that speaks most for it, and the next two of these: two values far
     * off are no level. */
    bool up = step > 0;
    double others = change_mean(up ? tail : tail + 1, k - 1, reach) - noise->level;
    double second = tail[up ? k - 2 : 1] - noise->level,
           third = tail[up ? k - 3 : 2] - noise->level;
    /* What may be left to chance alone: a level of ranks, which are coarse while values are few. */
    double full = (double)noise->n_rest / CHANCE_FULL;

    return part >= CHANGE_RECORD * before &&
                   (up ? others : -others) >= ALONE * need * change_error(noise, k - 1) &&
                   fabs(third) >= TWO * fabs(second) &&
                   change_chance(noise, tail, k) <=
                       CHANCE_LEVEL * fmin(pow(full, 2), pow(full, -CHANCE_FALL)) &&
                   !change_is_slope(noise, s->x + end - k - noise->n_level, k, step, SLOPE)
               ? part
               : 0;
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

        tail[k - 1] = s->x[end - k];
        change_sort(tail, k);
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

/* A change at `at` is told by x[0..end). */
static void change_add_point(struct change_search *s, enum change_kind kind, size_t at, size_t end,
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

/* What was known of the noise from the newest change on is of the old level. */
static void change_learn_anew(struct change_search *s, size_t end)
{
    size_t begin = change_newest(s)->begin;

    for (size_t i = end - begin > CHANGE_TAIL ? end - CHANGE_TAIL : begin; i <= end; i++)
        change_noise_at(s->x, i, s->segments, s->n_segments, noise_at(s, i));
}

static void change_forget_records(struct change_search *s, size_t end)
{
    for (size_t i = change_newest(s)->begin + 1; i <= end; i++)
        s->record[i] = 0;
}

/* What the newest values say of a new level is weighed against a slip that explains them as well.
 */
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

    if (s->slips) {
        /* The newest value is held against the slip that the others are on. */
        size_t drawn = s->points[s->n_segments - 2].end;

        if (end - change_newest(s)->begin < CHANGE_TAIL || end > drawn + SLIP_DRAWN)
            change_slip_follow(s, end);
        else
            s->x[end - 1] -= s->slope * (double)(end - 1 - drawn);
    }
    change_noise_at(s->x, end, s->segments, s->n_segments, noise_at(s, end));
    step = strongest(s, end);
    if (change_step_goes_on(s, end, false) || (step.part >= 1 && is_of_slip(s, end, &step)))
        return;
    if (step.part >= 1) {
        size_t begin = change_newest(s)->begin, from, head;

        from =
            end - begin > CHANGE_WINDOW + CHANGE_TAIL ? end - CHANGE_WINDOW - CHANGE_TAIL : begin;
        head = s->n_segments > 1 ? CHANGE_SHORT : CHANGE_FIRST;
        if (end - from > head + CHANGE_TAIL)
            head = end - from - CHANGE_TAIL;
        change_add_point(s, CHANGE_STEP,
                         from + change_split(s->x + from, end - from, head, CHANGE_SHORT), end,
                         step.p, step.up);
        change_forget_records(s, end);
        change_learn_anew(s, end);
    } else
        change_slip_look(s, end);
}

int change_points(const double *values, size_t n, struct change_point **points, size_t *n_points)
{
    struct change_search s = {.n_segments = 1};
    double *raw = xcalloc(n, sizeof(*raw));
    size_t *places = xcalloc(n, sizeof(*places)); /* in values, of those that are there */
    int err = 0;

    *points = NULL;
    *n_points = 0;
    for (size_t i = 0; !err && i < n; i++) {
        if (isnan(values[i]))
            continue;
        err = !(values[i] > 0) || isinf(values[i]) ? -EDOM : 0;
        places[s.n] = i;
        raw[s.n++] = log(values[i]);
    }
    /* Every point has CHANGE_SHORT values behind it. */
    size_t most = s.n / CHANGE_SHORT + 2;

    s.raw = raw;
    s.x = xmemdup(raw, s.n * sizeof(*s.x));
    s.segments = xcalloc(most, sizeof(*s.segments));
    s.points = xcalloc(most, sizeof(*s.points));
    s.record = xcalloc(s.n + 1, sizeof(*s.record));
    s.noises = xcalloc(CHANGE_TAIL + 1, sizeof(*s.noises));
    for (size_t c = 0; c < CHANGE_LENGTHS; c++)
        for (size_t i = 0; i < CHANGE_KNOTS; i++) {
            double root = (double)i / (CHANGE_KNOTS - 1); /* freedom: from infinity down to 2 */

            s.knots[c][i] =
                dist_t_quantile(1 - CHANGE_LEVEL * shares[c] / 2, i ? 2 / (root * root) : INFINITY);
        }
    for (size_t end = 1; !err && end <= s.n; end++)
        look(&s, end);
    if (!err && s.n_segments > 1) {
        change_describe(raw, s.x, s.n, s.segments, s.n_segments, s.points);
        *n_points = s.n_segments - 1;
        *points = s.points;
        s.points = NULL;
    }
    for (size_t i = 0; i < *n_points; i++) {
        struct change_point *p = &(*points)[i];
        size_t *of[] = {&p->at, &p->end, &p->seen, &p->at_low, &p->at_high};

        for (size_t k = 0; k < sizeof(of) / sizeof(*of); k++)
            *of[k] = places[*of[k]];
    }
    free(s.points);
    free(s.segments);
    free(s.x);
    free(s.noises);
    free(s.record);
    free(places);
    free(raw);
    return err;
}
