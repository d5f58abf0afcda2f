/* SPDX-License-Identifier: Apache-2.0 */
/* What plumb compare shows of a comparison whose verdicts are made up: order, counts, exit code, figures, and any text. */
#include "harness/compare/compare.h"
#include "tests/unit/unit.h"

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
    *s = (struct scene){.names = {"bare", "guest"}, .c = {.metric = "bandwidth", .unit = "GB/s"}};
    for (int i = 0; i < 2; i++) {
        s->runs[i].path = (char *)s->names[i];
        s->runs[i].meta = json_object();
        s->values[i] = (struct decide_run){.values = launches, .n = 3};
    }
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
    free(s->pairs.report.exams);
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
                          .name = label,
                          .code = "",
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
                                        .detectable = 0.0123};
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

TEST(exit_code_is_the_first_that_holds)
{
    static const struct {
        enum decision decision;
        bool failed;
        int exit;
    } cases[] = {{DECISION_EQUIVALENT, false, 0},  {DECISION_BETTER, false, 0},
                 {DECISION_WORSE, false, 1},       {DECISION_WORSE, true, 1},
                 {DECISION_INCONCLUSIVE, true, 4}, {DECISION_EQUIVALENT, true, 4},
                 {DECISION_INCONCLUSIVE, false, 3}};
    struct scene s;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        for (int thinned = 0; thinned < 2; thinned++) { /* lost in all its launches, or in some */
            scene_init(&s);
            struct pair *one = add_case(&s, "Memory", "one", cases[i].decision, 1);
            if (cases[i].failed)
                (thinned ? one : add_pair(&s, "Memory", "two", PAIR_LOST_B))->failed_b = true;
            view_make(&s.pairs, NULL, &s.view);
            assert_int_equal(view_exit(&s.view, 1), cases[i].exit);
            assert_int_equal(s.view.n_thinned, cases[i].failed && thinned);
            scene_release(&s);
        }
    }
    scene_init(&s); /* nothing to compare */
    view_make(&s.pairs, NULL, &s.view);
    assert_int_equal(view_exit(&s.view, 1), 3);
    scene_release(&s);
}

/* No rounding hides which side of 1, or of the margin, an end of an interval is on. */
TEST(figures_tell_the_side_of_a_mark)
{
    static const struct {
        double ratio, low, high;
        const char *both;
    } cases[] = {{0.97, 0.9498, 0.99996, "0.97000 (0.94980-0.99996)"},
                 {0.97, 0.93, 0.98, "0.970 (0.930-0.980)"},
                 /* the noise of a logarithm: no digits tell it from 1 */
                 {1 - 1e-15, 1 - 2e-15, 1 + 1e-15, "1.000 (1.000-1.000)"},
                 {1 - 1e-15, 0.94996, 1 + 1e-15, "1.00000 (0.94996-1.00000)"},
                 {0.97, NAN, NAN, "0.970 (no CI)"},
                 {NAN, NAN, NAN, "no ratio"}};
    struct scene s;

    scene_init(&s);
    struct decide_case *d = &add_case(&s, "Memory", "triad", DECISION_INCONCLUSIVE, 1)->decide;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        d->ratio = cases[i].ratio;
        d->low = cases[i].low;
        d->high = cases[i].high;
        assert_string_equal(view_figures(&s.pairs.report.pool, s.all).both, cases[i].both);
    }
    scene_release(&s);
}

/* Beyond the margin by itself, and not proven over the suite, is likely; an obstacle says more. */
TEST(the_verdict_of_a_case)
{
    static const struct {
        enum decision decision;
        double ratio;
        enum decide_obstacle obstacle;
        const char *verdict, *more;
    } cases[] = {{DECISION_INCONCLUSIVE, 0.8, OBSTACLE_NONE, "likely worse", "+7"},
                 {DECISION_INCONCLUSIVE, 1.2, OBSTACLE_NONE, "likely better", "+7"},
                 {DECISION_INCONCLUSIVE, 1.2, OBSTACLE_FEW, "inconclusive", "+7"},
                 {DECISION_WORSE, 0.8, OBSTACLE_NONE, "worse", ""}};
    struct scene s;

    scene_init(&s);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct pair *pair = add_case(&s, "Memory", "x", cases[i].decision, cases[i].ratio);

        pair->decide.beyond = true;
        pair->decide.more_launches = 7;
        pair->decide.obstacle = cases[i].obstacle;
        struct view_figures f = view_figures(&s.pairs.report.pool, pair);
        assert_string_equal(f.verdict, cases[i].verdict);
        assert_string_equal(f.more, cases[i].more);
        assert_string_equal(f.detectable, "1.2 %");
    }
    scene_release(&s);
}

/* What a printer wrote, to be freed. */
static char *printed(int (*print)(FILE *out, struct view *views, size_t n), struct scene *s)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    assert_int_equal(print(out, &s->view, 1), 0);
    fclose(out);
    return text;
}

static int print_text(FILE *out, struct view *views, size_t n)
{
    return view_print_text(out, views, n, false);
}

/* Whatever the texts hold; and what is not known is empty, or null. */
TEST(texts_of_files_stay_texts)
{
    struct scene s;
    json_t *json, *first;
    char *text;

    scene_init(&s);
    s.names[1] = "<b>|`x`\x1b[2J";
    add_case(&s, "<i>", "<img src=x>|`y`\x1b[31m, \"\xff\"", DECISION_WORSE, NAN);
    view_make(&s.pairs, NULL, &s.view);
    text = printed(view_print_html, &s);
    assert_says(text, "!<img|!<i>");
    free(text);
    text = printed(view_print_markdown, &s);
    assert_null(strstr(strstr(text, "| component"), "\n| <i>"));
    assert_non_null(strstr(text, "&#60;i&#62;"));
    assert_non_null(strstr(text, "\\|\\`y\\`"));
    assert_null(strchr(text, '\x1b'));
    free(text);
    text = printed(print_text, &s);
    assert_null(strchr(text, '\x1b'));
    free(text);
    text = printed(view_print_csv, &s);
    assert_non_null(strstr(text, "\n<i>,\"<img src=x>|`y`"));
    assert_says(text, ", \"\"\xef\xbf\xbd\"\"\"|,compared,GB/s,,,,no,worse,worse,no,no,,,,0.05,");
    free(text);
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
