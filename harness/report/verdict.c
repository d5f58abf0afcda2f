/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict on one point, and remarks on it: see headline.h. */
#include <math.h>
#include <string.h>

#include "core/row.h"
#include "harness/report/page.h"
#include "harness/report/show.h"

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

/* Does a parameter of the case name the GPU, by its address or as "cuda:0"? */
static bool is_on_gpu(const json_t *gpu, const struct report_bench *b, const struct report_case *c)
{
    const char *address = fact_name(gpu, "address"), *name = fact_name(gpu, "cuda");

    for (size_t i = 0; i < b->n_params; i++)
        if (names_it(c->params[i], address) || (*name && names_it(c->params[i], name)))
            return true;
    return false;
}

/* A finding on a GPU is about the cases on that GPU; another one about those of the components that
 * its check can explain. */
static bool is_about(const struct exam *x, const struct exam_result *finding,
                     const struct report_bench *b, const struct report_case *c,
                     const struct bench_headline *rule)
{
    const json_t *gpu =
        fact_one_of(fact_at(exam_machine(x), "gpus.devices"), "address", finding->subject);

    if (finding->state != EXAM_FOUND || (!gpu && !rule) ||
        (rule && rule->pipe && !exam_explains(x, finding, rule->pipe)))
        return false;
    return !gpu || is_on_gpu(gpu, b, c);
}

void verdict_remark(struct pool *pool, struct verdict *v, const char *text)
{
    struct verdict_remark **end = &v->remarks;

    if (!*text)
        return;
    while (*end)
        end = &(*end)->next;
    *end = pool_alloc(pool, 1, sizeof(**end));
    (*end)->text = text;
}

#define FINDINGS_MAX 3 /* in a remark: the costliest */

static const char *findings_on(struct report *r, size_t run, const struct report_bench *b,
                               const struct report_case *c, const struct bench_headline *rule)
{
    struct exam *x = report_exam(r, run);
    struct show_list list = {.pool = &r->pool, .max = FINDINGS_MAX, .parts = "; "};

    for (const struct exam_result *f = exam_results(x); f; f = f->next)
        if (is_about(x, f, b, c, rule))
            show_list_add(&list, pool_text(&r->pool, "%s: %s", f->subject, f->text));
    return list.n > FINDINGS_MAX ? pool_text(&r->pool, "%s: plumb doctor", show_list_text(&list))
                                 : show_list_text(&list);
}

const char *verdict_device_findings(struct report *r, size_t run, const struct report_bench *b,
                                    const struct report_case *c)
{
    return findings_on(r, run, b, c, NULL);
}

#define ABOVE_LIMIT "the limit is too low, or the data did not take that path"
#define REFERENCE   "ref.: a share of the best rate of the same work, which is no limit"

static struct verdict of_kind(enum verdict_kind kind)
{
    static const struct {
        const char *word;
        enum tone tone;
    } kinds[] = {
        [VERDICT_NORMAL] = {"normal", TONE_NONE},
        [VERDICT_LOW] = {"low", TONE_LOW},
        [VERDICT_SLOW] = {"slow", TONE_LOW},
        [VERDICT_ABOVE] = {"above limit", TONE_LOW},
        [VERDICT_UNDECIDED] = {"inconclusive", TONE_NONE},
        [VERDICT_NOT_JUDGED] = {"not judged", TONE_NONE},
        [VERDICT_NO_LIMIT] = {"no limit", TONE_NONE},
        [VERDICT_NOT_MEASURED] = {"not measured", TONE_NONE},
        [VERDICT_OTHER_ORIGIN] = {"origin unknown", TONE_NONE},
        [VERDICT_PARTLY_FAILED] = {"partly failed", TONE_BAD},
        [VERDICT_FAILED] = {"failed", TONE_BAD},
        [VERDICT_WRONG] = {"wrong data", TONE_BAD},
    };

    return (struct verdict){.kind = kind,
                            .word = kinds[kind].word,
                            .tone = kinds[kind].tone,
                            .range = "",
                            .findings = ""};
}

struct verdict verdict_no_case(struct pool *pool)
{
    struct verdict v = of_kind(VERDICT_NOT_MEASURED);

    verdict_remark(pool, &v, "this run has no such case");
    return v;
}

bool point_is_wrong(const struct report_point *p)
{
    return !strcmp(p->status, "wrong");
}

bool point_has_failed(const struct report_point *p)
{
    return !strcmp(p->status, "failed");
}

/* A verdict holds only if it holds for the whole interval; without one there is none. */
static struct verdict judge(struct pool *pool, const struct report_point *p, double low_below)
{
    double low = p->percent * p->low / p->value, high = p->percent * p->high / p->value;
    struct verdict v = of_kind(VERDICT_UNDECIDED);

