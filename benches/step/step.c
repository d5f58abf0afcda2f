/* SPDX-License-Identifier: Apache-2.0 */
/* step: how long a step of training takes on 1 to N ranks, without a framework: the compute of a
 * model's layers, and the communication of the ways to work in parallel.
 *
 * Timed: sample() -> session_run() -> step() in run.c, on every rank: its lanes do the operations of
 * its plan (ways.c writes it), from a barrier to the end of the last one. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benches/step/products.h"
#include "benches/step/run.h"
#include "benches/step/work.h"
#include "core/alloc.h"
#include "core/program.h"

/* ---- The step that options mean ---- */

static double flop_of(const struct step_layer *layers, unsigned n)
{
    double flop = 0;

    for (unsigned i = 0; i < n; i++)
        flop += layers[i].forward_flop + layers[i].backward_flop;
    return flop;
}

static void fill_spec(const struct step_params *p, struct step_work *w, unsigned n_layers)
{
    struct step_spec *s = &w->spec;

    *s = (struct step_spec){.ranks = w->n,
                            .tp = (uint32_t)p->tp,
                            .pp = (uint32_t)p->pp,
                            .ep = (uint32_t)p->ep,
                            .zero = (uint32_t)p->zero,
                            .prefetch = (uint32_t)p->prefetch,
                            .order = (uint32_t)p->order,
                            .micro = (uint32_t)p->micro,
                            .overlap = (uint32_t)p->overlap,
                            .compute = (uint32_t)p->compute,
                            .update = (uint32_t)p->update,
                            .ns_per_byte = p->update ? 1 / p->memory_rate : 0,
                            .type = (uint32_t)p->dtype,
                            .n_layers = n_layers,
                            .slow_rank = w->n - 1,
                            .slow_times = p->slow,
                            .batch = p->batch,
                            .bucket_bytes = p->bucket};
    double flop = flop_of(w->layers, n_layers) * (double)p->batch;
    s->ns_per_flop = p->compute_ns ? (double)p->compute_ns / flop : 1e-3 / p->tflops;
    w->passes_ns = flop * s->ns_per_flop;
}

/* The model as layers, and what its numbers mean for n ranks. */
static int make_spec(struct point *pt, struct step_work *w)
{
    const struct step_params *p = pt->params;
    struct model model = {0};
    char error[512] = "";
    int err = model_load(p->model, &model, error, sizeof(error));

    free(w->layers);
    w->layers = NULL;
    if (!err) {
        w->layers = xcalloc(model.n_layers, sizeof(*w->layers));
        step_layers(&model, p->sequence ? p->sequence : model.sequence, w->layers);
        fill_spec(p, w, (unsigned)model.n_layers);
    }
    if (!err && !(p->memory_rate > 0 && p->tflops > 0)) {
        err = -EINVAL;
        snprintf(error, sizeof(error), "--%s is to be more than 0",
                 p->tflops > 0 ? "memory-rate" : "tflops");
    }
    if (!err && !(flop_of(w->layers, w->spec.n_layers) > 0)) {
        err = -EOPNOTSUPP;
        snprintf(error, sizeof(error), "'%s' has no operations to compute", p->model);
    }
    model_release(&model);
    if (!err)
        err = step_supports(&w->spec, w->layers, error, sizeof(error));
    return err ? point_reason(pt, err, "%s", error[0] ? error : strerror(-err)) : 0;
}

/* The longest compute of a rank, the shortest step that it allows, and how many bytes it may send: of all ranks, for patience. */
static int weigh(struct point *pt, struct step_work *w, double *bytes)
{
    struct step_stated all[WORLD_RANKS_MAX] = {{0}};
    struct step_plan plan;
    int err = 0;

    *bytes = w->longest_ns = w->update_ns = w->update_bytes = 0;
    for (unsigned rank = 0; rank < w->n && !err; rank++) {
        struct step_stated *a = &all[rank];
        err = step_plan_make(&plan, &w->spec, w->layers, rank);
        *a = step_stated(&plan, &w->spec, rank);
        w->longest_ns = fmax(w->longest_ns, a->forward_ns + a->backward_ns + a->update_ns);
        w->update_ns = fmax(w->update_ns, a->update_ns);
        for (size_t i = 0; i < plan.n_ops; i++)
            w->update_bytes = fmax(w->update_bytes, plan.ops[i].bytes);
        *bytes = fmax(*bytes, step_bytes(&plan, &w->spec));
        step_plan_release(&plan);
    }
    w->least_ns = err ? 0 : step_least_ns(&w->spec, all);
    if (err == -E2BIG)
        return point_reason(pt, -EOPNOTSUPP, "more than %d buckets: give a larger --bucket",
                            COLLECTIVE_CALLS_MAX);
    return err ? point_reason(pt, err, "%s", strerror(-err)) : 0;
}

