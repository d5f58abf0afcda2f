// SPDX-License-Identifier: Apache-2.0
// What the intervals of few samples and of few launches cover, by a generator that is no part of the
// program: docs/statistics.md has these tables.
#include "core/stats.h"
#include "tests/unit/unit.h"

#define SERIES 4000
#define MANY   100000 // launches that tell what is true

// A multiplicative congruential generator (L'Ecuyer 1999, table 2, modulus 2^61 - 1).
static uint64_t drawn;

static double uniform(void)
{
    drawn = (uint64_t)((unsigned __int128)drawn * 437799614237992725u % 2305843009213693951u);
    return (double)drawn / 2305843009213693951.0;
}

// The polar method.
static double normal(void)
{
    double a, b, square;

    do {
        a = 2 * uniform() - 1;
        b = 2 * uniform() - 1;
        square = a * a + b * b;
    } while (square >= 1 || square == 0);
    return a * sqrt(-2 * log(square) / square);
}

static void autoregressive(double phi, double *x, size_t n)
{
    x[0] = normal();
    for (size_t i = 1; i < n; i++)
        x[i] = phi * x[i - 1] + sqrt(1 - phi * phi) * normal();
}

// Of all series, in %: the share that has an interval, and that whose interval misses.
TEST(few_samples_have_a_true_interval_or_none)
{
    const size_t n[] = {7, 15, 20, 30, 50, 100};
    const double phi[] = {0, 0.5, 0.9};

    for (int p = 0; p < 3; p++)
        for (size_t i = 0; i < sizeof(n) / sizeof(n[0]); i++) {
            double x[100], told = 0, wrong = 0;

            drawn = 20240229 + n[i];
            for (int k = 0; k < SERIES / 4; k++) {
                struct median_ci ci;

                autoregressive(phi[p], x, n[i]);
                assert_int_equal(stats_ci_samples(x, n[i], 0.95, &ci), 0);
                told += 400.0 / SERIES * !isnan(ci.low);
                wrong += 400.0 / SERIES * (ci.low > 0 || ci.high < 0);
            }
            if (!(wrong <= 10) || (phi[p] == 0 && n[i] >= 20 && !(told > 80)))
                fail_msg("AR(1) %.1f, n %zu: %.1f %% have one, %.1f %% miss", phi[p], n[i], told,
                         wrong);
        }
}

enum kind { NORMAL, STUDENT3, EXPONENTIAL, KINDS };

// A launch of 100, a tenth of a percent apart from others.
static double launch(enum kind kind)
{
    double z = normal();

    if (kind == STUDENT3)
        z /= sqrt((pow(normal(), 2) + pow(normal(), 2) + pow(normal(), 2)) / 3);
    else if (kind == EXPONENTIAL)
        z = -log(uniform());
    return 100 + 0.1 * z;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void truth_of(enum kind kind, double *centre, double *median)
{
    double *x = malloc(MANY * sizeof(*x)), sum = 0;

    assert_non_null(x);
    for (int i = 0; i < MANY; i++) {
        x[i] = launch(kind);
        sum += log(x[i]) / MANY;
    }
    qsort(x, MANY, sizeof(*x), ascending);
    *centre = exp(sum);
    *median = x[MANY / 2];
    free(x);
}

TEST(launches_are_covered)
{
    const size_t n[] = {2, 3, 4, 5, 6, 10, 30};

    for (enum kind k = NORMAL; k < KINDS; k++) {
        double centre, median, x[32];

        drawn = 4711 + k;
        truth_of(k, &centre, &median);
        for (size_t i = 0; i < sizeof(n) / sizeof(n[0]); i++) {
            double of_centre = 0, of_median = 0;

            for (int s = 0; s < SERIES; s++) {
                struct median_ci ci;

                for (size_t l = 0; l < n[i]; l++)
                    x[l] = launch(k);
                assert_int_equal(stats_ci_launches(x, n[i], 0.95, &ci), 0);
                of_centre += 100.0 / SERIES * (ci.low <= centre && centre <= ci.high);
                of_median += 100.0 / SERIES * (ci.low <= median && median <= ci.high);
            }
            if (!(k <= STUDENT3 ? of_centre >= 94 && of_median >= 94
                                : of_centre >= 86 && of_median >= 92))
                fail_msg("kind %d, %zu launches: the mean %.1f %%, the median %.1f %%", k, n[i],
                         of_centre, of_median);
        }
    }
}

// R: exp(t.test(log(c(10, 11, 12)))$conf.int)
TEST(launches_by_hand)
{
    const double x[] = {10, 12, 11}, same[] = {5, 5}, below[] = {-1, 1};
    const double far[] = {100, 101, 100.5, 100.2, 140};
    struct median_ci ci;

    double logs[] = {log(10), log(12), log(11)}, mean = (logs[0] + logs[1] + logs[2]) / 3;
    double variance =
        (pow(logs[0] - mean, 2) + pow(logs[1] - mean, 2) + pow(logs[2] - mean, 2)) / 2;
    double half = 4.302652729911275 * sqrt(variance / 3);

    assert_int_equal(stats_ci_launches(x, 3, 0.95, &ci), 0);
    assert_true(fabs(ci.low - exp(mean - half)) < 1e-9 && fabs(ci.high - exp(mean + half)) < 1e-9);
    assert_true(ci.median == 11 && ci.low < 8.8 && ci.high > 13.7);
    assert_int_equal(stats_ci_launches(x, 1, 0.95, &ci), 0);
    assert_true(ci.median == 10 && isnan(ci.low) && isnan(ci.high));
    assert_int_equal(stats_ci_launches(same, 2, 0.95, &ci), 0);
    assert_true(fabs(ci.low - 5) < 1e-12 && fabs(ci.high - 5) < 1e-12);
    assert_int_equal(stats_ci_launches(below, 2, 0.95, &ci), 0); // no logarithm: t itself
    assert_true(fabs(ci.low + 12.706204736432095) < 1e-9 && fabs(ci.high + ci.low) < 1e-9);
    assert_int_equal(stats_ci_launches(x, 0, 0.95, &ci), -EINVAL);
    assert_int_equal(stats_ci_launches(far, 5, 0.95, &ci), 0); // of five at least their range
    assert_true(ci.low <= 100 && ci.high >= 140);
}
