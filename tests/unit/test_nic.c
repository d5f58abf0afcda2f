/* SPDX-License-Identifier: Apache-2.0 */
/* What the system says of interfaces and RDMA ports: the machines of tests/machines, and small made-up trees. */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <net/if.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "core/hw/nic.h"
#include "tests/unit/machines.h"
#include "tests/unit/scratch_tree.h"

static void check_line(double have, const char *source, double want, const char *text)
{
    assert_string_equal(source, text);
    if (!(fabs(have - want) < 1e-3))
        fail_msg("%g Gb/s, not %g", have, want);
}

static struct nic nic_of(const char *root, const char *name)
{
    struct nic nic;

    assert_int_equal(nic_read(root, name, &nic), 0);
    assert_string_equal(nic.name, name);
    return nic;
}

static struct nic_port port_of(const char *root, const char *device)
{
    struct nic_port np;

    assert_int_equal(nic_read_port(root, device, 1, &np), 0);
    return np;
}

static void check_pcie(struct nic_pcie have, double gt_s, unsigned width, unsigned payload_bytes)
{
    assert_true(have.gt_s == gt_s);
    assert_int_equal(have.width, width);
    assert_int_equal(have.payload_bytes, payload_bytes);
}

static void test_bare_metal(void **state)
{
    struct nic nic = nic_of(MACHINE("nvlink-8gpu"), "ib1");
    struct nic_port np = port_of(MACHINE("nvlink-8gpu"), "mlx5_1");

    (void)state;
    assert_string_equal(nic.kind, "infiniband");
    assert_string_equal(nic.driver, "mlx5_core");
    assert_string_equal(nic.address, "0000:99:00.0");
    assert_int_equal(nic.node, 1);
    assert_int_equal(nic.mtu, 4092);
    check_line(nic.line_gbps, nic.line_source, 400, "sysfs: 400 Gb/s");
    assert_string_equal(np.driver, "mlx5_core");
    assert_string_equal(np.interface, "ib1");
    assert_string_equal(np.link_layer, "InfiniBand");
    assert_false(np.software || np.iwarp);
    assert_int_equal(np.node, 1);
    check_line(np.line_gbps, np.line_source, 400, "sysfs: 400 Gb/s of 400 Gb/sec (4X NDR)");
    check_pcie(nic.pcie, 32, 16, 0);
    check_pcie(np.pcie, 32, 16, 0);
    nic = nic_of(MACHINE("nvlink-8gpu"), "lo");
    assert_string_equal(nic.kind, "loopback");
    assert_int_equal(nic.node, -1);
    check_line(nic.line_gbps, nic.line_source, 0, "lo: within this machine, there is no line");
}

static void test_esxi(void **state)
{
    struct nic nic = nic_of(MACHINE("esxi-pvrdma"), "ens192");
    struct nic_port np = port_of(MACHINE("esxi-pvrdma"), "vmw_pvrdma0");

    (void)state;
    assert_string_equal(nic.driver, "vmxnet3");
    assert_int_equal(nic.mtu, 9000);
    check_line(nic.line_gbps, nic.line_source, 0,
               "ens192 says 10 Gb/s, nominal: vmxnet3 gives this figure whatever the uplink");
    assert_string_equal(np.driver, "vmw_pvrdma");
    assert_string_equal(np.interface, "ens192");
    check_pcie(nic.pcie, 0, 0, 0); /* its 5 GT/s x32 is made up */
    check_pcie(np.pcie, 0, 0, 0);
    assert_false(np.software);
    check_line(
        np.line_gbps, np.line_source, 0,
        "vmw_pvrdma0:1 says 2.5 Gb/sec (1X SDR), invented: PVRDMA does not know the line's rate");
}

static void test_kvm(void **state)
{
    struct nic nic = nic_of(MACHINE("kvm-virtio"), "enp1s0");
    struct nic_port np = port_of(MACHINE("kvm-sriov"), "mlx5_0");

    (void)state;
    assert_string_equal(nic.driver, "virtio_net");
    assert_string_equal(nic.address, "0000:01:00.0");
    assert_string_equal(nic.kind, "ethernet");
    check_line(nic.line_gbps, nic.line_source, 0,
               "enp1s0's rate is not known: virtio shows a speed only where the host sets one");
    assert_string_equal(np.interface, "ens5");
    assert_string_equal(np.link_layer, "Ethernet");
    check_line(np.line_gbps, np.line_source, 100, "sysfs: 100 Gb/s (ens5)");
    nic = nic_of(MACHINE("kvm-sriov"), "ens5");
    assert_string_equal(nic.driver, "mlx5_core");
    assert_int_equal(nic.node, np.node);
}

