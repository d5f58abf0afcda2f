/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what differs between two machines: only what differs is told (what is odd is for the fuzzer), and
 * devices are matched by what they are. */
#include "harness/compare/pairs.h"
#include "tests/unit/unit.h"

#include "tests/unit/pairs_scene.h"

static const char *const params[] = {"op"};
static const char *const triad[] = {"triad"};

static void write_run(const struct fake_run *root, const char *name, const char *meta)
{
    struct scene_run r = scene_begin(root, name, "memory", params, 1);
    struct row row;

    fake_row_init(&row, "1", 1, "bandwidth", "GB/s", 10);
    scene_row(&r, &row, triad);
    scene_launch(&r, "done", 1, "1", 1, "");
    scene_end(&r);
    scene_file(root, name, "run.json", meta);
}

/* "kernel: 6.1 > 6.5 [Memory]", a line for each difference. */
static void say(struct pairs *p, char *text, size_t len)
{
    struct machine_difference *d;
    size_t n = pairs_machine_differences(p, &d);

    *text = '\0';
    for (size_t i = 0; i < n; i++)
        snprintf(text + strlen(text), len - strlen(text), "%s: %s > %s [%s]\n", d[i].what, d[i].a,
                 d[i].b, d[i].pipes);
}

static void assert_differ(const struct fake_run *root, const char *a, const char *b,
                          const char *want)
{
    char text[2048];

    write_run(root, "a", a);
    write_run(root, "b", b);
    struct pairs p = scene_pairs(root, "a", "b");
    say(&p, text, sizeof(text));
    assert_string_equal(text, want);
    pairs_release(&p);
}

#define MACHINE(of)   "{\"schema\": 3, \"machine\": {" of "}}"
#define KERNEL(of)    MACHINE("\"host\": {\"mitigations\": {" of "}}")
#define SETTINGS(of)  "{\"schema\": 3, \"machine\": {}, \"library_settings\": {" of "}}"
#define MEMORY(bytes) MACHINE("\"memory\": {\"total_bytes\": " bytes "}")
#define HOST(hypervisor, nodes, thp, governor, retbleed)                                           \
    MACHINE("\"virtualization\": {\"hypervisor\": \"" hypervisor                                   \
            "\", \"container\": \"none\"}, \"numa\": {\"nodes\": [" nodes                          \
            "]}, \"cpu\": {\"model\": \"EPYC\", \"clock\": {\"governors\": [\"" governor           \
            "\"]}}, \"memory\": {\"total_bytes\": 68719476736, \"transparent_huge_pages\": "       \
            "{\"enabled\": \"" thp "\"}}, \"host\": {\"mitigations\": {\"retbleed\": \"" retbleed  \
            "\", \"mds\": \"Not affected\"}}")
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
    MACHINE("\"pci\": [" pci "], \"rdma\": [" rdma "], \"network\": [" nic                         \
            "], \"gpus\": {\"driver_version\": \"" driver "\", \"devices\": [" gpus "]}")
#define LIMITED(schema, quota, rdma)                                                               \
    MACHINE("\"probe_schema\": " schema ", \"virtualization\": {\"limits\": {\"cgroup_version\": " \
            "2, \"cpu_quota\": " quota "}}, \"rdma\": " rdma)

#define PIPES_MEMORY "Memory, Copies, GPU memory"
#define PIPES_CALLS  "Copies, GPU launch, Network, Collectives"
#define PIPES_NET    "Network, Collectives"
#define DEVICE(fw)   "mlx5_core, physical, firmware " fw ", InfiniBand, 400 Gb/s"

/* What differs, on either side, and the components that it may tell on; what is unread is no difference to what is
 * absent. */
