/* SPDX-License-Identifier: Apache-2.0 */
/* The remark of a row that is above its limit. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/row.h"

#define OVER " % of the limit: the limit is too low, or the data did not take that path"

static void only_above_the_limit(void **state)
{
    static const double calm[] = {0, 99, 100, 100.4, 100.5, -5, NAN};
    char text[128];

    (void)state;
    for (size_t i = 0; i < sizeof(calm) / sizeof(calm[0]); i++)
        assert_string_equal(limit_remark(calm[i], text, sizeof(text)), "");
    assert_string_equal(limit_remark(100.6, text, sizeof(text)), "101" OVER);
    assert_string_equal(limit_remark(1234.4, text, sizeof(text)), "1234" OVER);
}

static void kinds(void **state)
{
    (void)state;
    assert_int_equal(limit_kind_of("measured"), LIMIT_MEASURED);
    assert_int_equal(limit_kind_of("reference"), LIMIT_REFERENCE);
    assert_int_equal(limit_kind_of("told"), LIMIT_TOLD);
    assert_int_equal(limit_kind_of("sysfs"), LIMIT_SYSFS);
    assert_int_equal(limit_kind_of("datasheet"), LIMIT_DATASHEET);
    assert_int_equal(limit_kind_of("measured: best loads"), LIMIT_TOLD);
    assert_int_equal(limit_kind_of("reference "), LIMIT_TOLD);
    assert_int_equal(limit_kind_of(""), LIMIT_TOLD);
    assert_int_equal(limit_kind_of(NULL), LIMIT_TOLD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds),
        cmocka_unit_test(only_above_the_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
