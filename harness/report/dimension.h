/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parameters of a group of cases as dimensions: which values there are, which parameters say
 * something of their own, and which follow from others.
 */
#ifndef PLUMB_REPORT_DIMENSION_H
#define PLUMB_REPORT_DIMENSION_H

#include "harness/report/model.h"

struct dimension {
    size_t param;        /* of the benchmark */
    const char **values; /* each once: by size where all are numbers, else in the suite's order */
    double *numbers;     /* of the values; NULL where one is no number */
    size_t n_values;
    size_t *of_case; /* index in values, for each case of the group */
};

/* The parameter's values over the cases; "" is a value too, but no number. 0 or -ENOMEM. */
int dimension_make(struct pool *pool, const struct report_bench *b, const size_t *cases, size_t n,
                   size_t param, struct dimension *d);

/* A partition of the cases: of_case[i] is below n. */
struct classes {
    size_t *of_case, n;
};

/* All cases in one class. */
int classes_make(struct pool *pool, size_t n_cases, struct classes *classes);

/* Splits each class by the dimension's values, and numbers the classes by their first case. *split
 * says whether there are more than before: if not, the dimension follows from those that made the
 * classes. 0 or -ENOMEM. */
int classes_refine(struct classes *classes, const struct dimension *d, size_t n_cases, bool *split);

#endif
