/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what differs between two machines: only what differs is told, devices are matched by what they are, and
 * nothing that a run.json may hold is too odd. */
#include "harness/compare/pairs.h"

#include "tests/unit/pairs_scene.h"

static const char *const params[] = {"op"};
static const char *const triad[] = {"triad"};

static void write_run(const struct fake_run *root, const char *name, const char *meta)
{
    struct scene_run r = scene_begin(root, name, "memory", params, 1);
    struct row row;

    for (uint64_t i = 1; i < 3; i++) {
        fake_row_init(&row, "1", i, "bandwidth", "GB/s", 10);
        scene_row(&r, &row, triad);
        scene_launch(&r, "done", 1, "1", i, "");
    }
    scene_end(&r);
    scene_file(root, name, "run.json", meta);
}

static struct pairs differ(const struct fake_run *root, const char *a, const char *b,
                           struct machine_difference **all, size_t *n)
{
    write_run(root, "a", a);
    write_run(root, "b", b);
    struct pairs p = scene_pairs(root, "a", "b");

    *n = pairs_machine_differences(&p, all);
    return p;
}

static void expect(const struct machine_difference *d, const char *what, const char *a,
                   const char *b, const char *pipes)
{
    assert_string_equal(d->what, what);
    assert_string_equal(d->a, a);
    assert_string_equal(d->b, b);
    assert_string_equal(d->pipes, pipes);
}

#define HOST(hypervisor, nodes, thp, governor, kernel, retbleed)                                   \
    "{\"schema\": 1, \"version\": \"0.1.0\", \"machine\": {\"virtualization\": {\"hypervisor\": "  \
    "\"" hypervisor "\", \"container\": \"none\"}, \"numa\": {\"nodes\": [" nodes                  \
    "]}, \"cpu\": {\"model\": \"EPYC\", \"clock\": {\"governors\": [\"" governor                   \
    "\"]}}, \"memory\": {\"total_bytes\": 68719476736, \"transparent_huge_pages\": {\"enabled\": " \
    "\"" thp "\"}}, \"host\": {\"kernel\": \"" kernel                                              \
    "\", \"mitigations\": {\"retbleed\": \"" retbleed "\", \"mds\": \"Not affected\"}}}}"

static void test_host(void **state)
{
    struct machine_difference *d;
    size_t n;
    struct pairs p =
        differ(*state, HOST("none", "{}, {}", "always", "performance", "6.1", "Vulnerable"),
               HOST("kvm", "{}", "madvise", "powersave", "6.1", "Not affected"), &d, &n);

    assert_int_equal(n, 5);
    expect(&d[0], "virtualisation", "bare metal", "KVM guest", "");
    expect(&d[1], "NUMA nodes", "2", "1", "Memory, Copies, GPU memory, PCIe, Network, Collectives");
    expect(&d[2], "CPU governor", "performance", "powersave", "");
    expect(&d[3], "transparent huge pages", "always", "madvise", "Memory, Copies, GPU memory");
    expect(&d[4], "CPU mitigations", "retbleed: Vulnerable", "retbleed: Not affected",
           "Copies, GPU launch, Network, Collectives");
    pairs_release(&p);
}

#define MITIGATIONS(of) "{\"schema\": 1, \"machine\": {\"host\": {\"mitigations\": {" of "}}}}"

static void test_mitigations_are_one_line(void **state)
{
    struct machine_difference *d;
    size_t n;
    struct pairs p = differ(
        *state,
        MITIGATIONS("\"mds\": \"Not affected\", \"l1tf\": \"Vulnerable\", \"srbds\": \"x\""),
        MITIGATIONS("\"l1tf\": \"PTE\", \"mds\": \"Vulnerable\", \"srbds\": \"x\", \"its\": \"y\""),
        &d, &n);

    assert_int_equal(n, 1);
    expect(&d[0], "CPU mitigations", "mds: Not affected; l1tf: Vulnerable",
           "l1tf: PTE; mds: Vulnerable; its: y", "Copies, GPU launch, Network, Collectives");
    pairs_release(&p);
}

