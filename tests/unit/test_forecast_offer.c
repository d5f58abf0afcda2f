/* SPDX-License-Identifier: Apache-2.0 */
/* Offers: the example of docs/forecast.md by hand, intervals by pairs against parts that are changed by hand, break-even against
 * its closed form. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/forecast/offer.h"

#define NODES 8

/* ---- a cluster of eight nodes: a product of 50 ms, and a ring of 2 to 8 ranks ---- */

static const struct bench_terms ring = {
    .where = "", .messages = "2 * (n - 1)", .bytes = "2 * (n - 1) / n", .bus = "2 * (n - 1) / n"};
static struct model_layer layer = {.m = {1000, 0},
                                   .n = {1000, 0},
                                   .k = {1000, 0},
                                   .count = 1,
                                   .backward = 2,
                                   .parameters = 4000000};
static const struct model model = {.name = "one", .layers = &layer, .n_layers = 1};

struct world {
    struct part_product products[3];
    struct fit_point points[9];
    struct parts parts;
};

static void world_make(struct world *w, double flops, double gbytes)
{
    static const double sizes[] = {1e6, 16e6, 64e6}, ranks[] = {2, 4, 8};

    *w = (struct world){.parts = {.jitter = 0, .stream = NAN, .call_s = NAN, .hidden = 0}};
    for (size_t i = 0; i < 3; i++)
        w->products[i] = (struct part_product){i == 0 ? 500 : 1000,
                                               i == 1 ? 500 : 1000,
                                               i == 2 ? 500 : 1000,
                                               flops * (1 + 0.04 * ((double)i - 1)),
                                               NAN,
                                               0,
                                               NAN,
                                               NAN};
    for (size_t i = 0; i < 9; i++) {
        double n = ranks[i / 3], bytes = sizes[i % 3];

        w->points[i] = (struct fit_point){
            n, bytes, 2 * (n - 1) * 20 + 2 * (n - 1) / n * bytes / gbytes * 1e-3};
    }
    w->parts.products = w->products;
    w->parts.n_products = 3;
    w->parts.laws[JOB_SUM] = (struct part_law){
        .law = {.terms = &ring, .points = w->points, .n = 9}, .nodes = 8, .per_node = 1};
    parts_product_spread(&w->parts);
    w->parts.jitter = 0;
}

static const struct offer stated[2] = {
    {.name = "A",
     .compute_s = NAN,
     .nodes = NODES,
     .node_price = 20000,
     .node_watts = 1000,
     .switches = 1,
     .switch_price = 4000,
     .switch_watts = 200},
    {.name = "B",
     .compute_s = NAN,
     .nodes = NODES,
     .node_price = 20000,
     .node_watts = 1000,
     .switches = 1,
     .switch_price = 14000,
     .switch_watts = 400},
};

static const struct offers terms = {
    .currency = "EUR", .energy_price = 0.25, .years = 4, .use = 0.8, .cooling = 0.3};

static struct offer_case case_of(const struct world *w, const struct offer *offer, double network)
{
    struct offer_case c = {.offer = offer,
                           .f = {.parts = &w->parts,
                                 .per_node = 1,
                                 .swap = {.times = {network}},
                                 .job = {.model = &model,
                                         .batch = 1,
                                         .tp = 1,
                                         .pp = 1,
                                         .ep = 1,
                                         .micro = 1,
                                         .element_bytes = 4,
                                         .overlap = true,
                                         .compute_s = NAN}}};

    assert_int_equal(forecast_point(&c.f, offer->nodes, &c.point), 0);
    c.point.nodes = offer->nodes;
    return c;
}

