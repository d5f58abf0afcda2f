// SPDX-License-Identifier: Apache-2.0
/* Reads the PCI bus and reports the functions that bound a pipe: GPUs, network, NVMe, NVSwitch. */
#include "harness/probe/pci.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char bus[] = "sys/bus/pci/devices";

enum { IDS_MAX = 8 << 20, VFS_MAX = 256 };

/* "0000:3b:00.0"; the domain may have more digits (VMD has 10000). */
static bool is_address(const char *text)
{
    unsigned domain, b, d, f;
    int end = 0;

    return strlen(text) < sizeof(((struct pci_device *)0)->address) &&
           sscanf(text, "%8x:%2x:%2x.%1x%n", &domain, &b, &d, &f, &end) == 4 && !text[end];
}

static unsigned hex_at(const struct tree *tree, const char *folder, const char *file)
{
    long long value = 0;

    return tree_number_at(tree, folder, file, &value) ? 0 : (unsigned)value;
}

/* "16.0 GT/s PCIe", "8 GT/s", "Unknown"; widths of 0, 63 and 255 mean that there is no link. */
static struct pci_link read_link(const struct tree *tree, const char *path)
{
    struct pci_link link = {0};
    char line[64];
    long long width;

    if (!tree_line_at(tree, path, "current_link_speed", line, sizeof(line)))
        link.now_gt_s = atof(line);
    if (!tree_line_at(tree, path, "max_link_speed", line, sizeof(line)))
        link.max_gt_s = atof(line);
    if (!tree_number_at(tree, path, "current_link_width", &width) && width > 0 && width <= 32)
        link.now_width = (int)width;
    if (!tree_number_at(tree, path, "max_link_width", &width) && width > 0 && width <= 32)
        link.max_width = (int)width;
    if (!(link.now_gt_s > 0 && link.now_gt_s < 1000) || !link.now_width)
        link.now_gt_s = link.now_width = 0;
    if (!(link.max_gt_s > 0 && link.max_gt_s < 1000) || !link.max_width)
        link.max_gt_s = link.max_width = 0;
    return link;
}

/*
 * Access Control Services (PCIe base specification, extended capability 0x0d): bits 2 and 3 of its
 * control register send peer-to-peer requests and completions up to the root. Above the first 64
 * bytes the configuration space is readable by root only.
 */
static int read_acs(const struct tree *tree, const char *path)
{
    unsigned char config[4096];
    size_t length, at = 0x100;
    struct path file = tree_join(path, "config");

    if (tree_read(tree, file.s, (char *)config, sizeof(config), &length) || length <= at + 4)
        return -1;
    for (int hops = 0; at >= 0x100 && at + 8 <= length && hops < 64; hops++) {
        unsigned id = config[at] | config[at + 1] << 8;

        if (id == 0x0d)
            return (config[at + 6] & 0x0c) != 0;
        at = (size_t)((config[at + 2] >> 4) | config[at + 3] << 4);
    }
    return 0;
}

static bool is_gpu_maker(unsigned vendor)
{
    return vendor == 0x10de || vendor == 0x1002 || vendor == 0x8086;
}

/* What the class code says, for the classes that we report. */
static const char *kind_of(const struct pci_device *d)
{
    switch (d->class_code >> 8) {
    case 0x0300:
    case 0x0302:
    case 0x0380:
        return is_gpu_maker(d->vendor) ? "gpu" : "display";
    case 0x1200:
        return d->vendor == 0x1002 || d->vendor == 0x10de ? "gpu" : "accelerator";
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
        return d->vendor == 0x1af4 ? "disk" : NULL;
    case 0x0680:
        return d->vendor == 0x10de ? "nvswitch" : NULL;
    default:
        return NULL;
    }
}

