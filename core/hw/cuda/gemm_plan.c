/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is asked of cuBLASLt, which thinks in columns: a row-major matrix is to it the transpose, with
 * no byte moved. So C = A B is asked for as C' = B' A', with B first.
 */
#include "core/hw/cuda/gemm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* 0.1 TFLOP/s: no GPU that is at work is slower, in any type. */
#define SLOWEST_FLOP_PER_NS 100.0

static const struct {
    cublasComputeType_t compute;
    cudaDataType_t scale;
} computes[] = {
    [GPU_GEMM_F64] = {CUBLAS_COMPUTE_64F, CUDA_R_64F},
    [GPU_GEMM_F32] = {CUBLAS_COMPUTE_32F, CUDA_R_32F},
    [GPU_GEMM_TF32] = {CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F},
    [GPU_GEMM_F32_SUM] = {CUBLAS_COMPUTE_32F, CUDA_R_32F},
    [GPU_GEMM_F32_FAST] = {CUBLAS_COMPUTE_32F, CUDA_R_32F},
    [GPU_GEMM_F16_SUM] = {CUBLAS_COMPUTE_16F, CUDA_R_16F},
    [GPU_GEMM_S32_SUM] = {CUBLAS_COMPUTE_32I, CUDA_R_32I},
};

static const struct {
    const char *name;
    cudaDataType_t type;
} values[GPU_VALUES] = {
    [GPU_F64] = {"f64", CUDA_R_64F},       [GPU_F32] = {"f32", CUDA_R_32F},
    [GPU_F16] = {"f16", CUDA_R_16F},       [GPU_BF16] = {"bf16", CUDA_R_16BF},
    [GPU_E4M3] = {"e4m3", CUDA_R_8F_E4M3}, [GPU_E5M2] = {"e5m2", CUDA_R_8F_E5M2},
    [GPU_S8] = {"s8", CUDA_R_8I},
};

static const struct {
    const char *name;
    cudaDataType_t type;
} results[] = {
    [GPU_GEMM_C_F64] = {"f64", CUDA_R_64F}, [GPU_GEMM_C_F32] = {"f32", CUDA_R_32F},
    [GPU_GEMM_C_F16] = {"f16", CUDA_R_16F}, [GPU_GEMM_C_BF16] = {"bf16", CUDA_R_16BF},
    [GPU_GEMM_C_S32] = {"s32", CUDA_R_32I},
};

void gemm_unplan(struct gpu_gemm *gemm)
{
    const struct gemm_library *lib = &gemm->lib;

    if (gemm->product)
        lib->cublasLtMatmulDescDestroy(gemm->product);
    if (gemm->first)
        lib->cublasLtMatrixLayoutDestroy(gemm->first);
    if (gemm->second)
        lib->cublasLtMatrixLayoutDestroy(gemm->second);
    if (gemm->result)
        lib->cublasLtMatrixLayoutDestroy(gemm->result);
    gemm->product = NULL;
    gemm->first = gemm->second = gemm->result = NULL;
    free(gemm->found);
    free(gemm->ran);
    gemm->found = NULL;
    gemm->ran = NULL;
    gemm->n = 0;
}

/* Switches of NVIDIA's that make one type out of another behind the caller's back. */
static int check_environment(struct gpu_gemm *gemm, enum gpu_gemm_compute compute)
{
    static const struct {
        const char *name;
        enum gpu_gemm_compute of[2];
    } switches[] = {
        {"NVIDIA_TF32_OVERRIDE", {GPU_GEMM_F32, GPU_GEMM_TF32}},
        {"CUBLAS_EMULATE_SINGLE_PRECISION", {GPU_GEMM_F32, GPU_GEMM_F32}},
        {"CUBLAS_EMULATE_DOUBLE_PRECISION", {GPU_GEMM_F64, GPU_GEMM_F64}},
    };

    for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++)
        if ((switches[i].of[0] == compute || switches[i].of[1] == compute) &&
            getenv(switches[i].name))
            return cuda_error(gemm->gpu, -EOPNOTSUPP,
                              "%s is set, which changes how products of this type are computed: "
                              "unset it",
                              switches[i].name);
    return 0;
}

