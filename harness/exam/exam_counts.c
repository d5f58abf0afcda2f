/* SPDX-License-Identifier: Apache-2.0 */
/* Counters since boot, and how they grew between two readings: see exam.h. */
#include <math.h>

#include "harness/exam/exam.h"

/* A share needs so many bad ones at its limit, to be one. */
#define ENOUGH 10
/* What came since such a boot came today. */
#define TODAY_DAYS 1

bool exam_days(struct exam *x, const char *subject, double *days)
{
    double seconds;

    if (!exam_number(x, subject, NULL, "load.uptime_seconds", &seconds))
        return false;
    if (seconds < 600) {
        exam_unknown(x, subject, "%.0f s after boot, events of the boot itself are not told apart",
                     seconds);
        return false;
    }
    *days = seconds / 86400;
    return true;
}

void exam_undated(struct exam *x, const char *subject, double count, const char *what, double days)
{
    exam_unknown(x, subject,
                 "%.0f %s %.4g days: when they came is unknown; compare two records (--json), an "
                 "hour apart: plumb doctor A B",
                 count, what, days);
}

double exam_watched(struct exam *x)
{
    const json_t *seconds = exam_get(x, NULL, "load.watched_seconds");

    return json_is_number(seconds) ? json_number_value(seconds) : 0;
}

bool exam_grown(struct exam *x, const json_t *object, const char *counters, const char *const *keys,
                double *total)
{
    const json_t *all = json_object_get(object, counters), *grown = exam_get(x, object, "grown");

    *total = 0;
    if (exam_watched(x) <= 0 || !grown)
        return false;
    for (; *keys; keys++) {
        const json_t *more = json_object_get(grown, *keys);

        if (json_object_get(all, *keys) && !json_is_number(more))
            return false;
        *total += json_is_number(more) ? json_number_value(more) : 0;
    }
    return true;
}

/* A share that is a fault: of so much traffic that the limit is a whole one, and of no more than all
 * traffic. What is counted beside little traffic may be a peer that ended. */
static bool is_fault(const struct exam_share *s, double bad, double all)
{
    return bad > s->least && bad > s->limit * all && s->limit * all >= 1 && bad <= all;
}

/* What came between two readings says more than what came since boot, if it is enough to say
 * anything. False: it is not. */
static bool by_growth(struct exam *x, const json_t *object, const struct exam_share *s,
                      struct exam_span *span, enum exam_when *when)
{
    if (!exam_grown(x, object, s->bad_in, s->bad, &span->bad) ||
        !exam_grown(x, object, s->all_in, s->all, &span->all))
        return false;
    span->text = exam_format(x, "within %.*f s", exam_watched(x) < 100, exam_watched(x));
    if (is_fault(s, span->bad, span->all)) {
        *when = EXAM_NOW;
        return true;
    }
    if (s->limit * span->all < ENOUGH)
        return false;
    span->brief = span->bad > s->limit * span->all;
    *when = span->brief ? EXAM_UNDATED : EXAM_FEW;
    return true;
}

enum exam_when exam_share_when(struct exam *x, const char *subject, const json_t *object,
                               const struct exam_share *s, struct exam_span *span)
{
    enum exam_when when;
    double days, bad, all;
    const json_t *uptime;

    if (!exam_sum(x, subject, object, s->bad_in, s->bad, &bad) ||
        !exam_sum(x, subject, object, s->all_in, s->all, &all))
        return EXAM_NOT_READ;
    if (by_growth(x, object, s, span, &when))
        return when;
    uptime = exam_get(x, NULL, "load.uptime_seconds");
    days = json_number_value(uptime) / 86400;
    *span = (struct exam_span){bad, all, exam_format(x, "in %.4g days since boot", days), false};
    if (bad <= s->least)
        return EXAM_FEW;
    if (days * 86400 < 600) /* or not known */
        return EXAM_UNDATED;
    if (bad > s->limit * all)
        return days <= TODAY_DAYS && is_fault(s, bad, all) ? EXAM_NOW : EXAM_UNDATED;
    /* Few, had they all come within one hour of usual traffic. */
    return bad <= s->limit * all / fmax(24 * days, 1) ? EXAM_FEW : EXAM_UNDATED;
}

void exam_share_undated(struct exam *x, const char *subject, const struct exam_span *span,
                        const char *what)
{
    double days;

    if (span->brief)
        exam_unknown(x, subject,
                     "%.0f %s %.1f s: above the limit; --watch 1m tells whether it goes on",
                     span->bad, what, exam_watched(x));
    else if (exam_days(x, subject, &days))
        exam_undated(x, subject, span->bad, what, days);
}
