/* SPDX-License-Identifier: Apache-2.0 */
/* What busbw is held against: the line of the nodes' links, and what it leaves to the operation (place.h). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "benches/allreduce/work_state.h"
#include "core/hw/framing.h"
#include "core/hw/nic.h"
#include "core/row_facts.h"

#define EACH_NODE   ", the most that any algorithm gets through each node's link"
#define TOO_EARLY   "the case ended before its links were looked at"
#define SOURCE      200 /* bytes of net_limit_gbps()'s words */
#define NAMES_BYTES 160

struct bound {
    double gbps;      /* of busbw; NAN: of no node's links it is known what they carry */
    const char *link; /* limit_link of the one that `source` names */
    char source[SOURCE + 2 * WORLD_NAME_MAX + NAMES_BYTES + 128];
};

static const struct net_point large = {
    .message_bytes = 1u << 20, .connections = 1, .rdma = {.verb = NET_WRITE_IMM}};

static double rail_gbps(const struct net_rail *r, char source[SOURCE])
{
    return net_limit_gbps(r, r->kind, &large, source, SOURCE);
}

/* What all links of a node carry at once. NAN where one is not known: then *which is that one and `source` its words, else the first one and its. */
static double wire_gbps(const struct collective_wire *wire, unsigned *which, char source[SOURCE])
{
    double sum = 0;

    source[0] = 0;
    *which = 0;
    for (uint32_t i = 0; i < wire->n && !isnan(sum); i++) {
        char one[SOURCE];
        double gbps = rail_gbps(&wire->rails[i], one);
        if (!i || isnan(gbps)) {
            memcpy(source, one, sizeof(one));
            *which = i;
        }
        sum += gbps;
    }
    return wire->n ? sum : NAN;
}

/* One link, however many ranks share it: of what they say of it the most that it carries. False: there is no room for it. */
static bool add_rail(struct collective_wire *wire, const struct net_rail *rail)
{
    char source[SOURCE];

    for (uint32_t i = 0; i < wire->n; i++)
        if (!strcmp(wire->rails[i].name, rail->name)) {
            double known = rail_gbps(&wire->rails[i], source), gbps = rail_gbps(rail, source);
            if (isnan(known) || gbps > known)
                wire->rails[i] = *rail;
            return true;
        }
    if (wire->n == NET_RAILS_MAX)
        return false;
    wire->rails[wire->n++] = *rail;
    return true;
}

/* Devices by which a member sent to other nodes, and of which none of its node tells more. */
static bool add_flows(struct collective_wire *wire, const struct collective_told *told)
{
    bool room = true;

    for (uint32_t i = 0; i < told->n_flows && room; i++) {
        struct net_rail rail = {.line_source = "its rate is not told"};
        bool known = !told->flows[i].other_node;
        for (uint32_t k = 0; k < wire->n && !known; k++)
            known = !strcmp(wire->rails[k].name, told->flows[i].device);
        snprintf(rail.name, sizeof(rail.name), "%.63s", told->flows[i].device);
        room = known || add_rail(wire, &rail);
    }
    return room;
}

static bool sends_by(const struct collective_told *told, const char *device)
{
    for (uint32_t i = 0; i < told->n_flows; i++)
        if (told->flows[i].other_node && !strcmp(told->flows[i].device, device))
            return true;
    return false;
}

/* A rank whose neighbours are all on its node tells what leads to them: that is no link between nodes. */
static bool leads_out(const struct collective_told *told)
{
    bool within = !strcmp(told->rail.name, "lo") || !strcmp(told->rail.kind, "shm");

    return told->has_rail && (!within || sends_by(told, told->rail.name));
}

/* Our own backends': the links of a node's ranks, as they tell them. Also those of ranks that by this algorithm sent nothing to other nodes: by
 * another one they might. */
static void own_wire(const struct collective_work *w, unsigned node, struct collective_wire *wire)
{
    bool room = true;

    *wire = (struct collective_wire){0};
    for (int flows = 0; flows < 2; flows++)
        for (unsigned i = 0; i < w->n && room; i++) {
            const struct collective_told *told = session_told(w->session, i);
            if (!told || world_member(w->world, w->members[i])->node != node)
                continue;
            if (flows)
                room = add_flows(wire, told);
            else if (leads_out(told))
                room = add_rail(wire, &told->rail);
        }
    if (!room)
        snprintf(wire->why, sizeof(wire->why), "its ranks have more than %d links", NET_RAILS_MAX);
    else if (!wire->n)
        snprintf(wire->why, sizeof(wire->why), "its ranks do not tell their links");
    if (!room || nic_rails_add_up(wire->rails, wire->n, wire->why, sizeof(wire->why)))
        wire->n = 0;
}