/* docs/forecast.md: 8 nodes of 1 kW for 80 % of 35064 hours, 30 % on top. */
static void bills_by_hand(void **state)
{
    struct offer_bill a = offer_bill(&terms, &stated[0], 8), b = offer_bill(&terms, &stated[1], 8);
    struct offer idle = stated[0];

    (void)state;
    assert_float_equal(a.joules / 3.6e6, 300849.12, 1e-6);
    assert_float_equal(a.energy_money, 75212.28, 1e-6);
    assert_float_equal(a.money, 239212.28, 1e-6);
    assert_float_equal(b.joules / 3.6e6, 309965.76, 1e-6);
    assert_float_equal(b.money, 251491.44, 1e-6);
    assert_float_equal(a.working_s, 100984320, 1e-6);
    idle.idle_watts = 500; /* 8 x 0.5 kW x 7012.8 h x 1.3 more */
    idle.once = 1000;
    idle.yearly = 500;
    assert_float_equal(offer_bill(&terms, &idle, 8).joules / 3.6e6, 300849.12 + 36466.56, 1e-6);
    assert_float_equal(offer_bill(&terms, &idle, 8).money,
                       239212.28 + 36466.56 * 0.25 + 1000 + 4 * 500, 1e-6);
    assert_float_equal(offer_bill(&terms, &idle, 24).money,
                       3 * (239212.28 + 36466.56 * 0.25 + 1000 + 4 * 500), 1e-6);
    /* twice the nodes: two switches; nine nodes: also two */
    assert_float_equal(offer_bill(&terms, &stated[0], 16).money, 2 * 239212.28, 1e-6);
    assert_float_equal(
        offer_bill(&terms, &stated[0], 9).money,
        9 * (20000 + 0.8 * 1.3 * 35064 * 0.25) + 2 * (4000 + 0.2 * 1.3 * 35064 * 0.25), 1e-6);
}

/* Products 10 times as slow in both, and so on: the step again, from parts that are changed by hand. */
static double gain_of(double product_a, double product_b, double network)
{
    struct world a, b;

    world_make(&a, 120e9 * exp(-product_a), 1);
    world_make(&b, 120e9 * exp(-product_b), 1);
    struct offer_case x = case_of(&a, &stated[0], 0), y = case_of(&b, &stated[1], 4 * network);
    return log(y.point.samples_s / x.point.samples_s);
}

static double squares(double x, double y, bool up)
{
    double d = up ? fmax(0, fmax(x, y)) : fmin(0, fmin(x, y));

    return d * d;
}

/* The law's points lie on a line but for rounding, so that the rest of the interval is of products,
 * which both share, of hosts, which they do not, and of the network that is swapped in. */
static void what_is_shared_cancels(void **state)
{
    struct world w;

    (void)state;
    world_make(&w, 120e9, 1);
    struct offer_case a = case_of(&w, &stated[0], 0), b = case_of(&w, &stated[1], 4);
    b.f.core_known = true; /* of the network that is swapped in */
    assert_int_equal(forecast_point(&b.f, 8, &b.point), 0);
    b.point.nodes = 8;
    double base = gain_of(0, 0, 1), off = parts_product_off(&w.parts, 1000, 1000, 1000);
    double money = log(239212.28 / 251491.44);
    double host = 0.07 * 3, slowest = 0.01 * sqrt(2 * log(8));
    double down = 0, up = 0;

    assert_true(off > 0.05);
    for (int i = 0; i < 2; i++) {
        double product[2] = {gain_of(off, off, 1) - base, gain_of(-off, -off, 1) - base};
        double swapped[2] = {gain_of(0, 0, exp(0.15)) - base, gain_of(0, 0, exp(-0.15)) - base};
        double *sum = i ? &up : &down;

        *sum = squares(product[0], product[1], i) + squares(swapped[0], swapped[1], i);
        *sum += i ? pow(gain_of(host, 0, 1) - base, 2) + pow(gain_of(slowest, 0, 1) - base, 2)
                  : pow(gain_of(0, host, 1) - base, 2) + pow(gain_of(0, slowest, 1) - base, 2);
    }
    struct offer_value v = offer_compare(&terms, &b, &a, OFFER_MONEY, false);
    assert_float_equal(log(v.value), base + money, 1e-9);
    assert_float_equal(log(v.low / v.value), -sqrt(down), 1e-4);
    assert_float_equal(log(v.high / v.value), sqrt(up), 1e-4);
    /* hosts alike: those cancel, too */
    down = squares(gain_of(off, off, 1) - base, gain_of(-off, -off, 1) - base, false) +
           squares(gain_of(0, 0, exp(0.15)) - base, gain_of(0, 0, exp(-0.15)) - base, false) +
           squares(gain_of(host, host, 1) - base, 0, false) +
           squares(gain_of(slowest, slowest, 1) - base, 0, false);
    v = offer_compare(&terms, &b, &a, OFFER_MONEY, true);
    assert_float_equal(log(v.low / v.value), -sqrt(down), 1e-4);
    /* energy: the same ratio of samples, other bills */
    v = offer_compare(&terms, &b, &a, OFFER_ENERGY, false);
    assert_float_equal(log(v.value), base + log(300849.12 / 309965.76), 1e-9);
}

