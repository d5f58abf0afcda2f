/* SPDX-License-Identifier: Apache-2.0 */
/* What a point's rates are called, and what limits them: see lead.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "benches/net/lead_state.h"
#include "core/hw/framing.h"
#include "core/hw/nic.h"

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
        name->limit_kind = net_limit_kind(r);
        name->limit_link = net_limit_link(r, l->end.point);
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

const char *net_direction_word(const struct net_point *p, enum net_direction d)
{
    static const char *const words[][NET_DIRECTIONS] = {{"forward", "reverse"},
                                                        {"both-forward", "both-reverse"}};

    return words[p->stream[NET_FORWARD] && p->stream[NET_REVERSE]][d];
}

/* Where an end's devices share what carries their bytes, limits of each are no limit together: why, of the first such end; else "". */
static void find_shared(const struct net_lead *l, char *why, size_t len)
{
    char text[160];

    why[0] = 0;
    for (int side = 0; side < NET_SIDES && !why[0]; side++) {
        const struct net_rails *rails = &l->told[side].rails;
        if (nic_rails_add_up(rails->rails, rails->n, text, sizeof(text)))
            snprintf(why, len, "no limit: at %s, %s", side == NET_OWN ? "this end" : "the peer",
                     text);
    }
}

/* A sum's limit is the sum of its parts', where all are known: else the first that is not says why. */
static void add_part(struct net_rate_name *sum, const struct net_rate_name *part)
{
    if (!sum->limit_source[0] || (isnan(part->limit_gbps) && !isnan(sum->limit_gbps))) {
        memcpy(sum->limit_source, part->limit_source, sizeof(sum->limit_source));
        sum->limit_kind = part->limit_kind;
        sum->limit_link = part->limit_link;
    }
    sum->limit_gbps += part->limit_gbps;
}

/* Each rail of a direction, and behind them their sum where there are several. */
static unsigned add_direction(struct net_lead *l, enum net_direction d, const char *shared,
                              struct net_rate_name *names, unsigned n)
{
    const char *word = net_direction_word(l->end.point, d);
    struct net_rate_name sum = {.direction = word, .rail = "all"};

    for (unsigned rail = 0; rail < l->end.n_rails; rail++) {
        struct net_rate_name *name =
            add_name(names, &n, word, l->end.n_rails > 1 ? l->end.rails[rail].name : "");
        limit_of(l, rail, name);
        add_part(&sum, name);
    }
    if (*shared && !isnan(sum.limit_gbps)) {
        sum.limit_gbps = NAN;
        snprintf(sum.limit_source, sizeof(sum.limit_source), "%s", shared);
    }
    if (l->end.n_rails > 1)
        names[n++] = sum;
    return n;
}

unsigned net_lead_rates(struct net_lead *l, struct net_rate_name *names)
{
    const uint8_t *streams = l->end.point->stream;
    unsigned n = 0, forward = 0;
    char shared[200];

    find_shared(l, shared, sizeof(shared));
    if (streams[NET_FORWARD])
        forward = n = add_direction(l, NET_FORWARD, shared, names, n);
    if (streams[NET_REVERSE])
        n = add_direction(l, NET_REVERSE, shared, names, n);
    if (streams[NET_FORWARD] && streams[NET_REVERSE]) {
        struct net_rate_name *sum = add_name(names, &n, "sum", l->end.n_rails > 1 ? "all" : "");
        add_part(sum, &names[forward - 1]);
        add_part(sum, &names[n - 2]);
    }
    return n;
}
