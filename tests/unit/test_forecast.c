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
static struct model_layer layer = {
    .m = {64, 0}, .n = {64, 0}, .k = {64, 0}, .count = 1, .backward = 2};
static const struct model alone = {.name = "alone", .layers = &layer, .n_layers = 1};

static struct forecast of(const struct parts *parts)
{
    return (struct forecast){.parts = parts,
                             .per_node = 1,
                             .job = {.model = &alone,
                                     .batch = 1,
                                     .tp = 1,
                                     .pp = 1,
                                     .ep = 1,
                                     .micro = 1,
                                     .element_bytes = 4,
                                     .overlap = true,
                                     .compute_s = 1}};
}

static struct parts parts_of(double jitter)
{
    return (struct parts){.jitter = jitter, .stream = NAN, .call_s = NAN, .hidden = NAN};
}

static struct forecast_point at(const struct forecast *f, double ranks)
{
    struct forecast_point p;

    assert_int_equal(forecast_point(f, ranks, &p), 0);
    return p;
}

/* Of 16 normal deviates the largest lies 1.77 deviations above their mean, of 256 2.77 (tables of
 * normal scores): the interval reaches at least there. */
static void all_wait_for_the_slowest(void **state)
{
    struct parts parts = parts_of(0.05);
    struct forecast f = of(&parts);
    struct forecast_point few = at(&f, 16), many = at(&f, 256);

    (void)state;
    assert_float_equal(few.time.step_s, 1, 1e-12);
    assert_true(few.high_s > exp(1.77 * 0.05));
    assert_true(few.ends_s[SOURCE_SLOWEST][1] > exp(1.77 * 0.05));
    assert_true(many.ends_s[SOURCE_SLOWEST][1] > exp(2.77 * 0.05));
    assert_true(few.ends_s[SOURCE_SLOWEST][1] < exp(3 * 0.05));
    assert_true(few.low_s == 1); /* no rank is made faster by others */
    assert_true(at(&f, 1).high_s == 1);
    /* of products the same as of passes that are given */
    f.job.compute_s = NAN;
    struct part_product products[] = {{64, 64, 64, 1e9, NAN, NAN, NAN, NAN},
                                      {64, 64, 128, 1e9, NAN, NAN, NAN, NAN},
                                      {64, 128, 64, 1e9, NAN, NAN, NAN, NAN}};
    parts.products = products;
    parts.n_products = 3;
    parts_product_spread(&parts);
    parts.jitter = 0.05;
    few = at(&f, 16);
    assert_true(few.ends_s[SOURCE_SLOWEST][1] / few.time.step_s > exp(1.77 * 0.05));
}

/* Samples that agree do not say that hosts do: 7 % for each doubling of the nodes. */
static void a_slow_host_is_allowed_for(void **state)
{
    struct parts parts = parts_of(0);
    struct forecast f = of(&parts);

    (void)state;
    assert_float_equal(log(at(&f, 16).ends_s[SOURCE_SLOW_HOST][1]), 4 * 0.07, 1e-9);
    assert_true(at(&f, 16).high_s > 1.22);
    f.per_node = 16; /* one node */
    assert_float_equal(at(&f, 16).ends_s[SOURCE_SLOW_HOST][1], 1, 1e-12);
}

/* Compute that is given was measured whole, on one host: its parts may take longer or shorter than their share. */
static void compute_that_is_given_may_not_divide_evenly(void **state)
{
    struct parts parts = parts_of(0);
    struct forecast f = of(&parts);

    (void)state;
    assert_float_equal(at(&f, 16).ends_s[SOURCE_DIVIDED][1], 1, 1e-12); /* all have all of it */
    assert_float_equal(at(&f, 16).ends_s[SOURCE_DIVIDED][0], 1, 1e-12);
    f.job.tp = 8;
    assert_float_equal(log(at(&f, 16).ends_s[SOURCE_DIVIDED][1]), 3 * 0.10 + 0.02, 1e-9);
    assert_float_equal(log(at(&f, 16).ends_s[SOURCE_DIVIDED][0]), -0.02, 1e-9);
    assert_true(at(&f, 16).high_s >= at(&f, 16).ends_s[SOURCE_DIVIDED][1]);
    f.job.tp = 1;
    f.job.ep = 4;
    assert_float_equal(log(at(&f, 16).ends_s[SOURCE_DIVIDED][1]), 0.02, 1e-9);
    assert_float_equal(log(at(&f, 16).ends_s[SOURCE_DIVIDED][0]), -2 * 0.10 - 0.02, 1e-9);
    f.compute_stated = true; /* a wait has its exact part */
    assert_float_equal(at(&f, 16).ends_s[SOURCE_DIVIDED][0], 1, 1e-12);
}

