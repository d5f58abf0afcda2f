/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of the CUDA module: every type against sums in doubles, on matrices that are neither
 * square nor the same either way round; and what is refused. With PLUMB_TEST_GPU=real on a real GPU. */
#include "core/hw/gpu.h"
#include "core/hw/gpu_kernels.h"
#include "cuda_fixture.h"
#include "tests/unit/unit.h"

#define M    48
#define N    32
#define K    64
#define MOST 8

struct bed {
    struct cuda_fixture on;
    const struct gpu_ops *ops; /* of `on` */
    struct gpu *gpu;
    struct gpu_stream *stream;
    struct gpu_gemm *gemm; /* NULL: the group's tests are skipped */
    void *a, *b, *c;
};

static int open_bed(void **state)
{
    static struct bed bed;
    int err = cuda_fixture_open("one", &bed.on);

    *state = &bed;
    bed.ops = bed.on.ops;
    bed.gpu = bed.on.gpu;
    bed.stream = bed.on.stream;
    if (err || !bed.ops)
        return err;
    if (bed.ops->alloc(bed.gpu, GPU_DEVICE, 8 * M * K, &bed.a) ||
        bed.ops->alloc(bed.gpu, GPU_DEVICE, 8 * N * K, &bed.b) ||
        bed.ops->alloc(bed.gpu, GPU_DEVICE, 8 * M * N, &bed.c)) {
        print_message("no memory: %s\n", gpu_error(bed.gpu));
        return -1;
    }
    if (bed.ops->gemm && bed.ops->gemm->open(bed.gpu, &bed.gemm))
        print_message("%s\n", gpu_error(bed.gpu));
    return 0;
}

static int close_bed(void **state)
{
    struct bed *bed = *state;

    if (!bed->ops)
        return 0;
    if (bed->gemm)
        bed->ops->gemm->close(bed->gemm);
    bed->ops->free(bed->gpu, GPU_DEVICE, bed->a);
    bed->ops->free(bed->gpu, GPU_DEVICE, bed->b);
    bed->ops->free(bed->gpu, GPU_DEVICE, bed->c);
    cuda_fixture_close(&bed->on);
    return 0;
}

static struct bed *bed_of(void **state)
{
    struct bed *bed = *state;

    if (!bed->gemm) {
        print_message("there is no module with matrix products, or no device for it\n");
        skip();
    }
    return bed;
}

/* A type as the module takes it; what its results may be off by, for sums of K products below 1. */
struct form {
    enum gpu_value a, b;
    enum gpu_gemm_c c;
    enum gpu_gemm_compute compute;
    bool transposed_too; /* both ways of B; else n x k alone */
    double off;
};

static const struct form forms[] = {
    {GPU_F64, GPU_F64, GPU_GEMM_C_F64, GPU_GEMM_F64, true, 1e-13},
    {GPU_F32, GPU_F32, GPU_GEMM_C_F32, GPU_GEMM_F32, true, 1e-5},
    {GPU_F32, GPU_F32, GPU_GEMM_C_F32, GPU_GEMM_TF32, true, 2e-2},
    {GPU_F16, GPU_F16, GPU_GEMM_C_F16, GPU_GEMM_F32_SUM, true, 1e-2},
    {GPU_F16, GPU_F16, GPU_GEMM_C_F16, GPU_GEMM_F16_SUM, true, 5e-2},
    {GPU_BF16, GPU_BF16, GPU_GEMM_C_BF16, GPU_GEMM_F32_SUM, true, 6e-2},
    {GPU_BF16, GPU_BF16, GPU_GEMM_C_F32, GPU_GEMM_F32_SUM, true, 1e-5},
    {GPU_E4M3, GPU_E4M3, GPU_GEMM_C_BF16, GPU_GEMM_F32_SUM, false, 6e-2},
    {GPU_E4M3, GPU_E4M3, GPU_GEMM_C_BF16, GPU_GEMM_F32_FAST, false, 6e-2},
    {GPU_E5M2, GPU_E4M3, GPU_GEMM_C_BF16, GPU_GEMM_F32_FAST, false, 6e-2},
    {GPU_S8, GPU_S8, GPU_GEMM_C_S32, GPU_GEMM_S32_SUM, false, 0},
};

static struct gpu_gemm_problem problem_of(const struct form *f, bool b_is_nk)
{
    return (struct gpu_gemm_problem){.a = f->a,
                                     .b = f->b,
                                     .c = f->c,
                                     .compute = f->compute,
                                     .b_is_nk = b_is_nk,
                                     .m = M,
                                     .n = N,
                                     .k = K};
}

