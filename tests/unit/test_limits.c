// SPDX-License-Identifier: Apache-2.0
// Tests of the hardware figures: the reader, the shipped files' arithmetic, the link formulas, and the limits of a machine.
#include "core/hw/nic.h"
#include "core/hw/nvml.h"
#include "harness/limits/limits.h"
#include "tests/unit/scratch_tree.h"
#include "tests/unit/unit.h"

#define N(list)    (sizeof(list) / sizeof(*(list)))
#define NEAR(a, b) assert_true(fabs((a) - (b)) < 1e-6 * fabs(b))

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

static double part(const struct limits *l, const char *entry, const char *name)
{
    char key[128];
    double value = 0;
    snprintf(key, sizeof(key), "%s.%s", entry, name);
    if (limits_lookup(l, key, &value, NULL, NULL))
        fail_msg("no figure %s", key);
    return value;
}

// ---- the shipped files

TEST(lookup_gives_value_unit_source)
{
    static const char *const absent[] = {"gpu.h100-sxm5-80gb.bf16", "gpu.h100.bf16_tflops",
                                         "bf16_tflops", ""};
    double value = 0;
    const char *unit = NULL, *source = NULL;
    const char *key = "gpu.h100-sxm5-80gb.bf16_tflops";
    assert_int_equal(limits_lookup(*state, key, &value, &unit, &source), 0);
    assert_true(value == 989.4);
    assert_string_equal(unit, "TFLOP/s");
    assert_non_null(strstr(source, ", NVIDIA, 2023, https://"));
    assert_int_equal(limits_lookup(*state, key, NULL, NULL, NULL), 0);
    for (size_t i = 0; i < N(absent); i++)
        assert_int_equal(limits_lookup(*state, absent[i], &value, NULL, NULL), -ENOENT);
    assert_true(value == 989.4);
}

TEST(devices_are_found)
{
    assert_string_equal(limits_device(*state, "gpu", "10DE:20B2", NULL), "gpu.a100-sxm4-80gb");
    assert_string_equal(limits_device(*state, "gpu", NULL, "NVIDIA H200"), "gpu.h200-sxm-141gb");
    assert_string_equal(limits_device(*state, "nic", "15b3:1021", NULL), "nic.connectx-7");
    assert_null(limits_device(*state, "gpu", NULL, "NVIDIA H200 MIG 1g.18gb"));
    assert_null(limits_device(*state, "gpu", NULL, "NVIDIA H20 "));
    assert_null(limits_device(*state, "gpu", "15b3:1021", NULL));
    assert_null(limits_device(*state, "nic", "10de:2330", NULL));
}

static int starts(const char *s, const char *with)
{
    return !strncmp(s, with, strlen(with));
}

// Each pair of figures that stands for the same hardware must agree. Ratios hold for a dense rate and break for a
// sparse one: half the bits, twice the rate.
static int check_one(const struct limit_figure *f, void *data)
{
    const struct limits *l = data;
    char entry[128];
    double f16;
    assert_non_null(f->source);
    assert_true(strlen(f->source) > 20);
    snprintf(entry, sizeof(entry), "%.*s", (int)(strrchr(f->key, '.') - f->key), f->key);
    if (starts(f->key, "memory.") && strstr(f->key, ".gbytes_per_s"))
        NEAR(f->value, part(l, entry, "interface_bits") * part(l, entry, "max_mt_s") / 8000);
    if (strstr(f->key, ".nvlink_links"))
        NEAR(part(l, entry, "nvlink_gbytes_per_s"),
             nvlink_data_gbps(part(l, entry, "nvlink_gen"), f->value, INFINITY));
    if (starts(f->key, "gpu.") && strstr(f->key, ".bf16_tflops") && !strstr(f->key, "rtx-") &&
        !strstr(f->key, "mi2")) {
        f16 = part(l, entry, "f16_tflops");
        assert_true(f->value == f16);
        assert_true(fabs(f16 / part(l, entry, "tf32_tflops") - 2) < 0.03);
        assert_true(fabs(part(l, entry, "int8_tops") / f16 - 2) < 0.02);
    }
    return 0;
}

static int stop_at_third(const struct limit_figure *f, void *data)
{
    (void)f;
    return ++*(int *)data == 3 ? 7 : 0;
}

TEST(figures_agree_with_each_other)
{
    int seen = 0;
    assert_int_equal(limits_each(*state, check_one, *state), 0);
    assert_int_equal(limits_each(*state, stop_at_third, &seen), 7);
    assert_int_equal(seen, 3);
}

