/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the gate's parts: escapes, what could have been seen, the best of several runs; and of the examples for CI. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <yaml.h>

#include "check_runs.h"
#include "core/rng.h"
#include "harness/check/check.h"
#include "harness/document/markdown_text.h"

static void write_data(FILE *out, const char *text)
{
    github_data(out, text, false);
}

static void write_property(FILE *out, const char *text)
{
    github_data(out, text, true);
}

static void assert_written(void (*write)(FILE *, const char *), const char *text, const char *want)
{
    char *written = NULL;
    size_t n;
    FILE *out = open_memstream(&written, &n);

    write(out, text);
    fclose(out);
    assert_string_equal(written, want);
    free(written);
}

static void test_github_escapes(void **state)
{
    (void)state;
    assert_written(write_data, "5 % of a:b,c", "5 %25 of a:b,c");
    assert_written(write_property, "5 % of a:b,c", "5 %25 of a%3Ab%2Cc");
    assert_written(write_data, "a\n::error::b\r", "a%0A::error::b%0D");
    assert_written(write_data, "%0A", "%250A");
    assert_written(write_data, "a\x01\xff", "a \xef\xbf\xbd");
}

static void test_junit_escapes(void **state)
{
    (void)state;
    assert_written(junit_text, "a<b>&\"'", "a&#60;b&#62;&#38;&#34;&#39;");
    assert_written(junit_text, "]]>", "]]&#62;");
    assert_written(junit_text, "\x01\x1b\n\xc3\xa9", "   \xc3\xa9");
    assert_written(junit_text, "\xff\xef\xbf\xbf", "\xef\xbf\xbd\xef\xbf\xbd");
}

static void test_markdown_escapes(void **state)
{
    (void)state;
    assert_written(markdown_text, "a|b_c*`<i>", "a\\|b\\_c\\*\\`&#60;i&#62;");
    assert_written(markdown_text, "@all #1 [x]", "&#64;all \\#1 \\[x\\]");
    assert_written(markdown_text, "a\nb", "a b");
}

static void test_what_could_have_been_seen(void **state)
{
    struct decide_case c = {.decision = DECISION_INCONCLUSIVE, .smallest = 0.04, .low = 0.9};

    (void)state;
    assert_false(gate_is_blind(&c, 0.05));
    assert_true(gate_is_blind(&c, 0.03));
    /* an interval that lies above the loss by luck is no sight */
    c.low = 0.975;
    assert_true(gate_is_blind(&c, 0.03));
    c.smallest = c.low = NAN;
    assert_true(gate_is_blind(&c, 0.05));
    c.decision = DECISION_WORSE;
    assert_false(gate_is_blind(&c, 0.05));
    /* equivalence within less has ruled it out, within more it has not */
    c = (struct decide_case){.decision = DECISION_EQUIVALENT, .smallest = 0.06, .margin = 0.02};
    assert_false(gate_is_blind(&c, 0.05));
    c.margin = 0.1;
    assert_true(gate_is_blind(&c, 0.05));
}

static void test_what_is_no_baseline_though_nothing_is_proven(void **state)
{
    struct decide_case c = {
        .decision = DECISION_INCONCLUSIVE, .margin = 0.02, .ratio = 0.97, .p_likely = 0.02};

    (void)state;
    assert_true(gate_is_suspect(&c, 0.05, 1));
    assert_true(gate_is_suspect(&c, 0.05, 2));
    assert_false(gate_is_suspect(&c, 0.05, 3)); /* one of three is so by chance */
    c.best_of = 5;
    assert_false(gate_is_suspect(&c, 0.05, 1));
    c.best_of = 0;
    c.ratio = 0.985; /* within the margin */
    assert_false(gate_is_suspect(&c, 0.05, 1));
    c.ratio = 0.85; /* one launch a side: no p */
    c.p_likely = NAN;
    assert_false(gate_is_suspect(&c, 0.05, 0));
    c.ratio = 0.79;
    assert_true(gate_is_suspect(&c, 0.05, 0));
    c.decision = DECISION_EQUIVALENT;
    assert_false(gate_is_suspect(&c, 0.05, 0));
    c.decision = DECISION_INCONCLUSIVE;
    c.ratio = NAN; /* no value */
    assert_false(gate_is_suspect(&c, 0.05, 0));
}

/* Baselines of three levels and a run; returns the decisions of the first case. */
static struct decide_case best_of(const double *levels, size_t n, size_t last)
{
    struct fake_run root;
    struct pairs p;
    struct pairs_options options = {.margin = 0.02, .decide = {.unchanged = true}};
    char paths[4][128], error[512] = "";
    const char *a[4];
    const char *b;