/* What an older program did not tell is no difference to what is not there. */
#define SETTINGS(of) "{\"schema\": 1, \"machine\": {}" of "}"

/* That none was set is known, if the run says so. */
static void test_settings(void **state)
{
    struct machine_difference *d;
    size_t n;
    struct pairs p =
        differ(*state, SETTINGS(", \"library_settings\": {}"),
               SETTINGS(", \"library_settings\": {\"OPENBLAS_CORETYPE\": \"Haswell\"}"), &d, &n);

    assert_int_equal(n, 1);
    expect(&d[0], "library settings", "none", "OPENBLAS_CORETYPE=Haswell", "");
    pairs_release(&p);
}

static void test_silence(void **state)
{
    struct machine_difference *d;
    size_t n;
    struct pairs p = differ(
        *state,
        "{\"schema\": 1, \"machine\": {\"cpu\": {\"features\": {\"avx2\": true, \"amx\": false}}}}",
        "{\"schema\": 1, \"machine\": {\"numa\": {\"balancing\": false}, \"gpus\": "
        "{\"nvswitches\": 0}, "
        "\"cpu\": {\"features\": {\"avx2\": false, \"sve\": true}, \"smt\": {\"control\": "
        "\"on\"}}, "
        "\"caches\": [{\"level\": 3, \"count\": 2, \"size_bytes\": 33554432}]}}",
        &d, &n);

    assert_int_equal(n, 3);
    expect(&d[0], "caches", "", "L3 2 x 32 MiB", "Matrix core, Memory, Copies, GPU memory");
    expect(&d[1], "CPU features of one alone", "avx2", "none", "Matrix core, Memory");
    expect(&d[2], "SMT", "", "on", "");
    pairs_release(&p);
}

static void test_same(void **state)
{
    const char *same = HOST("kvm", "{}", "always", "performance", "6.1", "Vulnerable");
    struct machine_difference *d;
    size_t n;
    struct pairs p = differ(*state, same, same, &d, &n);

    assert_int_equal(n, 0);
    pairs_release(&p);
}

#define MEMORY(bytes) "{\"schema\": 1, \"machine\": {\"memory\": {\"total_bytes\": " bytes "}}}"

/* Three digits, and all those before the point. */
static void test_sizes(void **state)
{
    static const struct {
        const char *bytes[2], *texts[2];
    } sizes[] = {
        {{"1084479242240", "1073741824000"}, {"1010 GiB", "1000 GiB"}},
        {{"25254494208", "107911053312"}, {"23.5 GiB", "100 GiB"}},
        {{"1098437885952", "1099511627776"}, {"1023 GiB", "1 TiB"}},
        {{"1099511627775", "1098437885952"}, {"1 TiB", "1023 GiB"}},
        {{"5497558138880000", "68719476736"}, {"5000 TiB", "64 GiB"}},
    };

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        struct machine_difference *d;
        char texts[2][128];
        size_t n;

        for (size_t k = 0; k < 2; k++)
            snprintf(texts[k], sizeof(texts[k]), MEMORY("%s"), sizes[i].bytes[k]);
        struct pairs p = differ(*state, texts[0], texts[1], &d, &n);
        assert_int_equal(n, 1);
        expect(&d[0], "memory", sizes[i].texts[0], sizes[i].texts[1], "Memory, Copies, GPU memory");
        pairs_release(&p);
    }
}

#define CARD(address, width)                                                                       \
    "{\"address\": \"" address "\", \"kind\": \"infiniband\", \"vendor_id\": \"15b3\", "           \
    "\"device_id\": \"1021\", \"name\": \"ConnectX-7\", \"link\": {\"now_width\": " width          \
    ", \"now_gt_s\": 32.0, \"generation\": 5}}"
