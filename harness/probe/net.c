/* SPDX-License-Identifier: Apache-2.0 */
/* Network interfaces. Addresses are not read. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hw/nic.h"
#include "harness/probe/facts.h"

static const char class_net[] = "sys/class/net";

enum { ARPHRD_ETHERNET = 1, ARPHRD_IB = 32, ARPHRD_LOOP = 772, INTERFACES_MAX = 4096 };

/* Software interfaces say what they are in uevent's DEVTYPE, or by a folder or file of their own;
 * of the rest a veth has no mark but its peer: it links to another interface than itself. False
 * where the files that would tell lack. */
static bool virtual_kind(struct probe *p, const char *path, char *kind, size_t size)
{
    static const struct {
        const char *file, *kind;
    } marks[] = {{"bridge", "bridge"}, {"bonding", "bond"}, {"tun_flags", "tun"}};
    char text[1024], *at;
    long long index, link;

    for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++)
        if (tree_exists_at(&p->tree, path, marks[i].file)) {
            snprintf(kind, size, "%s", marks[i].kind);
            return true;
        }
    if (tree_read(&p->tree, tree_join(path, "uevent").s, text, sizeof(text), NULL))
        return false;
    at = strstr(text, "DEVTYPE=");
    if (at) {
        at += strlen("DEVTYPE=");
        snprintf(kind, size, "%.*s", (int)strcspn(at, "\n"), at);
        return true;
    }
    if (tree_number_at(&p->tree, path, "ifindex", &index) ||
        tree_number_at(&p->tree, path, "iflink", &link))
        return false;
    snprintf(kind, size, "%s", index != link ? "veth" : "software");
    return true;
}

static void set_kind(struct probe *p, json_t *nic, const char *path, bool is_virtual)
{
    char kind[64];
    long long type;
    int rc = tree_number_at(&p->tree, path, "type", &type);

    if (rc)
        fact_set_unknown(nic, "kind", "/%s/type: %s", path, fact_errno(rc));
    else if (type == ARPHRD_LOOP)
        fact_set_text(nic, "kind", "loopback");
    else if (is_virtual)
        fact_set_text_or(nic, "kind", virtual_kind(p, path, kind, sizeof(kind)) ? kind : NULL,
                         "/%s: neither uevent nor another mark of its kind could be read", path);
    else if (type == ARPHRD_IB)
        fact_set_text(nic, "kind", "infiniband");
    else if (tree_exists_at(&p->tree, path, "phy80211") ||
             tree_exists_at(&p->tree, path, "wireless"))
        fact_set_text(nic, "kind", "wifi");
    else
        fact_set_text(nic, "kind", type == ARPHRD_ETHERNET ? "ethernet" : "other");
}

/* Mb/s in the file; -1 or an error where the link is down or the driver does not know. */
static void set_speed(struct probe *p, json_t *nic, const char *path, const char *driver)
{
    long long mbit;
    int rc = tree_number_at(&p->tree, path, "speed", &mbit);

    if (rc || mbit <= 0 || mbit >= 4294967295LL) {
        const char *hides = nic_rate_note(driver, true);

        fact_set_unknown(nic, "speed_gbits_per_s", "%s",
                         hides ? hides
                               : "no speed could be read: link down, a software interface, or a "
                                 "driver that gives none");
        return;
    }
    fact_set_real(nic, "speed_gbits_per_s", (double)mbit / 1e3);
    if (nic_rate_note(driver, false))
        fact_set_text(nic, "speed_why", nic_rate_note(driver, false));
}

/* Network devices of hypervisors that do not come over PCI. */
bool net_guest_driver(const char *driver)
{
    return fact_fits("virtio_net|hv_netvsc|vif|xen-netfront|ibmveth", driver);
}

