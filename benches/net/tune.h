/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --tune: looks for the fewest streams, the least depth and the smallest message with which the bandwidth is within
 * TUNE_SHARE of the best, one after the other, each by short measurements; says each step on stderr, and leaves what it found in
 * the options, so that it is then measured as any other point.
 */
#ifndef PLUMB_BENCHES_NET_TUNE_H
#define PLUMB_BENCHES_NET_TUNE_H

#include "benches/net/net_work.h"
#include "core/search.h"

#define TUNE_SHARE 0.95

/* Doubles a value until the last two doublings gained less than 2 %. The least one within TUNE_SHARE
 * of the best wins. For tests. */
extern const struct search_policy tune_policy;

/* 0, or -errno with error. */
int net_tune(struct opts *o, const struct net_params *p, const volatile int *cancel, char *error,
             size_t len);

#endif
