/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Made-up clusters, each with a job: what they are, and how long a step takes there in truth (jobs.h, fabric.h). All is drawn by
 * chance, and nothing of it is a forecast's.
 */
#ifndef PLUMB_SELFTEST_CLUSTERS_H
#define PLUMB_SELFTEST_CLUSTERS_H

#include "core/model.h"
#include "tests/selftest/jobs.h"

#define SIDE 1024.0 /* of a layer's product */

/* What is asked: products are measured; or the passes of a step alone are, on one host, and take longer than the sums; or it is known
 * that the core carries everything, and it does. */
enum asked { FROM_PRODUCTS, COMPUTE_GIVEN, CORE_FULL, ASKED };

enum kind { SOUND, NOISY, SLOW_HOST, OVERSUBSCRIBED, OTHER_WAY, UNEQUAL_RAILS, KINDS };

/* How the model is divided. */
enum way {
    DATA,
    ZERO_1,
    ZERO_2,
    ZERO_3,
    TENSOR,
    PIPELINE,
    EXPERT,
    TENSOR_DATA,
    NODES_DATA,
    PIPELINE_DATA,
    EXPERT_DATA,
    PIPELINE_ZERO,
    THREE,
    WAYS
};

extern const char *const asked_names[ASKED], *const kind_names[KINDS], *const way_names[WAYS];

/* A layer and its shape. */
enum shape { WHOLE, COLUMN, ROW, OF_EXPERTS, SHAPE_KINDS };

struct cluster {
    enum kind kind;
    enum asked asked;
    enum way way;
    struct fabric fabric;
    double launches;       /* the deviation of a launch's logarithm */
    size_t measured, most; /* ranks, at most; and of the job */
    size_t layers;
    enum shape layer[JOB_LAYERS];
    double bytes;        /* of a layer's gradients */
    double rate, shapes; /* operations a us; how far shapes differ */
    double begin;        /* what a product takes beside, as a share of a whole layer's */
    double off[SHAPE_KINDS];
    double activations, message; /* bytes of a sample */
    size_t tp, pp, ep;           /* 0: all ranks */
    size_t experts, micro, per_bucket;
    unsigned zero;
    bool overlap, blocks;
    /* the share of a host's memory that a layer takes, and that the compute of the overlap benchmark takes */
    double appetite, probe;
};

struct ways {
    size_t dp, tp, pp, ep;
};

/* Number `number` of this way and question; its kind follows from the number. */
void cluster_make(struct cluster *c, struct rng *rng, size_t number, enum way way,
                  enum asked asked);

/* How the job's ranks are divided. */
struct ways cluster_ways(const struct cluster *c, size_t ranks);

/* The step of so many ranks, and the passes of the whole model alone on the first host; s. NaN: no memory. */
double cluster_step_s(const struct cluster *c, struct rng *rng, size_t ranks);
double cluster_compute_s(const struct cluster *c, struct rng *rng);

/* The job's model, as its file would say it. `layers` has room for JOB_LAYERS. */
void cluster_model(const struct cluster *c, struct model *model, struct model_layer *layers);

#endif
