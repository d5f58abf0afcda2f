/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products, their shapes and types, and whether one is right: see matrix.h. */
#include "core/matrix/matrix.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "core/units.h"

/* ---- Operands of matrix products ---- */

#define HUGE_BYTES (UINT64_C(2) << 20)

const struct gemm_dtype_info gemm_dtypes[GEMM_DTYPES] = {
    [GEMM_F64] = {"f64", "TFLOP/s"},   [GEMM_F32] = {"f32", "TFLOP/s"},
    [GEMM_TF32] = {"tf32", "TFLOP/s"}, [GEMM_F16] = {"f16", "TFLOP/s"},
    [GEMM_BF16] = {"bf16", "TFLOP/s"}, [GEMM_E4M3] = {"e4m3", "TFLOP/s"},
    [GEMM_E5M2] = {"e5m2", "TFLOP/s"}, [GEMM_INT8] = {"int8", "TOP/s"},
};
const char *const gemm_dtype_names[] = {"f64",  "f32",  "tf32", "f16", "bf16",
                                        "e4m3", "e5m2", "int8", NULL};
const char *const gemm_sums_names[] = {"default", "f32", "fast", "f16", NULL};
const char *const gemm_layout_names[] = {"auto", "nn", "nt", NULL};

/* k_max of int8: 127 * 128 * k < 2^31. */
const struct gemm_form gemm_host_forms[] = {
    {.dtype = GEMM_F64,
     GEMM_ENTRIES(F64, F64, F64, "f64"),
     .layout = GEMM_NN,
     .rounding = {.sum = 0x1p-53}},
    {.dtype = GEMM_F32,
     .sums = GEMM_SUMS_F32,
     GEMM_ENTRIES(F32, F32, F32, "f32"),
     .layout = GEMM_NN,
     .rounding = {.sum = 0x1p-24}},
    {.dtype = GEMM_BF16,
     .sums = GEMM_SUMS_F32,
     GEMM_ENTRIES(BF16, BF16, F32, "f32"),
     .layout = GEMM_NN,
     .rounding = {.sum = 0x1p-24}},
    {.dtype = GEMM_INT8, GEMM_ENTRIES(U8, S8, S32, "s32"), .layout = GEMM_NN, .k_max = 132104},
    {.accumulate = NULL},
};

const struct gemm_form *gemm_form_find(const struct gemm_form *forms, enum gemm_dtype dtype,
                                       enum gemm_sums sums)
{
    for (; forms->accumulate; forms++)
        if (forms->dtype == dtype && (sums == GEMM_SUMS_DEFAULT || forms->sums == sums))
            return forms;
    return NULL;
}

unsigned gemm_element_bytes(enum gemm_element type)
{
    static const unsigned char bytes[] = {
        [GEMM_EL_F64] = 8,  [GEMM_EL_F32] = 4,  [GEMM_EL_F16] = 2,
        [GEMM_EL_BF16] = 2, [GEMM_EL_E4M3] = 1, [GEMM_EL_E5M2] = 1,
        [GEMM_EL_U8] = 1,   [GEMM_EL_S8] = 1,   [GEMM_EL_S32] = 4};

    return bytes[type];
}

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

