/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is the latency-bandwidth model believed where it should be, and only there? Times are those of rings that are stepped through, message by message, each wire
 * with a latency and a rate of its own: no formula of the model is in them.
 */
#include "core/rng.h"
#include "harness/report/scaling.h"
#include "tests/unit/unit.h"

#define LATENCY_US 25.0
#define RATE       1200.0 /* bytes a us */
#define RANKS_MAX  32
#define POINTS     64
#define TRIED      20 /* series of each kind */

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
struct wire {
    double us, rate;
};

struct net {
    enum wrong wrong;
    double factor;
    const unsigned *ranks;
};

/* From rank i to the next. */
static struct wire wire_of(const struct net *net, unsigned n, unsigned i, double bytes)
{
    static const struct wire whole = {LATENCY_US, RATE};
    unsigned most = net->ranks == two     ? 4
                    : net->ranks == three ? 8
                                          : 32,
             middle = most == 32 ? 8 : 4;
    double by = net->factor, grown = exp(log(by) * log(n / 2.0) / log(most / 2.0));

    switch (net->wrong) {
    case ONE_WIRE:
        return (struct wire){LATENCY_US, n == most && i == n - 1 ? RATE / by : RATE};
    case LAST_RANKS:
        return n == most ? (struct wire){LATENCY_US * by, RATE / by} : whole;
    case MIDDLE_RANKS:
        return n == middle ? (struct wire){LATENCY_US * by, RATE / by} : whole;
    case SMALL_SIZES:
        return (struct wire){bytes <= 4096 ? LATENCY_US * by : LATENCY_US, RATE};
    case LARGE_SIZES:
        return (struct wire){LATENCY_US, bytes >= 1 << 24 ? RATE / by : RATE};
    case RATE_FALLS:
        return (struct wire){LATENCY_US, RATE / grown};
    case LATENCY_GROWS:
        return (struct wire){LATENCY_US * grown, RATE};
    default:
        return whole;
    }
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

/* How many of 20 series with noise of 5 % are refused, and how many believed; of a sound net one point is 15 % off as well. */
static void judge(const struct net *net, unsigned *refused, unsigned *believed)
{
    struct fit_point times[POINTS], points[POINTS];
    size_t n = time_all(net, 64, times);
    struct rng rng;

    *refused = *believed = 0;
    for (unsigned seed = 0; seed < TRIED; seed++) {
        rng_seed(&rng, seed);
        measure(times, n, 0.05, &rng, points);
        if (net->wrong == SOUND)
            points[seed % n].time_us *= 1.15;
        struct fit fit = make(points, n);
        *refused += !fit_describes(&fit);
        *believed += fit_describes(&fit) && !fit.group.n;
    }
}

TEST(test_only_sound_models_are_believed)
{
    static const struct {
        double factor;
        const unsigned *ranks;
        unsigned most; /* that may be believed */
    } cases[] = {{5, two, 0}, {5, three, 0}, {5, five, 0}, {2, three, 0}, {1.5, five, 1}};
    unsigned refused, believed;
    for (int wrong = SOUND; wrong < WRONGS; wrong++)
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
            struct net net = {wrong, cases[i].factor, cases[i].ranks};
            judge(&net, &refused, &believed);
            if (wrong == SOUND ? refused || believed < TRIED - 1
                               : believed > cases[i].most || (net.factor >= 5 && refused < TRIED))
                fail_msg("wrong %d, case %zu: %u are believed, %u refused", wrong, i, believed,
                         refused);
        }
}

/* Of 32 ranks one wire is 5 times as slow; then one point is 5 times too fast. */
TEST(test_the_farthest_point_is_named)
{
    struct net net = {ONE_WIRE, 5, five}, sound = {SOUND, 1, five};
    struct fit_point points[POINTS];
    size_t n = time_all(&net, 64, points);
    struct fit fit = make(points, n);
    assert_false(fit_describes(&fit));
    assert_true(fit.farthest.n == 1 && fit.farthest.ranks == 32 && fit.farthest.bytes >= 1 << 20);
    assert_true(fit.farthest.ratio > 3 && fit.farthest.ratio < 5);
    n = time_all(&sound, 64, points);
    for (size_t i = 0; i < n; i++)
        if (points[i].ranks == 8 && points[i].bytes == 1 << 18)
            points[i].time_us /= 5;
    fit = make(points, n);
    assert_false(fit_describes(&fit));
    assert_true(fit.farthest.ranks == 8 && fit.farthest.bytes == 1 << 18 &&
                fit.farthest.ratio < 0.25);
}

struct hits {
    unsigned of, a, b, next; /* in how many is the truth, and one more measurement, inside? */
};

static bool up_to(const struct fit_point *p, const void *arg)
{
    return p->ranks <= *(const double *)arg;
}

/* From all but the most ranks; the next measurement is of those. */
static struct hits cover(const unsigned *ranks, double fitted, double noise)
{
    struct net net = {SOUND, 1, ranks};
    struct fit_point times[POINTS], points[POINTS];
    size_t n = time_all(&net, 64, times);
    struct hits h = {0};
    struct fit fit;
    struct rng rng;

    for (unsigned seed = 0; seed < 500; seed++) {
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

    if (share < low || share > high)
        fail_msg("%u of %u are %.3f, not %g to %g", hits, of, share, low, high);
}

/* 95 % of 500: their standard error is 1 %. */
TEST(test_intervals_hold_what_they_say)
{
    for (int i = 0; i < 2; i++) {
        struct hits h = cover(i ? five : three, i ? 16 : 4, i ? 0.01 : 0.15);

        assert_true(h.of >= 483);
        assert_share(h.a, h.of, 0.92, 0.98);
        assert_share(h.b, h.of, 0.92, 0.98);
        assert_share(h.next, h.of, 0.92, 0.98);
    }
}

/* Where bytes hide the messages: what a may be is in b's interval. */
TEST(test_what_is_not_seen_is_bounded)
{
    struct net net = {SOUND, 1, three};
    unsigned a = 0, b = 0, unseen = 0, of = 0;
    struct fit_point times[POINTS], points[POINTS];
    size_t n = time_all(&net, 1 << 24, times);
    struct rng rng;
    for (unsigned seed = 0; seed < 100; seed++) {
        rng_seed(&rng, seed);
        measure(times, n, 0.05, &rng, points);
        struct fit fit = make(points, n);
        if (fit.group.n)
            continue;
        of++;
        unseen += fit.without_a;
        a += fit.low_us <= LATENCY_US && LATENCY_US <= fit.high_us;
        b += fit.b_low_us <= 1 / RATE && 1 / RATE <= fit.b_high_us;
    }
    assert_true(unseen > 0 && of > 80);
    assert_share(a, of, 0.9, 1);
    assert_share(b, of, 0.9, 1);
}
