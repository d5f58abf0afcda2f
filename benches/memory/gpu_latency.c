/* SPDX-License-Identifier: Apache-2.0 */
/* memory on a GPU: the latency of one load that waits for the one before. */
#include <errno.h>
#include <stdlib.h>

#include "benches/memory/memory_work.h"
#include "core/alloc.h"
#include "core/hw/gpu_chain.h"
#include "core/row.h"

#define STAGING_BYTES ((size_t)1 << 20)

/* The first-level cache is empty when a kernel starts, so that a sample's first time round the
 * chain is served by the next level: 256 lines at 200 ns are 0.3 % of this. */
#define NEAR_SAMPLE_NS 20000000u
#define NEAR_BYTES     ((uint64_t)512 << 10)
#define FAR_SAMPLE_NS  2000000u

struct state {
    const struct memory_params *params;
    struct gpu *gpu;
    struct gpu_timer timer;
    struct gpu_chain chain;
    uint64_t *memory;  /* of the chain, the GPU's */
    uint64_t *staging; /* page-locked */
    bool wrong;        /* a sample ended elsewhere */
};

static int setup_device(struct point *pt, struct state *st, uint64_t lines)
{
    const struct gpu_ops *ops = gpu_ops(st->gpu);
    uint64_t bytes = lines * GPU_CHAIN_LINE, seed = pt->common->seed;
    int err = gpu_timer_open(&st->timer, st->gpu, pt->watch);

    if (!err)
        err = ops->alloc(st->gpu, GPU_DEVICE, bytes, (void **)&st->memory);
    if (!err)
        err = ops->alloc(st->gpu, GPU_PINNED, STAGING_BYTES, (void **)&st->staging);
    if (!err)
        err = gpu_chain_open(&st->chain, st->gpu, "chase", st->memory, lines, seed);
    if (!err)
        err = gpu_chain_write(&st->chain, st->timer.stream, st->staging, STAGING_BYTES, seed);
    if (!err && bytes <= gpu_base(st->gpu)->facts.l2_bytes) { /* once round: the cache holds it */
        err = gpu_chain_queue(&st->chain, st->timer.stream, lines);
        err = err ? err : ops->stream_wait(st->timer.stream);
    }
    if (!err && st->params->inject == MEMORY_CORRUPT) {
        /* One line that leads back to itself. */
        st->staging[0] = gpu_chain_place(&st->chain, 0);
        err = ops->copy(st->timer.stream, (void *)(uintptr_t)st->staging[0], st->staging,
                        sizeof(*st->staging));
        err = err ? err : ops->stream_wait(st->timer.stream);
    }
    pt->sample_ns = bytes < NEAR_BYTES ? NEAR_SAMPLE_NS : FAR_SAMPLE_NS;
    return err ? point_gpu_failed(pt, st->gpu, err) : 0;
}

static int setup(struct point *pt)
{
    const struct memory_params *p = pt->params;
    struct state *st = pt->state = xcalloc(1, sizeof(*st));

    uint64_t lines = p->size / GPU_CHAIN_LINE;

    st->params = p;
    point_series(pt, "latency", "ns", 0);
    int err = 0;
    if (lines > UINT32_MAX)
        err = point_reason(pt, -EOPNOTSUPP, "a chain has no more than 2^32 lines of %u bytes",
                           GPU_CHAIN_LINE);
    if (!err)
        err = gpu_memory_open(pt, p, lines * GPU_CHAIN_LINE, &st->gpu);
    return err ? err : setup_device(pt, st, lines);
}

static int sample(struct point *pt, uint64_t inner, uint64_t *ns)
{
    struct state *st = pt->state;
    uint64_t end = 0;
    int err = gpu_chain_run(&st->chain, &st->timer, inner, ns);

    if (!err)
        err = gpu_chain_end(&st->chain, st->timer.stream, &end);
    if (err)
        return point_gpu_failed(pt, st->gpu, err);
    st->wrong |= end != gpu_chain_place(&st->chain, st->chain.loads);
    return 0;
}

static int check(struct point *pt)
{
    struct state *st = pt->state;
    char text[160];

    if (*gpu_timer_disagreement(&st->timer, text, sizeof(text)))
        point_reason(pt, 0, "%s", text);
    if (st->wrong)
        return point_reason(pt, -EBADMSG, "wrong data: the chain of pointers leads elsewhere");
    return 0;
}

static int evidence(struct point *pt)
{
    struct state *st = pt->state;
    const struct gpu_facts *facts = &gpu_base(st->gpu)->facts;

    evidence_add(pt->evidence, sizeof(pt->evidence),
                 "%s, L2 of %llu KiB, one thread, a pointer in every %u bytes", facts->name,
                 (unsigned long long)(facts->l2_bytes >> 10), GPU_CHAIN_LINE);
    return 0;
}

static void teardown(struct point *pt)
{
    struct state *st = pt->state;

    if (!st)
        return;
    if (st->gpu) {
        const struct gpu_ops *ops = gpu_ops(st->gpu);
        gpu_chain_close(&st->chain);
        ops->free(st->gpu, GPU_PINNED, st->staging);
        ops->free(st->gpu, GPU_DEVICE, st->memory);
    }
    gpu_timer_close(&st->timer);
    free(st);
}

const struct device_work gpu_latency_work = {
    .setup = setup,
    .sample = sample,
    .check = check,
    .evidence = evidence,
    .teardown = teardown,
};