/* By the driver, which knows best; then by the PCI function; then as the machine's own. */
static void set_nature(struct probe *p, json_t *nic, const char *path, const char *driver)
{
    const struct pci_device *pci = p->pci ? pci_of_path(p->pci, path) : NULL;
    const char *nature = net_guest_driver(driver) ? "paravirtual" : NULL;
    char address[TREE_LINE];
    bool on_pci = pci_path_address(path, address, sizeof(address));

    if (!nature && pci && pci->json)
        nature = fact_string(pci->json, "nature");
    if (!nature && strstr(path, "/virtio"))
        nature = "paravirtual";
    if (!nature && !on_pci && driver[0] && !strncmp(path, "sys/devices/", 12) && probe_on_metal(p))
        nature = "physical";
    fact_set_text(nic, "nature", nature ? nature : "unknown");
    if (!nature)
        fact_set_text(nic, "nature_why",
                      on_pci ? "its PCI function could not be read"
                             : "not on the PCI bus, and its driver is none we know");
}

static void set_place(struct probe *p, json_t *nic, const char *path, bool is_virtual)
{
    const struct pci_device *pci = p->pci ? pci_of_path(p->pci, path) : NULL;
    json_t *node = pci && pci->json ? json_object_get(pci->json, "numa_node") : NULL;
    char address[TREE_LINE];
    const char *why = is_virtual                           ? "a software interface has no place"
                      : !strncmp(path, "sys/devices/", 12) ? "not on the PCI bus"
                                                           : "where its device is does not show";

    if (!is_virtual && pci_path_address(path, address, sizeof(address))) {
        fact_set_text(nic, "pci", address);
        why = "its PCI function could not be read";
    } else {
        fact_set_unknown(nic, "pci", "%s", why);
    }
    fact_set(nic, "numa_node", json_is_integer(node) ? json_copy(node) : NULL, "%s",
             node ? fact_string(pci->json, "numa_node_why") : why);
}

static void add_interface(struct probe *p, json_t *list, const char *name, const json_t *asked,
                          const char *interrupts)
{
    char path[TREE_PATH], driver[TREE_LINE] = "";
    int rc = tree_resolve(&p->tree, tree_join(class_net, name).s, path, sizeof(path));
    bool is_virtual;
    struct stat st;
    json_t *nic;

    /* bonding_masters is a file among the folders. */
    if (rc || tree_stat(&p->tree, path, &st) || !S_ISDIR(st.st_mode))
        return;
    is_virtual = strstr(path, "/virtual/net/") != NULL;
    if (!is_virtual)
        tree_link_at(&p->tree, path, "device/driver", driver, sizeof(driver));
    nic = fact_append(list);
    fact_set_text(nic, "name", name);
    set_kind(p, nic, path, is_virtual);
    fact_set_bool(nic, "virtual", is_virtual);
    bool none = is_virtual || tree_absent_at(&p->tree, path, "device");

    fact_set_text_or(nic, "driver", driver, "%s",
                     none ? "none: no device is behind it" : "device/driver could not be read");
    if (is_virtual)
        fact_set_text(nic, "nature", "software");
    else
        set_nature(p, nic, path, driver);
    set_speed(p, nic, path, driver);
    fact_set_file_number(nic, "mtu", &p->tree, tree_join(path, "mtu").s);
    fact_set_line(nic, "state", &p->tree, tree_join(path, "operstate").s);
    set_place(p, nic, path, is_virtual);
    net_fill_state(p, nic, path, asked, interrupts);
}

void probe_network(struct probe *p)
{
    struct names names = {0};
    int rc = tree_list(&p->tree, class_net, &names);
    json_t *list, *asked;
    char *interrupts;

    if (rc) {
        fact_set_unknown(p->machine, "network", "/%s: %s", class_net, fact_errno(rc));
        return;
    }
    list = fact_list(p->machine, "network");
    asked = net_asked(&p->tree, "");
    interrupts = net_interrupts(&p->tree);
    for (size_t i = 0; i < names.count && i < INTERFACES_MAX; i++)
        add_interface(p, list, names.name[i], asked, interrupts);
    free(interrupts);
    json_decref(asked);
    names_free(&names);
}

/* RDMA devices and their ports. GIDs are told by index and type only: they hold addresses. */

static const char class_ib[] = "sys/class/infiniband";

enum { DEVICES_MAX = 512, GIDS_MAX = 256 };

