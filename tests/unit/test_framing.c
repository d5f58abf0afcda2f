/* SPDX-License-Identifier: Apache-2.0 */
/* Framing: known answers, worked out by hand from the standards that nic.h names. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/hw/nic.h"
#include "core/wire/wires.h"

static void near(double have, double want, int line)
{
    if (!(fabs(have - want) < 1e-9))
        fail_msg("line %d: %.12g, not %.12g", line, have, want);
}
#define NEAR(have, want) near(have, want, __LINE__)

static void test_tcp(void **state)
{
    struct framing_tcp f = {.mtu = 1500, .options = 12};

    (void)state;
    /* 1500 - 20 - 20 - 12 of 8 + 14 + 1500 + 4 + 12: the well-known 94.15 %. */
    NEAR(framing_tcp_fraction(&f), 1448.0 / 1538);
    NEAR(round(framing_tcp_fraction(&f) * 1e4), 9415);
    f.vlan = true;
    NEAR(framing_tcp_fraction(&f), 1448.0 / 1542);
    f.ipv6 = true;
    NEAR(framing_tcp_fraction(&f), 1428.0 / 1542);
    f = (struct framing_tcp){.mtu = 1500};
    NEAR(framing_tcp_fraction(&f), 1460.0 / 1538);
    f = (struct framing_tcp){.mtu = 9000, .options = 12};
    NEAR(framing_tcp_fraction(&f), 8948.0 / 9038);
    /* Linux's shapers count the 14 bytes of Ethernet's header, not what the wire adds. */
    f = (struct framing_tcp){.mtu = 1500, .options = 12, .shaped = true};
    NEAR(framing_tcp_fraction(&f), 1448.0 / 1514);
}

static void test_tcp_of_small_segments(void **state)
{
    /* A peer's smaller MSS: headers stay. */
    struct framing_tcp f = {.mtu = 9000, .options = 12, .payload = 1448};

    (void)state;
    NEAR(framing_tcp_fraction(&f), 1448.0 / 1538);
    /* One byte without options is 41 bytes of IP: padded to the shortest frame, 64 + 20 on the wire. */
    f = (struct framing_tcp){.mtu = 1500, .payload = 1};
    NEAR(framing_tcp_fraction(&f), 1.0 / 84);
    /* The tag takes the place of padding. */
    f.vlan = true;
    NEAR(framing_tcp_fraction(&f), 1.0 / 84);
    f = (struct framing_tcp){.mtu = 40};
    assert_true(isnan(framing_tcp_fraction(&f)));
    f = (struct framing_tcp){.mtu = 41};
    NEAR(framing_tcp_fraction(&f), 1.0 / 84);
}

static void test_packets(void **state)
{
    (void)state;
    assert_int_equal(framing_packets(1, 4096), 1);
    assert_int_equal(framing_packets(4096, 4096), 1);
    assert_int_equal(framing_packets(4097, 4096), 2);
    assert_int_equal(framing_packets(1 << 20, 1024), 1024);
}

static void test_packet_headers(void **state)
{
    (void)state;
    assert_int_equal(framing_packet_bytes(FRAMING_ROCE_V2_IPV4), 82);
    assert_int_equal(framing_packet_bytes(FRAMING_ROCE_V2_IPV6), 102);
    assert_int_equal(framing_packet_bytes(FRAMING_ROCE_V1), 94);
    assert_int_equal(framing_packet_bytes(FRAMING_INFINIBAND), 26);
    assert_int_equal(framing_packet_bytes(FRAMING_INFINIBAND_GRH), 66);
}

static uint64_t roce(enum rdma_verb verb, uint64_t message, unsigned mtu)
{
    return framing_message_bytes(FRAMING_ROCE_V2_IPV4, verb, message, mtu, false);
}

