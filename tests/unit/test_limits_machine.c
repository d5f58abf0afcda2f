// SPDX-License-Identifier: Apache-2.0
// Tests of the joiner: from the probe's JSON and the hardware figures to the limits of one machine.
#include "harness/limits/limits.h"
#include "tests/unit/unit.h"

#define N(list) (sizeof(list) / sizeof(*(list)))

static int load_shipped(void **state)
{
    char err[1024] = "";
    *state = limits_load("configs", NULL, err, sizeof(err));
    if (!*state)
        print_error("%s\n", err);
    return *state ? 0 : -1;
}

static int free_shipped(void **state)
{
    limits_free(*state);
    return 0;
}

// In the text, ' stands for ".
static json_t *join(const struct limits *l, const char *text)
{
    char quoted[4096];
    json_t *out = NULL;
    snprintf(quoted, sizeof(quoted), "%s", text);
    for (char *at = quoted; (at = strchr(at, '\'')); at++)
        *at = '"';
    json_t *machine = json_loads(quoted, 0, NULL);
    if (!machine)
        fail_msg("the test's own JSON: %s", quoted);
    assert_int_equal(limits_machine(l, machine, &out), 0);
    json_decref(machine);
    assert_true(json_is_array(out));
    return out;
}

static const json_t *find(const json_t *list, const char *key)
{
    const json_t *limit, *found = NULL;
    size_t i;
    json_array_foreach (list, i, limit) {
        if (strcmp(json_string_value(json_object_get(limit, "key")), key))
            continue;
        if (found)
            fail_msg("%s stands twice", key);
        found = limit;
    }
    return found;
}

static const char *unit_of(const char *key)
{
    return strstr(key, "tflops")   ? "TFLOP/s"
           : strstr(key, "_tops")  ? "TOP/s"
           : strstr(key, "gbytes") ? "GB/s"
                                   : "Gb/s";
}

struct want {
    const char *key;
    double value; // 0: there is none
    const char *source;
};

static void check(const json_t *list, const struct want *want)
{
    const json_t *limit = find(list, want->key);
    if (!limit != !(want->value > 0))
        fail_msg("%s is %sthere", want->key, limit ? "" : "not ");
    if (!limit)
        return;
    double have = json_real_value(json_object_get(limit, "value"));
    if (fabs(have - want->value) > 1e-4 * want->value)
        fail_msg("%s is %g, not %g", want->key, have, want->value);
    assert_string_equal(json_string_value(json_object_get(limit, "unit")), unit_of(want->key));
    assert_string_equal(json_string_value(json_object_get(limit, "source")), want->source);
    assert_true(json_string_length(json_object_get(limit, "detail")) > 8);
    bool gpu = json_object_get(limit, "address") != NULL;
    assert_int_equal(json_object_size(limit), gpu ? 6 : 5);
}

#define GPUS(devices) "{'gpus': {'devices': [" devices "]}}"
#define H200(nature)  "{'name': 'NVIDIA H200', 'nature': " nature ", 'memory_gbytes_per_s': 4800}"
#define SIMULATED(virtualization)                                                                  \
    "{'gpus': {'simulated': true, 'devices': [{'name': 'NVIDIA H200', 'nature': 'simulated',"      \
    " 'compute_capability': '9.0', 'sms': 20, 'virtualization': " virtualization                   \
    ", 'sm_max_mhz': 1000, 'memory_gbytes_per_s': 128},"                                           \
    " {'name': 'NVIDIA H200', 'nature': 'physical'}]}}"
#define LINK(kind)                                                                                 \
    "{'pci': [{'address': '0000:01:00.0', 'kind': '" kind "', 'link': {'now_gt_s': 8,"             \
    " 'now_width': 8, 'best_gt_s': 16, 'best_width': 16, 'now_gbytes_per_s': 7.9}}]}"

