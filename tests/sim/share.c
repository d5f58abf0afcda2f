/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rates of what flows at the same time: all are raised together until one is at its own cap or
 * something on its way is full; it stays there, and the others go on (max-min fairness).
 */
#include "tests/sim/sim.h"

#define FLOWS  256
#define THINGS (FLOWS * 4)

struct thing {
    unsigned resource;
    double left, weight; /* of the flows that still rise */
};

struct sharing {
    struct sim_op *op[FLOWS];
    bool fixed[FLOWS];
    unsigned flows;
    struct thing thing[THINGS];
    unsigned things;
};

static struct thing *thing_of(struct sim *sim, struct sharing *s, unsigned resource)
{
    for (unsigned i = 0; i < s->things; i++)
        if (s->thing[i].resource == resource)
            return &s->thing[i];
    if (s->things == THINGS)
        return NULL;
    s->thing[s->things] = (struct thing){.resource = resource, .left = sim_capacity(sim, resource)};
    return &s->thing[s->things++];
}

static void collect(struct sim *sim, struct sharing *s)
{
    for (struct sim_stream *stream = sim->streams; stream; stream = stream->next)
        if (stream->head && stream->head->state == SIM_FLOW && s->flows < FLOWS) {
            stream->head->rate = 0;
            s->fixed[s->flows] = false;
            s->op[s->flows++] = stream->head;
        }
}

/* Of the flows that still rise. */
static void weigh(struct sim *sim, struct sharing *s)
{
    for (unsigned i = 0; i < s->things; i++)
        s->thing[i].weight = 0;
    for (unsigned f = 0; f < s->flows; f++)
        for (unsigned u = 0; !s->fixed[f] && u < s->op[f]->flow.uses; u++) {
            struct thing *thing = thing_of(sim, s, s->op[f]->flow.use[u].resource);

            if (thing)
                thing->weight += s->op[f]->flow.use[u].weight;
        }
}

static double step_of(const struct sharing *s)
{
    double step = SIM_NEVER;

    for (unsigned i = 0; i < s->things; i++)
        if (s->thing[i].weight > 0 && s->thing[i].left / s->thing[i].weight < step)
            step = s->thing[i].left / s->thing[i].weight;
    for (unsigned f = 0; f < s->flows; f++)
        if (!s->fixed[f] && s->op[f]->flow.cap - s->op[f]->rate < step)
            step = s->op[f]->flow.cap - s->op[f]->rate;
    return step > 0 ? step : 0;
}

static bool stuck(struct sim *sim, struct sharing *s, const struct sim_op *op)
{
    if (op->rate >= op->flow.cap * (1 - 1e-9))
        return true;
    for (unsigned u = 0; u < op->flow.uses; u++) {
        const struct thing *thing = thing_of(sim, s, op->flow.use[u].resource);

        if (thing && thing->left <= 1e-9 * sim_capacity(sim, thing->resource))
            return true;
    }
    return false;
}

/* Raises all that rise; the number that still do. */
static unsigned raise(struct sim *sim, struct sharing *s)
{
    double step = step_of(s);
    unsigned rising = 0;

    for (unsigned i = 0; i < s->things; i++)
        s->thing[i].left -= step * s->thing[i].weight;
    for (unsigned f = 0; f < s->flows; f++)
        if (!s->fixed[f])
            s->op[f]->rate += step;
    for (unsigned f = 0; f < s->flows; f++) {
        s->fixed[f] = s->fixed[f] || stuck(sim, s, s->op[f]);
        rising += !s->fixed[f];
    }
    return rising;
}

void sim_share(struct sim *sim)
{
    struct sharing s;

    s.flows = s.things = 0;
    collect(sim, &s);
    if (!s.flows)
        return;
    do
        weigh(sim, &s);
    while (raise(sim, &s));
}
