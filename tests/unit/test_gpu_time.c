/* SPDX-License-Identifier: Apache-2.0 */
/* Timing by a GPU's events, over a made-up device whose events show what the test says. */
#include "tests/unit/fake_gpu.h"
#include "tests/unit/unit.h"

struct ops {
    double ns; /* of one, by the events */
    int fail_at;
};

static int queue_op(void *arg, struct gpu_stream *s, uint64_t i)
{
    struct ops *ops = arg;

    if (ops->fail_at && (int)i == ops->fail_at)
        return -ENOMEM;
    assert_true(s->gpu->held);
    s->gpu->launches++;
    s->at_ns += ops->ns;
    return 0;
}

/* All of it in the time, in parts of no more than may be held; the queueing is in none of them. */
TEST(test_time_of_all_parts)
{
    static const struct {
        unsigned n, each, parts;
    } cases[] = {{1000, 3, 12}, /* 254 things a part, 84 operations of three */
                 {GPU_HELD_MAX - 2, 1, 1},
                 {GPU_HELD_MAX - 1, 1, 2}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct gpu gpu = fake_gpu(1);
        struct ops ops = {.ns = 300};
        struct gpu_timer t;
        uint64_t ns;
        assert_int_equal(gpu_timer_open(&t, &gpu, NULL), 0);
        assert_int_equal(gpu_timer_run(&t, queue_op, &ops, cases[i].n, cases[i].each, &ns), 0);
        assert_int_equal(ns, cases[i].n * 300);
        assert_int_equal(gpu.launches, cases[i].n);
        assert_int_equal(gpu.holds, cases[i].parts);
        assert_true(!gpu.unheld && !gpu.held);
        gpu_timer_close(&t);
        assert_int_equal(gpu.opened, 0);
    }
}

TEST(test_released_after_an_error)
{
    struct gpu gpu = fake_gpu(1);
    struct gpu_timer t;
    uint64_t ns;

    assert_int_equal(gpu_timer_open(&t, &gpu, NULL), 0);
    assert_int_equal(gpu_timer_run(&t, queue_op, &(struct ops){.fail_at = 5}, 10, 1, &ns), -ENOMEM);
    assert_false(gpu.held);
    gpu.calls = 0;
    gpu.fail_at = 3; /* two events, and the wait */
    assert_int_equal(gpu_timer_run(&t, queue_op, &(struct ops){.ns = 1}, 10, 1, &ns), -EIO);
    assert_false(gpu.held);
    gpu_timer_close(&t);
}

/* The host may be late on a busy machine, never early. */
TEST(test_clocks_that_disagree)
{
    static const struct {
        int runs;
        double op_ns, host_ns; /* of one operation, of a run of 20 */
        double late;           /* one run, for the host */
        const char *says;
    } cases[] = {
        {5, 1e9, 1e7, 1, "more"}, /* while no host is late by 2000 times in each of its runs */
        {5, 0.5e6, 2e7, 1, "less"},
        {30, 0.15e6, 3e6, 20, ""}, /* one run that the host saw late says nothing */
        {4, 0.5e6, 2e7, 1, ""},    /* nor do a few */
        {5, 5e3, 2e5, 1, ""},      /* too short to tell */
    };
    char text[200];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct gpu gpu = fake_gpu(1);
        struct ops ops = {.ns = cases[i].op_ns};
        struct gpu_timer t;
        uint64_t ns;
        assert_int_equal(gpu_timer_open(&t, &gpu, NULL), 0);
        for (int run = 0; run < cases[i].runs; run++) {
            gpu.wait_ns = (uint64_t)(cases[i].host_ns * (run == 1 ? cases[i].late : 1));
            assert_int_equal(gpu_timer_run(&t, queue_op, &ops, 20, 1, &ns), 0);
        }
        gpu_timer_disagreement(&t, text, sizeof(text));
        if (*cases[i].says ? !strstr(text, cases[i].says) : *text)
            fail_msg("case %zu says '%s'", i, text);
        gpu_timer_close(&t);
    }
}