static void test_soft_roce_and_links_down(void **state)
{
    struct nic_port np = port_of(MACHINE("downtrained"), "rxe0");
    struct nic nic = nic_of(MACHINE("downtrained"), "ens4f0");

    (void)state;
    assert_string_equal(np.driver, "rxe");
    assert_true(np.software);
    assert_string_equal(np.interface, "eno1");
    /* Not the port's 2.5 Gb/s: the interface's own. */
    check_line(np.line_gbps, np.line_source, 1, "sysfs: 1 Gb/s (eno1)");
    check_line(nic.line_gbps, nic.line_source, 0,
               "ens4f0's rate is not known: its driver gives none, or the link is down");
    nic = nic_of(MACHINE("downtrained"), "br0");
    assert_string_equal(nic.kind, "bridge");
    assert_string_equal(nic_of(MACHINE("downtrained"), "bond0").kind, "bond");
    assert_string_equal(nic_of(MACHINE("downtrained"), "vlan7").kind, "vlan");
    check_line(nic.line_gbps, nic.line_source, 0,
               "br0 is a bridge over no interface with a line: its line is not known");
}

static void test_arm(void **state)
{
    struct nic nic = nic_of(MACHINE("arm64-server"), "eth1");

    (void)state;
    assert_string_equal(nic.address, ""); /* off the PCI bus */
    assert_int_equal(nic.node, -1);
    check_line(nic.line_gbps, nic.line_source, 10, "sysfs: 10 Gb/s");
    check_pcie(nic.pcie, 0, 0, 0);
    check_pcie(nic_of(MACHINE("arm64-server"), "enP4p1s0").pcie, 8, 8, 0);
    assert_string_equal(port_of(MACHINE("arm64-server"), "mlx5_0").address, "0004:01:00.0");
}

static void test_not_there(void **state)
{
    struct nic_port np;
    struct nic nic;

    (void)state;
    assert_int_equal(nic_read(MACHINE("kvm-virtio"), "eth7", &nic), -ENODEV);
    assert_string_equal(nic.line_source, "there is no interface 'eth7'");
    assert_int_equal(nic_read(MACHINE("kvm-virtio"), "", &nic), -ENODEV);
    assert_int_equal(nic_read(MACHINE("kvm-virtio"), "../net/lo", &nic), -ENODEV);
    assert_int_equal(nic_read_port(MACHINE("kvm-sriov"), "mlx5_0", 2, &np), -ENODEV);
    assert_string_equal(np.line_source, "there is no RDMA port 'mlx5_0:2'");
    assert_int_equal(nic_read_port(MACHINE("kvm-sriov"), "mlx5_7", 1, &np), -ENODEV);
}

static void test_port_names(void **state)
{
    char device[NIC_NAME];
    unsigned port = 0;

    (void)state;
    assert_int_equal(nic_parse_port(MACHINE("kvm-sriov"), "mlx5_0:1", device, &port), 0);
    assert_string_equal(device, "mlx5_0");
    assert_int_equal(port, 1);
    assert_int_equal(nic_parse_port(MACHINE("kvm-sriov"), "mlx5_0", device, &port), 0);
    assert_int_equal(port, 1);
    assert_int_equal(nic_parse_port(MACHINE("kvm-sriov"), "mlx5_0:2", device, &port), -ENODEV);
    assert_int_equal(nic_parse_port(MACHINE("kvm-sriov"), "mlx5_0:", device, &port), -EINVAL);
    assert_int_equal(nic_parse_port(MACHINE("kvm-sriov"), "mlx5_0:1x", device, &port), -EINVAL);
    assert_int_equal(nic_parse_port(MACHINE("kvm-sriov"), ":1", device, &port), -EINVAL);
    assert_int_equal(nic_parse_port(MACHINE("kvm-sriov"), "ens5", device, &port), -ENODEV);
}

