/* SPDX-License-Identifier: Apache-2.0 */
/* Launch cost, over a made-up device: what is timed, and what is left behind. */
#include "benches/launch/gpu_launch.h"
#include "tests/unit/fake_gpu.h"
#include "tests/unit/unit.h"

#define WAIT_NS 1000000u

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

static int event_sync(struct gpu_event *e)
{
    return call(e->gpu);
}

static struct gpu new_gpu(void)
{
    static struct gpu_ops ops;
    struct gpu gpu = fake_gpu(1);

    ops = fake_ops;
    ops.stream_sync = stream_wait;
    ops.event_sync = event_sync;
    ops.alloc_ordered = alloc_ordered;
    ops.free_ordered = free_ordered;
    gpu.base.ops = &ops;
    return gpu;
}

static void open_op(struct launch *l, struct gpu *gpu, const char *name)
{
    const struct launch_op *op = launch_find(name);

    assert_non_null(op);
    assert_int_equal(launch_open(l, gpu, op, 1, 64), 0);
    gpu->wait_ns = WAIT_NS;
    gpu->waits = gpu->launches = 0;
}

/* The queue is emptied before it is full, outside of what is timed. */
TEST(test_queue_stays_short)
{
    static const char *const ops[] = {"launch", "alloc-ordered"};

    for (size_t i = 0; i < 2; i++) {
        struct gpu gpu = new_gpu();
        struct launch l;
        uint64_t ns = 0, best = UINT64_MAX; /* of those that a wait came with */
        unsigned before = 0;

        open_op(&l, &gpu, ops[i]);
        for (int k = 0; k < 300 || (best >= WAIT_NS && k < 30000); k++) {
            assert_int_equal(launch_once(&l, &ns), 0);
            if (gpu.waits > before)
                best = ns < best ? ns : best;
            before = gpu.waits;
        }
        assert_in_range(gpu.queued_most, GPU_HELD_MAX - 2, GPU_HELD_MAX + 2);
        assert_true(gpu.waits >= 1 && best < WAIT_NS);
        launch_close(&l);
        assert_int_equal(gpu.opened, 0);
    }
}

/* A rate is of all launches and the wait for them; whichever call fails, nothing is left open. */
TEST(test_many)
{
    struct launch l;
    uint64_t ns = 0;
    int err = -EIO;

    assert_null(launch_find("no-such"));
    for (unsigned at = 1; err; at++) {
        struct gpu gpu = new_gpu();
        gpu.fail_at = at;
        err = launch_open(&l, &gpu, launch_find("launch-rate"), 1, 64);
        gpu.wait_ns = WAIT_NS;
        gpu.waits = gpu.launches = 0;
        if (!err)
            err = launch_many(&l, 50, &ns);
        assert_true(err == -EIO ||
                    (gpu.launches == 50 && gpu.waits == 1 && l.count == 50 && ns >= WAIT_NS));
        launch_close(&l);
        launch_close(&l); /* twice does no harm */
        assert_int_equal(gpu.opened, 0);
    }
}
