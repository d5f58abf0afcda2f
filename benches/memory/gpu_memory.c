/* SPDX-License-Identifier: Apache-2.0 */
/* memory on a GPU: bandwidth by its own kernels, and by the driver's copy and set. */
#include "benches/memory/gpu_memory_run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/evidence.h"

/* A pass over a set that L2 holds takes less than a launch, so that all passes of a sample are inside
 * one; and samples are longer, since the faster of two kinds of launch must be long enough, too. */
#define L2_SAMPLE_NS 2000000u
#define VARIANTS_MAX 2

struct state {
    struct gpu_passes passes;
    struct gpu_variant variants[VARIANTS_MAX];
    unsigned n_variants;
    uint64_t runs;
    uint64_t pass_sum; /* what a pass of KERNEL_READ adds */
    bool wrong;        /* a sample's sum was not right */
};

/* A series for each kind of launch, with its columns. */
static void list_variants(struct point *pt, struct state *st)
{
    const struct memory_params *p = st->passes.params;
    int first = p->launch == MEMORY_PLAIN ? MEMORY_PLAIN : MEMORY_TUNED;
    int last = p->launch == MEMORY_TUNED ? MEMORY_TUNED : MEMORY_PLAIN;

    if (p->engine == MEMORY_DRIVER)
        last = first;
    for (int launch = first; launch <= last; launch++) {
        struct gpu_variant *v = &st->variants[st->n_variants];
        struct series *s = point_series(pt, "bandwidth", "GB/s", 0);
        v->name = p->engine == MEMORY_DRIVER ? "" : memory_launches[launch];
        st->n_variants++;
        s->set[0].column = "launch";
        s->set[0].value = v->name;
        s->set[1].column = "shape";
        s->set[1].value = v->text;
    }
}

static int setup_device(struct point *pt, struct state *st)
{
    const struct memory_params *p = st->passes.params;
    const struct gpu_facts *facts = &gpu_base(st->passes.gpu)->facts;
    uint64_t set_bytes =
        gpu_arrays_bytes((enum kernel_op)p->op, p->size) * kernel_arrays((enum kernel_op)p->op);
    int type = p->engine == MEMORY_DRIVER ? KERNEL_F32 : p->dtype; /* it sets words of 32 bits */
    int err = gpu_timer_open(&st->passes.timer, st->passes.gpu, pt->watch);

    st->passes.inside = p->engine == MEMORY_KERNEL && set_bytes <= facts->l2_bytes;
    pt->sample_ns = st->passes.inside ? L2_SAMPLE_NS : pt->sample_ns;
    if (!err)
        err = gpu_arrays_open(&st->passes.arrays, st->passes.gpu, st->passes.timer.stream,
                              (enum kernel_op)p->op, (enum kernel_type)type, p->size,
                              pt->common->seed);
    for (unsigned i = 0; !err && i < st->n_variants; i++) {
        err = gpu_variant_choose(pt, &st->passes, &st->variants[i]);
        pt->series[i].quantity = (double)set_bytes;
    }
    if (!err)
        err = gpu_arrays_poison(&st->passes.arrays);
    if (!err && !kernel_stores((enum kernel_op)p->op))
        st->pass_sum = gpu_arrays_sum(&st->passes.arrays);
    if (!err && p->inject == MEMORY_CORRUPT && !kernel_stores((enum kernel_op)p->op))
        err = gpu_arrays_spoil(&st->passes.arrays);
    return err ? point_gpu_failed(pt, st->passes.gpu, err) : 0;
}

static int setup(struct point *pt)
{
    const struct memory_params *p = pt->params;
    struct state *st = pt->state = calloc(1, sizeof(*st));
    enum kernel_op op = (enum kernel_op)p->op;

    if (!st)
        return -ENOMEM;
    st->passes.params = p;
    list_variants(pt, st);
    point_column(pt, "bytes_rule", "stream");
    int err = gpu_memory_refuse(pt, p);
    uint64_t array_bytes = gpu_arrays_bytes(op, p->size);
    if (!err && !array_bytes)
        err = point_reason(pt, -EOPNOTSUPP, "the size is less than %u bytes for each array",
                           GPU_ARRAYS_LINE);
    if (!err)
        err = gpu_memory_open(pt, p, array_bytes * kernel_arrays(op), &st->passes.gpu);
    return err ? err : setup_device(pt, st);
}

