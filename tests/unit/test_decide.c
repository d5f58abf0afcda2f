/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions over a suite: worked figures, and what must hold whatever the data. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/rng.h"
#include "harness/decide/decide.h"

#define RUN(...)                                                                                   \
    {                                                                                              \
        .values = (const double[]){__VA_ARGS__},                                                   \
        .n = sizeof((const double[]){__VA_ARGS__}) / sizeof(double)                                \
    }
#define SIDE(...)                                                                                  \
    {                                                                                              \
        (const struct decide_run[]){__VA_ARGS__},                                                  \
            sizeof((const struct decide_run[]){__VA_ARGS__}) / sizeof(struct decide_run)           \
    }
/* A case whose rate is higher the better, with this margin. */
#define CASE(side_a, side_b, limit)                                                                \
    {                                                                                              \
        .a = side_a, .b = side_b, .higher_is_better = true, .margin = limit                        \
    }
#define FULL SIDE(RUN(100, 101, 99, 100.5, 99.5))
#define LESS SIDE(RUN(96, 97, 95.5, 96.5, 95))

static struct decide_overall decided(struct decide_case *cases, size_t n, bool unchanged)
{
    struct decide_options options = {.unchanged = unchanged};
    struct decide_overall overall;

    assert_int_equal(decide_suite(cases, n, &options, &overall), 0);
    return overall;
}

static enum decision decision_of(struct decide_case *c)
{
    decided(c, 1, false);
    return c->decision;
}

/* The example of docs/deciding.md; the figures were worked apart from this program. */
static void the_example_of_the_docs(void **state)
{
    struct decide_case c = CASE(FULL, LESS, 0.02);
    struct decide_overall overall = decided(&c, 1, false);

    (void)state;
    assert_float_equal(c.a_value, 99.997500, 1e-6);
    assert_float_equal(c.b_value, 95.997396, 1e-6);
    assert_float_equal(c.ratio, 0.95999796, 1e-8);
    assert_float_equal(c.error, 0.00510540387, 1e-11);
    assert_float_equal(c.freedom, 8, 1e-12);
    assert_float_equal(c.low, 0.94876209, 1e-8);
    assert_float_equal(c.high, 0.97136689, 1e-8);
    assert_float_equal(c.p_worse, 2.1907804e-05, 1e-12);
    assert_float_equal(c.p_better, 1 - 2.1907804e-05, 1e-12);
    assert_float_equal(c.smallest, 0.0214356667, 1e-9);
    assert_int_equal(c.decision, DECISION_WORSE);
    assert_true(c.proven && c.beyond && !c.by_runs);
    assert_int_equal(c.more_launches, 0);
    assert_int_equal(overall.decision, DECISION_WORSE);
    assert_int_equal(overall.n_worse, 1);
    assert_int_equal(overall.n_judged, 1);
    assert_true(isnan(overall.unrest) && isnan(overall.prior_freedom) && !overall.by_runs);
    /* a time that is lower by as much as a rate is higher is the same change */
    struct decide_case times = {.a = SIDE(RUN(1 / 100.0, 1 / 101.0, 1 / 99.0, 1 / 100.5, 1 / 99.5)),
                                .b = SIDE(RUN(1 / 96.0, 1 / 97.0, 1 / 95.5, 1 / 96.5, 1 / 95.0)),
                                .margin = 0.02};
    assert_int_equal(decision_of(&times), DECISION_WORSE);
    assert_float_equal(times.ratio, 0.95999796, 1e-8);
    assert_float_equal(times.p_worse, 2.1907804e-05, 1e-12);
    assert_true(times.b_value > times.a_value);
}

/* A proven change is equivalent while its interval is within: down to 1 - margin, and up to 1 / (1 - margin). */
static void the_margin_is_one_of_ratios(void **state)
{
    struct decide_case loss = CASE(FULL, LESS, 0.06), gain = CASE(LESS, FULL, 0.0513);

    (void)state;
    assert_int_equal(decision_of(&loss), DECISION_EQUIVALENT);
    assert_true(loss.proven && !loss.beyond);
    loss.margin = 0.0513; /* 0.9487 is just below 0.94876 */
    assert_int_equal(decision_of(&loss), DECISION_EQUIVALENT);
    loss.margin = 0.0512;
    assert_int_equal(decision_of(&loss), DECISION_WORSE);
    assert_true(!loss.beyond);
    assert_int_equal(decision_of(&gain), DECISION_EQUIVALENT); /* up to 1.05407: high is 1.05401 */
    assert_float_equal(gain.high, 1 / 0.94876209, 1e-7);
}

/* What drifts hits both of a pair alike: the differences vary by 0.1 %, the launches by 20 %. */
static void launches_in_turn_share_what_drifts(void **state)
{
    static const double a[] = {100, 110, 121, 95, 90}, b[] = {97.1, 106.7, 117.25, 92.15, 87.3};
    const struct decide_run run_a = {.values = a, .n = 5};
    struct decide_run run_b = {.values = b, .n = 5};
    struct decide_case c = CASE({&run_a}, {&run_b}, 0.02);
    double sd = 0, mean = 0;

    (void)state;
    c.a.n = c.b.n = 1;
    assert_int_equal(decision_of(&c), DECISION_INCONCLUSIVE);
    c.paired = true;
    assert_int_equal(decision_of(&c), DECISION_WORSE);
    assert_true(fabs(c.ratio - 0.97) < 0.001);
    assert_float_equal(c.freedom, 4, 1e-9);
    for (int i = 0; i < 5; i++)
        mean += log(b[i] / a[i]) / 5;
    for (int i = 0; i < 5; i++)
        sd += pow(log(b[i] / a[i]) - mean, 2) / 4;
    assert_float_equal(c.error / sqrt(sd / 5), 1, 1e-9);
    run_b.n = 4; /* launches that are no pairs are none */
    assert_int_equal(decision_of(&c), DECISION_INCONCLUSIVE);
    assert_float_equal(c.freedom, 7, 1e-9);
}

