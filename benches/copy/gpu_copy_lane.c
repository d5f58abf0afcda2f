/* SPDX-License-Identifier: Apache-2.0 */
/* What copy times on GPUs: copies of one message by one GPU (queue_copy, queue_kernel, queue_pages),
 * and chains of loads (queue_chase): see gpu_copy.h. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benches/copy/gpu_copy.h"
#include "core/alloc.h"
#include "core/clock.h"
#include "core/hw/gpu_kernels.h"
#include "core/hw/gpu_watch.h"

/* ---- Lanes of copies ---- */

#define BLOCK 256u
#define STEP  16u

static const struct gpu_ops *ops_of(const struct gpu_copy_lane *l)
{
    return gpu_ops(l->gpu);
}

/* As many threads as the GPU holds, in whole blocks, and no more than there is to copy: a lane that
 * took all the room would keep another lane's kernel out until it is done. */
static int shape_kernel(struct gpu_copy_lane *l, unsigned share)
{
    unsigned per_sm = 0, each = l->bytes % STEP ? 1 : STEP;
    int err = ops_of(l)->kernel(l->gpu, l->kernel_name, &l->kernel);

    if (!err)
        err = ops_of(l)->occupancy(l->kernel, BLOCK, &per_sm);
    if (err)
        return err;
    uint64_t room = (uint64_t)per_sm * gpu_base(l->gpu)->facts.sms / share;
    uint64_t wanted = (l->bytes + (uint64_t)BLOCK * each - 1) / ((uint64_t)BLOCK * each);
    l->block = BLOCK;
    room = room ? room : 1;
    l->grid = (unsigned)(wanted < room ? wanted : room);
    return 0;
}

int gpu_copy_lane_open(struct gpu_copy_lane *l, unsigned share, struct gpu_watch *watch)
{
    int err = gpu_timer_open(&l->timer, l->gpu, watch);

    if (err || l->how == GPU_COPY_ENGINE || l->how == GPU_COPY_MIGRATE)
        return err;
    l->kernel_name = l->spread ? "multicast16" : l->bytes % STEP ? "copy1" : "copy16";
    return shape_kernel(l, share);
}

void gpu_copy_lane_close(struct gpu_copy_lane *l)
{
    if (l->timer.gpu)
        gpu_timer_close(&l->timer);
    gpu_copy_memory_free(&l->src);
    gpu_copy_memory_free(&l->dst);
    *l = (struct gpu_copy_lane){0};
}

/* Managed pages are where the copies begin: at the host, unless they are to go there. */
static int bring_back(struct gpu_copy_lane *l)
{
    int err = ops_of(l)->prefetch(l->timer.stream, l->src.at, l->src.rounded, !l->to_device);

    return err ? err : ops_of(l)->stream_wait(l->timer.stream);
}

int gpu_copy_lane_fill(struct gpu_copy_lane *l, uint64_t seed)
{
    bool by_device = l->how == GPU_COPY_MIGRATE && !l->to_device;
    int err = gpu_copy_memory_fill(&l->src, seed, by_device);

    if (!err && l->spread)
        err = gpu_copy_spread_poison(l->spread);
    else if (!err && l->dst.at)
        err = gpu_copy_memory_poison(&l->dst);
    return err;
}

int gpu_copy_lane_check(struct gpu_copy_lane *l, uint64_t seed, size_t *wrong_at)
{
    if (l->how == GPU_COPY_MIGRATE)
        return gpu_copy_memory_check(&l->src, seed, l->to_device, wrong_at);
    if (l->spread)
        return gpu_copy_spread_check(l->spread, seed, wrong_at);
    return gpu_copy_memory_check(&l->dst, seed, false, wrong_at);
}

static int queue_copy(void *arg, struct gpu_stream *stream, uint64_t i)
{
    const struct gpu_copy_lane *l = arg;

    (void)i;
    return ops_of(l)->copy(stream, l->dst.at, l->src.at, l->bytes);
}

