/* SPDX-License-Identifier: Apache-2.0 */
/* Counters since boot, and how they grew between two readings: see exam.h. */
#include <math.h>
#include <string.h>

#include "harness/exam/exam.h"

/* A share needs so many bad ones at its limit, to be one. */
#define ENOUGH 10
/* What came since such a boot came today. */
#define TODAY_DAYS 1
#define HOUR       3600
#define DAY        86400

bool exam_days(struct exam *x, double *days)
{
    double seconds;

    if (!exam_number(x, NULL, "load.uptime_seconds", &seconds))
        return false;
    if (seconds < 600) {
        exam_unknown(x, "%.0f s after boot, events of the boot itself are not told apart", seconds);
        return false;
    }
    *days = seconds / DAY;
    return true;
}

void exam_undated(struct exam *x, double count, const char *what, double days)
{
    exam_unknown(x,
                 "%.*f %s %.4g days: when they came is unknown; compare two records (--json), an "
                 "hour apart: plumb doctor A B",
                 count < 10 && count != floor(count), count, what, days);
}

double exam_watched(struct exam *x)
{
    return exam_value(x, NULL, "load.watched_seconds", 0);
}

/* Those of InfiniBand's port counters that are read and have few bits stop at their largest number
 * (InfiniBand Architecture Specification, PortCounters). */
