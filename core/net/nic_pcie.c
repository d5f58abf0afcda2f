/* SPDX-License-Identifier: Apache-2.0 */
/* The PCIe link of a network card: see nic.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/net/nic.h"
#include "core/net/nic_parts.h"
#include "core/net/nic_sys.h"

/* Configuration space: PCI Local Bus Specification 3.0, chapter 6; PCI Express Base Specification, chapter 7. */
enum {
    STATUS = 6,
    STATUS_HAS_LIST = 0x10,
    FIRST_CAPABILITY = 0x34,
    CAPABILITY_PCIE = 0x10,
    DEVICE_CONTROL = 8, /* in that capability; its bits 5 to 7 are the largest payload */
    LEAST_PAYLOAD = 128,
    CONFIG_BYTES = 256,
    CAPABILITIES_MAX = 48,
};

/* A hypervisor's own devices: what they say of a link is made up. Those of nic_rate_note() are, too. */
static bool is_paravirtual(const char *driver)
{
    static const char *const made_up[] = {"efa", "erdma", "gve", "mana"};

    for (size_t i = 0; i < sizeof(made_up) / sizeof(*made_up); i++)
        if (!strcmp(driver, made_up[i]))
            return true;
    return nic_rate_note(driver, true) || nic_rate_note(driver, false);
}

/* Above the first 64 bytes root only reads. */
static uint32_t payload_of(const char *root, const char *folder)
{
    unsigned char config[CONFIG_BYTES];
    FILE *f = sys_open(root, "%s/config", folder);
    size_t n = f ? fread(config, 1, sizeof(config), f) : 0, at;

    if (f)
        fclose(f);
    if (n <= FIRST_CAPABILITY || !(config[STATUS] & STATUS_HAS_LIST))
        return 0;
    at = config[FIRST_CAPABILITY] & 0xfc;
    for (int hops = 0; at && at + DEVICE_CONTROL < n && hops < CAPABILITIES_MAX; hops++) {
        if (config[at] == CAPABILITY_PCIE)
            return (uint32_t)LEAST_PAYLOAD << (config[at + DEVICE_CONTROL] >> 5);
        at = config[at + 1] & 0xfc;
    }
    return 0;
}

struct net_pcie nic_pcie(const char *root, const char *folder, const char *driver)
{
    struct net_pcie pcie = {0};
    char of[SYS_PATH], speed[64];
    long long width;

    if (!folder[0] || is_paravirtual(driver))
        return pcie;
    /* A virtual function's own registers for it are empty. */
    if (snprintf(of, sizeof(of), "%s%s", folder,
                 sys_exists(root, "%s/physfn", folder) ? "/physfn" : "") >= (int)sizeof(of) ||
        sys_line(root, speed, sizeof(speed), "%s/current_link_speed", of) ||
        sys_number(root, &width, "%s/current_link_width", of))
        return pcie;
    /* "8.0 GT/s PCIe", "Unknown"; widths of 0, 63 and 255 say that there is no link. */
    pcie.gt_s = atof(speed);
    if (!(pcie.gt_s > 0) || width < 1 || width > 32 || (pcie.gt_s <= 2.5 && width == 1))
        return (struct net_pcie){0};
    pcie.width = (uint32_t)width;
    pcie.payload_bytes = payload_of(root, of);
    return pcie;
}
