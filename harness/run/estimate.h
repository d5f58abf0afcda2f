/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time that each launch of a plan is expected to take: what it took in the last run of the suite,
 * else the warm-up and sampling that it asks for. Start, set-up and checks come on top of the latter,
 * and a narrow confidence interval ends it earlier, so while the run goes on each is expected to take
 * as much longer or shorter as those that ended did, in the mean.
 *
 * The last run is the newest complete one by this build on this host, under the same rule for
 * processes, of all cases or with the same --only. A launch is known there by its benchmark and
 * arguments, and its time (the column launch_s) is the mean of its repetitions. Those that failed or
 * were late count for nothing, nor do those on several hosts.
 */
#ifndef PLUMB_HARNESS_ESTIMATE_H
#define PLUMB_HARNESS_ESTIMATE_H

#include <stddef.h>
#include <stdint.h>

#include "harness/plan/plan.h"

struct estimate {
    double *expected_ns; /* of each launch of the plan */
    size_t n;
    char run[256]; /* the folder of the last run; "": there is none */
    /* At the start: launches to do, those of them that the last run knows, and their times. */
    size_t todo, known;
    double all_ns, least_ns, most_ns;
    double beyond_ns; /* what launches took beyond what was expected: the sum of those that ended */
    size_t ended;
};

/* Of what an estimate is made. */
struct estimate_of {
    const struct bench_list *benches;
    const struct plan *plan;
    unsigned group_ranks;       /* see launch_asked_ns() */
    const char *const *folders; /* below which runs are looked for; ended by NULL, may be missing */
    const char *suite, *only, *processes;
};

/* Warm-up, samples, and other options that are durations. A launch that needs a group and names no
 * --ranks measures a communicator for each power of two up to its ranks: `group_ranks` over hosts,
 * its --np on this machine. 0 of a benchmark that is not here. */
uint64_t launch_asked_ns(const struct bench_list *benches, const struct launch *l,
                         unsigned group_ranks);

void estimate_make(struct estimate *e, const struct estimate_of *of); /* release it */
void estimate_again(struct estimate *e, size_t i); /* the plan has one more, like launch i */
void estimate_release(struct estimate *e);

#define ESTIMATE_BYTES 640
/* "expected time: about 14 min, as 305 of 305 launches took in results/gpu-20261124-222300" */
const char *estimate_text(const struct estimate *e, char text[ESTIMATE_BYTES]);

/* Launch i took this long, from before it was started until it was stored. */
void estimate_ended(struct estimate *e, const struct plan *plan, size_t i, uint64_t ns);

/* While the run goes on, after a launch ended: of launch i, not below 0, and of all that are to do. */
double estimate_expects_ns(const struct estimate *e, size_t i);
double estimate_left_ns(const struct estimate *e, const struct plan *plan);

#endif
