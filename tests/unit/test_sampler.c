/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler, driven by operations whose times are made up: how it warms up, finds the length of a
 * sample, when it stops and why, and that no sample is lost. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/clock.h"
#include "core/levels.h"
#include "core/rng.h"
#include "core/sampler.h"
#include "core/stats.h"
#include "tests/unit/sanitized.h"

#define TIMES_MAX 100000

/* An operation that takes `op_ns`, give or take; each call is written down. */
struct fake {
    double op_ns;
    double overhead_ns;  /* of a sample, whatever its length */
    double spread;       /* normal noise of a sample, as a share */
    double first_ns;     /* the first call takes so much more */
    unsigned slow_calls; /* so many calls take three times as long: a warm-up */
    double second;       /* the second series' time as a share of the first's */
    unsigned fail_at;    /* call number that fails with -EIO; 0: none */
    unsigned cancel_at;  /* call number at which *cancel is set; 0: none */
    unsigned sleep_us;   /* really taken */
    int cancel;
    struct rng rng;
    unsigned calls;
    uint64_t times[TIMES_MAX], inners[TIMES_MAX], begun_ns[TIMES_MAX], ended_ns[TIMES_MAX];
};

static int take(void *arg, uint64_t inner, uint64_t *ns)
{
    struct fake *f = arg;
    double t = f->op_ns * (double)inner + f->overhead_ns;
    unsigned call = f->calls;

    if (call < TIMES_MAX)
        f->begun_ns[call] = clock_now_ns();
    if (f->spread > 0)
        t *= 1 + f->spread * rng_normal(&f->rng);
    if (f->calls < f->slow_calls)
        t *= 3;
    if (f->calls == 0)
        t += f->first_ns;
    ns[0] = t < 1 ? 1 : (uint64_t)llround(t);
    if (f->second > 0)
        ns[1] = (uint64_t)llround(t * f->second);
    if (f->calls < TIMES_MAX) {
        f->times[f->calls] = ns[0];
        f->inners[f->calls] = inner;
    }
    f->calls++;
    if (f->sleep_us)
        usleep(f->sleep_us);
    if (call < TIMES_MAX)
        f->ended_ns[call] = clock_now_ns();
    if (f->calls == f->cancel_at)
        f->cancel = 1;
    return f->calls == f->fail_at ? -EIO : 0;
}

static struct fake *fake_new(double op_ns, double spread)
{
    struct fake *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    f->op_ns = op_ns;
    f->spread = spread;
    rng_seed(&f->rng, 7);
    return f;
}

static const struct sampler_config usual = {.confidence = 0.95,
                                            .width = 0.01,
                                            .min_samples = STATS_MIN_SAMPLES,
                                            .max_samples = 100000,
                                            .budget_ns = 20000000000,
                                            .warmup_ns = 5000000000};

/* A sample is between the end of the one before it, or the begin of all, and its own end, and those of
 * two samples do not overlap. */
static void check_span(const struct fake *f, const struct samples *s, uint64_t i)
{
    uint64_t call = s->discarded + i, from_ns = i ? s->end_ns[i - 1] : s->begin_ns;

    assert_true(f->begun_ns[call] >= from_ns);
    assert_true(f->ended_ns[call] <= s->end_ns[i]);
    assert_true(call == 0 || i > 0 || f->ended_ns[call - 1] <= s->begin_ns);
}

/* Runs, and checks what must hold however it ended: every call is a kept or a discarded sample, and
 * what is kept is the last n of them, in order, with one length. */
static int run(struct fake *f, const struct sampler_config *c, size_t n_series, struct samples *out)
{
    int err = sampler_run(c, take, f, n_series, out);
    unsigned failed = f->fail_at && f->calls == f->fail_at;

    assert_int_equal(out->n + out->discarded + failed, f->calls);
    for (uint64_t i = 0; i < out->n && f->calls <= TIMES_MAX; i++) {
        assert_true(out->ns[0][i] == (double)f->times[out->discarded + i]);
        assert_int_equal(f->inners[out->discarded + i], out->inner);
        check_span(f, out, i);
    }
    return err;
}

