/* SPDX-License-Identifier: Apache-2.0 */
/* Reports the functions that bound a pipe: GPUs, network, NVMe, NVSwitch. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hw/nic.h"
#include "harness/probe/facts.h"

/* PCIe links: what each runs at, what both its ends could do, and the slowest on the way to the
 * root. Going up from a device, functions pair into links: device and port, then (inside a switch
 * the pair has no lanes of its own) the switch's upstream port and the port above it, and so on. */

enum { UPLINKS_MAX = 16 };

/* Of one direction, before packet headers; 0: not known. */
static double pci_gbytes_per_s(double gt_s, int width)
{
    return framing_pcie_gbps(&(struct nic_pcie){gt_s, fact_whole(width), 0}) / 8;
}

/* What both ends can do, or why that is not known. */
struct best {
    double gt_s;
    int width;
    const char *why; /* NULL: known */
};

/* A hypervisor's made-up port limits nothing, and what the real one could do it does not say. */
static struct best best_of(const struct probe *p, const struct pci_device *d,
                           const struct pci_device *above)
{
    struct best best = {d->link.max_gt_s, d->link.max_width, NULL};

    if (!best.width)
        best.why = "its max_link_speed or max_link_width could not be read";
    else if (p->guest)
        best.why = "the hypervisor hides the port above it";
    else if (!p->guest_known)
        best.why = "whether a hypervisor made up the port above it is not known";
    else if (d->orphan)
        best.why = "the port above it is not in the list of devices";
    else if (above && !above->link.max_width)
        best.why = "the port above it does not show what it could do";
    if (best.why || !above)
        return best;
    if (above->link.max_gt_s < best.gt_s)
        best.gt_s = above->link.max_gt_s;
    if (above->link.max_width < best.width)
        best.width = above->link.max_width;
    return best;
}

static bool is_below(const struct pci_link *link, double gt_s, int width)
{
    return link->now_gt_s < gt_s || link->now_width < width;
}

static void fill_generation(json_t *json, const char *key, double gt_s)
{
    const char *name = framing_pcie_generation(gt_s); /* "4.0" */

    fact_set(json, key, name ? json_integer(atoi(name)) : NULL, "%.1f GT/s is no speed of PCIe",
             gt_s);
}

/* What lacks of the device's own best, and of both ends'. */
static void fill_best(json_t *json, const struct pci_link *link, const struct best *best)
{
    double now = pci_gbytes_per_s(link->now_gt_s, link->now_width);

    if (link->max_width) {
        fact_set_real(json, "max_gt_s", link->max_gt_s);
        fact_set_number(json, "max_width", link->max_width);
    } else {
        fact_set_unknown(json, "max_gt_s|max_width", "%s", best->why);
    }
    if (best->why) {
        fact_set_unknown(json, "best_gt_s|best_width|best_generation|best_gbytes_per_s", "%s",
                         best->why);
        fact_set_real(json, "now_gbytes_per_s", now);
        return;
    }
    fact_set_real(json, "best_gt_s", best->gt_s);
    fact_set_number(json, "best_width", best->width);
    fill_generation(json, "best_generation", best->gt_s);
    fact_set_real(json, "now_gbytes_per_s", now);
    fact_set_real(json, "best_gbytes_per_s", pci_gbytes_per_s(best->gt_s, best->width));
}

static json_t *report_link(struct probe *p, struct pci_device *d, const struct pci_device *above,
                           double *least)
{
    const struct pci_link *link = &d->link;
    struct best best = best_of(p, d, above);
    double now = pci_gbytes_per_s(link->now_gt_s, link->now_width);
    json_t *json = json_object();

    fact_set_text(json, "device", d->address);
    fact_set_text_or(json, "port", above ? above->address : NULL, "%s",
                     d->orphan ? "not in the list of devices" : "none: it stands at the root");
    fill_generation(json, "generation", link->now_gt_s);
    fact_set_real(json, "now_gt_s", link->now_gt_s);
    fact_set_number(json, "now_width", link->now_width);
    fill_best(json, link, &best);
    /* A link at its own best cannot be below that of both ends. */
    if (link->max_width && !is_below(link, link->max_gt_s, link->max_width))
        fact_set_bool(json, "downtrained", false);
    else if (best.why)
        fact_set_unknown(json, "downtrained", "%s", best.why);
    else
        fact_set_bool(json, "downtrained", is_below(link, best.gt_s, best.width));
    if (*least <= 0 || now < *least)
        *least = now;
    return json;
}