/* Figures that were measured twice are two measurements, though nearly equal. */
static void what_is_measured_twice_does_not_cancel(void **state)
{
    struct world w, other;

    (void)state;
    world_make(&w, 120e9, 1);
    world_make(&other, 120.0001e9, 1);
    struct offer_case a = case_of(&w, &stated[0], 0), same = case_of(&w, &stated[1], 0),
                      twice = case_of(&other, &stated[1], 0);
    struct offer_value one = offer_compare(&terms, &same, &a, OFFER_MONEY, true),
                       two = offer_compare(&terms, &twice, &a, OFFER_MONEY, true);
    double off = log(a.point.ends_s[SOURCE_PRODUCT][1] / a.point.time.step_s);

    assert_float_equal(one.low, one.value, 1e-6 * one.value);
    assert_float_equal(one.high, one.value, 1e-6 * one.value);
    assert_false(offer_is_undecided(one)); /* the price alone tells them apart */
    assert_true(log(two.high / two.value) > 1.2 * off);
    assert_true(offer_is_undecided(two));
}

/* Two that swap in the same network may both fall short of its limit; another network is another's
 * matter. */
static void the_same_swap_is_shared(void **state)
{
    struct world w;

    (void)state;
    world_make(&w, 120e9, 1);
    struct offer_case a = case_of(&w, &stated[0], 4), same = case_of(&w, &stated[1], 4),
                      other = case_of(&w, &stated[1], 8);
    struct offer_value v = offer_compare(&terms, &a, &same, OFFER_MONEY, true);
    double off = log(a.point.ends_s[SOURCE_SWAP_NETWORK][1] / a.point.time.step_s);
    assert_true(off > 0.01);
    assert_float_equal(v.high, v.value, 1e-6 * v.value);
    assert_false(offer_is_undecided(v)); /* A is the cheaper one */
    assert_false(offer_is_undecided(offer_compare(&terms, &same, &a, OFFER_MONEY, true)));
    v = offer_compare(&terms, &a, &other, OFFER_MONEY, true);
    assert_true(log(v.value / v.low) > off);
}

/* Beyond what was measured each network has a core of its own, unless it is known. */
static void each_network_has_its_core(void **state)
{
    struct world w;
    struct offer far[2] = {stated[0], stated[1]};
    struct offer_value known, unknown;

    (void)state;
    world_make(&w, 120e9, 1);
    far[0].nodes = far[1].nodes = 16;
    struct offer_case a = case_of(&w, &far[0], 0), b = case_of(&w, &far[1], 0);
    unknown = offer_compare(&terms, &b, &a, OFFER_MONEY, false);
    a.f.core_known = b.f.core_known = true;
    assert_int_equal(forecast_point(&a.f, 16, &a.point), 0);
    assert_int_equal(forecast_point(&b.f, 16, &b.point), 0);
    a.point.nodes = b.point.nodes = 16;
    known = offer_compare(&terms, &b, &a, OFFER_MONEY, false);
    assert_true(log(unknown.high / unknown.value) > log(known.high / known.value) + 0.01);
    /* that of another network also at measured ranks */
    struct offer_case swapped = case_of(&w, &stated[1], 4), measured = case_of(&w, &stated[0], 0);
    unknown = offer_compare(&terms, &swapped, &measured, OFFER_MONEY, false);
    swapped.f.core_known = measured.f.core_known = true;
    assert_int_equal(forecast_point(&swapped.f, 8, &swapped.point), 0);
    swapped.point.nodes = 8;
    known = offer_compare(&terms, &swapped, &measured, OFFER_MONEY, false);
    assert_true(log(unknown.value / unknown.low) > log(known.value / known.low) + 0.01);
}

