/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's interface: errors by name, and what devices are. */
#include "core/hw/cuda/gpu_cuda.h"
#include "tests/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    CUresult code;
    const char *name, *text;
} errors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_DEVICE_UNAVAILABLE, "CUDA_ERROR_DEVICE_UNAVAILABLE",
     "CUDA-capable device(s) is/are busy or unavailable"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {CUDA_ERROR_ECC_UNCORRECTABLE, "CUDA_ERROR_ECC_UNCORRECTABLE",
     "uncorrectable ECC error encountered"},
    {CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
     "peer access is not supported between these two devices"},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     "the provided PTX was compiled with an unsupported toolchain."},
    {CUDA_ERROR_OPERATING_SYSTEM, "CUDA_ERROR_OPERATING_SYSTEM",
     "OS call failed or operation not supported on this OS"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
     "peer access is already enabled"},
    {CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED",
     "peer access has not been enabled"},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"},
    {CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"},
    {CUDA_ERROR_MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {CUDA_ERROR_NOT_PERMITTED, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {CUDA_ERROR_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE",
     "the operation cannot be performed in the present state"},
    {CUDA_ERROR_CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT",
     "operation not permitted on an event last recorded in a capturing stream"},
    {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

/* These two work before the driver is started. */
static CUresult error_text(CUresult code, bool name, const char **text)
{
    *text = NULL;
    for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
        if (errors[i].code == code)
            *text = name ? errors[i].name : errors[i].text;
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorName(CUresult code, const char **text)
{
    return plumb_simulated[0] ? error_text(code, true, text) : CUDA_ERROR_UNKNOWN;
}

CUresult cuGetErrorString(CUresult code, const char **text)
{
    return plumb_simulated[0] ? error_text(code, false, text) : CUDA_ERROR_UNKNOWN;
}

CUresult cuDriverGetVersion(int *version)
{
    const struct sim_fault *old;
    struct sim *sim;
    CUresult rc = sim_enter(&sim, "cuDriverGetVersion");

    if (rc == CUDA_ERROR_NOT_INITIALIZED)
        rc = sim_start(sim); /* as the real one, it needs no cuInit */
    old = sim_fault_has(&sim->machine, SIM_OLD_DRIVER, -1, -1);
    if (!rc)
        *version = old ? old->version : (int)sim->machine.driver_version;
    return sim_leave(sim, rc);
}

CUresult cuDeviceGetCount(int *count)
{
    struct sim *sim;
    CUresult rc = sim_enter(&sim, "cuDeviceGetCount");

    *count = rc ? 0 : (int)sim->machine.gpus;
    return sim_leave(sim, rc);
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    struct sim *sim;
    CUresult rc = sim_enter(&sim, "cuDeviceGet");

    if (!rc && (ordinal < 0 || ordinal >= (int)sim->machine.gpus))
        rc = CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return sim_leave(sim, rc);
}

/* For calls that ask about a device: its description. */
static CUresult ask(struct sim **sim, CUdevice device, const char *call, const struct sim_gpu **gpu)
{
    CUresult rc = sim_enter(sim, call);

    if (!rc && (device < 0 || device >= (int)(*sim)->machine.gpus))
        rc = CUDA_ERROR_INVALID_DEVICE;
    *gpu = rc ? NULL : &(*sim)->machine.gpu[device];
    return rc;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice device)
{
    const struct sim_gpu *gpu;
    struct sim *sim;
    CUresult rc = ask(&sim, device, "cuDeviceGetName", &gpu);

    if (!rc)
        snprintf(name, (size_t)len, "%s", gpu->name);
    return sim_leave(sim, rc);
}

/* "GPU-51300000-0000-..." as 16 bytes */
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    const struct sim_gpu *gpu;
    struct sim *sim;
    CUresult rc = ask(&sim, device, "cuDeviceGetUuid", &gpu);
    unsigned n = 0;

    memset(uuid, 0, sizeof(*uuid));
    for (const char *c = rc ? "" : gpu->uuid + 4; *c && n < 32; c++) {
        char digit[2] = {*c, '\0'};

        if (*c == '-')
            continue;
        uuid->bytes[n / 2] = (char)(uuid->bytes[n / 2] << 4 | strtol(digit, NULL, 16));
        n++;
    }
    return sim_leave(sim, rc);
}

CUresult cuDeviceGetPCIBusId(char *text, int len, CUdevice device)
{
    const struct sim_gpu *gpu;
    struct sim *sim;
    CUresult rc = ask(&sim, device, "cuDeviceGetPCIBusId", &gpu);

    if (!rc)
        snprintf(text, (size_t)len, "%s", gpu->address);
    for (char *c = text; !rc && *c; c++) /* as the real one: hex digits are capitals */
        if (*c >= 'a' && *c <= 'f')
            *c = (char)(*c - 'a' + 'A');
    return sim_leave(sim, rc);
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
    const struct sim_gpu *gpu;
    struct sim *sim;
    CUresult rc = ask(&sim, device, "cuDeviceTotalMem", &gpu);

    if (!rc)
        *bytes = gpu->memory_bytes;
    return sim_leave(sim, rc);
}

static int address_part(const struct sim_gpu *gpu, unsigned part)
{
    unsigned number[3] = {0};

    sscanf(gpu->address, "%x:%x:%x", &number[0], &number[1], &number[2]);
    return (int)number[part];
}

static bool managed(const struct sim *sim, const struct sim_gpu *gpu)
{
    int index = (int)(gpu - sim->machine.gpu);

    return gpu->managed && !sim_fault_has(&sim->machine, SIM_NO_MANAGED, index, -1);
}

static CUresult attribute(const struct sim *sim, const struct sim_gpu *gpu,
                          CUdevice_attribute which, int *value)
{
    const struct {
        CUdevice_attribute which;
        double value;
    } known[] = {
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, atoi(gpu->capability)},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
         strchr(gpu->capability, '.') ? atoi(strchr(gpu->capability, '.') + 1) : 0},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, gpu->sms},
        {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, gpu->copy_engines},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, gpu->max_threads_per_sm},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
        {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
        {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, (double)gpu->l2_bytes},
        {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, gpu->clock_mhz * 1e3},
        {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, gpu->memory_clock_mhz * 1e3},
        {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, (double)gpu->memory_bus_bits},
        {CU_DEVICE_ATTRIBUTE_ECC_ENABLED, gpu->ecc},
        {CU_DEVICE_ATTRIBUTE_INTEGRATED, gpu->integrated},
        {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, managed(sim, gpu)},
        {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,
         managed(sim, gpu) && gpu->managed_concurrent},
        {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, gpu->host_register},
        {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, gpu->host_register},
        {CUDA_ATTRIBUTE_RDMA, gpu->rdma},
        {CUDA_ATTRIBUTE_DMABUF, gpu->dmabuf},
        {CUDA_ATTRIBUTE_FABRIC, gpu->fabric},
        {CUDA_ATTRIBUTE_MULTICAST, gpu->multicast},
        {CUDA_ATTRIBUTE_RDMA_FLUSH, CUDA_RDMA_FLUSH_BY_HOST},
        {CUDA_ATTRIBUTE_RDMA_ORDERING, gpu->rdma_flush ? 0 : CUDA_RDMA_ORDERED},
        {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
        {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
        {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 0},
        {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, address_part(gpu, 0)},
        {CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, address_part(gpu, 1)},
        {CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, address_part(gpu, 2)},
        {CUDA_ATTRIBUTE_HOST_NUMA_ID, gpu->numa_node},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (known[i].which == which) {
            *value = (int)known[i].value;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device)
{
    const struct sim_gpu *gpu;
    struct sim *sim;
    CUresult rc = ask(&sim, device, "cuDeviceGetAttribute", &gpu);

    return sim_leave(sim, rc ? rc : attribute(sim, gpu, which, value));
}

/* Two devices, not the same. */
static CUresult ask_pair(struct sim **sim, CUdevice device, CUdevice peer, const char *call,
                         const struct sim_link **link)
{
    const struct sim_gpu *gpu;
    CUresult rc = ask(sim, device, call, &gpu);

    *link = NULL;
    if (!rc && (peer < 0 || peer >= (int)(*sim)->machine.gpus))
        rc = CUDA_ERROR_INVALID_DEVICE;
    if (!rc && device != peer)
        *link = sim_link(&(*sim)->machine, (unsigned)device, (unsigned)peer);
    return rc;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    const struct sim_link *link;
    struct sim *sim;
    CUresult rc = ask_pair(&sim, device, peer, "cuDeviceCanAccessPeer", &link);

    *can = link && link->kind != SIM_NO_LINK;
    return sim_leave(sim, rc);
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute which, CUdevice device,
                                 CUdevice peer)
{
    const struct sim_link *link;
    struct sim *sim;
    CUresult rc = ask_pair(&sim, device, peer, "cuDeviceGetP2PAttribute", &link);

    *value = 0;
    if (!rc && !link)
        rc = CUDA_ERROR_INVALID_DEVICE;
    if (rc)
        return sim_leave(sim, rc);
    if (which == CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK)
        *value = link->kind == SIM_NVLINK ? 0 : 1;
    else if (which == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED)
        *value = link->kind != SIM_NO_LINK;
    else if (which == CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED)
        *value = link->kind == SIM_NVLINK;
    else
        rc = CUDA_ERROR_INVALID_VALUE;
    return sim_leave(sim, rc);
}
