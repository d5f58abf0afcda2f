/* SPDX-License-Identifier: Apache-2.0 */
/* What two targets both can measure, and in which order. Pure functions. */
#ifndef PLUMB_AGAINST_COMMON_H
#define PLUMB_AGAINST_COMMON_H

#include "harness/plan/plan.h"

struct common {
    size_t n_only_a, n_only_b;     /* launches that the other side does not have */
    char only_a[160], only_b[160]; /* the first of them: "memory --op triad"; "" */
};

/* Leaves in both plans the launches that both have (the same benchmark, arguments and repeat), in the order of a; b takes a's
 * numbers of cases and the longer time-out. 0, -ENOENT where there is none, -ENOMEM. */
int common_plan(struct plan *a, struct plan *b, struct common *told);

/* Turn i of a run, from 0, is launch i / 2 of this target: a b, b a, a b ... */
static inline int turn_of(size_t i)
{
    return (int)((i / 2 + i) % 2);
}

#endif
