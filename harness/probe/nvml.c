// SPDX-License-Identifier: Apache-2.0
/* NVML, opened at run time. Every question may go unanswered: older drivers lack some. */
#include "harness/probe/nvml.h"
#include "harness/probe/facts.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct nvml_device *device_t; /* nvmlDevice_t */

struct pci_info { /* nvmlPciInfo_t */
    char legacy_id[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
};

struct memory_info { /* nvmlMemory_t */
    unsigned long long total, free, used;
};

struct field_value { /* nvmlFieldValue_t */
    unsigned field, scope;
    long long timestamp, latency_us;
    unsigned type, status;
    union {
        double real;
        unsigned number;
        unsigned long long wide;
    } value;
};

enum {
    CLOCK_SM = 1,
    CLOCK_MEMORY = 2,
    FIELD_NVLINK_SPEED_COMMON = 90, /* MB/s of each active link */
    FIELD_NVLINK_SPEED = 164,       /* MB/s of the link in scope */
    LINKS_MAX = 36,                 /* NVML_NVLINK_MAX_LINKS */
    INSTANCES_MAX = 16,
};

#define FUNCTIONS(X)                                                                               \
    X(init, nvmlInit_v2, (void))                                                                   \
    X(shutdown, nvmlShutdown, (void))                                                              \
    X(driver_version, nvmlSystemGetDriverVersion, (char *, unsigned))                              \
    X(cuda_version, nvmlSystemGetCudaDriverVersion, (int *))                                       \
    X(count, nvmlDeviceGetCount_v2, (unsigned *))                                                  \
    X(handle, nvmlDeviceGetHandleByIndex_v2, (unsigned, device_t *))                               \
    X(name, nvmlDeviceGetName, (device_t, char *, unsigned))                                       \
    X(pci, nvmlDeviceGetPciInfo_v3, (device_t, struct pci_info *))                                 \
    X(memory, nvmlDeviceGetMemoryInfo, (device_t, struct memory_info *))                           \
    X(bus_width, nvmlDeviceGetMemoryBusWidth, (device_t, unsigned *))                              \
    X(max_clock, nvmlDeviceGetMaxClockInfo, (device_t, int, unsigned *))                           \
    X(pcie_generation, nvmlDeviceGetCurrPcieLinkGeneration, (device_t, unsigned *))                \
    X(pcie_generation_max, nvmlDeviceGetMaxPcieLinkGeneration, (device_t, unsigned *))             \
    X(pcie_width, nvmlDeviceGetCurrPcieLinkWidth, (device_t, unsigned *))                          \
    X(pcie_width_max, nvmlDeviceGetMaxPcieLinkWidth, (device_t, unsigned *))                       \
    X(capability, nvmlDeviceGetCudaComputeCapability, (device_t, int *, int *))                    \
    X(ecc, nvmlDeviceGetEccMode, (device_t, unsigned *, unsigned *))                               \
    X(power_limit, nvmlDeviceGetEnforcedPowerLimit, (device_t, unsigned *))                        \
    X(virtualization, nvmlDeviceGetVirtualizationMode, (device_t, unsigned *))                     \
    X(link_state, nvmlDeviceGetNvLinkState, (device_t, unsigned, unsigned *))                      \
    X(link_version, nvmlDeviceGetNvLinkVersion, (device_t, unsigned, unsigned *))                  \
    X(fields, nvmlDeviceGetFieldValues, (device_t, int, struct field_value *))                     \
    X(mig_mode, nvmlDeviceGetMigMode, (device_t, unsigned *, unsigned *))                          \
    X(mig_count, nvmlDeviceGetMaxMigDeviceCount, (device_t, unsigned *))                           \
    X(mig_handle, nvmlDeviceGetMigDeviceHandleByIndex, (device_t, unsigned, device_t *))

struct nvml {
    void *library;
#define DECLARE(member, symbol, arguments) int(*member) arguments;
    FUNCTIONS(DECLARE)
#undef DECLARE
};

/* True where the library has the function and it succeeds. */
#define ASK(nvml, member, ...) ((nvml)->member && (nvml)->member(__VA_ARGS__) == 0)

static void load_functions(struct nvml *nvml)
{
#define LOAD(member, symbol, arguments) *(void **)&nvml->member = dlsym(nvml->library, #symbol);
    FUNCTIONS(LOAD)
#undef LOAD
}

int nvml_open(struct nvml **out, char *why, size_t size)
{
    struct nvml *nvml = calloc(1, sizeof(*nvml));
    int rc = 0;

    *out = NULL;
    if (!nvml)
        return -ENOMEM;
    nvml->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!nvml->library) {
        snprintf(why, size, "libnvidia-ml.so.1 is not on this machine: NVML is absent");
        rc = -ENOENT;
    } else {
        load_functions(nvml);
        rc = nvml->init ? nvml->init() : -1;
        if (rc)
            snprintf(why, size, "libnvidia-ml.so.1 does not start (NVML error %d%s)", rc,
                     rc == 9    ? ": the driver is not loaded"
                     : rc == 18 ? ": driver and library are of different versions"
                                : "");
        rc = rc ? -ENODEV : 0;
    }
    if (rc && nvml->library)
        dlclose(nvml->library);
    if (rc)
        free(nvml);
    else
        *out = nvml;
    return rc;
}

