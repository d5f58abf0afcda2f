// SPDX-License-Identifier: Apache-2.0
// Tests of the hardware figures: the reader, the shipped files' arithmetic, and the link formulas.
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

TESTS_WITH(load_shipped, free_shipped);
