/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is the latency-bandwidth model believed where it should be, and only there? Times are those of rings that are stepped through, message by message, each wire
 * with a latency and a rate of its own: no formula of the model is in them.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/rng.h"
#include "harness/report/scaling.h"
#include "tests/unit/sanitized.h"

#define LATENCY_US 25.0
#define RATE       1200.0 /* bytes a us */
#define RANKS_MAX  32
#define POINTS     64
#define TRIED      (sanitized() ? 20u : 100u) /* series of each kind */

static const struct bench_terms ring = {
    .where = "", .messages = "2 * (n - 1)", .bytes = "2 * (n - 1) / n", .bus = "2 * (n - 1) / n"};

static const unsigned two[] = {2, 4, 0}, three[] = {2, 4, 8, 0}, five[] = {2, 4, 8, 16, 32, 0};

enum wrong {
    SOUND,
    ONE_WIRE,      /* is slow, with the most ranks */
    LAST_RANKS,    /* all wires are slow with the most ranks */
    MIDDLE_RANKS,  /* or with another number of them */
    SMALL_SIZES,   /* messages wait for longer */
    LARGE_SIZES,   /* bytes are slower */
    RATE_FALLS,    /* the more ranks there are */
    LATENCY_GROWS, /* the same */
    WRONGS
};
static const char *const wrongs[] = {"sound",
                                     "one slow wire",
                                     "slow with the most ranks",
                                     "slow with one number of ranks",
                                     "slow small sizes",
                                     "slow large sizes",
                                     "a rate that falls with the ranks",
                                     "a latency that grows with the ranks"};

struct wire {
    double us, rate;
};

struct net { /* what is wrong with it, by how much, and the ranks that it is of */
    enum wrong wrong;
    double factor;
    const unsigned *ranks;
};

static unsigned count(const unsigned *ranks)
{
    unsigned n = 0;

    while (ranks[n])
        n++;
    return n;
}

/* From rank i to the next. */
static struct wire wire_of(const struct net *net, unsigned n, unsigned i, double bytes)
{
    unsigned numbers = count(net->ranks), most = net->ranks[numbers - 1];
    struct wire w = {LATENCY_US, RATE};
    double grown = exp(log(net->factor) * log(n / 2.0) / log(most / 2.0));
    bool slow = (net->wrong == ONE_WIRE && n == most && i == n - 1) ||
                (net->wrong == LAST_RANKS && n == most) ||
                (net->wrong == MIDDLE_RANKS && n == net->ranks[numbers / 2]) ||
                (net->wrong == LARGE_SIZES && bytes >= 1 << 24);

    if (slow)
        w.rate /= net->factor;
    if ((slow && net->wrong != ONE_WIRE && net->wrong != LARGE_SIZES) ||
        (net->wrong == SMALL_SIZES && bytes <= 4096))
        w.us *= net->factor;
    if (net->wrong == RATE_FALLS)
        w.rate /= grown;
    if (net->wrong == LATENCY_GROWS)
        w.us *= grown;
    return w;
}

/* Each rank sends a block on and gets one from before; its step is over when both are. */
static double ring_us(const struct net *net, unsigned n, double bytes)
{
    double ready[RANKS_MAX] = {0}, next[RANKS_MAX], end = 0;

    for (unsigned step = 0; step < 2 * (n - 1); step++) {
        for (unsigned i = 0; i < n; i++) {
            struct wire in = wire_of(net, n, (i + n - 1) % n, bytes),
                        out = wire_of(net, n, i, bytes);
            double came = ready[(i + n - 1) % n] + in.us + bytes / n / in.rate;
            double gone = ready[i] + out.us + bytes / n / out.rate;
            next[i] = fmax(came, gone);
        }
        memcpy(ready, next, sizeof(ready));
    }
    for (unsigned i = 0; i < n; i++)
        end = fmax(end, ready[i]);
    return end;
}

/* Ranks exchange their whole vectors with one partner after another. */
static double exchange_us(unsigned n, double bytes)
{
    double us = 0;

    for (unsigned partners = 1; partners < n; partners *= 2)
        us += LATENCY_US + bytes / RATE;
    return us;
}

static size_t time_all(const struct net *net, uint64_t first, struct fit_point *points)
{
    size_t n = 0;

    for (unsigned i = 0; net->ranks[i]; i++)
        for (uint64_t bytes = first; bytes <= 1 << 28; bytes *= 16)
            points[n++] = (struct fit_point){net->ranks[i], (double)bytes,
                                             ring_us(net, net->ranks[i], (double)bytes)};
    return n;
}

static void measure(const struct fit_point *times, size_t n, double noise, struct rng *rng,
                    struct fit_point *points)
{
    for (size_t i = 0; i < n; i++) {
        points[i] = times[i];
        points[i].time_us *= exp(noise * rng_normal(rng));
    }
}

static struct fit make(const struct fit_point *points, size_t n)
{
    struct fit fit;

    assert_int_equal(fit_make(&ring, points, n, NULL, NULL, &fit), 0);
    return fit;
}

