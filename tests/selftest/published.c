/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model of a step (harness/forecast/step.h) with costs from datasheets alone, held against steps that others measured on clusters of
 * A100 and published. Nothing is fitted, and nobody promises a share: the table shows what a datasheet is worth. Exit 0 in any case.
 *
 * An A100 80GB SXM: 312 TFLOP/s dense in 16 bits, 2,039 GB/s of memory, NVLink 300 GB/s each way (NVIDIA A100 datasheet, 2021). A DGX
 * A100 has a link of 200 Gb/s for each GPU (NVIDIA DGX A100 datasheet). Tensor-parallel groups are inside a node, all others between nodes.
 *
 * usage: published
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/forecast/step.h"

#define FLOPS      312e12
#define MEMORY     2039e9
#define NVLINK     300e9
#define NETWORK    25e9
#define ADAM       28 /* bytes for each parameter, as plumb forecast has it */
#define BLOCKS_MAX 130
#define LAYERS_MAX (BLOCKS_MAX * 20)

enum again { AGAIN_ALL, AGAIN_ATTENTION }; /* what is computed again in the backward pass */

struct published {
    const char *name;
    double hidden, heads, blocks, words;
    double tp, pp, gpus, batch, at_once; /* samples; of a micro-batch */
    enum again again;
    double s;      /* a step; 0: by the rate of a GPU */
    double tflops; /* operations of a step by the source's own formula, a second and GPU */
    double chunks; /* of a stage, which make its bubble shorter (interleaving); 0: one */
};

/* V. Korthikanti and others, Reducing Activation Recomputation in Large Transformer Models, arXiv:2205.05198, 2022, tables 3 and 5;
 * Calculon (M. Isaev and others, SC'23) is validated on the same eight. 175B and 530B interleave three chunks a stage. Sequences of 2048
 * tokens, as are the others. */
static const struct published recomputing[] = {
    {"22B", 6144, 64, 48, 51200, 8, 1, 8, 4, 4, AGAIN_ALL, 1.42, 0, 0},
    {"22B", 6144, 64, 48, 51200, 8, 1, 8, 4, 4, AGAIN_ATTENTION, 1.10, 0, 0},
    {"175B", 12288, 96, 96, 51200, 8, 8, 64, 64, 1, AGAIN_ALL, 18.13, 0, 3},
    {"175B", 12288, 96, 96, 51200, 8, 8, 64, 64, 1, AGAIN_ATTENTION, 13.75, 0, 3},
    {"530B", 20480, 128, 105, 51200, 8, 35, 280, 280, 1, AGAIN_ALL, 49.05, 0, 3},
    {"530B", 20480, 128, 105, 51200, 8, 35, 280, 280, 1, AGAIN_ATTENTION, 37.83, 0, 3},
    {"1T", 25600, 160, 128, 51200, 8, 64, 512, 512, 1, AGAIN_ALL, 94.42, 0, 0},
    {"1T", 25600, 160, 128, 51200, 8, 64, 512, 512, 1, AGAIN_ATTENTION, 71.49, 0, 0},
    {0}};

/* D. Narayanan and others, Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, SC'21, arXiv:2104.04473,
 * table 1. It names no micro-batch; one sample makes the smallest bubble. */
static const struct published megatron[] = {
    {"1.7B", 2304, 24, 24, 51200, 1, 1, 32, 512, 1, AGAIN_ALL, 0, 137, 0},
    {"3.6B", 3072, 32, 30, 51200, 2, 1, 64, 512, 1, AGAIN_ALL, 0, 138, 0},
    {"7.5B", 4096, 32, 36, 51200, 4, 1, 128, 512, 1, AGAIN_ALL, 0, 142, 0},
    {"18.4B", 6144, 48, 40, 51200, 8, 1, 256, 1024, 1, AGAIN_ALL, 0, 135, 0},
    {"39.1B", 8192, 64, 48, 51200, 8, 2, 512, 1536, 1, AGAIN_ALL, 0, 138, 0},
    {"76.1B", 10240, 80, 60, 51200, 8, 4, 1024, 1792, 1, AGAIN_ALL, 0, 140, 0},
    {"145.6B", 12288, 96, 80, 51200, 8, 8, 1536, 2304, 1, AGAIN_ALL, 0, 148, 0},
    {"310.1B", 16384, 128, 96, 51200, 8, 16, 1920, 2160, 1, AGAIN_ALL, 0, 155, 0},
    {"529.6B", 20480, 128, 105, 51200, 8, 35, 2520, 2520, 1, AGAIN_ALL, 0, 163, 0},
    {"1008B", 25600, 160, 128, 51200, 8, 64, 3072, 3072, 1, AGAIN_ALL, 0, 163, 0},
    {0}};

