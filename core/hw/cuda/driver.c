/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the driver's library: see driver.h. */
#include "core/hw/cuda/driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hw/cuda/gpu_cuda.h"
#include "core/hw/cuda/reason.h"

#define TEXT(x)        #x
#define TEXT_OF(x)     TEXT(x) /* after the header's macros: cuMemAlloc_v2 */
#define FUNCTION(name) {TEXT_OF(name), offsetof(struct cuda_driver, name)},

static const struct {
    const char *symbol;
    size_t offset;
} functions[] = {CUDA_FUNCTIONS(FUNCTION)};

#define OPTIONAL(name)                                                                             \
    {                                                                                              \
#name, offsetof(struct cuda_driver, name)                                                  \
    }

static const struct {
    const char *symbol;
    size_t offset;
} optional[] = {OPTIONAL(cuMemGetHandleForAddressRange), OPTIONAL(cuFlushGPUDirectRDMAWrites)};

/* Sets all pointers; -EOPNOTSUPP with the name of the first that is missing. */
static int resolve(struct cuda_driver *driver, char *error, size_t len)
{
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *at = dlsym(driver->library, functions[i].symbol);
        if (!at) {
            snprintf(
                error, len,
                "the CUDA driver has no %s: install a newer driver of NVIDIA's, or build with an "
                "older CUDA toolkit",
                functions[i].symbol);
            return -EOPNOTSUPP;
        }
        memcpy((char *)driver + functions[i].offset, &at, sizeof(at));
    }
    for (size_t i = 0; i < sizeof(optional) / sizeof(optional[0]); i++) {
        void *at = dlsym(driver->library, optional[i].symbol);
        memcpy((char *)driver + optional[i].offset, &at, sizeof(at));
    }
    return 0;
}

/* The calls below may fail before all is resolved. */
static int explain(struct cuda_driver *driver, CUresult result, char *error, size_t len)
{
    char text[160] = "error";

    if (driver->cuGetErrorName && driver->cuGetErrorString)
        cuda_error_text(driver, result, text, sizeof(text));
    cuda_reason_init((int)result, text, error, len);
    return result == CUDA_RESULT_NEEDS_NEWER_DRIVER ? -EOPNOTSUPP : -ENODEV;
}

static void *symbol(struct cuda_driver *driver, const char *name)
{
    return dlsym(driver->library, name);
}

/* Asked before the functions that only a newer driver has, so that its age is what is complained of. */
static int check_version(struct cuda_driver *driver, char *error, size_t len)
{
    __typeof__(&cuDriverGetVersion) get = symbol(driver, "cuDriverGetVersion");

    driver->cuGetErrorName = symbol(driver, "cuGetErrorName");
    driver->cuGetErrorString = symbol(driver, "cuGetErrorString");
    if (!get) {
        snprintf(error, len,
                 "the libcuda.so.1 that was found is no CUDA driver: it has no "
                 "cuDriverGetVersion");
        return -EOPNOTSUPP;
    }
    CUresult result = get(&driver->version);
    if (result != CUDA_SUCCESS)
        return explain(driver, result, error, len);
    /* Within a major version any driver runs what any toolkit made for its GPU. */
    if (driver->version / 1000 < CUDA_VERSION / 1000) {
        cuda_reason_version(driver->version, CUDA_VERSION, error, len);
        return -ELIBBAD;
    }
    return 0;
}

static bool launches_wait(void)
{
    const char *set = getenv("CUDA_LAUNCH_BLOCKING");

    return set && *set && strcmp(set, "0") != 0;
}

int cuda_driver_open(struct cuda_driver *driver, char *error, size_t len)
{
    const char *given = getenv("PLUMB_LIBCUDA");

    driver->library = dlopen(given && *given ? given : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver->library) {
        cuda_reason_library(dlerror(), error, len);
        return -ENODEV;
    }
    int err = check_version(driver, error, len);
    if (!err)
        err = resolve(driver, error, len);
    if (err)
        return err;
    if (launches_wait()) {
        snprintf(
            error, len,
            "CUDA_LAUNCH_BLOCKING is set: every launch would wait for its end, and no stream can "
            "be held for timing: unset it");
        return -EOPNOTSUPP;
    }
    setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0); /* numbers as nvidia-smi's; a user's own stays */
    CUresult result = driver->cuInit(0);
    return result == CUDA_SUCCESS ? 0 : explain(driver, result, error, len);
}
