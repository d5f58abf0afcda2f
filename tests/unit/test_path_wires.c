/* SPDX-License-Identifier: Apache-2.0 */
/* Which links carried a library's bytes, by the counters of made-up machines; and what their rails say. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/clock.h"
#include "core/hw/nic.h"
#include "core/wire/wires.h"
#include "tests/unit/path_tree.h"

/* "eth0+eth1", or why not. */
static const char *found(struct path *p, double out, double in)
{
    static char text[1024];
    struct path_wires w;

    path_wires(p, out, in, &w);
    snprintf(text, sizeof(text), "%s", w.n ? w.devices[0] : w.why);
    for (unsigned i = 1; i < w.n; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "+%s", w.devices[i]);
    return text;
}
#define FOUND(p, out, in, text) assert_string_equal(found(p, out, in), text)

/* lo is within the machine, and little beside it is nothing. */
static void test_one(void **state)
{
    SCRATCH(s);
    INTERFACES(&s, {"lo", 0, 0}, {"eth0", 5 * GB, GB}, {"eth1", 0, 0});
    struct path *p = begin(&s);
    INTERFACES(&s, {"lo", 90 * GB, 90 * GB}, {"eth0", 17.4 * GB, 13.5 * GB}, {"eth1", 5e7, 5e7});
    FOUND(p, 12 * GB, 12 * GB, "eth0");
    INTERFACES(&s, {"lo", 0, 0}, {"eth0", 17 * GB, 13 * GB}, {"eth1", 7e7, 0});
    FOUND(p, 11 * GB, 11 * GB,
          "which links carried the bytes is not sure: eth0 100 % out, 99.4 % in; eth1 0 % out, "
          "0.58 % in");
    FOUND(p, 11 * GB, 0, "eth0"); /* a broadcast's root: only that way counts */
    FOUND(p, 4e5, 5e5, "900 kB between machines are too few to tell");
    path_close(p);
    scratch_close(&s);
}

/* What counters do not show went where nobody sees it, or stayed within the machine. */
static void test_hidden(void **state)
{
    SCRATCH(s);
    INTERFACES(&s, {"lo", 0, 0}, {"eth0", 0, 0});
    struct path *p = begin(&s);
    INTERFACES(&s, {"lo", 0, 0}, {"eth0", 1e8, 1e8});
    FOUND(p, 2 * GB, 2 * GB,
          "of at least 4 GB that went between machines, all links that count moved 200 MB");
    INTERFACES(&s, {"lo", 3 * GB, 3 * GB}, {"eth0", 1e8, 1e8});
    FOUND(
        p, 2 * GB, 2 * GB,
        "of at least 4 GB that went between machines, all links that count moved 200 MB, lo 6 GB");
    /* One way is enough to be missing. */
    INTERFACES(&s, {"lo", 0, 0}, {"eth0", 1e8, 9 * GB});
    FOUND(p, 2 * GB, 2 * GB,
          "of at least 4 GB that went between machines, all links that count moved 9.1 GB");
    path_close(p);
    scratch_close(&s);
}

static void test_several(void **state)
{
    SCRATCH(s);
    INTERFACES(&s, {"eth0", 0, 0}, {"eth1", 0, 0}, {"eth2", 0, 0});
    struct path *p = begin(&s);
    INTERFACES(&s, {"eth0", 6 * GB, 6 * GB}, {"eth1", 4 * GB, 4 * GB}, {"eth2", 1e6, 1e6});
    FOUND(p, 9 * GB, 9 * GB, "eth0+eth1");
    INTERFACES(&s, {"eth0", 8 * GB, 8 * GB}, {"eth1", 2 * GB, 2 * GB}, {"eth2", 1e6, 1e6});
    FOUND(p, 9 * GB, 9 * GB,
          "which links carried the bytes is not sure: eth0 80 % out, 80 % in; eth1 20 % out, 20 % "
          "in; eth2 0.01 % out, 0.01 % in");
    /* Out by one, in by the other. */
    INTERFACES(&s, {"eth0", 0, 9 * GB}, {"eth1", 9 * GB, 0}, {"eth2", 0, 0});
    FOUND(p, 9 * GB, 9 * GB,
          "which links carried the bytes is not sure: eth0 100 % out, 0 % in; eth1 0 % out, 100 % "
          "in; eth2 0 % out, 0 % in");
    path_close(p);
    scratch_close(&s);
}

