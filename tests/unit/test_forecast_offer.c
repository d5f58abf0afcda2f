/* SPDX-License-Identifier: Apache-2.0 */
/* Offers: the example of docs/forecast.md by hand, and intervals by pairs against parts that are changed by hand. */
#include "harness/forecast/offer.h"
#include "tests/unit/unit.h"

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
        w->products[i] =
            (struct part_product){1000, 1000, 1000, flops * (1 + 0.04 * ((double)i - 1)), NAN, 0};
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

static const struct offer stated[2] = {
    {.name = "A", .compute_s = NAN, .nodes = NODES, .node_price = 20000, .node_watts = 1000},
    {.name = "B", .compute_s = NAN, .nodes = NODES, .node_price = 21500, .node_watts = 1020}};

static const struct offers terms = {
    .currency = "EUR", .energy_price = 0.25, .years = 4, .use = 0.8};

static struct offer_case case_of(const struct world *w, const struct offer *offer, double network)
{
    struct offer_case c = {.offer = offer,
                           .f = {.parts = &w->parts,
                                 .per_node = 1,
                                 .core_known = true,
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

/* How much longer a step with the slowest of its hosts takes, as a logarithm: each offer has hosts of its own. */
static double hosts_off(const struct offer_case *c)
{
    double step = c->point.time.step_s;

    return hypot(log(c->point.ends_s[SOURCE_SLOW_HOST][1] / step),
                 log(c->point.ends_s[SOURCE_SLOWEST][1] / step));
}

/* What both have, products or a swapped network, cancels; what was measured twice, or is another network, does not. */
TEST(what_is_shared_cancels)
{
    struct world w, other;
    world_make(&w, 120e9, 1);
    world_make(&other, 120e9, 1);
    for (int swapped = 0; swapped < 2; swapped++) {
        struct offer_case a = case_of(&w, &stated[0], 4 * swapped),
                          same = case_of(&w, &stated[1], 4 * swapped),
                          twice =
                              swapped ? case_of(&w, &stated[1], 8) : case_of(&other, &stated[1], 0);
        struct offer_value one = offer_ratio(&terms, &same, &a, OFFER_MONEY),
                           two = offer_ratio(&terms, &twice, &a, OFFER_MONEY);
        double off = log(a.point.ends_s[swapped ? SOURCE_SWAP_NETWORK : SOURCE_PRODUCT][1] /
                         a.point.time.step_s);

        assert_true(off > 0.01);
        assert_float_equal(one.value, 216102.4 / 229224.448, 1e-9);
        assert_true(hosts_off(&a) > 0);
        assert_float_equal(log(one.value / one.low), hosts_off(&same), 1e-6);
        assert_float_equal(log(one.high / one.value), hosts_off(&a), 1e-6);
        assert_true(log(two.high / two.value) > hypot((swapped ? 1 : 1.2) * off, hosts_off(&a)));
        assert_true(swapped || (two.low < 1 && two.high > 1));
        /* where its core may carry less, a network is each offer's own */
        a.f.core_known = same.f.core_known = false;
        assert_int_equal(forecast_point(&a.f, NODES, &a.point), 0);
        assert_int_equal(forecast_point(&same.f, NODES, &same.point), 0);
        two = offer_ratio(&terms, &same, &a, OFFER_MONEY);
        assert_true(swapped == (log(two.high / two.value) > 1.01 * hosts_off(&a)));
        one = offer_ratio(&terms, &same, &a, OFFER_ENERGY);
        assert_float_equal(one.value, 1 / 1.02, 1e-9);
    }
}

static const char good[] = "currency: EUR\nenergy_price: 0.25 EUR/kWh\ntime: 48 months\nuse: 80 %\n"
                           "offers:\n"
                           "  - name: A\n    nodes: 8\n    node_price: 20000 EUR\n"
                           "    node_power: 1 kW\n"
                           "  - name: B\n    nodes: 8\n    node_price: 20000 EUR\n"
                           "    node_power: 1000 W\n    swap: network=1:4\n"
                           "    runs: [one, two]\n    compute: 60 ms\n";

/* Reads the file with one text in place of another; every refusal names the line, and the key or the unit. */
TEST(a_file_is_read_or_refused)
{
    static const char *const cases[][4] = {
        {"use: 80 %", "usage: 80 %", ":4: ", "use"},
        {"use: 80 %", "use: 180 %", ":4: ", "180 %"},
        {"nodes: 8", "nodes: 0", ":7: ", "nodes"},
        {"node_price: 20000 EUR", "node_price: -20000 EUR", ":8: ", "-20000"},
        {"node_price: 20000 EUR", "node_price: 20000 USD", ":8: ", "USD"},
        {"node_price: 20000 EUR", "node_price: 1e400 EUR", ":8: ", "1e400"},
        {"node_price: 20000 EUR", "node_price: nan EUR", ":8: ", "nan"},
        {"node_power: 1 kW", "node_power: 0 kW", ":6: ", "power"},
        {"node_power: 1 kW", "node_power: 1 kWh", ":9: ", "kW"},
        {"    node_power: 1 kW\n", "", ":6: ", "node_power"},
        {"node_power: 1 kW", "node_power: measured", ":9: ", "W"},
        {"energy_price: 0.25 EUR/kWh", "energy_price: 0.25 EUR", ":2: ", "EUR/kWh"},
        {"time: 48 months", "time: 0 years", ":3: ", "time"},
        {"name: B", "name: A", ":10: ", "'A'"},
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
            assert_float_equal(offer_bill(&o, &o.all[0]).money, 216102.4, 1e-6);
            assert_string_equal(o.all[1].swap, "network=1:4");
            assert_string_equal(o.all[1].runs[1], "two");
            assert_true(fabs(o.all[1].compute_s - 0.06) < 1e-12);
        } else if (err != -EINVAL || !strstr(error, cases[i][2]) || !strstr(error, cases[i][3])) {
            fail_msg("'%s' gave %d '%s'", cases[i][1], err, error);
        }
        pool_release(&pool);
    }
}
