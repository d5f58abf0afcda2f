/* SPDX-License-Identifier: Apache-2.0 */
/* The heuristic's candidates, and running one. */
#include "tests/sim/lt.h"

#include <string.h>

#define MAGIC           UINT64_C(0x706c756d62616c67)
#define WORKSPACE_BYTES (1024 * 1024) /* that each candidate but the first wants */

/* What an algorithm holds: which candidate it is. */
static uint64_t candidate_of(const cublasLtMatmulAlgo_t *algo)
{
    return algo && algo->data[0] == MAGIC ? algo->data[1] : UINT64_MAX;
}

static size_t workspace_of(uint64_t candidate)
{
    return candidate ? WORKSPACE_BYTES : 0;
}

/* The last candidate splits the sums, and adds up their parts in C's own type where it may. */
static uint32_t scheme_of(uint32_t schemes)
{
    return schemes & CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE ? CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE
           : schemes & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE
               ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE
               : CUBLASLT_REDUCTION_SCHEME_NONE;
}

/* Of the first's speed. */
static double factor_of(const struct sim_gpu *gpu, uint64_t candidate)
{
    if (candidate && candidate == gpu->gemm_best_candidate)
        return gpu->gemm_best_factor;
    return 1 / (1 + 0.05 * (double)candidate);
}

static bool aligned(const void *a, const void *b, const void *d)
{
    return (((uintptr_t)a | (uintptr_t)b | (uintptr_t)d) & 15) == 0;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int most,
                                              cublasLtMatmulHeuristicResult_t results[], int *n)
{
    const struct lt_preference *wish = (struct lt_preference *)preference;
    const struct sim_gpu *gpu;
    struct lt_driver driver;
    struct lt_product product;
    cublasStatus_t rc;
    double tflops;

    *n = 0;
    if (!handle || !desc || !a || !b || !c || !d || !wish || most < 1)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!lt_driver(&driver))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    rc = lt_check(driver.machine, (unsigned)driver.gpu, (struct lt_desc *)desc,
                  (struct lt_layout *)a, (struct lt_layout *)b, (struct lt_layout *)d, &product,
                  &tflops);
    if (rc)
        return rc;
    gpu = &driver.machine->gpu[driver.gpu];
    for (uint64_t i = 0; i < gpu->gemm_candidates && *n < most; i++) {
        cublasLtMatmulHeuristicResult_t *r = &results[*n];

        if (workspace_of(i) > wish->workspace_bytes)
            continue;
        memset(r, 0, sizeof(*r));
        r->algo.data[0] = MAGIC;
        r->algo.data[1] = i;
        r->algo.data[2] = i + 1 == gpu->gemm_candidates ? scheme_of(wish->schemes) : 0;
        r->workspaceSize = workspace_of(i);
        r->state = CUBLAS_STATUS_SUCCESS;
        r->wavesCount = 1;
        ++*n;
    }
    return *n ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t which,
                                                    void *value, size_t bytes, size_t *written)
{
    uint64_t i = candidate_of(algo);
    uint32_t word = 0;

    if (i == UINT64_MAX)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (which == CUBLASLT_ALGO_CONFIG_ID)
        word = 66;
    else if (which == CUBLASLT_ALGO_CONFIG_TILE_ID)
        word = CUBLASLT_MATMUL_TILE_128x128 + (uint32_t)i;
    else if (which == CUBLASLT_ALGO_CONFIG_STAGES_ID)
        word = CUBLASLT_MATMUL_STAGES_32x3;
    else if (which == CUBLASLT_ALGO_CONFIG_SPLITK_NUM)
        word = algo->data[2] ? 2 : 1;
    else if (which == CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME)
        word = (uint32_t)algo->data[2];
    if (bytes > sizeof(word))
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(value, &word, bytes); /* little endian */
    if (written)
        *written = bytes;
    return CUBLAS_STATUS_SUCCESS;
}

static bool scalar(cudaDataType_t type, const void *at, double *value)
{
    enum lt_type t;

    if (!at || !lt_type_of(type, &t))
        return false;
    *value = lt_read(t, at, 0);
    return true;
}

static uint64_t matrix_bytes(const struct lt_layout *layout)
{
    enum lt_type type;

    if (!lt_type_of(layout->type, &type))
        return 0;
    return ((layout->cols - 1) * (uint64_t)layout->ld + layout->rows) * lt_bytes(type);
}

static void describe_task(struct sim_task *task, const struct lt_product *product, const void *a,
                          const struct lt_layout *a_layout, const void *b,
                          const struct lt_layout *b_layout, void *d,
                          const struct lt_layout *d_layout)
{
    memset(task, 0, sizeof(*task));
    memcpy(task->name, "gemm", 5);
    memcpy(task->args, product, sizeof(*product));
    task->run = lt_product_run;
    task->range[0] = (struct sim_range){(uintptr_t)a, matrix_bytes(a_layout), false};
    task->range[1] = (struct sim_range){(uintptr_t)b, matrix_bytes(b_layout), false};
    task->range[2] = (struct sim_range){(uintptr_t)d, matrix_bytes(d_layout), true};
    task->ranges = 3;
    if (product->beta != 0) { /* what it writes it reads first: doing it twice is not the same */
        task->range[3] = task->range[2];
        task->range[3].write = false;
        task->ranges = 4;
    }
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc_handle,
                              const void *alpha, const void *a, cublasLtMatrixLayout_t a_layout,
                              const void *b, cublasLtMatrixLayout_t b_layout, const void *beta,
                              const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo,
                              void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
    const struct lt_desc *desc = (struct lt_desc *)desc_handle;
    uint64_t candidate = candidate_of(algo);
    const struct sim_gpu *gpu;
    struct lt_product product;
    struct lt_driver driver;
    struct sim_task task;
    cublasStatus_t rc;
    double tflops;

    if (!handle || !desc || !a || !b || !c || !d || !c_layout || candidate == UINT64_MAX ||
        c != d || workspace_of(candidate) > workspace_bytes ||
        (workspace_of(candidate) && !workspace))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!aligned(a, b, d))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (!lt_driver(&driver))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    rc = lt_check(driver.machine, (unsigned)driver.gpu, desc, (struct lt_layout *)a_layout,
                  (struct lt_layout *)b_layout, (struct lt_layout *)d_layout, &product, &tflops);
    if (!rc &&
        (!scalar(desc->scale, alpha, &product.alpha) || !scalar(desc->scale, beta, &product.beta)))
        rc = CUBLAS_STATUS_INVALID_VALUE;
    if (rc)
        return rc;
    gpu = &driver.machine->gpu[driver.gpu];
    describe_task(&task, &product, a, (struct lt_layout *)a_layout, b, (struct lt_layout *)b_layout,
                  d, (struct lt_layout *)d_layout);
    task.ns = gpu->gemm_us * 1e3 + 2.0 * (double)product.m * (double)product.n * (double)product.k /
                                       (tflops * 1e3 * factor_of(gpu, candidate));
    task.zeros_factor = gpu->gemm_zeros_factor;
    return driver.submit((CUstream)stream, &task) ? CUBLAS_STATUS_EXECUTION_FAILED
                                                  : CUBLAS_STATUS_SUCCESS;
}
