// SPDX-License-Identifier: Apache-2.0
/*
 * A libnvidia-ml.so.1 for tests: two GPUs, the second with MIG, answering as far as plumb probe asks.
 * FAKE_NVML in the environment: "stopped" (no driver), "old" (fewer answers, as old drivers).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GOOD, INVALID = 2, UNSUPPORTED = 3, NO_DRIVER = 9 };

struct gpu {
    const char *name;
    unsigned bus, mig;
    unsigned long long bytes;
};

static struct gpu gpus[] = {{"NVIDIA H100 80GB HBM3", 0xf1, 0, 85520809984ull},
                            {"NVIDIA H100 80GB HBM3", 0xf2, 1, 85520809984ull}};
static struct gpu slice = {"NVIDIA H100 80GB HBM3 MIG 1g.10gb", 0xf2, 0, 10468982784ull};

static int mode_is(const char *mode)
{
    const char *now = getenv("FAKE_NVML");

    return now && !strcmp(now, mode);
}

int nvmlInit_v2(void)
{
    return mode_is("stopped") ? NO_DRIVER : GOOD;
}

int nvmlShutdown(void)
{
    return GOOD;
}

int nvmlSystemGetDriverVersion(char *text, unsigned size)
{
    snprintf(text, size, "550.90.07");
    return GOOD;
}

int nvmlSystemGetCudaDriverVersion(int *version)
{
    *version = 12040;
    return GOOD;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = 2;
    return GOOD;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct gpu **gpu)
{
    if (index > 1)
        return INVALID;
    *gpu = &gpus[index];
    return GOOD;
}

int nvmlDeviceGetName(struct gpu *gpu, char *text, unsigned size)
{
    snprintf(text, size, "%s", gpu->name);
    return GOOD;
}

int nvmlDeviceGetPciInfo_v3(struct gpu *gpu, void *info)
{
    /* char[16], then domain, bus, device, ids; char[32] */
    unsigned numbers[] = {0, gpu->bus, 0, 0x233010de, 0x16c110de};

    memset(info, 0, 68);
    memcpy((char *)info + 16, numbers, sizeof(numbers));
    snprintf((char *)info + 36, 32, "00000000:%02X:00.0", gpu->bus);
    return GOOD;
}

int nvmlDeviceGetMemoryInfo(struct gpu *gpu, unsigned long long *memory)
{
    memory[0] = gpu->bytes;
    memory[1] = gpu->bytes - 1;
    memory[2] = 1;
    return GOOD;
}

int nvmlDeviceGetMemoryBusWidth(struct gpu *gpu, unsigned *bits)
{
    (void)gpu;
    *bits = 5120;
    return mode_is("old") ? UNSUPPORTED : GOOD;
}

int nvmlDeviceGetMaxClockInfo(struct gpu *gpu, int clock, unsigned *mhz)
{
    (void)gpu;
    *mhz = clock == 2 ? 2619 : 1980;
    return GOOD;
}

int nvmlDeviceGetCurrPcieLinkGeneration(struct gpu *gpu, unsigned *value)
{
    (void)gpu;
    *value = 5;
    return GOOD;
}

int nvmlDeviceGetMaxPcieLinkWidth(struct gpu *gpu, unsigned *value)
{
    (void)gpu;
    *value = 16;
    return GOOD;
}

int nvmlDeviceGetCudaComputeCapability(struct gpu *gpu, int *major, int *minor)
{
    (void)gpu;
    *major = 9;
    *minor = 0;
    return GOOD;
}

int nvmlDeviceGetEccMode(struct gpu *gpu, unsigned *now, unsigned *pending)
{
    (void)gpu;
    *now = *pending = 1;
    return GOOD;
}

int nvmlDeviceGetEnforcedPowerLimit(struct gpu *gpu, unsigned *milliwatts)
{
    (void)gpu;
    *milliwatts = 700000;
    return GOOD;
}

int nvmlDeviceGetVirtualizationMode(struct gpu *gpu, unsigned *mode)
{
    *mode = gpu->mig ? 2 : 1; /* vGPU, passed through */
    return mode_is("old") ? UNSUPPORTED : GOOD;
}

int nvmlDeviceGetNvLinkState(struct gpu *gpu, unsigned link, unsigned *active)
{
    if (gpu->mig || link >= 18)
        return INVALID;
    *active = link != 7;
    return GOOD;
}

int nvmlDeviceGetNvLinkVersion(struct gpu *gpu, unsigned link, unsigned *version)
{
    (void)gpu, (void)link;
    *version = 4;
    return GOOD;
}

struct field {
    unsigned id, scope;
    long long times[2];
    unsigned type, status;
    unsigned long long value;
};

int nvmlDeviceGetFieldValues(struct gpu *gpu, int count, struct field *fields)
{
    (void)gpu;
    for (int i = 0; i < count; i++) {
        int known = fields[i].id == 90 || (fields[i].id == 164 && !mode_is("old"));

        fields[i].status = known ? GOOD : UNSUPPORTED;
        fields[i].value = fields[i].id == 90 ? 25000 : 26562;
    }
    return GOOD;
}

int nvmlDeviceGetMigMode(struct gpu *gpu, unsigned *now, unsigned *pending)
{
    *now = *pending = gpu->mig;
    return GOOD;
}

int nvmlDeviceGetMaxMigDeviceCount(struct gpu *gpu, unsigned *count)
{
    (void)gpu;
    *count = 7;
    return GOOD;
}

int nvmlDeviceGetMigDeviceHandleByIndex(struct gpu *gpu, unsigned index, struct gpu **instance)
{
    (void)gpu;
    *instance = &slice;
    return index < 2 ? GOOD : INVALID;
}
