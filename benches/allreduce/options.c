/* SPDX-License-Identifier: Apache-2.0 */
/* The options of allreduce, what follows from them, and the point that a choice of their values
 * means, with its calls and its members: see work.h. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benches/allreduce/work.h"
#include "core/hw/machine.h"

#define AT(field)    .offset = offsetof(struct collective_params, field)
#define GROUP(field) .offset = offsetof(struct collective_params, group.field)
#define WAY(field)   .offset = offsetof(struct collective_params, way.field)
/* Of nccl-tests: see nccl_tests_refuse(). */
#define ELSEWHERE(long_name, short_name)                                                           \
    {                                                                                              \
        .name = (long_name), .letter = (short_name), .type = OPT_STRING, .flags = OPT_HIDDEN,      \
        AT(elsewhere), .help = ""                                                                  \
    }

static const struct opt_scope by_nccl = {"backend=" COLLECTIVE_BATCHED_WORDS, "NCCL"};
static const struct opt_scope by_size = {"model!=?*", "vectors of one size, not a --model"};
static const struct opt_scope sums = {"op=allreduce,reduce-scatter,reduce",
                                      "operations that reduce"};

static const struct opt_scope rooted = {"op=broadcast,reduce,gather,scatter",
                                        "operations with a root"};

static const char *const fills[] = {"node", "rank", NULL};
static const char *const scalings[] = {"weak", "strong", NULL};
static const char *const injects[] = {"none", "corrupt", "elsewhere", "absent", NULL};

