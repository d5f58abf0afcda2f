/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the report knows of the benchmarks: which rows make a pipe's headline, which are set side by
 * side, and how their plots are best cut. All of it is data in rules.c; a benchmark without an
 * entry is reported all the same.
 *
 * Conditions are texts such as "op=triad level!=DRAM": parameters, or `metric`, that a case must
 * have, all of them. A value with a '*' is a pattern; of several with '|' between any will do: "rail=|all", none or "all".
 */
#ifndef PLUMB_REPORT_RULES_H
#define PLUMB_REPORT_RULES_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/report/model.h"

enum {
    RULE_GPU = 1,   /* of cases on a GPU alone; without it, of those on none */
    RULE_TAIL = 2,  /* the sentence names the slowest in a thousand */
    RULE_OVER = 8,  /* the line says over which device: the first word of the column `detail` */
    RULE_COST = 16, /* the line says what it cost in CPU */
    RULE_QUIET = 4, /* no line where all such cases were skipped: what they need is a luxury */
};

struct headline_rule {
    const char *bench;
    const char *pipe;  /* "Memory" */
    const char *label; /* what the line is of; the value of `by` follows; "%s": that value alone */
    const char *where; /* conditions */
    const char *by;    /* a line for each value of this parameter; NULL: one line */
    const char *at;    /* "+size": only cases at the largest size of their line; "-size": smallest;
                         several, one after another: "+ranks +size" */
    double low_below;  /* % of the limit below which it is called low; NaN: not judged */
    const char *subjects; /* of the machine's findings that may explain a low value: "cpu clock" */
    unsigned flags;
};

extern const struct headline_rule headline_rules[]; /* in the order of the report; ends with NULL */

/* Cases that differ in one parameter alone, set side by side: each case that matches `where`
 * against the one that has another value of `param`. */
struct contrast_rule {
    const char *bench;
    const char *title; /* "the library's choice against the best of its candidates" */
    const char *where; /* conditions of the first case */
    const char *param; /* in which they differ */
    const char *other; /* conditions of the second case */
    const char *by;    /* parameters: of each combination of their values the best case is taken */
    const char *lower, *higher; /* "%s" is by how much the second is below or above the first */
    const char *same;           /* they differ by under CONTRAST_SAME, and by their intervals by
                                   CONTRAST_MARGIN at most */
    unsigned flags;
};

#define CONTRAST_SAME   0.01
#define CONTRAST_MARGIN 0.05

extern const struct contrast_rule contrast_rules[]; /* ends with NULL */

struct plot_hint {
    const char *bench;
    const char *x;        /* parameter of the x axis */
    const char *lines;    /* parameters that make lines before others, best first: "op stores" */
    const char *ignore;   /* parameters that say nothing of their own here: "accumulate" */
    const char *outcomes; /* columns that follow from the others: "level". They make no case either:
                             they may differ between launches, and between machines */
    const char *library;  /* that outcome which names a library and its version, or NULL */
    const char *square;   /* parameters that are equal where x says all: "m n k" of square products.
                           Cases in which they differ are listed in plots of their own. Or NULL */
    const char
        *sought_by; /* where this parameter is set those were sought, and are outcomes too. Or
                              NULL */
    const char
        *undrawn; /* metrics that are shown elsewhere, or say the same as another: no plots of them.
                            Or NULL */
    const char *elsewhere; /* conditions of cases that are drawn elsewhere. Or NULL */
    const char *sizes;     /* other parameters that are sizes in bytes. Or NULL */
    bool bytes;            /* x is a size in bytes */
    bool cache_marks;      /* x is a working set: mark the caches' sizes */
    bool gpu;              /* of cases on a GPU; else of those on none */
};

/* NULL when there is none. */
const struct plot_hint *plot_hint_find(const char *bench, bool gpu);
/* The hint for one case. */
const struct plot_hint *plot_hint_of(const struct report_bench *b, const struct report_case *c);

/* A parameter whose values are sizes in bytes. */
bool rule_param_is_bytes(const char *bench, const char *param);
/* A parameter that follows from others, on GPUs or off them. */
bool rule_param_follows(const char *bench, const char *param);
/* The parameter that, where it is set, makes this one an outcome; NULL: none. */
const char *rule_sought_by(const char *bench, const char *param);
/* Is it left out of plots and descriptions? */
bool hint_ignores(const struct plot_hint *hint, const char *param);

/* Where a benchmark stands in the report: in the order of the rules, the others behind. */
size_t rule_place(const char *bench);

/* Whether the case's parameters that the hint calls square are equal; true where there are none. */
bool hint_is_square(const struct plot_hint *hint, const struct report_bench *b,
                    const struct report_case *c);

/* The pipe that a case measures, for comparing: "Matrix core", "Memory", "PCIe" ... Fewer than the
 * headlines' pipes, and one for each case. */
const char *rule_pipe(const struct report *r, const struct report_bench *b,
                      const struct report_case *c);
/* What comparing runs makes of a metric. A benchmark's metric that is in no list is judged where it was sampled, and not
 * where it is a figure beside the samples (a row without a stop rule). */
struct rule_metric {
    const char *bench; /* NULL: any */
    const char *name;
    bool judged;
    const char *why; /* it is not judged: for docs/schema.md; NULL where it is */
};
extern const struct rule_metric rule_metrics[]; /* ends with a name of NULL */

/* Is it to be judged? Not where rule_metrics say no: what says the same as another metric, and figures of which neither more nor
 * less is better, or whose spread is none of a launch's median. */
bool rule_is_judged(const struct report *r, const struct report_bench *b,
                    const struct report_case *c);
/* Has it values, and all of them beside the samples? A launch may leave such a row out (CPU time of a machine that was busy with other work
 * before), and has not failed by that. */
bool rule_is_figure(const struct report *r, const struct report_bench *b,
                    const struct report_case *c);
/* The word by which a launch leaves the choice of this parameter to the benchmark, as not naming it does: "auto". The row shows
 * what was chosen. In a comparison it makes a case where it was asked for alone. NULL: it is no such parameter. */
const char *rule_left_by(const char *bench, const char *param);
/* An outcome that names the library that did the work, and its version. */
bool rule_names_library(const char *bench, const char *param);
/* An outcome that makes a case another quantity where it differs: the level that a working set lies
 * in. Other outcomes may differ. */
bool rule_outcome_decides(const char *bench, const char *param);

bool rule_matches(const struct report_bench *b, const struct report_case *c, const char *where);
bool word_in(const char *words, const char *word); /* words with a blank between them */

/* A place such as cuda:0. */
bool place_is_gpu(const char *place);
/* The case's device, or one of its ends, is a GPU. */
bool case_is_gpu(const struct report_bench *b, const struct report_case *c);
/* The GPU of a case on one: its device, or the end of a copy with the host; "" of pairs, and of
 * none. */
const char *case_gpu(const struct report_bench *b, const struct report_case *c);
/* Both ends are GPUs, and not one and the same. */
bool case_is_pair(const struct report_bench *b, const struct report_case *c);

#endif