static void finish(struct fake *f, struct samples *out)
{
    samples_release(out);
    assert_null(out->ns[0]);
    free(f);
}

static void check_length(double op_ns, double overhead_ns, uint64_t wanted_ns)
{
    struct fake *f = fake_new(op_ns, 0);
    struct sampler_config c = usual;
    struct samples s;

    f->overhead_ns = overhead_ns;
    c.sample_ns = wanted_ns;
    assert_int_equal(run(f, &c, 1, &s), 0);
    double length = op_ns * (double)s.inner + overhead_ns;
    if (length < (double)wanted_ns || (length > 2 * (double)wanted_ns && s.inner > 1))
        fail_msg("operations of %g + %g ns: %llu of them take %g ns", op_ns, overhead_ns,
                 (unsigned long long)s.inner, length);
    finish(f, &s);
}

static void test_samples_get_the_wanted_length(void **state)
{
    (void)state;
    check_length(1, 0, 1000000);
    check_length(0.01, 0, 1000000); /* below the clock's step */
    check_length(900, 100, 1000000);
    check_length(10, 200000, 1000000); /* most of a short sample is overhead */
    check_length(999999, 0, 1000000);
    check_length(1000000, 0, 1000000);
}

static void test_long_operations_are_done_once(void **state)
{
    struct fake *f = fake_new(5000000, 0);
    struct sampler_config c = usual;
    struct samples s;

    (void)state;
    c.sample_ns = 1000000;
    assert_int_equal(run(f, &c, 1, &s), 0);
    assert_int_equal(s.inner, 1);
    finish(f, &s);
}

static void test_latency_keeps_one_operation(void **state)
{
    struct fake *f = fake_new(20, 0);
    struct samples s;

    (void)state;
    assert_int_equal(run(f, &usual, 1, &s), 0); /* sample_ns is 0 */
    assert_int_equal(s.inner, 1);
    finish(f, &s);
}

/* The first operation compiles a kernel, touches pages: its time says nothing of the others. */
static void test_cold_first_operation_does_not_mislead(void **state)
{
    struct fake *f = fake_new(1000, 0);
    struct sampler_config c = usual;
    struct samples s;

    (void)state;
    f->first_ns = 30e6;
    c.sample_ns = 1000000;
    assert_int_equal(run(f, &c, 1, &s), 0);
    assert_true(s.inner >= 1000);
    finish(f, &s);
}

static void test_inner_is_bounded(void **state)
{
    struct fake *f = fake_new(1, 0);
    struct sampler_config c = usual;
    struct samples s;

    (void)state;
    c.sample_ns = 1000000;
    c.max_inner = 100;
    assert_int_equal(run(f, &c, 1, &s), 0);
    assert_int_equal(s.inner, 100);
    finish(f, &s);
}

static void test_converges(void **state)
{
    struct fake *f = fake_new(100000, 0.01);
    struct samples s;
    struct median_ci ci;

    (void)state;
    assert_int_equal(run(f, &usual, 1, &s), 0);
    assert_int_equal(s.stop, SAMPLER_CONVERGED);
    assert_true(s.steady);
    assert_true(s.n >= STATS_MIN_SAMPLES && s.n < 1000);
    assert_int_equal(stats_ci_median(s.ns[0], s.n, 0.95, &ci), 0);
    assert_true(fmax(ci.high - ci.median, ci.median - ci.low) <= 0.01 * ci.median);
    finish(f, &s);
}

static void test_narrower_takes_more(void **state)
{
    struct sampler_config c = usual;
    uint64_t n[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct fake *f = fake_new(100000, 0.05);
        struct samples s;
        c.width = i ? 0.0025 : 0.01;
        assert_int_equal(run(f, &c, 1, &s), 0);
        assert_int_equal(s.stop, SAMPLER_CONVERGED);
        n[i] = s.n;
        finish(f, &s);
    }
    assert_true(n[1] > 4 * n[0]); /* a quarter of the width: about 16 times as many */
}

