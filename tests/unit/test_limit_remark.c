/* SPDX-License-Identifier: Apache-2.0 */
/* The remark of a row that is above its limit. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/limit_remark.h"

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

/* Another limit: another remark, or none, and what else is remarked stays. */
static void renewed(void **state)
{
    static const struct {
        const char *reason;
        double before, after;
        const char *renewed;
    } cases[] = {
        {"", NAN, 50, ""},
        {"", NAN, 110, "110" OVER},
        {"a; b", 90, 110, "a; b; 110" OVER},
        {"120" OVER, 120, 60, ""},
        {"120" OVER, 120, 110, "110" OVER},
        {"a; 120" OVER, 120, 60, "a"},
        {"120" OVER "; b", 120, 60, "b"},
        {"a; 120" OVER "; b", 120, 60, "a; b"},
        {"a; 120" OVER "; b", 120, 130, "a; b; 130" OVER},
        {"a; 120" OVER "; b", 121, 60, "a; 120" OVER "; b"}, /* not that one */
        {"x 120" OVER, 120, 60, "x 120" OVER},
    };
    char text[512];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(limit_remark_renew(cases[i].reason, cases[i].before, cases[i].after,
                                               text, sizeof(text)),
                            cases[i].renewed);
}

static void kinds(void **state)
{
    (void)state;
    assert_int_equal(limit_kind("measured: best loads"), LIMIT_MEASURED);
    assert_int_equal(limit_kind("reference: best loads"), LIMIT_REFERENCE);
    assert_int_equal(limit_kind("measured"), LIMIT_MEASURED);
    assert_int_equal(limit_kind("measured by hand: reference"), LIMIT_TOLD);
    assert_int_equal(limit_kind("sysfs: reference: 100 Gb/s"), LIMIT_TOLD);
    assert_int_equal(limit_kind("ref: x"), LIMIT_TOLD);
    assert_int_equal(limit_kind(""), LIMIT_TOLD);
    assert_int_equal(limit_kind(NULL), LIMIT_TOLD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds),
        cmocka_unit_test(only_above_the_limit),
        cmocka_unit_test(renewed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
