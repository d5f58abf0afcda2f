// SPDX-License-Identifier: Apache-2.0
/* What the probe tells of the state of a machine: load, limits, interfaces, counters. Each case is a
 * tree with the evidence alone, and the fact as JSON writes it; null needs a reason beside it. */
#include "harness/probe/probe.h"
#include "tests/unit/probe_cases.h"

#define NET "sys/devices/virtual/net/eth0/"
#define PCI "sys/devices/pci0000:00/0000:00:05.0/"
#define IB  PCI "infiniband/mlx5_0/ports/1/"

/* "tcp.default_interfaces", "network.0.qdiscs.1.kind"; NULL where it is not there. */
static const json_t *at_path(const json_t *value, const char *path)
{
    while (value && *path) {
        size_t n = strcspn(path, ".");
        char key[64];

        snprintf(key, sizeof(key), "%.*s", (int)n, path);
        value = json_is_array(value) ? json_array_get(value, (size_t)atoi(key))
                                     : json_object_get(value, key);
        path += n + (path[n] == '.');
    }
    return value;
}

static const struct state_case {
    const char *path, *expected; /* NULL: no such key */
    struct file files[4];
} cases[] = {
    {"load.average_1min", "2.5", {{"proc/loadavg", "2.50 1.00 0.50 3/100 4711\n"}}},
    {"load.average_1min", "null", {{"proc/loadavg", "none\n"}}},
    {"load.cpu_pressure.percent_60s",
     "4.25",
     {{"proc/pressure/cpu", "some avg10=1.00 avg60=4.25 avg300=0.00 total=1\n"}}},
    {"load.cpu_pressure", "null", {{"proc/pressure/memory", "some avg10=1.00 avg60=4.25\n"}}},
    {"load.wanted_cpu_seconds",
     "9.0",
     {{"proc/stat", "cpu  500 50 200 7 7 20 30 100 0 0\ncpu0 1\n"}}},
    {"load.stolen_cpu_seconds", "1.0", {{"proc/stat", "cpu  500 50 200 7 7 20 30 100 0 0\n"}}},
    {"load.stolen_cpu_seconds", "null", {{"proc/stat", "cpu  500 0 200\n"}}},
    {"load.running_tasks", "5", {{"proc/loadavg", "4.00 1.00 1.00 5/400 4711\n"}}},
    {"load.running_tasks", "null", {{"proc/loadavg", "4.00 1.00 1.00\n"}}},
    {"load.swapped_out_pages", "7", {{"proc/vmstat", "pswpin 3\npswpout 7\n"}}},
    {"load.swap_used_bytes",
     "4096",
     {{"proc/meminfo", "MemTotal: 100 kB\nSwapTotal: 8 kB\nSwapFree: 4 kB\n"}}},
    {"load.swap_used_bytes", "null", {{"proc/meminfo", "SwapTotal: 4 kB\nSwapFree: 8 kB\n"}}},
    {"memory.swap_bytes", "0", {{"proc/meminfo", "MemTotal: 100 kB\nSwapTotal: 0 kB\n"}}},
    {"process.shared_memory_bytes", "67108864", {{"plumb/shm", "67108864 4096\n"}}},
    {"process.shared_memory_bytes", "null", {{"plumb/shm", "4096 67108864\n"}}},
    {"process.locked_memory_bytes",
     "65536",
     {{"proc/self/limits", "Limit Soft\nMax locked memory         65536     unlimited  bytes\n"}}},
    {"process.open_files",
     "\"unlimited\"",
     {{"proc/self/limits", "Max open files unlimited 1 f\n"}}},
    {"process.stack_bytes", "null", {{"proc/self/limits", "Max open files unlimited 1 f\n"}}},
    {"process.may_lock_memory",
     "true",
     {{"proc/self/status", "CapEff:\t0000000000004000\n"},
      {"proc/self/uid_map", "0 0 4294967295\n"}}},
    {"process.may_lock_memory",
     "false",
     {{"proc/self/status", "CapEff:\t0000000000004000\n"}, {"proc/self/uid_map", "0 1000 1\n"}}},
    {"process.may_lock_memory", "null", {{"proc/self/status", "CapEff:\t0000000000004000\n"}}},
    {"process.may_lock_memory", "false", {{"proc/self/status", "CapEff:\t0000000000003000\n"}}},
    {"cpu.isolated_cpus", "\"2-7\"", {{"sys/devices/system/cpu/isolated", "2-7\n"}}},
    {"cpu.isolated_cpus", "\"\"", {{"sys/devices/system/cpu/isolated", "\n"}}},
    {"cpu.isolated_cpus", "null", {{"sys/devices/system/cpu/online", "0\n"}}},
    {"cpu.idle.states.0.exit_latency_us",
     "133",
     {{"sys/devices/system/cpu/cpu0/cpuidle/state3/latency", "133\n"}}},
    {"cpu.idle.states.0.disabled",
     "true",
     {{"sys/devices/system/cpu/cpu0/cpuidle/state3/disable", "1\n"}}},
    {"virtualization.limits.counters.throttled_periods",
     "30",
     {{"proc/self/cgroup", "0::/a\n"},
      {"sys/fs/cgroup/a/cpu.max", "100000 100000\n"},
      {"sys/fs/cgroup/a/cpu.stat", "usage_usec 5\nnr_periods 40\nnr_throttled 30\n"},
      {"plumb/absent", "sys/fs/cgroup/cpu.max\nsys/fs/cgroup/cpu.stat\n"}}},
    {"virtualization.limits.counters",
     "null",
     {{"proc/self/cgroup", "0::/a\n"},
      {"sys/fs/cgroup/a/cpu.max", "100000 100000\n"},
      {"plumb/absent", "sys/fs/cgroup/cpu.max\n"}}},
    {"tcp.receive_auto_bytes",
     "6291456",
     {{"proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"}}},
    {"tcp.default_interfaces",
     "[\"eth1\"]",
     {{"proc/net/route", "Iface\tDestination\tGateway\neth0 0010A8C0 0 1 0 0 0 00FFFFFF 0\n"
                         "eth1\t00000000\t0110A8C0\t0003\t0\t0\t0\t00000000\t0\n"}}},
    {"network.0.max_mtu", "9000", {{NET "mtu", "1500\n"}, {"plumb/net", "eth0 max_mtu 9000\n"}}},
    {"network.0.max_mtu", "null", {{NET "mtu", "1500\n"}, {"plumb/net", "eth1 max_mtu 9000\n"}}},
    {"network.0.qdiscs",
     "[{\"kind\": \"mq\"}, {\"kind\": \"tbf\", \"rate_gbits_per_s\": 1.5}]",
     {{NET "mtu", "1500\n"},
      {"plumb/net", "eth0 qdisc mq\neth0 qdisc tbf rate_gbits_per_s=1.5\neth0 qdisc mq\n"}}},
    /* Words that are no numbers, and lines that are cut short. */
    {"network.0.qdiscs",
     "[{\"kind\": \"netem\"}]",
     {{NET "mtu", "1500\n"},
      {"plumb/net", "eth0 qdisc netem delay_us=x =1 loss\neth0 qdisc\neth0\n\n"}}},
    {"network.0.rings.rx_max",
     "4096",
     {{NET "mtu", "1500\n"}, {"plumb/net", "eth0 rings rx=256 rx_max=4096\n"}}},
    {"network.0.counters.rx_dropped", "5", {{NET "statistics/rx_dropped", "5\n"}}},
    {"network.0.counters.tx_errors", "null", {{NET "statistics/rx_dropped", "5\n"}}},
    {"network.0.counters.tx_errors",
     NULL,
     {{NET "statistics/rx_dropped", "5\n"}, {"plumb/absent", NET "statistics/tx_errors\n"}}},
    {"network.0.counters", "null", {{NET "mtu", "1500\n"}}},
    {"network.0.queues.receive",
     "2",
     {{NET "queues/rx-0/x", ""}, {NET "queues/rx-1/x", ""}, {NET "queues/tx-0/x", ""}}},
    {"network.0.interrupts.cpus",
     "\"2,5\"",
     {{NET "mtu", "1500\n"},
      {"proc/interrupts",
       "   CPU0\n 40:  1 2 PCI-MSI 1-edge  eth0-TxRx-0\n 41:  0 0  mlx5_comp0@eth0\n"
       " 42:  9  9  eth01\n 43: 0 0 eth0-config\nNMI:  1 2 eth0\n"},
      {"proc/irq/40/effective_affinity_list", "2\n"},
      {"proc/irq/41/effective_affinity_list", "5\n"}}},
    {"network.0.interrupts.cpus",
     "null",
     {{NET "mtu", "1500\n"},
      {"proc/interrupts", "40: 1 eth0-0\n41: 1 eth0-1\n"},
      {"proc/irq/40/effective_affinity_list", "2\n"}}},
    {"network.0.bond.members",
     "[\"eth1\", \"eth2\"]",
     {{NET "bonding/slaves", "eth1 eth2\n"}, {NET "bonding/mode", "balance-rr 0\n"}}},
    {"network.0.bond.mode",
     "\"balance-rr\"",
     {{NET "bonding/slaves", "eth1 eth2\n"}, {NET "bonding/mode", "balance-rr 0\n"}}},
    {"network.0.bond", NULL, {{NET "mtu", "1500\n"}}},
    {"gpus.gpudirect.storage_compatible",
     "false",
     {{"etc/cufile.json", "{ // words\n \"properties\": { \"allow_compat_mode\" : false, } }\n"}}},
    {"gpus.gpudirect.storage_compatible", "true", {{"etc/cufile.json", "{}\n"}}},
    {"gpus.gpudirect.storage_compatible", "\"none\"", {{"plumb/absent", "etc/cufile.json\n"}}},
    {"gpus.gpudirect.storage_compatible", "null", {{"proc/uptime", "1 1\n"}}},
    {"gpus.nccl_topology_file",
     "true",
     {{"var/run/nvidia-topologyd/virtualTopology.xml", "<system/>\n"}}},
};

