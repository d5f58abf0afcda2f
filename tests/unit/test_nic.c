/* SPDX-License-Identifier: Apache-2.0 */
/* What the system says of interfaces and RDMA ports, and of the rails over them: the machines of tests/machines, and
 * small made-up trees. */
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "core/hw/nic.h"
#include "core/wire/wires.h"
#include "tests/unit/changes.h"
#include "tests/unit/machines.h"
#include "tests/unit/unit.h"

#define N(list) (sizeof(list) / sizeof(*(list)))

#define DEV(slot) "sys/devices/pci0000:00/0000:" slot "/"
/* An interface of a driver at a PCI function, with a speed in Mb/s. */
#define NIC(name, slot, driver, mbits)                                                             \
    DEV(slot)                                                                                      \
    "net/" name                                                                                    \
    "/type=1|" DEV(slot) "net/" name "/speed=" mbits "|" DEV(slot) "net/" name "/mtu=1500|" DEV(   \
        slot) "net/" name "/device>../..|" DEV(slot) "driver>" driver "|sys/class/net/" name       \
                                                     ">../../devices/pci0000:00/0000:" slot        \
                                                     "/net/" name "|"
/* One in software, and a file of one. */
#define SOFT(name)                                                                                 \
    "sys/devices/virtual/net/" name "/type=1|sys/devices/virtual/net/" name                        \
    "/mtu=1500|sys/class/net/" name ">../../devices/virtual/net/" name "|"
#define OF(name, file)    "sys/class/net/" name "/" file "|"
#define VLAN(name, lower) SOFT(name) OF(name, "uevent=DEVTYPE=vlan") OF(name, "lower_" lower "=")
#define BOND(name)        SOFT(name) OF(name, "bonding/mode=802.3ad")
/* A port of an adapter; its rate as the kernel prints it. */
#define PORT(device, slot, driver, layer, rate)                                                    \
    DEV(slot)                                                                                      \
    "infiniband/" device "/ports/1/link_layer=" layer                                              \
    "|" DEV(slot) "infiniband/" device "/ports/1/rate=" rate                                       \
                  "|" DEV(slot) "driver>" driver "|sys/class/infiniband/" device                   \
                                ">../../devices/pci0000:00/0000:" slot "/infiniband/" device "|"
#define ROCE(device, driver, rate) PORT(device, "3b:00.0", driver, "Ethernet", rate)
#define LINK(slot, speed, width)                                                                   \
    DEV(slot) "current_link_speed=" speed "|" DEV(slot) "current_link_width=" width "|"
#define ETH0 NIC("eth0", "01:00.0", "ice", "25000")

/* The recorded machine's tree, or one with these files. */
static const char *open_root(struct scratch *s, const char *machine, const char *files)
{
    static char root[128];

    scratch_open(s);
    if (files)
        put_files(s, files, NULL);
    snprintf(root, sizeof(root), MACHINE("%s"), machine ? machine : "");
    return machine ? root : s->root;
}

/* Rates that nobody knows are 0, and the source says why. */
static void check_line(size_t i, double have, const char *source, double want, const char *word)
{
    if (!(fabs(have - want) < 1e-3) || (word && !strstr(source, word)))
        fail_msg("case %zu: %g Gb/s, \"%s\"", i, have, source);
}

