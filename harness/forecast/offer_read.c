/* SPDX-License-Identifier: Apache-2.0 */
/* A file of offers: see offer.h, and docs/forecast.md for the format. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/forecast/offer.h"
#include "harness/plan/yaml.h"

#define WATTS_MAX 1e9
#define MONEY_MAX 1e15

/* What a number may be followed by, and how many of the base unit that is. */
struct unit_of {
    const char *unit;
    double times;
};

static const struct unit_of watts[] = {{"W", 1}, {"kW", 1e3}, {NULL, 0}};
static const struct unit_of spans[] = {{"years", 1}, {"year", 1}, {"months", 1 / 12.}, {NULL, 0}};
static const struct unit_of shares[] = {{"%", 0.01}, {NULL, 0}};
static const struct unit_of seconds[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {NULL, 0}};

/* "12.5 kW" in the base unit; absent: as it was. Errors stick to the document. */
static void read_quantity(struct yaml_value at, const struct unit_of *units, double most,
                          double *out)
{
    const char *text = NULL;
    char *end;

    if (!yaml_present(at) || yaml_text(at, &text) || !text)
        return;
    double value = strtod(text, &end);
    if (end == text || !strchr("0123456789.-+", *text)) {
        yaml_fail(at, "'%.40s' is not a number with a unit, such as 100 %s", text, units[0].unit);
        return;
    }
    while (*end == ' ')
        end++;
    const struct unit_of *unit = units;
    while (unit->unit && strcmp(unit->unit, end) != 0)
        unit++;
    if (!unit->unit)
        yaml_fail(at, "'%.40s' %s: it is in %s", text, *end ? "has another unit" : "lacks its unit",
                  units[0].unit);
    else if (!(value >= 0))
        yaml_fail(at, "'%.40s' is below 0", text);
    else if (!(value * unit->times <= most))
        yaml_fail(at, "'%.40s' is more than can be true", text);
    else
        *out = value * unit->times;
}

struct offer_reading {
    struct pool *pool;
    struct offers *offers;
    struct unit_of money[2], by_energy[2];
};

static void read_runs(struct yaml_value list, struct pool *pool, struct offer *offer)
{
    yaml_want(list, YAML_KIND_LIST);
    if (yaml_count(list) > OFFER_RUNS_MAX) {
        yaml_fail(list, "more than %d runs", OFFER_RUNS_MAX);
        return;
    }
    for (; offer->n_runs < yaml_count(list); offer->n_runs++) {
        const char *path = "";

        yaml_text(yaml_item(list, offer->n_runs), &path);
        offer->runs[offer->n_runs] = pool_text(pool, "%s", path);
    }
}

static const char *kept(struct pool *pool, const char *text)
{
    return text ? pool_text(pool, "%s", text) : NULL;
}

static void read_offer(struct offer_reading *in, struct yaml_value at)
{
    static const char *const keys[] = {"name", "nodes",   "per_node", "node_price", "node_power",
                                       "swap", "compute", "runs",     NULL};
    struct offer offer = {.compute_s = NAN};
    const char *name = "", *swap = NULL;
    int64_t nodes = 1, per_node = 0;

    yaml_keys(at, keys);
    yaml_text(yaml_need(at, "name"), &name);
    yaml_int(yaml_need(at, "nodes"), 1, 1 << 20, &nodes);
    yaml_int(yaml_get(at, "per_node"), 1, 1024, &per_node);
    read_quantity(yaml_need(at, "node_price"), in->money, MONEY_MAX, &offer.node_price);
    read_quantity(yaml_need(at, "node_power"), watts, WATTS_MAX, &offer.node_watts);
    read_quantity(yaml_get(at, "compute"), seconds, 1e6, &offer.compute_s);
    yaml_text(yaml_get(at, "swap"), &swap);
    if (yaml_present(yaml_get(at, "runs")))
        read_runs(yaml_get(at, "runs"), in->pool, &offer);
    if (yaml_doc_status(at.doc))
        return;
    offer.name = pool_text(in->pool, "%s", name);
    offer.swap = kept(in->pool, swap);
    offer.nodes = (double)nodes;
    offer.per_node = (double)per_node;
    for (size_t i = 0; i < in->offers->n; i++)
        if (!strcmp(in->offers->all[i].name, offer.name))
            yaml_fail(at, "two offers are called '%.40s'", offer.name);
    if (!(offer.node_watts > 0))
        yaml_fail(at, "a node of '%.40s' draws no power: no sample would cost energy", offer.name);
    in->offers->all[in->offers->n++] = offer;
}

static void read_terms(struct offer_reading *in, struct yaml_value root)
{
    static const char *const keys[] = {"currency", "energy_price", "time", "use", "offers", NULL};
    struct offers *o = in->offers;

    yaml_keys(root, keys);
    if (yaml_text(yaml_need(root, "currency"), &o->currency) || yaml_doc_status(root.doc))
        return;
    o->currency = kept(in->pool, o->currency);
    if (strpbrk(o->currency, " /0123456789"))
        yaml_fail(yaml_get(root, "currency"), "a currency is one word, such as EUR");
    in->money[0] = (struct unit_of){o->currency, 1};
    in->by_energy[0] = (struct unit_of){pool_text(in->pool, "%s/kWh", o->currency), 1};
    read_quantity(yaml_need(root, "energy_price"), in->by_energy, MONEY_MAX, &o->energy_price);
    read_quantity(yaml_need(root, "time"), spans, 100, &o->years);
    read_quantity(yaml_get(root, "use"), shares, 1, &o->use);
    if (!yaml_doc_status(root.doc) && !(o->years > 0 && o->use > 0))
        yaml_fail(yaml_get(root, o->years > 0 ? "use" : "time"), "no time is left to work in");
}

int offers_read(struct pool *pool, const char *path, struct offers *offers, char *error, size_t len)
{
    struct yaml_doc *doc = yaml_doc_load_file(path);
    struct yaml_value root = yaml_doc_root(doc);
    struct offer_reading in = {.pool = pool, .offers = offers};

    *offers = (struct offers){.path = path, .currency = "", .use = 1};
    if (!yaml_doc_status(doc))
        read_terms(&in, root);
    struct yaml_value list = yaml_doc_status(doc) ? root : yaml_need(root, "offers");
    if (!yaml_doc_status(doc)) {
        yaml_want(list, YAML_KIND_LIST);
        if (!yaml_count(list) || yaml_count(list) > OFFERS_MAX)
            yaml_fail(list, "a file has one to %d offers", OFFERS_MAX);
    }
    for (size_t i = 0; !yaml_doc_status(doc) && i < yaml_count(list); i++)
        read_offer(&in, yaml_item(list, i));
    int err = yaml_doc_status(doc);
    if (err)
        snprintf(error, len, "%s", yaml_doc_error(doc));
    yaml_doc_free(doc);
    return err;
}
