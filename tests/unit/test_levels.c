// SPDX-License-Identifier: Apache-2.0
// Two levels: found in planted mixtures, not raised on one level, in simulation and by hand.
#include "core/levels.h"
#include "tests/unit/series.h"
#include "tests/unit/unit.h"

#define SERIES 300
#define N_MAX  1000

// What is not two levels.

// clang-format off
enum one {
    NORMAL, STUDENT2, EXPONENTIAL, AR5, AR9, TWO_TICKS, FEW_TICKS, RATE_OF_TICKS, CONSTANT, DRIFT,
    RAMP, WALK, SPIKES_5, HEAVY_SPIKES_5, EQUAL_SPIKES_1, NEAR_LEVELS, UNIFORM, LOGNORMAL_01, LOGNORMAL_1,
    ONES
};
// clang-format on

static double heavy(enum one one, struct rng *r)
{
    return one == HEAVY_SPIKES_5 ? series_pareto15(r) : 1 - log(1 - rng_double(r));
}

static void fill(enum one one, struct rng *r, double *x, size_t n)
{
    double slope = 1 + rng_double(r), walk = 1000;

    if (one == LOGNORMAL_01 || one == LOGNORMAL_1)
        series_lognormal(r, one == LOGNORMAL_1 ? 1 : 0.1, x, n);
    else if (one == AR5 || one == AR9)
        series_ar1(r, one == AR5 ? 0.5 : 0.9, x, n);
    else
        series_normal(r, x, n);
    for (size_t i = 0; i < n; i++) {
        double z = x[i], near = 100 + 0.5 * z, at = (double)i / (double)n;
        double ticks = round(20.3 + 0.6 * z);

        x[i] = one == NORMAL           ? near
               : one == STUDENT2       ? 100 + series_student2(r)
               : one == EXPONENTIAL    ? -log(1 - rng_double(r))
               : one <= AR9            ? 100 + 2 * z
               : one == TWO_TICKS      ? 20 + (rng_double(r) < 0.4)
               : one == FEW_TICKS      ? ticks
               : one == RATE_OF_TICKS  ? 98.304 / ticks * (1 + 1e-13 * rng_normal(r))
               : one == CONSTANT       ? 42
               : one == DRIFT          ? near + 5 * at
               : one == RAMP           ? 100 + slope * at
               : one == WALK           ? (walk += 3 * z)
               : one <= HEAVY_SPIKES_5 ? near * (rng_double(r) < 0.05 ? heavy(one, r) : 1)
               : one == EQUAL_SPIKES_1 ? near * (rng_double(r) < 0.01 ? 3 : 1)
               : one == UNIFORM        ? 100 + 10 * rng_double(r)
               : one == NEAR_LEVELS    ? 100 + 0.8 * (rng_double(r) < 0.5) + 0.03 * z
                                       : z;
    }
}

// At most 1 % of series of one level are said to have two.
static void check_ones(int (*of)(const double *x, size_t n, struct levels *out),
                       const size_t *lengths, int count, int series)
{
    for (enum one one = NORMAL; one < ONES; one++)
        for (int l = 0; l < count; l++) {
            struct rng r;
            int raised = 0;

            rng_seed(&r, (uint64_t)one * 10 + (uint64_t)l);
            for (int i = 0; i < series; i++) {
                double x[N_MAX];
                struct levels levels;

                fill(one, &r, x, lengths[l]);
                assert_int_equal(of(x, lengths[l], &levels), 0);
                raised += levels.two;
            }
            if (raised > series / 100)
                fail_msg("series %d of %zu: %d of %d", one, lengths[l], raised, series);
        }
}

TEST(test_one_level_is_not_two)
{
    check_ones(levels_of_samples, (const size_t[]){20, 50, 200}, 3, 600);
    check_ones(levels_of_launches, (const size_t[]){4, 5, 6, 10, 20}, 5, 2000);
}

// Planted levels, 5 % apart.

enum order { MIXED, STICKY, STEP };

// Fills x and returns how many samples are on the rarer level. A sticky machine stays on the rarer
// level for a tenth of the series at a time, on average.
static size_t plant(struct rng *r, enum order order, double share, double noise, double *x,
                    size_t n)
{
    double leave = 10 / (double)n, enter = leave * share / (1 - share);
    bool high = rng_double(r) < share;
    size_t count = 0;

    for (size_t i = 0; i < n; i++) {
        if (order == MIXED)
            high = rng_double(r) < share;
        else if (order == STEP)
            high = (double)i >= (double)n * (1 - share);
        else if (rng_double(r) < (high ? leave : enter))
            high = !high;
        count += high;
        x[i] = (high ? 105 : 100) * (1 + noise * rng_normal(r));
    }
    return count < n - count ? count : n - count;
}

