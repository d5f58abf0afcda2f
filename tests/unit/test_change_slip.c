/* SPDX-License-Identifier: Apache-2.0 */
/* Slow slips: what is one, how it ends, and what is told of it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "harness/history/history.h"
#include "tests/unit/change_series.h"
#include "tests/unit/sanitized.h"

/* Each run from `from` to `to` is `rate` of the one before, times. */
static void slip(double *x, size_t from, size_t to, size_t n, double rate)
{
    double factor = 1;

    for (size_t i = from; i < n; i++) {
        factor *= i <= to ? rate : 1;
        x[i] *= factor;
    }
}

static void a_slip_is_found_where_it_runs(void **state)
{
    double x[120], total = pow(0.997, 50);
    struct found f;

    (void)state;
    noise(x, 120, 1);
    slip(x, 60, 109, 120, 0.997);
    f = find(x, 110);
    assert_int_equal(f.n, 1);
    assert_int_equal(f.points[0].kind, CHANGE_SLIP);
    assert_in_range(f.points[0].at, 56, 64);
    assert_in_range(f.points[0].seen, 65, 79);
    assert_true(f.points[0].goes_on && f.points[0].end == 109);
    assert_true(f.points[0].at_low <= 60 && f.points[0].at_high >= 60);
    assert_true(f.points[0].low < total && f.points[0].high > total);
    assert_true(f.points[0].high - f.points[0].low < 0.03);
    assert_true(f.points[0].a_run_low < 0.997 && f.points[0].a_run_high > 0.997);
    assert_true(f.points[0].a_run_high - f.points[0].a_run_low < 0.001);
    assert_true(fabs(f.points[0].before - 100) < 1 && fabs(f.points[0].after - 86) < 1);
    assert_true(fabs(f.points[0].ratio - f.points[0].after / f.points[0].before) < 1e-12);
    free(f.points);
}

static void a_slip_ends(void **state)
{
    double x[160];
    struct found f;

    (void)state;
    noise(x, 160, 4);
    slip(x, 60, 99, 160, 1 / 0.997);
    f = find(x, 160);
    assert_int_equal(f.n, 1);
    assert_int_equal(f.points[0].kind, CHANGE_SLIP);
    assert_false(f.points[0].goes_on);
    assert_in_range(f.points[0].end, 94, 104);
    assert_true(f.points[0].low < pow(0.997, -40) && f.points[0].high > pow(0.997, -40));
    free(f.points);
}

static void a_slip_is_repaired(void **state)
{
    double x[130];
    struct found f;

    (void)state;
    noise(x, 130, 6);
    slip(x, 60, 99, 130, 0.997);
    step(x, 100, 130, 1.06);
    f = find(x, 130);
    assert_int_equal(f.n, 2);
    assert_int_equal(f.points[0].kind, CHANGE_SLIP);
    assert_in_range(f.points[0].end, 97, 99);
    assert_int_equal(f.points[1].kind, CHANGE_STEP);
    assert_int_equal(f.points[1].at, 100);
    assert_in_range(f.points[1].seen, 102, 104);
    assert_true(f.points[1].low < 1.06 && f.points[1].high > 1.06);
    free(f.points);
}

/* From the first run on: no value is of a level. */
static void a_slip_may_have_no_beginning(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        double x[N];
        struct found f;

        noise(x, N, seed);
        slip(x, 1, N, N, 0.997);
        f = find(x, N);
        assert_int_equal(f.n, 1);
        assert_int_equal(f.points[0].kind, CHANGE_SLIP);
        assert_true(f.points[0].goes_on && f.points[0].at < 12 && f.points[0].ratio < 0.9);
        free(f.points);
    }
}

/* Slips are told from run to run: none is taken back, nor told later than it was; where it began, and up to where it runs, is
 * known better with time. */
static void slips_stay(void **state)
{
    double x[200];

    (void)state;
    for (uint64_t seed = 1; seed <= (sanitized() ? 2 : 10); seed++) {
        size_t n_last = 0, seen[8] = {0};

        noise(x, 200, seed);
        slip(x, 50, 99, 200, 0.996);
        step(x, 130, 200, 1.1);
        for (size_t n = 0; n <= 200; n++) {
            struct found f = find(x, n);

            assert_true(f.n >= n_last && f.n <= 8);
            for (size_t i = 0; i < n_last; i++)
                assert_int_equal(f.points[i].seen, seen[i]);
            for (size_t i = 0; i < f.n; i++) {
                assert_true(f.points[i].at <= f.points[i].seen && f.points[i].end < n);
                assert_true(f.points[i].at <= f.points[i].end);
                assert_true(i == 0 || f.points[i - 1].end < f.points[i].at);
            }
            if (f.n > n_last) {
                assert_int_equal(f.n, n_last + 1);
                seen[n_last] = f.points[n_last].seen;
                assert_int_equal(seen[n_last], n - 1);
            }
            n_last = f.n;
            free(f.points);
        }
        assert_int_equal(n_last, 2);
    }
}

