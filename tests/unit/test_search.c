/* SPDX-License-Identifier: Apache-2.0 */
/* Searches for the fastest of several ways, by clocks of their own: who wins, how many runs that
 * takes, and which do not count. */
#include <sys/syscall.h>
#include <time.h>

#include "core/hw/host_kernels.h"
#include "core/search.h"
#include "tests/unit/unit.h"

#define WAYS 6

/* Ways with a rate each, over `bytes` a pass; the first `disturbed` runs of each, and all from run number
 * `tired` on, take three times as long; so do all but each `every`th. */
struct track {
    double bytes, gbps[WAYS];
    int disturbed[WAYS], tired[WAYS], every;
    int runs[WAYS];
    uint64_t passes[WAYS], longest[WAYS];
};

static double go(void *arg, unsigned way, uint64_t passes, uint64_t *ns)
{
    struct track *t = arg;

    assert_in_range(way, 0, WAYS - 1);
    if (!(t->gbps[way] > 0))
        return 0;
    *ns = (uint64_t)(t->bytes * (double)passes / t->gbps[way]);
    int run = t->runs[way]++;
    if (run < t->disturbed[way] || (t->tired[way] && run >= t->tired[way]) ||
        (t->every && (run + 1) % t->every))
        *ns *= 3;
    t->passes[way] += passes;
    t->longest[way] = passes > t->longest[way] ? passes : t->longest[way];
    return t->bytes;
}

static int go_once(void *arg, unsigned way, uint64_t passes, struct search_run *run)
{
    double bytes = go(arg, way, passes, &run->ns);

    run->cost = (double)run->ns / (bytes * (double)passes);
    return bytes > 0 ? 0 : -EOPNOTSUPP;
}

static double peak_of(struct track *t, unsigned ways, unsigned *best)
{
    const struct search search = {.policy = &search_peak, .n = ways, .run = go_once, .arg = t};
    struct search_result result;
    int err = search_run(&search, &result);

    assert_true(err == 0 || err == -EOPNOTSUPP);
    *best = result.best;
    return err ? 0 : 1 / result.cost;
}

/* Over a gigabyte: once for the hopeless, twice for who is behind, three times for the foremost two. A disturbed first run costs the best one its place only
 * where another one then has more than twice its rate. A best run alone is not believed: another one comes near it, or there were eight. */
TEST(test_long_runs_are_few)
{
    static const struct {
        struct track t;
        unsigned ways, best;
        double gbps;
        int runs[WAYS]; /* 0: any number */
    } cases[] = {
        {{.gbps = {4, 9, 20, 4.5, 19, 15}}, WAYS, 2, 20, {1, 1, 3, 1, 3, 2}},
        {{.gbps = {10, 10.5, 11, 12, 10, 10}, .disturbed = {1, 1, 1, 1, 1, 1}}, WAYS, 3, 12, {0}},
        {{.gbps = {15, 16, 14.9, 9, 9, 9}, .disturbed = {0, 1, 0, 0, 0, 0}}, WAYS, 0, 15, {0, 1}},
        {{.gbps = {10, 9, 8, 7, 6, 5}, .tired = {2, 2, 2, 2, 2, 2}}, WAYS, 0, 10, {0}},
        {{.gbps = {9, 20}, .disturbed = {1}}, 1, 0, 9, {3}},
        {{.gbps = {9}, .every = 3}, 1, 0, 9, {6}},
        {{.gbps = {9}, .tired = {1}}, 1, 0, 9, {8}},
        {{.gbps = {5, 20, 5, 5, 5, 5}, .tired = {0, 1}}, WAYS, 1, 20, {1, 8, 1, 1, 1, 1}},
        {{.gbps = {0, 3, 0, 2, 0, 0}}, WAYS, 1, 3, {0}}, /* those that cannot */
        {{.gbps = {0}}, WAYS, 0, 0, {0}},
        {{.gbps = {9}}, 0, 0, 0, {0}}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct track t = cases[i].t;
        unsigned best = 99;

        t.bytes = 1e9;
        double gbps = peak_of(&t, cases[i].ways, &best);
        if (fabs(gbps - cases[i].gbps) >= 0.01 || (gbps > 0 && best != cases[i].best))
            fail_msg("case %zu: %g GB/s by %u", i, gbps, best);
        for (int k = 0; k < WAYS; k++)
            if (cases[i].runs[k] && t.runs[k] != cases[i].runs[k])
                fail_msg("case %zu: %d runs of way %d", i, t.runs[k], k);
    }
}

