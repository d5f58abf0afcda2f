/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of packets and errors on PCI Express. See exam.h. */
#include <string.h>

#include "harness/exam/exam.h"

/* Devices whose link carries what is measured, and have one of their own. */
static bool is_pipe(const json_t *device)
{
    return *fact_name(device, "address") && json_is_object(json_object_get(device, "link")) &&
           fact_fits("gpu|ethernet|infiniband|nvme", fact_name(device, "kind"));
}

static bool is_adapter(const json_t *device)
{
    return is_pipe(device) && exam_is_nic(device);
}

static bool is_no_disk(const json_t *device)
{
    return is_pipe(device) && !fact_is(device, "kind", "nvme");
}

static bool is_gpu(const json_t *device)
{
    return is_pipe(device) && exam_is_gpu(device);
}

/* A link that is sound retries a few packets in a month; each retry of a bad one is an error here.
 * Enumeration at boot makes one or two that are not corrected. A fatal one is one too many. */
static const char *const fatal[] = {"fatal_errors", NULL};
static const char *const nonfatal[] = {"nonfatal_errors", NULL};
static const char *const corrected[] = {"correctable_errors", "port_correctable_errors", NULL};

static const struct exam_event errors[] = {
    {.rate = &(const struct exam_rate){"counters", fatal, 0, 0, 0},
     .found = "{bad} fatal PCIe errors {when}",
     .undated = "fatal PCIe errors in"},
    {.rate = &(const struct exam_rate){"counters", nonfatal, 1. / 7, 2, 2},
     .found = "{bad} PCIe errors could not be corrected {when}",
     .undated = "PCIe errors that were not corrected, in"},
    {.rate = &(const struct exam_rate){"counters", corrected, 10, 100, 100},
     .found = "{bad} PCIe errors were corrected {when}: each repeats a packet",
     .undated = "corrected PCIe errors in",
     .remedy = "reseat {}, and look at its riser, cable and retimer"},
    {.found = NULL}};

static bool errors_of(struct exam *x, const json_t *device)
{
    const json_t *counters = exam_fact(x, device, "counters");

    if (counters && !json_object_size(counters))
        return exam_not_applicable(x, "the kernel counts no PCIe errors for it");
    return counters && exam_events(x, device, errors) != EXAM_NOT_READ;
}

/* Fast devices ask for more at a time where they may: 512 bytes is the specification's default. */
#define READ_BYTES 512

/* ---- GPUs and adapters */

/* An adapter of InfiniBand, or one with an RDMA device; not one whose ports are known to be down. */
static bool may_do_rdma(const struct exam *x, const char *address)
{
    bool may = fact_is(exam_device(x, address), "kind", "infiniband");

    FACT_EACH (exam_peek(x, "rdma"), device) {
        if (!fact_is(device, "pci", address))
            continue;
        may = !json_array_size(json_object_get(device, "ports"));
        FACT_EACH (json_object_get(device, "ports"), port)
            may = may || !*fact_name(port, "state") || exam_is_active(port);
    }
    return may;
}

/* The RDMA device of which it is not known how near it is to the GPU; NULL: none. */
static const json_t *unplaced_adapter(struct exam *x, const char *gpu)
{
    FACT_EACH (exam_peek(x, "rdma"), device) {
        bool placed = fact_is(device, "nature", "software");

        FACT_EACH (exam_peek(x, "proximity"), pair)
            placed = placed ||
                     (fact_is(pair, "gpu", gpu) && fact_is(pair, "nic", fact_name(device, "pci")));
        if (!placed)
            return device;
    }
    return NULL;
}

static bool is_below_one_switch(const json_t *pair)
{
    return fact_is(pair, "relation", "PIX") || fact_is(pair, "relation", "PXB");
}

/* Is a GPU below the switch of the adapter; or of one of the same board, but another? */
static bool serves_a_gpu(const struct exam *x, const char *nic, bool another)
{
    const json_t *own = exam_device(x, nic);

    FACT_EACH (exam_peek(x, "proximity"), pair)
        if (is_below_one_switch(pair) && fact_is(pair, "nic", nic) != another &&
            (!another || exam_same_board(own, exam_device(x, fact_name(pair, "nic")))))
            return true;
    return false;
}

/* An adapter that could be below the GPU's switch: on its socket, below no GPU's switch, and of a
 * board that serves other GPUs so. NULL: none, or the GPU is below no switch, or has one there. */
