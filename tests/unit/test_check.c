/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the gate's parts: escapes, what could have been seen, and digits. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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

static void test_escapes(void **state)
{
    static const struct {
        void (*write)(FILE *out, const char *text);
        const char *text, *want;
    } cases[] = {{write_data, "5 % of a:b,c", "5 %25 of a:b,c"},
                 {write_property, "5 % of a:b,c", "5 %25 of a%3Ab%2Cc"},
                 {write_data, "a\n::error::b\r", "a%0A::error::b%0D"},
                 {write_data, "%0A", "%250A"},
                 {write_data, "a\x01\xff", "a \xef\xbf\xbd"},
                 {junit_text, "a<b>&\"'", "a&#60;b&#62;&#38;&#34;&#39;"},
                 {junit_text, "]]>", "]]&#62;"},
                 {junit_text, "\x01\x1b\n\xc3\xa9", "   \xc3\xa9"},
                 {junit_text, "\xff\xef\xbf\xbf", "\xef\xbf\xbd\xef\xbf\xbd"},
                 {markdown_text, "a|b_c*`<i>", "a\\|b\\_c\\*\\`&#60;i&#62;"},
                 {markdown_text, "@all #1 [x]", "&#64;all \\#1 \\[x\\]"},
                 {markdown_text, "a\nb", "a b"}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char *written = NULL;
        size_t n;
        FILE *out = open_memstream(&written, &n);

        cases[i].write(out, cases[i].text);
        fclose(out);
        assert_string_equal(written, cases[i].want);
        free(written);
    }
}

static void test_what_could_have_been_seen(void **state)
{
    static const struct {
        enum decision decision;
        double detectable, low, margin, loss;
        bool blind;
    } cases[] = {{DECISION_INCONCLUSIVE, 0.04, 0.9, 0, 0.05, false},
                 {DECISION_INCONCLUSIVE, 0.04, 0.9, 0, 0.03, true},
                 /* an interval that lies above the loss by luck is no sight */
                 {DECISION_INCONCLUSIVE, 0.04, 0.975, 0, 0.03, true},
                 {DECISION_INCONCLUSIVE, NAN, NAN, 0, 0.05, true},
                 {DECISION_WORSE, NAN, NAN, 0, 0.05, false},
                 /* equivalence within less has ruled it out, within more it has not */
                 {DECISION_EQUIVALENT, 0.06, 0, 0.02, 0.05, false},
                 {DECISION_EQUIVALENT, 0.06, 0, 0.1, 0.05, true}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct decide_case c = {.decision = cases[i].decision,
                                .detectable = cases[i].detectable,
                                .low = cases[i].low,
                                .margin = cases[i].margin};

        assert_int_equal(gate_is_blind(&c, cases[i].loss), cases[i].blind);
    }
}

static void test_what_a_case_comes_to(void **state)
{
    static const struct {
        struct decide_case c;
        double detect;
        enum gate_verdict verdict;
        size_t likely;
    } cases[] = {
        {{.decision = DECISION_WORSE, .error = 0.01}, 0, GATE_LOST, 0},
        {{.decision = DECISION_EQUIVALENT, .error = 0.01, .proven = true, .ratio = 0.99},
         0,
         GATE_PASSED,
         0},
        {{.decision = DECISION_INCONCLUSIVE, .error = 0.1, .ratio = 0.9, .detectable = 0.4},
         0,
         GATE_PASSED,
         0},
        {{.decision = DECISION_INCONCLUSIVE, .error = 0.1, .ratio = 0.9, .detectable = 0.4},
         0.05,
         GATE_UNDECIDED,
         0},
        {{.decision = DECISION_INCONCLUSIVE, .error = 0.1, .ratio = 0.9, .likely = true},
         0,
         GATE_PASSED,
         1},
        /* nothing to decide by */
        {{.decision = DECISION_INCONCLUSIVE, .error = NAN, .ratio = 0.9}, 0, GATE_UNDECIDED, 0},
        {{.decision = DECISION_INCONCLUSIVE, .error = 0.1, .ratio = 0.99, .detectable = NAN},
         0,
         GATE_UNDECIDED,
         0},
        {{.decision = DECISION_INCONCLUSIVE, .error = 0.1, .ratio = 0.99, .detectable = 0.98},
         0,
         GATE_UNDECIDED,
         0},
        /* a doubt, beyond the margin and within it */
        {{.decision = DECISION_INCONCLUSIVE,
          .error = 0.1,
          .ratio = 0.9,
          .margin = 0.02,
          .obstacle = OBSTACLE_SHAPE},
         0,
         GATE_UNDECIDED,
         0},
        {{.decision = DECISION_INCONCLUSIVE,
          .error = 0.1,
          .ratio = 0.9,
          .margin = 0.02,
          .obstacle = OBSTACLE_STRANGE},
         0,
         GATE_UNDECIDED,
         0},
        {{.decision = DECISION_INCONCLUSIVE,
          .error = 0.1,
          .ratio = 0.99,
          .margin = 0.02,
          .obstacle = OBSTACLE_TOGETHER},
         0,
         GATE_PASSED,
         0},
        {{.decision = DECISION_INCONCLUSIVE,
          .error = 0.1,
          .ratio = 0.9,
          .margin = 0.02,
          .obstacle = OBSTACLE_RUNS},
         0,
         GATE_PASSED,
         0}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct gate_tally t = {0};

        gate_count(&t, &cases[i].c, cases[i].detect);
        assert_int_equal(gate_tally_verdict(&t), cases[i].verdict);
        assert_int_equal(t.likely, cases[i].likely);
    }
}

/* Codes that scripts rely on. */
static void test_codes(void **state)
{
    (void)state;
    assert_int_equal(gate_exit(GATE_PASSED), 0);
    assert_int_equal(gate_exit(GATE_LOST), 1);
    assert_int_equal(gate_exit(GATE_UNDECIDED), 3);
    assert_int_equal(gate_exit(GATE_FIRST), 3);
    assert_int_equal(gate_exit(GATE_INCOMPLETE), 4);
}

/* As many digits as it takes to tell both ends of an interval from what is proven. */
static void test_digits_until_they_differ(void **state)
{
    static const struct {
        double ratio, low, high;
        const char *said[3];
    } cases[] = {{0.5, 0.49, 0.51, {" -50 % ", "(-51 to ", " -49)"}},
                 {0.938, 0.926, 0.95, {" -6.2 % ", "(-7.4 to ", " -5.0)"}},
                 {0.5, 0.49988, 0.50012, {" -50.00 % ", "(-50.01 to ", " -49.99)"}},
                 {0.960001, 0.96, 0.960002, {" -3.9999 % ", "(-4.0000 to ", " -3.9998)"}},
                 {0.5, 0.5, 0.5, {" -50 % ", "(-50 to ", " -50)"}}}; /* values that never vary */
    char text[256];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct decide_case c = {.decision = DECISION_WORSE,
                                      .proven = true,
                                      .error = 1e-3,
                                      .ratio = cases[i].ratio,
                                      .low = cases[i].low,
                                      .high = cases[i].high};
        const char *at = text;

        assert_int_equal(decide_sentence(&c, text, sizeof(text)), 0);
        for (size_t k = 0; k < 3; k++) {
            at = strstr(at, cases[i].said[k]);
            assert_non_null(at++);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_escapes), cmocka_unit_test(test_what_could_have_been_seen),
        cmocka_unit_test(test_what_a_case_comes_to), cmocka_unit_test(test_codes),
        cmocka_unit_test(test_digits_until_they_differ)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