static void test_at_least_the_minimum(void **state)
{
    struct fake *f = fake_new(100000, 0);
    struct sampler_config c = usual;
    struct samples s;

    (void)state;
    c.min_samples = 123;
    assert_int_equal(run(f, &c, 1, &s), 0);
    assert_int_equal(s.stop, SAMPLER_CONVERGED);
    assert_int_equal(s.n, 123);
    finish(f, &s);
}

static void test_stops_at_the_most_samples(void **state)
{
    struct fake *f = fake_new(100000, 0.2);
    struct sampler_config c = usual;
    struct samples s;

    (void)state;
    c.max_samples = 77;
    c.width = 0.001;
    assert_int_equal(run(f, &c, 1, &s), 0);
    assert_int_equal(s.stop, SAMPLER_SAMPLES);
    assert_int_equal(s.n, 77);
    finish(f, &s);
}

static void test_stops_when_the_time_is_over(void **state)
{
    struct fake *f = fake_new(100000, 0.2);
    struct sampler_config c = usual;
    struct samples s;

    (void)state;
    c.width = 1e-6;
    c.max_samples = 0;
    c.budget_ns = 20000000;
    f->sleep_us = 100;
    assert_int_equal(run(f, &c, 1, &s), 0);
    assert_int_equal(s.stop, SAMPLER_TIME);
    assert_true(s.n >= 1 && s.n < 1000);
    finish(f, &s);
}

static void test_one_sample_though_there_is_no_time(void **state)
{
    struct fake *f = fake_new(100000, 0);
    struct sampler_config c = usual;
    struct samples s;

    (void)state;
    c.budget_ns = c.warmup_ns = 0;
    assert_int_equal(run(f, &c, 1, &s), 0);
    assert_int_equal(s.n, 1);
    assert_int_equal(s.stop, SAMPLER_TIME); /* never "converged" on fewer than the minimum */
    assert_false(s.steady);
    finish(f, &s);
}

static void test_cancelled(void **state)
{
    static const unsigned at[] = {1, 3, 10, 40}; /* while it calibrates, warms up, samples */
    struct sampler_config c = usual;

    (void)state;
    c.sample_ns = 1000000;
    for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        struct fake *f = fake_new(1000, 0.001);
        struct samples s;
        f->cancel_at = at[i];
        c.cancel = &f->cancel;
        assert_int_equal(run(f, &c, 1, &s), 0);
        assert_int_equal(s.stop, SAMPLER_INTERRUPTED);
        assert_int_equal(f->calls, at[i]); /* not one operation more */
        finish(f, &s);
    }
}

static void test_error_ends_it_and_keeps_what_there_is(void **state)
{
    static const unsigned at[] = {1, 3, 10, 40};
    struct sampler_config c = usual;

    (void)state;
    c.sample_ns = 1000000;
    for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        struct fake *f = fake_new(1000, 0.001);
        struct samples s;
        f->fail_at = at[i];
        assert_int_equal(run(f, &c, 1, &s), -EIO);
        assert_int_equal(f->calls, at[i]);
        assert_true(at[i] < 40 || s.n > 0);
        finish(f, &s);
    }
}

static void test_warm_up_waits_for_the_level(void **state)
{
    struct fake *f = fake_new(100000, 0.001);
    struct samples s;
    struct median_ci ci;

    (void)state;
    f->slow_calls = 12; /* three times as slow at first */
    assert_int_equal(run(f, &usual, 1, &s), 0);
    assert_true(s.steady);
    assert_true(s.discarded > 12);
    assert_int_equal(stats_ci_median(s.ns[0], s.n, 0.95, &ci), 0);
    assert_float_equal(ci.median, 100000, 500);
    for (uint64_t i = 0; i < s.n; i++)
        assert_true(s.ns[0][i] < 150000);
    finish(f, &s);
}

