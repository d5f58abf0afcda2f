/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the plans of a training step: bytes by formulas of the literature, times by a simulation that knows nothing of
 * how plans are made, and that all ranks get to their end. */
#include "benches/step/plan.h"
#include "tests/unit/unit.h"

#define RANKS_MOST 32
#define MIB        (1ull << 20)

/* A simulation: a call begins when all of its members have come to it. */
struct rank {
    struct step_plan plan;
    double *ended; /* by operation; < 0: not yet */
    size_t next[STEP_LANES];
    double free_ns[STEP_LANES];
    double compute_ns, end_ns;
};

struct run {
    struct step_spec spec;
    struct step_layer layers[1024];
    struct rank ranks[RANKS_MOST];
    double ns_per_byte; /* of a call: its bus bytes; a message between stages: its bytes */
};

static void prepare(struct run *r)
{
    for (unsigned i = 0; i < r->spec.ranks; i++) {
        struct rank *k = &r->ranks[i];
        memset(k, 0, sizeof(*k));
        assert_int_equal(step_plan_make(&k->plan, &r->spec, r->layers, i), 0);
        k->ended = malloc(k->plan.n_ops * sizeof(double));
        for (size_t op = 0; op < k->plan.n_ops; op++)
            k->ended[op] = -1;
    }
}

static void release(struct run *r)
{
    for (unsigned i = 0; i < r->spec.ranks; i++) {
        step_plan_release(&r->ranks[i].plan);
        free(r->ranks[i].ended);
    }
}

/* The next operation of a lane; -1: it is done. */
static long head(const struct rank *k, unsigned lane)
{
    for (size_t i = k->next[lane]; i < k->plan.n_ops; i++)
        if (k->plan.ops[i].lane == lane)
            return (long)i;
    return -1;
}

/* When it could begin; -1: something that it waits for has not ended. */
static double ready(const struct rank *k, long number)
{
    const struct step_op *op = &k->plan.ops[number];
    double at = k->free_ns[op->lane];

    for (uint32_t i = 0; i < op->n_deps; i++) {
        uint32_t dep = k->plan.deps[op->first_dep + i];
        assert_true(dep < (uint32_t)number); /* nobody waits for what comes later */
        if (k->ended[dep] < 0)
            return -1;
        at = k->ended[dep] > at ? k->ended[dep] : at;
    }
    return at;
}

static void end(struct rank *k, long number, double at)
{
    unsigned lane = k->plan.ops[number].lane;

    k->ended[number] = at;
    k->free_ns[lane] = at;
    k->next[lane] = (size_t)number + 1;
    k->end_ns = at > k->end_ns ? at : k->end_ns;
}

static const struct step_part *part_of(const struct rank *k, long number)
{
    return &k->plan.parts[k->plan.ops[number].part];
}

/* The same call at the head of a lane of that rank; -1: it is not there yet. */
static long partner(const struct rank *k, const struct step_part *part, uint64_t count)
{
    for (unsigned lane = 1; lane < STEP_LANES; lane++) {
        long number = head(k, lane);
        if (number < 0 || part_of(k, number)->id != part->id)
            continue;
        assert_int_equal(part_of(k, number)->calls[k->plan.ops[number].call].count, count);
        assert_int_equal(part_of(k, number)->n, part->n);
        return number;
    }
    return -1;
}

static bool try_call(struct run *r, const struct rank *k, long number)
{
    const struct step_part *part = part_of(k, number);
    uint64_t count = part->calls[k->plan.ops[number].call].count;
    double at = 0, bytes = collective_bus_factor(part->op, part->n) * (double)count;
    long its[RANKS_MOST];

    for (unsigned i = 0; i < part->n; i++) {
        const struct rank *member = &r->ranks[part->members[i]];
        its[i] = partner(member, part, count);
        double could = its[i] < 0 ? -1 : ready(member, its[i]);
        if (could < 0)
            return false;
        at = could > at ? could : at;
    }
    at += r->ns_per_byte * bytes * (double)collective_type_bytes(r->spec.type);
    for (unsigned i = 0; i < part->n; i++)
        end(&r->ranks[part->members[i]], its[i], at);
    return true;
}

