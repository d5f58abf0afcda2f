/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is plumb forecast honest or silent? Made-up clusters whose truth is known (clusters.h): operations between ranks are measured on 4 or
 * 8 of up to 64 hosts, a step on 2, 4 and 8 times as many is forecast, and then stepped through. Prints how many truths lie in the 95 %
 * interval, how many forecasts were refused, and how wide the intervals are: of data-parallel jobs by kind of cluster and by doublings,
 * of models that are divided by way. Exit 1: fewer lie inside than PROMISED, more are refused than REFUSED_MOST, or forecasts of sound
 * clusters are off by more than a limit in the middle, which wide intervals would hide.
 *
 * usage: forecast [--short] [--seed N] [--tell] [--tap]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/forecast/forecast.h"
#include "tests/selftest/clusters.h"
#include "tests/selftest/promise.h"

#define CLUSTERS_FULL  200
#define CLUSTERS_SHORT 20
#define SEED           20250607
#define PROMISED       0.90
#define REFUSED_MOST   0.40
#define OFF_MOST       0.03 /* the median of truth / forecast on sound clusters */
/* The same of models that are divided. Of one group of all ranks, products are far from what was measured. */
#define OFF_ZERO    0.05
#define OFF_DIVIDED 0.15
#define OFF_TENSOR  0.30
/* The share inside of few clusters, of which one trial is much. */
#define PROMISED_FEW 0.80
#define LAUNCHES     3
#define SHAPES       5
#define DOUBLINGS    3

static const struct bench_terms ring = {
    .where = "", .messages = "2 * (n - 1)", .bytes = "2 * (n - 1) / n", .bus = "2 * (n - 1) / n"};
static const struct bench_terms halving = {
    .where = "", .messages = "2 * steps", .bytes = "2 * (p - 1) / p", .bus = "2 * (n - 1) / n"};
static const struct bench_terms part_of_ring = {
    .where = "", .messages = "n - 1", .bytes = "(n - 1) / n", .bus = "(n - 1) / n"};
static const struct bench_terms one_message = {
    .where = "", .messages = "1", .bytes = "1", .bus = "1"};
static const double sizes[] = {1 << 16, 1 << 20, 1 << 23, 1 << 26};
#define SIZES (sizeof(sizes) / sizeof(*sizes))

/* ---- what is measured ---- */

struct measured {
    struct fit_point points[JOB_PARTS][SIZES * 8], inside[JOB_PARTS][SIZES * 8];
    struct part_product products[SHAPES];
    struct parts parts;
};

static const enum fabric_what measured_as[JOB_PARTS] = {[JOB_SUM] = FABRIC_SUM,
                                                        [JOB_SCATTER] = FABRIC_SCATTER,
                                                        [JOB_GATHER] = FABRIC_GATHER,
                                                        [JOB_EXCHANGE] = FABRIC_EXCHANGE,
                                                        [JOB_MESSAGE] = FABRIC_MESSAGE};

static double measure_one(const struct cluster *c, struct rng *rng, enum bench_part_of what,
                          size_t ranks, double bytes)
{
    double sum = 0;

    for (int i = 0; i < LAUNCHES; i++)
        sum += log(fabric_collective_us(&c->fabric, rng, measured_as[what], ranks, bytes,
                                        exp(c->launches * rng_normal(rng))));
    return exp(sum / LAUNCHES);
}

