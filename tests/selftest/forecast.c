/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is plumb forecast honest or silent? Made-up clusters whose truth is known (fabric.h): sums are measured on 4 or 8 of up to 64
 * hosts, a step on 2, 4 and 8 times as many is forecast, and then stepped through. Prints how many truths lie in the 95 % interval, how
 * many forecasts were refused, and how wide the intervals are. Exit 1: fewer lie inside than PROMISED, more are refused than
 * REFUSED_MOST, or forecasts of sound clusters are off by more than OFF_MOST in the middle, which wide intervals would hide.
 *
 * usage: forecast [--full] [--seed N] [--tell] [--tap]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/forecast/forecast.h"
#include "tests/selftest/fabric.h"

#define CLUSTERS_FULL  200
#define CLUSTERS_SHORT 40
#define SEED           20250607
#define PROMISED       0.90
#define REFUSED_MOST   0.40
#define OFF_MOST       0.03 /* the median of truth / forecast on sound clusters */
#define LAUNCHES       3
#define SHAPES         5
#define SIDE           1024.0
#define DOUBLINGS      3

/* What is asked: products are measured; or the passes of a step alone are, on one host, and take longer than the sums; or it is known
 * that the core carries everything, and it does. */
enum asked { FROM_PRODUCTS, COMPUTE_GIVEN, CORE_FULL, ASKED };
static const char *const asked_names[ASKED] = {"products measured", "compute given", "core full"};

enum kind { SOUND, NOISY, SLOW_HOST, OVERSUBSCRIBED, OTHER_WAY, KINDS };
static const char *const kind_names[KINDS] = {"sound", "noisy", "a slow host",
                                              "core oversubscribed", "algorithm changes"};

static const struct bench_terms ring = {
    .where = "", .messages = "2 * (n - 1)", .bytes = "2 * (n - 1) / n", .bus = "2 * (n - 1) / n"};
static const struct bench_terms halving = {
    .where = "", .messages = "2 * steps", .bytes = "2 * (p - 1) / p", .bus = "2 * (n - 1) / n"};
static const double sizes[] = {1 << 16, 1 << 20, 1 << 23, 1 << 26};
#define SIZES (sizeof(sizes) / sizeof(*sizes))

struct cluster {
    enum kind kind;
    enum asked asked;
    struct fabric fabric;
    double launches; /* the deviation of a launch's logarithm */
    size_t measured; /* ranks, at most */
    size_t layers;
    double bytes;
    double rate, shapes; /* operations a us; how far shapes differ */
    double forward_us;   /* of a layer */
    /* the share of a host's memory that a layer takes, and that the compute of the overlap benchmark takes */
    double appetite, probe;
};

static double between(struct rng *rng, double low, double high)
{
    return low * exp(rng_double(rng) * log(high / low));
}

static void place_hosts(struct fabric *f, struct rng *rng, bool shuffled)
{
    uint32_t order[FABRIC_HOSTS];

    for (uint32_t i = 0; i < FABRIC_HOSTS; i++)
        order[i] = i;
    if (shuffled)
        rng_shuffle_u32(rng, order, FABRIC_HOSTS);
    for (size_t i = 0; i < FABRIC_HOSTS; i++)
        f->place[i] = order[i];
}

