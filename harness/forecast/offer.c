/* SPDX-License-Identifier: Apache-2.0 */
/* A forecast of each offer, what it gives for money and energy, and its ratio to the first: see
 * offer.h. */
#include "harness/forecast/offer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

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

/* The logarithm of samples for money or energy. */
static double log_value(const struct offers *terms, const struct offer *offer,
                        const struct forecast_point *p, enum offer_measure measure)
{
    struct offer_bill bill = offer_bill(terms, offer);

    return log(p->samples_s * bill.working_s / (measure == OFFER_MONEY ? bill.money : bill.joules));
}

struct offer_value offer_value(const struct offers *terms, const struct offer_case *c,
                               enum offer_measure measure)
{
    const struct forecast_point *p = &c->point;

    if (!forecast_is_given(&c->point))
        return (struct offer_value){NAN, NAN, NAN};
    double value = exp(log_value(terms, c->offer, p, measure));
    return (struct offer_value){value, value * p->time.step_s / p->high_s,
                                value * p->time.step_s / p->low_s};
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

/* Whether a source of error is at the same end in both. */
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

struct offer_value offer_ratio(const struct offers *terms, const struct offer_case *c,
                               const struct offer_case *first, enum offer_measure measure)
{
    double low = 0, high = 0;

    if (!forecast_is_given(&c->point) || !forecast_is_given(&first->point))
        return (struct offer_value){NAN, NAN, NAN};
    for (int source = 0; source < SOURCES; source++) {
        double own[2], other[2];

        for (int end = 0; end < 2; end++) {
            own[end] = log(c->point.time.step_s / c->point.ends_s[source][end]);
            other[end] = log(first->point.ends_s[source][end] / first->point.time.step_s);
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

/* ---- a forecast of each ---- */

struct pricing {
    struct offers_made *made;
    struct pool *pool;
    const struct forecast *base;
    const struct offer_source *from;
    char *error;
    size_t len;
};

static int fail(struct pricing *m, const struct offer *offer, const char *text)
{
    snprintf(m->error, m->len, "%s: '%s': %s", m->made->offers.path, offer->name, text);
    return -EINVAL;
}

/* Runs that an earlier offer names, too, are read once. */
static size_t same_runs(const struct pricing *m, size_t i)
{
    const struct offer *offer = &m->made->offers.all[i];

    for (size_t k = 0; k < i; k++) {
        const struct offer *other = &m->made->offers.all[k];
        bool same = other->n_runs == offer->n_runs && other->per_node == offer->per_node;

        for (size_t run = 0; same && run < offer->n_runs; run++)
            same = !strcmp(offer->runs[run], other->runs[run]);
        if (same)
            return k;
    }
    return i;
}

static int read_runs(struct pricing *m, size_t i)
{
    struct offers_made *made = m->made;
    const struct offer *offer = &made->offers.all[i];
    char error[300] = "";

    made->reports[i] = xcalloc(1, sizeof(*made->reports[i]));
    int err = report_load(made->reports[i], (const char *const *)offer->runs, offer->n_runs, error,
                          sizeof(error));
    if (err) {
        fail(m, offer, error);
        return err;
    }
    parts_read(made->reports[i], m->from->benches, m->from->dtype, m->from->over,
               offer->per_node > 0 ? offer->per_node : m->from->per_node, &made->parts[i]);
    parts_find_host(&made->parts[i], m->base->job.model);
    return 0;
}

static int make_one(struct pricing *m, size_t i)
{
    struct offer *offer = &m->made->offers.all[i];
    struct offer_case *c = &m->made->cases[i];
    char error[300] = "";
    int err = 0;

    c->offer = offer;
    c->f = *m->base;
    c->f.swap = (struct forecast_swap){.text = NULL};
    if (offer->n_runs) {
        size_t same = same_runs(m, i);

        err = same < i ? 0 : read_runs(m, i);
        if (err)
            return err;
        forecast_use(&c->f, &m->made->parts[same], m->from->per_node);
        if (!isnan(m->base->job.compute_s) && isnan(offer->compute_s))
            return fail(m, offer, "--compute is of other runs: say its own `compute`");
    }
    if (offer->per_node > 0)
        c->f.per_node = offer->per_node;
    if (!isnan(offer->compute_s))
        c->f.job.compute_s = offer->compute_s;
    if (offer->n_runs)
        err = !isnan(c->f.job.compute_s) || (m->from->dtype && c->f.parts->n_products)
                  ? 0
                  : fail(m, offer,
                         m->from->dtype
                             ? pool_text(m->pool,
                                         "its runs have no products in %s, as the job is computed",
                                         m->from->dtype)
                             : "the runs of the command line have no products: say --dtype");
    if (!err && offer->swap)
        err =
            forecast_swap_read(m->pool, c->f.parts, offer->swap, &c->f.swap, error, sizeof(error));
    if (!err && c->f.swap.times[SWAP_PRODUCTS] > 0 && !isnan(c->f.job.compute_s))
        return fail(m, offer, "swap: products change nothing beside a given compute");
    if (!err)
        err = forecast_point(&c->f, offer->nodes * c->f.per_node, &c->point);
    c->point.nodes = offer->nodes;
    if (err == -EINVAL && !*m->error)
        return fail(m, offer, *error ? error : "its nodes do not hold the model once");
    return err;
}

int offers_make(struct offers_made *made, struct pool *pool, const struct forecast *base,
                const struct offer_source *from, char *error, size_t len)
{
    struct pricing m = {made, pool, base, from, error, len};
    int err = 0;

    for (size_t i = 0; !err && i < made->offers.n; i++)
        err = make_one(&m, i);
    return err;
}

void offers_release(struct offers_made *made)
{
    for (size_t i = 0; i < OFFERS_MAX; i++) {
        if (made->reports[i])
            report_release(made->reports[i]);
        free(made->reports[i]);
    }
}
