/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank keeps in memory, against numbers that papers print; and when and how much it updates. */
#include "benches/step/plan.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>

#include <cmocka.h>

static double states(const struct step_memory *m)
{
    return m->parameters + m->gradients + m->update;
}

/* S. Rajbhandari and others, ZeRO, arXiv:1910.02054, figure 1: 7.5 billion parameters on 64 ranks, f16 and Adam: 120, 31.4, 16.6
 * and 1.9 GB. */
static void test_zero_paper(void **state)
{
    static const double want[] = {120, 31.4, 16.6, 1.9};
    const struct step_layer l = {.parameters = 7500000000u, .forward_flop = 1, .backward_flop = 2};

    (void)state;
    for (uint32_t zero = 0; zero < 4; zero++) {
        const struct step_spec s = {.ranks = 64,
                                    .tp = 1,
                                    .pp = 1,
                                    .ep = 1,
                                    .micro = 1,
                                    .batch = 1,
                                    .n_layers = 1,
                                    .zero = zero,
                                    .type = COLLECTIVE_F16,
                                    .update = UPDATE_ADAM};
        struct step_memory m = step_memory(&s, &l, 0);
        if (!(fabs(states(&m) / 1e9 - want[zero]) <= 0.05))
            fail_msg("zero %u: %.4g GB, not %.4g", zero, states(&m) / 1e9, want[zero]);
        assert_true(m.activations == 0);
    }
}

/* V. Korthikanti and others, Reducing Activation Recomputation, arXiv:2205.05198, section 4.1: a transformer's layer keeps
 * s b h (34 + 5 a s / h) bytes in f16. Dropout's masks, a byte each, are two of the 34, and one of the 5: the model's file has no masks. */
static void test_activations(void **state)
{
    struct model m = {0};
    char error[256] = "";
    const double s = 1024, b = 2, h = 1600, a = 25, words = 50257;
    double block = s * b * h * (32 + 4 * a * s / h), ends = 2 * s * b * (2 * h + words);
    struct step_spec spec = {.ranks = 1,
                             .tp = 1,
                             .pp = 1,
                             .ep = 1,
                             .micro = 3,
                             .batch = 6,
                             .order = STEP_1F1B,
                             .type = COLLECTIVE_BF16};

    (void)state;
    assert_int_equal(model_load("gpt2-xl", &m, error, sizeof(error)), 0);
    struct step_layer *layers = calloc(m.n_layers, sizeof(*layers));
    assert_non_null(layers);
    step_layers(&m, 1024, layers);
    spec.n_layers = (uint32_t)m.n_layers;
    struct step_memory one = step_memory(&spec, layers, 0);
    assert_true(fabs(one.activations - (48 * block + ends)) <= 1e-9 * one.activations);
    assert_true(one.parameters == 2 * 1557611200.0 && one.gradients == one.parameters);
    assert_true(one.update == 0);
    /* of two stages the first has the activations of two micro-batches at most, the last of one; with GPipe each of all three */
    spec.ranks = spec.pp = 2;
    struct step_memory first = step_memory(&spec, layers, 0), last = step_memory(&spec, layers, 1);
    assert_true(fabs(first.activations / 2 + last.activations - one.activations) <=
                1e-9 * one.activations);
    assert_true(first.parameters + last.parameters == one.parameters);
    spec.order = STEP_GPIPE;
    struct step_memory all = step_memory(&spec, layers, 1);
    assert_true(fabs(all.activations - 3 * last.activations) <= 1e-9 * all.activations);
    /* the same paper, section 4.2.1: of t tensor-parallel ranks each keeps s b h (10 + 24 / t + 5 a s / (h t)), with the two masks */
    spec.pp = 1;
    spec.tp = 2;
    spec.order = STEP_1F1B;
    struct step_memory half = step_memory(&spec, layers, 1);
    const double split =
        48 * s * b * h * (8 + 24 / 2. + 4 * a * s / h / 2) + 2 * s * b * (2 * h + words / 2);
    if (!(fabs(half.activations - split) <= 1e-9 * split))
        fail_msg("%.9g bytes, not %.9g", half.activations, split);
    model_release(&m);
    free(layers);
}

/* Tables lie on one of the ranks each: some rank has the largest, and the mean of all at least. Servers divide
 * parameters and state. */
