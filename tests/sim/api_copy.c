/* SPDX-License-Identifier: Apache-2.0 */
/* Copies, sets and prefetches. */
#include "tests/sim/sim.h"

#include <stdlib.h>
#include <string.h>

#define STAGED_BYTES 65536 /* as much of pageable memory as a copy takes at once */

static bool pageable(struct sim *sim, uintptr_t at, uint64_t bytes)
{
    struct sim_where where = sim_where(sim, at, bytes, 0);

    return where.place == SIM_PAGEABLE && !where.bad;
}

static void invalidate(struct sim_stream *stream)
{
    stream->capture_bad = true;
}

/*
 * Pageable memory: a small source is copied at once into memory of the driver's own; else the call
 * returns when the copy is done. That is what the documentation of the real driver says. */
static CUresult copy_pageable(struct sim *sim, struct sim_stream *stream, struct sim_op *op)
{
    bool staged = op->copy.bytes <= STAGED_BYTES && !pageable(sim, op->copy.dst, op->copy.bytes);
    CUresult rc;

    if (stream->capture) {
        invalidate(stream);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (staged) {
        op->copy.staged = malloc(op->copy.bytes ? op->copy.bytes : 1);
        if (!op->copy.staged)
            return CUDA_ERROR_OUT_OF_MEMORY;
        memcpy(op->copy.staged, (const void *)op->copy.src, op->copy.bytes);
    }
    rc = sim_submit(sim, stream, op);
    if (rc)
        free(op->copy.staged);
    return rc || staged ? rc : sim_wait(sim, stream->id, stream->queued_seq);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream handle)
{
    struct sim_op op = {.kind = SIM_OP_COPY,
                        .copy = {.dst = (uintptr_t)dst, .src = (uintptr_t)src, .bytes = bytes}};
    struct sim_stream *stream;
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = sim_enter_device(&sim, &device, "cuMemcpyAsync");

    rc = rc ? rc : sim_stream_of(sim, device, handle, &stream);
    if (!rc && bytes && (!dst || !src))
        rc = CUDA_ERROR_INVALID_VALUE;
    if (rc || !bytes)
        return sim_leave(sim, rc);
    op.node = sim_host_node(&sim->machine);
    if (pageable(sim, op.copy.src, bytes) || pageable(sim, op.copy.dst, bytes))
        rc = copy_pageable(sim, stream, &op);
    else
        rc = sim_submit(sim, stream, &op);
    return sim_leave(sim, rc);
}

CUresult cuMemsetD32Async(CUdeviceptr at, unsigned word, size_t count, CUstream handle)
{
    struct sim_op op = {.kind = SIM_OP_SET,
                        .set = {.at = (uintptr_t)at, .bytes = count * 4, .word = word}};
    struct sim_stream *stream;
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = sim_enter_device(&sim, &device, "cuMemsetD32Async");

    rc = rc ? rc : sim_stream_of(sim, device, handle, &stream);
    if (!rc && (at % 4 || pageable(sim, op.set.at, op.set.bytes)))
        rc = CUDA_ERROR_INVALID_VALUE;
    return sim_leave(sim, rc || !count ? rc : sim_submit(sim, stream, &op));
}

static CUresult prefetch(CUdeviceptr at, size_t bytes, int to, CUstream handle)
{
    struct sim_op op = {.kind = SIM_OP_PREFETCH,
                        .prefetch = {.at = (uintptr_t)at, .bytes = bytes, .to = to}};
    struct sim_stream *stream;
    struct sim_device *device;
    struct sim_where where;
    struct sim *sim;
    CUresult rc = sim_enter_device(&sim, &device, "cuMemPrefetchAsync");

    rc = rc ? rc : sim_stream_of(sim, device, handle, &stream);
    if (rc)
        return sim_leave(sim, rc);
    where = sim_where(sim, op.prefetch.at, bytes, 0);
    if (where.bad || where.place != SIM_MANAGED || !bytes || to >= (int)sim->machine.gpus)
        rc = CUDA_ERROR_INVALID_VALUE;
    else if (!sim->machine.gpu[device->index].managed_concurrent)
        rc = CUDA_ERROR_INVALID_DEVICE;
    return sim_leave(sim, rc ? rc : sim_submit(sim, stream, &op));
}

/* The interface of the header that this is built with; and the older one, which a driver keeps for older programs. */
#if CUDA_VERSION >= 13000
CUresult cuMemPrefetchAsync(CUdeviceptr at, size_t bytes, CUmemLocation location, unsigned flags,
                            CUstream handle)
{
    bool host = location.type == CU_MEM_LOCATION_TYPE_HOST ||
                location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
                location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;

    if (flags || (!host && location.type != CU_MEM_LOCATION_TYPE_DEVICE))
        return CUDA_ERROR_INVALID_VALUE;
    return prefetch(at, bytes, host ? -1 : location.id, handle);
}

#undef cuMemPrefetchAsync
CUresult cuMemPrefetchAsync(CUdeviceptr at, size_t bytes, CUdevice device, CUstream handle);
CUresult cuMemPrefetchAsync(CUdeviceptr at, size_t bytes, CUdevice device, CUstream handle)
{
    return prefetch(at, bytes, device == CU_DEVICE_CPU ? -1 : device, handle);
}
#else
CUresult cuMemPrefetchAsync(CUdeviceptr at, size_t bytes, CUdevice device, CUstream handle)
{
    return prefetch(at, bytes, device == CU_DEVICE_CPU ? -1 : device, handle);
}
#endif