static const char *const made_up[] = {
    ETH0,
    NIC("eth1", "02:00.0", "virtio_net", "25000"),
    NIC("eth2", "03:00.0", "ena", "-1"),
    NIC("eth3", "04:00.0", "foo", "4294967295"),
    NIC("eth4", "06:00.0", "hv_netvsc", "50000"),
    NIC("eth5", "3b:00.2", "mlx5_core", "100000"),
    DEV("3b:00.2") "physfn>../0000:3b:00.0",
    NIC("eth8", "08:00.0", "vmxnet3", "10000"),
    NIC("wlan0", "05:00.0", "iwlwifi", "1200"),
    OF("wlan0", "phy80211/index=0"),
    SOFT("veth3") OF("veth3", "uevent=") OF("veth3", "ifindex=3") OF("veth3", "iflink=4")
        OF("veth3", "speed=10000"),
    SOFT("tun0") OF("tun0", "tun_flags=0x1001") OF("tun0", "speed=10"),
    SOFT("dummy0") OF("dummy0", "ifindex=9") OF("dummy0", "iflink=9"),
    BOND("bond0") OF("bond0", "speed=50000") OF("bond0", "lower_eth0="),
    BOND("bond1") OF("bond1", "speed=10000") OF("bond1", "lower_eth8="),
    VLAN("vlan7", "bond0"),
    SOFT("br0") OF("br0", "bridge/x=") OF("br0", "lower_eth0=") OF("br0", "lower_veth3="),
    SOFT("br1") OF("br1", "bridge/x=") OF("br1", "lower_eth0=") OF("br1", "lower_eth1="),
    SOFT("br2") OF("br2", "bridge/x=") OF("br2", "lower_br2="),
};

TEST(test_interfaces)
{
    static const struct {
        const char *machine, *name, *kind, *driver;
        double gbps;
        const char *word; /* in the source of that */
    } cases[] = {
        {"nvlink-8gpu", "ib1", "infiniband", "mlx5_core", 400, ""},
        {"nvlink-8gpu", "lo", "loopback", "", 0, "within"},
        {"esxi-pvrdma", "ens192", "ethernet", "vmxnet3", 0, "nominal"},
        {"kvm-virtio", "enp1s0", "ethernet", "virtio_net", 0, "virtio"},
        {"kvm-sriov", "ens5", "ethernet", "mlx5_core", 100, ""},
        {"downtrained", "ens4f0", "ethernet", "mlx5_core", 0, "down"},
        {"downtrained", "br0", "bridge", "", 0, "no interface"},
        {"downtrained", "bond0", "bond", "", 0, ""},
        {"downtrained", "vlan7", "vlan", "", 0, ""},
        {NULL, "eth1", "ethernet", "virtio_net", 25, "host"},
        {NULL, "eth2", "ethernet", "ena", 0, "ENA"},
        {NULL, "eth3", "ethernet", "foo", 0, ""}, /* -1, as some kernels print it */
        {NULL, "eth4", "ethernet", "hv_netvsc", 0, "50 Gb/s, nominal"},
        {NULL, "eth5", "ethernet", "mlx5_core", 100, "virtual function"},
        {NULL, "wlan0", "wifi", "iwlwifi", 0, "radio"},
        {NULL, "veth3", "veth", "", 0, "made up"},
        {NULL, "tun0", "tun", "", 0, "0.01 Gb/s, made up"},
        {NULL, "dummy0", "software", "", 0, "software"},
        /* A bond's own figure is worth what its members' are; a VLAN has its card's. */
        {NULL, "bond0", "bond", "", 50, ""},
        {NULL, "bond1", "bond", "", 0, "vmxnet3"},
        {NULL, "vlan7", "vlan", "", 50, "bond0"},
        /* A bridge has the line of its one way out; what leads to guests is none; a loop ends. */
        {NULL, "br0", "bridge", "", 25, "eth0"},
        {NULL, "br1", "bridge", "", 0, "several"},
        {NULL, "br2", "bridge", "", 0, ""},
    };
    struct scratch s;
    struct nic nic;

    scratch_open(&s);
    for (size_t i = 0; i < N(made_up); i++)
        put_files(&s, made_up[i], NULL);
    for (size_t i = 0; i < N(cases); i++) {
        char root[128];

        snprintf(root, sizeof(root), MACHINE("%s"), cases[i].machine ? cases[i].machine : "");
        assert_int_equal(nic_read(cases[i].machine ? root : s.root, cases[i].name, &nic), 0);
        assert_string_equal(nic.name, cases[i].name);
        if (strcmp(nic.kind, cases[i].kind) || strcmp(nic.driver, cases[i].driver))
            fail_msg("%s: %s, %s", nic.name, nic.kind, nic.driver);
        check_line(i, nic.line_gbps, nic.line_source, cases[i].gbps, cases[i].word);
    }
    scratch_close(&s);
    assert_int_equal(nic_read(MACHINE("nvlink-8gpu"), "ib1", &nic), 0);
    assert_string_equal(nic.address, "0000:99:00.0");
    assert_int_equal(nic.node, 1);
    assert_int_equal(nic.mtu, 4092);
    assert_int_equal(nic_read(MACHINE("arm64-server"), "eth1", &nic), 0);
    assert_string_equal(nic.address, ""); /* off the PCI bus */
    assert_int_equal(nic.node, -1);
}

