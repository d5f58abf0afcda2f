/* SPDX-License-Identifier: Apache-2.0 */
/* Network interfaces. Addresses are not read. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hw/nic.h"
#include "harness/probe/facts.h"

static const char class_net[] = "sys/class/net";

enum { INTERFACES_MAX = 4096 };

static void set_speed(struct probe *p, json_t *nic, const char *path, const char *driver)
{
    const char *hides = nic_rate_note(driver, true), *nominal = nic_rate_note(driver, false);
    double gbits = nic_speed_gbps(p->root, path);

    fact_set(nic, "speed_gbits_per_s", gbits > 0 ? fact_real(gbits) : NULL, "%s",
             hides ? hides
                   : "no speed could be read: link down, a software interface, or a driver that "
                     "gives none");
    if (gbits > 0 && nominal)
        fact_set_text(nic, "speed_why", nominal);
}

/* Network devices of hypervisors that do not come over PCI. */
bool net_guest_driver(const char *driver)
{
    return fact_fits("virtio_net|hv_netvsc|vif|xen-netfront|ibmveth", driver);
}

/* By the driver, which knows best; then by the PCI function; then as the machine's own. */
static void set_nature(struct probe *p, json_t *nic, const char *path, const char *driver)
{
    const struct pci_device *pci = pci_of_path(p->pci, path);
    const char *nature = net_guest_driver(driver) ? "paravirtual" : NULL;
    char address[PCI_ADDRESS];
    bool on_pci = pci_function_of(path, strlen(path), address);

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

/* why: it has none, where it has none. */
static void set_place(struct probe *p, json_t *device, const char *path, const char *why)
{
    const struct pci_device *pci = pci_of_path(p->pci, path);
    const json_t *own = pci ? pci->json : NULL, *node = json_object_get(own, "numa_node");
    char address[PCI_ADDRESS];

    if (pci_function_of(path, strlen(path), address))
        why = "its PCI function could not be read";
    fact_set_text_or(device, "pci", address, "%s", why);
    fact_set(device, "numa_node", json_is_integer(node) ? json_copy((json_t *)node) : NULL, "%s",
             own ? fact_string(own, "numa_node_why") : why);
}

static void add_interface(struct probe *p, json_t *list, const char *name, const json_t *asked,
                          const char *interrupts)
{
    char path[SYS_PATH], driver[SYS_LINE] = "", kind[64];
    int rc = sys_resolve(p->root, path, sizeof(path), "%s/%s", class_net, name);
    bool is_virtual;
    struct stat st;
    json_t *nic;

    /* bonding_masters is a file among the folders. */
    if (rc || sys_stat(p->root, &st, "%s", path) || !S_ISDIR(st.st_mode))
        return;
    is_virtual = nic_is_virtual(path);
    if (!is_virtual)
        sys_link(p->root, driver, sizeof(driver), "%s/device/driver", path);
    nic = fact_append(list);
    fact_set_text(nic, "name", name);
    rc = nic_kind(p->root, path, kind, sizeof(kind));
    if (rc)
        fact_set_unknown(nic, "kind", "/%s/type: %s", path, fact_errno(rc));
    else
        fact_set_text_or(nic, "kind", kind,
                         "/%s: neither uevent nor another mark of its kind could be read", path);
    fact_set_bool(nic, "virtual", is_virtual);
    bool none = is_virtual || probe_absent(p, "%s/device", path);

    fact_set_text_or(nic, "driver", driver, "%s",
                     none ? "none: no device is behind it" : "device/driver could not be read");
    if (is_virtual)
        fact_set_text(nic, "nature", "software");
    else
        set_nature(p, nic, path, driver);
    set_speed(p, nic, path, driver);
    fact_set_file(p, nic, "mtu", FACT_NUMBER, "%s/mtu", path);
    fact_set_file(p, nic, "state", FACT_LINE, "%s/operstate", path);
    set_place(p, nic, path,
              is_virtual                           ? "a software interface has no place"
              : !strncmp(path, "sys/devices/", 12) ? "not on the PCI bus"
                                                   : "where its device is does not show");
    net_fill_state(p, nic, path, asked, interrupts);
}

void probe_network(struct probe *p)
{
    struct names names = {0};
    int rc = sys_list(p->root, &names, "%s", class_net);
    json_t *list, *asked;
    char *interrupts;

    if (rc) {
        fact_set_unknown(p->machine, "network", "/%s: %s", class_net, fact_errno(rc));
        return;
    }
    list = fact_list(p->machine, "network");
    asked = net_asked(p, "");
    interrupts = net_interrupts(p);
    for (size_t i = 0; i < names.count && i < INTERFACES_MAX; i++)
        add_interface(p, list, names.name[i], asked, interrupts);
    free(interrupts);
    json_decref(asked);
    names_free(&names);
}

/* RDMA devices and their ports. GIDs are told by index and type only: they hold addresses. */

static const char class_ib[] = "sys/class/infiniband";

enum { DEVICES_MAX = 512, GIDS_MAX = 256 };

/* "100 Gb/sec (4X EDR)". */
static void set_rate(struct probe *p, json_t *port, const char *path)
{
    char line[SYS_LINE], *open;
    int rc = sys_line(p->root, line, sizeof(line), "%s/rate", path);
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

/* Slots without an address hold zeros. One that cannot be read may hold an address. */
static bool add_gid(struct probe *p, json_t *list, const char *path, const char *index)
{
    char line[SYS_LINE];
    const char *scope;
    json_t *gid;
    int rc = sys_line(p->root, line, sizeof(line), "%s/gids/%s", path, index);

    if (rc)
        return rc == -EINVAL; /* the kernel's answer for a slot that is not in use */
    if (strspn(line, "0:") == strlen(line))
        return true;
    /* What of an address may be told: whether it is there, and whether it maps an IPv4 address. */
    scope = !strncmp(line, "0000:0000:0000:0000:0000:ffff:", 30) ? "ipv4"
            : !strncmp(line, "fe80:", 5)                         ? "link-local"
                                                                 : "other";
    gid = fact_append(list);
    fact_set_number(gid, "index", digits_number(index));
    fact_set_file(p, gid, "type", FACT_LINE, "%s/gid_attrs/types/%s", path, index);
    fact_set_text(gid, "scope", scope);
    fact_set_file(p, gid, "netdev", FACT_LINE, "%s/gid_attrs/ndevs/%s", path, index);
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
        sys_list(p->root, &slots, "%s/%s", path, folders[f]);
        for (size_t i = 0; i < slots.count; i++)
            all = all && sys_exists(p->root, "%s/gids/%s", path, slots.name[i]);
        names_free(&slots);
    }
    return all;
}

static void set_gids(struct probe *p, json_t *port, const char *path)
{
    json_t *list = json_array();
    struct path folder = path_join(path, "gids");
    struct names names;
    int rc = sys_list(p->root, &names, "%s", folder.s);
    bool all = !rc && has_all_slots(p, path);

    for (size_t i = 0; i < names.count && i < GIDS_MAX; i++)
        if (digits_number(names.name[i]) >= 0)
            all = add_gid(p, list, path, names.name[i]) && all;
    fact_set_if(port, "gids", all, list, "/%s: %s", folder.s,
                rc ? fact_errno(rc) : "not all of them could be read");
    names_free(&names);
}

/* What a port counts itself, and what its driver counts. */
void rdma_fill_counters(const struct probe *p, json_t *port, const char *path)
{
    static const char *const own[] = {"port_xmit_packets",   "port_rcv_packets", "port_xmit_wait",
                                      "port_xmit_discards",  "port_rcv_errors",  "symbol_error",
                                      "link_error_recovery", "link_downed",      NULL};
    static const char *const drivers[] = {
        "out_of_sequence",   "packet_seq_err", "local_ack_timeout_err",
        "rnr_nak_retry_err", "out_of_buffer",  "np_ecn_marked_roce_packets",
        "np_cnp_sent",       "rp_cnp_handled", NULL};

    fact_set_counters(p, port, "counters", own, path_join(path, "counters").s);
    fact_set_counters(p, port, "hw_counters", drivers, path_join(path, "hw_counters").s);
}

static void set_roce_mtu(struct probe *p, json_t *port)
{
    const char *layer = fact_string(port, "link_layer"), *netdev = "";
    bool ethernet = fact_is(port, "link_layer", "Ethernet");
    const json_t *nic;
    unsigned mtu;

    FACT_EACH (json_object_get(port, "gids"), gid)
        netdev = *netdev ? netdev : fact_name(gid, "netdev");
    nic = fact_one_of(json_object_get(p->machine, "network"), "name", netdev);
    mtu = nic_roce_mtu((uint32_t)fact_integer(nic, "mtu", 0));
    fact_set(port, "roce_mtu_bytes", ethernet && mtu ? json_integer(mtu) : NULL, "%s",
             !layer      ? "its link layer is not known"
             : !ethernet ? "no RoCE: the subnet manager sets the MTU"
                         : "the MTU of its interface is not known");
}

static void add_ports(struct probe *p, json_t *device, const char *path)
{
    static const struct fact_file states[] = {{"state", "state", FACT_BEHIND},
                                              {"physical_state", "phys_state", FACT_BEHIND}};
    struct path ports = path_join(path, "ports");
    struct names names;
    json_t *list, *port;
    int rc = sys_list(p->root, &names, "%s", ports.s);

    if (rc) {
        fact_set_unknown(device, "ports", "/%s: %s", ports.s, fact_errno(rc));
        return;
    }
    list = fact_list(device, "ports");
    for (size_t i = 0; i < names.count && i < DEVICES_MAX; i++) {
        struct path at = path_join(ports.s, names.name[i]);

        if (digits_number(names.name[i]) < 0)
            continue;
        port = fact_append(list);
        fact_set_number(port, "port", digits_number(names.name[i]));
        fact_set_files(p, port, at.s, FACT_FILES(states));
        set_rate(p, port, at.s);
        fact_set_file(p, port, "link_layer", FACT_LINE, "%s/link_layer", at.s);
        set_gids(p, port, at.s);
        set_roce_mtu(p, port);
        rdma_fill_counters(p, port, at.s);
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
    char line[SYS_LINE];

    fact_say(because, "it has no PCI function: a device in software");
    if (!sys_line(p->root, line, sizeof(line), "%s/parent", path)) {
        fact_set_text(device, "driver", "rxe");
        fact_say(because, "\"parent\" names %s, as soft-RoCE (rxe) does", line);
    } else if (!sys_line(p->root, line, sizeof(line), "%s/node_type", path) &&
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
    bool none = probe_absent(p, "%s/driver", pci->path);

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
    struct path folder = path_join(pci ? pci->path : "", "net");
    int rc = pci ? sys_list(p->root, &names, "%s", folder.s) : 0;
    json_t *list;

    if (!pci)
        fact_set_unknown(device, "netdevs", "no PCI function to look at");
    else if (rc && !probe_absent(p, "%s", folder.s))
        fact_set_unknown(device, "netdevs", "/%s: %s", folder.s, fact_errno(rc));
    else {
        list = fact_list(device, "netdevs");
        for (size_t i = 0; i < names.count && i < DEVICES_MAX; i++)
            json_array_append_new(list, fact_text(names.name[i]));
    }
    names_free(&names);
}

static void add_device(struct probe *p, json_t *list, const char *name)
{
    char path[SYS_PATH];
    struct pci_device *pci;
    json_t *device;

    if (sys_resolve(p->root, path, sizeof(path), "%s/%s", class_ib, name))
        return;
    pci = pci_of_path(p->pci, path);
    device = fact_append(list);
    fact_set_text(device, "name", name);
    if (pci)
        set_hardware(p, device, pci);
    else if (strstr(path, "/virtual/") || sys_exists(p->root, "%s/parent", path))
        set_software(p, device, path);
    else {
        /* Neither a PCI function that was read, nor a path where the kernel keeps devices in software. */
        static const char why[] = "where its device is does not show";

        fact_set_unknown(device, "driver", "%s", why);
        fact_set_text(device, "nature", "unknown");
        fact_set_text(device, "nature_why", why);
    }
    fact_set_file(p, device, "node_type", FACT_BEHIND, "%s/node_type", path);
    fact_set_file(p, device, "firmware", FACT_LINE, "%s/fw_ver", path);
    set_place(p, device, path, "no PCI function");
    set_netdevs(p, device, pci);
    add_ports(p, device, path);
}

void probe_rdma(struct probe *p)
{
    struct names names = {0};
    int rc = sys_list(p->root, &names, "%s", class_ib);
    bool none = rc && probe_absent(p, "%s", class_ib);
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
