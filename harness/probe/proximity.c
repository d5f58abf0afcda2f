// SPDX-License-Identifier: Apache-2.0
/*
 * Which network adapter is near which GPU, in the words of "nvidia-smi topo -m": PIX (one switch), PXB
 * (several switches), PHB (one host bridge), NODE (one NUMA node), SYS (between NUMA nodes).
 */
#include "harness/probe/pci.h"

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

/* "sys/devices/pci0000:3a": the host bridge. */
static bool same_host_bridge(const struct pci_device *a, const struct pci_device *b)
{
    size_t n = strcspn(a->path, "/");

    n += 1 + strcspn(a->path + n + 1, "/");
    n += 1 + strcspn(a->path + n + 1, "/");
    return !strncmp(a->path, b->path, n + 1);
}

const char *pci_relation(const struct pci *pci, const struct pci_device *a,
                         const struct pci_device *b)
{
    long long nodes[] = {fact_integer(a->json, "numa_node", -1),
                         fact_integer(b->json, "numa_node", -1)};
    int from_a, from_b;

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
        fact_set_unknown(pair, "relation", "different host bridges and no NUMA node for one");
}

void probe_proximity(struct probe *p)
{
    json_t *list;

    if (p->guest) {
        fact_set_unknown(
            p->machine, "proximity",
            "the hypervisor makes up the PCI tree: which network adapter is near which "
            "GPU does not show");
        return;
    }
    list = fact_list(p->machine, "proximity");
    for (size_t g = 0; p->pci && g < p->pci->count; g++)
        for (size_t n = 0; is_kind(&p->pci->device[g], "gpu") && n < p->pci->count; n++)
            if (is_nic(&p->pci->device[n]) && json_array_size(list) < PAIRS_MAX)
                add_pair(p, list, &p->pci->device[g], &p->pci->device[n]);
}
