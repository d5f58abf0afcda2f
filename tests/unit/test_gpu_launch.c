/* SPDX-License-Identifier: Apache-2.0 */
/* Launch cost, over a made-up device: what is timed, what is checked, and what is left behind. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "benches/launch/gpu_launch.h"
#include "core/clock.h"
#include "core/hw/gpu_kernels.h"

#define CALL_NS 100000u
#define WAIT_NS 1000000u

struct gpu_kernel {
    bool fills;
};

struct gpu_graph {
    struct gpu *gpu;
    unsigned nodes;
    bool fills;
    struct gpu_fill_args args;
};

struct gpu {
    struct gpu_base base;
    struct gpu_kernel kernels[2];
    unsigned resources;                  /* opened and not closed */
    unsigned queued, queued_most, waits; /* things in the stream */
    unsigned launches, graph_nodes, calls;
    unsigned fail_at; /* this call, counted from 1, fails */
    bool deaf;        /* kernels do nothing */
    bool forgetful;   /* copies to it do nothing */
    struct gpu_graph *capturing;
};

struct gpu_stream {
    struct gpu *gpu;
};

struct gpu_event {
    struct gpu *gpu;
    bool recorded;
};

static void busy(uint64_t ns)
{
    uint64_t until = clock_now_ns() + ns;

    while (clock_now_ns() < until)
        ;
}

static int call(struct gpu *gpu)
{
    return ++gpu->calls == gpu->fail_at ? -EIO : 0;
}

static int queue(struct gpu *gpu, unsigned things)
{
    int err = call(gpu);

    gpu->queued += err ? 0 : things;
    if (gpu->queued > gpu->queued_most)
        gpu->queued_most = gpu->queued;
    busy(CALL_NS);
    return err;
}

static void *take(struct gpu *gpu, size_t bytes)
{
    gpu->resources++;
    return calloc(1, bytes);
}

static void give_back(struct gpu *gpu, void *at)
{
    gpu->resources -= at ? 1 : 0;
    free(at);
}

static int stream_open(struct gpu *gpu, struct gpu_stream **s)
{
    int err = call(gpu);

    if (!err) {
        *s = take(gpu, sizeof(**s));
        (*s)->gpu = gpu;
    }
    return err;
}

static void stream_close(struct gpu_stream *s)
{
    give_back(s->gpu, s);
}

static int stream_wait(struct gpu_stream *s)
{
    int err = call(s->gpu);

    s->gpu->waits++;
    s->gpu->queued = 0;
    busy(WAIT_NS);
    return err;
}

static int event_open(struct gpu *gpu, struct gpu_event **e)
{
    int err = call(gpu);

    if (!err) {
        *e = take(gpu, sizeof(**e));
        (*e)->gpu = gpu;
    }
    return err;
}

static void event_close(struct gpu_event *e)
{
    give_back(e->gpu, e);
}

static int event_record(struct gpu_event *e, struct gpu_stream *s)
{
    e->recorded = true;
    return queue(s->gpu, 1);
}

static int event_wait(struct gpu_event *e)
{
    e->gpu->queued = 0;
    return call(e->gpu);
}

static int event_query(struct gpu_event *e)
{
    int err = call(e->gpu);

    return err ? err : e->recorded ? 0 : -EAGAIN;
}

static int kernel(struct gpu *gpu, const char *name, struct gpu_kernel **k)
{
    int err = call(gpu);

    *k = &gpu->kernels[!strcmp(name, "fill")];
    (*k)->fills = !strcmp(name, "fill");
    return err;
}

static int alloc(struct gpu *gpu, enum gpu_memory kind, size_t bytes, void **at)
{
    int err = call(gpu);

    assert_true(kind == GPU_DEVICE || kind == GPU_PINNED);
    if (!err)
        *at = take(gpu, bytes);
    return err;
}

static void free_memory(struct gpu *gpu, enum gpu_memory kind, void *at)
{
    (void)kind;
    give_back(gpu, at);
}

static int alloc_ordered(struct gpu_stream *s, size_t bytes, void **at)
{
    int err = queue(s->gpu, 1);

    if (!err)
        *at = take(s->gpu, bytes);
    return err;
}

static int free_ordered(struct gpu_stream *s, void *at)
{
    give_back(s->gpu, at);
    return queue(s->gpu, 1);
}

static void fill(const struct gpu *gpu, const struct gpu_fill_args *args)
{
    for (uint64_t i = 0; !gpu->deaf && i < args->count; i++)
        ((uint64_t *)args->dst)[i] = gpu_value_bits(args->type, args->kind, args->seed, i);
}

static int launch(struct gpu_stream *s, struct gpu_kernel *k, unsigned grid, unsigned block,
                  const void *args)
{
    struct gpu_graph *g = s->gpu->capturing;

    assert_true(grid && block && args);
    if (g) {
        g->nodes++;
        g->fills = k->fills;
        if (k->fills)
            g->args = *(const struct gpu_fill_args *)args;
        return call(s->gpu);
    }
    s->gpu->launches++;
    if (k->fills)
        fill(s->gpu, args);
    return queue(s->gpu, 1);
}

