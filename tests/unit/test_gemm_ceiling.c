/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the measured ceiling: that each loop does as many operations as its table says, and
 * that the right loop is chosen. How fast is nobody's business here. */
#include "core/blas/ceiling.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TURNS 50

static const struct ceiling_loop *const tables[] = {ceiling_x86, ceiling_arm, ceiling_generic};

/* Operands with which each multiply-add adds 1 to a sum: x = y = 1 in the loop's own type, and
 * sums of 0 (for sum x + y: each turn adds y). */
static void fill_ones(const struct ceiling_loop *loop, unsigned char *in)
{
    bool bf16 = strstr(loop->source, "vdpbf16ps") || strstr(loop->source, "bfmmla");

    memset(in, 0, CEILING_IN_BYTES);
    for (int at = 0; at < 128; at += 8) {
        const float f = 1;
        const double d = 1;
        const uint64_t word = strstr(loop->source, "plain")     ? 0x0000000100000001u
                              : strstr(loop->source, "pmaddwd") ? 0x0001000100010001u
                                                                : 0x0101010101010101u;
        if (loop->dtype == GEMM_F64)
            memcpy(in + at, &d, 8);
        else if (loop->dtype == GEMM_BF16 && bf16)
            memcpy(in + at, &(uint64_t){0x3f803f803f803f80u}, 8);
        else if (loop->dtype == GEMM_INT8)
            memcpy(in + at, &word, 8);
        else
            for (int half = 0; half < 8; half += 4)
                memcpy(in + at + half, &f, 4);
    }
    if (strstr(loop->source, "vpmaddubsw")) /* 2 x 1 and 2 x 0 in each pair: 1 a product */
        for (int at = 0; at < 64; at++) {
            in[at] = 2;
            in[at + 64] = at % 2 == 0;
        }
}

static double sum_of(const struct ceiling_loop *loop, const void *out)
{
    double sum = 0;

    for (size_t i = 0; i < CEILING_OUT_BYTES / 8; i++) {
        if (loop->dtype == GEMM_F64)
            sum += ((const double *)out)[i];
        else if (loop->dtype != GEMM_INT8)
            sum += (double)((const float *)out)[2 * i] + (double)((const float *)out)[2 * i + 1];
        else if (strstr(loop->source, "smlal")) /* 16-bit sums */
            for (int j = 0; j < 4; j++)
                sum += ((const int16_t *)out)[4 * i + (size_t)j];
        else
            sum +=
                (double)((const int32_t *)out)[2 * i] + (double)((const int32_t *)out)[2 * i + 1];
    }
    return sum;
}

/* Loops that leave one of their sums only. */
static double sums_left_out(const struct ceiling_loop *loop)
{
    return strstr(loop->source, "neon") ? 20 : 1;
}

static void loops_do_what_they_count(void **state)
{
    struct cpu_features features;
    unsigned tried = 0;
    unsigned char *in = aligned_alloc(64, CEILING_IN_BYTES);
    unsigned char *out = aligned_alloc(64, CEILING_OUT_BYTES);

    (void)state;
    cpu_features_read(&features);
    for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++)
        for (const struct ceiling_loop *loop = tables[t]; loop->run; loop++) {
            if (!loop->usable(&features))
                continue;
            fill_ones(loop, in);
            double begin = 0;
            if (sums_left_out(loop) > 1) { /* these begin with what they end with: a difference */
                memset(out, 0, CEILING_OUT_BYTES);
                loop->run(0, in, out);
                begin = sum_of(loop, out);
            }
            memset(out, 0, CEILING_OUT_BYTES);
            loop->run(TURNS, in, out);
            double products = (sum_of(loop, out) - begin) * sums_left_out(loop) / TURNS;
            if (2 * products != loop->operations)
                print_error("%s (type %d): %g operations a turn, the table says %g\n", loop->source,
                            loop->dtype, 2 * products, loop->operations);
            assert_true(2 * products == loop->operations);
            tried++;
        }
    assert_true(tried >= 4); /* f64, f32, bf16, int8 at least once */
    free(in);
    free(out);
}

static const char *source_of(enum gemm_dtype dtype, struct cpu_features f)
{
    return ceiling_find(dtype, &f)->source;
}

static void widest_unit_is_chosen(void **state)
{
    struct cpu_features none = {0}, here;

    (void)state;
    for (int type = 0; type < GEMM_DTYPES; type++) {
        if (!gemm_form_find(gemm_host_forms, (enum gemm_dtype)type, GEMM_SUMS_DEFAULT))
            continue;
        const struct ceiling_loop *loop = ceiling_find(type, &none);
        assert_int_equal(loop->dtype, type);
        assert_int_equal(strncmp(loop->source, "measured: ", 10), 0);
    }
    cpu_features_read(&here);
    if (!ceiling_x86[0].run)
        skip();
    struct cpu_features f = {.avx2 = true, .fma = true};
    assert_non_null(strstr(source_of(GEMM_F32, none), "sse2"));
    assert_non_null(strstr(source_of(GEMM_F32, f), "avx2 FMA"));
    assert_non_null(strstr(source_of(GEMM_INT8, f), "vpmaddubsw"));
    assert_non_null(strstr(source_of(GEMM_BF16, f), "no bf16 unit"));
    f.avx512f = f.avx512 = true;
    assert_non_null(strstr(source_of(GEMM_F32, f), "avx512f FMA"));
    assert_non_null(strstr(source_of(GEMM_F64, f), "avx512f FMA"));
    assert_non_null(strstr(source_of(GEMM_BF16, f), "no bf16 unit"));
    assert_non_null(strstr(source_of(GEMM_INT8, f), "vpmaddubsw"));
    f.avx512_bf16 = f.avx512_vnni = true;
    assert_non_null(strstr(source_of(GEMM_BF16, f), "vdpbf16ps"));
    assert_non_null(strstr(source_of(GEMM_INT8, f), "avx512_vnni"));
}

static void ceiling_is_measured(void **state)
{
    struct cpu_features features;
    struct topo *topo;
    double rate = 0;

    (void)state;
    cpu_features_read(&features);
    assert_int_equal(topo_open(&topo), 0);
    unsigned n = topo_cpus(topo) < 2 ? 1 : 2, cpus[2];
    assert_int_equal(topo_spread(topo, -1, n, cpus), 0);
    assert_int_equal(ceiling_measure(ceiling_find(GEMM_F32, &features), topo, cpus, n, &rate), 0);
    assert_true(rate > 0.1 && rate < 1e6); /* operations a ns */
    topo_close(topo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops_do_what_they_count),
        cmocka_unit_test(widest_unit_is_chosen),
        cmocka_unit_test(ceiling_is_measured),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
