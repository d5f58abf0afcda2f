/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what the report makes of collectives: the latency-bandwidth model and late ranks. */
#include "core/condition.h"
#include "core/rng.h"
#include "harness/report/matrix.h"
#include "harness/report/scaling.h"
#include "tests/unit/built_benches.h"
#include "tests/unit/unit.h"

#define A_US 25.0
#define B_US 8.5e-3 /* 0.1176 GB/s */

static void assert_near(double value, double expected, double relative)
{
    if (!(fabs(value - expected) <= relative * fabs(expected)))
        fail_msg("%.9g is not %.9g within %g", value, expected, relative);
}

/* --- the model --- */

static struct bench_list benches;

struct row {
    const char *op, *backend;
};

static const char *value_of(const void *arg, const char *name, size_t len)
{
    const struct row *row = arg;

    return len == 2 && !memcmp(name, "op", len) ? row->op : row->backend;
}

/* As the benchmark tells them. */
static const struct bench_terms *terms_of(const char *op, const char *backend)
{
    const struct bench_terms *t = rows_of(&benches, "allreduce")->terms;

    while (t->where && !condition_holds(t->where, value_of, &(struct row){op, backend}))
        t++;
    return t->where ? t : NULL;
}

static const struct bench_terms *ring(void)
{
    return terms_of("allreduce", "ring");
}

static int ask_benches(void **state)
{
    (void)state;
    benches = built_benches();
    return 0;
}

static int forget_benches(void **state)
{
    (void)state;
    bench_list_release(&benches);
    return 0;
}

TEST(test_terms_of_algorithms)
{
    static const struct {
        const char *op, *backend;
        double ranks, messages, bytes;
    } cases[] = {
        {"allreduce", "ring", 2, 2, 1},
        {"allreduce", "ring", 8, 14, 1.75},
        {"allreduce", "mpi-cuda", 8, 14, 1.75},
        {"allreduce", "halving", 8, 6, 1.75},
        {"allreduce", "doubling", 8, 3, 3},
        {"allreduce", "halving", 6, 6, 1.5 + 2}, /* four, and two that hand theirs over */
        {"allreduce", "doubling", 5, 4, 4},
        {"reduce-scatter", "ring", 4, 3, 0.75},
        {"all-gather", "nccl", 4, 3, 0.75},
        {"all-to-all", "ring", 4, 3, 0.75},
        {"send-receive", "ring", 4, 1, 1},
    };
    struct fit_terms t;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        assert_true(fit_terms(terms_of(cases[i].op, cases[i].backend), cases[i].ranks, &t));
        assert_near(t.messages, cases[i].messages, 1e-12);
        assert_near(t.bytes, cases[i].bytes, 1e-12);
    }
    assert_false(fit_terms(terms_of("broadcast", "ring"), 4, &t));
    assert_false(fit_terms(ring(), 1, &t));
    assert_false(fit_terms(ring(), NAN, &t));
}

/* A formula that nobody can read gives no model, and nobody would see it. */
TEST(test_formulas_of_all_benchmarks_are_read)
{
    struct fit_terms t;

    for (size_t i = 0; i < benches.n; i++)
        for (const struct bench_terms *of = benches.benches[i].rows.terms; of->where; of++)
            for (double ranks = 2; ranks < 10; ranks++)
                if (!fit_terms(of, ranks, &t) || !(t.bus <= t.bytes))
                    fail_msg("%s, '%s': %s | %s | %s", benches.benches[i].name, of->where,
                             of->messages, of->bytes, of->bus);
}

static double bytes_of(const char *formula, double ranks)
{
    struct fit_terms t;

    return fit_terms(&(struct bench_terms){"", "1", formula, "1"}, ranks, &t) ? t.bytes : NAN;
}

TEST(test_formulas)
{
    static const struct {
        const char *formula;
        double ranks, bytes;
    } cases[] = {{"7 - 2 - 1", 2, 4},        {"12 / 2 / 3", 2, 2},      {"1+2*3", 2, 7},
                 {" ( 1 + 2 ) * n ", 4, 12}, {"10 * p + steps", 7, 42}, {"1 + beyond", 8, 1},
                 {"1 + beyond", 9, 2}};
    static const char *const wrong[] = {"",  "2 *",           "2 n", "(n",    "n)",  "x",  "nn",
                                        "N", "1 / 0 - 1 / 0", "0",   "0 - n", "1.5", "()", "-1"};
    char deep[2002];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_true(bytes_of(cases[i].formula, cases[i].ranks) == cases[i].bytes);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        if (!isnan(bytes_of(wrong[i], 4)))
            fail_msg("'%s' is read", wrong[i]);
    for (int depth = 50; depth <= 1000; depth += 950) { /* no run.json may use up the stack */
        memset(deep, '(', (size_t)depth);
        deep[depth] = 'n';
        memset(deep + depth + 1, ')', (size_t)depth);
        deep[2 * depth + 1] = 0;
        assert_true(depth > 50 ? isnan(bytes_of(deep, 4)) : bytes_of(deep, 4) == 4);
    }
}