static int queue_kernel(void *arg, struct gpu_stream *stream, uint64_t i)
{
    const struct gpu_copy_lane *l = arg;
    struct gpu_copy_args args = {.dst = l->spread ? l->spread->all : l->dst.at,
                                 .src = l->src.at,
                                 .bytes = l->bytes,
                                 .passes = 1};

    (void)i;
    return ops_of(l)->launch(stream, l->kernel, l->grid, l->block, &args);
}

static int queue_pages(void *arg, struct gpu_stream *stream, uint64_t i)
{
    const struct gpu_copy_lane *l = arg;

    (void)i;
    return ops_of(l)->prefetch(stream, l->src.at, l->bytes, l->to_device);
}

static gpu_queue_fn *queue_of(const struct gpu_copy_lane *l)
{
    static gpu_queue_fn *const queues[] = {[GPU_COPY_ENGINE] = queue_copy,
                                           [GPU_COPY_KERNEL] = queue_kernel,
                                           [GPU_COPY_MIGRATE] = queue_pages,
                                           [GPU_COPY_FAULTS] = queue_kernel,
                                           [GPU_COPY_SPREAD] = queue_kernel};

    return queues[l->how];
}

int gpu_copy_lane_once(struct gpu_copy_lane *l)
{
    bool moves = l->how == GPU_COPY_MIGRATE || l->how == GPU_COPY_FAULTS;
    int err = moves ? bring_back(l) : 0;

    if (!err)
        err = queue_of(l)(l, l->timer.stream, 0);
    return err ? err : ops_of(l)->stream_wait(l->timer.stream);
}

uint64_t gpu_copy_most(unsigned lanes, unsigned on_one_gpu, bool staged)
{
    uint64_t others = 4 + lanes; /* events, and the waits for them */

    if (lanes < 2 && !staged)
        return 0; /* the timer cuts it into parts itself */
    return (GPU_HELD_MAX - others) / on_one_gpu;
}

/* The fastest lane makes all copies, the others what they can in the same time. */
static void choose_counts(struct gpu_copy_pace *pace, unsigned n, uint64_t count)
{
    double fastest = pace->each_ns[0];

    for (unsigned k = 1; k < n; k++)
        fastest = pace->each_ns[k] < fastest ? pace->each_ns[k] : fastest;
    for (unsigned k = 0; k < n; k++) {
        double share = fastest > 0 ? fastest / pace->each_ns[k] : 1;
        uint64_t part = (uint64_t)((double)count * share + 0.5);
        pace->count[k] = part ? part : 1;
    }
}

/* Lane 0 is held; the others wait for its first event. */
static int queue_lanes(struct gpu_copy_lane *const *lanes, unsigned n, uint64_t count,
                       const struct gpu_copy_pace *pace)
{
    int err = 0;

    for (unsigned k = 0; !err && k < n; k++) {
        struct gpu_timer *t = &lanes[k]->timer;
        if (k)
            err = ops_of(lanes[k])->stream_after(t->stream, lanes[0]->timer.begin);
        if (!err)
            err = ops_of(lanes[k])->event_record(t->begin, t->stream);
    }
    for (uint64_t i = 0; !err && i < count; i++)
        for (unsigned k = 0; !err && k < n; k++)
            if (i < pace->count[k])
                err = queue_of(lanes[k])(lanes[k], lanes[k]->timer.stream, i);
    for (unsigned k = 0; !err && k < n; k++)
        err = ops_of(lanes[k])->event_record(lanes[k]->timer.end, lanes[k]->timer.stream);
    return err;
}

/* As if n lanes had made `count` copies each, at the rate at which they made those
 * that they did. */
static uint64_t scaled(double span_ns, unsigned n, uint64_t count, const uint64_t *counts)
{
    uint64_t made = 0;

    for (unsigned k = 0; k < n; k++)
        made += counts[k];
    double ns = span_ns * (double)(n * count) / (double)made;
    return ns < 1 ? 1 : (uint64_t)(ns + 0.5);
}

