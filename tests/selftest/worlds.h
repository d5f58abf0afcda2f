/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worlds with a known truth: what a machine would have measured, made by code that shares nothing
 * with the judge, the suite's own random numbers among it (here: splitmix64 and Marsaglia's polar
 * method). The logarithm of a repetition is, higher being better,
 *
 *   its boot's + its run's + its own noise + what lies on a level, drifts, or was planted
 */
#ifndef PLUMB_SELFTEST_WORLDS_H
#define PLUMB_SELFTEST_WORLDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/selftest/cells.h"

#define WORLD_CASES 200
#define WORLD_RUNS  91
#define WORLD_REPS  5

/* A loss that is planted. */
enum planted { IN_ALL, IN_SUSTAINED, IN_ONE_REP };

struct dice {
    uint64_t state;
    double spare; /* NaN: none */
};

/* What was measured; the last n_b of n runs are those that are judged. */
struct measured {
    const struct cell *w;
    size_t cases, reps, n, n_b;
    size_t first; /* the case that may lose; of more, those behind it */
    double log[WORLD_CASES][WORLD_RUNS][WORLD_REPS], off[WORLD_CASES][WORLD_RUNS][WORLD_REPS];
    double phase[WORLD_CASES]; /* of steps */
    /* In units; in every second case lower is better. */
    double values[WORLD_CASES][WORLD_RUNS][WORLD_REPS], all[WORLD_CASES][WORLD_RUNS][WORLD_REPS];
    bool went_first[WORLD_CASES][WORLD_RUNS][WORLD_REPS];
    unsigned boot[WORLD_RUNS];
};

void dice_seed(struct dice *d, uint64_t seed);
size_t dice_below(struct dice *d, size_t n);

void world_measure(const struct cell *w, struct dice *d, size_t n_a, size_t n_b,
                   struct measured *m);
/* Case c's run t again, with a loss of so many percent. */
void world_lose(struct measured *m, size_t c, size_t t, double loss, enum planted planted);
bool world_higher(size_t c);

#endif
