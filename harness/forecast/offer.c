/* SPDX-License-Identifier: Apache-2.0 */
/* What offers give for money and energy, and each as a ratio to the first: see offer.h. */
#include "harness/forecast/offer.h"

#include <math.h>

struct offer_bill offer_bill(const struct offers *terms, const struct offer *offer)
{
    double working_s = terms->years * OFFER_YEAR_S * terms->use;
    double joules = offer->nodes * offer->node_watts * working_s;
    double energy_money = joules / OFFER_KWH_J * terms->energy_price;

    return (struct offer_bill){.money = offer->nodes * offer->node_price + energy_money,
                               .energy_money = energy_money,
                               .joules = joules,
                               .working_s = working_s};
}

bool offer_is_given(const struct offer_case *c)
{
    return !isnan(c->point.low_s);
}

/* The logarithm of samples for money or energy. */
static double log_value(const struct offers *terms, const struct offer *offer,
                        const struct forecast_point *p, enum offer_measure measure)
{
    struct offer_bill bill = offer_bill(terms, offer);

    return log(p->samples_s * bill.working_s / (measure == OFFER_MONEY ? bill.money : bill.joules));
}

/* By how much an offer gives more where its nodes' power is at an end of its interval: as a
 * logarithm. What is stated has none. */
static double power_gain(const struct offers *terms, const struct offer *offer,
                         const struct forecast_point *p, enum offer_measure measure, int end)
{
    struct offer at = *offer;

    if (!offer->measured)
        return 0;
    at.node_watts = end ? offer->node_watts_high : offer->node_watts_low;
    return log_value(terms, &at, p, measure) - log_value(terms, offer, p, measure);
}

struct offer_value offer_value(const struct offers *terms, const struct offer_case *c,
                               enum offer_measure measure)
{
    const struct forecast_point *p = &c->point;

    if (!offer_is_given(c))
        return (struct offer_value){NAN, NAN, NAN};
    double value = exp(log_value(terms, c->offer, p, measure));
    double down =
        hypot(log(p->high_s / p->time.step_s), power_gain(terms, c->offer, p, measure, 1));
    double up = hypot(log(p->time.step_s / p->low_s), power_gain(terms, c->offer, p, measure, 0));
    return (struct offer_value){value, value * exp(-down), value * exp(up)};
}

/* ---- the ratio to the first, by pairs ---- */

/* Ranks that were all measured, on this network, show what its core carries. */
static bool is_core_known(const struct offer_case *c)
{
    const struct forecast *f = &c->f;
    const struct forecast_point *p = &c->point;
    bool other = f->swap.times[SWAP_NETWORK] > 0 && p->ranks > f->per_node;

    /* groups of one job load the core together, but for those inside a node */
    double ranks = p->ranks > f->per_node ? fmax(p->ranks, p->law.ranks) : p->law.ranks;

    return f->core_known || (!(ranks > p->law.most_ranks) && !(other && ranks > 2));
}

/* Whether a source of error is at the same end in both. SOURCES: measured power. */
static bool is_shared(const struct offer_case *x, const struct offer_case *y, int source)
{
    bool same_runs = x->f.parts == y->f.parts;

    switch (source) {
    case SOURCE_DIVIDED:
        return x->f.job.compute_s == y->f.job.compute_s;
    case SOURCE_NETWORK:
    case SOURCE_PARALLEL:
        return same_runs && is_core_known(x) && is_core_known(y);
    case SOURCE_SLOWEST:
    case SOURCE_SLOW_HOST:
        return false;
    case SOURCE_SWAP_NETWORK:
    case SOURCE_SWAP_PRODUCTS:
    case SOURCE_SWAP_MEMORY:
        return same_runs && x->f.swap.times[source - SOURCE_SWAP_NETWORK] ==
                                y->f.swap.times[source - SOURCE_SWAP_NETWORK];
    default:
        return same_runs;
    }
}

/* By how much an offer gives more where a source is at an end of its interval: a logarithm. */
static double gain(const struct offers *terms, const struct offer_case *c,
                   enum offer_measure measure, int source, int end)
{
    return source == SOURCES ? power_gain(terms, c->offer, &c->point, measure, end)
                             : log(c->point.time.step_s / c->point.ends_s[source][end]);
}

struct offer_value offer_ratio(const struct offers *terms, const struct offer_case *c,
                               const struct offer_case *first, enum offer_measure measure)
{
    double low = 0, high = 0;

    if (!offer_is_given(c) || !offer_is_given(first))
        return (struct offer_value){NAN, NAN, NAN};
    for (int source = 0; source <= SOURCES; source++) {
        double own[2], other[2];

        for (int end = 0; end < 2; end++) {
            own[end] = gain(terms, c, measure, source, end);
            other[end] = -gain(terms, first, measure, source, end);
        }
        if (is_shared(c, first, source)) {
            for (int end = 0; end < 2; end++) {
                own[end] += other[end];
                other[end] = 0;
            }
        }
        low = hypot(low, hypot(fmin(0, fmin(own[0], own[1])), fmin(0, fmin(other[0], other[1]))));
        high = hypot(high, hypot(fmax(0, fmax(own[0], own[1])), fmax(0, fmax(other[0], other[1]))));
    }
    double ratio = exp(log_value(terms, c->offer, &c->point, measure) -
                       log_value(terms, first->offer, &first->point, measure));
    return (struct offer_value){ratio, ratio * exp(-low), ratio * exp(high)};
}
