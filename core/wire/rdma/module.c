/* SPDX-License-Identifier: Apache-2.0 */
/* The module's table. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/wire/rdma/fabric.h"
#include "core/wire/rdma/rdma.h"

/* What cannot be, whatever the device is. */
static int check_point(struct net_end *e)
{
    const struct net_rdma *p = &e->point->rdma;

    if (p->verb > NET_SEND || p->connect > NET_CONNECT_CM || !p->depth ||
        e->point->connections > NET_CONNECTIONS_MAX)
        return rdma_fail(e, -EINVAL, "the RDMA part of the point is damaged");
    if (p->connect == NET_CONNECT_CM && p->mtu)
        return rdma_fail(e, -EOPNOTSUPP,
                         "RDMA CM chooses the path MTU itself: leave it out, or connect by "
                         "exchange");
    return rdma_of(e)->core->gpu->open(e, &rdma_of(e)->gpu);
}

static int open_end(struct net_end *e, const struct rdma_core *core)
{
    struct rdma_end *r = calloc(1, sizeof(*r));
    struct sockaddr_storage peer;

    if (!r)
        return core->fail(e, -ENOMEM, "out of memory");
    r->state.module = &plumb_rdma_module;
    r->core = core;
    r->by_cm = e->point->rdma.connect == NET_CONNECT_CM;
    r->instead = "use write or send";
    channel_address(e->channel, &r->own, &peer);
    e->state = r;
    int err = check_point(e);
    return err ? err : rdma_devices_open(e);
}

static void close_end(struct net_end *e)
{
    struct rdma_end *r = rdma_of(e);

    rdma_queues_close(r);
    rdma_devices_close(r);
    r->core->gpu->close(r->gpu); /* after what was registered of it */
    if (r->cm_events)
        rdma_destroy_event_channel(r->cm_events);
    free(r);
}

__attribute__((visibility("default"))) const struct rdma_module plumb_rdma_module = {
    .abi = RDMA_MODULE_ABI,
    .layout = RDMA_LAYOUT,
    .backends = rdma_devices_say,
    .open = open_end,
    .card = rdma_card,
    .join = rdma_join,
    .work = rdma_work,
    .ping = rdma_ping,
    .pong = rdma_pong,
    .check = rdma_check,
    .facts = rdma_facts,
    .close = close_end,
    .fabric_open = rdma_fabric_open,
    .fabric = &rdma_fabric_ops,
};
