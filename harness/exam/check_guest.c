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

/* Peer traffic of a guest is translated. Where device and port keep translations (ATS), and the
 * port lets translated packets pass (DirectTrans), it goes by the switch; else by the root. */
static void look_translation(struct exam *x)
{
    if (exam_guest(x) && count_given(x, "gpu") && count_given(x, "infiniband"))
        exam_unknown(x, "gpus", "the host's ports decide it, and a guest does not see them");
}

const struct exam_check exam_guests[] = {
    {.id = "nccl-topology",
     .question = "Does NCCL know which GPU of the guest is near which adapter?",
     .seen = "/var/run/nvidia-topologyd/virtualTopology.xml, NCCL_TOPO_FILE",
     .pipes = "GPU peers|Collectives|Gradients|Allreduce*",
     .look = look_topology},
    {.id = "peer-translation",
     .question = "Do GPUs and adapters of a guest reach each other through their switch?",
     .seen = "not at all in the guest",
     .more =
         "root on the host: lspci -vv, ATSCtl Enable+ of the devices, DirectTrans+ of the ports",
     .pipes = "Collectives|Gradients|Allreduce*|Network",
     .cost = {EXAM_CITED, 0.44, 0.44, .of = "allreduce bandwidth between guests",
              .source = "https://github.com/NVIDIA/nccl/issues/949"},
     .look = look_translation},
    {.id = NULL},
};
