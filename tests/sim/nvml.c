/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated NVML: the machine of the description, as far as the programs ask. Every question goes by
 * nvml_gpu or nvml_machine, which are in the mark's own object file. A function that is not here is
 * missing, as in an older driver.
 */
#include "tests/sim/nvml.h"

#include "core/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char plumb_simulated[] = "libnvidia-ml";

static struct {
    bool started;
    unsigned users;
    uint64_t since_ns;
    struct sim_machine machine;
    struct device devices[SIM_GPUS], slices[SIM_GPUS];
} nvml;

const struct sim_machine *nvml_machine(void)
{
    return plumb_simulated[0] && nvml.started ? &nvml.machine : NULL;
}

bool nvml_lacks(const char *answer)
{
    return nvml_machine() && strstr(nvml.machine.nvml_lacks, answer);
}

const struct sim_gpu *nvml_gpu(const struct device *device)
{
    return nvml_machine() && device && device->index < nvml.machine.gpus
               ? &nvml.machine.gpu[device->index]
               : NULL;
}

unsigned long long nvml_running_ns(void)
{
    return clock_now_ns() - nvml.since_ns;
}

const struct sim_fault *nvml_any_throttle(const struct device *device)
{
    return sim_fault_has(&nvml.machine, SIM_THROTTLE, (int)device->index, -1);
}

const struct sim_fault *nvml_throttle(const struct device *device)
{
    const struct sim_fault *throttle = nvml_any_throttle(device);

    return throttle && sim_fault_holds(throttle, (double)nvml_running_ns()) ? throttle : NULL;
}

double nvml_throttled_ns(const struct device *device)
{
    const struct sim_fault *throttle = nvml_any_throttle(device);

    return throttle ? sim_fault_held_ns(throttle, (double)nvml_running_ns()) : 0;
}

int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
    char error[1024];

    if (!nvml.started && sim_machine_read(&nvml.machine, error, sizeof(error))) {
        fprintf(stderr, "simulated libnvidia-ml: %s\n", error);
        return NO_DRIVER;
    }
    if (!nvml.started && sim_fault_has(&nvml.machine, SIM_NO_NVML, -1, -1))
        return NO_DRIVER;
    for (unsigned i = 0; i < SIM_GPUS; i++) {
        nvml.devices[i] = (struct device){i, false};
        nvml.slices[i] = (struct device){i, true};
    }
    if (!nvml.started)
        nvml.since_ns = clock_now_ns();
    nvml.started = true;
    nvml.users++;
    return GOOD;
}

int nvmlShutdown(void);
int nvmlShutdown(void)
{
    if (!nvml.started)
        return UNINITIALIZED;
    nvml.started = --nvml.users > 0;
    return GOOD;
}

int nvmlSystemGetDriverVersion(char *text, unsigned len);
int nvmlSystemGetDriverVersion(char *text, unsigned len)
{
    if (!nvml_machine())
        return UNINITIALIZED;
    snprintf(text, len, "%s", nvml.machine.driver);
    return GOOD;
}

int nvmlSystemGetCudaDriverVersion(int *version);
int nvmlSystemGetCudaDriverVersion(int *version)
{
    const struct sim_fault *old;

    if (!nvml_machine())
        return UNINITIALIZED;
    old = sim_fault_has(&nvml.machine, SIM_OLD_DRIVER, -1, -1);
    *version = old ? old->version : (int)nvml.machine.driver_version;
    return GOOD;
}

struct confidential { /* nvmlConfComputeSystemState_t */
    unsigned environment, feature, tools;
};

int nvmlSystemGetConfComputeState(struct confidential *state);
int nvmlSystemGetConfComputeState(struct confidential *state)
{
    if (!nvml_machine())
        return UNINITIALIZED;
    *state = (struct confidential){.feature = nvml.machine.confidential};
    return GOOD;
}

int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetCount_v2(unsigned *count)
{
    if (!nvml_machine())
        return UNINITIALIZED;
    *count = nvml.machine.gpus;
    return GOOD;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct device **device);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct device **device)
{
    if (!nvml_machine())
        return UNINITIALIZED;
    if (index >= nvml.machine.gpus)
        return INVALID;
    *device = &nvml.devices[index];
    return GOOD;
}

static bool parse_address(const char *text, unsigned part[3])
{
    return sscanf(text, "%x:%x:%x", &part[0], &part[1], &part[2]) == 3;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *address, struct device **device);
int nvmlDeviceGetHandleByPciBusId_v2(const char *address, struct device **device)
{
    unsigned wanted[3], part[3];

    if (!nvml_machine())
        return UNINITIALIZED;
    if (!parse_address(address, wanted))
        return INVALID;
    for (unsigned i = 0; i < nvml.machine.gpus; i++)
        if (parse_address(nvml.machine.gpu[i].address, part) &&
            !memcmp(part, wanted, sizeof(part))) {
            *device = &nvml.devices[i];
            return GOOD;
        }
    return NOT_FOUND;
}

