/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bare metal or virtual. Each detector that finds something says it in "because" and proposes a
 * name with a rank: how specific the sign is. The highest rank wins. KVM under several products
 * looks alike from below (the clock, CPUID), so the product's own marks (ACPI, DMI) rank higher.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/probe/facts.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

/*
 * CPUID: the name a hypervisor gives itself in leaf 0x40000000, up to 12 characters, e.g.
 * "KVMKVMKVM". Ask only where the CPU flag "hypervisor" is set: the leaf means nothing otherwise.
 * Returns 0, or -EOPNOTSUPP where the processor has no CPUID.
 */
#if defined(__x86_64__) || defined(__i386__)
static int cpuid_hypervisor(char name[13])
{
    unsigned eax, part[3];

    __cpuid(0x40000000, eax, part[0], part[1], part[2]);
    memcpy(name, part, 12);
    name[12] = '\0';
    return 0;
}
#else
static int cpuid_hypervisor(char name[13])
{
    name[0] = '\0';
    return -EOPNOTSUPP;
}
#endif

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
    bool flag;        /* x86: the CPU says that there is a hypervisor */
    bool control;     /* we are Xen's control domain: the devices are real */
    bool dmi;         /* maker and product were read */
    bool metal;       /* the product's own name says bare metal */
    char device[160]; /* a sign of a guest that names no hypervisor; or "" */
    char unread[160]; /* what should have told and could not be read; or "" */
};

/* ---- What the firmware calls the machine: the products that are hypervisors' guests ---- */

/* The name counts unless one of the same rank or a higher one stands. */
static void virt_propose(struct verdict *v, int rank, const char *name)
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

static bool dmi_line(struct verdict *v, const char *file, char *line)
{
    int rc = sys_line(v->p->root, line, SYS_LINE, "%s/%s", dmi_id, file);

    if (rc)
        line[0] = '\0';
    return !rc;
}

