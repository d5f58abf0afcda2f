/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA's management library (NVML), which comes with the driver, opened at run time. Only what
 * asks is here, nothing that sets. Older libraries lack functions, and much goes unanswered for a
 * vGPU, a MIG slice or in a container: every question is put by NVML_ASK, and no answer means not
 * known.
 *
 * Structures and numbers are those of nvml.h, the library's public header, which is not needed.
 */
#ifndef PLUMB_CORE_HW_NVML_H
#define PLUMB_CORE_HW_NVML_H

#include <stdbool.h>
#include <stddef.h>

struct nvml_device; /* nvmlDevice_t */

struct nvml_pci { /* nvmlPciInfo_t */
    char legacy_id[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
};

struct nvml_memory { /* nvmlMemory_t; also nvmlBAR1Memory_t: total, free, used */
    unsigned long long total, free, used;
};

struct nvml_field { /* nvmlFieldValue_t */
    unsigned field, scope;
    long long timestamp, latency_us;
    unsigned type;
    int status; /* 0: the value is there */
    union {
        double real;
        unsigned number;
        unsigned long long wide;
    } value;
};

struct nvml_violation { /* nvmlViolationTime_t */
    unsigned long long reference_us, ns;
};

struct nvml_attributes { /* nvmlDeviceAttributes_t, of a MIG device */
    unsigned sms, copy_engines, decoders, encoders, jpegs, ofas, slices, compute_slices;
    unsigned long long memory_mib;
};

struct nvml_fabric { /* nvmlGpuFabricInfo_v2_t */
    unsigned version;
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
    unsigned health;
};

struct nvml_fabric_v1 { /* nvmlGpuFabricInfo_t */
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
};

struct nvml_temperature { /* nvmlTemperature_v1_t */
    unsigned version, sensor;
    int celsius;
};

struct nvml_confidential { /* nvmlConfComputeSystemState_t */
    unsigned environment, feature, tools;
};

#define NVML_VERSION(type, number) ((unsigned)sizeof(type) | (unsigned)(number) << 24)

enum { /* what functions return */
       NVML_INVALID = 2,
       NVML_UNSUPPORTED = 3,
       NVML_NO_PERMISSION = 4,
       NVML_NO_DRIVER = 9,
       NVML_NO_FUNCTION = 13,
       NVML_LOST = 15,
       NVML_MISMATCH = 18,
};

enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEMORY = 2 };
enum {
    NVML_POLICY_POWER = 0,
    NVML_POLICY_THERMAL = 1,
    NVML_POLICY_BOARD_LIMIT = 3,
    NVML_POLICY_RELIABILITY = 5
};
enum { NVML_CORRECTED, NVML_UNCORRECTED };
enum { NVML_SINCE_LOAD, NVML_EVER }; /* since the driver was loaded; since the card was made */
enum { NVML_DRAM = 2 };
enum { NVML_P2P_READ, NVML_P2P_WRITE, NVML_P2P_NVLINK, NVML_P2P_ATOMICS };
enum { NVML_REMOTE_GPU = 0, NVML_REMOTE_NPU = 1, NVML_REMOTE_SWITCH = 2 };
enum { NVML_LINKS_MAX = 36 };

enum {                                      /* fields */
       NVML_FIELD_NVLINK_SPEED_COMMON = 90, /* MB/s of each active link */
       NVML_FIELD_NVLINK_SPEED = 164,       /* MB/s of the link in scope */
};

enum nvml_held { /* what holds a device's clocks down, of which the driver counts the time */
                 NVML_HELD_POWER,
                 NVML_HELD_HEAT,          /* by the driver, which lowers the clocks step by step */
                 NVML_HELD_HARDWARE_HEAT, /* by the GPU itself, which halves them or more */
                 NVML_HELD_POWER_BRAKE,
                 NVML_HELD_BOARD_LIMIT,
                 NVML_HELD_RELIABILITY,
};

/* Why a device's clocks are what they are: bits of the answer to `reasons` and `reasons_old`. */
#define NVML_REASON_IDLE               0x001u
#define NVML_REASON_APPLICATION_CLOCKS 0x002u
#define NVML_REASON_POWER_CAP          0x004u
#define NVML_REASON_HW_SLOWDOWN        0x008u
#define NVML_REASON_SYNC_BOOST         0x010u
#define NVML_REASON_SW_THERMAL         0x020u
#define NVML_REASON_HW_THERMAL         0x040u
#define NVML_REASON_POWER_BRAKE        0x080u
#define NVML_REASON_DISPLAY_CLOCKS     0x100u
#define NVML_REASONS_KNOWN             0x1ffu /* those above; what follows is our own */
#define NVML_REASON_BOARD_LIMIT        0x200u
#define NVML_REASON_RELIABILITY        0x400u

