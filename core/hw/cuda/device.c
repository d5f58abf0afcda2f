/* SPDX-License-Identifier: Apache-2.0 */
/* Devices opened and closed, and the ways between them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/hw/cuda/gpu_cuda.h"

/* The context of a device that was lost fails every call until it is taken down. */
static int retain(struct gpu *gpu, bool reset)
{
    int err = CUDA(gpu, cuDeviceGet, &gpu->device, (int)gpu->base.index);

    if (!err && reset)
        err = CUDA(gpu, cuDevicePrimaryCtxReset, gpu->device);
    cuda_forget_contexts();
    return err ? err : CUDA(gpu, cuDevicePrimaryCtxRetain, &gpu->context, gpu->device);
}

int cuda_open(unsigned index, struct gpu **out, char *error, size_t len)
{
    struct cuda_state *state = cuda_state();
    struct gpu *gpu = calloc(1, sizeof(*gpu));
    int err;

    *out = NULL;
    if (!gpu) {
        snprintf(error, len, "out of memory");
        return -ENOMEM;
    }
    gpu->base.ops = &plumb_gpu_module;
    gpu->base.index = index;
    gpu->driver = &state->driver;
    err = cuda_facts(index, &gpu->base.facts);
    if (err)
        cuda_error(gpu, err, "the driver does not answer for GPU %u: nvidia-smi -L", index);
    else
        err = retain(gpu, state->reset[index]);
    if (err && state->reset[index])
        cuda_error_add(gpu, err, "; this GPU was lost before: dmesg | grep -i xid");
    if (!err) {
        state->reset[index] = false;
        err = cuda_enter(gpu);
    }
    if (!err) {
        *out = gpu;
        return 0;
    }
    snprintf(error, len, "%s", gpu->base.error);
    cuda_close(gpu);
    return err;
}

void cuda_close(struct gpu *gpu)
{
    if (!gpu)
        return;
    cuda_kernels_close(gpu);
    if (gpu->context)
        gpu->driver->cuDevicePrimaryCtxRelease(gpu->device);
    cuda_forget_contexts();
    if (gpu->base.lost && gpu->base.index < CUDA_GPUS_MAX)
        cuda_state()->reset[gpu->base.index] = true;
    free(gpu);
}

int cuda_peer(struct gpu *gpu, struct gpu *other, bool enable)
{
    CUresult result;
    int err = cuda_enter(gpu);

    if (err)
        return err;
    if (gpu == other)
        return cuda_error(gpu, -EINVAL, "a GPU is no peer of its own");
    result = enable ? gpu->driver->cuCtxEnablePeerAccess(other->context, 0)
                    : gpu->driver->cuCtxDisablePeerAccess(other->context);
    if (result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED ||
        result == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED)
        return 0; /* as it was asked for */
    err = cuda_check(gpu, result, enable ? "cuCtxEnablePeerAccess" : "cuCtxDisablePeerAccess");
    return err ? cuda_error_add(gpu, err, " (from %s to %s)", gpu->base.facts.address,
                                other->base.facts.address)
               : 0;
}
