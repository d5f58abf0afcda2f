/* SPDX-License-Identifier: Apache-2.0 */
/* Links that carried the bytes, as the counters of a node tell them: for tests. */
#ifndef PLUMB_TESTS_WIRES_H
#define PLUMB_TESTS_WIRES_H

#include <stdio.h>

#include "core/session/session_state.h"

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
