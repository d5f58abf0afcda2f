/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences for a row's `evidence`: what really carried the bytes. */
#ifndef PLUMB_CORE_EVIDENCE_H
#define PLUMB_CORE_EVIDENCE_H

#include "core/device/device.h"

/* "node0 256/256 pages looked at, 100 % on huge pages": from move_pages and smaps. What the system
 * does not tell is said to be unknown. Returns text. */
const char *evidence_pages(const struct device_where *where, char *text, size_t len);

/* The share of the resident pages that are huge, 0 to 1; NaN when not known. */
double evidence_huge_share(const struct device_where *where);

/* Adds a remark to a text that holds others: ", " between them; cut when it is too long. */
void evidence_add(char *text, size_t len, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
