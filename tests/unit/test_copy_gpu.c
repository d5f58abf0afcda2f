/* SPDX-License-Identifier: Apache-2.0 */
/* Copies with GPUs, over made-up ones with exact times: memory and its check, lanes, chains, and what
 * is said of nodes and shared links. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>

#include "benches/copy/gpu_copy.h"
#include "tests/unit/fake_copy_gpu.h"

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

static void test_every_byte_is_checked(void **state)
{
    const size_t sizes[] = {1, 7, 8, 9, 16, 63, 5000003};
    struct gpu gpu = fake_gpu(1);

    (void)state;
    for (int on_host = 0; on_host < 2; on_host++)
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
            struct gpu_copy_memory m;
            make_memory(&m, &gpu, COPY_PINNED, on_host, sizes[s]);
            assert_int_equal(gpu_copy_memory_fill(&m, 3, false), 0);
            assert_true(wrong_byte(&m, 3) == COPY_MEMORY_RIGHT);
            assert_true(wrong_byte(&m, 4) != COPY_MEMORY_RIGHT);
            const size_t spoilt[] = {0, sizes[s] / 2, sizes[s] - 1};
            for (size_t i = 0; i < 3; i++) {
                ((char *)m.at)[spoilt[i]] ^= 1;
                assert_int_equal(wrong_byte(&m, 3), spoilt[i]);
                ((char *)m.at)[spoilt[i]] ^= 1;
            }
            assert_int_equal(gpu_copy_memory_spoil(&m), 0);
            assert_int_equal(wrong_byte(&m, 3), sizes[s] / 2);
            assert_int_equal(gpu_copy_memory_poison(&m), 0);
            assert_int_equal(wrong_byte(&m, 3), 0);
            gpu_copy_memory_free(&m);
            assert_int_equal(gpu.opened, 0);
        }
}

/* Both sides make the same words: what the host filled is right by the device's filling. */
static void test_host_and_device_fill_alike(void **state)
{
    struct gpu gpu = fake_gpu(1);
    struct gpu_copy_memory host, device;

    (void)state;
    make_memory(&host, &gpu, COPY_PINNED, true, 1000);
    make_memory(&device, &gpu, COPY_PINNED, false, 1000);
    gpu_copy_memory_fill(&host, 9, false);
    gpu_copy_memory_fill(&device, 9, false);
    assert_memory_equal(host.at, device.at, 1000);
    gpu_copy_memory_free(&host);
    gpu_copy_memory_free(&device);
}

static void test_windows_of_large_memory(void **state)
{
    const size_t bytes = ((size_t)40 << 20) + 13, window = (size_t)1 << 20;
    struct gpu gpu = fake_gpu(1);
    struct gpu_copy_memory m;

    (void)state;
    make_memory(&m, &gpu, COPY_WRITE_COMBINED, true, bytes);
    gpu_copy_memory_fill(&m, 5, false);
    assert_true(wrong_byte(&m, 5) == COPY_MEMORY_RIGHT);
    const size_t seen[] = {0, window - 1, bytes - 1, bytes - window,
                           (bytes - window) / 15 * 7 + window / 2};
    for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++) {
        ((char *)m.at)[seen[i]] ^= 4;
        assert_int_equal(wrong_byte(&m, 5), seen[i]);
        ((char *)m.at)[seen[i]] ^= 4;
    }
    gpu_copy_memory_free(&m);
}

static void test_kinds_are_the_drivers(void **state)
{
    const struct {
        enum copy_memory kind;
        bool on_host;
        enum gpu_memory driver;
    } kinds[] = {{COPY_PINNED, true, GPU_PINNED},
                 {COPY_WRITE_COMBINED, true, GPU_WRITE_COMBINED},
                 {COPY_MANAGED, true, GPU_MANAGED},
                 {COPY_WRITE_COMBINED, false, GPU_DEVICE}};
    struct gpu gpu = fake_gpu(1);

    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct gpu_copy_memory m;
        make_memory(&m, &gpu, kinds[i].kind, kinds[i].on_host, 64);
        assert_int_equal(gpu.last_kind, kinds[i].driver);
        gpu_copy_memory_free(&m);
    }
}