/* How many of so many fits are refused, have no intervals, or are believed. */
struct verdicts {
    unsigned refused, without, believed;
};

static struct verdicts judge(const struct net *net, double noise, unsigned seeds)
{
    struct verdicts v = {0};
    struct fit_point times[POINTS], points[POINTS];
    size_t n = time_all(net, 64, times);
    struct rng rng;

    for (unsigned seed = 0; seed < seeds; seed++) {
        rng_seed(&rng, seed);
        measure(times, n, noise, &rng, points);
        if (net->wrong == SOUND) /* one point of a heavy tail */
            points[seed % n].time_us *= 1.15;
        struct fit fit = make(points, n);
        v.refused += !fit_describes(&fit);
        v.without += fit_describes(&fit) && fit.group.n;
        v.believed += fit_describes(&fit) && !fit.group.n;
    }
    return v;
}

static void check_wrong(enum wrong wrong, double factor, const unsigned *ranks, unsigned most)
{
    struct net net = {wrong, factor, ranks};
    struct verdicts v = judge(&net, 0.05, TRIED);

    print_message("%s, %g times, 2 to %u ranks: %u refused, %u without intervals, %u believed\n",
                  wrongs[wrong], factor, ranks[count(ranks) - 1], v.refused, v.without, v.believed);
    if (v.believed > most)
        fail_msg("%s, %g times: %u of %u are believed", wrongs[wrong], factor, v.believed, TRIED);
    if (factor >= 5)
        assert_int_equal(v.refused, TRIED);
}

/* Five times off is refused, always; what is half as fast is not believed. */
static void test_wrong_models_are_not_believed(void **state)
{
    (void)state;
    for (int wrong = SOUND + 1; wrong < WRONGS; wrong++) {
        check_wrong(wrong, 5, two, 0);
        check_wrong(wrong, 5, three, 0);
        check_wrong(wrong, 5, five, 0);
        check_wrong(wrong, 2, three, 0);
        check_wrong(wrong, 2, five, 0);
        check_wrong(wrong, 1.5, three, TRIED / 33);
        check_wrong(wrong, 1.5, five, TRIED / 33);
    }
}

/* Small vectors by another algorithm than large ones. */
static void test_two_algorithms_are_no_model(void **state)
{
    struct net net = {SOUND, 1, five};
    struct fit_point times[POINTS], points[POINTS];
    size_t n = time_all(&net, 64, times);
    struct rng rng;

    (void)state;
    for (size_t i = 0; i < n; i++)
        if (times[i].bytes < 65536)
            times[i].time_us = exchange_us((unsigned)times[i].ranks, times[i].bytes);
    for (unsigned seed = 0; seed < TRIED; seed++) {
        rng_seed(&rng, seed);
        measure(times, n, 0.05, &rng, points);
        struct fit fit = make(points, n);
        assert_false(fit_describes(&fit));
    }
}

/* Of 32 ranks one wire is 5 times as slow: who looks at large vectors of them must be told. */
static void test_the_farthest_point_is_named(void **state)
{
    struct net net = {ONE_WIRE, 5, five}, sound = {SOUND, 1, five};
    struct fit_point points[POINTS];
    size_t n = time_all(&net, 64, points);
    struct fit fit = make(points, n);

    (void)state;
    assert_false(fit_describes(&fit));
    assert_true(fit.farthest.n == 1 && fit.farthest.ranks == 32 && fit.farthest.bytes >= 1 << 20);
    assert_true(fit.farthest.ratio > 3 && fit.farthest.ratio < 5);
    /* and one that is too fast */
    n = time_all(&sound, 64, points);
    for (size_t i = 0; i < n; i++)
        if (points[i].ranks == 8 && points[i].bytes == 1 << 18)
            points[i].time_us /= 5;
    fit = make(points, n);
    assert_false(fit_describes(&fit));
    assert_true(fit.farthest.ranks == 8 && fit.farthest.bytes == 1 << 18);
    assert_true(fit.farthest.ratio < 0.25);
}

static void test_honest_noise_is_not_refused(void **state)
{
    static const unsigned *const all[] = {two, three, five};

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct net net = {SOUND, 1, all[i]};
        struct verdicts v = judge(&net, 0.05, 2000);
        print_message(
            "sound, noise of 5 %% and one point of 15 %%, %u numbers of ranks: %u of 2000 "
            "refused, %u without intervals\n",
            count(all[i]), v.refused, v.without);
        assert_int_equal(v.refused, 0);
        assert_true(v.without <= 40); /* CHANCE, of two tests */
    }
}

/* --- intervals --- */

struct hits {
    unsigned of, a, b, next; /* in how many is the truth, and one more measurement, inside? */
};

static bool up_to(const struct fit_point *p, const void *arg)
{
    return p->ranks <= *(const double *)arg;
}

/* From all but the most ranks; the next measurement is of those. */
static struct hits cover(const struct net *net, double noise, unsigned seeds)
{
    const unsigned numbers = count(net->ranks);
    double fitted = net->ranks[numbers - 2];
    struct fit_point times[POINTS], points[POINTS];
    size_t n = time_all(net, 64, times);
    struct hits h = {0};
    struct fit fit;
    struct rng rng;

