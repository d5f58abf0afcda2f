/* SPDX-License-Identifier: Apache-2.0 */
/* Memory by handles: made, exported, imported, and mapped at an address that was reserved. Who may
 * use it is said for each device. */
#include "tests/sim/sim.h"

#include <string.h>

#define GRAIN_BYTES  ((size_t)2 << 20)
#define HANDLES      256
#define FABRIC       8
#define HANDLE_MAGIC UINT64_C(0x6661627269633031)

static struct {
    size_t bytes;
    unsigned gpu, users; /* handles to it, and mappings */
    bool shareable;
} memory[HANDLES];

static CUresult enter(struct sim **sim, struct sim_device **device, const char *call)
{
    return sim_enter_device(sim, device, call);
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                       CUmemAllocationGranularity_flags option)
{
    (void)option;
    *granularity = GRAIN_BYTES;
    return prop->type == CU_MEM_ALLOCATION_TYPE_PINNED ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *prop, unsigned long long flags)
{
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = enter(&sim, &device, "cuMemCreate");
    unsigned i = 1;

    if (!rc && (flags || !bytes || bytes % GRAIN_BYTES ||
                prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE || prop->location.id < 0 ||
                (unsigned)prop->location.id >= sim->machine.gpus))
        rc = CUDA_ERROR_INVALID_VALUE;
    if (!rc && (int)prop->requestedHandleTypes == FABRIC) {
        const struct sim_gpu *gpu = &sim->machine.gpu[prop->location.id];
        rc = !gpu->fabric ? CUDA_ERROR_NOT_SUPPORTED
             : !gpu->imex ? CUDA_ERROR_NOT_PERMITTED
                          : CUDA_SUCCESS;
    }
    while (!rc && i < HANDLES && memory[i].users)
        i++;
    if (!rc && i == HANDLES)
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    if (!rc) {
        memory[i].bytes = bytes;
        memory[i].gpu = (unsigned)prop->location.id;
        memory[i].users = 1;
        memory[i].shareable = prop->requestedHandleTypes != 0;
        *handle = i;
    }
    return sim_leave(sim, rc);
}

static CUresult of_handle(CUmemGenericAllocationHandle handle)
{
    return handle && handle < HANDLES && memory[handle].users ? CUDA_SUCCESS
                                                              : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_handle_memory(CUmemGenericAllocationHandle handle, unsigned *gpu, size_t *bytes,
                           bool *shareable)
{
    if (of_handle(handle))
        return CUDA_ERROR_INVALID_VALUE;
    *gpu = memory[handle].gpu;
    *bytes = memory[handle].bytes;
    *shareable = memory[handle].shareable;
    return CUDA_SUCCESS;
}

static void drop(CUmemGenericAllocationHandle handle)
{
    memory[handle].users--;
}

CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags)
{
    uint64_t words[8] = {HANDLE_MAGIC, handle};

    if (of_handle(handle) || (int)type != FABRIC || flags)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(out, words, sizeof(words));
    return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *from,
                                        CUmemAllocationHandleType type)
{
    uint64_t words[2];

    memcpy(words, from, sizeof(words));
    if ((int)type != FABRIC || words[0] != HANDLE_MAGIC || of_handle(words[1]))
        return CUDA_ERROR_INVALID_VALUE;
    memory[words[1]].users++;
    *handle = words[1];
    return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    struct sim_multicast *object = sim_multicast_of(handle);
    CUresult rc = object ? CUDA_SUCCESS : of_handle(handle);

    if (object)
        sim_multicast_release(object);
    else if (!rc)
        drop(handle);
    return rc;
}

static void mark_reserved(struct sim_block *block, size_t alignment)
{
    block->by_handle = true;
    block->alignment = alignment;
}

/* The room is that of the current device: nothing is mapped there that is another's. */
CUresult cuMemAddressReserve(CUdeviceptr *at, size_t bytes, size_t alignment, CUdeviceptr address,
                             unsigned long long flags)
{
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = enter(&sim, &device, "cuMemAddressReserve");
    void *taken = NULL;

    if (!rc && (!bytes || bytes % GRAIN_BYTES || (alignment & (alignment - 1)) || address || flags))
        rc = CUDA_ERROR_INVALID_VALUE;
    if (!rc && !(taken = sim_space_take(sim, (int)device->index, bytes, SIM_DEVICE, device->index)))
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    if (!rc)
        mark_reserved(sim_space_find(sim, (uintptr_t)taken), alignment);
    *at = (CUdeviceptr)taken;
    return sim_leave(sim, rc);
}

static struct sim_block *reserved(struct sim *sim, CUdeviceptr at, size_t bytes)
{
    struct sim_block *block = sim_space_find(sim, (uintptr_t)at);

    return block && block->by_handle && block->at == (uintptr_t)at && block->bytes == bytes ? block
                                                                                            : NULL;
}

CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = enter(&sim, &device, "cuMemMap");
    struct sim_block *block = rc ? NULL : reserved(sim, at, bytes);
    const struct sim_multicast *object = sim_multicast_of(handle);

    if (!rc && (!block || block->mapped || offset || flags))
        rc = CUDA_ERROR_INVALID_VALUE;
    if (!rc && object)
        rc = sim_multicast_map(object, block);
    else if (!rc && (of_handle(handle) || memory[handle].bytes != bytes ||
                     memory[handle].gpu != block->gpu))
        rc = CUDA_ERROR_INVALID_VALUE;
    if (!rc) {
        block->mapped = (unsigned)handle;
        block->multicast = object;
        block->access = 0;
    }
    if (!rc && !object)
        memory[handle].users++;
    return sim_leave(sim, rc);
}

CUresult cuMemSetAccess(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *desc, size_t count)
{
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = enter(&sim, &device, "cuMemSetAccess");
    struct sim_block *block = rc ? NULL : reserved(sim, at, bytes);

    if (!rc && (!block || !block->mapped || !count))
        rc = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; !rc && i < count; i++)
        if (desc[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            block->access |= 1u << desc[i].location.id;
    return sim_leave(sim, rc);
}

CUresult cuMemUnmap(CUdeviceptr at, size_t bytes)
{
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = enter(&sim, &device, "cuMemUnmap");
    struct sim_block *block = rc ? NULL : reserved(sim, at, bytes);

    if (!rc && (!block || !block->mapped))
        rc = CUDA_ERROR_INVALID_VALUE;
    if (!rc) {
        if (!block->multicast)
            drop(block->mapped);
        block->mapped = block->access = 0;
        block->multicast = false;
    }
    return sim_leave(sim, rc);
}

CUresult cuMemAddressFree(CUdeviceptr at, size_t bytes)
{
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = enter(&sim, &device, "cuMemAddressFree");
    struct sim_block *block = rc ? NULL : reserved(sim, at, bytes);

    if (!rc && (!block || block->mapped))
        rc = CUDA_ERROR_INVALID_VALUE;
    if (!rc)
        sim_space_give_back(sim, block);
    return sim_leave(sim, rc);
}
