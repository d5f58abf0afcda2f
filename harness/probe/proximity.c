// SPDX-License-Identifier: Apache-2.0
/*
 * Which network adapter is near which GPU, in the words of "nvidia-smi topo -m": PIX (one switch), PXB
 * (several switches), PHB (one host bridge), NODE (one NUMA node), SYS (between NUMA nodes).
 */
#include "harness/probe/pci.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { PAIRS_MAX = 4096 };

static bool is_kind(const struct pci_device *d, const char *kind)
{
    return d->kind && !strcmp(d->kind, kind);
}

/* Virtual functions stand where their physical function stands, which is in the list. */
static bool is_nic(const struct pci_device *d)
{
    return (is_kind(d, "infiniband") || is_kind(d, "ethernet") || is_kind(d, "network")) &&
           strcmp(fact_string(d->json, "nature"), "sriov-vf");
}

/* The bridge above both; *steps is how many bridges were passed from a. NULL: none below the root. */
static const struct pci_device *common_bridge(const struct pci *pci, const struct pci_device *a,
                                              const struct pci_device *b, int *steps)
{
    *steps = 0;
    for (const struct pci_device *up = pci_parent(pci, a); up; up = pci_parent(pci, up)) {
        ++*steps;
        for (const struct pci_device *other = pci_parent(pci, b); other;
             other = pci_parent(pci, other))
            if (other == up)
                return up;
    }
    return NULL;
}

/* The length up to the last host bridge, as in "sys/devices/pci0000:3a" or "sys/devices/platform/
 * 1ffe80000.pcie/pci0004:00"; 0 where the path shows none. */
static size_t host_bridge_length(const char *path)
{
    size_t length = 0;

    for (const char *at = path; (at = strstr(at, "/pci")); at++)
        if (isxdigit((unsigned char)at[4]))
            length = (size_t)(at - path) + 1 + strcspn(at + 1, "/");
    return length;
}

static bool same_host_bridge(const struct pci_device *a, const struct pci_device *b)
{
    size_t n = host_bridge_length(a->path);

    return n && n == host_bridge_length(b->path) && !strncmp(a->path, b->path, n);
}

/* Whether the way up is whole; a step that is missing could be the bridge above both. */
static bool has_way(const struct pci *pci, const struct pci_device *d)
{
    for (; d; d = pci_parent(pci, d))
        if (d->orphan)
            return false;
    return true;
}

const char *pci_relation(const struct pci *pci, const struct pci_device *a,
                         const struct pci_device *b)
{
    long long nodes[] = {fact_integer(a->json, "numa_node", -1),
                         fact_integer(b->json, "numa_node", -1)};
    int from_a, from_b;

    if (!has_way(pci, a) || !has_way(pci, b))
        return NULL;
    if (common_bridge(pci, a, b, &from_a)) {
        common_bridge(pci, b, a, &from_b);
        /* Downstream port and upstream port: two steps to the middle of one switch. */
        return from_a <= 2 && from_b <= 2 ? "PIX" : "PXB";
    }
    if (same_host_bridge(a, b))
        return "PHB";
    if (nodes[0] < 0 || nodes[1] < 0)
        return NULL;
    return nodes[0] == nodes[1] ? "NODE" : "SYS";
}

static void add_pair(struct probe *p, json_t *list, const struct pci_device *gpu,
                     const struct pci_device *nic)
{
    json_t *pair = json_object();
    const char *how = pci_relation(p->pci, gpu, nic);

    json_array_append_new(list, pair);
    fact_set_text(pair, "gpu", gpu->address);
    fact_set_text(pair, "nic", nic->address);
    if (how)
        fact_set_text(pair, "relation", how);
    else
        fact_set_unknown(pair, "relation", "%s",
                         has_way(p->pci, gpu) && has_way(p->pci, nic)
                             ? "different host bridges and no NUMA node for one"
                             : "a port above one of them is not in the list of devices");
}

void probe_proximity(struct probe *p)
{
    json_t *list;

    if (!p->pci || !probe_on_metal(p)) {
        fact_set_unknown(
            p->machine, "proximity", "%s",
            !p->pci ? "/sys/bus/pci/devices could not be read"
            : p->guest
                ? "the hypervisor makes up the PCI tree: which network adapter is near which "
                  "GPU does not show"
                : "whether a hypervisor made up the PCI tree is not known");
        return;
    }
    list = fact_list(p->machine, "proximity");
    for (size_t g = 0; g < p->pci->count && json_array_size(list) < PAIRS_MAX; g++)
        for (size_t n = 0; is_kind(&p->pci->device[g], "gpu") && n < p->pci->count; n++)
            if (is_nic(&p->pci->device[n]) && json_array_size(list) < PAIRS_MAX)
                add_pair(p, list, &p->pci->device[g], &p->pci->device[n]);
    for (size_t i = 0; i < p->pci->count; i++)
        if (is_kind(&p->pci->device[i], pci_kind_unknown))
            fact_set_text(p->machine, "proximity_why",
                          "what some PCI functions are could not be read");
}
