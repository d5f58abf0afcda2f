/* SPDX-License-Identifier: Apache-2.0 */
/* Made-up clusters with jobs: see clusters.h. */
#include "tests/selftest/clusters.h"

#include <math.h>

const char *const asked_names[ASKED] = {"products measured", "compute given", "core full"};

const char *const kind_names[KINDS] = {
    "sound", "noisy", "a slow host", "core oversubscribed", "algorithm changes", "rails unequal"};

const char *const way_names[WAYS] = {"data parallel",
                                     "ZeRO 1",
                                     "ZeRO 2",
                                     "ZeRO 3",
                                     "tensor",
                                     "pipeline",
                                     "experts",
                                     "tensor, data",
                                     "tensor in nodes, data",
                                     "pipeline, data",
                                     "experts, data",
                                     "pipeline, ZeRO 1",
                                     "tensor, pipeline, data"};

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

/* The slow host is one of the job's. */
static void make_fabric(struct cluster *c, struct rng *rng)
{
    struct fabric *f = &c->fabric;
    double rate = between(rng, 100, 5000);
    size_t slow = (size_t)rng_below(rng, c->most);

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

static enum kind kind_of(enum way way, enum asked asked, size_t number)
{
    enum kind kind = number % (way == DATA ? UNEQUAL_RAILS : KINDS);

    return asked == CORE_FULL && kind == OVERSUBSCRIBED ? SOUND : kind;
}

static double layer_flop(void)
{
    return 2 * SIDE * SIDE * SIDE;
}

/* ---- jobs that are divided ---- */

static void divide(struct cluster *c, struct rng *rng)
{
    size_t few = (size_t)2 << rng_below(rng, 2);

    switch (c->way) {
    case ZERO_1:
    case ZERO_2:
    case ZERO_3:
        c->zero = (unsigned)(c->way - ZERO_1 + 1);
        c->micro = 1 + (size_t)rng_below(rng, 2);
        break;
    case TENSOR:
        c->tp = 0;
        break;
    case PIPELINE:
        c->pp = 0;
        break;
    case EXPERT:
        c->ep = 0;
        break;
    case TENSOR_DATA:
    case NODES_DATA:
        c->tp = few;
        break;
    case PIPELINE_ZERO:
        c->zero = 1;
        c->pp = few;
        break;
    case PIPELINE_DATA:
        c->pp = few;
        break;
    case EXPERT_DATA:
        c->ep = few;
        break;
    case THREE:
        c->tp = c->pp = 2;
        break;
    case DATA:
    case WAYS:
        break;
    }
}

static bool has_stages(const struct cluster *c)
{
    return c->pp != 1;
}

/* Blocks of one layer, or of two: of a tensor-parallel group, or with experts. */
static void make_layers(struct cluster *c, struct rng *rng)
{
    size_t blocks = !c->pp ? 16 : c->pp > 1 ? c->pp * (1 + (size_t)rng_below(rng, 2)) : c->layers;
    bool tensor = c->tp != 1, experts = c->ep != 1;

    c->layers = 0;
    for (size_t i = 0; i < blocks; i++) {
        c->layer[c->layers++] = tensor ? COLUMN : WHOLE;
        if (tensor || experts)
            c->layer[c->layers++] = tensor ? ROW : OF_EXPERTS;
    }
    if (has_stages(c))
        c->micro = (c->pp ? c->pp : 8) * (1 + (size_t)rng_below(rng, 2));
}

/* Bytes that take a share of a layer's forward pass, of the links of so many ranks. */
static double bytes_beside(const struct cluster *c, struct rng *rng, double rate, double low,
                           double high)
{
    return 4 * ceil(between(rng, low, high) * layer_flop() / c->rate * rate / 4);
}

static void make_job(struct cluster *c, struct rng *rng)
{
    struct fabric *f = &c->fabric;
    bool nodes = c->way == NODES_DATA;

    divide(c, rng);
    make_layers(c, rng);
    if (c->kind == UNEQUAL_RAILS)
        f->second = between(rng, 0.5, 0.95);
    f->chance = rng_u64(rng);
    f->meets = rng_double(rng) < 0.5;
    c->blocks = rng_double(rng) < 0.5;
    c->overlap = rng_double(rng) < 0.8;
    c->per_bucket = 1 + (size_t)rng_below(rng, 2);
    c->begin = 0.05 * rng_double(rng);
    c->experts = c->ep == 1 ? 0 : c->ep ? 2 * c->ep : 16;
    if (nodes) {
        f->per_host = c->tp;
        f->inside = f->rate[0] * between(rng, 2, 10);
        f->inside_us = f->latency_us * between(rng, 0.1, 0.5);
        f->memory = fmax(f->memory, 5 * f->inside);
        c->measured *= c->tp;
    }
    double tensor = nodes ? f->inside : f->rate[0], share = c->tp ? (double)c->tp : 8;
    c->activations = bytes_beside(c, rng, tensor, 0.05 / share, 0.6 / share);
    c->message = bytes_beside(c, rng, f->rate[0], 0.05, 0.5);
    for (size_t i = 0; i < SHAPE_KINDS; i++)
        c->off[i] = c->shapes * rng_normal(rng);
}

/* Groups of all ranks, in one of which all is, grow no further. */
static size_t most_ranks(enum way way)
{
    return way == TENSOR || way == PIPELINE || way == EXPERT ? 16 : FABRIC_RANKS;
}

void cluster_make(struct cluster *c, struct rng *rng, size_t number, enum way way, enum asked asked)
{
    *c = (struct cluster){.kind = kind_of(way, asked, number),
                          .asked = asked,
                          .way = way,
                          .most = most_ranks(way),
                          .tp = 1,
                          .pp = 1,
                          .ep = 1,
                          .micro = 1,
                          .per_bucket = 1,
                          .overlap = true};
    make_fabric(c, rng);
    c->launches = c->kind == NOISY ? 0.03 : between(rng, 0.002, 0.015);
    c->measured = rng_double(rng) < 0.5 ? 4 : 8;
    c->layers = 3 + (size_t)rng_below(rng, 3);
    c->bytes = 4 * floor(between(rng, 2e6, 40e6) / 4);
    /* backward pass of a layer against its sum on the links */
    double sum_us = 2 * c->bytes / c->fabric.rate[0];
    double longer = asked == COMPUTE_GIVEN ? between(rng, 3, 10) : between(rng, 0.3, 3);
    c->rate = 2 * layer_flop() / (sum_us * longer);
    c->shapes = between(rng, 0.01, 0.06);
    c->off[WHOLE] = c->shapes * rng_normal(rng);
    c->appetite = between(rng, 0.1, 0.9);
    c->probe = between(rng, 0.1, 0.9);
    if (way != DATA)
        make_job(c, rng);
}

/* ---- the model, and the truth ---- */

void cluster_model(const struct cluster *c, struct model *model, struct model_layer *layers)
{
    const struct model_size none = {0, 0}, side = {(uint64_t)SIDE, 0},
                            sum = {(uint64_t)(c->activations / 4), 0};
    bool pairs = c->tp != 1 || c->ep != 1;

    *model = (struct model){
        .name = "made up", .layers = layers, .n_layers = c->layers, .experts = c->experts};
    for (size_t i = 0; i < c->layers; i++) {
        enum shape shape = c->layer[i];

        layers[i] = (struct model_layer){
            .block = (unsigned)(pairs ? i / 2 : i),
            .parameters = (uint64_t)(c->bytes / 4),
            .m = side,
            .n = side,
            .k = side,
            .count = 1,
            .backward = 2,
            .output = has_stages(c) ? (struct model_size){(uint64_t)(c->message / 4), 0} : none,
            .sum = shape == COLUMN || shape == ROW ? sum : none,
            .kind = shape == OF_EXPERTS ? MODEL_EXPERT : MODEL_DENSE,
            .split = shape == COLUMN ? MODEL_COLUMN
                     : shape == ROW  ? MODEL_ROW
                                     : MODEL_WHOLE};
    }
}

struct ways cluster_ways(const struct cluster *c, size_t ranks)
{
    struct ways w = {.tp = c->tp ? c->tp : ranks, .pp = c->pp ? c->pp : ranks};

    w.dp = ranks / w.tp / w.pp;
    w.ep = c->ep ? c->ep : w.dp;
    return w;
}

/* A product is split among the ranks of a group; each expert of a rank has one of its own. */
static struct job_layer layer_of(const struct cluster *c, size_t i, const struct ways *w)
{
    enum shape shape = c->layer[i];
    bool split = shape == COLUMN || shape == ROW, expert = shape == OF_EXPERTS;
    double flop = layer_flop() / (split ? (double)w->tp : 1);
    double products = expert ? (double)c->experts / (double)w->ep : 1;
    double us = (flop + products * c->begin * layer_flop()) / (c->rate * exp(c->off[shape]));

    return (struct job_layer){.forward_us = us,
                              .backward_us = 2 * us,
                              .gradients = c->bytes / (split    ? (double)w->tp
                                                       : expert ? (double)w->ep
                                                                : 1),
                              .sum_forward = shape == ROW ? c->activations : 0,
                              .sum_backward = shape == COLUMN ? c->activations : 0,
                              .tokens = expert ? 4 * SIDE * SIDE : 0,
                              .expert = expert};
}

static struct job job_of(const struct cluster *c, const struct ways *w)
{
    struct job job = {.dp = w->dp,
                      .tp = w->tp,
                      .pp = w->pp,
                      .ep = w->ep,
                      .micro = c->micro,
                      .zero = c->zero,
                      .prefetch = 1,
                      .per_bucket = c->per_bucket,
                      .overlap = c->overlap,
                      .blocks = c->blocks,
                      .message = c->message,
                      .appetite = c->appetite,
                      .n_layers = c->layers};

    for (size_t i = 0; i < c->layers; i++)
        job.layers[i] = layer_of(c, i, w);
    return job;
}

double cluster_step_s(const struct cluster *c, struct rng *rng, size_t ranks)
{
    const struct ways w = cluster_ways(c, ranks);
    const struct job job = job_of(c, &w);

    return 1e-6 * job_step_us(&job, &c->fabric, rng, exp(c->launches * rng_normal(rng)), true);
}

/* The passes of the whole model, on the first host, with nothing to sum. */
double cluster_compute_s(const struct cluster *c, struct rng *rng)
{
    const struct ways one = {1, 1, 1, 1};
    const struct job job = job_of(c, &one);

    return 1e-6 * job_step_us(&job, &c->fabric, rng, 1, false);
}