/* Who goes second loses 6 %; three launches began with A, two with B. */
static void the_order_of_a_pair_is_taken_out(void **state)
{
    static const bool first[] = {true, false, true, false, true};
    struct decide_run run_a = RUN(100, 94.1, 100.2, 93.9, 99.9);
    const struct decide_run run_b = RUN(94, 100.1, 94.1, 100, 93.9);
    struct decide_case c = CASE({&run_a}, {&run_b}, 0.02);

    (void)state;
    c.a.n = c.b.n = 1;
    c.paired = true;
    run_a.went_first = first;
    assert_int_equal(decision_of(&c), DECISION_EQUIVALENT);
    assert_true(fabs(c.ratio - 1) < 0.002);
    assert_float_equal(c.freedom, 3, 1e-9);
    run_a.went_first = NULL; /* without it: 1.2 % of bias, and the order in the spread */
    assert_int_equal(decision_of(&c), DECISION_INCONCLUSIVE);
}

static void how_many_more_would_decide(void **state)
{
    struct decide_case c =
        CASE(SIDE(RUN(100, 102, 98, 101, 99)), SIDE(RUN(99, 100.5, 97, 100, 98.5)), 0.01);
    char text[256];

    (void)state;
    assert_int_equal(decision_of(&c), DECISION_INCONCLUSIVE);
    assert_int_equal(c.obstacle, OBSTACLE_NONE);
    assert_int_equal(c.more_launches, 27);
    c.margin = 0.02;
    decided(&c, 1, false);
    assert_int_equal(c.more_launches, 13);
    assert_int_equal(decide_sentence(&c, text, sizeof(text)), 0);
    assert_non_null(strstr(text, "13 more launches"));
    assert_int_equal(decide_sentence(&c, text, 20), -ENOSPC);
    assert_int_equal(strlen(text), 19);
}

/* Variance 6.2019e-4 between the three runs' means, 2 degrees of freedom, error sqrt(V (1/3 + 1)); runs that agree
 * by chance do not make launches' own spread go away. */
static void several_runs_are_what_varies(void **state)
{
    struct decide_case c =
        CASE(SIDE(RUN(100, 101), RUN(103, 104), {0}, RUN(98, 99)), SIDE(RUN(95, 96)), 0.02);
    struct decide_case agree =
        CASE(SIDE(RUN(90, 110), RUN(90, 110), RUN(90, 110)), SIDE(RUN(90, 110)), 0.02);
    double within = 2 * pow(log(110 / 90.0) / 2, 2);

    (void)state;
    assert_true(decided(&c, 1, true).by_runs);
    assert_true(c.by_runs);
    assert_float_equal(log(c.ratio), -0.0541371116, 1e-9);
    assert_float_equal(c.error, 0.0287562862, 1e-9);
    assert_float_equal(c.freedom, 2, 1e-12);
    assert_float_equal(c.p_worse, 0.100229433, 1e-8);
    decided(&agree, 1, false);
    assert_float_equal(agree.error, sqrt(within / 2 * (1 / 3.0 + 1)), 1e-9);
}

#define MANY 40
struct scene {
    double values[MANY][2][5];
    struct decide_run runs[MANY][2];
    struct decide_case cases[MANY];
};

static void scene_fill(struct scene *s, size_t launches, double margin, uint64_t seed)
{
    struct rng r;

    rng_seed(&r, seed);
    for (size_t c = 0; c < MANY; c++) {
        for (size_t side = 0; side < 2; side++) {
            for (size_t l = 0; l < 5; l++)
                s->values[c][side][l] = 50 * exp(0.01 * rng_normal(&r));
            s->runs[c][side] = (struct decide_run){.values = s->values[c][side], .n = launches};
        }
        s->cases[c] = (struct decide_case){.a = {&s->runs[c][0], 1},
                                           .b = {&s->runs[c][1], 1},
                                           .higher_is_better = true,
                                           .margin = margin};
    }
}

static void scene_scale(struct scene *s, size_t c, double by)
{
    for (size_t l = 0; l < 5; l++)
        s->values[c][1][l] *= by;
}