void nvml_close(struct nvml *nvml)
{
    if (!nvml)
        return;
    if (nvml->shutdown)
        nvml->shutdown();
    dlclose(nvml->library);
    free(nvml);
}

void nvml_fill_system(const struct nvml *nvml, json_t *object)
{
    char text[TREE_LINE] = "";
    bool answered;
    int cuda = 0;

    fact_set_text(object, "driver_version",
                  ASK(nvml, driver_version, text, sizeof(text)) ? text : NULL);
    /* 12040 is 12.4. */
    answered = ASK(nvml, cuda_version, &cuda);
    snprintf(text, sizeof(text), "%d.%d", cuda / 1000, cuda % 1000 / 10);
    fact_set_text(object, "cuda_version", answered ? text : NULL);
}

unsigned nvml_count(const struct nvml *nvml)
{
    unsigned count = 0;

    return ASK(nvml, count, &count) ? count : 0;
}

static device_t device_of(const struct nvml *nvml, unsigned index)
{
    device_t device = NULL;

    return ASK(nvml, handle, index, &device) ? device : NULL;
}

int nvml_address(const struct nvml *nvml, unsigned index, char *buf, size_t size)
{
    device_t device = device_of(nvml, index);
    struct pci_info info = {0};

    if (!device || !ASK(nvml, pci, device, &info))
        return -ENODEV;
    snprintf(buf, size, "%04x:%02x:%02x.0", info.domain, info.bus, info.device);
    return 0;
}

static void set_if(json_t *object, const char *key, bool answered, long long value)
{
    json_object_set_new(object, key, answered ? json_integer(value) : json_null());
}

static void fill_pcie(const struct nvml *nvml, device_t device, json_t *gpu)
{
    json_t *pcie = fact_object(gpu, "pcie");
    unsigned value = 0;
    bool answered;

    answered = ASK(nvml, pcie_generation, device, &value);
    set_if(pcie, "generation", answered, value);
    answered = ASK(nvml, pcie_generation_max, device, &value);
    set_if(pcie, "max_generation", answered, value);
    answered = ASK(nvml, pcie_width, device, &value);
    set_if(pcie, "width", answered, value);
    answered = ASK(nvml, pcie_width_max, device, &value);
    set_if(pcie, "max_width", answered, value);
}

static void fill_memory(const struct nvml *nvml, device_t device, json_t *gpu)
{
    struct memory_info memory = {0};
    unsigned bits = 0, mhz = 0;
    bool answered = ASK(nvml, memory, device, &memory), known;

    set_if(gpu, "memory_bytes", answered, (long long)memory.total);
    known = ASK(nvml, bus_width, device, &bits);
    set_if(gpu, "memory_bus_bits", known, bits);
    answered = ASK(nvml, max_clock, device, CLOCK_MEMORY, &mhz);
    set_if(gpu, "memory_max_mhz", answered, mhz);
    if (known && answered && bits && mhz)
        fact_set_real(gpu, "memory_gbytes_per_s", 2.0 * mhz * 1e6 * bits / 8 / 1e9);
    else
        fact_set_unknown(gpu, "memory_gbytes_per_s", "NVML gives no memory clock or bus width");
}

