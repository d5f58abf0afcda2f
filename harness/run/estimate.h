/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time that each launch of a plan is expected to take: the warm-up and sampling that it asks for.
 * Start, set-up and checks come on top, and a narrow confidence interval ends it earlier, so while the
 * run goes on each is expected to take as much longer or shorter as those that ended did, in the mean.
 */
#ifndef PLUMB_HARNESS_ESTIMATE_H
#define PLUMB_HARNESS_ESTIMATE_H

#include <stddef.h>
#include <stdint.h>

#include "harness/plan/plan.h"

struct estimate {
    double *expected_ns; /* of each launch of the plan */
    size_t n;
    /* At the start: launches to do, and their times. */
    size_t todo;
    double all_ns, least_ns, most_ns;
    double beyond_ns; /* what launches took beyond what was expected: the sum of those that ended */
    size_t ended;
};

/* Warm-up, samples, and other options that are durations. A launch that needs a group and names no
 * --ranks measures a communicator for each power of two up to its ranks: `group_ranks` over hosts,
 * its --np on this machine. 0 of a benchmark that is not here. */
uint64_t launch_asked_ns(const struct bench_list *benches, const struct launch *l,
                         unsigned group_ranks);

/* group_ranks: see launch_asked_ns(). Release it. */
void estimate_make(struct estimate *e, const struct bench_list *benches, const struct plan *plan,
                   unsigned group_ranks);
void estimate_again(struct estimate *e, size_t i); /* the plan has one more, like launch i */
void estimate_release(struct estimate *e);

#define ESTIMATE_BYTES 320
/* "expected time: about 11 min of warm-up and sampling (760 launches x 300 ms to 15.8 s); ..." */
const char *estimate_text(const struct estimate *e, char text[ESTIMATE_BYTES]);

/* Launch i took this long, from before it was started until it was stored. */
void estimate_ended(struct estimate *e, const struct plan *plan, size_t i, uint64_t ns);

/* While the run goes on, after a launch ended: of launch i, not below 0, and of all that are to do. */
double estimate_expects_ns(const struct estimate *e, size_t i);
double estimate_left_ns(const struct estimate *e, const struct plan *plan);

#endif
