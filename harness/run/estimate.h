/* SPDX-License-Identifier: Apache-2.0 */
/* How long a plan measures, before it is run. */
#ifndef PLUMB_HARNESS_ESTIMATE_H
#define PLUMB_HARNESS_ESTIMATE_H

#include <stdint.h>

#include "harness/plan/plan.h"

/* The most that launches measure: bounds of their warm-up and of their samples, and of what else an
 * option gives a time to. What it takes to start a benchmark, to set it up and to check its data is
 * not known beforehand, and not in it; most launches need less, since they end when the interval is
 * narrow. */
struct estimate {
    uint64_t all_ns;
    uint64_t least_ns, most_ns; /* of one launch */
    size_t n;                   /* launches that are to do */
};

/* A launch of a benchmark that needs a group, and that names no --ranks, measures as many communicators as there are powers of
 * two up to its ranks: `group_ranks` over hosts, its --np on this machine. */
struct estimate estimate_plan(const struct bench_list *benches, const struct plan *plan,
                              unsigned group_ranks);

/* "at most about 12 min of warm-up and sampling (305 launches x 800 ms to 1.3 s), and ..." */
const char *estimate_text(const struct estimate *e, char *text, size_t len);

#endif