static size_t make_points(struct fit_point *points, const char *algorithm, double noise)
{
    struct rng rng;
    size_t n = 0;

    rng_seed(&rng, 7);
    for (unsigned r = 2; r <= 8; r *= 2)
        for (unsigned b = 8; b <= 1u << 28; b *= 8) {
            double ranks = r, bytes = b;
            struct fit_terms t;

            assert_true(fit_terms(terms_of("allreduce", algorithm), ranks, &t));
            points[n++] = (struct fit_point){ranks, bytes,
                                             (t.messages * A_US + t.bytes * bytes * B_US) *
                                                 (1 + noise * (2 * rng_double(&rng) - 1))};
        }
    return n;
}

TEST(test_an_exact_model_is_found)
{
    static const char *const algorithms[] = {"ring", "halving", "doubling", "mpi"};
    struct fit_point points[64];
    struct fit fit;

    for (size_t i = 0; i < 4; i++) {
        size_t n = make_points(points, algorithms[i], 0);

        assert_int_equal(
            fit_make(terms_of("allreduce", algorithms[i]), points, n, NULL, NULL, &fit), 0);
        assert_near(fit.a_us, A_US, 1e-9);
        assert_near(fit.b_us, B_US, 1e-9);
        assert_true(fit.spread < 1e-9);
        assert_int_equal(fit.n, n);
        assert_true(isnan(fit_predict(&fit, 1, 8).time_us));
    }
}

TEST(test_noise_shows_in_spread_and_intervals)
{
    struct fit_point points[64];
    size_t n = make_points(points, "ring", 0.05), inside = 0;
    struct fit fit;

    assert_int_equal(fit_make(ring(), points, n, NULL, NULL, &fit), 0);
    assert_near(fit.a_us, A_US, 0.03);
    assert_near(fit.b_us, B_US, 0.03);
    assert_near(fit.spread, 0.05 / sqrt(3), 0.35);
    assert_true(fit.low_us < A_US && A_US < fit.high_us);
    assert_true(fit.b_low_us < B_US && B_US < fit.b_high_us);
    for (size_t i = 0; i < n; i++) {
        struct fit_prediction p = fit_predict(&fit, points[i].ranks, points[i].bytes);

        inside += p.low_us <= points[i].time_us && points[i].time_us <= p.high_us;
    }
    assert_true(inside >= n - 2);
}

/* By hand: where a alone is left, the best is the geometric mean of t / A. */
TEST(test_errors_are_of_logarithms)
{
    const struct fit_point points[] = {{2, 8, 10}, {4, 1e4, 20}, {2, 8, 10}, {4, 16, 30}};
    struct fit fit;

    assert_int_equal(fit_make(ring(), points, 4, NULL, NULL, &fit), 0);
    assert_true(fit.without_b);
    assert_near(fit.a_us, pow(10.0 / 2 * 20 / 6 * 10 / 2 * 30 / 6, 0.25), 1e-12);
    assert_true(fit.b_us == 0);
    assert_true(fit.b_low_us == 0 && fit.b_high_us > 0);
}

TEST(test_what_does_not_determine_it_is_refused)
{
    const struct fit_point same[] = {{2, 1e6, 100}, {2, 1e6, 101}, {2, 1e6, 102}};
    const struct fit_point large[] = {{2, 1e9, 8.5e6}, {4, 1e9, 12.75e6}, {8, 1e9, 14.875e6}};
    const struct fit_point bad[] = {
        {2, 8, NAN}, {2, 1e3, 0}, {2, 1e6, 100}, {4, 1e6, 150}, {1, 8, 1}};
    struct fit fit;

    assert_int_equal(fit_make(ring(), same, 3, NULL, NULL, &fit), -EDOM);
    assert_int_equal(fit_make(ring(), same, 2, NULL, NULL, &fit), -ENODATA);
    assert_int_equal(fit_make(ring(), bad, 5, NULL, NULL, &fit), -ENODATA);
    assert_int_equal(fit_make(terms_of("broadcast", "ring"), large, 3, NULL, NULL, &fit),
                     -EOPNOTSUPP);
    /* a large vector on several n tells them apart by its growth with n, but for a's interval, which is wide */
    assert_int_equal(fit_make(ring(), large, 3, NULL, NULL, &fit), 0);
    assert_near(fit.b_us, B_US, 1e-6);
}

/* --- late ranks --- */

