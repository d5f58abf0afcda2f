/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts of a row in words that code may compare: what carried its bytes, how its limit is known,
 * and what a measured limit is made of, so that all rows of a run can share the best of each part.
 */
#ifndef PLUMB_CORE_ROW_FACTS_H
#define PLUMB_CORE_ROW_FACTS_H

#include <stdbool.h>
#include <stddef.h>

/* The kinds of path that carried a row's bytes: the column carrier, as words with '+' between them.
 * 0: not told. */
enum {
    CARRIER_RDMA = 1,          /* "rdma" */
    CARRIER_SOCKETS = 2,       /* "sockets" */
    CARRIER_LOOPBACK = 4,      /* "loopback" */
    CARRIER_SHARED_MEMORY = 8, /* "shm" */
    CARRIER_PEER = 16,         /* "peer": access between GPUs */
    CARRIER_ALL = 31
};
#define CARRIERS_BYTES 40            /* of the words of all of them, and the 0 */
extern const char *const carriers[]; /* by bit; ends with NULL */
const char *carriers_print(unsigned kinds, char text[CARRIERS_BYTES]); /* returns text */
unsigned carriers_read(const char *text); /* 0 where a word is none of them */

/* For `evidence`: adds a remark to a text that holds others: ", " between them; cut when it is too
 * long. */
void evidence_add(char *text, size_t len, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* How a row's limit is known: the column limit_kind, in these words (docs/limits.md). */
enum limit_kind {
    LIMIT_TOLD,      /* "told": otherwise; also of no limit, and of an unknown word */
    LIMIT_SYSFS,     /* "sysfs": the system says so */
    LIMIT_NVML,      /* "nvml": NVIDIA's driver does */
    LIMIT_DATASHEET, /* "datasheet": the vendor or a standard does */
    LIMIT_MEASURED,  /* "measured": what no program exceeds, by other loops than the row's own */
    LIMIT_REFERENCE, /* "reference": the same work on the same machine; no verdict depends on it */
    LIMIT_OUTDATED, /* "outdated": measured in a way that was corrected since; no verdict depends on it */
};
extern const char *const limit_kinds[]; /* by that number; ends with NULL */
enum limit_kind limit_kind_of(const char *word);
/* This suite measured it: it can be measured better, is raised where it is exceeded, and shared by
 * rows of one place. */
bool limit_is_ours(enum limit_kind kind);

/* Of the column limit_link: the link that the limit is of; "" of another, or of none. */
#define LIMIT_LINK_NVLINK     "nvlink"
#define LIMIT_LINK_PCIE       "pcie"
#define LIMIT_LINK_INFINIBAND "infiniband"
#define LIMIT_LINK_ROCE       "roce"
extern const char *const limit_links[]; /* ends with NULL */

/* Of the column limit_scope: the most that any algorithm gets through the links of a node, so that
 * what its ranks exchange in memory is counted; "": a link's own. */
#define LIMIT_SCOPE_NODE "node"

/* % of a limit: above it noise and rounding no longer explain a value. */
#define LIMIT_EXCEEDED_PERCENT 100.5

/* Of a rate: "103 % of the limit: the limit is too low, or the data did not take that path"; "" up
 * to LIMIT_EXCEEDED_PERCENT, and for NaN. Returns text. */
const char *limit_remark(double percent, char *text, size_t len);

/* ---- Measured limits ---- */

#define CEILING_PLACE 160 /* characters of a place, with the NUL */

/* What a limit is made of: the best rates of one or two paths. Zeroed: nothing is told. */
struct limit_parts {
    /* What each rate is one of: the path, its CPUs, memory and size. The same text in two rows of a
     * run: the same ceiling. "": the limit has no such part, or its place cannot be told. */
    char place[2][CEILING_PLACE];
    double rate[2]; /* in the row's unit */
    double
        share; /* of the row's value: what goes by the first path, 0 to 1; the rest goes by the second */
    double
        fill; /* what the first carries besides, in the same measure, if the second is not faster */
};

/* No row can be faster than its work on either path:
 *   1 / max(share / rate[0] + min(fill / rate[0], (1 - share) / rate[1]), (1 - share) / rate[1]) */
double limit_of_parts(const struct limit_parts *parts);

/* Two measurements of one limit, before the samples and after, differ by more than this share of
 * the higher one: the machine changed meanwhile. NaN: not measured twice. */
#define CEILING_UNSTEADY 0.1
double ceiling_change(double before, double after); /* a share; NaN */

#endif