static void make_fabric(struct cluster *c, struct rng *rng)
{
    struct fabric *f = &c->fabric;
    double rate = between(rng, 100, 5000);
    size_t slow = (size_t)rng_below(rng, FABRIC_HOSTS);

    *f = (struct fabric){.latency_us = between(rng, 5, 50),
                         .jitter = c->kind == NOISY ? 0.5 : 0.1,
                         .work_jitter = c->kind == NOISY ? 0.05 : 0.01,
                         .way = rng_double(rng) < 0.3 ? WAY_HALVING : WAY_RING,
                         .uplink = HUGE_VAL,
                         /* a sum alone moves at most 5 bytes for each that a link carries */
                         .memory = 5 * rate * between(rng, 1.1, 20),
                         .steals = rng_double(rng) < 0.5 ? 0 : 0.3 * rng_double(rng),
                         .lag = rng_double(rng) < 0.5 ? 1 : between(rng, 1, 3)};
    for (size_t i = 0; i < FABRIC_HOSTS; i++) {
        f->rate[i] = rate * exp(0.005 * rng_normal(rng));
        f->work[i] = exp(0.01 * rng_normal(rng));
    }
    place_hosts(f, rng, c->kind == OVERSUBSCRIBED && rng_double(rng) < 0.5);
    if (c->kind == SLOW_HOST && rng_double(rng) < 0.5)
        f->rate[slow] /= between(rng, 1.05, 1.6);
    else if (c->kind == SLOW_HOST)
        f->work[slow] *= between(rng, 1.05, 1.6);
    if (c->kind == OVERSUBSCRIBED) {
        f->leaf = (size_t)4 << rng_below(rng, 3);
        f->uplink = rate * (double)f->leaf / between(rng, 1.5, 4);
    }
    if (c->kind == OTHER_WAY) {
        f->way_later = f->way == WAY_RING ? WAY_HALVING : WAY_RING;
        f->later = (size_t)4 << rng_below(rng, 4);
        f->small = between(rng, 1 << 12, 1 << 22);
    }
}

static enum kind kind_of(enum asked asked, size_t number)
{
    enum kind kind = number % KINDS;

    return asked == CORE_FULL && kind == OVERSUBSCRIBED ? SOUND : kind;
}

static void make_cluster(struct cluster *c, struct rng *rng, size_t number, enum asked asked)
{
    *c = (struct cluster){.kind = kind_of(asked, number), .asked = asked};
    make_fabric(c, rng);
    c->launches = c->kind == NOISY ? 0.03 : between(rng, 0.002, 0.015);
    c->measured = rng_double(rng) < 0.5 ? 4 : 8;
    c->layers = 3 + (size_t)rng_below(rng, 3);
    c->bytes = between(rng, 2e6, 40e6);
    /* backward pass of a layer against its sum on the links */
    double flop = 2 * SIDE * SIDE * SIDE, sum_us = 2 * c->bytes / c->fabric.rate[0];
    double longer = asked == COMPUTE_GIVEN ? between(rng, 3, 10) : between(rng, 0.3, 3);
    c->rate = 2 * flop / (sum_us * longer);
    c->shapes = between(rng, 0.01, 0.06);
    c->forward_us = flop / (c->rate * exp(c->shapes * rng_normal(rng)));
    c->appetite = between(rng, 0.1, 0.9);
    c->probe = between(rng, 0.1, 0.9);
}

/* ---- what is measured ---- */

struct measured {
    struct fit_point points[SIZES * FABRIC_HOSTS];
    struct part_product products[SHAPES];
    struct parts parts;
};

static double measure_sum(const struct cluster *c, struct rng *rng, size_t ranks, double bytes)
{
    double sum = 0;

    for (int i = 0; i < LAUNCHES; i++)
        sum +=
            log(fabric_sum_us(&c->fabric, rng, ranks, bytes, exp(c->launches * rng_normal(rng))));
    return exp(sum / LAUNCHES);
}

/* A bench knows the terms of the way that it was asked for; where a library changes its way, nobody tells. */
static const struct bench_terms *terms_of(const struct cluster *c)
{
    return c->fabric.way == WAY_RING ? &ring : &halving;
}

/* As the benchmark does: the largest vector, at the most ranks; the middle of the launches, and their range. */
static void measure_overlap(const struct cluster *c, struct rng *rng, struct parts *p)
{
    double sum = 0;

    p->hidden_low = HUGE_VAL;
    p->hidden_high = -HUGE_VAL;
    for (int i = 0; i < LAUNCHES; i++) {
        double h = fabric_hidden(&c->fabric, rng, c->measured, sizes[SIZES - 1], c->probe,
                                 exp(c->launches * rng_normal(rng)));

        sum += h;
        p->hidden_low = fmin(p->hidden_low, h);
        p->hidden_high = fmax(p->hidden_high, h);
    }
    p->hidden = sum / LAUNCHES;
}

