/* SPDX-License-Identifier: Apache-2.0 */
/* What plumb compare says: order, counts, verdict, exit code and remarks. */
#include "harness/compare/compare.h"
#include "tests/unit/compare_scene.h"

static void orders_cases_by_loss_within_pipes(void **state)
{
    static const char *const want[] = {"worst", "bad", "unsure", "gain", "small gain", "same"};
    struct scene s;

    (void)state;
    scene_init(&s);
    add_case(&s, "Memory", "same", DECISION_EQUIVALENT, 0.85);
    add_case(&s, "Memory", "small gain", DECISION_BETTER, 1.1);
    add_case(&s, "Network", "other", DECISION_EQUIVALENT, 1.0);
    add_case(&s, "Memory", "bad", DECISION_WORSE, 0.9);
    add_case(&s, "Memory", "unsure", DECISION_INCONCLUSIVE, 0.7);
    add_case(&s, "Memory", "worst", DECISION_WORSE, 0.8);
    add_case(&s, "Memory", "gain", DECISION_BETTER, 1.3);
    assert_int_equal(view_make(&s.pairs, &s.view), 0);
    assert_int_equal(s.view.n_pipes, 2);
    assert_string_equal(s.view.pipes[0].name, "Memory");
    assert_int_equal(s.view.pipes[0].n, 6);
    assert_int_equal(s.view.pipes[0].n_shown, 5);
    for (size_t i = 0; i < 6; i++)
        assert_string_equal(s.view.pipes[0].pairs[i]->label, want[i]);
    /* the lowest of those worse, though an inconclusive one has a lower ratio */
    assert_string_equal(s.view.pipes[0].worst->label, "worst");
    assert_int_equal(s.view.pipes[0].counts[DECISION_WORSE], 2);
    assert_int_equal(s.view.pipes[0].counts[DECISION_BETTER], 2);
    assert_string_equal(s.view.pipes[1].worst->label, "other");
    scene_release(&s);
}

static void groups_what_was_not_compared_by_reason(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s);
    add_pair(&s, "Memory", "one", PAIR_LOST_B)->reason = "B has no such case";
    add_pair(&s, "Memory", "two", PAIR_REFUSED)->reason = "RDMA against sockets";
    add_pair(&s, "Memory", "three", PAIR_LOST_B)->reason = "B has no such case";
    add_pair(&s, "Memory", "four", PAIR_LOST_B)->failed_b = true;
    /* neither has it: nothing that A has was lost */
    add_pair(&s, "Memory", "five", PAIR_LOST_BOTH)->failed_b = true;
    assert_int_equal(view_make(&s.pairs, &s.view), 0);
    assert_int_equal(s.view.n_left, 4);
    assert_true(s.view.left[0].failed_b);
    assert_string_equal(s.view.left[0].pairs[0]->label, "four");
    assert_string_equal(s.view.left[0].reason, "no reason is given");
    assert_int_equal(s.view.left[2].n, 2);
    assert_int_equal(s.view.n_failed_b, 1);
    assert_int_equal(view_exit(&s.view), 4);
    scene_release(&s);
}

static void names_the_first_of_many_and_all_where_asked(void **state)
{
    struct scene s;
    char *text;

    (void)state;
    scene_init(&s);
    for (size_t i = 0; i < 5; i++)
        add_pair(&s, "Memory", i < 4 ? "early" : "late", PAIR_LOST_B)->reason = "B has none";
    assert_int_equal(view_make(&s.pairs, &s.view), 0);
    text = printed(print_text, &s);
    assert_non_null(strstr(text, "5 cases: B has none (early; early; early; and 2 more)\n"));
    free(text);
    text = printed(print_all, &s);
    assert_non_null(strstr(text, "(early; early; early; early; late)\n"));
    free(text);
    scene_release(&s);
}

static void exit_code_is_the_first_that_holds(void **state)
{
    static const struct {
        enum decision decision;
        bool failed;
        int exit;
    } cases[] = {{DECISION_EQUIVALENT, false, 0},  {DECISION_BETTER, false, 0},
                 {DECISION_WORSE, false, 1},       {DECISION_WORSE, true, 1},
                 {DECISION_INCONCLUSIVE, true, 4}, {DECISION_EQUIVALENT, true, 4},
                 {DECISION_INCONCLUSIVE, false, 3}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct scene s;

        scene_init(&s);
        add_case(&s, "Memory", "one", cases[i].decision, 1);
        if (cases[i].failed)
            add_pair(&s, "Memory", "two", PAIR_LOST_B)->failed_b = true;
        assert_int_equal(view_make(&s.pairs, &s.view), 0);
        assert_int_equal(view_exit(&s.view), cases[i].exit);
        assert_string_equal(s.view.name,
                            cases[i].exit == 4 ? "incomplete" : decision_word(cases[i].decision));
        scene_release(&s);
    }
}