/* Whether the way up is whole; a step that is missing could be the bridge above both. */
static bool has_way(const struct pci *pci, const struct pci_device *d)
{
    while (d && !d->orphan)
        d = pci_parent(pci, d);
    return !d;
}

/* The way to the root with all its links, or why it is not known. A made-up one is none. */
static const char *why_no_way(const struct probe *p, const struct pci_device *d)
{
    if (p->guest)
        return "the hypervisor makes up the ports above the device";
    if (!p->guest_known)
        return "whether a hypervisor made up the ports above the device is not known";
    return has_way(p->pci, d) ? NULL
                              : "a port on the way to the root is not in the list of devices";
}

static void report_uplinks(struct probe *p, struct pci_device *d, double least)
{
    struct pci_device *port = pci_parent(p->pci, d), *below, *above;
    const char *why = why_no_way(p, d);
    json_t *list = json_array();

    for (int i = 0; !why && port && i < UPLINKS_MAX; i++) {
        below = pci_parent(p->pci, port);
        above = below ? pci_parent(p->pci, below) : NULL;
        if (above && below->link.now_width)
            json_array_append_new(list, report_link(p, below, above, &least));
        else if (above)
            why = "a link on the way to the root does not show what it runs at";
        port = above;
    }
    fact_set_if(d->json, "uplinks", !why, list, "%s", why ? why : "");
    fact_set(d->json, "path_gbytes_per_s", why ? NULL : fact_real(least), "%s", why);
}

static bool is_adapter(const struct pci_device *d)
{
    return pci_is(d, "infiniband") || pci_is(d, "ethernet") || pci_is(d, "network");
}

/* The bridge above both. NULL: none below the root. */
static const struct pci_device *common_bridge(const struct pci *pci, const struct pci_device *a,
                                              const struct pci_device *b)
{
    for (const struct pci_device *up = pci_parent(pci, a); up; up = pci_parent(pci, up))
        for (const struct pci_device *other = pci_parent(pci, b); other;
             other = pci_parent(pci, other))
            if (other == up)
                return up;
    return NULL;
}

struct acs {
    bool any, redirect, direct, all_read;
};

/* Does traffic from d to another GPU or adapter turn right below the bridge? */
static bool turns_below(const struct pci *pci, const struct pci_device *d,
                        const struct pci_device *bridge)
{
    for (size_t i = 0; bridge && i < pci->count; i++) {
        const struct pci_device *other = &pci->device[i];

        if (other != d && (pci_is(other, "gpu") || is_adapter(other)) &&
            common_bridge(pci, d, other) == bridge)
            return true;
    }
    return false;
}

/* What the ports do that traffic between devices reaches: those of a switch below which it turns.
 * Where none turns, each port but the root's above a switch. */
static void read_ports(const struct pci *pci, const struct pci_device *d, bool turning,
                       struct acs *acs)
{
    bool below_a_link = true;

    *acs = (struct acs){.direct = true, .all_read = true};
    for (struct pci_device *port = pci_parent(pci, d), *above; port; port = above) {
        above = pci_parent(pci, port);
        if (turning ? turns_below(pci, d, above) : above || port == pci_parent(pci, d)) {
            acs->any = true;
            acs->redirect = acs->redirect || port->acs_redirect == 1;
            acs->direct = acs->direct && (port->acs_redirect != 1 || port->acs_direct);
            acs->all_read = acs->all_read && (!below_a_link || port->acs_redirect >= 0);
        }
        below_a_link = !below_a_link;
    }
}

/* Redirection is on where one port is seen to redirect; off, where all are seen not to. Every other
 * port up the way is a switch's upper one, which has no such control. What is translated already
 * passes where all that redirect let it. */
