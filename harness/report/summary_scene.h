/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the first screen (summary*.c) share. */
#ifndef PLUMB_REPORT_SUMMARY_SCENE_H
#define PLUMB_REPORT_SUMMARY_SCENE_H

#include <math.h>

#include "harness/report/summary.h"

struct scene {
    struct report *r;
    struct pool *pool;
    const struct headlines *h;
    size_t run;
    bool notes; /* all is told */
    struct document *d;
};

static inline const struct headline_run *scene_line(const struct scene *s, size_t i)
{
    return &s->h->all[i].runs[s->run];
}

/* "GEMM f64 1024" */
const char *scene_name(const struct scene *s, size_t i);
/* A reason for one line of an answer: the notes have it whole. */
const char *scene_shortened(const struct scene *s, const char *text);

static inline bool line_is(const struct headline_run *at, enum verdict_kind kind)
{
    return at->verdict.kind == kind;
}

static inline bool line_has_value(const struct headline_run *at)
{
    return at->point && at->point->n_values && point_is_measured(at->point);
}

static inline bool line_has_failed(const struct headline_run *at)
{
    return at->verdict.tone == TONE_BAD;
}

static inline bool line_is_judged(const struct headline_run *at)
{
    return at->verdict.low_below > 0;
}

/* Of a line with a value what is shown: the median, or what was sustained over all of the time where that
 * is less; and the share of the limit that it is. */
static inline double line_value(const struct headline_run *at)
{
    return isfinite(at->point->sustained.value) ? at->point->sustained.value : at->point->value;
}

static inline double line_percent(const struct headline_run *at)
{
    return at->point->percent * line_value(at) / at->point->value;
}

/* The first case of these that is not told yet, in order of what comes first: what is lost, then what
 * lies above its limit, for then the limit or the path is wrong; then what is slow beside its like, then
 * what is lowest. The number of lines where there is none. */
size_t scene_next(const struct scene *s, bool (*is)(const struct headline_run *), const bool *told);

/* The lines on the machine and on the run. */
void summary_machine(const struct scene *s);
void summary_run(const struct scene *s);

struct problems {
    const char **texts;
    size_t n;
    const char *command; /* to look closer at the first case among them; "" */
};

struct problems summary_problems(const struct scene *s);
/* What looks slow or low: a single repetition, or an interval that is too wide, proves nothing. */
struct problems summary_suspects(const struct scene *s);

#endif
