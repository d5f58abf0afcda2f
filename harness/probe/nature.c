/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a PCI function is the real thing: physical, passthrough (physical, lent to a guest),
 * sriov-vf, paravirtual, emulated, vgpu, or unknown. The evidence is always told. GPUs may be
 * judged again by gpu.c, where NVML or the driver's product name knows more.
 */
#include <stdio.h>
#include <string.h>

#include "harness/probe/facts.h"

struct known {
    long vendor, first, last; /* device ids, inclusive */
    const char *nature, *what;
    const char *maker; /* only guests have such a device: its hypervisor, or several of them */
};

#define SEVERAL "several"

/* The devices that hypervisors make. Order matters: the first that fits is taken. */
static const struct known made[] = {
    {0x1af4, 0x1000, 0x107f, "paravirtual", "a virtio device", SEVERAL},
    {0x15ad, 0x07b0, 0x07b0, "paravirtual", "VMware's vmxnet3 network device", "vmware"},
    {0x15ad, 0x0820, 0x0820, "paravirtual", "VMware's paravirtual RDMA device (PVRDMA)", "vmware"},
    {0x15ad, 0x07c0, 0x07c0, "paravirtual", "VMware's PVSCSI device", "vmware"},
    {0x15ad, 0x0000, 0xffff, "emulated", "a device that VMware emulates", "vmware"},
    {0x1d0f, 0xec20, 0xec21, "paravirtual", "the ENA network device of AWS Nitro cards", NULL},
    {0x1d0f, 0x0ec2, 0x0ec2, "paravirtual", "the ENA network device of AWS Nitro cards", NULL},
    {0x1d0f, 0xefa0, 0xefaf, "paravirtual", "the EFA network device of AWS Nitro cards", NULL},
    {0x1d0f, 0x8061, 0x8061, "paravirtual", "the EBS volume of AWS Nitro cards", NULL},
    {0x1d0f, 0xcd00, 0xcd03, "paravirtual", "the NVMe disk of AWS Nitro cards", NULL},
    {0x1d0f, 0x1111, 0x1111, "emulated", "the screen that AWS Nitro emulates", NULL},
    {0x1ae0, 0x0042, 0x0042, "paravirtual", "Google's gVNIC network device", NULL},
    {0x1ae0, 0x001f, 0x001f, "paravirtual", "Google's NVMe persistent disk", NULL},
    {0x5853, 0x0001, 0x0001, "paravirtual", "Xen's platform device", "xen"},
    {0x1414, 0x00ba, 0x00ba, "sriov-vf",
     "the virtual function of Microsoft's network adapter (MANA)", NULL},
    {0x1414, 0x0000, 0xffff, "emulated", "a device that Hyper-V emulates", "hyper-v"},
    {0x1b36, 0x0000, 0xffff, "emulated", "a device that QEMU emulates", "qemu"},
    {0x1234, 0x1111, 0x1111, "emulated", "the screen that QEMU emulates", "qemu"},
    {0x1013, 0x00b8, 0x00b8, "emulated", "the Cirrus screen that QEMU emulates", NULL},
    {0x80ee, 0x0000, 0xffff, "emulated", "a device that VirtualBox emulates", "virtualbox"},
    {0x8086, 0x5845, 0x5845, "emulated", "the NVMe disk that QEMU emulates", "qemu"},
    {0x8086, 0x100e, 0x100f, "emulated", "the e1000 network device that hypervisors emulate", NULL},
    {0x8086, 0x1004, 0x1004, "emulated", "the e1000 network device that hypervisors emulate", NULL},
    {0x8086, 0x1237, 0x1237, "emulated", "the i440FX bridge that hypervisors emulate", NULL},
    {0x8086, 0x7000, 0x7113, "emulated", "the PIIX chipset that hypervisors emulate", NULL},
    {0x8086, 0x2829, 0x2829, "emulated", "the AHCI controller that VirtualBox emulates", NULL},
    {0x8086, 0x0d57, 0x0d57, "emulated", "the host bridge that Cloud Hypervisor emulates", NULL},
    {0x1022, 0x2000, 0x2000, "emulated", "the PCnet network device that hypervisors emulate", NULL},
};

