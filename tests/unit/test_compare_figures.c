/* SPDX-License-Identifier: Apache-2.0 */
/* How plumb compare shows ratios: figures, intervals and words. */
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
    assert_string_equal(f.verdict, "worse");
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
    pair->decide.ratio = 0.8;
    assert_string_equal(view_figures(&s.pairs.report.pool, pair).verdict, "likely worse");
    pair->decide.ratio = 1.2;
    assert_string_equal(view_figures(&s.pairs.report.pool, pair).verdict, "likely better");
    pair->decide.obstacle = OBSTACLE_FEW; /* which says more */
    assert_string_equal(view_figures(&s.pairs.report.pool, pair).verdict, "undecided");
    pair->decide.decision = DECISION_WORSE; /* decided: nothing more is needed */
    assert_string_equal(view_figures(&s.pairs.report.pool, pair).more, "");
    scene_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_do_not_hide_which_side_of_a_mark_an_end_is_on),
        cmocka_unit_test(what_cannot_be_told_is_said),
    };

    return cmocka_run_group_tests_name("compare_figures", tests, NULL, NULL);
}