/* S. Smith and others, Using DeepSpeed and Megatron to Train Megatron-Turing NLG 530B, arXiv:2201.11990, section 2.4: a step of 1920
 * samples on 280, 350 and 420 nodes of 8. */
static const struct published turing[] = {
    {"530B", 20480, 128, 105, 51200, 8, 35, 2240, 1920, 1, AGAIN_ALL, 60.1, 0, 0},
    {"530B", 20480, 128, 105, 51200, 8, 35, 2800, 1920, 1, AGAIN_ALL, 50.2, 0, 0},
    {"530B", 20480, 128, 105, 51200, 8, 35, 3360, 1920, 1, AGAIN_ALL, 44.4, 0, 0},
    {0}};

#define TOKENS 2048.0

/* ---- costs ---- */

static double product_s(const void *arg, double m, double n, double k, double count)
{
    (void)arg;
    return 2 * m * n * k * count / FLOPS;
}

static double stream_s(const void *arg, double bytes)
{
    (void)arg;
    return bytes / MEMORY;
}

/* Gradients are scattered and gathered (ZeRO 1), so that a sum is one of a tensor-parallel group. */
static double group_s(const void *arg, enum bench_part_of what, bool inner, double ranks,
                      double bytes)
{
    (void)arg;
    (void)inner;
    if (what == JOB_MESSAGE)
        return bytes / NETWORK;
    if (what == JOB_SUM)
        return 2 * (ranks - 1) / ranks * bytes / NVLINK;
    return (ranks - 1) / ranks * bytes / NETWORK;
}

/* ---- a model of the GPT kind ---- */

struct made {
    struct model model;
    struct model_layer layers[LAYERS_MAX];
};

static struct model_size size(double value)
{
    return (struct model_size){(uint64_t)value, 0};
}

static struct model_layer *add(struct made *made, unsigned block, double parameters, double output)
{
    struct model_layer *l = &made->layers[made->model.n_layers++];

    *l = (struct model_layer){.block = block,
                              .parameters = (uint64_t)parameters,
                              .count = 1,
                              .backward = 2,
                              .output = size(output)};
    return l;
}

static void add_product(struct made *made, unsigned block, double parameters, double n, double k,
                        enum model_split split, double sum)
{
    struct model_layer *l = add(made, block, parameters, TOKENS * n);

    l->m = size(TOKENS);
    l->n = size(n);
    l->k = size(k);
    l->split = split;
    l->sum = size(sum);
}

static void add_attention(struct made *made, unsigned block, const struct published *p)
{
    double head = p->hidden / p->heads;

    for (int i = 0; i < 2; i++) { /* scores, and what they weigh */
        struct model_layer *l =
            add(made, block, 0, TOKENS * (i ? p->hidden : 2 * p->heads * TOKENS));

        l->m = size(TOKENS);
        l->n = size(i ? head : TOKENS);
        l->k = size(i ? TOKENS : head);
        l->count = (uint64_t)p->heads;
        l->split = MODEL_COLUMN;
    }
}

static void add_block(struct made *made, unsigned block, const struct published *p, bool again)
{
    double h = p->hidden, parameters = again ? 0 : h * h, activations = TOKENS * h;
    size_t from = made->model.n_layers;

    if (!again || p->again == AGAIN_ALL) {
        add(made, block, again ? 0 : 2 * h, activations);
        add_product(made, block, 3 * parameters, 3 * h, h, MODEL_COLUMN, activations);
    }
    add_attention(made, block, p);
    if (!again || p->again == AGAIN_ALL) {
        add_product(made, block, parameters, h, h, MODEL_ROW, activations);
        add(made, block, again ? 0 : 2 * h, activations);
        add_product(made, block, 4 * parameters, 4 * h, h, MODEL_COLUMN, activations);
        add_product(made, block, 4 * parameters, h, 4 * h, MODEL_ROW, activations);
    }
    /* once more forward alone: no gradients, no backward products */
    for (size_t i = from; again && i < made->model.n_layers; i++) {
        made->layers[i].backward = 0;
        if (made->layers[i].split == MODEL_COLUMN)
            made->layers[i].sum = size(0);
        if (!made->layers[i].m.factor)
            made->layers[i].output = size(0);
    }
}

