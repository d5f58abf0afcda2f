/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the PCI bus: links, slots, and the path between devices. See exam.h. */
#include <string.h>

#include "core/hw/nic.h"
#include "harness/exam/exam.h"

#define PCIE_WIDTH_MAX 32

static const char *address_of(const json_t *device)
{
    const char *address = fact_name(device, "address");

    return *address ? address : "?";
}

/* Has no lanes of its own. */
static bool is_made_up(const json_t *device)
{
    return fact_fits("paravirtual|emulated|sriov-vf|software", fact_name(device, "nature"));
}

/* What the ports of one function can carry; 0: not known, or no adapter. A port may be there twice,
 * as an interface and as a port of RDMA, or only once: InfiniBand without IPoIB has no interface. */
static double function_gbytes_per_s(const struct exam *x, const json_t *device)
{
    double net = 0, rdma = 0;

    if (!exam_is_nic(device))
        return 0;
    FACT_EACH (exam_peek(x, "network"), nic)
        if (fact_is(nic, "pci", address_of(device)))
            net += fact_number(nic, "speed_gbits_per_s", 0);
    FACT_EACH (exam_peek(x, "rdma"), nic)
        FACT_EACH (json_object_get(nic, "ports"), port)
            if (fact_is(nic, "pci", address_of(device)) && !is_made_up(nic) && exam_is_active(port))
                rdma += fact_number(port, "rate_gbits_per_s", 0);
    return (rdma > net ? rdma : net) / 8;
}

/* Functions of one slot, as the ports of an adapter are: "0000:19:00.0" and "0000:19:00.1". A
 * hypervisor may put different devices into one slot. */
static bool is_one_slot(const struct exam *x, const json_t *a, const json_t *b)
{
    const char *address = address_of(a), *dot = strrchr(address, '.');

    if (a == b)
        return true;
    return exam_metal(x) && dot && !strncmp(address, address_of(b), (size_t)(dot - address) + 1);
}

/* What all ports that share the device's link can carry; 0: not known, or no adapter. */
static double port_gbytes_per_s(const struct exam *x, const json_t *device)
{
    double sum = 0;

    if (!exam_is_nic(device))
        return 0;
    FACT_EACH (exam_peek(x, "pci"), other)
        if (!is_made_up(other) && is_one_slot(x, device, other))
            sum += function_gbytes_per_s(x, other);
    return sum;
}

/* ---- Links */

static bool is_narrow(const json_t *link)
{
    return fact_number(link, "now_width", 0) < fact_number(link, "best_width", 0);
}

/* An idle GPU slows its link down to save power, and keeps its width. */
static bool may_rest(const json_t *device, const json_t *link)
{
    return exam_is_gpu(device) && fact_is(link, "device", address_of(device)) &&
           fact_number(link, "now_gt_s", 0) < fact_number(link, "best_gt_s", 0);
}

/* `way`: where the link is on the way from another device. */
static void find_link(struct exam *x, const json_t *device, const json_t *link, const char *way)
{
    double now = fact_number(link, "now_gbytes_per_s", 0),
           best = fact_number(link, "best_gbytes_per_s", 0), ports = port_gbytes_per_s(x, device),
           width = fact_number(link, "now_width", 0),
           best_width = fact_number(link, "best_width", 0);
    const char *port = fact_name(link, "port");

    exam_found(
        x, "%sthe link runs at x%.0f, %.1f GT/s; both ends could do x%.0f, %.1f%s", way, width,
        fact_number(link, "now_gt_s", 0), best_width, fact_number(link, "best_gt_s", 0),
        may_rest(device, link) ? "; an idle GPU lowers its speed too: look again under load" : "");
    if (may_rest(device, link)) /* lanes are lost for sure, its speed perhaps at rest alone */
        exam_price(x, 1 - width / fact_number(link, "best_width", 1), "bandwidth of the PCIe link",
                   "at least 1 - %.0f/%.0f lanes", width, best_width);
    else if (ports > 0 && ports < best)
        exam_price_rest(x, now, ports, "network bandwidth", "GB/s of the ports");
    else if (best > 0)
        exam_price_rest(x, now, best, "bandwidth of the PCIe link", "GB/s");
    if (is_narrow(link))
        exam_remedy(x, "reseat {}, check its riser and the slot's bifurcation in the firmware");
    else
        exam_remedy(x, "check the speed of port %s in the firmware, the riser and the cable",
                    *port ? port : "above");
}

