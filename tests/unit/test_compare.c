/* SPDX-License-Identifier: Apache-2.0 */
/* What plumb compare shows: order, counts, sentences, bars, and the formats for programs. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/wrap.h"
#include "harness/compare/cmd.h"
#include "harness/compare/forest.h"
#include "harness/compare/view.h"
#include "harness/compare/view_words.h"

#define SCENE_CASES 8

/* Two runs of one machine, one case after another. */
struct scene {
    struct pairs pairs;
    struct run_folder runs[2];
    const char *names[2];
    struct report_case c;
    struct pair all[SCENE_CASES];
    struct decide_run values[2];
    struct view view;
};

static const double launches[] = {10, 10.1, 9.9};

static void scene_init(struct scene *s)
{
    memset(s, 0, sizeof(*s));
    s->names[0] = "bare";
    s->names[1] = "guest";
    for (int i = 0; i < 2; i++) {
        s->runs[i].path = (char *)s->names[i];
        s->runs[i].meta = json_object();
        s->values[i] = (struct decide_run){launches, 3};
    }
    s->c = (struct report_case){.metric = "bandwidth", .unit = "GB/s"};
    s->pairs.report.runs = s->runs;
    s->pairs.report.names = s->names;
    s->pairs.report.n_runs = 2;
    s->pairs.n_a = s->pairs.n_b = 1;
    s->pairs.all = s->all;
    s->pairs.overall.decision = DECISION_INCONCLUSIVE;
    s->pairs.overall.unrest = NAN;
}

static void scene_release(struct scene *s)
{
    json_decref(s->runs[0].meta);
    json_decref(s->runs[1].meta);
    pool_release(&s->pairs.report.pool);
}

static struct pair *add_pair(struct scene *s, const char *pipe, const char *label,
                             enum pair_state state)
{
    struct pair *pair = &s->all[s->pairs.n++];

    assert_true(s->pairs.n <= SCENE_CASES);
    *pair = (struct pair){.c = &s->c,
                          .pipe = pipe,
                          .label = label,
                          .key = label,
                          .state = state,
                          .reason = "",
                          .differs = ""};
    return pair;
}

/* A case decided so; the overall verdict follows as decide_suite() says it. */
static struct pair *add_case(struct scene *s, const char *pipe, const char *label,
                             enum decision decision, double ratio)
{
    struct pair *pair = add_pair(s, pipe, label, PAIR_READY);
    struct decide_overall *o = &s->pairs.overall;

    pair->decide = (struct decide_case){.a = {&s->values[0], 1},
                                        .b = {&s->values[1], 1},
                                        .higher_is_better = true,
                                        .margin = 0.05,
                                        .decision = decision,
                                        .ratio = ratio,
                                        .low = ratio * 0.99,
                                        .high = ratio * 1.01,
                                        .a_value = 10,
                                        .b_value = 10 * ratio,
                                        .p_worse = NAN,
                                        .p_better = NAN,
                                        .error = 0.005,
                                        .freedom = INFINITY,
                                        .smallest = 0.0123};
    o->n_worse += decision == DECISION_WORSE;
    o->n_better += decision == DECISION_BETTER;
    o->n_equivalent += decision == DECISION_EQUIVALENT;
    o->n_inconclusive += decision == DECISION_INCONCLUSIVE;
    o->n_judged++;
    o->decision = o->n_worse          ? DECISION_WORSE
                  : o->n_inconclusive ? DECISION_INCONCLUSIVE
                  : o->n_better       ? DECISION_BETTER
                                      : DECISION_EQUIVALENT;
    return pair;
}

/* What a printer wrote, to be freed. */
static char *printed(int (*print)(FILE *out, struct view *v), struct scene *s)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    assert_int_equal(print(out, &s->view), 0);
    fclose(out);
    return text;
}

static int print_text(FILE *out, struct view *v)
{
    view_print_text(out, v, false);
    return 0;
}

