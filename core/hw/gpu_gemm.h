/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix products of a GPU module's library (cuBLASLt). Row-major and dense: A is m x k, B is k x n
 * or, where `b_is_nk`, given as its transpose (n x k: each column of B contiguous, as a model's
 * weights are and as 8-bit units need it), C is m x n. All in device memory.
 */
#ifndef PLUMB_CORE_HW_GPU_GEMM_H
#define PLUMB_CORE_HW_GPU_GEMM_H

#include "core/hw/gpu.h"
#include "core/hw/gpu_values.h"

enum gpu_gemm_compute {
    GPU_GEMM_F64,
    GPU_GEMM_F32,     /* f32 multiplied and summed as f32 */
    GPU_GEMM_TF32,    /* f32 rounded to 10 bits of fraction, summed in f32 */
    GPU_GEMM_F32_SUM, /* narrower types, summed in f32 */
    GPU_GEMM_F32_FAST, /* 8-bit floating types: partial sums kept with fewer bits, as frameworks do */
    GPU_GEMM_F16_SUM, /* f16 summed in f16 */
    GPU_GEMM_S32_SUM,
};

enum gpu_gemm_c { GPU_GEMM_C_F64, GPU_GEMM_C_F32, GPU_GEMM_C_F16, GPU_GEMM_C_BF16, GPU_GEMM_C_S32 };

struct gpu_gemm_problem {
    enum gpu_value a, b;
    enum gpu_gemm_c c;
    enum gpu_gemm_compute compute;
    bool b_is_nk;
    uint64_t m, n, k;
};

struct gpu_gemm_ops {
    /* -ENODEV where the library is not here; gpu_error() says which, and what to do. */
    int (*open)(struct gpu *gpu, struct gpu_gemm **gemm);
    void (*close)(struct gpu_gemm *gemm);                /* NULL is left alone */
    const char *(*version)(const struct gpu_gemm *gemm); /* "cuBLASLt 13.1.0" */

    /* Asks the library's heuristics for at most `most` ways to compute this problem, its choice
     * first, which fit in the workspace; their number in *n. -EOPNOTSUPP: none, on this device. One
     * plan at a time; unplan in any case. */
    int (*plan)(struct gpu_gemm *gemm, const struct gpu_gemm_problem *problem, unsigned most,
                unsigned *n);
    void (*unplan)(struct gpu_gemm *gemm);
    uint64_t (*workspace_bytes)(const struct gpu_gemm *gemm); /* taken by open */
    /* "algo 66 tile 128x256 stages 4 split-k 1": what candidate i is. Returns text. */
    const char *(*describe)(struct gpu_gemm *gemm, unsigned i, char *text, size_t len);
    /* Queues C = A B by candidate i. */
    int (*run)(struct gpu_gemm *gemm, unsigned i, struct gpu_stream *stream, const void *a,
               const void *b, void *c);
};

#endif
