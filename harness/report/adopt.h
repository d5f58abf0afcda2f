/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows that plumb import made have the pattern "*" where their file does not tell a parameter.
 *
 * Such a row is of the same case as rows that were measured if all that it tells agrees with them,
 * and they are of one case alone. If they are of several, or if another row of its run could be of
 * that case as well, it stays a case of its own.
 */
#ifndef PLUMB_REPORT_ADOPT_H
#define PLUMB_REPORT_ADOPT_H

#include "harness/report/model.h"

/* Gives imported rows the parameters of the measured case that they are of, before cases are found. */
void adopt_measured(struct report *r, struct report_bench *b);

/* Which cases of the runs from `first` to below `end` a case of patterns may be: "several that it
 * may be, 2 cases: depth 1 or 128"; "" if it has no pattern, or may be none. Lives in the pool. */
const char *adopt_candidates(struct report *r, const struct report_bench *b,
                             const struct report_case *c, size_t first, size_t end);

#endif