static void measure(const struct cluster *c, struct rng *rng, struct measured *m)
{
    struct part_law *sum = &m->parts.laws[JOB_SUM];

    *m = (struct measured){.parts = {.products = m->products,
                                     .stream = NAN,
                                     .call_s = NAN,
                                     .machine = "made up",
                                     .dtype = "f32"}};
    measure_overlap(c, rng, &m->parts);
    sum->law.terms = terms_of(c);
    sum->law.points = m->points;
    for (size_t ranks = 2; ranks <= c->measured; ranks *= 2)
        for (size_t i = 0; i < SIZES; i++)
            m->points[sum->law.n++] =
                (struct fit_point){(double)ranks, sizes[i], measure_sum(c, rng, ranks, sizes[i])};
    for (size_t i = 0; i < SHAPES; i++)
        m->products[m->parts.n_products++] =
            (struct part_product){SIDE * exp2((double)i / 2 - 1.2),
                                  SIDE,
                                  SIDE,
                                  c->rate * 1e6 * exp(c->shapes * rng_normal(rng)),
                                  NAN,
                                  c->fabric.work_jitter,
                                  NAN,
                                  NAN};
    parts_product_spread(&m->parts);
}

/* ---- one trial ---- */

struct tally {
    size_t trials, refused, inside;
    /* of those given: high / low; and truth / forecast */
    double widths[CLUSTERS_FULL * DOUBLINGS], ratios[CLUSTERS_FULL * DOUBLINGS];
    size_t n_widths;
};

static void add_trial(struct tally *t, const struct forecast_point *p, double truth_s)
{
    t->trials++;
    if (p->refused) {
        t->refused++;
        return;
    }
    t->inside += p->low_s <= truth_s && truth_s <= p->high_s;
    t->ratios[t->n_widths] = truth_s / p->time.step_s;
    t->widths[t->n_widths++] = p->high_s / p->low_s;
}

struct tallies {
    struct tally all, kinds[KINDS], doublings[DOUBLINGS];
};

static void make_model(const struct cluster *c, struct model *model, struct model_layer *layers)
{
    *model = (struct model){.name = "made up", .layers = layers, .n_layers = c->layers};
    for (size_t i = 0; i < c->layers; i++)
        layers[i] = (struct model_layer){.block = (unsigned)i,
                                         .parameters = (uint64_t)(c->bytes / 4),
                                         .m = {(uint64_t)SIDE, 0},
                                         .n = {(uint64_t)SIDE, 0},
                                         .k = {(uint64_t)SIDE, 0},
                                         .count = 1,
                                         .backward = 2};
}

static struct fabric_job job_of(const struct cluster *c)
{
    return (struct fabric_job){c->layers, c->forward_us, 2 * c->forward_us, c->bytes, c->appetite};
}

static double truth_of(const struct cluster *c, struct rng *rng, size_t ranks)
{
    const struct fabric_job job = job_of(c);

    return 1e-6 * fabric_step_us(&c->fabric, rng, ranks, &job, exp(c->launches * rng_normal(rng)));
}

/* The passes alone, on the first host, with nothing to sum. */
static double compute_of(const struct cluster *c, struct rng *rng)
{
    const struct fabric_job job = job_of(c);

    return c->asked == COMPUTE_GIVEN ? 1e-6 * fabric_passes_us(&c->fabric, rng, 1, &job) : NAN;
}

static int try_cluster(size_t number, uint64_t seed, enum asked asked, bool tell, struct tallies *t)
{
    struct cluster c;
    struct measured m;
    struct model_layer layers[8];
    struct model model;
    struct rng rng;

    rng_seed(&rng, seed * 1000003 + number);
    make_cluster(&c, &rng, number, asked);
    measure(&c, &rng, &m);
    make_model(&c, &model, layers);
    struct forecast f = {.parts = &m.parts,
                         .per_node = 1,
                         .core_known = asked == CORE_FULL,
                         .job = {.model = &model,
                                 .batch = 1,
                                 .tp = 1,
                                 .pp = 1,
                                 .ep = 1,
                                 .micro = 1,
                                 .bucket_bytes = c.bytes / 2,
                                 .element_bytes = 4,
                                 .overlap = true,
                                 .compute_s = compute_of(&c, &rng)}};
    for (size_t d = 0; d < DOUBLINGS; d++) {
        size_t ranks = c.measured << (d + 1);
        struct forecast_point p;

        if (forecast_point(&f, (double)ranks, &p))
            return -1;
        double truth_s = truth_of(&c, &rng, ranks);
        add_trial(&t->all, &p, truth_s);
        add_trial(&t->kinds[c.kind], &p, truth_s);
        add_trial(&t->doublings[d], &p, truth_s);
        if (tell && !p.refused && !(p.low_s <= truth_s && truth_s <= p.high_s))
            printf("missed: %s, cluster %zu, %s, %zu of %zu ranks: %.3f of the forecast (%.3f to "
                   "%.3f)\n",
                   asked_names[asked], number, kind_names[c.kind], c.measured, ranks,
                   truth_s / p.time.step_s, p.low_s / p.time.step_s, p.high_s / p.time.step_s);
    }
    return 0;
}

