/* SPDX-License-Identifier: Apache-2.0 */
/* Network interfaces: see nic.h. */
#include "core/hw/nic.h"

#include <ctype.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/hw/machine.h"

/* ---- The PCIe link of a network card ---- */

/* Configuration space: PCI Local Bus Specification 3.0, chapter 6; PCI Express Base Specification,
 * chapter 7. */
enum {
    STATUS = 6,
    STATUS_HAS_LIST = 0x10,
    FIRST_CAPABILITY = 0x34,
    CAPABILITY_PCIE = 0x10,
    DEVICE_CONTROL = 8, /* in that capability; its bits 5 to 7 are the largest payload */
    LEAST_PAYLOAD = 128,
    CONFIG_BYTES = 256,
    CAPABILITIES_MAX = 48,
};

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

/* Above the first 64 bytes root only reads. */
static uint32_t payload_of(const char *root, const char *folder)
{
    unsigned char config[CONFIG_BYTES];
    FILE *f = sys_open(root, "%s/config", folder);
    size_t n = f ? fread(config, 1, sizeof(config), f) : 0, at;

    if (f)
        fclose(f);
    if (n <= FIRST_CAPABILITY || !(config[STATUS] & STATUS_HAS_LIST))
        return 0;
    at = config[FIRST_CAPABILITY] & 0xfc;
    for (int hops = 0; at && at + DEVICE_CONTROL < n && hops < CAPABILITIES_MAX; hops++) {
        if (config[at] == CAPABILITY_PCIE)
            return (uint32_t)LEAST_PAYLOAD << (config[at + DEVICE_CONTROL] >> 5);
        at = config[at + 1] & 0xfc;
    }
    return 0;
}

struct nic_pcie nic_pcie(const char *root, const char *folder, const char *driver)
{
    struct nic_pcie pcie = {0};
    char of[SYS_PATH], speed[64];
    long long width;

    if (!folder[0] || is_paravirtual(driver))
        return pcie;
    /* A virtual function's own registers for it are empty. */
    if (snprintf(of, sizeof(of), "%s%s", folder,
                 sys_exists(root, "%s/physfn", folder) ? "/physfn" : "") >= (int)sizeof(of) ||
        sys_line(root, speed, sizeof(speed), "%s/current_link_speed", of) ||
        sys_number(root, &width, "%s/current_link_width", of))
        return pcie;
    /* "8.0 GT/s PCIe", "Unknown"; widths of 0, 63 and 255 say that there is no link. */
    pcie.gt_s = atof(speed);
    if (!(pcie.gt_s > 0) || width < 1 || width > 32 || (pcie.gt_s <= 2.5 && width == 1))
        return (struct nic_pcie){0};
    pcie.width = (uint32_t)width;
    pcie.payload_bytes = payload_of(root, of);
    return pcie;
}

/* ---- How far an RDMA device is from another PCI device: see nic_way() in nic.h. ---- */

#define DEPTH_MAX 24

/* What a device hangs below: "pci0000:3a", its bridges, itself. */
struct chain {
    char text[SYS_PATH];
    const char *part[DEPTH_MAX];
    unsigned n;
};

static void read_chain(const char *root, const char *address, struct chain *c)
{
    static const char below[] = "devices/";
    char *save = NULL, *at;

    c->n = 0;
    if (sys_link(root, c->text, sizeof(c->text), "sys/bus/pci/devices/%s", address) ||
        !(at = strstr(c->text, below)))
        return;
    for (at = strtok_r(at + strlen(below), "/", &save); at && c->n < DEPTH_MAX;
         at = strtok_r(NULL, "/", &save))
        c->part[c->n++] = at;
}

static long long node_of(const char *root, const char *address)
{
    long long node;

    return sys_number(root, &node, "sys/bus/pci/devices/%s/numa_node", address) ? -1 : node;
}

const char *nic_way(const char *root, const char *name, const char *address)
{
    char device[NIC_NAME];
    unsigned port, same = 0;
    struct nic_port np;
    struct chain a, b;

    if (!*address || nic_parse_port(root, name, device, &port) ||
        nic_read_port(root, device, port, &np) || np.software || !np.address[0])
        return "";
    read_chain(root, np.address, &a);
    read_chain(root, address, &b);
    if (!a.n || !b.n)
        return "";
    while (same < a.n && same < b.n && !strcmp(a.part[same], b.part[same]))
        same++;
    if (same > 1) /* bridges passed: a switch has two, the one above it is in common */
        return a.n - same <= 2 && b.n - same <= 2 ? "PIX" : "PXB";
    if (same)
        return "PHB";
    long long one = node_of(root, np.address), other = node_of(root, address);
    return one < 0 || other < 0 ? "" : one == other ? "NODE" : "SYS";
}

/* ---- What the system says of a network interface ---- */

enum { ARPHRD_INFINIBAND_TYPE = 32, ARPHRD_LOOPBACK_TYPE = 772, STACK_DEPTH = 4 };

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

