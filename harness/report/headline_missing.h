/* SPDX-License-Identifier: Apache-2.0 */
/* Why there are pipes without a headline; used by headline.c alone. */
#ifndef PLUMB_REPORT_HEADLINE_MISSING_H
#define PLUMB_REPORT_HEADLINE_MISSING_H

#include "harness/report/headline.h"

/* One reason stands for all: there is no GPU, or none that can be used. "" where a case on one was
 * more than skipped, and where there is no such case. */
const char *headlines_no_gpu(const struct report *r);

/* Fills in out->missing. Of GPUs only where a machine has one. */
void headlines_list_missing(struct report *r, struct headlines *out);

#endif