static int begin_session(struct point *pt, struct step_work *w)
{
    const struct step_params *p = pt->params;
    struct collective_point c = {.op = COLLECTIVE_ALLREDUCE,
                                 .type = (uint32_t)p->dtype,
                                 .inject = (uint32_t)p->inject,
                                 .in_place = true,
                                 .seed = pt->common->seed};
    double bytes;
    int err = weigh(pt, w, &bytes);

    if (err)
        return err;
    /* A backend that waits in a library is given time by the bytes of its call. */
    size_t each = collective_type_bytes((enum collective_type)p->dtype);
    double all = fmin(bytes + (w->longest_ns + w->update_ns) * 0.01, (double)COLLECTIVE_BYTES_MAX);
    struct collective_call call = {0, (uint64_t)all / each / 2 + 1};
    c.count = call.count;
    way_fill(&p->way, &c);
    w->backend = collective_names[p->way.backend];
    struct talk_bytes b = {0};
    err = talk_add(&b, &w->spec, sizeof(w->spec));
    if (!err)
        err = talk_add(&b, w->layers, w->spec.n_layers * sizeof(*w->layers));
    if (!err)
        err = session_extra(w->ranks.session, b.bytes, b.len);
    talk_free(&b);
    if (err)
        return point_reason(pt, err, "%s", strerror(-err));
    err = session_begin(w->ranks.session, &c, w->members, w->n, &call, 1);
    return err ? point_reason(pt, err, "%s", session_error(w->ranks.session)) : 0;
}

static unsigned nodes_of(const struct step_work *w)
{
    bool seen[WORLD_RANKS_MAX] = {false};
    unsigned nodes = 0;

    for (unsigned i = 0; i < w->n; i++) {
        unsigned node = world_member(w->ranks.world, w->members[i])->node;
        nodes += !seen[node];
        seen[node] = true;
    }
    return nodes;
}

/* ---- Hooks ---- */

/* What multiplies, where compute is real. */
static int name_kernel(struct point *pt, const struct step_work *w)
{
    const struct step_params *p = pt->params;
    char kernel[96], why[GEMM_WHY_BYTES] = "";
    const struct collective_ops *by = collective_find(collective_names[p->way.backend]);

    if (w->spec.compute != STEP_PRODUCT || by->device_memory) /* its ranks open their GPUs */
        return 0;
    int err = products_library((enum collective_type)w->spec.type, kernel, sizeof(kernel), why);
    if (err)
        return point_reason(pt, err, "%s", why);
    point_column(pt, "kernel", "%s", kernel);
    return 0;
}

static int possible(struct point *pt)
{
    const struct step_params *p = pt->params;
    struct step_work *w = xcalloc(1, sizeof(*w));

    w->n = (unsigned)p->ranks;
    int err = make_spec(pt, w);
    free(w->layers);
    free(w);
    return err ? err : ranks_possible(pt, &p->group, p->ranks);
}

static int setup(struct point *pt)
{
    const struct step_params *p = pt->params;
    struct step_work *w = pt->bench_state;

    w->begun = false;
    w->samples = 0;
    w->shares.n = 0;
    w->n = (unsigned)p->ranks;
    free(w->waits_ms);
    w->waits_ms = xcalloc(w->n, STEP_SAMPLES * sizeof(*w->waits_ms));
    pt->sample_ns = 0; /* a step each */
    int err = raw_begin(w, p->raw);
    if (err)
        return point_reason(pt, err, "'%s' cannot be written: %s", p->raw, strerror(-err));
    if (p->compute == STEP_TIMED) {
        pt->origin = "simulated";
        point_column(pt, "simulated", "compute");
    }
    point_series(pt, "step_time", "ms", 0);
    err = make_spec(pt, w);
    if (err)
        return err;
    err = name_kernel(pt, w);
    if (err)
        return err;
    point_series(pt, "throughput", "samples/s", (double)(p->batch * step_dp(&w->spec)));
    point_column(pt, "dp", "%u", step_dp(&w->spec));
    w->ranks.service.find = step_find;
    if (!point_topo(pt))
        return -EIO;
    err = ranks_need(pt, &w->ranks, &p->group, false);
    if (err)
        return err;
    if (w->n > world_size(w->ranks.world))
        return point_reason(pt, -EOPNOTSUPP, "a job of %u ranks, but there are %u: give --np %u",
                            w->n, world_size(w->ranks.world), w->n);
    for (unsigned i = 0; i < w->n; i++)
        w->members[i] = i;
    point_column(pt, "nodes", "%u", nodes_of(w));
    return begin_session(pt, w);
}