static int read_times(struct gpu_copy_lane *const *lanes, unsigned n, uint64_t count,
                      struct gpu_copy_pace *pace, uint64_t *ns)
{
    double least = INFINITY, most = 1;
    int err = 0;

    for (unsigned k = 0; !err && k < n; k++) {
        struct gpu_timer *t = &lanes[k]->timer;
        double took = 0;
        err = ops_of(lanes[k])->event_elapsed(t->begin, t->end, &took);
        took = fmax(took, 1);
        least = fmin(least, took);
        most = fmax(most, took);
        pace->each_ns[k] = took / (double)pace->count[k];
        ns[k] = scaled(took, 1, count, &pace->count[k]);
    }
    pace->overlap = least / most;
    return err;
}

/* Queued, released and waited for. The host's time beside, unless it looked at something else. */
static int run_lanes(struct gpu_copy_lane *const *lanes, unsigned n, uint64_t count,
                     const struct gpu_copy_pace *pace, struct gpu_event *joined, double *host_ns)
{
    struct gpu_timer *first = &lanes[0]->timer;
    bool held = !lanes[0]->staged;
    int err = held ? ops_of(lanes[0])->hold(first->stream) : 0;

    if (err)
        return err;
    uint64_t begin_ns = clock_now_ns();
    err = queue_lanes(lanes, n, count, pace);
    /* Lane 0's stream goes on when all lanes are done: their common end by one clock. */
    for (unsigned k = 1; !err && k < n; k++)
        err = ops_of(lanes[0])->stream_after(first->stream, lanes[k]->timer.end);
    if (!err)
        err = ops_of(lanes[0])->event_record(joined, first->stream);
    begin_ns = held ? clock_now_ns() : begin_ns;
    int released = held ? ops_of(lanes[0])->release(first->stream) : 0; /* also after an error */
    bool looked = !err && first->watch && gpu_watch_look(first->watch);
    int waited = 0;
    for (unsigned k = 0; k < n; k++) {
        int one = ops_of(lanes[k])->stream_wait(lanes[k]->timer.stream);
        waited = waited ? waited : one;
    }
    *host_ns = looked ? 0 : (double)(clock_now_ns() - begin_ns);
    return err ? err : released ? released : waited;
}

static int time_lanes(struct gpu_copy_lane *const *lanes, unsigned n, uint64_t count,
                      struct gpu_copy_pace *pace, struct gpu_event *joined, uint64_t *ns,
                      uint64_t *span_ns)
{
    struct gpu_timer *first = &lanes[0]->timer;
    double span = 0, host_ns = 0;

    choose_counts(pace, n, count);
    int err = run_lanes(lanes, n, count, pace, joined, &host_ns);
    if (!err)
        err = ops_of(lanes[0])->event_elapsed(first->begin, joined, &span);
    if (!err)
        err = read_times(lanes, n, count, pace, ns);
    *span_ns = scaled(span, n, count, pace->count);
    if (!err && host_ns > 0)
        gpu_timer_compare(first, span, host_ns);
    return err;
}

int gpu_copy_time_by_events(struct gpu_copy_lane *const *lanes, unsigned n, uint64_t count,
                            struct gpu_copy_pace *pace, uint64_t *ns, uint64_t *span_ns)
{
    struct gpu_event *joined;
    int err;

    if (n == 1 && !lanes[0]->staged) {
        err = gpu_timer_run(&lanes[0]->timer, queue_of(lanes[0]), lanes[0], count, 1, ns);
        *span_ns = *ns;
        return err;
    }
    err = ops_of(lanes[0])->event_open(lanes[0]->gpu, &joined);
    if (err)
        return err;
    err = time_lanes(lanes, n, count, pace, joined, ns, span_ns);
    ops_of(lanes[0])->event_close(joined);
    return err;
}

