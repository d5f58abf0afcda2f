/* SPDX-License-Identifier: Apache-2.0 */
/* What offers give for money and energy, and how two of them compare: see offer.h. */
#include "harness/forecast/offer.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* ---- money and energy ---- */

struct offer_bill offer_bill(const struct offers *terms, const struct offer *offer, double nodes)
{
    double size = nodes / offer->nodes, switches = ceil(offer->switches * size - 1e-9);
    double seconds = terms->years * OFFER_YEAR_S;
    double node_watts = offer->node_watts * terms->use + offer->idle_watts * (1 - terms->use);
    double watts = (nodes * node_watts + switches * offer->switch_watts) * (1 + terms->cooling);
    struct offer_bill bill = {.joules = watts * seconds, .working_s = seconds * terms->use};

    bill.energy_money = bill.joules / OFFER_KWH_J * terms->energy_price;
    bill.money = nodes * offer->node_price + switches * offer->switch_price + offer->once * size +
                 offer->yearly * size * terms->years + bill.energy_money;
    return bill;
}

/* ---- one offer ---- */

bool offer_is_given(const struct offer_case *c)
{
    return !isnan(c->point.low_s);
}

/* The logarithm of samples for money or energy. */
static double log_value(const struct offers *terms, const struct offer *offer,
                        const struct forecast_point *p, enum offer_measure measure)
{
    struct offer_bill bill = offer_bill(terms, offer, p->nodes);

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

/* ---- two offers, by pairs ---- */

static bool is_same(double x, double y)
{
    return x == y || (isnan(x) && isnan(y));
}

static bool is_same_law(const struct part_law *x, const struct part_law *y)
{
    return x->law.n == y->law.n &&
           (!x->law.n || !memcmp(x->law.points, y->law.points, x->law.n * sizeof(*x->law.points)));
}

static bool are_same_laws(const struct parts *x, const struct parts *y)
{
    for (int what = 0; what < JOB_PARTS; what++)
        if (!is_same_law(&x->laws[what], &y->laws[what]) ||
            !is_same_law(&x->inside[what], &y->inside[what]))
            return false;
    return true;
}

static bool are_same_products(const struct parts *x, const struct parts *y)
{
    bool same = x->n_products == y->n_products && x->gpu == y->gpu;

    for (size_t i = 0; same && i < x->n_products; i++) {
        const struct part_product *a = &x->products[i], *b = &y->products[i];

        same = a->m == b->m && a->n == b->n && a->k == b->k && a->flops == b->flops;
    }
    return same;
}

struct pair {
    const struct forecast *f[2];
    const struct forecast_point *p[2];
    bool alike;
};

/* Ranks that were all measured, on this network, show what its core carries. */
static bool is_core_known(const struct forecast *f, const struct forecast_point *p)
{
    bool other = f->swap.times[SWAP_NETWORK] > 0 && p->ranks > f->per_node;

    /* groups of one job load the core together, but for those inside a node */
    double ranks = p->ranks > f->per_node ? fmax(p->ranks, p->law.ranks) : p->law.ranks;

    return f->core_known || (!(ranks > p->law.most_ranks) && !(other && ranks > 2));
}

/* What the core of a network carries is each network's own. All else has what both measured. */
static bool shares_network(const struct pair *pair)
{
    bool known = is_core_known(pair->f[0], pair->p[0]) && is_core_known(pair->f[1], pair->p[1]);

    return (known || pair->alike) && are_same_laws(pair->f[0]->parts, pair->f[1]->parts);
}

/* Whether a source of error is the same in both, as their parts have the same figures. */
static bool shares(const struct pair *pair, enum forecast_source source)
{
    const struct parts *x = pair->f[0]->parts, *y = pair->f[1]->parts;
    const struct forecast_swap *s = &pair->f[0]->swap, *t = &pair->f[1]->swap;

    switch (source) {
    case SOURCE_PRODUCT:
        return are_same_products(x, y);
    case SOURCE_DIVIDED:
        return pair->f[0]->job.compute_s == pair->f[1]->job.compute_s;
    case SOURCE_STREAM:
        return is_same(x->stream, y->stream) && is_same(x->stream_low, y->stream_low);
    case SOURCE_CALL:
        return is_same(x->call_s, y->call_s) && is_same(x->call_low_s, y->call_low_s);
    case SOURCE_NETWORK:
    case SOURCE_PARALLEL:
        return shares_network(pair);
    case SOURCE_OVERLAP:
        return is_same(x->hidden, y->hidden) &&
               (isnan(x->hidden) || is_same(x->hidden_low, y->hidden_low));
    case SOURCE_HOST:
        return is_same(x->host.s, y->host.s) ||
               (isnan(x->host.s) && isnan(y->host.s)); /* none in either */
    case SOURCE_SLOWEST:
    case SOURCE_SLOW_HOST:
        return pair->alike;
    case SOURCE_SWAP_NETWORK:
        return s->times[SWAP_NETWORK] == t->times[SWAP_NETWORK] && are_same_laws(x, y);
    case SOURCE_SWAP_PRODUCTS:
        return s->times[SWAP_PRODUCTS] == t->times[SWAP_PRODUCTS] && are_same_products(x, y);
    case SOURCE_SWAP_MEMORY:
        return s->times[SWAP_MEMORY] == t->times[SWAP_MEMORY] && is_same(x->stream, y->stream);
    case SOURCES:
        break;
    }
    return false;
}

/* By how much one offer gives more where a source is at an end of its interval: a logarithm. */
static double gain(const struct forecast_point *p, enum forecast_source source, int end)
{
    return log(p->time.step_s / p->ends_s[source][end]);
}

/* How far the logarithm of first / second may lie below and above, as squares. gains are of both
 * offers, at both ends of a source. */
static void add_gains(double gains[2][2], bool shared, double *low, double *high)
{
    for (int i = 0; i < (shared ? 1 : 2); i++) {
        double down = 0, up = 0;

        for (int end = 0; end < 2; end++) {
            double by = shared ? gains[0][end] - gains[1][end] : i ? -gains[1][end] : gains[0][end];

            down = fmin(down, by);
            up = fmax(up, by);
        }
        *low += down * down;
        *high += up * up;
    }
}

static bool is_same_power(const struct pair *pair, const struct offer *const offers[2])
{
    const struct part_power *x = &pair->f[0]->parts->power, *y = &pair->f[1]->parts->power;

    return offers[0]->measured && offers[1]->measured && x->watts == y->watts && x->low == y->low;
}

static struct offer_value compare(const struct offers *terms, const struct offer *first,
                                  const struct offer *second, const struct pair *pair,
                                  enum offer_measure measure)
{
    const struct offer *const offers[2] = {first, second};
    double low = 0, high = 0, gains[2][2];

    if (isnan(pair->p[0]->low_s) || isnan(pair->p[1]->low_s))
        return (struct offer_value){NAN, NAN, NAN};
    double ratio = exp(log_value(terms, first, pair->p[0], measure) -
                       log_value(terms, second, pair->p[1], measure));
    for (int source = 0; source < SOURCES; source++) {
        for (int i = 0; i < 4; i++)
            gains[i / 2][i % 2] = gain(pair->p[i / 2], (enum forecast_source)source, i % 2);
        add_gains(gains, shares(pair, (enum forecast_source)source), &low, &high);
    }
    for (int i = 0; i < 4; i++)
        gains[i / 2][i % 2] = power_gain(terms, offers[i / 2], pair->p[i / 2], measure, i % 2);
    add_gains(gains, is_same_power(pair, offers), &low, &high);
    return (struct offer_value){ratio, ratio * exp(-sqrt(low)), ratio * exp(sqrt(high))};
}

static struct pair pair_of(const struct offer_case *first, const struct offer_case *second,
                           bool alike)
{
    return (struct pair){{&first->f, &second->f}, {&first->point, &second->point}, alike};
}

struct offer_value offer_compare(const struct offers *terms, const struct offer_case *first,
                                 const struct offer_case *second, enum offer_measure measure,
                                 bool alike)
{
    struct pair pair = pair_of(first, second, alike);

    return compare(terms, first->offer, second->offer, &pair, measure);
}

bool offer_is_undecided(struct offer_value ratio)
{
    return ratio.low <= 1 && ratio.high >= 1;
}

/* ---- break-even ---- */

/* The logarithm of the ratio, its low end or its high end, with another time or price. */
static double curve(const struct offers *terms, const struct offer_case *first,
                    const struct offer_case *second, enum offer_by by, int which, double x)
{
    struct offers at = *terms;

    if (by == OFFER_BY_YEARS)
        at.years = x;
    else
        at.energy_price = x;
    struct offer_value v = offer_compare(&at, first, second, OFFER_MONEY, false);
    return log(which < 0 ? v.low : which > 0 ? v.high : v.value);
}

/* Where a curve is 0. It rises or falls all the way: money is a straight line in both. NaN: it is
 * on one side. */
static double crossing(const struct offers *terms, const struct offer_case *first,
                       const struct offer_case *second, enum offer_by by, int which, double most)
{
    double low = 1e-9 * most, high = most;
    double at_low = curve(terms, first, second, by, which, low);
    double at_high = curve(terms, first, second, by, which, high);

    if (!(at_low * at_high < 0))
        return NAN;
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;

        if (curve(terms, first, second, by, which, middle) * at_low > 0)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

struct offer_even offer_break_even(const struct offers *terms, const struct offer_case *first,
                                   const struct offer_case *second, enum offer_by by)
{
    double most = by == OFFER_BY_YEARS ? OFFER_YEARS_MAX : OFFER_PRICE_MAX * terms->energy_price;
    double at = crossing(terms, first, second, by, 0, most);

    if (!(at > 0))
        return (struct offer_even){.found = false};
    double down = crossing(terms, first, second, by, -1, most);
    double up = crossing(terms, first, second, by, 1, most);
    bool rises = curve(terms, first, second, by, 0, most) > 0;
    /* a rising ratio's high end is the first at 1, a falling one's low end */
    double from = rises ? up : down, to = rises ? down : up;
    return (struct offer_even){true, at, isnan(from) ? 0 : from, isnan(to) ? HUGE_VAL : to};
}

static int point_at(const struct offer_case *c, double nodes, struct forecast_point *p)
{
    int err = forecast_point(&c->f, nodes * c->f.per_node, p);

    p->nodes = nodes;
    return err;
}

int offer_break_even_nodes(const struct offers *terms, const struct offer_case *first,
                           const struct offer_case *second, const double *nodes, size_t n,
                           struct offer_nodes *even)
{
    double before = 0, before_nodes = 0;

    *even = (struct offer_nodes){.found = false};
    for (size_t i = 0; i < n; i++) {
        struct forecast_point p, q;
        struct pair pair = {{&first->f, &second->f}, {&p, &q}, false};
        int err = point_at(first, nodes[i], &p);

        if (!err)
            err = point_at(second, nodes[i], &q);
        if (err == -EINVAL) /* too few to hold the model */
            continue;
        if (err)
            return err;
        struct offer_value ratio = compare(terms, first->offer, second->offer, &pair, OFFER_MONEY);
        if (isnan(ratio.value))
            continue;
        if (offer_is_undecided(ratio)) {
            even->low = even->low > 0 ? even->low : nodes[i];
            even->high = nodes[i];
        }
        even->compared |= before_nodes > 0;
        if (before_nodes > 0 && !even->found && before * log(ratio.value) < 0) {
            even->found = true;
            even->after = before_nodes;
            even->at = nodes[i];
        }
        before = log(ratio.value);
        before_nodes = nodes[i];
    }
    return 0;
}