static void report_acs(struct probe *p, struct pci_device *d)
{
    const char *why = why_no_way(p, d);
    struct acs acs;

    read_ports(p->pci, d, true, &acs);
    if (!acs.any)
        read_ports(p->pci, d, false, &acs);
    if (!why && !pci_parent(p->pci, d))
        why = "no port above it";
    if (!why && !acs.redirect && !acs.all_read)
        why = "the ports' configuration is readable by root only";
    if (why && !(acs.redirect && !p->guest && p->guest_known)) {
        fact_set_unknown(d->json, "acs_redirect|acs_direct_translated", "%s", why);
        return;
    }
    fact_set_bool(d->json, "acs_redirect", acs.redirect);
    fact_set(d->json, "acs_direct_translated",
             acs.redirect && (acs.all_read || !acs.direct) ? json_boolean(acs.direct) : NULL, "%s",
             acs.redirect ? "not all ports' configuration could be read"
                          : "no port above it sends anything to the root");
}

/* Why a function shows no link of its own. */
static const char *no_link(struct probe *p, const struct pci_device *d, const char *nature)
{
    if (!strcmp(nature, "sriov-vf"))
        return "a virtual function uses its physical function's link";
    if (!strcmp(nature, "paravirtual") || !strcmp(nature, "emulated"))
        return "no lanes: the hypervisor provides the device";
    if (p->guest)
        return "the hypervisor hides the link";
    if (d->link.untrained && !d->orphan)
        return pci_parent(p->pci, d) ? "the kernel shows no trained link"
                                     : "no PCIe link: part of the processor or chipset";
    return "its current_link_speed or current_link_width could not be read";
}

/* Adds "link", "uplinks" and "path_gbytes_per_s"; all keys have a reason where there is no link. */
static void pci_report_links(struct probe *p, struct pci_device *d)
{
    const char *nature = fact_string(d->json, "nature"), *why = NULL;
    double least = 0;

    if (d->kind == pci_kind_unknown) /* a port's link is the one below it */
        why = "what the function is could not be read";
    else if (!probe_on_metal(p) && (d->vendor < 0 || d->device < 0 || d->subvendor < 0))
        why = "not all of its ids could be read: a hypervisor may have made it up";
    else if (!d->link.now_width || !strcmp(nature, "paravirtual") || !strcmp(nature, "emulated") ||
             !strcmp(nature, "sriov-vf"))
        why = no_link(p, d, nature);
    if (why) {
        fact_set_unknown(d->json,
                         "link|uplinks|path_gbytes_per_s|acs_redirect|acs_direct_translated", "%s",
                         why);
        return;
    }
    json_object_set_new(d->json, "link", report_link(p, d, pci_parent(p->pci, d), &least));
    report_uplinks(p, d, least);
    report_acs(p, d);
}

/* ---- packets and errors ---- */

static void report_control(const struct pci_device *d)
{
    enum { LEAST = 128 };

    if (d->control < 0) {
        fact_set_unknown(d->json, "max_payload_bytes|max_read_request_bytes|relaxed_ordering",
                         "the device's configuration is readable by root only");
        return;
    }
    fact_set_number(d->json, "max_payload_bytes", LEAST << (d->control >> 5 & 7));
    fact_set_number(d->json, "max_read_request_bytes", LEAST << (d->control >> 12 & 7));
    fact_set_bool(d->json, "relaxed_ordering", d->control >> 4 & 1);
}

/* Address translation services (ATS): bit 15 switches them on. */
static void report_services(const struct pci_device *d)
{
    if (d->services == PCI_UNREAD)
        fact_set_unknown(d->json, "translation_services", "%s",
                         d->control < 0
                             ? "the device's extended configuration is readable by root only"
                             : "the system shows no extended configuration of the device");
    else if (d->services == PCI_ABSENT)
        fact_set_text(d->json, "translation_services", "none");
    else
        fact_set_bool(d->json, "translation_services", d->services >> 15 & 1);
}

