/* SPDX-License-Identifier: Apache-2.0 */
/* Change points: what is a step, what is none, and what is told of one. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "harness/history/history.h"
#include "tests/unit/change_series.h"

static void a_step_is_found_where_it_is(void **state)
{
    double x[N];
    struct found f;

    (void)state;
    noise(x, N, 1);
    step(x, 45, N, 0.95);
    f = find(x, N);
    assert_int_equal(f.n, 1);
    assert_in_range(f.points[0].at, 44, 46);
    assert_true(f.points[0].seen >= f.points[0].at + 2 && f.points[0].seen <= 49);
    assert_true(fabs(f.points[0].before - 100) < 1 && fabs(f.points[0].after - 95) < 1);
    assert_true(f.points[0].low < 0.95 && f.points[0].high > 0.95);
    assert_true(f.points[0].high < 0.97 && f.points[0].low > 0.93);
    assert_true(fabs(f.points[0].ratio - f.points[0].after / f.points[0].before) < 1e-12);
    assert_true(f.points[0].at_low <= 45 && f.points[0].at_high >= 45);
    assert_true(f.points[0].p < CHANGE_LEVEL);
    free(f.points);
}

static void two_steps_are_two(void **state)
{
    double x[120];
    struct found f;

    (void)state;
    noise(x, 120, 2);
    step(x, 40, 120, 1.06);
    step(x, 80, 120, 0.94);
    f = find(x, 120);
    assert_int_equal(f.n, 2);
    assert_in_range(f.points[0].at, 39, 41);
    assert_in_range(f.points[1].at, 79, 81);
    assert_true(f.points[0].ratio > 1.04 && f.points[1].ratio < 0.96);
    free(f.points);
}

/* What was told is not taken back, nor moved, by what comes later. */
static void points_stay(void **state)
{
    double x[120];
    size_t n_last = 0, at[8];

    (void)state;
    noise(x, 120, 3);
    step(x, 50, 120, 0.96);
    step(x, 90, 120, 1.05);
    for (size_t n = 0; n <= 120; n++) {
        struct found f = find(x, n);

        assert_true(f.n >= n_last && f.n <= 8);
        for (size_t i = 0; i < n_last; i++)
            assert_int_equal(f.points[i].at, at[i]);
        for (size_t i = n_last; i < f.n; i++) {
            at[i] = f.points[i].at;
            assert_int_equal(f.points[i].seen, n - 1);
        }
        n_last = f.n;
        free(f.points);
    }
    assert_int_equal(n_last, 2);
}

static void stray_runs_are_no_change(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        double x[N];
        struct found f;

        noise(x, N, seed);
        x[20] *= 0.5;
        x[40] *= 1.5;
        x[N - 1] *= 0.3;
        f = find(x, N);
        assert_int_equal(f.n, 0);
        free(f.points);
    }
}

/* Three runs may be a new level; two are not, whatever the run next to them is like. */
static void two_runs_are_no_level(void **state)
{
    size_t alarms = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        double x[100];
        struct found f;

        noise(x, 100, seed);
        x[60] *= 0.85;
        x[61] *= 0.85;
        f = find(x, 100);
        alarms += f.n > 0;
        free(f.points);
    }
    assert_in_range(alarms, 0, 2);
}

/* Two levels, at random from run to run, are how this case is. */
static void two_levels_are_no_change(void **state)
{
    size_t alarms = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        double x[200];
        struct rng rng;
        struct found f;

        noise(x, 200, seed);
        rng_seed(&rng, seed);
        for (size_t i = 0; i < 200; i++)
            x[i] *= rng_double(&rng) < 0.4 ? 0.93 : 1;
        f = find(x, 200);
        alarms += f.n;
        free(f.points);
    }
    assert_in_range(alarms, 0, 2);
}

