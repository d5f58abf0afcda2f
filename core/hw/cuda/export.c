/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the device for other devices: as a file that they can register, and when what they wrote is there. */
#include <errno.h>
#include <stdint.h>
#include <unistd.h>

#include "core/hw/cuda/gpu_cuda.h"

static int attribute(const struct gpu *gpu, CUdevice_attribute what)
{
    int value = 0;

    return gpu->driver->cuDeviceGetAttribute(&value, what, gpu->device) ? 0 : value;
}

/* What the driver's own code would not say. */
static int can_export(struct gpu *gpu)
{
    if (!gpu->driver->cuMemGetHandleForAddressRange)
        return cuda_error(gpu, -EOPNOTSUPP,
                          "this CUDA driver does not export memory as dma-buf: 11.7 does");
    if (!gpu->base.facts.dmabuf)
        return cuda_error(gpu, -EOPNOTSUPP,
                          "the CUDA driver exports no memory of this GPU as dma-buf (%s): it wants "
                          "NVIDIA's open kernel modules and Linux 5.12",
                          gpu->base.facts.rdma ? "GPUDirect RDMA is there"
                                               : "nor has it GPUDirect RDMA");
    return 0;
}

int cuda_export(struct gpu *gpu, void *at, size_t bytes, int *fd)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int err = cuda_enter(gpu);

    *fd = -1;
    if (!err)
        err = can_export(gpu);
    if (!err && (!bytes || bytes % page || (uintptr_t)at % page))
        err = cuda_error(gpu, -EINVAL, "asked to export %zu bytes at %p: whole pages of %zu are",
                         bytes, at, page);
    if (!err)
        err = CUDA(gpu, cuMemGetHandleForAddressRange, fd, (CUdeviceptr)(uintptr_t)at, bytes,
                   CUDA_RANGE_DMABUF, 0);
    if (err)
        *fd = -1;
    return err;
}

int cuda_flush_writes(struct gpu *gpu)
{
    int err = cuda_enter(gpu);

    if (err || !gpu->driver->cuFlushGPUDirectRDMAWrites ||
        attribute(gpu, CUDA_ATTRIBUTE_RDMA_ORDERING) >= CUDA_RDMA_ORDERED ||
        !(attribute(gpu, CUDA_ATTRIBUTE_RDMA_FLUSH) & CUDA_RDMA_FLUSH_BY_HOST))
        return err;
    return CUDA(gpu, cuFlushGPUDirectRDMAWrites, 0 /* this context */, CUDA_RDMA_TO_OWNER);
}