/* An interface of a driver at a PCI function, with a speed in Mb/s. */
static void put_nic(const struct scratch *s, const char *name, const char *slot, const char *driver,
                    const char *mbits)
{
    char path[256], target[256];

    snprintf(path, sizeof(path), "sys/devices/pci0000:00/0000:%s/net/%s/type", slot, name);
    scratch_put(s, path, "1\n");
    snprintf(path, sizeof(path), "sys/devices/pci0000:00/0000:%s/net/%s/speed", slot, name);
    scratch_put(s, path, mbits);
    snprintf(path, sizeof(path), "sys/devices/pci0000:00/0000:%s/net/%s/device", slot, name);
    scratch_link(s, path, "../..");
    snprintf(path, sizeof(path), "sys/devices/pci0000:00/0000:%s/driver", slot);
    scratch_link(s, path, driver);
    snprintf(path, sizeof(path), "sys/class/net/%s", name);
    snprintf(target, sizeof(target), "../../devices/pci0000:00/0000:%s/net/%s", slot, name);
    scratch_link(s, path, target);
}

/* One in software: a folder of devices/virtual, with files of its own (name, text pairs). */
static void put_software(const struct scratch *s, const char *name, const char *const files[][2])
{
    char path[256], target[256];

    snprintf(path, sizeof(path), "sys/devices/virtual/net/%s/type", name);
    scratch_put(s, path, "1\n");
    for (; files && (*files)[0]; files++) {
        snprintf(path, sizeof(path), "sys/devices/virtual/net/%s/%s", name, (*files)[0]);
        scratch_put(s, path, (*files)[1]);
    }
    snprintf(path, sizeof(path), "sys/class/net/%s", name);
    snprintf(target, sizeof(target), "../../devices/virtual/net/%s", name);
    scratch_link(s, path, target);
}
#define SOFTWARE(s, name, ...)                                                                     \
    put_software(s, name, (const char *const[][2]){__VA_ARGS__, {NULL, NULL}})

#define SCRATCH(s)                                                                                 \
    struct scratch s;                                                                              \
    (void)state;                                                                                   \
    scratch_open(&s)

static void test_guests_of_other_hosts(void **state)
{
    struct nic nic;

    SCRATCH(s);
    put_nic(&s, "eth0", "01:00.0", "hv_netvsc", "50000\n");
    nic = nic_of(s.root, "eth0");
    check_line(
        nic.line_gbps, nic.line_source, 0,
        "eth0 says 50 Gb/s, nominal: Hyper-V gives its switch's figure, not this guest's share");
    put_nic(&s, "eth1", "02:00.0", "virtio_net", "25000\n");
    nic = nic_of(s.root, "eth1");
    check_line(nic.line_gbps, nic.line_source, 25, "sysfs: 25 Gb/s as the host set it");
    put_nic(&s, "eth2", "03:00.0", "ena", "-1\n");
    nic = nic_of(s.root, "eth2");
    check_line(nic.line_gbps, nic.line_source, 0,
               "eth2's rate is not known: the ENA driver shows none");
    put_nic(&s, "eth3", "04:00.0", "foo", "4294967295\n"); /* -1, as some kernels print it */
    assert_true(nic_of(s.root, "eth3").line_gbps == 0);
    scratch_close(&s);
}

static void test_sriov(void **state)
{
    struct nic nic;

    SCRATCH(s);
    put_nic(&s, "eth0", "3b:00.0", "mlx5_core", "100000\n");
    put_nic(&s, "eth1", "3b:00.2", "mlx5_core", "100000\n");
    scratch_put(&s, "sys/devices/pci0000:00/0000:3b:00.0/sriov_numvfs", "4\n");
    scratch_put(&s, "sys/devices/pci0000:00/0000:3b:00.0/numa_node", "1\n");
    scratch_put(&s, "sys/devices/pci0000:00/0000:3b:00.2/numa_node", "-1\n");
    scratch_link(&s, "sys/devices/pci0000:00/0000:3b:00.2/physfn", "../0000:3b:00.0");
    nic = nic_of(s.root, "eth0");
    assert_int_equal(nic.vfs, 4);
    assert_false(nic.vf);
    assert_int_equal(nic.node, 1);
    nic = nic_of(s.root, "eth1");
    assert_true(nic.vf);
    assert_int_equal(nic.node, -1);
    check_line(nic.line_gbps, nic.line_source, 100,
               "sysfs: 100 Gb/s of the port that a virtual function shares");
    scratch_close(&s);
}

