/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joining limits: rows for which this machine has a physical limit (memory channels, a link's rate)
 * get it, in place of a ceiling that the benchmark measured. Rows of the host: one table in join.c
 * says which rows, which limit. Rows of GPUs: join_gpu.h.
 */
#ifndef PLUMB_HARNESS_JOIN_H
#define PLUMB_HARNESS_JOIN_H

#include <jansson.h>

#include "harness/store/table.h"

struct joined_limit {
    double value;
    char source[320];
    double percent; /* of the row's value; NaN where it has none */
};

/* `limits`: the list of run.json (see limits_machine); `cores` of the whole machine, 0 where they
 * are not known. 1 and *out filled in when a rule applies and the limit is known, else 0. */
int join_limit(const json_t *limits, double cores, const char *bench, const struct table *rows,
               size_t row, struct joined_limit *out);

#endif
