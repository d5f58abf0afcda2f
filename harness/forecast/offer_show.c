/* SPDX-License-Identifier: Apache-2.0 */
/* Offers as a document, the answer first, and as JSON: see offer.h. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "harness/forecast/offer.h"

struct showing {
    struct pool *pool;
    struct document *d;
    const struct offers_made *made;
    const struct offers *terms;
    size_t order[OFFERS_MAX], n; /* those with a forecast, most samples for money first */
};

static const char *const measure_names[OFFER_MEASURES] = {"money", "energy"};

/* "8", "0.25": as a person writes it. */
static const char *plain(const struct showing *s, double value)
{
    return pool_text(s->pool, "%.6g", value);
}

static const char *number(const struct showing *s, double value)
{
    return document_number(s->pool, value);
}

/* "1.34 times (1.12 to 1.61)" */
static const char *times(const struct showing *s, struct offer_value v)
{
    return pool_text(s->pool, "%s times (%s to %s)", number(s, v.value), number(s, v.low),
                     number(s, v.high));
}

static const struct offer_case *case_of(const struct showing *s, size_t place)
{
    return &s->made->cases[s->order[place]];
}

static void rank(struct showing *s, enum offer_measure measure)
{
    double values[OFFERS_MAX];

    s->n = 0;
    for (size_t i = 0; i < s->terms->n; i++) {
        double value = offer_value(s->terms, &s->made->cases[i], measure).value;
        size_t at = s->n;

        if (isnan(value))
            continue;
        for (; at && values[at - 1] < value; at--) {
            values[at] = values[at - 1];
            s->order[at] = s->order[at - 1];
        }
        values[at] = value;
        s->order[at] = i;
        s->n++;
    }
}

/* ---- the answer ---- */

static const char *unit_of(const struct showing *s, enum offer_measure measure)
{
    return measure == OFFER_MONEY ? s->terms->currency : "kWh";
}

/* Those that may be as good as the best: "'B' (the first gives 1.1 times (0.9 to 1.2))". */
static const char *undecided_text(const struct showing *s, enum offer_measure measure)
{
    const char *text = "";

    for (size_t i = 1; i < s->n; i++) {
        struct offer_value v =
            offer_compare(s->terms, case_of(s, 0), case_of(s, i), measure, false);

        if (offer_is_undecided(v))
            text = pool_text(s->pool, "%s%s'%s' (the first gives %s)", text, *text ? ", and " : "",
                             case_of(s, i)->offer->name, times(s, v));
    }
    return text;
}

static void answer_measure(struct showing *s, enum offer_measure measure)
{
    const char *label = pool_text(s->pool, "Per %s", unit_of(s, measure));

    rank(s, measure);
    if (s->n < 2) {
        document_answer(s->d, label, "unknown", TONE_LOW, "fewer than two offers have a forecast");
        return;
    }
    const char *name = case_of(s, 0)->offer->name, *undecided = undecided_text(s, measure);
    if (*undecided) {
        document_answer(s->d, label, "undecided", TONE_LOW,
                        pool_text(s->pool,
                                  "these cannot be told apart by what was measured: '%s' and %s",
                                  name, undecided));
        return;
    }
    struct offer_value v = offer_compare(s->terms, case_of(s, 0), case_of(s, 1), measure, false);
    document_answer(
        s->d, label, name, TONE_NONE,
        pool_text(s->pool, "%s as many samples as '%s'", times(s, v), case_of(s, 1)->offer->name));
}

/* What would tell the two best for money apart. */
static void answer_decides(struct showing *s)
{
    rank(s, OFFER_MONEY);
    if (s->n < 2)
        return;
    struct offer_value v = offer_compare(s->terms, case_of(s, 0), case_of(s, 1), OFFER_MONEY,
                                         false),
                       alike =
                           offer_compare(s->terms, case_of(s, 0), case_of(s, 1), OFFER_MONEY, true);

    if (!offer_is_undecided(v))
        return;
    if (!offer_is_undecided(alike))
        document_answer(
            s->d, "Decides", "", TONE_NONE,
            pool_text(s->pool,
                      "with equally good hosts and network cores, '%s' gives %s: demand that "
                      "in both contracts, and test it at delivery",
                      case_of(s, 0)->offer->name, times(s, alike)));
    else
        document_answer(
            s->d, "Decides", "", TONE_NONE,
            pool_text(s->pool,
                      "also with equally good hosts and network cores it is %s: measure "
                      "more parts, or compare other qualities than price",
                      times(s, alike)));
}