/* eth0, which is there where the case has a file of it. */
static void link_interface(const struct scratch *s, const struct state_case *c)
{
    for (size_t i = 0; i < 4 && c->files[i].path; i++)
        if (!strncmp(c->files[i].path, NET, strlen(NET))) {
            scratch_link(s, "sys/class/net/eth0", "../../devices/virtual/net/eth0");
            return;
        }
}

static void check_case(size_t i, const struct state_case *c)
{
    struct scratch s;
    json_t *machine;
    const json_t *value;
    char *text, why[128];

    scratch_open(&s);
    scratch_folder(&s, "sys");
    for (size_t k = 0; k < 4 && c->files[k].path; k++)
        scratch_put(&s, c->files[k].path, c->files[k].text);
    link_interface(&s, c);
    assert_int_equal(probe_machine(s.root, &machine), 0);
    value = at_path(machine, c->path);
    text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9)) : NULL;
    if (!text != !c->expected || (text && strcmp(text, c->expected)))
        fail_msg("case %zu: %s is %s, expected %s", i, c->path, text ? text : "not there",
                 c->expected ? c->expected : "no such key");
    snprintf(why, sizeof(why), "%s_why", c->path);
    if (json_is_null(value))
        assert_true(json_is_string(at_path(machine, why)));
    free(text);
    json_decref(machine);
    scratch_close(&s);
}