/* Three links that are each nothing, but not together. */
static void test_rest(void **state)
{
    SCRATCH(s);
    INTERFACES(&s, {"a", 0, 0}, {"b", 0, 0}, {"c", 0, 0}, {"d", 0, 0});
    struct path *p = begin(&s);
    INTERFACES(&s, {"a", 10 * GB, 10 * GB}, {"b", 4e7, 4e7}, {"c", 4e7, 4e7}, {"d", 4e7, 4e7});
    FOUND(
        p, 9 * GB, 9 * GB,
        "which links carried the bytes is not sure: a 98.8 % out, 98.8 % in; b 0.395 % out, 0.395 "
        "% in; c 0.395 % out, 0.395 % in");
    path_close(p);
    scratch_close(&s);
}

/* An interface and its RDMA port are one link, called by what carried more. */
static void test_ports(void **state)
{
    SCRATCH(s);
    put_adapter(&s, "mlx5_0", "mlx5_core", "Ethernet", "eth0");
    put_port(&s, "mlx5_0", 0, 0);
    INTERFACES(&s, {"lo", 0, 0}, {"eth0", 0, 0});
    struct path *p = begin(&s);
    put_port(&s, "mlx5_0", 9 * GB, 9 * GB);
    INTERFACES(&s, {"lo", 0, 0}, {"eth0", 2 * GB, 2 * GB});
    FOUND(p, 10 * GB, 10 * GB, "mlx5_0:1");
    put_port(&s, "mlx5_0", 2 * GB, 2 * GB);
    INTERFACES(&s, {"lo", 0, 0}, {"eth0", 9 * GB, 9 * GB});
    FOUND(p, 10 * GB, 10 * GB, "eth0");
    path_close(p);
    scratch_close(&s);
}

/* Of a driver that may count the same bytes twice they are not added. */
static void test_vague_ports(void **state)
{
    SCRATCH(s);
    put_adapter(&s, "bnxt_re0", "bnxt_re", "Ethernet", "eth0");
    put_port(&s, "bnxt_re0", 0, 0);
    INTERFACES(&s, {"lo", 0, 0}, {"eth0", 0, 0});
    struct path *p = begin(&s);
    put_port(&s, "bnxt_re0", 6 * GB, 6 * GB);
    INTERFACES(&s, {"lo", 0, 0}, {"eth0", 6 * GB, 6 * GB});
    FOUND(p, 5 * GB, 5 * GB, "bnxt_re0:1");
    FOUND(p, 10 * GB, 10 * GB,
          "of at least 20 GB that went between machines, all links that count moved 12 GB");
    path_close(p);
    scratch_close(&s);
}

/* IPoIB's bytes are among its port's, which is called by the one that moved more of them; soft-RoCE's are among its interface's. */
static void test_within(void **state)
{
    SCRATCH(s);
    put_adapter(&s, "mlx5_0", "mlx5_core", "InfiniBand", "ib0");
    put_port(&s, "mlx5_0", 0, 0);
    put_rxe(&s, 0, 0);
    INTERFACES(&s, {"ib0", 0, 0}, {"eth0", 0, 0});
    struct path *p = begin(&s);
    put_port(&s, "mlx5_0", 9 * GB, 9 * GB);
    INTERFACES(&s, {"ib0", 8 * GB, 8 * GB}, {"eth0", 0, 0});
    FOUND(p, 8 * GB, 8 * GB, "ib0");
    FOUND(p, 10 * GB, 10 * GB,
          "of at least 20 GB that went between machines, all links that count moved 18 GB");
    INTERFACES(&s, {"ib0", 4 * GB, 4 * GB}, {"eth0", 0, 0});
    FOUND(p, 8 * GB, 8 * GB, "mlx5_0:1");
    put_port(&s, "mlx5_0", 0, 0);
    put_rxe(&s, 9e6, 9e6);
    INTERFACES(&s, {"ib0", 0, 0}, {"eth0", 9 * GB, 9 * GB});
    FOUND(p, 8 * GB, 8 * GB, "eth0");
    path_close(p);
    scratch_close(&s);
}

/* A bond's bytes are those of the links below it. */
static void test_bond(void **state)
{
    SCRATCH(s);
    put_lower(&s, "bond0", "eth0");
    put_lower(&s, "bond0", "eth1");
    INTERFACES(&s, {"bond0", 0, 0}, {"eth0", 0, 0}, {"eth1", 0, 0});
    struct path *p = begin(&s);
    INTERFACES(&s, {"bond0", 8 * GB, 8 * GB}, {"eth0", 8 * GB, 8 * GB}, {"eth1", 0, 0});
    FOUND(p, 8 * GB, 8 * GB, "eth0");
    INTERFACES(&s, {"bond0", 8 * GB, 8 * GB}, {"eth0", 4 * GB, 4 * GB}, {"eth1", 4 * GB, 4 * GB});
    FOUND(p, 8 * GB, 8 * GB, "eth0+eth1");
    path_close(p);
    scratch_close(&s);
}

