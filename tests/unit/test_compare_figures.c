/* SPDX-License-Identifier: Apache-2.0 */
/* How plumb compare shows ratios: their figures, bars and axes. */
#include "core/text.h"
#include "harness/compare/compare.h"
#include "tests/unit/compare_scene.h"

static void figures_do_not_hide_which_side_of_a_mark_an_end_is_on(void **state)
{
    struct scene s;
    struct pair *pair;
    struct view_figures f;

    (void)state;
    scene_init(&s);
    pair = add_case(&s, "Memory", "triad", DECISION_WORSE, 0.97);
    pair->decide.low = 0.9498;
    pair->decide.high = 0.99996;
    f = view_figures(&s.pairs.report.pool, pair);
    assert_string_equal(f.both, "0.97000 (0.94980 to 0.99996)");
    pair->decide.low = 0.93;
    pair->decide.high = 0.98;
    pair->decide.beyond = true;
    f = view_figures(&s.pairs.report.pool, pair);
    assert_string_equal(f.both, "0.970 (0.930 to 0.980)");
    assert_string_equal(f.verdict, "worse, beyond");
    assert_string_equal(f.smallest, "1.2 %");
    /* the noise of a logarithm: no digits tell it from 1 */
    pair->decide.ratio = 1 - 1e-15;
    pair->decide.low = 1 - 2e-15;
    pair->decide.high = 1 + 1e-15;
    f = view_figures(&s.pairs.report.pool, pair);
    assert_string_equal(f.both, "1.000 (1.000 to 1.000)");
    pair->decide.low = 0.94996;
    f = view_figures(&s.pairs.report.pool, pair);
    assert_string_equal(f.both, "1.00000 (0.94996 to 1.00000)");
    scene_release(&s);
}

/* No label ends to the right of the axis, where the next column's heading begins. */
static void labels_of_the_axis_stay_on_it(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        struct scene s;
        char *text, *at;

        scene_init(&s);
        add_case(&s, "Memory", "triad", DECISION_WORSE, 0.3 + 0.005 * i);
        add_case(&s, "Memory", "read", DECISION_BETTER, 1.05 + 0.002 * i);
        assert_int_equal(view_make(&s.pairs, &s.view), 0);
        text = printed(view_print_html, &s);
        for (at = text; (at = strstr(at, "<text x='")); at++) {
            double x = strtod(at + strlen("<text x='"), NULL);
            const char *anchor = strstr(at, "text-anchor='") + strlen("text-anchor='");
            double wide = *anchor == 'm' ? 5.5 : *anchor == 'e' ? 0 : 11;

            assert_true(x + wide <= 96.01);
            assert_true(x - (*anchor == 'm' ? 5.5 : *anchor == 'e' ? 11 : 0) >= -0.01);
        }
        free(text);
        scene_release(&s);
    }
}

static void what_cannot_be_told_is_said(void **state)
{
    struct scene s;
    struct pair *pair;
    struct view_figures f;

    (void)state;
    scene_init(&s);
    pair = add_case(&s, "Memory", "triad", DECISION_INCONCLUSIVE, 0.97);
    pair->decide.low = pair->decide.high = pair->decide.smallest = NAN;
    pair->decide.more_launches = 7;
    f = view_figures(&s.pairs.report.pool, pair);
    assert_string_equal(f.both, "0.970 (no interval)");
    assert_string_equal(f.smallest, "");
    assert_string_equal(f.more, "+7");
    pair->decide.ratio = NAN;
    f = view_figures(&s.pairs.report.pool, pair);
    assert_string_equal(f.both, "no ratio");
    pair->decide.beyond = true; /* by itself, and not proven over the suite */
    assert_string_equal(view_figures(&s.pairs.report.pool, pair).verdict,
                        "inconclusive, beyond by itself");
    pair->decide.obstacle = OBSTACLE_FEW; /* which says more */
    assert_string_equal(view_figures(&s.pairs.report.pool, pair).verdict, "inconclusive");
    pair->decide.decision = DECISION_WORSE; /* decided: nothing more is needed */
    assert_string_equal(view_figures(&s.pairs.report.pool, pair).more, "");
    scene_release(&s);
}