/* "0000:3b:00.1". */
static bool is_pci_address(const char *s, size_t n)
{
    static const char shape[] = "xxxx:xx:xx.x";

    for (size_t i = 0; i < sizeof(shape) - 1; i++)
        if (i >= n || (shape[i] == 'x' ? !isxdigit((unsigned char)s[i]) : s[i] != shape[i]))
            return false;
    return n == sizeof(shape) - 1;
}

void nic_pci_function(const char *target, char address[24], char *folder, size_t len)
{
    const char *part = target;

    address[0] = folder[0] = '\0';
    while (part && *part) {
        size_t n = strcspn(part, "/");
        if (is_pci_address(part, n)) {
            snprintf(address, 24, "%.*s", (int)n, part);
            /* "../../devices/..." of a link in sys/class/X: below sys. */
            const char *below = strstr(target, "devices/");
            int used = below ? (int)(part + n - below) : 0;
            if (snprintf(folder, len, "sys/%.*s", used, below ? below : "") >= (int)len)
                folder[0] = '\0';
        }
        part += n;
        part += *part == '/';
    }
}

int nic_node(const char *root, const char *folder)
{
    long long node;

    if (!folder[0] || sys_number(root, &node, "%s/numa_node", folder) || node < 0)
        return -1;
    return (int)node;
}

/* What the driver calls itself, asked of the running kernel; "" where it does not say. */
static void ask_driver(const char *name, char driver[32])
{
    struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
    struct ifreq ask = {.ifr_data = (void *)&info};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    driver[0] = '\0';
    if (fd < 0)
        return;
    snprintf(ask.ifr_name, sizeof(ask.ifr_name), "%.15s", name);
    if (!ioctl(fd, SIOCETHTOOL, &ask))
        snprintf(driver, 32, "%.31s", info.driver);
    close(fd);
}

/* veth has no mark in /sys but its peer: it links to another interface than itself. But the peer
 * may have the same number in another namespace, so a running kernel is asked. */
static bool is_veth(const char *root, const char *name)
{
    long long index, link;
    char driver[32];

    if (!sys_number(root, &index, "sys/class/net/%s/ifindex", name) &&
        !sys_number(root, &link, "sys/class/net/%s/iflink", name) && index != link)
        return true;
    if (root && root[0])
        return false;
    ask_driver(name, driver);
    return !strcmp(driver, "veth");
}

/* Software interfaces say what they are in uevent's DEVTYPE, or by a folder or file of their
 * own. */
static void virtual_kind(const char *root, const char *name, char *kind, size_t len)
{
    static const struct {
        const char *file, *kind;
    } marks[] = {{"bridge", "bridge"}, {"bonding", "bond"}, {"tun_flags", "tun"}};
    char line[128];
    FILE *f;

    for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++)
        if (sys_exists(root, "sys/class/net/%s/%s", name, marks[i].file)) {
            snprintf(kind, len, "%s", marks[i].kind);
            return;
        }
    snprintf(kind, len, "%s", is_veth(root, name) ? "veth" : "software");
    f = sys_open(root, "sys/class/net/%s/uevent", name);
    while (f && fgets(line, sizeof(line), f))
        if (!strncmp(line, "DEVTYPE=", 8))
            snprintf(kind, len, "%.*s", (int)strcspn(line + 8, "\n"), line + 8);
    if (f)
        fclose(f);
}

static void set_kind(const char *root, struct nic *nic, bool is_virtual)
{
    long long type = 1;

    sys_number(root, &type, "sys/class/net/%s/type", nic->name);
    if (type == ARPHRD_LOOPBACK_TYPE)
        snprintf(nic->kind, sizeof(nic->kind), "loopback");
    else if (is_virtual)
        virtual_kind(root, nic->name, nic->kind, sizeof(nic->kind));
    else if (type == ARPHRD_INFINIBAND_TYPE)
        snprintf(nic->kind, sizeof(nic->kind), "infiniband");
    else if (sys_exists(root, "sys/class/net/%s/phy80211", nic->name) ||
             sys_exists(root, "sys/class/net/%s/wireless", nic->name))
        snprintf(nic->kind, sizeof(nic->kind), "wifi");
    else
        snprintf(nic->kind, sizeof(nic->kind), type == 1 ? "ethernet" : "other");
}

static void __attribute__((format(printf, 2, 3))) unknown(struct nic *nic, const char *format, ...)
{
    va_list args;

    nic->line_gbps = 0;
    va_start(args, format);
    vsnprintf(nic->line_source, sizeof(nic->line_source), format, args);
    va_end(args);
}

/* Mb/s in the file; -1 or an error where the link is down or the driver does not know. */
static void own_line(const char *root, struct nic *nic, const char *driver)
{
    const char *hides = nic_rate_note(driver, true), *made_up = nic_rate_note(driver, false);
    long long mbits = -1;

    if (sys_number(root, &mbits, "sys/class/net/%s/speed", nic->name) || mbits <= 0 ||
        mbits >= 4294967295LL) {
        unknown(nic, "%s's rate is not known: %s", nic->name,
                hides ? hides : "its driver gives none, or the link is down");
        return;
    }
    if (made_up) {
        unknown(nic, "%s says %g Gb/s, %s", nic->name, (double)mbits / 1e3, made_up);
        return;
    }
    nic->line_gbps = (double)mbits / 1e3;
    snprintf(nic->line_source, sizeof(nic->line_source), "sysfs: %g Gb/s%s", nic->line_gbps,
             hides     ? " as the host set it"
             : nic->vf ? " of the port that a virtual function shares"
                       : "");
}

