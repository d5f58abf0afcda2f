/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions over a suite: worked figures, and what must hold whatever the data. */
#include "core/rng.h"
#include "harness/decide/decide.h"
#include "tests/unit/unit.h"

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
    struct decide_options options = {.unchanged = unchanged, .b_stays = unchanged};
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
TEST(the_example_of_the_docs)
{
    struct decide_case c = CASE(FULL, LESS, 0.02);
    struct decide_overall overall = decided(&c, 1, false);

    assert_float_equal(c.a_value, 99.997500, 1e-6);
    assert_float_equal(c.b_value, 95.997396, 1e-6);
    assert_float_equal(c.ratio, 0.95999796, 1e-8);
    assert_float_equal(c.error, 0.00510540387, 1e-11);
    assert_float_equal(c.freedom, 8, 1e-12);
    assert_float_equal(c.low, 0.94876209, 1e-8);
    assert_float_equal(c.high, 0.97136689, 1e-8);
    assert_float_equal(c.p_worse, 2.1907804e-05, 1e-12);
    assert_float_equal(c.p_better, 1 - 2.1907804e-05, 1e-12);
    /* t(0.995, 8) + t(0.95, 8) = 3.3553873 + 1.8595480 errors */
    assert_float_equal(c.detectable, -expm1(-5.2149353 * 0.00510540387), 1e-8);
    assert_int_equal(c.decision, DECISION_WORSE);
    assert_true(c.proven && c.beyond && !c.by_runs);
    assert_int_equal(c.more_launches, 0);
    assert_int_equal(overall.decision, DECISION_WORSE);
    assert_int_equal(overall.n_worse, 1);
    assert_int_equal(overall.n_judged, 1);
    assert_true(isnan(overall.unrest) && !overall.by_runs);
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
TEST(the_margin_is_one_of_ratios)
{
    struct decide_case loss = CASE(FULL, LESS, 0.06), gain = CASE(LESS, FULL, 0.0513);

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
TEST(launches_in_turn_share_what_drifts)
{
    static const double a[] = {100, 110, 121, 95, 90}, b[] = {97.1, 106.7, 117.25, 92.15, 87.3};
    const struct decide_run run_a = {.values = a, .n = 5};
    struct decide_run run_b = {.values = b, .n = 5};
    struct decide_case c = CASE({&run_a}, {&run_b}, 0.02);
    double sd = 0, mean = 0;

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
    assert_true(c.freedom >= 4 && c.freedom <= 7);
}

/* Who goes second loses 6 %; three launches began with A, two with B. */
TEST(the_order_of_a_pair_is_taken_out)
{
    static const bool first[] = {true, false, true, false, true};
    struct decide_run run_a = RUN(100, 94.1, 100.2, 93.9, 99.9);
    const struct decide_run run_b = RUN(94, 100.1, 94.1, 100, 93.9);
    struct decide_case c = CASE({&run_a}, {&run_b}, 0.02);

    c.a.n = c.b.n = 1;
    c.paired = true;
    run_a.went_first = first;
    assert_int_equal(decision_of(&c), DECISION_EQUIVALENT);
    assert_true(fabs(c.ratio - 1) < 0.002);
    assert_float_equal(c.freedom, 3, 1e-9);
    run_a.went_first = NULL; /* without it: 1.2 % of bias, and the order in the spread */
    assert_int_equal(decision_of(&c), DECISION_INCONCLUSIVE);
}

TEST(how_many_more_would_decide)
{
    struct decide_case c =
        CASE(SIDE(RUN(100, 102, 98, 101, 99)), SIDE(RUN(99, 100.5, 97, 100, 98.5)), 0.01);
    char text[256];

    assert_int_equal(decision_of(&c), DECISION_INCONCLUSIVE);
    assert_int_equal(c.obstacle, OBSTACLE_NONE);
    assert_int_equal(c.more_launches, 27);
    c.margin = 0.02;
    decided(&c, 1, false);
    assert_int_equal(c.more_launches, 13);
    assert_int_equal(decide_sentence(&c, text, sizeof(text)), 0);
    assert_non_null(strstr(text, "13 more repetitions"));
    assert_int_equal(decide_sentence(&c, text, 20), -ENOSPC);
    assert_int_equal(strlen(text), 19);
}

/* Variance 6.2019e-4 between the three runs' means; B's own launches scatter less than A's, whose
 * squares are 2 (0.00995/2)^2 and alike, and count for it (4 degrees of A's, 1 of its own). Runs that
 * agree by chance do not make launches' own spread go away. */
TEST(several_runs_are_what_varies)
{
    struct decide_case c =
        CASE(SIDE(RUN(100, 101), RUN(103, 104), {0}, RUN(98, 99)), SIDE(RUN(95, 96)), 0.02);
    struct decide_case agree =
        CASE(SIDE(RUN(90, 110), RUN(90, 110), RUN(90, 110)), SIDE(RUN(90, 110)), 0.02);
    double within = 2 * pow(log(110 / 90.0) / 2, 2), of_a = 0;
    const double apart[] = {log(101 / 100.0), log(104 / 103.0), log(99 / 98.0)};

    for (int i = 0; i < 3; i++)
        of_a += apart[i] * apart[i] / 2 / 3;
    double of_b = (4 * of_a + pow(log(96 / 95.0), 2) / 2) / 5;

    assert_true(decided(&c, 1, true).by_runs);
    assert_true(c.by_runs);
    assert_float_equal(log(c.ratio), -0.0541371116, 1e-9);
    assert_float_equal(c.error * c.error, 0.0287562862 * 0.0287562862 + (of_b - of_a) / 2, 1e-9);
    assert_float_equal(c.freedom, 2, 0.01);
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
TEST(one_loss_in_a_suite_is_named_alone)
{
    struct scene s, t;

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
        assert_true(s.cases[7].freedom > 8);
        assert_int_equal(y.n_better, 1);
        assert_int_equal(y.n_worse, 0);
        for (size_t c = 0; c < MANY; c++) {
            assert_float_equal(s.cases[c].ratio * t.cases[c].ratio, 1, 1e-9);
            assert_float_equal(s.cases[c].low * t.cases[c].high, 1, 1e-9);
            assert_float_equal(s.cases[c].p_worse, t.cases[c].p_better, 1e-9);
            if (unchanged) /* gains and losses are each held against the others of their kind */
                continue;
            assert_float_equal(s.cases[c].detectable, t.cases[c].detectable, 1e-9);
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

/* Two runs a side of which one is as far off as six widths of the others' changes: by their shape nobody knows. */
TEST(a_night_far_off_is_no_loss_before_nights_are_known)
{
    struct scene s;

    scene_fill(&s, 5, 0.001, 5);
    for (size_t c = 0; c < MANY; c++)
        scene_scale(&s, c, exp(0.01 * (c % 2 ? 1 : -1) * (1 + (double)c / MANY)));
    scene_scale(&s, 0, 0.9);
    decided(s.cases, MANY, true);
    assert_true(s.cases[0].ratio < 0.92);
    assert_int_equal(s.cases[0].decision, DECISION_INCONCLUSIVE);
    assert_true(s.cases[0].p_worse < 0.01 && s.cases[0].likely);
    assert_int_equal(s.cases[0].obstacle, OBSTACLE_SHAPE); /* no other case lay as far off */
    scene_scale(&s, 0, 0.7);                               /* no night is as far off as that */
    decided(s.cases, MANY, true);
    assert_int_equal(s.cases[0].decision, DECISION_WORSE);
}

/* Half of the cases, or all of them, lose with one baseline: a run that came up otherwise looks the same. */
TEST(a_shift_of_many_cases_is_told_and_not_proven)
{
    struct scene s;

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

/* Tonight's launches scatter five times as much as the baselines': what they lost is no more than
 * that, though the baselines alone would prove it. */
TEST(a_noisier_night_counts_by_its_own_launches)
{
    static struct nights s;
    size_t lower = 0;

    nights_fill(&s, 10, 0, 0.01, 11);
    for (size_t c = 0; c < MANY; c++)
        for (size_t l = 0; l < 5; l++)
            s.values[c][10][l] = 50 * pow(s.values[c][10][l] / 50, 5);
    assert_int_equal(decided(s.cases, MANY, true).n_worse, 0);
    for (size_t c = 0; c < MANY; c++) {
        /* by the baselines' launches: 0.45 % sqrt(1 + 1 / 10) */
        lower += log(s.cases[c].ratio) < -3.7 * 0.0047;
        assert_true(s.cases[c].error > 0.013 && s.cases[c].error < 0.035);
    }
    assert_true(lower > 2);
}

/* One baseline of five is 20 % off, in a case or in all of them: it is named, and a loss is found. */
TEST(a_strange_baseline_is_left_out_and_named)
{
    static struct nights s;

    for (size_t n = 1; n <= MANY; n += MANY - 1)
        for (int slower = 0; slower < 2; slower++) {
            nights_fill(&s, 5, 0.005, 0.003, 12);
            for (size_t c = 0; c < n; c++)
                nights_lose(&s, c, 2, slower ? 0.2 : -0.25);
            assert_int_equal(decided(s.cases, MANY, true).n_worse, 0);
            assert_int_equal(s.cases[0].strange, 2);
            assert_float_equal(s.cases[0].strange_ratio, slower ? 0.8 : 1.25, 0.03);
            nights_lose(&s, 0, 5, 0.1);
            decided(s.cases, MANY, true);
            assert_int_equal(s.cases[0].decision, DECISION_WORSE);
            assert_float_equal(s.cases[0].ratio, 0.9, 0.02);
            if (slower) { /* where that run lay nobody can say which of the two is strange */
                nights_lose(&s, 0, 5, 1 - 0.8 / 0.9);
                decided(s.cases, MANY, true);
                assert_int_equal(s.cases[0].obstacle, OBSTACLE_STRANGE);
                assert_true(s.cases[0].likely);
            }
        }
}

/* Boots differ by 1.5 % in each case. From one boot to another nothing is proven; where five boots
 * are known, nothing is either, and a true loss is. */
TEST(another_boot_is_no_loss)
{
    static struct nights s;

    for (size_t boots = 1; boots <= 5; boots += 4) {
        struct rng r;

        nights_fill(&s, 10, 0.002, 0.003, 13);
        rng_seed(&r, 14);
        for (size_t c = 0; c < MANY; c++) {
            double level[6];

            for (size_t b = 0; b < 6; b++)
                level[b] = 0.015 * rng_normal(&r);
            for (size_t t = 0; t <= 10; t++) {
                size_t boot = t * boots / 10;

                s.runs[c][t].boot = (unsigned)boot + 1;
                nights_lose(&s, c, t, -expm1(level[boot]));
            }
        }
        struct decide_overall overall = decided(s.cases, MANY, true);

        assert_int_equal(overall.n_worse, 0);
        assert_int_equal(overall.new_boot, boots == 1);
        assert_int_equal(s.cases[3].new_boot, boots == 1);
        nights_lose(&s, 3, 10, 0.12);
        decided(s.cases, MANY, true);
        assert_int_equal(s.cases[3].decision == DECISION_WORSE, boots == 5);
        for (size_t c = 0; c < MANY; c++)
            for (size_t t = 0; t <= 10; t++)
                s.runs[c][t].boot = 0;
        overall = decided(s.cases, MANY, true);
        assert_true(boots > 1 || overall.n_worse > 5); /* else all is taken for a loss */
    }
}

/* One launch of five is 20 % slower: the mean is 4 % lower, and what the others' launches scatter by
 * is no proof that this one is as good. */
TEST(a_launch_on_another_mode_is_not_equivalent)
{
    struct scene s;

    scene_fill(&s, 5, 0.05, 15);
    assert_int_equal(decided(s.cases, MANY, false).n_equivalent, MANY);
    s.values[9][1][2] *= 0.8;
    assert_int_equal(decided(s.cases, MANY, false).n_equivalent, MANY - 1);
    assert_int_equal(s.cases[9].decision, DECISION_INCONCLUSIVE);
}

/* Values that were rounded to 3 % steps: a step is no loss. */
TEST(a_step_of_rounding_is_no_loss)
{
    struct decide_case one =
        CASE(SIDE(RUN(1.00, 1.00, 1.00, 1.00, 1.03), RUN(1.00, 1.00, 1.00, 1.00, 1.00),
                  RUN(1.00, 1.00, 1.00, 1.00, 1.00)),
             SIDE(RUN(0.97, 0.97, 0.97, 0.97, 0.97)), 0.02);
    struct decide_case more = one;

    more.b = (struct decide_side)SIDE(RUN(0.7, 0.7, 0.7, 0.7, 0.7));
    assert_int_equal(decision_of(&one), DECISION_INCONCLUSIVE);
    assert_int_equal(decision_of(&more), DECISION_WORSE);
}

/* Cases that never vary say nothing of how runs differ: they neither blind the others nor make them
 * alarm. */
TEST(constant_cases_have_no_say)
{
    static struct nights s;

    for (size_t baselines = 1; baselines <= 10; baselines += 9) {
        nights_fill(&s, baselines, 0.01, 0.002, 16);
        for (size_t c = 0; c < 22; c++)
            for (size_t t = 0; t <= baselines; t++)
                for (size_t l = 0; l < 5; l++)
                    s.values[c][t][l] = 50;
        struct decide_overall overall = decided(s.cases, MANY, true);

        assert_int_equal(overall.n_worse + overall.n_better, 0);
        assert_true(baselines > 1 || overall.unrest > 6);
        assert_int_equal(s.cases[0].decision, DECISION_EQUIVALENT);
        assert_true(s.cases[30].detectable > 0.03 && s.cases[30].detectable < 1);
        nights_lose(&s, 30, baselines, 0.15);
        decided(s.cases, MANY, true);
        assert_int_equal(s.cases[30].decision == DECISION_WORSE, baselines > 1);
    }
}

/* The first run of all, which nobody judged, was 5 % faster in one case: alone, or among others, it
 * is no drift of tonight's, and hides none. */
TEST(an_odd_anchor_is_neither_drift_nor_blindness)
{
    static struct nights s;

    for (size_t anchors = 1; anchors <= 10; anchors += 9) {
        nights_fill(&s, anchors + 10, 0.003, 0.003, 17);
        for (size_t c = 0; c < MANY; c++)
            for (size_t t = 0; t < anchors; t++)
                s.runs[c][t].role = DECIDE_ANCHOR;
        nights_lose(&s, 4, 0, -0.1);
        assert_int_equal(decided(s.cases, MANY, true).n_worse, 0);
        nights_lose(&s, 4, anchors + 10, 0.05);
        decided(s.cases, MANY, true);
        assert_int_equal(s.cases[4].decision, DECISION_WORSE);
        assert_false(s.cases[4].slipped);
    }
}

/* Two runs of one launch each, of which one is an anchor: nothing tells a spread. */
TEST(what_tells_no_spread_is_not_judged)
{
    struct decide_case c = CASE(SIDE(RUN(100), RUN(101)), SIDE(RUN(70)), 0.02);
    struct decide_run runs[2] = {c.a.runs[0], c.a.runs[1]};

    runs[0].role = DECIDE_ANCHOR;
    c.a.runs = runs;
    assert_int_equal(decided(&c, 1, true).n_judged, 0);
    assert_int_equal(c.obstacle, OBSTACLE_ONE_LAUNCH);
}

/* 0.5 % a night in every fifth case: 2.5 % against the mean of the last ten nights, which is lost in
 * their noise, and 10 % since the first. */
TEST(a_slip_is_seen_from_the_anchor)
{
    static struct nights s;

    nights_fill(&s, NIGHTS, 0.01, 0.003, 6);
    for (size_t c = 0; c < MANY; c += 5)
        for (size_t t = 0; t <= NIGHTS; t++)
            nights_lose(&s, c, t, 1 - pow(1 - 0.005, (double)t));
    for (size_t c = 0; c < MANY; c++)
        for (size_t t = 10; t + 10 < NIGHTS; t++)
            s.runs[c][t].n = 0; /* neither of the first nor of the last */
    for (size_t c = 0; c < MANY; c++)
        for (size_t t = 0; t < NIGHTS; t++)
            s.runs[c][t].role = t < 10 ? DECIDE_ANCHOR : DECIDE_LEVEL;
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

/* A case that only the newest of five baselines has, with a fit of the others and with too few for one. */
TEST(a_new_case_does_not_know_its_runs)
{
    static struct nights s;

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
TEST(one_baseline_of_few_cases_decides_nothing)
{
    struct decide_case c = CASE(FULL, SIDE(RUN(50, 51, 49, 50.5, 49.5)), 0.02);

    assert_true(decided(&c, 1, true).runs_unknown);
    assert_int_equal(c.decision, DECISION_INCONCLUSIVE);
    assert_int_equal(c.obstacle, OBSTACLE_RUNS);
    assert_true(isnan(c.p_worse) && isnan(c.detectable));
    assert_int_equal(decision_of(&c), DECISION_WORSE); /* compare's view */
}

/* With three launches a change also has to be larger than any case's launches differ by. */
TEST(few_launches_prove_little)
{
    struct scene s;

    scene_fill(&s, 3, 0.02, 3);
    scene_scale(&s, 7, 0.90);
    assert_int_equal(decided(s.cases, MANY, false).n_worse, 1);
    s.values[20][0][0] *= 1.2; /* a launch of another case */
    assert_int_equal(decided(s.cases, MANY, false).n_worse, 0);
    assert_int_equal(s.cases[7].obstacle, OBSTACLE_FEW);
    assert_int_equal(s.cases[7].decision, DECISION_INCONCLUSIVE);
    assert_true(!s.cases[7].proven);
    assert_int_equal(s.cases[7].more_launches, 2);
    assert_true(s.cases[7].detectable > 0.15);
}

TEST(what_cannot_be_decided_says_why)
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

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct decide_case c = CASE(cases[i].a, cases[i].b, 0.05);
        struct decide_overall overall = decided(&c, 1, true);

        assert_int_equal(c.obstacle, cases[i].obstacle);
        assert_int_equal(c.decision, DECISION_INCONCLUSIVE);
        assert_int_equal(overall.decision, DECISION_INCONCLUSIVE);
        assert_int_equal(overall.n_judged, 0);
        assert_true(isnan(c.p_worse) && isnan(c.error) && isnan(c.low) && isnan(c.detectable));
    }
}

/* One launch against several proves only what is beyond any; launches that agree to the last digit are counts. */
TEST(spreads_that_are_known_in_part_or_are_none)
{
    struct decide_case one = CASE(FULL, SIDE(RUN(60)), 0.05);
    struct decide_case same = CASE(SIDE(RUN(8, 8)), SIDE(RUN(8, 8)), 0.05);
    struct decide_case less = CASE(SIDE(RUN(8, 8, 8, 8, 8)), SIDE(RUN(4, 4, 4, 4, 4)), 0.05);

    assert_int_equal(decision_of(&one), DECISION_WORSE);
    assert_float_equal(one.freedom, 4, 1e-12);
    assert_int_equal(decision_of(&same), DECISION_EQUIVALENT);
    assert_int_equal(decision_of(&less), DECISION_WORSE);
}

TEST(options_out_of_range)
{
    /* margin, confidence, level of alarms */
    static const double bad[][3] = {{0.05, 1, 0}, {0.05, 0, -1}, {0.05, 0, NAN},
                                    {1, 0, 0},    {-0.1, 0, 0},  {NAN, 0, 0}};
    struct decide_overall overall;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct decide_case c = CASE(SIDE(RUN(8, 8)), SIDE(RUN(8, 8)), bad[i][0]);
        struct decide_options options = {.confidence = bad[i][1], .alarm_level = bad[i][2]};

        assert_int_equal(decide_suite(&c, 1, &options, &overall), -EINVAL);
    }
    assert_int_equal(decided(NULL, 0, true).decision, DECISION_INCONCLUSIVE);
}

/* Any doubles whatever: no crash, no decision without figures. */
TEST(rubbish_is_survived)
{
    struct rng r;

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
TEST(both_figures_must_be_equivalent)
{
    const double steady[] = {STEADY}, held[] = {HELD}, faster[] = {FASTER}, swaying[] = {SWAYING};
    const double *same[2] = {steady, steady}, *quota[2] = {steady, held},
                 *noisy[2] = {steady, swaying}, *better[2] = {faster, faster},
                 *mixed[2] = {faster, held}, *old[2] = {steady, NULL};
    struct decide_case c;

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

#define PAIRS_MOST 5
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

TEST(steps_between_runs_are_shared)
{
    static const double change[] = {-0.049, -0.051, -0.050, -0.052, -0.048};
    struct turns t;
    struct decide_case c = make(&t, change, 5, 0.001);

    assert_true(decided(&c, 1, false).by_runs);
    assert_int_equal(c.decision, DECISION_WORSE);
    assert_true(c.by_runs && c.by_pairs && c.beyond);
    assert_float_equal(log(c.ratio), -0.05, 1e-9);
    /* Five changes: variance 2.5e-6, over 5; t(0.975, 4) = 2.7764 */
    assert_float_equal(c.freedom, 4, 1e-9);
    assert_float_equal(c.error, sqrt(2.5e-6 / 5), 1e-9);
    assert_float_equal(log(c.high), -0.05 + 2.7764451 * sqrt(2.5e-6 / 5), 1e-7);
    /* Judged by runs alone the two sides are alike, as far as anybody can tell. */
    c.paired = false;
    decided(&c, 1, false);
    assert_int_equal(c.decision, DECISION_INCONCLUSIVE);
    assert_true(c.by_runs && !c.by_pairs && c.error > 1);
    assert_float_equal(c.freedom, 8, 1e-4);
}

/* What counts is that changes differ from run to run; runs that happen to agree are known no better than their
 * launches make them: 30 squares of 0.0009, 25 degrees; a mean of 6, five times. */
TEST(changes_that_differ_from_run_to_run_widen)
{
    static const double differ[] = {-0.09, -0.01, -0.05, -0.08, -0.02};
    static const double agree[] = {-0.05, -0.05, -0.05, -0.05, -0.05};
    struct turns t;
    struct decide_case c = make(&t, differ, 5, 0.001);

    decided(&c, 1, false);
    assert_int_equal(c.decision, DECISION_INCONCLUSIVE);
    assert_float_equal(c.error, sqrt(0.00125 / 5), 1e-9);
    assert_true(log(c.low) < -0.09 && log(c.high) > -0.01);
    c = make(&t, agree, 5, 0.03);
    decided(&c, 1, false);
    assert_float_equal(c.error, sqrt(30 * 0.0009 / 25 / 6 / 5), 1e-9);
    assert_float_equal(c.freedom, 4, 1e-9);
}

TEST(two_pairs_of_runs_are_not_bold)
{
    static const double alike[] = {-0.05, -0.0501}, apart[] = {-0.03, 0.03};
    struct turns t[2];
    struct decide_case cases[2] = {make(&t[0], alike, 2, 0.0001), make(&t[1], apart, 2, 0.0001)};

    decided(cases, 1, false);
    assert_float_equal(cases[0].freedom, 1, 1e-9);
    assert_int_equal(cases[0].decision, DECISION_WORSE);
    /* Pairs of another case are 6 % apart: so may be what changed by 5 %, and fell on one side twice. */
    decided(cases, 2, false);
    assert_int_equal(cases[0].decision, DECISION_INCONCLUSIVE);
    assert_false(cases[0].proven);
    assert_true(cases[0].detectable > 0.058);
}

/* A pair of runs of which one has lost the case tells nothing; one that is left is one pair, in a suite of
 * several. */
TEST(a_case_that_is_lost_in_a_run)
{
    static const double change[] = {-0.049, -0.051, -0.05};
    struct turns t[2];
    struct decide_case cases[2] = {make(&t[0], change, 3, 0.001), make(&t[1], change, 3, 0.001)};

    t[0].runs_a[2].n = t[0].runs_b[2].n = 0;
    decided(cases, 2, false);
    assert_true(cases[0].freedom <
                2); /* two pairs of runs, and a little of the other case's three */
    assert_float_equal(log(cases[0].ratio), -0.05, 1e-9);
    t[0].runs_a[1].n = t[0].runs_b[1].n = 0;
    decided(cases, 1, false); /* alone it is two runs in turn */
    assert_true(!cases[0].by_runs && cases[0].by_pairs);
    assert_float_equal(cases[0].freedom, 5, 1e-9);
}

/* With few launches a change is to be larger than what changes of launches differ by; launches themselves may
 * differ more. */
TEST(few_launches_of_one_pair)
{
    static const double loss[] = {-0.05}, none[] = {0};
    struct turns t[2];
    struct decide_case cases[2] = {make(&t[0], loss, 1, 0.0001), make(&t[1], none, 1, 0.02)};

    for (size_t k = 0; k < 2; k++)
        t[k].runs_a[0].n = t[k].runs_b[0].n = 4;
    decided(cases, 2, false);
    assert_int_equal(cases[0].decision, DECISION_WORSE); /* launches are 70 % apart, changes 4 % */
    make(&t[1], none, 1, 0.03);
    t[1].runs_a[0].n = t[1].runs_b[0].n = 4;
    decided(cases, 2, false);
    assert_int_equal(cases[0].decision, DECISION_INCONCLUSIVE);
    assert_int_equal(cases[0].obstacle, OBSTACLE_FEW);
    assert_int_equal(cases[0].more_launches, 1);
}

TEST(what_is_no_pair_is_not_taken_for_one)
{
    static const double change[] = {-0.049, -0.051, -0.05};
    struct turns t;
    struct decide_case c = make(&t, change, 3, 0.001);

    t.runs_b[1].n--;
    decided(&c, 1, false);
    assert_true(c.by_runs && !c.by_pairs && c.error > 1);
    t.runs_b[1].n++;
    c.b.n--;
    decided(&c, 1, false);
    assert_false(c.by_pairs);
    c.b.n++;
    decided(&c, 1, false);
    assert_true(c.by_pairs);
}
