/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the rows of a benchmark to its cases: rows that agree in metric, unit and parameters are
 * launches of one case. Parameters that follow from others (COLUMN_OUTCOME: which kernel a library
 * took, the address of a GPU) do not count: they may differ between launches and machines. What a
 * launch left to the benchmark is such a one: launches that chose differently are of one case, and
 * one that was asked for the same is of another.
 */
#ifndef PLUMB_REPORT_CASES_H
#define PLUMB_REPORT_CASES_H

#include "harness/report/model.h"

/* Fills in cases and n_cases of *b, in the order of the suite. */
void cases_find(struct report *r, struct report_bench *b);

/* Do two cases agree in metric, unit and all that makes them, but for these columns ("memory
 * peer_memory"), in one of which they differ? What a launch that was refused did not come to choose
 * may be the same. */
bool cases_differ_in(const struct report_bench *b, const struct report_case *x,
                     const struct report_case *y, const char *columns);

/* ---- Combines the launches of one case in one run to one point, by the rules in model.h ---- */

/*
 * The limit of every row of a run, by the best of its ceilings: those of one place were measured by
 * several launches and cases, and count for all of them, as does what a value raised its limit to.
 * A limit that was not measured stays what it is. To be called before combine_launches().
 */
void combine_ceilings(struct report *r, size_t run);

/* Fills everything of *p but rows and n_rows from them. */
void combine_launches(struct pool *pool, const struct report_rows *rows, struct report_point *p);

/* The values of its usable launches, of which there is room for n_rows; returns how many. */
size_t combine_values(const struct report_rows *rows, const struct report_point *p, double *values);

/* ---- The key of a case, by which the same one is found in any run ---- */

/* Does this parameter make the case? Not what follows from others, nor what was sought. */
bool case_is_made_by(const struct report_bench *b, const struct report_case *c, size_t param);

/* "memory|op=triad|size=65536|bandwidth|GB/s": the parameters that make it and are set, by name. Of
 * the case's params, metric and unit alone. Lives in the pool. */
const char *case_key(struct pool *pool, const struct report_bench *b, const struct report_case *c);

#endif
