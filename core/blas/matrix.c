/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of matrix products: see matrix.h. */
#include "core/blas/matrix.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/rng.h"
#include "core/units.h"

#define HUGE_BYTES (UINT64_C(2) << 20)

/* k_max of int8: 127 * 128 * k < 2^31. */
const struct gemm_dtype_info gemm_dtypes[GEMM_DTYPES] = {
    [GEMM_F64] = {"f64", "f64", "TFLOP/s", 8, 8, 8, 0x1p-53, 0},
    [GEMM_F32] = {"f32", "f32", "TFLOP/s", 4, 4, 4, 0x1p-24, 0},
    [GEMM_BF16] = {"bf16", "f32", "TFLOP/s", 2, 2, 4, 0x1p-24, 0},
    [GEMM_INT8] = {"int8", "s32", "TOP/s", 1, 1, 4, 0, 132104},
};

int gemm_shape_parse(const char *text, void *value, char *error, size_t len)
{
    struct gemm_shape shape;
    uint64_t *dims[] = {&shape.m, &shape.n, &shape.k};
    const char *at = text;

    for (int i = 0; i < 3; i++) {
        char part[24];
        size_t n = strcspn(at, "x");
        if (n >= sizeof(part) || (i < 2) != (at[n] == 'x'))
            goto bad;
        snprintf(part, sizeof(part), "%.*s", (int)n, at);
        if (units_parse_u64(part, dims[i]) || !*dims[i] || *dims[i] > GEMM_DIM_MAX)
            goto bad;
        at += n + 1;
    }
    memcpy(value, &shape, sizeof(shape));
    return 0;
bad:
    snprintf(error, len,
             "option '--shape': '%s' is not MxNxK such as 1024x4096x512, each from 1 to %llu", text,
             (unsigned long long)GEMM_DIM_MAX);
    return -EINVAL;
}

double gemm_operations(const struct gemm_shape *shape)
{
    return 2.0 * (double)shape->m * (double)shape->n * (double)shape->k;
}

double gemm_bytes(enum gemm_dtype dtype, const struct gemm_shape *shape)
{
    const struct gemm_dtype_info *t = &gemm_dtypes[dtype];
    double m = (double)shape->m, n = (double)shape->n, k = (double)shape->k;

    return m * k * t->a_bytes + k * n * t->b_bytes + m * n * t->c_bytes;
}

uint16_t gemm_bf16_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float gemm_bf16_value(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;

    memcpy(&value, &wide, sizeof(value));
    return value;
}

/* Uniform in [-1, 1) from 24 random bits, never 0: half a step off the grid. */
static float unit_float(uint32_t bits)
{
    return ((float)(bits >> 9) + 0.5f) * 0x1p-22f - 1.0f;
}

static void fill(void *data, size_t n, enum gemm_dtype dtype, bool is_a, struct rng *rng)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = rng_u64(rng);
        switch (dtype) {
        case GEMM_F64:
            ((double *)data)[i] = ((double)(bits >> 12) + 0.5) * 0x1p-51 - 1.0;
            break;
        case GEMM_F32:
            ((float *)data)[i] = unit_float((uint32_t)(bits >> 32));
            break;
        case GEMM_BF16:
            ((uint16_t *)data)[i] = gemm_bf16_of(unit_float((uint32_t)(bits >> 32)));
            break;
        default: /* u8 of 0..127, s8 of -128..127 */
            ((uint8_t *)data)[i] = (uint8_t)(bits >> (is_a ? 57 : 56));
        }
    }
}

static void fill_unwritten(struct gemm_problem *p)
{
    size_t n = p->shape.m * p->shape.n;

    if (p->dtype == GEMM_F64)
        for (size_t i = 0; i < n; i++)
            ((double *)p->c)[i] = NAN;
    else if (p->dtype == GEMM_INT8)
        for (size_t i = 0; i < n; i++)
            ((int32_t *)p->c)[i] = INT32_MIN;
    else
        for (size_t i = 0; i < n; i++)
            ((float *)p->c)[i] = NAN;
}

static void *allocate(uint64_t bytes)
{
    uint64_t align = bytes >= HUGE_BYTES ? HUGE_BYTES : 4096;
    void *data = aligned_alloc(align, (bytes + align - 1) / align * align);

    if (data && align == HUGE_BYTES)
        madvise(data, bytes, MADV_HUGEPAGE); /* advice: a kernel without huge pages is no error */
    return data;
}

int gemm_problem_open(struct gemm_problem *p, enum gemm_dtype dtype, const struct gemm_shape *shape,
                      uint64_t seed)
{
    const struct gemm_dtype_info *t = &gemm_dtypes[dtype];
    struct rng rng;

    *p = (struct gemm_problem){.dtype = dtype, .shape = *shape};
    p->a = allocate(shape->m * shape->k * t->a_bytes);
    p->b = allocate(shape->k * shape->n * t->b_bytes);
    p->c = allocate(shape->m * shape->n * t->c_bytes);
    if (!p->a || !p->b || !p->c) {
        gemm_problem_close(p);
        return -ENOMEM;
    }
    rng_seed(&rng, seed);
    fill(p->a, shape->m * shape->k, dtype, true, &rng);
    fill(p->b, shape->k * shape->n, dtype, false, &rng);
    fill_unwritten(p);
    return 0;
}

void gemm_problem_close(struct gemm_problem *p)
{
    free(p->a);
    free(p->b);
    free(p->c);
    *p = (struct gemm_problem){0};
}

double gemm_a_at(const struct gemm_problem *p, size_t row, size_t column)
{
    size_t i = row * p->shape.k + column;

    switch (p->dtype) {
    case GEMM_F64:
        return ((const double *)p->a)[i];
    case GEMM_F32:
        return ((const float *)p->a)[i];
    case GEMM_BF16:
        return gemm_bf16_value(((const uint16_t *)p->a)[i]);
    default:
        return ((const uint8_t *)p->a)[i];
    }
}

double gemm_b_at(const struct gemm_problem *p, size_t row, size_t column)
{
    size_t i = row * p->shape.n + column;

    switch (p->dtype) {
    case GEMM_F64:
        return ((const double *)p->b)[i];
    case GEMM_F32:
        return ((const float *)p->b)[i];
    case GEMM_BF16:
        return gemm_bf16_value(((const uint16_t *)p->b)[i]);
    default:
        return ((const int8_t *)p->b)[i];
    }
}

double gemm_c_at(const struct gemm_problem *p, size_t row, size_t column)
{
    size_t i = row * p->shape.n + column;

    switch (p->dtype) {
    case GEMM_F64:
        return ((const double *)p->c)[i];
    case GEMM_INT8:
        return ((const int32_t *)p->c)[i];
    default:
        return ((const float *)p->c)[i];
    }
}
