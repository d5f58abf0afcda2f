/* SPDX-License-Identifier: Apache-2.0 */
/* What comparing runs knows of the benchmarks: see rules.h. */
#include <math.h>
#include <string.h>

#include "harness/report/rules.h"

/* The first that fits. Ends that are both GPUs name two places; one end alone goes over PCIe. */
static const struct pipe_rule {
    const char *bench, *where, *pipe;
    bool gpu;
} pipe_rules[] = {
    {"gemm", "", "GPU matrix core", true},
    {"gemm", "", "Matrix core", false},
    {"memory", "", "GPU memory", true},
    {"memory", "", "Memory", false},
    {"copy", "", "PCIe", true},
    {"copy", "", "Copies", false},
    {"launch", "", "GPU launch", true},
    {"launch", "", "GPU launch", false},
    {"net", "transport=shm", "Copies", false},
    {"net", "", "Network", false},
    {"allreduce", "", "Collectives", false},
    {NULL, NULL, NULL, false},
};

static const struct decisive_rule {
    const char *bench, *outcomes;
} decisive_rules[] = {
    {"memory", "level bytes_rule write_allocate"},
    {"allreduce", "nodes vector_bytes"},
    {NULL, NULL},
};

/* Two GPUs are joined by NVLink where the limit of any run's row says so. */
static bool is_over_nvlink(const struct report *r, const struct report_bench *b,
                           const struct report_case *c)
{
    for (size_t i = 0; i < r->n_runs && case_is_pair(b, c); i++)
        if (strstr(c->points[i].limit_source, "NVLink"))
            return true;
    return false;
}

const char *rule_pipe(const struct report *r, const struct report_bench *b,
                      const struct report_case *c)
{
    bool gpu = case_is_gpu(b, c);

    if (is_over_nvlink(r, b, c))
        return "NVLink";
    for (const struct pipe_rule *rule = pipe_rules; rule->bench; rule++)
        if (!strcmp(rule->bench, b->name) && rule->gpu == gpu && rule_matches(b, c, rule->where))
            return rule->pipe;
    return "Other";
}

/* Figures of which neither more nor less is better by itself, and those that say the same as another: the
 * same samples, turned round. */
static const struct {
    const char *bench, *metrics; /* bench NULL: any */
} not_judged[] = {
    {NULL, "cpu_cores"}, /* s/GB times the rate: both of these are judged */
    {"allreduce", "algbw busbw"},
};

static bool says_nothing_new(const char *bench, const char *metric)
{
    for (size_t i = 0; i < sizeof(not_judged) / sizeof(*not_judged); i++)
        if ((!not_judged[i].bench || !strcmp(not_judged[i].bench, bench)) &&
            word_in(not_judged[i].metrics, metric))
            return true;
    return false;
}

bool rule_is_judged(const struct report *r, const struct report_bench *b,
                    const struct report_case *c)
{
    const struct plot_hint *hint = plot_hint_of(b, c);
    size_t values = 0, samples = 0;

    if ((hint && hint->undrawn && word_in(hint->undrawn, c->metric)) ||
        says_nothing_new(b->name, c->metric))
        return false;
    for (size_t run = 0; run < r->n_runs; run++)
        for (size_t i = 0; i < c->points[run].n_rows; i++) {
            const struct report_rows *rows = &b->rows[run];
            size_t row = c->points[run].rows[i];

            values += !isnan(row_number(rows, row, FIELD_VALUE));
            samples += row_number(rows, row, FIELD_SAMPLES) > 0;
        }
    return samples || !values || !strcmp(c->unit, "s/GB");
}

bool rule_outcome_decides(const char *bench, const char *param)
{
    for (const struct decisive_rule *r = decisive_rules; r->bench; r++)
        if (!strcmp(r->bench, bench) && word_in(r->outcomes, param))
            return true;
    return false;
}
