// SPDX-License-Identifier: Apache-2.0
// Tests of the hardware figures: the reader, the shipped files' arithmetic, and the link formulas.
#include "core/hw/nic.h"
#include "core/hw/nvml.h"
#include "harness/limits/limits.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

static double figure(const struct limits *l, const char *key)
{
    double value = 0;
    if (limits_lookup(l, key, &value, NULL, NULL))
        fail_msg("no figure %s", key);
    return value;
}

static double part(const struct limits *l, const char *entry, const char *name)
{
    char key[128];
    snprintf(key, sizeof(key), "%s.%s", entry, name);
    return figure(l, key);
}

#define NEAR(a, b) assert_true(fabs((a) - (b)) < 1e-6 * fabs(b))

// ---- the shipped files

static void lookup_gives_value_unit_source(void **state)
{
    double value = 0;
    const char *unit = NULL, *source = NULL;
    const char *key = "gpu.h100-sxm5-80gb.bf16_tflops";
    assert_int_equal(limits_lookup(*state, key, &value, &unit, &source), 0);
    assert_true(value == 989.4);
    assert_string_equal(unit, "TFLOP/s");
    assert_string_equal(source, "NVIDIA H100 Tensor Core GPU Architecture (v1.04), NVIDIA, 2023, "
                                "https://resources.nvidia.com/en-us-tensor-core");
    assert_int_equal(limits_lookup(*state, key, NULL, NULL, NULL), 0);
    value = 5;
    assert_int_equal(limits_lookup(*state, "gpu.h100-sxm5-80gb.bf16", &value, NULL, NULL), -ENOENT);
    assert_int_equal(limits_lookup(*state, "gpu.h100.bf16_tflops", &value, NULL, NULL), -ENOENT);
    assert_int_equal(limits_lookup(*state, "bf16_tflops", &value, NULL, NULL), -ENOENT);
    assert_int_equal(limits_lookup(*state, "", &value, NULL, NULL), -ENOENT);
    assert_true(value == 5);
    assert_non_null(limits_note(*state, "gpu.l40s.f16_tflops"));
    assert_null(limits_note(*state, "gpu.l40s.f32_tflops"));
    assert_null(limits_note(*state, "gpu.l40s.nothing"));
}

static void devices_are_found(void **state)
{
    const char *entry = NULL;
    assert_int_equal(limits_gpu_by_pci(*state, "10de:2330", &entry), 0);
    assert_string_equal(entry, "gpu.h100-sxm5-80gb");
    assert_int_equal(limits_gpu_by_pci(*state, "10DE:20B2", &entry), 0);
    assert_string_equal(entry, "gpu.a100-sxm4-80gb");
    assert_int_equal(limits_gpu_by_name(*state, "NVIDIA H200", &entry), 0);
    assert_string_equal(entry, "gpu.h200-sxm-141gb");
    assert_int_equal(limits_nic_by_pci(*state, "15b3:1021", &entry), 0);
    assert_string_equal(entry, "nic.connectx-7");
    entry = "kept";
    assert_int_equal(limits_gpu_by_name(*state, "NVIDIA H200 MIG 1g.18gb", &entry), -ENOENT);
    assert_int_equal(limits_gpu_by_name(*state, "NVIDIA H20 ", &entry), -ENOENT);
    assert_int_equal(limits_gpu_by_pci(*state, "15b3:1021", &entry), -ENOENT);
    assert_int_equal(limits_nic_by_pci(*state, "10de:2330", &entry), -ENOENT);
    assert_string_equal(entry, "kept");
}

static int starts(const char *s, const char *with)
{
    return !strncmp(s, with, strlen(with));
}