/* Virtual functions by device id, where pci.ids may be missing. */
static const struct known vfs[] = {
    {0x15b3, 0x1002, 0x1002, NULL, "ConnectX-2", NULL},
    {0x15b3, 0x1004, 0x1004, NULL, "ConnectX-3", NULL},
    {0x15b3, 0x1012, 0x1012, NULL, "Connect-IB", NULL},
    {0x15b3, 0x1014, 0x1014, NULL, "ConnectX-4", NULL},
    {0x15b3, 0x1016, 0x1016, NULL, "ConnectX-4 Lx", NULL},
    {0x15b3, 0x1018, 0x1018, NULL, "ConnectX-5", NULL},
    {0x15b3, 0x101a, 0x101a, NULL, "ConnectX-5 Ex", NULL},
    {0x15b3, 0x101c, 0x101c, NULL, "ConnectX-6", NULL},
    {0x15b3, 0x101e, 0x101e, NULL, "ConnectX-6 Dx and later", NULL},
    {0x15b3, 0xa2d3, 0xa2d3, NULL, "BlueField", NULL},
    {0x8086, 0x10ca, 0x10ca, NULL, "Intel 82576", NULL},
    {0x8086, 0x10ed, 0x10ed, NULL, "Intel 82599", NULL},
    {0x8086, 0x1515, 0x1515, NULL, "Intel X540", NULL},
    {0x8086, 0x1520, 0x1520, NULL, "Intel I350", NULL},
    {0x8086, 0x154c, 0x154c, NULL, "Intel 700 series", NULL},
    {0x8086, 0x1564, 0x1565, NULL, "Intel X550", NULL},
    {0x8086, 0x1571, 0x1571, NULL, "Intel 700 series", NULL},
    {0x8086, 0x15a8, 0x15a9, NULL, "Intel X552", NULL},
    {0x8086, 0x15c5, 0x15c5, NULL, "Intel X553", NULL},
    {0x8086, 0x1889, 0x1889, NULL, "Intel 800 series (adaptive)", NULL},
    {0x8086, 0x37cd, 0x37cd, NULL, "Intel X722", NULL},
    {0x14e4, 0x16c1, 0x16c1, NULL, "Broadcom NetXtreme-E", NULL},
    {0x14e4, 0x16d3, 0x16d3, NULL, "Broadcom NetXtreme-E", NULL},
    {0x14e4, 0x16dc, 0x16dc, NULL, "Broadcom NetXtreme-E", NULL},
    {0x14e4, 0x1806, 0x1809, NULL, "Broadcom BCM5750X", NULL},
    {0x1002, 0x74b5, 0x74b5, NULL, "AMD Instinct MI300X", NULL},
};

#define COUNT(table) (sizeof(table) / sizeof(*(table)))

static const struct known *lookup(const struct known *table, size_t count,
                                  const struct pci_device *d)
{
    for (size_t i = 0; i < count; i++)
        if (d->vendor == table[i].vendor && d->device >= table[i].first &&
            d->device <= table[i].last)
            return &table[i];
    return NULL;
}

const char *pci_guest_mark(const struct pci_device *d, const char **name)
{
    const struct known *known = lookup(made, COUNT(made), d);

    *name = NULL;
    if (d->subvendor == 0x1af4 && d->subdevice == 0x1100) {
        *name = "qemu";
        return "a device of a QEMU subsystem";
    }
    if (!known || !known->maker)
        return NULL;
    if (strcmp(known->maker, SEVERAL) != 0)
        *name = known->maker;
    return known->what;
}

/* pci.ids writes it in several ways: "Virtual Function", "virtual function", "NIC VF". */
static bool named_vf(const char *name)
{
    size_t n = strlen(name);

    return strcasestr(name, "virtual function") || strstr(name, " VF ") ||
           (n > 3 && !strcmp(name + n - 3, " VF"));
}