    fake_run_init(&root);
    for (size_t i = 0; i <= n; i++) {
        char name[16], started[32];

        snprintf(name, sizeof(name), "r%zu", i);
        snprintf(started, sizeof(started), "2026-01-0%zuT00:00:00Z", i + 1);
        struct check_run r = {.name = name,
                              .host = "h",
                              .suite = "s",
                              .started_utc = started,
                              .values = {i < n ? levels[i] : 100, 50, 10},
                              .launches = 5};
        check_run_write(&root, &r, paths[i], sizeof(paths[i]));
        a[i] = paths[i];
    }
    b = paths[n];
    if (pairs_load(&p, a, n, &b, 1, &options, error, sizeof(error)))
        fail_msg("%s", error);
    assert_int_equal(gate_pick_best(&p, last, &options.decide), 0);
    struct decide_case c = p.all[0].decide;
    c.a.n = p.all[0].decide.a.n;
    pairs_release(&p);
    fake_run_release(&root);
    return c;
}

static void test_best_of(void **state)
{
    const double levels[] = {130, 100, 120}, close[] = {200, 200.2, 200.1};
    struct decide_case c = best_of(levels, 3, 3);

    (void)state;
    /* the best is what it is held against; all of them say what varies, which is much here */
    assert_int_equal(c.a.n, 3);
    assert_int_equal(c.best_of, 3);
    assert_true(fabs(c.ratio - 100.0 / 130) < 1e-3);
    assert_int_equal(c.decision, DECISION_INCONCLUSIVE);
    c = best_of(close, 3, 3);
    assert_true(fabs(c.ratio - 100 / 200.2) < 1e-3);
    assert_int_equal(c.decision, DECISION_WORSE);
    c = best_of(levels, 3, 2);
    assert_int_equal(c.best_of, 2);
    assert_true(fabs(c.ratio - 100.0 / 120) < 1e-3);
    c = best_of(levels, 2, 1);
    assert_int_equal(c.best_of, 1);
    assert_true(fabs(c.ratio - 1) < 1e-9);
    assert_int_equal(c.decision, DECISION_INCONCLUSIVE); /* the two differ by 30 % */
}

/* Names, codes and verdicts that scripts rely on. */
static void test_names_and_codes(void **state)
{
    (void)state;
    assert_int_equal(gate_exit(GATE_PASSED), 0);
    assert_int_equal(gate_exit(GATE_LOST), 1);
    assert_int_equal(gate_exit(GATE_UNDECIDED), 3);
    assert_int_equal(gate_exit(GATE_FIRST), 3);
    assert_int_equal(gate_exit(GATE_INCOMPLETE), 4);
    assert_string_equal(gate_state_name(GATE_REGRESSED), "regressed");
    assert_string_equal(gate_state_name(GATE_UNSEEN), "unseen");
    assert_string_equal(gate_state_name(GATE_ABSENT), "absent");
}

static void assert_sentence(double ratio, double low, double high, const char *want)
{
    const struct decide_case c = {.decision = DECISION_WORSE,
                                  .proven = true,
                                  .error = 1e-3,
                                  .ratio = ratio,
                                  .low = low,
                                  .high = high};
    char text[256];

    assert_int_equal(decide_sentence(&c, text, sizeof(text)), 0);
    assert_string_equal(text, want);
}

static void test_digits_until_they_differ(void **state)
{
    (void)state;
    assert_sentence(0.5, 0.49, 0.51,
                    "worse: a loss of 50 % is proven, between a loss of 51 % and a loss of 49 %");
    assert_sentence(
        0.5, 0.49988, 0.50012,
        "worse: a loss of 50.00 % is proven, between a loss of 50.01 % and a loss of 49.99 %");
    assert_sentence(0.960001, 0.96, 0.960002,
                    "worse: a loss of 3.9999 % is proven, between a loss of 4.0000 % and a loss of "
                    "3.9998 %");
    /* values that never vary */
    assert_sentence(0.5, 0.5, 0.5,
                    "worse: a loss of 50 % is proven, between a loss of 50 % and a loss of 50 %");
}

/* --- the examples for CI are YAML, with the keys that their readers look for --- */