static void fill_engine(const struct nvml *nvml, device_t device, json_t *gpu)
{
    unsigned value = 0, pending = 0;
    int major = 0, minor = 0;
    char text[32];
    bool answered;

    answered = ASK(nvml, capability, device, &major, &minor);
    snprintf(text, sizeof(text), "%d.%d", major, minor);
    fact_set_text(gpu, "compute_capability", answered ? text : NULL);
    answered = ASK(nvml, max_clock, device, CLOCK_SM, &value);
    set_if(gpu, "sm_max_mhz", answered, value);
    answered = ASK(nvml, power_limit, device, &value);
    json_object_set_new(gpu, "power_limit_watts", answered ? json_real(value / 1e3) : json_null());
    answered = ASK(nvml, ecc, device, &value, &pending);
    json_object_set_new(gpu, "ecc", answered ? json_boolean(value) : json_null());
}

/* MB/s of one link in one direction; 0 where the driver does not say. */
static unsigned link_speed(const struct nvml *nvml, device_t device, unsigned link)
{
    struct field_value field[2] = {{.field = FIELD_NVLINK_SPEED, .scope = link},
                                   {.field = FIELD_NVLINK_SPEED_COMMON}};

    if (!ASK(nvml, fields, device, 2, field))
        return 0;
    if (field[0].status == 0 && field[0].value.number)
        return field[0].value.number;
    return field[1].status == 0 ? field[1].value.number : 0;
}

static void fill_nvlink(const struct nvml *nvml, device_t device, json_t *gpu)
{
    unsigned active, version = 0, present = 0, up = 0;
    double mbytes = 0;
    json_t *nvlink;

    for (unsigned link = 0; link < LINKS_MAX; link++) {
        if (!ASK(nvml, link_state, device, link, &active))
            continue;
        present++;
        if (!active)
            continue;
        up++;
        mbytes += link_speed(nvml, device, link);
        if (!version && !ASK(nvml, link_version, device, link, &version))
            version = 0;
    }
    nvlink = fact_object(gpu, "nvlink");
    fact_set_number(nvlink, "links", present);
    fact_set_number(nvlink, "active", up);
    set_if(nvlink, "version", version, version);
    if (mbytes > 0)
        fact_set_real(nvlink, "gbytes_per_s", mbytes / 1e3);
    else
        fact_set_unknown(nvlink, "gbytes_per_s",
                         up ? "NVML gives no link speed" : "no NVLink is active");
}

static void fill_instance(const struct nvml *nvml, device_t instance, json_t *list)
{
    char name[96] = "";
    struct memory_info memory = {0};
    json_t *json = json_object();
    bool answered = ASK(nvml, name, instance, name, sizeof(name));

    json_array_append_new(list, json);
    fact_set_text(json, "name", answered ? name : NULL);
    answered = ASK(nvml, memory, instance, &memory);
    set_if(json, "memory_bytes", answered, (long long)memory.total);
    fact_set_text(json, "nature", "mig");
}

static void fill_mig(const struct nvml *nvml, device_t device, json_t *gpu)
{
    unsigned now = 0, pending = 0, count = 0;
    device_t instance;
    json_t *mig, *list;

    if (!ASK(nvml, mig_mode, device, &now, &pending)) {
        json_object_set_new(gpu, "mig", json_null());
        return;
    }
    mig = fact_object(gpu, "mig");
    fact_set_bool(mig, "enabled", now != 0);
    list = fact_list(mig, "instances");
    if (!now || !ASK(nvml, mig_count, device, &count))
        return;
    for (unsigned i = 0; i < count && i < INSTANCES_MAX; i++)
        if (ASK(nvml, mig_handle, device, i, &instance))
            fill_instance(nvml, instance, list);
}

static void fill_virtualization(const struct nvml *nvml, device_t device, json_t *gpu)
{
    static const char *const modes[] = {"none", "passthrough", "vgpu", "host-vgpu", "host-vsga"};
    unsigned mode = 0;
    bool answered = ASK(nvml, virtualization, device, &mode);

    fact_set_text(gpu, "virtualization",
                  answered && mode < sizeof(modes) / sizeof(*modes) ? modes[mode] : NULL);
}

void nvml_fill_gpu(const struct nvml *nvml, unsigned index, json_t *gpu)
{
    device_t device = device_of(nvml, index);
    char name[96] = "";

    if (!device)
        return;
    fact_set_text(gpu, "name", ASK(nvml, name, device, name, sizeof(name)) ? name : NULL);
    fill_memory(nvml, device, gpu);
    fill_engine(nvml, device, gpu);
    fill_pcie(nvml, device, gpu);
    fill_virtualization(nvml, device, gpu);
    fill_nvlink(nvml, device, gpu);
    fill_mig(nvml, device, gpu);
}
