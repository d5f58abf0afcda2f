/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the PCI bus: every function, what it is, the bridges above it. */
#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "harness/probe/facts.h"

/* ---- Names of PCI vendors and devices, from the machine's own pci.ids ---- */

enum { IDS_MAX = 8 << 20 };

/* Its text, with an end of line before it; NULL where the machine has none. */
static char *ids_load(const struct probe *p)
{
    static const char *const files[] = {"usr/share/misc/pci.ids", "usr/share/hwdata/pci.ids",
                                        "usr/share/pci.ids"};
    char *text = xrealloc(NULL, IDS_MAX);
    size_t length = 0;

    text[0] = '\n';
    for (size_t i = 0; !length && i < sizeof(files) / sizeof(*files); i++)
        if (sys_read(p->root, text + 1, IDS_MAX - 1, &length, "%s", files[i]))
            length = 0;
    if (length)
        return xrealloc(text, length + 2);
    free(text);
    return NULL;
}

/* "10de  NVIDIA Corporation": the vendor's devices follow it, with a tab before each. */
static bool find_name(const char *ids, long vendor, long device, char *buf, size_t size)
{
    char line[32];
    const char *at;

    snprintf(line, sizeof(line), "\n%04lx  ", vendor);
    at = ids && vendor >= 0 ? strstr(ids, line) : NULL;
    if (device >= 0) {
        snprintf(line, sizeof(line), "\n\t%04lx  ", device);
        do
            at = at ? strchr(at + 1, '\n') : NULL;
        while (at && (at[1] == '\t' || at[1] == '#') && strncmp(at, line, strlen(line)) != 0);
    }
    if (!at || strncmp(at, line, strlen(line)) != 0)
        return false;
    at += strlen(line) + strspn(at + strlen(line), " \t");
    snprintf(buf, size, "%.*s", (int)strcspn(at, "\n"), at);
    return buf[0] != '\0';
}

bool pci_vendor_name(const struct pci *pci, long vendor, char *buf, size_t size)
{
    return find_name(pci->ids, vendor, -1, buf, size);
}

bool pci_device_name(const struct pci *pci, long vendor, long device, char *buf, size_t size)
{
    return device >= 0 && find_name(pci->ids, vendor, device, buf, size);
}

static const char bus[] = "sys/bus/pci/devices";

enum { VFS_MAX = 256, VENDORS_MAX = 64 };

const char pci_kind_unknown[] = "unknown";

/* An id of so many digits; -1 where it could not be read or is none. */
static long hex_at(const struct probe *p, const char *folder, const char *file, int digits)
{
    long long value;

    if (sys_number(p->root, &value, "%s/%s", folder, file) || value < 0 || value >> 4 * digits)
        return -1;
    return (long)value;
}

static struct pci_link read_link(const struct probe *p, const char *path)
{
    struct pci_link link = {.now_gt_s = pci_speed_gt_s(p->root, path, "current_link_speed"),
                            .max_gt_s = pci_speed_gt_s(p->root, path, "max_link_speed"),
                            .now_width = pci_width(p->root, path, "current_link_width"),
                            .max_width = pci_width(p->root, path, "max_link_width")};

    link.untrained =
        !link.now_gt_s || !link.now_width || probe_absent(p, "%s/current_link_speed", path);
    if (link.now_gt_s <= 0 || link.now_width <= 0)
        link.now_gt_s = link.now_width = 0;
    if (link.max_gt_s <= 0 || link.max_width <= 0)
        link.max_gt_s = link.max_width = 0;
    return link;
}

/*
 * The control register of an extended capability (PCIe base specification), of those that have it 6
 * bytes on. Above the first 64 bytes the configuration space is readable by root only, and the
 * extended one only on a PCI Express bus: PCI_UNREAD.
 */
enum { CAPABILITY_ACS = 0x0d, CAPABILITY_ATS = 0x0f };

static long read_extended(const struct probe *p, const char *path, unsigned capability)
{
    unsigned char config[4096];
    size_t length, at = 0x100;

    if (sys_read(p->root, (char *)config, sizeof(config), &length, "%s/config", path) ||
        length <= at + 4)
        return PCI_UNREAD;
    for (int hops = 0; at >= 0x100 && at + 8 <= length && hops < 64; hops++) {
        unsigned id = config[at] | config[at + 1] << 8;

        if (id == capability)
            return config[at + 6] | config[at + 7] << 8;
        at = (size_t)((config[at + 2] >> 4) | config[at + 3] << 4);
    }
    return PCI_ABSENT;
}

