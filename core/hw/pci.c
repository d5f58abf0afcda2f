/* SPDX-License-Identifier: Apache-2.0 */
/* PCI functions: see pci.h. */
#include "core/hw/pci.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hw/sys.h"

bool pci_is_address(const char *text)
{
    unsigned domain, bus, device, function;
    int end = 0;

    return strlen(text) < PCI_ADDRESS &&
           sscanf(text, "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &end) == 4 &&
           !text[end];
}

size_t pci_function_of(const char *path, size_t n, char address[PCI_ADDRESS])
{
    while (n > 0) {
        size_t start = n;

        while (start > 0 && path[start - 1] != '/')
            start--;
        snprintf(address, PCI_ADDRESS, "%.*s", (int)(n - start), path + start);
        if (n - start < PCI_ADDRESS && pci_is_address(address))
            return n;
        n = start ? start - 1 : 0;
    }
    address[0] = '\0';
    return 0;
}

double pci_speed_gt_s(const char *root, const char *folder, const char *file)
{
    char line[64];
    double gt_s;

    if (sys_line(root, line, sizeof(line), "%s/%s", folder, file))
        return -1;
    gt_s = atof(line);
    return gt_s > 0 && gt_s < 1000 ? gt_s : 0;
}

int pci_width(const char *root, const char *folder, const char *file)
{
    long long width;

    if (sys_number(root, &width, "%s/%s", folder, file))
        return -1;
    return width > 0 && width <= 32 ? (int)width : 0;
}

/* Configuration space: PCI Local Bus Specification 3.0, chapter 6; PCI Express Base Specification,
 * chapter 7. Above the first 64 bytes root only reads. */
int pci_control(const char *root, const char *folder)
{
    enum { STATUS = 6, HAS_LIST = 0x10, FIRST = 0x34, PCI_EXPRESS = 0x10, DEVICE_CONTROL = 8 };
    unsigned char config[256];
    size_t n, at;

    if (sys_read(root, (char *)config, sizeof(config), &n, "%s/config", folder) || n <= 64 ||
        !(config[STATUS] & HAS_LIST))
        return -1;
    at = config[FIRST] & 0xfc;
    for (int hops = 0; at && at + DEVICE_CONTROL + 2 <= n && hops < 48; hops++) {
        if (config[at] == PCI_EXPRESS)
            return config[at + DEVICE_CONTROL] | config[at + DEVICE_CONTROL + 1] << 8;
        at = config[at + 1] & 0xfc;
    }
    return -1;
}

bool pci_is_virtual(const char *root, const char *folder)
{
    char name[PCI_ADDRESS];

    return folder[0] && !sys_link(root, name, sizeof(name), "%s/physfn", folder);
}

int pci_node(const char *root, const char *folder)
{
    long long node;

    return !folder[0] || sys_number(root, &node, "%s/numa_node", folder) || node < 0 ? -1
                                                                                     : (int)node;
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

/* Functions on the path behind its first n bytes. */
static unsigned functions_behind(const char *path, size_t n)
{
    char address[PCI_ADDRESS];
    unsigned count = 0;

    for (size_t end = strlen(path); (end = pci_function_of(path, end, address)) > n; count++)
        end -= strlen(address);
    return count;
}

const char *pci_nearness(const char *a, long long node_a, const char *b, long long node_b)
{
    size_t same = 0, bridge = host_bridge_length(a);
    char address[PCI_ADDRESS];

    for (size_t i = 0; a[i] && a[i] == b[i]; i++)
        same = a[i] == '/' ? i : same;
    /* A function in common is the bridge above both. From it, downstream port and function: two
     * steps away from the middle of one switch. */
    if (pci_function_of(a, same, address))
        return functions_behind(a, same) <= 2 && functions_behind(b, same) <= 2 ? "PIX" : "PXB";
    if (bridge && bridge == host_bridge_length(b) && !strncmp(a, b, bridge))
        return "PHB";
    if (node_a < 0 || node_b < 0)
        return NULL;
    return node_a == node_b ? "NODE" : "SYS";
}
