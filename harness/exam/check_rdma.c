/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of RDMA devices and their ports. See exam.h. */
#include <string.h>

#include "harness/exam/exam.h"

/* A port without a cable costs nothing. One whose link is up, and that is not active, waits. */
static bool state_of(struct exam *x, const json_t *port)
{
    const char *state = exam_text(x, port, "state"), *link;

    if (!state)
        return false;
    link = fact_word(exam_get(x, port, "physical_state"));
    if (!strcmp(state, "ACTIVE"))
        return true;
    if (strcmp(link, "LinkUp") != 0)
        return exam_not_applicable(x, "the port is %s, its link is down", state);
    exam_found(x, "the port is %s though its link is up: it cannot be used", state);
    if (!fact_is(port, "link_layer", "InfiniBand"))
        exam_remedy(x, "sudo ip link set %s up", fact_name(exam_adapter(x), "name"));
    return true;
}

static bool gids_of(struct exam *x, const json_t *port)
{
    const json_t *device = exam_adapter(x), *gids;

    if (!fact_is(port, "link_layer", "Ethernet") || !exam_is_active(port) ||
        fact_is(device, "driver", "siw") || fact_is(device, "driver", "efa"))
        return false;
    gids = exam_fact(x, port, "gids");
    if (!gids)
        return false;
    FACT_EACH (gids, gid) /* one whose type could not be read may be one */
        if (!*fact_name(gid, "type") || fact_is(gid, "type", "RoCE v2"))
            return true;
    return exam_found(x, "no RoCE v2 address: its traffic cannot be routed");
}

static bool software_of(struct exam *x, const json_t *device)
{
    const char *nature = exam_text(x, device, "nature");

    if (!nature)
        return false;
    exam_get(x, device, "driver");
    if (!strcmp(nature, "software"))
        exam_found(x, "RDMA in software: the processor does an adapter's work");
    return true;
}

const struct exam_check exam_rdma[] = {
    {.id = "rdma-port",
     .question = "Is each RDMA port with a link active?",
     .seen = "/sys/class/infiniband/*/ports/*/state, phys_state",
     .pipes = EXAM_LINES,
     .remedy = "sudo systemctl start opensm",
     .each = EXAM_PORTS,
     .judge_one = state_of},
    {.id = "rdma-gid",
     .question = "Has each RoCE port an address of version 2, which can be routed?",
     .seen = "/sys/class/infiniband/*/ports/*/gid_attrs/types",
     .pipes = EXAM_LINES,
     .remedy = "give the interface of {} an IP address",
     .each = EXAM_PORTS,
     .judge_one = gids_of},
    {.id = "rdma-software",
     .question = "Is RDMA done by adapters?",
     .seen = "driver of each RDMA device",
     .pipes = EXAM_LINES,
     .remedy = "use an adapter with RDMA, or TCP in place of {}",
     .each = EXAM_RDMA,
     .judge_one = software_of},
    {.id = NULL},
};
