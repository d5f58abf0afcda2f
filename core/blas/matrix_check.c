/* SPDX-License-Identifier: Apache-2.0 */
/* The check of a matrix product: see matrix.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "core/blas/matrix.h"
#include "core/rng.h"

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
    return gemm_c_at(arg, row, column);
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