static void answer_refused(const struct showing *s)
{
    for (size_t i = 0; i < s->terms->n; i++)
        if (!offer_is_given(&s->made->cases[i])) {
            document_answer(
                s->d, "Refused", "", TONE_LOW,
                pool_text(s->pool, "'%s' has no forecast of %.0f nodes: %s", s->terms->all[i].name,
                          s->terms->all[i].nodes,
                          forecast_why(s->pool, &s->made->cases[i].f, &s->made->cases[i].point)));
        }
}

static const char *even_text(const struct showing *s, const struct offer_even *even)
{
    if (!even->found)
        return "none";
    return pool_text(s->pool, "%s (%s to %s)", number(s, even->at),
                     even->low > 0 ? number(s, even->low) : "0",
                     isfinite(even->high) ? number(s, even->high) : "never");
}

static const char *nodes_text(const struct showing *s, const struct offer_nodes *even)
{
    const char *text = even->found
                           ? pool_text(s->pool, "between %.0f and %.0f", even->after, even->at)
                       : even->compared ? "none"
                                        : "not known";

    return even->low > 0
               ? pool_text(s->pool, "%s (undecided from %.0f to %.0f)", text, even->low, even->high)
               : text;
}

/* ---- tables ---- */

static const struct document_column offer_columns[] = {
    {.name = "Offer"},
    {.name = "Nodes", .number = true},
    {.name = "Samples/s", .number = true},
    {.name = "+/-", .place = COLUMN_GOES_FIRST},
    {.name = "Cost", .number = true},
    {.name = "Energy MWh", .number = true, .place = COLUMN_GOES_LAST},
    {.name = "Samples/money", .number = true},
    {.name = "+/-"},
    {.name = "Samples/kWh", .number = true},
};

#define OFFER_COLUMNS (sizeof(offer_columns) / sizeof(*offer_columns))

static void offers_table(const struct showing *s)
{
    struct document_column *columns = pool_alloc(s->pool, OFFER_COLUMNS, sizeof(*columns));

    if (!columns)
        return;
    memcpy(columns, offer_columns, sizeof(offer_columns));
    columns[4].name = pool_text(s->pool, "Cost %s", s->terms->currency);
    columns[6].name = pool_text(s->pool, "Samples/%s", s->terms->currency);
    struct document_table *t = document_table(s->d, columns, OFFER_COLUMNS);

    for (size_t i = 0; i < s->terms->n; i++) {
        const struct offer_case *c = &s->made->cases[i];
        struct offer_bill bill = offer_bill(s->terms, c->offer, c->offer->nodes);
        struct cell *row = document_row(t);

        row[0] = cell_text(c->offer->name);
        row[1] = cell_text(pool_text(s->pool, "%.0f", c->offer->nodes));
        row[4] = cell_text(pool_text(s->pool, "%.0f", bill.money));
        row[5] = cell_text(pool_text(s->pool, "%.1f", bill.joules / OFFER_KWH_J / 1000));
        if (!offer_is_given(c)) {
            row[2] = cell_word("refused", TONE_LOW);
            continue;
        }
        struct offer_value money = offer_value(s->terms, c, OFFER_MONEY);
        double rate = c->point.samples_s, step = c->point.time.step_s;

        row[2] = cell_value(rate, "");
        row[3] = cell_interval(rate, rate * step / c->point.high_s, rate * step / c->point.low_s);
        row[6] = cell_value(money.value, "");
        row[7] = cell_interval(money.value, money.low, money.high);
        row[8] = cell_value(offer_value(s->terms, c, OFFER_ENERGY).value * OFFER_KWH_J, "");
    }
}

static const struct document_column pair_columns[] = {
    {.name = "First"},       {.name = "Second"},
    {.name = "Samples for"}, {.name = "First / second"},
    {.name = "Verdict"},     {.name = "Hosts and cores alike", .place = COLUMN_GOES_FIRST},
};