struct members {
    const char *root;
    unsigned depth, n;
    struct nic last;
    bool all_known, all_tagged;
};

static int read_nic(const char *root, const char *interface, struct nic *nic, unsigned depth);

/* Interfaces below this one that have, in the end, hardware. */
static int add_member(void *arg, const char *name)
{
    struct members *m = arg;
    struct nic nic;

    if (strncmp(name, "lower_", 6) || m->depth >= STACK_DEPTH ||
        read_nic(m->root, name + 6, &nic, m->depth + 1))
        return 0;
    if (!strcmp(nic.kind, "veth") || !strcmp(nic.kind, "tun"))
        return 0; /* ways to guests and containers, not out of the machine */
    m->all_known &= nic.line_gbps > 0;
    m->all_tagged &= nic.vlan;
    m->last = nic;
    m->n++;
    return 0;
}

static void stacked_line(const char *root, struct nic *nic, unsigned depth)
{
    struct members m = {.root = root, .depth = depth, .all_known = true, .all_tagged = true};
    bool bond = !strcmp(nic->kind, "bond") || !strcmp(nic->kind, "team");

    sys_list(root, add_member, &m, "sys/class/net/%s", nic->name);
    if (m.n)
        nic->node = m.last.node;
    nic->vlan = !strcmp(nic->kind, "vlan") || (m.n && m.all_tagged);
    if (m.n && !m.all_known)
        unknown(nic, "%s: %.140s", nic->name, m.last.line_source);
    else if (bond && m.n)
        own_line(root, nic, "");
    else if (m.n == 1) {
        nic->pcie = m.last.pcie;
        nic->line_gbps = m.last.line_gbps;
        snprintf(nic->line_source, sizeof(nic->line_source), "%.120s (%.20s)", m.last.line_source,
                 m.last.name);
    } else
        unknown(nic, "%s is a %s over %s: its line is not known", nic->name, nic->kind,
                m.n ? "several interfaces" : "no interface with a line");
}

static void set_line(const char *root, struct nic *nic, bool is_virtual, unsigned depth)
{
    static const char *const stacked[] = {"bond", "team", "bridge", "vlan", "macvlan", "ipvlan"};

    for (size_t i = 0; i < sizeof(stacked) / sizeof(*stacked); i++)
        if (!strcmp(nic->kind, stacked[i])) {
            stacked_line(root, nic, depth);
            return;
        }
    if (!strcmp(nic->kind, "loopback"))
        unknown(nic, "%s: within this machine, there is no line", nic->name);
    else if (!strcmp(nic->kind, "wifi"))
        unknown(nic, "%s: the rate of a radio changes from frame to frame", nic->name);
    else if (nic_rate_note(nic->kind, false))
        own_line(root, nic, nic->kind);
    else if (is_virtual)
        unknown(nic, "%s is in software: there is no line", nic->name);
    else
        own_line(root, nic, nic->driver);
}

static int read_nic(const char *root, const char *interface, struct nic *nic, unsigned depth)
{
    char target[SYS_PATH], folder[SYS_PATH];
    long long number;
    bool is_virtual;

    *nic = (struct nic){.node = -1};
    snprintf(nic->name, sizeof(nic->name), "%s", interface);
    if (!interface[0] || strchr(interface, '/') ||
        !sys_exists(root, "sys/class/net/%s/type", interface)) {
        unknown(nic, "there is no interface '%.40s'", interface);
        return -ENODEV;
    }
    sys_link(root, target, sizeof(target), "sys/class/net/%s", interface);
    is_virtual = strstr(target, "/virtual/net/") != NULL;
    nic_pci_function(target, nic->address, folder, sizeof(folder));
    sys_link_name(root, nic->driver, sizeof(nic->driver), "sys/class/net/%s/device/driver",
                  interface);
    nic->node = nic_node(root, folder);
    nic->pcie = nic_pcie(root, folder, nic->driver);
    if (!sys_number(root, &number, "sys/class/net/%s/mtu", interface) && number > 0)
        nic->mtu = (uint32_t)number;
    nic->vf = folder[0] && sys_exists(root, "%s/physfn", folder);
    if (folder[0] && !sys_number(root, &number, "%s/sriov_numvfs", folder) && number > 0)
        nic->vfs = (unsigned)number;
    set_kind(root, nic, is_virtual);
    set_line(root, nic, is_virtual, depth);
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

int nic_fill_at(const char *root, struct nic_rail *r, const char *interface)
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

int nic_fill(struct nic_rail *r, const char *interface)
{
    return nic_fill_at(NULL, r, interface);
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
