/* SPDX-License-Identifier: Apache-2.0 */
/* The module's one symbol: the table of operations, over the CUDA driver. */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/hw/cuda/gpu_cuda.h"
#include "core/hw/gpu.h"
#include "core/hw/gpu_kernels.h"
#include "cuda/image.h" /* made by build.mk: CUDA_IMAGE, CUDA_CAPABILITIES */

struct gpu_event {
    struct gpu *gpu;
    CUevent event;
};

struct gpu_graph {
    struct gpu *gpu;
    CUgraph graph;
    CUgraphExec exec;
};

/* ---- Waiting for a device that may never answer ---- */

/* As the driver's own wait does, it asks without a pause: whoever times a wait sees its end at
 * once. After so long a pause is nothing beside what was waited. */
#define EAGER_NS 1000000000u
#define PAUSE_NS 100000

static uint64_t patience_ns(const struct gpu_base *base)
{
    uint64_t least_ns = base->patience_ns ? base->patience_ns : GPU_PATIENCE_NS;

    return least_ns + base->expected_ns + GPU_PATIENCE_TIMES * base->longest_ns;
}

static int give_up(struct gpu *gpu, uint64_t waited_ns, bool cancelled)
{
    gpu->base.lost = gpu->base.silent = true;
    return cuda_error(gpu, -ETIMEDOUT, "%sGPU %u at %s has not answered for %.3g s%s",
                      cancelled ? "interrupted: " : "", gpu->base.index, gpu->base.facts.address,
                      (double)waited_ns * 1e-9,
                      cancelled ? "" : ": dmesg | grep -i xid may say why");
}

int cuda_wait(struct gpu *gpu, cuda_query_fn *query_event, void *arg)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    uint64_t begin_ns = clock_now_ns(), cancelled_ns = 0, waited_ns = 0;
    int err;

    while ((err = query_event(arg)) == -EAGAIN) {
        waited_ns = clock_now_ns() - begin_ns;
        if (!cancelled_ns && gpu->base.cancel && *gpu->base.cancel)
            cancelled_ns = begin_ns + waited_ns;
        if (cancelled_ns && begin_ns + waited_ns - cancelled_ns > GPU_CANCEL_NS)
            return give_up(gpu, waited_ns, true);
        if (waited_ns > patience_ns(&gpu->base))
            return give_up(gpu, waited_ns, false);
        if (waited_ns > EAGER_NS)
            nanosleep(&pause, NULL);
    }
    if (waited_ns > gpu->base.longest_ns)
        gpu->base.longest_ns = waited_ns;
    return err;
}

/* ---- Kernels by name, out of the image that is part of the module ---- */

/*
 * What nvcc made of kernels.cu: machine code for several GPUs and PTX. The assembler takes it in as
 * it is; the build says where it lies.
 */
__asm__(".pushsection .rodata.cuda_image,\"a\"\n"
        ".balign 64\n"
        ".hidden cuda_image\n"
        ".global cuda_image\n"
        ".type cuda_image, %object\n"
        "cuda_image:\n"
        ".incbin \"" CUDA_IMAGE "\"\n"
        ".size cuda_image, . - cuda_image\n"
        ".popsection\n");
extern const unsigned char cuda_image[] __attribute__((visibility("hidden")));

static int load(struct gpu *gpu)
{
    int err = gpu->module ? 0 : CUDA(gpu, cuModuleLoadData, &gpu->module, cuda_image);

    if (err == -EOPNOTSUPP)
        cuda_error_add(gpu, err,
                       "; this build has code for compute capabilities " CUDA_CAPABILITIES
                       ", the GPU is %u.%u: build with a toolkit that knows it",
                       gpu->base.facts.major, gpu->base.facts.minor);
    return err;
}