static const char *verdict(struct offer_value v)
{
    return offer_is_undecided(v) ? "cannot be told apart" : v.value > 1 ? "first" : "second";
}

static void pairs_table(const struct showing *s)
{
    struct document_table *t =
        document_table(s->d, pair_columns, sizeof(pair_columns) / sizeof(*pair_columns));

    for (size_t i = 0; i < s->n; i++)
        for (size_t k = i + 1; k < s->n; k++)
            for (int m = 0; m < OFFER_MEASURES; m++) {
                const struct offer_case *a = case_of(s, i), *b = case_of(s, k);
                enum offer_measure measure = (enum offer_measure)m;
                struct offer_value v = offer_compare(s->terms, a, b, measure, false);
                struct cell *row = document_row(t);

                row[0] = cell_text(a->offer->name);
                row[1] = cell_text(b->offer->name);
                row[2] = cell_text(measure_names[m]);
                row[3] = cell_text(times(s, v));
                row[4] = cell_word(verdict(v), offer_is_undecided(v) ? TONE_LOW : TONE_NONE);
                row[5] = cell_text(times(s, offer_compare(s->terms, a, b, measure, true)));
            }
}

static const struct document_column even_columns[] = {
    {.name = "First"},          {.name = "Second"}, {.name = "Years"},
    {.name = "Price of 1 kWh"}, {.name = "Nodes"},
};

static int even_table(const struct showing *s)
{
    struct document_table *t =
        document_table(s->d, even_columns, sizeof(even_columns) / sizeof(*even_columns));

    for (size_t i = 0; i < s->n; i++)
        for (size_t k = i + 1; k < s->n; k++) {
            const struct offer_case *a = case_of(s, i), *b = case_of(s, k);
            struct offer_even years = offer_break_even(s->terms, a, b, OFFER_BY_YEARS);
            struct offer_even price = offer_break_even(s->terms, a, b, OFFER_BY_ENERGY_PRICE);
            struct offer_nodes nodes;
            struct cell *row = document_row(t);
            int err =
                offer_break_even_nodes(s->terms, a, b, s->made->nodes, s->made->n_nodes, &nodes);

            if (err)
                return err;
            row[0] = cell_text(a->offer->name);
            row[1] = cell_text(b->offer->name);
            row[2] = cell_text(even_text(s, &years));
            row[3] = cell_text(even_text(s, &price));
            row[4] = cell_text(nodes_text(s, &nodes));
        }
    return 0;
}

/* ---- what it stands on ---- */

static const char *power_text(const struct showing *s, const struct offer_case *c)
{
    const struct offer *o = c->offer;
    const struct part_power *power = &c->f.parts->power;

    if (!o->measured)
        return pool_text(s->pool, "%s W a node, as stated", plain(s, o->node_watts));
    return pool_text(
        s->pool, "%s W a node (%s to %s): %s W of %s, measured by %s, and %s W as stated",
        number(s, o->node_watts), number(s, o->node_watts_low), number(s, o->node_watts_high),
        number(s, power->watts),
        c->f.parts->gpu ? "each GPU" : "its processors (and memory, where RAPL counts it)",
        c->f.parts->gpu ? "NVML" : "RAPL", plain(s, o->rest_watts));
}

static void show_offer(const struct showing *s, const struct offer_case *c)
{
    const struct offer *o = c->offer;
    const char *text =
        pool_text(s->pool, "'%s': parts measured in %s", o->name, c->f.parts->machine);

    if (c->f.swap.text)
        text = pool_text(s->pool, "%s; swapped %s", text, forecast_swap_text(s->pool, &c->f.swap));
    text = pool_text(s->pool, "%s; %s%s", text, power_text(s, c),
                     o->idle_watts > 0
                         ? pool_text(s->pool, ", %s W idle, as stated", plain(s, o->idle_watts))
                         : "");
    if (o->switches > 0)
        text = pool_text(s->pool, "%s; %.0f switch%s of %s W, as stated", text, o->switches,
                         o->switches == 1 ? "" : "es", plain(s, o->switch_watts));
    document_item(s->d, text);
    if (!isnan(c->f.job.compute_s))
        document_item(s->d, pool_text(s->pool,
                                      "'%s': forward and backward passes of a step take %s s, as "
                                      "was said",
                                      o->name, plain(s, c->f.job.compute_s)));
    else if (c->f.parts->dtype)
        document_item(s->d, pool_text(s->pool, "'%s': products in %s", o->name, c->f.parts->dtype));
}

