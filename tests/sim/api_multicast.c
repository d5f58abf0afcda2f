/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One address for the memory of several devices. What the real driver would wait for without end, a
 * device that was not added before memory is bound or the object is mapped, is an error here; on demand a
 * call does wait (the fault `hang` with its name).
 */
#include "tests/sim/sim.h"

#include <unistd.h>

#define GRAIN_BYTES ((size_t)2 << 20)
#define BEST_BYTES  ((size_t)16 << 20)
#define OBJECTS     16
#define FIRST       1000 /* their numbers are no memory's */

struct sim_multicast {
    bool made, shareable;
    unsigned devices, added; /* how many there shall be; a bit for each that is */
    size_t bytes;
    CUmemGenericAllocationHandle bound[SIM_GPUS];
};

static struct sim_multicast objects[OBJECTS];

static unsigned count(unsigned bits)
{
    return (unsigned)__builtin_popcount(bits);
}

struct sim_multicast *sim_multicast_of(CUmemGenericAllocationHandle handle)
{
    return handle >= FIRST && handle < FIRST + OBJECTS && objects[handle - FIRST].made
               ? &objects[handle - FIRST]
               : NULL;
}

static CUresult check(struct sim *sim, const CUmulticastObjectProp *prop)
{
    return !prop->numDevices || prop->numDevices > sim->machine.gpus || prop->flags
               ? CUDA_ERROR_INVALID_VALUE
               : CUDA_SUCCESS;
}

/* Where this call is to hang for the device: it does, and holds up nobody else. */
static void hang(struct sim *sim, const char *call, unsigned gpu)
{
    if (!sim_fault_strikes(&sim->machine, SIM_HANG,
                           (struct sim_event){.gpu = (int)gpu, .peer = -1, .call = call}))
        return;
    pthread_mutex_unlock(&sim->lock);
    for (;;)
        pause();
}

CUresult cuMulticastGetGranularity(size_t *bytes, const CUmulticastObjectProp *prop,
                                   CUmulticastGranularity_flags option)
{
    struct sim *sim;
    CUresult rc = sim_enter(&sim, "cuMulticastGetGranularity");

    if (!rc)
        rc = check(sim, prop);
    *bytes = option == CU_MULTICAST_GRANULARITY_RECOMMENDED ? BEST_BYTES : GRAIN_BYTES;
    return sim_leave(sim, rc);
}

CUresult cuMulticastCreate(CUmemGenericAllocationHandle *handle, const CUmulticastObjectProp *prop)
{
    unsigned i = 0;
    struct sim *sim;
    CUresult rc = sim_enter(&sim, "cuMulticastCreate");

    if (!rc)
        rc = check(sim, prop);
    if (!rc && (!prop->size || prop->size % GRAIN_BYTES))
        rc = CUDA_ERROR_INVALID_VALUE;
    while (!rc && i < OBJECTS && objects[i].made)
        i++;
    if (!rc && i == OBJECTS)
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    if (!rc) {
        objects[i] = (struct sim_multicast){.made = true,
                                            .shareable = prop->handleTypes != 0,
                                            .devices = prop->numDevices,
                                            .bytes = prop->size};
        *handle = FIRST + i;
    }
    return sim_leave(sim, rc);
}

CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice device)
{
    struct sim_multicast *object;
    struct sim *sim;
    CUresult rc = sim_enter(&sim, "cuMulticastAddDevice");

    object = sim_multicast_of(handle);
    if (!rc && (device < 0 || (unsigned)device >= sim->machine.gpus))
        rc = CUDA_ERROR_INVALID_DEVICE;
    if (!rc && (!object || object->added >> device & 1 || count(object->added) == object->devices))
        rc = CUDA_ERROR_INVALID_VALUE;
    if (!rc && !sim->machine.gpu[device].multicast)
        rc = CUDA_ERROR_NOT_SUPPORTED;
    if (!rc)
        hang(sim, "cuMulticastAddDevice", (unsigned)device);
    if (!rc)
        object->added |= 1u << device;
    return sim_leave(sim, rc);
}

CUresult cuMulticastBindMem(CUmemGenericAllocationHandle handle, size_t at,
                            CUmemGenericAllocationHandle memory, size_t from, size_t bytes,
                            unsigned long long flags)
{
    struct sim_multicast *object;
    bool shareable = false;
    size_t has = 0;
    unsigned gpu = 0;
    struct sim *sim;
    CUresult rc = sim_enter(&sim, "cuMulticastBindMem");

    object = sim_multicast_of(handle);
    if (!rc && (!object || sim_handle_memory(memory, &gpu, &has, &shareable) || flags))
        rc = CUDA_ERROR_INVALID_VALUE;
    if (!rc && count(object->added) < object->devices)
        rc = CUDA_ERROR_ILLEGAL_STATE; /* it would wait */
    if (!rc &&
        (at || from || !bytes || bytes % GRAIN_BYTES || bytes > has || bytes > object->bytes ||
         !(object->added >> gpu & 1) || object->bound[gpu] || (object->shareable && !shareable)))
        rc = CUDA_ERROR_INVALID_VALUE;
    if (!rc)
        hang(sim, "cuMulticastBindMem", gpu);
    if (!rc)
        object->bound[gpu] = memory;
    return sim_leave(sim, rc);
}

CUresult cuMulticastUnbind(CUmemGenericAllocationHandle handle, CUdevice device, size_t at,
                           size_t bytes)
{
    struct sim_multicast *object;
    struct sim *sim;
    CUresult rc = sim_enter(&sim, "cuMulticastUnbind");

    object = sim_multicast_of(handle);
    if (!rc && (!object || at || bytes != object->bytes || device < 0 || device >= SIM_GPUS ||
                !object->bound[device]))
        rc = CUDA_ERROR_INVALID_VALUE;
    if (!rc)
        object->bound[device] = 0;
    return sim_leave(sim, rc);
}

CUresult sim_multicast_map(struct sim *sim, const struct sim_multicast *object,
                           const struct sim_block *block)
{
    hang(sim, "cuMemMap", block->gpu);
    if (block->bytes != object->bytes || !block->alignment || block->alignment % GRAIN_BYTES)
        return CUDA_ERROR_INVALID_VALUE;
    return count(object->added) < object->devices ? CUDA_ERROR_ILLEGAL_STATE : CUDA_SUCCESS;
}

void sim_multicast_release(struct sim_multicast *object)
{
    object->made = false;
}

unsigned sim_multicast_members(struct sim *sim, const struct sim_block *block,
                               const struct sim_block **member, unsigned most)
{
    const struct sim_multicast *object = block ? sim_multicast_of(block->mapped) : NULL;
    unsigned n = 0;

    for (size_t i = 0; object && i < sim->space.count && n < most; i++) {
        const struct sim_block *b = &sim->space.blocks[i];
        if (b->by_handle && b->mapped && !b->multicast && object->bound[b->gpu] == b->mapped)
            member[n++] = b;
    }
    return n;
}
