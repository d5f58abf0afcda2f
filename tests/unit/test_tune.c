/* SPDX-License-Identifier: Apache-2.0 */
/* Where a plateau begins, and when a search for it ends. */
#include "benches/net/net_work.h"
#include "tests/unit/unit.h"

/* Rates in the order of the doublings, the last one 0. */
static bool is_there(void *arg, unsigned i, const struct search_result *so_far)
{
    (void)so_far;
    return ((const double *)arg)[i] > 0;
}

static int take(void *arg, unsigned i, uint64_t passes, struct search_run *run)
{
    (void)passes;
    *run = (struct search_run){.cost = 1 / ((const double *)arg)[i]};
    return 0;
}

static struct search_result tune(const double *gbps)
{
    double copy[16] = {0};
    const struct search search = {
        .policy = &tune_policy, .n = 15, .run = take, .next = is_there, .arg = copy};
    struct search_result result;

    for (int i = 0; gbps[i] > 0; i++)
        copy[i] = gbps[i];
    assert_int_equal(search_run(&search, &result), 0);
    return result;
}

TEST(test_plateau)
{
    /* 7.7 is over 95 % of 8.0 */
    assert_int_equal(tune((const double[]){2.0, 4.0, 7.7, 8.0, 7.9, 0}).best, 2);
    assert_int_equal(tune((const double[]){5.0, 5.1, 0}).best, 0);
    assert_int_equal(tune((const double[]){3.0, 0}).best, 0);
    assert_int_equal(tune((const double[]){1.0, 2.0, 4.0, 0}).best, 2);
    assert_int_equal(tune((const double[]){7.5, 8.0, 3.0, 0}).best, 1); /* 7.5 is 93.75 % */
}

TEST(test_goes_on)
{
    /* 2.01 is far over the 1.0 of two doublings before; neither of the next two gained 2 % on 2.0 */
    struct search_result r = tune((const double[]){1.0, 2.0, 2.01, 2.02, 4.0, 0});
    assert_int_equal(r.tried, 4);
    assert_int_equal(r.best, 1);
    assert_int_equal(r.stop, SEARCH_NO_GAIN);
    assert_int_equal(tune((const double[]){1.0, 2.0, 2.01, 4.0, 8.0, 0}).tried, 5);
}
