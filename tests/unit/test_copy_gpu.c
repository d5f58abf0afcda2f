/* SPDX-License-Identifier: Apache-2.0 */
/* Copies with GPUs, over made-up ones with exact times: memory and its check, lanes, chains, and what
 * is said of nodes and shared links. */
#include <sched.h>

#include "benches/copy/copy_work.h"
#include "benches/copy/gpu_copy.h"
#include "tests/unit/fake_gpu.h"
#include "tests/unit/unit.h"

static void make_memory(struct gpu_copy_memory *m, struct gpu *gpu, enum copy_memory kind,
                        bool on_host, size_t bytes)
{
    struct copy_memory_config config = {
        .gpu = gpu, .kind = kind, .on_host = on_host, .node = -1, .bytes = bytes};
    char error[160];

    assert_int_equal(gpu_copy_memory_alloc(m, NULL, &config, error, sizeof(error)), 0);
}

static size_t wrong_byte(struct gpu_copy_memory *m, uint64_t seed)
{
    size_t at;

    assert_int_equal(gpu_copy_memory_check(m, seed, false, &at), 0);
    return at;
}

/* Of small memory every byte is looked at, of large memory windows; host and device make the same. */
TEST(test_every_byte_is_checked)
{
    const size_t sizes[] = {1, 7, 8, 9, 63, 5000003, ((size_t)40 << 20) + 13},
                 window = (size_t)1 << 20;
    static const enum gpu_memory drivers[] = {[COPY_PINNED] = GPU_PINNED,
                                              [COPY_WRITE_COMBINED] = GPU_WRITE_COMBINED,
                                              [COPY_MANAGED] = GPU_MANAGED};
    struct gpu gpu = fake_gpu(1);

    for (int n = 0; n < 2 * 7; n++) {
        size_t bytes = sizes[n / 2];
        int on_host = n % 2, kind = n / 2 % 2 ? COPY_PINNED : COPY_WRITE_COMBINED;
        const size_t spoilt[] = {0, bytes - 1, bytes < window ? bytes / 2 : window - 1,
                                 bytes < 40 * window ? bytes - 1 : bytes - window,
                                 bytes < 40 * window ? 0 : (bytes - window) / 15 * 7 + window / 2};
        struct gpu_copy_memory m;
        make_memory(&m, &gpu, kind, on_host, bytes);
        assert_int_equal(gpu.last_kind, on_host ? drivers[kind] : GPU_DEVICE);
        assert_int_equal(gpu_copy_memory_fill(&m, 3, false), 0);
        assert_true(wrong_byte(&m, 3) == COPY_MEMORY_RIGHT);
        assert_true(wrong_byte(&m, 4) != COPY_MEMORY_RIGHT);
        for (size_t i = 0; i < 5; i++) {
            ((char *)m.at)[spoilt[i]] ^= 1;
            assert_int_equal(wrong_byte(&m, 3), spoilt[i]);
            ((char *)m.at)[spoilt[i]] ^= 1;
        }
        if (bytes < window) {
            struct gpu_copy_memory other;
            make_memory(&other, &gpu, COPY_MANAGED, true, bytes);
            assert_int_equal(gpu.last_kind, GPU_MANAGED);
            gpu_copy_memory_fill(&other, 3, false);
            assert_memory_equal(other.at, m.at, bytes);
            gpu_copy_memory_free(&other);
        }
        assert_int_equal(gpu_copy_memory_spoil(&m), 0);
        assert_true(bytes > 40 * window || wrong_byte(&m, 3) == bytes / 2);
        assert_int_equal(gpu_copy_memory_poison(&m), 0);
        assert_int_equal(wrong_byte(&m, 3), 0);
        gpu_copy_memory_free(&m);
        assert_int_equal(gpu.opened, 0);
    }
}

/* Each stream beside those that are timed may share a hardware queue with one that is. */
TEST(test_a_gpu_has_one_stream_for_what_is_not_timed)
{
    struct gpu gpu = fake_gpu(1), other = fake_gpu(1);
    struct gpu_copy_memory m[3];

    make_memory(&m[0], &gpu, COPY_PINNED, true, 64);
    make_memory(&m[1], &gpu, COPY_PINNED, false, 64);
    make_memory(&m[2], &other, COPY_PINNED, false, 64);
    assert_ptr_equal(m[0].stream, m[1].stream);
    assert_ptr_not_equal(m[0].stream, m[2].stream);
    assert_int_equal(gpu.opened, 2 + 1);
    gpu_copy_memory_free(&m[0]);
    assert_int_equal(gpu_copy_memory_fill(&m[1], 3, false), 0); /* it is still there */
    gpu_copy_memory_free(&m[1]);
    gpu_copy_memory_free(&m[2]);
    assert_int_equal(gpu.opened + other.opened, 0);
}