static bool eight_bits(enum gpu_value value)
{
    return value == GPU_E4M3 || value == GPU_E5M2 || value == GPU_S8;
}

static int check_problem(struct gpu_gemm *gemm, const struct gpu_gemm_problem *p)
{
    struct gpu *gpu = gemm->gpu;

    if ((unsigned)p->a >= GPU_VALUES || (unsigned)p->b >= GPU_VALUES || !values[p->a].name ||
        !values[p->b].name || (unsigned)p->c > GPU_GEMM_C_S32 ||
        (unsigned)p->compute > GPU_GEMM_S32_SUM)
        return cuda_error(gpu, -EINVAL, "there are no matrix products of such types");
    if (!p->m || !p->n || !p->k)
        return cuda_error(gpu, -EINVAL, "asked for a product of an empty matrix");
    if (eight_bits(p->b) && !p->b_is_nk)
        return cuda_error(gpu, -EINVAL, "8-bit types take B as its transpose (n x k)");
    return check_environment(gemm, p->compute);
}

static int set_product(struct gpu_gemm *gemm, const char *what,
                       cublasLtMatmulDescAttributes_t attribute, const void *value, size_t bytes)
{
    return gemm_check(
        gemm, gemm->lib.cublasLtMatmulDescSetAttribute(gemm->product, attribute, value, bytes),
        what);
}

/* See the top of the file: B' is n x k, and given as k x n where B was given as its transpose. */
static int describe_problem(struct gpu_gemm *gemm, const struct gpu_gemm_problem *p)
{
    const int32_t first = p->b_is_nk ? CUBLAS_OP_T : CUBLAS_OP_N, second = CUBLAS_OP_N;
    const int8_t fast = p->compute == GPU_GEMM_F32_FAST;
    int err = LT(gemm, cublasLtMatmulDescCreate, &gemm->product, computes[p->compute].compute,
                 computes[p->compute].scale);

    if (!err)
        err = set_product(gemm, "the first operand's transpose", CUBLASLT_MATMUL_DESC_TRANSA,
                          &first, sizeof(first));
    if (!err)
        err = set_product(gemm, "the second operand's transpose", CUBLASLT_MATMUL_DESC_TRANSB,
                          &second, sizeof(second));
    if (!err && fast)
        err = set_product(gemm, "fast sums", CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof(fast));
    if (!err)
        err = LT(gemm, cublasLtMatrixLayoutCreate, &gemm->first, values[p->b].type,
                 p->b_is_nk ? p->k : p->n, p->b_is_nk ? p->n : p->k,
                 (int64_t)(p->b_is_nk ? p->k : p->n));
    if (!err)
        err = LT(gemm, cublasLtMatrixLayoutCreate, &gemm->second, values[p->a].type, p->k, p->m,
                 (int64_t)p->k);
    if (!err)
        err = LT(gemm, cublasLtMatrixLayoutCreate, &gemm->result, results[p->c].type, p->n, p->m,
                 (int64_t)p->n);
    return err;
}

static void set_scalars(struct gpu_gemm *gemm, cudaDataType_t scale)
{
    memset(&gemm->one, 0, sizeof(gemm->one));
    memset(&gemm->zero, 0, sizeof(gemm->zero));
    if (scale == CUDA_R_64F)
        gemm->one.f64 = 1;
    else if (scale == CUDA_R_32F)
        gemm->one.f32 = 1;
    else if (scale == CUDA_R_16F)
        gemm->one.f16 = 0x3c00;
    else
        gemm->one.s32 = 1;
}

static int prefer(struct gpu_gemm *gemm, cublasLtMatmulPreference_t wish,
                  cublasLtMatmulPreferenceAttributes_t attribute, const void *value, size_t bytes)
{
    return gemm_check(gemm,
                      gemm->lib.cublasLtMatmulPreferenceSetAttribute(wish, attribute, value, bytes),
                      "cublasLtMatmulPreferenceSetAttribute");
}

