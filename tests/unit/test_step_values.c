/* SPDX-License-Identifier: Apache-2.0 */
/* The interval of a job's efficiency, against the truth of two made-up jobs; and what a step's bytes need of the links between nodes. */
#include "benches/step/work.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "benches/step/run.h"
#include "core/rng.h"
#include "core/stats.h"

#define JOBS 1000

/* A rate whose median is known: symmetric, or with a tail of slow steps. */
static void fill(struct rng *rng, double *rates, size_t n, double median, bool tail)
{
    for (size_t i = 0; i < n; i++) {
        double x = rng_normal(rng);
        rates[i] = median / (1 + .05 * (tail && x > 0 ? 3 * x : x));
    }
}

/* Of so many pairs of jobs, one of half the rate of the other: how often the interval of a row has 50 %. Few samples may have
 * none; from 50 on all have. */
static double covered(size_t n_base, size_t n, bool tail)
{
    static double base[STEP_SAMPLES], rates[STEP_SAMPLES];
    double percent[VALUES_BLOCKS];
    unsigned inside = 0, told = 0;
    struct rng rng;

    rng_seed(&rng, n_base + n);
    for (unsigned i = 0; i < JOBS; i++) {
        struct median_ci ci;
        fill(&rng, base, n_base, 400, tail);
        fill(&rng, rates, n, 200, tail);
        size_t values = values_efficiency(base, n_base, rates, n, percent);
        assert_int_equal(stats_ci_samples(percent, values, .95, &ci), 0);
        told += !isnan(ci.low);
        inside += ci.low <= 50 && ci.high >= 50;
    }
    assert_true(told == JOBS || (fmin((double)n, (double)n_base) < 50 && told > JOBS / 2));
    return (double)inside / told;
}

/* The base was measured, too: with few samples it varies more than the other job. */
static void test_interval_covers_the_truth(void **state)
{
    static const size_t jobs[][2] = {{160, 160}, {40, 800},   {800, 40},
                                     {20, 25},   {2048, 100}, {50, 70}};

    (void)state;
    for (size_t i = 0; i < sizeof(jobs) / sizeof(*jobs); i++)
        for (int tail = 0; tail < 2; tail++) {
            double share = covered(jobs[i][0], jobs[i][1], tail);
            if (share < .92)
                fail_msg("%zu and %zu samples: the interval covers %.3f", jobs[i][0], jobs[i][1],
                         share);
        }
}

static void test_equal_jobs_and_few_samples(void **state)
{
    double base[3] = {4, 4, 4}, rates[40], percent[VALUES_BLOCKS];

    (void)state;
    for (size_t i = 0; i < 40; i++)
        rates[i] = 3;
    assert_int_equal(values_efficiency(base, 3, rates, 40, percent), 3);
    assert_true(percent[0] == 75 && percent[2] == 75);
    assert_int_equal(values_efficiency(base, 0, rates, 40, percent), 0);
    assert_int_equal(values_efficiency(rates, 40, base, 0, percent), 0);
}

/* Rates that grow by 1: the median of a block is its middle, so each tells where the next begins. */
static void test_blocks_have_all_samples(void **state)
{
    static double base[STEP_SAMPLES], rates[STEP_SAMPLES];
    double percent[VALUES_BLOCKS];

    (void)state;
    for (size_t i = 0; i < STEP_SAMPLES; i++) {
        base[i] = 100;
        rates[i] = (double)i;
    }
    for (size_t n = 1; n <= STEP_SAMPLES; n++) {
        double begin = 0, most = 0, least = STEP_SAMPLES;
        size_t blocks = values_efficiency(base, n, rates, n, percent);
        for (size_t i = 0; i < blocks; i++) {
            double samples = 2 * (percent[i] - begin) + 1;
            begin += samples;
            most = fmax(most, samples);
            least = fmin(least, samples);
        }
        if (begin != (double)n || most > least + 3)
            fail_msg("of %zu samples, blocks have %g, each %g to %g", n, begin, least, most);
    }
}

