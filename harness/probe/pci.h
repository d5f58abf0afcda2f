/* SPDX-License-Identifier: Apache-2.0 */
/* Every PCI function of the machine, with the bridges above it and the link it has to them. */
#ifndef PLUMB_PROBE_PCI_H
#define PLUMB_PROBE_PCI_H

#include "harness/probe/facts.h"

/* A link as one of its ends shows it. 0: not read, or there is no link. */
struct pci_link {
    double now_gt_s, max_gt_s;
    int now_width, max_width;
    bool untrained; /* the files of what runs now were read, and there is no link */
};

extern const char pci_kind_unknown[];

struct pci_device {
    char address[24];                                      /* "0000:3b:00.0" */
    char *path;                                            /* below the root, links followed */
    long vendor, device, subvendor, subdevice, class_code; /* -1: could not be read */
    long parent; /* index of the bridge above; -1 at the root, or where it is not in the list */
    bool orphan; /* there is a bridge above that is not in the list */
    struct pci_link link;
    const char *kind;   /* "gpu", "ethernet", ..., pci_kind_unknown; NULL: not reported */
    char *driver;       /* NULL: none is known */
    bool may_be_vf;     /* neither known to be a virtual function nor known to be none */
    long physical;      /* index of the function whose virtual one this is by its links; -1 */
    bool no_node;       /* the firmware says that it has no NUMA node */
    int acs_redirect;   /* ports: 1 sends peer traffic to the root, 0 does not, -1 unknown */
    bool link_reported; /* its link to the port above has a finding already */
    json_t *json;       /* borrowed; NULL where not reported */
};

struct pci {
    struct pci_device *device; /* sorted by address, as strcmp does */
    size_t count;
    struct pci_ids *ids;
};

/* 0, or -errno with *pci NULL. */
int pci_load(const struct tree *tree, struct pci **pci);
void pci_free(struct pci *pci);

struct pci_device *pci_find(const struct pci *pci, const char *address);

/* The function that a path below /sys/devices belongs to: its last part that is an address. */
struct pci_device *pci_of_path(const struct pci *pci, const char *path);

/* The last address in a path, whether or not the function is in the list; false where there is
 * none. */
bool pci_path_address(const char *path, char *buf, size_t size);

struct pci_device *pci_parent(const struct pci *pci, const struct pci_device *device);

/* Names from pci.ids; false where the list is not there or does not know. */
bool pci_vendor_name(const struct pci *pci, long vendor, char *buf, size_t size);
bool pci_device_name(const struct pci *pci, long vendor, long device, char *buf, size_t size);

/* What the device is where only guests have such, else NULL. *name: the hypervisor that makes it,
 * or NULL where several do. */
const char *pci_guest_mark(const struct pci_device *device, const char **name);

/*
 * Bytes a link moves in one direction in 1e9 a second: GT/s x lanes / 8 x coding (8b/10b up to 5
 * GT/s, 128b/130b up to 32, 242 of 256 bytes of a flit at 64), before packet headers. 0 where
 * unknown.
 */
double pci_gbytes_per_s(double gt_s, int width);

/* How two functions are near one another, in the words of "nvidia-smi topo -m": PIX, PXB, PHB,
 * NODE, SYS; NULL where it does not show. Both must be reported ones. */
const char *pci_relation(const struct pci *pci, const struct pci_device *a,
                         const struct pci_device *b);

/* Adds "nature" and "because": physical, passthrough, sriov-vf, paravirtual, ... */
void pci_report_nature(struct probe *p, struct pci_device *device);

#endif
