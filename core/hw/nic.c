/* SPDX-License-Identifier: Apache-2.0 */
/* Network interfaces: see nic.h. */
#include "core/hw/nic.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/hw/pci.h"

/* ---- Its PCI function ---- */

/* A hypervisor's own devices: what they say of a link is made up. Those of nic_rate_note() are,
 * too. */
static bool is_paravirtual(const char *driver)
{
    static const char *const made_up[] = {"efa", "erdma", "gve", "mana"};

    for (size_t i = 0; i < sizeof(made_up) / sizeof(*made_up); i++)
        if (!strcmp(driver, made_up[i]))
            return true;
    return nic_rate_note(driver, true) || nic_rate_note(driver, false);
}

struct nic_pcie nic_pcie(const char *root, const char *folder, const char *driver)
{
    struct nic_pcie pcie = {0};
    char of[SYS_PATH];
    int width, control;

    if (!folder[0] || is_paravirtual(driver))
        return pcie;
    /* A virtual function's own registers for it are empty. */
    if (snprintf(of, sizeof(of), "%s%s", folder, pci_is_virtual(root, folder) ? "/physfn" : "") >=
        (int)sizeof(of))
        return pcie;
    pcie.gt_s = pci_speed_gt_s(root, of, "current_link_speed");
    width = pci_width(root, of, "current_link_width");
    if (!(pcie.gt_s > 0) || width < 1 || (pcie.gt_s <= 2.5 && width == 1))
        return (struct nic_pcie){0};
    pcie.width = (uint32_t)width;
    control = pci_control(root, of);
    pcie.payload_bytes = control < 0 ? 0 : 128u << (control >> 5 & 7);
    return pcie;
}

const char *nic_way(const char *root, const char *name, const char *address)
{
    char device[NIC_NAME], nic[SYS_PATH], other[SYS_PATH];
    struct nic_port np;
    unsigned port;
    const char *way;

    if (!*address || nic_parse_port(root, name, device, &port) ||
        nic_read_port(root, device, port, &np) || np.software || !np.address[0] ||
        sys_resolve(root, nic, sizeof(nic), "sys/bus/pci/devices/%s", np.address) ||
        sys_resolve(root, other, sizeof(other), "sys/bus/pci/devices/%s", address))
        return "";
    way = pci_nearness(nic, pci_node(root, nic), other, pci_node(root, other));
    return way ? way : "";
}

/* ---- What the system says of a network interface ---- */

enum { STACK_DEPTH = 4 };

/* Rates that drivers make up, or do not give. */
static const struct {
    const char *driver;
    bool hidden;
    const char *note;
} rate_notes[] = {
    {"virtio_net", true, "virtio shows a speed only where the host sets one"},
    {"xen-netfront", true, "Xen's network shows none"},
    {"vif", true, "Xen's network shows none"},
    {"ena", true, "the ENA driver shows none"},
    {"vmxnet3", false, "nominal: vmxnet3 gives this figure whatever the uplink"},
    {"hv_netvsc", false, "nominal: Hyper-V gives its switch's figure, not this guest's share"},
    {"veth", false, "made up: veth has no line"},
    {"tun", false, "made up: a tun device has no line"},
    {"vmw_pvrdma", false, "invented: PVRDMA does not know the line's rate"},
};

const char *nic_rate_note(const char *driver, bool hidden)
{
    for (size_t i = 0; i < sizeof(rate_notes) / sizeof(*rate_notes); i++)
        if (!strcmp(driver, rate_notes[i].driver) && rate_notes[i].hidden == hidden)
            return rate_notes[i].note;
    return NULL;
}

int nic_ask_driver(int fd, const char *name, void *answer)
{
    struct ifreq ask = {.ifr_data = answer};

    snprintf(ask.ifr_name, sizeof(ask.ifr_name), "%.15s", name);
    return ioctl(fd, SIOCETHTOOL, &ask);
}

/* What the driver calls itself, asked of the running kernel. */
static bool is_driver(const char *name, const char *driver)
{
    struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is = fd >= 0 && !nic_ask_driver(fd, name, &info) && !strcmp(info.driver, driver);

    if (fd >= 0)
        close(fd);
    return is;
}

/* Software interfaces say what they are by a folder or file of their own, or in uevent's DEVTYPE. A
 * veth has no mark but its peer: it links to another interface than itself. But the peer may have
 * the same number in another namespace, so a running kernel is asked. "": what would tell lacks. */
