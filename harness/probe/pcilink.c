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

static int generation(double gt_s)
{
    static const double speeds[] = {2.5, 5, 8, 16, 32, 64, 128};

    for (int i = 0; i < 7; i++)
        if (gt_s == speeds[i])
            return i + 1;
    return 0;
}

static void fill_generation(json_t *json, const char *key, double gt_s)
{
    if (generation(gt_s))
        fact_set_number(json, key, generation(gt_s));
    else
        fact_set_unknown(json, key, "%.1f GT/s is no speed of PCIe", gt_s);
}

/* What lacks of the device's own best, and of both ends'. */
static void fill_best(json_t *json, const struct pci_link *link, const struct best *best)
{
    static const char *const keys[] = {"best_gt_s", "best_width", "best_generation",
                                       "best_gbytes_per_s"};
    double now = pci_gbytes_per_s(link->now_gt_s, link->now_width);

    if (link->max_width) {
        fact_set_real(json, "max_gt_s", link->max_gt_s);
        fact_set_number(json, "max_width", link->max_width);
    } else {
        fact_set_unknown(json, "max_gt_s", "%s", best->why);
        fact_set_unknown(json, "max_width", "%s", best->why);
    }
    if (best->why) {
        for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
            fact_set_unknown(json, keys[i], "%s", best->why);
        fact_set_real(json, "now_gbytes_per_s", now);
        return;
    }
    fact_set_real(json, "best_gt_s", best->gt_s);
    fact_set_number(json, "best_width", best->width);
    fill_generation(json, "best_generation", best->gt_s);
    fact_set_real(json, "now_gbytes_per_s", now);
    fact_set_real(json, "best_gbytes_per_s", pci_gbytes_per_s(best->gt_s, best->width));
}

/* A link at its own best cannot be below that of both ends. */
static void fill_link(json_t *json, const struct pci_device *d, const struct best *best)
{
    const struct pci_link *link = &d->link;

    fill_generation(json, "generation", link->now_gt_s);
    fact_set_real(json, "now_gt_s", link->now_gt_s);
    fact_set_number(json, "now_width", link->now_width);
    fill_best(json, link, best);
    if (link->max_width && !is_below(link, link->max_gt_s, link->max_width))
        fact_set_bool(json, "downtrained", false);
    else if (best->why)
        fact_set_unknown(json, "downtrained", "%s", best->why);
    else
        fact_set_bool(json, "downtrained", is_below(link, best->gt_s, best->width));
}

static void find_trained_down(struct probe *p, const struct pci_device *d, const struct best *best,
                              const char *runs)
{
    bool speed_only = d->link.now_width >= best->width;

    if (speed_only && d->kind && !strcmp(d->kind, "gpu"))
        fact_find(p, SEVERITY_INFO, d->address,
                  "%s: idle GPUs slow their link to save power, so look again under load", runs);
    else
        fact_find(p, SEVERITY_WARN, d->address, "%s: %s could do x%d at %.1f GT/s, so look at %s",
                  runs, pci_parent(p->pci, d) ? "both ends" : "it", best->width, best->gt_s,
                  speed_only ? "the firmware's speed setting and at riser or cable"
                             : "seating, riser and the slot's bifurcation");
}

/* The sentence a buyer reads, and what to do about it. Once for each link. */
static void find_lost(struct probe *p, struct pci_device *d, const struct pci_device *leaf,
                      const struct pci_device *above, const struct best *best)
{
    const struct pci_link *link = &d->link;
    char runs[TREE_LINE], way[64] = "";

    if (d->link_reported || !link->max_width || !is_below(link, link->max_gt_s, link->max_width))
        return;
    d->link_reported = true;
    if (leaf != d)
        snprintf(way, sizeof(way), ", on the way to %s,", leaf->address);
    snprintf(runs, sizeof(runs), "%s%s runs at x%d of x%d (%.1f of %.1f GT/s)", d->address, way,
             link->now_width, link->max_width, link->now_gt_s, link->max_gt_s);
    if (best->why)
        fact_find(p, SEVERITY_INFO, d->address,
                  "%s: whether it could do more here is not known: %s", runs, best->why);
    else if (is_below(link, best->gt_s, best->width))
        find_trained_down(p, d, best, runs);
    else
        fact_find(p, SEVERITY_INFO, d->address,
                  "%s: the port above it, %s, offers no more than x%d at %.1f GT/s", runs,
                  above ? above->address : "?", best->width, best->gt_s);
}