static void virt_look_dmi(struct verdict *v)
{
    char vendor[SYS_LINE], product[SYS_LINE], line[SYS_LINE];
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
    /* Microsoft makes machines too: only this product of theirs is a guest. */
    if (strstr(vendor, "Microsoft") && !strcmp(product, "Virtual Machine"))
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

static void look_cpu_flag(struct verdict *v)
{
    char text[65536], field[8192];

    if (read_cpuinfo(v->p, text, sizeof(text)) || !text_field(text, "flags", field, sizeof(field)))
        return;
    v->x86 = true;
    v->flag = text_word(field, "hypervisor");
    fact_say(v->because, "/proc/cpuinfo: the CPU flag \"hypervisor\" is %s",
             v->flag ? "set" : "not set");
    if (text_field(text, "model name", field, sizeof(field)) && strstr(field, "QEMU TCG CPU")) {
        fact_say(v->because, "/proc/cpuinfo: the model is \"%s\"", field);
        virt_propose(v, RANK_PRODUCT, "qemu-tcg");
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
    char name[SYS_LINE] = "", signature[13];

    if (!v->flag)
        return;
    if (v->p->root)
        sys_line(v->p->root, name, sizeof(name), "plumb/hypervisor-vendor");
    else if (!cpuid_hypervisor(signature))
        strcpy(name, signature);
    if (!name[0])
        return;
    fact_say(v->because, "%s: the hypervisor calls itself \"%s\"",
             !v->p->root ? "CPUID leaf 0x40000000" : "lscpu, when recorded", name);
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (!strcmp(name, known[i].signature))
            virt_propose(v, known[i].rank, known[i].name);
}

static void look_xen(struct verdict *v)
{
    char line[SYS_LINE];

    if (!sys_line(v->p->root, line, sizeof(line), "sys/hypervisor/type")) {
        fact_say(v->because, "/sys/hypervisor/type is \"%s\"", line);
        if (!strcmp(line, "xen"))
            virt_propose(v, RANK_OWN, "xen");
    }
    if (!sys_line(v->p->root, line, sizeof(line), "sys/hypervisor/guest_type"))
        fact_say(v->because, "/sys/hypervisor/guest_type is \"%s\"", line);
    if (!sys_line(v->p->root, line, sizeof(line), "proc/xen/capabilities") &&
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
        struct path path = path_join("sys/firmware/acpi/tables", tables[t]);

        if (sys_read(v->p->root, header, sizeof(header), &length, "%s", path.s) || length < 16)
            continue;
        for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
            if (!memcmp(header + 10, known[i].maker, 6)) {
                fact_say(v->because, "/%s: made by \"%.6s\"", path.s, known[i].maker);
                virt_propose(v, known[i].rank, known[i].name);
                return;
            }
    }
}

static void look_device_tree(struct verdict *v)
{
    char text[SYS_LINE];

    if (sys_line(v->p->root, text, sizeof(text), "proc/device-tree/hypervisor/compatible"))
        return;
    fact_say(v->because, "/proc/device-tree/hypervisor/compatible is \"%s\"", text);
    if (strstr(text, "kvm"))
        virt_propose(v, RANK_ENGINE, "kvm");
    else if (strstr(text, "xen"))
        virt_propose(v, RANK_OWN, "xen");
}

static void look_kernel(struct verdict *v)
{
    char line[SYS_LINE];

    if (!sys_line(v->p->root, line, sizeof(line),
                  "sys/devices/system/clocksource/clocksource0/available_clocksource")) {
        if (text_word(line, "kvm-clock")) {
            fact_say(v->because, "the kernel offers the clock source kvm-clock");
            virt_propose(v, RANK_ENGINE, "kvm");
        }
        if (strstr(line, "hyperv_clocksource")) {
            fact_say(v->because, "the kernel offers a Hyper-V clock source");
            virt_propose(v, RANK_ENGINE, "hyper-v");
        }
    }
    if (sys_exists(v->p->root, "sys/bus/vmbus/devices")) {
        fact_say(v->because, "/sys/bus/vmbus: Hyper-V's device bus");
        virt_propose(v, RANK_PRODUCT, "hyper-v");
    }
}

/* Firecracker shows neither DMI nor, to others than root, its ACPI tables. */
static void look_firecracker(struct verdict *v)
{
    char text[4096];
    bool mmio, generation;

    if (!v->flag || v->rank >= RANK_PRODUCT || sys_exists(v->p->root, "sys/class/dmi/id"))
        return;
    mmio = !sys_read(v->p->root, text, sizeof(text), NULL, "proc/cmdline") &&
           strstr(text, "virtio_mmio.device=4K@");
    generation = sys_exists(v->p->root, "sys/bus/acpi/devices/VMGENCTR:00");
    if (mmio)
        fact_say(v->because,
                 "/proc/cmdline has virtio_mmio.device=4K@..., as Firecracker gives it");
    if (generation)
        fact_say(v->because, "/sys/bus/acpi/devices/VMGENCTR:00: the name Firecracker gives it");
    if (mmio || generation)
        virt_propose(v, RANK_LIKELY, "firecracker");
}

/* ---- devices that only guests have ---- */

static void note_device(struct verdict *v, const char *name, int rank, const char *what)
{
    fact_say(v->because, "%s, as hypervisors make them", what);
    if (name)
        virt_propose(v, rank, name);
    else if (!v->device[0])
        snprintf(v->device, sizeof(v->device), "%s", what);
}

static void look_pci(struct verdict *v)
{
    const struct pci *pci = v->p->pci;
    const char *said = NULL, *name, *what;
    char text[160];

    if (!pci) {
        if (!probe_absent(v->p, "sys/bus/pci/devices"))
            snprintf(v->unread, sizeof(v->unread), "/sys/bus/pci/devices");
        return;
    }
    for (size_t i = 0; i < pci->count; i++) {
        const struct pci_device *d = &pci->device[i];

        if (d->vendor < 0 && !v->unread[0])
            snprintf(v->unread, sizeof(v->unread), "the vendor of %s", d->address);
        what = pci_guest_mark(d, &name);
        if (!what || (said && !strcmp(said, name ? name : "")))
            continue;
        said = name ? name : "";
        snprintf(text, sizeof(text), "%s (%04lx:%04lx) is %s", d->address, d->vendor, d->device,
                 what);
        note_device(v, name, name && !strcmp(name, "qemu") ? RANK_FAMILY : RANK_PRODUCT, text);
    }
}

/* Off the PCI bus: virtio over memory-mapped registers, Xen's bus, network drivers of guests. */
static void look_buses(struct verdict *v)
{
    static const char *const buses[][2] = {{"sys/bus/virtio/devices", "a virtio device"},
                                           {"sys/bus/xen/devices", "a device on Xen's bus"}};
    char driver[SYS_LINE], text[160];
    struct names names;

    for (size_t i = 0; i < 2; i++) {
        sys_list(v->p->root, &names, "%s", buses[i][0]);
        if (names.count) {
            snprintf(text, sizeof(text), "/%s has %s", buses[i][0], buses[i][1]);
            note_device(v, i ? "xen" : NULL, RANK_FAMILY, text);
        }
        names_free(&names);
    }
    sys_list(v->p->root, &names, "sys/class/net");
    for (size_t i = 0; i < names.count; i++) {
        if (sys_link(v->p->root, driver, sizeof(driver), "sys/class/net/%s/device/driver",
                     names.name[i]) ||
            !net_guest_driver(driver))
            continue;
        snprintf(text, sizeof(text), "the network interface %.40s has the driver %.40s",
                 names.name[i], driver);
        note_device(v, NULL, 0, text);
        break;
    }
    names_free(&names);
}

/* "none" needs all that could speak against it to have been read: the CPU flag where there is one,
 * DMI, and the devices; where there is no flag, the bus itself. */
static const char *why_not_metal(struct verdict *v, char *why, size_t size)
{
    if (v->flag)
        return "the CPU says that there is a hypervisor, nothing says which";
    if (v->device[0])
        snprintf(why, size, "%s, and nothing else speaks of a hypervisor", v->device);
    else if (!v->dmi && !v->x86)
        return "neither a CPU flag, nor DMI, nor another mark to go by";
    else if (!v->dmi)
        return "the CPU flag is not set, but some hypervisors hide it, and DMI does not tell maker "
               "and "
               "product";
    else if (v->unread[0] && !v->metal && (!v->x86 || v->p->pci))
        snprintf(why, size, "no mark of a hypervisor, but %s could not be read", v->unread);
    else
        return NULL;
    return why;
}

static void conclude(struct verdict *v, json_t *virtualization)
{
    char text[256];
    const char *why = why_not_metal(v, text, sizeof(text));

    if (v->name) {
        fact_set_text(virtualization, "hypervisor", v->name);
    } else if (why) {
        fact_set_unknown(virtualization, "hypervisor", "%s", why);
    } else {
        if (!v->x86)
            fact_say(v->because, "this architecture has no CPU flag for it, and no mark of a "
                                 "hypervisor was found");
        fact_set_text(virtualization, "hypervisor", "none");
    }
    v->p->guest_known = v->name || v->flag || !why;
    v->p->guest = (v->name || v->flag) && !v->control;
    fact_set(virtualization, "guest", v->p->guest_known ? json_boolean(v->p->guest) : NULL, "%s",
             why);
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
    virt_look_dmi(&v);
    look_device_tree(&v);
    look_kernel(&v);
    look_pci(&v);
    look_buses(&v);
    look_firecracker(&v);
    conclude(&v, virtualization);
    json_decref(v.because);
    probe_container(p, virtualization);
}
