/* SPDX-License-Identifier: Apache-2.0 */
/* The time of a training step: the example of docs/forecast.md, worked by hand, and what each way of working adds. All times in
 * ms. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "harness/forecast/step.h"

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

static int set_up(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++)
        layers[i] = (struct model_layer){.block = i,
                                         .parameters = 2500000,
                                         .m = {1, 0},
                                         .n = {1, 0},
                                         .k = {1, 0},
                                         .count = 1,
                                         .backward = 2,
                                         .output = {1000000, 0}};
    return 0;
}

static struct step_job job(void)
{
    return (struct step_job){.model = &toy,
                             .batch = 1,
                             .dp = 8,
                             .tp = 1,
                             .pp = 1,
                             .ep = 1,
                             .micro = 1,
                             .bucket_bytes = 10e6,
                             .prefetch = 1,
                             .element_bytes = 4,
                             .overlap = true,
                             .compute_s = 18e-3};
}

static struct step_time run(const struct step_job *j, const struct step_costs *c)
{
    struct step_time t;

    assert_int_equal(step_time(j, c, &t), 0);
    return t;
}

static void the_example_by_hand(void **state)
{
    struct step_job j = job();
    struct step_costs slowed = costs;
    struct step_time t = run(&j, &costs);

    (void)state;
    /* backward ends at 10, 14 and 18; sums 10 to 15, 15 to 20, 20 to 25 */
    NEAR(t.step_s, 25);
    NEAR(t.compute_s, 18);
    NEAR(t.sums_s, 15);
    NEAR(t.exposed_s, 7);
    assert_float_equal(t.sum_bytes, 30e6, 1);
    slowed.together = slowed.network = 0.8;
    NEAR(run(&j, &slowed).step_s, 27);
    j.overlap = false;
    NEAR(run(&j, &slowed).step_s, 33);
    j = job();
    j.bucket_bytes = 0; /* one sum, behind the backward pass */
    NEAR(run(&j, &costs).step_s, 33);
    j.bucket_bytes = 15e6; /* two layers, then one */
    NEAR(run(&j, &costs).step_s, 29);
    j.dp = 1;
    NEAR(run(&j, &costs).step_s, 18);
}

static void sharing_parameters(void **state)
{
    struct step_job j = job();

    (void)state;
    j.zero = 1; /* scatters end at 20.5, then three are gathered */
    NEAR(run(&j, &costs).step_s, 28);
    j.zero = 2;
    NEAR(run(&j, &costs).step_s, 28);
    j.zero = 3;
    struct step_time t = run(&j, &costs);
    NEAR(t.step_s, 25.5);
    NEAR(t.sums_s,
         1.5 * 15); /* two gathers and a scatter in place of a sum, which is two of them */
    j.overlap = false;
    NEAR(run(&j, &costs).step_s, 18 + 1.5 * 15);
}

/* Buckets of two layers: groups are layers 0 and 1, and 2; gradients of layers 2 and 1, and of 0. A group is gathered in 5 and
 * 2.5 ms, and a bucket scattered. */
static void groups_begin_at_the_first_layer(void **state)
{
    struct step_job j = job();

    (void)state;
    j.zero = 3;
    j.bucket_bytes = 15e6;
    /* gathers end at 5, 7.5, 11.5 and 16.5; passes at 9, 11, 15.5, 20.5 and 24.5; scatters at 25.5 and 28 */
    NEAR(run(&j, &costs).step_s, 28);
    j.prefetch = 2; /* gathers 5, 7.5, 10, 15; passes 9, 11, 15, 19, 23; scatters 24, 26.5 */
    NEAR(run(&j, &costs).step_s, 26.5);
    j.prefetch = 0; /* gathers 5, 11.5, 16, 25; passes 9, 13.5, 20, 29, 33; scatters 34, 36.5 */
    NEAR(run(&j, &costs).step_s, 36.5);
    j.overlap = false; /* one thing after another, whatever is ahead */
    NEAR(run(&j, &costs).step_s, 18 + 22.5);
    j.prefetch = 64;
    NEAR(run(&j, &costs).step_s, 18 + 22.5);
    j.bucket_bytes = 0;
    NEAR(run(&j, &costs).step_s, 18 + 22.5);
    j.overlap =
        true; /* one group, gathered once for each pass: 7.5, then beside the forward pass to 15; backward 27, scatter 34.5 */
    NEAR(run(&j, &costs).step_s, 34.5);
}