/* With the sides swapped it is a gain, and every figure is turned round. */
static void one_loss_in_a_suite_is_named_alone(void **state)
{
    struct scene s, t;

    (void)state;
    for (int unchanged = 0; unchanged < 2; unchanged++) {
        scene_fill(&s, 5, 0.02, 3);
        scene_scale(&s, 7, 0.94);
        t = s;
        for (size_t c = 0; c < MANY; c++) {
            t.cases[c].a.runs = &s.runs[c][1];
            t.cases[c].b.runs = &s.runs[c][0];
        }
        struct decide_overall x = decided(s.cases, MANY, unchanged);
        struct decide_overall y = decided(t.cases, MANY, unchanged);

        assert_int_equal(x.n_worse, 1);
        assert_int_equal(x.n_better, 0);
        assert_int_equal(s.cases[7].decision, DECISION_WORSE);
        assert_int_equal(x.n_worse + x.n_inconclusive + x.n_equivalent, MANY);
        assert_true(x.prior_freedom >= 8);
        assert_true(s.cases[7].freedom > 8);
        assert_int_equal(y.n_better, 1);
        assert_int_equal(y.n_worse, 0);
        for (size_t c = 0; c < MANY; c++) {
            assert_float_equal(s.cases[c].ratio * t.cases[c].ratio, 1, 1e-9);
            assert_float_equal(s.cases[c].low * t.cases[c].high, 1, 1e-9);
            assert_float_equal(s.cases[c].p_worse, t.cases[c].p_better, 1e-9);
            assert_float_equal(s.cases[c].smallest, t.cases[c].smallest, 1e-9);
            assert_int_equal(s.cases[c].more_launches, t.cases[c].more_launches);
        }
    }
    scene_fill(&s, 5, 0.02, 3); /* bad cases leave the others alone */
    scene_scale(&s, 7, 0.94);
    s.values[8][1][2] = NAN;
    s.runs[9][0].n = 0;
    struct decide_overall overall = decided(s.cases, MANY, true);

    assert_int_equal(overall.n_judged, MANY - 2);
    assert_int_equal(overall.n_worse, 1);
}

/* All cases moved up or down by 3 %, as another boot may: a gate does not believe its launches, nor would more of
 * them help. */
static void unrest_widens_a_gates_intervals(void **state)
{
    struct scene s;
    double before, error;

    (void)state;
    scene_fill(&s, 5, 0.02, 5);
    before = decided(s.cases, MANY, true).unrest;
    assert_true(before >= 1 && before < 1.4);
    for (size_t c = 0; c < MANY; c++)
        scene_scale(&s, c, c % 2 ? 1.03 : 1 / 1.03);
    struct decide_overall told = decided(s.cases, MANY, false);

    assert_true(isnan(told.unrest) && told.n_worse > 0);
    error = s.cases[0].error;
    struct decide_overall gate = decided(s.cases, MANY, true);

    assert_true(gate.unrest > 3);
    assert_int_equal(gate.n_worse, 0);
    assert_float_equal(s.cases[0].error, error * gate.unrest, 1e-9);
    /* 26 degrees of its width; of its shape 4, for the part that is beyond twice its own error of 1 in sqrt(52) */
    double beyond = gate.unrest / 1.2773500981, part = 1 - 1 / (beyond * beyond);

    assert_float_equal(s.cases[0].freedom, 104 / (4 + 26 * part * part), 1e-6);
    for (size_t c = 0; c < MANY; c++)
        s.cases[c].margin = 0.001;
    decided(s.cases, MANY, true);
    assert_int_equal(s.cases[0].decision, DECISION_INCONCLUSIVE);
    assert_int_equal(s.cases[0].more_launches, 0);
}

/* Two runs a side of which one is as far off as six widths of the others' changes: by their shape nobody knows. */
static void a_night_far_off_is_no_loss_before_nights_are_known(void **state)
{
    struct scene s;

    (void)state;
    scene_fill(&s, 5, 0.001, 5);
    for (size_t c = 0; c < MANY; c++)
        scene_scale(&s, c, exp(0.01 * (c % 2 ? 1 : -1) * (1 + (double)c / MANY)));
    scene_scale(&s, 0, 0.9);
    decided(s.cases, MANY, true);
    assert_true(s.cases[0].ratio < 0.92);
    assert_int_equal(s.cases[0].decision, DECISION_INCONCLUSIVE);
    assert_true(s.cases[0].p_worse < 0.01 && s.cases[0].p_likely < s.cases[0].p_worse);
    assert_int_equal(s.cases[0].obstacle, OBSTACLE_SHAPE); /* no other case lay as far off */
    scene_scale(&s, 0, 0.7);                               /* no night is as far off as that */
    decided(s.cases, MANY, true);
    assert_int_equal(s.cases[0].decision, DECISION_WORSE);
}

/* Of one run a side nobody knows whether a case lost, or comes up on another level now and then: what moved the
 * other way says that some do. */
static void a_gain_as_large_makes_a_loss_doubtful(void **state)
{
    struct scene s;

    (void)state;
    scene_fill(&s, 5, 0.02, 4);
    scene_scale(&s, 3, 0.93);
    assert_int_equal(decided(s.cases, MANY, true).n_worse, 1);
    for (size_t c = 10; c < 13; c++)
        scene_scale(&s, c, 1.08);
    assert_int_equal(decided(s.cases, MANY, true).n_worse, 0);
    assert_int_equal(s.cases[3].obstacle, OBSTACLE_JUMPS);
    assert_int_equal(decided(s.cases, MANY, false).n_worse, 1); /* compare's view */
}

/* Half of the cases, or all of them, lose with one baseline: a run that came up otherwise looks the same. Six that
 * somebody accepted say nothing of the others. */
