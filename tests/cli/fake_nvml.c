/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libnvidia-ml.so.1 for tests: two GPUs, the second with MIG, answering as far as plumb probe asks.
 * FAKE_NVML in the environment: "stopped" (no driver), "old" (fewer answers, as old drivers), "bad" (a
 * card in a poor state), "bridged" (both GPUs whole, with NVLinks between them and one-way peer access).
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

/* A question about a GPU with a number for an answer. */
#define ANSWER(name, type, number, status)                                                         \
    int name(struct gpu *gpu, type *answer)                                                        \
    {                                                                                              \
        (void)gpu;                                                                                 \
        *answer = number;                                                                          \
        return status;                                                                             \
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

ANSWER(nvmlDeviceGetMemoryBusWidth, unsigned, 5120, mode_is("old") ? UNSUPPORTED : GOOD)

int nvmlDeviceGetMaxClockInfo(struct gpu *gpu, int clock, unsigned *mhz)
{
    (void)gpu;
    *mhz = clock == 2 ? 2619 : 1980;
    return GOOD;
}

ANSWER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, 5, GOOD)
ANSWER(nvmlDeviceGetMaxPcieLinkWidth, unsigned, 16, GOOD)

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
    *now = 1;
    *pending = !mode_is("bad");
    return GOOD;
}

ANSWER(nvmlDeviceGetEnforcedPowerLimit, unsigned, 700000, GOOD)

/* At rest; "bad": held down by heat and by the power brake. */
ANSWER(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, mode_is("bad") ? 0x40 | 0x80 : 1,
       mode_is("old") ? UNSUPPORTED : GOOD)
ANSWER(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, 1, GOOD)

int nvmlDeviceGetVirtualizationMode(struct gpu *gpu, unsigned *mode)
{
    *mode = gpu->mig ? 2 : 1; /* vGPU, passed through */
    return mode_is("old") ? UNSUPPORTED : GOOD;
}

int nvmlDeviceGetNvLinkState(struct gpu *gpu, unsigned link, unsigned *active)
{
    if (mode_is("bridged") && link < 4) {
        *active = 1;
        return GOOD;
    }
    if (gpu->mig || link >= 18 || mode_is("bridged"))
        return INVALID;
    *active = link != 7;
    return GOOD;
}

int nvmlDeviceGetNvLinkVersion(struct gpu *gpu, unsigned link, unsigned *version)
{
    (void)gpu, (void)link;
    *version = 6; /* NVLink 4.0 */
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
    *now = *pending = gpu->mig && !mode_is("bridged");
    return GOOD;
}

ANSWER(nvmlDeviceGetMaxMigDeviceCount, unsigned, 7, GOOD)

int nvmlDeviceGetMigDeviceHandleByIndex(struct gpu *gpu, unsigned index, struct gpu **instance)
{
    (void)gpu;
    *instance = &slice;
    return index < 2 ? GOOD : INVALID;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *address, struct gpu **gpu)
{
    unsigned bus;

    for (int i = 0; i < 2; i++)
        if (sscanf(address, "0000:%x:00.0", &bus) == 1 && bus == gpus[i].bus) {
            *gpu = &gpus[i];
            return GOOD;
        }
    return 6; /* not found */
}

int nvmlDeviceGetBAR1MemoryInfo(struct gpu *gpu, unsigned long long *bar1)
{
    bar1[0] = gpu->bus == 0xf1 ? 128ull << 30 : 256ull << 20;
    bar1[1] = bar1[2] = 0;
    return mode_is("old") ? UNSUPPORTED : GOOD;
}

ANSWER(nvmlDeviceGetNumGpuCores, unsigned, mode_is("bad") ? 16897 : 16896,
       gpu->mig ? UNSUPPORTED : GOOD)

int nvmlDeviceGetAttributes_v2(struct gpu *gpu, unsigned *attributes)
{
    unsigned long long mib = gpu->bytes >> 20;

    if (gpu != &slice)
        return UNSUPPORTED;
    memset(attributes, 0, 40);
    attributes[0] = 16; /* multiprocessors */
    attributes[1] = 1;  /* copy engines */
    attributes[6] = attributes[7] = 1;
    memcpy(&attributes[8], &mib, sizeof(mib));
    return GOOD;
}

