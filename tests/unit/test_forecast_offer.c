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
        w->products[i] = (struct part_product){
            1000, 1000, 1000, flops * (1 + 0.04 * ((double)i - 1)), NAN, 0, NAN, NAN};
    for (size_t i = 0; i < 9; i++) {
        double n = ranks[i / 3], bytes = sizes[i % 3];

        w->points[i] = (struct fit_point){
            n, bytes, 2 * (n - 1) * 20 + 2 * (n - 1) / n * bytes / gbytes * 1e-3};
    }
    w->products[0].m = w->products[1].n = w->products[2].k = 500;
    w->parts.products = w->products;
    w->parts.n_products = 3;
    w->parts.laws[JOB_SUM] = (struct part_law){
        .law = {.terms = &ring, .points = w->points, .n = 9}, .nodes = 8, .per_node = 1};
    parts_product_spread(&w->parts);
    w->parts.jitter = 0;
}

#define OFFER(called, price, watts)                                                                \
    {                                                                                              \
        .name = called, .compute_s = NAN, .nodes = NODES, .node_price = 20000, .node_watts = 1000, \
        .switches = 1, .switch_price = price, .switch_watts = watts                                \
    }
static const struct offer stated[2] = {OFFER("A", 4000, 200), OFFER("B", 14000, 400)};

static const struct offers terms = {
    .currency = "EUR", .energy_price = 0.25, .years = 4, .use = 0.8, .cooling = 0.3};

static struct offer_case case_of(const struct world *w, const struct offer *offer, double network)
{
    struct offer_case c = {.offer = offer,
                           .f = {.parts = &w->parts,
                                 .per_node = 1,
                                 .swap = {.times = {network}},
                                 .job = {.model = &model}}};
    struct step_job *j = &c.f.job;

    j->batch = j->tp = j->pp = j->ep = j->micro = 1;
    j->element_bytes = 4;
    j->overlap = true;
    j->compute_s = NAN;
    assert_int_equal(forecast_point(&c.f, offer->nodes, &c.point), 0);
    c.point.nodes = offer->nodes;
    return c;
}

/* docs/forecast.md: 8 nodes of 1 kW for 80 % of 35064 hours, 30 % on top; tests/cli/forecast.bats has what is paid once and in a year. */
static void bills_by_hand(void **state)
{
    (void)state;
    struct offer_bill a = offer_bill(&terms, &stated[0], 8);
    double node = 20000 + 0.8 * 1.3 * 35064 * 0.25, network = 4000 + 0.2 * 1.3 * 35064 * 0.25;
    assert_float_equal(a.joules / 3.6e6, 300849.12, 1e-6);
    assert_float_equal(a.energy_money, 75212.28, 1e-6);
    assert_float_equal(a.money, 239212.28, 1e-6);
    assert_float_equal(a.working_s, 100984320, 1e-6);
    /* twice the nodes: two switches; nine nodes: also two */
    assert_float_equal(offer_bill(&terms, &stated[0], 16).money, 16 * node + 2 * network, 1e-6);
    assert_float_equal(offer_bill(&terms, &stated[0], 9).money, 9 * node + 2 * network, 1e-6);
}

/* What both have, products or a swapped network, cancels; what was measured twice, or is another network, does not. */
static void what_is_shared_cancels(void **state)
{
    (void)state;
    struct world w, other;
    world_make(&w, 120e9, 1);
    world_make(&other, 120.0001e9, 1);
    for (int swapped = 0; swapped < 2; swapped++) {
        struct offer_case a = case_of(&w, &stated[0], 4 * swapped),
                          same = case_of(&w, &stated[1], 4 * swapped),
                          twice =
                              swapped ? case_of(&w, &stated[1], 8) : case_of(&other, &stated[1], 0);
        struct offer_value one = offer_compare(&terms, &same, &a, OFFER_MONEY, true),
                           two = offer_compare(&terms, &twice, &a, OFFER_MONEY, true);
        double off = log(a.point.ends_s[swapped ? SOURCE_SWAP_NETWORK : SOURCE_PRODUCT][1] /
                         a.point.time.step_s);

        assert_true(off > 0.01);
        assert_float_equal(one.value, 239212.28 / 251491.44, 1e-9);
        assert_float_equal(one.low, one.value, 1e-6 * one.value);
        assert_float_equal(one.high, one.value, 1e-6 * one.value);
        assert_false(offer_is_undecided(one)); /* the price alone tells them apart */
        assert_true(log(two.high / two.value) > (swapped ? 1 : 1.2) * off);
        assert_true(swapped || offer_is_undecided(two));
        one = offer_compare(&terms, &same, &a, OFFER_ENERGY, true);
        assert_float_equal(one.value, 300849.12 / 309965.76, 1e-9);
    }
}