static void judge_link(struct exam *x, const json_t *device, const json_t *link)
{
    const char *name = fact_name(link, "device"), *address = address_of(device),
               *subject = *name ? name : address;
    double ports = port_gbytes_per_s(x, device);
    bool down;

    if (exam_has(x, subject)) /* a link of several devices */
        return;
    exam_about(x, subject);
    if (!exam_get(x, link, "now_gbytes_per_s") || !exam_get(x, link, "best_gbytes_per_s"))
        exam_get(x, link, "max_width");
    if (!exam_flag(x, link, "downtrained", &down))
        return;
    /* one that is below its best, and above what the adapter's ports carry, costs nothing */
    if (!down || (ports > 0 && fact_number(link, "now_gbytes_per_s", 0) > ports))
        exam_fine(x);
    else if (may_rest(device, link) && !is_narrow(link))
        exam_unknown(x,
                     "the link rests at %.1f of %.1f GT/s, as idle GPUs do: look again under load",
                     fact_number(link, "now_gt_s", 0), fact_number(link, "best_gt_s", 0));
    else
        find_link(x, device, link,
                  strcmp(subject, address) != 0 ? exam_format(x, "on the way to %s, ", address)
                                                : "");
}

/* Devices whose link carries what is measured. */
static bool is_pipe(const json_t *device)
{
    return !is_made_up(device) && fact_fits("ethernet|infiniband|gpu|nvme|accelerator|nvswitch",
                                            fact_name(device, "kind"));
}

static bool links_of(struct exam *x, const json_t *device)
{
    const json_t *own = exam_fact(x, device, "link");

    if (own)
        judge_link(x, device, own);
    FACT_EACH (json_object_get(device, "uplinks"), link)
        judge_link(x, device, link);
    return false;
}

static bool has_slot(const json_t *device)
{
    return is_pipe(device) && !fact_is(device, "kind", "nvswitch");
}

/* The device can do more than the slot that it is in. */
static bool slot_of(struct exam *x, const json_t *device)
{
    const json_t *link = exam_get(x, device, "link");
    double gt_s = fact_number(link, "max_gt_s", 0), width = fact_number(link, "max_width", 0),
           most = width > 0 && width <= PCIE_WIDTH_MAX
                      ? framing_pcie_gbps(&(struct nic_pcie){gt_s, fact_whole(width), 0}) / 8
                      : 0,
           path = fact_number(link, "best_gbytes_per_s", 0), ports = port_gbytes_per_s(x, device);
    bool full =
        fact_number(link, "best_gt_s", 0) >= gt_s && fact_number(link, "best_width", 0) >= width;

    if (!(path > 0) || !(most > 0))
        return exam_unknown(x, "what its slot can do: %s",
                            json_is_object(link) ? fact_name(link, "best_gt_s_why")
                                                 : fact_name(device, "link_why"));
    if (full || path >= most || (ports > 0 && path > ports))
        return true;
    if (exam_is_nic(device) && !(ports > 0))
        return exam_unknown(
            x, "its slot offers less than it can do, and no rate of an active port is known");
    exam_found(x, "its slot offers x%.0f at %.1f GT/s of the x%.0f at %.1f GT/s that it can do",
               fact_number(link, "best_width", 0), fact_number(link, "best_gt_s", 0), width, gt_s);
    if (ports > 0)
        exam_price_rest(x, path, ports, "network bandwidth", "GB/s of the ports");
    else
        exam_price_rest(x, path, most, "bandwidth of the device's link", "GB/s");
    return exam_remedy(x, "move {} to a slot of x%.0f at %.1f GT/s", width, gt_s);
}