int gpu_copy_span(struct gpu_copy_lane *const *lanes, unsigned n, uint64_t count,
                  const struct gpu_copy_pace *pace, uint64_t *span_ns)
{
    double longest = 1, until;
    int err = 0;

    for (unsigned k = 0; !err && k < n; k++) {
        err = ops_of(lanes[0])->event_elapsed(lanes[0]->timer.begin, lanes[k]->timer.end, &until);
        longest = !err && until > longest ? until : longest;
    }
    *span_ns = scaled(longest, n, count, pace->count);
    return err;
}

int gpu_copy_time_by_host(struct gpu_copy_lane *l, uint64_t count, uint64_t *ns)
{
    gpu_queue_fn *queue = queue_of(l);
    uint64_t begin_ns = clock_now_ns();
    int err = 0;

    for (uint64_t i = 0; !err && i < count; i++)
        err = queue(l, l->timer.stream, i);
    int waited = ops_of(l)->stream_wait(l->timer.stream);
    *ns = clock_now_ns() - begin_ns;
    return err ? err : waited;
}

int gpu_copy_time_moving(struct gpu_copy_lane *l, uint64_t count, uint64_t *ns)
{
    uint64_t one = 0;
    int err = 0;

    *ns = 0;
    for (uint64_t i = 0; !err && i < count; i++) {
        err = bring_back(l);
        if (!err)
            err = gpu_copy_time_by_host(l, 1, &one);
        *ns += one;
    }
    return err;
}

/* ---- A chain of loads by a GPU from memory at the other end ---- */

#define STAGING_BYTES ((size_t)1 << 20)

/* `inner` loads by one thread: the launch is in the time, once. */
int gpu_copy_run_chain(struct gpu_copy *c, uint64_t inner, uint64_t *ns)
{
    return gpu_chain_run(c->chain, &c->lanes[0].timer, inner, ns);
}

/* In the first lane's source. Each word has an address that is the same for the GPU that follows it as
 * for who wrote it. */
int gpu_copy_chain_open(struct point *pt, struct gpu_copy *c)
{
    struct gpu_copy_lane *lane = &c->lanes[0];
    struct gpu_copy_memory *m = &lane->src;
    uint64_t lines = c->params->size / GPU_CHAIN_LINE, seed = pt->common->seed;

    if (lines < 2 || lines > UINT32_MAX)
        return point_reason(pt, -EOPNOTSUPP, "a chain of loads takes from %u bytes to %u GiB",
                            2 * GPU_CHAIN_LINE, GPU_CHAIN_LINE << 2);
    uint64_t *staging = m->config.on_host ? NULL : xrealloc(NULL, STAGING_BYTES);
    c->chain = xcalloc(1, sizeof(*c->chain));
    int err = gpu_chain_open(c->chain, lane->gpu, "chase_sys", m->at, lines, seed);
    if (!err)
        err = gpu_chain_write(c->chain, m->stream, staging, STAGING_BYTES, seed);
    free(staging);
    /* One load that is not held: what the driver loads late is loaded then. */
    if (!err)
        err = gpu_chain_queue(c->chain, lane->timer.stream, 1);
    if (!err)
        err = gpu_ops(lane->gpu)->stream_wait(lane->timer.stream);
    return err ? gpu_copy_failed(pt, c, err) : 0;
}

void gpu_copy_chain_close(struct gpu_copy *c)
{
    if (c->chain)
        gpu_chain_close(c->chain);
    free(c->chain);
    c->chain = NULL;
}

int gpu_copy_chain_check(struct point *pt, struct gpu_copy *c)
{
    uint64_t end = UINT64_MAX, right = gpu_chain_place(c->chain, c->chain->loads);
    int err = gpu_chain_end(c->chain, c->lanes[0].timer.stream, &end);

    if (err)
        return gpu_copy_failed(pt, c, err);
    if (c->params->inject == COPY_CORRUPT)
        end++;
    if (end != right)
        return point_reason(pt, -EBADMSG,
                            "the chain of loads went astray: it ended at %#llx, not %#llx",
                            (unsigned long long)end, (unsigned long long)right);
    return 0;
}
