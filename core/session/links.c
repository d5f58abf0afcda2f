/* SPDX-License-Identifier: Apache-2.0 */
/* What goes over the links between nodes: see links.h. */
#include "core/session/links.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/hw/nic.h"
#include "core/wire/wires.h"

#define SOURCE      200 /* bytes of wire_limit_gbps()'s words */
#define NAMES_BYTES 160

/* ---- What operations need ---- */

static unsigned node_of(const struct world *w, unsigned rank)
{
    return world_member(w, rank)->node;
}

static unsigned on_node(const struct world *w, const unsigned *members, unsigned n, unsigned node)
{
    unsigned count = 0;

    for (unsigned i = 0; i < n; i++)
        count += node_of(w, members[i]) == node;
    return count;
}

unsigned links_nodes(const struct world *w, const unsigned *members, unsigned n, unsigned *most,
                     unsigned *fewest)
{
    unsigned nodes = 0;

    *most = *fewest = 0;
    for (unsigned node = 0; node < world_nodes(w); node++) {
        unsigned count = on_node(w, members, n, node);
        if (!count)
            continue;
        *most = count > *most ? count : *most;
        *fewest = !nodes || count < *fewest ? count : *fewest;
        nodes++;
    }
    return nodes;
}

double links_total(const struct world *w, enum collective_op op, const unsigned *members,
                   unsigned n, bool on_the_way)
{
    unsigned most, fewest, nodes = links_nodes(w, members, n, &most, &fewest);
    double total = 0, in = 0;

    if (op == COLLECTIVE_ALLREDUCE && !on_the_way)
        return 2 * (nodes - 1.0);
    for (unsigned node = 0; node < world_nodes(w); node++) {
        struct collective_load load = collective_load(w, op, members, n, 0, node);
        total += load.out;
        in += load.in;
    }
    return fmax(total, in);
}

double links_bound(const struct world *w, enum collective_op op, const unsigned *members,
                   unsigned n, const double *rates, bool on_the_way, unsigned *slowest)
{
    double least = INFINITY, sum = 0;
    unsigned nodes = 0, unknown = 0;

    for (unsigned node = 0; node < world_nodes(w); node++) {
        double rate = rates ? rates[node] : 1;
        if (!on_node(w, members, n, node))
            continue;
        nodes++;
        unknown += isnan(rate);
        if (isnan(rate))
            continue;
        struct collective_load load = collective_load(w, op, members, n, 0, node);
        double full = rate / fmax(load.out, load.in);
        if (slowest && full < least)
            *slowest = node;
        least = fmin(least, full);
        sum += rate;
    }
    if (nodes < 2 || unknown == nodes)
        return NAN;
    if (op == COLLECTIVE_ALLREDUCE && !unknown && !on_the_way)
        least = fmin(least, sum / (2 * (nodes - 1.0)));
    return least * collective_bus_factor(op, n);
}

/* ---- What links carry ---- */

static const struct wire_load large = {
    .verb = RDMA_WRITE_IMM, .message_bytes = 1u << 20, .threads = 1};

static double rail_gbps(const struct nic_rail *r, char source[SOURCE])
{
    return wire_limit_gbps(r, &large, source, SOURCE);
}

/* What all links of a node carry at once. NAN where one is not known: then *which is that one and
 * `source` its words, else the first one and its. */
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

/* One link, however many ranks share it: of what they say of it the most that it carries. False:
 * there is no room for it. */
static bool add_rail(struct collective_wire *wire, const struct nic_rail *rail)
{
    char source[SOURCE];

    for (uint32_t i = 0; i < wire->n; i++)
        if (!strcmp(wire->rails[i].name, rail->name)) {
            double known = rail_gbps(&wire->rails[i], source), gbps = rail_gbps(rail, source);
            if (isnan(known) || gbps > known)
                wire->rails[i] = *rail;
            return true;
        }
    if (wire->n == NIC_RAILS_MAX)
        return false;
    wire->rails[wire->n++] = *rail;
    return true;
}

