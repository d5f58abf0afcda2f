/* SPDX-License-Identifier: Apache-2.0 */
/* Memory with a fabric handle, by which a GPU of another node reaches it: made, exported and mapped by
 * its owner, imported and mapped by the other. NVLink between nodes works in no other way. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/hw/cuda/gpu_cuda.h"

#define FABRIC              ((CUmemAllocationHandleType)8) /* since 12.3 */
#define RESULT_NOT_PERMIT   ((CUresult)800)
#define RESULT_NO_SUPPORT   ((CUresult)801)
#define RESULT_SYSTEM_READY ((CUresult)802)

struct cuda_mapping {
    struct cuda_mapping *next;
    CUdeviceptr at;
    size_t bytes;
    CUmemGenericAllocationHandle memory; /* what is mapped: made here, or imported */
    bool made;                           /* here; else by another process, whose handle it is */
    unsigned char handle[GPU_HANDLE_BYTES];
};

static int refuse(struct gpu *gpu)
{
    if (!gpu->driver->cuMemCreate || !gpu->driver->cuMemImportFromShareableHandle)
        return cuda_error(gpu, -EOPNOTSUPP, "this CUDA driver has no fabric handles: 12.3 has");
    if (!gpu->base.facts.fabric)
        return cuda_error(gpu, -EOPNOTSUPP,
                          "the CUDA driver exports no memory of this GPU as a fabric handle: it "
                          "wants NVLink over switches, and the fabric manager");
    return 0;
}

static CUmemAllocationProp properties(const struct gpu *gpu)
{
    return (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = FABRIC,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = gpu->device},
    };
}

static int import(struct gpu *gpu, struct cuda_mapping *m, CUmemGenericAllocationHandle *memory)
{
    CUresult result = gpu->driver->cuMemImportFromShareableHandle(memory, m->handle, FABRIC);
    int err = cuda_check(gpu, result, "cuMemImportFromShareableHandle");

    /* Where the daemon of this host or of the other one is not at work, or knows the other not, the
     * driver refuses what was exported there. */
    if (result == RESULT_NOT_PERMIT || result == RESULT_NO_SUPPORT || result == RESULT_SYSTEM_READY)
        return cuda_error_add(gpu, -EOPNOTSUPP,
                              ": the service nvidia-imex must run on both hosts, and both must be "
                              "in /etc/nvidia-imex/nodes_config.cfg");
    return err;
}

/* The handle is good as long as what was made is there. */
static int make(struct gpu *gpu, struct cuda_mapping *m)
{
    const struct cuda_driver *driver = gpu->driver;
    CUmemAllocationProp prop = properties(gpu);
    CUmemGenericAllocationHandle imported;
    CUresult result = driver->cuMemCreate(&m->memory, m->bytes, &prop, 0);

    /* The IMEX channel is a device node that the administrator makes. */
    if (result == RESULT_NOT_PERMIT)
        return cuda_error(gpu, -EOPNOTSUPP,
                          "cuMemCreate: no IMEX channel may be opened: nvidia-modprobe -i 0, and "
                          "the service nvidia-imex (ls /dev/nvidia-caps-imex-channels)");
    int err = cuda_check(gpu, result, "cuMemCreate");
    if (err)
        return err;
    m->made = true;
    err = CUDA(gpu, cuMemExportToShareableHandle, m->handle, m->memory, FABRIC, 0);
    /* Whether a handle can be imported at all is seen here, as NCCL sees it (mnnvl.cc): its owner
     * imports it, and maps nothing by that. Neither NCCL nor nvbandwidth maps what its own process
     * has exported. */
    if (!err)
        err = import(gpu, m, &imported);
    if (!err)
        err = CUDA(gpu, cuMemRelease, imported);
    if (err)
        driver->cuMemRelease(m->memory);
    return err;
}

/* For the GPU itself and, of its own memory, all that reach it: cuCtxEnablePeerAccess() is not for
 * mapped memory. */
