/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of packets and errors on PCI Express. See exam.h. */
#include <string.h>

#include "harness/exam/exam.h"

/* Devices whose link carries what is measured, and have one of their own. */
static bool is_pipe(const json_t *device)
{
    return json_is_object(json_object_get(device, "link")) &&
           (exam_is(device, "kind", "gpu") || exam_is(device, "kind", "ethernet") ||
            exam_is(device, "kind", "infiniband") || exam_is(device, "kind", "nvme"));
}

typedef void device_fn(struct exam *x, const json_t *device, const char *address);

static void each_device(struct exam *x, device_fn *look)
{
    const json_t *devices = exam_list(x, "pci"), *device;
    size_t i;

    json_array_foreach (devices, i, device)
        if (is_pipe(device) && *exam_name(device, "address"))
            look(x, device, exam_name(device, "address"));
}

/* A link that is sound retries a few packets in a month; each retry of a bad one is an error here.
 * Enumeration at boot makes one or two that are not corrected. A fatal one is one too many. */
static const char *const fatal[] = {"fatal_errors", NULL};
static const char *const nonfatal[] = {"nonfatal_errors", NULL};
static const char *const corrected[] = {"correctable_errors", "port_correctable_errors", NULL};

enum kind { FATAL, NONFATAL, CORRECTED, KINDS };

static const struct exam_rate rates[KINDS] = {
    [FATAL] = {"counters", fatal, 0, 0, 0},
    [NONFATAL] = {"counters", nonfatal, 1. / 7, 2, 2},
    [CORRECTED] = {"counters", corrected, 10, 100, 100},
};

static void find_errors(struct exam *x, const char *address, enum kind kind,
                        const struct exam_span *span)
{
    struct exam_result *r;

    if (kind == CORRECTED) {
        r = exam_found(x, address, "%.0f PCIe errors were corrected %s: each repeats a packet",
                       span->bad, span->text);
        exam_remedy(x, r, "reseat %s, and look at its riser, cable and retimer", address);
        return;
    }
    r = kind == FATAL ? exam_found(x, address, "%.0f fatal PCIe errors %s", span->bad, span->text)
                      : exam_found(x, address, "%.0f PCIe errors could not be corrected %s",
                                   span->bad, span->text);
    exam_remedy(x, r, "sudo dmesg | grep -i aer; reseat %s, and look at its riser", address);
}

/* The gravest that is found, else the gravest of which the time is not known. */
static void errors_of(struct exam *x, const json_t *device, const char *address)
{
    static const char *const undated[KINDS] = {"fatal PCIe errors in",
                                               "PCIe errors that were not corrected, in",
                                               "corrected PCIe errors in"};
    struct exam_span spans[KINDS];
    enum exam_when when[KINDS];

    if (!exam_fact(x, address, device, "counters"))
        return;
    if (!json_object_size(json_object_get(device, "counters"))) {
        exam_not_applicable(x, address, "the kernel counts no PCIe errors for it");
        return;
    }
    for (int kind = 0; kind < KINDS; kind++) {
        when[kind] = exam_rate_when(x, address, device, &rates[kind], &spans[kind]);
        if (when[kind] == EXAM_NOT_READ)
            return;
    }
    for (int state = EXAM_NOW; state <= EXAM_UNDATED; state++)
        for (int kind = 0; kind < KINDS; kind++) {
            if (when[kind] != (enum exam_when)state)
                continue;
            if (state == EXAM_NOW)
                find_errors(x, address, kind, &spans[kind]);
            else
                exam_share_undated(x, address, &spans[kind], undated[kind]);
            return;
        }
    exam_fine(x, address);
}

static void look_errors(struct exam *x)
{
    each_device(x, errors_of);
}

/* Fast devices ask for more at a time where they may: 512 bytes is the specification's default. */
#define READ_BYTES 512

static void request_of(struct exam *x, const json_t *device, const char *address)
{
    double bytes;

    if (exam_is(device, "kind", "nvme") ||
        !exam_number(x, address, device, "max_read_request_bytes", &bytes))
        return;
    if (bytes >= READ_BYTES)
        exam_fine(x, address);
    else
        exam_remedy(x, exam_found(x, address, "it reads memory in requests of %.0f bytes", bytes),
                    "sudo setpci -s %s CAP_EXP+8.w=5000:7000 (4096 bytes)", address);
}

