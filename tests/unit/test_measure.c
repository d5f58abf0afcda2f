/* SPDX-License-Identifier: Apache-2.0 */
/* The price of a cause: turns, their interval and their end, against sides whose truth is planted. */
#include "core/rng.h"
#include "harness/doctor/doctor.h"
#include "harness/doctor/measure.h"
#include "tests/unit/unit.h"

/* A machine on which all is planted. */
struct scene {
    double with, without; /* the true figures */
    double noise;         /* standard deviation of a side, as a share */
    double drift;         /* each measurement finds the machine so much slower: 0.99 */
    double outliers;      /* share of all measurements that take ten times as long */
    int fails_at, error;  /* from 1; 0: never */
    int n;                /* measurements so far */
    struct rng rng;
};

static int planted(void *arg, struct measurement *m, bool with, double *value)
{
    struct scene *s = arg;
    double far = rng_double(&s->rng) < s->outliers ? 10 : 1;

    if (++s->n == s->fails_at) {
        if (s->error != -ECANCELED)
            snprintf(m->reason, sizeof(m->reason), "planted");
        return s->error;
    }
    m->more_is_better = true;
    *value = (with ? s->with : s->without) * pow(s->drift, s->n) *
             exp(s->noise * rng_normal(&s->rng)) / far;
    return 0;
}

static const struct bench_experiment cause = {
    .check = "planted", .cause = "a planted cause", .lost = "turns", .metric = "rate", .pipe = "P"};

static struct measurement measured(struct scene s, double width)
{
    struct measurement m = {.cause = &cause};
    struct measure_rule rule = {.width = width, .budget_ns = UINT64_MAX / 4};

    s.drift = s.drift ? s.drift : 1;
    rng_seed(&s.rng, 7);
    measure_turns(&m, &rule, planted, &s);
    return m;
}

static void check_share(struct measurement *m, double truth, double off)
{
    double low, high;

    assert_int_equal(m->state, MEASURE_DONE);
    assert_true(measure_share(m, &low, &high));
    if (low > truth || high < truth || high - low > 2 * off)
        fail_msg("planted %g, found %g to %g", truth, low, high);
    measurement_release(m);
}

/* Noise, equal sides, a drift of 2 % with each measurement, one in fifteen that is ten times as slow, and a time that grows. */
TEST(test_a_planted_loss_is_found)
{
    static const struct {
        struct scene scene;
        double truth, off;
    } cases[] = {{{.with = 80, .without = 100, .noise = 0.01}, 0.2, 0.02},
                 {{.with = 100, .without = 100, .noise = 0.005}, 0, 0.01},
                 {{.with = 99, .without = 100, .drift = 0.98}, 0.01, 1e-6},
                 {{.with = 80, .without = 100, .drift = 1.03, .noise = 0.005}, 0.2, 0.01},
                 {{.with = 80, .without = 100, .noise = 0.01, .outliers = 0.066}, 0.2, 0.2}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct measurement m = measured(cases[i].scene, 0.01);
        assert_true(i < 4 || m.n_turns > MEASURE_TURNS_MIN);
        check_share(&m, cases[i].truth, cases[i].off);
    }
    struct measurement m =
        measured((struct scene){.with = 150, .without = 100, .noise = 0.002}, 0.01);
    m.more_is_better = false;
    check_share(&m, 0.5, 0.01);
}

/* The interval is looked at several times, and the first narrow one ends it: it covers the truth all the same. */
TEST(test_coverage)
{
    static const struct scene scenes[] = {{.drift = 1, .noise = 0.003},
                                          {.drift = 1, .noise = 0.015},
                                          {.drift = 1, .noise = 0.03},
                                          {.drift = 0.99, .noise = 0.015},
                                          {.drift = 1, .noise = 0.01, .outliers = 0.03}};
    for (size_t i = 0; i < sizeof(scenes) / sizeof(*scenes); i++) {
        size_t covered = 0;

        for (size_t seed = 1; seed <= 400; seed++) {
            struct measurement m = {.cause = &cause};
            struct measure_rule rule = {.width = 0.01, .budget_ns = UINT64_MAX / 4};
            struct scene s = scenes[i];
            double low, high;

            s.with = 90;
            s.without = 100;
            rng_seed(&s.rng, seed);
            measure_turns(&m, &rule, planted, &s);
            assert_true(measure_share(&m, &low, &high));
            covered += low <= 0.1 && high >= 0.1;
            measurement_release(&m);
        }
        if (covered < 380)
            fail_msg("scene %zu: %zu of 400", i, covered);
    }
}