/* ---- the table ---- */

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;

    return (a > b) - (a < b);
}

static void print_row(const char *name, struct tally *t)
{
    size_t given = t->trials - t->refused;

    qsort(t->widths, t->n_widths, sizeof(*t->widths), by_value);
    qsort(t->ratios, t->n_widths, sizeof(*t->ratios), by_value);
    printf("%-22s %6zu  %5.1f %%  %5.1f %%      ", name, t->trials,
           100.0 * (double)t->refused / (double)t->trials,
           100.0 * (double)t->inside / (double)(given ? given : 1));
    if (t->n_widths)
        printf("%.2f, %.2f      %.3f", t->widths[t->n_widths / 2], t->widths[t->n_widths * 9 / 10],
               t->ratios[t->n_widths / 2]);
    putchar('\n');
}

static bool print_table(enum asked asked, struct tallies *t)
{
    printf("\n%s\n", asked_names[asked]);
    for (size_t i = 0; i < KINDS; i++)
        if (t->kinds[i].trials)
            print_row(kind_names[i], &t->kinds[i]);
    for (size_t i = 0; i < DOUBLINGS; i++) {
        char name[32];

        snprintf(name, sizeof(name), "%zu times the ranks", (size_t)2 << i);
        print_row(name, &t->doublings[i]);
    }
    print_row("all", &t->all);
    double given = (double)(t->all.trials - t->all.refused), all = (double)t->all.trials;
    const struct tally *sound = &t->kinds[SOUND];
    double middle = sound->n_widths ? sound->ratios[sound->n_widths / 2] : NAN;
    return (double)t->all.inside / given >= PROMISED && (all - given) / all <= REFUSED_MOST &&
           fabs(middle - 1) <= OFF_MOST;
}

int main(int argc, char **argv)
{
    static struct tallies tallies[ASKED];
    uint64_t seed = SEED;
    bool full = false, tell = false, tap = false, kept = true;

    for (int i = 1; i < argc; i++) {
        full |= !strcmp(argv[i], "--full");
        tell |= !strcmp(argv[i], "--tell");
        tap |= !strcmp(argv[i], "--tap");
        if (!strcmp(argv[i], "--seed") && i + 1 < argc)
            seed = strtoull(argv[++i], NULL, 10);
    }
    size_t clusters = full ? CLUSTERS_FULL : CLUSTERS_SHORT;
    printf("%zu clusters each, seed %llu: steps forecast from 4 or 8 ranks\n\n%-22s trials  "
           "refused   inside  high/low: median, 90 %%  truth/forecast\n",
           clusters, (unsigned long long)seed, "");
    for (int asked = 0; asked < ASKED; asked++) {
        for (size_t i = 0; i < clusters; i++)
            if (try_cluster(i, seed, (enum asked)asked, tell, &tallies[asked])) {
                fputs("forecast: a trial could not be made\n", stderr);
                return 2;
            }
        bool good = print_table((enum asked)asked, &tallies[asked]);
        if (tap)
            printf("%sok %d - %s: at least %.0f %% inside, at most %.0f %% refused, off by at most "
                   "%.0f %% in the middle\n",
                   good ? "" : "not ", asked + 1, asked_names[asked], 100 * PROMISED,
                   100 * REFUSED_MOST, 100 * OFF_MOST);
        kept &= good;
    }
    if (tap)
        printf("1..%d\n", ASKED);
    else
        printf("\n%s: at least %.0f %% inside, at most %.0f %% refused, off by at most %.0f %% in "
               "the middle\n",
               kept ? "kept" : "BROKEN", 100 * PROMISED, 100 * REFUSED_MOST, 100 * OFF_MOST);
    return kept ? 0 : 1;
}
