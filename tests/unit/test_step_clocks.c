/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous workers of a parameter server, simulated with steps of random lengths: what the server says of staleness and
 * bounds, against counts in the log of the simulation, which know nothing of it. */
#include "benches/step/clocks.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "benches/step/run.h"
#include "benches/step/work.h"
#include "core/rng.h"

#define WORKERS_MOST 6
#define EVENTS_MOST  4096

struct event {
    double at;
    unsigned worker;
    bool pulls; /* else it pushes */
};

struct run {
    unsigned workers;
    double mean[WORKERS_MOST], spread; /* of steps, of each worker */
    uint64_t target, bound;
    bool goes_on; /* from the window before */
    struct event log[EVENTS_MOST];
    unsigned n, n_pushes;
    uint64_t stale[EVENTS_MOST]; /* what the server said of the update at this place of the log */
    double next[WORKERS_MOST];   /* when a worker's step ends; infinite: it waits, or has left */
    bool waits[WORKERS_MOST];
    struct clocks clocks;
    struct rng rng;
};

static void write_down(struct run *r, double at, unsigned worker, bool pulls)
{
    assert_true(r->n < EVENTS_MOST);
    r->log[r->n++] = (struct event){at, worker, pulls};
}

static void go_on(struct run *r, unsigned worker, double at)
{
    r->waits[worker] = false;
    clocks_pull(&r->clocks, worker);
    write_down(r, at, worker, true);
    if (clocks_over(&r->clocks))
        clocks_leave(&r->clocks, worker);
    else
        r->next[worker] = at + r->mean[worker] * (1 + r->spread * rng_double(&r->rng));
}

static void push(struct run *r, unsigned worker)
{
    double at = r->next[worker];

    r->stale[r->n] = clocks_push(&r->clocks, worker);
    write_down(r, at, worker, false);
    r->n_pushes++;
    r->next[worker] = INFINITY;
    r->waits[worker] = true;
    bool moved = true;
    while (moved) {
        moved = false;
        for (unsigned i = 0; i < r->workers; i++)
            if (r->waits[i] && !clocks_must_wait(&r->clocks, i)) {
                go_on(r, i, at);
                moved = true;
            }
    }
}

/* Until nobody works any more. */
static void simulate(struct run *r)
{
    if (r->goes_on)
        clocks_next(&r->clocks);
    else
        clocks_begin(&r->clocks, r->workers, r->target, r->bound);
    for (unsigned i = 0; i < r->workers; i++)
        r->next[i] = r->mean[i] * (1 + r->spread * rng_double(&r->rng));
    for (;;) {
        unsigned first = 0;
        for (unsigned i = 1; i < r->workers; i++)
            first = r->next[i] < r->next[first] ? i : first;
        if (isinf(r->next[first]))
            break;
        push(r, first);
    }
    for (unsigned i = 0; i < r->workers; i++)
        assert_false(r->waits[i]); /* for good */
}

/* Pushes of others between a worker's last pull before this place of the log and the place. */
static unsigned counted(const struct run *r, unsigned place)
{
    unsigned worker = r->log[place].worker, others = 0;

    for (unsigned i = place; i-- > 0;) {
        if (r->log[i].worker == worker && r->log[i].pulls)
            break;
        others += r->log[i].worker != worker && !r->log[i].pulls;
    }
    return others;
}

/* Steps of a worker that have ended before this place. */
static unsigned steps(const struct run *r, unsigned worker, unsigned place)
{
    unsigned n = 0;

    for (unsigned i = 0; i < place; i++)
        n += r->log[i].worker == worker && !r->log[i].pulls;
    return n;
}

static void start(struct run *r, unsigned workers, uint64_t bound, uint64_t seed)
{
    memset(r, 0, sizeof(*r));
    r->workers = workers;
    r->bound = bound;
    r->target = 40 * workers;
    r->spread = .5;
    rng_seed(&r->rng, seed);
    for (unsigned i = 0; i < workers; i++)
        r->mean[i] = 1 + 3 * rng_double(&r->rng);
}