static void test_warm_up_is_bounded(void **state)
{
    struct fake *f = fake_new(100000, 0);
    struct sampler_config c = usual;
    struct samples s;

    (void)state;
    c.warmup_ns = 5000000;
    f->sleep_us = 1000; /* five samples or so: too few to call anything steady */
    assert_int_equal(run(f, &c, 1, &s), 0);
    assert_false(s.steady);
    assert_true(s.discarded >= 1 && s.discarded < 2 * SAMPLER_WINDOW);
    finish(f, &s);
}

static int noisy_second(void *arg, uint64_t inner, uint64_t *ns)
{
    struct fake *f = arg;
    int err = take(arg, inner, ns);

    ns[1] = (uint64_t)llround(100000 * (1 + 0.05 * rng_normal(&f->rng)));
    return err;
}

static void test_every_series_must_converge(void **state)
{
    struct fake *f = fake_new(100000, 0);
    struct samples s;
    struct median_ci ci;

    (void)state;
    assert_int_equal(sampler_run(&usual, noisy_second, f, 2, &s), 0);
    assert_int_equal(s.stop, SAMPLER_CONVERGED);
    assert_true(s.n > STATS_MIN_SAMPLES); /* the first alone would have stopped at the minimum */
    assert_int_equal(stats_ci_median(s.ns[1], s.n, 0.95, &ci), 0);
    assert_true(fmax(ci.high - ci.median, ci.median - ci.low) <= 0.01 * ci.median);
    finish(f, &s);
}

/* Noise whose neighbours are alike, and two levels, by a generator of its own: a multiplicative congruential one (L'Ecuyer 1999, table 2,
 * modulus 2^61 - 1) and Box and Muller's. */
enum course { INDEPENDENT, AR_50, AR_90, AR_99, AR_999, TWO_LEVELS, COURSES };

static const struct {
    const char *name;
    double phi, stay;  /* samples on a level, on average */
    double wrong_most; /* % of runs that converge and miss the median */
} courses[] = {
    [INDEPENDENT] = {"independent", 0, 0, 8},
    [AR_50] = {"AR(1), phi 0.5", 0.5, 0, 8},
    [AR_90] = {"AR(1), phi 0.9", 0.9, 0, 8},
    [AR_99] = {"AR(1), phi 0.99", 0.99, 0, 8},
    [AR_999] = {"AR(1), phi 0.999 (a drift)", 0.999, 0, 8},
    [TWO_LEVELS] = {"two levels 50/50, 60 samples each", 0, 60, 50},
};

struct source {
    enum course course;
    double spread; /* as a share */
    double at;     /* the wander, in standard deviations; or the level, -1 or 1 */
    uint64_t state;
};

static double source_uniform(struct source *s)
{
    s->state = (uint64_t)((unsigned __int128)s->state * 437799614237992725u % 2305843009213693951u);
    return (double)s->state / 2305843009213693951.0;
}

static double source_normal(struct source *s)
{
    double radius = sqrt(-2 * log(source_uniform(s)));

    return radius * cos(2 * M_PI * source_uniform(s));
}

static int source_take(void *arg, uint64_t inner, uint64_t *ns)
{
    struct source *s = arg;
    double phi = courses[s->course].phi, stay = courses[s->course].stay, noise = source_normal(s);

    if (stay > 0)
        s->at = source_uniform(s) < 1 / stay ? -s->at : s->at;
    else
        s->at = phi * s->at + sqrt(1 - phi * phi) * noise;
    double share = stay > 0 ? 0.025 * s->at + 0.2 * s->spread * noise : s->spread * s->at;
    ns[0] = (uint64_t)llround(1e9 * (double)inner * (1 + share));
    return 0;
}

struct ends {
    double covered, converged, wrong, samples; /* % of runs; mean number */
};

/* What can be known of two levels: both were seen, and how often they changed. */
static void changed_enough(const struct samples *s)
{
    struct levels levels;
    unsigned changes = 0;

    assert_int_equal(levels_of_samples(s->ns[0], s->n, &levels), 0);
    for (uint64_t i = 1; i < s->n; i++)
        changes += (s->ns[0][i] > 1e9) != (s->ns[0][i - 1] > 1e9);
    assert_true(!levels.two || s->stop != SAMPLER_CONVERGED || changes >= STATS_INDEPENDENT_MIN);
}