double gemm_bytes(const struct gemm_form *form, const struct gemm_shape *shape)
{
    double m = (double)shape->m, n = (double)shape->n, k = (double)shape->k;

    return m * k * gemm_element_bytes(form->a) + k * n * gemm_element_bytes(form->b) +
           m * n * gemm_element_bytes(form->c);
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

void gemm_problem_unwrite(struct gemm_problem *p)
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

static void count_shared(const struct gemm_shape *shapes, size_t n, uint64_t most[3])
{
    memset(most, 0, 3 * sizeof(*most));
    for (size_t i = 0; i < n; i++) {
        const uint64_t counts[3] = {shapes[i].m * shapes[i].k, shapes[i].k * shapes[i].n,
                                    shapes[i].m * shapes[i].n};
        for (int k = 0; k < 3; k++)
            most[k] = counts[k] > most[k] ? counts[k] : most[k];
    }
}

double gemm_shared_bytes(enum gemm_dtype dtype, const struct gemm_shape *shapes, size_t n)
{
    const struct gemm_form *f = gemm_form_find(gemm_host_forms, dtype, GEMM_SUMS_DEFAULT);
    uint64_t most[3];

    count_shared(shapes, n, most);
    return (double)most[0] * gemm_element_bytes(f->a) + (double)most[1] * gemm_element_bytes(f->b) +
           (double)most[2] * gemm_element_bytes(f->c);
}

int gemm_problem_share(struct gemm_problem *p, enum gemm_dtype dtype,
                       const struct gemm_shape *shapes, size_t n, uint64_t seed)
{
    const struct gemm_form *f = gemm_form_find(gemm_host_forms, dtype, GEMM_SUMS_DEFAULT);
    struct rng rng;
    uint64_t most[3];

    count_shared(shapes, n, most);
    *p = (struct gemm_problem){.dtype = dtype, .form = f};
    p->a = allocate(most[0] * gemm_element_bytes(f->a));
    p->b = allocate(most[1] * gemm_element_bytes(f->b));
    p->c = allocate(most[2] * gemm_element_bytes(f->c));
    if (!p->a || !p->b || !p->c) {
        gemm_problem_close(p);
        return -ENOMEM;
    }
    rng_seed(&rng, seed);
    fill(p->a, most[0], dtype, true, &rng);
    fill(p->b, most[1], dtype, false, &rng);
    return 0;
}

int gemm_problem_open(struct gemm_problem *p, enum gemm_dtype dtype, const struct gemm_shape *shape,
                      uint64_t seed)
{
    int err = gemm_problem_share(p, dtype, shape, 1, seed);

    if (err)
        return err;
    p->shape = *shape;
    p->b_stays = true;
    gemm_problem_unwrite(p);
    return 0;
}

void gemm_problem_zero(struct gemm_problem *p)
{
    memset(p->a, 0, p->shape.m * p->shape.k * gemm_element_bytes(p->form->a));
    memset(p->b, 0, p->shape.k * p->shape.n * gemm_element_bytes(p->form->b));
}

void gemm_problem_close(struct gemm_problem *p)
{
    free(p->a);
    free(p->b);
    free(p->c);
    *p = (struct gemm_problem){0};
}

static double f16_value(uint16_t bits)
{
    int exponent = bits >> 10 & 31;
    double fraction = bits & 1023, sign = bits >> 15 ? -1 : 1;

    if (exponent == 31)
        return fraction != 0 ? (double)NAN : sign * (double)INFINITY;
    return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

double gemm_element_at(enum gemm_element type, const void *array, size_t i)
{
    switch (type) {
    case GEMM_EL_F64:
        return ((const double *)array)[i];
    case GEMM_EL_F32:
        return ((const float *)array)[i];
    case GEMM_EL_F16:
        return f16_value(((const uint16_t *)array)[i]);
    case GEMM_EL_BF16:
        return gemm_bf16_value(((const uint16_t *)array)[i]);
    case GEMM_EL_U8:
        return ((const uint8_t *)array)[i];
    case GEMM_EL_S8:
        return ((const int8_t *)array)[i];
    case GEMM_EL_S32:
        return ((const int32_t *)array)[i];
    default: /* 8-bit floating types are operands alone, and those are computed, not read */
        abort();
    }
}

double gemm_a_at(const struct gemm_problem *p, size_t row, size_t column)
{
    return gemm_element_at(p->form->a, p->a, row * p->shape.k + column);
}

double gemm_b_at(const struct gemm_problem *p, size_t row, size_t column)
{
    return gemm_element_at(p->form->b, p->b, row * p->shape.n + column);
}

/* ---- The check of a matrix product ---- */

#define LAMBDA 8.0

double gemm_error_bound(const struct gemm_rounding *r, uint64_t k, const struct gemm_terms *t)
{
    double root = sqrt(t->sum_squares), terms = (double)k, wide = r->sum, bound = 0;

    if (r->narrow) {
        bound = LAMBDA * sqrt(r->run ? fmin(terms, (double)r->run) : terms) * r->sum * root;
        wide = r->run ? 0x1p-24 : 0;
    }
    bound += LAMBDA * sqrt(terms) * wide * t->sum_abs;
    bound += r->input * (fabs(t->sum) + LAMBDA * sqrt(1.0 / 6) * root);
    return bound + r->c * (fabs(t->sum) + bound);
}

/* Up to GEMM_CHECK_LINES of 0..n-1, ascending: one from each part, both ends among them. */
static size_t draw_lines(struct rng *rng, size_t n, size_t *lines)
{
    size_t count = n < GEMM_CHECK_LINES ? n : GEMM_CHECK_LINES;

    for (size_t i = 0; i < count; i++) {
        size_t begin = i * n / count, end = (i + 1) * n / count;
        lines[i] = begin + rng_below(rng, end - begin);
    }
    lines[0] = 0;
    lines[count - 1] = n - 1;
    return count;
}

/* A dot product as if in twice the precision of f64 (Ogita, Rump and Oishi 2005, algorithm Dot2),
 * since the same loop checks f64. */
static struct gemm_terms dot(const double *x, const double *y, size_t k)
{
    struct gemm_terms t = {0};
    double sum = 0, rest = 0;

    for (size_t i = 0; i < k; i++) {
        double product = x[i] * y[i], error = fma(x[i], y[i], -product);
        double next = sum + product, part = next - sum;
        rest += (sum - (next - part)) + (product - part) + error;
        sum = next;
        t.sum_abs += fabs(product);
        t.sum_squares += product * product;
    }
    t.sum = sum + rest;
    return t;
}

static void check_entry(const struct gemm_source *s, size_t row, size_t column,
                        const struct gemm_terms *terms, struct gemm_check *out)
{
    double got = s->c_at(s->arg, row, column), error = fabs(got - terms->sum);
    double bound = gemm_error_bound(&s->rounding, s->shape.k, terms);

    out->entries++;
    double share = error == 0 ? 0 : error / bound;
    if (share > out->worst)
        out->worst = share;
    if (error <= bound) /* false for NaN */
        return;
    if (!out->wrong++) {
        out->row = row;
        out->column = column;
        out->got = got;
        out->want = terms->sum;
        out->bound = bound;
    }
}

int gemm_check_source(const struct gemm_source *s, uint64_t seed, struct gemm_check *out)
{
    size_t rows[GEMM_CHECK_LINES], columns[GEMM_CHECK_LINES], k = s->shape.k;
    double *row = calloc(k, sizeof(double)), *column = calloc(k, sizeof(double));
    struct rng rng;
    int err = row && column ? 0 : -ENOMEM;

    *out = (struct gemm_check){0};
    rng_seed(&rng, seed);
    size_t n_rows = draw_lines(&rng, s->shape.m, rows);
    size_t n_columns = draw_lines(&rng, s->shape.n, columns);
    if (!err && s->fetch)
        err = s->fetch(s->arg, rows, n_rows);
    for (size_t j = 0; !err && j < n_columns; j++) {
        s->b_column(s->arg, columns[j], column);
        for (size_t i = 0; i < n_rows; i++) {
            s->a_row(s->arg, rows[i], row);
            struct gemm_terms terms = dot(row, column, k);
            check_entry(s, rows[i], columns[j], &terms, out);
        }
    }
    free(row);
    free(column);
    return err ? err : (out->wrong ? -EBADMSG : 0);
}

static void problem_row(const void *arg, size_t row, double *out)
{
    const struct gemm_problem *p = arg;

    for (size_t l = 0; l < p->shape.k; l++)
        out[l] = gemm_a_at(p, row, l);
}

static void problem_column(const void *arg, size_t column, double *out)
{
    const struct gemm_problem *p = arg;

    for (size_t l = 0; l < p->shape.k; l++)
        out[l] = gemm_b_at(p, l, column);
}

static double problem_c(const void *arg, size_t row, size_t column)
{
    const struct gemm_problem *p = arg;

    return gemm_element_at(p->form->c, p->c, row * p->shape.n + column);
}

int gemm_check_result(const struct gemm_problem *p, uint64_t seed, struct gemm_check *out)
{
    const struct gemm_source source = {.shape = p->shape,
                                       .rounding = p->form->rounding,
                                       .a_row = problem_row,
                                       .b_column = problem_column,
                                       .c_at = problem_c,
                                       .arg = (void *)p};

    return gemm_check_source(&source, seed, out);
}
