/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions of several pairs of runs that were measured in turn. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "harness/decide/spread.h"

#define RUNS_MAX 8
#define LAUNCHES 6

/* Pairs of runs of one case: changes of each, in logarithms. */
struct turns {
    double a[RUNS_MAX][LAUNCHES], b[RUNS_MAX][LAUNCHES];
    struct decide_run runs_a[RUNS_MAX], runs_b[RUNS_MAX];
};

/* Run r is 10^r on both sides and its launches are far apart, so that nothing but differences can tell anything. Those
 * are change[r], and `apart` more and less by turns. */
static struct decide_case make(struct turns *t, const double *change, size_t n, double apart)
{
    static const double moments[LAUNCHES] = {0, 0.5, -0.2, 0.1, 0.3, -0.4};

    for (size_t r = 0; r < n; r++) {
        for (size_t i = 0; i < LAUNCHES; i++) {
            t->a[r][i] = pow(10, (double)r) * exp(moments[i]);
            t->b[r][i] = t->a[r][i] * exp(change[r] + (i % 2 ? apart : -apart));
        }
        t->runs_a[r] = (struct decide_run){.values = t->a[r], .n = LAUNCHES};
        t->runs_b[r] = (struct decide_run){.values = t->b[r], .n = LAUNCHES};
    }
    return (struct decide_case){.a = {t->runs_a, n},
                                .b = {t->runs_b, n},
                                .higher_is_better = true,
                                .paired = true,
                                .margin = 0.02};
}

static struct decide_overall decided(struct decide_case *cases, size_t n)
{
    const struct decide_options options = {.unchanged = false};
    struct decide_overall overall;

    assert_int_equal(decide_suite(cases, n, &options, &overall), 0);
    return overall;
}

static void steps_between_runs_are_shared(void **state)
{
    static const double change[] = {-0.049, -0.051, -0.050, -0.052, -0.048};
    struct turns t;
    struct decide_case c = make(&t, change, 5, 0.001);

    (void)state;
    assert_true(decided(&c, 1).by_runs);
    assert_int_equal(c.decision, DECISION_WORSE);
    assert_true(c.by_runs && c.by_pairs && c.beyond);
    assert_float_equal(log(c.ratio), -0.05, 1e-9);
    /* Five changes: variance 2.5e-6, over 5; t(0.975, 4) = 2.7764 */
    assert_float_equal(c.freedom, 4, 1e-9);
    assert_float_equal(c.error, sqrt(2.5e-6 / 5), 1e-9);
    assert_float_equal(log(c.high), -0.05 + 2.7764451 * sqrt(2.5e-6 / 5), 1e-7);
    /* Judged by runs alone the two sides are alike, as far as anybody can tell. */
    c.paired = false;
    decided(&c, 1);
    assert_int_equal(c.decision, DECISION_INCONCLUSIVE);
    assert_true(c.by_runs && !c.by_pairs && c.error > 1);
    assert_float_equal(c.freedom, 8, 1e-9);
}

/* The launches agree to 0.1 % in each pair of runs; that the pairs do not is what counts. */
static void a_change_that_differs_from_run_to_run_widens(void **state)
{
    static const double change[] = {-0.09, -0.01, -0.05, -0.08, -0.02};
    struct turns t;
    struct decide_case c = make(&t, change, 5, 0.001);

    (void)state;
    decided(&c, 1);
    assert_int_equal(c.decision, DECISION_INCONCLUSIVE);
    assert_float_equal(c.error, sqrt(0.00125 / 5), 1e-9);
    assert_true(log(c.low) < -0.09 && log(c.high) > -0.01);
}

/* Pairs of runs that happen to agree are not known better than their launches make them. */
static void launches_are_the_least_that_runs_differ_by(void **state)
{
    static const double change[] = {-0.05, -0.05, -0.05, -0.05, -0.05};
    struct turns t;
    struct decide_case c = make(&t, change, 5, 0.03);

    (void)state;
    decided(&c, 1);
    /* Differences around their runs' means: 30 squares of 0.0009, 25 degrees; a mean of 6, five times. */
    assert_float_equal(c.error, sqrt(30 * 0.0009 / 25 / 6 / 5), 1e-9);
    assert_float_equal(c.freedom, 4, 1e-9);
}

static void two_pairs_of_runs_are_not_bold(void **state)
{
    static const double alike[] = {-0.05, -0.0501}, apart[] = {-0.03, 0.03};
    struct turns t[2];
    struct decide_case cases[2] = {make(&t[0], alike, 2, 0.0001), make(&t[1], apart, 2, 0.0001)};
    char text[512];

    (void)state;
    decided(cases, 1);
    assert_float_equal(cases[0].freedom, 1, 1e-9);
    assert_int_equal(cases[0].decision, DECISION_WORSE);
    /* Pairs of another case are 6 % apart: so may be what changed by 5 %, and fell on one side twice. */
    decided(cases, 2);
    assert_int_equal(cases[0].decision, DECISION_INCONCLUSIVE);
    assert_int_equal(cases[0].obstacle, OBSTACLE_FEW);
    assert_false(cases[0].proven);
    assert_true(cases[0].smallest > 0.058);
    assert_int_equal(cases[0].more_launches, 3); /* five pairs of runs */
    assert_int_equal(decide_sentence(&cases[0], text, sizeof(text)), 0);
    assert_non_null(strstr(text, "seen in fewer than 5 runs a side, which two levels between runs "
                                 "would look like, too; 3 more runs a side would decide"));
    /* A loss of 6.1 % is more than that. */
    for (size_t i = 0; i < LAUNCHES; i++) {
        t[0].b[0][i] *= exp(-0.011);
        t[0].b[1][i] *= exp(-0.011);
    }
    decided(cases, 2);
    assert_int_equal(cases[0].decision, DECISION_WORSE);
}