/* No law is of a group inside a node, nor of two groups that share its link. */
static void groups_inside_nodes_are_refused(void **state)
{
    struct parts parts = parts_of(0);
    struct forecast f = of(&parts);
    double *const ways[] = {&f.job.tp, &f.job.pp, &f.job.ep};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        f = of(&parts);
        f.per_node = 4;
        *ways[i] = 2;
        struct forecast_point p = at(&f, 16);
        assert_int_equal(p.refused, LAW_GROUPS);
        assert_true(isnan(p.low_s) && isnan(p.time.step_s));
    }
    f = of(&parts);
    f.job.tp = 2;
    assert_int_equal(at(&f, 16).refused, LAW_GIVEN);
    f = of(&parts);
    f.per_node = 4;
    assert_int_equal(at(&f, 16).refused, LAW_GIVEN);
}

/* Of 16 ranks, groups of 3 leave one idle, and 3 ranks with experts are no part of 16. */
static void ranks_that_groups_do_not_divide_are_refused(void **state)
{
    struct parts parts = parts_of(0);
    struct forecast f = of(&parts);
    double *const ways[] = {&f.job.tp, &f.job.pp, &f.job.ep};

    (void)state;
    for (size_t i = 0; i < 3; i += 2) { /* the model has one layer, and so one stage */
        f = of(&parts);
        *ways[i] = 3;
        struct forecast_point p = at(&f, 16);
        assert_int_equal(p.refused, LAW_DIVIDED);
        assert_true(isnan(p.low_s) && isnan(p.time.step_s) && isnan(p.samples_s));
        assert_int_equal(at(&f, 15).refused, LAW_GIVEN);
    }
    f = of(&parts);
    f.job.pp = 3;
    assert_int_equal(at(&f, 16).refused, LAW_DIVIDED);
    /* fewer data-parallel ranks than the experts are spread over */
    f = of(&parts);
    f.job.ep = 8;
    assert_int_equal(at(&f, 4).refused, LAW_DIVIDED);
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
    struct fit_point inside[16], between[16];
    struct parts parts = parts_of(0);
    struct forecast f = of(&parts);

    (void)state;
    add_ring(&parts.inside[JOB_SUM], inside, 2, 10000, 1);
    add_ring(&parts.laws[JOB_SUM], between, 20, 1000, 8);
    layer.split = MODEL_ROW;
    layer.sum = (struct model_size){4000000, 0};
    f.job.tp = 8;
    f.job.compute_s = 8; /* of the whole model on one rank: a second on each of 8 */
    f.per_node = parts.laws[JOB_SUM].per_node = 8;
    struct forecast_point node = at(&f, 8);
    assert_float_equal(node.time.step_s, 1 + 2 * 7 * (2 + 16e6 / 8 / 10000) * 1e-6, 1e-6);
    f.swap.times[SWAP_NETWORK] = 4; /* is no part of a node */
    assert_float_equal(at(&f, 8).time.step_s, node.time.step_s, 1e-12);
    f.swap.times[SWAP_NETWORK] = 0;
    /* Two nodes, each of them one group. A rank has 1 of 8 million gradients. Eight sums of 4 MB go between the nodes at once, in two
     * messages each, and share a link. */
    layer.parameters = 8000000;
    f.job.overlap = false;
    struct forecast_point nested = at(&f, 16);
    const double between_us = 2 * (20 + 8 * 2e6 / 1000);
    assert_float_equal(nested.time.step_s, node.time.step_s + between_us * 1e-6, 1e-6);
    assert_float_equal(nested.time.parallel_s, node.time.parallel_s, 1e-9);
    assert_true(nested.high_s >
                nested.time.step_s + 2 * 15 * (20 + 32e6 / 16 / 1000) * 1e-6 - between_us * 1e-6);
    f.job.tp = 4; /* two groups in a node */
    assert_int_equal(at(&f, 16).refused, LAW_GROUPS);
    f.job.tp = 8;
    layer.parameters = 0;
    parts.inside[JOB_SUM].law.n = 0;
    assert_int_equal(at(&f, 8).refused, LAW_NODE); /* a link is not a node's memory */
    parts.inside[JOB_SUM].law.n = 9;
    f.per_node = parts.laws[JOB_SUM].per_node = 1;
    assert_float_equal(at(&f, 8).time.step_s, 1 + 2 * 7 * (20 + 16e6 / 8 / 1000) * 1e-6, 1e-6);
    f.per_node = 16; /* half of a node: two groups in its memory */
    assert_int_equal(at(&f, 16).refused, LAW_GROUPS);
    /* nothing between nodes was measured */
    f = of(&parts);
    layer = (struct model_layer){
        .parameters = 1000000, .m = {64, 0}, .n = {64, 0}, .k = {64, 0}, .count = 1, .backward = 2};
    parts.laws[JOB_SUM] = parts.inside[JOB_SUM];
    f.per_node = 4;
    assert_int_equal(at(&f, 4).refused, LAW_GIVEN);
    assert_int_equal(at(&f, 8).refused, LAW_PLACED);
    assert_true(isnan(at(&f, 8).low_s));
    layer.parameters = 0;
}