/* Reads all of it; which of the words (NULL-ended) stand in it as scalars is marked in found[]. */
static void read_all(const char *path, const char *const *words, bool *found)
{
    FILE *in = fopen(path, "re");
    yaml_parser_t parser;
    yaml_event_t event;
    bool end = false;

    if (!in)
        skip(); /* not run from the top of the source */
    assert_true(yaml_parser_initialize(&parser));
    yaml_parser_set_input_file(&parser, in);
    while (!end) {
        if (!yaml_parser_parse(&parser, &event))
            fail_msg("%s, line %zu: %s", path, parser.problem_mark.line + 1, parser.problem);
        end = event.type == YAML_STREAM_END_EVENT;
        for (size_t i = 0; event.type == YAML_SCALAR_EVENT && words[i]; i++)
            found[i] |= !strcmp((const char *)event.data.scalar.value, words[i]);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    fclose(in);
}

static void check_file(const char *path, const char *const *words)
{
    bool found[16] = {false};

    read_all(path, words, found);
    for (size_t i = 0; words[i]; i++)
        if (!found[i])
            fail_msg("%s has no '%s'", path, words[i]);
}

static void test_github(void **state)
{
    static const char *const words[] = {"on",    "schedule", "concurrency", "jobs", "runs-on",
                                        "steps", "uses",     "always()",    NULL};

    (void)state;
    check_file("examples/ci/github.yml", words);
}

static void test_gitlab(void **state)
{
    static const char *const words[] = {"script", "allow_failure", "exit_codes", "artifacts",
                                        "junit",  "check.xml",     "rules",      NULL};

    (void)state;
    check_file("examples/ci/gitlab-ci.yml", words);
}

/* ---- levels that somebody accepted ---- */

#define CASES  12
#define NIGHTS 6
#define LAUNCH 5

/* A case of several baselines and one run: nights differ by 3 %, launches by 1 %. */
struct nights_case {
    double values[NIGHTS + 1][LAUNCH];
    struct decide_run runs[NIGHTS + 1];
};

static void draw_night(struct rng *r, struct nights_case *c, size_t night, double level)
{
    double here = level * exp(0.03 * rng_normal(r));

    for (size_t l = 0; l < LAUNCH; l++)
        c->values[night][l] = here * exp(0.01 * rng_normal(r));
    c->runs[night] = (struct decide_run){.values = c->values[night], .n = LAUNCH};
}

/* The last night of the first n_lost cases is at `level` of what it was. */
static void decide_night(struct rng *r, struct nights_case *of, struct decide_case *cases,
                         size_t n_lost, double level)
{
    const struct decide_options options = {.unchanged = true, .b_stays = true};
    struct decide_overall overall;

    for (size_t i = 0; i < CASES; i++) {
        draw_night(r, &of[i], NIGHTS, i < n_lost ? 20 * level : 20);
        cases[i] = (struct decide_case){.a = {of[i].runs, NIGHTS},
                                        .b = {&of[i].runs[NIGHTS], 1},
                                        .higher_is_better = true,
                                        .accepted = i < n_lost,
                                        .margin = 0.02};
    }
    assert_int_equal(decide_suite(cases, CASES, &options, &overall), 0);
}

/* In how many of 1,000 suites a later run at `later` of its accepted level regresses. */
static size_t nights_that_regress(uint64_t seed, size_t n_lost, double later)
{
    struct nights_case of[CASES];
    struct decide_case cases[CASES];
    struct accepted_level levels[CASES];
    const struct accepted accepted = {.levels = levels, .n = n_lost};
    struct rng r;
    size_t n = 0;

    rng_seed(&r, seed);
    for (size_t suite = 0; suite < 1000; suite++) {
        size_t here = 0;

        for (size_t i = 0; i < CASES; i++)
            for (size_t night = 0; night < NIGHTS; night++)
                draw_night(&r, &of[i], night, 20);
        decide_night(&r, of, cases, n_lost, 0.6);
        for (size_t i = 0; i < n_lost; i++)
            levels[i].level = cases[i].b_value;
        decide_night(&r, of, cases, n_lost, 0.6 * later);
        for (size_t i = 0; i < n_lost; i++)
            here += cases[i].decision == DECISION_WORSE &&
                    !accepted_covers(&accepted, &levels[i], &cases[i]);
        n += here > 0;
    }
    return n;
}

static void test_accepted_levels_alarm_seldom(void **state)
{
    (void)state;
    assert_true(nights_that_regress(1, 1, 1) <= 10);
    assert_true(nights_that_regress(2, 4, 1) <= 10);
    assert_true(nights_that_regress(3, 1, 0.75) >= 950);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_github_escapes),
        cmocka_unit_test(test_junit_escapes),
        cmocka_unit_test(test_markdown_escapes),
        cmocka_unit_test(test_what_could_have_been_seen),
        cmocka_unit_test(test_what_is_no_baseline_though_nothing_is_proven),
        cmocka_unit_test(test_best_of),
        cmocka_unit_test(test_names_and_codes),
        cmocka_unit_test(test_digits_until_they_differ),
        cmocka_unit_test(test_accepted_levels_alarm_seldom),
        cmocka_unit_test(test_github),
        cmocka_unit_test(test_gitlab),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
