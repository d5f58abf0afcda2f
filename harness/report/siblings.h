/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places that are built alike, as the rails of a machine: which of them is far behind the others in
 * a run, or lacks a path that it should have. Which cases these are, the benchmark says (struct
 * bench_sibling).
 *
 * Each measured case is held against its siblings (comparisons.h); each rule of a benchmark is a topic.
 * Where a rule holds a case against one other case instead, it is so too. A case without a value that
 * was refused is named where that other case was measured.
 */
#ifndef PLUMB_REPORT_SIBLINGS_H
#define PLUMB_REPORT_SIBLINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/report/comparisons.h"
#include "harness/report/model.h"

struct sibling {
    const struct bench_sibling *rule;
    const struct report_bench *bench;
    size_t run;
    const char *value;               /* of the rule's column */
    const struct report_case *first; /* of its cases that are behind, or were refused */
    /* What these have of the others: the geometric means of their ratios, and of the ends of their
     * intervals, which hold for the mean whatever the cases have in common. NaN where it is absent */
    double ratio, low, high;
    size_t found, compared; /* cases that are behind; that were held against others */
    const char *hosts;      /* ", between node0 and node1; node1 and node2": of these; or "" */
    bool proven;            /* else it looks so */
    bool absent;            /* it has no value: refused */
    bool measured;          /* not simulated, modelled or imported */
    const char *sentence;
};

struct siblings {
    struct sibling *all; /* by run, then by rule, then in the order of the suite */
    size_t n;
};

/* Everything lives in the report's pool. */
void siblings_ask(struct report *r, struct comparisons *q);
void siblings_judge(const struct comparisons *q, struct siblings *out);

#endif