static void nothing_to_compare_is_no_verdict(void **state)
{
    struct scene s;
    char *text;

    (void)state;
    scene_init(&s);
    assert_int_equal(view_make(&s.pairs, &s.view), 0);
    assert_int_equal(view_exit(&s.view), 3);
    assert_non_null(strstr(s.view.verdict, "nothing could be decided"));
    text = printed(print_text, &s);
    assert_null(strstr(text, "within"));
    free(text);
    free(printed(view_print_markdown, &s));
    free(printed(view_print_html, &s));
    scene_release(&s);
}

static void the_sentence_says_what_holds(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s);
    add_case(&s, "Memory", "triad", DECISION_WORSE, 0.8);
    add_case(&s, "Memory", "read", DECISION_WORSE, 0.9);
    add_case(&s, "Memory", "copy", DECISION_EQUIVALENT, 1);
    add_case(&s, "Network", "tcp", DECISION_INCONCLUSIVE, 1);
    add_pair(&s, "Memory", "gone", PAIR_LOST_B);
    assert_int_equal(view_make(&s.pairs, &s.view), 0);
    assert_string_equal(
        s.view.verdict,
        "B (guest) against A (bare): worse in Memory (0.8 to 0.9 times A in 2 "
        "of 3 cases). It is undecided in Network. B has nothing to compare with in 1 "
        "case that A has");
    assert_string_equal(s.view.basis, "1 run a side, 3 launches of each case in a run; margin 5 %");
    assert_int_equal(s.view.n_remarks, 1);
    assert_non_null(strstr(s.view.remarks[0], "one run a side"));
    scene_release(&s);
}

static void nothing_proven_is_never_called_equal(void **state)
{
    static const enum decision decisions[] = {DECISION_EQUIVALENT, DECISION_INCONCLUSIVE};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        int (*const printers[])(FILE *, struct view *) = {print_text, print_all, view_print_html,
                                                          view_print_markdown};
        struct scene s;

        scene_init(&s);
        add_case(&s, "Memory", "triad", decisions[i], 1);
        assert_int_equal(view_make(&s.pairs, &s.view), 0);
        for (size_t k = 0; k < 4; k++) {
            char *text = printed(printers[k], &s);
            assert_null(strcasestr(text, "equal"));
            assert_null(strcasestr(text, "identical"));
            free(text);
        }
        scene_release(&s);
    }
}

/* An interval that is wholly past the margin and says "undecided" looks like a mistake. */
static void likely_and_not_proven_is_explained(void **state)
{
    struct scene s;
    struct pair *pair;
    char *text;

    (void)state;
    scene_init(&s);
    add_case(&s, "Memory", "read", DECISION_EQUIVALENT, 1);
    pair = add_case(&s, "Memory", "triad", DECISION_INCONCLUSIVE, 0.8);
    assert_int_equal(view_make(&s.pairs, &s.view), 0);
    assert_int_equal(s.view.n_obstacles, 0);
    pair->decide.beyond = true;
    assert_int_equal(view_make(&s.pairs, &s.view), 0);
    assert_int_equal(s.view.n_obstacles, 1);
    text = printed(view_print_html, &s);
    assert_non_null(strstr(text, "1 case likely different, not proven yet: &#39;triad&#39;: among "
                                 "2 cases, chance alone makes one such interval likely"));
    assert_non_null(strstr(text, ">likely worse<"));
    free(text);
    scene_release(&s);
}

static void add_words(struct scene *s, const char *more, size_t n)
{
    struct decide_case *c = &s->all[0].decide;

    c->more_launches = n;
    assert_int_equal(view_make(&s->pairs, &s->view), 0);
    assert_non_null(strstr(s->view.verdict, more));
}

static void says_how_many_more_would_decide(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s);
    add_case(&s, "Network", "tcp", DECISION_INCONCLUSIVE, 1);
    add_words(&s, "undecided in Network. 3 more launches a side would decide", 3);
    add_words(&s, "undecided in Network. 1 more launch a side would decide", 1);
    s.all[0].decide.by_runs = true;
    add_words(&s, "undecided in Network. 2 more runs a side would decide", 2);
    add_case(&s, "Network", "rdma", DECISION_INCONCLUSIVE, 1);
    add_words(&s, "2 more runs a side would decide, but for 1 case", 2);
    scene_release(&s);
}