    if (isnan(low) || isnan(high)) {
        verdict_remark(pool, &v, "a single launch has no interval");
        if (p->percent > LIMIT_EXCEEDED_PERCENT)
            v = of_kind(VERDICT_ABOVE);
        verdict_remark(pool, &v, v.kind == VERDICT_ABOVE ? ABOVE_LIMIT : "");
        return v;
    }
    if (low > LIMIT_EXCEEDED_PERCENT) {
        v = of_kind(VERDICT_ABOVE);
        verdict_remark(pool, &v, ABOVE_LIMIT);
        return v;
    }
    if (high < low_below)
        return of_kind(VERDICT_LOW);
    if (low >= low_below && p->percent <= LIMIT_EXCEEDED_PERCENT)
        return of_kind(VERDICT_NORMAL);
    v.range =
        pool_text(pool, "%s to %s", document_percent(pool, low), document_percent(pool, high));
    return v;
}

bool point_is_measured(const struct report_point *p)
{
    return !strcmp(p->origin, "measured");
}

/* What the 100 % are, where no share of them is known to be low. */
static const char *unjudged_text(struct pool *pool, const struct report_point *p)
{
    return *p->limit_source ? pool_text(pool,
                                        "of limit: %s. It is not known which share is low, so "
                                        "that none is judged",
                                        p->limit_source)
                            : "";
}

static struct verdict against_limit(struct report *r, size_t run, const struct report_bench *b,
                                    const struct report_case *c, const struct bench_headline *rule)
{
    const struct report_point *p = &c->points[run];
    bool is_rated = c->more_is_better && rule && rule->low_below > 0 && point_is_measured(p);
    struct verdict v;

    if (isnan(p->percent))
        return of_kind(VERDICT_NO_LIMIT);
    if (p->reference || !is_rated) {
        bool above = !p->reference && c->more_is_better && p->percent > LIMIT_EXCEEDED_PERCENT;

        v = of_kind(above ? VERDICT_ABOVE : VERDICT_NOT_JUDGED);
        verdict_remark(&r->pool, &v,
                       p->reference ? REFERENCE
                       : above      ? ABOVE_LIMIT
                                    : unjudged_text(&r->pool, p));
        return v;
    }
    v = judge(&r->pool, p, rule->low_below);
    v.low_below = rule->low_below;
    if (v.kind == VERDICT_LOW)
        v.findings = findings_on(r, run, b, c, rule);
    verdict_remark(&r->pool, &v, v.findings);
    return v;
}

/* "alternates between 85.02 GB/s (64 %) and 224.8 GB/s (36 %), in 3 of 5 launches (60 % to 66 % at
 * the lower level)" */
static const char *levels_text(struct pool *pool, const struct report_point *p, const char *unit)
{
    struct show_scale scale = show_scale(pool, p->value, unit);
    const char *text = pool_text(pool, "alternates between %s %s (%s) and %s %s (%s)",
                                 document_number(pool, p->levels.low * scale.factor), scale.unit,
                                 document_percent(pool, 100 * p->levels.share_low),
                                 document_number(pool, p->levels.high * scale.factor), scale.unit,
                                 document_percent(pool, 100 * p->levels.share_high));

    if (p->two == TWO_LAUNCHES)
        return pool_text(pool, "%s from launch to launch", text);
    if (p->n_values == 1)
        return text;
    text = pool_text(pool, "%s, in %zu of %zu launches", text, p->n_two, p->n_values);
    return p->n_two > 1 ? pool_text(pool, "%s (%s to %s at the lower level)", text,
                                    document_percent(pool, 100 * p->share_low.low),
                                    document_percent(pool, 100 * p->share_low.high))
                        : text;
}

/* By how much, and by what, the interval beside it and the ledger of noise say. */
#define NOISY     "noisy: launches ended before their interval was as narrow as asked"
#define DISTURBED "disturbed while it ran: see Noise"

static void add_noise(struct pool *pool, const struct report_point *p, const char *unit,
                      struct verdict *v)
{
    if (p->two != TWO_NOT) {
        v->two_levels = true;
        verdict_remark(pool, v, levels_text(pool, p, unit));
    }
    if (!p->n_noisy)
        return;
    verdict_remark(pool, v, NOISY);
    verdict_remark(pool, v, p->n_disturbed ? DISTURBED : "");
}

/* Over all that was found out of those that are there. */
static void take_kind(struct verdict *v, enum verdict_kind kind)
{
    struct verdict other = of_kind(kind);

    v->kind = kind;
    v->word = other.word;
    v->tone = other.tone;
}

