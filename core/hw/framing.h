/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a line's rate leaves to the payload: exact framing, from the standards. All functions are pure.
 *
 * Ethernet (IEEE 802.3, clauses 3 and 4): a frame takes on the wire
 *
 *   preamble and delimiter 8 + header 14 [+ 802.1Q tag 4] + content, at least 46 + checksum 4 + gap 12  = content + 38
 *
 * TCP (RFC 791, 8200, 9293, 7323): content = IPv4 20 or IPv6 40 + TCP 20 + options (12 with timestamps, Linux's default) + payload.
 *
 * RDMA of `message` bytes at path MTU `mtu` (InfiniBand Architecture Specification, volume 1, chapters 5, 7 and 9; annexes A16, A17):
 *
 *   packets = max(1, ceil(message / mtu)), each with
 *     RoCE v1      Ethernet 38 + GRH 40 + BTH 12 + ICRC 4                 = 94
 *     RoCE v2      Ethernet 38 + IPv4 20 (IPv6 40) + UDP 8 + BTH 12 + ICRC 4 = 82 (102)
 *     InfiniBand   LRH 8 [+ GRH 40] + BTH 12 + ICRC 4 + VCRC 2            = 26 (66)
 *   and in a message: padding to 4 bytes; a write's RETH 16 in its first packet; immediate data 4 in the last;
 *     a read's answer AETH 4 in its first and in its last packet (once where that is the same one)
 *
 * iWARP (RFC 5040, 5041, 5044; no markers, as all implementations in use choose): over TCP, one FPDU a segment,
 *
 *   FPDU = length 2 + DDP and RDMAP header (14 tagged: writes and reads; 18 untagged: sends) + payload + padding to 4 + CRC 4
 *
 * Left out, as they cannot be known or take the other direction, so that a limit errs upwards: acknowledgements of the other direction's data,
 * the requests of reads, congestion notification, credits, pause frames, FEC (data rates are after it).
 */
#ifndef PLUMB_CORE_HW_FRAMING_H
#define PLUMB_CORE_HW_FRAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/hw/nic.h"

struct framing_tcp {
    unsigned mtu;     /* of the interface: IP packets */
    unsigned options; /* bytes of TCP options in each segment */
    unsigned payload; /* of a full segment, where it is less than fits the MTU; 0: what fits */
    bool ipv6, vlan;
    bool
        shaped; /* against a rate that Linux counts (tbf, htb): headers and content, no preamble, checksum and gap */
};

#define FRAMING_TCP_TIMESTAMPS 12 /* bytes of the options that Linux sends */

/* Of the IP and TCP headers without options. */
unsigned framing_tcp_header(bool ipv6);
unsigned framing_tcp_payload(const struct framing_tcp *f); /* of a segment; 0: the MTU holds none */
/* Payload's part of the line's bytes, 0 to 1, in full segments; NaN where the MTU holds no
 * payload. */
double framing_tcp_fraction(const struct framing_tcp *f);

enum framing_rdma_kind {
    FRAMING_ROCE_V1,
    FRAMING_ROCE_V2_IPV4,
    FRAMING_ROCE_V2_IPV6,
    FRAMING_INFINIBAND,
    FRAMING_INFINIBAND_GRH, /* to another subnet */
};

/* What each packet takes beside its payload. */
unsigned framing_packet_bytes(enum framing_rdma_kind kind);
/* Packets of a message, and the line's bytes for all of it. message and mtu > 0. */
uint64_t framing_packets(uint64_t message, unsigned mtu);
uint64_t framing_message_bytes(enum framing_rdma_kind kind, enum net_verb verb, uint64_t message,
                               unsigned mtu, bool vlan);
/* Payload's part of the line's bytes, 0 to 1; NaN without message or MTU. */
double framing_rdma_fraction(enum framing_rdma_kind kind, enum net_verb verb, uint64_t message,
                             unsigned mtu, bool vlan);

/* The same of iWARP over the TCP that `f` describes: of a stream of such messages, FPDUs packed
 * densely. */
double framing_iwarp_fraction(const struct framing_tcp *f, enum net_verb verb, uint64_t message);

/*
 * PCI Express, payload in one direction, Gb/s (PCI Express Base Specification 1.1 to 6.0; Intel AN 708, "Understanding PCI Express
 * Throughput"; the same as limits_pcie() of harness/limits):
 *
 *   width x GT/s x 8/10 (up to 5 GT/s), 128/130 (up to 32) or 236/256 (64, flits)  x  payload / (payload + 20)
 *
 * 20: the shortest header 12, framing, sequence number and link CRC 8 (none in flits). Payload 0, not known: none taken off. What the
 * card's descriptors and the packets' own headers take is not either. 0 where there is no link, or of a speed that is not known.
 */
double framing_pcie_gbps(const struct net_pcie *pcie);

/* "4.0" of 16 GT/s; NULL: no speed of PCI Express. */
const char *framing_pcie_generation(double gt_s);

#endif