/* A bench knows the terms of the way that it was asked for; where a library changes its way, nobody tells. */
static const struct bench_terms *terms_of(const struct cluster *c, enum bench_part_of what)
{
    if (what == JOB_SUM)
        return c->fabric.way == WAY_RING ? &ring : &halving;
    return what == JOB_MESSAGE ? &one_message : &part_of_ring;
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

static void measure_law(const struct cluster *c, struct rng *rng, enum bench_part_of what,
                        size_t from, size_t to, struct part_law *law, struct fit_point *points)
{
    law->law.terms = terms_of(c, what);
    law->law.points = points;
    for (size_t ranks = from; ranks <= to; ranks *= 2)
        for (size_t i = 0; i < SIZES; i++)
            points[law->law.n++] = (struct fit_point){(double)ranks, sizes[i],
                                                      measure_one(c, rng, what, ranks, sizes[i])};
}

/* Of nodes with several ranks: between nodes with all of them, and inside one. */
static void measure_between(const struct cluster *c, struct rng *rng, enum bench_part_of what,
                            struct measured *m)
{
    struct part_law *law = &m->parts.laws[what], *inside = &m->parts.inside[what];
    size_t each = c->fabric.per_host;

    measure_law(c, rng, what, each ? 2 * each : 2, c->measured, law, m->points[what]);
    if (!each)
        return;
    measure_law(c, rng, what, 2, each, inside, m->inside[what]);
    const size_t hosts = c->measured / each;
    law->nodes = (double)hosts;
    inside->nodes = 1;
    law->per_node = inside->per_node = (double)each;
}

/* Of jobs that are divided also smaller ones, in each of their sides, which take longer for what they do. */
static void measure_products(const struct cluster *c, struct rng *rng, struct measured *m)
{
    double step = c->way == DATA ? 0.5 : 1, least = c->way == DATA ? -1.2 : -3.5;

    for (size_t i = 0; i < SHAPES; i++) {
        double times = exp2(step * (double)i + least), sides[3] = {SIDE, SIDE, SIDE};
        double rate = c->rate * 1e6 / (1 + c->begin / times) * exp(c->shapes * rng_normal(rng));

        sides[c->way == DATA ? 0 : i % 3] *= times;
        m->products[m->parts.n_products++] =
            (struct part_product){sides[0], sides[1], sides[2], rate, NAN, c->fabric.work_jitter};
    }
    parts_product_spread(&m->parts);
}

static void measure(const struct cluster *c, struct rng *rng, struct measured *m)
{
    *m = (struct measured){.parts = {.products = m->products,
                                     .stream = NAN,
                                     .call_s = NAN,
                                     .gpu = c->fabric.per_host > 1,
                                     .machine = "made up",
                                     .dtype = "f32"}};
    measure_overlap(c, rng, &m->parts);
    measure_between(c, rng, JOB_SUM, m);
    if (c->way != DATA) {
        measure_between(c, rng, JOB_SCATTER, m);
        measure_between(c, rng, JOB_GATHER, m);
        measure_between(c, rng, JOB_EXCHANGE, m);
        measure_between(c, rng, JOB_MESSAGE, m);
    }
    measure_products(c, rng, m);
}

static struct step_job asked_of(const struct cluster *c, const struct model *model,
                                const struct ways *w, double compute_s)
{
    /* a bucket is full with the layers that it is to have */
    double bytes = c->bytes / (c->tp > 1 || !c->tp ? (double)w->tp : 1);

    return (struct step_job){.model = model,
                             .batch = (double)c->micro,
                             .tp = (double)w->tp,
                             .pp = (double)w->pp,
                             .ep = (double)w->ep,
                             .micro = (double)c->micro,
                             .zero = c->zero,
                             .prefetch = 1,
                             .bucket_bytes = bytes * ((double)c->per_bucket - 0.5),
                             .element_bytes = 4,
                             .overlap = c->overlap,
                             .compute_s = compute_s};
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

static void tell_trial(const struct cluster *c, size_t number, const struct forecast_point *p,
                       double truth_s)
{
    if (p->refused || (p->low_s <= truth_s && truth_s <= p->high_s))
        return;
    printf(
        "missed: %s, %s, cluster %zu, %s, %zu of %.0f ranks: %.3f of the forecast (%.3f to %.3f)\n",
        way_names[c->way], asked_names[c->asked], number, kind_names[c->kind], c->measured,
        p->ranks, truth_s / p->time.step_s, p->low_s / p->time.step_s, p->high_s / p->time.step_s);
}

static int forecast_ranks(const struct cluster *c, struct forecast *f, size_t ranks,
                          double compute_s, struct forecast_point *p)
{
    const struct ways w = cluster_ways(c, ranks);

    f->job = asked_of(c, f->job.model, &w, compute_s);
    return forecast_point(f, (double)ranks, p);
}

static int try_cluster(size_t number, uint64_t seed, enum way way, enum asked asked, bool tell,
                       struct tallies *t)
{
    static struct measured m;
    struct cluster c;
    struct model_layer layers[JOB_LAYERS];
    struct model model;
    struct rng rng;

    rng_seed(&rng, seed * 1000003 + number + 1000 * (uint64_t)way);
    cluster_make(&c, &rng, number, way, asked);
    measure(&c, &rng, &m);
    cluster_model(&c, &model, layers);
    double compute_s = asked == COMPUTE_GIVEN ? cluster_compute_s(&c, &rng) : NAN;
    struct forecast f = {.parts = &m.parts,
                         .per_node = c.fabric.per_host ? (double)c.fabric.per_host : 1,
                         .core_known = asked == CORE_FULL,
                         .job = {.model = &model}};
    for (size_t d = 0; d < DOUBLINGS && c.measured << (d + 1) <= c.most; d++) {
        size_t ranks = c.measured << (d + 1);
        struct forecast_point p;

        if (forecast_ranks(&c, &f, ranks, compute_s, &p))
            return -1;
        double truth_s = cluster_step_s(&c, &rng, ranks);
        if (isnan(truth_s))
            return -1;
        add_trial(&t->all, &p, truth_s);
        add_trial(&t->kinds[c.kind], &p, truth_s);
        add_trial(&t->doublings[d], &p, truth_s);
        if (tell)
            tell_trial(&c, number, &p, truth_s);
    }
    return 0;
}

/* ---- the tables ---- */

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;

    return (a > b) - (a < b);
}

static double middle_of(struct tally *t)
{
    qsort(t->ratios, t->n_widths, sizeof(*t->ratios), by_value);
    return t->n_widths ? t->ratios[t->n_widths / 2] : NAN;
}

static void print_row(const char *name, struct tally *t, struct tally *sound)
{
    size_t given = t->trials - t->refused;

    qsort(t->widths, t->n_widths, sizeof(*t->widths), by_value);
    printf("%-22s %6zu  %5.1f %%  %5.1f %%      ", name, t->trials,
           100.0 * (double)t->refused / (double)t->trials,
           100.0 * (double)t->inside / (double)(given ? given : 1));
    if (t->n_widths)
        printf("%5.2f, %5.2f      %.3f", t->widths[t->n_widths / 2],
               t->widths[t->n_widths * 9 / 10], middle_of(t));
    if (sound)
        printf(", %.3f", middle_of(sound));
    putchar('\n');
}

/* Whether the promises are kept, of what was counted. */
static bool is_kept(struct tallies *t, double inside, double off_most)
{
    double given = (double)(t->all.trials - t->all.refused), all = (double)t->all.trials;

    return (double)t->all.inside / given >= inside && (all - given) / all <= REFUSED_MOST &&
           fabs(middle_of(&t->kinds[SOUND]) - 1) <= off_most;
}

struct options {
    struct promises said;
    size_t clusters, divided; /* of each question, and of each other way */
    uint64_t seed;
    bool tell;
};

static double off_most(int way)
{
    return way <= ZERO_3 ? OFF_ZERO : way == TENSOR ? OFF_TENSOR : OFF_DIVIDED;
}

static void judge(struct options *o, const char *name, struct tallies *t, double inside,
                  double off_most)
{
    promise_tell(&o->said, !is_kept(t, inside, off_most),
                 "%s: at least %.0f %% inside, at most %.0f %% refused, off by at most %.0f %% in "
                 "the middle",
                 name, 100 * inside, 100 * REFUSED_MOST, 100 * off_most);
}

static void print_table(struct tallies *t)
{
    for (size_t i = 0; i < KINDS; i++)
        if (t->kinds[i].trials)
            print_row(kind_names[i], &t->kinds[i], NULL);
    for (size_t i = 0; i < DOUBLINGS; i++) {
        char name[32];

        snprintf(name, sizeof(name), "%zu times the ranks", (size_t)2 << i);
        print_row(name, &t->doublings[i], NULL);
    }
    print_row("all", &t->all, NULL);
}

/* Data-parallel jobs. */
static int try_data(struct options *o)
{
    for (int asked = 0; asked < ASKED; asked++) {
        static struct tallies t;

        memset(&t, 0, sizeof(t));
        for (size_t i = 0; i < o->clusters; i++)
            if (try_cluster(i, o->seed, DATA, (enum asked)asked, o->tell, &t))
                return -1;
        if (!o->said.tap) {
            printf("\n%s\n", asked_names[asked]);
            print_table(&t);
        }
        judge(o, asked_names[asked], &t, o->said.brief ? PROMISED_FEW : PROMISED, OFF_MOST);
    }
    return 0;
}

/* Clusters of each kind in turn, and all kinds with each question in turn: of few clusters a way has one question. */
static int try_ways(struct options *o)
{
    static struct tallies each[ASKED][WAYS];

    for (int way = DATA + 1; way < WAYS; way++)
        for (size_t i = 0; i < o->divided; i++) {
            enum asked asked = (i / KINDS + (size_t)way) % ASKED;

            if (try_cluster(i, o->seed, (enum way)way, asked, o->tell, &each[asked][way]))
                return -1;
        }
    for (int asked = 0; asked < ASKED; asked++) {
        if (!o->said.tap)
            printf("\n%s, of models that are divided (sound clusters behind the comma)\n",
                   asked_names[asked]);
        for (int way = DATA + 1; way < WAYS; way++) {
            struct tallies *t = &each[asked][way];

            if (!t->all.trials)
                continue;
            if (!o->said.tap)
                print_row(way_names[way], &t->all, &t->kinds[SOUND]);
            judge(o, way_names[way], t, o->said.brief ? PROMISED_FEW : PROMISED, off_most(way));
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct options o = {.clusters = CLUSTERS_FULL, .divided = CLUSTERS_FULL, .seed = SEED};

    for (int i = 1; i < argc; i++) {
        o.said.brief |= !strcmp(argv[i], "--short");
        o.said.tap |= !strcmp(argv[i], "--tap");
        o.tell |= !strcmp(argv[i], "--tell");
        if (!strcmp(argv[i], "--seed") && i + 1 < argc)
            o.seed = strtoull(argv[++i], NULL, 10);
    }
    if (o.said.brief) {
        o.clusters = CLUSTERS_SHORT;
        o.divided = KINDS;
    }
    if (!o.said.tap)
        printf("%zu clusters each, seed %llu: steps forecast from 4 or 8 ranks\n\n%-22s trials  "
               "refused   inside  high/low: median, 90 %%  truth/forecast\n",
               o.clusters, (unsigned long long)o.seed, "");
    if (try_data(&o) || try_ways(&o)) {
        fputs("forecast: a trial could not be made\n", stderr);
        return 2;
    }
    return promise_end(&o.said, "forecast");
}