/* A kind where the vendor is one of theirs; else other, which is not reported where it is NULL. */
static const char *if_vendor(const struct pci_device *d, const long *vendors, const char *kind,
                             const char *other)
{
    if (d->vendor < 0)
        return pci_kind_unknown;
    for (; *vendors; vendors++)
        if (d->vendor == *vendors)
            return kind;
    return other;
}

/* What the class code says, for the classes that we report. */
static const char *kind_of(const struct pci_device *d)
{
    static const long gpus[] = {0x10de, 0x1002, 0x8086, 0}, computing[] = {0x10de, 0x1002, 0},
                      nvidia[] = {0x10de, 0}, virtio[] = {0x1af4, 0};

    if (d->class_code < 0) /* the driver may still name it */
        return d->driver && fact_fits("nvidia|nouveau|amdgpu|i915|xe", d->driver)
                   ? "gpu"
                   : pci_kind_unknown;
    switch (d->class_code >> 8) {
    case 0x0300:
    case 0x0302:
    case 0x0380:
        return if_vendor(d, gpus, "gpu", "display");
    case 0x1200:
        return if_vendor(d, computing, "gpu", "accelerator");
    case 0x0b40:
        return "accelerator";
    case 0x0207:
    case 0x0c06:
        return "infiniband";
    case 0x0200:
        return "ethernet";
    case 0x0280:
        return "network";
    case 0x0108:
        return "nvme";
    case 0x0100:
    case 0x0180:
        return if_vendor(d, virtio, "disk", NULL);
    case 0x0680:
        return if_vendor(d, nvidia, "nvswitch", NULL);
    default:
        return NULL;
    }
}

static int read_device(const struct probe *p, const char *address, struct pci_device *d)
{
    char real[SYS_PATH], driver[SYS_LINE];
    int rc = sys_resolve(p->root, real, sizeof(real), "%s/%s", bus, address);
    struct stat st;
    long control;

    if (!rc)
        rc = sys_stat(p->root, &st, "%s", real);
    if (rc || !S_ISDIR(st.st_mode))
        return rc ? rc : -ENOTDIR;
    strcpy(d->address, address);
    d->path = xstrdup(real);
    if (!sys_link(p->root, driver, sizeof(driver), "%s/driver", real))
        d->driver = xstrdup(driver);
    d->vendor = hex_at(p, real, "vendor", 4);
    d->device = hex_at(p, real, "device", 4);
    d->subvendor = hex_at(p, real, "subsystem_vendor", 4);
    d->subdevice = hex_at(p, real, "subsystem_device", 4);
    d->class_code = hex_at(p, real, "class", 6);
    d->kind = kind_of(d);
    d->link = read_link(p, real);
    /* Access Control Services of a bridge: bits 2 and 3 send peer-to-peer requests and completions up
     * to the root; bit 6 lets those pass whose addresses are translated already. */
    control = d->class_code >> 8 == 0x0604 ? read_extended(p, real, CAPABILITY_ACS) : PCI_UNREAD;
    d->acs_redirect = control == PCI_UNREAD ? -1 : control != PCI_ABSENT && (control & 0x0c) != 0;
    d->acs_direct = control >= 0 && (control & 0x40) != 0;
    d->services = d->kind ? read_extended(p, real, CAPABILITY_ATS) : PCI_UNREAD;
    d->control = d->kind ? pci_control(p->root, real) : -1;
    d->parent = d->physical = -1;
    return 0;
}

struct pci_device *pci_find(const struct pci *pci, const char *address)
{
    size_t low = 0, high = pci->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(address, pci->device[middle].address);