static bool try_head(struct run *r, struct rank *k, unsigned lane, unsigned rank)
{
    long number = head(k, lane);
    double at = number < 0 ? -1 : ready(k, number);

    if (at < 0)
        return false;
    if (k->plan.ops[number].kind == STEP_CALL)
        return try_call(r, k, number);
    double ns = step_op_ns(&k->plan.ops[number], &r->spec, rank);
    k->compute_ns += ns;
    end(k, number, at + ns);
    return true;
}

/* The time of the step. Fails where ranks wait for one another for good. */
static double simulate(struct run *r)
{
    double slowest = 0;
    bool moved = true;

    prepare(r);
    while (moved) {
        moved = false;
        for (unsigned i = 0; i < r->spec.ranks; i++)
            for (unsigned lane = 0; lane < STEP_LANES; lane++)
                while (try_head(r, &r->ranks[i], lane, i))
                    moved = true;
    }
    for (unsigned i = 0; i < r->spec.ranks; i++) {
        for (unsigned lane = 0; lane < STEP_LANES; lane++)
            if (head(&r->ranks[i], lane) >= 0)
                fail_msg("rank %u, lane %u never ends", i, lane);
        slowest = r->ranks[i].end_ns > slowest ? r->ranks[i].end_ns : slowest;
    }
    return slowest;
}

static double sent(const struct run *r, unsigned rank)
{
    return step_bytes(&r->ranks[rank].plan, &r->spec);
}

static void near(double value, double wanted, double share)
{
    if (!(value <= wanted * (1 + share) && value >= wanted * (1 - share)))
        fail_msg("%.9g, must be %.9g", value, wanted);
}

static const struct step_spec plain = {.ranks = 4,
                                       .tp = 1,
                                       .pp = 1,
                                       .ep = 1,
                                       .micro = 1,
                                       .prefetch = 1,
                                       .overlap = 1,
                                       .type = COLLECTIVE_F32,
                                       .batch = 8,
                                       .bucket_bytes = 25 * MIB,
                                       .ns_per_flop = 1,
                                       .slow_times = 1};

/* n equal layers, each a block: 1 to go forward, 2 to go back, of a sample; 1000 parameters. */
static struct run *equal(unsigned n)
{
    struct run *r = calloc(1, sizeof(*r));

    r->spec = plain;
    r->spec.n_layers = n;
    for (unsigned i = 0; i < n; i++)
        r->layers[i] = (struct step_layer){
            .parameters = 1000, .forward_flop = 1, .backward_flop = 2, .output = 10, .block = i};
    return r;
}

static struct run *model(const char *name, uint64_t sequence, struct model *m)
{
    struct run *r = calloc(1, sizeof(*r));
    char error[512] = "";

    if (model_load(name, m, error, sizeof(error)))
        fail_msg("%s", error);
    assert_true(m->n_layers <= sizeof(r->layers) / sizeof(*r->layers));
    step_layers(m, sequence, r->layers);
    r->spec = plain;
    r->spec.n_layers = (uint32_t)m->n_layers;
    return r;
}

static void done(struct run *r)
{
    release(r);
    free(r);
}

/* A ring sends 2 (n-1)/n of all gradients; ZeRO 1 and 2 as much, 3 half as much again. */
TEST(test_bytes_of_data_parallel)
{
    static const char *const names[] = {"resnet50", "bert-large", "gpt2-xl"};
    for (size_t i = 0; i < 3; i++)
        for (unsigned zero = 0; zero <= 3; zero++)
            for (unsigned n = 2; n <= 8; n += 3) {
                struct model m;
                struct run *r = model(names[i], 128, &m);
                r->spec.ranks = n;
                r->spec.zero = zero;
                simulate(r);
                double all = 4.0 * (double)m.parameters * (n - 1) / n;
                near(sent(r, 0), all * (zero == 3 ? 3 : 2), 1e-4); /* blocks are rounded up */
                near(sent(r, n - 1), sent(r, 0), 1e-9);
                done(r);
                model_release(&m);
            }
}

