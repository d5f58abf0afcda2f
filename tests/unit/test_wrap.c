/* SPDX-License-Identifier: Apache-2.0 */
/* Wrapping: lines fit, no word is cut and none is lost. */
#include "core/text.h"
#include "tests/unit/unit.h"

TEST(test_print)
{
    static const struct {
        const char *text;
        size_t indent, width;
        const char *want;
    } cases[] = {
        {"", 2, 20, ""},
        {"  ", 2, 20, ""},
        {"one two three", 0, 7, "one two\nthree\n"},  /* exactly full */
        {"one two three", 0, 6, "one\ntwo\nthree\n"}, /* one too many */
        {" one  two ", 2, 20, "  one  two\n"},
        {"a 123456789012 b", 2, 8, "  a\n  123456789012\n  b\n"}, /* a figure stays whole */
        {"x y", 9, 4, "         x\n         y\n"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char *got = NULL;
        size_t len;
        FILE *out = open_memstream(&got, &len);

        wrap_print(out, cases[i].text, cases[i].indent, cases[i].width);
        fclose(out);
        assert_string_equal(got, cases[i].want);
        free(got);
    }
}

/* A character of two or three bytes is one column; what is no terminal has the common width. */
TEST(test_columns)
{
    size_t next;
    FILE *null = fopen("/dev/null", "we");

    assert_int_equal(wrap_columns("\xc3\xa4\xe2\x80\x93z", 6), 3);
    assert_int_equal(wrap_take("\xc3\xa4\xc3\xa4 b c", 4, &next), 6);
    assert_int_equal(next, 7);
    assert_non_null(null);
    assert_int_equal(wrap_width(null), WRAP_DEFAULT);
    fclose(null);
}
