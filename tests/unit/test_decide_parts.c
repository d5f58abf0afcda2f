/* SPDX-License-Identifier: Apache-2.0 */
/* What decisions are made of: the fit of the spreads, Holm's procedure, unrest. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/rng.h"
#include "core/stats.h"
#include "harness/decide/spread.h"

/* Mean square of n normal numbers: chi-square over its degrees of freedom. */
static double mean_square(struct rng *r, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += pow(rng_normal(r), 2) / (double)n;
    return sum;
}

#define CASES 1000

static void simulate(double *variances, double *df, size_t of_case, size_t freedom, uint64_t seed)
{
    struct rng r;

    rng_seed(&r, seed);
    for (size_t i = 0; i < CASES; i++) {
        df[i] = (double)of_case;
        variances[i] = 1e-4 * mean_square(&r, of_case) / mean_square(&r, freedom);
    }
}

static void the_fit_finds_what_was_simulated(void **state)
{
    static const size_t freedoms[] = {2, 6, 16};
    double variances[CASES], df[CASES];
    struct prior prior;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        simulate(variances, df, 8, freedoms[i], i);
        assert_int_equal(prior_fit(variances, df, CASES, &prior), 0);
        assert_true(prior.freedom >= 0.65 * (double)freedoms[i]);
        assert_true(prior.freedom <= 1.55 * (double)freedoms[i]);
        assert_float_equal(log(prior.variance / 1e-4), 0, 0.15);
    }
}

static void the_fit_takes_cases_of_unequal_freedom(void **state)
{
    double variances[CASES], df[CASES], others[CASES], other_df[CASES];
    struct prior prior;

    (void)state;
    simulate(variances, df, 8, 6, 11);
    simulate(others, other_df, 3, 6, 12);
    for (size_t i = 0; i < CASES; i += 2) {
        variances[i] = others[i];
        df[i] = i % 8 ? other_df[i] : 0; /* 0: no spread is known, and it is left out */
    }
    assert_int_equal(prior_fit(variances, df, CASES, &prior), 0);
    assert_true(prior.freedom >= 3 && prior.freedom <= 9);
    assert_float_equal(log(prior.variance / 1e-4), 0, 0.2);
}

/* A third of the cases looks as if it had no spread at all: that is not believed. */
static void quiet_cases_do_not_pull_the_fit_down(void **state)
{
    double variances[CASES], df[CASES];
    struct prior prior, quiet;

    (void)state;
    simulate(variances, df, 8, 6, 1);
    prior_fit(variances, df, CASES, &prior);
    for (size_t i = 0; i < CASES; i++) {
        if (variances[i] < 0.7e-4)
            variances[i] *= 1e-6;
    }
    prior_fit(variances, df, CASES, &quiet);
    assert_float_equal(quiet.variance, prior.variance, 1e-9);
    assert_float_equal(quiet.freedom, prior.freedom, 1e-9);
}

/* Most launches agree to the last digit. */
static void no_spread_at_all_is_fitted(void **state)
{
    double variances[20] = {0}, df[20];
    struct prior prior;

    (void)state;
    for (size_t i = 0; i < 20; i++)
        df[i] = 8;
    variances[3] = 1e-4;
    assert_int_equal(prior_fit(variances, df, 20, &prior), 0);
    assert_true(isfinite(prior.variance) && prior.variance > 0 && prior.variance < 1e-10);
}

static void few_cases_have_no_fit(void **state)
{
    double variances[DECIDE_PRIOR_CASES], df[DECIDE_PRIOR_CASES], own = 8;
    struct prior prior;

    (void)state;
    for (size_t i = 0; i < DECIDE_PRIOR_CASES; i++) {
        variances[i] = 1e-4;
        df[i] = 8;
    }
    df[0] = 0;
    prior_fit(variances, df, DECIDE_PRIOR_CASES, &prior);
    assert_true(prior.freedom == 0);
    assert_float_equal(prior_moderate(&prior, 3e-4, &own), 3e-4, 1e-12);
    assert_float_equal(own, 8, 1e-12);
    df[0] = 8;
    prior_fit(variances, df, DECIDE_PRIOR_CASES, &prior);
    assert_true(prior.freedom > 0);
}

