/* SPDX-License-Identifier: Apache-2.0 */
/* Finds NCCL: see nccl_library.h. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/collective/nccl/nccl_library.h"

#define FILE_NAME      "libnccl.so.2"
#define FUNCTION(name) {#name, offsetof(struct nccl_library, name)},

static const struct {
    const char *symbol;
    size_t offset;
} functions[] = {NCCL_FUNCTIONS(FUNCTION)};

/* Folders of their own, which the loader does not know. */
static void *open_below(const char *variable)
{
    static const char *const folders[] = {"lib64", "lib", "build/lib"};
    const char *home = getenv(variable);
    char path[PATH_MAX];
    void *handle = NULL;

    for (size_t i = 0; home && *home && i < sizeof(folders) / sizeof(*folders) && !handle; i++) {
        snprintf(path, sizeof(path), "%s/%s/" FILE_NAME, home, folders[i]);
        handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return handle;
}

static void *open_any(void)
{
    static const char *const homes[] = {"NCCL_HOME", "CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX"};
    void *handle = dlopen(FILE_NAME, RTLD_NOW | RTLD_LOCAL);

    for (size_t i = 0; i < sizeof(homes) / sizeof(*homes) && !handle; i++)
        handle = open_below(homes[i]);
    return handle ? handle : dlopen("/usr/local/cuda/lib64/" FILE_NAME, RTLD_NOW | RTLD_LOCAL);
}

static int find(void **handle, char *error, size_t len)
{
    const char *given = getenv("PLUMB_LIBNCCL");

    *handle = given && *given ? dlopen(given, RTLD_NOW | RTLD_LOCAL) : open_any();
    if (*handle)
        return 0;
    if (given && *given)
        snprintf(error, len, "the library named by PLUMB_LIBNCCL does not load: %.200s", dlerror());
    else
        snprintf(error, len,
                 "no NCCL (" FILE_NAME
                 "): install libnccl2 of NVIDIA's, or set PLUMB_LIBNCCL to its "
                 "path: in a Python environment with torch site-packages/nvidia/nccl/lib has one");
    return -ENODEV;
}

int nccl_library_open(struct nccl_library *lib, char *error, size_t len)
{
    int err = find(&lib->handle, error, len);

    for (size_t i = 0; i < sizeof(functions) / sizeof(*functions) && !err; i++) {
        void *at = dlsym(lib->handle, functions[i].symbol);
        memcpy((char *)lib + functions[i].offset, &at, sizeof(at));
        if (at)
            continue;
        snprintf(error, len,
                 "the NCCL that was found has no %s: install version 2.14 or newer, or name "
                 "another in PLUMB_LIBNCCL",
                 functions[i].symbol);
        err = -ENODEV;
    }
    if (!err)
        *(void **)&lib->reset_debug = dlsym(lib->handle, "ncclResetDebugInit");
    return err;
}
