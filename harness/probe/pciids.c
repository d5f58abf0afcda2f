// SPDX-License-Identifier: Apache-2.0
/* Names of PCI vendors and devices, from the machine's own pci.ids. */
#include "harness/probe/pci.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The name at the start of a line "key  name"; text points behind the key. */
static bool take_name(const char *text, char *buf, size_t size)
{
    text += strspn(text, " \t");
    snprintf(buf, size, "%.*s", (int)strcspn(text, "\n"), text);
    return buf[0] != '\0';
}

/* Where the vendor's block starts, behind its id; NULL if it is not listed. */
static const char *vendor_block(const char *ids, unsigned vendor)
{
    char key[16];
    const char *at;

    if (!ids)
        return NULL;
    snprintf(key, sizeof(key), "\n%04x  ", vendor);
    at = strstr(ids, key);
    return at ? at + 5 : NULL;
}

bool pci_vendor_name(const struct pci *pci, unsigned vendor, char *buf, size_t size)
{
    const char *block = vendor_block(pci->ids, vendor);

    return block && take_name(block, buf, size);
}

bool pci_device_name(const struct pci *pci, unsigned vendor, unsigned device, char *buf,
                     size_t size)
{
    const char *line = vendor_block(pci->ids, vendor);
    char key[16];

    snprintf(key, sizeof(key), "\t%04x  ", device);
    while (line && (line = strchr(line, '\n'))) {
        line++;
        if (*line != '\t' && *line != '#')
            return false;
        if (!strncmp(line, key, 7))
            return take_name(line + 5, buf, size);
    }
    return false;
}