/* The second example of docs/deciding.md. */
static void variances_are_moderated(void **state)
{
    struct prior prior = {.freedom = 4, .variance = 1e-4, .most = 100};
    double df = 8, variance = prior_moderate(&prior, 6.516287e-5, &df);

    (void)state;
    assert_float_equal(variance, 7.677525e-5, 1e-10);
    assert_float_equal(df, 12, 1e-12);
    assert_float_equal(dist_t_cdf(-0.04082412 / sqrt(variance * 0.4), df), 4.3275e-6, 1e-9);
    prior.most = 10;
    df = 8;
    prior_moderate(&prior, 4e-4, &df);
    assert_float_equal(df, 10, 1e-12);
}

/* At 0.05 of four: 0.01 (0.0125), 0.016 (0.0167), then 0.03 is above 0.025, and 0.04, though below
 * 0.05, comes too late. */
static void holm_by_hand(void **state)
{
    const double p[] = {0.04, 0.01, 0.03, 0.016};
    bool proven[4];

    (void)state;
    assert_int_equal(holm(p, 4, 0.05, proven), 0);
    assert_false(proven[0]);
    assert_true(proven[1]);
    assert_false(proven[2]);
    assert_true(proven[3]);
    assert_int_equal(holm(p, 0, 0.05, proven), 0);
}

static void unrest_is_a_robust_scale(void **state)
{
    static struct change x[CASES];
    static double scratch[CASES];
    struct rng r;

    (void)state;
    for (int i = 0; i < 3; i++) {
        double spread = (const double[]){2, 25, 0.5}[i], least = fmax(spread, 1);

        rng_seed(&r, 5);
        for (size_t k = 0; k < CASES; k++)
            x[k] = (struct change){spread * rng_normal(&r), 1e6};
        assert_float_equal(unrest_scale(x, CASES, scratch) / least, 1, 0.05);
        for (size_t k = 0; k < CASES / 10; k++)
            x[k].t = 1e6; /* true changes have no say */
        assert_float_equal(unrest_scale(x, CASES, scratch) / least, 1, 0.2);
    }
    for (size_t i = 0; i < CASES; i++)
        x[i].t = i < 600 ? 0 : 1;
    assert_true(unrest_scale(x, CASES, scratch) == 1);
}

/* A score of a t with 8 degrees of freedom ends near 7, whatever the t: what is divided once by what scores scatter by is
 * far too little. */
static void unrest_is_as_large_as_it_is_with_few_degrees_of_freedom(void **state)
{
    static struct change x[CASES];
    static double scratch[CASES];
    struct rng r;

    (void)state;
    rng_seed(&r, 6);
    for (size_t i = 0; i < CASES; i++) {
        double squares = 0;

        for (int k = 0; k < 8; k++)
            squares += pow(rng_normal(&r), 2);
        x[i] = (struct change){22 * rng_normal(&r) / sqrt(squares / 8), 8};
    }
    assert_float_equal(unrest_scale(x, CASES, scratch), 22, 2);
}

/* Of p that are uniform a p means what it says; of p that are the cubes of such, its cube root. */
static void a_tail_reads_p_as_often_as_they_are(void **state)
{
    static const struct tail_rule rule = {20, 0, 1};
    static double p[CASES];
    struct tail t[2] = {{.factor = 1}, {.factor = 1}};
    struct rng r;

    (void)state;
    rng_seed(&r, 7);
    for (size_t i = 0; i < CASES; i++)
        p[i] = rng_double(&r);
    tail_fit(p, CASES, &rule, &t[0]);
    assert_float_equal(t[0].factor, 1, 0.3);
    assert_true(tail_read(t, 1e-5) < 2e-4 && tail_read(t, 0.3) == 0.3);
    rng_seed(&r, 7);
    for (size_t i = 0; i < CASES; i++)
        p[i] = pow(rng_double(&r), 3);
    tail_fit(p, CASES, &rule, &t[0]);
    assert_float_equal(t[0].factor, 3, 0.8);
    for (int i = 0; i < 3; i++) {
        double told = (const double[]){1e-9, 1e-7, 1e-6}[i];

        assert_float_equal(log(tail_read(t, told)) / log(cbrt(told)), 1, 0.3);
        assert_float_equal(log(tail_read(t, tail_nominal(t, told))) / log(told), 1, 1e-6);
    }
    tail_fit(p, 5, &rule, &t[0]); /* too few to say anything */
    assert_true(tail_read(t, 1e-9) == 1e-9);
}

