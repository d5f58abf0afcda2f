// SPDX-License-Identifier: Apache-2.0
/*
 * Bare metal or virtual. Each detector that finds something says it in "because" and proposes a name
 * with a rank: how specific the sign is. The highest rank wins. KVM under several products looks
 * alike from below (the clock, CPUID), so the product's own marks (ACPI, DMI) rank higher.
 */
#include "harness/probe/cpuid.h"
#include "harness/probe/facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum rank {
    RANK_NONE,
    RANK_POSE = 20,    /* a name that others take on */
    RANK_FAMILY = 30,  /* qemu, with or without KVM */
    RANK_ENGINE = 50,  /* the clock or CPUID names the engine */
    RANK_PRODUCT = 60, /* DMI names the product */
    RANK_LIKELY = 65,  /* several marks that together fit one product */
    RANK_OWN = 80,     /* an interface that only this hypervisor has */
};

struct verdict {
    struct probe *p;
    json_t *because;
    const char *name;
    int rank;
    bool x86;
    bool flag;    /* x86: the CPU says that there is a hypervisor */
    bool control; /* we are Xen's control domain: the devices are real */
};

static void propose(struct verdict *v, int rank, const char *name)
{
    if (rank > v->rank) {
        v->rank = rank;
        v->name = name;
    }
}

static void look_cpu_flag(struct verdict *v)
{
    char text[16384], field[8192];

    if (tree_read(&v->p->tree, "proc/cpuinfo", text, sizeof(text), NULL) ||
        !text_field(text, "flags", field, sizeof(field)))
        return;
    v->x86 = true;
    v->flag = text_word(field, "hypervisor");
    fact_say(v->because, "/proc/cpuinfo: the CPU flag \"hypervisor\" is %s",
             v->flag ? "set" : "not set");
    if (text_field(text, "model name", field, sizeof(field)) && strstr(field, "QEMU TCG CPU")) {
        fact_say(v->because, "/proc/cpuinfo: the model is \"%s\"", field);
        propose(v, RANK_PRODUCT, "qemu-tcg");
    }
}

/* KVM can pose as Hyper-V for Windows guests, so that signature ranks below all. */
static void look_cpuid(struct verdict *v)
{
    static const struct {
        const char *signature, *name;
        int rank;
    } known[] = {
        {"KVMKVMKVM", "kvm", RANK_ENGINE},        {"KVM", "kvm", RANK_ENGINE},
        {"VMwareVMware", "vmware", RANK_OWN},     {"VMware", "vmware", RANK_OWN},
        {"XenVMMXenVMM", "xen", RANK_OWN},        {"Xen", "xen", RANK_OWN},
        {"TCGTCGTCGTCG", "qemu-tcg", RANK_OWN},   {"Microsoft Hv", "hyper-v", RANK_POSE},
        {"Microsoft", "hyper-v", RANK_POSE},      {"bhyve bhyve ", "bhyve", RANK_OWN},
        {"VBoxVBoxVBox", "virtualbox", RANK_OWN}, {"ACRNACRNACRN", "acrn", RANK_OWN},
        {" lrpepyh vr", "parallels", RANK_OWN},
    };
    char name[TREE_LINE] = "", signature[13];

    if (!v->flag)
        return;
    if (!v->p->tree.live)
        tree_line(&v->p->tree, "plumb/hypervisor-vendor", name, sizeof(name));
    else if (!cpuid_hypervisor(signature))
        strcpy(name, signature);
    if (!name[0])
        return;
    fact_say(v->because, "%s: the hypervisor calls itself \"%s\"",
             v->p->tree.live ? "CPUID leaf 0x40000000" : "lscpu, when recorded", name);
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (!strcmp(name, known[i].signature))
            propose(v, known[i].rank, known[i].name);
}

static void look_xen(struct verdict *v)
{
    char line[TREE_LINE];

    if (!tree_line(&v->p->tree, "sys/hypervisor/type", line, sizeof(line))) {
        fact_say(v->because, "/sys/hypervisor/type is \"%s\"", line);
        if (!strcmp(line, "xen"))
            propose(v, RANK_OWN, "xen");
    }
    if (!tree_line(&v->p->tree, "sys/hypervisor/guest_type", line, sizeof(line)))
        fact_say(v->because, "/sys/hypervisor/guest_type is \"%s\"", line);
    if (!tree_line(&v->p->tree, "proc/xen/capabilities", line, sizeof(line)) &&
        strstr(line, "control_d")) {
        fact_say(v->because, "/proc/xen/capabilities has control_d: the control domain, which "
                             "holds the real devices");
        v->control = true;
    }
}

