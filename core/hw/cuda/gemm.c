/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products by cuBLASLt: the library opened, and products run. What they are is gemm_plan.c's. */
#include "core/hw/cuda/gemm.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define MIB       ((size_t)1 << 20)
#define ALIGNMENT 256 /* that the heuristics count on unless told otherwise */

int gemm_check(struct gpu_gemm *gemm, cublasStatus_t status, const char *call)
{
    struct gpu *gpu = gemm->gpu;
    int err = -EIO;

    if (status == CUBLAS_STATUS_SUCCESS)
        return 0;
    if (status == CUBLAS_STATUS_ALLOC_FAILED)
        err = -ENOMEM;
    else if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH)
        err = -EOPNOTSUPP;
    else if (status == CUBLAS_STATUS_INVALID_VALUE)
        err = -EINVAL;
    /* Where the device itself has failed, its own error says more and is kept. */
    else if (gpu->base.silent || (CUDA(gpu, cuCtxSynchronize) && gpu->base.lost))
        return cuda_error_add(gpu, -EIO, " (after %s)", call);
    const char *name = gemm->lib.cublasLtGetStatusName(status);
    return cuda_error(gpu, err, "%s: %s (%d)", call, name ? name : "a status of its own",
                      (int)status);
}

static void gemm_close(struct gpu_gemm *gemm)
{
    if (!gemm)
        return;
    gemm_unplan(gemm);
    if (gemm->handle && cuda_enter_quietly(gemm->gpu))
        gemm->lib.cublasLtDestroy(gemm->handle);
    cuda_free(gemm->gpu, GPU_DEVICE, gemm->workspace);
    free(gemm);
}

static int start(struct gpu_gemm *gemm)
{
    struct gpu *gpu = gemm->gpu;
    int err = gemm_library_open(gpu, &gemm->lib);

    if (err)
        return err;
    unsigned version = (unsigned)gemm->lib.cublasLtGetVersion();
    snprintf(gemm->version, sizeof(gemm->version), "cuBLASLt %u.%u.%u", version / 10000,
             version / 100 % 100, version % 100);
    err = LT(gemm, cublasLtCreate, &gemm->handle);
    if (err)
        return err;
    /* As much as NVIDIA's frameworks give it: Hopper's kernels and later ones use more. */
    gemm->workspace_bytes = (gpu->base.facts.major >= 9 ? 32 : 8) * MIB;
    return cuda_alloc(gpu, GPU_DEVICE, gemm->workspace_bytes, &gemm->workspace);
}

static int gemm_open(struct gpu *gpu, struct gpu_gemm **out)
{
    struct gpu_gemm *gemm;
    int err = cuda_enter(gpu);

    *out = NULL;
    if (err)
        return err;
    gemm = calloc(1, sizeof(*gemm));
    if (!gemm)
        return cuda_error(gpu, -ENOMEM, "out of host memory");
    gemm->gpu = gpu;
    err = start(gemm);
    if (err)
        gemm_close(gemm);
    else
        *out = gemm;
    return err;
}

static const char *gemm_version(const struct gpu_gemm *gemm)
{
    return gemm->version;
}

static uint64_t gemm_workspace_bytes(const struct gpu_gemm *gemm)
{
    return gemm->workspace_bytes;
}

static const char *gemm_describe(struct gpu_gemm *gemm, unsigned i, char *text, size_t len)
{
    text[0] = 0;
    if (i < gemm->n)
        gemm_algo_text(&gemm->lib, &gemm->found[i].algo, text, len);
    return text;
}

static int check_run(struct gpu_gemm *gemm, unsigned i, const struct gpu_stream *stream,
                     const void *a, const void *b, const void *c)
{
    if (i >= gemm->n)
        return cuda_error(gemm->gpu, -EINVAL, "there is no candidate %u: the plan has %u", i,
                          gemm->n);
    if (((uintptr_t)a | (uintptr_t)b | (uintptr_t)c) % ALIGNMENT)
        return cuda_error(gemm->gpu, -EINVAL, "matrices must begin at multiples of %d bytes",
                          ALIGNMENT);
    /* Its kernels are loaded now, and loading may wait for the device, which waits for release. */
    if (!gemm->ran[i] && cuda_held(stream))
        return cuda_error(gemm->gpu, -EINVAL,
                          "a candidate's first product must not be in a held stream");
    return 0;
}

static int gemm_run(struct gpu_gemm *gemm, unsigned i, struct gpu_stream *stream, const void *a,
                    const void *b, void *c)
{
    int err = cuda_enter(gemm->gpu);

    if (err || (err = check_run(gemm, i, stream, a, b, c)))
        return err;
    err = LT(gemm, cublasLtMatmul, gemm->handle, gemm->product, &gemm->one, b, gemm->first, a,
             gemm->second, &gemm->zero, c, gemm->result, c, gemm->result, &gemm->found[i].algo,
             gemm->workspace, gemm->workspace_bytes, (cudaStream_t)stream->stream);
    if (!err)
        gemm->ran[i] = true;
    return err;
}

extern const struct gpu_gemm_ops cuda_gemm_ops; /* module.c */
const struct gpu_gemm_ops cuda_gemm_ops = {
    .open = gemm_open,
    .close = gemm_close,
    .version = gemm_version,
    .plan = gemm_plan,
    .unplan = gemm_unplan,
    .workspace_bytes = gemm_workspace_bytes,
    .describe = gemm_describe,
    .run = gemm_run,
};
