/* SPDX-License-Identifier: Apache-2.0 */
/* Where a plateau begins, and when a search for it ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "benches/net/tune.h"

#define N(steps) (sizeof(steps) / sizeof(*(steps)))

static void test_plateau(void **state)
{
    static const struct tune_step rising[] = {{1, 2.0}, {2, 4.0}, {4, 7.7}, {8, 8.0}, {16, 7.9}},
                                  flat[] = {{1, 5.0}, {2, 5.1}}, one[] = {{1, 3.0}},
                                  late[] = {{1, 1.0}, {2, 2.0}, {4, 4.0}},
                                  dip[] = {{1, 7.5}, {2, 8.0}, {4, 3.0}};

    (void)state;
    assert_int_equal(tune_plateau(rising, N(rising)), 2); /* 7.7 is over 95 % of 8.0 */
    assert_int_equal(tune_plateau(flat, N(flat)), 0);
    assert_int_equal(tune_plateau(one, N(one)), 0);
    assert_int_equal(tune_plateau(late, N(late)), 2);
    assert_int_equal(tune_plateau(dip, N(dip)), 1); /* 7.5 is 93.75 % */
}

static void test_goes_on(void **state)
{
    static const struct tune_step steps[] = {{1, 1.0}, {2, 2.0}, {4, 2.01}, {8, 2.02}, {16, 4.0}};

    (void)state;
    assert_true(tune_goes_on(steps, 0));
    assert_true(tune_goes_on(steps, 2));
    assert_true(tune_goes_on(steps, 3));  /* 2.01 is far over the 1.0 of two doublings before */
    assert_false(tune_goes_on(steps, 4)); /* neither of the last two gained 2 % on 2.0 */
    assert_true(tune_goes_on(steps, 5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plateau),
                                       cmocka_unit_test(test_goes_on)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
