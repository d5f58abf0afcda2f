/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cases that have something in common: all GPUs that did one thing, all pairs of one kind, the sizes
 * of one sweep. Nobody else looks for the first of a group, or for its others.
 */
#ifndef PLUMB_REPORT_CASES_GROUP_H
#define PLUMB_REPORT_CASES_GROUP_H

#include "harness/report/model.h"

struct case_group {
    const struct report_case **cases; /* in the order of the suite */
    size_t n;                         /* 1 or more */
};

struct case_groups {
    struct case_group *all; /* by their first cases */
    size_t n;
};

/* What counts of a column: parameter number `column`, or metric and unit, which are n_params and
 * n_params + 1. Cases in which all that counts is the same are of one group. */
typedef const char *case_column(const struct report_bench *b, const struct report_case *c,
                                size_t column, const void *arg);

/* Two of these. arg: names of columns, with a blank between; "metric" and "unit" are names, too. */
case_column cases_by;  /* these columns alone */
case_column cases_but; /* all that make cases, but for these */

/* Groups the cases for which `is` holds in the run; NULL: all. Lives in the pool. */
struct case_groups cases_group(struct pool *pool, const struct report_bench *b, size_t run,
                               bool (*is)(const struct report_bench *b, size_t run,
                                          const struct report_case *c, const void *arg),
                               const void *is_arg, case_column *column, const void *arg);

#endif
