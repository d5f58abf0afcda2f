/* SPDX-License-Identifier: Apache-2.0 */
/* Side by side: see headline.h. */
#include "harness/report/headline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/stats.h"
#include "harness/decide/decide.h"
#include "harness/report/cases.h"
#include "harness/report/show.h"

#define GPUS_MAX  CONTRAST_GPUS_MAX
#define NAMED_MAX 3 /* GPUs that failed */

#define BEHIND_ALARMS   0.001 /* of one group, of which the worst is picked: a run has dozens */
#define BEHIND_LAUNCHES 3     /* of the one that is behind */
#define BEHIND_OTHERS   3     /* GPUs that it is held against */

static bool is_measured(const struct report_case *c, size_t run)
{
    return c->points[run].n_values > 0;
}

/* The first case to set against this one. */
static const struct report_case *find_other(const struct bench_contrast *rule,
                                            const struct report_bench *b, size_t run,
                                            const struct report_case *base)
{
    for (size_t i = 0; i < b->n_cases; i++) {
        const struct report_case *c = &b->cases[i];

        if (is_measured(c, run) && cases_differ_in(b, base, c, rule->column) &&
            described_matches(b, c, rule->other))
            return c;
    }
    return NULL;
}

static bool same_group(const struct bench_contrast *rule, const struct report_bench *b,
                       const struct report_case *x, const struct report_case *y)
{
    for (size_t i = 0; i < b->n_params; i++)
        if (word_in(rule->by, b->params[i]) && strcmp(x->params[i], y->params[i]) != 0)
            return false;
    return true;
}

static bool is_better(const struct report_case *c, double value, double than)
{
    return c->more_is_better ? value > than : value < than;
}

static bool overlap(const struct report_point *x, const struct report_point *y)
{
    return x->low <= y->high && y->low <= x->high; /* NaN: no */
}

/* All that the two intervals leave open is within the margin. */
static bool surely_near(const struct report_point *x, const struct report_point *y)
{
    return y->high / x->low <= 1 + CONTRAST_MARGIN && x->high / y->low <= 1 + CONTRAST_MARGIN;
}

/* In words, with faster and slower as people mean them: of a time, less is faster. */
static const char *say(struct report *r, const struct bench_contrast *rule,
                       const struct report_case *base, const struct report_case *other, size_t run)
{
    const struct report_point *x = &base->points[run], *y = &other->points[run];
    double change = y->value / x->value - 1;
    bool better = is_better(base, y->value, x->value);
    bool known = !isnan(x->low) && !isnan(y->low);
    const char *form = better ? rule->higher : rule->lower;
    const char *at = strstr(form, "%s");

    if (fabs(change) < CONTRAST_SAME)
        return surely_near(x, y) ? rule->same : pool_text(&r->pool, "not proven: %s", rule->same);
    const char *open = !known || overlap(x, y) ? "not proven: " : "";
    const char *much = document_percent(&r->pool, 100 * fabs(change));
    return at ? pool_text(&r->pool, "%s%.*s%s%s", open, (int)(at - form), form, much, at + 2)
              : pool_text(&r->pool, "%s%s", open, form);
}

static bool is_base(const struct bench_contrast *rule, const struct report_bench *b, size_t run,
                    const struct report_case *c)
{
    return is_measured(c, run) && c->points[run].value > 0 &&
           case_is_gpu(b, c) == ((rule->flags & HEADLINE_GPU) != 0) &&
           described_matches(b, c, rule->where);
}

/* The best case of its group that has one to be set against. */
static const struct report_case *best_of_group(const struct bench_contrast *rule,
                                               const struct report_bench *b, size_t run,
                                               size_t first, bool *seen)
{
    const struct report_case *best = NULL;

    for (size_t i = first; i < b->n_cases; i++) {
        const struct report_case *c = &b->cases[i];

        if (seen[i] || !is_base(rule, b, run, c) || !same_group(rule, b, &b->cases[first], c))
            continue;
        seen[i] = true;
        if (find_other(rule, b, run, c) &&
            (!best || is_better(c, c->points[run].value, best->points[run].value)))
            best = c;
    }
    return best;
}