static void virtual_kind(const char *root, const char *folder, char *kind, size_t len)
{
    static const struct {
        const char *file, *kind;
    } marks[] = {{"bridge", "bridge"}, {"bonding", "bond"}, {"tun_flags", "tun"}};
    char text[1024], *at;
    long long index, link;

    for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++)
        if (sys_exists(root, "%s/%s", folder, marks[i].file)) {
            snprintf(kind, len, "%s", marks[i].kind);
            return;
        }
    if (sys_read(root, text, sizeof(text), NULL, "%s/uevent", folder))
        return;
    at = strstr(text, "DEVTYPE=");
    if (at)
        snprintf(kind, len, "%.*s", (int)strcspn(at + 8, "\n"), at + 8);
    else if (!sys_number(root, &index, "%s/ifindex", folder) &&
             !sys_number(root, &link, "%s/iflink", folder))
        snprintf(kind, len, "%s",
                 index != link || ((!root || !*root) && is_driver(strrchr(folder, '/') + 1, "veth"))
                     ? "veth"
                     : "software");
}

int nic_kind(const char *root, const char *folder, char *kind, size_t len)
{
    long long type;
    int rc = sys_number(root, &type, "%s/type", folder);

    kind[0] = '\0';
    if (rc)
        return rc;
    if (type == ARPHRD_LOOPBACK)
        snprintf(kind, len, "loopback");
    else if (nic_is_virtual(folder))
        virtual_kind(root, folder, kind, len);
    else if (type == ARPHRD_INFINIBAND)
        snprintf(kind, len, "infiniband");
    else if (sys_exists(root, "%s/phy80211", folder) || sys_exists(root, "%s/wireless", folder))
        snprintf(kind, len, "wifi");
    else
        snprintf(kind, len, type == ARPHRD_ETHER ? "ethernet" : "other");
    return 0;
}

double nic_speed_gbps(const char *root, const char *folder)
{
    long long mbits;

    return sys_number(root, &mbits, "%s/speed", folder) || mbits <= 0 || mbits >= 4294967295LL
               ? 0
               : (double)mbits / 1e3;
}

static void __attribute__((format(printf, 2, 3))) unknown(struct nic *nic, const char *format, ...)
{
    va_list args;

    nic->line_gbps = 0;
    va_start(args, format);
    vsnprintf(nic->line_source, sizeof(nic->line_source), format, args);
    va_end(args);
}

static void own_line(const char *root, struct nic *nic, const char *folder, const char *driver)
{
    const char *hides = nic_rate_note(driver, true), *made_up = nic_rate_note(driver, false);
    double gbps = nic_speed_gbps(root, folder);

    if (!(gbps > 0))
        unknown(nic, "%s's rate is not known: %s", nic->name,
                hides ? hides : "its driver gives none, or the link is down");
    else if (made_up)
        unknown(nic, "%s says %g Gb/s, %s", nic->name, gbps, made_up);
    if (!(gbps > 0) || made_up)
        return;
    nic->line_gbps = gbps;
    snprintf(nic->line_source, sizeof(nic->line_source), "sysfs: %g Gb/s%s", nic->line_gbps,
             hides     ? " as the host set it"
             : nic->vf ? " of the port that a virtual function shares"
                       : "");
}

static int read_nic(const char *root, const char *interface, struct nic *nic, unsigned depth);

/* Of the interfaces below it that have, in the end, hardware. */
static void stacked_line(const char *root, struct nic *nic, const char *folder, unsigned depth)
{
    bool bond = !strcmp(nic->kind, "bond") || !strcmp(nic->kind, "team");
    bool all_known = true, all_tagged = true;
    struct names names;
    struct nic lower, last = {.node = -1};
    unsigned n = 0;

    sys_list(root, &names, "%s", folder);
    for (size_t i = 0; i < names.count && depth < STACK_DEPTH; i++) {
        if (strncmp(names.name[i], "lower_", 6) ||
            read_nic(root, names.name[i] + 6, &lower, depth + 1))
            continue;
        if (!strcmp(lower.kind, "veth") || !strcmp(lower.kind, "tun"))
            continue; /* ways to guests and containers, not out of the machine */
        all_known &= lower.line_gbps > 0;
        all_tagged &= lower.vlan;
        last = lower;
        n++;
    }
    names_free(&names);
    if (n)
        nic->node = last.node;
    nic->vlan = !strcmp(nic->kind, "vlan") || (n && all_tagged);
    if (n && !all_known)
        unknown(nic, "%s: %.140s", nic->name, last.line_source);
    else if (bond && n)
        own_line(root, nic, folder, "");
    else if (n == 1) {
        nic->pcie = last.pcie;
        nic->line_gbps = last.line_gbps;
        snprintf(nic->line_source, sizeof(nic->line_source), "%.120s (%.20s)", last.line_source,
                 last.name);
    } else
        unknown(nic, "%s is a %s over %s: its line is not known", nic->name, nic->kind,
                n ? "several interfaces" : "no interface with a line");
}