#define LEVELS(...)                                                                                \
    (const struct decide_run[]){__VA_ARGS__},                                                      \
        sizeof((const struct decide_run[]){__VA_ARGS__}) / sizeof(struct decide_run)
#define AT(x, ...)                                                                                 \
    {                                                                                              \
        .values = (const double[]){x}, .n = 1, ##__VA_ARGS__                                       \
    }

/* Eight runs are two blocks of four: a level that slips from the one to the other is no spread. */
static void runs_spread_within_blocks_and_breaks(void **state)
{
    const struct decide_case slips = {
        .a = {LEVELS(AT(100), AT(101), AT(100), AT(101), AT(80), AT(81), AT(80), AT(81))},
        .b = {LEVELS(AT(80))},
        .higher_is_better = true};
    const struct decide_case breaks = {
        .a = {LEVELS(AT(50, .role = DECIDE_SPREAD), AT(51, .role = DECIDE_SPREAD), {.n = 0},
                     AT(100, .breaks = true), AT(100))},
        .b = {LEVELS(AT(100))},
        .higher_is_better = true};
    struct run_mean means[8];
    struct measure m;
    double off[8];

    (void)state;
    assert_int_equal(spread_measure(&slips, true, means, &m), OBSTACLE_NONE);
    assert_float_equal(m.between_df, 6, 1e-12);
    assert_float_equal(m.between / (pow(log(101 / 100.0), 2) + pow(log(81 / 80.0), 2)), 1 / 6.0,
                       1e-9);
    spread_measure(&slips, false, means, &m); /* in no order: all of one side are alike */
    assert_float_equal(m.between_df, 7, 1e-12);
    assert_true(m.between > 0.01);
    spread_measure(&breaks, true, means, &m);
    assert_float_equal(m.between_df, 2, 1e-12);
    assert_float_equal(m.between, pow(log(51 / 50.0), 2) / 4, 1e-9);
    assert_float_equal(m.d, 0, 1e-12); /* the level is of the last two alone */
    assert_int_equal(m.units_a, 2);
    deviations(&breaks, true, means, off);
    assert_true(isnan(off[2]) && off[3] == 0);
    assert_float_equal(off[1], log(51 / 50.0) / 2 * sqrt(2), 1e-9);
    assert_float_equal(off[0], -off[1], 1e-9);
}

static void quantiles_are_remembered(void **state)
{
    struct quantiles q = {.next = 0};

    (void)state;
    for (int round = 0; round < 3; round++) {
        for (int df = 1; df < 40; df++)
            assert_true(quantile(&q, 0.975, df) == dist_t_quantile(0.975, df));
    }
    assert_true(quantile(&q, 0.9, 39) == dist_t_quantile(0.9, 39));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fit_finds_what_was_simulated),
        cmocka_unit_test(the_fit_takes_cases_of_unequal_freedom),
        cmocka_unit_test(quiet_cases_do_not_pull_the_fit_down),
        cmocka_unit_test(no_spread_at_all_is_fitted),
        cmocka_unit_test(few_cases_have_no_fit),
        cmocka_unit_test(variances_are_moderated),
        cmocka_unit_test(holm_by_hand),
        cmocka_unit_test(unrest_is_a_robust_scale),
        cmocka_unit_test(unrest_is_as_large_as_it_is_with_few_degrees_of_freedom),
        cmocka_unit_test(a_tail_reads_p_as_often_as_they_are),
        cmocka_unit_test(runs_spread_within_blocks_and_breaks),
        cmocka_unit_test(quantiles_are_remembered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