/* Small vectors go by a tree of 4 us a message, large ones by a ring of 20 us: what stays on a faster
 * network are the ring's messages. Where the large sizes are too large to show them there is no
 * forecast. */
static void messages_are_of_the_same_algorithm(void **state)
{
    static const double sizes[] = {8, 64, 512, 4e6, 16e6, 64e6};
    struct fit_point points[18];
    struct parts parts = parts_of(0);
    struct forecast f = of(&parts);
    struct part_law *law = &parts.laws[JOB_SUM];

    (void)state;
    *law = (struct part_law){.law = {.terms = &ring, .points = points}, .nodes = 8, .per_node = 1};
    for (double n = 2; n <= 8; n *= 2)
        for (size_t i = 0; i < 6; i++)
            points[law->law.n++] = (struct fit_point){
                n, sizes[i], 2 * (n - 1) * ((i < 3 ? 4 : 20) + sizes[i] / n / 1000)};
    layer = (struct model_layer){
        .parameters = 4000000, .m = {64, 0}, .n = {64, 0}, .k = {64, 0}, .count = 1, .backward = 2};
    f.job.overlap = false;
    f.swap.times[SWAP_NETWORK] = 100;
    assert_float_equal(at(&f, 8).time.step_s, 1 + 14 * (20 + 16e6 / 8 / 1e5) * 1e-6, 1e-6);
    /* its core is another: at the measured ranks, too */
    assert_true(at(&f, 8).high_s > 1 + 1.9 * 14 * (20 + 16e6 / 8 / 1e5) * 1e-6);
    for (size_t i = 0; i < 18; i++) /* noise of 2 %, and messages of less than nothing by it */
        points[i].time_us = 2 * (points[i].ranks - 1) * points[i].bytes / points[i].ranks / 1000 *
                            (1 + 0.02 * (i % 2 ? 1 : -1) + 0.01 * (i % 3));
    assert_int_equal(at(&f, 8).refused, LAW_MESSAGES);
    f.swap.times[SWAP_NETWORK] = 0;
    assert_int_equal(at(&f, 8).refused, LAW_GIVEN);
    layer.parameters = 0;
}

