/* SPDX-License-Identifier: Apache-2.0 */
/* Combines the launches of one case in one run to one point, by the rules in model.h. */
#ifndef PLUMB_REPORT_COMBINE_H
#define PLUMB_REPORT_COMBINE_H

#include "harness/report/model.h"

/* Fills everything of *p but rows and n_rows from them. */
void combine_launches(struct pool *pool, const struct report_rows *rows, struct report_point *p);

#endif
