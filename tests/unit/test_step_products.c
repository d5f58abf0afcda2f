/* SPDX-License-Identifier: Apache-2.0 */
/* The products of matrices that a step computes: their shapes by hand, their operations against the plan's, and that they are
 * right. */
#include "benches/step/products.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct step_spec one = {
    .ranks = 1, .tp = 1, .pp = 1, .ep = 1, .micro = 2, .batch = 6, .bucket_bytes = 1u << 20};

static void expect(const struct step_spec *s, const struct step_layer *l, enum step_kind kind,
                   unsigned n, const uint64_t (*want)[4])
{
    struct step_product got[STEP_PRODUCTS_MOST];

    assert_int_equal(step_products(s, l, kind, got), n);
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(got[i].shape.m, want[i][0]);
        assert_int_equal(got[i].shape.n, want[i][1]);
        assert_int_equal(got[i].shape.k, want[i][2]);
        assert_int_equal(got[i].count, want[i][3]);
    }
}

/* Three samples in each micro-batch, of four rows each: X is 12 x 16, W 16 x 8. */
static void test_shapes(void **state)
{
    struct step_layer l = {.m = 4, .n = 8, .k = 16, .count = 1, .backward = 2};
    struct step_spec s = one;

    (void)state;
    expect(&s, &l, STEP_FORWARD, 1, (const uint64_t[][4]){{12, 8, 16, 1}});
    /* dX = dY W^T is 12 x 16, of products of length 8; dW = X^T dY is 16 x 8, of length 12 */
    expect(&s, &l, STEP_BACKWARD, 2, (const uint64_t[][4]){{12, 16, 8, 1}, {16, 8, 12, 1}});
    l.backward = 1; /* pixels need no gradient */
    expect(&s, &l, STEP_BACKWARD, 1, (const uint64_t[][4]){{16, 8, 12, 1}});
    l.backward = 2;
    s.tp = 2;
    l.split = MODEL_COLUMN;
    expect(&s, &l, STEP_FORWARD, 1, (const uint64_t[][4]){{12, 4, 16, 1}});
    l.split = MODEL_ROW;
    expect(&s, &l, STEP_FORWARD, 1, (const uint64_t[][4]){{12, 8, 8, 1}});
    l.count = 10; /* heads, of each sample its own: five of them here */
    expect(&s, &l, STEP_FORWARD, 1, (const uint64_t[][4]){{4, 8, 16, 15}});
    expect(&s, &l, STEP_BACKWARD, 2, (const uint64_t[][4]){{4, 16, 8, 15}, {16, 8, 4, 15}});
    l.m = 0;
    expect(&s, &l, STEP_FORWARD, 0, NULL);
}

/* Of eight experts: each has weights of its own. */
static void test_experts(void **state)
{
    struct step_layer l = {
        .m = 16, .n = 8, .k = 4, .count = 1, .backward = 2, .experts = 8, .kind = MODEL_EXPERT};
    struct step_spec s = one;

    (void)state;
    /* three samples: 48 rows */
    expect(&s, &l, STEP_FORWARD, 1, (const uint64_t[][4]){{6, 8, 4, 8}});
    expect(&s, &l, STEP_BACKWARD, 2, (const uint64_t[][4]){{6, 4, 8, 8}, {4, 8, 6, 8}});
    s.ep = 4; /* two of them, with as many rows in all */
    expect(&s, &l, STEP_FORWARD, 1, (const uint64_t[][4]){{24, 8, 4, 2}});
    s.ep = 1;
    s.tp = 2;
    l.split = MODEL_COLUMN;
    expect(&s, &l, STEP_FORWARD, 1, (const uint64_t[][4]){{6, 4, 4, 8}});
    s.tp = 1;
    l.m = 7; /* 21 rows: five experts have three, three have two */
    expect(&s, &l, STEP_FORWARD, 2, (const uint64_t[][4]){{3, 8, 4, 5}, {2, 8, 4, 3}});
    expect(&s, &l, STEP_BACKWARD, 4,
           (const uint64_t[][4]){{3, 4, 8, 5}, {4, 8, 3, 5}, {2, 4, 8, 3}, {4, 8, 2, 3}});
    l.m = 1; /* three rows: the other experts have none */
    expect(&s, &l, STEP_FORWARD, 1, (const uint64_t[][4]){{1, 8, 4, 3}});
}