// Where there are enough samples on both, 95 % of planted levels are found.
TEST(test_planted_levels_are_found)
{
    static const struct {
        double share, noise;
        size_t n;
    } cases[] = {{0.5, 0.005, 50},  {0.5, 0.005, 200}, {0.2, 0.005, 100},
                 {0.2, 0.005, 200}, {0.1, 0.005, 200}, {0.5, 0.01, 300}};

    for (enum order order = MIXED; order <= STEP; order++)
        for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
            struct rng r;
            int series = 0, found = 0;

            if (order != MIXED && cases[c].noise > 0.005)
                continue;
            rng_seed(&r, (uint64_t)order * 100 + c);
            for (int i = 0; i < SERIES; i++) {
                double x[N_MAX];
                struct levels levels;

                if (plant(&r, order, cases[c].share, cases[c].noise, x, cases[c].n) <
                    LEVELS_MIN_COUNT)
                    continue;
                series++;
                assert_int_equal(levels_of_samples(x, cases[c].n, &levels), 0);
                found += levels.two;
            }
            if (series >= SERIES / 20 && found < 0.95 * series)
                fail_msg("order %d, case %zu: %d of %d", order, c, found, series);
        }
}

TEST(test_planted_launches_are_found)
{
    const struct {
        size_t n;
        double noise, least; // percent found
    } cases[] = {{4, 0.001, 75},  {5, 0.001, 95},  {6, 0.0025, 75},
                 {8, 0.0025, 95}, {10, 0.005, 65}, {20, 0.005, 85}};

    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        struct rng r;
        int series = 0, found = 0;

        rng_seed(&r, c);
        while (series < SERIES) {
            double x[N_MAX];
            struct levels levels;

            if (plant(&r, MIXED, 0.5, cases[c].noise, x, cases[c].n) < (cases[c].n < 10 ? 2 : 3))
                continue;
            series++;
            assert_int_equal(levels_of_launches(x, cases[c].n, &levels), 0);
            found += levels.two;
        }
        if (100.0 * found / SERIES < cases[c].least)
            fail_msg("case %zu: %d of %d", c, found, SERIES);
    }
}

// By hand.

static void assert_one(const struct levels *l)
{
    assert_false(l->two);
    assert_true(isnan(l->low) && isnan(l->high) && isnan(l->share_low) && isnan(l->share_high));
    assert_true(isnan(l->separation) && isnan(l->p_value));
}

TEST(test_what_is_said_of_two_levels)
{
    // Levels of 100, 101, 102 and 150, 151, 152 in equal parts; 60 and 30 samples, in turn.
    double x[90], before[90];
    struct levels l;

    for (int i = 0; i < 90; i++)
        x[i] = (i % 3 == 2 ? 150 : 100) + (i + i / 3) % 3;
    memcpy(before, x, sizeof(x));
    assert_int_equal(levels_of_samples(x, 90, &l), 0);
    assert_memory_equal(x, before, sizeof(x));
    assert_true(l.two && l.low == 101 && l.high == 151);
    assert_true(fabs(l.share_low - 2.0 / 3) < 1e-12 && fabs(l.share_high - 1.0 / 3) < 1e-12);
    // Evenly over 3 ticks: 10 to 90 % of them are 2.4, for a normal 2.563 sigma.
    assert_true(fabs(l.separation - 50 / (2.4 / 2.563)) < 1.5);
    // The windows of the levels hold 60 and 30 samples, the valley none; nothing is correlated.
    assert_true(fabs(l.p_value / 0x1p-30 - 1) < 1e-9);
    // The order does not matter where it is the same noise on each level.
    for (int i = 0; i < 90; i++)
        x[i] = (i >= 60 ? 150 : 100) + i % 3;
    assert_int_equal(levels_of_samples(x, 90, &l), 0);
    assert_true(l.two && l.low == 101 && l.high == 151 && fabs(l.share_low - 2.0 / 3) < 1e-12);
}

TEST(test_what_is_said_of_two_levels_of_launches)
{
    const double x[] = {100, 120, 100.3, 100.1, 120.4, 100.2};
    const double outlier[] = {100, 100.4, 100.3, 100.1, 100.2, 120};
    struct levels l;

    assert_int_equal(levels_of_launches(x, 6, &l), 0);
    assert_true(l.two && fabs(l.low - 100.15) < 1e-9 && fabs(l.high - 120.2) < 1e-9);
    assert_true(fabs(l.share_high - 1.0 / 3) < 1e-12 && fabs(l.share_low - 2.0 / 3) < 1e-12);
    assert_true(fabs(l.separation - 20.05 / sqrt(0.08)) < 1e-6 && isnan(l.p_value));
    assert_int_equal(levels_of_launches(outlier, 6, &l), 0);
    assert_one(&l);
    assert_int_equal(levels_of_launches(x, 3, &l), 0);
    assert_one(&l);
    double many[40];

    for (int high = 4; high <= 5; high++) { // an eighth is the least share
        for (int i = 0; i < 40; i++)
            many[i] = (i < high ? 120 : 100) + 0.01 * i;
        assert_int_equal(levels_of_launches(many, 40, &l), 0);
        assert_true(l.two == (high == 5));
    }
}