static int find(struct gpu *gpu, struct gpu_kernel *kernel)
{
    int block_max = 0;
    CUresult result =
        gpu->driver->cuModuleGetFunction(&kernel->function, gpu->module, kernel->name);

    if (result == CUDA_ERROR_NOT_FOUND)
        return cuda_error(gpu, -EINVAL, "the module has no kernel '%s'", kernel->name);
    int err = cuda_check(gpu, result, "cuModuleGetFunction");
    /* Drivers load a kernel when it is first used. That may wait for the device, which a held stream
     * keeps from ever being idle: so it is loaded here. Older drivers do so when they find it. */
    if (!err && gpu->driver->cuFuncLoad)
        err = CUDA(gpu, cuFuncLoad, kernel->function);
    if (!err)
        err = CUDA(gpu, cuFuncGetAttribute, &block_max, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                   kernel->function);
    kernel->block_max = (unsigned)block_max;
    return err;
}

static int cuda_kernel(struct gpu *gpu, const char *name, struct gpu_kernel **out)
{
    struct gpu_kernel *kernel;
    int err = cuda_enter(gpu);

    *out = NULL;
    for (kernel = gpu->kernels; kernel && !err; kernel = kernel->next) {
        if (!strcmp(kernel->name, name)) {
            *out = kernel;
            return 0;
        }
    }
    if (err || (err = load(gpu)))
        return err;
    kernel = xcalloc(1, sizeof(*kernel));
    kernel->gpu = gpu;
    snprintf(kernel->name, sizeof(kernel->name), "%s", name);
    err = find(gpu, kernel);
    if (err) {
        free(kernel);
        return err;
    }
    kernel->next = gpu->kernels;
    gpu->kernels = kernel;
    *out = kernel;
    return 0;
}

static int cuda_occupancy(struct gpu_kernel *kernel, unsigned block, unsigned *blocks_per_sm)
{
    struct gpu *gpu = kernel->gpu;
    int blocks = 0, err = cuda_enter(gpu);

    *blocks_per_sm = 0;
    if (!err && block <= kernel->block_max) /* 0: a block of so many threads cannot run */
        err = CUDA(gpu, cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, kernel->function,
                   (int)block, 0);
    if (!err)
        *blocks_per_sm = (unsigned)blocks;
    return err;
}

static int cuda_launch(struct gpu_stream *stream, struct gpu_kernel *kernel, unsigned grid,
                       unsigned block, const void *args)
{
    struct gpu *gpu = stream->gpu;
    void *parameters[] = {(void *)args};
    int err = cuda_enter(gpu);

    if (!err && (!grid || !block))
        err = cuda_error(gpu, -EINVAL, "kernel '%s': asked for %u blocks of %u threads",
                         kernel->name, grid, block);
    if (!err)
        err = CUDA(gpu, cuLaunchKernel, kernel->function, grid, 1, 1, block, 1, 1, 0,
                   stream->stream, parameters, NULL);
    else
        return err;
    return err ? cuda_error_add(gpu, err, " (kernel '%s', %u x %u threads)", kernel->name, grid,
                                block)
               : 0;
}

void cuda_kernels_close(struct gpu *gpu)
{
    while (gpu->kernels) {
        struct gpu_kernel *kernel = gpu->kernels;
        gpu->kernels = kernel->next;
        free(kernel);
    }
    if (gpu->module && cuda_enter_quietly(gpu))
        gpu->driver->cuModuleUnload(gpu->module);
    gpu->module = NULL;
}

/* ---- Events and graphs ---- */

static int cuda_event_open(struct gpu *gpu, struct gpu_event **out)
{
    int err = cuda_enter(gpu);

    *out = NULL;
    if (err)
        return err;
    struct gpu_event *event = xcalloc(1, sizeof(*event));
    event->gpu = gpu;
    err = CUDA(gpu, cuEventCreate, &event->event, CU_EVENT_DEFAULT);
    if (err)
        free(event);
    else
        *out = event;
    return err;
}

static void cuda_event_close(struct gpu_event *event)
{
    if (!event)
        return;
    if (cuda_enter_quietly(event->gpu))
        event->gpu->driver->cuEventDestroy(event->event);
    free(event);
}

static int cuda_event_record(struct gpu_event *event, struct gpu_stream *stream)
{
    int err = cuda_enter(event->gpu);

    return err ? err : CUDA(event->gpu, cuEventRecord, event->event, stream->stream);
}

static int query_event(void *arg)
{
    struct gpu_event *event = arg;

    return CUDA(event->gpu, cuEventQuery, event->event);
}