static void fill(struct bed *bed, void *at, enum gpu_value type, uint64_t count, uint64_t seed)
{
    const struct gpu_fill_args args = {.dst = at, .count = count, .seed = seed, .type = type};
    struct gpu_kernel *kernel;

    OK(bed, bed->ops->kernel(bed->gpu, "fill", &kernel));
    OK(bed, bed->ops->launch(bed->stream, kernel, 4, 128, &args));
}

static double operand(enum gpu_value type, uint64_t seed, uint64_t i)
{
    return gpu_value_of_bits(type, gpu_value_bits(type, GPU_RANDOM, seed, i));
}

static double expected(const struct form *f, bool b_is_nk, unsigned row, unsigned column)
{
    double sum = 0;

    for (unsigned k = 0; k < K; k++)
        sum += operand(f->a, 1, row * K + k) *
               operand(f->b, 2, b_is_nk ? column * K + k : k * N + column);
    return sum;
}

static double result(enum gpu_gemm_c type, const void *c, size_t i)
{
    static const enum gpu_value as[] = {[GPU_GEMM_C_F64] = GPU_F64,
                                        [GPU_GEMM_C_F32] = GPU_F32,
                                        [GPU_GEMM_C_F16] = GPU_F16,
                                        [GPU_GEMM_C_BF16] = GPU_BF16};
    uint64_t bits = 0;
    size_t bytes = type == GPU_GEMM_C_S32 ? 4 : gpu_value_bytes(as[type]);

    memcpy(&bits, (const char *)c + i * bytes, bytes);
    return type == GPU_GEMM_C_S32 ? (double)(int32_t)bits : gpu_value_of_bits(as[type], bits);
}

static void check_result(struct bed *bed, const struct form *f, bool b_is_nk, unsigned candidate)
{
    static double c[M * N];
    char text[160];

    OK(bed, bed->ops->set(bed->stream, bed->c, 0xffffffff, sizeof(c)));
    OK(bed, bed->ops->gemm->run(bed->gemm, candidate, bed->stream, bed->a, bed->b, bed->c));
    OK(bed, bed->ops->copy(bed->stream, c, bed->c, sizeof(c)));
    OK(bed, bed->ops->stream_wait(bed->stream));
    for (unsigned i = 0; i < M * N; i++) {
        double want = expected(f, b_is_nk, i / N, i % N), got = result(f->c, c, i);
        if (!(fabs(got - want) <= f->off))
            fail_msg("form %d, B %s, %s: C[%u][%u] is %.9g, not %.9g", (int)(f - forms),
                     b_is_nk ? "n x k" : "k x n",
                     bed->ops->gemm->describe(bed->gemm, candidate, text, sizeof(text)), i / N,
                     i % N, got, want);
    }
}

/* fp8 came with compute capability 8.9: where it is not, a plan is refused, and the test says why. Of a real GPU any refusal counts so. */
static bool is_absent(const struct bed *bed, const struct form *f, int err)
{
    const struct gpu_facts *facts = &gpu_base(bed->gpu)->facts;
    bool fp8 = f->a == GPU_E4M3 || f->a == GPU_E5M2;
    bool has_fp8 = facts->major > 8 || (facts->major == 8 && facts->minor >= 9);

    if (err != -EOPNOTSUPP || !(cuda_fixture_real() || (fp8 && !has_fp8)))
        return false;
    print_message("%s\n", gpu_error(bed->gpu));
    return true;
}

static void try_form(struct bed *bed, const struct form *f, bool b_is_nk)
{
    const struct gpu_gemm_problem p = problem_of(f, b_is_nk);
    unsigned n = 99;
    int err = bed->ops->gemm->plan(bed->gemm, &p, MOST, &n);

    if (is_absent(bed, f, err))
        return;
    OK(bed, err);
    assert_in_range(n, 1, MOST);
    fill(bed, bed->a, f->a, M * K, 1);
    fill(bed, bed->b, f->b, N * K, 2);
    for (unsigned i = 0; i < n; i++)
        check_result(bed, f, b_is_nk, i);
    bed->ops->gemm->unplan(bed->gemm);
}

TEST(every_type)
{
    struct bed *bed = bed_of(state);

    for (size_t i = 0; i < 2 * sizeof(forms) / sizeof(forms[0]); i++)
        if (i % 2 || forms[i / 2].transposed_too)
            try_form(bed, &forms[i / 2], i % 2);
}

/* "Summed in f32" holds for sums that are split too: none adds up parts in C's narrower type. Where C
 * is as wide as the sums all may be taken. */
