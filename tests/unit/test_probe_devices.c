// SPDX-License-Identifier: Apache-2.0
/* What the probe concludes about devices: their nature, their links, their place, their ports. */
#include "harness/limits/limits.h"
#include "harness/probe/probe.h"
#include "tests/unit/probe_cases.h"

#define ONE "sys/devices/pci0000:00/0000:00:05.0"

static void put_device(const struct scratch *s, const char *id, const char *subsystem,
                       const char *class_code)
{
    char text[16];

    scratch_link(s, "sys/bus/pci/devices/0000:00:05.0", "../../../devices/pci0000:00/0000:00:05.0");
    snprintf(text, sizeof(text), "0x%.4s\n", id);
    scratch_put(s, ONE "/vendor", text);
    snprintf(text, sizeof(text), "0x%.4s\n", id + 5);
    scratch_put(s, ONE "/device", text);
    snprintf(text, sizeof(text), "0x%.4s\n", subsystem);
    scratch_put(s, ONE "/subsystem_vendor", text);
    snprintf(text, sizeof(text), "0x%.4s\n", subsystem + 5);
    scratch_put(s, ONE "/subsystem_device", text);
    snprintf(text, sizeof(text), "0x%s\n", class_code);
    scratch_put(s, ONE "/class", text);
}

static const struct nature_case {
    const char *cpu, *id, *subsystem, *class_code, *nature, *kind;
} nature_cases[] = {
    {METAL_CPU, "15b3:101d", "15b3:0043", "020000", "physical", "ethernet"},
    {METAL_CPU, "1d0f:ec20", "1d0f:ec20", "020000", "physical", "ethernet"},
    {GUEST_CPU, "15b3:101d", "15b3:0043", "020000", "passthrough", "ethernet"},
    {GUEST_CPU, "15b3:101c", "15b3:0043", "020700", "sriov-vf", "infiniband"},
    {GUEST_CPU, "8086:154c", "8086:0000", "020000", "sriov-vf", "ethernet"},
    {GUEST_CPU, "8086:1889", "8086:0000", "020000", "sriov-vf", "ethernet"},
    {GUEST_CPU, "1414:00ba", "1414:00ba", "020000", "sriov-vf", "ethernet"},
    {GUEST_CPU, "1af4:1041", "1af4:1100", "020000", "paravirtual", "ethernet"},
    {GUEST_CPU, "15ad:07b0", "15ad:07b0", "020000", "paravirtual", "ethernet"},
    {GUEST_CPU, "15ad:0820", "15ad:0820", "028000", "paravirtual", "network"},
    {GUEST_CPU, "1d0f:ec20", "1d0f:ec20", "020000", "paravirtual", "ethernet"},
    {GUEST_CPU, "1d0f:efa2", "1d0f:efa2", "020000", "paravirtual", "ethernet"},
    {GUEST_CPU, "1d0f:8061", "1d0f:0000", "010802", "paravirtual", "nvme"},
    {GUEST_CPU, "8086:100e", "1af4:1100", "020000", "emulated", "ethernet"},
    {GUEST_CPU, "8086:10d3", "15ad:07d0", "020000", "emulated", "ethernet"},
    {GUEST_CPU, "1b36:0010", "1af4:1100", "010802", "emulated", "nvme"},
    {GUEST_CPU, "10de:2330", "10de:16c1", "030200", "unknown", "gpu"},
    {GUEST_CPU, "1002:740f", "1002:0c34", "038000", "passthrough", "gpu"},
    /* An id that pci.ids lacks may be a virtual function's; one that it has is named. */
    {GUEST_CPU, "19e5:0222", "19e5:0051", "020000", "unknown", "ethernet"},
    {GUEST_CPU, "1002:74b5", "1002:0000", "038000", "sriov-vf", "gpu"},
    {"Features\t: fp\n", "15b3:101d", "15b3:0043", "020000", "unknown", "ethernet"},
};

static void test_natures(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(nature_cases) / sizeof(*nature_cases); i++) {
        const struct nature_case *c = &nature_cases[i];
        struct scratch s;
        json_t *machine;
        const json_t *d;

        scratch_open(&s);
        if (!strcmp(c->cpu, METAL_CPU))
            put_metal(&s);
        scratch_put(&s, "proc/cpuinfo", c->cpu);
        scratch_put(&s, "usr/share/misc/pci.ids",
                    "1002  AMD\n\t740f  Aldebaran\n\t74b5  Aqua VF\n");
        put_device(&s, c->id, c->subsystem, c->class_code);
        assert_int_equal(probe_machine(s.root, &machine), 0);
        d = json_array_get(json_object_get(machine, "pci"), 0);
        if (strcmp(text_in(d, "nature"), c->nature) || strcmp(text_in(d, "kind"), c->kind))
            fail_msg("case %zu (%s): %s, %s; expected %s, %s", i, c->id, text_in(d, "nature"),
                     text_in(d, "kind"), c->nature, c->kind);
        assert_true(json_array_size(json_object_get(d, "because")) > 0);
        json_decref(machine);
        scratch_close(&s);
    }
}

