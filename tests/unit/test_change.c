/* SPDX-License-Identifier: Apache-2.0 */
/* Change points of a case over its runs: what is a step, what is none, and what is told of one. */
#include "core/rng.h"
#include "harness/history/history.h"
#include "tests/unit/unit.h"

#define N 60

struct found {
    struct change_point *points;
    size_t n;
};

static struct found find(const double *x, size_t n)
{
    struct found f;

    assert_int_equal(change_points(x, n, &f.points, &f.n), 0);
    return f;
}

/* Around 100, of 1 %. */
static void noise(double *x, size_t n, uint64_t seed)
{
    struct rng rng;

    rng_seed(&rng, seed);
    for (size_t i = 0; i < n; i++)
        x[i] = 100 * exp(0.01 * rng_normal(&rng));
}

static void step(double *x, size_t from, size_t n, double factor)
{
    for (size_t i = from; i < n; i++)
        x[i] *= factor;
}

/* Each run from `from` to `to` is `rate` of the one before, times. */
static void slip(double *x, size_t from, size_t to, size_t n, double rate)
{
    double factor = 1;

    for (size_t i = from; i < n; i++) {
        factor *= i <= to ? rate : 1;
        x[i] *= factor;
    }
}

TEST(a_step_is_found_where_it_is)
{
    double x[N], y[N];
    struct found f, g;

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
    for (size_t i = 0; i < N; i++)
        y[i] = 1 / x[i]; /* up is as down */
    g = find(y, N);
    assert_int_equal(g.n, 1);
    assert_int_equal(g.points[0].at, f.points[0].at);
    assert_true(fabs(f.points[0].ratio * g.points[0].ratio - 1) < 1e-9);
    free(f.points);
    free(g.points);
}

/* A level that is left a little with every run is told as steps, which come to what was lost. */
TEST(a_slip_is_told_as_steps)
{
    double x[120], ratio = 1;
    struct found f;

    noise(x, 120, 1);
    slip(x, 60, 99, 120, 0.997);
    f = find(x, 120);
    assert_in_range(f.n, 2, 5);
    assert_in_range(f.points[0].seen, 62, 79);
    for (size_t i = 0; i < f.n; i++) {
        assert_true(f.points[i].high < 1);
        ratio *= f.points[i].ratio;
    }
    assert_true(fabs(ratio / pow(0.997, 40) - 1) < 0.02);
    free(f.points);
}

/* What was told is not taken back, nor told later than it was, nor moved. */
TEST(points_stay)
{
    size_t n_last = 0, seen[8] = {0}, at[8] = {0};
    double x[120];

    noise(x, 120, 3);
    step(x, 50, 120, 0.96);
    step(x, 90, 120, 1.05);
    for (size_t n = 0; n <= 120; n++) {
        struct found f = find(x, n);

        assert_true(f.n >= n_last && f.n <= n_last + 1);
        for (size_t i = 0; i < f.n; i++) {
            const struct change_point *p = &f.points[i];

            assert_true(p->at <= p->seen && p->seen < n);
            assert_true(i == 0 || p[-1].at < p->at);
            if (i == n_last) {
                seen[i] = n - 1;
                at[i] = p->at;
            }
            assert_int_equal(p->seen, seen[i]);
            assert_int_equal(p->at, at[i]);
        }
        n_last = f.n;
        free(f.points);
    }
    assert_int_equal(n_last, 2);
}

enum pattern { STRAYS, TWO_RUNS, TWO_LEVELS, WANDER, SHAPES };

static void make_shape(double *x, size_t n, enum pattern shape, uint64_t seed)
{
    struct rng rng;

    noise(x, n, seed);
    rng_seed(&rng, seed);
    if (shape == STRAYS) {
        x[20] *= 0.5;
        x[40] *= 1.5;
        x[n - 1] *= 0.3;
    } else if (shape == TWO_RUNS) {
        x[60] *= 0.85;
        x[61] *= 0.85;
    }
    for (size_t i = 0; i < n && shape == TWO_LEVELS; i++)
        x[i] *= rng_double(&rng) < 0.4 ? 0.93 : 1;
    for (size_t i = 0; i < n && shape == WANDER; i++)
        x[i] *= 1 + 0.007 * sin(2 * M_PI * (double)i / 120 + (double)seed);
}