// Each pair of figures that stands for the same hardware must agree: a slip in one of them shows
// here.
static int check_one(const struct limit_figure *f, void *data)
{
    const struct limits *l = data;
    char entry[128];
    assert_non_null(f->source);
    assert_true(strlen(f->source) > 20);
    snprintf(entry, sizeof(entry), "%.*s", (int)(strrchr(f->key, '.') - f->key), f->key);
    if (starts(f->key, "pcie.") && strstr(f->key, ".lane_gbytes_per_s"))
        NEAR(f->value, part(l, entry, "gt_s") * part(l, entry, "data_bits") /
                           part(l, entry, "line_bits") / 8);
    if (starts(f->key, "infiniband.") && strstr(f->key, ".lane_data_gbits_per_s"))
        NEAR(f->value, part(l, entry, "lane_signal_gbits_per_s") * part(l, entry, "data_bits") /
                           part(l, entry, "line_bits"));
    if (starts(f->key, "memory.") && strstr(f->key, ".gbytes_per_s"))
        NEAR(f->value, part(l, entry, "interface_bits") * part(l, entry, "max_mt_s") / 8000);
    if (strstr(f->key, ".nvlink_links"))
        NEAR(part(l, entry, "nvlink_gbytes_per_s"),
             nvlink_data_gbps(part(l, entry, "nvlink_gen"), f->value, INFINITY));
    return 0;
}

static void figures_agree_with_each_other(void **state)
{
    assert_int_equal(limits_each(*state, check_one, *state), 0);
}

// What a multiprocessor does in a clock, times their number and the clock that the vendor states
// its peak for, is that peak: of each generation at least one card.
static void multiprocessors_add_up_to_the_datasheet(void **state)
{
    static const struct {
        const char *gpu, *sm;
        double sms, ghz;
        const char *figure, *each;
    } cards[] = {
        {"gpu.v100-sxm2-16gb", "sm.cc-7-0", 80, 1.53, "f16_tflops", "f16_per_clock"},
        {"gpu.v100-sxm2-16gb", "sm.cc-7-0", 80, 1.53, "f64_tflops", "f64_per_clock"},
        {"gpu.v100-sxm2-16gb", "sm.cc-7-0", 80, 1.53, "f32_tflops", "f32_per_clock"},
        {"gpu.t4", "sm.cc-7-5", 40, 1.59, "f16_tflops", "f16_per_clock"},
        {"gpu.t4", "sm.cc-7-5", 40, 1.59, "int8_tops", "int8_per_clock"},
        {"gpu.a100-sxm4-80gb", "sm.cc-8-0", 108, 1.41, "bf16_tflops", "bf16_per_clock"},
        {"gpu.a100-sxm4-80gb", "sm.cc-8-0", 108, 1.41, "tf32_tflops", "tf32_per_clock"},
        {"gpu.a100-sxm4-80gb", "sm.cc-8-0", 108, 1.41, "int8_tops", "int8_per_clock"},
        {"gpu.a100-sxm4-80gb", "sm.cc-8-0", 108, 1.41, "f64_tensor_tflops", "f64_per_clock"},
        {"gpu.a100-sxm4-80gb", "sm.cc-8-0", 108, 1.41, "f32_tflops", "f32_per_clock"},
        {"gpu.a10", "sm.cc-8-6", 72, 1.695, "f16_tflops", "f16_per_clock"},
        {"gpu.a10", "sm.cc-8-6", 72, 1.695, "int8_tops", "int8_per_clock"},
        {"gpu.a40", "sm.cc-8-6", 84, 1.74, "bf16_tflops", "bf16_per_clock"},
        {"gpu.l40s", "sm.cc-8-9", 142, 2.52, "f16_tflops", "f16_per_clock"},
        {"gpu.l40s", "sm.cc-8-9", 142, 2.52, "fp8_tflops", "fp8_per_clock"},
        {"gpu.l40s", "sm.cc-8-9", 142, 2.52, "tf32_tflops", "tf32_per_clock"},
        {"gpu.h100-sxm5-80gb", "sm.cc-9-0", 132, 1.83, "bf16_tflops", "bf16_per_clock"},
        {"gpu.h100-sxm5-80gb", "sm.cc-9-0", 132, 1.83, "fp8_tflops", "fp8_per_clock"},
        {"gpu.h100-sxm5-80gb", "sm.cc-9-0", 132, 1.98, "f64_tensor_tflops", "f64_per_clock"},
        {"gpu.h100-sxm5-80gb", "sm.cc-9-0", 132, 1.98, "f32_tflops", "f32_per_clock"},
        {"gpu.b200", "sm.cc-10-0", 148, 1.856, "bf16_tflops", "bf16_per_clock"},
        {"gpu.b200", "sm.cc-10-0", 148, 1.856, "fp8_tflops", "fp8_per_clock"},
    };
    for (size_t i = 0; i < sizeof(cards) / sizeof(*cards); i++) {
        double peak = part(*state, cards[i].gpu, cards[i].figure);
        double each = part(*state, cards[i].sm, cards[i].each);
        double sum = cards[i].sms * cards[i].ghz * each / 1e3;
        if (fabs(sum / peak - 1) > 0.01)
            fail_msg("%s %s is %g, its multiprocessors give %g", cards[i].gpu, cards[i].figure,
                     peak, sum);
    }
}