static const struct {
    const char *machine;
    int n; // limits in all; -1: not counted
    struct want want[18];
} cases[] = {
    {"{'memory': {'channels': 16, 'peak_gbytes_per_s': 614.4},"
     " 'pci': [{'address': '0000:1b:00.0', 'kind': 'gpu', 'vendor_id': '10de',"
     "   'device_id': '2330', 'nature': 'physical', 'path_gbytes_per_s': 4,"
     "   'link': {'now_gt_s': 2.5, 'now_width': 16, 'best_gt_s': 32, 'best_width': 16,"
     "            'now_gbytes_per_s': 4}, 'uplinks': [{'now_gbytes_per_s': 63.015}]},"
     "  {'address': '0000:3b:00.0', 'kind': 'infiniband', 'vendor_id': '15b3',"
     "   'device_id': '1021', 'nature': 'physical', 'path_gbytes_per_s': 15.754,"
     "   'link': {'now_gt_s': 32, 'now_width': 8, 'best_gt_s': 32, 'best_width': 16,"
     "            'now_gbytes_per_s': 31.508},"
     "   'uplinks': [{'now_gbytes_per_s': 15.754}, {'now_gbytes_per_s': 31.508}]}],"
     " 'network': [{'name': 'eth0', 'kind': 'ethernet', 'nature': 'physical',"
     "   'speed_gbits_per_s': 100, 'mtu': 9000, 'pci': '0000:3b:00.0'}],"
     " 'rdma': [{'name': 'mlx5_0', 'nature': 'physical', 'ports': [{'port': 1,"
     "   'rate_gbits_per_s': 56, 'lanes': '4X FDR', 'link_layer': 'InfiniBand'}, {'port': 2,"
     "   'rate_gbits_per_s': 40, 'lanes': '4X QDR', 'link_layer': 'Ethernet'}]}],"
     " 'gpus': {'devices': [{'address': '0000:1b:00.0', 'nature': 'physical',"
     "   'name': 'NVIDIA H100 80GB HBM3', 'memory_gbytes_per_s': 3352.3,"
     "   'mig': {'enabled': false}, 'nvlink': {'active': 12, 'gbytes_per_s': 300}}]}}",
     -1,
     {{"dram.gbytes_per_s", 614.4, "sysfs"},
      {"pcie.0000:1b:00.0.gbytes_per_s", 63.0154, "sysfs"},
      {"pcie.0000:1b:00.0.best_gbytes_per_s", 63.0154, "sysfs"},
      {"pcie.0000:1b:00.0.path_gbytes_per_s", 0, NULL},
      {"pcie.0000:3b:00.0.gbytes_per_s", 31.5077, "sysfs"},
      {"pcie.0000:3b:00.0.best_gbytes_per_s", 63.0154, "sysfs"},
      {"pcie.0000:3b:00.0.path_gbytes_per_s", 15.754, "sysfs"},
      {"net.eth0.gbits_per_s", 100, "sysfs"},
      {"net.eth0.tcp_gbits_per_s", 100 * 8960.0 / 9038, "sysfs"},
      {"net.eth0.chip_gbits_per_s", 400, "datasheet"},
      {"rdma.mlx5_0.1.gbits_per_s", 54.5454, "sysfs"},
      {"rdma.mlx5_0.1.payload_gbits_per_s", 54.5454 * 4096 / 4122, "sysfs"},
      {"rdma.mlx5_0.2.gbits_per_s", 40, "sysfs"},
      {"rdma.mlx5_0.2.payload_gbits_per_s", 40.0 * 4096 / 4178, "sysfs"},
      {"gpu.0.bf16_tflops", 989.4, "datasheet"},
      {"gpu.0.memory_gbytes_per_s", 3352.4, "datasheet"},
      {"gpu.0.nvlink_gbytes_per_s", 300, "nvml"}}},
    // A link that fell to a slower speed is a limit as it is, except on a GPU, which slows down when idle.
    {LINK("ethernet"),
     2,
     {{"pcie.0000:01:00.0.gbytes_per_s", 7.8769, "sysfs"},
      {"pcie.0000:01:00.0.best_gbytes_per_s", 31.5077, "sysfs"}}},
    {LINK("gpu"),
     2,
     {{"pcie.0000:01:00.0.gbytes_per_s", 15.7538, "sysfs"},
      {"pcie.0000:01:00.0.best_gbytes_per_s", 31.5077, "sysfs"}}},
    // What of a GPU is not a whole one gets no figure of a whole one: a share, or a slice of MIG.
    {GPUS(H200("'vgpu'")), 0, {{NULL, 0, NULL}}},
    {GPUS(H200("'sriov-vf'")), 0, {{NULL, 0, NULL}}},
    {GPUS(H200("'paravirtual'")), 0, {{NULL, 0, NULL}}},
    {GPUS(H200("'unknown'")), 0, {{NULL, 0, NULL}}},
    {GPUS(H200("null")), 0, {{NULL, 0, NULL}}},
    {GPUS(H200("7")), 0, {{NULL, 0, NULL}}},
    {GPUS("{'name': 'NVIDIA H200', 'nature': 'physical', 'mig': {'enabled': true},"
          " 'compute_capability': '9.0', 'sms': 132, 'sm_max_mhz': 1980,"
          " 'memory_gbytes_per_s': 4800}"),
     0,
     {{NULL, 0, NULL}}},
    {GPUS("{}, {'name': 'NVIDIA H200', 'nature': 'passthrough'}"),
     -1,
     {{"gpu.1.bf16_tflops", 989.5, "datasheet"},
      {"gpu.1.nvlink_gbytes_per_s", 450, "datasheet"},
      {"gpu.0.bf16_tflops", 0, NULL}}},
    // An unknown GPU keeps what NVML says, and is worked out: its multiprocessors x clock x what one does in a clock.
    {GPUS("{'name': 'NVIDIA X999', 'nature': 'physical', 'memory_gbytes_per_s': 1234.5}"),
     1,
     {{"gpu.0.memory_gbytes_per_s", 1234.5, "nvml"}}},
    {GPUS("{'name': 'NVIDIA X999', 'nature': 'physical', 'address': '0000:0a:00.0',"
          " 'compute_capability': '8.0', 'sms': 100, 'sm_max_mhz': 1500}"),
     -1,
     {{"gpu.0.bf16_tflops", 307.2, "nvml"},
      {"gpu.0.f64_tflops", 19.2, "nvml"},
      {"gpu.0.int8_tops", 614.4, "nvml"},
      {"gpu.0.fp8_tflops", 0, NULL}}},
    {GPUS("{'name': 'NVIDIA X999', 'nature': 'physical', 'compute_capability': '99.0',"
          " 'sms': 100, 'sm_max_mhz': 1500}"),
     0,
     {{NULL, 0, NULL}}},
    // What vendors state at a lower clock than the highest, or round down, is no limit of a card that runs at its
    // highest. By hand: 132 x 4096 x 1.98 GHz is 1070.5, which the H100's sheet states as 989.4, at 1830 MHz. The H20
    // has the clock and the multiprocessors of that, and 148 by its sheet.
    {GPUS("{'name': 'NVIDIA H100 80GB HBM3', 'nature': 'physical', 'compute_capability': '9.0',"
          " 'sms': 132, 'sm_max_mhz': 1980, 'memory_gbytes_per_s': 3352.32},"
          " {'name': 'NVIDIA H20', 'nature': 'physical', 'compute_capability': '9.0', 'sms': 78,"
          " 'sm_max_mhz': 1980, 'memory_gbytes_per_s': 4100},"
          " {'name': 'NVIDIA H100 80GB HBM3', 'nature': 'physical'}"),
     -1,
     {{"gpu.0.bf16_tflops", 1070.5306, "nvml"},
      {"gpu.0.fp8_tflops", 2141.0611, "nvml"},
      {"gpu.0.memory_gbytes_per_s", 3352.4, "datasheet"},
      {"gpu.0.f64_tflops", 33.5, "datasheet"}, // the vector unit's: half
      {"gpu.1.bf16_tflops", 148, "datasheet"},
      {"gpu.1.memory_gbytes_per_s", 4100, "nvml"},
      {"gpu.2.bf16_tflops", 989.4, "datasheet"}}},
    // A simulated GPU may bear the name of a real one; a share of one, or of a kind that nobody tells, has no limit.
    {SIMULATED("'none'"),
     -1,
     {{"gpu.0.bf16_tflops", 81.92, "nvml"},
      {"gpu.0.memory_gbytes_per_s", 128, "nvml"},
      {"gpu.0.nvlink_gbytes_per_s", 0, NULL},
      {"gpu.1.bf16_tflops", 0, NULL}}},
    {SIMULATED("'vgpu'"), 0, {{NULL, 0, NULL}}},
    {SIMULATED("'host-vgpu'"), 0, {{NULL, 0, NULL}}},
    {SIMULATED("null"), 0, {{NULL, 0, NULL}}},
    // A guest may not see the link of its GPU; where the bus shows it, the bus is right.
    {"{'pci': [{'address': '0000:02:00.0', 'kind': 'gpu', 'link': {'now_gt_s': 8, 'now_width': 8,"
     "  'best_gt_s': 8, 'best_width': 8, 'now_gbytes_per_s': 7.9}}], 'gpus': {'devices': ["
     " {'address': '0000:01:00.0', 'nature': 'vgpu',"
     "  'pcie': {'generation': 1, 'max_generation': 5, 'width': 8, 'max_width': 16}},"
     " {'address': '0000:02:00.0', 'nature': 'vgpu',"
     "  'pcie': {'generation': 1, 'max_generation': 5, 'width': 16, 'max_width': 16}},"
     " {'address': '0000:03:00.0', 'nature': 'vgpu', 'pcie': {'width': 16}}]}}",
     -1,
     {{"pcie.0000:01:00.0.gbytes_per_s", 31.5077, "nvml"},
      {"pcie.0000:02:00.0.gbytes_per_s", 7.8769, "sysfs"},
      {"pcie.0000:03:00.0.gbytes_per_s", 0, NULL}}},
    {"{'gpus': {'devices': [], 'pairs': ["
     " {'a': '0000:01:00.0', 'b': '0000:02:00.0', 'nvlinks': 4, 'nvlink_via': 'direct',"
     "  'nvlink_gbytes_per_s': 100}, {'a': '0000:01:00.0', 'b': '0000:03:00.0', 'nvlinks': 0},"
     " {'a': '0000:02:00.0', 'b': '0000:03:00.0', 'nvlinks': 18, 'nvlink_via': 'nvswitch',"
     "  'nvlink_gbytes_per_s': null}]}}",
     1,
     {{"p2p.0000:01:00.0+0000:02:00.0.nvlink_gbytes_per_s", 100, "nvml"}}},
    // By PCI id, where there is no NVML and the name is the one of pci.ids. "gpu.l4" is not "gpu.l40s".
    {"{'pci': [{'address': '0000:07:00.0', 'vendor_id': '10de', 'device_id': '27b8'}], 'gpus':"
     " {'devices': [{'address': '0000:07:00.0', 'name': 'AD104GL [L4]', 'nature': 'physical'}]}}",
     11,
     {{"gpu.0.fp8_tflops", 242.5, "datasheet"}}},
    // Made-up speeds are left out.
    {"{'pci': [{'address': '0000:0b:00.0', 'vendor_id': '15b3', 'device_id': '101b'}], 'network': ["
     "  {'name': 'ens192', 'kind': 'ethernet', 'nature': 'paravirtual', 'speed_gbits_per_s': 10,"
     "   'mtu': 1500}, {'name': 'br0', 'kind': 'ethernet', 'nature': 'software',"
     "   'speed_gbits_per_s': 10, 'mtu': 1500}, {'name': 'vf0', 'kind': 'ethernet',"
     "   'nature': 'sriov-vf', 'mtu': 1500, 'speed_gbits_per_s': 25, 'pci': '0000:0b:00.0'},"
     "  {'name': 'down', 'kind': 'ethernet', 'nature': 'physical', 'mtu': 1500,"
     "   'speed_gbits_per_s': null}, {'name': 'ib0', 'kind': 'infiniband', 'nature': 'physical',"
     "   'mtu': 2044, 'speed_gbits_per_s': 200}], 'rdma': [{'name': 'rxe0', 'nature': 'software',"
     "   'ports': [{'port': 1, 'rate_gbits_per_s': 10, 'lanes': '4X SDR', 'link_layer':"
     "   'Ethernet'}]}, {'name': 'mlx5_1', 'nature': 'physical', 'ports': [{'port': 1,"
     "   'rate_gbits_per_s': 10, 'lanes': '4X XYZ', 'link_layer': 'InfiniBand'}]}]}",
     3,
     {{"net.vf0.gbits_per_s", 25, "sysfs"},
      {"net.vf0.tcp_gbits_per_s", 25 * 1460.0 / 1538, "sysfs"},
      {"net.ib0.gbits_per_s", 200, "sysfs"}}},
    {"{'rdma': [{'name': 'ib', 'nature': 'physical', 'ports': ["
     " {'port': 1, 'rate_gbits_per_s': 1, 'lanes': '4X NDR', 'link_layer': 'InfiniBand'},"
     " {'port': 2, 'rate_gbits_per_s': 1, 'lanes': '2X HDR', 'link_layer': 'InfiniBand'},"
     " {'port': 3, 'rate_gbits_per_s': 1, 'lanes': '13X NDR', 'link_layer': 'InfiniBand'}]}]}",
     4,
     {{"rdma.ib.1.gbits_per_s", 400, "sysfs"}, {"rdma.ib.2.gbits_per_s", 100, "sysfs"}}},
    // Recorded, older or damaged machine files: no figure, no crash.
    {"{}", 0, {{NULL, 0, NULL}}},
    {"{'memory': 5, 'pci': {}, 'network': 'x', 'rdma': 1.5, 'gpus': []}", 0, {{NULL, 0, NULL}}},
    {"{'memory': {'peak_gbytes_per_s': '614'}, 'pci': [null, 5, [], {}], 'network': [null, {}],"
     " 'rdma': [{'ports': 3}, {}], 'gpus': {'devices': [null, {}]}}",
     0,
     {{NULL, 0, NULL}}},
    {"{'memory': {'peak_gbytes_per_s': -3}, 'pci': [{'address': '0000:01:00.0', 'link': "
     "{'now_gt_s': 3, 'now_width': 1e300, 'best_gt_s': 8, 'best_width': 64}}, {'link': {'now_gt_s':"
     " 8, 'now_width': 8, 'best_gt_s': 8, 'best_width': 8}}]}",
     0,
     {{NULL, 0, NULL}}},
    {"{'network': [{'name': 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',"
     " 'nature': 'physical', 'speed_gbits_per_s': 10}, {'name': '', 'nature': 'physical',"
     " 'speed_gbits_per_s': 10}]}",
     0,
     {{NULL, 0, NULL}}},
};