/* The maker stands at bytes 10 to 15 of every ACPI table. Readable by root only. */
static void look_acpi(struct verdict *v)
{
    static const char *const tables[] = {"FACP", "APIC", "DSDT"};
    static const struct {
        const char *maker, *name;
        int rank;
    } known[] = {{"FIRECK", "firecracker", RANK_OWN},
                 {"CLOUDH", "cloud-hypervisor", RANK_OWN},
                 {"BOCHS ", "qemu", RANK_FAMILY}};
    char header[37];
    size_t length;

    for (size_t t = 0; t < sizeof(tables) / sizeof(*tables); t++) {
        struct path path = tree_join("sys/firmware/acpi/tables", tables[t]);

        if (tree_read(&v->p->tree, path.s, header, sizeof(header), &length) || length < 16)
            continue;
        for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
            if (!memcmp(header + 10, known[i].maker, 6)) {
                fact_say(v->because, "/%s: made by \"%.6s\"", path.s, known[i].maker);
                propose(v, known[i].rank, known[i].name);
                return;
            }
    }
}

static const struct product {
    const char *file, *text, *name; /* the file's line contains the text */
    int rank;
    bool metal_too; /* bare-metal machines bear it as well: believe it only beside the CPU flag */
} products[] = {
    {"sys_vendor", "VMware", "vmware", RANK_PRODUCT, false},
    {"product_name", "VMware", "vmware", RANK_PRODUCT, false},
    {"product_name", "VirtualBox", "virtualbox", RANK_PRODUCT, false},
    {"sys_vendor", "innotek GmbH", "virtualbox", RANK_PRODUCT, false},
    {"sys_vendor", "Parallels", "parallels", RANK_PRODUCT, false},
    {"sys_vendor", "Cloud Hypervisor", "cloud-hypervisor", RANK_PRODUCT, false},
    {"sys_vendor", "Xen", "xen", RANK_PRODUCT, false},
    {"bios_vendor", "Xen", "xen", RANK_PRODUCT, false},
    {"sys_vendor", "Amazon EC2", "nitro", RANK_PRODUCT, true},
    {"product_name", "KVM Virtual Machine", "kvm", RANK_PRODUCT, false},
    {"product_name", "QEMU Virtual Machine", "qemu-tcg", RANK_PRODUCT, false},
    {"product_name", "Google Compute Engine", "kvm", RANK_PRODUCT, true},
    {"product_name", "Alibaba Cloud ECS", "kvm", RANK_PRODUCT, true},
    {"product_name", "RHEV Hypervisor", "kvm", RANK_PRODUCT, false},
    {"product_name", "KVM", "kvm", RANK_PRODUCT, false},
    {"product_name", "BHYVE", "bhyve", RANK_PRODUCT, false},
    {"sys_vendor", "QEMU", "qemu", RANK_FAMILY, false},
    {"product_name", "OpenStack", "qemu", RANK_FAMILY, false},
    {"bios_vendor", "SeaBIOS", "qemu", RANK_FAMILY, true},
};

/* Microsoft makes machines too: only this product of theirs is a guest. */
static bool is_hyper_v(struct probe *p)
{
    char vendor[TREE_LINE], product[TREE_LINE];

    return !tree_line(&p->tree, "sys/class/dmi/id/sys_vendor", vendor, sizeof(vendor)) &&
           !tree_line(&p->tree, "sys/class/dmi/id/product_name", product, sizeof(product)) &&
           strstr(vendor, "Microsoft") && !strcmp(product, "Virtual Machine");
}

static void look_dmi(struct verdict *v)
{
    static const char id[] = "sys/class/dmi/id";
    char vendor[TREE_LINE], product[TREE_LINE], line[TREE_LINE];

    if (tree_line_at(&v->p->tree, id, "sys_vendor", vendor, sizeof(vendor)) ||
        tree_line_at(&v->p->tree, id, "product_name", product, sizeof(product))) {
        fact_say(v->because, "/%s: no vendor and product", id);
        return;
    }
    fact_say(v->because, "/%s: \"%s\", product \"%s\"", id, vendor, product);
    if (strstr(product, ".metal"))
        return;
    if (is_hyper_v(v->p))
        propose(v, RANK_PRODUCT, "hyper-v");
    for (size_t i = 0; i < sizeof(products) / sizeof(*products); i++)
        if ((!products[i].metal_too || v->flag || !v->x86) &&
            !tree_line_at(&v->p->tree, id, products[i].file, line, sizeof(line)) &&
            strstr(line, products[i].text))
            propose(v, products[i].rank, products[i].name);
}

