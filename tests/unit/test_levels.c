// SPDX-License-Identifier: Apache-2.0
// Two levels: found in planted mixtures, not raised on one level, in simulation and by hand.
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/levels.h"
#include "tests/unit/sanitized.h"
#include "tests/unit/series.h"

#define SERIES (sanitized() ? 50 : 2000)
#define N_MAX  1000

// What is not two levels.

static void one_normal(struct rng *r, double *x, size_t n)
{
    series_normal(r, x, n);
    for (size_t i = 0; i < n; i++)
        x[i] = 100 + 0.5 * x[i];
}

static void one_lognormal_01(struct rng *r, double *x, size_t n)
{
    series_lognormal(r, 0.1, x, n);
}

static void one_lognormal_05(struct rng *r, double *x, size_t n)
{
    series_lognormal(r, 0.5, x, n);
}

static void one_lognormal_1(struct rng *r, double *x, size_t n)
{
    series_lognormal(r, 1, x, n);
}

static void one_student2(struct rng *r, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = 100 + series_student2(r);
}

static void one_pareto(struct rng *r, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = series_pareto15(r);
}

static void one_exponential(struct rng *r, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = -log(1 - rng_double(r));
}

static void one_uniform(struct rng *r, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = 100 + 10 * rng_double(r);
}

static void one_ar1(struct rng *r, double phi, double *x, size_t n)
{
    series_ar1(r, phi, x, n);
    for (size_t i = 0; i < n; i++)
        x[i] = 100 + 2 * x[i];
}

static void one_ar5(struct rng *r, double *x, size_t n)
{
    one_ar1(r, 0.5, x, n);
}

static void one_ar9(struct rng *r, double *x, size_t n)
{
    one_ar1(r, 0.9, x, n);
}

static void one_between_two_ticks(struct rng *r, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = 20 + (rng_double(r) < 0.4);
}

static void one_on_few_ticks(struct rng *r, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = round(20.3 + 0.6 * rng_normal(r));
}

static void one_rate_of_ticks(struct rng *r, double *x, size_t n)
{
    one_on_few_ticks(r, x, n);
    for (size_t i = 0; i < n; i++)
        x[i] = 4096 / (41.6666667 * x[i]) * (1 + 1e-13 * rng_normal(r));
}

static void one_constant(struct rng *r, double *x, size_t n)
{
    (void)r;
    for (size_t i = 0; i < n; i++)
        x[i] = 42;
}

static void one_drift(struct rng *r, double *x, size_t n)
{
    one_normal(r, x, n);
    for (size_t i = 0; i < n; i++)
        x[i] += 5 * (double)i / (double)n;
}

static void one_ramp(struct rng *r, double *x, size_t n)
{
    double slope = 1 + rng_double(r);

    for (size_t i = 0; i < n; i++)
        x[i] = 100 + slope * (double)i / (double)n;
}

static void one_random_walk(struct rng *r, double *x, size_t n)
{
    double at = 1000;

    for (size_t i = 0; i < n; i++)
        x[i] = at += rng_normal(r) * 3;
}

static void spiked(struct rng *r, double share, bool heavy, double *x, size_t n)
{
    one_normal(r, x, n);
    for (size_t i = 0; i < n; i++)
        if (rng_double(r) < share)
            x[i] *= heavy ? series_pareto15(r) : 1 - log(1 - rng_double(r));
}

static void one_spikes_1(struct rng *r, double *x, size_t n)
{
    spiked(r, 0.01, false, x, n);
}

static void one_spikes_5(struct rng *r, double *x, size_t n)
{
    spiked(r, 0.05, false, x, n);
}

static void one_heavy_spikes_5(struct rng *r, double *x, size_t n)
{
    spiked(r, 0.05, true, x, n);
}

static void one_equal_spikes_1(struct rng *r, double *x, size_t n)
{
    one_normal(r, x, n);
    for (size_t i = 0; i < n; i++)
        x[i] *= rng_double(r) < 0.01 ? 3 : 1;
}

// Two levels, but so near that they do not matter.
static void near_levels(struct rng *r, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = 100 + 0.8 * (rng_double(r) < 0.5) + 0.03 * rng_normal(r);
}

