/* SPDX-License-Identifier: Apache-2.0 */
/* RDMA ports, and the lines of rails: see nic.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hw/nic.h"
#include "core/hw/pci.h"

/* ---- What the system says of links by which a library's bytes went: see nic_fill_wires() in
 * nic.h. ---- */

enum {
    ROCE_HEADERS = 40 + 8 + 12 + 4 + 28 + 4, /* that Linux leaves room for: iboe_get_mtu() */
    RDMA_MTU_MOST = 4096,
    RDMA_MTU_LEAST = 256,
};

uint32_t nic_roce_mtu(uint32_t interface_mtu)
{
    uint32_t mtu = RDMA_MTU_MOST;

    while (mtu > RDMA_MTU_LEAST && mtu + ROCE_HEADERS > interface_mtu)
        mtu /= 2;
    return mtu + ROCE_HEADERS > interface_mtu ? 0 : mtu;
}

/* Of a full segment over IPv4 without options. */
static uint32_t tcp_payload(uint32_t mtu)
{
    return framing_tcp_payload(&(struct framing_tcp){.mtu = mtu});
}

static void fill_port(const char *root, const char *device, unsigned port, struct nic_rail *r)
{
    struct nic_port np;

    nic_read_port(root, device, port, &np);
    *r = (struct nic_rail){.node = np.node,
                           .mtu_bytes = np.mtu,
                           .vf = np.vf,
                           .pcie = np.pcie,
                           .line_gbps = np.line_gbps};
    if (!strcmp(np.link_layer, "InfiniBand")) {
        r->protocol = NIC_INFINIBAND;
        r->mtu_bytes = RDMA_MTU_MOST;
    } else if (!np.iwarp) {
        r->protocol = NIC_ROCE_V2;
        r->mtu_bytes = np.mtu ? nic_roce_mtu(np.mtu) : RDMA_MTU_MOST;
    } else {
        r->protocol = NIC_IWARP;
        r->segment_bytes = tcp_payload(np.mtu);
    }
    snprintf(r->line_source, sizeof(r->line_source), "%s", np.line_source);
    snprintf(r->address, sizeof(r->address), "%s", np.address);
}

static void fill(const char *root, const char *name, struct nic_rail *r)
{
    char device[NIC_NAME];
    unsigned port;

    if (strchr(name, ':') && !nic_parse_port(root, name, device, &port)) {
        fill_port(root, device, port, r);
    } else {
        *r = (struct nic_rail){.protocol = NIC_TCP};
        nic_fill(root, r, name);
        r->segment_bytes = tcp_payload(r->mtu_bytes);
    }
    snprintf(r->name, sizeof(r->name), "%s", name);
}

/* Functions of one PCI device: "0000:3b:00" of "0000:3b:00.1". */
static bool same_adapter(const struct nic_rail *a, const struct nic_rail *b)
{
    char one[sizeof(a->address) + 1], other[sizeof(one)];

    snprintf(one, sizeof(one), "%.*s", (int)sizeof(a->address), a->address);
    snprintf(other, sizeof(other), "%.*s", (int)sizeof(b->address), b->address);
    size_t n = strcspn(one, ".");
    return n && n == strcspn(other, ".") && !strncmp(one, other, n);
}

/* Does the PCIe link that this one shares with others carry what all their lines bring? Where it is
 * not known: yes. */
static bool adapter_carries(const struct nic_rail *rails, unsigned n, unsigned one)
{
    double pcie_gbps = framing_pcie_gbps(&rails[one].pcie), lines = rails[one].line_gbps;
    bool shared = false;

    for (unsigned i = 0; i < n; i++)
        if (i != one && same_adapter(&rails[i], &rails[one])) {
            lines += rails[i].line_gbps;
            shared = true;
        }
    return !shared || !(pcie_gbps > 0) || lines <= pcie_gbps;
}

int nic_rails_add_up(const struct nic_rail *rails, unsigned n, char *why, size_t len)
{
    for (unsigned i = 0; n > 1 && i < n; i++) {
        bool carries = adapter_carries(rails, n, i);
        /* Interfaces with a tag may stand on one and the same port, and iWARP is on an interface; a
         * port that does RoCE is one whatever tag its packets have. */
        bool tagged =
            rails[i].vlan && rails[i].protocol != NIC_ROCE_V1 && rails[i].protocol != NIC_ROCE_V2;

        if (carries && !rails[i].vf && !tagged)
            continue;
        snprintf(why, len, "%.20s and %u more carried the bytes: %.20s %s", rails[0].name, n - 1,
                 rails[i].name,
                 !carries ? "shares its adapter's PCIe link, which carries less than their lines"
                 : rails[i].vf ? "is a virtual function, which may share its port"
                               : "is a VLAN, which may share its port");
        return -ENOTSUP;
    }
    return 0;
}

int nic_fill_wires(const char *root, const char (*names)[NIC_NAME], unsigned n,
                   struct nic_rail *rails, char *why, size_t len)
{
    n = n < NIC_RAILS_MAX ? n : NIC_RAILS_MAX;
    for (unsigned i = 0; i < n; i++)
        fill(root, names[i], &rails[i]);
    return nic_rails_add_up(rails, n, why, len);
}

