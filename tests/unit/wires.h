/* SPDX-License-Identifier: Apache-2.0 */
/* Worlds of several nodes, and links that carried the bytes as the counters of a node tell them: for tests. */
#ifndef PLUMB_TESTS_WIRES_H
#define PLUMB_TESTS_WIRES_H

#include "core/group/world.h"
#include "core/session/session_state.h"
#include "tests/unit/unit.h"

/* Ranks that do not run; a letter for each is the name of its host, which is a node. */
static inline struct world *world_of(const char *nodes)
{
    char error[256] = "";
    struct world *w = NULL;

    assert_int_equal(world_new(&w, "local", 0, (unsigned)strlen(nodes), error, sizeof(error)), 0);
    for (unsigned i = 0; nodes[i]; i++) {
        world_self(&w->members[i]);
        snprintf(w->members[i].host, sizeof(w->members[i].host), "%c", nodes[i]);
    }
    world_number(w);
    return w;
}

static inline struct nic_rail rail(const char *name, double gbps)
{
    struct nic_rail r = {
        .protocol = NIC_TCP, .mtu_bytes = 1500, .segment_bytes = 1460, .line_gbps = gbps};

    snprintf(r.name, sizeof(r.name), "%s", name);
    snprintf(r.line_source, sizeof(r.line_source),
             gbps > 0 ? "sysfs: %g Gb/s" : "its rate is not known", gbps);
    return r;
}

static inline struct collective_wire wire(const char *name, double gbps)
{
    return (struct collective_wire){.n = 1, .rails = {rail(name, gbps)}};
}

#endif