static int begin(struct point *pt)
{
    struct step_work *w = pt->bench_state;

    int err = session_mark(w->ranks.session);

    w->begun = true;
    return err ? point_reason(pt, err, "%s", session_error(w->ranks.session)) : 0;
}

static int sample(struct point *pt, uint64_t inner, uint64_t *ns)
{
    struct step_work *w = pt->bench_state;
    struct session_run run = {.operations = inner};
    const struct collective_times *times;
    uint64_t slowest = 0;
    uint64_t alone_ns = 0;
    bool timed = w->spec.compute == STEP_TIMED;
    int err = timed ? 0 : session_overlap_alone(w->ranks.session, 0, &alone_ns);

    if (!err)
        err = session_run(w->ranks.session, &run, &times, &slowest);
    if (err)
        return point_reason(pt, err, "%s", session_error(w->ranks.session));
    for (size_t i = 0; i < pt->n_series; i++)
        ns[i] = slowest;
    if (w->begun)
        values_count(w, times, slowest, alone_ns);
    return 0;
}

static int check(struct point *pt)
{
    struct step_work *w = pt->bench_state;
    int err = session_end(w->ranks.session);

    values_finish(pt, w);
    return err ? point_reason(pt, err, "%s", session_error(w->ranks.session)) : 0;
}

static void close_bench(struct point *ctx)
{
    struct step_work *w = ctx->bench_state;

    ranks_leave(&w->ranks);
    if (raw_end(w))
        fprintf(stderr, "plumb-step: what --raw wrote is not complete\n");
    free(w->layers);
    free(w->waits_ms);
}

static int instead(struct opts *o, const struct bench_common *common, const volatile int *cancel)
{
    struct step_params p = {0};

    (void)common;
    if (opts_apply(o, o->tables[0], NULL, &p))
        return EXIT_USAGE;
    struct session_service service = {.device = p.way.device, .find = step_find};
    return ranks_instead(o, &p.group, &service, cancel);
}

/* A sweep has what can be. */
static bool wanted(struct point *pt)
{
    const struct step_params *p = pt->params;
    struct step_work *w = pt->bench_state;

    w->n = (unsigned)p->ranks;
    bool can = !make_spec(pt, w);
    pt->reason[0] = 0;
    return can;
}

/* ---- Options ---- */

#define AT(field)    .offset = offsetof(struct step_params, field)
#define GROUP(field) .offset = offsetof(struct step_params, group.field)
#define WAY(field)   .offset = offsetof(struct step_params, way.field)

static const struct opt_scope by_zero = {"zero=3", "--zero 3"};
static const struct opt_scope by_time = {"compute=timed", "--compute timed"};
static const struct opt_scope by_rate = {"compute=timed update!=none",
                                         "--compute timed with --update"};
static const struct opt_scope by_pipe = {"pp!=1", "a pipeline, --pp 2 or more"};

static const char *const overlaps[] = {"none", "backward", NULL};
static const char *const orders[] = {"gpipe", "1f1b", NULL};
static const char *const computes[] = {"timed", "product", NULL};
static const char *const injects[] = {"none", "corrupt", "elsewhere", "absent", NULL};