/* rho = samples of A / B. (C_A - rho C_B) / (rho E_B - E_A), with what is paid once and in a year. */
static void break_even_is_where_the_closed_form_has_it(void **state)
{
    struct world w;
    const double once[2] = {164000, 174000};
    const double year_kwh[2] = {300849.12 / 4, 309965.76 / 4};

    (void)state;
    world_make(&w, 120e9, 1);
    /* a network of the same speed, whose nodes draw half: dear at first, cheap later */
    struct offer frugal = stated[1];
    frugal.node_watts = 500;
    struct offer_case a = case_of(&w, &stated[0], 0), b = case_of(&w, &frugal, 0);
    double kwh = (8 * 0.5 * 0.8 + 0.4) * 1.3 * 8766;
    struct offer_even years = offer_break_even(&terms, &b, &a, OFFER_BY_YEARS);
    double at = (once[1] - once[0]) / (0.25 * (year_kwh[0] - kwh));
    assert_true(years.found);
    assert_float_equal(years.at, at, 1e-6);
    /* the ratio is 1 at the ends of its own interval there */
    struct offer_even price = offer_break_even(&terms, &b, &a, OFFER_BY_ENERGY_PRICE);
    assert_true(price.found);
    assert_float_equal(price.at, (once[1] - once[0]) / (4 * (year_kwh[0] - kwh)), 1e-9);
    assert_true(years.low < years.at && years.at < years.high);
    struct offer_value v = offer_compare(&terms, &b, &a, OFFER_MONEY, false);
    double half_up = log(v.high / v.value), half_down = log(v.value / v.low);
    /* rho = exp(-half_up): B is better by as much */
    double rho = exp(-half_up);
    double from = (once[0] - rho * once[1]) / (0.25 * (rho * kwh - year_kwh[0]));
    assert_float_equal(years.low, from > 0 ? from : 0, 1e-6 + 1e-6 * fabs(from));
    rho = exp(half_down);
    double to = (once[0] - rho * once[1]) / (0.25 * (rho * kwh - year_kwh[0]));
    if (to > 0 && to < OFFER_YEARS_MAX)
        assert_float_equal(years.high, to, 1e-6 * to);
    else
        assert_true(isinf(years.high));
    /* the same the other way round */
    struct offer_even turned = offer_break_even(&terms, &a, &b, OFFER_BY_YEARS);
    assert_float_equal(turned.at, years.at, 1e-6);
    assert_float_equal(turned.low, years.low, 1e-6);
    /* dearer in all: never */
    struct offer_case dear = case_of(&w, &stated[1], 0);
    assert_false(offer_break_even(&terms, &dear, &a, OFFER_BY_YEARS).found);
    assert_false(offer_break_even(&terms, &dear, &a, OFFER_BY_ENERGY_PRICE).found);
}

/* On few nodes the faster network is a waste; on more it pays. The same is computed here from
 * forecasts at each number. */
static void break_even_by_nodes(void **state)
{
    static const double nodes[] = {1, 2, 4, 8};
    struct world w;
    struct offer_nodes even;
    double before = 0, after = 0, at = 0;

    (void)state;
    world_make(&w, 120e9, 1);
    struct offer fast = stated[1];
    fast.node_price = 24000;
    struct offer_case a = case_of(&w, &stated[0], 0), b = case_of(&w, &fast, 10);
    for (size_t i = 0; i < 4; i++) {
        struct forecast_point p, q;
        double n = nodes[i], hours = 35064;

        assert_int_equal(forecast_point(&a.f, n, &p), 0);
        assert_int_equal(forecast_point(&b.f, n, &q), 0);
        double cost_a = n * 20000 + 4000 + (n * .8 + .2) * 1.3 * hours * .25;
        double cost_b = n * 24000 + 14000 + (n * .8 + .4) * 1.3 * hours * .25;
        double gain = log(q.samples_s / cost_b / (p.samples_s / cost_a));
        if (i && gain * before < 0) {
            after = nodes[i - 1];
            at = n;
        }
        before = gain;
    }
    assert_true(at > 0); /* the scene has one */
    assert_int_equal(offer_break_even_nodes(&terms, &b, &a, nodes, 4, &even), 0);
    assert_true(even.found);
    assert_true(even.after == after && even.at == at);
    assert_true(even.low > 0 && even.low <= even.high);
    assert_int_equal(offer_break_even_nodes(&terms, &b, &a, nodes, 1, &even), 0);
    assert_false(even.found || even.compared);
}

