/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worlds with a known truth: what nights on a machine look like, made by code that shares nothing with the judge, the
 * suite's own random numbers among it (here: libc's 48-bit generator, and Box-Muller's normals).
 *
 * A night's value of a case is, in logarithms,
 *
 *   truth (losses, a slip) + what the night differs by + what the launch differs by
 *
 * Nights differ in each case by itself, in groups of cases alike, or in all alike, by `shared`. All spreads are standard
 * deviations: of Student's t with 3 degrees of freedom and of the log-normal, too.
 */
#ifndef PLUMB_SELFTEST_WORLDS_H
#define PLUMB_SELFTEST_WORLDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORLD_CASES    200
#define WORLD_NIGHTS   64
#define WORLD_LAUNCHES 5

enum world_shape { SHAPE_NORMAL, SHAPE_T3, SHAPE_SKEWED };

struct world {
    const char *name, *what;
    double launch, night;    /* spread, 0.01: 1 % */
    size_t cases, baselines; /* nights before the one that is judged */
    enum world_shape shape;  /* of nights and launches */
    double mixed;        /* cases' spreads lie between 1 / mixed and mixed of these; 0: all alike */
    bool mixed_nights;   /* nights' spreads, too, each by its own draw */
    double shared;       /* share of the nights' variance that is common to all cases */
    size_t group;        /* with `shared`: common to so many neighbours alone; 0: to all */
    size_t level_cases;  /* so many cases have two levels `gap` apart, one a night */
    bool level_launches; /* or one a launch */
    double gap;
    double hang;  /* what a night keeps of the night before: AR(1) */
    double slip;  /* what the cases that slip lose from night to night */
    bool in_turn; /* night 0 and night 1 were measured in turn, launch by launch */
    double order; /* who goes second there loses so much */
};

/* All nights of one suite: values[case][night][launch], the last of the baselines + 1 nights is the one to judge. In turn,
 * night 0 is A and night 1 is B, and first[case][launch] says whether A went first. */
struct nights {
    double values[WORLD_CASES][WORLD_NIGHTS][WORLD_LAUNCHES];
    /* The fast figure of the same launches: of every second case the same as the median, of the
     * others independent noise of the same kind. */
    double fast[WORLD_CASES][WORLD_NIGHTS][WORLD_LAUNCHES];
    bool first[WORLD_CASES][WORLD_LAUNCHES];
};

struct truth {
    size_t n_lost; /* the first so many of a shuffled order of the cases */
    double loss;   /* of the judged night; 0: none */
    bool lost[WORLD_CASES];
};

struct dice {
    uint64_t state;
    bool kept;
    double other;
};
void dice_seed(struct dice *d, uint64_t seed);

/* truth->n_lost and loss are read, and lost[] is set. */
void world_make(const struct world *w, struct dice *d, struct truth *truth, struct nights *out);

#endif
