/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix products on a GPU, the part above its module: operands and their rotation, and that the
 * check passes sums as matrix units make them and finds what is wrong. The device is made up, in
 * host memory; the units' arithmetic is written here after what is known of it.
 */

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "benches/gemm/library.h"
#include "core/hw/gpu.h"
#include "core/hw/gpu_kernels.h"

#define SEED 11

struct gpu {
    struct gpu_base base;
    unsigned allocated, copies;
    uint64_t copied;
};

static int alloc(struct gpu *gpu, enum gpu_memory kind, size_t bytes, void **at)
{
    assert_int_equal(kind, GPU_DEVICE);
    *at = malloc(bytes);
    memset(*at, 0, bytes);
    gpu->allocated++;
    return 0;
}

static void release(struct gpu *gpu, enum gpu_memory kind, void *at)
{
    (void)kind;
    gpu->allocated--;
    free(at);
}

static int wait(struct gpu_stream *stream)
{
    (void)stream;
    return 0;
}

static struct gpu *device(struct gpu_stream *stream)
{
    return (struct gpu *)stream; /* one stream, the device itself */
}

static int copy(struct gpu_stream *stream, void *dst, const void *src, size_t bytes)
{
    device(stream)->copies++;
    device(stream)->copied += bytes;
    memcpy(dst, src, bytes);
    return 0;
}

static int set(struct gpu_stream *stream, void *dst, uint32_t word, size_t bytes)
{
    (void)stream;
    assert_int_equal(bytes % 4, 0);
    for (size_t i = 0; i < bytes / 4; i++)
        ((uint32_t *)dst)[i] = word;
    return 0;
}

static int kernel(struct gpu *gpu, const char *name, struct gpu_kernel **k)
{
    assert_string_equal(name, "fill");
    *k = (struct gpu_kernel *)gpu;
    return 0;
}

static int launch(struct gpu_stream *stream, struct gpu_kernel *k, unsigned grid, unsigned block,
                  const void *args)
{
    const struct gpu_fill_args *fill = args;
    unsigned bytes = gpu_value_bytes(fill->type);

    (void)stream;
    (void)k;
    assert_true(grid > 0 && block > 0);
    for (uint64_t i = 0; i < fill->count; i++) {
        uint64_t bits = gpu_value_bits(fill->type, fill->kind, fill->seed, fill->first + i);
        memcpy((char *)fill->dst + i * bytes, &bits, bytes); /* little-endian */
    }
    return 0;
}

static const struct gpu_ops ops = {.alloc = alloc,
                                   .free = release,
                                   .stream_wait = wait,
                                   .copy = copy,
                                   .set = set,
                                   .kernel = kernel,
                                   .launch = launch};

static struct gpu made_up(void)
{
    return (struct gpu){.base = {.ops = &ops, .facts = {.sms = 4}}};
}

static struct gpu_operands_config config_of(const struct gemm_form *form, uint64_t m, uint64_t n,
                                            uint64_t k)
{
    return (struct gpu_operands_config){.form = form,
                                        .shape = {m, n, k},
                                        .b_is_nk = form->layout == GEMM_NT,
                                        .data = GPU_RANDOM,
                                        .seed = SEED};
}

static const struct gemm_form *form_of(enum gemm_dtype dtype, enum gemm_sums sums)
{
    const struct gemm_form *form = gemm_form_find(gemm_gpu_forms, dtype, sums);

    assert_non_null(form);
    return form;
}

/* --- arithmetic ----------------------------------------------------------------------------- */

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
 * of the largest, cut to `bits` of fraction and added, and the sum is cut again. */
static double unit_sum(const double *terms, size_t n, size_t group, int bits)
{
    double sum = 0;

    for (size_t first = 0; first < n; first += group) {
        size_t end = first + group < n ? first + group : n;
        double largest = fabs(sum), next;
        for (size_t i = first; i < end; i++)
            largest = fmax(largest, fabs(terms[i]));
        next = cut(sum, largest, bits);
        for (size_t i = first; i < end; i++)
            next += cut(terms[i], largest, bits);
        sum = cut(next, next, bits);
    }
    return sum;
}

/* Narrow runs of `run` terms, added up in f32. */
static double promoted_sum(const double *terms, size_t n, size_t run, int bits)
{
    double sum = 0;

    for (size_t first = 0; first < n; first += run)
        sum =
            rounded(sum + unit_sum(terms + first, first + run < n ? run : n - first, 32, bits), 23);
    return sum;
}

static double f16_sum(const double *terms, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++) /* the worst: rounded after each */
        sum = rounded(sum + terms[i], 10);
    return sum;
}

static double exact_sum(const double *terms, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += terms[i];
    return sum;
}