static void show_assumptions(const struct showing *s)
{
    const struct offers *o = s->terms;
    bool core_known = true, swapped = false, idle = true, measured = false;

    for (size_t i = 0; i < o->n; i++) {
        core_known &= s->made->cases[i].f.core_known;
        swapped |= s->made->cases[i].f.swap.text != NULL;
        idle &= o->all[i].idle_watts > 0;
        measured |= o->all[i].measured;
    }
    document_heading(s->d, 2, "Assumptions", "assumptions");
    document_item(s->d, pool_text(s->pool,
                                  "machines are used for %s years, and the job runs for %s of the "
                                  "time; nothing is sold at the end",
                                  plain(s, o->years), document_percent(s->pool, 100 * o->use)));
    document_item(s->d,
                  pool_text(s->pool, "energy costs %s %s/kWh all the time; cooling takes %s on top",
                            plain(s, o->energy_price), o->currency,
                            document_percent(s->pool, 100 * o->cooling)));
    document_item(s->d, "money is not worth less later: no interest is computed");
    document_item(s->d,
                  "prices and stated watts are taken as they are: no interval holds their error");
    if (measured)
        document_item(s->d,
                      pool_text(s->pool,
                                "energy counters are right within %.0f %%, and %.1f s of time; "
                                "a device that waits for sums draws from nothing to as much as "
                                "in products",
                                100 * POWER_ACCURACY, POWER_UPDATE_S));
    if (o->use < 1 && !idle)
        document_item(s->d, "a node without idle_power draws nothing while no job runs");
    document_item(s->d, "with other numbers of nodes, switches and other costs are in proportion");
    document_item(s->d,
                  pool_text(s->pool,
                            "the slowest host of each offer computes up to %.0f %% slower for each "
                            "doubling of the nodes, in each offer for itself",
                            100 * FORECAST_SLOW_HOST));
    if (!core_known)
        document_item(s->d, "the network's core of each offer may carry less than its edges "
                            "(--core full)");
    if (swapped)
        document_item(s->d, pool_text(s->pool,
                                      "a swapped part reaches the same share of its limit, within "
                                      "%.0f %%; PCIe of a node carries a swapped link's rate",
                                      100 * FORECAST_SWAPPED));
    document_item(s->d, "docs/forecast.md has each formula, and what a forecast cannot know");
}

/* Of two offers and more that have a forecast. */
static int show_pairs(struct showing *s)
{
    document_heading(s->d, 2, "Which is better", "pairs");
    pairs_table(s);
    document_heading(s->d, 2, "Break-even", "break-even");
    document_paragraph(s->d, "Where both give as many samples for money; in brackets, where they "
                             "cannot be told apart.");
    return even_table(s);
}

int offers_show(struct pool *pool, struct document *d, const struct offers_made *made)
{
    struct showing s = {.pool = pool, .d = d, .made = made, .terms = &made->offers};
    const struct step_job *job = &made->cases[0].f.job;

    document_answer(d, "Question", "", TONE_NONE,
                    pool_text(pool, "which of %zu offers trains %s best, over %s years", s.terms->n,
                              job->model->name, plain(&s, s.terms->years)));
    for (int m = 0; m < OFFER_MEASURES; m++)
        answer_measure(&s, (enum offer_measure)m);
    answer_decides(&s);
    answer_refused(&s);
    rank(&s, OFFER_MONEY);
    offers_table(&s);
    int err = s.n < 2 ? 0 : show_pairs(&s);
    document_heading(d, 2, "Offers", "offers");
    for (size_t i = 0; i < s.terms->n; i++)
        show_offer(&s, &made->cases[i]);
    show_assumptions(&s);
    return err;
}

/* ---- JSON ---- */

static void put(json_t *o, const char *name, double value)
{
    if (isfinite(value))
        json_object_set_new(o, name, json_real(value));
}