static struct ends ends_of(enum course course, double spread, int runs)
{
    struct sampler_config c = usual;
    struct ends e = {0};

    c.max_samples = 2000;
    for (int i = 0; i < runs; i++) {
        struct source source = {course, spread, 0, 4711 + 7919 * (uint64_t)i};
        struct samples s;
        struct median_ci ci;

        for (int skip = 0; skip < 20; skip++)
            source_uniform(&source);
        source.at = courses[course].stay > 0 ? (source_uniform(&source) < 0.5 ? 1 : -1)
                                             : source_normal(&source);
        assert_int_equal(sampler_run(&c, source_take, &source, 1, &s), 0);
        assert_int_equal(stats_ci_samples(s.ns[0], s.n, 0.95, &ci), 0);
        bool covers = ci.low <= 1e9 && 1e9 <= ci.high, stands = s.stop == SAMPLER_CONVERGED;
        assert_true(!stands || s.doubt[0] == SAMPLER_SURE);
        if (course == TWO_LEVELS)
            changed_enough(&s);
        e.covered += 100.0 * covers / runs;
        e.converged += 100.0 * stands / runs;
        e.wrong += 100.0 * (stands && !covers) / runs;
        e.samples += (double)s.n / runs;
        samples_release(&s);
    }
    return e;
}

/* docs/statistics.md has this table. */
static void test_what_converges_is_mostly_right(void **state)
{
    int bad = 0;

    (void)state;
    for (enum course course = INDEPENDENT; course < COURSES; course++)
        for (int wide = 0; wide < (course < AR_999 ? 2 : 1); wide++) {
            struct ends e = ends_of(course, wide ? 0.03 : 0.01, sanitized() ? 10 : 300);

            print_message(
                "  %-34s %d %%: covered %5.1f %%, converged %5.1f %%, converged and wrong "
                "%4.1f %%, %4.0f samples\n",
                courses[course].name, wide ? 3 : 1, e.covered, e.converged, e.wrong, e.samples);
            bad += e.wrong > courses[course].wrong_most;
            bad += course <= AR_99 && e.covered < 92;
            bad += course == INDEPENDENT && e.converged < 99;
        }
    assert_true(sanitized() || bad == 0);
}

/* Narrow enough, of samples that all tell the same: one step of a fifth of the width. */
static int step_once(void *arg, uint64_t inner, uint64_t *ns)
{
    struct fake *f = arg;
    int err = take(arg, inner, ns);

    ns[0] += f->calls > 150 ? 200 * inner : 0;
    return err;
}

static void test_few_independent_samples_do_not_converge(void **state)
{
    struct fake *f = fake_new(100000, 0.0005);
    struct sampler_config c = usual;
    struct samples s;

    (void)state;
    c.min_samples = 300;
    c.max_samples = 320;
    assert_int_equal(sampler_run(&c, step_once, f, 1, &s), 0);
    assert_int_equal(s.stop, SAMPLER_SAMPLES);
    assert_int_equal(s.doubt[0], SAMPLER_DEPENDENT);
    assert_true(s.independent[0] >= 1 && s.independent[0] < STATS_INDEPENDENT_MIN);
    finish(f, &s);
}

static void test_series_stay_in_step(void **state)
{
    struct fake *f = fake_new(100000, 0.05);
    struct sampler_config c = usual;
    struct samples s;

    (void)state;
    f->second = 0.5;
    c.max_samples = 700; /* its arrays grow twice */
    c.width = 1e-6;
    assert_int_equal(run(f, &c, 2, &s), 0);
    assert_int_equal(s.n, 700);
    for (uint64_t i = 0; i < s.n; i++)
        assert_float_equal(s.ns[1][i], s.ns[0][i] / 2, 0.51);
    finish(f, &s);
}

