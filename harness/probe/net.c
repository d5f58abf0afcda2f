// SPDX-License-Identifier: Apache-2.0
/* Network interfaces. Addresses are not read. */
#include "harness/probe/pci.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hw/nic.h"

static const char class_net[] = "sys/class/net";

enum { ARPHRD_ETHERNET = 1, ARPHRD_IB = 32, ARPHRD_LOOP = 772, INTERFACES_MAX = 4096 };

/* Software interfaces say what they are in uevent's DEVTYPE, or by a folder or file of their own; of
 * the rest a veth has no mark but its peer: it links to another interface than itself. False where
 * the files that would tell lack. */
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
static const char *made_by_driver(const char *driver)
{
    static const struct {
        const char *driver, *nature;
    } known[] = {{"virtio_net", "paravirtual"},
                 {"hv_netvsc", "paravirtual"},
                 {"vif", "paravirtual"},
                 {"xen-netfront", "paravirtual"},
                 {"ibmveth", "paravirtual"}};

    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (!strcmp(driver, known[i].driver))
            return known[i].nature;
    return NULL;
}

bool net_guest_driver(const char *driver)
{
    return made_by_driver(driver) != NULL;
}

/* By the driver, which knows best; then by the PCI function; then as the machine's own. */
static void set_nature(struct probe *p, json_t *nic, const char *path, const char *driver)
{
    const struct pci_device *pci = p->pci ? pci_of_path(p->pci, path) : NULL;
    const char *nature = made_by_driver(driver);
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
    const json_t *node = pci && pci->json ? json_object_get(pci->json, "numa_node") : NULL;
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
    if (json_is_integer(node))
        fact_set_number(nic, "numa_node", json_integer_value(node));
    else
        fact_set_unknown(nic, "numa_node", "%s",
                         node ? fact_string(pci->json, "numa_node_why") : why);
}

static void set_driver(struct probe *p, json_t *nic, const char *path, const char *driver,
                       bool is_virtual)
{
    bool none = is_virtual || tree_absent_at(&p->tree, path, "device");

    fact_set_text_or(nic, "driver", driver, "%s",
                     none ? "none: no device is behind it" : "device/driver could not be read");
}

static void add_interface(struct probe *p, json_t *list, const char *name)
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
    nic = json_object();
    json_array_append_new(list, nic);
    fact_set_text(nic, "name", name);
    set_kind(p, nic, path, is_virtual);
    fact_set_bool(nic, "virtual", is_virtual);
    set_driver(p, nic, path, driver, is_virtual);
    if (is_virtual)
        fact_set_text(nic, "nature", "software");
    else
        set_nature(p, nic, path, driver);
    set_speed(p, nic, path, driver);
    fact_set_file_number(nic, "mtu", &p->tree, tree_join(path, "mtu").s);
    fact_set_line(nic, "state", &p->tree, tree_join(path, "operstate").s);
    set_place(p, nic, path, is_virtual);
}

void probe_network(struct probe *p)
{
    struct names names = {0};
    int rc = tree_list(&p->tree, class_net, &names);
    json_t *list;

    if (rc) {
        fact_set_unknown(p->machine, "network", "/%s: %s", class_net, fact_errno(rc));
        return;
    }
    list = fact_list(p->machine, "network");
    for (size_t i = 0; i < names.count && i < INTERFACES_MAX; i++)
        add_interface(p, list, names.name[i]);
    names_free(&names);
}
