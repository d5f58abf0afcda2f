/* SPDX-License-Identifier: Apache-2.0 */
/* What the report knows of the benchmarks: see rules.h. */
#include "harness/report/rules.h"

#include <fnmatch.h>
#include <math.h>
#include <string.h>

/* GPUs first: on a machine that has them they are what it was bought for.
 *
 * Host: below 70 % of a measured ceiling, or 60 % of a bus' peak, something other than the pipe
 * itself bounds: well-tuned code on a healthy machine stays above. By how much a copy through the
 * kernel stays below memcpy depends on the kernel, and memcpy is held against itself: NAN, not judged.
 *
 * GPU: products are bound by power on most cards, which leaves 60 to 90 % of the datasheet's rate
 * for random data at 8192. HBM and GDDR give 85 to 95 % of their pins' rate. Of a PCIe link, packet
 * headers take 7 to 14 %, and page-locked copies lose some more: 78 % and up. NVLink gives 75 to 90
 * % to one copy engine. */
const struct headline_rule headline_rules[] = {
    {"gemm", "GPU matrix core", "%s", "metric=throughput data!=zeros", "dtype", NULL, 55,
     "gpu clock", RULE_GPU},
    {"memory", "GPU memory", "triad",
     "metric=bandwidth op=triad engine!=driver level!=L2 level!=", NULL, "+size", 75, "", RULE_GPU},
    {"memory", "GPU memory", "read",
     "metric=bandwidth op=read engine!=driver level!=L2 level!=", NULL, "+size", 75, "", RULE_GPU},
    {"memory", "GPU memory", "copy",
     "metric=bandwidth op=copy engine!=driver level!=L2 level!=", NULL, "+size", 75, "", RULE_GPU},
    {"memory", "GPU memory", "copy by the driver",
     "metric=bandwidth op=copy engine=driver level!=L2 level!=", NULL, "+size", 75, "", RULE_GPU},
    {"memory", "GPU memory", "triad in L2", "metric=bandwidth op=triad level=L2", NULL, NULL, NAN,
     "", RULE_GPU},
    {"copy", "GPU copies", "host to GPU, pinned",
     "metric=bandwidth direction=one-way source!=*:* memory=pinned together=none", NULL, "+size",
     70, "memory numa iommu", RULE_GPU},
    {"copy", "GPU copies", "GPU to host, pinned",
     "metric=bandwidth direction=one-way destination!=*:* memory=pinned together=none", NULL,
     "+size", 70, "memory numa iommu", RULE_GPU},
    {"copy", "GPU copies", "both ways at once, sum",
     "metric=bandwidth direction=sum memory=pinned together=none", NULL, "+size", NAN,
     "memory numa iommu", RULE_GPU},
    {"copy", "GPU copies", "host to GPU, pageable",
     "metric=bandwidth direction=one-way source!=*:* memory=pageable", NULL, "+size", NAN,
     "memory numa", RULE_GPU},
    {"copy", "GPU peers", "%s",
     "metric=bandwidth direction=one-way source=*:* destination=*:* access=on", "path", "+size", 65,
     "iommu", RULE_GPU | RULE_QUIET},
    {"launch", "GPU launch", "launch", "metric=latency op=launch", NULL, NULL, NAN, "cpu clock",
     RULE_GPU | RULE_TAIL},
    {"launch", "GPU launch", "launch and completion", "metric=latency op=launch-complete", NULL,
     NULL, NAN, "cpu clock", RULE_GPU | RULE_TAIL},
    {"launch", "GPU launch", "call of the driver", "metric=latency op=driver-call", NULL, NULL, NAN,
     "cpu clock", RULE_GPU | RULE_TAIL},
    {"memory", "GPU latency", "load from", "metric=latency op=latency level!=", "level", "+size",
     NAN, "", RULE_GPU},
    {"copy", "GPU latency", "smallest copy, host to GPU",
     "metric=latency source!=*:* memory=pinned", NULL, "-size", NAN, "", RULE_GPU | RULE_TAIL},

    {"gemm", "Matrix core", "%s", "metric=throughput data!=zeros", "dtype", NULL, 70,
     "cpu clock limits", 0},
    {"memory", "Caches", "triad in", "metric=bandwidth op=triad level!=DRAM level!=", "level", NULL,
     60, "cpu limits", 0},
    {"memory", "Memory", "triad",
     "metric=bandwidth op=triad level!=L1 level!=L2 level!=L3 level!=L4", NULL, "+size", 60,
     "memory numa limits", 0},
    {"memory", "Memory", "read", "metric=bandwidth op=read level!=L1 level!=L2 level!=L3 level!=L4",
     NULL, "+size", 60, "memory numa limits", 0},
    {"copy", "Copies", "%s", "metric=bandwidth direction=one-way engine=memcpy", "engine", "+size",
     NAN, "memory numa limits", 0},
    {"copy", "Copies", "%s", "metric=bandwidth direction=one-way engine!=memcpy", "engine", "+size",
     NAN, "memory numa limits", 0},
    {"memory", "Latency", "load from memory, page by page",
     "metric=latency_page_by_page op=latency level!=L1 level!=L2 level!=L3 level!=L4", NULL,
     "+size", 60, "memory numa clock", 0},
    {"memory", "Latency", "random load, page walks included",
     "metric=latency op=latency level!=L1 level!=L2 level!=L3 level!=L4", NULL, "+size", 60,
     "memory numa clock", 0},
    {"copy", "Latency", "smallest message, one way, by", "metric=latency direction=one-way",
     "engine", "-size", 60, "numa clock limits", 0},
    /* Of a line's payload TCP and RDMA reach all but a few percent, where the CPU does not bound them. */
    {"net", "Network", "%s",
     "metric=bandwidth direction!=both direction!=sum transport!=shm rail=|all", "transport", NULL,
     85, "network cpu numa", RULE_OVER | RULE_QUIET | RULE_COST},
    {"net", "Network", "both ways at once, sum, by", "metric=bandwidth direction=sum", "transport",
     NULL, NAN, "network cpu numa", RULE_OVER | RULE_QUIET | RULE_COST},
    {"net", "Network latency", "smallest message by", "metric=latency pattern=latency", "transport",
     "-size", NAN, "network cpu numa clock", RULE_OVER | RULE_QUIET},
    {"net", "Network latency", "under load, by", "metric=loaded_latency", "transport", "-size", NAN,
     "network cpu numa clock", RULE_OVER | RULE_QUIET | RULE_TAIL},
    {"net", "Network rate", "messages by", "metric=message_rate rail=|all", "transport", "-size",
     NAN, "network cpu numa", RULE_OVER | RULE_QUIET},
    {"net", "Between two processes", "shared memory", "metric=bandwidth transport=shm", NULL, NULL,
     NAN, "numa clock limits", RULE_QUIET | RULE_COST},
    /* Bus bandwidth is what a wire carries: of its payload a ring leaves little; libraries' own choices leave more. */
    {"allreduce", "Allreduce", "largest vector, over",
     "metric=busbw op=allreduce model= transport!=", "transport", "+ranks +size", 85,
     "network cpu numa", RULE_QUIET},
    {"allreduce", "Allreduce", "largest vector, by", "metric=busbw op=allreduce model= transport=",
     "backend", "+ranks +size", 85, "network cpu numa", RULE_QUIET},
    {"allreduce", "Allreduce latency", "smallest vector, over",
     "metric=time op=allreduce model= transport!=", "transport", "+ranks -size", NAN,
     "network cpu numa clock", RULE_QUIET | RULE_TAIL},
    {"allreduce", "Allreduce latency", "smallest vector, by",
     "metric=time op=allreduce model= transport=", "backend", "+ranks -size", NAN,
     "network cpu numa clock", RULE_QUIET | RULE_TAIL},
    {"allreduce", "Gradients", "all of", "metric=time model!=", "model", "+ranks", NAN,
     "network cpu numa", RULE_QUIET},
    {NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0},
};

