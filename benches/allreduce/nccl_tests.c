/* SPDX-License-Identifier: Apache-2.0 */
/* What nccl-tests' options mean here: see work.h. Their meaning there is that of nccl-tests 2.19
 * (src/common.cu). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benches/allreduce/work.h"
#include "core/group/mpi.h"
#include "core/hw/gpu.h"

#define STEP_BYTES (1ull << 20)

bool nccl_tests_types(const char *word, char *list, size_t len)
{
    static const char *const others[][2] = {
        {"float", "f32"},   {"float32", "f32"}, {"half", "f16"},
        {"float16", "f16"}, {"double", "f64"},  {"float64", "f64"},
        {"int32", "i32"},   {"int", "i32"},     {"bfloat16", "bf16"},
        {"int8", "i8"},     {"char", "i8"},     {"int64", "i64"},
        {"f8e4m3", "e4m3"}, {"f8e5m2", "e5m2"}, {"all", "f32,f16,bf16,f64,i32,i8,i64,e4m3,e5m2"}};

    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        if (!strcmp(word, others[i][0])) {
            snprintf(list, len, "%s", others[i][1]);
            return true;
        }
    return false;
}

bool nccl_tests_sums(const char *word, char *list, size_t len)
{
    if (strcmp(word, "all") != 0)
        return false;
    snprintf(list, len, "sum,prod,max,min,avg");
    return true;
}

/* -1 is each rank of the communicator; a sweep leaves out those that there are not. */
bool nccl_tests_roots(const char *word, char *list, size_t len)
{
    if (strcmp(word, "-1") != 0)
        return false;
    snprintf(list, len, "0..%d+1", WORLD_RANKS_MAX - 1);
    return true;
}

bool nccl_tests_registers(const char *word, char *list, size_t len)
{
    if (!*word || word[1] || *word < '0' || *word >= '0' + COLLECTIVE_REGISTERS)
        return false;
    snprintf(list, len, "%s", collective_register_names[*word - '0']);
    return true;
}

static bool is_given(const struct opts *o, const char *name)
{
    return opts_values(o, name)->given;
}

static uint64_t number_of(const struct opts *o, const char *name)
{
    const struct opt_values *v = opts_values(o, name);

    return v->n ? strtoull(v->texts[0], NULL, 10) : 0;
}

/* 0 is all GPUs of this machine. */
static int name_all(struct opts *o)
{
    const struct opt_values *each = opts_values(o, "per-process");
    unsigned n = gpus_count_apart();
    char list[256];
    size_t at = 0;

    n = n > COLLECTIVE_EACH_MAX ? COLLECTIVE_EACH_MAX : n ? n : 1;
    for (size_t i = 0; i < each->n && at < sizeof(list); i++) {
        uint64_t asked = strtoull(each->texts[i], NULL, 10);
        at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%llu", i ? "," : "",
                               (unsigned long long)(asked ? asked : n));
    }
    return opts_set(o, "per-process", list);
}

static bool has_zero(const struct opt_values *v)
{
    for (size_t i = 0; i < v->n; i++)
        if (!strtoull(v->texts[i], NULL, 10))
            return true;
    return false;
}

/* Ranks of several in a process: so many processes as the largest communicator wants. */
static int set_processes(struct opts *o)
{
    const struct opt_values *each = opts_values(o, "per-process"), *ranks = opts_values(o, "ranks");
    int err = each->given && has_zero(each) ? name_all(o) : 0;
    uint64_t most = 0, least;
    char text[24];

    if (err || !each->given)
        return err;
    each = opts_values(o, "per-process");
    least = number_of(o, "per-process");
    for (size_t i = 0; i < each->n; i++) {
        uint64_t n = strtoull(each->texts[i], NULL, 10);
        least = n < least ? n : least;
        most = n > most ? n : most;
    }
    most *= mpi_launched() > 1 ? mpi_launched() : is_given(o, "np") ? number_of(o, "np") : 1;
    snprintf(text, sizeof(text), "%llu", (unsigned long long)most);
    if (!ranks->given && !number_of(o, "ranks"))
        err = opts_default(o, "ranks", text);
    most = 0;
    for (size_t i = 0; i < ranks->n; i++) {
        uint64_t n = strtoull(ranks->texts[i], NULL, 10);
        most = n > most ? n : most;
    }
    most = least && most > least ? most / least : 1;
    snprintf(text, sizeof(text), "%llu", (unsigned long long)most);
    return err || mpi_launched() > 1 ? err : opts_default(o, "np", text);
}

