/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what the report makes of collectives: the latency-bandwidth model, efficiency, slow hosts, late ranks, the best bucket. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/condition.h"
#include "core/rng.h"
#include "harness/report/matrix.h"
#include "harness/report/scaling.h"
#include "tests/unit/built_benches.h"

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

static void check_terms(const char *op, const char *algorithm, double ranks, double messages,
                        double bytes)
{
    struct fit_terms t;

    assert_true(fit_terms(terms_of(op, algorithm), ranks, &t));
    assert_near(t.messages, messages, 1e-12);
    assert_near(t.bytes, bytes, 1e-12);
}

static void test_terms_of_algorithms(void **state)
{
    struct fit_terms t;

    (void)state;
    check_terms("allreduce", "ring", 2, 2, 1);
    check_terms("allreduce", "ring", 8, 14, 1.75);
    check_terms("allreduce", "mpi", 8, 14, 1.75);
    check_terms("allreduce", "mpi-cuda", 8, 14, 1.75);
    check_terms("allreduce", "halving", 8, 6, 1.75);
    check_terms("allreduce", "doubling", 8, 3, 3);
    check_terms("allreduce", "halving", 6, 6,
                1.5 + 2); /* four of them, and two that hand theirs over */
    check_terms("allreduce", "doubling", 5, 4, 4);
    check_terms("reduce-scatter", "ring", 4, 3, 0.75);
    check_terms("all-gather", "nccl", 4, 3, 0.75);
    check_terms("all-to-all", "ring", 4, 3, 0.75);
    check_terms("send-receive", "ring", 4, 1, 1);
    assert_false(fit_terms(terms_of("broadcast", "ring"), 4, &t));
    assert_false(fit_terms(ring(), 1, &t));
    assert_false(fit_terms(ring(), NAN, &t));
}