#define RDMA(name, firmware)                                                                       \
    "{\"name\": \"" name "\", \"driver\": \"mlx5_core\", \"nature\": \"physical\", \"firmware\": " \
    "\"" firmware                                                                                  \
    "\", \"ports\": [{\"link_layer\": \"InfiniBand\", \"rate_gbits_per_s\": 400.0}]}"
#define NIC(name, mtu)                                                                             \
    "{\"name\": \"" name "\", \"driver\": \"ixgbe\", \"virtual\": false, \"state\": \"up\", "      \
    "\"speed_gbits_per_s\": 10.0, \"mtu\": " mtu "}"
#define GPU(address, ecc)                                                                          \
    "{\"address\": \"" address                                                                     \
    "\", \"name\": \"NVIDIA H200\", \"nature\": \"physical\", \"ecc\": " ecc "}"
#define DEVICES(pci, rdma, nic, gpus, driver)                                                      \
    "{\"schema\": 1, \"machine\": {\"pci\": [" pci "], \"rdma\": [" rdma "], \"network\": [" nic   \
    "], \"gpus\": {\"driver_version\": \"" driver "\", \"devices\": [" gpus "]}}}"

/* Other addresses and names of like devices are no difference. */
static void test_devices_are_matched_by_model(void **state)
{
    struct machine_difference *d;
    size_t n;
    struct pairs p =
        differ(*state,
               DEVICES(CARD("01:00.0", "16") ", " CARD("02:00.0", "16"), RDMA("mlx5_0", "28"),
                       NIC("eth0", "1500"), GPU("05:00.0", "true"), "550"),
               DEVICES(CARD("0a:00.0", "16") ", " CARD("0b:00.0", "16"), RDMA("mlx5_7", "28"),
                       NIC("ens1", "1500"), GPU("07:00.0", "true"), "550"),
               &d, &n);

    assert_int_equal(n, 0);
    pairs_release(&p);
}

static void test_devices(void **state)
{
    struct machine_difference *d;
    size_t n;
    struct pairs p =
        differ(*state,
               DEVICES(CARD("01:00.0", "16") ", " CARD("02:00.0", "16"), RDMA("mlx5_0", "28"),
                       NIC("eth0", "9000"), GPU("05:00.0", "true"), "550"),
               DEVICES(CARD("01:00.0", "16") ", " CARD("02:00.0", "8"), RDMA("mlx5_0", "26"),
                       NIC("eth0", "1500"), GPU("05:00.0", "false"), "535"),
               &d, &n);

    assert_int_equal(n, 5);
    expect(&d[0], "NVIDIA driver", "550", "535",
           "GPU matrix core, GPU memory, GPU launch, PCIe, NVLink");
    expect(&d[1], "PCIe link of ConnectX-7", "2 x PCIe 5.0 x16", "PCIe 5.0 x16; PCIe 5.0 x8",
           "PCIe, Network, Collectives");
    expect(&d[2], "network interfaces", "ixgbe, 10 Gb/s, MTU 9000", "ixgbe, 10 Gb/s, MTU 1500",
           "Network, Collectives");
    expect(&d[3], "RDMA devices", "mlx5_core, physical, firmware 28, InfiniBand, 400 Gb/s",
           "mlx5_core, physical, firmware 26, InfiniBand, 400 Gb/s", "Network, Collectives");
    expect(&d[4], "GPU ECC", "on", "off", "GPU memory");
    pairs_release(&p);
}

static void test_a_device_on_one_side_alone(void **state)
{
    struct machine_difference *d;
    size_t n;
    struct pairs p = differ(*state, DEVICES("", "", "", "", "550"),
                            DEVICES(CARD("01:00.0", "16"), "", "", "", "550"), &d, &n);

    assert_int_equal(n, 1);
    expect(&d[0], "PCIe link of ConnectX-7", "none", "PCIe 5.0 x16", "PCIe, Network, Collectives");
    pairs_release(&p);
}