/* ---- The links between nodes ---- */

/* Four blocks of 1000 numbers each, whose products take 1000 operations; 100 numbers of a sample go from one to the next, and as
 * many are summed over tensor-parallel ranks. */
static void fill_layers(struct step_layer layers[4])
{
    for (unsigned i = 0; i < 4; i++)
        layers[i] = (struct step_layer){.parameters = 1000,
                                        .forward_flop = 1000,
                                        .backward_flop = 2000,
                                        .output = 100,
                                        .sum = 100,
                                        .block = i,
                                        .split = MODEL_ROW};
}

/* nodes: a letter for each rank. ns that links of these rates, in bytes a ns, need. */
static double network(const char *nodes, struct step_spec spec, const double *rates,
                      bool on_the_way, unsigned *named)
{
    char error[256] = "";
    struct world *w = NULL;
    struct step_layer layers[4];
    struct step_traffic traffic;

    spec.ranks = (uint32_t)strlen(nodes);
    spec.n_layers = 4;
    spec.batch = 4;
    spec.tp += !spec.tp;
    spec.pp += !spec.pp;
    spec.micro += !spec.micro;
    spec.type = COLLECTIVE_F32;
    spec.bucket_bytes = 5000;
    spec.overlap = 1;
    fill_layers(layers);
    assert_int_equal(world_new(&w, "local", 0, spec.ranks, error, sizeof(error)), 0);
    for (unsigned i = 0; nodes[i]; i++) {
        world_self(&w->members[i]);
        snprintf(w->members[i].host, sizeof(w->members[i].host), "%c", nodes[i]);
    }
    world_number(w);
    assert_int_equal(values_traffic(&spec, layers, w, on_the_way, &traffic), 0);
    double ns = values_network_ns(&traffic, rates, world_nodes(w), named);
    world_free(w);
    return ns;
}

static void expect(const char *nodes, struct step_spec spec, double want)
{
    static const double one[] = {1, 1, 1, 1};
    unsigned named;
    double got = network(nodes, spec, one, false, &named);

    if (!(fabs(got - want) <= 1e-9 * want))
        fail_msg("%s: %.9g ns, not %.9g", nodes, got, want);
}

#define SPEC(...) ((struct step_spec){.ep = 1, ##__VA_ARGS__})

/* Links of 1 GB/s, a byte a ns, and 16000 bytes of gradients. */
static void test_links_bound_a_step(void **state)
{
    const double half[] = {1, .5, 1, 1}, some[] = {1, NAN, 1, 1};
    unsigned named = 9;

    (void)state;
    expect("aaaa", SPEC(), 0);
    expect("abcd", SPEC(), 2 * .75 * 16000);
    expect("ab", SPEC(), 16000);
    expect("aabb", SPEC(), 16000); /* ranks of a node add before they send */
    expect("abcd", SPEC(.zero = 1), 2 * .75 * 16000);
    expect("abcd", SPEC(.zero = 3), 3 * .75 * 16000);
    /* what is little one way is much the other way, and parameters go the way back */
    expect("aaab", SPEC(.zero = 1), 16000);
    /* a server gets all of three workers' gradients, and sends as much, both at once; of two servers each a half */
    expect("abcd", SPEC(.servers = 1), 3 * 16000);
    expect("abcd", SPEC(.servers = 2), 16000); /* a worker sends to both */
    /* 100 numbers of 4 samples go to the next stage, and back, both at once */
    expect("ab", SPEC(.pp = 2, .micro = 2), 1600);
    /* halves of the layers; their activations are summed inside of a node, or, at 4 sums of 1600 bytes, between two */
    expect("aabb", SPEC(.tp = 2), 16000);
    expect("ab", SPEC(.tp = 2), 4 * 1600);
    assert_true(network("abcd", SPEC(), half, false, &named) == fmax(16000 / .5, 6 * 16000 / 3.5));
    assert_int_equal(named, 1);
    assert_true(network("abcd", SPEC(), some, false, &named) ==
                16000); /* the other may be as quick as it likes */
    const double one[] = {1, 1, 1, 1};
    assert_true(network("abcd", SPEC(), one, true, &named) == 16000); /* switches that add */
}