// Ratios that hold for a dense rate and break for a sparse one: half the bits, twice the rate.
static void tensor_rates_are_dense(void **state)
{
    static const char *const gpus[] = {"a10",
                                       "a30",
                                       "a40",
                                       "a100-sxm4-40gb",
                                       "a100-sxm4-80gb",
                                       "l4",
                                       "a100-pcie-40gb",
                                       "a100-pcie-80gb",
                                       "l40s",
                                       "rtx-4090",
                                       "b200",
                                       "h100-sxm5-80gb",
                                       "h100-pcie-80gb",
                                       "h100-nvl",
                                       "h200-sxm-141gb",
                                       "gb200",
                                       "h200-nvl",
                                       "h20-96gb",
                                       "gh200-96gb",
                                       "gh200-144gb",
                                       "mi300x"};
    for (size_t i = 0; i < sizeof(gpus) / sizeof(*gpus); i++) {
        char entry[64];
        snprintf(entry, sizeof(entry), "gpu.%s", gpus[i]);
        double half = part(*state, entry, "bf16_tflops");
        assert_true(half == part(*state, entry, "f16_tflops"));
        assert_true(fabs(half / part(*state, entry, "tf32_tflops") - 2) < 0.03);
        double int8 = part(*state, entry, "int8_tops") / half;
        assert_true(fabs(int8 - 2) < 0.02 || !strcmp(gpus[i], "rtx-4090"));
    }
}

// One published rate of each family, so that a whole file cannot be off by two unseen.
static void anchors_stand(void **state)
{
    assert_true(figure(*state, "gpu.v100-sxm2-16gb.f16_tflops") == 125);
    assert_true(figure(*state, "gpu.t4.int8_tops") == 130);
    assert_true(figure(*state, "gpu.a100-sxm4-80gb.bf16_tflops") == 312);
    assert_true(figure(*state, "gpu.a100-sxm4-80gb.nvlink_gbytes_per_s") == 300);
    assert_true(figure(*state, "gpu.h100-sxm5-80gb.nvlink_gbytes_per_s") == 450);
    assert_true(figure(*state, "gpu.b200.fp8_tflops") == 4500);
    assert_true(figure(*state, "gpu.mi300x.bf16_tflops") == 1307.4);
    assert_true(figure(*state, "memory.ddr4.gbytes_per_s") == 25.6);
    assert_true(figure(*state, "nic.connectx-6.port_gbits_per_s") == 200);
    assert_true(figure(*state, "ethernet.400gbe.data_gbits_per_s") == 400);
}

// A GPU's memory by clock and width, as the driver tells them: no rounding of a datasheet's puts the limit below
// what the pins carry, nor 1 % above.
static void memory_is_clock_times_width(void **state)
{
    static const struct {
        const char *entry;
        double mhz, bits;
    } cards[] = {
        {"v100-sxm2-16gb", 877, 4096},
        {"v100-sxm2-32gb", 877, 4096},
        {"v100-pcie-16gb", 877, 4096},
        {"v100-pcie-32gb", 877, 4096},
        {"v100s-pcie-32gb", 1107, 4096},
        {"t4", 5001, 256},
        {"a10", 6251, 384},
        {"a30", 1215, 3072},
        {"a40", 7251, 384},
        {"a100-sxm4-40gb", 1215, 5120},
        {"a100-pcie-40gb", 1215, 5120},
        {"a100-sxm4-80gb", 1593, 5120},
        {"a100-pcie-80gb", 1512, 5120},
        {"l4", 6251, 192},
        {"l40s", 9001, 384},
        {"rtx-4090", 10501, 384},
        {"h100-sxm5-80gb", 2619, 5120},
        {"h100-pcie-80gb", 1593, 5120},
        {"h100-nvl", 2619, 6016},
        {"h200-sxm-141gb", 3201, 6144},
        {"h200-nvl", 3201, 6144},
        {"h20-96gb", 2619, 6144},
        {"gh200-96gb", 2619, 6144},
        {"gh200-144gb", 3201, 6144},
        {"b200", 3996, 7680},
        {"mi250x-die", 1600, 4096},
        {"mi300x", 2600, 8192},
    };
    for (size_t i = 0; i < sizeof(cards) / sizeof(*cards); i++) {
        char key[96];
        double pins = cards[i].mhz * 2 * cards[i].bits / 8 / 1000;
        snprintf(key, sizeof(key), "gpu.%s.memory_gbytes_per_s", cards[i].entry);
        double limit = figure(*state, key);
        if (limit < pins || limit > 1.01 * pins)
            fail_msg("%s: %.2f, and the pins carry %.2f", cards[i].entry, limit, pins);
    }
}

