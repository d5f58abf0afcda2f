/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory for RDMA devices: exported as a file, and what they wrote made sure of. */
#include "core/hw/cuda/gpu_cuda.h"
#include "tests/sim/export.h"
#include "tests/sim/sim.h"

#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u

/* The block that all of the range is in. */
static struct sim_block *device_block(struct sim *sim, uintptr_t at, size_t bytes)
{
    struct sim_block *block = sim_space_find(sim, at);

    return block && block->place == SIM_DEVICE && bytes <= block->bytes - (at - block->at) ? block
                                                                                           : NULL;
}

static int make_file(const struct sim_export *export)
{
    int fd = memfd_create("plumb-sim-dmabuf", MFD_CLOEXEC);

    if (fd >= 0 && write(fd, export, sizeof(*export)) != (ssize_t)sizeof(*export)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static CUresult export_range(struct sim *sim, uintptr_t at, size_t bytes, int *fd)
{
    struct sim_export export = {SIM_EXPORT_MAGIC, at, bytes};
    const struct sim_block *block = device_block(sim, at, bytes);

    if (!block || !bytes || at % PAGE || bytes % PAGE)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim->machine.gpu[block->gpu].dmabuf)
        return CUDA_ERROR_NOT_SUPPORTED;
    *fd = make_file(&export);
    return *fd < 0 ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}

#if CUDA_VERSION >= 11070
CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr at, size_t bytes,
                                       CUmemRangeHandleType kind, unsigned long long flags)
#else
CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr at, size_t bytes, int kind,
                                       unsigned long long flags);
CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr at, size_t bytes, int kind,
                                       unsigned long long flags)
#endif
{
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = sim_enter_device(&sim, &device, "cuMemGetHandleForAddressRange");

    if (!rc && ((int)kind != CUDA_RANGE_DMABUF || flags))
        rc = CUDA_ERROR_INVALID_VALUE;
    return sim_leave(sim, rc ? rc : export_range(sim, (uintptr_t)at, bytes, handle));
}

static CUresult flush(int target, int scope)
{
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = sim_enter_device(&sim, &device, "cuFlushGPUDirectRDMAWrites");

    if (!rc && (target || scope != CUDA_RDMA_TO_OWNER))
        rc = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; !rc && i < sim->space.count; i++)
        if (sim->space.blocks[i].place == SIM_DEVICE && sim->space.blocks[i].gpu == device->index)
            sim->space.blocks[i].flushed = true;
    return sim_leave(sim, rc);
}

#if CUDA_VERSION >= 11030
CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target,
                                    CUflushGPUDirectRDMAWritesScope scope)
#else
CUresult cuFlushGPUDirectRDMAWrites(int target, int scope);
CUresult cuFlushGPUDirectRDMAWrites(int target, int scope)
#endif
{
    return flush((int)target, (int)scope);
}

bool sim_export_stale(struct sim *sim, uintptr_t at)
{
    struct sim_block *block = sim_space_find(sim, at);
    bool stale = block && block->shared && !block->flushed && block->place == SIM_DEVICE &&
                 sim->machine.gpu[block->gpu].rdma_flush;

    if (block)
        block->flushed = false;
    return stale;
}

void *plumb_sim_share(uintptr_t at, size_t bytes)
{
    struct sim *sim;
    CUresult rc = sim_enter(&sim, "plumb_sim_share");
    struct sim_block *block = rc ? NULL : device_block(sim, at, bytes);
    void *found = NULL;

    if (block && sim->machine.gpu[block->gpu].rdma) {
        block->shared = true;
        sim_forget(sim, block->at, block->bytes);
        found = sim_bytes(sim, at);
    }
    sim_leave(sim, rc);
    return found;
}