/* ---- Servers ---- */

/* Two workers and a server, which ends last: the workers' times are the step's. */
static void test_servers_are_not_exposed(void **state)
{
    static struct step_work w;
    struct collective_times times[3] = {{.ns = 900}, {.ns = 600}, {.ns = 1000}};

    (void)state;
    w = (struct step_work){.n = 3, .spec = {.servers = 1, .tp = 1, .pp = 1, .ranks = 3}};
    times[0].own_ns[STEP_NS_SUMS] = 100;
    times[0].own_ns[STEP_NS_TAIL] = 200;
    times[1].own_ns[STEP_NS_SUMS] = 50;
    times[2].own_ns[STEP_NS_TAIL] = 7;
    values_count(&w, times, 1000, 0);
    assert_true(fabs(w.shares.exposed[0] - 30) < 1e-9);
}

/* Two stages, of 1000 ns. The first computes 300 ns and waits 600 ns for sums at the end, the second waits all but 50 ns: 350 of
 * these at most are not because of the sums. */
static void test_shares_are_no_more_than_the_step(void **state)
{
    static struct step_work w;
    struct collective_times times[2] = {{.ns = 1000}, {.ns = 400}};

    (void)state;
    w = (struct step_work){.n = 2, .spec = {.tp = 1, .pp = 2, .ranks = 2}};
    times[0].own_ns[STEP_NS_TAIL] = 600;
    times[0].own_ns[STEP_NS_PIPE] = 100;
    times[1].own_ns[STEP_NS_PIPE] = 350;
    values_count(&w, times, 1000, 0);
    assert_true(fabs(w.shares.exposed[0] - 60) < 1e-9);
    assert_true(fabs(w.shares.bubble[0] - (10 + 40) / 2.) < 1e-9);
    times[0].own_ns[STEP_NS_TAIL] = 0; /* no sums: nothing is left out */
    values_count(&w, times, 1000, 0);
    assert_true(fabs(w.shares.bubble[1] - (10 + 95) / 2.) < 1e-9);
}

/* What a rank waited is of each sample, and of a window's steps the mean. A step without a time has no sample. */
static void test_waits_are_kept_by_rank_and_sample(void **state)
{
    static struct step_work w;
    static double waits[3 * STEP_SAMPLES];
    struct collective_times times[3] = {{.ns = 1000}, {.ns = 1000}, {.ns = 1000}};

    (void)state;
    w = (struct step_work){
        .n = 3, .spec = {.tp = 1, .pp = 1, .servers = 1, .ranks = 3}, .waits_ms = waits};
    times[0].own_ns[STEP_NS_SUMS] = 1000000;
    times[0].own_ns[STEP_NS_TAIL] = 200000;
    times[1].own_ns[STEP_NS_PIPE] = 30000;
    times[0].own_ns[STEP_STEPS] = 4;
    times[1].own_ns[STEP_STEPS] = 6;
    values_count(&w, times, 1000, 0);
    values_count(&w, times, 0, 0);
    w.spec.asynchronous = 1;
    values_count(&w, times, 1000, 0);
    assert_int_equal(w.shares.n, 2);
    assert_true(fabs(waits[0] - 1.2) < 1e-12 && fabs(waits[1] - .3) < 1e-12);
    assert_true(fabs(waits[STEP_SAMPLES] - .03) < 1e-12 &&
                fabs(waits[STEP_SAMPLES + 1] - .005) < 1e-12);
    for (int i = 0; i < 2050; i++) /* those beyond what there is room for are left out */
        values_count(&w, times, 1000, 0);
    assert_true(fabs(waits[STEP_SAMPLES - 1] - .3) < 1e-12 &&
                fabs(waits[STEP_SAMPLES] - .03) < 1e-12);
}

