/* SPDX-License-Identifier: Apache-2.0 */
/* What busbw is held against: the line of the nodes' links, and what it leaves to the operation (place.h). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/evidence.h"
#include "core/net/framing.h"
#include "core/ranks/work_state.h"

#define EACH_NODE   ", the most that any algorithm gets through each node's link"
#define SOURCE      200 /* bytes of net_limit_gbps()'s words */
#define NAMES_BYTES 160

struct bound {
    double gbps; /* GB/s of payload that the slowest link carries; NAN: of none it is known */
    char source[SOURCE + WORLD_NAME_MAX + NAMES_BYTES + 128];
};

static double rail_gbps(const struct net_rail *r, char source[SOURCE])
{
    struct net_point point = {.message_bytes = 1u << 20, .connections = 1};

    point.rdma.verb = NET_WRITE_IMM;
    return net_limit_gbps(r, r->kind, &point, source, SOURCE);
}

/* Our own backends': what each member says that its bytes take. */
static struct bound own_bound(const struct collective_work *w)
{
    struct bound b = {.gbps = NAN};
    char source[SOURCE];

    for (unsigned i = 0; i < w->n; i++) {
        const struct collective_told *told = session_told(w->session, i);
        double gbps = told && told->has_rail ? rail_gbps(&told->rail, source) : NAN;
        if (!told || !told->has_rail || (!isnan(b.gbps) && !(gbps < b.gbps)))
            continue;
        if (isnan(gbps) && b.source[0])
            continue;
        b.gbps = gbps;
        memcpy(b.source, source, sizeof(source));
    }
    return b;
}

/* What all links of a node carry at once. NAN where one is not known: then its words, else the first one's. */
static double wire_gbps(const struct collective_wire *wire, char source[SOURCE])
{
    double sum = 0;

    source[0] = 0;
    for (uint32_t i = 0; i < wire->n && !isnan(sum); i++) {
        char one[SOURCE];
        double gbps = rail_gbps(&wire->rails[i], one);
        if (!i || isnan(gbps))
            memcpy(source, one, sizeof(one));
        sum += gbps;
    }
    return wire->n ? sum : NAN;
}

static void say_wire(const struct session_node *node, const char *source, struct bound *b)
{
    const struct collective_wire *wire = &node->wire;
    char names[NAMES_BYTES] = "";
    size_t used = 0;

    for (uint32_t i = 0; i < wire->n && used < sizeof(names); i++)
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? " + " : "",
                                 wire->rails[i].name);
    if (wire->n == 1)
        snprintf(b->source, sizeof(b->source),
                 "%s's %s, which by its counters carried the bytes: %s", node->host, names, source);
    else if (wire->n)
        snprintf(b->source, sizeof(b->source),
                 "%s's %s together, which by their counters carried the bytes, of the first: %s",
                 node->host, names, source);
    else
        snprintf(b->source, sizeof(b->source), "%s: %s", node->host,
                 wire->why[0] ? wire->why : "the case ended before its links were looked at");
}

/* A library's: what the counters of each node show. Of the nodes of which it is known the slowest, since all need theirs. */
static struct bound library_bound(const struct collective_work *w)
{
    const struct session_node *nodes;
    unsigned n = session_nodes(w->session, &nodes), unknown = 0;
    struct bound b = {.gbps = NAN};

    for (unsigned i = 0; i < n; i++) {
        char source[SOURCE];
        double gbps = wire_gbps(&nodes[i].wire, source);
        unknown += isnan(gbps);
        if (!b.source[0] || (!isnan(gbps) && !(gbps >= b.gbps))) {
            b.gbps = gbps;
            say_wire(&nodes[i], source, &b);
        }
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
    double share = place_bound(w->world, w->point.op, w->members, w->n);
    bool own = collective_find(w->point.backend)->own;
    struct bound b = {.gbps = NAN};

    if (isnan(share))
        snprintf(b.source, sizeof(b.source), "one node: no link between nodes");
    else if (own)
        b = own_bound(w);
    else if (is_simulated(w))
        snprintf(b.source, sizeof(b.source), "simulated: no link carried the bytes");
    else
        b = library_bound(w);
    snprintf(w->limit_source, sizeof(w->limit_source), "%s%s", b.source,
             isnan(b.gbps) ? "" : EACH_NODE);
    for (size_t i = 0; i < pt->n_series; i++) {
        if (strcmp(pt->series[i].metric, "busbw") != 0)
            continue;
        pt->series[i].limit_source = w->limit_source;
        if (b.gbps > 0)
            pt->series[i].limit = b.gbps * share;
    }
}