/* "4: ACTIVE" -> "ACTIVE". */
static void set_after_colon(struct probe *p, json_t *json, const char *key, const char *path,
                            const char *file)
{
    char line[TREE_LINE], *colon;
    int rc = tree_line_at(&p->tree, path, file, line, sizeof(line));

    if (rc) {
        fact_set_unknown(json, key, "/%s/%s: %s", path, file, fact_errno(rc));
        return;
    }
    colon = strchr(line, ':');
    fact_set_text(json, key, colon ? colon + 1 + strspn(colon + 1, " ") : line);
}

/* "100 Gb/sec (4X EDR)". */
static void set_rate(struct probe *p, json_t *port, const char *path)
{
    char line[TREE_LINE], *open;
    int rc = tree_line_at(&p->tree, path, "rate", line, sizeof(line));
    double rate = rc ? 0 : atof(line);

    if (!(rate > 0)) {
        fact_set_unknown(port, "rate_gbits_per_s|lanes", "/%s/rate: %s", path,
                         rc ? fact_errno(rc) : "not a rate");
        return;
    }
    fact_set_real(port, "rate_gbits_per_s", rate);
    open = strchr(line, '(');
    if (open)
        open[strcspn(open, ")")] = '\0';
    fact_set_text_or(port, "lanes", open ? open + 1 : NULL, "/%s/rate names none", path);
}

/* What of an address may be told: whether it is there, and whether it maps an IPv4 address. */
static const char *gid_scope(const char *gid)
{
    if (strspn(gid, "0:") == strlen(gid))
        return NULL;
    if (!strncmp(gid, "0000:0000:0000:0000:0000:ffff:", 30))
        return "ipv4";
    return !strncmp(gid, "fe80:", 5) ? "link-local" : "other";
}

/* Slots without an address hold zeros. One that cannot be read may hold an address. */
static bool add_gid(struct probe *p, json_t *list, const char *path, const char *index)
{
    char line[TREE_LINE];
    const char *scope;
    json_t *gid;
    int rc = tree_line_at(&p->tree, tree_join(path, "gids").s, index, line, sizeof(line));

    if (rc)
        return rc == -EINVAL; /* the kernel's answer for a slot that is not in use */
    scope = gid_scope(line);
    if (!scope)
        return true;
    gid = fact_append(list);
    fact_set_number(gid, "index", digits_number(index));
    fact_set_line(gid, "type", &p->tree, tree_join(tree_join(path, "gid_attrs/types").s, index).s);
    fact_set_text(gid, "scope", scope);
    fact_set_line(gid, "netdev", &p->tree,
                  tree_join(tree_join(path, "gid_attrs/ndevs").s, index).s);
    return true;
}

/* Each slot has its type and interface beside it: one of which only these are there was not read.
 */
static bool has_all_slots(struct probe *p, const char *path)
{
    static const char *const folders[] = {"gid_attrs/types", "gid_attrs/ndevs"};
    struct names slots;
    bool all = true;

    for (size_t f = 0; f < 2; f++) {
        tree_list(&p->tree, tree_join(path, folders[f]).s, &slots);
        for (size_t i = 0; i < slots.count; i++)
            all = all && tree_exists_at(&p->tree, tree_join(path, "gids").s, slots.name[i]);
        names_free(&slots);
    }
    return all;
}

static void set_gids(struct probe *p, json_t *port, const char *path)
{
    json_t *list = json_array();
    struct path folder = tree_join(path, "gids");
    struct names names;
    int rc = tree_list(&p->tree, folder.s, &names);
    bool all = !rc && has_all_slots(p, path);

    for (size_t i = 0; i < names.count && i < GIDS_MAX; i++)
        if (digits_number(names.name[i]) >= 0)
            all = add_gid(p, list, path, names.name[i]) && all;
    fact_set_if(port, "gids", all, list, "/%s: %s", folder.s,
                rc ? fact_errno(rc) : "not all of them could be read");
    names_free(&names);
}

