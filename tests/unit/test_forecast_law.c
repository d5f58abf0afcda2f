/* SPDX-License-Identifier: Apache-2.0 */
/* Sums at more ranks than were measured: given, wider with each doubling, or refused. Times are those of rings, step by step. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/forecast/law.h"

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

static void a_ring_is_found_again_and_wider_beyond(void **state)
{
    struct scene s = {.law = {0}};
    double before = 0;

    (void)state;
    add(&s, 2, 1);
    add(&s, 4, 1);
    add(&s, 8, 1);
    for (double n = 8; n <= 64; n *= 2) {
        struct law_value v = law_at(&s.law, n, 25e6);
        double truth = ring_us(n, 25e6), width = log(v.high_us / v.low_us);

        assert_int_equal(v.refused, LAW_GIVEN);
        assert_true(fabs(v.us / truth - 1) < 0.01);
        assert_true(v.low_us < truth && truth < v.high_us);
        assert_true(width > before);
        assert_true(n == 8 || width > 2 * LAW_UNSEEN * log2(n / 8));
        assert_true(fabs(v.held_out - 1) < 0.01);
        assert_true(v.most_ranks == 8 && v.held_from == 4);
        before = width;
    }
}

static void what_was_not_shown_is_refused(void **state)
{
    struct scene s = {.law = {0}};

    (void)state;
    assert_int_equal(law_at(&s.law, 4, 1e6).refused, LAW_NOTHING);
    add(&s, 4, 1);
    assert_int_equal(law_at(&s.law, 4, 25e6).refused, LAW_GIVEN);
    assert_int_equal(law_at(&s.law, 8, 25e6).refused, LAW_ONE);
    assert_int_equal(law_at(&s.law, 2, 25e6).refused, LAW_ONE); /* fewer ranks are others, too */
    s.law.n = 2;
    assert_int_equal(law_at(&s.law, 4, 25e6).refused, LAW_FEW);
    assert_int_equal(law_at(&s.law, 8, 25e6).refused, LAW_ONE);
    s.law.n = 3;
    add(&s, 2, 1);
    assert_int_equal(law_at(&s.law, 32, 25e6).refused, LAW_GIVEN);
    assert_int_equal(law_at(&s.law, 64, 25e6).refused, LAW_FAR);
    assert_int_equal(law_at(&s.law, 8, 1e10).refused, LAW_BYTES);
    assert_true(isnan(law_at(&s.law, 64, 25e6).us));
    s.law.terms = NULL;
    assert_int_equal(law_at(&s.law, 8, 25e6).refused, LAW_NOTHING);
}

/* Of large vectors alone the time of messages is lost in the noise. */
static void small_vectors_take_up_to_what_the_smallest_took(void **state)
{
    struct scene s = {.law = {0}};

    (void)state;
    add(&s, 2, 1);
    add(&s, 4, 1);
    add(&s, 8, 1);
    for (size_t i = 0; i < s.law.n;
         i++) { /* 8 ranks take 12 % longer: another tree, or a slow host */
        struct fit_point *p = &s.points[i];
        p->bytes *= 16;
        p->time_us = ring_us(p->ranks, p->bytes) * (p->ranks == 8 ? 1.12 : 1) *
                     (1 + 0.004 * (double)(i * 7 % 5) - 0.008);
    }
    for (double bytes = 64; bytes < 1e9; bytes *= 4) {
        struct law_value v = law_at(&s.law, 8, bytes);
        double truth = 1.12 * ring_us(8, bytes);
        assert_int_equal(v.refused, LAW_GIVEN);
        if (!(v.low_us <= truth && truth <= v.high_us))
            fail_msg("%g bytes: %g us, %g to %g", bytes, truth, v.low_us, v.high_us);
        assert_true(v.low_us <= v.us && v.us <= v.high_us);
        /* no longer than a vector of 16 MiB */
        assert_true(bytes > 1 << 24 || v.high_us < 1.3 * 1.12 * ring_us(8, 1 << 24));
    }
}

