/* SPDX-License-Identifier: Apache-2.0 */
/* The plain sentence on one point: see headline.h. */
#include <math.h>
#include <string.h>

#include "core/row_facts.h"
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
                     const struct report_case *c, const struct bench_headline *rule)
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
    return *more ? pool_text(pool, "%s%s%s", sentence, *sentence ? "; " : "", more) : sentence;
}

static const char *add_findings(struct report *r, size_t run, const struct report_bench *b,
                                const struct report_case *c, const struct bench_headline *rule,
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
    return add_findings(r, run, b, c, NULL, "");
}

/* "normal: 92 % of the limit": a judgement, and what it rests on. */
static struct verdict judged(struct pool *pool, enum mood mood, const char *word, const char *rest)
{
    return (struct verdict){
        .mood = mood, .sentence = pool_text(pool, "%s: %s", word, rest), .judged = strlen(word)};
}

#define OF_LIMIT    "%s of the limit"
#define ABOVE_LIMIT "the limit is too low, or the data did not take that path"

/* The same with the share of the limit, and what follows it. */
static struct verdict judged_share(struct pool *pool, enum mood mood, const char *word,
                                   double percent, const char *rest)
{
    const char *share = pool_text(pool, OF_LIMIT, show_percent(pool, percent));
    struct verdict v = judged(pool, mood, word, pool_text(pool, "%s%s", share, rest));

    v.shared = strlen(share);
    return v;
}

static struct verdict without_value(struct pool *pool, const struct report_point *p)
{
    const char *why = *p->reason ? p->reason : "no reason is given";

    if (!p->n_rows)
        return verdict_no_case(pool);
    if (!strcmp(p->status, "wrong"))
        return judged(pool, MOOD_BAD, "wrong data", why);
    if (!strcmp(p->status, "failed"))
        return judged(pool, MOOD_BAD, "failed", why);
    return judged(pool, MOOD_OPEN, "not measured", why);
}

/* A verdict holds only if it holds for the whole interval; without one there is none. */
static struct verdict judge(struct pool *pool, const struct report_point *p, double low_below)
{
    double low = 100 * p->low / p->limit, high = 100 * p->high / p->limit;
    struct verdict v;

    if (isnan(low) || isnan(high)) {
        bool above = p->percent > LIMIT_EXCEEDED_PERCENT;

        return judged_share(pool, above ? MOOD_WARN : MOOD_OPEN, "undecided", p->percent,
                            above ? " in a single launch, above what is possible"
                                  : " in a single launch");
    }
    if (low > LIMIT_EXCEEDED_PERCENT)
        return judged(pool, MOOD_WARN, pool_text(pool, OF_LIMIT, show_percent(pool, p->percent)),
                      ABOVE_LIMIT);
    if (high < low_below) {
        v = judged_share(pool, MOOD_WARN, "low", p->percent, "");
        v.low = true;
        return v;
    }
    if (low >= low_below && p->percent <= LIMIT_EXCEEDED_PERCENT)
        return judged_share(pool, MOOD_GOOD, "normal", p->percent, "");
    return judged_share(pool, MOOD_WARN, "undecided", p->percent,
                        pool_text(pool, ", but it may be %s to %s", show_percent(pool, low),
                                  show_percent(pool, high)));
}

bool point_is_measured(const struct report_point *p)
{
    return !strcmp(p->origin, "measured");
}

static struct verdict against_limit(struct report *r, size_t run, const struct report_bench *b,
                                    const struct report_case *c, const struct bench_headline *rule)
{
    const struct report_point *p = &c->points[run];
    struct pool *pool = &r->pool;
    struct verdict v;

    if (isnan(p->percent))
        return judged(pool, MOOD_OPEN, "not judged", "no limit is known");
    if (p->reference)
        return judged(pool, MOOD_OPEN, "not judged",
                      pool_text(pool, "%s of %s", show_percent(pool, p->percent),
                                p->outdated ? "a limit that an earlier version measured, in a way "
                                              "since corrected: measure again"
                                            : "a reference, the best of the same work"));
    if (!c->more_is_better || !rule || !(rule->low_below > 0) || !point_is_measured(p)) {
        const char *share = pool_text(pool, OF_LIMIT, show_percent(pool, p->percent));
        bool above = c->more_is_better && p->percent > LIMIT_EXCEEDED_PERCENT;

        return (struct verdict){.mood = above ? MOOD_WARN : MOOD_OPEN,
                                .sentence =
                                    above ? pool_text(pool, "%s: %s", share, ABOVE_LIMIT) : share,
                                .shared = strlen(share)};
    }
    v = judge(pool, p, rule->low_below);
    if (v.low)
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
    if (p->n_rows == 1)
        return pool_text(pool, "disturbed: %s", p->disturbed);
    return pool_text(pool, "disturbed in %zu of %zu launches (%s)", p->n_disturbed, p->n_rows,
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

static void say_first(struct pool *pool, struct verdict *v, const char *text)
{
    v->sentence = pool_text(pool, "%s; %s", text, v->sentence);
    v->judged = v->shared = 0;
}

/* What users feel of a latency is its tail. */
static void add_tail(struct pool *pool, const struct report_point *p, const char *unit,
                     const struct bench_headline *rule, struct verdict *v)
{
    if (rule && (rule->flags & HEADLINE_TAIL) && !isnan(p->p999))
        say_first(pool, v, pool_text(pool, "p99.9 is %s %s", show_number(pool, p->p999), unit));
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

struct verdict verdict_no_case(struct pool *pool)
{
    return judged(pool, MOOD_OPEN, "not measured", "this run has no such case");
}

struct verdict verdict_make(struct report *r, size_t run, const struct report_bench *b,
                            const struct report_case *c, const struct bench_headline *rule)
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
    if (p->n_unsteady)
        v.sentence = join(&r->pool, v.sentence, "note 1"); /* headlines_unsteady_text() */
    v.sentence = join(&r->pool, v.sentence, p->reason);
    if (!point_is_measured(p))
        say_first(
            &r->pool, &v,
            pool_text(&r->pool, "%s, not measured", *p->origin ? p->origin : "of unknown origin"));
    return v;
}
