/* SPDX-License-Identifier: Apache-2.0 */
/* Wrapping: lines fit, no word is cut and none is lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/text.h"

static void check(const char *text, size_t indent, size_t width, const char *want)
{
    char *got = NULL;
    size_t len;
    FILE *out = open_memstream(&got, &len);

    assert_non_null(out);
    wrap_print(out, text, indent, width);
    fclose(out);
    assert_string_equal(got, want);
    free(got);
}

static void test_print(void **state)
{
    (void)state;
    check("", 2, 20, "");
    check("  ", 2, 20, "");
    check("one two", 2, 20, "  one two\n");
    check("one two three", 0, 7, "one two\nthree\n");  /* exactly full */
    check("one two three", 0, 6, "one\ntwo\nthree\n"); /* one too many */
    check(" one  two ", 2, 20, "  one  two\n");
    check("one  two", 0, 4, "one\ntwo\n");
    check("a 123456789012 b", 2, 8, "  a\n  123456789012\n  b\n"); /* a figure stays whole */
    check("x y", 9, 4, "         x\n         y\n");
}

/* A character of two or three bytes is one column. */
static void test_columns(void **state)
{
    size_t next;

    (void)state;
    assert_int_equal(wrap_columns("\xc3\xa4\xe2\x80\x93z", 6), 3);
    assert_int_equal(wrap_take("\xc3\xa4\xc3\xa4 b c", 4, &next), 6);
    assert_int_equal(next, 7);
}

static void test_width_without_a_terminal(void **state)
{
    FILE *null = fopen("/dev/null", "we"), *memory = fmemopen(NULL, 16, "w");

    (void)state;
    assert_non_null(null);
    assert_non_null(memory);
    assert_int_equal(wrap_width(null), WRAP_DEFAULT);
    assert_int_equal(wrap_width(memory), WRAP_DEFAULT);
    fclose(null);
    fclose(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_print),
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_width_without_a_terminal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
