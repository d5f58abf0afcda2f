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

static bool is_steered_by(const struct gemm_library *library, const char *variable)
{
    size_t name = strcspn(variable, "=");
    static const char threads[] = "_NUM_THREADS";
    size_t end = sizeof(threads) - 1;

    if (!library->steered_by || (name > end && !strncmp(variable + name - end, threads, end)))
        return false;
    for (const char *const *at = library->steered_by; *at; at++)
        if (!strncmp(variable, *at, strlen(*at)))
            return true;
    return false;
}

#define VALUE_SHOWN 60 /* bytes of a variable */

const char *gemm_steering(const struct gemm_library *library, const char *const *environment,
                          char *text, size_t len)
{
    size_t at = 0;

    text[0] = 0;
    for (; environment && *environment && at + 1 < len; environment++)
        if (is_steered_by(library, *environment)) {
            int n =
                snprintf(text + at, len - at, "%s%.*s", at ? ", " : "", VALUE_SHOWN, *environment);
            at += n > 0 ? (size_t)n : 0;
        }
    return text;
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
