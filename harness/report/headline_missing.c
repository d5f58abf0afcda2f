/* SPDX-License-Identifier: Apache-2.0 */
/* Pipes without a headline: see headline_missing.h. */
#include "harness/report/headline_missing.h"

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

static bool has_rows(const struct report *r, const struct headline_rule *rule)
{
    bool gpu = rule->flags & RULE_GPU;

    for (size_t i = 0; i < r->n_benches; i++)
        for (size_t k = 0; k < r->benches[i].n_cases; k++)
            if (!strcmp(r->benches[i].name, rule->bench) &&
                case_is_gpu(&r->benches[i], &r->benches[i].cases[k]) == gpu)
                return true;
    return false;
}

/* A pipe may have rules of several benchmarks. */
static bool is_of_rows(const struct report *r, const char *pipe)
{
    for (const struct headline_rule *rule = headline_rules; rule->bench; rule++)
        if (!strcmp(rule->pipe, pipe) && has_rows(r, rule))
            return true;
    return false;
}

void headlines_list_missing(struct report *r, struct headlines *out)
{
    out->missing = out->unheaded = "";
    for (const struct headline_rule *rule = headline_rules; rule->bench; rule++)
        if (!is_measured(out, rule->pipe) && !is_listed(out->missing, rule->pipe) &&
            !is_listed(out->unheaded, rule->pipe) && !(rule->flags & RULE_QUIET) &&
            !(rule->flags & RULE_GPU && (*out->no_gpu || !has_gpu(r)))) {
            const char **list = is_of_rows(r, rule->pipe) ? &out->unheaded : &out->missing;
            *list = show_joined(&r->pool, *list, rule->pipe);
        }
}

const char *headlines_no_gpu_text(struct pool *pool, const struct headlines *h)
{
    static const char begin[] = "no GPU";

    if (!strncmp(h->no_gpu, begin, sizeof(begin) - 1))
        return h->no_gpu;
    return pool_text(pool, "%s: %s", begin, h->no_gpu);
}
