/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the device, of the host, and of both. */
#include "tests/sim/sim.h"

static uint64_t free_bytes(const struct sim *sim, const struct sim_device *device)
{
    const struct sim_gpu *gpu = &sim->machine.gpu[device->index];
    uint64_t used = sim->space.used_bytes[device->index] + gpu->reserved_bytes;

    return used < gpu->memory_bytes ? gpu->memory_bytes - used : 0;
}

/* What every allocation begins with. */
static CUresult enter(struct sim **sim, struct sim_device **device, const char *call, size_t bytes)
{
    CUresult rc = sim_enter_device(sim, device, call);

    if (rc)
        return rc;
    if (sim_capturing(*sim))
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    sim_call_cost(*sim, *device);
    return sim_fault_strikes(
               &(*sim)->machine, SIM_OUT_OF_MEMORY,
               (struct sim_event){
                   .gpu = (int)(*device)->index, .peer = -1, .call = call, .bytes = bytes})
               ? CUDA_ERROR_OUT_OF_MEMORY
               : CUDA_SUCCESS;
}

static CUresult take(struct sim *sim, const struct sim_device *device, int arena, size_t bytes,
                     enum sim_place place, void **at)
{
    if (arena != SIM_HOST_ARENA && bytes > free_bytes(sim, device))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *at = sim_space_take(sim, arena, bytes, place, device->index);
    return *at ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemGetInfo(size_t *free, size_t *total)
{
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = sim_enter_device(&sim, &device, "cuMemGetInfo");

    if (!rc) {
        sim_call_cost(sim, device);
        *free = free_bytes(sim, device);
        *total = sim->machine.gpu[device->index].memory_bytes;
    }
    return sim_leave(sim, rc);
}

CUresult cuMemAlloc(CUdeviceptr *at, size_t bytes)
{
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = enter(&sim, &device, "cuMemAlloc", bytes);
    void *taken = NULL;

    rc = rc ? rc : take(sim, device, (int)device->index, bytes, SIM_DEVICE, &taken);
    *at = (CUdeviceptr)taken;
    return sim_leave(sim, rc);
}

CUresult cuMemHostAlloc(void **at, size_t bytes, unsigned flags)
{
    const unsigned known =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = enter(&sim, &device, "cuMemHostAlloc", bytes);

    *at = NULL;
    if (!rc && (flags & ~known))
        rc = CUDA_ERROR_INVALID_VALUE;
    rc = rc ? rc
            : take(sim, device, SIM_HOST_ARENA, bytes,
                   flags & CU_MEMHOSTALLOC_WRITECOMBINED ? SIM_COMBINED : SIM_PINNED, at);
    return sim_leave(sim, rc);
}

CUresult cuMemAllocManaged(CUdeviceptr *at, size_t bytes, unsigned flags)
{
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = enter(&sim, &device, "cuMemAllocManaged", bytes);
    void *taken = NULL;

    if (!rc && flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)
        rc = CUDA_ERROR_INVALID_VALUE;
    if (!rc && (!sim->machine.gpu[device->index].managed ||
                sim_fault_has(&sim->machine, SIM_NO_MANAGED, (int)device->index, -1)))
        rc = CUDA_ERROR_NOT_SUPPORTED;
    rc = rc ? rc : take(sim, device, SIM_HOST_ARENA, bytes, SIM_MANAGED, &taken);
    *at = (CUdeviceptr)taken;
    return sim_leave(sim, rc);
}

/* Waits for the device, as the real one does, and gives the block back. */
static CUresult give_back(struct sim *sim, const struct sim_device *device, uintptr_t at,
                          bool host_pages)
{
    struct sim_block *block = sim_space_find(sim, at);
    bool host;
    CUresult rc;

    if (sim_capturing(sim))
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (!block || block->at != at || block->registered || block->returned)
        return CUDA_ERROR_INVALID_VALUE;
    host = block->place == SIM_PINNED || block->place == SIM_COMBINED;
    if (host != host_pages)
        return CUDA_ERROR_INVALID_VALUE;
    sim_call_cost(sim, device);
    rc = sim_wait_device(sim, block->gpu);
    block = sim_space_find(sim, at); /* the table may have moved meanwhile */
    if (!rc && block)
        sim_space_give_back(sim, block);
    return rc;
}

CUresult cuMemFree(CUdeviceptr at)
{
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = sim_enter_device(&sim, &device, "cuMemFree");

    if (!rc && at)
        rc = give_back(sim, device, (uintptr_t)at, false);
    return sim_leave(sim, rc);
}

CUresult cuMemFreeHost(void *at)
{
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = sim_enter_device(&sim, &device, "cuMemFreeHost");

    if (!rc && at)
        rc = give_back(sim, device, (uintptr_t)at, true);
    return sim_leave(sim, rc);
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr *seen, void *at, unsigned flags)
{
    struct sim_device *device;
    struct sim_block *block;
    struct sim *sim;
    CUresult rc = sim_enter_device(&sim, &device, "cuMemHostGetDevicePointer");

    block = rc ? NULL : sim_space_find(sim, (uintptr_t)at);
    if (!rc && (flags || !block || block->place == SIM_DEVICE))
        rc = CUDA_ERROR_INVALID_VALUE;
    if (!rc)
        *seen = (CUdeviceptr)at;
    return sim_leave(sim, rc);
}

CUresult cuMemHostRegister(void *at, size_t bytes, unsigned flags)
{
    const unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = enter(&sim, &device, "cuMemHostRegister", bytes);

    if (!rc && (!at || (flags & ~known)))
        rc = CUDA_ERROR_INVALID_VALUE;
    if (!rc && !sim->machine.gpu[device->index].host_register)
        rc = CUDA_ERROR_NOT_SUPPORTED;
    if (!rc &&
        (sim_space_find(sim, (uintptr_t)at) || sim_space_find(sim, (uintptr_t)at + bytes - 1)))
        rc = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    if (!rc && sim_space_register(sim, (uintptr_t)at, bytes, device->index))
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    return sim_leave(sim, rc);
}

CUresult cuMemHostUnregister(void *at)
{
    struct sim_device *device;
    struct sim_block *block;
    struct sim *sim;
    CUresult rc = sim_enter_device(&sim, &device, "cuMemHostUnregister");

    block = rc ? NULL : sim_space_find(sim, (uintptr_t)at);
    if (!rc && (!block || block->at != (uintptr_t)at || !block->registered))
        rc = CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    rc = rc ? rc : sim_wait_device(sim, block->gpu);
    if (!rc)
        sim_space_give_back(sim, sim_space_find(sim, (uintptr_t)at));
    return sim_leave(sim, rc);
}

/* In stream order: there at once, and gone when the stream has come to where it was freed; a pool
 * hands the bytes on before that, to the same stream. */
CUresult cuMemAllocAsync(CUdeviceptr *at, size_t bytes, CUstream handle)
{
    struct sim_stream *stream;
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = enter(&sim, &device, "cuMemAllocAsync", bytes);
    void *taken = NULL;

    rc = rc ? rc : sim_stream_of(sim, device, handle, &stream);
    rc = rc ? rc : take(sim, device, (int)device->index, bytes, SIM_DEVICE, &taken);
    *at = (CUdeviceptr)taken;
    return sim_leave(sim, rc);
}

CUresult cuMemFreeAsync(CUdeviceptr at, CUstream handle)
{
    struct sim_op op = {.kind = SIM_OP_FREE, .free_at = (uintptr_t)at};
    struct sim_stream *stream;
    struct sim_device *device;
    struct sim_block *block;
    struct sim *sim;
    CUresult rc = sim_enter_device(&sim, &device, "cuMemFreeAsync");

    rc = rc ? rc : sim_stream_of(sim, device, handle, &stream);
    block = rc ? NULL : sim_space_find(sim, (uintptr_t)at);
    if (!rc &&
        (!block || block->at != (uintptr_t)at || block->place != SIM_DEVICE || block->returned))
        rc = CUDA_ERROR_INVALID_VALUE;
    rc = rc ? rc : sim_submit(sim, stream, &op);
    if (!rc) {
        block = sim_space_find(sim, (uintptr_t)at);
        sim->space.used_bytes[block->gpu] -= (block->bytes + 65535) & ~(size_t)65535;
        block->returned = true;
    }
    return sim_leave(sim, rc);
}