/* There all ranks are one communicator. With 0, which is not theirs, they are 1, 2, 4 .. of all. */
int nccl_tests_ranks(struct opts *o)
{
    uint64_t gpus = number_of(o, "gpus"), n = gpus * number_of(o, "threads");
    char text[24];
    int err;

    if (mpi_launched() > 1 && n > 1) { /* as there: in each process */
        snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
        err = opts_default(o, "backend", "nccl");
        err = err || is_given(o, "per-process") ? err : opts_set(o, "per-process", text);
        return err ? err : set_processes(o);
    }
    if (mpi_launched() > 1 || (!is_given(o, "gpus") && !is_given(o, "threads")))
        return set_processes(o);
    if (!gpus) {
        n = gpus_count_apart();
        n = n > WORLD_RANKS_MAX ? WORLD_RANKS_MAX : n ? n : 1;
    }
    snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
    err = opts_default(o, "backend", "nccl");
    if (!err && !gpus && !is_given(o, "np"))
        return opts_set(o, "np", text); /* as if it was given: more than ranks_defaults() chooses */
    err = err ? err : opts_default(o, "ranks", text);
    return err ? err : set_processes(o);
}

int nccl_tests_sizes(struct opts *o)
{
    uint64_t least = number_of(o, "min-bytes"), most = number_of(o, "max-bytes");
    uint64_t factor = number_of(o, "step-factor"), step = number_of(o, "step-bytes");
    char text[96];

    if (!least && !most)
        return 0;
    least = least ? least : most;
    most = most ? most : least;
    if (is_given(o, "size") || least > most) {
        snprintf(o->error, sizeof(o->error), "%s",
                 least > most ? "--min-bytes is more than --max-bytes"
                              : "--min-bytes and --max-bytes are a range in place of --size: leave "
                                "--size out");
        return -EINVAL;
    }
    if (factor > 1)
        snprintf(text, sizeof(text), "%llu..%llux%llu", (unsigned long long)least,
                 (unsigned long long)most, (unsigned long long)factor);
    else
        snprintf(text, sizeof(text), "%llu..%llu+%llu", (unsigned long long)least,
                 (unsigned long long)most, (unsigned long long)(step ? step : STEP_BYTES));
    return opts_set(o, "size", least == most ? strtok(text, ".") : text);
}

/* Can each of the backends that are asked for queue operations, and wait once? */
static bool all_queue(const struct opts *o)
{
    const struct opt_values *backends = opts_values(o, "backend");

    for (size_t i = 0; i < backends->n; i++)
        if (!collective_find(backends->texts[i])->run_batch)
            return false;
    return backends->n;
}

/* There -n operations are queued, and waited for once, where they are not blocking. So they are
 * here, as often as the interval wants it. */
int nccl_tests_iterations(struct opts *o)
{
    const struct opt_values *blocking = opts_values(o, "blocking");
    uint64_t n = number_of(o, "iterations"), aggregated = number_of(o, "aggregate");
    char text[24];

    if (!n || !all_queue(o) || (blocking->n && !strcmp(blocking->texts[0], "2")))
        return 0;
    uint64_t most = COLLECTIVE_QUEUED_MAX / (aggregated ? aggregated : 1);
    snprintf(text, sizeof(text), "%llu", (unsigned long long)(n < most ? n : most));
    int err = opts_default(o, "pipelined", text);
    return err ? err : opts_set(o, "iterations", "0");
}

/* Values that change nothing here, and why others are refused. */
static const struct {
    const char *name, *fine, *why;
} elsewhere[] = {
    {"average", "3", "`time` is the slowest rank's, as with nccl-tests' -a 3"},
    {"blocking", "0 2",
     "1 would time a barrier with each operation, 3 parts groups of them: take 2, each operation "
     "is "
     "waited for, or 0"},
    {"run-cycles", "1", "repeat a run by plumb run --repeat, or a loop"},
    {"stream-null", "0", "operations have a stream of their own"},
    {"timeout", "0", "a rank that is lost or hangs is found without it"},
    {"report-cputime", "0", "times end with the operations; CPU time has rows of its own"},
    {"report-timestamps", "0", "each row has its time in time_utc"},
    {"output-file", "", "take --csv, or plumb run"},
    {"cta-policy", "", "set NCCL_CTA_POLICY in the environment"},
    {"device-implementation", "0", "operations are NCCL's own, no kernels of a test"},
    {"device-cta-count", "", "operations are NCCL's own, no kernels of a test"},
    {"memory", "0", "memory is not measured"},
    {"unalign", "0", "buffers are aligned"},
    {"per-iter-timing", "0", "each sample is kept: --samples FILE"},
    {"per-iter-skip", "0", "each sample is kept: --samples FILE"},
};

static bool is_fine(const char *value, const char *fine)
{
    size_t n = strlen(value);

    for (const char *at = fine; n && (at = strstr(at, value)); at += n)
        if ((at == fine || at[-1] == ' ') && (!at[n] || at[n] == ' '))
            return true;
    return false;
}

bool nccl_tests_refuse(const struct opts *o, char *why, size_t len)
{
    for (size_t i = 0; i < sizeof(elsewhere) / sizeof(*elsewhere); i++) {
        const struct opt_values *v = opts_values(o, elsewhere[i].name);
        if (!v->given || !v->n || is_fine(v->texts[0], elsewhere[i].fine))
            continue;
        snprintf(why, len, "--%s %s: %s", elsewhere[i].name, v->texts[0], elsewhere[i].why);
        return true;
    }
    return false;
}