ANSWER(nvmlDeviceGetPersistenceMode, unsigned, !mode_is("bad"), GOOD)
ANSWER(nvmlDeviceGetComputeMode, unsigned, !mode_is("bad") ? 0 : gpu->mig ? 7 : 2, GOOD)
ANSWER(nvmlDeviceGetPowerManagementDefaultLimit, unsigned, mode_is("bad") ? 750000 : 700000, GOOD)

int nvmlDeviceGetPowerManagementLimitConstraints(struct gpu *gpu, unsigned *least, unsigned *most)
{
    (void)gpu;
    *least = 200000;
    *most = 700000;
    return GOOD;
}

int nvmlDeviceGetTotalEccErrors(struct gpu *gpu, int kind, int scope, unsigned long long *count)
{
    (void)gpu;
    *count = !mode_is("bad") ? 0 : kind ? 3 : 10 + (unsigned long long)scope;
    return GOOD;
}

int nvmlDeviceGetRemappedRows(struct gpu *gpu, unsigned *corrected, unsigned *uncorrected,
                              unsigned *pending, unsigned *failed)
{
    *corrected = 1;
    *uncorrected = 2;
    *pending = mode_is("bad");
    *failed = mode_is("bad") && gpu->mig;
    return GOOD;
}

ANSWER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, 5, mode_is("bad") ? GOOD : UNSUPPORTED)
ANSWER(nvmlDeviceGetCurrPcieLinkWidth, unsigned, 8, mode_is("bad") ? GOOD : UNSUPPORTED)

/* Switches at c0 and c1; the second cannot be seen from here. */
int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct gpu *gpu, unsigned link, void *info)
{
    unsigned numbers[] = {0, 0xc0, 0, 0, 0}, hidden[] = {0xfffffff, 0xff, 0x1f, 0, 0};

    numbers[1] = mode_is("bridged") ? (gpu->bus == 0xf1 ? 0xf2 : 0xf1) : 0xc0;
    memcpy((char *)info + 16, link < 9 ? numbers : hidden, sizeof(numbers));
    return GOOD;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(struct gpu *gpu, unsigned link, unsigned *type)
{
    (void)gpu, (void)link;
    *type = mode_is("bridged") ? 0 : 2;
    return mode_is("old") ? UNSUPPORTED : GOOD;
}

int nvmlDeviceGetP2PStatus(struct gpu *a, struct gpu *b, int index, unsigned *status)
{
    (void)b;
    *status = 0;
    if (mode_is("bad"))
        *status = 3; /* the way between the sockets */
    if (mode_is("bridged") && index == 1)
        *status = a->bus == 0xf1 ? 0 : 5;
    return mode_is("old") ? UNSUPPORTED : GOOD;
}

int nvmlDeviceGetGpuFabricInfoV(struct gpu *gpu, unsigned *info)
{
    (void)gpu;
    if (info[0] != (36u | 2u << 24))
        return 25; /* another version of the structure */
    info[5] = 0;
    info[6] = 0;
    *((unsigned char *)info + 28) = mode_is("bad") ? 2 : 3;
    info[8] = mode_is("bad") ? 1 : 2;
    return mode_is("old") || mode_is("bridged") ? UNSUPPORTED : GOOD;
}

/* Before there were versions of the structure. */
int nvmlDeviceGetGpuFabricInfo(struct gpu *gpu, unsigned *info)
{
    (void)gpu;
    info[4] = 0;
    info[5] = 9; /* its clique */
    *((unsigned char *)info + 24) = 3;
    return mode_is("old") ? GOOD : UNSUPPORTED;
}

int nvmlSystemGetConfComputeState(unsigned *state)
{
    state[0] = state[2] = 0;
    state[1] = mode_is("bad");
    return mode_is("old") ? UNSUPPORTED : GOOD;
}