/* Advanced error reporting: lines "RxErr 0", the last "TOTAL_ERR_COR 0". The kernel has no file
 * where the device has no such capability, or the firmware keeps it for itself. */
static void set_errors(const struct probe *p, json_t *counters, const char *key, const char *folder,
                       const char *file, const char *total)
{
    char text[2048];
    const char *at;
    long long count;
    int rc = sys_read(p->root, text, sizeof(text), NULL, "%s/%s", folder, file);

    if (probe_absent(p, "%s/%s", folder, file))
        return;
    at = rc ? NULL : strstr(text, total);
    if (at && sscanf(at + strlen(total), " %lld", &count) == 1 && count >= 0)
        fact_set_number(counters, key, count);
    else
        fact_set_unknown(counters, key, "/%s/%s: %s", folder, file,
                         rc ? fact_errno(rc) : "without a total");
}

/* Errors on the way in are counted by the device, those on the way out by the port above it. */
void pci_fill_counters(const struct probe *p, json_t *device, const char *path, const char *port)
{
    json_t *counters = fact_object(device, "counters");

    set_errors(p, counters, "correctable_errors", path, "aer_dev_correctable", "TOTAL_ERR_COR");
    set_errors(p, counters, "nonfatal_errors", path, "aer_dev_nonfatal", "TOTAL_ERR_NONFATAL");
    set_errors(p, counters, "fatal_errors", path, "aer_dev_fatal", "TOTAL_ERR_FATAL");
    if (port)
        set_errors(p, counters, "port_correctable_errors", port, "aer_dev_correctable",
                   "TOTAL_ERR_COR");
}

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
    char name[SYS_LINE];

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

static void report_iommu(struct probe *p, const struct pci_device *d)
{
    char text[SYS_LINE];
    bool none = probe_absent(p, "%s/iommu_group", d->path);
    int rc = sys_link(p->root, text, sizeof(text), "%s/iommu_group", d->path);

    if (rc || digits_number(text) < 0) {
        fact_set_unknown(d->json, "iommu_group|iommu_type", "%s",
                         none ? "none: no IOMMU is active for it"
                              : "its iommu_group could not be read");
        return;
    }
    fact_set_number(d->json, "iommu_group", digits_number(text));
    fact_set_file(p, d->json, "iommu_type", FACT_LINE, "sys/kernel/iommu_groups/%s/type", text);
}

static void report_place(struct probe *p, struct pci_device *d)
{
    long long node;
    int rc = sys_number(p->root, &node, "%s/numa_node", d->path);

    bool none = !d->driver && probe_absent(p, "%s/driver", d->path);

    fact_set_text_or(d->json, "driver", none ? "none" : d->driver, "/%s/driver: not read", d->path);
    fact_set(d->json, "has_numa_node", rc ? NULL : json_boolean(node >= 0), "/%s/numa_node: %s",
             d->path, fact_errno(rc));
    if (!rc && node < 0)
        fact_set_unknown(d->json, "numa_node", "the %s gives the device no node",
                         !p->guest_known ? "firmware or hypervisor"
                         : p->guest      ? "hypervisor"
                                         : "firmware");
    else
        fact_set(d->json, "numa_node", rc ? NULL : json_integer(node), "/%s/numa_node: %s", d->path,
                 fact_errno(rc));
    report_iommu(p, d);
}

static void report_pf(struct probe *p, const struct pci_device *d, json_t *sriov)
{
    json_t *vfs = json_array();
    char text[SYS_LINE], link[32];
    long long now = 0;
    int found = 0;

    fact_set_text(sriov, "role", "pf");
    fact_set_file(p, sriov, "total_vfs", FACT_NUMBER, "%s/sriov_totalvfs", d->path);
    fact_set_file(p, sriov, "vfs", FACT_NUMBER, "%s/sriov_numvfs", d->path);
    now = fact_integer(sriov, "vfs", VFS_MAX);
    for (; found < now && found < VFS_MAX; found++) {
        snprintf(link, sizeof(link), "virtfn%d", found);
        if (sys_link(p->root, text, sizeof(text), "%s/%s", d->path, link))
            break;
        json_array_append_new(vfs, fact_text(text));
    }
    fact_set_if(sriov, "virtual_functions",
                json_is_integer(json_object_get(sriov, "vfs")) &&
                    (found == now || found == VFS_MAX),
                vfs, "%d of them have a link", found);
}