const struct opt allreduce_options[] = {
    RANKS_OPTIONS(GROUP),
    WAY_OPTIONS(WAY),
    {.name = "op",
     OPT_WORD(OPT_SWEPT, op, "allreduce", collective_ops_names),
     .help = "the operation"},
    {.name = "dtype",
     .letter = 'd',
     OPT_WORD(OPT_SWEPT, dtype, "f32", collective_type_names),
     .expand = nccl_tests_types,
     .help =
         "type of an element; nccl-tests' names (float, half, f8e4m3, all, ...) also work. e4m3 "
         "and e5m2 (fp8) are reduced by NCCL alone"},
    {.name = "redop",
     .letter = 'o',
     OPT_WORD(OPT_SWEPT | OPT_SWEEP, redop, "sum", collective_sum_names),
     .scope = &sums,
     .expand = nccl_tests_sums,
     .help = "reduction of the elements; avg by NCCL alone; 'all': each of them"},
    {.name = "root",
     .letter = 'r',
     OPT_NUMBER(OPT_U64, OPT_SWEPT | OPT_SWEEP, root, "0", 0, WORLD_RANKS_MAX - 1),
     .scope = &rooted,
     .expand = nccl_tests_roots,
     .help = "rank of the communicator that has the whole vector, or gets it; -1: each in turn"},
    {.name = "size",
     .letter = 's',
     OPT_NUMBER(OPT_SIZE, OPT_SWEPT | OPT_SWEEP, size, "8,1K,64K,1M,16M", 1, COLLECTIVE_BYTES_MAX),
     .scope = &by_size,
     .help = "size of the vector as in nccl-tests: of the result for all-gather, of the input for "
             "reduce-scatter"},
    {.name = "min-bytes",
     .letter = 'b',
     OPT_NUMBER(OPT_SIZE, 0, least, "0", 0, COLLECTIVE_BYTES_MAX),
     .help = "smallest size of a range up to --max-bytes, by --step-factor or --step-bytes; one of "
             "the two alone: that size"},
    {.name = "max-bytes",
     .letter = 'e',
     OPT_NUMBER(OPT_SIZE, 0, most, "0", 0, COLLECTIVE_BYTES_MAX),
     .help = "largest size of the range"},
    {.name = "step-factor",
     .letter = 'f',
     OPT_NUMBER(OPT_U64, 0, factor, "0", 0, 1024),
     .help = "factor between two sizes; 0 or 1: --step-bytes"},
    {.name = "step-bytes",
     .letter = 'i',
     OPT_NUMBER(OPT_SIZE, 0, step, "0", 0, COLLECTIVE_BYTES_MAX),
     .help = "bytes between two sizes where there is no factor; 0: 1M"},
    {.name = "ranks",
     OPT_NUMBER(OPT_U64, OPT_SWEPT | OPT_SPLITS, ranks, "0", 0, WORLD_RANKS_MAX),
     .help = "ranks of the communicators; 0: 1, 2, 4, ... and all ranks, in one launch; by "
             "default the same without 1, which is a copy to itself"},
    {.name = "fill",
     OPT_WORD(OPT_SWEPT, fill, "node", fills),
     .help = "order of ranks in a communicator: all ranks of a node before the next node, or one "
             "of each node in turn"},
    {.name = "scaling",
     OPT_WORD(OPT_SWEPT, scaling, "weak", scalings),
     .help = "weak: every communicator reduces a vector of this size; strong: the size is divided "
             "by the ranks"},
    {.name = "in-place",
     OPT_OF(OPT_FLAG, OPT_COLUMN, in_place, NULL),
     .help = "use one buffer for input and result"},
    WAY_OPTIONS_CUT(WAY),
    {.name = "pipelined",
     OPT_NUMBER(OPT_U64, OPT_SWEPT | OPT_SWEEP, pipelined, "1", 1, COLLECTIVE_QUEUED_MAX),
     .scope = &by_nccl,
     .help = "operations queued before one wait for all of them; 1: each is waited for. With -n N, "
             "N (nccl-tests' tables)"},
    {.name = "per-process",
     OPT_NUMBER(OPT_U64, OPT_SWEPT | OPT_SWEEP, per_process, "1", 0, COLLECTIVE_EACH_MAX),
     .scope = &by_nccl,
     .help = "ranks in each process, with a GPU each, given to NCCL in group calls; 0: all GPUs of "
             "this machine. --np is of processes then, --ranks of ranks"},
    {.name = "aggregate",
     .letter = 'm',
     OPT_NUMBER(OPT_U64, OPT_SWEPT | OPT_SWEEP, aggregated, "1", 1, COLLECTIVE_QUEUED_MAX),
     .scope = &by_nccl,
     .help = "operations given to NCCL in one group call"},
    {.name = "graph",
     .letter = 'G',
     OPT_NUMBER(OPT_U64, OPT_SWEPT | OPT_SWEEP, graphs, "0", 0, COLLECTIVE_QUEUED_MAX),
     .scope = &by_nccl,
     .help = "keep the queued operations as a CUDA graph, and launch it so many times before the "
             "wait; 0: no graph"},
    {.name = "register",
     .letter = 'R',
     OPT_WORD(OPT_SWEPT | OPT_SWEEP, registered, "none", collective_register_names),
     .scope = &by_nccl,
     .expand = nccl_tests_registers,
     .help =
         "register the buffers with NCCL: local (1), or as a symmetric window of all ranks (2)"},
    {.name = "gap",
     OPT_OF(OPT_DURATION, OPT_SWEPT, gap_ns, "0"),
     .help = "pause between operations, not timed; 0: none"},
    {.name = "overlap",
     OPT_OF(OPT_FLAG, OPT_COLUMN, overlap, NULL),
     .help = "run the operation during a matrix product that takes as long: the time of both, and "
             "the share that overlaps"},
    {.name = "model",
     OPT_OF(OPT_STRING, OPT_SWEPT, model, NULL),
     .arg = "NAME",
     .help = "sum all gradients of this model (configs/models: resnet50, bert-large, llama3-8b, "
             "...) as one operation, fused into buckets; --size has no effect"},
    {.name = "bucket",
     OPT_NUMBER(OPT_SIZE, OPT_SWEPT | OPT_SWEEP, bucket, "25M", 1, 1ull << 34),
     .scope = &(const struct opt_scope){"model=?*", "a --model"},
     .help = "bucket size of a model's gradients"},
    WAY_OPTIONS_WIRE(WAY),
    {.name = "iterations",
     .letter = 'n',
     OPT_OF(OPT_U64, 0, iterations, "0"),
     .help = "number of operations to measure; 0: until converged. Only --budget, if it is given, "
             "ends the measurement earlier. With NCCL alone: operations queued before one wait "
             "(--pipelined), until converged"},
    {.name = "warmup-iterations",
     .letter = 'w',
     OPT_OF(OPT_U64, 0, warmups, "1"),
     .help = "0: no warm-up; else --warmup sets its time"},
    {.name = "check",
     .letter = 'c',
     OPT_OF(OPT_U64, 0, verify, "1"),
     .help = "accepted for nccl-tests' sake, and ignored: results are always compared, outside of "
             "the timed part"},
    {.name = "gpus",
     .letter = 'g',
     OPT_NUMBER(OPT_U64, 0, gpus, "1", 0, WORLD_RANKS_MAX),
     .help =
         "nccl-tests' -g: GPUs; so many ranks on this machine by NCCL, in a process each "
         "unless --per-process says otherwise; of a launcher's processes: ranks in each. 0: all "
         "GPUs of this machine, by --ranks 1, 2, 4 .. of them"},
    {.name = "threads",
     .letter = 't',
     OPT_NUMBER(OPT_U64, 0, threads, "1", 1, WORLD_RANKS_MAX),
     .help = "nccl-tests' -t: times as many processes"},
    {.name = "blocking",
     .letter = 'z',
     OPT_OF(OPT_STRING, 0, blocking, NULL),
     .arg = "0|2",
     .help = "nccl-tests' -z. 2: each operation is waited for, also with -n"},
    ELSEWHERE("average", 'a'),
    ELSEWHERE("run-cycles", 'N'),
    ELSEWHERE("stream-null", 'y'),
    ELSEWHERE("timeout", 'T'),
    ELSEWHERE("report-cputime", 'C'),
    ELSEWHERE("report-timestamps", 'S'),
    ELSEWHERE("output-file", 'J'),
    ELSEWHERE("cta-policy", 0), /* -x is --gid-index */
    ELSEWHERE("device-implementation", 'D'),
    ELSEWHERE("device-cta-count", 'V'),
    ELSEWHERE("memory", 'M'),
    ELSEWHERE("unalign", 'u'),
    ELSEWHERE("per-iter-timing", 'I'),
    ELSEWHERE("per-iter-skip", 'K'),
    {.name = "no-cpu",
     OPT_OF(OPT_FLAG, 0, no_cpu, NULL),
     .help = "do not measure CPU time, nor the idle load before"},
    {.name = "inject",
     OPT_WORD(OPT_HIDDEN, inject, "none", injects),
     .help = "for tests: spoil the data, claim another path, leave a rank out; all must be found"},
    {.name = "sizes-chosen", OPT_OF(OPT_FLAG, OPT_HIDDEN, sizes_chosen, NULL), .help = ""},
    {.name = NULL},
};

