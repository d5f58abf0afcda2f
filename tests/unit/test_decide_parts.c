/* SPDX-License-Identifier: Apache-2.0 */
/* What decisions are made of: the fit of the spreads, Holm's procedure, unrest. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/dist.h"
#include "core/rng.h"
#include "harness/decide/parts.h"

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
    double z[CASES], clean;
    struct rng r;

    (void)state;
    rng_seed(&r, 5);
    for (size_t i = 0; i < CASES; i++)
        z[i] = fabs(2 * rng_normal(&r));
    clean = unrest_scale(z, CASES);
    assert_float_equal(clean, 2, 0.15);
    for (size_t i = 0; i < CASES / 10; i++)
        z[i] = 1e6; /* true changes have no say */
    assert_float_equal(unrest_scale(z, CASES), 2, 0.4);
    for (size_t i = 0; i < CASES; i++)
        z[i] = i < 600 ? 0 : 1;
    assert_true(unrest_scale(z, CASES) == 0);
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
        cmocka_unit_test(quantiles_are_remembered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
