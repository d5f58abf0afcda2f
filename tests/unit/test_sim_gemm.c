/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated cuBLASLt: products are right, refused where the real one refuses, and take their time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/sim_bench.h"

#if defined(SIM_BENCH) && __has_include(<cublasLt.h>)

#include <cublasLt.h>

#define LT_FUNCTIONS(X)                                                                            \
    X(cublasLtCreate)                                                                              \
    X(cublasLtDestroy)                                                                             \
    X(cublasLtMatmulDescCreate)                                                                    \
    X(cublasLtMatmulDescDestroy)                                                                   \
    X(cublasLtMatmulDescSetAttribute)                                                              \
    X(cublasLtMatrixLayoutCreate)                                                                  \
    X(cublasLtMatrixLayoutDestroy)                                                                 \
    X(cublasLtMatmulPreferenceCreate)                                                              \
    X(cublasLtMatmulPreferenceDestroy)                                                             \
    X(cublasLtMatmulPreferenceSetAttribute)                                                        \
    X(cublasLtMatmulAlgoGetHeuristic)                                                              \
    X(cublasLtMatmul)

#define N       64
#define LT_NAME SIM_DIR "/libcublasLt.so." SYMBOL(CUBLAS_VER_MAJOR)

/* C = A' B with both given by columns: what every type can do. */
struct product {
    void *library;
#define DECLARE(name) __typeof__(&name) name;
    LT_FUNCTIONS(DECLARE)
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulHeuristicResult_t found[8];
    int n;
    CUdeviceptr at[3], workspace;
};

static void product_open(struct product *p)
{
    memset(p, 0, sizeof(*p));
    p->library = dlopen(LT_NAME, RTLD_NOW | RTLD_LOCAL);
    if (!p->library)
        fail_msg("%s", dlerror());
#define LOAD(name)                                                                                 \
    *(void **)&p->name = dlsym(p->library, #name);                                                 \
    assert_non_null(p->name);
    LT_FUNCTIONS(LOAD)
    assert_int_equal(p->cublasLtCreate(&p->handle), 0);
}

static void product_forget(struct product *p)
{
    p->cublasLtMatmulDescDestroy(p->desc);
    p->cublasLtMatrixLayoutDestroy(p->a);
    p->cublasLtMatrixLayoutDestroy(p->b);
    p->cublasLtMatrixLayoutDestroy(p->c);
}

static void product_close(struct product *p)
{
    p->cublasLtDestroy(p->handle);
    dlclose(p->library);
}

struct types {
    cudaDataType_t a, b, c, scale;
    cublasComputeType_t compute;
};

static cublasStatus_t ask(struct product *p, const struct types *t, uint64_t n, cublasOperation_t a)
{
    cublasLtMatmulPreference_t wish;
    uint64_t bytes = MIB;
    int32_t op = (int32_t)a;
    cublasStatus_t rc;

    assert_int_equal(p->cublasLtMatmulDescCreate(&p->desc, t->compute, t->scale), 0);
    assert_int_equal(
        p->cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_TRANSA, &op, sizeof(op)),
        0);
    assert_int_equal(p->cublasLtMatrixLayoutCreate(&p->a, t->a, n, n, (int64_t)n), 0);
    assert_int_equal(p->cublasLtMatrixLayoutCreate(&p->b, t->b, n, n, (int64_t)n), 0);
    assert_int_equal(p->cublasLtMatrixLayoutCreate(&p->c, t->c, n, n, (int64_t)n), 0);
    assert_int_equal(p->cublasLtMatmulPreferenceCreate(&wish), 0);
    assert_int_equal(p->cublasLtMatmulPreferenceSetAttribute(
                         wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof(bytes)),
                     0);
    rc = p->cublasLtMatmulAlgoGetHeuristic(p->handle, p->desc, p->a, p->b, p->c, p->c, wish, 8,
                                           p->found, &p->n);
    p->cublasLtMatmulPreferenceDestroy(wish);
    return rc;
}

