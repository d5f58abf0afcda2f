/* SPDX-License-Identifier: Apache-2.0 */
/* From parts and a job to an interval: what makes it as wide as it is, and what has none. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/forecast/forecast.h"

/* One layer with nothing to sum, so that compute is all that a step waits for. */
static struct model_layer layer;
static const struct model alone = {.name = "alone", .layers = &layer, .n_layers = 1};

static struct parts parts;
static struct forecast f;

static struct forecast_point at(double ranks)
{
    struct forecast_point p;

    assert_int_equal(forecast_point(&f, ranks, &p), 0);
    return p;
}

static struct part_product products[] = {{64, 64, 64, 1e9, NAN, NAN, NAN, NAN},
                                         {64, 64, 128, 1e9, NAN, NAN, NAN, NAN},
                                         {64, 128, 64, 1e9, NAN, NAN, NAN, NAN}};

static int fresh(void **state)
{
    (void)state;
    layer =
        (struct model_layer){.m = {64, 0}, .n = {64, 0}, .k = {64, 0}, .count = 1, .backward = 2};
    parts = (struct parts){.stream = NAN, .call_s = NAN, .hidden = NAN};
    f = (struct forecast){.parts = &parts, .per_node = 1, .job = {.model = &alone}};
    f.job.batch = f.job.tp = f.job.pp = f.job.ep = f.job.micro = f.job.compute_s = 1;
    f.job.element_bytes = 4;
    f.job.overlap = true;
    return 0;
}

/* Of 16 normal deviates the largest lies 1.77 deviations above their mean, of 256 2.77 (tables of normal scores). */
static void all_wait_for_the_slowest(void **state)
{
    (void)state;
    parts.jitter = 0.05;
    struct forecast_point few = at(16), many = at(256);

    assert_float_equal(few.time.step_s, 1, 1e-12);
    assert_true(few.ends_s[SOURCE_SLOWEST][1] > exp(1.77 * 0.05));
    assert_true(many.ends_s[SOURCE_SLOWEST][1] > exp(2.77 * 0.05));
    assert_true(few.ends_s[SOURCE_SLOWEST][1] < exp(3 * 0.05));
    assert_true(few.low_s == 1); /* no rank is made faster by others */
    assert_true(at(1).high_s == 1);
    parts.jitter =
        0; /* samples that agree do not say that hosts do: 7 % for each doubling of the nodes */
    assert_float_equal(log(at(16).ends_s[SOURCE_SLOW_HOST][1]), 4 * 0.07, 1e-9);
    f.per_node = 16; /* one node */
    assert_float_equal(at(16).ends_s[SOURCE_SLOW_HOST][1], 1, 1e-12);
}

/* Compute that is given was measured whole, on one host: its parts may take longer or shorter than their share. */
static void compute_that_is_given_may_not_divide_evenly(void **state)
{
    (void)state;
    assert_float_equal(at(16).ends_s[SOURCE_DIVIDED][1], 1, 1e-12); /* all have all of it */
    assert_float_equal(at(16).ends_s[SOURCE_DIVIDED][0], 1, 1e-12);
    f.job.tp = 8;
    assert_float_equal(log(at(16).ends_s[SOURCE_DIVIDED][1]), 3 * 0.10 + 0.02, 1e-9);
    assert_float_equal(log(at(16).ends_s[SOURCE_DIVIDED][0]), -0.02, 1e-9);
    assert_true(at(16).high_s >= at(16).ends_s[SOURCE_DIVIDED][1]);
    f.job.tp = 1;
    f.job.ep = 4;
    assert_float_equal(log(at(16).ends_s[SOURCE_DIVIDED][1]), 0.02, 1e-9);
    assert_float_equal(log(at(16).ends_s[SOURCE_DIVIDED][0]), -2 * 0.10 - 0.02, 1e-9);
    f.compute_stated = true; /* a wait has its exact part */
    assert_float_equal(at(16).ends_s[SOURCE_DIVIDED][0], 1, 1e-12);
}

static const struct bench_terms ring = {
    .where = "", .messages = "2 * (n - 1)", .bytes = "2 * (n - 1) / n", .bus = "2 * (n - 1) / n"};

/* Rings of 2, 4 and 8 ranks: us a message, bytes a us. */
static void add_ring(struct part_law *law, struct fit_point *points, double message, double rate,
                     double nodes)
{
    law->law.terms = &ring;
    law->law.points = points;
    law->nodes = nodes;
    for (double n = 2; n <= 8; n *= 2)
        for (double bytes = 1e6; bytes < 1e8; bytes *= 8)
            points[law->law.n++] =
                (struct fit_point){n, bytes, 2 * (n - 1) * (message + bytes / n / rate)};
}

