/* SPDX-License-Identifier: Apache-2.0 */
/* Change points, run by run: see history.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/stats.h"
#include "harness/history/history.h"

struct change_search {
    double *x; /* logarithms */
    size_t n;
    double *record;              /* after so many values: -ln p of the least likely step */
    struct change_noise *noises; /* of place at: noises[at % (CHANGE_TAIL + 1)] */
    struct change_point *points; /* `at` of the kept values */
    size_t n_points;
};

/* Behind each constant stands what it holds down: false alarms of 60 cases over a year, by the name
 * of the noise in tests/selftest/history_noise.c, without the test and with it. */
/* The logarithm of a change's probability is so many times that of anything before it. "two levels",
 * 5 for 0; "rare level", 10 for 6. */
#define RECORD 1.5
/* What order alone may be thought to do, see change_chance(): with CHANCE_FULL values before the
 * step. Ranks of fewer are coarse, and more of them tell more, by CHANCE_FALL, a power of their
 * number. "two levels", 129 for 0; "rare level", 97 for 6; "pareto", 39 for 10. */
#define CHANCE_LEVEL 5e-4
#define CHANCE_FULL  55
#define CHANCE_FALL  4
/* It keeps this much of its threshold without any one of the new values: of 400 cases of which one
 * run is 10 % off, named in 5 for 2. */
#define ALONE 0.8
/* Its third furthest value is so far out, of the second: where two runs are off, 55 for 1. */
#define TWO 0.4
/* What a level may drift from the first values that it had. */
#define DRIFT 0.02
/* No step is told below this t: it saves its probability. */
#define T_LEAST 3

/* How often a single test may be wrong, times the promise for a case and run, by the length of the
 * new level. Most goes to 5 runs, as by then a step of three standard deviations is to be found:
 * that test alone would break the promise, which holds by what the other conditions of weigh() take
 * away again (tests/selftest/history.c). */
static double share_of(size_t k)
{
    return k < 5 ? 0.1 : k == 5 ? 6 : 0.3;
}

static struct change_noise *noise_at(const struct change_search *s, size_t at)
{
    return &s->noises[at % (CHANGE_TAIL + 1)];
}

/* The last k values up to `end`, ascending in tail[], against those before them: how likely noise
 * alone makes such a step, allowing for the search; above CHANGE_LEVEL it is none. */
static double weigh(struct change_search *s, const double *tail, size_t k, size_t end)
{
    const struct change_noise *noise = noise_at(s, end - k);
    double step, t, p, need, reach = CHANGE_CLIP * noise->sd, before = 0;

    if (noise->freedom < 2)
        return 1;
    step = change_mean(tail, k, reach) - noise->level;
    t = fabs(step) / change_error(noise, k);
    if (t < T_LEAST)
        return 1;
    p = 2 * dist_t_cdf(-t, noise->freedom) / share_of(k);
    s->record[end] = fmax(s->record[end], -log(p));
    /* Its own past: the least likely before. */
    for (size_t i = end - k > CHANGE_MEMORY ? end - k - CHANGE_MEMORY : 0; i <= end - k; i++)
        before = fmax(before, s->record[i]);
    if (p > CHANGE_LEVEL || -log(p) < RECORD * before || fabs(step) < log1p(CHANGE_LEAST))
        return 1;
    /* The mean without the value that speaks most for it, and the next two of these: two values far
     * off are no level. */
    bool up = step > 0;
    double others = change_mean(up ? tail : tail + 1, k - 1, reach) - noise->level;
    double second = tail[up ? k - 2 : 1] - noise->level,
           third = tail[up ? k - 3 : 2] - noise->level;
    /* What may be left to chance alone: a level of ranks, which are coarse while values are few. */
    double full = (double)noise->n_rest / CHANCE_FULL;
    double chance = CHANCE_LEVEL * fmin(pow(full, 2), pow(full, -CHANCE_FALL));

    need = dist_t_quantile(1 - CHANGE_LEVEL * share_of(k) / 2, noise->freedom);
    return (up ? others : -others) >= ALONE * need * change_error(noise, k - 1) &&
                   fabs(third) >= TWO * fabs(second) && change_chance(noise, tail, k) <= chance
               ? p
               : 1;
}

/* The newest values against the first ones of their level: what slips a little with every run shows
 * there. A slip is next to nothing in successive differences, as von Neumann's (1941). */
