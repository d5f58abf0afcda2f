/* SPDX-License-Identifier: Apache-2.0 */
/* The time of a training step: the example of docs/forecast.md, worked by hand, and what each way of working adds. All times in
 * ms. */
#include "harness/forecast/step.h"
#include "tests/unit/unit.h"

#define NEAR(value, expected) assert_float_equal(1e3 * (value), expected, 1e-9)

/* Three layers of 2.5 million parameters; forward 2 ms, backward 4. */
static struct model_layer layers[3];
static const struct model toy = {.name = "toy", .layers = layers, .n_layers = 3};

/* 10 MB take 5 ms; the parts of a sum half of it. A message of 4 MB takes 1 ms. */
static double group(const void *arg, enum bench_part_of what, bool inner, double ranks,
                    double bytes)
{
    (void)arg;
    (void)inner;
    if (what == JOB_MESSAGE)
        return bytes / 4e6 * 1e-3;
    assert_true(ranks == 8 || ranks == 4 || ranks == 2);
    return bytes / 10e6 * (what == JOB_SUM ? 5e-3 : 2.5e-3);
}

static const struct step_costs costs = {.group = group, .call_s = NAN, .together = 1, .network = 1};

static struct step_job j;

static int set_up(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        layers[i] =
            (struct model_layer){.block = i, .parameters = 2500000, .count = 1, .backward = 2};
        layers[i].m = layers[i].n = layers[i].k = (struct model_size){1, 0};
        layers[i].output = (struct model_size){1000000, 0};
    }
    j = (struct step_job){
        .model = &toy, .dp = 8, .bucket_bytes = 10e6, .overlap = true, .compute_s = 18e-3};
    j.batch = j.tp = j.pp = j.ep = j.micro = j.prefetch = 1;
    j.element_bytes = 4;
    return 0;
}

static struct step_time run(const struct step_costs *c)
{
    struct step_time t;

    assert_int_equal(step_time(&j, c, &t), 0);
    return t;
}

TEST_WITH(the_example_by_hand, set_up, NULL)
{
    struct step_costs slowed = costs;
    struct step_time t = run(&costs);
    /* backward ends at 10, 14 and 18; sums 10 to 15, 15 to 20, 20 to 25 */
    NEAR(t.step_s, 25);
    NEAR(t.compute_s, 18);
    NEAR(t.sums_s, 15);
    NEAR(t.exposed_s, 7);
    assert_float_equal(t.sum_bytes, 30e6, 1);
    slowed.together = slowed.network = 0.8;
    NEAR(run(&slowed).step_s, 27);
    j.overlap = false;
    NEAR(run(&slowed).step_s, 33);
    set_up(NULL);
    j.bucket_bytes = 0; /* one sum, behind the backward pass */
    NEAR(run(&costs).step_s, 33);
    j.bucket_bytes = 15e6; /* two layers, then one */
    NEAR(run(&costs).step_s, 29);
    j.dp = 1;
    NEAR(run(&costs).step_s, 18);
}

/* ZeRO, all times in ms: two gathers and a scatter, each of half a sum, in place of a sum.
 * Buckets of 15 MB hold two layers: groups are layers 0 and 1, and 2, gradients of layers 2 and 1, and of 0. */
TEST_WITH(sharing_parameters, set_up, NULL)
{
    static const struct {
        unsigned zero;
        double bucket, prefetch;
        bool overlap;
        double step;
    } cases[] =
        {
            {1, 10e6, 1, true, 28}, /* scatters end at 20.5, then three are gathered */
            {2, 10e6, 1, true, 28},
            {3, 10e6, 1, true, 25.5},
            {3, 10e6, 1, false, 18 + 22.5},
            {3, 15e6, 1, true, 28},   /* gathers end at 5, 7.5, 11.5, 16.5; scatters at 25.5, 28 */
            {3, 15e6, 2, true, 26.5}, /* 5, 7.5, 10, 15; 24, 26.5 */
            {3, 15e6, 0, true, 36.5}, /* 5, 11.5, 16, 25; 34, 36.5 */
            {3, 15e6, 64, false, 18 + 22.5},
            {3, 0, 64, true, 34.5}}; /* one group, gathered for each pass */
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {

        j.zero = cases[i].zero;
        j.bucket_bytes = cases[i].bucket;
        j.prefetch = cases[i].prefetch;
        j.overlap = cases[i].overlap;
        struct step_time t = run(&costs);
        NEAR(t.step_s, cases[i].step);
        NEAR(t.sums_s, j.zero < 3 ? 15 : 22.5);
    }
}

/* Scattered or gathered once, all gradients take 7.5 ms; 18 ms of compute. By hand, in thirds of each:
 * micro-batches of 2/3, 4/3 ms a layer forward and backward. */
