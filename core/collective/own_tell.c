/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of our own backends: what can be, and what has been. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/collective/own_parts.h"
#include "core/units.h"

/* The flow of a device and a kind of way; where there is room for no more, the last one. */
static struct collective_flow *flow_of(struct collective_told *told, const char *device,
                                       bool other_node)
{
    struct collective_flow *flow = told->flows;

    for (uint32_t i = 0; i < told->n_flows; i++, flow++)
        if (!strcmp(flow->device, device) && flow->other_node == other_node)
            return flow;
    if (told->n_flows == COLLECTIVE_FLOWS_MAX)
        return flow - 1;
    told->n_flows++;
    snprintf(flow->device, sizeof(flow->device), "%s", device);
    flow->other_node = other_node;
    flow->exact = 1;
    return flow;
}

static void tell_flows(const struct collective *c, struct collective_told *told)
{
    const struct own *o = c->state;
    const struct fabric *f = o->fabric;
    uint32_t node = world_member(c->world, c->members[c->me])->node;

    for (unsigned i = 0; i < f->n_links; i++) {
        const struct fabric_link *l = &f->links[i];
        struct collective_flow *flow =
            flow_of(told, l->device, world_member(c->world, l->peer)->node != node);
        flow->out_bytes += (double)l->sent;
        flow->in_bytes += (double)l->received;
        flow->out_messages += (double)l->messages_out;
        flow->in_messages += (double)l->messages_in;
        flow->message_bytes =
            (double)(o->segment_bytes < o->longest_bytes ? o->segment_bytes : o->longest_bytes);
    }
}

void own_tell(struct collective *c, struct collective_told *told)
{
    struct own *o = c->state;
    struct fabric *f = o->fabric;
    char size[24];

    memset(told, 0, sizeof(*told));
    units_format_size(o->segment_bytes, size, sizeof(size));
    snprintf(told->algorithm, sizeof(told->algorithm), "%s, segments of %s", c->ops->name, size);
    if (f->ops->describe)
        f->ops->describe(f, told->detail, sizeof(told->detail));
    tell_flows(c, told);
    if (f->ops->facts)
        told->n_facts = (uint32_t)f->ops->facts(f, told->facts);
    told->has_rail = f->ops->rail && !f->ops->rail(f, &told->rail);
}

static int refuse(char *why, size_t len, const char *format, const char *a, const char *b)
{
    snprintf(why, len, format, a, b);
    return -EOPNOTSUPP;
}

int own_supports(const struct collective_point *p, unsigned n, char *why, size_t len)
{
    const char *op = collective_ops_names[p->op];
    bool whole = p->op == COLLECTIVE_ALL_TO_ALL || p->op == COLLECTIVE_SEND_RECEIVE;

    if (!fabric_find(p->transport))
        return refuse(why, len, "there is no transport '%s'%s", p->transport, "");
    if (p->in_place && whole)
        return refuse(why, len, "'%s' is not done in place%s", op, "");
    if (p->op == COLLECTIVE_REDUCE_SCATTER && !strcmp(p->backend, collective_doubling.name))
        return refuse(why, len, "'%s' sends whole vectors: for '%s' take halving", p->backend, op);
    if (p->count % n && p->op != COLLECTIVE_ALLREDUCE && p->op != COLLECTIVE_BROADCAST &&
        p->op != COLLECTIVE_SEND_RECEIVE)
        return refuse(why, len, "'%s' wants as many elements as there are blocks, or twice, %s", op,
                      "thrice and so on");
    return 0;
}
