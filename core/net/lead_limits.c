/* SPDX-License-Identifier: Apache-2.0 */
/* What a point's rates are called, and what limits them: see lead.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/net/framing.h"
#include "core/net/lead_state.h"

/* The slower end's line is the limit. */
static void limit_of(struct net_lead *l, unsigned rail, struct net_rate_name *name)
{
    char source[200];

    name->limit_gbps = NAN;
    name->limit_source[0] = 0;
    for (int side = 0; side < NET_SIDES; side++) {
        const struct net_rail *r = &l->told[side].rails.rails[rail];
        double gbps = net_limit_gbps(r, r->kind, l->end.point, source, sizeof(source));
        if (!(isnan(name->limit_gbps) || gbps < name->limit_gbps))
            continue;
        if (isnan(gbps) && name->limit_source[0])
            continue;
        name->limit_gbps = gbps;
        memcpy(name->limit_source, source, sizeof(name->limit_source));
    }
}

static struct net_rate_name *add_name(struct net_rate_name *names, unsigned *n,
                                      const char *direction, const char *rail)
{
    struct net_rate_name *name = &names[(*n)++];

    *name = (struct net_rate_name){.direction = direction, .limit_gbps = 0};
    snprintf(name->rail, sizeof(name->rail), "%s", rail);
    return name;
}

/* A sum's limit is the sum of its parts', where all are known. */
unsigned net_lead_rates(struct net_lead *l, struct net_rate_name *names)
{
    static const char *const words[] = {"forward", "reverse"};
    double all_limit = 0;
    unsigned n = 0;

    for (int d = 0; d < NET_DIRECTIONS; d++) {
        double limit = 0;
        struct net_rate_name *name = NULL;
        if (!l->end.point->stream[d])
            continue;
        for (unsigned rail = 0; rail < l->end.n_rails; rail++) {
            name = add_name(names, &n, words[d], l->end.n_rails > 1 ? l->end.rails[rail].name : "");
            limit_of(l, rail, name);
            limit += name->limit_gbps;
        }
        if (l->end.n_rails > 1) {
            struct net_rate_name *sum = add_name(names, &n, words[d], "all");
            sum->limit_gbps = limit;
            memcpy(sum->limit_source, name->limit_source, sizeof(sum->limit_source));
        }
        all_limit += limit;
    }
    if (l->end.point->stream[NET_FORWARD] && l->end.point->stream[NET_REVERSE]) {
        struct net_rate_name *sum = add_name(names, &n, "sum", l->end.n_rails > 1 ? "all" : "");
        sum->limit_gbps = all_limit;
        memcpy(sum->limit_source, names[0].limit_source, sizeof(sum->limit_source));
    }
    return n;
}