static const struct one {
    const char *name;
    void (*fill)(struct rng *r, double *x, size_t n);
} ones[] = {
    {"normal", one_normal},
    {"log-normal 0.1", one_lognormal_01},
    {"log-normal 0.5", one_lognormal_05},
    {"log-normal 1", one_lognormal_1},
    {"Student t, 2 degrees", one_student2},
    {"Pareto 1.5", one_pareto},
    {"exponential", one_exponential},
    {"uniform", one_uniform},
    {"AR(1), phi 0.5", one_ar5},
    {"AR(1), phi 0.9", one_ar9},
    {"between two ticks", one_between_two_ticks},
    {"on few ticks", one_on_few_ticks},
    {"rate of few ticks", one_rate_of_ticks},
    {"constant", one_constant},
    {"drift of 10 sigma", one_drift},
    {"ramp without noise", one_ramp},
    {"random walk", one_random_walk},
    {"1 % spikes", one_spikes_1},
    {"5 % spikes", one_spikes_5},
    {"5 % Pareto spikes", one_heavy_spikes_5},
    {"1 % equal spikes", one_equal_spikes_1},
    {"levels 0.8 % apart", near_levels},
};

enum { ONES = sizeof(ones) / sizeof(*ones) };

static int false_row(const struct one *one, bool launches, const size_t *lengths, int count)
{
    int too_many = 0;

    print_message("  %-22s", one->name);
    for (int l = 0; l < count; l++) {
        struct rng r;
        int raised = 0;

        rng_seed(&r, (uint64_t)(one - ones) * 10 + (uint64_t)l);
        for (int i = 0; i < SERIES; i++) {
            double x[N_MAX];
            struct levels levels;

            one->fill(&r, x, lengths[l]);
            int rc = launches ? levels_of_launches(x, lengths[l], &levels)
                              : levels_of_samples(x, lengths[l], &levels);

            assert_int_equal(rc, 0);
            raised += levels.two;
        }
        print_message("  n=%-4zu %4.2f %%", lengths[l], 100.0 * raised / SERIES);
        too_many += !sanitized() && raised > SERIES / 100;
    }
    print_message("%s\n", too_many ? "  TOO MANY" : "");
    return too_many;
}

static void test_one_level_is_not_two(void **unused)
{
    const size_t lengths[] = {20, 50, 200, 1000};
    int too_many = 0;

    (void)unused;
    for (int k = 0; k < ONES; k++)
        too_many += false_row(&ones[k], false, lengths, 4);
    assert_int_equal(too_many, 0);
}

static void test_launches_of_one_level_are_not_two(void **unused)
{
    const size_t lengths[] = {3, 4, 5, 6, 8, 10, 20};
    int too_many = 0;

    (void)unused;
    for (int k = 0; k < ONES; k++)
        if (ones[k].fill !=
            one_pareto) // launches do not scatter so; a pair of them is found in 1.3 %
            too_many += false_row(&ones[k], true, lengths, 7);
    assert_int_equal(too_many, 0);
}

// Planted levels, 5 % apart.

enum order { MIXED, STICKY, STEP };

static const char *const order_names[] = {"mixed", "sticky", "step"};

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

static int power_row(enum order order, double share, double noise, const size_t *lengths)
{
    int too_few = 0;

    print_message("  %-7s %2.0f/%-2.0f noise %.1f %%", order_names[order], 100 - 100 * share,
                  100 * share, 100 * noise);
    for (int l = 0; l < 4; l++) {
        struct rng r;
        int series = 0, found = 0;

        rng_seed(&r, (uint64_t)order * 100 + (uint64_t)(share * 100) + (uint64_t)l);
        for (int i = 0; i < SERIES; i++) {
            double x[N_MAX];
            struct levels levels;

            if (plant(&r, order, share, noise, x, lengths[l]) < LEVELS_MIN_COUNT)
                continue;
            series++;
            assert_int_equal(levels_of_samples(x, lengths[l], &levels), 0);
            found += levels.two;
        }
        if (series >= SERIES / 20)
            print_message("  n=%-4zu %5.1f %%", lengths[l], 100.0 * found / series);
        else
            print_message("  n=%-4zu     - ", lengths[l]);
        too_few += !sanitized() && series >= SERIES / 20 && found < 0.95 * series;
    }
    print_message("\n");
    return too_few;
}