static void add_group(struct report *r, struct contrasts *out, const struct bench_contrast *rule,
                      const struct report_bench *b, size_t run, size_t first, bool *seen)
{
    const struct report_case *base = best_of_group(rule, b, run, first, seen);
    const struct report_case *other = base ? find_other(rule, b, run, base) : NULL;

    if (!other)
        return;
    out->all[out->n++] =
        (struct contrast){.rule = rule,
                          .bench = b,
                          .run = run,
                          .base = base,
                          .other = other,
                          .change = other->points[run].value / base->points[run].value - 1,
                          .sentence = say(r, rule, base, other, run)};
}

static void add_rule(struct report *r, struct contrasts *out, const struct bench_contrast *rule,
                     const struct report_bench *b)
{
    for (size_t run = 0; run < r->n_runs; run++) {
        bool *seen = xcalloc(b->n_cases, sizeof(*seen));

        for (size_t i = 0; i < b->n_cases; i++)
            if (!seen[i] && is_base(rule, b, run, &b->cases[i]))
                add_group(r, out, rule, b, run, i, seen);
        free(seen);
    }
}

void contrasts_make(struct report *r, struct contrasts *out)
{
    size_t most = 0;

    for (size_t i = 0; i < r->n_benches; i++)
        for (const struct bench_contrast *rule = r->benches[i].described->contrasts; rule->title;
             rule++)
            most += r->benches[i].n_cases * r->n_runs;
    *out = (struct contrasts){.all = pool_alloc(&r->pool, most, sizeof(*out->all))};
    for (size_t i = 0; i < r->n_benches; i++)
        for (const struct bench_contrast *rule = r->benches[i].described->contrasts; rule->title;
             rule++)
            add_rule(r, out, rule, &r->benches[i]);
}

static const struct contrast *find_on(const struct contrasts *contrasts,
                                      const struct bench_contrast *rule,
                                      const struct report_bench *b, const bool *among,
                                      const struct report_case *c, size_t run)
{
    const struct contrast *first = NULL;

    for (size_t i = 0; i < contrasts->n; i++) {
        const struct contrast *at = &contrasts->all[i];

        if (at->rule != rule || at->run != run || at->bench != b)
            continue;
        if (at->base == c)
            return at;
        if (!first && among[at->base - b->cases])
            first = at;
    }
    return first;
}

const char *contrast_remarks(struct report *r, const struct contrasts *contrasts,
                             const struct report_bench *b, const bool *among,
                             const struct report_case *c, size_t run)
{
    const char *text = "";

    for (const struct bench_contrast *rule = b->described->contrasts; rule->title; rule++) {
        const struct contrast *at = find_on(contrasts, rule, b, among, c, run);

        if (at)
            text = pool_text(&r->pool, "%s%s%s", text, *text ? "; " : "", at->sentence);
    }
    return text;
}

/* The parameter that says which GPU it is, and the host's end of a copy; false: not one GPU alone.
 */
static bool find_ends(const struct report_bench *b, const struct report_case *c, const char **gpu,
                      const char **host)
{
    static const char *const names[] = {"device", "source", "destination"};
    static const char *const others[] = {"", "destination", "source"};

    for (size_t i = 0; i < 3 && !case_is_pair(b, c); i++)
        if (place_is_gpu(report_param(b, c, names[i]))) {
            *gpu = names[i];
            *host = others[i];
            return true;
        }
    return false;
}

/* A launch that died or was skipped may lack what it did not come to know. */
static bool is_unknown(const struct report_case *c, size_t run, const char *text)
{
    return !*text && c->points[run].n_rows && !c->points[run].n_values;
}

static bool agree(const struct report_case *x, const struct report_case *y, size_t run,
                  const char *of_x, const char *of_y)
{
    return !strcmp(of_x, of_y) || is_unknown(x, run, of_x) || is_unknown(y, run, of_y);
}

