/* SPDX-License-Identifier: Apache-2.0 */
/* The gate's sentences: the same on the terminal and in every file. */
#ifndef PLUMB_CHECK_WORDS_H
#define PLUMB_CHECK_WORDS_H

#include "harness/check/gate.h"

const char *words_case(const struct gate *g, const struct gate_case *c);
const char *words_verdict(const struct gate *g);
const char *words_unseen(const struct gate *g);

/* The figures of a case that was held against a baseline; "" where they cannot be told. */
struct words_figures {
    const char *ratio;    /* "0.948 (0.941 to 0.955)" */
    const char *proof;    /* "p 2e-07" */
    const char *smallest; /* "1.2 %" */
};
struct words_figures words_figures(struct pool *pool, const struct pair *pair);

const char *words_percent(struct pool *pool, double share); /* 0.05: "5 %" */

/* What is said of a case, with what differs beside its figures; in one line. */
const char *words_whole(struct pool *pool, const struct gate_case *c);
/* "kernel 6.1 against 6.5; plumb 0.1 against 0.2", baseline against run; "": nothing differs. */
const char *words_differences(struct pool *pool, const struct machine_difference *all, size_t n);

#endif