static int print_all(FILE *out, struct view *v)
{
    view_print_text(out, v, true);
    return 0;
}

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
    assert_non_null(strstr(text, "5 cases: B has none\n      early; early; early; and 2 more\n"));
    free(text);
    text = printed(print_all, &s);
    assert_non_null(strstr(text, "early; early; early; early; late\n"));
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
                            cases[i].exit == 4 ? "incomplete" : decision_name(cases[i].decision));
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
    assert_string_equal(s.view.verdict,
                        "B (guest) is worse than A (bare): 2 of 4 cases are worse, the most "
                        "'triad' at 0.800 of A (95 % interval 0.792 to 0.808); 1 inconclusive; B "
                        "has nothing to compare with in 1 case that A has");
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

/* A bar that is wholly past the margin and says "inconclusive" looks like a mistake. */
static void beyond_and_inconclusive_is_explained(void **state)
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
    assert_non_null(strstr(text, "1 case inconclusive though beyond the margin by itself, "
                                 "&#39;triad&#39;: a difference shows there, but is not proven "
                                 "over the whole suite of 2 cases"));
    free(text);
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
    assert_non_null(strstr(s.view.verdict, "some launches of B failed in 2 cases that A has"));
    assert_int_equal(s.view.n_thinned, 2);
    assert_string_equal(s.view.remarks[s.view.n_remarks - 1],
                        "some launches of B failed in 2 cases that the others decide, such as: "
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
            assert_int_equal(strncmp(s.view.verdict,
                                     side ? "incomplete: the run 'guest' of B is '"
                                          : "incomplete: the run 'bare' of A is '",
                                     strlen("incomplete: the run 'bare")),
                             0);
        }
    add_case(&s, "Memory", "read", DECISION_WORSE, 0.8);
    assert_int_equal(view_make(&s.pairs, &s.view), 0);
    assert_int_equal(view_exit(&s.view), 1); /* what is proven stays so */
    assert_non_null(strstr(s.view.verdict, "; the run 'guest' of B is 'running'"));
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
    assert_non_null(strstr(text, "\nMemory,\"a \"\"b\"\", c\",\"a \"\"b\"\", c\",compared,"
                                 "inconclusive,no,no,0.5,,,0.05,10,5,GB/s,1,3,1,3,,,,,0.0123,,\n"));
    assert_non_null(
        strstr(text, "\nMemory,gone,gone,no value in B,,,,,,,,,,,,,,,,,,,,\"B, too\",\n"));
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
    assert_null(strstr(strstr(text, "| pipe"), "\n| <i>"));
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
        cmocka_unit_test(orders_cases_by_loss_within_pipes),
        cmocka_unit_test(groups_what_was_not_compared_by_reason),
        cmocka_unit_test(names_the_first_of_many_and_all_where_asked),
        cmocka_unit_test(exit_code_is_the_first_that_holds),
        cmocka_unit_test(nothing_to_compare_is_no_verdict),
        cmocka_unit_test(the_sentence_says_what_holds),
        cmocka_unit_test(nothing_proven_is_never_called_equal),
        cmocka_unit_test(figures_do_not_hide_which_side_of_a_mark_an_end_is_on),
        cmocka_unit_test(beyond_and_inconclusive_is_explained),
        cmocka_unit_test(launches_that_were_lost_are_counted),
        cmocka_unit_test(a_run_that_is_not_whole_is_incomplete),
        cmocka_unit_test(a_name_that_is_not_the_folders_is_told_with_it),
        cmocka_unit_test(labels_of_the_axis_stay_on_it),
        cmocka_unit_test(what_cannot_be_told_is_said),
        cmocka_unit_test(a_pipe_is_one_of_those_named),
        cmocka_unit_test(draws_intervals),
        cmocka_unit_test(draws_an_arrow_where_it_goes_on),
        cmocka_unit_test(draws_no_interval_that_is_not_known),
        cmocka_unit_test(bars_have_as_many_columns_in_utf8),
        cmocka_unit_test(the_axis_shows_the_margin_whatever_was_lost),
        cmocka_unit_test(csv_quotes_and_leaves_empty_what_is_not_known),
        cmocka_unit_test(json_takes_any_text),
        cmocka_unit_test(texts_of_files_stay_texts),
        cmocka_unit_test(sides_are_told_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