static int stop_at_third(const struct limit_figure *f, void *data)
{
    (void)f;
    return ++*(int *)data == 3 ? 7 : 0;
}

static void each_stops_when_told(void **state)
{
    int seen = 0;
    assert_int_equal(limits_each(*state, stop_at_third, &seen), 7);
    assert_int_equal(seen, 3);
}

// ---- formulas

static void pcie_follows_its_formula(void **state)
{
    double g = 0;
    assert_int_equal(limits_pcie(*state, 3, 16, 0, &g), 0);
    NEAR(g, 16 * 8.0 * 128 / 130 / 8); // 15.75 GB/s
    assert_int_equal(limits_pcie(*state, 3, 8, 256, &g), 0);
    NEAR(g, 8 * 8.0 * 128 / 130 / 8 * 256 / 276); // Intel AN 708: 92.8 % of the link at 256 bytes
    assert_int_equal(limits_pcie(*state, 1, 1, 128, &g), 0);
    NEAR(g, 0.25 * 128 / 148);
    assert_int_equal(limits_pcie(*state, 6, 16, 512, &g), 0);
    NEAR(g, 16 * 7.375 * 512 / 524); // no framing in a flit
    // A benchmark's own limit of a network card's slot is the same.
    static const double gt_s[] = {2.5, 5, 8, 16, 32, 64};
    for (int gen = 1; gen <= 6; gen++)
        for (int mps = 0; mps <= 256; mps += 256) {
            struct nic_pcie link = {gt_s[gen - 1], 8, (uint32_t)mps};
            assert_int_equal(limits_pcie(*state, gen, 8, mps, &g), 0);
            NEAR(framing_pcie_gbps(&link) / 8, g);
        }
    g = 5;
    assert_int_equal(limits_pcie(*state, 9, 16, 256, &g), -ENOENT);
    assert_int_equal(limits_pcie(*state, 0, 16, 256, &g), -ENOENT);
    assert_int_equal(limits_pcie(*state, 4, 0, 256, &g), -EINVAL);
    assert_int_equal(limits_pcie(*state, 4, 33, 256, &g), -EINVAL);
    assert_int_equal(limits_pcie(*state, 4, 16, -1, &g), -EINVAL);
    assert_int_equal(limits_pcie(*state, 4, 16, 8192, &g), -EINVAL);
    assert_true(g == 5);
}

static void pcie_generation_is_known_by_its_rate(void **state)
{
    static const double gt_s[] = {2.5, 5, 8, 16, 32, 64};
    for (int i = 0; i < 6; i++)
        assert_int_equal(limits_pcie_gen(*state, gt_s[i]), i + 1);
    assert_int_equal(limits_pcie_gen(*state, 8.05), -ENOENT);
    assert_int_equal(limits_pcie_gen(*state, 0), -ENOENT);
}

static void infiniband_counts_lanes(void **state)
{
    double g = 0;
    assert_int_equal(limits_infiniband(*state, "fdr", 4, &g), 0);
    assert_true(fabs(g - 54.5454) < 1e-3);
    assert_int_equal(limits_infiniband(*state, "ndr", 4, &g), 0);
    assert_true(g == 400);
    assert_int_equal(limits_infiniband(*state, "hdr", 2, &g), 0);
    assert_true(g == 100);
    assert_int_equal(limits_infiniband(*state, "ndr", 0, &g), -EINVAL);
    assert_int_equal(limits_infiniband(*state, "ndr", 13, &g), -EINVAL);
    assert_int_equal(limits_infiniband(*state, "zdr", 4, &g), -ENOENT);
    assert_true(g == 100);
}

