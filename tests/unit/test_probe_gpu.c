/* SPDX-License-Identifier: Apache-2.0 */
/* What the probe concludes about GPUs from the kernel alone: ways into their memory, and the window. */
#include "harness/probe/probe.h"
#include "tests/unit/probe_cases.h"

#define ONE       "sys/devices/pci0000:00/0000:00:05.0"
#define TWO       "sys/devices/pci0000:00/0000:00:06.0"
#define REGION(n) "0x0000001000000000 0x000000" n " 0x000000000014220c\n"
#define NONE      "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
#define SMALL     "0x00000000d0000000 0x00000000d0ffffff 0x0000000000040200\n"

static void put_gpu(const struct scratch *s, const char *slot)
{
    char path[256], target[256];

    snprintf(path, sizeof(path), "sys/bus/pci/devices/0000:00:%s", slot);
    snprintf(target, sizeof(target), "../../../devices/pci0000:00/0000:00:%s", slot);
    scratch_link(s, path, target);
    snprintf(path, sizeof(path), "sys/devices/pci0000:00/0000:00:%s/vendor", slot);
    scratch_put(s, path, "0x10de\n");
    snprintf(path, sizeof(path), "sys/devices/pci0000:00/0000:00:%s/device", slot);
    scratch_put(s, path, "0x2330\n");
    snprintf(path, sizeof(path), "sys/devices/pci0000:00/0000:00:%s/class", slot);
    scratch_put(s, path, "0x030200\n");
    snprintf(path, sizeof(path), "sys/devices/pci0000:00/0000:00:%s/driver", slot);
    scratch_link(s, path, "../../../bus/pci/drivers/nvidia");
}

static json_t *probe_and_close(struct scratch *s)
{
    json_t *machine;

    assert_int_equal(probe_machine(s->root, &machine), 0);
    scratch_close(s);
    return machine;
}

/* ---- DMA-BUF ---- */

#define OPEN        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.90.07  Release Build\n"
#define PROPRIETARY "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31\n"

static const struct dma_case {
    const char *version, *kernel, *flavour;
    char dma_buf; /* 'y', 'n', '?' */
    bool peermem;
    enum exam_state state; /* of the way from an adapter to GPU memory */
} dma_cases[] = {
    {OPEN, "6.8.0-40-generic", "open", 'y', false, EXAM_FINE},
    {OPEN, "5.12.0", "open", 'y', false, EXAM_FINE},
    {OPEN, "5.11.22", "open", '?', false, EXAM_UNKNOWN},
    {OPEN, "4.18.0-513.el8", "open", '?', true, EXAM_FINE},
    {PROPRIETARY, "6.8.0", "proprietary", 'n', false, EXAM_FOUND},
    {PROPRIETARY, "6.8.0", "proprietary", 'n', true, EXAM_FINE},
    {NULL, "6.8.0", "(null)", '?', false, EXAM_UNKNOWN},
};

static void put_adapter(const struct scratch *s)
{
    static const char path[] = TWO "/infiniband/mlx5_0/ports/1/";
    char file[256];

    put_gpu(s, "06.0");
    scratch_put(s, TWO "/vendor", "0x15b3\n");
    scratch_put(s, TWO "/class", "0x020700\n");
    scratch_link(s, "sys/class/infiniband/mlx5_0",
                 "../../devices/pci0000:00/0000:00:06.0/infiniband/mlx5_0");
    snprintf(file, sizeof(file), "%sstate", path);
    scratch_put(s, file, "4: ACTIVE\n");
}

static void test_dma_buf(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(dma_cases) / sizeof(*dma_cases); i++) {
        const struct dma_case *c = &dma_cases[i];
        struct scratch s;
        json_t *machine;
        const json_t *gpus, *dma_buf;

        scratch_open(&s);
        put_metal(&s);
        scratch_put(&s, "plumb/absent", "sys/module/nvidia_peermem\nsys/module/nv_peer_mem\n");
        scratch_put(&s, "proc/sys/kernel/osrelease", c->kernel);
        if (c->version)
            scratch_put(&s, "proc/driver/nvidia/version", c->version);
        if (c->peermem)
            scratch_folder(&s, "sys/module/nvidia_peermem");
        put_gpu(&s, "05.0");
        put_adapter(&s);
        machine = probe_and_close(&s);
        gpus = json_object_get(machine, "gpus");
        dma_buf = in(gpus, "gpudirect", "dma_buf");
        assert_string_equal(text_in(gpus, "driver_flavour"), c->flavour);
        if ((json_is_true(dma_buf) ? 'y' : json_is_false(dma_buf) ? 'n' : '?') != c->dma_buf)
            fail_msg("case %zu: dma_buf is not '%c'", i, c->dma_buf);
        if (c->dma_buf == '?')
            assert_true(json_is_string(in(gpus, "gpudirect", "dma_buf_why")));
        assert_int_equal(state_of(machine, "gpu-rdma"), c->state);
        json_decref(machine);
    }
}