static double sum_in_form(const struct gemm_form *form, const double *terms, size_t n)
{
    switch (form->rounding.narrow ? form->dtype : GEMM_DTYPES) {
    case GEMM_E4M3:
    case GEMM_E5M2:
        return form->rounding.run ? promoted_sum(terms, n, 128, 13) : unit_sum(terms, n, 32, 13);
    case GEMM_F16:
        return f16_sum(terms, n);
    default:
        return form->dtype == GEMM_F64 || form->dtype == GEMM_INT8 ? exact_sum(terms, n)
                                                                   : unit_sum(terms, n, 16, 23);
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

/* --- the product ---------------------------------------------------------------------------- */

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

/* --- tests ---------------------------------------------------------------------------------- */

static void sets_outgrow_the_cache(void **state)
{
    const struct gpu_operands_config c = config_of(form_of(GEMM_BF16, 0), 1024, 1024, 1024);
    uint64_t one, mib = 1 << 20, room = 1000 * mib;

    (void)state;
    assert_int_equal(gpu_operands_sets(&c, 50 * mib, room, &one), 26); /* 25 of 6 MiB make 150 */
    assert_int_equal(one, 6 * mib);
    assert_int_equal(gpu_operands_sets(&c, 0, room, &one), 1);
    assert_int_equal(gpu_operands_sets(&c, 50 * mib, 20 * mib, &one), 3);
    assert_int_equal(gpu_operands_sets(&c, 50 * mib, 5 * mib, &one), 0);
    const struct gpu_operands_config big = config_of(form_of(GEMM_F64, 0), 8192, 8192, 8192);
    assert_int_equal(gpu_operands_sets(&big, 50 * mib, 20000 * mib, &one), 2); /* never one alone */
    const struct gpu_operands_config odd = config_of(form_of(GEMM_E4M3, 0), 3, 5, 7);
    assert_int_equal(gpu_operands_sets(&odd, 0, room, &one), 1);
    assert_int_equal(one, 3 * 256);
}

/* Every form with sums as units make them: right ones pass and are not even near the bound; each
 * way to be wrong is found. */
static void check_form(const struct gemm_form *form, uint64_t m, uint64_t n, uint64_t k)
{
    struct gpu gpu = made_up();
    struct gpu_operands o;
    struct gemm_check c;
    const struct gpu_operands_config config = config_of(form, m, n, k);

    assert_int_equal(gpu_operands_open(&o, &gpu, (struct gpu_stream *)&gpu, &config, 3), 0);
    assert_int_equal(gpu_operands_check(&o, 1, false, &c), -EBADMSG); /* nothing is written */
    assert_int_equal(c.wrong, c.entries);
    multiply(&o, 1, k, false);
    int err = gpu_operands_check(&o, 1, false, &c);
    double worst = form->rounding.c > 0 ? 1 : 0.5; /* the rounding of C has no chance in it */
    if (err || c.worst > worst)
        print_error("%s summed in %s, k = %llu: %zu wrong, worst at %.2f of its bound\n",
                    gemm_dtypes[form->dtype].name, form->accumulate, (unsigned long long)k, c.wrong,
                    c.worst);
    assert_int_equal(err, 0);
    assert_true(c.worst <= worst);
    assert_int_equal(gpu_operands_check(&o, 2, false, &c), -EBADMSG); /* another set */
    assert_int_equal(c.wrong, c.entries);
    assert_int_equal(gpu_operands_check(&o, 1, true, &c), -EBADMSG); /* one entry */
    assert_int_equal(c.wrong, 1);
    assert_int_equal(c.row, 0);
    multiply(&o, 1, k - k / 8, false); /* an eighth of the products left out */
    assert_int_equal(gpu_operands_check(&o, 1, false, &c), -EBADMSG);
    assert_true(c.wrong > c.entries / 4);
    if (n == k) {
        multiply(&o, 1, k, true);
        assert_int_equal(gpu_operands_check(&o, 1, false, &c), -EBADMSG);
    }
    gpu_operands_close(&o);
    assert_int_equal(gpu.allocated, 0);
}

static void right_sums_pass_and_wrong_ones_do_not(void **state)
{
    (void)state;
    for (const struct gemm_form *f = gemm_gpu_forms; f->accumulate; f++) {
        check_form(f, 20, 24, 512);
        check_form(f, 12, 8, 4096);
        check_form(f, 40, 64, 64);
    }
}

static void only_rows_that_are_looked_at_are_fetched(void **state)
{
    const struct gemm_form *form = form_of(GEMM_F16, GEMM_SUMS_F16);
    const struct gpu_operands_config config = config_of(form, 100, 33, 16);
    struct gpu gpu = made_up();
    struct gpu_operands o;
    struct gemm_check c;

    (void)state;
    assert_int_equal(gpu_operands_open(&o, &gpu, (struct gpu_stream *)&gpu, &config, 2), 0);
    multiply(&o, 0, 16, false);
    assert_int_equal(gpu_operands_check(&o, 0, false, &c), 0);
    assert_int_equal(c.entries, 32 * 32);
    assert_int_equal(gpu.copies, 32);
    assert_int_equal(gpu.copied, 32 * 33 * 2);
    gpu_operands_close(&o);
}

/* bf16's inputs pass for tf32 in no more than chance's share; f32 sums of f16 data are no f16 sums'
 * business; 10 bits are no 14. */
static void lower_precision_fails(void **state)
{
    struct gemm_form rough = *form_of(GEMM_TF32, 0), narrow = *form_of(GEMM_E4M3, GEMM_SUMS_F32);
    const struct gpu_operands_config config = config_of(&rough, 32, 32, 256);
    struct gpu gpu = made_up();
    struct gpu_operands o;
    struct gemm_check c;
    double terms[256];

    (void)state;
    assert_int_equal(gpu_operands_open(&o, &gpu, (struct gpu_stream *)&gpu, &config, 1), 0);
    for (uint64_t i = 0; i < 32; i++)
        for (uint64_t j = 0; j < 32; j++) {
            for (uint64_t l = 0; l < 256; l++)
                terms[l] = rounded(operand(&o, true, 0, i * 256 + l), 7) *
                           rounded(operand(&o, false, 0, l * 32 + j), 7);
            store(rough.c, (char *)gpu_operands_c(&o, 0) + (i * 32 + j) * 4, exact_sum(terms, 256));
        }
    assert_int_equal(gpu_operands_check(&o, 0, false, &c), -EBADMSG);
    gpu_operands_close(&o);

    const struct gpu_operands_config fp8 = config_of(&narrow, 32, 32, 256);
    assert_int_equal(gpu_operands_open(&o, &gpu, (struct gpu_stream *)&gpu, &fp8, 1), 0);
    for (uint64_t i = 0; i < 32; i++)
        for (uint64_t j = 0; j < 32; j++) {
            for (uint64_t l = 0; l < 256; l++)
                terms[l] = operand(&o, true, 0, i * 256 + l) * operand(&o, false, 0, j * 256 + l);
            store(narrow.c, (char *)gpu_operands_c(&o, 0) + (i * 32 + j) * 2,
                  unit_sum(terms, 256, 4, 6));
        }
    assert_int_equal(gpu_operands_check(&o, 0, false, &c), -EBADMSG);
    gpu_operands_close(&o);
}

static void zeros_are_exact(void **state)
{
    struct gpu gpu = made_up();
    struct gpu_operands o;
    struct gemm_check c;

    (void)state;
    for (const struct gemm_form *f = gemm_gpu_forms; f->accumulate; f++) {
        struct gpu_operands_config config = config_of(f, 8, 8, 32);
        config.data = GPU_ZEROS;
        assert_int_equal(gpu_operands_open(&o, &gpu, (struct gpu_stream *)&gpu, &config, 1), 0);
        assert_int_equal(gpu_operands_check(&o, 0, false, &c), -EBADMSG); /* poisoned, not zero */
        multiply(&o, 0, 32, false);
        assert_int_equal(gpu_operands_check(&o, 0, false, &c), 0);
        assert_true(c.worst == 0);
        ((unsigned char *)o.c)[9 * gemm_element_bytes(f->c)] = 1; /* the smallest number */
        assert_int_equal(gpu_operands_check(&o, 0, false, &c), -EBADMSG);
        assert_int_equal(c.wrong, 1);
        gpu_operands_close(&o);
    }
}

/* Sets differ, so that a product on the wrong one is found; and so do A and B. */
static void every_set_has_its_own_values(void **state)
{
    const struct gpu_operands_config config = config_of(form_of(GEMM_F32, 0), 16, 16, 16);
    struct gpu gpu = made_up();
    struct gpu_operands o;

    (void)state;
    assert_int_equal(gpu_operands_open(&o, &gpu, (struct gpu_stream *)&gpu, &config, 2), 0);
    assert_true(memcmp(gpu_operands_a(&o, 0), gpu_operands_a(&o, 1), 1024) != 0);
    assert_true(memcmp(gpu_operands_b(&o, 0), gpu_operands_b(&o, 1), 1024) != 0);
    assert_true(memcmp(gpu_operands_a(&o, 0), gpu_operands_b(&o, 0), 1024) != 0);
    gpu_operands_close(&o);
}

static void forms_say_what_they_are(void **state)
{
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_outgrow_the_cache),
        cmocka_unit_test(right_sums_pass_and_wrong_ones_do_not),
        cmocka_unit_test(only_rows_that_are_looked_at_are_fetched),
        cmocka_unit_test(lower_precision_fails),
        cmocka_unit_test(zeros_are_exact),
        cmocka_unit_test(every_set_has_its_own_values),
        cmocka_unit_test(forms_say_what_they_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
