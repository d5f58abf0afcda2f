/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver tells of a device and of the way from one to another. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hw/cuda/gpu_cuda.h"

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

static void set_address(struct gpu_facts *facts, CUdevice device)
{
    if (cuda_state()->driver.cuDeviceGetPCIBusId(facts->address, sizeof(facts->address), device))
        facts->address[0] = 0;
    for (char *c = facts->address; *c; c++)
        *c = (char)tolower((unsigned char)*c); /* as the kernel writes it */
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
    set_address(facts, device);
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