/* A library's are those that the counters of its node show. */
static void wire_of(const struct collective_work *w, const struct session_node *node, bool own,
                    struct collective_wire *wire)
{
    if (own)
        own_wire(w, world_member(w->world, w->members[node->member])->node, wire);
    else
        *wire = node->wire;
}

static void say_wire(const char *host, const struct collective_wire *wire, bool own,
                     struct bound *b)
{
    char names[NAMES_BYTES] = "", source[SOURCE];
    unsigned which;
    size_t used = 0;

    wire_gbps(wire, &which, source);
    b->link = wire->n ? net_limit_link(&wire->rails[which], &large) : NULL;
    for (uint32_t i = 0; i < wire->n && used < sizeof(names); i++)
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? " + " : "",
                                 wire->rails[i].name);
    if (wire->n == 1)
        snprintf(b->source, sizeof(b->source), "%s's %s%s: %s", host, names,
                 own ? "" : ", which by its counters carried the bytes", source);
    else if (wire->n)
        snprintf(b->source, sizeof(b->source), "%s's %s together%s, of %s: %s", host, names,
                 own ? "" : ", which by their counters carried the bytes", wire->rails[which].name,
                 source);
    else
        snprintf(b->source, sizeof(b->source), "%s: %s", host,
                 wire->why[0] ? wire->why : TOO_EARLY);
}

static unsigned number_of(const struct collective_work *w, const struct session_node *node)
{
    return world_member(w->world, w->members[node->member])->node;
}

/* All nodes need their links: named is the one whose are the first to be full. */
static struct bound nodes_bound(const struct collective_work *w, bool own)
{
    const struct session_node *nodes;
    unsigned n = session_nodes(w->session, &nodes), unknown = 0, named, which;
    bool may_add = !own && !session_told(w->session, 0)->members_add;
    double gbps[WORLD_RANKS_MAX]; /* by the world's numbers of its nodes */
    struct collective_wire wire;
    struct bound b = {.gbps = NAN};
    char source[SOURCE];

    for (unsigned i = 0; i < world_nodes(w->world); i++)
        gbps[i] = NAN;
    for (unsigned i = 0; i < n; i++) {
        wire_of(w, &nodes[i], own, &wire);
        gbps[number_of(w, &nodes[i])] = wire_gbps(&wire, &which, source);
        unknown += isnan(gbps[number_of(w, &nodes[i])]);
        may_add = may_add && wire.n && net_switches_may_sum(&wire.rails[which]);
    }
    if (!n) {
        snprintf(b.source, sizeof(b.source), TOO_EARLY);
        return b;
    }
    named = number_of(w, &nodes[0]);
    b.gbps = place_bound(w->world, w->point.op, w->members, w->n, gbps, may_add, &named);
    for (unsigned i = 0; i < n; i++)
        if (number_of(w, &nodes[i]) == named) {
            wire_of(w, &nodes[i], own, &wire);
            say_wire(nodes[i].host, &wire, own, &b);
        }
    if (may_add && !isnan(b.gbps) &&
        place_bound(w->world, w->point.op, w->members, w->n, gbps, false, &named) < b.gbps) {
        b.gbps = NAN;
        evidence_add(b.source, sizeof(b.source),
                     "not known: InfiniBand's switches may add (SHARP), and the library does not "
                     "say whether they did");
    }
    if (unknown && unknown < n)
        evidence_add(b.source, sizeof(b.source), "of %u of %u nodes it is not known", unknown, n);
    return b;
}

static bool is_simulated(const struct collective_work *w)
{
    for (unsigned i = 0; i < w->n; i++)
        if (session_told(w->session, i)->simulated)
            return true;
    return false;
}

/* After the proof of the path: session_end() has it. */
void rows_limit(struct point *pt, struct collective_work *w)
{
    unsigned most, fewest, nodes = place_nodes(w->world, w->members, w->n, &most, &fewest);
    bool own = collective_find(w->point.backend)->own;
    struct bound b = {.gbps = NAN};

    if (nodes < 2)
        snprintf(b.source, sizeof(b.source), "one node: no link between nodes");
    else if (!own && is_simulated(w))
        snprintf(b.source, sizeof(b.source), "simulated: no link carried the bytes");
    else
        b = nodes_bound(w, own);
    snprintf(w->limit_source, sizeof(w->limit_source), "%s%s", b.source,
             isnan(b.gbps) ? "" : EACH_NODE);
    for (size_t i = 0; i < pt->n_series; i++) {
        if (strcmp(pt->series[i].metric, "busbw") != 0)
            continue;
        pt->series[i].limit_source = w->limit_source;
        pt->series[i].limit_kind = LIMIT_SYSFS;
        pt->series[i].limit_link = b.link;
        pt->series[i].limit_scope = isnan(b.gbps) ? NULL : LIMIT_SCOPE_NODE;
        if (b.gbps > 0)
            pt->series[i].limit = b.gbps;
    }
}
