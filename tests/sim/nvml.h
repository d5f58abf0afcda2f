/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the simulated libnvidia-ml.so.1; structures are laid out as the real library's. */
#ifndef PLUMB_TESTS_SIM_NVML_H
#define PLUMB_TESTS_SIM_NVML_H

#include "tests/sim/machine.h"

extern const char plumb_simulated[];

enum {
    GOOD = 0,
    UNINITIALIZED = 1,
    INVALID = 2,
    UNSUPPORTED = 3,
    NOT_FOUND = 6,
    NO_DRIVER = 9,
    BAD_VERSION = 25
};

struct device { /* nvmlDevice_t points to one */
    unsigned index;
    bool slice; /* of the GPU with this index */
};

struct pci_info { /* nvmlPciInfo_t */
    char legacy_id[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
};

/* NULL until nvmlInit_v2 has succeeded. */
const struct sim_machine *nvml_machine(void);
/* Does the description say that it lacks this answer, as an older driver does? */
bool nvml_lacks(const char *answer);
/* The GPU of a handle; NULL: none, or not started. */
const struct sim_gpu *nvml_gpu(const struct device *device);
/* ns since the start */
unsigned long long nvml_running_ns(void);
void nvml_fill_pci(const struct sim_gpu *gpu, struct pci_info *info);
const struct sim_fault *nvml_throttle(const struct device *device);
/* The same whether it holds now or not, and for how long it did. */
const struct sim_fault *nvml_any_throttle(const struct device *device);
double nvml_throttled_ns(const struct device *device);

/* int nvmlDeviceGetNAME(device, type *out): OUT is set to `value`, where `gpu` is the device's. */
#define NVML_ANSWER(name, type, value)                                                             \
    int nvmlDeviceGet##name(struct device *device, type *out);                                     \
    int nvmlDeviceGet##name(struct device *device, type *out)                                      \
    {                                                                                              \
        const struct sim_gpu *gpu = nvml_gpu(device);                                              \
                                                                                                   \
        if (!gpu || !out)                                                                          \
            return INVALID;                                                                        \
        if (nvml_lacks(#name))                                                                     \
            return UNSUPPORTED;                                                                    \
        *out = (type)(value);                                                                      \
        return GOOD;                                                                               \
    }

#endif
