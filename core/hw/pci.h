/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PCI functions as /sys shows them, by their folders ("sys/devices/pci0000:3a/0000:3a:00.0/
 * 0000:3b:00.0", links followed). `root`: see sys.h.
 */
#ifndef PLUMB_CORE_HW_PCI_H
#define PLUMB_CORE_HW_PCI_H

#include <stdbool.h>
#include <stddef.h>

enum { PCI_ADDRESS = 24 }; /* "0000:3b:00.0"; the domain may have more digits (VMD has 10000) */

bool pci_is_address(const char *text);

/* The last function within the first n bytes of a path: its address, and the length of the path to
 * its folder; 0: there is none, and the address is "". */
size_t pci_function_of(const char *path, size_t n, char address[PCI_ADDRESS]);

/* "16.0 GT/s PCIe" in that file; 0 for "Unknown" and for what is no speed. -1: not read. */
double pci_speed_gt_s(const char *root, const char *folder, const char *file);
/* Lanes; 0 for 0, 63 and 255, which mean that there is no link. -1: not read. */
int pci_width(const char *root, const char *folder, const char *file);

/* Device control of the PCI Express capability: bits 5 to 7 the largest payload, 12 to 14 the
 * largest read request (both 128 bytes << value), 4 relaxed ordering. -1: root only reads it, or it
 * has none. */
int pci_control(const char *root, const char *folder);

/* Has it a link to the physical function that it is a virtual one of? */
bool pci_is_virtual(const char *root, const char *folder);

/* numa_node of a folder; -1: none, or not told. */
int pci_node(const char *root, const char *folder);

/* How near two functions are by their folders, in the words of "nvidia-smi topo -m": PIX one
 * switch, PXB several, PHB one host bridge, NODE one NUMA node, SYS several; NULL where the nodes,
 * -1 not known, do not tell. */
const char *pci_nearness(const char *a, long long node_a, const char *b, long long node_b);

#endif
