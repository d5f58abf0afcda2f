/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of changes once all values are there: see change_parts.h. */
#include <math.h>
#include <string.h>

#include "core/dist.h"
#include "harness/history/change_parts.h"

/* A series with its segments, as change_describe() has it. */
struct described {
    const double *raw;
    double *x;
    size_t n;
    struct change_segment *segments;
    size_t n_segments;
};

static size_t end_of(const struct described *d, size_t segment)
{
    return segment + 1 < d->n_segments ? d->segments[segment + 1].begin : d->n;
}

/* The end of a line of n values is known as well as the mean of a quarter of them. */
static size_t worth_of_slip(const struct change_point *slip, size_t at)
{
    return at - slip->end + (slip->end - slip->at) / 4;
}

/* The step between two segments, from their values nearest to it. */
static void describe_step(const struct described *d, size_t i, struct change_point *p)
{
    size_t begin = d->segments[i].begin, end = end_of(d, i + 1);
    struct change_noise noise;
    double step, error, t, after;

    begin = p->at - begin > CHANGE_WINDOW ? p->at - CHANGE_WINDOW : begin;
    end = end - p->at > CHANGE_WINDOW ? p->at + CHANGE_WINDOW : end;
    change_noise_at(d->x, p->at, d->segments, i + 1, &noise);
    if (i && p[-1].kind == CHANGE_SLIP && noise.n_level > worth_of_slip(&p[-1], p->at))
        noise.n_level = worth_of_slip(&p[-1], p->at);
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

/* Long series are told by the means of `thin` values. */
static size_t thin_out(const double *x, size_t n, size_t thin, double *thinned)
{
    size_t k = 0;

    for (size_t end = n % thin; end + thin <= n; end += thin) {
        double sum = 0;

        for (size_t i = 0; i < thin; i++)
            sum += x[end + i];
        thinned[k++] = sum / (double)thin;
    }
    return k;
}

/* The values that tell of a slip: those of the level before it, and up to the next change or to where it has ended for long;
 * at least those that it was told by. */
struct view {
    size_t begin, end, thin;
    size_t first; /* the last value of the first mean */
};

static struct view view_of(const struct described *d, size_t i, const struct change_point *p)
{
    size_t at = d->segments[i + 1].begin, begin = d->segments[i].begin, end = end_of(d, i + 1);
    struct view v;

    begin = i && p[-1].end > begin ? p[-1].end : begin;
    v.begin = at - begin > CHANGE_WINDOW ? at - CHANGE_WINDOW : begin;
    v.end = end > p->end + CHANGE_WINDOW ? p->end + CHANGE_WINDOW : end;
    if (v.end - v.begin < CHANGE_SLIP_FIRST && v.end <= p->seen)
        v.end = p->seen + 1;
    v.thin = 1 + (v.end - v.begin - 1) / CHANGE_REACH;
    v.first = v.begin + (v.end - v.begin) % v.thin + v.thin - 1;
    return v;
}

/* The last value before the slip is told from those that the change after it leaves. */
static size_t last_before(const struct described *d, size_t i, const struct change_point *p,
                          const struct view *v)
{
    size_t end = end_of(d, i + 1), last = end > p->seen + CHANGE_SHORT ? p->seen - 1 : 0;

    if (!last)
        last = end > v->first + CHANGE_SHORT ? end - 1 - CHANGE_SHORT : v->first;
    return last > v->first ? (last - v->first) / v->thin : 0;
}

static void fill_slip(const struct change_ramp *ramp, const struct change_ramp_range *range,
                      const struct view *v, struct change_point *p)
{
    double a_run = ramp->total / (double)((ramp->end - ramp->before) * v->thin);

    p->before = exp(ramp->level);
    p->after = exp(ramp->level + ramp->total);
    p->ratio = exp(ramp->total);
    p->low = exp(range->low);
    p->high = exp(range->high);
    p->goes_on = range->goes_on;
    p->a_run = exp(a_run);
    p->a_run_low = exp(range->run_low / (double)v->thin);
    p->a_run_high = exp(range->run_high / (double)v->thin);
    p->at_low = v->first + range->before_low * v->thin + 1;
    p->at_high = v->first + range->before_high * v->thin + 1;
}

/* The slip between two segments, or the step that explains its values as well. */
static void describe_slip(const struct described *d, size_t i, struct change_point *p)
{
    struct change_segment *now = &d->segments[i + 1];
    struct view v = view_of(d, i, p);
    double thinned[CHANGE_REACH];
    struct change_ramp ramp;
    struct change_ramp_range range;
    size_t n;

    memcpy(d->x + now->begin, d->raw + now->begin, (v.end - now->begin) * sizeof(*d->x));
    n = thin_out(d->x + v.begin, v.end - v.begin, v.thin, thinned);
    change_ramp_fit(thinned, n, v.begin < CHANGE_FIRST ? CHANGE_FIRST : CHANGE_SHORT,
                    last_before(d, i, p, &v), &ramp, &range);
    p->at = now->begin = v.first + ramp.before * v.thin + 1;
    if (range.is_step) {
        p->kind = CHANGE_STEP;
        describe_step(d, i, p);
        return;
    }
    p->end = v.first + ramp.end * v.thin;
    p->end = p->end < end_of(d, i + 1) ? p->end : end_of(d, i + 1) - 1;
    fill_slip(&ramp, &range, &v, p);
    change_straighten(d->x, p->at, p->end + 1, log(p->a_run));
}

void change_describe(const double *raw, double *x, size_t n, struct change_segment *segments,
                     size_t n_segments, struct change_point *points)
{
    const struct described d = {raw, x, n, segments, n_segments};

    for (size_t i = 0; i + 1 < n_segments; i++)
        (points[i].kind == CHANGE_SLIP ? describe_slip : describe_step)(&d, i, &points[i]);
}
