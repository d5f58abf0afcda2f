/* SPDX-License-Identifier: Apache-2.0 */
/* The launches that two targets both can make, and their order. Pure functions. */
#ifndef PLUMB_AGAINST_COMMON_H
#define PLUMB_AGAINST_COMMON_H

#include "harness/plan/plan.h"

struct common {
    size_t n_only_a, n_only_b;     /* launches that the other side does not have */
    char only_a[160], only_b[160]; /* the first of them: "memory --op triad"; "" */
};

/* Leaves in both plans the launches that both have (the same benchmark, arguments and repeat), in
 * the order of a. b takes a's numbers of cases, and each launch the longer time-out. Each plan
 * keeps its own margins. 0, -ENOENT where there is none, -ENOMEM. */
int common_plan(struct plan *a, struct plan *b, struct common *common);

/*
 * Sets `turn` in each launch of two common plans: which target goes first. 0 or -ENOMEM.
 *
 *   - The launches of a case go a b, b a, a b ... or b a, a b, b a ...: each target goes first in
 *     half of them, and with an odd number in one more or less.
 *   - Half of the cases begin with a, drawn by the seed, and half of those with an odd number of
 *     launches. So over the suite the two numbers differ by one launch at most.
 */
int common_turns(struct plan *a, struct plan *b, uint64_t seed);

/* Which target goes first in pair i, 0 (a) or 1 (b)? -1: the two plans do not belong together. */
int common_first(const struct plan *a, const struct plan *b, size_t i);

#endif