/* What a launch measures, by its parameters: one that died before it could say so belongs to the headlines of that
 * alone. */
static const struct metric_rule {
    const char *bench, *where, *metric;
} metric_rules[] = {
    {"net", "pattern=bandwidth", "bandwidth"},
    {"net", "pattern=latency", "latency"},
    {"net", "pattern=rate", "message_rate"},
    {"net", "pattern=loaded-latency", "loaded_latency"},
    {"allreduce", "model=", "busbw"},
    {"allreduce", "model!=", "time"},
    {NULL, NULL, NULL},
};

#define TO_GPU   "metric=bandwidth direction=one-way source!=*:* together=none "
#define FROM_GPU "metric=bandwidth direction=one-way destination!=*:* together=none "

const struct contrast_rule contrast_rules[] = {
    {"gemm", "random data against zeros", "metric=throughput data=random", "data", "data=zeros",
     "dtype", "zeros are %s slower",
     "zeros are %s faster: they take less power, so numbers taken on zeros promise too much",
     "zeros make no difference: power is not what bounds it", RULE_GPU},
    {"gemm", "the best candidate against the library's own choice",
     "metric=throughput library=*-best data!=zeros", "library", "library!=*-best", "dtype",
     "the library's own choice is %s slower than the best of its candidates",
     "the library's own choice is %s faster than the best that the search found",
     "the library's own choice is as fast as the best of its candidates", RULE_GPU},
    {"memory", "tuned launch against plain", "metric=bandwidth launch=tuned level!=L2 level!=",
     "launch", "launch=plain", "op", "a plain launch is %s slower than the tuned one",
     "a plain launch is %s faster than the tuned one", "a plain launch is as fast", RULE_GPU},
    {"copy", "host memory near the GPU against far, to the GPU",
     TO_GPU "numa=local memory=pinned engine=ce", "source", "numa=remote", "destination",
     "from the remote node it is %s slower", "from the remote node it is %s faster",
     "from the remote node it is as fast", RULE_GPU},
    {"copy", "host memory near the GPU against far, from the GPU",
     FROM_GPU "numa=local memory=pinned engine=ce", "destination", "numa=remote", "source",
     "to the remote node it is %s slower", "to the remote node it is %s faster",
     "to the remote node it is as fast", RULE_GPU},
    {"copy", "pinned memory against pageable, to the GPU", TO_GPU "memory=pinned engine=ce",
     "memory", "memory=pageable", "", "from pageable memory it is %s slower",
     "from pageable memory it is %s faster", "from pageable memory it is as fast", RULE_GPU},
    {"copy", "pinned memory against pageable, from the GPU", FROM_GPU "memory=pinned engine=ce",
     "memory", "memory=pageable", "", "to pageable memory it is %s slower",
     "to pageable memory it is %s faster", "to pageable memory it is as fast", RULE_GPU},
    {"copy", "copy engine against kernel, to the GPU", TO_GPU "memory=pinned engine=ce", "engine",
     "engine=sm", "", "by a kernel it is %s slower", "by a kernel it is %s faster",
     "by a kernel it is as fast", RULE_GPU},
    {"copy", "copy engine against kernel, from the GPU", FROM_GPU "memory=pinned engine=ce",
     "engine", "engine=sm", "", "by a kernel it is %s slower", "by a kernel it is %s faster",
     "by a kernel it is as fast", RULE_GPU},
    {"copy", "alone against all GPUs at once", "metric=bandwidth load=alone", "load",
     "load=together", "source destination direction",
     "while other GPUs copy too it is %s slower: they share a link or the host's memory",
     "while other GPUs copy too it is %s faster", "other GPUs that copy too do not slow it",
     RULE_GPU},
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0},
};