/* Do they agree in all but which GPU it is, and where on the host it copies from or to? */
static bool same_work(const struct report_bench *b, size_t run, const struct report_case *x,
                      const struct report_case *y, const char *gpu, const char *host)
{
    if (!agree(x, y, run, x->metric, y->metric) || !agree(x, y, run, x->unit, y->unit))
        return false;
    for (size_t i = 0; i < b->n_params; i++) {
        const char *name = b->params[i];
        bool may = b->follows[i] || !strcmp(name, gpu) || !strcmp(name, host) ||
                   !strcmp(name, "node"); /* the host's, from which it is driven */

        if (!may && !agree(x, y, run, x->params[i], y->params[i]))
            return false;
    }
    return place_is_gpu(report_param(b, y, gpu)) && !place_is_gpu(report_param(b, y, host));
}

/* One GPU's best; where it has no value, a case that failed, or else one that was skipped. */
struct of_gpu {
    const char *name;
    const struct report_case *best;
};

static bool has_failed(const struct report_case *c, size_t run)
{
    return strcmp(c->points[run].status, "skipped") != 0;
}

static bool tells_more(const struct report_case *c, const struct report_case *than, size_t run)
{
    if (!is_measured(c, run))
        return !is_measured(than, run) && has_failed(c, run) && !has_failed(than, run);
    return !is_measured(than, run) || is_better(c, c->points[run].value, than->points[run].value);
}

static void take(struct of_gpu *all, size_t *n, const char *name, const struct report_case *c,
                 size_t run)
{
    size_t i = 0;

    while (i < *n && strcmp(all[i].name, name) != 0)
        i++;
    if (i == *n && *n < GPUS_MAX)
        all[(*n)++] = (struct of_gpu){name, c};
    else if (i < *n && tells_more(c, all[i].best, run))
        all[i].best = c;
}

/* "cuda:5 failed, 4 skipped" */
static void note_lost(struct report *r, const struct of_gpu *all, size_t run,
                      struct contrast_gpus *out)
{
    const char *failed = "";
    size_t skipped;

    out->lost = "";
    for (size_t i = 0; i < out->all; i++) {
        if (is_measured(all[i].best, run) || !has_failed(all[i].best, run))
            continue;
        out->failed++;
        failed = show_joined(&r->pool, failed, all[i].name);
    }
    skipped = out->all - out->n - out->failed;
    if (out->failed > NAMED_MAX)
        failed = pool_text(&r->pool, "%zu", out->failed);
    if (out->failed)
        out->lost = pool_text(&r->pool, "%s failed", failed);
    if (skipped)
        out->lost = show_joined(&r->pool, out->lost, pool_text(&r->pool, "%zu skipped", skipped));
}

/* No difference that matters to anybody; a small one, where the intervals let it stand. Without
 * intervals neither. */
static bool are_alike(const struct report_point *best, const struct report_point *worst)
{
    double apart = fabs(worst->value / best->value - 1);

    return surely_near(best, worst) &&
           (apart <= SPREAD_ALIKE || (apart < CONTRAST_SAME && overlap(best, worst)));
}

/* Even at the better end of its interval, and with the others at the worse end of theirs. NaN, no
 * interval: no. */
static bool surely_behind(const struct of_gpu *all, size_t run, const struct contrast_gpus *g)
{
    const struct report_point *worst = &g->worst_case->points[run];
    bool higher = g->worst_case->more_is_better;
    double ends[GPUS_MAX], end = higher ? worst->high : worst->low;
    size_t n = 0;

    for (size_t i = 0; i < g->all; i++) {
        const struct report_point *p = &all[i].best->points[run];

        if (!is_measured(all[i].best, run))
            continue;
        if (isnan(p->low) || isnan(p->high))
            return false;
        ends[n++] = higher ? p->low : p->high;
    }
    double ratio = end / stats_median(ends, n);
    return higher ? ratio < 1 - SPREAD_BEHIND : ratio > 1 + SPREAD_BEHIND;
}

/* The same where most have a single launch: the others, as one side's runs, show what GPUs differ
 * by, and each of several launches of the worst is behind, so that it is no stall. */
