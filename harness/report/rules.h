/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the report knows of the benchmarks: which rows make a pipe's headline, and how their plots
 * are best cut. All of it is data in rules.c; a benchmark without an entry is reported all the same.
 */
#ifndef PLUMB_REPORT_RULES_H
#define PLUMB_REPORT_RULES_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/report/model.h"

struct headline_rule {
    const char *bench;
    const char *pipe;  /* "Memory" */
    const char *label; /* what the line is of; the value of `by` follows; "%s": that value alone */
    const char *where; /* "op=triad level!=DRAM": parameters, or metric, that a case must have */
    const char *by;    /* a line for each value of this parameter; NULL: one line */
    const char *at;   /* "+size": only cases at the largest size of their line; "-size": smallest */
    double low_below; /* % of the limit below which it is called low; NaN: not judged */
    const char *subjects; /* of the machine's findings that may explain a low value: "cpu clock" */
};

extern const struct headline_rule headline_rules[]; /* in the order of the report; ends with NULL */

struct plot_hint {
    const char *bench;
    const char *x;      /* parameter of the x axis */
    const char *lines;  /* parameters that make lines before others, best first: "op stores" */
    const char *ignore; /* parameters that follow from others: "level" */
    const char *square; /* parameters that are equal where x says all: "m n k" of square products.
                           Cases in which they differ are listed in plots of their own. Or NULL */
    bool bytes;         /* x is a size in bytes */
    bool cache_marks;   /* x is a working set: mark the caches' sizes */
};

/* NULL when there is none. */
const struct plot_hint *plot_hint_find(const char *bench);

/* Where a benchmark stands in the report: in the order of the rules, the others behind. */
size_t rule_place(const char *bench);

/* Whether the case's parameters that the hint calls square are equal; true where there are none. */
bool hint_is_square(const struct plot_hint *hint, const struct report_bench *b,
                    const struct report_case *c);

bool rule_matches(const struct report_bench *b, const struct report_case *c, const char *where);
bool word_in(const char *words, const char *word); /* words with a blank between them */

#endif