TEST(test_ports)
{
    static const struct {
        const char *machine, *files, *device, *driver, *interface;
        bool software, iwarp;
        double gbps;
        const char *word;
    } cases[] = {
        {"nvlink-8gpu", NULL, "mlx5_1", "mlx5_core", "ib1", false, false, 400, "4X NDR"},
        {"esxi-pvrdma", NULL, "vmw_pvrdma0", "vmw_pvrdma", "ens192", false, false, 0, "invented"},
        {"kvm-sriov", NULL, "mlx5_0", "mlx5_core", "ens5", false, false, 100, "ens5"},
        /* Not the port's 2.5 Gb/s: the interface's own. */
        {"downtrained", NULL, "rxe0", "rxe", "eno1", true, false, 1, "eno1"},
    /* Rates of InfiniBand are after line coding. */
#define RATE(rate, gbps)                                                                           \
    {NULL,  PORT("a", "01:00.0", "mlx5_core", "InfiniBand", rate),                                 \
     "a",   "mlx5_core",                                                                           \
     "",    false,                                                                                 \
     false, gbps,                                                                                  \
     rate}
        RATE("10 Gb/sec (4X)", 10),
        RATE("2.5 Gb/sec (1X SDR)", 2),
        RATE("20 Gb/sec (4X DDR)", 16),
        RATE("40 Gb/sec (4X QDR)", 32),
        RATE("120 Gb/sec (12X QDR)", 96),
        RATE("40 Gb/sec (4X FDR10)", 40),
        RATE("56 Gb/sec (4X FDR)", 600.0 / 11),
        RATE("100 Gb/sec (4X EDR)", 100),
        RATE("200 Gb/sec (4X HDR)", 200),
        RATE("800 Gb/sec (4X XDR)", 800),
        /* EFA has no interface of its own, and older drivers one rate for all cards. */
        {NULL, PORT("efa_0", "01:00.0", "efa", "Unspecified", "100 Gb/sec (4X EDR)"), "efa_0",
         "efa", "", false, false, 0, "EFA"},
        {NULL, PORT("efa_1", "02:00.0", "efa", "Unspecified", "200 Gb/sec (4X HDR)"), "efa_1",
         "efa", "", false, false, 200, NULL},
        /* siw may hang below its interface's PCI function, and is software all the same. */
        {NULL,
         ETH0 PORT(
             "siw0", "01:00.0/x", "none", "Ethernet",
             "100 Gb/sec (4X EDR)") "sys/class/infiniband/siw0/node_type=4: RNIC|"
                                    "sys/class/infiniband/siw0/node_desc=Software iWARP stack",
         "siw0", "siw", "eth0", true, true, 25, "eth0"},
        /* On Ethernet the interface's own; where that tells none, what is no made-up figure holds. */
        {NULL,
         NIC("eth0", "3b:00.0", "bnxt_en", "200000") ROCE("re0", "bnxt_en", "100 Gb/sec (4X EDR)"),
         "re0", "bnxt_en", "eth0", false, false, 200, "eth0"},
        {NULL,
         NIC("eth0", "3b:00.0", "bnxt_en", "-1") ROCE("re0", "bnxt_en", "2.5 Gb/sec (1X SDR)"),
         "re0", "bnxt_en", "eth0", false, false, 0, "made up"},
        {NULL,
         NIC("eth0", "3b:00.0", "bnxt_en", "-1") ROCE("re0", "bnxt_en", "200 Gb/sec (4X HDR)"),
         "re0", "bnxt_en", "eth0", false, false, 200, "4X HDR"},
    /* eth1 says that it is on another port. GIDs of VLANs stand beside the port's own interface. */
#define TWO_PORTS                                                                                  \
    NIC("eth5", "3b:00.0", "mlx5_core", "100000")                                                  \
    NIC("eth1", "3b:00.0", "mlx5_core", "25000")                                                   \
    OF("eth1", "dev_port=1") ROCE("mlx5_0", "mlx5_core", "100 Gb/sec (4X EDR)")
#define NDEV(n, name) "sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/" n "=" name "|"
        {NULL, TWO_PORTS, "mlx5_0", "mlx5_core", "eth5", false, false, 100, NULL},
        {NULL, TWO_PORTS NDEV("0", "vlan7"), "mlx5_0", "mlx5_core", "vlan7", false, false, 100,
         NULL},
        {NULL, TWO_PORTS NDEV("0", "vlan7") NDEV("1", "") NDEV("2", "eth5"), "mlx5_0", "mlx5_core",
         "eth5", false, false, 100, NULL},
    };

    for (size_t i = 0; i < N(cases); i++) {
        struct scratch s;
        const char *root = open_root(&s, cases[i].machine, cases[i].files);
        struct nic_port np;

        assert_int_equal(nic_read_port(root, cases[i].device, 1, &np), 0);
        if (strcmp(np.driver, cases[i].driver) || strcmp(np.interface, cases[i].interface) ||
            np.software != cases[i].software || np.iwarp != cases[i].iwarp)
            fail_msg("case %zu: %s over '%s', %d %d", i, np.driver, np.interface, np.software,
                     np.iwarp);
        check_line(i, np.line_gbps, np.line_source, cases[i].gbps, cases[i].word);
        assert_int_equal(np.software, !np.address[0]);
        scratch_close(&s);
    }
}