static void test_staleness_is_what_happened_between(void **state)
{
    static struct run r;

    (void)state;
    for (unsigned seed = 0; seed < 40; seed++) {
        start(&r, 2 + seed % 5, seed % 4 ? seed % 4 - 1 : 1000, seed);
        simulate(&r);
        for (unsigned i = 0; i < r.n; i++)
            if (!r.log[i].pulls)
                assert_int_equal(r.stale[i], counted(&r, i));
        assert_true(r.n_pushes >= r.target && r.n_pushes < r.target + r.workers);
    }
}

/* No worker begins a step more than the bound ahead of the slowest, some come so far, and each other pushes 2 bound + 1 times at
 * most between a pull and the push after it. */
static void test_bound(void **state)
{
    static struct run r;

    (void)state;
    for (unsigned bound = 0; bound < 4; bound++) {
        unsigned furthest = 0, stalest = 0, workers = 3 + bound;
        start(&r, workers, bound, bound);
        r.mean[0] = 20; /* all others wait for it */
        simulate(&r);
        double over_at = INFINITY, pushed_at[WORKERS_MOST] = {0};
        for (unsigned i = 0; i < r.n; i++) {
            unsigned least = ~0u, all = 0;
            for (unsigned k = 0; k < workers; k++) {
                unsigned its = steps(&r, k, i);
                least = its < least ? its : least;
                all += its;
            }
            unsigned ahead = steps(&r, r.log[i].worker, i) - least;
            if (r.log[i].pulls && all < r.target)
                furthest = ahead > furthest ? ahead : furthest;
            if (!r.log[i].pulls) {
                pushed_at[r.log[i].worker] = r.log[i].at;
                over_at = all + 1 == r.target ? r.log[i].at : over_at;
            } else if (all >= r.target) { /* nobody waits any more */
                assert_true(r.log[i].at <= fmax(over_at, pushed_at[r.log[i].worker]));
            }
            if (!r.log[i].pulls)
                stalest = r.stale[i] > stalest ? (unsigned)r.stale[i] : stalest;
        }
        assert_int_equal(furthest, bound);
        assert_true(stalest <= (workers - 1) * (2 * bound + 1));
        assert_true(stalest > bound);
    }
}

/* Of workers whose steps take 1, 1 and 2: the slow one has 2 + 2, a fast one 1 + 1/2, and the mean is 2. */
static void test_rates_make_the_staleness(void **state)
{
    static struct run r;
    double sum[3] = {0}, n[3] = {0};

    (void)state;
    start(&r, 3, 1000, 7);
    r.spread = 0;
    r.target = 900;
    r.mean[0] = 1;
    r.mean[1] = 1.0001;
    r.mean[2] = 2.0003;
    simulate(&r);
    for (unsigned i = 0; i < r.n; i++)
        if (!r.log[i].pulls && steps(&r, r.log[i].worker, i)) {
            sum[r.log[i].worker] += (double)r.stale[i];
            n[r.log[i].worker]++;
        }
    assert_float_equal(sum[0] / n[0], 1.5, .02);
    assert_float_equal(sum[1] / n[1], 1.5, .02);
    assert_float_equal(sum[2] / n[2], 4, .02);
    assert_float_equal((sum[0] + sum[1] + sum[2]) / (n[0] + n[1] + n[2]), 2, .02);
}

/* A worker may take many times as long as the others: its steps are in the window, too. With steps of 1, ..., 1 and T, those
 * between its pull and its push are (W - 1) T. */
static void test_window_has_steps_of_the_slowest(void **state)
{
    static const struct {
        unsigned workers;
        double slow;
    } of[] = {{2, 9}, {2, 100}, {6, 30}};
    static struct run r;

    (void)state;
    for (unsigned k = 0; k < sizeof(of) / sizeof(*of); k++) {
        double sum = 0, n = 0;
        start(&r, of[k].workers, 1000, k);
        r.spread = 0;
        r.target = 8 * r.workers;
        for (unsigned i = 0; i < r.workers; i++)
            r.mean[i] = i ? 1 + .001 * i : of[k].slow + .01;
        simulate(&r);
        unsigned its = steps(&r, 0, r.n);
        assert_true(its >= 3);
        for (unsigned i = 0; i < r.n; i++)
            if (!r.log[i].pulls && !r.log[i].worker && steps(&r, 0, i) &&
                steps(&r, 0, i) + 1 < its) {
                sum += (double)r.stale[i];
                n++;
            }
        assert_true(n > 0);
        assert_float_equal(sum / n, (r.workers - 1) * of[k].slow,
                           .02 * (r.workers - 1) * of[k].slow + 1);
    }
}