TEST(sums_are_not_narrowed)
{
    struct bed *bed = bed_of(state);
    char text[160];

    for (const struct form *f = forms; f < forms + sizeof(forms) / sizeof(forms[0]); f++) {
        const struct gpu_gemm_problem p = problem_of(f, true);
        bool narrower = (f->c == GPU_GEMM_C_F16 || f->c == GPU_GEMM_C_BF16) &&
                        f->compute != GPU_GEMM_F16_SUM,
             found = false;
        unsigned n;
        int err = bed->ops->gemm->plan(bed->gemm, &p, MOST, &n);
        if (is_absent(bed, f, err))
            continue;
        OK(bed, err);
        for (unsigned i = 0; i < n; i++) {
            bed->ops->gemm->describe(bed->gemm, i, text, sizeof(text));
            found = found || strstr(text, "reduction #1") || strstr(text, "reduction #4");
        }
        bed->ops->gemm->unplan(bed->gemm);
        assert_true(narrower ? !found : found || cuda_fixture_real());
    }
}

TEST(what_is_refused)
{
    struct bed *bed = bed_of(state);
    const struct gpu_gemm_ops *ops = bed->ops->gemm;
    struct gpu_gemm_problem p = problem_of(&forms[5], true);
    unsigned n;

    OK(bed, ops->plan(bed->gemm, &p, 2, &n));
    assert_int_equal(ops->run(bed->gemm, n, bed->stream, bed->a, bed->b, bed->c), -EINVAL);
    assert_int_equal(ops->run(bed->gemm, 0, bed->stream, (char *)bed->a + 16, bed->b, bed->c),
                     -EINVAL);
    p.m = 0;
    assert_int_equal(ops->plan(bed->gemm, &p, 2, &n), -EINVAL);
    assert_int_equal(n, 0);
    p = problem_of(&forms[10], false);
    assert_int_equal(ops->plan(bed->gemm, &p, 2, &n), -EINVAL);
    p = problem_of(&forms[0], true);
    p.a = GPU_U64;
    assert_int_equal(ops->plan(bed->gemm, &p, 2, &n), -EINVAL);
    ops->unplan(bed->gemm);
}

/* The first product of a candidate loads its kernels, and would wait for the hold. */
TEST(first_product_of_a_held_stream)
{
    struct bed *bed = bed_of(state);
    const struct gpu_gemm_ops *ops = bed->ops->gemm;
    const struct gpu_gemm_problem p = problem_of(&forms[1], true);
    unsigned n;

    OK(bed, ops->plan(bed->gemm, &p, 1, &n));
    OK(bed, bed->ops->hold(bed->stream));
    assert_int_equal(ops->run(bed->gemm, 0, bed->stream, bed->a, bed->b, bed->c), -EINVAL);
    OK(bed, bed->ops->release(bed->stream));
    OK(bed, ops->run(bed->gemm, 0, bed->stream, bed->a, bed->b, bed->c));
    OK(bed, bed->ops->stream_wait(bed->stream));
    OK(bed, bed->ops->hold(bed->stream));
    OK(bed, ops->run(bed->gemm, 0, bed->stream, bed->a, bed->b, bed->c));
    OK(bed, bed->ops->release(bed->stream));
    OK(bed, bed->ops->stream_wait(bed->stream));
    ops->unplan(bed->gemm);
}

/* Another type would be measured than the row says. A switch whose value changes nothing is no reason. */
TEST(types_that_the_environment_changes)
{
    enum { F64, F32, TF32, BF16 = 5 };
    static const struct {
        const char *variable, *value;
        int changed, same;
    } cases[] = {{"NVIDIA_TF32_OVERRIDE", "0", TF32, F32},
                 {"NVIDIA_TF32_OVERRIDE", "1", F32, TF32},
                 {"NVIDIA_TF32_OVERRIDE", "1", F32, BF16},
                 {"CUBLAS_EMULATE_SINGLE_PRECISION", "1", F32, BF16},
                 {"CUBLAS_EMULATE_DOUBLE_PRECISION", "1", F64, F32}};
    struct bed *bed = bed_of(state);
    const struct gpu_gemm_ops *ops = bed->ops->gemm;
    unsigned n;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gpu_gemm_problem p = problem_of(&forms[cases[i].changed], true);
        setenv(cases[i].variable, cases[i].value, 1);
        assert_int_equal(ops->plan(bed->gemm, &p, 1, &n), -EOPNOTSUPP);
        assert_non_null(strstr(gpu_error(bed->gpu), cases[i].variable));
        p = problem_of(&forms[cases[i].same], true);
        OK(bed, ops->plan(bed->gemm, &p, 1, &n));
        unsetenv(cases[i].variable);
    }
    ops->unplan(bed->gemm);
}

TESTS_WITH(open_bed, close_bed);