static void test_planted_levels_are_found(void **unused)
{
    const size_t lengths[] = {50, 100, 200, 1000};
    const double shares[] = {0.5, 0.2, 0.1};
    int too_few = 0;

    (void)unused;
    for (enum order order = MIXED; order <= STEP; order++)
        for (int s = 0; s < 3; s++)
            too_few += power_row(order, shares[s], 0.005, lengths);
    assert_int_equal(too_few, 0);
    // With twice the noise (5 standard deviations apart) only much data on both tells.
    const size_t more[] = {200, 300, 500, 1000};

    too_few = power_row(MIXED, 0.5, 0.01, more);
    assert_int_equal(too_few, 0);
}

static void test_planted_launches_are_found(void **unused)
{
    const struct {
        size_t n;
        double noise, least; // percent found
    } cases[] = {{4, 0.001, 75},  {5, 0.001, 95},  {6, 0.0025, 75},
                 {8, 0.0025, 95}, {10, 0.005, 65}, {20, 0.005, 85}};

    (void)unused;
    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        size_t least = cases[c].n < 10 ? 2 : 3;
        struct rng r;
        int series = 0, found = 0;

        rng_seed(&r, c);
        while (series < SERIES) {
            double x[N_MAX];
            struct levels levels;

            if (plant(&r, MIXED, 0.5, cases[c].noise, x, cases[c].n) < least)
                continue;
            series++;
            assert_int_equal(levels_of_launches(x, cases[c].n, &levels), 0);
            found += levels.two;
        }
        print_message("  %2zu launches, noise %.2f %%: %5.1f %%\n", cases[c].n,
                      100 * cases[c].noise, 100.0 * found / SERIES);
        assert_true(sanitized() || 100.0 * found / SERIES >= cases[c].least);
    }
}

// By hand.

static void assert_one(const struct levels *l)
{
    assert_false(l->two);
    assert_true(isnan(l->low) && isnan(l->high) && isnan(l->share_low) && isnan(l->share_high));
    assert_true(isnan(l->separation) && isnan(l->p_value));
}

static void test_what_is_said_of_two_levels(void **unused)
{
    // Levels of 100, 101, 102 and 150, 151, 152 in equal parts; 60 and 30 samples, in turn.
    double x[90], before[90];
    struct levels l;

    (void)unused;
    for (int i = 0; i < 90; i++)
        x[i] = (i % 3 == 2 ? 150 : 100) + (i + i / 3) % 3;
    memcpy(before, x, sizeof(x));
    assert_int_equal(levels_of_samples(x, 90, &l), 0);
    assert_memory_equal(x, before, sizeof(x));
    assert_true(l.two && l.low == 101 && l.high == 151);
    assert_true(fabs(l.share_low - 2.0 / 3) < 1e-12 && fabs(l.share_high - 1.0 / 3) < 1e-12);
    // Each level is spread evenly over 3 ticks: 10 to 90 % of them are 2.4, for a normal 2.563
    // sigma.
    assert_true(fabs(l.separation - 50 / (2.4 / 2.563)) < 1.5);
    // The windows of the levels hold 60 and 30 samples, the valley none; nothing is correlated.
    assert_true(fabs(l.p_value / 0x1p-30 - 1) < 1e-9);
    // The order does not matter where it is the same noise on each level.
    for (int i = 0; i < 90; i++)
        x[i] = (i >= 60 ? 150 : 100) + i % 3;
    assert_int_equal(levels_of_samples(x, 90, &l), 0);
    assert_true(l.two && l.low == 101 && l.high == 151 && fabs(l.share_low - 2.0 / 3) < 1e-12);
}