static void a_shift_of_many_cases_is_told_and_not_proven(void **state)
{
    struct scene s;

    (void)state;
    for (size_t n = MANY / 2; n <= MANY; n += MANY / 2) {
        scene_fill(&s, 5, 0.02, 6);
        for (size_t c = 0; c < n; c++)
            scene_scale(&s, c, 0.93);
        struct decide_overall overall = decided(s.cases, MANY, true);

        assert_int_equal(overall.n_worse, 0);
        assert_true(overall.together && overall.n_down + 2 >= n && overall.n_up <= 2);
        assert_float_equal(overall.moved, 0.93, 0.01);
        assert_true(overall.unrest > 3);
        assert_int_equal(s.cases[3].obstacle, OBSTACLE_TOGETHER);
    }
    for (unsigned accepted = 0; accepted < 2; accepted++) {
        scene_fill(&s, 5, 0.02, 5);
        for (size_t c = 0; c < 6; c++) {
            scene_scale(&s, c, 0.93);
            s.cases[c].accepted = accepted;
        }
        struct decide_overall overall = decided(s.cases, MANY, true);

        assert_int_equal(overall.together, !accepted);
        assert_true(accepted || overall.n_down >= 6);
        assert_true(!accepted || s.cases[0].obstacle != OBSTACLE_TOGETHER);
    }
}

/* Baselines by which it is known how runs differ. */
#define NIGHTS 25
struct nights {
    double values[MANY][NIGHTS + 1][5];
    struct decide_run runs[MANY][NIGHTS + 1];
    struct decide_case cases[MANY];
};

static void nights_fill(struct nights *s, size_t baselines, double between, double within,
                        uint64_t seed)
{
    struct rng r;

    rng_seed(&r, seed);
    for (size_t c = 0; c < MANY; c++) {
        for (size_t t = 0; t <= baselines; t++) {
            double level = between * rng_normal(&r);

            for (size_t l = 0; l < 5; l++)
                s->values[c][t][l] = 50 * exp(level + within * rng_normal(&r));
            s->runs[c][t] = (struct decide_run){.values = s->values[c][t], .n = 5};
        }
        s->cases[c] = (struct decide_case){.a = {s->runs[c], baselines},
                                           .b = {&s->runs[c][baselines], 1},
                                           .higher_is_better = true,
                                           .margin = 0.02};
    }
}

static void nights_lose(struct nights *s, size_t c, size_t night, double loss)
{
    for (size_t l = 0; l < 5; l++)
        s->values[c][night][l] *= 1 - loss;
}

/* All cases lie below the best of their baselines: that is no loss that they share. */
static void the_best_of_runs_is_no_common_loss(void **state)
{
    static struct nights s;
    double error[2];

    (void)state;
    nights_fill(&s, 5, 0.01, 0.003, 9);
    for (unsigned best = 0; best < 2; best++) {
        for (size_t c = 0; c < MANY; c++)
            s.cases[c].best_of = 5 * best;
        struct decide_overall overall = decided(s.cases, MANY, true);

        assert_true(!overall.together && overall.n_worse == 0);
        error[best] = s.cases[0].error;
    }
    assert_float_equal(error[1] / error[0], sqrt(2 / 1.2), 1e-6); /* one run for five */
    nights_fill(&s, 5, 0.005, 0.003, 6); /* a loss that all share is proven by several baselines */
    for (size_t c = 0; c < MANY; c++)
        nights_lose(&s, c, 5, 0.07);
    assert_int_equal(decided(s.cases, MANY, true).n_worse, MANY);
}

/* 0.3 % a night in every fifth case: 3 % over the last ten nights, which is lost in their noise, and 6 % since the
 * first. */
static void a_slip_is_seen_from_the_anchor(void **state)
{
    static struct nights s;

    (void)state;
    nights_fill(&s, NIGHTS, 0.01, 0.003, 6);
    for (size_t c = 0; c < MANY; c += 5)
        for (size_t t = 0; t <= NIGHTS; t++)
            nights_lose(&s, c, t, 1 - pow(1 - 0.003, (double)t));
    for (size_t c = 0; c < MANY; c++)
        for (size_t t = 0; t < NIGHTS; t++)
            s.runs[c][t].role = t < 10            ? DECIDE_ANCHOR
                                : t + 10 < NIGHTS ? DECIDE_SPREAD
                                                  : DECIDE_LEVEL;
    assert_int_equal(decided(s.cases, MANY, true).n_worse, MANY / 5);
    for (size_t c = 0; c < MANY; c++) {
        assert_int_equal(s.cases[c].decision == DECISION_WORSE, c % 5 == 0);
        assert_int_equal(s.cases[c].slipped, c % 5 == 0);
    }
    assert_true(s.cases[0].anchor_high < 0.98 && s.cases[0].anchor_low > 0.85);
    for (size_t c = 0; c < MANY; c++) /* without an anchor nothing is seen */
        s.cases[c].a = (struct decide_side){&s.runs[c][NIGHTS - 10], 10};
    assert_int_equal(decided(s.cases, MANY, true).n_worse, 0);
}

/* Runs that are no level tell how runs differ: a single baseline is not left with its launches for ever. */
static void runs_that_are_no_level_tell_the_spread(void **state)
{
    static struct nights s;

    (void)state;
    nights_fill(&s, 6, 0.02, 0.003, 8);
    for (size_t t = 1; t < 6; t++) {
        nights_lose(&s, 0, t, 0.30); /* far off, together: the break keeps that out */
        s.runs[0][t].role = DECIDE_SPREAD;
        s.runs[0][t].breaks = t == 1;
    }
    struct decide_overall overall = decided(s.cases, 1, true);

    assert_true(overall.by_runs && s.cases[0].by_runs);
    assert_float_equal(s.cases[0].freedom, 4, 1e-9);
    assert_true(s.cases[0].error > 0.01 && s.cases[0].error < 0.08);
    assert_true(fabs(s.cases[0].ratio - 1) < 0.1);
}