static const struct plot_hint plot_hints[] = {
    {.bench = "gemm",
     .x = "m",
     .lines = "m n k dtype library",
     .ignore = "accumulate layout",
     .outcomes = "cpus kernel address candidates gap_percent",
     .library = "kernel",
     .square = "m n k",
     .sought_by = "search"},
    {.bench = "gemm",
     .x = "m",
     .lines = "dtype library data device m n k",
     .ignore = "threads",
     .outcomes = "cpus kernel address candidates gap_percent",
     .library = "kernel",
     .square = "m n k",
     .sought_by = "search",
     .gpu = true},
    {.bench = "memory",
     .x = "size",
     .lines = "op stores",
     .ignore = "",
     .outcomes = "level working_set bytes_rule write_allocate hardware_pages address shape",
     .bytes = true,
     .cache_marks = true},
    {.bench = "memory",
     .x = "size",
     .lines = "op launch engine device",
     .ignore = "stores pages threads node memory_node isa",
     .outcomes = "level working_set bytes_rule write_allocate hardware_pages address shape",
     .bytes = true,
     .gpu = true},
    {.bench = "copy",
     .x = "size",
     .lines = "engine direction",
     .ignore = "op access together",
     .outcomes = "address numa path clock",
     .bytes = true},
    {.bench = "copy",
     .x = "size",
     .lines = "memory direction engine source destination",
     .ignore = "",
     .outcomes = "address numa path clock",
     .bytes = true,
     .gpu = true},
    {.bench = "launch",
     .x = "size",
     .lines = "op device",
     .ignore = "",
     .outcomes = "address",
     .bytes = true,
     .gpu = true},
    {.bench = "net",
     .x = "size",
     .lines = "transport streams direction verb mode zerocopy poll side scope from to threads",
     .ignore = "pattern",
     .outcomes = "peer_host cpus detail peer_detail",
     .bytes = true},
    {.bench = "allreduce",
     .x = "size",
     .lines = "backend transport ranks scope op dtype",
     .ignore = "rank",
     .outcomes = "nodes vector_bytes chosen detail rank_host",
     .undrawn = "algbw late_share waited_share blocked_share",
     .elsewhere = "model!=",
     .sizes = "bucket segment vector_bytes",
     .bytes = true},
    {.bench = NULL},
};