/* Of 40 cases 8 lose 0.3 % a night for 60 nights. */
static void those_that_slip_are_named(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        double x[N];
        struct found f;

        noise(x, N, 100 + seed);
        slip(x, 0, N, N, seed <= 8 ? 0.997 : 1);
        f = find(x, N);
        assert_int_equal(f.n, seed <= 8);
        free(f.points);
    }
}

static void a_step_is_no_slip(void **state)
{
    size_t slips = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        double x[120];
        struct found f;

        noise(x, 120, seed);
        step(x, 60, 120, 0.94);
        f = find(x, 120);
        assert_true(f.n >= 1);
        for (size_t i = 0; i < f.n; i++)
            slips += f.points[i].kind == CHANGE_SLIP;
        free(f.points);
    }
    assert_in_range(slips, 0, 1);
}

/* Nothing but the line: no noise at all. */
static void slips_without_noise_are_no_trouble(void **state)
{
    double x[N];
    struct found f;

    (void)state;
    for (size_t i = 0; i < N; i++)
        x[i] = 5;
    slip(x, 30, 49, N, 0.99);
    f = find(x, N);
    assert_int_equal(f.n, 1);
    assert_int_equal(f.points[0].kind, CHANGE_SLIP);
    assert_int_equal(f.points[0].at, 30);
    assert_int_equal(f.points[0].end, 49);
    assert_true(fabs(f.points[0].ratio - pow(0.99, 20)) < 1e-4);
    assert_true(fabs(f.points[0].a_run - 0.99) < 1e-5);
    free(f.points);
}

/* What a slip loses in all must surely be more than the least. */
static void the_least_slip_is_told(void **state)
{
    const struct change_options options = {.least_slip = 0.1, .least = 0.1};
    struct change_point *points;
    double x[120];
    size_t n;

    (void)state;
    noise(x, 120, 8);
    slip(x, 60, 120, 120, 0.999);
    assert_int_equal(change_points(x, 120, &options, &points, &n), 0);
    assert_int_equal(n, 0);
    assert_int_equal(change_points(x, 120, NULL, &points, &n), 0);
    assert_int_equal(n, 1);
    assert_int_equal(points[0].kind, CHANGE_SLIP);
    free(points);
}

/* More runs than the fit has room for. */
static void a_slip_may_run_for_years(void **state)
{
    double x[1500];
    struct found f;

    (void)state;
    noise(x, 1500, 3);
    slip(x, 200, 1399, 1500, 0.9995);
    f = find(x, 1400);
    assert_true(f.n >= 1);
    assert_int_equal(f.points[0].kind, CHANGE_SLIP);
    assert_in_range(f.points[0].at, 180, 220);
    assert_true(fabs(f.points[0].a_run - 0.9995) < 5e-5);
    free(f.points);
}

static void gaps_are_no_part_of_a_slip(void **state)
{
    double x[N + 20], y[N];
    struct found f, g;

    (void)state;
    noise(y, N, 5);
    slip(y, 30, N, N, 0.995);
    for (size_t i = 0; i < N + 20; i++)
        x[i] = i < 40 ? y[i] : i < 60 ? NAN : y[i - 20];
    f = find(x, N + 20);
    g = find(y, N);
    assert_int_equal(f.n, 1);
    assert_int_equal(g.n, 1);
    assert_int_equal(f.points[0].kind, CHANGE_SLIP);
    assert_int_equal(f.points[0].at, g.points[0].at);
    assert_int_equal(f.points[0].end, N + 19);
    assert_int_equal(f.points[0].seen, g.points[0].seen + (g.points[0].seen < 40 ? 0 : 20));
    assert_true(f.points[0].after == g.points[0].after && f.points[0].a_run == g.points[0].a_run);
    free(f.points);
    free(g.points);
}

/* Levels, steps, slips, strays and gaps in any order, at random. */
static size_t make_any(double *x, size_t most, uint64_t seed)
{
    double level = 0, rate = 0, sd;
    struct rng rng;
    size_t n;

    rng_seed(&rng, seed);
    n = 1 + rng_below(&rng, most);
    sd = seed % 5 ? pow(10, -1 - 4 * rng_double(&rng)) : 0;
    for (size_t i = 0; i < n; i++) {
        level += rng_below(&rng, 40) ? 0 : 0.3 * (rng_double(&rng) - 0.5);
        if (!rng_below(&rng, 40))
            rate = rng_below(&rng, 2) ? 0 : 0.02 * (rng_double(&rng) - 0.5);
        level += rate;
        x[i] = rng_below(&rng, 20) ? exp(level + sd * rng_normal(&rng)) : NAN;
        x[i] *= rng_below(&rng, 60) ? 1 : 0.01 + 5 * rng_double(&rng);
    }
    return n;
}