/* ---- What follows from options ---- */

static uint64_t number_of(const struct opts *o, const char *name)
{
    const struct opt_values *v = opts_values(o, name);

    return v->n ? strtoull(v->texts[0], NULL, 10) : 0;
}

static bool is_given(const struct opts *o, const char *name)
{
    return opts_values(o, name)->given;
}

/* --root -1: each rank of the largest communicator. */
static int set_roots(struct opts *o)
{
    const struct opt_values *ranks = opts_values(o, "ranks");
    unsigned long most = 1;
    char text[32];

    if (opts_values(o, "root")->n < WORLD_RANKS_MAX)
        return 0;
    for (size_t i = 0; i < ranks->n; i++) {
        unsigned long n = strtoul(ranks->texts[i], NULL, 10);
        most = n > most ? n : most;
    }
    snprintf(text, sizeof(text), "0..%lu+1", most - 1);
    return opts_set(o, "root", text);
}

/* One rank measures a copy to itself: only where it was asked for, or where there is no other. */
static int leave_one_rank(struct opts *o)
{
    const struct opt_values *ranks = opts_values(o, "ranks");
    char text[256] = "";

    if (ranks->n < 2)
        return 0;
    for (size_t i = 1; i < ranks->n; i++) {
        size_t at = strlen(text);
        snprintf(text + at, sizeof(text) - at, "%s%s", i > 1 ? "," : "", ranks->texts[i]);
    }
    return opts_imply(o, "ranks", text);
}