/* By its id; the evidence goes to because, which may be NULL. *listed: pci.ids knows the id. */
static bool is_vf_id(const struct pci *pci, const struct pci_device *d, json_t *because,
                     bool *listed)
{
    const struct known *known = lookup(vfs, COUNT(vfs), d);
    char name[SYS_LINE];

    *listed = pci_device_name(pci, d->vendor, d->device, name, sizeof(name));
    if (known && because)
        fact_say(because, "%04lx:%04lx is the id of virtual functions of %s", d->vendor, d->device,
                 known->what);
    else if (*listed && named_vf(name) && because)
        fact_say(because, "pci.ids calls %04lx:%04lx \"%s\"", d->vendor, d->device, name);
    return known || (*listed && named_vf(name));
}

/* A device that a hypervisor makes, or that passes as one; NULL where it is neither. */
static const char *nature_made(const struct pci_device *d, json_t *because, bool in_guest)
{
    const struct known *known = lookup(made, COUNT(made), d);

    if (d->vendor < 0 || d->device < 0)
        return NULL;
    if (known && (in_guest || known->maker)) {
        fact_say(because, "%04lx:%04lx is %s", d->vendor, d->device, known->what);
        return known->nature;
    }
    if (d->subvendor == 0x1af4 && d->subdevice == 0x1100) {
        fact_say(because, "subsystem 1af4:1100 marks a device that QEMU emulates");
        return "emulated";
    }
    if (d->subvendor == 0x15ad) {
        fact_say(because, "subsystem vendor 15ad marks a device that VMware emulates");
        return "emulated";
    }
    return NULL;
}

static const char *nature_in_guest(struct probe *p, const struct pci_device *d, json_t *because)
{
    bool listed;

    if (is_vf_id(p->pci, d, because, &listed))
        return "sriov-vf";
    if (d->vendor == 0x10de && !strcmp(d->kind, "gpu")) {
        fact_say(because, "an NVIDIA GPU inside a guest, whole or a vGPU: both have the same id");
        return "unknown";
    }
    if (d->vendor < 0 || d->device < 0 || d->subvendor < 0) {
        fact_say(because, "the device does not show all of its ids");
        return "unknown";
    }
    if (!listed && d->vendor != 0x15b3) { /* of this one the table lists all virtual functions */
        fact_say(because,
                 "whether %04lx:%04lx is a virtual function's id is not known: pci.ids does "
                 "not list it",
                 d->vendor, d->device);
        return "unknown";
    }
    fact_say(because, "%04lx:%04lx is a physical device's id, seen inside a guest", d->vendor,
             d->device);
    return "passthrough";
}

/* On the machine itself, or where that is not known: by links, ids, and what a virtual function
 * lacks. */
static const char *nature_on_host(struct probe *p, const struct pci_device *d, json_t *because)
{
    char text[SYS_LINE];
    bool listed;

    if (is_vf_id(p->pci, d, because, &listed))
        return "sriov-vf";
    if (!p->guest_known) {
        fact_say(because, "whether this is a guest is not known");
        return "unknown";
    }
    if (d->may_be_vf) {
        fact_say(because,
                 "no hypervisor below, but whether it is a virtual function is not known: no "
                 "physfn was read, and it shows no link of its own");
        return "unknown";
    }
    fact_say(because, "no hypervisor below, and no virtual function");
    if (!sys_link(p->root, text, sizeof(text), "%s/driver", d->path) && !strcmp(text, "vfio-pci"))
        fact_say(because, "bound to vfio-pci: set aside for a guest");
    return "physical";
}

static const char *nature_of(struct probe *p, const struct pci_device *d, json_t *because)
{
    const char *made_up;
    char text[SYS_LINE];

    if (!sys_link(p->root, text, sizeof(text), "%s/physfn", d->path)) {
        fact_say(because, "physfn points to %s", text);
        return "sriov-vf";
    }
    if (d->physical >= 0) {
        fact_say(because, "a virtfn of %s points to it", p->pci->device[d->physical].address);
        return "sriov-vf";
    }
    made_up = p->guest || !p->guest_known ? nature_made(d, because, p->guest) : NULL;
    if (made_up)
        return made_up;
    return p->guest ? nature_in_guest(p, d, because) : nature_on_host(p, d, because);
}

void pci_report_nature(struct probe *p, struct pci_device *d)
{
    json_t *because = json_array();
    const char *nature = nature_of(p, d, because);

    fact_set_text(d->json, "nature", nature);
    json_object_set_new(d->json, "because", because);
}