/* Links between nodes are slower than memory inside: each answers for its own. */
static void a_node_has_laws_of_its_own(void **state)
{
    (void)state;
    struct fit_point inside[16], between[16];
    add_ring(&parts.inside[JOB_SUM], inside, 2, 10000, 1);
    add_ring(&parts.laws[JOB_SUM], between, 20, 1000, 8);
    layer.split = MODEL_ROW;
    layer.sum = (struct model_size){4000000, 0};
    f.job.tp = 8;
    f.job.compute_s = 8; /* of the whole model on one rank: a second on each of 8 */
    f.per_node = parts.laws[JOB_SUM].per_node = 8;
    struct forecast_point node = at(8);
    assert_float_equal(node.time.step_s, 1 + 2 * 7 * (2 + 16e6 / 8 / 10000) * 1e-6, 1e-6);
    /* Two nodes, each of them one group. A rank has 1 of 8 million gradients. Eight sums of 4 MB go between the nodes at once, in two
     * messages each, and share a link. */
    layer.parameters = 8000000;
    f.job.overlap = false;
    struct forecast_point nested = at(16);
    const double between_us = 2 * (20 + 8 * 2e6 / 1000);
    assert_float_equal(nested.time.step_s, node.time.step_s + between_us * 1e-6, 1e-6);
    assert_float_equal(nested.time.parallel_s, node.time.parallel_s, 1e-9);
    assert_true(nested.high_s >
                nested.time.step_s + 2 * 15 * (20 + 32e6 / 16 / 1000) * 1e-6 - between_us * 1e-6);
    layer.parameters = 0;
    parts.inside[JOB_SUM].law.n = 0;
    assert_int_equal(at(8).refused, LAW_NODE); /* a link is not a node's memory */
    parts.inside[JOB_SUM].law.n = 9;
    /* nothing between nodes was measured */
    struct part_law law = parts.inside[JOB_SUM];
    fresh(NULL);
    layer.parameters = 1000000;
    parts.laws[JOB_SUM] = parts.inside[JOB_SUM] = law;
    f.per_node = 4;
    assert_int_equal(at(4).refused, LAW_GIVEN);
    assert_int_equal(at(8).refused, LAW_PLACED);
    assert_true(isnan(at(8).low_s));
}

/* The mean of what steps took beside compute may be less than nothing by noise; its high end is not. */
static void the_host_may_take_longer_than_its_mean(void **state)
{
    (void)state;
    static const double cases[][5] = {{-.01, -.06, .04, 1, 1.04}, {.02, -.02, .06, 1.02, 1.06}};
    for (size_t i = 0; i < 2; i++) {
        const double *c = cases[i];
        parts.host = (struct part_host){c[0], c[1], c[2], false};
        struct forecast_point p = at(1);
        assert_float_equal(p.time.step_s, c[3], 1e-6);
        assert_float_equal(p.low_s, 1, 1e-6);
        assert_float_equal(p.high_s, c[4], 1e-6);
    }
}

/* 300 million parameters and gradients are 2.4 GB: of a node, of each of its GPUs, or of another device. */
static void memory_bounds_a_job(void **state)
{
    (void)state;
    layer.parameters = 300000000;
    parts.memory_bytes = 8e9;
    assert_int_equal(at(1).refused, LAW_GIVEN);
    f.per_node = 4;
    assert_float_equal(forecast_memory(&f), 2e9, 1);
    assert_int_equal(at(1).refused, LAW_MEMORY);
    parts.gpu = true;
    assert_int_equal(at(1).refused, LAW_GIVEN);
    parts.gpu = false;
    f.memory_bytes = 8e9; /* as was said, of a rank */
    assert_int_equal(at(1).refused, LAW_GIVEN);
    fresh(NULL);
    layer.parameters = 300000000;
    parts.gpu = true;
    parts.memory_bytes = 1e9;
    assert_int_equal(at(1).refused, LAW_MEMORY);
    f.swap = (struct forecast_swap){.times = {0, 2, 0}, .memory_bytes = NAN};
    assert_true(isnan(forecast_memory(&f)));
    assert_int_equal(at(1).refused, LAW_GIVEN);
    f.swap.memory_bytes = 2e9;
    assert_int_equal(at(1).refused, LAW_MEMORY);
}

/* Four ranks have a quarter of the cores each; of GPUs each has its own. */
static void ranks_of_a_node_share_its_cores(void **state)
{
    (void)state;
    parts.jitter = 0.01;
    parts.products = products;
    parts.n_products = 3;
    parts_product_spread(&parts);
    f.job.compute_s = NAN;
    assert_float_equal(at(4).time.step_s, 3 * 2 * 64. * 64 * 64 * 1e-9, 1e-12);
    f.per_node = 4;
    assert_float_equal(at(4).time.step_s, 4 * 3 * 2 * 64. * 64 * 64 * 1e-9, 1e-12);
    parts.gpu = true;
    assert_float_equal(at(4).time.step_s, 3 * 2 * 64. * 64 * 64 * 1e-9, 1e-12);
}

#define TEST(f) cmocka_unit_test_setup(f, fresh)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_wait_for_the_slowest),        TEST(compute_that_is_given_may_not_divide_evenly),
        TEST(ranks_of_a_node_share_its_cores), TEST(memory_bounds_a_job),
        TEST(a_node_has_laws_of_its_own),      TEST(the_host_may_take_longer_than_its_mean)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