static void look_requests(struct exam *x)
{
    if (exam_metal(x))
        each_device(x, request_of);
}

static void ordering_of(struct exam *x, const json_t *device, const char *address)
{
    bool relaxed;

    if (!exam_is(device, "kind", "infiniband") && !exam_is(device, "kind", "ethernet"))
        return;
    if (!exam_flag(x, address, device, "relaxed_ordering", &relaxed))
        return;
    if (relaxed)
        exam_fine(x, address);
    else
        exam_remedy(x,
                    exam_found(x, address,
                               "relaxed ordering is switched off: its writes wait for each other"),
                    "sudo setpci -s %s CAP_EXP+8.w=0010:0010", address);
}

/* The kernel switches it off where the processor is known to suffer from it. */
static void look_ordering(struct exam *x)
{
    if (exam_metal(x))
        each_device(x, ordering_of);
}

/* ---- GPUs and adapters */

/* An adapter of InfiniBand, or one with an RDMA device; not one whose ports are known to be down. */
static bool may_do_rdma(const struct exam *x, const char *address)
{
    const json_t *device, *port;
    bool may = exam_is(exam_device(x, address), "kind", "infiniband");
    size_t i, k;

    json_array_foreach (json_object_get(exam_machine(x), "rdma"), i, device) {
        if (!exam_is(device, "pci", address))
            continue;
        may = !json_array_size(json_object_get(device, "ports"));
        json_array_foreach (json_object_get(device, "ports"), k, port)
            may = may || !*exam_name(port, "state") || exam_is(port, "state", "ACTIVE");
    }
    return may;
}

/* The RDMA device of which it is not known how near it is to the GPU; NULL: none. */
static const json_t *unplaced_adapter(struct exam *x, const char *gpu)
{
    const json_t *device, *pair;
    size_t i, k;

    json_array_foreach (json_object_get(exam_machine(x), "rdma"), i, device) {
        bool placed = exam_is(device, "nature", "software");

        json_array_foreach (json_object_get(exam_machine(x), "proximity"), k, pair)
            placed = placed ||
                     (exam_is(pair, "gpu", gpu) && exam_is(pair, "nic", exam_name(device, "pci")));
        if (!placed)
            return device;
    }
    return NULL;
}

static bool is_below_one_switch(const json_t *pair)
{
    return exam_is(pair, "relation", "PIX") || exam_is(pair, "relation", "PXB");
}

/* Is a GPU below the switch of the adapter; or of one of the same board, but another? */
static bool serves_a_gpu(const struct exam *x, const char *nic, bool another)
{
    static const char *const ids[] = {"vendor_id", "device_id", "subsystem_device_id"};
    const json_t *pair, *own = exam_device(x, nic);
    size_t i;

    json_array_foreach (json_object_get(exam_machine(x), "proximity"), i, pair) {
        const json_t *other = exam_device(x, exam_name(pair, "nic"));
        bool alike = own && other;

        if (!is_below_one_switch(pair) || exam_is(pair, "nic", nic) == another)
            continue;
        for (size_t k = 0; alike && k < sizeof(ids) / sizeof(*ids); k++)
            alike = *exam_name(own, ids[k]) && exam_is(other, ids[k], exam_name(own, ids[k]));
        if (alike || !another)
            return true;
    }
    return false;
}

/* An adapter that could be below the GPU's switch: on its socket, below no GPU's switch, and of a
 * board that serves other GPUs so. NULL: none, or the GPU is below no switch, or has one there. */
static const char *misplaced_adapter(const struct exam *x, const json_t *gpu, const char *address)
{
    const char *found = NULL;
    const json_t *pair;
    size_t i;

    if (!json_array_size(json_object_get(gpu, "uplinks")))
        return NULL;
    json_array_foreach (json_object_get(exam_machine(x), "proximity"), i, pair) {
        const char *nic = exam_name(pair, "nic");

        if (!exam_is(pair, "gpu", address) || !may_do_rdma(x, nic))
            continue;
        if (is_below_one_switch(pair))
            return NULL;
        if ((exam_is(pair, "relation", "NODE") || exam_is(pair, "relation", "PHB")) &&
            !serves_a_gpu(x, nic, false) && serves_a_gpu(x, nic, true))
            found = nic;
    }
    return found;
}