/* A formula that nobody can read gives no model, and nobody would see it. */
static void test_formulas_of_all_benchmarks_are_read(void **state)
{
    struct fit_terms t;

    (void)state;
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

static void test_formulas(void **state)
{
    static const char *const wrong[] = {"",  "2 *",           "2 n", "(n",    "n)",  "x",  "nn",
                                        "N", "1 / 0 - 1 / 0", "0",   "0 - n", "1.5", "()", "-1"};

    (void)state;
    assert_true(bytes_of("7 - 2 - 1", 2) == 4);
    assert_true(bytes_of("12 / 2 / 3", 2) == 2);
    assert_true(bytes_of("1+2*3", 2) == 7);
    assert_true(bytes_of(" ( 1 + 2 ) * n ", 4) == 12);
    assert_true(bytes_of("10 * p + steps", 7) == 42);
    assert_true(bytes_of("1 + beyond", 8) == 1);
    assert_true(bytes_of("1 + beyond", 9) == 2);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        if (!isnan(bytes_of(wrong[i], 4)))
            fail_msg("'%s' is read", wrong[i]);
}

/* No run.json may use up the stack. */
static void test_long_formulas_are_refused(void **state)
{
    char deep[2002];

    (void)state;
    memset(deep, '(', 1000);
    deep[1000] = 'n';
    memset(deep + 1001, ')', 1000);
    deep[2001] = 0;
    assert_true(isnan(bytes_of(deep, 4)));
    strcpy(deep + 50, "n");
    memset(deep + 51, ')', 50);
    deep[101] = 0;
    assert_true(bytes_of(deep, 4) == 4);
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

static void test_an_exact_model_is_found(void **state)
{
    static const char *const algorithms[] = {"ring", "halving", "doubling", "mpi"};
    struct fit_point points[64];
    struct fit fit;

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        size_t n = make_points(points, algorithms[i], 0);

        assert_int_equal(
            fit_make(terms_of("allreduce", algorithms[i]), points, n, NULL, NULL, &fit), 0);
        assert_near(fit.a_us, A_US, 1e-9);
        assert_near(fit.b_us, B_US, 1e-9);
        assert_true(fit.spread < 1e-9);
        assert_int_equal(fit.n, n);
    }
}

static void test_noise_shows_in_spread_and_intervals(void **state)
{
    struct fit_point points[64];
    size_t n = make_points(points, "ring", 0.05), inside = 0;
    struct fit fit;

    (void)state;
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
static void test_errors_are_of_logarithms(void **state)
{
    const struct fit_point points[] = {{2, 8, 10}, {4, 1e4, 20}, {2, 8, 10}, {4, 16, 30}};
    struct fit fit;

    (void)state;
    assert_int_equal(fit_make(ring(), points, 4, NULL, NULL, &fit), 0);
    assert_true(fit.without_b);
    assert_near(fit.a_us, pow(10.0 / 2 * 20 / 6 * 10 / 2 * 30 / 6, 0.25), 1e-12);
    assert_true(fit.b_us == 0);
    assert_true(fit.b_low_us == 0 && fit.b_high_us > 0);
}

static void test_what_does_not_determine_it_is_refused(void **state)
{
    const struct fit_point same[] = {{2, 1e6, 100}, {2, 1e6, 101}, {2, 1e6, 102}};
    const struct fit_point large[] = {{2, 1e9, 8.5e6}, {4, 1e9, 12.75e6}, {8, 1e9, 14.875e6}};
    const struct fit_point bad[] = {
        {2, 8, NAN}, {2, 1e3, 0}, {2, 1e6, 100}, {4, 1e6, 150}, {1, 8, 1}};
    struct fit fit;

    (void)state;
    assert_int_equal(fit_make(ring(), same, 3, NULL, NULL, &fit), -EDOM);
    assert_int_equal(fit_make(ring(), same, 2, NULL, NULL, &fit), -ENODATA);
    assert_int_equal(fit_make(ring(), bad, 5, NULL, NULL, &fit), -ENODATA);
    assert_int_equal(fit_make(terms_of("broadcast", "ring"), large, 3, NULL, NULL, &fit),
                     -EOPNOTSUPP);
    /* a large vector on several n tells them apart by its growth with n, but for a's interval, which is wide */
    assert_int_equal(fit_make(ring(), large, 3, NULL, NULL, &fit), 0);
    assert_near(fit.b_us, B_US, 1e-6);
}

static bool up_to_4(const struct fit_point *p, const void *arg)
{
    (void)arg;
    return p->ranks <= 4;
}

static void test_8_are_predicted_from_2_and_4(void **state)
{
    struct fit_point points[64];
    size_t n = make_points(points, "ring", 0);
    struct fit fit;

    (void)state;
    for (size_t i = 0; i < n; i++)
        if (points[i].ranks == 8)
            points[i].time_us *= 3; /* must not be looked at */
    assert_int_equal(fit_make(ring(), points, n, up_to_4, NULL, &fit), 0);
    assert_near(fit_predict(&fit, 8, 1 << 20).time_us, 14 * A_US + 1.75 * (1 << 20) * B_US, 1e-9);
    assert_true(isnan(fit_predict(&fit, 1, 8).time_us));
}

/* --- efficiency --- */

static void test_a_ratio_has_the_interval_of_both(void **state)
{
    struct scaling_ratio r = scaling_ratio(9, 8.1, 10, 10, 9, 11);

    (void)state;
    assert_near(r.value, 0.9, 1e-12);
    /* MOVER on logarithms */
    assert_near(r.low, 0.9 * exp(-hypot(log(9 / 8.1), log(1.1))), 1e-12);
    assert_near(r.high, 0.9 * exp(hypot(log(10.0 / 9), log(10.0 / 9))), 1e-12);
    r = scaling_ratio(9, 9, 9, 10, 10, 10);
    assert_near(r.low, 0.9, 1e-12);
    assert_near(r.high, 0.9, 1e-12);
    r = scaling_ratio(9, NAN, NAN, 10, 9, 11);
    assert_near(r.value, 0.9, 1e-12);
    assert_true(isnan(r.low) && isnan(r.high));
    assert_true(isnan(scaling_ratio(9, 8, 10, 0, 0, 0).value));
    assert_true(isnan(scaling_ratio(NAN, 8, 10, 1, 1, 1).value));
}

/* --- slow hosts --- */

#define HOSTS 6

struct net {
    struct link links[HOSTS * HOSTS];
    size_t n, hosts;
};

/* All pairs both ways, each a little off by a fixed pattern. */
static struct net full(size_t hosts)
{
    struct net net = {.hosts = hosts};

    for (size_t i = 0; i < hosts; i++)
        for (size_t k = 0; k < hosts; k++)
            if (i != k)
                net.links[net.n++] =
                    (struct link){i, k, 1 + 0.01 * (double)((3 * i + 5 * k) % 4) / 4};
    return net;
}

static void slow_down(struct net *net, size_t host, double factor, enum links_way way)
{
    for (size_t i = 0; i < net->n; i++)
        if ((way != LINKS_TO && net->links[i].from == host) ||
            (way != LINKS_FROM && net->links[i].to == host))
            net->links[i].value = fmin(net->links[i].value, factor);
}

static size_t judge(const struct net *net, struct slow_host *slow)
{
    size_t n;

    assert_int_equal(links_judge(net->links, net->n, net->hosts, slow, &n), 0);
    return n;
}

static void test_a_slow_host_is_named(void **state)
{
    struct slow_host slow[HOSTS];

    (void)state;
    for (size_t hosts = 3; hosts <= HOSTS; hosts++) {
        struct net net = full(hosts);

        assert_int_equal(judge(&net, slow), 0);
        slow_down(&net, 2, 0.53, LINKS_BOTH);
        assert_int_equal(judge(&net, slow), 1);
        assert_int_equal(slow[0].host, 2);
        assert_int_equal(slow[0].way, LINKS_BOTH);
        assert_int_equal(slow[0].links, hosts - 1);
        assert_near(slow[0].ratio, 0.53, 0.02);
    }
}

static void test_one_bad_link_is_no_slow_host(void **state)
{
    struct slow_host slow[HOSTS];

    (void)state;
    for (size_t hosts = 3; hosts <= HOSTS; hosts++) {
        struct net net = full(hosts);

        for (size_t i = 0; i < net.n; i++)
            if (net.links[i].from + net.links[i].to == 1) /* 0 and 1 */
                net.links[i].value = 0.3;
        assert_int_equal(judge(&net, slow), 0);
    }
}

static void test_two_slow_hosts_are_named(void **state)
{
    struct slow_host slow[HOSTS];
    struct net net = full(5);

    (void)state;
    slow_down(&net, 1, 0.5, LINKS_BOTH);
    slow_down(&net, 4, 0.7, LINKS_BOTH);
    assert_int_equal(judge(&net, slow), 2);
    assert_int_equal(slow[0].host, 1);
    assert_near(slow[0].ratio, 0.5, 0.02);
    assert_int_equal(slow[0].links, 3); /* to those that are not slow */
    assert_int_equal(slow[1].host, 4);
    assert_near(slow[1].ratio, 0.7, 0.02);
    /* half of the hosts: it may as well be that the other two share a wire */
    net = full(4);
    slow_down(&net, 1, 0.5, LINKS_BOTH);
    slow_down(&net, 2, 0.5, LINKS_BOTH);
    assert_int_equal(judge(&net, slow), 0);
}

static void test_one_way_is_told_from_both(void **state)
{
    struct slow_host slow[HOSTS];
    struct net net = full(4);

    (void)state;
    slow_down(&net, 3, 0.5, LINKS_FROM);
    assert_int_equal(judge(&net, slow), 1);
    assert_int_equal(slow[0].host, 3);
    assert_int_equal(slow[0].way, LINKS_FROM);
    net = full(4);
    slow_down(&net, 0, 0.5, LINKS_TO);
    assert_int_equal(judge(&net, slow), 1);
    assert_int_equal(slow[0].host, 0);
    assert_int_equal(slow[0].way, LINKS_TO);
}

static void test_a_fast_pair_makes_nobody_slow(void **state)
{
    struct slow_host slow[HOSTS];
    struct net net = full(5);

    (void)state;
    for (size_t i = 0; i < net.n; i++)
        if (net.links[i].from + net.links[i].to == 1)
            net.links[i].value = 20; /* two hosts on one machine */
    assert_int_equal(judge(&net, slow), 0);
}

static void test_noise_and_small_differences_name_nobody(void **state)
{
    struct slow_host slow[HOSTS];
    struct net net = full(5);

    (void)state;
    slow_down(&net, 2, 0.93, LINKS_BOTH); /* less than 10 % */
    assert_int_equal(judge(&net, slow), 0);
    net = full(5);
    for (size_t i = 0; i < net.n; i++) /* the others differ by a third among themselves */
        net.links[i].value = 1 + 0.35 * (double)((7 * i) % 3 - 1.0);
    slow_down(&net, 2, 0.8, LINKS_BOTH);
    assert_int_equal(judge(&net, slow), 0);
}

/* Each pair was measured one way only, and some not at all. */
static void test_missing_pairs(void **state)
{
    struct slow_host slow[HOSTS];
    struct net net = full(5), half = {.hosts = 5};

    (void)state;
    slow_down(&net, 3, 0.5, LINKS_BOTH);
    for (size_t i = 0; i < net.n; i++)
        if (net.links[i].from < net.links[i].to && net.links[i].from + net.links[i].to != 1)
            half.links[half.n++] = net.links[i];
    assert_int_equal(judge(&half, slow), 1);
    assert_int_equal(slow[0].host, 3);
    /* a host of which nothing is known but its links to a slow one is not called slow */
    half.n = 0;
    for (size_t i = 0; i < net.n; i++)
        if ((net.links[i].from != 0 || net.links[i].to == 3) &&
            (net.links[i].to != 0 || net.links[i].from == 3))
            half.links[half.n++] = net.links[i];
    assert_int_equal(judge(&half, slow), 1);
    assert_int_equal(slow[0].host, 3);
    /* one slow link is all that is known of host 4: the link, or the host? */
    net = full(5);
    half.n = 0;
    for (size_t i = 0; i < net.n; i++)
        if ((net.links[i].from != 4 && net.links[i].to != 4) ||
            net.links[i].from + net.links[i].to == 4)
            half.links[half.n++] = net.links[i];
    slow_down(&half, 4, 0.5, LINKS_BOTH);
    assert_int_equal(judge(&half, slow), 0);
    half.n = 0;
    assert_int_equal(judge(&half, slow), 0);
    net.hosts = 2;
    net.n = 2;
    net.links[0] = (struct link){0, 1, 1};
    net.links[1] = (struct link){1, 0, 0.1};
    assert_int_equal(judge(&net, slow), 0);
}

/* --- late ranks --- */

static bool chance_is(double want, const double *ranks, size_t n, size_t late)
{
    double odds[8];

    return fabs(straggler_chance(ranks, n, late, odds) - want) < 1e-12;
}

#define RANKS     4
#define CASES_MAX 6

/* What is said of `cases` cases of RANKS ranks in each of which rank 2 is late in 90 % of the samples, and the GPUs of the
 * first `held` ranks from rank 2 on are held back. */
static bool is_said_of(size_t cases, size_t held, const char *ranks, const char *each,
                       const char *words)
{
    static bool follows[5] = {false, true, false, false, false};
    static const char *params[] = {"rank", "rank_host", "ranks", "size", "per_process"};
    static const char *const sizes[CASES_MAX] = {"1", "2", "3", "4", "5", "6"};
    static const char *const names[RANKS] = {"0", "1", "2", "3"};
    const char *texts[CASES_MAX * RANKS][5];
    struct report_point points[CASES_MAX * RANKS] = {0};
    struct report_case all[CASES_MAX * RANKS] = {0};
    struct report_bench bench = {.name = "x",
                                 .params = params,
                                 .follows = follows,
                                 .n_params = 5,
                                 .cases = all,
                                 .n_cases = cases * RANKS};
    struct report r = {.n_runs = 1, .benches = &bench, .n_benches = 1};
    struct stragglers found;

    for (size_t i = 0; i < cases * RANKS; i++) {
        texts[i][0] = names[i % RANKS];
        texts[i][1] = "";
        texts[i][2] = ranks;
        texts[i][3] = sizes[i / RANKS];
        texts[i][4] = each;
        points[i] = (struct report_point){.n_values = 1,
                                          .value = i % RANKS == 2 ? 90 : 3,
                                          .n_throttled = (i + RANKS - 2) % RANKS < held,
                                          .throttle = "power cap"};
        all[i] = (struct report_case){texts[i], "late_share", "percent", &points[i], false};
    }
    assert_int_equal(stragglers_make(&r, &found), 0);
    assert_int_equal(found.n, RANKS);
    assert_true(found.all[2].seems_one == (*each != '*'));
    bool said = strstr(stragglers_text(&r, &found, &bench, 0), words) != NULL;
    pool_release(&r.pool);
    return said;
}

static bool is_said(size_t cases, size_t held, const char *words)
{
    return is_said_of(cases, held, "4", "1", words);
}

static bool is_named(size_t cases)
{
    return is_said(cases, 0, "rank 2 is late");
}

/* A late rank's GPU that was held back where the others' were not; at full load power holds back all. */
static void test_a_late_rank_whose_gpu_was_held_back(void **state)
{
    static const char words[] = "(median of 4 cases); its GPU was held back by power cap, those of "
                                "3 of 3 other ranks were not";

    (void)state;
    assert_true(is_said(4, 1, words));
    assert_true(is_said(4, 2, "held back by power cap, those of 2 of 3 other ranks were not"));
    assert_false(is_said(4, 0, "held back"));
    assert_false(is_said(4, 3, "held back"));
    assert_false(is_said(4, 4, "held back"));
}

/* Some rank is late most in each case: in 1 or 2 cases of 4 ranks the same one often is (4 x 1/16), in 4 it is not (4 x 1/256). */
static void test_one_case_makes_no_straggler(void **state)
{
    (void)state;
    assert_false(is_named(1));
    assert_false(is_named(2));
    assert_true(is_named(4));
    assert_true(is_named(6));
}

/* Two processes of 4 ranks each: one of the two always is the late one. Of 8 ranks, one that is late in 60 % would be a straggler. */
static void test_processes_are_late_and_not_their_ranks(void **state)
{
    static bool follows[4] = {false, false, false, false};
    static const char *params[] = {"rank", "ranks", "size", "per_process"};
    const char *texts[12][4];
    struct report_point points[12] = {0};
    struct report_case all[12] = {0};
    struct report_bench bench = {.name = "x",
                                 .params = params,
                                 .follows = follows,
                                 .n_params = 4,
                                 .cases = all,
                                 .n_cases = 12};
    struct report r = {.n_runs = 1, .benches = &bench, .n_benches = 1};
    struct stragglers found;

    (void)state;
    for (size_t i = 0; i < 12; i++) {
        texts[i][0] = i % 2 ? "1" : "0";
        texts[i][1] = "8";
        texts[i][2] = (const char *[]){"1", "2", "3", "4", "5", "6"}[i / 2];
        texts[i][3] = "4";
        points[i] = (struct report_point){.n_values = 1, .value = i % 2 ? 60 : 40};
        all[i] = (struct report_case){texts[i], "late_share", "percent", &points[i], false};
    }
    assert_int_equal(stragglers_make(&r, &found), 0);
    assert_int_equal(found.n, 2);
    assert_int_equal(found.all[1].late, 0);
    assert_string_equal(stragglers_text(&r, &found, &bench, 0), "");
    pool_release(&r.pool);
    /* 4 processes of 2 ranks, as 4 ranks: 4 x 1/16 in 2 cases, 4 x 1/256 in 4 */
    assert_true(is_said_of(4, 0, "8", "2", "process 2 (ranks 4 to 5) is late"));
    assert_false(is_said_of(2, 0, "8", "2", "late"));
    assert_true(is_said_of(
        4, 1, "8", "2",
        "; one of its GPUs was held back by power cap, those of 3 of 3 other processes"));
    assert_false(is_said_of(6, 0, "8", "*", "late")); /* nobody knows how many there are */
}

static void test_late_is_more_than_chance(void **state)
{
    (void)state;
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

/* --- buckets --- */

static void test_the_best_bucket_is_apart_from_the_next(void **state)
{
    struct bucket_point p[] = {{.bytes = 1, .time_us = 12, .low_us = 11.9, .high_us = 12.1},
                               {.bytes = 4, .time_us = 10, .low_us = 9.9, .high_us = 10.1},
                               {.bytes = 16, .time_us = 10.3, .low_us = 10.2, .high_us = 10.4},
                               {.bytes = 64, .time_us = NAN, .low_us = NAN, .high_us = NAN}};
    bool tied[4], decided;

    (void)state;
    assert_int_equal(buckets_best(p, 4, tied, &decided), 1);
    assert_true(decided);
    assert_true(!tied[0] && tied[1] && !tied[2] && !tied[3]);
    p[2].low_us = 10.05;
    assert_int_equal(buckets_best(p, 4, tied, &decided), 1);
    assert_true(tied[1] && tied[2] && !tied[0]);
    p[2].low_us = p[2].high_us = NAN; /* not known: not decided */
    assert_int_equal(buckets_best(p, 4, tied, &decided), 1);
    assert_false(decided);
    assert_int_equal(buckets_best(p + 3, 1, tied, &decided), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_terms_of_algorithms),
        cmocka_unit_test(test_formulas_of_all_benchmarks_are_read),
        cmocka_unit_test(test_formulas),
        cmocka_unit_test(test_long_formulas_are_refused),
        cmocka_unit_test(test_an_exact_model_is_found),
        cmocka_unit_test(test_noise_shows_in_spread_and_intervals),
        cmocka_unit_test(test_errors_are_of_logarithms),
        cmocka_unit_test(test_what_does_not_determine_it_is_refused),
        cmocka_unit_test(test_8_are_predicted_from_2_and_4),
        cmocka_unit_test(test_a_ratio_has_the_interval_of_both),
        cmocka_unit_test(test_a_slow_host_is_named),
        cmocka_unit_test(test_one_bad_link_is_no_slow_host),
        cmocka_unit_test(test_two_slow_hosts_are_named),
        cmocka_unit_test(test_one_way_is_told_from_both),
        cmocka_unit_test(test_a_fast_pair_makes_nobody_slow),
        cmocka_unit_test(test_noise_and_small_differences_name_nobody),
        cmocka_unit_test(test_missing_pairs),
        cmocka_unit_test(test_late_is_more_than_chance),
        cmocka_unit_test(test_one_case_makes_no_straggler),
        cmocka_unit_test(test_processes_are_late_and_not_their_ranks),
        cmocka_unit_test(test_a_late_rank_whose_gpu_was_held_back),
        cmocka_unit_test(test_the_best_bucket_is_apart_from_the_next),
    };

    return cmocka_run_group_tests(tests, ask_benches, forget_benches);
}
