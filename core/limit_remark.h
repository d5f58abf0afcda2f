/* SPDX-License-Identifier: Apache-2.0 */
/* What a row's limit is, in words that code may compare, and a value above it: the one threshold. */
#ifndef PLUMB_CORE_LIMIT_REMARK_H
#define PLUMB_CORE_LIMIT_REMARK_H

#include <stdbool.h>
#include <stddef.h>

/* How a row's limit is known: the column limit_kind, in these words (docs/limits.md). */
enum limit_kind {
    LIMIT_TOLD,      /* "told": otherwise; also of no limit, and of an unknown word */
    LIMIT_SYSFS,     /* "sysfs": the system says so */
    LIMIT_NVML,      /* "nvml": NVIDIA's driver does */
    LIMIT_DATASHEET, /* "datasheet": the vendor or a standard does */
    LIMIT_MEASURED,  /* "measured": what no program exceeds, by other loops than the row's own */
    LIMIT_REFERENCE, /* "reference": the same work on the same machine; no verdict depends on it */
    LIMIT_OUTDATED,  /* "outdated": measured in a way that was corrected since; no verdict depends on it */
};
extern const char *const limit_kinds[]; /* by that number; ends with NULL */
enum limit_kind limit_kind_of(const char *word);
/* This suite measured it: it can be measured better, is raised where it is exceeded, and shared by rows of one place. */
bool limit_is_ours(enum limit_kind kind);

/* Of the column limit_link: the link that the limit is of; "" of another, or of none. */
#define LIMIT_LINK_NVLINK     "nvlink"
#define LIMIT_LINK_PCIE       "pcie"
#define LIMIT_LINK_INFINIBAND "infiniband"
#define LIMIT_LINK_ROCE       "roce"
extern const char *const limit_links[]; /* ends with NULL */

/* Of the column limit_scope: the most that any algorithm gets through the links of a node, so that what its
 * ranks exchange in memory is counted; "": a link's own. */
#define LIMIT_SCOPE_NODE "node"

/* % of a limit: above it noise and rounding no longer explain a value. */
#define LIMIT_EXCEEDED_PERCENT 100.5

/* Of a rate: "103 % of the limit: the limit is too low, or the data did not take that path"; "" up to
 * LIMIT_EXCEEDED_PERCENT, and for NaN. Returns text. */
const char *limit_remark(double percent, char *text, size_t len);

#endif
