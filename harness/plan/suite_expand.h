/* SPDX-License-Identifier: Apache-2.0 */
/* From the values of one entry of a suite to its cases: every combination of its lists. */
#ifndef PLUMB_HARNESS_SUITE_EXPAND_H
#define PLUMB_HARNESS_SUITE_EXPAND_H

#include "harness/plan/suite.h"

struct case_draft {
    const struct bench_info *bench;
    struct opt_values *values; /* one an option of the bench */
    bool *every_gpu;           /* the same: it was given as `gpus` */
    bool *largest;             /* the same: it was given as `largest`; values come with expansion */
    char **defaults;           /* as bench->defaults, of this case; NULL: the bench's are right */
    size_t n;
    bool no_gpu; /* it asks for GPUs, and there is none */
    unsigned repeats;
    uint64_t timeout_ns;
    double margin;
    int line;
};

int case_draft_init(struct case_draft *draft); /* bench is set; 0 or -ENOMEM */
void case_draft_release(struct case_draft *draft);

/* Sets option i from text; a list for a list option. 0 or -EINVAL with error. */
int case_draft_set(struct case_draft *draft, size_t i, const char *text, char *error, size_t len);

/* Appends all combinations to the suite. Where two options were given as `gpus` these are the pairs
 * of two different ones. Where there is no GPU (or, for pairs, no other) one case of the benchmark
 * stands for all that ask for one. 0, -ENOMEM, or -EINVAL with error. */
int case_draft_expand(struct case_draft *draft, struct suite *suite, char *error, size_t len);

#endif