/* Of a product of 400 W over 10 s the counter is right within 5.1 %, of 440 W over 1 s within 11.2 %; the third was too short. */
static void power_has_the_error_of_its_counter(void **state)
{
    struct world w;

    (void)state;
    world_make(&w, 120e9, 1);
    assert_true(isnan(parts_power(&w.parts).watts));
    w.products[0].watts = 400;
    w.products[0].watts_s = 10;
    w.products[1].watts = 440;
    w.products[1].watts_s = 1;
    w.products[2].watts = 700;
    w.products[2].watts_s = 0.1;
    struct part_power p = parts_power(&w.parts);
    assert_float_equal(p.watts, 420, 1e-9);
    assert_float_equal(p.low, 400 * (1 - 0.0509902), 1e-3);
    assert_float_equal(p.high, 440 * (1 + 0.1118034), 1e-3);
}

/* 8 nodes of 1000 W, 800 to 1150 W: 300849.12, 242502.624 and 344608.992 kWh. */
static void measured_power_is_in_the_interval(void **state)
{
    struct world w, other;
    struct offer measured = stated[0], dear = stated[0];

    (void)state;
    world_make(&w, 120e9, 1);
    measured.measured = true;
    measured.node_watts_low = 800;
    measured.node_watts_high = 1150;
    dear = measured;
    dear.node_price = 25000;
    struct offer_case plain = case_of(&w, &stated[0], 0), a = case_of(&w, &measured, 0),
                      b = case_of(&w, &dear, 0);
    double down = log(plain.point.high_s / plain.point.time.step_s),
           up = log(plain.point.time.step_s / plain.point.low_s);
    struct offer_value v = offer_value(&terms, &a, OFFER_ENERGY);
    assert_float_equal(log(v.value / v.low), hypot(down, log(344608.992 / 300849.12)), 1e-9);
    assert_float_equal(log(v.high / v.value), hypot(up, log(300849.12 / 242502.624)), 1e-9);
    v = offer_value(&terms, &a, OFFER_MONEY);
    assert_float_equal(log(v.value / v.low),
                       hypot(down, log((164000 + 344608.992 / 4) / 239212.28)), 1e-9);
    /* the same sensor, the same machines: the energy of both is off by as much */
    w.parts.power = (struct part_power){100, 80, 115};
    v = offer_compare(&terms, &a, &b, OFFER_ENERGY, true);
    assert_float_equal(v.value, 1, 1e-12);
    assert_float_equal(v.low, 1, 1e-9);
    assert_float_equal(v.high, 1, 1e-9);
    /* measured on other machines: not */
    other = w;
    other.parts.products = other.products;
    other.parts.laws[JOB_SUM].law.points = other.points;
    other.parts.power.watts = 101;
    b = case_of(&other, &dear, 0);
    v = offer_compare(&terms, &a, &b, OFFER_ENERGY, true);
    assert_float_equal(log(v.high / v.value),
                       hypot(log(300849.12 / 242502.624), log(344608.992 / 300849.12)), 1e-6);
}

/* ---- the file ---- */

static const char good[] = "currency: EUR\nenergy_price: 0.25 EUR/kWh\ntime: 48 months\nuse: 80 %\n"
                           "cooling: 30 %\noffers:\n"
                           "  - name: A\n    nodes: 8\n    node_price: 20000 EUR\n"
                           "    node_power: 1 kW\n    switches: 1\n    switch_price: 4000 EUR\n"
                           "    switch_power: 200W\n"
                           "  - name: B\n    nodes: 8\n    node_price: 20000 EUR\n"
                           "    node_power: 1000 W\n    swap: network=1:4\n    once: 5 EUR\n"
                           "    yearly: 7 EUR/year\n    runs: [one, two]\n    compute: 60 ms\n";

static int read_text(struct pool *pool, const char *text, struct offers *offers, char *error,
                     size_t len)
{
    char path[] = "/tmp/offers-XXXXXX";
    int fd = mkstemp(path);
    FILE *out = fdopen(fd, "w");

    assert_non_null(out);
    fputs(text, out);
    fclose(out);
    int err = offers_read(pool, path, offers, error, len);
    unlink(path);
    return err;
}

