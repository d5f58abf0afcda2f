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

static struct decide_overall decided(struct decide_case *cases, size_t n, bool unchanged)
{
    struct decide_options options = {.unchanged = unchanged};
    struct decide_overall overall;

    assert_int_equal(decide_suite(cases, n, &options, &overall), 0);
    return overall;
}

/* The example of docs/deciding.md; the figures were worked apart from this program. */
static void the_example_of_the_docs(void **state)
{
    struct decide_case c = {.a = SIDE(RUN(100, 101, 99, 100.5, 99.5)),
                            .b = SIDE(RUN(96, 97, 95.5, 96.5, 95)),
                            .higher_is_better = true,
                            .margin = 0.02};
    struct decide_overall overall = decided(&c, 1, false);
    char text[256];

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
    assert_int_equal(decide_sentence(&c, text, sizeof(text)), 0);
    assert_string_equal(text,
                        "worse: a loss of 4.0 % is proven, between a loss of 5.1 % and a loss of "
                        "2.9 %: all of it beyond the margin of 2 %");
}

/* What drifts hits both of a pair alike: the differences vary by 0.1 %, the launches by 20 %. */
static void launches_in_turn_share_what_drifts(void **state)
{
    static const double a[] = {100, 110, 121, 95, 90}, b[] = {97.1, 106.7, 117.25, 92.15, 87.3};
    const struct decide_run run_a = {.values = a, .n = 5}, run_b = {.values = b, .n = 5},
                            short_b = {.values = b, .n = 4};
    struct decide_case c = {
        .a = {&run_a, 1}, .b = {&run_b, 1}, .higher_is_better = true, .margin = 0.02};

    (void)state;
    decided(&c, 1, false);
    assert_int_equal(c.decision, DECISION_INCONCLUSIVE);
    c.paired = true;
    decided(&c, 1, false);
    assert_int_equal(c.decision, DECISION_WORSE);
    assert_true(fabs(c.ratio - 0.97) < 0.001);
    /* t(0.975, 4) = 2.776; differences of logarithms: sd 0.000567, over the root of 5 */
    assert_true(fabs(c.freedom - 4) < 1e-9);
    double sd = 0, mean = 0;
    for (int i = 0; i < 5; i++)
        mean += log(b[i] / a[i]) / 5;
    for (int i = 0; i < 5; i++)
        sd += (log(b[i] / a[i]) - mean) * (log(b[i] / a[i]) - mean) / 4;
    assert_true(fabs(c.error / sqrt(sd / 5) - 1) < 1e-9);
    /* launches that are no pairs are none */
    c.b = (struct decide_side){&short_b, 1};
    decided(&c, 1, false);
    assert_int_equal(c.decision, DECISION_INCONCLUSIVE);
    assert_true(fabs(c.freedom - 7) < 1e-9);
}

static void a_proven_change_within_the_margin_is_equivalent(void **state)
{
    struct decide_case c = {.a = SIDE(RUN(100, 101, 99, 100.5, 99.5)),
                            .b = SIDE(RUN(96, 97, 95.5, 96.5, 95)),
                            .higher_is_better = true,
                            .margin = 0.06};

    (void)state;
    assert_int_equal(decided(&c, 1, false).decision, DECISION_EQUIVALENT);
    assert_true(c.proven && !c.beyond);
    c.margin = 0.0513; /* 0.9487 is just below 0.94876 */
    decided(&c, 1, false);
    assert_int_equal(c.decision, DECISION_EQUIVALENT);
    c.margin = 0.0512;
    decided(&c, 1, false);
    assert_int_equal(c.decision, DECISION_WORSE);
    assert_true(!c.beyond);
}

/* A gain's margin ends at 1 / 0.95, not at 1.05. */
static void the_margin_is_one_of_ratios(void **state)
{
    struct decide_case c = {.a = SIDE(RUN(96, 97, 95.5, 96.5, 95)),
                            .b = SIDE(RUN(100, 101, 99, 100.5, 99.5)),
                            .higher_is_better = true,
                            .margin = 0.0513}; /* up to 1.05407, and high is 1.05401 */

    (void)state;
    decided(&c, 1, false);
    assert_int_equal(c.decision, DECISION_EQUIVALENT);
    assert_float_equal(c.high, 1 / 0.94876209, 1e-7);
}

