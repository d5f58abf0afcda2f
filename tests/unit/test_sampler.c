/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler, driven by operations whose times are made up: how it warms up, finds the length of a
 * sample, when it stops and why, and that no sample is lost. */
#include "core/clock.h"
#include "core/levels.h"
#include "core/rng.h"
#include "core/sampler.h"
#include "core/stats.h"
#include "tests/unit/unit.h"

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

/* Of operations of op_ns, and overhead_ns a sample, with a first one that is slow: inner is right for the wanted length, and at most max_inner. */
static uint64_t length_of(double op_ns, double overhead_ns, double first_ns, double second,
                          uint64_t wanted_ns, uint64_t max_inner)
{
    struct fake *f = fake_new(op_ns, 0);
    struct sampler_config c = usual;
    struct samples s;

    f->overhead_ns = overhead_ns;
    f->first_ns = first_ns;
    f->second = second;
    c.sample_ns = wanted_ns;
    c.max_inner = max_inner;
    assert_int_equal(run(f, &c, second > 0 ? 2 : 1, &s), 0);
    uint64_t inner = s.inner;
    finish(f, &s);
    return inner;
}

TEST(test_samples_get_the_wanted_length)
{
    static const struct {
        double op_ns, overhead_ns;
    } cases[] = {{1, 0},      {0.01, 0} /* below the clock's step */,
                 {900, 100},  {10, 200000},
                 {999999, 0}, {1000000, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        uint64_t inner = length_of(cases[i].op_ns, cases[i].overhead_ns, 0, 0, 1000000, 0);
        double length = cases[i].op_ns * (double)inner + cases[i].overhead_ns;
        if (length < 1e6 || (length > 2e6 && inner > 1))
            fail_msg("case %zu: %llu of them take %g ns", i, (unsigned long long)inner, length);
    }
    assert_int_equal(length_of(5000000, 0, 0, 0, 1000000, 0), 1);
    assert_int_equal(length_of(20, 0, 0, 0, 0, 0), 1); /* a latency */
    assert_int_equal(length_of(1, 0, 0, 0, 1000000, 100), 100);
    assert_true(length_of(1000, 0, 30e6, 0, 1000000, 0) >=
                1000); /* it compiles a kernel, touches pages */
    uint64_t slowest =
        length_of(100, 0, 0, 10, 1000000, 0); /* of the second series: 1000 ns each */
    assert_true(slowest >= 1000 && slowest <= 2000);
}

TEST(test_when_it_stops)
{
    static const struct {
        double spread, width;
        uint64_t min, max, least, most;
        int stop;
    } cases[] = {{0.01, 0.01, STATS_MIN_SAMPLES, 100000, STATS_MIN_SAMPLES, 999, SAMPLER_CONVERGED},
                 {0.05, 0.01, STATS_MIN_SAMPLES, 100000, 100, 800, SAMPLER_CONVERGED},
                 {0.05, 0.0025, STATS_MIN_SAMPLES, 100000, 1600, 12800,
                  SAMPLER_CONVERGED}, /* a quarter of the width: 16 times as many */
                 {0, 0.01, 123, 100000, 123, 123, SAMPLER_CONVERGED},
                 {0.2, 0.001, STATS_MIN_SAMPLES, 77, 77, 77, SAMPLER_SAMPLES}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct fake *f = fake_new(100000, cases[i].spread);
        struct sampler_config c = usual;
        struct samples s;
        struct median_ci ci;

        c.width = cases[i].width;
        c.min_samples = cases[i].min;
        c.max_samples = cases[i].max;
        assert_int_equal(run(f, &c, 1, &s), 0);
        if (s.stop != (enum sampler_stop)cases[i].stop || s.n < cases[i].least ||
            s.n > cases[i].most || !s.steady)
            fail_msg("case %zu: %llu samples, %d", i, (unsigned long long)s.n, (int)s.stop);
        assert_int_equal(stats_ci_samples(s.ns[0], s.n, 0.95, &ci), 0);
        assert_true(s.stop == SAMPLER_SAMPLES ||
                    fmax(ci.high - ci.median, ci.median - ci.low) <= c.width * ci.median);
        finish(f, &s);
    }
}

/* The budget ends it, with one sample at least, and never "converged" on fewer than the minimum. */
TEST(test_stops_when_the_time_is_over)
{
    for (int none = 0; none < 2; none++) {
        struct fake *f = fake_new(100000, none ? 0 : 0.2);
        struct sampler_config c = usual;
        struct samples s;

        c.width = none ? 0.01 : 1e-6;
        c.max_samples = 0;
        c.budget_ns = none ? 0 : 20000000;
        c.warmup_ns = none ? 0 : c.warmup_ns;
        f->sleep_us = none ? 0 : 100;
        assert_int_equal(run(f, &c, 1, &s), 0);
        assert_int_equal(s.stop, SAMPLER_TIME);
        assert_true(none ? s.n == 1 && !s.steady : s.n >= 1 && s.n < 1000);
        finish(f, &s);
    }
}

/* An error, and who interrupts, end it at once, while it calibrates, warms up or samples; what there is stays. */
TEST(test_ended_early)
{
    static const unsigned at[] = {1, 3, 10, 40};
    struct sampler_config c = usual;
    c.sample_ns = 1000000;
    for (size_t i = 0; i < 8; i++) {
        struct fake *f = fake_new(1000, 0.001);
        struct samples s;
        bool fails = i % 2;

        *(fails ? &f->fail_at : &f->cancel_at) = at[i / 2];
        c.cancel = fails ? NULL : &f->cancel;
        assert_int_equal(run(f, &c, 1, &s), fails ? -EIO : 0);
        assert_true(fails || s.stop == SAMPLER_INTERRUPTED);
        assert_int_equal(f->calls, at[i / 2]);
        assert_true(at[i / 2] < 40 || s.n > 0);
        finish(f, &s);
    }
}

TEST(test_warm_up_waits_for_the_level)
{
    struct fake *f = fake_new(100000, 0.001);
    struct samples s;
    struct median_ci ci;
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

TEST(test_warm_up_is_bounded)
{
    struct fake *f = fake_new(100000, 0);
    struct sampler_config c = usual;
    struct samples s;
    c.warmup_ns = 5000000;
    f->sleep_us = 1000; /* five samples or fewer: too few to call anything steady */
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

TEST(test_every_series_must_converge)
{
    struct fake *f = fake_new(100000, 0);
    struct samples s;
    struct median_ci ci;
    assert_int_equal(sampler_run(&usual, noisy_second, f, 2, &s), 0);
    assert_int_equal(s.stop, SAMPLER_CONVERGED);
    assert_true(s.n > STATS_MIN_SAMPLES); /* the first alone would have stopped at the minimum */
    assert_int_equal(stats_ci_median(s.ns[1], s.n, 0.95, &ci), 0);
    assert_true(fmax(ci.high - ci.median, ci.median - ci.low) <= 0.01 * ci.median);
    finish(f, &s);
}

/* Noise whose neighbours are alike, and two levels. */
enum course { INDEPENDENT, AR_50, AR_90, AR_99, AR_999, TWO_LEVELS, COURSES };

static const struct {
    double phi, stay;  /* samples on a level, on average */
    double wrong_most; /* % of runs that converge and miss the median */
} courses[] = {[INDEPENDENT] = {0, 0, 8}, [AR_50] = {0.5, 0, 8},    [AR_90] = {0.9, 0, 8},
               [AR_99] = {0.99, 0, 8},    [AR_999] = {0.999, 0, 8}, [TWO_LEVELS] = {0, 60, 50}};

struct source {
    enum course course;
    double spread; /* as a share */
    double at;     /* the wander, in standard deviations; or the level, -1 or 1 */
    struct rng rng;
};

static int source_take(void *arg, uint64_t inner, uint64_t *ns)
{
    struct source *s = arg;
    double phi = courses[s->course].phi, stay = courses[s->course].stay,
           noise = rng_normal(&s->rng);

    if (stay > 0)
        s->at = rng_double(&s->rng) < 1 / stay ? -s->at : s->at;
    else
        s->at = phi * s->at + sqrt(1 - phi * phi) * noise;
    double share = stay > 0 ? 0.025 * s->at + 0.2 * s->spread * noise : s->spread * s->at;
    ns[0] = (uint64_t)llround(1e9 * (double)inner * (1 + share));
    return 0;
}

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

/* docs/statistics.md has this table, of more runs. */
TEST(test_what_converges_is_mostly_right)
{
    const int runs = 100;
    struct sampler_config c = usual;
    c.max_samples = 2000;
    for (enum course course = INDEPENDENT; course < COURSES; course++) {
        int covered = 0, converged = 0, wrong = 0;

        for (int i = 0; i < runs; i++) {
            struct source source = {course, course == AR_90 ? 0.03 : 0.01, 0, {{0}}};
            struct samples s;
            struct median_ci ci;

            rng_seed(&source.rng, 4711 + (uint64_t)i);
            source.at = courses[course].stay > 0 ? (rng_double(&source.rng) < 0.5 ? 1 : -1)
                                                 : rng_normal(&source.rng);
            assert_int_equal(sampler_run(&c, source_take, &source, 1, &s), 0);
            assert_int_equal(stats_ci_samples(s.ns[0], s.n, 0.95, &ci), 0);
            bool covers = ci.low <= 1e9 && 1e9 <= ci.high, stands = s.stop == SAMPLER_CONVERGED;
            assert_true(!stands || s.doubt[0] == SAMPLER_SURE);
            if (course == TWO_LEVELS)
                changed_enough(&s);
            covered += covers;
            converged += stands;
            wrong += stands && !covers;
            samples_release(&s);
        }
        if (100 * wrong > courses[course].wrong_most * runs ||
            (course <= AR_99 && 100 * covered < 92 * runs) ||
            (course == INDEPENDENT && 100 * converged < 99 * runs))
            fail_msg("course %d: %d covered, %d converged, %d wrong", (int)course, covered,
                     converged, wrong);
    }
}

/* Narrow enough, of samples that all tell the same: one step of a fifth of the width. */
static int step_once(void *arg, uint64_t inner, uint64_t *ns)
{
    struct fake *f = arg;
    int err = take(arg, inner, ns);

    ns[0] += f->calls > 150 ? 200 * inner : 0;
    return err;
}

TEST(test_few_independent_samples_do_not_converge)
{
    struct fake *f = fake_new(100000, 0.0005);
    struct sampler_config c = usual;
    struct samples s;
    c.min_samples = 300;
    c.max_samples = 320;
    assert_int_equal(sampler_run(&c, step_once, f, 1, &s), 0);
    assert_int_equal(s.stop, SAMPLER_SAMPLES);
    assert_int_equal(s.doubt[0], SAMPLER_DEPENDENT);
    assert_true(s.independent[0] >= 1 && s.independent[0] < STATS_INDEPENDENT_MIN);
    finish(f, &s);
}

TEST(test_series_stay_in_step)
{
    struct fake *f = fake_new(100000, 0.05);
    struct sampler_config c = usual;
    struct samples s;
    f->second = 0.5;
    c.max_samples = 700; /* its arrays grow twice */
    c.width = 1e-6;
    assert_int_equal(run(f, &c, 2, &s), 0);
    assert_int_equal(s.n, 700);
    for (uint64_t i = 0; i < s.n; i++)
        assert_float_equal(s.ns[1][i], s.ns[0][i] / 2, 0.51);
    finish(f, &s);
}

/* A pause counts in a sample and between two, but not the sampler's own work, nor what lies between any two samples. */
TEST(test_pauses_stretch_the_time)
{
    uint64_t end_ns[10] = {0};
    double ns[10] = {9, 9, 9, 9, 9, 9, 9, 9, 9, 9};
    struct samples s = {.n_series = 1, .ns = {ns}, .begin_ns = 1000, .end_ns = end_ns, .n = 10};

    for (uint64_t i = 0, at = s.begin_ns; i < s.n; i++)
        end_ns[i] = at += i == 4 ? 35 : 10;
    assert_float_equal(samples_stretch(&s), 1.25, 1e-12);
    s.own_ns = 25;
    assert_float_equal(samples_stretch(&s), 1, 1e-12);
    for (int other = 0; other < 2;
         other++) { /* no times of this clock, or beside as much other work */
        for (uint64_t i = 0; i < s.n; i++)
            ns[i] = other ? 4 : 11;
        assert_true(isnan(samples_stretch(&s)));
    }
    s.n = 0;
    assert_true(isnan(samples_stretch(&s)));
}

TEST(test_wrong_number_of_series)
{
    struct fake *f = fake_new(100, 0);
    struct samples s;
    assert_int_equal(sampler_run(&usual, take, f, 0, &s), -EINVAL);
    samples_release(&s);
    assert_int_equal(sampler_run(&usual, take, f, SAMPLER_SERIES_MAX + 1, &s), -EINVAL);
    assert_int_equal(f->calls, 0);
    finish(f, &s);
}

/* Two windows: a step between them, each sample off by +/- `noise`. */
static bool steady(double step, double noise)
{
    double last[2 * SAMPLER_WINDOW];

    for (int i = 0; i < 2 * SAMPLER_WINDOW; i++)
        last[i] = 1000 * (1 + (i < SAMPLER_WINDOW ? 0 : step) + (i % 2 ? noise : -noise));
    return sampler_is_steady(last, 2 * SAMPLER_WINDOW);
}

/* Within 1 %, or its own noise; and on noise alone the warm-up must end. */
TEST(test_steadiness)
{
    struct rng rng;
    int n = 0;
    assert_true(steady(0, 0) && steady(0.009, 0) && steady(0.05, 0.1));
    assert_false(steady(0.012, 0) || steady(-0.012, 0) || steady(0.1, 0.01));
    rng_seed(&rng, 3);
    for (int i = 0; i < 1000; i++) {
        double last[2 * SAMPLER_WINDOW];
        for (int k = 0; k < 2 * SAMPLER_WINDOW; k++)
            last[k] = 1000 * (1 + 0.1 * rng_normal(&rng));
        n += sampler_is_steady(last, 2 * SAMPLER_WINDOW);
    }
    assert_true(n > 500 && n < 990);
}