TEST_WITH(sharing_parameters_of_micro_batches, set_up, NULL)
{
    j.micro = 3;
    j.overlap = false;
    j.zero = 2; /* three scatters and a gather */
    struct step_time t = run(&costs);
    NEAR(t.step_s, 18 + 4 * 7.5);
    NEAR(t.sums_s, 4 * 7.5);
    NEAR(t.compute_s, 18);
    j.zero = 3; /* two gathers and a scatter each */
    NEAR(run(&costs).step_s, 18 + 3 * 3 * 7.5);
    j.zero = 1; /* gradients of all are added up first */
    NEAR(run(&costs).step_s, 18 + 2 * 7.5);
    j.overlap = true;
    j.zero = 2;
    /* scatters of 2.5 ms follow one another from 10/3 on: nine, then three gathers */
    NEAR(run(&costs).step_s, 10. / 3 + 22.5 + 7.5);
    j.zero = 3;
    t = run(&costs);
    NEAR(t.sums_s, 9 * 7.5); /* more than compute: it ends behind the network, which never rests */
    assert_true(t.step_s >= 9 * 7.5e-3 && t.step_s <= 9 * 7.5e-3 + 4e-3);
    j.dp = 1;
    NEAR(run(&costs).step_s, 18);
}

TEST_WITH(pipelines, set_up, NULL)
{
    struct step_time t;
    j.pp = 3;
    j.micro = 4;
    j.dp = 2;
    j.bucket_bytes = 0;
    t = run(&costs);
    /* a stage's passes take 0.5 and 1 of each of 4 micro-batches; messages of 1 MB go meanwhile. The first
     * stage: F0 F1 F2 to 1.5, its gradients of 0 are there at 5, those of 1, 2 and 3 at 6.5, 8 and 10; one sum */
    NEAR(t.bubble_s, 2 * 1.5);
    NEAR(t.parallel_s, 2);
    NEAR(t.compute_s, 6);
    NEAR(t.exposed_s, 5);
    NEAR(t.step_s, 11 + 5);
    j.pp = 4; /* of three blocks */
    assert_int_equal(step_time(&j, &costs, &t), -EINVAL);
}

TEST_WITH(layers_over_ranks, set_up, NULL)
{
    layers[1].split = MODEL_ROW;
    layers[1].sum = (struct model_size){2500000, 0};
    layers[2].split = MODEL_COLUMN;
    layers[2].sum = (struct model_size){2500000, 0};
    j.tp = 2;
    j.dp = 1;
    struct step_time t = run(&costs);
    NEAR(t.parallel_s, 10);
    assert_float_equal(t.sum_bytes, 20e6, 1);
    set_up(NULL);
    layers[1].kind = MODEL_EXPERT;
    layers[1].m = (struct model_size){2500000, 0};
    j.ep = 4;
    t = run(&costs);
    NEAR(t.parallel_s, 4 * 2.5); /* there and back, in both passes */
    assert_float_equal(t.sum_bytes, 22.5e6, 1);
    set_up(NULL);
    layers[1].kind = MODEL_TABLE; /* a sparse gradient is summed by nobody */
    t = run(&costs);
    assert_float_equal(t.sum_bytes, 20e6, 1);
    NEAR(t.parallel_s,
         2); /* 4 MB of rows to the ranks of their samples, and their gradients back */
    j.dp = 1;
    NEAR(run(&costs).parallel_s, 0);
}

/* 1 us each. */
static double bytes_us(const void *arg, double bytes)
{
    (void)arg;
    return bytes * 1e-6;
}

/* ZeRO cuts what ranks have the same: all of them together keep each number of the model once, wherever its experts are. */
TEST_WITH(experts_are_divided_by_the_ranks_that_have_them, set_up, NULL)
{
    struct step_costs moving = costs;
    struct model_memory m;
    moving.stream = bytes_us;
    layers[0].parameters = 800;
    layers[1].parameters = 200;
    layers[2].parameters = 8000;
    layers[2].kind = MODEL_EXPERT;
    j.state_bytes = 8;
    j.update_bytes = 28;
    for (j.ep = 1; j.ep <= 8; j.ep *= 2) {
        for (j.zero = 0; j.zero < 4; j.zero++) {
            double whole = 1000 + 8000 / j.ep, share = 9000 / 8.;

            m = job_memory(&j, 0, 0, 3);
            assert_float_equal(m.update, 8 * (j.zero >= 1 ? share : whole), 1e-6);
            assert_float_equal(m.gradients, 4 * (j.zero >= 2 ? share : whole), 1e-6);
            assert_float_equal(m.parameters, 4 * (j.zero >= 3 ? share : whole), 1e-6);
            NEAR(run(&moving).update_s, 1e-3 * 28 * (j.zero ? share : whole));
        }
    }
}