/* ---- From device to device */

static size_t count_gpus(const struct exam *x)
{
    size_t n = 0;

    FACT_EACH (exam_peek(x, "pci"), device)
        n += exam_is_gpu(device) && !is_made_up(device) &&
             !json_is_null(json_object_get(device, "link")); /* the processor's own */
    return n;
}

static bool has_gpus(struct exam *x)
{
    return count_gpus(x) > 0;
}

/* The device that is below the same switch as this one; "": none. */
static const char *neighbour(const struct exam *x, const char *address)
{
    const json_t *const lists[] = {exam_peek(x, "proximity"), exam_peek(x, "gpus.pairs")};
    static const char *const keys[][2] = {{"gpu", "nic"}, {"a", "b"}};

    for (int k = 0; k < 2; k++)
        FACT_EACH (lists[k], pair)
            for (int end = 0; end < 2; end++)
                if (fact_fits("PIX|PXB", fact_name(pair, "relation")) &&
                    fact_is(pair, keys[k][end], address))
                    return fact_name(pair, keys[k][!end]);
    return "";
}

/* Without root: the kernel puts two devices below one switch into one IOMMU group where the ports
 * between them do not redirect, and into two where it switched redirection on when it started. */
static bool guess_redirect(struct exam *x, const json_t *device, const json_t *other)
{
    const json_t *group = exam_get(x, device, "iommu_group"),
                 *others = json_object_get(other, "iommu_group");

    if (group && json_is_integer(others) && json_equal(group, others))
        return true;
    exam_unknown(x, "acs_redirect: %s%s", fact_name(device, "acs_redirect_why"),
                 group ? "; its IOMMU group hints that the kernel switched ACS on" : "")
        ->matters = group != NULL;
    return true;
}

static bool redirect_of(struct exam *x, const json_t *device)
{
    const char *other = neighbour(x, exam_judged(x));
    const json_t *redirect;

    if (!*other)
        return false;
    if (fact_is(device, "driver", "vfio-pci"))
        return exam_not_applicable(
            x, "guests have it, and ACS keeps them apart: see peer-translation");
    redirect = exam_get(x, device, "acs_redirect");
    if (!redirect)
        return guess_redirect(x, device, exam_device(x, other));
    if (json_is_true(redirect))
        exam_found(x, "ACS sends its traffic to other devices through the root, not through their "
                      "switch");
    return true;
}

/* Adapters below this rate do not feel it. */
#define FAST_GBYTES_PER_S 3

static bool has_fast_adapter(const struct exam *x)
{
    FACT_EACH (exam_peek(x, "pci"), device)
        if (!is_made_up(device) && function_gbytes_per_s(x, device) >= FAST_GBYTES_PER_S)
            return true;
    return false;
}

/* GPUs feel it where they reach each other or an adapter. One without a link is the processor's. */
static bool feels_translation(const struct exam *x, const json_t *device)
{
    if (is_made_up(device))
        return false;
    if (exam_is_gpu(device))
        return json_is_object(json_object_get(device, "link")) &&
               (count_gpus(x) > 1 || has_fast_adapter(x));
    return function_gbytes_per_s(x, device) >= FAST_GBYTES_PER_S;
}

/* Its figure is one of such an adapter, whose packets leave the least time to translate. */
#define TRANSLATION_GBYTES_PER_S (200. / 8)