/* An adapter of 32 bits whose counter came to its end may have moved any more. */
static void test_narrow(void **state)
{
    SCRATCH(s);
    put_adapter(&s, "mthca0", "ib_mthca", "InfiniBand", NULL);
    put_port(&s, "mthca0", 0, 0);
    INTERFACES(&s, {"lo", 0, 0});
    struct path *p = begin(&s);
    put_port(&s, "mthca0", 4.0 * UINT32_MAX, 4.0 * UINT32_MAX);
    FOUND(p, 8 * GB, 8 * GB,
          "which links carried the bytes is not sure: mthca0:1 100 % out, 100 % in");
    path_close(p);
    scratch_close(&s);
}

/* Counters that are a second late are waited for, once. */
static void test_late(void **state)
{
    SCRATCH(s);
    struct path *p = NULL;
    INTERFACES(&s, {"eth0", 0, 0});
    assert_int_equal(path_begin_at(&p, s.root, 300000000), 0);
    uint64_t begin_ns = clock_now_ns();
    assert_non_null(strstr(found(p, GB, GB), "moved 0 B"));
    assert_true(clock_now_ns() - begin_ns >= 300000000);
    path_close(p);
    scratch_close(&s);
}

/* Claimed together: however they share it, and nothing of it elsewhere. */
static void test_set(void **state)
{
    const struct path_claim claim = {
        .device = "eth0+eth1", .out_bytes = 9 * GB, .in_bytes = 9 * GB, .at_least = true};
    SCRATCH(s);
    INTERFACES(&s, {"eth0", 0, 0}, {"eth1", 0, 0}, {"eth2", 0, 0});
    struct path *p = begin(&s);
    INTERFACES(&s, {"eth0", 9 * GB, 6 * GB}, {"eth1", 1 * GB, 4 * GB}, {"eth2", 0, 0});
    END(p, PATH_PROVED, "eth0+eth1 sent 10 GB, received 10 GB, 100 % of the bytes", claim);
    INTERFACES(&s, {"eth0", 10 * GB, 10 * GB}, {"eth1", 0, 0}, {"eth2", 0, 0});
    END(p, PATH_PROVED, "eth0+eth1 sent 10 GB, received 10 GB, 100 % of the bytes", claim);
    INTERFACES(&s, {"eth0", 2e8, 2e8}, {"eth1", 2e8, 2e8}, {"eth2", 12 * GB, 12 * GB});
    END(p, PATH_ELSEWHERE, "eth0+eth1 moved 800 MB of 18 GB, eth2 moved 24 GB; eth2 96.8 %", claim);
    INTERFACES(&s, {"eth0", 4 * GB, 4 * GB}, {"eth1", 4 * GB, 4 * GB}, {"eth2", 0, 0});
    END(p, PATH_UNKNOWN, "eth0+eth1 moved 16 GB of 18 GB, and no other device the rest", claim);
    path_close(p);
    scratch_close(&s);
}

static double limit_of(const struct nic_rail *r, char source[256])
{
    struct wire_load load = {.verb = RDMA_WRITE_IMM, .message_bytes = 1u << 20};

    return wire_limit_gbps(r, r->kind, &load, source, 256);
}

/* TCP without options: no segment holds more. */
static void test_interface_rail(void **state)
{
    const char names[1][NIC_NAME] = {"eth0"};
    struct nic_rail r[1];
    char why[256] = "", source[256];

    SCRATCH(s);
    put_speed(&s, "eth0", "01:00.0", "mlx5_core", "100000\n");
    assert_int_equal(nic_fill_wires(s.root, names, 1, r, why, sizeof(why)), 0);
    assert_string_equal(r[0].name, "eth0");
    assert_true(fabs(limit_of(r, source) - 12.5 * 1460 / 1538) < 1e-9);
    assert_string_equal(
        source, "sysfs: 100 Gb/s less TCP/IPv4 framing at MTU 1500, 1460 bytes a segment (94.9 %)");
    scratch_close(&s);
    scratch_open(&s);
    put_speed(&s, "eth0", "01:00.0", "vmxnet3", "10000\n");
    assert_int_equal(nic_fill_wires(s.root, names, 1, r, why, sizeof(why)), 0);
    assert_true(isnan(limit_of(r, source)));
    assert_non_null(strstr(source, "nominal: vmxnet3"));
    scratch_close(&s);
}

