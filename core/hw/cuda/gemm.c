/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products by cuBLASLt: the library opened, algorithms chosen and named, products run.
 * Several hundred megabytes, which only products need: opened at the first one. */
#include <cublasLt.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/hw/cuda/gpu_cuda.h"
#include "core/hw/gpu.h"
#include "core/hw/nvidia_library.h"

/* LT(gemm, cublasLtMatmul, ...): the call, and 0 or -errno with gpu_error() set. */
#define LT(gemm, call, ...) gemm_check(gemm, (gemm)->lib.call(__VA_ARGS__), #call)

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

/* ---- What an algorithm of cuBLASLt is, in words ---- */

/* Made by build.mk from the header's enums, which grow with each version: [23] = "128x256". */
static const char *const tiles[] = {
#include "cuda/cublaslt_tiles.h"
};
static const char *const stages[] = {
#include "cuda/cublaslt_stages.h"
};
static const char *const clusters[] = {
#include "cuda/cublaslt_clusters.h"
};

#define NAME(table, id) ((id) < sizeof(table) / sizeof((table)[0]) ? (table)[id] : NULL)

/* 0 where the algorithm has no such thing; some attributes take two bytes, which lie first. */
static uint32_t attribute(const struct gemm_library *lib, const cublasLtMatmulAlgo_t *algo,
                          cublasLtMatmulAlgoConfigAttributes_t what, size_t bytes)
{
    uint16_t half = 0;
    uint32_t word = 0;
    void *to = bytes == sizeof(half) ? (void *)&half : (void *)&word;

    if (lib->cublasLtMatmulAlgoConfigGetAttribute(algo, what, to, bytes, NULL) !=
        CUBLAS_STATUS_SUCCESS)
        return 0;
    return bytes == sizeof(half) ? half : word;
}

static void add(char *text, size_t len, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void add(char *text, size_t len, const char *format, ...)
{
    size_t used = strlen(text);
    va_list args;

    va_start(args, format);
    vsnprintf(text + used, len - used, format, args);
    va_end(args);
}

/* By its name, or its number where the library is newer than the header; nothing for 0. */
static void add_named(char *text, size_t len, const char *what, const char *name, uint32_t id)
{
    if (id && name)
        add(text, len, " %s %s", what, name);
    else if (id)
        add(text, len, " %s #%u", what, id);
}

/* "algo 66 tile 128x256 stages 64x4 split-k 1": what an algorithm of the heuristics is. */
static const char *gemm_algo_text(const struct gemm_library *lib, const cublasLtMatmulAlgo_t *algo,
                                  char *text, size_t len)
{
    uint32_t tile = attribute(lib, algo, CUBLASLT_ALGO_CONFIG_TILE_ID, 4);
    uint32_t stage = attribute(lib, algo, CUBLASLT_ALGO_CONFIG_STAGES_ID, 4);
    uint32_t cluster = attribute(lib, algo, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 2);
    uint32_t inner = attribute(lib, algo, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 2);
    uint32_t reduction = attribute(lib, algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 4);
    uint32_t swizzle = attribute(lib, algo, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4);
    uint32_t custom = attribute(lib, algo, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 4);
    int32_t split = (int32_t)attribute(lib, algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 4);

    snprintf(text, len, "algo %u", attribute(lib, algo, CUBLASLT_ALGO_CONFIG_ID, 4));
    add_named(text, len, "tile", NAME(tiles, tile), tile);
    add_named(text, len, "stages", NAME(stages, stage), stage);
    add(text, len, " split-k %d", split);
    add_named(text, len, "cluster", NAME(clusters, cluster), cluster);
    add_named(text, len, "inner", NULL, inner);
    add_named(text, len, "reduction", NULL, reduction);
    add_named(text, len, "swizzle", NULL, swizzle);
    add_named(text, len, "option", NULL, custom);
    return text;
}

/* ---- Finds cuBLASLt ---- */

#define TEXT(x)    #x
#define TEXT_OF(x) TEXT(x)
/* What is called here has the same names, numbers and structs in cuBLASLt 12 and 13, so either does, whichever header this was
 * built with. A driver runs those of its own CUDA or older: the newer that this toolkit's drivers run is looked for first. */
#define NEWEST (CUDA_VERSION / 1000)
#define OLDEST 12

#define FUNCTION(name) {TEXT_OF(name), offsetof(struct gemm_library, name)},

static const struct {
    const char *symbol;
    size_t offset;
} functions[] = {GEMM_FUNCTIONS(FUNCTION)};

static int find(struct gpu *gpu, void **library)
{
    const char *given = getenv("PLUMB_LIBCUBLASLT");
    char name[32];

    *library = NULL;
    if (given && *given) {
        *library = dlopen(given, RTLD_NOW | RTLD_LOCAL);
        return *library ? 0
                        : cuda_error(gpu, -ELIBACC,
                                     "the library named by PLUMB_LIBCUBLASLT does not load: %.200s",
                                     dlerror());
    }
    for (int major = NEWEST; major >= OLDEST && !*library; major--) {
        snprintf(name, sizeof(name), "libcublasLt.so.%d", major);
        *library = nvidia_open(name);
    }
    return *library
               ? 0
               : cuda_error(gpu, -ELIBACC,
                            "no cuBLASLt (libcublasLt.so.%d%s): install NVIDIA's libcublas, or "
                            "torch, whose environment is looked into if it is active or its "
                            "python3 is the first on PATH, or set PLUMB_LIBCUBLASLT to its path",
                            NEWEST, NEWEST > OLDEST ? " to 12" : "");
}

/* 0; -ELIBACC with gpu_error(): which library is missing, and where one may be had. It stays
 * mapped. */
static int gemm_library_open(struct gpu *gpu, struct gemm_library *lib)
{
    int err = find(gpu, &lib->library);

    if (err)
        return err;
    cuda_state()->gemm_library = lib->library;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *at = dlsym(lib->library, functions[i].symbol);
        if (!at) {
            cuda_error(
                gpu, -ELIBACC,
                "the cuBLASLt that was found ('%.120s') has no %s: it wants version %d or newer",
                nvidia_path(lib->library), functions[i].symbol, OLDEST);
            return -ELIBACC;
        }
        memcpy((char *)lib + functions[i].offset, &at, sizeof(at));
    }
    return 0;
}