void nvml_fill_pci(const struct sim_gpu *gpu, struct pci_info *info)
{
    unsigned part[3] = {0};

    memset(info, 0, sizeof(*info));
    parse_address(gpu->address, part);
    info->domain = part[0];
    info->bus = part[1];
    info->device = part[2];
    info->id = 0x233010de;
    info->subsystem = 0x16c110de;
    snprintf(info->bus_id, sizeof(info->bus_id), "%08X:%02X:%02X.0", part[0], part[1], part[2]);
    snprintf(info->legacy_id, sizeof(info->legacy_id), "%04X:%02X:%02X.0", part[0] & 0xffff,
             part[1] & 0xff, part[2] & 0xff);
}

int nvmlDeviceGetPciInfo_v3(struct device *device, struct pci_info *info);
int nvmlDeviceGetPciInfo_v3(struct device *device, struct pci_info *info)
{
    const struct sim_gpu *gpu = nvml_gpu(device);

    if (!gpu)
        return INVALID;
    nvml_fill_pci(gpu, info);
    return GOOD;
}

static unsigned long long slice_bytes(const struct sim_gpu *gpu)
{
    return gpu->memory_bytes / 8;
}

int nvmlDeviceGetName(struct device *device, char *text, unsigned len);
int nvmlDeviceGetName(struct device *device, char *text, unsigned len)
{
    const struct sim_gpu *gpu = nvml_gpu(device);

    if (!gpu)
        return INVALID;
    if (device->slice)
        snprintf(text, len, "%s MIG 1g.%llugb", gpu->name, slice_bytes(gpu) >> 30);
    else
        snprintf(text, len, "%s", gpu->name);
    return GOOD;
}

struct memory { /* nvmlMemory_t */
    unsigned long long total, free, used;
};

NVML_ANSWER(MemoryInfo, struct memory,
            ((struct memory){device->slice ? slice_bytes(gpu) : gpu->memory_bytes,
                             (device->slice ? slice_bytes(gpu) : gpu->memory_bytes) -
                                 gpu->reserved_bytes,
                             gpu->reserved_bytes}))
NVML_ANSWER(BAR1MemoryInfo, struct memory,
            ((struct memory){gpu->memory_bytes, gpu->memory_bytes, 0}))
NVML_ANSWER(MemoryBusWidth, unsigned, gpu->memory_bus_bits)
NVML_ANSWER(NumGpuCores, unsigned, gpu->cores)

int nvmlDeviceGetCudaComputeCapability(struct device *device, int *major, int *minor);
int nvmlDeviceGetCudaComputeCapability(struct device *device, int *major, int *minor)
{
    const struct sim_gpu *gpu = nvml_gpu(device);

    *major = *minor = 0;
    return gpu && sscanf(gpu->capability, "%d.%d", major, minor) >= 1 ? GOOD : INVALID;
}

NVML_ANSWER(VirtualizationMode, unsigned, gpu->virtualization)
NVML_ANSWER(MaxMigDeviceCount, unsigned, 7)

int nvmlDeviceGetMigMode(struct device *device, unsigned *now, unsigned *pending);
int nvmlDeviceGetMigMode(struct device *device, unsigned *now, unsigned *pending)
{
    const struct sim_gpu *gpu = nvml_gpu(device);

    if (!gpu)
        return INVALID;
    *now = *pending = gpu->mig;
    return GOOD;
}

int nvmlDeviceGetMigDeviceHandleByIndex(struct device *device, unsigned index, struct device **out);
int nvmlDeviceGetMigDeviceHandleByIndex(struct device *device, unsigned index, struct device **out)
{
    const struct sim_gpu *gpu = nvml_gpu(device);

    if (!gpu || !gpu->mig)
        return INVALID;
    if (index >= gpu->mig_instances)
        return NOT_FOUND;
    *out = &nvml.slices[device->index];
    return GOOD;
}

struct attributes { /* nvmlDeviceAttributes_t */
    unsigned sms, copy_engines, decoders, encoders, jpegs, ofas, slices, compute_slices;
    unsigned long long memory_mib;
};

int nvmlDeviceGetAttributes_v2(struct device *device, struct attributes *out);
int nvmlDeviceGetAttributes_v2(struct device *device, struct attributes *out)
{
    const struct sim_gpu *gpu = nvml_gpu(device);

    if (!gpu || !device->slice)
        return UNSUPPORTED;
    *out = (struct attributes){.sms = gpu->sms / 8,
                               .copy_engines = 1,
                               .slices = 1,
                               .compute_slices = 1,
                               .memory_mib = slice_bytes(gpu) >> 20};
    return GOOD;
}