/* Scattered or gathered once, all gradients take 7.5 ms; 18 ms of compute. By hand, in thirds of each:
 * micro-batches of 2/3, 4/3 ms a layer forward and backward. */
static void sharing_parameters_of_micro_batches(void **state)
{
    struct step_job j = job();

    (void)state;
    j.micro = 3;
    j.overlap = false;
    j.zero = 2; /* three scatters and a gather */
    struct step_time t = run(&j, &costs);
    NEAR(t.step_s, 18 + 4 * 7.5);
    NEAR(t.sums_s, 4 * 7.5);
    NEAR(t.compute_s, 18);
    j.zero = 3; /* two gathers and a scatter each */
    NEAR(run(&j, &costs).step_s, 18 + 3 * 3 * 7.5);
    j.zero = 1; /* gradients of all are added up first */
    NEAR(run(&j, &costs).step_s, 18 + 2 * 7.5);
    j.overlap = true;
    j.zero = 2;
    /* backward passes end at 10/3, 14/3, 6; 28/3, 32/3, 12; 46/3, 50/3, 18. Scatters of 2.5 ms follow one another from 10/3 on,
     * without a gap: nine end at 10/3 + 22.5. Then three gathers. */
    NEAR(run(&j, &costs).step_s, 10. / 3 + 22.5 + 7.5);
    j.zero = 3;
    t = run(&j, &costs);
    NEAR(t.sums_s, 9 * 7.5); /* more than compute: it ends behind the network, which never rests */
    assert_true(t.step_s >= 9 * 7.5e-3 && t.step_s <= 9 * 7.5e-3 + 4e-3);
    j.dp = 1;
    NEAR(run(&j, &costs).step_s, 18);
}

/* The time that is given is of the whole model on one rank: two ranks that share two of three layers
 * each compute 6 + 12 / 2 ms. */
static void given_compute_is_shared(void **state)
{
    struct step_job j = job();

    (void)state;
    j.dp = 1;
    j.tp = 2;
    layers[0].split = MODEL_COLUMN;
    layers[1].split = MODEL_ROW;
    NEAR(run(&j, &costs).compute_s, 12);
    layers[0].split = layers[1].split = MODEL_WHOLE;
    NEAR(run(&j, &costs).compute_s, 18);
}

static void pipelines(void **state)
{
    struct step_job j = job();
    struct step_time t;

    (void)state;
    j.pp = 3;
    j.micro = 4;
    j.dp = 2;
    j.bucket_bytes = 0;
    t = run(&j, &costs);
    /* a stage's passes take 0.5 and 1 of each of 4 micro-batches; messages of 1 MB go meanwhile. The first
     * stage: F0 F1 F2 to 1.5, its gradients of 0 are there at 5, those of 1, 2 and 3 at 6.5, 8 and 10; one sum */
    NEAR(t.bubble_s, 2 * 1.5);
    NEAR(t.parallel_s, 2);
    NEAR(t.compute_s, 6);
    NEAR(t.exposed_s, 5);
    NEAR(t.step_s, 11 + 5);
    struct step_costs waiting = costs;
    waiting.waits = true; /* messages are in the way of the passes */
    assert_true(run(&j, &waiting).step_s > t.step_s);
    j.pp = 4; /* of three blocks */
    assert_int_equal(step_time(&j, &costs, &t), -EINVAL);
}

/* The first stage works longest; the second has most gradients, and ends last. Passes are shared by
 * operations: 12, 3 and 3 of 18 ms. */
static void the_stage_that_ends_last(void **state)
{
    struct step_job j = job();

    (void)state;
    layers[0].count = 4;
    layers[0].parameters = 250000;
    layers[2].parameters = 10000000;
    j.pp = 2;
    j.dp = 2;
    j.bucket_bytes = 0;
    struct step_time t = run(&j, &costs);
    /* stages of 12 and 6 ms: forward to 4, a message of 1 ms, 5 to 7, backward to 11, a message, 12 to 20. The second sums 50 MB in 25
     * ms from 11 on */
    NEAR(t.compute_s, 12);
    NEAR(t.bubble_s, 6);
    NEAR(t.parallel_s, 2);
    NEAR(t.exposed_s, 11 + 25 - 20);
    NEAR(t.step_s, 36);
    assert_float_equal(t.sum_bytes, 50e6, 1);
}

