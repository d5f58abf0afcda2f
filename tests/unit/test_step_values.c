/* SPDX-License-Identifier: Apache-2.0 */
/* The interval of a job's efficiency, against the truth of two made-up jobs. */
#include "benches/step/work.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/rng.h"
#include "core/stats.h"

#define JOBS 1000

/* A rate whose median is known: symmetric, or with a tail of slow steps. */
static void fill(struct rng *rng, double *rates, size_t n, double median, bool tail)
{
    for (size_t i = 0; i < n; i++) {
        double x = rng_normal(rng);
        rates[i] = median / (1 + .05 * (tail && x > 0 ? 3 * x : x));
    }
}

/* Of so many pairs of jobs, one of half the rate of the other: how often the interval has 50 %. */
static double covered(size_t n_base, size_t n, bool tail)
{
    static double base[STEP_SAMPLES], rates[STEP_SAMPLES];
    double percent[VALUES_BLOCKS];
    unsigned inside = 0;
    struct rng rng;

    rng_seed(&rng, n_base + n);
    for (unsigned i = 0; i < JOBS; i++) {
        struct median_ci ci;
        fill(&rng, base, n_base, 400, tail);
        fill(&rng, rates, n, 200, tail);
        size_t values = values_efficiency(base, n_base, rates, n, percent);
        assert_int_equal(stats_ci_median(percent, values, .95, &ci), 0);
        inside += ci.low <= 50 && ci.high >= 50;
    }
    return (double)inside / JOBS;
}

/* The base was measured, too: with few samples it varies more than the other job. */
static void test_interval_covers_the_truth(void **state)
{
    static const size_t jobs[][2] = {{160, 160}, {40, 800}, {800, 40}, {20, 25}, {2048, 100}};

    (void)state;
    for (size_t i = 0; i < sizeof(jobs) / sizeof(*jobs); i++)
        for (int tail = 0; tail < 2; tail++) {
            double share = covered(jobs[i][0], jobs[i][1], tail);
            if (share < .92)
                fail_msg("%zu and %zu samples: the interval covers %.3f", jobs[i][0], jobs[i][1],
                         share);
        }
}

static void test_equal_jobs_and_few_samples(void **state)
{
    double base[3] = {4, 4, 4}, rates[40], percent[VALUES_BLOCKS];

    (void)state;
    for (size_t i = 0; i < 40; i++)
        rates[i] = 3;
    assert_int_equal(values_efficiency(base, 3, rates, 40, percent), 3);
    assert_true(percent[0] == 75 && percent[2] == 75);
    assert_int_equal(values_efficiency(base, 0, rates, 40, percent), 0);
    assert_int_equal(values_efficiency(rates, 40, base, 0, percent), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_interval_covers_the_truth),
                                       cmocka_unit_test(test_equal_jobs_and_few_samples)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