/* ---- What the system says of an RDMA port ---- */

enum { GIDS_MAX = 256 };

bool nic_counts_apart(const char *driver)
{
    static const char *const known[] = {"mlx5_core", "mlx4_core", "ib_mthca",  "hfi1",
                                        "ib_qib",    "efa",       "vmw_pvrdma"};

    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (!strcmp(driver, known[i]))
            return true;
    return false;
}

/* Software devices may hang below the PCI function of their interface, so they are told by their
 * own marks: rxe names its interface in "parent"; siw describes itself. */
static void set_driver(const char *root, struct nic_port *np, const char *folder)
{
    char text[128] = "";

    sys_line(root, text, sizeof(text), "sys/class/infiniband/%s/node_type", np->device);
    np->iwarp = strstr(text, "RNIC") != NULL;
    text[0] = '\0';
    sys_line(root, text, sizeof(text), "sys/class/infiniband/%s/node_desc", np->device);
    if (sys_exists(root, "sys/class/infiniband/%s/parent", np->device) || !strcmp(text, "rxe"))
        snprintf(np->driver, sizeof(np->driver), "rxe");
    else if (!strncmp(text, "Software iWARP", 14) || (!folder[0] && np->iwarp))
        snprintf(np->driver, sizeof(np->driver), "siw");
    else if (folder[0])
        sys_link(root, np->driver, sizeof(np->driver), "%s/driver", folder);
    np->software = !strcmp(np->driver, "rxe") || !strcmp(np->driver, "siw") || !folder[0];
}

/* By its GIDs: the first one that is the function's own, not a VLAN's; else the first one. */
static bool gid_interface(const char *root, struct nic_port *np, const char *folder)
{
    char name[NIC_NAME];
    int rc = 0;

    for (unsigned i = 0; i < GIDS_MAX && rc != -ENOENT; i++) {
        rc = sys_line(root, name, sizeof(name),
                      "sys/class/infiniband/%s/ports/%u/gid_attrs/ndevs/%u", np->device, np->port,
                      i);
        if (rc)
            continue;
        if (!np->interface[0])
            snprintf(np->interface, sizeof(np->interface), "%s", name);
        if (folder[0] && sys_exists(root, "%s/net/%s", folder, name)) {
            snprintf(np->interface, sizeof(np->interface), "%s", name);
            break;
        }
    }
    return np->interface[0];
}

/* rxe says it, RoCE's GIDs do; else (IPoIB, a port without addresses) the first interface of the same
 * PCI function: of one with several ports each interface says which one it is on. */
static void set_interface(const char *root, struct nic_port *np, const char *folder)
{
    struct names names;
    long long port;

    if (!sys_line(root, np->interface, sizeof(np->interface), "sys/class/infiniband/%s/parent",
                  np->device))
        return;
    np->interface[0] = '\0';
    if (gid_interface(root, np, folder) || !folder[0])
        return;
    sys_list(root, &names, "%s/net", folder);
    for (size_t i = 0; i < names.count && !np->interface[0]; i++)
        if (sys_number(root, &port, "%s/net/%s/dev_port", folder, names.name[i]) ||
            port == (long long)np->port - 1)
            snprintf(np->interface, sizeof(np->interface), "%s", names.name[i]);
    names_free(&names);
}

/* Data rate of a lane after line coding, Gb/s; the file gives the signalling rate up to FDR.
 * Source: InfiniBand Architecture Specification, volume 2. */
static double lane_gbps(const char *speed)
{
    static const struct {
        const char *name;
        double gbps;
    } speeds[] = {{"SDR", 2},  {"DDR", 4},  {"QDR", 8},   {"FDR10", 10}, {"FDR", 14.0625 * 64 / 66},
                  {"EDR", 25}, {"HDR", 50}, {"NDR", 100}, {"XDR", 200}};

    for (size_t i = 0; i < sizeof(speeds) / sizeof(*speeds); i++)
        if (!strcmp(speed, speeds[i].name))
            return speeds[i].gbps;
    return 0;
}

/* "100 Gb/sec (4X EDR)": the figure and, for InfiniBand, its data rate. 0 where it is none. */
static double port_rate(const char *root, const struct nic_port *np, char text[64])
{
    char speed[16] = "";
    unsigned lanes = 0;
    double gbps;
    const char *open;

    if (sys_line(root, text, 64, "sys/class/infiniband/%s/ports/%u/rate", np->device, np->port))
        return 0;
    gbps = atof(text);
    open = strchr(text, '(');
    if (!strcmp(np->link_layer, "InfiniBand") && open &&
        sscanf(open, "(%uX %15[A-Z0-9]", &lanes, speed) == 2 && lane_gbps(speed) > 0)
        gbps = lanes * lane_gbps(speed);
    return gbps > 0 ? gbps : 0;
}