static int read_device(const struct tree *tree, const char *address, struct pci_device *d)
{
    char real[TREE_PATH];
    int rc = tree_resolve(tree, tree_join(bus, address).s, real, sizeof(real));

    if (rc)
        return rc;
    strcpy(d->address, address);
    d->path = strdup(real);
    if (!d->path)
        return -ENOMEM;
    d->vendor = hex_at(tree, real, "vendor") & 0xffff;
    d->device = hex_at(tree, real, "device") & 0xffff;
    d->subvendor = hex_at(tree, real, "subsystem_vendor") & 0xffff;
    d->subdevice = hex_at(tree, real, "subsystem_device") & 0xffff;
    d->class_code = hex_at(tree, real, "class") & 0xffffff;
    d->kind = kind_of(d);
    d->link = read_link(tree, real);
    d->acs_redirect = d->class_code >> 8 == 0x0604 ? read_acs(tree, real) : -1;
    d->parent = -1;
    return 0;
}

static char *read_ids(const struct tree *tree)
{
    static const char *const files[] = {"usr/share/misc/pci.ids", "usr/share/hwdata/pci.ids",
                                        "usr/share/pci.ids"};
    char *text = malloc(IDS_MAX), *fit;
    size_t length = 0;

    /* A line end before the first line, so that every vendor's line starts after one. */
    for (size_t i = 0; text && i < sizeof(files) / sizeof(*files); i++)
        if (!tree_read(tree, files[i], text + 1, IDS_MAX - 1, &length) && length)
            break;
    if (!text || !length) {
        free(text);
        return NULL;
    }
    text[0] = '\n';
    fit = realloc(text, length + 2);
    return fit ? fit : text;
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

/* The last address in path before its byte at; NULL where there is none. */
static struct pci_device *last_address(const struct pci *pci, const char *path, size_t at)
{
    char part[TREE_PATH];

    while (at > 0) {
        size_t start = at;

        while (start > 0 && path[start - 1] != '/')
            start--;
        if (at - start < sizeof(part)) {
            memcpy(part, path + start, at - start);
            part[at - start] = '\0';
            if (is_address(part))
                return pci_find(pci, part);
        }
        at = start ? start - 1 : 0;
    }
    return NULL;
}

struct pci_device *pci_of_path(const struct pci *pci, const char *path)
{
    return last_address(pci, path, strlen(path));
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

static void find_parents(struct pci *pci)
{
    for (size_t i = 0; i < pci->count; i++) {
        struct pci_device *d = &pci->device[i], *above = NULL;
        const char *slash = strrchr(d->path, '/');

        if (slash)
            above = last_address(pci, d->path, (size_t)(slash - d->path));
        /* A longer path below itself cannot be: it would make the walk upwards endless. */
        if (above && strlen(above->path) < strlen(d->path))
            d->parent = above - pci->device;
    }
}

int pci_load(const struct tree *tree, struct pci **out)
{
    struct pci *pci = calloc(1, sizeof(*pci));
    struct names names = {0};
    int rc = pci ? tree_list(tree, bus, &names) : -ENOMEM;

    *out = pci;
    if (rc)
        return rc;
    pci->device = calloc(names.count + 1, sizeof(*pci->device));
    if (!pci->device)
        rc = -ENOMEM;
    for (size_t i = 0; !rc && i < names.count; i++)
        if (is_address(names.name[i]) &&
            !read_device(tree, names.name[i], &pci->device[pci->count]))
            pci->count++;
    names_free(&names);
    if (!rc) {
        qsort(pci->device, pci->count, sizeof(*pci->device), by_address);
        find_parents(pci);
        pci->ids = read_ids(tree);
    }
    return rc;
}

void pci_free(struct pci *pci)
{
    if (!pci)
        return;
    for (size_t i = 0; i < pci->count; i++)
        free(pci->device[i].path);
    free(pci->device);
    free(pci->ids);
    free(pci);
}

static void set_hex(json_t *json, const char *key, unsigned value, int digits)
{
    char text[16];

    snprintf(text, sizeof(text), "%0*x", digits, value);
    fact_set_text(json, key, text);
}

static void report_identity(const struct pci *pci, const struct pci_device *d)
{
    char name[TREE_LINE];

    fact_set_text(d->json, "address", d->address);
    fact_set_text(d->json, "kind", d->kind);
    set_hex(d->json, "vendor_id", d->vendor, 4);
    set_hex(d->json, "device_id", d->device, 4);
    set_hex(d->json, "subsystem_vendor_id", d->subvendor, 4);
    set_hex(d->json, "subsystem_device_id", d->subdevice, 4);
    set_hex(d->json, "class", d->class_code, 6);
    fact_set_text(d->json, "vendor",
                  pci_vendor_name(pci, d->vendor, name, sizeof(name)) ? name : NULL);
    fact_set_text(d->json, "name",
                  pci_device_name(pci, d->vendor, d->device, name, sizeof(name)) ? name : NULL);
}

static void report_place(struct probe *p, const struct pci_device *d)
{
    char text[TREE_LINE], path[TREE_PATH];
    long long node;

    if (tree_link_at(&p->tree, d->path, "driver", text, sizeof(text)))
        fact_set_unknown(d->json, "driver", "none is bound");
    else
        fact_set_text(d->json, "driver", text);
    if (tree_number_at(&p->tree, d->path, "numa_node", &node) || node < 0)
        fact_set_unknown(d->json, "numa_node", "the %s gives the device no node",
                         p->guest ? "hypervisor" : "firmware");
    else
        fact_set_number(d->json, "numa_node", node);
    if (tree_link_at(&p->tree, d->path, "iommu_group", text, sizeof(text))) {
        fact_set_unknown(d->json, "iommu_group", "none: no IOMMU is active for it");
        return;
    }
    fact_set_number(d->json, "iommu_group", atoll(text));
    snprintf(path, sizeof(path), "sys/kernel/iommu_groups/%s/type", text);
    fact_set_text(d->json, "iommu_type",
                  tree_line(&p->tree, path, text, sizeof(text)) ? NULL : text);
}

static void report_sriov(struct probe *p, const struct pci_device *d)
{
    json_t *sriov, *vfs;
    char text[TREE_LINE], link[32];
    long long total, now = 0;

    if (!tree_link_at(&p->tree, d->path, "physfn", text, sizeof(text))) {
        sriov = fact_object(d->json, "sriov");
        fact_set_text(sriov, "role", "vf");
        fact_set_text(sriov, "physical_function", text);
        return;
    }
    if (tree_number_at(&p->tree, d->path, "sriov_totalvfs", &total) || total <= 0)
        return;
    tree_number_at(&p->tree, d->path, "sriov_numvfs", &now);
    sriov = fact_object(d->json, "sriov");
    fact_set_text(sriov, "role", "pf");
    fact_set_number(sriov, "total_vfs", total);
    fact_set_number(sriov, "vfs", now);
    vfs = fact_list(sriov, "virtual_functions");
    for (int i = 0; i < now && i < VFS_MAX; i++) {
        snprintf(link, sizeof(link), "virtfn%d", i);
        if (!tree_link_at(&p->tree, d->path, link, text, sizeof(text)))
            json_array_append_new(vfs, fact_text(text));
    }
}

/* Mediated devices stand below their parent, named by a UUID; only their number is told. */
static void report_mdev(struct probe *p, const struct pci_device *d)
{
    struct names names = {0};
    long long count = 0;

    if (!tree_exists_at(&p->tree, d->path, "mdev_supported_types"))
        return;
    tree_list(&p->tree, d->path, &names);
    for (size_t i = 0; i < names.count; i++)
        count += strlen(names.name[i]) == 36 && names.name[i][8] == '-';
    names_free(&names);
    fact_set_number(d->json, "mediated_devices", count);
}

void probe_pci(struct probe *p)
{
    int rc = pci_load(&p->tree, &p->pci);
    json_t *list;

    if (rc) {
        fact_set_unknown(p->machine, "pci", "/%s: %s", bus, fact_errno(rc));
        return;
    }
    list = fact_list(p->machine, "pci");
    if (!p->pci->ids)
        fact_set_text(p->machine, "pci_names_why", "no pci.ids on this machine (Debian: pci.ids)");
    for (size_t i = 0; i < p->pci->count; i++) {
        struct pci_device *d = &p->pci->device[i];

        if (!d->kind)
            continue;
        d->json = json_object();
        json_array_append_new(list, d->json);
        report_identity(p->pci, d);
        pci_report_nature(p, d);
        report_place(p, d);
        pci_report_links(p, d);
        report_sriov(p, d);
        report_mdev(p, d);
    }
}