static bool translation_of(struct exam *x, const json_t *device)
{
    const json_t *type;
    struct exam_result *r;

    if (!feels_translation(x, device))
        return false;
    type = exam_get(x, device, "iommu_type");
    if (json_is_string(type) && !strncmp(json_string_value(type), "DMA", 3)) {
        r = exam_found(x, "the IOMMU translates its accesses to memory (type %s)",
                       json_string_value(type));
        if (function_gbytes_per_s(x, device) < TRANSLATION_GBYTES_PER_S) /* GPUs have no ports */
            r->cost = (struct exam_cost){.basis = EXAM_NOT_PRICED};
        if (fact_is(exam_peek(x, "host"), "architecture", "aarch64"))
            exam_remedy(x, "boot with iommu.passthrough=1");
    } else if (!type && exam_get(x, device, "iommu_group")) {
        exam_fact(x, device, "iommu_type");
    }
    return true; /* else pass-through, or none is active for it */
}

/* ---- Places */

static bool has_nodes(struct exam *x)
{
    return json_array_size(exam_list(x, "numa.nodes")) > 1;
}

static bool node_of(struct exam *x, const json_t *device)
{
    bool has;

    if ((!exam_is_gpu(device) && !exam_is_nic(device)) || fact_is(device, "nature", "emulated") ||
        fact_is(device, "nature", "paravirtual") || /* a thread of the host serves it */
        !exam_flag(x, device, "has_numa_node", &has))
        return false;
    if (!has) {
        exam_found(x, "no NUMA node of %zu is given for it: programs cannot be placed near it",
                   json_array_size(exam_peek(x, "numa.nodes")));
        if (exam_guest(x))
            exam_remedy(x, "on the host, give the guest's PCIe root port a NUMA node (QEMU: "
                           "pxb-pcie,numa_node=N)");
    }
    return true;
}

const struct exam_check exam_bus[] = {
    {.id = "pcie-link",
     .question = "Does each PCIe link up to the root run at what both its ends can do?",
     .seen = "current_link_speed, current_link_width and max_* of each PCI function",
     .more = "load: idle GPUs rest at a low speed",
     .pipes = EXAM_BUS,
     .which = is_pipe,
     .each = EXAM_DEVICES,
     .judge_one = links_of},
    {.id = "pcie-slot",
     .question = "Does each slot offer what its device, or the device's ports, can use?",
     .seen = "max_link_speed, max_link_width of the device and of the port above it",
     .pipes = EXAM_BUS,
     .which = has_slot,
     .each = EXAM_DEVICES,
     .judge_one = slot_of},
    {.id = "acs",
     .question = "Do GPUs and adapters below one switch reach each other through it?",
     .seen = "IOMMU groups: one group for both devices shows that nothing is redirected",
     .more = "root: the access control (ACSCtl) of each port",
     .pipes = "GPU peers|PCIe|GPU memory by RDMA|" EXAM_GROUP,
     .matters = true,
     .cost = {EXAM_CITED, 0.5, 0.59, .of = "bandwidth between hosts from GPU memory",
              .source = "https://github.com/NVIDIA/nccl-tests/issues/112"},
     .remedy = "sudo setpci -s {link.port} ECAP_ACS+6.w=0000 (each port of the switch)",
     .metal = true,
     .when = has_gpus,
     .each = EXAM_DEVICES,
     .judge_one = redirect_of},
    {.id = "iommu",
     .question = "Do GPUs and fast adapters reach memory without translation?",
     .seen = "/sys/kernel/iommu_groups/*/type",
     .pipes = EXAM_BUS,
     .cost = {EXAM_CITED, 0, 0.2, .controlled = true, .of = "network bandwidth at 200 Gb/s",
              .source =
                  "https://www.kth.se/blogs/nslab/2023/05/our-recent-iommu-peerj-cs-article/"},
     .remedy = "boot with iommu=pt",
     .metal = true,
     .each = EXAM_DEVICES,
     .judge_one = translation_of},
    {.id = "device-node",
     .question = "Is it known which NUMA node each GPU and adapter is near?",
     .seen = "numa_node of each PCI function",
     .pipes = EXAM_BUS,
     .remedy = "switch the NUMA nodes of PCIe devices on in the firmware",
     .when = has_nodes,
     .each = EXAM_DEVICES,
     .judge_one = node_of},
    {.id = NULL},
};