static bool is_full(const char *key, double count)
{
    static const struct {
        const char *key;
        double most;
    } small[] = {{"link_downed", 255},
                 {"link_error_recovery", 255},
                 {"symbol_error", 65535},
                 {"port_rcv_errors", 65535}};

    for (size_t i = 0; i < sizeof(small) / sizeof(*small); i++)
        if (!strcmp(key, small[i].key))
            return count == small[i].most;
    return false;
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

        if (json_object_get(all, *keys) &&
            (!json_is_number(more) || is_full(*keys, fact_number(all, *keys, 0))))
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

static const char *within(struct exam *x)
{
    double watched = exam_watched(x);

    return watched < 2 * HOUR ? exam_format(x, "within %.*f s", watched < 100, watched)
                              : exam_format(x, "within %.3g hours", watched / HOUR);
}

/* What came between two readings says more than what came since boot, if it is enough to say
 * anything. False: it is not. */
static bool by_growth(struct exam *x, const json_t *object, const struct exam_share *s,
                      struct exam_span *span, enum exam_when *when)
{
    if (!exam_grown(x, object, s->bad_in, s->bad, &span->bad) ||
        !exam_grown(x, object, s->all_in, s->all, &span->all))
        return false;
    span->text = within(x);
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

enum exam_when exam_share_when(struct exam *x, const json_t *object, const struct exam_share *s,
                               struct exam_span *span)
{
    enum exam_when when;
    double days, bad, all;

    if (!exam_sum(x, object, s->bad_in, s->bad, &bad) ||
        !exam_sum(x, object, s->all_in, s->all, &all))
        return EXAM_NOT_READ;
    if (by_growth(x, object, s, span, &when))
        return when;
    days = exam_value(x, NULL, "load.uptime_seconds", 0) / DAY;
    *span = (struct exam_span){bad, all, exam_format(x, "in %.4g days since boot", days), false};
    if (bad <= s->least)
        return EXAM_FEW;
    if (days * DAY < 600) /* or not known */
        return EXAM_UNDATED;
    if (bad > s->limit * all)
        return days <= TODAY_DAYS && is_fault(s, bad, all) ? EXAM_NOW : EXAM_UNDATED;
    /* Few, had they all come within one hour of usual traffic. */
    return bad <= s->limit * all / fmax(24 * days, 1) ? EXAM_FEW : EXAM_UNDATED;
}

enum exam_when exam_rate_when(struct exam *x, const json_t *object, const struct exam_rate *rate,
                              struct exam_span *span)
{
    double watched = exam_watched(x), grown, total, days;
    bool known;

    if (!exam_sum(x, object, rate->in, rate->keys, &total))
        return EXAM_NOT_READ;
    known = exam_grown(x, object, rate->in, rate->keys, &grown);
    if (known && grown > 0 && grown >= rate->per_day * watched / DAY) {
        *span = (struct exam_span){grown, 0, within(x), true};
        if (grown > (watched < DAY ? rate->at_once : rate->most))
            return EXAM_NOW;
        if (watched < HOUR && total > rate->most)
            return EXAM_UNDATED;
    }
    *span = (struct exam_span){total, 0, "", false};
    if (total <= rate->most || (known && watched >= HOUR))
        return EXAM_FEW;
    if (!exam_days(x, &days))
        return EXAM_NOT_READ;
    span->text = exam_format(x, "in %.4g days since boot", days);
    return days <= TODAY_DAYS && total >= rate->per_day * days ? EXAM_NOW : EXAM_UNDATED;
}

/* False: between the readings was too little of it to say anything. */
static bool part_grown(struct exam *x, const json_t *object, const struct exam_part *p,
                       struct exam_span *span, enum exam_when *when)
{
    const json_t *grown = exam_get(x, object, "grown");
    double bad = fact_number(grown, p->bad, -1), all = fact_number(grown, p->all, -1);

    if (exam_watched(x) <= 0 || bad < 0 || all <= 0)
        return false;
    *span = (struct exam_span){bad, all, within(x), false};
    *when = EXAM_FEW;
    if (bad <= p->limit * all)
        return all >= p->enough;
    span->brief = all < p->enough && bad <= p->sure * all;
    *when = span->brief ? EXAM_UNDATED : EXAM_NOW;
    return bad >= p->least;
}

enum exam_when exam_part_when(struct exam *x, const json_t *object, const struct exam_part *p,
                              double bad, double all, struct exam_span *span)
{
    double days = exam_value(x, NULL, "load.uptime_seconds", 0) / DAY;
    enum exam_when when;

    if (part_grown(x, object, p, span, &when))
        return when;
    *span = (struct exam_span){bad, all, exam_format(x, "in %.4g days since boot", days), false};
    if (bad <= p->limit * all)
        return EXAM_FEW;
    return days > 0 && days <= TODAY_DAYS ? EXAM_NOW : EXAM_UNDATED;
}

void exam_share_undated(struct exam *x, const struct exam_span *span, const char *what)
{
    double days;

    if (span->brief)
        exam_unknown(x, "%.*f %s %.1f s: above the limit; --watch 1m tells whether it goes on",
                     span->bad < 10 && span->bad != floor(span->bad), span->bad, what,
                     exam_watched(x));
    else if (exam_days(x, &days))
        exam_undated(x, span->bad, what, days);
}

#define EVENTS_MAX 4

enum exam_when exam_events(struct exam *x, const json_t *object, const struct exam_event *events)
{
    struct exam_span spans[EVENTS_MAX];
    enum exam_when when[EVENTS_MAX];
    size_t n = 0;

    for (const struct exam_event *e = events; e->found; e++, n++) {
        when[n] = e->rate    ? exam_rate_when(x, object, e->rate, &spans[n])
                  : e->share ? exam_share_when(x, object, e->share, &spans[n])
                             : e->when(x, object, &spans[n]);
        if (when[n] == EXAM_NOT_READ)
            return EXAM_NOT_READ;
    }
    for (size_t i = 0; i < n; i++)
        if (when[i] == EXAM_NOW) {
            exam_found(x, "%s", exam_fill(x, events[i].found, &spans[i]));
            if (events[i].remedy)
                exam_remedy(x, "%s", events[i].remedy);
            return EXAM_NOW;
        }
    for (size_t i = 0; i < n; i++)
        if (when[i] == EXAM_UNDATED) {
            exam_share_undated(x, &spans[i], events[i].undated);
            return EXAM_UNDATED;
        }
    return EXAM_FEW;
}