/* A loss, equal sides that are quiet, and sides of which the noise hides a loss. */
TEST(test_what_decides)
{
    static const struct {
        struct scene scene;
        bool decides;
    } cases[] = {{{.with = 80, .without = 100, .noise = 0.02}, true},
                 {{.with = 103, .without = 100, .noise = 0.003}, true},
                 {{.with = 100, .without = 100, .noise = 0.02}, true},
                 {{.with = 95, .without = 100, .noise = 0.5}, false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct measurement m = measured(cases[i].scene, 0.01);
        assert_int_equal(m.decides, cases[i].decides);
        measurement_release(&m);
    }
}

TEST(test_the_budget_ends_it)
{
    struct measurement m = {.cause = &cause};
    struct measure_rule rule = {.width = 1e-9, .budget_ns = 0};
    struct scene s = {.with = 80, .without = 100, .noise = 0.1, .drift = 1};
    rng_seed(&s.rng, 1);
    measure_turns(&m, &rule, planted, &s);
    assert_int_equal(m.n_turns, MEASURE_TURNS_MIN);
    assert_int_equal(m.state, MEASURE_DONE);
    measurement_release(&m);
    m = measured((struct scene){.with = 80, .without = 100, .noise = 0.1}, 1e-9);
    assert_int_equal(m.n_turns, MEASURE_TURNS_MAX);
    measurement_release(&m);
}

TEST(test_an_end_before_the_end)
{
    static const struct {
        double with;
        int fails_at, error;
        enum measure_state state;
        size_t turns;
    } cases[] = {{80, 39, -ECANCELED, MEASURE_STOPPED, 9},
                 {80, 7, -ECANCELED, MEASURE_STOPPED, 1},
                 {80, 2, -EOPNOTSUPP, MEASURE_SKIPPED, 0},
                 {0, 0, 0, MEASURE_FAILED, 0}};
    double low, high;
    for (size_t i = 0; i < 4; i++) {
        struct measurement m = measured((struct scene){.with = cases[i].with,
                                                       .without = 100,
                                                       .noise = 1e-7,
                                                       .fails_at = cases[i].fails_at,
                                                       .error = cases[i].error},
                                        0);
        assert_int_equal(m.state, cases[i].state);
        assert_int_equal(m.n_turns, cases[i].turns);
        assert_int_equal(measure_share(&m, &low, &high),
                         i == 0); /* two turns at least make an interval */
        measurement_release(&m);
    }
}

/* What is written is enough to calculate it again: each side goes first in half of the pairs. */
TEST(test_json_has_all_turns)
{
    struct measurement m =
        measured((struct scene){.with = 80, .without = 100, .noise = 0.02}, 0.001);
    json_t *json = measure_json(&m), *turn;
    double sum = 0;
    size_t i;
    json_array_foreach (json_object_get(json, "turns"), i, turn) {
        bool first = !strcmp(json_string_value(json_object_get(turn, "first")), "with");
        double v[4];
        for (int k = 0; k < 4; k++)
            v[k] = json_real_value(json_array_get(json_object_get(turn, "values"), (size_t)k));
        double ratio = log(v[0] * v[3] / v[1] / v[2]) / 2;
        sum += first ? ratio : -ratio;
        assert_int_equal(first, i % 2 == 0);
    }
    assert_int_equal(i, m.n_turns);
    assert_float_equal(json_real_value(json_object_get(json, "ratio")), exp(sum / (double)i), 1e-9);
    json_decref(json);
    measurement_release(&m);
}
