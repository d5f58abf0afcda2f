/* SPDX-License-Identifier: Apache-2.0 */
/* Offers as one table, and as JSON: see offer.h. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "harness/forecast/offer.h"

static const struct document_column columns[] = {
    {.name = "Offer"},
    {.name = "Nodes", .number = true},
    {.name = "Samples/s", .number = true},
    {.name = "/s +/-", .place = COLUMN_GOES_FIRST},
    {.name = "Cost", .number = true},
    {.name = "Samples/money", .number = true},
    {.name = "+/-"},
    {.name = "To first"},
    {.name = "Samples/kWh", .number = true},
    {.name = "/kWh +/-", .place = COLUMN_GOES_LAST},
};

static void show_table(struct pool *pool, struct document *d, const struct offers_made *made)
{
    const struct offers *terms = &made->offers;
    size_t n = sizeof(columns) / sizeof(*columns);
    struct document_column *named = pool_alloc(pool, n, sizeof(*named));

    memcpy(named, columns, sizeof(columns));
    named[4].name = pool_text(pool, "Cost %s", terms->currency);
    named[5].name = pool_text(pool, "Samples/%s", terms->currency);
    struct document_table *t = document_table(d, named, n);

    for (size_t i = 0; i < terms->n; i++) {
        const struct offer_case *c = &made->cases[i];
        struct cell *row = document_row(t);

        row[0] = cell_text(c->offer->name);
        row[1] = cell_text(pool_text(pool, "%.0f", c->offer->nodes));
        row[4] = cell_text(pool_text(pool, "%.0f", offer_bill(terms, c->offer).money));
        if (!forecast_is_given(&c->point)) {
            row[2] = cell_word("refused", TONE_LOW);
            continue;
        }
        const struct forecast_point *p = &c->point;

        row[2] = cell_value(p->samples_s, "");
        row[3] =
            cell_interval(p->samples_s, forecast_rate(p, p->high_s), forecast_rate(p, p->low_s));
        struct offer_value money = offer_value(terms, c, OFFER_MONEY),
                           ratio = offer_ratio(terms, c, &made->cases[0], OFFER_MONEY),
                           energy = offer_value(terms, c, OFFER_ENERGY);

        row[5] = cell_value(money.value, "");
        row[6] = cell_interval(money.value, money.low, money.high);
        if (i && !isnan(ratio.value))
            row[7] = cell_text(
                pool_text(pool, "%.3g (%.3g to %.3g)", ratio.value, ratio.low, ratio.high));
        row[8] = cell_value(energy.value * OFFER_KWH_J, "");
        row[9] = cell_interval(energy.value, energy.low, energy.high);
    }
}

void offers_show(struct pool *pool, struct document *d, const struct offers_made *made)
{
    const struct offers *terms = &made->offers;

    for (size_t i = 0; i < terms->n; i++) {
        const struct offer_case *c = &made->cases[i];

        if (!forecast_is_given(&c->point))
            document_answer(d, "Refused", "", TONE_LOW,
                            pool_text(pool, "'%s' has no forecast of %.0f nodes: %s",
                                      c->offer->name, c->offer->nodes,
                                      forecast_why(pool, &c->f, &c->point)));
    }
    document_paragraph(
        d,
        pool_text(pool,
                  "%s runs for %s of %.6g years, at %.6g %s/kWh. 95 %% confidence intervals that "
                  "overlap do not say which offer is better. \"To first\", the ratio of samples "
                  "for money to the first offer, does where its interval excludes 1, because "
                  "errors that both share cancel in it.",
                  made->cases[0].f.job.model->name, document_percent(pool, 100 * terms->use),
                  terms->years, terms->energy_price, terms->currency));
    show_table(pool, d, made);
    for (size_t i = 0; i < terms->n; i++)
        if (made->cases[i].f.swap.text)
            document_item(d, pool_text(pool, "'%s' swaps %s", terms->all[i].name,
                                       forecast_swap_text(pool, &made->cases[i].f.swap)));
}

/* ---- JSON ---- */

static json_t *value_json(struct offer_value v)
{
    json_t *o = json_object();

    forecast_put(o, "value", v.value);
    forecast_put(o, "low", v.low);
    forecast_put(o, "high", v.high);
    return o;
}

static json_t *offer_json(const struct offers *terms, const struct offer_case *c,
                          const struct offer_case *first)
{
    const struct offer *offer = c->offer;
    struct offer_bill bill = offer_bill(terms, offer);
    json_t *o = json_object();

    json_object_set_new(o, "name", json_string(offer->name));
    forecast_put(o, "nodes", offer->nodes);
    forecast_put(o, "node_price", offer->node_price);
    forecast_put(o, "node_w", offer->node_watts);
    forecast_put(o, "cost", bill.money);
    forecast_put(o, "energy_cost", bill.energy_money);
    forecast_put(o, "energy_j", bill.joules);
    if (c->f.swap.text)
        json_object_set_new(o, "swapped", json_string(c->f.swap.text));
    if (!forecast_is_given(&c->point))
        return o;
    forecast_put(o, "step_s", c->point.time.step_s);
    forecast_put(o, "step_low_s", c->point.low_s);
    forecast_put(o, "step_high_s", c->point.high_s);
    forecast_put(o, "samples_per_s", c->point.samples_s);
    json_object_set_new(o, "samples_per_money", value_json(offer_value(terms, c, OFFER_MONEY)));
    json_object_set_new(o, "samples_per_joule", value_json(offer_value(terms, c, OFFER_ENERGY)));
    if (c != first && forecast_is_given(&first->point)) {
        json_object_set_new(o, "money_to_first",
                            value_json(offer_ratio(terms, c, first, OFFER_MONEY)));
        json_object_set_new(o, "energy_to_first",
                            value_json(offer_ratio(terms, c, first, OFFER_ENERGY)));
    }
    return o;
}

int offers_print_json(FILE *out, const struct offers_made *made)
{
    json_t *all = json_object(), *offers = json_array();
    const struct step_job *job = &made->cases[0].f.job;

    json_object_set_new(all, "model", json_string(job->model->name));
    json_object_set_new(all, "unit", json_string(job->model->unit));
    json_object_set_new(all, "currency", json_string(made->offers.currency));
    forecast_put(all, "energy_price", made->offers.energy_price);
    forecast_put(all, "years", made->offers.years);
    forecast_put(all, "use", made->offers.use);
    forecast_put(all, "confidence", 0.95);
    for (size_t i = 0; i < made->offers.n; i++)
        json_array_append_new(offers, offer_json(&made->offers, &made->cases[i], &made->cases[0]));
    json_object_set_new(all, "offers", offers);
    int err = json_dumpf(all, out, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    json_decref(all);
    return err || fputc('\n', out) == EOF ? -EIO : 0;
}
