/* SPDX-License-Identifier: Apache-2.0 */
/* The progress line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "harness/run/progress.h"

static void test_line(void **state)
{
    struct progress p = {
        .total = 48, .done = 12, .first = 0, .begin_ns = 0, .now = "gemm --size 1024"};
    char text[320];

    (void)state;
    assert_string_equal(progress_line(&p, 30000000000ull, 200, text, sizeof(text)),
                        "[######..................] 12 of 48, 1:30 left  gemm --size 1024");
    assert_int_equal(strlen(progress_line(&p, 30000000000ull, 40, text, sizeof(text))), 40);
}

/* What an earlier start did says nothing of this one's speed. */
static void test_resumed(void **state)
{
    struct progress p = {.total = 48, .done = 24, .first = 24, .begin_ns = 0, .now = "x"};
    char text[320];

    (void)state;
    assert_null(strstr(progress_line(&p, 30000000000ull, 200, text, sizeof(text)), "left"));
    p.done = 36;
    assert_non_null(
        strstr(progress_line(&p, 3600000000000ull, 200, text, sizeof(text)), "1:00:00 left"));
    p.done = 48;
    assert_null(strstr(progress_line(&p, 3600000000000ull, 200, text, sizeof(text)), "left"));
}

/* What is expected of each launch that is to come counts, not the mean of those that ended; one that is overdue takes nothing
 * from the others. */
static void test_told(void **state)
{
    static const struct {
        uint64_t ns;
        const char *want;
    } cases[] = {{10000000000ull, "2:00 left"},
                 {40000000000ull, "1:30 left"},
                 {70000000000ull, "1:20 left"},
                 {900000000000ull, "1:20 left"}};
    struct progress p = {.total = 48,
                         .done = 12,
                         .now = "x",
                         .left_at_ns = 10000000000ull,
                         .left_ns = 120e9,
                         .rest_ns = 80e9};
    char text[320];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        if (!strstr(progress_line(&p, cases[i].ns, 200, text, sizeof(text)), cases[i].want))
            fail_msg("%s does not say %s", text, cases[i].want);
}

/* Seconds under a minute and a half, then whole minutes, to the nearest. */
static void test_log_line(void **state)
{
    static const struct {
        uint64_t ns; /* for a quarter of the launches */
        const char *want;
    } cases[] = {
        {29666666667ull, "12 of 48 launches done, about 89 s left; now gemm --size 1024"},
        {30000000000ull, "12 of 48 launches done, about 2 minutes left; now gemm --size 1024"},
        {49666666667ull, "12 of 48 launches done, about 2 minutes left; now gemm --size 1024"},
        {50000000000ull, "12 of 48 launches done, about 3 minutes left; now gemm --size 1024"},
        {2400000000000ull, "12 of 48 launches done, about 120 minutes left; now gemm --size 1024"},
    };
    struct progress p = {.total = 48, .done = 12, .now = "gemm --size 1024"};
    char text[320];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(progress_log_line(&p, cases[i].ns, text, sizeof(text)), cases[i].want);
    p.done = 0; /* nothing to tell by */
    assert_string_equal(progress_log_line(&p, 1, text, sizeof(text)),
                        "0 of 48 launches done; now gemm --size 1024");
    p.done = 48;
    assert_null(strstr(progress_log_line(&p, 1, text, sizeof(text)), "left"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line),
        cmocka_unit_test(test_resumed),
        cmocka_unit_test(test_told),
        cmocka_unit_test(test_log_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