static void how_many_more_would_decide(void **state)
{
    struct decide_case c = {.a = SIDE(RUN(100, 102, 98, 101, 99)),
                            .b = SIDE(RUN(99, 100.5, 97, 100, 98.5)),
                            .higher_is_better = true,
                            .margin = 0.01};
    char text[256];

    (void)state;
    assert_int_equal(decided(&c, 1, false).decision, DECISION_INCONCLUSIVE);
    assert_int_equal(c.obstacle, OBSTACLE_NONE);
    assert_int_equal(c.more_launches, 27);
    c.margin = 0.02;
    decided(&c, 1, false);
    assert_int_equal(c.more_launches, 13);
    assert_int_equal(decide_sentence(&c, text, sizeof(text)), 0);
    assert_non_null(strstr(text, "13 more launches a side would decide"));
    assert_int_equal(decide_sentence(&c, text, 20), -ENOSPC);
    assert_int_equal(strlen(text), 19);
}

/* Variance 6.2019e-4 between the three runs' means, 2 degrees of freedom, error sqrt(V (1/3 + 1)). */
static void several_runs_are_what_varies(void **state)
{
    struct decide_case c = {.a = SIDE(RUN(100, 101), RUN(103, 104), {0}, RUN(98, 99)),
                            .b = SIDE(RUN(95, 96)),
                            .higher_is_better = true,
                            .margin = 0.02};

    (void)state;
    assert_true(decided(&c, 1, true).by_runs);
    assert_true(c.by_runs);
    assert_float_equal(log(c.ratio), -0.0541371116, 1e-9);
    assert_float_equal(c.error, 0.0287562862, 1e-9);
    assert_float_equal(c.freedom, 2, 1e-12);
    assert_float_equal(c.p_worse, 0.100229433, 1e-8);
}

/* Runs that agree by chance do not make launches' own spread go away. */
static void runs_are_never_surer_than_their_launches(void **state)
{
    struct decide_case c = {.a = SIDE(RUN(90, 110), RUN(90, 110), RUN(90, 110)),
                            .b = SIDE(RUN(90, 110)),
                            .higher_is_better = true,
                            .margin = 0.02};
    double within = 2 * pow(log(110 / 90.0) / 2, 2);

    (void)state;
    decided(&c, 1, false);
    assert_float_equal(c.error, sqrt(within / 2 * (1 / 3.0 + 1)), 1e-9);
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

static void one_loss_in_a_suite_is_named_alone(void **state)
{
    struct scene s;

    (void)state;
    for (int unchanged = 0; unchanged < 2; unchanged++) {
        scene_fill(&s, 5, 0.02, 3);
        scene_scale(&s, 7, 0.94);
        struct decide_overall overall = decided(s.cases, MANY, unchanged);

        assert_int_equal(overall.n_worse, 1);
        assert_int_equal(overall.n_better, 0);
        assert_int_equal(s.cases[7].decision, DECISION_WORSE);
        assert_int_equal(overall.n_worse + overall.n_inconclusive + overall.n_equivalent, MANY);
        assert_true(overall.prior_freedom >= 8);
        assert_true(s.cases[7].freedom > 8);
    }
}

static void sides_swapped_turn_everything_round(void **state)
{
    struct scene s, t;

    (void)state;
    for (int unchanged = 0; unchanged < 2; unchanged++) {
        scene_fill(&s, 5, 0.02, 4);
        scene_scale(&s, 3, 0.93);
        if (!unchanged) /* a gate that sees both of one run a side believes neither: see below */
            scene_scale(&s, 5, 1.08);
        t = s;
        for (size_t c = 0; c < MANY; c++) {
            s.cases[c].a.runs = t.cases[c].b.runs = &s.runs[c][0];
            s.cases[c].b.runs = t.cases[c].a.runs = &s.runs[c][1];
            s.runs[c][0].values = s.values[c][0];
            s.runs[c][1].values = s.values[c][1];
        }
        struct decide_overall x = decided(s.cases, MANY, unchanged);
        struct decide_overall y = decided(t.cases, MANY, unchanged);

        assert_int_equal(x.n_worse, 1);
        assert_int_equal(x.n_worse, y.n_better);
        assert_int_equal(x.n_better, y.n_worse);
        for (size_t c = 0; c < MANY; c++) {
            assert_float_equal(s.cases[c].ratio * t.cases[c].ratio, 1, 1e-9);
            assert_float_equal(s.cases[c].low * t.cases[c].high, 1, 1e-9);
            assert_float_equal(s.cases[c].p_worse, t.cases[c].p_better, 1e-9);
            assert_float_equal(s.cases[c].smallest, t.cases[c].smallest, 1e-9);
            assert_int_equal(s.cases[c].more_launches, t.cases[c].more_launches);
        }
    }
}

/* A time that is lower by as much as a rate is higher is the same change. */
static void lower_is_better_is_turned_round(void **state)
{
    struct decide_case c = {.a = SIDE(RUN(1 / 100.0, 1 / 101.0, 1 / 99.0, 1 / 100.5, 1 / 99.5)),
                            .b = SIDE(RUN(1 / 96.0, 1 / 97.0, 1 / 95.5, 1 / 96.5, 1 / 95.0)),
                            .margin = 0.02};

    (void)state;
    decided(&c, 1, false);
    assert_float_equal(c.ratio, 0.95999796, 1e-8);
    assert_float_equal(c.p_worse, 2.1907804e-05, 1e-12);
    assert_true(c.b_value > c.a_value);
    assert_int_equal(c.decision, DECISION_WORSE);
}

/* All cases moved up or down by 3 %, as another boot may: a gate does not believe its launches. */
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
}

