/* SPDX-License-Identifier: Apache-2.0 */
/* What the system says of links by which a library's bytes went: see nic_fill_wires() in nic.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/net/framing.h"
#include "core/net/nic.h"
#include "core/net/nic_parts.h"

enum {
    IPV4_TCP = 20 + 20,
    ROCE_HEADERS = 40 + 8 + 12 + 4 + 28 + 4, /* that Linux leaves room for: iboe_get_mtu() */
    RDMA_MTU_MOST = 4096,
    RDMA_MTU_LEAST = 256,
};

static uint32_t roce_mtu(uint32_t interface_mtu)
{
    uint32_t mtu = RDMA_MTU_MOST;

    while (interface_mtu && mtu > RDMA_MTU_LEAST && mtu + ROCE_HEADERS > interface_mtu)
        mtu /= 2;
    return mtu;
}

static uint32_t tcp_payload(uint32_t mtu)
{
    return mtu > IPV4_TCP ? mtu - IPV4_TCP : 0;
}

static void fill_interface(const char *root, const char *name, struct net_rail *r)
{
    *r = (struct net_rail){.kind = "tcp"};
    nic_fill_at(root, r, name);
    r->segment_bytes = tcp_payload(r->mtu_bytes);
}

static void fill_port(const char *root, const char *device, unsigned port, struct net_rail *r)
{
    struct nic_port np;

    nic_read_port(root, device, port, &np);
    *r = (struct net_rail){.node = np.node,
                           .mtu_bytes = np.mtu,
                           .vf = np.vf,
                           .pcie = np.pcie,
                           .line_gbps = np.line_gbps};
    if (!strcmp(np.link_layer, "InfiniBand"))
        r->mtu_bytes = RDMA_MTU_MOST;
    else if (!np.iwarp)
        r->mtu_bytes = roce_mtu(np.mtu);
    else
        r->segment_bytes = tcp_payload(np.mtu);
    snprintf(r->kind, sizeof(r->kind), "%s",
             !strcmp(np.link_layer, "InfiniBand") ? "infiniband"
             : np.iwarp                           ? "iwarp"
                                                  : "roce v2");
    snprintf(r->line_source, sizeof(r->line_source), "%s", np.line_source);
    snprintf(r->address, sizeof(r->address), "%s", np.address);
}

static void fill(const char *root, const char *name, struct net_rail *r)
{
    char device[NIC_NAME];
    unsigned port;

    if (strchr(name, ':') && !nic_parse_port(root, name, device, &port))
        fill_port(root, device, port, r);
    else
        fill_interface(root, name, r);
    snprintf(r->name, sizeof(r->name), "%s", name);
}

/* Functions of one PCI device: "0000:3b:00" of "0000:3b:00.1". */
static bool same_card(const struct net_rail *a, const struct net_rail *b)
{
    char one[sizeof(a->address) + 1], other[sizeof(one)];

    snprintf(one, sizeof(one), "%.*s", (int)sizeof(a->address), a->address);
    snprintf(other, sizeof(other), "%.*s", (int)sizeof(b->address), b->address);
    size_t n = strcspn(one, ".");
    return n && n == strcspn(other, ".") && !strncmp(one, other, n);
}

/* Does the PCIe link that this one shares with others carry what all their lines bring? Where it is not known: yes. */
static bool card_carries(const struct net_rail *rails, unsigned n, unsigned one)
{
    double pcie_gbps = framing_pcie_gbps(&rails[one].pcie), lines = rails[one].line_gbps;
    bool shared = false;

    for (unsigned i = 0; i < n; i++)
        if (i != one && same_card(&rails[i], &rails[one])) {
            lines += rails[i].line_gbps;
            shared = true;
        }
    return !shared || !(pcie_gbps > 0) || lines <= pcie_gbps;
}

/* Interfaces with a tag may stand on one and the same port, and iWARP is on an interface; a port that does RoCE is one whatever tag its
 * packets have. */
static bool is_tagged(const struct net_rail *r)
{
    return r->vlan && strncmp(r->kind, "roce", 4) != 0;
}

int nic_rails_add_up(const struct net_rail *rails, unsigned n, char *why, size_t len)
{
    for (unsigned i = 0; n > 1 && i < n; i++) {
        bool carries = card_carries(rails, n, i);
        if (carries && !rails[i].vf && !is_tagged(&rails[i]))
            continue;
        snprintf(why, len, "%.20s and %u more carried the bytes: %.20s %s", rails[0].name, n - 1,
                 rails[i].name,
                 !carries      ? "shares its card's PCIe link, which carries less than their lines"
                 : rails[i].vf ? "is a virtual function, which may share its port"
                               : "is a VLAN, which may share its port");
        return -ENOTSUP;
    }
    return 0;
}

int nic_fill_wires(const char *root, const char (*names)[NIC_NAME], unsigned n,
                   struct net_rail *rails, char *why, size_t len)
{
    n = n < NET_RAILS_MAX ? n : NET_RAILS_MAX;
    for (unsigned i = 0; i < n; i++)
        fill(root, names[i], &rails[i]);
    return nic_rails_add_up(rails, n, why, len);
}
