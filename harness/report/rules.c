/* SPDX-License-Identifier: Apache-2.0 */
/* What the report knows of the benchmarks: see rules.h. */
#include "harness/report/rules.h"

#include <math.h>
#include <string.h>

/* Below 70 % of a measured ceiling, or 60 % of a bus' peak, something other than the pipe itself
 * bounds: well-tuned code on a healthy machine stays above. A copy through the kernel stays below
 * memcpy by its nature, by how much depends on the kernel: NAN, its share is not judged. */
const struct headline_rule headline_rules[] = {
    {"gemm", "Matrix core", "%s", "metric=throughput", "dtype", NULL, 70, "cpu clock limits"},
    {"memory", "Caches", "triad in", "metric=bandwidth op=triad level!=DRAM level!=", "level", NULL,
     60, "cpu limits"},
    {"memory", "Memory", "triad",
     "metric=bandwidth op=triad level!=L1 level!=L2 level!=L3 level!=L4", NULL, "+size", 60,
     "memory numa limits"},
    {"memory", "Memory", "read", "metric=bandwidth op=read level!=L1 level!=L2 level!=L3 level!=L4",
     NULL, "+size", 60, "memory numa limits"},
    {"copy", "Copies", "%s", "metric=bandwidth direction=one-way engine=memcpy", "engine", "+size",
     60, "memory numa limits"},
    {"copy", "Copies", "%s", "metric=bandwidth direction=one-way engine!=memcpy", "engine", "+size",
     NAN, "memory numa limits"},
    {"memory", "Latency", "memory",
     "metric=latency op=latency level!=L1 level!=L2 level!=L3 level!=L4", NULL, "+size", 60,
     "memory numa clock"},
    {"copy", "Latency", "smallest message by", "metric=latency direction=one-way", "engine",
     "-size", 60, "numa clock limits"},
    {NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL},
};

static const struct plot_hint plot_hints[] = {
    {"gemm", "m", "m n k dtype library", "accumulate cpus kernel", "m n k", false, false},
    {"memory", "size", "op stores", "level working_set bytes_rule write_allocate", NULL, true,
     true},
    {"copy", "size", "engine direction", "", NULL, true, false},
    {NULL, NULL, NULL, NULL, NULL, false, false},
};

const struct plot_hint *plot_hint_find(const char *bench)
{
    for (const struct plot_hint *h = plot_hints; h->bench; h++)
        if (!strcmp(h->bench, bench))
            return h;
    return NULL;
}

size_t rule_place(const char *bench)
{
    size_t i = 0;

    while (headline_rules[i].bench && strcmp(headline_rules[i].bench, bench) != 0)
        i++;
    return i;
}

bool hint_is_square(const struct plot_hint *hint, const struct report_bench *b,
                    const struct report_case *c)
{
    const char *first = NULL;

    for (size_t i = 0; hint && hint->square && i < b->n_params; i++) {
        if (!word_in(hint->square, b->params[i]))
            continue;
        if (first && strcmp(first, c->params[i]) != 0)
            return false;
        first = c->params[i];
    }
    return true;
}

bool word_in(const char *words, const char *word)
{
    size_t len = strlen(word);

    while (len && *words) {
        size_t n = strcspn(words, " ");

        if (n == len && !memcmp(words, word, n))
            return true;
        words += n + (words[n] == ' ');
    }
    return false;
}

static const char *cell_of(const struct report_bench *b, const struct report_case *c,
                           const char *key, size_t len)
{
    if (len == strlen("metric") && !memcmp(key, "metric", len))
        return c->metric;
    for (size_t i = 0; i < b->n_params; i++)
        if (strlen(b->params[i]) == len && !memcmp(b->params[i], key, len))
            return c->params[i];
    return "";
}

static bool condition_holds(const struct report_bench *b, const struct report_case *c,
                            const char *text, size_t len)
{
    static const char metric[] = "metric=";
    const char *equals = memchr(text, '=', len);
    bool wanted = equals > text && equals[-1] != '!';

    /* A case whose launches all died before they could say what they measure. */
    if (!*c->metric && !strncmp(text, metric, sizeof(metric) - 1))
        return true;
    const char *cell = cell_of(b, c, text, (size_t)(equals - text) - !wanted);
    size_t n = len - (size_t)(equals + 1 - text);

    return (strlen(cell) == n && !memcmp(cell, equals + 1, n)) == wanted;
}

bool rule_matches(const struct report_bench *b, const struct report_case *c, const char *where)
{
    while (*where) {
        size_t n = strcspn(where, " ");

        if (!condition_holds(b, c, where, n))
            return false;
        where += n + (where[n] == ' ');
    }
    return true;
}