/* One sum was held up. It is named, whichever it is; without it all is as before. Of two, none is. */
static void one_time_that_was_disturbed_is_named(void **state)
{
    (void)state;
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

static void another_regime_is_refused(void **state)
{
    struct scene s = {.law = {0}};

    (void)state;
    add(&s, 2, 1);
    add(&s, 4, 1);
    add(&s, 8, 2); /* as behind a core that carries half */
    struct law_value v = law_at(&s.law, 16, 25e6);
    assert_true(v.refused == LAW_BREAK || v.refused == LAW_SHAPE);
    assert_true(v.held_out < 0.6);
}

/* The error of what was held out is a rate that goes on. */
static void an_error_grows_with_each_doubling(void **state)
{
    struct scene s = {.law = {0}}, exact = {.law = {0}};

    (void)state;
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

/* Few and noisy points are right by chance: how far they may be off goes on as well. */
static void noise_of_what_was_held_out_grows_too(void **state)
{
    struct scene s = {.law = {.core_known = true}};

    (void)state;
    for (double n = 2; n <= 8; n *= 2)
        for (size_t i = 0; i < 9; i++)
            s.points[s.law.n++] = (struct fit_point){
                n, sizes[i / 3], ring_us(n, sizes[i / 3]) * (1 + 0.08 * ((double)(i % 3) - 1))};
    s.law.points = s.points;
    s.law.terms = &ring;
    struct law_value near = law_at(&s.law, 8, 25e6), far = law_at(&s.law, 64, 25e6);
    assert_int_equal(far.refused, LAW_GIVEN);
    assert_true(fabs(far.held_out - 1) < 0.02);
    assert_true(log(far.high_us / far.us) - log(near.high_us / near.us) > 3 * 0.08);
}

/* Below the fewest ranks that were measured the interval grows as it does beyond the most. */
static void fewer_ranks_than_measured(void **state)
{
    struct scene s = {.law = {.core_known = true}};

    (void)state;
    add(&s, 8, 1);
    add(&s, 16, 1);
    add(&s, 32, 1);
    struct law_value within = law_at(&s.law, 8, 25e6), below = law_at(&s.law, 4, 25e6);
    assert_true(within.doublings == 0 && below.doublings == 1);
    assert_true(log(below.high_us / below.low_us) >
                log(within.high_us / within.low_us) + 1.9 * LAW_UNSEEN);
    assert_true(fabs(below.us / ring_us(4, 25e6) - 1) < 0.01);
}

/* What the core of a network carries shows at the measured ranks; of another network nowhere. Fewer
 * ranks than measured need no more of it. */
static void the_core_of_another_network(void **state)
{
    struct scene s = {.law = {0}};

    (void)state;
    for (double n = 2; n <= 8; n *= 2)
        add(&s, n, 1);
    struct law_value own = law_at(&s.law, 8, 25e6), two = law_at(&s.law, 2, 25e6);
    s.law.core_other = true;
    assert_float_equal(law_at(&s.law, 8, 25e6).high_us, 2 * own.high_us, 1e-3 * own.high_us);
    assert_float_equal(law_at(&s.law, 2, 25e6).high_us, two.high_us, 1e-9);
    s.law.core_known = true;
    assert_float_equal(law_at(&s.law, 8, 25e6).high_us, own.high_us, 1e-9);
    s.law = (struct law){.n = 0};
    for (double n = 8; n <= 32; n *= 2)
        add(&s, n, 1);
    assert_true(law_at(&s.law, 4, 25e6).high_us < 1.3 * ring_us(4, 25e6));
    /* 2 x 7 messages of 20 us: the noise of 0.2 % leaves them within a third */
    own = law_at(&s.law, 8, 4e6);
    assert_float_equal(own.messages_us, 280, 93);
    assert_true(own.messages_low_us < 280 && 280 < own.messages_high_us);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_is_found_again_and_wider_beyond),
        cmocka_unit_test(what_was_not_shown_is_refused),
        cmocka_unit_test(fewer_ranks_than_measured),
        cmocka_unit_test(the_core_of_another_network),
        cmocka_unit_test(small_vectors_take_up_to_what_the_smallest_took),
        cmocka_unit_test(one_time_that_was_disturbed_is_named),
        cmocka_unit_test(another_regime_is_refused),
        cmocka_unit_test(an_error_grows_with_each_doubling),
        cmocka_unit_test(noise_of_what_was_held_out_grows_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
