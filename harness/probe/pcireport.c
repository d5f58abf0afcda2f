// SPDX-License-Identifier: Apache-2.0
/* Reports the functions that bound a pipe: GPUs, network, NVMe, NVSwitch. */
#include "harness/probe/pci.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VFS_MAX = 256 };

static void set_hex(json_t *json, const char *key, const struct pci_device *d, const char *file,
                    long value, int digits)
{
    char text[32];

    snprintf(text, sizeof(text), "%0*lx", digits, value);
    fact_set_text_or(json, key, value < 0 ? NULL : text, "/%s/%s: no id there", d->path, file);
}

static void report_identity(const struct pci *pci, const struct pci_device *d)
{
    const char *why = pci->ids ? "pci.ids does not list it" : "no pci.ids on this machine";
    char name[TREE_LINE];

    fact_set_text(d->json, "address", d->address);
    fact_set_text_or(d->json, "kind", d->kind == pci_kind_unknown ? NULL : d->kind,
                     "/%s: its class, or whose it is, could not be read", d->path);
    set_hex(d->json, "vendor_id", d, "vendor", d->vendor, 4);
    set_hex(d->json, "device_id", d, "device", d->device, 4);
    set_hex(d->json, "subsystem_vendor_id", d, "subsystem_vendor", d->subvendor, 4);
    set_hex(d->json, "subsystem_device_id", d, "subsystem_device", d->subdevice, 4);
    set_hex(d->json, "class", d, "class", d->class_code, 6);
    fact_set_text_or(d->json, "vendor",
                     pci_vendor_name(pci, d->vendor, name, sizeof(name)) ? name : NULL, "%s", why);
    fact_set_text_or(d->json, "name",
                     pci_device_name(pci, d->vendor, d->device, name, sizeof(name)) ? name : NULL,
                     "%s", why);
}

/* "none" where it is known that none is bound. */
static void report_driver(struct probe *p, const struct pci_device *d)
{
    bool none = !d->driver && tree_absent_at(&p->tree, d->path, "driver");

    fact_set_text_or(d->json, "driver", none ? "none" : d->driver, "/%s/driver: not read", d->path);
}

static void report_iommu(struct probe *p, const struct pci_device *d)
{
    char text[TREE_LINE], path[TREE_PATH];
    bool none = tree_absent_at(&p->tree, d->path, "iommu_group");
    int rc = tree_link_at(&p->tree, d->path, "iommu_group", text, sizeof(text));

    if (rc || digits_number(text) < 0) {
        const char *why =
            none ? "none: no IOMMU is active for it" : "its iommu_group could not be read";

        fact_set_unknown(d->json, "iommu_group", "%s", why);
        fact_set_unknown(d->json, "iommu_type", "%s", why);
        return;
    }
    fact_set_number(d->json, "iommu_group", digits_number(text));
    snprintf(path, sizeof(path), "sys/kernel/iommu_groups/%s/type", text);
    fact_set_line(d->json, "iommu_type", &p->tree, path);
}

static void report_place(struct probe *p, struct pci_device *d)
{
    long long node;
    int rc = tree_number_at(&p->tree, d->path, "numa_node", &node);

    report_driver(p, d);
    d->no_node = !rc && node < 0;
    if (d->no_node)
        fact_set_unknown(d->json, "numa_node", "the %s gives the device no node",
                         !p->guest_known ? "firmware or hypervisor"
                         : p->guest      ? "hypervisor"
                                         : "firmware");
    else if (rc)
        fact_set_unknown(d->json, "numa_node", "/%s/numa_node: %s", d->path, fact_errno(rc));
    else
        fact_set_number(d->json, "numa_node", node);
    report_iommu(p, d);
}

static void report_vf(struct probe *p, const struct pci_device *d, json_t *sriov)
{
    char text[TREE_LINE];

    fact_set_text(sriov, "role", "vf");
    if (d->physical >= 0)
        fact_set_text(sriov, "physical_function", p->pci->device[d->physical].address);
    else if (!tree_link_at(&p->tree, d->path, "physfn", text, sizeof(text)))
        fact_set_text(sriov, "physical_function", text);
    else
        fact_set_unknown(sriov, "physical_function", "no link names it");
}

static void report_pf(struct probe *p, const struct pci_device *d, json_t *sriov)
{
    json_t *vfs = json_array();
    char text[TREE_LINE], link[32];
    long long now = 0;
    int found = 0;

    fact_set_text(sriov, "role", "pf");
    fact_set_file_number(sriov, "total_vfs", &p->tree, tree_join(d->path, "sriov_totalvfs").s);
    fact_set_file_number(sriov, "vfs", &p->tree, tree_join(d->path, "sriov_numvfs").s);
    now = fact_integer(sriov, "vfs", VFS_MAX);
    for (; found < now && found < VFS_MAX; found++) {
        snprintf(link, sizeof(link), "virtfn%d", found);
        if (tree_link_at(&p->tree, d->path, link, text, sizeof(text)))
            break;
        json_array_append_new(vfs, fact_text(text));
    }
    if (json_is_integer(json_object_get(sriov, "vfs")) && (found == now || found == VFS_MAX))
        json_object_set(sriov, "virtual_functions", vfs);
    else
        fact_set_unknown(sriov, "virtual_functions", "%d of them have a link", found);
    json_decref(vfs);
}

static void report_sriov(struct probe *p, const struct pci_device *d)
{
    char text[TREE_LINE];
    long long total;

    if (!strcmp(fact_string(d->json, "nature"), "sriov-vf")) {
        if (!p->guest || d->physical >= 0) /* else a guest cannot see whose it is */
            report_vf(p, d, fact_object(d->json, "sriov"));
    } else if (!tree_link_at(&p->tree, d->path, "virtfn0", text, sizeof(text)) ||
               (!tree_number_at(&p->tree, d->path, "sriov_totalvfs", &total) && total > 0))
        report_pf(p, d, fact_object(d->json, "sriov"));
    else if (!tree_absent_at(&p->tree, d->path, "sriov_totalvfs"))
        fact_set_unknown(d->json, "sriov", "/%s/sriov_totalvfs: could not be read", d->path);
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
    json_t *list;

    if (!p->pci) {
        fact_set_unknown(p->machine, "pci", "/sys/bus/pci/devices: %s", fact_errno(p->pci_rc));
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