/* Times of a program of its own, which writes out the order of each stage's passes and repeats its constraints until nothing
 * changes. */
static void stages_wait_for_messages(void **state)
{
    static const struct {
        size_t stages, micro;
        double message, ends[3];
    } cases[] = {{3, 4, .25, {11, 9.75, 8.5}},
                 {3, 4, 2, {25, 22, 19}},
                 {2, 100, 2, {352, 349}},
                 {3, 150, .7, {369.6, 367.9, 366.2}}};
    static const double forward[3] = {.5, .5, .5}, backward[3] = {1, 1, 1};
    static const double uneven_forward[3] = {1, 2, .5}, uneven_backward[3] = {2, 3, 1};
    double ends[3];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct pipeline p = {cases[i].stages, cases[i].micro,   forward,
                                   backward,        cases[i].message, false};

        assert_int_equal(pipeline_run(&p, ends), 0);
        for (size_t at = 0; at < cases[i].stages; at++)
            assert_float_equal(ends[at], cases[i].ends[at], 1e-9);
    }
    const struct pipeline uneven = {3, 5, uneven_forward, uneven_backward, .25, false};
    assert_int_equal(pipeline_run(&uneven, ends), 0);
    assert_float_equal(ends[0], 28.5, 1e-9);
    /* without messages: the bubble of p - 1 slots, of any number of micro-batches */
    const struct pipeline bare = {3, 50000, forward, backward, 0, false};
    assert_int_equal(pipeline_run(&bare, ends), 0);
    assert_float_equal(ends[0], 50002 * 1.5, 1e-6);
}

static void layers_over_ranks(void **state)
{
    struct step_job j = job();

    (void)state;
    layers[1].split = MODEL_ROW;
    layers[1].sum = (struct model_size){2500000, 0};
    layers[2].split = MODEL_COLUMN;
    layers[2].sum = (struct model_size){2500000, 0};
    j.tp = 2;
    j.dp = 1;
    struct step_time t = run(&j, &costs);
    NEAR(t.parallel_s, 10);
    assert_float_equal(t.sum_bytes, 20e6, 1);
    set_up(NULL);
    layers[1].kind = MODEL_EXPERT;
    layers[1].m = (struct model_size){2500000, 0};
    j = job();
    j.ep = 4;
    t = run(&j, &costs);
    NEAR(t.parallel_s, 4 * 2.5); /* there and back, in both passes */
    assert_float_equal(t.sum_bytes, 22.5e6, 1);
    set_up(NULL);
    layers[1].kind = MODEL_TABLE; /* a sparse gradient is summed by nobody */
    j = job();
    t = run(&j, &costs);
    assert_float_equal(t.sum_bytes, 20e6, 1);
    NEAR(t.parallel_s,
         2); /* 4 MB of rows to the ranks of their samples, and their gradients back */
    layers[2].kind = MODEL_TABLE;
    NEAR(run(&j, &costs).parallel_s, 2 + 2); /* of another block */
    layers[2].block = 1;
    NEAR(run(&j, &costs).parallel_s, 2 * 2); /* of one block: 8 MB at once */
    j.dp = 1;
    NEAR(run(&j, &costs).parallel_s, 0);
}

static double seen_m, seen_count;

static double see_product(const void *arg, double m, double n, double k, double count)
{
    (void)arg;
    if (n * k > 1) {
        seen_m = m;
        seen_count = count;
    }
    return 1e-3;
}

/* Rows are shared by the experts of a rank, each of which has weights of its own. */
static void experts_have_own_products(void **state)
{
    static const double cases[][4] = {
        {3, 1, 6, 8}, {3, 4, 24, 2}, {.25, 1, 1, 4}}; /* batch, ep, m, count */
    struct step_costs seeing = costs;
    struct model eight = toy;
    struct step_job j = job();

    (void)state;
    seeing.product = see_product;
    layers[1].kind = MODEL_EXPERT;
    layers[1].m = (struct model_size){16, 0};
    layers[1].n = layers[1].k = (struct model_size){8, 0};
    eight.experts = 8;
    j.model = &eight;
    j.compute_s = NAN;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        j.batch = cases[i][0];
        j.ep = cases[i][1];
        run(&j, &seeing);
        assert_true(seen_m == cases[i][2] && seen_count == cases[i][3]);
    }
}

/* 1 us each. */
static double bytes_us(const void *arg, double bytes)
{
    (void)arg;
    return bytes * 1e-6;
}