static void a_file_is_read(void **state)
{
    struct pool pool = {0};
    struct offers o;
    char error[400] = "";

    (void)state;
    assert_int_equal(read_text(&pool, good, &o, error, sizeof(error)), 0);
    assert_int_equal(o.n, 2);
    assert_float_equal(o.years, 4, 1e-12);
    assert_float_equal(offer_bill(&o, &o.all[0], 8).money, 239212.28, 1e-6);
    assert_string_equal(o.all[1].swap, "network=1:4");
    assert_string_equal(o.all[1].runs[1], "two");
    assert_float_equal(o.all[1].compute_s, 0.06, 1e-12);
    assert_true(o.all[1].once == 5 && o.all[1].yearly == 7);
    pool_release(&pool);
}

/* The text with `from` replaced by `to`, as often as it stands there once. */
static void refused(const char *from, const char *to, const char *line, const char *why)
{
    char text[2048], error[400] = "";
    const char *at = strstr(good, from);
    struct pool pool = {0};
    struct offers o;

    assert_non_null(at);
    snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - good), good, to, at + strlen(from));
    int err = read_text(&pool, text, &o, error, sizeof(error));
    if (err != -EINVAL || !strstr(error, line) || !strstr(error, why))
        fail_msg("'%s' gave %d '%s'", to, err, error);
    pool_release(&pool);
}

static void a_wrong_file_is_refused_with_its_line(void **state)
{
    (void)state;
    refused("use: 80 %", "usage: 80 %", ":4: ", "use");
    refused("nodes: 8", "nodes: 0", ":8: ", "nodes");
    refused("node_price: 20000 EUR", "node_price: -20000 EUR", ":9: ", "below 0");
    refused("node_price: 20000 EUR", "node_price: 20000", ":9: ", "lacks its unit: it is in EUR");
    refused("node_price: 20000 EUR", "node_price: 20000 USD", ":9: ", "has another unit");
    refused("node_price: 20000 EUR", "node_price: dear", ":9: ", "no number with a unit");
    refused("node_power: 1 kW", "node_power: 0 kW", ":7: ", "draws no power");
    refused("node_power: 1 kW", "node_power: 1 kWh", ":10: ", "in W or kW");
    refused("    node_power: 1 kW\n", "", ":7: ", "node_power");
    refused("node_power: 1 kW", "node_power: measured", ":7: ", "rest_power");
    refused("node_power: 1 kW", "node_power: 1 kW\n    rest_power: 1 W", ":11: ", "measured");
    refused("energy_price: 0.25 EUR/kWh", "energy_price: 0.25 EUR", ":2: ", "EUR/kWh");
    refused("energy_price: 0.25 EUR/kWh", "energy_price: -0.25 EUR/kWh", ":2: ", "below 0");
    refused("time: 48 months", "time: 4", ":3: ", "years or year or months");
    refused("time: 48 months", "time: 0 years", ":3: ", "no time");
    refused("use: 80 %", "use: 180 %", ":4: ", "more than can be true");
    refused("name: B", "name: A", ":14: ", "two offers are called 'A'");
    refused("switches: 1", "switches: 0", ":7: ", "no number of them");
    refused("    switch_price: 4000 EUR\n", "", ":7: ", "switch_price");
    refused("yearly: 7 EUR/year", "yearly: 7 EUR", ":20: ", "EUR/year");
    refused("node_price: 20000 EUR", "node_price: 1e400 EUR", ":9: ", "more than can be true");
    refused("node_price: 20000 EUR", "node_price: nan EUR", ":9: ", "no number");
    refused("currency: EUR", "currency: euros a day", ":1: ", "one word");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bills_by_hand),
        cmocka_unit_test(what_is_shared_cancels),
        cmocka_unit_test(what_is_measured_twice_does_not_cancel),
        cmocka_unit_test(the_same_swap_is_shared),
        cmocka_unit_test(each_network_has_its_core),
        cmocka_unit_test(break_even_is_where_the_closed_form_has_it),
        cmocka_unit_test(break_even_by_nodes),
        cmocka_unit_test(power_has_the_error_of_its_counter),
        cmocka_unit_test(measured_power_is_in_the_interval),
        cmocka_unit_test(a_file_is_read),
        cmocka_unit_test(a_wrong_file_is_refused_with_its_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