/* leaf is the device whose way to the root is reported: d itself, or one below it. */
static json_t *report_link(struct probe *p, struct pci_device *d, const struct pci_device *leaf,
                           const struct pci_device *above, double *least)
{
    struct best best = best_of(p, d, above);
    double now = pci_gbytes_per_s(d->link.now_gt_s, d->link.now_width);
    json_t *json = json_object();

    fact_set_text(json, "device", d->address);
    fact_set_text_or(json, "port", above ? above->address : NULL, "%s",
                     d->orphan ? "not in the list of devices" : "none: it stands at the root");
    fill_link(json, d, &best);
    find_lost(p, d, leaf, above, &best);
    if (*least <= 0 || now < *least)
        *least = now;
    return json;
}

static bool has_link(const struct pci_device *d)
{
    return d->link.now_width;
}

/* The way to the root with all its links, or why it is not known. A made-up one is none. */
static const char *why_no_way(const struct probe *p, const struct pci_device *d)
{
    if (p->guest)
        return "the hypervisor makes up the ports above the device";
    if (!p->guest_known)
        return "whether a hypervisor made up the ports above the device is not known";
    for (const struct pci_device *at = d; at; at = pci_parent(p->pci, at))
        if (at->orphan)
            return "a port on the way to the root is not in the list of devices";
    return NULL;
}

static void report_uplinks(struct probe *p, struct pci_device *d, double least)
{
    struct pci_device *port = pci_parent(p->pci, d), *below, *above;
    const char *why = why_no_way(p, d);
    json_t *list = json_array();

    for (int i = 0; !why && port && i < UPLINKS_MAX; i++) {
        below = pci_parent(p->pci, port);
        above = below ? pci_parent(p->pci, below) : NULL;
        if (above && has_link(below))
            json_array_append_new(list, report_link(p, below, d, above, &least));
        else if (above)
            why = "a link on the way to the root does not show what it runs at";
        port = above;
    }
    if (why)
        fact_set_unknown(d->json, "uplinks", "%s", why);
    else
        json_object_set(d->json, "uplinks", list);
    json_decref(list);
    if (why)
        fact_set_unknown(d->json, "path_gbytes_per_s", "%s", why);
    else
        fact_set_real(d->json, "path_gbytes_per_s", least);
}

/* On, where one port is seen to redirect; off, where all are seen not to. Every other port up the way is
 * a switch's upper one, which has no such control. */
static void report_acs(struct probe *p, struct pci_device *d)
{
    const char *why = why_no_way(p, d);
    bool redirect = false, all_read = true, below_a_link = true;

    for (struct pci_device *port = pci_parent(p->pci, d); port; port = pci_parent(p->pci, port)) {
        redirect = redirect || port->acs_redirect == 1;
        all_read = all_read && (!below_a_link || port->acs_redirect >= 0);
        below_a_link = !below_a_link;
    }
    if (why && (p->guest || !p->guest_known || !redirect))
        fact_set_unknown(d->json, "acs_redirect", "%s", why);
    else if (!pci_parent(p->pci, d))
        fact_set_unknown(d->json, "acs_redirect", "no port above it");
    else if (redirect || all_read)
        fact_set_bool(d->json, "acs_redirect", redirect);
    else
        fact_set_unknown(d->json, "acs_redirect",
                         "the ports' configuration is readable by root only");
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

/* Keys that a function without a link of its own has too, so that none is missing without a word. */
static void no_links(json_t *json, const char *why)
{
    static const char *const keys[] = {"link", "uplinks", "path_gbytes_per_s", "acs_redirect"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        fact_set_unknown(json, keys[i], "%s", why);
}

void pci_report_links(struct probe *p, struct pci_device *d)
{
    const char *nature = fact_string(d->json, "nature");
    bool made_up = !strcmp(nature, "paravirtual") || !strcmp(nature, "emulated");
    double least = 0;

    if (d->kind == pci_kind_unknown) { /* a port's link is the one below it */
        no_links(d->json, "what the function is could not be read");
        return;
    }
    if (!probe_on_metal(p) && (d->vendor < 0 || d->device < 0 || d->subvendor < 0)) {
        no_links(d->json, "not all of its ids could be read: a hypervisor may have made it up");
        return;
    }
    if (!has_link(d) || made_up || !strcmp(nature, "sriov-vf")) {
        no_links(d->json, no_link(p, d, nature));
        return;
    }
    json_object_set_new(d->json, "link", report_link(p, d, d, pci_parent(p->pci, d), &least));
    report_uplinks(p, d, least);
    report_acs(p, d);
}
