/* SPDX-License-Identifier: Apache-2.0 */
/* A made-up GPU whose memory is the host's, and whose copies take exact times by its own events. */
#ifndef PLUMB_TESTS_FAKE_COPY_GPU_H
#define PLUMB_TESTS_FAKE_COPY_GPU_H

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/hw/gpu.h"
#include "core/hw/gpu_kernels.h"

#define NOTHING 0xee

struct gpu {
    struct gpu_base base;
    double ns_per_byte;
    unsigned opened, holds, copies, moves, waits;
    enum gpu_memory last_kind;
    char moved[8];       /* 'd' and 'h' for each move to device or host */
    bool held, forget;   /* forget: copies leave out the last byte */
    int fail_copy;       /* the copy with this number, from 1 */
    unsigned slow_after; /* copies above this number take twice as long; 0: none */
};

struct gpu_stream {
    struct gpu *gpu;
    double at_ns;
};

struct gpu_event {
    struct gpu *gpu;
    double at_ns;
};

struct gpu_kernel {
    const char *name;
};

static int stream_open(struct gpu *gpu, struct gpu_stream **s)
{
    *s = calloc(1, sizeof(**s));
    (*s)->gpu = gpu;
    gpu->opened++;
    return 0;
}

static void stream_close(struct gpu_stream *s)
{
    s->gpu->opened--;
    free(s);
}

static int stream_wait(struct gpu_stream *s)
{
    assert_false(s->gpu->held); /* it would never end */
    s->gpu->waits++;
    return 0;
}

static int stream_after(struct gpu_stream *s, struct gpu_event *e)
{
    s->at_ns = fmax(s->at_ns, e->at_ns);
    return 0;
}

static int hold(struct gpu_stream *s)
{
    assert_false(s->gpu->held);
    s->gpu->held = true;
    s->gpu->holds++;
    return 0;
}

static int release(struct gpu_stream *s)
{
    assert_true(s->gpu->held);
    s->gpu->held = false;
    return 0;
}

static int event_open(struct gpu *gpu, struct gpu_event **e)
{
    *e = calloc(1, sizeof(**e));
    (*e)->gpu = gpu;
    gpu->opened++;
    return 0;
}

static void event_close(struct gpu_event *e)
{
    e->gpu->opened--;
    free(e);
}

static int event_record(struct gpu_event *e, struct gpu_stream *s)
{
    assert_ptr_equal(e->gpu, s->gpu);
    e->at_ns = s->at_ns;
    return 0;
}

static int event_elapsed(struct gpu_event *from, struct gpu_event *to, double *ns)
{
    assert_ptr_equal(from->gpu, to->gpu); /* clocks of two devices do not compare */
    *ns = to->at_ns - from->at_ns;
    return 0;
}

static int alloc(struct gpu *gpu, enum gpu_memory kind, size_t bytes, void **at)
{
    gpu->last_kind = kind;
    *at = malloc(bytes);
    memset(*at, NOTHING, bytes);
    gpu->opened++;
    return 0;
}

static void free_memory(struct gpu *gpu, enum gpu_memory kind, void *at)
{
    (void)kind;
    gpu->opened -= at ? 1 : 0;
    free(at);
}

static int copy(struct gpu_stream *s, void *dst, const void *src, size_t bytes)
{
    struct gpu *gpu = s->gpu;

    if ((int)++gpu->copies == gpu->fail_copy)
        return -EIO;
    memcpy(dst, src, bytes - gpu->forget);
    bool slow = gpu->slow_after && gpu->copies > gpu->slow_after;
    s->at_ns += gpu->ns_per_byte * (double)bytes * (slow ? 2 : 1);
    return 0;
}

static int set(struct gpu_stream *s, void *dst, uint32_t word, size_t bytes)
{
    (void)s;
    for (size_t i = 0; i < bytes; i += 4)
        memcpy((char *)dst + i, &word, 4);
    return 0;
}

static int prefetch(struct gpu_stream *s, void *at, size_t bytes, bool to_device)
{
    (void)at;
    (void)bytes;
    if (s->gpu->moves + 1 < sizeof(s->gpu->moved))
        s->gpu->moved[s->gpu->moves++] = to_device ? 'd' : 'h';
    return 0;
}

static int find_kernel(struct gpu *gpu, const char *name, struct gpu_kernel **kernel)
{
    static struct gpu_kernel kernels[] = {{"fill"}, {"copy16"}, {"copy1"}, {"chase_cg"}};

    (void)gpu;
    for (size_t i = 0; i < 4; i++)
        if (!strcmp(kernels[i].name, name)) {
            *kernel = &kernels[i];
            return 0;
        }
    return -ENOENT;
}

static int occupancy(struct gpu_kernel *kernel, unsigned block, unsigned *blocks_per_sm)
{
    (void)kernel;
    *blocks_per_sm = 2048 / block;
    return 0;
}

static int launch(struct gpu_stream *s, struct gpu_kernel *kernel, unsigned grid, unsigned block,
                  const void *args)
{
    const struct gpu_fill_args *fill = args;
    const struct gpu_copy_args *c = args;
    const struct gpu_chase_args *chase = args;

    assert_true(grid && block);
    if (!strcmp(kernel->name, "fill")) {
        for (uint64_t i = 0; i < fill->count; i++)
            ((uint64_t *)fill->dst)[i] = gpu_value_bits(GPU_U64, GPU_RANDOM, fill->seed, i);
    } else if (!strcmp(kernel->name, "chase_cg")) {
        *chase->end = (uintptr_t)chase->start;
        for (uint64_t i = 0; i < chase->hops; i++)
            *chase->end = *(const uint64_t *)*chase->end;
        s->at_ns += 100.0 * (double)chase->hops;
    } else {
        assert_true(strcmp(kernel->name, "copy16") || c->bytes % 16 == 0);
        return copy(s, c->dst, c->src, c->bytes);
    }
    return 0;
}

static const struct gpu_ops fake_ops = {.name = "fake",
                                        .abi = GPU_MODULE_ABI,
                                        .alloc = alloc,
                                        .free = free_memory,
                                        .stream_open = stream_open,
                                        .stream_close = stream_close,
                                        .stream_wait = stream_wait,
                                        .stream_after = stream_after,
                                        .hold = hold,
                                        .release = release,
                                        .event_open = event_open,
                                        .event_close = event_close,
                                        .event_record = event_record,
                                        .event_elapsed = event_elapsed,
                                        .copy = copy,
                                        .set = set,
                                        .prefetch = prefetch,
                                        .kernel = find_kernel,
                                        .occupancy = occupancy,
                                        .launch = launch};

static struct gpu fake_gpu(double ns_per_byte)
{
    return (struct gpu){.base = {.ops = &fake_ops, .facts = {.sms = 10, .numa_node = -1}},
                        .ns_per_byte = ns_per_byte};
}

#endif
