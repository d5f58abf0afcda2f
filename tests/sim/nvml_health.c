/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated NVML: clocks, power, why a device is held back, errors, its PCIe link. */
#include "tests/sim/nvml.h"

#include "tests/sim/nvml_fields.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { CLOCK_MEMORY = 2 };
enum { POLICY_POWER = 0, POLICY_THERMAL = 1, POLICY_RELIABILITY = 5 };

#define IDLE        0x01u
#define POWER_CAP   0x04u
#define HW_SLOWDOWN 0x08u
#define SW_THERMAL  0x20u
#define HW_THERMAL  0x40u
#define POWER_BRAKE 0x80u
#define RELIABILITY 0x400u /* a counter only */

int nvmlDeviceGetMaxClockInfo(struct device *device, int type, unsigned *mhz);
int nvmlDeviceGetMaxClockInfo(struct device *device, int type, unsigned *mhz)
{
    const struct sim_gpu *gpu = nvml_gpu(device);

    if (!gpu || type < 0 || type > 3)
        return INVALID;
    *mhz = (unsigned)(type == CLOCK_MEMORY ? gpu->memory_clock_mhz : gpu->clock_mhz);
    return GOOD;
}

int nvmlDeviceGetClockInfo(struct device *device, int type, unsigned *mhz);
int nvmlDeviceGetClockInfo(struct device *device, int type, unsigned *mhz)
{
    int rc = nvmlDeviceGetMaxClockInfo(device, type, mhz);
    const struct sim_fault *throttle = rc ? NULL : nvml_throttle(device);

    if (throttle && type != CLOCK_MEMORY)
        *mhz = (unsigned)(*mhz * throttle->factor);
    return rc;
}

static unsigned long long reasons_of(const struct sim_fault *throttle)
{
    static const struct {
        const char *name;
        unsigned bits;
    } named[] = {{"power", POWER_CAP},
                 {"idle", IDLE},
                 {"thermal", SW_THERMAL},
                 {"hw_thermal", HW_THERMAL | HW_SLOWDOWN},
                 {"power_brake", POWER_BRAKE | HW_SLOWDOWN}};

    for (unsigned i = 0; throttle && i < sizeof(named) / sizeof(*named); i++)
        if (!strcmp(named[i].name, throttle->reason))
            return named[i].bits;
    return 0;
}

static unsigned long long reasons(const struct device *device)
{
    return reasons_of(nvml_throttle(device));
}

NVML_ANSWER(CurrentClocksEventReasons, unsigned long long, reasons(device))
NVML_ANSWER(CurrentClocksThrottleReasons, unsigned long long, reasons(device))

/* While one of these holds, its counter runs on from what the description says. */
static unsigned long long held_ns(const struct device *device, unsigned long long bits)
{
    double before = bits & RELIABILITY ? 1e9 * nvml_gpu(device)->held_reliability_s : 0;

    return (unsigned long long)before + (reasons_of(nvml_any_throttle(device)) & bits
                                             ? (unsigned long long)nvml_throttled_ns(device)
                                             : 0);
}

struct violation { /* nvmlViolationTime_t */
    unsigned long long reference_us, ns;
};

int nvmlDeviceGetViolationStatus(struct device *device, int policy, struct violation *out);
int nvmlDeviceGetViolationStatus(struct device *device, int policy, struct violation *out)
{
    if (!nvml_gpu(device))
        return INVALID;
    out->reference_us = nvml_running_ns() / 1000;
    out->ns = held_ns(device, policy == POLICY_POWER         ? POWER_CAP | POWER_BRAKE
                              : policy == POLICY_THERMAL     ? SW_THERMAL | HW_THERMAL
                              : policy == POLICY_RELIABILITY ? RELIABILITY
                                                             : 0);
    return GOOD;
}

/* The last three have two numbers each, by the driver's header: see core/hw/nvml.c. */
static unsigned latest_field(unsigned i)
{
    unsigned long driver = strtoul(nvml_machine()->driver, NULL, 10);

    return driver >= 590 ? 269 + i : driver >= 575 ? 251 + i : 0;
}

bool nvml_health_field(const struct device *device, unsigned field, unsigned long long *value)
{
    static const struct {
        unsigned field, bits;
    } counters[] = {{74, POWER_CAP},
                    {75, SW_THERMAL | HW_THERMAL},
                    {76, 0}, /* sync boost */
                    {77, 0}, /* board limit */
                    {79, RELIABILITY}};
    static const unsigned latest[] = {SW_THERMAL, HW_THERMAL, POWER_BRAKE};

    for (unsigned i = 0; i < sizeof(counters) / sizeof(*counters); i++)
        if (counters[i].field == field) {
            *value = held_ns(device, counters[i].bits);
            return true;
        }
    for (unsigned i = 0; i < sizeof(latest) / sizeof(*latest); i++)
        if (field && latest_field(i) == field) {
            *value = held_ns(device, latest[i]);
            return true;
        }
    return false;
}

