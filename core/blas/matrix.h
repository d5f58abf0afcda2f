/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix products C = A B as data: types, operands, random contents, and the check of a result.
 * All matrices are row-major and dense: A is m x k, B is k x n, C is m x n.
 *
 * int8 is u8 x s8 -> s32, the form that the dot-product instructions have. A holds 0..127 only: so
 * no sum of two products leaves 16 bits, and the result is exact on CPUs whose kernels go through
 * vpmaddubsw as well.
 */
#ifndef PLUMB_CORE_BLAS_MATRIX_H
#define PLUMB_CORE_BLAS_MATRIX_H

#include <stddef.h>
#include <stdint.h>

enum gemm_dtype { GEMM_F64, GEMM_F32, GEMM_BF16, GEMM_INT8, GEMM_DTYPES };

struct gemm_dtype_info {
    const char *name;       /* "bf16" */
    const char *accumulate; /* the type of the sums and of C */
    const char *unit;       /* a name of units_table */
    unsigned a_bytes, b_bytes, c_bytes;
    double roundoff; /* unit roundoff of the sums, 2^-24 for f32; 0: exact */
    uint64_t k_max;  /* above it the sums may overflow; 0: no such bound */
};

extern const struct gemm_dtype_info gemm_dtypes[GEMM_DTYPES];

struct gemm_shape {
    uint64_t m, n, k;
};

#define GEMM_DIM_MAX (UINT64_C(1) << 24)

/* Reads "1024x4096x512" (m, n, k). 0, or -EINVAL with the error said: fits struct opt's `parse`,
 * *value is a struct gemm_shape. */
int gemm_shape_parse(const char *text, void *value, char *error, size_t len);

/* 2mnk: a multiplication and an addition for each term. */
double gemm_operations(const struct gemm_shape *shape);

struct gemm_problem {
    enum gemm_dtype dtype;
    struct gemm_shape shape;
    void *a, *b, *c;
};

/* The bytes of A, B and C. */
double gemm_bytes(enum gemm_dtype dtype, const struct gemm_shape *shape);

/* Allocates the three (2 MiB aligned and advised to huge pages where they are that large), fills A
 * and B with random values from `seed` (f32, f64, bf16: uniform in [-1, 1) without 0, bf16
 * rounded to nearest even), and C with what no product gives (NaN; INT32_MIN), so that an entry
 * which was not written is found. 0 or -ENOMEM; nothing is left behind on an error. */
int gemm_problem_open(struct gemm_problem *p, enum gemm_dtype dtype, const struct gemm_shape *shape,
                      uint64_t seed);
void gemm_problem_close(struct gemm_problem *p);

uint16_t gemm_bf16_of(float value); /* round to nearest, ties to even; finite values */
float gemm_bf16_value(uint16_t bits);

/* The entry (row, column) of A, B or C as a double: exact for every type. */
double gemm_a_at(const struct gemm_problem *p, size_t row, size_t column);
double gemm_b_at(const struct gemm_problem *p, size_t row, size_t column);
double gemm_c_at(const struct gemm_problem *p, size_t row, size_t column);

/*
 * How far a right entry may lie from the exact one: lambda sqrt(k) u sum |a_il b_lj|, lambda 8, u
 * the roundoff of the sums. It is the probabilistic bound of Higham and Mary (2019, "A New Approach
 * to Probabilistic Rounding Error Analysis", SIAM J. Sci. Comput. 41(5)): any order of summation
 * keeps it but for a chance of 2 k exp(-lambda^2 / 2), 3e-10 at k = 2^14. For random data as here
 * it is about 6 k u of a typical entry: 1.5e-3 for f32 at k = 4096, where the worst-case bound k u
 * sum |ab| would pass errors of several percent. 0 for int8: integers are exact.
 */
double gemm_error_bound(enum gemm_dtype dtype, uint64_t k, double sum_abs);

struct gemm_check {
    size_t entries, wrong; /* entries looked at; outside of the bound */
    double worst;          /* largest error as a share of its bound; 0 or infinite for int8 */
    size_t row, column;    /* of the first wrong one */
    double got, want, bound;
};

#define GEMM_CHECK_LINES 32

/* Holds entries of C against A B in doubled f64 precision: all crossings of up to 32 rows with up
 * to 32 columns, one drawn from each 32nd part, the first and last of each among them, so that no
 * wrong block or left-out rim is missed. 0; -EBADMSG: wrong, see *out; -ENOMEM. */
int gemm_check_result(const struct gemm_problem *p, uint64_t seed, struct gemm_check *out);

#endif