/* rho = samples of A / B. (C_A - rho C_B) / (rho E_B - E_A), with what is paid once and in a year. */
static void break_even_is_where_the_closed_form_has_it(void **state)
{
    (void)state;
    struct world w;
    const double once[2] = {164000, 174000};
    const double year_kwh[2] = {300849.12 / 4, 309965.76 / 4};
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
    struct offer_even price = offer_break_even(&terms, &b, &a, OFFER_BY_ENERGY_PRICE);
    assert_true(price.found);
    assert_float_equal(price.at, (once[1] - once[0]) / (4 * (year_kwh[0] - kwh)), 1e-9);
    assert_true(years.low < years.at && years.at < years.high);
    struct offer_value v = offer_compare(&terms, &b, &a, OFFER_MONEY, false);
    double half_up = log(v.high / v.value), half_down = log(v.value / v.low);
    double rho = exp(-half_up);
    double from = (once[0] - rho * once[1]) / (0.25 * (rho * kwh - year_kwh[0]));
    assert_float_equal(years.low, from > 0 ? from : 0, 1e-6 + 1e-6 * fabs(from));
    rho = exp(half_down);
    double to = (once[0] - rho * once[1]) / (0.25 * (rho * kwh - year_kwh[0]));
    assert_float_equal(years.high, to > 0 && to < OFFER_YEARS_MAX ? to : INFINITY, 1e-6 * to);
    /* dearer in all: never */
    struct offer_case dear = case_of(&w, &stated[1], 0);
    assert_false(offer_break_even(&terms, &dear, &a, OFFER_BY_YEARS).found);
    assert_false(offer_break_even(&terms, &dear, &a, OFFER_BY_ENERGY_PRICE).found);
}

static const char good[] = "currency: EUR\nenergy_price: 0.25 EUR/kWh\ntime: 48 months\nuse: 80 %\n"
                           "cooling: 30 %\noffers:\n"
                           "  - name: A\n    nodes: 8\n    node_price: 20000 EUR\n"
                           "    node_power: 1 kW\n    switches: 1\n    switch_price: 4000 EUR\n"
                           "    switch_power: 200W\n"
                           "  - name: B\n    nodes: 8\n    node_price: 20000 EUR\n"
                           "    node_power: 1000 W\n    swap: network=1:4\n    once: 5 EUR\n"
                           "    yearly: 7 EUR/year\n    runs: [one, two]\n    compute: 60 ms\n";

/* Reads the file with one text in place of another; every refusal names the line, and the key or the unit. */
static void a_file_is_read_or_refused(void **state)
{
    (void)state;
    static const char *const cases[][4] = {
        {"use: 80 %", "usage: 80 %", ":4: ", "use"},
        {"use: 80 %", "use: 180 %", ":4: ", "180 %"},
        {"nodes: 8", "nodes: 0", ":8: ", "nodes"},
        {"node_price: 20000 EUR", "node_price: -20000 EUR", ":9: ", "-20000"},
        {"node_price: 20000 EUR", "node_price: 20000 USD", ":9: ", "USD"},
        {"node_price: 20000 EUR", "node_price: 1e400 EUR", ":9: ", "1e400"},
        {"node_price: 20000 EUR", "node_price: nan EUR", ":9: ", "nan"},
        {"node_power: 1 kW", "node_power: 0 kW", ":7: ", "power"},
        {"node_power: 1 kW", "node_power: 1 kWh", ":10: ", "kW"},
        {"    node_power: 1 kW\n", "", ":7: ", "node_power"},
        {"node_power: 1 kW", "node_power: measured", ":7: ", "rest_power"},
        {"node_power: 1 kW", "node_power: 1 kW\n    rest_power: 1 W", ":11: ", "measured"},
        {"energy_price: 0.25 EUR/kWh", "energy_price: 0.25 EUR", ":2: ", "EUR/kWh"},
        {"time: 48 months", "time: 0 years", ":3: ", "time"},
        {"name: B", "name: A", ":14: ", "'A'"},
        {"switches: 1", "switches: 0", ":7: ", "switch"},
        {"    switch_price: 4000 EUR\n", "", ":7: ", "switch_price"},
        {"yearly: 7 EUR/year", "yearly: 7 EUR", ":20: ", "EUR/year"},
        {"currency: EUR", "currency: euros a day", ":1: ", "currency"},
        {"", ""}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const char *at = strstr(good, cases[i][0]);
        char path[] = "/tmp/offers-XXXXXX", error[400] = "";
        FILE *out = fdopen(mkstemp(path), "w");
        struct pool pool = {0};
        struct offers o;

        fprintf(out, "%.*s%s%s", (int)(at - good), good, cases[i][1], at + strlen(cases[i][0]));
        fclose(out);
        int err = offers_read(&pool, path, &o, error, sizeof(error));
        unlink(path);
        if (!*cases[i][0]) {
            assert_true(err == 0 && o.n == 2 && o.years == 4);
            assert_float_equal(offer_bill(&o, &o.all[0], 8).money, 239212.28, 1e-6);
            assert_string_equal(o.all[1].swap, "network=1:4");
            assert_string_equal(o.all[1].runs[1], "two");
            assert_true(fabs(o.all[1].compute_s - 0.06) < 1e-12 && o.all[1].once == 5 &&
                        o.all[1].yearly == 7);
        } else if (err != -EINVAL || !strstr(error, cases[i][2]) || !strstr(error, cases[i][3])) {
            fail_msg("'%s' gave %d '%s'", cases[i][1], err, error);
        }
        pool_release(&pool);
    }
}

