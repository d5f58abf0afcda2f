/* SPDX-License-Identifier: Apache-2.0 */
/* What plumb compare writes for programs, whatever the texts hold, and how it reads its words. */
#include <errno.h>

#include "harness/compare/compare.h"
#include "tests/unit/compare_scene.h"

static void csv_quotes_and_leaves_empty_what_is_not_known(void **state)
{
    struct scene s;
    struct pair *pair;
    char *text;

    (void)state;
    scene_init(&s);
    pair = add_case(&s, "Memory", "a \"b\", c", DECISION_INCONCLUSIVE, 0.5);
    pair->decide.low = NAN;
    pair->decide.high = INFINITY;
    add_pair(&s, "Memory", "gone", PAIR_LOST_B)->reason = "B, too";
    assert_int_equal(view_make(&s.pairs, &s.view), 0);
    text = printed(view_print_csv, &s);
    assert_non_null(strstr(
        text,
        "\nMemory,\"a \"\"b\"\", c\",\"a \"\"b\"\", c\",compared,"
        "inconclusive,no,no,0.5,,,0.05,10,5,GB/s,1,3,1,3,,,,,0.0123,,,no,undecided,0,0,0,0\n"));
    assert_non_null(
        strstr(text, "\nMemory,gone,gone,no value in B,,,,,,,,,,,,,,,,,,,,\"B, too\",,,,,,\n"));
    free(text);
    scene_release(&s);
}

static void json_takes_any_text(void **state)
{
    struct scene s;
    json_t *json, *first;
    char *text;

    (void)state;
    scene_init(&s);
    add_case(&s, "Memory", "bad \xff\x1b[31m \"quoted\"", DECISION_WORSE, NAN);
    assert_int_equal(view_make(&s.pairs, &s.view), 0);
    text = printed(view_print_json, &s);
    json = json_loads(text, 0, NULL);
    assert_non_null(json);
    first = json_array_get(json_object_get(json, "cases"), 0);
    assert_string_equal(json_string_value(json_object_get(first, "verdict")), "worse");
    assert_true(json_is_null(json_object_get(first, "ratio")));
    assert_true(json_is_null(json_object_get(first, "degrees_of_freedom")));
    assert_int_equal(json_integer_value(json_object_get(json, "exit")), 1);
    json_decref(json);
    free(text);
    scene_release(&s);
}

static void texts_of_files_stay_texts(void **state)
{
    struct scene s;
    char *text;

    (void)state;
    scene_init(&s);
    s.names[1] = "<b>|`x`\x1b[2J";
    add_case(&s, "<i>", "<img src=x>|`y`\x1b[31m", DECISION_WORSE, 0.5);
    assert_int_equal(view_make(&s.pairs, &s.view), 0);
    text = printed(view_print_html, &s);
    assert_null(strstr(text, "<img"));
    assert_null(strstr(text, "<i>"));
    free(text);
    text = printed(view_print_markdown, &s);
    assert_null(strstr(strstr(text, "| Component"), "\n| <i>"));
    assert_non_null(strstr(text, "&#60;i&#62;"));
    assert_non_null(strstr(text, "\\|\\`y\\`"));
    assert_null(strchr(text, '\x1b'));
    free(text);
    text = printed(print_text, &s);
    assert_null(strchr(text, '\x1b'));
    free(text);
    scene_release(&s);
}

static void check_sides(const char *const *words, size_t n, const size_t *before, size_t n_a,
                        size_t n_b)
{
    struct compare_sides sides;
    char error[256] = "";
    int err = compare_sides((char *const *)words, n, before, &sides, error, sizeof(error));

    assert_int_equal(err, n_a ? 0 : -EINVAL);
    if (n_a) {
        assert_int_equal(sides.n_a, n_a);
        assert_int_equal(sides.n_b, n_b);
    } else {
        assert_true(*error);
    }
    compare_sides_release(&sides);
}

static void sides_are_told_apart(void **state)
{
    static const char *const words[] = {"a", "b", "c"}, *const commas[] = {"a,b", ",c,d,,e"},
                             *const empty[] = {"a", ","};
    const size_t none = 0, one = 1, three = 3;

    (void)state;
    check_sides(words, 2, NULL, 1, 1);
    check_sides(commas, 2, NULL, 2, 3);
    check_sides(words, 3, &one, 1, 2);
    check_sides(words, 3, NULL, 0, 0);
    check_sides(words, 1, NULL, 0, 0);
    check_sides(words, 0, NULL, 0, 0);
    check_sides(words, 3, &none, 0, 0);
    check_sides(words, 3, &three, 0, 0);
    check_sides(empty, 2, NULL, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csv_quotes_and_leaves_empty_what_is_not_known),
        cmocka_unit_test(json_takes_any_text),
        cmocka_unit_test(texts_of_files_stay_texts),
        cmocka_unit_test(sides_are_told_apart),
    };

    return cmocka_run_group_tests_name("compare_formats", tests, NULL, NULL);
}
