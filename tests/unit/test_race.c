/* SPDX-License-Identifier: Apache-2.0 */
/* Races and the ceiling of copies, by clocks of their own: who wins, how many runs that takes, and which do not count. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "benches/memory/race.h"
#include "core/hw/copy_ceiling.h"

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
    double gbps = race_best(go, &t, WAYS, &best);
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
    assert_true(fabs(race_best(go, &once, WAYS, &best) - 12) < 0.01);
    assert_int_equal(best, 3);
    struct track lost = {
        .bytes = 1e9, .gbps = {15, 16, 14.9, 9, 9, 9}, .disturbed = {0, 1, 0, 0, 0, 0}};
    assert_true(fabs(race_best(go, &lost, WAYS, &best) - 15) < 0.01);
    assert_int_equal(best, 0);
    assert_int_equal(lost.runs[1], 1);
    struct track tired = {.bytes = 1e9, .gbps = {10, 9, 8, 7, 6, 5}, .tired = {2, 2, 2, 2, 2, 2}};
    assert_true(fabs(race_best(go, &tired, WAYS, &best) - 10) < 0.01);
    assert_int_equal(best, 0);
}

/* Over a small cache: passes are added until a run is long against its start, and there are many. */
static void test_short_runs_are_many(void **state)
{
    struct track t = {.bytes = 16384, .gbps = {100, 200, 90, 95, 80, 70}};
    unsigned best = 99;

    (void)state;
    double gbps = race_best(go, &t, WAYS, &best);
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
static double go_by_ticks(void *arg, unsigned way, uint64_t passes, uint64_t *ns)
{
    double bytes = go(arg, way, passes, ns);

    *ns = *ns / 100000 * 100000;
    return bytes;
}

static void test_short_runs_do_not_count(void **state)
{
    struct track t = {.bytes = 600000, .gbps = {10, 9, 8, 7, 6, 5}};
    unsigned best = 99;

    (void)state;
    double gbps = race_best(go_by_ticks, &t, WAYS, &best);
    if (!(gbps >= 10 && gbps <= 12))
        fail_msg("%g GB/s of 10", gbps);
    gbps = race_alone(go_by_ticks, &t, 5);
    if (!(gbps >= 5 && gbps <= 6))
        fail_msg("%g GB/s of 5", gbps);
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
        .bytes = 1e9, .gbps = {4, 9, 20, 4.5, 19, 15}, .disturbed = {0, 1, 0, 0, 0, 0}};

    (void)state;
    assert_true(fabs(race_alone(go, &t, 1) - 9) < 0.01);
    assert_int_equal(t.runs[1], 3);
    assert_int_equal(all_runs(&t), 3);
}

/* A best run alone is not believed: another one comes near it, or there were many. */
static void test_confirmed(void **state)
{
    struct track third = {.bytes = 1e9, .gbps = {9}, .every = 3},
                 first = {.bytes = 1e9, .gbps = {9}, .tired = {1}};

    (void)state;
    assert_true(fabs(race_alone(go, &third, 0) - 9) < 0.01);
    assert_int_equal(third.runs[0], 6);
    assert_true(fabs(race_alone(go, &first, 0) - 9) < 0.01);
    assert_int_equal(first.runs[0], 8);
    struct track race = {.bytes = 1e9, .gbps = {5, 20, 5, 5, 5, 5}, .tired = {0, 1}};
    unsigned best = 99;
    assert_true(fabs(race_best(go, &race, WAYS, &best) - 20) < 0.01);
    assert_int_equal(best, 1);
    assert_int_equal(race.runs[1], 8);
    assert_int_equal(all_runs(&race), 8 + 5);
}

static void test_who_cannot_run(void **state)
{
    struct track t = {.bytes = 1e9, .gbps = {0, 3, 0, 2, 0, 0}};
    unsigned best = 99;

    (void)state;
    assert_true(fabs(race_best(go, &t, WAYS, &best) - 3) < 0.01);
    assert_int_equal(best, 1);
    assert_true(race_best(go, &(struct track){.bytes = 1e9}, WAYS, &best) == 0);
    assert_true(race_best(go, &t, 0, &best) == 0);
    assert_true(race_alone(go, &t, 0) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_runs_are_few),
        cmocka_unit_test(test_disturbed_runs),
        cmocka_unit_test(test_short_runs_are_many),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_short_runs_do_not_count),
        cmocka_unit_test(test_a_copy_that_takes_no_time),
        cmocka_unit_test(test_confirmed),
        cmocka_unit_test(test_who_cannot_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