/* X(member, symbol, arguments) */
#define NVML_FUNCTIONS(X)                                                                          \
    X(init, nvmlInit_v2, (void))                                                                   \
    X(shutdown, nvmlShutdown, (void))                                                              \
    X(driver_version, nvmlSystemGetDriverVersion, (char *, unsigned))                              \
    X(cuda_version, nvmlSystemGetCudaDriverVersion, (int *))                                       \
    X(confidential, nvmlSystemGetConfComputeState, (struct nvml_confidential *))                   \
    X(count, nvmlDeviceGetCount_v2, (unsigned *))                                                  \
    X(by_index, nvmlDeviceGetHandleByIndex_v2, (unsigned, struct nvml_device **))                  \
    X(by_address, nvmlDeviceGetHandleByPciBusId_v2, (const char *, struct nvml_device **))         \
    X(name, nvmlDeviceGetName, (struct nvml_device *, char *, unsigned))                           \
    X(pci, nvmlDeviceGetPciInfo_v3, (struct nvml_device *, struct nvml_pci *))                     \
    X(memory, nvmlDeviceGetMemoryInfo, (struct nvml_device *, struct nvml_memory *))               \
    X(bar1, nvmlDeviceGetBAR1MemoryInfo, (struct nvml_device *, struct nvml_memory *))             \
    X(bus_width, nvmlDeviceGetMemoryBusWidth, (struct nvml_device *, unsigned *))                  \
    X(cores, nvmlDeviceGetNumGpuCores, (struct nvml_device *, unsigned *))                         \
    X(attributes, nvmlDeviceGetAttributes_v2, (struct nvml_device *, struct nvml_attributes *))    \
    X(max_clock, nvmlDeviceGetMaxClockInfo, (struct nvml_device *, int, unsigned *))               \
    X(clock, nvmlDeviceGetClockInfo, (struct nvml_device *, int, unsigned *))                      \
    X(reasons, nvmlDeviceGetCurrentClocksEventReasons,                                             \
      (struct nvml_device *, unsigned long long *))                                                \
    X(reasons_old, nvmlDeviceGetCurrentClocksThrottleReasons,                                      \
      (struct nvml_device *, unsigned long long *))                                                \
    X(violation, nvmlDeviceGetViolationStatus,                                                     \
      (struct nvml_device *, int, struct nvml_violation *))                                        \
    X(temperature, nvmlDeviceGetTemperatureV, (struct nvml_device *, struct nvml_temperature *))   \
    X(temperature_old, nvmlDeviceGetTemperature, (struct nvml_device *, int, unsigned *))          \
    X(power, nvmlDeviceGetPowerUsage, (struct nvml_device *, unsigned *))                          \
    X(energy, nvmlDeviceGetTotalEnergyConsumption, (struct nvml_device *, unsigned long long *))   \
    X(power_limit, nvmlDeviceGetEnforcedPowerLimit, (struct nvml_device *, unsigned *))            \
    X(power_default, nvmlDeviceGetPowerManagementDefaultLimit, (struct nvml_device *, unsigned *)) \
    X(power_range, nvmlDeviceGetPowerManagementLimitConstraints,                                   \
      (struct nvml_device *, unsigned *, unsigned *))                                              \
    X(pcie_generation, nvmlDeviceGetCurrPcieLinkGeneration, (struct nvml_device *, unsigned *))    \
    X(pcie_generation_max, nvmlDeviceGetMaxPcieLinkGeneration, (struct nvml_device *, unsigned *)) \
    X(pcie_width, nvmlDeviceGetCurrPcieLinkWidth, (struct nvml_device *, unsigned *))              \
    X(pcie_width_max, nvmlDeviceGetMaxPcieLinkWidth, (struct nvml_device *, unsigned *))           \
    X(pcie_replays, nvmlDeviceGetPcieReplayCounter, (struct nvml_device *, unsigned *))            \
    X(capability, nvmlDeviceGetCudaComputeCapability, (struct nvml_device *, int *, int *))        \
    X(ecc, nvmlDeviceGetEccMode, (struct nvml_device *, unsigned *, unsigned *))                   \
    X(ecc_default, nvmlDeviceGetDefaultEccMode, (struct nvml_device *, unsigned *))                \
    X(ecc_total, nvmlDeviceGetTotalEccErrors,                                                      \
      (struct nvml_device *, int, int, unsigned long long *))                                      \
    X(memory_errors, nvmlDeviceGetMemoryErrorCounter,                                              \
      (struct nvml_device *, int, int, int, unsigned long long *))                                 \
    X(remapped_rows, nvmlDeviceGetRemappedRows,                                                    \
      (struct nvml_device *, unsigned *, unsigned *, unsigned *, unsigned *))                      \
    X(persistence, nvmlDeviceGetPersistenceMode, (struct nvml_device *, unsigned *))               \
    X(compute_mode, nvmlDeviceGetComputeMode, (struct nvml_device *, unsigned *))                  \
    X(virtualization, nvmlDeviceGetVirtualizationMode, (struct nvml_device *, unsigned *))         \
    X(link_state, nvmlDeviceGetNvLinkState, (struct nvml_device *, unsigned, unsigned *))          \
    X(link_version, nvmlDeviceGetNvLinkVersion, (struct nvml_device *, unsigned, unsigned *))      \
    X(link_remote, nvmlDeviceGetNvLinkRemotePciInfo_v2,                                            \
      (struct nvml_device *, unsigned, struct nvml_pci *))                                         \
    X(link_remote_type, nvmlDeviceGetNvLinkRemoteDeviceType,                                       \
      (struct nvml_device *, unsigned, unsigned *))                                                \
    X(fields, nvmlDeviceGetFieldValues, (struct nvml_device *, int, struct nvml_field *))          \
    X(p2p, nvmlDeviceGetP2PStatus, (struct nvml_device *, struct nvml_device *, int, unsigned *))  \
    X(fabric, nvmlDeviceGetGpuFabricInfoV, (struct nvml_device *, struct nvml_fabric *))           \
    X(fabric_v1, nvmlDeviceGetGpuFabricInfo, (struct nvml_device *, struct nvml_fabric_v1 *))      \
    X(mig_mode, nvmlDeviceGetMigMode, (struct nvml_device *, unsigned *, unsigned *))              \
    X(mig_count, nvmlDeviceGetMaxMigDeviceCount, (struct nvml_device *, unsigned *))               \
    X(mig_handle, nvmlDeviceGetMigDeviceHandleByIndex,                                             \
      (struct nvml_device *, unsigned, struct nvml_device **))