static json_t *value_json(struct offer_value v)
{
    json_t *o = json_object();

    put(o, "value", v.value);
    put(o, "low", v.low);
    put(o, "high", v.high);
    return o;
}

static json_t *offer_json(const struct offers *terms, const struct offer_case *c)
{
    struct offer_bill bill = offer_bill(terms, c->offer, c->offer->nodes);
    json_t *o = json_object();

    json_object_set_new(o, "name", json_string(c->offer->name));
    put(o, "nodes", c->offer->nodes);
    put(o, "cost", bill.money);
    put(o, "energy_cost", bill.energy_money);
    put(o, "energy_j", bill.joules);
    if (c->f.swap.text)
        json_object_set_new(o, "swapped", json_string(c->f.swap.text));
    if (!offer_is_given(c))
        return o;
    put(o, "step_s", c->point.time.step_s);
    put(o, "step_low_s", c->point.low_s);
    put(o, "step_high_s", c->point.high_s);
    put(o, "samples_per_s", c->point.samples_s);
    json_object_set_new(o, "samples_per_money", value_json(offer_value(terms, c, OFFER_MONEY)));
    json_object_set_new(o, "samples_per_joule", value_json(offer_value(terms, c, OFFER_ENERGY)));
    return o;
}

static json_t *even_json(struct offer_even even)
{
    json_t *o = json_object();

    if (!even.found)
        return o;
    put(o, "at", even.at);
    put(o, "low", even.low);
    put(o, "high", even.high);
    return o;
}

static json_t *nodes_json(const struct offers_made *made, const struct offer_case *a,
                          const struct offer_case *b)
{
    json_t *o = json_object();
    struct offer_nodes nodes;

    if (offer_break_even_nodes(&made->offers, a, b, made->nodes, made->n_nodes, &nodes))
        return o;
    if (nodes.found) {
        put(o, "after", nodes.after);
        put(o, "at", nodes.at);
    }
    if (nodes.low > 0) {
        put(o, "undecided_from", nodes.low);
        put(o, "undecided_to", nodes.high);
    }
    return o;
}

static json_t *pair_json(const struct offers_made *made, const struct offer_case *a,
                         const struct offer_case *b)
{
    const struct offers *terms = &made->offers;
    json_t *o = json_object();

    json_object_set_new(o, "first", json_string(a->offer->name));
    json_object_set_new(o, "second", json_string(b->offer->name));
    for (int m = 0; m < OFFER_MEASURES; m++) {
        struct offer_value v = offer_compare(terms, a, b, (enum offer_measure)m, false);
        json_t *ratio = value_json(v);

        if (!isnan(v.value))
            json_object_set_new(ratio, "verdict", json_string(verdict(v)));
        json_object_set_new(ratio, "alike",
                            value_json(offer_compare(terms, a, b, (enum offer_measure)m, true)));
        json_object_set_new(o, measure_names[m], ratio);
    }
    json_object_set_new(o, "even_years", even_json(offer_break_even(terms, a, b, OFFER_BY_YEARS)));
    json_object_set_new(o, "even_energy_price",
                        even_json(offer_break_even(terms, a, b, OFFER_BY_ENERGY_PRICE)));
    json_object_set_new(o, "even_nodes", nodes_json(made, a, b));
    return o;
}

int offers_print_json(FILE *out, const struct offers_made *made)
{
    json_t *all = json_object(), *offers = json_array(), *pairs = json_array();
    const struct step_job *job = &made->cases[0].f.job;

    json_object_set_new(all, "model", json_string(job->model->name));
    json_object_set_new(all, "unit", json_string(job->model->unit));
    json_object_set_new(all, "currency", json_string(made->offers.currency));
    put(all, "confidence", 0.95);
    for (size_t i = 0; i < made->offers.n; i++) {
        json_array_append_new(offers, offer_json(&made->offers, &made->cases[i]));
        for (size_t k = i + 1; k < made->offers.n; k++)
            json_array_append_new(pairs, pair_json(made, &made->cases[i], &made->cases[k]));
    }
    json_object_set_new(all, "offers", offers);
    json_object_set_new(all, "pairs", pairs);
    int err = json_dumpf(all, out, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    json_decref(all);
    return err || fputc('\n', out) == EOF ? -EIO : 0;
}