static const struct opt options[] = {
    RANKS_OPTIONS(GROUP),
    WAY_OPTIONS(WAY),
    {.name = "model",
     OPT_OF(OPT_STRING, OPT_SWEPT, model, "resnet50"),
     .arg = "NAME",
     .help =
         "the model: a file of configs/models (resnet50, bert-large, llama3-8b, ...), or a path"},
    {.name = "ranks",
     OPT_NUMBER(OPT_U64, OPT_SWEPT | OPT_SPLITS, ranks, "0", 0, WORLD_RANKS_MAX),
     .help = "ranks of the job; 0: 1, 2, 4, ... and all ranks, in one launch"},
    {.name = "batch",
     OPT_NUMBER(OPT_U64, OPT_SWEPT, batch, "32", 1, 1u << 24),
     .help = "samples of a data-parallel rank in a step"},
    {.name = "seq",
     OPT_NUMBER(OPT_U64, OPT_SWEPT, sequence, "0", 0, 1u << 24),
     .help = "tokens of a sequence; 0: the model's"},
    {.name = "dtype",
     .letter = 'd',
     OPT_WORD(OPT_SWEPT, dtype, "f32", collective_type_names),
     .help = "type of gradients, parameters and activations on their way"},
    {.name = "bucket",
     OPT_NUMBER(OPT_SIZE, OPT_SWEPT, bucket, "25M", 1, 1ull << 34),
     .help = "gradients are summed in buckets of this size; --zero 3 gathers groups of this size"},
    {.name = "overlap",
     OPT_WORD(OPT_SWEPT, overlap, "backward", overlaps),
     .help = "backward: a bucket is summed while the backward pass goes on; none: behind it"},
    {.name = "zero",
     OPT_NUMBER(OPT_U64, OPT_SWEPT, zero, "0", 0, 3),
     .help = "ZeRO stage: 1, 2: gradients are scattered, parameters gathered; 3: parameters are "
             "gathered for each pass"},
    {.name = "prefetch",
     OPT_NUMBER(OPT_U64, OPT_SWEPT | OPT_SWEEP, prefetch, "1", 0, 64),
     .scope = &by_zero,
     .help = "groups of layers whose parameters are gathered ahead"},
    {.name = "tp",
     OPT_NUMBER(OPT_U64, OPT_SWEPT, tp, "1", 1, WORLD_RANKS_MAX),
     .help = "tensor-parallel ranks: layers are split, activations summed"},
    {.name = "pp",
     OPT_NUMBER(OPT_U64, OPT_SWEPT, pp, "1", 1, WORLD_RANKS_MAX),
     .help = "stages of the pipeline"},
    {.name = "schedule",
     OPT_WORD(OPT_SWEPT | OPT_SWEEP, order, "1f1b", orders),
     .scope = &by_pipe,
     .help = "order of a stage's passes: all forward passes first, or one forward, one backward"},
    {.name = "micro-batches",
     OPT_NUMBER(OPT_U64, OPT_SWEPT, micro, "1", 1, 4096),
     .help = "parts of the batch, one after another; gradients are summed after the last"},
    {.name = "ep",
     OPT_NUMBER(OPT_U64, OPT_SWEPT, ep, "1", 1, WORLD_RANKS_MAX),
     .help = "expert-parallel ranks, of the data-parallel ones: tokens go to their experts' rank"},
    {.name = "compute",
     OPT_WORD(OPT_SWEPT, compute, "timed", computes),
     .help = "timed: a wait of the stated length; product: the layers' products, by a matrix "
             "library on one core of each rank, or on its GPU (nccl, mpi-cuda)"},
    {.name = "tflops",
     OPT_OF(OPT_DOUBLE, OPT_SWEPT | OPT_SWEEP, tflops, "10"),
     .scope = &by_time,
     .help = "a rank waits as long as its compute takes at this rate, in TFLOP/s"},
    {.name = "compute-time",
     OPT_OF(OPT_DURATION, OPT_SWEPT | OPT_SWEEP, compute_ns, "0"),
     .scope = &by_time,
     .help = "the same by time: both passes of the whole model over the batch, on one rank; 0: by "
             "--tflops"},
    {.name = "update",
     OPT_WORD(OPT_SWEPT, update, "none", model_update_names),
     .help = "the optimizer, which updates the parameters behind the sums: none takes no time"},
    {.name = "memory-rate",
     OPT_OF(OPT_DOUBLE, OPT_SWEPT | OPT_SWEEP, memory_rate, "100"),
     .scope = &by_rate,
     .help = "a rank waits as long as its update takes at this rate of memory, in GB/s"},
    WAY_OPTIONS_CUT(WAY),
    WAY_OPTIONS_WIRE(WAY),
    {.name = "slow",
     OPT_OF(OPT_DOUBLE, OPT_HIDDEN, slow, "1"),
     .help = "for tests: the last rank computes so many times as long"},
    {.name = "raw",
     OPT_OF(OPT_STRING, OPT_HIDDEN, raw, ""),
     .help = "for tests: each rank's times of each sample go to this file"},
    {.name = "inject",
     OPT_WORD(OPT_HIDDEN, inject, "none", injects),
     .help = "for tests: spoil the data, claim another path, leave a rank out; all must be found"},
    {.name = NULL},
};

const struct bench bench = {
    .name = "step",
    .help = "one step of training, over 1 to N processes, without a framework",
    .about = "The compute of a model's layers, and the communication between ranks that work in\n"
             "parallel: data (buckets of gradients), ZeRO, tensor, pipeline, expert. On one\n"
             "machine: `plumb-step --np 4`; across machines as `plumb allreduce`.\n"
             "\n"
             "`step_time` is that of the slowest rank, from a barrier to the end of its last\n"
             "operation. Compute is a wait of the stated length (--tflops, --compute-time), and\n"
             "rows say origin=simulated; or it is real (--compute product). Communication is\n"
             "real in any case, and its data are checked.\n"
             "docs/step.md has the formulas and the assumptions.",
    .needs = "group",
    .options = options,
    .params_size = sizeof(struct step_params),
    .rows = &bench_rows,
    .defaults = ranks_defaults,
    .instead = instead,
    .wanted = wanted,
    .bench_state_size = sizeof(struct step_work),
    .close = close_bench,
    .possible = possible,
    .setup = setup,
    .begin = begin,
    .sample = sample,
    .check = check,
    .evidence = ranks_evidence,
    .teardown = ranks_teardown,
    .backends = way_backends,
};
