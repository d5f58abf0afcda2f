/* SPDX-License-Identifier: Apache-2.0 */
/* Timing by a GPU's events, over a made-up device whose events show what the test says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <errno.h>

#include "core/clock.h"
#include "core/hw/gpu.h"

struct gpu {
    struct gpu_base base;
    unsigned held, held_most, released, queued, opened, parts;
    double op_ns;      /* of one operation, by the events */
    double host_op_ns; /* and for the host, that waits */
    double since_ns;   /* by the events since the last begin */
    unsigned since_begin;
    int fail_wait;
};

struct gpu_stream {
    struct gpu *gpu;
};

struct gpu_event {
    unsigned operations; /* queued before it */
    struct gpu *gpu;
};

static int stream_open(struct gpu *gpu, struct gpu_stream **s)
{
    gpu->opened++;
    *s = calloc(1, sizeof(**s));
    (*s)->gpu = gpu;
    return 0;
}

static void stream_close(struct gpu_stream *s)
{
    s->gpu->opened--;
    free(s);
}

static int event_open(struct gpu *gpu, struct gpu_event **e)
{
    gpu->opened++;
    *e = calloc(1, sizeof(**e));
    (*e)->gpu = gpu;
    return 0;
}

static void event_close(struct gpu_event *e)
{
    e->gpu->opened--;
    free(e);
}

static int hold(struct gpu_stream *s)
{
    assert_int_equal(s->gpu->held, 0);
    s->gpu->held = 1;
    s->gpu->parts++;
    return 0;
}

static int release(struct gpu_stream *s)
{
    assert_int_equal(s->gpu->held, 1);
    s->gpu->held = 0;
    s->gpu->released++;
    return 0;
}

static int event_record(struct gpu_event *e, struct gpu_stream *s)
{
    assert_int_equal(s->gpu->held, 1); /* inside of the hold: the queueing is not in the time */
    e->operations = s->gpu->queued;
    return 0;
}

static int event_elapsed(struct gpu_event *from, struct gpu_event *to, double *ns)
{
    *ns = (to->operations - from->operations) * from->gpu->op_ns;
    return 0;
}

static int stream_wait(struct gpu_stream *s)
{
    uint64_t until = clock_now_ns() + (uint64_t)(s->gpu->queued * s->gpu->host_op_ns);

    assert_int_equal(s->gpu->held, 0);
    while (clock_now_ns() < until)
        ;
    return s->gpu->fail_wait;
}

static const struct gpu_ops fake_ops = {.name = "fake",
                                        .abi = GPU_MODULE_ABI,
                                        .stream_open = stream_open,
                                        .stream_close = stream_close,
                                        .event_open = event_open,
                                        .event_close = event_close,
                                        .event_record = event_record,
                                        .event_elapsed = event_elapsed,
                                        .stream_wait = stream_wait,
                                        .hold = hold,
                                        .release = release};

static struct gpu fake_gpu(void)
{
    return (struct gpu){.base = {.ops = &fake_ops}};
}

struct queue {
    unsigned each, calls;
    int fail_at; /* -1: never */
};

static int queue_op(void *arg, struct gpu_stream *s, uint64_t i)
{
    struct queue *q = arg;

    assert_int_equal(i, q->calls++);
    if (q->fail_at >= 0 && (int)i == q->fail_at)
        return -ENOMEM;
    s->gpu->queued += q->each;
    return 0;
}

static void test_time_of_all_parts(void **state)
{
    struct gpu gpu = fake_gpu();
    struct gpu_timer t;
    struct queue q = {.each = 3, .fail_at = -1};
    uint64_t ns;

    (void)state;
    gpu.op_ns = 100;
    assert_int_equal(gpu_timer_open(&t, &gpu, NULL), 0);
    assert_int_equal(gpu_timer_run(&t, queue_op, &q, 1000, 3, &ns), 0);
    assert_int_equal(ns, 1000 * 3 * 100);
    assert_int_equal(q.calls, 1000);
    /* 254 things a part, 84 operations of three: 12 parts. */
    assert_int_equal(gpu.parts, 12);
    assert_int_equal(gpu.released, 12);
    gpu_timer_close(&t);
    assert_int_equal(gpu.opened, 0);
}

