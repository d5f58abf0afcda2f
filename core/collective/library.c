/* SPDX-License-Identifier: Apache-2.0 */
/* Parts and least traffic of a library's calls: see library.h. */
#include "core/collective/library.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "core/hw/machine.h"
#include "core/hw/nic.h"

struct library_part library_part(const struct collective *c, const struct collective_call *call)
{
    uint64_t element = collective_type_bytes(c->point->type), whole = call->first * element;
    uint64_t blocks = call->first / c->n * element, own = call->count / c->n * c->me * element;
    struct library_part part = {whole, whole};

    if (c->point->op == COLLECTIVE_ALL_GATHER)
        part.input = c->point->in_place ? whole + own : blocks;
    if (c->point->op == COLLECTIVE_REDUCE_SCATTER)
        part.result = c->point->in_place ? whole + own : blocks;
    return part;
}

static unsigned node_of(const struct collective *c, unsigned member)
{
    return world_member(c->world, c->members[member])->node;
}

/* Members on this one's node; 0 where it is not the first of them. */
static unsigned on_node(const struct collective *c)
{
    unsigned own = node_of(c, c->me), n = 0;

    for (unsigned i = 0; i < c->n; i++) {
        if (node_of(c, i) == own && i < c->me)
            return 0;
        n += node_of(c, i) == own;
    }
    return n;
}

/* Of a ring's neighbours, those that are on another node. */
static struct library_least crossing(const struct collective *c, double bytes)
{
    unsigned own = node_of(c, c->me);
    struct library_least least = {0};

    for (unsigned i = 0; i < c->n; i++) {
        unsigned from = node_of(c, i), to = node_of(c, (i + 1) % c->n);
        least.out_bytes += from == own && to != own ? bytes : 0;
        least.in_bytes += from != own && to == own ? bytes : 0;
    }
    return least;
}

struct library_least library_least(const struct collective *c, double bytes)
{
    double n = c->n, here = on_node(c), there = n - here, block = bytes / n;

    if (here < 1 || there < 1)
        return (struct library_least){0};
    switch (c->point->op) {
    case COLLECTIVE_ALLREDUCE: /* the others' sum comes in, this node's goes out */
        return (struct library_least){bytes, bytes};
    case COLLECTIVE_REDUCE_SCATTER:
        return (struct library_least){there * block, here * block};
    case COLLECTIVE_ALL_GATHER:
        return (struct library_least){here * block, there * block};
    case COLLECTIVE_BROADCAST:
        return c->me == 0 ? (struct library_least){bytes, 0} : (struct library_least){0, bytes};
    case COLLECTIVE_ALL_TO_ALL:
        return (struct library_least){here * there * block, here * there * block};
    default:
        return crossing(c, bytes);
    }
}

struct list {
    char text[256];
    const char *device; /* whose ports are listed */
};

static void add(struct list *l, const char *name, const char *port)
{
    size_t used = strlen(l->text);

    snprintf(l->text + used, sizeof(l->text) - used, "%s%s%s%s", used ? ", " : "", name,
             *port ? ":" : "", port);
}

static int add_port(void *list, const char *port)
{
    struct list *l = list;

    add(l, l->device, port);
    return 0;
}

static int add_ports(void *list, const char *device)
{
    struct list *l = list;

    l->device = device;
    return sys_list(NULL, add_port, l, "sys/class/infiniband/%s/ports", device);
}

static void list_all(struct list *l)
{
    struct if_nameindex *all = if_nameindex();

    for (struct if_nameindex *one = all; one && one->if_index; one++)
        add(l, one->if_name, "");
    if (all)
        if_freenameindex(all);
    sys_list(NULL, add_ports, l, "sys/class/infiniband");
}

int library_devices(struct collective *c)
{
    char name[sizeof(c->point->device)], device[NIC_NAME];
    bool more = c->point->device[0];
    struct list list = {0};
    unsigned port;

    for (const char *at = c->point->device; more;) {
        size_t n = strcspn(at, "+");
        snprintf(name, sizeof(name), "%.*s", (int)n, at);
        more = at[n] == '+';
        at += n + more;
        if (if_nametoindex(name) || !nic_parse_port(NULL, name, device, &port))
            continue;
        list_all(&list);
        return collective_fail(c, -ENODEV,
                               "%s: no interface or RDMA device '%.60s' here; there are %s",
                               c->ops->name, name, list.text);
    }
    return 0;
}

void library_flow(struct collective_told *told, const char *device, struct library_least least,
                  double bytes)
{
    struct collective_flow *f = &told->flows[told->n_flows];

    if (!*device || (least.out_bytes <= 0 && least.in_bytes <= 0))
        return;
    *f = (struct collective_flow){.out_bytes = least.out_bytes,
                                  .in_bytes = least.in_bytes,
                                  .message_bytes = bytes,
                                  .other_node = 1};
    snprintf(f->device, sizeof(f->device), "%s", device);
    told->n_flows++;
}
