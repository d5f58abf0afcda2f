/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of every kind, taken and given back. */
#include <errno.h>
#include <stdint.h>

#include "core/hw/cuda/gpu_cuda.h"

int cuda_free_bytes(struct gpu *gpu, uint64_t *bytes)
{
    size_t free_now = 0, total;
    int err = cuda_enter(gpu);

    if (!err)
        err = CUDA(gpu, cuMemGetInfo, &free_now, &total);
    *bytes = free_now;
    return err;
}

int cuda_driver_call(struct gpu *gpu)
{
    uint64_t ignored;

    return cuda_free_bytes(gpu, &ignored);
}

/* What was asked for and what there is, after the driver's own words. */
static int say_sizes(struct gpu *gpu, int err, size_t asked)
{
    size_t free_now = 0, total = 0;
    char one[32], two[32], three[32];

    if (err != -ENOMEM)
        return err;
    cuda_error_add(gpu, err, "; asked for %s", cuda_size_text(asked, one, sizeof(one)));
    if (gpu->driver->cuMemGetInfo(&free_now, &total) != CUDA_SUCCESS)
        return err;
    return cuda_error_add(gpu, err, ", %s of the device's %s are free",
                          cuda_size_text(free_now, two, sizeof(two)),
                          cuda_size_text(total, three, sizeof(three)));
}

static int wanted(struct gpu *gpu, size_t bytes)
{
    int err = cuda_enter(gpu);

    return err || bytes ? err : cuda_error(gpu, -EINVAL, "asked for memory of 0 bytes");
}

/* Page-locked memory is to be good on both sides by one address: where the driver maps it elsewhere,
 * it is not used. Write-combined memory is not asked about: the driver's manual lets it have two
 * addresses, and copies take the host's. */
static int same_address(struct gpu *gpu, void *at)
{
    CUdeviceptr device = 0;
    int err = CUDA(gpu, cuMemHostGetDevicePointer, &device, at, 0);

    if (!err && device != (CUdeviceptr)(uintptr_t)at)
        err = cuda_error(gpu, -EOPNOTSUPP,
                         "the device sees this host memory at another address than the host");
    return err;
}

static int alloc_host(struct gpu *gpu, bool write_combined, size_t bytes, void **at)
{
    unsigned flags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
    int err;

    if (write_combined)
        flags |= CU_MEMHOSTALLOC_WRITECOMBINED;
    err = CUDA(gpu, cuMemHostAlloc, at, bytes, flags);
    if (err == -ENOMEM) {
        char text[32];
        return cuda_error_add(gpu, err, "; asked for %s of page-locked host memory",
                              cuda_size_text(bytes, text, sizeof(text)));
    }
    if (!err && !write_combined && (err = same_address(gpu, *at)))
        gpu->driver->cuMemFreeHost(*at);
    return err;
}

int cuda_alloc(struct gpu *gpu, enum gpu_memory kind, size_t bytes, void **at)
{
    CUdeviceptr device = 0;
    int err = wanted(gpu, bytes);

    *at = NULL;
    if (err)
        return err;
    switch (kind) {
    case GPU_DEVICE:
        err = say_sizes(gpu, CUDA(gpu, cuMemAlloc, &device, bytes), bytes);
        break;
    case GPU_MANAGED:
        if (!gpu->base.facts.managed)
            return cuda_error(gpu, -EOPNOTSUPP, "this GPU has no managed memory");
        err = say_sizes(gpu, CUDA(gpu, cuMemAllocManaged, &device, bytes, CU_MEM_ATTACH_GLOBAL),
                        bytes);
        break;
    case GPU_PINNED:
    case GPU_WRITE_COMBINED:
        err = alloc_host(gpu, kind == GPU_WRITE_COMBINED, bytes, at);
        break;
    }
    if (device)
        *at = (void *)(uintptr_t)device;
    if (err)
        *at = NULL;
    return err;
}

void cuda_free(struct gpu *gpu, enum gpu_memory kind, void *at)
{
    if (!at || !cuda_enter_quietly(gpu))
        return;
    if (kind == GPU_DEVICE || kind == GPU_MANAGED)
        gpu->driver->cuMemFree((CUdeviceptr)(uintptr_t)at);
    else
        gpu->driver->cuMemFreeHost(at);
}

int cuda_pin(struct gpu *gpu, void *at, size_t bytes)
{
    int err = wanted(gpu, bytes);

    if (err)
        return err;
    if (!gpu->base.facts.host_register)
        return cuda_error(gpu, -EOPNOTSUPP,
                          "this GPU's driver does not page-lock memory of others");
    err = CUDA(gpu, cuMemHostRegister, at, bytes,
               CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
    if (!err && (err = same_address(gpu, at)))
        gpu->driver->cuMemHostUnregister(at);
    return err;
}

void cuda_unpin(struct gpu *gpu, void *at)
{
    if (at && cuda_enter_quietly(gpu))
        gpu->driver->cuMemHostUnregister(at);
}

int cuda_alloc_ordered(struct gpu_stream *stream, size_t bytes, void **at)
{
    struct gpu *gpu = stream->gpu;
    CUdeviceptr device = 0;
    int err = wanted(gpu, bytes);

    if (!err)
        err = say_sizes(gpu, CUDA(gpu, cuMemAllocAsync, &device, bytes, stream->stream), bytes);
    *at = err ? NULL : (void *)(uintptr_t)device;
    return err;
}

int cuda_free_ordered(struct gpu_stream *stream, void *at)
{
    struct gpu *gpu = stream->gpu;
    int err = cuda_enter(gpu);

    return err ? err : CUDA(gpu, cuMemFreeAsync, (CUdeviceptr)(uintptr_t)at, stream->stream);
}