/* What a port counts itself, and what its driver counts. */
void rdma_fill_counters(const struct tree *tree, json_t *port, const char *path)
{
    static const char *const own[] = {"port_xmit_packets",   "port_rcv_packets", "port_xmit_wait",
                                      "port_xmit_discards",  "port_rcv_errors",  "symbol_error",
                                      "link_error_recovery", "link_downed",      NULL};
    static const char *const drivers[] = {
        "out_of_sequence",   "packet_seq_err", "local_ack_timeout_err",
        "rnr_nak_retry_err", "out_of_buffer",  "np_ecn_marked_roce_packets",
        "np_cnp_sent",       "rp_cnp_handled", NULL};

    fact_set_counters(port, "counters", tree, tree_join(path, "counters").s, own);
    fact_set_counters(port, "hw_counters", tree, tree_join(path, "hw_counters").s, drivers);
}

/*
 * The largest packet's payload of RoCE, as the kernel takes it from the interface's MTU: the
 * largest power of two that fits beside 96 bytes of headers (include/rdma/ib_addr.h,
 * iboe_get_mtu()).
 */
static void set_roce_mtu(struct probe *p, json_t *port, const char *layer)
{
    enum { ROCE_HEADERS = 96, LEAST = 256, MOST = 4096 };
    const json_t *gids = json_object_get(port, "gids"), *gid, *nics, *nic;
    const char *netdev = NULL;
    long long mtu = 0, fits = LEAST;
    size_t i;

    json_array_foreach (gids, i, gid)
        netdev = netdev ? netdev : fact_string(gid, "netdev");
    nics = json_object_get(p->machine, "network");
    json_array_foreach (nics, i, nic)
        if (netdev && !strcmp(fact_string(nic, "name"), netdev))
            mtu = fact_integer(nic, "mtu", 0);
    if (!layer || strcmp(layer, "Ethernet") != 0 || mtu < ROCE_HEADERS + LEAST) {
        fact_set_unknown(port, "roce_mtu_bytes", "%s",
                         !layer                      ? "its link layer is not known"
                         : strcmp(layer, "Ethernet") ? "no RoCE: the subnet manager sets the MTU"
                                                     : "the MTU of its interface is not known");
        return;
    }
    while (fits < MOST && 2 * fits + ROCE_HEADERS <= mtu)
        fits *= 2;
    fact_set_number(port, "roce_mtu_bytes", fits);
}

static void add_ports(struct probe *p, json_t *device, const char *path)
{
    struct path ports = tree_join(path, "ports");
    struct names names = {0};
    json_t *list, *port;
    int rc = tree_list(&p->tree, ports.s, &names);

    if (rc) {
        fact_set_unknown(device, "ports", "/%s: %s", ports.s, fact_errno(rc));
        return;
    }
    list = fact_list(device, "ports");
    for (size_t i = 0; i < names.count && i < DEVICES_MAX; i++) {
        struct path at = tree_join(ports.s, names.name[i]);

        if (digits_number(names.name[i]) < 0)
            continue;
        port = fact_append(list);
        fact_set_number(port, "port", digits_number(names.name[i]));
        set_after_colon(p, port, "state", at.s, "state");
        set_after_colon(p, port, "physical_state", at.s, "phys_state");
        set_rate(p, port, at.s);
        fact_set_line(port, "link_layer", &p->tree, tree_join(at.s, "link_layer").s);
        set_gids(p, port, at.s);
        set_roce_mtu(p, port, fact_string(port, "link_layer"));
        rdma_fill_counters(&p->tree, port, at.s);
    }
    names_free(&names);
}

/*
 * Software devices have no PCI function. rxe names its network device in "parent"; siw has no such
 * file and calls itself an RNIC, as iWARP devices do.
 */
static void set_software(struct probe *p, json_t *device, const char *path)
{
    json_t *because = json_array();
    char line[TREE_LINE];

    fact_say(because, "it has no PCI function: a device in software");
    if (!tree_line_at(&p->tree, path, "parent", line, sizeof(line))) {
        fact_set_text(device, "driver", "rxe");
        fact_say(because, "\"parent\" names %s, as soft-RoCE (rxe) does", line);
    } else if (!tree_line_at(&p->tree, path, "node_type", line, sizeof(line)) &&
               strstr(line, "RNIC")) {
        fact_set_text(device, "driver", "siw");
        fact_say(because, "an RNIC in software is soft-iWARP (siw)");
    } else {
        fact_set_unknown(device, "driver", "neither rxe's nor siw's marks");
    }
    fact_set_text(device, "nature", "software");
    json_object_set_new(device, "because", because);
}