int allreduce_defaults(struct opts *o)
{
    int err = nccl_tests_ranks(o);
    bool given = is_given(o, "ranks");

    if (!err)
        err = ranks_defaults(o);
    if (!err && !given)
        err = leave_one_rank(o);
    if (!err)
        err = set_roots(o);
    if (!err)
        err = nccl_tests_sizes(o);
    if (!err)
        err = nccl_tests_iterations(o);
    if (!err && number_of(o, "iterations"))
        err = opts_default(o, "budget", "1h");
    if (!err && number_of(o, "iterations"))
        err = opts_default(o, "min-samples", "1000000000"); /* it never converges */
    if (!err && is_given(o, "warmup-iterations") && !number_of(o, "warmup-iterations"))
        err = opts_default(o, "warmup", "0");
    if (!err && !is_given(o, "size") && !is_given(o, "min-bytes") && !is_given(o, "max-bytes"))
        err = opts_set(o, "sizes-chosen", "true");
    return err;
}

/* ---- The point that options mean ---- */

enum collective_scaling {
    COLLECTIVE_WEAK,   /* the vector's size is that of every communicator */
    COLLECTIVE_STRONG, /* it is divided by the members: their number times it stays the same */
};

static void fill(struct point *pt, const struct collective_params *p, struct collective_point *c)
{
    *c = (struct collective_point){.op = (uint32_t)p->op,
                                   .type = (uint32_t)p->dtype,
                                   .sum = (uint32_t)p->redop,
                                   .inject = (uint32_t)p->inject,
                                   .in_place = p->in_place,
                                   .seed = pt->common->seed};
    way_fill(&p->way, c);
    if (collective_has_root(
            (enum collective_op)c->op)) /* in a sweep, others' points have it, too */
        c->root = (uint32_t)p->root;
    if (!collective_find(c->backend)->run_batch) /* in a sweep, others' points have these, too */
        return;
    c->registered = (uint8_t)p->registered;
    c->per_process = (uint8_t)p->per_process;
    c->pipelined = (uint32_t)p->pipelined;
    c->aggregated = (uint32_t)p->aggregated;
    c->graphs = (uint32_t)p->graphs;
}

static int fuse(struct point *pt, const struct collective_params *p, struct collective_call *calls,
                unsigned *n_calls)
{
    struct model model = {0};
    char error[512] = "";
    size_t n = 0;
    int err = model_load(p->model, &model, error, sizeof(error));

    if (!err)
        err = buckets_fuse(&model, collective_type_bytes(p->dtype), p->bucket, calls,
                           COLLECTIVE_CALLS_MAX, &n);
    if (err && !error[0])
        snprintf(error, sizeof(error),
                 "'%s' makes more than %d buckets of %llu bytes: give a larger --bucket", p->model,
                 COLLECTIVE_CALLS_MAX, (unsigned long long)p->bucket);
    uint64_t count = n ? calls[n - 1].first + calls[n - 1].count : 0;
    if (!err && count > COLLECTIVE_BYTES_MAX / collective_type_bytes(p->dtype)) {
        err = -EOPNOTSUPP;
        snprintf(error, sizeof(error), "'%s' has %.3g GiB of gradients: at most %llu are summed",
                 p->model, (double)count * (double)collective_type_bytes(p->dtype) / (1u << 30),
                 COLLECTIVE_BYTES_MAX >> 30);
    }
    model_release(&model);
    *n_calls = (unsigned)n;
    return err ? point_reason(pt, err == -E2BIG ? -EOPNOTSUPP : err, "%s", error) : 0;
}

int collective_point_of(struct point *pt, unsigned n, struct collective_point *c,
                        struct collective_call *calls, unsigned *n_calls)
{
    const struct collective_params *p = pt->params;
    uint64_t bytes = p->scaling == COLLECTIVE_STRONG ? p->size / n : p->size;
    uint64_t elements = bytes / collective_type_bytes(p->dtype);