// What a multiprocessor does in a clock, times their number and the clock that the vendor states its peak for, is
// that peak: of each generation at least one card. A memory's limit is no less than its clock times its width, and not
// 1 % more.
TEST(cards_add_up_to_their_datasheets)
{
    static const struct {
        const char *gpu, *sm;
        double sms, ghz;
        const char *figures; // of the multiprocessor, with the unit of the card's
    } cards[] = {
        {"v100-sxm2-16gb", "sm.cc-7-0", 80, 1.53, "f16 f64 f32"},
        {"t4", "sm.cc-7-5", 40, 1.59, "f16 int8"},
        {"a100-sxm4-80gb", "sm.cc-8-0", 108, 1.41, "bf16 tf32 int8 f32 f64_tensor"},
        {"a10", "sm.cc-8-6", 72, 1.695, "f16 int8"},
        {"a40", "sm.cc-8-6", 84, 1.74, "bf16"},
        {"l40s", "sm.cc-8-9", 142, 2.52, "f16 fp8 tf32"},
        {"h100-sxm5-80gb", "sm.cc-9-0", 132, 1.83, "bf16 fp8"},
        {"h100-sxm5-80gb", "sm.cc-9-0", 132, 1.98, "f32 f64_tensor"},
        {"b200", "sm.cc-10-0", 148, 1.856, "bf16 fp8"},
    };
    static const struct {
        const char *gpu;
        double mhz, bits;
    } memories[] = {
        {"v100-sxm2-16gb", 877, 4096},
        {"v100s-pcie-32gb", 1107, 4096},
        {"t4", 5001, 256},
        {"a10", 6251, 384},
        {"a30", 1215, 3072},
        {"a40", 7251, 384},
        {"a100-sxm4-40gb", 1215, 5120},
        {"a100-sxm4-80gb", 1593, 5120},
        {"l4", 6251, 192},
        {"a100-pcie-80gb", 1512, 5120},
        {"l40s", 9001, 384},
        {"rtx-4090", 10501, 384},
        {"h100-sxm5-80gb", 2619, 5120},
        {"h100-pcie-80gb", 1593, 5120},
        {"h100-nvl", 2619, 6016},
        {"h200-sxm-141gb", 3201, 6144},
        {"h20-96gb", 2619, 6144},
        {"gh200-96gb", 2619, 6144},
        {"gh200-144gb", 3201, 6144},
        {"b200", 3996, 7680},
        {"mi250x-die", 1600, 4096},
        {"mi300x", 2600, 8192},
    };
    char entry[64], name[64], each[64], list[64], *save = NULL;
    for (size_t i = 0; i < N(cards); i++) {
        snprintf(entry, sizeof(entry), "gpu.%s", cards[i].gpu);
        snprintf(list, sizeof(list), "%s", cards[i].figures);
        for (char *f = strtok_r(list, " ", &save); f; f = strtok_r(NULL, " ", &save)) {
            snprintf(name, sizeof(name), "%s_%s", f, strcmp(f, "int8") ? "tflops" : "tops");
            snprintf(each, sizeof(each), "%.*s_per_clock", (int)strcspn(f, "_"), f);
            double sum = cards[i].sms * cards[i].ghz * part(*state, cards[i].sm, each) / 1e3;
            if (fabs(sum / part(*state, entry, name) - 1) > 0.01)
                fail_msg("%s %s: its multiprocessors give %g", entry, name, sum);
        }
    }
    for (size_t i = 0; i < N(memories); i++) {
        double pins = memories[i].mhz * 2 * memories[i].bits / 8 / 1000;
        snprintf(entry, sizeof(entry), "gpu.%s", memories[i].gpu);
        double limit = part(*state, entry, "memory_gbytes_per_s");
        if (limit < pins || limit > 1.01 * pins)
            fail_msg("%s: %.2f, and the pins carry %.2f", entry, limit, pins);
    }
}

// What no other figure here adds up to.
TEST(anchors_stand)
{
    assert_float_equal(part(*state, "gpu.mi300x", "bf16_tflops"), 1307.4, 1e-9);
    assert_float_equal(part(*state, "nic.connectx-6", "port_gbits_per_s"), 200, 0);
    assert_float_equal(part(*state, "ethernet.400gbe", "data_gbits_per_s"), 400, 0);
}

// ---- what the reader refuses

#define SOURCES "about: a\nkind: ethernet\nsources:\n"
#define SRC     SOURCES "  - {id: s, title: t, publisher: p, date: 2020}\n"
#define ENT     SRC "entries:\n  - key: gen1\n"
#define NIC                                                                                        \
    "about: a\nkind: nic\nsources:\n  - {id: s, title: t, publisher: p, date: 2020}\nentries:\n"   \
    "  - {key: a, names: [N one], pci: [\"15b3:1013\"], source: s, figures: {pcie_gen: 3}}\n"

