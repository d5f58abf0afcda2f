/* SPDX-License-Identifier: Apache-2.0 */
/* Combines the launches of one case in one run to one point, by the rules in model.h. */
#ifndef PLUMB_REPORT_COMBINE_H
#define PLUMB_REPORT_COMBINE_H

#include "harness/report/model.h"

/*
 * The limit of every row of a run, by the best of its ceilings: those of one place were measured by
 * several launches and cases, and count for all of them, as does what a value raised its limit to. A limit
 * that was not measured stays what it is. 0 or -ENOMEM. To be called before combine_launches().
 */
int combine_ceilings(struct report *r, size_t run);

/* Fills everything of *p but rows and n_rows from them. */
void combine_launches(struct pool *pool, const struct report_rows *rows, struct report_point *p);

/* The values of its usable launches, of which there is room for n_rows; returns how many. */
size_t combine_values(const struct report_rows *rows, const struct report_point *p, double *values);

#endif
