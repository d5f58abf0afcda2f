/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of RDMA devices and their ports. See exam.h. */
#include <string.h>

#include "harness/exam/exam.h"

typedef void look_port(struct exam *x, const char *subject, const json_t *device,
                       const json_t *port);

static void each_port(struct exam *x, look_port *look)
{
    const json_t *devices = exam_list(x, "rdma"), *device, *port;
    size_t i, k;

    json_array_foreach (devices, i, device)
        json_array_foreach (json_object_get(device, "ports"), k, port)
            look(x,
                 exam_format(x, "%s:%.0f", exam_name(device, "name"), exam_value(port, "port", 0)),
                 device, port);
}

/* A port without a cable costs nothing. One whose link is up, and that is not active, waits. */
static void state_of(struct exam *x, const char *subject, const json_t *device, const json_t *port)
{
    const char *state = exam_text(x, subject, port, "state");

    if (!state)
        return;
    exam_get(x, port, "physical_state");
    if (!strcmp(state, "ACTIVE"))
        exam_fine(x, subject);
    else if (exam_is(port, "physical_state", "LinkUp"))
        exam_remedy(x,
                    exam_found(x, subject,
                               "the port is %s though its link is up: it cannot be used", state),
                    exam_is(port, "link_layer", "InfiniBand") ? "sudo systemctl start opensm"
                                                              : "sudo ip link set %s up",
                    exam_name(device, "name"));
    else
        exam_not_applicable(x, subject, "the port is %s, its link is down", state);
}

static void look_state(struct exam *x)
{
    each_port(x, state_of);
}

/* Known to have none: one whose type could not be read may be one. */
static bool lacks_roce_v2(const json_t *gids)
{
    const json_t *gid;
    size_t i;

    json_array_foreach (gids, i, gid)
        if (!*exam_name(gid, "type") || exam_is(gid, "type", "RoCE v2"))
            return false;
    return true;
}

static void gids_of(struct exam *x, const char *subject, const json_t *device, const json_t *port)
{
    const json_t *gids;

    if (!exam_is(port, "link_layer", "Ethernet") || !exam_is(port, "state", "ACTIVE") ||
        exam_is(device, "driver", "siw") || exam_is(device, "driver", "efa"))
        return;
    gids = exam_fact(x, subject, port, "gids");
    if (!gids)
        return;
    if (lacks_roce_v2(gids))
        exam_remedy(x, exam_found(x, subject, "no RoCE v2 address: its traffic cannot be routed"),
                    "give the interface of %s an IP address", subject);
    else
        exam_fine(x, subject);
}

static void look_gids(struct exam *x)
{
    each_port(x, gids_of);
}

static void look_software(struct exam *x)
{
    const json_t *devices = exam_list(x, "rdma"), *device;
    size_t i;

    json_array_foreach (devices, i, device) {
        const char *name = exam_name(device, "name"),
                   *nature = exam_text(x, name, device, "nature");

        if (!nature)
            continue;
        exam_get(x, device, "driver");
        if (!strcmp(nature, "software"))
            exam_remedy(
                x, exam_found(x, name, "RDMA in software: the processor does an adapter's work"),
                "use an adapter with RDMA, or TCP in place of %s", name);
        else
            exam_fine(x, name);
    }
}

const struct exam_check exam_rdma[] = {
    {.id = "rdma-port",
     .question = "Is each RDMA port with a link active?",
     .seen = "/sys/class/infiniband/*/ports/*/state, phys_state",
     .pipes = "Network*|GPU memory by RDMA|" EXAM_GROUP,
     .look = look_state},
    {.id = "rdma-gid",
     .question = "Has each RoCE port an address of version 2, which can be routed?",
     .seen = "/sys/class/infiniband/*/ports/*/gid_attrs/types",
     .pipes = "Network*|GPU memory by RDMA|" EXAM_GROUP,
     .look = look_gids},
    {.id = "rdma-software",
     .question = "Is RDMA done by adapters?",
     .seen = "driver of each RDMA device",
     .pipes = "Network*|GPU memory by RDMA|" EXAM_GROUP,
     .look = look_software},
    {.id = NULL},
};
