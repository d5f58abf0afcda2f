/* SPDX-License-Identifier: Apache-2.0 */
/* The check of a matrix product: see matrix.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "core/blas/matrix.h"
#include "core/rng.h"

#define LAMBDA 8.0

double gemm_error_bound(enum gemm_dtype dtype, uint64_t k, double sum_abs)
{
    return LAMBDA * sqrt((double)k) * gemm_dtypes[dtype].roundoff * sum_abs;
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
static double dot(const double *x, const double *y, size_t k, double *sum_abs)
{
    double sum = 0, rest = 0;

    *sum_abs = 0;
    for (size_t i = 0; i < k; i++) {
        double product = x[i] * y[i], error = fma(x[i], y[i], -product);
        double next = sum + product, part = next - sum;
        rest += (sum - (next - part)) + (product - part) + error;
        sum = next;
        *sum_abs += fabs(product);
    }
    return sum + rest;
}

static void check_entry(const struct gemm_problem *p, size_t row, size_t column, double want,
                        double sum_abs, struct gemm_check *out)
{
    double got = gemm_c_at(p, row, column), error = fabs(got - want);
    double bound = gemm_error_bound(p->dtype, p->shape.k, sum_abs);

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
        out->want = want;
        out->bound = bound;
    }
}

int gemm_check_result(const struct gemm_problem *p, uint64_t seed, struct gemm_check *out)
{
    size_t rows[GEMM_CHECK_LINES], columns[GEMM_CHECK_LINES], k = p->shape.k;
    double *row = malloc(k * sizeof(double)), *column = malloc(k * sizeof(double)), sum_abs;
    struct rng rng;
    int err = row && column ? 0 : -ENOMEM;

    *out = (struct gemm_check){0};
    rng_seed(&rng, seed);
    size_t n_rows = draw_lines(&rng, p->shape.m, rows);
    size_t n_columns = draw_lines(&rng, p->shape.n, columns);
    for (size_t j = 0; !err && j < n_columns; j++) {
        for (size_t l = 0; l < k; l++)
            column[l] = gemm_b_at(p, l, columns[j]);
        for (size_t i = 0; i < n_rows; i++) {
            for (size_t l = 0; l < k; l++)
                row[l] = gemm_a_at(p, rows[i], l);
            double want = dot(row, column, k, &sum_abs);
            check_entry(p, rows[i], columns[j], want, sum_abs, out);
        }
    }
    free(row);
    free(column);
    return err ? err : (out->wrong ? -EBADMSG : 0);
}