static const struct model_case {
    const char *model, *nature;
} model_cases[] = {
    {"NVIDIA A100-PCIE-40GB", "passthrough"},
    {"Tesla V100-SXM2-32GB", "passthrough"},
    {"NVIDIA H100 80GB HBM3", "passthrough"},
    {"GRID T4-16Q", "vgpu"},
    {"NVIDIA A100-4-20C", "vgpu"},
    {"NVIDIA A100-1-5CME", "vgpu"},
    {"GRID M60-1B4", "vgpu"},
    {"NVIDIA L40S-48A", "vgpu"},
};

/* A GPU's id is the same whole or shared: in a guest the driver's name for it tells. */
static void test_gpu_models_in_a_guest(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(model_cases) / sizeof(*model_cases); i++) {
        struct scratch s;
        char text[128];
        json_t *machine;
        const json_t *gpu, *pci;

        scratch_open(&s);
        scratch_put(&s, "proc/cpuinfo", GUEST_CPU);
        put_device(&s, "10de:2330", "10de:16c1", "030200");
        snprintf(text, sizeof(text), "Model: \t\t %s\nIRQ: 12\n", model_cases[i].model);
        scratch_put(&s, "proc/driver/nvidia/gpus/0000:00:05.0/information", text);
        assert_int_equal(probe_machine(s.root, &machine), 0);
        gpu = json_array_get(in(machine, "gpus", "devices"), 0);
        pci = json_array_get(json_object_get(machine, "pci"), 0);
        assert_string_equal(text_in(gpu, "name"), model_cases[i].model);
        if (strcmp(text_in(gpu, "nature"), model_cases[i].nature))
            fail_msg("\"%s\": %s", model_cases[i].model, text_in(gpu, "nature"));
        assert_string_equal(text_in(pci, "nature"), model_cases[i].nature);
        json_decref(machine);
        scratch_close(&s);
    }
}

static const struct link_case {
    const char *speed, *width, *max_speed, *max_width;
    int generation; /* 0: no link */
    bool slow;      /* than both ends could do */
} link_cases[] = {
    {"16.0 GT/s PCIe", "16", "16.0 GT/s PCIe", "16", 4, false},
    {"8 GT/s", "8", "8 GT/s", "8", 3, false}, /* before Linux 5.4 */
    {"8.0 GT/s PCIe", "8", "16.0 GT/s PCIe", "16", 3, true},
    {"16.0 GT/s PCIe", "4", "16.0 GT/s PCIe", "8", 4, true},
    {"Unknown", "0", "Unknown", "255", 0, false},
    {"16.0 GT/s PCIe", "0", "16.0 GT/s PCIe", "16", 0, false},
    {"2.5 GT/s PCIe", "63", "16.0 GT/s PCIe", "16", 0, false},
    {"nan", "16", "inf", "16", 0, false},
};

static void check_link(size_t i, const struct link_case *c, const json_t *machine)
{
    const json_t *d = json_array_get(json_object_get(machine, "pci"), 0);
    const json_t *link = json_object_get(d, "link");

    if (!c->generation) {
        assert_true(json_is_null(link));
        assert_true(json_is_string(json_object_get(d, "link_why")));
        return;
    }
    if (json_integer_value(json_object_get(link, "generation")) != c->generation)
        fail_msg("case %zu: wrong generation", i);
    assert_int_equal(json_is_true(json_object_get(link, "downtrained")), c->slow);
    assert_int_equal(finds(machine, "pcie-link"), c->slow);
}

static void test_links(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(link_cases) / sizeof(*link_cases); i++) {
        const struct link_case *c = &link_cases[i];
        struct scratch s;
        json_t *machine;

        scratch_open(&s);
        put_metal(&s);
        put_device(&s, "15b3:101d", "15b3:0043", "020000");
        scratch_put(&s, ONE "/current_link_speed", c->speed);
        scratch_put(&s, ONE "/current_link_width", c->width);
        scratch_put(&s, ONE "/max_link_speed", c->max_speed);
        scratch_put(&s, ONE "/max_link_width", c->max_width);
        assert_int_equal(probe_machine(s.root, &machine), 0);
        check_link(i, c, machine);
        json_decref(machine);
        scratch_close(&s);
    }
}

