/* SPDX-License-Identifier: Apache-2.0 */
/* CPU cost beside a rate: see headline_cost.h. */
#include "harness/report/headline_cost.h"

#include <string.h>

#include "harness/report/show.h"
#include "harness/report/told.h"

/* Of streams both ways there is one cost for both, and rows of each way and of the sum. */
static bool same_but_for_side(const struct report_bench *b, const struct report_case *cost,
                              const struct report_case *of)
{
    for (size_t i = 0; i < b->n_params; i++) {
        const char *name = b->params[i];
        if (b->follows[i] || !strcmp(name, "side") || !strcmp(name, "scope") ||
            !strcmp(name, "rail"))
            continue;
        if (!strcmp(name, "direction") && !strcmp(cost->params[i], "both") &&
            told_matches(b, of, "direction=both-forward,both-reverse,sum"))
            continue;
        if (strcmp(cost->params[i], of->params[i]) != 0)
            return false;
    }
    return true;
}

static const struct report_case *
find_cost(const struct report_bench *b, const struct report_case *of, size_t run, const char *side)
{
    for (size_t i = 0; i < b->n_cases; i++) {
        const struct report_case *c = &b->cases[i];
        if (!strcmp(c->metric, "cpu_per_gb") && !strcmp(report_param(b, c, "scope"), "threads") &&
            !strcmp(report_param(b, c, "side"), side) && c->points[run].n_values &&
            same_but_for_side(b, c, of))
            return c;
    }
    return NULL;
}

const char *headline_cost(struct report *r, const struct report_bench *b,
                          const struct report_case *of, size_t run)
{
    const struct report_case *own = find_cost(b, of, run, "own"),
                             *peer = find_cost(b, of, run, "peer");

    if (!own || !peer)
        return "";
    return pool_text(&r->pool, "CPU %s %s at this end, %s at the peer's",
                     show_short(&r->pool, own->points[run].value), own->unit,
                     show_short(&r->pool, peer->points[run].value));
}
