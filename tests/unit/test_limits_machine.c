// SPDX-License-Identifier: Apache-2.0
// Tests of the joiner: from the probe's JSON and the hardware figures to the limits of one machine.
#include "harness/limits/limits.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int load_shipped(void **state)
{
    char err[1024] = "";
    *state = limits_load("configs", err, sizeof(err));
    if (!*state)
        print_error("%s\n", err);
    return *state ? 0 : -1;
}

static int free_shipped(void **state)
{
    limits_free(*state);
    return 0;
}

static json_t *join(const struct limits *l, const char *text)
{
    json_error_t error;
    json_t *machine = json_loads(text, 0, &error), *out = NULL;
    if (!machine)
        fail_msg("the test's own JSON: %s", error.text);
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

static void has(const json_t *list, const char *key, double value, const char *unit,
                const char *source)
{
    const json_t *limit = find(list, key);
    if (!limit)
        fail_msg("no limit %s", key);
    double have = json_real_value(json_object_get(limit, "value"));
    if (fabs(have - value) > 1e-4 * value)
        fail_msg("%s is %g, not %g", key, have, value);
    assert_string_equal(json_string_value(json_object_get(limit, "unit")), unit);
    assert_string_equal(json_string_value(json_object_get(limit, "source")), source);
    assert_true(json_string_length(json_object_get(limit, "detail")) > 8);
    bool gpu = json_object_get(limit, "address") != NULL;
    assert_int_equal(json_object_size(limit), gpu ? 6 : 5);
}

static void lacks(const json_t *list, const char *key)
{
    if (find(list, key))
        fail_msg("unexpected limit %s", key);
}

static void a_server_has_all_its_limits(void **state)
{
    json_t *out = join(
        *state,
        "{\"memory\": {\"channels\": 16, \"peak_gbytes_per_s\": 614.4},"
        " \"pci\": ["
        "  {\"address\": \"0000:1b:00.0\", \"kind\": \"gpu\", \"vendor_id\": \"10de\","
        "   \"device_id\": \"2330\", \"nature\": \"physical\", \"path_gbytes_per_s\": 4,"
        "   \"link\": {\"now_gt_s\": 2.5, \"now_width\": 16, \"best_gt_s\": 32, \"best_width\": 16,"
        "             \"now_gbytes_per_s\": 4},"
        "   \"uplinks\": [{\"now_gbytes_per_s\": 63.015}]},"
        "  {\"address\": \"0000:3b:00.0\", \"kind\": \"infiniband\", \"vendor_id\": \"15b3\","
        "   \"device_id\": \"1021\", \"nature\": \"physical\", \"path_gbytes_per_s\": 15.754,"
        "   \"link\": {\"now_gt_s\": 32, \"now_width\": 8, \"best_gt_s\": 32, \"best_width\": 16,"
        "             \"now_gbytes_per_s\": 31.508},"
        "   \"uplinks\": [{\"now_gbytes_per_s\": 15.754}, {\"now_gbytes_per_s\": 31.508}]}],"
        " \"network\": [{\"name\": \"eth0\", \"kind\": \"ethernet\", \"nature\": \"physical\","
        "   \"speed_gbits_per_s\": 100, \"mtu\": 9000, \"pci\": \"0000:3b:00.0\"}],"
        " \"rdma\": [{\"name\": \"mlx5_0\", \"nature\": \"physical\", \"ports\": ["
        "   {\"port\": 1, \"rate_gbits_per_s\": 56, \"lanes\": \"4X FDR\","
        "    \"link_layer\": \"InfiniBand\"},"
        "   {\"port\": 2, \"rate_gbits_per_s\": 40, \"lanes\": \"4X QDR\","
        "    \"link_layer\": \"Ethernet\"}]}],"
        " \"gpus\": {\"devices\": [{\"address\": \"0000:1b:00.0\", \"nature\": \"physical\","
        "   \"name\": \"NVIDIA H100 80GB HBM3\", \"memory_gbytes_per_s\": 3352.3,"
        "   \"mig\": {\"enabled\": false}, \"nvlink\": {\"active\": 12, \"gbytes_per_s\": "
        "300}}]}}");
    has(out, "dram.gbytes_per_s", 614.4, "GB/s", "sysfs");
    has(out, "pcie.0000:1b:00.0.gbytes_per_s", 63.0154, "GB/s", "sysfs");
    has(out, "pcie.0000:1b:00.0.best_gbytes_per_s", 63.0154, "GB/s", "sysfs");
    lacks(out, "pcie.0000:1b:00.0.path_gbytes_per_s");
    has(out, "pcie.0000:3b:00.0.gbytes_per_s", 31.5077, "GB/s", "sysfs");
    has(out, "pcie.0000:3b:00.0.best_gbytes_per_s", 63.0154, "GB/s", "sysfs");
    has(out, "pcie.0000:3b:00.0.path_gbytes_per_s", 15.754, "GB/s", "sysfs");
    has(out, "net.eth0.gbits_per_s", 100, "Gb/s", "sysfs");
    has(out, "net.eth0.tcp_gbits_per_s", 100 * 8960.0 / 9038, "Gb/s", "sysfs");
    has(out, "net.eth0.chip_gbits_per_s", 400, "Gb/s", "datasheet");
    has(out, "rdma.mlx5_0.1.gbits_per_s", 54.5454, "Gb/s", "sysfs");
    has(out, "rdma.mlx5_0.1.payload_gbits_per_s", 54.5454 * 4096 / 4122, "Gb/s", "sysfs");
    has(out, "rdma.mlx5_0.2.gbits_per_s", 40, "Gb/s", "sysfs");
    has(out, "rdma.mlx5_0.2.payload_gbits_per_s", 40.0 * 4096 / 4178, "Gb/s", "sysfs");
    has(out, "gpu.0.bf16_tflops", 989.4, "TFLOP/s", "datasheet");
    has(out, "gpu.0.memory_gbytes_per_s", 3352.4, "GB/s", "datasheet");
    has(out, "gpu.0.nvlink_gbytes_per_s", 300, "GB/s", "nvml");
    static const char *const keys[] = {"gpu.0.bf16_tflops", "gpu.0.nvlink_gbytes_per_s"};
    for (size_t i = 0; i < 2; i++)
        assert_string_equal(json_string_value(json_object_get(find(out, keys[i]), "address")),
                            "0000:1b:00.0");
    json_decref(out);
}

// A link that fell to a slower speed is a limit as it is, except on a GPU, which slows down when
// idle.
static void only_gpus_are_given_their_best_speed(void **state)
{
    static const char *const kinds[] = {"ethernet", "gpu"};
    static const double now[] = {7.8769, 15.7538};
    for (size_t i = 0; i < 2; i++) {
        char text[512];
        snprintf(
            text, sizeof(text),
            "{\"pci\": [{\"address\": \"0000:01:00.0\", \"kind\": \"%s\", \"link\": {\"now_gt_s\": "
            "8, \"now_width\": 8, \"best_gt_s\": 16, \"best_width\": 16, \"now_gbytes_per_s\": "
            "7.9}}]}",
            kinds[i]);
        json_t *out = join(*state, text);
        has(out, "pcie.0000:01:00.0.gbytes_per_s", now[i], "GB/s", "sysfs");
        has(out, "pcie.0000:01:00.0.best_gbytes_per_s", 31.5077, "GB/s", "sysfs");
        assert_int_equal(json_array_size(out), 2);
        json_decref(out);
    }
}

// What of a GPU or card is not a whole one gets no figure of a whole one.
static void a_share_gets_no_datasheet_figure(void **state)
{
    static const char *const natures[] = {"\"vgpu\"",    "\"sriov-vf\"", "\"paravirtual\"",
                                          "\"unknown\"", "null",         "7"};
    for (size_t i = 0; i < sizeof(natures) / sizeof(*natures); i++) {
        char text[512];
        snprintf(text, sizeof(text),
                 "{\"gpus\": {\"devices\": [{\"name\": \"NVIDIA H200\", \"nature\": %s, "
                 "\"memory_gbytes_per_s\": 4800}]}}",
                 natures[i]);
        json_t *out = join(*state, text);
        assert_int_equal(json_array_size(out), 0);
        json_decref(out);
    }
    json_t *out = join(*state, "{\"gpus\": {\"devices\": [{\"name\": \"NVIDIA H200\", \"nature\": "
                               "\"physical\", \"mig\": {\"enabled\": true}}]}}");
    assert_int_equal(json_array_size(out), 0);
    json_decref(out);
    out = join(*state, "{\"gpus\": {\"devices\": [{}, {\"name\": \"NVIDIA H200\", \"nature\": "
                       "\"passthrough\"}]}}");
    has(out, "gpu.1.bf16_tflops", 989.5, "TFLOP/s", "datasheet");
    has(out, "gpu.1.nvlink_gbytes_per_s", 450, "GB/s", "datasheet");
    lacks(out, "gpu.0.bf16_tflops");
    json_decref(out);
}

static void an_unknown_gpu_keeps_what_nvml_says(void **state)
{
    json_t *out = join(*state, "{\"gpus\": {\"devices\": [{\"name\": \"NVIDIA X999\", \"nature\": "
                               "\"physical\", \"memory_gbytes_per_s\": 1234.5}]}}");
    has(out, "gpu.0.memory_gbytes_per_s", 1234.5, "GB/s", "nvml");
    assert_int_equal(json_array_size(out), 1);
    json_decref(out);
}

// Its multiprocessors x clock x what one does in a clock; what the generation lacks has no limit.
static void an_unknown_gpu_is_worked_out(void **state)
{
    json_t *out = join(
        *state, "{\"gpus\": {\"devices\": [{\"name\": \"NVIDIA X999\", \"nature\": \"physical\","
                " \"address\": \"0000:0a:00.0\", \"compute_capability\": \"8.0\", \"sms\": 100,"
                " \"sm_max_mhz\": 1500, \"memory_gbytes_per_s\": 1234.5}]}}");
    has(out, "gpu.0.bf16_tflops", 307.2, "TFLOP/s", "nvml");
    has(out, "gpu.0.f64_tflops", 19.2, "TFLOP/s", "nvml");
    has(out, "gpu.0.int8_tops", 614.4, "TOP/s", "nvml");
    has(out, "gpu.0.memory_gbytes_per_s", 1234.5, "GB/s", "nvml");
    lacks(out, "gpu.0.fp8_tflops");
    assert_non_null(
        strstr(json_string_value(json_object_get(find(out, "gpu.0.bf16_tflops"), "detail")),
               "100 multiprocessors x 1500 MHz at most x 2048 operations a clock"));
    json_decref(out);
    out = join(*state,
               "{\"gpus\": {\"devices\": [{\"name\": \"NVIDIA X999\", \"nature\": \"physical\","
               " \"compute_capability\": \"99.0\", \"sms\": 100, \"sm_max_mhz\": 1500}]}}");
    assert_int_equal(json_array_size(out), 0);
    json_decref(out);
}

// What vendors state at a lower clock than the highest, or round down, is no limit of a card that
// runs at its highest. By hand: 132 x 4096 x 1.98 GHz is 1070.5, which the H100's sheet states as
// 989.4, at 1830 MHz. The H20 has the clock and the multiprocessors of that, and 148 by its sheet.
static void a_datasheet_below_the_clock_is_no_limit(void **state)
{
    json_t *out =
        join(*state, "{\"gpus\": {\"devices\": ["
                     " {\"name\": \"NVIDIA H100 80GB HBM3\", \"nature\": \"physical\","
                     "  \"compute_capability\": \"9.0\", \"sms\": 132, \"sm_max_mhz\": 1980,"
                     "  \"memory_gbytes_per_s\": 3352.32},"
                     " {\"name\": \"NVIDIA H20\", \"nature\": \"physical\","
                     "  \"compute_capability\": \"9.0\", \"sms\": 78, \"sm_max_mhz\": 1980,"
                     "  \"memory_gbytes_per_s\": 4100},"
                     " {\"name\": \"NVIDIA H100 80GB HBM3\", \"nature\": \"physical\"}]}}");
    has(out, "gpu.0.bf16_tflops", 1070.5306, "TFLOP/s", "nvml");
    has(out, "gpu.0.fp8_tflops", 2141.0611, "TFLOP/s", "nvml");
    has(out, "gpu.0.memory_gbytes_per_s", 3352.4, "GB/s", "datasheet");
    has(out, "gpu.0.f64_tflops", 33.5, "TFLOP/s", "datasheet"); // the vector unit's: half
    assert_non_null(
        strstr(json_string_value(json_object_get(find(out, "gpu.0.bf16_tflops"), "detail")),
               "989.4 TFLOP/s is at a lower clock, or rounded"));
    has(out, "gpu.1.bf16_tflops", 148, "TFLOP/s", "datasheet");
    has(out, "gpu.1.memory_gbytes_per_s", 4100, "GB/s", "nvml");
    has(out, "gpu.2.bf16_tflops", 989.4, "TFLOP/s", "datasheet");
    json_decref(out);
}

// It may bear the name of a real one.
static void a_simulated_gpu_gets_no_datasheet_figure(void **state)
{
    json_t *out =
        join(*state, "{\"gpus\": {\"simulated\": true, \"devices\": [{\"name\": \"NVIDIA H200\","
                     " \"nature\": \"simulated\", \"compute_capability\": \"9.0\", \"sms\": 20,"
                     " \"virtualization\": \"none\","
                     " \"sm_max_mhz\": 1000, \"memory_gbytes_per_s\": 128},"
                     " {\"name\": \"NVIDIA H200\", \"nature\": \"physical\"}]}}");
    has(out, "gpu.0.bf16_tflops", 81.92, "TFLOP/s", "nvml");
    has(out, "gpu.0.memory_gbytes_per_s", 128, "GB/s", "nvml");
    assert_string_equal(
        json_string_value(json_object_get(find(out, "gpu.0.memory_gbytes_per_s"), "detail")),
        "memory clock x bus width, of a simulated GPU");
    lacks(out, "gpu.0.nvlink_gbytes_per_s");
    lacks(out, "gpu.1.bf16_tflops");
    json_decref(out);
}

// A vGPU, or of a kind that nobody tells: as a real one has none.
static void a_simulated_share_gets_no_figure_of_the_whole(void **state)
{
    static const char *const modes[] = {"\"vgpu\"", "\"host-vgpu\"", "null"};
    for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
        char text[512];
        snprintf(text, sizeof(text),
                 "{\"gpus\": {\"simulated\": true, \"devices\": [{\"name\": \"NVIDIA H200\","
                 " \"nature\": \"simulated\", \"virtualization\": %s, \"sms\": 20,"
                 " \"compute_capability\": \"9.0\", \"sm_max_mhz\": 1000,"
                 " \"memory_gbytes_per_s\": 128}]}}",
                 modes[i]);
        json_t *out = join(*state, text);
        assert_int_equal(json_array_size(out), 0);
        json_decref(out);
    }
}