static void slow_wander_is_no_change(void **state)
{
    size_t alarms = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        double x[365];
        struct found f;

        noise(x, 365, seed);
        for (size_t i = 0; i < 365; i++)
            x[i] *= 1 + 0.007 * sin(2 * M_PI * (double)i / 120 + (double)seed);
        f = find(x, 365);
        alarms += f.n;
        free(f.points);
    }
    assert_in_range(alarms, 0, 2);
}

/* A slope of 6 % over 60 runs moves the level nowhere. */
static void a_slope_is_no_step(void **state)
{
    struct change_noise around = {.level = 0, .n_level = 40, .sd = 0.01};
    double x[50], sharp[50];

    (void)state;
    for (size_t i = 0; i < 50; i++) {
        x[i] = 0.001 * ((double)i - 20);
        sharp[i] = i < 40 ? 0 : 0.025;
    }
    assert_true(change_is_slope(&around, x, 10, 0.025, 0.7));
    assert_false(change_is_slope(&around, sharp, 10, 0.025, 0.7));
}

static void gaps_are_left_out(void **state)
{
    double x[N + 10], y[N];
    struct found f, g;

    (void)state;
    noise(y, N, 5);
    step(y, 45, N, 0.93);
    for (size_t i = 0; i < N + 10; i++)
        x[i] = i < 30 ? y[i] : i < 40 ? NAN : y[i - 10];
    f = find(x, N + 10);
    g = find(y, N);
    assert_int_equal(f.n, 1);
    assert_int_equal(g.n, 1);
    assert_int_equal(f.points[0].at, g.points[0].at + 10);
    assert_int_equal(f.points[0].seen, g.points[0].seen + 10);
    assert_true(f.points[0].after == g.points[0].after);
    free(f.points);
    free(g.points);
}

static void up_is_as_down(void **state)
{
    double x[N], y[N];
    struct found f, g;

    (void)state;
    noise(x, N, 7);
    step(x, 40, N, 0.95);
    for (size_t i = 0; i < N; i++)
        y[i] = 1 / x[i];
    f = find(x, N);
    g = find(y, N);
    assert_int_equal(f.n, 1);
    assert_int_equal(g.n, 1);
    assert_int_equal(f.points[0].at, g.points[0].at);
    assert_true(fabs(f.points[0].ratio * g.points[0].ratio - 1) < 1e-9);
    free(f.points);
    free(g.points);
}

static void few_values_tell_nothing(void **state)
{
    double x[CHANGE_FIRST + CHANGE_SHORT];

    (void)state;
    for (size_t n = 0; n < CHANGE_FIRST + CHANGE_SHORT; n++) {
        struct found f;

        noise(x, n, 1);
        step(x, n / 2, n, 0.1);
        f = find(x, n);
        assert_int_equal(f.n, 0);
        assert_null(f.points);
    }
}

static void equal_values_are_no_trouble(void **state)
{
    double x[N];
    struct found f;

    (void)state;
    for (size_t i = 0; i < N; i++)
        x[i] = 5;
    f = find(x, N);
    assert_int_equal(f.n, 0);
    step(x, 50, N, 0.9);
    f = find(x, N);
    assert_int_equal(f.n, 1);
    assert_int_equal(f.points[0].at, 50);
    assert_true(fabs(f.points[0].ratio - 0.9) < 1e-9);
    free(f.points);
}

/* Steps below what is told at all, in values without any noise. */
static void the_least_step_is_told(void **state)
{
    const struct change_options options = {.least = 0.02};
    struct change_point *points;
    double x[N];
    size_t n;

    (void)state;
    noise(x, N, 8);
    for (size_t i = 0; i < N; i++)
        x[i] = exp(log(x[i] / 100) / 100) * (i < 40 ? 1 : 1.01);
    assert_int_equal(change_points(x, N, &options, &points, &n), 0);
    assert_int_equal(n, 0);
    assert_int_equal(change_points(x, N, NULL, &points, &n), 0);
    assert_int_equal(n, 1);
    free(points);
}

