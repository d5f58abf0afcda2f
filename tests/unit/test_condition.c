/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions: terms, clauses, patterns, empty values, values of other names, and what is not known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/condition.h"

static const struct {
    const char *name, *value;
} values[] = {{"op", "triad"},  {"level", ""},     {"from", "cuda:0"},
              {"to", "cuda:0"}, {"unknown", NULL}, {"path", "within the GPU"},
              {"rail", "all"},  {"opt", "read"}};

static const char *value_of(const void *arg, const char *name, size_t len)
{
    (void)arg;
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
        if (strlen(values[i].name) == len && !memcmp(values[i].name, name, len))
            return values[i].value;
    return "";
}

static void test_what_holds(void **state)
{
    static const struct {
        const char *condition;
        bool holds;
    } all[] = {
        {"", true},
        {"op=triad", true},
        {"op=tri", false},
        {"op=tri*", true},
        {"op=t?[hi]*", true},
        {"op=t?[hx]*", false},
        {"op!=read", true},
        {"op!=read,triad", false},
        {"op=read,triad", true},
        {"level=", true},
        {"level!=", false},
        {"level=L1,", true},
        {"op=", false},
        {"op!=", true},
        {"rail=,all", true},
        {"level=,all", true},
        {"rail=,eth0", false},
        {"no_such=", true},
        {"no_such=x", false},
        {"from=@to", true},
        {"from!=@to", false},
        {"from=@op,cuda:*", true},
        {"op=triad rail=all", true},
        {"op=triad rail=eth0", false},
        {"op=read | rail=all", true},
        {"op=read | rail=eth0", false},
        {"op=read rail=all | level!= | op=triad", true},
        {"path=within*", true},
        {"unknown=x", true},
        {"unknown!=x", true},
        {"unknown=x op=read", false},
        {"op=@unknown", true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (condition_holds(all[i].condition, value_of, NULL) != all[i].holds)
            fail_msg("'%s' is to be %s", all[i].condition, all[i].holds ? "true" : "false");
}

/* Of a run folder of somebody else's: nothing is read beyond the text. */
static void test_odd_texts(void **state)
{
    static const char *const odd[] = {"=",  "!=", "op",   "|",    " | ",  "op!",
                                      "=x", "@",  "op=@", "op=[", "op=\\"};
    char text[700] = "op=";

    (void)state;
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

static void test_names(void **state)
{
    char names[100] = "";

    (void)state;
    assert_false(condition_names("op=a,b level!= | from=@to,x", note, names));
    assert_string_equal(names, "op.level.from.to.");
}

static void test_words(void **state)
{
    (void)state;
    assert_true(word_in("m n k", "n"));
    assert_false(word_in("mm nn", "m"));
    assert_false(word_in("m", ""));
    assert_false(word_in(NULL, "m"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_holds),
        cmocka_unit_test(test_odd_texts),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_words),
    };

    return cmocka_run_group_tests_name("condition", tests, NULL, NULL);
}
