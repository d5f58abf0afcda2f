/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a benchmark chooses by a race (OPT_KEPT) is decided once for each case of a run: by the
 * first launch that is done. The later launches are given its choice as an option.
 *
 *   left     the case does not name the option, or names it with its default
 *   chosen   the column of the option's name has one value in all rows of that launch, but for
 *            empty cells, and the option takes it. Else each launch decides for itself
 *   hosts    of launches on hosts nothing is kept: one host may lack what another chose
 *
 * The plan and its arguments stay as they are.
 */
#ifndef PLUMB_HARNESS_KEPT_H
#define PLUMB_HARNESS_KEPT_H

#include <jansson.h>

#include "harness/plan/bench_info.h"
#include "harness/plan/plan.h"

struct kept_case {
    unsigned case_number, repeat; /* of the launch that decided */
    char *arguments;              /* "--isa avx2"; "": each launch decides for itself */
};

struct kept {
    struct kept_case *cases;
    size_t n;
};

/* What launch l chose, by the n rows of t from `first`: "--isa avx2", or "". A new text; NULL when
 * memory is short. */
char *kept_choices(const struct bench_info *b, const struct launch *l, const struct table *t,
                   size_t first, size_t n);

/* Takes the choices of a launch that is done from its rows, but of a case that is decided. 0 or
 * -ENOMEM. */
int kept_learn(struct kept *k, const struct bench_info *b, const struct launch *l,
               const struct table *t, size_t first, size_t n);

/* The same from all rows of a run that goes on. 0, or -errno with error. */
int kept_load(struct kept *k, const struct bench_list *benches, const struct plan *plan,
              const char *path, char *error, size_t len);

/* What the launch is given; NULL: nothing, it decides for itself. */
const struct kept_case *kept_of(const struct kept *k, const struct launch *l);

void kept_release(struct kept *k);

/* For run.json: the options of each benchmark that are kept, {"BENCH": ["OPTION", ..]}. */
json_t *kept_options(const struct bench_list *benches);

#endif
