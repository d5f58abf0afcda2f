/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worlds with a known truth: what a machine would have measured, made by code that shares nothing
 * with the judge, the suite's own random numbers among it (here: splitmix64 and Marsaglia's polar
 * method). Figures of a world are in percent, spreads are standard deviations. The logarithm of a
 * repetition is, higher being better,
 *
 *   its boot's + its run's + its own noise + what lies on a level, drifts, or was planted
 */
#ifndef PLUMB_SELFTEST_WORLDS_H
#define PLUMB_SELFTEST_WORLDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORLD_CASES 200
#define WORLD_RUNS  91
#define WORLD_REPS  5

/* t3: Student's, 3 degrees of freedom. Skewed: log-normal of sigma 1, pointing down. */
enum shape { SHAPE_NORMAL, SHAPE_T3, SHAPE_SKEWED };
/* How cases' spreads of runs differ: not at all; as their spreads of repetitions; independently. */
enum mixed_runs { RUNS_ALIKE, RUNS_SO, RUNS_APART };

struct world {
    double cases, reps;      /* 0: 40, and 5 a run */
    double rep, run;         /* spread of a run's repetitions, and of runs */
    double reps_of, runs_of; /* enum shape */
    double mixed; /* cases' spreads: 1 / mixed to mixed times that, log-uniform; 0: all alike */
    double mixed_runs;     /* enum mixed_runs */
    double lost_rep;       /* where mixed: the spread of the case that may lose */
    double tonight;        /* repetitions of the judged run scatter so many times as wide */
    double tonight_in;     /* but in every so many-th case alone */
    double weekend;        /* so many times, in two nights of seven */
    double boot[2];        /* spread of boots: uniform over the cases, from, to */
    double boots;          /* of the baselines, one after the other; 0: not known */
    double same_boot;      /* the judged run is of the last of these, or else of a new one */
    double common;         /* share of the runs' variance that all cases have alike */
    double group;          /* or so many neighbours */
    double rep_ar, run_ar; /* what is kept of the one before: AR(1) */
    double wave, ramp;     /* within a run: a slow wave; a fall, of each run its own */
    /* Two levels, each as likely, of repetitions and of whole runs: how far apart, and in how many
     * cases. */
    double rep_levels[2], run_levels[2];
    double strange;     /* one baseline is off by so much, in the case that may lose */
    double strange_all; /* or in all of them */
    double step;        /* values are rounded to such steps */
    double sustained;   /* a second figure, that far from the median; 0: none */
    double in_turn;     /* both sides meet the same levels: of a run, and of a repetition */
    double second;      /* and who goes second there loses so much */
};

/* A loss that is planted. */
enum planted { IN_ALL, IN_SUSTAINED, IN_ONE_REPETITION };

struct dice {
    uint64_t state;
    double spare; /* NaN: none */
};

/* What was measured; the last n_b of n runs are those that are judged. */
struct measured {
    const struct world *w;
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

void world_measure(const struct world *w, struct dice *d, size_t n_a, size_t n_b,
                   struct measured *m);
/* Case c's run t again, with a loss of so many percent. */
void world_lose(struct measured *m, size_t c, size_t t, double loss, enum planted planted);
bool world_higher(size_t c);

#endif
