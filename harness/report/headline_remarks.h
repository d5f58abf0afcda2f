/* SPDX-License-Identifier: Apache-2.0 */
/* What stands beside the best case of a line; used by headline.c alone. */
#ifndef PLUMB_REPORT_HEADLINE_REMARKS_H
#define PLUMB_REPORT_HEADLINE_REMARKS_H

#include "harness/report/headline.h"

/* What one line is looked for among. */
struct search {
    struct report *r;
    const struct report_bench *bench;
    const struct bench_headline *rule; /* NULL: `metric` alone */
    const char *by_value, *metric;
    bool *in;    /* which cases of the bench match */
    bool *at_in; /* of these, which are at the place that the rule asks for, in one run */
};

/* Adds to the verdict of h. `out`: with what was made before the lines, and the lines so far. */
void headline_remarks(const struct search *s, const struct headlines *out, size_t run,
                      struct headline_run *h);

#endif
