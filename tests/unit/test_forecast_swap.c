/* SPDX-License-Identifier: Apache-2.0 */
/* Parts that are swapped for others: from which rate to which, and what a step becomes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/forecast/forecast.h"

static struct part_product products[] = {{64, 64, 64, 50e12, 100e12, NAN, NAN, NAN},
                                         {64, 64, 128, 50e12, 100e12, NAN, NAN, NAN},
                                         {64, 128, 64, 50e12, NAN, NAN, NAN, NAN}};

static struct parts parts_of(const char *dtype)
{
    struct parts p = {.dtype = dtype,
                      .gpu = true,
                      .products = products,
                      .n_products = 3,
                      .stream = 1e12,
                      .stream_limit = 1.6e12,
                      .jitter = NAN,
                      .call_s = NAN,
                      .hidden = NAN};

    p.laws[JOB_SUM].link_gbits = 100;
    parts_product_spread(&p);
    return p;
}

struct scene {
    struct pool pool;
    struct forecast_swap swap;
    char error[400];
};

static int read_swap(struct scene *s, const char *dtype, const char *text)
{
    struct parts p = parts_of(dtype);

    memset(s, 0, sizeof(*s));
    return forecast_swap_read(&s->pool, &p, text, &s->swap, s->error, sizeof(s->error));
}

/* The figures are of the datasheets: MI300X 1307.4 TFLOP/s in bf16, 163.4 in f32 by both units, 5325
 * GB/s; a link NDR four lanes of 100 Gb/s; 800 Gb/s Ethernet. */
static void rates_come_from_files_and_runs(void **state)
{
    static const struct {
        const char *dtype, *text;
        double times[SWAPS];
    } cases[] = {
        {"bf16", "products=gpu.mi300x", {0, 13.074, 0}},
        {"f32", "products=gpu.mi300x", {0, 1.634, 0}},
        {"bf16", "memory=gpu.mi300x", {0, 0, 5325 / 1600.}},
        {"bf16", "network=infiniband.ndr", {4, 0, 0}},
        {"bf16", "network=ethernet.800gbe", {8, 0, 0}},
        {"bf16", "network=25 Gb/s", {.25, 0, 0}},
        {"bf16", "network=10:400Gb/s,memory=3200GB/s,products=150:300", {40, 2, 2}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct scene s;

        assert_int_equal(read_swap(&s, cases[i].dtype, cases[i].text), 0);
        for (int part = 0; part < SWAPS; part++)
            assert_float_equal(s.swap.times[part], cases[i].times[part], 1e-9);
        pool_release(&s.pool);
    }
}

/* MI300X has 192 GB, a die of MI250X 64 (datasheets). That of the products counts, in any order; a bare rate tells none. */
static void memory_is_that_of_the_new_device(void **state)
{
    static const struct {
        const char *text;
        double bytes; /* NaN: not known */
    } cases[] = {
        {"network=10:400", 0},
        {"products=150:300", NAN},
        {"memory=3200GB/s", NAN},
        {"products=gpu.mi300x", 192e9},
        {"products=150:300,memory=gpu.mi300x", 192e9},
        {"memory=gpu.mi300x,products=150:300", 192e9},
        {"memory=gpu.mi250x-die,products=gpu.mi300x", 192e9},
        {"products=gpu.mi300x,memory=gpu.mi250x-die", 192e9},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct scene s;

        assert_int_equal(read_swap(&s, "bf16", cases[i].text), 0);
        if (isnan(cases[i].bytes) ? !isnan(s.swap.memory_bytes)
                                  : s.swap.memory_bytes != cases[i].bytes)
            fail_msg("%s: %g bytes", cases[i].text, s.swap.memory_bytes);
        pool_release(&s.pool);
    }
}

static void a_file_of_ones_own(void **state)
{
    char path[] = "/tmp/swap-XXXXXX", text[64];
    int fd = mkstemp(path);
    FILE *out = fdopen(fd, "w");
    struct scene s;

    (void)state;
    assert_non_null(out);
    fputs("about: an offer\nkind: nic\nsources:\n  - {id: s, title: t, publisher: p, date: 2026}\n"
          "entries:\n  - {key: offered, source: s, figures: {port_gbits_per_s: 250}}\n",
          out);
    fclose(out);
    snprintf(text, sizeof(text), "network=%s:nic.offered", path);
    assert_int_equal(read_swap(&s, "bf16", text), 0);
    assert_float_equal(s.swap.times[SWAP_NETWORK], 2.5, 1e-12);
    pool_release(&s.pool);
    out = fopen(path, "w");
    assert_non_null(out);
    fputs("about: an offer\nkind: nic\nspeed: 3\n", out);
    fclose(out);
    assert_int_not_equal(read_swap(&s, "bf16", text), 0);
    assert_non_null(strstr(s.error, ":3: "));
    pool_release(&s.pool);
    unlink(path);
}

/* One layer, 2 x 64^3 operations forward and twice that backward, at 50 TFLOP/s. */
static void a_step_becomes_as_much_faster(void **state)
{
    struct model_layer layer = {
        .m = {64, 0}, .n = {64, 0}, .k = {64, 0}, .count = 1, .backward = 2, .parameters = 1000000};
    struct model model = {.name = "one", .layers = &layer, .n_layers = 1};
    struct parts parts = parts_of("bf16");
    struct forecast f = {.parts = &parts,
                         .per_node = 1,
                         .job = {.model = &model,
                                 .batch = 1,
                                 .tp = 1,
                                 .pp = 1,
                                 .ep = 1,
                                 .micro = 1,
                                 .element_bytes = 2,
                                 .update_bytes = 28,
                                 .overlap = true,
                                 .compute_s = NAN}};
    double product_s = 6 * 64. * 64 * 64 / 50e12, update_s = 28e6 / 1e12;
    struct forecast_point p;

    (void)state;
    f.swap.times[SWAP_PRODUCTS] = 4;
    assert_int_equal(forecast_point(&f, 1, &p), 0);
    assert_float_equal(p.time.step_s, product_s / 4 + update_s, 1e-15);
    f.swap.times[SWAP_MEMORY] = 2;
    assert_int_equal(forecast_point(&f, 1, &p), 0);
    assert_float_equal(p.time.step_s, product_s / 4 + update_s / 2, 1e-15);
    /* less of the new limit by 15 %, as a logarithm: slower at the high end */
    assert_float_equal(p.ends_s[SOURCE_SWAP_MEMORY][1], product_s / 4 + update_s / 2 * exp(0.15),
                       1e-12);
    assert_float_equal(p.ends_s[SOURCE_SWAP_PRODUCTS][0], product_s / 4 * exp(-0.15) + update_s / 2,
                       1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_come_from_files_and_runs),
        cmocka_unit_test(memory_is_that_of_the_new_device),
        cmocka_unit_test(a_file_of_ones_own),
        cmocka_unit_test(a_step_becomes_as_much_faster),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
