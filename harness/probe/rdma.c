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

    if (tree_line_at(&p->tree, path, file, line, sizeof(line))) {
        fact_set_unknown(json, key, "/%s/%s: not there", path, file);
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
        return;
    }
    fact_set_real(port, "rate_gbits_per_s", rate);
    open = strchr(line, '(');
    if (open)
        open[strcspn(open, ")")] = '\0';
    fact_set_text(port, "lanes", open ? open + 1 : NULL);
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

static void set_gids(struct probe *p, json_t *port, const char *path)
{
    json_t *list = fact_list(port, "gids"), *gid;
    char file[64], line[TREE_LINE];
    struct names names = {0};

    tree_list(&p->tree, tree_join(path, "gids").s, &names);
    for (size_t i = 0; i < names.count && i < GIDS_MAX; i++) {
        const char *scope;

        snprintf(file, sizeof(file), "gids/%.40s", names.name[i]);
        if (tree_line_at(&p->tree, path, file, line, sizeof(line)) || !(scope = gid_scope(line)))
            continue;
        gid = json_object();
        json_array_append_new(list, gid);
        fact_set_number(gid, "index", atoll(names.name[i]));
        snprintf(file, sizeof(file), "gid_attrs/types/%.40s", names.name[i]);
        fact_set_text(gid, "type",
                      tree_line_at(&p->tree, path, file, line, sizeof(line)) ? NULL : line);
        fact_set_text(gid, "scope", scope);
        snprintf(file, sizeof(file), "gid_attrs/ndevs/%.40s", names.name[i]);
        fact_set_text(gid, "netdev",
                      tree_line_at(&p->tree, path, file, line, sizeof(line)) ? NULL : line);
    }
    names_free(&names);
}

static void add_ports(struct probe *p, json_t *device, const char *path)
{
    json_t *list = fact_list(device, "ports"), *port;
    struct names names = {0};

    tree_list(&p->tree, tree_join(path, "ports").s, &names);
    for (size_t i = 0; i < names.count && i < DEVICES_MAX; i++) {
        struct path ports = tree_join(path, "ports");
        struct path at = tree_join(ports.s, names.name[i]);

        port = json_object();
        json_array_append_new(list, port);
        fact_set_number(port, "port", atoll(names.name[i]));
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
    char driver[TREE_LINE];

    fact_set_text(device, "driver",
                  tree_link_at(&p->tree, pci->path, "driver", driver, sizeof(driver)) ? NULL
                                                                                      : driver);
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
    json_t *list = fact_list(device, "netdevs");
    struct names names = {0};

    if (!pci)
        return;
    tree_list(&p->tree, tree_join(pci->path, "net").s, &names);
    for (size_t i = 0; i < names.count && i < DEVICES_MAX; i++)
        json_array_append_new(list, fact_text(names.name[i]));
    names_free(&names);
}

static void add_device(struct probe *p, json_t *list, const char *name)
{
    char path[TREE_PATH];
    struct pci_device *pci;
    json_t *device, *node;

    if (tree_resolve(&p->tree, tree_join(class_ib, name).s, path, sizeof(path)))
        return;
    pci = p->pci ? pci_of_path(p->pci, path) : NULL;
    device = json_object();
    json_array_append_new(list, device);
    fact_set_text(device, "name", name);
    if (pci)
        set_hardware(p, device, pci);
    else
        set_software(p, device, path);
    set_after_colon(p, device, "node_type", path, "node_type");
    fact_set_line(device, "firmware", &p->tree, tree_join(path, "fw_ver").s);
    fact_set_text(device, "pci", pci ? pci->address : NULL);
    node = pci && pci->json ? json_object_get(pci->json, "numa_node") : NULL;
    json_object_set_new(device, "numa_node", node ? json_incref(node) : json_null());
    set_netdevs(p, device, pci);
    add_ports(p, device, path);
}

void probe_rdma(struct probe *p)
{
    struct names names = {0};
    int rc = tree_list(&p->tree, class_ib, &names);
    json_t *list = fact_list(p->machine, "rdma");

    if (rc)
        fact_set_text(p->machine, "rdma_why",
                      "/sys/class/infiniband: not there, so no RDMA driver is loaded");
    for (size_t i = 0; i < names.count && i < DEVICES_MAX; i++)
        add_device(p, list, names.name[i]);
    names_free(&names);
}
