/* SPDX-License-Identifier: Apache-2.0 */
/* What the system says of links by which a library's bytes went: see nic_fill_wires() in nic.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/net/framing.h"
#include "core/net/nic.h"

enum {
    IPV4_TCP = 20 + 20,
    ROCE_HEADERS = 40 + 8 + 12 + 4 + 28 + 4, /* that Linux leaves room for: iboe_get_mtu() */
    RDMA_MTU_MOST = 4096,
    RDMA_MTU_LEAST = 256,
};

/* What both kinds of device have. */
struct wire_facts {
    char address[24];
    bool vf;
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

static void fill_interface(const char *root, const char *name, struct net_rail *r,
                           struct wire_facts *facts)
{
    struct nic nic;

    nic_read(root, name, &nic);
    *r = (struct net_rail){.kind = "tcp",
                           .node = nic.node,
                           .mtu_bytes = nic.mtu,
                           .segment_bytes = tcp_payload(nic.mtu),
                           .pcie = nic.pcie,
                           .line_gbps = nic.line_gbps};
    snprintf(r->line_source, sizeof(r->line_source), "%s", nic.line_source);
    memcpy(facts->address, nic.address, sizeof(facts->address));
    facts->vf = nic.vf;
}

static void fill_port(const char *root, const char *device, unsigned port, struct net_rail *r,
                      struct wire_facts *facts)
{
    struct nic_port np;
    struct nic nic = {0};

    nic_read_port(root, device, port, &np);
    if (np.interface[0])
        nic_read(root, np.interface, &nic);
    *r = (struct net_rail){
        .node = np.node, .mtu_bytes = nic.mtu, .pcie = np.pcie, .line_gbps = np.line_gbps};
    if (!strcmp(np.link_layer, "InfiniBand"))
        r->mtu_bytes = RDMA_MTU_MOST; /* IPoIB's says nothing of it */
    else if (!np.iwarp)
        r->mtu_bytes = roce_mtu(nic.mtu);
    else
        r->segment_bytes = tcp_payload(nic.mtu);
    snprintf(r->kind, sizeof(r->kind), "%s",
             !strcmp(np.link_layer, "InfiniBand") ? "infiniband"
             : np.iwarp                           ? "iwarp"
                                                  : "roce v2");
    snprintf(r->line_source, sizeof(r->line_source), "%s", np.line_source);
    memcpy(facts->address, np.address, sizeof(facts->address));
    facts->vf = np.vf;
}

static void fill(const char *root, const char *name, struct net_rail *r, struct wire_facts *facts)
{
    char device[NIC_NAME];
    unsigned port;

    if (strchr(name, ':') && !nic_parse_port(root, name, device, &port))
        fill_port(root, device, port, r, facts);
    else
        fill_interface(root, name, r, facts);
    snprintf(r->name, sizeof(r->name), "%s", name);
}

/* Functions of one PCI device: "0000:3b:00" of "0000:3b:00.1". */
static bool same_card(const struct wire_facts *a, const struct wire_facts *b)
{
    size_t n = strcspn(a->address, ".");

    return n && n == strcspn(b->address, ".") && !strncmp(a->address, b->address, n);
}

/* Does the PCIe link that this one shares with others carry what all their lines bring? Where it is not known: yes. */
static bool card_carries(const struct net_rail *rails, const struct wire_facts *facts, unsigned n,
                         unsigned one)
{
    double pcie_gbps = framing_pcie_gbps(&rails[one].pcie), lines = rails[one].line_gbps;
    bool shared = false;

    for (unsigned i = 0; i < n; i++)
        if (i != one && same_card(&facts[i], &facts[one])) {
            lines += rails[i].line_gbps;
            shared = true;
        }
    return !shared || !(pcie_gbps > 0) || lines <= pcie_gbps;
}

int nic_fill_wires(const char *root, const char (*names)[NIC_NAME], unsigned n,
                   struct net_rail *rails, char *why, size_t len)
{
    struct wire_facts facts[NET_RAILS_MAX] = {0};

    for (unsigned i = 0; i < n && i < NET_RAILS_MAX; i++)
        fill(root, names[i], &rails[i], &facts[i]);
    for (unsigned i = 0; n > 1 && i < n && i < NET_RAILS_MAX; i++) {
        bool carries = card_carries(rails, facts, n, i);
        if (carries && !facts[i].vf)
            continue;
        snprintf(why, len, "%.20s and %u more carried the bytes: %.20s %s", names[0], n - 1,
                 names[i],
                 carries ? "is a virtual function, which may share its port"
                         : "shares its card's PCIe link, which carries less than their lines");
        return -ENOTSUP;
    }
    return 0;
}
