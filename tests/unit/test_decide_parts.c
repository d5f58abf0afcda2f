/* SPDX-License-Identifier: Apache-2.0 */
/* What decisions are made of: the fit of the spreads, Holm's procedure, unrest, few cases, and pairs of runs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/rng.h"
#include "core/stats.h"
#include "harness/decide/spread.h"

/* Mean square of n normal numbers: chi-square over its degrees of freedom. */
static double mean_square(struct rng *r, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += pow(rng_normal(r), 2) / (double)n;
    return sum;
}

#define CASES 1000

static void simulate(double *variances, double *df, size_t of_case, size_t freedom, uint64_t seed)
{
    struct rng r;

    rng_seed(&r, seed);
    for (size_t i = 0; i < CASES; i++) {
        df[i] = (double)of_case;
        variances[i] = 1e-4 * mean_square(&r, of_case) / mean_square(&r, freedom);
    }
}

/* Also where cases are known with other degrees of freedom, or (0) not at all. */
static void the_fit_finds_what_was_simulated(void **state)
{
    static const size_t freedoms[] = {2, 6, 16};
    double variances[CASES], df[CASES], others[CASES], other_df[CASES];
    struct prior prior;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        simulate(variances, df, 8, freedoms[i], i);
        assert_int_equal(prior_fit(variances, df, CASES, &prior), 0);
        assert_true(prior.freedom >= 0.65 * (double)freedoms[i]);
        assert_true(prior.freedom <= 1.55 * (double)freedoms[i]);
        assert_float_equal(log(prior.variance / 1e-4), 0, 0.15);
    }
    simulate(variances, df, 8, 6, 11);
    simulate(others, other_df, 3, 6, 12);
    for (size_t i = 0; i < CASES; i += 2) {
        variances[i] = others[i];
        df[i] = i % 8 ? other_df[i] : 0;
    }
    assert_int_equal(prior_fit(variances, df, CASES, &prior), 0);
    assert_true(prior.freedom >= 3 && prior.freedom <= 9);
    assert_float_equal(log(prior.variance / 1e-4), 0, 0.2);
}

/* A third of the cases looks as if it had no spread at all: that is not believed. */
static void quiet_cases_do_not_pull_the_fit_down(void **state)
{
    double variances[CASES], df[CASES];
    struct prior prior, quiet;

    (void)state;
    simulate(variances, df, 8, 6, 1);
    prior_fit(variances, df, CASES, &prior);
    for (size_t i = 0; i < CASES; i++) {
        if (variances[i] < 0.7e-4)
            variances[i] *= 1e-6;
    }
    prior_fit(variances, df, CASES, &quiet);
    assert_float_equal(quiet.variance, prior.variance, 1e-9);
    assert_float_equal(quiet.freedom, prior.freedom, 1e-9);
}

/* Most launches agree to the last digit. */
static void no_spread_at_all_is_fitted(void **state)
{
    double variances[20] = {[3] = 1e-4}, df[20];
    struct prior prior;

    (void)state;
    for (size_t i = 0; i < 20; i++)
        df[i] = 8;
    assert_int_equal(prior_fit(variances, df, 20, &prior), 0);
    assert_true(isfinite(prior.variance) && prior.variance > 0 && prior.variance < 1e-10);
}

static void few_cases_have_no_fit(void **state)
{
    double variances[DECIDE_PRIOR_CASES], df[DECIDE_PRIOR_CASES], own = 8;
    struct prior prior;

    (void)state;
    for (size_t i = 0; i < DECIDE_PRIOR_CASES; i++) {
        variances[i] = 1e-4;
        df[i] = 8;
    }
    df[0] = 0;
    prior_fit(variances, df, DECIDE_PRIOR_CASES, &prior);
    assert_true(prior.freedom == 0);
    assert_float_equal(prior_moderate(&prior, 3e-4, &own), 3e-4, 1e-12);
    assert_float_equal(own, 8, 1e-12);
    df[0] = 8;
    prior_fit(variances, df, DECIDE_PRIOR_CASES, &prior);
    assert_true(prior.freedom > 0);
}

