// SPDX-License-Identifier: Apache-2.0
/* Every PCI function of the machine, with the bridges above it and the link it has to them. */
#ifndef PLUMB_PROBE_PCI_H
#define PLUMB_PROBE_PCI_H

#include "harness/probe/facts.h"

/* A link as one of its ends shows it. 0: hidden, or there is no link. */
struct pci_link {
    double now_gt_s, max_gt_s;
    int now_width, max_width;
};

struct pci_device {
    char address[24]; /* "0000:3b:00.0" */
    char *path;       /* below the root, links followed */
    unsigned vendor, device, subvendor, subdevice, class_code;
    long parent; /* index of the bridge above; -1 at the root */
    struct pci_link link;
    const char *kind;   /* "gpu", "ethernet", ...; NULL: not reported */
    int acs_redirect;   /* ports: 1 sends peer traffic to the root, 0 does not, -1 unknown */
    bool link_reported; /* its link to the port above has a finding already */
    json_t *json;       /* borrowed; NULL where not reported */
};

struct pci {
    struct pci_device *device; /* sorted by address, as strcmp does */
    size_t count;
    char *ids; /* text of pci.ids, or NULL */
};

int pci_load(const struct tree *tree, struct pci **pci);
void pci_free(struct pci *pci);

struct pci_device *pci_find(const struct pci *pci, const char *address);

/* The function that a path below /sys/devices belongs to: its last part that is an address. */
struct pci_device *pci_of_path(const struct pci *pci, const char *path);

struct pci_device *pci_parent(const struct pci *pci, const struct pci_device *device);

/* Names from pci.ids; false where the list is not there or does not know. */
bool pci_vendor_name(const struct pci *pci, unsigned vendor, char *buf, size_t size);
bool pci_device_name(const struct pci *pci, unsigned vendor, unsigned device, char *buf,
                     size_t size);

/*
 * Bytes a link moves in one direction in 1e9 a second: GT/s x lanes / 8 x coding (8b/10b up to 5 GT/s,
 * 128b/130b up to 32, 242 of 256 bytes of a flit at 64), before packet headers. 0 where unknown.
 */
double pci_gbytes_per_s(double gt_s, int width);

/* Adds "link", "uplinks", "path_gbytes_per_s" and, for lost lanes or speed, a finding. */
void pci_report_links(struct probe *p, struct pci_device *device);

/* How two functions are near one another, in the words of "nvidia-smi topo -m": PIX, PXB, PHB, NODE,
 * SYS; NULL where it does not show. Both must be reported ones. */
const char *pci_relation(const struct pci *pci, const struct pci_device *a,
                         const struct pci_device *b);

/* Adds "nature" and "because": physical, passthrough, sriov-vf, paravirtual, ... */
void pci_report_nature(struct probe *p, struct pci_device *device);

#endif