TEST(test_names)
{
    static const struct {
        const char *name;
        int err;
    } cases[] = {{"mlx5_0:1", 0},        {"mlx5_0", 0},     {"mlx5_0:2", -ENODEV},
                 {"mlx5_7:1", -ENODEV},  {"ens5", -ENODEV}, {"mlx5_0:", -EINVAL},
                 {"mlx5_0:1x", -EINVAL}, {":1", -EINVAL}};
    const char *root = MACHINE("kvm-sriov");
    char device[NIC_NAME];
    struct nic_port np;
    struct nic nic;

    for (size_t i = 0; i < N(cases); i++) {
        unsigned port = 0;

        assert_int_equal(nic_parse_port(root, cases[i].name, device, &port), cases[i].err);
        if (cases[i].err)
            continue;
        assert_string_equal(device, "mlx5_0");
        assert_int_equal(port, 1);
    }
    assert_int_equal(nic_read_port(root, "mlx5_0", 2, &np), -ENODEV);
    assert_int_equal(nic_read_port(root, "mlx5_7", 1, &np), -ENODEV);
    assert_int_equal(nic_read(root, "eth7", &nic), -ENODEV);
    assert_int_equal(nic_read(root, "", &nic), -ENODEV);
    assert_int_equal(nic_read(root, "../net/lo", &nic), -ENODEV);
}

/* Configuration space as root reads it: power management at 0x40, PCI Express at 0x60, with its largest payload. */
static void put_config(const struct scratch *s, const char *path, unsigned payload_code,
                       size_t size)
{
    unsigned char config[256] = {
        [6] = 0x10, [0x34] = 0x40, [0x40] = 0x01, [0x41] = 0x60, [0x60] = 0x10};

    config[0x68] = (unsigned char)(payload_code << 5 | 0x0f);
    scratch_bytes(s, path, config, size);
}

static void check_pcie(const char *root, const char *name, double gt_s, unsigned width,
                       unsigned payload_bytes)
{
    struct nic_port np;
    struct nic nic;
    bool port = nic_read(root, name, &nic) != 0;

    if (port)
        assert_int_equal(nic_read_port(root, name, 1, &np), 0);
    struct nic_pcie have = port ? np.pcie : nic.pcie;
    if (have.gt_s != gt_s || have.width != width || have.payload_bytes != payload_bytes)
        fail_msg("%s: %g GT/s x%u, %u bytes", name, have.gt_s, have.width, have.payload_bytes);
}

