/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the plans of a training step: bytes by formulas of the literature, times by a simulation that knows nothing of
 * how plans are made, and that all ranks get to their end. */
#include "benches/step/plan.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RANKS_MOST 32
#define MIB        (1ull << 20)

/* ---- A simulation: a call begins when all of its members have come to it ---- */

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
static void test_bytes_of_data_parallel(void **state)
{
    static const char *const names[] = {"resnet50", "bert-large", "gpt2-xl"};

    (void)state;
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
static void test_micro_batches_of_zero(void **state)
{
    (void)state;
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

/* As many buckets as PyTorch's rule makes of these models: counted by hand of the reverse order. */
static void test_buckets(void **state)
{
    static const struct {
        const char *name;
        uint64_t bucket;
        unsigned n;
    } cases[] = {{"resnet50", 25 * MIB, 4},
                 {"resnet50", 1 * MIB, 35},
                 {"vgg16", 25 * MIB, 5},
                 {"bert-large", 25 * MIB, 37}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct model m;
        struct run *r = model(cases[i].name, 128, &m);
        r->spec.bucket_bytes = cases[i].bucket;
        r->spec.ranks = 2;
        simulate(r);
        for (unsigned k = 0; k < r->ranks[0].plan.n_parts; k++)
            if (r->ranks[0].plan.parts[k].kind == PART_SUM)
                assert_int_equal(r->ranks[0].plan.parts[k].n_calls, cases[i].n);
        done(r);
        model_release(&m);
    }
}

/* Four layers of 8 and 16, a bucket each, which takes c: without overlap all one after another. With it, the first
 * bucket goes at 32 + 16; then either the buckets follow one another (c >= 16), or only the last is left over. */
static void test_overlap(void **state)
{
    (void)state;
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

/* The last rank computes twice as long: all wait for it. */
static void test_slow_rank(void **state)
{
    struct run *r = equal(4);

    (void)state;
    r->spec.slow_rank = 3;
    r->spec.slow_times = 2;
    r->spec.overlap = 0;
    near(simulate(r), 192, 1e-9);
    near(r->ranks[0].compute_ns, 96, 1e-9);
    done(r);
}

/* Gathers of ZeRO 3, each c: asked for one group ahead they hide behind compute; without, they add up. */
static void test_prefetch(void **state)
{
    struct run *r = equal(4);
    double c = 2;

    (void)state;
    r->spec.zero = 3;
    r->spec.bucket_bytes = 4000;
    r->ns_per_byte = c / (4000 * 3 / 4.0);
    r->spec.prefetch = 0;
    /* the gather of a group waits for the scatter of the one before, on the same lane */
    near(simulate(r), 96 + 8 * c + 3 * c + c, 1e-9);
    release(r);
    r->spec.prefetch = 1;
    near(simulate(r), 96 + c + c, 1e-9); /* the first gather, and the last scatter */
    done(r);
}

/* Of p equal stages and m micro-batches: (m + p - 1) of their passes (Huang and others, GPipe, arXiv:1811.06965), whatever
 * the order; one forward, one backward keeps no more than p micro-batches. */
static void test_bubble(void **state)
{
    (void)state;
    for (unsigned p = 2; p <= 8; p *= 2)
        for (unsigned m = 1; m <= 16; m *= 2)
            for (unsigned order = STEP_GPIPE; order <= STEP_1F1B; order++) {
                struct run *r = equal(8);
                r->spec.ranks = r->spec.pp = p;
                r->spec.batch = r->spec.micro = m;
                r->spec.order = order;
                double stage = 8.0 / p * 3;
                near(simulate(r), (m + p - 1) * stage, 1e-9);
                for (unsigned i = 0; i < p; i++)
                    near(r->ranks[i].compute_ns, m * stage, 1e-9);
                done(r);
            }
}

static void test_kept_micro_batches(void **state)
{
    struct run *r = equal(8);

    (void)state;
    r->spec.ranks = r->spec.pp = 4;
    r->spec.batch = r->spec.micro = 16;
    for (unsigned order = STEP_GPIPE; order <= STEP_1F1B; order++) {
        r->spec.order = order;
        simulate(r);
        for (unsigned i = 0; i < 4; i++) {
            unsigned kept = 0, most = 0;
            for (size_t k = 0; k < r->ranks[i].plan.n_ops; k++) {
                kept += r->ranks[i].plan.ops[k].kind == STEP_FORWARD;
                kept -= r->ranks[i].plan.ops[k].kind == STEP_BACKWARD;
                most = kept > most ? kept : most;
            }
            assert_int_equal(most, order == STEP_1F1B ? 4 - i : 16);
        }
        release(r);
    }
    free(r);
}

/* Each of Llama's blocks sums its activations twice in each pass (Megatron-LM, arXiv:1909.08053, figure 4): 4 x 2 (t-1)/t of
 * s x 4096 numbers; and the embedding, over parts of the vocabulary, once forward, the head once back (section 3). */
static void test_bytes_of_tensor_parallel(void **state)
{
    (void)state;
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

/* All but norms, positions, routers, a pooler and some biases is split: a rank has 1/t of the parameters, and of the operations.
 * Two data-parallel ranks send each other as many gradients as a rank has. */
static void test_tensor_parallel_divides_the_model(void **state)
{
    static const struct {
        const char *name;
        double parameters, off;
        double sums; /* of activations, in s x h numbers: those of blocks, embedding, head */
        unsigned width;
    } models[] = {
        {"bert-large", 335141888, .02, 24 * 4 + 1, 1024},
        {"gpt2-xl", 1557611200, .01, 48 * 4 + 2, 1600},
        {"llama3-8b", 8030261248, .001, 32 * 4 + 2, 4096},
        {"llama3-70b", 70553706496, .001, 80 * 4 + 2, 8192},
        /* attention's two; of experts' two, which have each token twice, twice as much */
        {"mixtral-8x7b", 46702792704, .001, 32 * (2 + 2 * 2) + 2, 4096},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(models) / sizeof(*models); i++)
        for (unsigned t = 2; t <= 4; t *= 2) {
            struct model m;
            struct run *r = model(models[i].name, 64, &m);
            double whole = 0;
            r->spec.ranks = 2 * t;
            r->spec.tp = t;
            r->spec.batch = 1;
            r->spec.type = COLLECTIVE_BF16;
            for (uint32_t k = 0; k < r->spec.n_layers; k++)
                whole += r->layers[k].forward_flop + r->layers[k].backward_flop;
            simulate(r);
            double sums = 2.0 * 64 * models[i].width * models[i].sums * 2 * (t - 1) / t;
            near(sent(r, 1) - sums, 2 * models[i].parameters / t, models[i].off);
            near(r->ranks[1].compute_ns, whole / t, .003); /* Mixtral's router is whole */
            done(r);
            model_release(&m);
        }
}

/* Two of eight experts for each token: 2 S x 4096 numbers go out and come back, in each pass, of which (e-1)/e leave. */
static void test_bytes_of_experts(void **state)
{
    struct model m;
    struct run *r = model("mixtral-8x7b", 256, &m);
    uint64_t experts = 0;

    (void)state;
    r->spec.ranks = 8;
    r->spec.ep = 4;
    r->spec.batch = 2;
    r->spec.type = COLLECTIVE_BF16;
    simulate(r);
    for (size_t i = 0; i < m.n_layers; i++)
        experts += m.layers[i].kind == MODEL_EXPERT ? m.layers[i].parameters : 0;
    double tokens = 2.0 * 2 * (2 * 256) * 4096 * 32 * 4 * 3 / 4;
    double own = 2.0 * (double)(m.parameters - experts) * 2 * 7 / 8;
    double shared = 2.0 * (double)experts / 4 * 2 * 1 / 2; /* of the two ranks that have them */
    near(sent(r, 5), tokens + own + shared, 1e-6);
    done(r);
    model_release(&m);
}

/* DLRM of MLPerf: the MLPs' gradients are summed; a row of 128 numbers of each of 26 tables, for each sample, goes out from
 * the rank that has the table, and its gradient back, of which (n-1)/n leave. */
static void test_bytes_of_tables(void **state)
{
    static const unsigned bottom[] = {13, 512, 256, 128}, top[] = {479, 1024, 1024, 512, 256, 1};
    double dense = 0;

    (void)state;
    for (size_t i = 0; i + 1 < sizeof(bottom) / sizeof(*bottom); i++)
        dense += (bottom[i] + 1.) * bottom[i + 1];
    for (size_t i = 0; i + 1 < sizeof(top) / sizeof(*top); i++)
        dense += (top[i] + 1.) * top[i + 1];
    for (unsigned n = 2; n <= 8; n *= 2)
        for (unsigned micro = 1; micro <= 4; micro *= 4) {
            struct model m;
            struct run *r = model("dlrm", 1, &m);
            r->spec.ranks = n;
            r->spec.batch = 64;
            r->spec.micro = micro;
            simulate(r);
            double rows = 26. * 128 * 64 * 4;
            near(sent(r, n - 1), (2 * dense * 4 + 2 * rows) * (n - 1) / n, 1e-5);
            release(r);
            r->spec.ranks = 1; /* all tables are its own */
            simulate(r);
            assert_true(sent(r, 0) == 0);
            done(r);
            model_release(&m);
        }
}

/* Of W workers and k servers, a server takes in W/k of the gradients, and sends as much back; a worker sends them once. All go
 * over one link of the server: 2 W/k S b for one bucket. Of many, pushes and pulls go at the same time. */
static void test_servers(void **state)
{
    (void)state;
    for (unsigned k = 1; k <= 4; k++) {
        struct run *r = equal(4);
        unsigned workers = 4;
        r->spec.ranks = workers + k;
        r->spec.servers = k;
        r->spec.bucket_bytes = 1 << 20;
        r->spec.overlap = 0;
        r->ns_per_byte = 60 / (4 * 4000.0);
        unsigned each = (4000 + k - 1) / k;
        double lasts = simulate(r), bytes = 16.0 * each;
        near(sent(r, 0), bytes / 4 * k, 1e-9);
        near(sent(r, workers + k - 1), bytes, 1e-9);
        near(r->ranks[workers].compute_ns + 1, 1, 1e-9);
        if (workers % k == 0)
            near(lasts, 96 + 2 * r->ns_per_byte * bytes, 1e-9);
        release(r);
        r->spec.bucket_bytes = 4000; /* four: each is pulled while the next is pushed */
        lasts = simulate(r);
        if (workers % k == 0)
            near(lasts, 96 + r->ns_per_byte * bytes * 5 / 4, 1e-9);
        done(r);
    }
}

/* Where bytes take no time, a step ends with the last server's update: as long as the simulated one, whatever the buckets. */
static void test_no_step_ends_before_its_updates(void **state)
{
    static const uint64_t buckets[] = {1, 4000, 12000, 1 << 20};

    (void)state;
    for (unsigned variant = 0; variant < 4 * 2 * 3 * 2; variant++) {
        struct run *r = equal(4);
        double served, update = variant / 8 % 3; /* short, as long as compute, or longer */
        r->spec.servers = 1 + variant / 24;
        r->spec.ranks = 3 + r->spec.servers;
        r->spec.bucket_bytes = buckets[variant % 4];
        r->spec.overlap = variant / 4 % 2;
        r->spec.update = UPDATE_SGD;
        r->spec.ns_per_byte = (update < 1 ? 1 : update < 2 ? 100 : 300) / (4 * 1000 * 12.);
        r->spec.slow_rank = 2;
        r->spec.slow_times = 1.5;
        assert_int_equal(step_served_ns(&r->spec, r->layers, &served), 0);
        double lasts = simulate(r);
        assert_true(served <= lasts * (1 + 1e-9));
        near(served, lasts, 1e-9);
        done(r);
    }
}

/* With fewer workers than servers a worker's own link is the narrow one: S b each way. Parts are rounded up. */
static void test_more_servers_than_workers(void **state)
{
    (void)state;
    for (unsigned workers = 2; workers <= 3; workers++)
        for (unsigned k = workers; k <= 4; k++) {
            struct run *r = equal(4);
            r->spec.ranks = workers + k;
            r->spec.servers = k;
            r->spec.bucket_bytes = 1 << 20;
            r->spec.overlap = 0;
            r->ns_per_byte = 60 / (4 * 4000.0);
            near(simulate(r), 96 + 2 * 60, 1e-3);
            release(r);
            r->spec.bucket_bytes = 4000;
            near(simulate(r), 96 + 60 * 5 / 4., 2e-3);
            done(r);
        }
}

/* An asynchronous server has all buckets of a worker before it sends one back: as many bytes as in step, and of one worker one
 * way after the other, however many buckets there are. Words are beside them. */
static void test_asynchronous_servers(void **state)
{
    (void)state;
    for (unsigned k = 1; k <= 3; k++)
        for (unsigned overlap = 0; overlap <= 1; overlap++) {
            struct run *r = equal(4);
            unsigned words = 0;
            r->spec.ranks = 3 + k;
            r->spec.servers = k;
            r->spec.asynchronous = 1;
            r->spec.overlap = overlap;
            r->spec.bucket_bytes = 4000;
            simulate(r);
            near(sent(r, 0), 4 * 4000, 2e-3);
            near(sent(r, 3), 3 * 4 * 4000. / k, 2e-3);
            for (unsigned i = 0; i < r->ranks[3].plan.n_parts; i++) {
                const struct step_part *part = &r->ranks[3].plan.parts[i];
                words += part->kind == PART_ASK || part->kind == PART_ANSWER;
                if (part->kind == PART_PUSH || part->kind == PART_PULL)
                    assert_int_equal(part->n_calls, 4);
            }
            assert_int_equal(words, 6);
            release(r);
            r->ns_per_byte = 60 / (4 * 4000.0);
            r->spec.ranks = 2;
            r->spec.servers = 1;
            near(simulate(r), 96 + (overlap ? 60 / 4. : 60) + 60, 2e-3);
            done(r);
        }
}

/* One kind of communication behind another, with no compute between: each needs what the one before brings. A message takes t, a
 * sum of two ranks c, an exchange between two x; a layer f forward and 2 f back. No gradients are summed. */
static void test_one_call_behind_another(void **state)
{
    const double t = 40, c = 20, x = 32, f = 8;
    struct run *r = equal(2);

    (void)state;
    r->ns_per_byte = 1;
    r->spec.pp = r->spec.tp =
        2; /* a stage ends with a layer whose activations are summed before they go on */
    for (unsigned i = 0; i < 2; i++) {
        r->layers[i].output = t / 4 / 8;
        r->layers[i].sum = c / 4 / 8;
        r->layers[i].split = MODEL_ROW;
        r->layers[i].forward_flop = 2 * f / 8;
        r->layers[i].backward_flop = 4 * f / 8;
    }
    near(simulate(r), 6 * f + 2 * c + 2 * t, 1e-9);
    release(r);
    r->spec.pp = 1; /* tokens go back to their ranks when their experts' parts are added */
    r->spec.ep = 2;
    for (unsigned i = 0; i < 2; i++) {
        r->layers[i].kind = MODEL_EXPERT;
        r->layers[i].experts = 2;
        r->layers[i].sent = x / 2 / 8;
    }
    near(simulate(r), 2 * (3 * f + c + 4 * x), 1e-9);
    release(r);
    r->spec.tp = 1; /* a stage begins with experts: their tokens come from the stage before */
    r->spec.pp = 2;
    near(simulate(r), 2 * (6 * f + 4 * x) + 2 * t, 1e-9);
    done(r);
}

/* The shortest step: of equal stages as in test_bubble(), and the simulation with a network that takes no time needs no longer.
 * Of unequal ones no simulation is shorter; nor is the compute of the longest times (m + p - 1) / m a bound. */
static void test_shortest_step(void **state)
{
    bool beyond = false;

    (void)state;
    for (unsigned p = 1; p <= 4; p *= 2)
        for (unsigned m = 1; m <= 16; m *= 4)
            for (unsigned variant = 0; variant < 8; variant++) {
                struct run *r = equal(8);
                struct step_stated its[RANKS_MOST];
                double longest = 0;
                r->spec.pp = p;
                r->spec.ranks = 2 * p;
                r->spec.batch = r->spec.micro = m;
                r->spec.order = variant % 2;
                r->layers[0].forward_flop = r->layers[0].backward_flop = variant / 2 == 1 ? 9 : 2;
                r->layers[0].forward_flop -= variant / 2 == 1 ? 0 : 1;
                r->layers[7].backward_flop = variant / 2 == 2 ? 9 : 2;
                r->spec.slow_rank = 2 * p - 1;
                r->spec.slow_times = variant / 2 == 3 ? 1.5 : 1;
                double lasts = simulate(r);
                for (unsigned i = 0; i < r->spec.ranks; i++) {
                    its[i] = step_stated(&r->ranks[i].plan, &r->spec, i);
                    near(its[i].forward_ns + its[i].backward_ns, r->ranks[i].compute_ns, 1e-9);
                    longest = fmax(longest, r->ranks[i].compute_ns);
                }
                double least = step_least_ns(&r->spec, its);
                assert_true(least >= longest && least <= lasts * (1 + 1e-9));
                if (variant < 2)
                    near(least, (m + p - 1.) * 8 / p * 3, 1e-9);
                beyond |= longest * (m + p - 1) / m > lasts * 1.001;
                done(r);
            }
    assert_true(beyond);
}

/* Two stages, one micro-batch: the second stage updates its parameters while the first one still goes back, and that one's
 * update comes behind. A pass of a stage takes 4, back 8; updates last 1 for 1000 parameters. */
static void test_shortest_step_with_an_update(void **state)
{
    static const unsigned parameters[][2] = {{1, 1}, {1, 5}, {1, 30}, {30, 1}, {0, 7}};

    (void)state;
    for (size_t i = 0; i < sizeof(parameters) / sizeof(*parameters); i++)
        for (unsigned order = STEP_GPIPE; order <= STEP_1F1B; order++) {
            struct run *r = equal(2);
            double first = parameters[i][0], second = parameters[i][1];
            struct step_stated its[2];
            r->spec.ranks = r->spec.pp = 2;
            r->spec.batch = 1;
            r->spec.order = order;
            r->spec.update = UPDATE_SGD;
            r->spec.ns_per_byte = 1. / 12000;
            for (unsigned k = 0; k < 2; k++) {
                r->layers[k].parameters = 1000 * parameters[i][k];
                r->layers[k].forward_flop = 4;
                r->layers[k].backward_flop = 8;
            }
            double lasts = simulate(r), wanted = 4 + 4 + 8 + fmax(second, 8 + first);
            near(lasts, wanted, 1e-9);
            for (unsigned k = 0; k < 2; k++)
                its[k] = step_stated(&r->ranks[k].plan, &r->spec, k);
            near(step_least_ns(&r->spec, its), wanted, 1e-9);
            done(r);
        }
}

/* All that goes together gets to its end in all ranks. */
static void test_all_together(void **state)
{
    static const struct {
        unsigned ranks, tp, pp, ep, zero, micro, order, overlap;
    } cases[] = {{8, 2, 2, 1, 0, 4, STEP_1F1B, 1},  {8, 2, 2, 1, 0, 4, STEP_GPIPE, 0},
                 {8, 2, 2, 1, 1, 2, STEP_1F1B, 1},  {8, 2, 1, 1, 3, 2, STEP_1F1B, 1},
                 {8, 1, 1, 1, 3, 3, STEP_GPIPE, 1}, {8, 1, 2, 4, 0, 4, STEP_1F1B, 1},
                 {16, 2, 4, 2, 0, 8, STEP_1F1B, 1}, {6, 3, 2, 1, 0, 4, STEP_GPIPE, 1},
                 {1, 1, 1, 1, 0, 1, STEP_1F1B, 1},  {1, 1, 1, 1, 3, 1, STEP_1F1B, 1}};
    char why[384];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct model m;
        struct run *r = model("mixtral-8x7b", 64, &m);
        r->spec.ranks = cases[i].ranks;
        r->spec.tp = cases[i].tp;
        r->spec.pp = cases[i].pp;
        r->spec.ep = cases[i].ep;
        r->spec.zero = cases[i].zero;
        r->spec.micro = cases[i].micro;
        r->spec.batch = 24;
        r->spec.order = cases[i].order;
        r->spec.overlap = cases[i].overlap;
        r->spec.bucket_bytes = 400 * MIB;
        r->ns_per_byte = 100;
        if (step_supports(&r->spec, r->layers, why, sizeof(why)))
            fail_msg("case %zu: %s", i, why);
        simulate(r);
        done(r);
        model_release(&m);
    }
}

/* Compute is the same in all, however it is divided. */
static void test_compute_is_divided(void **state)
{
    struct run *r = equal(8);

    (void)state;
    for (unsigned i = 0; i < 8; i++)
        r->layers[i].split = MODEL_COLUMN;
    r->spec.ranks = 8;
    r->spec.tp = 2;
    r->spec.pp = 2;
    simulate(r);
    double all = 0;
    for (unsigned i = 0; i < 8; i++)
        all += r->ranks[i].compute_ns;
    near(all, 8 * 8 * 3 * 2, 1e-9); /* layers, samples, passes, data-parallel ranks */
    done(r);
}

static void refused(struct run *r, const char *word)
{
    char why[384] = "";

    assert_int_equal(step_supports(&r->spec, r->layers, why, sizeof(why)), -EOPNOTSUPP);
    if (!strstr(why, word))
        fail_msg("'%s' has no '%s'", why, word);
    r->spec = plain;
    r->spec.n_layers = 4;
}

static void test_what_makes_no_sense(void **state)
{
    struct run *r = equal(4);

    (void)state;
    r->spec.tp = 3;
    refused(r, "cannot be divided");
    r->spec.tp = 2;
    refused(r, "how it is split");
    r->spec.ep = 3;
    refused(r, "no multiple");
    r->spec.servers = 4;
    refused(r, "none is left");
    r->spec.servers = 2;
    r->spec.zero = 1;
    refused(r, "workers alone");
    r->layers[1].kind = MODEL_TABLE;
    r->spec.servers = 1;
    refused(r, "whose rows");
    r->layers[1].kind = MODEL_DENSE;
    r->spec.ep = 2;
    refused(r, "no experts");
    r->spec.micro = 3;
    refused(r, "micro-batches");
    r->spec.pp = r->spec.ranks = 8;
    refused(r, "too few blocks");
    r->spec.pp = 2;
    r->spec.zero = 3;
    refused(r, "gather");
    r->spec.pp = 4;
    r->spec.zero = 1;
    refused(r, "there is one");
    free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_of_data_parallel),
        cmocka_unit_test(test_micro_batches_of_zero),
        cmocka_unit_test(test_buckets),
        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_slow_rank),
        cmocka_unit_test(test_prefetch),
        cmocka_unit_test(test_bubble),
        cmocka_unit_test(test_kept_micro_batches),
        cmocka_unit_test(test_bytes_of_tensor_parallel),
        cmocka_unit_test(test_tensor_parallel_divides_the_model),
        cmocka_unit_test(test_bytes_of_experts),
        cmocka_unit_test(test_bytes_of_tables),
        cmocka_unit_test(test_servers),
        cmocka_unit_test(test_no_step_ends_before_its_updates),
        cmocka_unit_test(test_more_servers_than_workers),
        cmocka_unit_test(test_asynchronous_servers),
        cmocka_unit_test(test_one_call_behind_another),
        cmocka_unit_test(test_shortest_step),
        cmocka_unit_test(test_shortest_step_with_an_update),
        cmocka_unit_test(test_all_together),
        cmocka_unit_test(test_compute_is_divided),
        cmocka_unit_test(test_what_makes_no_sense),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