/* ---- Real compute ---- */

/* Two ranks: the slower one's compute counts, alone and in the step. What runs alone may be disturbed: a step of 80 ns shows
 * that 100 are no bound. */
static void test_no_step_is_faster_than_the_bound_of_its_compute(void **state)
{
    const double alone[] = {100, 90, 130}, in_step[] = {140, 95, 80};
    static struct step_work w;

    (void)state;
    w = (struct step_work){.n = 2, .spec = {.tp = 1, .pp = 1, .ranks = 2}};
    for (int i = 0; i < 3; i++) {
        struct collective_times times[2] = {{.ns = 200}, {.ns = 200}};
        times[0].own_ns[STEP_NS_COMPUTE] = 20;
        times[1].own_ns[STEP_NS_COMPUTE] = (uint64_t)in_step[i];
        values_count(&w, times, 200, (uint64_t)alone[i]);
        assert_true(fabs(w.shares.slowdown[i] - 100 * (in_step[i] / alone[i] - 1)) < 1e-9);
        assert_true(fabs(values_compute_ns(&w.shares) - (i == 2 ? 80 : i ? 90 : 100)) < 1e-9);
    }
}

/* Communication makes no compute faster. Where it seems so by more than chance, something else slowed it down alone. */
static void test_compute_that_was_slower_alone_was_disturbed(void **state)
{
    double below[16], about[16], few[] = {-30, 4};

    (void)state;
    for (int i = 0; i < 16; i++) {
        below[i] = -36 + 4 * (i % 5);
        about[i] = -6 + 4 * (i % 4); /* -6, -2, 2, 6 */
    }
    assert_true(values_was_disturbed(below, 16));
    assert_true(values_was_disturbed(below, 2));
    assert_false(values_was_disturbed(about, 16));
    assert_false(values_was_disturbed(few, 2));
    assert_false(
        values_was_disturbed((const double[]){-.5}, 1)); /* within what clocks of cores do */
    assert_false(values_was_disturbed(about, 0));
}

/* ---- The smallest job ---- */

/* Of a sweep of two sizes of buckets, whose most ranks come first. */
static void test_each_job_has_the_smallest_of_its_own(void **state)
{
    static struct step_work w;
    const uint64_t ranks[] = {4, 4, 1, 2, 2}, buckets[] = {1, 2, 1, 1, 2};
    struct step_params p = {.model = "x"};

    (void)state;
    for (int i = 0; i < 5; i++) {
        p.ranks = ranks[i];
        p.bucket = buckets[i];
        values_note_job(&w, &p);
    }
    assert_int_equal(w.n_bases, 2);
    p.ranks = 4;
    assert_int_equal(values_base(&w, &p)->ranks, 2); /* the second has no job of one rank */
    p.bucket = 1;
    assert_int_equal(values_base(&w, &p)->ranks, 1);
    assert_int_equal(values_base(&w, &p)->n, 0);
    p.bucket = 3;
    assert_null(values_base(&w, &p));
    w.chosen = true; /* the next sweep, perhaps of another command line */
    values_note_job(&w, &p);
    assert_int_equal(w.n_bases, 1);
    values_forget_jobs(&w);
}

