/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two levels: real machines often run at one of two speeds (placement, a library's mode), and a
 * median between them, or of one of them, hides the other. Pure functions. docs/statistics.md has
 * the method, and the share found and falsely raised in simulation.
 *
 * A level is a tight cluster of values: outliers that scatter widely, skewed or heavy tails, drift
 * and the ticks of a coarse clock are not levels. Spikes of one and the same size are a level where
 * they are frequent enough, or come in a row.
 */
#ifndef PLUMB_CORE_LEVELS_H
#define PLUMB_CORE_LEVELS_H

#include <stdbool.h>
#include <stddef.h>

#define LEVELS_MIN_DIFFERENCE 0.01  // levels nearer than this share of the larger one do not matter
#define LEVELS_MIN_SAMPLES    20    // below, levels_of_samples() never says two
#define LEVELS_MIN_COUNT      10    // samples on the rarer level
#define LEVELS_MIN_SHARE      0.075 // of the samples on the rarer level, see below
#define LEVELS_MIN_LAUNCHES   4     // below, levels_of_launches() never says two

struct levels {
    bool two;
    double low, high; // medians of the levels; these and all that follow are NaN where not two
    double share_low, share_high; // of the values on each; their sum is 1
    double separation;            // distance of the levels in standard deviations of the wider one
    double p_value; // that the valley between them be so empty by chance; NaN for launches
};

// Samples of one launch, in the order of time. The rarer level must have LEVELS_MIN_SHARE of the
// samples (less below 600 samples, 5.8 % of 200: what a level of 10 % hardly ever falls short of),
// or come in rows of three and more; equal spikes in 5 % of samples can look like that from 100 to
// 500 samples. Sure of two levels 10 standard deviations apart from about 50 samples on; nearer
// than 3.8 it never says two. Levels on neighbouring ticks of the clock, with nothing but those two
// values, are never called two: a single level between two ticks looks the same. Returns 0, -EINVAL
// (n is 0) or -EDOM (a value is NaN or infinite).
int levels_of_samples(const double *x, size_t n, struct levels *out);

// How often samples, in the order of time, change between two levels. A share of time on a level,
// and a median that follows from it, is known no better than from so many independent samples.
size_t levels_changes(const double *x, size_t n, const struct levels *levels);

// Medians of several launches, in any order. Two launches on a level are the least that counts
// (three from 10 launches on, an eighth from 24 on: fewer are outliers). From 4 launches on it can
// say two, where the levels are 30 standard deviations of the launches apart; 10 standard
// deviations are mostly found from 10 launches on. Errors as above.
int levels_of_launches(const double *medians, size_t n, struct levels *out);

#endif