static bool proven_behind(struct report *r, const struct report_bench *b, const struct of_gpu *all,
                          size_t run, const struct contrast_gpus *g)
{
    struct decide_run runs[GPUS_MAX] = {0};
    struct decide_overall overall;
    const struct report_case *worst = g->worst_case;
    size_t n = 0;

    for (size_t i = 0; i < g->all; i++) {
        const struct report_point *p = &all[i].best->points[run];

        if (!p->n_values || all[i].best == worst)
            continue;
        double *values = pool_alloc(&r->pool, p->n_rows, sizeof(*values));
        runs[n].values = values;
        runs[n++].n = combine_values(&b->rows[run], p, values);
    }
    const struct report_point *p = &worst->points[run];
    double *values = pool_alloc(&r->pool, p->n_rows, sizeof(*values));
    struct decide_run own = {.values = values, .n = combine_values(&b->rows[run], p, values)};
    struct decide_case c = {.a = {runs, n},
                            .b = {&own, 1},
                            .margin = SPREAD_BEHIND,
                            .higher_is_better = worst->more_is_better};
    const struct decide_options options = {.alarm_level = BEHIND_ALARMS / (double)(n + 1)};

    if (own.n < BEHIND_LAUNCHES || n < BEHIND_OTHERS || decide_suite(&c, 1, &options, &overall) ||
        c.decision != DECISION_WORSE || !c.beyond)
        return false;
    for (size_t i = 0; i < own.n; i++) {
        double ratio = c.higher_is_better ? own.values[i] / c.a_value : c.a_value / own.values[i];
        if (!(ratio < 1 - SPREAD_BEHIND))
            return false;
    }
    return true;
}

static void compare(struct report *r, const struct report_bench *b, const struct of_gpu *all,
                    size_t run, struct contrast_gpus *out)
{
    const struct report_case *best = NULL;
    double values[GPUS_MAX];

    for (size_t i = 0; i < out->all; i++) {
        const struct report_case *c = all[i].best;
        double value = c->points[run].value;

        if (!is_measured(c, run))
            continue;
        values[out->n++] = value;
        if (!best || is_better(c, value, out->best)) {
            best = c;
            out->best = value;
        }
        if (out->worst_case && !is_better(c, out->worst, value))
            continue;
        out->worst = value;
        out->worst_case = c;
        out->worst_gpu = all[i].name;
    }
    if (out->n < 2)
        return;
    bool seems = fabs(out->worst / stats_median(values, out->n) - 1) > SPREAD_BEHIND;
    out->behind = seems && (surely_behind(all, run, out) || proven_behind(r, b, all, run, out));
    out->undecided = seems && !out->behind;
    out->alike = !seems && are_alike(&best->points[run], &out->worst_case->points[run]);
}

static size_t gather(const struct report_bench *b, size_t run, const struct report_case *c,
                     struct of_gpu *all)
{
    const char *gpu, *host;
    size_t n = 0;

    if (!find_ends(b, c, &gpu, &host) || !is_measured(c, run))
        return 0;
    for (size_t i = 0; i < b->n_cases; i++)
        if (b->cases[i].points[run].n_rows && same_work(b, run, c, &b->cases[i], gpu, host))
            take(all, &n, report_param(b, &b->cases[i], gpu), &b->cases[i], run);
    return n;
}

size_t contrast_group(const struct report_bench *b, size_t run, const struct report_case *c,
                      const struct report_case **cases)
{
    struct of_gpu all[GPUS_MAX];
    size_t n = gather(b, run, c, all), kept = 0;

    for (size_t i = 0; i < n; i++)
        if (is_measured(all[i].best, run))
            cases[kept++] = all[i].best;
    return kept;
}

struct contrast_gpus contrast_gpus(struct report *r, const struct report_bench *b, size_t run,
                                   const struct report_case *c)
{
    struct contrast_gpus out = {.worst_gpu = "", .lost = ""};
    struct of_gpu all[GPUS_MAX];

    out.all = gather(b, run, c, all);
    if (!out.all)
        return out;
    compare(r, b, all, run, &out);
    note_lost(r, all, run, &out);
    return out;
}
