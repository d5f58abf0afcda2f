/* SPDX-License-Identifier: Apache-2.0 */
/* Pipes without a headline: see headline_missing.h. */
#include "harness/report/headline_missing.h"

#include <math.h>
#include <string.h>

#include "harness/report/show.h"

const char *headlines_no_gpu(const struct report *r)
{
    const char *why = "";

    for (size_t b = 0; b < r->n_benches; b++)
        for (size_t i = 0; i < r->benches[b].n_cases; i++)
            for (size_t run = 0; run < r->n_runs; run++) {
                const struct report_case *c = &r->benches[b].cases[i];
                const struct report_point *p = &c->points[run];

                if (!p->n_rows || !case_is_gpu(&r->benches[b], c))
                    continue;
                if (strcmp(p->status, "skipped") != 0)
                    return "";
                why = *why ? why : *p->reason ? p->reason : "no reason is given";
            }
    return why;
}

static bool is_measured(const struct headlines *h, const char *pipe)
{
    for (size_t i = 0; i < h->n; i++)
        if (!strcmp(h->all[i].pipe, pipe))
            return true;
    return false;
}

/* Does a machine of these runs have one, says its probe? */
static bool has_gpu(const struct report *r)
{
    for (size_t i = 0; i < r->n_runs; i++) {
        const json_t *machine = json_object_get(r->runs[i].meta, "machine");
        const json_t *gpus = json_object_get(machine, "gpus");

        if (json_array_size(json_object_get(gpus, "devices")))
            return true;
    }
    return false;
}

/* "Memory" is not in "GPU memory". */
static bool is_listed(const char *list, const char *pipe)
{
    size_t len = strlen(pipe);

    while (*list) {
        size_t n = strcspn(list, ",");

        if (n == len && !memcmp(list, pipe, n))
            return true;
        list += n + strspn(list + n, ", ");
    }
    return false;
}

static bool has_rows(const struct report *r, const struct told_headline *h)
{
    bool gpu = h->rule->flags & HEADLINE_GPU;

    for (size_t i = 0; i < r->n_benches; i++)
        for (size_t k = 0; k < r->benches[i].n_cases; k++)
            if (!strcmp(r->benches[i].name, h->bench) &&
                case_is_gpu(&r->benches[i], &r->benches[i].cases[k]) == gpu)
                return true;
    return false;
}

/* A pipe may have rules of several benchmarks. */
static bool is_of_rows(const struct report *r, const char *pipe)
{
    for (size_t i = 0; i < r->told.n_headlines; i++)
        if (!strcmp(r->told.headlines[i].rule->pipe, pipe) && has_rows(r, &r->told.headlines[i]))
            return true;
    return false;
}

void headlines_list_missing(struct report *r, struct headlines *out)
{
    out->missing = out->unheaded = "";
    for (size_t i = 0; i < r->told.n_headlines; i++) {
        const struct bench_headline *rule = r->told.headlines[i].rule;

        if (!is_measured(out, rule->pipe) && !is_listed(out->missing, rule->pipe) &&
            !is_listed(out->unheaded, rule->pipe) && !(rule->flags & HEADLINE_QUIET) &&
            !(rule->flags & HEADLINE_GPU && (*out->no_gpu || !has_gpu(r)))) {
            const char **list = is_of_rows(r, rule->pipe) ? &out->unheaded : &out->missing;
            *list = show_joined(&r->pool, *list, rule->pipe);
        }
    }
}

const char *headlines_no_gpu_text(struct pool *pool, const struct headlines *h)
{
    return pool_text(pool, "no GPU was measured: %s", h->no_gpu);
}

const char *headlines_unsteady(struct report *r, size_t run)
{
    size_t n = 0, all = 0;
    double worst = 0;

    for (size_t b = 0; b < r->n_benches; b++)
        for (size_t i = 0; i < r->benches[b].n_cases; i++) {
            const struct report_point *p = &r->benches[b].cases[i].points[run];

            all += p->n_twice > 0;
            n += p->n_unsteady > 0;
            worst = fmax(worst, p->unsteady);
        }
    if (!n)
        return "";
    return pool_text(
        &r->pool,
        "the ceilings of %zu of %zu cases that measured them twice were unsteady: before "
        "and after the samples they differ by up to %.0f %%. The best of the run counts.",
        n, all, 100 * worst);
}