static void test_roce_messages(void **state)
{
    (void)state;
    /* 1 MiB at MTU 4096: 256 packets of 82, and one RETH. */
    assert_int_equal(roce(RDMA_WRITE, 1048576, 4096), 1048576 + 256 * 82 + 16);
    assert_int_equal(roce(RDMA_WRITE_IMM, 1048576, 4096), 1048576 + 256 * 82 + 16 + 4);
    assert_int_equal(roce(RDMA_SEND, 1048576, 4096), 1048576 + 256 * 82);
    /* The answer of a read: AETH in its first and its last packet. */
    assert_int_equal(roce(RDMA_READ, 1048576, 4096), 1048576 + 256 * 82 + 8);
    assert_int_equal(roce(RDMA_READ, 4096, 4096), 4096 + 82 + 4);
    /* One byte: padded to four. */
    assert_int_equal(roce(RDMA_WRITE, 1, 1024), 4 + 82 + 16);
    assert_int_equal(roce(RDMA_SEND, 1, 1024), 4 + 82);
    assert_int_equal(framing_message_bytes(FRAMING_ROCE_V2_IPV4, RDMA_SEND, 4097, 4096, true),
                     4100 + 2 * (82 + 4));
    NEAR(framing_rdma_fraction(FRAMING_ROCE_V2_IPV4, RDMA_WRITE, 1048576, 4096, false),
         1048576.0 / 1069584);
    NEAR(framing_rdma_fraction(FRAMING_INFINIBAND, RDMA_WRITE, 1, 4096, false), 1.0 / 46);
    NEAR(framing_rdma_fraction(FRAMING_INFINIBAND, RDMA_SEND, 4096, 4096, true), 4096.0 / 4122);
    assert_true(isnan(framing_rdma_fraction(FRAMING_INFINIBAND, RDMA_SEND, 0, 4096, false)));
    assert_true(isnan(framing_rdma_fraction(FRAMING_INFINIBAND, RDMA_SEND, 64, 0, false)));
}

static void test_iwarp(void **state)
{
    struct framing_tcp f = {.mtu = 1500, .options = 12};

    (void)state;
    /* An FPDU fills a segment of 1448: length 2, header 14, payload 1428, CRC 4. */
    NEAR(framing_iwarp_fraction(&f, RDMA_WRITE, 1428 * 1000), 1428.0 / 1538);
    NEAR(framing_iwarp_fraction(&f, RDMA_SEND, 1424 * 1000), 1424.0 / 1538);
    /* One byte: 2 + 14 + 1, padded to 20, and 4: 24 bytes of the stream. */
    NEAR(framing_iwarp_fraction(&f, RDMA_WRITE, 1), 1.0 / 24 * 1448 / 1538);
    NEAR(framing_iwarp_fraction(&f, RDMA_WRITE, 1429), 1429.0 / (1448 + 24) * 1448 / 1538);
    assert_true(isnan(framing_iwarp_fraction(&f, RDMA_WRITE, 0)));
}

/* The well-known 15.75 GB/s of generation 3 x16, and AN 708's 92.8 % of it at 256 bytes. */
static void test_pcie(void **state)
{
    struct nic_pcie link = {.gt_s = 8, .width = 16};

    (void)state;
    NEAR(framing_pcie_gbps(&link), 128 * 128.0 / 130);
    link.payload_bytes = 256;
    NEAR(framing_pcie_gbps(&link), 128 * 128.0 / 130 * 256 / 276);
    NEAR(framing_pcie_gbps(&(struct nic_pcie){2.5, 8, 128}), 20 * 0.8 * 128 / 148);
    NEAR(framing_pcie_gbps(&(struct nic_pcie){5, 4, 0}), 16);
    NEAR(framing_pcie_gbps(&(struct nic_pcie){16, 8, 0}), 128 * 128.0 / 130);
    NEAR(framing_pcie_gbps(&(struct nic_pcie){32, 16, 0}), 512 * 128.0 / 130);
    NEAR(framing_pcie_gbps(&(struct nic_pcie){64, 16, 512}), 1024 * 236.0 / 256 * 512 / 524);
    NEAR(framing_pcie_gbps(&(struct nic_pcie){7, 16, 0}), 0);
    NEAR(framing_pcie_gbps(&(struct nic_pcie){0}), 0);
}

static struct nic_rail rail_of(const char *kind, double gbps, unsigned mtu)
{
    struct nic_rail r = {.line_gbps = gbps, .mtu_bytes = mtu};

    strcpy(r.kind, kind);
    strcpy(r.line_source, gbps > 0 ? "sysfs: 100 Gb/s" : "virtio shows none");
    return r;
}

static void check_limit(const struct nic_rail *r, const struct wire_load *p, double want,
                        const char *text)
{
    char source[160];

    NEAR(wire_limit_gbps(r, r->kind, p, source, sizeof(source)), want);
    assert_string_equal(source, text);
}

