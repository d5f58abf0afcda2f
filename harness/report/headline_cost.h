/* SPDX-License-Identifier: Apache-2.0 */
/* What a rate cost in CPU: the rows that stand beside it; used by headline.c alone. */
#ifndef PLUMB_REPORT_HEADLINE_COST_H
#define PLUMB_REPORT_HEADLINE_COST_H

#include "harness/report/headline.h"

/* "CPU 0.27 s/GB at this end, 0.20 at the peer's", of the threads that carried `of` in that run; "" where no row
 * says so. */
const char *headline_cost(struct report *r, const struct report_bench *b,
                          const struct report_case *of, size_t run);

#endif
