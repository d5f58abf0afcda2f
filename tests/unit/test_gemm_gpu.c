/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix products on a GPU, the part above its module: operands and their rotation, and that the
 * check passes sums as matrix units make them and finds what is wrong. The device is made up, in
 * host memory; the units' arithmetic is written here after what is known of it.
 */
#include "benches/gemm/library.h"
#include "core/hw/gpu.h"
#include "core/hw/gpu_kernels.h"
#include "tests/unit/fake_gpu.h"
#include "tests/unit/unit.h"

#define SEED 11

struct bed {
    struct gpu gpu;
    struct gpu_stream stream;
    struct gpu_operands o;
};

static void open_bed(struct bed *bed, const struct gemm_form *form, uint64_t m, uint64_t n,
                     uint64_t k, enum gpu_data data, unsigned sets)
{
    struct gpu_operands_config config = {.form = form,
                                         .shape = {m, n, k},
                                         .b_is_nk = form->layout == GEMM_NT,
                                         .data = data,
                                         .seed = SEED};

    *bed = (struct bed){.gpu = fake_gpu(1)};
    bed->stream.gpu = &bed->gpu;
    assert_int_equal(gpu_operands_open(&bed->o, &bed->gpu, &bed->stream, &config, sets), 0);
}

static void close_bed(struct bed *bed)
{
    gpu_operands_close(&bed->o);
    assert_int_equal(bed->gpu.opened, 0);
}

static const struct gemm_form *form_of(enum gemm_dtype dtype, enum gemm_sums sums)
{
    const struct gemm_form *form = gemm_form_find(gemm_gpu_forms, dtype, sums);

    assert_non_null(form);
    return form;
}

/* The value cut to so many bits behind the leading one of `scale`. */
static double cut(double value, double scale, int bits)
{
    if (scale == 0)
        return value;
    double step = ldexp(1, ilogb(scale) - bits);

    return trunc(value / step) * step;
}

/* Rounded to nearest even with so many bits of fraction. */
static double rounded(double value, int bits)
{
    if (value == 0)
        return 0;
    double step = ldexp(1, ilogb(value) - bits);

    return nearbyint(value / step) * step;
}

/* Sums as matrix units make them: `group` products and the sum so far are brought to the exponent
 * of the largest, cut to `bits` of fraction and added, and the sum is cut again. Each `run` terms make
 * such a sum of their own, and those are added up in f32. */
static double unit_sum(const double *terms, size_t n, size_t run, size_t group, int bits)
{
    double all = 0, sum = 0;

    for (size_t first = 0; first < n; first += group) {
        size_t end = first + group < n ? first + group : n;
        double largest = fabs(sum), next;
        for (size_t i = first; i < end; i++)
            largest = fmax(largest, fabs(terms[i]));
        next = cut(sum, largest, bits);
        for (size_t i = first; i < end; i++)
            next += cut(terms[i], largest, bits);
        sum = cut(next, next, bits);
        if (end % run == 0 || end == n) {
            all = run < n ? rounded(all + sum, 23) : sum;
            sum = 0;
        }
    }
    return all;
}

/* Rounded to so many bits after each; 52: as good as exact. */
static double plain_sum(const double *terms, size_t n, int bits)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum = bits < 52 ? rounded(sum + terms[i], bits) : sum + terms[i];
    return sum;
}

static double sum_in_form(const struct gemm_form *form, const double *terms, size_t n)
{
    switch (form->rounding.narrow ? form->dtype : GEMM_DTYPES) {
    case GEMM_E4M3:
    case GEMM_E5M2:
        return unit_sum(terms, n, form->rounding.run ? 128 : n, 32, 13);
    case GEMM_F16:
        return plain_sum(terms, n, 10); /* the worst */
    default:
        return form->dtype == GEMM_F64 || form->dtype == GEMM_INT8 ? plain_sum(terms, n, 52)
                                                                   : unit_sum(terms, n, n, 16, 23);
    }
}