/* The second example of docs/deciding.md. */
static void variances_are_moderated(void **state)
{
    struct prior prior = {.freedom = 4, .variance = 1e-4, .most = 100};
    double df = 8, variance = prior_moderate(&prior, 6.516287e-5, &df);

    (void)state;
    assert_float_equal(variance, 7.677525e-5, 1e-10);
    assert_float_equal(df, 12, 1e-12);
    assert_float_equal(dist_t_cdf(-0.04082412 / sqrt(variance * 0.4), df), 4.3275e-6, 1e-9);
    prior.most = 10;
    df = 8;
    prior_moderate(&prior, 4e-4, &df);
    assert_float_equal(df, 10, 1e-12);
}

/* At 0.05 of four: 0.01 (0.0125), 0.016 (0.0167), then 0.03 is above 0.025, and 0.04, though below
 * 0.05, comes too late. */
static void holm_by_hand(void **state)
{
    const double p[] = {0.04, 0.01, 0.03, 0.016};
    bool proven[4];

    (void)state;
    assert_int_equal(holm(p, 4, 0.05, proven), 0);
    assert_false(proven[0]);
    assert_true(proven[1]);
    assert_false(proven[2]);
    assert_true(proven[3]);
    assert_int_equal(holm(p, 0, 0.05, proven), 0);
}

static void unrest_is_a_robust_scale(void **state)
{
    static struct change x[CASES];
    static double scratch[CASES];
    struct rng r;

    (void)state;
    for (int i = 0; i < 3; i++) {
        double spread = (const double[]){2, 25, 0.5}[i], least = fmax(spread, 1);

        rng_seed(&r, 5);
        for (size_t k = 0; k < CASES; k++)
            x[k] = (struct change){spread * rng_normal(&r), 1e6};
        assert_float_equal(unrest_scale(x, CASES, scratch) / least, 1, 0.05);
        for (size_t k = 0; k < CASES / 10; k++)
            x[k].t = 1e6; /* true changes have no say */
        assert_float_equal(unrest_scale(x, CASES, scratch) / least, 1, 0.2);
    }
    for (size_t i = 0; i < CASES; i++)
        x[i].t = i < 600 ? 0 : 1;
    assert_true(unrest_scale(x, CASES, scratch) == 1);
    rng_seed(&r, 6); /* a score of a t with 8 degrees of freedom ends near 7, whatever the t */
    for (size_t i = 0; i < CASES; i++)
        x[i] = (struct change){22 * rng_normal(&r) / sqrt(mean_square(&r, 8)), 8};
    assert_float_equal(unrest_scale(x, CASES, scratch), 22, 2);
}

/* Of p that are uniform a p means what it says; of p that are the cubes of such, its cube root. */
static void a_tail_reads_p_as_often_as_they_are(void **state)
{
    static const struct tail_rule rule = {20, 0, 1};
    static double p[CASES];
    struct tail t[2] = {{.factor = 1}, {.factor = 1}};
    struct rng r;

    (void)state;
    rng_seed(&r, 7);
    for (size_t i = 0; i < CASES; i++)
        p[i] = rng_double(&r);
    tail_fit(p, CASES, &rule, &t[0]);
    assert_float_equal(t[0].factor, 1, 0.3);
    assert_true(tail_read(t, 1e-5) < 2e-4 && tail_read(t, 0.3) == 0.3);
    rng_seed(&r, 7);
    for (size_t i = 0; i < CASES; i++)
        p[i] = pow(rng_double(&r), 3);
    tail_fit(p, CASES, &rule, &t[0]);
    assert_float_equal(t[0].factor, 3, 0.8);
    for (int i = 0; i < 3; i++) {
        double told = (const double[]){1e-9, 1e-7, 1e-6}[i];

        assert_float_equal(log(tail_read(t, told)) / log(cbrt(told)), 1, 0.3);
        assert_float_equal(log(tail_read(t, tail_nominal(t, told))) / log(told), 1, 1e-6);
    }
    tail_fit(p, 5, &rule, &t[0]); /* too few to say anything */
    assert_true(tail_read(t, 1e-9) == 1e-9);
}

#define LEVELS(...)                                                                                \
    (const struct decide_run[]){__VA_ARGS__},                                                      \
        sizeof((const struct decide_run[]){__VA_ARGS__}) / sizeof(struct decide_run)