static void add_lost_launches(struct pool *pool, const struct report_point *p, struct verdict *v)
{
    bool wrong = point_is_wrong(p), failed = point_has_failed(p);

    if (p->n_values == p->n_rows)
        return;
    verdict_remark(pool, v,
                   pool_text(pool, "%zu of %zu launches %s", p->n_rows - p->n_values, p->n_rows,
                             wrong                           ? "gave wrong data"
                             : !strcmp(p->status, "skipped") ? "were skipped"
                                                             : "failed"));
    if (wrong || failed)
        take_kind(v, wrong ? VERDICT_WRONG : VERDICT_PARTLY_FAILED);
}

void verdict_lost_cases(struct pool *pool, struct verdict *v, const struct headline_lost *lost)
{
    if (!lost->first)
        return;
    verdict_remark(pool, v, lost->text);
    if (lost->wrong)
        take_kind(v, VERDICT_WRONG);
    else if (v->kind != VERDICT_FAILED)
        take_kind(v, VERDICT_PARTLY_FAILED);
}

void verdict_look(struct pool *pool, struct verdict *v, const char *text,
                  const struct report_case *c)
{
    if (!*text)
        return;
    verdict_remark(pool, v, text);
    v->look = text;
    v->look_case = c;
    if (v->kind == VERDICT_NORMAL || v->kind == VERDICT_UNDECIDED ||
        v->kind == VERDICT_NOT_JUDGED || v->kind == VERDICT_NO_LIMIT)
        take_kind(v, VERDICT_SLOW);
}

/* The best ceiling of a run may be that of one launch alone, or of another case. */
static void add_lone_ceiling(struct pool *pool, const struct report_point *p, const char *unit,
                             struct verdict *v)
{
    const char *from =
        *p->limit_from ? pool_text(pool, ", in part by the case with %s", p->limit_from) : "";

    if (p->limit > (1 + CEILING_UNSTEADY) * p->middle_limit)
        verdict_remark(
            pool, v,
            pool_text(pool,
                      "the limit, %s %s, is of the best ceilings that the run measured%s; the "
                      "median of the ceilings of this case is %s %s",
                      document_number(pool, p->limit), unit, from,
                      document_number(pool, p->middle_limit), unit));
}

/* "75 to 79 %" */
static const char *percents(struct pool *pool, const struct report_range *range)
{
    const char *low = pool_text(pool, "%.0f", range->low);
    const char *high = pool_text(pool, "%.0f", range->high);

    return strcmp(low, high) ? pool_text(pool, "%s to %s %%", low, high)
                             : pool_text(pool, "%s %%", low);
}

/* The share of the run's best ceiling is low, and nothing is wrong with the tested part. */
static void add_machine_changed(struct pool *pool, const struct report_point *p, const char *unit,
                                struct verdict *v)
{
    if (!p->machine_changed)
        return;
    v->machine_changed =
        pool_text(pool,
                  "each launch reached %s of the ceiling measured beside it, and that was %s to "
                  "%s %s: the machine itself changed between launches",
                  percents(pool, &p->own_percent), document_number(pool, p->own.low),
                  document_number(pool, p->own.high), unit);
    verdict_remark(pool, v, v->machine_changed);
}

struct verdict verdict_make(struct report *r, size_t run, const struct report_bench *b,
                            const struct report_case *c, const struct bench_headline *rule)
{
    const struct report_point *p = &c->points[run];
    struct pool *pool = &r->pool;
    struct verdict v;

    if (!p->n_rows)
        return verdict_no_case(pool);
    if (!p->n_values) {
        v = of_kind(point_is_wrong(p)     ? VERDICT_WRONG
                    : point_has_failed(p) ? VERDICT_FAILED
                                          : VERDICT_NOT_MEASURED);
        verdict_remark(pool, &v, *p->reason ? p->reason : "no reason is given");
        return v;
    }
    v = against_limit(r, run, b, c, rule);
    if (!point_is_measured(p)) { /* nothing to look into, but for launches that were lost */
        take_kind(&v, VERDICT_OTHER_ORIGIN);
        v.word = *p->origin ? p->origin : v.word;
    }
    if (rule && (rule->flags & HEADLINE_TAIL) && !isnan(p->p999)) /* what users feel of a latency */
        verdict_remark(pool, &v,
                       pool_text(pool, "p99.9 is %s %s", document_number(pool, p->p999), c->unit));
    if (p->n_throttled) /* power holds back most GPUs under full load, so that it is no alarm */
        verdict_remark(pool, &v,
                       p->n_rows > 1 ? pool_text(pool, "GPU held back by %s in %zu of %zu launches",
                                                 p->throttle, p->n_throttled, p->n_rows)
                                     : pool_text(pool, "GPU held back by %s", p->throttle));
    add_noise(pool, p, c->unit, &v);
    add_lost_launches(pool, p, &v);
    add_machine_changed(pool, p, c->unit, &v);
    add_lone_ceiling(pool, p, c->unit, &v);
    verdict_remark(pool, &v, p->reason);
    return v;
}
