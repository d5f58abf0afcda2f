/* SPDX-License-Identifier: Apache-2.0 */
/* The plain sentence on one point: see headline.h. */
#include <math.h>
#include <string.h>

#include "core/limit_remark.h"
#include "core/units.h"
#include "harness/report/headline.h"
#include "harness/report/show.h"

static const char *string_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

/* The addresses of two GPUs stand in one cell, with a '+' between them. */
static bool names_it(const char *cell, const char *subject)
{
    size_t len = strlen(subject);

    while (*cell) {
        size_t n = strcspn(cell, "+");

        if (n == len && !memcmp(cell, subject, n))
            return true;
        cell += n + (cell[n] == '+');
    }
    return false;
}

/* A finding is on this case when the rule names its subject, or a parameter of the case is it. */
static bool is_about(const json_t *finding, const struct report_bench *b,
                     const struct report_case *c, const struct headline_rule *rule)
{
    const char *subject = string_of(finding, "subject");

    if (!*subject || strcmp(string_of(finding, "severity"), "warn") != 0)
        return false;
    for (size_t i = 0; i < b->n_params; i++)
        if (names_it(c->params[i], subject))
            return true;
    return rule && word_in(rule->subjects, subject);
}

static const char *join(struct pool *pool, const char *sentence, const char *more)
{
    return *more ? pool_text(pool, "%s; %s", sentence, more) : sentence;
}

static const char *add_findings(struct report *r, size_t run, const struct report_bench *b,
                                const struct report_case *c, const struct headline_rule *rule,
                                const char *sentence)
{
    const json_t *machine = json_object_get(r->runs[run].meta, "machine");
    const json_t *findings = json_object_get(machine, "findings");
    json_t *finding;
    size_t i;

    json_array_foreach (findings, i, finding)
        if (is_about(finding, b, c, rule))
            sentence = join(&r->pool, sentence, string_of(finding, "text"));
    return sentence;
}

const char *verdict_device_findings(struct report *r, size_t run, const struct report_bench *b,
                                    const struct report_case *c)
{
    const char *all = add_findings(r, run, b, c, NULL, "");

    return !strncmp(all, "; ", 2) ? all + 2 : all;
}

static struct verdict without_value(struct pool *pool, const struct report_point *p)
{
    const char *why = *p->reason ? p->reason : "no reason is given";

    if (!p->n_rows)
        return (struct verdict){MOOD_OPEN, "not measured: this run has no such case"};
    if (!strcmp(p->status, "wrong"))
        return (struct verdict){MOOD_BAD, pool_text(pool, "wrong data: %s", why)};
    if (!strcmp(p->status, "failed"))
        return (struct verdict){MOOD_BAD, pool_text(pool, "failed: %s", why)};
    return (struct verdict){MOOD_OPEN, pool_text(pool, "not measured: %s", why)};
}

/* A verdict holds only if it holds for the whole interval; without one there is none. */
static struct verdict judge(struct pool *pool, const struct report_point *p, double low_below)
{
    const char *share = show_percent(pool, p->percent);
    double low = 100 * p->low / p->limit, high = 100 * p->high / p->limit;

    if (isnan(low) || isnan(high)) {
        bool above = p->percent > LIMIT_EXCEEDED_PERCENT;

        return (struct verdict){above ? MOOD_WARN : MOOD_OPEN,
                                pool_text(pool, "undecided: %s of the limit in a single launch%s",
                                          share, above ? ", above what is possible" : "")};
    }
    if (low > LIMIT_EXCEEDED_PERCENT)
        return (struct verdict){
            MOOD_WARN,
            pool_text(pool,
                      "%s of the limit: the limit is too low, or the data did not take that path",
                      share)};
    if (high < low_below)
        return (struct verdict){MOOD_WARN, pool_text(pool, "low: %s of the limit", share)};
    if (low >= low_below && p->percent <= LIMIT_EXCEEDED_PERCENT)
        return (struct verdict){MOOD_GOOD, pool_text(pool, "normal: %s of the limit", share)};
    return (struct verdict){MOOD_WARN,
                            pool_text(pool, "undecided: %s of the limit, but it may be %s to %s",
                                      share, show_percent(pool, low), show_percent(pool, high))};
}

bool point_is_measured(const struct report_point *p)
{
    return !strcmp(p->origin, "measured");
}

static struct verdict against_limit(struct report *r, size_t run, const struct report_bench *b,
                                    const struct report_case *c, const struct headline_rule *rule)
{
    const struct report_point *p = &c->points[run];
    struct verdict v = {MOOD_OPEN, "not judged: no limit is known"};

    if (isnan(p->percent))
        return v;
    if (p->reference) {
        v.sentence = pool_text(&r->pool, "not judged: %s of a reference, the best of the same work",
                               show_percent(&r->pool, p->percent));
        return v;
    }
    if (!report_higher_is_better(c->unit) || !rule || isnan(rule->low_below) ||
        !point_is_measured(p)) {
        v.sentence = pool_text(&r->pool, "%s of the limit", show_percent(&r->pool, p->percent));
        return v;
    }
    v = judge(&r->pool, p, rule->low_below);
    if (!strncmp(v.sentence, "low", 3))
        v.sentence = add_findings(r, run, b, c, rule, v.sentence);
    return v;
}