static int cuda_event_wait(struct gpu_event *event)
{
    int err = cuda_enter(event->gpu);

    return err ? err : cuda_wait(event->gpu, query_event, event);
}

static int cuda_event_sync(struct gpu_event *event)
{
    int err = cuda_enter(event->gpu);

    return err ? err : CUDA(event->gpu, cuEventSynchronize, event->event);
}

static int cuda_event_query(struct gpu_event *event)
{
    int err = cuda_enter(event->gpu);

    return err ? err : CUDA(event->gpu, cuEventQuery, event->event);
}

static int cuda_event_elapsed(struct gpu_event *from, struct gpu_event *to, double *ns)
{
    float ms = 0;
    int err = cuda_enter(from->gpu);

    *ns = 0;
    if (!err)
        err = CUDA(from->gpu, cuEventElapsedTime, &ms, from->event, to->event);
    if (err == -EAGAIN)
        return cuda_error(from->gpu, -EAGAIN,
                          "the events were not reached yet: wait for them first");
    *ns = (double)ms * 1e6;
    return err;
}

static int cuda_graph_begin(struct gpu_stream *stream)
{
    int err = cuda_enter(stream->gpu);

    /* Only this thread's calls are watched for what a graph cannot hold. */
    return err ? err
               : CUDA(stream->gpu, cuStreamBeginCapture, stream->stream,
                      CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

static void cuda_graph_close(struct gpu_graph *graph)
{
    if (!graph)
        return;
    if (cuda_enter_quietly(graph->gpu)) {
        if (graph->exec)
            graph->gpu->driver->cuGraphExecDestroy(graph->exec);
        if (graph->graph)
            graph->gpu->driver->cuGraphDestroy(graph->graph);
    }
    free(graph);
}

static int cuda_graph_end(struct gpu_stream *stream, struct gpu_graph **out)
{
    struct gpu *gpu = stream->gpu;
    struct gpu_graph *graph = xcalloc(1, sizeof(*graph));
    int err = cuda_enter(gpu);

    *out = NULL;
    graph->gpu = gpu;
    if (!err)
        err = CUDA(gpu, cuStreamEndCapture, stream->stream, &graph->graph);
    if (!err)
        err = CUDA(gpu, cuGraphInstantiateWithFlags, &graph->exec, graph->graph, 0);
    if (err)
        cuda_graph_close(graph);
    else
        *out = graph;
    return err;
}

static int cuda_graph_launch(struct gpu_stream *stream, struct gpu_graph *graph)
{
    int err = cuda_enter(stream->gpu);

    return err ? err : CUDA(stream->gpu, cuGraphLaunch, graph->exec, stream->stream);
}

/* ---- Streams, how they are held, and copies in them ---- */

/* Loads the spin kernel now: loading may wait for the device, which a held stream keeps busy. */
static int open_control(struct gpu_stream *stream)
{
    void *page = NULL;
    int err = cuda_kernel(stream->gpu, "spin", &stream->spin);

    if (!err)
        err = cuda_alloc(stream->gpu, GPU_PINNED, sizeof(*stream->control), &page);
    stream->control = page;
    if (!err)
        *stream->control = (struct cuda_control){0};
    return err;
}

static int cuda_release(struct gpu_stream *stream)
{
    __atomic_store_n(&stream->control->go, stream->turn, __ATOMIC_RELEASE);
    return stream->gpu->base.lost ? -EIO : 0;
}

static int query_stream(void *arg)
{
    struct gpu_stream *stream = arg;

    return CUDA(stream->gpu, cuStreamQuery, stream->stream);
}

static void cuda_stream_close(struct gpu_stream *stream)
{
    if (!stream)
        return;
    if (stream->stream && cuda_enter_quietly(stream->gpu)) {
        if (stream->control)
            cuda_release(stream); /* or the next line would wait for it */
        cuda_wait(stream->gpu, query_stream, stream);
        if (!stream->gpu->base.silent)
            stream->gpu->driver->cuStreamDestroy(stream->stream);
    }
    cuda_free(stream->gpu, GPU_PINNED, stream->control);
    free(stream);
}

static int cuda_stream_open(struct gpu *gpu, struct gpu_stream **out)
{
    int err = cuda_enter(gpu);

    *out = NULL;
    if (err)
        return err;
    struct gpu_stream *stream = xcalloc(1, sizeof(*stream));
    stream->gpu = gpu;
    /* Of its own: the default stream, which a library may use, does not wait for it. */
    err = CUDA(gpu, cuStreamCreate, &stream->stream, CU_STREAM_NON_BLOCKING);
    if (!err)
        err = open_control(stream);
    if (err)
        cuda_stream_close(stream);
    else
        *out = stream;
    return err;
}

/* A wait has ended: did the hold end by itself meanwhile? */
static int check_hold(struct gpu_stream *stream)
{
    if (!__atomic_exchange_n(&stream->control->gave_up, 0, __ATOMIC_ACQUIRE))
        return 0;
    return cuda_error(stream->gpu, -ETIMEDOUT,
                      "the stream was held for %u s and went on by itself: what was timed is not "
                      "to be used",
                      (unsigned)(GPU_HOLD_NS / 1000000000u));
}

static int cuda_stream_wait(struct gpu_stream *stream)
{
    int err = cuda_enter(stream->gpu);

    if (!err)
        err = cuda_wait(stream->gpu, query_stream, stream);
    return err ? err : check_hold(stream);
}

static int cuda_stream_sync(struct gpu_stream *stream)
{
    struct gpu *gpu = stream->gpu;
    int err = cuda_enter(gpu);

    if (!err)
        err = CUDA(gpu, cuStreamSynchronize, stream->stream);
    return err ? err : check_hold(stream);
}

static int cuda_stream_query(struct gpu_stream *stream)
{
    int err = cuda_enter(stream->gpu);

    return err ? err : CUDA(stream->gpu, cuStreamQuery, stream->stream);
}

static int cuda_stream_after(struct gpu_stream *stream, struct gpu_event *event)
{
    int err = cuda_enter(stream->gpu);

    return err ? err : CUDA(stream->gpu, cuStreamWaitEvent, stream->stream, event->event, 0);
}

static void *cuda_stream_native(struct gpu_stream *stream)
{
    cuda_forget_contexts(); /* whoever takes the stream may make another context this thread's */
    return cuda_enter(stream->gpu) ? NULL : stream->stream;
}

/* A kernel of one thread waits until `go` has come to this hold's turn. What was released
 * stays so: each hold has a turn of its own. */
static int cuda_hold(struct gpu_stream *stream)
{
    if (getenv(GPU_NO_HOLD))
        return 0;
    struct gpu_spin_args args = {
        .go = &stream->control->go,
        .turn = stream->turn + 1,
        .gave_up = &stream->control->gave_up,
        .limit_ns = GPU_HOLD_NS,
    };
    int err = cuda_launch(stream, stream->spin, 1, 1, &args);

    if (!err)
        stream->turn++;
    return err;
}

bool cuda_held(const struct gpu_stream *stream)
{
    return stream->control->go != stream->turn;
}

/* Both sides by one kind of address: the driver sees from it what it is and where. */
static int cuda_copy(struct gpu_stream *stream, void *dst, const void *src, size_t bytes)
{
    struct gpu *gpu = stream->gpu;
    int err = cuda_enter(gpu);

    if (!err && !bytes)
        err = cuda_error(gpu, -EINVAL, "asked to copy 0 bytes");
    return err ? err
               : CUDA(gpu, cuMemcpyAsync, (CUdeviceptr)(uintptr_t)dst, (CUdeviceptr)(uintptr_t)src,
                      bytes, stream->stream);
}

static int cuda_set(struct gpu_stream *stream, void *dst, uint32_t word, size_t bytes)
{
    struct gpu *gpu = stream->gpu;
    int err = cuda_enter(gpu);

    if (!err && (!bytes || bytes % sizeof(word)))
        err = cuda_error(gpu, -EINVAL, "asked to set %zu bytes: it takes whole words of 4", bytes);
    return err ? err
               : CUDA(gpu, cuMemsetD32Async, (CUdeviceptr)(uintptr_t)dst, word,
                      bytes / sizeof(word), stream->stream);
}

static int cuda_prefetch(struct gpu_stream *stream, void *at, size_t bytes, bool to_device)
{
    struct gpu *gpu = stream->gpu;
    int err = cuda_enter(gpu);

    if (err)
        return err;
    if (!gpu->base.facts.managed_concurrent)
        return cuda_error(gpu, -EOPNOTSUPP, "this GPU does not move managed memory by page faults");
    return cuda_check(gpu,
                      cuda_driver_prefetch(gpu->driver, (CUdeviceptr)(uintptr_t)at, bytes,
                                           to_device ? gpu->device : CU_DEVICE_CPU, stream->stream),
                      "cuMemPrefetchAsync");
}

/* There without gemm.c too, which is left out where cublasLt.h is not found: NULL then. */
extern const struct gpu_gemm_ops cuda_gemm_ops __attribute__((weak, visibility("hidden")));

/* A table of functions has no other place for what init found. */
static struct cuda_state the_state;

struct cuda_state *cuda_state(void)
{
    return &the_state;
}

static int init(char *error, size_t len)
{
    struct cuda_state *state = cuda_state();
    int count = 0, err = state->count ? 0 : cuda_driver_open(&state->driver, error, len);
    char text[160];

    if (err || state->count)
        return err;
    CUresult result = state->driver.cuDeviceGetCount(&count);
    if (result != CUDA_SUCCESS || count < 1) {
        snprintf(error, len, "cuDeviceGetCount: %s",
                 result ? cuda_error_text(&state->driver, result, text, sizeof(text))
                        : "the driver shows no GPU: nvidia-smi -L");
        return -ENODEV;
    }
    state->count = count < CUDA_GPUS_MAX ? (unsigned)count : CUDA_GPUS_MAX;
    return 0;
}

/* Asked anew each time: cuBLASLt is opened later than the driver. */
static const char *origin(void)
{
    const struct cuda_state *state = cuda_state();

    if ((state->driver.library && dlsym(state->driver.library, "plumb_simulated")) ||
        (state->gemm_library && dlsym(state->gemm_library, "plumb_simulated")))
        return "simulated";
    return "measured";
}

static unsigned count(void)
{
    return cuda_state()->count;
}

__attribute__((visibility("default"))) const struct gpu_ops plumb_gpu_module = {
    .name = "cuda",
    .abi = GPU_MODULE_ABI,
    .init = init,
    .origin = origin,
    .count = count,
    .facts = cuda_facts,
    .link = cuda_link,
    .open = cuda_open,
    .close = cuda_close,
    .free_bytes = cuda_free_bytes,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .pin = cuda_pin,
    .unpin = cuda_unpin,
    .share = cuda_share,
    .reach = cuda_reach,
    .stream_open = cuda_stream_open,
    .stream_close = cuda_stream_close,
    .stream_wait = cuda_stream_wait,
    .stream_sync = cuda_stream_sync,
    .stream_query = cuda_stream_query,
    .stream_after = cuda_stream_after,
    .stream_native = cuda_stream_native,
    .hold = cuda_hold,
    .release = cuda_release,
    .event_open = cuda_event_open,
    .event_close = cuda_event_close,
    .event_record = cuda_event_record,
    .event_wait = cuda_event_wait,
    .event_sync = cuda_event_sync,
    .event_query = cuda_event_query,
    .event_elapsed = cuda_event_elapsed,
    .copy = cuda_copy,
    .set = cuda_set,
    .prefetch = cuda_prefetch,
    .kernel = cuda_kernel,
    .occupancy = cuda_occupancy,
    .launch = cuda_launch,
    .peer = cuda_peer,
    .graph_begin = cuda_graph_begin,
    .graph_end = cuda_graph_end,
    .graph_launch = cuda_graph_launch,
    .graph_close = cuda_graph_close,
    .driver_call = cuda_driver_call,
    .alloc_ordered = cuda_alloc_ordered,
    .free_ordered = cuda_free_ordered,
    .export_memory = cuda_export,
    .flush_writes = cuda_flush_writes,
    .multicast_open = cuda_multicast_open,
    .multicast_close = cuda_multicast_close,
    .gemm = &cuda_gemm_ops,
};
