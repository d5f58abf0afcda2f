/* SPDX-License-Identifier: Apache-2.0 */
/* Sums at more ranks than were measured: given, wider with each doubling, or refused. Times are those of rings, step by step. */
#include "harness/forecast/law.h"
#include "tests/unit/unit.h"

static const struct bench_terms ring = {
    .where = "", .messages = "2 * (n - 1)", .bytes = "2 * (n - 1) / n", .bus = "2 * (n - 1) / n"};
static const double sizes[] = {1 << 20, 1 << 24, 1 << 26};

/* Every rank passes its part on in 2 (n - 1) steps, each of 20 us and 1 us for 1000 bytes. */
static double ring_us(double ranks, double bytes)
{
    double us = 0;

    for (double step = 0; step < 2 * (ranks - 1); step++)
        us += 20 + bytes / ranks / 1000;
    return us;
}

struct scene {
    struct fit_point points[64];
    struct law law;
};

static void add(struct scene *s, double ranks, double times)
{
    for (size_t i = 0; i < 3; i++)
        s->points[s->law.n++] = (struct fit_point){
            ranks, sizes[i], times * ring_us(ranks, sizes[i]) * (1 + 0.002 * (i % 2 ? 1 : -1))};
    s->law.points = s->points;
    s->law.terms = &ring;
}

TEST(a_ring_is_found_again_and_wider_beyond)
{
    struct scene s = {.law = {0}};
    double before = 0;
    add(&s, 2, 1);
    add(&s, 4, 1);
    add(&s, 8, 1);
    for (double n = 8; n <= 64; n *= 2) {
        struct law_value v = law_at(&s.law, n, 25e6);
        double truth = ring_us(n, 25e6), width = log(v.high_us / v.low_us);

        assert_int_equal(v.refused, LAW_GIVEN);
        assert_true(fabs(v.us / truth - 1) < 0.01 && v.low_us < truth && truth < v.high_us);
        assert_true(width > before);
        assert_true(n == 8 || width > 2 * LAW_UNSEEN * log2(n / 8));
        assert_true(fabs(v.held_out - 1) < 0.01 && v.most_ranks == 8 && v.held_from == 4);
        before = width;
    }
}

TEST(what_was_not_shown_is_refused)
{
    static const struct {
        size_t n; /* points: three of 4 ranks, then three of 2 */
        double ranks, bytes;
        enum law_refusal refused;
    } cases[] = {{0, 4, 1e6, LAW_NOTHING}, {3, 4, 25e6, LAW_GIVEN}, {3, 8, 25e6, LAW_ONE},
                 {3, 2, 25e6, LAW_ONE},    {2, 4, 25e6, LAW_FEW},   {2, 8, 25e6, LAW_ONE},
                 {6, 32, 25e6, LAW_GIVEN}, {6, 64, 25e6, LAW_FAR},  {6, 8, 1e10, LAW_BYTES}};
    struct scene s = {.law = {0}};
    add(&s, 4, 1);
    add(&s, 2, 1);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        s.law.n = cases[i].n;
        struct law_value v = law_at(&s.law, cases[i].ranks, cases[i].bytes);
        if (v.refused != cases[i].refused || isnan(v.us) != (v.refused != LAW_GIVEN))
            fail_msg("case %zu is %d", i, (int)v.refused);
    }
    s.law.terms = NULL;
    assert_int_equal(law_at(&s.law, 8, 25e6).refused, LAW_NOTHING);
}