/* Another launch of a pair, or another pair of runs, is one more difference: not one more of each side. */
static void one_more_pair_is_one_more_degree(void **state)
{
    const struct judge j = {.unrest = 1, .confidence = 0.95};
    const struct known now = {.variance = 1, .df = 4};
    struct measure m = {.paired = true, .units_a = 5, .units_b = 5};
    struct known more;

    (void)state;
    known_with(&j, &m, &now, 3, &more);
    assert_float_equal(more.df, 7, 1e-12);
    m.by_runs = true;
    known_with(&j, &m, &now, 3, &more);
    assert_float_equal(more.df, 7, 1e-12);
    m.paired = false;
    known_with(&j, &m, &now, 3, &more);
    assert_float_equal(more.df, 10, 1e-12);
}

/* A pair of runs of which one has lost the case tells nothing; one that is left is one pair, in a suite of several. */
static void a_case_that_is_lost_in_a_run(void **state)
{
    static const double change[] = {-0.049, -0.051, -0.05};
    struct turns t[2];
    struct decide_case cases[2] = {make(&t[0], change, 3, 0.001), make(&t[1], change, 3, 0.001)};

    (void)state;
    t[0].runs_a[2].n = t[0].runs_b[2].n = 0;
    decided(cases, 2);
    assert_float_equal(cases[0].freedom, 1, 1e-9);
    assert_float_equal(log(cases[0].ratio), -0.05, 1e-9);
    t[0].runs_a[1].n = t[0].runs_b[1].n = 0;
    decided(cases, 2);
    assert_true(cases[0].by_runs && cases[0].by_pairs);
    assert_float_equal(cases[0].error, sqrt(cases[1].error * cases[1].error * 3), 1e-9);
    decided(cases, 1); /* alone it is two runs in turn */
    assert_true(!cases[0].by_runs && cases[0].by_pairs);
    assert_float_equal(cases[0].freedom, 5, 1e-9);
}

/* However many launches it has, one pair of runs is few where runs are what varies. */
static void one_pair_that_is_left_is_few(void **state)
{
    static struct turns t[20];
    struct decide_case cases[20];

    (void)state;
    for (size_t i = 0; i < 20; i++) {
        double off = 0.0002 * (1 + (double)(i % 5)), loss = i ? 0 : -0.03;
        const double change[] = {loss - off, loss + off, loss};

        cases[i] = make(&t[i], change, 3, 0.0005);
    }
    for (size_t r = 1; r < 3; r++)
        t[0].runs_a[r].n = t[0].runs_b[r].n = 0;
    decided(cases, 20);
    assert_int_equal(cases[0].decision, DECISION_WORSE);
    cases[19] = make(&t[19], (const double[]){0, 0, 0}, 3,
                     0.02); /* one more, whose launches are 4 % apart */
    for (size_t r = 1; r < 3; r++)
        t[19].runs_a[r].n = t[19].runs_b[r].n = 0;
    decided(cases, 20);
    assert_int_equal(cases[0].decision, DECISION_INCONCLUSIVE);
    assert_int_equal(cases[0].obstacle, OBSTACLE_FEW);
}

/* With few launches a change is to be larger than what changes of launches differ by; launches themselves may differ more. */
static void few_launches_of_one_pair(void **state)
{
    static const double loss[] = {-0.05}, none[] = {0};
    struct turns t[2];
    struct decide_case cases[2] = {make(&t[0], loss, 1, 0.0001), make(&t[1], none, 1, 0.02)};

    (void)state;
    for (size_t k = 0; k < 2; k++)
        t[k].runs_a[0].n = t[k].runs_b[0].n = 4;
    decided(cases, 2);
    assert_int_equal(cases[0].decision, DECISION_WORSE); /* launches are 70 % apart, changes 4 % */
    make(&t[1], none, 1, 0.03);
    t[1].runs_a[0].n = t[1].runs_b[0].n = 4;
    decided(cases, 2);
    assert_int_equal(cases[0].decision, DECISION_INCONCLUSIVE);
    assert_int_equal(cases[0].obstacle, OBSTACLE_FEW);
    assert_int_equal(cases[0].more_launches, 1);
}

static void what_is_no_pair_is_not_taken_for_one(void **state)
{
    static const double change[] = {-0.049, -0.051, -0.05};
    struct turns t;
    struct decide_case c = make(&t, change, 3, 0.001);

    (void)state;
    t.runs_b[1].n--;
    decided(&c, 1);
    assert_true(c.by_runs && !c.by_pairs && c.error > 1);
    t.runs_b[1].n++;
    c.b.n--;
    decided(&c, 1);
    assert_false(c.by_pairs);
    c.b.n++;
    decided(&c, 1);
    assert_true(c.by_pairs);
    c.best_of = 3; /* the best of A stands against B, and not what it was measured beside */
    decided(&c, 1);
    assert_false(c.by_pairs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_between_runs_are_shared),
        cmocka_unit_test(a_change_that_differs_from_run_to_run_widens),
        cmocka_unit_test(launches_are_the_least_that_runs_differ_by),
        cmocka_unit_test(two_pairs_of_runs_are_not_bold),
        cmocka_unit_test(one_more_pair_is_one_more_degree),
        cmocka_unit_test(a_case_that_is_lost_in_a_run),
        cmocka_unit_test(one_pair_that_is_left_is_few),
        cmocka_unit_test(few_launches_of_one_pair),
        cmocka_unit_test(what_is_no_pair_is_not_taken_for_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