static void report_sriov(struct probe *p, const struct pci_device *d)
{
    char text[SYS_LINE];
    long long total;
    json_t *sriov;

    if (fact_is(d->json, "nature", "sriov-vf")) {
        if (p->guest && d->physical < 0) /* a guest cannot see whose it is */
            return;
        sriov = fact_object(d->json, "sriov");
        fact_set_text(sriov, "role", "vf");
        sys_link(p->root, text, sizeof(text), "%s/physfn", d->path);
        fact_set_text_or(sriov, "physical_function",
                         d->physical >= 0 ? p->pci->device[d->physical].address : text,
                         "no link names it");
    } else if (!sys_link(p->root, text, sizeof(text), "%s/virtfn0", d->path) ||
               (!sys_number(p->root, &total, "%s/sriov_totalvfs", d->path) && total > 0))
        report_pf(p, d, fact_object(d->json, "sriov"));
    else if (!probe_absent(p, "%s/sriov_totalvfs", d->path))
        fact_set_unknown(d->json, "sriov", "/%s/sriov_totalvfs: could not be read", d->path);
}

/* Mediated devices stand below their parent, named by a UUID; only their number is told. */
static void report_mdev(struct probe *p, const struct pci_device *d)
{
    struct names names = {0};
    long long count = 0;

    if (!sys_exists(p->root, "%s/mdev_supported_types", d->path))
        return;
    sys_list(p->root, &names, "%s", d->path);
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
        report_control(d);
        report_services(d);
        const struct pci_device *port = pci_parent(p->pci, d);
        pci_fill_counters(p, d->json, d->path, port ? port->path : NULL);
    }
}

/* Which network adapter is near which GPU: see pci_nearness(). */

enum { PAIRS_MAX = 4096 };

const char *pci_relation(const struct pci *pci, const struct pci_device *a,
                         const struct pci_device *b)
{
    if (!has_way(pci, a) || !has_way(pci, b))
        return NULL;
    return pci_nearness(a->path, fact_integer(a->json, "numa_node", -1), b->path,
                        fact_integer(b->json, "numa_node", -1));
}

void probe_proximity(struct probe *p)
{
    json_t *list;

    if (!p->pci || !probe_on_metal(p)) {
        fact_set_unknown(
            p->machine, "proximity", "%s",
            !p->pci ? "/sys/bus/pci/devices could not be read"
            : p->guest
                ? "the hypervisor makes up the PCI tree: which network adapter is near which "
                  "GPU does not show"
                : "whether a hypervisor made up the PCI tree is not known");
        return;
    }
    list = fact_list(p->machine, "proximity");
    for (size_t g = 0; g < p->pci->count; g++)
        for (size_t n = 0; pci_is(&p->pci->device[g], "gpu") && n < p->pci->count; n++) {
            const struct pci_device *gpu = &p->pci->device[g], *nic = &p->pci->device[n];
            const char *how;
            json_t *pair;

            /* Virtual functions stand where their physical function stands, which is in the list. */
            if (!is_adapter(nic) || fact_is(nic->json, "nature", "sriov-vf") ||
                json_array_size(list) == PAIRS_MAX)
                continue;
            how = pci_relation(p->pci, gpu, nic);
            pair = fact_append(list);
            fact_set_text(pair, "gpu", gpu->address);
            fact_set_text(pair, "nic", nic->address);
            fact_set_text_or(pair, "relation", how, "%s",
                             has_way(p->pci, gpu) && has_way(p->pci, nic)
                                 ? "different host bridges and no NUMA node for one"
                                 : "a port above one of them is not in the list of devices");
        }
    for (size_t i = 0; i < p->pci->count; i++)
        if (pci_is(&p->pci->device[i], pci_kind_unknown))
            fact_set_text(p->machine, "proximity_why",
                          "what some PCI functions are could not be read");
}