static void make_model(struct made *made, const struct published *p)
{
    unsigned blocks = (unsigned)p->blocks;

    made->model = (struct model){.layers = made->layers, .sequence = (uint64_t)TOKENS};
    add(made, 0, (p->words + TOKENS) * p->hidden, TOKENS * p->hidden)->split = MODEL_ROW;
    for (unsigned i = 1; i <= blocks; i++) {
        add_block(made, i, p, false);
        add_block(made, i, p, true);
    }
    add_product(made, blocks + 1, 0, p->words, p->hidden, MODEL_COLUMN, TOKENS * p->hidden);
}

/* ---- the table ---- */

/* Seconds that the source's rate means: its operations of a step are 96 B s l h^2 (1 + s / 6h + V / 16lh), recomputation counted. */
static double published_s(const struct published *p)
{
    double h = p->hidden, l = p->blocks;

    if (p->s > 0)
        return p->s;
    return 96 * p->batch * TOKENS * l * h * h * (1 + TOKENS / 6 / h + p->words / 16 / l / h) /
           (p->tflops * 1e12 * p->gpus);
}

static double print_row(const struct published *p)
{
    static struct made made;
    double dp = p->gpus / p->tp / p->pp, s = published_s(p);
    const struct step_costs costs = {.product = product_s,
                                     .stream = stream_s,
                                     .group = group_s,
                                     .call_s = NAN,
                                     .together = 1,
                                     .network = 1};
    struct step_time t;

    make_model(&made, p);
    const struct step_job job = {.model = &made.model,
                                 .batch = p->batch / dp,
                                 .sequence = (uint64_t)TOKENS,
                                 .dp = dp,
                                 .tp = p->tp,
                                 .pp = p->pp,
                                 .ep = 1,
                                 .micro = p->batch / dp / p->at_once,
                                 .zero = 1,
                                 .element_bytes = 2,
                                 .update_bytes = ADAM * dp, /* each rank updates all of its own */
                                 .compute_s = NAN};
    if (step_time(&job, &costs, &t) || isnan(t.step_s)) {
        printf("%-7s  the model of a step has no answer\n", p->name);
        return NAN;
    }
    if (p->chunks > 1) {
        t.step_s -= t.bubble_s * (1 - 1 / p->chunks);
        t.bubble_s /= p->chunks;
    }
    printf("%-7s %5.0f  %-9s %9.2f %9.2f  %+6.1f %%   %4.0f %% %4.0f %% %4.0f %% %4.0f %%\n",
           p->name, p->gpus, p->again == AGAIN_ALL ? "all" : "attention", s, t.step_s,
           100 * (t.step_s / s - 1), 100 * t.compute_s / t.step_s, 100 * t.bubble_s / t.step_s,
           100 * t.parallel_s / t.step_s, 100 * (t.exposed_s + t.update_s) / t.step_s);
    return t.step_s / s - 1;
}

static void print_table(const char *title, const struct published *rows)
{
    double most = 0, sum = 0;
    int n = 0;

    printf("\n%s\n%-7s %5s  %-9s %9s %9s  %8s   compute, bubble, groups, gradients and update\n",
           title, "model", "GPUs", "again", "published", "computed", "error");
    for (; rows->name; rows++, n++) {
        double off = print_row(rows);

        sum += fabs(off);
        most = fmax(most, fabs(off));
    }
    printf("mean error %.1f %%, largest %.1f %%\n", 100 * sum / n, 100 * most);
}

int main(void)
{
    printf("Steps by datasheets alone, in seconds: 312 TFLOP/s, 2,039 GB/s, NVLink 300 GB/s, 25 "
           "GB/s between nodes.\n"
           "Products at their limit, and no message costs time of its own.\n");
    print_table("Korthikanti and others, arXiv:2205.05198, table 5", recomputing);
    print_table("Narayanan and others, arXiv:2104.04473, table 1", megatron);
    print_table("Smith and others, arXiv:2201.11990, section 2.4", turing);
    return 0;
}