// Equal values on both levels: a clock that knows only those two, or launches on two of its ticks.
TEST(test_two_values_alone_are_ticks)
{
    double x[100];
    struct levels l;

    for (int i = 0; i < 100; i++)
        x[i] = i % 2 ? 120 : 100;
    assert_int_equal(levels_of_samples(x, 100, &l), 0);
    assert_one(&l);
    assert_int_equal(levels_of_launches(x, 10, &l), 0);
    assert_one(&l);
    x[0] = 101; // one finer step shows that 100 and 120 are no neighbours
    assert_int_equal(levels_of_samples(x, 100, &l), 0);
    assert_true(l.two && l.low == 100 && l.high == 120 && l.share_high == 0.5);
}

TEST(test_difference_that_matters)
{
    double x[100];
    struct levels l;
    struct rng r;

    rng_seed(&r, 1);
    for (int high = 0; high < 2; high++) {
        for (int i = 0; i < 100; i++)
            x[i] = (i % 2 ? 100 * (1 + LEVELS_MIN_DIFFERENCE * (high ? 1.1 : 0.9)) : 100) +
                   0.01 * rng_normal(&r);
        assert_int_equal(levels_of_samples(x, 100, &l), 0);
        assert_true(l.two == high);
        assert_int_equal(levels_of_launches(x, 12, &l), 0);
        assert_true(l.two == high);
    }
}

// Samples on a rare level count as a level by their share, or where they come in rows of three and
// more, ten at the least.
TEST(test_rare_samples)
{
    const struct {
        int n, every, from, row, samples;
        bool two;
    } cases[] = {{1000, 1000, 500, 20, 20, true}, {1000, 50, 0, 1, 20, false},
                 {1000, 50, 20, 3, 18, true},     {1000, 50, 20, 2, 18, false},
                 {1000, 50, 20, 10, 10, true},    {1000, 50, 20, 9, 9, false},
                 {1000, 12, 0, 1, 78, true},      {1000, 12, 0, 1, 72, false},
                 {200, 12, 0, 1, 14, true},       {200, 12, 0, 1, 10, false}}; // 5.8 % are 11.5
    double x[1000];
    struct levels l;
    struct rng r;

    rng_seed(&r, 2);
    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++)
        for (int sign = -1; sign <= 1; sign += 2) {
            int n = cases[c].n;

            for (int i = 0; i < n; i++) {
                int at = i - cases[c].from;
                bool rare = at >= 0 && at % cases[c].every < cases[c].row &&
                            at / cases[c].every < cases[c].samples / cases[c].row;

                x[i] = 100 + 0.3 * rng_normal(&r) + (rare ? 10 * sign : 0);
            }
            assert_int_equal(levels_of_samples(x, (size_t)n, &l), 0);
            if (l.two != cases[c].two)
                fail_msg("case %zu", c);
            if (l.two)
                assert_true(fabs((sign < 0 ? l.share_low : l.share_high) -
                                 (double)cases[c].samples / n) < 1e-9);
        }
}

// A few equal outliers, however far, do not hide the two levels of the rest.
TEST(test_levels_beside_outliers)
{
    double x[1000];
    struct levels l;
    struct rng r;

    rng_seed(&r, 4);
    for (int i = 0; i < 1000; i++)
        x[i] = i % 67 == 0 ? 1000 : (i % 2 ? 105 : 100) + 0.5 * rng_normal(&r);
    assert_int_equal(levels_of_samples(x, 1000, &l), 0);
    assert_true(l.two && fabs(l.low - 100) < 0.2 && fabs(l.high - 105) < 0.2);
}

TEST(test_small_and_bad_input)
{
    double x[40];
    struct levels l;

    for (int i = 0; i < 40; i++)
        x[i] = (i % 2 ? 200 : 100) + i / 2 % 3;
    assert_int_equal(levels_of_samples(x, LEVELS_MIN_SAMPLES - 1, &l), 0);
    assert_one(&l);
    assert_int_equal(levels_of_samples(x, LEVELS_MIN_SAMPLES, &l), 0);
    assert_true(l.two);
    for (size_t n = 1; n <= 4; n++)
        assert_int_equal(levels_of_launches(x, n, &l), 0);
    assert_int_equal(levels_of_samples(x, 0, &l), -EINVAL);
    assert_int_equal(levels_of_launches(x, 0, &l), -EINVAL);
    x[30] = NAN;
    l = (struct levels){.two = true};
    assert_int_equal(levels_of_samples(x, 40, &l), -EDOM);
    assert_one(&l);
    x[1] = INFINITY;
    l = (struct levels){.two = true};
    assert_int_equal(levels_of_launches(x, 10, &l), -EDOM);
    assert_one(&l);
}
