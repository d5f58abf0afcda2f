/* SPDX-License-Identifier: Apache-2.0 */
/* Devices opened and closed, and the ways between them. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/hw/cuda/gpu_cuda.h"

/* ---- What the driver tells of a device and of the way from one to another ---- */

/* 0 where the driver does not know it. */
static int attribute(CUdevice device, CUdevice_attribute what)
{
    int value = 0;

    return cuda_state()->driver.cuDeviceGetAttribute(&value, what, device) ? 0 : value;
}

static void set_uuid(struct gpu_facts *facts, CUdevice device)
{
    CUuuid uuid;
    char hex[33];

    if (cuda_state()->driver.cuDeviceGetUuid(&uuid, device))
        return;
    for (size_t i = 0; i < sizeof(uuid.bytes); i++)
        snprintf(hex + 2 * i, 3, "%02x", (unsigned char)uuid.bytes[i]);
    snprintf(facts->uuid, sizeof(facts->uuid), "%s-%.8s-%.4s-%.4s-%.4s-%.12s",
             strstr(facts->name, " MIG ") ? "MIG" : "GPU", hex, hex + 8, hex + 12, hex + 16,
             hex + 20);
}

/* The driver says it since 12.2; else what the kernel says of the PCI device. -1: neither does. */
static void set_node(struct gpu_facts *facts, CUdevice device)
{
    char path[128];

    facts->numa_node = -1;
    if (cuda_state()->driver.cuDeviceGetAttribute(&facts->numa_node, CUDA_ATTRIBUTE_HOST_NUMA_ID,
                                                  device) == CUDA_SUCCESS)
        return;
    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/numa_node", facts->address);
    FILE *file = facts->address[0] ? fopen(path, "re") : NULL;
    if (!file || fscanf(file, "%d", &facts->numa_node) != 1)
        facts->numa_node = -1;
    if (file)
        fclose(file);
}

static void set_shape(struct gpu_facts *facts, CUdevice device)
{
    facts->major = (unsigned)attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    facts->minor = (unsigned)attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    facts->sms = (unsigned)attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    facts->copy_engines = (unsigned)attribute(device, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
    facts->max_threads_per_sm =
        (unsigned)attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    facts->l2_bytes = (uint64_t)attribute(device, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    facts->clock_mhz = attribute(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE) / 1e3;
    facts->memory_clock_mhz = attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) / 1e3;
    facts->memory_bus_bits =
        (unsigned)attribute(device, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
    facts->ecc = attribute(device, CU_DEVICE_ATTRIBUTE_ECC_ENABLED);
    facts->integrated = attribute(device, CU_DEVICE_ATTRIBUTE_INTEGRATED);
    facts->managed = attribute(device, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
    facts->managed_concurrent = attribute(device, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
    facts->rdma = attribute(device, CUDA_ATTRIBUTE_RDMA);
    facts->dmabuf = attribute(device, CUDA_ATTRIBUTE_DMABUF);
    facts->fabric = attribute(device, CUDA_ATTRIBUTE_FABRIC);
    facts->multicast = attribute(device, CUDA_ATTRIBUTE_MULTICAST);
    facts->host_register = attribute(device, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED);
}

int cuda_facts(unsigned index, struct gpu_facts *facts)
{
    struct cuda_state *state = cuda_state();
    CUdevice device;
    size_t bytes = 0;

    *facts = (struct gpu_facts){.numa_node = -1};
    if (index >= state->count)
        return -ENODEV;
    CUresult result = state->driver.cuDeviceGet(&device, (int)index);
    if (result == CUDA_SUCCESS)
        result = state->driver.cuDeviceGetName(facts->name, sizeof(facts->name), device);
    if (result == CUDA_SUCCESS)
        result = state->driver.cuDeviceTotalMem(&bytes, device);
    if (result != CUDA_SUCCESS)
        return cuda_errno(result);
    facts->memory_bytes = bytes;
    if (cuda_state()->driver.cuDeviceGetPCIBusId(facts->address, sizeof(facts->address), device))
        facts->address[0] = 0;
    for (char *c = facts->address; *c; c++)
        *c = (char)tolower((unsigned char)*c); /* as the kernel writes it */
    set_uuid(facts, device);
    set_node(facts, device);
    set_shape(facts, device);
    facts->driver_version = state->driver.version;
    facts->toolkit_version = CUDA_VERSION;
    return 0;
}

int cuda_link(unsigned from, unsigned to, struct gpu_link *link)
{
    const struct cuda_state *state = cuda_state();
    const struct cuda_driver *driver = &state->driver;
    CUdevice one, other;
    int access = 0, atomics = 0;

    *link = (struct gpu_link){.performance = -1};
    if (from >= state->count || to >= state->count || from == to)
        return -EINVAL;
    CUresult result = driver->cuDeviceGet(&one, (int)from);
    if (result == CUDA_SUCCESS)
        result = driver->cuDeviceGet(&other, (int)to);
    if (result == CUDA_SUCCESS)
        result = driver->cuDeviceCanAccessPeer(&access, one, other);
    if (result != CUDA_SUCCESS)
        return cuda_errno(result);
    link->access = access;
    if (driver->cuDeviceGetP2PAttribute(&atomics, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED,
                                        one, other) == CUDA_SUCCESS)
        link->atomics = atomics;
    if (driver->cuDeviceGetP2PAttribute(&link->performance,
                                        CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, one,
                                        other) != CUDA_SUCCESS)
        link->performance = -1;
    return 0;
}

/* ---- Memory of every kind, taken and given back ---- */

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

/* Page-locked memory is to be good on both sides by one address: where the driver maps it
 * elsewhere, it is not used. Write-combined memory is not asked about: the driver's manual lets it
 * have two addresses, and copies take the host's. */
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
    case GPU_FABRIC:
        err = say_sizes(gpu, cuda_fabric_alloc(gpu, bytes, &device), bytes);
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
    if (kind == GPU_FABRIC)
        cuda_fabric_free(gpu, (CUdeviceptr)(uintptr_t)at);
    else if (kind == GPU_DEVICE || kind == GPU_MANAGED)
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

/* Memory of the device for other devices: as a file that they can register, and when what they
 * wrote is there. */

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
        attribute(gpu->device, CUDA_ATTRIBUTE_RDMA_ORDERING) >= CUDA_RDMA_ORDERED ||
        !(attribute(gpu->device, CUDA_ATTRIBUTE_RDMA_FLUSH) & CUDA_RDMA_FLUSH_BY_HOST))
        return err;
    return CUDA(gpu, cuFlushGPUDirectRDMAWrites, 0 /* this context */, CUDA_RDMA_TO_OWNER);
}

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
    struct gpu *gpu = xcalloc(1, sizeof(*gpu));

    *out = NULL;
    gpu->base.ops = &plumb_gpu_module;
    gpu->base.index = index;
    gpu->driver = &state->driver;
    int err = cuda_facts(index, &gpu->base.facts);
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
        cuda_fabric_clear(gpu);
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
    if (gpu->base.lost && gpu->base.index < CUDA_GPUS_MAX) {
        cuda_state()->reset[gpu->base.index] = true;
        cuda_fabric_leave(gpu);
    }
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