/* An axis on which 21 columns are easily counted: 1 is in the middle one. */
static const struct view_axis axis = {.low = 0.5, .high = 2};

static const char *bar(double low, double ratio, double high, char text[FOREST_BYTES])
{
    const struct decide_case c = {.margin = 0.1, .low = low, .ratio = ratio, .high = high};

    return forest_bar(&axis, &c, 21, false, text);
}

static void draws_intervals(void **state)
{
    char text[FOREST_BYTES];

    (void)state;
    assert_string_equal(bar(1.3, 1.4, 1.5, text), "        ..|.. -o-    ");
    assert_string_equal(bar(0.99, 1, 1.01, text), "        ..o..        ");
    assert_string_equal(bar(0.6, 0.7, 1.5, text), "  ---o--=====----    ");
}

static void draws_an_arrow_where_it_goes_on(void **state)
{
    char text[FOREST_BYTES];

    (void)state;
    bar(0.3, 0.6, 0.7, text);
    assert_int_equal(text[0], '<');
    assert_non_null(strchr(text, 'o'));
    bar(0.1, 0.2, 0.3, text); /* all of it outside: no point is drawn inside */
    assert_string_equal(text, "<       ..|..        ");
    bar(3, 4, 5, text);
    assert_string_equal(text, "        ..|..       >");
}

static void draws_no_interval_that_is_not_known(void **state)
{
    char text[FOREST_BYTES];

    (void)state;
    assert_string_equal(bar(NAN, 1.4, NAN, text), "        ..|..  o     ");
    assert_string_equal(bar(NAN, NAN, NAN, text), "        ..|..        ");
}

static void bars_have_as_many_columns_in_utf8(void **state)
{
    const struct decide_case c = {.margin = 0.1, .low = 0.3, .ratio = 1.2, .high = 4};
    char text[FOREST_BYTES];

    (void)state;
    for (size_t columns = 1; columns <= FOREST_COLUMNS_MAX; columns++) {
        forest_bar(&axis, &c, columns, true, text);
        assert_int_equal(wrap_columns(text, strlen(text)), columns);
        forest_bar(&axis, &c, columns, false, text);
        assert_int_equal(strlen(text), columns);
    }
}

static void the_axis_shows_the_margin_whatever_was_lost(void **state)
{
    struct scene s;
    struct pair *pair;
    double band;

    (void)state;
    scene_init(&s);
    add_case(&s, "Memory", "gone", DECISION_WORSE, 1e-6);
    pair = add_case(&s, "Memory", "wide", DECISION_INCONCLUSIVE, 1);
    pair->decide.low = 0;
    pair->decide.high = INFINITY;
    assert_int_equal(view_make(&s.pairs, &s.view), 0);
    assert_true(s.view.axis.low > 0 && isfinite(s.view.axis.high));
    band = view_axis_at(&s.view.axis, 1 / 0.95) - view_axis_at(&s.view.axis, 0.95);
    assert_true(band > 0.05);
    assert_true(view_axis_at(&s.view.axis, 0.95) > 0 && view_axis_at(&s.view.axis, 1 / 0.95) < 1);
    free(printed(view_print_html, &s));
    scene_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_do_not_hide_which_side_of_a_mark_an_end_is_on),
        cmocka_unit_test(labels_of_the_axis_stay_on_it),
        cmocka_unit_test(what_cannot_be_told_is_said),
        cmocka_unit_test(draws_intervals),
        cmocka_unit_test(draws_an_arrow_where_it_goes_on),
        cmocka_unit_test(draws_no_interval_that_is_not_known),
        cmocka_unit_test(bars_have_as_many_columns_in_utf8),
        cmocka_unit_test(the_axis_shows_the_margin_whatever_was_lost),
    };

    return cmocka_run_group_tests_name("compare_figures", tests, NULL, NULL);
}