static double kept(const struct step_job *j, struct job_memory *m)
{
    *m = job_memory(j, 0, 0, j->model->n_layers);
    return m->parameters + m->gradients + m->update;
}

/* S. Rajbhandari and others, ZeRO, arXiv:1910.02054, figure 1: 7.5 billion parameters on 64 ranks, f16 and Adam. */
static void memory_of_the_zero_paper(void **state)
{
    static const double want[] = {120, 31.4, 16.6, 1.9};
    const struct model one = {.layers = layers, .n_layers = 1};
    struct job_memory m;
    struct step_job j = job();

    (void)state;
    layers[0].parameters = 7500000000u;
    j.model = &one;
    j.dp = 64;
    j.element_bytes = 2;
    j.state_bytes = 12;
    for (j.zero = 0; j.zero < 4; j.zero++)
        assert_float_equal(kept(&j, &m) * 1e-9, want[j.zero], 0.05);
}

/* ZeRO cuts what ranks have the same: all of them together keep each number of the model once, wherever its experts are. */
static void experts_are_divided_by_the_ranks_that_have_them(void **state)
{
    struct step_costs moving = costs;
    struct job_memory m;
    struct step_job j = job();
    double flop = 0;

    (void)state;
    moving.stream = bytes_us;
    moving.arg = &flop;
    layers[0].parameters = 800;
    layers[1].parameters = 200;
    layers[2].parameters = 8000;
    layers[2].kind = MODEL_EXPERT;
    j.state_bytes = 8;
    j.update_bytes = 28;
    for (j.ep = 1; j.ep <= 8; j.ep *= 2) {
        for (j.zero = 0; j.zero < 4; j.zero++) {
            double whole = 1000 + 8000 / j.ep, share = 9000 / 8.;

            kept(&j, &m);
            assert_float_equal(m.update, 8 * (j.zero >= 1 ? share : whole), 1e-6);
            assert_float_equal(m.gradients, 4 * (j.zero >= 2 ? share : whole), 1e-6);
            assert_float_equal(m.parameters, 4 * (j.zero >= 3 ? share : whole), 1e-6);
            NEAR(run(&j, &moving).update_s, 1e-3 * 28 * (j.zero ? share : whole));
        }
    }
}

/* Nobody cuts a table. */
static void a_table_lies_whole_on_one_rank(void **state)
{
    struct job_memory m;
    struct step_job j = job();

    (void)state;
    for (int i = 0; i < 3; i++) {
        layers[i].kind = MODEL_TABLE;
        layers[i].parameters = i ? 1000 : 6000;
        layers[i].output = (struct model_size){0, 0};
    }
    j.dp = 1;
    assert_float_equal(kept(&j, &m), 4 * 8000, 1e-9);
    j.dp = 4;
    assert_float_equal(kept(&j, &m), 4 * 6000, 1e-9);
    layers[0].parameters = 1000;
    j.dp = 2;
    assert_float_equal(kept(&j, &m), 4 * 1500, 1e-9); /* a mean of both ranks */
}

static double product(const void *arg, double m, double n, double k, double count)
{
    *(double *)arg += 2 * m * n * k * count;
    return 2 * m * n * k * count * 1e-12;
}

static double stream(const void *arg, double bytes)
{
    (void)arg;
    return bytes * 1e-12;
}

/* 7 columns and 5 heads on 2 ranks: one of them has 4 and 3. */
static void the_rank_with_most_of_a_layer_counts(void **state)
{
    struct step_costs seeing = costs;
    struct step_job j = job();
    double flop = 0;

    (void)state;
    seeing.product = product;
    seeing.stream = stream;
    seeing.arg = &flop;
    for (int i = 0; i < 3; i++)
        layers[i].m = layers[i].n = layers[i].k = (struct model_size){i == 1 ? 7 : 0, 0};
    layers[1].split = MODEL_COLUMN;
    j.compute_s = NAN;
    j.tp = 2;
    run(&j, &seeing);
    assert_float_equal(flop, 2 * 7 * 7 * 4, 1e-6);
    flop = 0;
    layers[1].count = 5;
    j.batch = 3;
    run(&j, &seeing);
    assert_float_equal(flop, 2 * 7 * 7 * 7 * 3 * 3, 1e-6);
}

static double no_group(const void *arg, enum bench_part_of what, bool inner, double ranks,
                       double bytes)
{
    (void)inner;
    (void)arg, (void)what, (void)ranks, (void)bytes;
    return NAN;
}