static void test_tables_and_servers(void **state)
{
    const struct step_layer layers[] = {
        {.parameters = 8000, .output = 16, .kind = MODEL_TABLE},
        {.parameters = 1000, .output = 10, .forward_flop = 1, .backward_flop = 2, .block = 1}};
    struct step_spec s = {.ranks = 4,
                          .tp = 1,
                          .pp = 1,
                          .ep = 1,
                          .micro = 1,
                          .batch = 5,
                          .n_layers = 2,
                          .type = COLLECTIVE_F32,
                          .update = UPDATE_ADAM};
    struct step_memory m = step_memory(&s, layers, 3);

    (void)state;
    assert_true(m.parameters == 4 * (1000 + 8000) && m.gradients == 4 * (1000 + 5 * 16));
    const struct step_layer many[] = {layers[0], layers[0], layers[0], layers[0], layers[0],
                                      layers[0], layers[0], layers[0], layers[1]};
    s.n_layers = 9;
    assert_true(step_memory(&s, many, 0).parameters == 4 * (1000 + 2 * 8000));
    s.n_layers = 2;
    assert_true(m.update == 8 * 1000 && m.activations == 4 * 5 * 26);
    s.n_layers = 1;
    s.servers = 2;
    struct step_memory worker = step_memory(&s, layers + 1, 0),
                       server = step_memory(&s, layers + 1, 3);
    assert_true(worker.update == 0 && worker.parameters == 4000);
    assert_true(server.update == 4000 && server.parameters == 2000 && server.activations == 0);
}

/* Behind the sums, before parameters are gathered; of a part of them with ZeRO. */
static void test_update(void **state)
{
    const struct step_layer l = {.parameters = 4000, .forward_flop = 1000, .backward_flop = 2000};

    (void)state;
    for (uint32_t zero = 0; zero < 4; zero++) {
        const struct step_spec s = {.ranks = 4,
                                    .tp = 1,
                                    .pp = 1,
                                    .ep = 1,
                                    .micro = 1,
                                    .batch = 1,
                                    .n_layers = 1,
                                    .zero = zero,
                                    .bucket_bytes = 1000,
                                    .overlap = 1,
                                    .update = UPDATE_ADAM,
                                    .ns_per_byte = 0.5,
                                    .ns_per_flop = 1};
        struct step_plan plan;
        size_t updates = 0, summed = 0, gathered = 0;

        assert_int_equal(step_plan_make(&plan, &s, &l, 1), 0);
        for (size_t i = 0; i < plan.n_ops; i++) {
            const struct step_op *op = &plan.ops[i];
            uint32_t kind = op->kind == STEP_CALL ? plan.parts[op->part].kind : PART_ALL;
            summed += !updates && (kind == PART_SUM || kind == PART_SCATTER);
            gathered += updates && kind == PART_GATHER;
            if (op->kind != STEP_UPDATE)
                continue;
            updates++;
            assert_true(op->bytes == 28. * 4000 / (zero ? 4 : 1));
            assert_int_equal(op->n_deps, 1);
            assert_int_equal(plan.ops[plan.deps[op->first_dep]].kind, STEP_CALL);
        }
        assert_true(updates == 1 && summed == 1 && gathered == (zero == 1 || zero == 2));
        assert_true(step_update_ns(&plan, &s, 1) == 14. * 4000 / (zero ? 4 : 1));
        assert_true(step_compute_ns(&plan, &s, 1) == 3000);
        step_plan_release(&plan);
    }
}

/* Bytes of each parameter: the gradient is read in the type; parameter and moments are read and written in the type, or in f32 if
 * that is longer, and then the parameter is written in the type, too. */
static void test_bytes_of_types(void **state)
{
    static const struct {
        uint32_t type;
        double sgd, adam, moments;
    } types[] = {{COLLECTIVE_F32, 4 + 4 + 4, 4 + 6 * 4, 8},
                 {COLLECTIVE_BF16, 2 + 4 + 4 + 2, 2 + 6 * 4 + 2, 8 + 4},
                 {COLLECTIVE_F64, 8 + 8 + 8, 8 + 6 * 8, 16},
                 {COLLECTIVE_E4M3, 1 + 4 + 4 + 1, 1 + 6 * 4 + 1, 8 + 4}};
    const struct step_layer l = {.parameters = 4000, .forward_flop = 1000, .backward_flop = 2000};

    (void)state;
    for (size_t i = 0; i < 2 * sizeof(types) / sizeof(*types); i++) {
        bool adam = i % 2;
        struct step_spec s = {.ranks = 1,
                              .tp = 1,
                              .pp = 1,
                              .ep = 1,
                              .micro = 1,
                              .batch = 1,
                              .n_layers = 1,
                              .bucket_bytes = 1000,
                              .type = types[i / 2].type,
                              .update = adam ? UPDATE_ADAM : UPDATE_SGD,
                              .ns_per_byte = 1,
                              .slow_times = 1};
        struct step_plan plan;
        assert_int_equal(step_plan_make(&plan, &s, &l, 0), 0);
        double want = 4000 * (adam ? types[i / 2].adam : types[i / 2].sgd);
        double moved = step_update_ns(&plan, &s, 0);
        if (moved != want)
            fail_msg("type %u, adam %d: %g bytes, not %g", s.type, adam, moved, want);
        if (adam)
            assert_true(step_memory(&s, &l, 0).update == 4000 * types[i / 2].moments);
        step_plan_release(&plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zero_paper), cmocka_unit_test(test_activations),
        cmocka_unit_test(test_tables_and_servers), cmocka_unit_test(test_update),
        cmocka_unit_test(test_bytes_of_types)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
