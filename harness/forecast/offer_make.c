/* SPDX-License-Identifier: Apache-2.0 */
/* A forecast of each offer: see offer.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "harness/forecast/offer.h"
#include "harness/report/described.h"

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

/* While it waits for sums a GPU draws less than in products, and nobody knows how much less: at the
 * low end nothing. */
static int take_power(struct pricing *m, struct offer *offer, const struct offer_case *c)
{
    const struct part_power *power = &c->f.parts->power;
    const struct step_time *t = &c->point.time;
    double devices = c->f.parts->gpu ? c->f.per_node : 1;
    double busy = (t->compute_s + t->update_s) / t->step_s;

    if (!offer->measured)
        return 0;
    if (isnan(power->watts))
        return fail(m, offer, "node_power: no row of products in its runs has measured power");
    if (c->f.swap.times[SWAP_PRODUCTS] > 0)
        return fail(m, offer, "node_power: measured of other devices than those swapped in");
    offer->node_watts = offer->rest_watts + devices * power->watts;
    offer->node_watts_high = offer->rest_watts + devices * power->high;
    offer->node_watts_low =
        offer->rest_watts + devices * power->low * (isfinite(busy) ? fmin(1, busy) : 1);
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
    if (!err)
        err = take_power(m, offer, c);
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