/* A piece's products have as many operations as the plan counts, which knows no shapes. */
static void test_operations(void **state)
{
    static const char *const names[] = {"resnet50", "vgg16",     "bert-large",  "gpt2-xl",
                                        "dlrm",     "llama3-8b", "mixtral-8x7b"};

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        struct step_spec s = one;
        struct step_product products[STEP_PRODUCTS_MOST];
        struct step_plan plan;
        struct model m = {0};
        char error[256] = "";
        double all = 0;

        assert_int_equal(model_load(names[i], &m, error, sizeof(error)), 0);
        struct step_layer *layers = calloc(m.n_layers, sizeof(*layers));
        assert_non_null(layers);
        s.n_layers = (uint32_t)m.n_layers;
        step_layers(&m, 128, layers);
        assert_int_equal(step_plan_make(&plan, &s, layers, 0), 0);
        for (size_t k = 0; k < plan.n_ops; k++) {
            const struct step_op *op = &plan.ops[k];
            double flop = 0;
            for (unsigned l = 0; l < op->n_layers; l++) {
                unsigned n = step_products(&s, &layers[op->first_layer + l],
                                           (enum step_kind)op->kind, products);
                for (unsigned p = 0; p < n; p++)
                    flop += gemm_operations(&products[p].shape) * (double)products[p].count;
            }
            if (!(fabs(flop - op->flop) <= 1e-9 * op->flop))
                fail_msg("%s: piece %zu: %.9g operations, not %.9g", names[i], k, flop, op->flop);
            all += flop;
        }
        assert_true(all > 1e6);
        step_plan_release(&plan);
        model_release(&m);
        free(layers);
    }
}

/* Two layers, forward and back, by the library that is here; and a server, which has nothing to multiply. */
static void test_they_are_right(void **state)
{
    struct step_layer layers[] = {{.m = 5,
                                   .n = 40,
                                   .k = 30,
                                   .count = 1,
                                   .backward = 1,
                                   .forward_flop = 12000,
                                   .backward_flop = 12000,
                                   .parameters = 1200},
                                  {.m = 7,
                                   .n = 20,
                                   .k = 60,
                                   .count = 3,
                                   .backward = 2,
                                   .forward_flop = 50400,
                                   .backward_flop = 100800,
                                   .block = 1}};
    static const enum collective_type types[] = {COLLECTIVE_F32, COLLECTIVE_F64};
    char why[GEMM_WHY_BYTES] = "", kernel[96];
    struct step_spec s = one;
    _Atomic int stop = 0;

    (void)state;
    s.n_layers = 2;
    assert_int_equal(products_library(COLLECTIVE_F16, kernel, sizeof(kernel), why), -EOPNOTSUPP);
    assert_non_null(strstr(why, "f16"));
    for (size_t i = 0; i < 2; i++) {
        struct products *p = NULL;
        struct step_plan plan;
        s.type = types[i];
        int err = products_library(types[i], kernel, sizeof(kernel), why);
        if (err == -ENODEV) {
            print_message("%s\n", why);
            skip();
        }
        assert_int_equal(err, 0);
        assert_int_equal(step_plan_make(&plan, &s, layers, 0), 0);
        assert_int_equal(products_open(&p, &products_on_host, &s, layers, &plan, 1, "", why), 0);
        for (size_t k = 0; k < plan.n_ops; k++)
            assert_int_equal(products_run(p, &plan.ops[k], 1, &stop, why), 0);
        if (products_check(p, why))
            fail_msg("%s", why);
        products_close(p);
        step_plan_release(&plan);
        s.ranks = 2;
        s.servers = 1;
        assert_int_equal(step_plan_make(&plan, &s, layers, 1), 0);
        assert_int_equal(products_open(&p, &products_on_host, &s, layers, &plan, 1, "", why), 0);
        assert_int_equal(products_check(p, why), 0);
        products_close(p);
        step_plan_release(&plan);
        s.ranks = 1;
        s.servers = 0;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes), cmocka_unit_test(test_experts),
        cmocka_unit_test(test_operations), cmocka_unit_test(test_they_are_right)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