/* ---- A bound in the long run ---- */

#define LONG 4000

/* Steps of constant length, by recurrence: a worker's step n begins when its last has ended and every other has made n - bound.
 * No server, no windows. */
struct long_run {
    double begin[WORKERS_MOST][LONG], end[WORKERS_MOST][LONG];
};

static void recur(struct long_run *l, const struct run *r)
{
    for (unsigned n = 0; n < LONG; n++)
        for (unsigned i = 0; i < r->workers; i++) {
            double at = n ? l->end[i][n - 1] : 0;
            for (unsigned k = 0; k < r->workers && n > r->bound; k++)
                at = fmax(at, l->end[k][n - 1 - r->bound]);
            l->begin[i][n] = at;
            l->end[i][n] = at + r->mean[i];
        }
}

/* Steps of all in a time unit, late. */
static double late_rate(const struct long_run *l, unsigned workers)
{
    double rate = 0;

    for (unsigned i = 0; i < workers; i++)
        rate += LONG * 0.25 / (l->end[i][LONG * 3 / 4] - l->end[i][LONG / 2]);
    return rate;
}

/* Updates of others between a late step's begin and its end. */
static double late_staleness(const struct long_run *l, unsigned workers, unsigned worker)
{
    double n = 0;

    for (unsigned step = LONG / 2; step < LONG / 2 + 100; step++)
        for (unsigned k = 0; k < workers; k++)
            for (unsigned i = 0; i < LONG && k != worker; i++)
                n += l->end[k][i] > l->begin[worker][step] + 1e-6 &&
                     l->end[k][i] < l->end[worker][step] - 1e-6;
    return n / 100;
}

/* What a worker knows of a window: steps before the one that ends it, and when they had ended. */
struct seen {
    double rate, stale, updates;
};

static struct seen look(const struct run *r, unsigned worker)
{
    struct seen s = {0};
    unsigned mine = steps(r, worker, r->n), n = 0;

    for (unsigned i = 0; i < r->n; i++) {
        if (r->log[i].worker != worker)
            continue;
        if (r->log[i].pulls && n + 1 == mine) /* the last but one goes on here */
            s.rate = n / r->log[i].at;
        if (r->log[i].pulls)
            continue;
        n++;
        if (n == 1 || n == mine)
            continue;
        s.stale += (double)r->stale[i];
        s.updates++;
    }
    return s;
}

/* Windows go on until all go at one pace; what they then say is of the long run. */
static void expect_long_run(unsigned workers, const double *mean, uint64_t bound)
{
    static struct run r;
    static struct long_run l;
    double rate = 0, stale[WORKERS_MOST] = {0}, updates[WORKERS_MOST] = {0};

    start(&r, workers, bound, 1);
    r.spread = 0;
    r.target = 8 * workers;
    memcpy(r.mean, mean, workers * sizeof(*mean));
    recur(&l, &r);
    for (unsigned window = 0; window < 60; window++) {
        r.n = 0;
        simulate(&r);
        r.goes_on = true;
        for (unsigned i = 0; i < workers && window >= 50; i++) {
            struct seen s = look(&r, i);
            rate += s.rate / 10;
            stale[i] += s.stale;
            updates[i] += s.updates;
        }
    }
    assert_float_equal(rate, late_rate(&l, workers), .01 * rate);
    assert_int_equal(clocks_leads(&r.clocks), (workers - 1) * bound);
    for (unsigned i = 0; i < workers; i++)
        if (fabs(stale[i] / updates[i] - late_staleness(&l, workers, i)) > .02)
            fail_msg("bound %d, worker %u: staleness %g, not %g", (int)bound, i,
                     stale[i] / updates[i], late_staleness(&l, workers, i));
}

static void test_bound_in_the_long_run(void **state)
{
    static const uint64_t bounds[] = {0, 1, 3, 20, 100};

    (void)state;
    for (unsigned i = 0; i < sizeof(bounds) / sizeof(*bounds); i++) {
        expect_long_run(2, (const double[]){1, 4}, bounds[i]);
        expect_long_run(2, (const double[]){3.01, 1}, bounds[i]);
        expect_long_run(3, (const double[]){1, 1.3, 3.3}, bounds[i]);
        expect_long_run(4, (const double[]){1.51, 1.1, 5, 1.2}, bounds[i]);
    }
}

