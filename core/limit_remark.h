/* SPDX-License-Identifier: Apache-2.0 */
/* A value above what is physically possible: the one threshold, and the remark of its row. */
#ifndef PLUMB_CORE_LIMIT_REMARK_H
#define PLUMB_CORE_LIMIT_REMARK_H

#include <stddef.h>

/* How a row's limit is known, by the word before the colon of its column limit_source. */
enum limit_kind {
    LIMIT_TOLD,      /* datasheet, sysfs, nvml; or nothing is said */
    LIMIT_MEASURED,  /* "measured": what no program exceeds, by other loops than the row's own */
    LIMIT_REFERENCE, /* "reference": the same work on the same machine; no verdict hangs on it */
};
enum limit_kind limit_kind(const char *limit_source);

/* % of a limit: above it noise and rounding no longer explain a value. */
#define LIMIT_EXCEEDED_PERCENT 100.5

/* Of a rate: "103 % of the limit: the limit is too low, or the data did not take that path"; "" up to
 * LIMIT_EXCEEDED_PERCENT, and for NaN. Returns text. */
const char *limit_remark(double percent, char *text, size_t len);

/* The row's reason without the remark that belongs to `before` and with the one of `after`, since the
 * row got another limit. Returns text. */
const char *limit_remark_renew(const char *reason, double before, double after, char *text,
                               size_t len);

#endif
