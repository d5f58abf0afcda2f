/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated device (tests/sim): order, and effects that come when the host waits; its clock and the
 * host's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/sim_bench.h"

#ifdef SIM_BENCH

#include "core/clock.h"

static void effects_come_when_the_host_waits(void **state)
{
    struct bench *b = *state;
    uint32_t *from, *to;
    CUdeviceptr there;

    open_bench(b, 1, PLAIN, NULL);
    from = pinned(b, 4096);
    to = pinned(b, 4096);
    there = take(b, 0, 4096);
    from[7] = 1;
    to[7] = 0;
    copy(b, 0, there, ptr(from), 4096);
    copy(b, 0, ptr(to), there, 4096);
    usleep(3000); /* both are long over by the device's time */
    assert_int_equal(to[7], 0);
    from[7] = 2; /* a program that did not wait: the copy takes what it finds */
    wait(b, 0);
    assert_int_equal(to[7], 2);
}

static void a_query_finds_it_due(void **state)
{
    struct bench *b = *state;
    uint32_t *from, *to;
    CUdeviceptr there;
    CUresult rc;

    open_bench(b, 1, PLAIN "[gpu]\nh2d_gbps = 0.05\n", NULL);
    from = pinned(b, MIB);
    to = pinned(b, MIB);
    there = take(b, 0, MIB);
    from[7] = 1;
    to[7] = 0;
    copy(b, 0, there, ptr(from), MIB); /* 20 ms */
    copy(b, 0, ptr(to), there, MIB);
    assert_int_equal(b->d.cuStreamQuery(b->stream[0]), CUDA_ERROR_NOT_READY);
    assert_int_equal(to[7], 0);
    while ((rc = b->d.cuStreamQuery(b->stream[0])) == CUDA_ERROR_NOT_READY)
        ;
    assert_int_equal(rc, CUDA_SUCCESS);
    assert_int_equal(to[7], 1);
}

