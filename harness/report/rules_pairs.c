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

/* What a benchmark chooses where the launch leaves it to it, and which is no other quantity by that: the same work, done as
 * this machine does it. Sizes and numbers of ranks by default are lists, each value of which is a case. */
static const struct choice_rule {
    const char *bench, *param, *word;
} choice_rules[] = {
    {"memory", "isa", "auto"}, /* by a timing test: it may fall one way or the other */
    {"memory", "threads", "0"},   {"gemm", "library", "auto"}, {"gemm", "threads", "0"},
    {"launch", "node", "near"},   {"net", "threads", "0"},     {"net", "node", "near"},
    {"net", "peer_node", "near"}, {NULL, NULL, NULL},
};

const char *rule_left_by(const char *bench, const char *param)
{
    for (const struct choice_rule *r = choice_rules; r->bench; r++)
        if (!strcmp(r->bench, bench) && !strcmp(r->param, param))
            return r->word;
    return NULL;
}

#define SAME    "the same samples as another metric, turned round"
#define STATE   "neither more nor less is better by itself"
#define EXTREME "counts or extremes: their spread is none of a launch's median"
#define APART   "what another case measures by itself"

const struct rule_metric rule_metrics[] = {
    {"allreduce", "time", true, NULL},
    {"allreduce", "algbw", false, SAME},
    {"allreduce", "busbw", false, SAME},
    {"allreduce", "operation_alone", false, APART},
    {"allreduce", "product_alone", false, APART},
    {"allreduce", "overlap", false, "made of `time` and of what other cases measure"},
    {"allreduce", "late_share", false, STATE},
    {"allreduce", "waited_share", false, STATE},
    {"allreduce", "blocked_share", false, STATE},
    {"copy", "bandwidth", true, NULL},
    {"copy", "latency", true, NULL},
    {"copy", "load-latency", true, NULL},
    {"gemm", "throughput", true, NULL},
    {"launch", "latency", true, NULL},
    {"launch", "interval", true, NULL},
    {"launch", "rate", false, SAME},
    {"memory", "bandwidth", true, NULL},
    {"memory", "latency", true, NULL},
    {"memory", "latency_page_by_page", true, NULL},
    {"net", "bandwidth", true, NULL},
    {"net", "message_rate", true, NULL},
    {"net", "latency", true, NULL},
    {"net", "loaded_latency", true, NULL},
    {"net", "average_bandwidth", true,
     NULL},                                /* of stalls the median of the windows knows nothing */
    {"net", "load_bandwidth", true, NULL}, /* less of it makes loaded_latency look better */
    {"net", "longest_window", false, EXTREME},
    {"null", "time", true, NULL},
    {NULL, "cpu_per_gb", true, NULL},
    {NULL, "cpu_cores", false, "CPU time per byte times the rate: both of these are judged"},
    {NULL, "retransmits", false, EXTREME},
    {NULL, "rnr naks", false, EXTREME},
    {NULL, "out of sequence", false, EXTREME},
    {NULL, "congestion notices", false, EXTREME},
    {NULL, "rtt", false, STATE}, /* while the stream fills its queues */
    {NULL, "cwnd", false, STATE},
    {NULL, "limited_by_receiver", false, STATE},
    {NULL, "limited_by_buffer", false, STATE},
    {NULL, "zerocopy_copied", false, STATE},
    {NULL, NULL, false, NULL},
};

static const struct rule_metric *metric_of(const char *bench, const char *metric)
{
    for (const struct rule_metric *m = rule_metrics; m->name; m++)
        if ((!m->bench || !strcmp(m->bench, bench)) && !strcmp(m->name, metric))
            return m;
    return NULL;
}

/* A figure has a value, and no samples that a rule stopped. */
static bool is_sampled(const struct report_rows *rows, size_t row, size_t stop)
{
    return row_number(rows, row, FIELD_SAMPLES) > 0 &&
           (stop == TABLE_NO_COLUMN || *table_cell(rows->table, row, stop));
}

bool rule_is_figure(const struct report *r, const struct report_bench *b,
                    const struct report_case *c)
{
    size_t values = 0, samples = 0;

    for (size_t run = 0; run < r->n_runs; run++) {
        const struct report_rows *rows = &b->rows[run];
        size_t stop = rows->table ? table_column(rows->table, "stop") : TABLE_NO_COLUMN;

        for (size_t i = 0; i < c->points[run].n_rows; i++) {
            size_t row = c->points[run].rows[i];

            values += !isnan(row_number(rows, row, FIELD_VALUE));
            samples += is_sampled(rows, row, stop);
        }
    }
    return values && !samples;
}

bool rule_is_judged(const struct report *r, const struct report_bench *b,
                    const struct report_case *c)
{
    const struct rule_metric *known = metric_of(b->name, c->metric);

    return known ? known->judged : !rule_is_figure(r, b, c);
}

bool rule_outcome_decides(const char *bench, const char *param)
{
    for (const struct decisive_rule *r = decisive_rules; r->bench; r++)
        if (!strcmp(r->bench, bench) && word_in(r->outcomes, param))
            return true;
    return false;
}