static void launches_that_were_lost_are_counted(void **state)
{
    struct scene s;
    struct pair *pair;

    (void)state;
    scene_init(&s);
    for (int i = 0; i < 2; i++) {
        pair = add_case(&s, "Memory", i ? "read" : "triad", DECISION_EQUIVALENT, 1);
        pair->failed_b = true;
        pair->reason = "1 of 3 launches of B failed";
    }
    add_case(&s, "Memory", "write", DECISION_EQUIVALENT, 1);
    assert_int_equal(view_make(&s.pairs, &s.view), 0);
    assert_int_equal(view_exit(&s.view), 4);
    assert_non_null(strstr(s.view.verdict, "Some launches of B failed in 2 cases that A has"));
    assert_int_equal(s.view.n_thinned, 2);
    assert_string_equal(s.view.remarks[s.view.n_remarks - 1],
                        "some launches of B failed in 2 cases, such as: "
                        "'triad', 1 of 3 launches of B failed");
    scene_release(&s);
}

static void a_run_that_is_not_whole_is_incomplete(void **state)
{
    static const char *const states[] = {"interrupted", "stopped", "running"};
    struct scene s;

    (void)state;
    scene_init(&s);
    add_case(&s, "Memory", "triad", DECISION_EQUIVALENT, 1);
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < 3; i++) {
            json_object_set_new(s.runs[side].meta, "state", json_string(states[i]));
            json_object_set_new(s.runs[!side].meta, "state", json_string("complete"));
            assert_int_equal(view_make(&s.pairs, &s.view), 0);
            assert_int_equal(view_exit(&s.view), 4);
            assert_string_equal(s.view.name, "incomplete");
            assert_non_null(strstr(s.view.verdict, states[i]));
            assert_non_null(strstr(s.view.verdict, side ? ". The run 'guest' of B is '"
                                                        : ". The run 'bare' of A is '"));
        }
    add_case(&s, "Memory", "read", DECISION_WORSE, 0.8);
    assert_int_equal(view_make(&s.pairs, &s.view), 0);
    assert_int_equal(view_exit(&s.view), 1); /* what is proven stays so */
    assert_non_null(strstr(s.view.verdict, ". The run 'guest' of B is 'running'"));
    scene_release(&s);
}

static void a_name_that_is_not_the_folders_is_told_with_it(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s);
    add_case(&s, "Memory", "triad", DECISION_EQUIVALENT, 1);
    s.runs[1].path = (char *)"results/guest";
    assert_int_equal(view_make(&s.pairs, &s.view), 0);
    assert_string_equal(s.view.b, "guest");
    s.runs[1].path = (char *)"r/b";
    assert_int_equal(view_make(&s.pairs, &s.view), 0);
    assert_string_equal(s.view.a, "bare");
    assert_string_equal(s.view.b, "guest ('r/b')");
    scene_release(&s);
}

static void a_pipe_is_one_of_those_named(void **state)
{
    (void)state;
    assert_true(words_has_pipe("Memory, Copies, GPU memory", "Copies"));
    assert_true(words_has_pipe("Memory, Copies, GPU memory", "GPU memory"));
    assert_true(words_has_pipe("GPU matrix core, Matrix core", "Matrix core"));
    assert_false(words_has_pipe("GPU matrix core, PCIe", "Matrix core"));
    assert_false(words_has_pipe("GPU Memory", "Memory"));
    assert_false(words_has_pipe("Memory bus, PCIe", "Memory"));
    assert_false(words_has_pipe("", "Memory"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders_cases_by_loss_within_pipes),
        cmocka_unit_test(groups_what_was_not_compared_by_reason),
        cmocka_unit_test(names_the_first_of_many_and_all_where_asked),
        cmocka_unit_test(exit_code_is_the_first_that_holds),
        cmocka_unit_test(nothing_to_compare_is_no_verdict),
        cmocka_unit_test(the_sentence_says_what_holds),
        cmocka_unit_test(nothing_proven_is_never_called_equal),
        cmocka_unit_test(likely_and_not_proven_is_explained),
        cmocka_unit_test(says_how_many_more_would_decide),
        cmocka_unit_test(launches_that_were_lost_are_counted),
        cmocka_unit_test(a_run_that_is_not_whole_is_incomplete),
        cmocka_unit_test(a_name_that_is_not_the_folders_is_told_with_it),
        cmocka_unit_test(a_pipe_is_one_of_those_named),
    };

    return cmocka_run_group_tests_name("compare", tests, NULL, NULL);
}