/* ZeRO 2 and 3 keep a part of the gradients alone (arXiv:1910.02054, section 5.2): each of m micro-batches is scattered. ZeRO 2
 * gathers the parameters once, 3 twice for each micro-batch. In (n-1)/n of all: 2, 2, m + 1, 3 m; without overlap each of them
 * adds to the compute. The pipeline has half of the parameters in each stage. */
TEST(test_micro_batches_of_zero)
{
    for (unsigned zero = 0; zero <= 3; zero++)
        for (unsigned m = 1; m <= 8; m *= 2)
            for (unsigned variant = 0; variant < 6; variant++) {
                struct run *r = equal(8);
                double volumes[] = {2, 2, m + 1., 3. * m};
                r->spec.pp = zero < 3 && variant >= 3 ? 2 : 1;
                r->spec.ranks = 4 * r->spec.pp;
                r->spec.zero = zero;
                r->spec.micro = m;
                r->spec.overlap = variant % 3 > 0;
                r->spec.order = variant % 2;
                r->spec.bucket_bytes = variant % 3 == 2 ? 1 << 20 : 4000;
                r->ns_per_byte = 1. / 4000;
                double lasts = simulate(r), units = volumes[zero] * 8 * 3 / 4;
                if (r->spec.pp == 1)
                    near(sent(r, 3), 4000 * units, 1e-9);
                else /* all of a rank but the border: 10 numbers of each sample, either way */
                    near(sent(r, 0) - 4 * 10 * 8, 4000 * units / 2, 1e-9);
                if (!r->spec.overlap && r->spec.pp == 1)
                    near(lasts, 8 * 8 * 3 + units, 1e-9);
                done(r);
            }
}

/* Four layers of 8 and 16, a bucket each, which takes c: without overlap all one after another. With it, the first
 * bucket goes at 32 + 16; then either the buckets follow one another (c >= 16), or only the last is left over. */
TEST(test_overlap)
{
    for (double c = 4; c <= 64; c *= 2) {
        struct run *r = equal(4);
        r->spec.bucket_bytes = 4000;
        r->ns_per_byte = c / (4000 * 2 * 3 / 4.0);
        near(simulate(r), c > 16 ? 48 + 4 * c : 96 + c, 1e-9);
        release(r);
        r->spec.overlap = 0;
        near(simulate(r), 96 + 4 * c, 1e-9);
        release(r);
        r->spec.bucket_bytes = 1 << 20; /* one bucket: there is nothing to overlap with */
        r->spec.overlap = 1;
        near(simulate(r), 96 + 4 * c, 1e-9);
        done(r);
    }
}

/* Of p equal stages and m micro-batches: (m + p - 1) of their passes (Huang and others, GPipe, arXiv:1811.06965), whatever the order; no simulation is shorter
 * than what is stated as the least, of unequal stages either. */
TEST(test_bubble)
{
    for (unsigned p = 2; p <= 4; p *= 2)
        for (unsigned m = 1; m <= 16; m *= 4)
            for (unsigned variant = 0; variant < 6; variant++) {
                struct run *r = equal(8);
                struct step_stated its[RANKS_MOST];
                double longest = 0, stage = 8.0 / p * 3;
                r->spec.ranks = r->spec.pp = p;
                r->spec.batch = r->spec.micro = m;
                r->spec.order = variant % 2 ? STEP_1F1B : STEP_GPIPE;
                r->layers[7].backward_flop = variant / 2 == 1 ? 9 : 2;
                r->spec.slow_rank = p - 1;
                r->spec.slow_times = variant / 2 == 2 ? 1.5 : 1;
                double lasts = simulate(r);
                for (unsigned i = 0; i < p; i++) {
                    its[i] = step_stated(&r->ranks[i].plan, &r->spec, i);
                    near(its[i].forward_ns + its[i].backward_ns, r->ranks[i].compute_ns, 1e-9);
                    longest = fmax(longest, r->ranks[i].compute_ns);
                }
                double least = step_least_ns(&r->spec, its);
                assert_true(least >= longest && least <= lasts * (1 + 1e-9));
                if (variant < 2) {
                    near(lasts, (m + p - 1) * stage, 1e-9);
                    near(least, lasts, 1e-9);
                }
                done(r);
            }
}