/* A virtual function's own registers are empty: its physical function's hold; a VLAN and soft-RoCE go over their
 * card. What is made up is no link. */
TEST(test_pcie)
{
    struct scratch s;

    scratch_open(&s);
    put_files(&s,
              NIC("eth0", "3b:00.0", "mlx5_core", "200000") LINK("3b:00.0", "8.0 GT/s PCIe", "16")
                  NIC("eth1", "3b:00.2", "mlx5_core", "200000") LINK("3b:00.2", "Unknown", "0")
                      VLAN("vlan7", "eth0") "sys/class/infiniband/rxe0/ports/1/link_layer=Ethernet|"
                                            "sys/class/infiniband/rxe0/parent=eth0|" DEV(
                                                "3b:00.0") "sriov_numvfs=4",
              NULL);
    check_pcie(s.root, "eth0", 8, 16, 0);
    put_config(&s, DEV("3b:00.0") "config", 2, 64); /* what others than root read */
    check_pcie(s.root, "eth0", 8, 16, 0);
    put_config(&s, DEV("3b:00.0") "config", 1, 256);
    check_pcie(s.root, "eth0", 8, 16, 256);
    put_config(&s, DEV("3b:00.0") "config", 2, 256);
    check_pcie(s.root, "eth0", 8, 16, 512);
    put_config(&s, DEV("3b:00.2") "config", 0, 256);
    check_pcie(s.root, "eth1", 0, 0, 0);
    scratch_link(&s, DEV("3b:00.2") "physfn", "../0000:3b:00.0");
    check_pcie(s.root, "eth1", 8, 16, 512);
    check_pcie(s.root, "vlan7", 8, 16, 512);
    check_pcie(s.root, "rxe0", 8, 16, 512);
    struct nic nic;
    assert_int_equal(nic_read(s.root, "eth0", &nic), 0);
    assert_true(!nic.vf && nic.vfs == 4);
    assert_int_equal(nic_read(s.root, "eth1", &nic), 0);
    assert_true(nic.vf && nic.vfs == 0);
    put_files(&s,
              NIC("c0", "01:00.0", "i40e", "10000") LINK("01:00.0", "2.5 GT/s PCIe", "1")
                  NIC("c1", "02:00.0", "virtio_net", "25000") LINK("02:00.0", "16.0 GT/s PCIe", "1")
                      NIC("c2", "03:00.0", "ice", "25000") LINK("03:00.0", "2.5 GT/s PCIe", "8")
                          NIC("c3", "04:00.0", "ice", "25000") LINK("04:00.0", "8.0 GT/s", "63"),
              NULL);
    check_pcie(s.root, "c0", 0, 0, 0); /* part of the chipset */
    check_pcie(s.root, "c1", 0, 0, 0);
    check_pcie(s.root, "c2", 2.5, 8, 0); /* a slot that came up slow */
    check_pcie(s.root, "c3", 0, 0, 0);
    check_pcie(MACHINE("nvlink-8gpu"), "ib1", 32, 16, 0);
    check_pcie(MACHINE("esxi-pvrdma"), "ens192", 0, 0, 0); /* its 5 GT/s x32 is made up */
    check_pcie(MACHINE("arm64-server"), "enP4p1s0", 8, 8, 0);
    scratch_close(&s);
}