/* C has fewer bits than the sums. Parts of a sum that is split over k would then be added up in C's
 * type, unless that is forbidden, and "summed in f32" would not be true. */
static bool narrower_than_sums(const struct gpu_gemm_problem *p)
{
    return (p->c == GPU_GEMM_C_F16 || p->c == GPU_GEMM_C_BF16) && p->compute != GPU_GEMM_F16_SUM;
}

/* Fills gemm->found; drops what the library itself says does not work. */
static int ask(struct gpu_gemm *gemm, bool narrower, unsigned most)
{
    const uint64_t bytes = gemm->workspace_bytes;
    const uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    cublasLtMatmulPreference_t wish = NULL;
    int got = 0, err = LT(gemm, cublasLtMatmulPreferenceCreate, &wish);

    if (!err)
        err = prefer(gemm, wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof(bytes));
    if (!err && narrower)
        err =
            prefer(gemm, wish, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &scheme, sizeof(scheme));
    if (!err)
        err = LT(gemm, cublasLtMatmulAlgoGetHeuristic, gemm->handle, gemm->product, gemm->first,
                 gemm->second, gemm->result, gemm->result, wish, (int)most, gemm->found, &got);
    if (wish)
        gemm->lib.cublasLtMatmulPreferenceDestroy(wish);
    for (int i = 0; !err && i < got; i++)
        if (gemm->found[i].state == CUBLAS_STATUS_SUCCESS)
            gemm->found[gemm->n++] = gemm->found[i];
    return err;
}

static int none_found(struct gpu_gemm *gemm, const struct gpu_gemm_problem *p)
{
    const struct gpu_facts *facts = &gemm->gpu->base.facts;
    bool narrow = eight_bits(p->a) || eight_bits(p->b);

    if (p->compute == GPU_GEMM_TF32 && facts->major < 8)
        return cuda_error(gemm->gpu, -EOPNOTSUPP,
                          "tf32 is there from compute capability 8.0 on; this GPU has %u.%u",
                          facts->major, facts->minor);
    return cuda_error(gemm->gpu, -EOPNOTSUPP,
                      "%s knows no way to compute %s x %s to %s of %llu x %llu x %llu on a GPU of "
                      "compute capability %u.%u%s",
                      gemm->version, values[p->a].name, values[p->b].name, results[p->c].name,
                      (unsigned long long)p->m, (unsigned long long)p->n, (unsigned long long)p->k,
                      facts->major, facts->minor,
                      narrow ? " (8-bit floating types: 8.9 or newer; sizes: multiples of 16)"
                             : "");
}

int gemm_plan(struct gpu_gemm *gemm, const struct gpu_gemm_problem *problem, unsigned most,
              unsigned *n)
{
    struct gpu *gpu = gemm->gpu;
    int err = cuda_enter(gpu);

    *n = 0;
    gemm_unplan(gemm);
    if (err || (err = check_problem(gemm, problem)))
        return err;
    gemm->found = calloc(most ? most : 1, sizeof(*gemm->found));
    gemm->ran = calloc(most ? most : 1, sizeof(*gemm->ran));
    if (!gemm->found || !gemm->ran)
        return cuda_error(gpu, -ENOMEM, "out of host memory");
    set_scalars(gemm, computes[problem->compute].scale);
    gpu->base.expected_ns = (uint64_t)(2.0 * (double)problem->m * (double)problem->n *
                                       (double)problem->k / SLOWEST_FLOP_PER_NS);
    err = describe_problem(gemm, problem);
    /* Before 8.0 tf32 would be computed, as f32. */
    if (!err && problem->compute == GPU_GEMM_TF32 && gpu->base.facts.major < 8)
        err = -EOPNOTSUPP;
    if (!err)
        err = ask(gemm, narrower_than_sums(problem), most ? most : 1);
    if (err == -EOPNOTSUPP || (!err && !gemm->n))
        err = none_found(gemm, problem);
    *n = err ? 0 : gemm->n;
    return err;
}