#define LIMITED(schema, quota, rdma)                                                               \
    "{\"schema\": 1, \"machine\": {\"probe_schema\": " schema                                      \
    ", \"virtualization\": {\"limits\": {\"cgroup_version\": 2, \"cpu_quota\": " quota             \
    "}}, \"rdma\": " rdma "}}"

/* What could not be read is not what is not there; the probe's first version had no word for the latter. */
static void test_unread_is_not_absent(void **state)
{
    struct machine_difference *d;
    size_t n;
    struct pairs p = differ(*state, LIMITED("2", "null", "null"),
                            LIMITED("2", "2.5", "[" RDMA("mlx5_0", "28") "]"), &d, &n);

    assert_int_equal(n, 2);
    expect(&d[0], "CPU quota", "", "2.5 CPUs", "");
    assert_string_equal(d[1].a, "");
    pairs_release(&p);
    p = differ(*state, LIMITED("2", "\"none\"", "[]"),
               LIMITED("2", "2.5", "[" RDMA("mlx5_0", "28") "]"), &d, &n);
    assert_int_equal(n, 2);
    expect(&d[0], "CPU quota", "none", "2.5 CPUs", "");
    assert_string_equal(d[1].a, "none");
    pairs_release(&p);
    p = differ(*state, LIMITED("1", "null", "[]"), LIMITED("2", "\"none\"", "null"), &d, &n);
    assert_int_equal(n, 0);
    pairs_release(&p);
}

/* Wrong types everywhere: told as far as they can be, and nothing worse. */
static void test_odd(void **state)
{
    static const char *const odd[] = {
        "{\"schema\": 1}",
        "{\"schema\": 1, \"machine\": null}",
        "{\"schema\": 1, \"machine\": [], \"run\": 7, \"version\": {}, \"started_utc\": [[]]}",
        "{\"schema\": 1, \"machine\": {\"cpu\": [1], \"numa\": {\"nodes\": \"x\"}, \"caches\": "
        "{\"level\": 1}, \"pci\": [null, [], {\"kind\": \"gpu\", \"link\": 7}, 3], \"gpus\": "
        "{\"devices\": {\"a\": 1}}, \"network\": [[], 1e308], \"rdma\": [{\"ports\": [1, {}]}]}}",
        "{\"schema\": 1, \"machine\": {\"memory\": {\"total_bytes\": 1e308, \"hugetlb\": "
        "[{\"pages\": \"NaN\"}]}, \"host\": {\"mitigations\": [1], \"kernel_options\": {}}, "
        "\"cpu\": {\"features\": {\"avx\": \"yes\"}, \"clock\": {\"max_mhz\": -1}}}}",
    };
    size_t count = sizeof(odd) / sizeof(*odd);

    for (size_t i = 0; i < count * count; i++) {
        struct machine_difference *d;
        size_t n;
        struct pairs p = differ(*state, odd[i / count], odd[i % count], &d, &n);
        for (size_t k = 0; k < n; k++)
            assert_string_not_equal(d[k].a, d[k].b);
        assert_true(i / count != i % count || n == 0);
        pairs_release(&p);
    }
}

/* Runs a0, a1 ... and b0, b1 ... with these kernels. */
static struct pairs differ_kernels(void **state, const char *const *a, size_t n_a,
                                   const char *const *b, size_t n_b,
                                   struct machine_difference **all, size_t *n)
{
    static const struct pairs_options options = {.margin = 0.05};
    static char paths[8][160];
    const char *named[8];
    struct pairs p;
    char error[512] = "";

