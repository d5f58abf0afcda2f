/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Made-up clusters, stepped through event by event: hosts with a processor, memory and a link each, switches with a wire to the core,
 * collectives as they are sent, and compute beside them. No formula of a forecast is in here: times come from events alone. Nobody
 * says how fast compute and sums are beside each other. It follows from what they share:
 *
 *   memory      compute and messages move bytes through it; where they want more than it has, all of them slow down alike
 *   processor   what takes in a message takes a share of it
 *   attention   a host that computes is slower to begin a message
 */
#ifndef PLUMB_SELFTEST_FABRIC_H
#define PLUMB_SELFTEST_FABRIC_H

#include <stdbool.h>
#include <stddef.h>

#include "core/rng.h"

#define FABRIC_HOSTS  64
#define FABRIC_LAYERS 8

enum fabric_way { WAY_RING, WAY_HALVING, WAY_DOUBLING };

struct fabric {
    double latency_us, jitter;  /* of a message; the deviation of its logarithm */
    double rate[FABRIC_HOSTS];  /* bytes a us, of a host's link, each way */
    double work[FABRIC_HOSTS];  /* times the nominal time of compute */
    size_t place[FABRIC_HOSTS]; /* where the i-th rank is */
    size_t leaf;                /* hosts of a switch; 0: one switch */
    double uplink;              /* bytes a us, between a switch and the core, each way */
    double work_jitter;         /* of each layer */
    double memory;              /* bytes a us, of a host */
    double steals;              /* the share of a host's processor that an arriving message takes */
    double lag;                 /* times the latency of a message from a host that computes */
    double rate_jitter;         /* of all links in a launch */
    enum fabric_way way, way_later; /* ... of collectives of `later` ranks and more */
    size_t later;
    double small; /* bytes up to which the way is WAY_DOUBLING */
};

/* One collective of n ranks, alone, from a common start: the time until the last has ended. `slower`: times the latency and per byte, of
 * this launch. */
double fabric_sum_us(const struct fabric *f, struct rng *rng, size_t n, double bytes,
                     double slower);

/* A step: each rank computes its layers forward and backward, in reverse order; the sum of a layer's gradient begins, at each rank,
 * when its backward pass has ended there, and the sum before it. */
struct fabric_job {
    size_t layers;                  /* at most FABRIC_LAYERS */
    double forward_us, backward_us; /* of a layer */
    double bytes;                   /* of a layer's gradients: one sum */
    double appetite;                /* the share of its host's memory that compute alone takes */
};

double fabric_step_us(const struct fabric *f, struct rng *rng, size_t n,
                      const struct fabric_job *job, double slower);

/* The same without sums: the slowest rank's passes. */
double fabric_passes_us(const struct fabric *f, struct rng *rng, size_t n,
                        const struct fabric_job *job);

/* The share that an overlap benchmark finds: a sum alone, compute alone that nominally lasts as long, and both from a common start.
 * The slowest rank's times; what both save of their sum, as a share of the shorter. */
double fabric_hidden(const struct fabric *f, struct rng *rng, size_t n, double bytes,
                     double appetite, double slower);

#endif