/* How far an RDMA device is from a GPU; "": not told. */
TEST(test_ways_to_a_gpu)
{
#define BRIDGE "pci0000:00/0000:00:01.0"
#define SWITCH BRIDGE "/0000:01:00.0/0000:02:0"
    static const struct {
        const char *nic, *gpu, *node, *way;
    } cases[] = {
        {BRIDGE, BRIDGE, "0", "PIX"},
        {SWITCH "0.0", SWITCH "1.0", "0", "PIX"},
        {SWITCH "0.0", SWITCH "1.0/0000:05:00.0/0000:06:00.0", "0", "PXB"},
        {SWITCH "0.0", "pci0000:00/0000:00:02.0", "0", "PHB"},
        {SWITCH "0.0", "pci0000:80", "0", "NODE"},
        {SWITCH "0.0", "pci0000:80", "1", "SYS"},
        {SWITCH "0.0", "pci0000:80", "-1", ""},
    };
    static const char gpu[] = "0000:04:00.0";

    for (size_t i = 0; i < N(cases); i++) {
        struct scratch s;
        char files[1024];

        scratch_open(&s);
        snprintf(files, sizeof(files),
                 "sys/devices/%s/0000:03:00.0/numa_node=0|sys/devices/%s/%s/numa_node=%s|"
                 "sys/bus/pci/devices/0000:03:00.0>../../../devices/%s/0000:03:00.0|"
                 "sys/bus/pci/devices/%s>../../../devices/%s/%s|"
                 "sys/devices/%s/0000:03:00.0/infiniband/mlx5_0/ports/1/state=4: ACTIVE|"
                 "sys/class/infiniband/mlx5_0>../../devices/%s/0000:03:00.0/infiniband/mlx5_0|"
                 "sys/class/infiniband/rxe0/parent=eth0|sys/class/infiniband/rxe0/ports/1/state=4",
                 cases[i].nic, cases[i].gpu, gpu, cases[i].node, cases[i].nic, gpu, cases[i].gpu,
                 gpu, cases[i].nic, cases[i].nic);
        put_files(&s, files, NULL);
        assert_string_equal(nic_way(s.root, "mlx5_0:1", gpu), cases[i].way);
        assert_string_equal(nic_way(s.root, "rxe0:1", gpu), "");
        assert_string_equal(nic_way(s.root, "mlx5_7:1", gpu), "");
        assert_string_equal(nic_way(s.root, "mlx5_0:1", ""), "");
        scratch_close(&s);
    }
}

/* ---- rails */

/* As its transport hands it over: what that knows stays. Within one machine software has no line. */
TEST(test_rails_of_ports)
{
    static const struct {
        const char *files, *name;
        bool within;
        int err;
        double gbps;
        unsigned mtu;
        bool vlan;
    } cases[] = {
#define RE0                                                                                        \
    NIC("eth0", "3b:00.0", "bnxt_en", "200000") ROCE("re0", "bnxt_en", "100 Gb/sec (4X EDR)")
        {RE0, "re0:1", false, 0, 200, 512, false}, /* the path's MTU, not the interface's */
        {RE0, "re0:1", true, 0, 200, 512, false},  /* through the card, whoever is there */
        {RE0, "re7:1", false, -ENODEV, 0, 512, false},
#define RXE ETH0 "sys/class/infiniband/rxe0/ports/1/rate=2.5|sys/class/infiniband/rxe0/parent=eth0"
        {RXE, "rxe0:1", false, 0, 25, 512, false},
        {RXE, "rxe0:1", true, 0, 0, 512, false},
    /* iWARP goes in its interface's segments, of an MTU that no path MTU is. */
#define IWARP RE0 VLAN("eth0.7", "eth0") "sys/class/infiniband/re0/node_type=4: RNIC|"
        {IWARP, "re0:1", false, 0, 200, 1500, false},
        {IWARP "sys/class/infiniband/re0/ports/1/gid_attrs/ndevs/0=eth0.7", "re0:1", false, 0, 200,
         1500, true},
    };

    for (size_t i = 0; i < N(cases); i++) {
        struct nic_rail r = {.protocol = NIC_ROCE_V2, .node = 3, .mtu_bytes = 512, .line_gbps = 7};
        struct scratch s;

        scratch_open(&s);
        put_files(&s, cases[i].files, NULL);
        snprintf(r.name, sizeof(r.name), "%s", cases[i].name);
        assert_int_equal(nic_fill_rdma(s.root, &r, cases[i].within), cases[i].err);
        check_line(i, r.line_gbps, r.line_source, cases[i].gbps, NULL);
        assert_int_equal(r.node, 3);
        assert_int_equal(r.mtu_bytes, cases[i].mtu);
        assert_int_equal(r.vlan, cases[i].vlan);
        scratch_close(&s);
    }
}