int nvmlDeviceGetTemperature(struct device *device, int sensor, unsigned *celsius);
int nvmlDeviceGetTemperature(struct device *device, int sensor, unsigned *celsius)
{
    const struct sim_gpu *gpu = nvml_gpu(device);

    if (!gpu || sensor)
        return INVALID;
    *celsius = (unsigned)gpu->temperature_c;
    return GOOD;
}

struct temperature { /* nvmlTemperature_v1_t */
    unsigned version, sensor;
    int celsius;
};

int nvmlDeviceGetTemperatureV(struct device *device, struct temperature *out);
int nvmlDeviceGetTemperatureV(struct device *device, struct temperature *out)
{
    const struct sim_gpu *gpu = nvml_gpu(device);

    if (!gpu || out->sensor)
        return INVALID;
    if (out->version != (sizeof(*out) | 1u << 24))
        return BAD_VERSION;
    out->celsius = (int)gpu->temperature_c;
    return GOOD;
}

NVML_ANSWER(PowerUsage, unsigned, gpu->power_watts * 1e3)
NVML_ANSWER(TotalEnergyConsumption, unsigned long long,
            gpu->power_watts * 1e-6 * (double)nvml_running_ns())
NVML_ANSWER(EnforcedPowerLimit, unsigned, gpu->power_limit_watts * 1e3)
NVML_ANSWER(PowerManagementDefaultLimit, unsigned, gpu->power_default_watts * 1e3)

int nvmlDeviceGetPowerManagementLimitConstraints(struct device *device, unsigned *low,
                                                 unsigned *high);
int nvmlDeviceGetPowerManagementLimitConstraints(struct device *device, unsigned *low,
                                                 unsigned *high)
{
    const struct sim_gpu *gpu = nvml_gpu(device);

    if (!gpu)
        return INVALID;
    *low = (unsigned)(gpu->power_limit_watts * 500);
    *high = (unsigned)(gpu->power_limit_watts * 1e3);
    return GOOD;
}

NVML_ANSWER(CurrPcieLinkGeneration, unsigned, gpu->pcie_gen)
NVML_ANSWER(MaxPcieLinkGeneration, unsigned, gpu->pcie_gen_max)
NVML_ANSWER(CurrPcieLinkWidth, unsigned, gpu->pcie_width)
NVML_ANSWER(MaxPcieLinkWidth, unsigned, gpu->pcie_width_max)
NVML_ANSWER(PcieReplayCounter, unsigned, gpu->pcie_replays)
NVML_ANSWER(PersistenceMode, unsigned, 1)
NVML_ANSWER(ComputeMode, unsigned, gpu->compute_mode)

int nvmlDeviceGetEccMode(struct device *device, unsigned *now, unsigned *pending);
int nvmlDeviceGetEccMode(struct device *device, unsigned *now, unsigned *pending)
{
    const struct sim_gpu *gpu = nvml_gpu(device);

    if (!gpu)
        return INVALID;
    *now = gpu->ecc;
    *pending = gpu->ecc != gpu->ecc_flips;
    return GOOD;
}

/* Those of this run, which the simulated driver counts, where it is in this process. */
static uint64_t new_ecc_errors(unsigned gpu)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    uint64_t (*errors)(unsigned) = NULL;

    if (library)
        *(void **)&errors = dlsym(library, "plumb_sim_ecc_errors");
    if (library)
        dlclose(library); /* one user less: it stays, as it was there before */
    return errors ? errors(gpu) : 0;
}

int nvmlDeviceGetTotalEccErrors(struct device *device, int uncorrected, int ever,
                                unsigned long long *count);
int nvmlDeviceGetTotalEccErrors(struct device *device, int uncorrected, int ever,
                                unsigned long long *count)
{
    const struct sim_gpu *gpu = nvml_gpu(device);

    if (!gpu || ever < 0 || ever > 1)
        return INVALID;
    if (!gpu->ecc)
        return UNSUPPORTED;
    *count =
        uncorrected ? gpu->ecc_uncorrected + new_ecc_errors(device->index) : gpu->ecc_corrected;
    return GOOD;
}

int nvmlDeviceGetMemoryErrorCounter(struct device *device, int uncorrected, int ever, int where,
                                    unsigned long long *count);
int nvmlDeviceGetMemoryErrorCounter(struct device *device, int uncorrected, int ever, int where,
                                    unsigned long long *count)
{
    int rc = nvmlDeviceGetTotalEccErrors(device, uncorrected, ever, count);

    if (!rc && where != 2) /* all are in the device's memory */
        *count = 0;
    return rc;
}

int nvmlDeviceGetRemappedRows(struct device *device, unsigned *corrected, unsigned *uncorrected,
                              unsigned *pending, unsigned *failed);
int nvmlDeviceGetRemappedRows(struct device *device, unsigned *corrected, unsigned *uncorrected,
                              unsigned *pending, unsigned *failed)
{
    const struct sim_gpu *gpu = nvml_gpu(device);

    if (!gpu)
        return INVALID;
    *corrected = *uncorrected = 0;
    *pending = gpu->remap_pending;
    *failed = gpu->remap_failed;
    return GOOD;
}
