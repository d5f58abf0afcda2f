/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Made-up clusters, stepped through message by message: hosts with a link each, switches with a wire to the core, and collectives as
 * they are sent. No formula of a forecast is in here: times come from events alone.
 */
#ifndef PLUMB_SELFTEST_FABRIC_H
#define PLUMB_SELFTEST_FABRIC_H

#include <stdbool.h>
#include <stddef.h>

#include "core/rng.h"

#define FABRIC_HOSTS 64

enum fabric_way { WAY_RING, WAY_HALVING, WAY_DOUBLING };

struct fabric {
    double latency_us, jitter;      /* of a message; the deviation of its logarithm */
    double rate[FABRIC_HOSTS];      /* bytes a us, of a host's link, each way */
    double work[FABRIC_HOSTS];      /* times the nominal time of compute */
    size_t place[FABRIC_HOSTS];     /* where the i-th rank is */
    size_t leaf;                    /* hosts of a switch; 0: one switch */
    double uplink;                  /* bytes a us, between a switch and the core, each way */
    double work_jitter;             /* of each layer */
    double rate_jitter;             /* of all links in a launch */
    enum fabric_way way, way_later; /* ... of collectives of `later` ranks and more */
    size_t later;
    double small; /* bytes up to which the way is WAY_DOUBLING */
};

/* One collective of n ranks, which begin at start[] and end at end[] us. `slower`: times the latency and per byte, of this launch. */
void fabric_sum(const struct fabric *f, struct rng *rng, size_t n, double bytes, double slower,
                const double *start, double *end);

/* The same from a common start: the time until the last has ended. */
double fabric_sum_us(const struct fabric *f, struct rng *rng, size_t n, double bytes,
                     double slower);

/* A step: each rank computes its layers forward and backward, in reverse order; the sum of a layer's gradient begins, at each rank,
 * when its backward pass has ended there, and the sum before it. */
struct fabric_job {
    size_t layers;
    double forward_us, backward_us; /* of a layer */
    double bytes;                   /* of a layer's gradients: one sum */
    double together;                /* the rate of compute while the rank's sum goes on */
};

double fabric_step_us(const struct fabric *f, struct rng *rng, size_t n,
                      const struct fabric_job *job, double slower);

#endif
