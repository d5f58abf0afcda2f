/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank keeps in memory, against numbers that papers print; and when and how much it updates. */
#include "benches/step/plan.h"
#include "benches/step/products.h"
#include "tests/unit/unit.h"

#define SPEC(all, of, samples)                                                                     \
    .ranks = all, .tp = 1, .pp = 1, .ep = 1, .micro = of, .batch = samples

static double states(const struct model_memory *m)
{
    return m->parameters + m->gradients + m->update;
}

/* S. Rajbhandari and others, ZeRO, arXiv:1910.02054, figure 1: 7.5 billion parameters on 64 ranks, f16 and Adam: 120, 31.4, 16.6
 * and 1.9 GB. */
TEST(test_zero_paper)
{
    static const double want[] = {120, 31.4, 16.6, 1.9};
    const struct step_layer l = {.parameters = 7500000000u, .forward_flop = 1, .backward_flop = 2};
    for (uint32_t zero = 0; zero < 4; zero++) {
        const struct step_spec s = {SPEC(64, 1, 1), .n_layers = 1, .zero = zero,
                                    .type = COLLECTIVE_F16, .update = UPDATE_ADAM};
        struct model_memory m = step_memory(&s, &l, 0);
        if (!(fabs(states(&m) / 1e9 - want[zero]) <= 0.05))
            fail_msg("zero %u: %.4g GB, not %.4g", zero, states(&m) / 1e9, want[zero]);
        assert_true(m.activations == 0);
    }
}

/* V. Korthikanti and others, Reducing Activation Recomputation, arXiv:2205.05198, section 4.1: a transformer's layer keeps
 * s b h (34 + 5 a s / h) bytes in f16. Dropout's masks, a byte each, are two of the 34, and one of the 5: the model's file has no masks. */
TEST(test_activations)
{
    struct model m = {0};
    char error[256] = "";
    const double s = 1024, b = 2, h = 1600, a = 25, words = 50257;
    double block = s * b * h * (32 + 4 * a * s / h), ends = 2 * s * b * (2 * h + words);
    struct step_spec spec = {SPEC(1, 3, 6), .order = STEP_1F1B, .type = COLLECTIVE_BF16};
    assert_int_equal(model_load("gpt2-xl", &m, error, sizeof(error)), 0);
    struct step_layer *layers = calloc(m.n_layers, sizeof(*layers));
    assert_non_null(layers);
    step_layers(&m, 1024, layers);
    spec.n_layers = (uint32_t)m.n_layers;
    struct model_memory one = step_memory(&spec, layers, 0);
    assert_true(fabs(one.activations - (48 * block + ends)) <= 1e-9 * one.activations);
    assert_true(one.parameters == 2 * 1557611200.0 && one.gradients == one.parameters);
    assert_true(one.update == 0);
    /* of two stages the first has the activations of two micro-batches at most, the last of one; with GPipe each of all three */
    spec.ranks = spec.pp = 2;
    struct model_memory first = step_memory(&spec, layers, 0), last = step_memory(&spec, layers, 1);
    assert_true(fabs(first.activations / 2 + last.activations - one.activations) <=
                1e-9 * one.activations);
    assert_true(first.parameters + last.parameters == one.parameters);
    spec.order = STEP_GPIPE;
    struct model_memory all = step_memory(&spec, layers, 1);
    assert_true(fabs(all.activations - 3 * last.activations) <= 1e-9 * all.activations);
    /* the same paper, section 4.2.1: of t tensor-parallel ranks each keeps s b h (10 + 24 / t + 5 a s / (h t)), with the two masks */
    spec.pp = 1;
    spec.tp = 2;
    spec.order = STEP_1F1B;
    struct model_memory half = step_memory(&spec, layers, 1);
    const double split =
        48 * s * b * h * (8 + 24 / 2. + 4 * a * s / h / 2) + 2 * s * b * (2 * h + words / 2);
    if (!(fabs(half.activations - split) <= 1e-9 * split))
        fail_msg("%.9g bytes, not %.9g", half.activations, split);
    model_release(&m);
    free(layers);
}

/* Bytes of each parameter: the gradient is read in the type; parameter and moments are read and written in the type, or in f32 if
 * that is longer, and then the parameter is written in the type, too. */
