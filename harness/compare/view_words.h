/* SPDX-License-Identifier: Apache-2.0 */
/* The sentences of a comparison; between view.c, view_words.c and view_remarks.c. */
#ifndef PLUMB_COMPARE_VIEW_WORDS_H
#define PLUMB_COMPARE_VIEW_WORDS_H

#include "harness/compare/view.h"

/* Sides, verdict, basis, remarks and obstacles. 0 or -ENOMEM. */
int words_make(struct view *v);

/* The remarks alone: what to know before believing the verdict. 0 or -ENOMEM. */
int words_remarks(struct view *v);

/* "NUMA nodes: 2 against 1" */
const char *words_difference(struct pool *pool, const struct machine_difference *difference);

/* Is the pipe one of "Memory, GPU memory"? */
bool words_has_pipe(const char *pipes, const char *pipe);

#endif
