/* SPDX-License-Identifier: Apache-2.0 */
/* Memory by handles: made, exported, imported, and mapped at an address that was reserved. Who may
 * use it is said for each device. Memory with a fabric handle is a file without a name, which another
 * process of this user opens by the handle: both see the same bytes. */
#include "tests/sim/sim.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GRAIN_BYTES  ((size_t)2 << 20)
#define HANDLES      256
#define FABRIC       8
#define DIRT         0xa7
#define HANDLE_MAGIC UINT64_C(0x6661627269633032)

static struct {
    size_t bytes;
    unsigned gpu, users;     /* handles to it, and mappings */
    bool shareable, foreign; /* foreign: another process made it, on whatever GPU */
    bool again; /* this process made it, and has imported it: no one is known to map that */
    int file;   /* of memory with a fabric handle; else -1 */
} memory[HANDLES];

/* A fabric handle. */
struct handle {
    uint64_t magic, number, bytes;
    int64_t process, file;
    uint64_t unused[3];
};

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

static CUresult fabric_of(const struct sim_gpu *gpu)
{
    return !gpu->fabric ? CUDA_ERROR_NOT_SUPPORTED
           : !gpu->imex ? CUDA_ERROR_NOT_PERMITTED
                        : CUDA_SUCCESS;
}

/* Its first bytes are no zeros, as those of other memory. */
static int make_file(size_t bytes)
{
    int file = memfd_create("fabric", MFD_CLOEXEC);
    unsigned char dirt[4096];

    memset(dirt, DIRT, sizeof(dirt));
    if (file >= 0 && (ftruncate(file, (off_t)bytes) || write(file, dirt, sizeof(dirt)) < 0)) {
        close(file);
        file = -1;
    }
    return file;
}

/* 0: there is none. */
static unsigned unused(void)
{
    unsigned i = 1;

    while (i < HANDLES && memory[i].users)
        i++;
    return i < HANDLES ? i : 0;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *prop, unsigned long long flags)
{
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = enter(&sim, &device, "cuMemCreate");
    bool fabric = (int)prop->requestedHandleTypes == FABRIC;
    int file = -1;
    unsigned i = 0;

    if (!rc && (flags || !bytes || bytes % GRAIN_BYTES ||
                prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE || prop->location.id < 0 ||
                (unsigned)prop->location.id >= sim->machine.gpus))
        rc = CUDA_ERROR_INVALID_VALUE;
    if (!rc && fabric)
        rc = fabric_of(&sim->machine.gpu[prop->location.id]);
    if (!rc && !(i = unused()))
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    if (!rc && fabric && (file = make_file(bytes)) < 0)
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    if (!rc) {
        memory[i].bytes = bytes;
        memory[i].gpu = (unsigned)prop->location.id;
        memory[i].users = 1;
        memory[i].shareable = prop->requestedHandleTypes != 0;
        memory[i].foreign = memory[i].again = false;
        memory[i].file = file;
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
    if (!--memory[handle].users && memory[handle].file >= 0)
        close(memory[handle].file);
}

CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags)
{
    if (of_handle(handle) || (int)type != FABRIC || flags || memory[handle].file < 0 ||
        memory[handle].foreign || memory[handle].again)
        return CUDA_ERROR_INVALID_VALUE;
    const struct handle made = {.magic = HANDLE_MAGIC,
                                .number = handle,
                                .bytes = memory[handle].bytes,
                                .process = getpid(),
                                .file = memory[handle].file};

    memcpy(out, &made, sizeof(made)); /* bytes, aligned to nothing */
    return CUDA_SUCCESS;
}

/* Memory of another process: while that has it. */
static CUresult import_foreign(const struct handle *from, unsigned gpu,
                               CUmemGenericAllocationHandle *handle)
{
    unsigned i = unused();
    char path[64];
    int file;

    if (!i)
        return CUDA_ERROR_OUT_OF_MEMORY;
    snprintf(path, sizeof(path), "/proc/%lld/fd/%lld", (long long)from->process,
             (long long)from->file);
    file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0 || lseek(file, 0, SEEK_END) != (off_t)from->bytes) {
        if (file >= 0)
            close(file);
        return CUDA_ERROR_INVALID_VALUE;
    }
    memory[i].bytes = from->bytes;
    memory[i].gpu = gpu;
    memory[i].users = 1;
    memory[i].shareable = memory[i].foreign = true;
    memory[i].again = false;
    memory[i].file = file;
    *handle = i;
    return CUDA_SUCCESS;
}

/* Another number for memory of this process. */
static CUresult import_own(unsigned made, CUmemGenericAllocationHandle *handle)
{
    unsigned i = unused();

    if (of_handle(made))
        return CUDA_ERROR_INVALID_VALUE;
    if (!i)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memory[i] = memory[made];
    memory[i].users = 1;
    memory[i].again = true;
    memory[i].file = dup(memory[made].file);
    *handle = i;
    return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *from,
                                        CUmemAllocationHandleType type)
{
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = enter(&sim, &device, "cuMemImportFromShareableHandle");
    struct handle h;

    memcpy(&h, from, sizeof(h));
    if (!rc && ((int)type != FABRIC || h.magic != HANDLE_MAGIC))
        rc = CUDA_ERROR_INVALID_VALUE;
    if (!rc)
        rc = fabric_of(&sim->machine.gpu[device->index]);
    if (!rc)
        rc = h.process != getpid() ? import_foreign(&h, device->index, handle)
                                   : import_own((unsigned)h.number, handle);
    return sim_leave(sim, rc);
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

/* The room has these bytes from here on; file -1: none but its own. */
static CUresult show(struct sim *sim, const struct sim_block *block, int file)
{
    int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;

    return mmap(sim_bytes(sim, block->at), block->bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED,
                file, 0) == MAP_FAILED
               ? CUDA_ERROR_OUT_OF_MEMORY
               : CUDA_SUCCESS;
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
        rc = sim_multicast_map(sim, object, block);
    else if (!rc && (of_handle(handle) || memory[handle].bytes != bytes ||
                     memory[handle].gpu != block->gpu))
        rc = CUDA_ERROR_INVALID_VALUE;
    else if (!rc && memory[handle].again)
        rc = CUDA_ERROR_NOT_SUPPORTED;
    if (!rc && !object && memory[handle].file >= 0)
        rc = show(sim, block, memory[handle].file);
    if (!rc) {
        block->mapped = (unsigned)handle;
        block->multicast = object;
        block->foreign = !object && memory[handle].foreign;
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
        if (!block->multicast && memory[block->mapped].file >= 0)
            rc = show(sim, block, -1);
        if (!block->multicast)
            drop(block->mapped);
        block->mapped = block->access = 0;
        block->multicast = block->foreign = false;
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
