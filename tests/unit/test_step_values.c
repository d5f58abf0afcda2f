/* SPDX-License-Identifier: Apache-2.0 */
/* What a step's bytes need of the links between nodes, and what its rows say of its time. */
#include "benches/step/work.h"
#include "tests/unit/unit.h"
#include "tests/unit/wires.h"

#include "benches/step/run.h"
#include "core/rng.h"
#include "core/stats.h"

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

/* ns that links of these rates, in bytes a ns, need. */
static double network(const char *nodes, struct step_spec spec, const double *rates,
                      bool on_the_way, unsigned *named)
{
    struct step_layer layers[4];
    struct step_traffic traffic;

    spec.ranks = (uint32_t)strlen(nodes);
    spec.n_layers = spec.batch = 4;
    spec.tp += !spec.tp;
    spec.pp += !spec.pp;
    spec.micro += !spec.micro;
    spec.type = COLLECTIVE_F32;
    spec.bucket_bytes = 5000;
    spec.overlap = 1;
    fill_layers(layers);
    struct world *w = world_of(nodes);
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
TEST(test_links_bound_a_step)
{
    const double half[] = {1, .5, 1, 1}, some[] = {1, NAN, 1, 1};
    unsigned named = 9;
    expect("aaaa", SPEC(), 0);
    expect("abcd", SPEC(), 2 * .75 * 16000);
    expect("ab", SPEC(), 16000);
    expect("aabb", SPEC(), 16000); /* ranks of a node add before they send */
    expect("abcd", SPEC(.zero = 1), 2 * .75 * 16000);
    expect("abcd", SPEC(.zero = 3), 3 * .75 * 16000);
    /* what is little one way is much the other way, and parameters go the way back */
    expect("aaab", SPEC(.zero = 1), 16000);
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

/* Two ranks: the slower one's compute counts, alone and in the step. What runs alone may be disturbed: a step of 80 ns shows
 * that 100 are no bound. */
TEST(test_no_step_is_faster_than_the_bound_of_its_compute)
{
    const double alone[] = {100, 90, 130}, in_step[] = {140, 95, 80};
    static struct step_work w;
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
TEST(test_compute_that_was_slower_alone_was_disturbed)
{
    double below[16], about[16], few[] = {-30, 4};
    for (int i = 0; i < 16; i++) {
        below[i] = -36 + 4 * (i % 5);
        about[i] = -6 + 4 * (i % 4); /* -6, -2, 2, 6 */
    }
    assert_true(values_was_disturbed(below, 16) && values_was_disturbed(below, 2));
    assert_false(values_was_disturbed(about, 16) || values_was_disturbed(few, 2) ||
                 values_was_disturbed(about, 0));
    assert_false(
        values_was_disturbed((const double[]){-.5}, 1)); /* within what clocks of cores do */
}

/* Of two ranks, the times of the one that ends last are the step's. Then two stages, of 1000 ns: the first computes
 * 300 ns and waits 600 ns for sums at the end, the second waits all but 50 ns, 350 at most of it not because of the sums. */
TEST(test_what_is_not_compute_is_shared_out)
{
    static struct step_work w;
    struct collective_times alike[2] = {{.ns = 900}, {.ns = 600}};
    struct collective_times times[2] = {{.ns = 1000}, {.ns = 400}};
    w = (struct step_work){.n = 2, .spec = {.tp = 1, .pp = 1, .ranks = 2}};
    alike[0].own_ns[STEP_NS_SUMS] = 100;
    alike[0].own_ns[STEP_NS_TAIL] = 200;
    alike[1].own_ns[STEP_NS_SUMS] = 50;
    values_count(&w, alike, 1000, 0);
    assert_true(fabs(w.shares.exposed[0] - 30) < 1e-9);
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

/* What a rank waited is of each sample. A step without a time has no sample. */
TEST(test_waits_are_kept_by_rank_and_sample)
{
    static struct step_work w;
    static double waits[2 * STEP_SAMPLES];
    struct collective_times times[2] = {{.ns = 1000}, {.ns = 1000}};
    const double *second = waits + STEP_SAMPLES;
    w = (struct step_work){.n = 2, .spec = {.tp = 1, .pp = 1, .ranks = 2}, .waits_ms = waits};
    times[0].own_ns[STEP_NS_SUMS] = 1000000;
    times[0].own_ns[STEP_NS_TAIL] = 200000;
    times[1].own_ns[STEP_NS_PIPE] = 30000;
    values_count(&w, times, 1000, 0);
    values_count(&w, times, 0, 0);
    times[0].own_ns[STEP_NS_SUMS] = 500000;
    times[1].own_ns[STEP_NS_PIPE] = 6000;
    values_count(&w, times, 1000, 0);
    assert_int_equal(w.shares.n, 2);
    assert_true(fabs(waits[0] - 1.2) < 1e-12 && fabs(waits[1] - .7) < 1e-12);
    assert_true(fabs(second[0] - .03) < 1e-12 && fabs(second[1] - .006) < 1e-12);
    for (int i = 0; i < STEP_SAMPLES + 2;
         i++) /* those beyond what there is room for are left out */
        values_count(&w, times, 1000, 0);
    assert_true(fabs(second[-1] - .7) < 1e-12 && fabs(second[0] - .03) < 1e-12);
}