TEST(test_bytes_of_types)
{
    static const struct {
        uint32_t type;
        double sgd, adam, moments;
    } types[] = {{COLLECTIVE_F32, 4 + 4 + 4, 4 + 6 * 4, 8},
                 {COLLECTIVE_BF16, 2 + 4 + 4 + 2, 2 + 6 * 4 + 2, 8 + 4},
                 {COLLECTIVE_F64, 8 + 8 + 8, 8 + 6 * 8, 16},
                 {COLLECTIVE_E4M3, 1 + 4 + 4 + 1, 1 + 6 * 4 + 1, 8 + 4}};
    const struct step_layer l = {.parameters = 4000, .forward_flop = 1000, .backward_flop = 2000};
    for (size_t i = 0; i < 2 * sizeof(types) / sizeof(*types); i++) {
        bool adam = i % 2;
        struct step_spec s = {SPEC(1, 1, 1),
                              .n_layers = 1,
                              .bucket_bytes = 1000,
                              .type = types[i / 2].type,
                              .update = adam ? UPDATE_ADAM : UPDATE_SGD,
                              .ns_per_byte = 1,
                              .slow_times = 1};
        struct step_plan plan;
        assert_int_equal(step_plan_make(&plan, &s, &l, 0), 0);
        double want = 4000 * (adam ? types[i / 2].adam : types[i / 2].sgd);
        double moved = step_stated(&plan, &s, 0).update_ns;
        if (moved != want)
            fail_msg("type %u, adam %d: %g bytes, not %g", s.type, adam, moved, want);
        if (adam)
            assert_true(step_memory(&s, &l, 0).update == 4000 * types[i / 2].moments);
        step_plan_release(&plan);
    }
}

static const struct step_spec one = {
    .ranks = 1, .tp = 1, .pp = 1, .ep = 1, .micro = 2, .batch = 6, .bucket_bytes = 1u << 20};

/* Three samples in each micro-batch, of four rows each: X is 12 x 16, W 16 x 8; dX = dY W^T, dW = X^T dY. */
TEST(test_shapes)
{
    static const struct {
        struct step_layer layer;
        unsigned tp, ep;
        enum step_kind kind;
        unsigned n;
        uint64_t want[4][4]; /* m, n, k, count */
    } cases[] = {
#define DENSE(rows, of, back, ...)                                                                 \
    {.m = rows, .n = 8, .k = 16, .count = of, .backward = back, ##__VA_ARGS__}
#define EXPERTS(rows, ...)                                                                         \
    {                                                                                              \
        .m = rows, .n = 8, .k = 4, .count = 1, .backward = 2, .experts = 8, .kind = MODEL_EXPERT,  \
        ##__VA_ARGS__                                                                              \
    }
        {DENSE(4, 1, 2), 1, 1, STEP_FORWARD, 1, {{12, 8, 16, 1}}},
        {DENSE(4, 1, 2), 1, 1, STEP_BACKWARD, 2, {{12, 16, 8, 1}, {16, 8, 12, 1}}},
        {DENSE(4, 1, 1), 1, 1, STEP_BACKWARD, 1, {{16, 8, 12, 1}}}, /* pixels need no gradient */
        {DENSE(4, 1, 2, .split = MODEL_COLUMN), 2, 1, STEP_FORWARD, 1, {{12, 4, 16, 1}}},
        {DENSE(4, 1, 2, .split = MODEL_ROW), 2, 1, STEP_FORWARD, 1, {{12, 8, 8, 1}}},
        {DENSE(4, 10, 2, .split = MODEL_ROW),
         2,
         1,
         STEP_BACKWARD,
         2,
         {{4, 16, 8, 15}, {16, 8, 4, 15}}}, /* five heads of each sample */
        {DENSE(0, 1, 2), 1, 1, STEP_FORWARD, 0, {{0}}},
        {EXPERTS(16), 1, 1, STEP_FORWARD, 1, {{6, 8, 4, 8}}},
        {EXPERTS(16), 1, 4, STEP_FORWARD, 1, {{24, 8, 4, 2}}},
        {EXPERTS(16, .split = MODEL_COLUMN), 2, 1, STEP_FORWARD, 1, {{6, 4, 4, 8}}},
        {EXPERTS(7),
         1,
         1,
         STEP_BACKWARD,
         4,
         {{3, 4, 8, 5},
          {4, 8, 3, 5},
          {2, 4, 8, 3},
          {4, 8, 2, 3}}}, /* 21 rows: five experts have three */
        {EXPERTS(1), 1, 1, STEP_FORWARD, 1, {{1, 8, 4, 3}}}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct step_product got[STEP_PRODUCTS_MOST];
        struct step_spec s = one;

        s.tp = cases[i].tp;
        s.ep = cases[i].ep;
        assert_int_equal(step_products(&s, &cases[i].layer, cases[i].kind, got), cases[i].n);
        for (unsigned k = 0; k < cases[i].n; k++) {
            uint64_t is[] = {got[k].shape.m, got[k].shape.n, got[k].shape.k, got[k].count};
            assert_memory_equal(is, cases[i].want[k], sizeof(is));
        }
    }
}
