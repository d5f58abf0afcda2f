/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of what a hypervisor hides from its guest. See exam.h. */
#include <string.h>

#include "harness/exam/exam.h"

static bool is_given(const json_t *device)
{
    return exam_is(device, "nature", "passthrough") || exam_is(device, "nature", "sriov-vf");
}

static size_t count_given(const struct exam *x, const char *kind)
{
    const json_t *device;
    size_t i, n = 0;

    json_array_foreach (json_object_get(exam_machine(x), "pci"), i, device)
        n += is_given(device) &&
             (exam_is(device, "kind", kind) ||
              (!strcmp(kind, "infiniband") && exam_is(device, "kind", "ethernet")));
    return n;
}

static bool names_topology(const struct exam *x)
{
    const json_t *settings = json_object_get(exam_machine(x), "library_settings");

    return *exam_name(settings, "NCCL_TOPO_FILE") != 0;
}

/* A guest's PCI bus is flat: which GPU is near which adapter, NCCL can only read from a file. */
static void look_topology(struct exam *x)
{
    bool there;

    if (!exam_guest(x) || count_given(x, "gpu") < 2)
        return;
    if (names_topology(x)) {
        exam_fine(x, "gpus");
        return;
    }
    if (!exam_flag(x, "gpus", NULL, "gpus.nccl_topology_file", &there))
        return;
    if (there)
        exam_fine(x, "gpus");
    else
        exam_remedy(x,
                    exam_found(x, "gpus",
                               "no file tells NCCL which of %zu GPUs is near which adapter",
                               count_given(x, "gpu")),
                    "on the host NCCL_TOPO_DUMP_FILE=t.xml, here NCCL_TOPO_FILE=t.xml without GPUs "
                    "and NICs");
}

/* Peer traffic of a guest is translated. Where the adapter keeps translations (ATS), and the ports
 * let translated packets pass (DirectTrans), it goes by the switch; else by the root. */
#define CAN_PASS "GPUs and it reach each other by the root, and not by their switch"

/* As the guest sees it, with root. Its tree is made up, and a hypervisor may hide the services: what
 * shares a switch with what, and what its ports let pass, the host sees. */
static void look_in_guest(struct exam *x, const json_t *adapter, const char *address)
{
    const json_t *services = exam_get(x, adapter, "translation_services");

    if (json_is_true(services))
        exam_unknown(x, address,
                     "it keeps translations; whether the host's ports let them pass is "
                     "the host's to see");
    else if (services)
        exam_unknown(x, address,
                     "ATS is off or hidden here; whether GPUs and it share a switch is the "
                     "host's to see");
    else
        exam_fact(x, address, adapter, "translation_services");
}

static bool is_lent(const json_t *device)
{
    return exam_is(device, "driver", "vfio-pci");
}

/* A GPU below the adapter's switch that guests have, too. */
static bool has_lent_gpu(const struct exam *x, const char *adapter)
{
    const json_t *pair;
    size_t i;

    json_array_foreach (json_object_get(exam_machine(x), "proximity"), i, pair)
        if (exam_is(pair, "nic", adapter) &&
            (exam_is(pair, "relation", "PIX") || exam_is(pair, "relation", "PXB")) &&
            is_lent(exam_device(x, exam_name(pair, "gpu"))))
            return true;
    return false;
}

/* Linux switches ATS on when it attaches a domain that translates, which vfio has while a guest
 * runs. An adapter without ATS has it at no time. */
static void look_at_services(struct exam *x, const json_t *adapter, const char *address)
{
    const json_t *services = exam_get(x, adapter, "translation_services");

    if (json_is_string(services))
        exam_remedy(
            x, exam_found(x, address, "it keeps no translations (ATS is not there): " CAN_PASS),
            "sudo mlxconfig -d %s set ATS_ENABLED=1, then a cold start", address);
    else if (json_is_false(services))
        exam_unknown(
            x, address,
            "ATS is off, as it is while no guest has the adapter: look while a guest runs");
    else if (exam_fact(x, address, adapter, "translation_services"))
        exam_fine(x, address);
}

/* As the host sees it, of adapters that it lends to guests. */
static void look_on_host(struct exam *x, const json_t *adapter, const char *address)
{
    bool redirect, direct;

    if (!exam_flag(x, address, adapter, "acs_redirect", &redirect))
        return;
    if (!redirect) {
        exam_fine(x, address);
        return;
    }
    if (!exam_flag(x, address, adapter, "acs_direct_translated", &direct))
        return;
    if (!direct)
        exam_remedy(
            x,
            exam_found(x, address, "its ports stop what is translated (no DirectTrans): " CAN_PASS),
            "sudo setpci -s %s ECAP_ACS+6.w=005d (each port of the switch)",
            exam_name(json_object_get(adapter, "link"), "port"));
    else
        look_at_services(x, adapter, address);
}

/* The Ethernet function of Hyper-V carries no RDMA. */
static bool does_rdma(const struct exam *x, const char *address)
{
    const json_t *device;
    size_t i;

    json_array_foreach (json_object_get(exam_machine(x), "rdma"), i, device)
        if (exam_is(device, "pci", address))
            return exam_does_rdma(x, device);
    return exam_is(exam_device(x, address), "kind", "infiniband");
}

static void look_translation(struct exam *x)
{
    const json_t *device;
    size_t i;

    json_array_foreach (json_object_get(exam_machine(x), "pci"), i, device) {
        const char *address = exam_name(device, "address");

        if (!exam_is(device, "kind", "infiniband") && !exam_is(device, "kind", "ethernet"))
            continue;
        if (exam_guest(x) && is_given(device) && count_given(x, "gpu") && does_rdma(x, address))
            look_in_guest(x, device, address);
        else if (exam_metal(x) && is_lent(device) && has_lent_gpu(x, address))
            look_on_host(x, device, address);
    }
}

const struct exam_check exam_guests[] = {
    {.id = "nccl-topology",
     .question = "Does NCCL know which GPU of the guest is near which adapter?",
     .seen = "/var/run/nvidia-topologyd/virtualTopology.xml, NCCL_TOPO_FILE",
     .pipes = EXAM_GROUP,
     .look = look_topology},
    {.id = "peer-translation",
     .question = "Do GPUs and adapters of a guest reach each other through their switch?",
     .seen = "configuration space, by root on the host: ACS of the ports, ATS of the adapter, of "
             "devices "
             "with the driver vfio-pci",
     .more = "root on the host, while a guest runs: ATS of the adapter, DirectTrans of its ports",
     .pipes = "GPU peers|PCIe|GPU memory by RDMA|" EXAM_GROUP,
     .cost = {EXAM_CITED, 0.44, 0.44, .of = "allreduce bandwidth between guests",
              .source = "https://github.com/NVIDIA/nccl/issues/949"},
     .look = look_translation},
    {.id = NULL},
};
