/* SPDX-License-Identifier: Apache-2.0 */
/* Opening NVML: see nvml.h. */
#include "core/hw/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

#define LIBRARY "libnvidia-ml.so.1"

static int start(struct nvml *nvml, char *why, size_t len)
{
    char version[96] = "";
    int status;

    nvml->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!nvml->library) {
        snprintf(why, len, LIBRARY " is not on this machine: NVML is absent");
        return -ENOENT;
    }
#define LOAD(member, symbol, arguments) *(void **)&nvml->member = dlsym(nvml->library, #symbol);
    NVML_FUNCTIONS(LOAD)
#undef LOAD
    nvml->simulated = dlsym(nvml->library, "plumb_simulated") != NULL;
    status = nvml->init ? nvml->init() : -1;
    if (!status && NVML_ASK(nvml, driver_version, version, sizeof(version)))
        nvml->driver = (unsigned)strtoul(version, NULL, 10);
    if (status)
        snprintf(why, len, LIBRARY " does not start (NVML error %d%s)", status,
                 status == NVML_NO_DRIVER  ? ": the driver is not loaded"
                 : status == NVML_MISMATCH ? ": driver and library are of different versions"
                                           : "");
    return status ? -ENODEV : 0;
}

int nvml_open(struct nvml **out, char *why, size_t len)
{
    struct nvml *nvml = xcalloc(1, sizeof(*nvml));
    int err = start(nvml, why, len);

    *out = err ? NULL : nvml;
    if (err && nvml->library)
        dlclose(nvml->library);
    if (err)
        free(nvml);
    return err;
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

struct nvml_device *nvml_find(const struct nvml *nvml, const char *address)
{
    struct nvml_device *device = NULL;

    return NVML_ASK(nvml, by_address, address, &device) ? device : NULL;
}

/* The calls by a policy end with CUDA 14. The numbers of some fields have changed: with those from
 * 269 on, drivers 575 to 589 tell settings of power smoothing, and older ones nothing; with those
 * from 251 on, others tell such settings (nvml.h of CUDA 12.8, 12.9, 13.0, 13.1). */
enum { DRIVER_OLD, DRIVER_575, DRIVER_590, DRIVERS };

static const struct {
    int policy;               /* -1: there is none */
    unsigned fields[DRIVERS]; /* 0: there is none */
} counts[] = {
    [NVML_HELD_POWER] = {NVML_POLICY_POWER, {74, 74, 74}},
    [NVML_HELD_HEAT] = {NVML_POLICY_THERMAL, {75, 251, 269}},
    [NVML_HELD_HARDWARE_HEAT] = {-1, {0, 252, 270}},
    [NVML_HELD_POWER_BRAKE] = {-1, {0, 253, 271}},
    [NVML_HELD_BOARD_LIMIT] = {NVML_POLICY_BOARD_LIMIT, {77, 77, 77}},
    [NVML_HELD_RELIABILITY] = {NVML_POLICY_RELIABILITY, {79, 79, 79}},
};

int nvml_held_ns(const struct nvml *nvml, struct nvml_device *device, enum nvml_held what,
                 double *ns)
{
    int age = nvml->driver >= 590 ? DRIVER_590 : nvml->driver >= 575 ? DRIVER_575 : DRIVER_OLD;
    struct nvml_field field = {.field = counts[what].fields[age]};
    struct nvml_violation violation = {0, 0};
    int status;

    if (counts[what].policy >= 0 &&
        NVML_ASK(nvml, violation, device, counts[what].policy, &violation)) {
        *ns = (double)violation.ns;
        return 0;
    }
    status = field.field ? NVML_CALL(nvml, fields, device, 1, &field) : NVML_NO_FUNCTION;
    status = status ? status : field.status;
    *ns = status ? 0 : (double)field.value.wide;
    return status;
}

int nvml_fabric(const struct nvml *nvml, struct nvml_device *device, struct nvml_fabric *info)
{
    struct nvml_fabric_v1 old = {.status = 0};

    *info = (struct nvml_fabric){.version = NVML_VERSION(struct nvml_fabric, 2)};
    int status = NVML_CALL(nvml, fabric, device, info);
    if (!status || !NVML_ASK(nvml, fabric_v1, device, &old))
        return status;
    memcpy(info->cluster, old.cluster, sizeof(info->cluster));
    info->state = old.state;
    info->status = old.status;
    info->clique = old.clique;
    info->health = 0;
    return 0;
}

unsigned nvml_link_speed(const struct nvml *nvml, struct nvml_device *device, unsigned link)
{
    struct nvml_field field[2] = {{.field = NVML_FIELD_NVLINK_SPEED, .scope = link},
                                  {.field = NVML_FIELD_NVLINK_SPEED_COMMON}};

    if (!NVML_ASK(nvml, fields, device, 2, field))
        return 0;
    if (field[0].status == 0 && field[0].value.number)
        return field[0].value.number;
    return field[1].status == 0 ? field[1].value.number : 0;
}

double nvml_link_version(const struct nvml *nvml, struct nvml_device *device, unsigned link)
{
    /* the library counts them: 6 is NVLink 4.0 */
    static const double versions[] = {0, 1.0, 2.0, 2.2, 3.0, 3.1, 4.0, 5.0, 6.0};
    unsigned code = 0;

    if (!NVML_ASK(nvml, link_version, device, link, &code))
        return 0;
    return code < sizeof(versions) / sizeof(*versions) ? versions[code] : 0;
}

/*
 * GB/s of data of one link in one direction, by generation. NVIDIA states the sum of both directions
 * and of all links of a GPU: P100 4 links, 160 GB/s (whitepaper WP-08019-001, 2016); V100 6, 300;
 * A100 12, 600; H100 18, 900; B200 18, 1800 (nvidia.com/en-us/data-center/nvlink, 2025).
 */
static const double link_gbps[] = {0, 20, 25, 25, 25, 50};

double nvlink_data_gbps(double version, double links, double signalled_gbps)
{
    size_t generation = version > 0 ? (size_t)version : 0; /* 2.2 is the second */
    bool known = generation < sizeof(link_gbps) / sizeof(*link_gbps) && link_gbps[generation] > 0;

    return known && links > 0 ? fmin(signalled_gbps, links * link_gbps[generation])
                              : signalled_gbps;
}

const char *nvml_why(int status)
{
    switch (status) {
    case NVML_UNSUPPORTED:
        return "NVML: not supported by this GPU or its driver";
    case NVML_NO_PERMISSION:
        return "NVML: not permitted to this user";
    case NVML_NO_FUNCTION:
        return "this driver's NVML is too old to tell";
    case NVML_LOST:
        return "NVML: the GPU is lost";
    default:
        return "NVML gives no answer";
    }
}
