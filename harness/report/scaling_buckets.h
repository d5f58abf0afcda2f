/* SPDX-License-Identifier: Apache-2.0 */
/* A model's gradients summed in buckets of several sizes: rows of `time` with the parameters `model` and `bucket`. */
#ifndef PLUMB_REPORT_SCALING_BUCKETS_H
#define PLUMB_REPORT_SCALING_BUCKETS_H

#include "harness/report/model.h"

struct bucket_point {
    double bytes, time_us, low_us, high_us; /* NaN: not known */
    const struct report_case *c;
};

/* The lowest time, and each whose interval is not apart from its one: tied[i]. *decided: every interval that this needs is known. Returns the index of the
 * lowest; n where no point has a time. Pure. */
size_t buckets_best(const struct bucket_point *points, size_t n, bool *tied, bool *decided);

struct bucket_series {
    const struct report_bench *bench;
    size_t run;
    const struct report_case *first;
    const char *model, *label,
        *title;                  /* "bert-large"; "ring over tcp, 4 ranks"; what else is set */
    struct bucket_point *points; /* by size */
    size_t n;
    const char
        *best; /* "best bucket: 25M, 812 ms (810 to 815)", or "25M or 64M ..."; "" of one alone */
};

struct bucket_sweeps {
    struct bucket_series *all;
    size_t n;
};

/* Everything lives in the report's pool. 0 or -ENOMEM. */
int bucket_sweeps_make(struct report *r, struct bucket_sweeps *out);

#endif