static void put_link(const struct scratch *s, const char *slot, const char *speed,
                     const char *width)
{
    char path[256];

    snprintf(path, sizeof(path), "sys/devices/pci0000:00/0000:%s/current_link_speed", slot);
    scratch_put(s, path, speed);
    snprintf(path, sizeof(path), "sys/devices/pci0000:00/0000:%s/current_link_width", slot);
    scratch_put(s, path, width);
}

/* Configuration space as root reads it: power management at 0x40, PCI Express at 0x60, with its largest payload. */
static void put_config(const struct scratch *s, const char *slot, unsigned payload_code,
                       size_t size)
{
    unsigned char config[256] = {
        [6] = 0x10, [0x34] = 0x40, [0x40] = 0x01, [0x41] = 0x60, [0x60] = 0x10};
    char path[256];

    config[0x68] = (unsigned char)(payload_code << 5 | 0x0f);
    snprintf(path, sizeof(path), "sys/devices/pci0000:00/0000:%s/config", slot);
    scratch_bytes(s, path, config, size);
}

static void test_pcie(void **state)
{
    SCRATCH(s);
    put_nic(&s, "eth0", "3b:00.0", "mlx5_core", "200000\n");
    put_link(&s, "3b:00.0", "8.0 GT/s PCIe\n", "16\n");
    check_pcie(nic_of(s.root, "eth0").pcie, 8, 16, 0);
    put_config(&s, "3b:00.0", 1, 256);
    check_pcie(nic_of(s.root, "eth0").pcie, 8, 16, 256);
    put_config(&s, "3b:00.0", 2, 64); /* what others than root read */
    check_pcie(nic_of(s.root, "eth0").pcie, 8, 16, 0);
    put_config(&s, "3b:00.0", 2, 256);
    check_pcie(nic_of(s.root, "eth0").pcie, 8, 16, 512);
    /* A virtual function's own registers are empty: its physical function's hold. */
    put_nic(&s, "eth1", "3b:00.2", "mlx5_core", "200000\n");
    put_link(&s, "3b:00.2", "Unknown\n", "0\n");
    put_config(&s, "3b:00.2", 0, 256);
    check_pcie(nic_of(s.root, "eth1").pcie, 0, 0, 0);
    scratch_link(&s, "sys/devices/pci0000:00/0000:3b:00.2/physfn", "../0000:3b:00.0");
    check_pcie(nic_of(s.root, "eth1").pcie, 8, 16, 512);
    /* A VLAN goes over its card. */
    SOFTWARE(&s, "vlan7", {"uevent", "DEVTYPE=vlan\nINTERFACE=vlan7\n"}, {"lower_eth0", ""});
    check_pcie(nic_of(s.root, "vlan7").pcie, 8, 16, 512);
    /* And so does soft-RoCE. */
    scratch_put(&s, "sys/class/infiniband/rxe0/ports/1/link_layer", "Ethernet\n");
    scratch_put(&s, "sys/class/infiniband/rxe0/parent", "eth0\n");
    check_pcie(port_of(s.root, "rxe0").pcie, 8, 16, 512);
    scratch_close(&s);
}

/* Of devices without a link of their own. */
static void test_pcie_made_up(void **state)
{
    SCRATCH(s);
    put_nic(&s, "eth0", "01:00.0", "i40e", "10000\n"); /* part of the chipset */
    put_link(&s, "01:00.0", "2.5 GT/s PCIe\n", "1\n");
    check_pcie(nic_of(s.root, "eth0").pcie, 0, 0, 0);
    put_nic(&s, "eth1", "02:00.0", "virtio_net", "25000\n");
    put_link(&s, "02:00.0", "16.0 GT/s PCIe\n", "1\n");
    check_pcie(nic_of(s.root, "eth1").pcie, 0, 0, 0);
    put_nic(&s, "eth2", "03:00.0", "ice", "25000\n");
    put_link(&s, "03:00.0", "2.5 GT/s PCIe\n", "8\n"); /* a slot that came up slow */
    check_pcie(nic_of(s.root, "eth2").pcie, 2.5, 8, 0);
    put_nic(&s, "eth3", "04:00.0", "ice", "25000\n");
    put_link(&s, "04:00.0", "8.0 GT/s PCIe\n", "63\n");
    check_pcie(nic_of(s.root, "eth3").pcie, 0, 0, 0);
    scratch_close(&s);
}