struct pairs_of_runs {
    double a[3][6], b[3][6];
    struct decide_run runs_a[3], runs_b[3];
};

/* Three pairs of runs, of which the last are lost: their changes are off by `runs` of each other, those of their
 * launches by `launches` by turns. */
static struct decide_case in_pairs(struct pairs_of_runs *t, size_t left, double loss, double runs,
                                   double launches)
{
    for (size_t r = 0; r < 3; r++) {
        for (size_t i = 0; i < 6; i++) {
            t->a[r][i] = pow(10, (double)r) * (1 + 0.1 * (double)(i * i % 5));
            t->b[r][i] =
                t->a[r][i] * exp(loss + runs * ((double)r - 1) + launches * (i % 2 ? 1 : -1));
        }
        t->runs_a[r] = (struct decide_run){.values = t->a[r], .n = r < left ? 6 : 0};
        t->runs_b[r] = (struct decide_run){.values = t->b[r], .n = r < left ? 6 : 0};
    }
    return (struct decide_case){.a = {t->runs_a, 3},
                                .b = {t->runs_b, 3},
                                .higher_is_better = true,
                                .paired = true,
                                .margin = 0.02};
}

/* However many launches it has, one pair of runs is few where runs are what varies: unless changes of launches are
 * as near to each other as that loss is not. */
static void one_pair_that_is_left_is_few(void **state)
{
    static struct pairs_of_runs t[20];
    struct decide_case cases[20];

    (void)state;
    for (size_t i = 0; i < 20; i++)
        cases[i] = in_pairs(&t[i], i ? 3 : 1, i ? 0 : -0.03, 0.0002 * (double)(1 + i % 5), 0.0005);
    decided(cases, 20, false);
    assert_int_equal(cases[0].decision, DECISION_WORSE);
    cases[19] = in_pairs(&t[19], 1, 0, 0, 0.02);
    decided(cases, 20, false);
    assert_int_equal(cases[0].decision, DECISION_INCONCLUSIVE);
    assert_int_equal(cases[0].obstacle, OBSTACLE_FEW);
}

/* A case that only the newest of five baselines has, with a fit of the others and with too few for one. */
static void a_new_case_does_not_know_its_runs(void **state)
{
    static struct nights s;

    (void)state;
    for (size_t n = 3; n <= 12; n += 9) {
        nights_fill(&s, 5, 0.03, 0.001, 5);
        for (size_t k = 0; k < 4; k++)
            s.runs[0][k].n = 0;
        for (size_t l = 0; l < 5; l++)
            s.values[0][5][l] = 0.95 * s.values[0][4][l];
        decided(s.cases, n, true);
        assert_true(s.cases[0].by_runs);
        assert_true(s.cases[0].error > 0.01);
        assert_true(!s.cases[0].proven);
    }
}

/* One case, one baseline: nothing says how runs differ. */
static void one_baseline_of_few_cases_decides_nothing(void **state)
{
    struct decide_case c = CASE(FULL, SIDE(RUN(50, 51, 49, 50.5, 49.5)), 0.02);

    (void)state;
    assert_true(decided(&c, 1, true).runs_unknown);
    assert_int_equal(c.decision, DECISION_INCONCLUSIVE);
    assert_int_equal(c.obstacle, OBSTACLE_RUNS);
    assert_true(isnan(c.p_worse) && isnan(c.smallest));
    assert_int_equal(decision_of(&c), DECISION_WORSE); /* compare's view */
}

/* With three launches a change also has to be larger than any case's launches differ by; a second run on the side
 * that has but one lifts that. */
static void few_launches_prove_little(void **state)
{
    struct decide_case cases[2] = {
        CASE(SIDE(RUN(100, 101, 99), RUN(100.5, 101, 99), RUN(100, 100.5, 99), RUN(100, 101, 99.5)),
             SIDE(RUN(80, 80.5, 79)), 0.02),
        CASE(SIDE(RUN(100, 150, 70)), SIDE(RUN(100, 150, 70)), 0.02)};
    struct scene s;

    (void)state;
    scene_fill(&s, 3, 0.02, 3);
    scene_scale(&s, 7, 0.90);
    assert_int_equal(decided(s.cases, MANY, false).n_worse, 1);
    s.values[20][0][0] *= 1.2; /* a launch of another case */
    assert_int_equal(decided(s.cases, MANY, false).n_worse, 0);
    assert_int_equal(s.cases[7].obstacle, OBSTACLE_FEW);
    assert_int_equal(s.cases[7].decision, DECISION_INCONCLUSIVE);
    assert_true(!s.cases[7].proven);
    assert_int_equal(s.cases[7].more_launches, 2);
    assert_true(s.cases[7].smallest > 0.15);
    decided(cases, 2, true);
    assert_int_equal(cases[0].obstacle, OBSTACLE_FEW);
    assert_int_equal(cases[0].more_launches, 1);
}

/* The best of several by chance alone makes a fair rival look like a loss. */
static void best_of_several_is_held_to_more(void **state)
{
    struct decide_case c = CASE(FULL, SIDE(RUN(98, 99, 97.5, 98.5, 97)), 0.001);
    double smallest;

    (void)state;
    decided(&c, 1, false);
    assert_true(c.proven && c.p_worse < 0.005);
    smallest = c.smallest;
    c.best_of = (unsigned)(0.005 / c.p_worse) + 1;
    decided(&c, 1, false);
    assert_true(!c.proven);
    assert_true(c.smallest > smallest);
    assert_true(c.more_launches > 0);
}