static int graph_begin(struct gpu_stream *s)
{
    int err = call(s->gpu);

    assert_null(s->gpu->capturing);
    if (!err) {
        s->gpu->capturing = take(s->gpu, sizeof(struct gpu_graph));
        s->gpu->capturing->gpu = s->gpu;
    }
    return err;
}

static int graph_end(struct gpu_stream *s, struct gpu_graph **graph)
{
    int err = call(s->gpu);

    assert_non_null(s->gpu->capturing);
    if (err)
        give_back(s->gpu, s->gpu->capturing);
    else
        *graph = s->gpu->capturing;
    s->gpu->capturing = NULL;
    return err;
}

static int graph_launch(struct gpu_stream *s, struct gpu_graph *graph)
{
    s->gpu->graph_nodes += graph->nodes;
    if (graph->fills)
        fill(s->gpu, &graph->args);
    return queue(s->gpu, graph->nodes);
}

static void graph_close(struct gpu_graph *graph)
{
    give_back(graph->gpu, graph);
}

static int copy(struct gpu_stream *s, void *dst, const void *src, size_t bytes)
{
    if (!s->gpu->forgetful || bytes > 8)
        memcpy(dst, src, bytes);
    return queue(s->gpu, 1);
}

static int set(struct gpu_stream *s, void *dst, uint32_t word, size_t bytes)
{
    memset(dst, (int)word, bytes);
    return queue(s->gpu, 1);
}

static int driver_call(struct gpu *gpu)
{
    busy(CALL_NS);
    return call(gpu);
}

static const struct gpu_ops fake_ops = {
    .name = "fake",
    .abi = GPU_MODULE_ABI,
    .alloc = alloc,
    .free = free_memory,
    .stream_open = stream_open,
    .stream_close = stream_close,
    .stream_wait = stream_wait,
    .stream_sync = stream_wait,
    .event_open = event_open,
    .event_close = event_close,
    .event_record = event_record,
    .event_wait = event_wait,
    .event_sync = event_wait,
    .event_query = event_query,
    .copy = copy,
    .set = set,
    .kernel = kernel,
    .launch = launch,
    .graph_begin = graph_begin,
    .graph_end = graph_end,
    .graph_launch = graph_launch,
    .graph_close = graph_close,
    .driver_call = driver_call,
    .alloc_ordered = alloc_ordered,
    .free_ordered = free_ordered,
};

static struct gpu new_gpu(void)
{
    return (struct gpu){.base = {.ops = &fake_ops}};
}

static const struct launch_op *op_of(const char *name)
{
    const struct launch_op *op = launch_find(name);

    if (!op)
        fail_msg("there is no operation '%s'", name);
    return op;
}

static void test_names(void **state)
{
    size_t n = 0;

    (void)state;
    for (; launch_names[n]; n++)
        assert_string_equal(launch_ops[n].name, launch_names[n]);
    assert_null(launch_ops[n].name);
    assert_null(launch_find("no-such"));
}

/* Each runs, is found right, and leaves nothing behind. */
static void test_every_operation(void **state)
{
    (void)state;
    for (const struct launch_op *op = launch_ops; op->name; op++) {
        struct gpu gpu = new_gpu();
        struct launch l;
        char what[160] = "";
        uint64_t ns = 0;

        assert_int_equal(launch_open(&l, &gpu, op, 3, 64), 0);
        for (int i = 0; i < 3; i++)
            assert_int_equal(launch_once(&l, &ns), 0);
        assert_int_equal(launch_again(&l), 0);
        assert_int_equal(l.count, 4);
        if (launch_check(&l, 7, what, sizeof(what)))
            fail_msg("%s: %s", op->name, what);
        launch_close(&l);
        if (gpu.resources)
            fail_msg("%s leaves %u things open", op->name, gpu.resources);
        launch_close(&l); /* twice does no harm */
    }
}

/* What a name promises is in the time: the call alone, or the wait too. */
static void test_what_is_timed(void **state)
{
    static const struct {
        const char *op;
        bool waits;
    } cases[] = {{"launch", false},        {"launch-complete", true}, {"graph", false},
                 {"graph-complete", true}, {"stream-sync", true},     {"copy-small", true},
                 {"alloc-ordered", false}, {"driver-call", false}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct gpu gpu = new_gpu();
        struct launch l;
        uint64_t ns = 0, best = UINT64_MAX;

        assert_int_equal(launch_open(&l, &gpu, op_of(cases[i].op), 2, 64), 0);
        /* A wait that is timed never takes less; what does not wait may, on a busy machine. */
        for (int k = 0; k < 5 || (!cases[i].waits && best >= WAIT_NS && k < 1000); k++) {
            assert_int_equal(launch_once(&l, &ns), 0);
            best = ns < best ? ns : best;
        }
        if (cases[i].waits != (best >= WAIT_NS))
            fail_msg("%s takes %llu ns", cases[i].op, (unsigned long long)best);
        launch_close(&l);
    }
}