static void store(enum gemm_element type, void *at, double value)
{
    int16_t narrow = 0;

    switch (type) {
    case GEMM_EL_F64:
        memcpy(at, &value, 8);
        return;
    case GEMM_EL_F32:
        memcpy(at, &(float){(float)value}, 4);
        return;
    case GEMM_EL_S32:
        memcpy(at, &(int32_t){(int32_t)value}, 4);
        return;
    case GEMM_EL_BF16:
        narrow = (int16_t)gemm_bf16_of((float)value);
        break;
    default: { /* f16: normal numbers and 0 are enough here */
        double v = rounded(value, 10);
        int e = v == 0 ? -15 : ilogb(v);
        int fraction = v == 0 ? 0 : (int)(ldexp(fabs(v), 10 - e)) & 1023;
        narrow = (int16_t)((v < 0 ? 0x8000 : 0) | (e + 15) << 10 | fraction);
    }
    }
    memcpy(at, &narrow, 2);
}

static double operand(const struct gpu_operands *o, bool is_a, uint64_t set, uint64_t i)
{
    enum gemm_element type = is_a ? o->config.form->a : o->config.form->b;
    enum gpu_value v = gpu_value_of_element(type);
    const char *at = is_a ? gpu_operands_a(o, set) : gpu_operands_b(o, set);
    uint64_t bits = 0;

    memcpy(&bits, at + i * gpu_value_bytes(v), gpu_value_bytes(v));
    double value = gpu_value_of_bits(v, bits);
    return o->config.form->dtype == GEMM_TF32 ? cut(value, value, 10) : value;
}

/* What a unit would leave in C. `left_out`: products from this one on are not added; `transposed`:
 * B is read in the other layout. */
static void multiply(struct gpu_operands *o, uint64_t set, uint64_t left_out, bool transposed)
{
    const struct gemm_shape *s = &o->config.shape;
    double *terms = malloc(s->k * sizeof(*terms));
    unsigned bytes = gemm_element_bytes(o->config.form->c);

    for (uint64_t i = 0; i < s->m; i++)
        for (uint64_t j = 0; j < s->n; j++) {
            for (uint64_t l = 0; l < s->k; l++) {
                bool by_column = o->config.b_is_nk != transposed;
                uint64_t at = by_column ? j * s->k + l : l * s->n + j;
                terms[l] = operand(o, true, set, i * s->k + l) * operand(o, false, set, at);
            }
            store(o->config.form->c, (char *)gpu_operands_c(o, set) + (i * s->n + j) * bytes,
                  sum_in_form(o->config.form, terms, left_out < s->k ? left_out : s->k));
        }
    free(terms);
}

TEST(sets_outgrow_the_cache)
{
    static const struct {
        enum gemm_dtype type;
        uint64_t m, n, k, l2_mib, room_mib;
        unsigned sets;
        uint64_t one;
    } cases[] = {
        {GEMM_BF16, 1024, 1024, 1024, 50, 1000, 26, 6 << 20}, /* 25 of 6 MiB make 150 */
        {GEMM_BF16, 1024, 1024, 1024, 0, 1000, 1, 6 << 20},
        {GEMM_BF16, 1024, 1024, 1024, 50, 20, 3, 6 << 20},
        {GEMM_BF16, 1024, 1024, 1024, 50, 5, 0, 6 << 20},
        {GEMM_F64, 8192, 8192, 8192, 50, 20000, 2, 3 * UINT64_C(8) << 26}, /* never one alone */
        {GEMM_E4M3, 3, 5, 7, 0, 1000, 1, 3 * 256},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct gpu_operands_config c = {.form = form_of(cases[i].type, 0),
                                              .shape = {cases[i].m, cases[i].n, cases[i].k}};
        uint64_t one;
        assert_int_equal(
            gpu_operands_sets(&c, cases[i].l2_mib << 20, cases[i].room_mib << 20, &one),
            cases[i].sets);
        assert_int_equal(one, cases[i].one);
    }
}

/* Every form with sums as units make them: right ones pass and are not even near the bound; each
 * way to be wrong is found. */
