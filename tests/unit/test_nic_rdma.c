/* SPDX-License-Identifier: Apache-2.0 */
/* Rails of made-up machines: the line of an RDMA port, whatever its rate says, and VLAN tags. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/hw/nic.h"
#include "core/wire/wires.h"
#include "tests/unit/path_tree.h"

/* As its transport hands it over. */
static struct nic_rail filled(const struct scratch *s, const char *name, bool within)
{
    struct nic_rail r = {.kind = "roce v2", .node = 3, .mtu_bytes = 512, .line_gbps = 7};

    snprintf(r.name, sizeof(r.name), "%s", name);
    assert_int_equal(nic_fill_rdma(s->root, &r, within), 0);
    assert_int_equal(r.node, 3);
    return r;
}

static void line_is(const struct nic_rail *r, double gbps, const char *source)
{
    assert_string_equal(r->line_source, source);
    if (!(fabs(r->line_gbps - gbps) < 1e-3))
        fail_msg("%g Gb/s, not %g", r->line_gbps, gbps);
}

static void put_rate(const struct scratch *s, const char *device, const char *rate)
{
    char path[256];

    snprintf(path, sizeof(path), "sys/class/infiniband/%s/ports/1/rate", device);
    scratch_put(s, path, rate);
}

/* Kernels round what they know to a rate that InfiniBand has, and make up what they do not. */
static void test_ethernet(void **state)
{
    static const char speed[] = "sys/class/net/eth0/speed";
    SCRATCH(s);
    put_adapter(&s, "bnxt_re0", "bnxt_en", "Ethernet", "eth0");
    put_speed(&s, "eth0", "3b:00.0", NULL, "200000\n");
    put_rate(&s, "bnxt_re0", "100 Gb/sec (4X EDR)\n");
    struct nic_rail r = filled(&s, "bnxt_re0:1", false);
    line_is(&r, 200, "sysfs: 200 Gb/s (eth0)");
    assert_string_equal(r.address, "0000:3b:00.0");
    assert_int_equal(r.mtu_bytes, 512); /* the path's, not the interface's 1500 */
    r = filled(&s, "bnxt_re0:1", true); /* through the card, whoever is there */
    line_is(&r, 200, "sysfs: 200 Gb/s (eth0)");
    scratch_put(&s, speed, "50000\n");
    r = filled(&s, "bnxt_re0:1", false);
    line_is(&r, 50, "sysfs: 50 Gb/s (eth0)");
    scratch_put(&s, speed, "-1\n");
    put_rate(&s, "bnxt_re0", "2.5 Gb/sec (1X SDR)\n");
    r = filled(&s, "bnxt_re0:1", false);
    line_is(&r, 0,
            "bnxt_re0:1 says 2.5 Gb/sec (1X SDR), made up: what bnxt_en gives where it does not "
            "know");
    /* What is no made-up figure holds where the interface tells none. */
    put_rate(&s, "bnxt_re0", "200 Gb/sec (4X HDR)\n");
    r = filled(&s, "bnxt_re0:1", false);
    line_is(&r, 200, "sysfs: 200 Gb/s of 200 Gb/sec (4X HDR)");
    scratch_close(&s);
}

static void test_pvrdma(void **state)
{
    SCRATCH(s);
    put_adapter(&s, "vmw_pvrdma0", "vmw_pvrdma", "Ethernet", "ens192");
    put_rate(&s, "vmw_pvrdma0", "10 Gb/sec (1X QDR)\n");
    struct nic_rail r = filled(&s, "vmw_pvrdma0:1", false);
    line_is(
        &r, 0,
        "vmw_pvrdma0:1 says 10 Gb/sec (1X QDR), invented: PVRDMA does not know the line's rate");
    scratch_close(&s);
}

static void test_infiniband(void **state)
{
    static const struct {
        const char *rate, *source;
        double gbps;
    } rates[] = {
        {"40 Gb/sec (4X QDR)\n", "sysfs: 32 Gb/s of 40 Gb/sec (4X QDR)", 32},
        {"120 Gb/sec (12X QDR)\n", "sysfs: 96 Gb/s of 120 Gb/sec (12X QDR)", 96},
        {"56 Gb/sec (4X FDR)\n", "sysfs: 54.55 Gb/s of 56 Gb/sec (4X FDR)", 600.0 / 11},
        {"168 Gb/sec (12X FDR)\n", "sysfs: 163.6 Gb/s of 168 Gb/sec (12X FDR)", 1800.0 / 11},
        {"14 Gb/sec (1X FDR)\n", "sysfs: 13.64 Gb/s of 14 Gb/sec (1X FDR)", 150.0 / 11},
        {"400 Gb/sec (4X NDR)\n", "sysfs: 400 Gb/s of 400 Gb/sec (4X NDR)", 400},
    };
    SCRATCH(s);
    put_adapter(&s, "mlx5_0", "mlx5_core", "InfiniBand", "ib0");
    put_speed(&s, "ib0", "3b:00.0", NULL, "56000\n"); /* IPoIB's has the line code in it */
    for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
        put_rate(&s, "mlx5_0", rates[i].rate);
        struct nic_rail r = filled(&s, "mlx5_0:1", false);
        line_is(&r, rates[i].gbps, rates[i].source);
    }
    scratch_close(&s);
}