/* Two runs a side of which one is as far off as six widths of the others' changes: by their shape nobody knows. The more runs
 * are known, the more is proven. */
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

/* What differs between two runs is not told better by more launches of the same two. */
static void more_launches_do_not_lift_unrest(void **state)
{
    struct scene s;
    char text[256];

    (void)state;
    scene_fill(&s, 5, 0.001, 5);
    for (size_t c = 0; c < MANY; c++)
        scene_scale(&s, c, c % 2 ? 1.03 : 1 / 1.03);
    decided(s.cases, MANY, true);
    assert_int_equal(s.cases[0].decision, DECISION_INCONCLUSIVE);
    assert_int_equal(s.cases[0].more_launches, 0);
    assert_int_equal(decide_sentence(&s.cases[0], text, sizeof(text)), 0);
    assert_non_null(strstr(text, "would hardly decide"));
}

/* Of one run a side nobody knows whether a case lost, or comes up on another level now and then: what moved the other way
 * says that some do. */
static void a_gain_as_large_makes_a_loss_doubtful(void **state)
{
    struct scene s;
    char text[400];

    (void)state;
    scene_fill(&s, 5, 0.02, 4);
    scene_scale(&s, 3, 0.93);
    assert_int_equal(decided(s.cases, MANY, true).n_worse, 1);
    for (size_t c = 10; c < 13; c++)
        scene_scale(&s, c, 1.08);
    assert_int_equal(decided(s.cases, MANY, true).n_worse, 0);
    assert_int_equal(s.cases[3].obstacle, OBSTACLE_JUMPS);
    assert_int_equal(decide_sentence(&s.cases[3], text, sizeof(text)), 0);
    assert_non_null(strstr(text, "as far off"));
    assert_int_equal(decided(s.cases, MANY, false).n_worse, 1); /* compare's view */
}

/* Half of the cases, or all of them, lose with one baseline: a run that came up otherwise looks the same. */
static void a_shift_of_many_cases_is_told_and_not_proven(void **state)
{
    struct scene s;
    char text[400];

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
        assert_int_equal(decide_sentence(&s.cases[3], text, sizeof(text)), 0);
        assert_non_null(strstr(text, "many others"));
    }
}

