/* SPDX-License-Identifier: Apache-2.0 */
/* The table of matrix libraries and what they share: see library.h. */
#include "core/blas/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const struct gemm_library *const gemm_libraries[] = {
    &gemm_onednn, &gemm_openblas, &gemm_openblas_best, &gemm_cublaslt, &gemm_cublaslt_best, NULL};

const char *const gemm_library_names[] = {"auto",     "onednn",        "openblas", "openblas-best",
                                          "cublaslt", "cublaslt-best", NULL};

const struct gemm_where *const gemm_wheres[] = {&gemm_on_host, &gemm_on_gpu, NULL};

const struct gemm_library *gemm_library_for(const struct gemm_where *where, enum gemm_dtype dtype)
{
    for (const struct gemm_library *const *at = gemm_libraries; *at; at++)
        if ((*at)->where == where && (*at)->dtypes >> dtype & 1)
            return *at;
    return NULL;
}

unsigned gemm_types_of(const struct gemm_where *where)
{
    unsigned types = 0;

    for (const struct gemm_library *const *at = gemm_libraries; *at; at++)
        types |= (*at)->where == where ? (*at)->dtypes : 0;
    return types;
}

int gemm_why(char *why, int err, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(why, GEMM_WHY_BYTES, format, args);
    va_end(args);
    return err;
}

void *gemm_dlopen(const char *file, const char *const *names, const char *package, int *err,
                  char *why)
{
    const char *const one[] = {file, NULL};
    const char *const *try = file ? one : names;
    void *handle = NULL;

    for (; *try && !handle; try++)
        handle = dlopen(*try, RTLD_NOW | RTLD_LOCAL);
    *err = 0;
    if (!handle && file) {
        const char *text = dlerror();
        *err = gemm_why(why, -ENODEV, "cannot open library '%s': %s", file, text ? text : "");
    } else if (!handle) {
        *err = gemm_why(why, -ENODEV, "library '%s' is not here: install Debian package '%s'",
                        names[0], package);
    }
    return handle;
}

int gemm_dlsym(void *handle, const struct gemm_symbol *symbols, void *table, char *why)
{
    for (; symbols->name; symbols++) {
        void *at = dlsym(handle, symbols->name);
        if (!at && !symbols->optional)
            return gemm_why(why, -ENODEV,
                            "this library has no function '%s': it is another one or too old",
                            symbols->name);
        memcpy((char *)table + symbols->offset, &at, sizeof(at));
    }
    return 0;
}
