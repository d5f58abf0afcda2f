/* SPDX-License-Identifier: Apache-2.0 */
/* memory on a GPU: the latency of one load that waits for the one before. */
#include <errno.h>
#include <stdlib.h>

#include "benches/memory/arrays.h"
#include "benches/memory/memory_work.h"
#include "core/alloc.h"
#include "core/hw/gpu.h"
#include "core/hw/gpu_kernels.h"
#include "core/row.h"

#define LINE          128u /* of the caches of every NVIDIA GPU: one pointer in each */
#define LINE_WORDS    (LINE / sizeof(uint64_t))
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
    struct gpu_kernel *kernel;
    uint32_t *order; /* the lines in the order of the cycle */
    uint64_t lines, hops;
    uint64_t *chain, *end; /* device memory */
    uint64_t *staging;     /* page-locked */
    bool wrong;            /* a sample ended elsewhere */
};

/* Words are written here, and followed there: addresses are the device's, and
 * never looked behind. */
static const uint64_t *line_at(const struct state *st, uint32_t line)
{
    return st->chain + line * LINE_WORDS;
}

static const uint64_t *place_after(const struct state *st, uint64_t hops)
{
    return line_at(st, st->order[hops % st->lines]);
}

/* Lines from `first` on as they are to be: where the next one is, and random words behind it. */
static void write_lines(const struct state *st, const uint32_t *next, uint64_t first, uint64_t n,
                        uint64_t seed)
{
    uint64_t *at = st->staging;

    for (uint64_t i = 0; i < n; i++, at += LINE_WORDS) {
        at[0] = (uintptr_t)line_at(st, next[first + i]);
        for (uint64_t k = 1; k < LINE_WORDS; k++)
            at[k] = gpu_hash(seed, (first + i) * LINE_WORDS + k);
    }
}

/* Makes the chain here, a piece at a time, and copies it over. */
static int send_chain(struct state *st, const uint32_t *next, uint64_t seed)
{
    const struct gpu_ops *ops = gpu_ops(st->gpu);
    uint64_t most = STAGING_BYTES / LINE;
    int err = 0;

    for (uint64_t first = 0; !err && first < st->lines; first += most) {
        uint64_t n = st->lines - first < most ? st->lines - first : most;
        write_lines(st, next, first, n, seed);
        err = ops->copy(st->timer.stream, st->chain + first * LINE_WORDS, st->staging, n * LINE);
        err = err ? err : ops->stream_wait(st->timer.stream);
    }
    return err;
}

static int build_chain(struct state *st, uint64_t seed)
{
    uint32_t *next = malloc(st->lines * sizeof(*next));
    int err = next ? chase_order(&st->order, st->lines, seed) : -ENOMEM;

    for (uint64_t i = 0; !err && i < st->lines; i++)
        next[st->order[i]] = st->order[i + 1 == st->lines ? 0 : i + 1];
    if (!err)
        err = send_chain(st, next, seed);
    free(next);
    return err;
}

static int queue_chase(void *arg, struct gpu_stream *stream, uint64_t hops)
{
    struct state *st = arg;
    struct gpu_chase_args args = {.start = place_after(st, st->hops), .hops = hops, .end = st->end};

    return gpu_ops(st->gpu)->launch(stream, st->kernel, 1, 1, &args);
}

struct hops {
    struct state *st;
    uint64_t n;
};

static int queue_hops(void *arg, struct gpu_stream *stream, uint64_t i)
{
    struct hops *hops = arg;

    (void)i;
    return queue_chase(hops->st, stream, hops->n);
}

static int setup_device(struct point *pt, struct state *st)
{
    uint64_t bytes = st->lines * LINE;
    int err = gpu_timer_open(&st->timer, st->gpu, pt->watch);

    if (!err)
        err = gpu_ops(st->gpu)->kernel(st->gpu, "chase", &st->kernel);
    if (!err)
        err = gpu_ops(st->gpu)->alloc(st->gpu, GPU_DEVICE, st->lines * LINE, (void **)&st->chain);
    if (!err)
        err = gpu_ops(st->gpu)->alloc(st->gpu, GPU_DEVICE, sizeof(*st->end), (void **)&st->end);
    if (!err)
        err = gpu_ops(st->gpu)->alloc(st->gpu, GPU_PINNED, STAGING_BYTES, (void **)&st->staging);
    if (!err)
        err = build_chain(st, pt->common->seed);
    if (!err && bytes <= gpu_base(st->gpu)->facts.l2_bytes) { /* once round: the cache holds it */
        err = queue_chase(st, st->timer.stream, st->lines);
        err = err ? err : gpu_ops(st->gpu)->stream_wait(st->timer.stream);
    }
    if (!err && st->params->inject == MEMORY_CORRUPT) {
        /* One line that leads back to itself. */
        const uint64_t *at = place_after(st, 0);
        st->staging[0] = (uintptr_t)at;
        err = gpu_ops(st->gpu)->copy(st->timer.stream, (void *)at, st->staging, sizeof(*at));
        err = err ? err : gpu_ops(st->gpu)->stream_wait(st->timer.stream);
    }
    pt->sample_ns = bytes < NEAR_BYTES ? NEAR_SAMPLE_NS : FAR_SAMPLE_NS;
    return err ? point_gpu_failed(pt, st->gpu, err) : 0;
}

static int setup(struct point *pt)
{
    const struct memory_params *p = pt->params;
    struct state *st = pt->state = xcalloc(1, sizeof(*st));

    st->params = p;
    st->lines = p->size / LINE;
    point_series(pt, "latency", "ns", 0);
    int err = gpu_memory_refuse(pt, p);
    if (!err && st->lines > UINT32_MAX)
        err =
            point_reason(pt, -EOPNOTSUPP, "a chain has no more than 2^32 lines of %u bytes", LINE);
    if (!err)
        err = gpu_memory_open(pt, p, st->lines * LINE, &st->gpu);
    return err ? err : setup_device(pt, st);
}

static int sample(struct point *pt, uint64_t inner, uint64_t *ns)
{
    struct state *st = pt->state;
    const struct gpu_ops *ops = gpu_ops(st->gpu);
    struct hops hops = {st, inner};
    int err = gpu_timer_run(&st->timer, queue_hops, &hops, 1, 1, ns);

    if (!err)
        err = ops->copy(st->timer.stream, st->staging, st->end, sizeof(*st->end));
    if (!err)
        err = ops->stream_wait(st->timer.stream);
    if (err)
        return point_gpu_failed(pt, st->gpu, err);
    st->hops += inner;
    if (st->staging[0] != (uintptr_t)place_after(st, st->hops))
        st->wrong = true;
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
                 (unsigned long long)(facts->l2_bytes >> 10), LINE);
    return 0;
}

static void teardown(struct point *pt)
{
    struct state *st = pt->state;

    if (!st)
        return;
    if (st->gpu) {
        const struct gpu_ops *ops = gpu_ops(st->gpu);
        ops->free(st->gpu, GPU_PINNED, st->staging);
        ops->free(st->gpu, GPU_DEVICE, st->end);
        ops->free(st->gpu, GPU_DEVICE, st->chain);
    }
    gpu_timer_close(&st->timer);
    free(st->order);
    free(st);
}

const struct device_work gpu_latency_work = {
    .setup = setup,
    .sample = sample,
    .check = check,
    .evidence = evidence,
    .teardown = teardown,
};