static int open_access(struct gpu *gpu, const struct cuda_mapping *m)
{
    const struct cuda_state *state = cuda_state();
    CUmemAccessDesc access[CUDA_GPUS_MAX];
    size_t n = 0;

    for (unsigned i = 0; i < state->count; i++) {
        CUdevice device;
        int reaches = 0;
        if (gpu->driver->cuDeviceGet(&device, (int)i))
            continue;
        if (device != gpu->device &&
            (!m->made || gpu->driver->cuDeviceCanAccessPeer(&reaches, device, gpu->device) ||
             !reaches))
            continue;
        access[n++] =
            (CUmemAccessDesc){.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    }
    return CUDA(gpu, cuMemSetAccess, m->at, m->bytes, access, n);
}

static int map(struct gpu *gpu, struct cuda_mapping *m)
{
    int err = CUDA(gpu, cuMemAddressReserve, &m->at, m->bytes, 0, 0, 0);

    if (err)
        return err;
    err = CUDA(gpu, cuMemMap, m->at, m->bytes, 0, m->memory, 0);
    if (!err) {
        err = open_access(gpu, m);
        if (err)
            gpu->driver->cuMemUnmap(m->at, m->bytes);
    }
    if (err)
        gpu->driver->cuMemAddressFree(m->at, m->bytes);
    return err;
}

/* Made here, or by another process, whose handle it is. */
static int take(struct gpu *gpu, size_t bytes, const unsigned char *handle, CUdeviceptr *at)
{
    struct cuda_mapping *m = xcalloc(1, sizeof(*m));
    CUmemAllocationProp prop = properties(gpu);
    size_t grain = 0;
    int err = refuse(gpu);

    if (!err)
        err = CUDA(gpu, cuMemGetAllocationGranularity, &grain, &prop,
                   CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    if (!err) {
        m->bytes = (bytes + grain - 1) / grain * grain;
        if (handle)
            memcpy(m->handle, handle, sizeof(m->handle));
        err = handle ? import(gpu, m, &m->memory) : make(gpu, m);
    }
    if (err) {
        free(m);
        return err;
    }
    err = map(gpu, m);
    if (err) {
        gpu->driver->cuMemRelease(m->memory);
        free(m);
        return err;
    }
    m->next = gpu->mappings;
    gpu->mappings = m;
    *at = m->at;
    return 0;
}

int cuda_fabric_alloc(struct gpu *gpu, size_t bytes, CUdeviceptr *at)
{
    return take(gpu, bytes, NULL, at);
}

int cuda_share(struct gpu *gpu, const void *at, unsigned char handle[GPU_HANDLE_BYTES])
{
    const struct cuda_mapping *m = gpu->mappings;

    while (m && m->at != (CUdeviceptr)(uintptr_t)at)
        m = m->next;
    if (!m || !m->made)
        return cuda_error(gpu, -EINVAL, "no memory of this process with a fabric handle");
    memcpy(handle, m->handle, sizeof(m->handle));
    return 0;
}

int cuda_reach(struct gpu *gpu, const unsigned char handle[GPU_HANDLE_BYTES], size_t bytes,
               void **at)
{
    CUdeviceptr device = 0;
    int err = cuda_enter(gpu);

    *at = NULL;
    if (!err)
        err = take(gpu, bytes, handle, &device);
    if (!err)
        *at = (void *)(uintptr_t)device;
    return err;
}

static void drop(struct gpu *gpu, struct cuda_mapping *m)
{
    gpu->driver->cuMemUnmap(m->at, m->bytes);
    gpu->driver->cuMemRelease(m->memory);
    gpu->driver->cuMemAddressFree(m->at, m->bytes);
    free(m);
}

void cuda_fabric_free(struct gpu *gpu, CUdeviceptr at)
{
    struct cuda_mapping **link = &gpu->mappings, *m;

    while (*link && (*link)->at != at)
        link = &(*link)->next;
    m = *link;
    if (!m || gpu->base.lost)
        return;
    *link = m->next;
    drop(gpu, m);
}

void cuda_fabric_leave(struct gpu *gpu)
{
    struct cuda_mapping **left = &cuda_state()->left[gpu->base.index], *m;

    while ((m = gpu->mappings)) {
        gpu->mappings = m->next;
        m->next = *left;
        *left = m;
    }
}

void cuda_fabric_clear(struct gpu *gpu)
{
    struct cuda_mapping **left = &cuda_state()->left[gpu->base.index], *m;

    while ((m = *left)) {
        *left = m->next;
        drop(gpu, m);
    }
}