/* The best of five runs is no level that a sixth is to reach: what runs differ by is known from all five. */
static void the_best_of_runs_that_differ(void **state)
{
    struct decide_case c =
        CASE(SIDE(RUN(98, 98.1, 97.9), RUN(100, 100.1, 99.9), RUN(103, 103.1, 102.9),
                  RUN(99, 99.1, 98.9), RUN(101, 101.1, 100.9)),
             SIDE(RUN(98.5, 98.6, 98.4)), 0.02);

    (void)state;
    c.best_of = 5;
    decided(&c, 1, true);
    assert_true(fabs(c.ratio - 98.5 / 103) < 1e-4);
    assert_true(c.by_runs && !c.proven);
    assert_float_equal(c.freedom, 4, 1e-9);
    c.higher_is_better = false; /* the best is the lowest */
    decided(&c, 1, true);
    assert_true(fabs(c.ratio - 98 / 98.5) < 1e-4);
}

static void what_cannot_be_decided_says_why(void **state)
{
    const struct {
        struct decide_side a, b;
        enum decide_obstacle obstacle;
    } cases[] = {{{0}, SIDE(RUN(1, 2)), OBSTACLE_NO_VALUE},
                 {SIDE({0}), SIDE(RUN(1, 2)), OBSTACLE_NO_VALUE},
                 {SIDE(RUN(1, NAN)), SIDE(RUN(1, 2)), OBSTACLE_BAD_VALUE},
                 {SIDE(RUN(1, 2)), SIDE(RUN(1, 0)), OBSTACLE_BAD_VALUE},
                 {SIDE(RUN(1, 2)), SIDE(RUN(-1, 2)), OBSTACLE_BAD_VALUE},
                 {SIDE(RUN(1, 2)), SIDE(RUN(INFINITY)), OBSTACLE_BAD_VALUE},
                 {SIDE(RUN(100)), SIDE(RUN(50)), OBSTACLE_ONE_LAUNCH}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct decide_case c = CASE(cases[i].a, cases[i].b, 0.05);
        struct decide_overall overall = decided(&c, 1, true);

        assert_int_equal(c.obstacle, cases[i].obstacle);
        assert_int_equal(c.decision, DECISION_INCONCLUSIVE);
        assert_int_equal(overall.decision, DECISION_INCONCLUSIVE);
        assert_int_equal(overall.n_judged, 0);
        assert_true(isnan(c.p_worse) && isnan(c.error) && isnan(c.low) && isnan(c.smallest));
    }
}

/* One launch against several proves only what is beyond any; launches that agree to the last digit are counts. */
static void spreads_that_are_known_in_part_or_are_none(void **state)
{
    struct decide_case one = CASE(FULL, SIDE(RUN(60)), 0.05);
    struct decide_case same = CASE(SIDE(RUN(8, 8)), SIDE(RUN(8, 8)), 0.05);
    struct decide_case less = CASE(SIDE(RUN(8, 8, 8, 8, 8)), SIDE(RUN(4, 4, 4, 4, 4)), 0.05);

    (void)state;
    assert_int_equal(decision_of(&one), DECISION_WORSE);
    assert_float_equal(one.freedom, 4, 1e-12);
    assert_int_equal(decision_of(&same), DECISION_EQUIVALENT);
    assert_int_equal(decision_of(&less), DECISION_WORSE);
}

static void options_out_of_range(void **state)
{
    /* margin, confidence, level of alarms */
    static const double bad[][3] = {{0.05, 1, 0}, {0.05, 0, -1}, {0.05, 0, NAN},
                                    {1, 0, 0},    {-0.1, 0, 0},  {NAN, 0, 0}};
    struct decide_overall overall;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct decide_case c = CASE(SIDE(RUN(8, 8)), SIDE(RUN(8, 8)), bad[i][0]);
        struct decide_options options = {.confidence = bad[i][1], .alarm_level = bad[i][2]};

        assert_int_equal(decide_suite(&c, 1, &options, &overall), -EINVAL);
    }
    assert_int_equal(decided(NULL, 0, true).decision, DECISION_INCONCLUSIVE);
}

/* Any doubles whatever: no crash, no decision without figures. */
static void rubbish_is_survived(void **state)
{
    struct rng r;

    (void)state;
    rng_seed(&r, 9);
    for (int round = 0; round < 100; round++) {
        struct scene s;

        scene_fill(&s, 1 + rng_below(&r, 5), 0.02, (uint64_t)round);
        for (int k = 0; k < 30; k++) {
            uint64_t bits = rng_u64(&r) & (round % 2 ? UINT64_MAX : INT64_MAX);

            memcpy(&s.values[rng_below(&r, MANY)][rng_below(&r, 2)][rng_below(&r, 5)], &bits, 8);
        }
        decided(s.cases, MANY, round % 3 == 0);
        for (size_t c = 0; c < MANY; c++) {
            char text[400];

            assert_true(s.cases[c].decision == DECISION_INCONCLUSIVE || s.cases[c].error > 0);
            assert_int_equal(decide_sentence(&s.cases[c], text, sizeof(text)), 0);
            assert_null(strstr(text, "nan"));
        }
    }
}

