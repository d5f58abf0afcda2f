/* SPDX-License-Identifier: Apache-2.0 */
/* How far an RDMA device is from another PCI device: see nic_way() in nic.h. */
#include <stdio.h>
#include <string.h>

#include "core/net/nic.h"
#include "core/net/nic_sys.h"

#define DEPTH_MAX 24

/* What a device hangs below: "pci0000:3a", its bridges, itself. */
struct chain {
    char text[SYS_PATH];
    const char *part[DEPTH_MAX];
    unsigned n;
};

static void read_chain(const char *root, const char *address, struct chain *c)
{
    static const char below[] = "devices/";
    char *save = NULL, *at;

    c->n = 0;
    if (sys_link(root, c->text, sizeof(c->text), "sys/bus/pci/devices/%s", address) ||
        !(at = strstr(c->text, below)))
        return;
    for (at = strtok_r(at + strlen(below), "/", &save); at && c->n < DEPTH_MAX;
         at = strtok_r(NULL, "/", &save))
        c->part[c->n++] = at;
}

static long long node_of(const char *root, const char *address)
{
    long long node;

    return sys_number(root, &node, "sys/bus/pci/devices/%s/numa_node", address) ? -1 : node;
}

const char *nic_way(const char *root, const char *name, const char *address)
{
    char device[NIC_NAME];
    unsigned port, same = 0;
    struct nic_port np;
    struct chain a, b;

    if (!*address || nic_parse_port(root, name, device, &port) ||
        nic_read_port(root, device, port, &np) || np.software || !np.address[0])
        return "";
    read_chain(root, np.address, &a);
    read_chain(root, address, &b);
    if (!a.n || !b.n)
        return "";
    while (same < a.n && same < b.n && !strcmp(a.part[same], b.part[same]))
        same++;
    if (same > 1) /* bridges passed: a switch has two, the one above it is in common */
        return a.n - same <= 2 && b.n - same <= 2 ? "PIX" : "PXB";
    if (same)
        return "PHB";
    long long one = node_of(root, np.address), other = node_of(root, address);
    return one < 0 || other < 0 ? "" : one == other ? "NODE" : "SYS";
}
