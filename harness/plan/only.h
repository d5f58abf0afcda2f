/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --only, alike in every command: given several times, each counts. One rule says whether a pattern
 * keeps a case:
 *
 *   A pattern that is a benchmark's name keeps the cases of that benchmark.
 *   Any other one is for fnmatch(3), and fits a part of one of the three texts of a case: its
 *   command line, "memory --op triad --size 65536"; its key,
 *   "memory|op=triad|size=65536|bandwidth|GB/s"; its label, "memory triad 64 KiB: bandwidth". A
 *   measured case has no command line and a planned one no key: each is made of the other, as far
 *   as possible.
 *   Sizes may be written as people do: 64K, 64KiB.
 *   '|' parts patterns: A|B is A, or B. Not in a pattern with a '=', which is a part of a key.
 */
#ifndef PLUMB_HARNESS_ONLY_H
#define PLUMB_HARNESS_ONLY_H

#include "harness/plan/bench_info.h"

struct only_case {
    const char *bench, *arguments;    /* "memory", "--op triad"; NULL: of the key */
    const char *key, *label;          /* NULL: there is none */
    const struct bench_list *benches; /* NULL: those of this machine */
};

/* Is the case kept by any pattern? `only` ends with NULL; NULL or none keeps all. */
bool only_keeps(const char *const *only, const struct only_case *c);

/* The patterns of a command line, NULL-ended; they stay the command line's, the array is the
 * caller's to free. To be called after opts_parse(), which has found a value for each option that
 * asks for one. NULL: no memory. */
const char **only_of(int argc, char **argv);

#endif