/* ---- Leads that grow ---- */

/* Windows until leads have settled, by what the server counts; one more than the most: by what chance does; 0: not. *off: by how much the rate of the window after it,
 * of all workers, is above the one that the slowest allows in the long run. */
static unsigned settles(const double *mean, unsigned workers, uint64_t bound, double spread,
                        uint64_t seed, unsigned most, double *off)
{
    static struct run r;
    struct values_leads leads = {0};
    unsigned settled = 0;
    double slowest = 0;

    start(&r, workers, bound, seed);
    memcpy(r.mean, mean, workers * sizeof(*mean));
    r.spread = spread;
    r.target = STEP_WINDOW * workers;
    for (unsigned i = 0; i < workers; i++)
        slowest = fmax(slowest, mean[i]);
    for (unsigned window = 1; window <= most; window++) {
        double rate = 0;
        r.n = r.n_pushes = 0;
        simulate(&r);
        r.goes_on = true;
        for (unsigned i = 0; i < workers; i++)
            rate += look(&r, i).rate;
        *off = rate / (workers / slowest) - 1;
        if (settled)
            return settled;
        values_leads_add(&leads, (double)clocks_leads(&r.clocks), r.n_pushes);
        if (values_leads_settled(&leads, workers, (double)bound))
            settled = window;
    }
    return values_leads_stayed(&leads, workers) ? most + 1 : 0;
}

/* One of two is 6 % faster: the lead grows by a step in each window, up to the bound. */
static void test_a_slow_growth_is_no_pace(void **state)
{
    double off;

    (void)state;
    assert_int_equal(settles((const double[]){1.06, 1}, 2, 999, 0, 1, 60, &off), 0);
    assert_int_equal(settles((const double[]){1, 1.06, 1.06, 1.03}, 4, 999, 0, 1, 60, &off), 0);
    assert_true(settles((const double[]){1.06, 1}, 2, 20, 0, 1, 60, &off) >= 15);
    assert_true(fabs(off) < .02);
}

/* Workers that are alike have no lead but by chance, and one that is far slower holds all others at the bound. */
static void test_who_goes_at_one_pace_settles(void **state)
{
    double off;

    (void)state;
    for (unsigned seed = 0; seed < 200; seed++) {
        unsigned windows = settles((const double[]){1, 1, 1}, 3, 100, .2, seed, 32, &off);
        assert_true(windows);
        windows = settles((const double[]){4, 1}, 2, 12, .2, seed, 32, &off);
        assert_true(windows && windows < VALUES_WINDOWS);
    }
}

/* Samples after the mark: what grows by 3 % in each is found out in the end, what chance moves is not. */
static void test_growth_of_all_samples(void **state)
{
    struct values_leads l = {.now = 10};
    struct rng rng;
    unsigned lost = 0;

    (void)state;
    assert_true(values_leads_stayed(&l, 2));
    values_leads_add(&l, 50, 16);
    assert_false(values_leads_stayed(&l, 2));
    values_leads_mark(&l);
    for (unsigned i = 1; i <= 40; i++)
        values_leads_add(&l, 50 + floor(.48 * i), 16); /* by 0 or 1 of 16 */
    assert_false(values_leads_stayed(&l, 2));
    for (unsigned seed = 0; seed < 1000; seed++) {
        double lead = 0;
        rng_seed(&rng, seed);
        l = (struct values_leads){0};
        for (unsigned i = 0; i < 40; i++) {
            lead += rng_normal(&rng); /* of 16 steps, each of which varies by a quarter */
            values_leads_add(&l, fabs(round(lead)), 16);
        }
        lost += !values_leads_stayed(&l, 2);
    }
    assert_true(lost < 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_staleness_is_what_happened_between),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_rates_make_the_staleness),
        cmocka_unit_test(test_window_has_steps_of_the_slowest),
        cmocka_unit_test(test_bound_in_the_long_run),
        cmocka_unit_test(test_a_slow_growth_is_no_pace),
        cmocka_unit_test(test_who_goes_at_one_pace_settles),
        cmocka_unit_test(test_growth_of_all_samples),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