/* Over a small cache: passes are added until a run is long against its start, and there are many. */
TEST(test_short_runs_are_many)
{
    struct track t = {.bytes = 16384, .gbps = {100, 200, 90, 95, 80, 70}};
    unsigned best = 99;
    double gbps = peak_of(&t, WAYS, &best);
    assert_int_equal(best, 1);
    assert_true(gbps > 195 && gbps < 205);
    for (int i = 0; i < WAYS; i++) {
        assert_true(16384.0 * (double)t.longest[i] / t.gbps[i] >= 500000);
        assert_true(16384.0 * (double)t.passes[i] / t.gbps[i] >= 2000000);
    }
    assert_true(16384.0 * (double)t.passes[1] / 200 >= 20000000);
}

#define RUNNERS_MAX 64

struct runners {
    double ns[RUNNERS_MAX]; /* 0: cannot */
    double drift;           /* of the clock: each time costs so much more than the one before */
    double noise;           /* every other time of everyone is so much slower */
    unsigned lucky;         /* 8 % faster the first time; 0: nobody */
    uint64_t clock_ns;
    unsigned times[RUNNERS_MAX], all;
    unsigned fail_at;
};

static int time_of(void *arg, unsigned i, uint64_t passes, struct search_run *run)
{
    struct runners *r = arg;

    assert_int_equal(passes, 1);
    r->all++;
    if (r->fail_at && r->all == r->fail_at)
        return -EIO;
    if (r->ns[i] == 0)
        return -EOPNOTSUPP;
    double ns = r->ns[i] * (1 + r->drift * r->all) * (r->times[i]++ % 2 ? 1 + r->noise : 1);
    if (r->lucky && i == r->lucky && r->times[i] == 1)
        ns *= 0.92;
    r->clock_ns += (uint64_t)ns;
    *run = (struct search_run){.cost = ns, .ns = (uint64_t)ns};
    return 0;
}

static uint64_t runners_now(void *arg)
{
    return ((struct runners *)arg)->clock_ns;
}

static int contest(struct runners *r, unsigned n, struct search_result *result)
{
    const struct search c = {.policy = &search_contest,
                             .n = n,
                             .run = time_of,
                             .now_ns = runners_now,
                             .arg = r,
                             .budget_ns = 2000000000};

    return search_run(&c, result);
}

/* A clock that gets faster favours whoever comes last, unless they take turns; one lucky time favours nobody; a tie goes to the first. */
TEST(the_fastest_wins)
{
    static const struct {
        struct runners r;
        unsigned n, best, tried;
        double gap; /* to the first one; NaN: it cannot */
    } cases[] = {{{.ns = {1e6, 1.2e6, 0.92e6, 0.99e6, 3e6}}, 5, 2, 5, 1 / 0.92 - 1},
                 {{.ns = {1e6, 0.997e6}}, 2, 0, 2, 0},
                 {{.ns = {1e6, 0.993e6}}, 2, 1, 2, 1 / 0.993 - 1},
                 {{.ns = {1e6, 1e6, 1e6, 1e6, 1e6, 1e6, 1e6, 1e6}, .drift = -0.001}, 8, 0, 8, 0},
                 {{.ns = {1e6, 1e6, 1e6}, .lucky = 2}, 3, 0, 3, 0},
                 {{.ns = {1e6, 0.98e6, 1e6, 0.985e6}, .noise = 0.05}, 4, 1, 4, 1 / 0.98 - 1},
                 {{.ns = {1e6, 0, 0.9e6}}, 3, 2, 2, 1 / 0.9 - 1},
                 {{.ns = {0, 1e6, 0.9e6}}, 3, 2, 2, NAN},
                 {{.ns = {5e9, 4e9}}, 2, 0, 1, 0}}; /* number 0 alone was timed */
    struct runners broken = {.ns = {1e6, 1e6}, .fail_at = 2}, none = {.drift = 0};
    struct search_result c;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct runners r = cases[i].r;

        assert_int_equal(contest(&r, cases[i].n, &c), 0);
        if (c.best != cases[i].best || c.tried != cases[i].tried ||
            isnan(c.gap) != isnan(cases[i].gap) ||
            fabs(c.gap - cases[i].gap) >= (r.noise > 0 ? 0.001 : 1e-6))
            fail_msg("case %zu: %u of %u, gap %g", i, c.best, c.tried, c.gap);
        if (i == 0) /* the first always to the end: the gap is to it; who is 20 % behind once */
            assert_true(r.times[2] == SEARCH_MEDIAN_RUNS && r.times[0] == SEARCH_MEDIAN_RUNS &&
                        r.times[1] == 1 && r.times[4] == 1);
    }
    assert_int_equal(contest(&none, 2, &c), -EOPNOTSUPP);
    assert_int_equal(contest(&broken, 2, &c), -EIO);
}

