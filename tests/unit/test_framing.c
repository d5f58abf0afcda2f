/* SPDX-License-Identifier: Apache-2.0 */
/* Framing: known answers, worked out by hand from the standards that nic.h names. */
#include "core/hw/nic.h"
#include "core/wire/wires.h"
#include "tests/unit/unit.h"

static void near(double have, double want, int line)
{
    if (isnan(want) ? !isnan(have) : !(fabs(have - want) < 1e-9))
        fail_msg("line or case %d: %.12g, not %.12g", line, have, want);
}
#define NEAR(have, want) near(have, want, __LINE__)

/* Payload of a frame: headers, tag, options, 38 bytes about each frame, and padding to the shortest one. */
TEST(test_tcp)
{
    static const struct {
        struct framing_tcp f;
        double want;
    } cases[] = {
        {{.mtu = 1500, .options = 12}, 1448.0 / 1538}, /* the well-known 94.15 % */
        {{.mtu = 1500, .options = 12, .vlan = true}, 1448.0 / 1542},
        {{.mtu = 1500, .options = 12, .vlan = true, .ipv6 = true}, 1428.0 / 1542},
        {{.mtu = 1500}, 1460.0 / 1538},
        {{.mtu = 9000, .options = 12}, 8948.0 / 9038},
        {{.mtu = 1500, .options = 12, .shaped = true}, 1448.0 / 1514},  /* Linux's shapers: 14 */
        {{.mtu = 9000, .options = 12, .payload = 1448}, 1448.0 / 1538}, /* a peer's smaller MSS */
        {{.mtu = 1500, .payload = 1}, 1.0 / 84},
        {{.mtu = 1500, .payload = 1, .vlan = true}, 1.0 / 84}, /* the tag takes padding's place */
        {{.mtu = 41}, 1.0 / 84},
        {{.mtu = 40}, NAN},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        near(framing_tcp_fraction(&cases[i].f), cases[i].want, (int)i);
}

static uint64_t roce(enum rdma_verb verb, uint64_t message, unsigned mtu)
{
    return framing_message_bytes(FRAMING_ROCE_V2_IPV4, verb, message, mtu, false);
}

TEST(test_roce_messages)
{
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

TEST(test_iwarp)
{
    struct framing_tcp f = {.mtu = 1500, .options = 12};

    /* An FPDU fills a segment of 1448: length 2, header 14, payload 1428, CRC 4. */
    NEAR(framing_iwarp_fraction(&f, RDMA_WRITE, 1428 * 1000), 1428.0 / 1538);
    NEAR(framing_iwarp_fraction(&f, RDMA_SEND, 1424 * 1000), 1424.0 / 1538);
    /* One byte: 2 + 14 + 1, padded to 20, and 4: 24 bytes of the stream. */
    NEAR(framing_iwarp_fraction(&f, RDMA_WRITE, 1), 1.0 / 24 * 1448 / 1538);
    NEAR(framing_iwarp_fraction(&f, RDMA_WRITE, 1429), 1429.0 / (1448 + 24) * 1448 / 1538);
    assert_true(isnan(framing_iwarp_fraction(&f, RDMA_WRITE, 0)));
}

/* The well-known 15.75 GB/s of generation 3 x16, and AN 708's 92.8 % of it at 256 bytes. */
TEST(test_pcie)
{
    struct nic_pcie link = {.gt_s = 8, .width = 16};

    NEAR(framing_pcie_gbps(&link), 128 * 128.0 / 130);
    link.payload_bytes = 256;
    NEAR(framing_pcie_gbps(&link), 128 * 128.0 / 130 * 256 / 276);
    NEAR(framing_pcie_gbps(&(struct nic_pcie){2.5, 8, 128}), 20 * 0.8 * 128 / 148);
    NEAR(framing_pcie_gbps(&(struct nic_pcie){5, 4, 0}), 16);
    NEAR(framing_pcie_gbps(&(struct nic_pcie){16, 8, 0}), 128 * 128.0 / 130);
    NEAR(framing_pcie_gbps(&(struct nic_pcie){32, 16, 0}), 512 * 128.0 / 130);
    NEAR(framing_pcie_gbps(&(struct nic_pcie){64, 16, 512}), 1024 * 236.0 / 256 * 512 / 524);
    NEAR(framing_pcie_gbps(&(struct nic_pcie){7, 16, 0}), 0);
    NEAR(framing_pcie_gbps(&(struct nic_pcie){8.05, 16, 0}), 0);
    NEAR(framing_pcie_gbps(&(struct nic_pcie){0}), 0);
    for (int n = 1; n <= 7; n++)
        assert_int_equal(*framing_pcie_generation(framing_pcie_gt_s(n)), '0' + n);
    assert_true(framing_pcie_gt_s(0) == 0 && framing_pcie_gt_s(8) == 0);
}

#define CASES(cases) (sizeof(cases) / sizeof(*(cases)))
#define MIB          1048576

/* The limit of a rail of 100 Gb/s: its line less the framing of what it is, at its own MTU or the point's. */
TEST(test_limits)
{
    static const struct {
        enum nic_protocol protocol;
        unsigned mtu, vlan, ipv6, segment;
        uint64_t message;
        double want; /* of 12.5 GB/s; NAN: no limit */
    } cases[] = {
        {NIC_ROCE_V2, 4096, 0, 0, 0, MIB, MIB / 1069584.},
        {NIC_ROCE_V2, 4096, 0, 1, 0, MIB, MIB / (MIB + 256 * 102 + 16.)},
        {NIC_INFINIBAND, 0, 0, 0, 0, MIB, MIB / (MIB + 512 * 26 + 16.)}, /* the point's MTU */
        {NIC_TCP, 1500, 0, 0, 0, MIB, 1448 / 1538.},
        {NIC_TCP, 1500, 0, 1, 0, MIB, 1428 / 1538.},
        {NIC_TCP, 1500, 0, 1, 1428, MIB, 1428 / 1538.},
        {NIC_IWARP, 1500, 0, 0, 0, 1428, 1428 / 1538.},
        /* four bytes more of each frame with a tag; InfiniBand has none */
        {NIC_TCP, 1500, 1, 0, 0, MIB, 1448 / 1542.},
        {NIC_ROCE_V2, 4096, 1, 0, 0, MIB, MIB / (MIB + 256 * 86 + 16.)},
        {NIC_ROCE_V1, 4096, 1, 0, 0, MIB, MIB / (MIB + 256 * 98 + 16.)},
        {NIC_INFINIBAND, 4096, 1, 0, 0, MIB, MIB / (MIB + 256 * 26 + 16.)},
        {NIC_IWARP, 1500, 1, 0, 0, 1428, 1428 / 1542.},
        {NIC_ROCE_V1, 4096, 0, 0, 0, MIB, MIB / (MIB + 256 * 94 + 16.)},
        {NIC_INFINIBAND, 4096, 0, 0, 0, MIB, MIB / (MIB + 256 * 26 + 16.)},
        {NIC_UNFRAMED, 1500, 0, 0, 0, MIB, NAN},
        {NIC_ROCE_V2, 0, 0, 0, 0, MIB, NAN},
        /* what the kernel says of a segment tells how long the headers are */
        {NIC_TCP, 9000, 0, 0, 8960, MIB, 8960 / 9038.},
        {NIC_TCP, 9000, 0, 0, 8948, MIB, 8948 / 9038.},
        {NIC_TCP, 9000, 0, 0, 1448, MIB, 1448 / 1538.},
    };
    char source[160];

    for (size_t i = 0; i < CASES(cases); i++) {
        bool infiniband = cases[i].protocol == NIC_INFINIBAND;
        struct nic_rail r = {.line_gbps = 100,
                             .protocol = cases[i].protocol,
                             .mtu_bytes = cases[i].mtu,
                             .vlan = cases[i].vlan,
                             .ipv6 = cases[i].ipv6,
                             .segment_bytes = cases[i].segment};
        struct wire_load p = {.message_bytes = cases[i].message, .verb = RDMA_WRITE};
        p.mtu = infiniband || cases[i].protocol == NIC_IWARP ? 2048 : 0;
        strcpy(r.line_source, "sysfs: 100 Gb/s");
        near(wire_limit_gbps(&r, &p, source, sizeof(source)), 12.5 * cases[i].want, (int)i);
        assert_true(isnan(cases[i].want) || strstr(source, "sysfs: 100 Gb/s"));
        assert_true(!r.vlan || infiniband || strstr(source, "VLAN"));
    }
}

/* A card in a slot that is narrower than its line; what is not known bounds nothing, and a slot is no line. */
TEST(test_narrow_slot)
{
    static const struct {
        double line_gbps;
        struct nic_pcie pcie;
        double want;
        const char *text;
    } cases[] = {{200, {.gt_s = 8, .width = 16}, 16 * 128.0 / 130, "PCIe 3.0 x16"},
                 {200, {8, 16, 256}, 16 * 128.0 / 130 * 256 / 276, "payloads of 256"},
                 {200, {16, 16, 256}, 25.0 * MIB / 1069584, "98.0 %"},
                 {200, {.gt_s = 0}, 25.0 * MIB / 1069584, "MTU 4096"},
                 {0, {.gt_s = 8, .width = 1}, NAN, "virtio"}};
    const struct wire_load p = {.message_bytes = MIB, .verb = RDMA_WRITE};
    char source[160];

    for (size_t i = 0; i < CASES(cases); i++) {
        struct nic_rail r = {.protocol = NIC_ROCE_V2, .mtu_bytes = 4096, .pcie = cases[i].pcie};
        r.line_gbps = cases[i].line_gbps;
        strcpy(r.line_source, r.line_gbps > 0 ? "sysfs: 200 Gb/s (eth5)" : "virtio shows none");
        near(wire_limit_gbps(&r, &p, source, sizeof(source)), cases[i].want, (int)i);
        assert_non_null(strstr(source, cases[i].text));
        assert_true(!r.line_gbps || strstr(source, "eth5"));
    }
}

/* The lists of transports, of which conditions of options and headlines are made, and what each says of itself. */
TEST(test_transports)
{
#define WIRE(word, name, is_near)                                                                  \
    assert_ptr_equal(wire_find(name), &wire_##word);                                               \
    assert_int_equal(wire_##word.near, is_near)
#define NEAR_WIRE(word, name, what) WIRE(word, name, true);
#define FAR_WIRE(word, name, what)  WIRE(word, name, false);
    WIRES_NEAR(NEAR_WIRE, NEAR_WIRE)
    WIRES_FAR(FAR_WIRE, FAR_WIRE)
    assert_string_equal(WIRES_NEAR_WORDS, "shm,cma");
    assert_string_equal(WIRES_FAR_WORDS, "tcp,rdma");
}