static void test_length_counts_the_slowest_series(void **state)
{
    struct fake *f = fake_new(100, 0);
    struct sampler_config c = usual;
    struct samples s;

    (void)state;
    f->second = 10;
    c.sample_ns = 1000000;
    assert_int_equal(run(f, &c, 2, &s), 0);
    assert_true(s.inner >= 1000 && s.inner <= 2000); /* of 1000 ns each */
    finish(f, &s);
}

static void test_wrong_number_of_series(void **state)
{
    struct fake *f = fake_new(100, 0);
    struct samples s;

    (void)state;
    assert_int_equal(sampler_run(&usual, take, f, 0, &s), -EINVAL);
    samples_release(&s);
    assert_int_equal(sampler_run(&usual, take, f, SAMPLER_SERIES_MAX + 1, &s), -EINVAL);
    assert_int_equal(f->calls, 0);
    finish(f, &s);
}

static void test_names_of_stops(void **state)
{
    (void)state;
    assert_string_equal(sampler_stop_name(SAMPLER_CONVERGED), "converged");
    assert_string_equal(sampler_stop_name(SAMPLER_TIME), "time");
    assert_string_equal(sampler_stop_name(SAMPLER_SAMPLES), "samples");
    assert_string_equal(sampler_stop_name(SAMPLER_INTERRUPTED), "interrupted");
}

/* Two windows: a ramp of `step` between them, each sample off by +/- `noise`. */
static bool steady(double step, double noise)
{
    double last[2 * SAMPLER_WINDOW];

    for (int i = 0; i < 2 * SAMPLER_WINDOW; i++)
        last[i] = 1000 * (1 + (i < SAMPLER_WINDOW ? 0 : step) + (i % 2 ? noise : -noise));
    return sampler_is_steady(last, 2 * SAMPLER_WINDOW);
}

static void test_steadiness(void **state)
{
    (void)state;
    assert_true(steady(0, 0));
    assert_true(steady(0.009, 0));
    assert_false(steady(0.012, 0));
    assert_false(steady(-0.012, 0));
    assert_false(steady(0.1, 0.01));
    assert_true(steady(0.05, 0.1)); /* within its own noise */
}

/* On noise alone the warm-up must end: of 1000 pairs of windows, most are steady. */
static void test_noise_is_mostly_steady(void **state)
{
    struct rng rng;
    int n = 0;

    (void)state;
    rng_seed(&rng, 3);
    for (int i = 0; i < 1000; i++) {
        double last[2 * SAMPLER_WINDOW];
        for (int k = 0; k < 2 * SAMPLER_WINDOW; k++)
            last[k] = 1000 * (1 + 0.1 * rng_normal(&rng));
        n += sampler_is_steady(last, 2 * SAMPLER_WINDOW);
    }
    assert_true(n > 500 && n < 990);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples_get_the_wanted_length),
        cmocka_unit_test(test_long_operations_are_done_once),
        cmocka_unit_test(test_latency_keeps_one_operation),
        cmocka_unit_test(test_cold_first_operation_does_not_mislead),
        cmocka_unit_test(test_inner_is_bounded),
        cmocka_unit_test(test_converges),
        cmocka_unit_test(test_narrower_takes_more),
        cmocka_unit_test(test_at_least_the_minimum),
        cmocka_unit_test(test_stops_at_the_most_samples),
        cmocka_unit_test(test_stops_when_the_time_is_over),
        cmocka_unit_test(test_one_sample_though_there_is_no_time),
        cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_error_ends_it_and_keeps_what_there_is),
        cmocka_unit_test(test_warm_up_waits_for_the_level),
        cmocka_unit_test(test_warm_up_is_bounded),
        cmocka_unit_test(test_every_series_must_converge),
        cmocka_unit_test(test_what_converges_is_mostly_right),
        cmocka_unit_test(test_few_independent_samples_do_not_converge),
        cmocka_unit_test(test_series_stay_in_step),
        cmocka_unit_test(test_length_counts_the_slowest_series),
        cmocka_unit_test(test_wrong_number_of_series),
        cmocka_unit_test(test_names_of_stops),
        cmocka_unit_test(test_steadiness),
        cmocka_unit_test(test_noise_is_mostly_steady),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