static void streams_follow_events(void **state)
{
    struct bench *b = *state;
    CUevent reached, after;
    CUstream other;
    uint32_t *out;
    CUdeviceptr there;
    struct timed t;
    float ms = 0;

    open_bench(b, 1, PLAIN "[gpu]\nmemset_gbps = 1\nd2h_gbps = 2\n", NULL);
    out = pinned(b, MIB);
    there = take(b, 0, MIB);
    reached = event(b, 0);
    after = event(b, 0);
    assert_int_equal(b->d.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    t = timed_begin(b, 0, 1);
    assert_int_equal(b->d.cuMemsetD32Async(there, 5, MIB / 4, b->stream[0]), CUDA_SUCCESS);
    assert_int_equal(b->d.cuEventRecord(reached, b->stream[0]), CUDA_SUCCESS);
    assert_int_equal(b->d.cuStreamWaitEvent(other, reached, 0), CUDA_SUCCESS);
    assert_int_equal(b->d.cuMemcpyAsync(ptr(out), there, MIB, other), CUDA_SUCCESS);
    assert_int_equal(b->d.cuEventRecord(after, other), CUDA_SUCCESS);
    assert_int_equal(b->d.cuEventQuery(reached), CUDA_ERROR_NOT_READY);
    timed_end(&t);
    release(b, 1);
    assert_int_equal(b->d.cuStreamSynchronize(other), CUDA_SUCCESS);
    assert_int_equal(out[MIB / 4 - 1], 5);
    assert_int_equal(b->d.cuEventQuery(reached), CUDA_SUCCESS);
    assert_int_equal(b->d.cuEventElapsedTime(&ms, reached, after), CUDA_SUCCESS);
    about((double)ms * 1e6, MIB / 2.0, 0.01);
    about(timed_ns(&t), MIB, 0.01);
    assert_int_equal(b->d.cuStreamDestroy(other), CUDA_SUCCESS);
}

/* By how much the host's clock shows more than the events of a 10 ms operation. */
static double behind_ns(struct bench *b, CUdeviceptr at)
{
    struct timed t = timed_begin(b, 0, ++b->turn);
    uint64_t began;
    double host_ns, ns;

    assert_int_equal(b->d.cuMemsetD32Async(at, 5, 10 * MIB / 4, b->stream[0]), CUDA_SUCCESS);
    timed_end(&t);
    release(b, b->turn);
    began = clock_now_ns();
    wait(b, 0);
    host_ns = (double)(clock_now_ns() - began);
    ns = timed_ns(&t);
    about(ns, 10 * MIB, 0.001);
    return host_ns - ns;
}

/* The machine may be busy: once in a while it is not. */
static void host_clock_agrees(void **state)
{
    struct bench *b = *state;
    double least = 1e9;
    CUdeviceptr at;

    open_bench(b, 1, PLAIN "[gpu]\nmemset_gbps = 1\n", NULL);
    at = take(b, 0, 10 * MIB);
    for (unsigned i = 0; i < 50 && least > 50000; i++) {
        double behind = behind_ns(b, at);

        assert_true(behind > -1000);
        least = behind < least ? behind : least;
    }
    assert_true(least < 500000);
}

static void a_hold_gives_up(void **state)
{
    struct bench *b = *state;
    struct gpu_spin_args args;

    open_bench(b, 1, PLAIN, NULL);
    args = (struct gpu_spin_args){b->words, 1, b->words + 1, 3000000};
    launch(b, 0, "spin", 1, 1, &args);
    wait(b, 0);
    assert_int_equal(b->words[1], 1);
}

/* A small source is taken at once; a large one keeps the call until it is copied. */
/* Loading waits for the device: behind a hold, for the hold to end by itself. */
static void a_kernel_is_loaded_at_its_first_use(void **state)
{
    struct bench *b = *state;
    struct gpu_spin_args brief = {NULL, 1, NULL, 30000000};
    struct gpu_empty_args none = {0};

    open_bench(b, 1, "[gpu]\nlazy_load_us = 50\n", NULL);
    brief.go = b->words;
    brief.gave_up = b->words + 1;
    launch(b, 0, "spin", 1, 1, &brief);
    assert_int_equal(b->words[1], 0);
    launch(b, 0, "empty", 1, 1, &none);
    assert_int_equal(b->words[1], 1);
    b->words[1] = 0;
    hold(b, 0, 1);
    launch(b, 0, "empty", 1, 1, &none);
    release(b, 1);
    wait(b, 0);
    assert_int_equal(b->words[1], 0);
}

static void pageable_copies(void **state)
{
    struct bench *b = *state;
    uint32_t *small = calloc(1, 4096), *large = calloc(1, MIB), *out;
    CUdeviceptr here;

    open_bench(b, 1, PLAIN, NULL);
    here = take(b, 0, MIB);
    out = pinned(b, MIB);
    small[0] = 1;
    copy(b, 0, here, ptr(small), 4096);
    small[0] = 2;
    copy(b, 0, ptr(out), here, 4096);
    wait(b, 0);
    assert_int_equal(out[0], 1);
    large[0] = 3;
    copy(b, 0, here, ptr(large), MIB);
    large[0] = 4;
    copy(b, 0, ptr(large), here, MIB); /* without a wait */
    assert_int_equal(large[0], 3);
    free(small);
    free(large);
}

/* What was copied before is copied again when either side has changed since. */
static void nothing_stale(void **state)
{
    struct bench *b = *state;
    CUdeviceptr x, y;
    uint32_t *in, *out;

    open_bench(b, 1, PLAIN, NULL);
    in = pinned(b, 4096);
    out = pinned(b, 4096);
    x = take(b, 0, 4096);
    y = take(b, 0, 4096);
    for (uint32_t i = 1; i < 4; i++) {
        in[9] = i;
        copy(b, 0, x, ptr(in), 4096);
        copy(b, 0, y, x, 4096);
        copy(b, 0, y, x, 4096);
        copy(b, 0, ptr(out), y, 4096);
        wait(b, 0);
        assert_int_equal(out[9], i);
    }
    assert_int_equal(b->d.cuMemsetD32Async(y, 77, 1024, b->stream[0]), 0);
    copy(b, 0, ptr(out), y, 4096);
    wait(b, 0);
    assert_int_equal(out[9], 77);
    copy(b, 0, y, x, 4096); /* as before, but not onto the same */
    copy(b, 0, ptr(out), y, 4096);
    wait(b, 0);
    assert_int_equal(out[9], 3);
    out[9] = 5;
    copy(b, 0, ptr(out), y, 4096); /* the host changed what it goes to */
    wait(b, 0);
    assert_int_equal(out[9], 3);
}

static void graphs_repeat_what_was_captured(void **state)
{
    struct bench *b = *state;
    struct gpu_empty_args none = {0};
    CUgraphExec exec;
    struct timed t;
    CUgraph graph;

    open_bench(b, 1, PLAIN "[gpu]\nkernel_us = 4\ngraph_node_us = 1\n", NULL);
    assert_int_equal(b->d.cuStreamBeginCapture(b->stream[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                     0);
    for (unsigned i = 0; i < 10; i++)
        launch(b, 0, "empty", 1, 1, &none);
    assert_int_equal(b->d.cuStreamEndCapture(b->stream[0], &graph), 0);
    wait(b, 0);
    assert_int_equal(b->d.cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
    assert_int_equal(b->d.cuGraphDestroy(graph), 0);
    t = timed_begin(b, 0, ++b->turn);
    assert_int_equal(b->d.cuGraphLaunch(exec, b->stream[0]), 0);
    assert_int_equal(b->d.cuGraphLaunch(exec, b->stream[0]), 0);
    timed_end(&t);
    release(b, b->turn);
    about(timed_ns(&t), 20000, 0.01);
    assert_int_equal(b->d.cuGraphExecDestroy(exec), 0);
    t = timed_begin(b, 0, ++b->turn);
    launch(b, 0, "empty", 1, 1, &none);
    timed_end(&t);
    release(b, b->turn);
    about(timed_ns(&t), 4000, 0.01);
}

static void a_capture_forbids_waiting(void **state)
{
    struct bench *b = *state;
    CUgraph graph;

    open_bench(b, 1, PLAIN, NULL);
    assert_int_equal(b->d.cuStreamBeginCapture(b->stream[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                     0);
    assert_int_equal(b->d.cuStreamSynchronize(b->stream[0]), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_int_equal(b->d.cuStreamEndCapture(b->stream[0], &graph),
                     CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    wait(b, 0);
}

/* Memory taken and freed in stream order is used again, not used up. */
static void ordered_memory_comes_back(void **state)
{
    struct bench *b = *state;
    size_t before, after, total;
    CUdeviceptr at;

    open_bench(b, 1, PLAIN, NULL);
    assert_int_equal(b->d.cuMemGetInfo(&before, &total), 0);
    for (unsigned i = 0; i < 200; i++) {
        assert_int_equal(b->d.cuMemAllocAsync(&at, 64 * MIB, b->stream[0]), 0);
        assert_int_equal(b->d.cuMemFreeAsync(at, b->stream[0]), 0);
        assert_int_equal(b->d.cuMemFreeAsync(at, b->stream[0]), CUDA_ERROR_INVALID_VALUE);
    }
    wait(b, 0);
    assert_int_equal(b->d.cuMemGetInfo(&after, &total), 0);
    assert_int_equal(before, after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIM_TEST(effects_come_when_the_host_waits),
        SIM_TEST(a_query_finds_it_due),
        SIM_TEST(streams_follow_events),
        SIM_TEST(host_clock_agrees),
        SIM_TEST(a_hold_gives_up),
        SIM_TEST(a_kernel_is_loaded_at_its_first_use),
        SIM_TEST(pageable_copies),
        SIM_TEST(nothing_stale),
        SIM_TEST(graphs_repeat_what_was_captured),
        SIM_TEST(a_capture_forbids_waiting),
        SIM_TEST(ordered_memory_comes_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