TEST(limits_of_machines)
{
    for (size_t i = 0; i < N(cases); i++) {
        json_t *out = join(*state, cases[i].machine);
        for (const struct want *w = cases[i].want; w->key; w++)
            check(out, w);
        if (cases[i].n >= 0 && json_array_size(out) != (size_t)cases[i].n)
            fail_msg("case %zu gives %zu limits", i, json_array_size(out));
        if (!i)
            assert_string_equal(
                json_string_value(json_object_get(find(out, "gpu.0.bf16_tflops"), "address")),
                "0000:1b:00.0");
        json_decref(out);
    }
    json_t *list = json_array(), *out = list;
    assert_int_equal(limits_machine(*state, list, &out), -EINVAL);
    assert_null(out);
    assert_int_equal(limits_machine(*state, NULL, &out), -EINVAL);
    json_decref(list);
}

// NVML tells what a link signals: 26.5625 GB/s on Hopper, of which 25 are data.
TEST(nvlinks_carry_less_than_they_signal)
{
    static const struct {
        const char *version;
        int links;
        double signalled, data;
    } links[] = {
        {"2.2", 6, 154.6875, 150},      {"3.0", 12, 309.375, 300}, {"3.1", 4, 103.125, 100},
        {"4.0", 18, 478.125, 450},      {"5.0", 18, 956.25, 900},  {"4.0", 12, 300, 300},
        {"4.0", 18, 225, 225},         /* links at half their speed */
        {"9.0", 18, 478.125, 478.125}, /* of an unknown generation */
        {"null", 18, 478.125, 478.125},
    };
    for (size_t i = 0; i < N(links); i++) {
        char text[1024];
        snprintf(text, sizeof(text),
                 "{'gpus': {'devices': [{'address': '0000:09:00.0'}, {'address': '0000:01:00.0',"
                 " 'nature': 'physical', 'nvlink': {'active': %d, 'gbytes_per_s': %g, 'version':"
                 " %s}}], 'pairs': [{'a': '0000:01:00.0', 'b': '0000:09:00.0', 'nvlinks': %d,"
                 " 'nvlink_via': 'nvswitch', 'nvlink_gbytes_per_s': %g}]}}",
                 links[i].links, links[i].signalled, links[i].version, links[i].links,
                 links[i].signalled);
        json_t *out = join(*state, text);
        check(out, &(struct want){"gpu.1.nvlink_gbytes_per_s", links[i].data, "nvml"});
        check(out, &(struct want){"p2p.0000:01:00.0+0000:09:00.0.nvlink_gbytes_per_s",
                                  links[i].data, "nvml"});
        json_decref(out);
    }
}

TESTS_WITH(load_shipped, free_shipped);