static void bad_values_are_refused(void **state)
{
    const double bad[] = {0, -1, INFINITY, -INFINITY};
    const struct change_options wild = {.level = 2}, less = {.least = -1};
    struct change_point *points;
    double x[N];
    size_t n;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        noise(x, N, 1);
        x[17] = bad[i];
        assert_int_equal(change_points(x, N, NULL, &points, &n), -EDOM);
        assert_null(points);
    }
    noise(x, N, 1);
    assert_int_equal(change_points(x, N, &wild, &points, &n), -EINVAL);
    assert_int_equal(change_points(x, N, &less, &points, &n), -EINVAL);
    for (size_t i = 0; i < N; i++)
        x[i] = NAN;
    assert_int_equal(change_points(x, N, NULL, &points, &n), 0);
    assert_int_equal(n, 0);
}

static double mean_distance(const double *a, size_t m, const double *b, size_t k)
{
    double sum = 0;

    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < k; j++)
            sum += fabs(a[i] - b[j]);
    /* Of a side with itself each pair is there twice, and each value's distance to itself is 0. */
    return a == b ? (m > 1 ? sum / (double)(m * (m - 1)) : 0) : sum / (double)(m * k);
}

/* The formula of Matteson and James, as it stands there. */
static size_t split_by_formula(const double *x, size_t n)
{
    double best = -INFINITY;
    size_t at = 0;

    for (size_t m = 1; m < n; m++) {
        size_t k = n - m;
        double energy = 2 * mean_distance(x, m, x + m, k) - mean_distance(x, m, x, m) -
                        mean_distance(x + m, k, x + m, k);

        energy *= (double)m * (double)k / (double)n;
        at = energy > best ? m : at;
        best = fmax(best, energy);
    }
    return at;
}

static void the_split_is_by_energy(void **state)
{
    const double x[] = {1, 2, 1, 2, 1, 9, 8, 9};

    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        double y[30];

        noise(y, 30, seed);
        step(y, seed % 29, 30, 1.01);
        assert_int_equal(change_split(y, 30, 1, 1), split_by_formula(y, 30));
    }
    assert_int_equal(change_split(x, 8, 1, 1), 5);
    assert_int_equal(change_split(x, 8, 6, 1), 6);
    assert_int_equal(change_split(x, 8, 1, 4), 4);
}

static void a_mean_bounds_stray_values(void **state)
{
    const double x[] = {-50, 0, 0, 0.5, 1};

    (void)state;
    assert_true(fabs(change_mean(x, 5, 1) - 0.1) < 1e-12);
    assert_true(fabs(change_mean(x, 5, 100) + 9.7) < 1e-12);
}

/* 3 of 3 above all of 5: 1 / C(8, 3); 3 of 3 above all of 5 but one: 4 / C(8, 3). */
static void chance_is_that_of_ranks(void **state)
{
    struct change_noise around = {.n_rest = 5, .rest = {-2, -1, 0, 1, 2}};
    const double above[] = {3, 4, 5}, among[] = {1.5, 3, 4};

    (void)state;
    assert_true(fabs(change_chance(&around, above, 3) - 1.0 / 56) < 1e-12);
    assert_true(fabs(change_chance(&around, among, 3) - 4.0 / 56) < 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_found_where_it_is),
        cmocka_unit_test(two_steps_are_two),
        cmocka_unit_test(points_stay),
        cmocka_unit_test(stray_runs_are_no_change),
        cmocka_unit_test(two_runs_are_no_level),
        cmocka_unit_test(two_levels_are_no_change),
        cmocka_unit_test(slow_wander_is_no_change),
        cmocka_unit_test(a_slope_is_no_step),
        cmocka_unit_test(gaps_are_left_out),
        cmocka_unit_test(up_is_as_down),
        cmocka_unit_test(few_values_tell_nothing),
        cmocka_unit_test(equal_values_are_no_trouble),
        cmocka_unit_test(the_least_step_is_told),
        cmocka_unit_test(bad_values_are_refused),
        cmocka_unit_test(the_split_is_by_energy),
        cmocka_unit_test(a_mean_bounds_stray_values),
        cmocka_unit_test(chance_is_that_of_ranks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