/* Eleven runs of a suite: in each, other programs take up to a third from one launch or two, and
 * from most samples of the others. */
#define BUSY_CASES    12
#define BUSY_RUNS     11
#define BUSY_LAUNCHES 5
struct busy {
    double medians[BUSY_CASES][BUSY_RUNS][BUSY_LAUNCHES],
        fast[BUSY_CASES][BUSY_RUNS][BUSY_LAUNCHES];
    struct decide_run runs[BUSY_CASES][BUSY_RUNS];
    struct decide_case cases[BUSY_CASES];
};

static void busy_fill(struct busy *s)
{
    struct rng r;

    rng_seed(&r, 5);
    *s = (struct busy){0};
    for (size_t c = 0; c < BUSY_CASES; c++) {
        for (size_t k = 0; k < BUSY_RUNS; k++) {
            for (size_t l = 0; l < BUSY_LAUNCHES; l++) {
                double taken = (l + c + k) % BUSY_LAUNCHES < 2 ? 0.3 * rng_double(&r) : 0;

                s->medians[c][k][l] = 100 * exp(-taken - 0.1 * rng_double(&r));
                s->fast[c][k][l] = 105 * exp(-taken + 0.005 * rng_normal(&r));
            }
            s->runs[c][k] = (struct decide_run){
                .values = s->medians[c][k], .fast = s->fast[c][k], .n = BUSY_LAUNCHES};
        }
        s->cases[c] = (struct decide_case){.a = {s->runs[c], BUSY_RUNS - 1},
                                           .b = {&s->runs[c][BUSY_RUNS - 1], 1},
                                           .margin = 0.02,
                                           .higher_is_better = true};
    }
}

static void busy_lose(struct busy *s, size_t c, double medians, double fast)
{
    for (size_t l = 0; l < BUSY_LAUNCHES; l++) {
        s->medians[c][BUSY_RUNS - 1][l] *= medians;
        s->fast[c][BUSY_RUNS - 1][l] *= fast;
    }
}

static size_t busy_named(struct decide_overall overall)
{
    return overall.n_worse + overall.n_better;
}

static void best_launches_show_what_medians_cannot(void **state)
{
    struct busy s;

    (void)state;
    busy_fill(&s);
    assert_int_equal(busy_named(decided(s.cases, BUSY_CASES, true)), 0);
    double by_both = s.cases[3].smallest;

    assert_int_equal(s.cases[3].shown_by, DECIDE_BY_FAST);
    busy_fill(&s);
    busy_lose(&s, 3, 0.95, 0.95);
    assert_int_equal(busy_named(decided(s.cases, BUSY_CASES, true)), 1);
    assert_int_equal(s.cases[3].decision, DECISION_WORSE);
    assert_int_equal(s.cases[3].judged_by, DECIDE_BY_FAST);
    assert_float_equal(s.cases[3].ratio, 0.95, 0.01);
    assert_true(s.cases[3].high < 0.97 && s.cases[3].median_high > 0.97);
    assert_true(s.cases[3].b_value < 90); /* the value stays that of the medians */

    busy_fill(&s);
    for (size_t c = 0; c < BUSY_CASES; c++)
        for (size_t k = 0; k < BUSY_RUNS; k++)
            s.runs[c][k].fast = NULL;
    busy_lose(&s, 3, 0.95, 0.95);
    decided(s.cases, BUSY_CASES, true);
    assert_int_equal(s.cases[3].decision, DECISION_INCONCLUSIVE);
    assert_true(by_both < s.cases[3].smallest / 2);
}

/* At most samples, but not the fast ones; or in all launches but one. */
static void no_loss_hides_behind_the_best_launches(void **state)
{
    struct busy s;

    (void)state;
    busy_fill(&s);
    busy_lose(&s, 3, 0.7, 1);
    s.medians[5][BUSY_RUNS - 1][0] = 80;
    s.fast[5][BUSY_RUNS - 1][0] = 104;
    for (size_t l = 1; l < BUSY_LAUNCHES; l++)
        s.medians[5][BUSY_RUNS - 1][l] = s.fast[5][BUSY_RUNS - 1][l] = 55;
    decided(s.cases, BUSY_CASES, true);
    for (size_t c = 3; c <= 5; c += 2) {
        assert_int_equal(s.cases[c].decision, DECISION_WORSE);
        assert_int_equal(s.cases[c].judged_by, DECIDE_BY_MEDIAN);
    }
}

/* By hand: of times, the mean logarithm of the lowest three of five, 1.8 of three. Fewer baselines
 * do not show how these vary. */
static void three_of_five_launches_count(void **state)
{
    static const double launches[] = {100, 140, 101, 104, 190}, lost[] = {300, 330, 310};
    static const double medians[] = {100, 900, 20, 400, 50};
    struct decide_run runs[DECIDE_FAST_RUNS];
    const struct decide_run b = {.values = lost, .fast = lost, .n = 3};
    struct decide_case c = {
        .a = {runs, DECIDE_FAST_RUNS}, .b = {&b, 1}, .margin = 0.02, .best_of = 0};
    double level = (log(100) + log(101) + log(104)) / 3, now = (log(300) + 0.8 * log(310)) / 1.8;

    (void)state;
    for (size_t r = 0; r < DECIDE_FAST_RUNS; r++)
        runs[r] = (struct decide_run){.values = medians, .fast = launches, .n = 5};
    decided(&c, 1, true);
    assert_int_equal(c.decision, DECISION_WORSE);
    assert_int_equal(c.judged_by, DECIDE_BY_FAST);
    assert_float_equal(c.ratio, exp(level - now), 1e-9);
    assert_float_equal(c.b_value, cbrt(300.0 * 330 * 310), 1e-6);
    c.a.n--;
    decided(&c, 1, true);
    assert_int_equal(c.judged_by, DECIDE_BY_MEDIAN);
    assert_int_equal(c.shown_by, DECIDE_BY_MEDIAN);
}