/* The queue is emptied before it is full, outside of what is timed. */
static void test_queue_stays_short(void **state)
{
    static const char *const ops[] = {"launch", "graph", "alloc-ordered"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct gpu gpu = new_gpu();
        struct launch l;
        uint64_t ns = 0, best = UINT64_MAX; /* of those that a wait came with */
        unsigned long before = 0;

        assert_int_equal(launch_open(&l, &gpu, op_of(ops[i]), 100, 64), 0);
        gpu.waits = 0;
        for (int k = 0; k < 300 || (best >= WAIT_NS && k < 30000); k++) {
            assert_int_equal(launch_once(&l, &ns), 0);
            if (gpu.waits > before)
                best = ns < best ? ns : best;
            before = gpu.waits;
        }
        assert_in_range(gpu.queued_most, GPU_HELD_MAX - 2, GPU_HELD_MAX + 100);
        assert_true(gpu.waits >= 1);
        assert_true(
            best <
            WAIT_NS); /* a wait that is timed never takes less, however busy the machine is */
        launch_close(&l);
    }
}

static void test_many(void **state)
{
    struct gpu gpu = new_gpu();
    struct launch l;
    uint64_t ns = 0;

    (void)state;
    assert_int_equal(launch_open(&l, &gpu, op_of("launch-rate"), 1, 64), 0);
    gpu.waits = 0;
    assert_int_equal(launch_many(&l, 50, &ns), 0);
    assert_int_equal(gpu.launches, 50);
    assert_int_equal(gpu.waits, 1);
    assert_true(ns >= 50 * CALL_NS + WAIT_NS);
    assert_int_equal(l.count, 50);
    launch_close(&l);
}

static void test_graph_has_its_nodes(void **state)
{
    struct gpu gpu = new_gpu();
    struct launch l;
    uint64_t ns;

    (void)state;
    assert_int_equal(launch_open(&l, &gpu, op_of("graph-complete"), 17, 64), 0);
    assert_int_equal(launch_once(&l, &ns), 0);
    assert_int_equal(gpu.graph_nodes, 17);
    assert_int_equal(gpu.launches, 0);
    launch_close(&l);
}

/* A device that only pretends. */
static void test_wrong_data(void **state)
{
    static const struct {
        const char *op, *words;
        bool deaf, forgetful;
    } cases[] = {{"launch", "4096 of 4096 words that a kernel wrote", true, false},
                 {"graph", "words that a kernel wrote", true, false},
                 {"copy-small", "the last 8 bytes sent", false, true}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct gpu gpu = new_gpu();
        struct launch l;
        char what[160] = "";
        uint64_t ns;

        assert_int_equal(launch_open(&l, &gpu, op_of(cases[i].op), 2, 64), 0);
        for (int k = 0; k < 3; k++)
            assert_int_equal(launch_once(&l, &ns), 0);
        assert_int_equal(launch_check(&l, 7, what, sizeof(what)), 0);
        assert_int_equal(launch_once(&l, &ns), 0);
        gpu.deaf = cases[i].deaf; /* what was right before does not help */
        gpu.forgetful = cases[i].forgetful;
        if (gpu.forgetful) /* one that it forgot, before the check reads */
            assert_int_equal(launch_once(&l, &ns), 0);
        assert_int_equal(launch_check(&l, 7, what, sizeof(what)), -EBADMSG);
        if (!strstr(what, cases[i].words))
            fail_msg("%s: '%s'", cases[i].op, what);
        launch_close(&l);
    }
}

/* Whichever call fails: the error comes out, and nothing is left open. */
static void test_every_failure(void **state)
{
    (void)state;
    for (const struct launch_op *op = launch_ops; op->name; op++) {
        bool failed = true;

        for (unsigned at = 1; failed; at++) {
            struct gpu gpu = new_gpu();
            struct launch l;
            char what[160];
            uint64_t ns;
            int err;

            gpu.fail_at = at;
            err = launch_open(&l, &gpu, op, 2, 64);
            if (!err)
                err = launch_once(&l, &ns);
            if (!err)
                err = launch_check(&l, 7, what, sizeof(what));
            failed = err != 0;
            if (failed)
                assert_int_equal(err, -EIO);
            launch_close(&l);
            if (gpu.resources)
                fail_msg("%s: %u things open after call %u failed", op->name, gpu.resources, at);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),         cmocka_unit_test(test_every_operation),
        cmocka_unit_test(test_what_is_timed), cmocka_unit_test(test_queue_stays_short),
        cmocka_unit_test(test_many),          cmocka_unit_test(test_graph_has_its_nodes),
        cmocka_unit_test(test_wrong_data),    cmocka_unit_test(test_every_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