static void set_hardware(struct probe *p, json_t *device, const struct pci_device *pci)
{
    bool none = tree_absent_at(&p->tree, pci->path, "driver");

    fact_set_text_or(device, "driver", none ? "none" : pci->driver, "/%s/driver: not read",
                     pci->path);
    if (pci->json) {
        fact_set_text(device, "nature", fact_string(pci->json, "nature"));
        json_object_set(device, "because", json_object_get(pci->json, "because"));
    } else {
        fact_set_unknown(device, "nature", "its PCI function is of a class that is not reported");
    }
}

/* The interfaces of the same PCI function. */
static void set_netdevs(struct probe *p, json_t *device, const struct pci_device *pci)
{
    struct names names = {0};
    struct path folder = tree_join(pci ? pci->path : "", "net");
    int rc = pci ? tree_list(&p->tree, folder.s, &names) : 0;
    json_t *list;

    if (!pci)
        fact_set_unknown(device, "netdevs", "no PCI function to look at");
    else if (rc && !tree_absent(&p->tree, folder.s))
        fact_set_unknown(device, "netdevs", "/%s: %s", folder.s, fact_errno(rc));
    else {
        list = fact_list(device, "netdevs");
        for (size_t i = 0; i < names.count && i < DEVICES_MAX; i++)
            json_array_append_new(list, fact_text(names.name[i]));
    }
    names_free(&names);
}

static void set_place_rdma(json_t *device, const char *path, const struct pci_device *pci)
{
    json_t *node = pci && pci->json ? json_object_get(pci->json, "numa_node") : NULL;
    char address[TREE_LINE] = "";
    bool on_pci = pci_path_address(path, address, sizeof(address));
    const char *why = on_pci ? "its PCI function could not be read" : "no PCI function";

    fact_set_text_or(device, "pci", on_pci ? address : NULL, "%s", why);
    fact_set(device, "numa_node", json_is_integer(node) ? json_copy(node) : NULL, "%s",
             pci && pci->json ? fact_string(pci->json, "numa_node_why") : why);
}

static void add_device(struct probe *p, json_t *list, const char *name)
{
    char path[TREE_PATH];
    struct pci_device *pci;
    json_t *device;

    if (tree_resolve(&p->tree, tree_join(class_ib, name).s, path, sizeof(path)))
        return;
    pci = p->pci ? pci_of_path(p->pci, path) : NULL;
    device = fact_append(list);
    fact_set_text(device, "name", name);
    if (pci)
        set_hardware(p, device, pci);
    else if (strstr(path, "/virtual/") || tree_exists_at(&p->tree, path, "parent"))
        set_software(p, device, path);
    else {
        /* Neither a PCI function that was read, nor a path where the kernel keeps devices in software. */
        static const char why[] = "where its device is does not show";

        fact_set_unknown(device, "driver", "%s", why);
        fact_set_text(device, "nature", "unknown");
        fact_set_text(device, "nature_why", why);
    }
    set_after_colon(p, device, "node_type", path, "node_type");
    fact_set_line(device, "firmware", &p->tree, tree_join(path, "fw_ver").s);
    set_place_rdma(device, path, pci);
    set_netdevs(p, device, pci);
    add_ports(p, device, path);
}

void probe_rdma(struct probe *p)
{
    struct names names = {0};
    int rc = tree_list(&p->tree, class_ib, &names);
    bool none = rc && tree_absent(&p->tree, class_ib);
    json_t *list;

    if (rc && !none) {
        fact_set_unknown(p->machine, "rdma", "/%s: %s", class_ib, fact_errno(rc));
        return;
    }
    list = fact_list(p->machine, "rdma");
    if (none)
        fact_set_text(p->machine, "rdma_why",
                      "/sys/class/infiniband: not there, so no RDMA driver is loaded");
    for (size_t i = 0; i < names.count && i < DEVICES_MAX; i++)
        add_device(p, list, names.name[i]);
    names_free(&names);
}
