// SPDX-License-Identifier: Apache-2.0
/*
 * PCIe links: what each runs at, what both its ends could do, and the slowest on the way to the root.
 * Going up from a device, functions pair into links: device and port, then (inside a switch the pair
 * has no lanes of its own) the switch's upstream port and the port above it, and so on.
 */
#include "harness/probe/pci.h"

#include <stdio.h>
#include <string.h>

enum { UPLINKS_MAX = 16 };

double pci_gbytes_per_s(double gt_s, int width)
{
    double coding = gt_s <= 5 ? 8.0 / 10 : gt_s <= 32 ? 128.0 / 130 : 236.0 / 256;

    return gt_s * width / 8 * coding;
}

/* What both ends can do. A hypervisor's made-up port limits nothing, and neither does a silent one. */
static struct pci_link best_of(const struct probe *p, const struct pci_device *d,
                               const struct pci_device *above)
{
    struct pci_link best = d->link;

    if (!above || p->guest || !above->link.max_width)
        return best;
    if (above->link.max_gt_s < best.max_gt_s)
        best.max_gt_s = above->link.max_gt_s;
    if (above->link.max_width < best.max_width)
        best.max_width = above->link.max_width;
    return best;
}

static bool is_below(double gt_s, int width, double best_gt_s, int best_width)
{
    return gt_s < best_gt_s || width < best_width;
}

static int generation(double gt_s)
{
    static const double speeds[] = {2.5, 5, 8, 16, 32, 64, 128};

    for (int i = 0; i < 7; i++)
        if (gt_s == speeds[i])
            return i + 1;
    return 0;
}

static void fill_link(json_t *json, const struct pci_device *d, const struct pci_link *best)
{
    const struct pci_link *link = &d->link;

    if (generation(link->now_gt_s))
        fact_set_number(json, "generation", generation(link->now_gt_s));
    else
        fact_set_unknown(json, "generation", "%.1f GT/s is no speed of PCIe", link->now_gt_s);
    fact_set_real(json, "now_gt_s", link->now_gt_s);
    fact_set_number(json, "now_width", link->now_width);
    fact_set_real(json, "max_gt_s", link->max_gt_s);
    fact_set_number(json, "max_width", link->max_width);
    fact_set_real(json, "best_gt_s", best->max_gt_s);
    fact_set_number(json, "best_width", best->max_width);
    if (generation(best->max_gt_s))
        fact_set_number(json, "best_generation", generation(best->max_gt_s));
    fact_set_real(json, "now_gbytes_per_s", pci_gbytes_per_s(link->now_gt_s, link->now_width));
    fact_set_real(json, "best_gbytes_per_s", pci_gbytes_per_s(best->max_gt_s, best->max_width));
    fact_set_bool(json, "downtrained",
                  is_below(link->now_gt_s, link->now_width, best->max_gt_s, best->max_width));
}

/* The sentence a buyer reads, and what to do about it. Once for each link. */
static void find_lost(struct probe *p, struct pci_device *d, const struct pci_device *leaf,
                      const struct pci_device *above, const struct pci_link *best)
{
    const struct pci_link *link = &d->link;
    bool trained_down = is_below(link->now_gt_s, link->now_width, best->max_gt_s, best->max_width);
    bool port_limits = is_below(best->max_gt_s, best->max_width, link->max_gt_s, link->max_width);
    bool speed_only = link->now_width >= best->max_width;
    bool gpu = d->kind && !strcmp(d->kind, "gpu");
    char runs[TREE_LINE], way[64] = "";

    if (d->link_reported || (!trained_down && !port_limits))
        return;
    d->link_reported = true;
    if (leaf != d)
        snprintf(way, sizeof(way), ", on the way to %s,", leaf->address);
    snprintf(runs, sizeof(runs), "%s%s runs at x%d of x%d (%.1f of %.1f GT/s)", d->address, way,
             link->now_width, link->max_width, link->now_gt_s, link->max_gt_s);
    if (trained_down && speed_only && gpu)
        fact_find(p, SEVERITY_INFO, d->address,
                  "%s: idle GPUs slow their link to save power, so look again under load", runs);
    else if (trained_down)
        fact_find(p, SEVERITY_WARN, d->address, "%s: %s could do x%d at %.1f GT/s, so look at %s",
                  runs, p->guest || !above ? "it" : "both ends", best->max_width, best->max_gt_s,
                  speed_only ? "the firmware's speed setting and at riser or cable"
                             : "seating, riser and the slot's bifurcation");
    else
        fact_find(p, SEVERITY_INFO, d->address,
                  "%s: the port above it, %s, offers no more than x%d at %.1f GT/s", runs,
                  above->address, best->max_width, best->max_gt_s);
}

/* leaf is the device whose way to the root is reported: d itself, or one below it. */
static json_t *report_link(struct probe *p, struct pci_device *d, const struct pci_device *leaf,
                           const struct pci_device *above, double *least)
{
    struct pci_link best = best_of(p, d, above);
    double now = pci_gbytes_per_s(d->link.now_gt_s, d->link.now_width);
    json_t *json = json_object();

    fact_set_text(json, "device", d->address);
    fact_set_text(json, "port", above ? above->address : NULL);
    fill_link(json, d, &best);
    find_lost(p, d, leaf, above, &best);
    if (*least <= 0 || now < *least)
        *least = now;
    return json;
}

static bool has_link(const struct pci_device *d)
{
    return d->link.now_width && d->link.max_width;
}

static void report_uplinks(struct probe *p, struct pci_device *d, double *least)
{
    struct pci_device *port = pci_parent(p->pci, d), *below, *above;
    json_t *list;

    if (p->guest) {
        fact_set_unknown(d->json, "uplinks", "the hypervisor makes up the ports above the device");
        return;
    }
    list = fact_list(d->json, "uplinks");
    for (int i = 0; port && i < UPLINKS_MAX; i++) {
        below = pci_parent(p->pci, port);
        above = below ? pci_parent(p->pci, below) : NULL;
        if (above && has_link(below))
            json_array_append_new(list, report_link(p, below, d, above, least));
        port = above;
    }
}

static void report_acs(struct probe *p, struct pci_device *d)
{
    int redirect = -1;

    if (p->guest) {
        fact_set_unknown(d->json, "acs_redirect", "the hypervisor makes up the ports above");
        return;
    }
    for (struct pci_device *port = pci_parent(p->pci, d); port; port = pci_parent(p->pci, port))
        if (port->acs_redirect > redirect)
            redirect = port->acs_redirect;
    if (redirect >= 0)
        fact_set_bool(d->json, "acs_redirect", redirect == 1);
    else
        fact_set_unknown(d->json, "acs_redirect",
                         pci_parent(p->pci, d) ? "the ports' configuration is readable by root only"
                                               : "no port above it");
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
    return pci_parent(p->pci, d) ? "the kernel shows no trained link"
                                 : "no PCIe link: part of the processor or chipset";
}

void pci_report_links(struct probe *p, struct pci_device *d)
{
    const char *nature = fact_string(d->json, "nature");
    bool made_up = !strcmp(nature, "paravirtual") || !strcmp(nature, "emulated");
    double least = 0;

    if (!has_link(d) || made_up || !strcmp(nature, "sriov-vf")) {
        fact_set_unknown(d->json, "link", "%s", no_link(p, d, nature));
        return;
    }
    json_object_set_new(d->json, "link", report_link(p, d, d, pci_parent(p->pci, d), &least));
    report_uplinks(p, d, &least);
    fact_set_real(d->json, "path_gbytes_per_s", least);
    report_acs(p, d);
}