static void test_state(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        check_case(i, &cases[i]);
}

/* ---- a device on the PCI bus ---- */

static void put_device(const struct scratch *s)
{
    put_metal(s);
    scratch_link(s, "sys/bus/pci/devices/0000:00:05.0", "../../../devices/pci0000:00/0000:00:05.0");
    scratch_put(s, PCI "vendor", "0x15b3\n");
    scratch_put(s, PCI "device", "0x101d\n");
    scratch_put(s, PCI "class", "0x020000\n");
    scratch_put(s, "plumb/absent", PCI "aer_dev_fatal\n");
}

/* A capability list at 0x40: power management, then PCI Express, with payloads of 256 bytes, read
 * requests of 4096, and relaxed ordering. */
static void test_device_control(void **state)
{
    unsigned char config[256] = {[6] = 0x10,    [0x34] = 0x40, [0x40] = 1,   [0x41] = 0x60,
                                 [0x60] = 0x10, [0x68] = 0x30, [0x69] = 0x50};
    const char *pci = "pci.0.max_payload_bytes";
    struct scratch s;
    json_t *machine;

    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        scratch_open(&s);
        put_device(&s);
        scratch_bytes(&s, PCI "config", config, whole ? sizeof(config) : 64);
        assert_int_equal(probe_machine(s.root, &machine), 0);
        if (whole) {
            assert_int_equal(json_integer_value(at_path(machine, pci)), 256);
            assert_int_equal(json_integer_value(at_path(machine, "pci.0.max_read_request_bytes")),
                             4096);
            assert_true(json_is_true(at_path(machine, "pci.0.relaxed_ordering")));
        } else {
            assert_true(json_is_null(at_path(machine, pci)));
            assert_true(json_is_string(at_path(machine, "pci.0.max_payload_bytes_why")));
        }
        json_decref(machine);
        scratch_close(&s);
    }
}

