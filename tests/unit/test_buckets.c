/* SPDX-License-Identifier: Apache-2.0 */
/* Models' gradients in buckets: of real models, and by hand. */
#include "benches/allreduce/work.h"
#include "tests/unit/unit.h"

#define MIB (1ull << 20)

static struct collective_call calls[MODEL_LAYERS_MAX];

/* Contiguous from 0 to the end, whatever the rule. */
static void check_whole(const struct model *m, size_t n)
{
    uint64_t next = 0;

    for (size_t i = 0; i < n; i++) {
        assert_int_equal(calls[i].first, next);
        assert_true(calls[i].count > 0);
        next += calls[i].count;
    }
    assert_int_equal(next, m->parameters);
}

TEST(test_buckets_of_real_models)
{
    static const struct {
        const char *name;
        size_t bytes;
        uint64_t bucket;
        size_t n;
        uint64_t first, last;
    } cases[] = {
        {"resnet50", 4, 0, 161, 1000, 9408},
        {"resnet50", 4, 25 * MIB, 4, 7564264, 4337216},
        {"resnet50", 2, 25 * MIB, 2, 14128104, 11428928},
        {"resnet50", 4, 256 * MIB, 1, 25557032, 25557032},
        {"vgg16", 4, 25 * MIB, 5, 20878312, 555328},
        {"bert-large", 4, 25 * MIB, 37, 9445376, 32832512},
        {"gpt2-xl", 4, 256 * MIB, 21, 71726400, 123043200},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct model m;
        char error[512] = "";
        size_t n, bytes = cases[i].bytes;

        if (model_load(cases[i].name, &m, error, sizeof(error)))
            fail_msg("%s", error);
        assert_int_equal(buckets_fuse(&m, bytes, cases[i].bucket, calls, MODEL_LAYERS_MAX, &n), 0);
        check_whole(&m, n);
        assert_int_equal(n, cases[i].n);
        assert_int_equal(calls[0].count, cases[i].first);
        assert_int_equal(calls[n - 1].count, cases[i].last);
        for (size_t k = 0; k + 1 < n; k++)
            assert_true(calls[k].count * bytes >= cases[i].bucket);
        model_release(&m);
    }
}

/* Layers 1 2 3 4 come as 4 3 2 1; the tensor that reaches the size closes the bucket. */
TEST(test_buckets_by_hand)
{
    struct model_layer layers[] = {
        {.parameters = 1}, {.parameters = 2}, {.parameters = 3}, {.parameters = 4}};
    struct model m = {.layers = layers, .n_layers = 4, .parameters = 10};
    size_t n;

    assert_int_equal(buckets_fuse(&m, 1, 4, calls, 4, &n), 0);
    assert_int_equal(n, 3); /* 4 | 3 2 | 1 */
    assert_int_equal(calls[1].count, 5);
    check_whole(&m, n);
    assert_int_equal(buckets_fuse(&m, 2, 15, calls, 4, &n), 0);
    assert_int_equal(n, 2); /* 14 bytes are not enough: 4 3 2 | 1 */
    assert_int_equal(calls[0].count, 9);
    assert_int_equal(buckets_fuse(&m, 1, 0, calls, 4, &n), 0);
    assert_int_equal(n, 4);
    assert_int_equal(buckets_fuse(&m, 1, 0, calls, 3, &n), -E2BIG);
    assert_int_equal(buckets_fuse(&m, 0, 0, calls, 4, &n), -EINVAL);
}

static int own_configs(void **state)
{
    (void)state;
    return unsetenv("PLUMB_CONFIGS");
}
TESTS_WITH(own_configs, NULL);