/* However many jobs a sweep has. Wrong data are no base, and do not leave the one before in its place. */
static void test_each_of_many_jobs_has_a_base(void **state)
{
    enum { JOBS_OF_SWEEP = 1000 };
    static struct step_work w;
    const double rates[] = {5, 6, 7};
    struct step_params p = {.model = "x"};

    (void)state;
    w = (struct step_work){0};
    for (p.bucket = 1; p.bucket <= JOBS_OF_SWEEP; p.bucket++)
        for (p.ranks = 2; p.ranks; p.ranks--)
            assert_int_equal(values_note_job(&w, &p), 0);
    assert_int_equal(w.n_bases, JOBS_OF_SWEEP);
    for (p.bucket = 1; p.bucket <= JOBS_OF_SWEEP; p.bucket++) {
        struct step_base *base = values_base(&w, &p);
        assert_int_equal(base->ranks, 1);
        assert_int_equal(values_keep_base(base, rates, p.bucket % 4), 0);
    }
    for (p.bucket = 1; p.bucket <= JOBS_OF_SWEEP; p.bucket++) {
        struct step_base *base = values_base(&w, &p);
        assert_int_equal(base->n, p.bucket % 4);
        assert_true(base->n < 3 || base->rates[2] == 7);
        assert_int_equal(values_keep_base(base, NULL, 0), 0);
        assert_int_equal(base->n, 0);
    }
    values_forget_jobs(&w);
}

/* ---- Asynchronous workers ---- */

/* Of nine parts of its time the fast ones wait six, for the slow one: it alone shows what the way to the
 * servers takes, if there is a bound. Else nobody waits for others. */
static void test_who_waits_for_a_slow_worker_is_not_exposed(void **state)
{
    static struct step_work w;
    struct collective_times times[4] = {{.ns = 900}, {.ns = 900}, {.ns = 900}, {.ns = 900}};

    (void)state;
    times[0].own_ns[STEP_NS_SUMS] = times[1].own_ns[STEP_NS_TAIL] = 600;
    times[2].own_ns[STEP_NS_SUMS] = 90; /* the slow one */
    for (unsigned bounded = 0; bounded < 2; bounded++) {
        w = (struct step_work){.n = 4,
                               .spec = {.servers = 1,
                                        .tp = 1,
                                        .pp = 1,
                                        .ranks = 4,
                                        .asynchronous = 1,
                                        .staleness = bounded ? 2 : STEP_STALENESS_MOST}};
        values_count(&w, times, 100, 0);
        assert_true(fabs(w.shares.exposed[0] - (bounded ? 10 : 100. * (600 + 600 + 90) / 2700)) <
                    1e-9);
    }
}

/* As network(): the most steps a ns of all workers. A worker's compute takes 4 x 12000 ns, the last one's `slow` times as long. */
static struct values_free bounded_limit(const char *nodes, unsigned servers, double slow,
                                        bool timed, const double *rates, unsigned staleness)
{
    char error[256] = "";
    struct world *w = NULL;
    struct step_layer layers[4];
    struct values_free limit = {0};
    struct step_spec spec = {.ranks = (uint32_t)strlen(nodes),
                             .servers = servers,
                             .asynchronous = 1,
                             .staleness = staleness,
                             .tp = 1,
                             .pp = 1,
                             .ep = 1,
                             .micro = 1,
                             .batch = 4,
                             .n_layers = 4,
                             .ns_per_flop = 1,
                             .compute = timed ? STEP_TIMED : STEP_PRODUCT,
                             .slow_times = slow,
                             .type = COLLECTIVE_F32,
                             .bucket_bytes = 5000,
                             .overlap = 1};

    spec.slow_rank = spec.ranks - servers - 1;
    fill_layers(layers);
    assert_int_equal(world_new(&w, "local", 0, spec.ranks, error, sizeof(error)), 0);
    for (unsigned i = 0; nodes[i]; i++) {
        world_self(&w->members[i]);
        snprintf(w->members[i].host, sizeof(w->members[i].host), "%c", nodes[i]);
    }
    world_number(w);
    assert_int_equal(values_free_limit(&spec, layers, w, rates, &limit), 0);
    world_free(w);
    return limit;
}

static struct values_free free_limit(const char *nodes, unsigned servers, double slow, bool timed,
                                     const double *rates)
{
    return bounded_limit(nodes, servers, slow, timed, rates, STEP_STALENESS_MOST);
}