/* A bridge or a bond has a VLAN's tag where all below it have. */
TEST(test_tags)
{
    static const struct {
        const char *name;
        bool tagged;
    } cases[] = {{"eth0", false}, {"eth0.7", true}, {"br0", true},    {"br1", false},
                 {"br2", false},  {"bond0", true},  {"bond1", false}, {"eth9", false}};
    struct scratch s;

    scratch_open(&s);
    put_files(&s,
              ETH0 NIC("eth1", "02:00.0", "ice", "25000") VLAN("eth0.7", "eth0")
                  VLAN("eth1.7", "eth1") SOFT("br0") OF("br0", "bridge/x=")
                      OF("br0", "lower_eth0.7=") SOFT("br1") OF("br1", "bridge/x=")
                          OF("br1", "lower_eth1=") SOFT("br2") OF("br2", "bridge/x=")
                              OF("br2", "lower_eth1=") OF("br2", "lower_eth0.7=") BOND("bond0")
                                  OF("bond0", "lower_eth0.7=") OF("bond0", "lower_eth1.7=")
                                      BOND("bond1") OF("bond1", "lower_nothing="),
              NULL);
    for (size_t i = 0; i < N(cases); i++) {
        struct nic_rail r = {.protocol = NIC_TCP};

        assert_int_equal(nic_has_tag(s.root, cases[i].name), cases[i].tagged);
        nic_fill(s.root, &r, cases[i].name);
        assert_int_equal(r.vlan, cases[i].tagged);
    }
    scratch_close(&s);
}

static const struct framing {
    const char *files, *name;
    enum nic_protocol protocol;
    unsigned mtu;
    double fraction; /* of the line's rate; NAN: not known */
    double gbps;
} framings[] = {
    /* TCP without options: no segment holds more. */
    {NIC("eth0", "01:00.0", "mlx5_core", "100000"), "eth0", NIC_TCP, 1500, 1460. / 1538, 100},
    {NIC("eth0", "01:00.0", "vmxnet3", "10000"), "eth0", NIC_TCP, 1500, NAN, 0},
    {ETH0 VLAN("eth0.7", "eth0"), "eth0.7", NIC_TCP, 1500, 1460. / 1542, 25},
    /* The largest path MTU that the link can have: with its longest headers 4096 needs 4192. */
    {PORT("mlx5_0", "3b:00.0", "mlx5_core", "InfiniBand", "100 Gb/sec (4X EDR)"), "mlx5_0:1",
     NIC_INFINIBAND, 4096, 4096. / (4096 + 26), 100},
#define MTU(mtu)                                                                                   \
    NIC("eth0", "3b:00.0", "mlx5_core", "25000")                                                   \
    OF("eth0", "mtu=" mtu) ROCE("mlx5_0", "mlx5_core", "100")
    {MTU("1500"), "mlx5_0:1", NIC_ROCE_V2, 1024, 1024. / (1024 + 82), 25},
    {MTU("4191"), "mlx5_0:1", NIC_ROCE_V2, 2048, 2048. / (2048 + 82), 25},
    {MTU("4192"), "mlx5_0:1", NIC_ROCE_V2, 4096, 4096. / (4096 + 82), 25},
    /* An FPDU of iWARP takes 20 and 14 bytes of a segment. */
    {RE0 "sys/class/infiniband/re0/node_type=4: RNIC", "re0:1", NIC_IWARP, 1500, 1440. / 1538, 200},
};

TEST(test_limits_of_rails)
{
    const struct wire_load load = {.verb = RDMA_WRITE, .message_bytes = 1u << 20};

    for (size_t i = 0; i < N(framings); i++) {
        const struct framing *f = &framings[i];
        char names[1][NIC_NAME], why[256] = "", source[256];
        struct nic_rail r[1];
        struct scratch s;

        scratch_open(&s);
        put_files(&s, f->files, NULL);
        snprintf(names[0], sizeof(names[0]), "%s", f->name);
        assert_int_equal(nic_fill_wires(s.root, (const char(*)[NIC_NAME])names, 1, r, why, 256), 0);
        assert_string_equal(r[0].name, f->name);
        assert_int_equal(r[0].protocol, f->protocol);
        assert_int_equal(r[0].mtu_bytes, f->mtu);
        double limit = wire_limit_gbps(r, &load, source, sizeof(source));
        if (isnan(f->fraction) ? !isnan(limit)
                               : !(fabs(limit - f->gbps / 8 * f->fraction) <
                                   (f->protocol != NIC_TCP ? 2e-3 * limit : 1e-9)))
            fail_msg("case %zu: %g of %g (%s)", i, limit, f->gbps / 8, source);
        scratch_close(&s);
    }
}