static const char *levels_text(struct pool *pool, const struct report_point *p)
{
    const char *of = "launches";

    if (p->two == TWO_SAMPLES)
        of = p->n_values > 1 ? pool_text(pool, "samples of a launch (so in %zu of %zu launches)",
                                         p->n_two, p->n_values)
                             : "samples";
    return pool_text(
        pool, "two levels: %s in %s and %s in %s of the %s", show_number(pool, p->levels.low),
        show_percent(pool, 100 * p->levels.share_low), show_number(pool, p->levels.high),
        show_percent(pool, 100 * p->levels.share_high), of);
}

static void warn(struct pool *pool, struct verdict *v, const char *remark)
{
    v->sentence = join(pool, v->sentence,
                       remark); /* the judgement comes first: a narrow terminal cuts the rest */
    if (v->mood < MOOD_WARN)
        v->mood = MOOD_WARN;
}

/* "disturbed in 2 of 3 launches (steal 3.1 %)": the first one's cause stands for all. */
static const char *disturbance(struct pool *pool, const struct report_point *p)
{
    const char *end = strstr(p->disturbed, "; ");
    int n = (int)(end ? (size_t)(end - p->disturbed) : strlen(p->disturbed));

    if (p->n_rows == 1)
        return pool_text(pool, "disturbed: %.*s", n, p->disturbed);
    return pool_text(pool, "disturbed in %zu of %zu launches (%.*s)", p->n_disturbed, p->n_rows, n,
                     p->disturbed);
}

static void add_noise(struct pool *pool, const struct report_point *p, struct verdict *v)
{
    const char *noisy;
    char sides[48];

    if (p->two != TWO_NOT)
        warn(pool, v, levels_text(pool, p));
    if (!p->n_noisy)
        return;
    noisy = p->n_rows > 1 ? pool_text(pool, "noisy in %zu of %zu launches", p->n_noisy, p->n_rows)
                          : "noisy";
    if (*units_format_interval(p->low, p->high, p->value, sides, sizeof(sides)))
        noisy = pool_text(pool, "%s: %s", noisy, sides);
    if (p->n_disturbed)
        noisy = pool_text(pool, "%s, %s", noisy, disturbance(pool, p));
    warn(pool, v, noisy);
}

/* "103 % of the limit: ...", of one launch: the median over launches has its own. */
static bool is_limit_remark(const char *remark, size_t n)
{
    size_t digits = strspn(remark, "0123456789");
    static const char words[] = " % of the limit: the limit is too low";

    return digits && digits + sizeof(words) - 1 <= n &&
           !strncmp(remark + digits, words, sizeof(words) - 1);
}

/* What the rows remark, but for how wide their intervals are and what is above the limit, which was
 * said. */
static const char *other_remarks(struct pool *pool, const char *reason)
{
    const char *kept = "";

    while (*reason) {
        const char *end = strstr(reason, "; ");
        size_t n = end ? (size_t)(end - reason) : strlen(reason);

        if (strncmp(reason, "interval is ", 12) != 0 && !is_limit_remark(reason, n))
            kept = pool_text(pool, "%s%s%.*s", kept, *kept ? "; " : "", (int)n, reason);
        reason += n + (end ? 2 : 0);
    }
    return kept;
}

/* Said wherever it happened; power holds back most GPUs under full load, so that it is no alarm. */
static void add_throttling(struct pool *pool, const struct report_point *p, struct verdict *v)
{
    if (!p->n_throttled)
        return;
    v->sentence = join(pool, v->sentence,
                       p->n_rows > 1 ? pool_text(pool, "GPU held back by %s in %zu of %zu launches",
                                                 p->throttle, p->n_throttled, p->n_rows)
                                     : pool_text(pool, "GPU held back by %s", p->throttle));
}

/* What users feel of a latency is its tail. */
static void add_tail(struct pool *pool, const struct report_point *p, const char *unit,
                     const struct headline_rule *rule, struct verdict *v)
{
    if (rule && (rule->flags & RULE_TAIL) && !isnan(p->p999))
        v->sentence =
            pool_text(pool, "p99.9 is %s %s; %s", show_number(pool, p->p999), unit, v->sentence);
}

static void add_lost_launches(struct pool *pool, const struct report_point *p, struct verdict *v)
{
    bool wrong = !strcmp(p->status, "wrong");

    if (p->n_values == p->n_rows)
        return;
    warn(pool, v,
         pool_text(pool, "%zu of %zu launches %s", p->n_rows - p->n_values, p->n_rows,
                   wrong                           ? "gave wrong data"
                   : !strcmp(p->status, "skipped") ? "were skipped"
                                                   : "failed"));
    if (wrong)
        v->mood = MOOD_BAD;
}

struct verdict verdict_make(struct report *r, size_t run, const struct report_bench *b,
                            const struct report_case *c, const struct headline_rule *rule)
{
    const struct report_point *p = &c->points[run];
    struct verdict v;

    if (!p->n_values)
        return without_value(&r->pool, p);
    v = against_limit(r, run, b, c, rule);
    add_tail(&r->pool, p, c->unit, rule, &v);
    add_throttling(&r->pool, p, &v);
    add_noise(&r->pool, p, &v);
    if (!point_is_measured(p)) /* nothing to look into, but for launches that were lost */
        v.mood = MOOD_OPEN;
    add_lost_launches(&r->pool, p, &v);
    v.sentence = join(&r->pool, v.sentence, other_remarks(&r->pool, p->reason));
    if (!point_is_measured(p))
        v.sentence = pool_text(&r->pool, "%s, not measured; %s",
                               *p->origin ? p->origin : "of unknown origin", v.sentence);
    return v;
}