TEST_WITH(test_facts_that_differ, scene_make, scene_remove)
{
    static const char *const cases[][3] = {
        {HOST("none", "{}, {}", "always", "performance", "Vulnerable"),
         HOST("kvm", "{}", "madvise", "powersave", "Not affected"),
         "virtualisation: bare metal > KVM guest []\n"
         "NUMA nodes: 2 > 1 [" PIPES_MEMORY ", PCIe, Network, Collectives]\n"
         "CPU governor: performance > powersave []\n"
         "transparent huge pages: always > madvise [" PIPES_MEMORY "]\n"
         "CPU mitigations: retbleed: Vulnerable > retbleed: Not affected [" PIPES_CALLS "]\n"},
        {HOST("kvm", "{}", "x", "x", "x"), HOST("kvm", "{}", "x", "x", "x"), ""},
        {KERNEL("\"mds\": \"no\", \"l1tf\": \"yes\", \"srbds\": \"x\""),
         KERNEL("\"l1tf\": \"PTE\", \"mds\": \"yes\", \"srbds\": \"x\", \"its\": \"y\""),
         "CPU mitigations: mds: no; l1tf: yes > l1tf: PTE; mds: yes; its: y [" PIPES_CALLS "]\n"},
        {SETTINGS(""), SETTINGS("\"OPENBLAS_CORETYPE\": \"Haswell\""),
         "library settings: none > OPENBLAS_CORETYPE=Haswell []\n"},
        {MACHINE("\"cpu\": {\"features\": {\"avx2\": true, \"amx\": false}}"),
         MACHINE("\"numa\": {\"balancing\": false}, \"gpus\": {\"nvswitches\": 0}, "
                 "\"cpu\": {\"features\": {\"avx2\": false, \"sve\": true}, \"smt\": {\"control\": "
                 "\"on\"}}, \"caches\": [{\"level\": 3, \"count\": 2, \"size_bytes\": 33554432}]"),
         "caches:  > L3 2 x 32 MiB [Matrix core, " PIPES_MEMORY "]\n"
         "CPU features of one alone: avx2 > none [Matrix core, Memory]\n"
         "SMT:  > on []\n"},
        /* three digits, and all those before the point */
        {MEMORY("1084479242240"), MEMORY("1073741824000"),
         "memory: 1010 GiB > 1000 GiB [" PIPES_MEMORY "]\n"},
        {MEMORY("25254494208"), MEMORY("107911053312"),
         "memory: 23.5 GiB > 100 GiB [" PIPES_MEMORY "]\n"},
        {MEMORY("1098437885952"), MEMORY("1099511627775"),
         "memory: 1023 GiB > 1 TiB [" PIPES_MEMORY "]\n"},
        {MEMORY("5497558138880000"), MEMORY("68719476736"),
         "memory: 5000 TiB > 64 GiB [" PIPES_MEMORY "]\n"},
        /* other addresses and names of like devices are no difference */
        {DEVICES(CARD("01:00.0", "16") ", " CARD("02:00.0", "16"), RDMA("mlx5_0", "28"),
                 NIC("eth0", "1500"), GPU("05:00.0", "true"), "550"),
         DEVICES(CARD("0a:00.0", "16") ", " CARD("0b:00.0", "16"), RDMA("mlx5_7", "28"),
                 NIC("ens1", "1500"), GPU("07:00.0", "true"), "550"),
         ""},
        {DEVICES(CARD("01:00.0", "16") ", " CARD("02:00.0", "16"), RDMA("mlx5_0", "28"),
                 NIC("eth0", "9000"), GPU("05:00.0", "true"), "550"),
         DEVICES(CARD("01:00.0", "16") ", " CARD("02:00.0", "8"), RDMA("mlx5_0", "26"),
                 NIC("eth0", "1500"), GPU("05:00.0", "false"), "535"),
         "NVIDIA driver: 550 > 535 [GPU matrix core, GPU memory, GPU launch, PCIe, NVLink]\n"
         "PCIe link of ConnectX-7: 2 x PCIe 5.0 x16 > PCIe 5.0 x16; PCIe 5.0 x8 [PCIe, " PIPES_NET
         "]\n"
         "network interfaces: ixgbe, 10 Gb/s, MTU 9000 > ixgbe, 10 Gb/s, MTU 1500 [" PIPES_NET "]\n"
         "RDMA devices: " DEVICE("28") " > " DEVICE("26") " [" PIPES_NET "]\n"
                                                          "GPU ECC: on > off [GPU memory]\n"},
        {DEVICES("", "", "", "", "550"), DEVICES(CARD("01:00.0", "16"), "", "", "", "550"),
         "PCIe link of ConnectX-7: none > PCIe 5.0 x16 [PCIe, " PIPES_NET "]\n"},
        /* the probe's first version had no word for what is not there */
        {LIMITED("2", "null", "null"), LIMITED("2", "2.5", "[" RDMA("mlx5_0", "28") "]"),
         "CPU quota:  > 2.5 CPUs []\nRDMA devices:  > " DEVICE("28") " [" PIPES_NET "]\n"},
        {LIMITED("2", "\"none\"", "[]"), LIMITED("2", "2.5", "[" RDMA("mlx5_0", "28") "]"),
         "CPU quota: none > 2.5 CPUs []\nRDMA devices: none > " DEVICE("28") " [" PIPES_NET "]\n"},
        {LIMITED("1", "null", "[]"), LIMITED("2", "\"none\"", "null"), ""},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_differ(*state, cases[i][0], cases[i][1], cases[i][2]);
}

/* Runs "a0", "a1" ... with these kernels, a blank between; "-": one that does not tell. Returns how many. */
static size_t write_runs(const struct fake_run *root, char side, const char *kernels,
                         char paths[8][128], const char **names)
{
    size_t n = 0;
    char kernel[16];

    for (int len; sscanf(kernels, "%15s%n", kernel, &len) == 1; kernels += len, n++) {
        bool told = *kernel != '-';
        char name[24], meta[256];

        snprintf(name, sizeof(name), "%c%zu", side, n);
        snprintf(meta, sizeof(meta),
                 MACHINE("\"host\": {\"kernel\": \"%s\"}, \"cpu\": {\"features\": {\"avx2\": %s}}"),
                 told ? kernel : "", told ? "true" : "false");
        write_run(root, name, meta);
        snprintf(paths[n], 128, "%s/%s", root->path, name);
        names[n] = paths[n];
    }
    return n;
}

/* What holds for all runs of a side is told as it is, else in how many of them. */
TEST_WITH(test_several_runs_a_side, scene_make, scene_remove)
{
    static const char *const cases[][3] = {
        {"6.1 6.1 6.1", "6.5 6.5", "kernel: 6.1 > 6.5 []\n"},
        {"6.1 6.1", "6.1 6.1 6.1", ""},
        {"6.1 6.5 6.1", "6.1 6.1", "kernel: 6.1 in 2 of 3 runs, 6.5 in 1 > 6.1 []\n"},
        {"6.1", "6.1 6.1 6.5", "kernel: 6.1 > 6.1 in 2 of 3 runs, 6.5 in 1 []\n"},
        /* as many of each on both sides: it weighs on the spread all the same */
        {"6.1 6.5", "6.1 6.5",
         "kernel: 6.1 in 1 of 2 runs, 6.5 in 1 > 6.1 in 1 of 2 runs, 6.5 in 1 []\n"},
        {"1 2 3 4 5 6 6", "6",
         "kernel: 1 in 1 of 7 runs, 2 in 1, 3 in 1, 4 in 1, 2 others in 3 > 6 []\n"},
        {"6.1 -", "6.1 6.1",
         "CPU features of one alone: avx2 in 1 of 2 runs, none in 1 > avx2 [Matrix core, Memory]\n"
         "kernel: 6.1 in 1 of 2 runs > 6.1 []\n"},
    };
    static const struct pairs_options options = {.margin = 0.05};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char paths[2][8][128], error[512], text[512];
        const char *names[2][8];
        size_t n_a = write_runs(*state, 'a', cases[i][0], paths[0], names[0]);
        size_t n_b = write_runs(*state, 'b', cases[i][1], paths[1], names[1]);
        struct pairs p;

        if (pairs_load(&p, names[0], n_a, names[1], n_b, &options, error, sizeof(error)))
            fail_msg("%s", error);
        say(&p, text, sizeof(text));
        assert_string_equal(text, cases[i][2]);
        pairs_release(&p);
    }
}
