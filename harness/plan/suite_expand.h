/* SPDX-License-Identifier: Apache-2.0 */
/* From the values of one entry of a suite to its cases: every combination of its lists. */
#ifndef PLUMB_HARNESS_SUITE_EXPAND_H
#define PLUMB_HARNESS_SUITE_EXPAND_H

#include <limits.h>

#include "harness/plan/suite.h"

/* Words for some of an option's default values: the last alone, and each fourth from it back. */
#define EVERY_LARGEST UINT_MAX
#define EVERY_COARSE  4

struct case_draft {
    const struct bench_info *bench;
    struct opt_values *values; /* one an option of the bench */
    bool *every_gpu;           /* the same: it was given as `gpus` */
    bool *general;             /* the same: it came with the suite's defaults */
    struct opt_values *all;    /* the same: given or by default; made with the expansion */
    unsigned *every;           /* the same: 0, or it takes each so-many-th of its default values,
                                * the last of them first; values come with expansion */
    unsigned *times;           /* the same: each of those sizes so many times over; 0: as it is */
    char **defaults;           /* as bench->defaults, of this case; NULL: the bench's are right */
    size_t n;
    bool no_gpu;     /* it asks for GPUs, and there is none */
    bool by_machine; /* its places are those that this machine has */
    unsigned repeats;
    uint64_t timeout_ns;
    double margin;
    int line;
    enum suite_between between;
};

int case_draft_init(struct case_draft *draft); /* bench is set; 0 or -ENOMEM */
void case_draft_release(struct case_draft *draft);

/* Sets option i from text; a list for a list option. 0 or -EINVAL with error. */
int case_draft_set(struct case_draft *draft, size_t i, const char *text, char *error, size_t len);

/* Takes out options that were given and say nothing of any combination. 0, -ENOMEM, or -EINVAL with
 * error where that is a mistake: neither the suite's defaults asked for it, nor does it hang on what
 * this machine has. */
int case_draft_prune(struct case_draft *draft, char *error, size_t len);

/* Appends all combinations to the suite. An option that says nothing of one is left out of it, so that
 * none is another one's repetition. Where two options were given as `gpus` these are the pairs
 * of two different ones. Where there is no GPU (or, for pairs, no other) one case of the benchmark
 * stands for all that ask for one. 0, -ENOMEM, or -EINVAL with error. */
int case_draft_expand(struct case_draft *draft, struct suite *suite, char *error, size_t len);

/* Cases that measure the same become the first of them, with the most repeats that any of them has;
 * forgets what the cases mean. 0 or -ENOMEM. */
int suite_unite(struct suite *suite);
void suite_case_release(struct suite_case *c);

/* Of a benchmark that needs a peer or a group: the cases that ask for a backend of it that is absent here (RDMA,
 * where there is no card) become one, launched once, whose row says why. Those that are to run on other
 * hosts, which may have it, stay. */
void suite_unite_absent(struct suite *suite, bool has_hosts);

#endif