/* A dearer offer with a faster network pays where there are nodes enough: found by the costs of each number of them, by hand. */
static void break_even_by_nodes(void **state)
{
    (void)state;
    static const double nodes[] = {1, 2, 4, 8};
    struct world w;
    struct offer_nodes even;
    double before = 0, after = 0, at = 0;
    world_make(&w, 120e9, 1);
    struct offer fast = stated[1];
    fast.node_price = 24000;
    struct offer_case a = case_of(&w, &stated[0], 0), b = case_of(&w, &fast, 10);
    for (size_t i = 0; i < 4; i++) {
        struct forecast_point p, q;
        double n = nodes[i], kwh = 1.3 * 35064 * .25;

        assert_int_equal(forecast_point(&a.f, n, &p), 0);
        assert_int_equal(forecast_point(&b.f, n, &q), 0);
        double cost_a = n * 20000 + 4000 + (n * .8 + .2) * kwh;
        double cost_b = n * 24000 + 14000 + (n * .8 + .4) * kwh;
        double gain = log(q.samples_s / cost_b / (p.samples_s / cost_a));
        if (i && gain * before < 0) {
            after = nodes[i - 1];
            at = n;
        }
        before = gain;
    }
    assert_true(at > 0); /* the scene has one */
    assert_int_equal(offer_break_even_nodes(&terms, &b, &a, nodes, 4, &even), 0);
    assert_true(even.found && even.after == after && even.at == at);
    assert_true(even.low > 0 && even.low <= even.high);
    assert_int_equal(offer_break_even_nodes(&terms, &b, &a, nodes, 1, &even), 0);
    assert_false(even.found || even.compared);
}

/* Of a product of 400 W over 10 s the counter is right within 5.1 %, of 440 W over 1 s within 11.2 %; the third was too short. */
static void power_has_the_error_of_its_counter(void **state)
{
    (void)state;
    static const double watts[][2] = {{400, 10}, {440, 1}, {700, 0.1}};
    struct world w;
    world_make(&w, 120e9, 1);
    assert_true(isnan(parts_power(&w.parts).watts));
    for (size_t i = 0; i < 3; i++) {
        w.products[i].watts = watts[i][0];
        w.products[i].watts_s = watts[i][1];
    }
    struct part_power p = parts_power(&w.parts);
    assert_float_equal(p.watts, 420, 1e-9);
    assert_float_equal(p.low, 400 * (1 - 0.0509902), 1e-3);
    assert_float_equal(p.high, 440 * (1 + 0.1118034), 1e-3);
}

/* 8 nodes of 1000 W, 800 to 1150 W: 300849.12, 242502.624 and 344608.992 kWh. */
static void measured_power_is_in_the_interval(void **state)
{
    (void)state;
    const double more = log(344608.992 / 300849.12), less = log(300849.12 / 242502.624);
    struct world w, other;
    struct offer measured = stated[0];
    world_make(&w, 120e9, 1);
    measured.measured = true;
    measured.node_watts_low = 800;
    measured.node_watts_high = 1150;
    struct offer dear = measured;
    dear.node_price = 25000;
    struct offer_case a = case_of(&w, &measured, 0), b = case_of(&w, &dear, 0);
    double down = log(a.point.high_s / a.point.time.step_s),
           up = log(a.point.time.step_s / a.point.low_s);
    struct offer_value v = offer_value(&terms, &a, OFFER_ENERGY);
    assert_float_equal(log(v.value / v.low), hypot(down, more), 1e-9);
    assert_float_equal(log(v.high / v.value), hypot(up, less), 1e-9);
    v = offer_value(&terms, &a, OFFER_MONEY);
    assert_float_equal(log(v.value / v.low),
                       hypot(down, log((164000 + 344608.992 / 4) / 239212.28)), 1e-9);
    /* the same sensor, the same machines: the energy of both is off by as much */
    w.parts.power = (struct part_power){100, 80, 115};
    v = offer_compare(&terms, &a, &b, OFFER_ENERGY, true);
    assert_true(fabs(v.value - 1) < 1e-12 && fabs(v.low - 1) < 1e-9 && fabs(v.high - 1) < 1e-9);
    /* measured on other machines: not */
    other = w;
    other.parts.products = other.products;
    other.parts.laws[JOB_SUM].law.points = other.points;
    other.parts.power.watts = 101;
    b = case_of(&other, &dear, 0);
    v = offer_compare(&terms, &a, &b, OFFER_ENERGY, true);
    assert_float_equal(log(v.high / v.value), hypot(less, more), 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(break_even_by_nodes),
                                       cmocka_unit_test(power_has_the_error_of_its_counter),
                                       cmocka_unit_test(measured_power_is_in_the_interval),
                                       cmocka_unit_test(bills_by_hand),
                                       cmocka_unit_test(what_is_shared_cancels),
                                       cmocka_unit_test(break_even_is_where_the_closed_form_has_it),
                                       cmocka_unit_test(a_file_is_read_or_refused)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
