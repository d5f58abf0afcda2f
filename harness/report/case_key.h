/* SPDX-License-Identifier: Apache-2.0 */
/* The key of a case, by which the same one is found in any run. */
#ifndef PLUMB_REPORT_CASE_KEY_H
#define PLUMB_REPORT_CASE_KEY_H

#include "harness/report/model.h"

/* Does this parameter make the case? Not what follows from others, nor what was sought. */
bool case_is_made_by(const struct report_bench *b, const struct report_case *c, size_t param);

/* "memory|op=triad|size=65536|bandwidth|GB/s": the parameters that make it and are set, by name. Of the case's params, metric
 * and unit alone. Lives in the pool. */
const char *case_key(struct pool *pool, const struct report_bench *b, const struct report_case *c);

#endif