struct seen {
    double flop, m, count; /* of all products, and of the last one that is more than one number */
};

/* 1 ps an operation. */
static double see_product(const void *arg, double m, double n, double k, double count)
{
    struct seen *s = (struct seen *)arg;
    double flop = 2 * m * n * k * count;

    s->flop += flop;
    if (n * k > 1) {
        s->m = m;
        s->count = count;
    }
    return flop * 1e-12;
}

static double no_bytes(const void *arg, double bytes)
{
    (void)arg, (void)bytes;
    return 0;
}

/* Of compute that is not given. */
static struct step_costs counting(struct seen *s)
{
    struct step_costs c = costs;

    *s = (struct seen){0};
    c.product = see_product;
    c.stream = no_bytes;
    c.arg = s;
    j.compute_s = NAN;
    return c;
}

TEST_WITH(products_of_all_layers_are_counted, set_up, NULL)
{
    struct seen s;
    struct step_costs c = counting(&s);
    for (int i = 0; i < 3; i++) {
        layers[i].m = layers[i].n = layers[i].k = (struct model_size){1000, 0};
        layers[i].count = i == 1 ? 3 : 1;
    }
    j.batch = 2;
    struct step_time t = run(&c);
    assert_float_equal(s.flop, 2e9 * 5 * 2, 1);       /* of a forward pass */
    NEAR(t.compute_s, 3 * 2e9 * 5 * 2 * 1e-12 * 1e3); /* backward is twice as long */
    c.call_s = 1; /* launches that are slower than the device: one forward, two backward */
    NEAR(run(&c).compute_s, 1e3 * 9);
}

/* Rows are shared by the experts of a rank, each of which has weights of its own. */
TEST_WITH(experts_have_own_products, set_up, NULL)
{
    static const double cases[][4] = {
        {3, 1, 6, 8}, {3, 4, 24, 2}, {.25, 1, 1, 4}}; /* batch, ep, m, count */
    struct seen s;
    struct step_costs c = counting(&s);
    struct model eight = toy;
    layers[1].kind = MODEL_EXPERT;
    layers[1].m = (struct model_size){16, 0};
    layers[1].n = layers[1].k = (struct model_size){8, 0};
    eight.experts = 8;
    j.model = &eight;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        j.batch = cases[i][0];
        j.ep = cases[i][1];
        run(&c);
        assert_true(s.m == cases[i][2] && s.count == cases[i][3]);
    }
}

/* 7 columns and 5 heads on 2 ranks: one of them has 4 and 3. */
TEST_WITH(the_rank_with_most_of_a_layer_counts, set_up, NULL)
{
    struct seen s;
    struct step_costs c = counting(&s);
    for (int i = 0; i < 3; i++)
        layers[i].m = layers[i].n = layers[i].k = (struct model_size){i == 1 ? 7 : 0, 0};
    layers[1].split = MODEL_COLUMN;
    j.tp = 2;
    run(&c);
    assert_float_equal(s.flop, 2 * 7 * 7 * 4, 1e-6);
    s.flop = 0;
    layers[1].count = 5;
    j.batch = 3;
    run(&c);
    assert_float_equal(s.flop, 2 * 7 * 7 * 7 * 3 * 3, 1e-6);
}

/* 2 samples of 4 bytes: a layer of 400 numbers, a pool to 100, a join to 400. The first and the last read as much as they write: 2
 * and 3 times 400. The pool reads 400 and writes 100; backward it reads the gradient of 100 and its input of 400, and writes 400. */
TEST_WITH(layers_without_products_move_their_input, set_up, NULL)
{
    struct seen s;
    struct step_costs c = counting(&s);
    c.stream = bytes_us;
    j.dp = 1;
    j.batch = 2;
    for (int i = 0; i < 3; i++) {
        layers[i].output = (struct model_size){i == 1 ? 100 : 400, 0};
        layers[i].m = (struct model_size){0, 0};
    }
    NEAR(run(&c).compute_s, 1e-3 * 8 * (2 * (2 + 3) * 400 + 500 + 900));
}

/* S. Rajbhandari and others, ZeRO, arXiv:1910.02054, figure 1: 7.5 billion parameters on 64 ranks, f16 and Adam. */
TEST_WITH(memory_of_the_zero_paper, set_up, NULL)
{
    static const double want[] = {120, 31.4, 16.6, 1.9};
    const struct model one = {.layers = layers, .n_layers = 1};
    layers[0].parameters = 7500000000u;
    j.model = &one;
    j.dp = 64;
    j.element_bytes = 2;
    j.state_bytes = 12;
    for (j.zero = 0; j.zero < 4; j.zero++) {
        struct model_memory m = job_memory(&j, 0, 0, 1);
        assert_float_equal((m.parameters + m.gradients + m.update) * 1e-9, want[j.zero], 0.05);
    }
}
