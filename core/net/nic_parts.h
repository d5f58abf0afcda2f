/* SPDX-License-Identifier: Apache-2.0 */
/* What nic.c, nic_rdma.c and nic_wire.c share. Others use nic.h. */
#ifndef PLUMB_CORE_NET_NIC_PARTS_H
#define PLUMB_CORE_NET_NIC_PARTS_H

#include <stddef.h>

#include "core/net/net.h"

/* The PCI function on the way that a link of /sys/class goes: its address, and its folder as "sys/devices/..."; both "" where there
 * is none. */
void nic_pci_function(const char *target, char address[24], char *folder, size_t len);

/* numa_node of a device's folder; -1: none, or not told. */
int nic_node(const char *root, const char *folder);

/* nic_fill() of any root. */
int nic_fill_at(const char *root, struct net_rail *r, const char *interface);

/* The link of the PCI function at that folder ("": none), of this driver. */
struct net_pcie nic_pcie(const char *root, const char *folder, const char *driver);

#endif