// Neither the datasheet's nor the whole card's by NVML.
static void a_slice_of_mig_gets_no_figure_of_the_whole(void **state)
{
    json_t *out = join(
        *state, "{\"gpus\": {\"devices\": [{\"name\": \"NVIDIA H200\", \"nature\": \"physical\","
                " \"mig\": {\"enabled\": true}, \"compute_capability\": \"9.0\", \"sms\": 132,"
                " \"sm_max_mhz\": 1980, \"memory_gbytes_per_s\": 4800}]}}");
    assert_int_equal(json_array_size(out), 0);
    json_decref(out);
}

// A guest may not see the link of its GPU; where the bus shows it, the bus is right.
static void a_link_that_only_nvml_knows(void **state)
{
    json_t *out = join(
        *state,
        "{\"pci\": [{\"address\": \"0000:02:00.0\", \"kind\": \"gpu\", \"link\": {\"now_gt_s\": 8,"
        " \"now_width\": 8, \"best_gt_s\": 8, \"best_width\": 8, \"now_gbytes_per_s\": 7.9}}],"
        " \"gpus\": {\"devices\": ["
        " {\"address\": \"0000:01:00.0\", \"nature\": \"vgpu\","
        "  \"pcie\": {\"generation\": 1, \"max_generation\": 5, \"width\": 8, \"max_width\": 16}},"
        " {\"address\": \"0000:02:00.0\", \"nature\": \"vgpu\","
        "  \"pcie\": {\"generation\": 1, \"max_generation\": 5, \"width\": 16, \"max_width\": 16}},"
        " {\"address\": \"0000:03:00.0\", \"nature\": \"vgpu\", \"pcie\": {\"width\": 16}}]}}");
    has(out, "pcie.0000:01:00.0.gbytes_per_s", 31.5077, "GB/s", "nvml");
    has(out, "pcie.0000:02:00.0.gbytes_per_s", 7.8769, "GB/s", "sysfs");
    lacks(out, "pcie.0000:03:00.0.gbytes_per_s");
    json_decref(out);
}