/* Six cases that somebody accepted say nothing of the other cases. */
static void accepted_changes_are_no_shift_of_many(void **state)
{
    static struct scene s;

    (void)state;
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

static void nights_fill(struct nights *s, size_t baselines, double between, uint64_t seed)
{
    struct rng r;

    rng_seed(&r, seed);
    for (size_t c = 0; c < MANY; c++) {
        for (size_t t = 0; t <= baselines; t++) {
            double level = between * rng_normal(&r);

            for (size_t l = 0; l < 5; l++)
                s->values[c][t][l] = 50 * exp(level + 0.003 * rng_normal(&r));
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

    (void)state;
    nights_fill(&s, 5, 0.01, 9);
    double sway = 0, error = 0;
    for (unsigned best_of = 0; best_of <= 5; best_of += 5) {
        for (size_t c = 0; c < MANY; c++)
            s.cases[c].best_of = best_of;
        struct decide_overall overall = decided(s.cases, MANY, true);

        assert_true(!overall.together && overall.n_worse == 0);
        sway = best_of ? s.cases[0].error / error : 0;
        error = s.cases[0].error;
    }
    assert_float_equal(sway, sqrt(2 / 1.2), 1e-6); /* one run for five, and nothing more */
}

/* The same loss where five baselines say how runs differ. */
static void a_shift_of_everything_is_proven_by_several_baselines(void **state)
{
    static struct nights s;

    (void)state;
    nights_fill(&s, 5, 0.005, 6);
    for (size_t c = 0; c < MANY; c++)
        nights_lose(&s, c, 5, 0.07);
    assert_int_equal(decided(s.cases, MANY, true).n_worse, MANY);
}

/* 0.3 % a night in every fifth case: 3 % over the last ten nights, which is lost in their noise, and 6 % since the first. */
static void a_slip_is_seen_from_the_anchor(void **state)
{
    static struct nights s;
    char text[400];

    (void)state;
    nights_fill(&s, NIGHTS, 0.01, 6);
    for (size_t c = 0; c < MANY; c += 5)
        for (size_t t = 0; t <= NIGHTS; t++)
            nights_lose(&s, c, t, 1 - pow(1 - 0.003, (double)t));
    for (size_t c = 0; c < MANY; c++)
        for (size_t t = 0; t < NIGHTS; t++)
            s.runs[c][t].role = t < 10            ? DECIDE_ANCHOR
                                : t + 10 < NIGHTS ? DECIDE_SPREAD
                                                  : DECIDE_LEVEL;
    struct decide_overall overall = decided(s.cases, MANY, true);

    assert_int_equal(overall.n_worse, MANY / 5);
    for (size_t c = 0; c < MANY; c++) {
        assert_int_equal(s.cases[c].decision == DECISION_WORSE, c % 5 == 0);
        assert_int_equal(s.cases[c].slipped, c % 5 == 0);
    }
    assert_true(s.cases[0].anchor_high < 0.98 && s.cases[0].anchor_low > 0.85);
    assert_int_equal(decide_sentence(&s.cases[0], text, sizeof(text)), 0);
    assert_non_null(strstr(text, "slipped"));
    for (size_t c = 0; c < MANY; c++) /* without an anchor nothing is seen */
        s.cases[c].a = (struct decide_side){&s.runs[c][NIGHTS - 10], 10};
    assert_int_equal(decided(s.cases, MANY, true).n_worse, 0);
}

/* Runs that are no level tell how runs differ: a single baseline is not left with its launches for ever. */
static void runs_that_are_no_level_tell_the_spread(void **state)
{
    static struct nights s;

    (void)state;
    nights_fill(&s, 6, 0.02, 8);
    for (size_t c = 0; c < MANY; c++)
        for (size_t t = 1; t < 6; t++) {
            nights_lose(&s, c, t, 0.30); /* far off, together: the break keeps that out */
            s.runs[c][t].role = DECIDE_SPREAD;
            s.runs[c][t].breaks = t == 1;
        }
    struct decide_overall overall = decided(s.cases, 1, true);

    assert_true(overall.by_runs && s.cases[0].by_runs);
    assert_float_equal(s.cases[0].freedom, 4, 1e-9);
    assert_true(s.cases[0].error > 0.01 && s.cases[0].error < 0.08);
    assert_true(fabs(s.cases[0].ratio - 1) < 0.1);
}

/* One case, one baseline: nothing says how runs differ. */
static void one_baseline_of_few_cases_decides_nothing(void **state)
{
    struct decide_case c = {.a = SIDE(RUN(100, 101, 99, 100.5, 99.5)),
                            .b = SIDE(RUN(50, 51, 49, 50.5, 49.5)),
                            .higher_is_better = true,
                            .margin = 0.02};
    char text[400];

    (void)state;
    struct decide_overall overall = decided(&c, 1, true);

    assert_true(overall.runs_unknown);
    assert_int_equal(c.decision, DECISION_INCONCLUSIVE);
    assert_int_equal(c.obstacle, OBSTACLE_RUNS);
    assert_true(isnan(c.p_worse) && isnan(c.smallest));
    assert_int_equal(decide_sentence(&c, text, sizeof(text)), 0);
    assert_non_null(strstr(text, "baseline"));
    assert_int_equal(decided(&c, 1, false).decision, DECISION_WORSE); /* compare's view */
}

/* Who goes second loses 6 %; three launches began with A, two with B. */
static void the_order_of_a_pair_is_taken_out(void **state)
{
    static const double a[] = {100, 94.1, 100.2, 93.9, 99.9}, b[] = {94, 100.1, 94.1, 100, 93.9};
    static const bool first[] = {true, false, true, false, true};
    const struct decide_run run_a = {.values = a, .n = 5, .went_first = first};
    const struct decide_run run_b = {.values = b, .n = 5};
    struct decide_case c = {.a = {&run_a, 1},
                            .b = {&run_b, 1},
                            .higher_is_better = true,
                            .margin = 0.02,
                            .paired = true};

    (void)state;
    decided(&c, 1, false);
    assert_int_equal(c.decision, DECISION_EQUIVALENT);
    assert_true(fabs(c.ratio - 1) < 0.002);
    assert_float_equal(c.freedom, 3, 1e-9);
    c.a.runs = &(struct decide_run){.values = a, .n = 5};
    decided(&c, 1, false); /* without it: 1.2 % of bias, and the order in the spread */
    assert_int_equal(c.decision, DECISION_INCONCLUSIVE);
}

/* With three launches a change also has to be larger than any case's launches differ by. */
static void few_launches_prove_little(void **state)
{
    struct scene s;

    (void)state;
    scene_fill(&s, 3, 0.02, 3);
    scene_scale(&s, 7, 0.90);
    assert_int_equal(decided(s.cases, MANY, false).n_worse, 1);
    s.values[20][0][0] *= 1.2; /* a launch of another case */
    struct decide_overall overall = decided(s.cases, MANY, false);

    assert_int_equal(overall.n_worse, 0);
    assert_int_equal(s.cases[7].obstacle, OBSTACLE_FEW);
    assert_int_equal(s.cases[7].decision, DECISION_INCONCLUSIVE);
    assert_true(!s.cases[7].proven);
    assert_int_equal(s.cases[7].more_launches, 2);
    assert_true(s.cases[7].smallest > 0.15);
}

/* A second run on the side that has but one, with few launches, lifts that. */
static void few_launches_of_a_single_run(void **state)
{
    struct decide_case cases[2] = {
        {.a =
             SIDE(RUN(100, 101, 99), RUN(100.5, 101, 99), RUN(100, 100.5, 99), RUN(100, 101, 99.5)),
         .b = SIDE(RUN(80, 80.5, 79)),
         .higher_is_better = true,
         .margin = 0.02},
        {.a = SIDE(RUN(100, 150, 70)), .b = SIDE(RUN(100, 150, 70)), .margin = 0.02}};

    (void)state;
    decided(cases, 2, true);
    assert_int_equal(cases[0].obstacle, OBSTACLE_FEW);
    assert_int_equal(cases[0].more_launches, 1);
    char text[400];

    assert_int_equal(decide_sentence(&cases[0], text, sizeof(text)), 0);
    assert_non_null(strstr(text, "1 more run a side"));
}

/* The best of several by chance alone makes a fair rival look like a loss. */
static void best_of_several_is_held_to_more(void **state)
{
    struct decide_case c = {.a = SIDE(RUN(100, 101, 99, 100.5, 99.5)),
                            .b = SIDE(RUN(98, 99, 97.5, 98.5, 97)),
                            .higher_is_better = true,
                            .margin = 0.001};
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

/* The best of five runs that differ by 2 % is no level that a sixth is to reach: what runs differ by is
 * known from all five. */
static void the_best_of_runs_that_differ(void **state)
{
    struct decide_case c = {.a = SIDE(RUN(98, 98.1, 97.9), RUN(100, 100.1, 99.9),
                                      RUN(103, 103.1, 102.9), RUN(99, 99.1, 98.9),
                                      RUN(101, 101.1, 100.9)),
                            .b = SIDE(RUN(98.5, 98.6, 98.4)),
                            .higher_is_better = true,
                            .margin = 0.02,
                            .best_of = 5};

    (void)state;
    decided(&c, 1, true);
    assert_true(fabs(c.ratio - 98.5 / 103) < 1e-4);
    assert_true(c.by_runs && !c.proven);
    assert_true(fabs(c.freedom - 4) < 1e-9);
    c.higher_is_better = false; /* the best is the lowest */
    decided(&c, 1, true);
    assert_true(fabs(c.ratio - 98 / 98.5) < 1e-4);
}

/* A case that only the newest of five baselines has, where runs differ by 3 % and launches by 0.1 %. */
static void a_new_case_does_not_know_its_runs(void **state)
{
    enum { N = 12, RUNS = 5, LAUNCHES = 5 };
    static double values[N][RUNS + 1][LAUNCHES];
    static struct decide_run runs[N][RUNS + 1];
    struct decide_case cases[N];
    struct rng r;

    (void)state;
    for (size_t few = 0; few < 2; few++) { /* with a fit, and with too few cases for one */
        size_t n = few ? 3 : N;

        rng_seed(&r, 5);
        for (size_t c = 0; c < n; c++) {
            for (size_t k = 0; k <= RUNS; k++) {
                double level = 100 * exp(0.03 * rng_normal(&r));

                for (size_t l = 0; l < LAUNCHES; l++)
                    values[c][k][l] = level * exp(0.001 * rng_normal(&r));
                runs[c][k] = (struct decide_run){.values = values[c][k], .n = LAUNCHES};
            }
            cases[c] = (struct decide_case){.a = {runs[c], RUNS},
                                            .b = {&runs[c][RUNS], 1},
                                            .higher_is_better = true,
                                            .margin = 0.02};
        }
        for (size_t k = 0; k + 1 < RUNS; k++)
            runs[0][k].n = 0;
        for (size_t l = 0; l < LAUNCHES; l++)
            values[0][RUNS][l] = 0.95 * values[0][RUNS - 1][l];
        decided(cases, n, true);
        assert_true(cases[0].by_runs);
        assert_true(cases[0].error > 0.01);
        assert_true(!cases[0].proven);
    }
}

static void assert_obstacle(struct decide_case c, enum decide_obstacle obstacle, const char *words)
{
    char text[256];

    c.margin = 0.05;
    c.higher_is_better = true;
    struct decide_overall overall = decided(&c, 1, true);

    assert_int_equal(c.obstacle, obstacle);
    assert_int_equal(c.decision, DECISION_INCONCLUSIVE);
    assert_int_equal(overall.decision, DECISION_INCONCLUSIVE);
    assert_int_equal(overall.n_judged, 0);
    assert_true(isnan(c.p_worse) && isnan(c.error) && isnan(c.low) && isnan(c.smallest));
    assert_int_equal(decide_sentence(&c, text, sizeof(text)), 0);
    assert_non_null(strstr(text, words));
}

static void what_cannot_be_decided_says_why(void **state)
{
    (void)state;
    assert_obstacle((struct decide_case){.b = SIDE(RUN(1, 2))}, OBSTACLE_NO_VALUE, "no value");
    assert_obstacle((struct decide_case){.a = SIDE({0}), .b = SIDE(RUN(1, 2))}, OBSTACLE_NO_VALUE,
                    "no value");
    assert_obstacle((struct decide_case){.a = SIDE(RUN(1, NAN)), .b = SIDE(RUN(1, 2))},
                    OBSTACLE_BAD_VALUE, "not a number above 0");
    assert_obstacle((struct decide_case){.a = SIDE(RUN(1, 2)), .b = SIDE(RUN(1, 0))},
                    OBSTACLE_BAD_VALUE, "not a number above 0");
    assert_obstacle((struct decide_case){.a = SIDE(RUN(1, 2)), .b = SIDE(RUN(-1, 2))},
                    OBSTACLE_BAD_VALUE, "not a number above 0");
    assert_obstacle((struct decide_case){.a = SIDE(RUN(1, 2)), .b = SIDE(RUN(INFINITY))},
                    OBSTACLE_BAD_VALUE, "not a number above 0");
    assert_obstacle((struct decide_case){.a = SIDE(RUN(100)), .b = SIDE(RUN(50))},
                    OBSTACLE_ONE_LAUNCH, "a loss of 50 % in one launch on a side");
}

/* One launch against several has a spread to stand on, but proves only what is beyond any. */
static void one_launch_against_several(void **state)
{
    struct decide_case c = {.a = SIDE(RUN(100, 101, 99, 100.5, 99.5)),
                            .b = SIDE(RUN(60)),
                            .higher_is_better = true,
                            .margin = 0.05};

    (void)state;
    decided(&c, 1, false);
    assert_int_equal(c.decision, DECISION_WORSE);
    assert_float_equal(c.freedom, 4, 1e-12);
}

static void a_bad_case_leaves_the_others_alone(void **state)
{
    struct scene s;

    (void)state;
    scene_fill(&s, 5, 0.02, 3);
    scene_scale(&s, 7, 0.94);
    s.values[8][1][2] = NAN;
    s.runs[9][0].n = 0;
    struct decide_overall overall = decided(s.cases, MANY, true);

    assert_int_equal(overall.n_judged, MANY - 2);
    assert_int_equal(overall.n_worse, 1);
    assert_int_equal(s.cases[8].obstacle, OBSTACLE_BAD_VALUE);
    assert_int_equal(s.cases[9].obstacle, OBSTACLE_NO_VALUE);
}

/* Launches that agree to the last digit: counts, or figures that are worked out. */
static void values_without_any_spread(void **state)
{
    struct decide_case same = {
        .a = SIDE(RUN(8, 8)), .b = SIDE(RUN(8, 8)), .higher_is_better = true, .margin = 0.05};
    struct decide_case less = {.a = SIDE(RUN(8, 8, 8, 8, 8)),
                               .b = SIDE(RUN(4, 4, 4, 4, 4)),
                               .higher_is_better = true,
                               .margin = 0.05};

    (void)state;
    decided(&same, 1, false);
    assert_int_equal(same.decision, DECISION_EQUIVALENT);
    decided(&less, 1, false);
    assert_int_equal(less.decision, DECISION_WORSE);
}

static void options_out_of_range(void **state)
{
    struct decide_case c = {.a = SIDE(RUN(8, 8)), .b = SIDE(RUN(8, 8)), .margin = 0.05};
    struct decide_overall overall;

    (void)state;
    assert_int_equal(decide_suite(&c, 1, &(struct decide_options){.confidence = 1}, &overall),
                     -EINVAL);
    assert_int_equal(decide_suite(&c, 1, &(struct decide_options){.alarm_level = -1}, &overall),
                     -EINVAL);
    assert_int_equal(decide_suite(&c, 1, &(struct decide_options){.alarm_level = NAN}, &overall),
                     -EINVAL);
    for (int i = 0; i < 3; i++) {
        c.margin = (double[]){1, -0.1, NAN}[i];
        assert_int_equal(decide_suite(&c, 1, &(struct decide_options){0}, &overall), -EINVAL);
    }
    assert_int_equal(decided(NULL, 0, true).decision, DECISION_INCONCLUSIVE);
}

/* Any doubles whatever: no crash, no decision without figures. */
static void rubbish_is_survived(void **state)
{
    struct rng r;

    (void)state;
    rng_seed(&r, 9);
    for (int round = 0; round < 300; round++) {
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

static size_t busy_named(const struct busy *s, size_t but)
{
    size_t n = 0;

    for (size_t c = 0; c < BUSY_CASES; c++)
        n += c != but &&
             (s->cases[c].decision == DECISION_WORSE || s->cases[c].decision == DECISION_BETTER);
    return n;
}

static void best_launches_show_what_medians_cannot(void **state)
{
    struct busy s;
    char text[512];

    (void)state;
    busy_fill(&s);
    decided(s.cases, BUSY_CASES, true);
    assert_int_equal(busy_named(&s, BUSY_CASES), 0);
    double by_both = s.cases[3].smallest;

    assert_int_equal(s.cases[3].shown_by, DECIDE_BY_FAST);
    busy_fill(&s);
    busy_lose(&s, 3, 0.95, 0.95);
    decided(s.cases, BUSY_CASES, true);
    assert_int_equal(s.cases[3].decision, DECISION_WORSE);
    assert_int_equal(s.cases[3].judged_by, DECIDE_BY_FAST);
    assert_float_equal(s.cases[3].ratio, 0.95, 0.01);
    assert_true(s.cases[3].high < 0.97 && s.cases[3].median_high > 0.97);
    assert_true(s.cases[3].b_value < 90); /* the value stays that of the medians */
    assert_int_equal(busy_named(&s, 3), 0);
    assert_int_equal(decide_sentence(&s.cases[3], text, sizeof(text)), 0);
    assert_non_null(strstr(text, "; by the best launches. The medians show a "));

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
    assert_int_equal(s.cases[3].decision, DECISION_WORSE);
    assert_int_equal(s.cases[3].judged_by, DECIDE_BY_MEDIAN);
    assert_int_equal(s.cases[5].decision, DECISION_WORSE);
    assert_int_equal(s.cases[5].judged_by, DECIDE_BY_MEDIAN);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_of_the_docs),
        cmocka_unit_test(best_launches_show_what_medians_cannot),
        cmocka_unit_test(no_loss_hides_behind_the_best_launches),
        cmocka_unit_test(three_of_five_launches_count),
        cmocka_unit_test(launches_in_turn_share_what_drifts),
        cmocka_unit_test(a_proven_change_within_the_margin_is_equivalent),
        cmocka_unit_test(the_margin_is_one_of_ratios),
        cmocka_unit_test(how_many_more_would_decide),
        cmocka_unit_test(several_runs_are_what_varies),
        cmocka_unit_test(runs_are_never_surer_than_their_launches),
        cmocka_unit_test(one_loss_in_a_suite_is_named_alone),
        cmocka_unit_test(sides_swapped_turn_everything_round),
        cmocka_unit_test(lower_is_better_is_turned_round),
        cmocka_unit_test(unrest_widens_a_gates_intervals),
        cmocka_unit_test(a_night_far_off_is_no_loss_before_nights_are_known),
        cmocka_unit_test(more_launches_do_not_lift_unrest),
        cmocka_unit_test(a_gain_as_large_makes_a_loss_doubtful),
        cmocka_unit_test(a_shift_of_many_cases_is_told_and_not_proven),
        cmocka_unit_test(accepted_changes_are_no_shift_of_many),
        cmocka_unit_test(a_shift_of_everything_is_proven_by_several_baselines),
        cmocka_unit_test(the_best_of_runs_is_no_common_loss),
        cmocka_unit_test(a_slip_is_seen_from_the_anchor),
        cmocka_unit_test(runs_that_are_no_level_tell_the_spread),
        cmocka_unit_test(one_baseline_of_few_cases_decides_nothing),
        cmocka_unit_test(the_order_of_a_pair_is_taken_out),
        cmocka_unit_test(few_launches_prove_little),
        cmocka_unit_test(few_launches_of_a_single_run),
        cmocka_unit_test(best_of_several_is_held_to_more),
        cmocka_unit_test(the_best_of_runs_that_differ),
        cmocka_unit_test(a_new_case_does_not_know_its_runs),
        cmocka_unit_test(what_cannot_be_decided_says_why),
        cmocka_unit_test(one_launch_against_several),
        cmocka_unit_test(a_bad_case_leaves_the_others_alone),
        cmocka_unit_test(values_without_any_spread),
        cmocka_unit_test(options_out_of_range),
        cmocka_unit_test(rubbish_is_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