/* One sum was held up. It is named, whichever it is; without it all is as before. Of two, none is. */
TEST(one_time_that_was_disturbed_is_named)
{
    for (size_t i = 0; i < 6; i++) {
        struct scene s = {.law = {0}};
        add(&s, 2, 1);
        add(&s, 4, 1);
        s.points[i].time_us *= 3;
        struct law_value v = law_at(&s.law, 4, 25e6);
        assert_int_equal(v.refused, LAW_POINT);
        assert_true(v.at_ranks == s.points[i].ranks && v.at_bytes == s.points[i].bytes);
        assert_true(fabs(v.at_ratio / 3 - 1) < 0.02);
        assert_true(isnan(v.us));
        s.points[i].time_us /= 3;
        assert_int_equal(law_at(&s.law, 4, 25e6).refused, LAW_GIVEN);
        s.points[i].time_us /= 3; /* one that is too short is no better */
        assert_int_equal(law_at(&s.law, 4, 25e6).refused, LAW_POINT);
        s.points[4].time_us /= i == 1 ? 3 : 1;
        assert_int_equal(law_at(&s.law, 4, 25e6).refused, i == 1 ? LAW_SHAPE : LAW_POINT);
    }
}

TEST(another_regime_is_refused)
{
    struct scene s = {.law = {0}};
    add(&s, 2, 1);
    add(&s, 4, 1);
    add(&s, 8, 2); /* as behind a core that carries half */
    struct law_value v = law_at(&s.law, 16, 25e6);
    assert_true(v.refused == LAW_BREAK || v.refused == LAW_SHAPE);
    assert_true(v.held_out < 0.6);
}

/* The error of what was held out is a rate that goes on. */
TEST(an_error_grows_with_each_doubling)
{
    struct scene s = {.law = {0}}, exact = {.law = {0}};
    for (double n = 2; n <= 8; n *= 2) {
        add(&s, n, n == 8 ? 1.10 : 1);
        add(&exact, n, 1);
    }
    s.law.core_known = exact.law.core_known = true;
    struct law_value v = law_at(&s.law, 64, 25e6), e = law_at(&exact.law, 64, 25e6);
    assert_int_equal(v.refused, LAW_GIVEN);
    assert_true(log(v.high_us / v.us) > 3 * 0.095);
    assert_true(log(e.high_us / e.us) < 3 * 0.06);
    exact.law.core_known = false; /* a core that carries less shows in nothing measured */
    v = law_at(&exact.law, 64, 25e6);
    assert_true(log(v.high_us / v.us) >= LAW_CORE + 3 * LAW_UNSEEN && v.low_us == e.low_us);
}

/* Below the fewest ranks that were measured the interval grows as it does beyond the most. */
TEST(fewer_ranks_than_measured)
{
    struct scene s = {.law = {.core_known = true}};
    for (double n = 8; n <= 32; n *= 2)
        add(&s, n, 1);
    struct law_value within = law_at(&s.law, 8, 25e6), below = law_at(&s.law, 4, 25e6);
    assert_true(within.doublings == 0 && below.doublings == 1);
    assert_true(log(below.high_us / below.low_us) >
                log(within.high_us / within.low_us) + 1.9 * LAW_UNSEEN);
    assert_true(fabs(below.us / ring_us(4, 25e6) - 1) < 0.01);
    s.law.core_known = false; /* fewer need no more of the core */
    assert_true(law_at(&s.law, 4, 25e6).high_us == below.high_us);
    /* 2 x 7 messages of 20 us: the noise of 0.2 % leaves them within a third */
    within = law_at(&s.law, 8, 4e6);
    assert_float_equal(within.messages_us, 280, 93);
    assert_true(within.messages_low_us < 280 && 280 < within.messages_high_us);
}

/* What the core of a network carries shows at the measured ranks; of another network nowhere. */
TEST(the_core_of_another_network)
{
    struct scene s = {.law = {0}};
    for (double n = 2; n <= 8; n *= 2)
        add(&s, n, 1);
    double own = law_at(&s.law, 8, 25e6).high_us, two = law_at(&s.law, 2, 25e6).high_us;
    s.law.core_other = true;
    assert_float_equal(law_at(&s.law, 8, 25e6).high_us, 2 * own, 1e-3 * own);
    assert_float_equal(law_at(&s.law, 2, 25e6).high_us, two, 1e-9);
    s.law.core_known = true;
    assert_float_equal(law_at(&s.law, 8, 25e6).high_us, own, 1e-9);
}