/* The ns that a step of all workers takes on average, and the node whose links bound it; -1: none's. */
static void expect_free(struct values_free got, double ns, int node)
{
    if (!(fabs(1 / got.rate - ns) <= 1e-9 * ns) || (int)got.node != node)
        fail_msg("%.9g ns of node %d, not %.9g of %d", 1 / got.rate, (int)got.node, ns, node);
}

/* 16000 bytes of gradients to the servers, and as many back; compute of 48000 ns. */
static void test_links_bound_asynchronous_workers(void **state)
{
    const double one[] = {1, 1, 1, 1, 1}, quick[] = {9, 9, 9, 9, 9};
    const double unknown[] = {NAN, NAN, NAN, NAN, NAN}, slow_server[] = {1, 1, 1, .25, 1};
    const double slow_worker[] = {.25, 9, 9, 9, 9};

    (void)state;
    /* compute bounds it: of 48000, 48000 and 96000 ns */
    expect_free(free_limit("abcd", 1, 2, true, quick), 48000 / 2.5, -1);
    expect_free(free_limit("abcd", 1, 2, true, unknown), 48000 / 2.5, -1);
    expect_free(free_limit("aaaa", 1, 1, true, one), 48000 / 3., -1);
    /* the server's link: 16000 bytes of each step */
    expect_free(free_limit("abcd", 1, 1, true, slow_server), 16000 / .25, 3);
    expect_free(free_limit("abcd", 1, 1, false, one), 16000, 3);
    /* two servers have a half of each; together as much as two links carry */
    expect_free(free_limit("abcde", 2, 1, false, one), 8000, 3);
    /* a slow link is of its worker alone: 64000 ns; the others have 48000 */
    expect_free(free_limit("abcd", 1, 1, true, slow_worker), 1 / (1 / 64000. + 2 / 48000.), 0);
    /* a worker beside the server needs no link: the other two share it */
    expect_free(free_limit("abcc", 1, 1, true, (const double[]){1, 1, .25}),
                1 / (1 / 48000. + .25 / 16000), 2);
    /* real compute: such a worker may be as quick as it likes */
    assert_true(isinf(free_limit("abcc", 1, 1, false, one).rate));
    assert_true(isinf(free_limit("abcd", 1, 1, false, unknown).rate));
    /* with a bound all go at the pace of the slowest: of its compute, its link, or the server's */
    expect_free(bounded_limit("abcd", 1, 4, true, quick, 3), 4 * 48000 / 3., -1);
    expect_free(bounded_limit("abcd", 1, 4, true, quick, 0), 4 * 48000 / 3., -1);
    expect_free(bounded_limit("abcd", 1, 1, true, slow_worker, 20), 64000 / 3., 0);
    expect_free(bounded_limit("abcd", 1, 1, true, slow_server, 20), 64000, 3);
    expect_free(bounded_limit("abcc", 1, 1, false, one, 1), 2 * 16000 / 3., 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interval_covers_the_truth),
        cmocka_unit_test(test_equal_jobs_and_few_samples),
        cmocka_unit_test(test_blocks_have_all_samples),
        cmocka_unit_test(test_links_bound_asynchronous_workers),
        cmocka_unit_test(test_links_bound_a_step),
        cmocka_unit_test(test_servers_are_not_exposed),
        cmocka_unit_test(test_waits_are_kept_by_rank_and_sample),
        cmocka_unit_test(test_no_step_is_faster_than_the_bound_of_its_compute),
        cmocka_unit_test(test_compute_that_was_slower_alone_was_disturbed),
        cmocka_unit_test(test_each_job_has_the_smallest_of_its_own),
        cmocka_unit_test(test_each_of_many_jobs_has_a_base),
        cmocka_unit_test(test_shares_are_no_more_than_the_step),
        cmocka_unit_test(test_who_waits_for_a_slow_worker_is_not_exposed)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