const struct plot_hint *plot_hint_find(const char *bench, bool gpu)
{
    for (const struct plot_hint *h = plot_hints; h->bench; h++)
        if (!strcmp(h->bench, bench) && h->gpu == gpu)
            return h;
    return NULL;
}

const struct plot_hint *plot_hint_of(const struct report_bench *b, const struct report_case *c)
{
    return plot_hint_find(b->name, case_is_gpu(b, c));
}

bool rule_param_is_bytes(const char *bench, const char *param)
{
    bool known = false;

    for (const struct plot_hint *h = plot_hints; h->bench; h++) {
        if (strcmp(h->bench, bench) != 0)
            continue;
        known = true;
        if ((h->bytes && !strcmp(h->x, param)) || (h->sizes && word_in(h->sizes, param)))
            return true;
    }
    return !known && strstr(param, "bytes") != NULL;
}

bool rule_param_follows(const char *bench, const char *param)
{
    for (const struct plot_hint *h = plot_hints; h->bench; h++)
        if (!strcmp(h->bench, bench) && word_in(h->outcomes, param))
            return true;
    return false;
}

bool rule_names_library(const char *bench, const char *param)
{
    for (const struct plot_hint *h = plot_hints; h->bench; h++)
        if (!strcmp(h->bench, bench) && h->library && !strcmp(h->library, param))
            return true;
    return false;
}

const char *rule_sought_by(const char *bench, const char *param)
{
    for (const struct plot_hint *h = plot_hints; h->bench; h++)
        if (!strcmp(h->bench, bench) && h->sought_by && word_in(h->square, param))
            return h->sought_by;
    return NULL;
}

bool hint_ignores(const struct plot_hint *hint, const char *param)
{
    return hint && (word_in(hint->ignore, param) || word_in(hint->outcomes, param));
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

static bool one_fits(const char *cell, const char *value, size_t len)
{
    char pattern[64];

    if (!memchr(value, '*', len) || len >= sizeof(pattern))
        return strlen(cell) == len && !memcmp(cell, value, len);
    memcpy(pattern, value, len);
    pattern[len] = 0;
    return fnmatch(pattern, cell, 0) == 0;
}

static bool value_fits(const char *cell, const char *values, size_t len)
{
    const char *bar = memchr(values, '|', len);
    size_t n = bar ? (size_t)(bar - values) : len;

    return one_fits(cell, values, n) || (bar && value_fits(cell, bar + 1, len - n - 1));
}

/* Of a case whose launches all died before they could say what they measure: by its parameters, as far as they say. */
static bool may_measure(const struct report_bench *b, const struct report_case *c,
                        const char *metric, size_t len)
{
    bool known = false;

    for (const struct metric_rule *rule = metric_rules; rule->bench; rule++) {
        if (strcmp(rule->bench, b->name) != 0 || !rule_matches(b, c, rule->where))
            continue;
        if (value_fits(rule->metric, metric, len))
            return true;
        known = true;
    }
    return !known;
}

static bool condition_holds(const struct report_bench *b, const struct report_case *c,
                            const char *text, size_t len)
{
    static const char metric[] = "metric=";
    const char *equals = memchr(text, '=', len);
    bool wanted = equals > text && equals[-1] != '!';

    if (!*c->metric && !strncmp(text, metric, sizeof(metric) - 1))
        return may_measure(b, c, equals + 1, len - sizeof(metric) + 1);
    const char *cell = cell_of(b, c, text, (size_t)(equals - text) - !wanted);
    size_t n = len - (size_t)(equals + 1 - text);

    return value_fits(cell, equals + 1, n) == wanted;
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