static void set_line(const char *root, struct nic *nic, const char *folder, unsigned depth)
{
    static const char *const stacked[] = {"bond", "team", "bridge", "vlan", "macvlan", "ipvlan"};

    for (size_t i = 0; i < sizeof(stacked) / sizeof(*stacked); i++)
        if (!strcmp(nic->kind, stacked[i])) {
            stacked_line(root, nic, folder, depth);
            return;
        }
    if (!strcmp(nic->kind, "loopback"))
        unknown(nic, "%s: within this machine, there is no line", nic->name);
    else if (!strcmp(nic->kind, "wifi"))
        unknown(nic, "%s: the rate of a radio changes from frame to frame", nic->name);
    else if (nic_rate_note(nic->kind, false))
        own_line(root, nic, folder, nic->kind);
    else if (nic_is_virtual(folder))
        unknown(nic, "%s is in software: there is no line", nic->name);
    else
        own_line(root, nic, folder, nic->driver);
}

static int read_nic(const char *root, const char *interface, struct nic *nic, unsigned depth)
{
    char path[SYS_PATH], function[SYS_PATH];
    long long number;

    *nic = (struct nic){.node = -1};
    snprintf(nic->name, sizeof(nic->name), "%s", interface);
    if (!interface[0] || strchr(interface, '/') ||
        sys_resolve(root, path, sizeof(path), "sys/class/net/%s", interface) ||
        !sys_exists(root, "%s/type", path)) {
        unknown(nic, "there is no interface '%.40s'", interface);
        return -ENODEV;
    }
    snprintf(function, sizeof(function), "%.*s",
             (int)pci_function_of(path, strlen(path), nic->address), path);
    sys_link(root, nic->driver, sizeof(nic->driver), "%s/device/driver", path);
    nic->node = pci_node(root, function);
    nic->pcie = nic_pcie(root, function, nic->driver);
    if (!sys_number(root, &number, "%s/mtu", path) && number > 0)
        nic->mtu = (uint32_t)number;
    nic->vf = pci_is_virtual(root, function);
    if (function[0] && !sys_number(root, &number, "%s/sriov_numvfs", function) && number > 0)
        nic->vfs = (unsigned)number;
    nic_kind(root, path, nic->kind, sizeof(nic->kind));
    if (!nic->kind[0])
        snprintf(nic->kind, sizeof(nic->kind), nic_is_virtual(path) ? "software" : "ethernet");
    set_line(root, nic, path, depth);
    return 0;
}

int nic_read(const char *root, const char *interface, struct nic *nic)
{
    return read_nic(root, interface, nic, 0);
}

static void fill_function(struct nic_rail *r, const char *address, bool vf,
                          const struct nic_pcie *pcie)
{
    snprintf(r->address, sizeof(r->address), "%s", address);
    r->vf = vf;
    r->pcie = *pcie;
}

int nic_fill(const char *root, struct nic_rail *r, const char *interface)
{
    struct nic nic;
    int rc = nic_read(root, interface, &nic);

    if (!r->name[0])
        snprintf(r->name, sizeof(r->name), "%s", interface);
    r->node = nic.node;
    r->line_gbps = nic.line_gbps;
    snprintf(r->line_source, sizeof(r->line_source), "%s", nic.line_source);
    fill_function(r, nic.address, nic.vf, &nic.pcie);
    r->vlan = nic.vlan;
    if (!rc)
        r->mtu_bytes = nic.mtu;
    return rc;
}

bool nic_has_tag(const char *root, const char *interface)
{
    struct nic nic;

    return !nic_read(root, interface, &nic) && nic.vlan;
}

int nic_fill_rdma(const char *root, struct nic_rail *r, bool within)
{
    char device[NIC_NAME];
    struct nic_port np;
    unsigned port;

    r->line_gbps = 0;
    if (nic_parse_port(root, r->name, device, &port) || nic_read_port(root, device, port, &np)) {
        snprintf(r->line_source, sizeof(r->line_source), "there is no RDMA port '%.40s'", r->name);
        return -ENODEV;
    }
    fill_function(r, np.address, np.vf, &np.pcie);
    if (np.iwarp) {
        r->vlan = np.vlan;
        r->mtu_bytes = np.mtu;
    }
    if (within && np.software)
        snprintf(np.line_source, sizeof(np.line_source),
                 "%.40s is in software: within this machine, there is no line", r->name);
    else
        r->line_gbps = np.line_gbps;
    snprintf(r->line_source, sizeof(r->line_source), "%s", np.line_source);
    return 0;
}