static void judge_switch(struct exam *x, const json_t *gpu, const char *address)
{
    const char *nic = misplaced_adapter(x, gpu, address);
    struct exam_result *r;

    exam_get(x, gpu, "uplinks");
    if (!nic) {
        exam_fine(x, address);
        return;
    }
    r = exam_found(x, address,
                   "no RDMA adapter is below its switch, as one is for other GPUs; %s is near",
                   nic);
    r->cost = (struct exam_cost){.basis = EXAM_NOT_PRICED}; /* the figure is one of sockets */
    exam_remedy(x, r, "move %s to a slot below the switch of %s", nic, address);
}

/* Found where each adapter that does RDMA is on another socket. */
static void adapters_of(struct exam *x, const json_t *gpu, const char *address)
{
    const json_t *pair;
    size_t i, all = 0, far = 0;

    if (!exam_is(gpu, "kind", "gpu"))
        return;
    json_array_foreach (json_object_get(exam_machine(x), "proximity"), i, pair) {
        const char *relation;

        if (!exam_is(pair, "gpu", address) || !may_do_rdma(x, exam_name(pair, "nic")))
            continue;
        relation = exam_text(x, address, pair, "relation");
        if (!relation)
            return;
        all++;
        far += !strcmp(relation, "SYS");
    }
    if (!all)
        return;
    if (far < all)
        judge_switch(x, gpu, address);
    else if (json_object_get(exam_machine(x), "proximity_why"))
        exam_unknown(x, address, "proximity: %s", exam_name(exam_machine(x), "proximity_why"));
    else if (unplaced_adapter(x, address))
        exam_unknown(x, address, "proximity: how near %s is",
                     exam_name(unplaced_adapter(x, address), "name"));
    else
        exam_remedy(x, exam_found(x, address, "all %zu RDMA adapters are on another socket", all),
                    "move an adapter to a slot of NUMA node %.0f", exam_value(gpu, "numa_node", 0));
}

static void look_adapters(struct exam *x)
{
    if (json_array_size(exam_list(x, "rdma")) && exam_metal(x))
        each_device(x, adapters_of);
}

const struct exam_check exam_pcie[] = {
    {.id = "pcie-errors",
     .question = "Does each PCIe link carry packets without errors?",
     .seen = "aer_dev_correctable, aer_dev_nonfatal, aer_dev_fatal of the device and its port, "
             "twice; /proc/uptime",
     .pipes = "GPU copies|GPU peers|PCIe|GPU memory by RDMA|Network*|" EXAM_GROUP,
     .counts = true,
     .look = look_errors},
    {.id = "read-request",
     .question = "May GPUs and adapters read memory in large requests?",
     .seen = "device control register in the configuration space: root only",
     .more = "root: the register",
     .pipes = "GPU copies|GPU peers|PCIe|GPU memory by RDMA|Network*|" EXAM_GROUP,
     .look = look_requests},
    {.id = "relaxed-ordering",
     .question = "May the writes of adapters overtake each other?",
     .seen = "device control register in the configuration space: root only",
     .more = "root: the register",
     .pipes = "Network|GPU memory by RDMA|" EXAM_GROUP,
     .cost = {EXAM_CITED, 0.25, 0.6, .controlled = true, .of = "write bandwidth of adapters",
              .source = "https://github.com/openucx/ucx/pull/8062"},
     .look = look_ordering},
    {.id = "gpu-adapter",
     .question = "Has each GPU an RDMA adapter on its own socket, and below its switch as others?",
     .seen = "places on the PCI bus, numa_node of each PCI function",
     .pipes = "GPU memory by RDMA|" EXAM_GROUP,
     .cost = {EXAM_CITED, 0.24, 0.52, .of = "RDMA bandwidth of GPU memory",
              .source = "https://github.com/openucx/ucx/issues/11121, "
                        "https://github.com/linux-rdma/perftest/issues/241"},
     .look = look_adapters},
    {.id = NULL},
};
