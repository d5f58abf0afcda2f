// SPDX-License-Identifier: Apache-2.0
/* RDMA devices and their ports. GIDs are told by index and type only: they hold addresses. */
#include "harness/probe/pci.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        fact_set_unknown(port, "rate_gbits_per_s", "/%s/rate: %s", path,
                         rc ? fact_errno(rc) : "not a rate");
        fact_set_unknown(port, "lanes", "/%s/rate: %s", path, rc ? fact_errno(rc) : "not a rate");
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

/* What stands beside an address under gid_attrs. */
static void set_gid_attribute(struct probe *p, json_t *gid, const char *key, const char *path,
                              const char *folder, const char *index)
{
    struct path file = tree_join(tree_join(path, folder).s, index);

    fact_set_line(gid, key, &p->tree, file.s);
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
    gid = json_object();
    json_array_append_new(list, gid);
    fact_set_number(gid, "index", digits_number(index));
    set_gid_attribute(p, gid, "type", path, "gid_attrs/types", index);
    fact_set_text(gid, "scope", scope);
    set_gid_attribute(p, gid, "netdev", path, "gid_attrs/ndevs", index);
    return true;
}

/* Each slot has its type and interface beside it: one of which only these are there was not read. */
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
    if (all)
        json_object_set(port, "gids", list);
    else
        fact_set_unknown(port, "gids", "/%s: %s", folder.s,
                         rc ? fact_errno(rc) : "not all of them could be read");
    json_decref(list);
    names_free(&names);
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
        port = json_object();
        json_array_append_new(list, port);
        fact_set_number(port, "port", digits_number(names.name[i]));
        set_after_colon(p, port, "state", at.s, "state");
        set_after_colon(p, port, "physical_state", at.s, "phys_state");
        set_rate(p, port, at.s);
        fact_set_line(port, "link_layer", &p->tree, tree_join(at.s, "link_layer").s);
        set_gids(p, port, at.s);
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

/* Neither a PCI function that was read, nor a path where the kernel keeps devices in software. */
static void set_unplaced(json_t *device)
{
    static const char why[] = "where its device is does not show";

    fact_set_unknown(device, "driver", "%s", why);
    fact_set_text(device, "nature", "unknown");
    fact_set_text(device, "nature_why", why);
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

static void set_place(json_t *device, const char *path, const struct pci_device *pci)
{
    const json_t *node = pci && pci->json ? json_object_get(pci->json, "numa_node") : NULL;
    char address[TREE_LINE] = "";
    bool on_pci = pci_path_address(path, address, sizeof(address));
    const char *why = on_pci ? "its PCI function could not be read" : "no PCI function";

    fact_set_text_or(device, "pci", on_pci ? address : NULL, "%s", why);
    if (json_is_integer(node))
        fact_set_number(device, "numa_node", json_integer_value(node));
    else
        fact_set_unknown(device, "numa_node", "%s",
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
    device = json_object();
    json_array_append_new(list, device);
    fact_set_text(device, "name", name);
    if (pci)
        set_hardware(p, device, pci);
    else if (strstr(path, "/virtual/") || tree_exists_at(&p->tree, path, "parent"))
        set_software(p, device, path);
    else
        set_unplaced(device);
    set_after_colon(p, device, "node_type", path, "node_type");
    fact_set_line(device, "firmware", &p->tree, tree_join(path, "fw_ver").s);
    set_place(device, path, pci);
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