/* Each sample's sum of its own: errors of several cannot make up for one another. */
static int check_sum(struct state *st, uint64_t passes)
{
    uint64_t sum = 0;
    int err = gpu_arrays_read_sum(&st->passes.arrays, &sum);

    if (!err && sum != st->pass_sum * passes)
        st->wrong = true;
    return err;
}

/* A scalar of its own for every run: what the check finds was written by the last one. */
static int sample_variant(struct state *st, struct gpu_variant *v, uint64_t inner, uint64_t *ns)
{
    bool reads = !kernel_stores((enum kernel_op)st->passes.params->op);
    int err = reads ? gpu_arrays_clear_sum(&st->passes.arrays) : 0;

    v->scalar = (double)(3 + st->runs++ % 5);
    if (!err)
        err = gpu_variant_run(&st->passes, v, inner, ns);
    if (!err && reads)
        err = check_sum(st, inner);
    return err;
}

static int sample(struct point *pt, uint64_t inner, uint64_t *ns)
{
    struct state *st = pt->state;
    int err = 0;

    for (unsigned i = 0; !err && i < st->n_variants; i++)
        err = sample_variant(st, &st->variants[i], inner, &ns[i]);
    return err ? point_gpu_failed(pt, st->passes.gpu, err) : 0;
}

static int explain(struct point *pt, struct state *st, int err, const char *error)
{
    if (err == -EBADMSG)
        return point_reason(pt, err, "%s", error);
    return err ? point_gpu_failed(pt, st->passes.gpu, err) : 0;
}

/* One more run, over what is no number: what is right afterwards was written by it. */
static int check_variant(struct state *st, struct gpu_variant *v, char *error, size_t len)
{
    uint64_t ns;
    int err = gpu_arrays_poison(&st->passes.arrays);

    if (!err)
        err = gpu_variant_run(&st->passes, v, 1, &ns);
    return err ? err : gpu_arrays_check(&st->passes.arrays, v->scalar, error, len);
}

static int check(struct point *pt)
{
    struct state *st = pt->state;
    char error[160] = "", text[160];
    int err = 0;

    if (*gpu_timer_disagreement(&st->passes.timer, text, sizeof(text)))
        point_reason(pt, 0, "%s", text);
    if (!kernel_stores((enum kernel_op)st->passes.params->op))
        return explain(pt, st, st->wrong ? -EBADMSG : 0,
                       "wrong data: the sum of what was read is not that of what was written");
    if (st->passes.params->inject == MEMORY_CORRUPT)
        err = gpu_arrays_spoil(&st->passes.arrays);
    if (!err) /* as the last sample left it */
        err = gpu_arrays_check(&st->passes.arrays, st->variants[st->n_variants - 1].scalar, error,
                               sizeof(error));
    for (unsigned i = 0; !err && i < st->n_variants; i++)
        err = check_variant(st, &st->variants[i], error, sizeof(error));
    return explain(pt, st, err, error);
}

static int evidence(struct point *pt)
{
    struct state *st = pt->state;
    const struct gpu_facts *facts = &gpu_base(st->passes.gpu)->facts;

    evidence_add(pt->evidence, sizeof(pt->evidence), "%s, %u SMs, L2 of %" PRIu64 " KiB",
                 facts->name, facts->sms, facts->l2_bytes >> 10);
    if (kernel_stores((enum kernel_op)st->passes.params->op))
        evidence_add(pt->evidence, sizeof(pt->evidence), "%.3g %% of the result compared",
                     100.0 * (double)gpu_arrays_looked_at(&st->passes.arrays) /
                         (double)st->passes.arrays.bytes);
    else
        evidence_add(pt->evidence, sizeof(pt->evidence), "the sum of every sample compared");
    return 0;
}

static void teardown(struct point *pt)
{
    struct state *st = pt->state;

    if (!st)
        return;
    gpu_arrays_close(&st->passes.arrays);
    gpu_timer_close(&st->passes.timer);
    free(st);
}

static const struct device_work gpu_bandwidth_work = {
    .setup = setup,
    .sample = sample,
    .check = check,
    .evidence = evidence,
    .teardown = teardown,
};

/* The other hooks are never asked for: setup hands the point on. */
static int setup_either(struct point *pt)
{
    const struct memory_params *p = pt->params;

    return work_setup(pt, p->op == MEMORY_LATENCY ? &gpu_latency_work : &gpu_bandwidth_work);
}

const struct device_work gpu_memory_work = {.setup = setup_either};