static void make_lane(struct gpu_copy_lane *l, struct gpu *gpu, enum gpu_copy_how how, size_t bytes)
{
    *l = (struct gpu_copy_lane){.gpu = gpu, .how = how, .to_device = true, .bytes = bytes};
    make_memory(&l->src, gpu, how == GPU_COPY_MIGRATE ? COPY_MANAGED : COPY_PINNED, true, bytes);
    if (how != GPU_COPY_MIGRATE)
        make_memory(&l->dst, gpu, COPY_PINNED, false, bytes);
    assert_int_equal(gpu_copy_lane_open(l, 1, NULL), 0);
}

static size_t lane_wrong(struct gpu_copy_lane *l, uint64_t seed)
{
    size_t at;

    assert_int_equal(gpu_copy_lane_check(l, seed, &at), 0);
    return at;
}

TEST(test_lanes_carry_their_bytes)
{
    const size_t sizes[] = {1, 16, 100003};

    for (int n = 0; n < 6; n++) {
        struct gpu gpu = fake_gpu(1);
        struct gpu_copy_lane l;
        make_lane(&l, &gpu, n % 2 ? GPU_COPY_KERNEL : GPU_COPY_ENGINE, sizes[n / 2]);
        assert_int_equal(gpu_copy_lane_fill(&l, 7), 0);
        assert_int_equal(lane_wrong(&l, 7), 0); /* nothing came yet */
        assert_int_equal(gpu_copy_lane_once(&l), 0);
        assert_true(lane_wrong(&l, 7) == COPY_MEMORY_RIGHT);
        assert_int_equal(gpu_copy_lane_fill(&l, 7), 0); /* what was there is no more */
        assert_int_equal(lane_wrong(&l, 7), 0);
        gpu.forget = true;
        assert_int_equal(gpu_copy_lane_fill(&l, 8), 0);
        assert_int_equal(gpu_copy_lane_once(&l), 0);
        gpu.forget = false;
        assert_int_equal(lane_wrong(&l, 8), sizes[n / 2] - 1);
        gpu_copy_lane_close(&l);
        assert_int_equal(gpu.opened, 0);
    }
}

TEST(test_times_of_lanes)
{
    struct gpu fast = fake_gpu(1), slow = fake_gpu(3);
    struct gpu_copy_lane one, two, *lanes[] = {&one, &two};
    struct gpu_copy_pace pace = {0};
    uint64_t ns[2], span;

    make_lane(&one, &fast, GPU_COPY_ENGINE, 1000);
    make_lane(&two, &slow, GPU_COPY_ENGINE, 1000);
    assert_int_equal(gpu_copy_time_by_events(lanes, 1, 700, &pace, ns, &span), 0);
    assert_int_equal(ns[0], 700 * 1000);
    assert_int_equal(span, 700 * 1000);
    assert_int_equal(fast.holds, 3); /* in parts */
    /* Nothing is known yet: 30 copies each, and the slow one is at it for longer. */
    assert_int_equal(gpu_copy_time_by_events(lanes, 2, 30, &pace, ns, &span), 0);
    assert_int_equal(ns[0], 30 * 1000);
    assert_int_equal(ns[1], 30 * 3000);
    assert_int_equal(span, 30 * 3000);
    assert_true(fabs(pace.overlap - 1.0 / 3) < 1e-9);
    assert_int_equal(fast.holds, 4);
    assert_int_equal(slow.holds, 0); /* it waits for the other's start */
    assert_true(slow.waits > 0);
    /* From then on they end together: 30 copies beside 10, all in 30000 ns. */
    unsigned before = slow.copies;
    assert_int_equal(gpu_copy_time_by_events(lanes, 2, 30, &pace, ns, &span), 0);
    assert_int_equal(slow.copies - before, 10);
    assert_int_equal(ns[0], 30 * 1000);
    assert_int_equal(ns[1], 30 * 3000); /* as if it had made 30, too */
    assert_int_equal(span, 30000 * 60 / 40);
    assert_true(pace.overlap == 1);
    one.staged = two.staged = true;
    assert_int_equal(gpu_copy_time_by_events(lanes, 2, 30, &pace, ns, &span), 0);
    assert_int_equal(span, 30000 * 60 / 40);
    assert_int_equal(gpu_copy_time_by_events(lanes, 1, 10, &pace, ns, &span), 0);
    assert_int_equal(ns[0], 10 * 1000);
    assert_int_equal(fast.holds, 5); /* never, when staged */
    gpu_copy_lane_close(&one);
    gpu_copy_lane_close(&two);
    assert_int_equal(fast.opened + slow.opened, 0);
}