#define AT(x, ...)                                                                                 \
    {                                                                                              \
        .values = (const double[]){x}, .n = 1, ##__VA_ARGS__                                       \
    }

/* Eight runs are two blocks of four: a level that slips from the one to the other is no spread. */
static void runs_spread_within_blocks_and_breaks(void **state)
{
    const struct decide_case slips = {
        .a = {LEVELS(AT(100), AT(101), AT(100), AT(101), AT(80), AT(81), AT(80), AT(81))},
        .b = {LEVELS(AT(80))},
        .higher_is_better = true};
    const struct decide_case breaks = {
        .a = {LEVELS(AT(50, .role = DECIDE_SPREAD), AT(51, .role = DECIDE_SPREAD), {.n = 0},
                     AT(100, .breaks = true), AT(100))},
        .b = {LEVELS(AT(100))},
        .higher_is_better = true};
    struct run_mean means[8];
    struct measure m;
    double off[8];

    (void)state;
    assert_int_equal(spread_measure(&slips, true, means, &m), OBSTACLE_NONE);
    assert_float_equal(m.between_df, 6, 1e-12);
    assert_float_equal(m.between / (pow(log(101 / 100.0), 2) + pow(log(81 / 80.0), 2)), 1 / 6.0,
                       1e-9);
    spread_measure(&slips, false, means, &m); /* in no order: all of one side are alike */
    assert_float_equal(m.between_df, 7, 1e-12);
    assert_true(m.between > 0.01);
    spread_measure(&breaks, true, means, &m);
    assert_float_equal(m.between_df, 2, 1e-12);
    assert_float_equal(m.between, pow(log(51 / 50.0), 2) / 4, 1e-9);
    assert_float_equal(m.d, 0, 1e-12); /* the level is of the last two alone */
    assert_int_equal(m.units_a, 2);
    deviations(&breaks, true, means, off);
    assert_true(isnan(off[2]) && off[3] == 0);
    assert_float_equal(off[1], log(51 / 50.0) / 2 * sqrt(2), 1e-9);
    assert_float_equal(off[0], -off[1], 1e-9);
}

/* ---- a gate's small suites: several baselines and too few cases for a fit ---- */

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
    const struct judge two = {.unrest = 1, .confidence = 0.95};
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
    m.paired = true; /* one more pair of launches, or of runs, is one more difference */
    known_with(&two, &m, &now, 3, &more);
    assert_float_equal(more.df, 7, 1e-12);
    m.by_runs = true;
    known_with(&two, &m, &now, 3, &more);
    assert_float_equal(more.df, 7, 1e-12);
    m.paired = false;
    known_with(&two, &m, &now, 3, &more);
    assert_float_equal(more.df, 10, 1e-12);
}

static void what_more_baselines_would_decide(void **state)
{
    static const double levels[] = {98, 102, 99, 101, 95.5};
    struct suite s;

    (void)state;
    fill(&s, 1, levels, 4);
    decide(&s, false);
    assert_int_equal(s.cases[0].decision, DECISION_INCONCLUSIVE);
    assert_true(s.cases[0].more_launches > 0 && !s.cases[0].more_of_a);
    size_t both = s.cases[0].more_launches;
    decide(&s, true); /* 2 % from run to run, and one run: no number of baselines tells 4.5 % */
    assert_true(s.cases[0].more_of_a);
    assert_true(s.cases[0].more_launches == 0 || s.cases[0].more_launches > both);
    lose(&s, 0, 0.95);
    decide(&s, true);
    assert_int_equal(s.cases[0].decision, DECISION_INCONCLUSIVE);
    assert_true(s.cases[0].more_launches > 0);
}

/* ---- several pairs of runs that were measured in turn ---- */

#define PAIRS_MOST 8
#define IN_TURN    6

/* Pairs of runs of one case: changes of each, in logarithms. */
struct turns {
    double a[PAIRS_MOST][IN_TURN], b[PAIRS_MOST][IN_TURN];
    struct decide_run runs_a[PAIRS_MOST], runs_b[PAIRS_MOST];
};

