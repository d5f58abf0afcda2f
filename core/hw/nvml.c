/* SPDX-License-Identifier: Apache-2.0 */
/* Opening NVML: see nvml.h. */
#include "core/hw/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define LIBRARY "libnvidia-ml.so.1"

static void load_functions(struct nvml *nvml)
{
#define LOAD(member, symbol, arguments) *(void **)&nvml->member = dlsym(nvml->library, #symbol);
    NVML_FUNCTIONS(LOAD)
#undef LOAD
    nvml->simulated = dlsym(nvml->library, "plumb_simulated") != NULL;
}

static int start(struct nvml *nvml, char *why, size_t len)
{
    int status;

    nvml->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!nvml->library) {
        snprintf(why, len, LIBRARY " is not on this machine: NVML is absent");
        return -ENOENT;
    }
    load_functions(nvml);
    status = nvml->init ? nvml->init() : -1;
    if (status)
        snprintf(why, len, LIBRARY " does not start (NVML error %d%s)", status,
                 status == NVML_NO_DRIVER  ? ": the driver is not loaded"
                 : status == NVML_MISMATCH ? ": driver and library are of different versions"
                                           : "");
    return status ? -ENODEV : 0;
}

int nvml_open(struct nvml **out, char *why, size_t len)
{
    struct nvml *nvml = calloc(1, sizeof(*nvml));
    int err = nvml ? start(nvml, why, len) : -ENOMEM;

    *out = err ? NULL : nvml;
    if (err && nvml && nvml->library)
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