static void test_software_interfaces(void **state)
{
    struct nic nic;

    SCRATCH(s);
    put_nic(&s, "eth0", "01:00.0", "ice", "25000\n");
    put_nic(&s, "eth1", "02:00.0", "ice", "25000\n");
    SOFTWARE(&s, "veth3", {"ifindex", "3\n"}, {"iflink", "4\n"}, {"speed", "10000\n"});
    nic = nic_of(s.root, "veth3");
    assert_string_equal(nic.kind, "veth");
    check_line(nic.line_gbps, nic.line_source, 0, "veth3 says 10 Gb/s, made up: veth has no line");
    SOFTWARE(&s, "tun0", {"tun_flags", "0x1001\n"}, {"speed", "10\n"});
    nic = nic_of(s.root, "tun0");
    check_line(nic.line_gbps, nic.line_source, 0,
               "tun0 says 0.01 Gb/s, made up: a tun device has no line");
    SOFTWARE(&s, "bond0", {"bonding/mode", "802.3ad\n"}, {"speed", "50000\n"}, {"lower_eth0", ""},
             {"lower_eth1", ""});
    nic = nic_of(s.root, "bond0");
    check_line(nic.line_gbps, nic.line_source, 50, "sysfs: 50 Gb/s");
    /* Its own figure is worth what its members' are. */
    put_nic(&s, "eth8", "08:00.0", "vmxnet3", "10000\n");
    SOFTWARE(&s, "bond1", {"bonding/mode", "802.3ad\n"}, {"speed", "10000\n"}, {"lower_eth8", ""});
    nic = nic_of(s.root, "bond1");
    check_line(nic.line_gbps, nic.line_source, 0,
               "bond1: eth8 says 10 Gb/s, nominal: vmxnet3 gives this figure whatever the uplink");
    SOFTWARE(&s, "vlan7", {"uevent", "DEVTYPE=vlan\nINTERFACE=vlan7\n"}, {"lower_bond0", ""});
    nic = nic_of(s.root, "vlan7");
    assert_string_equal(nic.kind, "vlan");
    check_line(nic.line_gbps, nic.line_source, 50, "sysfs: 50 Gb/s (bond0)");
    /* A bridge has the line of its one way out; what leads to guests is none. */
    SOFTWARE(&s, "br0", {"bridge/x", ""}, {"lower_eth1", ""}, {"lower_veth3", ""});
    nic = nic_of(s.root, "br0");
    check_line(nic.line_gbps, nic.line_source, 25, "sysfs: 25 Gb/s (eth1)");
    SOFTWARE(&s, "br1", {"bridge/x", ""}, {"lower_eth1", ""}, {"lower_eth0", ""});
    nic = nic_of(s.root, "br1");
    check_line(nic.line_gbps, nic.line_source, 0,
               "br1 is a bridge over several interfaces: its line is not known");
    SOFTWARE(&s, "br2", {"bridge/x", ""}, {"lower_br2", ""}); /* a loop ends */
    assert_true(nic_of(s.root, "br2").line_gbps == 0);
    SOFTWARE(&s, "dummy0", {"ifindex", "9\n"}, {"iflink", "9\n"});
    nic = nic_of(s.root, "dummy0");
    check_line(nic.line_gbps, nic.line_source, 0, "dummy0 is in software: there is no line");
    put_nic(&s, "wlan0", "05:00.0", "iwlwifi", "1200\n");
    scratch_put(&s, "sys/class/net/wlan0/phy80211/index", "0\n");
    nic = nic_of(s.root, "wlan0");
    check_line(nic.line_gbps, nic.line_source, 0,
               "wlan0: the rate of a radio changes from frame to frame");
    scratch_close(&s);
}

/* A port of an adapter; rate as the kernel prints it. */
static void put_port(const struct scratch *s, const char *device, const char *slot,
                     const char *driver, const char *layer, const char *rate)
{
    char path[256], target[256];

    snprintf(path, sizeof(path), "sys/devices/pci0000:00/0000:%s/infiniband/%s/ports/1/link_layer",
             slot, device);
    scratch_put(s, path, layer);
    snprintf(path, sizeof(path), "sys/devices/pci0000:00/0000:%s/infiniband/%s/ports/1/rate", slot,
             device);
    scratch_put(s, path, rate);
    snprintf(path, sizeof(path), "sys/devices/pci0000:00/0000:%s/driver", slot);
    scratch_link(s, path, driver);
    snprintf(path, sizeof(path), "sys/class/infiniband/%s", device);
    snprintf(target, sizeof(target), "../../devices/pci0000:00/0000:%s/infiniband/%s", slot,
             device);
    scratch_link(s, path, target);
}

