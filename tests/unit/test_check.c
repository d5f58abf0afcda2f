/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the gate's parts: escapes, what could have been seen, and digits. */
#include "harness/check/check.h"
#include "harness/document/markdown_text.h"
#include "tests/unit/unit.h"

static void write_data(FILE *out, const char *text)
{
    github_data(out, text, false);
}

static void write_property(FILE *out, const char *text)
{
    github_data(out, text, true);
}

TEST(test_escapes)
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

TEST(test_what_could_have_been_seen)
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

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct decide_case c = {.decision = cases[i].decision,
                                .detectable = cases[i].detectable,
                                .low = cases[i].low,
                                .margin = cases[i].margin};

        assert_int_equal(gate_is_blind(&c, cases[i].loss), cases[i].blind);
    }
}

TEST(test_what_a_case_comes_to)
{
    static const struct {
        enum decision decision;
        double error, ratio, detectable, detect;
        enum decide_obstacle obstacle;
        bool likely;
        enum gate_verdict verdict;
    } cases[] = {{DECISION_WORSE, 0.01, 0, 0, 0, 0, false, GATE_LOST},
                 {DECISION_EQUIVALENT, 0.01, 0.99, 0, 0, 0, false, GATE_PASSED},
                 {DECISION_INCONCLUSIVE, 0.1, 0.9, 0.4, 0, 0, false, GATE_PASSED},
                 {DECISION_INCONCLUSIVE, 0.1, 0.9, 0.4, 0.05, 0, false, GATE_UNDECIDED},
                 {DECISION_INCONCLUSIVE, 0.1, 0.9, 0, 0, 0, true, GATE_PASSED},
                 /* nothing to decide by */
                 {DECISION_INCONCLUSIVE, NAN, 0.9, 0, 0, 0, false, GATE_UNDECIDED},
                 {DECISION_INCONCLUSIVE, 0.1, 0.99, NAN, 0, 0, false, GATE_UNDECIDED},
                 {DECISION_INCONCLUSIVE, 0.1, 0.99, 0.98, 0, 0, false, GATE_UNDECIDED},
                 /* a doubt, beyond the margin and within it */
                 {DECISION_INCONCLUSIVE, 0.1, 0.9, 0, 0, OBSTACLE_SHAPE, false, GATE_UNDECIDED},
                 {DECISION_INCONCLUSIVE, 0.1, 0.9, 0, 0, OBSTACLE_STRANGE, false, GATE_UNDECIDED},
                 {DECISION_INCONCLUSIVE, 0.1, 0.99, 0, 0, OBSTACLE_TOGETHER, false, GATE_PASSED},
                 {DECISION_INCONCLUSIVE, 0.1, 0.9, 0, 0, OBSTACLE_RUNS, false, GATE_PASSED}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct decide_case c = {.decision = cases[i].decision,
                                      .error = cases[i].error,
                                      .ratio = cases[i].ratio,
                                      .detectable = cases[i].detectable,
                                      .margin = cases[i].obstacle ? 0.02 : 0,
                                      .obstacle = cases[i].obstacle,
                                      .proven = cases[i].decision == DECISION_EQUIVALENT,
                                      .likely = cases[i].likely};
        struct gate_tally t = {0};

        gate_count(&t, &c, cases[i].detect);
        assert_int_equal(gate_tally_verdict(&t), cases[i].verdict);
        assert_int_equal(t.likely, cases[i].likely);
    }
}

/* As many digits as it takes to tell both ends of an interval from what is proven. */
TEST(test_digits_until_they_differ)
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
