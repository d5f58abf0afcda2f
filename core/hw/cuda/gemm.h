/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products by cuBLASLt: one opened library with one plan. */
#ifndef PLUMB_CORE_HW_CUDA_GEMM_H
#define PLUMB_CORE_HW_CUDA_GEMM_H

#include "core/hw/cuda/gemm_library.h"
#include "core/hw/gpu.h"

struct gpu_gemm {
    struct gpu *gpu;
    struct gemm_library lib;
    cublasLtHandle_t handle;
    void *workspace;
    size_t workspace_bytes;
    char version[32];
    /* of the plan */
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t first, second, result;
    cublasLtMatmulHeuristicResult_t *found;
    bool *ran; /* found[i] did once, so that its kernels are loaded */
    unsigned n;
    union {
        double f64;
        float f32;
        uint16_t f16;
        int32_t s32;
    } one, zero; /* C = one A B + zero C */
};

/* LT(gemm, cublasLtMatmul, ...): the call, and 0 or -errno with gpu_error() set. */
#define LT(gemm, call, ...) gemm_check(gemm, (gemm)->lib.call(__VA_ARGS__), #call)

int gemm_check(struct gpu_gemm *gemm, cublasStatus_t status, const char *call);

int gemm_plan(struct gpu_gemm *gemm, const struct gpu_gemm_problem *problem, unsigned most,
              unsigned *n);
void gemm_unplan(struct gpu_gemm *gemm);

#endif