// The line, and the name of what is wrong.
TEST(the_format_is_strict)
{
    static const struct {
        const char *text, *line, *name; // line NULL: it loads
    } cases[] = {
        {ENT "    source: s\n    figures: {data_gbits_per_s: 20}\n", NULL, NULL},
        {ENT "    source: s\n    figures: {data_gbits_per_s: {value: 20, source: s, note: n}}\n",
         NULL, NULL},
        {ENT "    source: s\n    figures: {data_gbits_per_s: 1600}\n", NULL, NULL},
        {ENT "    figures: {data_gbits_per_s: 20}\n", ":7:", "source"},
        {ENT "    source: x\n    figures: {data_gbits_per_s: 20}\n", ":7:", "\"x\""},
        {ENT "    source: s\n    figures: {data_gbit_per_s: 20}\n", ":8:", "data_gbit_per_s"},
        {ENT "    source: s\n    figures: {}\n", ":8:", "\"data_gbits_per_s\""},
        {ENT "    source: s\n    figures: {data_gbits_per_s: 1601}\n", ":8:", "1601"},
        {ENT "    source: s\n    figures: {data_gbits_per_s: {value: 20, sourc: s}}\n",
         ":8:", "sourc"},
        {ENT "    source: s\n    figures: {data_gbits_per_s: {source: s}}\n", ":8:", "\"value\""},
        {ENT "    source: s\n    speed: 5\n    figures: {data_gbits_per_s: 20}\n", ":8:", "speed"},
        {ENT "    source: s\n", ":6:", "\"figures\""},
        {SRC "entries:\n  - key: Gen_1\n", ":6:", "\"Gen_1\""},
        {SRC "entries: []\nkinds: x\n", ":6:", "kinds"},
        {SRC "entries: []\n", ":4:", "\"s\""},
        {"about: a\nkind: cpu\nsources: []\nentries: []\n", ":2:", "cpu"},
        {SOURCES "  - {id: s, publisher: p, date: 1}\nentries: []\n", ":4:", "\"title\""},
        {SOURCES "  - {id: s, title: t, date: 1}\nentries: []\n", ":4:", "\"publisher\""},
        {SOURCES "  - {id: s, title: t, publisher: p}\nentries: []\n", ":4:", "date"},
        {SOURCES "  - {id: s, title: t, publisher: p, date: 1, chapter: 4}\nentries: []\n",
         ":4:", "chapter"},
        {SOURCES "  - {id: s, title: t, publisher: p, url: u}\n  - {id: s, title: t, publisher: p, "
                 "url: u}\nentries: []\n",
         ":5:", "\"s\""},
        {NIC, NULL, NULL},
        {NIC "  - {key: b, pci: [\"15b3:1013\"], source: s, figures: {}}\n", ":7:", "15b3:1013"},
        {NIC "  - {key: b, pci: [\"15b3:1\"], source: s, figures: {}}\n", ":7:", "\"15b3:1\""},
        {NIC "  - {key: b, pci: [\"15B3:1015\"], source: s, figures: {}}\n", ":7:", "15B3:1015"},
        {NIC "  - {key: b, names: [n ONE], source: s, figures: {}}\n", ":7:", "\"n ONE\""},
        {NIC "  - {key: a, source: s, figures: {}}\n", ":7:", "\"nic.a\""},
        {NIC "  - {key: b, pci: 15b3, source: s, figures: {}}\n", ":7:", "\"pci\""},
    };
    for (size_t i = 0; i < N(cases); i++) {
        struct scratch s;
        char err[1024] = "", where[256];
        scratch_open(&s);
        scratch_put(&s, "hardware/a.yaml", cases[i].text);
        struct limits *l = limits_load(s.root, NULL, err, sizeof(err));
        snprintf(where, sizeof(where), "%s/hardware/a.yaml%s ", s.root, cases[i].line);
        scratch_close(&s);
        if (!l != !!cases[i].line ||
            (cases[i].line && (!starts(err, where) || !strstr(err, cases[i].name))))
            fail_msg("case %zu: \"%s\"", i, err);
        limits_free(l);
    }
}

TEST(a_folder_without_figures_is_an_error)
{
    char err[1024] = "";
    struct scratch s;
    assert_null(limits_load("/nonexistent", NULL, err, sizeof(err)));
    assert_non_null(strstr(err, "/nonexistent/hardware"));
    scratch_open(&s);
    scratch_folder(&s, "hardware");
    assert_null(limits_load(s.root, NULL, err, sizeof(err)));
    assert_non_null(strstr(err, s.root));
    scratch_close(&s);
}

// ---- from the probe's JSON and the figures to the limits of one machine

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

static const json_t *limit_find(const json_t *list, const char *key)
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

static void check_limit(const json_t *list, const struct want *want)
{
    const json_t *limit = limit_find(list, want->key);
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
} machines[] = {
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
    for (size_t i = 0; i < N(machines); i++) {
        json_t *out = join(*state, machines[i].machine);
        for (const struct want *w = machines[i].want; w->key; w++)
            check_limit(out, w);
        if (machines[i].n >= 0 && json_array_size(out) != (size_t)machines[i].n)
            fail_msg("case %zu gives %zu limits", i, json_array_size(out));
        if (!i)
            assert_string_equal(
                json_string_value(json_object_get(limit_find(out, "gpu.0.bf16_tflops"), "address")),
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
        check_limit(out, &(struct want){"gpu.1.nvlink_gbytes_per_s", links[i].data, "nvml"});
        check_limit(out, &(struct want){"p2p.0000:01:00.0+0000:09:00.0.nvlink_gbytes_per_s",
                                        links[i].data, "nvml"});
        json_decref(out);
    }
}

TESTS_WITH(load_shipped, free_shipped);