        if (order == 0)
            return &pci->device[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

struct pci_device *pci_of_path(const struct pci *pci, const char *path)
{
    char address[PCI_ADDRESS];

    return pci && pci_function_of(path, strlen(path), address) ? pci_find(pci, address) : NULL;
}

struct pci_device *pci_parent(const struct pci *pci, const struct pci_device *device)
{
    return device->parent < 0 ? NULL : &pci->device[device->parent];
}

/* Hexadecimal, so not in the order in which names with numbers are listed. */
static int by_address(const void *a, const void *b)
{
    return strcmp(((const struct pci_device *)a)->address, ((const struct pci_device *)b)->address);
}

/* The folder of a root bus, as in "sys/devices/pci0000:00/0000:00:01.0". */
static bool is_root_bus(const char *path, size_t end)
{
    size_t start = end;

    while (start > 0 && path[start - 1] != '/')
        start--;
    return !strncmp(path, "sys/devices/", 12) && end - start > 7 &&
           !strncmp(path + start, "pci", 3);
}

static void find_parent(struct pci *pci, struct pci_device *d)
{
    const char *slash = strrchr(d->path, '/');
    size_t end = slash ? (size_t)(slash - d->path) : 0;
    struct pci_device *above = NULL;
    char address[PCI_ADDRESS];

    if (pci_function_of(d->path, end, address))
        above = pci_find(pci, address);
    /* A longer path below itself cannot be: it would make the walk upwards endless. */
    if (above && strlen(above->path) < strlen(d->path))
        d->parent = above - pci->device;
    d->orphan = d->parent < 0 && !is_root_bus(d->path, end);
}

/* Both ends name the other: the virtual function by physfn, the physical one by virtfn0, virtfn1,
 * ... */
static void find_virtual(const struct probe *p, struct pci *pci, struct pci_device *d)
{
    char link[32], address[SYS_LINE];
    struct pci_device *other;

    if (!sys_link(p->root, address, sizeof(address), "%s/physfn", d->path) &&
        (other = pci_find(pci, address)))
        d->physical = other - pci->device;
    for (int i = 0; i < VFS_MAX; i++) {
        snprintf(link, sizeof(link), "virtfn%d", i);
        if (sys_link(p->root, address, sizeof(address), "%s/%s", d->path, link))
            return;
        other = pci_find(pci, address);
        if (other && other != d)
            other->physical = d - pci->device;
    }
}

/*
 * A virtual function has its physical one's vendor and a higher address in the same domain (PCIe
 * base specification, SR-IOV: the first one's offset is above 0). So the first function of a vendor
 * is none, and neither is one that has a link of its own running: a virtual function shows none.
 */
static void find_doubtful(const struct probe *p, struct pci *pci)
{
    long seen[VENDORS_MAX], any = 0;
    size_t count = 0;

    for (size_t i = 0; i < pci->count; i++) {
        struct pci_device *d = &pci->device[i];
        size_t domain = strcspn(d->address, ":"), k = 0;
        long long total;

        if (i == 0 || strncmp(d->address, pci->device[i - 1].address, domain + 1) != 0)
            count = any = 0;
        while (k < count && seen[k] != d->vendor)
            k++;
        d->may_be_vf = (any || (d->vendor < 0 && count) || k < count) && d->physical < 0 &&
                       !d->link.now_width && !probe_absent(p, "%s/physfn", d->path) &&
                       sys_number(p->root, &total, "%s/sriov_totalvfs", d->path);
        if (d->class_code >= 0 && d->class_code >> 16 == 0x06) /* bridges have none */
            continue;
        if (d->vendor < 0 || (k == count && count == VENDORS_MAX))
            any = 1;
        else if (k == count)
            seen[count++] = d->vendor;
    }
}

static int read_bus(const struct probe *p, struct pci *pci)
{
    struct names names;
    int rc = sys_list(p->root, &names, "%s", bus);

    if (rc)
        return rc;
    pci->device = xcalloc(names.count, sizeof(*pci->device));
    for (size_t i = 0; i < names.count; i++)
        if (pci_is_address(names.name[i]) &&
            !read_device(p, names.name[i], &pci->device[pci->count]))
            pci->count++;
    names_free(&names);
    return 0;
}

int pci_load(const struct probe *p, struct pci **out)
{
    struct pci *pci = xcalloc(1, sizeof(*pci));
    int rc = read_bus(p, pci);

    *out = NULL;
    if (rc) {
        pci_free(pci);
        return rc;
    }
    qsort(pci->device, pci->count, sizeof(*pci->device), by_address);
    for (size_t i = 0; i < pci->count; i++)
        find_parent(pci, &pci->device[i]);
    for (size_t i = 0; i < pci->count; i++)
        find_virtual(p, pci, &pci->device[i]);
    find_doubtful(p, pci);
    pci->ids = ids_load(p);
    *out = pci;
    return 0;
}

void pci_free(struct pci *pci)
{
    if (!pci)
        return;
    for (size_t i = 0; i < pci->count; i++) {
        free(pci->device[i].path);
        free(pci->device[i].driver);
    }
    free(pci->device);
    free(pci->ids);
    free(pci);
}