static bool chance_is(double want, const double *ranks, size_t n, size_t late)
{
    double odds[8];

    return fabs(straggler_chance(ranks, n, late, odds) - want) < 1e-12;
}

#define RANKS     4
#define CASES_MAX 6

/* What is said of `cases` cases of n ranks in each of which the middle one is late in 90 % of the samples (of two, in 60 %), and the
 * GPUs of the first `held` ranks from that on are held back. */
static bool is_said_of(size_t cases, size_t n, size_t held, const char *ranks, const char *each,
                       const char *words)
{
    static bool follows[4] = {false};
    static size_t used[4] = {4, 4, 4, 4}; /* none */
    static const char *params[] = {"rank", "ranks", "size", "per_process"};
    static const char *const names[] = {"0", "1", "2", "3", "4", "5"};
    const char *texts[CASES_MAX * RANKS][4];
    struct report_point points[CASES_MAX * RANKS] = {0};
    struct report_case all[CASES_MAX * RANKS] = {0};
    struct report_bench bench = {.name = "x",
                                 .params = params,
                                 .follows = follows,
                                 .used = used,
                                 .n_params = 4,
                                 .cases = all,
                                 .n_cases = cases * n};
    struct report r = {.n_runs = 1, .benches = &bench, .n_benches = 1};
    struct stragglers found;

    for (size_t i = 0; i < cases * n; i++) {
        bool late = i % n == n / 2;

        memcpy(texts[i], ((const char *[]){names[i % n], ranks, names[i / n], each}),
               sizeof(texts[i]));
        points[i] = (struct report_point){.n_values = 1,
                                          .value = n == 2 ? late ? 60 : 40
                                                   : late ? 90
                                                          : 3,
                                          .n_throttled = (i + n - n / 2) % n < held,
                                          .throttle = "power cap"};
        all[i] = (struct report_case){texts[i], "late_share", "percent", &points[i], false, NULL};
    }
    stragglers_make(&r, &found);
    assert_int_equal(found.n, n);
    assert_true(n == 2 || found.all[n / 2].seems_one == (*each != '*'));
    const char *text = stragglers_text(&r, &found, &bench, 0);
    bool said = *words ? strstr(text, words) != NULL : *text != 0;
    pool_release(&r.pool);
    return said;
}

/* Some rank is late most in each case: in 2 cases of 4 ranks the same one often is (4 x 1/16), in 5 it is not (4 x 1/1024). A
 * late rank's GPU that was held back where the others' were not is told; at full load power holds back all. */
TEST(test_one_case_makes_no_straggler)
{
    static const struct {
        size_t cases, n, held;
        const char *ranks, *each, *words;
        bool said;
    } cases[] = {{2, 4, 0, "4", "1", "rank 2 is late", false},
                 {5, 4, 0, "4", "1", "rank 2 is late", true},
                 {5, 4, 1, "4", "1", "those of 3 of 3", true},
                 {5, 4, 2, "4", "1", "those of 2 of 3", true},
                 {5, 4, 0, "4", "1", "held back", false},
                 {5, 4, 3, "4", "1", "held back", false},
                 {6, 2, 0, "8", "4", "", false}, /* two processes: one of them always is late */
                 {5, 4, 0, "8", "2", "ranks 4 to 5", true},
                 {2, 4, 0, "8", "2", "late", false},
                 {6, 4, 0, "8", "*", "late", false}}; /* nobody knows how many there are */

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        if (is_said_of(cases[i].cases, cases[i].n, cases[i].held, cases[i].ranks, cases[i].each,
                       cases[i].words) != cases[i].said)
            fail_msg("case %zu", i);
}

TEST(test_late_is_more_than_chance)
{
    assert_true(straggler_is_late(51, 8));
    assert_false(straggler_is_late(49, 8));
    assert_true(straggler_is_late(51, 3));
    assert_false(straggler_is_late(60, 2)); /* one of two always is */
    assert_true(straggler_is_late(80, 2));
    assert_false(straggler_is_late(100, 1));
    assert_false(straggler_is_late(NAN, 8));
    assert_true(chance_is(1. / 8, (double[]){8}, 1, 1));
    assert_true(chance_is(1. / 64, (double[]){8, 8}, 2, 2));
    assert_true(chance_is(1. / 64, (double[]){2, 4, 8}, 3, 3));
    assert_true(chance_is(1 - 21. / 64, (double[]){2, 4, 8}, 3, 1)); /* none: 1/2 x 3/4 x 7/8 */
    assert_true(chance_is(5. / 32, (double[]){4, 4, 4}, 3, 2));      /* 10 of 64 */
    assert_true(chance_is(1, (double[]){4, 4}, 2, 0));
    assert_true(isnan(straggler_chance((double[]){NAN}, 1, 1, (double[2]){0})));
}

TESTS_WITH(ask_benches, forget_benches);