#define ROOT_PORT  "sys/devices/pci0000:00/0000:00:01.0"
#define UPPER      ROOT_PORT "/0000:01:00.0"
#define LEFT       UPPER "/0000:02:00.0/0000:03:00.0"
#define RIGHT      UPPER "/0000:02:01.0/0000:06:00.0"
#define GPU        LEFT "/0000:04:00.0/0000:05:00.0"
#define NEAR_NIC   LEFT "/0000:04:01.0/0000:0a:00.0"
#define FAR_NIC    RIGHT "/0000:07:00.0/0000:08:00.0"
#define MIDDLE_NIC UPPER "/0000:02:02.0/0000:0c:00.0"

/* A PCI function at a path, with a link that runs at x8 or x16 of x16, 16 GT/s. */
static void put_function(const struct scratch *s, const char *path, const char *class_code,
                         const char *vendor, const char *width)
{
    char link[256], target[256], file[256];

    snprintf(link, sizeof(link), "sys/bus/pci/devices/%s", strrchr(path, '/') + 1);
    snprintf(target, sizeof(target), "../../../%s", path + strlen("sys/"));
    scratch_link(s, link, target);
    snprintf(file, sizeof(file), "%s/class", path);
    scratch_put(s, file, class_code);
    snprintf(file, sizeof(file), "%s/vendor", path);
    scratch_put(s, file, vendor);
    snprintf(file, sizeof(file), "%s/current_link_speed", path);
    scratch_put(s, file, "16.0 GT/s PCIe");
    snprintf(file, sizeof(file), "%s/max_link_speed", path);
    scratch_put(s, file, "16.0 GT/s PCIe");
    snprintf(file, sizeof(file), "%s/current_link_width", path);
    scratch_put(s, file, width);
    snprintf(file, sizeof(file), "%s/max_link_width", path);
    scratch_put(s, file, "16");
}

/* A switch below a switch, whose link is at x8. */
static void put_switches(const struct scratch *s)
{
    static const char *const ports[] = {ROOT_PORT,
                                        UPPER,
                                        UPPER "/0000:02:00.0",
                                        UPPER "/0000:02:01.0",
                                        UPPER "/0000:02:02.0",
                                        RIGHT,
                                        LEFT "/0000:04:00.0",
                                        LEFT "/0000:04:01.0",
                                        RIGHT "/0000:07:00.0"};

    put_metal(s);
    for (size_t i = 0; i < sizeof(ports) / sizeof(*ports); i++)
        put_function(s, ports[i], "0x060400", "0x1000", "16");
    put_function(s, LEFT, "0x060400", "0x1000", "8");
    put_function(s, GPU, "0x030200", "0x10de", "16");
    put_function(s, NEAR_NIC, "0x020700", "0x15b3", "16");
    put_function(s, FAR_NIC, "0x020700", "0x15b3", "16");
    put_function(s, MIDDLE_NIC, "0x020700", "0x15b3", "16");
    scratch_put(s, "plumb/absent", GPU "/driver\n");
}

/* Two links on the way up, each told once, and how near the adapters are. */
static void test_switch_below_a_switch(void **state)
{
    struct scratch s;
    json_t *machine;
    const json_t *gpu, *uplinks, *pairs;

    (void)state;
    scratch_open(&s);
    put_switches(&s);
    assert_int_equal(probe_machine(s.root, &machine), 0);

    gpu = json_array_get(json_object_get(machine, "pci"), 0);
    assert_string_equal(text_in(gpu, "address"), "0000:05:00.0");
    uplinks = json_object_get(gpu, "uplinks");
    assert_int_equal(json_array_size(uplinks), 2);
    assert_string_equal(text_in(json_array_get(uplinks, 0), "device"), "0000:03:00.0");
    assert_string_equal(text_in(json_array_get(uplinks, 1), "device"), "0000:01:00.0");
    assert_float_equal(json_number_value(json_object_get(gpu, "path_gbytes_per_s")), 15.754, 1e-3);
    pairs = json_object_get(machine, "proximity");
    assert_int_equal(json_array_size(pairs), 3);
    assert_string_equal(text_in(json_array_get(pairs, 0), "nic"), "0000:08:00.0");
    assert_string_equal(text_in(json_array_get(pairs, 0), "relation"), "PXB");
    assert_string_equal(text_in(json_array_get(pairs, 1), "relation"), "PIX");
    assert_string_equal(text_in(json_array_get(pairs, 2), "relation"), "PXB");
    assert_true(finds(machine, "pcie-link"));
    json_decref(machine);
    scratch_close(&s);
}

