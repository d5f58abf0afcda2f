/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the measured ceiling: that each loop does as many operations as its table says, and
 * that the fastest loop counts. How fast is nobody's business here. */
#include "benches/gemm/library.h"
#include "core/hw/topo.h"
#include "tests/unit/unit.h"

#define TURNS 50
/* Until nobody takes the CPU from the fast loop, which a busy machine does for longer than it runs. */
#define GOES 50

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

TEST(loops_do_what_they_count)
{
    struct cpu_features features;
    unsigned tried = 0;
    unsigned char *in = aligned_alloc(64, CEILING_IN_BYTES);
    unsigned char *out = aligned_alloc(64, CEILING_OUT_BYTES);

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

enum loop_kind { ABSENT, DIRECT, DETOUR };

/* Of the loops for a type the one that is named so. */
static enum loop_kind kind_of(enum gemm_dtype dtype, const struct cpu_features *f, const char *name)
{
    const struct ceiling_loop *loops[CEILING_LOOPS_MAX];

    for (size_t n = ceiling_loops(dtype, f, loops); n--;)
        if (strstr(loops[n]->source, name))
            return loops[n]->is_detour ? DETOUR : DIRECT;
    return ABSENT;
}

TEST(every_usable_loop_takes_part)
{
    static const struct cpu_features none = {0}, avx2 = {.avx2 = true, .fma = true},
                                     all = {.avx2 = true,
                                            .fma = true,
                                            .avx512f = true,
                                            .avx512 = true,
                                            .avx512_bf16 = true,
                                            .avx512_vnni = true};
    static const struct {
        enum gemm_dtype type;
        const struct cpu_features *f;
        const char *name;
        enum loop_kind kind;
    } cases[] = {
        {GEMM_F32, &none, "sse2", DIRECT},        {GEMM_F32, &none, "avx2", ABSENT},
        {GEMM_F32, &avx2, "avx2 FMA", DIRECT},    {GEMM_INT8, &avx2, "vpmaddubsw", DIRECT},
        {GEMM_F32, &avx2, "avx512f", ABSENT},     {GEMM_BF16, &avx2, "avx2 f32 FMA", DETOUR},
        {GEMM_F64, &all, "avx512f FMA", DIRECT},  {GEMM_F64, &all, "avx2 FMA", DIRECT},
        {GEMM_BF16, &all, "vdpbf16ps", DIRECT},   {GEMM_BF16, &all, "avx512f f32 FMA", DETOUR},
        {GEMM_INT8, &all, "avx512_vnni", DIRECT}, {GEMM_INT8, &all, "vpmaddubsw", DIRECT},
    };

    for (int type = 0; type < GEMM_DTYPES; type++) {
        const struct ceiling_loop *loops[CEILING_LOOPS_MAX];

        if (!gemm_form_find(gemm_host_forms, (enum gemm_dtype)type, GEMM_SUMS_DEFAULT))
            continue;
        assert_true(ceiling_loops(type, &none, loops) >= 1);
        assert_int_equal(loops[0]->dtype, type);
    }
    if (!ceiling_x86[0].run)
        skip();
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        if (kind_of(cases[i].type, cases[i].f, cases[i].name) != cases[i].kind)
            fail_msg("%s of %s", cases[i].name, gemm_dtypes[cases[i].type].name);
}

/* Loops of one count of operations, the second one in an eighth of the time of the others. */
static void spin(uint64_t steps)
{
    for (volatile uint64_t i = 0; i < steps; i++)
        ;
}

static void slow(uint64_t turns, const void *in, void *out)
{
    (void)in;
    (void)out;
    spin(16 * turns);
}

static void fast(uint64_t turns, const void *in, void *out)
{
    (void)in;
    (void)out;
    spin(2 * turns);
}

TEST(fastest_loop_is_the_ceiling)
{
    static const struct ceiling_loop wide = {GEMM_BF16, false, "wide", 64, NULL, slow},
                                     narrow = {GEMM_BF16, true, "narrow", 64, NULL, fast};
    const struct ceiling_loop *loops[] = {&wide, &narrow, &wide};
    struct ceiling_rate best, alone;
    struct topo *topo;
    unsigned cpu;

    assert_int_equal(topo_open(&topo), 0);
    assert_int_equal(topo_spread(topo, -1, 1, &cpu), 0);
    for (int go = 0; go < GOES; go++) {
        assert_int_equal(ceiling_measure(loops, 3, topo, &cpu, 1, &best), 0);
        assert_int_equal(ceiling_measure(loops, 1, topo, &cpu, 1, &alone), 0);
        if (best.loop == &narrow && best.operations_per_ns > 2 * best.own_per_ns &&
            best.operations_per_ns > 2 * alone.operations_per_ns)
            break;
    }
    assert_ptr_equal(best.loop, &narrow);
    assert_true(best.operations_per_ns > 2 * alone.operations_per_ns);
    assert_true(best.own_per_ns > 0 && best.operations_per_ns > 2 * best.own_per_ns);
    assert_true(alone.own_per_ns == alone.operations_per_ns);
    assert_int_equal(ceiling_measure(loops + 1, 1, topo, &cpu, 1, &alone), 0);
    assert_true(alone.operations_per_ns > 0 && alone.own_per_ns == 0);
    assert_int_equal(ceiling_measure(loops, 0, topo, &cpu, 1, &alone), -EINVAL);
    topo_close(topo);
}