static void make_lane(struct gpu_copy_lane *l, struct gpu *gpu, enum gpu_copy_how how, size_t bytes)
{
    *l = (struct gpu_copy_lane){.gpu = gpu, .how = how, .to_device = true, .bytes = bytes};
    make_memory(&l->src, gpu, how == GPU_COPY_MIGRATE ? COPY_MANAGED : COPY_PINNED, true, bytes);
    if (how != GPU_COPY_MIGRATE)
        make_memory(&l->dst, gpu, COPY_PINNED, false, bytes);
    assert_int_equal(gpu_copy_lane_open(l, 1, NULL), 0);
}

static void test_lanes_carry_their_bytes(void **state)
{
    const enum gpu_copy_how hows[] = {GPU_COPY_ENGINE, GPU_COPY_KERNEL};
    const size_t sizes[] = {1, 16, 100003};

    (void)state;
    for (int h = 0; h < 2; h++)
        for (int s = 0; s < 3; s++) {
            struct gpu gpu = fake_gpu(1);
            struct gpu_copy_lane l;
            size_t at;
            make_lane(&l, &gpu, hows[h], sizes[s]);
            assert_int_equal(gpu_copy_lane_fill(&l, 7), 0);
            assert_int_equal(gpu_copy_lane_check(&l, 7, &at), 0);
            assert_int_equal(at, 0); /* nothing came yet */
            assert_int_equal(gpu_copy_lane_once(&l), 0);
            assert_int_equal(gpu_copy_lane_check(&l, 7, &at), 0);
            assert_true(at == COPY_MEMORY_RIGHT);
            assert_int_equal(gpu_copy_lane_fill(&l, 7), 0); /* what was there is no more */
            assert_int_equal(gpu_copy_lane_check(&l, 7, &at), 0);
            assert_int_equal(at, 0);
            gpu.forget = true;
            assert_int_equal(gpu_copy_lane_fill(&l, 8), 0);
            assert_int_equal(gpu_copy_lane_once(&l), 0);
            gpu.forget = false;
            assert_int_equal(gpu_copy_lane_check(&l, 8, &at), 0);
            assert_int_equal(at, sizes[s] - 1);
            gpu_copy_lane_close(&l);
            assert_int_equal(gpu.opened, 0);
        }
}

