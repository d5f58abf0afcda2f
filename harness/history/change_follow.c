/* SPDX-License-Identifier: Apache-2.0 */
/* Slips in the search for changes, run by run: see change_parts.h. */
#include <math.h>
#include <string.h>

#include "core/dist.h"
#include "harness/history/change_parts.h"

#define SLIP_REACH 365 /* a slip begins at most so many values ago */
/* In variances of a value, as the noise's correlation makes them count: what a line explains more than the best step to be told
 * where no step is found, and where one is, which is to be told soon, or was. */
#define SLIP_OVER_NONE 4
#define SLIP_OVER_STEP 8
#define SLIP_LEFT      16 /* what must be left unexplained by the line alone where a slip has ended */
#define SLIP_DRAWN     5 /* a long slip is drawn anew after so many values */
#define SLIP_CALM      2 /* a value's variance is at most so many times that of when it was told */

static size_t at_most(size_t reach, size_t begin, size_t end)
{
    return end - begin > reach ? end - reach : begin;
}

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

/* How many of the newest values are off the slip that was fitted to x[begin..end). */
static size_t count_off(const struct change_search *s, size_t begin, size_t end)
{
    size_t from = begin + s->slip.line.before;

    return change_slip_off(s->x + from, end - from,
                           SLIP_LEFT * fmin(s->slip.variance, SLIP_CALM * s->calm));
}

void change_slip_extend(struct change_search *s, size_t end)
{
    size_t drawn = s->points[s->n_segments - 2].end;

    if (end - change_newest(s)->begin < CHANGE_TAIL || end > drawn + SLIP_DRAWN)
        change_slip_follow(s, end);
    else
        s->x[end - 1] -= s->slope * (double)(end - 1 - drawn);
}

bool change_slip_follow(struct change_search *s, size_t end)
{
    size_t at = change_newest(s)->begin, begin, off = 0;
    bool fits, was = s->slips;

    memcpy(s->x + at, s->raw + at, (end - at) * sizeof(*s->x));
    fits = fit_across(s, end, &begin);
    if (fits)
        off = count_off(s, begin, end);
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

/* Is the newest change, which was told as a step, a slip? By how much better that must explain the values. */
bool change_step_goes_on(struct change_search *s, size_t end, bool step)
{
    size_t begin;

    return s->n_segments > 1 && !change_is_slip(s) &&
           end - change_newest(s)->begin <= CHANGE_WINDOW && fit_across(s, end, &begin) &&
           fabs(s->slip.line.total) >= log1p(s->least_slip) &&
           change_slip_over_step(&s->slip) >= (step ? 0 : SLIP_OVER_STEP) &&
           set_slip(s, begin, end);
}

/* The slip that was fitted to x[begin..end) is new, or what a step was told of that had no level yet. */
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

/* Where the newest values say that the level moved, a slip is told in place of the step if it explains them better. */
bool change_step_is_slip(struct change_search *s, size_t end, const struct change_find *step)
{
    size_t begin = at_most(SLIP_REACH, change_newest(s)->begin, end);

    if (end - begin < CHANGE_SLIP_FIRST)
        return false;
    change_slip_fit(s->x + begin, end - begin, &s->slip);
    if (fabs(s->slip.line.total) < log1p(s->least_slip) || (s->slip.line.total > 0) != step->up ||
        change_slip_over_step(&s->slip) < SLIP_OVER_STEP)
        return false;
    add_slip(s, begin, end, step->p);
    return true;
}

/* A slip that no step tells of. */
void change_slip_look(struct change_search *s, size_t end)
{
    size_t begin = at_most(SLIP_REACH, change_newest(s)->begin, end);
    const struct change_slip *slip = &s->slip;
    double least = log1p(s->least_slip), t, need;

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
