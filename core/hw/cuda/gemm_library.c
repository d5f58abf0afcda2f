/* SPDX-License-Identifier: Apache-2.0 */
/* Finds cuBLASLt: see gemm_library.h. */
#include "core/hw/cuda/gemm_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT(x)    #x
#define TEXT_OF(x) TEXT(x)
/* The one whose header this was built with: other major versions have other names. */
#define FILE_NAME "libcublasLt.so." TEXT_OF(CUBLAS_VER_MAJOR)

#define FUNCTION(name) {TEXT_OF(name), offsetof(struct gemm_library, name)},

static const struct {
    const char *symbol;
    size_t offset;
} functions[] = {GEMM_FUNCTIONS(FUNCTION)};

static void *open_below(const char *home)
{
    static const char *const folders[] = {"lib64", "lib"};
    void *library = NULL;
    char path[PATH_MAX];

    for (size_t i = 0; i < 2 && !library; i++) {
        snprintf(path, sizeof(path), "%s/%s/" FILE_NAME, home, folders[i]);
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return library;
}

/* Beside the bin folder of the first nvcc on the path, links followed; NULL where there is none. */
static void *open_beside_nvcc(void)
{
    char file[PATH_MAX], home[PATH_MAX];

    for (const char *at = getenv("PATH"); at && *at; at += *at == ':') {
        size_t n = strcspn(at, ":");
        snprintf(file, sizeof(file), "%.*s/nvcc", (int)n, at);
        at += n;
        if (!n || access(file, X_OK) || !realpath(file, home))
            continue;
        snprintf(file, sizeof(file), "%s/..", dirname(home));
        return open_below(file);
    }
    return NULL;
}

/* Toolkits that lie in a folder of their own, which the loader does not know. */
static void *open_toolkit(void)
{
    static const char *const homes[] = {"CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX"};
    void *library = NULL;

    for (size_t i = 0; i < sizeof(homes) / sizeof(homes[0]) && !library; i++) {
        const char *home = getenv(homes[i]);
        if (home && *home)
            library = open_below(home);
    }
    return library ? library : open_beside_nvcc();
}

static int find(struct gpu *gpu, void **library)
{
    const char *given = getenv("PLUMB_LIBCUBLASLT");

    if (given && *given) {
        *library = dlopen(given, RTLD_NOW | RTLD_LOCAL);
        return *library ? 0
                        : cuda_error(gpu, -ENODEV,
                                     "the library named by PLUMB_LIBCUBLASLT does not load: %.200s",
                                     dlerror());
    }
    *library = dlopen(FILE_NAME, RTLD_NOW | RTLD_LOCAL);
    if (!*library)
        *library = open_toolkit();
    if (!*library)
        *library = dlopen("libcublasLt.so", RTLD_NOW | RTLD_LOCAL);
    return *library
               ? 0
               : cuda_error(gpu, -ENODEV,
                            "no cuBLASLt (" FILE_NAME "): install NVIDIA's libcublas, or set "
                            "PLUMB_LIBCUBLASLT to its path: the toolkit's lib64 has one, and in a "
                            "Python environment with torch site-packages/nvidia: cu13/lib for "
                            "CUDA 13, cublas/lib for CUDA 12");
}

int gemm_library_open(struct gpu *gpu, struct gemm_library *lib)
{
    int err = find(gpu, &lib->library);

    if (err)
        return err;
    cuda_state()->gemm_library = lib->library;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *at = dlsym(lib->library, functions[i].symbol);
        if (!at)
            return cuda_error(gpu, -ENODEV,
                              "the cuBLASLt that was found has no %s: it wants version " TEXT_OF(
                                  CUBLAS_VER_MAJOR) " or newer",
                              functions[i].symbol);
        memcpy((char *)lib + functions[i].offset, &at, sizeof(at));
    }
    return 0;
}
