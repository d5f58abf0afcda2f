/* SPDX-License-Identifier: Apache-2.0 */
/* What bounds asynchronous workers, each of which has a rate of its own, and whether they go at one pace: see work.h. */
#include <math.h>
#include <stdlib.h>

#include "benches/step/run.h"
#include "benches/step/work.h"
#include "core/alloc.h"

/* Steps by which leads may grow, of so many: a lead is a whole number of steps. */
#define SETTLED (1. / (VALUES_WINDOWS * STEP_WINDOW))
#define APART   .05
#define CHANCE  4 /* standard deviations of a sum: chance alone reaches no more */

/* Bytes that a step of a worker moves over a node's links. */
struct load {
    double way[2]; /* out, in */
};

struct workers {
    unsigned n, nodes;
    double *most;       /* steps a ns that each makes at most; infinite: nothing is known */
    struct load *loads; /* of each worker, on each node */
};

static struct load *load_of(const struct workers *w, unsigned worker, unsigned node)
{
    return &w->loads[(size_t)worker * w->nodes + node];
}

/* A worker's own plan has all that it sends and gets: calls of two, of which the first is the root. */
static int add_worker(struct workers *w, const struct step_spec *spec,
                      const struct step_layer *layers, const struct world *world, unsigned worker)
{
    double each = (double)collective_type_bytes((enum collective_type)spec->type);
    struct step_plan plan;
    int err = step_plan_make(&plan, spec, layers, worker);
    struct step_stated its = {0};

    if (!err && spec->compute == STEP_TIMED)
        its = step_stated(&plan, spec, worker);
    double ns = its.forward_ns + its.backward_ns;

    w->most[worker] = ns > 0 ? 1 / ns : INFINITY;
    for (size_t i = 0; i < plan.n_ops && !err; i++) {
        const struct step_part *part = &plan.parts[plan.ops[i].part];
        if (plan.ops[i].kind != STEP_CALL)
            continue;
        double bytes = (double)part->calls[plan.ops[i].call].count * each;
        for (unsigned node = 0; node < w->nodes; node++) {
            struct collective_load load = collective_load(world, (enum collective_op)part->op,
                                                          part->members, part->n, 0, node);
            load_of(w, worker, node)->way[0] += bytes * load.out;
            load_of(w, worker, node)->way[1] += bytes * load.in;
        }
    }
    step_plan_release(&plan);
    return err;
}

/* No worker alone is faster than each link lets it. Returns the node whose link takes most from one. */
static unsigned narrow(struct workers *w, const double *gbps)
{
    unsigned named = VALUES_NO_NODE;
    double most = 0;

    for (unsigned i = 0; i < w->n; i++) {
        double own = w->most[i];
        for (unsigned node = 0; node < w->nodes; node++) {
            struct load *load = load_of(w, i, node);
            double its = gbps[node] / fmax(load->way[0], load->way[1]);
            if (!(its < w->most[i])) /* not known, or no bytes */
                continue;
            w->most[i] = its;
            if (own - its > most) {
                most = own - its;
                named = node;
            }
        }
    }
    return named;
}

struct item {
    double bytes, most;
};

static int by_bytes(const void *a, const void *b)
{
    const struct item *x = a, *y = b;

    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* The most steps a ns of all workers that a link carries one way: first those of the fewest bytes. */
static double most_of(const struct workers *w, struct item *items, unsigned node, int way,
                      double gbps)
{
    double left = isnan(gbps) ? INFINITY : gbps, rate = 0;

    for (unsigned i = 0; i < w->n; i++)
        items[i] = (struct item){load_of(w, i, node)->way[way], w->most[i]};
    qsort(items, w->n, sizeof(*items), by_bytes);
    for (unsigned i = 0; i < w->n; i++) {
        double its =
            items[i].bytes > 0 ? fmin(items[i].most, left / items[i].bytes) : items[i].most;
        rate += its;
        left -= items[i].bytes > 0 && !isinf(left) ? its * items[i].bytes : 0;
        left = fmax(left, 0);
    }
    return rate;
}

static void bound(struct workers *w, struct item *items, const double *gbps,
                  struct values_free *limit)
{
    *limit = (struct values_free){.node = narrow(w, gbps)};
    for (unsigned i = 0; i < w->n; i++)
        limit->rate += w->most[i];
    for (unsigned node = 0; node < w->nodes; node++)
        for (int way = 0; way < 2; way++) {
            double rate = most_of(w, items, node, way, gbps[node]);
            if (rate < limit->rate * (1 - 1e-9)) /* the same, added in another order */
                *limit = (struct values_free){.rate = rate, .node = node};
        }
}

/* All make as many steps: those of the slowest compute, or of the link that is full first. */
static void bound_alike(const struct workers *w, const double *gbps, struct values_free *limit)
{
    double least = INFINITY;

    *limit = (struct values_free){.node = VALUES_NO_NODE};
    for (unsigned i = 0; i < w->n; i++)
        least = fmin(least, w->most[i]);
    for (unsigned node = 0; node < w->nodes; node++)
        for (int way = 0; way < 2; way++) {
            double bytes = 0;
            for (unsigned i = 0; i < w->n; i++)
                bytes += load_of(w, i, node)->way[way];
            if (!(bytes > 0) || !(gbps[node] / bytes < least))
                continue;
            least = gbps[node] / bytes;
            limit->node = node;
        }
    limit->rate = w->n * least;
}

int values_free_limit(const struct step_spec *spec, const struct step_layer *layers,
                      const struct world *world, const double *gbps, struct values_free *limit)
{
    struct workers w = {.n = step_dp(spec), .nodes = world_nodes(world)};
    struct item *items = xcalloc(w.n, sizeof(*items));
    int err = 0;

    w.most = xcalloc(w.n, sizeof(*w.most));
    w.loads = xcalloc((size_t)w.n * w.nodes, sizeof(*w.loads));
    for (unsigned i = 0; i < w.n && !err; i++)
        err = add_worker(&w, spec, layers, world, i);
    if (!err && step_is_bounded(spec))
        bound_alike(&w, gbps, limit);
    else if (!err)
        bound(&w, items, gbps, limit);
    free(items);
    free(w.most);
    free(w.loads);
    return err;
}

/* ---- Whether they go at one pace ---- */

void values_leads_add(struct values_leads *l, double leads, double steps)
{
    double grown = leads - l->now;

    l->grown[l->n++ % VALUES_WINDOWS] = grown;
    l->now = leads;
    l->sum += grown;
    l->squares += grown * grown;
    l->steps += steps;
    l->counted++;
}

void values_leads_mark(struct values_leads *l)
{
    l->sum = l->squares = l->steps = 0;
    l->counted = 0;
}

bool values_leads_settled(const struct values_leads *l, unsigned workers, double bound)
{
    double grown = 0;

    for (size_t i = 0; i < VALUES_WINDOWS; i++)
        grown += l->grown[i];
    return l->now >= (workers - 1) * bound || (l->n >= VALUES_WINDOWS && grown <= workers);
}

bool values_leads_stayed(const struct values_leads *l, unsigned workers)
{
    double n = (double)l->counted;
    double chance =
        n > 1 ? sqrt(fmax(0, l->squares - l->sum * l->sum / n) / (n - 1) * n) : INFINITY;

    if (l->sum > fmax(APART * l->steps, workers))
        return false;
    return l->sum <= fmax(SETTLED * l->steps, workers) || l->sum <= CHANCE * chance;
}
