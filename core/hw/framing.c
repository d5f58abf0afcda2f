/* SPDX-License-Identifier: Apache-2.0 */
/* From a line's rate to its payload: see nic.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/hw/nic.h"

enum {
    ETHERNET_WIRE = 8 + 14 + 4 + 12,
    ETHERNET_HEADER = 14,
    ETHERNET_LEAST = 46,
    VLAN_TAG = 4,
    IPV4 = 20,
    IPV6 = 40,
    TCP = 20,
    UDP = 8,
    GRH = 40,
    LRH = 8,
    BTH = 12,
    RETH = 16,
    AETH = 4,
    IMMEDIATE = 4,
    ICRC = 4,
    VCRC = 2,
    FPDU_FRAME = 2 + 4,
    DDP_TAGGED = 14,
    DDP_UNTAGGED = 18,
};

static unsigned tcp_headers(const struct framing_tcp *f)
{
    return (f->ipv6 ? IPV6 : IPV4) + TCP + f->options;
}

unsigned framing_tcp_payload(const struct framing_tcp *f)
{
    unsigned fits = f->mtu > tcp_headers(f) ? f->mtu - tcp_headers(f) : 0;

    return f->payload && f->payload < fits ? f->payload : fits;
}

/* Bytes that a packet of so much IP takes of the rate. */
static unsigned tcp_frame(const struct framing_tcp *f, unsigned content)
{
    unsigned tag = f->vlan ? VLAN_TAG : 0;

    if (f->shaped)
        return content + ETHERNET_HEADER + tag;
    /* A tag takes the place of padding (802.3, clause 3.2.8). */
    if (content + tag < ETHERNET_LEAST)
        content = ETHERNET_LEAST - tag;
    return content + ETHERNET_WIRE + tag;
}

double framing_tcp_fraction(const struct framing_tcp *f)
{
    unsigned payload = framing_tcp_payload(f);

    return payload ? (double)payload / tcp_frame(f, payload + tcp_headers(f)) : NAN;
}

unsigned framing_packet_bytes(enum framing_rdma_kind kind)
{
    switch (kind) {
    case FRAMING_ROCE_V1:
        return ETHERNET_WIRE + GRH + BTH + ICRC;
    case FRAMING_ROCE_V2_IPV4:
        return ETHERNET_WIRE + IPV4 + UDP + BTH + ICRC;
    case FRAMING_ROCE_V2_IPV6:
        return ETHERNET_WIRE + IPV6 + UDP + BTH + ICRC;
    case FRAMING_INFINIBAND_GRH:
        return LRH + GRH + BTH + ICRC + VCRC;
    case FRAMING_INFINIBAND:
        break;
    }
    return LRH + BTH + ICRC + VCRC;
}

static uint64_t framing_packets(uint64_t message, unsigned mtu)
{
    return message ? (message + mtu - 1) / mtu : 1;
}

/* What a message has once or twice, not in every packet. */
static unsigned message_headers(enum rdma_verb verb, uint64_t packets)
{
    switch (verb) {
    case RDMA_WRITE:
        return RETH;
    case RDMA_WRITE_IMM:
        return RETH + IMMEDIATE;
    case RDMA_READ:
        return packets > 1 ? 2 * AETH : AETH;
    case RDMA_SEND:
        break;
    }
    return 0;
}

static uint64_t padded(uint64_t bytes)
{
    return (bytes + 3) / 4 * 4;
}

uint64_t framing_message_bytes(enum framing_rdma_kind kind, enum rdma_verb verb, uint64_t message,
                               unsigned mtu, bool vlan)
{
    bool ethernet = kind != FRAMING_INFINIBAND && kind != FRAMING_INFINIBAND_GRH;
    uint64_t packets = framing_packets(message, mtu);
    unsigned each = framing_packet_bytes(kind) + (vlan && ethernet ? VLAN_TAG : 0);

    /* The shortest packet of RDMA fills Ethernet's shortest frame: nothing to pad there. */
    return padded(message) + packets * each + message_headers(verb, packets);
}

double framing_rdma_fraction(enum framing_rdma_kind kind, enum rdma_verb verb, uint64_t message,
                             unsigned mtu, bool vlan)
{
    if (!message || !mtu)
        return NAN;
    return (double)message / (double)framing_message_bytes(kind, verb, message, mtu, vlan);
}

double framing_iwarp_fraction(const struct framing_tcp *f, enum rdma_verb verb, uint64_t message)
{
    unsigned segment = framing_tcp_payload(f) / 4 * 4;
    unsigned header = FPDU_FRAME + (verb == RDMA_SEND ? DDP_UNTAGGED : DDP_TAGGED);
    unsigned payload = segment > header ? segment - header : 0;
    uint64_t whole, rest, stream;

    if (!payload || !message)
        return NAN;
    whole = message / payload;
    rest = message % payload;
    /* Length, headers and payload are padded together, the CRC follows. */
    stream = whole * segment + (rest ? padded(header - 4 + rest) + 4 : 0);
    return (double)message / (double)stream * framing_tcp_fraction(f);
}

/* By generation: line coding, and what a packet adds to its payload. */
static const struct pcie_speed {
    const char *name;
    double gt_s, data, line;
    unsigned each;
} pcie_speeds[] = {
    {"1.1", 2.5, 8, 10, 20},    {"2.0", 5, 8, 10, 20},     {"3.0", 8, 128, 130, 20},
    {"4.0", 16, 128, 130, 20},  {"5.0", 32, 128, 130, 20}, {"6.0", 64, 236, 256, 12},
    {"7.0", 128, 236, 256, 12},
};

static const struct pcie_speed *pcie_speed(double gt_s)
{
    for (size_t i = 0; i < sizeof(pcie_speeds) / sizeof(*pcie_speeds); i++)
        if (fabs(pcie_speeds[i].gt_s - gt_s) < 0.01)
            return &pcie_speeds[i];
    return NULL;
}

double framing_pcie_gbps(const struct nic_pcie *pcie)
{
    const struct pcie_speed *s = pcie_speed(pcie->gt_s);
    double payload = pcie->payload_bytes;

    if (!s || !pcie->width)
        return 0;
    return pcie->width * s->gt_s * s->data / s->line *
           (payload > 0 ? payload / (payload + s->each) : 1);
}

const char *framing_pcie_generation(double gt_s)
{
    const struct pcie_speed *s = pcie_speed(gt_s);

    return s ? s->name : NULL;
}

double framing_pcie_gt_s(int generation)
{
    int n = sizeof(pcie_speeds) / sizeof(*pcie_speeds);

    return generation >= 1 && generation <= n ? pcie_speeds[generation - 1].gt_s : 0;
}

unsigned framing_tcp_header(bool ipv6)
{
    return (ipv6 ? IPV6 : IPV4) + TCP;
}