static void test_one_part_where_it_fits(void **state)
{
    struct gpu gpu = fake_gpu();
    struct gpu_timer t;
    struct queue q = {.each = 1, .fail_at = -1};
    uint64_t ns;

    (void)state;
    gpu.op_ns = 1000;
    assert_int_equal(gpu_timer_open(&t, &gpu, NULL), 0);
    assert_int_equal(gpu_timer_run(&t, queue_op, &q, GPU_HELD_MAX - 2, 1, &ns), 0);
    assert_int_equal(gpu.parts, 1);
    assert_int_equal(gpu_timer_run(&t, queue_op, &(struct queue){.each = 1, .fail_at = -1},
                                   GPU_HELD_MAX - 1, 1, &ns),
                     0);
    assert_int_equal(gpu.parts, 3);
    gpu_timer_close(&t);
}

static void test_released_after_an_error(void **state)
{
    struct gpu gpu = fake_gpu();
    struct gpu_timer t;
    struct queue q = {.each = 1, .fail_at = 5};
    uint64_t ns;

    (void)state;
    assert_int_equal(gpu_timer_open(&t, &gpu, NULL), 0);
    assert_int_equal(gpu_timer_run(&t, queue_op, &q, 10, 1, &ns), -ENOMEM);
    assert_int_equal(gpu.released, gpu.parts);
    gpu.fail_wait = -EIO;
    q = (struct queue){.each = 1, .fail_at = -1};
    assert_int_equal(gpu_timer_run(&t, queue_op, &q, 10, 1, &ns), -EIO);
    gpu_timer_close(&t);
}

/* So many runs of 20 operations, which take host_op_ns each for the host and op_ns by the events; one of
 * them `late` times as long for the host. */
static void compare_runs(int runs, double late, double op_ns, double host_op_ns, char *text,
                         size_t len)
{
    struct gpu gpu = fake_gpu();
    struct gpu_timer t;
    uint64_t ns;

    gpu.op_ns = op_ns;
    assert_int_equal(gpu_timer_open(&t, &gpu, NULL), 0);
    for (int i = 0; i < runs; i++) {
        struct queue q = {.each = 1, .fail_at = -1};
        gpu.queued = 0;
        gpu.host_op_ns = i == 1 ? late * host_op_ns : host_op_ns;
        assert_int_equal(gpu_timer_run(&t, queue_op, &q, 20, 1, &ns), 0);
    }
    gpu_timer_disagreement(&t, text, len);
    gpu_timer_close(&t);
}

static void compare(double op_ns, double host_op_ns, char *text, size_t len)
{
    compare_runs(5, 1, op_ns, host_op_ns, text, len);
}

static void test_clocks_that_disagree(void **state)
{
    char text[200];

    (void)state;
    /* The host may be late on a busy machine, never early: only these two are sure. The first while no
     * host is late by 2000 times in each of its runs. */
    compare(1e9, 0.5e6, text, sizeof(text));
    assert_non_null(strstr(text, "more time than passed"));
    compare(0.5e6, 1e6, text, sizeof(text));
    assert_non_null(strstr(text, "less time than the host's clock"));
    /* One run that the host saw late says nothing, nor do a few. */
    compare_runs(30, 20, 0.15e6, 0.15e6, text, sizeof(text));
    assert_string_equal(text, "");
    compare_runs(4, 1, 0.5e6, 1e6, text, sizeof(text));
    assert_string_equal(text, "");
    /* Too short to tell. */
    compare(5e3, 1e4, text, sizeof(text));
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time_of_all_parts),
        cmocka_unit_test(test_one_part_where_it_fits),
        cmocka_unit_test(test_released_after_an_error),
        cmocka_unit_test(test_clocks_that_disagree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
