/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of matrix products as data: shapes, random operands, and that the check finds what is
 * wrong and passes what is right. */
#include "benches/gemm/library.h"
#include "tests/unit/unit.h"

#define SEED 7

/* NULL for what CPUs do not multiply. */
static const struct gemm_form *host_form(int type)
{
    return gemm_form_find(gemm_host_forms, (enum gemm_dtype)type, GEMM_SUMS_DEFAULT);
}

TEST(shapes)
{
    static const char *const bad[] = {"",        "1x2",          "1x2x",   "x2x3",
                                      "1x2x3x4", "1x0x3",        "1 x2x3", "1x2x3.5",
                                      "-1x2x3",  "1x2x16777217", "1Kx2x3"};
    struct gemm_shape s;
    char error[256];

    assert_int_equal(gemm_shape_parse("1024x4096x512", &s, error, sizeof(error)), 0);
    assert_true(s.m == 1024 && s.n == 4096 && s.k == 512);
    assert_true(gemm_operations(&s) == 2.0 * 1024 * 4096 * 512);
    assert_int_equal(gemm_shape_parse("1x2x16777216", &s, error, sizeof(error)), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(gemm_shape_parse(bad[i], &s, error, sizeof(error)), -EINVAL);
    s = (struct gemm_shape){3, 5, 7};
    assert_true(gemm_bytes(host_form(GEMM_F64), &s) == 8 * (21 + 35 + 15));
    assert_true(gemm_bytes(host_form(GEMM_BF16), &s) == 2 * (21 + 35) + 4 * 15);
    assert_true(gemm_bytes(host_form(GEMM_INT8), &s) == 21 + 35 + 4 * 15);
}

TEST(bf16_rounds_to_even)
{
    static const struct {
        float value;
        unsigned bits;
    } cases[] = {{1.0f, 0x3f80},
                 {-2.0f, 0xc000},
                 {1.0f + 0x1p-8f, 0x3f80},            /* a tie: down to even */
                 {1.0f + 3 * 0x1p-8f, 0x3f82},        /* a tie: up to even */
                 {1.0f + 0x1p-8f + 0x1p-20f, 0x3f81}, /* past the tie */
                 {0x1.fffffep0f, 0x4000}};            /* carries */

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_int_equal(gemm_bf16_of(cases[i].value), cases[i].bits);
    assert_true(gemm_bf16_value(0x3fc0) == 1.5f);
}

TEST(data_is_random_and_seeded)
{
    const struct gemm_shape shape = {40, 50, 60};

    for (int type = 0; type < GEMM_DTYPES; type++) {
        if (!host_form(type))
            continue;
        struct gemm_problem p, same, other;
        double low = 1e9, high = -1e9, sum = 0;
        assert_int_equal(gemm_problem_open(&p, type, &shape, SEED), 0);
        assert_int_equal(gemm_problem_open(&same, type, &shape, SEED), 0);
        assert_int_equal(gemm_problem_open(&other, type, &shape, SEED + 1), 0);
        size_t bytes = shape.k * shape.n * gemm_element_bytes(host_form(type)->b);
        assert_memory_equal(p.b, same.b, bytes);
        assert_true(memcmp(p.b, other.b, bytes) != 0);
        for (size_t i = 0; i < shape.k * shape.n; i++) {
            double b = gemm_b_at(&p, i / shape.n, i % shape.n) / (type == GEMM_INT8 ? 128 : 1);
            assert_true(type == GEMM_INT8 || b != 0);
            low = fmin(low, b);
            high = fmax(high, b);
            sum += b;
        }
        assert_true(low >= -1 && low < -0.99 && high <= 1 && high > 0.98);
        assert_true(fabs(sum / 3000) < 0.05); /* 4.7 standard errors */
        for (size_t i = 0; type == GEMM_INT8 && i < shape.m * shape.k; i++)
            assert_true(((uint8_t *)p.a)[i] <= 127);
        gemm_problem_close(&p);
        gemm_problem_close(&same);
        gemm_problem_close(&other);
    }
}

/* The textbook loop in the accumulate type. `terms`: how many of the k products it adds;
 * `transposed`: with B as if it were stored by columns. */
static void multiply(struct gemm_problem *p, size_t terms, bool transposed)
{
    for (size_t i = 0; i < p->shape.m; i++)
        for (size_t j = 0; j < p->shape.n; j++) {
            float sum32 = 0;
            double sum64 = 0; /* exact for integers */
            for (size_t l = 0; l < terms; l++) {
                double a = gemm_a_at(p, i, l);
                double b = transposed ? gemm_b_at(p, j, l) : gemm_b_at(p, l, j);
                sum32 += (float)a * (float)b;
                sum64 += a * b;
            }
            size_t at = i * p->shape.n + j;
            if (p->dtype == GEMM_F64)
                ((double *)p->c)[at] = sum64;
            else if (p->dtype == GEMM_INT8)
                ((int32_t *)p->c)[at] = (int32_t)sum64;
            else
                ((float *)p->c)[at] = sum32;
        }
}

static void spoil(struct gemm_problem *p, size_t row, size_t column)
{
    size_t at = row * p->shape.n + column;

    if (p->dtype == GEMM_F64)
        ((double *)p->c)[at] += 0.01; /* a typical entry is 7.5 */
    else if (p->dtype == GEMM_INT8)
        ((int32_t *)p->c)[at] += 1;
    else
        ((float *)p->c)[at] += 0.01f;
}

TEST(right_results_pass)
{
    static const struct gemm_shape shapes_[] = {
        {1, 1, 1}, {70, 1, 64}, {33, 65, 129}, {2, 3, 4000}};
    struct gemm_check c;

    for (int type = 0; type < GEMM_DTYPES; type++)
        for (size_t s = 0; host_form(type) && s < sizeof(shapes_) / sizeof(shapes_[0]); s++) {
            struct gemm_problem p;
            assert_int_equal(gemm_problem_open(&p, type, &shapes_[s], SEED), 0);
            multiply(&p, p.shape.k, false);
            assert_int_equal(gemm_check_result(&p, SEED, &c), 0);
            size_t rows = p.shape.m < 32 ? p.shape.m : 32,
                   columns = p.shape.n < 32 ? p.shape.n : 32;
            assert_int_equal(c.entries, rows * columns);
            assert_int_equal(c.wrong, 0);
            assert_true(c.worst <= 0.5); /* the bound is not cut so fine that chance decides */
            gemm_problem_close(&p);
        }
}

/* Each way to be wrong, on each type; whatever the seed, one entry of each part of C is looked at. */
TEST(wrong_results_fail)
{
    const struct gemm_shape shape = {64, 64, 512}, small = {96, 96, 64};
    struct gemm_problem p;
    struct gemm_check c;

    for (int type = 0; type < GEMM_DTYPES; type++) {
        if (!host_form(type))
            continue;
        assert_int_equal(gemm_problem_open(&p, type, &shape, SEED), 0);
        assert_int_equal(gemm_check_result(&p, SEED, &c), -EBADMSG); /* nothing written */
        assert_int_equal(c.wrong, c.entries);
        multiply(&p, shape.k - 1, false); /* the last product left out */
        assert_int_equal(gemm_check_result(&p, SEED, &c), -EBADMSG);
        assert_true(c.wrong > c.entries / 2);
        multiply(&p, shape.k, false);
        assert_int_equal(gemm_check_result(&p, SEED, &c), 0);
        spoil(&p, 63, 63); /* one entry, in the far corner */
        assert_int_equal(gemm_check_result(&p, SEED, &c), -EBADMSG);
        assert_true(c.wrong == 1 && c.row == 63 && c.column == 63);
        gemm_problem_close(&p);
    }
    for (uint64_t seed = 1; seed <= 3; seed++) { /* 96 lines in 32 parts of 3 */
        assert_int_equal(gemm_problem_open(&p, GEMM_F32, &small, seed), 0);
        multiply(&p, small.k, false);
        for (size_t i = 0; i < 9; i++)
            spoil(&p, 45 * (seed - 1) + 3 + i / 3, 45 * (seed - 1) + 3 + i % 3);
        assert_int_equal(gemm_check_result(&p, seed, &c), -EBADMSG);
        assert_int_equal(c.wrong, 1);
        gemm_problem_close(&p);
    }
}

/* Sums kept in bf16, or f32 sums of f64 data, or B read by columns: a wrong result. */
TEST(lower_precision_fails)
{
    const struct gemm_shape shape = {40, 40, 256}, square = {64, 64, 64};
    struct gemm_problem p;
    struct gemm_check c;

    for (int wide = 0; wide < 2; wide++) {
        assert_int_equal(gemm_problem_open(&p, wide ? GEMM_F64 : GEMM_BF16, &shape, SEED), 0);
        multiply(&p, shape.k, false);
        for (size_t i = 0; i < 1600; i++)
            if (wide)
                ((double *)p.c)[i] = (float)((double *)p.c)[i];
            else
                ((float *)p.c)[i] = gemm_bf16_value(gemm_bf16_of(((float *)p.c)[i]));
        assert_int_equal(gemm_check_result(&p, SEED, &c), -EBADMSG);
        gemm_problem_close(&p);
    }
    assert_int_equal(gemm_problem_open(&p, GEMM_F32, &square, SEED), 0);
    multiply(&p, 64, true);
    assert_int_equal(gemm_check_result(&p, SEED, &c), -EBADMSG);
    gemm_problem_close(&p);
}

TEST(bound_is_the_stated_one)
{
    static const struct {
        enum gemm_dtype type;
        double unit;
    } cases[] = {{GEMM_INT8, 0}, {GEMM_F32, 0x1p-24}, {GEMM_BF16, 0x1p-24}, {GEMM_F64, 0x1p-53}};
    const struct gemm_terms terms = {.sum_abs = 1024};

    for (size_t i = 0; i < 4; i++)
        assert_true(gemm_error_bound(&host_form(cases[i].type)->rounding, 4096, &terms) ==
                    8 * 64 * cases[i].unit * 1024);
    assert_true(127.0 * 128 * (double)host_form(GEMM_INT8)->k_max < 0x1p31);
}

TEST(entries_of_c_are_read_exactly)
{
    static const uint16_t f16[] = {0x3c00, 0xc000, 0x0001, 0x8001, 0x7bff, 0x0000, 0x7c00, 0x7e00};
    static const double f16_values[] = {1, -2, 0x1p-24, -0x1p-24, 65504, 0, INFINITY};
    const float f32[] = {0.1f, NAN};
    const int32_t s32[] = {INT32_MIN};

    for (size_t i = 0; i < 7; i++)
        assert_true(gemm_element_at(GEMM_EL_F16, f16, i) == f16_values[i]);
    assert_true(isnan(gemm_element_at(GEMM_EL_F16, f16, 7)));
    assert_true(gemm_element_at(GEMM_EL_F32, f32, 0) == (double)0.1f);
    assert_true(isnan(gemm_element_at(GEMM_EL_F32, f32, 1)));
    assert_true(isnan(gemm_element_at(GEMM_EL_BF16, (uint16_t[]){0xffff}, 0)));
    assert_true(gemm_element_at(GEMM_EL_S32, s32, 0) == -0x1p31);
}