static void test_times_of_lanes(void **state)
{
    struct gpu fast = fake_gpu(1), slow = fake_gpu(3);
    struct gpu_copy_lane one, two, *lanes[] = {&one, &two};
    struct gpu_copy_pace pace = {0};
    uint64_t ns[2], span;

    (void)state;
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

static void test_span_of_some_lanes(void **state)
{
    struct gpu gpu = fake_gpu(1), other = fake_gpu(8);
    struct gpu_copy_lane there, back, beside, *lanes[] = {&there, &back, &beside};
    struct gpu_copy_pace pace = {0};
    uint64_t ns[3], span;

    (void)state;
    make_lane(&there, &gpu, GPU_COPY_ENGINE, 1000);
    make_lane(&back, &gpu, GPU_COPY_ENGINE, 1000);
    make_lane(&beside, &other, GPU_COPY_ENGINE, 1000);
    assert_int_equal(gpu_copy_time_by_events(lanes, 3, 10, &pace, ns, &span), 0);
    assert_int_equal(span, 80000);
    assert_int_equal(gpu_copy_span(lanes, 2, 10, &pace, &span), 0);
    assert_int_equal(span, 10000);
    for (int i = 0; i < 3; i++)
        gpu_copy_lane_close(lanes[i]);
}

/* Whatever fails: the stream is let go, and all are waited for. */
static void test_failing_lanes_are_released(void **state)
{
    struct gpu a = fake_gpu(1), b = fake_gpu(1);
    struct gpu_copy_lane one, two, *lanes[] = {&one, &two};
    struct gpu_copy_pace pace = {0};
    uint64_t ns[2], span;

    (void)state;
    make_lane(&one, &a, GPU_COPY_ENGINE, 64);
    make_lane(&two, &b, GPU_COPY_ENGINE, 64);
    b.fail_copy = (int)b.copies + 5;
    assert_int_equal(gpu_copy_time_by_events(lanes, 2, 10, &pace, ns, &span), -EIO);
    assert_false(a.held);
    assert_true(a.waits && b.waits);
    gpu_copy_lane_close(&one);
    gpu_copy_lane_close(&two);
    assert_int_equal(a.opened + b.opened, 0);
}

static void test_held_queues_are_bounded(void **state)
{
    (void)state;
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

static void test_managed_pages_come_back_before_each_copy(void **state)
{
    struct gpu gpu = fake_gpu(1);
    struct gpu_copy_lane l;
    uint64_t ns;

    (void)state;
    make_lane(&l, &gpu, GPU_COPY_MIGRATE, 4096);
    assert_int_equal(gpu_copy_time_moving(&l, 3, &ns), 0);
    assert_string_equal(gpu.moved, "hdhdhd");
    gpu.moves = 0;
    memset(gpu.moved, 0, sizeof(gpu.moved));
    l.to_device = false;
    assert_int_equal(gpu_copy_time_moving(&l, 1, &ns), 0);
    assert_string_equal(gpu.moved, "dh");
    assert_int_equal(gpu.holds, 0);
    gpu_copy_lane_close(&l);
    assert_int_equal(gpu.opened, 0);
}

/* Two kernels of one GPU must find room beside one another. */
static void test_lanes_leave_room(void **state)
{
    struct gpu gpu = fake_gpu(1);
    struct gpu_copy_lane l;

    (void)state;
    make_lane(&l, &gpu, GPU_COPY_KERNEL, (size_t)1 << 20);
    unsigned alone = l.grid;
    gpu_timer_close(&l.timer);
    assert_int_equal(gpu_copy_lane_open(&l, 2, NULL), 0);
    assert_int_equal(alone, 8 * 10);
    assert_int_equal(l.grid, 4 * 10);
    gpu_copy_lane_close(&l);
}

static void test_level(void **state)
{
    struct gpu_copy_level l = {0};

    (void)state;
    assert_true(isnan(gpu_copy_level_median(&l)));
    gpu_copy_level_add(&l, 3);
    gpu_copy_level_add(&l, 1);
    gpu_copy_level_add(&l, 2);
    assert_true(gpu_copy_level_median(&l) == 2);
    for (int i = 0; i < 1000; i++)
        gpu_copy_level_add(&l, 7);
    assert_true(gpu_copy_level_median(&l) == 7);
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
    f.c.others[1] = &f.other;
    return &f;
}

static void test_chain(void **state)
{
    struct fixture *f = fixture();
    uint64_t ns;

    (void)state;
    f->params.metric = COPY_LOAD_LATENCY;
    for (int on_host = 0; on_host < 2; on_host++) {
        f->c.lanes[0] = (struct gpu_copy_lane){.gpu = &f->gpu, .bytes = 4096};
        make_memory(&f->c.lanes[0].src, &f->gpu, COPY_PINNED, on_host, 4096);
        assert_int_equal(gpu_copy_lane_open(&f->c.lanes[0], 1, NULL), 0);
        assert_int_equal(gpu_copy_chain_open(&f->pt, &f->c), 0);
        for (uint64_t hops = 1; hops < 100; hops += 7) {
            assert_int_equal(gpu_copy_run_chain(&f->c, hops, &ns), 0);
            assert_int_equal(ns, hops * 100);
            assert_int_equal(gpu_copy_chain_check(&f->pt, &f->c), 0);
        }
        /* All 32 lines are visited before one comes again. */
        uint64_t *base = f->c.lanes[0].src.at, *at = base;
        bool seen[32] = {0};
        for (uint64_t i = 0; i < 32; i++, at = (uint64_t *)*at) {
            assert_in_range((uintptr_t)at, (uintptr_t)base, (uintptr_t)(base + 511));
            assert_int_equal((at - base) % 16, 0);
            assert_false(seen[(at - base) / 16]);
            seen[(at - base) / 16] = true;
        }
        assert_ptr_equal(at, base);
        for (uint64_t i = 0; i < 32; i++) /* the chain stands still */
            base[i * 16] = (uintptr_t)(base + i * 16);
        assert_int_equal(gpu_copy_run_chain(&f->c, 5, &ns), 0);
        assert_int_equal(gpu_copy_chain_check(&f->pt, &f->c), -EBADMSG);
        gpu_copy_chain_close(&f->c);
        gpu_copy_lane_close(&f->c.lanes[0]);
        assert_int_equal(f->gpu.opened, 0);
    }
    f->params.size = 255;
    f->c.lanes[0].gpu = &f->gpu;
    assert_int_equal(gpu_copy_chain_open(&f->pt, &f->c), -EOPNOTSUPP);
    gpu_copy_chain_close(&f->c);
}

/* What is said of a node whose copies take `ns`, with the other one's of 1000 ns known. */
static const char *node_verdict(struct fixture *f, int near, unsigned node, double ns)
{
    for (unsigned n = 0; n < 2; n++) {
        f->c.ends[0].index = n ? node : 1 - node;
        f->c.time_ns = (struct gpu_copy_level){0};
        gpu_copy_level_add(&f->c.time_ns, n ? ns : 1000);
        f->gpu.base.facts.numa_node = near;
        f->pt.reason[0] = f->pt.evidence[0] = 0;
        gpu_copy_node_verdict(&f->pt, &f->c);
    }
    ceilings_release(&f->session.nodes);
    char *of_pages = strstr(f->pt.reason, "pages looked at"); /* this machine may have one node */
    char *rest = of_pages ? strstr(of_pages, "; ") : NULL;
    return rest ? rest + 2 : f->pt.reason;
}

static void test_nodes_are_compared(void **state)
{
    struct fixture *f = fixture();

    (void)state;
    setenv("HWLOC_SYNTHETIC", "pack:2 [numa(memory=8GB)] core:1 pu:1", 1);
    make_memory(&f->c.lanes[0].src, &f->gpu, COPY_PINNED, true, 4096);
    assert_string_equal(node_verdict(f, 0, 1, 1250),
                        "remote node1 gives 20 % less bandwidth than node0: bind to node0");
    assert_string_equal(node_verdict(f, 1, 1, 800),
                        "node0 gives 20 % less bandwidth than local node1: bind to node1");
    assert_string_equal(node_verdict(f, -1, 1, 2000),
                        "node1 gives 50 % less bandwidth than node0: bind to node0");
    assert_string_equal(node_verdict(f, 0, 1, 1020), "remote node1 is as good as node0");
    f->params.metric = COPY_LATENCY;
    assert_string_equal(node_verdict(f, 0, 1, 1250),
                        "remote node1 takes 25 % more time than node0: bind to node0");
    gpu_copy_memory_free(&f->c.lanes[0].src);
    topo_close(f->pt.topo_loaded);
    unsetenv("HWLOC_SYNTHETIC");
}

static void test_series_of_several_gpus(void **state)
{
    struct fixture *f = fixture();

    (void)state;
    f->c.groups = 3;
    gpu_copy_together_series(&f->pt, &f->c);
    assert_int_equal(f->pt.n_series, 3);
    assert_string_equal(f->pt.series[0].set[1].value, "alone");
    assert_string_equal(f->pt.series[1].set[1].value, "together");
    assert_string_equal(f->pt.series[2].set[1].value, "all");
    assert_true(f->pt.series[1].quantity == 4096);
    assert_true(f->pt.series[2].quantity == 3 * 4096);
    f->pt.n_series = 0;
    f->c.each = 2;
    gpu_copy_together_series(&f->pt, &f->c);
    assert_int_equal(f->pt.n_series, 7);
    assert_string_equal(f->pt.series[5].set[0].value, "sum");
    assert_string_equal(f->pt.series[5].set[1].value, "together");
    assert_true(f->pt.series[5].quantity == 2 * 4096);
    assert_true(f->pt.series[6].quantity == 6 * 4096);
}

static void test_several_gpus_at_once(void **state)
{
    struct fixture *f = fixture();
    uint64_t ns[SAMPLER_SERIES_MAX];

    (void)state;
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
    assert_true(gpu_copy_level_median(&f->c.overlap) == 1);
    assert_int_equal(gpu_copy_together_verdict(&f->pt, &f->c), 0);
    assert_string_equal(f->pt.reason,
                        "beside fake:1 this GPU keeps 50 % of its rate: they share a link");
    f->c.together = (struct gpu_copy_level){0};
    gpu_copy_level_add(&f->c.together, 0.95);
    f->pt.reason[0] = 0;
    assert_int_equal(gpu_copy_together_verdict(&f->pt, &f->c), 0);
    assert_string_equal(f->pt.reason, "");
    for (unsigned d = 0; d < 2; d++)
        gpu_copy_lane_close(&f->c.lanes[d]);
    assert_int_equal(f->gpu.opened + f->other.opened, 0);
}

/* A driver's threads are bound as the thread that starts it. */
static void test_threads_are_let_go(void **state)
{
    cpu_set_t before, bound, after;
    struct topo *topo;
    unsigned cpu;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    assert_int_equal(topo_open(&topo), 0);
    assert_int_equal(topo_spread(topo, -1, 1, &cpu), 0);
    assert_int_equal(topo_bind_self(topo, cpu), 0);
    assert_int_equal(sched_getaffinity(0, sizeof(bound), &bound), 0);
    topo_unbind_self(topo);
    assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
    assert_int_equal(CPU_COUNT(&bound), 1);
    assert_true(CPU_EQUAL(&before, &after));
    topo_close(topo);
}

/* Of several GPUs the one that is lost is named, else one that said something. */
static void test_who_is_to_blame(void **state)
{
    struct fixture *f = fixture();

    (void)state;
    f->c.groups = 2;
    assert_int_equal(gpu_copy_failed(&f->pt, &f->c, -EIO), -EIO);
    assert_non_null(strstr(f->pt.reason, "copying failed: "));
    snprintf(f->other.base.error, GPU_ERROR_BYTES, "the other's words");
    f->pt.reason[0] = 0;
    gpu_copy_failed(&f->pt, &f->c, -EIO);
    assert_string_equal(f->pt.reason, "the other's words");
    snprintf(f->gpu.base.error, GPU_ERROR_BYTES, "its own words");
    f->pt.reason[0] = 0;
    gpu_copy_failed(&f->pt, &f->c, -EIO);
    assert_string_equal(f->pt.reason, "its own words");
    f->other.base.lost = true;
    f->pt.reason[0] = 0;
    gpu_copy_failed(&f->pt, &f->c, -EIO);
    assert_string_equal(f->pt.reason, "the other's words");
}

static void test_sample_of_pairs(void **state)
{
    (void)state;
    for (unsigned n = 2; n <= 40; n++) {
        unsigned sources[40] = {0}, destinations[40] = {0}, all = 0;
        for (unsigned i = 0; i < n; i++)
            for (unsigned j = 0; j < n; j++)
                if (i != j && copy_pair_sampled(i, j, n)) {
                    sources[i]++;
                    destinations[j]++;
                    all++;
                }
        assert_true(n > 8 || all == n * (n - 1));
        assert_true(n <= 8 || all <= 4 * n);
        for (unsigned i = 0; i < n; i++) {
            assert_true(n < 3 || (sources[i] >= 2 && destinations[i] >= 2));
            assert_true(copy_pair_sampled(i, (i + 1) % n, n));
            assert_true(copy_pair_sampled(i, (i + n / 2) % n, n));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_byte_is_checked),
        cmocka_unit_test(test_host_and_device_fill_alike),
        cmocka_unit_test(test_windows_of_large_memory),
        cmocka_unit_test(test_kinds_are_the_drivers),
        cmocka_unit_test(test_lanes_carry_their_bytes),
        cmocka_unit_test(test_times_of_lanes),
        cmocka_unit_test(test_span_of_some_lanes),
        cmocka_unit_test(test_failing_lanes_are_released),
        cmocka_unit_test(test_held_queues_are_bounded),
        cmocka_unit_test(test_managed_pages_come_back_before_each_copy),
        cmocka_unit_test(test_lanes_leave_room),
        cmocka_unit_test(test_level),
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_nodes_are_compared),
        cmocka_unit_test(test_series_of_several_gpus),
        cmocka_unit_test(test_several_gpus_at_once),
        cmocka_unit_test(test_threads_are_let_go),
        cmocka_unit_test(test_who_is_to_blame),
        cmocka_unit_test(test_sample_of_pairs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
