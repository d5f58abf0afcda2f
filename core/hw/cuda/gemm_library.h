/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLASLt, opened at run time: several hundred megabytes that only matrix products need. */
#ifndef PLUMB_CORE_HW_CUDA_GEMM_LIBRARY_H
#define PLUMB_CORE_HW_CUDA_GEMM_LIBRARY_H

#include <cublasLt.h>

#include "core/hw/cuda/gpu_cuda.h"

/* Every function that is called. */
#define GEMM_FUNCTIONS(X)                                                                          \
    X(cublasLtCreate)                                                                              \
    X(cublasLtDestroy)                                                                             \
    X(cublasLtGetVersion)                                                                          \
    X(cublasLtGetStatusName)                                                                       \
    X(cublasLtMatmulDescCreate)                                                                    \
    X(cublasLtMatmulDescDestroy)                                                                   \
    X(cublasLtMatmulDescSetAttribute)                                                              \
    X(cublasLtMatrixLayoutCreate)                                                                  \
    X(cublasLtMatrixLayoutDestroy)                                                                 \
    X(cublasLtMatmulPreferenceCreate)                                                              \
    X(cublasLtMatmulPreferenceDestroy)                                                             \
    X(cublasLtMatmulPreferenceSetAttribute)                                                        \
    X(cublasLtMatmulAlgoGetHeuristic)                                                              \
    X(cublasLtMatmulAlgoConfigGetAttribute)                                                        \
    X(cublasLtMatmul)

struct gemm_library {
    void *library;
#define GEMM_DECLARE(name) __typeof__(&name) name;
    GEMM_FUNCTIONS(GEMM_DECLARE)
#undef GEMM_DECLARE
};

/* 0; -ENODEV with gpu_error(): which library is missing, and where one may be had. It stays mapped. */
int gemm_library_open(struct gpu *gpu, struct gemm_library *lib);

/* "algo 66 tile 128x256 stages 64x4 split-k 1": what an algorithm of the heuristics is. */
const char *gemm_algo_text(const struct gemm_library *lib, const cublasLtMatmulAlgo_t *algo,
                           char *text, size_t len);

#endif