static void payload_fractions(void **state)
{
    (void)state;
    NEAR(limits_tcp_fraction(1500, 12), 1448.0 / 1538);
    NEAR(limits_tcp_fraction(9000, 0), 8960.0 / 9038);
    NEAR(limits_roce_fraction(4096), 4096.0 / 4178);
}

// ---- what the reader refuses

struct folder {
    char root[64];
    char file[256];
};

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static struct folder folder_with(const char *text)
{
    struct folder f = {"/tmp/plumb-limits-XXXXXX", ""};
    char sub[128];
    assert_non_null(mkdtemp(f.root));
    snprintf(sub, sizeof(sub), "%s/hardware", f.root);
    assert_int_equal(mkdir(sub, 0755), 0);
    snprintf(f.file, sizeof(f.file), "%s/a.yaml", sub);
    write_file(f.file, text);
    return f;
}

static void folder_remove(struct folder *f)
{
    char sub[128];
    unlink(f->file);
    snprintf(sub, sizeof(sub), "%s/hardware", f->root);
    rmdir(sub);
    rmdir(f->root);
}

// text in, message out; "" when it loads.
static void loads_as(const char *text, const char *message)
{
    struct folder f = folder_with(text);
    char err[1024] = "", want[2048];
    struct limits *l = limits_load(f.root, err, sizeof(err));
    snprintf(want, sizeof(want), "%s%s", f.file, message);
    folder_remove(&f);
    if (!*message) {
        if (!l)
            fail_msg("%s", err);
        limits_free(l);
        return;
    }
    assert_null(l);
    assert_string_equal(err, want);
}

#define SRC "about: a\nkind: ethernet\nsources:\n  - {id: s, title: t, publisher: p, date: 2020}\n"
#define ENT SRC "entries:\n  - key: gen1\n"

static void the_format_is_strict(void **state)
{
    (void)state;
    loads_as(ENT "    source: s\n    figures: {data_gbits_per_s: 20}\n", "");
    loads_as(ENT "    figures: {data_gbits_per_s: {value: 20, source: s, note: n}}\n", "");
    loads_as(ENT "    figures: {data_gbits_per_s: 20}\n",
             ":7: \"data_gbits_per_s\" has no source, neither its own nor its entry's");
    loads_as(ENT "    source: x\n    figures: {data_gbits_per_s: 20}\n",
             ":7: unknown source \"x\", the file's \"sources\" lacks it");
    loads_as(ENT "    source: s\n    figures: {data_gbit_per_s: 20}\n",
             ":8: unknown key \"data_gbit_per_s\", did you mean \"data_gbits_per_s\"? allowed: "
             "data_gbits_per_s");
    loads_as(ENT "    source: s\n    figures: {}\n",
             ":8: \"ethernet.gen1\" lacks the figure \"data_gbits_per_s\"");
    loads_as(ENT "    source: s\n    figures: {data_gbits_per_s: 2000}\n",
             ":8: \"data_gbits_per_s\" is 2000, allowed: 0.01 to 1600");
    loads_as(ENT "    source: s\n    figures: {data_gbits_per_s: {value: 20, sourc: s}}\n",
             ":8: unknown key \"sourc\", did you mean \"source\"? allowed: value, source, note");
    loads_as(ENT "    source: s\n    figures: {data_gbits_per_s: {source: s}}\n",
             ":8: \"data_gbits_per_s\" lacks the key \"value\"");
    loads_as(ENT "    source: s\n    speed: 5\n    figures: {data_gbits_per_s: 20}\n",
             ":8: unknown key \"speed\", allowed: key, names, pci, source, note, figures");
    loads_as(ENT "    source: s\n", ":6: \"entries\" lacks the key \"figures\"");
    loads_as(SRC "entries:\n  - key: Gen_1\n",
             ":6: key \"Gen_1\" wants small letters, digits and \"-\"");
    loads_as(
        SRC "entries: []\nkinds: x\n",
        ":6: unknown key \"kinds\", did you mean \"kind\"? allowed: about, kind, sources, entries");
    loads_as(SRC "entries: []\n", ":4: source \"s\" is used by no figure");
    loads_as("about: a\nkind: cpu\nsources: []\nentries: []\n",
             ":2: unknown kind \"cpu\", did you mean \"gpu\"? allowed: gpu, sm, pcie, nic, "
             "ethernet, "
             "infiniband, memory");
}

