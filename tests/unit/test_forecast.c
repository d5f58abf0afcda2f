/* SPDX-License-Identifier: Apache-2.0 */
/* From parts and a job to an interval: what makes it as wide as it is, and what has none. */
#include "harness/forecast/forecast.h"
#include "tests/unit/unit.h"

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

static struct part_product products[] = {
    {64, 64, 64, 1e9, NAN, NAN}, {64, 64, 128, 1e9, NAN, NAN}, {64, 128, 64, 1e9, NAN, NAN}};

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
TEST_WITH(all_wait_for_the_slowest, fresh, NULL)
{
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
TEST_WITH(compute_that_is_given_may_not_divide_evenly, fresh, NULL)
{
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
TEST_WITH(a_node_has_laws_of_its_own, fresh, NULL)
{
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
TEST_WITH(the_host_may_take_longer_than_its_mean, fresh, NULL)
{
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
TEST_WITH(memory_bounds_a_job, fresh, NULL)
{
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
TEST_WITH(ranks_of_a_node_share_its_cores, fresh, NULL)
{
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

/* No law is of a group inside a node, nor of two that share its link; and micro-batches of a pipeline that scatter and gather are
 * not modelled. */
TEST_WITH(groups_and_micro_batches_are_refused, fresh, NULL)
{
    static const struct {
        double per_node, tp, pp, ep, micro, zero;
        enum law_refusal refused;
    } cases[] = {{4, 2, 1, 1, 1, 0, LAW_GROUPS},  {4, 1, 2, 1, 1, 0, LAW_GROUPS},
                 {4, 1, 1, 2, 1, 0, LAW_GROUPS},  {4, 1, 1, 1, 1, 0, LAW_GIVEN},
                 {32, 2, 1, 1, 1, 0, LAW_GROUPS}, {1, 2, 1, 1, 1, 0, LAW_GIVEN},
                 {1, 1, 1, 1, 4, 3, LAW_GIVEN},   {1, 1, 2, 1, 4, 2, LAW_MICRO},
                 {1, 1, 2, 1, 4, 3, LAW_MICRO},   {1, 3, 1, 1, 1, 0, LAW_DIVIDED},
                 {1, 1, 3, 1, 1, 0, LAW_DIVIDED}, {1, 1, 1, 3, 1, 0, LAW_DIVIDED}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        fresh(state);
        f.per_node = cases[i].per_node;
        f.job.tp = cases[i].tp;
        f.job.pp = cases[i].pp;
        f.job.ep = cases[i].ep;
        f.job.micro = cases[i].micro;
        f.job.zero = cases[i].zero;
        struct forecast_point p = at(16);
        if (p.refused != cases[i].refused || isnan(p.low_s) != (p.refused != LAW_GIVEN) ||
            isnan(p.time.step_s) != (p.refused != LAW_GIVEN))
            fail_msg("case %zu is %d", i, (int)p.refused);
    }
}

/* Small vectors go by a tree of 4 us a message, large ones by a ring of 20 us: what stays on a faster network are the ring's
 * messages. Where the large sizes do not show them there is no forecast. */
TEST_WITH(messages_are_of_the_same_algorithm, fresh, NULL)
{
    static const double sizes[] = {8, 64, 512, 4e6, 16e6, 64e6};
    struct fit_point points[18];
    struct part_law *law = &parts.laws[JOB_SUM];
    const double least = 14 * (20 + 16e6 / 8 / 1e5) * 1e-6;

    *law = (struct part_law){.law = {.terms = &ring, .points = points}, .nodes = 8, .per_node = 1};
    for (double n = 2; n <= 8; n *= 2)
        for (size_t i = 0; i < 6; i++)
            points[law->law.n++] = (struct fit_point){
                n, sizes[i], 2 * (n - 1) * ((i < 3 ? 4 : 20) + sizes[i] / n / 1000)};
    layer.parameters = 4000000;
    f.job.overlap = false;
    f.swap.times[SWAP_NETWORK] = 100;
    assert_float_equal(at(8).time.step_s, 1 + least, 1e-6);
    assert_true(at(8).ends_s[SOURCE_NETWORK][1] > 1 + 1.9 * least); /* its core is another */
    for (size_t i = 0; i < 18; i++) /* noise of 2 %, and messages of less than nothing by it */
        points[i].time_us = 2 * (points[i].ranks - 1) * points[i].bytes / points[i].ranks / 1000 *
                            (1 + 0.02 * (i % 2 ? 1 : -1) + 0.01 * (i % 3));
    assert_int_equal(at(8).refused, LAW_MESSAGES);
    f.swap.times[SWAP_NETWORK] = 0;
    assert_int_equal(at(8).refused, LAW_GIVEN);
}

/* Scatters were measured with one rank on each of 8 nodes, gathering with four: one of them is of ranks that share a link. */
TEST_WITH(each_operation_is_of_the_same_ranks_of_a_node, fresh, NULL)
{
    struct fit_point scatters[16], gathers[16];
    add_ring(&parts.laws[JOB_SCATTER], scatters, 20, 1000, 8);
    add_ring(&parts.laws[JOB_GATHER], gathers, 20, 1000, 8);
    parts.laws[JOB_SCATTER].per_node = 1;
    parts.laws[JOB_GATHER].per_node = 4;
    layer.parameters = 1000000;
    f.job.zero = 1;
    f.job.overlap = false;
    struct forecast_point p = at(8);
    assert_int_equal(p.refused, LAW_PLACED);
    assert_int_equal(p.refused_of, JOB_GATHER);
    parts.laws[JOB_GATHER].per_node = 1;
    assert_int_equal(at(8).refused, LAW_GIVEN);
    assert_float_equal(at(8).time.step_s, 1 + 2 * 14 * (20 + 4e6 / 8 / 1000) * 1e-6, 1e-6);
}

static struct part_product fast[] = {{64, 64, 64, 50e12, 100e12, NAN},
                                     {64, 64, 128, 50e12, 100e12, NAN},
                                     {64, 128, 64, 50e12, NAN, NAN}};

/* A GPU with a limit of 100 TFLOP/s and 1.6 TB/s, a link of 100 Gb/s. */
static void swap_scene(const char *dtype)
{
    parts.dtype = dtype;
    parts.gpu = true;
    parts.products = fast;
    parts.n_products = 3;
    parts.stream = 1e12;
    parts.stream_limit = 1.6e12;
    parts.jitter = NAN;
    parts.laws[JOB_SUM].link_gbits = 100;
    parts_product_spread(&parts);
}

/* MI300X 1307.4 TFLOP/s in bf16, 163.4 in f32 by both units, 5325 GB/s and 192 GB, a die of MI250X 64 GB; NDR four lanes of 100
 * Gb/s; 800 Gb/s Ethernet. The memory of the products counts, in any order; a bare rate tells none. */
TEST_WITH(a_swap_has_the_rates_of_datasheets, fresh, NULL)
{
    static const struct {
        const char *dtype, *text;
        double times[SWAPS], bytes; /* NaN: not known */
    } cases[] = {{"bf16", "products=gpu.mi300x", {0, 13.074, 0}, 192e9},
                 {"f32", "products=gpu.mi300x", {0, 1.634, 0}, 192e9},
                 {"f32", "products=gpu.mi250x-die", {0, .4785, 0}, 64e9},
                 {"bf16", "memory=gpu.mi300x", {0, 0, 5325 / 1600.}, 192e9},
                 {"bf16", "network=infiniband.ndr", {4, 0, 0}, 0},
                 {"bf16", "network=ethernet.800gbe", {8, 0, 0}, 0},
                 {"bf16", "network=25 Gb/s", {.25, 0, 0}, 0},
                 {"bf16", "network=10:400Gb/s,memory=3200GB/s,products=150:300", {40, 2, 2}, NAN},
                 {"bf16", "memory=gpu.mi300x,products=150:300", {0, 2, 5325 / 1600.}, 192e9},
                 {"bf16", "memory=gpu.mi250x-die,products=gpu.mi300x", {0, 13.074, 1.024}, 192e9}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct pool pool = {0};
        struct forecast_swap swap = {0};
        char error[400] = "";

        fresh(state);
        swap_scene(cases[i].dtype);
        if (forecast_swap_read(&pool, &parts, cases[i].text, &swap, error, sizeof(error)))
            fail_msg("%s: %s", cases[i].text, error);
        for (int part = 0; part < SWAPS; part++)
            if (!(fabs(swap.times[part] - cases[i].times[part]) <= 1e-9))
                fail_msg("%s: %.9g of part %d", cases[i].text, swap.times[part], part);
        if (isnan(cases[i].bytes) ? !isnan(swap.memory_bytes) : swap.memory_bytes != cases[i].bytes)
            fail_msg("%s: %g bytes", cases[i].text, swap.memory_bytes);
        pool_release(&pool);
    }
}

/* One layer, 2 x 64^3 operations forward and twice that backward, at 50 TFLOP/s; updates of 28 bytes a parameter. At an end 15 %,
 * as a logarithm, less or more of the new limit. */
TEST_WITH(a_step_becomes_as_much_faster, fresh, NULL)
{
    const double product_s = 6 * 64. * 64 * 64 / 50e12 / 4, update_s = 28e6 / 1e12;
    swap_scene("bf16");
    layer.parameters = 1000000;
    f.job.element_bytes = 2;
    f.job.update_bytes = 28;
    f.job.compute_s = NAN;
    f.swap.times[SWAP_PRODUCTS] = 4;
    assert_float_equal(at(1).time.step_s, product_s + update_s, 1e-15);
    f.swap.times[SWAP_MEMORY] = 2;
    struct forecast_point p = at(1);
    assert_float_equal(p.time.step_s, product_s + update_s / 2, 1e-15);
    assert_float_equal(p.ends_s[SOURCE_SWAP_MEMORY][1], product_s + update_s / 2 * exp(0.15),
                       1e-12);
    assert_float_equal(p.ends_s[SOURCE_SWAP_PRODUCTS][0], product_s * exp(-0.15) + update_s / 2,
                       1e-12);
}