/* Devices by which a member sent to other nodes, and of which none of its node tells more. */
static bool add_flows(struct collective_wire *wire, const struct collective_report *told)
{
    bool room = true;

    for (uint32_t i = 0; i < told->n_flows && room; i++) {
        struct nic_rail rail = {.line_source = "its rate is unknown"};
        bool known = !told->flows[i].other_node;
        for (uint32_t k = 0; k < wire->n && !known; k++)
            known = !strcmp(wire->rails[k].name, told->flows[i].device);
        snprintf(rail.name, sizeof(rail.name), "%.63s", told->flows[i].device);
        room = known || add_rail(wire, &rail);
    }
    return room;
}

static bool sends_by(const struct collective_report *told, const char *device)
{
    for (uint32_t i = 0; i < told->n_flows; i++)
        if (told->flows[i].other_node && !strcmp(told->flows[i].device, device))
            return true;
    return false;
}

struct who {
    const struct session *session;
    const struct world *world;
    const unsigned *members;
    unsigned n;
};

/* Our own backends': the links of a node's ranks, as they tell them. Also those of ranks that by
 * this algorithm sent nothing to other nodes: by another one they might. */
static void own_wire(const struct who *who, unsigned node, struct collective_wire *wire)
{
    bool room = true;

    *wire = (struct collective_wire){0};
    for (int flows = 0; flows < 2; flows++)
        for (unsigned i = 0; i < who->n && room; i++) {
            const struct collective_report *told = session_report(who->session, i);
            if (!told || node_of(who->world, who->members[i]) != node)
                continue;
            if (flows)
                room = add_flows(wire, told);
            /* A rank whose neighbours are all on its node tells what leads to them: that is no link
             * between nodes. */
            else if (told->has_rail &&
                     ((strcmp(told->rail.name, "lo") && told->rail.protocol != NIC_MEMORY) ||
                      sends_by(told, told->rail.name)))
                room = add_rail(wire, &told->rail);
        }
    if (!room)
        snprintf(wire->why, sizeof(wire->why), "its ranks have more than %d links", NIC_RAILS_MAX);
    else if (!wire->n)
        snprintf(wire->why, sizeof(wire->why), "its ranks do not tell their links");
    if (!room || nic_rails_add_up(wire->rails, wire->n, wire->why, sizeof(wire->why)))
        wire->n = 0;
}

static void say_wire(const char *host, const struct collective_wire *wire, bool own,
                     struct links_rate *rate)
{
    char names[NAMES_BYTES] = "", source[SOURCE];
    unsigned which;
    size_t used = 0;

    rate->gbps = wire_gbps(wire, &which, source);
    rate->link = wire->n ? wire_limit_link(&wire->rails[which], &large) : NULL;
    rate->may_add = wire->n && wire_switches_may_sum(&wire->rails[which]);
    for (uint32_t i = 0; i < wire->n && used < sizeof(names); i++)
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? " + " : "",
                                 wire->rails[i].name);
    if (wire->n == 1)
        snprintf(rate->source, sizeof(rate->source), "%s's %s%s: %s", host, names,
                 own ? "" : ", which by its counters carried the bytes", source);
    else if (wire->n)
        snprintf(rate->source, sizeof(rate->source), "%s's %s together%s, of %s: %s", host, names,
                 own ? "" : ", which by their counters carried the bytes", wire->rails[which].name,
                 source);
    else
        snprintf(rate->source, sizeof(rate->source), "%s: %s", host,
                 wire->why[0] ? wire->why : LINKS_TOO_EARLY);
}

void links_rate(const struct session *s, const struct world *w, const unsigned *members, unsigned n,
                bool own, const struct session_node *node, struct links_rate *rate)
{
    struct collective_wire wire;
    const struct who who = {s, w, members, n};

    *rate = (struct links_rate){.node = node_of(w, members[node->member])};
    if (own)
        own_wire(&who, rate->node, &wire);
    say_wire(node->host, own ? &wire : &node->wire, own, rate);
    rate->may_add = rate->may_add && !own && !session_report(s, 0)->members_add;
}

bool links_simulated(const struct session *s, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (session_report(s, i)->simulated)
            return true;
    return false;
}