/* Two sums forward and two back in each of 32 blocks, and those of the embedding and of the head, over a ring (arXiv:1909.08053). */
TEST(test_bytes_of_tensor_parallel)
{
    for (unsigned t = 2; t <= 8; t *= 2) {
        struct model m;
        struct run *r = model("llama3-8b", 512, &m);
        r->spec.ranks = r->spec.tp = t;
        r->spec.type = COLLECTIVE_BF16;
        r->spec.batch = 3;
        simulate(r);
        near(sent(r, t - 1), 2.0 * 3 * 512 * 4096 * (32 * 4 + 2) * 2 * (t - 1) / t, 1e-9);
        done(r);
        model_release(&m);
    }
}

/* Tokens go to two experts each, over 4 ranks, there and back, in both passes of 32 blocks; gradients of a quarter of the experts
 * are of two ranks. */
TEST(test_bytes_of_experts)
{
    struct model m;
    struct run *r = model("mixtral-8x7b", 256, &m);
    double experts = 0, tokens = 2.0 * 2 * (2 * 256) * 4096 * 32 * 4 * 3 / 4;
    r->spec.ranks = 8;
    r->spec.ep = 4;
    r->spec.batch = 2;
    r->spec.type = COLLECTIVE_BF16;
    simulate(r);
    for (size_t i = 0; i < m.n_layers; i++)
        experts += m.layers[i].kind == MODEL_EXPERT ? (double)m.layers[i].parameters : 0;
    double own = 2 * ((double)m.parameters - experts) * 2 * 7 / 8;
    near(sent(r, 5), tokens + own + 2 * experts / 4 * 2 * 1 / 2, 1e-6);
    done(r);
    model_release(&m);
}

/* Rows of 26 tables, 128 wide, go to the ranks of their samples, and their gradients back; tables are summed by nobody. */
TEST(test_bytes_of_tables)
{
    const double dense = 14. * 512 + 513 * 256 + 257 * 128 + 480 * 1024 + 1025 * 1024 + 1025 * 512 +
                         513 * 256 + 257,
                 rows = 26. * 128 * 64 * 4;
    for (unsigned n = 1; n <= 8; n *= 2)
        for (unsigned micro = 1; micro <= 4; micro *= 4) {
            struct model m;
            struct run *r = model("dlrm", 1, &m);
            r->spec.ranks = n;
            r->spec.batch = 64;
            r->spec.micro = micro;
            simulate(r);
            near(sent(r, n - 1), (2 * dense * 4 + 2 * rows) * (n - 1) / n, 1e-5);
            done(r);
            model_release(&m);
        }
}

/* Two stages, one micro-batch: the second stage updates its parameters while the first one still goes back, and that one's
 * update comes behind. A pass of a stage takes 4, back 8; updates last 1 for 1000 parameters. */
TEST(test_shortest_step_with_an_update)
{
    static const unsigned parameters[][2] = {{1, 1}, {1, 5}, {1, 30}, {30, 1}, {0, 7}};
    for (size_t i = 0; i < 10; i++) {
        const unsigned *its_own = parameters[i / 2];
        struct run *r = equal(2);
        struct step_stated its[2];
        r->spec.ranks = r->spec.pp = 2;
        r->spec.batch = 1;
        r->spec.order = i % 2 ? STEP_1F1B : STEP_GPIPE;
        r->spec.update = UPDATE_SGD;
        r->spec.ns_per_byte = 1. / 12000;
        for (unsigned k = 0; k < 2; k++) {
            r->layers[k].parameters = 1000 * its_own[k];
            r->layers[k].forward_flop = 4;
            r->layers[k].backward_flop = 8;
        }
        double lasts = simulate(r), wanted = 4 + 4 + 8 + fmax(its_own[1], 8. + its_own[0]);
        for (unsigned k = 0; k < 2; k++)
            its[k] = step_stated(&r->ranks[k].plan, &r->spec, k);
        near(lasts, wanted, 1e-9);
        near(step_least_ns(&r->spec, its), wanted, 1e-9);
        done(r);
    }
}
