/* SPDX-License-Identifier: Apache-2.0 */
/* Searches for the fastest of several ways, by clocks of their own: who wins, how many runs that
 * takes, and which do not count. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/hw/host_kernels.h"
#include "core/search.h"

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

/* By the least cost of a byte. */
static int go_once(void *arg, unsigned way, uint64_t passes, struct search_run *run)
{
    double bytes = go(arg, way, passes, &run->ns);

    run->cost = (double)run->ns / (bytes * (double)passes);
    return bytes > 0 ? 0 : -EOPNOTSUPP;
}

static double peak_of(int (*run)(void *, unsigned, uint64_t, struct search_run *), struct track *t,
                      unsigned ways, unsigned *best)
{
    const struct search search = {.policy = &search_peak, .n = ways, .run = run, .arg = t};
    struct search_result result;
    int err = search_run(&search, &result);

    assert_true(err == 0 || err == -EOPNOTSUPP);
    *best = result.best;
    return err ? 0 : 1 / result.cost;
}

static int all_runs(const struct track *t)
{
    int n = 0;

    for (int i = 0; i < WAYS; i++)
        n += t->runs[i];
    return n;
}

/* Over a gigabyte: once for the hopeless, twice for who is behind, three times for the foremost two. */
static void test_long_runs_are_few(void **state)
{
    struct track t = {.bytes = 1e9, .gbps = {4, 9, 20, 4.5, 19, 15}};
    const int want[WAYS] = {1, 1, 3, 1, 3, 2};
    unsigned best = 99;

    (void)state;
    double gbps = peak_of(go_once, &t, WAYS, &best);
    assert_int_equal(best, 2);
    assert_true(fabs(gbps - 20) < 0.01);
    for (int i = 0; i < WAYS; i++)
        assert_int_equal(t.runs[i], want[i]);
}

/* A disturbed first run costs the best one its place only where another one then has more than twice its
 * rate: that is what few runs cost. */
static void test_disturbed_runs(void **state)
{
    unsigned best = 99;

    (void)state;
    struct track once = {
        .bytes = 1e9, .gbps = {10, 10.5, 11, 12, 10, 10}, .disturbed = {1, 1, 1, 1, 1, 1}};
    assert_true(fabs(peak_of(go_once, &once, WAYS, &best) - 12) < 0.01);
    assert_int_equal(best, 3);
    struct track lost = {
        .bytes = 1e9, .gbps = {15, 16, 14.9, 9, 9, 9}, .disturbed = {0, 1, 0, 0, 0, 0}};
    assert_true(fabs(peak_of(go_once, &lost, WAYS, &best) - 15) < 0.01);
    assert_int_equal(best, 0);
    assert_int_equal(lost.runs[1], 1);
    struct track tired = {.bytes = 1e9, .gbps = {10, 9, 8, 7, 6, 5}, .tired = {2, 2, 2, 2, 2, 2}};
    assert_true(fabs(peak_of(go_once, &tired, WAYS, &best) - 10) < 0.01);
    assert_int_equal(best, 0);
}

/* Over a small cache: passes are added until a run is long against its start, and there are many. */
static void test_short_runs_are_many(void **state)
{
    struct track t = {.bytes = 16384, .gbps = {100, 200, 90, 95, 80, 70}};
    unsigned best = 99;

    (void)state;
    double gbps = peak_of(go_once, &t, WAYS, &best);
    assert_int_equal(best, 1);
    assert_true(gbps > 195 && gbps < 205);
    for (int i = 0; i < WAYS; i++) {
        assert_true(16384.0 * (double)t.longest[i] / t.gbps[i] >= 500000);
        assert_true(16384.0 * (double)t.passes[i] / t.gbps[i] >= 2000000);
    }
    assert_true(16384.0 * (double)t.passes[1] / 200 >= 20000000);
}

/* By a clock that ticks every 100 us: a pass of 60 us takes no time by it. Runs that are told as 5 ticks lack less
 * than one. */
static int go_by_ticks(void *arg, unsigned way, uint64_t passes, struct search_run *run)
{
    int err = go_once(arg, way, passes, run);
    double bytes = (double)run->ns / run->cost;

    run->ns = run->ns / 100000 * 100000;
    run->cost = (double)run->ns / bytes;
    return err;
}