/* Between two machines its bytes take the interface's line, within one they take none. */
static void test_software(void **state)
{
    SCRATCH(s);
    put_rxe(&s, 0, 0);
    put_speed(&s, "eth0", "3b:00.0", "ice", "25000\n");
    put_rate(&s, "rxe0", "2.5 Gb/sec (1X SDR)\n");
    struct nic_rail r = filled(&s, "rxe0:1", false);
    line_is(&r, 25, "sysfs: 25 Gb/s (eth0)");
    r = filled(&s, "rxe0:1", true);
    line_is(&r, 0, "rxe0:1 is in software: within this machine, there is no line");
    scratch_close(&s);
}

static void put_above(const struct scratch *s, const char *kind, const char *name,
                      const char *lower)
{
    char path[256], text[256];

    snprintf(path, sizeof(path), "sys/devices/virtual/net/%s/type", name);
    scratch_put(s, path, "1\n");
    snprintf(path, sizeof(path), "sys/devices/virtual/net/%s/mtu", name);
    scratch_put(s, path, "1500\n");
    snprintf(path, sizeof(path), "sys/devices/virtual/net/%s/uevent", name);
    snprintf(text, sizeof(text), "DEVTYPE=%s\n", kind);
    scratch_put(s, path, text);
    snprintf(path, sizeof(path), "sys/class/net/%s", name);
    snprintf(text, sizeof(text), "../../devices/virtual/net/%s", name);
    scratch_link(s, path, text);
    put_lower(s, name, lower);
}

/* iWARP goes in its interface's segments, of an MTU that no path MTU is. */
static void test_iwarp(void **state)
{
    struct wire_load p = {.message_bytes = 1428, .verb = RDMA_WRITE};
    char source[256];
    SCRATCH(s);
    put_adapter(&s, "irdma0", "irdma", "Ethernet", "eth0");
    put_speed(&s, "eth0", "3b:00.0", NULL, "100000\n");
    scratch_put(&s, "sys/class/infiniband/irdma0/node_type", "4: RNIC\n");
    put_rate(&s, "irdma0", "100 Gb/sec (4X EDR)\n");
    struct nic_rail r = filled(&s, "irdma0:1", false);
    assert_int_equal(r.mtu_bytes, 1500);
    assert_false(r.vlan);
    double gbps = wire_limit_gbps(&r, "iwarp", &p, source, sizeof(source));
    assert_string_equal(source, "sysfs: 100 Gb/s (eth0) less iWARP framing at MTU 1500 (92.8 %)");
    assert_true(fabs(gbps - 12.5 * 1428 / 1538) < 1e-9);
    put_above(&s, "vlan", "eth0.7", "eth0");
    scratch_put(&s, "sys/class/infiniband/irdma0/ports/1/gid_attrs/ndevs/0", "eth0.7\n");
    r = filled(&s, "irdma0:1", false);
    assert_true(r.vlan);
    scratch_close(&s);
}

static void test_no_port(void **state)
{
    struct nic_rail r = {.name = "mlx5_7:1", .line_gbps = 100};

    SCRATCH(s);
    assert_int_equal(nic_fill_rdma(s.root, &r, false), -ENODEV);
    line_is(&r, 0, "there is no RDMA port 'mlx5_7:1'");
    scratch_close(&s);
}

static bool tagged(const struct scratch *s, const char *name)
{
    struct nic_rail r = {.kind = "tcp"};

    assert_int_equal(nic_fill_at(s->root, &r, name), 0);
    assert_int_equal(r.vlan, nic_has_tag(s->root, name));
    return r.vlan;
}

static void test_tags(void **state)
{
    struct wire_load p = {.message_bytes = 1 << 20};
    struct nic_rail r = {.kind = "tcp"};
    char source[256];
    SCRATCH(s);
    put_speed(&s, "eth0", "3b:00.0", "ice", "25000\n");
    put_speed(&s, "eth1", "3c:00.0", "ice", "25000\n");
    put_above(&s, "vlan", "eth0.7", "eth0");
    put_above(&s, "bridge", "br0", "eth0.7");
    put_above(&s, "bridge", "br1", "eth1");
    put_above(&s, "bridge", "br2", "eth1");
    put_lower(&s, "br2", "eth0.7"); /* some of its frames have one */
    assert_false(tagged(&s, "eth0"));
    assert_true(tagged(&s, "eth0.7"));
    assert_true(tagged(&s, "br0"));
    assert_false(tagged(&s, "br1"));
    assert_false(tagged(&s, "br2"));
    put_above(&s, "vlan", "eth1.7", "eth1");
    put_above(&s, "bond", "bond0", "eth0.7");
    put_lower(&s, "bond0", "eth1.7");
    assert_true(tagged(&s, "bond0"));
    put_above(&s, "bond", "bond1", "nothing");
    assert_false(tagged(&s, "bond1"));
    assert_int_equal(nic_fill_at(s.root, &r, "eth0.7"), 0);
    wire_limit_gbps(&r, "tcp", &p, source, sizeof(source));
    assert_string_equal(source, "sysfs: 25 Gb/s (eth0) less TCP/IPv4 framing with a VLAN tag at "
                                "MTU 1500, 1448 bytes a segment (93.9 %)");
    assert_false(nic_has_tag(s.root, "eth9"));
    scratch_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ethernet),   cmocka_unit_test(test_pvrdma),
        cmocka_unit_test(test_infiniband), cmocka_unit_test(test_software),
        cmocka_unit_test(test_iwarp),      cmocka_unit_test(test_no_port),
        cmocka_unit_test(test_tags),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