/* Stray runs; two runs, which are no level yet; two levels at random from run to run; and a slow wander. */
TEST(what_is_no_change)
{
    static const size_t n[SHAPES] = {60, 100, 200, 365}, alarms_most[SHAPES] = {0, 2, 2, 2};

    for (enum pattern shape = 0; shape < SHAPES; shape++) {
        size_t alarms = 0;

        for (uint64_t seed = 1; seed <= 40; seed++) {
            double x[365];

            make_shape(x, n[shape], shape, seed);
            struct found f = find(x, n[shape]);
            alarms += f.n;
            free(f.points);
        }
        assert_in_range(alarms, 0, alarms_most[shape]);
    }
}

/* Runs without a value lie between others as if they were not there. */
TEST(gaps_are_left_out)
{
    double x[N + 20], y[N];
    struct found f, g;

    noise(y, N, 5);
    step(y, 45, N, 0.93);
    for (size_t i = 0; i < N + 20; i++)
        x[i] = i < 40 ? y[i] : i < 60 ? NAN : y[i - 20];
    f = find(x, N + 20);
    g = find(y, N);
    assert_int_equal(f.n, 1);
    assert_int_equal(g.n, 1);
    assert_int_equal(f.points[0].at, g.points[0].at + 20);
    assert_int_equal(f.points[0].seen, g.points[0].seen + 20);
    assert_true(f.points[0].after == g.points[0].after);
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

TEST(what_is_told_is_sound)
{
    for (uint64_t seed = 1; seed <= 24; seed++) {
        double x[200] = {0};
        struct found f = find(x, make_any(x, 200, seed));

        for (size_t i = 0; i < f.n; i++) {
            const struct change_point *p = &f.points[i];

            assert_true(p->at >= 1 && p->at <= p->seen);
            assert_true(p->at_low <= p->at_high);
            assert_false(isnan(x[p->at]) || isnan(x[p->seen]));
            assert_true(i == 0 || (p->at > p[-1].at && p->seen > p[-1].seen));
            assert_true(p->low <= p->ratio * (1 + 1e-9) && p->ratio <= p->high * (1 + 1e-9));
        }
        free(f.points);
    }
}

TEST(few_values_tell_nothing)
{
    double x[CHANGE_FIRST + CHANGE_SHORT];

    for (size_t n = 0; n < CHANGE_FIRST + CHANGE_SHORT; n++) {
        struct found f;

        noise(x, n, 1);
        step(x, n / 2, n, 0.1);
        f = find(x, n);
        assert_int_equal(f.n, 0);
        assert_null(f.points);
    }
}

TEST(values_without_noise_are_no_trouble)
{
    double x[N];

    for (int kind = 0; kind < 2; kind++) {
        for (size_t i = 0; i < N; i++)
            x[i] = 5;
        if (kind == 1)
            step(x, 50, N, 0.9);
        struct found f = find(x, N);
        assert_int_equal(f.n, kind > 0);
        if (kind == 1) {
            assert_int_equal(f.points[0].at, 50);
            assert_true(fabs(f.points[0].ratio - 0.9) < 1e-9);
        }
        free(f.points);
    }
}

/* In noise of 0.01 %: half a percent is a step, less is none. */
TEST(the_least_change_is_told)
{
    for (int told = 0; told < 2; told++) {
        double x[N];

        noise(x, N, 8);
        for (size_t i = 0; i < N; i++)
            x[i] = exp(log(x[i] / 100) / 100) * (i < 40 ? 1 : told ? 1.006 : 1.004);
        struct found f = find(x, N);
        assert_int_equal(f.n, told);
        free(f.points);
    }
}

TEST(bad_values_are_refused)
{
    const double bad[] = {0, -1, INFINITY, -INFINITY};
    struct change_point *points;
    double x[N];
    size_t n;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        noise(x, N, 1);
        x[17] = bad[i];
        assert_int_equal(change_points(x, N, &points, &n), -EDOM);
        assert_null(points);
    }
    for (size_t i = 0; i < N; i++)
        x[i] = NAN;
    assert_int_equal(change_points(x, N, &points, &n), 0);
    assert_int_equal(n, 0);
}