    for (size_t i = 0; i < n_a + n_b; i++) {
        const char *kernel = i < n_a ? a[i] : b[i - n_a];
        char name[24], meta[256];

        snprintf(name, sizeof(name), "%c%zu", i < n_a ? 'a' : 'b', i);
        snprintf(meta, sizeof(meta),
                 "{\"schema\": 1, \"machine\": {\"host\": {\"kernel\": \"%s\"}%s}}", kernel,
                 *kernel ? ", \"cpu\": {\"features\": {\"avx2\": true}}"
                         : ", \"cpu\": {\"features\": {\"avx2\": false}}");
        write_run(*state, name, meta);
        snprintf(paths[i], sizeof(paths[i]), "%s/%s", ((struct fake_run *)*state)->path, name);
        named[i] = paths[i];
    }
    if (pairs_load(&p, named, n_a, named + n_a, n_b, &options, error, sizeof(error)))
        fail_msg("%s", error);
    *n = pairs_machine_differences(&p, all);
    return p;
}

#define KERNELS(...)                                                                               \
    (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)

static void test_what_holds_for_all_runs(void **state)
{
    struct machine_difference *d;
    size_t n;
    struct pairs p =
        differ_kernels(state, KERNELS("6.1", "6.1", "6.1"), KERNELS("6.5", "6.5"), &d, &n);

    assert_int_equal(n, 1);
    expect(&d[0], "kernel", "6.1", "6.5", "");
    pairs_release(&p);
    p = differ_kernels(state, KERNELS("6.1", "6.1"), KERNELS("6.1", "6.1", "6.1"), &d, &n);
    assert_int_equal(n, 0);
    pairs_release(&p);
}

/* The first runs of the two sides say the same. */
static void test_runs_of_one_side_differ(void **state)
{
    struct machine_difference *d;
    size_t n;
    struct pairs p =
        differ_kernels(state, KERNELS("6.1", "6.5", "6.1"), KERNELS("6.1", "6.1"), &d, &n);

    assert_int_equal(n, 1);
    expect(&d[0], "kernel", "6.1 in 2 of 3 runs, 6.5 in 1", "6.1", "");
    pairs_release(&p);
    p = differ_kernels(state, KERNELS("6.1"), KERNELS("6.1", "6.1", "6.5"), &d, &n);
    expect(&d[0], "kernel", "6.1", "6.1 in 2 of 3 runs, 6.5 in 1", "");
    pairs_release(&p);
    /* as many of each on both sides: it weighs on the spread all the same */
    p = differ_kernels(state, KERNELS("6.1", "6.5"), KERNELS("6.1", "6.5"), &d, &n);
    assert_int_equal(n, 1);
    pairs_release(&p);
    p = differ_kernels(state, KERNELS("1", "2", "3", "4", "5", "6", "6"), KERNELS("6"), &d, &n);
    expect(&d[0], "kernel", "1 in 1 of 7 runs, 2 in 1, 3 in 1, 4 in 1, 2 others in 3", "6", "");
    pairs_release(&p);
}

/* A run that has what another of its own side lacks, and one that does not tell. */
static void test_a_run_of_a_side_lacks_something(void **state)
{
    struct machine_difference *d;
    size_t n;
    struct pairs p = differ_kernels(state, KERNELS("6.1", ""), KERNELS("6.1", "6.1"), &d, &n);

    assert_int_equal(n, 2);
    expect(&d[0], "CPU features of one alone", "avx2 in 1 of 2 runs, none in 1", "avx2",
           "Matrix core, Memory");
    expect(&d[1], "kernel", "6.1 in 1 of 2 runs", "6.1", "");
    pairs_release(&p);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, scene_make, scene_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_host),
        TEST(test_mitigations_are_one_line),
        TEST(test_settings),
        TEST(test_silence),
        TEST(test_same),
        TEST(test_sizes),
        TEST(test_devices_are_matched_by_model),
        TEST(test_devices),
        TEST(test_a_device_on_one_side_alone),
        TEST(test_unread_is_not_absent),
        TEST(test_odd),
        TEST(test_what_holds_for_all_runs),
        TEST(test_runs_of_one_side_differ),
        TEST(test_a_run_of_a_side_lacks_something),
    };

    return cmocka_run_group_tests_name("pairs_differ", tests, NULL, NULL);
}