#define STEADY  100, 101, 99, 100.5, 99.5
#define HELD    80, 80.8, 79.2, 80.4, 79.6
#define FASTER  110, 111.1, 108.9, 110.5, 109.5
#define SWAYING 100, 60, 140, 75, 130

static enum decision both_decide(const double *a[2], const double *b[2], struct decide_case *c)
{
    struct decide_run runs[2] = {{.values = a[0], .sustained = a[1], .n = 5},
                                 {.values = b[0], .sustained = b[1], .n = 5}};

    *c = (struct decide_case){
        .a = {&runs[0], 1}, .b = {&runs[1], 1}, .higher_is_better = true, .margin = 0.05};
    decided(c, 1, false);
    return c->decision;
}

/* A quota or other guests take time that no median shows. */
static void both_figures_must_be_equivalent(void **state)
{
    const double steady[] = {STEADY}, held[] = {HELD}, faster[] = {FASTER}, swaying[] = {SWAYING};
    const double *same[2] = {steady, steady}, *quota[2] = {steady, held},
                 *noisy[2] = {steady, swaying}, *better[2] = {faster, faster},
                 *mixed[2] = {faster, held}, *old[2] = {steady, NULL};
    struct decide_case c;

    (void)state;
    assert_int_equal(both_decide(same, same, &c), DECISION_EQUIVALENT);
    assert_int_equal(c.judged_by, DECIDE_BY_MEDIAN);
    assert_int_equal(both_decide(same, quota, &c), DECISION_WORSE);
    assert_int_equal(c.judged_by, DECIDE_BY_SUSTAINED);
    assert_float_equal(c.ratio, 0.8, 1e-9);
    assert_float_equal(c.median_ratio, 1, 1e-9);
    assert_float_equal(c.sustained_b / c.sustained_a, 0.8, 1e-9);
    assert_float_equal(c.b_value, c.a_value, 1e-9);
    assert_int_equal(both_decide(same, noisy, &c), DECISION_INCONCLUSIVE);
    assert_int_equal(c.judged_by, DECIDE_BY_SUSTAINED);
    assert_int_equal(both_decide(same, mixed, &c), DECISION_WORSE);
    assert_int_equal(both_decide(same, better, &c), DECISION_BETTER);
    assert_int_equal(both_decide(quota, same, &c), DECISION_BETTER);
    assert_int_equal(c.judged_by, DECIDE_BY_SUSTAINED);
    /* Earlier baselines may be without it. */
    struct decide_run runs[3] = {{.values = steady, .n = 5},
                                 {.values = steady, .sustained = steady, .n = 5},
                                 {.values = steady, .sustained = held, .n = 5}};
    c.a = (struct decide_side){&runs[0], 2};
    c.b = (struct decide_side){&runs[2], 1};
    decided(&c, 1, false);
    assert_float_equal(c.sustained_b / c.sustained_a, 0.8, 1e-9);
    assert_int_equal(both_decide(old, quota, &c), DECISION_EQUIVALENT);
    assert_true(isnan(c.sustained_b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_of_the_docs),
        cmocka_unit_test(the_margin_is_one_of_ratios),
        cmocka_unit_test(launches_in_turn_share_what_drifts),
        cmocka_unit_test(the_order_of_a_pair_is_taken_out),
        cmocka_unit_test(how_many_more_would_decide),
        cmocka_unit_test(several_runs_are_what_varies),
        cmocka_unit_test(one_loss_in_a_suite_is_named_alone),
        cmocka_unit_test(unrest_widens_a_gates_intervals),
        cmocka_unit_test(a_night_far_off_is_no_loss_before_nights_are_known),
        cmocka_unit_test(a_gain_as_large_makes_a_loss_doubtful),
        cmocka_unit_test(a_shift_of_many_cases_is_told_and_not_proven),
        cmocka_unit_test(the_best_of_runs_is_no_common_loss),
        cmocka_unit_test(a_slip_is_seen_from_the_anchor),
        cmocka_unit_test(runs_that_are_no_level_tell_the_spread),
        cmocka_unit_test(a_new_case_does_not_know_its_runs),
        cmocka_unit_test(one_pair_that_is_left_is_few),
        cmocka_unit_test(one_baseline_of_few_cases_decides_nothing),
        cmocka_unit_test(few_launches_prove_little),
        cmocka_unit_test(best_of_several_is_held_to_more),
        cmocka_unit_test(the_best_of_runs_that_differ),
        cmocka_unit_test(what_cannot_be_decided_says_why),
        cmocka_unit_test(spreads_that_are_known_in_part_or_are_none),
        cmocka_unit_test(options_out_of_range),
        cmocka_unit_test(rubbish_is_survived),
        cmocka_unit_test(best_launches_show_what_medians_cannot),
        cmocka_unit_test(no_loss_hides_behind_the_best_launches),
        cmocka_unit_test(three_of_five_launches_count),
        cmocka_unit_test(both_figures_must_be_equivalent)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