static void test_limits(void **state)
{
    struct wire_load p = {.message_bytes = 1048576, .verb = RDMA_WRITE};
    struct nic_rail r = rail_of("roce v2", 100, 4096);

    (void)state;
    check_limit(&r, &p, 12.5 * 1048576 / 1069584,
                "sysfs: 100 Gb/s less RoCE v2 framing at MTU 4096 (98.0 %)");
    strcpy(r.text, "GID 5 (RoCE v2, IPv6)");
    check_limit(&r, &p, 12.5 * 1048576 / (1048576 + 256 * 102 + 16),
                "sysfs: 100 Gb/s less RoCE v2 framing at MTU 4096 (97.6 %)");
    r = rail_of("infiniband", 100, 0);
    p.mtu = 2048;
    check_limit(&r, &p, 12.5 * 1048576 / (1048576 + 512 * 26 + 16),
                "sysfs: 100 Gb/s less InfiniBand framing at MTU 2048 (98.7 %)");
    r = rail_of("tcp", 100, 1500);
    check_limit(&r, &p, 12.5 * 1448 / 1538,
                "sysfs: 100 Gb/s less TCP/IPv4 framing at MTU 1500, 1448 bytes a segment (94.1 %)");
    r.ipv6 = 1; /* the text says nothing of it */
    strcpy(r.text, "cubic, MSS 1428");
    check_limit(&r, &p, 12.5 * 1428 / 1538,
                "sysfs: 100 Gb/s less TCP/IPv6 framing at MTU 1500, 1428 bytes a segment (92.8 %)");
    r.segment_bytes = 1428;
    check_limit(&r, &p, 12.5 * 1428 / 1538,
                "sysfs: 100 Gb/s less TCP/IPv6 framing at MTU 1500, 1428 bytes a segment (92.8 %)");
    r = rail_of("iwarp, siw", 100, 1500);
    p.message_bytes = 1428;
    check_limit(&r, &p, 12.5 * 1428 / 1538,
                "sysfs: 100 Gb/s less iWARP framing at MTU 1500 (92.8 %)");
}

/* Four bytes more of each frame; InfiniBand has none. */
static void test_tag(void **state)
{
    struct wire_load p = {.message_bytes = 1048576, .verb = RDMA_WRITE};
    struct nic_rail r = rail_of("tcp", 100, 1500);

    (void)state;
    r.vlan = 1;
    check_limit(&r, &p, 12.5 * 1448 / 1542,
                "sysfs: 100 Gb/s less TCP/IPv4 framing with a VLAN tag at MTU 1500, 1448 bytes a "
                "segment (93.9 %)");
    r = rail_of("roce v2", 100, 4096);
    r.vlan = 1;
    check_limit(&r, &p, 12.5 * 1048576 / (1048576 + 256 * 86 + 16),
                "sysfs: 100 Gb/s less RoCE v2 framing with a VLAN tag at MTU 4096 (97.9 %)");
    r = rail_of("roce v1", 100, 4096);
    r.vlan = 1;
    check_limit(&r, &p, 12.5 * 1048576 / (1048576 + 256 * 98 + 16),
                "sysfs: 100 Gb/s less RoCE v1 framing with a VLAN tag at MTU 4096 (97.7 %)");
    r = rail_of("infiniband", 100, 4096);
    check_limit(&r, &p, 12.5 * 1048576 / (1048576 + 256 * 26 + 16),
                "sysfs: 100 Gb/s less InfiniBand framing at MTU 4096 (99.4 %)");
    r = rail_of("iwarp", 100, 1500);
    r.vlan = 1;
    p.message_bytes = 1428;
    check_limit(&r, &p, 12.5 * 1428 / 1542,
                "sysfs: 100 Gb/s less iWARP framing with a VLAN tag at MTU 1500 (92.6 %)");
}

/* What the device is stands behind the protocol. */
static void test_kinds(void **state)
{
    static const struct {
        const char *kind;
        unsigned each; /* beside a packet of 4096 */
    } kinds[] = {{"roce v2", 82},         {"roce v2, rxe", 82},
                 {"roce v2, PVRDMA", 82}, {"roce v1", 94},
                 {"roce v1, rxe", 94},    {"roce v1, SR-IOV function", 94},
                 {"infiniband", 26},      {"infiniband, SR-IOV function", 26}};
    struct wire_load p = {.message_bytes = 4096, .verb = RDMA_SEND};
    char source[160];

    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        struct nic_rail r = rail_of(kinds[i].kind, 100, 4096);
        NEAR(wire_limit_gbps(&r, r.kind, &p, source, sizeof(source)),
             12.5 * 4096 / (4096 + kinds[i].each));
    }
    struct nic_rail r = rail_of("roce v21", 100, 4096);
    assert_true(isnan(wire_limit_gbps(&r, NULL, &p, source, sizeof(source))));
}

