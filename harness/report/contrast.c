/* SPDX-License-Identifier: Apache-2.0 */
/* Side by side: see contrast.h. */
#include "harness/report/contrast.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/stats.h"
#include "harness/report/show.h"

#define GPUS_MAX 128

/* Do two cases agree in all but one parameter? What follows from others may differ too. */
static bool differ_in(const struct report_bench *b, const struct report_case *x,
                      const struct report_case *y, const char *param)
{
    bool differ = false;

    if (strcmp(x->metric, y->metric) != 0 || strcmp(x->unit, y->unit) != 0)
        return false;
    for (size_t i = 0; i < b->n_params; i++) {
        if (b->follows[i] || !strcmp(x->params[i], y->params[i]))
            continue;
        if (strcmp(b->params[i], param) != 0)
            return false;
        differ = true;
    }
    return differ;
}

static bool is_measured(const struct report_case *c, size_t run)
{
    return c->points[run].n_values > 0;
}

/* The first case to set against this one. */
static const struct report_case *find_other(const struct contrast_rule *rule,
                                            const struct report_bench *b, size_t run,
                                            const struct report_case *base)
{
    for (size_t i = 0; i < b->n_cases; i++) {
        const struct report_case *c = &b->cases[i];

        if (is_measured(c, run) && differ_in(b, base, c, rule->param) &&
            rule_matches(b, c, rule->other))
            return c;
    }
    return NULL;
}

static bool same_group(const struct contrast_rule *rule, const struct report_bench *b,
                       const struct report_case *x, const struct report_case *y)
{
    for (size_t i = 0; i < b->n_params; i++)
        if (word_in(rule->by, b->params[i]) && strcmp(x->params[i], y->params[i]) != 0)
            return false;
    return true;
}

static bool is_better(const struct report_case *c, double value, double than)
{
    return report_higher_is_better(c->unit) ? value > than : value < than;
}

static bool overlap(const struct report_point *x, const struct report_point *y)
{
    if (isnan(x->low) || isnan(y->low))
        return false;
    return x->low <= y->high && y->low <= x->high;
}

/* In words, with faster and slower as people mean them: of a time, less is faster. */
static const char *say(struct report *r, const struct contrast_rule *rule,
                       const struct report_case *base, const struct report_case *other, size_t run)
{
    const struct report_point *x = &base->points[run], *y = &other->points[run];
    double change = y->value / x->value - 1;
    bool better = is_better(base, y->value, x->value);
    const char *form = better ? rule->higher : rule->lower;
    const char *at = strstr(form, "%s");

    if (fabs(change) < CONTRAST_SAME || overlap(x, y))
        return rule->same;
    const char *much = show_percent(&r->pool, 100 * fabs(change));
    return at ? pool_text(&r->pool, "%.*s%s%s", (int)(at - form), form, much, at + 2) : form;
}

static bool is_base(const struct contrast_rule *rule, const struct report_bench *b, size_t run,
                    const struct report_case *c)
{
    return is_measured(c, run) && c->points[run].value > 0 &&
           case_is_gpu(b, c) == ((rule->flags & RULE_GPU) != 0) && rule_matches(b, c, rule->where);
}

/* The best case of its group that has one to be set against. */
static const struct report_case *best_of_group(const struct contrast_rule *rule,
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

static void add_group(struct report *r, struct contrasts *out, const struct contrast_rule *rule,
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

static int add_rule(struct report *r, struct contrasts *out, const struct contrast_rule *rule,
                    const struct report_bench *b)
{
    for (size_t run = 0; run < r->n_runs; run++) {
        bool *seen = calloc(b->n_cases + 1, sizeof(*seen));

        if (!seen)
            return -ENOMEM;
        for (size_t i = 0; i < b->n_cases; i++)
            if (!seen[i] && is_base(rule, b, run, &b->cases[i]))
                add_group(r, out, rule, b, run, i, seen);
        free(seen);
    }
    return 0;
}

int contrasts_make(struct report *r, struct contrasts *out)
{
    size_t most = 0;
    int err = 0;

    for (const struct contrast_rule *rule = contrast_rules; rule->bench; rule++)
        for (size_t i = 0; i < r->n_benches; i++)
            most += strcmp(rule->bench, r->benches[i].name) ? 0 : r->benches[i].n_cases * r->n_runs;
    *out = (struct contrasts){.all = pool_alloc(&r->pool, most, sizeof(*out->all))};
    if (!out->all)
        return -ENOMEM;
    for (const struct contrast_rule *rule = contrast_rules; !err && rule->bench; rule++)
        for (size_t i = 0; !err && i < r->n_benches; i++)
            if (!strcmp(rule->bench, r->benches[i].name))
                err = add_rule(r, out, rule, &r->benches[i]);
    return err || r->pool.failed ? -ENOMEM : 0;
}

static const struct contrast *find_on(const struct contrasts *contrasts,
                                      const struct contrast_rule *rule,
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

    for (const struct contrast_rule *rule = contrast_rules; rule->bench; rule++) {
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

/* Do they agree in all but which GPU it is, and where on the host it copies from or to? */
static bool same_work(const struct report_bench *b, const struct report_case *x,
                      const struct report_case *y, const char *gpu, const char *host)
{
    if (strcmp(x->metric, y->metric) != 0 || strcmp(x->unit, y->unit) != 0)
        return false;
    for (size_t i = 0; i < b->n_params; i++) {
        bool may = b->follows[i] || !strcmp(b->params[i], gpu) || !strcmp(b->params[i], host);

        if (!may && strcmp(x->params[i], y->params[i]) != 0)
            return false;
    }
    return place_is_gpu(report_param(b, y, gpu)) && !place_is_gpu(report_param(b, y, host));
}

/* One GPU's best. */
struct of_gpu {
    const char *name;
    const struct report_case *best;
};

static void take(struct of_gpu *all, size_t *n, const char *name, const struct report_case *c,
                 size_t run)
{
    size_t i = 0;

    while (i < *n && strcmp(all[i].name, name) != 0)
        i++;
    if (i == *n && *n < GPUS_MAX)
        all[(*n)++] = (struct of_gpu){name, c};
    else if (i < *n && is_better(c, c->points[run].value, all[i].best->points[run].value))
        all[i].best = c;
}

struct contrast_gpus contrast_gpus(const struct report_bench *b, size_t run,
                                   const struct report_case *c)
{
    struct contrast_gpus out = {.worst_gpu = ""};
    struct of_gpu all[GPUS_MAX];
    double values[GPUS_MAX];
    const char *gpu, *host;

    if (!find_ends(b, c, &gpu, &host) || !is_measured(c, run))
        return out;
    for (size_t i = 0; i < b->n_cases; i++)
        if (is_measured(&b->cases[i], run) && same_work(b, c, &b->cases[i], gpu, host))
            take(all, &out.n, report_param(b, &b->cases[i], gpu), &b->cases[i], run);
    for (size_t i = 0; i < out.n; i++) {
        values[i] = all[i].best->points[run].value;
        if (!i || is_better(c, values[i], out.best))
            out.best = values[i];
        if (i && !is_better(c, out.worst, values[i]))
            continue;
        out.worst = values[i];
        out.worst_case = all[i].best;
        out.worst_gpu = all[i].name;
    }
    out.behind = out.n > 1 && fabs(out.worst / stats_median(values, out.n) - 1) > SPREAD_BEHIND;
    return out;
}
