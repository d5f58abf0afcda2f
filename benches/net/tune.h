/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --tune: looks for the fewest streams, the least depth and the smallest message with which the bandwidth is within
 * TUNE_SHARE of the best, one after the other, each by short measurements; says each step on stderr, and leaves what it found in
 * the options, so that it is then measured as any other point.
 */
#ifndef PLUMB_BENCHES_NET_TUNE_H
#define PLUMB_BENCHES_NET_TUNE_H

#include "benches/net/net_work.h"

#define TUNE_SHARE 0.95

/* What a search was told of each step, and where the plateau begins. */
struct tune_step {
    uint64_t value;
    double gbps;
};

/* The smallest value whose rate is at least TUNE_SHARE of the best: its index. n > 0. Pure; for tests. */
size_t tune_plateau(const struct tune_step *steps, size_t n);
/* Is it worth to go on: did the last two doublings gain anything? Pure; for tests. */
bool tune_goes_on(const struct tune_step *steps, size_t n);

/* 0, or -errno with error. */
int net_tune(struct opts *o, const struct net_params *p, const volatile int *cancel, char *error,
             size_t len);

#endif