/* The limit's value; 0: there is none. */
static double limit_of(const json_t *limits, const char *key)
{
    const json_t *limit;
    size_t i;

    json_array_foreach (limits, i, limit)
        if (!strcmp(text_in(limit, "key"), key))
            return json_number_value(json_object_get(limit, "value"));
    return 0;
}

/* A slow link above a GPU limits its copies, whether or not the GPU was idle when the probe looked: idle, its
 * own link at 2.5 GT/s is slower than the one above, which carries 16 x 8 / 8 x 128/130 GB/s. */
static void test_slow_uplink_of_an_idle_gpu(void **state)
{
    static const char *const speeds[] = {"16.0 GT/s PCIe", "2.5 GT/s PCIe"};
    char err[1024] = "";
    struct limits *figures = limits_load("configs", err, sizeof(err));

    (void)state;
    assert_non_null(figures);
    for (size_t i = 0; i < 2; i++) {
        struct scratch s;
        json_t *machine, *limits;

        scratch_open(&s);
        put_switches(&s);
        scratch_put(&s, GPU "/current_link_speed", speeds[i]);
        assert_int_equal(probe_machine(s.root, &machine), 0);
        assert_int_equal(limits_machine(figures, machine, &limits), 0);
        assert_float_equal(limit_of(limits, "pcie.0000:05:00.0.gbytes_per_s"), 31.508, 1e-3);
        assert_float_equal(limit_of(limits, "pcie.0000:05:00.0.path_gbytes_per_s"), 15.754, 1e-3);
        assert_true(limit_of(limits, "pcie.0000:08:00.0.path_gbytes_per_s") == 0);
        json_decref(limits);
        json_decref(machine);
        scratch_close(&s);
    }
    limits_free(figures);
}

static void test_roce_without_v2(void **state)
{
    struct file files[] = {
        {"sys/class/infiniband/rxe0/parent", "eth0\n"},
        {"sys/class/infiniband/rxe0/ports/1/state", "4: ACTIVE\n"},
        {"sys/class/infiniband/rxe0/ports/1/link_layer", "Ethernet\n"},
        {"sys/class/infiniband/rxe0/ports/1/gids/0", "fe80:0000:0000:0000:0000:0000:0000:0001\n"},
        {"sys/class/infiniband/rxe0/ports/1/gid_attrs/types/0", "IB/RoCE v1\n"},
    };
    json_t *machine = probe_files(files, 5);

    (void)state;
    assert_true(finds(machine, "rdma-gid"));
    json_decref(machine);
    files[4].text = "RoCE v2\n";
    machine = probe_files(files, 5);
    assert_false(finds(machine, "rdma-gid"));
    json_decref(machine);
}

/* Addresses identify people's machines: none may reach the object. */
static void test_addresses_stay_out(void **state)
{
    static const struct file files[] = {
        {"sys/class/net/eth0/address", "02:11:22:33:44:55\n"},
        {"sys/class/net/eth0/type", "1\n"},
        {"sys/class/dmi/id/product_serial", "SERIAL-1\n"},
        {"sys/class/dmi/id/product_uuid", "11112222-3333\n"},
        {"sys/class/infiniband/mlx5_0/node_guid", "aaaa:bbbb\n"},
        {"sys/class/infiniband/mlx5_0/ports/1/gids/0", "fe80:0000:0000:0000:1234:5678:9abc:def0\n"},
    };
    static const char *const secrets[] = {"22:33", "SERIAL", "11112222", "bbbb", "5678"};
    json_t *machine = probe_files(files, 6);
    char *dump = json_dumps(machine, 0);

    (void)state;
    assert_int_equal(json_array_size(json_object_get(machine, "rdma")), 1);
    assert_int_equal(json_array_size(json_object_get(machine, "network")), 1);
    for (size_t i = 0; i < sizeof(secrets) / sizeof(*secrets); i++)
        assert_null(strstr(dump, secrets[i]));
    free(dump);
    json_decref(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_natures),
        cmocka_unit_test(test_gpu_models_in_a_guest),
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_switch_below_a_switch),
        cmocka_unit_test(test_slow_uplink_of_an_idle_gpu),
        cmocka_unit_test(test_roce_without_v2),
        cmocka_unit_test(test_addresses_stay_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
