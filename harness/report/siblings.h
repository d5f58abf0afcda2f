/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places that are built alike, as the rails of a machine: which of them is far behind the others in
 * a run, or lacks a path that it should have. Which cases these are, the benchmark says (struct
 * bench_sibling).
 *
 * Each measured case is held against its siblings by harness/decide/decide.h: the siblings are the
 * runs of one side, so that what they differ by among themselves counts as noise; the case is the
 * other side. All comparisons of a rule are one suite, and the rules of a benchmark that have cases
 * share its alarm level: in at most 1 % of runs in which all places are equal one of them is named.
 * It is named where the loss is proven and all of its interval is below `below`. That interval has
 * the degrees of freedom of its own siblings alone. A sibling that lies below `below` of the upper
 * median of all is none to be held against, or two slow ones would hide each other.
 *
 * Launches stall, and all of a few may. So the launches that are below `below`, each by itself, must
 * also be more than stalls explain. How often launches stall is told by those of the other cases
 * that have a rule, each held against the upper median of its own case. The chance of as many
 * (beta-binomial, with Jeffreys' prior), times the comparisons, must be within the alarm level.
 * With few others or many stalls it takes more launches. This takes the place of decide.h's rule of
 * few launches.
 *
 * Where a case is held against one other case instead, that has one run. A case without a value
 * that was refused is named where that other case was measured.
 *
 * What lies below `below` in each launch and is not proven only seems so.
 */
#ifndef PLUMB_REPORT_SIBLINGS_H
#define PLUMB_REPORT_SIBLINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/document/document.h"
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
    const char *hosts;      /* ", between node0 and node1, node1 and node2": of these; or "" */
    bool proven;            /* else it seems so */
    bool absent;            /* it has no value: refused */
    bool measured;          /* not simulated, modelled or imported */
    const char *sentence;
};

struct siblings {
    struct sibling *all; /* by run, then by rule, then in the order of the suite */
    size_t n;
};

/* Everything lives in the report's pool. */
void siblings_make(struct report *r, struct siblings *out);

/* For the first lines of a run: "1 rail is to be looked into", of what is proven and measured; "":
 * nothing. */
const char *siblings_health(struct report *r, const struct siblings *s, size_t run);
/* Its lines of the answers: what is slow, what is missing, what only seems slow. */
void siblings_answer(struct report *r, const struct siblings *s, size_t run, struct document *d);

#endif