static cublasStatus_t multiply(struct bench *b, struct product *p, int candidate)
{
    static const union {
        double f64;
        float f32[2];
        uint16_t f16;
        int32_t s32;
    } zero;
    float one = 1;

    return p->cublasLtMatmul(p->handle, p->desc, &one, (void *)p->at[0], p->a, (void *)p->at[1],
                             p->b, &zero, (void *)p->at[2], p->c, (void *)p->at[2], p->c,
                             &p->found[candidate].algo, (void *)p->workspace, MIB,
                             (cudaStream_t)b->stream[0]);
}

static void fill(struct bench *b, CUdeviceptr at, uint32_t type, uint64_t seed)
{
    struct gpu_fill_args args = {(void *)at, N * N, 0, seed, type, GPU_RANDOM};

    launch(b, 0, "fill", 4, 256, &args);
}

static double product_ns(struct bench *b, struct product *p, int candidate)
{
    uint32_t turn = ++b->turn;
    struct timed t = timed_begin(b, 0, turn);

    assert_int_equal(multiply(b, p, candidate), 0);
    timed_end(&t);
    release(b, turn);
    return timed_ns(&t);
}

static void take_matrices(struct bench *b, struct product *p)
{
    for (unsigned i = 0; i < 3; i++)
        p->at[i] = take(b, 0, N * N * 8);
    p->workspace = take(b, 0, MIB);
}

#define SUM_F32 CUDA_R_32F, CUBLAS_COMPUTE_32F

static void products_are_right(void **state)
{
    static const struct {
        struct types t;
        uint32_t a, b;
        double error;
    } cases[] = {
        {{CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, SUM_F32}, GPU_F32, GPU_F32, 1e-7},
        {{CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, SUM_F32}, GPU_F16, GPU_F16, 1e-7},
        {{CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, SUM_F32}, GPU_F16, GPU_F16, 1.0 / 2048},
        {{CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF, SUM_F32}, GPU_BF16, GPU_BF16, 1.0 / 256},
        {{CUDA_R_8F_E4M3, CUDA_R_8F_E5M2, CUDA_R_32F, SUM_F32}, GPU_E4M3, GPU_E5M2, 1e-7},
    };
    struct bench *b = *state;
    struct product p;
    void *out;

    open_bench(b, 1, PLAIN, NULL);
    product_open(&p);
    take_matrices(b, &p);
    out = pinned(b, N * N * 4);
    for (unsigned c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        fill(b, p.at[0], cases[c].a, 1);
        fill(b, p.at[1], cases[c].b, 2);
        assert_int_equal(ask(&p, &cases[c].t, N, CUBLAS_OP_T), 0);
        assert_int_equal(multiply(b, &p, 0), 0);
        copy(b, 0, ptr(out), p.at[2], N * N * 4);
        wait(b, 0);
        for (unsigned i = 0; i < N; i += 7)
            for (unsigned j = 0; j < N; j += 5) {
                double wanted = 0, got;

                for (unsigned k = 0; k < N; k++)
                    wanted +=
                        gpu_value_of_bits(cases[c].a,
                                          gpu_value_bits(cases[c].a, GPU_RANDOM, 1, i * N + k)) *
                        gpu_value_of_bits(cases[c].b,
                                          gpu_value_bits(cases[c].b, GPU_RANDOM, 2, j * N + k));
                if (cases[c].t.c == CUDA_R_32F)
                    got = (double)((float *)out)[j * N + i];
                else
                    got = gpu_value_of_bits(cases[c].t.c == CUDA_R_16F ? GPU_F16 : GPU_BF16,
                                            ((uint16_t *)out)[j * N + i]);
                if (fabs(got - wanted) > cases[c].error * fabs(wanted) + 1e-12)
                    fail_msg("case %u at %u, %u: %g, not %g", c, i, j, got, wanted);
            }
        product_forget(&p);
    }
    product_close(&p);
}