static void pairs_of_gpus_have_their_nvlinks(void **state)
{
    json_t *out =
        join(*state, "{\"gpus\": {\"devices\": [], \"pairs\": ["
                     " {\"a\": \"0000:01:00.0\", \"b\": \"0000:02:00.0\", \"nvlinks\": 4,"
                     "  \"nvlink_via\": \"direct\", \"nvlink_gbytes_per_s\": 100},"
                     " {\"a\": \"0000:01:00.0\", \"b\": \"0000:03:00.0\", \"nvlinks\": 0},"
                     " {\"a\": \"0000:02:00.0\", \"b\": \"0000:03:00.0\", \"nvlinks\": 18,"
                     "  \"nvlink_via\": \"nvswitch\", \"nvlink_gbytes_per_s\": null}]}}");
    has(out, "p2p.0000:01:00.0+0000:02:00.0.nvlink_gbytes_per_s", 100, "GB/s", "nvml");
    assert_int_equal(json_array_size(out), 1);
    json_decref(out);
}

// NVML tells what a link signals: 26.5625 GB/s on Hopper, of which 25 are data.
static void nvlinks_carry_less_than_they_signal(void **state)
{
    static const struct {
        const char *version;
        int links;
        double signalled, data;
    } cases[] = {
        {"2.2", 6, 154.6875, 150},      {"3.0", 12, 309.375, 300}, {"3.1", 4, 103.125, 100},
        {"4.0", 18, 478.125, 450},      {"5.0", 18, 956.25, 900},  {"4.0", 12, 300, 300},
        {"4.0", 18, 225, 225},         /* links at half their speed */
        {"9.0", 18, 478.125, 478.125}, /* of an unknown generation */
        {"null", 18, 478.125, 478.125},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[1024];
        snprintf(text, sizeof(text),
                 "{\"gpus\": {\"devices\": [{\"address\": \"0000:09:00.0\"},"
                 "  {\"address\": \"0000:01:00.0\", \"nature\": \"physical\","
                 "   \"nvlink\": {\"active\": %d, \"gbytes_per_s\": %g, \"version\": %s}}],"
                 " \"pairs\": [{\"a\": \"0000:01:00.0\", \"b\": \"0000:09:00.0\", \"nvlinks\": %d,"
                 "  \"nvlink_via\": \"nvswitch\", \"nvlink_gbytes_per_s\": %g}]}}",
                 cases[i].links, cases[i].signalled, cases[i].version, cases[i].links,
                 cases[i].signalled);
        json_t *out = join(*state, text);
        has(out, "gpu.1.nvlink_gbytes_per_s", cases[i].data, "GB/s", "nvml");
        has(out, "p2p.0000:01:00.0+0000:09:00.0.nvlink_gbytes_per_s", cases[i].data, "GB/s",
            "nvml");
        json_decref(out);
    }
}