static double no_product(const void *arg, double m, double n, double k, double count)
{
    (void)arg, (void)m, (void)n, (void)k, (void)count;
    return NAN;
}

static void what_lacks_is_named(void **state)
{
    struct step_costs none = {
        .product = no_product, .group = no_group, .call_s = NAN, .together = 1, .network = 1};
    struct step_job j = job();
    struct step_time t;

    (void)state;
    t = run(&j, &none);
    assert_true(isnan(t.step_s));
    assert_int_equal(t.lacks, 1u << JOB_SUM);
    j.compute_s = NAN;
    j.zero = 3;
    assert_int_equal(run(&j, &none).lacks,
                     1u << JOB_PRODUCT | 1u << JOB_SCATTER | 1u << JOB_GATHER);
}

/* The bytes of a million parameters and of the products of one sample, without the model's code. */
static void products_of_all_layers_are_counted(void **state)
{
    double flop = 0;
    struct step_costs counting = {.product = product,
                                  .stream = stream,
                                  .group = group,
                                  .arg = &flop,
                                  .call_s = NAN,
                                  .together = 1,
                                  .network = 1};
    struct step_job j = job();

    (void)state;
    for (int i = 0; i < 3; i++) {
        layers[i].m = layers[i].n = layers[i].k = (struct model_size){1000, 0};
        layers[i].count = i == 1 ? 3 : 1;
    }
    j.compute_s = NAN;
    j.batch = 2;
    struct step_time t = run(&j, &counting);
    assert_float_equal(flop, 2e9 * 5 * 2, 1);         /* of a forward pass */
    NEAR(t.compute_s, 3 * 2e9 * 5 * 2 * 1e-12 * 1e3); /* backward is twice as long */
    counting.call_s = 1; /* launches that are slower than the device: one forward, two backward */
    NEAR(run(&j, &counting).compute_s, 1e3 * 9);
}

/* Bytes through memory, as they are moved by hand: 1 us each. */
static void layers_without_products_move_their_input(void **state)
{
    struct step_costs moving = {.product = product,
                                .stream = bytes_us,
                                .group = group,
                                .call_s = NAN,
                                .together = 1,
                                .network = 1};
    struct step_job j = job();
    double flop = 0;

    (void)state;
    moving.arg = &flop;
    j.compute_s = NAN;
    j.dp = 1;
    j.batch = 2;
    for (int i = 0; i < 3; i++)
        layers[i].output = (struct model_size){i == 1 ? 100 : 400, 0};
    layers[1].m = layers[2].m = (struct model_size){0, 0}; /* pools 400 to 100; then joins to 400 */
    layers[0].m = (struct model_size){0, 0};
    /* 2 samples of 4 bytes. The first and the last read as much as they write: 2 and 3 times 400. The pool reads 400 and
     * writes 100; backward it reads the gradient of 100 and its input of 400, and writes 400 */
    NEAR(run(&j, &moving).compute_s, 1e-3 * 8 * (2 * (2 + 3) * 400 + 500 + 900));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_example_by_hand, set_up),
        cmocka_unit_test_setup(sharing_parameters, set_up),
        cmocka_unit_test_setup(groups_begin_at_the_first_layer, set_up),
        cmocka_unit_test_setup(sharing_parameters_of_micro_batches, set_up),
        cmocka_unit_test_setup(given_compute_is_shared, set_up),
        cmocka_unit_test_setup(pipelines, set_up),
        cmocka_unit_test_setup(the_stage_that_ends_last, set_up),
        cmocka_unit_test(stages_wait_for_messages),
        cmocka_unit_test_setup(layers_over_ranks, set_up),
        cmocka_unit_test_setup(experts_have_own_products, set_up),
        cmocka_unit_test_setup(the_rank_with_most_of_a_layer_counts, set_up),
        cmocka_unit_test_setup(memory_of_the_zero_paper, set_up),
        cmocka_unit_test_setup(experts_are_divided_by_the_ranks_that_have_them, set_up),
        cmocka_unit_test_setup(a_table_lies_whole_on_one_rank, set_up),
        cmocka_unit_test_setup(what_lacks_is_named, set_up),
        cmocka_unit_test_setup(products_of_all_layers_are_counted, set_up),
        cmocka_unit_test_setup(layers_without_products_move_their_input, set_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