/* Run r is 10^r on both sides and its launches are far apart, so that nothing but differences can tell anything.
 * Those are change[r], and `apart` more and less by turns. */
static struct decide_case make(struct turns *t, const double *change, size_t n, double apart)
{
    static const double moments[IN_TURN] = {0, 0.5, -0.2, 0.1, 0.3, -0.4};

    for (size_t r = 0; r < n; r++) {
        for (size_t i = 0; i < IN_TURN; i++) {
            t->a[r][i] = pow(10, (double)r) * exp(moments[i]);
            t->b[r][i] = t->a[r][i] * exp(change[r] + (i % 2 ? apart : -apart));
        }
        t->runs_a[r] = (struct decide_run){.values = t->a[r], .n = IN_TURN};
        t->runs_b[r] = (struct decide_run){.values = t->b[r], .n = IN_TURN};
    }
    return (struct decide_case){.a = {t->runs_a, n},
                                .b = {t->runs_b, n},
                                .higher_is_better = true,
                                .paired = true,
                                .margin = 0.02};
}

static struct decide_overall decide_turns(struct decide_case *cases, size_t n)
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
    assert_true(decide_turns(&c, 1).by_runs);
    assert_int_equal(c.decision, DECISION_WORSE);
    assert_true(c.by_runs && c.by_pairs && c.beyond);
    assert_float_equal(log(c.ratio), -0.05, 1e-9);
    /* Five changes: variance 2.5e-6, over 5; t(0.975, 4) = 2.7764 */
    assert_float_equal(c.freedom, 4, 1e-9);
    assert_float_equal(c.error, sqrt(2.5e-6 / 5), 1e-9);
    assert_float_equal(log(c.high), -0.05 + 2.7764451 * sqrt(2.5e-6 / 5), 1e-7);
    /* Judged by runs alone the two sides are alike, as far as anybody can tell. */
    c.paired = false;
    decide_turns(&c, 1);
    assert_int_equal(c.decision, DECISION_INCONCLUSIVE);
    assert_true(c.by_runs && !c.by_pairs && c.error > 1);
    assert_float_equal(c.freedom, 8, 1e-9);
}

/* What counts is that changes differ from run to run; runs that happen to agree are known no better than their
 * launches make them: 30 squares of 0.0009, 25 degrees; a mean of 6, five times. */
static void changes_that_differ_from_run_to_run_widen(void **state)
{
    static const double differ[] = {-0.09, -0.01, -0.05, -0.08, -0.02};
    static const double agree[] = {-0.05, -0.05, -0.05, -0.05, -0.05};
    struct turns t;
    struct decide_case c = make(&t, differ, 5, 0.001);

    (void)state;
    decide_turns(&c, 1);
    assert_int_equal(c.decision, DECISION_INCONCLUSIVE);
    assert_float_equal(c.error, sqrt(0.00125 / 5), 1e-9);
    assert_true(log(c.low) < -0.09 && log(c.high) > -0.01);
    c = make(&t, agree, 5, 0.03);
    decide_turns(&c, 1);
    assert_float_equal(c.error, sqrt(30 * 0.0009 / 25 / 6 / 5), 1e-9);
    assert_float_equal(c.freedom, 4, 1e-9);
}

static void two_pairs_of_runs_are_not_bold(void **state)
{
    static const double alike[] = {-0.05, -0.0501}, apart[] = {-0.03, 0.03};
    struct turns t[2];
    struct decide_case cases[2] = {make(&t[0], alike, 2, 0.0001), make(&t[1], apart, 2, 0.0001)};

    (void)state;
    decide_turns(cases, 1);
    assert_float_equal(cases[0].freedom, 1, 1e-9);
    assert_int_equal(cases[0].decision, DECISION_WORSE);
    /* Pairs of another case are 6 % apart: so may be what changed by 5 %, and fell on one side twice. */
    decide_turns(cases, 2);
    assert_int_equal(cases[0].decision, DECISION_INCONCLUSIVE);
    assert_int_equal(cases[0].obstacle, OBSTACLE_FEW);
    assert_false(cases[0].proven);
    assert_true(cases[0].smallest > 0.058);
    assert_int_equal(cases[0].more_launches, 3); /* five pairs of runs */
    /* A loss of 6.1 % is more than that. */
    for (size_t i = 0; i < IN_TURN; i++) {
        t[0].b[0][i] *= exp(-0.011);
        t[0].b[1][i] *= exp(-0.011);
    }
    decide_turns(cases, 2);
    assert_int_equal(cases[0].decision, DECISION_WORSE);
}