static void test_errors(void **state)
{
    struct scratch s;
    json_t *machine;

    (void)state;
    scratch_open(&s);
    put_device(&s);
    scratch_put(&s, PCI "aer_dev_correctable", "RxErr 3\nBadTLP 1\nTOTAL_ERR_COR 4\n");
    scratch_put(&s, PCI "aer_dev_nonfatal", "Undefined 0\n");
    assert_int_equal(probe_machine(s.root, &machine), 0);
    assert_int_equal(json_integer_value(at_path(machine, "pci.0.counters.correctable_errors")), 4);
    assert_true(json_is_null(at_path(machine, "pci.0.counters.nonfatal_errors")));
    assert_null(at_path(machine, "pci.0.counters.fatal_errors"));
    json_decref(machine);
    scratch_close(&s);
}

static const struct {
    const char *mtu;
    long long roce;
} roce_cases[] = {
    {"1500\n", 1024}, {"9000\n", 4096}, {"4191\n", 2048}, {"4192\n", 4096}, {"300\n", 0}};

/* As include/rdma/ib_addr.h takes it from the interface's. */
static void test_roce_mtu(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(roce_cases) / sizeof(*roce_cases); i++) {
        struct scratch s;
        json_t *machine;
        const json_t *port;

        scratch_open(&s);
        put_device(&s);
        scratch_link(&s, "sys/class/net/eth0", "../../devices/pci0000:00/0000:00:05.0/net/eth0");
        scratch_put(&s, PCI "net/eth0/mtu", roce_cases[i].mtu);
        scratch_link(&s, "sys/class/infiniband/mlx5_0",
                     "../../devices/pci0000:00/0000:00:05.0/infiniband/mlx5_0");
        scratch_put(&s, IB "link_layer", "Ethernet\n");
        scratch_put(&s, IB "gids/0", "fe80:0000:0000:0000:0000:0000:0000:0001\n");
        scratch_put(&s, IB "gid_attrs/ndevs/0", "eth0\n");
        scratch_put(&s, IB "counters/link_downed", "2\n");
        assert_int_equal(probe_machine(s.root, &machine), 0);
        port = at_path(machine, "rdma.0.ports.0");
        assert_int_equal(json_integer_value(at_path(port, "roce_mtu_bytes")), roce_cases[i].roce);
        assert_int_equal(json_is_null(at_path(port, "roce_mtu_bytes")), !roce_cases[i].roce);
        assert_int_equal(json_integer_value(at_path(port, "counters.link_downed")), 2);
        assert_true(json_is_null(at_path(port, "hw_counters")));
        json_decref(machine);
        scratch_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_state),
        cmocka_unit_test(test_device_control),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_roce_mtu),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