/* Scatters were measured with one rank on each of 8 nodes, gathering with four: one of them is of
 * ranks that share a link. */
static void each_operation_is_of_the_same_ranks_of_a_node(void **state)
{
    struct fit_point scatters[16], gathers[16];
    struct parts parts = parts_of(0);
    struct forecast f = of(&parts);

    (void)state;
    add_ring(&parts.laws[JOB_SCATTER], scatters, 20, 1000, 8);
    add_ring(&parts.laws[JOB_GATHER], gathers, 20, 1000, 8);
    parts.laws[JOB_SCATTER].per_node = 1;
    parts.laws[JOB_GATHER].per_node = 4;
    layer.parameters = 1000000;
    f.job.zero = 1;
    struct forecast_point p = at(&f, 8);
    assert_int_equal(p.refused, LAW_PLACED);
    assert_int_equal(p.refused_of, JOB_GATHER);
    parts.laws[JOB_GATHER].per_node = 1;
    p = at(&f, 8);
    assert_int_equal(p.refused, LAW_GIVEN);
    /* scattered, then gathered: each as long as a ring of both ways of 4 MB */
    f.job.overlap = false;
    assert_float_equal(at(&f, 8).time.step_s, 1 + 2 * 14 * (20 + 4e6 / 8 / 1000) * 1e-6, 1e-6);
    layer.parameters = 0;
}

/* The figures that are shown are of the operation that was asked, and of none where none was. */
static void the_law_that_is_shown_is_named(void **state)
{
    struct fit_point sums[16], messages[16];
    struct parts parts = parts_of(0);
    struct forecast f = of(&parts);

    (void)state;
    add_ring(&parts.laws[JOB_SUM], sums, 20, 1000, 8);
    add_ring(&parts.laws[JOB_EXCHANGE], messages, 20, 1000, 8);
    parts.laws[JOB_SUM].per_node = parts.laws[JOB_EXCHANGE].per_node = 1;
    layer.parameters = 1000000;
    assert_int_equal(at(&f, 1).law_of, JOB_NONE);
    assert_int_equal(at(&f, 16).law_of, JOB_SUM);
    layer.kind = MODEL_TABLE;
    layer.output = (struct model_size){1000000, 0};
    assert_int_equal(at(&f, 16).law_of, JOB_EXCHANGE);
    layer.kind = MODEL_DENSE;
    layer.output = (struct model_size){0, 0};
    layer.parameters = 0;
}

/* The mean of what steps took beside compute may be less than nothing by noise; its high end is not. */
static void the_host_may_take_longer_than_its_mean(void **state)
{
    struct parts parts = parts_of(0);
    struct forecast f = of(&parts);

    (void)state;
    parts.host = (struct part_host){-.01, -.06, .04, false};
    struct forecast_point p = at(&f, 1);
    assert_float_equal(p.time.step_s, 1, 1e-6);
    assert_float_equal(p.high_s, 1.04, 1e-6);
    assert_float_equal(p.low_s, 1, 1e-6);
    parts.host = (struct part_host){.02, -.02, .06, false};
    p = at(&f, 1);
    assert_float_equal(p.time.step_s, 1.02, 1e-6);
    assert_float_equal(p.low_s, 1, 1e-6);
    assert_float_equal(p.high_s, 1.06, 1e-6);
}

/* Another device has not the memory of the measured one. */
static void memory_of_another_device_may_not_be_known(void **state)
{
    struct parts parts = parts_of(0);
    struct forecast f = of(&parts);

    (void)state;
    layer.parameters = 300000000; /* 2.4 GB with gradients */
    parts.gpu = true;
    parts.memory_bytes = 1e9;
    assert_int_equal(at(&f, 1).refused, LAW_MEMORY);
    f.swap = (struct forecast_swap){.times = {0, 2, 0}, .memory_bytes = NAN};
    assert_true(isnan(forecast_memory(&f)));
    assert_int_equal(at(&f, 1).refused, LAW_GIVEN);
    f.swap.memory_bytes = 2e9;
    assert_int_equal(at(&f, 1).refused, LAW_MEMORY);
    layer.parameters = 0;
}

