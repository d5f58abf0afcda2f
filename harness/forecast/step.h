/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time of one training step, from what its parts cost: pure functions. docs/forecast.md works
 * an example by hand, and has each assumption.
 *
 * A step is a list of works on two resources: the processor and the network between the ranks that
 * sum gradients. Each resource does its works in the order of the list, one at a time. A work waits
 * for up to two others. While both resources work, each goes on at a rate of its own: 1 where it
 * does not feel the other, a half for both where nothing is gained by doing both at once. An operation
 * inside a group, which the processor waits for, and a sum share one link.
 *
 * With ZeRO 3, layers are in groups: from the first layer on, a group takes layers until its
 * parameters are `bucket_bytes`. The gradients' buckets begin at the last layer, as without it. So a
 * bucket need not end where a group does.
 *
 * ZeRO 2 and 3 scatter the gradients of each micro-batch, so all of these are in the list; with them a
 * job of several micro-batches has one stage. Else the list is of the last micro-batch.
 *
 * The ranks of a job are dp x tp x pp. Experts are spread over ep of the dp ranks.
 */
#ifndef PLUMB_FORECAST_STEP_H
#define PLUMB_FORECAST_STEP_H

#include <stdbool.h>

#include "core/bench_rows.h"
#include "core/model.h"

struct step_job {
    const struct model *model;
    double batch;          /* samples of one data-parallel rank in a step */
    uint64_t sequence;     /* tokens of a sample */
    double dp, tp, pp, ep; /* at least 1 */
    double micro;          /* micro-batches; 1 */
    unsigned zero;         /* 0 to 3 */
    double bucket_bytes;   /* gradients that are summed together; 0: all of them */
    double prefetch;       /* ZeRO 3: groups of layers whose parameters are gathered ahead */
    double element_bytes;  /* of gradients, parameters and activations */
    double update_bytes;   /* that the update moves through memory, for each parameter */
    double state_bytes;    /* that the update keeps, for each parameter */
    double update_s;       /* of the update, where it is given; 0: by the bytes that it moves */
    bool overlap;          /* sums while the backward pass goes on; false: behind it */
    /* Forward and backward of a step, of the whole model on one rank, where it is given; NaN: from
     * products. Ranks of a layer, and stages, share it. */
    double compute_s;
};

/* What parts cost, in seconds; NaN: not known. */
struct step_costs {
    double (*product)(const void *arg, double m, double n, double k, double count);
    double (*stream)(const void *arg, double bytes);
    /* `inner`: ranks that share a model's layers, tokens or stages; else those that sum gradients */
    double (*group)(const void *arg, enum bench_part_of what, bool inner, double ranks,
                    double bytes);
    const void *arg;
    double call_s;            /* between two operations that are started one after another */
    double together, network; /* the rates of both while both work: 0.5 to 1 */
    bool waits;               /* a stage does nothing else while it sends */
    bool apart;               /* sums of gradients have other links than operations inside groups */
};

struct step_time {
    double step_s;    /* NaN: a part that it needs is not known; `lacks` says which */
    double compute_s; /* forward and backward passes of the busiest rank, alone */
    double bubble_s;  /* the pipeline's wait for its first and last micro-batch */
    double
        parallel_s; /* sums of tensor parallelism, messages of the pipeline, exchanges of experts */
    double sums_s;  /* the sums of gradients, alone */
    double exposed_s;           /* by how much these make the step longer */
    double update_s;            /* the update of the parameters */
    double sum_bytes;           /* of a rank's gradients */
    struct model_memory memory; /* of the rank that needs most */
    unsigned lacks;             /* bits 1 << enum bench_part_of */
};

/* The time of a step; -EINVAL: the job makes no sense for this model, such as more stages than it
 * has blocks. */
int step_time(const struct step_job *job, const struct step_costs *costs, struct step_time *time);

/* A rank of stage `stage`, counted from 0, that has the layers from `from` on, to before `to`. */
struct model_memory job_memory(const struct step_job *job, size_t stage, size_t from, size_t to);

/*
 * A pipeline of stages, each with its own time of a pass, in the order one forward, one backward. A
 * message takes message_s from a stage to its neighbour. A stage sends one after another, while it
 * works; where messages wait for each other at the receiver is not modelled.
 */
struct pipeline {
    size_t stages, micro;
    const double *forward_s, *backward_s; /* of each stage, of a micro-batch */
    double message_s;
    bool waits; /* a stage does nothing else while it sends */
};

/* When each stage has ended its last backward pass. */
void pipeline_run(const struct pipeline *p, double *end_s);

#endif