static const char *misplaced_adapter(const struct exam *x, const json_t *uplinks,
                                     const char *address)
{
    const char *found = NULL;

    if (!json_array_size(uplinks))
        return NULL;
    FACT_EACH (exam_peek(x, "proximity"), pair) {
        const char *nic = fact_name(pair, "nic");

        if (!fact_is(pair, "gpu", address) || !may_do_rdma(x, nic))
            continue;
        if (is_below_one_switch(pair))
            return NULL;
        if ((fact_is(pair, "relation", "NODE") || fact_is(pair, "relation", "PHB")) &&
            !serves_a_gpu(x, nic, false) && serves_a_gpu(x, nic, true))
            found = nic;
    }
    return found;
}

/* Found where each adapter that does RDMA is on another socket. */
static bool adapters_of(struct exam *x, const json_t *gpu)
{
    const char *address = exam_judged(x), *nic;
    size_t all = 0, far = 0;

    FACT_EACH (exam_peek(x, "proximity"), pair) {
        const char *relation;

        if (!fact_is(pair, "gpu", address) || !may_do_rdma(x, fact_name(pair, "nic")))
            continue;
        relation = exam_text(x, pair, "relation");
        if (!relation)
            return false;
        all++;
        far += !strcmp(relation, "SYS");
    }
    if (!all)
        return false;
    if (far < all) {
        nic = misplaced_adapter(x, exam_get(x, gpu, "uplinks"), address);
        if (!nic)
            return true;
        exam_found(x, "no RDMA adapter is below its switch, as one is for other GPUs; %s is near",
                   nic)
            ->cost = (struct exam_cost){.basis = EXAM_NOT_PRICED}; /* the figure is of sockets */
        return exam_remedy(x, "move %s to a slot below the switch of {}", nic);
    }
    if (exam_peek(x, "proximity_why"))
        return exam_unknown(x, "proximity: %s", fact_name(exam_machine(x), "proximity_why"));
    if (unplaced_adapter(x, address))
        return exam_unknown(x, "proximity: how near %s is",
                            fact_name(unplaced_adapter(x, address), "name"));
    return exam_found(x, "all %zu RDMA adapters are on another socket", all);
}

static bool has_rdma(struct exam *x)
{
    return json_array_size(exam_list(x, "rdma")) && exam_metal(x);
}

const struct exam_check exam_pcie[] = {
    {.id = "pcie-errors",
     .question = "Does each PCIe link carry packets without errors?",
     .seen = "aer_dev_correctable, aer_dev_nonfatal, aer_dev_fatal of the device and its port, "
             "twice; /proc/uptime",
     .pipes = EXAM_BUS,
     .counts = true,
     .remedy = "sudo dmesg | grep -i aer; reseat {}, and look at its riser",
     .which = is_pipe,
     .each = EXAM_DEVICES,
     .judge_one = errors_of},
    {.id = "read-request",
     .question = "May GPUs and adapters read memory in large requests?",
     .seen = "device control register in the configuration space: root only",
     .more = "root: the register",
     .pipes = EXAM_BUS,
     .remedy = "sudo setpci -s {} CAP_EXP+8.w=5000:7000 (4096 bytes)",
     .metal = true,
     .which = is_no_disk,
     .each = EXAM_DEVICES,
     .fact = "max_read_request_bytes",
     .below = READ_BYTES,
     .found = "it reads memory in requests of {max_read_request_bytes} bytes"},
    {.id = "relaxed-ordering",
     .question = "May the writes of adapters overtake each other?",
     .seen = "device control register in the configuration space: root only",
     .more = "root: the register",
     .pipes = "Network|GPU memory by RDMA|" EXAM_GROUP,
     .cost = {EXAM_CITED, 0.25, 0.6, .controlled = true, .of = "write bandwidth of adapters",
              .source = "https://github.com/openucx/ucx/pull/8062"},
     .remedy = "sudo setpci -s {} CAP_EXP+8.w=0010:0010",
     .metal = true,
     .which = is_adapter,
     .each = EXAM_DEVICES,
     .fact =
         "relaxed_ordering", /* the kernel switches it off where the processor suffers from it */
     .bad = "false",
     .found = "relaxed ordering is switched off: its writes wait for each other"},
    {.id = "gpu-adapter",
     .question = "Has each GPU an RDMA adapter on its own socket, and below its switch as others?",
     .seen = "places on the PCI bus, numa_node of each PCI function",
     .pipes = "GPU memory by RDMA|" EXAM_GROUP,
     .cost = {EXAM_CITED, 0.24, 0.52, .of = "RDMA bandwidth of GPU memory",
              .source = "https://github.com/openucx/ucx/issues/11121, "
                        "https://github.com/linux-rdma/perftest/issues/241"},
     .remedy = "move an adapter to a slot of NUMA node {numa_node|0}",
     .when = has_rdma,
     .which = is_gpu,
     .each = EXAM_DEVICES,
     .judge_one = adapters_of},
    {.id = NULL},
};