static void test_short_runs_do_not_count(void **state)
{
    struct track t = {.bytes = 600000, .gbps = {10, 9, 8, 7, 6, 5}};
    unsigned best = 99;

    (void)state;
    double gbps = peak_of(go_by_ticks, &t, WAYS, &best);
    if (!(gbps >= 10 && gbps <= 12))
        fail_msg("%g GB/s of 10", gbps);
    gbps = peak_of(go_by_ticks, &t, 1, &best);
    if (!(gbps >= 10 && gbps <= 12))
        fail_msg("%g GB/s of 10, alone", gbps);
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

static void test_a_copy_that_takes_no_time(void **state)
{
    _Alignas(64) static char src[4096], dst[4096];

    (void)state;
    still = 10; /* five runs */
    double gbps = copy_ceiling(dst, src, sizeof(src));
    assert_int_equal(still, 0);
    if (!isfinite(gbps) || !(gbps > 0))
        fail_msg("%g GB/s", gbps);
}

static void test_alone(void **state)
{
    struct track t = {
        .bytes = 1e9, .gbps = {9, 20, 20, 4.5, 19, 15}, .disturbed = {1, 0, 0, 0, 0, 0}};
    unsigned best;

    (void)state;
    assert_true(fabs(peak_of(go_once, &t, 1, &best) - 9) < 0.01);
    assert_int_equal(t.runs[0], 3);
    assert_int_equal(all_runs(&t), 3);
}

/* A best run alone is not believed: another one comes near it, or there were many. */
static void test_confirmed(void **state)
{
    struct track third = {.bytes = 1e9, .gbps = {9}, .every = 3},
                 first = {.bytes = 1e9, .gbps = {9}, .tired = {1}};

    unsigned best = 99;

    (void)state;
    assert_true(fabs(peak_of(go_once, &third, 1, &best) - 9) < 0.01);
    assert_int_equal(third.runs[0], 6);
    assert_true(fabs(peak_of(go_once, &first, 1, &best) - 9) < 0.01);
    assert_int_equal(first.runs[0], 8);
    struct track race = {.bytes = 1e9, .gbps = {5, 20, 5, 5, 5, 5}, .tired = {0, 1}};
    assert_true(fabs(peak_of(go_once, &race, WAYS, &best) - 20) < 0.01);
    assert_int_equal(best, 1);
    assert_int_equal(race.runs[1], 8);
    assert_int_equal(all_runs(&race), 8 + 5);
}

static void test_who_cannot_run(void **state)
{
    struct track t = {.bytes = 1e9, .gbps = {0, 3, 0, 2, 0, 0}};
    unsigned best = 99;

    (void)state;
    assert_true(fabs(peak_of(go_once, &t, WAYS, &best) - 3) < 0.01);
    assert_int_equal(best, 1);
    assert_true(peak_of(go_once, &(struct track){.bytes = 1e9}, WAYS, &best) == 0);
    assert_true(peak_of(go_once, &t, 0, &best) == 0);
    assert_true(peak_of(go_once, &t, 1, &best) == 0);
}

/* --- a contest ------------------------------------------------------------------------------ */

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

static struct search contest(struct runners *r, unsigned n, uint64_t budget_ns)
{
    return (struct search){.policy = &search_contest,
                           .n = n,
                           .run = time_of,
                           .now_ns = runners_now,
                           .arg = r,
                           .budget_ns = budget_ns};
}

static struct search_result race(struct runners *r, unsigned n, uint64_t budget_ns)
{
    const struct search c = contest(r, n, budget_ns);
    struct search_result result;

    assert_int_equal(search_run(&c, &result), 0);
    return result;
}

static void the_fastest_wins(void **state)
{
    struct runners r = {.ns = {1e6, 1.2e6, 0.92e6, 0.99e6, 3e6}};

    (void)state;
    struct search_result c = race(&r, 5, 2000000000);
    assert_int_equal(c.best, 2);
    assert_int_equal(c.tried, 5);
    assert_true(fabs(c.gap - (1 / 0.92 - 1)) < 1e-6);
    assert_int_equal(r.times[2], SEARCH_MEDIAN_RUNS);
    assert_int_equal(r.times[0], SEARCH_MEDIAN_RUNS); /* always to the end: the gap is to it */
    assert_int_equal(r.times[1], 1);                  /* 20 % behind */
    assert_int_equal(r.times[4], 1);
}

static void a_tie_goes_to_the_first(void **state)
{
    struct runners near = {.ns = {1e6, 0.997e6}}, over = {.ns = {1e6, 0.993e6}};

    (void)state;
    struct search_result c = race(&near, 2, 2000000000);
    assert_int_equal(c.best, 0);
    assert_true(c.gap == 0);
    c = race(&over, 2, 2000000000);
    assert_int_equal(c.best, 1);
}

/* A clock that gets faster by 0.1 % with each time favours whoever comes last, unless they take
 * turns; one lucky time favours nobody. */
static void drift_and_noise_do_not_decide(void **state)
{
    struct runners drift = {.ns = {1e6, 1e6, 1e6, 1e6, 1e6, 1e6, 1e6, 1e6}, .drift = -0.001};
    struct runners lucky = {.ns = {1e6, 1e6, 1e6}, .lucky = 2};
    struct runners noise = {.ns = {1e6, 0.98e6, 1e6, 0.985e6}, .noise = 0.05};

    (void)state;
    struct search_result c = race(&drift, 8, 2000000000);
    assert_int_equal(c.best, 0);
    c = race(&lucky, 3, 2000000000);
    assert_int_equal(c.best, 0);
    c = race(&noise, 4, 2000000000);
    assert_int_equal(c.best, 1);
    assert_true(fabs(c.gap - (1 / 0.98 - 1)) < 0.001);
}

static void time_is_bounded(void **state)
{
    struct runners r = {.drift = 0};

    (void)state;
    for (unsigned i = 0; i < 32; i++)
        r.ns[i] = 100e6;
    r.ns[3] = 90e6;
    struct search_result c = race(&r, 32, 2000000000);
    assert_int_equal(c.best, 3);
    assert_int_equal(c.tried, 11); /* half of the time for the first round */
    assert_true(r.times[3] >= 4 && r.times[0] == r.times[3]);
    assert_true(r.clock_ns < 2600000000);
    struct runners one = {.ns = {5e9, 4e9}};
    c = race(&one, 2, 2000000000);
    assert_int_equal(c.best, 0); /* number 0 alone was timed */
    assert_int_equal(c.tried, 1);
}

static void who_cannot_drops_out(void **state)
{
    struct runners some = {.ns = {1e6, 0, 0.9e6}}, first = {.ns = {0, 1e6, 0.9e6}},
                   none = {.drift = 0};
    struct runners broken = {.ns = {1e6, 1e6}, .fail_at = 2};
    const struct search nobody = contest(&none, 2, 1000000000),
                        lost = contest(&broken, 2, 1000000000);
    struct search_result c;

    (void)state;
    c = race(&some, 3, 2000000000);
    assert_int_equal(c.best, 2);
    assert_int_equal(c.tried, 2);
    c = race(&first, 3, 2000000000);
    assert_int_equal(c.best, 2);
    assert_true(isnan(c.gap));
    assert_int_equal(search_run(&nobody, &c), -EOPNOTSUPP);
    assert_int_equal(search_run(&lost, &c), -EIO);
}

/* --- ways that come one after the other ----------------------------------------------------- */

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

static void a_walk_ends_without_gain(void **state)
{
    (void)state;
    struct search_result r = walk((const double[]){1, 2, 2.1, 2.15, 9, 0}, 99);
    assert_int_equal(r.stop, SEARCH_NO_GAIN);
    assert_int_equal(r.tried, 4);
    assert_int_equal(r.best, 3);
    r = walk((const double[]){1, 1.06, 1.12, 1.18, 1.24, 0}, 99); /* two make a gain */
    assert_int_equal(r.stop, SEARCH_EXHAUSTED);
    assert_int_equal(r.tried, 5);
    assert_true(fabs(1 / r.cost - 1.24) < 1e-9);
    r = walk((const double[]){1, -5, -5, -5, 2, 0}, 99); /* who cannot is no way without a gain */
    assert_int_equal(r.best, 4);
    assert_int_equal(r.tried, 2);
    assert_int_equal(r.refused, 3);
    r = walk((const double[]){1, 2, 4, 8}, 3);
    assert_int_equal(r.stop, SEARCH_EXHAUSTED);
    assert_int_equal(r.best, 2);
}

/* Where most runs are disturbed, the winner is known, and it is known that they were. */
static void test_steady(void **state)
{
    struct track calm = {.bytes = 1e9, .gbps = {10, 12, 11}},
                 first = {.bytes = 1e9, .gbps = {10, 12, 11}, .disturbed = {1, 1, 1}},
                 rough = {.bytes = 1e9, .gbps = {10, 12, 11}, .every = 4};
    struct track *tracks[] = {&calm, &first, &rough};

    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steady),
        cmocka_unit_test(test_long_runs_are_few),
        cmocka_unit_test(test_disturbed_runs),
        cmocka_unit_test(test_short_runs_are_many),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_short_runs_do_not_count),
        cmocka_unit_test(test_a_copy_that_takes_no_time),
        cmocka_unit_test(test_confirmed),
        cmocka_unit_test(test_who_cannot_run),
        cmocka_unit_test(the_fastest_wins),
        cmocka_unit_test(a_tie_goes_to_the_first),
        cmocka_unit_test(drift_and_noise_do_not_decide),
        cmocka_unit_test(time_is_bounded),
        cmocka_unit_test(who_cannot_drops_out),
        cmocka_unit_test(a_walk_ends_without_gain),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