static void look_device_tree(struct verdict *v)
{
    char text[TREE_LINE];

    if (tree_line(&v->p->tree, "proc/device-tree/hypervisor/compatible", text, sizeof(text)))
        return;
    fact_say(v->because, "/proc/device-tree/hypervisor/compatible is \"%s\"", text);
    if (strstr(text, "kvm"))
        propose(v, RANK_ENGINE, "kvm");
    else if (strstr(text, "xen"))
        propose(v, RANK_OWN, "xen");
}

static void look_kernel(struct verdict *v)
{
    char line[TREE_LINE];

    if (!tree_line(&v->p->tree, "sys/devices/system/clocksource/clocksource0/available_clocksource",
                   line, sizeof(line))) {
        if (text_word(line, "kvm-clock")) {
            fact_say(v->because, "the kernel offers the clock source kvm-clock");
            propose(v, RANK_ENGINE, "kvm");
        }
        if (strstr(line, "hyperv_clocksource")) {
            fact_say(v->because, "the kernel offers a Hyper-V clock source");
            propose(v, RANK_ENGINE, "hyper-v");
        }
    }
    if (tree_exists(&v->p->tree, "sys/bus/vmbus/devices")) {
        fact_say(v->because, "/sys/bus/vmbus: Hyper-V's device bus");
        propose(v, RANK_PRODUCT, "hyper-v");
    }
}

/* Firecracker shows neither DMI nor, to others than root, its ACPI tables. */
static void look_firecracker(struct verdict *v)
{
    char text[4096];
    bool mmio, generation;

    if (!v->flag || v->rank >= RANK_PRODUCT || tree_exists(&v->p->tree, "sys/class/dmi/id"))
        return;
    mmio = !tree_read(&v->p->tree, "proc/cmdline", text, sizeof(text), NULL) &&
           strstr(text, "virtio_mmio.device=4K@");
    generation = tree_exists(&v->p->tree, "sys/bus/acpi/devices/VMGENCTR:00");
    if (mmio)
        fact_say(v->because,
                 "/proc/cmdline has virtio_mmio.device=4K@..., as Firecracker gives it");
    if (generation)
        fact_say(v->because, "/sys/bus/acpi/devices/VMGENCTR:00: the name Firecracker gives it");
    if (mmio || generation)
        propose(v, RANK_LIKELY, "firecracker");
}

static void conclude(struct verdict *v, json_t *virtualization)
{
    bool dmi = tree_exists(&v->p->tree, "sys/class/dmi/id/product_name");

    if (v->name) {
        fact_set_text(virtualization, "hypervisor", v->name);
    } else if (v->flag) {
        fact_set_unknown(virtualization, "hypervisor",
                         "the CPU says that there is a hypervisor, nothing says which");
    } else if (v->x86 || dmi) {
        if (!v->x86)
            fact_say(v->because, "this architecture has no CPU flag for it, and no mark of a "
                                 "hypervisor was found");
        fact_set_text(virtualization, "hypervisor", "none");
    } else {
        fact_set_unknown(virtualization, "hypervisor",
                         "neither a CPU flag, nor DMI, nor another mark to go by");
    }
    v->p->guest_known = v->name || v->x86 || dmi;
    v->p->guest = (v->name || v->flag) && !v->control;
    json_object_set_new(virtualization, "guest",
                        v->p->guest_known ? json_boolean(v->p->guest) : json_null());
    json_object_set_new(virtualization, "because", json_incref(v->because));
}

void probe_virtualization(struct probe *p)
{
    json_t *virtualization = fact_object(p->machine, "virtualization");
    struct verdict v = {.p = p, .because = json_array()};

    look_cpu_flag(&v);
    look_cpuid(&v);
    look_xen(&v);
    look_acpi(&v);
    look_dmi(&v);
    look_device_tree(&v);
    look_kernel(&v);
    look_firecracker(&v);
    conclude(&v, virtualization);
    json_decref(v.because);
    probe_container(p, virtualization);
}