/* ZeRO 2 scatters in each micro-batch, and ZeRO 3 gathers twice as well: beside a pipeline's slots
 * that is not modelled. */
static void sharded_micro_batches_of_a_pipeline_are_refused(void **state)
{
    struct parts parts = parts_of(0);
    struct forecast f = of(&parts);

    (void)state;
    f.job.micro = 4;
    for (f.job.zero = 0; f.job.zero <= 3; f.job.zero++)
        assert_int_equal(at(&f, 8).refused, LAW_GIVEN);
    f.job.pp = 2;
    f.job.zero = 2;
    assert_int_equal(at(&f, 8).refused, LAW_MICRO);
    f.job.zero = 3;
    assert_int_equal(at(&f, 8).refused, LAW_MICRO);
}

/* Four ranks have a quarter of the cores each; of GPUs each has its own. */
static void ranks_of_a_node_share_its_cores(void **state)
{
    struct part_product products[] = {{64, 64, 64, 1e9, NAN, NAN, NAN, NAN},
                                      {64, 64, 128, 1e9, NAN, NAN, NAN, NAN},
                                      {64, 128, 64, 1e9, NAN, NAN, NAN, NAN}};
    struct parts parts = parts_of(0.01);
    struct forecast f = of(&parts);

    (void)state;
    parts.products = products;
    parts.n_products = 3;
    parts_product_spread(&parts);
    f.job.compute_s = NAN;
    assert_float_equal(at(&f, 4).time.step_s, 3 * 2 * 64. * 64 * 64 * 1e-9, 1e-12);
    f.per_node = 4;
    assert_float_equal(at(&f, 4).time.step_s, 4 * 3 * 2 * 64. * 64 * 64 * 1e-9, 1e-12);
    parts.gpu = true;
    assert_float_equal(at(&f, 4).time.step_s, 3 * 2 * 64. * 64 * 64 * 1e-9, 1e-12);
}

/* 8 GB of a node, or of each of its GPUs: 300 million parameters and gradients are 2.4 GB. */
static void ranks_of_a_node_share_its_memory(void **state)
{
    struct parts parts = parts_of(0);
    struct forecast f = of(&parts);

    (void)state;
    layer.parameters = 300000000;
    parts.memory_bytes = 8e9;
    assert_int_equal(at(&f, 1).refused, LAW_GIVEN);
    f.per_node = 4;
    assert_float_equal(forecast_memory(&f), 2e9, 1);
    assert_int_equal(at(&f, 1).refused, LAW_MEMORY);
    parts.gpu = true;
    assert_int_equal(at(&f, 1).refused, LAW_GIVEN);
    parts.gpu = false;
    f.memory_bytes = 8e9; /* as was said, of a rank */
    assert_int_equal(at(&f, 1).refused, LAW_GIVEN);
    layer.parameters = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_wait_for_the_slowest),
        cmocka_unit_test(a_slow_host_is_allowed_for),
        cmocka_unit_test(compute_that_is_given_may_not_divide_evenly),
        cmocka_unit_test(sharded_micro_batches_of_a_pipeline_are_refused),
        cmocka_unit_test(ranks_of_a_node_share_its_cores),
        cmocka_unit_test(ranks_of_a_node_share_its_memory),
        cmocka_unit_test(groups_inside_nodes_are_refused),
        cmocka_unit_test(ranks_that_groups_do_not_divide_are_refused),
        cmocka_unit_test(a_node_has_laws_of_its_own),
        cmocka_unit_test(each_operation_is_of_the_same_ranks_of_a_node),
        cmocka_unit_test(the_law_that_is_shown_is_named),
        cmocka_unit_test(the_host_may_take_longer_than_its_mean),
        cmocka_unit_test(memory_of_another_device_may_not_be_known),
        cmocka_unit_test(messages_are_of_the_same_algorithm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
