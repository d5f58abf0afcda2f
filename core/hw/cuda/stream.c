/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, how they are held, and copies in them. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/hw/cuda/gpu_cuda.h"
#include "core/hw/gpu_kernels.h"

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

int cuda_stream_open(struct gpu *gpu, struct gpu_stream **out)
{
    struct gpu_stream *stream;
    int err = cuda_enter(gpu);

    *out = NULL;
    if (err)
        return err;
    stream = calloc(1, sizeof(*stream));
    if (!stream)
        return cuda_error(gpu, -ENOMEM, "out of host memory");
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

static int query(void *arg)
{
    struct gpu_stream *stream = arg;

    return CUDA(stream->gpu, cuStreamQuery, stream->stream);
}

void cuda_stream_close(struct gpu_stream *stream)
{
    if (!stream)
        return;
    if (stream->stream && cuda_enter_quietly(stream->gpu)) {
        if (stream->control)
            cuda_release(stream); /* or the next line would wait for it */
        cuda_wait(stream->gpu, query, stream);
        if (!stream->gpu->base.silent)
            stream->gpu->driver->cuStreamDestroy(stream->stream);
    }
    cuda_free(stream->gpu, GPU_PINNED, stream->control);
    free(stream);
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

int cuda_stream_wait(struct gpu_stream *stream)
{
    int err = cuda_enter(stream->gpu);

    if (!err)
        err = cuda_wait(stream->gpu, query, stream);
    return err ? err : check_hold(stream);
}

int cuda_stream_sync(struct gpu_stream *stream)
{
    struct gpu *gpu = stream->gpu;
    int err = cuda_enter(gpu);

    if (!err)
        err = CUDA(gpu, cuStreamSynchronize, stream->stream);
    return err ? err : check_hold(stream);
}

int cuda_stream_query(struct gpu_stream *stream)
{
    int err = cuda_enter(stream->gpu);

    return err ? err : CUDA(stream->gpu, cuStreamQuery, stream->stream);
}

int cuda_stream_after(struct gpu_stream *stream, struct gpu_event *event)
{
    int err = cuda_enter(stream->gpu);

    return err ? err : CUDA(stream->gpu, cuStreamWaitEvent, stream->stream, event->event, 0);
}

void *cuda_stream_native(struct gpu_stream *stream)
{
    cuda_forget_contexts(); /* whoever takes the stream may make another context this thread's */
    return cuda_enter(stream->gpu) ? NULL : stream->stream;
}

/* A kernel of one thread waits until `go` has come to this hold's turn. What was released stays so:
 * each hold has a turn of its own. */
int cuda_hold(struct gpu_stream *stream)
{
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

int cuda_release(struct gpu_stream *stream)
{
    __atomic_store_n(&stream->control->go, stream->turn, __ATOMIC_RELEASE);
    return stream->gpu->base.lost ? -EIO : 0;
}

bool cuda_held(const struct gpu_stream *stream)
{
    return stream->control->go != stream->turn;
}

/* Both sides by one kind of address: the driver sees from it what it is and where. */
int cuda_copy(struct gpu_stream *stream, void *dst, const void *src, size_t bytes)
{
    struct gpu *gpu = stream->gpu;
    int err = cuda_enter(gpu);

    if (!err && !bytes)
        err = cuda_error(gpu, -EINVAL, "asked to copy 0 bytes");
    return err ? err
               : CUDA(gpu, cuMemcpyAsync, (CUdeviceptr)(uintptr_t)dst, (CUdeviceptr)(uintptr_t)src,
                      bytes, stream->stream);
}

int cuda_set(struct gpu_stream *stream, void *dst, uint32_t word, size_t bytes)
{
    struct gpu *gpu = stream->gpu;
    int err = cuda_enter(gpu);

    if (!err && (!bytes || bytes % sizeof(word)))
        err = cuda_error(gpu, -EINVAL, "asked to set %zu bytes: it takes whole words of 4", bytes);
    return err ? err
               : CUDA(gpu, cuMemsetD32Async, (CUdeviceptr)(uintptr_t)dst, word,
                      bytes / sizeof(word), stream->stream);
}

int cuda_prefetch(struct gpu_stream *stream, void *at, size_t bytes, bool to_device)
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
