/* SPDX-License-Identifier: Apache-2.0 */
/* Side by side: see headline.h. */
#include "harness/report/headline.h"

#include <math.h>
#include <string.h>

#include "harness/report/cases.h"
#include "harness/report/cases_group.h"
#include "harness/report/show.h"

#define CONTRAST_MARGIN 0.05 /* as that of plumb compare */

/* The first case to set against this one. */
static const struct report_case *find_other(const struct bench_contrast *rule,
                                            const struct report_bench *b, size_t run,
                                            const struct report_case *base)
{
    for (size_t i = 0; i < b->n_cases; i++) {
        const struct report_case *c = &b->cases[i];

        if (case_has_value(c, run) && cases_differ_in(b, base, c, rule->column) &&
            described_matches(b, c, rule->other))
            return c;
    }
    return NULL;
}

/* In words, with faster and slower as people mean them: of a time, less is faster. */
static const char *say(struct report *r, const struct contrast *at, const struct comparison *k)
{
    bool better = (at->change > 0) == at->base->more_is_better;
    const char *form = better ? at->rule->higher : at->rule->lower;
    bool little = fabs(at->change) < COMPARISONS_SAME;
    bool same = k->decision == DECISION_EQUIVALENT && (little || !k->proven);
    const char *much = document_percent(&r->pool, 100 * fabs(at->change));

    return pool_text(&r->pool, "%s%s", same || k->proven ? "" : "not proven: ",
                     same || little ? at->rule->same : show_filled(&r->pool, form, much));
}

static bool is_base(const struct report_bench *b, size_t run, const struct report_case *c,
                    const void *arg)
{
    const struct bench_contrast *rule = arg;

    return case_has_value(c, run) && c->points[run].value > 0 &&
           case_is_gpu(b, c) == ((rule->flags & HEADLINE_GPU) != 0) &&
           described_matches(b, c, rule->where);
}

/* Of each group the best case that has one to be set against. */
static void ask_rule(struct report *r, struct comparisons *q, struct contrasts *out,
                     const struct bench_contrast *rule, const struct report_bench *b, size_t run)
{
    struct case_groups groups = cases_group(&r->pool, b, run, is_base, rule, cases_by, rule->by);

    comparisons_topic(q, NULL, b, run, false);
    for (size_t i = 0; i < groups.n; i++) {
        struct contrast at = {.rule = rule, .bench = b, .run = run};

        for (size_t k = 0; k < groups.all[i].n; k++) {
            const struct report_case *c = groups.all[i].cases[k], *other;

            if ((!at.base || case_is_better(c, c->points[run].value, at.base->points[run].value)) &&
                (other = find_other(rule, b, run, c))) {
                at.base = c;
                at.other = other;
            }
        }
        if (!at.base)
            continue;
        at.change = at.other->points[run].value / at.base->points[run].value - 1;
        at.comparison = comparisons_add(q, at.other, at.base, CONTRAST_MARGIN);
        *POOL_ADD(&r->pool, out->all, out->n) = at;
    }
}

void contrasts_ask(struct report *r, struct comparisons *q, struct contrasts *out)
{
    *out = (struct contrasts){.n = 0};
    for (size_t i = 0; i < r->n_benches; i++)
        for (const struct bench_contrast *rule = r->benches[i].described->contrasts; rule->title;
             rule++)
            for (size_t run = 0; run < r->n_runs; run++)
                ask_rule(r, q, out, rule, &r->benches[i], run);
}

void contrasts_judge(struct report *r, const struct comparisons *q, struct contrasts *all)
{
    for (size_t i = 0; i < all->n; i++)
        all->all[i].sentence = say(r, &all->all[i], comparison_of(q, all->all[i].comparison));
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