/* ---- the window into memory ---- */

static const struct window_case {
    const char *resource, *file, *sizes;
    long long bytes, best; /* 0: null, not there */
} window_cases[] = {
    {SMALL REGION("2fffffffff") NONE NONE NONE NONE NONE, NULL, NULL, 128LL << 30, 0},
    {SMALL NONE REGION("100fffffff") NONE NONE NONE NONE, "resource2_resize", "000000000000ffc0\n",
     256LL << 20, 32LL << 30},
    /* The window of virtual functions, behind the first six, is another's. */
    {SMALL REGION("100fffffff") NONE NONE NONE NONE NONE REGION("3fffffffff"), "resource1_resize",
     "0000000000000100\n", 256LL << 20, 256LL << 20},
    /* The largest, wherever it stands. */
    {SMALL REGION("100fffffff") NONE SMALL NONE NONE NONE, NULL, NULL, 256LL << 20, 0},
    {"garbage\n0x0 0xffffffffffffffff 0x0\n", NULL, NULL, 0, 0},
    {NULL, NULL, NULL, 0, 0},
};

static void test_window(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(window_cases) / sizeof(*window_cases); i++) {
        const struct window_case *c = &window_cases[i];
        struct scratch s;
        char path[128];
        json_t *machine;
        const json_t *gpu;

        scratch_open(&s);
        put_gpu(&s, "05.0");
        put_gpu(&s, "06.0"); /* the device that would use the window */
        if (c->resource)
            scratch_put(&s, ONE "/resource", c->resource);
        snprintf(path, sizeof(path), ONE "/%s", c->file ? c->file : "none");
        scratch_put(&s, path, c->sizes ? c->sizes : "");
        machine = probe_and_close(&s);
        gpu = json_array_get(in(machine, "gpus", "devices"), 0);
        if (json_integer_value(json_object_get(gpu, "bar1_bytes")) != c->bytes ||
            json_integer_value(json_object_get(gpu, "bar1_best_bytes")) != c->best)
            fail_msg("case %zu: %lld of %lld bytes", i,
                     (long long)json_integer_value(json_object_get(gpu, "bar1_bytes")),
                     (long long)json_integer_value(json_object_get(gpu, "bar1_best_bytes")));
        if (!c->bytes)
            assert_true(json_is_string(json_object_get(gpu, "bar1_bytes_why")));
        assert_true(finds(machine, "gpu-bar") == (c->best > c->bytes));
        json_decref(machine);
    }
}

/* ---- two of them ---- */

static void test_pair(void **state)
{
    struct scratch s;
    json_t *machine;
    const json_t *pairs, *pair;

    (void)state;
    scratch_open(&s);
    put_metal(&s);
    scratch_put(&s, "sys/class/dmi/id/sys_vendor", "Maker\n");
    put_gpu(&s, "05.0");
    put_gpu(&s, "06.0");
    put_gpu(&s, "07.0");
    scratch_put(&s, "sys/devices/pci0000:00/0000:00:07.0/vendor", "0x1002\n");
    unlink(scratch_path(&s, "sys/devices/pci0000:00/0000:00:07.0/driver"));
    machine = probe_and_close(&s);
    pairs = in(machine, "gpus", "pairs");
    assert_int_equal(json_array_size(in(machine, "gpus", "devices")), 3);
    assert_int_equal(json_array_size(pairs), 1); /* of NVIDIA's */
    pair = json_array_get(pairs, 0);
    assert_string_equal(text_in(pair, "a"), "0000:00:05.0");
    assert_string_equal(text_in(pair, "b"), "0000:00:06.0");
    assert_string_equal(text_in(pair, "relation"), "PHB");
    assert_true(json_is_null(json_object_get(pair, "p2p_read")));
    assert_string_equal(text_in(pair, "p2p_read_why"),
                        "NVML cannot be asked about a recorded machine");
    /* A recording is asked about neither CUDA nor a toolkit, and that is no finding. */
    assert_true(json_is_null(in(json_object_get(machine, "gpus"), "cuda", "works")));
    assert_false(finds(machine, "gpu-cuda"));
    json_decref(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dma_buf),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_pair),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