/* A card in a slot that is narrower than its line. */
static void test_narrow_slot(void **state)
{
    struct wire_load p = {.message_bytes = 1048576, .verb = RDMA_WRITE};
    struct nic_rail r = rail_of("roce v2", 200, 4096);

    (void)state;
    strcpy(r.line_source, "sysfs: 200 Gb/s (eth5)");
    r.pcie = (struct nic_pcie){.gt_s = 8, .width = 16};
    check_limit(&r, &p, 16 * 128.0 / 130,
                "PCIe 3.0 x16: 126 Gb/s, narrower than the line (sysfs: 200 Gb/s (eth5))");
    r.pcie.payload_bytes = 256;
    check_limit(&r, &p, 16 * 128.0 / 130 * 256 / 276,
                "PCIe 3.0 x16 less headers at payloads of 256: 116.9 Gb/s, narrower than the line "
                "(sysfs: 200 Gb/s (eth5))");
    /* Wide enough: the line it is. */
    r.pcie.gt_s = 16;
    check_limit(&r, &p, 25.0 * 1048576 / 1069584,
                "sysfs: 200 Gb/s (eth5) less RoCE v2 framing at MTU 4096 (98.0 %)");
    /* What is not known bounds nothing, and a slot is no line. */
    r.pcie = (struct nic_pcie){0};
    check_limit(&r, &p, 25.0 * 1048576 / 1069584,
                "sysfs: 200 Gb/s (eth5) less RoCE v2 framing at MTU 4096 (98.0 %)");
    r = rail_of("tcp", 0, 1500);
    r.pcie = (struct nic_pcie){.gt_s = 8, .width = 1};
    char source[160];
    assert_true(isnan(wire_limit_gbps(&r, NULL, &p, source, sizeof(source))));
}

/* What the kernel says of a segment tells how long the headers are. */
static void test_segments_of_a_rail(void **state)
{
    struct wire_load p = {.message_bytes = 1048576};
    struct nic_rail r = rail_of("tcp", 100, 9000);
    char source[160];

    (void)state;
    r.segment_bytes = 8960;
    NEAR(wire_limit_gbps(&r, "tcp", &p, source, sizeof(source)), 12.5 * 8960 / 9038);
    r.segment_bytes = 8948;
    NEAR(wire_limit_gbps(&r, "tcp", &p, source, sizeof(source)), 12.5 * 8948 / 9038);
    r.segment_bytes = 1448; /* the peer's MTU is 1500 */
    NEAR(wire_limit_gbps(&r, "tcp", &p, source, sizeof(source)), 12.5 * 1448 / 1538);
}

static void test_no_limit(void **state)
{
    struct wire_load p = {.message_bytes = 64};
    struct nic_rail r = rail_of("tcp", 0, 1500);
    char source[160];

    (void)state;
    assert_true(isnan(wire_limit_gbps(&r, "tcp", &p, source, sizeof(source))));
    assert_string_equal(source, "virtio shows none");
    r = rail_of("roce v2", 100, 0);
    assert_true(isnan(wire_limit_gbps(&r, NULL, &p, source, sizeof(source))));
    assert_string_equal(source, "no limit: the path's MTU is not known");
    r = rail_of("pigeon", 100, 1500);
    assert_true(isnan(wire_limit_gbps(&r, NULL, &p, source, sizeof(source))));
    assert_string_equal(source, "no limit: 'pigeon' has no framing that is known");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tcp),           cmocka_unit_test(test_tcp_of_small_segments),
        cmocka_unit_test(test_packets),       cmocka_unit_test(test_packet_headers),
        cmocka_unit_test(test_roce_messages), cmocka_unit_test(test_iwarp),
        cmocka_unit_test(test_limits),        cmocka_unit_test(test_segments_of_a_rail),
        cmocka_unit_test(test_no_limit),      cmocka_unit_test(test_pcie),
        cmocka_unit_test(test_kinds),         cmocka_unit_test(test_narrow_slot),
        cmocka_unit_test(test_tag),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