/* Whatever fails: the stream is let go, and all are waited for. Of several lanes some have a span of
 * their own. */
TEST(test_failing_lanes_are_released)
{
    struct gpu a = fake_gpu(1), b = fake_gpu(8);
    struct gpu_copy_lane one, two, back, *lanes[] = {&one, &back, &two};
    struct gpu_copy_pace pace = {0};
    uint64_t ns[3], span;

    make_lane(&one, &a, GPU_COPY_ENGINE, 1000);
    make_lane(&back, &a, GPU_COPY_ENGINE, 1000);
    make_lane(&two, &b, GPU_COPY_ENGINE, 1000);
    assert_int_equal(gpu_copy_time_by_events(lanes, 3, 10, &pace, ns, &span), 0);
    assert_int_equal(span, 80000);
    assert_int_equal(gpu_copy_span(lanes, 2, 10, &pace, &span), 0);
    assert_int_equal(span, 10000);
    a.waits = b.waits = 0;
    b.fail_copy = (int)b.copies + 1;
    assert_int_equal(gpu_copy_time_by_events(lanes, 3, 10, &pace, ns, &span), -EIO);
    assert_false(a.held || b.held);
    assert_true(a.waits && b.waits);
    for (int i = 0; i < 3; i++)
        gpu_copy_lane_close(lanes[i]);
    assert_int_equal(a.opened + b.opened, 0);
}

TEST(test_held_queues_are_bounded)
{
    assert_int_equal(gpu_copy_most(1, 1, false), 0);
    for (unsigned lanes = 2; lanes <= GPU_COPY_LANES_MAX; lanes++) {
        for (unsigned same = 2; same <= lanes; same++) {
            uint64_t most = gpu_copy_most(lanes, same, false);
            assert_true(most > 0);
            assert_true(same * most + lanes + 4 <= GPU_HELD_MAX);
        }
        assert_true(gpu_copy_most(lanes, 2, false) > 50);
    }
    assert_true(gpu_copy_most(1, 2, true) > 50);
}

TEST(test_managed_pages_come_back_before_each_copy)
{
    struct gpu gpu = fake_gpu(1);
    struct gpu_copy_lane l;
    uint64_t ns;

    make_lane(&l, &gpu, GPU_COPY_MIGRATE, 4096);
    assert_int_equal(gpu_copy_time_moving(&l, 3, &ns), 0);
    l.to_device = false;
    assert_int_equal(gpu_copy_time_moving(&l, 1, &ns), 0);
    assert_memory_equal(gpu.moved, "hdhdhdd", 7);
    assert_int_equal(gpu.holds, 0);
    gpu_copy_lane_close(&l);
    make_lane(&l, &gpu, GPU_COPY_KERNEL, (size_t)1 << 20);
    assert_int_equal(l.grid, 8 * 10);
    gpu_timer_close(&l.timer);
    assert_int_equal(gpu_copy_lane_open(&l, 2, NULL), 0); /* two kernels find room */
    assert_int_equal(l.grid, 4 * 10);
    gpu_copy_lane_close(&l);
    assert_int_equal(gpu.opened, 0);
}

/* A point as the hooks see it, without its GPUs' module. */
struct fixture {
    struct gpu gpu, other;
    struct copy_session session;
    struct copy_params params;
    struct bench_common common;
    struct point pt;
    struct gpu_copy c;
};

static const struct bench_column copy_columns[] = {
    {.name = "numa"}, {.name = "clock"}, {.name = "load"}, {.name = "address"}, {.name = NULL}};