// By PCI id, where there is no NVML and the name is the one of pci.ids. "gpu.l4" is not "gpu.l40s".
static void a_gpu_is_known_by_its_pci_id(void **state)
{
    json_t *out =
        join(*state, "{\"pci\": [{\"address\": \"0000:07:00.0\", \"vendor_id\": \"10de\", "
                     "\"device_id\": \"27b8\"}], \"gpus\": {\"devices\": [{\"address\": "
                     "\"0000:07:00.0\", \"name\": \"AD104GL [L4]\", \"nature\": "
                     "\"physical\"}]}}");
    has(out, "gpu.0.fp8_tflops", 242.5, "TFLOP/s", "datasheet");
    assert_int_equal(json_array_size(out), 11);
    json_decref(out);
}

static void made_up_speeds_are_left_out(void **state)
{
    json_t *out = join(
        *state,
        "{\"pci\": [{\"address\": \"0000:0b:00.0\", \"vendor_id\": \"15b3\", \"device_id\": "
        "\"101b\"}],"
        " \"network\": ["
        "  {\"name\": \"ens192\", \"kind\": \"ethernet\", \"nature\": \"paravirtual\","
        "   \"speed_gbits_per_s\": 10, \"mtu\": 1500},"
        "  {\"name\": \"br0\", \"kind\": \"ethernet\", \"nature\": \"software\","
        "   \"speed_gbits_per_s\": 10, \"mtu\": 1500},"
        "  {\"name\": \"vf0\", \"kind\": \"ethernet\", \"nature\": \"sriov-vf\", \"mtu\": 1500,"
        "   \"speed_gbits_per_s\": 25, \"pci\": \"0000:0b:00.0\"},"
        "  {\"name\": \"down\", \"kind\": \"ethernet\", \"nature\": \"physical\", \"mtu\": 1500,"
        "   \"speed_gbits_per_s\": null},"
        "  {\"name\": \"ib0\", \"kind\": \"infiniband\", \"nature\": \"physical\", \"mtu\": 2044,"
        "   \"speed_gbits_per_s\": 200}],"
        " \"rdma\": [{\"name\": \"rxe0\", \"nature\": \"software\", \"ports\": [{\"port\": 1,"
        "   \"rate_gbits_per_s\": 10, \"lanes\": \"4X SDR\", \"link_layer\": \"Ethernet\"}]},"
        "  {\"name\": \"mlx5_1\", \"nature\": \"physical\", \"ports\": [{\"port\": 1,"
        "   \"rate_gbits_per_s\": 10, \"lanes\": \"4X ???\", \"link_layer\": \"InfiniBand\"}]}]}");
    has(out, "net.vf0.gbits_per_s", 25, "Gb/s", "sysfs");
    has(out, "net.vf0.tcp_gbits_per_s", 25 * 1460.0 / 1538, "Gb/s", "sysfs");
    has(out, "net.ib0.gbits_per_s", 200, "Gb/s", "sysfs");
    assert_int_equal(json_array_size(out), 3);
    json_decref(out);
}