static double weigh_anchor(const double *x, size_t n)
{
    size_t first = n / 2 < CHANGE_WINDOW ? n / 2 : CHANGE_WINDOW;
    double square = 0, error, drift;

    if (first < CHANGE_TAIL)
        return 1;
    drift = fabs(change_level(x + n - CHANGE_TAIL, CHANGE_TAIL) - change_level(x, first)) - DRIFT;
    if (drift <= 0)
        return 1;
    for (size_t i = 1; i < n; i++)
        square += (x[i] - x[i - 1]) * (x[i] - x[i - 1]);
    error = sqrt(square / 2 / (double)(n - 1) * (1.0 / CHANGE_TAIL + 1 / (double)first));
    return 2 * dist_t_cdf(-drift / fmax(error, CHANGE_SCALE), (double)(n - 1));
}

static size_t newest_begin(const struct change_search *s)
{
    return s->n_points ? s->points[s->n_points - 1].at : 0;
}

/* Looks at x[0..end) as after that run: do the newest values say that there is a new level? */
static void look(struct change_search *s, size_t end)
{
    size_t begin = newest_begin(s), from, head;
    double tail[CHANGE_TAIL], best = 1;

    change_noise_at(s->x, end, s->points, s->n_points, noise_at(s, end));
    for (size_t k = 1; k <= CHANGE_TAIL && end >= begin + k + CHANGE_SHORT; k++) {
        tail[k - 1] = s->x[end - k];
        change_sort(tail, k);
        if (k >= CHANGE_SHORT)
            best = fmin(best, weigh(s, tail, k, end));
    }
    best = fmin(best, weigh_anchor(s->x + begin, end - begin));
    if (best > CHANGE_LEVEL)
        return;
    from = end - begin > CHANGE_WINDOW + CHANGE_TAIL ? end - CHANGE_WINDOW - CHANGE_TAIL : begin;
    head = s->n_points ? CHANGE_SHORT : CHANGE_FIRST;
    if (end - from > head + CHANGE_TAIL)
        head = end - from - CHANGE_TAIL;
    size_t at = from + change_split(s->x + from, end - from, head, CHANGE_SHORT);

    begin = at - begin > CHANGE_WINDOW ? at - CHANGE_WINDOW : begin;
    s->points[s->n_points++] = (struct change_point){
        .at = at, .seen = end - 1, .p = best, .before = change_level(s->x + begin, at - begin)};
    /* What was known from there on is of the old level. */
    for (size_t i = at; i <= end; i++) {
        s->record[i] = i > at ? 0 : s->record[i];
        if (end - i <= CHANGE_TAIL)
            change_noise_at(s->x, i, s->points, s->n_points, noise_at(s, i));
    }
}

int change_points(const double *values, size_t n, struct change_point **points, size_t *n_points)
{
    struct change_search s = {.x = xcalloc(n, sizeof(*s.x))};
    size_t *places = xcalloc(n, sizeof(*places)); /* in values, of those that are there */
    int err = 0;

    for (size_t i = 0; !err && i < n; i++) {
        if (isnan(values[i]))
            continue;
        err = !(values[i] > 0) || isinf(values[i]) ? -EDOM : 0;
        places[s.n] = i;
        s.x[s.n++] = log(values[i]);
    }
    /* Every point has CHANGE_SHORT values behind it. */
    s.points = xcalloc(s.n / CHANGE_SHORT + 1, sizeof(*s.points));
    s.record = xcalloc(s.n + 1, sizeof(*s.record));
    s.noises = xcalloc(CHANGE_TAIL + 1, sizeof(*s.noises));
    for (size_t end = 1; !err && end <= s.n; end++)
        look(&s, end);
    change_describe(s.x, s.n, s.points, s.n_points);
    for (size_t i = 0; i < s.n_points; i++) {
        size_t *of[] = {&s.points[i].at, &s.points[i].seen, &s.points[i].at_low,
                        &s.points[i].at_high};

        for (size_t k = 0; k < sizeof(of) / sizeof(*of); k++)
            *of[k] = places[*of[k]];
    }
    *points = s.points;
    *n_points = s.n_points;
    if (!s.n_points) {
        free(s.points);
        *points = NULL;
    }
    free(s.x);
    free(s.noises);
    free(s.record);
    free(places);
    return err;
}