    fill(pt, p, c);
    if (p->overlap && collective_batch(c) > 1)
        return point_reason(pt, -EOPNOTSUPP,
                            "--overlap is of single operations: leave --pipelined, --aggregate and "
                            "--graph out");
    if (n % collective_each(c))
        return point_reason(pt, -EOPNOTSUPP, "--per-process %u does not divide %u ranks",
                            collective_each(c), n);
    if (c->root >= n)
        return point_reason(pt, -EOPNOTSUPP, "--root %u: the communicator has ranks 0 to %u",
                            c->root, n - 1);
    if ((uint64_t)c->pipelined * c->aggregated > COLLECTIVE_QUEUED_MAX)
        return point_reason(pt, -EOPNOTSUPP,
                            "--pipelined times --aggregate is %llu: at most %u operations are "
                            "queued",
                            (unsigned long long)c->pipelined * c->aggregated,
                            COLLECTIVE_QUEUED_MAX);
    if (p->way.device && strlen(p->way.device) >= sizeof(c->device))
        return point_reason(pt, -EOPNOTSUPP, "'%.60s...' names more devices than can be recorded",
                            p->way.device);
    if (p->model && p->model[0]) {
        int err = fuse(pt, p, calls, n_calls);
        for (unsigned i = 0; !err && i < *n_calls; i++) {
            uint64_t end = calls[i].first + calls[i].count;
            c->count = end > c->count ? end : c->count;
        }
        return err;
    }
    /* Elements that each of n members has a block of, where the operation has blocks. */
    c->count = collective_has_blocks(p->op) ? elements - elements % n : elements;
    calls[0] = (struct collective_call){.first = 0, .count = c->count};
    *n_calls = 1;
    if (!c->count)
        return point_reason(pt, -EOPNOTSUPP,
                            "%llu bytes are less than one element (%zu bytes) for each of %u ranks",
                            (unsigned long long)bytes, collective_type_bytes(p->dtype), n);
    if (p->in_place && (p->op == COLLECTIVE_ALL_TO_ALL || p->op == COLLECTIVE_SEND_RECEIVE))
        return point_reason(pt, -EOPNOTSUPP, "%s is not done in place: leave --in-place out",
                            collective_ops_names[p->op]);
    return 0;
}

/* ---- Models' gradients ---- */

int buckets_fuse(const struct model *m, size_t element_bytes, uint64_t bucket_bytes,
                 struct collective_call *calls, size_t most, size_t *n)
{
    uint64_t first = 0, count = 0;

    *n = 0;
    if (!element_bytes)
        return -EINVAL;
    for (size_t i = m->n_layers; i-- > 0;) {
        if (m->layers[i].kind != MODEL_TABLE)
            count += m->layers[i].parameters;
        if (!count || (count * element_bytes < bucket_bytes && i > 0))
            continue;
        if (*n == most)
            return -E2BIG;
        calls[(*n)++] = (struct collective_call){first, count};
        first += count;
        count = 0;
    }
    return 0;
}

/* ---- Communicators over nodes ---- */

static unsigned node_of(const struct world *w, unsigned rank)
{
    return world_member(w, rank)->node;
}

/* Ranks in order of (node, local) or of (local, node). Nodes are numbered by first appearance, so
 * rank 0 is first in both. */
void place_members(const struct world *w, enum place_fill fill, unsigned n, unsigned *members)
{
    unsigned nodes = world_nodes(w), size = world_size(w), found = 0;
    unsigned outer = fill == PLACE_FILL_NODE ? nodes : size;

    for (unsigned i = 0; i < outer && found < n; i++)
        for (unsigned rank = 0; fill == PLACE_FILL_NODE && rank < size && found < n; rank++)
            if (node_of(w, rank) == i)
                members[found++] = rank;
    for (unsigned local = 0; fill == PLACE_FILL_RANK && local < size && found < n; local++)
        for (unsigned node = 0; node < nodes && found < n; node++)
            for (unsigned rank = 0; rank < size && found < n; rank++)
                if (node_of(w, rank) == node && world_member(w, rank)->local == local)
                    members[found++] = rank;
}

static bool on_one_machine(const struct world_member *a, const struct world_member *b)
{
    return a->node == b->node || machine_same(a->machine, b->machine);
}

void place_root_first(const unsigned *members, unsigned size, unsigned each, unsigned root,
                      unsigned *out)
{
    for (unsigned i = 0; i < size; i++)
        out[i] = members[i / each];
    unsigned first = out[0];
    out[0] = out[root];
    out[root] = first;
}

unsigned place_machines(const struct world *w, const unsigned *members, unsigned n,
                        unsigned *machine)
{
    unsigned machines = 0;

    for (unsigned i = 0; i < n; i++) {
        unsigned k = 0;
        while (k < i && !on_one_machine(world_member(w, members[k]), world_member(w, members[i])))
            k++;
        machine[i] = k < i ? machine[k] : machines++;
    }
    return machines;
}
