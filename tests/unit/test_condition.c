/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions: terms, clauses, patterns, empty values, values of other names, and what is not known. */
#include "core/condition.h"
#include "tests/unit/unit.h"

static const char *value_of(const void *arg, const char *name, size_t len)
{
    static const char *const values[][2] = {
        {"op", "triad"}, {"level", ""}, {"from", "cuda:0"}, {"to", "cuda:0"}, {"rail", "all"}};

    (void)arg;
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
        if (strlen(values[i][0]) == len && !memcmp(values[i][0], name, len))
            return values[i][1];
    return len == 7 && !memcmp("unknown", name, 7) ? NULL : "";
}

TEST(test_what_holds)
{
    static const char *const true_ones[] = {"",
                                            "op=triad",
                                            "op=tri*",
                                            "op=t?[hi]*",
                                            "op!=read",
                                            "op=read,triad",
                                            "level=",
                                            "level=L1,",
                                            "op!=",
                                            "rail=,all",
                                            "level=,all",
                                            "no_such=",
                                            "from=@to",
                                            "from=@op,cuda:*",
                                            "op=triad rail=all",
                                            "op=read | rail=all",
                                            "op=read rail=all | level!= | op=triad",
                                            "unknown=x",
                                            "unknown!=x",
                                            "op=@unknown"};
    static const char *const false_ones[] = {"op=tri",
                                             "op=t?[hx]*",
                                             "op!=read,triad",
                                             "level!=",
                                             "op=",
                                             "rail=,eth0",
                                             "no_such=x",
                                             "from!=@to",
                                             "op=triad rail=eth0",
                                             "op=read | rail=eth0",
                                             "unknown=x op=read"};

    for (size_t i = 0; i < sizeof(true_ones) / sizeof(*true_ones); i++)
        if (!condition_holds(true_ones[i], value_of, NULL))
            fail_msg("'%s' is to be true", true_ones[i]);
    for (size_t i = 0; i < sizeof(false_ones) / sizeof(*false_ones); i++)
        if (condition_holds(false_ones[i], value_of, NULL))
            fail_msg("'%s' is to be false", false_ones[i]);
}

/* Of a run folder of somebody else's: nothing is read beyond the text. */
TEST(test_odd_texts)
{
    static const char *const odd[] = {"=",  "!=", "op",   "|",    " | ",  "op!",
                                      "=x", "@",  "op=@", "op=[", "op=\\"};
    char text[700] = "op=";

    for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++)
        (void)condition_holds(odd[i], value_of, NULL);
    memset(text + 3, 'x', sizeof(text) - 4);
    assert_false(condition_holds(text, value_of, NULL));
}

static bool note(void *arg, const char *name, size_t len)
{
    strncat(arg, name, len);
    strcat(arg, ".");
    return false;
}

TEST(test_names_and_words)
{
    char names[100] = "";

    assert_false(condition_names("op=a,b level!= | from=@to,x", note, names));
    assert_string_equal(names, "op.level.from.to.");
    assert_true(word_in("m n k", "n"));
    assert_false(word_in("mm nn", "m"));
    assert_false(word_in("m", ""));
    assert_false(word_in(NULL, "m"));
}