/* ---- A product of cuBLASLt ---- */

/* It thinks in columns: a row-major matrix is to it the transpose,
 * with no byte moved. So C = A B is asked for as C' = B' A', with B first. */

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

static void gemm_unplan(struct gpu_gemm *gemm)
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

/* Switches of NVIDIA's that make one type out of another behind the caller's back, and the value that does
 * not. NVIDIA_TF32_OVERRIDE=0 forbids TF32, also where a program asks for it. */
static int check_environment(struct gpu_gemm *gemm, enum gpu_gemm_compute compute)
{
    static const struct {
        const char *name;
        enum gpu_gemm_compute compute;
        const char *harmless;
    } switches[] = {
        {"NVIDIA_TF32_OVERRIDE", GPU_GEMM_F32, "0"},
        {"NVIDIA_TF32_OVERRIDE", GPU_GEMM_TF32, "1"},
        {"CUBLAS_EMULATE_SINGLE_PRECISION", GPU_GEMM_F32, ""},
        {"CUBLAS_EMULATE_DOUBLE_PRECISION", GPU_GEMM_F64, ""},
    };

    for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++) {
        const char *set = getenv(switches[i].name);
        if (set && switches[i].compute == compute && strcmp(set, switches[i].harmless))
            return cuda_error(gemm->gpu, -EOPNOTSUPP,
                              "%s=%s changes how products of this type are computed: unset it",
                              switches[i].name, set);
    }
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

static int gemm_check(struct gpu_gemm *gemm, cublasStatus_t status, const char *call)
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

static int set_product(struct gpu_gemm *gemm, const char *what,
                       cublasLtMatmulDescAttributes_t attribute, const void *value, size_t bytes)
{
    return gemm_check(
        gemm, gemm->lib.cublasLtMatmulDescSetAttribute(gemm->product, attribute, value, bytes),
        what);
}

/* In columns: B' is n x k, and given as k x n where B was given as its transpose. */
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

static int gemm_plan(struct gpu_gemm *gemm, const struct gpu_gemm_problem *problem, unsigned most,
                     unsigned *n)
{
    struct gpu *gpu = gemm->gpu;
    int err = cuda_enter(gpu);

    *n = 0;
    gemm_unplan(gemm);
    if (err || (err = check_problem(gemm, problem)))
        return err;
    gemm->found = xcalloc(most ? most : 1, sizeof(*gemm->found));
    gemm->ran = xcalloc(most ? most : 1, sizeof(*gemm->ran));
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

#define MIB       ((size_t)1 << 20)
#define ALIGNMENT 256 /* that the heuristics count on unless told otherwise */

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
    int err = cuda_enter(gpu);

    *out = NULL;
    if (err)
        return err;
    struct gpu_gemm *gemm = xcalloc(1, sizeof(*gemm));
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

static const char *gemm_file(const struct gpu_gemm *gemm)
{
    return nvidia_path(gemm->lib.library);
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

/* cuBLASLt lets its algorithms be stored as they are, and used again by the same version. */
static uint64_t gemm_identity(const struct gpu_gemm *gemm, unsigned i)
{
    const cublasLtMatmulAlgo_t *algo = i < gemm->n ? &gemm->found[i].algo : NULL;
    uint64_t hash = 1;

    for (size_t k = 0; algo && k < sizeof(algo->data) / sizeof(algo->data[0]); k++)
        hash = gpu_hash(hash, algo->data[k]);
    return hash;
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
    .file = gemm_file,
    .plan = gemm_plan,
    .unplan = gemm_unplan,
    .workspace_bytes = gemm_workspace_bytes,
    .describe = gemm_describe,
    .identity = gemm_identity,
    .run = gemm_run,
};
