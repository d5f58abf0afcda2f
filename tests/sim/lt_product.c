/* SPDX-License-Identifier: Apache-2.0 */
/* Products: which there are, and computing one in f64. */
#include "tests/sim/lt.h"

#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#define WIDE __attribute__((target_clones("arch=haswell", "default")))
#else
#define WIDE
#endif

/* One column of the result: a is m x k, its columns one after the other. */
WIDE static void add_column(double *restrict sum, const double *restrict a, const double *b,
                            uint64_t m, uint64_t k)
{
    for (uint64_t p = 0; p < k; p++)
        for (uint64_t i = 0; i < m; i++)
            sum[i] += a[p * m + i] * b[p];
}

/* As doubles, m x k with the columns one after the other, or its transpose. */
static double *unpack(enum lt_type type, const void *at, uint64_t m, uint64_t k, uint64_t ld,
                      bool transposed, bool tf32)
{
    double *out = malloc(m * k * sizeof(*out));

    for (uint64_t p = 0; out && p < k; p++)
        for (uint64_t i = 0; i < m; i++) {
            double value = lt_read(type, at, transposed ? i * ld + p : p * ld + i);

            out[p * m + i] = tf32 ? lt_tf32(value) : value;
        }
    return out;
}

void lt_product_run(const void *args, void *const at[SIM_RANGES])
{
    struct lt_product p;
    double *a, *b, *sum;

    memcpy(&p, args, sizeof(p));
    a = unpack(p.a, at[0], p.m, p.k, p.lda, p.trans_a, p.tf32);
    b = unpack(p.b, at[1], p.k, p.n, p.ldb, p.trans_b, p.tf32);
    sum = malloc(p.m * sizeof(*sum));
    for (uint64_t j = 0; a && b && sum && j < p.n; j++) {
        memset(sum, 0, p.m * sizeof(*sum));
        add_column(sum, a, b + j * p.k, p.m, p.k);
        for (uint64_t i = 0; i < p.m; i++) {
            double before = p.beta != 0 ? p.beta * lt_read(p.c, at[2], j * p.ldc + i) : 0;

            lt_write(p.c, at[2], j * p.ldc + i, p.alpha * sum[i] + before);
        }
    }
    free(a);
    free(b);
    free(sum);
}

static bool is_fp8(enum lt_type type)
{
    return type == LT_E4M3 || type == LT_E5M2;
}

/* Types that go together, and the rate they run at. */
static bool known(enum lt_type a, enum lt_type b, enum lt_type c, const struct lt_desc *desc,
                  enum sim_type *rate)
{
    bool f32_sum = desc->compute == CUBLAS_COMPUTE_32F && desc->scale == CUDA_R_32F;
    bool f16_sum = desc->compute == CUBLAS_COMPUTE_16F && desc->scale == CUDA_R_16F;

    if (is_fp8(a) && is_fp8(b)) {
        *rate = SIM_FP8;
        return f32_sum && !(a == LT_E5M2 && b == LT_E5M2) &&
               (c == LT_F32 || c == LT_F16 || c == LT_BF16);
    }
    if (a != b)
        return false;
    switch (a) {
    case LT_F64:
        *rate = SIM_F64;
        return desc->compute == CUBLAS_COMPUTE_64F && desc->scale == CUDA_R_64F && c == LT_F64;
    case LT_F32:
        *rate = desc->compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? SIM_TF32 : SIM_F32;
        return (f32_sum || *rate == SIM_TF32) && desc->scale == CUDA_R_32F && c == LT_F32;
    case LT_F16:
        *rate = SIM_F16;
        return (f32_sum && (c == LT_F16 || c == LT_F32)) || (f16_sum && c == LT_F16);
    case LT_BF16:
        *rate = SIM_BF16;
        return f32_sum && (c == LT_BF16 || c == LT_F32);
    case LT_S8:
        *rate = SIM_S8;
        return desc->compute == CUBLAS_COMPUTE_32I && desc->scale == CUDA_R_32I && c == LT_S32;
    default:
        return false;
    }
}

static bool new_enough(const struct sim_gpu *gpu, enum sim_type rate)
{
    double capability = atof(gpu->capability);

    return !((rate == SIM_FP8 && capability < 8.85) ||
             ((rate == SIM_BF16 || rate == SIM_TF32) && capability < 7.95));
}

/* 8-bit types: A by rows, B by columns, and everything in multiples of 16 (s8: 4) bytes. */
static bool narrow_fits(const struct lt_product *p, enum sim_type rate)
{
    uint64_t multiple = rate == SIM_FP8 ? 16 : 4;

    if (rate != SIM_FP8 && rate != SIM_S8)
        return true;
    return p->trans_a && !p->trans_b && !(p->m % multiple) && !(p->n % multiple) &&
           !(p->k % multiple) && !(p->lda % multiple) && !(p->ldb % multiple) &&
           !(p->ldc * lt_bytes(p->c) % multiple);
}

static bool shape(const struct lt_desc *desc, const struct lt_layout *a, const struct lt_layout *b,
                  const struct lt_layout *c, struct lt_product *p)
{
    p->trans_a = desc->trans_a == CUBLAS_OP_T;
    p->trans_b = desc->trans_b == CUBLAS_OP_T;
    p->m = p->trans_a ? a->cols : a->rows;
    p->k = p->trans_a ? a->rows : a->cols;
    p->n = p->trans_b ? b->rows : b->cols;
    p->lda = (uint64_t)a->ld;
    p->ldb = (uint64_t)b->ld;
    p->ldc = (uint64_t)c->ld;
    p->tf32 = desc->compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    return (p->trans_b ? b->cols : b->rows) == p->k && c->rows == p->m && c->cols == p->n &&
           p->lda >= a->rows && p->ldb >= b->rows && p->ldc >= c->rows && p->m && p->n && p->k;
}

cublasStatus_t lt_check(const struct sim_machine *machine, unsigned gpu, const struct lt_desc *desc,
                        const struct lt_layout *a, const struct lt_layout *b,
                        const struct lt_layout *c, struct lt_product *p, double *tflops)
{
    enum lt_type types[3];
    enum sim_type rate = SIM_F32;

    memset(p, 0, sizeof(*p));
    if (!shape(desc, a, b, c, p))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!lt_type_of(a->type, &types[0]) || !lt_type_of(b->type, &types[1]) ||
        !lt_type_of(c->type, &types[2]) || !known(types[0], types[1], types[2], desc, &rate))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    p->a = types[0];
    p->b = types[1];
    p->c = types[2];
    *tflops = machine->gpu[gpu].gemm_tflops[rate];
    if (*tflops <= 0 || !new_enough(&machine->gpu[gpu], rate) || !narrow_fits(p, rate))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    return CUBLAS_STATUS_SUCCESS;
}