static void test_what_is_said_of_two_levels_of_launches(void **unused)
{
    const double x[] = {100, 120, 100.3, 100.1, 120.4, 100.2};
    const double outlier[] = {100, 100.4, 100.3, 100.1, 100.2, 120};
    struct levels l;

    (void)unused;
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
static void test_two_values_alone_are_ticks(void **unused)
{
    double x[100];
    struct levels l;

    (void)unused;
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

static void test_difference_that_matters(void **unused)
{
    double x[100];
    struct levels l;
    struct rng r;

    (void)unused;
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

// Samples on a rare level count as a level where they come in a row, else as outliers.
static void test_rare_samples_in_a_row(void **unused)
{
    double x[1000];
    struct levels l;
    struct rng r;

    (void)unused;
    rng_seed(&r, 2);
    for (int row = 0; row < 2; row++)
        for (int sign = -1; sign <= 1; sign += 2) {
            for (int i = 0; i < 1000; i++)
                x[i] = 100 + 0.3 * rng_normal(&r) +
                       sign * 10 * (row ? i >= 500 && i < 520 : i % 50 == 0);
            assert_int_equal(levels_of_samples(x, 1000, &l), 0);
            assert_true(l.two == row);
            if (row)
                assert_true(fabs((sign < 0 ? l.share_low : l.share_high) - 0.02) < 1e-9);
        }
}

// Rows are long enough from three samples on, on average, and ten samples are the least.
static void test_how_rare_and_how_long_a_row(void **unused)
{
    const struct {
        int samples, row;
        bool two;
    } cases[] = {{18, 3, true}, {18, 2, false}, {10, 10, true}, {9, 9, false}};
    double x[1000];
    struct levels l;
    struct rng r;

    (void)unused;
    rng_seed(&r, 5);
    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        for (int i = 0; i < 1000; i++)
            x[i] = 100 + 0.3 * rng_normal(&r) +
                   (i % 50 >= 20 && i % 50 < 20 + cases[c].row &&
                            i / 50 < cases[c].samples / cases[c].row
                        ? 10
                        : 0);
        assert_int_equal(levels_of_samples(x, 1000, &l), 0);
        assert_true(l.two == cases[c].two);
    }
}

// Without order in time the share decides, as counted at the middle between the levels.
static void test_share_of_a_rare_level(void **unused)
{
    double x[1000];
    struct levels l;
    struct rng r;

    (void)unused;
    rng_seed(&r, 3);
    for (int rare = 72; rare <= 78; rare += 6) {
        for (int i = 0; i < 1000; i++)
            x[i] = 100 + 0.3 * rng_normal(&r) + (i % 12 == 0 && i / 12 < rare ? 10 : 0);
        assert_int_equal(levels_of_samples(x, 1000, &l), 0);
        assert_true(l.two == (rare == 78));
    }
    assert_true(fabs(l.share_high - 0.078) < 1e-9);
    for (int rare = 10; rare <= 14; rare += 4) { // 5.8 % of 200 are 11.5
        for (int i = 0; i < 200; i++)
            x[i] = 100 + 0.3 * rng_normal(&r) + (i % 12 == 0 && i / 12 < rare ? 10 : 0);
        assert_int_equal(levels_of_samples(x, 200, &l), 0);
        assert_true(l.two == (rare == 14));
    }
}

// A few equal outliers, however far, do not hide the two levels of the rest.
static void test_levels_beside_outliers(void **unused)
{
    double x[1000];
    struct levels l;
    struct rng r;

    (void)unused;
    rng_seed(&r, 4);
    for (int i = 0; i < 1000; i++)
        x[i] = i % 67 == 0 ? 1000 : (i % 2 ? 105 : 100) + 0.5 * rng_normal(&r);
    assert_int_equal(levels_of_samples(x, 1000, &l), 0);
    assert_true(l.two && fabs(l.low - 100) < 0.2 && fabs(l.high - 105) < 0.2);
}

static void test_small_and_bad_input(void **unused)
{
    double x[40];
    struct levels l;

    (void)unused;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_said_of_two_levels),
        cmocka_unit_test(test_what_is_said_of_two_levels_of_launches),
        cmocka_unit_test(test_two_values_alone_are_ticks),
        cmocka_unit_test(test_difference_that_matters),
        cmocka_unit_test(test_rare_samples_in_a_row),
        cmocka_unit_test(test_how_rare_and_how_long_a_row),
        cmocka_unit_test(test_share_of_a_rare_level),
        cmocka_unit_test(test_levels_beside_outliers),
        cmocka_unit_test(test_small_and_bad_input),
        cmocka_unit_test(test_one_level_is_not_two),
        cmocka_unit_test(test_launches_of_one_level_are_not_two),
        cmocka_unit_test(test_planted_levels_are_found),
        cmocka_unit_test(test_planted_launches_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