static void check_form(const struct gemm_form *form, uint64_t m, uint64_t n, uint64_t k)
{
    struct gemm_check c;
    struct bed bed;
    struct gpu_operands *o = &bed.o;

    open_bed(&bed, form, m, n, k, GPU_RANDOM, 3);
    assert_true(memcmp(gpu_operands_a(o, 0), gpu_operands_a(o, 1), 64) != 0);
    assert_true(memcmp(gpu_operands_b(o, 0), gpu_operands_b(o, 1), 64) != 0);
    assert_true(memcmp(gpu_operands_a(o, 0), gpu_operands_b(o, 0), 64) != 0);
    assert_int_equal(gpu_operands_check(o, 1, false, &c), -EBADMSG); /* nothing is written */
    assert_int_equal(c.wrong, c.entries);
    multiply(o, 1, k, false);
    int err = gpu_operands_check(o, 1, false, &c);
    double worst = form->rounding.c > 0 ? 1 : 0.5; /* the rounding of C has no chance in it */
    if (err || c.worst > worst)
        fail_msg("%s summed in %s, k = %llu: %zu wrong, worst at %.2f of its bound",
                 gemm_dtypes[form->dtype].name, form->accumulate, (unsigned long long)k, c.wrong,
                 c.worst);
    assert_int_equal(gpu_operands_check(o, 2, false, &c), -EBADMSG); /* another set */
    assert_int_equal(c.wrong, c.entries);
    assert_int_equal(gpu_operands_check(o, 1, true, &c), -EBADMSG); /* one entry */
    assert_int_equal(c.wrong, 1);
    assert_int_equal(c.row, 0);
    multiply(o, 1, k - k / 8, false); /* an eighth of the products left out */
    assert_int_equal(gpu_operands_check(o, 1, false, &c), -EBADMSG);
    assert_true(c.wrong > c.entries / 4);
    if (n == k) {
        multiply(o, 1, k, true);
        assert_int_equal(gpu_operands_check(o, 1, false, &c), -EBADMSG);
    }
    close_bed(&bed);
}

TEST(right_sums_pass_and_wrong_ones_do_not)
{
    for (const struct gemm_form *f = gemm_gpu_forms; f->accumulate; f++) {
        check_form(f, 12, 8, 4096);
        check_form(f, 40, 64, 64);
    }
}

/* Inputs cut to bf16 are no tf32, and sums of 6 bits no fp8 unit's of 13. */
TEST(lower_precision_fails)
{
    const struct gemm_form *forms[] = {form_of(GEMM_TF32, 0), form_of(GEMM_E4M3, GEMM_SUMS_F32)};
    struct gemm_check c;
    struct bed bed;
    double terms[256];

    for (int narrow = 0; narrow < 2; narrow++) {
        open_bed(&bed, forms[narrow], 32, 32, 256, GPU_RANDOM, 1);
        unsigned bytes = gemm_element_bytes(forms[narrow]->c);
        for (uint64_t n = 0; n < 32 * 32; n++) {
            uint64_t i = n / 32, j = n % 32;
            for (uint64_t l = 0; l < 256; l++) {
                double a = operand(&bed.o, true, 0, i * 256 + l),
                       b = operand(&bed.o, false, 0, narrow ? j * 256 + l : l * 32 + j);
                terms[l] = narrow ? a * b : rounded(a, 7) * rounded(b, 7);
            }
            store(forms[narrow]->c, (char *)gpu_operands_c(&bed.o, 0) + n * bytes,
                  narrow ? unit_sum(terms, 256, 256, 4, 6) : plain_sum(terms, 256, 52));
        }
        assert_int_equal(gpu_operands_check(&bed.o, 0, false, &c), -EBADMSG);
        close_bed(&bed);
    }
}

TEST(forms_say_what_they_are)
{
    assert_string_equal(form_of(GEMM_E4M3, GEMM_SUMS_DEFAULT)->accumulate, "f32 fast");
    assert_string_equal(form_of(GEMM_E5M2, GEMM_SUMS_F32)->accumulate, "f32");
    assert_string_equal(form_of(GEMM_F16, GEMM_SUMS_DEFAULT)->accumulate, "f32");
    assert_string_equal(form_of(GEMM_F16, GEMM_SUMS_F16)->accumulate, "f16");
    assert_null(gemm_form_find(gemm_gpu_forms, GEMM_BF16, GEMM_SUMS_F16));
    assert_null(gemm_form_find(gemm_gpu_forms, GEMM_F64, GEMM_SUMS_F32));
    assert_int_equal(form_of(GEMM_E5M2, GEMM_SUMS_DEFAULT)->b, GEMM_EL_E4M3);
    assert_true(127.0 * 127 * (double)form_of(GEMM_INT8, 0)->k_max < 0x1p31);
    assert_int_equal(form_of(GEMM_INT8, 0)->layout, GEMM_NT);
    assert_int_equal(form_of(GEMM_BF16, 0)->layout, GEMM_NN);
}