// Recorded, older or damaged machine files: no figure, no crash.
static void odd_facts_are_passed_over(void **state)
{
    static const char *const machines[] = {
        "{}",
        "{\"memory\": null, \"pci\": null, \"network\": null, \"rdma\": null, \"gpus\": null}",
        "{\"memory\": 5, \"pci\": {}, \"network\": \"x\", \"rdma\": 1.5, \"gpus\": []}",
        "{\"memory\": {\"peak_gbytes_per_s\": \"614\"}, \"pci\": [null, 5, [], {}],"
        " \"network\": [null, {}], \"rdma\": [{\"ports\": 3}, {}], \"gpus\": {\"devices\": [null, "
        "{}]}}",
        "{\"memory\": {\"peak_gbytes_per_s\": -3}, \"pci\": [{\"address\": \"0000:01:00.0\", "
        "\"link\": "
        "{\"now_gt_s\": 3, \"now_width\": 1e300, \"best_gt_s\": 8, \"best_width\": 64}}]}",
        "{\"pci\": [{\"link\": {\"now_gt_s\": 8, \"now_width\": 8, \"best_gt_s\": 8, "
        "\"best_width\": 8}}]}",
        "{\"network\": [{\"name\": "
        "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\","
        " \"nature\": \"physical\", \"speed_gbits_per_s\": 10}, {\"name\": \"\", \"nature\": "
        "\"physical\", \"speed_gbits_per_s\": 10}]}",
    };
    for (size_t i = 0; i < sizeof(machines) / sizeof(*machines); i++) {
        json_t *out = join(*state, machines[i]);
        if (json_array_size(out))
            fail_msg("case %zu gives %zu limits", i, json_array_size(out));
        json_decref(out);
    }
    json_t *list = json_array(), *out = list;
    assert_int_equal(limits_machine(*state, list, &out), -EINVAL);
    assert_null(out);
    assert_int_equal(limits_machine(*state, NULL, &out), -EINVAL);
    json_decref(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_has_all_its_limits),
        cmocka_unit_test(only_gpus_are_given_their_best_speed),
        cmocka_unit_test(a_share_gets_no_datasheet_figure),
        cmocka_unit_test(an_unknown_gpu_keeps_what_nvml_says),
        cmocka_unit_test(an_unknown_gpu_is_worked_out),
        cmocka_unit_test(a_datasheet_below_the_clock_is_no_limit),
        cmocka_unit_test(a_simulated_gpu_gets_no_datasheet_figure),
        cmocka_unit_test(a_simulated_share_gets_no_figure_of_the_whole),
        cmocka_unit_test(a_slice_of_mig_gets_no_figure_of_the_whole),
        cmocka_unit_test(a_link_that_only_nvml_knows),
        cmocka_unit_test(pairs_of_gpus_have_their_nvlinks),
        cmocka_unit_test(nvlinks_carry_less_than_they_signal),
        cmocka_unit_test(a_gpu_is_known_by_its_pci_id),
        cmocka_unit_test(made_up_speeds_are_left_out),
        cmocka_unit_test(odd_facts_are_passed_over),
    };
    return cmocka_run_group_tests(tests, load_shipped, free_shipped);
}
