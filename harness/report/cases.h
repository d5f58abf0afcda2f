/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the rows of a benchmark to its cases: rows that agree in metric, unit and parameters are
 * launches of one case. Parameters that follow from others (COLUMN_OUTCOME: which kernel a
 * library took, the address of a GPU) do not count: they may differ between launches and machines. What a benchmark chose by itself does, until
 * choices.h has looked at what it was asked for.
 */
#ifndef PLUMB_REPORT_CASES_H
#define PLUMB_REPORT_CASES_H

#include "harness/report/model.h"

/* Fills in cases and n_cases of *b, in the order of the suite. 0 or -ENOMEM. */
int cases_find(struct report *r, struct report_bench *b);

#endif
