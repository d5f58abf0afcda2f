/* SPDX-License-Identifier: Apache-2.0 */
/* A made-up GPU whose memory is the host's, and whose copies take exact times by its own events. */
#ifndef PLUMB_TESTS_FAKE_GPU_H
#define PLUMB_TESTS_FAKE_GPU_H

#include "core/clock.h"
#include "core/hw/gpu.h"
#include "core/hw/gpu_kernels.h"
#include "tests/unit/unit.h"

#define NOTHING 0xee

struct gpu {
    struct gpu_base base;
    double ns_per_byte;
    unsigned opened; /* of all kinds, and not closed */
    unsigned holds, copies, moves, waits, launches;
    unsigned queued, queued_most; /* since the last wait */
    unsigned unheld;              /* events recorded outside of a hold */
    uint64_t copied;              /* bytes */
    enum gpu_memory last_kind;
    char moved[8];           /* 'd' and 'h' for each move to device or host */
    bool held, forget;       /* forget: copies leave out the last byte */
    int fail_copy;           /* the copy with this number, from 1 */
    unsigned slow_after;     /* copies above this number take twice as long; 0: none */
    unsigned calls, fail_at; /* the call, from 1, that fails; 0: none */
    uint64_t wait_ns;        /* for the host */
};

struct gpu_stream {
    struct gpu *gpu;
    double at_ns;
};

struct gpu_event {
    struct gpu *gpu;
    double at_ns;
    bool recorded;
};

struct gpu_kernel {
    const char *name;
};

static int call(struct gpu *gpu)
{
    return ++gpu->calls == gpu->fail_at ? -EIO : 0;
}

static int queue(struct gpu *gpu, unsigned things)
{
    gpu->queued += things;
    gpu->queued_most = gpu->queued > gpu->queued_most ? gpu->queued : gpu->queued_most;
    return call(gpu);
}

static void *take(struct gpu *gpu, size_t bytes)
{
    void *at = malloc(bytes);

    assert_non_null(at);
    memset(at, NOTHING, bytes);
    gpu->opened++;
    return at;
}

static void give_back(struct gpu *gpu, void *at)
{
    gpu->opened -= at ? 1 : 0;
    free(at);
}

static int stream_open(struct gpu *gpu, struct gpu_stream **s)
{
    int err = call(gpu);

    if (!err) {
        *s = take(gpu, sizeof(**s));
        **s = (struct gpu_stream){.gpu = gpu};
    }
    return err;
}

static void stream_close(struct gpu_stream *s)
{
    give_back(s->gpu, s);
}

static int stream_wait(struct gpu_stream *s)
{
    uint64_t until = clock_now_ns() + s->gpu->wait_ns;

    assert_false(s->gpu->held); /* it would never end */
    s->gpu->waits++;
    s->gpu->queued = 0;
    while (s->gpu->wait_ns && clock_now_ns() < until)
        ;
    return call(s->gpu);
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
    int err = call(gpu);

    if (!err) {
        *e = take(gpu, sizeof(**e));
        **e = (struct gpu_event){.gpu = gpu};
    }
    return err;
}

static void event_close(struct gpu_event *e)
{
    give_back(e->gpu, e);
}

static int event_record(struct gpu_event *e, struct gpu_stream *s)
{
    assert_ptr_equal(e->gpu, s->gpu);
    s->gpu->unheld += s->gpu->held ? 0 : 1;
    e->at_ns = s->at_ns;
    e->recorded = true;
    return queue(s->gpu, 1);
}

static int event_elapsed(struct gpu_event *from, struct gpu_event *to, double *ns)
{
    assert_ptr_equal(from->gpu, to->gpu); /* clocks of two devices do not compare */
    *ns = to->at_ns - from->at_ns;
    return 0;
}

static int alloc(struct gpu *gpu, enum gpu_memory kind, size_t bytes, void **at)
{
    int err = call(gpu);

    gpu->last_kind = kind;
    if (!err)
        *at = take(gpu, bytes);
    return err;
}

static void free_memory(struct gpu *gpu, enum gpu_memory kind, void *at)
{
    (void)kind;
    give_back(gpu, at);
}

static int copy(struct gpu_stream *s, void *dst, const void *src, size_t bytes)
{
    struct gpu *gpu = s->gpu;

    if ((int)++gpu->copies == gpu->fail_copy)
        return -EIO;
    gpu->copied += bytes;
    memcpy(dst, src, bytes - gpu->forget);
    bool slow = gpu->slow_after && gpu->copies > gpu->slow_after;
    s->at_ns += gpu->ns_per_byte * (double)bytes * (slow ? 2 : 1);
    return queue(gpu, 1);
}

static int set(struct gpu_stream *s, void *dst, uint32_t word, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 4)
        memcpy((char *)dst + i, &word, 4);
    return queue(s->gpu, 1);
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
    static struct gpu_kernel kernels[] = {
        {"fill"}, {"copy16"}, {"copy1"}, {"chase_sys"}, {"empty"}};

    for (size_t i = 0; i < 5; i++)
        if (!strcmp(kernels[i].name, name)) {
            *kernel = &kernels[i];
            return call(gpu);
        }
    return -ENOENT;
}

static int occupancy(struct gpu_kernel *kernel, unsigned block, unsigned *blocks_per_sm)
{
    (void)kernel;
    *blocks_per_sm = 2048 / block;
    return 0;
}

static void run_fill(const struct gpu_fill_args *args)
{
    unsigned bytes = gpu_value_bytes(args->type);

    for (uint64_t i = 0; i < args->count; i++) {
        uint64_t bits = gpu_value_bits(args->type, args->kind, args->seed, args->first + i);
        memcpy((char *)args->dst + i * bytes, &bits, bytes); /* little-endian, as the GPU is */
    }
}

static int launch(struct gpu_stream *s, struct gpu_kernel *kernel, unsigned grid, unsigned block,
                  const void *args)
{
    const struct gpu_copy_args *c = args;
    const struct gpu_chase_args *chase = args;

    assert_true(grid && block && args);
    s->gpu->launches++;
    if (!strncmp(kernel->name, "copy", 4)) {
        assert_true(strcmp(kernel->name, "copy16") || c->bytes % 16 == 0);
        return copy(s, c->dst, c->src, c->bytes);
    }
    if (!strcmp(kernel->name, "fill"))
        run_fill(args);
    if (!strcmp(kernel->name, "chase_sys")) {
        *chase->end = (uintptr_t)chase->start;
        for (uint64_t i = 0; i < chase->hops; i++)
            *chase->end = *(const uint64_t *)*chase->end;
        s->at_ns += 100.0 * (double)chase->hops;
    }
    return queue(s->gpu, 1);
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
    return (struct gpu){
        .base = {.ops = &fake_ops, .facts = {.sms = 10, .numa_node = -1, .l2_bytes = 1 << 20}},
        .ns_per_byte = ns_per_byte};
}

#endif