static void set_line(const char *root, struct nic_port *np)
{
    char text[64] = "";
    double gbps = port_rate(root, np, text);
    bool infiniband = !strcmp(np->link_layer, "InfiniBand");
    const char *made_up = nic_rate_note(np->driver, false);
    struct nic nic = {0};
    bool beside = !infiniband && np->interface[0] && !nic_read(root, np->interface, &nic);

    np->mtu = nic.mtu;
    np->vlan = nic.vlan;
    /* On Ethernet the port's rate is often only the interface's, rounded to one that InfiniBand
     * has. */
    if (beside && (nic.line_gbps > 0 || np->software)) {
        if (np->software)
            np->pcie = nic.pcie;
        np->line_gbps = nic.line_gbps;
        snprintf(np->line_source, sizeof(np->line_source), "%.130s%s%.20s%s", nic.line_source,
                 nic.line_gbps > 0 ? " (" : "", nic.line_gbps > 0 ? nic.name : "",
                 nic.line_gbps > 0 ? ")" : "");
        return;
    }
    np->line_gbps = gbps;
    if (!(gbps > 0))
        snprintf(np->line_source, sizeof(np->line_source), "%.40s:%u: its rate is unknown",
                 np->device, np->port);
    else if (made_up)
        snprintf(np->line_source, sizeof(np->line_source), "%.40s:%u says %.30s, %.60s", np->device,
                 np->port, text, made_up);
    else if (!infiniband && gbps <= 2.5)
        snprintf(np->line_source, sizeof(np->line_source),
                 "%.40s:%u says %.30s, made up: what %.20s gives where it does not know",
                 np->device, np->port, text, np->driver[0] ? np->driver : "a driver");
    else if (!strcmp(np->driver, "efa") && gbps == 100)
        snprintf(np->line_source, sizeof(np->line_source),
                 "%.40s:%u says %s, as EFA's older drivers do whatever the adapter", np->device,
                 np->port, text);
    else {
        snprintf(np->line_source, sizeof(np->line_source), "sysfs: %.4g Gb/s of %s%s", gbps, text,
                 np->vf ? ", the port that a virtual function shares" : "");
        return;
    }
    np->line_gbps = 0;
}

int nic_read_port(const char *root, const char *device, unsigned port, struct nic_port *np)
{
    char path[SYS_PATH], folder[SYS_PATH] = "", state[32];

    *np = (struct nic_port){.port = port, .node = -1};
    snprintf(np->device, sizeof(np->device), "%s", device);
    if (!device[0] || strchr(device, '/') ||
        !sys_exists(root, "sys/class/infiniband/%s/ports/%u", device, port)) {
        snprintf(np->line_source, sizeof(np->line_source), "there is no RDMA port '%.40s:%u'",
                 device, port);
        return -ENODEV;
    }
    if (!sys_resolve(root, path, sizeof(path), "sys/class/infiniband/%s", device))
        snprintf(folder, sizeof(folder), "%.*s",
                 (int)pci_function_of(path, strlen(path), np->address), path);
    sys_line(root, np->link_layer, sizeof(np->link_layer),
             "sys/class/infiniband/%s/ports/%u/link_layer", device, port);
    if (!sys_line(root, state, sizeof(state), "sys/class/infiniband/%s/ports/%u/state", device,
                  port))
        np->up = !strncmp(state, "4:", 2); /* IBV_PORT_ACTIVE */
    set_driver(root, np, folder);
    set_interface(root, np, folder);
    np->node = pci_node(root, folder);
    np->vf = pci_is_virtual(root, folder);
    if (np->software)
        np->address[0] = '\0';
    else
        np->pcie = nic_pcie(root, folder, np->driver);
    set_line(root, np);
    return 0;
}

struct names nic_ports(const char *root)
{
    struct names devices, numbers, ports = {0};
    char name[2 * NIC_NAME];

    sys_list(root, &devices, "sys/class/infiniband");
    for (size_t i = 0; i < devices.count; i++) {
        sys_list(root, &numbers, "sys/class/infiniband/%s/ports", devices.name[i]);
        for (size_t k = 0; k < numbers.count; k++) {
            snprintf(name, sizeof(name), "%s:%s", devices.name[i], numbers.name[k]);
            names_add(&ports, name);
        }
        names_free(&numbers);
    }
    names_free(&devices);
    return ports;
}

int nic_parse_port(const char *root, const char *name, char device[NIC_NAME], unsigned *port)
{
    const char *colon = strchr(name, ':');
    size_t n = colon ? (size_t)(colon - name) : strlen(name);
    char *end = NULL;

    if (!n || n >= NIC_NAME || memchr(name, '/', n))
        return -EINVAL;
    memcpy(device, name, n);
    device[n] = '\0';
    *port = colon ? (unsigned)strtoul(colon + 1, &end, 10) : 1;
    if (colon && (end == colon + 1 || *end))
        return -EINVAL;
    return sys_exists(root, "sys/class/infiniband/%s/ports/%u", device, *port) ? 0 : -ENODEV;
}