static void sources_are_strict(void **state)
{
    (void)state;
    static const char head[] = "about: a\nkind: ethernet\nsources:\n";
    static const struct {
        const char *line, *message;
    } cases[] = {
        {"  - {id: s, publisher: p, date: 1}\n", ":4: \"sources\" lacks the key \"title\""},
        {"  - {id: s, title: t, date: 1}\n", ":4: \"sources\" lacks the key \"publisher\""},
        {"  - {id: s, title: t, publisher: p}\n", ":4: source \"s\" needs a date or a url"},
        {"  - {id: s, title: t, publisher: p, date: 1, chapter: 4}\n",
         ":4: unknown key \"chapter\", allowed: id, title, publisher, date, url"},
        {"  - {id: s, title: t, publisher: p, url: u}\n  - {id: s, title: t, publisher: p, url: "
         "u}\n",
         ":5: source \"s\" stands twice"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char text[512];
        snprintf(text, sizeof(text), "%s%sentries: []\n", head, cases[i].line);
        loads_as(text, cases[i].message);
    }
}

#define NIC                                                                                        \
    "about: a\nkind: nic\nsources:\n  - {id: s, title: t, publisher: p, date: 2020}\nentries:\n"   \
    "  - {key: a, names: [N one], pci: [\"15b3:1013\"], source: s, figures: {pcie_gen: 3}}\n"

static void devices_are_unique(void **state)
{
    (void)state;
    loads_as(NIC, "");
    loads_as(NIC "  - {key: b, pci: [\"15b3:1013\"], source: s, figures: {}}\n",
             ":7: PCI id \"15b3:1013\" is given twice");
    loads_as(NIC "  - {key: b, pci: [\"15b3:1\"], source: s, figures: {}}\n",
             ":7: PCI id \"15b3:1\" wants four hex digits, a colon, four hex digits");
    loads_as(NIC "  - {key: b, pci: [\"15B3:1015\"], source: s, figures: {}}\n",
             ":7: PCI id \"15B3:1015\" wants four hex digits, a colon, four hex digits");
    loads_as(NIC "  - {key: b, names: [n ONE], source: s, figures: {}}\n",
             ":7: name \"n ONE\" is given twice");
    loads_as(NIC "  - {key: a, source: s, figures: {}}\n", ":7: entry \"nic.a\" stands twice");
    loads_as(NIC "  - {key: b, pci: 15b3, source: s, figures: {}}\n",
             ":7: \"pci\" wants a list, has a single value");
}

static void a_folder_without_figures_is_an_error(void **state)
{
    (void)state;
    char err[1024] = "", want[512];
    assert_null(limits_load("/nonexistent", err, sizeof(err)));
    assert_string_equal(
        err, "hardware figures \"/nonexistent/hardware\" cannot be read: No such file or "
             "directory");
    struct folder f = folder_with("");
    unlink(f.file);
    assert_null(limits_load(f.root, err, sizeof(err)));
    snprintf(want, sizeof(want), "hardware figures \"%s/hardware\" has no .yaml file", f.root);
    assert_string_equal(err, want);
    folder_remove(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lookup_gives_value_unit_source),
        cmocka_unit_test(devices_are_found),
        cmocka_unit_test(figures_agree_with_each_other),
        cmocka_unit_test(tensor_rates_are_dense),
        cmocka_unit_test(multiprocessors_add_up_to_the_datasheet),
        cmocka_unit_test(memory_is_clock_times_width),
        cmocka_unit_test(anchors_stand),
        cmocka_unit_test(each_stops_when_told),
        cmocka_unit_test(pcie_follows_its_formula),
        cmocka_unit_test(pcie_generation_is_known_by_its_rate),
        cmocka_unit_test(infiniband_counts_lanes),
        cmocka_unit_test(payload_fractions),
        cmocka_unit_test(the_format_is_strict),
        cmocka_unit_test(sources_are_strict),
        cmocka_unit_test(devices_are_unique),
        cmocka_unit_test(a_folder_without_figures_is_an_error),
    };
    return cmocka_run_group_tests(tests, load_shipped, free_shipped);
}