static void test_infiniband_rates(void **state)
{
    static const struct {
        const char *device, *slot, *rate, *source;
        double gbps;
    } ports[] = {
        {"a", "01:00.0", "10 Gb/sec (4X)\n", "sysfs: 10 Gb/s of 10 Gb/sec (4X)", 10},
        {"b", "02:00.0", "40 Gb/sec (4X QDR)\n", "sysfs: 32 Gb/s of 40 Gb/sec (4X QDR)", 32},
        {"c", "03:00.0", "56 Gb/sec (4X FDR)\n", "sysfs: 54.55 Gb/s of 56 Gb/sec (4X FDR)",
         600.0 / 11},
        {"d", "04:00.0", "40 Gb/sec (4X FDR10)\n", "sysfs: 40 Gb/s of 40 Gb/sec (4X FDR10)", 40},
        {"e", "05:00.0", "200 Gb/sec (4X HDR)\n", "sysfs: 200 Gb/s of 200 Gb/sec (4X HDR)", 200},
        {"f", "06:00.0", "2.5 Gb/sec (1X SDR)\n", "sysfs: 2 Gb/s of 2.5 Gb/sec (1X SDR)", 2},
    };
    SCRATCH(s);
    for (size_t i = 0; i < sizeof(ports) / sizeof(*ports); i++) {
        put_port(&s, ports[i].device, ports[i].slot, "mlx5_core", "InfiniBand\n", ports[i].rate);
        struct nic_port np = port_of(s.root, ports[i].device);
        check_line(np.line_gbps, np.line_source, ports[i].gbps, ports[i].source);
    }
    scratch_close(&s);
}

/* EFA has no interface of its own, and older drivers one rate for all cards. */
static void test_efa(void **state)
{
    SCRATCH(s);
    put_port(&s, "efa_0", "01:00.0", "efa", "Unspecified\n", "100 Gb/sec (4X EDR)\n");
    put_port(&s, "efa_1", "02:00.0", "efa", "Unspecified\n", "200 Gb/sec (4X HDR)\n");
    struct nic_port np = port_of(s.root, "efa_0");
    assert_string_equal(np.driver, "efa");
    assert_string_equal(np.interface, "");
    check_line(np.line_gbps, np.line_source, 0,
               "efa_0:1 says 100 Gb/sec (4X EDR), as EFA's older drivers do whatever the adapter");
    np = port_of(s.root, "efa_1");
    check_line(np.line_gbps, np.line_source, 200, "sysfs: 200 Gb/s of 200 Gb/sec (4X HDR)");
    scratch_close(&s);
}

/* siw may hang below its interface's PCI function, and is software all the same. */
static void test_siw(void **state)
{
    SCRATCH(s);
    put_nic(&s, "eth0", "01:00.0", "ice", "25000\n");
    put_port(&s, "siw_eth0", "01:00.0/x", "none", "Ethernet\n", "100 Gb/sec (4X EDR)\n");
    scratch_put(&s, "sys/class/infiniband/siw_eth0/node_type", "4: RNIC\n");
    scratch_put(&s, "sys/class/infiniband/siw_eth0/node_desc", "Software iWARP stack\n");
    struct nic_port np = port_of(s.root, "siw_eth0");
    assert_string_equal(np.driver, "siw");
    assert_true(np.software && np.iwarp);
    assert_string_equal(np.interface, "eth0");
    assert_string_equal(np.address, "");
    check_line(np.line_gbps, np.line_source, 25, "sysfs: 25 Gb/s (eth0)");
    scratch_close(&s);
}

