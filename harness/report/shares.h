/* SPDX-License-Identifier: Apache-2.0 */
/* What several runs, or launches, say of one thing. */
#ifndef PLUMB_REPORT_SHARES_H
#define PLUMB_REPORT_SHARES_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/document/pool.h"

/* The text itself where all n are the same; else "6.1 in 2 of 3 runs, 6.5 in 1", in the order in which they come first,
 * and *mixed (may be NULL) is set. Those that are "" count among the n alone. things: "runs". Lives in the pool. */
const char *shares_text(struct pool *pool, const char *const *texts, size_t n, const char *things,
                        bool *mixed);

#endif
