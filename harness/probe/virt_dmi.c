/* SPDX-License-Identifier: Apache-2.0 */
/* What the firmware calls the machine: the products that are hypervisors' guests. */
#include "harness/probe/virt_parts.h"

#include <stdio.h>
#include <string.h>

void virt_propose(struct verdict *v, int rank, const char *name)
{
    if (rank > v->rank) {
        v->rank = rank;
        v->name = name;
    }
}

static const struct product {
    const char *file, *text; /* the file's line contains the text */
    const char *name;        /* NULL: a cloud that rents out guests and machines under one name */
    int rank;
    bool metal_too; /* bare-metal machines bear it as well: believe it only beside the CPU flag */
} products[] = {
    {"sys_vendor", "VMware", "vmware", RANK_PRODUCT, false},
    {"product_name", "VMware", "vmware", RANK_PRODUCT, false},
    {"bios_vendor", "VMware", "vmware", RANK_PRODUCT, false},
    {"product_name", "VirtualBox", "virtualbox", RANK_PRODUCT, false},
    {"board_name", "VirtualBox", "virtualbox", RANK_PRODUCT, false},
    {"bios_version", "VirtualBox", "virtualbox", RANK_PRODUCT, false},
    {"sys_vendor", "innotek GmbH", "virtualbox", RANK_PRODUCT, false},
    {"bios_vendor", "innotek GmbH", "virtualbox", RANK_PRODUCT, false},
    {"sys_vendor", "Parallels", "parallels", RANK_PRODUCT, false},
    {"product_name", "Parallels", "parallels", RANK_PRODUCT, false},
    {"bios_vendor", "Parallels", "parallels", RANK_PRODUCT, false},
    {"product_name", "Apple Virtualization", "apple", RANK_PRODUCT, false},
    {"product_name", "VirtualMac", "apple", RANK_PRODUCT, false},
    {"sys_vendor", "Cloud Hypervisor", "cloud-hypervisor", RANK_PRODUCT, false},
    {"sys_vendor", "Xen", "xen", RANK_PRODUCT, false},
    {"bios_vendor", "Xen", "xen", RANK_PRODUCT, false},
    {"sys_vendor", "Amazon EC2", "nitro", RANK_PRODUCT, true},
    {"product_name", "KVM Virtual Machine", "kvm", RANK_PRODUCT, false},
    {"product_name", "Google Compute Engine", "kvm", RANK_PRODUCT, true},
    {"product_name", "Alibaba Cloud ECS", "kvm", RANK_PRODUCT, true},
    {"product_name", "RHEV Hypervisor", "kvm", RANK_PRODUCT, false},
    {"sys_vendor", "oVirt", "kvm", RANK_PRODUCT, false}, /* the product may be the guest's system */
    {"product_family", "RHV", "kvm", RANK_PRODUCT, false},
    {"sys_vendor", "Scaleway", "kvm", RANK_PRODUCT, true},
    {"product_name", "KVM", "kvm", RANK_PRODUCT, false},
    {"sys_vendor", "KubeVirt", "kvm", RANK_PRODUCT, false},
    {"product_name", "KubeVirt", "kvm", RANK_PRODUCT, false},
    {"product_name", "vServer", "kvm", RANK_PRODUCT, false}, /* Hetzner */
    {"product_name", "CVM", "kvm", RANK_PRODUCT, false},     /* Tencent */
    {"sys_vendor", "Tencent Cloud", NULL, RANK_NONE, false},
    {"sys_vendor", "Huawei Cloud", NULL, RANK_NONE, false},
    {"chassis_asset_tag", "HUAWEICLOUD", NULL, RANK_NONE, false},
    {"sys_vendor", "Alibaba Cloud", NULL, RANK_NONE, false},
    {"sys_vendor", "DigitalOcean", "kvm", RANK_PRODUCT, false},
    {"product_name", "Droplet", "kvm", RANK_PRODUCT, false},
    {"product_name", "AHV", "kvm", RANK_PRODUCT, false}, /* Nutanix */
    {"product_name", "BHYVE", "bhyve", RANK_PRODUCT, false},
    {"bios_vendor", "BHYVE", "bhyve", RANK_PRODUCT, false},
    /* Without KVM, and under macOS and Windows, QEMU names itself so too. */
    {"sys_vendor", "QEMU", "qemu", RANK_FAMILY, false},
    {"product_name", "QEMU", "qemu", RANK_FAMILY, false},
    {"sys_vendor", "Bochs", "qemu", RANK_FAMILY, false},
    {"bios_vendor", "Bochs", "qemu", RANK_FAMILY, false},
    {"product_name", "OpenStack", "qemu", RANK_FAMILY, false},
    {"sys_vendor", "OpenStack", "qemu", RANK_FAMILY, false},
    {"product_version", "pc-i440fx-", "qemu", RANK_FAMILY, false},
    {"product_version", "pc-q35-", "qemu", RANK_FAMILY, false},
    {"bios_vendor", "SeaBIOS", "qemu", RANK_FAMILY, true},
};

static const char dmi_id[] = "sys/class/dmi/id";

/* Microsoft makes machines too: only this product of theirs is a guest. */
static bool is_hyper_v(const char *vendor, const char *product)
{
    return strstr(vendor, "Microsoft") && !strcmp(product, "Virtual Machine");
}

static bool dmi_line(struct verdict *v, const char *file, char *line)
{
    int rc = tree_line_at(&v->p->tree, dmi_id, file, line, TREE_LINE);

    if (rc)
        line[0] = '\0';
    return !rc;
}

void virt_look_dmi(struct verdict *v)
{
    char vendor[TREE_LINE], product[TREE_LINE], line[TREE_LINE];
    bool made = dmi_line(v, "sys_vendor", vendor), named = dmi_line(v, "product_name", product);

    v->dmi = made && named;
    if (made || named)
        fact_say(v->because, "/%s: \"%s\", product \"%s\"", dmi_id, made ? vendor : "?",
                 named ? product : "?");
    if (!v->dmi)
        fact_say(v->because, "/%s: no %s", dmi_id,
                 made    ? "product"
                 : named ? "vendor"
                         : "vendor and product");
    v->metal = v->dmi && strstr(product, ".metal");
    if (v->metal)
        return;
    if (is_hyper_v(vendor, product))
        virt_propose(v, RANK_PRODUCT, "hyper-v");
    for (size_t i = 0; i < sizeof(products) / sizeof(*products); i++) {
        const struct product *known = &products[i];

        if ((known->metal_too && v->x86 && !v->flag) || !dmi_line(v, known->file, line) ||
            !strstr(line, known->text))
            continue;
        if (strcmp(known->file, "sys_vendor") != 0 && strcmp(known->file, "product_name") != 0 &&
            known->rank > v->rank)
            fact_say(v->because, "/%s/%s is \"%s\"", dmi_id, known->file, line);
        if (known->name)
            virt_propose(v, known->rank, known->name);
        else
            snprintf(v->device, sizeof(v->device),
                     "DMI names %s, which rents out guests and machines", known->text);
    }
}