    for (unsigned seed = 0; seed < seeds; seed++) {
        rng_seed(&rng, seed);
        measure(times, n, noise, &rng, points);
        size_t last = n - 1 - seed % 5;
        assert_int_equal(fit_make(&ring, points, n, up_to, &fitted, &fit), 0);
        struct fit_prediction p = fit_predict(&fit, points[last].ranks, points[last].bytes);
        if (fit.group.n) {
            assert_true(isnan(fit.low_us) && isnan(p.low_us) && !isnan(p.time_us));
            continue;
        }
        h.of++;
        h.a += fit.low_us <= LATENCY_US && LATENCY_US <= fit.high_us;
        h.b += fit.b_low_us <= 1 / RATE && 1 / RATE <= fit.b_high_us;
        h.next += p.low_us <= points[last].time_us && points[last].time_us <= p.high_us;
    }
    return h;
}

static void assert_share(unsigned hits, unsigned of, double low, double high)
{
    double share = (double)hits / of;

    if (!sanitized() && (share < low || share > high))
        fail_msg("%u of %u are %.3f, not %g to %g", hits, of, share, low, high);
}

/* 95 % of 3000: their standard error is 0.4 %. */
static void test_intervals_hold_what_they_say(void **state)
{
    static const unsigned *const all[] = {three, five};
    static const double noises[] = {0.01, 0.05, 0.15};

    (void)state;
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 3; k++) {
            struct net net = {SOUND, 1, all[i]};
            struct hits h = cover(&net, noises[k], sanitized() ? 60 : 3000);
            print_message("noise of %g, %u numbers of ranks: of %u intervals %.3f hold a, %.3f b, "
                          "%.3f the next measurement of more ranks\n",
                          noises[k], count(all[i]) - 1, h.of, (double)h.a / h.of,
                          (double)h.b / h.of, (double)h.next / h.of);
            assert_true(sanitized() || h.of >= 2900);
            assert_share(h.a, h.of, 0.935, 0.97);
            assert_share(h.b, h.of, 0.935, 0.97);
            assert_share(h.next, h.of, 0.935, 0.97);
        }
}

/* Where bytes hide the messages: what a may be is in b's interval. */
static void test_what_is_not_seen_is_bounded(void **state)
{
    struct net net = {SOUND, 1, three};
    unsigned hits = 0, a = 0, unseen = 0, of = 0;
    struct fit_point times[POINTS], points[POINTS];
    size_t n = time_all(&net, 1 << 24, times);
    struct rng rng;

    (void)state;
    for (unsigned seed = 0; seed < (sanitized() ? 100 : 2000); seed++) {
        rng_seed(&rng, seed);
        measure(times, n, 0.05, &rng, points);
        struct fit fit = make(points, n);
        if (fit.group.n)
            continue;
        of++;
        unseen += fit.without_a;
        a += fit.low_us <= LATENCY_US && LATENCY_US <= fit.high_us;
        hits += fit.b_low_us <= 1 / RATE && 1 / RATE <= fit.b_high_us;
    }
    print_message("of %u, a is not seen in %u; its interval holds it in %u, b's in %u\n", of,
                  unseen, a, hits);
    assert_true(unseen > 0);
    assert_share(a, of, 0.935, 1);
    assert_share(hits, of, 0.935, 1);
}

/* No a and b near the fit leave less. */
static void test_it_is_the_least(void **state)
{
    struct net net = {SOUND, 1, three};
    struct fit_point times[POINTS], points[POINTS];
    size_t n = time_all(&net, 64, times);
    struct rng rng;

    (void)state;
    rng_seed(&rng, 5);
    measure(times, n, 0.2, &rng, points);
    struct fit fit = make(points, n);
    double least = HUGE_VAL, found = 0;
    for (int i = -20; i <= 20; i++)
        for (int k = -20; k <= 20; k++) {
            double squares = 0;
            for (size_t j = 0; j < n; j++) {
                double r = points[j].ranks,
                       us = 2 * (r - 1) * fit.a_us * (1 + i * 0.005) +
                            2 * (r - 1) / r * points[j].bytes * fit.b_us * (1 + k * 0.005);
                squares += pow(log(points[j].time_us / us), 2);
            }
            least = fmin(least, squares);
            found = i || k ? found : squares;
        }
    assert_true(found <= least * (1 + 1e-12));
    assert_true(fabs(fit.spread - sqrt(found / (double)(n - 2))) < 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_models_are_not_believed),
        cmocka_unit_test(test_two_algorithms_are_no_model),
        cmocka_unit_test(test_the_farthest_point_is_named),
        cmocka_unit_test(test_honest_noise_is_not_refused),
        cmocka_unit_test(test_intervals_hold_what_they_say),
        cmocka_unit_test(test_what_is_not_seen_is_bounded),
        cmocka_unit_test(test_it_is_the_least),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