struct nvml {
    void *library;   /* NULL: a table made by a test */
    bool simulated;  /* a stand-in for the real library */
    unsigned driver; /* 580 of the driver's version "580.65.06"; 0: not known */
#define NVML_DECLARE(member, symbol, arguments) int(*member) arguments;
    NVML_FUNCTIONS(NVML_DECLARE)
#undef NVML_DECLARE
};

/* What the call returns: 0, or one of the numbers above. NVML_ASK: whether it succeeds. */
#define NVML_CALL(nvml, member, ...)                                                               \
    ((nvml)->member ? (nvml)->member(__VA_ARGS__) : NVML_NO_FUNCTION)
#define NVML_ASK(nvml, member, ...) (NVML_CALL(nvml, member, __VA_ARGS__) == 0)

/* Opens and starts the library. 0; -ENOENT or -ENODEV with the reason in *why. */
int nvml_open(struct nvml **nvml, char *why, size_t len);
void nvml_close(struct nvml *nvml); /* NULL is left alone */

/* The device at a PCI address such as "0000:3b:00.0"; NULL where the library shows none there. */
struct nvml_device *nvml_find(const struct nvml *nvml, const char *address);

/* For how long that held the device's clocks down since the driver was loaded, ns. What the call
 * returns: 0, or one of the numbers above. */
int nvml_held_ns(const struct nvml *nvml, struct nvml_device *device, enum nvml_held what,
                 double *ns);
/* The fabric that the device's NVLinks are part of, by the newest call that the library has: 0, or
 * what that returned. info->state 0: of none; 3: it is ready. */
int nvml_fabric(const struct nvml *nvml, struct nvml_device *device, struct nvml_fabric *info);
/* MB/s of one NVLink in one direction; 0 where the driver does not say. */
unsigned nvml_link_speed(const struct nvml *nvml, struct nvml_device *device, unsigned link);
/* 4.0: the version of an NVLink; 0 where the driver does not say. */
double nvml_link_version(const struct nvml *nvml, struct nvml_device *device, unsigned link);
/* GB/s of data that so many NVLinks of this version carry in one direction, where they signal so
 * many: at most these, with all that coding and error correction take. */
double nvlink_data_gbps(double version, double links, double signalled_gbps);

/* Why a call gave no answer, in words: "NVML: not supported by this GPU or its driver". */
const char *nvml_why(int status);

#endif
