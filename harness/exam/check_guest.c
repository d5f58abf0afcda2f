/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of what a hypervisor hides from its guest. See exam.h. */
#include <string.h>

#include "harness/exam/exam.h"

static bool is_given(const json_t *device)
{
    return fact_fits("passthrough|sriov-vf", fact_name(device, "nature"));
}

static size_t count_gpus(const struct exam *x)
{
    size_t n = 0;

    FACT_EACH (exam_peek(x, "pci"), device)
        n += is_given(device) && exam_is_gpu(device);
    return n;
}

static bool is_guest_with_gpus(struct exam *x)
{
    return exam_guest(x) && count_gpus(x) > 1;
}

/* A guest's PCI bus is flat: which GPU is near which adapter, NCCL can only read from a file. */
static bool judge_topology(struct exam *x)
{
    bool there;

    if (*exam_variable(x, "NCCL_TOPO_FILE"))
        return true;
    if (!exam_flag(x, NULL, "gpus.nccl_topology_file", &there))
        return false;
    if (!there)
        exam_found(x, "no file tells NCCL which of %zu GPUs is near which adapter", count_gpus(x));
    return true;
}

/* Peer traffic of a guest is translated. Where the adapter keeps translations (ATS), and the ports
 * let translated packets pass (DirectTrans), it goes by the switch; else by the root. */
#define CAN_PASS "GPUs and it reach each other by the root, and not by their switch"

static bool is_lent(const json_t *device)
{
    return fact_is(device, "driver", "vfio-pci");
}

/* A GPU below the adapter's switch that guests have, too. */
static bool has_lent_gpu(const struct exam *x, const char *adapter)
{
    FACT_EACH (exam_peek(x, "proximity"), pair)
        if (fact_is(pair, "nic", adapter) && fact_fits("PIX|PXB", fact_name(pair, "relation")) &&
            is_lent(exam_device(x, fact_name(pair, "gpu"))))
            return true;
    return false;
}

/* As the host sees it, of adapters that it lends to guests. Linux switches ATS on when it attaches a
 * domain that translates, which vfio has while a guest runs. An adapter without ATS has it at no
 * time. */
static bool judge_on_host(struct exam *x, const json_t *adapter)
{
    const json_t *services;
    bool redirect, direct;

    if (!exam_flag(x, adapter, "acs_redirect", &redirect))
        return false;
    if (!redirect)
        return true;
    if (!exam_flag(x, adapter, "acs_direct_translated", &direct))
        return false;
    if (!direct) {
        exam_found(x, "its ports stop what is translated (no DirectTrans): " CAN_PASS);
        return exam_remedy(
            x, "sudo setpci -s {link.port} ECAP_ACS+6.w=005d (each port of the switch)");
    }
    services = exam_fact(x, adapter, "translation_services");
    if (json_is_string(services))
        exam_found(x, "it keeps no translations (ATS is not there): " CAN_PASS);
    else if (json_is_false(services))
        exam_unknown(x, "ATS is off, as it is while no guest has the adapter: look while a guest "
                        "runs");
    return services;
}

/* The Ethernet function of Hyper-V carries no RDMA. */
static bool does_rdma(const struct exam *x, const json_t *device)
{
    const json_t *rdma = fact_one_of(exam_peek(x, "rdma"), "pci", fact_name(device, "address"));

    return rdma ? exam_does_rdma(x, rdma) : fact_is(device, "kind", "infiniband");
}

static bool translation_of(struct exam *x, const json_t *device)
{
    if (exam_guest(x) && is_given(device) && count_gpus(x) && does_rdma(x, device)) {
        /* With root. Its tree is made up, and a hypervisor may hide the services. */
        const json_t *services = exam_fact(x, device, "translation_services");
        if (services)
            exam_unknown(x, json_is_true(services)
                                ? "it keeps translations; whether the host's ports let them pass "
                                  "is the host's to see"
                                : "ATS is off or hidden here; whether GPUs and it share a switch "
                                  "is the host's to see");
    } else if (exam_metal(x) && is_lent(device) && has_lent_gpu(x, exam_judged(x)))
        return judge_on_host(x, device);
    return false;
}

const struct exam_check exam_guests[] = {
    {.id = "nccl-topology",
     .question = "Does NCCL know which GPU of the guest is near which adapter?",
     .seen = "/var/run/nvidia-topologyd/virtualTopology.xml, NCCL_TOPO_FILE",
     .pipes = EXAM_GROUP,
     .remedy = "on the host NCCL_TOPO_DUMP_FILE=t.xml, here NCCL_TOPO_FILE=t.xml without GPUs "
               "and NICs",
     .when = is_guest_with_gpus,
     .subject = "gpus",
     .judge = judge_topology},
    {.id = "peer-translation",
     .question = "Do GPUs and adapters of a guest reach each other through their switch?",
     .seen = "configuration space, by root on the host: ACS of the ports, ATS of the adapter, of "
             "devices "
             "with the driver vfio-pci",
     .more = "root on the host, while a guest runs: ATS of the adapter, DirectTrans of its ports",
     .pipes = "GPU peers|PCIe|GPU memory by RDMA|" EXAM_GROUP,
     .cost = {EXAM_CITED, 0.44, 0.44, .of = "allreduce bandwidth between guests",
              .source = "https://github.com/NVIDIA/nccl/issues/949"},
     .remedy = "sudo mlxconfig -d {} set ATS_ENABLED=1, then a cold start",
     .which = exam_is_nic,
     .each = EXAM_DEVICES,
     .judge_one = translation_of},
    {.id = NULL},
};
