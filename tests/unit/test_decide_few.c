/* SPDX-License-Identifier: Apache-2.0 */
/* A gate's small suites: several baselines and too few cases for a fit, and what more baselines would decide. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "harness/decide/spread.h"

enum { MOST = 4, RUNS = 6, LAUNCHES = 5 };

struct suite {
    double values[MOST][RUNS][LAUNCHES];
    struct decide_run runs[MOST][RUNS];
    struct decide_case cases[MOST];
    size_t n;
};

/* n cases of a baselines and a run; launches are 0.5 % apart, run r of case c is at levels[r]. */
static void fill(struct suite *s, size_t n, const double *levels, size_t a)
{
    static const double apart[LAUNCHES] = {1.005, 1, 0.995, 1.0025, 0.9975};

    s->n = n;
    for (size_t c = 0; c < n; c++) {
        for (size_t r = 0; r <= a; r++) {
            for (size_t l = 0; l < LAUNCHES; l++)
                s->values[c][r][l] = levels[r] * apart[l];
            s->runs[c][r] = (struct decide_run){.values = s->values[c][r], .n = LAUNCHES};
        }
        s->cases[c] = (struct decide_case){.a = {s->runs[c], a},
                                           .b = {&s->runs[c][a], 1},
                                           .higher_is_better = true,
                                           .margin = 0.02};
    }
}

static void lose(struct suite *s, size_t c, double factor)
{
    for (size_t l = 0; l < LAUNCHES; l++)
        s->values[c][s->cases[c].a.n][l] *= factor;
}

static void decide(struct suite *s, bool b_stays)
{
    struct decide_options options = {.unchanged = true, .b_stays = b_stays};
    struct decide_overall overall;

    assert_int_equal(decide_suite(s->cases, s->n, &options, &overall), 0);
}

/* One case by itself has one degree of freedom from two baselines; three have a little of the others', too. */
static void two_baselines_of_few_cases(void **state)
{
    static const double levels[] = {100, 100.5, 100};
    struct suite s;

    (void)state;
    fill(&s, 1, levels, 2);
    lose(&s, 0, 0.7);
    decide(&s, true);
    assert_float_equal(s.cases[0].freedom, 1, 1e-12);
    fill(&s, 3, levels, 2);
    lose(&s, 1, 0.7);
    decide(&s, true);
    assert_float_equal(s.cases[1].freedom, 2, 1e-12);
    assert_int_equal(s.cases[1].decision, DECISION_WORSE);
    assert_true(!s.cases[0].proven && !s.cases[2].proven);
}

/* What is lent is weighed as figures are: 1 of 2 others' degrees at most beside the own one. */
static void what_is_lent(void **state)
{
    struct measure m[3];
    const size_t judged[3] = {0, 1, 2};
    const struct prior none = {.most = INFINITY};
    double ratios[3];

    (void)state;
    for (size_t c = 0; c < 3; c++)
        m[c] = (struct measure){.by_runs = true,
                                .within = 5 * (double)(c + 1),
                                .within_df = 12,
                                .inverse_launches = 0.2,
                                .between = 2 * (double)(c + 1),
                                .between_df = 1};
    m[0].between = 8; /* launches alone: 1, 2 and 3; the ratios: 8, 2 and 2 */
    few_share(m, judged, 3, &none, ratios);
    assert_float_equal(m[0].between_df, 2, 1e-12);
    assert_float_equal(m[0].between, (2 * 1 + 8) / 2.0, 1e-12);
    assert_float_equal(m[1].between, (5 * 2 + 4) / 2.0, 1e-12);
    m[0].between_df = m[1].between_df = m[2].between_df = 4;
    few_share(m, judged, 3, &none, ratios);
    assert_float_equal(m[0].between_df, 5.25, 1e-12);
    /* Pairs keep to themselves. */
    m[0].paired = m[1].paired = m[2].paired = true;
    few_share(m, judged, 3, &none, ratios);
    assert_float_equal(m[0].between_df, 5.25, 1e-12);
}

/* One run stays one run: what a single run is off by is the least that the error can come to. */
static void more_baselines_are_of_one_side(void **state)
{
    const struct judge j = {.unrest = 1, .sway = 1, .confidence = 0.95, .b_stays = true};
    const struct known now = {.variance = 1, .df = 4};
    struct measure m = {.by_runs = true, .units_a = 5, .units_b = 1, .unbalance = 1};
    struct known more;

    (void)state;
    known_with(&j, &m, &now, 3, &more);
    assert_float_equal(more.df, 7, 1e-12);
    assert_float_equal(more.error, sqrt(1 / 8.0 + 1), 1e-12);
    known_with(&j, &m, &now, DECIDE_MORE_MAX, &more);
    assert_true(more.error > 1);
    m.best = true; /* and the best of A's runs is one, too */
    m.units_a = 1;
    known_with(&j, &m, &now, DECIDE_MORE_MAX, &more);
    assert_float_equal(more.error, sqrt(2), 1e-12);
    m.by_runs = false; /* launches of both sides can be more */
    m.best = false;
    m.units_a = m.units_b = 5;
    known_with(&j, &m, &now, 3, &more);
    assert_float_equal(more.df, 10, 1e-12);
    assert_float_equal(more.error, sqrt(2 / 8.0), 1e-12);
}

static void more_baselines_in_words(void **state)
{
    static const double levels[] = {98, 102, 99, 101, 95.5};
    struct suite s;
    char text[512];

    (void)state;
    fill(&s, 1, levels, 4);
    decide(&s, false);
    assert_int_equal(s.cases[0].decision, DECISION_INCONCLUSIVE);
    assert_true(s.cases[0].more_launches > 0 && !s.cases[0].more_of_a);
    size_t both = s.cases[0].more_launches;
    decide(&s, true); /* 2 % from run to run, and one run: no number of baselines tells 4.5 % */
    assert_true(s.cases[0].more_of_a);
    assert_true(s.cases[0].more_launches == 0 || s.cases[0].more_launches > both);
    assert_int_equal(decide_sentence(&s.cases[0], text, sizeof(text)), 0);
    assert_non_null(strstr(text, "more baselines of this spread would hardly decide"));
    assert_null(strstr(text, "a side would"));
    lose(&s, 0, 0.95);
    decide(&s, true);
    assert_int_equal(s.cases[0].decision, DECISION_INCONCLUSIVE);
    assert_true(s.cases[0].more_launches > 0);
    assert_int_equal(decide_sentence(&s.cases[0], text, sizeof(text)), 0);
    assert_non_null(strstr(text, "more baseline"));
    assert_non_null(strstr(text, "would decide, if nothing else changes"));
    assert_null(strstr(text, "a side would"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_baselines_of_few_cases),
        cmocka_unit_test(what_is_lent),
        cmocka_unit_test(more_baselines_are_of_one_side),
        cmocka_unit_test(more_baselines_in_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
