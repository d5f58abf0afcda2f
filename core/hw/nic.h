/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the system says of a network interface or RDMA port: /sys/class/net, /sys/class/infiniband.
 * `root`: NULL is this machine, else a recorded tree.
 *
 * /sys must be this network namespace's own, as "ip netns exec" and containers mount it; after a
 * bare unshare(2) it shows another's.
 *
 * The PCIe link is that of the function, of a virtual one its physical function's. Not known where
 * it is made up: of paravirtual devices, and of any that says 2.5 GT/s on one lane, as parts
 * without a link (integrated ones, emulated ones) do.
 *
 * A line's rate is given only where it bounds what can be measured. A made-up or nominal one
 * (vmxnet3, veth, tun, soft-RoCE's 2.5 Gb/s) counts as not known, and line_source says so.
 */
#ifndef PLUMB_CORE_HW_NIC_H
#define PLUMB_CORE_HW_NIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "core/hw/sys.h"

#define NIC_NAME   64
#define NIC_SOURCE 160

#define NIC_RAILS_MAX 8 /* NICs used at once by one end */

enum rdma_verb { RDMA_WRITE, RDMA_WRITE_IMM, RDMA_READ, RDMA_SEND };

/* How bytes are framed on a rail's line: from it follows what its payload can be. NIC_MEMORY: there is
 * no line, CPUs of this machine copy. */
enum nic_protocol {
    NIC_UNFRAMED, /* it has none of these: no limit is known */
    NIC_MEMORY,
    NIC_TCP,
    NIC_INFINIBAND,
    NIC_ROCE_V1,
    NIC_ROCE_V2,
    NIC_IWARP,
    NIC_PROTOCOLS
};

static inline const char *nic_protocol_name(enum nic_protocol p)
{
    static const char *const names[NIC_PROTOCOLS] = {"no protocol", "memory",  "TCP",  "InfiniBand",
                                                     "RoCE v1",     "RoCE v2", "iWARP"};

    return names[p];
}

/* The link of a PCI function, as it is; width 0: there is none, or it is not known. */
struct nic_pcie {
    double gt_s; /* of a lane */
    uint32_t width;
    uint32_t payload_bytes; /* of a packet at most; 0: not known */
};

/* What carries the bytes of one rail at this end. Filled in by the transport in open() (name, and
 * what it knows); the engine adds what the system says. */
struct nic_rail {
    char name[64]; /* of the interface or RDMA device and port: "eth0", "mlx5_0:1", "lo"; "shm" */
    uint8_t protocol;       /* enum nic_protocol */
    char text[160];         /* for people: "GID 3 (RoCE v2, IPv4), MTU 4096"; "cubic, MSS 1448" */
    int node;               /* NUMA node of the device; -1: none or not known */
    uint32_t mtu_bytes;     /* TCP, iWARP: of the interface; RDMA: of the path */
    uint32_t segment_bytes; /* TCP: payload of a full segment (MSS less options); else 0 */
    uint8_t ipv6;           /* TCP, RoCE v2: over IPv6 */
    uint8_t simulated;      /* the GPU that buffers are on is a stand-in */
    uint8_t vf;             /* a virtual function, which may share its port */
    char address[24];       /* of the PCI function; "": none, or not known */
    uint8_t vlan;           /* its frames have a VLAN tag */
    uint16_t gid;           /* of RoCE: the index of the GID in use, and 1; 0: none */
    struct nic_pcie pcie;   /* of its function */
    double line_gbps;       /* the line's rate, Gb/s; 0: not known */
    char line_source[160];  /* where that is from, or why it is not known */
};

struct nic {
    char name[NIC_NAME];
    char kind[24];    /* ethernet, infiniband, wifi, loopback, veth, bond, bridge, vlan, tun, ... */
    char driver[64];  /* "" for software */
    char address[24]; /* of the PCI function; "" */
    int node;         /* NUMA; -1: none or not told */
    uint32_t mtu;
    bool vf;                      /* a virtual function of SR-IOV, seen from the host */
    bool vlan;                    /* its frames have a VLAN tag on the line */
    unsigned vfs;                 /* virtual functions that this one has given out */
    struct nic_pcie pcie;         /* of its function, or of the one that it stands on */
    double line_gbps;             /* Gb/s, one direction; 0: not known */
    char line_source[NIC_SOURCE]; /* "sysfs: 100 Gb/s", or why it is not known */
};

/* 0 or -ENODEV. */
int nic_read(const char *root, const char *interface, struct nic *nic);

struct nic_port {
    char device[NIC_NAME];
    unsigned port;
    char driver[64];  /* "mlx5_core", "vmw_pvrdma", "efa", "rxe", "siw"; "" not told */
    char address[24]; /* of the PCI function; "" in software */
    /* that it goes with (RoCE, iWARP, IPoIB); "" none or in another namespace */
    char interface[NIC_NAME];
    char link_layer[24]; /* "Ethernet", "InfiniBand", "Unspecified" */
    bool up;             /* ACTIVE */
    bool software, iwarp, vf;
    bool vlan;    /* of its interface; RoCE's GIDs may each be of another one: nic_has_tag() */
    uint32_t mtu; /* of its interface; 0: not known, or InfiniBand, where IPoIB's says nothing */
    int node;
    struct nic_pcie pcie; /* in software: of its interface */
    double line_gbps;
    char line_source[NIC_SOURCE];
};

/* All ports that the system shows, "mlx5_0:1", in order. */
struct names nic_ports(const char *root);

/* 0 or -ENODEV. */
int nic_read_port(const char *root, const char *device, unsigned port, struct nic_port *np);

/* "mlx5_0:1" or "mlx5_0" (port 1) of a port that is there; -EINVAL or -ENODEV. */
int nic_parse_port(const char *root, const char *name, char device[NIC_NAME], unsigned *port);

/* RDMA data of this driver surely does not show in the counters of the port's interface, so that
 * what that one counts went by sockets. With other drivers nobody knows. */
bool nic_counts_apart(const char *driver);

/* What is to be known of the rate that a driver gives; NULL: it is the line's. `hidden`: it gives
 * none. */
const char *nic_rate_note(const char *driver, bool hidden);

/* Do frames that leave by this interface have a VLAN tag on the line? It is a VLAN, or has nothing
 * else below it. */
bool nic_has_tag(const char *root, const char *interface);

/* Puts node, mtu, vlan, address, vf, pcie, line_gbps and line_source into a rail, and its name
 * where it has none. 0 or -ENODEV: then line_source says that it is not there. */
int nic_fill(const char *root, struct nic_rail *r, const char *interface);
/* Puts address, vf, pcie, line_gbps and line_source into the rail of an RDMA port, which its name
 * says ("mlx5_0:1"), and of iWARP its interface's mtu and vlan: of others these are the path's and
 * the GID's, and the transport's to say. `within`: the other end is on this machine, where what is
 * in software takes no line. 0 or -ENODEV, as above. */
int nic_fill_rdma(const char *root, struct nic_rail *r, bool within);

/*
 * Rails of devices that a library's bytes took, by name ("eth0", "mlx5_0:1"): of an interface TCP
 * over IPv4 without options at its MTU, of an RDMA port the largest path MTU that it can have. What
 * is not known of a library is the least that can be, so that limits err upwards. -ENOTSUP with
 * `why`: their rates do not add up, as they may share a card's PCIe link or, virtual functions and
 * VLANs, a port.
 */
int nic_fill_wires(const char *root, const char (*names)[NIC_NAME], unsigned n,
                   struct nic_rail *rails, char *why, size_t len);
/* May the rates of different links of one machine be added? 0, or -ENOTSUP with `why`, as above.
 * Their texts need not end. */
int nic_rails_add_up(const struct nic_rail *rails, unsigned n, char *why, size_t len);

/* The largest payload of a packet of RoCE that the kernel takes from the interface's MTU: the largest
 * power of two, 4096 at most, that fits beside 96 bytes of headers (include/rdma/ib_addr.h,
 * iboe_get_mtu()). 0: not even 256. */
uint32_t nic_roce_mtu(uint32_t interface_mtu);

/* How far an RDMA device ("mlx5_0:1") is from another PCI device ("0000:3b:00.0"), in the words of
 * "nvidia-smi topo -m": "PIX" one switch, "PXB" several, "PHB" one host bridge, "NODE" one NUMA
 * node, "SYS" several; "" where the system does not say. */
const char *nic_way(const char *root, const char *name, const char *address);

/* The interface of this namespace that has this address. 0, -ENODEV: none has it; -errno. */
int nic_of_address(const struct sockaddr *address, char *name, size_t len);
/* Has this interface no carrier, or was it taken down? 1; 0: it has; -ENODEV: there is none of that
 * name; -errno. */
int nic_is_down(const char *name);
/* What this end is reached by, at this address of its own: is it down, or gone? With a clause of
 * its own for that: "its interface 'eth0' is down". */
bool nic_is_cut(const struct sockaddr *own, char *why, size_t len);
/* The interface that packets from `local` to `peer` leave by, as the kernel routes them: "lo" where
 * the peer's address is this machine's own, whatever interface it belongs to. local: NULL where it
 * is not bound. */
int nic_of_route(const struct sockaddr *local, const struct sockaddr *peer, char *name, size_t len);

/* Of an interface's folder below /sys/devices, links followed: is it one in software? */
static inline bool nic_is_virtual(const char *folder)
{
    return strstr(folder, "/virtual/net/") != NULL;
}
/* Its kind, as in struct nic. "" and -errno where its type could not be read; "" and 0 where it is in
 * software and what would tell which kind could not. */
int nic_kind(const char *root, const char *folder, char *kind, size_t len);
/* The rate in its file "speed"; 0: the link is down, or the driver does not know. */
double nic_speed_gbps(const char *root, const char *folder);
/* ethtool's ioctl; fd: any socket. 0, or -1 where the driver has no answer. */
int nic_ask_driver(int fd, const char *name, void *answer);

/* The link of the PCI function at that folder ("": none), of this driver. */
struct nic_pcie nic_pcie(const char *root, const char *folder, const char *driver);

/*
 * What a line's rate leaves to the payload: exact framing, from the standards. All functions are
 * pure.
 *
 * Ethernet (IEEE 802.3, clauses 3 and 4): a frame takes on the wire
 *
 *   preamble and delimiter 8 + header 14 [+ 802.1Q tag 4] + content, at least 46 + checksum 4 +
 *     gap 12  = content + 38
 *
 * TCP (RFC 791, 8200, 9293, 7323): content = IPv4 20 or IPv6 40 + TCP 20 + options (12 with
 * timestamps, Linux's default) + payload.
 *
 * RDMA of `message` bytes at path MTU `mtu` (InfiniBand Architecture Specification, volume 1,
 * chapters 5, 7 and 9; annexes A16, A17):
 *
 *   packets = max(1, ceil(message / mtu)), each with
 *     RoCE v1      Ethernet 38 + GRH 40 + BTH 12 + ICRC 4                 = 94
 *     RoCE v2      Ethernet 38 + IPv4 20 (IPv6 40) + UDP 8 + BTH 12 + ICRC 4 = 82 (102)
 *     InfiniBand   LRH 8 [+ GRH 40] + BTH 12 + ICRC 4 + VCRC 2            = 26 (66)
 *   and in a message: padding to 4 bytes; a write's RETH 16 in its first packet; immediate data 4
 *     in the last;
 *     a read's answer AETH 4 in its first and in its last packet (once where that is the same one)
 *
 * iWARP (RFC 5040, 5041, 5044; no markers, as all implementations in use choose): over TCP, one
 * FPDU a segment,
 *
 *   FPDU = length 2 + DDP and RDMAP header (14 tagged: writes and reads; 18 untagged: sends) +
 *     payload + padding to 4 + CRC 4
 *
 * Left out, as they cannot be known or take the other direction, so that a limit errs upwards:
 * acknowledgements of the other direction's data, the requests of reads, congestion notification,
 * credits, pause frames, FEC (data rates are after it).
 */

struct framing_tcp {
    unsigned mtu;     /* of the interface: IP packets */
    unsigned options; /* bytes of TCP options in each segment */
    unsigned payload; /* of a full segment, where it is less than fits the MTU; 0: what fits */
    bool ipv6, vlan;
    /* against a rate that Linux counts (tbf, htb): headers and content, no preamble, checksum
     * and gap */
    bool shaped;
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
/* The line's bytes for all of a message. message and mtu > 0. */
uint64_t framing_message_bytes(enum framing_rdma_kind kind, enum rdma_verb verb, uint64_t message,
                               unsigned mtu, bool vlan);
/* Payload's part of the line's bytes, 0 to 1; NaN without message or MTU. */
double framing_rdma_fraction(enum framing_rdma_kind kind, enum rdma_verb verb, uint64_t message,
                             unsigned mtu, bool vlan);

/* The same of iWARP over the TCP that `f` describes: of a stream of such messages, FPDUs packed
 * densely. */
double framing_iwarp_fraction(const struct framing_tcp *f, enum rdma_verb verb, uint64_t message);

/*
 * PCI Express, payload in one direction, Gb/s (PCI Express Base Specification 1.1 to 7.0; Intel AN
 * 708, "Understanding PCI Express Throughput"):
 *
 *   width x GT/s x 8/10 (up to 5 GT/s), 128/130 (up to 32) or 236/256 (flits)  x  payload /
 *     (payload + 20)
 *
 * 20: the shortest header 12, framing, sequence number and link CRC 8 (none in flits). Payload 0,
 * not known: none taken off. What the card's descriptors and the packets' own headers take is not
 * either. 0 where there is no link, or of a speed that is not known.
 */
double framing_pcie_gbps(const struct nic_pcie *pcie);

/* "4.0" of 16 GT/s; NULL: no speed of PCI Express. */
const char *framing_pcie_generation(double gt_s);
/* 16 of generation 4; 0: there is no such. */
double framing_pcie_gt_s(int generation);

#endif
