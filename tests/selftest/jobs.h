/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A step of training on a made-up cluster: what each rank does, one after another, as docs/step.md describes it. No time is computed
 * here; fabric.h steps through it.
 *
 * Ranks are numbered with tensor parallelism innermost, then stages, then data parallelism.
 */
#ifndef PLUMB_SELFTEST_JOBS_H
#define PLUMB_SELFTEST_JOBS_H

#include "tests/selftest/fabric.h"

#define JOB_LAYERS 64

/* Of one rank, and one micro-batch. */
struct job_layer {
    double forward_us, backward_us;
    double gradients; /* bytes that this rank has */
    double sum_forward,
        sum_backward; /* bytes that its tensor-parallel group sums behind the pass */
    double tokens;    /* bytes that are exchanged before and behind each pass; 0: none */
    bool expert;      /* one rank of ep has it */
};

struct job {
    size_t dp, tp, pp, ep, micro;
    unsigned zero;
    size_t prefetch, per_bucket; /* layers of a bucket, and of a group that is gathered */
    bool overlap;
    bool blocks;    /* a stage does nothing else while it sends */
    double message; /* bytes, between stages */
    double appetite;
    size_t n_layers; /* the same number for each stage */
    struct job_layer layers[JOB_LAYERS];
};

/* The time of a step; NaN: no memory. `messages` false: compute alone. */
double job_step_us(const struct job *job, const struct fabric *f, struct rng *rng, double slower,
                   bool messages);

#endif