/* A pair of runs of which one has lost the case tells nothing; one that is left is one pair, in a suite of
 * several. */
static void a_case_that_is_lost_in_a_run(void **state)
{
    static const double change[] = {-0.049, -0.051, -0.05};
    struct turns t[2];
    struct decide_case cases[2] = {make(&t[0], change, 3, 0.001), make(&t[1], change, 3, 0.001)};

    (void)state;
    t[0].runs_a[2].n = t[0].runs_b[2].n = 0;
    decide_turns(cases, 2);
    assert_float_equal(cases[0].freedom, 1, 1e-9);
    assert_float_equal(log(cases[0].ratio), -0.05, 1e-9);
    t[0].runs_a[1].n = t[0].runs_b[1].n = 0;
    decide_turns(cases, 2);
    assert_true(cases[0].by_runs && cases[0].by_pairs);
    assert_float_equal(cases[0].error, sqrt(cases[1].error * cases[1].error * 3), 1e-9);
    decide_turns(cases, 1); /* alone it is two runs in turn */
    assert_true(!cases[0].by_runs && cases[0].by_pairs);
    assert_float_equal(cases[0].freedom, 5, 1e-9);
}

/* With few launches a change is to be larger than what changes of launches differ by; launches themselves may
 * differ more. */
static void few_launches_of_one_pair(void **state)
{
    static const double loss[] = {-0.05}, none[] = {0};
    struct turns t[2];
    struct decide_case cases[2] = {make(&t[0], loss, 1, 0.0001), make(&t[1], none, 1, 0.02)};

    (void)state;
    for (size_t k = 0; k < 2; k++)
        t[k].runs_a[0].n = t[k].runs_b[0].n = 4;
    decide_turns(cases, 2);
    assert_int_equal(cases[0].decision, DECISION_WORSE); /* launches are 70 % apart, changes 4 % */
    make(&t[1], none, 1, 0.03);
    t[1].runs_a[0].n = t[1].runs_b[0].n = 4;
    decide_turns(cases, 2);
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
    decide_turns(&c, 1);
    assert_true(c.by_runs && !c.by_pairs && c.error > 1);
    t.runs_b[1].n++;
    c.b.n--;
    decide_turns(&c, 1);
    assert_false(c.by_pairs);
    c.b.n++;
    decide_turns(&c, 1);
    assert_true(c.by_pairs);
    c.best_of = 3; /* the best of A stands against B, and not what it was measured beside */
    decide_turns(&c, 1);
    assert_false(c.by_pairs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_fit_finds_what_was_simulated),
                                       cmocka_unit_test(quiet_cases_do_not_pull_the_fit_down),
                                       cmocka_unit_test(no_spread_at_all_is_fitted),
                                       cmocka_unit_test(few_cases_have_no_fit),
                                       cmocka_unit_test(variances_are_moderated),
                                       cmocka_unit_test(holm_by_hand),
                                       cmocka_unit_test(unrest_is_a_robust_scale),
                                       cmocka_unit_test(a_tail_reads_p_as_often_as_they_are),
                                       cmocka_unit_test(runs_spread_within_blocks_and_breaks),
                                       cmocka_unit_test(two_baselines_of_few_cases),
                                       cmocka_unit_test(what_is_lent),
                                       cmocka_unit_test(more_baselines_are_of_one_side),
                                       cmocka_unit_test(what_more_baselines_would_decide),
                                       cmocka_unit_test(steps_between_runs_are_shared),
                                       cmocka_unit_test(changes_that_differ_from_run_to_run_widen),
                                       cmocka_unit_test(two_pairs_of_runs_are_not_bold),
                                       cmocka_unit_test(a_case_that_is_lost_in_a_run),
                                       cmocka_unit_test(few_launches_of_one_pair),
                                       cmocka_unit_test(what_is_no_pair_is_not_taken_for_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