/* GIDs of VLANs and representors of virtual functions stand beside the port's own interface. */
static void test_interface_of_a_port(void **state)
{
    SCRATCH(s);
    put_nic(&s, "eth5", "01:00.0", "mlx5_core", "100000\n");
    scratch_put(&s, "sys/devices/pci0000:00/0000:01:00.0/net/eth1/type", "1\n");
    scratch_put(&s, "sys/devices/pci0000:00/0000:01:00.0/net/eth1/dev_port", "1\n");
    char driver[] = "mlx5_core";
    scratch_put(&s, "sys/devices/pci0000:00/0000:01:00.0/infiniband/mlx5_0/ports/1/link_layer",
                "Ethernet\n");
    scratch_link(&s, "sys/class/infiniband/mlx5_0",
                 "../../devices/pci0000:00/0000:01:00.0/infiniband/mlx5_0");
    assert_string_equal(port_of(s.root, "mlx5_0").driver, driver);
    /* eth1 says that it is on another port. */
    assert_string_equal(port_of(s.root, "mlx5_0").interface, "eth5");
    scratch_put(&s, "sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0", "vlan7\n");
    assert_string_equal(port_of(s.root, "mlx5_0").interface, "vlan7");
    scratch_put(&s, "sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/1", "");
    scratch_put(&s, "sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/2", "eth5\n");
    assert_string_equal(port_of(s.root, "mlx5_0").interface, "eth5");
    scratch_close(&s);
}

static void test_fill(void **state)
{
    struct nic_rail r = {.name = "mine"};

    (void)state;
    if (nic_fill(&r, "lo"))
        skip(); /* no /sys here */
    assert_string_equal(r.name, "mine");
    assert_int_equal(r.node, -1);
    assert_true(r.mtu_bytes > 0 && r.line_gbps == 0);
    assert_string_equal(r.line_source, "lo: within this machine, there is no line");
    assert_int_equal(nic_fill(&r, "none9"), -ENODEV);
}

static struct sockaddr_in ipv4(const char *text)
{
    struct sockaddr_in a = {.sin_family = AF_INET};

    assert_int_equal(inet_pton(AF_INET, text, &a.sin_addr), 1);
    return a;
}

static void test_addresses(void **state)
{
    struct sockaddr_in local = ipv4("127.0.0.1"), any_local = ipv4("127.9.9.9"),
                       documentation = ipv4("192.0.2.77");
    struct sockaddr_in6 mapped = {.sin6_family = AF_INET6};
    struct sockaddr other = {.sa_family = AF_UNIX};
    char name[IF_NAMESIZE] = "";

    (void)state;
    if (nic_of_address((struct sockaddr *)&local, name, sizeof(name)))
        skip(); /* lo is down */
    assert_string_equal(name, "lo");
    name[0] = 0;
    assert_int_equal(nic_of_address((struct sockaddr *)&any_local, name, sizeof(name)), 0);
    assert_string_equal(name, "lo");
    assert_int_equal(inet_pton(AF_INET6, "::ffff:127.0.0.1", &mapped.sin6_addr), 1);
    name[0] = 0;
    assert_int_equal(nic_of_address((struct sockaddr *)&mapped, name, sizeof(name)), 0);
    assert_string_equal(name, "lo");
    name[0] = 0;
    assert_int_equal(
        nic_of_route((struct sockaddr *)&local, (struct sockaddr *)&any_local, name, sizeof(name)),
        0);
    assert_string_equal(name, "lo");
    assert_int_equal(nic_of_address((struct sockaddr *)&documentation, name, sizeof(name)),
                     -ENODEV);
    assert_int_equal(nic_of_address(&other, name, sizeof(name)), -EINVAL);
    assert_int_equal(nic_of_route(NULL, &other, name, sizeof(name)), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bare_metal),
        cmocka_unit_test(test_esxi),
        cmocka_unit_test(test_kvm),
        cmocka_unit_test(test_soft_roce_and_links_down),
        cmocka_unit_test(test_arm),
        cmocka_unit_test(test_not_there),
        cmocka_unit_test(test_port_names),
        cmocka_unit_test(test_guests_of_other_hosts),
        cmocka_unit_test(test_sriov),
        cmocka_unit_test(test_pcie),
        cmocka_unit_test(test_pcie_made_up),
        cmocka_unit_test(test_software_interfaces),
        cmocka_unit_test(test_infiniband_rates),
        cmocka_unit_test(test_efa),
        cmocka_unit_test(test_siw),
        cmocka_unit_test(test_interface_of_a_port),
        cmocka_unit_test(test_fill),
        cmocka_unit_test(test_addresses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