/* Lines add up where nothing stands before them that carries less. */
TEST(test_sums)
{
#define PAIR(slot)                                                                                 \
    NIC("eth0", "3b:00.0", "mlx5_core", "100000") NIC("eth1", slot, "mlx5_core", "100000")
    static const struct {
        const char *files;
        int err;
        const char *word;
    } cases[] = {
        {PAIR("3b:00.1"), 0, ""},
        {PAIR("3b:00.1") LINK("3b:00.0", "16.0 GT/s PCIe", "8"), -ENOTSUP, "PCIe"}, /* 126 Gb/s */
        {PAIR("3b:00.1") LINK("3b:00.0", "32.0 GT/s PCIe", "8"), 0, ""},
        /* its own bounds it, and that is no sharing */
        {PAIR("5e:00.0") LINK("3b:00.0", "8.0 GT/s PCIe", "8"), 0, ""},
        {PAIR("5e:00.0") DEV("5e:00.0") "physfn>../0000:5e:00.1|" DEV("5e:00.1") "vendor=0x15b3",
         -ENOTSUP, "virtual function"},
    };
    const char names[2][NIC_NAME] = {"eth0", "eth1"};

    for (size_t i = 0; i < N(cases); i++) {
        struct nic_rail r[2];
        char why[256] = "";
        struct scratch s;

        scratch_open(&s);
        put_files(&s, cases[i].files, NULL);
        assert_int_equal(nic_fill_wires(s.root, names, 2, r, why, sizeof(why)), cases[i].err);
        assert_non_null(strstr(why, cases[i].word));
        scratch_close(&s);
    }
}

/* ---- this machine */

static struct sockaddr_in ipv4(const char *text)
{
    struct sockaddr_in a = {.sin_family = AF_INET};

    assert_int_equal(inet_pton(AF_INET, text, &a.sin_addr), 1);
    return a;
}

TEST(test_this_machine)
{
    struct sockaddr_in local = ipv4("127.0.0.1"), any_local = ipv4("127.9.9.9"),
                       documentation = ipv4("192.0.2.77");
    struct sockaddr_in6 mapped = {.sin6_family = AF_INET6};
    const struct sockaddr *const own[] = {(struct sockaddr *)&local, (struct sockaddr *)&any_local,
                                          (struct sockaddr *)&mapped};
    struct sockaddr other = {.sa_family = AF_UNIX};
    struct nic_rail r = {.name = "mine"};
    char name[IF_NAMESIZE];

    assert_int_equal(inet_pton(AF_INET6, "::ffff:127.0.0.1", &mapped.sin6_addr), 1);
    if (nic_fill(NULL, &r, "lo") || nic_of_address(own[0], name, sizeof(name)))
        skip(); /* no /sys here, or lo is down */
    assert_string_equal(r.name, "mine");
    assert_int_equal(r.node, -1);
    assert_true(r.mtu_bytes > 0 && r.line_gbps == 0);
    assert_int_equal(nic_fill(NULL, &r, "none9"), -ENODEV);
    for (size_t i = 0; i < N(own); i++) {
        name[0] = 0;
        assert_int_equal(nic_of_address(own[i], name, sizeof(name)), 0);
        assert_string_equal(name, "lo");
    }
    name[0] = 0;
    assert_int_equal(nic_of_route(own[0], own[1], name, sizeof(name)), 0);
    assert_string_equal(name, "lo");
    assert_int_equal(nic_of_address((struct sockaddr *)&documentation, name, sizeof(name)),
                     -ENODEV);
    assert_int_equal(nic_of_address(&other, name, sizeof(name)), -EINVAL);
    assert_int_equal(nic_of_route(NULL, &other, name, sizeof(name)), -EINVAL);
}