static void what_is_told_is_sound(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= (sanitized() ? 48 : 240); seed++) {
        double x[900] = {0};
        struct found f = find(x, make_any(x, seed % 24 ? 200 : 900, seed));

        for (size_t i = 0; i < f.n; i++) {
            const struct change_point *p = &f.points[i];

            assert_true(p->at >= 1 && p->at <= p->seen && p->at <= p->end);
            assert_true(p->at_low <= p->at_high);
            assert_false(isnan(x[p->at]) || isnan(x[p->end]) || isnan(x[p->seen]));
            assert_true(i == 0 || (p->at > p[-1].end && p->seen > p[-1].seen));
            assert_true(p->low <= p->ratio * (1 + 1e-9) && p->ratio <= p->high * (1 + 1e-9));
            assert_true(p->kind != CHANGE_SLIP || (p->a_run_low <= p->a_run * (1 + 1e-9) &&
                                                   p->a_run <= p->a_run_high * (1 + 1e-9)));
        }
        free(f.points);
    }
}

/* Least squares by the normal equations, as they stand in any textbook. */
static double unexplained(const double *x, size_t n, size_t b, size_t h)
{
    double u[N], mean = 0, mean_u = 0, xu = 0, uu = 0, sum = 0;

    for (size_t i = 0; i < n; i++) {
        u[i] = i <= b ? 0 : i >= h ? 1 : (double)(i - b) / (double)(h - b);
        mean += x[i] / (double)n;
        mean_u += u[i] / (double)n;
    }
    for (size_t i = 0; i < n; i++) {
        xu += (x[i] - mean) * (u[i] - mean_u);
        uu += (u[i] - mean_u) * (u[i] - mean_u);
    }
    for (size_t i = 0; i < n; i++)
        sum += pow(x[i] - mean - xu / uu * (u[i] - mean_u), 2);
    return sum;
}

static void the_ramp_is_by_least_squares(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        double x[N], least = INFINITY;
        struct change_ramp ramp;
        struct change_ramp_range range;
        struct rng rng;

        rng_seed(&rng, seed);
        for (size_t i = 0; i < N; i++) /* bounded: no value is far from its neighbours */
            x[i] = 0.01 * rng_double(&rng) - (i < 20 ? 0 : i < 40 ? 0.01 * ((double)i - 20) : 0.2);
        change_ramp_fit(x, N, 3, N, &ramp, &range);
        for (size_t b = 0; b + 1 < N; b++)
            for (size_t h = b + 1; h < N; h++)
                least = fmin(least, unexplained(x, N, b, h));
        assert_false(range.is_step || range.goes_on);
        assert_true(fabs(ramp.left - least) < 1e-9);
        assert_true(fabs(unexplained(x, N, ramp.before, ramp.end) - least) < 1e-9);
        assert_true(range.low <= ramp.total && ramp.total <= range.high);
        assert_true(range.before_low <= ramp.before && ramp.before <= range.before_high);
    }
}

static void where_a_line_is_left_is_found(void **state)
{
    double x[N];

    (void)state;
    for (size_t i = 0; i < N; i++)
        x[i] = 0.01 * (double)i + (i % 2 ? 0.001 : -0.001);
    assert_int_equal(change_slip_off(x, N, 1e-4), 0);
    for (size_t i = 50; i < N; i++)
        x[i] = x[49]; /* a level that the line leads to */
    assert_int_equal(change_slip_off(x, N, 1e-4), 10);
    for (size_t i = 50; i < N; i++)
        x[i] = x[0]; /* and one of its own */
    assert_int_equal(change_slip_off(x, N, 1e-4), 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slip_is_found_where_it_runs),
        cmocka_unit_test(a_slip_ends),
        cmocka_unit_test(a_slip_is_repaired),
        cmocka_unit_test(a_slip_may_have_no_beginning),
        cmocka_unit_test(slips_stay),
        cmocka_unit_test(those_that_slip_are_named),
        cmocka_unit_test(a_step_is_no_slip),
        cmocka_unit_test(slips_without_noise_are_no_trouble),
        cmocka_unit_test(the_least_slip_is_told),
        cmocka_unit_test(a_slip_may_run_for_years),
        cmocka_unit_test(gaps_are_no_part_of_a_slip),
        cmocka_unit_test(what_is_told_is_sound),
        cmocka_unit_test(the_ramp_is_by_least_squares),
        cmocka_unit_test(where_a_line_is_left_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
