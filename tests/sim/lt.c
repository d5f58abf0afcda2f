/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated cuBLASLt: the interface's small objects, and the mark of a stand-in. Nothing is computed
 * without lt_driver, which is in the mark's own object file.
 */
#include "tests/sim/lt.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

const char plumb_simulated[] = "libcublasLt";

/* The driver is opened by whom uses us; it is found by its name, loaded from wherever. */
bool lt_driver(struct lt_driver *driver)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    const struct sim_machine *(*machine)(void);
    int (*current)(void);

    if (!library || !plumb_simulated[0])
        return false;
    *(void **)&machine = dlsym(library, "plumb_sim_machine");
    *(void **)&current = dlsym(library, "plumb_sim_current");
    *(void **)&driver->submit = dlsym(library, "plumb_sim_submit");
    dlclose(library); /* one user less: it stays, as it was there before */
    if (!machine || !current || !driver->submit)
        return false;
    driver->machine = machine();
    driver->gpu = current();
    return driver->gpu >= 0;
}

static cublasStatus_t make(void **out, const void *from, size_t bytes)
{
    *out = malloc(bytes);
    if (!*out)
        return CUBLAS_STATUS_ALLOC_FAILED;
    memcpy(*out, from, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t drop(const void *object)
{
    if (!object)
        return CUBLAS_STATUS_INVALID_VALUE;
    free((void *)(uintptr_t)object);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set(void *field, size_t field_bytes, const void *value, size_t bytes)
{
    if (bytes != field_bytes || !value)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(field, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    struct lt_driver driver;
    char one = 1;

    if (!lt_driver(&driver))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    return make((void **)handle, &one, sizeof(one));
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    return drop(handle);
}

size_t cublasLtGetVersion(void)
{
    return CUBLAS_VER_MAJOR * 10000 + CUBLAS_VER_MINOR * 100 + CUBLAS_VER_PATCH;
}

const char *cublasLtGetStatusName(cublasStatus_t status)
{
    static const struct {
        cublasStatus_t status;
        const char *name;
    } names[] = {
        {CUBLAS_STATUS_SUCCESS, "CUBLAS_STATUS_SUCCESS"},
        {CUBLAS_STATUS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED"},
        {CUBLAS_STATUS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED"},
        {CUBLAS_STATUS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE"},
        {CUBLAS_STATUS_ARCH_MISMATCH, "CUBLAS_STATUS_ARCH_MISMATCH"},
        {CUBLAS_STATUS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED"},
        {CUBLAS_STATUS_INTERNAL_ERROR, "CUBLAS_STATUS_INTERNAL_ERROR"},
        {CUBLAS_STATUS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED"},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (names[i].status == status)
            return names[i].name;
    return "CUBLAS_STATUS_UNKNOWN";
}

const char *cublasLtGetStatusString(cublasStatus_t status)
{
    return cublasLtGetStatusName(status);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute,
                                        cudaDataType_t scale)
{
    struct lt_desc new = {compute, scale, CUBLAS_OP_N, CUBLAS_OP_N, 0};

    return make((void **)desc, &new, sizeof(new));
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    return drop(desc);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle,
                                              cublasLtMatmulDescAttributes_t which,
                                              const void *value, size_t bytes)
{
    struct lt_desc *desc = (struct lt_desc *)handle;

    switch (which) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return set(&desc->trans_a, sizeof(desc->trans_a), value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return set(&desc->trans_b, sizeof(desc->trans_b), value, bytes);
    case CUBLASLT_MATMUL_DESC_FAST_ACCUM:
        return set(&desc->fast, sizeof(desc->fast), value, bytes);
    default:
        return CUBLAS_STATUS_INVALID_VALUE;
    }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
                                          uint64_t rows, uint64_t cols, int64_t ld)
{
    struct lt_layout new = {type, rows, cols, ld};

    return make((void **)layout, &new, sizeof(new));
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    return drop(layout);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    struct lt_preference new = {.schemes = CUBLASLT_REDUCTION_SCHEME_MASK};

    return make((void **)preference, &new, sizeof(new));
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    return drop(preference);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle,
                                                    cublasLtMatmulPreferenceAttributes_t which,
                                                    const void *value, size_t bytes)
{
    struct lt_preference *preference = (struct lt_preference *)handle;

    if (which == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
        return set(&preference->schemes, sizeof(preference->schemes), value, bytes);
    if (which != CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
        return CUBLAS_STATUS_INVALID_VALUE;
    return set(&preference->workspace_bytes, sizeof(preference->workspace_bytes), value, bytes);
}