static const struct bench_rows copy_rows = {.columns = copy_columns};
static const struct bench copy_bench = {.name = "copy", .rows = &copy_rows};

static struct fixture *fixture(void)
{
    static struct fixture f;

    f = (struct fixture){.gpu = fake_gpu(1), .other = fake_gpu(1)};
    f.params = (struct copy_params){
        .source = "node0", .destination = "cuda:0", .together = "none", .size = 4096};
    f.pt = (struct point){
        .bench = &copy_bench, .common = &f.common, .params = &f.params, .bench_state = &f.session};
    f.c = (struct gpu_copy){.params = &f.params,
                            .engine = COPY_CE,
                            .memory = COPY_PINNED,
                            .ends = {{.gpu = false}, {.gpu = true}},
                            .gpu = {NULL, &f.gpu},
                            .each = 1,
                            .groups = 1};
    f.other.base.index = 1;
    f.c.group[1].runner = &f.other;
    return &f;
}

TEST(test_several_gpus_at_once)
{
    struct fixture *f = fixture();
    uint64_t ns[SAMPLER_SERIES_MAX];

    f->c.groups = 2;
    f->other.ns_per_byte = 2;
    f->gpu.slow_after = 10; /* alone first, and then beside the other */
    for (unsigned d = 0; d < 2; d++) {
        make_lane(&f->c.lanes[d], d ? &f->other : &f->gpu, GPU_COPY_ENGINE, 4096);
        f->c.all[d] = &f->c.lanes[d];
    }
    assert_int_equal(gpu_copy_run_together(&f->c, 10, ns), 0);
    assert_int_equal(ns[0], 40960);
    assert_int_equal(ns[1], 81920);
    assert_int_equal(ns[2], 81920);
    assert_true(gpu_copy_level_median(&f->c.times.overlap) == 1);
    assert_int_equal(gpu_copy_together_verdict(&f->pt, &f->c), 0);
    assert_true(strstr(f->pt.reason, "fake:1") && strstr(f->pt.reason, "50 %"));
    f->c.times.together = (struct gpu_copy_level){0};
    assert_true(isnan(gpu_copy_level_median(&f->c.times.together)));
    gpu_copy_level_add(&f->c.times.together, 0.95);
    f->pt.reason[0] = 0;
    assert_int_equal(gpu_copy_together_verdict(&f->pt, &f->c), 0);
    assert_string_equal(f->pt.reason, "");
    gpu_copy_level_add(&f->c.times.together, 3);
    gpu_copy_level_add(&f->c.times.together, 1);
    assert_true(gpu_copy_level_median(&f->c.times.together) == 1);
    for (int i = 0; i < 1000; i++)
        gpu_copy_level_add(&f->c.times.together, 7);
    assert_true(gpu_copy_level_median(&f->c.times.together) == 7);
    for (unsigned d = 0; d < 2; d++)
        gpu_copy_lane_close(&f->c.lanes[d]);
    assert_int_equal(f->gpu.opened + f->other.opened, 0);
}

/* A driver's threads are bound as the thread that starts it. */
TEST(test_threads_are_let_go)
{
    cpu_set_t before, bound, after;
    struct topo *topo;
    unsigned cpu;

    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    assert_int_equal(topo_open(&topo), 0);
    assert_int_equal(topo_spread(topo, -1, 1, &cpu), 0);
    assert_int_equal(topo_bind_self(topo, cpu), 0);
    assert_int_equal(sched_getaffinity(0, sizeof(bound), &bound), 0);
    topo_unbind_self(topo);
    assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
    assert_true(CPU_COUNT(&bound) == 1 && CPU_EQUAL(&before, &after));
    topo_close(topo);
}

/* A GPU and itself is no pair; a node and itself is a copy like any other. What is no place is: its row will say what is wrong. */
TEST(test_what_a_sweep_leaves_out)
{
    static const struct {
        const char *source, *destination;
        bool wanted;
    } cases[] = {{"cuda:0", "cuda:1", true},
                 {"cuda:1", "cuda:1", false},
                 {"node0", "node0", true},
                 {"cuda:x", "cuda:x", true}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct copy_params p = {.source = cases[i].source, .destination = cases[i].destination};
        struct point pt = {.params = &p};
        assert_int_equal(copy_wanted(&pt), cases[i].wanted);
    }
}
