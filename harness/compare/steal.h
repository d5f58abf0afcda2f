/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --steal of the commands that leave out launches during which other guests took the CPU: check and history. In a guest the
 * hypervisor says which share of the time of all CPUs others took (steal, a column of each row).
 */
#ifndef PLUMB_COMPARE_STEAL_H
#define PLUMB_COMPARE_STEAL_H

#include <stdbool.h>

#include "harness/compare/pairs.h"

#define STEAL_DEFAULT "2%"
#define STEAL_HELP    "launches during which other guests took more of the CPU are left out"
#define STEAL_NONE    "; 100%: none" /* ends the help */
#define STEAL_REFUSED "--steal is a share above 0 %, such as 2%; 100% leaves nothing out"
#define STEAL_WHY     "other guests took the CPU (steal; --steal)"

/* Is that what --steal asks for: above 0, and no more than 1? */
bool steal_is_share(double asked);
/* pairs_options.steal_limit: 0 where nothing is left out. */
double steal_limit(double asked);

/* What others took during a launch, in percent (NaN: not known), against a limit as above. */
bool steal_is_over(double percent, double limit);

/* What others took in each launch of a case in one run, in the order of its values where none of them is left out: of
 * pairs that were loaded with a limit of 0. Of a launch that says the case twice the most. NaN: the rows do not say. In
 * percent, n of them; NULL: no memory. */
double *steal_of_launches(struct pool *pool, const struct pair *pair, size_t run, size_t n);

#endif