/* The largest path MTU that the link can have. */
static void test_port_rail(void **state)
{
    const char names[1][NIC_NAME] = {"mlx5_0:1"};
    struct nic_rail r[1];
    char why[256] = "", source[256];

    SCRATCH(s);
    put_adapter(&s, "mlx5_0", "mlx5_core", "InfiniBand", NULL);
    scratch_put(&s, "sys/class/infiniband/mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)\n");
    assert_int_equal(nic_fill_wires(s.root, names, 1, r, why, sizeof(why)), 0);
    assert_string_equal(r[0].kind, "infiniband");
    assert_true(
        fabs(limit_of(r, source) / 12.5 - framing_rdma_fraction(FRAMING_INFINIBAND, RDMA_WRITE_IMM,
                                                                1 << 20, 4096, false)) < 1e-9);
    scratch_close(&s);
    scratch_open(&s);
    put_adapter(&s, "mlx5_0", "mlx5_core", "Ethernet", "eth0");
    put_speed(&s, "eth0", "3b:00.0", NULL, "25000\n");
    assert_int_equal(nic_fill_wires(s.root, names, 1, r, why, sizeof(why)), 0);
    assert_string_equal(r[0].kind, "roce v2");
    assert_int_equal(r[0].mtu_bytes, 1024); /* of an interface of 1500 */
    limit_of(r, source);
    assert_string_equal(source, "sysfs: 25 Gb/s (eth0) less RoCE v2 framing at MTU 1024 (92.6 %)");
    scratch_put(&s, "sys/devices/pci0000:00/0000:3b:00.0/net/eth0/mtu", "4191\n");
    assert_int_equal(nic_fill_wires(s.root, names, 1, r, why, sizeof(why)), 0);
    assert_int_equal(r[0].mtu_bytes, 2048); /* with its longest headers 4096 needs 4192 */
    scratch_put(&s, "sys/devices/pci0000:00/0000:3b:00.0/net/eth0/mtu", "4192\n");
    assert_int_equal(nic_fill_wires(s.root, names, 1, r, why, sizeof(why)), 0);
    assert_int_equal(r[0].mtu_bytes, 4096);
    scratch_close(&s);
}

static void put_pcie(const struct scratch *s, const char *slot, const char *speed)
{
    char path[256];

    snprintf(path, sizeof(path), "sys/devices/pci0000:00/0000:%s/current_link_speed", slot);
    scratch_put(s, path, speed);
    snprintf(path, sizeof(path), "sys/devices/pci0000:00/0000:%s/current_link_width", slot);
    scratch_put(s, path, "8\n");
}

/* Lines add up where nothing stands before them that carries less. */
static void test_sums(void **state)
{
    const char names[2][NIC_NAME] = {"eth0", "eth1"};
    struct nic_rail r[2];
    char why[256] = "";

    SCRATCH(s);
    put_speed(&s, "eth0", "3b:00.0", "mlx5_core", "100000\n");
    put_speed(&s, "eth1", "3b:00.1", "mlx5_core", "100000\n");
    assert_int_equal(nic_fill_wires(s.root, names, 2, r, why, sizeof(why)), 0);
    put_pcie(&s, "3b:00.0", "16.0 GT/s PCIe\n"); /* 126 Gb/s, of 200 */
    assert_int_equal(nic_fill_wires(s.root, names, 2, r, why, sizeof(why)), -ENOTSUP);
    assert_string_equal(why,
                        "eth0 and 1 more carried the bytes: eth0 shares its adapter's PCIe link, "
                        "which carries less than their lines");
    put_pcie(&s, "3b:00.0", "32.0 GT/s PCIe\n");
    assert_int_equal(nic_fill_wires(s.root, names, 2, r, why, sizeof(why)), 0);
    scratch_close(&s);
    scratch_open(&s);
    put_speed(&s, "eth0", "3b:00.0", "mlx5_core", "100000\n");
    put_speed(&s, "eth1", "5e:00.0", "mlx5_core", "100000\n");
    put_pcie(&s, "3b:00.0", "8.0 GT/s PCIe\n"); /* its own bounds it, and that is no sharing */
    assert_int_equal(nic_fill_wires(s.root, names, 2, r, why, sizeof(why)), 0);
    scratch_link(&s, "sys/devices/pci0000:00/0000:5e:00.0/physfn", "../0000:5e:00.1");
    scratch_put(&s, "sys/devices/pci0000:00/0000:5e:00.1/vendor", "0x15b3\n");
    assert_int_equal(nic_fill_wires(s.root, names, 2, r, why, sizeof(why)), -ENOTSUP);
    assert_string_equal(why, "eth0 and 1 more carried the bytes: eth1 is a virtual function, which "
                             "may share its port");
    scratch_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one),       cmocka_unit_test(test_hidden),
        cmocka_unit_test(test_several),   cmocka_unit_test(test_rest),
        cmocka_unit_test(test_ports),     cmocka_unit_test(test_vague_ports),
        cmocka_unit_test(test_within),    cmocka_unit_test(test_set),
        cmocka_unit_test(test_bond),      cmocka_unit_test(test_narrow),
        cmocka_unit_test(test_late),      cmocka_unit_test(test_interface_rail),
        cmocka_unit_test(test_port_rail), cmocka_unit_test(test_sums),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
