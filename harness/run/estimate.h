/* SPDX-License-Identifier: Apache-2.0 */
/* How long a plan measures, before it is run. */
#ifndef PLUMB_HARNESS_ESTIMATE_H
#define PLUMB_HARNESS_ESTIMATE_H

#include <stdint.h>

#include "harness/plan/plan.h"

/* What launches are given to measure: their warm-up and their samples, and what else an option gives a
 * time to. It bounds nothing. To start a benchmark, set it up, find its ceilings and check its data is
 * not in it, nor are the further points of a launch that measures several; a launch whose interval is
 * narrow ends earlier. What all that comes to is known from launches that ended: struct pace. */
struct estimate {
    uint64_t all_ns;
    uint64_t least_ns, most_ns; /* of one launch */
    size_t n;                   /* launches that are to do */
};

/* A launch of a benchmark that needs a group, and that names no --ranks, measures as many communicators as there are powers of
 * two up to its ranks: `group_ranks` over hosts, its --np on this machine. */
struct estimate estimate_plan(const struct bench_list *benches, const struct plan *plan,
                              unsigned group_ranks);

/* "asked for 12 min of warm-up and sampling (305 launches x 800 ms to 1.3 s); ..." */
const char *estimate_text(const struct estimate *e, char *text, size_t len);

/* How long launches take as a whole, by those that ended. Zeroed, it is empty. */
struct pace {
    size_t n, n_cases, n_benches, ended;
    uint64_t *asked_ns;         /* of each launch, as in the estimate */
    size_t *bench;              /* of each launch; n_benches - 1: one that is not here */
    double *case_ns;            /* sums over the launches that ended, by case_number */
    double *bench_ns;           /* the same of what they took beyond what was asked, by bench */
    double beyond_ns;           /* of all of them */
    size_t *of_case, *of_bench; /* how many these are */
};

/* The plan's launches may change their state, and nothing else, while the pace is used. 0 or -ENOMEM; release it in any case. */
int pace_make(struct pace *p, const struct bench_list *benches, const struct plan *plan,
              unsigned group_ranks);
void pace_release(struct pace *p);

/* Launch i took this long, from before it was started until it was stored. */
void pace_ended(struct pace *p, const struct plan *plan, size_t i, uint64_t ns);

/* What launch i is expected to take: as its case did before; else what it asks for and what others of its benchmark took
 * beyond that; else the same of all. Not below 0. 0 before any launch ended. */
double pace_expects_ns(const struct pace *p, const struct plan *plan, size_t i);

/* The sum over all that are to do. */
double pace_left_ns(const struct pace *p, const struct plan *plan);

#endif