static void what_is_refused(void **state)
{
    static const struct {
        struct types t;
        cublasOperation_t a;
        uint64_t n;
    } bad[] = {
        {{CUDA_R_8F_E5M2, CUDA_R_8F_E5M2, CUDA_R_16BF, SUM_F32}, CUBLAS_OP_T, 64},
        {{CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_16BF, SUM_F32}, CUBLAS_OP_N, 64},
        {{CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_16BF, SUM_F32}, CUBLAS_OP_T, 72},
        {{CUDA_R_8I, CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I}, CUBLAS_OP_N, 64},
        {{CUDA_R_16F, CUDA_R_16BF, CUDA_R_32F, SUM_F32}, CUBLAS_OP_N, 64},
        {{CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, SUM_F32}, CUBLAS_OP_N, 64},
    };
    struct bench *b = *state;
    struct product p;

    open_bench(b, 1, PLAIN, NULL);
    product_open(&p);
    for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        assert_int_equal(ask(&p, &bad[i].t, bad[i].n, bad[i].a), CUBLAS_STATUS_NOT_SUPPORTED);
        assert_int_equal(p.n, 0);
        product_forget(&p);
    }
    product_close(&p);
}

static void older_devices_have_fewer_types(void **state)
{
    static const struct types fp8 = {CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_16BF, SUM_F32};
    static const struct types f16 = {CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, SUM_F32};
    struct bench *b = *state;
    struct product p;

    open_bench(b, 1, PLAIN "[gpu]\ncapability = 8.6\n", "");
    product_open(&p);
    assert_int_equal(ask(&p, &fp8, N, CUBLAS_OP_T), CUBLAS_STATUS_NOT_SUPPORTED);
    product_forget(&p);
    assert_int_equal(ask(&p, &f16, N, CUBLAS_OP_T), 0);
    product_forget(&p);
    product_close(&p);
}

static void rates_of_products(void **state)
{
    static const struct types bf16 = {CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF, SUM_F32};
    const double flops = 2.0 * N * N * N;
    struct bench *b = *state;
    struct product p;

    open_bench(b, 1,
               PLAIN "[gpu]\ngemm_bf16_tflops = 0.5\ngemm_best_candidate = 3\n"
                     "gemm_best_factor = 1.2\ngemm_zeros_factor = 1.5\ngemm_candidates = 5\n",
               NULL);
    product_open(&p);
    take_matrices(b, &p);
    fill(b, p.at[0], GPU_BF16, 1);
    fill(b, p.at[1], GPU_BF16, 2);
    assert_int_equal(ask(&p, &bf16, N, CUBLAS_OP_N), 0);
    assert_int_equal(p.n, 5);
    about(product_ns(b, &p, 0), flops / 500, 0.01);
    about(product_ns(b, &p, 3), flops / 600, 0.01);
    assert_true(product_ns(b, &p, 1) > flops / 500);
    assert_int_equal(b->d.cuMemsetD32Async(p.at[0], 0, N * N / 2, b->stream[0]), 0);
    about(product_ns(b, &p, 0), flops / 500, 0.01);
    assert_int_equal(b->d.cuMemsetD32Async(p.at[1], 0, N * N / 2, b->stream[0]), 0);
    about(product_ns(b, &p, 0), flops / 750, 0.01);
    product_forget(&p);
    product_close(&p);
}

static void throttled_and_without_algorithms(void **state)
{
    static const struct types bf16 = {CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF, SUM_F32};
    struct bench *b = *state;
    struct product p;

    open_bench(b, 1, PLAIN "[gpu]\ngemm_bf16_tflops = 0.5\n", "throttle:factor=0.5");
    product_open(&p);
    take_matrices(b, &p);
    fill(b, p.at[0], GPU_BF16, 1);
    assert_int_equal(ask(&p, &bf16, N, CUBLAS_OP_N), 0);
    about(product_ns(b, &p, 0), 2.0 * N * N * N / 250, 0.01);
    product_forget(&p);
    product_close(&p);
    close_bench(b);
    open_bench(b, 1, PLAIN, "no_algorithm");
    product_open(&p);
    assert_int_equal(ask(&p, &bf16, N, CUBLAS_OP_N), CUBLAS_STATUS_NOT_SUPPORTED);
    product_forget(&p);
    product_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIM_TEST(products_are_right),
        SIM_TEST(what_is_refused),
        SIM_TEST(older_devices_have_fewer_types),
        SIM_TEST(rates_of_products),
        SIM_TEST(throttled_and_without_algorithms),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#elif defined(SIM_BENCH)

static void needs_cublas(void **state)
{
    (void)state;
    print_message("cublasLt.h is not on this machine\n");
    skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(needs_cublas)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