TEST(time_is_bounded)
{
    struct runners r = {.drift = 0};
    struct search_result c;
    for (unsigned i = 0; i < 32; i++)
        r.ns[i] = i == 3 ? 90e6 : 100e6;
    assert_int_equal(contest(&r, 32, &c), 0);
    assert_int_equal(c.best, 3);
    assert_int_equal(c.tried, 11); /* half of the time for the first round */
    assert_true(r.times[3] >= 4 && r.times[0] == r.times[3] && r.clock_ns < 2600000000);
}

static const double *rates;

static bool next_rate(void *arg, unsigned i, const struct search_result *so_far)
{
    (void)arg;
    for (unsigned k = 0; k < i; k++)
        assert_true(rates[k] < 0 || so_far->cost <= 1 / rates[k]);
    return rates[i] != 0;
}

/* A rate below 0: this way cannot. */
static int take_rate(void *arg, unsigned i, uint64_t passes, struct search_run *run)
{
    (void)arg;
    assert_int_equal(passes, 1);
    *run = (struct search_run){.cost = 1 / rates[i]};
    return rates[i] < 0 ? -EOPNOTSUPP : 0;
}

static struct search_result walk(const double *of, unsigned most)
{
    static const struct search_policy policy = {.gain = 0.1, .patience = 2};
    const struct search search = {
        .policy = &policy, .n = most, .run = take_rate, .next = next_rate};
    struct search_result result;

    rates = of;
    assert_int_equal(search_run(&search, &result), 0);
    return result;
}

TEST(a_walk_ends_without_gain)
{
    static const struct {
        double rates[7];
        unsigned most, tried, best, refused;
        enum search_stop stop;
    } cases[] = {{{1, 2, 2.1, 2.15, 9}, 99, 4, 3, 0, SEARCH_NO_GAIN},
                 {{1, 1.06, 1.12, 1.18, 1.24}, 99, 5, 4, 0, SEARCH_EXHAUSTED}, /* two make a gain */
                 {{1, -5, -5, -5, 2},
                  99,
                  2,
                  4,
                  3,
                  SEARCH_EXHAUSTED}, /* who cannot is no way without a gain */
                 {{1, 2, 4, 8}, 3, 3, 2, 0, SEARCH_EXHAUSTED}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct search_result r = walk(cases[i].rates, cases[i].most);
        if (r.stop != cases[i].stop || r.tried != cases[i].tried || r.best != cases[i].best ||
            r.refused != cases[i].refused)
            fail_msg("case %zu: %u of %u, stop %d", i, r.best, r.tried, (int)r.stop);
        assert_true(fabs(r.cost * cases[i].rates[r.best] - 1) < 1e-9);
    }
}

/* Where most runs are disturbed, the winner is known, and it is known that they were. */
TEST(test_steady)
{
    struct track calm = {.bytes = 1e9, .gbps = {10, 12, 11}},
                 first = {.bytes = 1e9, .gbps = {10, 12, 11}, .disturbed = {1, 1, 1}},
                 rough = {.bytes = 1e9, .gbps = {10, 12, 11}, .every = 4};
    struct track *tracks[] = {&calm, &first, &rough};
    for (int policy = 0; policy < 2; policy++)
        for (int i = 0; i < 3; i++) {
            struct search_result found;
            const struct search search = {.policy = policy ? &search_halving : &search_contest,
                                          .n = 3,
                                          .run = go_once,
                                          .arg = tracks[i]};
            memset(tracks[i]->runs, 0, sizeof(tracks[i]->runs));
            assert_int_equal(search_run(&search, &found), 0);
            assert_int_equal(found.stop, SEARCH_DECIDED);
            assert_int_equal(found.steady, tracks[i] != &rough);
        }
}

static int still; /* so many readings of the clock are all the same */

/* In place of libc's, for all that is linked here. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
    if (still > 0) {
        still--;
        *t = (struct timespec){.tv_sec = 1};
        return 0;
    }
    return (int)syscall(SYS_clock_gettime, clock, t);
}

TEST(test_a_copy_that_takes_no_time)
{
    _Alignas(64) static char src[4096], dst[4096];
    still = 10; /* five runs */
    double gbps = copy_ceiling(dst, src, sizeof(src));
    assert_int_equal(still, 0);
    if (!isfinite(gbps) || !(gbps > 0))
        fail_msg("%g GB/s", gbps);
}
